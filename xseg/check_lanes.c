/* check_lanes - the two tables in which lanes are joined, and the rings (Q8 of port.c).
 *
 * A lane says which ports it joins, and the receiving port says which lane that is. If only one of
 * the two says so, the other is made to follow. If neither says so, there is no lane, and the word
 * is free. A sender that still writes to such a lane finds that out, and joins another. So a wrong
 * guess loses only offers. Those are found by places after that.
 *
 * Contract: as check.c.
 */
#include "xseg/check.h"

static uint32_t word_of(struct xseg *seg, uint32_t lane)
{
	return atomic_load_explicit(&seg->lanes[lane].word, memory_order_relaxed);
}

static uint32_t entry_of(struct xseg *seg, uint32_t queue, uint32_t from, uint32_t to)
{
	return atomic_load_explicit(&seg->ports[to].lane[queue][from], memory_order_acquire);
}

static void entry_set(struct xseg *seg, uint32_t word, uint32_t entry)
{
	atomic_store_explicit(&seg->ports[word & 0x1ff].lane[word >> 30 & 1][word >> 10 & 0x1ff],
		(uint16_t)entry, memory_order_release);
}

static bool is_lane_word(struct xseg *seg, uint32_t w)
{
	uint32_t from = w >> 10 & 0x1ff, to = w & 0x1ff;

	return from < seg->geo.nr_ports && to < seg->geo.nr_ports &&
	       w == lane_word(w >> 30 & 1, from, to);
}

/* The first lane from `at` on that has the word, or XSEG_NONE. */
static uint32_t find_word(struct xseg *seg, uint32_t word, uint32_t at)
{
	for (; at < seg->geo.nr_lanes; at++)
		if (word_of(seg, at) == word)
			return at;
	return XSEG_NONE;
}

/* What the one port says that has the lane in its list; 0: none has, or several. */
static uint32_t find_entry(struct xseg *seg, uint32_t lane)
{
	uint32_t word = 0, nr = 0;

	for (uint32_t to = 0; to < seg->geo.nr_ports; to++)
		for (uint32_t i = 0; i < 2 * seg->geo.nr_ports; i++) {
			uint32_t queue = i / seg->geo.nr_ports, from = i % seg->geo.nr_ports;

			if (entry_of(seg, queue, from, to) != lane + 1)
				continue;
			word = lane_word(queue, from, to);
			nr++;
		}
	return nr == 1 ? word : 0;
}

/* By a swap from what was seen: a sender takes a free one by a swap, too, and no lock. */
static bool word_set(struct xseg *seg, uint32_t lane, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&seg->lanes[lane].word, &from, to);
}

static void fix_lane(struct xseg *seg, uint32_t i)
{
	uint32_t was = word_of(seg, i), word = was, said = find_entry(seg, i);

	if (said && find_word(seg, said, 0) == XSEG_NONE)
		word = said;
	else if (!is_lane_word(seg, word) || find_word(seg, word, 0) != i)
		word = 0;
	if (word_set(seg, i, was, word) && word)
		entry_set(seg, word, i + 1);
}

/* Each word is a lane's, and one lane's alone; and the receiving port has it. */
static void check_lane(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	uint32_t word = word_of(seg, i), other;

	if (word == 0 && !(c->fix && find_entry(seg, i)))
		return;
	if (c->fix && !xs_lane_is_joined(seg, i)) {
		fix_lane(seg, i);
	} else if (!is_lane_word(seg, word)) {
		problem(c, "lane %u: joins ports that are not there ('xseg check --fix' mends it)",
			i);
	} else if ((other = find_word(seg, word, 0)) != i) {
		if (c->fix)
			word_set(seg, i, word, 0);
		else
			problem(c, "lanes %u and %u join the same ports ('xseg check --fix' keeps "
				   "one)", i, other);
	}
}

static void check_ring(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	struct xq *q = (struct xq *)(seg->base + seg->geo.off_rings + i * seg->geo.ring_bytes);
	uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);
	uint32_t to = word_of(seg, i) & 0x1ff, peer;

	/* a reader that moved on meanwhile shows that the lane works */
	if (word_of(seg, i) == 0 || tail - head <= seg->geo.lane_slots ||
		head != atomic_load_explicit(&q->head, memory_order_acquire))
		return;
	peer = xs_peer_of_port(seg, to);
	if (!c->fix)
		problem(c, "lane %u: %llu offers in %u places ('xseg check --fix' begins it anew)",
			i, (unsigned long long)(tail - head), seg->geo.lane_slots);
	else if (!peer || peer > seg->geo.nr_ports ||
		 !xseg_peer_is_up(peer_state(xs_peer_word(seg, peer - 1))))
		atomic_store_explicit(&q->head, tail, memory_order_release);
	/* else its reader does, when it looks again, as it is told to */
}

/* L5: what a port finds its lanes by. */
static void check_port_lanes(struct check *c, uint32_t to)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < 2 * seg->geo.nr_ports; i++) {
		uint32_t queue = i / seg->geo.nr_ports, from = i % seg->geo.nr_ports;
		uint32_t lane = entry_of(seg, queue, from, to),
			 word = lane_word(queue, from, to), is;

		/* 0: a sender that died as it joined them; the next one stores it */
		if (lane == 0 && !c->fix)
			continue;
		is = lane && lane <= seg->geo.nr_lanes && word_of(seg, lane - 1) == word
			     ? lane - 1
			     : find_word(seg, word, 0);
		if (lane == (is == XSEG_NONE ? 0 : is + 1))
			continue;
		if (c->fix)
			entry_set(seg, word, is == XSEG_NONE ? 0 : is + 1);
		else
			problem(c, "port %u: its lane from port %u is another one's ('xseg check "
				   "--fix' finds its own)", to, from);
	}
}

void xs_check_lanes(struct check *c)
{
	for (uint32_t i = 0; i < c->seg->geo.nr_lanes; i++)
		check_lane(c, i);
	for (uint32_t to = 0; to < c->seg->geo.nr_ports; to++)
		check_port_lanes(c, to);
	for (uint32_t i = 0; i < c->seg->geo.nr_lanes; i++)
		check_ring(c, i);
}
