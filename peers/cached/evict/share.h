/* share - how clean pages of volumes with a share (memory/account.h) are listed and trimmed.
 *
 * A clean page of a volume with a share is in the list of its volume, others in the common one.
 * order.h says which list loses a page. When a volume gets its first share, the common list is
 * turned round once, a few pages a poll. The volume's pages go over, and keep their order.
 *
 * Contract: any thread; _locked under mem_lock. share_run() in port 0's poll.
 *
 * Invariants (shares_check):
 *   A1  `used` of a record is the number of its objects' buckets that have a page.
 *   A2  A clean page that stays is in its own volume's list, or in the common one. Pages of volumes
 *       with shares are in the common list only until it has been turned round. page_use says in
 *       which list a page is.
 *   A3  min_sum is the sum of minima. Record 0 has no share.
 *   A4  A share flushes its group only while a request waits in its queue, or it is above its
 *       maximum, or share_run() is to come.
 */
#ifndef PEERS_CACHED_SHARE_H
#define PEERS_CACHED_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/memory/account.h"

struct cached;
struct cport;
struct flush_group;
struct object;

void shares_open(struct cached *k);		/* before anything is loaded: by the settings */
void shares_close(struct cached *k);
/* Under volume_lock: as the settings are now. */
void share_set(struct cached *k, uint32_t rec, uint32_t min, uint32_t max);
/* n pages for [first, first + nr) of the object, of which some have one already. Inside the
 * object. */
struct claim share_claim(struct cport *ps, struct object *o, uint32_t first, uint32_t nr,
	uint32_t n, enum turn turn);
/* Who waits for room goes on if there is some. */
void share_signal(struct cport *ps);
uint64_t share_run(struct cport *ps);			/* returns when it wants to run again */
bool shares_kept(struct cached *k);			/* nobody is above his maximum */
void shares_check(struct cached *k);

#endif
