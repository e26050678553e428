/* plug - see plug.h.
 *
 * Each step takes the lock of routes, so these are system calls: a handful for each time that the
 * cache is plugged or unplugged.
 */
#include "peers/cached/evict/evict.h"
#include "peers/cached/life/plug.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/life/cached.h"
#include "peers/cached/object/object.h"
#include "peers/common/log/log.h"
#include "xtypes/xkill.h"

/* between two looks whether something that takes time is done; the longer it */
#define LOOK_MIN_NS  100000ull
#define LOOK_MAX_NS  10000000ull		/* takes, the fewer */
#define CALL_NS	     10000000ull
/* Several upper peers hold until the last one does. If that one stands still, as a stopped process
 * does, the others go on after PATIENCE, and are asked again after REST times that, or after
 * REST_MAX. It doubles, as I/O may take long. */
#define PATIENCE_NS  1000000000ull
#define REST	     4
#define REST_MAX_NS  60000000000ull

#define TO(s) (1u << PLUG_##s)

const struct xstates plug_states = {
	.what = "plug",
	XSTATE(PLUG_, BEGINS, TO(ON) | TO(OFF)),
	XSTATE(PLUG_, ON, TO(DRAINING)),
	XSTATE(PLUG_, DRAINING, TO(SYNCING) | TO(ON)),
	XSTATE(PLUG_, SYNCING, TO(CALLING) | TO(DRAINING) | TO(ON)),
	XSTATE(PLUG_, CALLING, TO(PROVING) | TO(ON)),
	XSTATE(PLUG_, PROVING, TO(CALLING) | TO(DRAINING) | TO(EMPTYING) | TO(ON)),
	XSTATE(PLUG_, EMPTYING, TO(OFF)),
	XSTATE(PLUG_, OFF, TO(ENTERING)),
	XSTATE(PLUG_, ENTERING, TO(CLAIMED) | TO(OFF)),
	XSTATE(PLUG_, CLAIMED, TO(ON) | TO(ENTERING) | TO(OFF)),
};

static enum plug_state plug_get(struct cached *k)
{
	return (enum plug_state)atomic_load_explicit(&life_of(k)->plug.state, memory_order_relaxed);
}

static void plug_set(struct cached *k, enum plug_state s)
{
	xstate_check(&plug_states, plug_get(k), s);
	atomic_store_explicit(&life_of(k)->plug.state, (uint8_t)s, memory_order_relaxed);
	direct_look(k);
	life_of(k)->plug.since_ns = peer_of(k)->ports[0].now_ns;
	life_of(k)->plug.next_ns = life_of(k)->plug.asked_ns = 0;
}

static void look_again(struct cached *k)
{
	uint64_t now_ns = peer_of(k)->ports[0].now_ns,
		 pause_ns = (now_ns - life_of(k)->plug.since_ns) / 8;

	if (pause_ns < LOOK_MIN_NS)
		pause_ns = LOOK_MIN_NS;
	life_of(k)->plug.next_ns = now_ns + (pause_ns < LOOK_MAX_NS ? pause_ns : LOOK_MAX_NS);
}

uint64_t plug_epoch(struct cached *k)
{
	uint64_t epoch;

	return xseg_route(peer_of(k)->xp, &epoch) == XSEG_NONE ? XSEG_NO_EPOCH : epoch;
}

void plug_open(struct cached *k)
{
	uint64_t epoch = plug_epoch(k);

	atomic_store_explicit(&store_of(k)->off, epoch == XSEG_NO_EPOCH, memory_order_relaxed);
	/* a route that it got since its tables were opened; a predecessor without one has left
	 * nothing in them */
	xseg_arena_epoch_set(peer_of(k)->xp, epoch);
}

void plug_begin(struct cached *k)
{
	plug_open(k);
	plug_set(k, cached_is_off(k) ? PLUG_OFF : PLUG_ON);
}

/* ---- leaving ---- */

static void drain_all(struct cached *k, uint64_t pause_ns)
{
	plug_set(k, PLUG_DRAINING);
	life_of(k)->plug.next_ns = peer_of(k)->ports[0].now_ns + pause_ns;
	atomic_store_explicit(&policy_of(k)->leaving, true, memory_order_relaxed);
	switch_begin(k, policy_current(k));
	for (uint32_t i = 1; i < peer_of(k)->nr_ports; i++)
		peer_port_kick(&peer_of(k)->ports[i]);
}

/* It did not work out: again after a pause that doubles. */
static void drain_again(struct cached *k)
{
	struct plug *p = &life_of(k)->plug;

	p->pause_ns = own_sync_pause(p->pause_ns);
	drain_all(k, p->pause_ns);
}

/* What is newly dirty since it began is on its way, as its writers wait for it, or is given up
 * (unpromised.c): but for what a FLUSH that failed made dirty. A FLUSH of an earlier attempt, which
 * was taken back, covers nothing of this one. */
static void drain(struct cport *ps)
{
	struct cached *k = ps->cache;

	look_again(k);
	if (!atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed) &&
		!cached_total(k, CC_DIRTY_BYTES) && !flush_of(k)->sync.own_sync.out) {
		plug_set(k, PLUG_SYNCING);
		life_of(k)->plug.asked = false;
	}
}

/* All that was written back is to be stable before the copies go: a FLUSH of everything, while it
 * serves. */
static void sync(struct cport *ps)
{
	struct cached *k = ps->cache;
	int error = flush_of(k)->sync.own_sync.error;

	look_again(k);
	if (!life_of(k)->plug.asked) {
		life_of(k)->plug.asked = own_sync_send(ps);
	} else if (flush_of(k)->sync.own_sync.out || (error && sync_walks(k))) {
		return;
	} else if (error) {
		log_warn(
			"%s: cannot leave yet: the store failed to make its data stable: %s; "
			"trying again",
			peer_of(k)->name, strerror(-error));
		drain_again(k);
	} else {
		plug_set(k, PLUG_CALLING);
	}
}

/* Those that hold have waited for another long enough: they go on. */
static void rest(struct cport *ps)
{
	struct plug *p = &life_of(ps->cache)->plug;

	if (xseg_plug_let_go(peer_of(ps->cache)->xp))
		return;
	p->call_ns = ps->pp->now_ns + peer_earlier(REST * p->patience_ns, REST_MAX_NS);
	p->patience_ns *= 2;
	p->asked_ns = 0;
}

/* True: all upper peers hold. */
static bool call(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct plug *p = &life_of(k)->plug;

	look_again(k);
	if (xseg_plug_is_held(peer_of(k)->xp))
		return true;
	if (ps->pp->now_ns < p->call_ns)
		return false;
	if (p->asked_ns && ps->pp->now_ns - p->asked_ns > p->patience_ns &&
		xseg_plug_uppers(peer_of(k)->xp) > 1) {
		rest(ps);
		return false;
	}
	p->call_ns = ps->pp->now_ns + CALL_NS;
	/* what cannot be now is asked for again */
	if (xseg_plug_call(peer_of(k)->xp))
		p->asked_ns = 0;
	else if (!p->asked_ns)
		p->asked_ns = ps->pp->now_ns;
	return xseg_plug_is_held(peer_of(k)->xp);
}

/* Every port has passed a point since nothing is taken in, nothing is left or unpromised, what has
 * failed has made dirty what it had to, and what went past it is answered, too: a read that it sent
 * on is on nobody's account, and would be refused below once that is kept for another. And they
 * have passed another point since that was seen: so all that they did is seen here. */
static bool is_at_rest(struct cached *k)
{
	struct plug *p = &life_of(k)->plug;

	if (!peer_has_passed(peer_of(k)) || !peer_has_nothing(peer_of(k)) || children_out(k) ||
		flush_of(k)->sync.own_sync.out ||
		sync_walks(k) || cached_total(k, CC_UNPROMISED_BYTES) ||
		xseg_turn_below(peer_of(k)->xp))
		return false;
	if (p->proved_once)
		return true;
	p->proved_once = true;
	peer_close_to_requests(peer_of(k), true);
	return false;
}

static void prove_begin(struct cached *k)
{
	plug_set(k, PLUG_PROVING);
	life_of(k)->plug.proved_once = false;
	peer_close_to_requests(peer_of(k), true);
}

static void empty_begin(struct cport *ps);

static void prove(struct cport *ps)
{
	struct cached *k = ps->cache;

	look_again(k);
	if (!xseg_plug_is_held(peer_of(k)->xp)) {
		plug_set(k, PLUG_CALLING);
		peer_close_to_requests(peer_of(k), false);
		return;
	}
	if (!is_at_rest(k))
		return;
	if (cached_total(k, CC_DIRTY_BYTES)) {
		if (xseg_plug_let_go(peer_of(k)->xp))
			return;
		drain_again(k);
	} else {
		XKILL(PLUG_PROVEN);
		atomic_store_explicit(&store_of(k)->off, true, memory_order_relaxed);
		direct_run(k);
		if (xseg_plug_switch(peer_of(k)->xp) == 0) {
			log_info("%s: has left the path", peer_of(k)->name);
			atomic_store_explicit(
				&policy_of(k)->leaving, false, memory_order_relaxed);
			assert(cached_total(k, CC_DIRTY_BYTES) == 0);		/* U1 */
			plug_set(k, PLUG_EMPTYING);
			empty_begin(ps);
		} else {
			atomic_store_explicit(&store_of(k)->off, false, memory_order_relaxed);
			plug_set(k, PLUG_CALLING);
		}
	}
	peer_close_to_requests(peer_of(k), false);
}

/* ---- off the path: everything goes, object by object ---- */

static void emptied(struct cport *ps)
{
	/* release: partner is the acquire in empty() */
	atomic_store_explicit(&life_of(ps->cache)->plug.emptied, true, memory_order_release);
	if (ps->pp->nr)
		peer_port_kick(&peer_of(ps->cache)->ports[0]);
}

static void empty_begin(struct cport *ps)
{
	struct plug *p = &life_of(ps->cache)->plug;

	atomic_store_explicit(&p->emptied, false, memory_order_relaxed);
	walk_begin(ps, &p->walk, object_empty, emptied);
}

static void empty(struct cport *ps)
{
	struct cached *k = ps->cache;

	look_again(k);
	if (!atomic_load_explicit(&life_of(k)->plug.emptied, memory_order_acquire))
		return;
	if (cached_total(k, CC_USED_BYTES) ||
		atomic_load_explicit(&memory_of(k)->nr_zeroes, memory_order_relaxed)) {
		empty_begin(ps);
		return;
	}
	xseg_arena_epoch_set(peer_of(k)->xp, XSEG_NO_EPOCH);
	XKILL(PLUG_EPOCH_GONE);
	plug_set(k, PLUG_OFF);
}

/* ---- entering ---- */

static void enter(struct cport *ps)
{
	struct cached *k = ps->cache;

	if (!call(ps) || xseg_plug_claim(peer_of(k)->xp))
		return;
	xseg_arena_epoch_set(peer_of(k)->xp, plug_epoch(k));
	XKILL(PLUG_EPOCH_NOTED);
	plug_set(k, PLUG_CLAIMED);
	peer_close_to_requests(peer_of(k), true);
}

/* Requests that come before the route is switched wait: whether they are its own to answer is not
 * known yet. */
static void claimed(struct cport *ps)
{
	struct cached *k = ps->cache;

	look_again(k);
	if (!peer_has_passed(peer_of(k)))
		return;
	if (plug_epoch(k) == XSEG_NO_EPOCH || !xseg_plug_is_held(peer_of(k)->xp)) {
		if (xseg_plug_let_go(peer_of(k)->xp))
			return;
		plug_set(k, PLUG_ENTERING);
	} else if (xseg_plug_others(peer_of(k)->xp)) {
		return;
	} else {
		atomic_store_explicit(&store_of(k)->off, false, memory_order_relaxed);
		if (xseg_plug_switch(peer_of(k)->xp) == 0) {
			log_info("%s: is on the path", peer_of(k)->name);
			plug_set(k, PLUG_ON);
		} else {
			atomic_store_explicit(&store_of(k)->off, true, memory_order_relaxed);
			plug_set(k, PLUG_ENTERING);
		}
	}
	peer_close_to_requests(peer_of(k), false);
}

/* ---- what is wanted ---- */

static bool is_leaving(enum plug_state s)
{
	return s >= PLUG_DRAINING && s <= PLUG_PROVING;
}

static void take_back(struct cached *k, enum plug_state s)
{
	/* as with a policy that is set back to write-back */
	if (is_leaving(s) && policy_current(k)->answers_before_store)
		switch_end(k);
	atomic_store_explicit(&policy_of(k)->leaving, false, memory_order_relaxed);
	if (s == PLUG_PROVING || s == PLUG_CLAIMED)
		peer_close_to_requests(peer_of(k), false);
	plug_set(k, s == PLUG_ENTERING || s == PLUG_CLAIMED ? PLUG_OFF : PLUG_ON);
}

/* Brings the state in line with what is wanted now. */
static void follow(struct cached *k)
{
	enum xseg_plug_op op = xseg_plug_get(peer_of(k)->xp).op;
	enum plug_state s = plug_get(k);

	if ((is_leaving(s) && op != XSEG_PLUG_LEAVE) ||
		((s == PLUG_ENTERING || s == PLUG_CLAIMED) && op != XSEG_PLUG_ENTER)) {
		take_back(k, s);
	} else if (s == PLUG_ON && op == XSEG_PLUG_LEAVE) {
		life_of(k)->plug.pause_ns = 0;
		life_of(k)->plug.patience_ns = PATIENCE_NS;
		drain_all(k, 0);
	} else if (s == PLUG_OFF && op == XSEG_PLUG_ENTER) {
		life_of(k)->plug.call_ns = 0;
		life_of(k)->plug.patience_ns = PATIENCE_NS;
		plug_set(k, PLUG_ENTERING);
	}
}

static void step(struct cport *ps)
{
	switch (plug_get(ps->cache)) {
	case PLUG_DRAINING:
		drain(ps);
		break;
	case PLUG_SYNCING:
		sync(ps);
		break;
	case PLUG_CALLING:
		if (call(ps))
			prove_begin(ps->cache);
		break;
	case PLUG_PROVING:
		prove(ps);
		break;
	case PLUG_EMPTYING:
		empty(ps);
		break;
	case PLUG_ENTERING:
		enter(ps);
		break;
	case PLUG_CLAIMED:
		claimed(ps);
		break;
	default:
		life_of(ps->cache)->plug.next_ns = PEER_NEVER;
	}
}

uint64_t plug_run(struct cport *ps)
{
	struct cached *k = ps->cache;

	follow(k);
	if (flush_of(k)->sync.own_sync.news || ps->pp->now_ns >= life_of(k)->plug.next_ns) {
		flush_of(k)->sync.own_sync.news = false;
		step(ps);
	}
	return life_of(k)->plug.next_ns;
}

bool plug_is_leaving(struct cached *k)
{
	return atomic_load_explicit(&policy_of(k)->leaving, memory_order_relaxed) &&
	       xseg_plug_get(peer_of(k)->xp).op == XSEG_PLUG_LEAVE;
}

void plug_check(struct cached *k)
{
	enum plug_state s = plug_get(k);
	bool off = s == PLUG_BEGINS ? cached_is_off(k)
				    : s == PLUG_EMPTYING || s == PLUG_OFF || s == PLUG_ENTERING ||
					      s == PLUG_CLAIMED;

	assert(cached_is_off(k) == off);
	assert(!off ||
		cached_total(k, CC_DIRTY_BYTES) + cached_total(k, CC_UNPROMISED_BYTES) == 0);
	assert(off ? s == PLUG_EMPTYING || cached_total(k, CC_USED_BYTES) == 0
		   : xseg_arena_epoch(peer_of(k)->xp) == plug_epoch(k));
	assert(atomic_load_explicit(&policy_of(k)->leaving, memory_order_relaxed) ==
		is_leaving(s));
}
