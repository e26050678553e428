/* ops - a blocker's requests while it has them: a table of ops, some of them free, and lists of the
 * others.
 *
 * An op is a struct of the blocker's that begins with its order_op (order.h). It is in one list at
 * a time: the table's free ones, the list that order_leave() returns, or one of the blocker's. The
 * lists are linked through the order_op, so its `next` is unowned while an op is in no list.
 *
 * Contract: a table's functions from any thread. Its lock is a leaf, held for a few words' work.
 * The owner of a list guards it. Nothing blocks, and nothing but ops_open() allocates.
 */
#ifndef PEERS_COMMON_OPS_H
#define PEERS_COMMON_OPS_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "peers/common/blocker/order.h"

/* ---- lists: first in, first out ---- */

struct ops_list {
	struct order_op *first, **last;
};

static inline void ops_list_init(struct ops_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static inline void ops_list_add(struct ops_list *l, struct order_op *op)
{
	op->next = NULL;
	*l->last = op;
	l->last = &op->next;
}

/* The blocker's op, or NULL. */
static inline void *ops_list_take(struct ops_list *l)
{
	struct order_op *op = l->first;

	if (!op)
		return NULL;
	l->first = op->next;
	if (!l->first)
		l->last = &l->first;
	return op;
}

/* `to` is empty; then `from` is. */
static inline void ops_list_move(struct ops_list *to, struct ops_list *from)
{
	if (!from->first)
		return;
	*to = *from;
	ops_list_init(from);
}

/* ---- the table ---- */

struct ops_table {
	void *mem;				/* all ops */
	pthread_mutex_t lock;			/* guards what follows */
	struct order_op *free;
	uint32_t pending;			/* ops that are not free */
};

static inline void ops_put(struct ops_table *t, struct order_op *op)
{
	pthread_mutex_lock(&t->lock);
	op->next = t->free;
	t->free = op;
	t->pending--;
	pthread_mutex_unlock(&t->lock);
}

/* `nr` ops of `size` bytes, zeroed; or -ENOMEM. Either way ops_close() undoes it. */
static inline int ops_open(struct ops_table *t, uint32_t nr, size_t size)
{
	*t = (struct ops_table){ .pending = nr };
	pthread_mutex_init(&t->lock, NULL);
	t->mem = calloc(nr, size);
	if (!t->mem)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		ops_put(t, (struct order_op *)((char *)t->mem + i * size));
	return 0;
}

/* Also of one that was never opened, and is zeroed. */
static inline void ops_close(struct ops_table *t)
{
	if (!t->mem && !t->pending)
		return;
	free(t->mem);
	pthread_mutex_destroy(&t->lock);
	*t = (struct ops_table){ 0 };
}

/* One as it was put back: the table has as many as there may be requests. */
static inline void *ops_get(struct ops_table *t)
{
	struct order_op *op;

	pthread_mutex_lock(&t->lock);
	op = t->free;
	assert(op);
	t->free = op->next;
	t->pending++;
	pthread_mutex_unlock(&t->lock);
	return op;
}

static inline uint32_t ops_pending(struct ops_table *t)
{
	uint32_t nr;

	pthread_mutex_lock(&t->lock);
	nr = t->pending;
	pthread_mutex_unlock(&t->lock);
	return nr;
}

#endif
