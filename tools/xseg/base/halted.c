/* halted - see halted.h. */
#include "tools/xseg/base/halted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The state is the letter behind the program's name, which may have any in it. */
bool halted_is(struct xseg *seg, const struct xseg_peer_info *p)
{
	char path[32], line[256] = "", *state;
	FILE *f = NULL;

	if (!view_peer_alive(p))
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", p->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	state = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return state && (!strncmp(state, ") T", 3) || !strncmp(state, ") t", 3)) &&
	       xseg_peer_pid_check(seg, p) != -EPROTO;
}

const char *halted_tell(const char *name, uint64_t pid, char text[HALTED_TEXT])
{
	snprintf(text, HALTED_TEXT,
		 "%s is halted, by a signal such as SIGSTOP or a debugger, and processes that "
		 "need it wait; 'kill -CONT %" PRIu64 "' continues it", name, pid);
	return text;
}

static bool find(struct xseg *seg, bool clients, struct xseg_peer_info *p)
{
	struct view_peers peers;
	bool found = false;

	if (view_peers_load(seg, &peers))
		return false;
	for (uint32_t i = 0; i < peers.nr && !found; i++) {
		*p = peers.info[i];
		found = view_peer_is_client(p) == clients && halted_is(seg, p);
	}
	view_peers_fini(&peers);
	return found;
}

bool halted_find(struct xseg *seg, struct xseg_peer_info *p)
{
	return (view_supervisor(seg, p) && halted_is(seg, p)) || find(seg, false, p);
}

bool halted_find_client(struct xseg *seg, struct xseg_peer_info *p)
{
	return find(seg, true, p);
}
