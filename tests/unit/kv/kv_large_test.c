/* kv_large_test - large values by the library, on a model of kvd: whole, and by streams; kvd that
 * forgets a stream, and pieces that are damaged (xseg/kv.h). Pieces of the model are 256 KiB. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/rig/kv_model_large.h"
#include "tests/rig/kv_rig.h"

#define MIB (1u << 20)
#define BIG (5 * MIB + 12345)

static uint8_t out[6 * MIB], in[6 * MIB];

static void fill(uint8_t *to, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)((i * 2654435761u >> 11) + i + seed);
}

static void set_fault(struct kvrig *g, enum kv_fault fault)
{
	atomic_store(&g->model->fault, fault);
}

static struct xseg_kv_io io_of(enum xseg_kv_op op, const char *key, void *value, uint64_t bytes)
{
	return (struct xseg_kv_io){ .op = op,
		.item = { .key = key, .key_bytes = (uint32_t)strlen(key), .value = value,
			.value_bytes = bytes } };
}

static void expect(struct kvrig *g, const char *key, uint64_t bytes)
{
	memset(in, 0xee, bytes + 1);
	assert_int_equal(kvrig_get(g, key, in, sizeof(in)), bytes);
	assert_memory_equal(in, out, bytes);
	assert_int_equal(in[bytes], 0xee);
}

/* Nothing is held by kvd but this many values. */
static void expect_held(uint32_t values)
{
	assert_int_equal(kvmodel_large_handles(), 0);
	assert_int_equal(kvmodel_large_values(), values);
}

/* ---- whole values ------------------------------------------------------------------------ */

static void large_values_are_got_as_they_were_put(void **state)
{
	static const uint32_t sizes[] = { 254 * 4096 + 1, 255 * 4096, MIB - 1, MIB, MIB + 1,
		MIB + 4096, 5 * MIB, BIG };
	struct kvrig *g = *state;

	for (uint32_t rooms = 1; rooms <= 6; rooms += 5) {
		kvrig_reopen_with(g, 0, rooms);
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			fill(out, sizes[i], i);
			assert_int_equal(kvrig_put(g, "a", out, sizes[i]), 0);
			expect(g, "a", sizes[i]);
		}
	}
	expect_held(1);
	assert_int_equal(xseg_kv_delete(g->q, "a", 1), 0);
	expect_held(0);
}

static void small_and_large_values_take_turns(void **state)
{
	struct kvrig *g = *state;

	fill(out, 2 * MIB, 1);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(kvrig_put(g, "a", out, i % 2 ? 100 : 2 * MIB), 0);
		expect(g, "a", i % 2 ? 100 : 2 * MIB);
	}
	expect_held(0);
}

static void a_get_of_a_large_value_into_too_little_memory_says_how_much_there_is(void **state)
{
	struct kvrig *g = *state;

	fill(out, BIG, 1);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	memset(in, 0xee, sizeof(in));
	assert_int_equal(kvrig_get(g, "a", in, 300000), BIG);
	assert_memory_equal(in, out, 300000);
	assert_int_equal(in[300000], 0xee);
	assert_int_equal(g->model->pieces, 2);
	assert_int_equal(kvrig_get(g, "a", NULL, 0), BIG);
	assert_int_equal(g->model->pieces, 2);
	expect_held(1);
}

static void conditions_of_large_puts_hold(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, "a", out, 2 * MIB),
			  get = io_of(XSEG_KV_GET, "a", in, 2 * MIB);
	uint64_t version;

	fill(out, 2 * MIB, 1);
	io.item.condition = XSEG_KV_IF_PRESENT;
	assert_int_equal(xseg_kv_run(g->q, &io), -ENOENT);
	io.item.condition = XSEG_KV_IF_ABSENT;
	io.item.client = 77;
	io.item.expiry = 5000;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	version = io.item.version;
	assert_int_equal(xseg_kv_run(g->q, &io), -EEXIST);
	assert_int_equal(io.item.result, -EEXIST);
	assert_int_equal(xseg_kv_run(g->q, &get), 2 * MIB);
	assert_int_equal(get.item.client, 77);
	assert_int_equal(get.item.expiry, 5000);
	assert_int_equal(get.item.version, version);
	io.item.condition = XSEG_KV_IF_VERSION;
	io.item.version = version;
	io.flags = XSEG_KV_FORCE;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_true(io.item.version > version);
	assert_int_equal(g->model->forced, 1);
	io.item.version = version;
	assert_int_equal(xseg_kv_run(g->q, &io), -EEXIST);
	assert_int_equal(xseg_kv_run(g->q, &get), -ESTALE);	/* that version is asked for */
	expect_held(1);
}

static void what_a_cache_need_not_keep_is_told(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, "a", out, 2 * MIB);
	uint32_t pieces = 2 * MIB / KVMODEL_PIECE;

	io.flags = XSEG_KV_ONCE;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(g->model->once, pieces);
	io.op = XSEG_KV_GET;
	io.item.version = 0;
	assert_int_equal(xseg_kv_run(g->q, &io), 2 * MIB);
	assert_in_range(g->model->once, 2 * pieces + 1, 2 * pieces + 4);	/* and the record */
	g->model->once = 0;
	io = io_of(XSEG_KV_PUT, "b", out, 5000);
	io.flags = XSEG_KV_ONCE;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(g->model->once, 1);
	io.op = XSEG_KV_DELETE;
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
}

static void what_cannot_be_done_with_a_large_value_is_refused(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, "a", out, (32u << 20) + 1);
	struct xseg_kv_item item = { .op = XSEG_KV_PUT, .key = "a", .key_bytes = 1, .value = out,
		.value_bytes = 2 * MIB };

	assert_int_equal(xseg_kv_run(g->q, &io), -EFBIG);
	io.op = XSEG_KV_APPEND;
	io.item.value_bytes = 2 * MIB;
	assert_int_equal(xseg_kv_run(g->q, &io), -EFBIG);
	io = (struct xseg_kv_io){ .op = XSEG_KV_BATCH, .batch = &item, .nr_batch = 1 };
	assert_int_equal(xseg_kv_run(g->q, &io), -EFBIG);
	assert_int_equal(g->model->changes, 0);
	assert_int_equal(kvrig_put(g, "a", out, 2 * MIB), 0);
	io = io_of(XSEG_KV_GET, "a", NULL, 0);
	io.flags = XSEG_KV_LOAN;
	assert_int_equal(xseg_kv_run(g->q, &io), -EFBIG);
	set_fault(g, KVF_NO_HANDLE);
	assert_int_equal(kvrig_put(g, "b", out, 2 * MIB), -EBUSY);
	expect_held(1);
}

static void many_operations_are_out_beside_large_ones(void **state)
{
	static struct xseg_kv_io io[12];
	struct kvrig *g = *state;
	struct xseg_kv_io *done[12];
	static char key[12][4];
	uint32_t nr;

	fill(out, sizeof(out), 5);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 12; i++) {
			snprintf(key[i], sizeof(key[i]), "%u", i);
			io[i] = io_of(round ? XSEG_KV_GET : XSEG_KV_PUT, key[i],
				(round ? in : out) + i * 300000, i % 3 ? 20000 : 1200000);
			assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
			assert_int_equal(xseg_kv_submit(g->q, &io[i]), -EBUSY);
		}
		assert_int_equal(xseg_kv_out(g->q), 12);
		for (nr = 0; nr < 12;)
			nr += xseg_kv_wait(g->q, done, 12, 20 * KVRIG_SECOND);
		assert_int_equal(xseg_kv_out(g->q), 0);
		for (unsigned i = 0; i < 12; i++)
			assert_int_equal(io[i].result, !round ? 0 : i % 3 ? 20000 : 1200000);
	}
	assert_memory_equal(in, out, 11 * 300000);
	expect_held(4);
}

/* ---- kvd forgets ------------------------------------------------------------------------- */

static void a_whole_value_is_begun_anew_when_kvd_has_forgotten_it(void **state)
{
	struct kvrig *g = *state;

	fill(out, BIG, 7);
	set_fault(g, KVF_FORGET_ONCE);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	assert_int_equal(g->model->fault, KVF_NONE);
	set_fault(g, KVF_FORGET_ONCE);
	expect(g, "a", BIG);
	assert_int_equal(g->model->fault, KVF_NONE);
	set_fault(g, KVF_COMMIT_EIO);
	fill(out, BIG, 8);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	assert_int_equal(g->model->fault, KVF_NONE);
	set_fault(g, KVF_HOLD_STALE);
	expect(g, "a", BIG);
	assert_int_equal(g->model->fault, KVF_NONE);
	expect_held(1);
}

static void but_not_for_ever(void **state)
{
	struct kvrig *g = *state;

	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	set_fault(g, KVF_FORGET);
	assert_int_equal(kvrig_put(g, "a", out, BIG), -ESTALE);
	assert_int_equal(kvrig_get(g, "a", in, BIG), -ESTALE);
	expect_held(1);
}

static void a_stream_that_kvd_has_forgotten_is_stale(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_stream *st;
	struct xseg_kv_item item = { .key = "a", .key_bytes = 1, .value_bytes = XSEG_KV_UNKNOWN };

	fill(out, BIG, 7);
	assert_int_equal(xseg_kv_put_begin(g->q, &item, 0, &st), 0);
	assert_int_equal(xseg_kv_put_part(st, out, 2 * MIB), 0);
	set_fault(g, KVF_FORGET_ONCE);
	assert_int_equal(xseg_kv_put_part(st, out, MIB), -ESTALE);
	xseg_kv_put_abort(st);
	expect_held(0);
	assert_int_equal(kvrig_get(g, "a", in, 1), -ENOENT);

	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	assert_int_equal(xseg_kv_get_open(g->q, &item, 0, &st), 0);
	set_fault(g, KVF_FORGET_ONCE);		/* and the same version is there yet */
	assert_int_equal(xseg_kv_get_piece(st, 0, in, BIG), BIG);
	assert_memory_equal(in, out, BIG);
	assert_int_equal(kvrig_put(g, "a", out, 2 * MIB), 0);
	set_fault(g, KVF_FORGET_ONCE);
	assert_int_equal(xseg_kv_get_piece(st, 0, in, BIG), -ESTALE);
	assert_int_equal(xseg_kv_get_piece(st, 0, in, BIG), -ESTALE);
	xseg_kv_get_close(st);
	expect_held(1);
}

/* ---- damage ------------------------------------------------------------------------------ */

static void a_piece_that_does_not_verify_is_asked_for_again(void **state)
{
	struct kvrig *g = *state;

	fill(out, BIG, 3);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	set_fault(g, KVF_PIECE);
	expect(g, "a", BIG);
	assert_int_equal(g->model->pieces, (BIG + KVMODEL_PIECE - 1) / KVMODEL_PIECE + 1);
}

static void a_damaged_piece_is_an_error_and_not_absent(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_GET, "a", in, BIG);

	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	set_fault(g, KVF_PIECE_ALWAYS);
	assert_int_equal(kvrig_get(g, "a", in, BIG), -EIO);
	io.flags = XSEG_KV_UNCHECKED;
	assert_int_equal(xseg_kv_run(g->q, &io), BIG);
	set_fault(g, KVF_PIECE_SHORT);
	assert_int_equal(kvrig_get(g, "a", in, BIG), -EPROTO);
	set_fault(g, KVF_LIST);
	assert_int_equal(kvrig_get(g, "a", in, BIG), -EPROTO);
	expect_held(1);
}

/* ---- streams ----------------------------------------------------------------------------- */

static void pieces_are_put_in_any_order_and_again(void **state)
{
	static const uint32_t order[] = { 3, 1, 2, 0, 1, 3 };
	struct kvrig *g = *state;
	struct xseg_kv_stream *st = xseg_kv_stream_create(g->q);
	struct xseg_kv_io io = io_of(XSEG_KV_BEGIN, "a", NULL, XSEG_KV_UNKNOWN), part[6],
			  *done[6];
	uint64_t all = 3 * KVMODEL_PIECE + 1000;

	fill(out, all, 4);
	fill(in, all, 5);
	io.stream = st;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t at = (uint64_t)order[i] * KVMODEL_PIECE;

		/* those that come again are the right ones */
		part[i] = io_of(XSEG_KV_PART, "", (i < 2 ? in : out) + at,
			order[i] == 3 ? 1000 : KVMODEL_PIECE);
		part[i].stream = st;
		part[i].offset = at;
		assert_int_equal(xseg_kv_submit(g->q, &part[i]), 0);
	}
	io = io_of(XSEG_KV_COMMIT, "a", NULL, all);
	io.stream = st;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);	/* parts are out */
	for (uint32_t nr = 0; nr < 6;)
		nr += xseg_kv_wait(g->q, done, 6, 20 * KVRIG_SECOND);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(part[i].result, 0);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_true(io.item.version > 0);
	expect(g, "a", all);
	xseg_kv_stream_destroy(st);
	expect_held(1);
}

static void a_value_with_a_missing_piece_is_not_committed(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_stream *st = xseg_kv_stream_create(g->q);
	struct xseg_kv_io io = io_of(XSEG_KV_BEGIN, "a", NULL, XSEG_KV_UNKNOWN),
			  part = io_of(XSEG_KV_PART, "", out, KVMODEL_PIECE),
			  commit = io_of(XSEG_KV_COMMIT, "a", NULL, 2 * KVMODEL_PIECE);
	uint32_t changes;

	io.stream = part.stream = commit.stream = st;
	assert_int_equal(xseg_kv_run(g->q, &commit), -EINVAL);
	assert_int_equal(xseg_kv_run(g->q, &part), -EINVAL);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
	part.offset = KVMODEL_PIECE;
	assert_int_equal(xseg_kv_run(g->q, &part), 0);
	part.offset = 100;
	assert_int_equal(xseg_kv_run(g->q, &part), -EINVAL);
	changes = g->model->changes;
	assert_int_equal(xseg_kv_run(g->q, &commit), -EINVAL);
	part.offset = 0;
	part.item.value_bytes = 1000;		/* too short, but for the last one */
	assert_int_equal(xseg_kv_run(g->q, &part), 0);
	assert_int_equal(xseg_kv_run(g->q, &commit), -EINVAL);
	assert_int_equal(g->model->changes, changes);
	io.op = XSEG_KV_ABORT;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	xseg_kv_stream_destroy(st);
	assert_int_equal(kvrig_get(g, "a", in, 1), -ENOENT);
	expect_held(0);
}

static void an_open_stream_reads_its_version_whatever_is_put(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_item item = { .key = "a", .key_bytes = 1 };
	struct xseg_kv_stream *st;

	fill(out, BIG, 3);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	assert_int_equal(xseg_kv_get_open(g->q, &item, 0, &st), 0);
	assert_int_equal(item.value_bytes, BIG);
	assert_int_equal(kvrig_put(g, "a", in, 2 * MIB), 0);
	assert_int_equal(xseg_kv_delete(g->q, "a", 1), 0);
	assert_int_equal(xseg_kv_get_piece(st, 0, in, sizeof(in)), BIG);
	assert_memory_equal(in, out, BIG);
	xseg_kv_get_close(st);
	expect_held(0);
}

static void a_stream_reads_at_any_place(void **state)
{
	static const uint32_t sizes[] = { 0, 5000, BIG };
	struct kvrig *g = *state;
	struct xseg_kv_item item = { .key = "a", .key_bytes = 1 };
	struct xseg_kv_stream *st;
	unsigned seed = 1;

	kvrig_reopen_with(g, 0, 3);
	fill(out, BIG, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(kvrig_put(g, "a", out, sizes[i]), 0);
		item.version = 0;
		assert_int_equal(xseg_kv_get_open(g->q, &item, 0, &st), 0);
		assert_int_equal(item.value_bytes, sizes[i]);
		for (unsigned n = 0; n < 100; n++) {
			uint64_t at = (seed = seed * 1103515245 + 12345) % (sizes[i] + 10),
				 bytes = (seed = seed * 1103515245 + 12345) % MIB,
				 left = at < sizes[i] ? sizes[i] - at : 0;

			left = left < bytes ? left : bytes;
			memset(in, 0xee, bytes + 1);
			assert_int_equal(xseg_kv_get_piece(st, at, in, bytes), left);
			assert_memory_equal(in, out + at, left);
			assert_int_equal(in[left], 0xee);
		}
		xseg_kv_get_close(st);
	}
	assert_int_equal(
		xseg_kv_get_open(
			g->q, &(struct xseg_kv_item){ .key = "b", .key_bytes = 1 }, 0, &st),
		-ENOENT);
	expect_held(1);
}

static void a_stream_puts_bytes_as_they_come(void **state)
{
	static const uint32_t sizes[] = { 0, 5000, KVMODEL_PIECE, MIB, BIG };
	struct kvrig *g = *state;
	struct xseg_kv_item item = { .key = "a", .key_bytes = 1, .client = 5 };
	struct xseg_kv_stream *st;
	uint64_t version, n;
	unsigned seed = 1;

	for (unsigned i = 0; i < 10; i++) {
		fill(out, BIG, i);
		item.value_bytes = i % 2 ? sizes[i / 2] : XSEG_KV_UNKNOWN;
		assert_int_equal(xseg_kv_put_begin(g->q, &item, XSEG_KV_FORCE, &st), 0);
		for (uint64_t at = 0; at < sizes[i / 2]; at += n) {
			n = 1 + (seed = seed * 1103515245 + 12345) % (i % 3 ? 50000 : 2 * MIB);
			n = n < sizes[i / 2] - at ? n : sizes[i / 2] - at;
			assert_int_equal(xseg_kv_put_part(st, out + at, n), 0);
		}
		assert_int_equal(xseg_kv_put_commit(st, &version), 0);
		assert_true(version > 0);
		expect(g, "a", sizes[i / 2]);
	}
	expect_held(1);
	item.value_bytes = 5000;
	assert_int_equal(xseg_kv_put_begin(g->q, &item, 0, &st), 0);
	assert_int_equal(xseg_kv_put_part(st, out, 5001), -EINVAL);
	assert_int_equal(xseg_kv_put_part(st, out, 4000), 0);
	assert_int_equal(xseg_kv_put_commit(st, NULL), -EINVAL);
	item.condition = XSEG_KV_IF_ABSENT;
	item.value_bytes = BIG;
	assert_int_equal(xseg_kv_put_begin(g->q, &item, 0, &st), 0);
	assert_int_equal(xseg_kv_put_part(st, out, BIG), 0);
	assert_int_equal(xseg_kv_put_commit(st, NULL), -EEXIST);
	expect_held(1);
}

/* ---- kvd is away ------------------------------------------------------------------------- */

static void a_large_value_waits_for_a_kvd_that_is_stopped_and_started(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, "a", out, BIG), *done;

	fill(out, BIG, 9);
	for (unsigned i = 0; i < 2; i++) {
		g->model->parts = g->model->pieces = 0;
		assert_int_equal(xseg_kv_submit(g->q, &io), 0);
		while (g->model->parts + g->model->pieces < 3)	/* it is in the middle */
			assert_int_equal(xseg_kv_poll(g->q, &done, 1), 0);
		kvrig_stop_kvd(g);
		assert_int_equal(xseg_kv_wait(g->q, &done, 1, KVRIG_SECOND / 10), 0);
		kvrig_start_kvd(g);
		assert_int_equal(xseg_kv_wait(g->q, &done, 1, 20 * KVRIG_SECOND), 1);
		assert_int_equal(io.result, i ? BIG : 0);
		io = io_of(XSEG_KV_GET, "a", in, BIG);
	}
	assert_memory_equal(in, out, BIG);
	expect_held(1);
}

static void large_values_come_back_when_kvd_stays_away(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io[3], *done[3];
	uint32_t nr = 0;

	kvrig_reopen_with(g, KVRIG_SECOND / 5, 2);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	for (unsigned i = 0; i < 3; i++) {
		io[i] = io_of(i ? XSEG_KV_PUT : XSEG_KV_GET, "a", i ? out : in, BIG);
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
	}
	kvrig_stop_kvd(g);
	while (nr < 3)
		nr += xseg_kv_wait(g->q, done, 3, 20 * KVRIG_SECOND);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(io[i].result, -ENOTCONN);
	kvrig_start_kvd(g);
	kvrig_reopen(g, 0);
}

static void a_large_value_that_is_out_when_its_queue_is_destroyed_is_given_up(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, "a", out, BIG);

	set_fault(g, KVF_SILENT);
	assert_int_equal(xseg_kv_submit(g->q, &io), 0);
	xseg_kv_kick(g->q);
	while (g->model->held < 1)
		usleep(100);
	xseg_kv_queue_destroy(g->q);
	g->q = NULL;				/* the teardown sees that all is free again */
}

static void a_large_value_that_loans_are_in_the_way_of_is_told(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io loan[4], io = io_of(XSEG_KV_PUT, "b", out, BIG), *done[4];

	fill(out, BIG, 9);
	assert_int_equal(kvrig_put(g, "a", out, 5000), 0);
	for (unsigned i = 0; i < 4; i++) {
		loan[i] = io_of(XSEG_KV_GET, "a", NULL, 0);
		loan[i].flags = XSEG_KV_LOAN;
		assert_int_equal(xseg_kv_submit(g->q, &loan[i]), 0);
		assert_int_equal(xseg_kv_wait(g->q, done, 4, 20 * KVRIG_SECOND), 1);
	}
	assert_int_equal(xseg_kv_run(g->q, &io), -EDEADLK);
	assert_int_equal(xseg_kv_out(g->q), 0);
	for (unsigned i = 0; i < 4; i++)
		xseg_kv_release(g->q, &loan[i]);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	expect(g, "b", BIG);
}

/* ---- all values -------------------------------------------------------------------------- */

static void a_scan_and_a_backup_tell_large_values(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_stream *st = xseg_kv_stream_create(g->q);
	struct xseg_kv_io io = io_of(XSEG_KV_SCAN, "", in, 4096), piece;
	struct xseg_kv_record rec;
	struct xseg_kv_entry e;
	size_t at = 0;

	fill(out, BIG, 2);
	assert_int_equal(kvrig_put(g, "a", out, BIG), 0);
	assert_true(xseg_kv_run(g->q, &io) > 0);
	assert_int_equal(xseg_kv_next(&io, &at, &e), 1);
	assert_int_equal(e.value_bytes, BIG);
	io = io_of(XSEG_KV_BACKUP, "", in, XSEG_KV_BACKUP_BYTES);
	assert_true(xseg_kv_run(g->q, &io) > 0);
	at = 0;
	assert_int_equal(xseg_kv_next_record(&io, &at, &rec), 1);
	assert_null(rec.value);
	assert_int_equal(rec.value_bytes, BIG);
	assert_int_equal(xseg_kv_record_open(g->q, &io, &rec, st), 0);
	piece = io_of(XSEG_KV_PIECE, "", in + 2 * MIB, KVMODEL_PIECE);
	piece.stream = st;
	for (uint64_t i = 0; i < BIG; i += KVMODEL_PIECE) {
		uint64_t bytes = BIG - i < KVMODEL_PIECE ? BIG - i : KVMODEL_PIECE;

		piece.offset = i;
		assert_int_equal(xseg_kv_run(g->q, &piece), bytes);
		assert_memory_equal(in + 2 * MIB, out + i, bytes);
	}
	piece.op = XSEG_KV_CLOSE;
	assert_int_equal(xseg_kv_run(g->q, &piece), 0);
	rec.list_bytes--;
	assert_int_equal(xseg_kv_record_open(g->q, &io, &rec, st), -EPROTO);
	xseg_kv_stream_destroy(st);
	expect_held(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST(large_values_are_got_as_they_were_put),
		KV_TEST(small_and_large_values_take_turns),
		KV_TEST(a_get_of_a_large_value_into_too_little_memory_says_how_much_there_is),
		KV_TEST(conditions_of_large_puts_hold),
		KV_TEST(what_a_cache_need_not_keep_is_told),
		KV_TEST(what_cannot_be_done_with_a_large_value_is_refused),
		KV_TEST(many_operations_are_out_beside_large_ones),
		KV_TEST(a_whole_value_is_begun_anew_when_kvd_has_forgotten_it),
		KV_TEST(but_not_for_ever),
		KV_TEST(a_stream_that_kvd_has_forgotten_is_stale),
		KV_TEST(a_piece_that_does_not_verify_is_asked_for_again),
		KV_TEST(a_damaged_piece_is_an_error_and_not_absent),
		KV_TEST(pieces_are_put_in_any_order_and_again),
		KV_TEST(a_value_with_a_missing_piece_is_not_committed),
		KV_TEST(an_open_stream_reads_its_version_whatever_is_put),
		KV_TEST(a_stream_reads_at_any_place),
		KV_TEST(a_stream_puts_bytes_as_they_come),
		KV_TEST(a_large_value_waits_for_a_kvd_that_is_stopped_and_started),
		KV_TEST(large_values_come_back_when_kvd_stays_away),
		KV_TEST(a_large_value_that_is_out_when_its_queue_is_destroyed_is_given_up),
		KV_TEST(a_large_value_that_loans_are_in_the_way_of_is_told),
		KV_TEST(a_scan_and_a_backup_tell_large_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
