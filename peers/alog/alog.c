/* alog - the log as a whole: what it needs, its life, a poll.
 *
 * Contract: see alog.h. All memory is allocated in alog_create(), and its amount is that which
 * alog_cost() says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/alog/inside.h"

#define ROUNDS 4u

static uint32_t table_zones(const struct alog_config *cfg)
{
	return 2 * cfg->zones + ALOG_STEP;	/* deleted ones may be back after a loss of power */
}

static uint32_t span(const struct alog_config *cfg)
{
	return (4 * cfg->zones + ALOG_SPAN_EXTRA + 63) / 64 * 64;
}

/* Records of the least size, with their hints, and the footer. */
static uint32_t hint_bytes(const struct alog_config *cfg)
{
	return cfg->zone_bytes / (ALOG_HEADER_BYTES + ALOG_HINT_BYTES) * ALOG_HINT_BYTES +
	       ALOG_FOOTER_BYTES;
}

static uint64_t slot_bytes(const struct alog_config *cfg)
{
	uint64_t bytes = sizeof(struct alog_arena) + cfg->tail_pages * sizeof(struct alog_slot);

	return (bytes + ALOG_PAGE - 1) / ALOG_PAGE * ALOG_PAGE;
}

static bool config_ok(const struct alog_config *cfg)
{
	return cfg->prefix[0] && memchr(cfg->prefix, 0, sizeof(cfg->prefix)) &&
	       cfg->own <= 1u << 20 &&
	       cfg->zone_bytes % ALOG_PAGE == 0 && cfg->zone_bytes >= 4 * ALOG_PAGE &&
	       cfg->zone_bytes <= ALOG_ZONE_MAX && cfg->reserve >= 3 &&
	       cfg->zones >= cfg->reserve + 4 && cfg->zones <= 1u << 20 &&
	       cfg->tail_pages >= 16 && cfg->tail_pages <= 1u << 16;
}

int alog_cost(const struct alog_config *cfg, struct alog_cost *cost)
{
	uint32_t table, zone, tail;

	if (!config_ok(cfg))
		return -EINVAL;
	table = table_zones(cfg);
	zone = cfg->zone_bytes - ALOG_ZONE_HEAD_END - ALOG_FOOTER_BYTES - ALOG_HINT_BYTES;
	tail = (cfg->tail_pages / 4 - 2) * ALOG_PAGE;
	*cost = (struct alog_cost){
		.arena_bytes = slot_bytes(cfg) + (uint64_t)cfg->tail_pages * ALOG_PAGE,
		.scratch_bytes = cfg->zone_bytes + 2ull * head_bytes(cfg),
		.private_bytes = sizeof(struct alog) + table * (sizeof(struct zone) + 4ull) +
				 span(cfg) * 4ull + 3 * (span(cfg) / 8) + hint_bytes(cfg) +
				 cfg->tail_pages * sizeof(struct page_state) +
				 own_slots(cfg) * sizeof(struct own_run) +
				 ALOG_IOS * sizeof(struct io) + ALOG_DELETED_MAX * 8ull +
				 ALOG_BATCH_MAX * (sizeof(struct alog_put) +
					sizeof(struct alog_place) + sizeof(struct alog_hint) +
					sizeof(enum alog_verdict)),
		.record_max = (tail < zone ? tail : zone) / ALOG_ALIGN * ALOG_ALIGN };
	return 0;
}

static bool allocate(struct alog *l)
{
	const struct alog_config *cfg = &l->cfg;

	l->z.nr = table_zones(cfg);
	l->z.span = span(cfg);
	l->z.table = calloc(l->z.nr, sizeof(struct zone));
	l->g.list = calloc(l->z.nr, sizeof(uint32_t));
	l->z.of_id = calloc(l->z.span, sizeof(uint32_t));
	l->z.live = calloc(l->z.span / 64, sizeof(uint64_t));
	l->z.dying = calloc(l->z.span / 64, sizeof(uint64_t));
	l->z.poor = calloc(l->z.span / 64, sizeof(uint64_t));
	l->z.hints = calloc(1, hint_bytes(cfg));
	l->own.run = calloc(own_slots(cfg) + 1, sizeof(struct own_run));
	l->s.page = calloc(cfg->tail_pages, sizeof(struct page_state));
	l->io = calloc(ALOG_IOS, sizeof(struct io));
	l->g.id = calloc(ALOG_DELETED_MAX, sizeof(uint64_t));
	l->copier.put = calloc(ALOG_BATCH_MAX, sizeof(struct alog_put));
	l->copier.at = calloc(ALOG_BATCH_MAX, sizeof(struct alog_place));
	l->copier.from = calloc(ALOG_BATCH_MAX, sizeof(struct alog_hint));
	l->copier.verdict = calloc(ALOG_BATCH_MAX, sizeof(enum alog_verdict));
	return l->z.table && l->g.list && l->z.of_id && l->z.live && l->z.dying && l->z.poor &&
	       l->z.hints && l->own.run && l->s.page && l->io && l->g.id && l->copier.put &&
	       l->copier.at && l->copier.from && l->copier.verdict;
}

struct alog *alog_create(const struct alog_config *cfg, const struct alog_user *user, void *arena,
	void *scratch)
{
	struct alog_cost cost;
	struct alog *l = alog_cost(cfg, &cost) ? NULL : calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->cfg = *cfg;
	l->user = *user;
	if (!allocate(l)) {
		alog_destroy(l);
		return NULL;
	}
	l->arena = arena;
	l->s.tail = (uint8_t *)arena + slot_bytes(cfg);
	l->scratch = scratch;
	l->head_page = l->scratch + cfg->zone_bytes;
	l->record_max = cost.record_max;
	l->repair.named = true;
	l->z.step = cfg->zones / 4 < 4 ? 4 : cfg->zones / 4;
	if (l->z.step > ALOG_STEP)
		l->z.step = ALOG_STEP;
	for (uint32_t i = 0; i < ALOG_IOS; i++) {
		l->io[i].next = l->io_free;
		l->io_free = &l->io[i];
	}
	return l;
}

void alog_destroy(struct alog *l)
{
	if (!l)
		return;
	free(l->z.table);
	free(l->g.list);
	free(l->z.of_id);
	free(l->z.live);
	free(l->z.dying);
	free(l->z.poor);
	free(l->z.hints);
	free(l->own.run);
	free(l->s.page);
	free(l->io);
	free(l->g.id);
	free(l->copier.put);
	free(l->copier.at);
	free(l->copier.from);
	free(l->copier.verdict);
	free(l);
}

bool alog_serves(const struct alog *l)
{
	return serves(l);
}

bool alog_is_warm(const struct alog *l)
{
	return l->opening.warm;
}

bool alog_salvages(const struct alog *l)
{
	return salvages(l);
}

int alog_failed(const struct alog *l)
{
	return l->opening.state == OPEN_FAILED ? l->opening.error : 0;
}

/* Whatever can go on, goes on a little; but for copies. */
static bool pump(struct alog *l)
{
	bool did = read_pump(l) | head_pump(l);

	if (salvages(l))
		return did | walk_pump(l);
	if (!alog_serves(l))
		return did | open_pump(l);
	head_reserve_ahead(l);
	did |= repair_pump(l);
	if (l->z.open && l->z.open->state == ZONE_SEALING)
		did |= zone_seal(l);
	did |= choose_pump(l);
	did |= walk_pump(l);
	did |= grave_pump(l);
	did |= own_pump(l);
	did |= flush_pump(l);
	did |= write_pump(l);
	return did;
}

static void earlier(uint64_t *next, uint64_t now, uint64_t at)
{
	if (at > now && at < *next)
		*next = at;
}

uint64_t alog_poll(struct alog *l, uint64_t now_ns)
{
	uint64_t next = ALOG_NEVER;
	bool did = true;

	l->now = now_ns;
	if (alog_failed(l))
		return ALOG_NEVER;
	io_retry(l);
	for (uint32_t i = 0; i < ROUNDS && did; i++)
		did = pump(l);
	did |= copy_pump(l);			/* C9 of copy.c */
	did |= l->io_wanted > 0;
	/* it may have been wanted after the head's turn */
	did |= l->head.wanted && !l->head.out && now_ns >= l->head.retry_ns && l->io_free;
	if (did)
		return now_ns;
	earlier(&next, now_ns, l->head.retry_ns);
	earlier(&next, now_ns, l->reader.active ? l->reader.again_ns : 0);
	earlier(&next, now_ns, l->repair.retry_ns);
	earlier(&next, now_ns, l->repair.flush_ns);
	earlier(&next, now_ns, l->s.again_ns);
	earlier(&next, now_ns, l->g.retry_ns);
	earlier(&next, now_ns, l->own.retry_ns);
	earlier(&next, now_ns, walk_patience(l));
	return next;
}

/* L2 */
static void pages_done(struct alog *l, struct io *io, int64_t result)
{
	struct failed_run run = write_done(l, io, result);

	if (!run.zone)				/* none, or it was dropped meanwhile */
		return;
	if (repair_waits(l))
		write_again(l, &run);
	else
		repair_begin(l, run.zone, run.zone, run.hold, false);
}

/* L8 */
static void group_done(struct alog *l, struct io *io, int64_t result)
{
	switch (flush_is_back(l, io, result)) {
	case FLUSH_GOOD:
		break;
	case FLUSH_BAD:
		repair_begin(l, zone_durable(l) + 1, l->head.next_id - 1, l->s.stable, true);
		break;
	case FLUSH_PROBED:
		repair_probed(l, true);
		break;
	case FLUSH_PROBED_BAD:
		repair_probed(l, false);
		break;
	}
}

void alog_done(struct alog *l, struct alog_io *pub, int64_t result)
{
	struct io *io = (struct io *)pub;

	switch ((enum io_kind)io->kind) {
	case IO_PAGES:
		pages_done(l, io, result);
		break;
	case IO_FLUSH:
		group_done(l, io, result);
		break;
	case IO_HEAD:
		head_done(l, io, result);
		break;
	case IO_DELETE:
		if (serves(l))
			grave_done(l, io, result);
		else
			open_deleted(l, io, result);
		break;
	case IO_READ:
		read_done(l, io, result);
		break;
	case IO_OWN:
		own_done(l, io, result);
		break;
	case IO_NR_KINDS:
		break;
	}
}

bool alog_idle(const struct alog *l)
{
	for (uint32_t i = 0; i < IO_NR_KINDS; i++)
		if (l->io_out[i])
			return false;
	return l->repair.state == REPAIR_NONE && l->job == JOB_NONE && l->s.written >= l->s.end;
}

/* Ids that were looked at: all of them for their first pages, then all for their records. */
static uint64_t opening_done(const struct alog *l, uint64_t ids)
{
	uint64_t at = l->opening.at - l->head.lowest;

	switch (l->opening.state) {
	case OPEN_HEADS:
		return 0;
	case OPEN_FIRST:
		return at;
	case OPEN_RECORDS:
		return ids + at;
	default:
		return 2 * ids;
	}
}

void alog_stats(const struct alog *l, struct alog_stats *stats)
{
	uint64_t ids = l->head.next_id - l->head.lowest;

	*stats = l->stats;
	stats->epoch = l->head.epoch;
	stats->zones = l->z.used;
	stats->zones_free = zones_free(l);
	stats->own_zones = l->own.used;
	stats->opening_done = opening_done(l, ids);
	stats->opening_of = 2 * ids;
	stats->warm = l->opening.warm;
}
