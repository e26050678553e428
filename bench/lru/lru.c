/* lru - the hits of an exact LRU of 4 KiB blocks: the yardstick of bench/ratio.sh.
 *
 * Usage: bench-lru --cache=SIZE [--warmup=PERCENT] TRACE...
 *
 * A trace is fio's iolog, version 2, as xbench --write_iolog writes it; only its reads and writes
 * matter. All traces are of one space of offsets. They are taken to have run beside each other from
 * the same beginning to the same end, each at a constant rate, and are merged so. Traces of runs
 * that came one after the other are one trace when they are concatenated.
 *
 * Every block of a request is looked up, and becomes the most recently used one. A read is a hit if
 * all its blocks were there, as cached counts it. Writes are not counted. The first PERCENT of the
 * accesses fill the cache and are not counted either. The result is JSON on standard output: counts
 * of all traces together, and of each in `traces`.
 *
 * It shares nothing with the cache that it is compared with: a table of chains and one list.
 *
 * Invariants
 *   L1  an entry below `nr` is in exactly one chain and in the list, whose head was used last
 *   L2  nr <= room; an entry is taken from the tail only when nr == room
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"

#define BLOCK	   UINT64_C(4096)
#define NONE	   UINT32_MAX
#define MAX_TRACES 16

struct options {
	uint64_t cache;
	uint32_t warmup;
	bool help;
};

struct access {
	uint64_t offset;
	uint32_t size;
	bool is_read;
};

struct counts {
	uint64_t reads, hits, blocks, block_hits;
};

struct trace {
	struct access *at;
	size_t nr, room, done;
};

struct entry {
	uint64_t block;
	uint32_t chain;				/* the next one in its chain */
	uint32_t newer, older;			/* its neighbours in the list */
};

struct lru {
	struct entry *entries;
	uint32_t *chains;
	uint32_t nr, room, nr_chains;		/* nr_chains: a power of two */
	uint32_t newest, oldest;
};

#define AT(f) offsetof(struct options, f)
static const struct opt lru_opts[] = {
	{ .name = "cache", .kind = OPT_SIZE, .off = AT(cache), .min = BLOCK,
	  .max = UINT64_C(1) << 40, .def = "64M", .arg = "SIZE",
	  .help = "of the cache, in blocks of 4k" },
	{ .name = "warmup", .kind = OPT_PERCENT, .off = AT(warmup), .max = 99, .def = "0",
	  .arg = "PERCENT", .help = "of the accesses, which are not counted" },
	{ .name = "help", .kind = OPT_BOOL, .off = AT(help), .help = "print this" },
	{ .name = NULL }
};
#undef AT

/* ---- the cache --------------------------------------------------------------------------- */

static int lru_init(struct lru *l, uint64_t bytes)
{
	l->room = (uint32_t)(bytes / BLOCK);
	for (l->nr_chains = 1; l->nr_chains < l->room; l->nr_chains *= 2)
		;
	l->entries = calloc(l->room, sizeof(*l->entries));
	l->chains = malloc(l->nr_chains * sizeof(*l->chains));
	if (!l->entries || !l->chains)
		return -ENOMEM;
	memset(l->chains, 0xff, l->nr_chains * sizeof(*l->chains));
	l->newest = l->oldest = NONE;
	return 0;
}

static void lru_fini(struct lru *l)
{
	free(l->entries);
	free(l->chains);
}

/* Knuth's multiplicative hash (TAOCP 3, 6.4). */
static uint32_t *chain_of(struct lru *l, uint64_t block)
{
	return &l->chains[block * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (l->nr_chains - 1)];
}

static uint32_t find(struct lru *l, uint64_t block)
{
	uint32_t i = *chain_of(l, block);

	while (i != NONE && l->entries[i].block != block)
		i = l->entries[i].chain;
	return i;
}

static void chain_remove(struct lru *l, uint32_t i)
{
	uint32_t *link = chain_of(l, l->entries[i].block);

	while (*link != i)
		link = &l->entries[*link].chain;
	*link = l->entries[i].chain;
}

static void chain_add(struct lru *l, uint32_t i)
{
	uint32_t *head = chain_of(l, l->entries[i].block);

	l->entries[i].chain = *head;
	*head = i;
}

static void list_remove(struct lru *l, uint32_t i)
{
	struct entry *e = &l->entries[i];

	*(e->newer == NONE ? &l->newest : &l->entries[e->newer].older) = e->older;
	*(e->older == NONE ? &l->oldest : &l->entries[e->older].newer) = e->newer;
}

static void list_add(struct lru *l, uint32_t i)
{
	l->entries[i].newer = NONE;
	l->entries[i].older = l->newest;
	*(l->newest == NONE ? &l->oldest : &l->entries[l->newest].newer) = i;
	l->newest = i;
}

/* An entry that is in no chain and not in the list. */
static uint32_t take_entry(struct lru *l)
{
	uint32_t i = l->oldest;

	if (l->nr < l->room)
		return l->nr++;
	chain_remove(l, i);
	list_remove(l, i);
	return i;
}

/* Uses a block; whether it was there. */
static bool use(struct lru *l, uint64_t block)
{
	uint32_t i = find(l, block);
	bool hit = i != NONE;

	if (hit) {
		list_remove(l, i);
	} else {
		i = take_entry(l);
		l->entries[i].block = block;
		chain_add(l, i);
	}
	list_add(l, i);
	return hit;
}

/* ---- traces ------------------------------------------------------------------------------ */

static int trace_add(struct trace *t, const struct access *a)
{
	if (t->nr == t->room) {
		size_t room = t->room ? t->room * 2 : 1 << 16;
		struct access *more = realloc(t->at, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->at = more;
		t->room = room;
	}
	t->at[t->nr++] = *a;
	return 0;
}

/* A line "FILE read OFFSET SIZE". Returns 1 if it is an access, 0 if it is another line of an
 * iolog, or -EINVAL. */
static int parse_line(const char *line, struct access *a)
{
	char word[16];
	uint64_t size;
	int n = sscanf(line, "%*s %15s %" SCNu64 " %" SCNu64, word, &a->offset, &size);

	if (n == 1)
		return !strcmp(word, "read") || !strcmp(word, "write") ? -EINVAL : 0;
	if (n != 3)
		return strcmp(line, "fio version 2 iolog\n") ? -EINVAL : 0;
	if (size > UINT32_MAX || a->offset > INT64_MAX)
		return -EINVAL;
	a->size = (uint32_t)size;
	a->is_read = !strcmp(word, "read");
	return a->size && (a->is_read || !strcmp(word, "write"));
}

static int trace_read(struct trace *t, FILE *in, const char *path, struct xseg_error *err)
{
	struct access a;
	char line[512];
	int rc;

	for (unsigned long nr = 1; fgets(line, sizeof(line), in); nr++) {
		rc = nr == 1 && strcmp(line, "fio version 2 iolog\n") ? -EINVAL
								      : parse_line(line, &a);
		if (rc < 0)
			return xseg_fail(err, rc, "%s, line %lu, is not of fio's iolog version 2; "
					 "make it with xbench --write_iolog", path, nr);
		if (rc && trace_add(t, &a))
			return xseg_fail(err, -ENOMEM, "no memory for the trace %s", path);
	}
	if (ferror(in))
		return xseg_fail(err, -EIO, "cannot read %s: %s", path, strerror(errno));
	if (t->nr == 0)
		return xseg_fail(err, -EINVAL, "%s has no read and no write in it", path);
	return 0;
}

static int trace_load(struct trace *t, const char *path, struct xseg_error *err)
{
	FILE *in = fopen(path, "re");
	int rc;

	if (!in)
		return xseg_fail(err, -errno, "cannot open %s: %s", path, strerror(errno));
	rc = trace_read(t, in, path, err);
	fclose(in);
	return rc;
}

/* The trace whose next access is the earliest: of which the smallest part is done. NULL: all are
 * done. */
static struct trace *next_trace(struct trace *traces, int nr)
{
	struct trace *next = NULL;

	for (struct trace *t = traces; t < traces + nr; t++)
		if (t->done < t->nr && (!next || t->done * next->nr < next->done * t->nr))
			next = t;
	return next;
}

/* ---- all together ------------------------------------------------------------------------ */

static void replay_one(struct lru *l, const struct access *a, struct counts *c)
{
	uint64_t block = a->offset / BLOCK, last = (a->offset + a->size - 1) / BLOCK;
	uint64_t blocks = last - block + 1, there = 0;

	for (; block <= last; block++)
		there += use(l, block);
	if (!a->is_read)
		return;
	c->reads++;
	c->hits += there == blocks;
	c->blocks += blocks;
	c->block_hits += there;
}

/* What is counted of each trace goes to counts. Returns how many accesses there were. */
static uint64_t replay(
	struct lru *l, struct trace *traces, struct counts *counts, int nr, uint32_t warmup)
{
	uint64_t total = 0, done = 0;
	struct counts unused = { 0 };
	struct trace *t;

	for (int i = 0; i < nr; i++)
		total += traces[i].nr;
	for (; (t = next_trace(traces, nr)); done++)
		replay_one(l, &t->at[t->done++],
			done < total * warmup / 100 ? &unused : &counts[t - traces]);
	return total;
}

static void print_counts(const struct counts *c)
{
	printf("\"reads\": %" PRIu64 ", \"hits\": %" PRIu64 ", \"blocks\": %" PRIu64
	       ", \"block_hits\": %" PRIu64,
		c->reads, c->hits, c->blocks, c->block_hits);
}

static void print(const struct options *o, uint64_t accesses, const struct counts *counts, int nr)
{
	struct counts sum = { 0 };

	for (int i = 0; i < nr; i++) {
		sum.reads += counts[i].reads;
		sum.hits += counts[i].hits;
		sum.blocks += counts[i].blocks;
		sum.block_hits += counts[i].block_hits;
	}
	printf("{ \"cache_bytes\": %" PRIu64 ", \"accesses\": %" PRIu64 ", ", o->cache, accesses);
	print_counts(&sum);
	printf(", \"traces\": [");
	for (int i = 0; i < nr; i++) {
		printf("%s{ ", i ? ", " : " ");
		print_counts(&counts[i]);
		printf(" }");
	}
	printf(" ] }\n");
}

static int run(const struct options *o, char **paths, int nr, struct xseg_error *err)
{
	struct trace traces[MAX_TRACES] = { 0 };
	struct counts counts[MAX_TRACES] = { 0 };
	struct lru l = { 0 };
	int rc = lru_init(&l, o->cache);

	if (rc)
		xseg_fail(err, rc, "no memory for %" PRIu64 " blocks; use a smaller --cache",
			o->cache / BLOCK);
	for (int i = 0; !rc && i < nr; i++)
		rc = trace_load(&traces[i], paths[i], err);
	if (!rc)
		print(o, replay(&l, traces, counts, nr, o->warmup), counts, nr);
	for (int i = 0; i < nr; i++)
		free(traces[i].at);
	lru_fini(&l);
	return rc;
}

static int help(void)
{
	printf("Usage: bench-lru --cache=SIZE [--warmup=PERCENT] TRACE...\n"
	       "Prints the hits of an exact LRU of 4 KiB blocks in fio's iologs, version 2.\n");
	cli_print_options(stdout, lru_opts);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cli_group groups[] = { { lru_opts, &o }, { NULL, NULL } };
	struct xseg_error err = { "" };
	int first, code = 2;

	opt_set_defaults(lru_opts, &o);
	first = cli_parse(groups, argc, argv, &err);
	if (first > 0 && o.help)
		return help();
	if (first > 0 && (first == argc || argc - first > MAX_TRACES))
		first = xseg_fail(&err, -EINVAL, "give 1 to %d traces; see --help", MAX_TRACES);
	if (first > 0) {
		code = 1;
		first = run(&o, argv + first, argc - first, &err);
	}
	if (first)
		fprintf(stderr, "bench-lru: %s\n", err.text);
	return first ? code : 0;
}
