/* kv_test - the library for stores of values, on a model of kvd: what is put is got, conditions,
 * batches, scans, sizes, loans (xseg/kv.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/rig/kv_rig.h"

static uint8_t out[2 << 20], in[2 << 20];

static void fill(uint8_t *to, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)((i * 2654435761u >> 9) + i + seed);
}

/* ---- values ------------------------------------------------------------------------------ */

static void a_value_is_got_as_it_was_put(void **state)
{
	struct kvrig *g = *state;

	assert_int_equal(kvrig_put(g, "a", "hello", 5), 0);
	assert_int_equal(kvrig_get(g, "a", in, sizeof(in)), 5);
	assert_memory_equal(in, "hello", 5);
	assert_int_equal(kvrig_put(g, "a", "", 0), 0);
	assert_int_equal(kvrig_get(g, "a", in, sizeof(in)), 0);
}

static void values_of_all_sizes_are_got_as_they_were_put(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 63, 64, 4032, 4096, 4097, 8192, 16000, 32767, 32768,
		32769, 65536, 100000, 262144, 1000000, 254 * 4096 };
	struct kvrig *g = *state;
	char key[32];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(key, sizeof(key), "key %u", i);
		fill(out, sizes[i], i);
		assert_int_equal(kvrig_put(g, key, out, sizes[i]), 0);
	}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			snprintf(key, sizeof(key), "key %u", i);
			fill(out, sizes[i], i);
			memset(in, 0xee, sizes[i] + 1);
			assert_int_equal(kvrig_get(g, key, in, sizeof(in)), sizes[i]);
			assert_memory_equal(in, out, sizes[i]);
			assert_int_equal(in[sizes[i]], 0xee);
		}
}

static void keys_of_all_sizes_work(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 255, 3900, 4024, 4025, 4096, 30000, 65536 };
	struct kvrig *g = *state;

	fill(out, 65536, 3);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(
			xseg_kv_put(g->q, out, sizes[i], &sizes[i], sizeof(sizes[i])), 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t back = 0;

		assert_int_equal(xseg_kv_get(g->q, out, sizes[i], &back, sizeof(back)), 4);
		assert_int_equal(back, sizes[i]);
		assert_int_equal(xseg_kv_exists(g->q, out, sizes[i]), 0);
	}
	assert_int_equal(xseg_kv_put(g->q, out, 65537, "x", 1), -EINVAL);
	assert_int_equal(xseg_kv_put(g->q, "", 0, "x", 1), -EINVAL);
}

static void a_get_into_too_little_memory_says_how_much_there_is(void **state)
{
	struct kvrig *g = *state;

	fill(out, 10000, 1);
	assert_int_equal(kvrig_put(g, "a", out, 10000), 0);
	memset(in, 0xee, 5001);
	assert_int_equal(kvrig_get(g, "a", in, 5000), 10000);
	assert_memory_equal(in, out, 5000);
	assert_int_equal(in[5000], 0xee);
	assert_int_equal(kvrig_get(g, "a", NULL, 0), 10000);
}

static void an_absent_key_is_not_there(void **state)
{
	struct kvrig *g = *state;

	assert_int_equal(kvrig_get(g, "a", in, 1), -ENOENT);
	assert_int_equal(xseg_kv_exists(g->q, "a", 1), -ENOENT);
	assert_int_equal(xseg_kv_delete(g->q, "a", 1), -ENOENT);
	assert_int_equal(kvrig_put(g, "a", "1", 1), 0);
	assert_int_equal(xseg_kv_exists(g->q, "a", 1), 0);
	assert_int_equal(xseg_kv_delete(g->q, "a", 1), 0);
	assert_int_equal(kvrig_get(g, "a", in, 1), -ENOENT);
}

static void a_size_that_is_known_costs_one_request(void **state)
{
	struct kvrig *g = *state;
	uint32_t before;

	assert_int_equal(kvrig_put(g, "a", out, 30000), 0);
	assert_int_equal(kvrig_get(g, "a", in, sizeof(in)), 30000);
	before = g->model->gets;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(kvrig_get(g, "a", in, sizeof(in)), 30000);
	assert_int_equal(g->model->gets, before + 10);
}

static void sizes_are_guessed_from_those_of_other_keys(void **state)
{
	struct kvrig *g = *state;
	uint32_t before;
	char key[16];

	for (unsigned i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(kvrig_put(g, key, out, 10000), 0);
	}
	before = g->model->gets;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(kvrig_get(g, key, in, sizeof(in)), 10000);
	}
	/* the first ones, and those that lie in one page more than most */
	assert_in_range(g->model->gets - before, 300, 345);
}

/* ---- changes ----------------------------------------------------------------------------- */

static int64_t change(struct kvrig *g, enum xseg_kv_op op, const char *value, uint32_t condition,
	struct xseg_kv_io *io)
{
	io->op = op;
	io->item.key = "k";
	io->item.key_bytes = 1;
	io->item.value = (void *)(uintptr_t)value;
	io->item.value_bytes = value ? strlen(value) : 0;
	io->item.condition = condition;
	return xseg_kv_run(g->q, io);
}

static void expect(struct kvrig *g, const char *key, const char *value)
{
	assert_int_equal(kvrig_get(g, key, in, sizeof(in)), strlen(value));
	assert_memory_equal(in, value, strlen(value));
}

static void conditions_hold(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { 0 };
	uint64_t version;

	assert_int_equal(change(g, XSEG_KV_PUT, "1", XSEG_KV_IF_PRESENT, &io), -ENOENT);
	assert_int_equal(change(g, XSEG_KV_PUT, "1", XSEG_KV_IF_ABSENT, &io), 0);
	assert_int_equal(change(g, XSEG_KV_PUT, "2", XSEG_KV_IF_ABSENT, &io), -EEXIST);
	assert_int_equal(io.item.result, -EEXIST);
	expect(g, "k", "1");
	assert_int_equal(change(g, XSEG_KV_PUT, "2", XSEG_KV_IF_PRESENT, &io), 0);
	version = io.item.version;
	assert_true(version > 0);
	assert_int_equal(change(g, XSEG_KV_PUT, "3", XSEG_KV_IF_VERSION, &io), 0);
	assert_true(io.item.version > version);
	io.item.version = version;
	assert_int_equal(change(g, XSEG_KV_PUT, "4", XSEG_KV_IF_VERSION, &io), -EEXIST);
	expect(g, "k", "3");
}

static void a_get_tells_what_is_known_of_the_value(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io put = { .item = { .client = 77, .expiry = 5000 } },
			  get = { .op = XSEG_KV_GET,
				  .item = { .key = "k", .key_bytes = 1, .value = in,
					  .value_bytes = 1 } };

	assert_int_equal(change(g, XSEG_KV_PUT, "1", 0, &put), 0);
	assert_int_equal(xseg_kv_run(g->q, &get), 1);
	assert_int_equal(get.item.client, 77);
	assert_int_equal(get.item.expiry, 5000);
	assert_int_equal(get.item.version, put.item.version);
	assert_int_equal(xseg_kv_run(g->q, &get), 1);	/* that version is asked for now */
	assert_int_equal(change(g, XSEG_KV_PUT, "2", 0, &put), 0);
	assert_int_equal(xseg_kv_run(g->q, &get), -ESTALE);
}

static void values_are_changed_in_place(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { 0 };

	assert_int_equal(change(g, XSEG_KV_APPEND, "b", 0, &io), -ENOENT);
	assert_int_equal(change(g, XSEG_KV_PUT, "b", 0, &io), 0);
	assert_int_equal(change(g, XSEG_KV_APPEND, "c", 0, &io), 0);
	assert_int_equal(change(g, XSEG_KV_PREPEND, "a", 0, &io), 0);
	expect(g, "k", "abc");
	io.item.number = 5;
	assert_int_equal(change(g, XSEG_KV_INCR, NULL, 0, &io), -EINVAL);
	assert_int_equal(change(g, XSEG_KV_PUT, "10", 0, &io), 0);
	io.item.number = 5;
	assert_int_equal(change(g, XSEG_KV_INCR, NULL, 0, &io), 0);
	assert_int_equal(io.item.number, 15);
	io.item.number = 20;
	assert_int_equal(change(g, XSEG_KV_DECR, NULL, 0, &io), 0);
	assert_int_equal(io.item.number, 0);
	expect(g, "k", "0");
}

static void values_expire(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .item = { .ttl_s = 10 } };

	assert_int_equal(change(g, XSEG_KV_PUT, "1", 0, &io), 0);
	expect(g, "k", "1");
	g->model->time += 10;
	assert_int_equal(kvrig_get(g, "k", in, 1), -ENOENT);
	assert_int_equal(change(g, XSEG_KV_PUT, "1", 0, &io), 0);
	io.item.ttl_s = 100;
	assert_int_equal(change(g, XSEG_KV_TOUCH, NULL, 0, &io), 0);
	g->model->time += 99;
	expect(g, "k", "1");
	g->model->time += 1;
	assert_int_equal(kvrig_get(g, "k", in, 1), -ENOENT);
}

static void a_batch_is_done_as_a_whole_or_not_at_all(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_item item[3] = {
		{ .op = XSEG_KV_PUT, .key = "a", .key_bytes = 1, .value = out,
		  .value_bytes = 40000 },
		{ .op = XSEG_KV_PUT, .key = "b", .key_bytes = 1, .value = "2", .value_bytes = 1 },
		{ .op = XSEG_KV_DELETE, .key = "c", .key_bytes = 1 }
	};
	struct xseg_kv_io io = { .op = XSEG_KV_BATCH, .batch = item, .nr_batch = 3 };

	fill(out, 40000, 9);
	assert_int_equal(kvrig_put(g, "c", "3", 1), 0);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(kvrig_get(g, "a", in, sizeof(in)), 40000);
	assert_memory_equal(in, out, 40000);
	expect(g, "b", "2");
	assert_int_equal(xseg_kv_exists(g->q, "c", 1), -ENOENT);
	/* now c is not there, which is no reason not to change the others */
	item[1].value = "4";
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_int_equal(item[2].result, -ENOENT);
	expect(g, "b", "4");
	item[0].condition = XSEG_KV_IF_ABSENT;
	item[1].value = "5";
	assert_int_equal(xseg_kv_run(g->q, &io), -EEXIST);
	assert_int_equal(item[0].result, -EEXIST);
	assert_int_equal(item[1].result, -ECANCELED);
	expect(g, "b", "4");
}

static void a_batch_that_cannot_be_is_never_sent(void **state)
{
	static struct xseg_kv_item item[1001];
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_BATCH, .batch = item };

	for (unsigned i = 0; i < 1001; i++)
		item[i] = (struct xseg_kv_item){ .op = XSEG_KV_DELETE, .key = &item[i],
			.key_bytes = 8 };
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
	io.nr_batch = 1001;
	assert_int_equal(xseg_kv_run(g->q, &io), -E2BIG);
	io.nr_batch = 1000;
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	item[3].op = XSEG_KV_INCR;
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
	for (unsigned i = 0; i < 2; i++)
		item[i] = (struct xseg_kv_item){ .op = XSEG_KV_PUT, .key = &item[i],
			.key_bytes = 8, .value = out, .value_bytes = 600000 };
	io.nr_batch = 2;
	assert_int_equal(xseg_kv_run(g->q, &io), -E2BIG);
}

static void all_are_deleted_at_once(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_DELETE_ALL };

	assert_int_equal(kvrig_put(g, "a", "1", 1), 0);
	assert_int_equal(kvrig_put(g, "b", "2", 1), 0);
	assert_int_equal(xseg_kv_delete_all(g->q, 0), 0);
	assert_int_equal(xseg_kv_exists(g->q, "a", 1), -ENOENT);
	assert_int_equal(xseg_kv_exists(g->q, "b", 1), -ENOENT);
	assert_int_equal(xseg_kv_run(g->q, &io), 0);
	assert_true(io.item.version > 0);
	io.item.key = "a";
	io.item.key_bytes = 1;
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
	io.item = (struct xseg_kv_item){ .condition = XSEG_KV_IF_PRESENT };
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
}

static void force_and_flush_are_sent(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .flags = XSEG_KV_FORCE };

	assert_int_equal(change(g, XSEG_KV_PUT, "1", 0, &io), 0);
	assert_int_equal(g->model->forced, 1);
	assert_int_equal(xseg_kv_flush(g->q), 0);
	assert_int_equal(g->model->flushes, 1);
}

/* ---- scans ------------------------------------------------------------------------------- */

static void a_scan_tells_each_key_once(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_SCAN, .item = { .value = in, .value_bytes = 4096 } };
	struct xseg_kv_entry e;
	bool seen[500] = { false };
	unsigned told = 0, answers = 0;
	char key[16];

	for (unsigned i = 0; i < 500; i++) {
		snprintf(key, sizeof(key), "key-%u", i);
		assert_int_equal(kvrig_put(g, key, out, i), 0);
	}
	do {
		assert_true(xseg_kv_run(g->q, &io) >= 0);
		for (size_t at = 0; xseg_kv_next(&io, &at, &e); told++) {
			unsigned nr = 0;

			snprintf(key, sizeof(key), "%.*s", (int)e.key_bytes, (const char *)e.key);
			assert_int_equal(sscanf(key, "key-%u", &nr), 1);
			assert_in_range(nr, 0, 499);
			assert_false(seen[nr]);
			seen[nr] = true;
			assert_int_equal(e.value_bytes, nr);
		}
		answers++;
	} while (io.cursor);
	assert_int_equal(told, 500);
	assert_true(answers > 2);
}

static void a_scan_of_a_prefix_tells_no_other_key(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_SCAN,
		.item = { .key = "ab", .key_bytes = 2, .value = in, .value_bytes = 8192 } };
	struct xseg_kv_entry e;
	size_t at = 0;

	assert_int_equal(kvrig_put(g, "a", "1", 1), 0);
	assert_int_equal(kvrig_put(g, "abc", "1", 1), 0);
	assert_int_equal(kvrig_put(g, "b", "1", 1), 0);
	assert_true(xseg_kv_run(g->q, &io) > 0);
	assert_int_equal(xseg_kv_next(&io, &at, &e), 1);
	assert_int_equal(e.key_bytes, 3);
	assert_int_equal(xseg_kv_next(&io, &at, &e), 0);
	assert_int_equal(io.cursor, 0);
	io.item.key_bytes = 0;
	g->model->scan_nr = 1;			/* answers that are short, or empty, lead on */
	at = 0;
	do {
		assert_true(xseg_kv_run(g->q, &io) >= 0);
		for (size_t in_answer = 0; xseg_kv_next(&io, &in_answer, &e);)
			at++;
	} while (io.cursor);
	assert_int_equal(at, 3);
}

static void a_scan_needs_memory_for_a_key(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_SCAN, .item = { .value = in, .value_bytes = 4095 } };
	struct xseg_kv_entry e;
	size_t at = 0;

	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
	assert_int_equal(xseg_kv_put(g->q, out, 65536, "1", 1), 0);
	io.item.value_bytes = 65536;
	assert_int_equal(xseg_kv_run(g->q, &io), -EMSGSIZE);
	io.item.value_bytes = 128 << 10;
	assert_true(xseg_kv_run(g->q, &io) > 0);
	assert_int_equal(xseg_kv_next(&io, &at, &e), 1);
	assert_int_equal(e.key_bytes, 65536);
}

/* ---- backups ----------------------------------------------------------------------------- */

static void a_backup_tells_all_records(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_BACKUP,
		.item = { .value = in, .value_bytes = XSEG_KV_BACKUP_BYTES } };
	unsigned told = 0, deleted = 0, answers = 0;
	struct xseg_kv_record rec;
	char key[16];

	for (unsigned i = 0; i < 30; i++) {
		snprintf(key, sizeof(key), "%u", i);
		fill(out, 100000, i);
		assert_int_equal(kvrig_put(g, key, out, 100000), 0);
	}
	assert_int_equal(xseg_kv_delete(g->q, "7", 1), 0);
	do {
		assert_true(xseg_kv_run(g->q, &io) > 0);
		for (size_t at = 0; xseg_kv_next_record(&io, &at, &rec); told++) {
			deleted += !rec.set;
			assert_int_equal(rec.value_bytes, rec.set ? 100000 : 0);
			if (!rec.set)
				continue;
			snprintf(key, sizeof(key), "%.*s", (int)rec.key_bytes,
				(const char *)rec.key);
			fill(out, 100000, (unsigned)rec.identity[0]);
			assert_memory_equal(rec.value, out, 100000);
		}
		answers++;
	} while (io.cursor);
	assert_int_equal(told, 30);
	assert_int_equal(deleted, 1);
	assert_int_equal(io.item.number, 7);
	assert_true(answers >= 3);
	io.item.value_bytes--;
	assert_int_equal(xseg_kv_run(g->q, &io), -EINVAL);
}

/* ---- many at a time ---------------------------------------------------------------------- */

static void more_operations_than_requests_are_done(void **state)
{
	struct kvrig *g = *state;
	static struct xseg_kv_io io[64];
	struct xseg_kv_io *done[8];
	static char key[64][8];
	uint32_t n, nr = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 64; i++) {
			snprintf(key[i], sizeof(key[i]), "%u", i);
			io[i] = (struct xseg_kv_io){ .op = round ? XSEG_KV_GET : XSEG_KV_PUT,
				.item = { .key = key[i], .key_bytes = (uint32_t)strlen(key[i]),
					.value = (round ? in : out) + i * 20000,
					.value_bytes = 20000 } };
			fill(out + i * 20000, 20000, i);
			assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
			assert_int_equal(xseg_kv_submit(g->q, &io[i]), -EBUSY);
		}
		assert_int_equal(xseg_kv_out(g->q), 64);
		for (nr = 0; nr < 64; nr += n) {
			n = xseg_kv_wait(g->q, done, 8, 20 * KVRIG_SECOND);
			assert_in_range(n, 1, 8);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(done[i]->result, round ? 20000 : 0);
		}
	}
	assert_memory_equal(in, out, 64 * 20000);
	assert_int_equal(xseg_kv_wait(g->q, done, 8, KVRIG_SECOND), 0);
}

static void a_loan_is_read_where_it_is_until_it_is_released(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io[5], *done[4];
	struct iovec piece[16];
	uint32_t nr;

	fill(out, 8000, 4);
	assert_int_equal(kvrig_put(g, "a", out, 8000), 0);
	for (unsigned i = 0; i < 5; i++)
		io[i] = (struct xseg_kv_io){ .op = XSEG_KV_GET, .flags = XSEG_KV_LOAN,
			.item = { .key = "a", .key_bytes = 1 } };
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
		assert_int_equal(xseg_kv_wait(g->q, done, 4, 20 * KVRIG_SECOND), 1);
		assert_int_equal(io[i].result, 8000);
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), -EBUSY);
	}
	for (unsigned i = 0; i < 4; i++) {
		uint32_t at = 0;

		nr = xseg_kv_data(g->q, &io[i], piece, 16);
		for (uint32_t p = 0; p < nr; p++) {
			assert_memory_equal(piece[p].iov_base, out + at, piece[p].iov_len);
			at += (uint32_t)piece[p].iov_len;
		}
		assert_int_equal(at, 8000);
	}
	assert_int_equal(xseg_kv_run(g->q, &io[4]), -EDEADLK);
	for (unsigned i = 0; i < 4; i++)
		xseg_kv_release(g->q, &io[i]);
	xseg_kv_release(g->q, &io[0]);
	assert_int_equal(xseg_kv_run(g->q, &io[4]), 8000);
	xseg_kv_release(g->q, &io[4]);
}

static void one_large_operation_is_out_at_a_time(void **state)
{
	struct kvrig *g = *state;
	static struct xseg_kv_io io[6];
	struct xseg_kv_io *done[6];
	static char key[6][4];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(key[i], sizeof(key[i]), "%u", i);
		fill(out, 100000, i);
		assert_int_equal(kvrig_put(g, key[i], out, 100000), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		io[i] = (struct xseg_kv_io){ .op = XSEG_KV_GET,
			.item = { .key = key[i], .key_bytes = 1, .value = in + i * 100000,
				.value_bytes = 100000 } };
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
	}
	for (uint32_t nr = 0; nr < 6;)
		nr += xseg_kv_wait(g->q, done, 6, 20 * KVRIG_SECOND);
	for (unsigned i = 0; i < 6; i++) {
		fill(out, 100000, i);
		assert_int_equal(io[i].result, 100000);
		assert_memory_equal(in + i * 100000, out, 100000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST(a_value_is_got_as_it_was_put),
		KV_TEST(values_of_all_sizes_are_got_as_they_were_put),
		KV_TEST(keys_of_all_sizes_work),
		KV_TEST(a_get_into_too_little_memory_says_how_much_there_is),
		KV_TEST(an_absent_key_is_not_there),
		KV_TEST(a_size_that_is_known_costs_one_request),
		KV_TEST(sizes_are_guessed_from_those_of_other_keys),
		KV_TEST(conditions_hold),
		KV_TEST(a_get_tells_what_is_known_of_the_value),
		KV_TEST(values_are_changed_in_place),
		KV_TEST(values_expire),
		KV_TEST(a_batch_is_done_as_a_whole_or_not_at_all),
		KV_TEST(a_batch_that_cannot_be_is_never_sent),
		KV_TEST(all_are_deleted_at_once),
		KV_TEST(force_and_flush_are_sent),
		KV_TEST(a_scan_tells_each_key_once),
		KV_TEST(a_scan_of_a_prefix_tells_no_other_key),
		KV_TEST(a_scan_needs_memory_for_a_key),
		KV_TEST(a_backup_tells_all_records),
		KV_TEST(more_operations_than_requests_are_done),
		KV_TEST(a_loan_is_read_where_it_is_until_it_is_released),
		KV_TEST(one_large_operation_is_out_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
