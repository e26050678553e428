/* kvd_loss_test - the store has lost what it had answered: A2 of flush.c. And what a log that is
 * not open answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "tests/rig/kvd_rig.h"

/* There is none for a log, or none for the index of one that is opened. */
static bool no_memory, no_memory_of_index;

struct alog *__real_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch);
struct alog *__wrap_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch);
struct alog *__wrap_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch)
{
	return no_memory ? NULL : __real_alog_create(cfg, user, arena, scratch);
}

int __real_index_begin(struct index *ix);
int __wrap_index_begin(struct index *ix);
int __wrap_index_begin(struct index *ix)
{
	return no_memory_of_index ? -ENOMEM : __real_index_begin(ix);
}

static void set_fault(const char *fail)
{
	struct xseg_error err = { "" };
	const struct opt *o = opt_find(memd_class.opts, "fail");

	assert_int_equal(opt_set(o, kr.store, fail, &err), 0);
	assert_int_equal(memd_class.changed(kr.store, o, &err), 0);
}

static int begin(void **state)
{
	(void)state;
	no_memory = no_memory_of_index = false;
	kr_begin("track_flush=yes");
	kr_start("sync=never");
	return 0;
}

static void damage_page(const char *object, uint32_t place)
{
	uint8_t *page = (uint8_t *)(uintptr_t)memd_page(kr.store, object, place / KV_PAGE);

	assert_non_null(page);
	page[place % KV_PAGE] ^= 0x55;
}

/* In the store, nothing of it flushed; the record of "lost" alone lives in its zone, and is damaged
 * there. */
static void put_what_will_be_lost(void)
{
	static char text[30001];
	char name[XSEG_TARGET_MAX];
	struct index_entry e;
	uint64_t id[2];

	memset(text, 'x', 30000);
	assert_int_equal(kr_put("lost", "a value"), 0);
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "k%u", i % 4);
		assert_int_equal(kr_put(name, text), 0);
	}
	kr_pass(2 * KVD_SECOND);
	kvd_identity(kr_kvd(), "lost", 4, id);
	index_get(&kr_kvd()->index, index_find(&kr_kvd()->index, id), &e);
	snprintf(name, sizeof(name), "+kv:%016llx", (unsigned long long)e.zone);
	damage_page(name, e.place + 66);
}

/* ---- A2 ---- */

struct other {
	struct xseg_peer *client;
	struct xport *port;
};

static struct other open_other(const char *name)
{
	struct xseg_peer_params params = { .name = name, .kind = "client", .nr_ports = 1,
		.nr_requests = 4 };
	struct xseg_error err;
	struct other o;

	assert_int_equal(xseg_peer_open(kr.seg, &params, &o.client, &err), 0);
	o.port = xseg_peer_port(o.client, 0);
	return o;
}

static int flush_of(struct other o)
{
	struct xport *port = kr.port;
	int rc;

	kr.port = o.port;
	rc = kr_flush();
	kr.port = port;
	return rc;
}

static void a_flush_after_a_loss_fails_once_for_each_peer(void **state)
{
	struct other early = open_other("early"), second = open_other("second"), late;

	(void)state;
	put_what_will_be_lost();
	set_fault("flush:1:EIO");
	assert_int_equal(kr_flush(), -EIO);
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_OPEN);
	late = open_other("late");
	assert_int_equal(kr_flush(), 0);	/* it was told */
	assert_int_equal(flush_of(early), -EIO);
	assert_int_equal(flush_of(early), 0);
	kr_kill();				/* and a successor knows the rest */
	kr_start("sync=never");
	assert_int_equal(flush_of(late), 0);
	assert_int_equal(flush_of(second), -EIO);
	assert_int_equal(flush_of(second), 0);
	assert_int_equal(flush_of(early), 0);
	xseg_peer_close(early.client, XSEG_CLOSE_FREE_ARENA);
	xseg_peer_close(second.client, XSEG_CLOSE_FREE_ARENA);
	xseg_peer_close(late.client, XSEG_CLOSE_FREE_ARENA);
}

/* ---- a log that cannot be opened anew ---- */

static struct xreq *submit_put(uint32_t i)
{
	static char text[50001], name[16];
	struct kw_change c = { .kind = KV_PUT, .key = name, .value = text, .value_bytes = 50000 };
	struct xreq *r = xseg_req_alloc(kr.port);

	memset(text, 'w', 50000);
	c.key_bytes = (uint32_t)snprintf(name, sizeof(name), "w%u", i);
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(i), KR_PAGES) > 0);
	kr_submit(r);
	return r;
}

static void what_waits_is_answered_if_the_log_cannot_be_opened(void **state)
{
	uint32_t answered = 0, failed = 0;
	bool waited = false;
	struct xreq *r;

	(void)state;
	put_what_will_be_lost();
	set_fault("flush:1:EIO");
	r = xseg_req_alloc(kr.port);
	r->op = XSEG_OP_FLUSH;
	r->volume = kr.log.id;
	kr_submit(r);
	for (uint32_t i = 0; i < 7; i++)
		submit_put(i);
	damage_page("+kv:head.0", 100);
	damage_page("+kv:head.1", 100);
	for (uint32_t i = 0; i < 100000 && answered < 8; i++) {
		kr_step();
		waited |= kr_kvd()->q.waiting.first != NULL;
		if (i % 100 == 99)
			kr.now_ns += KVD_SECOND / 10;
		while ((r = kr_reply())) {
			answered++;
			failed += r->result < 0;
			xseg_req_free(kr.port, r);
		}
	}
	assert_true(waited);
	assert_int_equal(kr_kvd()->state, KVD_BROKEN);
	assert_int_equal(answered, 8);
	assert_true(failed >= 2);
}

/* Its head cannot be written, and the time at which a put was to go below passes. */
static void it_is_opened_anew_when_the_store_can_write(void **state)
{
	(void)state;
	put_what_will_be_lost();
	assert_int_equal(kr_put("k0", "1"), 0);
	set_fault("flush:1:EIO");
	assert_int_equal(kr_flush(), -EIO);
	set_fault("write:1:EIO");
	for (uint32_t i = 0; i < 20; i++)
		kr_pass(KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_OPENING);
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_OPEN);
	assert_int_equal(kr_flush(), 0);
}

/* ---- no memory ---- */

static void lose_and_run_out_of(bool *memory)
{
	struct xreq *put;

	put_what_will_be_lost();
	*memory = true;
	set_fault("flush:1:EIO");
	assert_int_equal(kr_flush(), -EIO);
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_OPENING);
	put = submit_put(0);
	kr_pass(10 * KVD_SECOND);
	assert_null(kr_reply());
	*memory = false;
	kr_pass(2 * KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_OPEN);
	assert_ptr_equal(kr_reply(), put);
	assert_int_equal(put->result, put->size);
	xseg_req_free(kr.port, put);
	assert_int_equal(kr_flush(), 0);
}

static void a_log_is_opened_anew_when_there_is_memory(void **state)
{
	(void)state;
	lose_and_run_out_of(&no_memory);
}

static void an_index_is_made_anew_when_there_is_memory(void **state)
{
	(void)state;
	lose_and_run_out_of(&no_memory_of_index);
}

/* ---- verify waits for the opening ---- */

static struct xreq *submit_command(const char *line)
{
	struct xreq *r = xseg_req_alloc(kr.port);

	r->op = XSEG_OP_ADMIN;
	r->size = KV_PAGE;
	kw_pages(r, kr_slot(0), 1);
	xseg_req_write_data(kr.seg, r, 0, line, (uint32_t)strlen(line) + 1);
	kr_submit(r);
	return r;
}

static struct xreq *submit_verify(void)
{
	return submit_command("verify");
}

static void a_verify_waits_for_the_log_to_be_open(void **state)
{
	struct xreq *r;

	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	kr_kill();
	kr.store_stands = true;
	assert_int_equal(kr_open("sync=never"), 0);
	r = submit_verify();
	kr_pass(KVD_SECOND);
	assert_null(kr_reply());
	kr.store_stands = false;
	kr_pass(KVD_SECOND);
	assert_ptr_equal(kr_reply(), r);
	assert_true(r->result > 0);
	xseg_req_free(kr.port, r);
}

static void and_not_for_ever(void **state)
{
	struct xreq *r;

	(void)state;
	kr_kill();
	kr.store_stands = true;
	assert_int_equal(kr_open("sync=never"), 0);
	r = submit_verify();
	kr_pass(59 * KVD_SECOND);
	assert_null(kr_reply());
	kr_pass(2 * KVD_SECOND);
	assert_ptr_equal(kr_reply(), r);
	assert_int_equal(r->result, -EBUSY);
	xseg_req_free(kr.port, r);
	kr.store_stands = false;
	kr_settle();
}

/* ---- salvage ---- */

static char said[200];				/* by the last one */

static int64_t salvage(void)
{
	struct xreq *r = submit_command("salvage");
	int64_t rc;

	kr_pass(KVD_SECOND);
	assert_ptr_equal(kr_reply(), r);
	rc = r->result;
	xseg_req_read_data(kr.seg, r, 0, said, sizeof(said) - 1);
	xseg_req_free(kr.port, r);
	return rc;
}

static void lose_heads(void)
{
	damage_page("+kv:head.0", 100);
	damage_page("+kv:head.1", 100);
	assert_int_equal(kr_open("sync=never"), 0);
	kr_pass(KVD_SECOND);
	assert_int_equal(kr_kvd()->state, KVD_BROKEN);
}

/* All of a backup, as "+KEY=FIRST LETTER " of a value and "- " of a deletion. */
static uint64_t back_up(char *all, size_t size)
{
	struct kv_backup_head head = { .next = 0 };
	struct kv_backup_entry e;
	struct xreq *r;
	char key[16], letter[2] = "";
	uint32_t at;

	*all = '\0';
	do {
		r = xseg_req_alloc(kr.port);
		kw_query(kr.seg, r, &kr.log,
			&(struct kv_query){ .kind = KV_BACKUP, .cursor = head.next }, NULL,
			kr_slot(0), 60);
		assert_true(kr_call(r) >= 0);
		at = sizeof(head);
		xseg_req_read_data(kr.seg, r, 0, &head, at);
		for (uint32_t i = 0; i < head.nr; i++) {
			size_t used = strlen(all);

			xseg_req_read_data(kr.seg, r, at, &e, sizeof(e));
			at += (uint32_t)sizeof(e);
			xseg_req_read_data(kr.seg, r, at, key, e.key_bytes);
			key[e.key_bytes] = '\0';
			xseg_req_read_data(kr.seg, r, at + e.key_bytes, letter, 1);
			snprintf(all + used, size - used,
				e.flags & KV_BACKUP_SET ? "+%s=%s " : "- ", key, letter);
			at += xrecord_round(e.key_bytes + e.value_bytes, 8);
		}
		xseg_req_free(kr.port, r);
	} while (head.next);
	return head.bad;
}

static void a_salvage_tells_what_counts(void **state)
{
	char all[400];

	(void)state;
	assert_int_equal(kr_put("one", "a"), 0);
	assert_int_equal(kr_put("two", "b"), 0);
	assert_int_equal(kr_put("one", "c"), 0);
	assert_int_equal(kr_delete("two"), 0);
	kr_stop();
	lose_heads();
	assert_int_equal(kr_put("three", "d"), -EBADMSG);
	assert_int_equal(salvage(), 0);
	assert_int_equal(kr_kvd()->state, KVD_SALVAGED);
	assert_int_equal(salvage(), 0);		/* it is done already */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(back_up(all, sizeof(all)), 0);
		assert_string_equal(all, "+one=c - ");
	}
	assert_int_equal(kr_put("three", "d"), -EBADMSG);
}

static void a_salvage_leaves_out_what_was_cleared(void **state)
{
	struct kw_change c = { .kind = KV_DELETE_ALL };
	char all[400];

	(void)state;
	assert_int_equal(kr_put("one", "a"), 0);
	assert_int_equal(kr_put("two", "b"), 0);
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_put("two", "c"), 0);
	kr_stop();
	lose_heads();
	assert_int_equal(salvage(), 0);
	assert_int_equal(back_up(all, sizeof(all)), 0);
	assert_string_equal(all, "+two=c ");
}

/* And a head that is brought back is as good as before. */
static void a_salvage_has_the_tail_and_changes_nothing(void **state)
{
	char all[400];

	(void)state;
	assert_int_equal(kr_put("one", "a"), 0);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(kr_put("two", "b"), 0);
	kr_kill();
	lose_heads();
	assert_int_equal(salvage(), 0);
	assert_int_equal(back_up(all, sizeof(all)), 0);
	assert_string_equal(all, "+one=a +two=b ");
	kr_kill();
	damage_page("+kv:head.0", 100);		/* the bits are flipped back */
	damage_page("+kv:head.1", 100);
	kr_start("sync=never");
	assert_true(kr_has("one", "a"));
	assert_true(kr_has("two", "b"));
}

static uint64_t keys_of_info(void)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kv_info info;

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_INFO }, NULL, kr_slot(0), 1);
	assert_int_equal(kr_call(r), KV_PAGE);
	xseg_req_read_data(kr.seg, r, 0, &info, sizeof(info));
	xseg_req_free(kr.port, r);
	return info.keys;
}

static void info_of_a_salvage_counts_no_key_that_was_cleared(void **state)
{
	struct kw_change c = { .kind = KV_DELETE_ALL };

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(kr_put(i == 0 ? "one" : i == 1 ? "two" : "three", "a"), 0);
	assert_int_equal(kr_delete("three"), 0);
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_put("two", "b"), 0);
	kr_stop();
	lose_heads();
	assert_int_equal(salvage(), 0);
	assert_int_equal(keys_of_info(), 1);
	assert_int_equal(kr_kvd()->index.live_bytes, xrecord_bytes(3, 1));
}

/* The command is a successor's then, which begins anew; or it was answered before. */
static void end_while_it_salvages(void (*end)(void))
{
	char all[100];
	struct xreq *r, *back;
	bool salvaged = false;

	assert_int_equal(kr_put("one", "a"), 0);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(kr_put("two", "b"), 0);
	kr_stop();
	lose_heads();
	for (uint32_t i = 0; !salvaged; i++) {
		assert_true(i < 100);
		r = submit_command("salvage");
		for (uint32_t n = 0; n < i; n++)
			kr_step();
		salvaged = kr_kvd()->state == KVD_SALVAGED;
		end();
		back = kr_reply();
		assert_int_equal(kr_open("sync=never"), 0);
		kr_pass(KVD_SECOND);
		if (back)
			assert_int_equal(salvage(), 0);
		else
			back = kr_reply();
		assert_ptr_equal(back, r);
		assert_int_equal(r->result, 0);
		xseg_req_free(kr.port, r);
		assert_int_equal(kr_kvd()->state, KVD_SALVAGED);
		assert_int_equal(back_up(all, sizeof(all)), 0);
		assert_string_equal(all, "+one=a +two=b ");
		end();
		assert_int_equal(kr_open("sync=never"), 0);
		kr_pass(KVD_SECOND);
		assert_int_equal(kr_kvd()->state, KVD_BROKEN);
	}
}

static void a_kill_while_it_salvages(void **state)
{
	(void)state;
	end_while_it_salvages(kr_kill);
}

static void a_stop_while_it_salvages(void **state)
{
	(void)state;
	end_while_it_salvages(kr_stop);
}

static void a_store_that_cannot_list_is_told(void **state)
{
	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	kr_stop();
	lose_heads();
	set_fault("list:1:EOPNOTSUPP");
	assert_int_equal(salvage(), -EOPNOTSUPP);
	assert_string_equal(said, "the store below cannot list its objects");
	set_fault("");
	set_fault("list:1:EIO");
	assert_int_equal(salvage(), -EIO);
	assert_string_equal(said, "the store below does not list the log's objects");
	assert_int_equal(kr_kvd()->state, KVD_BROKEN);
	set_fault("");
	assert_int_equal(salvage(), 0);
	assert_int_equal(keys_of_info(), 1);
}

static void a_salvage_without_memory_is_tried_again(void **state)
{
	bool *const memory[] = { &no_memory, &no_memory_of_index };

	(void)state;
	assert_int_equal(kr_put("key", "value"), 0);
	kr_stop();
	lose_heads();
	for (int i = 0; i < 2; i++) {
		*memory[i] = true;
		assert_int_equal(salvage(), -ENOMEM);
		assert_int_equal(kr_kvd()->state, KVD_BROKEN);
		*memory[i] = false;
	}
	assert_int_equal(salvage(), 0);
	assert_int_equal(kr_kvd()->index.keys, 1);
}

static void a_salvage_of_an_open_log_is_refused(void **state)
{
	(void)state;
	assert_int_equal(salvage(), -EBUSY);
	assert_int_equal(kr_put("one", "a"), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, kr_teardown)
	const struct CMUnitTest tests[] = {
		T(a_flush_after_a_loss_fails_once_for_each_peer),
		T(what_waits_is_answered_if_the_log_cannot_be_opened),
		T(it_is_opened_anew_when_the_store_can_write),
		T(a_log_is_opened_anew_when_there_is_memory),
		T(an_index_is_made_anew_when_there_is_memory),
		T(a_verify_waits_for_the_log_to_be_open),
		T(and_not_for_ever),
		T(a_salvage_tells_what_counts),
		T(a_salvage_leaves_out_what_was_cleared),
		T(a_salvage_has_the_tail_and_changes_nothing),
		T(info_of_a_salvage_counts_no_key_that_was_cleared),
		T(a_kill_while_it_salvages),
		T(a_stop_while_it_salvages),
		T(a_store_that_cannot_list_is_told),
		T(a_salvage_without_memory_is_tried_again),
		T(a_salvage_of_an_open_log_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
