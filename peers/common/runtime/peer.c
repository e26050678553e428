/* peer - the code that all kinds share: registering, recovering, one round of a port, counting. See
 * peer.h for the contract and peer_box.h for the data.
 *
 * Nothing here knows threads, sleeping or a clock (P3). The time is pp->now_ns, which the driver of
 * the port has set.
 */
#include "peers/common/runtime/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/runtime/gate.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/common/say/words.h"
#include "xtypes/xline.h"

enum { TAKEN_REQUESTS, TAKEN_REPLIES };

static const char *const stat_keys[PEER_NR_STATS] = {
	[PEER_STAT_OPS] = "ops",
	[PEER_STAT_BYTES] = "bytes",
	[PEER_STAT_ERRORS] = "errors",
	[PEER_STAT_READS] = "reads",
	[PEER_STAT_WRITES] = "writes",
	[PEER_STAT_FLUSHES] = "flushes",
	[PEER_STAT_READ_BYTES] = "read_bytes",
	[PEER_STAT_WRITE_BYTES] = "write_bytes",
	[PEER_STAT_AWAKE_IDLE_NS] = "awake_idle_ns",
	[PEER_STAT_SLEEPS] = "sleeps",
	[PEER_STAT_WAKES] = "wakes",
	[PEER_STAT_PROTO_ERRORS] = "proto_errors",
	[PEER_STAT_HELPED] = "helped",
	[PEER_STAT_CALLS] = "calls",
};

/* ---- making and registering -------------------------------------------------------------- */

struct peer *peer_create(const struct peer_class *cls)
{
	struct peer_box *box = xline_alloc(sizeof(struct peer_box) + cls->size);
	struct peer *p;

	if (!box)
		return NULL;
	atomic_flag_clear(&box->setting);
	pthread_mutex_init(&box->options, NULL);
	box->scratch = calloc(1, cls->size);
	if (!box->scratch) {
		free(box);
		return NULL;
	}
	p = (struct peer *)box->peer;
	p->cls = cls;
	p->threads = 1;
	strncpy(p->name, cls->kind, sizeof(p->name) - 1);
	opt_set_defaults(cls->opts, p);
	return p;
}

static void free_buffers(struct peer *p)
{
	uint32_t i;

	for (i = 0; i < PEER_MAX_THREADS; i++) {
		free(peer_box(p)->port[i].line);
		peer_box(p)->port[i].line = NULL;
	}
}

void peer_destroy(struct peer *p)
{
	if (!p)
		return;
	assert(!p->xp);
	free_buffers(p);
	pthread_mutex_destroy(&peer_box(p)->options);
	free(peer_box(p)->scratch);
	free(peer_box(p));
}

static int open_port(struct peer *p, uint32_t nr, struct xseg_error *err)
{
	struct peer_port *pp = &p->ports[nr];
	struct port_box *box = &peer_box(p)->port[nr];
	int rc;

	pp->peer = p;
	pp->box = box;
	pp->nr = nr;
	pp->now_ns = p->ports[0].now_ns;
	pp->port = xseg_peer_port(p->xp, nr);
	box->line = malloc(PEER_LINE_BYTES + PEER_TEXT_BYTES);
	if (!box->line)
		return xseg_fail(err, -ENOMEM, "out of memory");
	box->text = box->line + PEER_LINE_BYTES;
	rc = xseg_stats_open(p->xp, p->name, p->cls->kind, stat_keys, PEER_NR_STATS, &pp->stats);
	if (rc)
		return xseg_fail(err, rc, "no place for its statistics: %s",
				 rc == -ENOSPC ? "all places are taken; give peers fewer threads" :
						 strerror(-rc));
	return 0;
}

/* Whether that is one of its own kind, which keeps what is below it to itself, and is off the path:
 * it answers ENOTCONN to all, so what is sent there could never be made stable. */
static bool is_off_the_path(struct peer *p, uint32_t lower)
{
	struct xseg_peer_info info;

	return p->cls->keeps && xseg_peer_get_info(p->seg, lower, &info) &&
	       info.state == XSEG_PEER_LIVE && info.downstream == XSEG_NONE &&
	       !strcmp(info.kind, p->cls->kind);
}

/* 0 when the peer has a route or needs none; -EAGAIN while the downstream it names does not exist,
 * or those that send there hold for a cache that enters or leaves. One that would have it to
 * itself, and finds others there, or finds it off the path, serves without a route: it waits to be
 * plugged. */
static int find_route(struct peer *p, struct xseg_error *err)
{
	uint32_t lower;
	int rc;

	if (!p->cls->sends || !p->downstream_name[0] || peer_box(p)->off_path ||
		xseg_route(p->xp, NULL) != XSEG_NONE)
		return 0;
	lower = xseg_peer_find(p->seg, p->downstream_name);
	if (lower == XSEG_NONE)
		return -EAGAIN;
	if (is_off_the_path(p, lower))
		return 0;
	rc = p->cls->keeps ? xseg_route_claim(p->seg, xseg_peer_index(p->xp), lower) :
			     xseg_route_set(p->seg, xseg_peer_index(p->xp), lower);
	if (rc == 0 || (rc == -EBUSY && p->cls->keeps))
		return 0;
	if (rc == -EAGAIN)
		return rc;
	if (rc == -ELOOP && !strcmp(p->downstream_name, p->name))
		return xseg_fail(err, rc, "cannot send to itself; give another downstream");
	return xseg_fail(err, rc, "cannot send to '%s': %s; see 'xseg peer list'",
			 p->downstream_name,
			 rc == -ELOOP ? "that would be a loop" :
			 rc == -EBUSY ? "only its cache may send there" : strerror(-rc));
}

/* -EBUSY: another one of its kind sends to where it does, and is not gone. Of two that begin
 * together each sees the other, as its route is there before it looks. */
static int check_one(struct peer *p, struct xseg_error *err)
{
	uint32_t lower = xseg_route(p->xp, NULL), i;
	struct xseg_peer_info info, below;

	if (!p->cls->one || !xseg_peer_get_info(p->seg, lower, &below))
		return 0;
	for (i = 0; i < xseg_nr_peers(p->seg); i++)
		if (i != xseg_peer_index(p->xp) && xseg_peer_get_info(p->seg, i, &info) &&
			info.downstream == lower && !strcmp(info.kind, p->cls->kind) &&
			!xseg_peer_is_gone(p->seg, &info))
			return xseg_fail(err, -EBUSY,
				"'%s' sends to '%s' already, which takes only one %s; stop that "
				"one, or give another downstream",
				info.name, below.name, p->cls->kind);
	return 0;
}

/* It died, and has had a route. If it has none now it was unplugged, or on its way back, and stays
 * off the path until it is plugged. One that was stopped in order begins where it is told to. */
static bool died_in_use(struct xseg_peer *peer)
{
	uint64_t epoch;

	xseg_route(peer, &epoch);
	return xseg_peer_before(peer) == XSEG_PEER_DEAD && epoch != 0;
}

/* It has not served: it is what it was before it was opened. A name that was never served is not
 * worth keeping; one that a request has met meanwhile stays, stopped. */
static void close_as_before(struct peer *p)
{
	static const enum xseg_close how[] = {
		[XSEG_PEER_FREE] = XSEG_CLOSE_FREE_ARENA,
		[XSEG_PEER_STOPPED] = XSEG_CLOSE_KEEP_ARENA,
		[XSEG_PEER_DEAD] = XSEG_CLOSE_ABANDON,
	};
	enum xseg_peer_state before = xseg_peer_before(p->xp);
	uint32_t index = xseg_peer_index(p->xp);

	xseg_peer_close(p->xp, how[before]);
	p->xp = NULL;
	p->nr_ports = 0;
	if (before == XSEG_PEER_FREE)
		(void)!xseg_peer_forget(p->seg, index);
}

/* When the peer begins and when it leaves: whatever somebody else has written there meanwhile. */
static void tell_unsynced(struct peer *p)
{
	xseg_peer_user_set(p->xp, PEER_WORD_UNSYNCED,
		p->cls->unsynced_bytes ? p->cls->unsynced_bytes(p) : 0);
}

int peer_open(struct peer *p, struct xseg *seg, struct xseg_error *err)
{
	struct xseg_peer_params params = { .name = p->name,
					   .kind = p->cls->kind,
					   .nr_ports = p->threads };
	const char *key;
	uint32_t i;
	bool died;
	int rc;

	rc = p->cls->fit ? p->cls->fit(p, &key, err) : 0;
	if (rc)
		return rc;
	p->seg = seg;
	if (p->cls->nr_requests)
		params.nr_requests = p->cls->nr_requests(p);
	rc = xseg_peer_open(seg, &params, &p->xp, err);
	if (rc)
		return rc;
	died = died_in_use(p->xp);
	peer_word_set_stopping(p->xp, false);
	p->nr_ports = xseg_peer_nr_ports(p->xp);
	for (i = 0; i < p->nr_ports && !rc; i++)
		rc = open_port(p, i, err);
	if (!rc && p->cls->keeps)
		rc = xseg_plug_settle(p->xp, err);
	if (!rc) {
		peer_box(p)->off_path = died && xseg_route(p->xp, NULL) == XSEG_NONE;
		rc = find_route(p, err);
		if (rc == -EAGAIN)		/* peer_try_serve() looks again */
			rc = 0;
	}
	if (!rc)
		rc = check_one(p, err);
	if (!rc && p->cls->init)
		rc = p->cls->init(p, err);
	if (rc)
		close_as_before(p);
	else
		tell_unsynced(p);
	return rc;
}

void peer_undo_open(struct peer *p)
{
	if (p->cls->fini)
		p->cls->fini(p);
	close_as_before(p);
}

void peer_close(struct peer *p, enum xseg_close how)
{
	atomic_store(&peer_box(p)->serving, false);
	if (how != XSEG_CLOSE_ABANDON)
		tell_unsynced(p);
	if (p->cls->fini)
		p->cls->fini(p);
	xseg_peer_close(p->xp, how);
	p->xp = NULL;
	p->nr_ports = 0;
}

/* ---- recovering -------------------------------------------------------------------------- */

/* Of one that the port's thread writes and others read. */
static void add_relaxed(_Atomic uint64_t *word, uint64_t by)
{
	atomic_store_explicit(
		word, atomic_load_explicit(word, memory_order_relaxed) + by, memory_order_relaxed);
}

static void count_arrived(struct peer_port *pp, uint32_t nr)
{
	add_relaxed(&port_box(pp)->arrived, nr);
}

/* Those that were answered or sent on since this was last done. */
static void count_left(struct port_box *box)
{
	add_relaxed(&box->left, box->nr_left);
	box->nr_left = 0;
}

/* What was answered and sent, to be rung for later, or now: counted before anybody can see it, as
 * who has an answer may ask what is left. */
static void publish(struct peer_port *pp)
{
	count_left(port_box(pp));
	xseg_port_publish(pp->port);
}

static void flush(struct peer_port *pp)
{
	count_left(port_box(pp));
	xseg_port_flush(pp->port);
}

static void recover_request(struct xport *port, struct xreq *r, void *arg)
{
	struct peer *p = arg;
	struct peer_port *pp = p->ports;

	while (pp->port != port)
		pp++;
	count_arrived(pp, 1);
	r->stamp_ns = pp->now_ns;
	if (r->op == XSEG_OP_ADMIN)
		peer_admin_recover(pp, r);
	else if (p->cls->recover)
		p->cls->recover(pp, r);
	else
		p->cls->request(pp, r);
}

static bool waits_for_orphans(struct peer *p)
{
	return !(p->cls->adopted && p->cls->adopted(p)) && xseg_peer_orphans(p->xp) > 0;
}

bool peer_try_serve(struct peer *p)
{
	uint32_t i;

	if (peer_serving(p))
		return true;
	if (find_route(p, NULL) || check_one(p, NULL) || waits_for_orphans(p))
		return false;
	/* what others had below before it was kept for this peer may still change it */
	if (p->cls->keeps && xseg_plug_others(p->xp) > 0)
		return false;
	gate_open_peer(p);
	for (i = 1; i < p->nr_ports; i++)
		p->ports[i].now_ns = p->ports[0].now_ns;
	xseg_peer_recover(p->xp, recover_request, p);
	if (p->cls->recovered)
		p->cls->recovered(p);
	for (i = 0; i < p->nr_ports; i++)
		flush(&p->ports[i]);
	/* Before all are rung: a thread of ours that was woken, and found that it does not serve
	 * yet, would sleep again. Release: partner is the acquire in peer_serving(): other threads
	 * see what recovery made. */
	atomic_store_explicit(&peer_box(p)->serving, true, memory_order_release);
	xseg_peer_serve(p->xp);
	return true;
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* The requests that it has accepted and not handled yet; accepts up to `max` more when there is
 * none. False: there is still none. */
static bool has_requests(struct peer_port *pp, uint32_t max)
{
	const struct peer_class *cls = pp->peer->cls;
	struct port_box *box = port_box(pp);
	struct xreq **taken = box->taken[TAKEN_REQUESTS];
	uint32_t nr;

	if (box->at[TAKEN_REQUESTS] < box->nr_taken[TAKEN_REQUESTS])
		return true;
	box->at[TAKEN_REQUESTS] = box->nr_taken[TAKEN_REQUESTS] = 0;
	if (gate_closed(pp, GATE_TAKE) ||
		atomic_load_explicit(&peer_box(pp->peer)->closed_to_requests, memory_order_relaxed))
		return false;
	nr = xseg_port_receive(pp->port, taken, max < PEER_TAKE ? max : PEER_TAKE);
	if (!nr)
		return false;
	count_arrived(pp, nr);
	box->nr_taken[TAKEN_REQUESTS] = nr;
	if (cls->prefetch)
		cls->prefetch(pp, taken, nr);
	return true;
}

/* How many of them, from the first one on, are for the kind; they are stamped. */
static uint32_t stamp_plain(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	bool kept = xseg_port_is_kept(pp->port);
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (r[i]->op == XSEG_OP_ADMIN || (kept && xseg_req_is_foreign(pp->port, r[i])))
			break;
		r[i]->stamp_ns = pp->now_ns;
	}
	return i;
}

static void handle_other(struct peer_port *pp, struct xreq *r)
{
	r->stamp_ns = pp->now_ns;
	if (r->op == XSEG_OP_ADMIN)
		peer_admin(pp, r);
	else	/* another peer has this one to itself */
		peer_answer(pp, r, -EBUSY);
}

/* Handles some of those that has_requests() speaks of: at least one, `max` at most. */
static uint32_t handle_requests(struct peer_port *pp, uint32_t max)
{
	const struct peer_class *cls = pp->peer->cls;
	struct port_box *box = port_box(pp);
	struct xreq *const *r = box->taken[TAKEN_REQUESTS] + box->at[TAKEN_REQUESTS];
	uint32_t left = box->nr_taken[TAKEN_REQUESTS] - box->at[TAKEN_REQUESTS], nr;

	nr = stamp_plain(pp, r, left < max ? left : max);
	if (nr == 0) {
		handle_other(pp, *r);
		nr = 1;
	} else if (cls->requests) {
		nr = cls->requests(pp, r, nr);
	} else {
		cls->request(pp, *r);
		nr = 1;
	}
	box->at[TAKEN_REQUESTS] += nr;
	return nr;
}

static bool handle_reply(struct peer_port *pp, uint32_t max)
{
	struct port_box *box = port_box(pp);
	struct xreq **taken = box->taken[TAKEN_REPLIES];

	if (box->at[TAKEN_REPLIES] == box->nr_taken[TAKEN_REPLIES]) {
		box->at[TAKEN_REPLIES] = 0;
		box->nr_taken[TAKEN_REPLIES] =
			xseg_port_replies(pp->port, taken, max < PEER_TAKE ? max : PEER_TAKE);
		if (!box->nr_taken[TAKEN_REPLIES])
			return false;
	}
	pp->peer->cls->reply(pp, taken[box->at[TAKEN_REPLIES]++]);
	return true;
}

/* Those answered in the round that they came in took as long as the round did. */
static void settle_instant(struct peer_port *pp, uint64_t now_ns)
{
	struct port_box *box = port_box(pp);

	if (box->nr_instant)
		xhist_record_many(xseg_stats_lat(pp->stats), now_ns - pp->now_ns, box->nr_instant);
	box->nr_instant = 0;
}

/* How each op is counted beside PEER_STAT_OPS; 0: not. */
static const struct {
	uint8_t nr, bytes;
} op_stats[XSEG_NR_OPS] = {
	[XSEG_OP_READ] = { PEER_STAT_READS, PEER_STAT_READ_BYTES },
	[XSEG_OP_WRITE] = { PEER_STAT_WRITES, PEER_STAT_WRITE_BYTES },
	[XSEG_OP_FLUSH] = { PEER_STAT_FLUSHES, 0 },
};

static void publish_counts(struct peer_port *pp)
{
	struct port_box *box = port_box(pp);

	for (uint32_t ops = box->done_ops; ops; ops &= ops - 1) {
		uint32_t op = (uint32_t)__builtin_ctz(ops);
		uint64_t nr = box->done[op].nr, bytes = box->done[op].bytes;

		box->done[op].nr = box->done[op].bytes = 0;
		xseg_stats_add(pp->stats, PEER_STAT_OPS, nr);
		if (op_stats[op].nr)
			xseg_stats_add(pp->stats, op_stats[op].nr, nr);
		if (!op_stats[op].bytes)
			continue;
		xseg_stats_add(pp->stats, op_stats[op].bytes, bytes);
		xseg_stats_add(pp->stats, PEER_STAT_BYTES, bytes);
	}
	box->done_ops = 0;
}

static uint64_t poll(struct peer_port *pp)
{
	uint64_t kind_ns, gate_ns = pp->nr == 0 ? gate_turn(pp) : PEER_NEVER;

	kind_ns = pp->peer->cls->poll ? pp->peer->cls->poll(pp) : PEER_NEVER;
	if (gate_is_news(pp))
		return pp->now_ns;
	return kind_ns < gate_ns ? kind_ns : gate_ns;
}

/* Who has work at each look goes on, and rings when its stores have arrived. Who waits rings now:
 * to look a moment earlier takes the lane's line from the sender that is filling it. So does a port
 * that is not alone in its peer, as another thread may be about to make its next round. */
static void end_round(struct peer_port *pp, bool worked)
{
	struct port_box *box = port_box(pp);

	/* first, as whoever is woken by an answer may look at once */
	publish_counts(pp);
	if (worked && box->worked && pp->only)
		publish(pp);
	else
		flush(pp);
	box->worked = worked;
}

bool peer_port_round(struct peer_port *pp, uint64_t now_ns, uint32_t budget, uint64_t *next_ns)
{
	const struct peer_class *cls = pp->peer->cls;
	uint32_t requests = 0, replies = 0;
	bool some;

	*next_ns = PEER_NEVER;
	if (!peer_serving(pp->peer))
		return false;
	/* who made the last round may have looked at the clock later */
	if (now_ns < pp->now_ns)
		now_ns = pp->now_ns;
	settle_instant(pp, now_ns);
	pp->now_ns = now_ns;
	gate_look(pp);
	pp->round_over = false;
	some = has_requests(pp, budget);
	/* rings for what the last round published, and publishes what the kind had kept */
	flush(pp);
	while (some) {
		requests += handle_requests(pp, budget - requests);
		some = requests < budget && !pp->round_over && has_requests(pp, budget - requests);
	}
	while (cls->reply && replies < budget && handle_reply(pp, budget - replies))
		replies++;
	/* what is answered need not wait for the timers */
	publish(pp);
	*next_ns = poll(pp);
	end_round(pp, requests || replies);
	return requests || replies;
}

void peer_end_round(struct peer_port *pp)
{
	pp->round_over = true;
}

bool peer_port_step_request(struct peer_port *pp)
{
	if (!peer_serving(pp->peer) || !has_requests(pp, PEER_TAKE))
		return false;
	handle_requests(pp, 1);
	count_left(port_box(pp));
	return true;
}

bool peer_port_step_reply(struct peer_port *pp)
{
	if (!peer_serving(pp->peer) || !pp->peer->cls->reply || !handle_reply(pp, PEER_TAKE))
		return false;
	count_left(port_box(pp));
	return true;
}

uint64_t peer_port_step_poll(struct peer_port *pp)
{
	uint64_t next_ns = PEER_NEVER;

	if (!peer_serving(pp->peer))
		return next_ns;
	settle_instant(pp, pp->now_ns);
	gate_look(pp);
	next_ns = poll(pp);
	flush(pp);
	publish_counts(pp);
	return next_ns;
}
