/* ring - the changes of an object that are not applied yet, in the order in which they came: a
 * ring, with its first change named by the object. See request/change.c for the use of the order.
 *
 * Contract: inside the object.
 */
#include <assert.h>

#include "peers/cached/creq/creq.h"

struct creq *creq_at(struct cached *k, uint32_t link)
{
	assert(link && link <= creq_of(k)->nr_requests);
	return &creq_of(k)->creqs[link - 1];
}

static uint32_t link_of(struct cached *k, const struct creq *c)
{
	return (uint32_t)(c - creq_of(k)->creqs) + 1;
}

void change_enter(struct cached *k, struct object *o, struct creq *c)
{
	uint32_t link = link_of(k, c);

	assert(!c->listed);					/* Q1 */
	c->listed = true;
	if (!o->changes) {
		o->changes = c->older = c->newer = link;
		return;
	}
	c->newer = o->changes;
	c->older = creq_at(k, o->changes)->older;
	creq_at(k, c->older)->newer = link;
	creq_at(k, o->changes)->older = link;
}

void change_leave(struct cached *k, struct object *o, struct creq *c)
{
	uint32_t link = link_of(k, c);

	if (!c->listed)
		return;
	assert(o->changes);					/* Q1 */
	c->listed = false;
	if (c->newer == link) {
		o->changes = 0;
		return;
	}
	creq_at(k, c->older)->newer = c->newer;
	creq_at(k, c->newer)->older = c->older;
	if (o->changes == link)
		o->changes = c->newer;
}
