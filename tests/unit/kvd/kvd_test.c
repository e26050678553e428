/* kvd_test - the rules of kvd, each by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "tests/rig/kvd_rig.h"

static uint64_t stored(enum peer_stat what)	/* what memd has counted */
{
	return xseg_stats_get(kr.store->ports[0].stats, what);
}

static struct kw_change change(uint8_t kind, const char *key, const char *value)
{
	return (struct kw_change){ .kind = kind, .key = key, .key_bytes = (uint32_t)strlen(key),
		.value = value, .value_bytes = value ? (uint32_t)strlen(value) : 0 };
}

static void make_text(char *to, uint32_t bytes, char c)
{
	memset(to, c, bytes);
	to[bytes] = '\0';
}

/* All that was put is below, and the tail has been used for something else since. */
static void push_out_of_the_tail(void)
{
	static char text[30001];
	char name[32];

	make_text(text, 30000, 'f');
	for (uint32_t i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "filler%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	assert_int_equal(kr_flush(), 0);
	for (uint32_t i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "filler%u", i);
		assert_int_equal(kr_put(name, "x"), 0);
	}
	assert_int_equal(kr_put("last", text), 0);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(kr_put("last", text), 0);
	assert_int_equal(kr_flush(), 0);
}

static struct xreq *ask(uint8_t kind, const char *key, uint32_t pages, uint8_t flags)
{
	struct xreq *r = xseg_req_alloc(kr.port);

	assert_non_null(r);
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = kind,
		.key_bytes = (uint32_t)strlen(key) }, key, kr_slot(0), pages);
	r->flags = flags;
	return r;
}

static int64_t answer_of(struct xreq *r)
{
	int64_t result = kr_call(r);

	xseg_req_free(kr.port, r);
	return result;
}

/* ---- gets: K1, K2 ---- */

static void a_get_is_sent_on_with_whole_pages(void **state)
{
	uint64_t reads;
	struct xreq *r;
	uint32_t begin;

	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	push_out_of_the_tail();
	reads = stored(PEER_STAT_READS);
	r = ask(KV_GET, "key", 2, 0);
	assert_int_equal(kr_call(r), 2 * KV_PAGE);
	assert_int_equal(stored(PEER_STAT_READS), reads + 1);
	assert_int_equal(r->obj_offset % KV_PAGE, 0);
	begin = xseg_req_note(kr.seg, r, KV_NOTE_EPOCH) & 0xffffff;
	assert_int_equal(r->obj_offset + begin, xseg_req_note(kr.seg, r, KV_NOTE_PLACE) >> 32);
	assert_int_equal(xseg_req_note(kr.seg, r, KV_NOTE_TIME), 0);	/* nothing expires */
	xseg_req_free(kr.port, r);
	assert_true(kr_has("key", "value"));
}

static void a_get_from_the_tail_is_answered_by_kvd(void **state)
{
	uint64_t reads = stored(PEER_STAT_READS);

	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	kr.store_stands = true;
	assert_true(kr_has("key", "value"));
	assert_int_equal(stored(PEER_STAT_READS), reads);
}

static void a_get_never_bears_direct(void **state)
{
	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	assert_int_equal(answer_of(ask(KV_GET, "key", 1, XSEG_REQ_DIRECT | XSEG_REQ_LOAN)),
		-EINVAL);
}

static void a_record_that_does_not_fit_says_its_length(void **state)
{
	char text[10001];
	struct kw_value v = { 0 };
	struct xreq *r;

	(void)state;
	make_text(text, 10000, 't');
	assert_int_equal(kr_put("key", text), 0);
	r = ask(KV_GET, "key", 1, 0);
	assert_int_equal(kr_call(r), -EMSGSIZE);
	assert_int_equal((uint32_t)xseg_req_note(kr.seg, r, KV_NOTE_PLACE),
		xrecord_bytes(3, 10000));
	xseg_req_free(kr.port, r);
	assert_int_equal(kr_get("key", &v), 0);
	assert_int_equal(v.value_bytes, 10000);
}

/* The range of each get is moved down to end with its zone. */
static void a_get_at_the_end_of_a_zone_stays_within_it(void **state)
{
	char text[50001], name[16];

	(void)state;
	make_text(text, 50000, 'z');
	for (uint32_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "z%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	push_out_of_the_tail();
	for (uint32_t i = 0; i < 20; i++) {
		struct xreq *r;

		snprintf(name, sizeof(name), "z%u", i);
		r = ask(KV_GET, name, 60, 0);
		assert_int_equal(kr_call(r), 60 * KV_PAGE);
		assert_true(r->obj_offset + r->size <= 256 << 10);
		xseg_req_free(kr.port, r);
		assert_true(kr_has(name, text));
	}
}

static void requests_of_another_log_are_stale(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "value");

	(void)state;
	kr.log.id ^= 1 << 20;
	assert_int_equal(kr_change(&c, 1, false), -ESTALE);
	assert_int_equal(answer_of(ask(KV_GET, "key", 1, 0)), -ESTALE);
	assert_int_equal(kr_flush(), -ESTALE);
	kr.log.id ^= 1 << 20;
	assert_true(kr_has("key", NULL));
}

/* ---- changes: conditions, batches ---- */

static void conditions_are_those_of_the_moment(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "one");
	uint64_t version;

	(void)state;
	c.condition = KV_IF_PRESENT;
	assert_int_equal(kr_change(&c, 1, false), -ENOENT);
	c.condition = KV_IF_ABSENT;
	assert_int_equal(kr_change(&c, 1, false), 0);
	version = c.new_version;
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	c = change(KV_PUT, "key", "two");
	c.condition = KV_IF_VERSION;
	c.version = version + 1;
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	c.version = version;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	assert_true(kr_has("key", "two"));
}

/* The version is read from the log when the tail has it no more. */
static void a_version_is_compared_with_the_log(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "one");

	(void)state;
	assert_int_equal(kr_change(&c, 1, false), 0);
	push_out_of_the_tail();
	c.condition = KV_IF_VERSION;
	c.version = c.new_version + 7;
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	c.version = c.new_version;
	c.new_version = 0;
	assert_int_equal(kr_put("key", "one"), 0);
	push_out_of_the_tail();
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	assert_true(kr_has("key", "one"));
}

static void a_batch_is_done_as_a_whole_or_not(void **state)
{
	struct kw_change c[3] = { change(KV_PUT, "a", "1"), change(KV_PUT, "b", "2"),
		change(KV_DELETE, "absent", NULL) };

	(void)state;
	assert_int_equal(kr_change(c, 3, false), 0);
	assert_int_equal(c[2].result, -ENOENT);
	c[0] = change(KV_PUT, "a", "3");
	c[1].condition = KV_IF_ABSENT;
	assert_int_equal(kr_change(c, 2, false), -ECANCELED);
	assert_int_equal(c[1].result, -EEXIST);
	assert_true(kr_has("a", "1"));
	c[1] = change(KV_DELETE, "b", NULL);
	assert_int_equal(kr_change(c, 2, true), 0);
	assert_true(kr_has("a", "3"));
	assert_true(kr_has("b", NULL));
}

static void malformed_batches_are_refused(void **state)
{
	struct kw_change c[2] = { change(KV_PUT, "a", "1"), change(KV_PUT, "a", "2") };
	struct kv_change w;
	struct xreq *r;
	uint32_t at = sizeof(struct kv_batch);

	(void)state;
	assert_int_equal(kr_change(c, 2, false), -EINVAL);	/* twins */
	c[1] = change(KV_APPEND, "b", "2");
	assert_int_equal(kr_change(c, 2, false), -EINVAL);	/* stands alone */
	for (int what = 0; what < 8; what++) {
		static const int result[] = { -EPROTO, -EINVAL, -EINVAL, -EINVAL, -EINVAL,
			-EINVAL, -EINVAL, -EINVAL };

		r = xseg_req_alloc(kr.port);
		kw_batch(kr.seg, r, &kr.log, c, 1, false, kr_slot(0), KR_PAGES);
		xseg_req_read_data(kr.seg, r, at, &w, sizeof(w));
		switch (what) {
		case 0: w.data_crc++; break;
		case 1: w.key_at = r->size; break;
		case 2: w.value_at = UINT32_MAX; break;
		case 3: w.key_bytes = 0; break;
		case 4: w.kind = KV_NR_CHANGES; break;
		case 5: w.value_bytes = UINT32_MAX - 3; break;
		case 6: w.kind = KV_NR_CHANGES + 1; break;
		default: w.condition = 9;
		}
		xseg_req_write_data(kr.seg, r, at, &w, sizeof(w));
		assert_int_equal(kr_call(r), result[what]);
		xseg_req_free(kr.port, r);
	}
	assert_true(kr_has("a", NULL));
}

static void a_value_that_is_too_large_is_refused(void **state)
{
	static char text[60001];

	(void)state;
	make_text(text, 60000, 'l');
	assert_int_equal(kr_put("key", text), -EFBIG);
	make_text(text, 50000, 'l');
	assert_int_equal(kr_put("key", text), 0);
	assert_int_equal(kr_change((struct kw_change[]){ change(KV_APPEND, "key", text) }, 1,
		false), -EFBIG);
	assert_true(kr_has("key", text));
}

/* ---- new values of old ones ---- */

static void values_are_made_of_those_in_the_log(void **state)
{
	struct kw_change c = change(KV_PUT, "n", "18446744073709551615");
	struct kw_value v = { 0 };
	uint64_t version;

	(void)state;
	c.client = 77;
	c.expiry = kr.date_s + 100;
	assert_int_equal(kr_change(&c, 1, false), 0);
	version = c.new_version;
	push_out_of_the_tail();
	c = change(KV_TOUCH, "n", NULL);
	c.expiry = kr.date_s + 1000;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_get("n", &v), 0);
	assert_int_equal(v.version, version);
	assert_int_equal(v.expiry, kr.date_s + 1000);
	push_out_of_the_tail();
	c = change(KV_INCR, "n", NULL);
	c.amount = 3;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(c.number, 2);
	c = change(KV_DECR, "n", NULL);
	c.amount = 9;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_true(kr_has("n", "0"));
	assert_int_equal(kr_change((struct kw_change[]){ change(KV_PREPEND, "n", "<") }, 1,
		false), 0);
	assert_int_equal(kr_change((struct kw_change[]){ change(KV_APPEND, "n", ">") }, 1,
		false), 0);
	assert_int_equal(kr_get("n", &v), 0);
	assert_memory_equal(v.value, "<0>", 3);
	assert_int_equal(v.client, 77);
	assert_int_equal(v.expiry, kr.date_s + 1000);
	assert_true(v.version > version);
	c = change(KV_INCR, "n", NULL);
	assert_int_equal(kr_change(&c, 1, false), -EINVAL);
}

/* K19: two INCRs of one key whose value is in the log both read it, and both count. */
static void changes_of_a_key_are_one_after_the_other(void **state)
{
	struct kw_change c = change(KV_INCR, "n", NULL);
	struct xreq *r[4];

	(void)state;
	assert_int_equal(kr_put("n", "10"), 0);
	push_out_of_the_tail();
	c.amount = 1;
	for (uint32_t i = 0; i < 4; i++) {
		r[i] = xseg_req_alloc(kr.port);
		kw_batch(kr.seg, r[i], &kr.log, &c, 1, false, kr_slot(i), KR_PAGES);
		kr_submit(r[i]);
	}
	kr_settle();
	for (uint32_t i = 0; i < 4; i++)
		xseg_req_free(kr.port, kr_reply());
	assert_true(kr_has("n", "14"));
}

/* ---- done once: K11 ---- */

/* It is APPLIED, and waits for a flush, when kvd dies. */
static void a_change_is_done_once_though_kvd_dies(void **state)
{
	struct kw_change c = change(KV_INCR, "n", NULL);
	struct xreq *r = xseg_req_alloc(kr.port);

	(void)state;
	assert_int_equal(kr_put("n", "10"), 0);
	c.amount = 1;
	kw_batch(kr.seg, r, &kr.log, &c, 1, true, kr_slot(0), KR_PAGES);
	kr.store_stands = true;
	kr_submit(r);
	kr_settle();
	assert_null(kr_reply());
	kr_kill();
	kr.store_stands = false;
	for (int i = 0; i < 50; i++)
		kr_step();
	assert_int_equal(kr_open(""), 0);
	kr_settle();
	assert_ptr_equal(kr_reply(), r);
	kw_outcomes(kr.seg, r, &c, 1);
	assert_int_equal(r->result, r->size);
	assert_int_equal(c.number, 11);
	xseg_req_free(kr.port, r);
	assert_true(kr_has("n", "11"));
}

static void what_was_put_survives_a_kill_and_a_stop(void **state)
{
	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	kr.store_stands = true;
	assert_int_equal(kr_put("b", "2"), 0);
	assert_int_equal(kr_delete("a"), 0);
	kr_kill();
	kr.store_stands = false;
	for (int i = 0; i < 50; i++)
		kr_step();
	kr_start("");
	assert_true(kr_has("a", NULL));
	assert_true(kr_has("b", "2"));
	kr_stop();
	kr_start("");
	assert_true(kr_has("a", NULL));
	assert_true(kr_has("b", "2"));
}

static void a_flush_is_answered_when_all_is_stable(void **state)
{
	uint64_t end;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kr_put("a", "1"), 0);
		end = alog_end(kr_kvd()->log);
		assert_true(alog_stable(kr_kvd()->log) < end);
		assert_int_equal(kr_flush(), 0);
		assert_true(alog_stable(kr_kvd()->log) >= end);
	}
}

/* A clean stop leaves nothing in the segment, and the next opening reads hints alone. */
static void a_stop_leaves_no_arena(void **state)
{
	struct xseg_peer_info info;
	struct alog_stats s;

	(void)state;
	push_out_of_the_tail();
	kr_stop();
	assert_true(xseg_peer_get_info(kr.seg, xseg_peer_find(kr.seg, "kv"), &info));
	assert_int_equal(info.arena_bytes, 0);
	kr_start("");
	assert_true(kr_has("filler3", "x"));
	alog_stats(kr_kvd()->log, &s);
	assert_true(s.zones > 0);
	assert_int_equal(s.opened_by_hints, s.zones);
}

/* Not quiet: a request of kvd's own is at the peer below, and has pages of the arena. */
static void a_kvd_whose_requests_are_out_is_not_quiet(void **state)
{
	uint64_t left;

	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	kr_stop();
	kr.store_stands = true;
	assert_int_equal(kr_open(""), 0);
	for (int i = 0; i < 20; i++)
		kr_step();
	assert_true(kr_kvd()->log_out > 0);
	peer_stop(kr.kvd);
	assert_false(kr.kvd->cls->quiesced(kr.kvd, &left));
	kr.store_stands = false;
	kr_stop();
	kr_start("");
	assert_true(kr_has("a", "1"));
}

/* Ids that a head reserves and nobody uses are no zones: memd reads them as zeroes. */
static void ids_that_were_not_used_are_no_zones(void **state)
{
	struct alog_stats s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kr_put("a", "1"), 0);
		kr_kill();
		kr_start("");
	}
	alog_stats(kr_kvd()->log, &s);
	assert_in_range(s.zones, 1, 3);
}

/* ---- answers: sync, FUA, FLUSH ---- */

static uint64_t flushed;			/* while the put of is_answered() was out */

static bool is_answered(const char *options, bool fua, bool stands)
{
	struct kw_change c = change(KV_PUT, "key", "value");
	struct xreq *r = xseg_req_alloc(kr.port);
	bool back;

	kr_kill();
	kr_start(options);
	flushed = stored(PEER_STAT_FLUSHES);
	kr.store_stands = stands;
	kw_batch(kr.seg, r, &kr.log, &c, 1, fua, kr_slot(0), KR_PAGES);
	kr_submit(r);
	kr_settle();
	back = kr_reply() != NULL;
	if (!back) {
		kr.store_stands = false;
		kr_settle();
		assert_ptr_equal(kr_reply(), r);
	}
	kr.store_stands = false;
	flushed = stored(PEER_STAT_FLUSHES) - flushed;
	xseg_req_free(kr.port, r);
	return back;
}

static void a_put_is_answered_as_sync_says(void **state)
{
	(void)state;
	assert_true(is_answered("sync=never", false, true));
	assert_true(is_answered("sync=1s", false, true));
	assert_false(is_answered("sync=written", false, true));
	assert_false(is_answered("sync=always", false, true));
	assert_false(is_answered("sync=never", true, true));
	assert_true(is_answered("sync=written", false, false));
	assert_int_equal(flushed, 0);
	assert_true(is_answered("sync=always", false, false));
	assert_int_equal(flushed, 1);
}

static void what_was_put_goes_below_after_the_time(void **state)
{
	uint64_t flushes, writes;

	(void)state;
	kr_kill();
	kr_start("sync=never");
	writes = stored(PEER_STAT_WRITES);
	assert_int_equal(kr_put("a", "1"), 0);
	kr_settle();
	assert_int_equal(stored(PEER_STAT_WRITES), writes);
	flushes = stored(PEER_STAT_FLUSHES);
	kr_pass(2 * KVD_SECOND);
	assert_true(stored(PEER_STAT_WRITES) > writes);
	assert_int_equal(stored(PEER_STAT_FLUSHES), flushes);
	kr_kill();
	kr_start("sync=100ms");
	assert_int_equal(kr_put("a", "2"), 0);
	kr_settle();
	flushes = stored(PEER_STAT_FLUSHES);
	kr_pass(KVD_SECOND / 5);
	assert_int_equal(stored(PEER_STAT_FLUSHES), flushes + 1);
}

/* The time goes on with the successor, though nothing more is put. */
static void what_was_put_before_a_kill_is_stable_after_the_time(void **state)
{
	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	kr_kill();
	kr_start("");
	kr_pass(2 * KVD_SECOND);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("a", "1"));
}

static void a_flush_makes_all_stable(void **state)
{
	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	assert_int_equal(kr_put("b", "1"), 0);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(kr_put("b", "2"), 0);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("a", "1"));
	assert_true(kr_has("b", "1") || kr_has("b", "2"));
}

/* What an earlier process left unflushed below is the FLUSH's matter, too. */
static void a_flush_with_nothing_new_goes_below(void **state)
{
	uint64_t flushes;

	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	assert_int_equal(kr_flush(), 0);
	flushes = stored(PEER_STAT_FLUSHES);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(stored(PEER_STAT_FLUSHES), flushes + 1);
}

/* ---- expiry: K9 ---- */

static void what_has_expired_never_comes_back(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "short");

	(void)state;
	assert_int_equal(kr_put("key", "for ever"), 0);
	assert_int_equal(kr_flush(), 0);
	c.expiry = kr.date_s + 10;
	assert_int_equal(kr_change(&c, 1, true), 0);
	assert_true(kr_has("key", "short"));
	kr.date_s += 9;
	kr_settle();
	assert_true(kr_has("key", "short"));
	kr.date_s += 1;
	kr_settle();
	assert_true(kr_has("key", NULL));
	kr.date_s -= 5000;			/* the date jumps back */
	kr_settle();
	assert_true(kr_has("key", NULL));
	assert_int_equal(answer_of(ask(KV_EXISTS, "key", 1, 0)), -ENOENT);
	kr_kill();
	kr_start("");
	assert_true(kr_has("key", NULL));
	kr_settle();
	kr_power_cut();
	kr_start("");
	kr_settle();
	assert_true(kr_has("key", NULL));
}

/* kvd does not look into a record that it sends on, so it does not know that its client found it
 * expired. */
static void what_a_client_found_expired_stays_away_when_power_fails(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "short");

	(void)state;
	c.expiry = kr.date_s + 10;
	assert_int_equal(kr_change(&c, 1, true), 0);
	push_out_of_the_tail();
	kr.date_s += 10;
	assert_true(kr_has("key", NULL));
	kr.date_s -= 5000;			/* both at once */
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", NULL));
}

/* The head may say a later time than it was, and no process has lost its own one. */
static void a_kill_makes_no_value_expire_early(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "short");

	(void)state;
	c.expiry = kr.date_s + 2;
	assert_int_equal(kr_change(&c, 1, true), 0);
	kr_settle();
	kr_kill();
	kr_start("");
	assert_true(kr_has("key", "short"));
	kr_stop();
	kr_start("");
	assert_true(kr_has("key", "short"));
	kr.date_s += 2;
	assert_true(kr_has("key", NULL));
}

/* Nothing came for an hour. Then the head is to have the time before the first answer, if it can be
 * written. */
static void a_get_waits_for_the_heads_time_and_not_for_ever(void **state)
{
	struct kw_change c = change(KV_PUT, "key", "short");
	struct xreq *r;

	(void)state;
	c.expiry = kr.date_s + 100;
	assert_int_equal(kr_change(&c, 1, true), 0);
	kr_settle();
	kr.store_stands = true;
	kr.date_s += 3600;
	r = ask(KV_EXISTS, "key", 1, 0);
	kr_submit(r);
	kr_settle();
	assert_null(kr_reply());
	kr_pass(2 * KVD_SECOND);
	kr_settle();
	assert_ptr_equal(kr_reply(), r);
	assert_true(r->result >= 0);		/* it is not known to have expired */
	xseg_req_free(kr.port, r);
	kr.store_stands = false;
	kr_settle();
	assert_true(kr_has("key", NULL));
}

/* ---- damage: K20 ---- */

static void damage(const char *key)
{
	struct xreq *r = ask(KV_GET, key, 1, 0);
	char name[XSEG_TARGET_MAX];
	uint32_t place;
	uint8_t *page;

	kr_call(r);
	place = (uint32_t)(xseg_req_note(kr.seg, r, KV_NOTE_PLACE) >> 32) + 70;
	snprintf(name, sizeof(name), "+kv:%016llx",
		(unsigned long long)xseg_req_note(kr.seg, r, KV_NOTE_ZONE));
	xseg_req_free(kr.port, r);
	page = (uint8_t *)(uintptr_t)memd_page(kr.store, name, place / KV_PAGE);
	assert_non_null(page);
	page[place % KV_PAGE] ^= 0x55;
}

static void a_damaged_record_is_an_error_and_counted_once(void **state)
{
	struct kw_change c = change(KV_APPEND, "key", "x");
	struct kw_value v = { 0 };

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	assert_int_equal(kr_put("key", "a value that will be damaged"), 0);
	push_out_of_the_tail();
	damage("key");
	for (int i = 0; i < 3; i++)
		assert_int_equal(kr_get("key", &v), -EIO);
	assert_int_equal(kr_change(&c, 1, false), -EIO);
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 1);
	assert_int_equal(kr_put("key", "new"), 0);
	assert_true(kr_has("key", "new"));
}

/* The last zone is not full. It has hints all the same, so the key is known without its record. */
static void damage_behind_a_stop_is_an_error_as_well(void **state)
{
	struct kw_value v = { 0 };

	(void)state;
	assert_int_equal(kr_put("key", "a value that will be damaged"), 0);
	assert_int_equal(kr_put("other", "stays"), 0);
	kr_stop();
	kr_start("");
	damage("key");
	kr_stop();
	kr_start("");
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_true(kr_has("other", "stays"));
}

/* ---- verify, preload ---- */

static bool verify_says(const char *what)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	char text[2000];
	bool says;

	r->op = XSEG_OP_ADMIN;
	r->size = KV_PAGE;
	kw_pages(r, kr_slot(0), 1);
	xseg_req_write_data(kr.seg, r, 0, "verify", 7);
	assert_true(kr_call(r) > 0);
	xseg_req_read_data(kr.seg, r, 0, text, sizeof(text) - 1);
	text[r->result] = '\0';
	says = strstr(text, what) != NULL;
	if (!says)
		print_message("%s", text);
	xseg_req_free(kr.port, r);
	return says;
}

/* Other keys are put, so that zones are emptied. */
static void empty_zones(void)
{
	static char text[4001];
	struct alog_stats before, after;
	char name[16];

	make_text(text, 4000, 'g');
	alog_stats(kr_kvd()->log, &before);
	for (uint32_t i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "g%u", i * 7919 % 300);
		assert_int_equal(kr_put(name, text), 0);
	}
	alog_stats(kr_kvd()->log, &after);
	assert_true(after.zones_deleted > before.zones_deleted + 20);
}

/* The record goes with its zone. A record that says so takes its place. */
static void a_damaged_record_is_an_error_when_its_zone_is_gone(void **state)
{
	struct kw_change c = change(KV_INCR, "count", NULL);
	struct kw_value v = { 0 };

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	assert_int_equal(kr_put("count", "1"), 0);
	push_out_of_the_tail();
	assert_int_equal(kr_put("key", "a value that will be damaged"), 0);
	assert_int_equal(kr_put("count", "2222"), 0);
	push_out_of_the_tail();
	damage("key");
	damage("count");
	for (int i = 0; i < 2; i++) {
		empty_zones();
		assert_int_equal(kr_get("key", &v), -EIO);
		assert_int_equal(kr_change(&c, 1, false), -EIO);
		assert_int_equal(kr_counter(KS_BAD_RECORDS), 2);
	}
	kr_kill();
	kr_start("");
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 3);
	kr_stop();
	kr_start("");
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_true(verify_says("bad_live=2\n"));
	assert_int_equal(kr_put("key", "new"), 0);
	assert_int_equal(kr_delete("count"), 0);
	kr_stop();
	kr_start("");
	assert_true(kr_has("key", "new"));
	assert_true(kr_has("count", NULL));
	assert_true(verify_says("bad_live=0\n"));
}

static void verify_finds_what_is_damaged(void **state)
{
	(void)state;
	assert_int_equal(kr_put("key", "a value that will be damaged"), 0);
	push_out_of_the_tail();
	assert_true(verify_says("\nbad=0\nbad_live=0\n"));
	assert_true(verify_says("live=14\n"));
	damage("key");
	assert_true(verify_says("bad=1\nbad_live=1\n"));
	assert_true(verify_says("live=yes\n"));
}

/* The keys "b0" to "b99" as a backup has them; `next` is what it says. */
struct backup {
	uint64_t next, sequence[100];
	char value[100];			/* the first letter; 0: deleted */
};

static int backup_some(struct backup *b, uint32_t pages)
{
	struct kv_backup_head head;
	struct kv_backup_entry e;
	struct xreq *r = xseg_req_alloc(kr.port);
	uint32_t at = sizeof(head), n;
	int64_t rc;
	char key[16] = "";

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_BACKUP, .cursor = b->next },
		NULL, kr_slot(0), pages);
	rc = kr_call(r);
	xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
	for (uint32_t i = 0; rc >= 0 && i < head.nr; i++) {
		xseg_req_read_data(kr.seg, r, at, &e, sizeof(e));
		if (e.flags & KV_BACKUP_SET && e.key_bytes < sizeof(key)) {
			xseg_req_read_data(kr.seg, r, at + (uint32_t)sizeof(e), key, e.key_bytes);
			key[e.key_bytes] = '\0';
			if (sscanf(key, "b%u", &n) == 1 && n < 100 &&
				b->sequence[n] <= e.sequence) {
				b->sequence[n] = e.sequence;
				xseg_req_read_data(kr.seg, r,
					at + (uint32_t)sizeof(e) + e.key_bytes, &b->value[n], 1);
			}
		}
		at += xrecord_round((uint32_t)sizeof(e) + e.key_bytes + e.value_bytes, 8);
	}
	b->next = head.next;
	xseg_req_free(kr.port, r);
	return rc < 0 ? (int)rc : 0;
}

static void a_backup_is_the_state_of_its_begin(void **state)
{
	static struct backup b;
	static char text[3001];
	char name[16];

	(void)state;
	b = (struct backup){ 0 };
	make_text(text, 3000, 'o');
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	make_text(text, 3000, 'n');
	for (uint32_t i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	assert_int_equal(backup_some(&b, 2), 0);
	assert_true(b.next);
	make_text(text, 3000, 'x');
	for (uint32_t i = 0; b.next; i++) {	/* all is overwritten and compacted meanwhile */
		snprintf(name, sizeof(name), "b%u", i % 100);
		assert_int_equal(kr_put(name, text), 0);
		assert_int_equal(backup_some(&b, 2), 0);
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(b.value[i], i < 50 ? 'n' : 'o');
	b.next = 77;
	assert_int_equal(backup_some(&b, 2), -ESTALE);
	b.next = 0;
	assert_int_equal(backup_some(&b, 2), 0);
	b.next = 0;
	assert_int_equal(backup_some(&b, 2), -EBUSY);
	kr_pass(120 * KVD_SECOND);		/* the client is gone */
	b.next = 0;
	assert_int_equal(backup_some(&b, 2), 0);
}

static void preload_reads_the_zones(void **state)
{
	uint64_t reads;

	(void)state;
	push_out_of_the_tail();
	kr_stop();
	reads = stored(PEER_STAT_READ_BYTES);
	kr_start("preload=all");
	kr_settle();
	assert_true(kr_counter(KS_PRELOADED_BYTES) >= 256 << 10);
	assert_true(stored(PEER_STAT_READ_BYTES) - reads >= kr_counter(KS_PRELOADED_BYTES));
	kr_stop();
	kr_start("preload=256k");
	assert_in_range(kr_counter(KS_PRELOADED_BYTES), 512 << 10, 4 << 20);
	assert_true(kr_has("filler3", "x"));
}

/* ---- what is full: K22 ---- */

static void a_full_index_refuses_new_keys_only(void **state)
{
	char name[16];

	(void)state;
	kr_kill();
	kr_start("keys=20");
	for (uint32_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_put(name, "1"), 0);
	}
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	assert_int_equal(kr_put("k3", "2"), 0);
	assert_int_equal(kr_delete("k4"), 0);
	assert_true(kr_has("k3", "2"));
	kr_kill();
	assert_int_equal(kr_open("keys=19"), 0);
	kr_settle();
	assert_int_equal(answer_of(ask(KV_GET, "k3", 1, 0)), -ENOSPC);
}

static void a_full_log_refuses_puts_and_takes_deletes(void **state)
{
	static char text[50001];
	char name[16];
	uint32_t n = 0;

	(void)state;
	make_text(text, 50000, 'f');
	do
		snprintf(name, sizeof(name), "k%u", n);
	while (kr_put(name, text) == 0 && ++n < 1000);
	assert_in_range(n, 50, 170);
	assert_int_equal(kr_put("k0", text), -ENOSPC);
	for (uint32_t i = 0; i < n; i += 2) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_delete(name), 0);
	}
	for (int i = 0; kr_put("new", text) && i < 100; i++)
		kr_pass(KVD_SECOND);
	assert_true(kr_has("new", text));
	assert_true(kr_has("k1", text));
	assert_true(kr_has("k0", NULL));
}

/* K10 */
static void a_full_log_evicts_what_was_not_got(void **state)
{
	static char text[20001];
	char name[16];
	uint32_t there = 0;

	(void)state;
	kr_kill();
	kr_start("full=evict");
	make_text(text, 20000, 'e');
	assert_int_equal(kr_put("twice", "old"), 0);
	assert_int_equal(kr_put("hot", text), 0);
	for (uint32_t i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_put(name, text), 0);
		if (i == 5)
			assert_int_equal(kr_put("twice", "new"), 0);
		if (i % 50 == 0)
			assert_true(kr_has("hot", text));
	}
	assert_true(kr_counter(KS_EVICTED) > 500);
	assert_true(kr_has("k0", NULL));
	assert_true(kr_has("k1499", text));
	assert_true(kr_has("twice", NULL));
	kr_kill();
	kr_start("full=evict");
	assert_true(kr_has("twice", NULL));
	assert_true(kr_has("hot", text));
	for (uint32_t i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		there += kr_has(name, text);
	}
	assert_in_range(there, 150, 400);
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	kr_start("full=evict");
	assert_true(kr_has("twice", NULL));
	assert_true(kr_has("k1499", text));
}

/* As an export does. */
static int64_t get_once(const char *key)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	int64_t result;

	assert_non_null(r);
	kw_query(kr.seg, r, &kr.log,
		&(struct kv_query){ .kind = KV_GET, .key_bytes = (uint32_t)strlen(key) }, key,
		kr_slot(0), 6);
	r->flags |= XSEG_REQ_ONCE;
	result = kr_call(r);
	xseg_req_free(kr.port, r);
	return result;
}

static void a_get_that_keeps_nothing_saves_no_value(void **state)
{
	static char text[20001];
	char name[16];

	(void)state;
	kr_kill();
	kr_start("full=evict");
	make_text(text, 20000, 'e');
	assert_int_equal(kr_put("hot", text), 0);
	assert_int_equal(kr_put("read", text), 0);
	for (uint32_t i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_put(name, text), 0);
		if (i % 50 == 0)
			assert_true(kr_has("hot", text));
		if (i % 50 == 0 && i < 100)
			assert_true(get_once("read") > 0);
	}
	assert_true(kr_has("hot", text));
	assert_int_equal(get_once("read"), -ENOENT);
}

static void a_full_index_evicts_too(void **state)
{
	static char text[20001];
	char name[16];

	(void)state;
	kr_kill();
	kr_start("full=evict keys=100");
	make_text(text, 20000, 'e');
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	assert_true(kr_has("k999", text));
	assert_true(kr_kvd()->index.used <= 100);
}

/* ---- SCAN: K23 ---- */

struct seen {
	uint32_t nr, times[400];
	uint64_t next;
};

static void scan_some(struct seen *s, const char *prefix, uint32_t pages)
{
	struct kv_scan_head head;
	struct kv_scan_entry e;
	struct xreq *r = xseg_req_alloc(kr.port);
	uint32_t at = sizeof(head), n;
	char key[32];

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_SCAN, .cursor = s->next,
		.key_bytes = (uint32_t)strlen(prefix) }, prefix, kr_slot(0), pages);
	assert_int_equal(kr_call(r), r->size);
	xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
	for (uint32_t i = 0; i < head.nr; i++) {
		xseg_req_read_data(kr.seg, r, at, &e, sizeof(e));
		assert_in_range(e.key_bytes, 1, sizeof(key) - 1);
		xseg_req_read_data(kr.seg, r, at + (uint32_t)sizeof(e), key, e.key_bytes);
		key[e.key_bytes] = '\0';
		assert_memory_equal(key, prefix, strlen(prefix));
		if (sscanf(key, "s%u", &n) == 1 && n < 400)
			s->times[n]++;
		s->nr++;
		at += xrecord_round((uint32_t)sizeof(e) + e.key_bytes, 8);
	}
	assert_int_equal(at, head.bytes);
	s->next = head.next;
	xseg_req_free(kr.port, r);
}

static void a_scan_names_each_key_once_while_others_change(void **state)
{
	struct seen s = { 0 };
	char name[32], text[2001];
	uint32_t round = 0;

	(void)state;
	make_text(text, 2000, 's');
	for (uint32_t i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(kr_put(name, text), 0);
	}
	do {
		scan_some(&s, "", 1);
		for (uint32_t i = 0; i < 30; i++, round++) {
			snprintf(name, sizeof(name), "other%u", round);
			assert_int_equal(kr_put(name, text), 0);
			snprintf(name, sizeof(name), "other%u", round / 2);
			assert_true(kr_delete(name) <= 0);
			snprintf(name, sizeof(name), "s%u", round % 400);
			assert_int_equal(kr_put(name, text), 0);
		}
	} while (s.next);
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(s.times[i], 1);
	s = (struct seen){ 0 };
	do
		scan_some(&s, "s12", 2);
	while (s.next);
	assert_int_equal(s.nr, 11);
}

/* ---- starts that are refused: K13 ---- */

static struct xreq *begin_scan(uint32_t slot)
{
	struct xreq *r = xseg_req_alloc(kr.port);

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_SCAN }, "", kr_slot(slot), 4);
	kr_submit(r);
	return r;
}

static uint32_t entries_of(struct xreq *r)
{
	struct kv_scan_head head;

	assert_int_equal(r->result, r->size);
	xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
	assert_int_equal(head.next, 0);
	xseg_req_free(kr.port, r);
	return head.nr;
}

/* Two at a time: the second one may have no read ahead. */
static void a_scan_reads_many_records_at_a_time(void **state)
{
	struct xreq *r[2];
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(kr_put(name, "value"), 0);
	}
	push_out_of_the_tail();
	kr_settle();
	kr.store_stands = true;
	r[0] = begin_scan(0);
	r[1] = begin_scan(1);
	kr_settle();
	assert_in_range(kr_kvd()->reads.out, KVD_AHEAD_READS / 2, KVD_AHEAD_READS + 1);
	kr.store_stands = false;
	kr_settle();
	assert_non_null(kr_reply());
	assert_non_null(kr_reply());
	assert_int_equal(entries_of(r[0]), 60 + 13);
	assert_int_equal(entries_of(r[1]), 60 + 13);
	assert_int_equal(kr_kvd()->reads.out, 0);
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		assert_null(kr_kvd()->jobs.ahead[i].read);
}

/* Keys are put, deleted and moved while records are read ahead. */
static void a_scan_drops_what_is_not_next(void **state)
{
	struct xreq *r;
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(kr_put(name, "value"), 0);
	}
	push_out_of_the_tail();
	kr_settle();
	kr.store_stands = true;
	r = begin_scan(1);
	kr_settle();
	for (uint32_t i = 0; i < 100; i += 2) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(i % 4 ? kr_put(name, "new") : kr_delete(name), 0);
	}
	kr.store_stands = false;
	kr_settle();
	assert_ptr_equal(kr_reply(), r);
	assert_int_equal(entries_of(r), 75 + 13);
	assert_int_equal(kr_kvd()->reads.out, 0);
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		assert_null(kr_kvd()->jobs.ahead[i].read);
}

static void a_prefix_has_one_kvd(void **state)
{
	struct peer *first = kr.kvd;

	(void)state;
	kr.kvd = NULL;
	assert_int_equal(kr_open("prefix=kv"), -EEXIST);	/* the rig's own has this name */
	kr.kvd = peer_create(&kvd_class);
	snprintf(kr.kvd->name, sizeof(kr.kvd->name), "second");
	assert_int_equal(opt_set(opt_find(kvd_class.opts, "prefix"), kr.kvd, "kv", NULL), 0);
	assert_int_equal(opt_set(opt_find(kvd_class.opts, "size"), kr.kvd, "64M", NULL), 0);
	assert_int_equal(peer_open(kr.kvd, kr.seg, NULL), -EBUSY);
	peer_destroy(kr.kvd);
	assert_int_not_equal(opt_set(opt_find(kvd_class.opts, "prefix"), first, "volumed", NULL),
		0);
	kr.kvd = first;
	assert_true((kr_kvd()->id & 0xffff) >= KVD_ID_FROM);
	assert_int_equal(kr_put("a", "1"), 0);
}

static void another_geometry_is_refused_while_values_are_in_the_tail(void **state)
{
	(void)state;
	assert_int_equal(kr_put("a", "1"), 0);
	kr.store_stands = true;
	kr_kill();
	kr.store_stands = false;
	assert_int_equal(kr_open("tail=512k"), -EINVAL);
	kr_start("");
	assert_true(kr_has("a", "1"));
}

/* ---- compaction ---- */

static void overwrites_are_compacted_and_all_values_stay(void **state)
{
	static char text[4001];
	char name[16];
	struct alog_stats s;

	(void)state;
	for (uint32_t i = 0; i < 8000; i++) {
		snprintf(name, sizeof(name), "k%u", i * 7919 % 600);
		make_text(text, 1000 + i % 3000, (char)('a' + i % 26));
		assert_int_equal(kr_put(name, text), 0);
	}
	alog_stats(kr_kvd()->log, &s);
	assert_true(s.zones_deleted > 20);
	for (uint32_t i = 7400; i < 8000; i++) {
		snprintf(name, sizeof(name), "k%u", i * 7919 % 600);
		make_text(text, 1000 + i % 3000, (char)('a' + i % 26));
		assert_true(kr_has(name, text));
	}
	for (uint32_t i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(kr_delete(name), 0);
	}
	assert_int_equal(kr_kvd()->index.keys, 0);
	kr_kill();
	kr_start("");
	assert_int_equal(kr_kvd()->index.keys, 0);
	assert_true(kr_has("k5", NULL));
}

#define T(test) cmocka_unit_test_setup_teardown(test, kr_setup, kr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_get_is_sent_on_with_whole_pages),
		T(a_get_from_the_tail_is_answered_by_kvd),
		T(a_get_never_bears_direct),
		T(a_record_that_does_not_fit_says_its_length),
		T(a_get_at_the_end_of_a_zone_stays_within_it),
		T(requests_of_another_log_are_stale),
		T(conditions_are_those_of_the_moment),
		T(a_version_is_compared_with_the_log),
		T(a_batch_is_done_as_a_whole_or_not),
		T(malformed_batches_are_refused),
		T(a_value_that_is_too_large_is_refused),
		T(values_are_made_of_those_in_the_log),
		T(changes_of_a_key_are_one_after_the_other),
		T(a_change_is_done_once_though_kvd_dies),
		T(what_was_put_survives_a_kill_and_a_stop),
		T(a_flush_is_answered_when_all_is_stable),
		T(a_stop_leaves_no_arena),
		T(a_kvd_whose_requests_are_out_is_not_quiet),
		T(ids_that_were_not_used_are_no_zones),
		T(a_put_is_answered_as_sync_says),
		T(what_was_put_goes_below_after_the_time),
		T(what_was_put_before_a_kill_is_stable_after_the_time),
		T(a_flush_makes_all_stable),
		T(a_flush_with_nothing_new_goes_below),
		T(what_has_expired_never_comes_back),
		T(what_a_client_found_expired_stays_away_when_power_fails),
		T(a_kill_makes_no_value_expire_early),
		T(a_get_waits_for_the_heads_time_and_not_for_ever),
		T(a_damaged_record_is_an_error_and_counted_once),
		T(damage_behind_a_stop_is_an_error_as_well),
		T(a_damaged_record_is_an_error_when_its_zone_is_gone),
		T(verify_finds_what_is_damaged),
		T(a_backup_is_the_state_of_its_begin),
		T(preload_reads_the_zones),
		T(a_full_index_refuses_new_keys_only),
		T(a_full_log_refuses_puts_and_takes_deletes),
		T(a_full_log_evicts_what_was_not_got),
		T(a_get_that_keeps_nothing_saves_no_value),
		T(a_full_index_evicts_too),
		T(a_scan_names_each_key_once_while_others_change),
		T(a_scan_reads_many_records_at_a_time),
		T(a_scan_drops_what_is_not_next),
		T(a_prefix_has_one_kvd),
		T(another_geometry_is_refused_while_values_are_in_the_tail),
		T(overwrites_are_compacted_and_all_values_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
