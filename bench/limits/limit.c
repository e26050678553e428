/* limit - the bare limit: the fastest simple program that does what a cache hit must do, without a
 * cache.
 *
 * What it is for
 *   `make bench` states the stack's figures as ratios to this program's, taken in the same run on
 *   the same machine. A server process, pinned to one CPU, has a set of 4 KiB pages in shared
 *   memory and an index of 4 MiB objects; clients on other CPUs ask for blocks at random through
 *   the same lanes (xtypes/xq.h).
 *	echo     the lanes alone: the word comes back as it was
 *	lookup   the object is looked up by its hash, the page's number is answered, the client
 *		 reads the page where it is (the limit of loans)
 *	copy     the same lookup, and one memcpy() a page between the set and the client's buffer
 *   A client reads the first line of each page that it is answered, and writes that of each page
 *   that it sends.
 *
 * What it leaves out, and a real stack cannot: states of requests and buckets, errors, checks of
 *   what another process wrote, eviction, dirty data, death of a process, doorbells.
 *
 * Processes: the server is the parent, each client is a child made by fork(); they share one
 *   anonymous mapping, which vanishes with them. Nothing sleeps: who has nothing to do yields, at
 *   once where the CPU is shared.
 *
 * Invariants
 *   L1  the first word of each page of the set is the page's number, whoever wrote it last: so
 *	 every answer is checked, and a wrong one is counted as an error
 *   L2  a lane holds at least as many words as its client has slots, and a word is released before
 *	 its answer is pushed: so a push never fails
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "peers/common/cli.h"
#include "peers/common/cpus.h"
#include "xtypes/xhash.h"
#include "xtypes/xhist.h"
#include "xtypes/xq.h"

#define PAGE		4096u
#define LINE		64u
#define OBJECT_PAGES	1024u
#define HUGE_BYTES	(2u << 20)
#define MAX_JOBS	16u
#define BATCH		8u			/* requests that the server has in hand at once */
#define AHEAD_LINES	4u			/* of a page that are prefetched */
#define LOOKS_SHARED	64u			/* in vain, before a shared CPU is yielded */
#define LOOKS_ALONE	4096u			/* longer than any answer, on an idle machine */
#define CLOCK_EVERY	64u			/* rounds of a client between looks at the clock */
#define PAGE_BITS	40u			/* of a word; above is the slot */
#define PAGE_MASK	((UINT64_C(1) << PAGE_BITS) - 1)

enum mode { ECHO, LOOKUP, COPY };
enum rw { RANDREAD, RANDWRITE };
enum format { NORMAL, JSON };

struct options {
	uint32_t mode, rw, iodepth, numjobs, output_format;
	uint64_t bs, size, runtime_ns, ramp_ns, randseed;
	char cpus[256];
	bool help;
	int cpu[CPUS_MAX];
	int nr_cpus;
};

/* ---- options ----------------------------------------------------------------------------- */

static const char *const mode_names[] = {
	[ECHO] = "echo", [LOOKUP] = "lookup", [COPY] = "copy", NULL
};
static const char *const rw_names[] = { [RANDREAD] = "randread", [RANDWRITE] = "randwrite", NULL };
static const char *const format_names[] = { [NORMAL] = "normal", [JSON] = "json", NULL };

#define AT(f) offsetof(struct options, f)
static const struct opt limit_opts[] = {
	{ .name = "mode", .kind = OPT_ENUM, .off = AT(mode), .names = mode_names, .def = "copy",
	  .help = "what a request does" },
	{ .name = "rw", .kind = OPT_ENUM, .off = AT(rw), .names = rw_names, .def = "randread",
	  .help = "which way data goes" },
	{ .name = "bs", .kind = OPT_SIZE, .off = AT(bs), .min = PAGE, .max = 1u << 20, .def = "4k",
	  .arg = "SIZE", .help = "block size, a power of two" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = 4096,
	  .def = "16", .arg = "N", .help = "requests in flight, a client" },
	{ .name = "numjobs", .kind = OPT_UINT, .off = AT(numjobs), .min = 1, .max = MAX_JOBS,
	  .def = "1", .arg = "N", .help = "clients, each a process" },
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size), .min = 4u << 20, .max = 1ull << 40,
	  .def = "2G", .arg = "SIZE", .help = "bytes of the set, a multiple of 4M" },
	{ .name = "runtime", .kind = OPT_TIME, .off = AT(runtime_ns), .min = 1000000,
	  .max = 3600000000000ull, .def = "1s", .arg = "TIME", .help = "what is counted" },
	{ .name = "ramp_time", .kind = OPT_TIME, .off = AT(ramp_ns), .max = 60000000000ull,
	  .def = "200ms", .arg = "TIME", .help = "run that long before anything is counted" },
	{ .name = "randseed", .kind = OPT_U64, .off = AT(randseed), .def = "1", .arg = "N",
	  .help = "seed of all that is random" },
	{ .name = "cpus", .kind = OPT_STR, .off = AT(cpus),
	  .len = sizeof(((struct options *)0)->cpus), .arg = "LIST", .check = cpus_check,
	  .help = "the server's CPU, then the clients' in turn; else the first two there are" },
	{ .name = "output-format", .kind = OPT_ENUM, .off = AT(output_format),
	  .names = format_names, .def = "normal", .help = "of the results" },
	{ .name = "help", .kind = OPT_BOOL, .off = AT(help), .help = "print this" },
	{ .name = NULL }
};
#undef AT

/* Those of the list that this process may use; without a list, the first two. */
static int choose_cpus(struct options *o, struct xseg_error *err)
{
	cpu_set_t there;

	o->nr_cpus = cpus_parse(o->cpus, o->cpu, err);
	if (o->nr_cpus < 0)
		return o->nr_cpus;
	if (sched_getaffinity(0, sizeof(there), &there))
		return xseg_fail(err, -errno, "the allowed CPUs cannot be read: %s",
				 strerror(errno));
	for (int i = 0; i < o->nr_cpus; i++)
		if (!CPU_ISSET((size_t)o->cpu[i], &there))
			return xseg_fail(err, -EINVAL, "cpus: CPU %d is not there or not allowed",
					 o->cpu[i]);
	for (int cpu = 0; cpu < CPU_SETSIZE && !*o->cpus && o->nr_cpus < 2; cpu++)
		if (CPU_ISSET((size_t)cpu, &there))
			o->cpu[o->nr_cpus++] = cpu;
	return 0;
}

static int parse(struct options *o, int argc, char **argv, struct xseg_error *err)
{
	const struct cli_group groups[] = { { limit_opts, o }, { NULL, NULL } };
	int rc;

	memset(o, 0, sizeof(*o));
	opt_set_defaults(limit_opts, o);
	rc = cli_parse(groups, argc, argv, err);
	if (rc < 0 || o->help)
		return rc < 0 ? rc : 0;
	if (rc < argc)
		return xseg_fail(err, -EINVAL, "'%.60s' is not an option; see --help", argv[rc]);
	if (o->bs & (o->bs - 1))
		return xseg_fail(err, -EINVAL, "bs: %" PRIu64 " is not a power of two", o->bs);
	if (o->size % ((uint64_t)OBJECT_PAGES * PAGE))
		return xseg_fail(err, -EINVAL, "size: %" PRIu64 " is not a multiple of 4M",
				 o->size);
	if (o->mode == LOOKUP && (o->bs != PAGE || o->rw != RANDREAD))
		return xseg_fail(err, -EINVAL, "mode=lookup answers with one page's number; give it"
				 " bs=4k and rw=randread");
	return choose_cpus(o, err);
}

/* ---- what is shared ---------------------------------------------------------------------- */

/* A client's result: written by it alone, read by the server when it has ended. */
struct result {
	struct xhist lat;			/* in ticks */
	uint64_t ios, wrong, ns, ticks;		/* how long was counted, by both clocks */
};

/* What the index leads to. */
struct object {
	uint64_t number;
	uint32_t page[OBJECT_PAGES];
};

struct limit {
	const struct options *o;
	uint8_t *map;
	size_t map_bytes;
	bool huge;				/* it is of huge pages */
	uint32_t lane_slots;
	_Atomic uint32_t *ended;		/* clients that are done */
	struct result *result;
	struct xq *asks[MAX_JOBS], *answers[MAX_JOBS];
	uint8_t *buffers;			/* numjobs * iodepth * bs */
	uint8_t *set;				/* page n at n * PAGE */
	/* the server's own */
	struct xhash index;
	struct object *objects;
};

static uint8_t *page_at(const struct limit *l, uint64_t page)
{
	return l->set + page * PAGE;
}

static uint8_t *buffer_at(const struct limit *l, uint32_t job, uint64_t slot)
{
	return l->buffers + (job * (uint64_t)l->o->iodepth + slot) * l->o->bs;
}

static uint64_t *first_word(uint8_t *page)
{
	return (uint64_t *)(void *)page;
}

/* Takes `bytes` at *at, beginning at a multiple of `align`; only counts when base is NULL. */
static void *carve(uint8_t *base, size_t *at, size_t bytes, size_t align)
{
	*at = (*at + align - 1) / align * align;
	*at += bytes;
	return base ? base + *at - bytes : NULL;
}

/* Where everything is in the mapping; returns its size. */
static size_t lay_out(struct limit *l, uint8_t *base)
{
	const struct options *o = l->o;
	size_t at = 0, lane = xq_size_bytes(l->lane_slots);

	l->ended = carve(base, &at, sizeof(*l->ended), LINE);
	l->result = carve(base, &at, o->numjobs * sizeof(*l->result), PAGE);
	for (uint32_t i = 0; i < o->numjobs; i++) {
		l->asks[i] = carve(base, &at, lane, PAGE);
		l->answers[i] = carve(base, &at, lane, PAGE);
	}
	l->buffers = carve(base, &at, (uint64_t)o->numjobs * o->iodepth * o->bs, HUGE_BYTES);
	l->set = carve(base, &at, o->size, HUGE_BYTES);
	return (at + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25			/* since Linux 6.1 */
#endif

/* Huge pages where the system gives them, got as xseg_create() gets them: one small page in each
 * is there, and the kernel makes the rest. */
static bool want_huge(struct limit *l)
{
	for (size_t at = 0; at < l->map_bytes; at += HUGE_BYTES)
		l->map[at] = 0;
	madvise(l->map, l->map_bytes, MADV_HUGEPAGE);
	return madvise(l->map, l->map_bytes, MADV_COLLAPSE) == 0;
}

static int map_all(struct limit *l, struct xseg_error *err)
{
	uint8_t *room, *base;

	l->map_bytes = lay_out(l, NULL);
	room = mmap(NULL, l->map_bytes + HUGE_BYTES, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return xseg_fail(err, -errno, "no room for %zu bytes: %s; use a smaller --size",
				 l->map_bytes, strerror(errno));
	base = (uint8_t *)(((uintptr_t)room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	l->map = mmap(base, l->map_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (l->map == MAP_FAILED)
		return xseg_fail(err, -errno, "no %zu bytes of shared memory: %s; use a smaller"
				 " --size", l->map_bytes, strerror(errno));
	l->huge = want_huge(l);
	lay_out(l, l->map);
	return 0;
}

/* The numbers of objects scrambled, in place of the hash of a name.
 * (splitmix64: G. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) */
static uint64_t scramble(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return scramble(*state);
}

/* Pages are dealt to the objects in turn, as a sequential fill does. */
static int make_index(struct limit *l, struct xseg_error *err)
{
	uint32_t nr = (uint32_t)(l->o->size / PAGE / OBJECT_PAGES);
	void *mem = aligned_alloc(LINE, (xhash_mem_bytes(nr) + LINE - 1) / LINE * LINE);
	size_t bytes = (nr * sizeof(*l->objects) + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;

	l->objects = aligned_alloc(HUGE_BYTES, bytes);
	if (!mem || !l->objects)
		return xseg_fail(err, -ENOMEM, "no memory for the index; use a smaller --size");
	madvise(l->objects, bytes, MADV_HUGEPAGE);
	xhash_init(&l->index, mem, nr);
	for (uint32_t i = 0; i < nr; i++) {
		l->objects[i].number = i;
		for (uint32_t k = 0; k < OBJECT_PAGES; k++)
			l->objects[i].page[k] = i * OBJECT_PAGES + k;
		if (xhash_insert(&l->index, scramble(i), i))
			return xseg_fail(err, -ENOSPC, "the index is too small for %u objects", nr);
	}
	return 0;
}

static void fill(struct limit *l)
{
	uint64_t nr_pages = l->o->size / PAGE;

	for (uint64_t page = 0; page < nr_pages; page++)
		*first_word(page_at(l, page)) = page;	/* L1 */
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		xq_init(l->asks[i], 0);
		xq_init(l->answers[i], 0);
		xhist_init(&l->result[i].lat);
	}
	memset(l->buffers, 0x5a, (uint64_t)l->o->numjobs * l->o->iodepth * l->o->bs);
}

/* ---- both sides -------------------------------------------------------------------------- */

/* The CPU of process 0, the server, or of client `process` - 1. */
static int cpu_of(const struct options *o, uint32_t process)
{
	if (!process || o->nr_cpus == 1)
		return o->cpu[0];
	return o->cpu[1 + (process - 1) % (uint32_t)(o->nr_cpus - 1)];
}

/* Returns whether another process has the same CPU. */
static bool pin(const struct options *o, uint32_t process)
{
	cpu_set_t set;
	bool shared = false;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu_of(o, process), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "bench-limit: not pinned to CPU %d: %s\n", cpu_of(o, process),
			strerror(errno));
	for (uint32_t i = 0; i <= o->numjobs; i++)
		shared |= i != process && cpu_of(o, i) == cpu_of(o, process);
	return shared;
}

/* Yields after many looks in vain, for who else may need the CPU. *looks: since the last work. */
static void idle(bool shared, uint32_t *looks)
{
	if (++*looks < (shared ? LOOKS_SHARED : LOOKS_ALONE))
		return;
	*looks = 0;
	sched_yield();
}

static void prefetch_page(const uint8_t *page)
{
	for (uint32_t i = 0; i < AHEAD_LINES; i++)
		__builtin_prefetch(page + i * LINE);
}

/* ---- the server -------------------------------------------------------------------------- */

struct server {
	struct limit *l;
	struct xq_reader asks[MAX_JOBS];
	struct xq_writer answers[MAX_JOBS];
};

struct wanted {
	const struct object *objects;
	uint64_t number;
};

static bool is_wanted(void *arg, uint32_t i)
{
	const struct wanted *w = arg;

	return w->objects[i].number == w->number;
}

/* The slots of the index that hold the requests' pages. Each step fetches what the next needs. */
static void look_up(const struct limit *l, const uint64_t *word, uint32_t n, const uint32_t **slot)
{
	uint64_t hash[BATCH];
	uint32_t i;

	for (i = 0; i < n; i++) {
		hash[i] = scramble((word[i] & PAGE_MASK) / OBJECT_PAGES);
		xhash_prefetch(&l->index, hash[i]);
	}
	for (i = 0; i < n; i++) {
		uint64_t page = word[i] & PAGE_MASK;
		struct wanted wanted = { l->objects, page / OBJECT_PAGES };
		uint32_t at = xhash_find(&l->index, hash[i], is_wanted, &wanted);

		assert(at != XHASH_NONE);
		slot[i] = &l->objects[at].page[page % OBJECT_PAGES];
		__builtin_prefetch(slot[i]);
	}
}

static void serve_echo(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	(void)l, (void)job, (void)word, (void)n;
}

static void serve_lookup(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	const uint32_t *slot[BATCH];

	(void)job;
	look_up(l, word, n, slot);
	for (uint32_t i = 0; i < n; i++)
		word[i] = (word[i] & ~PAGE_MASK) | *slot[i];
}

static void serve_copy(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	const uint32_t *slot[BATCH], pages = (uint32_t)(l->o->bs / PAGE);

	look_up(l, word, n, slot);
	for (uint32_t i = 0; i < n; i++)
		prefetch_page(page_at(l, *slot[i]));
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *buffer = buffer_at(l, job, word[i] >> PAGE_BITS);

		for (uint32_t k = 0; k < pages; k++, buffer += PAGE) {
			uint8_t *page = page_at(l, slot[i][k]);

			if (l->o->rw == RANDREAD)
				memcpy(buffer, page, PAGE);
			else
				memcpy(page, buffer, PAGE);
		}
	}
}

/* Turns requests into answers, in place. */
static void (*const serve_fns[])(struct limit *l, uint32_t job, uint64_t *word, uint32_t n) = {
	[ECHO] = serve_echo,
	[LOOKUP] = serve_lookup,
	[COPY] = serve_copy,
};

static uint32_t serve_lane(struct server *s, uint32_t job)
{
	uint64_t word[BATCH];
	uint32_t n = xq_take(&s->asks[job], word, BATCH);

	if (!n)
		return 0;
	xq_release(&s->asks[job], n);
	serve_fns[s->l->o->mode](s->l, job, word, n);
	for (uint32_t i = 0; i < n; i++) {
		bool pushed = xq_push(&s->answers[job], word[i]);

		assert(pushed);				/* L2 */
	}
	xq_publish(&s->answers[job]);
	return n;
}

static void serve(struct limit *l)
{
	struct server s = { .l = l };
	bool shared = pin(l->o, 0);
	uint32_t nr = l->o->numjobs, looks = 0, done;

	for (uint32_t i = 0; i < nr; i++) {
		xq_reader_attach(&s.asks[i], l->asks[i], l->lane_slots);
		xq_writer_attach(&s.answers[i], l->answers[i], l->lane_slots);
	}
	/* acquire: partner is the release in run_client(), whose lanes are empty then */
	while (atomic_load_explicit(l->ended, memory_order_acquire) < nr) {
		done = 0;
		for (uint32_t i = 0; i < nr; i++)
			done += serve_lane(&s, i);
		if (done)
			looks = 0;
		else
			idle(shared, &looks);
	}
}

/* ---- a client ---------------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return clock_ns();
#endif
}

struct slot {
	uint64_t page, ticks;			/* the first page asked for, and when */
};

struct client {
	struct limit *l;
	struct result *result;
	struct xq_writer asks;
	struct xq_reader answers;
	uint32_t nr, inflight, round;
	uint64_t random, nr_blocks, pages;
	uint64_t from_ns, end_ns, from_ticks;
	bool counting, over;
	struct slot *slots;
};

static void ask(struct client *c, uint64_t slot, uint64_t now)
{
	unsigned __int128 random = next_random(&c->random);
	uint64_t block = (uint64_t)(random * c->nr_blocks >> 64);
	uint8_t *buffer = buffer_at(c->l, c->nr, slot);
	bool pushed;

	c->slots[slot] = (struct slot){ block * c->pages, now };
	if (c->l->o->rw == RANDWRITE)
		for (uint64_t k = 0; k < c->pages; k++)
			*first_word(buffer + k * PAGE) = block * c->pages + k;	/* L1 */
	pushed = xq_push(&c->asks, slot << PAGE_BITS | block * c->pages);
	assert(pushed);					/* L2 */
	c->inflight++;
}

/* Where the data of an answer is: in the set (a loan), or in the slot's own buffer. */
static uint8_t *data_of(const struct client *c, uint64_t word)
{
	if (c->l->o->mode == LOOKUP)
		return page_at(c->l, word & PAGE_MASK);
	return buffer_at(c->l, c->nr, word >> PAGE_BITS);
}

static void check(struct client *c, uint64_t word)
{
	uint64_t page = c->slots[word >> PAGE_BITS].page;
	uint8_t *data = data_of(c, word);

	if (c->l->o->mode == ECHO || c->l->o->rw == RANDWRITE) {
		c->result->wrong += (word & PAGE_MASK) != page;
		return;
	}
	for (uint64_t k = 0; k < c->pages; k++)
		c->result->wrong += *first_word(data + k * PAGE) != page + k;
}

static void look_at_clock(struct client *c)
{
	uint64_t now = clock_ns();

	if (!c->counting && now >= c->from_ns) {
		c->counting = true;
		c->from_ns = now;
		c->from_ticks = clock_ticks();
		c->end_ns = now + c->l->o->runtime_ns;
	} else if (c->counting && !c->over && now >= c->end_ns) {
		c->over = true;
		c->counting = false;
		c->result->ns = now - c->from_ns;
		c->result->ticks = clock_ticks() - c->from_ticks;
	}
}

static uint32_t client_round(struct client *c)
{
	uint64_t word[BATCH], since[BATCH], now;
	uint32_t n = xq_take(&c->answers, word, BATCH), i;

	if (!n)
		return 0;
	xq_release(&c->answers, n);
	now = clock_ticks();
	for (i = 0; i < n; i++)
		__builtin_prefetch(data_of(c, word[i]));
	for (i = 0; i < n; i++) {
		check(c, word[i]);
		since[i] = now - c->slots[word[i] >> PAGE_BITS].ticks;
		c->inflight--;
		if (!c->over)
			ask(c, word[i] >> PAGE_BITS, now);
	}
	xq_publish(&c->asks);
	for (i = 0; i < n && c->counting; i++)
		xhist_record(&c->result->lat, since[i]);
	c->result->ios += c->counting ? n : 0;
	return n;
}

static int run_client(struct limit *l, uint32_t nr)
{
	const struct options *o = l->o;
	struct client c = { .l = l, .nr = nr, .result = &l->result[nr], .pages = o->bs / PAGE,
			    .nr_blocks = o->size / o->bs };
	bool shared = pin(o, 1 + nr);
	uint32_t looks = 0;

	c.slots = calloc(o->iodepth, sizeof(*c.slots));
	if (!c.slots)
		return 1;
	c.random = o->randseed + nr * UINT64_C(0x632be59bd9b4e019);
	xq_writer_attach(&c.asks, l->asks[nr], l->lane_slots);
	xq_reader_attach(&c.answers, l->answers[nr], l->lane_slots);
#ifdef MADV_POPULATE_READ
	madvise(l->map, l->map_bytes, MADV_POPULATE_READ);	/* else it is mapped when touched */
#endif
	c.from_ns = clock_ns() + o->ramp_ns;
	for (uint32_t i = 0; i < o->iodepth; i++)
		ask(&c, i, clock_ticks());
	xq_publish(&c.asks);
	while (c.inflight) {
		if (++c.round % CLOCK_EVERY == 0)
			look_at_clock(&c);
		if (client_round(&c))
			looks = 0;
		else
			idle(shared, &looks);
	}
	free(c.slots);
	/* release: partner is the acquire in serve() */
	atomic_fetch_add_explicit(l->ended, 1, memory_order_release);
	return 0;
}

/* ---- results ----------------------------------------------------------------------------- */

static const double percentiles[] = { 50, 90, 95, 99, 99.9, 99.99 };
#define NR_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static uint64_t in_ns(const struct result *r, uint64_t ticks)
{
	return r->ticks ? (uint64_t)((unsigned __int128)ticks * r->ns / r->ticks) : 0;
}

static uint64_t iops_of(const struct result *r)
{
	return r->ns ? (uint64_t)((unsigned __int128)r->ios * 1000000000u / r->ns) : 0;
}

/* xbench's fields. */
static void print_figures(const char *name, uint64_t bs, const struct result *r)
{
	printf("      \"%s\": {\"total_ios\": %" PRIu64 ", \"io_bytes\": %" PRIu64
	       ", \"iops\": %" PRIu64 ", \"bw_bytes\": %" PRIu64 ", \"runtime_ns\": %" PRIu64 ",\n",
	       name, r->ios, r->ios * bs, iops_of(r), iops_of(r) * bs, r->ns);
	printf("        \"lat_ns\": {\"min\": %" PRIu64 ", \"max\": %" PRIu64 ", \"mean\": %" PRIu64
	       ", \"N\": %" PRIu64 ", \"percentile\": {", r->ios ? in_ns(r, r->lat.min) : 0,
	       in_ns(r, r->lat.max), in_ns(r, xhist_mean(&r->lat)), r->ios);
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf("%s\"%.6f\": %" PRIu64, i ? ", " : "", percentiles[i],
		       in_ns(r, xhist_percentile(&r->lat, percentiles[i])));
	printf("}}}");
}

static void print_job_json(const struct limit *l, uint32_t nr)
{
	static const struct result none;
	const struct result *r = &l->result[nr];

	printf("    {\"jobname\": \"limit.%u\", \"error\": %d, \"total_err\": %" PRIu64 ",\n", nr,
	       r->wrong ? EIO : 0, r->wrong);
	print_figures("read", l->o->bs, l->o->rw == RANDREAD ? r : &none);
	printf(",\n");
	print_figures("write", l->o->bs, l->o->rw == RANDWRITE ? r : &none);
	printf("}");
}

static void print_json(const struct limit *l)
{
	char text[256];

	printf("{\n  \"bench-limit version\": \"%s\",\n  \"options\": {", XSEG_VERSION);
	for (const struct opt *opt = limit_opts; opt->kind != OPT_BOOL; opt++) {
		opt_get(opt, l->o, text, sizeof(text));
		printf("%s\"%s\": \"%s\"", opt == limit_opts ? "" : ", ", opt->name, text);
	}
	printf("},\n  \"huge_pages\": %s,\n  \"jobs\": [\n", l->huge ? "true" : "false");
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		if (i)
			printf(",\n");
		print_job_json(l, i);
	}
	printf("\n  ]\n}\n");
}

static void print_normal(const struct limit *l)
{
	const struct options *o = l->o;
	char bs[24], bw[24];

	opt_format_size(o->bs, bs, sizeof(bs));
	for (uint32_t i = 0; i < o->numjobs; i++) {
		const struct result *r = &l->result[i];

		opt_human_size(iops_of(r) * o->bs, bw, sizeof(bw));
		printf("limit.%u: %s %s, bs=%s, iodepth=%u: IOPS=%" PRIu64 ", BW=%s/s, "
		       "lat avg=%" PRIu64 "ns 50%%=%" PRIu64 "ns 99%%=%" PRIu64 "ns, "
		       "wrong=%" PRIu64 "\n", i, mode_names[o->mode], rw_names[o->rw], bs,
		       o->iodepth, iops_of(r), bw, in_ns(r, xhist_mean(&r->lat)),
		       in_ns(r, xhist_percentile(&r->lat, 50)),
		       in_ns(r, xhist_percentile(&r->lat, 99)), r->wrong);
	}
}

/* ---- all together ------------------------------------------------------------------------ */

/* A child dies with its parent; the parent is told of a child's death by SIGCHLD. */
static void child_died(int sig)
{
	static const char text[] = "bench-limit: a client died\n";
	int status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status) {
			if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
				_exit(2);
			_exit(1);
		}
}

static int start_clients(struct limit *l, struct xseg_error *err)
{
	struct sigaction action = { .sa_handler = child_died, .sa_flags = SA_RESTART };
	pid_t parent = getpid();

	sigaction(SIGCHLD, &action, NULL);
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return xseg_fail(err, -errno, "no process for a client: %s",
					 strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(getppid() == parent ? run_client(l, i) : 1);
		}
	}
	return 0;
}

static int report(const struct limit *l, struct xseg_error *err)
{
	(l->o->output_format == JSON ? print_json : print_normal)(l);
	if (fflush(stdout) || ferror(stdout))
		return xseg_fail(err, -EIO, "standard output cannot be written: %s",
				 strerror(errno));
	for (uint32_t i = 0; i < l->o->numjobs; i++)
		if (l->result[i].wrong)
			return xseg_fail(err, -EIO, "%" PRIu64 " answers of client %u were wrong",
					 l->result[i].wrong, i);
	return 0;
}

static int run(struct limit *l, struct xseg_error *err)
{
	int rc;

	for (l->lane_slots = BATCH; l->lane_slots < l->o->iodepth;)
		l->lane_slots *= 2;
	rc = map_all(l, err);
	if (!rc)
		rc = make_index(l, err);
	if (rc)
		return rc;
	fill(l);
	rc = start_clients(l, err);
	if (rc)
		return rc;
	serve(l);
	return report(l, err);
}

static int help(void)
{
	printf("Usage: bench-limit [OPTION...]\n"
	       "The fastest simple program that does what a cache hit must do: lanes, a lookup, one"
	       " memcpy.\n");
	cli_print_options(stdout, limit_opts);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options o;
	static struct limit l = { .o = &o };
	struct xseg_error err = { "" };
	int code = 2, rc = parse(&o, argc, argv, &err);

	if (!rc && o.help)
		return help();
	if (!rc) {
		code = 1;
		rc = run(&l, &err);
	}
	if (rc)
		fprintf(stderr, "bench-limit: %s\n", err.text);
	return rc ? code : 0;
}
