/* kv_give_test - values that the program writes where they are sent from (xseg_kv_prepare()), on a
 * model of kvd. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/rig/kv_model_large.h"
#include "tests/rig/kv_rig.h"

static uint8_t out[2 << 20], in[2 << 20];

static void fill(uint8_t *to, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)((i * 2654435761u >> 9) + i + seed);
}

static struct xseg_kv_io put_of(const char *key, uint64_t bytes)
{
	return (struct xseg_kv_io){ .op = XSEG_KV_PUT, .flags = XSEG_KV_GIVE,
		.item = { .key = key, .key_bytes = (uint32_t)strlen(key), .value_bytes = bytes } };
}

/* Prepared, and its value is there. */
static uint8_t *prepare(struct kvrig *g, struct xseg_kv_io *io, unsigned seed)
{
	struct iovec piece = { 0 };

	assert_int_equal(xseg_kv_prepare(g->q, io, &piece, 1), 1);
	assert_int_equal(piece.iov_len, io->item.value_bytes);
	fill(piece.iov_base, piece.iov_len, seed);
	return piece.iov_base;
}

static void expect(struct kvrig *g, const char *key, uint64_t bytes, unsigned seed)
{
	fill(out, bytes, seed);
	assert_int_equal(kvrig_get(g, key, in, sizeof(in)), bytes);
	assert_memory_equal(in, out, bytes);
}

static void what_is_given_is_got_as_it_was_written(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 4000, 4096, 16000, 32767, 32768, 32769, 100000,
		262144, 1000000, 254 * 4096 };
	struct kvrig *g = *state;
	char key[32];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct xseg_kv_io io;

		snprintf(key, sizeof(key), "a key %u", i);
		io = put_of(key, sizes[i]);
		prepare(g, &io, i);
		assert_int_equal(xseg_kv_run(g->q, &io), 0);
		assert_true(io.item.version > 0);
		expect(g, key, sizes[i], i);
	}
}

/* That page is stored as it is, so it must not have what another value left there. */
static void the_rest_of_the_last_page_is_zeroes(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = put_of("a", 100001);
	uint8_t *at;

	memset(prepare(g, &io, 1), 0xee, 100001);
	xseg_kv_release(g->q, &io);
	for (unsigned give = 0; give < 2; give++) {
		io = put_of("a", 40001);
		at = prepare(g, &io, 2);	/* the same room */
		assert_int_equal(at[40001], 0xee);
		if (!give) {
			xseg_kv_release(g->q, &io);
			fill(out, 40001, 2);
			io.item.value = out;
		}
		assert_int_equal(xseg_kv_run(g->q, &io), 0);
		for (uint32_t i = 40001; i % 4096; i++)
			assert_int_equal(at[i], 0);
		expect(g, "a", 40001, 2);
		memset(at + 40001, 0xee, 4096);
	}
}

/* As one who reads a file finds out: also where less would stand at another place. */
static void less_than_was_prepared_may_be_given(void **state)
{
	static const uint32_t sizes[][2] = { { 5000, 1 }, { 40000, 39999 }, { 40000, 100 },
		{ 254 * 4096, 32768 }, { 200000, 40001 } };
	struct kvrig *g = *state;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct xseg_kv_io io = put_of("a", sizes[i][0]);

		prepare(g, &io, i);
		io.item.value_bytes = sizes[i][1];
		assert_int_equal(xseg_kv_run(g->q, &io), 0);
		expect(g, "a", sizes[i][1], i);
	}
}

static void a_condition_and_a_key_may_be_set_later(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = put_of("key", 5000);

	assert_int_equal(kvrig_put(g, "key", "x", 1), 0);
	io.item.key = NULL;
	prepare(g, &io, 3);
	io.item.key = "key";
	io.item.condition = XSEG_KV_IF_ABSENT;
	assert_int_equal(xseg_kv_run(g->q, &io), -EEXIST);
	io.item.value = NULL;
	prepare(g, &io, 4);			/* it is the queue's again, so anew */
	io.item.condition = XSEG_KV_IF_PRESENT;
	io.flags |= XSEG_KV_FORCE;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(g->model->forced, 1);
	expect(g, "key", 5000, 4);
}

static void another_operation_than_the_prepared_one_is_refused(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = put_of("key", 5000);
	struct iovec piece;

	prepare(g, &io, 5);
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EBUSY);
	io.item.value_bytes = 0;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.item.value_bytes = 5001;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.item.value_bytes = 5000;
	io.item.key = "longer";
	io.item.key_bytes = 6;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.item.key = "key";
	io.item.key_bytes = 3;
	io.op = XSEG_KV_APPEND;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.op = XSEG_KV_PUT;
	io.flags = 0;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.flags = XSEG_KV_GIVE;
	assert_int_equal(xseg_kv_data(g->q, &io, &piece, 1), 0);	/* it is no get */
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	expect(g, "key", 5000, 5);
}

/* It may be moved, and has one owner: it is not sent twice, nor free while it is out. */
static void of_a_prepared_operation_one_copy_is_sent(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = put_of("key", 5000), moved, *done[2];

	prepare(g, &io, 8);
	moved = io;
	assert_int_equal(xseg_kv_submit(g->q, &moved), 0);
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	xseg_kv_release(g->q, &io);
	assert_int_equal(xseg_kv_wait(g->q, done, 2, 20 * KVRIG_SECOND), 1);
	assert_ptr_equal(done[0], &moved);
	assert_int_equal(moved.result, 0);
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	expect(g, "key", 5000, 8);
}

static void what_cannot_be_given_is_refused(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = put_of("key", 0);
	struct iovec piece;

	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EINVAL);
	io = put_of("key", 3 << 20);
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EFBIG);
	io = put_of("", 10);
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EINVAL);
	io = put_of("key", 10);
	io.flags = 0;
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EINVAL);
	io = put_of("key", 10);
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);	/* not prepared */
	io.op = XSEG_KV_APPEND;
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EINVAL);
	io = put_of("key", 10);
	io.item.value = out;
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -EINVAL);
	/* with a value it is copied */
	fill(out, 10, 6);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	expect(g, "key", 10, 6);
}

static void all_requests_may_be_prepared_and_no_more(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io[5], *done[5];
	struct iovec piece;
	char key[5][4];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(key[i], sizeof(key[i]), "k%u", i);
		io[i] = put_of(key[i], 3000);
	}
	for (unsigned i = 0; i < 4; i++)
		prepare(g, &io[i], i);
	assert_int_equal(xseg_kv_prepare(g->q, &io[4], &piece, 1), -EAGAIN);
	io[4].item.value = out;
	fill(out, 3000, 4);
	assert_int_equal(xseg_kv_run(g->q, &io[4]), -EDEADLK);
	xseg_kv_release(g->q, &io[0]);
	xseg_kv_release(g->q, &io[0]);
	assert_int_equal(xseg_kv_run(g->q, &io[4]), 0);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
	assert_int_equal(xseg_kv_out(g->q), 3);
	for (uint32_t nr = 0; nr < 3;)
		nr += xseg_kv_wait(g->q, done, 5, 20 * KVRIG_SECOND);
	for (unsigned i = 1; i < 5; i++)
		expect(g, key[i], 3000, i);
	assert_int_equal(xseg_kv_exists(g->q, "k0", 2), -ENOENT);
}

/* A release lets go what waited for the room. */
static void the_large_room_is_one(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io one = put_of("one", 100000), two = put_of("two", 100000), *done[2];
	struct iovec piece;

	prepare(g, &one, 1);
	assert_int_equal(xseg_kv_prepare(g->q, &two, &piece, 1), -EAGAIN);
	fill(out, 100000, 2);
	two.item.value = out;
	assert_int_equal(xseg_kv_submit(g->q, &two), 0);
	xseg_kv_release(g->q, &one);
	assert_int_equal(xseg_kv_wait(g->q, done, 2, 20 * KVRIG_SECOND), 1);
	assert_ptr_equal(done[0], &two);
	assert_int_equal(two.result, 0);
	expect(g, "two", 100000, 2);
}

static void pieces_of_a_stream_are_given(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_stream *st = xseg_kv_stream_create(g->q);
	struct xseg_kv_io io = { .op = XSEG_KV_BEGIN, .stream = st,
		.item = { .key = "a", .key_bytes = 1, .value_bytes = XSEG_KV_UNKNOWN } }, part;
	uint64_t all = 3 * KVMODEL_PIECE + 1000;
	struct iovec piece;

	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	fill(out, all, 7);
	for (uint64_t at = 0; at < all; at += KVMODEL_PIECE) {
		part = (struct xseg_kv_io){ .op = XSEG_KV_PART, .flags = XSEG_KV_GIVE, .stream = st,
			.offset = at };
		part.item.value_bytes = KVMODEL_PIECE;
		assert_int_equal(xseg_kv_prepare(g->q, &part, &piece, 1), 1);
		assert_int_equal((uintptr_t)piece.iov_base % 4096, 0);
		part.item.value_bytes = all - at < KVMODEL_PIECE ? all - at : KVMODEL_PIECE;
		memcpy(piece.iov_base, out + at, part.item.value_bytes);
		part.offset += KVMODEL_PIECE;
		assert_int_equal(xseg_kv_submit(g->q, &part), -EINVAL);
		part.offset -= KVMODEL_PIECE;
		assert_int_equal(xseg_kv_run(g->q, &part), 0);
	}
	io = (struct xseg_kv_io){ .op = XSEG_KV_COMMIT, .stream = st,
		.item = { .key = "a", .key_bytes = 1, .value_bytes = all } };
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(xseg_kv_prepare(g->q, &part, &piece, 1), -EINVAL);	/* it is over */
	xseg_kv_stream_destroy(st);
	expect(g, "a", all, 7);
}

static void what_is_prepared_when_kvd_stays_away_is_refused(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io, get = { .op = XSEG_KV_GET, .item = { .key = "a", .key_bytes = 1 } };
	struct iovec piece;

	kvrig_reopen(g, KVRIG_SECOND / 10);
	io = put_of("a", 3000);
	prepare(g, &io, 1);
	kvrig_stop_kvd(g);
	assert_int_equal(xseg_kv_run(g->q, &get), -ENOTCONN);
	assert_int_equal(xseg_kv_submit(g->q, &io), -ENOTCONN);
	xseg_kv_release(g->q, &io);
	assert_int_equal(xseg_kv_prepare(g->q, &io, &piece, 1), -ENOTCONN);
	kvrig_start_kvd(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST(what_is_given_is_got_as_it_was_written),
		KV_TEST(the_rest_of_the_last_page_is_zeroes),
		KV_TEST(less_than_was_prepared_may_be_given),
		KV_TEST(a_condition_and_a_key_may_be_set_later),
		KV_TEST(another_operation_than_the_prepared_one_is_refused),
		KV_TEST(of_a_prepared_operation_one_copy_is_sent),
		KV_TEST(what_cannot_be_given_is_refused),
		KV_TEST(all_requests_may_be_prepared_and_no_more),
		KV_TEST(the_large_room_is_one),
		KV_TEST(pieces_of_a_stream_are_given),
		KV_TEST(what_is_prepared_when_kvd_stays_away_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
