/* index - see index.h. A slot is 8 bytes of hash, 2 more, 3 of the zone, and a word:
 *
 *   bits     0..18  19..37  38..56  57     58..59  60       61   62     63
 *   meaning  place  bytes   count   large  type    expires  hit  bad    in use
 *
 * The zone's id is kept modulo 2^24. Ids of one log differ by less, since alog keeps its zones
 * within a span of four times their number and a little.
 */
#include "peers/kvd/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xtypes/xhuge.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23			/* <sys/mman.h> has no name for it */
#endif

#define SLOT_BYTES 21u
#define KEY_BYTES  25u				/* of the table, for each key */
#define LAST_SLOTS 4096u			/* behind the last home */
#define USED	   (1ull << 63)
#define ZONE_BITS  24
#define WORD_AT	   13u

static uint64_t nr_homes(uint64_t keys)
{
	return keys * KEY_BYTES / SLOT_BYTES + 1;
}

static uint64_t nr_slots(uint64_t keys)
{
	return nr_homes(keys) + LAST_SLOTS;
}

uint64_t index_bytes(uint64_t keys)
{
	return nr_slots(keys) * SLOT_BYTES;
}

uint64_t index_opening_bytes(uint64_t keys)
{
	return nr_slots(keys) * sizeof(uint64_t);
}

/* Begins with a huge page, and has them where it can: each look is at a random place. All of it is
 * there at once. */
static void *map(uint64_t bytes)
{
	uint8_t *at = mmap(NULL, bytes + XHUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *from;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before;
	size_t whole = (bytes + page - 1) / page * page;

	if (at == MAP_FAILED)
		return NULL;
	before = (XHUGE_BYTES - (uintptr_t)at % XHUGE_BYTES) % XHUGE_BYTES;
	from = at + before;
	if (before)
		munmap(at, before);
	munmap(from + whole, bytes + XHUGE_BYTES - before - whole);
	madvise(from, whole, MADV_HUGEPAGE);
	if (madvise(from, whole, MADV_POPULATE_WRITE))
		memset(from, 0, whole);		/* a kernel before 5.14 */
	return from;
}

int index_open(struct index *ix, uint64_t keys)
{
	*ix = (struct index){ .nr_homes = nr_homes(keys), .nr_slots = nr_slots(keys),
		.max = keys };
	ix->slots = map(ix->nr_slots * SLOT_BYTES);
	return ix->slots ? 0 : -ENOMEM;
}

void index_close(struct index *ix)
{
	index_begun(ix);
	if (ix->slots)
		munmap(ix->slots, ix->nr_slots * SLOT_BYTES);
	ix->slots = NULL;
}

int index_begin(struct index *ix)
{
	if (ix->used)
		memset(ix->slots, 0, ix->nr_slots * SLOT_BYTES);
	ix->used = ix->keys = ix->tombstones = ix->live_bytes = ix->newest = 0;
	index_clear_end(ix);
	memset(ix->owed, 0, sizeof(ix->owed));
	if (!ix->sequence)
		ix->sequence = map(ix->nr_slots * sizeof(uint64_t));
	return ix->sequence ? 0 : -ENOMEM;
}

void index_begun(struct index *ix)
{
	if (ix->sequence)
		munmap(ix->sequence, ix->nr_slots * sizeof(uint64_t));
	ix->sequence = NULL;
}

/* ---- slots ---- */

static uint8_t *at(const struct index *ix, uint64_t slot)
{
	return ix->slots + slot * SLOT_BYTES;
}

static uint64_t word_of(const struct index *ix, uint64_t slot)
{
	uint64_t w;

	memcpy(&w, at(ix, slot) + WORD_AT, sizeof(w));
	return w;
}

static bool is_used(const struct index *ix, uint64_t slot)
{
	return word_of(ix, slot) & USED;
}

uint64_t index_hash(const struct index *ix, uint64_t slot)
{
	uint64_t hash;

	memcpy(&hash, at(ix, slot), sizeof(hash));
	return hash;
}

void index_identity(const struct index *ix, uint64_t slot, uint64_t id[2])
{
	uint16_t more;

	memcpy(&more, at(ix, slot) + 8, sizeof(more));
	id[0] = index_hash(ix, slot);
	id[1] = more;
}

/* Below 0, 0 or above, as of memcmp(). */
static int compare(const struct index *ix, uint64_t slot, const uint64_t id[2])
{
	uint64_t has[2];

	index_identity(ix, slot, has);
	if (has[0] != id[0])
		return has[0] < id[0] ? -1 : 1;
	return (int)(uint16_t)has[1] - (int)(uint16_t)id[1];
}

static uint64_t home_of(const struct index *ix, uint64_t hash)
{
	return (uint64_t)((unsigned __int128)hash * ix->nr_homes >> 64);
}

/* The first slot from the home on that is empty, or does not stand before the identity (X1). */
static uint64_t look(const struct index *ix, const uint64_t id[2])
{
	uint64_t slot = home_of(ix, id[0]);

	while (slot < ix->nr_slots && is_used(ix, slot) && compare(ix, slot, id) < 0)
		slot++;
	return slot;
}

uint64_t index_find(const struct index *ix, const uint64_t id[2])
{
	uint64_t slot = look(ix, id);

	if (slot == ix->nr_slots || !is_used(ix, slot) || compare(ix, slot, id) != 0)
		return INDEX_NONE;
	return slot;
}

void index_prefetch(const struct index *ix, uint64_t hash)
{
	const uint8_t *slot = at(ix, home_of(ix, hash));

	__builtin_prefetch(slot);
	__builtin_prefetch(slot + 64);
}

/* ---- entries ---- */

static uint64_t zone_of(const struct index *ix, uint64_t low)
{
	uint64_t span = 1ull << ZONE_BITS, id = (ix->newest & ~(span - 1)) | low;

	return id > ix->newest ? id - span : id;
}

static bool is_cleared(const struct index *ix, const struct index_entry *e)
{
	return e->zone < ix->clear_zone ||
	       (e->zone == ix->clear_zone && e->place < ix->clear_place);
}

void index_get(const struct index *ix, uint64_t slot, struct index_entry *e)
{
	uint64_t w = word_of(ix, slot);
	uint32_t zone = 0;

	memcpy(&zone, at(ix, slot) + 10, 3);
	*e = (struct index_entry){ .zone = zone_of(ix, zone), .place = (w & 0x7ffff) * 8,
		.bytes = (w >> 19 & 0x7ffff) * 8, .count = w >> 38 & INDEX_COUNT_MAX,
		.type = w >> 58 & 3, .expires = w >> 60 & 1, .hit = w >> 61 & 1,
		.bad = w >> 62 & 1, .large = w >> 57 & 1 };
	if (!ix->clear_zone || !is_cleared(ix, e))
		return;
	e->cleared = true;
	e->has_record = e->type != INDEX_GHOST;
	e->type = INDEX_GHOST;
}

static void count(struct index *ix, const struct index_entry *e, int64_t by)
{
	if (e->type == INDEX_VALUE) {
		ix->keys += (uint64_t)by;
		ix->live_bytes += (uint64_t)(by * (int64_t)e->bytes);
	} else if (e->type == INDEX_TOMBSTONE) {
		ix->tombstones += (uint64_t)by;
	}
}

static void store(struct index *ix, uint64_t slot, const struct index_entry *e)
{
	uint32_t zone = (uint32_t)(e->zone & ((1u << ZONE_BITS) - 1));
	uint64_t w = USED | e->place / 8 | (uint64_t)(e->bytes / 8) << 19 |
		     (uint64_t)e->count << 38 | (uint64_t)e->large << 57 |
		     (uint64_t)e->type << 58 |
		     (uint64_t)e->expires << 60 | (uint64_t)e->hit << 61 |
		     (uint64_t)e->bad << 62;

	if (e->zone > ix->newest)
		ix->newest = e->zone;
	memcpy(at(ix, slot) + 10, &zone, 3);
	memcpy(at(ix, slot) + WORD_AT, &w, sizeof(w));
	count(ix, e, 1);
}

void index_set(struct index *ix, uint64_t slot, const struct index_entry *e)
{
	struct index_entry old;

	index_get(ix, slot, &old);
	count(ix, &old, -1);
	store(ix, slot, e);
}

static void move(struct index *ix, uint64_t to, uint64_t from, uint64_t nr)
{
	memmove(at(ix, to), at(ix, from), nr * SLOT_BYTES);
	if (ix->sequence)
		memmove(&ix->sequence[to], &ix->sequence[from], nr * sizeof(uint64_t));
}

uint64_t index_insert(struct index *ix, const uint64_t id[2], const struct index_entry *e)
{
	uint64_t slot = look(ix, id), end = slot;
	uint16_t more = (uint16_t)id[1];

	while (end < ix->nr_slots && is_used(ix, end))
		end++;
	if (end == ix->nr_slots || ix->used >= ix->max)
		return INDEX_NONE;
	move(ix, slot + 1, slot, end - slot);
	memcpy(at(ix, slot), &id[0], 8);
	memcpy(at(ix, slot) + 8, &more, 2);
	store(ix, slot, e);
	if (ix->sequence)
		ix->sequence[slot] = 0;
	ix->used++;
	return slot;
}

/* Those behind it that are not at home move up. */
void index_remove(struct index *ix, uint64_t slot)
{
	struct index_entry old;
	uint64_t end = slot + 1;

	index_get(ix, slot, &old);
	count(ix, &old, -1);
	while (end < ix->nr_slots && is_used(ix, end) && home_of(ix, index_hash(ix, end)) < end)
		end++;
	move(ix, slot, slot + 1, end - slot - 1);
	memset(at(ix, end - 1), 0, SLOT_BYTES);
	ix->used--;
}

void index_clear(struct index *ix, uint64_t zone, uint32_t place)
{
	ix->clear_zone = zone;
	ix->clear_place = place;
	ix->keys = ix->tombstones = ix->live_bytes = 0;
}

void index_clear_end(struct index *ix)
{
	ix->clear_zone = ix->clear_place = 0;
}

/* ---- room ---- */

/* Two sums do: those since the older ones are paid together, a little later than they might be. */
void index_owe(struct index *ix, uint64_t number)
{
	ix->owed[1]++;
	ix->owed_until[1] = number;
}

void index_paid(struct index *ix, uint64_t number)
{
	while (index_owed(ix) && (!ix->owed[0] || number >= ix->owed_until[0])) {
		ix->owed[0] = ix->owed[1];
		ix->owed_until[0] = ix->owed_until[1];
		ix->owed[1] = 0;
	}
}

uint64_t index_owed(const struct index *ix)
{
	return ix->owed[0] + ix->owed[1];
}

uint64_t index_room(const struct index *ix)
{
	uint64_t taken = ix->used + index_owed(ix);

	return taken < ix->max ? ix->max - taken : 0;
}

/* ---- in their order ---- */

static uint64_t first_used(const struct index *ix, uint64_t slot)
{
	while (slot < ix->nr_slots && !is_used(ix, slot))
		slot++;
	return slot < ix->nr_slots ? slot : INDEX_NONE;
}

uint64_t index_from(const struct index *ix, uint64_t hash)
{
	const uint64_t id[2] = { hash, 0 };

	return first_used(ix, look(ix, id));
}

uint64_t index_next(const struct index *ix, uint64_t slot)
{
	return first_used(ix, slot + 1);
}
