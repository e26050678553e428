/* world - the segment and the peers of a run: how they begin, are killed, lose power and end.
 *
 * Contract: between two steps of the scheduler. world_close() and world_power_loss() step the
 * scheduler themselves.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/life/cached.h"
#include "peers/common/log/log.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/kvd/kvd.h"
#include "peers/memd/memd.h"
#include "tests/sim/sim.h"
#include "xseg/internal.h"

static const struct peer_class *const classes[NR_NODES] = { &memd_class, &cached_class,
	&cached_class, &volumed_class, &beside_class, &kvd_class };

bool is_cache(enum node_id id)
{
	return id == NODE_CACHED_LOW || id == NODE_CACHED;
}

/* In the place of peers/common/log/log.c: a run says nothing of its own. */
void log_line(struct log_site *site, const char *what, const char *fmt, ...)
{
	(void)site;
	(void)what;
	(void)fmt;
}

static uint64_t randoms;				/* of the run */

/* In the place of the C library's: what is random follows from the seed. */
ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags)
{
	uint8_t *at = to;

	(void)flags;
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(rng_mix(randoms++) >> 16);
	return (ssize_t)bytes;
}

enum node_id world_top(const struct sim *s)
{
	enum node_id id = NR_STACKED - 1;

	while (!s->plan.node[id])
		id--;
	return id;
}

/* ---- nodes ---- */

/* The node below; of memd there is none: itself. What stands beside volumed is above the same. */
static enum node_id below(const struct sim *s, enum node_id id)
{
	if (id >= NODE_BESIDE)
		id = NODE_VOLUMED;
	while (id > NODE_MEMD && !s->plan.node[--id])
		;
	return id;
}

/* Where it is started to send to; "": the cache waits to be plugged. */
static const char *downstream_of(const struct sim *s, enum node_id id)
{
	bool off = s->plan.off && s->plan.node[NODE_VOLUMED] && s->plan.node[NODE_CACHED];

	if (off && id == NODE_CACHED)
		return "";
	return node_name(below(s, off && id >= NODE_VOLUMED ? NODE_CACHED : id));
}

static void set_options(struct sim *s, enum node_id id)
{
	struct peer *p = s->node[id].p;
	struct xseg_error err = { "" };
	char key[64];
	size_t len;

	for (uint32_t i = 0; i < s->nr_items; i++) {
		const struct item *it = &s->item[i];

		if (it->act != ACT_OPTION || it->node != id || it->left_out)
			continue;
		len = strcspn(it->text, "=");
		memcpy(key, it->text, len);
		key[len] = '\0';
		if (opt_set(opt_find(p->cls->opts, key), p, it->text + len + 1, &err))
			sim_fail(s, "%s: %s", it->text, err.text);
	}
}

/* A tiny cache is a cache of the smallest size that may not use all of its pages. What its reserve
 * lacks, as an extent that left had it, is free as long as it is not filled again. */
static void limit_pages(struct sim *s, struct node *n)
{
	struct cached *k = cached_of(n->p);
	uint32_t lacks = k->memory.reserve.size - k->memory.reserve.nr;
	uint32_t used = data_pages(k) + lacks - k->memory.nr_free;
	uint32_t want = s->plan.cache_pages * (k->memory.nr_pages / XSEG_EXTENT_PAGES) / 2;

	if (want)
		cached_limit_pages(n->p, want + lacks > used ? want + lacks - used : 0);
	n->nr_pages = k->memory.nr_pages;
}

void world_keep_tiny(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++) {
		struct node *n = &s->node[i];

		if (is_cache(i) && n->p && n->serving &&
			cached_of(n->p)->memory.nr_pages != n->nr_pages)
			limit_pages(s, n);
	}
}

/* Where two caches grow, the segment may have too little for both: one of them waits. */
static bool is_sized(struct sim *s, struct node *n)
{
	struct cached *k = cached_of(n->p);

	return shares_kept(k) && (!resizing(k) || (nr_owned(k) < k->memory.target_pages &&
							  xseg_nr_free_pages(s->seg) == 0));
}

bool world_is_sized(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (is_cache(i) && s->plan.node[i] &&
			(!s->node[i].serving || !is_sized(s, &s->node[i])))
			return false;
	return true;
}

bool node_call(struct sim *s, struct node *n, void (*fn)(struct sim *s, struct node *n, void *arg),
	void *arg)
{
	jmp_buf back;

	if (!n->cutting) {
		fn(s, n, arg);
		return true;
	}
	if (setjmp(back)) {
		sim_log(s, "%s is cut off", node_name((enum node_id)(n - s->node)));
		node_die(s, (enum node_id)(n - s->node));
		return false;
	}
	cut_arm(n->cut_calls, n->death ? (enum aim)n->death->aim : AIM_ANY, &back);
	fn(s, n, arg);
	n->cut_calls = cut_disarm();
	return true;
}

static void open_node(struct sim *s, struct node *n, void *arg)
{
	struct xseg_error *err = arg;

	if (peer_open(n->p, s->seg, err))
		sim_fail(s, "%s does not begin: %s", n->p->name, err->text);
	if (s->near && xseg_near_add(s->near, n->p->ports[0].port))
		sim_fail(s, "%s does not join the others", n->p->name);
	if (n->cls == &cached_class && !s->plan.resizable && s->plan.cache_pages)
		cached_cut_pages(n->p);
	if (n->cls == &cached_class)
		limit_pages(s, n);
}

/* Smaller than any log that is of use: so zones are sealed, emptied and deleted all the time. What
 * --with takes away is no option of the script. */
static void size_log(const struct sim *s, struct peer *p)
{
	struct kvd *k = (struct kvd *)p;

	k->opt.zone_bytes = s->plan.zone_pages * XSEG_PAGE_SIZE;
	k->opt.size_bytes = k->opt.zone_bytes * s->plan.zones;
	k->opt.tail_bytes = s->plan.tail_pages * XSEG_PAGE_SIZE;
	k->paged.least = s->plan.paged_least;
	k->opt.full = s->plan.evicts ? KVD_EVICT : KVD_REFUSE;
}

void node_set_time(struct sim *s, struct node *n, uint32_t port)
{
	n->p->ports[port].now_ns = s->now;
	if (n->cls->dates)
		n->p->ports[port].date_s = values_date(s);
}

static void node_start(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];
	struct xseg_error err = { "" };

	n->cls = classes[id];
	n->p = peer_create(n->cls);
	assert(n->p);
	n->p->threads = s->plan.threads[id];
	snprintf(n->p->name, sizeof(n->p->name), "%s", node_name(id));
	if (id != NODE_MEMD)
		snprintf(n->p->downstream_name, sizeof(n->p->downstream_name), "%s",
			downstream_of(s, id));
	set_options(s, id);
	if (is_cache(id) && n->death && n->death->memory)
		options_of(cached_of(n->p))->memory = (uint64_t)n->death->memory << 20;
	if (id == NODE_KVD)
		size_log(s, n->p);
	node_set_time(s, n, 0);
	n->serving = false;
	memset(n->next_ns, 0, sizeof(n->next_ns));
	if (n->death)
		scribbled(s, id, n->death);
	sim_log(s, "%s begins", node_name(id));
	node_call(s, n, open_node, &err);
}

static void node_kill(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];

	sim_log(s, "%s is killed", node_name(id));
	if (is_cache(id))
		started_check_kill(s, n);
	peer_close(n->p, XSEG_CLOSE_ABANDON);
	peer_destroy(n->p);
	n->p = NULL;
	n->serving = false;
	n->up_step = s->step + (n->death ? n->death->down : 0);
	s->nr_kills++;
	n->cutting = s->issuing && n->death && n->deaths < MAX_AGAIN && n->death->again[n->deaths];
	if (n->cutting)
		n->cut_calls = n->death->again[n->deaths++] - 1;
}

void node_die(struct sim *s, enum node_id id)
{
	const struct item *it = s->node[id].death;

	node_kill(s, id);
	for (uint32_t i = 0; it && i < NR_NODES; i++) {
		struct node *n = &s->node[i];

		if (!(s->near || it->with & 1u << i) || i == id || !s->plan.node[i] || !n->p)
			continue;
		n->death = it;
		n->deaths = MAX_AGAIN;
		node_kill(s, i);
	}
}

static void try_serve(struct sim *s, struct node *n, void *arg)
{
	(void)s;
	(void)arg;
	n->serving = peer_try_serve(n->p);
}

void node_tend(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++) {
		struct node *n = &s->node[i];

		if (!s->plan.node[i] || n->serving)
			continue;
		if (!n->p && s->step >= n->up_step)
			node_start(s, i);
		if (!n->p)
			continue;
		node_set_time(s, n, 0);
		if (node_call(s, n, try_serve, NULL) && n->serving) {
			s->settled_ns = s->now;
			n->ran = true;
			sim_log(s, "%s serves", node_name(i));
		}
	}
}

void nodes_spare(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		s->node[i].cutting = false;
}

static void check_polls(struct sim *s, struct node *n)
{
	struct cached *k = cached_of(n->p);
	uint64_t soonest = PEER_NEVER;

	for (uint32_t i = 0; i < n->p->nr_ports; i++) {
		if (n->next_ns[i] > s->now && atomic_load(&store_port(cport_at(k, i))->returned))
			sim_fail(s, "%s: a request was returned to a port, which was not told",
				n->p->name);
		if (n->next_ns[i] < soonest)
			soonest = n->next_ns[i];
	}
	if (k->flush.throttle.head && soonest > s->now &&
		soonest > k->flush.throttle.head->change.until_ns)
		sim_fail(s, "%s: a write is slowed, and no port is going to let it go in time",
			n->p->name);
}

void world_check(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++) {
		if (!is_cache(i) || !s->node[i].serving || !s->node[i].ran)
			continue;
		cached_check(s->node[i].p);
		if (s->plan.loans)
			cached_check_loans(s->node[i].p);
		s->node[i].ran = false;
	}
}

static void problem(const char *text, void *arg)
{
	sim_fail(arg, "xseg check: %s", text);
}

void world_check_segment(struct sim *s)
{
	xseg_check(s->seg, false, problem, s);
}

/* Requests that another port's thread is done with, and writes that are slowed. */
void world_check_polls(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (is_cache(i) && s->node[i].serving)
			check_polls(s, &s->node[i]);
}

static bool all_serving(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (s->plan.node[i] && !s->node[i].serving)
			return false;
	return true;
}

/* ---- the administrator ---- */

bool line_reply(struct sim *s, struct admin *a)
{
	struct xreq *r;

	if (!a->port || !xseg_port_replies(a->port, &r, 1))
		return false;
	a->result = r->result;
	memcpy(a->text, xseg_page(s->seg, a->page[0]), XSEG_PAGE_SIZE);
	sim_log(s, "admin: -> %" PRIi64, r->result);
	xseg_req_free(a->port, r);
	a->r = NULL;
	return true;
}

void admin_replies(struct sim *s)
{
	if (line_reply(s, &s->admin))
		s->dropping = false;
}

static bool admin_idle(struct sim *s)
{
	return s->admin.r == NULL;
}

void line_submit(struct sim *s, struct admin *a, enum node_id id, const char *line)
{
	a->r = xseg_req_alloc(a->port);
	if (!a->r)
		sim_fail(s, "the admin has no request left: leaked");
	a->r->op = XSEG_OP_ADMIN;
	a->r->nr_pages = ADMIN_PAGES;
	a->r->size = ADMIN_PAGES * XSEG_PAGE_SIZE;
	memcpy(a->r->page, a->page, sizeof(a->r->page[0]) * ADMIN_PAGES);
	memset(xseg_page(s->seg, a->page[0]), 0, XSEG_PAGE_SIZE);
	memcpy(xseg_page(s->seg, a->page[0]), line, strlen(line) + 1);
	a->r->hash = rng_next(&s->rng);
	sim_log(s, "admin: %s: %s", node_name(id), line);
	if (xseg_req_submit(a->port, a->r, xseg_peer_find(s->seg, node_name(id))))
		sim_fail(s, "the admin's request was not taken");
	xseg_port_flush(a->port);
}

void admin_send(struct sim *s, enum node_id id, const char *line)
{
	s->dropping = strcmp(line, "drop") == 0;
	line_submit(s, &s->admin, id, line);
}

int64_t admin_call(struct sim *s, enum node_id id, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	sched_run(s, admin_idle);
	admin_send(s, id, line);
	sched_run(s, admin_idle);
	return s->admin.result;
}

/* ---- beginning ---- */

/* In half of the runs what counts begins at its largest value less some. */
static void begin_counting(struct sim *s, struct xseg *seg)
{
	if (s->seed % 2 == 0)
		return;
	/* places have 20 bits of it */
	atomic_store(&seg->super->generation, s->seed % 4 == 1 ? 0xfffffu - 10 : UINT32_MAX - 10);
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++)
		atomic_store(&seg->reqs[i].place, place_word(XSEG_REQ_FREE, 0, 0, (uint32_t)-100));
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		atomic_store(&seg->bells[i].word, (uint32_t)-100);
}

/* One segment for all runs, as large as the largest needs: making one costs more than a run. Each
 * begins with its tables as they were when it was new, so that no run depends on those before
 * it. */
static struct xseg *segment(struct sim *s)
{
	static struct xseg *segs[2];
	static void *all_tables[2];
	bool large = s->plan.node[NODE_KVD];
	struct xseg *seg = segs[large];
	void *tables = all_tables[large];
	struct xseg_config cfg = { .memory_bytes = large ? 64u << 20 : 32u << 20,
		.nr_requests = 768,
		.nr_ports = 32,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	if (seg) {
		for (uint32_t i = 0; i < seg->geo.nr_extents; i++)
			if (seg->extents[i].dirty)
				memset(xseg_page(seg, i * XSEG_EXTENT_PAGES), 0, XSEG_EXTENT_SIZE);
		memcpy(seg->base, tables, seg->geo.off_pages);
		memset(seg->views, 0, views_bytes(seg));
		return seg;
	}
	if (xseg_create_private(&cfg, &seg, &err))
		sim_fail(s, "%s", err.text);
	tables = malloc(seg->geo.off_pages);
	assert(tables);
	segs[large] = seg;
	all_tables[large] = tables;
	memcpy(tables, seg->base, seg->geo.off_pages);
	return seg;
}

void world_open(struct sim *s)
{
	randoms = s->seed << 20;
	s->seg = segment(s);
	begin_counting(s, s->seg);
	s->near = s->plan.near ? xseg_near_create(s->seg) : NULL;
	oracle_init(&s->oracle, s->plan.nr_volumes, s->plan.sectors,
		is_cache(world_top(s)) || is_cache(below(s, world_top(s))));
	s->oracle.fails = script_has(s, ACT_FAULT);
	s->waits = promise_waits(s);
	started_watch(s);
	parts_watch(s);
	spared_watch(s);
	s->now = BEGIN_NS;
	clients_open(s);
	if (s->plan.node[NODE_KVD])
		values_open(s);
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (s->plan.node[i])
			node_start(s, i);
	sched_run(s, all_serving);
	if (s->values)
		values_learn(s);
	s->has_volumed = s->plan.node[NODE_VOLUMED];
	keeper_open(s);
}

/* ---- plugging ---- */

static bool is_plugging(struct sim *s, enum node_id id)
{
	struct xseg_peer_info info;

	return is_cache(id) && s->plan.node[id] &&
	       xseg_peer_get_info(s->seg, xseg_peer_find(s->seg, node_name(id)), &info) &&
	       info.plug != XSEG_PLUG_NONE;
}

bool world_is_plugging(struct sim *s)
{
	for (uint32_t id = 0; id < NR_NODES; id++)
		if (is_plugging(s, id))
			return true;
	return false;
}

/* What was wanted is lost with the segment. */
static void take_back_all(struct sim *s)
{
	for (uint32_t id = 0; id < NR_NODES; id++)
		if (is_plugging(s, id) &&
			xseg_plug_cancel(s->seg, xseg_peer_find(s->seg, node_name(id)), NULL))
			sim_fail(s, "what is under way cannot be taken back");
}

static uint32_t route_of(struct sim *s, uint32_t peer)
{
	struct xseg_peer_info info;

	return xseg_peer_get_info(s->seg, peer, &info) ? info.downstream : XSEG_NONE;
}

/* The peer of this run that sends to that one, or XSEG_NONE. */
static uint32_t upper_of(struct sim *s, uint32_t lower)
{
	for (uint32_t id = 0; id < NR_NODES; id++) {
		uint32_t peer = s->plan.node[id] ? xseg_peer_find(s->seg, node_name(id))
						 : XSEG_NONE;

		if (peer != XSEG_NONE && route_of(s, peer) == lower)
			return peer;
	}
	return XSEG_NONE;
}

/* All that do, but one. */
static uint32_t uppers_of(struct sim *s, uint32_t lower, uint32_t but, uint32_t upper[NR_NODES])
{
	uint32_t nr = 0;

	for (uint32_t id = 0; id < NR_NODES; id++) {
		uint32_t peer = s->plan.node[id] ? xseg_peer_find(s->seg, node_name(id))
						 : XSEG_NONE;

		if (peer != XSEG_NONE && peer != but && route_of(s, peer) == lower)
			upper[nr++] = peer;
	}
	return nr;
}

/* Below volumed and what is beside it, or right above the store. */
static int enter(struct sim *s, enum node_id id, uint32_t cache, struct xseg_error *err)
{
	uint32_t lower = xseg_peer_find(s->seg, node_name(NODE_MEMD)), upper[NR_NODES], nr;

	if (id == NODE_CACHED)
		lower = route_of(s, xseg_peer_find(s->seg, node_name(NODE_VOLUMED)));
	nr = lower == XSEG_NONE ? 0 : uppers_of(s, lower, cache, upper);
	return nr ? xseg_plug(s->seg, cache, upper, nr, lower, err) : -EHOSTDOWN;
}

void world_plug(struct sim *s, const struct item *it)
{
	struct xseg_error err = { "" };
	const char *what = "unplug";
	uint32_t cache;
	int rc;

	/* clients do not follow a cache that they send to */
	if (!s->plan.node[it->node] || it->node == world_top(s))
		return;
	sched_sleep(s, it);
	cache = xseg_peer_find(s->seg, node_name(it->node));
	if (cache == XSEG_NONE ||
		(upper_of(s, cache) == XSEG_NONE && route_of(s, cache) != XSEG_NONE &&
			!is_plugging(s, it->node)))
		return;
	if (is_plugging(s, it->node)) {
		if (it->nr == 0)
			return;
		what = "unplug --cancel";
		rc = xseg_plug_cancel(s->seg, cache, &err);
		rc = rc == -ENOENT ? 0 : rc;	/* it was at its last step */
	} else if (upper_of(s, cache) != XSEG_NONE) {
		rc = xseg_unplug(s->seg, cache, &err);
	} else {
		what = "plug";
		rc = enter(s, it->node, cache, &err);
	}
	sim_log(s, "admin: %s %s: %s", what, node_name(it->node), rc ? err.text : "ok");
	/* one of them is dead just now, or the other cache is being plugged beside it */
	if (rc && rc != -EHOSTDOWN && !(rc == -EBUSY && world_is_plugging(s)))
		sim_fail(s, "%s: %s", what, err.text);
	s->nr_plugs += rc == 0;
}

/* ---- power ---- */

static void bury(struct peer_port *pp, struct xreq *r)
{
	peer_answer(pp, r, -EIO);
}

/* Takes the place of a peer that is gone for good: answers what was at it, so that nothing of it is
 * left. */
static void undertake(struct sim *s, enum node_id id)
{
	static const struct opt none[] = { { .name = NULL } };
	const struct peer_class cls = { .kind = classes[id]->kind,
		.opts = none,
		.size = sizeof(struct peer),
		.request = bury };
	struct xseg_error err = { "" };
	struct peer *p = peer_create(&cls);

	assert(p);
	snprintf(p->name, sizeof(p->name), "%s", node_name(id));
	if (peer_open(p, s->seg, &err))
		sim_fail(s, "undertaker: %s", err.text);
	for (uint32_t i = 0; !peer_try_serve(p); i++)
		if (i == 1000)
			sim_fail(s, "requests of a dead %s never end", node_name(id));
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		while (peer_port_step_request(&p->ports[i]))
			;
		peer_port_step_poll(&p->ports[i]);
	}
	peer_close(p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(p);
}

static void forget(struct sim *s, enum node_id id)
{
	uint32_t index = xseg_peer_find(s->seg, node_name(id));
	int rc = index == XSEG_NONE ? 0 : xseg_peer_forget(s->seg, index);

	if (rc)
		sim_fail(s, "%s, which has nothing, cannot be forgotten: %s", node_name(id),
			strerror(-rc));
}

/* Nothing is at the store, nor on its way out of it. */
static bool store_idle(struct sim *s)
{
	struct peer *p = s->node[NODE_MEMD].p;
	bool any = false;

	for (uint32_t i = 0; i < p->nr_ports; i++) {
		p->ports[i].now_ns = s->now;
		if (!peer_port_step_request(&p->ports[i]))
			continue;
		s->node[NODE_MEMD].next_ns[i] = 0;
		any = true;
	}
	return !any && peer_outstanding(p) == 0;
}

/* All but the store's durable data is gone: kills everything, buries it, and begins anew. */
void world_power_loss(struct sim *s)
{
	bool issuing = s->issuing;
	uint32_t i;

	sim_log(s, "power is lost");
	s->issuing = false;
	nodes_spare(s);
	sched_run(s, all_serving);
	clients_close(s, XSEG_CLOSE_ABANDON);
	if (s->values)
		values_die(s);
	for (i = NODE_MEMD + 1; i < NR_NODES; i++)
		if (s->plan.node[i]) {
			node_kill(s, i);
			s->node[i].up_step = UINT64_MAX;
			s->nr_kills--;
		}
	s->leaving = true;
	sched_run(s, store_idle);
	s->leaving = false;
	take_back_all(s);
	memd_power_loss(s->node[NODE_MEMD].p);
	bad_mend();
	oracle_power_loss(&s->oracle);
	keeper_lost(s, true);
	for (i = NODE_MEMD + 1; i < NR_NODES; i++)
		if (s->plan.node[i])
			undertake(s, i);
	if (xseg_sweep(s->seg) != 1u + (s->values != NULL))
		sim_fail(s, "the dead clients were not swept");
	for (i = NR_NODES; --i > NODE_MEMD;)
		forget(s, i);
	s->nr_losses++;
	clients_open(s);
	for (i = NODE_MEMD + 1; i < NR_NODES; i++) {
		s->node[i].up_step = 0;
		/* the stack's options again: a successor's may want more than is left */
		s->node[i].death = NULL;
	}
	sched_run(s, all_serving);
	sched_run(s, keeper_idle);
	client_read_back(s);
	if (s->values)
		values_again(s, true);
	s->issuing = issuing;
}

static bool clients_are_buried(struct sim *s)
{
	xseg_sweep(s->seg);
	return xseg_peer_find(s->seg, clients_name(s)) == XSEG_NONE &&
	       (!s->values || xseg_peer_find(s->seg, values_name(s)) == XSEG_NONE);
}

/* Their requests that others have are answered, and then nothing is left of them: whether a write
 * of theirs was done is known to nobody. */
void world_clients_die(struct sim *s)
{
	uint32_t write[MAX_CLIENTS * MAX_DEPTH], nr;
	bool issuing = s->issuing;

	sim_log(s, "the clients die");
	s->issuing = false;
	nr = clients_die(s, write);
	if (s->values)
		values_die(s);
	sched_run(s, clients_are_buried);
	while (nr)
		oracle_write_end(&s->oracle, write[--nr], false);
	s->nr_deaths++;
	clients_open(s);
	if (s->values)
		values_again(s, false);
	keeper_lost(s, false);
	s->issuing = issuing;
}

/* ---- ending ---- */

static bool is_quiet(struct sim *s)
{
	uint64_t left;

	for (uint32_t i = NODE_MEMD + 1; i < NR_NODES; i++) {
		struct peer *p = s->node[i].p;

		if (p && atomic_load(&p->stopping) &&
			(!p->cls->quiesced(p, &left) || peer_outstanding(p)))
			return false;
	}
	return true;
}

/* Nothing is out, so every request of its own is free. */
static void check_free(struct sim *s, const struct peer *p)
{
	for (uint32_t i = 0; i < p->nr_ports; i++)
		if (xseg_port_nr_free(p->ports[i].port) != xseg_port_nr_requests(p->ports[i].port))
			sim_fail(s, "%s is quiet, and %u of %u requests of its port %u are free",
				p->name, xseg_port_nr_free(p->ports[i].port),
				xseg_port_nr_requests(p->ports[i].port), i);
}

static void node_stop(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];

	if (!n->p)
		return;
	sim_log(s, "%s stops", node_name(id));
	atomic_store(&n->p->stopping, true);
	sched_kick(s);
	sched_run(s, is_quiet);
	world_check(s);
	if (is_cache(id))
		cached_check_idle(n->p);
	check_free(s, n->p);
	peer_close(n->p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(n->p);
	n->p = NULL;
	n->serving = false;
	s->plan.node[id] = false;
}

/* Takes a cache that is on the path out of it, as an administrator who stops it first. What it had
 * is stable then, and outlives a loss of power; but for what was written past it while it was off
 * the path. */
static void stop_cache(struct sim *s, enum node_id id)
{
	uint32_t cache = xseg_peer_find(s->seg, node_name(id)), lower = route_of(s, cache),
		 upper[NR_NODES], nr = uppers_of(s, cache, XSEG_NONE, upper);

	node_stop(s, id);
	while (nr)
		if (xseg_route_set(s->seg, upper[--nr], lower))
			sim_fail(s, "the route cannot be set");
	if (s->plan.track && s->nr_plugs == 0) {
		sched_run(s, store_idle);
		memd_power_loss(s->node[NODE_MEMD].p);
	}
}

/* A cache is gone, orderly: what is below must have everything. */
static void read_store(struct sim *s)
{
	for (enum node_id id = NR_NODES - 1; id > NODE_MEMD; id--)
		if (is_cache(id) && s->plan.node[id] &&
			route_of(s, xseg_peer_find(s->seg, node_name(id))) == XSEG_NONE)
			node_stop(s, id);
	for (enum node_id id = NR_NODES - 1; id > NODE_MEMD; id--) {
		if (!is_cache(id) || !s->plan.node[id])
			continue;
		stop_cache(s, id);
		client_read_back(s);
	}
}

/* S11. Those of volumes are by the system's clock (measure.c). */
static void check_latencies(struct sim *s)
{
	static struct xseg_stats_view view;

	for (uint32_t i = 0; i < xseg_nr_stats(s->seg); i++)
		if (xseg_stats_view(s->seg, i, &view) && strcmp(view.kind, "volume") != 0 &&
			view.lat.max > s->now - BEGIN_NS)
			sim_fail(s, "%s counts a request that took longer than the run", view.name);
}

/* What it has is stable then, wherever it is below. */
static void stop_kvd(struct sim *s)
{
	struct kvd *k;
	struct alog_stats st;

	bad_mend();
	values_read_back(s);
	k = (struct kvd *)s->node[NODE_KVD].p;
	alog_stats(k->log, &st);
	sim_log(s, "the log of kvd, since it began last: %" PRIu64 " records, %" PRIu64
		" bytes copied, %" PRIu64 " zones deleted, %" PRIu64 " repairs, %" PRIu64
		" values evicted, %" PRIu64 " bytes preloaded", st.records, st.copied_bytes,
		st.zones_deleted, st.repairs, xseg_stats_get(k->stats, KS_EVICTED),
		xseg_stats_get(k->stats, KS_PRELOADED_BYTES));
	node_stop(s, NODE_KVD);
	forget(s, NODE_KVD);
}

/* The store alone has all values. */
static void read_values(struct sim *s)
{
	struct node *n = &s->node[NODE_KVD];

	s->plan.node[NODE_KVD] = true;
	n->death = NULL;
	node_start(s, NODE_KVD);
	sched_run(s, all_serving);
	values_preloaded(s);
	values_read_back(s);
	sched_run(s, values_own_known);
	node_stop(s, NODE_KVD);
	values_close(s);
}

void world_close(struct sim *s)
{
	struct xseg_info info;

	sched_run(s, admin_idle);
	if (s->values)
		stop_kvd(s);
	read_store(s);
	if (s->values)
		read_values(s);
	check_latencies(s);
	for (uint32_t i = NR_NODES; i-- > NODE_MEMD + 1;)
		node_stop(s, i);
	keeper_check_leaks(s);
	node_stop(s, NODE_MEMD);
	world_check_segment(s);
	clients_close(s, XSEG_CLOSE_FREE_ARENA);
	for (uint32_t i = NR_NODES; i-- > 0;)
		forget(s, i);
	world_check_segment(s);
	xseg_get_info(s->seg, &info);
	if (info.idle_requests != info.nr_requests || info.free_extents != info.nr_extents ||
		info.free_ports + info.reserve_ports != info.nr_ports || info.bad_count)
		sim_fail(s,
			"left over: requests %u/%u, extents %u/%u, ports %u/%u are free; bad "
			"%" PRIu64,
			info.idle_requests, info.nr_requests, info.free_extents, info.nr_extents,
			info.free_ports + info.reserve_ports, info.nr_ports, info.bad_count);
	oracle_fini(&s->oracle);
	xseg_near_destroy(s->near);
}
