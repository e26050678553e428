/* supervise - see supervise.h. */
#include "peers/host/supervise.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/options/args.h"
#include "peers/common/runtime/bus.h"
#include "peers/common/clock/clock.h"
#include "peers/common/log/log.h"
#include "peers/common/runtime/main.h"
#include "peers/common/options/owner.h"
#include "peers/common/options/stack_record.h"
#include "peers/common/say/words.h"
#include "peers/host/ended.h"
#include "peers/host/load.h"
#include "peers/host/pace.h"
#include "peers/host/room.h"
#include "peers/host/stop.h"
#include "peers/host/supervise_inside.h"

#define STARTING_POLL_MS 10 /* between two looks while something is to be started or stopped */
#define WATCH_POLL_MS	100			/* while something runs that is not our child */
#define LOCKS_MS	500		/* V10: between two looks at the segment's locks */
#define HELD_MS		100		/* the same while one is held */

/* ---- starting ---------------------------------------------------------------------------- */

/* A group that died is started again without those of its peers that had been stopped before (V15),
 * or that somebody else has started: of one that is stopped as its process could not begin nobody
 * has asked for that. While all is being stopped it is started with those that are needed only
 * (V4). */
static bool belongs_to_start(struct supervisor *s, const struct unit *u, uint32_t peer)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state = units_peer_state(&s->units, peer, &info);

	if (is_stopping(s))
		return units_needs(&s->units, peer);
	if (held_peer(s, peer))
		return false;
	if (state == XSEG_PEER_STOPPED)
		return !u->started || !peer_word_stopping(&info) ||
		       (u->returns && stop_was_asked(s, &info));
	return !xseg_peer_is_up(state);
}

static void add_names(struct supervisor *s, const struct unit *u, struct args *a)
{
	for (uint32_t i = 0; i < u->nr; i++)
		if (belongs_to_start(s, u, u->peer[i]))
			args_add(a, "%s", s->units.stack->peers[u->peer[i]].name);
}

static void build_args(struct supervisor *s, const struct unit *u, struct args *a)
{
	a->nr = 0;
	a->failed = false;
	args_add(a, "%s/%s", s->directory,
		u->nr > 1 ? "xseg-host" : stack_program(s->units.stack->peers[u->peer[0]].kind));
	args_add(a, "--segment=%s", s->segment);
	if (u->nr > 1)
		add_names(s, u, a);
	else
		args_add_peer(a, s->units.seg, s->units.stack,
			&s->units.stack->peers[u->peer[0]]);
}

/* In a session of its own, with our signals blocked: it takes them when it is ready for them. */
static int spawn(const struct supervisor *s, char **argv, pid_t *pid)
{
	posix_spawnattr_t attr;
	sigset_t defaults;
	int rc;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGCHLD);
	rc = posix_spawnattr_init(&attr);
	if (rc)
		return rc;
	posix_spawnattr_setsigmask(&attr, &s->signals);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(pid, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	return rc;
}

/* V16. */
#define FAILING_BACKOFF_MS (4 * PACE_MIN_MS)

static void start_again_later(struct unit *u, uint64_t now_ms)
{
	u->backoff_ms = pace_next(u->backoff_ms, now_ms - u->since_ms);
	u->failing |= !u->served || u->backoff_ms >= FAILING_BACKOFF_MS;
	unit_set(u, UNIT_WAITING);
	u->at_ms = now_ms + u->backoff_ms;
}

/* V13. */
static void look_at_stack(struct supervisor *s)
{
	struct stack *now = load_again(s->units.seg);

	if (now && units_take_options(&s->units, now))
		now = NULL;
	stack_destroy(now);
}

static void note_generations(struct supervisor *s, const struct unit *u)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < u->nr; i++)
		if (units_peer_state(&s->units, u->peer[i], &info) != XSEG_PEER_FREE)
			s->generation_before[info.index] = info.generation;
}

static void start_unit(struct supervisor *s, struct unit *u, uint64_t now_ms)
{
	struct args a;
	int rc = ENOMEM;

	look_at_stack(s);
	held_look(s);
	if (!is_stopping(s) && held_unit(s, u)) {
		held_leave(s, u);
		return;
	}
	build_args(s, u, &a);
	note_generations(s, u);
	if (!a.failed)
		rc = spawn(s, a.arg, &u->child);
	u->since_ms = now_ms;
	u->served = false;
	u->started = true;
	u->stop_restarts += is_stopping(s);
	if (rc) {
		u->child = 0;
		start_again_later(u, now_ms);
		stop_note_death(s);
		log_error("%s: cannot start %s (%s): %s; trying again", me, unit_name(&s->units, u),
			  a.nr ? a.arg[0] : "", strerror(rc));
	} else {
		unit_set(u, UNIT_RUNNING);
		log_info("%s: started %s (pid %d)", me, unit_name(&s->units, u), (int)u->child);
	}
	args_free(&a);
}

/* ---- ends -------------------------------------------------------------------------------- */

/* Once: what it tries in vain from then on the log says anyway. */
static void tell_removed(struct supervisor *s)
{
	struct xseg *seg;
	int rc;

	if (s->told_removed)
		return;
	rc = owner_attach(s->segment, XSEG_ATTACH_OBSERVER, &seg, NULL);
	if (rc == 0)
		xseg_detach(seg);
	if (rc != -ENOENT)
		return;
	s->told_removed = true;
	log_error(
		"%s: the segment's file was removed from /dev/shm: nothing can be started again; "
		"'kill %d' stops all peers in order",
		me, (int)getpid());
}

static void unit_died(struct supervisor *s, struct unit *u, const char *how, uint64_t now_ms)
{
	if (u->return_once) {
		u->return_once = false;
		u->at_ms = now_ms;
		unit_set(u, UNIT_WAITING);
		log_info("%s: the process of %s %s; starting it again", me,
			unit_name(&s->units, u), how);
		return;
	}
	stop_note_death(s);
	look_at_stack(s);
	if (!u->restart) {
		unit_set(u, UNIT_FAILED);
		log_warn("%s: the process of %s %s; it is not started again (restart = no)", me,
			 unit_name(&s->units, u), how);
		return;
	}
	start_again_later(u, now_ms);
	if (is_stopping(s))
		log_warn("%s: the process of %s %s while all is being stopped", me,
			 unit_name(&s->units, u), how);
	else
		log_warn("%s: the process of %s %s; starting it again in %u ms", me,
			 unit_name(&s->units, u), how, u->backoff_ms);
	tell_removed(s);
}

/* Of those that have stopped while all is being stopped, units_needs() says which come back
 * (V8). */
static void unit_stopped(struct supervisor *s, struct unit *u, uint64_t now_ms)
{
	bool may_return = u->return_once || (is_stopping(s) && u->restart);

	log_info("%s: %s stopped%s", me, unit_name(&s->units, u),
		u->return_once ? ", as it was asked to before; starting it" : "");
	unit_set(u, may_return ? UNIT_WAITING : UNIT_STOPPED);
	u->failing = u->return_once = false;
	u->stopped_ms = now_ms;
}

static void child_ended(struct supervisor *s, struct unit *u, int status, uint64_t now_ms)
{
	char how[ENDED_HOW_MAX];

	u->child = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == MAIN_DONE) {
		unit_stopped(s, u, now_ms);
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == MAIN_USAGE) {
		unit_set(u, UNIT_FAILED);
		stop_note_death(s);
		log_error("%s: %s cannot be started with these options; correct the stack file", me,
			  unit_name(&s->units, u));
		return;
	}
	ended_how(&s->oom_kills, status, how);
	unit_died(s, u, how, now_ms);
}

static void reap(struct supervisor *s)
{
	uint64_t now_ms = clock_ms();
	int status;
	uint32_t i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (exports_ended(s, pid, status, now_ms))
			continue;
		for (i = 0; i < s->units.nr; i++)
			if (s->units.unit[i].child == pid)
				child_ended(s, &s->units.unit[i], status, now_ms);
	}
}

/* ---- one step of a unit ------------------------------------------------------------------ */

static void watch_stranger(struct supervisor *s, struct unit *u)
{
	unit_set(u, UNIT_RUNNING);
	u->served = true;
	u->failing = false;
	u->started = !u->return_once;
	u->since_ms = clock_ms();
	log_info("%s: %s runs already; watching it", me, unit_name(&s->units, u));
}

static bool is_needed(struct supervisor *s, const struct unit *u)
{
	uint32_t i;

	for (i = 0; i < u->nr; i++)
		if (units_needs(&s->units, u->peer[i]))
			return true;
	return false;
}

static bool may_start(struct supervisor *s, const struct unit *u, uint64_t now_ms)
{
	if (now_ms < u->at_ms)
		return false;
	if (is_stopping(s))
		return is_needed(s, u);
	if (replace_holds(s, u))
		return false;
	return u->started || unit_below_serves(&s->units, u);
}

/* Part of it turned out to be in another process: that is a unit by itself, which gets its own
 * steps. */
static void split_unit(struct supervisor *s, struct unit *u)
{
	const struct unit *elsewhere;

	if (replace_holds(s, u))		/* that is where it comes together */
		return;
	elsewhere = units_split(&s->units, u);

	if (elsewhere && !is_stopping(s))
		log_info("%s: %s: in a process apart from the rest of the group", me,
			 unit_name(&s->units, elsewhere));
}

static bool is_live(enum xseg_peer_state state)
{
	return state == XSEG_PEER_LIVE;
}

/* V15: `xseg peer stop` may have come when the process had been made and was not in the segment
 * yet. Then it found nothing to stop. A later one finds the peer itself. All peers of a process are
 * in the segment before one of them serves. */
static void look_at_child(struct supervisor *s, struct unit *u)
{
	struct xseg_peer_info info;

	if (!u->child || u->served || is_stopping(s) || !unit_has(&s->units, u, is_live))
		return;
	u->served = true;
	held_look(s);
	for (uint32_t i = 0; i < u->nr; i++)
		if (held_named(s, u->peer[i]) &&
			xseg_peer_is_up(units_peer_state(&s->units, u->peer[i], &info)))
			stop_ask(s, &info);
}

static void step_unit(struct supervisor *s, struct unit *u, uint64_t now_ms)
{
	bool alive = !u->child && unit_has(&s->units, u, xseg_peer_is_up);

	assert(!u->child || u->state == UNIT_RUNNING);		/* U2 */
	if (u->state != UNIT_RUNNING) {
		if (alive)
			watch_stranger(s, u);
		else if (u->state == UNIT_WAITING && may_start(s, u, now_ms))
			start_unit(s, u, now_ms);
		else if (u->state == UNIT_STOPPED && unit_has(&s->units, u, unit_peer_is_dead))
			/* somebody started it by hand, and it died before we saw it alive */
			unit_died(s, u, "died", now_ms);
		return;
	}
	look_at_child(s, u);
	if (u->child || alive)
		return;
	if (unit_has(&s->units, u, unit_peer_is_dead)) {
		unit_died(s, u, "died", now_ms);
		return;
	}
	unit_stopped(s, u, now_ms);
}

/* ---- who is not waited for --------------------------------------------------------------- */

static bool stays_dead(struct supervisor *s, const char *name)
{
	uint32_t peer = stack_find(s->units.stack, name);

	return peer == STACK_NONE || units_of(&s->units, peer)->state == UNIT_FAILED;
}

/* V6. */
static void tell_left(struct supervisor *s)
{
	uint64_t left[XSEG_SUPERVISOR_NR_LEFT] = { 0 };
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(s->units.seg); i++)
		if (xseg_peer_get_info(s->units.seg, i, &info) && unit_peer_is_dead(info.state) &&
			stays_dead(s, info.name))
			left[i / 64] |= UINT64_C(1) << i % 64;
	for (i = 0; i < XSEG_SUPERVISOR_NR_LEFT; i++)
		xseg_peer_user_set(s->self, XSEG_SUPERVISOR_WORD_LEFT + i, left[i]);
}

_Static_assert(STACK_MAX_PEERS <= 64, "SUPERVISOR_WORD_FAILING has a bit for each peer");

/* V16. */
static void tell_failing(struct supervisor *s, uint64_t now_ms)
{
	uint64_t failing = 0;

	for (struct unit *u = s->units.unit; u < s->units.unit + s->units.nr; u++) {
		if (u->state == UNIT_RUNNING && u->served && now_ms - u->since_ms >= PACE_LIVED_MS)
			u->failing = false;
		if (!u->failing || (is_stopping(s) && !is_needed(s, u)) ||
			(u->state != UNIT_RUNNING && u->state != UNIT_WAITING))
			continue;
		for (uint32_t i = 0; i < u->nr; i++)
			failing |= UINT64_C(1) << u->peer[i];
	}
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_FAILING, failing);
}

/* ---- locks ------------------------------------------------------------------------------- */

static bool has_holder(const uint32_t *holder, uint32_t nr, uint32_t pid)
{
	while (nr > 0)
		if (holder[--nr] == pid)
			return true;
	return false;
}

/* V10. */
static void look_at_locks(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED];
	uint32_t holder[XSEG_LOCKS_WATCHED], nr_holders = 0, nr, i;
	char text[XSEG_LOCK_TEXT];

	if (now_ms - s->locks_ms < (s->locks.nr ? HELD_MS : LOCKS_MS))
		return;
	s->locks_ms = now_ms;
	nr = xseg_lock_look(s->units.seg, &s->locks, info);
	for (i = 0; i < nr; i++) {
		if (!xseg_lock_is_long(&info[i]) || has_holder(holder, nr_holders, info[i].pid))
			continue;
		holder[nr_holders++] = info[i].pid;
		if (!has_holder(s->holder, s->nr_holders, info[i].pid))
			log_warn("%s: %s", me, xseg_lock_text(&info[i], text));
	}
	for (i = 0; i < s->nr_holders; i++)
		if (!has_holder(holder, nr_holders, s->holder[i]))
			log_info("%s: process %" PRIu32 " has released the segment's locks", me,
				 s->holder[i]);
	memcpy(s->holder, holder, sizeof(holder));
	s->nr_holders = nr_holders;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static int poll_ms(const struct supervisor *s)
{
	int ms = s->locks.nr ? HELD_MS : LOCKS_MS;
	uint32_t i;

	if (stop_is_on(s) || s->replace.nr)
		return STARTING_POLL_MS;
	for (i = 0; i < s->units.nr; i++) {
		if (s->units.unit[i].state == UNIT_WAITING)
			return STARTING_POLL_MS;
		if (!s->units.unit[i].child || !s->units.unit[i].served)
			ms = WATCH_POLL_MS;
	}
	return exports_poll_ms(s, ms);
}

/* Another order, or a death, has made the peer begin anew since this order was given. The process
 * for that may not be in the segment yet. generation 0: the command does not say which one it
 * means. */
static bool has_begun_anew(struct supervisor *s, uint32_t peer, uint32_t generation)
{
	const struct unit *u = units_of(&s->units, peer);
	struct xseg_peer_info info;

	if (!generation || units_peer_state(&s->units, peer, &info) == XSEG_PEER_FREE)
		return false;
	return info.generation != generation ||
	       (u->child && s->generation_before[info.index] == generation);
}

/* V12. Who has asked is told by the peer, which serves again or does not. */
static void prepare_restart(struct supervisor *s, uint32_t peer, uint32_t generation)
{
	struct unit *u;

	if (peer >= s->units.stack->nr_peers || stop_is_on(s))
		return;
	if (has_begun_anew(s, peer, generation)) {
		log_info("%s: %s has been started since a restart of it was asked for", me,
			s->units.stack->peers[peer].name);
		return;
	}
	u = &s->units.unit[units_of(&s->units, peer) - s->units.unit];
	/* somebody has started it by hand, and no step has seen that */
	if (u->state == UNIT_STOPPED && unit_has(&s->units, u, xseg_peer_is_up))
		watch_stranger(s, u);
	if (u->state == UNIT_WAITING)
		return;
	log_info("%s: %s is restarted, as asked", me, unit_name(&s->units, u));
	if (u->state == UNIT_RUNNING) {
		u->return_once = true;
	} else {				/* it has stopped already, or has failed */
		unit_set(u, UNIT_WAITING);
		u->at_ms = 0;
	}
	u->started = false;		/* so that all of a group are begun */
}

static void take_order(struct supervisor *s, uint64_t value)
{
	enum export_order order = (uint32_t)value >> 16;

	if (order)
		exports_command(s, order, value & 0xffff);
	else
		prepare_restart(s, value & 0xffff, value >> 32);
}

/* False: it is to leave, with peers that have not stopped. */
static bool take_signal(struct supervisor *s, const struct signalfd_siginfo *info)
{
	bool stops = s->phase == STOP_FLUSHING || s->phase == STOP_STOPPING;
	int signo = (int)info->ssi_signo;

	if (signo == SIGCHLD) {
		reap(s);
	} else if (signo == SUPERVISE_RESTART_SIGNAL) {
		take_order(s, info->ssi_ptr);
	} else if (signo == SUPERVISE_CANCEL_SIGNAL && stops) {
		log_info("%s: asked to take the stop back", me);
		stop_take_back(s, ECANCELED, 0);
	} else if (signo != SIGTERM && signo != SIGINT) {
		return true;
	} else if (!stops) {
		stop_begin(s, clock_ms());
	} else if (signo == SIGTERM) {
		log_info("%s: asked to stop once more; it is stopping already", me);
	} else {
		log_warn("%s: left; peers that have not stopped run on without a supervisor, see "
			 "'xseg status'",
			me);
		return false;
	}
	return true;
}

static int run(struct supervisor *s, int signals)
{
	struct pollfd fd = { .fd = signals, .events = POLLIN };
	struct signalfd_siginfo info;
	enum stop_end end;
	uint32_t i;

	for (;;) {
		if (!xseg_is_whole(s->units.seg))
			bus_leave();
		for (i = 0; i < s->units.nr; i++) {
			split_unit(s, &s->units.unit[i]);
			step_unit(s, &s->units.unit[i], clock_ms());
		}
		replace_step(s);
		exports_step(s, clock_ms());
		tell_left(s);
		tell_failing(s, clock_ms());
		look_at_locks(s, clock_ms());
		end = stop_step(s, clock_ms());
		if (end == STOP_GAVE_UP)
			return MAIN_FAILED;
		if (end == STOP_ENDED)
			break;
		if (poll(&fd, 1, poll_ms(s)) > 0 &&
			read(signals, &info, sizeof(info)) == sizeof(info) &&
			!take_signal(s, &info))
			return MAIN_LEFT;
	}
	log_info("%s: all peers have stopped", me);
	return MAIN_DONE;
}

/* ---- setting up -------------------------------------------------------------------------- */

static int find_directory(struct supervisor *s)
{
	ssize_t len = readlink("/proc/self/exe", s->directory, sizeof(s->directory) - 1);
	char *slash;

	if (len < 0) {
		log_error("%s: cannot find its own program: %s", me, strerror(errno));
		return MAIN_FAILED;
	}
	s->directory[len] = '\0';
	slash = strrchr(s->directory, '/');
	*slash = '\0';
	return MAIN_DONE;
}

/* Becomes the one supervisor of the segment (V1). What its predecessor said of the dead holds no
 * more (V6, V7). */
static int enlist(struct supervisor *s)
{
	struct xseg_peer_params params = { .name = me, .kind = me, .nr_ports = 1 };
	struct xseg_error err = { "" };
	uint32_t i;

	if (xseg_supervisor_lock(s->units.seg)) {
		log_error("%s: segment '%s' has a supervisor already; see 'xseg status'", me,
			  s->segment);
		return MAIN_REFUSED;
	}
	if (xseg_peer_open(s->units.seg, &params, &s->self, &err)) {
		log_error("%s: %s", me, err.text);
		return MAIN_FAILED;
	}
	peer_word_set_stopping(s->self, false);
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_FAILING, 0);
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_UNDONE, 0);
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_EXPORTS, 0);
	for (i = 0; i < XSEG_SUPERVISOR_NR_LEFT; i++)
		xseg_peer_user_set(s->self, XSEG_SUPERVISOR_WORD_LEFT + i, 0);
	xseg_peer_serve(s->self);
	return MAIN_DONE;
}

/* Its name goes with it; if something still refers to it, it stays listed as stopped. */
static void delist(struct supervisor *s)
{
	uint32_t index = xseg_peer_index(s->self);

	stop_flush_close(&s->flush);
	xseg_peer_close(s->self, XSEG_CLOSE_FREE_ARENA);
	if (xseg_peer_forget(s->units.seg, index))
		log_warn("%s: stays listed as stopped", me);
}

/* What the segment has of the same text stays: the path of its file, and who is to be restarted.
 * Which exports are stopped stays in any case (H5). */
static int keep_text(struct supervisor *s, const char *text)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	int rc = record ? 0 : -ENOMEM;

	if (record &&
		(!stack_record_get(s->units.seg, record) || strcmp(record->text, text) != 0)) {
		snprintf(record->text, sizeof(record->text), "%s", text);
		*record->path = *record->pending = '\0';
		rc = stack_record_set(s->units.seg, record);
	}
	free(record);
	return rc;
}

/* The stack that is in the segment, or that of the text, which is there from then on. One that is
 * wrong, or has no room, does not take the other's place (V11). */
static int take_stack(struct supervisor *s, const char *text)
{
	struct xseg_error err = { "" };
	int rc;

	if (!text)
		return load_segment(me, s->units.seg, &s->units.stack);
	rc = load_parse(me, "the stack file", text, &s->units.stack);
	if (rc)
		return rc;
	if (room_check(s->units.seg, s->units.stack, &err)) {
		log_error("%s: %s", me, err.text);
		return MAIN_FAILED;
	}
	rc = keep_text(s, text);
	if (!rc)
		return MAIN_DONE;
	log_error("%s: cannot keep the stack file in segment '%s': %s", me, s->segment,
		strerror(-rc));
	return MAIN_FAILED;
}

int supervise(const char *segment, const char *text, int begun)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	int signals = -1, rc = MAIN_FAILED;

	if (!s) {
		log_error("%s: out of memory", me);
		return rc;
	}
	s->segment = segment;
	s->oom_kills = ended_oom_kills();
	main_block_signals(&s->signals);
	sigaddset(&s->signals, SIGCHLD);
	sigaddset(&s->signals, SUPERVISE_CANCEL_SIGNAL);
	sigaddset(&s->signals, SUPERVISE_RESTART_SIGNAL);
	sigprocmask(SIG_BLOCK, &s->signals, NULL);
	signals = signalfd(-1, &s->signals, SFD_CLOEXEC);
	sigdelset(&s->signals, SIGCHLD);
	sigdelset(&s->signals, SUPERVISE_CANCEL_SIGNAL);
	sigdelset(&s->signals, SUPERVISE_RESTART_SIGNAL);
	if (signals < 0 || find_directory(s))
		goto out_free;
	rc = main_attach(me, segment, 0, &s->units.seg);
	if (rc)
		goto out_free;
	rc = enlist(s);
	if (!rc)
		rc = take_stack(s, text);
	if (rc)
		goto out_detach;
	units_make(&s->units);
	held_make(s);
	replace_make(s);
	exports_make(s, clock_ms());
	if (begun >= 0) {
		/* nobody there: it has left */
		(void)!write(begun, "", 1);
		close(begun);
	}
	rc = run(s, signals);
out_detach:
	if (s->self)
		delist(s);
	xseg_detach(s->units.seg);
out_free:
	stack_destroy(s->units.stack);
	if (signals >= 0)
		close(signals);
	free(s);
	return rc;
}
