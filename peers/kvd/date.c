/* date - kvd's time, by which values expire.
 *
 * Contract: kvd's thread. No clock is read here: the driver of the port says the date, which can
 * jump (peer_port.date_s).
 *
 * Invariants
 *   D1  Time never goes back (K9): it is the latest that the driver has said, or that this arena or
 *       the head of the log has. So nothing that has expired comes back.
 *   D2  The head is written when a record is found expired by a time that the head does not have,
 *       and at a stop: a client may have found one expired by the time that kvd told it. Until
 *       that is done, a loss of power together with a date that jumps back can show the record
 *       again.
 */
#include "peers/kvd/kvd.h"

void kvd_see_date(struct kvd *k)
{
	if (k->pp->date_s <= k->time.s)
		return;
	k->time.s = k->pp->date_s;
	/* relaxed: one word, which a successor compares with others */
	atomic_store_explicit(&k->mem.arena->time_s, k->time.s, memory_order_relaxed);
}

void kvd_date_write(struct kvd *k)
{
	struct kvd_words *w = alog_words(k->log);

	w->time_s = k->time.written = k->time.s;
	alog_words_write(k->log);
}

/* D2 */
bool kvd_is_expired(struct kvd *k, uint32_t expiry)
{
	if (!expiry || expiry > k->time.s)
		return false;
	if (expiry > k->time.written && k->state == KVD_OPEN)
		kvd_date_write(k);
	return true;
}
