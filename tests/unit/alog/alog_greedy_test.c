/* alog_greedy_test - how much the log copies, beside a greedy simulation of the same puts.
 *
 * The simulation has as many zones of as many records, and keeps as many of them free. It compacts
 * the zone with the fewest live records when it must. For uniform puts nothing copies less. The log
 * may copy 5 % more.
 *
 *      alog_greedy_test		prints a row for each workload
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "peers/alog/alog.h"
#include "tests/rig/xorshift.h"
#include "xtypes/xcrc.h"

#define ZONES	   256u
#define RESERVE	   4u
#define ZONE_BYTES (32 * ALOG_PAGE)
#define VALUE	   952u				/* a record of 1,024 bytes, with a key of 8 */
#define RECORD	   1024u
#define ROOM	   (ZONE_BYTES - ALOG_ZONE_HEAD_END - ALOG_FOOTER_BYTES)
#define ZONE_HAS   (ROOM / (RECORD + ALOG_HINT_BYTES))
#define ROUNDS	   6u				/* of as many puts as the log has records */

struct workload {
	const char *name;
	double live;				/* part of all zones but the reserve */
	double skew;				/* 0: uniform; else of zipf */
};

static uint64_t random_state;

static double random_unit(void)
{
	return (double)(xorshift_next(&random_state) >> 11) / 9007199254740992.0;
}

/* Which key is put next. For zipf the inverse of the sum, near enough, over scattered keys. */
static uint32_t next_key(const struct workload *w, uint32_t keys)
{
	double u = random_unit(), s = 1 - w->skew;
	uint64_t rank;

	if (w->skew == 0)
		return (uint32_t)(u * keys);
	rank = (uint64_t)pow(u * (pow(keys + 1.0, s) - 1) + 1, 1 / s) - 1;
	return (uint32_t)((rank * 2654435761u) % keys);
}

static uint32_t keys_of(const struct workload *w)
{
	return (uint32_t)(w->live * (ZONES - RESERVE) * ZONE_HAS);
}

/* ---- the simulation ---- */

struct sim {
	uint32_t live[ZONES], fill[ZONES], *owner;	/* owner: key + 1 of each place */
	uint32_t *at;				/* place + 1 of each key */
	uint32_t open, nr_free;
	uint64_t puts, copies;
};

static void sim_place(struct sim *s, uint32_t key)
{
	uint32_t place;

	if (s->fill[s->open] == ZONE_HAS) {
		for (s->open = 0; s->fill[s->open]; s->open++)
			assert(s->open < ZONES);
		s->nr_free--;
	}
	if (s->at[key])
		s->live[(s->at[key] - 1) / ZONE_HAS]--;
	place = s->open * ZONE_HAS + s->fill[s->open]++;
	s->owner[place] = key + 1;
	s->at[key] = place + 1;
	s->live[s->open]++;
}

static void sim_compact(struct sim *s)
{
	uint32_t least = ZONES;

	for (uint32_t z = 0; z < ZONES; z++)
		if (z != s->open && s->fill[z] == ZONE_HAS &&
			(least == ZONES || s->live[z] < s->live[least]))
			least = z;
	assert(least < ZONES);
	for (uint32_t i = 0; i < ZONE_HAS; i++) {
		uint32_t place = least * ZONE_HAS + i, key = s->owner[place] - 1;

		if (s->at[key] != place + 1)
			continue;
		sim_place(s, key);
		s->copies++;
	}
	s->fill[least] = 0;
	s->nr_free++;
}

static double simulate(const struct workload *w)
{
	struct sim s = { .nr_free = ZONES - 1 };
	uint32_t keys = keys_of(w), nr = ZONES * ZONE_HAS;
	double all;

	s.owner = calloc(nr, sizeof(uint32_t));
	s.at = calloc(keys, sizeof(uint32_t));
	assert_non_null(s.owner);
	assert_non_null(s.at);
	random_state = 4711;
	for (uint32_t i = 0; i < keys + 2 * ROUNDS * nr; i++) {
		if (i == keys + ROUNDS * nr)
			s.puts = s.copies = 0;
		while (s.nr_free <= RESERVE)
			sim_compact(&s);
		sim_place(&s, i < keys ? i : next_key(w, keys));
		s.puts++;
	}
	all = (double)(s.puts + s.copies) / (double)s.puts;
	free(s.owner);
	free(s.at);
	return all;
}

/* ---- the log, over a store that answers at once ---- */

#define OBJECTS 2048u				/* ids differ by less */

struct entry {
	uint64_t zone;
	uint32_t place, bytes;
};

static struct store {
	struct alog *log;
	uint8_t *arena, *scratch, *head[2], *zone[OBJECTS];
	uint64_t arena_bytes;
	struct entry *index;
	struct alog_io *queue[64];
	uint32_t nr;
} st;

static bool send_io(void *ctx, struct alog_io *io)
{
	(void)ctx;
	st.queue[st.nr++] = io;
	return true;
}

static uint32_t page_of(void *ctx, const void *at)
{
	const uint8_t *p = at;

	(void)ctx;
	if (p >= st.arena && p < st.arena + st.arena_bytes)
		return (uint32_t)((p - st.arena) / ALOG_PAGE);
	return 1u << 24 | (uint32_t)((p - st.scratch) / ALOG_PAGE);
}

static uint8_t **object_of(const char *target)
{
	const char *name = strchr(target, ':') + 1;

	return strncmp(name, "head.", 5) == 0 ? &st.head[name[5] - '0']
					      : &st.zone[strtoull(name, NULL, 16) % OBJECTS];
}

static int64_t serve(struct alog_io *io)
{
	uint8_t **object;

	if (io->op == XSEG_OP_FLUSH)
		return 0;
	object = object_of(io->target);
	if (io->op == XSEG_OP_DELETE) {
		free(*object);
		*object = NULL;
		return 0;
	}
	if (!*object && io->op == XSEG_OP_READ)
		return -ENOENT;
	if (!*object)
		*object = calloc(1, ZONE_BYTES);
	for (uint32_t i = 0; i < io->nr_pages; i++) {
		uint8_t *page = (io->page[i] >> 24 ? st.scratch : st.arena) +
			(size_t)(io->page[i] & 0xffffff) * ALOG_PAGE,
			*at = *object + io->offset + i * ALOG_PAGE;

		memcpy(io->op == XSEG_OP_READ ? page : at, io->op == XSEG_OP_READ ? at : page,
			ALOG_PAGE);
	}
	return io->size;
}

static void poll_log(void)
{
	static uint64_t now = 1;

	alog_poll(st.log, now += 1000000);
	while (st.nr) {
		struct alog_io *io = st.queue[--st.nr];

		alog_done(st.log, io, serve(io));
	}
}

static bool is_at(const struct entry *e, uint64_t zone, const struct alog_hint *hint)
{
	return e->bytes && e->zone == zone && e->place == hint->place;
}

static enum alog_verdict judge(
	void *ctx, uint64_t zone, const struct alog_hint *hint, bool keep)
{
	(void)ctx;
	(void)keep;
	return is_at(&st.index[hint->identity[0]], zone, hint) ? ALOG_LIVE : ALOG_DEAD;
}

static void copied(void *ctx, uint64_t from_zone, const struct alog_hint *from, uint64_t to_zone,
	const struct alog_hint *to)
{
	struct entry *e = &st.index[from->identity[0]];

	(void)ctx;
	if (is_at(e, from_zone, from))
		*e = (struct entry){ .zone = to_zone, .place = to->place, .bytes = to->bytes };
}

static void found(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	(void)ctx;
	(void)zone;
	(void)hint;
	abort();				/* the log is new */
}

static void gone(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	(void)ctx;
	(void)zone;
	(void)hint;
}

static bool lost(void *ctx, uint64_t zone, struct alog_hint *hint)
{
	(void)ctx;
	(void)zone;
	(void)hint;
	abort();
}

static void damage(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place, uint32_t bytes)
{
	(void)ctx;
	(void)what;
	(void)zone;
	(void)place;
	(void)bytes;
	abort();
}

static const struct alog_user user = { .send = send_io, .page = page_of, .found = found,
	.judge = judge, .copied = copied, .gone = gone, .lost = lost, .damage = damage };

static void begin_log(uint32_t keys)
{
	struct alog_config cfg = { .prefix = "log", .zones = ZONES, .zone_bytes = ZONE_BYTES,
		.tail_pages = 256, .reserve = RESERVE, .uuid = { 1 }, .owner = 1 };
	struct alog_cost cost;

	memset(&st, 0, sizeof(st));
	assert_int_equal(alog_cost(&cfg, &cost), 0);
	st.arena_bytes = cost.arena_bytes;
	st.arena = aligned_alloc(ALOG_PAGE, cost.arena_bytes);
	st.scratch = aligned_alloc(ALOG_PAGE, cost.scratch_bytes);
	st.index = calloc(keys, sizeof(struct entry));
	assert_non_null(st.arena);
	assert_non_null(st.index);
	memset(st.arena, 0, cost.arena_bytes);
	st.log = alog_create(&cfg, &user, st.arena, st.scratch);
	assert_non_null(st.log);
	while (!alog_serves(st.log))
		poll_log();
}

static void end_log(void)
{
	alog_destroy(st.log);
	for (uint32_t i = 0; i < OBJECTS; i++)
		free(st.zone[i]);
	free(st.head[0]);
	free(st.head[1]);
	free(st.arena);
	free(st.scratch);
	free(st.index);
}

static void put(uint32_t key)
{
	static uint8_t value[VALUE];
	uint64_t k = key;
	struct alog_put put = { .rec = { .identity = { key, 1 }, .key_bytes = 8,
		.value_bytes = VALUE, .type = ALOG_VALUE,
		.data_crc = xcrc32c(xcrc32c(0, &k, 8), value, VALUE) }, .key = &k, .value = value };
	struct alog_place at;
	uint32_t tries = 0;
	int rc;

	while ((rc = alog_append(st.log, &put, 1, &at)) != 0) {
		assert_int_equal(rc, -EAGAIN);
		assert_in_range(tries++, 0, 100000);
		poll_log();
	}
	if (st.index[key].bytes)
		alog_dead(st.log, st.index[key].zone, st.index[key].bytes);
	st.index[key] = (struct entry){ .zone = at.zone, .place = at.place, .bytes = at.bytes };
}

static double measure(const struct workload *w)
{
	uint32_t keys = keys_of(w), nr = ZONES * ZONE_HAS;
	struct alog_stats then = { 0 }, now;

	begin_log(keys);
	random_state = 4711;
	for (uint32_t i = 0; i < keys + 2 * ROUNDS * nr; i++) {
		if (i == keys + ROUNDS * nr)
			alog_stats(st.log, &then);
		put(i < keys ? i : next_key(w, keys));
		if (i % 4 == 0)
			poll_log();
	}
	alog_stats(st.log, &now);
	end_log();
	return (double)(now.appended_bytes - then.appended_bytes) / RECORD / ROUNDS / nr;
}

static void the_log_copies_hardly_more_than_a_greedy_one(void **state)
{
	static const struct workload all[] = {
		{ "uniform", 0.5, 0 }, { "uniform", 0.7, 0 }, { "uniform", 0.9, 0 },
		{ "zipf", 0.5, 0.99 }, { "zipf", 0.7, 0.99 }, { "zipf", 0.9, 0.99 },
	};
	double log, greedy;

	(void)state;
	printf("puts      live    log  greedy  ratio\n");
	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		log = measure(&all[i]);
		greedy = simulate(&all[i]);
		printf("%-8s %4.0f %% %6.2f  %6.2f  %5.3f\n", all[i].name, all[i].live * 100, log,
			greedy, log / greedy);
		assert_true(log <= greedy * 1.05);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_copies_hardly_more_than_a_greedy_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
