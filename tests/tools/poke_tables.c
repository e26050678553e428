/* poke_tables - writes into the tables of a live segment, as any process that is attached can.
 *
 *      poke_tables SEGMENT SECONDS SEED TABLE...
 *
 * About 2,000 words a second, into the named tables. A word gets a bit turned, a byte, a small
 * number, or anything. Half of them go into used parts: the first entries.
 * Exit codes: 0; 1, there is no such segment; 2, wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/rng.h"
#include "xseg/internal.h"

#define BATCH	 20u
#define PAUSE_US 10000u
#define IN_USE	 8u			/* entries of a table */

struct table {
	const char *name;
	uint64_t from, to, entry;		/* bytes */
};

#define NR_TABLES 12u

static void tables_make(const struct xs_geometry *g, struct table *t)
{
	const struct table all[NR_TABLES] = {
		{ "super", offsetof(struct xs_super, made_at_s), sizeof(struct xs_super), 8 },
		{ "members", g->off_members, g->off_peers, sizeof(struct xs_member) },
		{ "peers", g->off_peers, g->off_ports, sizeof(struct xs_peer) },
		{ "ports", g->off_ports, g->off_bells, sizeof(struct xs_port) },
		{ "bells", g->off_bells, g->off_lanes, sizeof(struct xs_bell) },
		{ "lanes", g->off_lanes, g->off_rings, sizeof(struct xs_lane) },
		{ "rings", g->off_rings, g->off_requests, g->ring_bytes },
		{ "requests", g->off_requests, g->off_extents, sizeof(struct xs_req) },
		{ "touched", g->off_touched, g->off_stats, 8 },
		{ "stats", g->off_stats, g->off_stack, 64 },
		{ "stack", g->off_stack, g->off_kept_peers, 64 },
		{ "kept", g->off_kept_peers, g->off_pages, sizeof(struct xs_kept_peer) },
	};

	memcpy(t, all, sizeof(all));
}

static const struct table *table_find(const struct table *t, const char *name)
{
	for (uint32_t i = 0; i < NR_TABLES; i++)
		if (!strcmp(t[i].name, name))
			return &t[i];
	return NULL;
}

/* `at` is within the table, and so is the aligned word around it. */
static void write_at(uint8_t *base, uint64_t at, struct rng *rng)
{
	uint64_t value = rng_next(rng);
	uint32_t small = rng_below(rng, 64);

	switch (rng_below(rng, 4)) {
	case 0:
		base[at] ^= (uint8_t)(1u << value % 8);
		break;
	case 1:
		base[at] = (uint8_t)value;
		break;
	case 2:
		memcpy(base + (at & ~3ull), &small, sizeof(small));
		break;
	default:
		value = rng_below(rng, 3) ? value : UINT64_MAX;
		memcpy(base + (at & ~7ull), &value, sizeof(value));
	}
}

static uint64_t choose(const struct table *t, struct rng *rng)
{
	uint64_t bytes = t->to - t->from, used = t->entry * IN_USE;

	return t->from + rng_next(rng) % (rng_below(rng, 2) && used < bytes ? used : bytes);
}

static int run(struct xseg *seg, char **words)
{
	struct table tables[NR_TABLES];
	struct rng rng = { strtoull(words[1], NULL, 10) };
	const struct table *t;
	time_t end = time(NULL) + (time_t)strtoul(words[0], NULL, 10);
	uint32_t nr = 0;

	tables_make(&seg->geo, tables);
	while (words[2 + nr])
		if (!table_find(tables, words[2 + nr++]))
			return 2;
	while (nr && time(NULL) < end) {
		for (uint32_t i = 0; i < BATCH; i++) {
			t = table_find(tables, words[2 + rng_below(&rng, nr)]);
			write_at(seg->base, choose(t, &rng), &rng);
		}
		usleep(PAUSE_US);
	}
	return nr ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct xseg_error err = { "" };
	struct xseg *seg;
	int rc;

	if (argc < 5) {
		fprintf(stderr, "poke_tables SEGMENT SECONDS SEED TABLE...\n");
		return 2;
	}
	if (xseg_attach(argv[1], XSEG_ATTACH_OBSERVER, &seg, &err)) {
		fprintf(stderr, "poke_tables: %s\n", err.text);
		return 1;
	}
	rc = run(seg, argv + 2);
	xseg_detach(seg);
	return rc;
}
