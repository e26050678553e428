/* volumed_rename_test - a volume gets another name: its data, id and limits stay, at any kill. A
 * COPY from one volume to another is forwarded with the source's object.
 */
#include "tests/rig/volumed_rig.h"

static void a_renamed_volume_keeps_its_data_and_frees_its_name(void **state)
{
	uint32_t id = create("old", "16M"), other;

	(void)state;
	assert_int_equal(write_pattern(id, 4096, 8192, 1), 8192);
	assert_true(admin("volume set old iops=1000000") > 0);
	assert_true(admin("volume rename old new") > 0);
	assert_true(says("name=new\n") && says("iops=1000000\n") && number("id=") == id);
	assert_int_equal(admin("volume info old"), -ENOENT);
	expect_pattern(id, 4096, 8192, 1);
	other = create("old", "16M");
	assert_int_not_equal(other, id);
	expect_zeroes(other, 4096, 8192);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(admin("volume info new") > 0);
		assert_int_equal(number("id="), id);
		expect_pattern(id, 4096, 8192, 1);
		volumed_restart();
	}
	assert_true(admin("volume rename new newer") > 0);
	assert_true(admin("volume rename newer new") > 0);
	assert_true(admin("volume rename old newer") > 0);
	expect_pattern(id, 4096, 8192, 1);
}

static void names_that_are_taken_or_wrong_are_refused(void **state)
{
	uint32_t id;

	(void)state;
	create("a", "1M");
	id = create("b", "1M");
	assert_int_equal(admin("volume rename a b"), -EEXIST);
	assert_int_equal(admin("volume rename a a"), -EEXIST);
	assert_int_equal(admin("volume rename none c"), -ENOENT);
	assert_int_equal(admin("volume rename a -c"), -EINVAL);
	assert_int_equal(admin("volume rename a"), -EINVAL);
	assert_int_equal(admin("volume rename a c d"), -EINVAL);
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
	assert_true(admin("volume remove b") > 0);
	assert_int_equal(admin("volume rename b c"), -EBUSY);
	assert_true(admin("volume rename a b") > 0);	/* that one's name is free */
	fail_next(XSEG_OP_DELETE, -EIO, 0, 0);
}

static void a_volume_that_is_open_keeps_its_name(void **state)
{
	uint32_t id = create("vol", "1M"), me = xseg_peer_find(seg, "volumed");

	(void)state;
	xseg_client_volume_set(client, me, id);
	assert_int_equal(admin("volume rename vol new"), -EBUSY);
	assert_true(says("in use by") && !says("--force"));
	xseg_client_volume_set(client, me, 0);
	assert_true(admin("volume rename vol new") > 0);
}

/* Its objects have its name. */
static void a_volume_of_an_older_program_keeps_its_name(void **state)
{
	struct vd_meta meta = { .state = VD_LIVE, .name = "vol", .generation = 7,
		.size_bytes = 1 << 20, .object_size = 4 << 20 };

	(void)state;
	record_forge(3, &meta);
	volumed_restart();
	assert_int_equal(admin("volume rename vol new"), -EBUSY);
	assert_true(says("volume copy vol new"));
}

/* The n-th write of the three may be the last one that the store gets. */
static void a_kill_leaves_one_of_the_two_names_and_the_command_is_done(void **state)
{
	uint32_t id = create("name0", "16M");
	char line[64], name[16];
	uint64_t next;
	struct xreq *r;

	(void)state;
	assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
	for (uint32_t n = 0; n < 9; n++) {
		snprintf(line, sizeof(line), "volume rename name%u name%u", n, n + 1);
		r = send_admin(line, 0);
		hold = n % 3 == 0;		/* else so many writes are done */
		for (uint32_t i = 0; i < n; i++) {
			peer_port_round(&vd->ports[0], now, 32, &next);
			peer_port_round(&store->ports[0], now, 32, &next);
		}
		volumed_close(XSEG_CLOSE_ABANDON);
		hold = false;
		steps(5);
		volumed_open(1, "4M", "64");
		assert_true(admin_result(r) > 0);
		snprintf(name, sizeof(name), "name=name%u\n", n + 1);
		assert_true(says(name));
		snprintf(line, sizeof(line), "volume info name%u", n);
		assert_int_equal(admin(line), -ENOENT);
		expect_pattern(id, 0, 4096, 1);
	}
}

static void a_rename_that_cannot_be_written_is_undone(void **state)
{
	(void)state;
	create("vol", "1M");
	for (uint32_t after = 0; after < 3; after++) {
		fail_next(XSEG_OP_WRITE, -EIO, after, 1);
		assert_int_equal(admin("volume rename vol new"), -EIO);
		pass_ns(1000 * MS);
		assert_true(admin("volume info vol") > 0);
		assert_int_equal(admin("volume info new"), -ENOENT);
		volumed_restart();
		assert_true(admin("volume info vol") > 0);
	}
	assert_true(admin("volume rename vol new") > 0);
}

static bool is_counted(const char *name, uint64_t *reads)
{
	struct xseg_stats_view view;
	bool found = false;

	*reads = 0;
	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++) {
		if (!xseg_stats_view(seg, i, &view) || strcmp(view.kind, "volume") != 0 ||
			strcmp(view.name, name) != 0)
			continue;
		found = true;
		*reads += xseg_stats_value(&view, "reads");
	}
	return found;
}

static void its_counters_go_on_under_the_new_name(void **state)
{
	uint32_t id = create("vol", "1M");
	uint64_t reads;

	(void)state;
	assert_int_equal(io(XSEG_OP_READ, id, 0, 4096), 4096);
	assert_true(admin("volume rename vol new") > 0);
	assert_false(is_counted("vol", &reads));
	assert_int_equal(io(XSEG_OP_READ, id, 0, 4096), 4096);
	assert_true(is_counted("new", &reads));
	assert_int_equal(reads, 2);
	volumed_restart();
	assert_int_equal(io(XSEG_OP_READ, id, 0, 4096), 4096);
	assert_true(is_counted("new", &reads));
	assert_int_equal(reads, 3);
	assert_true(admin("volume remove new") > 0);
	steps(50);
	assert_false(is_counted("new", &reads));
}

/* ---- copies ------------------------------------------------------------------------------ */

/* The store of the rig knows no COPY, and answers EINVAL: what it gets is what counts. */
static int64_t send_copy(const char *from, uint32_t to, uint64_t offset, uint32_t size)
{
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_COPY;
	r->volume = to;
	r->offset = offset;
	r->size = size;
	r->nr_pages = 1;
	r->page[0] = pages[0];
	snprintf((char *)page_byte(XSEG_COPY_VOLUME), 16, "%s", from);
	nr_notes = 0;
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return result_of(r);
}

static void a_copy_names_the_object_of_its_source(void **state)
{
	uint32_t a = create("a", "16M"), b = create("b", "16M");
	char from[16];

	(void)state;
	snprintf(from, sizeof(from), "%" PRIu32, a);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(send_copy(from, b, (4 << 20) + 8192, 4096), -EINVAL);
		assert_int_equal(nr_notes, 1);
		assert_string_equal(notes[0].target, object_of("b", 1));
		assert_string_equal((char *)page_byte(0), object_of("a", 1));
		assert_int_equal(notes[0].obj_offset, 8192);
		assert_int_equal(notes[0].volume, b);
		assert_string_equal((char *)page_byte(XSEG_COPY_VOLUME), from);
		volumed_restart();
	}
}

static void a_copy_that_cannot_be_is_sent_nowhere(void **state)
{
	uint32_t a = create("a", "1M"), b = create("b", "16M"), other;
	char from[16];

	(void)state;
	snprintf(from, sizeof(from), "%" PRIu32, a);
	assert_int_equal(send_copy("77777", b, 0, 4096), -ESTALE);
	assert_int_equal(send_copy("a", b, 0, 4096), -ESTALE);
	assert_int_equal(send_copy(from, a, 0, 4096), -EINVAL);		/* itself */
	assert_int_equal(send_copy(from, b, 1 << 20, 4096), -ENXIO);	/* the source ends */
	assert_int_equal(send_copy(from, b, 100, 4096), -EINVAL);
	assert_int_equal(send_copy(from, b + 1, 0, 4096), -ENOENT);
	assert_int_equal(nr_notes, 0);
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "64k", "64");
	steps(20);
	other = create("other", "1M");			/* its objects are smaller */
	assert_int_equal(send_copy(from, other, 0, 4096), -EINVAL);
	assert_int_equal(nr_notes, 0);
	assert_true(admin("volume create like size=1M like=a") > 0);
	assert_int_equal(number("object_size_bytes="), 4 << 20);
	assert_int_equal(admin("volume create none size=1M like=nothing"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_renamed_volume_keeps_its_data_and_frees_its_name),
		T(names_that_are_taken_or_wrong_are_refused),
		T(a_volume_that_is_open_keeps_its_name),
		T(a_volume_of_an_older_program_keeps_its_name),
		T(a_kill_leaves_one_of_the_two_names_and_the_command_is_done),
		T(a_rename_that_cannot_be_written_is_undone),
		T(its_counters_go_on_under_the_new_name),
		T(a_copy_names_the_object_of_its_source),
		T(a_copy_that_cannot_be_is_sent_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
