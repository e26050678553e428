/* gift - pages that writes give, and pages that writes are lent in exchange (gift.c).
 *
 * Contract: inside the object, unless it says otherwise.
 */
#ifndef PEERS_CACHED_GIFT_H
#define PEERS_CACHED_GIFT_H

#include <stdbool.h>
#include <stdint.h>

struct cached;
struct cport;
struct creq;
struct xreq;

bool gifts_open(struct cached *k);	/* before serving; false: out of memory */
/* Whether the page that the write gives for its i-th bucket, a whole one, may be taken; whether the
 * page of a slot may be lent in exchange. */
bool gift_may(struct cached *k, const struct xreq *r, uint32_t i);
bool gift_may_lend(struct cached *k, uint64_t slot);
/* The page is that bucket's from now on, by its owner word; *given: what that was. False: somebody
 * else was faster. */
bool gift_take(struct cport *ps, uint32_t page, uint64_t bucket, uint64_t *given);
/* After its slot was stored: `page`, which is in no slot any more, is lent for what was given;
 * NO_PAGE: nothing is. */
void gift_exchange(
	struct cport *ps, const struct xreq *r, uint32_t i, uint32_t page, uint64_t given);
/* `old`, which left its slot as something was put in its place, is lent to the client for the i-th
 * page that it gave, if it may be; else it goes back. */
void gift_lend_first(struct cport *ps, const struct xreq *r, uint32_t i, uint32_t old);
/* The page to be lent for what the write gives in the place of `old`: that one, or the request's
 * new page; the other goes back. */
uint32_t gift_choose(struct cport *ps, struct creq *c, uint32_t i, uint32_t old);
/* Outside of any object: frees what clients have dropped of what this thread lent; true: some pages
 * are free now. */
bool gifts_look(struct cport *ps);
/* how many pages are lent by this thread, or were, and nobody has looked since */
uint32_t nr_gifts(const struct cport *ps);
void gifts_check(struct cached *k);	/* asserts V1 (tests, simulator) */

#endif
