/* gift - pages that writes give, and those that they are lent in exchange (gift.c).
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

#define OWNER_GIFT (1ull << 57)		/* of a page that is in no bucket: lent to write in; below it which entry has it */

bool gifts_open(struct cached *k);	/* before serving; false: out of memory */
/* Whether the write may take the page that it gives for its i-th bucket. */
bool gift_may(struct cport *ps, const struct creq *c, uint32_t i);
/* Of a write that gives, which is STARTED: stores the slot of its i-th bucket, with the page that it gave where that may be taken (it is done),
 * else with its new page; and lends another. A new page that it has no use for stays in c->page. */
void gift_store(struct cport *ps, struct creq *c, uint32_t i);
/* Outside of any object: frees what clients have dropped of what this thread lent; true: some pages are free now. */
bool gifts_look(struct cport *ps);
uint32_t nr_gifts(const struct cport *ps);	/* how many pages are lent by this thread, or were, and nobody has looked since */
void gifts_check(struct cached *k);	/* asserts V1 (tests, simulator) */

#endif
