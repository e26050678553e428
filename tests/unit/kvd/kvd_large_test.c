/* kvd_large_test - large values: V1 to V4 of large.c, P1 to P4 of part.c, K1 to K3 of keep.c, W3 of
 * backup.c. A zone of the rig's log has 256 KiB, and so has a piece.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "tests/rig/kvd_rig.h"
#include "tests/rig/long.h"
#include "tests/rig/xorshift.h"

#define PIECE (256u << 10)
#define MAX   (16u * PIECE)			/* of a value here */

/* ---- what the store and the log have ---- */

static uint32_t objects(void)
{
	char name[XSEG_TARGET_MAX];
	uint32_t nr = 0, at = 0;

	while (memd_next_name(kr.store, &at, name))
		nr += strstr(name, ":own.") != NULL;
	return nr;
}

static uint32_t zones(void)
{
	struct alog_stats s;

	alog_stats(kr_kvd()->log, &s);
	return s.own_zones;
}

static uint32_t handles(void)
{
	return kr_kvd()->large.t.nr_handles;
}

/* What may be deleted is deleted, and that is stable. */
static void clean_up(void)
{
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(kr_put("a small one", "x"), 0);
		assert_int_equal(kr_flush(), 0);
		kr_pass(KVD_SECOND / 10);
	}
}

static void set_fault(const char *fail)
{
	struct xseg_error err = { "" };
	const struct opt *o = opt_find(memd_class.opts, "fail");

	assert_int_equal(opt_set(o, kr.store, fail, &err), 0);
	if (memd_class.changed)
		assert_int_equal(memd_class.changed(kr.store, o, &err), 0);
}

/* ---- a client ---- */

/* Of a request that is out. A store that failed is asked again after a while. */
static struct xreq *wait_reply(void)
{
	struct xreq *back = kr_reply();

	for (uint32_t i = 1; !back; i++, back = kr_reply()) {
		assert_true(i < 1000000);
		kr_step();
		if (i % 1000 == 0)
			kr.now_ns += KVD_SECOND;
	}
	return back;
}

static uint8_t byte_of(uint32_t seed, uint64_t at)
{
	return (uint8_t)(seed * 31 + at * 7 + at / KV_PAGE * 13 + at / PIECE);
}

static void make(uint8_t *to, uint32_t seed, uint64_t from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = byte_of(seed, from + i);
}

static struct kw_change change(uint8_t kind, const char *key)
{
	return (struct kw_change){ .kind = kind, .key = key, .key_bytes = (uint32_t)strlen(key) };
}

static int begin_value(const char *key, uint64_t total, uint64_t *handle)
{
	struct kw_change c = change(KV_BEGIN, key);
	int rc;

	c.total = total;
	rc = kr_change(&c, 1, false);
	*handle = c.number;
	return rc;
}

static struct xreq *part(uint64_t handle, uint32_t seed, uint64_t offset, uint32_t bytes,
	uint32_t slot)
{
	static uint8_t data[PIECE];
	struct xreq *r = xseg_req_alloc(kr.port);
	uint32_t pages = (uint32_t)kv_pages(bytes) * KV_PAGE;

	memset(data, 0, sizeof(data));
	make(data, seed, offset, bytes);
	kw_part(kr.seg, r, &kr.log, handle, offset, pages, kr_slot(slot));
	xseg_req_write_data(kr.seg, r, 0, data, pages);
	return r;
}

static int64_t put_part(uint64_t handle, uint32_t seed, uint64_t offset, uint32_t bytes)
{
	struct xreq *r = part(handle, seed, offset, bytes, 0);
	int64_t rc = kr_call(r);

	xseg_req_free(kr.port, r);
	return rc;
}

static uint32_t piece_of(uint64_t total, uint64_t offset)
{
	return total - offset < PIECE ? (uint32_t)(total - offset) : PIECE;
}

static void put_parts(uint64_t handle, uint32_t seed, uint64_t total)
{
	for (uint64_t at = 0; at < total; at += PIECE)
		assert_true(put_part(handle, seed, at, piece_of(total, at)) > 0);
}

static uint32_t sums[MAX / PIECE];

static struct kw_change commit(const char *key, uint64_t handle, uint32_t seed, uint64_t total)
{
	static uint8_t data[PIECE];
	struct kw_change c = change(KV_COMMIT, key);
	uint32_t nr = 0;

	for (uint64_t at = 0; at < total; at += PIECE) {
		make(data, seed, at, piece_of(total, at));
		sums[nr++] = xcrc32c(0, data, piece_of(total, at));
	}
	c.handle = handle;
	c.total = total;
	c.value = sums;
	c.value_bytes = nr * (uint32_t)sizeof(uint32_t);
	return c;
}

static int put_large(const char *key, uint32_t seed, uint64_t total, bool fua)
{
	struct kw_change c;
	uint64_t handle;
	int rc = begin_value(key, total, &handle);

	if (rc)
		return rc;
	put_parts(handle, seed, total);
	c = commit(key, handle, seed, total);
	return kr_change(&c, 1, fua);
}

static int drop(uint64_t handle)
{
	struct kw_change c = change(KV_DROP, "");

	c.handle = handle;
	return kr_change(&c, 1, false);
}

static int hold(const char *key, uint64_t version, uint64_t *handle)
{
	struct kw_change c = change(KV_HOLD, key);
	int rc;

	c.version = version;
	rc = kr_change(&c, 1, false);
	*handle = c.number;
	return rc;
}

static int64_t read_piece(const struct kv_query *query, uint8_t *to, uint32_t bytes)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kv_query q = *query;
	int64_t rc;

	q.kind = KV_PIECE;
	kw_query(kr.seg, r, &kr.log, &q, NULL, kr_slot(0), (uint32_t)kv_pages(bytes));
	rc = kr_call(r);
	if (rc > 0 && to)
		xseg_req_read_data(kr.seg, r, 0, to, bytes);
	xseg_req_free(kr.port, r);
	return rc;
}

static bool held_is(uint64_t handle, uint32_t seed, uint64_t total)
{
	static uint8_t data[PIECE];

	for (uint64_t at = 0; at < total; at += PIECE) {
		uint32_t bytes = piece_of(total, at);

		if (read_piece(&(struct kv_query){ .held = handle, .offset = at }, data, bytes) < 0)
			return false;
		for (uint32_t i = 0; i < bytes; i++)
			if (data[i] != byte_of(seed, at + i))
				return false;
	}
	return true;
}

/* The record of the key: what it says of its value. 0, or the error of the get. */
static int get_large(const char *key, struct kw_value *v, struct kv_large *l)
{
	int rc = kr_get(key, v);

	if (rc || !v->large)
		return rc ? rc : -EINVAL;
	memcpy(l, v->value, sizeof(*l));
	return v->value_bytes == sizeof(*l) + l->nr_pieces * sizeof(uint32_t) ? 0 : -EPROTO;
}

static bool is_value(const char *key, uint32_t seed, uint64_t total)
{
	struct kw_value v = { 0 };
	struct kv_large l;
	uint64_t handle;
	bool good;

	if (get_large(key, &v, &l) || l.bytes != total || hold(key, v.version, &handle))
		return false;
	good = held_is(handle, seed, total);
	return drop(handle) == 0 && good;
}

/* ---- putting and reading ---- */

static void a_large_value_is_put_and_read(void **state)
{
	static const uint64_t totals[] = { 1, KV_PAGE, PIECE, PIECE + 1, 5 * PIECE - 100, MAX };
	char key[16];

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		assert_int_equal(put_large(key, i, totals[i], false), 0);
		assert_true(is_value(key, i, totals[i]));
		assert_int_equal(kr_delete(key), 0);
		clean_up();
		assert_int_equal(objects(), 0);
	}
	assert_int_equal(handles(), 0);
}

static void parts_come_in_any_order_and_twice(void **state)
{
	uint64_t handle, total = 7 * PIECE + 5;
	struct kw_change c;

	(void)state;
	assert_int_equal(begin_value("key", total, &handle), 0);
	for (uint32_t i = 8; i-- > 0;)
		assert_true(put_part(handle, 9, i * PIECE, piece_of(total, i * PIECE)) > 0);
	for (uint32_t i = 0; i < 8; i += 2)
		assert_true(put_part(handle, 3, i * PIECE, piece_of(total, i * PIECE)) > 0);
	for (uint32_t i = 0; i < 8; i += 2)
		assert_true(put_part(handle, 9, i * PIECE, piece_of(total, i * PIECE)) > 0);
	c = commit("key", handle, 9, total);
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_true(is_value("key", 9, total));
}

static void many_parts_are_out_at_a_time(void **state)
{
	struct xreq *r[KR_SLOTS - 1], *back;
	uint64_t handle, total = (KR_SLOTS - 1) * PIECE;
	struct kw_change c;

	(void)state;
	assert_int_equal(begin_value("key", total, &handle), 0);
	for (uint32_t i = 0; i < KR_SLOTS - 1; i++) {
		r[i] = part(handle, 2, i * PIECE, PIECE, i + 1);
		kr_submit(r[i]);
	}
	c = commit("key", handle, 2, total);
	kr.store_stands = true;
	for (uint32_t i = 0; i < 50; i++)
		kr_step();
	assert_int_equal(kr_kvd()->large.parts_out, KR_SLOTS - 1);
	assert_int_equal(kr_change(&c, 1, false), -EINVAL);	/* parts are out */
	kr.store_stands = false;
	for (uint32_t nr = 0; nr < KR_SLOTS - 1;) {
		kr_step();
		back = kr_reply();
		if (!back)
			continue;
		assert_int_equal(back->result, PIECE);
		xseg_req_free(kr.port, back);
		nr++;
	}
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_true(is_value("key", 2, total));
}

/* The client's own pages are written: nothing of a part is copied in kvd. */
static void a_part_lists_the_pages_of_its_client(void **state)
{
	struct xreq *r;
	uint64_t handle;
	bool seen = false;

	(void)state;
	assert_int_equal(begin_value("key", PIECE, &handle), 0);
	r = part(handle, 1, 0, PIECE, 3);
	kr.store_stands = true;
	kr_submit(r);
	for (uint32_t i = 0; i < 20; i++) {
		struct xreq *got;

		kr_step();
		if (xseg_port_receive(kr.store->ports[0].port, &got, 1)) {
			seen = got->op == XSEG_OP_WRITE && got->page[0] == kr_slot(3)[0] &&
			       got->page[63] == kr_slot(3)[63];
			kr.store->cls->request(&kr.store->ports[0], got);
			xseg_port_flush(kr.store->ports[0].port);
		}
	}
	assert_true(seen);
	kr.store_stands = false;
	wait_reply();
	xseg_req_free(kr.port, r);
}

static void parts_beyond_the_value_are_refused(void **state)
{
	struct xreq *r;
	uint64_t handle;

	(void)state;
	assert_int_equal(begin_value("key", PIECE + 10, &handle), 0);
	assert_int_equal(put_part(handle, 1, 2 * PIECE, 10), -EINVAL);
	assert_int_equal(put_part(handle, 1, PIECE, KV_PAGE + 1), -EINVAL);
	assert_int_equal(put_part(handle, 1, KV_PAGE, 10), -EINVAL);
	assert_int_equal(put_part(handle + 1, 1, 0, 10), -EBADF);
	r = part(handle, 1, 0, KV_PAGE, 0);
	r->volume++;
	assert_int_equal(kr_call(r), -ESTALE);
	xseg_req_free(kr.port, r);
	assert_int_equal(put_part(handle, 1, PIECE, 10), KV_PAGE);
	assert_int_equal(drop(handle), 0);
	assert_int_equal(put_part(handle, 1, 0, 10), -EBADF);
	assert_int_equal(drop(handle), -EBADF);
}

static void a_range_of_a_piece_can_be_read(void **state)
{
	uint64_t handle, total = 2 * PIECE + 5000;
	uint8_t data[2 * KV_PAGE];
	struct kv_query q;

	(void)state;
	assert_int_equal(put_large("key", 4, total, false), 0);
	assert_int_equal(hold("key", 0, &handle), 0);
	q = (struct kv_query){ .held = handle, .offset = PIECE + 3 * KV_PAGE };
	assert_int_equal(read_piece(&q, data, sizeof(data)), sizeof(data));
	for (uint32_t i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], byte_of(4, q.offset + i));
	q.offset = PIECE - KV_PAGE;
	assert_int_equal(read_piece(&q, NULL, 2 * KV_PAGE), -EINVAL);
	q.offset = 2 * PIECE;
	assert_int_equal(read_piece(&q, NULL, 3 * KV_PAGE), -EINVAL);
	q.offset = 2 * PIECE + 2 * KV_PAGE;
	assert_int_equal(read_piece(&q, NULL, KV_PAGE), -EINVAL);
	q.offset = 77;
	assert_int_equal(read_piece(&q, NULL, KV_PAGE), -EINVAL);
	q.held++;
	assert_int_equal(read_piece(&q, NULL, KV_PAGE), -EBADF);
}

static void a_value_of_unknown_length_takes_space_as_it_grows(void **state)
{
	uint64_t handle, total = 9 * PIECE + 17;
	struct kw_change c;

	(void)state;
	assert_int_equal(begin_value("key", 0, &handle), 0);
	assert_int_equal(zones(), 1);
	put_parts(handle, 6, total);
	assert_true(zones() >= 10 && zones() <= 12);
	c = commit("key", handle, 6, total);
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(zones(), 10);
	assert_true(is_value("key", 6, total));
	kr_kill();
	kr_start("");
	assert_int_equal(zones(), 10);
	assert_true(is_value("key", 6, total));
}

/* ---- as a change ---- */

static void a_commit_is_a_change_with_its_conditions(void **state)
{
	struct kw_change c;
	struct kw_value v = { 0 };
	struct kv_large l;
	uint64_t handle, version;

	(void)state;
	assert_int_equal(kr_put("key", "small"), 0);
	assert_int_equal(begin_value("key", PIECE, &handle), 0);
	put_parts(handle, 1, PIECE);
	c = commit("key", handle, 1, PIECE);
	c.condition = KV_IF_ABSENT;
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	assert_true(kr_has("key", "small"));
	c.condition = KV_IF_PRESENT;
	c.client = 7;
	c.expiry = kr.date_s + 100;
	assert_int_equal(kr_change(&c, 1, false), 0);
	version = c.new_version;
	assert_int_equal(kr_change(&c, 1, false), -EBADF);
	assert_int_equal(get_large("key", &v, &l), 0);
	assert_true(v.client == 7 && v.expiry == kr.date_s + 100 && v.version == version);
	c = change(KV_PUT, "key");
	c.condition = KV_IF_VERSION;
	c.version = version;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(begin_value("key", PIECE, &handle), 0);
	c = commit("key", handle, 1, PIECE);
	c.total = PIECE - 1;
	assert_int_equal(kr_change(&c, 1, false), -EINVAL);
	c.total = PIECE;
	c.value_bytes += 4;
	assert_int_equal(kr_change(&c, 1, false), -EINVAL);
	assert_int_equal(drop(handle), 0);
}

static void changes_that_need_the_value_are_refused(void **state)
{
	struct kw_change c[2] = { change(KV_APPEND, "key"), change(KV_PUT, "other") };
	struct kw_value v = { 0 };
	struct kv_large l;

	(void)state;
	assert_int_equal(put_large("key", 5, 3 * PIECE, false), 0);
	c[0].value = "x";
	c[0].value_bytes = 1;
	assert_int_equal(kr_change(c, 1, false), -EFBIG);
	c[0].kind = KV_PREPEND;
	assert_int_equal(kr_change(c, 1, false), -EFBIG);
	c[0] = change(KV_INCR, "key");
	assert_int_equal(kr_change(c, 1, false), -EINVAL);
	c[0] = change(KV_TOUCH, "key");
	c[0].expiry = kr.date_s + 50;
	assert_int_equal(kr_change(c, 1, false), 0);
	assert_int_equal(get_large("key", &v, &l), 0);
	assert_int_equal(v.expiry, kr.date_s + 50);
	assert_true(is_value("key", 5, 3 * PIECE));
	for (uint8_t kind = KV_HOLD; kind < KV_NR_CHANGES; kind++) {
		c[0] = change(kind, "key");
		assert_int_equal(kr_change(c, 2, false), -EINVAL);
	}
	assert_int_equal(zones(), 3);
}

static void a_value_that_is_superseded_gives_its_zones_back(void **state)
{
	struct kw_change c[2] = { change(KV_PUT, "b"), change(KV_DELETE, "c") };

	(void)state;
	assert_int_equal(put_large("a", 1, 2 * PIECE, false), 0);
	assert_int_equal(put_large("b", 2, 3 * PIECE, false), 0);
	assert_int_equal(put_large("c", 3, 4 * PIECE, true), 0);
	assert_int_equal(put_large("a", 4, 5 * PIECE, false), 0);
	clean_up();
	assert_int_equal(objects(), 12);
	assert_int_equal(kr_change(c, 2, false), 0);
	clean_up();
	assert_int_equal(objects(), 5);
	assert_int_equal(zones(), 5);
	assert_true(is_value("a", 4, 5 * PIECE));
	assert_true(kr_has("c", NULL));
}

static void a_reader_has_its_version_as_long_as_it_likes(void **state)
{
	uint64_t one, two, other;

	(void)state;
	assert_int_equal(hold("key", 0, &one), -ENOENT);
	assert_int_equal(kr_put("small", "x"), 0);
	assert_int_equal(hold("small", 0, &one), -EINVAL);
	assert_int_equal(put_large("key", 1, 3 * PIECE, false), 0);
	assert_int_equal(hold("key", 77, &one), -ESTALE);
	assert_int_equal(hold("key", 0, &one), 0);
	assert_int_equal(hold("key", 0, &two), 0);
	assert_int_equal(put_large("key", 2, 4 * PIECE, true), 0);
	assert_int_equal(hold("key", 0, &other), 0);
	assert_int_equal(kr_delete("key"), 0);
	clean_up();
	kr_pass(100 * KVD_SECOND);
	assert_true(held_is(one, 1, 3 * PIECE));
	assert_true(held_is(other, 2, 4 * PIECE));
	kr_kill();
	kr_start("");
	assert_true(held_is(two, 1, 3 * PIECE));
	kr_stop();
	kr_start("");
	clean_up();
	assert_true(held_is(one, 1, 3 * PIECE) && held_is(other, 2, 4 * PIECE));
	assert_int_equal(objects(), 7);
	assert_int_equal(drop(one), 0);
	clean_up();
	assert_true(held_is(two, 1, 3 * PIECE));
	assert_int_equal(drop(two), 0);
	assert_int_equal(drop(other), 0);
	clean_up();
	assert_int_equal(objects(), 0);
	kr_stop();
	assert_int_equal(xseg_peer_find(kr.seg, "kv") == XSEG_NONE, false);
	kr_start("");
}

static void too_many_handles_are_refused(void **state)
{
	uint64_t handle[KV_HANDLES_MAX + 1];

	(void)state;
	assert_int_equal(put_large("key", 1, PIECE, false), 0);
	for (uint32_t i = 0; i < KV_HANDLES_MAX; i++)
		assert_int_equal(hold("key", 0, &handle[i]), 0);
	assert_int_equal(hold("key", 0, &handle[KV_HANDLES_MAX]), -EBUSY);
	assert_int_equal(begin_value("key", PIECE, &handle[KV_HANDLES_MAX]), -EBUSY);
	assert_int_equal(drop(handle[3]), 0);
	assert_int_equal(hold("key", 0, &handle[3]), 0);
}

/* ---- flushes: V1 ---- */

static uint64_t flushes(void)
{
	return xseg_stats_get(kr.store->ports[0].stats, PEER_STAT_FLUSHES);
}

static void the_parts_are_flushed_before_the_record(void **state)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kw_change c;
	uint64_t handle, before, end_before;

	(void)state;
	kr_kill();
	kr_start("sync=never");
	assert_int_equal(begin_value("key", 2 * PIECE, &handle), 0);
	put_parts(handle, 1, 2 * PIECE);
	before = flushes();
	end_before = alog_end(kr_kvd()->log);
	c = commit("key", handle, 1, 2 * PIECE);
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(0), KR_PAGES) > 0);
	kr.store_stands = true;
	kr_submit(r);
	for (uint32_t i = 0; i < 50; i++)
		kr_step();
	assert_int_equal(alog_end(kr_kvd()->log), end_before);
	assert_null(kr_reply());
	kr.store_stands = false;
	kr_settle();
	assert_true(flushes() > before);
	assert_true(alog_end(kr_kvd()->log) > end_before);
	assert_ptr_equal(kr_reply(), r);
	xseg_req_free(kr.port, r);
	/* its record was not flushed: the cut takes all of it, or nothing */
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", NULL) || is_value("key", 1, 2 * PIECE));
	clean_up();
	assert_int_equal(objects(), zones());
}

/* A part that is sent again after the flush is not covered by it. */
static void a_part_after_the_flush_is_flushed_too(void **state)
{
	struct kw_change c;
	uint64_t handle, before;

	(void)state;
	assert_int_equal(kr_put("key", "small"), 0);
	assert_int_equal(begin_value("key", PIECE, &handle), 0);
	put_parts(handle, 1, PIECE);
	c = commit("key", handle, 1, PIECE);
	c.condition = KV_IF_ABSENT;
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	before = flushes();
	put_parts(handle, 2, PIECE);
	c = commit("key", handle, 2, PIECE);
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_true(flushes() > before);
	assert_true(is_value("key", 2, PIECE));
}

static void a_forced_value_survives_a_loss_of_power(void **state)
{
	(void)state;
	assert_int_equal(put_large("key", 3, 5 * PIECE, true), 0);
	kr_power_cut();
	kr_start("");
	assert_true(is_value("key", 3, 5 * PIECE));
	assert_int_equal(put_large("key", 4, 6 * PIECE, false), 0);
	kr_power_cut();
	kr_start("");
	assert_true(is_value("key", 3, 5 * PIECE) || is_value("key", 4, 6 * PIECE));
	clean_up();
	assert_int_equal(objects(), zones());
	assert_true(zones() == 5 || zones() == 6);
}

static void a_flush_that_failed_fails_the_put(void **state)
{
	struct kw_change c;
	uint64_t handle;

	(void)state;
	assert_int_equal(put_large("key", 1, PIECE, true), 0);
	assert_int_equal(begin_value("key", 2 * PIECE, &handle), 0);
	put_parts(handle, 2, 2 * PIECE);
	set_fault("flush:1:EIO");
	assert_int_equal(kr_put("other", "x"), 0);
	kr_pass(3 * KVD_SECOND);		/* the flush of another change fails */
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	c = commit("key", handle, 2, 2 * PIECE);
	assert_int_equal(kr_change(&c, 1, false), -EIO);
	assert_int_equal(drop(handle), 0);
	assert_true(is_value("key", 1, PIECE));
	assert_int_equal(put_large("key", 2, 2 * PIECE, true), 0);
	assert_true(is_value("key", 2, 2 * PIECE));
}

static void a_part_that_failed_fails_the_put(void **state)
{
	struct kw_change c;
	uint64_t handle;

	(void)state;
	assert_int_equal(begin_value("key", PIECE, &handle), 0);
	set_fault("write:1:EIO");
	assert_int_equal(put_part(handle, 1, 0, PIECE), -EIO);
	set_fault("");
	assert_int_equal(put_part(handle, 1, 0, PIECE), PIECE);
	c = commit("key", handle, 1, PIECE);
	assert_int_equal(kr_change(&c, 1, false), -EIO);
	assert_true(kr_has("key", NULL));
	assert_int_equal(drop(handle), 0);
	clean_up();
	assert_int_equal(objects(), 0);
}

/* ---- deaths ---- */

/* Of kvd, at each step of a change. */
static int64_t change_with_kill(struct kw_change *c, uint32_t steps)
{
	struct xreq *r = xseg_req_alloc(kr.port), *back;
	int64_t rc;

	assert_true(kw_batch(kr.seg, r, &kr.log, c, 1, false, kr_slot(0), KR_PAGES) > 0);
	kr_submit(r);
	for (uint32_t i = 0; i < steps; i++)
		kr_step();
	kr_kill();
	assert_int_equal(kr_open("sync=written"), 0);
	back = wait_reply();
	rc = back->result;
	kw_outcomes(kr.seg, r, c, 1);
	xseg_req_free(kr.port, r);
	kr_settle();
	return rc < 0 ? rc : c->result;
}

static void a_value_is_put_once_though_kvd_dies(void **state)
{
	struct kw_change c;
	uint64_t handle;

	(void)state;
	for (uint32_t steps = 0; steps < 24; steps++) {
		c = change(KV_BEGIN, "key");
		c.total = 3 * PIECE;
		assert_int_equal(change_with_kill(&c, steps % 5), 0);
		handle = c.number;
		assert_int_equal(handles(), 1);
		assert_true(put_part(handle, steps, 0, PIECE) > 0);
		kr_kill();
		kr_start("");
		assert_true(put_part(handle, steps, PIECE, PIECE) > 0);
		assert_true(put_part(handle, steps, 2 * PIECE, PIECE) > 0);
		c = commit("key", handle, steps, 3 * PIECE);
		assert_int_equal(change_with_kill(&c, steps), 0);
		assert_int_equal(handles(), 0);
		assert_true(is_value("key", steps, 3 * PIECE));
		clean_up();
		assert_int_equal(zones(), 3);
		assert_int_equal(objects(), 3);
		c = change(KV_HOLD, "key");
		assert_int_equal(change_with_kill(&c, steps % 5), 0);
		assert_int_equal(handles(), 1);
		assert_true(held_is(c.number, steps, 3 * PIECE));
		assert_int_equal(drop(c.number), 0);
	}
}

/* In the middle of a callback. */
enum kill_at { AT_NONE, AT_OUTCOME, AT_FORGET };
static enum kill_at kill_at;
static jmp_buf killed;

void __real_kvd_outcome(struct kvd *k, const struct xreq *r, uint32_t i, int result, uint32_t bytes,
	uint64_t version, uint64_t number);
void __wrap_kvd_outcome(struct kvd *k, const struct xreq *r, uint32_t i, int result, uint32_t bytes,
	uint64_t version, uint64_t number);
void __real_large_forget(struct large *l, uint64_t number);
void __wrap_large_forget(struct large *l, uint64_t number);

static void may_die(enum kill_at at)
{
	if (kill_at != at)
		return;
	kill_at = AT_NONE;
	longjmp(killed, 1);
}

void __wrap_kvd_outcome(struct kvd *k, const struct xreq *r, uint32_t i, int result, uint32_t bytes,
	uint64_t version, uint64_t number)
{
	may_die(AT_OUTCOME);
	__real_kvd_outcome(k, r, i, result, bytes, version, number);
}

void __wrap_large_forget(struct large *l, uint64_t number)
{
	may_die(AT_FORGET);
	__real_large_forget(l, number);
}

static int change_killed_at(struct kw_change *c, enum kill_at at)
{
	struct xreq *volatile r = xseg_req_alloc(kr.port);
	struct xreq *back;

	assert_true(kw_batch(kr.seg, r, &kr.log, c, 1, false, kr_slot(0), KR_PAGES) > 0);
	kr_submit(r);
	kill_at = at;
	if (!setjmp(killed)) {
		kr_settle();
		fail_msg("it did not come there");
	}
	kr_kill();
	assert_int_equal(kr_open(""), 0);
	back = wait_reply();
	assert_int_equal(back->result, back->size);
	kw_outcomes(kr.seg, back, c, 1);
	xseg_req_free(kr.port, back);
	kr_settle();
	return c->result;
}

/* V2 of large.c, K3 of keep.c. */
static void what_was_done_and_not_told_is_not_done_again(void **state)
{
	struct kw_change c = change(KV_BEGIN, "key");
	uint64_t handle;

	(void)state;
	c.total = PIECE;
	assert_int_equal(change_killed_at(&c, AT_OUTCOME), 0);
	handle = c.number;
	assert_int_equal(handles(), 1);
	put_parts(handle, 1, PIECE);
	c = commit("key", handle, 1, PIECE);
	c.condition = KV_IF_ABSENT;
	assert_int_equal(change_killed_at(&c, AT_FORGET), 0);
	assert_int_equal(handles(), 0);
	assert_true(is_value("key", 1, PIECE));
	c = change(KV_HOLD, "key");
	assert_int_equal(change_killed_at(&c, AT_OUTCOME), 0);
	assert_int_equal(handles(), 1);
	assert_true(held_is(c.number, 1, PIECE));
	assert_int_equal(begin_value("two", PIECE, &handle), 0);
	c = change(KV_DROP, "");
	c.handle = handle;
	assert_int_equal(change_killed_at(&c, AT_OUTCOME), -EBADF);
	assert_int_equal(handles(), 1);
	clean_up();
	assert_int_equal(objects(), 1);
}

static void parts_that_were_out_when_kvd_died_are_done(void **state)
{
	struct kw_change c;
	struct xreq *r;
	uint64_t handle;

	(void)state;
	for (uint32_t steps = 0; steps < 8; steps++) {
		assert_int_equal(begin_value("key", PIECE, &handle), 0);
		r = part(handle, steps, 0, PIECE, 1);
		kr_submit(r);
		for (uint32_t i = 0; i < steps; i++)
			kr_step();
		kr_kill();
		assert_int_equal(kr_open(""), 0);
		wait_reply();
		kr_settle();
		assert_int_equal(r->result, PIECE);
		xseg_req_free(kr.port, r);
		c = commit("key", handle, steps, PIECE);
		assert_int_equal(kr_change(&c, 1, false), 0);
		assert_true(is_value("key", steps, PIECE));
	}
}

static void what_a_client_that_died_had_begun_goes(void **state)
{
	struct xseg_peer_params params = { .name = "other", .kind = "client", .nr_ports = 1,
		.nr_requests = 16 };
	struct xseg_peer *own = kr.client, *other;
	struct xport *port = kr.port;
	struct xseg_error err;
	uint64_t handle, read;

	(void)state;
	assert_int_equal(put_large("key", 1, 2 * PIECE, true), 0);
	assert_int_equal(xseg_peer_open(kr.seg, &params, &other, &err), 0);
	kr.port = xseg_peer_port(other, 0);
	assert_int_equal(begin_value("new", 3 * PIECE, &handle), 0);
	assert_true(put_part(handle, 1, 0, PIECE) > 0);
	assert_int_equal(hold("key", 0, &read), 0);
	kr.port = port;
	kr.client = own;
	assert_int_equal(kr_delete("key"), 0);
	clean_up();
	kr_pass(3 * KVD_SECOND);
	assert_int_equal(handles(), 2);
	assert_int_equal(objects(), 3);
	xseg_peer_close(other, XSEG_CLOSE_FREE_ARENA);
	kr_pass(3 * KVD_SECOND);
	assert_int_equal(handles(), 0);
	clean_up();
	assert_int_equal(objects(), 0);
	assert_int_equal(zones(), 0);
}

static void a_value_that_was_begun_is_gone_after_a_loss_of_power(void **state)
{
	uint64_t handle;

	(void)state;
	assert_int_equal(put_large("key", 1, 2 * PIECE, true), 0);
	assert_int_equal(begin_value("new", 3 * PIECE, &handle), 0);
	put_parts(handle, 2, 3 * PIECE);
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	assert_int_equal(objects(), 5);
	kr_start("");
	assert_int_equal(put_part(handle, 2, 0, PIECE), -EBADF);
	clean_up();
	assert_int_equal(objects(), 2);
	assert_true(is_value("key", 1, 2 * PIECE));
}

/* K1: what a record that cannot be read names is not known. */
static void nothing_goes_if_a_record_cannot_be_read(void **state)
{
	struct index_entry e;
	char name[XSEG_TARGET_MAX];
	uint64_t id[2], handle;
	char text[4001] = "";
	uint8_t *byte;

	(void)state;
	assert_int_equal(put_large("key", 1, 2 * PIECE, true), 0);
	kvd_identity(kr_kvd(), "key", 3, id);
	index_get(&kr_kvd()->index, index_find(&kr_kvd()->index, id), &e);
	memset(text, 't', 4000);
	for (uint32_t i = 0; i < 200; i++) {	/* its zone is sealed, and a later one says so */
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_put(name, text), 0);
		if (i == 100)
			assert_int_equal(kr_flush(), 0);
	}
	assert_int_equal(begin_value("new", PIECE, &handle), 0);
	assert_true(put_part(handle, 1, 0, PIECE) > 0);
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	snprintf(name, sizeof(name), "+kv:%016llx", (unsigned long long)e.zone);
	byte = (uint8_t *)(uintptr_t)memd_page(kr.store, name, e.place / KV_PAGE) +
	       e.place % KV_PAGE + e.bytes - 8;
	*byte ^= 1;
	kr_start("");
	clean_up();
	assert_int_equal(objects(), 3);
	assert_int_equal(hold("key", 0, &handle), -EIO);
	kr_power_cut();
	*byte ^= 1;
	kr_start("");
	clean_up();
	assert_true(is_value("key", 1, 2 * PIECE));
	assert_int_equal(objects(), 2);
}

/* ---- room ---- */

static void a_value_without_room_is_refused_before_its_data(void **state)
{
	uint64_t handle, other;
	struct kw_value v = { 0 };
	struct kv_large l;

	(void)state;
	assert_int_equal(begin_value("key", kvd_value_max(kr_kvd()) + 1, &handle), -EFBIG);
	assert_int_equal(begin_value("key", 20 * PIECE, &handle), 0);
	assert_int_equal(begin_value("two", 20 * PIECE, &other), -ENOSPC);
	assert_int_equal(kr_put("small", "x"), 0);
	assert_int_equal(drop(handle), 0);
	clean_up();
	assert_int_equal(begin_value("two", 20 * PIECE, &other), 0);
	assert_int_equal(drop(other), 0);
	assert_int_equal(put_large("old", 1, MAX, true), 0);
	assert_int_equal(kr_delete("old"), 0);
	assert_int_equal(begin_value("two", 20 * PIECE, &other), 0);	/* it waits for a flush */
	assert_int_equal(get_large("two", &v, &l), -ENOENT);
}

/* V4: what waits for room holds no one up. */
static void no_other_change_waits_for_a_value_without_room(void **state)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kw_change c = change(KV_BEGIN, "key");

	(void)state;
	assert_int_equal(put_large("old", 1, MAX, true), 0);
	assert_int_equal(kr_delete("old"), 0);
	kr.store_stands = true;
	c.total = 20 * PIECE;
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(5), KR_PAGES) > 0);
	kr_submit(r);
	for (uint32_t i = 0; i < 20; i++)
		kr_step();
	assert_int_equal(kr_put("small", "x"), 0);
	assert_true(kr_has("small", "x"));
	assert_non_null(kr_kvd()->q.begins.first);
	kr.store_stands = false;
	wait_reply();
	kw_outcomes(kr.seg, r, &c, 1);
	assert_int_equal(c.result, 0);
	xseg_req_free(kr.port, r);
}

static void a_log_that_evicts_drops_large_values(void **state)
{
	char key[16];
	uint64_t handle;

	(void)state;
	kr_kill();
	kr_start("full=evict");
	assert_int_equal(put_large("held", 99, 3 * PIECE, false), 0);
	assert_int_equal(hold("held", 0, &handle), 0);
	for (uint32_t i = 0; i < 30; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		assert_int_equal(put_large(key, i, 4 * PIECE, false), 0);
		assert_true(is_value(key, i, 4 * PIECE));
	}
	assert_true(held_is(handle, 99, 3 * PIECE));
	assert_true(is_value("k29", 29, 4 * PIECE));
	assert_true(kr_has("k0", NULL));
	assert_true(kr_counter(KS_EVICTED) > 10);
	kr_kill();
	kr_start("full=evict");
	assert_true(is_value("k29", 29, 4 * PIECE));
	assert_true(held_is(handle, 99, 3 * PIECE));
}

/* The only value that could go is one that a put by pages is about to replace: no tombstone comes
 * behind that put's record. */
static void a_value_that_a_put_is_replacing_is_not_evicted(void **state)
{
	static char text[34001 + 1];
	struct kw_change put = change(KV_PUT, "key"), c = change(KV_BEGIN, "other");
	struct xreq *r, *b;

	(void)state;
	kr_kill();
	kr_start("full=evict");
	assert_int_equal(put_large("key", 1, MAX, true), 0);
	clean_up();
	memset(text, 'p', sizeof(text) - 1);
	put.value = text;
	put.value_bytes = sizeof(text) - 1;
	c.total = 25 * PIECE;
	r = xseg_req_alloc(kr.port);
	b = xseg_req_alloc(kr.port);
	kr.store_stands = true;
	assert_true(kw_batch(kr.seg, r, &kr.log, &put, 1, false, kr_slot(1), KR_PAGES) > 0);
	kr_submit(r);
	kr_settle();
	assert_int_equal(kr_kvd()->paged.nr, 1);
	kw_batch(kr.seg, b, &kr.log, &c, 1, false, kr_slot(2), 1);
	kr_submit(b);
	kr_settle();
	assert_null(kr_reply());
	assert_non_null(kr_kvd()->q.begins.first);
	kr.store_stands = false;
	assert_ptr_equal(wait_reply(), r);
	kw_outcomes(kr.seg, r, &put, 1);
	assert_int_equal(put.result, 0);
	assert_ptr_equal(wait_reply(), b);
	kw_outcomes(kr.seg, b, &c, 1);
	assert_int_equal(c.result, 0);
	xseg_req_free(kr.port, r);
	xseg_req_free(kr.port, b);
	assert_int_equal(kr_counter(KS_EVICTED), 0);
	assert_true(kr_has("key", text));
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	kr_start("full=evict");
	assert_true(kr_has("key", text));
}

static void an_expired_value_makes_room(void **state)
{
	struct kw_change c;
	uint64_t handle;

	(void)state;
	assert_int_equal(begin_value("key", 20 * PIECE, &handle), 0);
	assert_true(put_part(handle, 1, 0, PIECE) > 0);
	c = commit("key", handle, 1, MAX);
	c.value = memset(calloc(1, 80), 0, 80);
	c.value_bytes = 80;
	c.total = 20 * PIECE;
	c.expiry = kr.date_s + 10;
	assert_int_equal(kr_change(&c, 1, true), 0);
	free((void *)(uintptr_t)c.value);
	assert_int_equal(begin_value("two", 20 * PIECE, &handle), -ENOSPC);
	kr.date_s += 20;
	kr_settle();
	assert_int_equal(hold("key", 0, &handle), -ENOENT);
	assert_int_equal(begin_value("two", 20 * PIECE, &handle), 0);
	assert_int_equal(hold("key", 0, &handle), -ENOENT);
	kr_kill();
	kr_start("");
	assert_int_equal(hold("key", 0, &handle), -ENOENT);
	assert_int_equal(zones(), 20);
	assert_true(kr_has("key", NULL));
}

/* Nobody asks for its room, and no zone of records is compacted. */
static void an_expired_value_gives_its_zones_back(void **state)
{
	struct kw_change c;
	uint64_t handle;

	(void)state;
	assert_int_equal(begin_value("key", 4 * PIECE, &handle), 0);
	assert_true(put_part(handle, 1, 0, PIECE) > 0);
	c = commit("key", handle, 1, 4 * PIECE);
	c.expiry = kr.date_s + 10;
	assert_int_equal(kr_change(&c, 1, true), 0);
	kr_pass(KVD_SECOND);
	assert_int_equal(zones(), 4);
	kr.date_s += 10;
	kr_pass(20 * KVD_SECOND);
	clean_up();
	assert_int_equal(zones(), 0);
	assert_int_equal(objects(), 0);
}

/* ---- compaction, scans, counts ---- */

static void compaction_moves_the_record_and_not_the_zones(void **state)
{
	static char text[4001];
	char key[16];
	struct alog_stats s;
	struct index_entry e, now;
	uint64_t id[2];
	uint32_t n = 1;

	(void)state;
	memset(text, 't', 4000);
	assert_int_equal(put_large("key", 8, 4 * PIECE, false), 0);
	kvd_identity(kr_kvd(), "key", 3, id);
	index_get(&kr_kvd()->index, index_find(&kr_kvd()->index, id), &e);
	for (uint32_t i = 0; i < 8000; i++) {
		n = n * 1103515245 + 12345;
		snprintf(key, sizeof(key), "k%u", (n >> 16) % 600);
		assert_int_equal(kr_put(key, text), 0);
	}
	alog_stats(kr_kvd()->log, &s);
	assert_true(s.zones_deleted > 20);
	index_get(&kr_kvd()->index, index_find(&kr_kvd()->index, id), &now);
	assert_int_not_equal(e.zone, now.zone);
	assert_true(now.large);
	assert_true(is_value("key", 8, 4 * PIECE));
	kr_kill();
	kr_start("");
	assert_true(is_value("key", 8, 4 * PIECE));
	assert_int_equal(objects(), 4);
}

static void scans_and_figures_have_the_length_of_the_value(void **state)
{
	struct kv_scan_head head;
	struct kv_scan_entry e;
	struct kv_info_of_key of;
	struct kv_info info;
	struct xreq *r = xseg_req_alloc(kr.port);

	(void)state;
	assert_int_equal(put_large("key", 8, 3 * PIECE + 1, false), 0);
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_SCAN }, NULL, kr_slot(0), 1);
	assert_int_equal(kr_call(r), r->size);
	xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
	xseg_req_read_data(kr.seg, r, sizeof(head), &e, sizeof(e));
	assert_int_equal(head.nr, 1);
	assert_int_equal(e.value_bytes, 3 * PIECE + 1);
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_EXISTS, .key_bytes = 3 }, "key",
		kr_slot(0), 1);
	assert_int_equal(kr_call(r), r->size);
	xseg_req_read_data(kr.seg, r, 0, &of, sizeof(of));
	assert_int_equal(of.large_bytes, 3 * PIECE + 1);
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_INFO }, NULL, kr_slot(0), 1);
	assert_int_equal(kr_call(r), r->size);
	xseg_req_read_data(kr.seg, r, 0, &info, sizeof(info));
	assert_int_equal(info.piece_bytes, PIECE);
	assert_true(info.value_max >= 28 * PIECE && info.live_bytes >= 3 * PIECE);
	assert_true(info.log_bytes >= 5 * PIECE);
	xseg_req_free(kr.port, r);
}

/* ---- verify, backup ---- */

static int64_t verify_says(const char *what)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	char text[2000], *at;
	int64_t n;

	r->op = XSEG_OP_ADMIN;
	r->size = KV_PAGE;
	kw_pages(r, kr_slot(0), 1);
	xseg_req_write_data(kr.seg, r, 0, "verify", 7);
	assert_true(kr_call(r) > 0);
	xseg_req_read_data(kr.seg, r, 0, text, sizeof(text) - 1);
	text[r->result] = '\0';
	at = strstr(text, what);
	n = at ? strtoll(at + strlen(what), NULL, 10) : -1;
	xseg_req_free(kr.port, r);
	return n;
}

static void verify_reads_the_pieces(void **state)
{
	struct kw_value v = { 0 };
	struct kv_large l;
	char name[XSEG_TARGET_MAX];
	uint8_t *page;

	(void)state;
	assert_int_equal(put_large("key", 8, 5 * PIECE + 100, false), 0);
	assert_int_equal(put_large("two", 9, PIECE, false), 0);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(verify_says("\npieces="), 7);
	assert_int_equal(verify_says("\nbad_pieces="), 0);
	assert_int_equal(verify_says("\nbad="), 0);
	assert_int_equal(get_large("key", &v, &l), 0);
	alog_own_target(kr_kvd()->log, l.zone + 2, name);
	page = (uint8_t *)(uintptr_t)memd_page(kr.store, name, 3);
	page[17] ^= 1;
	assert_int_equal(verify_says("\nbad_pieces="), 1);
	assert_int_equal(verify_says("\nbad_live="), 1);
	assert_int_equal(verify_says("bad=+kv:own."), (int64_t)strtoll(name + 8, NULL, 10));
	page[17] ^= 1;
	assert_int_equal(verify_says("\nbad_live="), 0);
	assert_int_equal(kr_put("key", "small"), 0);
	clean_up();
	assert_int_equal(verify_says("\npieces="), 1);
	assert_int_equal(zones(), 1);
}

struct found {
	uint64_t next;
	uint32_t nr, larges;
	bool whole;
};

/* One answer of a backup: of the key "key" or "two" the pieces are read. */
static int64_t back_up(struct found *f, uint32_t seed_of_key, uint64_t total)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kv_backup_head head;
	struct kv_backup_entry e;
	struct kv_large l;
	static uint8_t data[PIECE];
	uint32_t at = sizeof(head);
	int64_t rc;

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_BACKUP, .cursor = f->next },
		NULL, kr_slot(1), 200);
	rc = kr_call(r);
	if (rc < 0) {
		xseg_req_free(kr.port, r);
		return rc;
	}
	xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
	f->next = head.next;
	for (uint32_t i = 0; i < head.nr; i++) {
		xseg_req_read_data(kr.seg, r, at, &e, sizeof(e));
		f->nr++;
		if (e.flags & KV_BACKUP_LARGE) {
			assert_int_equal(i, head.nr - 1);
			assert_true(f->next != 0);
			xseg_req_read_data(kr.seg, r, at + (uint32_t)sizeof(e) + e.key_bytes, &l,
				sizeof(l));
			assert_int_equal(l.bytes, total);
			f->larges++;
			f->whole = true;
			for (uint64_t o = 0; o < total; o += PIECE) {
				assert_true(read_piece(&(struct kv_query){ .cursor = f->next,
					.zone = l.zone, .offset = o }, data,
					piece_of(total, o)) > 0);
				for (uint32_t n = 0; n < piece_of(total, o); n++)
					f->whole &= data[n] == byte_of(seed_of_key, o + n);
			}
		}
		at += xrecord_round((uint32_t)sizeof(e) + e.key_bytes + e.value_bytes, 8);
	}
	xseg_req_free(kr.port, r);
	return rc;
}

static void a_backup_has_large_values_as_they_were(void **state)
{
	struct found f = { .nr = 0 };
	uint64_t total = 3 * PIECE + 9;

	(void)state;
	assert_int_equal(kr_put("small", "x"), 0);
	assert_int_equal(put_large("key", 1, PIECE, true), 0);
	assert_int_equal(put_large("key", 2, total, true), 0);
	clean_up();
	assert_int_equal(back_up(&f, 2, total), 200 * KV_PAGE);
	assert_int_equal(put_large("key", 3, 2 * PIECE, true), 0);	/* after its begin */
	assert_int_equal(kr_flush(), 0);
	while (f.next)
		assert_int_equal(back_up(&f, 2, total), 200 * KV_PAGE);
	assert_int_equal(f.larges, 1);
	assert_true(f.whole);
	assert_false(kr_kvd()->large.t.kept);
	assert_int_equal(read_piece(&(struct kv_query){ .cursor = 2, .zone = 1 }, NULL, KV_PAGE),
		-ESTALE);
	clean_up();
	assert_int_equal(objects(), 2);
	assert_true(is_value("key", 3, 2 * PIECE));
}

static void a_backup_gives_way_to_a_value_that_needs_room(void **state)
{
	struct found f = { .nr = 0 };
	uint64_t handle;

	(void)state;
	assert_int_equal(put_large("key", 1, MAX, true), 0);
	assert_int_equal(back_up(&f, 1, MAX), 200 * KV_PAGE);
	assert_int_equal(kr_delete("key"), 0);
	kr_pass(2 * KVD_SECOND);
	assert_int_equal(objects(), 16);
	assert_int_equal(begin_value("two", 20 * PIECE, &handle), 0);
	assert_int_equal(back_up(&f, 1, MAX), -ESTALE);
}

/* ---- random lives ---- */

#define KEYS	4u
#define HISTORY 400u

/* All that the key has had since what is stable; the last is the newest. 0: it is not there. */
static struct life {
	uint32_t seed[HISTORY], nr, stable;
} life[KEYS];
static uint64_t random_state, test_seed;

static uint32_t rnd(uint32_t below)
{
	return xorshift_below(&random_state, below);
}

static uint64_t total_of(uint32_t seed)
{
	return (uint64_t)(seed % 3) * PIECE + 1 + seed * 977 % PIECE;
}

static const char *key_of(uint32_t k)
{
	static const char *const names[KEYS] = { "a", "b", "c", "d" };

	return names[k];
}

static void has_now(uint32_t k, uint32_t seed, bool stable)
{
	struct life *l = &life[k];

	assert_true(l->nr < HISTORY);
	l->seed[l->nr++] = seed;
	if (stable)
		for (uint32_t i = 0; i < KEYS; i++)
			life[i].stable = life[i].nr - 1;
}

/* Of a record that the store has failed to flush the outcome is an error, and not known. */
static void put_at_random(uint32_t k, uint32_t seed)
{
	struct kw_change c = change(KV_BEGIN, key_of(k));
	bool fua = rnd(3) == 0;
	uint64_t handle;
	int rc;

	c.total = rnd(4) ? total_of(seed) : 0;
	rc = rnd(5) ? kr_change(&c, 1, false) : (int)change_with_kill(&c, rnd(6));
	if (rc == -ENOSPC)
		return;
	assert_int_equal(rc, 0);
	handle = c.number;
	for (uint64_t at = 0; at < total_of(seed); at += PIECE) {
		put_part(handle, seed, at, piece_of(total_of(seed), at));
		if (rnd(10) == 0) {
			kr_kill();
			kr_start("");
		}
	}
	c = commit(key_of(k), handle, seed, total_of(seed));
	rc = rnd(4) ? kr_change(&c, 1, fua) : (int)change_with_kill(&c, rnd(20));
	if (rc == 0)
		has_now(k, seed, false);
	else
		assert_true(rc == -EIO || rc == -ENOSPC || rc == -EBADF);
	if (rc)
		drop(handle);
}

static uint32_t seed_shown(uint32_t k, bool newest)
{
	struct life *l = &life[k];

	for (uint32_t i = l->nr; i-- > (newest ? l->nr - 1 : l->stable);)
		if (l->seed[i] ? is_value(key_of(k), l->seed[i], total_of(l->seed[i]))
			       : kr_has(key_of(k), NULL))
			return l->seed[i];
	fail_msg("seed %llu: key %u: no value that it may have", (unsigned long long)test_seed, k);
	return 0;
}

static void check_lives(bool cut)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t seed = seed_shown(k, !cut);

		if (cut)
			life[k] = (struct life){ .seed = { seed }, .nr = 1 };
	}
}

/* Nothing is left but what records name. */
static void check_zones(void)
{
	uint32_t want = 0;

	set_fault("");
	kr_pass(20 * KVD_SECOND);
	clean_up();
	clean_up();
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t seed = life[k].seed[life[k].nr - 1];

		want += seed ? (uint32_t)((total_of(seed) + PIECE - 1) / PIECE) : 0;
	}
	if (zones() != want || objects() != want || handles())
		fail_msg("seed %llu: %u zones, %u objects, %u are named",
			(unsigned long long)test_seed, zones(), objects(), want);
}

static void flush_at_random(void)
{
	if (kr_flush() == 0)
		for (uint32_t k = 0; k < KEYS; k++)
			life[k].stable = life[k].nr - 1;
}

static void live(uint64_t seed)
{
	uint32_t value = 1;

	test_seed = seed;
	random_state = seed * 0x9e3779b97f4a7c15ull + 1;
	kr_begin("track_flush=yes");
	kr_start("");
	for (uint32_t k = 0; k < KEYS; k++)
		life[k] = (struct life){ .nr = 1 };
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t k = rnd(KEYS);

		set_fault("");
		if (seed % 3 == 0 && rnd(2)) {
			set_fault("flush:0.2:EIO");
			set_fault("write:0.02:EIO");
		}
		switch (rnd(12)) {
		case 0:
			flush_at_random();
			break;
		case 1:
			if (kr_delete(key_of(k)) == 0)
				has_now(k, 0, false);
			break;
		case 2:
			kr_power_cut();
			set_fault("");
			kr_start("");
			check_lives(true);
			break;
		case 3:
			set_fault("");
			kr_stop();
			kr_start("");
			break;
		case 4:
			check_zones();
			break;
		case 5:
			kr_kill();
			kr_start("");
			break;
		case 6:
			kr_pass(rnd(3) * KVD_SECOND);
			break;
		default:
			put_at_random(k, value++);
		}
		if (rnd(4) == 0)
			check_lives(false);
	}
	set_fault("");
	check_lives(false);
	check_zones();
	kr_end();
}

static uint64_t first_seed = 1, last_seed;

static void whatever_happens_large_values_are_whole(void **state)
{
	(void)state;
	for (uint64_t s = first_seed; s <= last_seed; s++)
		live(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, kr_setup, kr_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_large_value_is_put_and_read),
		T(parts_come_in_any_order_and_twice),
		T(many_parts_are_out_at_a_time),
		T(a_part_lists_the_pages_of_its_client),
		T(parts_beyond_the_value_are_refused),
		T(a_range_of_a_piece_can_be_read),
		T(a_value_of_unknown_length_takes_space_as_it_grows),
		T(a_commit_is_a_change_with_its_conditions),
		T(changes_that_need_the_value_are_refused),
		T(a_value_that_is_superseded_gives_its_zones_back),
		T(a_reader_has_its_version_as_long_as_it_likes),
		T(too_many_handles_are_refused),
		T(the_parts_are_flushed_before_the_record),
		T(a_part_after_the_flush_is_flushed_too),
		T(a_forced_value_survives_a_loss_of_power),
		T(a_flush_that_failed_fails_the_put),
		T(a_part_that_failed_fails_the_put),
		T(a_value_is_put_once_though_kvd_dies),
		T(what_was_done_and_not_told_is_not_done_again),
		T(parts_that_were_out_when_kvd_died_are_done),
		T(what_a_client_that_died_had_begun_goes),
		T(a_value_that_was_begun_is_gone_after_a_loss_of_power),
		T(a_value_without_room_is_refused_before_its_data),
		T(no_other_change_waits_for_a_value_without_room),
		T(a_log_that_evicts_drops_large_values),
		T(a_value_that_a_put_is_replacing_is_not_evicted),
		T(an_expired_value_makes_room),
		T(an_expired_value_gives_its_zones_back),
		T(compaction_moves_the_record_and_not_the_zones),
		T(scans_and_figures_have_the_length_of_the_value),
		T(verify_reads_the_pieces),
		T(a_backup_has_large_values_as_they_were),
		T(a_backup_gives_way_to_a_value_that_needs_room),
		T(nothing_goes_if_a_record_cannot_be_read),
		cmocka_unit_test(whatever_happens_large_values_are_whole),
	};

	last_seed = in_short(500, 9);
	if (argc > 1) {
		first_seed = last_seed = strtoull(argv[1], NULL, 0);
		cmocka_set_test_filter("whatever*");
	}
	if (argc > 2)
		last_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
