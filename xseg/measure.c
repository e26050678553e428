/* measure - the origin's part in a volume's block of counters: I/Os that failed, how long one of
 * MEASURE_EACH took, and reads without a request.
 *
 * The peer that maps a volume sends requests on, and their answers go past it. So the origin of the
 * I/O counts. It alone sees every answer, from whichever peer, and how long all of the way took.
 *
 * Contract: submit and take by the port's thread. They write to a block of another peer, beside
 * other origins, with atomic additions; nothing here blocks or takes a lock. The clock is read only
 * for the measured I/O.
 *
 * Invariants:
 *   X1  One I/O of a port is measured at a time, and no other is counted. The request's index
 *       stands in `index` from its submission until its answer is taken.
 *   X2  Only a client's ports count: no user waits for the requests that a peer sends for itself.
 *   X3  Each use looks at the block anew: the block found last is a hint. A block that is freed in
 *       that moment may count an I/O that was meant for its predecessor.
 */
#include "xseg/internal.h"
#include "xtypes/xhot.h"

#define MEASURE_EACH   32u	/* one of so many I/Os of a port is measured */
#define MEASURE_ABSENT 64u	/* so often a block that was not there is not looked for */

/* What origins add to, from the counter `told` of the block on. */
enum volume_told { TOLD_ERRORS, TOLD_DIRECT_READS, TOLD_DIRECT_BYTES };

void xs_measure_init(struct xport *port)
{
	struct measure *m = &port->measure;

	m->client = port->peer->client;
	m->until = 1;
	m->index = XSEG_NONE;
	m->block = XSEG_NONE;
	m->absent = 0;
}

static bool is_block_of(struct xseg *seg, uint32_t i, uint32_t peer, uint32_t volume)
{
	const struct xs_stats *b = &seg->stats[i];

	/* acquire: partner is the release in xseg_stats_of_volume() */
	return atomic_load_explicit(&b->volume, memory_order_acquire) == volume &&
	       atomic_load_explicit(&b->peer, memory_order_relaxed) == peer + 1;
}

/* The volume's block, or NULL: its peer has none for it, as far as was seen lately. */
static struct xs_stats *block_of(
	struct xseg *seg, struct measure *m, uint32_t peer, uint32_t volume)
{
	if (m->block != XSEG_NONE && is_block_of(seg, m->block, peer, volume))
		return &seg->stats[m->block];
	if (m->absent && m->peer == peer && m->volume == volume) {
		m->absent--;
		return NULL;
	}
	m->peer = peer;
	m->volume = volume;
	m->absent = 0;
	for (m->block = 0; m->block < seg->geo.nr_stats; m->block++)
		if (is_block_of(seg, m->block, peer, volume))
			return &seg->stats[m->block];
	m->block = XSEG_NONE;
	m->absent = MEASURE_ABSENT;
	return NULL;
}

/* What is done to a volume's data, or is to make it last. */
static bool is_io(const struct xreq *r)
{
	return r->volume && !r->parent && r->op != XSEG_OP_INFO && r->op != XSEG_OP_ADMIN;
}

static void count(struct xs_stats *b, enum volume_told key, uint64_t nr)
{
	uint32_t told = atomic_load_explicit(&b->told, memory_order_relaxed);

	if (told < XSEG_STATS_MAX - key)
		atomic_fetch_add_explicit(&b->value[told + key], nr, memory_order_relaxed);
}

XCOLD void xs_measure_submit(struct xport *port, const struct xreq *r)
{
	struct measure *m = &port->measure;

	m->until = MEASURE_EACH;
	if (m->index != XSEG_NONE || !m->client || !is_io(r))
		return;
	m->index = r->index;
	m->at_ns = xs_now_ns();
}

XCOLD void xs_measure_take(struct xport *port, const struct xreq *r)
{
	struct measure *m = &port->measure;
	bool measured = m->index == r->index;
	struct xs_stats *b;

	if (measured)
		m->index = XSEG_NONE;
	b = m->client && is_io(r) ? block_of(port->seg, m, r->sent_to, r->volume) : NULL;
	if (b && measured)
		xhist_record_shared(&b->lat, xs_now_ns() - m->at_ns);
	if (b && r->result < 0)
		count(b, TOLD_ERRORS, 1);
}

void xs_measure_direct(
	struct xport *port, uint32_t peer, uint32_t volume, uint32_t reads, uint64_t bytes)
{
	struct measure *m = &port->measure;
	struct xs_stats *b = m->client && volume ? block_of(port->seg, m, peer, volume) : NULL;

	if (!b)
		return;
	count(b, TOLD_DIRECT_READS, reads);
	count(b, TOLD_DIRECT_BYTES, bytes);
}
