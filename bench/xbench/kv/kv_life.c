/* kv_life - opening the store, making and ending jobs. See kv.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/xbench/kv/kv_job.h"
#include "bench/xbench/plan/kv_options.h"

#define ASK_TIMEOUT_NS 10000000000ull
#define ROOM_MAX       XSEG_REQ_BYTES
#define ROOM_MEANS     4u	/* exponential sizes: larger values share the queue's large room */

/* ---- the store --------------------------------------------------------------------------- */

static void note_where(struct xb_where *w, struct xseg *seg, const char *kvd)
{
	w->seg = seg;
	w->peer = xseg_peer_find(seg, kvd);
	snprintf(w->peer_name, sizeof(w->peer_name), "%s", kvd);
}

static int open_store(struct xb_kv *kv, const struct xb_shared *s, struct xseg_error *err)
{
	const struct xb_options *o = s->opts;
	bool sooner = o->io_timeout && o->io_timeout < ASK_TIMEOUT_NS;
	struct xseg_kv_params params = { .attached = s->seg, .kvd = o->kv.kvd,
		.timeout_ns = sooner ? o->io_timeout : ASK_TIMEOUT_NS };

	return xseg_kv_open(&params, &kv->store, err);
}

/* The name of a store, and the size of its keys, make keys the same or others. */
static uint64_t identity(const struct xb_options *o)
{
	return xb_mix(xseg_hash(o->kv.kvd, strlen(o->kv.kvd)) ^ o->kv.key_size);
}

static int make_keys(struct xb_kv *kv, const struct xb_options *o, struct xseg_error *err)
{
	int rc = 0;

	if (o->verify) {
		kv->keys = xb_keys_create(o, identity(o), &rc, err);
		if (!kv->keys)
			return rc;
	}
	if (!o->mix[XB_CAS])
		return 0;
	kv->versions = calloc(o->kv.keys, sizeof(*kv->versions));
	return kv->versions ? 0
			    : xseg_fail(err, -ENOMEM,
				      "no memory for the versions of all keys; give fewer --keys");
}

static int set_counters(struct xb_kv *kv, const struct xb_options *o, struct xseg_error *err)
{
	uint32_t nr = o->verify_only ? 0 : xb_kv_counters(o);
	struct xseg_kv_queue *q;
	char name[XB_KEY_SIZE_MAX];
	int rc;

	if (!nr)
		return 0;
	rc = xseg_kv_queue_create(kv->store, NULL, &q, err);
	if (rc)
		return rc;
	xb_kv_name_begin(name, o->kv.key_size);
	for (uint32_t i = 0; i < nr && !rc; i++) {
		xb_kv_name(name, o->kv.key_size, o->kv.keys + i);
		rc = xseg_kv_put(q, name, (uint32_t)o->kv.key_size, "0", 1);
	}
	xseg_kv_queue_destroy(q);
	return rc ? xseg_fail(err, rc, "%s did not take a counter: %s; see 'xseg status'",
			    o->kv.kvd, strerror(-rc))
		  : 0;
}

int xb_kv_open(struct xb_kv *kv, struct xb_shared *shared, struct xseg_error *err)
{
	const struct xb_options *o = shared->opts;
	int rc;

	memset(kv, 0, sizeof(*kv));
	rc = open_store(kv, shared, err);
	if (rc)
		return rc;
	note_where(&shared->where, shared->seg, o->kv.kvd);
	rc = make_keys(kv, o, err);
	if (!rc)
		rc = set_counters(kv, o, err);
	if (rc)
		xb_kv_close(kv);
	return rc;
}

void xb_kv_close(struct xb_kv *kv)
{
	xb_keys_destroy(kv->keys);
	free(kv->versions);
	xseg_kv_close(kv->store);
	memset(kv, 0, sizeof(*kv));
}

/* ---- jobs -------------------------------------------------------------------------------- */

/* Of the queue, for one operation: most values fit, with their key and a page where they begin. */
static uint32_t room_of(const struct xb_options *o)
{
	uint64_t value = o->kv.is_exp ? ROOM_MEANS * o->kv.value_size : o->kv.value_size;
	uint64_t bytes = value + 2 * o->kv.key_size + 4ull * XSEG_PAGE_SIZE;

	return bytes < ROOM_MAX ? (uint32_t)bytes : ROOM_MAX;
}

/* Any bytes, but no zeroes. */
static void fill(void *value, uint64_t bytes, uint64_t seed)
{
	uint64_t *word = value;

	for (uint64_t i = 0; i < bytes / sizeof(*word); i++)
		word[i] = xb_random(&seed);
}

static int make_places(struct xb_kv_job *job, const struct xb_options *o, struct xseg_error *err)
{
	uint64_t value = (o->kv.value_max + 63) / 64 * 64, key = (o->kv.key_size + 63) / 64 * 64;

	job->places = calloc(o->iodepth, sizeof(*job->places));
	job->idle = calloc(o->iodepth, sizeof(struct xb_kv_place *));
	job->memory = aligned_alloc(64, (value + key) * o->iodepth);
	if (!job->places || !job->idle || !job->memory)
		return xseg_fail(err, -ENOMEM,
			"no memory for the values of job %u; give a smaller iodepth or value_size",
			job->base.nr);
	for (uint32_t i = 0; i < o->iodepth; i++) {
		struct xb_kv_place *p = &job->places[i];

		p->value = job->memory + i * value;
		p->key = (char *)job->memory + o->iodepth * value + i * key;
		p->t.slot = job->base.nr * o->iodepth + i;
		fill(p->value, value, p->t.slot);
		xb_kv_name_begin(p->key, o->kv.key_size);
		job->idle[job->nr_idle++] = p;
	}
	return 0;
}

static int destroy(struct xb_job *base)
{
	struct xb_kv_job *job = (struct xb_kv_job *)base;

	xseg_kv_queue_destroy(job->queue);
	free(job->places);
	free(job->idle);
	free(job->memory);
	free(job);
	return 0;
}

static int open_job(struct xb_kv_job *job, struct xseg_error *err)
{
	const struct xb_options *o = job->base.shared->opts;
	struct xseg_kv_queue_params params = { .depth = o->iodepth, .room_bytes = room_of(o) };
	int rc = xseg_kv_queue_create(job->base.shared->kv->store, &params, &job->queue, err);

	return rc ? rc : make_places(job, o, err);
}

struct xb_job *xb_kv_job_create(struct xb_shared *shared, uint32_t nr, int *rc,
				struct xseg_error *err)
{
	const struct xb_options *o = shared->opts;
	struct xb_kv_job *job = aligned_alloc(64, (sizeof(*job) + 63) / 64 * 64);

	if (!job) {
		*rc = xseg_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	memset(job, 0, sizeof(*job));
	job->base.run = xb_kv_job_run;
	job->base.destroy = destroy;
	job->base.shared = shared;
	job->base.nr = nr;
	job->base.by_loan = o->by.data == XB_DATA_LOAN;
	xb_pace_init(&job->base.pace, o);
	job->depth = o->iodepth;
	xb_kv_gen_init(&job->gen, o, nr);
	for (uint32_t i = 0; i < XB_NR_STATS; i++)
		xhist_init(&job->base.results.stats[i].lat);
	*rc = open_job(job, err);
	if (!*rc)
		return &job->base;
	(void)destroy(&job->base);
	return NULL;
}
