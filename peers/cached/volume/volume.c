/* volume - see volume.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers/cached/volume/events.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xkill.h"

_Static_assert(sizeof(struct arena_volume) + sizeof(uint32_t) == CACHE_VOLUME_BYTES,
	"cache_cost.h counts it");
_Static_assert(sizeof(struct volume_block) == CACHE_VOLUME_COUNTERS, "cache_cost.h counts it");
_Static_assert(sizeof(struct volume) == CACHE_VOLUME_PRIVATE, "cache_cost.h counts it");
_Static_assert(VOLUME_WAYS * sizeof(uint32_t) == 64, "a set is a cache line");

/* ---- finding ---- */

static uint32_t id_of(struct cached *k, uint32_t rec)
{
	return atomic_load_explicit(&volume_of(k)->volume_ids[rec], memory_order_acquire);
}

/* The first record of the volume's set. */
static uint32_t set_of(struct cached *k, uint32_t id)
{
	return id % (volume_of(k)->nr_volumes / VOLUME_WAYS) * VOLUME_WAYS;
}

uint32_t volume_find(struct cached *k, uint32_t id)
{
	uint32_t first = set_of(k, id);

	for (uint32_t r = first; r < first + VOLUME_WAYS && id; r++)
		if (id_of(k, r) == id)
			return r;
	return OTHERS;
}

uint64_t volume_settings(struct cached *k, uint32_t rec, uint32_t id)
{
	uint64_t word;

	for (unsigned tries = 0; tries < 2; tries++) {
		/* acquire: if these are another volume's, so is the id that we see after them */
		word = atomic_load_explicit(
			&volume_of(k)->records[rec].settings, memory_order_acquire);
		if (id_of(k, rec) == id)
			return word;
		rec = volume_find(k, id);
	}
	return 0;
}

/* ---- making ---- */

/* No settings, and no object with buckets. May be out of date at once. */
static bool is_idle(struct cached *k, uint32_t rec)
{
	return rec != OTHERS &&
	       atomic_load_explicit(&volume_of(k)->states[rec].objects, memory_order_relaxed) ==
		       0 &&
	       atomic_load_explicit(&volume_of(k)->records[rec].settings, memory_order_relaxed) ==
		       0;
}

/* The record is another volume's from now on, or the same one's anew: no port's numbers are. */
static void blocks_void(struct cached *k, uint32_t rec)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		atomic_store_explicit(
			&volume_port(cport_at(k, i))->blocks[rec].id, 0, memory_order_relaxed);
}

/* Under volume_lock: takes an idle record from its volume. Partner is object_pin(): either it sees
 * that the id is gone, or we see its object. */
static bool record_clear(struct cached *k, uint32_t rec)
{
	uint32_t id = id_of(k, rec);

	atomic_store_explicit(&volume_of(k)->volume_ids[rec], 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (is_idle(k, rec)) {
		record_cleared(k, rec);
		blocks_void(k, rec);
		return true;
	}
	atomic_store_explicit(&volume_of(k)->volume_ids[rec], id, memory_order_release);
	return false;
}

/* Under volume_lock. */
static void settings_drop(struct cached *k, uint32_t rec)
{
	atomic_store_explicit(&volume_of(k)->records[rec].settings, 0, memory_order_relaxed);
	settings_dropped(k, rec);
}

/* Under volume_lock: a name is one volume's at a time; another that has it is gone, and its
 * settings with it. */
static void record_name(struct cached *k, uint32_t rec, const char *name)
{
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes && name[0]; r++) {
		if (r == rec || strncmp(volume_of(k)->records[r].name, name, XSEG_NAME_MAX))
			continue;
		settings_drop(k, r);
		volume_of(k)->records[r].name[0] = '\0';
	}
	snprintf(volume_of(k)->records[rec].name, sizeof(volume_of(k)->records[rec].name), "%s",
		name);
}

/* Under volume_lock: free records first, then idle ones. OTHERS: there is none. */
static uint32_t record_take(struct cached *k, uint32_t id)
{
	uint32_t first = set_of(k, id), r;

	for (r = first; r < first + VOLUME_WAYS; r++)
		if (r != OTHERS && id_of(k, r) == 0 && is_idle(k, r))
			return r;
	for (r = first; r < first + VOLUME_WAYS; r++)
		if (is_idle(k, r) && record_clear(k, r))
			return r;
	return OTHERS;
}

uint32_t volume_make_locked(struct cached *k, uint32_t id, const char *name)
{
	uint32_t rec = volume_find(k, id);

	if (rec == OTHERS) {
		rec = record_take(k, id);
		if (rec != OTHERS)
			record_name(k, rec, name);
	} else if (name[0] && strncmp(volume_of(k)->records[rec].name, name, XSEG_NAME_MAX)) {
		record_name(k, rec, name);
	}
	XKILL(VOLUME_NAMED);
	/* release: the rest of the record comes before its id */
	if (rec != OTHERS)
		atomic_store_explicit(&volume_of(k)->volume_ids[rec], id, memory_order_release);
	return rec;
}

bool volume_has_room(struct cached *k, uint32_t id)
{
	uint32_t first = set_of(k, id);

	for (uint32_t r = first; r < first + VOLUME_WAYS; r++)
		if (is_idle(k, r))
			return true;
	return false;
}

/* Objects of volumes are named VOLUME:NUMBER. "": this one is not. */
static void name_of_target(const char *target, char name[XSEG_NAME_MAX])
{
	const char *colon = strrchr(target, ':');
	size_t len = colon ? (size_t)(colon - target) : 0;

	if (len >= XSEG_NAME_MAX)
		len = 0;
	memcpy(name, target, len);
	name[len] = '\0';
	if (!volume_name_ok(name))
		name[0] = '\0';
}

uint32_t volume_of_request(struct cport *ps, const struct xreq *r)
{
	struct cached *k = ps->cache;
	char name[XSEG_NAME_MAX];
	uint32_t rec;

	/* a record that was cleared since has id 0, too */
	if (id_of(k, volume_port(ps)->last_volume) == r->volume &&
		(r->volume || volume_port(ps)->last_volume == OTHERS))
		return volume_port(ps)->last_volume;
	rec = volume_find(k, r->volume);
	if (rec == OTHERS && r->volume && volume_has_room(k, r->volume)) {
		name_of_target(r->target, name);
		pthread_mutex_lock(&volume_of(k)->volume_lock);
		rec = volume_make_locked(k, r->volume, name);
		pthread_mutex_unlock(&volume_of(k)->volume_lock);
	}
	if (rec != OTHERS || r->volume == 0)
		volume_port(ps)->last_volume = rec;
	return rec;
}

void volume_forget(struct cached *k, uint32_t id)
{
	uint32_t rec;

	pthread_mutex_lock(&volume_of(k)->volume_lock);
	rec = volume_find(k, id);
	if (rec != OTHERS) {
		settings_drop(k, rec);
		volume_of(k)->records[rec].name[0] = '\0';
		if (is_idle(k, rec))
			record_clear(k, rec);
	}
	pthread_mutex_unlock(&volume_of(k)->volume_lock);
}

/* ---- objects ---- */

uint32_t volume_hold(struct cached *k, uint32_t rec, uint32_t id)
{
	for (; rec != OTHERS; rec = volume_find(k, id)) {
		/* seq_cst: partner is the fence in record_clear() */
		atomic_fetch_add(&volume_of(k)->states[rec].objects, 1);
		if (atomic_load(&volume_of(k)->volume_ids[rec]) == id)
			return rec;
		atomic_fetch_sub(&volume_of(k)->states[rec].objects, 1);
	}
	atomic_fetch_add(&volume_of(k)->states[OTHERS].objects, 1);
	return OTHERS;
}

/* ---- counters ---- */

const char *const volume_keys[NR_VC] = {
	[VC_READS] = "reads", [VC_WRITES] = "writes", [VC_HITS] = "hits", [VC_MISSES] = "misses",
		[VC_PARTIAL] = "partial",
	[VC_BYPASSED] = "bypassed", [VC_HIT_BYTES] = "hit_bytes", [VC_MISS_BYTES] = "miss_bytes",
		[VC_READ_BYTES] = "read_bytes",
	[VC_WRITE_BYTES] = "write_bytes", [VC_EVICTED] = "evicted", [VC_USED_BYTES] = "used_bytes",
		[VC_DIRTY_BYTES] = "dirty_bytes",
	[VC_UNPROMISED_BYTES] = "unpromised_bytes",
};

void volume_block_take(struct volume_block *b, uint32_t id)
{
	for (unsigned n = 0; n < NR_VC; n++)
		atomic_store_explicit(&b->n[n], 0, memory_order_relaxed);
	/* release: a reader that sees the id sees the zeroes */
	atomic_store_explicit(&b->id, id, memory_order_release);
}

void volume_count_read(struct volume_block *b, uint32_t nr, uint32_t nr_hit, uint32_t bytes)
{
	volume_add(b, VC_READS, 1);
	volume_add(b, nr_hit == nr ? VC_HITS : nr_hit ? VC_PARTIAL : VC_MISSES, 1);
	volume_add(b, VC_HIT_BYTES, (uint64_t)nr_hit * XSEG_PAGE_SIZE);
	volume_add(b, VC_MISS_BYTES, (uint64_t)(nr - nr_hit) * XSEG_PAGE_SIZE);
	volume_add(b, VC_READ_BYTES, bytes);
}

void volume_count_hits(struct volume_block *b, uint64_t nr, uint64_t buckets, uint64_t bytes)
{
	volume_add(b, VC_READS, nr);
	volume_add(b, VC_HITS, nr);
	volume_add(b, VC_HIT_BYTES, buckets * XSEG_PAGE_SIZE);
	volume_add(b, VC_READ_BYTES, bytes);
}

void volume_count_bypassed(struct volume_block *b, uint32_t bytes)
{
	volume_add(b, VC_READS, 1);
	volume_add(b, VC_BYPASSED, 1);
	volume_add(b, VC_READ_BYTES, bytes);
}

void volume_count_writes(struct volume_block *b, uint64_t nr, uint64_t bytes)
{
	volume_add(b, VC_WRITES, nr);
	volume_add(b, VC_WRITE_BYTES, bytes);
}

void volume_count_write(struct volume_block *b, uint32_t bytes)
{
	volume_count_writes(b, 1, bytes);
}

uint64_t volume_total(struct cached *k, uint32_t rec, enum volume_counter n)
{
	uint32_t id = id_of(k, rec);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++) {
		const struct volume_block *b = &volume_port(cport_at(k, i))->blocks[rec];

		if (atomic_load_explicit(&b->id, memory_order_acquire) == id)
			sum += atomic_load_explicit(&b->n[n], memory_order_relaxed);
	}
	return sum;
}

/* ---- a predecessor's ---- */

/* The record is one that a predecessor can have left; what it has is for us to believe or not. */
static bool record_ok(struct cached *k, uint32_t rec)
{
	uint32_t id = id_of(k, rec);
	const char *name = volume_of(k)->records[rec].name;

	if (id == 0 || rec == OTHERS)
		return false;
	if (volume_find(k, id) != rec || !memchr(name, '\0', XSEG_NAME_MAX))
		return false;
	return settings_ok(volume_of(k)->records[rec].settings) &&
	       (name[0] == '\0' || volume_name_ok(name));
}

static void record_restore(struct cached *k, uint32_t rec)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		for (enum volume_counter n = VC_USED_BYTES; n <= VC_UNPROMISED_BYTES; n++)
			atomic_store_explicit(&volume_port(cport_at(k, i))->blocks[rec].n[n], 0,
				memory_order_relaxed);
	if (record_ok(k, rec))
		return;
	blocks_void(k, rec);
	atomic_store_explicit(&volume_of(k)->volume_ids[rec], 0, memory_order_relaxed);
	atomic_store_explicit(&volume_of(k)->records[rec].settings, 0, memory_order_relaxed);
	volume_of(k)->records[rec].name[0] = '\0';
}

/* Ports that came after the arena was made have their counters in private memory: those begin
 * anew. */
int volumes_open(struct cached *k, void *ids, void *(*alloc)(struct cached *k, size_t bytes))
{
	uint32_t nr = volume_of(k)->nr_volumes, ports = volume_of(k)->nr_counted, i;
	struct volume_block *blocks, *more = NULL;

	volume_of(k)->volume_ids = ids;
	volume_of(k)->records = (struct arena_volume *)(volume_of(k)->volume_ids + nr);
	volume_of(k)->states = alloc(k, nr * sizeof(*volume_of(k)->states));
	if (peer_of(k)->nr_ports > ports)
		more = alloc(k, (size_t)(peer_of(k)->nr_ports - ports) * nr * sizeof(*more));
	if (!volume_of(k)->states || (peer_of(k)->nr_ports > ports && !more))
		return -ENOMEM;
	blocks = (struct volume_block *)(volume_of(k)->records + nr);
	for (i = 0; i < peer_of(k)->nr_ports; i++)
		volume_port(cport_at(k, i))->blocks = i < ports ? blocks + (size_t)i * nr
						: more + (size_t)(i - ports) * nr;
	for (i = 0; i < nr; i++)
		record_restore(k, i);
	return 0;
}
