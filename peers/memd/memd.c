/* memd - see memd.h for its purpose, its contract and its invariants.
 *
 * The way of a request: memd_request() checks it. If nothing is configured and nothing is in
 * flight, the request is applied and answered there. Otherwise it becomes an op:
 *
 *   1  It waits in the order for the ops that it overlaps.
 *   2  It begins: the model says when it will be done and whether it fails.
 *   3  It lies in its port's heap until then.
 *   4  It is applied, answered, and leaves the order. The order hands out the ops that waited for
 *      it.
 */
#include "peers/memd/memd.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "peers/common/blocker/failures.h"
#include "peers/common/blocker/listing.h"
#include "peers/common/log/log.h"
#include "peers/common/blocker/ops.h"
#include "peers/common/blocker/shape.h"
#include "peers/common/blocker/usage.h"
#include "peers/common/say/space.h"
#include "peers/memd/memd_heap.h"
#include "peers/memd/memd_model.h"
#include "peers/memd/memd_store.h"

#define OPS_SPARE  (2 * PEER_MAX_THREADS)	/* ops between answer and order_leave() */
#define LIST_LOOKS 16384u	/* entries of the table that one LIST looks at */
#define COUNT_PAGES 2048u	/* that one step of a count looks at */
#define SPACE_LOOK_NS UINT64_C(1000000000)

struct memd_op {
	struct order_op order;			/* first: the order hands out its address */
	struct xreq *r;
	struct memd_verdict verdict;
	struct memd_timer timer;		/* in its port's heap while it is delayed */
	bool again;				/* a predecessor may have done it */
	char source[XSEG_TARGET_MAX]; /* COPY: the object it copies from; r->user points here */
};

struct memd {
	struct peer peer;
	/* options */
	uint64_t memory_bytes;
	struct memd_timing timing;
	char fail[1024];
	uint64_t seed;
	bool is_volatile, track_flush;

	struct memd_store store;
	struct memd_model model;
	struct order order;
	void *base;
	uint64_t base_bytes;
	struct memd_heap heap[PEER_MAX_THREADS];
	struct failures failures;
	struct usage usage;
	_Atomic uint32_t count_port;	/* that counts for `usage`; MEMD_NONE: none does */
	uint32_t count_page;			/* where it goes on; that port's */
	uint64_t space_due_ns;		/* port 0's: when to look how much room is left */
	bool space_low;				/* port 0's: that was told */
	struct ops_table ops;
};

static struct memd *memd_of(struct peer *p)
{
	return (struct memd *)p;
}

/* ---- what requests do -------------------------------------------------------------------- */

static void *req_page(struct memd *m, const struct xreq *r, uint32_t i)
{
	return xseg_page(m->peer.seg, r->page[i] & XSEG_PAGE_INDEX);
}

static int64_t apply_read(struct memd *m, struct xreq *r, uint32_t size)
{
	const void *page[XSEG_REQ_PAGES] = { 0 };
	uint32_t nr = xseg_req_span(r->obj_offset, size), i;
	uint32_t from = (uint32_t)(r->obj_offset % XSEG_PAGE_SIZE), left = size, len;
	uint32_t object = memd_object_find(&m->store, r->hash, r->target);

	if (object != MEMD_NONE)
		memd_store_get(&m->store, object, (uint32_t)(r->obj_offset / XSEG_PAGE_SIZE), nr,
			page);
	for (i = 0; i < nr; i++, left -= len, from = 0) {
		len = XSEG_PAGE_SIZE - from < left ? XSEG_PAGE_SIZE - from : left;
		if (object != MEMD_NONE && page[i])
			memcpy((uint8_t *)req_page(m, r, i) + from, (const uint8_t *)page[i] + from,
				len);
		else
			memset((uint8_t *)req_page(m, r, i) + from, 0, len);
	}
	return size;
}

static int64_t put(struct memd *m, struct xreq *r, uint32_t size, const void *const *src)
{
	int rc;

	if (!size)
		return memd_object_make(&m->store, r->hash, r->target) == MEMD_NONE ? -ENOSPC : 0;
	rc = memd_store_write(&m->store, r->hash, r->target, r->obj_offset, size, src,
		r->flags & XSEG_REQ_FUA);
	return rc ? rc : (int64_t)size;
}

static int64_t apply_write(struct memd *m, struct xreq *r, uint32_t size)
{
	const void *src[XSEG_REQ_PAGES];
	uint32_t nr = xseg_req_span(r->obj_offset, size), i;

	for (i = 0; i < nr; i++)
		src[i] = req_page(m, r, i);
	return put(m, r, size, src);
}

/* DISCARD and WRITE_ZEROES: a hole stays a hole. */
static int64_t apply_zeroes(struct memd *m, struct xreq *r, uint32_t size)
{
	static const void *const none[XSEG_REQ_PAGES];
	bool fua = r->flags & XSEG_REQ_FUA;
	uint32_t object = fua ? memd_object_find_lost(&m->store, r->hash, r->target) :
				memd_object_find(&m->store, r->hash, r->target);
	int rc;

	if (object == MEMD_NONE || !size)
		return size;
	rc = memd_store_put(&m->store, object, r->obj_offset, size, none, fua);
	return rc ? rc : (int64_t)size;
}

static int64_t apply_copy(struct memd *m, struct xreq *r, uint32_t size)
{
	const void *src[XSEG_REQ_PAGES] = { 0 };
	const char *source = r->user;
	uint32_t from = memd_object_find(&m->store, xseg_hash(source, strlen(source)), source);
	uint32_t nr = xseg_req_span(r->obj_offset, size);

	if (from == MEMD_NONE)
		return -ENOENT;
	memd_store_get(&m->store, from, (uint32_t)(r->obj_offset / XSEG_PAGE_SIZE), nr, src);
	return put(m, r, size, src);
}

static int64_t apply_flush(struct memd *m, struct xreq *r, uint32_t size)
{
	(void)r;
	(void)size;
	memd_store_flush(&m->store);
	return 0;
}

static int64_t apply_info(struct memd *m, struct xreq *r, uint32_t size)
{
	uint32_t object = memd_object_find(&m->store, r->hash, r->target);

	(void)size;
	return object == MEMD_NONE ? -ENOENT : (int64_t)memd_object_end(&m->store, object);
}

static int64_t apply_delete(struct memd *m, struct xreq *r, uint32_t size)
{
	uint32_t object = memd_object_find(&m->store, r->hash, r->target);

	(void)size;
	if (object == MEMD_NONE)
		return -ENOENT;
	memd_object_delete(&m->store, object);
	return 0;
}

/* The cursor is the index of the next object in the table (D5). */
static int64_t apply_list(struct memd *m, struct xreq *r, uint32_t size)
{
	uint64_t at = r->obj_offset, end = m->store.nr_pages;
	char name[XSEG_TARGET_MAX];
	struct listing l;
	uint32_t looks;

	(void)size;
	if (at >= end)
		return -ESTALE;
	listing_begin(&l, m->peer.seg, r);
	for (looks = 0; at < end && looks < LIST_LOOKS; at++, looks++)
		if (memd_object_name(&m->store, (uint32_t)at, name) && listing_wants(r, name) &&
			!listing_add(&l, name))
			break;
	return listing_end(&l, at < end ? at : 0);
}

static int64_t (*const applies[XSEG_NR_OPS])(struct memd *m, struct xreq *r, uint32_t size) = {
	[XSEG_OP_READ] = apply_read, [XSEG_OP_WRITE] = apply_write, [XSEG_OP_FLUSH] = apply_flush,
	[XSEG_OP_DISCARD] = apply_zeroes, [XSEG_OP_WRITE_ZEROES] = apply_zeroes,
	[XSEG_OP_COPY] = apply_copy, [XSEG_OP_INFO] = apply_info, [XSEG_OP_DELETE] = apply_delete,
	[XSEG_OP_LIST] = apply_list,
};

/* Of a range: what is about no bytes has none. */
static uint32_t size_of(const struct xreq *r)
{
	return shapes[r->op].range == SHAPE_BYTES ? r->size : 0;
}

/* What the request does, of which the model may have made less or nothing. It is STARTED before it
 * changes anything (D4). */
static int64_t apply(
	struct peer_port *pp, struct xreq *r, const struct memd_verdict *v, bool again)
{
	struct memd *m = memd_of(pp->peer);
	uint32_t size = size_of(r);
	int64_t rc;

	if (v->error)
		return v->error;
	if (shapes[r->op].exclusive && r->state == XSEG_REQ_AT)
		xseg_req_start(pp->port, r);
	if (v->cut)
		size = size / 2 / XSEG_SECTOR * XSEG_SECTOR;	/* no disk does half a sector */
	rc = applies[r->op](m, r, size);
	return again && r->op == XSEG_OP_DELETE && rc == -ENOENT ? 0 : rc;
}

/* What fails because that was asked for, or as there is no room. Not what is asked for in vain. */
static void tell_failure(
	struct peer_port *pp, const struct xreq *r, const struct memd_verdict *v, int64_t result)
{
	const char *why = v->error ? "its option fail asks for that" :
				"its memory is full: make room, for example by 'xseg volume "
				"remove'";
	uint32_t nr;

	if (!v->error && result != -ENOSPC)
		return;
	nr = failures_note(&memd_of(pp->peer)->failures, r, (int)-result, pp->now_ns);
	if (nr)
		log_warn(
			"%s: %s of %s failed: %s; %s (failures since the last such line: %u)",
			pp->peer->name, xseg_op_name((enum xseg_op)r->op),
			r->target[0] ? r->target : "all objects", strerror((int)-result),
			why, nr);
}

static void answer(
	struct peer_port *pp, struct xreq *r, const struct memd_verdict *v, bool again)
{
	int64_t result = apply(pp, r, v, again);

	if (result < 0)
		tell_failure(pp, r, v, result);
	peer_answer(pp, r, result);
}

/* ---- delayed requests -------------------------------------------------------------------- */

static struct memd_op *op_of_timer(struct memd_timer *t)
{
	return (struct memd_op *)((uint8_t *)t - offsetof(struct memd_op, timer));
}

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
}

/* Whole pages: who fills a hole or zeroes a page is alone in it. */
static void add_ranges(struct memd_op *op)
{
	const struct xreq *r = op->r;
	uint64_t from = r->obj_offset / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
	uint64_t to = page_up(r->obj_offset + r->size);

	order_op_init(&op->order);
	if (shapes[r->op].range == SHAPE_OBJECT)
		order_op_add(&op->order, r->hash, 0, ORDER_END, shapes[r->op].exclusive);
	if (shapes[r->op].range == SHAPE_BYTES)
		order_op_add(&op->order, r->hash, from, to, shapes[r->op].exclusive);
	if (r->op == XSEG_OP_COPY)
		order_op_add(&op->order, xseg_hash(op->source, strlen(op->source)), from, to,
			false);
}

/* Applies, answers, and returns the ops that may go on. The answer comes before the leaving (D2).
 * */
static struct order_op *op_finish(struct peer_port *pp, struct memd_op *op)
{
	struct memd *m = memd_of(pp->peer);
	struct order_op *ready = NULL;

	answer(pp, op->r, &op->verdict, op->again);
	if (op->order.nr)
		ready = order_leave(&m->order, &op->order);
	ops_put(&m->ops, &op->order);
	return ready;
}

static const struct memd_verdict at_once;

/* What a predecessor has started has had its time (D4). */
static struct memd_verdict verdict_of(struct peer_port *pp, const struct xreq *r)
{
	if (r->state == XSEG_REQ_STARTED)
		return at_once;
	return memd_model_begin(
		&memd_of(pp->peer)->model, (enum xseg_op)r->op, size_of(r), pp->now_ns);
}

/* Begins all ops of the list, and those that become ready by it. */
static void ops_begin(struct peer_port *pp, struct order_op *list)
{
	struct memd *m = memd_of(pp->peer);
	struct order_op **last;
	struct memd_op *op;

	while (list) {
		op = (struct memd_op *)list;
		list = list->next;
		op->verdict = verdict_of(pp, op->r);
		if (op->verdict.due_ns > pp->now_ns) {
			op->timer.due_ns = op->verdict.due_ns;
			memd_heap_push(&m->heap[pp->nr], &op->timer);
			continue;
		}
		for (last = &list; *last; last = &(*last)->next)
			;
		*last = op_finish(pp, op);
	}
}

static void memd_accept(struct peer_port *pp, struct xreq *r, bool again)
{
	struct memd *m = memd_of(pp->peer);
	struct memd_op *op;
	int rc = shape_check(r, MEMD_OBJECT_MAX);

	if (rc) {
		peer_answer(pp, r, rc);
		return;
	}
	if (r->op != XSEG_OP_COPY && m->peer.nr_ports == 1 && !memd_model_active(&m->model) &&
		!order_nr(&m->order)) {
		answer(pp, r, &at_once, again);
		return;
	}
	op = ops_get(&m->ops);
	if (r->op == XSEG_OP_COPY)
		rc = shape_source(m->peer.seg, r, op->source);
	if (rc) {
		ops_put(&m->ops, &op->order);
		peer_answer(pp, r, rc);
		return;
	}
	op->r = r;
	op->again = again;
	r->user = op->source;
	add_ranges(op);
	if (!op->order.nr || order_enter(&m->order, &op->order))
		ops_begin(pp, &op->order);
}

static void memd_request(struct peer_port *pp, struct xreq *r)
{
	memd_accept(pp, r, false);
}

/* Whether it was STARTED or not: doing it (again) is harmless, as nothing that overlaps it was
 * begun since. Those that were come first, and have the room that they had (D4). */
static void memd_recover(struct peer_port *pp, struct xreq *r)
{
	memd_accept(pp, r, true);
}

/* ---- room -------------------------------------------------------------------------------- */

static struct space space_of(struct memd *m)
{
	return (struct space){
		.size_bytes = (uint64_t)m->store.nr_pages * XSEG_PAGE_SIZE,
		.free_bytes = (uint64_t)memd_store_free_pages(&m->store) * XSEG_PAGE_SIZE,
	};
}

static void look_for_space(struct peer_port *pp)
{
	struct memd *m = memd_of(pp->peer);
	struct space space = space_of(m);

	m->space_due_ns = pp->now_ns + SPACE_LOOK_NS;
	switch (space_news(&space, &m->space_low)) {
	case SPACE_LOW:
		log_warn("%s: its memory is nearly full: %lu of %lu KiB are left; make room, for "
			 "example by 'xseg volume remove'",
			pp->peer->name, (unsigned long)(space.free_bytes >> 10),
			(unsigned long)(space.size_bytes >> 10));
		break;
	case SPACE_ENOUGH:
		log_info("%s: it has room again: %lu KiB", pp->peer->name,
			(unsigned long)(space.free_bytes >> 10));
		break;
	case SPACE_SAME:
		break;
	}
}

/* A step of a count: COUNT_PAGES of the store, and as many places of its table of objects. */
static void count_step(struct peer_port *pp)
{
	struct memd *m = memd_of(pp->peer);
	uint32_t end = m->count_page + COUNT_PAGES, object;
	char name[XSEG_TARGET_MAX];

	if (!m->count_page)
		usage_begin(&m->usage);
	for (; m->count_page < m->store.nr_pages && m->count_page < end; m->count_page++) {
		if (memd_object_name(&m->store, m->count_page, name))
			usage_add(&m->usage, name, 0, 1);
		object = memd_store_page_object(&m->store, m->count_page);
		if (object != MEMD_NONE && memd_object_name(&m->store, object, name))
			usage_add(&m->usage, name, XSEG_PAGE_SIZE, 0);
	}
	if (m->count_page < m->store.nr_pages) {
		usage_step(&m->usage, (uint32_t)((uint64_t)m->count_page * 100 /
						 m->store.nr_pages));
		return;
	}
	m->count_page = 0;
	atomic_store_explicit(&m->count_port, MEMD_NONE, memory_order_relaxed);
	/* its lock is the barrier: the next count is begun after it */
	usage_end(&m->usage, 0, pp->now_ns);
}

static bool counts(struct peer_port *pp)
{
	return atomic_load_explicit(&memd_of(pp->peer)->count_port, memory_order_relaxed) ==
	       pp->nr;
}

static uint64_t memd_poll(struct peer_port *pp)
{
	struct memd *m = memd_of(pp->peer);
	struct memd_heap *h = &m->heap[pp->nr];

	while (memd_heap_due(h) <= pp->now_ns)
		ops_begin(pp, op_finish(pp, op_of_timer(memd_heap_pop(h))));
	if (!pp->nr && pp->now_ns >= m->space_due_ns)
		look_for_space(pp);
	if (counts(pp))
		count_step(pp);
	return counts(pp) ? pp->now_ns : memd_heap_due(h);
}

/* ---- life -------------------------------------------------------------------------------- */

static int ops_alloc(struct memd *m)
{
	uint32_t nr = xseg_nr_requests(m->peer.seg) + OPS_SPARE, i;

	if (ops_open(&m->ops, nr, sizeof(struct memd_op)) || usage_open(&m->usage))
		return -ENOMEM;
	for (i = 0; i < m->peer.nr_ports; i++) {
		m->heap[i].timer = calloc(nr, sizeof(struct memd_timer *));
		if (!m->heap[i].timer)
			return -ENOMEM;
	}
	return 0;
}

static uint32_t pages_wanted(const struct memd *m)
{
	return (uint32_t)(m->memory_bytes / XSEG_PAGE_SIZE);
}

static uint64_t memd_memory_bytes(const struct peer *p)
{
	const struct memd *m = (const struct memd *)p;

	return m->is_volatile ? 0 : peer_whole_extents(memd_store_bytes(pages_wanted(m)));
}

static int base_open(struct memd *m, uint32_t nr_pages, struct xseg_error *err)
{
	bool fresh;
	int rc;

	m->base_bytes = memd_store_bytes(nr_pages);
	if (m->is_volatile) {
		m->base = mmap(NULL, m->base_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m->base != MAP_FAILED)
			return 0;
		m->base = NULL;
		return xseg_fail(err, -ENOMEM,
			"no memory for %lu bytes of objects; choose a smaller memory=",
			(unsigned long)m->base_bytes);
	}
	rc = xseg_arena_open(m->peer.xp, &m->base_bytes, &m->base, &fresh, err);
	if (!rc && m->base_bytes < memd_store_bytes(nr_pages) && memd_store_is_blank(m->base)) {
		/* a predecessor that wanted less died before it had made anything */
		rc = xseg_arena_free(m->peer.xp, err);
		m->base_bytes = memd_store_bytes(nr_pages);
		if (!rc)
			rc = xseg_arena_open(m->peer.xp, &m->base_bytes, &m->base, &fresh, err);
	}
	if (rc)
		m->base = NULL;
	return rc;
}

static void memd_fini(struct peer *p)
{
	struct memd *m = memd_of(p);
	uint32_t i;

	memd_store_close(&m->store);
	if (m->is_volatile && m->base)
		munmap(m->base, m->base_bytes);
	m->base = NULL;
	for (i = 0; i < PEER_MAX_THREADS; i++) {
		free(m->heap[i].timer);
		m->heap[i] = (struct memd_heap){ 0 };
	}
	ops_close(&m->ops);
	usage_close(&m->usage);
	failures_fini(&m->failures);
	memd_model_fini(&m->model);
	order_fini(&m->order);
}

static int memd_fit(const struct peer *p, const char **key, struct xseg_error *err)
{
	*key = "fail";
	return memd_model_check_faults(((const struct memd *)p)->fail, err);
}

static int memd_init(struct peer *p, struct xseg_error *err)
{
	struct memd *m = memd_of(p);
	uint32_t nr_pages = pages_wanted(m);
	int rc;

	order_init(&m->order);
	failures_init(&m->failures);
	m->count_port = MEMD_NONE;
	m->count_page = 0;
	m->space_low = false;
	m->space_due_ns = 0;
	memd_model_init(&m->model, &m->timing, m->seed);
	rc = memd_model_set_faults(&m->model, m->fail, err);
	if (rc)
		goto out_fini;
	rc = ops_alloc(m);
	if (rc) {
		xseg_fail(err, rc, "no memory for the table of requests");
		goto out_fini;
	}
	rc = base_open(m, nr_pages, err);
	if (rc)
		goto out_fini;
	rc = memd_store_open(&m->store, m->base, m->base_bytes, nr_pages, p->nr_ports > 1,
		m->track_flush, err);
	if (rc)
		goto out_fini;
	if (m->store.nr_pages != nr_pages)
		log_info("%s: its objects keep their %lu bytes of memory; memory= is for a new "
			"store only", p->name, (unsigned long)m->store.nr_pages * XSEG_PAGE_SIZE);
	return 0;
out_fini:
	memd_fini(p);
	return rc;
}

static int memd_changed(struct peer *p, const struct opt *o, struct xseg_error *err)
{
	struct memd *m = memd_of(p);

	if (o->off == offsetof(struct memd, fail))
		return memd_model_set_faults(&m->model, m->fail, err);
	if (o->off == offsetof(struct memd, seed))
		memd_model_set_seed(&m->model, m->seed);
	else
		memd_model_set_timing(&m->model, &m->timing);
	return 0;
}

static bool memd_quiesced(struct peer *p, uint64_t *left_bytes)
{
	(void)left_bytes;
	return ops_pending(&memd_of(p)->ops) == 0;
}

static enum xseg_close memd_close_how(struct peer *p, bool clean)
{
	(void)clean;
	return memd_of(p)->is_volatile ? XSEG_CLOSE_FREE_ARENA : XSEG_CLOSE_KEEP_ARENA;
}

static int64_t tell_status(struct peer_port *pp, char *out, size_t size)
{
	struct memd *m = memd_of(pp->peer);
	struct space space = space_of(m);
	struct kv_text t;

	kv_init(&t, out, size);
	kv_add(&t,
		"capacity_bytes=%lu\nfree_bytes=%lu\nmemory_bytes=%lu\nused_bytes=%lu\n"
		"objects=%u\npending=%u\n",
		(unsigned long)space.size_bytes, (unsigned long)space.free_bytes,
		(unsigned long)space.size_bytes,
		(unsigned long)(space.size_bytes - space.free_bytes),
		memd_store_nr_objects(&m->store), ops_pending(&m->ops));
	failures_tell(&m->failures, pp->now_ns, &t);
	return (int64_t)t.used;
}

static int64_t memd_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct memd *m = memd_of(pp->peer);
	bool count = false;
	int64_t rc;

	(void)r;
	if (!strcmp(line, "status"))
		return tell_status(pp, out, size);
	rc = usage_ask(&m->usage, line, pp->now_ns, out, size, &count);
	if (count)
		atomic_store_explicit(&m->count_port, pp->nr, memory_order_relaxed);
	return rc;
}

void memd_power_loss(struct peer *p)
{
	assert(memd_of(p)->track_flush);
	memd_store_power_loss(&memd_of(p)->store);
}

const void *memd_page(struct peer *p, const char *object, uint32_t nr)
{
	struct memd *m = memd_of(p);
	uint32_t i = memd_object_find(&m->store, xseg_hash(object, strlen(object)), object);
	const void *page = NULL;

	if (i != MEMD_NONE)
		memd_store_get(&m->store, i, nr, 1, &page);
	return page;
}

const void *memd_durable_page(struct peer *p, const char *object, uint32_t nr)
{
	assert(memd_of(p)->track_flush);
	return memd_store_durable(
		&memd_of(p)->store, xseg_hash(object, strlen(object)), object, nr);
}

bool memd_next_name(struct peer *p, uint32_t *at, char *name)
{
	struct memd_store *s = &memd_of(p)->store;

	while (*at < s->nr_pages)
		if (memd_object_name(s, (*at)++, name))
			return true;
	return false;
}

static int check_fail(const char *text, struct xseg_error *err)
{
	struct memd_fault f;

	return *text ? memd_fault_parse(text, &f, err) : 0;
}

#define FIELD(f) offsetof(struct memd, f)

static const struct opt memd_opts[] = {
	{ .name = "memory", .kind = OPT_SIZE, .off = FIELD(memory_bytes), .min = 4096,
	  .max = 1ull << 42, .def = "64M", .arg = "SIZE",
	  .help = "memory for data; only written pages take memory" },
	{ .name = "latency", .kind = OPT_TIME, .off = FIELD(timing.latency_ns),
	  .max = MEMD_DELAY_MAX_NS, .flags = OPT_LIVE, .arg = "TIME",
	  .help = "each request takes at least this long" },
	{ .name = "jitter", .kind = OPT_TIME, .off = FIELD(timing.jitter_ns),
	  .max = MEMD_DELAY_MAX_NS, .flags = OPT_LIVE, .arg = "TIME",
	  .help = "each request takes up to this much longer, at random" },
	{ .name = "bandwidth", .kind = OPT_RATE, .off = FIELD(timing.bandwidth), .flags = OPT_LIVE,
	  .arg = "RATE", .help = "bytes a second; 0: no limit" },
	{ .name = "iops", .kind = OPT_U64, .off = FIELD(timing.iops), .flags = OPT_LIVE,
	  .arg = "N", .help = "requests a second; 0: no limit" },
	{ .name = "fail", .kind = OPT_LIST, .off = FIELD(fail), .flags = OPT_LIVE,
	  .len = sizeof(((struct memd *)0)->fail), .arg = "FAULT", .check = check_fail,
	  .help = "OP:PROBABILITY[@NTH]:ERRNO|short|stall=TIME; empty clears" },
	{ .name = "seed", .kind = OPT_U64, .off = FIELD(seed), .def = "1", .flags = OPT_LIVE,
	  .arg = "N", .help = "seed of its random numbers" },
	{ .name = "volatile", .kind = OPT_BOOL, .off = FIELD(is_volatile), .def = "no",
	  .help = "keep objects in the process's memory, and lose them with it" },
	{ .name = "track_flush", .kind = OPT_BOOL, .off = FIELD(track_flush), .def = "no",
	  .help = "for tests: remember data that no FLUSH covers yet; doubles the memory" },
	{ 0 }
};

const struct peer_class memd_class = {
	.kind = "memd",
	.summary = "objects in memory, with the timing and the faults of a device",
	.opts = memd_opts,
	.size = sizeof(struct memd),
	.fit = memd_fit,
	.memory_bytes = memd_memory_bytes,
	.init = memd_init,
	.recover = memd_recover,
	.request = memd_request,
	.poll = memd_poll,
	.admin = memd_admin,
	.changed = memd_changed,
	.quiesced = memd_quiesced,
	.close_how = memd_close_how,
	.fini = memd_fini,
};
