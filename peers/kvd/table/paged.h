/* paged - the puts that are on their way below by their clients' pages (paged.c of kvd).
 *
 * Contract: one thread; nothing is allocated.
 *
 * Invariants
 *   Y1  The puts are in the order of their records in the log, and no two are of one identity.
 */
#ifndef PEERS_KVD_TABLE_PAGED_H
#define PEERS_KVD_TABLE_PAGED_H

#include "peers/alog/alog.h"

#define PAGED_MAX 64u

struct xreq;

/* A put that is STARTED: the log has its record, of which the client has the value's pages. */
struct paged_put {
	struct xreq *r;
	uint64_t id[2];
	struct alog_place at;			/* of the record, or of its copy */
	uint32_t expiry;
	bool lost;				/* the record does not verify */
};

/* Zeroed, it is empty. */
struct paged {
	uint32_t least;				/* bytes of such a value; tests set it before */
	struct paged_put put[PAGED_MAX];	/* a ring */
	uint32_t from, nr;
	bool news;				/* one was popped; its user takes note */
	uint64_t ids;				/* a bit by the first bits of each identity */
};

/* There must be room: nr < PAGED_MAX. */
void paged_add(struct paged *p, const struct paged_put *put);
/* NULL: it is empty. Stays until the next paged_pop(). */
struct paged_put *paged_first(struct paged *p);
void paged_pop(struct paged *p);
/* NULL: none is of that identity. */
struct paged_put *paged_find(struct paged *p, const uint64_t id[2]);
/* The one whose record stands at this place, or NULL. */
struct paged_put *paged_at(struct paged *p, const uint64_t id[2], uint64_t zone, uint32_t place);
/* No record of this zone verifies. */
void paged_lose(struct paged *p, uint64_t zone);

#endif
