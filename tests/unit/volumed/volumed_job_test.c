/* volumed_job_test - the volume peer's background jobs: volumes become smaller, and go. */
#include "tests/rig/volumed_rig.h"

/* ---- shrinking --------------------------------------------------------------------------- */

static void shrink_and_grow(void)
{
	uint32_t id = create("vol", "16M");

	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(write_pattern(id, i * 1048576ull, 1048576, 3), 1048576);
	assert_int_equal(nr_objects(), 4);
	assert_true(admin("volume resize vol size=5243392") > 0);
	assert_true(says("size_bytes=5243392\n"));
	assert_int_equal(nr_objects(), 2);
	assert_int_equal(io(XSEG_OP_READ, id, 5243392, 512), -ENXIO);
	expect_pattern(id, 5243392 - 8192, 8192, 3);
	assert_true(admin("volume resize vol size=16M") > 0);
	expect_pattern(id, 5243392 - 8192, 8192, 3);
	for (uint64_t at = 5243392; at < 16 << 20; at += 524288)
		expect_zeroes(
			id, at, at + 524288 <= 16 << 20 ? 524288 : (uint32_t)((16 << 20) - at));
}

static void shrinking_and_growing_never_shows_old_data(void **state)
{
	(void)state;
	shrink_and_grow();
	assert_true(count_notes(XSEG_OP_WRITE_ZEROES, of("vol")) == 3);
}

static void what_a_shrink_has_zeroed_in_part_is_zeroed_again(void **state)
{
	uint32_t id = create("vol", "4M");
	struct xreq *r;

	(void)state;
	assert_int_equal(write_pattern(id, 3 << 20, 1048576, 3), 1048576);
	fail_next(XSEG_OP_WRITE_ZEROES, 512, 0, UINT32_MAX);
	r = send_admin("volume resize vol size=3M", 0);
	steps(100);
	assert_false(answered(r));
	fail_next(XSEG_OP_WRITE_ZEROES, 0, 0, 0);
	pass_ns(1000 * MS);
	assert_true(admin_result(r) > 0);
	assert_true(admin("volume resize vol size=4M") > 0);
	expect_zeroes(id, 3 << 20, 524288);
	expect_zeroes(id, (3 << 20) + 524288, 524288);
}

/* A store may have lost all that a FLUSH which failed was to cover, and say so of what was written
 * until that is written again. */
static void what_a_failed_flush_was_to_cover_is_done_again(void **state)
{
	uint32_t id = create("vol", "16M"), lists = 2;
	struct xreq *r;

	(void)state;
	list_room = MAX_OBJECTS;
	assert_int_equal(write_pattern(id, 9 << 20, 4096, 3), 4096);
	assert_int_equal(write_pattern(id, 5 << 20, 1048576, 3), 1048576);
	fail_next(XSEG_OP_FLUSH, -EIO, 0, 1);
	nr_notes = 0;
	r = send_admin("volume resize vol size=5M", 0);
	steps(100);
	assert_false(answered(r));
	assert_int_equal(fail_count, 0);
	assert_int_equal(count_notes(XSEG_OP_WRITE_ZEROES, of("vol")), 3);
	assert_int_equal(count_notes(XSEG_OP_LIST, of("vol")), lists);
	pass_ns(1000 * MS);
	assert_true(admin_result(r) > 0);
	assert_int_equal(count_notes(XSEG_OP_WRITE_ZEROES, of("vol")), 6);
	assert_int_equal(count_notes(XSEG_OP_LIST, of("vol")), lists + 1);
	assert_int_equal(count_notes(XSEG_OP_FLUSH, of("vol")), 2);
}

static void a_store_without_write_zeroes_gets_zeroes_written(void **state)
{
	(void)state;
	knows_no_zeroes = true;
	shrink_and_grow();
}

static void io_beyond_the_new_size_is_refused_as_soon_as_it_is_recorded(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r;

	(void)state;
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	assert_int_equal(write_pattern(id, 15 << 20, 4096, 1), 4096);
	r = send_admin("volume resize vol size=4M", 0);
	steps(100);
	assert_false(answered(r));
	assert_int_equal(io(XSEG_OP_READ, id, 15 << 20, 512), -ENXIO);
	assert_int_equal(io(XSEG_OP_INFO, id, 0, 0), 4 << 20);
	/* the line of the first command is lost with its page; its answer is not looked at */
	assert_int_equal(admin("volume resize vol size=16M"), -EBUSY);
	assert_true(says("'vol' is still being cut"));
	assert_int_equal(admin("volume remove vol"), -EBUSY);
	fail_next(XSEG_OP_DELETE, -EIO, 0, 0);
	now += 1000 * MS;
	assert_true(admin_result(r) > 0);
	assert_true(says("size_bytes=4194304\n") && says("objects_left=0"));
	assert_int_equal(nr_objects(), 0);
}

static void a_shrink_is_finished_by_the_successor(void **state)
{
	uint32_t id = create("vol", "16M");

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(write_pattern(id, (uint64_t)i << 22, 1048576, 3), 1048576);
	hold = true;
	send_admin("volume resize vol size=5M", 0);
	steps(20);
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = false;
	steps(5);
	volumed_open(1, "4M", "64");
	steps(50);
	assert_int_equal(nr_objects(), 2);
	assert_true(admin("volume info vol") > 0);
	assert_true(says("size_bytes=5242880\n") && says("objects_left=0"));
	assert_true(admin("volume resize vol size=16M") > 0);
}

/* What they know of objects below may be wrong then; and they are not refused, as requests are. */
static void nobody_reads_past_it_while_a_volume_is_cut_or_removed(void **state)
{
	struct xreq *r;

	(void)state;
	assert_int_equal(write_pattern(create("vol", "16M"), 0, 8192, 1), 8192);
	assert_int_equal(write_pattern(create("other", "16M"), 0, 8192, 1), 8192);
	assert_int_equal(write_pattern(create("third", "16M"), 12 << 20, 8192, 1), 8192);
	assert_true(xseg_direct_is_open(vd->xp));
	hold = true;
	r = send_admin("volume resize third size=4M", 0);
	steps(20);
	assert_true(xseg_direct_is_open(vd->xp));	/* it is not recorded yet, and not done */
	hold = false;
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	steps(20);
	assert_false(answered(r));
	assert_false(xseg_direct_is_open(vd->xp));
	fail_next(XSEG_OP_DELETE, -EIO, 0, 0);
	now += 1000 * MS;
	assert_true(admin_result(r) > 0);
	assert_true(xseg_direct_is_open(vd->xp));
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	assert_true(admin("volume remove vol") > 0);
	assert_false(xseg_direct_is_open(vd->xp));
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "4M", "64");
	steps(50);
	assert_false(xseg_direct_is_open(vd->xp));
	fail_next(XSEG_OP_DELETE, -EIO, 0, 0);
	now += 1000 * MS;
	steps(50);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_true(xseg_direct_is_open(vd->xp));
}

/* A cache counts by it what is dirty, and a store syncs by it. */
static void what_is_done_to_a_volume_s_objects_bears_its_id(void **state)
{
	uint32_t id = create("vol", "16M"), nr = 0;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(write_pattern(id, (uint64_t)i << 22, 4096, 3), 4096);
	nr_notes = 0;
	assert_true(admin("volume resize vol size=5M") > 0);
	assert_true(admin("volume remove vol") > 0);
	steps(200);
	for (uint32_t i = 0; i < nr_notes; i++) {
		if (strncmp(notes[i].target, of("vol"), strlen(of("vol"))))
			continue;
		assert_int_equal(notes[i].volume, id);
		nr++;
	}
	assert_int_equal(nr, count_notes(XSEG_OP_WRITE_ZEROES, of("vol")) +
				     count_notes(XSEG_OP_LIST, of("vol")) +
				     count_notes(XSEG_OP_DELETE, of("vol")) +
				     count_notes(XSEG_OP_FLUSH, of("vol")));
	assert_int_equal(count_notes(XSEG_OP_WRITE_ZEROES, of("vol")), 3);
	assert_int_equal(count_notes(XSEG_OP_DELETE, of("vol")), 4);
	assert_int_equal(count_notes(XSEG_OP_FLUSH, of("vol")), 2);
}

/* ---- removing ---------------------------------------------------------------------------- */

static void removing_deletes_every_object_behind_the_scenes(void **state)
{
	uint32_t id = create("vol", "1G"), id2;

	(void)state;
	for (uint32_t i = 0; i < 256; i += 5)
		assert_int_equal(write_pattern(id, (uint64_t)i << 22, 4096, 1), 4096);
	assert_int_equal(nr_objects(), 52);
	hold = true;
	struct xreq *r = send_admin("volume remove vol", 0);
	steps(5);
	hold = false;
	assert_true(admin_result(r) > 0);
	assert_true(says("state=removing"));
	assert_int_equal(io(XSEG_OP_READ, id, 0, 512), -ENOENT);
	steps(200);
	assert_int_equal(nr_objects(), 0);
	assert_int_equal(count_notes(XSEG_OP_DELETE, of("vol")), 52);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	id2 = create("vol", "1G");
	assert_int_not_equal(id, id2);
	assert_int_equal(id & 0xffff, id2 & 0xffff);
	assert_int_equal(io(XSEG_OP_READ, id, 0, 512), -ENOENT);
	expect_zeroes(id2, 0, 4096);
}

static void removal_waits_for_a_store_that_fails(void **state)
{
	uint32_t id = create("vol", "40M");

	(void)state;
	knows_no_list = true;
	assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
	fail_next(XSEG_OP_DELETE, -EIO, 4, 12);
	assert_true(admin("volume remove vol") > 0);
	steps(50);
	assert_true(admin("volume info vol") > 0);
	assert_true(says("state=removing"));
	assert_int_equal(number("objects_left="), 10);
	assert_true(admin("status") > 0 && says("removing=1"));
	assert_true(admin("volume remove vol") > 0);
	pass_ns(1000 * MS);
	assert_true(admin("volume info vol") > 0);
	pass_ns(1000 * MS);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_int_equal(nr_objects(), 0);
	assert_true(admin("status") > 0 && says("removing=0"));
}

static void removal_is_recorded_as_done_after_a_flush(void **state)
{
	static const char *const order[] = { VD_CATALOG_COPY, VD_CATALOG, VD_CATALOG_HEAD };
	uint32_t id = create("vol", "8M"), i;

	(void)state;
	assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
	nr_notes = 0;
	assert_true(admin("volume remove vol") > 0);
	steps(300);
	for (i = 3; i < nr_notes && notes[i].op != XSEG_OP_FLUSH; i++)
		assert_true(notes[i].op == XSEG_OP_LIST || notes[i].op == XSEG_OP_DELETE);
	assert_int_equal(nr_notes, i + 4);
	assert_string_equal(notes[i].target, of("vol"));
	assert_int_equal(notes[i - 1].op, XSEG_OP_LIST);
	for (uint32_t k = 0; k < 3; k++)
		assert_string_equal(notes[i + 1 + k].target, order[k]);
}

/* What comes next is its record. */
static void remove_until_it_is_flushed(void)
{
	list_room = MAX_OBJECTS;
	create("vol", "8M");
	nr_notes = 0;
	assert_true(admin("volume remove vol") > 0);
	while (!count_notes(XSEG_OP_FLUSH, of("vol")))
		step();
}

static void one_record_at_a_time_is_being_written(void **state)
{
	struct xreq *r;

	(void)state;
	remove_until_it_is_flushed();
	assert_int_equal(count_exact(XSEG_OP_WRITE, VD_CATALOG_COPY), 1);
	hold = true;
	steps(20);
	assert_int_equal(count_exact(XSEG_OP_WRITE, VD_CATALOG_COPY), 2);
	r = send_admin("volume create next size=1M", 0);
	steps(20);
	assert_false(answered(r));
	assert_int_equal(count_exact(XSEG_OP_WRITE, VD_CATALOG_COPY), 2);
	hold = false;
	assert_true(admin_result(r) > 0);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_true(admin("volume info next") > 0);
}

static void a_record_of_a_removal_that_cannot_be_sent_is_tried_again_in_time(void **state)
{
	uint64_t next = PEER_NEVER;

	(void)state;
	remove_until_it_is_flushed();
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(vd->xp), XSEG_NONE), 0);
	peer_port_round(&vd->ports[0], now, 32, &next);
	assert_int_equal(count_exact(XSEG_OP_WRITE, VD_CATALOG_COPY), 1);
	assert_int_equal(next, now + 1000 * MS);
	assert_int_equal(
		xseg_route_set(seg, xseg_peer_index(vd->xp), xseg_peer_index(store->xp)), 0);
	now = next;
	steps(20);
	assert_int_equal(admin("volume info vol"), -ENOENT);
}

/* A store keeps a write for long, and does what comes later meanwhile. */
static void an_older_write_that_comes_late_leaves_nothing(void **state)
{
	static const char *const lines[] = { "volume remove vol force",
		"volume resize vol size=4M" };
	struct xreq *w, *r;
	uint32_t id;

	(void)state;
	for (int i = 0; i < 2; i++) {
		id = create("vol", "16M");
		hold_writes = true;
		w = send_io(XSEG_OP_WRITE, id, 8 << 20, 4096, 0);
		steps(20);
		r = send_admin(lines[i], 0);
		for (int n = 0; n < 20; n++)
			pass_ns(1000 * MS);
		assert_int_equal(nr_objects(), 0);
		assert_int_equal(((struct volumed *)vd)->nr_jobs, 1);
		hold_writes = false;
		assert_int_equal(result_of(w), 4096);
		assert_int_equal(nr_objects(), 1);
		assert_true(admin_result(r) > 0);
		for (int n = 0; n < 20; n++)
			pass_ns(1000 * MS);
		assert_int_equal(nr_objects(), 0);
		assert_int_equal(((struct volumed *)vd)->nr_jobs, 0);
	}
}

static void removal_goes_on_after_a_restart(void **state)
{
	uint32_t id = create("vol", "1G");

	(void)state;
	for (uint32_t i = 0; i < 256; i += 8)
		assert_int_equal(write_pattern(id, (uint64_t)i << 22, 4096, 1), 4096);
	assert_true(admin("volume remove vol") > 0);
	volumed_restart();
	steps(200);
	assert_int_equal(nr_objects(), 0);
	assert_int_equal(admin("volume info vol"), -ENOENT);
}

static void volumes_that_are_removed_together_all_go(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		char name[] = { 'v', (char)('0' + i), 0 }, line[32];
		uint32_t id = create(name, "20M");

		assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
		snprintf(line, sizeof(line), "volume remove %s", name);
		assert_true(admin(line) > 0);
	}
	steps(500);
	assert_int_equal(nr_objects(), 0);
	assert_true(admin("volume list 0") >= 0 && !says("name="));
}

static bool is_removed(const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "volume info %s", name);
	return admin(line) == -ENOENT;
}

static void a_small_volume_is_removed_while_a_huge_one_still_is(void **state)
{
	uint64_t before, nr = 64u << 20 >> 2;
	uint32_t id;

	(void)state;
	knows_no_list = true;
	create("huge", "64T");
	assert_true(admin("volume remove huge") > 0);
	steps(100);
	id = create("small", "20M");
	assert_int_equal(write_pattern(id, 16 << 20, 4096, 1), 4096);
	assert_true(admin("volume remove small") > 0);
	for (uint32_t i = 0; i < 2000 && !is_removed("small"); i++)
		step();
	assert_true(is_removed("small"));
	assert_int_equal(nr_objects(), 0);
	assert_true(admin("volume info huge") > 0 && says("state=removing"));
	before = number("objects_left=");
	assert_true(before < nr && before > nr - 3 * VD_JOB_SLICE);
	steps(100);
	assert_true(admin("volume info huge") > 0);
	assert_true(number("objects_left=") < before);
	assert_true(count_notes(XSEG_OP_DELETE, of("huge")) <=
		    nr - number("objects_left=") + VD_JOB_DEPTH);
}

static void a_volume_that_a_client_has_open_is_removed_by_force_only(void **state)
{
	uint32_t me = xseg_peer_find(seg, "volumed"), id = create("vol", "20M");

	(void)state;
	xseg_client_volume_set(client, me, id);
	assert_int_equal(admin("volume remove vol"), -EBUSY);
	assert_true(says("in use by") && says("(pid "));
	assert_int_equal(admin("volume remove vol force=yes"), -EINVAL);
	assert_int_equal(admin("volume remove vol force force"), -EINVAL);
	assert_int_equal(io(XSEG_OP_READ, id, 0, 512), 512);
	xseg_client_volume_set(client, me, id + 1);
	assert_true(admin("volume remove vol") > 0);
	id = create("other", "20M");
	xseg_client_volume_set(client, me, id);
	assert_true(admin("volume remove other force") > 0);
	assert_true(admin("volume remove other") > 0 && says("state=removing"));
	assert_int_equal(io(XSEG_OP_READ, id, 0, 512), -ENOENT);
}

static void an_object_that_cannot_be_deleted_stops_no_other_volume(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const names[] = { "bad", "good", "cut" };

		assert_int_equal(
			write_pattern(create(names[i], "40M"), 12 << 20, 4096, i), 4096);
	}
	fail_target = object_of("bad", 0x3);
	assert_true(admin("volume remove bad") > 0);
	assert_true(admin("volume remove good") > 0);
	assert_true(admin("volume resize cut size=1M") > 0);
	steps(100);
	assert_true(is_removed("good"));
	assert_true(admin("volume info bad") > 0 && number("objects_left=") == 1);
	assert_int_equal(nr_objects(), 1);
	pass_ns(3000 * MS);
	assert_false(is_removed("bad"));
	fail_target = NULL;
	pass_ns(1000 * MS);
	assert_true(is_removed("bad"));
	assert_int_equal(nr_objects(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(shrinking_and_growing_never_shows_old_data),
		T(what_a_shrink_has_zeroed_in_part_is_zeroed_again),
		T(what_a_failed_flush_was_to_cover_is_done_again),
		T(a_store_without_write_zeroes_gets_zeroes_written),
		T(io_beyond_the_new_size_is_refused_as_soon_as_it_is_recorded),
		T(a_shrink_is_finished_by_the_successor),
		T(nobody_reads_past_it_while_a_volume_is_cut_or_removed),
		T(what_is_done_to_a_volume_s_objects_bears_its_id),
		T(removing_deletes_every_object_behind_the_scenes),
		T(removal_waits_for_a_store_that_fails),
		T(removal_is_recorded_as_done_after_a_flush),
		T(one_record_at_a_time_is_being_written),
		T(a_record_of_a_removal_that_cannot_be_sent_is_tried_again_in_time),
		T(an_older_write_that_comes_late_leaves_nothing),
		T(removal_goes_on_after_a_restart),
		T(volumes_that_are_removed_together_all_go),
		T(a_small_volume_is_removed_while_a_huge_one_still_is),
		T(a_volume_that_a_client_has_open_is_removed_by_force_only),
		T(an_object_that_cannot_be_deleted_stops_no_other_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
