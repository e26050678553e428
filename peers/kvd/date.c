/* date - kvd's time, by which values expire.
 *
 * Contract: kvd's thread. No clock is read here: the driver of the port says the date, which can
 * jump (peer_port.date_s).
 *
 * Invariants
 *   D1  Time never goes back (K9): it is the latest that the driver has said, or that this arena or
 *       the head of the log has. So nothing that has expired comes back.
 *   D2  No record is judged, by kvd or by a client, by a time that the head does not have. The head
 *       has a time KVD_AHEAD_S ahead of the present one, and is written when half of that is left.
 *       After a loss of power time goes on from there, wherever the date is. So what was seen to
 *       have expired stays away, and a value may expire that much too early then.
 *   D3  If the head is behind, because the date has jumped or nothing came for a while, requests
 *       wait for it. After HELD_NS they are served, by the time that the head has.
 *   D4  A log without records that expire needs none of this.
 */
#include "peers/kvd/kvd.h"

#define HELD_NS KVD_SECOND

/* D2 */
static void ask_head(struct kvd *k, uint64_t until)
{
	struct kvd_words *w = alog_words(k->log);

	w->time_s = k->time.asked = until;
	if (k->time.until > until)
		k->time.until = until;
	alog_words_write(k->log);
}

static void look_at_head(struct kvd *k)
{
	if (k->time.asked && alog_words_stable(k->log)) {
		k->time.until = k->time.asked;
		k->time.asked = 0;
	}
	if (k->time.used && !k->time.asked && !k->time.ends &&
		k->time.s + KVD_AHEAD_S / 2 > k->time.until)
		ask_head(k, k->time.s + KVD_AHEAD_S);
}

/* D1 */
static void go_on_to(struct kvd *k, uint64_t s)
{
	if (s <= k->time.s)
		return;
	k->time.s = s;
	/* relaxed: one word, which a successor compares with others */
	atomic_store_explicit(&k->mem.arena->time_s, s, memory_order_relaxed);
}

void kvd_see_date(struct kvd *k)
{
	go_on_to(k, k->pp->date_s);
	if (k->state == KVD_OPEN)
		look_at_head(k);
}

void kvd_date_begin(struct kvd *k)
{
	const struct kvd_words *w = alog_words(k->log);

	k->time.until = w->time_s;
	k->time.asked = 0;
	if (!alog_is_warm(k->log))
		go_on_to(k, w->time_s);		/* what was told last is not known */
}

void kvd_date_end(struct kvd *k)
{
	k->time.ends = true;
	ask_head(k, kvd_time(k));
}

uint64_t kvd_time(const struct kvd *k)
{
	return k->time.used && k->time.until < k->time.s ? k->time.until : k->time.s;
}

bool kvd_time_lags(struct kvd *k)
{
	if (!k->time.used || k->time.s <= k->time.until || k->time.ends) {
		k->time.held_ns = 0;
		return false;
	}
	if (!k->time.held_ns)
		k->time.held_ns = k->pp->now_ns + HELD_NS;
	return k->pp->now_ns < k->time.held_ns;
}

bool kvd_is_expired(struct kvd *k, uint32_t expiry)
{
	return expiry && expiry <= kvd_time(k);
}
