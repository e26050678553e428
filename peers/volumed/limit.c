/* limit - volumes that may do only so much: requests and bytes a second, fair among their clients.
 *
 * What counts
 *   `iops` counts requests of a client, whatever their size, also those that are split.
 *   `bandwidth` counts the bytes of READ, WRITE and COPY. DISCARD and WRITE_ZEROES count as
 *   requests without bytes. FLUSH, INFO and commands are never held.
 *
 * When a request goes on
 *   Each limit has a time at which all that went on is paid for (`ops_ns`, `bytes_ns`). A request
 *   goes on when this time is at most `burst_ns` ahead of now. Then the time moves on by what the
 *   request costs: 1 s / iops, or size * 1 s / bandwidth. The time is never behind now. So a volume
 *   that was idle may do at once what its limits give in burst_ns, and one request more. After that
 *   its requests go on one by one, in equal distances. If a thread looks late, by less than
 *   burst_ns, the volume loses nothing. (The idea: GCRA of ATM, ITU-T I.371, a token bucket that
 *   needs no timer to fill it.)
 *
 * Whose request goes on
 *   The requests of a client (a port) wait in a FIFO of their own. Each client has a credit, in the
 *   time that its requests cost. The client goes on whose oldest request lacks the least credit.
 *   All clients that wait get what it lacked, and it pays the cost. So clients that always have a
 *   request waiting get equal parts, whatever their depths and sizes. (The idea: deficit round
 *   robin, Shreedhar and Varghese, 1995; with the smallest quantum that lets a request go.)
 *
 * Threads
 *   A volume has a home port, by its slot. The thread of that port alone holds the volume's
 *   requests and sends them on. Other ports put a request into the home port's inbox.
 *
 * A successor begins anew: its requests are given to it again, and the times begin now.
 *
 * Contract: a port's thread. Nothing blocks, and nothing allocates but vd_limit_init(). Port 0's
 * thread stores the limits (volume.c).
 *
 * Invariants
 *   L1  A request that waits is in one list: an inbox, or the FIFO of its client.
 *   L2  A request that waited is checked again when it goes on. If its volume is gone, or smaller,
 *       it is answered as one that comes then.
 *   L3  A request of which a predecessor did a part never waits: job.c counts it (S6).
 *   L4  A client reads a limited volume by requests only. Limits are stored before the door for
 *       direct reads is shut and opened. So a request that is sent after that finds the limits, and
 *       its answer lends nothing: its client learns nothing. What a client learned before is void.
 *   L5  Nothing waits in a peer that is to stop: all goes on at once. Its clients have no other
 *       way to an answer where no successor comes.
 */
#include <errno.h>
#include <stdlib.h>

#include "peers/volumed/volumed.h"

#define SECOND_NS 1000000000ull
#define LOOK_NS	  100u				/* for each volume that a look goes over */

int vd_limit_init(struct volumed *vd)
{
	vd->limit = calloc(VD_SLOTS, sizeof(*vd->limit));
	if (!vd->limit)
		return -ENOMEM;
	for (uint32_t i = 0; i < VD_SLOTS; i++)
		vd->limit[i].last = &vd->limit[i].first;
	return 0;
}

void vd_limit_fini(struct volumed *vd)
{
	free(vd->limit);
}

static struct vd_volume *volume_of(const struct volumed *vd, const struct vd_limit *l)
{
	return &vd->volume[l - vd->limit];
}

static struct vd_context *context_of(const struct peer_port *pp, const struct xreq *r)
{
	return &vd_of(pp)->context[r->index];
}

static bool is_limited(const struct vd_volume *v)
{
	return atomic_load_explicit(&v->limited, memory_order_relaxed);
}

/* L5 */
static bool is_held(const struct peer_port *pp, const struct vd_volume *v)
{
	return is_limited(v) && !vd_stopping(pp);
}

/* ---- times ------------------------------------------------------------------------------- */

struct costs {
	uint64_t ops_ns, bytes_ns;
};

static uint64_t part_of_second(uint64_t nr, uint64_t a_second)
{
	return a_second ? (nr * SECOND_NS + a_second - 1) / a_second : 0;
}

static struct costs costs_of(struct vd_limit *l, const struct xreq *r)
{
	uint64_t iops = atomic_load_explicit(&l->iops, memory_order_relaxed);
	uint64_t bandwidth = atomic_load_explicit(&l->bandwidth, memory_order_relaxed);
	bool has_bytes =
		r->op == XSEG_OP_READ || r->op == XSEG_OP_WRITE || r->op == XSEG_OP_COPY;

	return (struct costs){ .ops_ns = part_of_second(1, iops),
		.bytes_ns = part_of_second(has_bytes ? r->size : 0, bandwidth) };
}

/* Of a client's credit. */
static uint64_t cost_of(struct vd_limit *l, const struct xreq *r)
{
	struct costs c = costs_of(l, r);

	return c.ops_ns > c.bytes_ns ? c.ops_ns : c.bytes_ns;
}

static uint64_t burst_of(struct vd_limit *l)
{
	return atomic_load_explicit(&l->burst_ns, memory_order_relaxed);
}

/* Other limits: what was let go on before is paid for in their burst at the latest. */
static void times_renew(struct peer_port *pp, struct vd_limit *l)
{
	/* acquire: partner is the release in limits_set() */
	uint32_t change = atomic_load_explicit(&l->change, memory_order_acquire);
	uint64_t most = pp->now_ns + burst_of(l);

	if (l->seen == change)
		return;
	l->seen = change;
	l->ops_ns = peer_earlier(l->ops_ns, most);
	l->bytes_ns = peer_earlier(l->bytes_ns, most);
	vd_volume_count_wait(pp, volume_of(vd_of(pp), l), false);
}

static uint64_t due_of(struct vd_limit *l)
{
	uint64_t paid = l->ops_ns > l->bytes_ns ? l->ops_ns : l->bytes_ns, burst = burst_of(l);

	return paid > burst ? paid - burst : 0;
}

static void pay(struct peer_port *pp, struct vd_limit *l, const struct xreq *r)
{
	struct costs c = costs_of(l, r);

	l->ops_ns = (l->ops_ns > pp->now_ns ? l->ops_ns : pp->now_ns) + c.ops_ns;
	l->bytes_ns = (l->bytes_ns > pp->now_ns ? l->bytes_ns : pp->now_ns) + c.bytes_ns;
}

/* ---- who waits --------------------------------------------------------------------------- */

/* more: one that has not waited before. */
static void waiting_add(struct peer_port *pp, struct vd_limit *l, int by, bool more)
{
	uint32_t nr = atomic_load_explicit(&l->nr_waiting, memory_order_relaxed);

	atomic_store_explicit(&l->nr_waiting, nr + (uint32_t)by, memory_order_relaxed);
	vd_volume_count_wait(pp, volume_of(vd_of(pp), l), more);
}

static void client_add(struct peer_port *pp, struct vd_limit *l, struct xreq *oldest)
{
	context_of(pp, oldest)->wait.next = NULL;
	*l->last = oldest;
	l->last = &context_of(pp, oldest)->wait.next;
}

static void client_take(struct peer_port *pp, struct vd_limit *l, struct xreq **at)
{
	struct xreq *oldest = *at;

	*at = context_of(pp, oldest)->wait.next;
	if (!*at)
		l->last = at;
}

static void nr_limits_add(struct vd_port *port, uint32_t by)
{
	uint32_t nr = atomic_load_explicit(&port->nr_limits, memory_order_relaxed);

	atomic_store_explicit(&port->nr_limits, nr + by, memory_order_relaxed);
}

/* Behind the others of its client. */
static void wait_begin(struct peer_port *pp, struct vd_limit *l, struct xreq *r, bool again)
{
	struct vd_port *port = vd_port_of(pp);
	struct xreq *oldest = l->first;

	r->next = NULL;
	waiting_add(pp, l, 1, !again);
	while (oldest && oldest->origin != r->origin)
		oldest = context_of(pp, oldest)->wait.next;
	if (oldest) {
		context_of(pp, oldest)->wait.newest->next = r;
		context_of(pp, oldest)->wait.newest = r;
		return;
	}
	context_of(pp, r)->wait.newest = r;
	context_of(pp, r)->wait.credit_ns = 0;
	client_add(pp, l, r);
	l->due_ns = due_of(l);
	port->limit_due_ns = peer_earlier(port->limit_due_ns, l->due_ns);
	if (l->listed)
		return;
	l->listed = true;
	l->next = port->limit_list;
	port->limit_list = l;
	nr_limits_add(port, 1);
}

/* The oldest request of the client whose turn it is; there is one. All clients get the credit that
 * it lacks, and it pays for itself. */
static struct xreq *wait_end(struct peer_port *pp, struct vd_limit *l)
{
	struct xreq **at, **best = NULL, *r;
	uint64_t least = UINT64_MAX, lacks, cost, credit;

	for (at = &l->first; *at && least; at = &context_of(pp, *at)->wait.next) {
		cost = cost_of(l, *at);
		credit = context_of(pp, *at)->wait.credit_ns;
		lacks = cost > credit ? cost - credit : 0;
		if (lacks >= least)
			continue;
		least = lacks;
		best = at;
	}
	for (at = &l->first; *at && least; at = &context_of(pp, *at)->wait.next)
		context_of(pp, *at)->wait.credit_ns += least;
	r = *best;
	client_take(pp, l, best);
	cost = cost_of(l, r);
	credit = context_of(pp, r)->wait.credit_ns;
	if (r->next) {
		context_of(pp, r->next)->wait.newest = context_of(pp, r)->wait.newest;
		context_of(pp, r->next)->wait.credit_ns = credit > cost ? credit - cost : 0;
		client_add(pp, l, r->next);
	}
	r->next = NULL;
	waiting_add(pp, l, -1, false);
	return r;
}

/* ---- going on ---------------------------------------------------------------------------- */

static void send_on(struct peer_port *pp, struct vd_volume *v, struct xreq *r)
{
	if (r->op == XSEG_OP_READ && is_limited(v))
		xseg_req_unlend(pp->port, r);
	vd_data_send(pp, v, r);
}

/* The volume that a request that waited is for; NULL: it is gone, or too small now, and the request
 * is answered (L2). */
static struct vd_volume *check_again(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), r->volume);
	int rc = v ? vd_volume_check(v, r->offset, r->size) : -ENOENT;

	if (!rc)
		return v;
	peer_answer(pp, r, rc);
	return NULL;
}

/* At its volume's home. */
static void take_home(struct peer_port *pp, struct vd_volume *v, struct xreq *r)
{
	struct vd_limit *l = vd_limit_of(vd_of(pp), v);

	times_renew(pp, l);
	if (l->first || due_of(l) > pp->now_ns) {
		wait_begin(pp, l, r, false);
		return;
	}
	pay(pp, l, r);
	send_on(pp, v, r);
}

void vd_limit_take(struct peer_port *pp, struct vd_volume *v, struct xreq *r)
{
	struct volumed *vd = vd_of(pp);
	uint32_t home = vd_home_of(vd, v);

	if (vd_stopping(pp) || (!vd_is_in_one_object(v, r) && vd_split_is_begun(pp, r)))
		send_on(pp, v, r);		/* L3, L5 */
	else if (home == pp->nr)
		take_home(pp, v, r);
	else if (vd_inbox_put(&vd->port[home].limit_inbox, r))
		peer_port_kick(&vd->peer.ports[home]);
}

/* The volume of a request that waited, if it is to be held further; NULL: it was answered, or sent
 * on. */
static struct vd_volume *held_again(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = check_again(pp, r);

	if (!v || is_held(pp, v))
		return v;
	send_on(pp, v, r);
	return NULL;
}

static void inbox_empty(struct peer_port *pp)
{
	struct xreq *r = vd_inbox_take(&vd_port_of(pp)->limit_inbox), *next;
	struct vd_volume *v;

	for (; r; r = next) {
		next = r->next;
		v = held_again(pp, r);
		if (v)
			take_home(pp, v, r);
	}
}

/* All that wait are taken out. The rest of each client's follows its oldest. */
static struct xreq *take_all(struct peer_port *pp, struct vd_limit *l)
{
	struct xreq *all = NULL, **last = &all, *oldest;

	while ((oldest = l->first)) {
		client_take(pp, l, &l->first);
		*last = oldest;
		last = &context_of(pp, oldest)->wait.newest->next;
	}
	waiting_add(pp, l, -(int)atomic_load_explicit(&l->nr_waiting, memory_order_relaxed), false);
	return all;
}

/* The limits are others, or the volume is. */
static void limit_look(struct peer_port *pp, struct vd_limit *l)
{
	struct xreq *r = take_all(pp, l), *next;

	for (; r; r = next) {
		next = r->next;
		if (held_again(pp, r))
			wait_begin(pp, l, r, true);
	}
	l->due_ns = due_of(l);
}

static void look_at_all(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);

	for (struct vd_limit *l = vd->limit; l < vd->limit + VD_SLOTS; l++)
		if (vd_home_of(vd, volume_of(vd, l)) == pp->nr)
			times_renew(pp, l);
	for (struct vd_limit *l = vd_port_of(pp)->limit_list; l; l = l->next)
		limit_look(pp, l);
}

static void limit_run(struct peer_port *pp, struct vd_limit *l)
{
	struct vd_volume *v;
	struct xreq *r;

	while (l->first && due_of(l) <= pp->now_ns) {
		r = wait_end(pp, l);
		v = check_again(pp, r);
		if (!v)
			continue;
		pay(pp, l, r);
		send_on(pp, v, r);
	}
	l->due_ns = due_of(l);
}

/* Those that are due. A volume that has nothing left to wait for leaves the list. */
static void limits_run(struct peer_port *pp)
{
	struct vd_port *port = vd_port_of(pp);
	struct vd_limit **at = &port->limit_list, *l;
	uint64_t due = PEER_NEVER, soonest;

	while ((l = *at)) {
		if (l->due_ns <= pp->now_ns)
			limit_run(pp, l);
		if (!l->first) {
			l->listed = false;
			*at = l->next;
			nr_limits_add(port, UINT32_MAX);
			continue;
		}
		due = peer_earlier(due, l->due_ns);
		at = &l->next;
	}
	/* many looks over many volumes would take all of a thread's time; a burst makes up */
	soonest = pp->now_ns +
		  atomic_load_explicit(&port->nr_limits, memory_order_relaxed) * LOOK_NS;
	port->limit_due_ns = due < soonest ? soonest : due;
}

static bool has_changed(struct vd_port *port)
{
	/* acquire: partner is the release in limits_look() */
	return atomic_load_explicit(&port->limit_look, memory_order_relaxed) &&
	       atomic_exchange_explicit(&port->limit_look, false, memory_order_acquire);
}

uint64_t vd_limit_poll(struct peer_port *pp)
{
	struct vd_port *port = vd_port_of(pp);

	if (atomic_load_explicit(&port->limit_inbox, memory_order_relaxed))
		inbox_empty(pp);
	if (has_changed(port) || (vd_stopping(pp) && port->limit_list)) {
		look_at_all(pp);
		port->limit_due_ns = 0;
	}
	if (port->limit_due_ns <= pp->now_ns)
		limits_run(pp);
	return port->limit_due_ns;
}
