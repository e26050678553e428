/* child - requests of our own to the downstream: getting, sending, completing, waiting for one.
 *
 * Contract: a child belongs to the port that allocated it; its reply comes to that port. Its
 * completion runs inside its object (a FLUSH has no object, and completes at once). It holds a
 * reference to its object from child_get() to child_put().
 *
 * Invariants:
 *   D1  An index of the children's table is in use iff that request is PRIVATE or out.
 *   D2  Flushes leave requests for loads, and loads for flushes: neither waits for the other for
 *       ever.
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/store/events.h"
#include "peers/cached/store/store.h"

static bool changes_store(const struct xreq *r)
{
	return r->op != XSEG_OP_READ && r->op != XSEG_OP_INFO && r->op != XSEG_OP_FLUSH;
}

static void child_job(struct xwork *w, void *ctx)
{
	struct child *ch = caa_container_of(w, struct child, work);
	struct cport *ps = ctx;

	if (ch->r->result >= 0 && changes_store(ch->r))
		atomic_store_explicit(&store_port(ps)->changes,
			atomic_load_explicit(&store_port(ps)->changes, memory_order_relaxed) + 1,
			memory_order_relaxed);
	child_done(ps, ch, ch->r->result);
}

static bool may_take(struct cport *ps, enum child_kind kind)
{
	uint32_t nr = xseg_port_nr_requests(ps->pp->port);

	if (kind == CHILD_FLUSH)
		return store_port(ps)->flushes_out < nr * 3 / 4;
	if (kind < CHILD_FLUSH)
		return store_port(ps)->loads_out < nr * 3 / 4;
	return true;
}

static _Atomic uint32_t *out_counter(struct cport *ps, enum child_kind kind)
{
	return kind == CHILD_FLUSH ? &store_port(ps)->flushes_out : &store_port(ps)->loads_out;
}

static struct child *child_init(
	struct cport *ps, struct xreq *r, uint32_t index, enum child_kind kind, struct object *o)
{
	struct child *ch = &store_of(ps->cache)->children[index];

	memset(ch, 0, sizeof(*ch));
	ch->r = r;
	ch->obj = o;
	ch->kind = (uint8_t)kind;
	ch->home = (uint8_t)ps->pp->nr;
	ch->work.fn = child_job;
	return ch;
}

void child_adopt(struct cport *ps, struct xreq *r, uint32_t index, struct object *o)
{
	child_init(ps, r, index, CHILD_ORPHAN, o);
}

struct child *child_get(struct cport *ps, enum child_kind kind, struct object *o)
{
	struct xreq *r = may_take(ps, kind) ? xseg_req_alloc(ps->pp->port) : NULL;
	struct child *ch;

	if (!r)
		return NULL;
	ch = child_init(ps, r, r->index, kind, o);
	if (o)
		xcache_get(&object_of(ps->cache)->xc, o->index);
	*out_counter(ps, kind) += kind <= CHILD_FLUSH;
	return ch;
}

void child_submit(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags)
{
	assert((uint32_t)ch->first + ch->nr <= OBJECT_BUCKETS);
	ch->r->nr_pages = op == XSEG_OP_READ || op == XSEG_OP_WRITE ? ch->nr : 0;
	child_submit_range(ps, ch, op, flags, (uint64_t)ch->first * BUCKET_SIZE,
		(uint32_t)ch->nr * BUCKET_SIZE);
}

void child_submit_range(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags,
	uint64_t from, uint32_t bytes)
{
	struct xreq *r = ch->r;
	const struct arena_object *e = ch->obj ? object_entry(ps->cache, ch->obj) : NULL;
	int rc;

	r->op = (uint8_t)op;
	r->flags = (uint8_t)flags;
	if (flags & XSEG_REQ_FUA)
		ch->sent = sync_begin(ps->cache);
	if (e) {
		r->volume = e->volume;
		xseg_req_set_target(r, e->name, strnlen(e->name, sizeof(e->name)));
		r->offset = r->obj_offset = from;
		r->size = bytes;
	}
	rc = peer_submit(ps->pp, r);
	if (rc == 0) {
		if (++store_port(ps)->sent >= SENDS_A_ROUND)
			peer_end_round(ps->pp);
		return;
	}
	r->result = rc;
	if (ch->obj)
		object_push(ps, ch->obj, &ch->work);
	else
		child_done(ps, ch, rc);
}

uint32_t children_out(struct cached *k)
{
	uint32_t out = atomic_load_explicit(&store_of(k)->nr_orphans, memory_order_relaxed);

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		out += store_port(cport_at(k, i))->loads_out +
		       store_port(cport_at(k, i))->flushes_out;
	return out;
}

static void free_request(struct cport *ps, struct child *ch)
{
	assert(ch->kind > CHILD_FLUSH || *out_counter(ps, ch->kind) > 0);
	*out_counter(ps, ch->kind) -= ch->kind <= CHILD_FLUSH;
	xseg_req_free(ps->pp->port, ch->r);
	store_port(ps)->request_freed = true;
}

void child_put(struct cport *ps, struct child *ch)
{
	struct cport *home = cport_at(ps->cache, ch->home);

	if (ch->obj)
		object_put(ps, ch->obj);
	if (home == ps) {
		free_request(ps, ch);
		return;
	}
	/* another thread completed it: the request goes back to the port that it belongs to */
	ch->next = atomic_load_explicit(&store_port(home)->returned, memory_order_relaxed);
	/* release: partner is the exchange in children_collect() */
	while (!atomic_compare_exchange_weak_explicit(&store_port(home)->returned, &ch->next, ch,
		memory_order_release, memory_order_relaxed))
		;
	peer_port_kick(home->pp);
}

void children_collect(struct cport *ps)
{
	struct child *ch = NULL, *next;

	if (atomic_load_explicit(&store_port(ps)->returned, memory_order_relaxed))
		/* acquire: partner is the swap in child_put() */
		ch = atomic_exchange_explicit(
			&store_port(ps)->returned, NULL, memory_order_acquire);
	for (; ch; ch = next) {
		next = ch->next;
		free_request(ps, ch);
	}
}

void child_reply(struct cport *ps, struct xreq *r)
{
	struct child *ch = &store_of(ps->cache)->children[r->index];

	if (ch->obj)
		object_push(ps, ch->obj, &ch->work);
	else
		child_done(ps, ch, r->result);
}

void requests_wait(struct cport *ps, struct xwait *w)
{
	count_wait(ps, WAIT_REQUEST);
	xwaitq_add(&store_port(ps)->want_requests, w, 1);
}

/* Wakes as many as there are free requests: each tries again, and waits again where its kind has
 * its share. */
void requests_signal(struct cport *ps)
{
	uint32_t nr = xseg_port_nr_free(ps->pp->port),
		 waiters = xwaitq_nr(&store_port(ps)->want_requests);
	struct xwait *w;

	while (nr-- && waiters-- && (w = xwaitq_pop(&store_port(ps)->want_requests, 1)) != NULL)
		w->fn(w, ps);
}

uint64_t sync_begin(struct cached *k)
{
	return atomic_fetch_add_explicit(&store_of(k)->sync_epoch, 1, memory_order_relaxed);
}
