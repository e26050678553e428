/* filed_faults_test - filed on a kernel that fails. Each system call that a script causes is in its
 * turn refused, interrupted, put off, late or done in part: once, and from then on until the store
 * is healed (filed_kernel.h). And syncs that fail by chance, beside others.
 *
 * Rules, for each call and each way to fail:
 *   - every request is answered, with its data or an error; faults that any store may show
 *     (EINTR, EAGAIN, half of it, late) are no error for any request, and one error is one
 *     request's, except for the errors that a FLUSH, or a write with FUA, has to tell
 *   - a read returns possible data: after an error the old or the new, byte by byte
 *   - a FLUSH that is answered with success has left nothing behind that is not durable, and a
 *     write with FUA nothing of its own
 *   - healed, and written over where something was lost, it is as good as new: also for a
 *     successor; and nothing is left over
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/filed/filed.h"
#include "tests/rig/blocker_rig.h"
#include "tests/rig/filed_kernel.h"
#include "tests/rig/files.h"
#include "tests/rig/long.h"
#include "tests/rig/tree.h"
#include "tests/rig/xorshift.h"

#define NR_OBJECTS  FK_FILES
#define OBJECT_SIZE (FK_PIECES * FK_PIECE)
#define PATIENCE_NS 3000000u		/* no answer for so long: the store is healed */

static struct rig g;
static char root[200], dir_option[sizeof(root) + 4];	/* the directory; as an option */
static enum fk_fault fault;		/* of this run */
static bool for_ever;

/* ---- what a read may give ---------------------------------------------------------------- */

/* The n-th request that writes writes the byte n, and which of four sectors it is; 0 is zeroes. */
static uint64_t values[NR_OBJECTS][OBJECT_SIZE];
static unsigned nr_values;

static uint8_t byte_of(unsigned value, uint64_t offset)
{
	return (uint8_t)(value ? value | (offset / XSEG_SECTOR % 4) << 6 : 0);
}

static bool may_be(uint32_t object, uint64_t offset, uint8_t byte)
{
	unsigned value = byte & 63;

	return values[object][offset] >> value & 1 && byte == byte_of(value, offset);
}

/* ---- scripts ----------------------------------------------------------------------------- */

struct step {
	enum xseg_op op;
	uint32_t object, offset, size;
	unsigned flags;
	uint32_t from;			/* COPY */
	bool with_next;			/* the next one is sent before this one is answered */
};

static char names[NR_OBJECTS][8];	/* each of a volume of its own */
static uint32_t nr_objects;		/* that the script uses */
static uint32_t nr_errors;		/* requests that failed, but for FLUSH and FUA */

static bool harmless(void)
{
	return for_ever ? fk_faults[fault].harmless_for_ever : fk_faults[fault].harmless;
}

/* Like rig_wait(), but a store that is sick for ever is healed when it keeps somebody waiting. */
static int64_t await(struct rig_io *io)
{
	uint64_t end;

	rig_step(&g);
	for (end = g.now_ns + PATIENCE_NS; for_ever && !io->done && g.now_ns < end;) {
		rig_rest(&g);
		rig_step(&g);
		if (!fk_nr_fired())
			end = g.now_ns + PATIENCE_NS;
	}
	if (!io->done && for_ever)
		fk_heal();
	return rig_wait(&g, io);
}

static void check_durable(const char *who, uint32_t object, uint64_t from, uint64_t to)
{
	const char *name = names[object], *why;
	char path[FILED_PATH_MAX];

	assert_int_equal(filed_dir_path(name, xseg_hash(name, strlen(name)), path), 0);
	why = fk_not_durable(path, from, to);
	if (why)
		fail_msg("%s said well, and of %s %s", who, name, why);
}

static void flush_answered(int64_t result)
{
	for (uint32_t i = 0; result == 0 && i < nr_objects; i++)
		check_durable("FLUSH", i, 0, OBJECT_SIZE);
}

static void change_answered(const struct step *s, unsigned value, bool ok)
{
	uint64_t new;

	for (uint64_t at = s->offset; at < s->offset + s->size; at++) {
		new = s->op == XSEG_OP_COPY ? values[s->from][at] : UINT64_C(1) << value;
		values[s->object][at] = ok ? new : values[s->object][at] | new;
	}
}

static void read_answered(const struct step *s, struct rig_io *io)
{
	static uint8_t data[OBJECT_SIZE];

	rig_data(&g, io, data, s->size);
	for (uint32_t i = 0; i < s->size; i++)
		if (!may_be(s->object, s->offset + i, data[i]))
			fail_msg("byte %u of %s is %02x", s->offset + i, names[s->object], data[i]);
}

/* An object that is not there is no error of the store's: it may have been one before. */
static bool is_fault(const struct step *s, int64_t result)
{
	return result < 0 &&
	       !(result == -ENOENT &&
		       (s->op == XSEG_OP_DELETE || s->op == XSEG_OP_INFO || s->op == XSEG_OP_COPY));
}

static void answered(const struct step *s, struct rig_io *io, unsigned value, int64_t result)
{
	bool moves = s->op != XSEG_OP_INFO && s->op != XSEG_OP_DELETE && s->op != XSEG_OP_FLUSH;

	if (is_fault(s, result)) {
		if (harmless() || !fk_nr_fired())
			fail_msg("%s of %s at %u is answered with %d", xseg_op_name(s->op),
				names[s->object], s->offset, (int)result);
		nr_errors += s->op != XSEG_OP_FLUSH && !(s->flags & XSEG_REQ_FUA);
	} else if (result >= 0 && moves) {
		assert_int_equal(result, s->size);
	}
	if (s->flags & XSEG_REQ_FUA && result >= 0)
		check_durable("FUA", s->object, s->offset, s->offset + s->size);
	if (s->op == XSEG_OP_FLUSH)
		flush_answered(result);
	else if (s->op == XSEG_OP_DELETE)
		change_answered(&(struct step){ .object = s->object, .size = OBJECT_SIZE }, 0,
			result >= 0 || result == -ENOENT);
	else if (s->op == XSEG_OP_READ && result >= 0)
		read_answered(s, io);
	else if (s->op != XSEG_OP_READ && s->op != XSEG_OP_INFO)
		change_answered(s, value, result >= 0);
}

static struct rig_io *send(const struct step *s, unsigned value)
{
	static uint8_t data[OBJECT_SIZE];

	for (uint32_t i = 0; s->op == XSEG_OP_WRITE && i < s->size; i++)
		data[i] = byte_of(value, s->offset + i);
	if (s->op == XSEG_OP_COPY)
		return rig_send_copy(&g, names[s->from], names[s->object], s->offset, s->size);
	return rig_send(&g, s->op, s->op == XSEG_OP_FLUSH ? "" : names[s->object], s->offset,
		s->size, s->op == XSEG_OP_WRITE ? data : NULL, s->flags);
}

static void run(const struct step *script, uint32_t nr)
{
	struct rig_io *io[8];
	unsigned value[8];
	uint32_t i, k, first = 0;

	for (i = 0; i < nr; i++) {
		assert_true(i - first < 8);
		value[i - first] = script[i].op == XSEG_OP_WRITE ? ++nr_values : 0;
		assert_true(nr_values < 64);
		io[i - first] = send(&script[i], value[i - first]);
		if (script[i].with_next)
			continue;
		for (k = first; k <= i; k++)
			answered(&script[k], io[k - first], value[k - first], await(io[k - first]));
		first = i + 1;
	}
}

/* ---- one run: a script, a fault, and what there is afterwards ---------------------------- */

static void read_all(void)
{
	for (uint32_t i = 0; i < nr_objects; i++)
		run(&(struct step){ .op = XSEG_OP_READ, .object = i, .size = OBJECT_SIZE }, 1);
}

/* What was lost has to be written again, and needs a slot for that, which another that was lost may
 * have. */
static void write_all(bool may_fail)
{
	static uint8_t data[OBJECT_SIZE];
	int64_t result;

	for (uint32_t at = 0; at < OBJECT_SIZE; at++)
		data[at] = byte_of(63, at);
	for (uint32_t i = 0; i < nr_objects; i++) {
		result = rig_write(&g, names[i], 0, data, OBJECT_SIZE, 0);
		assert_true(result == OBJECT_SIZE || (may_fail && result == -EIO));
		change_answered(
			&(struct step){ .op = XSEG_OP_WRITE, .object = i, .size = OBJECT_SIZE }, 63,
			result == OBJECT_SIZE);
	}
	result = rig_op(&g, XSEG_OP_FLUSH, "", 0, 0);
	assert_true(result == 0 || (may_fail && result == -EIO));
	flush_answered(result);
}

static void nothing_left_over(void)
{
	struct filed *f = (struct filed *)g.peer;
	struct filed_aio *a = &f->port[0].aio;

	rig_status_has(&g, "unsynced_files=0\nlost_files=0\n");
	assert_int_equal(ops_pending(&f->ops), 0);
	assert_int_equal(a->nr_batch + a->nr_kernel, 0);
	assert_true(filed_aio_has_room(a) && !a->failed);
	assert_true(!f->starving.first && !f->flush.first);
}

static uint32_t nr_calls[FK_NR_CALLS];	/* of the last run's script */
static char what[100];			/* the run that goes on, for who reads of its failure */

/* A directory that no filed of this segment had. */
static void new_root(void)
{
	static uint32_t nr;

	/* a disk takes ten times as long */
	snprintf(root, sizeof(root), "/dev/shm/filed-faults-%d-%u", (int)getpid(), nr++);
	snprintf(dir_option, sizeof(dir_option), "dir=%s", root);
}

struct fault_at {
	enum fk_fault fault;
	enum fk_call call;
	uint32_t at;			/* of the calls of that kind; 0: none fails */
	bool for_ever;
};

/* The first `quiet` steps go well. */
static void one_run(const struct step *script, uint32_t nr, uint32_t quiet, struct fault_at with,
	bool restart)
{
	uint32_t fds = nr_open_files();

	snprintf(what, sizeof(what), "%s at %s %u%s", fk_faults[with.fault].name,
		fk_call_names[with.call], with.at, with.for_ever ? " and from then on" : "");
	new_root();
	fk_begin(root);
	for (uint32_t i = 0; i < nr_objects; i++)
		for (uint32_t k = 0; k < OBJECT_SIZE; k++)
			values[i][k] = 1;
	nr_values = nr_errors = 0;
	assert_int_equal(rig_start(&g), 0);
	fault = with.fault;
	for_ever = with.for_ever;
	run(script, quiet);
	fk_arm(with.fault, with.call, with.at, with.for_ever);
	run(script + quiet, nr - quiet);
	fk_heal();
	for (uint32_t i = 0; i < FK_NR_CALLS; i++)
		nr_calls[i] = fk_nr_calls((enum fk_call)i);
	/* Of later ones there may be fewer than in another run: several are one at times. */
	if (with.at == 1)
		assert_true(fk_nr_fired());
	if (!with.for_ever)
		assert_true(nr_errors <= 1);
	if (restart)
		rig_restart(&g);
	read_all();
	write_all(true);
	write_all(false);
	read_all();
	nothing_left_over();
	rig_stop(&g);
	assert_int_equal(nr_open_files(), fds);
	remove_tree(root);
}

/* How many of a kind's calls are taken in a short test for each way to fail. */
#define NR_SAMPLES 2u

/* All calls fail in each way that they can, once and for ever. In a short test, of a kind's calls
 * each way gets NR_SAMPLES, half of all apart; the next way goes on from there, so that all calls
 * have their turn if there are enough ways. With and without a successor. First without a fault,
 * which says how many calls there are, and of what. */
static void each_fault_at_each_call(const struct step *script, uint32_t nr, uint32_t quiet)
{
	uint32_t total[FK_NR_CALLS], calls = 0, ways = 0, runs = 0, step, n;
	bool all = is_long();
	struct fault_at with = { .at = 0 };

	nr_objects = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (script[i].object >= nr_objects)
			nr_objects = script[i].object + 1;
	one_run(script, nr, quiet, with, true);
	memcpy(total, nr_calls, sizeof(total));
	for (uint32_t call = 0; call < FK_NR_CALLS; call++) {
		calls += total[call];
		n = all || total[call] < NR_SAMPLES ? total[call] : NR_SAMPLES;
		step = n ? total[call] / n : 0;
		for (uint32_t i = 0; i < 2 * FK_NR_FAULTS && n; i++) {
			with.call = (enum fk_call)call;
			with.fault = (enum fk_fault)(i / 2);
			with.for_ever = i % 2;
			if (!fk_can(with.call, with.fault))
				continue;
			for (uint32_t k = 0; k < n; k++, runs++) {
				with.at = (ways + k * step) % total[call] + 1;
				one_run(script, nr, quiet, with, (ways / 2 + k) % 2);
			}
			ways++;
		}
	}
	assert_true(calls > nr - quiet && runs > (all ? 2 * calls : ways));
	print_message("%u calls, %u ways to fail, %u runs\n", calls, ways, runs);
}

/* clang-format off */
#define STEP(kind, o, ...)	      { .op = XSEG_OP_##kind, .object = (o), __VA_ARGS__ }
#define RANGE(kind, o, at, len, ...)  STEP(kind, o, .offset = (at), .size = (len), __VA_ARGS__)
#define WRITE(o, at, len, ...)	      RANGE(WRITE, o, at, len, __VA_ARGS__)
#define FUA(o, at, len, ...)	      RANGE(WRITE, o, at, len, .flags = XSEG_REQ_FUA, __VA_ARGS__)
#define READ(o, at, len, ...)	      RANGE(READ, o, at, len, __VA_ARGS__)
#define ZERO(o, at, len, ...)	      RANGE(WRITE_ZEROES, o, at, len, __VA_ARGS__)
#define TRIM(o, at, len, ...)	      RANGE(DISCARD, o, at, len, __VA_ARGS__)
#define COPY(o, f, len, ...)	      STEP(COPY, o, .size = (len), .from = (f), __VA_ARGS__)
#define ASK(o)			      STEP(INFO, o)
#define DROP(o, ...)		      STEP(DELETE, o, __VA_ARGS__)
#define FLUSH			      { .op = XSEG_OP_FLUSH }
#define AND			      .with_next = true

static void every_op_over_a_failing_kernel(void **state)
{
	static const struct step script[] = {
		WRITE(0, 0, 8192), WRITE(0, 4096, 8192), WRITE(1, 1000, 5000), FLUSH,
		WRITE(0, 700, 300), READ(0, 0, 16384), READ(1, 0, 8192), READ(1, 100, 7000),
		READ(2, 0, 4096),
		COPY(2, 0, 8192), FUA(2, 4096, 4096), ZERO(0, 2048, 4096), ZERO(0, 12288, 6000),
		TRIM(1, 0, 4096), FLUSH,
		ASK(0), FUA(0, 8192, 4096, AND), FUA(0, 12288, 4096), FUA(1, 3000, 9), DROP(1),
		FLUSH,
		WRITE(0, 0, 4096, AND), WRITE(0, 4096, 4096, AND), WRITE(2, 0, 8192, AND),
		WRITE(1, 0, 4096), READ(1, 0, 8192), FLUSH,
	};

	(void)state;
	each_fault_at_each_call(script, sizeof(script) / sizeof(script[0]), 0);
}

/* Up to eight at a time; what overlaps is done in the order in which it came. */
static void what_is_out_at_the_same_time_over_a_failing_kernel(void **state)
{
	static const struct step script[] = {
		WRITE(0, 0, 16384),
		WRITE(0, 0, 8192, AND), READ(0, 4096, 8192, AND), WRITE(0, 4096, 4096, AND),
		READ(1, 0, 4096, AND), WRITE(1, 1000, 5000, AND), READ(0, 0, 16384, AND),
		WRITE(1, 3000, 4096, AND), READ(1, 0, 8192),
		WRITE(0, 8192, 4096, AND), FUA(0, 0, 4096), FLUSH,
		ZERO(0, 2048, 8192, AND), READ(0, 0, 12288, AND), WRITE(0, 4096, 4096, AND),
		COPY(2, 0, 8192, AND), WRITE(0, 0, 4096, AND), READ(2, 0, 8192, AND), DROP(1, AND),
		WRITE(1, 0, 4096),
		WRITE(2, 4096, 4096, AND), FUA(2, 0, 4096, AND), TRIM(2, 4096, 4096, AND),
		DROP(0, AND), READ(0, 0, 8192, AND), WRITE(0, 8192, 4096, AND), READ(2, 0, 8192),
		FLUSH, READ(0, 0, 16384), READ(1, 0, 8192),
	};

	(void)state;
	each_fault_at_each_call(script, sizeof(script) / sizeof(script[0]), 0);
}

/* 16 files at a time: the first ones are synced and closed for the last ones. */
static void files_that_are_closed_for_others_over_a_failing_kernel(void **state)
{
	struct step script[NR_OBJECTS + 3];
	uint32_t i;

	(void)state;
	for (i = 0; i < NR_OBJECTS; i++)
		script[i] = (struct step)WRITE(i, 512 * i, 4096);
	script[i++] = (struct step)READ(0, 0, 4096);
	script[i++] = (struct step)FUA(1, 0, 4096);
	script[i++] = (struct step)FLUSH;
	each_fault_at_each_call(script, i, 12);
}

/* ---- syncs that fail beside others ------------------------------------------------------- */

#define NR_BESIDE     8u
#define NR_BESIDE_ALL 6000u

/* A write of one piece, or a FLUSH, that is out beside others. */
struct beside {
	struct rig_io *io;			/* NULL: none */
	bool flush, fua;
	uint32_t object, piece;
	uint32_t covers[NR_OBJECTS][FK_PIECES];	/* FLUSH: `known` as it was when it was sent */
};

static struct beside beside[NR_BESIDE];
/* Which write a piece is of that was answered well; 0: the last one failed, or is out. */
static uint32_t known[NR_OBJECTS][FK_PIECES];
static bool is_out[NR_OBJECTS][FK_PIECES];
static uint32_t nr_beside, nr_good[3];		/* good: FLUSH, FUA, plain writes */

static uint32_t chance(uint32_t below)
{
	static uint64_t state = XORSHIFT_SEED;

	return (uint32_t)(xorshift_next(&state) % below);
}

/* Of all, or of one object's volume. */
static void flush_send(struct beside *b)
{
	bool all = chance(2);
	uint32_t one = chance(nr_objects);

	for (uint32_t o = 0; o < nr_objects; o++)
		for (uint32_t p = 0; p < FK_PIECES; p++)
			b->covers[o][p] = all || o == one ? known[o][p] : 0;
	b->io = rig_send_flush(&g, all ? 0 : one + 1, all ? "" : names[one]);
}

static void write_send(struct beside *b)
{
	static const uint8_t data[FK_PIECE];

	do {
		b->object = chance(nr_objects);
		b->piece = chance(FK_PIECES);
	} while (is_out[b->object][b->piece]);
	is_out[b->object][b->piece] = true;
	known[b->object][b->piece] = 0;
	b->fua = chance(3) == 0;
	b->io = rig_send(&g, XSEG_OP_WRITE, names[b->object], b->piece * FK_PIECE, FK_PIECE, data,
		b->fua ? XSEG_REQ_FUA : 0);
}

static void beside_send(struct beside *b)
{
	nr_beside++;
	b->flush = chance(8) == 0;
	if (b->flush)
		flush_send(b);
	else
		write_send(b);
}

static void check_piece(const char *who, uint32_t object, uint32_t piece)
{
	check_durable(who, object, piece * FK_PIECE, (piece + 1) * FK_PIECE);
}

static void beside_answered(struct beside *b)
{
	bool ok = b->io->result >= 0;

	b->io = NULL;
	nr_good[b->flush ? 0 : b->fua ? 1 : 2] += ok;
	for (uint32_t o = 0; o < nr_objects && b->flush && ok; o++)
		for (uint32_t p = 0; p < FK_PIECES; p++)
			if (b->covers[o][p] && b->covers[o][p] == known[o][p])
				check_piece("FLUSH", o, p);
	if (b->flush)
		return;
	if (b->fua && ok)
		check_piece("FUA", b->object, b->piece);
	known[b->object][b->piece] = ok ? nr_beside : 0;
	is_out[b->object][b->piece] = false;
}

/* Eight at a time, of few files, so that each stands beside syncs of others that fail. */
static void a_sync_that_fails_is_told_to_all_whom_it_concerns(void **state)
{
	struct beside *b;
	bool out = true;

	(void)state;
	nr_objects = 3;
	snprintf(what, sizeof(what), "one sync in twenty fails");
	new_root();
	fk_begin(root);
	assert_int_equal(rig_start(&g), 0);
	write_all(false);
	fk_fail_syncs(20, 1);
	while (out) {
		out = false;
		for (b = beside; b < beside + NR_BESIDE; b++) {
			if (b->io && b->io->done)
				beside_answered(b);
			if (!b->io && nr_beside < NR_BESIDE_ALL)
				beside_send(b);
			out |= b->io != NULL;
		}
		rig_rest(&g);
		rig_step(&g);
	}
	fk_fail_syncs(0, 0);
	print_message("answered well: %u FLUSH, %u FUA, %u others\n", nr_good[0], nr_good[1],
		nr_good[2]);
	assert_true(nr_good[0] && nr_good[1] && nr_good[2]);
	write_all(false);
	nothing_left_over();
	rig_stop(&g);
	remove_tree(root);
}

/* ---- the store --------------------------------------------------------------------------- */

static int setup(void **state)
{
	static const char *const options[] = { dir_option, "iodepth=2", "files=16", NULL };

	(void)state;
	new_root();
	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		snprintf(names[i], sizeof(names[i]), "o%u:", i);
	rig_open(&g, &filed_class, options, true);
	rig_stop(&g);
	remove_tree(root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fk_heal();
	if (g.peer)
		print_message("the run that failed: %s\n", what);
	rig_close(&g);
	remove_tree(root);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_op_over_a_failing_kernel),
		T(what_is_out_at_the_same_time_over_a_failing_kernel),
		T(files_that_are_closed_for_others_over_a_failing_kernel),
		T(a_sync_that_fails_is_told_to_all_whom_it_concerns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
