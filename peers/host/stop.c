/* stop - see stop.h. */
#include "peers/host/stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peers/common/clock/clock.h"
#include "peers/common/say/dirty.h"
#include "peers/common/log/log.h"
#include "peers/common/runtime/main.h"
#include "peers/common/say/words.h"
#include "peers/host/supervise_inside.h"
#include "xtypes/xstate.h"

#define STRANDED_MS 5000 /* V5 */
#define TOGETHER_MS 5000 /* V8 */

#define TO(phase) (1u << STOP_##phase)

static const struct xstates phases = {
	.what = "stop of the stack",
	XSTATE(STOP_, NONE, TO(FLUSHING)),
	XSTATE(STOP_, FLUSHING, TO(STOPPING) | TO(RETURNING)),
	XSTATE(STOP_, STOPPING, TO(RETURNING)),
	XSTATE(STOP_, RETURNING, TO(NONE) | TO(FLUSHING)),
};

static void phase_set(struct supervisor *s, enum stop_phase phase)
{
	xstate_check(&phases, s->phase, phase);
	s->phase = phase;
}

bool stop_is_on(const struct supervisor *s)
{
	return s->phase != STOP_NONE;
}

bool stop_was_asked(const struct supervisor *s, const struct xseg_peer_info *info)
{
	return s->asked_generation[info->index] == info->generation;
}

/* ---- signals ----------------------------------------------------------------------------- */

/* Once an incarnation: of one that we may not ask, or that cannot be found. Nobody may ever end it,
 * so the stop is taken back. */
static void tell_unasked(struct supervisor *s, const struct xseg_peer_info *info, int err)
{
	if (!err || err == ESRCH || s->foreign_generation[info->index] == info->generation)
		return;
	s->foreign_generation[info->index] = info->generation;
	if (err == EPROTO)
		log_error(
			"%s: %s is not process %u, although the segment says so, and its process "
			"cannot be found; it is not asked to stop: see 'xseg check'",
			me, info->name, info->pid);
	else
		log_warn(
			"%s: %s is process %u of another user; only that user can stop it, by "
			"'xseg peer stop %s'",
			me, info->name, info->pid, info->name);
	stop_take_back(s, err == EPROTO ? EPROTO : EPERM, info->index);
}

/* Where the segment has a wrong pid, the kernel says which process it is. */
static int pidfd_of(struct supervisor *s, const struct xseg_peer_info *info)
{
	struct xseg_peer_info proved = *info;
	int fd = xseg_peer_pidfd(s->units.seg, info);

	if (fd != -EPROTO)
		return fd;
	proved.pid = xseg_peer_pid_find(s->units.seg, info);
	return proved.pid ? xseg_peer_pidfd(s->units.seg, &proved) : fd;
}

/* A signal to the process that serves the peer at this moment (V2). 0 or an errno. */
static int signal_peer(struct supervisor *s, const struct xseg_peer_info *info, int sig)
{
	siginfo_t sent = { .si_signo = sig, .si_code = SI_QUEUE };
	int fd = pidfd_of(s, info), err = 0;

	if (fd < 0)
		return -fd;
	sent.si_pid = getpid();
	sent.si_uid = getuid();
	sent.si_value.sival_int = (int)info->index;
	if (syscall(SYS_pidfd_send_signal, fd, sig, &sent, 0))
		err = errno;
	close(fd);
	return err;
}

void stop_ask(struct supervisor *s, const struct xseg_peer_info *info)
{
	int err;

	if (stop_was_asked(s, info))
		return;
	err = signal_peer(s, info, MAIN_STOP_SIGNAL);
	if (err) {
		tell_unasked(s, info, err);
		return;
	}
	s->asked_generation[info->index] = info->generation;
	log_info("%s: stopping %s", me, info->name);
}

/* ---- flushing ---------------------------------------------------------------------------- */

/* STOP_FLUSH_DONE, STOP_FLUSH_WAITS or an error. A clean cache whose store is gone is asked to stop
 * without: it knows whether the store has made its data stable. */
static int flush_cache(struct supervisor *s, const struct xseg_peer_info *cache, uint64_t now_ms)
{
	struct xseg_peer_info lost;

	if (units_stands_on_lost(&s->units, cache, &lost) &&
		!dirty_bytes_of(s->units.seg, cache->index))
		return STOP_FLUSH_DONE;
	return stop_flush_run(&s->flush, cache, now_ms);
}

static void fail_flush(struct supervisor *s, const struct xseg_peer_info *cache, int rc)
{
	log_error("%s: cannot stop all: the flush of %s failed: %s; the stop is taken back", me,
		cache->name, strerror(-rc));
	stop_take_back(s, -rc, cache->index);
}

static bool is_cache(const struct xseg_peer_info *p)
{
	return xseg_peer_is_up(p->state) && !strcmp(p->kind, "cached");
}

/* A FLUSH of that one goes on to this one. */
static bool has_cache_above(struct supervisor *s, uint32_t lower)
{
	struct xseg_peer_info p;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(s->units.seg); i++)
		if (xseg_peer_get_info(s->units.seg, i, &p) && is_cache(&p) &&
			p.downstream == lower)
			return true;
	return false;
}

/* V5, while all serves. */
static bool look_for_lost(struct supervisor *s, const struct xseg_peer_info *cache,
	uint64_t now_ms)
{
	struct xseg_peer_info lost;

	if (!units_stands_on_lost(&s->units, cache, &lost)) {
		s->stranded_ms = 0;
		return false;
	}
	if (!s->stranded_ms)
		s->stranded_ms = now_ms;
	if (now_ms - s->stranded_ms < STRANDED_MS)
		return false;
	log_error("%s: cannot stop all: %s needs %s, which is not started again; the stop is taken "
		  "back",
		me, cache->name, lost.name);
	stop_take_back(s, EHOSTDOWN, lost.index);
	return true;
}

/* True when all caches have flushed. */
static bool all_flushed(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_peer_info p;
	uint32_t i;
	int rc;

	for (i = 0; i < xseg_nr_peers(s->units.seg); i++) {
		if (!xseg_peer_get_info(s->units.seg, i, &p) || !is_cache(&p) ||
			has_cache_above(s, i))
			continue;
		rc = flush_cache(s, &p, now_ms);
		if (rc == STOP_FLUSH_DONE)
			continue;
		if (rc < 0)
			fail_flush(s, &p, rc);
		else
			look_for_lost(s, &p, now_ms);
		return false;
	}
	return true;
}

/* V8: somebody else has peers stop, or just had. */
static bool others_stop(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_peer_info p;
	const struct unit *u;
	uint32_t i;

	for (u = s->units.unit; u < s->units.unit + s->units.nr; u++)
		if (u->stopped_ms && now_ms - u->stopped_ms < TOGETHER_MS)
			return true;
	for (i = 0; i < s->units.stack->nr_peers; i++)
		if (xseg_peer_is_up(units_peer_state(&s->units, i, &p)) && peer_word_stopping(&p))
			return true;
	return false;
}

/* ---- stopping ---------------------------------------------------------------------------- */

/* A peer that is alive and sends to it: as routes are now, since a cache may have been plugged or
 * unplugged, and whether the stack has it or not. */
static bool living_upper(struct supervisor *s, uint32_t lower, struct xseg_peer_info *upper)
{
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(s->units.seg); i++)
		if (xseg_peer_get_info(s->units.seg, i, upper) && xseg_peer_is_up(upper->state) &&
			upper->downstream == lower)
			return true;
	return false;
}

/* Whether a peer that is alive stands on it. The topmost is asked to stop here where nobody else
 * sees to it: one that was started by hand may have what it has to write below. */
static bool has_living_upper(struct supervisor *s, const struct xseg_peer_info *lower)
{
	struct xseg_peer_info top = *lower, upper;
	uint32_t hops;

	for (hops = 0; hops < XSEG_MAX_PORTS && living_upper(s, top.index, &upper); hops++)
		top = upper;
	if (hops && stack_find(s->units.stack, top.name) == STACK_NONE)
		stop_ask(s, &top);
	return hops > 0;
}

/* Has the topmost one stop, when it has flushed (S1). */
static void stop_top(struct supervisor *s, uint32_t peer, const struct xseg_peer_info *info,
	uint64_t now_ms)
{
	int rc;

	if (units_must_serve(&s->units, peer))
		return;
	rc = stop_was_asked(s, info) ? STOP_FLUSH_DONE : flush_cache(s, info, now_ms);
	if (rc < 0)
		fail_flush(s, info, rc);
	else if (rc == STOP_FLUSH_DONE)
		stop_ask(s, info);
}

/* Sees to the topmost peer that has not stopped; true when there is none. */
static bool stop_next(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state;
	const struct unit *u;
	uint32_t i = s->units.stack->nr_peers, peer;
	bool any = false;

	while (i-- > 0) {
		peer = s->units.order[i];
		u = units_of(&s->units, peer);
		state = units_peer_state(&s->units, peer, &info);
		if (xseg_peer_is_up(state)) {
			any = true;
			if (has_living_upper(s, &info))
				continue;
			stop_top(s, peer, &info, now_ms);
			return false;
		}
		if (u->child && state != XSEG_PEER_STOPPED)
			return false; /* on its way up, or dead and not reaped yet */
		if (units_needs(&s->units, peer))
			return false; /* started again, to leave in order */
	}
	for (u = s->units.unit; u < s->units.unit + s->units.nr; u++)
		if (u->child)
			return false;
	return !any;
}

/* True: a living peer has stood on one that will not come back for a while. */
static bool is_stranded(struct supervisor *s, struct xseg_peer_info *peer,
			struct xseg_peer_info *lost, uint64_t now_ms)
{
	if (!units_stranded(&s->units, peer, lost)) {
		s->stranded_ms = 0;
		return false;
	}
	if (!s->stranded_ms)
		s->stranded_ms = now_ms;
	return now_ms - s->stranded_ms >= STRANDED_MS;
}

/* V5: true when it is time to leave. */
static bool give_up(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_peer_info peer, lost;

	if (!is_stranded(s, &peer, &lost, now_ms))
		return false;
	log_error(
		"%s: %s cannot stop without %s, which is not started again; the supervisor leaves: "
		"start that peer, then run 'xseg down' once more",
		me, peer.name, lost.name);
	return true;
}

static void report_dead(struct supervisor *s)
{
	struct xseg_peer_info info;
	const char *name;
	uint32_t i;

	for (i = 0; i < s->units.stack->nr_peers; i++) {
		name = s->units.stack->peers[i].name;
		if (units_peer_state(&s->units, i, &info) != XSEG_PEER_DEAD)
			continue;
		if (units_holds_data(&s->units, i))
			log_warn(
				"%s: %s is dead and could not be started to stop in order; its "
				"data stays in the segment",
				me, name);
		else
			log_info("%s: %s is dead and had nothing to lose: not started again", me,
				name);
	}
}

/* From now on it stops what serves. */
static void begin_stopping(struct supervisor *s, uint64_t now_ms)
{
	struct unit *u;

	phase_set(s, STOP_STOPPING);
	s->stranded_ms = 0;
	stop_flush_forget(&s->flush);
	for (u = s->units.unit; u < s->units.unit + s->units.nr; u++) /* V8 */
		if (u->state == UNIT_STOPPED && u->restart && u->stopped_ms &&
			now_ms - u->stopped_ms < TOGETHER_MS)
			unit_set(u, UNIT_WAITING);
	log_info("%s: stopping all peers, top down", me);
}

void stop_begin(struct supervisor *s, uint64_t now_ms)
{
	struct unit *u;

	if (stop_flush_open(&s->flush, s->units.seg))
		log_warn("%s: no place for a client in the segment: caches flush only when they "
			 "stop; end other clients before a stop",
			me);
	for (u = s->units.unit; u < s->units.unit + s->units.nr; u++) {
		u->stop_restarts = 0;
		u->returns = false;
	}
	memset(s->foreign_generation, 0, sizeof(s->foreign_generation));
	s->stranded_ms = 0;
	peer_word_set_stopping(s->self, true);
	phase_set(s, STOP_FLUSHING);
	if (others_stop(s, now_ms))
		begin_stopping(s, now_ms);
	else
		log_info("%s: stopping all peers: caches flush first, while all serve", me);
}

/* ---- taking it back ---------------------------------------------------------------------- */

static bool any_was_asked(struct supervisor *s, const struct unit *u)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < u->nr; i++)
		if (units_peer_state(&s->units, u->peer[i], &info) != XSEG_PEER_FREE &&
			stop_was_asked(s, &info))
			return true;
	return false;
}

static void kill_unit(struct supervisor *s, const struct unit *u)
{
	struct xseg_peer_info info;
	uint32_t i;

	if (u->child) {
		(void)kill(u->child, SIGKILL); /* not reaped, so the pid is its own */
		return;
	}
	for (i = 0; i < u->nr; i++)
		if (xseg_peer_is_up(units_peer_state(&s->units, u->peer[i], &info)))
			tell_unasked(s, &info, signal_peer(s, &info, SIGKILL));
}

static void return_unit(struct supervisor *s, struct unit *u, uint64_t now_ms)
{
	u->stopped_ms = 0;
	if (!any_was_asked(s, u)) {
		/* it had been stopped before, and waits for a need of the stop (V8) */
		if (u->state == UNIT_WAITING && u->started &&
			!unit_has(&s->units, u, unit_peer_is_dead))
			unit_set(u, UNIT_STOPPED);
		return;
	}
	u->returns = u->state != UNIT_FAILED;
	u->at_ms = now_ms;
	if (u->state == UNIT_RUNNING) {
		u->return_once = true;
		kill_unit(s, u);
	} else if (u->state == UNIT_STOPPED) {
		unit_set(u, UNIT_WAITING);
	}
}

/* Those that were started by hand were stopped with the others. */
static void tell_not_returned(struct supervisor *s)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(s->units.seg); i++)
		if (xseg_peer_get_info(s->units.seg, i, &info) && stop_was_asked(s, &info) &&
			stack_find(s->units.stack, info.name) == STACK_NONE)
			log_warn("%s: %s was stopped and is not in the stack; start it as it was "
				 "started before",
				me, info.name);
}

void stop_take_back(struct supervisor *s, int error, uint32_t peer)
{
	struct peer_undone undone = { .error = error, .peer = peer };
	uint64_t now_ms = clock_ms();
	uint32_t i;

	if (s->phase != STOP_FLUSHING && s->phase != STOP_STOPPING)
		return;
	undone.nr = ++s->nr_undone;
	stop_flush_close(&s->flush);
	phase_set(s, STOP_RETURNING);
	s->stranded_ms = 0;
	for (i = 0; i < s->units.nr; i++)
		return_unit(s, &s->units.unit[i], now_ms);
	tell_not_returned(s);
	xseg_peer_user_set(s->self, SUPERVISOR_WORD_UNDONE, peer_undone_pack(undone));
}

static void end_returning(struct supervisor *s)
{
	phase_set(s, STOP_NONE);
	peer_word_set_stopping(s->self, false); /* S3 */
	log_info("%s: the stop is taken back", me);
}

void stop_note_death(struct supervisor *s)
{
	if (s->phase == STOP_RETURNING)
		end_returning(s);
}

/* The incarnation that was asked to stop, and killed for that, may not have died yet. */
static bool has_returned(struct supervisor *s, uint32_t peer)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state = units_peer_state(&s->units, peer, &info);

	return (state == XSEG_PEER_LIVE || state == XSEG_PEER_STOPPED) &&
	       !stop_was_asked(s, &info);
}

static bool all_returned(struct supervisor *s)
{
	const struct unit *u;
	uint32_t i;

	for (u = s->units.unit; u < s->units.unit + s->units.nr; u++) {
		if (u->return_once)
			return false;
		for (i = 0; u->returns && i < u->nr; i++)
			if (!has_returned(s, u->peer[i]))
				return false;
	}
	return true;
}

/* ---- the whole --------------------------------------------------------------------------- */

enum stop_end stop_step(struct supervisor *s, uint64_t now_ms)
{
	struct xseg_peer_info peer, lost;

	switch (s->phase) {
	case STOP_NONE:
		break;
	case STOP_FLUSHING:
		if (others_stop(s, now_ms) || all_flushed(s, now_ms))
			begin_stopping(s, now_ms);
		break;
	case STOP_STOPPING:
		if (exports_have_ended(s) && stop_next(s, now_ms)) {
			stop_flush_close(&s->flush);
			report_dead(s);
			return STOP_ENDED;
		}
		if (s->phase == STOP_STOPPING && give_up(s, now_ms))
			return STOP_GAVE_UP;
		break;
	case STOP_RETURNING:
		if (all_returned(s) || is_stranded(s, &peer, &lost, now_ms))
			end_returning(s);
		break;
	}
	return STOP_GOES_ON;
}
