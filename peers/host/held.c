/* held - see held.h. */
#include "peers/host/held.h"

#include <stdlib.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/host/supervise_inside.h"

void held_look(struct supervisor *s)
{
	struct stack_record *record = calloc(1, sizeof(*record));

	if (record && stack_record_get(s->units.seg, record))
		memcpy(s->held.names, record->stopped, sizeof(s->held.names));
	free(record);
}

bool held_export(const struct supervisor *s, const char *name)
{
	return stack_stopped_has(s->held.names, STACK_STOPPED_EXPORT, name);
}

bool held_named(const struct supervisor *s, uint32_t peer)
{
	return stack_stopped_has(
		s->held.names, STACK_STOPPED_PEER, s->units.stack->peers[peer].name);
}

bool held_peer(struct supervisor *s, uint32_t peer)
{
	struct xseg_peer_info info;

	return units_peer_state(&s->units, peer, &info) == XSEG_PEER_STOPPED &&
	       held_named(s, peer);
}

bool held_unit(struct supervisor *s, const struct unit *u)
{
	struct xseg_peer_info info;
	bool held = false;

	for (uint32_t i = 0; i < u->nr; i++) {
		if (held_peer(s, u->peer[i]))
			held = true;
		else if (!xseg_peer_is_up(units_peer_state(&s->units, u->peer[i], &info)))
			return false;
	}
	return held;
}

void held_leave(struct supervisor *s, struct unit *u)
{
	u->returns = false;
	unit_set(u, UNIT_STOPPED);
	log_info("%s: %s stays stopped, as 'xseg peer stop' has stopped it", me,
		unit_name(&s->units, u));
}

void held_make(struct supervisor *s)
{
	held_look(s);
	for (struct unit *u = s->units.unit; u < s->units.unit + s->units.nr; u++)
		if (u->state == UNIT_WAITING && held_unit(s, u) &&
			!unit_has(&s->units, u, xseg_peer_is_up))
			held_leave(s, u);
}
