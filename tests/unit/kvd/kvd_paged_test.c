/* kvd_paged_test - puts whose value goes below from the client's own pages (paged.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "tests/rig/kvd_rig.h"

#define LONG 34001u				/* bytes of a value that is not copied */
#define PAGES 9u				/* that it takes */

static char text[26][LONG + 1];

static int begin(void **state)
{
	for (uint32_t c = 0; c < 26; c++)
		memset(text[c], 'a' + (int)c, LONG);
	return kr_setup(state);
}

static void set_fault(const char *fail)
{
	struct xseg_error err = { "" };
	const struct opt *o = opt_find(memd_class.opts, "fail");

	assert_int_equal(opt_set(o, kr.store, fail, &err), 0);
	if (memd_class.changed)
		assert_int_equal(memd_class.changed(kr.store, o, &err), 0);
}

static const char *value(char c)
{
	return text[c - 'a'];
}

static struct kw_change change(uint8_t kind, const char *key, const char *to)
{
	return (struct kw_change){ .kind = kind, .key = key, .key_bytes = (uint32_t)strlen(key),
		.value = to, .value_bytes = to ? (uint32_t)strlen(to) : 0 };
}

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

/* A change that is out, with pages of slot `i`; 0 is for others. */
static struct xreq *send(struct kw_change *c, bool fua, uint32_t i)
{
	struct xreq *r = xseg_req_alloc(kr.port);

	assert_non_null(r);
	assert_true(kw_batch(kr.seg, r, &kr.log, c, 1, fua, kr_slot(i), KR_PAGES) > 0);
	r->cookie = c;
	kr_submit(r);
	kr_settle();
	return r;
}

static int outcome_of(struct xreq *r)
{
	struct kw_change *c = r->cookie;
	int64_t result = r->result;

	if (result >= 0) {
		assert_int_equal(result, r->size);
		kw_outcomes(kr.seg, r, c, 1);
	}
	xseg_req_free(kr.port, r);
	return result < 0 ? (int)result : c->result;
}

static int wait_for(struct xreq *r)
{
	assert_ptr_equal(wait_reply(), r);
	return outcome_of(r);
}

static uint64_t version_of(const char *key)
{
	struct kw_value v;

	assert_int_equal(kr_get(key, &v), 0);
	return v.version;
}

/* A new kvd, which takes over while the store goes on. */
static void die_and_come_back(void)
{
	kr_kill();
	kr.store_stands = false;
	for (int i = 0; i < 50; i++)
		kr_step();
	assert_int_equal(kr_open(""), 0);
}

/* ---- the way of the data ---- */

/* Whether a WRITE that lists the slot's value comes to the store, which answers nothing yet. */
static uint32_t pages_listed(uint32_t slot)
{
	struct peer_port *pp = &kr.store->ports[0];
	uint32_t nr = 0;
	struct xreq *got;

	for (uint32_t i = 0; i < 30; i++) {
		kr_step();
		while (xseg_port_receive(pp->port, &got, 1)) {
			for (uint32_t n = 0; got->op == XSEG_OP_WRITE && n < got->nr_pages; n++)
				nr += got->page[n] == kr_slot(slot)[nr + 1];
			kr.store->cls->request(pp, got);
			xseg_port_flush(pp->port);
		}
	}
	return nr;
}

static void a_long_value_goes_below_from_the_clients_pages(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('a'));
	struct xreq *r;

	(void)state;
	kr.store_stands = true;
	r = send(&c, false, 1);
	assert_int_equal(kr_kvd()->paged.nr, 1);
	assert_null(kr_reply());		/* G1 */
	assert_int_equal(pages_listed(1), PAGES);
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(kr_kvd()->paged.nr, 0);
	/* the client has its pages again */
	memset(xseg_page(kr.seg, kr_slot(1)[1]), 'x', KV_PAGE);
	assert_true(kr_has("key", value('a')));
	assert_int_equal(version_of("key"), c.new_version);
}

static void others_are_copied(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('a')), two[2];
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kv_change w;
	static char just_less[ALOG_PAGED_LEAST];

	(void)state;
	memset(just_less, 's', sizeof(just_less) - 1);
	kr.store_stands = true;
	assert_int_equal(kr_put("short", just_less), 0);
	two[0] = change(KV_PUT, "one", just_less);
	two[1] = change(KV_PUT, "two", "2");
	assert_int_equal(kr_change(two, 2, false), 0);
	assert_int_equal(kr_kvd()->paged.nr, 0);
	/* not at a page */
	c.key = "a longer key";
	c.key_bytes = 12;
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(1), KR_PAGES) > 0);
	xseg_req_read_data(kr.seg, r, sizeof(struct kv_batch), &w, sizeof(w));
	w.value_at = w.key_at + 12;
	xseg_req_write_data(kr.seg, r, sizeof(struct kv_batch), &w, sizeof(w));
	r->size = w.value_at + LONG;
	r->nr_pages = (uint16_t)xseg_req_span(0, r->size);
	xseg_req_write_data(kr.seg, r, w.value_at, value('a'), LONG);
	assert_int_equal(kr_call(r), r->size);
	xseg_req_free(kr.port, r);
	assert_int_equal(kr_kvd()->paged.nr, 0);
	assert_true(kr_has("a longer key", value('a')));
}

static struct xreq *make_with_a_wrong_sum(const char *key)
{
	struct kw_change c = change(KV_PUT, key, value('a'));
	struct xreq *r = xseg_req_alloc(kr.port);

	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(1), KR_PAGES) > 0);
	((uint8_t *)xseg_page(kr.seg, kr_slot(1)[PAGES]))[0] ^= 1;
	return r;
}

static void put_with_a_wrong_sum(const char *key)
{
	struct xreq *r = make_with_a_wrong_sum(key);

	assert_int_equal(kr_call(r), r->size);
	xseg_req_free(kr.port, r);
}

/* G1: it is an error of that key alone, whatever becomes of its zone, until the key is put anew. */
static void a_wrong_sum_is_found_by_the_get(void **state)
{
	struct kw_value v;
	char key[16], last[110] = "";

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	put_with_a_wrong_sum("key");
	put_with_a_wrong_sum("stays");
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 1);
	for (uint32_t i = 0; i < 900; i++) {	/* its zone is compacted */
		uint32_t n = (i * 37 + i / 7 * 5) % sizeof(last);

		last[n] = (char)('a' + i % 26);
		snprintf(key, sizeof(key), "other%u", n);
		assert_int_equal(kr_put(key, value(last[n])), 0);
	}
	assert_true(kr_counter(KS_BAD_RECORDS) >= 2);
	assert_int_equal(kr_put("key", value('n')), 0);
	assert_true(kr_has("key", value('n')));
	for (uint32_t n = 0; n < sizeof(last); n++) {
		snprintf(key, sizeof(key), "other%u", n);
		assert_true(kr_has(key, last[n] ? value(last[n]) : NULL));
	}
	kr_stop();
	kr_start("");
	assert_true(kr_has("key", value('n')));
}

/* All that reads records knows that the value begins at a page. */
static void such_a_record_is_read_by_all(void **state)
{
	struct kw_change c = change(KV_TOUCH, "key", NULL);
	struct xreq *r;
	struct kw_value v;
	struct kv_scan_entry e;
	char key[16];

	(void)state;
	assert_int_equal(kr_put("key", value('k')), 0);
	assert_int_equal(kr_flush(), 0);
	for (uint32_t i = 0; i < 12; i++) {	/* it leaves the tail */
		snprintf(key, sizeof(key), "other%u", i % 3);
		assert_int_equal(kr_put(key, value('o')), 0);
	}
	assert_true(kr_has("key", value('k')));
	c.expiry = 1000100;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_get("key", &v), 0);
	assert_int_equal(v.expiry, 1000100);
	assert_int_equal(v.value_bytes, LONG);
	assert_memory_equal(v.value, value('k'), LONG);
	assert_int_equal(kr_put("key", value('n')), 0);
	c = change(KV_APPEND, "key", "!");
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_get("key", &v), 0);
	assert_int_equal(v.value_bytes, LONG + 1);
	assert_int_equal(v.value[LONG], '!');
	assert_int_equal(kr_put("key", value('s')), 0);
	assert_int_equal(kr_delete("other0"), 0);
	assert_int_equal(kr_delete("other1"), 0);
	assert_int_equal(kr_delete("other2"), 0);
	r = xseg_req_alloc(kr.port);
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_SCAN }, NULL, kr_slot(0), 1);
	assert_int_equal(kr_call(r), KV_PAGE);
	xseg_req_read_data(kr.seg, r, sizeof(struct kv_scan_head), &e, sizeof(e));
	assert_int_equal(e.key_bytes, 3);
	assert_int_equal(e.value_bytes, LONG);
	xseg_req_read_data(kr.seg, r, sizeof(struct kv_scan_head) + sizeof(e), key, 3);
	assert_memory_equal(key, "key", 3);
	/* LOOK */
	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_GET, .flags = KV_LOOK,
		.key_bytes = 3, .zone = 1 }, "key", kr_slot(0), 20);
	assert_int_equal(kr_call(r), 20 * KV_PAGE);
	xseg_req_free(kr.port, r);
}

/* ---- what others see meanwhile ---- */

static void a_get_meanwhile_finds_the_old_value(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n')),
			 d = change(KV_PUT, "new", value('d'));
	struct xreq *r, *s;

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	kr.store_stands = true;
	r = send(&c, false, 1);
	s = send(&d, false, 2);
	assert_int_equal(kr_kvd()->paged.nr, 2);
	assert_true(kr_has("key", "old"));
	assert_true(kr_has("new", NULL));
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(wait_for(s), 0);
	assert_true(kr_has("key", value('n')));
	assert_true(kr_has("new", value('d')));
}

static void changes_of_the_key_wait_and_others_do_not(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n')), add = change(KV_PUT, "key", "1"),
			 cas = change(KV_PUT, "key", value('v')), two[2];
	struct xreq *r, *s, *t, *u = xseg_req_alloc(kr.port);

	(void)state;
	add.condition = KV_IF_ABSENT;
	cas.condition = KV_IF_VERSION;
	kr.store_stands = true;
	r = send(&c, false, 1);
	kw_outcomes(kr.seg, r, &c, 1);
	cas.version = c.new_version;
	s = send(&add, false, 2);
	t = send(&cas, false, 3);
	two[0] = change(KV_PUT, "beside", "2");
	two[1] = change(KV_DELETE, "key", NULL);
	kw_batch(kr.seg, u, &kr.log, two, 2, false, kr_slot(4), KR_PAGES);
	kr_submit(u);
	kr_settle();
	assert_null(kr_reply());
	assert_true(kr_has("key", NULL));
	assert_true(kr_has("beside", NULL));
	assert_int_equal(kr_put("other", "x"), 0);
	/* while some wait, a long value is copied: it is answered though the store stands */
	assert_int_equal(kr_put("long", value('l')), 0);
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(wait_for(s), -EEXIST);
	assert_int_equal(add.new_version, 0);
	assert_int_equal(wait_for(t), 0);
	assert_ptr_equal(wait_reply(), u);
	assert_int_equal(u->result, u->size);
	xseg_req_free(kr.port, u);
	assert_true(kr_has("key", NULL));
	assert_true(kr_has("beside", "2"));
}

/* Each of these waits for the one before it, and the last one counts. */
static void puts_of_one_key_are_done_one_after_the_other(void **state)
{
	struct kw_change c[4];
	struct xreq *r[4];

	(void)state;
	kr.store_stands = true;
	for (uint32_t i = 0; i < 4; i++) {
		c[i] = change(KV_PUT, "key", value((char)('a' + i)));
		r[i] = send(&c[i], i == 2, i + 1);
	}
	assert_int_equal(kr_kvd()->paged.nr, 1);
	kr.store_stands = false;
	for (uint32_t i = 0; i < 4; i++) {
		struct xreq *back = wait_reply();

		assert_int_equal(outcome_of(back), 0);
	}
	for (uint32_t i = 1; i < 4; i++)
		assert_true(c[i].new_version > c[i - 1].new_version);
	assert_true(kr_has("key", value('d')));
	(void)r;
}

static void a_backup_begins_when_none_is_on_its_way(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct kv_backup_entry e;
	struct kv_backup_head h;
	struct xreq *r, *b = xseg_req_alloc(kr.port);

	(void)state;
	kr.store_stands = true;
	r = send(&c, false, 1);
	kw_query(kr.seg, b, &kr.log, &(struct kv_query){ .kind = KV_BACKUP }, NULL, kr_slot(0), 60);
	kr_submit(b);
	kr_settle();
	assert_null(kr_reply());
	assert_int_equal(kr_kvd()->backup.cursor, 0);
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_ptr_equal(wait_reply(), b);
	assert_int_equal(b->result, b->size);
	xseg_req_read_data(kr.seg, b, 0, &h, sizeof(h));
	assert_int_equal(h.nr, 1);
	xseg_req_read_data(kr.seg, b, sizeof(h), &e, sizeof(e));
	assert_int_equal(e.version, c.new_version);
	assert_int_equal(e.value_bytes, LONG);
	xseg_req_free(kr.port, b);
}

/* ---- beside DELETE_ALL ---- */

static struct kw_change delete_all(uint32_t expiry)
{
	return (struct kw_change){ .kind = KV_DELETE_ALL, .expiry = expiry };
}

/* After a loss of power, too. */
static void is_left(const char *key, const char *is)
{
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(kr_has("key", key));
		assert_true(kr_has("new", is));
		assert_true(kr_has("gone", NULL));
		kr_pass(10 * KVD_SECOND);
		assert_false(kvd_clear_sweeps(kr_kvd()));
		assert_int_equal(kr_kvd()->index.keys, (key != NULL) + (is != NULL));
		assert_int_equal(kr_flush(), 0);
		kr_power_cut();
		kr_start("");
	}
}

/* G4: it waits for the put, and takes its value. */
static void delete_all_behind(bool dies)
{
	struct kw_change c = change(KV_PUT, "key", value('n')),
			 d = change(KV_PUT, "new", value('d')),
			 all = delete_all(0);
	struct xreq *r, *s, *t;

	assert_int_equal(kr_put("key", "old"), 0);
	assert_int_equal(kr_put("gone", "g"), 0);
	kr.store_stands = true;
	r = send(&c, false, 1);
	t = send(&all, false, 2);
	s = send(&d, false, 3);			/* is copied, and done before */
	assert_int_equal(kr_kvd()->paged.nr, 1);
	assert_int_equal(wait_for(s), 0);
	assert_null(kr_reply());
	assert_true(kr_has("key", "old"));
	assert_true(kr_has("new", value('d')));
	if (dies)
		die_and_come_back();
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(wait_for(t), 0);
	assert_true(all.new_version > c.new_version);
	is_left(NULL, NULL);
}

static void delete_all_waits_for_it(void **state)
{
	(void)state;
	delete_all_behind(false);
}

static void a_kill_while_delete_all_waits_for_it(void **state)
{
	(void)state;
	delete_all_behind(true);
}

/* The sweep has not begun, as no head can be written: of "key" there is an entry that is cleared,
 * and of "new" none. */
static void delete_all_before(bool dies)
{
	struct kw_change c = change(KV_PUT, "key", value('n')),
			 d = change(KV_PUT, "new", value('d')),
			 all = delete_all(0);
	struct xreq *r, *s, *t;

	assert_int_equal(kr_put("key", value('o')), 0);
	assert_int_equal(kr_put("gone", value('g')), 0);
	kr.store_stands = true;
	t = send(&all, false, 3);
	assert_int_equal(wait_for(t), 0);
	c.condition = KV_IF_ABSENT;
	r = send(&c, false, 1);
	s = send(&d, false, 2);
	assert_int_equal(kr_kvd()->paged.nr, 2);
	assert_true(kvd_clear_sweeps(kr_kvd()));
	assert_true(kr_has("key", NULL));
	assert_true(kr_has("new", NULL));
	if (dies)
		die_and_come_back();
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(wait_for(s), 0);
	is_left(value('n'), value('d'));
}

static void it_is_behind_delete_all(void **state)
{
	(void)state;
	delete_all_before(false);
}

static void a_kill_while_it_is_behind_delete_all(void **state)
{
	(void)state;
	delete_all_before(true);
}

/* Its time comes while the put is on its way. What comes then is held, and kvd does not spin. */
static void a_delete_all_whose_time_comes_waits_for_it(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n')),
			 d = change(KV_PUT, "new", value('d')),
			 all = delete_all(kr.date_s + 5);
	struct xreq *r, *s;

	(void)state;
	assert_int_equal(kr_change(&all, 1, true), 0);
	assert_int_equal(kr_put("gone", "g"), 0);
	kr.store_stands = true;
	r = send(&c, false, 1);
	assert_int_equal(kr_kvd()->paged.nr, 1);
	kr.date_s += 5;
	s = send(&d, false, 2);
	assert_null(kr_reply());
	assert_non_null(kr_kvd()->q.held.first);
	assert_true(peer_port_step_poll(&kr.kvd->ports[0]) > kr.now_ns);
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(wait_for(s), 0);
	assert_true(d.new_version > c.new_version);
	is_left(NULL, value('d'));
}

/* ---- promises ---- */

static void a_flush_meanwhile_covers_the_prefix(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r, *f = xseg_req_alloc(kr.port);

	(void)state;
	kr.store_stands = true;
	r = send(&c, false, 1);
	assert_int_equal(kr_put("behind", "it"), 0);
	f->op = XSEG_OP_FLUSH;
	f->volume = kr.log.id;
	kr_submit(f);
	kr_settle();
	assert_null(kr_reply());
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_ptr_equal(wait_reply(), f);
	assert_int_equal(f->result, 0);
	xseg_req_free(kr.port, f);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("behind", "it"));
	assert_true(kr_has("key", value('n')));
}

static void a_forced_one_is_answered_when_it_is_stable(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n')), d = change(KV_PUT, "small", "s");
	struct xreq *r, *s;

	(void)state;
	kr.store_stands = true;
	r = send(&c, true, 1);
	s = send(&d, true, 2);
	assert_null(kr_reply());
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);	/* in the order of positions */
	assert_int_equal(wait_for(s), 0);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", value('n')));
	assert_true(kr_has("small", "s"));
}

static void a_write_that_fails_is_repaired_before_it_shows(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r;

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	assert_int_equal(kr_flush(), 0);
	set_fault("write:1:EIO");
	r = send(&c, false, 1);
	assert_null(kr_reply());
	assert_true(kr_has("key", "old"));
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(version_of("key"), c.new_version);
	assert_true(kr_has("key", value('n')));
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", value('n')));
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 0);
}

/* A repair copies it as it is: the store has lost nothing, so nothing is opened anew and no FLUSH
 * fails for it. */
static void a_wrong_sum_does_not_end_a_repair(void **state)
{
	struct alog_stats before, after;
	struct kw_value v;
	struct xreq *r;

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	assert_int_equal(kr_put("other", "1"), 0);
	assert_int_equal(kr_flush(), 0);
	alog_stats(kr_kvd()->log, &before);
	set_fault("write:1:EIO");
	r = make_with_a_wrong_sum("key");
	kr_submit(r);
	for (uint32_t i = 0; i < 60; i++)
		kr_pass(KVD_SECOND);
	assert_null(kr_reply());
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_ptr_equal(kr_reply(), r);
	assert_int_equal(r->result, r->size);
	xseg_req_free(kr.port, r);
	assert_int_equal(kr_flush(), 0);
	alog_stats(kr_kvd()->log, &after);
	assert_int_equal(after.epoch, before.epoch);
	assert_int_equal(kr_get("key", &v), -EIO);
	assert_true(kr_has("other", "1"));
	assert_int_equal(kr_put("key", value('n')), 0);
	kr_stop();
	kr_start("");
	assert_true(kr_has("key", value('n')));
}

/* ---- kills ---- */

static void a_kill_before_it_is_written_undoes_it_and_it_is_done_anew(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r;
	uint64_t was;

	(void)state;
	c.condition = KV_IF_ABSENT;
	kr.store_stands = true;
	r = send(&c, false, 1);
	assert_int_equal(kr_kvd()->paged.nr, 1);
	kw_outcomes(kr.seg, r, &c, 1);
	was = c.new_version;
	die_and_come_back();
	for (uint32_t i = 0; !kr_kvd()->paged.nr; i++) {	/* it is on its way again */
		assert_true(i < 10000);
		kr_step();
	}
	die_and_come_back();
	assert_int_equal(wait_for(r), 0);	/* and not EEXIST */
	assert_int_equal(c.new_version, was);	/* C6 */
	assert_int_equal(version_of("key"), c.new_version);
	assert_true(kr_has("key", value('n')));
	assert_int_equal(kr_kvd()->index.keys, 1);
}

enum kill_at { AT_NONE, AT_EXPECT, AT_SHOW };
static enum kill_at kill_at;
static jmp_buf killed;

void __real_kvd_index_expect(struct kvd *k, const uint64_t id[2], const struct alog_place *at);
void __wrap_kvd_index_expect(struct kvd *k, const uint64_t id[2], const struct alog_place *at);
void __real_kvd_index_show(struct kvd *k, const struct paged_put *p);
void __wrap_kvd_index_show(struct kvd *k, const struct paged_put *p);

static void may_die(enum kill_at at)
{
	if (kill_at != at)
		return;
	kill_at = AT_NONE;
	longjmp(killed, 1);
}

void __wrap_kvd_index_expect(struct kvd *k, const uint64_t id[2], const struct alog_place *at)
{
	may_die(AT_EXPECT);
	__real_kvd_index_expect(k, id, at);
}

void __wrap_kvd_index_show(struct kvd *k, const struct paged_put *p)
{
	may_die(AT_SHOW);
	__real_kvd_index_show(k, p);
}

static uint64_t zone_of(const char *key)
{
	struct index_entry e;
	uint64_t id[2];

	kvd_identity(kr_kvd(), (const uint8_t *)key, (uint32_t)strlen(key), id);
	index_get(&kr_kvd()->index, index_find(&kr_kvd()->index, id), &e);
	return e.zone;
}

/* Whether the record is the one that was begun before kvd died there. Its version is (C6). */
static bool is_done_by_the_first(const char *key, bool fua, enum kill_at at)
{
	static struct kw_change c;
	struct xreq *volatile r = xseg_req_alloc(kr.port);
	uint64_t first, zone;

	c = change(KV_PUT, key, value('n'));
	c.condition = KV_IF_ABSENT;
	r->cookie = &c;
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, fua, kr_slot(1), KR_PAGES) > 0);
	kr_submit(r);
	kill_at = at;
	if (!setjmp(killed)) {
		kr_settle();
		fail_msg("it did not come there");
	}
	kw_outcomes(kr.seg, r, &c, 1);
	first = c.new_version;
	zone = xseg_req_note(kr.seg, r, KVD_NOTE_ZONE);
	die_and_come_back();
	assert_int_equal(wait_for(r), 0);
	assert_int_equal(c.new_version, first);
	assert_int_equal(version_of(key), first);
	assert_true(kr_has(key, value('n')));
	return zone_of(key) == zone;
}

/* G2: appended, and nothing is sent; all is written, and nothing shows. */
static void a_kill_at_either_end_of_the_way(void **state)
{
	(void)state;
	assert_false(is_done_by_the_first("one", false, AT_EXPECT));
	assert_true(is_done_by_the_first("two", true, AT_SHOW));
	kr_power_cut();				/* the second one was forced */
	kr_start("");
	assert_true(kr_has("two", value('n')));
}

/* A repair has made a copy of it when kvd dies: it is done, though the notes name the original. */
static void a_copy_of_it_tells_a_successor_that_it_is_done(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r;
	uint64_t first, zone;
	uint32_t copied = 0;

	(void)state;
	for (uint32_t steps = 1; steps < 120; steps++) {
		c.condition = KV_IF_ABSENT;
		set_fault("write:1:EIO");
		r = send(&c, false, 1);
		kw_outcomes(kr.seg, r, &c, 1);
		first = c.new_version;
		zone = kr_kvd()->paged.put[kr_kvd()->paged.from].at.zone;
		set_fault("");
		for (uint32_t i = 0; i < steps && kr_kvd()->paged.nr; i++) {
			kr.now_ns += KVD_SECOND / 20;
			kr_step();
		}
		if (kr_kvd()->paged.nr)
			copied += kr_kvd()->paged.put[kr_kvd()->paged.from].at.zone != zone;
		die_and_come_back();
		assert_int_equal(wait_for(r), 0);
		assert_true(c.new_version >= first);
		assert_int_equal(version_of("key"), c.new_version);
		assert_true(kr_has("key", value('n')));
		assert_int_equal(kr_delete("key"), 0);
		assert_int_equal(kr_counter(KS_BAD_RECORDS), 0);
	}
	assert_true(copied > 0);
}

static void a_stop_waits_until_it_is_answered(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r;
	uint64_t left;

	(void)state;
	kr.store_stands = true;
	r = send(&c, false, 1);
	peer_stop(kr.kvd);
	kr_settle();
	assert_false(kr.kvd->cls->quiesced(kr.kvd, &left));
	kr.store_stands = false;
	kr_stop();
	assert_int_equal(wait_for(r), 0);
	kr_start("");
	assert_true(kr_has("key", value('n')));
}

/* ---- space ---- */

/* Long values are overwritten until their zones are compacted, some while puts are on their way. */
static void zones_with_such_records_are_compacted(void **state)
{
	struct kw_change c[4];
	struct xreq *r[4];
	char key[4][8];

	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t n = 0;

		for (; n < 4; n++) {
			snprintf(key[n], sizeof(key[n]), "k%u", (i * 4 + n) * 7 % 61);
			c[n] = change(KV_PUT, key[n], value((char)('a' + (i + n) % 26)));
			r[n] = xseg_req_alloc(kr.port);
			r[n]->cookie = &c[n];
			kw_batch(kr.seg, r[n], &kr.log, &c[n], 1, false, kr_slot(n + 1), KR_PAGES);
			kr_submit(r[n]);
		}
		while (n--)
			assert_int_equal(outcome_of(wait_reply()), 0);
		for (n = 0; n < 4; n++)
			assert_true(kr_has(key[n], c[n].value));
	}
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 0);
	assert_int_equal(kr_kvd()->index.keys, 61);
	assert_int_equal(kr_kvd()->index.used, 61);	/* no ghost is left */
	(void)r;
}

static void a_full_index_has_room_for_those_on_their_way(void **state)
{
	struct kw_change c = change(KV_PUT, "key", value('n'));
	struct xreq *r;
	char key[16];
	int rc;

	(void)state;
	kr_stop();
	kr_start("keys=20");
	kr.store_stands = true;
	r = send(&c, false, 1);
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		rc = kr_put(key, "x");
		assert_true(rc == 0 || rc == -ENOSPC);
	}
	assert_int_equal(kr_put("one more", "x"), -ENOSPC);
	kr.store_stands = false;
	assert_int_equal(wait_for(r), 0);
	assert_true(kr_has("key", value('n')));
}

#define PAGED(name) cmocka_unit_test_setup_teardown(name, begin, kr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAGED(a_long_value_goes_below_from_the_clients_pages),
		PAGED(others_are_copied),
		PAGED(a_wrong_sum_is_found_by_the_get),
		PAGED(such_a_record_is_read_by_all),
		PAGED(a_get_meanwhile_finds_the_old_value),
		PAGED(changes_of_the_key_wait_and_others_do_not),
		PAGED(puts_of_one_key_are_done_one_after_the_other),
		PAGED(a_backup_begins_when_none_is_on_its_way),
		PAGED(delete_all_waits_for_it),
		PAGED(a_kill_while_delete_all_waits_for_it),
		PAGED(it_is_behind_delete_all),
		PAGED(a_kill_while_it_is_behind_delete_all),
		PAGED(a_delete_all_whose_time_comes_waits_for_it),
		PAGED(a_flush_meanwhile_covers_the_prefix),
		PAGED(a_forced_one_is_answered_when_it_is_stable),
		PAGED(a_write_that_fails_is_repaired_before_it_shows),
		PAGED(a_wrong_sum_does_not_end_a_repair),
		PAGED(a_kill_before_it_is_written_undoes_it_and_it_is_done_anew),
		PAGED(a_kill_at_either_end_of_the_way),
		PAGED(a_copy_of_it_tells_a_successor_that_it_is_done),
		PAGED(a_stop_waits_until_it_is_answered),
		PAGED(zones_with_such_records_are_compacted),
		PAGED(a_full_index_has_room_for_those_on_their_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
