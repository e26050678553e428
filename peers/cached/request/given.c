/* given - a write that gives its pages stores them (lend/gift.c).
 *
 * Contract: inside the object.
 */
#include "peers/cached/lend/gift.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/request/request.h"

void gift_store(struct cport *ps, struct creq *c, uint32_t i)
{
	struct cached *k = ps->cache;
	uint64_t given;
	uint32_t old;

	if (c->redo && xseg_req_gift(peer_of(k)->seg, c->r, i) == XSEG_GIFT_TAKEN) {
		c->inherited = true;
		return;
	}
	if (creq_is_done(c, i) &&
		gift_take(ps, c->r->page[i], bucket_name(c->obj, c->first + i), &given)) {
		old = write_store(ps, c, i, c->r->page[i]);
		count(ps, CC_GIVEN_BYTES, BUCKET_SIZE);
		gift_exchange(ps, c->r, i, gift_choose(ps, c, i, old), given);
		return;
	}
	if (creq_is_done(c, i)) {
		write_fill(ps, c, i);
		write_settle(c);
	}
	old = write_store(ps, c, i, c->page[i]);
	c->page[i] = NO_PAGE;
	if (request_is_partial(c->r, i))
		page_put(ps, old);
	else
		gift_lend_first(ps, c->r, i, old);
}
