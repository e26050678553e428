/* bad - sectors of the store that go bad below kvd, and stay so until they are written again.
 *
 * A read that touches the page of such a sector is EIO. Sectors go bad below records that count, in
 * zones that are opened by their hints, or below pieces of large values; at most one in a zone. So
 * kvd knows the key whatever it cannot read: it says EIO, and neither that the key is not there nor
 * an older value. That is so until the key is put again or deleted, also when the zone is gone, and
 * after a kill. Only keys that were hit may say so.
 *
 * All is mended when the power fails, since zones that are not flushed are scanned then, and at the
 * end of a run. What kvd has given up stays lost.
 *
 * Contract: bad_answer() is called for each answer of memd. There are none in runs with faults.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kv/inside.h"
#include "tests/sim/kv/zones.h"

#define BAD_MAX 16u

static struct {
	char target[XSEG_TARGET_MAX];
	uint32_t page;
} bad[BAD_MAX];
static uint32_t nr_bad;
static struct sim *watched;

void bad_watch(struct sim *s)
{
	watched = s;
	bad_mend();
}

void bad_mend(void)
{
	nr_bad = 0;
}

static bool is_bad(const char *target)
{
	for (uint32_t i = 0; i < nr_bad; i++)
		if (strcmp(bad[i].target, target) == 0)
			return true;
	return false;
}

/* ---- what the store answers ---- */

static bool is_of_store(const struct sim *s, const struct xport *port)
{
	const struct peer *p = s->node[NODE_MEMD].p;

	for (uint32_t i = 0; p && i < p->nr_ports; i++)
		if (p->ports[i].port == port)
			return true;
	return false;
}

static bool touches(const struct xreq *r, uint32_t page)
{
	uint64_t from = (uint64_t)page * XSEG_PAGE_SIZE;

	return r->obj_offset < from + XSEG_PAGE_SIZE && r->obj_offset + r->size > from;
}

static bool covers(const struct xreq *r, uint32_t page)
{
	uint64_t from = (uint64_t)page * XSEG_PAGE_SIZE;

	return r->obj_offset <= from && r->obj_offset + r->size >= from + XSEG_PAGE_SIZE;
}

static int64_t answer_of(const struct xreq *r, uint32_t i, int64_t result)
{
	if (r->op == XSEG_OP_READ && touches(r, bad[i].page))
		return -EIO;
	if (r->op == XSEG_OP_DELETE || (r->op == XSEG_OP_WRITE && covers(r, bad[i].page)))
		bad[i] = bad[--nr_bad];
	return result;
}

int64_t bad_answer(const struct xport *port, const struct xreq *r, int64_t result)
{
	if (!nr_bad || result < 0 || !is_of_store(watched, port))
		return result;
	for (uint32_t i = nr_bad; i-- > 0;)
		if (strcmp(bad[i].target, r->target) == 0)
			result = answer_of(r, i, result);
	return result;
}

/* ---- a sector goes bad ---- */

static bool find(const struct kvd *k, uint32_t key, struct index_entry *e, uint64_t id[2])
{
	uint32_t bytes;
	const char *name = value_key(key, &bytes);
	uint64_t slot;

	kvd_identity(k, name, bytes, id);
	slot = index_find(&k->index, id);
	if (slot == INDEX_NONE)
		return false;
	index_get(&k->index, slot, e);
	return e->type == INDEX_VALUE;
}

/* The oracle knows what it holds. */
static bool is_settled(const struct sim *s, uint32_t key)
{
	return !s->values->unsure[key] && !s->values->v.key[key].out;
}

static void taint(struct sim *s, uint32_t key)
{
	s->values->tainted[key] = true;
	versions_damage(&s->values->v, key);
	s->values->tainted_at[key] = s->values->v.now;
	sim_log(s, "values: a sector of key %u goes bad", key);
}

static void add(struct sim *s, const char *target, uint32_t page)
{
	snprintf(bad[nr_bad].target, sizeof(bad[nr_bad].target), "%s", target);
	bad[nr_bad++].page = page;
	s->values->bad_at = ++s->values->v.now;
}

/* Opened by its hints whenever kvd is killed, and all of it is below. */
static bool is_known(struct kvd *k, const struct index_entry *e, uint32_t *hints_at)
{
	uint8_t header[ALOG_HEADER_BYTES];

	return zone_is_known(k->log, e->zone, hints_at) &&
	       !alog_read_tail(k->log, e->zone, e->place, sizeof(header), header);
}

/* Not with the hints. */
static void below_record(struct sim *s, struct kvd *k, const struct index_entry *e,
	uint32_t hints_at)
{
	uint32_t first = e->place / ALOG_PAGE, last = (e->place + e->bytes - 1) / ALOG_PAGE,
		 page = rng_range(&s->rng, first, last);
	char target[XSEG_TARGET_MAX];
	struct index_entry other;
	bool hit[VERSION_KEYS];
	uint64_t id[2];

	snprintf(target, sizeof(target), "%.64s%016" PRIx64, k->target, e->zone);
	if (page >= hints_at / ALOG_PAGE || is_bad(target))
		return;
	for (uint32_t key = 0; key < VERSION_KEYS; key++) {
		hit[key] = find(k, key, &other, id) && other.zone == e->zone &&
			   other.place / ALOG_PAGE <= page &&
			   (other.place + other.bytes - 1) / ALOG_PAGE >= page;
		if (hit[key] && !is_settled(s, key))
			return;
	}
	add(s, target, page);
	for (uint32_t key = 0; key < VERSION_KEYS; key++)
		if (hit[key])
			taint(s, key);
}

static void below_piece(struct sim *s, struct kvd *k, uint32_t key, const uint64_t id[2])
{
	const struct large_run *run = large_by_id(&k->large.t, id);
	char target[XSEG_TARGET_MAX];
	uint64_t offset;
	uint32_t place;

	if (!run || !run->bytes || !is_settled(s, key))
		return;
	offset = rng_below(&s->rng, (uint32_t)run->bytes);
	alog_own_target(k->log, large_at(&k->large.t, run, offset, &place), target);
	if (is_bad(target))
		return;
	add(s, target, place / ALOG_PAGE);
	taint(s, key);
}

void values_go_bad(struct sim *s, struct rng *g)
{
	struct kvd *k = (struct kvd *)s->node[NODE_KVD].p;
	uint32_t key = rng_below(g, VERSION_KEYS), hints_at;
	struct index_entry e;
	uint64_t id[2];

	if (!s->plan.bad || script_has(s, ACT_FAULT) || !k || k->state != KVD_OPEN ||
		nr_bad == BAD_MAX || !find(k, key, &e, id))
		return;
	if (e.large && rng_one_in(g, 2))
		below_piece(s, k, key, id);
	else if (is_known(k, &e, &hints_at))
		below_record(s, k, &e, hints_at);
}

/* ---- what a client may be told ---- */

bool value_may_fail(struct sim *s, const struct vio *io, uint32_t key)
{
	const struct values *w = s->values;

	return s->errors_ok || w->tainted[key] || io->begin < w->mended_at[key] ||
	       io->begin < w->bad_at;
}

void value_is_new(struct sim *s, const struct vio *io, uint32_t key)
{
	struct values *w = s->values;

	if (!w->tainted[key] || io->begin <= w->tainted_at[key])
		return;
	w->tainted[key] = false;
	w->mended_at[key] = ++w->v.now;
}
