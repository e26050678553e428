/* cached_faults_test - a store below cached that fails. Each request that a script sends to the
 * store fails in its turn, in each way: once, and from then on until the store is healed.
 *
 * Rules, for each request of the store and each way to fail:
 *   - every request is answered; one failure is at most one request's
 *   - a read returns acknowledged data, whatever became of its flush; after an error the old
 *     or the new, sector by sector
 *   - a FLUSH or FUA that is answered with success has all that it covers on stable storage, and
 *     write-through has it in the store
 *   - healed, all gets there, also by a successor; pages and requests all come back, and
 *     cached_check() held all the time (the rig)
 */
#include "tests/rig/cached_rig.h"
#include "tests/rig/long.h"

#define NR_OBJECTS 5u
#define SECTORS	   128u			/* of each, that are looked at */
#define SECTOR(n)  (XSEG_SECTOR * (n))
#define PAGES	   26u
#define HOUR	   (3600 * CRIG_S)
#define OPTIONS	   "objects=3 dirty_age=200ms"

static const char *const names[NR_OBJECTS] = { "a", "b", "c", "d", "e" };

/* Which requests may have written it last; the n-th that writes writes with the seed n, and 0 is
 * zeroes. */
static uint64_t may[NR_OBJECTS][SECTORS];
/* Which of them it may lose again: no request that wrote them there was answered well. */
static uint64_t unsure[NR_OBJECTS][SECTORS];
static unsigned nr_seeds, nr_errors;
static int error;			/* of this run; 0: half of what is asked */

/* ---- the client -------------------------------------------------------------------------- */

struct step {
	enum xseg_op op;
	uint32_t object, from, sectors;
	unsigned flags;
	uint32_t source;		/* COPY */
	const char *set;		/* instead of all that: a setting */
	bool with_next;			/* the next one is sent before this one is answered */
};

static struct crig_io *giver; /* of all writes that give: what it was lent it writes in next time */
static bool through;			/* the policy is write-through */

static bool is_one_of(uint64_t seeds,
	bool (*has)(const char *name, uint64_t offset, uint32_t size, unsigned seed),
	const char *name, uint32_t sector)
{
	for (unsigned seed = 0; seed < 64; seed++)
		if (seeds >> seed & 1 && has(name, SECTOR(sector), XSEG_SECTOR, seed))
			return true;
	return false;
}

/* What is there is what may be there: in the store, or for good. An object that the store has not
 * is zeroes. */
static void expect_in_store(const struct step *s,
	bool (*has)(const char *name, uint64_t offset, uint32_t size, unsigned seed))
{
	for (uint32_t i = s->from; i < s->from + s->sectors; i++)
		if (!(may[s->object][i] & 1) &&
			!is_one_of(may[s->object][i], has, names[s->object], i))
			fail_msg("sector %u of %s is not in the store", i, names[s->object]);
}

static void flush_ended(int64_t result)
{
	for (uint32_t i = 0; result == 0 && i < NR_OBJECTS; i++)
		expect_in_store(&(struct step){ .object = i, .sectors = SECTORS }, crig_stable);
}

/* Also where the data was lent. */
static bool sector_is(const struct crig_io *io, uint32_t i, unsigned seed)
{
	uint64_t at = io->r->offset % CRIG_PAGE + SECTOR(i);
	const uint8_t *page = xseg_req_page(crig.seg, io->r, (uint32_t)(at / CRIG_PAGE));

	return crig_bytes_are(page + at % CRIG_PAGE, io->r->offset + SECTOR(i), XSEG_SECTOR, seed);
}

static void read_ended(const struct step *s, const struct crig_io *io)
{
	for (uint32_t i = 0; i < s->sectors; i++) {
		uint64_t *seeds = &may[s->object][s->from + i];
		unsigned seed = 0;

		while (seed < 64 && !((*seeds >> seed & 1) && sector_is(io, i, seed)))
			seed++;
		if (seed == 64)
			fail_msg(
				"sector %u of %s is something else", s->from + i, names[s->object]);
		if (!(unsure[s->object][s->from + i] >> seed & 1))
			*seeds = UINT64_C(1) << seed;
	}
}

static void change_ended(const struct step *s, unsigned seed, bool well)
{
	for (uint32_t i = s->from; i < s->from + s->sectors; i++) {
		uint64_t new = s->op == XSEG_OP_COPY ? may[s->source][i] : UINT64_C(1) << seed;

		may[s->object][i] = well ? new : may[s->object][i] | new;
		unsure[s->object][i] = well ? 0 : unsure[s->object][i] | new;
	}
	if (well && s->flags & XSEG_REQ_FUA)
		expect_in_store(s, crig_stable);
	else if (well && through && s->op == XSEG_OP_WRITE)
		expect_in_store(s, crig_stored);
}

static void step_ended(const struct step *s, struct crig_io *io, unsigned seed)
{
	int64_t result = io->result;
	/* what was forwarded is answered by the store */
	bool cut = result > 0 && result == SECTOR(s->sectors / 2);
	bool well = result == SECTOR(s->sectors) ||
		    (!s->sectors && (result >= 0 || result == -ENOENT));

	if (!well && result != (error ? error : -EIO) && (error || !cut))
		fail_msg("%s of %s ended with %lld", xseg_op_name(s->op), names[s->object],
			(long long)result);
	nr_errors += !well;
	if (s->op == XSEG_OP_FLUSH)
		flush_ended(result);
	else if (s->op == XSEG_OP_READ && well)
		read_ended(s, io);
	else if (s->op == XSEG_OP_DELETE)
		change_ended(&(struct step){ .object = s->object, .sectors = SECTORS }, 0, well);
	else if (s->op != XSEG_OP_READ && s->op != XSEG_OP_INFO)
		change_ended(s, seed, well);
	if (io != giver)
		crig_expect(io, result);
}

/* A store that is sick is healed when it keeps somebody waiting. */
static void await(const struct crig_io *io)
{
	if (!io->done)
		crig_pass(2 * CRIG_S);
	if (io->done)
		return;
	crig_fault(0, 0, false);
	crig_pass(20 * CRIG_S);
	if (!io->done)
		fail_msg("somebody waits for ever");
}

static struct crig_io *send(const struct step *s, unsigned seed)
{
	if (s->op == XSEG_OP_COPY)
		return crig_send_copy(
			names[s->object], names[s->source], SECTOR(s->from), SECTOR(s->sectors));
	if (s->flags & XSEG_REQ_GIVE)
		return giver = crig_send_give(giver, names[s->object], SECTOR(s->from),
			       SECTOR(s->sectors), 0, seed);
	return crig_send(s->op, s->op == XSEG_OP_FLUSH ? "vol:" : names[s->object], SECTOR(s->from),
		SECTOR(s->sectors), s->flags, seed);
}

static void run(const struct step *script, uint32_t nr)
{
	struct crig_io *io[8];
	unsigned seed[8];
	uint32_t first = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (script[i].set) {
			through = !strcmp(script[i].set, "policy=write-through");
			crig_set(script[i].set);
			first = i + 1;
			continue;
		}
		assert_true(i - first < 8 && nr_seeds < 63);
		seed[i - first] = script[i].op == XSEG_OP_WRITE ? ++nr_seeds : 0;
		io[i - first] = send(&script[i], seed[i - first]);
		if (script[i].with_next)
			continue;
		crig_settle();
		for (uint32_t k = first; k <= i; k++) {
			await(io[k - first]);
			step_ended(&script[k], io[k - first], seed[k - first]);
		}
		first = i + 1;
	}
}

/* ---- the script -------------------------------------------------------------------------- */

/* clang-format off */
#define READ(o, f, n)	{ .op = XSEG_OP_READ, .object = (o), .from = (f), .sectors = (n) }
#define WRITE(o, f, n)	{ .op = XSEG_OP_WRITE, .object = (o), .from = (f), .sectors = (n) }
#define BESIDE(o, f, n) \
	{ .op = XSEG_OP_WRITE, .object = (o), .from = (f), .sectors = (n), .with_next = true }
#define GIVE(o, f, n) \
	{ .op = XSEG_OP_WRITE, .object = (o), .from = (f), .sectors = (n), .flags = XSEG_REQ_GIVE }
#define LOAN(o, f, n) \
	{ .op = XSEG_OP_READ, .object = (o), .from = (f), .sectors = (n), .flags = XSEG_REQ_LOAN }
#define FUA(o, f, n) \
	{ .op = XSEG_OP_WRITE, .object = (o), .from = (f), .sectors = (n), .flags = XSEG_REQ_FUA }
#define ZERO(o, f, n)	{ .op = XSEG_OP_WRITE_ZEROES, .object = (o), .from = (f), .sectors = (n) }
#define TRIM(o, f, n)	{ .op = XSEG_OP_DISCARD, .object = (o), .from = (f), .sectors = (n) }
#define COPY(o, s, f, n) \
	{ .op = XSEG_OP_COPY, .object = (o), .source = (s), .from = (f), .sectors = (n) }
#define DROP(o)		{ .op = XSEG_OP_DELETE, .object = (o) }
#define ASK(o)		{ .op = XSEG_OP_INFO, .object = (o) }
#define FLUSH		{ .op = XSEG_OP_FLUSH }
#define SET(text)	{ .set = (text) }
/* clang-format on */

static const struct step script[] = {
	/* loads, edges, a flush */
	READ(0, 0, 32), WRITE(0, 9, 2), WRITE(1, 1, 15), READ(1, 8, 40), WRITE(2, 0, 24),
	WRITE(2, 3, 1), FLUSH,
	/* gifts and loans */
	GIVE(0, 64, 16), GIVE(0, 64, 16), GIVE(1, 3, 9), LOAN(0, 50, 30), LOAN(2, 0, 48),
	GIVE(2, 8, 40),
	/* copies by the cache and by the store, zeroes, trims */
	WRITE(0, 64, 32), COPY(3, 2, 0, 16), COPY(4, 1, 64, 16), ZERO(0, 16, 24), ZERO(1, 40, 3),
	TRIM(1, 0, 16), READ(1, 0, 64),
	FUA(3, 32, 8), FUA(4, 1, 2), FLUSH,
	/* all policies */
	WRITE(0, 0, 16), SET("policy=write-through"), WRITE(0, 8, 16), WRITE(1, 45, 9),
	BESIDE(2, 40, 8), WRITE(2, 48, 8), FUA(3, 0, 8), GIVE(2, 64, 16), LOAN(2, 60, 20),
	WRITE(4, 0, 8), SET("policy=write-around"), WRITE(2, 32, 16), WRITE(0, 4, 9),
	GIVE(1, 100, 8), READ(2, 24, 32), COPY(3, 2, 32, 8), ZERO(2, 40, 8),
	SET("policy=pass-through"), READ(3, 0, 48), WRITE(4, 8, 8), SET("policy=write-back"),
	/* more than there are pages and objects */
	WRITE(2, 0, 96), READ(4, 0, 96), READ(0, 0, 128), WRITE(1, 0, 128), WRITE(3, 65, 62),
	READ(2, 0, 128), WRITE(4, 100, 9), GIVE(4, 0, 24),
	LOAN(3, 0, 128),
	/* at the same time; deleted, and asked for */
	BESIDE(0, 8, 8), BESIDE(1, 9, 20), BESIDE(2, 0, 1), WRITE(3, 0, 128), DROP(3), FLUSH,
	ASK(0), READ(3, 0, 16), WRITE(3, 0, 9),
	FLUSH,
};

static char what[100];			/* the run that goes on, for who reads of its failure */

static void begin(void)
{
	crig_up(OPTIONS);
	crig_limit(PAGES);
	nr_seeds = nr_errors = 0;
	giver = NULL;
	through = false;
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		if (i < 3)
			crig_store_fill(names[i], 0, SECTOR(SECTORS), ++nr_seeds);
		for (uint32_t k = 0; k < SECTORS; k++) {
			may[i][k] = UINT64_C(1) << (i < 3 ? i + 1 : 0);
			unsure[i][k] = 0;
		}
	}
}

/* Healed: it is as good as new. */
static void expect_all_well(void)
{
	static const struct step flush = FLUSH;

	crig_fault(0, 0, false);
	crig_pass(10 * CRIG_S);
	nr_errors = 0;
	crig_expect(giver, giver->result);
	giver = NULL;
	run(&flush, 1);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		run(&(struct step)READ(i, 0, SECTORS), 1);
	run(&flush, 1);
	assert_int_equal(nr_errors, 0);
}

/* Returns how many requests the store got. */
static uint32_t one_run(uint32_t at, int with, bool ever)
{
	uint32_t calls;

	snprintf(what, sizeof(what), "%s at request %u of the store%s",
		with ? strerror(-with) : "half of it", at, ever ? " and from then on" : "");
	begin();
	calls = crig_nr_calls();
	error = with;
	crig_fault(at, with, ever);
	run(script, sizeof(script) / sizeof(script[0]));
	calls = crig_nr_calls() - calls;
	if (!ever && nr_errors > (at > 0))
		fail_msg("%u requests failed", nr_errors);
	if (at % 4 < 2) {
		crig_kill();
		assert_int_equal(crig_open(OPTIONS), 0);
	}
	expect_all_well();
	crig_down(NULL);
	what[0] = '\0';
	return calls;
}

/* In a short test one request in three: so all else that depends on its number has its turn. */
static uint32_t stride(void)
{
	return is_long() ? 1 : 3;
}

/* In a short test not both, once and for ever, of each. */
static void each_request_fails(int with)
{
	bool all = is_long();
	uint32_t nr = one_run(0, with, false);

	assert_in_range(nr, 50, 500);
	for (uint32_t at = 1; at <= nr; at += stride()) {
		if (all || at % 2 == 0)
			one_run(at, with, false);
		if (all || at % 2 == (with == -EIO))
			one_run(at, with, true);
	}
}

static void each_request_of_the_store_fails(void **state)
{
	(void)state;
	each_request_fails(-EIO);
}

static void the_store_is_full_from_each_request_on(void **state)
{
	(void)state;
	each_request_fails(-ENOSPC);
}

static void each_request_of_the_store_is_done_by_half(void **state)
{
	(void)state;
	each_request_fails(0);
}

/* Returns how long it took, without the jump. */
static uint64_t run_with_jump(uint32_t at, uint32_t *calls)
{
	uint64_t began;

	snprintf(what, sizeof(what), "an hour at request %u of the store", at);
	begin();
	*calls = crig_nr_calls();
	began = crig.now_ns;
	crig_jump(at, HOUR);
	run(script, sizeof(script) / sizeof(script[0]));
	*calls = crig_nr_calls() - *calls;
	assert_int_equal(nr_errors, 0);
	began += at ? HOUR : 0;
	assert_true(crig.now_ns >= began);
	began = crig.now_ns - began;
	expect_all_well();
	crig_down(NULL);
	what[0] = '\0';
	return began;
}

/* As after a pause of the machine: ages, pauses and rates are wrong by that; nobody fails for it,
 * nor waits for long. */
static void an_hour_passes_at_each_request_of_the_store(void **state)
{
	uint32_t nr, calls;
	uint64_t took = run_with_jump(0, &nr);

	(void)state;
	for (uint32_t at = 1; at <= nr; at += stride())
		assert_true(run_with_jump(at, &calls) <= took + CRIG_S);
}

static int teardown(void **state)
{
	if (what[0])
		print_message("the run that failed: %s\n", what);
	return crig_down(state);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_request_of_the_store_fails),
		T(the_store_is_full_from_each_request_on),
		T(each_request_of_the_store_is_done_by_half),
		T(an_hour_passes_at_each_request_of_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
