/* volumed_catalog_test - the volume peer's catalogue: commands, and its state after a start. */
#include "tests/rig/volumed_rig.h"

/* ---- commands ---------------------------------------------------------------------------- */

static void wrong_commands_say_what_would_be_right(void **state)
{
	static const struct {
		const char *line;
		int rc;
	} cases[] = {
		{ "volume create vol size=1M", -EEXIST },	{ "volume create new size=0",
		  -EINVAL },
		{ "volume create new size=513", -EINVAL },	{ "volume create new", -EINVAL },
		{ "volume create new size=9223372036854775808", -EINVAL },
		  { "volume create a:b size=1M", -EINVAL },
		{ "volume create .a size=1M", -EINVAL },	{ "volume create new size=1M more",
		  -EINVAL },
		{ "volume create new foo=1M", -EINVAL },	{ "volume resize none size=1M",
		  -ENOENT },
		{ "volume remove none", -ENOENT },		{ "volume info none", -ENOENT },
		{ "volume", -EINVAL },				{ "volume make x", -EINVAL },
		{ "volume list x", -EINVAL },			{ "volumes", -ENOSYS },
		{ "stat", -ENOSYS },				{ "create x size=1M", -ENOSYS },
	};
	uint32_t i;

	(void)state;
	create("vol", "1M");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (admin(cases[i].line) != cases[i].rc)
			fail_msg("'%s': %s", cases[i].line, text);
		assert_true(strlen(text) > 10);
	}
	assert_true(admin("volume create b size=513") == -EINVAL && says("use 1024"));
	assert_true(admin("volume create b size=18014398509482496") == -EINVAL &&
		    says("2^32 objects of 4M; use 16P"));
	assert_true(admin("volume resize vol size=18014398509482496") == -EINVAL &&
		    says("use 16P at most"));
	assert_true(admin("volume resize vol size=16P") > 0);
}

static void info_and_list_show_each_volume(void **state)
{
	uint32_t id = create("a", "1M");

	(void)state;
	create("b", "2G");
	assert_true(admin("volume info a") > 0);
	assert_true(says("slot=0\nname=a\n") &&
		    says("\nsize_bytes=1048576\nobject_size_bytes=4194304\n"));
	assert_true(says("\nstate=ok\nobjects_left=0\n"));
	assert_int_equal(number("\nid="), id);
	assert_true(admin("volume list 0") > 0);
	assert_true(says("slot=0 name=a id="));
	assert_true(says("\nslot=1 name=b id="));
	assert_false(says("next="));
	assert_true(admin("volume list 1") > 0);
	assert_false(says("name=a"));
	assert_true(admin("status") > 0);
	assert_true(says("volumes=2\nvolumes_bytes=2148532224\nloading=no\nremoving=0\n"));
}

static void a_long_list_comes_in_pieces(void **state)
{
	char name[32], line[64];
	uint64_t next = 0;
	uint32_t seen = 0, calls = 0;

	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "volume-%u", i);
		create(name, "1M");
	}
	do {
		snprintf(line, sizeof(line), "volume list %" PRIu64, next);
		assert_true(admin(line) > 0);
		for (const char *at = text; (at = strstr(at, "name=")); at++)
			seen++;
		next = says("next=") ? number("next=") : VD_SLOTS;
		calls++;
	} while (next != VD_SLOTS);
	assert_int_equal(seen, 400);
	assert_true(calls > 1);
}

static void a_full_catalogue_says_so(void **state)
{
	struct volumed *v = (struct volumed *)vd;

	(void)state;
	for (uint32_t i = 0; i < VD_SLOTS; i++)
		v->volume[i].meta.state = VD_DAMAGED;
	assert_int_equal(admin("volume create vol size=1M"), -ENOSPC);
	assert_true(says("8192"));
}

static void a_change_is_answered_after_its_record_is_on_stable_storage(void **state)
{
	static const char *const order[] = {
		VD_CATALOG_HEAD, VD_CATALOG_COPY, VD_CATALOG, VD_CATALOG_HEAD
	};
	struct xreq *r;

	(void)state;
	hold = true;
	r = send_admin("volume create vol size=1M", 0);
	steps(50);
	assert_false(answered(r));
	assert_int_equal(notes[nr_notes - 1].op, XSEG_OP_WRITE);
	hold = false;
	assert_true(admin_result(r) > 0);
	for (uint32_t i = 0; i < 4; i++) {
		const struct note *n = &notes[nr_notes - 4 + i];

		assert_string_equal(n->target, order[i]);
		assert_int_equal(n->op, XSEG_OP_WRITE);
		assert_int_equal(n->flags, XSEG_REQ_FUA);
		assert_int_equal(n->size, 512);
	}
	/* the identity of the next one is reserved already */
	nr_notes = 0;
	create("next", "1M");
	assert_int_equal(nr_notes, 3);
}

/* Beside another one, with a page of its own. */
static struct xreq *send_beside(const char *line, uint32_t page)
{
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_ADMIN;
	r->nr_pages = 1;
	r->size = 4096;
	r->page[0] = pages[page];
	memcpy(page_byte(page * 4096ull), line, strlen(line) + 1);
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

static bool page_says(uint32_t page, const char *part)
{
	return strstr((const char *)page_byte(page * 4096ull), part);
}

static void changes_that_come_together_are_done_in_order(void **state)
{
	uint32_t nr = 0;
	struct xreq *r = send_admin("volume create vol size=1M", 0), *second;

	(void)state;
	second = send_beside("volume create vol size=2M", 0);
	assert_true(result_of(r) > 0);
	assert_int_equal(result_of(second), -EEXIST);
	nr = count_exact(XSEG_OP_WRITE, VD_CATALOG);
	assert_int_equal(nr, 1);
}

static void expect_answers(const char *state)
{
	struct xreq *list = send_beside("volume list 0", 0);
	struct xreq *info = send_beside("volume info here", 1);
	struct xreq *lost = send_beside("volume lost", 2);

	assert_true(result_of(list) > 0);
	assert_true(page_says(0, "name=here") && !page_says(0, "name=vol"));
	assert_true(result_of(info) > 0 && page_says(1, state));
	assert_int_equal(result_of(lost), 0);
}

/* A3: the store stands still at each step of a change, and of its undoing. */
static void questions_are_answered_while_a_change_waits_for_its_store(void **state)
{
	struct xreq *r;

	(void)state;
	create("here", "1M");
	for (uint32_t kept = 0; kept < 5; kept++) {
		nr_notes = 0;
		if (kept == 4)
			fail_next(XSEG_OP_WRITE, -EIO, 1, 1);
		hold = !kept;
		r = send_admin("volume create vol size=1M", 0);
		while (nr_notes < kept)
			step();
		hold = true;
		steps(50);
		assert_true(kept == 3 || kept == 4 || !answered(r));
		if (!answered(r))
			expect_answers("state=ok");
		hold = false;
		result_of(r);
		pass_ns(1000 * MS);
		steps(100);
		if (admin("volume remove vol") > 0)
			steps(300);
	}
	hold = true;
	r = send_admin("volume remove here", 0);
	steps(50);
	assert_false(answered(r));
	expect_answers("state=ok");
	hold = false;
	assert_true(admin_result(r) > 0);
}

/* While the catalogue is read its client makes a change of it. */
static void a_question_that_becomes_a_change_waits_as_changes_do(void **state)
{
	struct xreq *r, *question;

	(void)state;
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = true;
	volumed_open(1, "4M", "64");
	r = send_admin("volume create vol size=1M", 0);
	question = send_beside("volume list", 0);
	steps(50);
	memcpy(page_byte(0), "volume create too size=1M", 26);
	hold = false;
	assert_true(admin_result(r) > 0 && says("name=vol"));
	assert_true(result_of(question) > 0 && page_says(0, "name=too"));
}

static void a_change_that_could_not_be_recorded_is_undone(void **state)
{
	(void)state;
	fail_next(XSEG_OP_WRITE, -EIO, 0, 3);
	assert_int_equal(admin("volume create vol size=1M"), -EIO);
	assert_true(says("catalogue"));
	assert_int_equal(admin("volume create other size=1M"), -EIO);
	assert_true(says("undone"));
	assert_int_equal(admin("volume info vol"), -ENOENT);
	pass_ns(1000 * MS);
	assert_int_equal(admin("volume create other size=1M"), -EIO);
	pass_ns(1000 * MS);
	create("other", "1M");
	volumed_restart();
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_true(admin("volume info other") > 0);
}

/* The record is on the store, though its write failed. While it may not be undone nobody is told
 * so, and a successor goes on with the command. */
static void a_change_that_failed_and_is_on_the_store_all_the_same_is_not_said_to_be_undone(void **state)
{
	static const char *const lines[] = { "volume create new size=1M",
		"volume resize vol size=32M", "volume resize vol size=4M", "volume remove vol" };
	uint32_t id;
	struct xreq *r;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		id = create("vol", "16M");
		assert_int_equal(write_pattern(id, 15 << 20, 4096, 3), 4096);
		hold = true;
		fail_next(XSEG_OP_WRITE, -EIO, 0, 2);
		fail_done = 1;
		r = send_admin(lines[i], 0);
		steps(10);
		hold = false;
		peer_port_round(&store->ports[0], now, 32, &(uint64_t){ 0 });
		hold = true;
		steps(10);
		assert_non_null(held);
		assert_false(answered(r));
		volumed_close(XSEG_CLOSE_ABANDON);
		hold = false;
		steps(5);
		assert_int_equal(fail_count, 0);
		volumed_open(1, "4M", "64");
		assert_true(admin_result(r) > 0);
		for (uint32_t k = 0; k < 2; k++) {
			admin(k ? "volume remove vol" : "volume remove new");
			steps(50);
		}
	}
}

static void what_is_said_to_be_undone_is_not_done_by_the_successor(void **state)
{
	static const char *const lines[] = { "volume create new size=1M",
		"volume resize vol size=32M", "volume resize vol size=4M", "volume remove vol" };
	uint32_t id = create("vol", "16M");

	(void)state;
	assert_int_equal(write_pattern(id, 15 << 20, 4096, 3), 4096);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		fail_next(XSEG_OP_WRITE, -EIO, 0, 1);
		fail_done = 1;
		assert_int_equal(admin(lines[i]), -EIO);
		assert_true(says("the change is undone"));
		volumed_restart();
		assert_int_equal(admin("volume info new"), -ENOENT);
		assert_true(admin("volume info vol") > 0 && says("size_bytes=16777216\n"));
		expect_pattern(id, 15 << 20, 4096, 3);
	}
	fail_next(XSEG_OP_WRITE, -EIO, 0, UINT32_MAX);
	fail_done = 1;
	assert_int_equal(admin("volume remove vol"), -EIO);
	assert_true(says("cannot be undone") && !says("is undone"));
	fail_next(XSEG_OP_WRITE, -EIO, 0, 0);
	pass_ns(1000 * MS);
	volumed_restart();
	expect_pattern(id, 15 << 20, 4096, 3);
}

static void growing_is_one_record(void **state)
{
	uint32_t id = create("vol", "4096");

	(void)state;
	assert_int_equal(io(XSEG_OP_WRITE, id, 4096, 4096), -ENXIO);
	nr_notes = 0;
	assert_true(admin("volume resize vol size=8192") > 0);
	assert_true(says("size_bytes=8192\n"));
	assert_int_equal(nr_notes, 3);
	assert_int_equal(count_exact(XSEG_OP_WRITE, VD_CATALOG), 1);
	assert_int_equal(io(XSEG_OP_WRITE, id, 4096, 4096), 4096);
	assert_int_equal(io(XSEG_OP_INFO, id, 0, 0), 8192);
	assert_true(admin("volume resize vol size=8192") > 0);
}

/* ---- starting ---------------------------------------------------------------------------- */

static void list_into(char *list)
{
	assert_true(admin("volume list 0") >= 0);
	memcpy(list, text, sizeof(text));
}

/* Whatever request fails, once or three times: when the store works again, all goes on, and what
 * volumed says is what a restart finds. */
static void after_an_error_at_any_io_a_restart_finds_what_was_said(void **state)
{
	static const char *const lines[] = {
		"volume create a size=10M", "volume resize a size=5120", "volume create b size=4M",
		"volume resize a size=20M", "volume remove b",
	};
	static char before[sizeof(text)], after[sizeof(text)];
	struct xreq *r;

	(void)state;
	for (uint32_t n = 0; n < 60; n++) {
		fail_next(XSEG_NR_OPS, -EIO, n / 2, n & 1 ? 3 : 1);
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			r = send_admin(lines[i], 0);
			for (uint32_t k = 0; k < 20 && !answered(r); k++)
				pass_ns(500 * MS);
			admin_result(r);
		}
		for (uint32_t k = 0; k < 20; k++)
			pass_ns(500 * MS);
		assert_true(admin("status") > 0 && says("removing=0"));
		list_into(before);
		volumed_restart();
		for (uint32_t k = 0; k < 20; k++)
			pass_ns(500 * MS);
		list_into(after);
		assert_string_equal(before, after);
		assert_true(admin("volume remove a") != 0);
		steps(50);
	}
}

static void volumes_are_the_same_after_a_restart(void **state)
{
	uint32_t a = create("a", "1M"), b = create("b", "64M");

	(void)state;
	assert_int_equal(write_pattern(b, 1234 * 512, 4096, 9), 4096);
	volumed_restart();
	assert_true(admin("volume info a") > 0);
	assert_int_equal(number("\nid="), a);
	assert_true(admin("volume info b") > 0);
	assert_int_equal(number("\nid="), b);
	assert_int_equal(number("\nsize_bytes="), 64 << 20);
	expect_pattern(b, 1234 * 512, 4096, 9);
}

static void volumes_keep_the_object_size_they_were_made_with(void **state)
{
	uint32_t id = create("vol", "1M");

	(void)state;
	volumed_close(XSEG_CLOSE_FREE_ARENA);
	volumed_open(1, "64k", "64");
	steps(20);
	assert_int_equal(write_pattern(id, 65536, 4096, 1), 4096);
	assert_non_null(object_find(object_of("vol", 0x0)));
	id = create("new", "1M");
	assert_int_equal(write_pattern(id, 65536, 4096, 1), 4096);
	assert_non_null(object_find(object_of("new", 0x1)));
}

static void requests_wait_while_the_catalogue_cannot_be_read(void **state)
{
	uint32_t id = create("vol", "1M");
	struct xreq *r, *r2;

	(void)state;
	assert_int_equal(write_pattern(id, 0, 4096, 2), 4096);
	volumed_close(XSEG_CLOSE_ABANDON);
	fail_next(XSEG_OP_READ, -EIO, 1, UINT32_MAX);
	r = send_io(XSEG_OP_READ, id, 0, 4096, 0);
	volumed_open(1, "4M", "64");
	steps(50);
	r2 = send_io(XSEG_OP_FLUSH, id, 0, 0, 0);
	steps(50);
	assert_false(answered(r) || answered(r2));
	assert_true(admin("status") > 0 && says("loading=yes") && !says("error="));
	/* three objects are asked for again, three times, and all that twice */
	for (uint32_t n = 0; n < 200 && admin("status") > 0 && !says("error="); n++) {
		pass_ns(50 * MS);
		steps(1000);
	}
	assert_int_equal(admin("volume info vol"), -EIO);
	assert_true(admin("status") > 0 && says("loading=yes") && says("error="));
	assert_false(answered(r) || answered(r2));
	fail_next(XSEG_OP_READ, -EIO, 0, 0);
	pass_ns(900 * MS);
	assert_false(answered(r));
	pass_ns(200 * MS);
	assert_int_equal(result_of(r), 4096);
	assert_int_equal(result_of(r2), 0);
	assert_int_equal(*page_byte(100), pattern(100, 2));
	assert_true(admin("status") > 0 && says("loading=no") && !says("error="));
}

/* The rest would look like slots that were never used. */
static void nobody_reads_past_it_before_the_catalogue_is_read(void **state)
{
	(void)state;
	create("vol", "16M");
	assert_true(xseg_direct_is_open(vd->xp));
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = true;
	volumed_open(1, "4M", "64");
	steps(5);
	assert_false(xseg_direct_is_open(vd->xp));
	hold = false;
	steps(50);
	assert_true(xseg_direct_is_open(vd->xp));
}

static void a_catalogue_that_is_read_in_part_is_read_again(void **state)
{
	uint32_t id = create("vol", "1M");

	(void)state;
	assert_int_equal(write_pattern(id, 0, 4096, 2), 4096);
	volumed_close(XSEG_CLOSE_ABANDON);
	fail_next(XSEG_OP_READ, 0, 0, 1);
	volumed_open(1, "4M", "64");
	steps(50);
	assert_true(admin("status") > 0 && says("loading=yes"));
	fail_next(XSEG_OP_READ, 512, 0, 1);
	pass_ns(1000 * MS);
	assert_true(admin("status") > 0 && says("loading=yes"));
	pass_ns(1000 * MS);
	assert_true(admin("status") > 0 && says("loading=no"));
	expect_pattern(id, 0, 4096, 2);
}

static void commands_wait_for_the_catalogue_too(void **state)
{
	struct xreq *r;

	(void)state;
	create("vol", "1M");
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = true;
	volumed_open(1, "4M", "64");
	steps(20);
	r = send_admin("volume info vol", 0);
	steps(20);
	assert_false(answered(r));
	hold = false;
	assert_true(admin_result(r) > 0);
}

static void a_store_without_a_catalogue_has_no_volumes(void **state)
{
	(void)state;
	volumed_close(XSEG_CLOSE_ABANDON);
	for (uint32_t i = 0; i < MAX_OBJECTS; i++)
		object_drop(&objects[i]);
	missing_is_enoent = true;
	volumed_open(1, "4M", "64");
	steps(20);
	assert_int_equal(admin("volume list 0"), 0);
	create("vol", "1M");
}

static int open_another(struct peer **other, struct xseg_error *err)
{
	int rc;

	*other = peer_create(&volumed_class);
	assert_non_null(*other);
	snprintf((*other)->name, sizeof((*other)->name), "other");
	snprintf((*other)->downstream_name, sizeof((*other)->downstream_name), "store");
	rc = peer_open(*other, seg, err);
	if (rc)
		peer_destroy(*other);
	return rc;
}

/* Each would write its records over the other's. */
static void a_catalogue_has_one_volumed(void **state)
{
	struct xseg_error err = { "" };
	struct peer *other, *again;

	(void)state;
	create("vol", "1M");
	assert_int_equal(open_another(&other, &err), -EBUSY);
	assert_non_null(strstr(err.text, "'volumed' sends to 'store'"));
	create("more", "1M");
	/* killed it comes again, if there is a supervisor; stopped it need not */
	volumed_close(XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(open_another(&other, &err), 0);
	again = peer_create(&volumed_class);
	snprintf(again->downstream_name, sizeof(again->downstream_name), "store");
	assert_int_equal(peer_open(again, seg, &err), -EBUSY);
	peer_destroy(again);
	peer_close(other, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(other);
	volumed_open(1, "4M", "64");
	assert_true(admin("volume info vol") > 0);
}

static void a_catalogue_of_another_version_is_left_alone(void **state)
{
	uint32_t id = create("vol", "1M"), version = 3;

	(void)state;
	memcpy(object_find(":catalog")->data + 8, &version, 4);
	volumed_restart();
	nr_notes = 0;
	assert_int_equal(io(XSEG_OP_READ, id, 0, 512), -EPROTO);
	assert_int_equal(admin("volume create b size=1M"), -EPROTO);
	assert_true(says("the catalogue of volumes is of another version of volumed"));
	pass_ns(5000 * MS);
	assert_int_equal(nr_notes, 0);
}

static void a_damaged_record_harms_its_own_volume_only(void **state)
{
	uint32_t a = create("a", "1M"), b = create("b", "1M");
	uint8_t copy[512], *rec = object_find(":catalog")->data;

	(void)state;
	rec[40] ^= 1;
	memcpy(copy, rec, sizeof(copy));
	object_find(VD_CATALOG_COPY)->data[40] ^= 1;
	volumed_restart();
	assert_int_equal(io(XSEG_OP_READ, a, 0, 512), -ENOENT);
	assert_int_equal(io(XSEG_OP_READ, b, 0, 512), 512);
	assert_true(admin("status") > 0 && says("damaged=1"));
	create("c", "1M");
	assert_memory_equal(copy, object_find(":catalog")->data, sizeof(copy));
	assert_true(admin("volume list 0") > 0 && says("slot=2 name=c"));
}

/* Another volume of its name would show what it held, and take that along when it is removed. */
static void the_name_of_a_damaged_record_is_not_used_again(void **state)
{
	uint32_t a = create("a", "1M");

	(void)state;
	assert_int_equal(write_pattern(a, 0, 512, 1), 512);
	object_find(":catalog")->data[40] ^= 1;
	object_find(VD_CATALOG_COPY)->data[40] ^= 1;
	volumed_restart();
	assert_int_equal(admin("volume create a size=1M"), -EEXIST);
	assert_true(says("record 0 of the catalogue is damaged and was of a volume 'a'"));
	assert_int_equal(admin("volume info a"), -ENOENT);
	assert_true(says("record 0 of the catalogue is damaged and was of a volume 'a'"));
	assert_int_equal(admin("volume info b"), -ENOENT);
	assert_true(says("there is no volume 'b'"));
	create("b", "1M");
}

static void records_are_believed_only_when_everything_fits(void **state)
{
	struct vd_meta meta = { .name = "vol",
		.state = VD_SHRINKING,
		.generation = 77,
		.size_bytes = 4096,
		.object_size = 65536,
		.cut_bytes = 8192 },
		       out;
	uint8_t rec[512], zero[512] = { 0 };

	(void)state;
	vd_record_encode(&meta, 5, rec);
	assert_int_equal(vd_record_decode(rec, 5, &out), 0);
	assert_memory_equal(&out, &meta, sizeof(meta));
	assert_int_equal(vd_record_decode(rec, 6, &out), -EBADMSG);
	for (uint32_t i = 0; i < 512; i++) {
		rec[i] ^= 0x10;
		assert_int_not_equal(vd_record_decode(rec, 5, &out), 0);
		rec[i] ^= 0x10;
	}
	assert_int_equal(vd_record_decode(zero, 5, &out), 0);
	assert_int_equal(out.state, VD_FREE);
	meta.cut_bytes = 4096;
	vd_record_encode(&meta, 5, rec);
	assert_int_equal(vd_record_decode(rec, 5, &out), -EBADMSG);
	meta = (struct vd_meta){
		.name = "a:b", .state = VD_LIVE, .size_bytes = 4096, .object_size = 65536
	};
	vd_record_encode(&meta, 5, rec);
	assert_int_equal(vd_record_decode(rec, 5, &out), -EBADMSG);
	meta = (struct vd_meta){
		.name = "a", .state = VD_LIVE, .size_bytes = 4096, .object_size = 65000
	};
	vd_record_encode(&meta, 5, rec);
	assert_int_equal(vd_record_decode(rec, 5, &out), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(wrong_commands_say_what_would_be_right),
		T(info_and_list_show_each_volume),
		T(a_long_list_comes_in_pieces),
		T(a_full_catalogue_says_so),
		T(a_change_is_answered_after_its_record_is_on_stable_storage),
		T(changes_that_come_together_are_done_in_order),
		T(questions_are_answered_while_a_change_waits_for_its_store),
		T(a_question_that_becomes_a_change_waits_as_changes_do),
		T(a_change_that_could_not_be_recorded_is_undone),
		T(a_change_that_failed_and_is_on_the_store_all_the_same_is_not_said_to_be_undone),
		T(what_is_said_to_be_undone_is_not_done_by_the_successor),
		T(growing_is_one_record),
		T(after_an_error_at_any_io_a_restart_finds_what_was_said),
		T(volumes_are_the_same_after_a_restart),
		T(volumes_keep_the_object_size_they_were_made_with),
		T(requests_wait_while_the_catalogue_cannot_be_read),
		T(nobody_reads_past_it_before_the_catalogue_is_read),
		T(a_catalogue_that_is_read_in_part_is_read_again),
		T(commands_wait_for_the_catalogue_too),
		T(a_store_without_a_catalogue_has_no_volumes),
		T(a_catalogue_has_one_volumed),
		T(a_catalogue_of_another_version_is_left_alone),
		T(a_damaged_record_harms_its_own_volume_only),
		T(the_name_of_a_damaged_record_is_not_used_again),
		T(records_are_believed_only_when_everything_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
