/* stopped - see stopped.h. */
#include "tools/xseg/base/stopped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/xseg/base/stack_lock.h"

/* ---- reading ----------------------------------------------------------------------------- */

void stopped_load(struct xseg *seg, struct stopped *s)
{
	struct stack_record *record = calloc(1, sizeof(*record));

	*s->names = '\0';
	if (record && stack_record_get(seg, record))
		memcpy(s->names, record->stopped, sizeof(s->names));
	free(record);
}

bool stopped_peer(const struct stopped *s, const struct xseg_peer_info *peer)
{
	return peer->state == XSEG_PEER_STOPPED &&
	       stack_stopped_has(s->names, STACK_STOPPED_PEER, peer->name);
}

bool stopped_look(struct xseg *seg, const struct xseg_peer_info *peer)
{
	struct stopped s;

	stopped_load(seg, &s);
	return stopped_peer(&s, peer);
}

bool stopped_export(const struct stopped *s, const char *name)
{
	return stack_stopped_has(s->names, STACK_STOPPED_EXPORT, name);
}

const char *stopped_tell(const char *name, char text[STOPPED_TEXT])
{
	snprintf(text, STOPPED_TEXT,
		"%s: it stays stopped, as 'xseg peer stop' has stopped it; 'xseg peer start %s' "
		"starts it",
		name, name);
	return text;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* False: there is no room. */
static bool apply(struct stack_record *record, const struct stopped_change *change)
{
	bool fits = true;

	for (uint32_t i = 0; i < change->nr; i++)
		if (change->stopped)
			fits &= stack_stopped_add(record, change->what, change->name[i]);
		else
			stack_stopped_remove(record, change->what, change->name[i]);
	return fits;
}

int stopped_write(struct tool *t, struct xseg *seg, const char *what,
	const struct stopped_change *change)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	int rc = TOOL_DONE;

	if (!record || !stack_record_get(seg, record))
		rc = tool_fail(TOOL_FAILED, "%s: the stack file cannot be read; do this again",
			what);
	if (!rc && !apply(record, change))
		rc = tool_fail(TOOL_FAILED,
			"%s: segment %s has no room for the name beside its stack file, which has "
			"nearly 64k; make that shorter",
			what, t->segment);
	if (!rc) {
		rc = stack_record_set(seg, record);
		rc = rc ? tool_fail_errno(rc, NULL, "do this again", "%s %s", what,
				  change->name[0])
			: TOOL_DONE;
	}
	free(record);
	return rc;
}

int stopped_remember(struct tool *t, struct xseg *seg, const char *what,
	const struct stopped_change *change)
{
	int fd, rc = stack_lock(t, what, &fd);

	if (!rc)
		rc = stopped_write(t, seg, what, change);
	stack_unlock(fd);
	return rc;
}
