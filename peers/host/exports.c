/* exports - see exports.h. */
#include "peers/host/exports.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/say/export_words.h"
#include "peers/host/ended.h"
#include "peers/host/nbdkit.h"
#include "peers/host/pace.h"
#include "peers/host/supervise_inside.h"
#include "xtypes/xstate.h"

#define END_MS	      15000	/* H3; the guard cuts connections after 3 s */
#define STRANGER_MS   200	/* between two looks for servers of other settings */
#define STARTING_MS   10
#define WATCHING_MS   100

#define TO(state) (1u << SERVER_##state)

static const struct xstates states = {
	.what = "server of exports",
	XSTATE(SERVER_, WAITING, TO(WAITING) | TO(RUNNING) | TO(STOPPED)),
	XSTATE(SERVER_, RUNNING, TO(WAITING) | TO(STOPPED) | TO(FAILED)),
	XSTATE(SERVER_, STOPPED, TO(WAITING) | TO(RUNNING)),
	XSTATE(SERVER_, FAILED, TO(WAITING) | TO(RUNNING)),
};

static void server_set(struct server *v, enum server_state state)
{
	xstate_check(&states, v->state, state);
	v->state = state;
}

static const struct stack_export *first_of(const struct supervisor *s, const struct server *v)
{
	return &s->units.stack->exports[v->first];
}

/* "export disk", "exports disk, scratch"; until the next call. */
static const char *server_name(const struct supervisor *s, const struct server *v)
{
	const struct stack *stack = s->units.stack;
	static char text[512];
	uint32_t i, nr = 0;
	size_t used = 0;

	for (i = 0; i < stack->nr_exports; i++)
		nr += stack->exports[i].server == v->first;
	used = (size_t)snprintf(text, sizeof(text), "export%s", nr > 1 ? "s" : "");
	for (i = 0, nr = 0; i < stack->nr_exports && used < sizeof(text); i++)
		if (stack->exports[i].server == v->first)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s",
				nr++ ? "," : "", stack->exports[i].name);
	return text;
}

/* ---- what the segment says --------------------------------------------------------------- */

/* The client of that export, if it is alive. */
static bool look_at(struct supervisor *s, const char *export, struct xseg_peer_info *info)
{
	char name[XSEG_NAME_MAX];
	uint32_t index;

	export_peer_name(export, name);
	index = xseg_peer_find(s->units.seg, name);
	return index != XSEG_NONE && xseg_peer_get_info(s->units.seg, index, info) &&
	       xseg_peer_is_up(info->state) && export_of_peer(info);
}

/* One of the server's exports that is served by a process, with whatever settings if `any`, else
 * with these. */
static bool find_process(
	struct supervisor *s, const struct server *v, bool any, struct xseg_peer_info *info)
{
	const struct stack *stack = s->units.stack;

	for (uint32_t i = 0; i < stack->nr_exports; i++)
		if (stack->exports[i].server == v->first &&
			look_at(s, stack->exports[i].name, info) &&
			(any || info->user[EXPORT_WORD_SERVER] == v->id))
			return true;
	return false;
}

static bool find_alive(struct supervisor *s, const struct server *v, struct xseg_peer_info *info)
{
	return find_process(s, v, false, info);
}

static bool is_occupied(struct supervisor *s, const struct server *v)
{
	struct xseg_peer_info info;

	return find_process(s, v, true, &info);
}

/* H7 */
static bool volumed_serves(struct supervisor *s, const struct stack_export *e)
{
	const struct stack *stack = s->units.stack;
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < stack->nr_peers; i++)
		if (stack_export_takes(e, &stack->peers[i]) &&
			units_peer_state(&s->units, i, &info) == XSEG_PEER_LIVE &&
			!peer_word_stopping(&info) && !replace_of(&s->replace, info.name))
			return true;
	return false;
}

static bool all_volumeds_serve(struct supervisor *s, const struct server *v)
{
	const struct stack *stack = s->units.stack;

	for (uint32_t i = 0; i < stack->nr_exports; i++)
		if (stack->exports[i].server == v->first && !volumed_serves(s, &stack->exports[i]))
			return false;
	return true;
}

/* ---- starting ---------------------------------------------------------------------------- */

static void start_again_later(struct server *v, uint64_t now_ms)
{
	v->backoff_ms = pace_next(v->backoff_ms, now_ms - v->since_ms);
	v->at_ms = now_ms + v->backoff_ms;
	server_set(v, SERVER_WAITING);
}

static void start(struct supervisor *s, struct server *v, uint64_t now_ms)
{
	struct xseg_error err = { "" };
	int rc = nbdkit_clear_address(first_of(s, v), &err);

	if (!rc)
		rc = nbdkit_start(s, v->first, v->id, &v->child, &err);
	v->since_ms = now_ms;
	v->asked_ms = 0;
	if (!rc) {
		server_set(v, SERVER_RUNNING);
		log_info("%s: started %s (pid %d), on %s", me, server_name(s, v), (int)v->child,
			first_of(s, v)->nbd);
		return;
	}
	v->child = 0;
	start_again_later(v, now_ms);
	log_error("%s: cannot start %s: %s; trying again", me, server_name(s, v), err.text);
}

/* ---- ends -------------------------------------------------------------------------------- */

static void signal_server(struct supervisor *s, const struct server *v, int sig)
{
	struct xseg_peer_info info;
	int fd;

	if (v->child) {
		(void)kill(v->child, sig);		/* not reaped, so the pid is its own */
		return;
	}
	if (!find_alive(s, v, &info))
		return;
	fd = xseg_peer_pidfd(s->units.seg, &info);
	if (fd < 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
}

/* Once, and SIGKILL later (H3). */
static void ask_to_end(struct supervisor *s, struct server *v, uint64_t now_ms)
{
	if (!v->asked_ms) {
		v->asked_ms = now_ms;
		v->killed = false;
		log_info("%s: stopping %s", me, server_name(s, v));
		signal_server(s, v, SIGTERM);
	} else if (!v->killed && now_ms - v->asked_ms >= END_MS) {
		v->killed = true;
		log_warn("%s: %s: nbdkit has waited %d s for I/O that is not answered, and is "
			 "killed",
			me, server_name(s, v), END_MS / 1000);
		signal_server(s, v, SIGKILL);
	}
}

/* H6 */
static void watch(struct supervisor *s, struct server *v, uint64_t now_ms)
{
	struct xseg_error err = { "" };

	server_set(v, SERVER_RUNNING);
	v->since_ms = now_ms;
	v->asked_ms = 0;
	log_info("%s: %s runs already; watching it", me, server_name(s, v));
	if (nbdkit_set_rights(s, v->first, &err))
		log_warn("%s: %s: %s", me, server_name(s, v), err.text);
}

static bool is_wanted(const struct supervisor *s, const struct server *v)
{
	return !is_stopping(s) && !v->held;
}

static void server_ended(struct supervisor *s, struct server *v, const char *how, uint64_t now_ms)
{
	bool asked = v->asked_ms;

	nbdkit_remove_socket(first_of(s, v));
	v->child = 0;
	v->asked_ms = 0;
	if (asked && (v->return_once || is_wanted(s, v))) {
		v->return_once = false;
		v->at_ms = now_ms;
		server_set(v, SERVER_WAITING);
		return;
	}
	if (asked || !is_wanted(s, v)) {
		log_info("%s: %s stopped", me, server_name(s, v));
		server_set(v, SERVER_STOPPED);
		return;
	}
	if (!first_of(s, v)->restart) {
		server_set(v, SERVER_FAILED);
		log_warn("%s: the process of %s %s; it is not started again (restart = no)", me,
			server_name(s, v), how);
		return;
	}
	start_again_later(v, now_ms);
	log_warn("%s: the process of %s %s; starting it again in %u ms", me, server_name(s, v), how,
		v->backoff_ms);
}

bool exports_ended(struct supervisor *s, pid_t pid, int status, uint64_t now_ms)
{
	char how[ENDED_HOW_MAX];

	for (struct server *v = s->exports.server; v < s->exports.server + s->exports.nr; v++) {
		if (v->child != pid)
			continue;
		ended_how(&s->oom_kills, status, how);
		server_ended(s, v, how, now_ms);
		return true;
	}
	return false;
}

/* ---- steps ------------------------------------------------------------------------------- */

static void step(struct supervisor *s, struct server *v, uint64_t now_ms)
{
	struct xseg_peer_info info;
	bool alive = v->child || find_alive(s, v, &info);

	if (v->state == SERVER_RUNNING) {
		if (!alive)
			server_ended(s, v, "died", now_ms);
		else if (v->asked_ms || v->return_once || !is_wanted(s, v))
			ask_to_end(s, v, now_ms);
		return;
	}
	if (alive) {					/* H1 */
		watch(s, v, now_ms);
		return;
	}
	if (!is_wanted(s, v)) {
		if (v->state == SERVER_WAITING)
			server_set(v, SERVER_STOPPED);
		return;
	}
	if (v->state == SERVER_STOPPED) {
		v->at_ms = now_ms;
		server_set(v, SERVER_WAITING);
	}
	if (v->state == SERVER_WAITING && now_ms >= v->at_ms && !is_occupied(s, v) &&
		all_volumeds_serve(s, v))
		start(s, v, now_ms);
}

static struct server *server_of(struct supervisor *s, uint32_t export)
{
	for (uint32_t i = 0; i < s->exports.nr; i++)
		if (s->exports.server[i].first == s->units.stack->exports[export].server)
			return &s->exports.server[i];
	return NULL;
}

static bool signal_stranger(struct supervisor *s, const struct xseg_peer_info *info, int sig)
{
	int fd = xseg_peer_pidfd(s->units.seg, info);

	if (fd < 0)
		return false;
	(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
	return true;
}

static void end_stranger(struct supervisor *s, const struct xseg_peer_info *info, uint64_t now_ms)
{
	struct stranger *x = &s->exports.stranger[info->index];

	/* one that has just begun says its settings in a moment */
	if (x->generation != info->generation) {
		*x = (struct stranger){ .generation = info->generation };
	} else if (!x->asked_ms) {
		if (!signal_stranger(s, info, SIGTERM))
			return;
		x->asked_ms = now_ms;
		log_info("%s: stopping the server of export %s, which has other settings", me,
			export_of_peer(info));
	} else if (!x->killed && now_ms - x->asked_ms >= END_MS) {
		x->killed = signal_stranger(s, info, SIGKILL);
		log_warn("%s: the server of export %s, which has other settings, has not ended for "
			 "%d s, and is killed",
			me, export_of_peer(info), END_MS / 1000);
	}
}

/* H1: servers that an earlier stack had, or that have other settings now. */
static void end_strangers(struct supervisor *s, uint64_t now_ms)
{
	struct xseg *seg = s->units.seg;
	struct xseg_peer_info info;
	uint32_t i, index;

	if (s->exports.looked_ms && now_ms - s->exports.looked_ms < STRANGER_MS)
		return;
	s->exports.looked_ms = now_ms;
	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || !xseg_peer_is_up(info.state) ||
			!export_of_peer(&info))
			continue;
		index = stack_find_export(s->units.stack, export_of_peer(&info));
		if (index == STACK_NONE ||
			server_of(s, index)->id != info.user[EXPORT_WORD_SERVER])
			end_stranger(s, &info, now_ms);
	}
}

/* It is served with other settings than the stack has, and that server ends soon (H1). */
static bool has_stranger(struct supervisor *s, const struct server *v, uint32_t export)
{
	struct xseg_peer_info info;

	return look_at(s, s->units.stack->exports[export].name, &info) &&
	       info.user[EXPORT_WORD_SERVER] != v->id;
}

/* H4 */
static void tell(struct supervisor *s)
{
	uint64_t stopped = 0, failed = 0, bit;
	const struct server *v;
	bool stranger;

	for (uint32_t i = 0; i < s->units.stack->nr_exports; i++) {
		v = server_of(s, i);
		bit = UINT64_C(1) << i;
		stranger = has_stranger(s, v, i);
		stopped |= stranger || v->state == SERVER_STOPPED ? bit : 0;
		failed |= stranger || v->state == SERVER_FAILED ? bit : 0;
	}
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_EXPORTS, failed << 32 | stopped);
}

void exports_step(struct supervisor *s, uint64_t now_ms)
{
	if (!is_stopping(s))
		end_strangers(s, now_ms);
	for (uint32_t i = 0; i < s->exports.nr; i++)
		step(s, &s->exports.server[i], now_ms);
	tell(s);
}

bool exports_have_ended(const struct supervisor *s)
{
	bool ended = true;

	for (uint32_t i = 0; i < s->exports.nr; i++)
		ended &= s->exports.server[i].state != SERVER_RUNNING;
	return ended;
}

void exports_command(struct supervisor *s, enum export_order order, uint32_t index)
{
	struct server *v;

	if (index >= s->units.stack->nr_exports)
		return;
	v = server_of(s, index);
	v->held = order == EXPORT_STOP;
	v->return_once = order == EXPORT_RESTART && v->state == SERVER_RUNNING;
	if (v->state == SERVER_FAILED && order != EXPORT_STOP)
		server_set(v, SERVER_WAITING);
	v->at_ms = 0;
}

int exports_poll_ms(const struct supervisor *s, int ms)
{
	for (const struct server *v = s->exports.server; v < s->exports.server + s->exports.nr;
		v++) {
		if (v->state == SERVER_WAITING && ms > STARTING_MS)
			ms = STARTING_MS;
		else if (v->state == SERVER_RUNNING && (!v->child || v->asked_ms) &&
			ms > WATCHING_MS)
			ms = WATCHING_MS;
	}
	return ms;
}

static void hold(struct server *v)
{
	v->held = true;
	if (v->state == SERVER_WAITING)
		server_set(v, SERVER_STOPPED);
}

/* The command that has started the supervisor goes on behind this: it finds H4 and H6 done. */
void exports_make(struct supervisor *s, uint64_t now_ms)
{
	const struct stack *stack = s->units.stack;
	struct xseg_peer_info info;
	struct server *v;

	for (uint32_t i = 0; i < stack->nr_exports; i++) {
		if (stack->exports[i].server != i)
			continue;
		v = &s->exports.server[s->exports.nr++];
		v->first = i;
		v->id = nbdkit_id(s, i);
		if (find_alive(s, v, &info))
			watch(s, v, now_ms);
	}
	for (uint32_t i = 0; i < stack->nr_exports; i++)		/* H5 */
		if (held_export(s, stack->exports[i].name))
			hold(server_of(s, i));
	tell(s);
}
