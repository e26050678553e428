/* paged - see paged.h. */
#include "peers/kvd/table/paged.h"

#include <assert.h>

static struct paged_put *put_at(struct paged *p, uint32_t i)
{
	return &p->put[(p->from + i) % PAGED_MAX];
}

static uint64_t bit_of(const uint64_t id[2])
{
	return 1ull << (id[0] >> 58);
}

void paged_add(struct paged *p, const struct paged_put *put)
{
	assert(p->nr < PAGED_MAX);
	*put_at(p, p->nr++) = *put;
	p->ids |= bit_of(put->id);
}

struct paged_put *paged_first(struct paged *p)
{
	return p->nr ? put_at(p, 0) : NULL;
}

void paged_pop(struct paged *p)
{
	assert(p->nr);
	p->from = (p->from + 1) % PAGED_MAX;
	p->nr--;
	p->news = true;
	p->ids = 0;
	for (uint32_t i = 0; i < p->nr; i++)
		p->ids |= bit_of(put_at(p, i)->id);
}

struct paged_put *paged_find(struct paged *p, const uint64_t id[2])
{
	if (!(p->ids & bit_of(id)))
		return NULL;
	for (uint32_t i = 0; i < p->nr; i++)
		if (put_at(p, i)->id[0] == id[0] && put_at(p, i)->id[1] == id[1])
			return put_at(p, i);
	return NULL;
}

struct paged_put *paged_at(struct paged *p, const uint64_t id[2], uint64_t zone, uint32_t place)
{
	struct paged_put *found = paged_find(p, id);

	return found && found->at.zone == zone && found->at.place == place ? found : NULL;
}

void paged_lose(struct paged *p, uint64_t zone)
{
	for (uint32_t i = 0; i < p->nr; i++)
		put_at(p, i)->lost |= put_at(p, i)->at.zone == zone;
}
