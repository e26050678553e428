/* oracle - see oracle.h for the rule and the contract, sector.c for the work on one sector.
 *
 * Locks: a stripe's spin lock guards the slots of its sectors, their nodes and its list of free
 * nodes. The lock of the findings guards their list. It may be taken while a stripe's lock is held,
 * not the other way.
 */
#include "bench/xbench/oracle/oracle.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/xbench/oracle/sector.h"

#define NR_STRIPES	1024u
#define STRIPE_SECTORS	64u
#define CHUNK_SECTORS	4096u		/* unit in which what was never touched is skipped */
#define SPARE_NODES	(1u << 20)	/* for sectors that many I/Os share */

const char *const xb_wrong_names[XB_NR_WRONG] = {
	[XB_STALE] = "stale",
	[XB_LOST] = "lost",
	[XB_TORN] = "torn",
	[XB_MISPLACED] = "misplaced",
};

struct stripe {
	_Alignas(64) atomic_flag lock;
	uint32_t free;				/* nodes: index + 1 */
};

struct xb_oracle {
	uint64_t start, length, nr_slots;
	struct xb_slot *slots;
	struct xb_nodes nodes;
	_Atomic uint8_t *touched;		/* a chunk each */
	struct stripe stripes[NR_STRIPES];
	_Alignas(64) _Atomic uint64_t clock;
	_Alignas(64) _Atomic uint64_t wrong[XB_NR_WRONG];
	atomic_flag findings_lock;
	struct xb_finding findings[XB_FINDINGS];
	uint32_t nr_findings;
};

/* ---- life -------------------------------------------------------------------------------- */

/* Untouched memory costs nothing, so the whole range may be mapped. */
static void *map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint64_t nr_chunks(const struct xb_oracle *o)
{
	return (o->nr_slots + CHUNK_SECTORS - 1) / CHUNK_SECTORS;
}

/* N4. For each sector what it held and a failed write, twice; and what all requests together add, a
 * node for each sector of a write and one for what that held: once in flight, and once when all
 * have found that one more may begin. */
static void size_nodes(struct xb_oracle *o)
{
	uint64_t begun = o->nodes.nr_floors * 2ull * (XSEG_REQ_BYTES / XB_SECTOR);

	o->nodes.nr = o->nr_slots * 4 + SPARE_NODES + 2 * begun;
	if (o->nodes.nr > UINT32_MAX - 1)
		o->nodes.nr = UINT32_MAX - 1;
	o->nodes.limit = o->nodes.nr - begun;
}

struct xb_oracle *xb_oracle_create(uint64_t start, uint64_t length, const _Atomic uint64_t *floors,
				   uint32_t nr_floors, struct xseg_error *err)
{
	struct xb_oracle *o = aligned_alloc(_Alignof(struct xb_oracle), sizeof(*o));

	if (!o)
		goto out;
	memset(o, 0, sizeof(*o));
	o->start = start;
	o->length = length;
	o->nr_slots = length / XB_SECTOR;
	o->nodes.floors = floors;
	o->nodes.nr_floors = nr_floors;
	size_nodes(o);
	atomic_store(&o->clock, 1);
	o->slots = map(o->nr_slots * sizeof(*o->slots));
	o->nodes.all = map(o->nodes.nr * sizeof(*o->nodes.all));
	o->touched = map(nr_chunks(o));
	if (o->slots && o->nodes.all && o->touched)
		return o;
	xb_oracle_destroy(o);
out:
	xseg_fail(err, -ENOMEM,
		  "no address space to verify a range of %" PRIu64 " bytes; give a smaller --size",
		  length);
	return NULL;
}

void xb_oracle_destroy(struct xb_oracle *o)
{
	if (!o)
		return;
	if (o->slots)
		munmap(o->slots, o->nr_slots * sizeof(*o->slots));
	if (o->nodes.all)
		munmap(o->nodes.all, o->nodes.nr * sizeof(*o->nodes.all));
	if (o->touched)
		munmap((void *)o->touched, nr_chunks(o));
	free(o);
}

uint64_t xb_oracle_start(const struct xb_oracle *o)
{
	return o->start;
}

uint64_t xb_oracle_length(const struct xb_oracle *o)
{
	return o->length;
}

uint64_t xb_oracle_tick(struct xb_oracle *o)
{
	return atomic_fetch_add(&o->clock, 1);
}

uint64_t xb_oracle_now(struct xb_oracle *o)
{
	return atomic_load(&o->clock);
}

bool xb_oracle_is_full(struct xb_oracle *o)
{
	return atomic_load_explicit(&o->nodes.used, memory_order_relaxed) >= o->nodes.limit;
}

/* ---- locks and walks --------------------------------------------------------------------- */

static void lock(atomic_flag *flag)
{
	uint32_t spins = 0;

	/* acquire: partner is the release in unlock() */
	while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire))
		if (++spins % 128 == 0)
			sched_yield();
}

static void unlock(atomic_flag *flag)
{
	atomic_flag_clear_explicit(flag, memory_order_release);
}

/* A walk over the sectors of a range, with the lock of each stripe held in turn. It must be walked
 * to its end. */
struct walk {
	struct xb_oracle *o;
	uint64_t at, end;			/* slots */
	struct stripe *held;
	struct xb_lists lists;
};

static void walk_begin(struct walk *w, struct xb_oracle *o, uint64_t offset, uint64_t size)
{
	assert(offset >= o->start && offset + size <= o->start + o->length);
	w->o = o;
	w->at = (offset - o->start) / XB_SECTOR;
	w->end = w->at + size / XB_SECTOR;
	w->held = NULL;
	w->lists.nodes = &o->nodes;
}

static void walk_enter(struct walk *w)
{
	_Atomic uint8_t *touched = &w->o->touched[w->at / CHUNK_SECTORS];

	w->held = &w->o->stripes[w->at / STRIPE_SECTORS % NR_STRIPES];
	w->lists.free = &w->held->free;
	lock(&w->held->lock);
	if (!atomic_load_explicit(touched, memory_order_relaxed))
		atomic_store_explicit(touched, 1, memory_order_relaxed);
}

static struct xb_slot *walk_next(struct walk *w)
{
	if (w->held && (w->at % STRIPE_SECTORS == 0 || w->at == w->end)) {
		unlock(&w->held->lock);
		w->held = NULL;
	}
	if (w->at == w->end)
		return NULL;
	if (!w->held)
		walk_enter(w);
	return &w->o->slots[w->at++];
}

static void settle(struct walk *w, struct xb_slot *slot)
{
	struct xb_finding f;

	if (xb_sector_settle(&w->lists, slot, &f))
		return;
	f.offset = f.found_offset = w->o->start + (uint64_t)(slot - w->o->slots) * XB_SECTOR;
	xb_oracle_report(w->o, &f, 1);
}

/* ---- the run ----------------------------------------------------------------------------- */

void xb_oracle_write_begin(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value,
			   uint64_t issued)
{
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w)))
		xb_sector_write_begin(&w.lists, slot, value, issued);
}

void xb_oracle_write_end(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			 bool ok)
{
	uint64_t ended = xb_oracle_tick(o);
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w))) {
		xb_sector_write_end(&w.lists, slot, issued, ended, ok);
		settle(&w, slot);
	}
}

uint64_t xb_oracle_read_begin(struct xb_oracle *o, uint64_t offset, uint32_t size)
{
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w)))
		slot->readers++;
	return xb_oracle_tick(o);
}

/* The newer value is there after all: what was counted as lost was stale. */
static void clear_suspects(struct xb_oracle *o, struct xb_slot *slot)
{
	atomic_fetch_sub(&o->wrong[XB_LOST], slot->suspects);
	atomic_fetch_add(&o->wrong[XB_STALE], slot->suspects);
	slot->suspects = 0;
}

static bool read_sector(struct walk *w, struct xb_slot *slot, const struct xb_read *r)
{
	struct xb_finding f;

	if (!xb_sector_read(&w->lists, slot, r, &f)) {
		xb_oracle_report(w->o, &f, 1);
		return false;
	}
	if (slot->suspects)
		clear_suspects(w->o, slot);
	return true;
}

uint32_t xb_oracle_read_end(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			    const struct xb_seen *seen)
{
	struct xb_read r = {
		.offset = offset, .issued = issued, .ended = xb_oracle_tick(o), .seen = seen
	};
	uint32_t wrong = 0;
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w))) {
		slot->readers--;
		if (seen) {
			r.offset = offset + (uint64_t)(r.seen - seen) * XB_SECTOR;
			wrong += !read_sector(&w, slot, &r);
			r.seen++;
		}
		settle(&w, slot);
	}
	return wrong;
}

bool xb_oracle_write_refused(struct xb_oracle *o, uint64_t offset, uint64_t issued)
{
	struct xb_slot *slot;
	bool unseen = true;
	struct walk w;

	walk_begin(&w, o, offset, XB_SECTOR);
	while ((slot = walk_next(&w))) {
		unseen = xb_sector_write_refused(&w.lists, slot, issued);
		settle(&w, slot);
	}
	return unseen;
}

bool xb_oracle_read_one(struct xb_oracle *o, uint64_t offset, uint64_t issued,
			const struct xb_seen *seen, struct xb_finding *f)
{
	struct xb_read r = {
		.offset = offset, .issued = issued, .ended = xb_oracle_tick(o), .seen = seen
	};
	struct xb_slot *slot;
	bool right = true;
	struct walk w;

	walk_begin(&w, o, offset, XB_SECTOR);
	while ((slot = walk_next(&w))) {
		slot->readers--;
		if (seen)
			right = xb_sector_read(&w.lists, slot, &r, f);
		settle(&w, slot);
	}
	return right;
}

void xb_oracle_look_again(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			  const struct xb_seen *seen)
{
	struct xb_read r = { .issued = issued, .ended = xb_oracle_tick(o), .seen = seen };
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w))) {
		slot->readers--;
		if (!seen)
			continue;
		if (slot->suspects && xb_sector_read(&w.lists, slot, &r, NULL))
			clear_suspects(o, slot);
		r.seen++;
	}
}

/* ---- what was found ---------------------------------------------------------------------- */

uint64_t xb_oracle_wrong(struct xb_oracle *o, enum xb_wrong wrong)
{
	return atomic_load(&o->wrong[wrong]);
}

void xb_oracle_report(struct xb_oracle *o, const struct xb_finding *f, uint64_t nr)
{
	atomic_fetch_add(&o->wrong[f->wrong], nr);
	lock(&o->findings_lock);
	if (o->nr_findings < XB_FINDINGS)
		o->findings[o->nr_findings++] = *f;
	unlock(&o->findings_lock);
}

uint32_t xb_oracle_findings(struct xb_oracle *o, struct xb_finding *out)
{
	uint32_t nr;

	lock(&o->findings_lock);
	nr = o->nr_findings;
	memcpy(out, o->findings, nr * sizeof(*out));
	unlock(&o->findings_lock);
	return nr;
}

/* ---- reading back ------------------------------------------------------------------------ */

bool xb_oracle_any_known(struct xb_oracle *o, uint64_t offset, uint32_t size)
{
	struct xb_slot *slot;
	bool known = false;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w)))
		known |= slot->list || slot->value != XB_VALUE_UNKNOWN;
	return known;
}

bool xb_oracle_any_suspect(struct xb_oracle *o, uint64_t offset, uint32_t size)
{
	struct xb_slot *slot;
	bool suspect = false;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w)))
		suspect |= slot->suspects > 0;
	return suspect;
}

uint64_t xb_oracle_skip(struct xb_oracle *o, uint64_t offset)
{
	uint64_t at = (offset - o->start) / XB_SECTOR, chunk = at / CHUNK_SECTORS;

	while (chunk < nr_chunks(o) &&
	       !atomic_load_explicit(&o->touched[chunk], memory_order_relaxed))
		chunk++;
	if (chunk == nr_chunks(o))
		return o->start + o->length;
	return chunk == at / CHUNK_SECTORS ? offset : o->start + chunk * CHUNK_SECTORS * XB_SECTOR;
}

/* ---- state files, and runs that are made again ------------------------------------------- */

uint32_t xb_oracle_possible(struct xb_oracle *o, uint64_t offset, struct xb_possible *out)
{
	const struct xb_slot *slot = &o->slots[(offset - o->start) / XB_SECTOR];
	const struct xb_node *n;
	uint32_t nr = 0;

	if (!slot->list && slot->value != XB_VALUE_UNKNOWN)
		out[nr++] = (struct xb_possible){ .value = slot->value };
	for (n = xb_node_of(&o->nodes, slot->list); n; n = xb_node_of(&o->nodes, n->next)) {
		if (nr == XB_MAX_POSSIBLE) {
			out[0] = (struct xb_possible){ .value = XB_VALUE_ANY };
			return 1;
		}
		out[nr++] = (struct xb_possible){ .value = n->value,
						  .unsure = n->state != XB_NODE_DONE };
	}
	return nr;
}

bool xb_oracle_set_possible(struct xb_oracle *o, uint64_t offset, const struct xb_possible *all,
			    uint32_t nr)
{
	struct xb_slot *slot;
	struct walk w;

	if (nr > 1 && atomic_load(&o->nodes.used) + nr > o->nodes.nr)
		return false;
	walk_begin(&w, o, offset, XB_SECTOR);
	while ((slot = walk_next(&w))) {
		while (slot->list)
			xb_node_drop(&w.lists, &slot->list);
		slot->value = nr == 1 ? all[0].value : XB_VALUE_UNKNOWN;
		for (uint32_t i = 0; i < nr && nr > 1; i++)
			xb_node_add(&w.lists, slot, all[i].value,
				    all[i].unsure ? XB_NODE_UNSURE : XB_NODE_DONE);
	}
	return true;
}

/* Drops the writes of the same job that were answered before this one was issued. */
static void drop_answered(const struct xb_lists *l, struct xb_slot *slot, uint64_t tag,
			  uint64_t window)
{
	uint32_t *link = &slot->list;
	struct xb_node *n;

	while ((n = xb_node_of(l->nodes, *link)))
		if (xb_value_job(n->tag) == xb_value_job(tag) &&
		    xb_value_seq(n->tag) + window <= xb_value_seq(tag))
			xb_node_drop(l, link);
		else
			link = &n->next;
}

void xb_oracle_redo(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value,
		    uint64_t tag, uint64_t window)
{
	struct xb_slot *slot;
	struct walk w;

	walk_begin(&w, o, offset, size);
	while ((slot = walk_next(&w))) {
		drop_answered(&w.lists, slot, tag, window);
		xb_node_add(&w.lists, slot, value, XB_NODE_DONE)->tag = tag;
	}
}
