/* index - where the record of each key is: an entry of 21 bytes for each identity.
 *
 * The identity of a key is 80 bits of a keyed hash. Entries stand in one table in the order of
 * their identities: ordered linear probing (Amble and Knuth, 1974). An entry's home is its place if
 * the table were filled evenly; it stands there or a little behind. The table has 25 bytes for each
 * key that it is made for, so 16 of 100 slots are empty. A scan in the order of the table is one in
 * the order of the identities, whatever is inserted or removed meanwhile.
 *
 * While the log is opened, each slot has the sequence of its record in a second array.
 *
 * Contract: one thread. Nothing is allocated but by index_open() and index_begin(). A slot number
 * is good until the next insert or remove. No system call after index_open().
 *
 * Invariants
 *   X1  Slots in use are sorted by identity. Between the home of an entry and its slot no slot is
 *       empty.
 *   X2  `count` of an entry is the number of records of its identity in zones that are not emptied,
 *       but for those that a clear has made dead (E2 of clear.c). At INDEX_COUNT_MAX it
 *       stays, and such a tombstone stays until the next opening.
 *   X3  keys + tombstones + ghosts is the number of slots in use. A ghost has no record that
 *       counts, and waits until its count is 0.
 *   X5  An identity that was removed, and that an opening may find again, is owed: it takes the
 *       room of an entry until it is paid.
 *   X4  Between index_clear() and index_clear_end() an entry whose record stands before the place
 *       of the clear is `cleared`. It looks like a ghost, and is not counted in X3.
 */
#ifndef PEERS_KVD_TABLE_INDEX_H
#define PEERS_KVD_TABLE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE	UINT64_MAX
#define INDEX_COUNT_MAX ((1u << 19) - 1)

enum index_type { INDEX_GHOST, INDEX_VALUE, INDEX_TOMBSTONE };

struct index_entry {
	uint64_t zone;
	uint32_t place, bytes;			/* multiples of 8 */
	uint32_t count;				/* X2 */
	uint8_t type;				/* enum index_type */
	bool expires;				/* the record has an expiry */
	bool hit;				/* a get found it since it was last looked at */
	bool bad;				/* the record does not verify, and that was told */
	bool large;				/* the value has zones of its own */
	bool cleared;				/* X4 */
	bool has_record;			/* cleared: it was no ghost before */
};

struct index {
	uint8_t *slots;
	uint64_t *sequence;			/* of each slot, while the log is opened; or NULL */
	uint64_t nr_homes, nr_slots;
	uint64_t max, used;			/* entries */
	uint64_t keys, tombstones;
	uint64_t live_bytes;			/* of records of keys */
	uint64_t newest;			/* the highest zone that it was told */
	uint64_t clear_zone;			/* X4; 0: no entry is cleared */
	uint32_t clear_place;
	uint64_t owed[2], owed_until[2];	/* X5: the older ones, and those since */
};

/* Bytes for so many keys; and how many more while the log is opened. */
uint64_t index_bytes(uint64_t keys);
uint64_t index_opening_bytes(uint64_t keys);

int index_open(struct index *ix, uint64_t keys);	/* -ENOMEM */
void index_close(struct index *ix);
/* Forgets all, and has sequences from then on. -ENOMEM. */
int index_begin(struct index *ix);
void index_begun(struct index *ix);	/* the log is open: no sequences any more */

/* The first 64 bits of an identity that will be looked for soon. */
void index_prefetch(const struct index *ix, uint64_t hash);
/* The slot of an identity, or INDEX_NONE. */
uint64_t index_find(const struct index *ix, const uint64_t id[2]);
void index_get(const struct index *ix, uint64_t slot, struct index_entry *e);
void index_set(struct index *ix, uint64_t slot, const struct index_entry *e);
/* A new entry; the identity is not there. INDEX_NONE: it has no room. */
uint64_t index_insert(struct index *ix, const uint64_t id[2], const struct index_entry *e);
void index_remove(struct index *ix, uint64_t slot);
/* All entries become cleared. Each has its record before this place; those to come have it there or
 * behind. */
void index_clear(struct index *ix, uint64_t zone, uint32_t place);
void index_clear_end(struct index *ix);	/* no entry is cleared any more */
/* X5: one more is owed until index_paid() has reached this number, which never falls. */
void index_owe(struct index *ix, uint64_t number);
void index_paid(struct index *ix, uint64_t number);
uint64_t index_owed(const struct index *ix);
/* How many more it is sure to have room for. */
uint64_t index_room(const struct index *ix);

/* The first 64 bits of the identity in a slot in use. */
uint64_t index_hash(const struct index *ix, uint64_t slot);
void index_identity(const struct index *ix, uint64_t slot, uint64_t id[2]);
/* The first slot in use whose hash is not below `hash`; and the next one behind a slot.
 * INDEX_NONE: there is none. */
uint64_t index_from(const struct index *ix, uint64_t hash);
uint64_t index_next(const struct index *ix, uint64_t slot);

#endif
