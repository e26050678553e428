/* ending - see ending.h. */
#include "tools/xseg/flow/ending.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "peers/common/options/stack.h"
#include "peers/common/say/dirty.h"
#include "peers/common/say/volume_users.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/halted.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stopped.h"

#define LOOK_NS	     (TOOL_SECOND / 50)
/* a killed process may have much memory to give back */
#define KILL_LIMIT_NS (10 * TOOL_SECOND)
/* a process that has begun is in the segment sooner */
#define ENTER_LIMIT_NS (5 * TOOL_SECOND)
/* a peer that has stopped leaves the segment after that */
#define LEAVE_LIMIT_NS (3 * TOOL_SECOND)
/* that nothing has gone on for so long is told */
#define STALL_NS      (5 * TOOL_SECOND)
#define CIRCLE_BYTES  (4ull << 20)		/* more than a stop flushes beside what is dirty */
#define USERS_TEXT    512
/* that a peer is asked again to stop, which is started again meanwhile */
#define STOP_TIMES    3
/* nobody starts it again, and somebody may just be doing so by hand */
#define STRANDED_NS   (3 * TOOL_SECOND)

static int refuse_dirty(struct tool *t, const char *what, const struct xseg_peer_info *p,
			uint64_t dirty)
{
	char size[OUT_TEXT];

	return tool_fail(TOOL_REFUSED,
			 "%s %s: %s is %s and has %s (%" PRIu64
			 " bytes) that the store does not have; run 'xseg up STACK.conf' "
			 "again, which recovers and then flushes it, or add --force and lose them",
			 what, t->segment, p->name, view_state_name(p->state),
			 out_size(dirty, size), dirty);
}

static int refuse_unsynced(struct tool *t, const char *what, const struct xseg_peer_info *p)
{
	uint64_t bytes = peer_word_unsynced(p);
	char size[OUT_TEXT];

	return tool_fail(TOOL_REFUSED,
			 "%s %s: %s is %s, and %s (%" PRIu64
			 " bytes) of data written to it could not be synced, as the storage "
			 "below failed; when that works again run 'xseg up STACK.conf' and write "
			 "the data again, or add --force and lose it",
			 what, t->segment, p->name, view_state_name(p->state),
			 out_size(bytes, size), bytes);
}

/* ---- one peer ---------------------------------------------------------------------------- */

/* Whether this incarnation still runs; *now is what is there in its place. */
static bool still_runs(struct xseg *seg, const struct xseg_peer_info *peer,
		       struct xseg_peer_info *now)
{
	if (!xseg_peer_get_info(seg, peer->index, now) || strcmp(now->name, peer->name)) {
		now->state = XSEG_PEER_FREE;
		return false;
	}
	return now->generation == peer->generation && view_peer_alive(now);
}

static int fail_stranded(struct xseg *seg, const struct xseg_peer_info *peer,
			 const struct xseg_peer_info *below)
{
	if (!view_in_stack(seg, below->name))
		return tool_fail(TOOL_FAILED,
			"%s cannot stop: it needs %s, which is %s and not in the stack; start that "
			"as it was started before, and do this again",
			peer->name, below->name, view_state_name(below->state));
	return tool_fail(TOOL_FAILED,
		"%s cannot stop: it needs %s, which is %s; start that ('xseg peer start %s') and "
		"do this again",
		peer->name, below->name, view_state_name(below->state), below->name);
}

int ending_look_stranded(
	struct xseg *seg, const struct xseg_peer_info *peer, struct tool_span *stranded)
{
	struct xseg_peer_info below = { .name = "" };

	if (tool_span_ns(stranded, view_stranded(seg, peer, &below)) < STRANDED_NS)
		return TOOL_DONE;
	return fail_stranded(seg, peer, &below);
}

static uint32_t count_alive(struct xseg *seg)
{
	struct view_peers peers;
	uint32_t i, alive = 0;

	if (!view_peers_load(seg, &peers))
		for (i = 0; i < peers.nr; i++)
			alive += view_peer_alive(&peers.info[i]) &&
				 !view_peer_is_client(&peers.info[i]);
	view_peers_fini(&peers);
	return alive;
}

/* Writes the line of the first peer that is failing. False: none is. */
static bool find_failing(struct xseg *seg, char text[VIEW_FAILING_TEXT])
{
	struct xseg_peer_info p;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && view_is_failing(seg, p.name)) {
			view_failing_tell(p.name, text);
			return true;
		}
	return false;
}

static void tell_stall(struct tool *t, struct xseg *seg, const struct ending_stall *s)
{
	const char *space = s->peer ? " " : "", *name = s->peer ? s->peer->name : "";
	const char *take_back = s->peer || !xseg_supervisor_alive(seg)
					? ""
					: "'xseg down --cancel' takes the stop back, ";
	char size[OUT_TEXT], way_out[XSEG_NAME_MAX + 32], command[VIEW_COMMAND_MAX];
	char text[HALTED_TEXT], users[USERS_TEXT], failing[VIEW_FAILING_TEXT];
	struct xseg_peer_info halted;

	volume_users_any(seg, users, sizeof(users));
	if (halted_find(seg, &halted)) {
		if (!strcmp(halted.name, name))
			space = name = "";
		tool_note(t, "stopping%s%s: %s", space, name,
			halted_tell(halted.name, halted.pid, text));
		return;
	}
	if (!s->dirty && halted_find_client(seg, &halted)) {
		tool_note(t, "stopping%s%s: %s", space, name,
			halted_tell(halted.member_label, halted.pid, text));
		return;
	}
	if (!s->peer && find_failing(seg, failing)) {
		tool_note(t, "stopping: %s; 'xseg down --force' does not wait for it", failing);
		return;
	}
	snprintf(way_out, sizeof(way_out),
		 s->peer ? "xseg peer kill %s" : "xseg down --force", name);
	if (s->dirty)
		tool_note(t,
			"stopping%s%s: %s are dirty and the store has taken nothing for 5 s, it is "
			"still tried; '%s' and the log say why, %s'%s' %s",
			space, name, out_size(s->dirty, size),
			view_dirty_command(seg, s->peer ? s->peer->index : XSEG_NONE, command),
			take_back, way_out,
			s->peer ? "leaves them in the segment" : "loses them");
	else
		tool_note(t,
			"stopping%s%s: nothing is dirty and no peer has stopped for 5 s, perhaps "
			"because the store does not answer or cannot make its data stable%s%s; the "
			"log says why, %s'%s' does not wait for that",
			space, name,
			users[0] ? ", or one of these clients keeps lent data:" : "", users,
			take_back, way_out);
}

/* It goes on, and does not come to an end. */
static bool goes_in_circles(const struct ending_stall *s, uint64_t dirty, uint64_t now)
{
	return dirty && now - s->began_ns >= STALL_NS &&
	       s->flushed - s->first_flushed > 2 * s->first_dirty + CIRCLE_BYTES;
}

static void tell_circles(struct tool *t, struct xseg *seg, const struct ending_stall *s)
{
	const char *space = s->peer ? " " : "", *name = s->peer ? s->peer->name : "";
	char size[OUT_TEXT], command[VIEW_COMMAND_MAX];

	tool_note(t,
		"stopping%s%s: %s were written to the store, which is more than was dirty, and not "
		"all is clean and stable yet; clients write on, or the store fails to make its "
		"data stable: '%s' and the log say which",
		space, name, out_size(s->flushed - s->first_flushed, size),
		view_dirty_command(seg, s->peer ? s->peer->index : XSEG_NONE, command));
}

void ending_look_for_stall(struct tool *t, struct xseg *seg, struct ending_stall *s)
{
	uint64_t dirty = dirty_bytes_of(seg, s->peer ? s->peer->index : XSEG_NONE);
	uint64_t flushed = flushed_bytes_of(seg, s->peer ? s->peer->index : XSEG_NONE);
	uint32_t alive = s->peer ? 1 : count_alive(seg);
	uint64_t now = tool_now_ns();

	tool_flushes(t);
	if (!s->began_ns) {
		s->began_ns = now;
		s->first_dirty = dirty;
		s->first_flushed = flushed;
	}
	if (dirty < s->dirty || flushed > s->flushed || alive < s->alive)
		s->since_ns = now;
	s->flushed = flushed;
	if (dirty < s->dirty)
		s->dirty = dirty;
	if (alive < s->alive)
		s->alive = alive;
	if (!s->told && now - s->since_ns >= STALL_NS) {
		s->told = true;
		tell_stall(t, seg, s);
	} else if (!s->told_circles && goes_in_circles(s, dirty, now)) {
		s->told_circles = true;
		tell_circles(t, seg, s);
	}
}

/* Waits until that incarnation has ended, with progress; *now is what is there then. */
static int wait_ended(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer,
		      struct xseg_peer_info *now, struct ending_stall *stall)
{
	struct tool_span stranded = { 0 };
	char dirty[OUT_TEXT];
	int rc;

	while (still_runs(seg, peer, now)) {
		rc = ending_look_stranded(seg, now, &stranded);
		if (rc)
			return rc;
		if (tool_out_of_time(t))
			return tool_later(
				"%s is still stopping; 'xseg peer list' shows when it has stopped",
				peer->name);
		ending_look_for_stall(t, seg, stall);
		tool_progress(t, "stopping %s: %s dirty", peer->name,
			      out_size(dirty_bytes_of(seg, peer->index), dirty));
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

static int fail_died(const struct xseg_peer_info *peer)
{
	return tool_fail(TOOL_FAILED,
			 "%s: it died while it was stopping; see its log, and 'xseg peer start %s'",
			 peer->name, peer->name);
}

/* `xseg peer stop` wants it stopped, but there is another incarnation of it: a restart that came at
 * the same time has started that, or the supervisor has after a death. */
static bool runs_though_stopped(struct xseg *seg, const struct xseg_peer_info *old,
	const struct xseg_peer_info *now)
{
	struct stopped s;

	stopped_load(seg, &s);
	return now->generation != old->generation && view_peer_alive(now) &&
	       stack_stopped_has(s.names, STACK_STOPPED_PEER, old->name);
}

int ending_wait_stopped(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer)
{
	struct ending_stall stall = ENDING_STALL_OF(peer);
	struct xseg_peer_info old = *peer, now;
	int rc = wait_ended(t, seg, &old, &now, &stall);

	for (int i = 0; !rc && i < STOP_TIMES && runs_though_stopped(seg, &old, &now); i++) {
		old = now;
		if (!proc_stop_peer(seg, &old))
			rc = wait_ended(t, seg, &old, &now, &stall);
	}
	if (rc || now.state == XSEG_PEER_STOPPED || now.state == XSEG_PEER_FREE)
		return rc;
	if (now.generation != old.generation && !runs_though_stopped(seg, &old, &now))
		return tool_fail(TOOL_REFUSED,
			"%s: another command has started it again meanwhile, as 'xseg peer "
			"restart' does; see 'xseg peer list'",
			peer->name);
	return fail_died(peer);
}

int ending_wait_gone(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer)
{
	uint64_t end = tool_limit(t, KILL_LIMIT_NS);
	struct xseg_peer_info now;

	while (still_runs(seg, peer, &now)) {
		if (tool_interrupted() || tool_now_ns() >= end)
			return tool_later("%s is killed but not gone yet; see process %u",
					  peer->name, peer->pid);
		tool_sleep_ns(LOOK_NS);
	}
	return TOOL_DONE;
}

/* ---- in order ---------------------------------------------------------------------------- */

/* Clients are told only where the wait may be for what they keep. */
static void clients_of_wait(struct xseg *seg, const struct ending_stall *s, char users[USERS_TEXT])
{
	users[0] = '\0';
	if (s->told && !s->dirty)
		volume_users_any(seg, users, USERS_TEXT);
}

static void show_stopping(struct tool *t, struct xseg *seg, const struct ending_stall *s)
{
	char dirty[OUT_TEXT], users[USERS_TEXT];
	uint32_t nr = count_alive(seg);

	clients_of_wait(seg, s, users);
	tool_progress(t, "stopping: %u peer%s left, %s dirty%s%s", nr, out_s(nr),
		      out_size(dirty_bytes_of(seg, XSEG_NONE), dirty),
		      users[0] ? ", these clients may keep lent data:" : "", users);
}

static int still_stopping(const struct tool *t, struct xseg *seg, const struct ending_stall *s)
{
	char users[USERS_TEXT];

	clients_of_wait(seg, s, users);
	return tool_later("the stack of segment %s is still stopping%s%s; see 'xseg status'",
			  t->segment,
			  users[0] ? ", as these clients may keep lent data:" : "", users);
}

/* Leaves those that serve as stores, or will again: a supervisor that stops all starts them until
 * they have synced. */
static void keep_stores(struct xseg *seg, struct view_peers *peers)
{
	uint32_t i, nr = 0;

	for (i = 0; i < peers->nr; i++)
		if (peers->info[i].downstream == XSEG_NONE &&
		    !view_peer_is_client(&peers->info[i]) &&
		    !xseg_peer_is_gone(seg, &peers->info[i]))
			peers->info[nr++] = peers->info[i];
	peers->nr = nr;
}

/* One that is dead afterwards has not. */
static int check_stores(struct xseg *seg, const struct view_peers *stores)
{
	struct xseg_peer_info now;
	uint32_t i;

	for (i = 0; i < stores->nr; i++)
		if (!still_runs(seg, &stores->info[i], &now) && now.state == XSEG_PEER_DEAD)
			return fail_died(&now);
	return TOOL_DONE;
}

/* ---- a stop that is taken back ----------------------------------------------------------- */

static int fail_flush(struct xseg *seg, const struct xseg_peer_info *cache, int error)
{
	uint64_t dirty = dirty_bytes_of(seg, cache->index);
	char size[OUT_TEXT], left[128], command[VIEW_COMMAND_MAX];

	if (dirty)
		snprintf(left, sizeof(left), "%s (%" PRIu64 " bytes) are dirty",
			out_size(dirty, size), dirty);
	else
		snprintf(left, sizeof(left), "its written data is not stable");
	if (error == ENOSPC || error == EDQUOT)
		return tool_fail(TOOL_FAILED,
			"down: %s cannot flush: the store has no space left (%s), and %s; the "
			"stack serves on: make room by 'xseg volume remove VOL' or more space for "
			"the store, then run 'xseg down' again",
			cache->name, strerrorname_np(error), left);
	return tool_fail(TOOL_FAILED,
		"down: %s cannot flush: the store failed with %s (%s), and %s; the stack serves "
		"on: mend the store, of which '%s' and the log say more, then run 'xseg down' "
		"again, or lose data by 'xseg down --force'",
		cache->name, strerror(error), strerrorname_np(error), left,
		view_dirty_command(seg, cache->index, command));
}

int ending_fail_undone(struct tool *t, struct xseg *seg, struct peer_undone undone)
{
	struct xseg_peer_info p;
	char how[VIEW_START_MAX];

	if (undone.error == ECANCELED || !xseg_peer_get_info(seg, undone.peer, &p))
		return tool_fail(TOOL_FAILED,
			"down: the stop of segment %s was taken back by 'xseg down --cancel' or "
			"'xseg up'; the stack serves on",
			t->segment);
	if (undone.error == EPERM)
		return tool_fail(TOOL_FAILED,
			"down: %s is another user's process, %" PRIu32 ", and cannot be asked to "
			"stop; the stack serves on: have its owner do that by 'xseg peer stop %s', "
			"then run 'xseg down' again",
			p.name, p.pid, p.name);
	if (undone.error == EPROTO)
		return tool_fail(TOOL_FAILED,
			"down: the process of %s cannot be found, as the segment is damaged; the "
			"stack serves on: see 'xseg check', then run 'xseg down' again",
			p.name);
	if (undone.error == EHOSTDOWN)
		return tool_fail(TOOL_FAILED,
			"down: a peer needs %s to stop, which is %s; the stack serves on: "
			"%s, then run 'xseg down' again",
			p.name, view_state_name(p.state), view_how_to_start(seg, p.name, how));
	return fail_flush(seg, &p, undone.error);
}

/* Whether it has taken a stop back since `before`, and all serves again. */
/* Waits until the supervisor has left, or takes the stop back. */
static int wait_supervisor(struct tool *t, struct xseg *seg, const struct xseg_peer_info *info)
{
	struct ending_stall stall = ENDING_STALL_OF(NULL);
	uint32_t before = peer_word_undone(info).nr;
	struct xseg_peer_info now;

	while (still_runs(seg, info, &now) || xseg_supervisor_alive(seg)) {
		if (now.state != XSEG_PEER_FREE && peer_word_taken_back(&now, before))
			return ending_fail_undone(t, seg, peer_word_undone(&now));
		if (tool_out_of_time(t))
			return still_stopping(t, seg, &stall);
		ending_look_for_stall(t, seg, &stall);
		show_stopping(t, seg, &stall);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

static bool does_not_serve(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	(void)of;
	return (p->state == XSEG_PEER_OPENING || p->state == XSEG_PEER_DEAD) &&
	       !view_peer_is_client(p);
}

/* A peer that had been stopped before the stop stays so. */
static int check_back(struct tool *t, struct xseg *seg, const char *what)
{
	struct view_peers peers;
	char names[512];
	uint32_t nr;
	int rc = view_peers_need(seg, &peers);

	if (rc)
		return rc;
	nr = view_peer_names(&peers, does_not_serve, NULL, names, sizeof(names));
	view_peers_fini(&peers);
	if (!nr)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"%s: the stop of segment %s is taken back, but these do not serve:%s; see 'xseg "
		"status' and the log",
		what, t->segment, names);
}

int ending_cancel(struct tool *t, struct xseg *seg, const char *what, bool *gone)
{
	struct xseg_peer_info supervisor, now;
	int rc;

	*gone = false;
	if (!view_supervisor(seg, &supervisor) || !peer_word_stopping(&supervisor))
		return tool_fail(TOOL_REFUSED,
			"%s: no supervisor stops the stack of segment %s; see 'xseg status'", what,
			t->segment);
	rc = proc_signal_peer(seg, &supervisor, SUPERVISE_CANCEL_SIGNAL);
	if (rc && rc != -ESRCH)
		return tool_fail_errno(rc, NULL, "ask the owner of its process",
			"the supervisor of segment %s", t->segment);
	while (still_runs(seg, &supervisor, &now) && peer_word_stopping(&now)) {
		if (tool_out_of_time(t))
			return tool_later(
				"%s: the stop of segment %s is not taken back yet; see 'xseg "
				"status'",
				what, t->segment);
		tool_progress(t, "%s: taking the stop back", what);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	*gone = !still_runs(seg, &supervisor, &now);
	return *gone ? TOOL_DONE : check_back(t, seg, what);
}

int ending_stop_supervisor(struct tool *t, struct xseg *seg)
{
	struct view_peers stores = { 0 };
	struct xseg_peer_info info;
	int rc;

	/* It has the lock before it is in the segment, and after it has left. */
	while (!view_supervisor(seg, &info)) {
		if (!xseg_supervisor_alive(seg))
			return TOOL_DONE;
		if (tool_out_of_time(t))
			return still_stopping(t, seg, &ENDING_STALL_OF(NULL));
		tool_sleep_ns(LOOK_NS);
	}
	rc = view_peers_need(seg, &stores);
	if (rc)
		return rc;
	keep_stores(seg, &stores);
	rc = proc_signal_peer(seg, &info, SIGTERM);
	if (rc && rc != -ESRCH)
		rc = tool_fail_errno(rc, NULL, "ask the owner of its process",
				     "the supervisor of segment %s", t->segment);
	else
		rc = wait_supervisor(t, seg, &info);
	/* who could not stop without one says so (E2) */
	if (!rc && !count_alive(seg))
		rc = check_stores(seg, &stores);
	view_peers_fini(&stores);
	return rc;
}

/* ---- without a supervisor ---------------------------------------------------------------- */

/* E1 */
static bool is_going_to_send_to(const struct stack *stack, const struct xseg_peer_info *upper,
	const struct xseg_peer_info *p)
{
	uint32_t at = stack ? stack_find(stack, upper->name) : STACK_NONE;

	return at != STACK_NONE && upper->state == XSEG_PEER_OPENING &&
	       upper->downstream == XSEG_NONE &&
	       !strcmp(stack_downstream(&stack->peers[at]), p->name);
}

static bool has_living_upper(const struct view_peers *peers, const struct stack *stack,
	const struct xseg_peer_info *p)
{
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (view_sends_to(&peers->info[i], p) ||
			is_going_to_send_to(stack, &peers->info[i], p))
			return true;
	return false;
}

/* The next one to be stopped (E1), a copy; false when there is none. */
static bool next_to_stop(struct xseg *seg, const struct ending_stop *how,
	struct xseg_peer_info *next)
{
	const struct xseg_peer_info *p, *any = NULL, *top = NULL;
	struct view_peers peers;
	struct stack *stack;

	if (view_peers_load(seg, &peers))
		return false;
	stack = view_stack(seg);
	for (p = peers.info; p < peers.info + peers.nr; p++) {
		if (!view_peer_alive(p) || view_peer_is_client(p) ||
			(how->spare && how->spare(p, how->arg)))
			continue;
		any = p;
		if (!top && !has_living_upper(&peers, stack, p))
			top = p;
	}
	top = top ? top : any;
	if (top)
		*next = *top;
	stack_destroy(stack);
	view_peers_fini(&peers);
	return top != NULL;
}

/* A peer died while it was stopping. That is no reason not to go on, unless it was a store, which
 * has not synced, or it has data that the store has not got. */
static int after_death(struct tool *t, struct xseg *seg, const struct xseg_peer_info *p)
{
	uint64_t dirty = dirty_bytes_of(seg, p->index);

	if (dirty)
		return refuse_dirty(t, "stopping", p, dirty);
	return p->downstream == XSEG_NONE ? fail_died(p) : TOOL_DONE;
}

/* Until the FLUSH that is out has ended, with progress: *result. */
static int wait_flushed(struct client *c, const struct xseg_peer_info *cache, int64_t *result)
{
	struct ending_stall stall = ENDING_STALL_OF(NULL);
	struct xseg_peer_info now, below;
	struct tool_span stranded = { 0 };

	while (!client_flush_poll(c, LOOK_NS, result)) {
		if (!still_runs(c->seg, cache, &now) && xseg_peer_is_gone(c->seg, &now)) {
			*result = 0;		/* how it ended is seen when it would be stopped */
			break;
		}
		if (tool_span_ns(&stranded, view_stranded(c->seg, cache, &below)) >= STRANDED_NS)
			return fail_stranded(c->seg, cache, &below);
		if (tool_out_of_time(c->t))
			return still_stopping(c->t, c->seg, &stall);
		ending_look_for_stall(c->t, c->seg, &stall);
		show_stopping(c->t, c->seg, &stall);
	}
	tool_progress_end();
	return TOOL_DONE;
}

/* A store may report an old failure once: so often in all. */
#define FLUSH_TRIES 3

static int try_flush(struct client *c, const struct xseg_peer_info *cache, int64_t *result)
{
	int rc = TOOL_DONE, tries;

	for (tries = 0; !rc && tries < FLUSH_TRIES; tries++) {
		if (tries)
			tool_sleep_ns(TOOL_SECOND / 2);
		*result = client_flush_begin(c, cache->index, 0);
		if (!*result)
			rc = wait_flushed(c, cache, result);
		if (rc || *result >= 0 || *result == -EBUSY)
			break;
	}
	return rc;
}

/* A client that finds no place is no reason not to stop: the cache flushes by itself then. */
static int flush_one(struct tool *t, struct xseg *seg, const struct xseg_peer_info *cache,
	struct ending_stop *how)
{
	int64_t result = 0;
	struct client *c;
	int rc;

	tool_mute(true);
	rc = client_open(t, &c);
	tool_mute(false);
	if (rc)
		return TOOL_DONE;
	rc = try_flush(c, cache, &result);
	client_close(c);
	/* another cache has it to itself; what is below is off the path, and it is clean; its end
	 * is seen elsewhere */
	if (rc || result >= 0 || result == -EBUSY || result == -EHOSTDOWN ||
		(result == -ENOTCONN && !dirty_bytes_of(seg, cache->index)))
		return rc;
	how->flush_failed = true;
	return fail_flush(seg, cache, (int)-result);
}

static bool may_flush(struct xseg *seg, const struct xseg_peer_info *p)
{
	struct xseg_peer_info below;

	return p->state == XSEG_PEER_LIVE && !strcmp(p->kind, "cached") &&
	       p->downstream != XSEG_NONE && !peer_word_stopping(p) &&
	       (dirty_bytes_of(seg, p->index) || !view_stranded(seg, p, &below));
}

static bool has_cache_above(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (view_sends_to(&peers->info[i], p) && !strcmp(peers->info[i].kind, "cached"))
			return true;
	return false;
}

int ending_flush(struct tool *t, struct xseg *seg, struct ending_stop *how)
{
	const struct xseg_peer_info *p;
	struct view_peers peers;
	int rc = view_peers_need(seg, &peers);

	if (rc)
		return rc;
	for (p = peers.info; !rc && p < peers.info + peers.nr; p++)
		if (may_flush(seg, p) && !has_cache_above(&peers, p))
			rc = flush_one(t, seg, p, how);
	view_peers_fini(&peers);
	return rc;
}

int ending_stop_peers(struct tool *t, struct xseg *seg, struct ending_stop *how)
{
	struct ending_stall stall = ENDING_STALL_OF(NULL);
	struct xseg_peer_info p, now;
	int rc;

	while (next_to_stop(seg, how, &p)) {
		if (xseg_supervisor_alive(seg))
			return tool_fail(TOOL_REFUSED,
				"segment %s: its stack was started again meanwhile; stop that with "
				"'xseg down'",
				t->segment);
		rc = how->flush && may_flush(seg, &p) ? flush_one(t, seg, &p, how) : TOOL_DONE;
		if (rc)
			return rc;
		rc = proc_stop_peer(seg, &p);
		if (rc && rc != -ESRCH)
			return tool_fail_errno(rc, NULL, "ask the owner of its process", "%s",
					       p.name);
		rc = wait_ended(t, seg, &p, &now, &stall);
		if (now.state == XSEG_PEER_STOPPED && how->nr_stopped < XSEG_MAX_PORTS)
			how->stopped[how->nr_stopped++] = p.index;
		if (!rc && now.state == XSEG_PEER_DEAD)
			rc = after_death(t, seg, &now);
		if (rc)
			return rc;
	}
	return TOOL_DONE;
}

/* ---- by force ---------------------------------------------------------------------------- */

int ending_kill_supervisor(struct tool *t, struct xseg *seg)
{
	struct xseg_peer_info info;
	int rc;

	if (!view_supervisor(seg, &info))
		return TOOL_DONE;
	rc = proc_signal_peer(seg, &info, SIGKILL);
	if (rc && rc != -ESRCH)
		return tool_fail_errno(rc, NULL, "ask the owner of its process",
				       "the supervisor of segment %s", t->segment);
	return ending_wait_gone(t, seg, &info);
}

static bool is_in_segment(struct xseg *seg, uint32_t pid)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &info) && view_peer_alive(&info) && info.pid == pid)
			return true;
	return false;
}

static bool has_ended(uint32_t pid)
{
	return strchr("ZX", proc_state(pid));
}

/* So that it starts no other process. */
static void halt(struct xseg *seg, const struct xseg_peer_info *supervisor)
{
	uint64_t end = tool_now_ns() + TOOL_SECOND;

	if (proc_signal_peer(seg, supervisor, SIGSTOP))
		return;
	while (!strchr("TZX", proc_state(supervisor->pid)) && tool_now_ns() < end)
		tool_sleep_ns(LOOK_NS / 10);
}

int ending_kill_start(struct tool *t, struct xseg *seg)
{
	uint32_t child[STACK_MAX_PEERS + STACK_MAX_EXPORTS], nr = 0, i = 0;
	uint64_t end = tool_now_ns() + ENTER_LIMIT_NS;
	struct xseg_peer_info info;
	int rc;

	if (view_supervisor(seg, &info)) {
		halt(seg, &info);
		nr = proc_children(info.pid, child, sizeof(child) / sizeof(child[0]));
	}
	rc = ending_kill_supervisor(t, seg);
	while (!rc && i < nr && tool_now_ns() < end && !tool_out_of_time(t)) {
		if (has_ended(child[i]) || is_in_segment(seg, child[i]))
			i++;
		else
			tool_sleep_ns(LOOK_NS);
	}
	return rc;
}

int ending_kill_all(struct tool *t, struct xseg *seg)
{
	struct xseg_peer_info info;
	uint32_t i;
	int rc;

	rc = ending_kill_supervisor(t, seg);
	for (i = 0; !rc && i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || !view_peer_alive(&info))
			continue;
		rc = proc_signal_peer(seg, &info, SIGKILL);
		if (rc && rc != -ESRCH)
			return tool_fail_errno(rc, NULL, "ask the owner of its process", "%s",
					       info.name);
		rc = ending_wait_gone(t, seg, &info);
	}
	return rc;
}

/* ---- what forbids it --------------------------------------------------------------------- */

static bool is_living(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	(void)of;
	return view_peer_alive(p);
}

static bool serves_others(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	(void)of;
	return view_peer_alive(p) && !view_peer_is_client(p);
}

/* Refuses while any peer has a process; a client, too, unless those were named. */
static int refuse_while_alive(struct tool *t, struct xseg *seg, bool clients_may)
{
	struct view_peers peers;
	char names[512];
	uint32_t nr;
	int rc = view_peers_need(seg, &peers);

	if (rc)
		return rc;
	nr = view_peer_names(&peers, clients_may ? serves_others : is_living, NULL, names,
		sizeof(names));
	view_peers_fini(&peers);
	if (!nr)
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"destroy %s: peers are alive:%s; stop them with 'xseg down' or 'xseg peer stop', "
		"or add --force",
		t->segment, names);
}

void ending_name_clients(struct tool *t, struct xseg *seg)
{
	char users[512];

	volume_users_of_exports(seg, users, sizeof(users));
	if (users[0])
		tool_note(t, "down: these exports lose their connections:%s", users);
	volume_users_left(seg, users, sizeof(users));
	if (users[0])
		tool_note(t,
			"down: these clients get errors when all has stopped:%s",
			users);
}

int ending_no_dirty(struct tool *t, struct xseg *seg, const char *what)
{
	struct xseg_peer_info info;
	uint64_t dirty;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || view_peer_alive(&info))
			continue;
		dirty = dirty_bytes_of(seg, i);
		if (dirty)
			return refuse_dirty(t, what, &info, dirty);
		/* no other kind has that duty: what its word says was written there by somebody */
		if (stack_kind_is_store(info.kind) && peer_word_unsynced(&info))
			return refuse_unsynced(t, what, &info);
	}
	return TOOL_DONE;
}

int ending_can_flush(struct tool *t, struct xseg *seg, const char *what)
{
	struct xseg_peer_info info, below;
	char size[OUT_TEXT], how[VIEW_START_MAX];
	uint64_t dirty;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || !view_peer_alive(&info))
			continue;
		dirty = dirty_bytes_of(seg, i);
		if (dirty && view_stranded(seg, &info, &below))
			return tool_fail(TOOL_REFUSED,
				"%s %s: %s has %s (%" PRIu64 " bytes) that the store does not "
				"have, and needs %s for that, which is %s; %s; do that first, or "
				"add --force and lose them",
				what, t->segment, info.name, out_size(dirty, size), dirty,
				below.name, view_state_name(below.state),
				view_how_to_start(seg, below.name, how));
	}
	return TOOL_DONE;
}

int ending_may_destroy(struct tool *t, struct xseg *seg, bool clients_may)
{
	int rc;

	if (xseg_supervisor_alive(seg))
		return tool_fail(TOOL_REFUSED,
			"destroy %s: a supervisor runs its stack; stop that with 'xseg down', "
			"which destroys it, too",
			t->segment);
	rc = refuse_while_alive(t, seg, clients_may);
	return rc ? rc : ending_no_dirty(t, seg, "destroy");
}

/* No peer and no supervisor is there. */
static bool none_serves(struct xseg *seg)
{
	return !count_alive(seg) && !xseg_supervisor_alive(seg);
}

static bool is_first_of_its_process(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	const struct xseg_peer_info *other = peers->info;

	while (other < p && !(view_peer_alive(other) && other->member == p->member))
		other++;
	return other == p;
}

/* Of peers, clients and the supervisor, if it is in the segment. */
static uint32_t count_processes(struct xseg *seg)
{
	const struct xseg_peer_info *p;
	struct xseg_peer_info supervisor;
	struct view_peers peers;
	uint32_t nr = 0;

	if (!view_peers_load(seg, &peers))
		for (p = peers.info; p < peers.info + peers.nr; p++)
			nr += view_peer_alive(p) && is_first_of_its_process(&peers, p);
	view_peers_fini(&peers);
	return nr + view_supervisor(seg, &supervisor);
}

uint32_t ending_count_idle(struct xseg *seg)
{
	uint32_t others = xseg_nr_others(seg), known = count_processes(seg);

	return others > known ? others - known : 0;
}

/* A peer's process leaves some time after the peer has stopped. Clients and idle processes are not
 * waited for. */
static bool peers_have_left(struct xseg *seg, uint32_t nr_idle)
{
	return none_serves(seg) && ending_count_idle(seg) <= nr_idle;
}

int ending_remove(struct tool *t, struct xseg *seg, enum ending_remove how, uint32_t nr_idle)
{
	bool clients_may = how == ENDING_REMOVE_UNDER_CLIENTS;
	uint64_t end = tool_now_ns() + LEAVE_LIMIT_NS;
	int rc;

	while ((rc = xseg_remove(seg, how == ENDING_REMOVE_BY_FORCE)) == -EBUSY &&
		!tool_out_of_time(t) && tool_now_ns() < end &&
		!(clients_may && peers_have_left(seg, nr_idle))) {
		tool_progress(t, "waiting for %u processes to leave segment %s",
			xseg_nr_others(seg), t->segment);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	if (rc == -EBUSY && clients_may && none_serves(seg))
		rc = xseg_remove(seg, true);
	if (!rc || rc == -ENOENT)
		return TOOL_DONE;
	if (rc == -EBUSY)
		return tool_fail(TOOL_REFUSED,
			"segment %s is not removed, as it is in use again; see 'xseg status'",
			t->segment);
	return tool_fail_errno(rc, NULL, "see the owner of its file in /dev/shm",
		"segment %s is not removed", t->segment);
}
