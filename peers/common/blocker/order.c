/* order - see order.h for its purpose, its contract and its invariants. */
#include "peers/common/blocker/order.h"

#include <assert.h>
#include <stddef.h>

static struct order_shard *shard_of(struct order *o, uint64_t hash)
{
	return &o->shard[(hash >> 8) % ORDER_SHARDS];
}

static struct order_bucket *bucket_of(struct order *o, uint64_t hash)
{
	return &shard_of(o, hash)->bucket[(hash >> 16) % ORDER_BUCKETS];
}

void order_init(struct order *o)
{
	uint32_t i, b;

	for (i = 0; i < ORDER_SHARDS; i++) {
		pthread_mutex_init(&o->shard[i].lock, NULL);
		for (b = 0; b < ORDER_BUCKETS; b++)
			o->shard[i].bucket[b].first = o->shard[i].bucket[b].last = NULL;
	}
	atomic_init(&o->nr, 0);
}

void order_fini(struct order *o)
{
	uint32_t i;

	for (i = 0; i < ORDER_SHARDS; i++)
		pthread_mutex_destroy(&o->shard[i].lock);
}

void order_op_init(struct order_op *op)
{
	op->nr = 0;
	op->next = NULL;
	atomic_store_explicit(&op->blocked, 0, memory_order_relaxed);
}

void order_op_add(struct order_op *op, uint64_t hash, uint64_t from, uint64_t to, bool exclusive)
{
	struct order_range *range = &op->range[op->nr];

	assert(op->nr < 2 && from <= to);
	*range = (struct order_range){
		.hash = hash, .from = from, .to = to, .exclusive = exclusive, .op = op
	};
	op->nr++;
}

/* Locks the shards of an op (one or two), the lower address first; unlocks them. */
static void shards_lock(struct order *o, struct order_op *op, bool lock)
{
	struct order_shard *a = shard_of(o, op->range[0].hash);
	struct order_shard *b = op->nr > 1 ? shard_of(o, op->range[1].hash) : a;
	struct order_shard *low = a < b ? a : b;
	struct order_shard *high = a < b ? b : a;

	if (lock) {
		pthread_mutex_lock(&low->lock);
		if (high != low)
			pthread_mutex_lock(&high->lock);
		return;
	}
	if (high != low)
		pthread_mutex_unlock(&high->lock);
	pthread_mutex_unlock(&low->lock);
}

static bool conflicts(const struct order_range *a, const struct order_range *b)
{
	return a->hash == b->hash && a->op != b->op && (a->exclusive || b->exclusive) &&
	       a->from < b->to && b->from < a->to;
}

static void range_link(struct order_bucket *bucket, struct order_range *range)
{
	range->prev = bucket->last;
	range->next = NULL;
	if (bucket->last)
		bucket->last->next = range;
	else
		bucket->first = range;
	bucket->last = range;
}

static void range_unlink(struct order_bucket *bucket, struct order_range *range)
{
	if (range->prev)
		range->prev->next = range->next;
	else
		bucket->first = range->next;
	if (range->next)
		range->next->prev = range->prev;
	else
		bucket->last = range->prev;
}

bool order_enter(struct order *o, struct order_op *op)
{
	struct order_bucket *bucket;
	struct order_range *other;
	uint32_t i, blocked = 0;

	assert(op->nr > 0);
	atomic_fetch_add_explicit(&o->nr, 1, memory_order_relaxed);
	shards_lock(o, op, true);
	for (i = 0; i < op->nr; i++) {
		bucket = bucket_of(o, op->range[i].hash);
		for (other = bucket->first; other; other = other->next)
			blocked += conflicts(&op->range[i], other);
	}
	for (i = 0; i < op->nr; i++)
		range_link(bucket_of(o, op->range[i].hash), &op->range[i]);
	/* relaxed: whoever counts it down has one of the locks that we hold */
	atomic_store_explicit(&op->blocked, blocked, memory_order_relaxed);
	shards_lock(o, op, false);
	return blocked == 0;
}

struct order_op *order_leave(struct order *o, struct order_op *op)
{
	struct order_op *ready = NULL, **last = &ready;
	struct order_range *other;
	uint32_t i;

	shards_lock(o, op, true);
	for (i = 0; i < op->nr; i++)
		for (other = op->range[i].next; other; other = other->next) {
			if (!conflicts(&op->range[i], other))
				continue;
			/* acq_rel: an op of two ranges is counted down under two locks; the last
			 * sees what the first did */
			if (atomic_fetch_sub_explicit(&other->op->blocked, 1,
				memory_order_acq_rel) != 1)
				continue;
			other->op->next = NULL;
			*last = other->op;
			last = &other->op->next;
		}
	for (i = 0; i < op->nr; i++)
		range_unlink(bucket_of(o, op->range[i].hash), &op->range[i]);
	shards_lock(o, op, false);
	atomic_fetch_sub_explicit(&o->nr, 1, memory_order_relaxed);
	return ready;
}
