/* volume - the table of volumes: by id for the data path, by name for the admin; addresses,
 * counters.
 *
 * Contract: any port's thread may call the functions that volumed.h marks "any port"; these take no
 * lock. Only port 0's thread calls the others. Nothing blocks or allocates.
 */
#include <errno.h>
#include <string.h>

#include "peers/common/options/hex.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xstate.h"

/* ---- the data path ----------------------------------------------------------------------- */

struct vd_volume *vd_volume_get(struct volumed *vd, uint32_t id)
{
	uint32_t slot = (id & 0xffff) - 1;
	struct vd_volume *v;

	if (slot >= VD_SLOTS)
		return NULL;
	v = &vd->volume[slot];
	/* acquire: partner is the release in volume_publish(): the prefix is there before the id */
	return atomic_load_explicit(&v->id, memory_order_acquire) == id ? v : NULL;
}

int vd_volume_check(const struct vd_volume *v, uint64_t offset, uint64_t size)
{
	uint64_t end = atomic_load_explicit(&v->size_bytes, memory_order_relaxed);

	if ((offset | size) % XSEG_SECTOR)
		return -EINVAL;
	return offset > end || size > end - offset ? -ENXIO : 0;
}

static void set_prefix(const struct vd_volume *v, struct xreq *r, uint64_t offset)
{
	memcpy(r->target, v->prefix, sizeof(v->prefix));
	r->target[v->prefix_len + HEX_DIGITS] = '\0';
	r->obj_offset = offset & (((uint64_t)1 << v->shift) - 1);
}

static uint64_t hash_of(const struct vd_volume *v, const struct xreq *r)
{
	return xseg_hash(r->target, v->prefix_len + HEX_DIGITS);
}

void vd_volume_address(const struct vd_volume *v, struct xreq *r, uint64_t offset)
{
	set_prefix(v, r, offset);
	hex_digits(r->target + v->prefix_len, offset >> v->shift);
	r->hash = hash_of(v, r);
}

/* Neighbours lie side by side; volumes begin anywhere. */
static struct vd_named *named_of(
	const struct peer_port *pp, const struct vd_volume *v, uint64_t object)
{
	return &vd_port_of(pp)->named[(object + v->serial * 0x9e3779b97f4a7c15u) % VD_NAMED];
}

bool vd_volume_name(struct peer_port *pp, const struct vd_volume *v, struct xreq *r)
{
	uint64_t object = r->offset >> v->shift;
	const struct vd_named *n = named_of(pp, v, object);

	set_prefix(v, r, r->offset);
	if (n->object != object || n->serial != v->serial) {
		hex_digits(r->target + v->prefix_len, object);
		return false;
	}
	hex_put(r->target + v->prefix_len, HEX_ZEROES, n->digits);
	r->hash = n->hash;
	return true;
}

void vd_volume_hash(struct peer_port *pp, const struct vd_volume *v, struct xreq *r)
{
	uint64_t object = r->offset >> v->shift;

	r->hash = hash_of(v, r);
	if (object >> 32 == 0)
		*named_of(pp, v, object) = (struct vd_named){
			.serial = v->serial,
			.hash = r->hash,
			.digits = hex_of_half((uint32_t)object),
			.object = (uint32_t)object,
		};
}

void vd_volume_address_all(const struct vd_volume *v, struct xreq *r)
{
	xseg_req_set_target(r, v ? v->prefix : ":", v ? v->prefix_len : 1);
	r->obj_offset = 0;
}

/* ---- names of objects -------------------------------------------------------------------- */

#define IDENTITY_CHARS (1 + HEX_DIGITS + 1)	/* '-', digits, the letter of the object size */
_Static_assert(IDENTITY_CHARS + 1 + HEX_DIGITS <= 39, "all of a name is in a request's head");

static uint8_t shift_of(uint64_t object_size)
{
	return (uint8_t)__builtin_ctzll(object_size);
}

uint32_t vd_prefix_make(const struct vd_meta *meta, char prefix[VD_PREFIX_BYTES])
{
	size_t len = strlen(meta->name);

	memset(prefix, 0, VD_PREFIX_BYTES);
	if (meta->identity) {
		prefix[0] = '-';
		hex_digits(prefix + 1, meta->identity);
		prefix[1 + HEX_DIGITS] =
			(char)('a' + shift_of(meta->object_size) - shift_of(VD_OBJECT_MIN));
		len = IDENTITY_CHARS;
	} else {
		memcpy(prefix, meta->name, len);
	}
	prefix[len] = ':';
	return (uint32_t)len + 1;
}

/* Exactly HEX_DIGITS of them. */
static bool parse_hex(const char *text, uint64_t *value)
{
	*value = 0;
	for (uint32_t i = 0; i < HEX_DIGITS; i++) {
		const char *digits = "0123456789abcdef", *at;

		at = text[i] ? strchr(digits, text[i]) : NULL;
		if (!at)
			return false;
		*value = *value << 4 | (uint64_t)(at - digits);
	}
	return true;
}

bool vd_prefix_identity(const char *prefix, uint64_t *identity, uint64_t *object_size)
{
	char letter;

	if (prefix[0] != '-' || !parse_hex(prefix + 1, identity) || !*identity ||
		*identity == UINT64_MAX)
		return false;
	letter = prefix[1 + HEX_DIGITS];
	if (letter < 'a' || letter > 'a' + shift_of(VD_OBJECT_MAX) - shift_of(VD_OBJECT_MIN))
		return false;
	*object_size = (uint64_t)VD_OBJECT_MIN << (letter - 'a');
	return prefix[IDENTITY_CHARS] == '\0' || prefix[IDENTITY_CHARS] == ':';
}

bool vd_object_number(const struct vd_volume *v, const char *name, uint64_t *number)
{
	return !strncmp(name, v->prefix, v->prefix_len) &&
	       parse_hex(name + v->prefix_len, number) &&
	       !name[v->prefix_len + HEX_DIGITS];
}

bool vd_object_size_ok(uint64_t bytes)
{
	return bytes >= VD_OBJECT_MIN && bytes <= VD_OBJECT_MAX && (bytes & (bytes - 1)) == 0;
}

bool vd_size_ok(uint64_t bytes)
{
	return bytes && bytes <= VD_SIZE_MAX && bytes % XSEG_SECTOR == 0;
}

bool vd_limits_ok(struct vd_limits *l)
{
	if (!l->iops && !l->bandwidth)
		l->burst_ns = 0;
	else if (!l->burst_ns)
		l->burst_ns = VD_BURST_MIN_NS;
	else if (l->burst_ns < VD_BURST_MIN_NS || l->burst_ns > VD_BURST_MAX_NS)
		return false;
	if (l->iops > VD_IOPS_MAX || l->bandwidth > VD_BANDWIDTH_MAX)
		return false;
	return !l->bandwidth || l->bandwidth >= VD_BANDWIDTH_MIN;
}

uint64_t vd_volume_objects(const struct vd_meta *meta, uint64_t size_bytes)
{
	return (size_bytes + meta->object_size - 1) / meta->object_size;
}

/* ---- counters ---------------------------------------------------------------------------- */

enum {
	VOLUME_READS, VOLUME_WRITES, VOLUME_READ_BYTES, VOLUME_WRITE_BYTES, VOLUME_FLUSHES,
	VOLUME_ERRORS, VOLUME_DIRECT_READS, VOLUME_DIRECT_BYTES,
	/* requests that had to wait for a limit; those that do now; the limits */
	VOLUME_WAITED, VOLUME_WAITING, VOLUME_LIMIT_IOPS, VOLUME_LIMIT_BYTES, VOLUME_NR
};

static const char *const volume_keys[VOLUME_NR] = {
	"reads", "writes", "read_bytes", "write_bytes", "flushes", "errors", "direct_reads",
	"direct_bytes", "waited", "waiting", "limit_iops", "limit_bandwidth_bytes",
};

static struct vd_counters *counters_of(struct volumed *vd, const struct vd_volume *v, uint32_t port)
{
	return &vd->counters[(size_t)vd_slot_of(vd, v) * vd->peer.nr_ports + port];
}

static int counters_open(struct volumed *vd, const struct vd_volume *v, struct vd_counters *c)
{
	return xseg_stats_open(
		vd->peer.xp, vd_name_of(v), "volume", volume_keys, VOLUME_NR, &c->stats);
}

/* What is now, in one block of the volume's: that of its home. A predecessor's say what was. */
static void levels_set(struct peer_port *pp, struct vd_volume *v, struct xseg_stats *s)
{
	struct volumed *vd = vd_of(pp);
	struct vd_limit *l = vd_limit_of(vd, v);
	bool home = vd_home_of(vd, v) == pp->nr;

	xseg_stats_set(s, VOLUME_WAITING, home ? vd_limit_waiting(vd, v) : 0);
	xseg_stats_set(s, VOLUME_LIMIT_IOPS,
		home ? atomic_load_explicit(&l->iops, memory_order_relaxed) : 0);
	xseg_stats_set(s, VOLUME_LIMIT_BYTES,
		home ? atomic_load_explicit(&l->bandwidth, memory_order_relaxed) : 0);
}

/* Opens a block unless `limit` are used: the segment's are few, and not only ours. What fails, how
 * long it took, and reads without a request are not seen here: their sender counts them. */
static void counters_try_open(
	struct peer_port *pp, struct vd_volume *v, uint32_t id, uint32_t limit)
{
	struct volumed *vd = vd_of(pp);
	struct vd_counters *c = counters_of(vd, v, pp->nr);

	if (atomic_load_explicit(&vd->nr_stats, memory_order_relaxed) >= limit ||
	    atomic_load_explicit(&vd->stats_full, memory_order_relaxed))
		return;
	if (counters_open(vd, v, c)) {
		atomic_store_explicit(&vd->stats_full, true, memory_order_relaxed);
		return;
	}
	atomic_fetch_add_explicit(&vd->nr_stats, 1, memory_order_relaxed);
	xseg_stats_of_volume(c->stats, id, VOLUME_ERRORS);
	levels_set(pp, v, c->stats);
}

/* Blocks of a predecessor have the volume's name alone: another volume's of that name stay. */
void vd_volume_quiet(struct volumed *vd, struct vd_volume *v)
{
	const struct vd_volume *named = vd_volume_find(vd, vd_name_of(v));
	struct vd_counters *c;
	uint32_t i;

	for (i = 0; i < vd->peer.nr_ports; i++) {
		c = counters_of(vd, v, i);
		if (c->stats)
			atomic_fetch_sub_explicit(&vd->nr_stats, 1, memory_order_relaxed);
		else if ((named && named != v) || counters_open(vd, v, c))
			continue;
		xseg_stats_close(vd->peer.xp, c->stats);
		c->stats = NULL;
	}
	atomic_store_explicit(&vd->stats_full, false, memory_order_relaxed);
}

/* The volume's block of this port, or NULL. */
static struct xseg_stats *stats_get(struct peer_port *pp, struct vd_volume *v, uint32_t id)
{
	struct vd_counters *c = counters_of(vd_of(pp), v, pp->nr);

	if (!c->stats)
		counters_try_open(pp, v, id, xseg_nr_stats(pp->peer->seg) / 2);
	return c->stats;
}

void vd_volume_count(struct peer_port *pp, struct vd_volume *v, const struct xreq *r)
{
	struct xseg_stats *s = stats_get(pp, v, r->volume);

	if (!s)
		return;
	switch (r->op) {
	case XSEG_OP_READ:
		xseg_stats_add(s, VOLUME_READS, 1);
		xseg_stats_add(s, VOLUME_READ_BYTES, r->size);
		break;
	case XSEG_OP_WRITE:
		xseg_stats_add(s, VOLUME_WRITES, 1);
		xseg_stats_add(s, VOLUME_WRITE_BYTES, r->size);
		break;
	case XSEG_OP_FLUSH:
		xseg_stats_add(s, VOLUME_FLUSHES, 1);
		break;
	}
}

void vd_volume_count_wait(struct peer_port *pp, struct vd_volume *v, bool more)
{
	uint32_t id = atomic_load_explicit(&v->id, memory_order_relaxed);
	struct xseg_stats *s = id ? stats_get(pp, v, id) : NULL;

	if (!s)
		return;
	if (more)
		xseg_stats_add(s, VOLUME_WAITED, 1);
	levels_set(pp, v, s);
}

/* ---- port 0's thread --------------------------------------------------------------------- */

static bool has_name(const struct vd_meta *m)
{
	return m->state == VD_LIVE || m->state == VD_SHRINKING || m->state == VD_REMOVING;
}

struct vd_volume *vd_volume_find(struct volumed *vd, const char *name)
{
	struct vd_volume *v, *removing = NULL;

	for (v = vd->volume; v < vd->volume + VD_SLOTS; v++) {
		if (!has_name(&v->meta) || strcmp(v->meta.name, name) != 0)
			continue;
		if (v->meta.state != VD_REMOVING)
			return v;
		if (!removing || v->meta.identity > removing->meta.identity)
			removing = v;
	}
	return removing;
}

struct vd_volume *vd_volume_unused(struct volumed *vd)
{
	struct vd_volume *v;

	for (v = vd->volume; v < vd->volume + VD_SLOTS; v++)
		if (v->meta.state == VD_FREE)
			return v;
	return NULL;
}

struct vd_volume *vd_volume_damaged(struct volumed *vd, const char *name)
{
	struct vd_volume *v;

	for (v = vd->volume; v < vd->volume + VD_SLOTS; v++)
		if ((v->meta.state == VD_DAMAGED || v->meta.state == VD_LOST) &&
			strcmp(v->meta.name, name) == 0)
			return v;
	return NULL;
}

static void count_state(struct volumed *vd, enum vd_slot_state state, uint32_t by)
{
	_Atomic uint32_t *counter[VD_NR_STATES] = {
		[VD_LIVE] = &vd->nr_volumes, [VD_SHRINKING] = &vd->nr_volumes,
		[VD_REMOVING] = &vd->nr_removing, [VD_DAMAGED] = &vd->nr_damaged,
		[VD_LOST] = &vd->nr_lost,
	};

	if (counter[state])
		atomic_fetch_add_explicit(counter[state], by, memory_order_relaxed);
}

static void name_set(struct vd_volume *v)
{
	uint32_t at = !atomic_load_explicit(&v->name_at, memory_order_relaxed);

	memcpy(v->names[at], v->meta.name, sizeof(v->names[at]));
	/* release: partner is the acquire in vd_name_of() */
	atomic_store_explicit(&v->name_at, at, memory_order_release);
}

static void set_address(struct volumed *vd, struct vd_volume *v)
{
	v->serial = ++vd->serial;
	v->shift = shift_of(v->meta.object_size);
	v->prefix_len = (uint8_t)vd_prefix_make(&v->meta, v->prefix);
	name_set(v);
}

/* An identity tells the volume's objects, so no object has another name now. Its counters go on. */
static void name_follow(struct volumed *vd, struct vd_volume *v)
{
	if (strcmp(vd_name_of(v), v->meta.name) == 0)
		return;
	name_set(v);
	xseg_stats_rename(vd->peer.xp, vd_id_of(vd, v), v->meta.name);
}

static void volume_publish(struct peer_port *pp, struct vd_volume *v)
{
	uint32_t id = vd_id_of(vd_of(pp), v);

	atomic_store_explicit(&v->size_bytes, v->meta.size_bytes, memory_order_relaxed);
	if (atomic_load_explicit(&v->id, memory_order_relaxed))
		return;
	counters_try_open(pp, v, id, xseg_nr_stats(pp->peer->seg) / 4);
	/* release: partner is the acquire in vd_volume_get() */
	atomic_store_explicit(&v->id, id, memory_order_release);
}

void vd_direct_follow(struct volumed *vd)
{
	const struct xseg_direct_table none = { .nr = 0 };

	if (vd->nr_jobs == 0 &&
		atomic_load_explicit(&vd->catalog.load, memory_order_relaxed) == VD_LOADED)
		xseg_direct_open(vd->peer.xp, &none);
	else
		xseg_direct_shut(vd->peer.xp);
}

static bool is_cut(enum vd_slot_state state)
{
	return state == VD_REMOVING || state == VD_SHRINKING;
}

/* The door is shut before the first request finds the volume gone, or smaller. */
static void count_jobs(struct volumed *vd, enum vd_slot_state from, enum vd_slot_state to)
{
	vd->nr_jobs += (uint32_t)is_cut(to) - (uint32_t)is_cut(from);
	vd_direct_follow(vd);
}

/* ---- limits ------------------------------------------------------------------------------ */

/* The volume's home looks at what waits again. */
static void limits_look(struct peer_port *pp, struct vd_volume *v)
{
	struct volumed *vd = vd_of(pp);
	uint32_t home = vd_home_of(vd, v);

	/* release: partner is the exchange in vd_limit_poll() */
	atomic_store_explicit(&vd->port[home].limit_look, true, memory_order_release);
	if (home != pp->nr)
		peer_port_kick(&vd->peer.ports[home]);
}

static bool limits_are(struct vd_limit *l, const struct vd_limits *these)
{
	return atomic_load_explicit(&l->iops, memory_order_relaxed) == these->iops &&
	       atomic_load_explicit(&l->bandwidth, memory_order_relaxed) == these->bandwidth &&
	       atomic_load_explicit(&l->burst_ns, memory_order_relaxed) == these->burst_ns;
}

/* L4 (limit.c): the limits are there before the door is shut and opened. */
static void limits_set(struct peer_port *pp, struct vd_volume *v, const struct vd_limits *to)
{
	struct volumed *vd = vd_of(pp);
	struct vd_limit *l = vd_limit_of(vd, v);
	bool was = atomic_load_explicit(&v->limited, memory_order_relaxed);
	bool is = to->iops || to->bandwidth;

	if (limits_are(l, to))
		return;
	atomic_store_explicit(&l->iops, to->iops, memory_order_relaxed);
	atomic_store_explicit(&l->bandwidth, to->bandwidth, memory_order_relaxed);
	atomic_store_explicit(&l->burst_ns, to->burst_ns, memory_order_relaxed);
	/* release: partner is the acquire in times_renew() */
	atomic_fetch_add_explicit(&l->change, 1, memory_order_release);
	atomic_store_explicit(&v->limited, is, memory_order_release);
	if (was != is && xseg_direct_is_open(vd->peer.xp)) {
		xseg_direct_shut(vd->peer.xp);
		vd_direct_follow(vd);
	}
	limits_look(pp, v);
}

/* A volume that goes keeps its limits until its place is free: what waits is ended. */
static void limits_follow(struct peer_port *pp, struct vd_volume *v)
{
	const struct vd_limits none = { 0 };

	if (v->meta.state == VD_FREE)
		limits_set(pp, v, &none);
	else if (is_cut(v->meta.state))
		limits_look(pp, v);
	else
		limits_set(pp, v, &v->meta.limits);
}

#define TO(state) (1u << VD_##state)

static const struct xstates states = {
	.what = "volume",
	XSTATE(VD_, FREE, TO(FREE) | TO(LIVE) | TO(REMOVING) | TO(SHRINKING) | TO(DAMAGED) |
		TO(LOST)),
	XSTATE(VD_, LIVE, TO(LIVE) | TO(REMOVING) | TO(SHRINKING)),
	XSTATE(VD_, REMOVING, TO(FREE)),
	XSTATE(VD_, SHRINKING, TO(LIVE)),
	XSTATE(VD_, DAMAGED, TO(FREE)),
	XSTATE(VD_, LOST, TO(FREE)),
};

/* ---- jobs ------------------------------------------------------------------------------- */

void vd_job_queue(struct vd_job *job, struct vd_volume *v)
{
	v->next_job = NULL;
	*job->queue_last = v;
	job->queue_last = &v->next_job;
}

void vd_job_add(struct peer_port *pp, struct vd_volume *v)
{
	v->cursor = v->deleted = v->listed = v->retry_ns = v->again_ns = 0;
	v->again = VD_AGAIN_NS;
	v->waits_for = 0;
	v->passed = v->in_round = v->drained = v->zeroed = v->found = v->told = false;
	vd_job_queue(&vd_of(pp)->job, v);
}

void vd_volume_become(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta)
{
	struct volumed *vd = vd_of(pp);
	enum vd_slot_state old = v->meta.state;

	xstate_check(&states, old, meta->state);
	count_state(vd, old, UINT32_MAX);
	count_state(vd, meta->state, 1);
	count_jobs(vd, old, meta->state);
	v->meta = *meta;
	if (old == VD_FREE && has_name(meta))
		set_address(vd, v);
	else if (has_name(meta))
		name_follow(vd, v);
	if (meta->state == VD_LIVE || meta->state == VD_SHRINKING)
		volume_publish(pp, v);
	if (meta->state == VD_REMOVING)
		/* relaxed: other ports are told by the job's turn (J1) */
		atomic_store_explicit(&v->id, 0, memory_order_relaxed);
	if (meta->state == VD_REMOVING || meta->state == VD_SHRINKING)
		vd_job_add(pp, v);
	limits_follow(pp, v);
}
