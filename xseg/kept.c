/* kept - a second copy of the words of peers and ports, by which words that were written over are
 * found and put back.
 *
 * Each word that nothing else tells has a copy in a table of its own (struct xs_kept). The copy has
 * a check that fits its value alone. A change makes the check void, stores the word, then the copy,
 * then the check. So at each moment one of two things holds:
 *
 *   the check fits    word and copy are the same, or a process has written over the word: the copy
 *                     counts
 *   it does not       a change is under way, or its writer died in it, or a process has written
 *                     over the copy: the word counts
 * If both are written over, the value is lost; `xseg check` then says which part cannot be right.
 *
 * Contract: xs_keep() and its like are called by the process that may change the word, under the
 * lock that this needs. A mender swaps from the wrong word that it has seen, so it meets no writer.
 * Names and lists are no single words. For these, and for copies that it makes anew, a mender holds
 * all locks under which they are changed. So xs_kept_look() holds the locks of all,
 * xs_kept_mend_clients() the control lock, and xs_kept_close() the lock of the peer. Nothing here
 * waits.
 *
 * Invariants:
 *   C1  A copy with a check that fits is the value that the word's writer stored last. A writer
 *       makes it of the value that it means to store, and of the copy before. It never uses words
 *       that it reads back, since those may have been written over meanwhile.
 *   C2  The swap that marks a peer DEAD (sweep.c) needs no lock. Its copy is void before the swap,
 *       and follows by a swap. So it never gets in the way of a successor's copy; at worst the copy
 *       stays void.
 *   C3  A peer in service needs no lock either to change its state, or its arena's epoch. So a void
 *       copy says which member is changing it. A mender leaves that of a living member. It claims
 *       any other before it looks at the word, and gives up if the claim is gone afterwards. Else
 *       it could make the copy of an older word, which the next mender would put back.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "xseg/internal.h"

static const struct {
	size_t off;
	bool wide;
	const char *what;
} rows[XS_KEPT_NR] = {
	[XS_KEPT_WORD] = { offsetof(struct xs_peer, word), true, "its state" },
	[XS_KEPT_ROUTE] = { offsetof(struct xs_peer, route), true, "its route" },
	[XS_KEPT_EPOCH] = { offsetof(struct xs_peer, arena_epoch), true, "its arena's epoch" },
	[XS_KEPT_BYTES] = { offsetof(struct xs_peer, arena_bytes), true, "its arena's size" },
	[XS_KEPT_PLUG] = { offsetof(struct xs_peer, plug), true,
		"the cache that is being plugged" },
	[XS_KEPT_TURN] = { offsetof(struct xs_peer, turn), true, "the cache that it holds for" },
	[XS_KEPT_ABOVE] = { offsetof(struct xs_peer, above), false,
		"the peer that it is kept for" },
	[XS_KEPT_PORTS] = { offsetof(struct xs_peer, nr_ports), false, "its number of ports" },
	[XS_KEPT_EXTENTS] = { offsetof(struct xs_peer, arena_extents), false,
		"its arena's extents" },
};

static uint64_t load(struct xseg *seg, uint32_t peer, enum xs_kept_row row)
{
	char *at = (char *)&seg->peers[peer] + rows[row].off;

	return rows[row].wide ? atomic_load((_Atomic uint64_t *)at)
			      : atomic_load((_Atomic uint32_t *)at);
}

static void store(struct xseg *seg, uint32_t peer, enum xs_kept_row row, uint64_t value)
{
	char *at = (char *)&seg->peers[peer] + rows[row].off;

	if (rows[row].wide)
		atomic_store((_Atomic uint64_t *)at, value);
	else
		atomic_store((_Atomic uint32_t *)at, (uint32_t)value);
}

static void swap(struct xseg *seg, uint32_t peer, enum xs_kept_row row, uint64_t from, uint64_t to)
{
	char *at = (char *)&seg->peers[peer] + rows[row].off;
	uint32_t narrow = (uint32_t)from;

	if (rows[row].wide)
		atomic_compare_exchange_strong((_Atomic uint64_t *)at, &from, to);
	else
		atomic_compare_exchange_strong((_Atomic uint32_t *)at, &narrow, (uint32_t)to);
}

/* ---- copies ---- */

/* Of a value at its place; never even, which that of a void copy is. */
static uint64_t check_of(const struct xs_kept *k, const struct xseg *seg, uint64_t value)
{
	uint64_t at = (uint64_t)((const uint8_t *)k - seg->base);

	return XXH3_64bits_withSeed(&value, sizeof(value), at) | 1;
}

/* C3. In place of the check; 0: nobody changes it. */
enum { CHANGES = 0x6b657074, MENDS = 0x6d656e64 };

static uint64_t void_by(const struct xseg *seg, uint64_t what)
{
	return what << 32 | (uint64_t)(uint16_t)seg->member << 1;
}

static bool is_being_changed(struct xseg *seg, uint64_t check)
{
	return (check >> 32 == CHANGES || check >> 32 == MENDS) && !(check & 1) &&
	       xs_member_alive(seg, (uint32_t)check >> 1);
}

static void copy_open(struct xseg *seg, struct xs_kept *k)
{
	atomic_store(&k->check, void_by(seg, CHANGES));
}

static void copy_close(struct xseg *seg, struct xs_kept *k, uint64_t value)
{
	atomic_store(&k->value, value);
	atomic_store(&k->check, check_of(k, seg, value));
}

/* False: there is none to believe. */
static bool copy_get(struct xseg *seg, struct xs_kept *k, uint64_t *value)
{
	*value = atomic_load(&k->value);
	return atomic_load(&k->check) == check_of(k, seg, *value);
}

static struct xs_kept *copy_at(struct xseg *seg, uint32_t peer, enum xs_kept_row row)
{
	return &seg->kept_peers[peer].row[row];
}

void xs_keep(struct xseg *seg, uint32_t peer, enum xs_kept_row row, uint64_t value)
{
	struct xs_kept *k = copy_at(seg, peer, row);

	copy_open(seg, k);
	store(seg, peer, row, value);
	copy_close(seg, k, value);
}

bool xs_kept_agrees(struct xseg *seg, uint32_t peer, uint64_t word)
{
	uint64_t value;

	return !copy_get(seg, copy_at(seg, peer, XS_KEPT_WORD), &value) || value == word;
}

void xs_keep_dead_open(struct xseg *seg, uint32_t peer)
{
	copy_open(seg, copy_at(seg, peer, XS_KEPT_WORD));
}

void xs_keep_dead_not(struct xseg *seg, uint32_t peer)
{
	uint64_t check = void_by(seg, CHANGES);

	atomic_compare_exchange_strong(&copy_at(seg, peer, XS_KEPT_WORD)->check, &check, 0);
}

void xs_keep_dead(struct xseg *seg, uint32_t peer, uint64_t from, uint64_t to)
{
	struct xs_kept *k = copy_at(seg, peer, XS_KEPT_WORD);

	if (atomic_compare_exchange_strong(&k->value, &from, to))
		atomic_store(&k->check, check_of(k, seg, to));
}

void xs_keep_port(struct xseg *seg, uint32_t port, uint32_t peer)
{
	struct xs_kept *k = &seg->kept_ports[port].peer;

	copy_open(seg, k);
	atomic_store(&seg->ports[port].peer, peer);
	copy_close(seg, k, peer);
}

XS_RACY static uint64_t range_of(const struct xs_port *p)
{
	return (uint64_t)XS_FETCH(p->req_first) << 32 | XS_FETCH(p->req_nr);
}

void xs_keep_range(struct xseg *seg, uint32_t port, uint32_t first, uint32_t nr)
{
	struct xs_kept *k = &seg->kept_ports[port].range;

	copy_open(seg, k);
	seg->ports[port].req_first = first;
	seg->ports[port].req_nr = nr;
	copy_close(seg, k, (uint64_t)first << 32 | nr);
}

/* ---- names and lists ---- */

static void lists_get(const struct xs_peer *p, struct xs_kept_lists *l)
{
	xs_racy_copy(l->name, p->name, sizeof(l->name));
	xs_racy_copy(l->kind, p->kind, sizeof(l->kind));
	xs_racy_copy(l->port, p->port, sizeof(l->port));
}

static uint64_t lists_check(const struct xs_kept_lists *l, uint32_t peer)
{
	return XXH3_64bits_withSeed(l, offsetof(struct xs_kept_lists, check), peer) | 1;
}

/* *l: what the copy has. False: there is none to believe. */
static bool lists_copy(struct xseg *seg, uint32_t peer, struct xs_kept_lists *l)
{
	xs_racy_copy(l, &seg->kept_peers[peer].lists, sizeof(*l));
	return atomic_load(&l->check) == lists_check(l, peer);
}

static void lists_put(struct xs_peer *p, const struct xs_kept_lists *l)
{
	memcpy(p->name, l->name, sizeof(p->name));
	memcpy(p->kind, l->kind, sizeof(p->kind));
	memcpy(p->port, l->port, sizeof(p->port));
}

static void lists_keep(struct xseg *seg, uint32_t peer, const struct xs_kept_lists *want)
{
	struct xs_kept_lists *l = &seg->kept_peers[peer].lists;

	atomic_store(&l->check, 0);
	lists_put(&seg->peers[peer], want);
	memcpy(l, want, offsetof(struct xs_kept_lists, check));
	atomic_store(&l->check, lists_check(l, peer));
}

void xs_keep_lists(struct xseg *seg, uint32_t peer)
{
	struct xs_kept_lists now;

	lists_get(&seg->peers[peer], &now);
	lists_keep(seg, peer, &now);
}

void xs_keep_name(struct xseg *seg, uint32_t peer, const char *name, const char *kind)
{
	struct xs_kept_lists want = { .name = "" };

	memcpy(want.name, name, strnlen(name, sizeof(want.name) - 1));
	memcpy(want.kind, kind, strnlen(kind, sizeof(want.kind) - 1));
	lists_keep(seg, peer, &want);
}

void xs_keep_listed(struct xseg *seg, uint32_t peer, uint32_t at, uint32_t port)
{
	struct xs_kept_lists want;

	if (!lists_copy(seg, peer, &want))
		lists_get(&seg->peers[peer], &want);
	want.port[at] = (uint16_t)port;
	lists_keep(seg, peer, &want);
}

/* *l: what they should be. False: they are, or there is no copy to believe. */
static bool lists_differ(struct xseg *seg, uint32_t peer, struct xs_kept_lists *l)
{
	struct xs_kept_lists now;

	lists_get(&seg->peers[peer], &now);
	return lists_copy(seg, peer, l) &&
	       memcmp(&now, l, offsetof(struct xs_kept_lists, check)) != 0;
}

void xs_kept_init(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		for (enum xs_kept_row row = 0; row < XS_KEPT_NR; row++)
			xs_keep(seg, i, row, load(seg, i, row));
		xs_keep_lists(seg, i);
		xs_keep_port(seg, i, 0);
		xs_keep_range(seg, i, 0, 0);
	}
}

/* ---- looking, and putting back ---- */

/* A word, or a list, is not what its copy says. With fix it is from now on. */
struct look {
	struct xseg *seg;
	bool fix;
	unsigned nr;
	void (*fn)(uint32_t peer, uint32_t port, const char *what, void *arg);
	void *arg;
};

static void wrong(struct look *l, uint32_t peer, uint32_t port, const char *what)
{
	l->nr++;
	if (l->fn)
		l->fn(peer, port, what, l->arg);
}

/* C3 */
static void copy_anew(struct xseg *seg, uint32_t peer, enum xs_kept_row row)
{
	struct xs_kept *k = copy_at(seg, peer, row);
	uint64_t check = atomic_load(&k->check), mine = void_by(seg, MENDS), now;

	if (is_being_changed(seg, check) ||
		!atomic_compare_exchange_strong(&k->check, &check, mine))
		return;
	now = load(seg, peer, row);
	atomic_store(&k->value, now);
	atomic_compare_exchange_strong(&k->check, &mine, check_of(k, seg, now));
}

static void look_at_row(struct look *l, uint32_t peer, enum xs_kept_row row)
{
	struct xs_kept *k = copy_at(l->seg, peer, row);
	uint64_t now = load(l->seg, peer, row), value;

	/* the copy is looked at after the word: a change between the two makes it void, or is in
	 * both */
	if (!copy_get(l->seg, k, &value)) {
		if (l->fix)
			copy_anew(l->seg, peer, row);
		return;
	}
	if (now == value || load(l->seg, peer, row) != now)
		return;
	if (l->fix)
		swap(l->seg, peer, row, now, value);
	wrong(l, peer, XSEG_NONE, rows[row].what);
}

static void look_at_lists(struct look *l, uint32_t peer)
{
	struct xs_peer *p = &l->seg->peers[peer];
	struct xs_kept_lists want;

	if (!lists_differ(l->seg, peer, &want)) {
		if (l->fix && atomic_load(&want.check) != lists_check(&want, peer))
			xs_keep_lists(l->seg, peer);
		return;
	}
	if (l->fix)
		lists_put(p, &want);
	wrong(l, peer, XSEG_NONE, "its name, kind or list of ports");
}

static void look_at_port(struct look *l, uint32_t i)
{
	struct xs_port *p = &l->seg->ports[i];
	struct xs_kept_port *k = &l->seg->kept_ports[i];
	uint32_t now = atomic_load(&p->peer);
	uint64_t range = range_of(p), value;

	if (!copy_get(l->seg, &k->peer, &value)) {
		if (l->fix)
			copy_close(l->seg, &k->peer, now);
	} else if (now != value && atomic_load(&p->peer) == now) {
		if (l->fix)
			atomic_compare_exchange_strong(&p->peer, &now, (uint32_t)value);
		wrong(l, XSEG_NONE, i, "the peer that has it");
	}
	if (!copy_get(l->seg, &k->range, &value)) {
		if (l->fix)
			copy_close(l->seg, &k->range, range);
	} else if (range != value && range_of(p) == range) {
		if (l->fix) {
			p->req_first = (uint32_t)(value >> 32);
			p->req_nr = (uint32_t)value;
		}
		wrong(l, XSEG_NONE, i, "its range of requests");
	}
}

/* Which are changed under the lock of routes. */
static bool is_of_routes(enum xs_kept_row row)
{
	return row == XS_KEPT_ROUTE || row == XS_KEPT_PLUG || row == XS_KEPT_TURN ||
	       row == XS_KEPT_ABOVE;
}

static bool is_port_of(struct xseg *seg, uint32_t port, uint32_t peer)
{
	uint64_t value;

	return xs_peer_has_port(seg, peer, port) ||
	       (copy_get(seg, &seg->kept_ports[port].peer, &value) && value == peer + 1);
}

bool xs_kept_is_sound(struct xseg *seg, uint32_t peer)
{
	struct look l = { .seg = seg };

	for (enum xs_kept_row row = 0; row < XS_KEPT_NR; row++)
		look_at_row(&l, peer, row);
	look_at_lists(&l, peer);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (is_port_of(seg, i, peer))
			look_at_port(&l, i);
	return l.nr == 0;
}

void xs_kept_close(struct xseg *seg, uint32_t peer)
{
	struct look l = { .seg = seg, .fix = true };

	for (enum xs_kept_row row = 0; row < XS_KEPT_NR; row++)
		if (!is_of_routes(row))
			look_at_row(&l, peer, row);
	look_at_lists(&l, peer);
}

/* As its copies have it, where they are to be believed. */
static bool is_clients(struct xseg *seg, uint32_t peer)
{
	const struct xs_kept_lists *l = &seg->kept_peers[peer].lists;
	uint64_t word = xs_peer_word(seg, peer), value;
	bool kept = atomic_load(&l->check) == lists_check(l, peer);

	if (copy_get(seg, copy_at(seg, peer, XS_KEPT_WORD), &value))
		word = value;
	return peer_state(word) == XSEG_PEER_FREE ||
	       strncmp(kept ? l->kind : seg->peers[peer].kind, "client", sizeof(l->kind)) == 0;
}

void xs_kept_mend_clients(struct xseg *seg)
{
	struct look l = { .seg = seg, .fix = true };

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		for (enum xs_kept_row row = 0; row < XS_KEPT_NR && is_clients(seg, i); row++)
			if (!is_of_routes(row))
				look_at_row(&l, i, row);
		if (is_clients(seg, i))
			look_at_lists(&l, i);
		look_at_port(&l, i);
	}
	for (unsigned i = 0; i < l.nr; i++)
		xs_count_bad(seg);
	if (l.nr)
		xs_look_again(seg);
}

unsigned xs_kept_look(struct xseg *seg, bool fix,
	void (*fn)(uint32_t peer, uint32_t port, const char *what, void *arg), void *arg)
{
	struct look l = { .seg = seg, .fix = fix, .fn = fn, .arg = arg };

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		for (enum xs_kept_row row = 0; row < XS_KEPT_NR; row++)
			look_at_row(&l, i, row);
		look_at_lists(&l, i);
		look_at_port(&l, i);
	}
	for (unsigned i = 0; fix && i < l.nr; i++)
		xs_count_bad(seg);
	if (fix && l.nr)
		xs_look_again(seg);
	return l.nr;
}

void xs_look_again(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		atomic_store(&seg->ports[i].answered, 1);
		atomic_store(&seg->ports[i].asked, XS_ASKED | XS_ASKED_ALL);
	}
	xs_ring_all(seg);
}
