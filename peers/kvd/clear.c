/* clear - DELETE_ALL: all values go at once, by one record.
 *
 * The record has the type CLEAR, no key and no value. All records with lower sequences are dead
 * from then on. One with an expiry waits for that time; then kvd appends one without. A clear has
 * three steps:
 *
 *   1  the record is appended (change.c), and the index calls all of its entries cleared. From here
 *      on each key is absent. Large values are named by no record any more.
 *   2  a head is written that has the record's sequence, so an opening skips what is below it
 *   3  a sweep of the index takes the entries out, some at a time, and tells the log that their
 *      records are dead. Compaction empties their zones.
 *
 * Contract: kvd's thread. Steps 2 and 3 go on beside requests, in state OPEN.
 *
 * Invariants
 *   E1  A record below the sequence of the last clear counts for no key, wherever it stands: in
 *       the index, in an opening, in a compaction, in a backup. The last clear is in the log for as
 *       long as there is no later one, and so is one that waits.
 *   E2  Records below the last clear are not counted (X2 of table/index.h), and gone() leaves them
 *       out. An opening that has found the clear behind them has counted them for keys that were
 *       put again: a tombstone of such a key stays until the next opening.
 *   E3  An entry is taken out only when a head has the sequence (step 2). An opening that does not
 *       know it has an entry for all that it finds, and these may be as many as the index can have.
 *   E4  The time of one that waits is in the head before anything is judged by it (D2 of date.c).
 *       So it is done before any change that is made at that time or later.
 *   E5  A change that finds no room while the sweep goes on waits for it.
 *   E6  The record of a clear that is damaged is written anew when its zone goes: kvd knows all
 *       that it says. Without it the next opening could find values that were deleted.
 */
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

#define STEP 512u				/* entries of a sweep at a time */

/* ---- where the records of clears stand ---- */

static bool stands_at(const struct kvd_clear_record *c, uint64_t zone, uint32_t place)
{
	return c->bytes && c->zone == zone && c->place == place;
}

static struct kvd_clear_record *record_at(struct kvd *k, uint64_t zone, uint32_t place)
{
	if (stands_at(&k->clear.last, zone, place))
		return &k->clear.last;
	return stands_at(&k->clear.waits, zone, place) ? &k->clear.waits : NULL;
}

static void forget(struct kvd *k, struct kvd_clear_record *c)
{
	if (c->bytes)
		alog_dead(k->log, c->zone, c->bytes);
	c->bytes = 0;
}

void kvd_clear_copied(struct kvd *k, uint64_t from_zone, const struct alog_hint *from,
	uint64_t to_zone, const struct alog_hint *to)
{
	struct kvd_clear_record *c = record_at(k, from_zone, from->place);

	if (!c)
		return;
	c->zone = to_zone;
	c->place = to->place;
	c->bytes = to->bytes;
}

/* E6 */
bool kvd_clear_lost(struct kvd *k, uint64_t zone, struct alog_hint *hint)
{
	const struct kvd_clear_record *c = &k->clear.last;

	if (!c->bytes || c->zone != zone)
		c = &k->clear.waits;
	if (!c->bytes || c->zone != zone)
		return false;
	*hint = (struct alog_hint){ .type = ALOG_CLEAR, .sequence = c->sequence,
		.place = c->place, .bytes = c->bytes, .expiry = c->at_s };
	kvd_count(k, KS_BAD_RECORDS, 1);
	log_error("%s: the record of a deletion of all values is damaged: %u bytes at %u of "
		"+%s:%016llx; it is written anew, and nothing is lost", k->peer.name, c->bytes,
		c->place, k->cfg.prefix, (unsigned long long)zone);
	return true;
}

/* E1 */
enum alog_verdict kvd_clear_judge(struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	return record_at(k, zone, hint->place) ? ALOG_LIVE : ALOG_DEAD;
}

/* ---- a clear ---- */

void kvd_clear_make(struct kvd *k, const struct kvd_work *w, struct alog_put *put)
{
	put->rec.type = ALOG_CLEAR;
	put->rec.expiry = w->c.expiry > kvd_time(k) ? w->c.expiry : 0;
}

/* Step 2. The head may be ahead of the record: what it makes dead was not promised after it. */
static void tell_head(struct kvd *k)
{
	struct kvd_words *w = alog_words(k->log);

	w->magic = KVD_WORDS_CLEARED;
	w->cleared = k->clear.sequence;
	alog_words_write(k->log);
}

void kvd_clear_put(struct kvd *k, const struct alog_place *at, const struct xrecord *rec)
{
	struct kvd_clear_record *c = rec->expiry ? &k->clear.waits : &k->clear.last;

	forget(k, &k->clear.waits);
	if (!rec->expiry)
		forget(k, &k->clear.last);
	*c = (struct kvd_clear_record){ .zone = at->zone, .sequence = at->sequence,
		.place = at->place, .bytes = at->bytes, .at_s = rec->expiry };
	k->time.used |= rec->expiry != 0;	/* E4 */
	if (rec->expiry)
		return;
	k->clear.sequence = k->clear.counted_from = at->sequence;
	index_clear(&k->index, at->zone, at->place);
	large_clear(&k->large.t);
	k->clear.sweeps = true;
	k->clear.cursor = 0;
	XKILL(KVD_CLEARED);
	tell_head(k);
}

/* E4. One that waits, and whose time has come, is done now. True: it cannot be done yet. */
bool kvd_clear_lags(struct kvd *k)
{
	struct alog_put put = { .rec = { .type = ALOG_CLEAR } };
	struct alog_place at;

	if (!k->clear.waits.bytes || k->clear.waits.at_s > kvd_time(k))
		return false;
	if (k->paged.nr)			/* G4 of paged.c */
		return true;
	if (alog_append(k->log, &put, 1, &at))
		return true;
	kvd_clear_put(k, &at, &put.rec);
	kvd_want_below(k, at.end);
	log_info("%s: all values were deleted, as was asked for", k->peer.name);
	return false;
}

/* ---- the sweep ---- */

bool kvd_clear_sweeps(const struct kvd *k)
{
	return k->clear.sweeps;
}

/* The slot of the next entry, if this one was taken out. */
static uint64_t take_out(struct kvd *k, uint64_t slot, const struct index_entry *e)
{
	if (e->has_record)
		alog_dead(k->log, e->zone, e->bytes);
	index_remove(&k->index, slot);
	return index_next(&k->index, slot - 1);
}

/* Step 3 */
static void sweep(struct kvd *k)
{
	uint64_t slot = index_from(&k->index, k->clear.cursor);
	struct index_entry e;

	for (uint32_t i = 0; i < STEP && slot != INDEX_NONE; i++) {
		index_get(&k->index, slot, &e);
		slot = e.cleared || (e.type == INDEX_GHOST && !e.count)
			       ? take_out(k, slot, &e) : index_next(&k->index, slot);
	}
	if (slot != INDEX_NONE) {
		k->clear.cursor = index_hash(&k->index, slot);
		return;
	}
	k->clear.sweeps = false;
	index_clear_end(&k->index);
}

uint64_t kvd_clear_poll(struct kvd *k)
{
	uint64_t left;

	if (k->clear.sweeps && alog_words_stable(k->log)) {	/* E3 */
		sweep(k);
		return k->pp->now_ns;
	}
	if (!k->clear.waits.bytes)
		return PEER_NEVER;
	left = k->clear.waits.at_s > k->time.s ? k->clear.waits.at_s - k->time.s : 1;
	return k->pp->now_ns + left * KVD_SECOND;
}

/* ---- the opening ---- */

void kvd_clear_begin(struct kvd *k)
{
	k->clear = (struct kvd_clear){ .sequence = 0 };
}

/* What the head says is known before the first record is found. */
static void look_at_head(struct kvd *k)
{
	const struct kvd_words *w = alog_words(k->log);

	if (w->magic != KVD_WORDS_CLEARED || k->clear.counted_from)
		return;
	k->clear.counted_from = w->cleared;
	if (k->clear.sequence < w->cleared)
		k->clear.sequence = w->cleared;
}

static void found_clear(struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	struct kvd_clear_record *c = hint->expiry ? &k->clear.waits : &k->clear.last;

	k->time.used |= hint->expiry != 0;
	if (c->bytes && (c->sequence > hint->sequence ||
			 (c->sequence == hint->sequence && c->zone > zone))) {
		alog_dead(k->log, zone, hint->bytes);
		return;
	}
	forget(k, c);
	*c = (struct kvd_clear_record){ .zone = zone, .sequence = hint->sequence,
		.place = hint->place, .bytes = hint->bytes, .at_s = hint->expiry };
	if (!hint->expiry && k->clear.sequence < hint->sequence)
		k->clear.sequence = hint->sequence;
}

bool kvd_clear_found(struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	look_at_head(k);
	if (hint->type == ALOG_CLEAR) {
		found_clear(k, zone, hint);
		return true;
	}
	if (hint->sequence >= k->clear.counted_from)
		return false;
	alog_dead(k->log, zone, hint->bytes);	/* E2 */
	return true;
}

/* E1: what was found before the clear that makes it dead. */
void kvd_clear_sweep_found(struct kvd *k)
{
	uint64_t slot = index_from(&k->index, 0);
	struct index_entry e;

	for (; slot != INDEX_NONE; slot = index_next(&k->index, slot)) {
		index_get(&k->index, slot, &e);
		if (k->index.sequence[slot] >= k->clear.sequence)
			continue;
		if (e.type != INDEX_GHOST)
			alog_dead(k->log, e.zone, e.bytes);
		e = (struct index_entry){ .zone = e.zone, .type = INDEX_GHOST };
		index_set(&k->index, slot, &e);
	}
}

void kvd_clear_known(struct kvd *k)
{
	look_at_head(k);
	if (k->clear.waits.bytes && k->clear.waits.sequence < k->clear.sequence)
		forget(k, &k->clear.waits);
	if (k->clear.sequence <= k->clear.counted_from)
		return;
	kvd_clear_sweep_found(k);
	k->clear.counted_from = k->clear.sequence;
	k->clear.sweeps = true;
	tell_head(k);
}
