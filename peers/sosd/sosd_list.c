/* sosd_list - see sosd_list.h for the contract. */
#include "peers/sosd/sosd_list.h"

#include <errno.h>
#include <string.h>

#include "peers/common/blocker/listing.h"
#include "peers/common/log/log.h"
#include "peers/common/clock/clock.h"
#include "peers/sosd/sosd.h"

#define CUT_BITS  6u			/* of a cursor: N; the slice's number is above it */
#define CUT_MAX	  30u			/* 2^30 slices */
#define NAMES	  256u			/* that are asked for at a time */
#define LOOKS	  16384u		/* names that an answer is made of; then it ends */
#define FEW_NAMES (NAMES / 4)

/* ---- slices ------------------------------------------------------------------------------ */

struct slice {
	uint64_t nr;
	uint32_t cut;			/* there are 2^cut of its size */
};

static bool slice_of(uint64_t cursor, struct slice *s)
{
	s->cut = cursor & ((1u << CUT_BITS) - 1);
	s->nr = cursor >> CUT_BITS;
	return s->cut <= CUT_MAX && s->nr >> s->cut == 0;
}

static uint64_t cursor_of(const struct slice *s)
{
	return s->nr << CUT_BITS | s->cut;
}

/* Goes on behind it. False: it was the last one. */
static bool slice_next(struct slice *s)
{
	return ++s->nr >> s->cut == 0;
}

static void slice_grow(struct slice *s)
{
	if (s->cut && s->nr % 2 == 0) {
		s->cut--;
		s->nr /= 2;
	}
}

/* ---- one slice --------------------------------------------------------------------------- */

struct walk {
	struct sosd_lister *l;
	const struct xreq *r;
	struct listing out;
	rados_object_list_cursor at, end;
	uint32_t looks;			/* names that RADOS has given */
	uint32_t looks_end;		/* a slice of more is cut, whether there is room or not */
};

/* Returns 1: all of them are in the answer; 0: they have no room. */
static int add_names(struct walk *w, const rados_object_list_item *item, int nr)
{
	char target[XSEG_TARGET_MAX];

	for (int i = 0; i < nr; i++)
		if (sosd_name_target(w->l->prefix, item[i].oid, item[i].oid_length, target) &&
			listing_wants(w->r, target) && !listing_add(&w->out, target))
			return 0;
	return 1;
}

/* Adds the names from w->at up to w->end. Returns 1; 0: they are too many; or a negative errno. */
static int add_range(struct walk *w)
{
	rados_object_list_item item[NAMES];
	rados_ioctx_t io = w->l->rados->io;
	int nr, rc = 1;

	while (rc == 1 && rados_object_list_cursor_cmp(io, w->at, w->end) < 0) {
		memset(item, 0, sizeof(item));
		nr = rados_object_list(io, w->at, w->end, NAMES, NULL, 0, item, &w->at);
		if (nr < 0)
			return nr;
		if (w->l->stop) {
			rados_object_list_free(NAMES, item);
			return -ESHUTDOWN;
		}
		w->looks += (uint32_t)nr;
		rc = w->looks > w->looks_end ? 0 : add_names(w, item, nr);
		rados_object_list_free(NAMES, item);
	}
	return rc;
}

static int add_slice(struct walk *w, const struct slice *s)
{
	rados_ioctx_t io = w->l->rados->io;
	rados_object_list_cursor first = rados_object_list_begin(io);
	rados_object_list_cursor last = rados_object_list_end(io);
	int rc = -ENOMEM;

	w->at = rados_object_list_begin(io);
	w->end = rados_object_list_begin(io);
	if (first && last && w->at && w->end) {
		rados_object_list_slice(io, first, last, s->nr, 1ul << s->cut, &w->at, &w->end);
		rc = add_range(w);
	}
	rados_object_list_cursor_free(io, w->at);
	rados_object_list_cursor_free(io, w->end);
	rados_object_list_cursor_free(io, first);
	rados_object_list_cursor_free(io, last);
	return rc;
}

/* ---- an answer --------------------------------------------------------------------------- */

/* At least one slice; as many as have room, within LOOKS names. Returns the answer's result. */
static int64_t list(struct sosd_lister *l, const struct xreq *r)
{
	struct walk w = { .l = l, .r = r };
	struct listing whole;
	struct slice s;
	uint32_t looks;
	bool any = false, more = true;
	int rc;

	if (!slice_of(r->obj_offset, &s))
		return -ESTALE;
	listing_begin(&w.out, l->seg, r);
	while (more && w.looks < LOOKS) {
		whole = w.out;
		looks = w.looks;
		w.looks_end = looks + LOOKS;
		rc = add_slice(&w, &s);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			w.out = whole;			/* drops what this slice added */
			if (any)
				break;
			if (s.cut == CUT_MAX)
				return -EOVERFLOW;
			s.cut++;
			s.nr *= 2;
			continue;
		}
		any = true;
		more = slice_next(&s);
		if (more && w.looks - looks < FEW_NAMES)
			slice_grow(&s);
	}
	return listing_end(&w.out, more ? cursor_of(&s) : 0);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* One of the three; LISTs first. None: it stops. */
struct work {
	struct sosd_op *op;
	bool look, count;
};

static struct work wait_for_work(struct sosd_lister *l)
{
	struct work w = { .op = NULL };

	pthread_mutex_lock(&l->lock);
	while (!l->stop && !(w.op = (struct sosd_op *)ops_list_take(&l->waiting)) && !l->looks &&
		!l->counts)
		pthread_cond_wait(&l->wake, &l->lock);
	w.look = !w.op && l->looks;
	w.count = !w.op && !w.look && l->counts;
	if (w.look)
		l->looks = false;
	pthread_mutex_unlock(&l->lock);
	return w;
}

static void look(struct sosd_lister *l)
{
	struct space space = { .size_bytes = 0 };

	if (sosd_rados_space(l->rados, &space))
		return;
	atomic_store_explicit(&l->size_bytes, space.size_bytes, memory_order_relaxed);
	atomic_store_explicit(&l->free_bytes, space.free_bytes, memory_order_relaxed);
	switch (space_news(&space, &l->space_low)) {
	case SPACE_LOW:
		log_warn("%s: the cluster of the pool %s is nearly full: %lu MiB are left, before "
			"copies; 'ceph df' shows them", l->name, l->rados->pool,
			(unsigned long)(space.free_bytes >> 20));
		break;
	case SPACE_ENOUGH:
		log_info("%s: the cluster of the pool %s has room again: %lu MiB, before copies",
			l->name, l->rados->pool, (unsigned long)(space.free_bytes >> 20));
		break;
	case SPACE_SAME:
		break;
	}
}

static void count_on(struct sosd_lister *l)
{
	if (sosd_sizes_step(&l->sizes, clock_ms() * 1000000))
		return;
	pthread_mutex_lock(&l->lock);
	l->counts = false;
	pthread_mutex_unlock(&l->lock);
}

static void *run(void *arg)
{
	struct sosd_lister *l = arg;
	struct work w;

	for (;;) {
		w = wait_for_work(l);
		if (l->stop) {
			return NULL;
		} else if (w.op) {
			w.op->result = (int)list(l, w.op->r);
			l->done(w.op);
		} else if (w.look) {
			look(l);
		} else if (w.count) {
			count_on(l);
		}
	}
}

int sosd_lister_open(struct sosd_lister *l, struct sosd_rados *rados, const struct peer *p,
	const char *prefix, void (*done)(struct sosd_op *op))
{
	int rc;

	l->rados = rados;
	l->seg = p->seg;
	l->name = p->name;
	l->prefix = prefix;
	l->done = done;
	l->stop = l->counts = l->space_low = false;
	l->looks = true;
	ops_list_init(&l->waiting);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->wake, NULL);
	rc = sosd_sizes_open(&l->sizes, rados, prefix);
	if (!rc)
		rc = -pthread_create(&l->thread, NULL, run, l);
	l->begun = !rc;
	if (rc)
		sosd_sizes_close(&l->sizes);
	return rc;
}

void sosd_lister_close(struct sosd_lister *l)
{
	if (!l->begun)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	sosd_sizes_close(&l->sizes);
	l->begun = false;
}

void sosd_lister_give(struct sosd_lister *l, struct sosd_op *op)
{
	pthread_mutex_lock(&l->lock);
	ops_list_add(&l->waiting, &op->order);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
}

static void want(struct sosd_lister *l, bool *what)
{
	pthread_mutex_lock(&l->lock);
	*what = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
}

void sosd_lister_count(struct sosd_lister *l)
{
	want(l, &l->counts);
}

void sosd_lister_look(struct sosd_lister *l)
{
	want(l, &l->looks);
}
