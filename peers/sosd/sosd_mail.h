/* sosd_mail - a list of ops that other threads hand to a port: librados' threads, when RADOS has
 * answered, and those of other ports.
 *
 * It is a stack that is taken as a whole and reversed (R. K. Treiber, "Systems Programming: Coping
 * with Parallelism", 1986). No thread takes a single entry, so an address that comes again is no
 * problem.
 *
 * Contract: any thread posts; the port's thread takes. No lock, nothing blocks or allocates. An op
 * is in one list at a time, and belongs to the mail from post to take.
 */
#ifndef PEERS_SOSD_SOSD_MAIL_H
#define PEERS_SOSD_SOSD_MAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct sosd_letter {
	struct sosd_letter *next;
};

struct sosd_mail {
	_Atomic(struct sosd_letter *) last;
};

/* True: there was none, so the port is to be woken. Who posts behind another need not: all of it is
 * taken together. */
static inline bool sosd_mail_post(struct sosd_mail *m, struct sosd_letter *l)
{
	struct sosd_letter *last = atomic_load_explicit(&m->last, memory_order_relaxed);

	do
		l->next = last;
	/* release: partner is the acquire in sosd_mail_take(): who takes it sees what was written
	 * into the op */
	while (!atomic_compare_exchange_weak_explicit(
		&m->last, &last, l, memory_order_release, memory_order_relaxed));
	return !last;
}

/* All that there is, oldest first. */
static inline struct sosd_letter *sosd_mail_take(struct sosd_mail *m)
{
	struct sosd_letter *l, *next, *first = NULL;

	if (!atomic_load_explicit(&m->last, memory_order_relaxed))
		return NULL;
	/* acquire: partner is the release in sosd_mail_post() */
	for (l = atomic_exchange_explicit(&m->last, NULL, memory_order_acquire); l; l = next) {
		next = l->next;
		l->next = first;
		first = l;
	}
	return first;
}

#endif
