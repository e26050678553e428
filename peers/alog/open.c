/* open - the log is read: one path after a clean stop, a kill, and a loss of power.
 *
 *   state    what is done                                              next
 *   HEADS    both heads are read; the arena is compared with them      FIRST, or FAILED
 *   FIRST    of each live id the first page is read                    RECORDS
 *   RECORDS  of each zone the hints are read, or all of it             DELETE
 *   DELETE   what is dying is deleted again                            HEAD
 *   HEAD     a head with the new epoch and a reservation is written    SERVES
 *
 * A salvage reads and does no more. If no head verifies, the zones that the store lists count:
 *
 *   HEADS    no head verifies                                          IDENTIFY
 *   IDENTIFY from the highest zone down: one that says UUID and epoch  FIRST, or FAILED
 *   FIRST    as above                                                  SALVAGES
 *
 * Contract: see inside.h. It may be killed in each state: nothing is appended and no id is used
 * before SERVES, and whatever it writes or deletes, the next opening writes or deletes as well.
 *
 * Invariants
 *   L3  No zone that is found is ever appended to: all ids of this opening are at or above the
 *       reservation that it found.
 *   L4  Hints are believed only of a zone that the head or a later zone calls flushed, or that was
 *       written with this very arena; and never of a poor one (H5 of head.c). All other zones are
 *       scanned, and a place that does not verify is a hole. A chain counts only if it is complete,
 *       whenever the zone is scanned: so a record that was undone once stays undone.
 *   O1  The arena is warm only if UUID, owner and epoch are those of the head. A tail with contents
 *       whose log has been opened elsewhere since is refused, not dropped.
 */
#include <errno.h>
#include <string.h>

#include "peers/alog/inside.h"

#define ARENA_MAGIC    0x324c4941544c4150ull	/* "PALTAIL2" */

/* ---- the arena ---- */

static bool has_contents(const struct alog_arena *a)
{
	uint64_t first = atomic_load_explicit(&a->first, memory_order_relaxed);

	return atomic_load_explicit(&a->end, memory_order_relaxed) > first * ALOG_PAGE;
}

static bool is_of_this_log(const struct alog *l, bool suspect)
{
	const struct alog_arena *a = l->arena;
	uint64_t epoch = atomic_load_explicit(&a->epoch, memory_order_relaxed),
		 next = atomic_load_explicit(&a->next_epoch, memory_order_relaxed),
		 head = l->head.epoch;

	if (memcmp(a->uuid, l->cfg.uuid, sizeof(a->uuid)) != 0 || a->owner != l->cfg.owner ||
		l->opening.owner != l->cfg.owner)
		return false;
	return epoch == head || next == head || (suspect && epoch + 1 == head);
}

/* O1 */
static int compare_arena(struct alog *l, bool fresh_log)
{
	struct alog_arena *a = l->arena;
	uint64_t next;

	if (a->magic != ARENA_MAGIC)
		return 0;
	if (a->tail_pages != l->cfg.tail_pages || a->zone_bytes != l->cfg.zone_bytes)
		return -EINVAL;
	if (fresh_log || !is_of_this_log(l, l->opening.suspect))
		return has_contents(a) ? -ESTALE : 0;
	l->opening.warm = true;
	/* it must match again if this opening is killed before its head is written */
	atomic_store_explicit(&a->epoch, l->head.epoch, memory_order_release);
	next = atomic_load_explicit(&a->next_epoch, memory_order_relaxed);
	if (l->head.epoch < next)
		l->head.epoch = next;
	return tail_recover(l);
}

static void make_arena(struct alog *l)
{
	struct alog_arena *a = l->arena;

	a->magic = 0;
	atomic_thread_fence(memory_order_release);
	memcpy(a->uuid, l->cfg.uuid, sizeof(a->uuid));
	a->tail_pages = l->cfg.tail_pages;
	a->zone_bytes = l->cfg.zone_bytes;
	a->owner = l->cfg.owner;
	atomic_store_explicit(&a->first, 0, memory_order_relaxed);
	atomic_store_explicit(&a->end, 0, memory_order_relaxed);
	atomic_store_explicit(&a->stable, 0, memory_order_relaxed);
	atomic_store_explicit(&a->doubt_low, 0, memory_order_relaxed);
	atomic_store_explicit(&a->filled_low, 0, memory_order_relaxed);
	atomic_store_explicit(&a->born, l->head.epoch, memory_order_relaxed);
	atomic_store_explicit(&a->epoch, l->head.epoch, memory_order_relaxed);
	atomic_store_explicit(&a->next_epoch, l->head.epoch, memory_order_relaxed);
	/* a successor that sees the magic sees the rest; its partner is the kernel */
	atomic_thread_fence(memory_order_release);
	a->magic = ARENA_MAGIC;
}

/* ---- salvage ---- */

void alog_salvage(struct alog *l, const uint64_t *zone, uint32_t nr)
{
	l->opening.listed = zone;
	l->opening.nr_listed = nr;
	l->opening.salvage = true;
}

/* The tail of a killed process is laid over what is read, and stays as it is. */
static void look_into_tail(struct alog *l)
{
	const struct alog_arena *a = l->arena;
	uint64_t first = tail_first(l), end, last;

	end = atomic_load_explicit(&a->end, memory_order_acquire);
	last = end / ALOG_PAGE + (end % ALOG_PAGE != 0);
	if (a->magic != ARENA_MAGIC || a->tail_pages != l->cfg.tail_pages ||
		a->zone_bytes != l->cfg.zone_bytes || last < first ||
		last - first > l->cfg.tail_pages ||
		memcmp(a->uuid, l->cfg.uuid, sizeof(a->uuid)) != 0)
		return;
	for (uint64_t k = first; k < last; k++)
		if (tail_slot(l, k)->page >= zone_pages(l))
			return;
	for (uint64_t k = first; k < last; k++)
		tail_state(l, k)->fill = ALOG_PAGE;
	if (end % ALOG_PAGE)
		tail_state(l, last - 1)->fill = end % ALOG_PAGE;
	l->s.next_page = last;
	l->s.written = last * ALOG_PAGE;
}

static void begin_first(struct alog *l)
{
	if (l->opening.salvage)
		look_into_tail(l);
	l->opening.at = l->head.lowest;
	l->opening.state = OPEN_FIRST;
}

/* The ids that may be live: the span below the highest one. */
static void believe_list(struct alog *l)
{
	const uint64_t *listed = l->opening.listed;
	uint64_t high = 0;

	for (uint32_t i = 0; i < l->opening.nr_listed; i++)
		if (listed[i] > high && listed[i] < UINT64_MAX / 2)
			high = listed[i];
	l->head.next_id = l->head.in.id = high + 1;
	l->head.lowest = high > l->z.span - 2 ? high - (l->z.span - 2) : 1;
	for (uint32_t i = 0; i < l->opening.nr_listed; i++)
		if (listed[i] >= l->head.lowest && listed[i] <= high)
			bit_set(l->z.live, l, listed[i], true);
	l->opening.at = high;
	l->opening.state = OPEN_IDENTIFY;
}

static void page_is_read(struct alog *l)
{
	struct alog_zone_info info;

	l->job = JOB_NONE;
	if (!alog_zone_identify(l->opening.at, l->scratch, &info)) {
		l->opening.at--;
		return;
	}
	memcpy(l->cfg.uuid, info.uuid, sizeof(info.uuid));
	l->head.epoch = info.epoch;
	begin_first(l);
}

static bool next_identify(struct alog *l)
{
	struct opening *o = &l->opening;

	while (o->at >= l->head.lowest && !bit_get(l->z.live, l, o->at))
		o->at--;
	if (o->at < l->head.lowest) {
		log_fail(l, -EBADMSG);
		return false;
	}
	l->job = JOB_OPEN;
	read_zone(l, o->at, 0, ALOG_PAGE, page_is_read);
	return true;
}

/* ---- heads ---- */

static void new_log(struct alog *l)
{
	l->head.lowest = l->head.next_id = l->head.in.id = 1;
	l->own.next = l->own.in = l->own.on_its_way = 1;
	l->s.sequence = 1;
	l->opening.owner = l->cfg.owner;
}

static void heads_are_read(struct alog *l)
{
	int rc = head_read(l), arena;

	if (l->opening.salvage) {
		l->job = JOB_NONE;
		if (rc)
			believe_list(l);
		else
			begin_first(l);
		return;
	}
	if (rc && rc != -ENOENT) {
		log_fail(l, rc);
		return;
	}
	if (rc)
		new_log(l);
	if (l->opening.suspect)
		damage(l, ALOG_BAD_HEAD, 0, 0, head_bytes(&l->cfg));
	arena = compare_arena(l, rc != 0);
	if (arena) {
		log_fail(l, arena);
		return;
	}
	begin_first(l);
	l->job = JOB_NONE;
}

/* ---- first pages ---- */

static bool page_is_zero(const uint8_t *page)
{
	return page[0] == 0 && memcmp(page, page + 1, ALOG_PAGE - 1) == 0;
}

static struct zone *found_zone(struct alog *l, uint64_t id, uint64_t epoch)
{
	struct zone *z = zone_add(l, id);

	if (!z) {
		log_fail(l, -EINVAL);
		return NULL;
	}
	z->old = true;
	z->epoch = epoch;
	z->end = l->cfg.zone_bytes;
	return z;
}

/* Neither header nor footer: it was hardly begun, or it is damaged. Its records are looked for. */
static void look_at_unknown(struct alog *l, uint64_t id, bool unread)
{
	if (unread || !page_is_zero(l->scratch))
		damage(l, ALOG_BAD_HINTS, id, 0, ALOG_PAGE);
	found_zone(l, id, 0);
}

static void last_is_read(struct alog *l)
{
	struct opening *o = &l->opening;
	struct alog_footer f;
	uint32_t last = l->cfg.zone_bytes - ALOG_PAGE;

	tail_overlay(l, o->at, l->scratch);
	l->job = JOB_NONE;
	if (alog_footer_decode(l->cfg.uuid, o->at, l->cfg.zone_bytes,
		    l->scratch + last + ALOG_PAGE - ALOG_FOOTER_BYTES, &f)) {
		damage(l, ALOG_BAD_RECORD, o->at, 0, ALOG_ZONE_HEAD_END);
		found_zone(l, o->at, f.epoch);
	} else {
		look_at_unknown(l, o->at, o->scanned);
	}
	o->at++;
}

static void read_last(struct alog *l)
{
	read_zone(l, l->opening.at, l->cfg.zone_bytes - ALOG_PAGE, l->cfg.zone_bytes,
		last_is_read);
}

/* If each write of a zone has failed, there is no object. A repair may have dropped the zone's first
 * pages from the tail; the records of the others count all the same. */
static bool is_in_tail(const struct alog *l, uint64_t id)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == id)
			return true;
	return false;
}

/* An id that was reserved and not used has no object. */
static void is_known_to_exist(struct alog *l)
{
	if (!l->reader.absent || is_in_tail(l, l->opening.at)) {
		read_last(l);
		return;
	}
	bits_clear(l, l->opening.at);
	l->job = JOB_NONE;
	l->opening.at++;
}

static void first_is_read(struct alog *l)
{
	struct opening *o = &l->opening;
	struct alog_zone_info info;

	tail_overlay(l, o->at, l->scratch);
	if (alog_zone_decode(l->cfg.uuid, o->at, l->scratch, &info)) {
		found_zone(l, o->at, info.epoch);
		if (info.durable < o->at && info.durable > o->durable)
			o->durable = info.durable;
	} else if (l->reader.absent && page_is_zero(l->scratch) && !is_in_tail(l, o->at)) {
		bits_clear(l, o->at);
	} else {
		o->scanned = l->reader.bad != 0;
		if (!o->scanned && page_is_zero(l->scratch))
			read_exists(l, o->at, is_known_to_exist);
		else
			read_last(l);
		return;
	}
	l->job = JOB_NONE;
	o->at++;
}

static bool next_first(struct alog *l)
{
	struct opening *o = &l->opening;

	while (o->at < l->head.next_id &&
		(!bit_get(l->z.live, l, o->at) || bit_get(l->z.dying, l, o->at)))
		o->at++;
	if (o->at == l->head.next_id) {
		o->state = o->salvage ? OPEN_SALVAGES : OPEN_RECORDS;
		o->at = l->head.lowest;
		return true;
	}
	l->job = JOB_OPEN;
	read_zone(l, o->at, 0, ALOG_PAGE, first_is_read);
	return true;
}

/* ---- records ---- */

static void tell_found(struct alog *l, struct zone *z, const struct alog_hint *hint)
{
	zone_live(l, z, hint->bytes);
	z->total += hint->bytes;
	if (z->sequence < hint->sequence)
		z->sequence = hint->sequence;
	l->stats.records++;
	l->user.found(l->user.ctx, z->id, hint);
}

/* L4 */
static bool may_believe(const struct alog *l, const struct zone *z)
{
	const struct opening *o = &l->opening;

	if (bit_get(l->z.poor, l, z->id) || doubt_has(l, z->id) || filled_has(l, z->id))
		return false;
	if (z->id <= o->durable)
		return true;
	return o->warm && z->epoch &&
	       z->epoch >= atomic_load_explicit(&l->arena->born, memory_order_relaxed);
}

/* The epoch of a zone without header and footer. A loss of power leaves such zones of the last
 * epoch only; damage may leave one of any epoch. The zone is `sick`: it is emptied soon (choose.c),
 * before its epoch is too long ago to be found. */
static bool find_epoch(struct alog *l, struct zone *z)
{
	z->epoch = scan_epoch(&l->cfg, z->id, l->scratch, l->head.epoch, l->opening.epoch);
	z->sick = z->epoch != 0;
	l->z.some_dead |= z->sick;
	return z->sick;
}

/* Returns whether each of the nr records that the zone once had is whole; UINT32_MAX: it is not
 * known how many these were. */
static bool scan_records(struct alog *l, struct zone *z, uint32_t nr)
{
	bool flushed = z->id <= l->opening.durable && !bit_get(l->z.poor, l, z->id), all = true;
	struct scan s;
	struct xrecord rec;
	struct alog_hint hint;
	uint32_t at, bytes, end = ALOG_ZONE_HEAD_END;
	enum scan_found found;

	scan_init(&s, l->scratch, z->end, xrecord_seed(l->cfg.uuid, z->id, z->epoch), true);
	while ((found = scan_next(&s, &rec, &at, &bytes)) != SCAN_END) {
		if (found == SCAN_BAD) {
			all = false;
			damage(l, flushed ? ALOG_BAD_RECORD : ALOG_HOLE, z->id, at, bytes);
			continue;
		}
		scan_hint(&rec, at, bytes, &hint);
		tell_found(l, z, &hint);
		end = at + bytes;
		nr -= nr != UINT32_MAX;
	}
	z->end = end;
	l->z.some_dead |= z->live == 0;
	l->stats.opened_by_scan++;
	return all && (nr == 0 || nr == UINT32_MAX);
}

static void zone_is_over(struct alog *l, const struct zone *z)
{
	if (z->epoch)
		l->opening.epoch = z->epoch;
	l->opening.at = z->id + 1;
	l->job = JOB_NONE;
}

static void whole_is_read(struct alog *l)
{
	struct zone *z = zone_find(l, l->opening.at);
	struct alog_footer f;
	bool all = false;

	tail_overlay(l, z->id, l->scratch);
	if (l->reader.bad)
		damage(l, ALOG_BAD_RECORD, z->id, 0, l->reader.bad * ALOG_PAGE);
	if (alog_footer_decode(l->cfg.uuid, z->id, l->cfg.zone_bytes,
		    l->scratch + l->cfg.zone_bytes - ALOG_FOOTER_BYTES, &f)) {
		z->end = f.end;
		z->nr_hints = f.nr;
		z->sealed = true;
	}
	if (!z->epoch && !find_epoch(l, z)) {
		z->end = ALOG_ZONE_HEAD_END;
		l->z.some_dead = true;
	} else {
		all = scan_records(l, z, z->sealed ? f.nr : UINT32_MAX);
	}
	z->believed = z->sealed && all;
	bit_set(l->z.poor, l, z->id, !all);	/* H5 */
	zone_is_over(l, z);
}

static void read_whole(struct alog *l, struct zone *z)
{
	read_zone(l, z->id, 0, l->cfg.zone_bytes, whole_is_read);
}

static void hints_are_read(struct alog *l)
{
	struct zone *z = zone_find(l, l->opening.at);
	struct alog_footer f;
	struct alog_hint hint;

	tail_overlay(l, z->id, l->scratch);
	if (!scan_hints_ok(&l->cfg, z->id, l->scratch, &f)) {
		damage(l, ALOG_BAD_HINTS, z->id, alog_hints_at(l->cfg.zone_bytes, f.nr),
			f.nr * ALOG_HINT_BYTES);
		read_whole(l, z);
		return;
	}
	for (uint32_t i = 0; i < f.nr; i++) {
		hint = pick_hint(l, f.nr, i);
		if (alog_hint_ok(&hint, &f))
			tell_found(l, z, &hint);
	}
	z->end = f.end;
	z->nr_hints = f.nr;
	z->sealed = z->believed = true;
	l->z.some_dead |= z->live == 0;
	l->stats.opened_by_hints++;
	zone_is_over(l, z);
}

static void footer_is_read(struct alog *l)
{
	struct zone *z = zone_find(l, l->opening.at);
	struct alog_footer f;

	tail_overlay(l, z->id, l->scratch);
	if (!alog_footer_decode(l->cfg.uuid, z->id, l->cfg.zone_bytes,
		    l->scratch + l->cfg.zone_bytes - ALOG_FOOTER_BYTES, &f) ||
		f.epoch != z->epoch)
		read_whole(l, z);
	else
		read_zone(l, z->id,
			alog_hints_at(l->cfg.zone_bytes, f.nr) / ALOG_PAGE * ALOG_PAGE,
			l->cfg.zone_bytes, hints_are_read);
}

static bool next_records(struct alog *l)
{
	struct opening *o = &l->opening;
	struct zone *z = NULL;

	while (o->at < l->head.next_id && !(z = zone_find(l, o->at)))
		o->at++;
	if (!z) {
		o->state = OPEN_DELETE;
		o->at = l->head.lowest;
		return true;
	}
	l->job = JOB_OPEN;
	if (may_believe(l, z))
		read_zone(l, z->id, l->cfg.zone_bytes - ALOG_PAGE, l->cfg.zone_bytes,
			footer_is_read);
	else
		read_whole(l, z);
	return true;
}

/* ---- the end ---- */

/* Pages of a warm tail are written again. A FLUSH that fails may be for these, so their zones do
 * not count as flushed before the next good one. */
static void doubt_tail(struct alog *l)
{
	uint64_t low = tail_lowest_zone(l);

	if (l->opening.durable >= low)
		l->opening.durable = low - 1;
}

static bool next_delete(struct alog *l)
{
	struct opening *o = &l->opening;
	struct io *io;

	if (l->io_out[IO_DELETE])
		return false;
	while (o->at < l->head.next_id && !bit_get(l->z.dying, l, o->at))
		o->at++;
	if (o->at == l->head.next_id) {
		l->head.epoch++;
		if (l->opening.warm)
			atomic_store_explicit(
				&l->arena->next_epoch, l->head.epoch, memory_order_release);
		else
			make_arena(l);
		doubt_tail(l);
		o->mark = head_want(l);
		o->state = OPEN_HEAD;
		return true;
	}
	if (!(io = io_get(l, IO_DELETE)))
		return false;
	tail_drop(l, o->at);
	write_advance(l);
	io->pub.op = XSEG_OP_DELETE;
	io_target(l, io, o->at);
	io_send(l, io);
	return true;
}

void open_deleted(struct alog *l, struct io *io, int64_t result)
{
	io_put(l, io);
	if (result >= 0 || result == -ENOENT)
		grave_count(l, l->opening.at);
	l->opening.at++;
}

static bool serve(struct alog *l)
{
	if (l->head.in.mark < l->opening.mark)
		return false;
	atomic_store_explicit(&l->arena->epoch, l->head.epoch, memory_order_release);
	atomic_store_explicit(&l->arena->filled_low, 0, memory_order_release);
	l->opening.state = OPEN_SERVES;
	if (doubt_take_over(l))			/* if a FLUSH was it, the next one fails, too */
		repair_begin(l, doubt_low(l), doubt_high(l), l->s.stable, false);
	return true;
}

bool open_pump(struct alog *l)
{
	if (l->job == JOB_OPEN)
		return false;
	switch (l->opening.state) {
	case OPEN_HEADS:
		l->job = JOB_OPEN;
		read_heads(l, heads_are_read);
		return true;
	case OPEN_IDENTIFY:
		return next_identify(l);
	case OPEN_FIRST:
		return next_first(l);
	case OPEN_RECORDS:
		return next_records(l);
	case OPEN_DELETE:
		return next_delete(l);
	case OPEN_HEAD:
		return serve(l);
	default:
		return false;
	}
}
