/* scribble - a thread that writes into the segment all the time, while a stack, an evil client and
 * an honest one work in it. A checked value may be another a moment later.
 *
 *      scribble [--seconds=N] [--seed=N]
 *
 * A third of the time each:
 *   payload   the pages of the evil client's writes, after they were sent: the honest client's
 *             volume has its own writes
 *   own       the evil client's requests, its lanes, everybody's hints: the same
 *   tables    any table of the segment, except for the parts that evil.h spares: no peer crashes or
 *             hangs
 *
 * Prints `ok - SENTENCE` for each, as tests/run.sh counts.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "peers/cached/life/cached.h"
#include "peers/common/options/cli.h"
#include "tests/fuzz/honest.h"
#include "tests/rig/xorshift.h"

#define HANG_SECONDS 120u		/* a round that does not end */
#define ROUND_STEPS  400u
#define INPUT_BYTES  4096u

struct options {
	uint32_t seconds;
	uint64_t seed;
};

static const struct opt opts[] = {
	{ .name = "seconds", .kind = OPT_UINT, .off = offsetof(struct options, seconds), .min = 1,
	  .def = "3" },
	{ .name = "seed", .kind = OPT_U64, .off = offsetof(struct options, seed), .def = "1" },
	{ .name = NULL },
};

/* ---- chance ---- */

static uint64_t next_random(uint64_t *state)
{
	return xorshift_next(state) * 0x2545f4914f6cdd1dull;
}

static void fill_random(uint64_t *state, uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(next_random(state) >> 32);
}

/* ---- the thread ---- */

static struct {
	pthread_t thread;
	_Atomic bool stop;
	void (*act)(struct evil *e);
	bool anywhere;
	uint64_t seed;
} scribbler;

static void scribble_payload(struct evil *e)
{
	uint8_t *page = xseg_page(rig.seg, rig.page[RIG_EVIL][in_below(&e->in, RIG_PAGES)]);

	memset(page + in_u16(&e->in) % XSEG_PAGE_SIZE, in_u8(&e->in), 1);
	for (unsigned i = 0; i < XSEG_PAGE_SIZE; i += 64)
		page[i] = (uint8_t)(page[i] + 1);
}

static void scribble_own(struct evil *e)
{
	static void (*const acts[])(struct evil *) = { evil_scribble_request, evil_forge_place,
		evil_hints, evil_ring, scribble_payload };

	acts[in_below(&e->in, sizeof(acts) / sizeof(acts[0]))](e);
}

static void scribble_tables(struct evil *e)
{
	if (in_u8(&e->in) & 1)
		evil_tables(e);
	else
		scribble_own(e);
}

static void *scribble_run(void *arg)
{
	uint64_t state = scribbler.seed;
	uint8_t bytes[64];

	while (!atomic_load_explicit(&scribbler.stop, memory_order_relaxed)) {
		struct evil e = { .in = { bytes, sizeof(bytes) }, .anywhere = scribbler.anywhere };

		fill_random(&state, bytes, sizeof(bytes));
		scribbler.act(&e);
	}
	return arg;
}

/* ---- the others ---- */

/* One stack, from its beginning to its end. */
static void round_run(uint64_t seed, bool volumed)
{
	bool anywhere = scribbler.anywhere;
	uint8_t bytes[INPUT_BYTES];
	struct evil e = { .in = { bytes, sizeof(bytes) }, .anywhere = anywhere };
	uint64_t state = seed;

	alarm(HANG_SECONDS);
	fill_random(&state, bytes, sizeof(bytes));
	honest_stack(volumed, seed & 1 ? "dirty_age=1s" : "policy=write-through", &e);
	scribbler.seed = seed;
	atomic_store(&scribbler.stop, false);
	if (pthread_create(&scribbler.thread, NULL, scribble_run, NULL))
		abort();
	for (unsigned i = 0; i < ROUND_STEPS && e.in.left; i++) {
		evil_send(&e);
		honest_act(&e.in, !anywhere);
		rig_settle(6);
		evil_take(&e);
		rig.now_ns += 10 * RIG_MS;
	}
	atomic_store(&scribbler.stop, true);
	pthread_join(scribbler.thread, NULL);
	rig_client_close(RIG_EVIL, XSEG_CLOSE_ABANDON);
	xseg_sweep(rig.seg);
	rig_settle(2000);
	if (!anywhere) {
		honest_verify();
		cached_check(rig.node[RIG_CACHED].p);
	}
	rig_end();
	alarm(0);
}

static uint64_t seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

static void rounds_run(
	const struct options *o, void (*act)(struct evil *e), bool anywhere, const char *sentence)
{
	uint64_t end = seconds_now() + (o->seconds + 2) / 3, state = o->seed;
	unsigned nr = 0;

	scribbler.act = act;
	scribbler.anywhere = anywhere;
	do {
		round_run(next_random(&state), nr++ % 2);
	} while (seconds_now() < end);
	printf("ok - %s (%u rounds)\n", sentence, nr);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options o;
	struct cli_group groups[] = { { opts, &o }, { NULL, NULL } };
	struct xseg_error err = { "" };

	opt_set_defaults(opts, &o);
	if (cli_parse(groups, argc, argv, &err) != argc || o.seed == 0) {
		fprintf(stderr, "scribble: %s\n", err.text);
		return 2;
	}
	rounds_run(&o, scribble_payload, false,
		"payload that changes after it was sent harms its own volume only");
	rounds_run(&o, scribble_own, false,
		"requests that change after they were checked harm nobody else");
	rounds_run(&o, scribble_tables, true,
		"tables that change all the time crash nobody, and nobody hangs");
	return 0;
}
