/* kv_guess - how many pages a get asks for, before it knows how long the value is.
 *
 * Too few cost a round trip. Too many cost copies of pages that nobody wants, where nothing is
 * lent. Two things are remembered:
 *
 *   known   the pages that a key took when it was read last, for KV_GUESS_KEYS keys
 *   common  for all other keys: the least number of pages that was enough for nine gets of ten
 *
 * `common` follows from counts of sizes in classes. Every STEP gets it is computed anew,
 * and the counts are halved, so that it follows sizes that change.
 *
 * Contract: the queue's thread; no call of another file.
 */
#include "xseg/client/kv_inside.h"

#define STEP   256u
#define SINGLE 16u		/* up to so many pages each number has a class of its own */

/* Classes above SINGLE grow by a quarter of a power of two. */
static uint32_t class_of(uint32_t pages)
{
	uint32_t log;

	if (pages <= SINGLE)
		return pages;
	log = 31 - (uint32_t)__builtin_clz(pages - 1);
	return SINGLE + (log - 4) * 4 + ((pages - 1) >> (log - 2) & 3) + 1;
}

/* The most that is in the class. */
static uint32_t pages_of(uint32_t class)
{
	uint32_t above = class - SINGLE - 1;

	return class <= SINGLE ? class : (5 + above % 4) << (2 + above / 4);
}

static uint32_t place_of(uint64_t hash)
{
	return (uint32_t)(hash % KV_GUESS_KEYS);
}

static uint16_t check_of(uint64_t hash)
{
	return (uint16_t)(hash >> 48);
}

uint32_t xs_kv_guess(const struct kv_guess *g, uint64_t hash)
{
	uint32_t i = place_of(hash);

	if (g->known[i] && g->check[i] == check_of(hash))
		return g->known[i];
	return g->common ? g->common : 2;
}

/* Nine of ten are in the classes up to this one. */
static void renew(struct kv_guess *g)
{
	uint32_t all = 0, sum = 0, class = 0;

	for (uint32_t i = 0; i < KV_GUESS_CLASSES; i++)
		all += g->seen[i];
	while (class + 1 < KV_GUESS_CLASSES && (sum += g->seen[class]) * 10 < all * 9)
		class ++;
	g->common = pages_of(class);
	for (uint32_t i = 0; i < KV_GUESS_CLASSES; i++)
		g->seen[i] /= 2;
}

void xs_kv_learn(struct kv_guess *g, uint64_t hash, uint32_t pages)
{
	uint32_t i = place_of(hash), class = class_of(pages);

	g->known[i] = (uint16_t)pages;
	g->check[i] = check_of(hash);
	if (class < KV_GUESS_CLASSES)
		g->seen[class]++;
	if (++g->nr % STEP == 0 || g->nr == 8)
		renew(g);
}
