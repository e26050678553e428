/* world - the segment and the peers of a run: how they begin, are killed, lose power and end.
 *
 * Contract: between two steps of the scheduler. world_close() and world_power_loss() step the scheduler themselves.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/cached.h"
#include "peers/common/log.h"
#include "peers/common/peer_box.h"
#include "peers/memd/memd.h"
#include "tests/sim/sim.h"
#include "xseg/internal.h"

static const struct peer_class *const classes[NR_NODES] = { &memd_class, &cached_class, &volumed_class };

/* In the place of peers/common/log.c: a run says nothing of its own. */
void log_line(struct log_site *site, const char *what, const char *fmt, ...)
{
	(void)site;
	(void)what;
	(void)fmt;
}

enum node_id world_top(const struct sim *s)
{
	return s->plan.node[NODE_VOLUMED] ? NODE_VOLUMED : s->plan.node[NODE_CACHED] ? NODE_CACHED : NODE_MEMD;
}

/* ---- nodes ---- */

static const char *downstream_of(const struct sim *s, enum node_id id)
{
	if (id == NODE_CACHED || (id == NODE_VOLUMED && !s->plan.node[NODE_CACHED]))
		return "memd";
	return id == NODE_VOLUMED ? "cached" : "";
}

static void set_options(struct sim *s, struct node *n)
{
	struct xseg_error err = { "" };
	char key[64];
	size_t len;

	for (uint32_t i = 0; i < n->nr_options; i++) {
		len = strcspn(n->option[i], "=");
		memcpy(key, n->option[i], len);
		key[len] = '\0';
		if (opt_set(opt_find(n->cls->opts, key), n->p, n->option[i] + len + 1, &err))
			sim_fail(s, "%s: %s", n->option[i], err.text);
	}
}

/* A tiny cache is a cache of the smallest size that may not use all of its pages. */
static void limit_pages(struct sim *s, struct peer *p)
{
	struct cached *k = cached_of(p);
	uint32_t used = data_pages(k) - k->nr_free;
	uint32_t want = s->plan.cache_pages * (k->nr_pages / XSEG_EXTENT_PAGES) / 2;

	if (want)
		cached_limit_pages(p, want > used ? want - used : 0);
	s->node[NODE_CACHED].nr_pages = k->nr_pages;
}

void world_keep_tiny(struct sim *s)
{
	struct node *n = &s->node[NODE_CACHED];

	if (n->p && n->serving && cached_of(n->p)->nr_pages != n->nr_pages)
		limit_pages(s, n->p);
}

bool world_is_sized(struct sim *s)
{
	struct node *n = &s->node[NODE_CACHED];

	return !s->plan.node[NODE_CACHED] || (n->serving && !resizing(cached_of(n->p)) && shares_kept(cached_of(n->p)));
}

bool node_call(struct sim *s, struct node *n, void (*fn)(struct sim *s, struct node *n, void *arg), void *arg)
{
	jmp_buf back;

	if (!n->cutting) {
		fn(s, n, arg);
		return true;
	}
	if (setjmp(back)) {
		sim_log(s, "%s is cut off", n->cls->kind);
		node_kill(s, (enum node_id)(n - s->node));
		return false;
	}
	cut_arm(n->cut_calls, &back);
	fn(s, n, arg);
	n->cut_calls = cut_disarm();
	return true;
}

static void open_node(struct sim *s, struct node *n, void *arg)
{
	struct xseg_error *err = arg;

	if (peer_open(n->p, s->seg, err))
		sim_fail(s, "%s does not begin: %s", n->cls->kind, err->text);
	if (n->cls == &cached_class && !s->plan.resizes && s->plan.cache_pages)
		cached_cut_pages(n->p);
	if (n->cls == &cached_class)
		limit_pages(s, n->p);
}

void node_start(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];
	struct xseg_error err = { "" };

	n->cls = classes[id];
	n->p = peer_create(n->cls);
	assert(n->p);
	n->p->threads = s->plan.threads[id];
	snprintf(n->p->downstream_name, sizeof(n->p->downstream_name), "%s", downstream_of(s, id));
	set_options(s, n);
	if (id == NODE_CACHED && s->plan.resizes && s->nr_kills && rng_one_in(&s->rng, 4))
		cached_of(n->p)->memory = (4 + 2 * rng_below(&s->rng, 3)) << 20;
	n->p->ports[0].now_ns = s->now;
	n->serving = false;
	memset(n->next_ns, 0, sizeof(n->next_ns));
	sim_log(s, "%s begins", n->cls->kind);
	node_call(s, n, open_node, &err);
}

void node_kill(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];

	sim_log(s, "%s is killed", n->cls->kind);
	peer_close(n->p, XSEG_CLOSE_ABANDON);
	peer_destroy(n->p);
	n->p = NULL;
	n->serving = false;
	n->up_step = s->step + rng_below(&s->rng, 400);
	s->nr_kills++;
	/* some successors are killed while they recover */
	n->cutting = s->issuing && rng_one_in(&s->rng, 4);
	n->cut_calls = rng_below(&s->rng, 30);
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
		n->p->ports[0].now_ns = s->now;
		if (node_call(s, n, try_serve, NULL) && n->serving) {
			s->settled_ns = s->now;
			sim_log(s, "%s serves", n->cls->kind);
		}
	}
}

void nodes_spare(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		s->node[i].cutting = false;
}

void world_check(struct sim *s)
{
	struct node *n = &s->node[NODE_CACHED];

	if (n->p && n->serving)
		cached_check(n->p);
}

static bool all_serving(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (s->plan.node[i] && !s->node[i].serving)
			return false;
	return true;
}

/* ---- the administrator ---- */

void admin_replies(struct sim *s)
{
	struct admin *a = &s->admin;
	struct xreq *r;

	if (!a->port || !xseg_port_replies(a->port, &r, 1))
		return;
	a->result = r->result;
	memcpy(a->text, xseg_page(s->seg, a->page[0]), XSEG_PAGE_SIZE);
	sim_log(s, "admin: -> %" PRIi64, r->result);
	xseg_req_free(a->port, r);
	a->r = NULL;
}

static bool admin_idle(struct sim *s)
{
	return s->admin.r == NULL;
}

void admin_send(struct sim *s, enum node_id id, const char *line)
{
	struct admin *a = &s->admin;

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
	sim_log(s, "admin: %s: %s", s->node[id].cls->kind, line);
	if (xseg_req_submit(a->port, a->r, xseg_peer_find(s->seg, s->node[id].cls->kind)))
		sim_fail(s, "the admin's request was not taken");
	xseg_port_flush(a->port);
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

static void create_volumes(struct sim *s)
{
	const char *at;

	for (uint32_t v = 0; v < s->plan.nr_volumes; v++) {
		if (admin_call(s, NODE_VOLUMED, "volume create vol%u size=%u", v, s->plan.sectors[v] * ORACLE_SECTOR) < 0)
			sim_fail(s, "volume create: %s", s->admin.text);
		at = strstr(s->admin.text, "id=");
		s->volume_id[v] = at ? (uint32_t)strtoul(at + 3, NULL, 10) : 0;
		if (!s->volume_id[v])
			sim_fail(s, "volume create says no id: %s", s->admin.text);
	}
}

/* One segment for all runs, as large as the largest needs: making one costs more than a run. Each begins with its
 * tables as they were when it was new, so that no run depends on those before it. */
static struct xseg *segment(struct sim *s)
{
	static struct xseg *seg;
	static void *tables;
	struct xseg_config cfg = { .memory_bytes = 32u << 20, .nr_requests = 512, .nr_ports = 24, .huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	if (seg) {
		memcpy(seg->base, tables, seg->geo.off_pages);
		memset(seg->pages, 0, (size_t)seg->nr_pages * XSEG_PAGE_SIZE);
		memset(seg->views, 0, seg->geo.nr_requests * sizeof(*seg->views));
		return seg;
	}
	if (xseg_create_private(&cfg, &seg, &err))
		sim_fail(s, "%s", err.text);
	tables = malloc(seg->geo.off_pages);
	assert(tables);
	memcpy(tables, seg->base, seg->geo.off_pages);
	return seg;
}

void world_open(struct sim *s)
{
	s->seg = segment(s);
	oracle_init(&s->oracle, s->plan.nr_volumes, s->plan.sectors, s->plan.node[NODE_CACHED]);
	s->now = 1000 * SEC;
	clients_open(s);
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (s->plan.node[i])
			node_start(s, i);
	sched_run(s, all_serving);
	if (s->plan.node[NODE_VOLUMED])
		create_volumes(s);
}

/* ---- power ---- */

static void bury(struct peer_port *pp, struct xreq *r)
{
	peer_answer(pp, r, -EIO);
}

/* Takes the place of a peer that is gone for good: answers what was at it, so that nothing of it is left. */
static void undertake(struct sim *s, const char *kind)
{
	static const struct opt none[] = { { .name = NULL } };
	const struct peer_class cls = { .kind = kind, .opts = none, .size = sizeof(struct peer), .request = bury };
	struct xseg_error err = { "" };
	struct peer *p = peer_create(&cls);
	uint32_t index;

	assert(p);
	if (peer_open(p, s->seg, &err))
		sim_fail(s, "undertaker: %s", err.text);
	for (uint32_t i = 0; !peer_try_serve(p); i++)
		if (i == 1000)
			sim_fail(s, "requests of a dead %s never end", kind);
	index = xseg_peer_index(p->xp);
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		while (peer_port_step_request(&p->ports[i]))
			;
		peer_port_step_poll(&p->ports[i]);
	}
	peer_close(p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(p);
	if (strcmp(kind, "volumed") == 0 && xseg_peer_forget(s->seg, index))
		sim_fail(s, "a peer that has nothing cannot be forgotten");
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
	for (i = NODE_CACHED; i < NR_NODES; i++)
		if (s->plan.node[i]) {
			node_kill(s, i);
			s->node[i].up_step = UINT64_MAX;
			s->nr_kills--;
		}
	s->leaving = true;
	sched_run(s, store_idle);
	s->leaving = false;
	memd_power_loss(s->node[NODE_MEMD].p);
	oracle_power_loss(&s->oracle);
	if (s->plan.node[NODE_CACHED])
		undertake(s, "cached");
	if (s->plan.node[NODE_VOLUMED])
		undertake(s, "volumed");
	if (s->plan.node[NODE_CACHED] && xseg_peer_forget(s->seg, xseg_peer_find(s->seg, "cached")))
		sim_fail(s, "a cached that has nothing cannot be forgotten");
	if (xseg_sweep(s->seg) != 1)
		sim_fail(s, "the dead clients were not swept");
	s->nr_losses++;
	clients_open(s);
	for (i = NODE_CACHED; i < NR_NODES; i++)
		s->node[i].up_step = 0;
	sched_run(s, all_serving);
	client_read_back(s);
	s->issuing = issuing;
}

/* ---- ending ---- */

static bool is_quiet(struct sim *s)
{
	uint64_t left, total;

	for (uint32_t i = NODE_CACHED; i < NR_NODES; i++) {
		struct peer *p = s->node[i].p;

		if (p && atomic_load(&p->stopping) && (!p->cls->quiesced(p, &left, &total) || peer_outstanding(p)))
			return false;
	}
	return true;
}

/* Nothing is out, so every request of its own is free. */
static void check_free(struct sim *s, const struct peer *p)
{
	for (uint32_t i = 0; i < p->nr_ports; i++)
		if (xseg_port_nr_free(p->ports[i].port) != xseg_port_nr_requests(p->ports[i].port))
			sim_fail(s, "%s is quiet, and %u of %u requests of its port %u are free", p->name,
				 xseg_port_nr_free(p->ports[i].port), xseg_port_nr_requests(p->ports[i].port), i);
}

static void node_stop(struct sim *s, enum node_id id)
{
	struct node *n = &s->node[id];

	if (!n->p)
		return;
	sim_log(s, "%s stops", n->cls->kind);
	atomic_store(&n->p->stopping, true);
	sched_kick(s);
	sched_run(s, is_quiet);
	world_check(s);
	check_free(s, n->p);
	peer_close(n->p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(n->p);
	n->p = NULL;
	n->serving = false;
	s->plan.node[id] = false;
}

/* The cache is gone, orderly: the store alone must have everything. */
static void read_store(struct sim *s)
{
	if (!s->plan.node[NODE_CACHED])
		return;
	node_stop(s, NODE_CACHED);
	if (s->plan.node[NODE_VOLUMED] &&
	    xseg_route_set(s->seg, xseg_peer_index(s->node[NODE_VOLUMED].p->xp), xseg_peer_find(s->seg, "memd")))
		sim_fail(s, "the route cannot be set");
	client_read_back(s);
}

static void problem(const char *text, void *arg)
{
	sim_fail(arg, "xseg check: %s", text);
}

static void forget(struct sim *s, const char *name)
{
	uint32_t index = xseg_peer_find(s->seg, name);
	int rc = index == XSEG_NONE ? 0 : xseg_peer_forget(s->seg, index);

	if (rc)
		sim_fail(s, "%s cannot be forgotten: %s", name, strerror(-rc));
}

void world_close(struct sim *s)
{
	struct xseg_info info;

	sched_run(s, admin_idle);
	read_store(s);
	for (uint32_t i = NR_NODES; i-- > 0;)
		node_stop(s, i);
	xseg_check(s->seg, false, problem, s);
	clients_close(s, XSEG_CLOSE_FREE_ARENA);
	forget(s, "volumed");
	forget(s, "cached");
	forget(s, "memd");
	xseg_check(s->seg, false, problem, s);
	xseg_get_info(s->seg, &info);
	if (info.free_requests != info.nr_requests || info.free_extents != info.nr_extents || info.free_ports != info.nr_ports ||
	    info.bad_count)
		sim_fail(s, "left over: requests %u/%u, extents %u/%u, ports %u/%u are free; bad %" PRIu64, info.free_requests,
			 info.nr_requests, info.free_extents, info.nr_extents, info.free_ports, info.nr_ports, info.bad_count);
	oracle_fini(&s->oracle);
}
