/* volumed_damage_test - a catalogue that is cut short, gone, or of different times: which volumes
 * are served, which are refused, and which are brought back.
 */
#include "tests/rig/volumed_rig.h"

/* ---- what the store has ------------------------------------------------------------------ */

#define RECORDS_BYTES (VD_SLOTS * VD_RECORD_BYTES)

enum { COPY, RECORDS, HEAD, NR_OBJECTS };

static const char *const object_name[NR_OBJECTS] = { VD_CATALOG_COPY, VD_CATALOG, VD_CATALOG_HEAD };
static const size_t object_bytes[NR_OBJECTS] = { RECORDS_BYTES, RECORDS_BYTES, VD_RECORD_BYTES };

struct snapshot {
	uint8_t *data[NR_OBJECTS];
};

static void snapshot_take(struct snapshot *s)
{
	for (int i = 0; i < NR_OBJECTS; i++) {
		s->data[i] = malloc(object_bytes[i]);
		assert_non_null(s->data[i]);
		memcpy(s->data[i], object_make(object_name[i])->data, object_bytes[i]);
	}
}

static void snapshot_free(struct snapshot *s)
{
	for (int i = 0; i < NR_OBJECTS; i++)
		free(s->data[i]);
}

static void object_set(int i, const struct snapshot *s)
{
	memcpy(object_make(object_name[i])->data, s->data[i], object_bytes[i]);
}

static void objects_set(const struct snapshot *s)
{
	for (int i = 0; i < NR_OBJECTS; i++)
		object_set(i, s);
}

/* The object is there, and empty from there on. */
static void object_cut(int i, size_t from)
{
	memset(object_make(object_name[i])->data + from, 0, object_bytes[i] - from);
}

static bool same(int i, const struct snapshot *s)
{
	return !memcmp(object_make(object_name[i])->data, s->data[i], object_bytes[i]);
}

static void restart(void)
{
	volumed_restart();
	steps(300);
}

/* ---- volumes ----------------------------------------------------------------------------- */

static const char *const names[] = { "a", "b", "c" };
static uint32_t ids[3];

/* Each has data of its own in its second object, or its first. */
static void volumes_make(void)
{
	for (uint32_t i = 0; i < 3; i++) {
		ids[i] = create(names[i], "8M");
		assert_int_equal(write_pattern(ids[i], i == 1 ? 4096 : 5 << 20, 4096, i), 4096);
	}
}

static bool is_there(const char *name)
{
	char line[100];

	snprintf(line, sizeof(line), "volume info %s", name);
	return admin(line) > 0;
}

static void volume_expect(uint32_t i, const char *name)
{
	if (!is_there(name))
		fail_msg("volume %s is not there: %s", name, text);
	expect_pattern((uint32_t)number("\nid="), i == 1 ? 4096 : 5 << 20, 4096, i);
}

static void all_expect(void)
{
	for (uint32_t i = 0; i < 3; i++)
		volume_expect(i, names[i]);
}

static bool is_damaged(void)
{
	assert_true(admin("status") > 0);
	return says("damage=");
}

static void refused(const char *name)
{
	char line[100];

	snprintf(line, sizeof(line), "volume create %s size=8M", name);
	if (admin(line) != -EEXIST)
		fail_msg("%s: %s", line, text);
}

/* Nothing is damaged afterwards, and a restart finds the same. */
static void recover_all(void)
{
	assert_true(admin("volume recover") > 0);
	assert_true(says("left=0"));
	assert_false(is_damaged());
	restart();
	assert_false(is_damaged());
	assert_true(says("damaged=0\nlost=0\n"));
	assert_int_equal(admin("volume lost"), 0);
}

static uint64_t identity_of_new(const char *name)
{
	create(name, "4M");
	return number("identity=");
}

/* ---- one behind -------------------------------------------------------------------------- */

/* Which of the three is of the time before the last change, and what that is. */
static void one_that_is_behind_is_mended_and_anything_else_is_damage(void **state)
{
	struct snapshot before, after;

	(void)state;
	volumes_make();
	for (uint32_t change = 0; change < 3; change++) {
		static const char *const line[] = { "volume create d size=4M",
			"volume resize d size=8M", "volume remove d" };

		snapshot_take(&before);
		assert_true(admin(line[change]) > 0);
		/* of a removal the first record is what is looked at */
		while (change == 2 && same(HEAD, &before))
			step();
		snapshot_take(&after);
		steps(100);
		for (uint32_t old = 0; old < 8; old++) {
			bool sound = old == 0 || old == 7 || old == (1 << HEAD | 1 << RECORDS) ||
				     old == 1 << HEAD;

			for (int i = 0; i < NR_OBJECTS; i++)
				object_set(i, old & 1u << i ? &before : &after);
			restart();
			if (is_damaged() == sound)
				fail_msg("%s, old %u: damage %d", line[change], old, !sound);
			all_expect();
			if (!sound)
				recover_all();
			all_expect();
		}
		objects_set(&after);
		restart();
		snapshot_free(&before);
		snapshot_free(&after);
	}
}

/* ---- cut short, or gone ------------------------------------------------------------------ */

static void a_catalogue_that_is_cut_anywhere_is_noticed_and_its_copy_served(void **state)
{
	struct snapshot s, cut;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++)
		for (size_t from = 0; from < 3 * VD_RECORD_BYTES; from += from % 512 ? 151 : 1) {
			objects_set(&s);
			object_cut(i, from);
			if (same(i, &s))
				continue;
			snapshot_take(&cut);
			restart();
			assert_true(is_damaged());
			all_expect();
			refused("b");
			for (int k = 0; k < NR_OBJECTS; k++)
				assert_true(same(k, &cut));
			recover_all();
			all_expect();
			snapshot_free(&cut);
		}
	snapshot_free(&s);
}

static void without_its_header_nothing_is_lost(void **state)
{
	uint64_t last;

	(void)state;
	volumes_make();
	last = identity_of_new("d");
	for (int k = 0; k < 2; k++) {
		if (k)
			object_make(VD_CATALOG_HEAD)->data[40] ^= 1;
		else
			object_cut(HEAD, 0);
		restart();
		assert_true(is_damaged());
		assert_true(says(k ? "is damaged" : "is gone") && says("lost=0"));
		all_expect();
		recover_all();
		all_expect();
		assert_true(identity_of_new(k ? "f" : "e") > last);
	}
}

/* The header alone is left, or nothing. */
static void without_any_record_objects_are_brought_back_by_their_identity(void **state)
{
	uint64_t last;
	char name[3][40];

	(void)state;
	for (int with_head = 0; with_head < 2; with_head++) {
		volumes_make();
		last = identity_of_new("never-written");
		for (uint32_t i = 0; i < 3; i++) {
			snprintf(name[i], sizeof(name[i]), "recovered-%.16s", of(names[i]) + 1);
			assert_true(is_there(names[i]));
		}
		object_cut(COPY, 0);
		object_cut(RECORDS, 0);
		if (!with_head)
			object_cut(HEAD, 0);
		restart();
		assert_true(is_damaged() && says("volumes=0") && says("lost=3"));
		assert_true(admin("volume lost") > 0);
		assert_true(says("found_in=objects") && says(name[1]) && says("usable=yes"));
		recover_all();
		for (uint32_t i = 0; i < 3; i++) {
			volume_expect(i, name[i]);
			assert_true(number("\nsize_bytes=") == (i == 1 ? 4u << 20 : 8u << 20));
		}
		if (with_head)
			assert_true(identity_of_new("new") > last);
		else
			assert_true(identity_of_new("new") >= last);
		expect_zeroes((uint32_t)number("\nid="), 4096, 4096);
		for (uint32_t i = 0; i < 4; i++) {
			char line[100];

			snprintf(line, sizeof(line), "volume remove %.40s",
				i < 3 ? name[i] : "new");
			assert_true(admin(line) > 0);
			steps(300);
		}
	}
}

static void a_store_without_catalogue_is_new_only_without_objects(void **state)
{
	(void)state;
	restart();
	assert_false(is_damaged());
	object_make("-0000000000000005k:0000000000000002");
	object_make("some file");
	object_make("-0000000000000006z:0000000000000002");
	object_make("old:00000000000000gg");
	restart();
	assert_true(is_damaged() && says("lost=1"));
	recover_all();
	assert_true(is_there("recovered-0000000000000005"));
	assert_int_equal(number("\nsize_bytes="), 12 << 20);
	assert_true(identity_of_new("new") > 5);
}

static void objects_of_an_older_program_are_brought_back_by_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4096; i++)
		object_make("old:0000000000000001")->data[i] = pattern((4 << 20) + i, 7);
	restart();
	assert_true(is_damaged() && says("lost=1"));
	refused("old");
	assert_true(says("whose record is lost"));
	create("other", "4M");
	assert_true(admin("volume lost") > 0);
	assert_true(says("found_in=names name=old identity=0 prefix=old: size_bytes=8388608"));
	recover_all();
	assert_true(is_there("old"));
	expect_pattern((uint32_t)number("\nid="), 4 << 20, 4096, 7);
	assert_true(is_there("other"));
}

/* ---- mixed ------------------------------------------------------------------------------- */

static void what_is_certain_is_served_and_the_rest_lost_until_it_is_recovered(void **state)
{
	(void)state;
	volumes_make();
	object_cut(HEAD, 0);
	memset(object_make(VD_CATALOG)->data + VD_RECORD_BYTES, 0, VD_RECORD_BYTES);
	restart();
	assert_true(is_damaged() && says("volumes=2") && says("lost=1"));
	volume_expect(0, "a");
	assert_int_equal(admin("volume info b"), -ENOENT);
	assert_true(says("volume recover"));
	refused("b");
	assert_true(admin("volume lost") > 0 && says("found_in=record name=b") &&
		    says("objects=1 state=ok usable=yes"));
	recover_all();
	all_expect();
}

static void a_damaged_record_gives_its_name_to_its_objects(void **state)
{
	(void)state;
	volumes_make();
	for (int i = COPY; i <= RECORDS; i++)
		object_make(object_name[i])->data[VD_RECORD_BYTES + 300] ^= 1;
	restart();
	assert_true(is_damaged() && says("volumes=2\n") && says("damaged=1"));
	refused("b");
	assert_true(admin("volume lost") > 0);
	assert_true(says("found_in=objects name=b") && !says("found_in=nothing"));
	recover_all();
	all_expect();
}

static void a_damaged_record_without_objects_is_given_up(void **state)
{
	uint32_t id;

	(void)state;
	create("empty", "4M");
	id = (uint32_t)number("\nid=");
	for (int i = COPY; i <= RECORDS; i++)
		object_make(object_name[i])->data[300] ^= 1;
	restart();
	refused("empty");
	assert_true(admin("volume lost") > 0 && says("found_in=nothing name=empty"));
	recover_all();
	create("empty", "4M");
	assert_int_not_equal(number("\nid="), id);
}

static void a_name_that_is_taken_is_not_given_twice(void **state)
{
	static const char taken[] = "recovered-0000000000000009";

	(void)state;
	object_make("-0000000000000009k:0000000000000000");
	restart();
	create(taken, "4M");
	assert_true(admin("volume lost") > 0 && says("usable=no"));
	assert_true(admin("volume recover") > 0 && says("recovered=0\nleft=1\n"));
	restart();
	assert_true(is_damaged() && says("lost=1"));
	assert_true(admin("volume remove recovered-0000000000000009") > 0);
	steps(300);
	assert_true(admin("volume recover") > 0 && says("recovered=1\nleft=0\n"));
	assert_true(is_there(taken) && number("identity=") == 9);
}

/* ---- while it is recovered --------------------------------------------------------------- */

/* Neither of the three can be believed for all: a record is in the copy alone, one in the
 * catalogue alone, and of one there are objects only. */
static void damage_do(void)
{
	object_cut(HEAD, 0);
	memset(object_make(VD_CATALOG)->data + VD_RECORD_BYTES, 0, VD_RECORD_BYTES);
	memset(object_make(VD_CATALOG_COPY)->data, 0, VD_RECORD_BYTES);
	object_make("-0000000000000077a:0000000000000000");
}

static void recovered_expect(void)
{
	assert_true(admin("volume recover") > 0);
	assert_true(says("left=0"));
	restart();
	assert_false(is_damaged());
	all_expect();
	assert_true(is_there("recovered-0000000000000077"));
	assert_int_equal(number("object_size_bytes="), 4096);
}

static void killed_at_any_step_it_can_be_recovered_again(void **state)
{
	struct snapshot s;
	struct xreq *r;

	(void)state;
	volumes_make();
	damage_do();
	snapshot_take(&s);
	for (uint32_t n = 0; n < 300; n += 7) {
		objects_set(&s);
		restart();
		r = send_admin("volume recover", 0);
		steps(n);
		/* its successor gets the command again */
		restart();
		assert_true(admin_result(r) > 0);
		recovered_expect();
	}
	snapshot_free(&s);
}

static void it_can_be_recovered_after_an_error_at_any_io(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	damage_do();
	snapshot_take(&s);
	for (uint32_t n = 0; n < 140; n += 3) {
		objects_set(&s);
		restart();
		fail_next(XSEG_OP_WRITE, -EIO, n, 2);
		assert_true(admin("volume recover") > 0 || says("cannot be written"));
		if (n % 2)
			restart();
		fail_next(XSEG_OP_WRITE, -EIO, 0, 0);
		pass_ns(1000 * MS);
		steps(300);
		recovered_expect();
	}
	snapshot_free(&s);
}

static bool is_loading(void)
{
	return atomic_load(&((struct volumed *)vd)->catalog.load) == VD_LOADING;
}

/* Until a restart has read what it can: an object that is EIO is read four times, twice. */
static void wait_with_tries(void)
{
	for (int n = 0; n < 40 && is_loading(); n++) {
		pass_ns(100 * MS);
		steps(1000);
	}
	assert_false(is_loading());
}

static void restart_with_tries(void)
{
	restart();
	wait_with_tries();
}

/* The store knows an object to be wrong: it refuses all but its removal. */
static void wrong_do(int i, const struct snapshot *s)
{
	objects_set(s);
	wrong_target = object_name[i];
	restart_with_tries();
	assert_true(is_damaged());
	nr_notes = 0;
}

static void an_object_that_its_store_refuses_is_written_anew(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = 0; i < NR_OBJECTS; i++) {
		wrong_do(i, &s);
		all_expect();
		assert_int_equal(admin("volume create d size=4M"), -EBUSY);
		assert_true(says(object_name[i]) && says("cannot be read"));
		assert_int_equal(admin("volume resize a size=4M"), -EBUSY);
		assert_int_equal(admin("volume remove a"), -EBUSY);
		fail_target = object_name[i];
		assert_int_equal(admin("volume recover"), -EIO);
		all_expect();
		fail_target = NULL;
		pass_ns(1000 * MS);
		recover_all();
		all_expect();
		/* one that fails, and one; of the others none */
		assert_int_equal(count_exact(XSEG_OP_DELETE, object_name[i]), 2);
		assert_int_equal(count_notes(XSEG_OP_DELETE, ""), 2);
	}
	snapshot_free(&s);
}

/* The right file was put back, or the store is well again. */
static void an_object_that_is_well_again_is_written_as_it_is(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = 0; i < NR_OBJECTS; i++) {
		wrong_do(i, &s);
		wrong_target = NULL;
		assert_true(admin("volume recover") > 0 && says("left=0"));
		assert_int_equal(count_notes(XSEG_OP_DELETE, ""), 0);
		assert_true(admin("volume create d size=4M") > 0);
		assert_true(admin("volume remove d") > 0);
		steps(100);
		all_expect();
	}
	snapshot_free(&s);
}

/* Without a header nothing proves what the lost object had: it is not written over where it can be
 * read, and a restart finds all of it. */
static void an_object_that_is_well_again_is_not_replaced_by_a_guess(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++) {
		wrong_target = NULL;
		objects_set(&s);
		object_cut(HEAD, 0);
		/* the other one knows a */
		object_cut(i == COPY ? RECORDS : COPY, VD_RECORD_BYTES);
		wrong_target = object_name[i];
		restart_with_tries();
		assert_true(is_damaged() && is_there("a") == (i == COPY) && !is_there("b"));
		wrong_target = NULL;
		nr_notes = 0;
		assert_int_equal(admin("volume recover"), -EBUSY);
		assert_true(says(object_name[i]) && says("can be read again"));
		assert_int_equal(count_notes(XSEG_OP_WRITE, ":catalog"), 0);
		assert_true(same(i, &s) && is_damaged());
		restart();
		recover_all();
		all_expect();
		for (uint32_t n = 0; n < 3; n++)
			assert_true(is_there(names[n]) && number("\nsize_bytes=") == 8 << 20);
	}
	/* where it cannot be read, what is left is brought back */
	objects_set(&s);
	object_cut(HEAD, 0);
	object_cut(COPY, VD_RECORD_BYTES);
	wrong_target = object_name[RECORDS];
	restart_with_tries();
	assert_true(admin("volume recover") > 0 && says("recovered=3\nleft=0"));
	wrong_target = NULL;
	volume_expect(0, "a");
	snapshot_free(&s);
}

static void killed_while_it_is_written_anew_it_can_be_recovered_again(void **state)
{
	struct snapshot s;
	struct xreq *r;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = 0; i < NR_OBJECTS; i++)
		for (uint32_t n = 0; n < 300; n += 7) {
			wrong_do(i, &s);
			r = send_admin("volume recover", 0);
			steps(n);
			restart_with_tries();
			all_expect();
			assert_true(admin_result(r) > 0);
			recover_all();
			all_expect();
		}
	snapshot_free(&s);
}

/* Catalogue and copy are wrong; the header is there, or was never written. */
static void both_wrong_do(const struct snapshot *s, bool with_head)
{
	objects_set(s);
	if (!with_head)
		object_cut(HEAD, 0);
	wrong_too = object_name[RECORDS];
	wrong_target = object_name[COPY];
	restart_with_tries();
	assert_true(is_damaged());
	nr_notes = 0;
}

static void by_identity_expect(char name[3][40])
{
	for (uint32_t i = 0; i < 3; i++)
		volume_expect(i, name[i]);
}

static void names_by_identity(char name[3][40])
{
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(is_there(names[i]));
		snprintf(name[i], sizeof(name[i]), "recovered-%.16s", of(names[i]) + 1);
	}
}

static void without_catalogue_and_copy_the_objects_tell(void **state)
{
	struct snapshot s;
	char name[3][40];

	(void)state;
	volumes_make();
	names_by_identity(name);
	snapshot_take(&s);
	for (int with_head = 0; with_head < 2; with_head++) {
		both_wrong_do(&s, with_head);
		assert_true(says("the objects :catalog and :catalog.copy cannot be read"));
		assert_true(says("volumes=0") && says("lost=3"));
		assert_int_equal(admin("volume create d size=4M"), -EBUSY);
		assert_true(admin("volume lost") > 0);
		for (uint32_t i = 0; i < 3; i++)
			assert_true(says(name[i]) && says("found_in=objects") &&
				!says("usable=no"));
		assert_int_equal(count_notes(XSEG_OP_DELETE, ""), 0);
		assert_int_equal(count_notes(XSEG_OP_WRITE, ":catalog"), 0);
		recover_all();
		by_identity_expect(name);
		assert_int_equal(count_notes(XSEG_OP_DELETE, ""), 2);
	}
	snapshot_free(&s);
}

/* An outage ends when the header is read: the two before it were only tried too early. */
static void a_store_that_answers_late_has_lost_nothing(void **state)
{
	(void)state;
	volumes_make();
	for (uint32_t n = 1; n < 24; n++) {
		volumed_close(XSEG_CLOSE_ABANDON);
		fail_next(XSEG_OP_READ, -EIO, 0, n);
		volumed_open(1, "4M", "64");
		for (int k = 0; k < 30; k++) {
			pass_ns(400 * MS);
			steps(50);
		}
		fail_next(XSEG_OP_READ, -EIO, 0, 0);
		all_expect();
		/* a restart reads what was given up */
		restart();
		assert_false(is_damaged());
	}
}

/* Either of the two may know all volumes, so each is read again before both are replaced. */
static void of_two_given_up_none_is_replaced_while_one_can_be_read(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++) {
		both_wrong_do(&s, true);
		*(i == COPY ? &wrong_target : &wrong_too) = NULL;
		assert_int_equal(admin("volume recover"), -EBUSY);
		assert_true(says(object_name[i]) && says("can be read again"));
		assert_int_equal(count_notes(XSEG_OP_WRITE, ":catalog"), 0);
		assert_int_equal(count_notes(XSEG_OP_DELETE, ""), 0);
		restart_with_tries();
		all_expect();
		recover_all();
		all_expect();
	}
	snapshot_free(&s);
}

static void killed_while_both_are_written_anew_it_can_be_recovered_again(void **state)
{
	struct snapshot s;
	struct xreq *r;
	char name[3][40];

	(void)state;
	volumes_make();
	names_by_identity(name);
	snapshot_take(&s);
	for (uint32_t n = 0; n < 400; n += 7) {
		both_wrong_do(&s, true);
		r = send_admin("volume recover", 0);
		steps(n);
		restart_with_tries();
		assert_true(admin_result(r) > 0);
		recover_all();
		by_identity_expect(name);
	}
	snapshot_free(&s);
}

/* ---- bad sectors -------------------------------------------------------------------------- */

#define PAGE_BYTES ((uint64_t)XSEG_PAGE_SIZE)

/* The volumes' records are in page 0. */
static void bad_set(uint32_t i, int object, uint64_t page, bool stays)
{
	bad_sector[i].target = object_name[object];
	bad_sector[i].at = page * PAGE_BYTES + 1024;
	bad_sector[i].stays = stays;
}

static void bad_expect(const char *part)
{
	restart_with_tries();
	if (!is_damaged() || !says(part))
		fail_msg("%s", text);
	nr_notes = 0;
}

static void of_a_bad_sector_in_one_object_the_other_proves_all(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++)
		for (uint32_t n = 0; n < 4; n++) {
			objects_set(&s);
			bad_set(0, i, n / 2 * 700, n % 2);
			bad_expect("cannot be read");
			assert_true(says("volumes=3\n") && says("lost=0"));
			all_expect();
			assert_int_equal(admin("volume create d size=4M"), -EBUSY);
			recover_all();
			all_expect();
			assert_int_equal(count_notes(XSEG_OP_DELETE, ""), n % 2);
		}
	snapshot_free(&s);
}

/* The header proves what both have together; a record that none has is not proved. */
static void of_bad_sectors_in_both_objects_the_header_proves_what_they_have_together(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++)
		for (uint32_t n = 0; n < 4; n++) {
			objects_set(&s);
			bad_set(0, i, 0, n & 1);
			bad_set(1, i == COPY ? RECORDS : COPY, 3, n & 2);
			bad_expect("the objects :catalog and :catalog.copy cannot be read");
			assert_true(says("volumes=3\n") && says("lost=0"));
			all_expect();
			recover_all();
			all_expect();
		}
	snapshot_free(&s);
}

/* Without a header a record of the copy alone is lost until it is recovered; with its name. */
static void without_a_header_what_no_bad_sector_took_is_certain(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++)
		for (uint32_t n = 0; n < 4; n++) {
			objects_set(&s);
			object_cut(HEAD, 0);
			bad_set(0, i, 0, n & 1);
			if (n & 2)
				bad_set(1, i == COPY ? RECORDS : COPY, 5, false);
			bad_expect("damage=the object");
			assert_true(i == COPY ? says("volumes=3\n") && says("lost=0")
					      : says("volumes=0\n") && says("lost=3"));
			recover_all();
			all_expect();
		}
	snapshot_free(&s);
}

static void where_a_bad_sector_took_a_record_twice_its_objects_tell(void **state)
{
	struct snapshot s;
	char name[3][40];

	(void)state;
	volumes_make();
	names_by_identity(name);
	snapshot_take(&s);
	for (int with_head = 0; with_head < 2; with_head++) {
		objects_set(&s);
		if (!with_head)
			object_cut(HEAD, 0);
		bad_set(0, COPY, 0, false);
		bad_set(1, RECORDS, 0, true);
		bad_expect("cannot be read");
		assert_true(says("volumes=0\n") && says("lost=3"));
		recover_all();
		by_identity_expect(name);
	}
	snapshot_free(&s);
}

/* K3: each page that was given up is read again before it is overwritten by a guess. */
static void a_page_that_can_be_read_again_is_not_replaced_by_a_guess(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int well = 0; well < 2; well++) {
		objects_set(&s);
		object_cut(HEAD, 0);
		object_cut(COPY, 0);
		bad_set(0, RECORDS, well ? 9 : 0, false);
		bad_set(1, RECORDS, well ? 0 : 9, false);
		bad_expect("cannot be read");
		assert_true(says("lost=3"));
		bad_sector[well].target = NULL;
		assert_int_equal(admin("volume recover"), -EBUSY);
		assert_true(says(":catalog could not be read, and can be read again"));
		assert_int_equal(count_notes(XSEG_OP_WRITE, ":catalog"), 0);
		bad_expect("cannot be read");
		assert_true(says("volumes=3\n"));
		recover_all();
		all_expect();
	}
	snapshot_free(&s);
}

/* Of a copy that was read in part the catalogue has all, before the copy is deleted. */
static void a_copy_that_was_read_in_part_is_deleted_last(void **state)
{
	uint32_t written = 0, n = 0;

	(void)state;
	volumes_make();
	object_cut(HEAD, 0);
	object_cut(RECORDS, 0);
	bad_set(0, COPY, 9, true);
	bad_expect("is gone or empty");
	assert_true(says("lost=3"));
	recover_all();
	all_expect();
	for (; n < nr_notes && notes[n].op != XSEG_OP_DELETE; n++)
		written += notes[n].op == XSEG_OP_WRITE && !strcmp(notes[n].target, VD_CATALOG);
	assert_string_equal(notes[n].target, VD_CATALOG_COPY);
	assert_int_equal(written, VD_SLOTS / VD_PART_RECORDS);
}

static void killed_while_bad_sectors_are_mended_it_can_be_recovered_again(void **state)
{
	struct snapshot s;
	struct xreq *r;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (uint32_t n = 0; n < 600; n += 11) {
		objects_set(&s);
		object_cut(HEAD, 0);
		bad_set(0, COPY, n % 3 ? 0 : 9, n & 1);
		bad_set(1, RECORDS, n % 3 ? 9 : 0, n & 2);
		bad_expect("cannot be read");
		r = send_admin("volume recover", 0);
		steps(n);
		restart_with_tries();
		assert_true(admin_result(r) > 0);
		recover_all();
		all_expect();
	}
	snapshot_free(&s);
}

/* ---- nothing tells of a volume ------------------------------------------------------------- */

/* The store answers for the other two, which are empty. */
static void a_header_that_is_refused_alone_is_damage_and_not_an_outage(void **state)
{
	(void)state;
	for (int orphan = 0; orphan < 2; orphan++) {
		for (int i = 0; i < NR_OBJECTS; i++)
			object_cut(i, 0);
		if (orphan)
			object_make("-0000000000000005k:0000000000000002");
		wrong_target = VD_CATALOG_HEAD;
		restart_with_tries();
		assert_true(is_damaged() && says("the object :catalog.head cannot be read"));
		assert_true(says(orphan ? "lost=1" : "lost=0"));
		assert_int_equal(admin("volume create d size=4M"), -EBUSY);
		assert_true(says("volume recover"));
		recover_all();
		assert_true(identity_of_new("d") > (orphan ? 5 : 0));
		assert_true(admin("volume remove d") > 0);
		steps(300);
	}
}

static void all_refused_do(void)
{
	wrong_target = VD_CATALOG_COPY;
	wrong_too = VD_CATALOG;
	wrong_also = VD_CATALOG_HEAD;
	restart();
	for (int n = 0; n < 50; n++)
		pass_ns(100 * MS);
	assert_true(is_loading());
	assert_true(admin("status") > 0 && says("error="));
	assert_int_equal(admin("volume list"), -EIO);
	assert_true(says("no object of the catalogue") && says("volume recover"));
	nr_notes = 0;
}

/* It may be an outage, so volumes wait, until an admin says that it is none. */
static void three_objects_that_are_refused_are_given_up_when_an_admin_asks(void **state)
{
	struct snapshot s;
	char name[3][40];

	(void)state;
	volumes_make();
	names_by_identity(name);
	snapshot_take(&s);
	for (int n = 0; n < 2; n++) {
		struct xreq *r;

		objects_set(&s);
		all_refused_do();
		r = send_admin("volume recover", 0);
		for (int k = 0; k < 30 && !answered(r); k++) {
			pass_ns(100 * MS);
			steps(n ? 100 : 1000);
			if (n && k == 20)
				restart();		/* its successor has the command */
		}
		for (int k = 0; k < 60 && !answered(r); k++) {
			pass_ns(100 * MS);
			steps(1000);
		}
		assert_true(admin_result(r) > 0 && says("recovered=3\nleft=0\n"));
		restart();
		assert_false(is_damaged());
		by_identity_expect(name);
	}
	snapshot_free(&s);
}

static void what_is_well_again_is_not_given_up(void **state)
{
	struct xreq *r;

	(void)state;
	volumes_make();
	for (int n = 0; n < 3; n++) {
		all_refused_do();
		r = send_admin("volume recover", 0);
		steps(n ? 20 : 0);
		if (n == 2)		/* an outage ends while the objects are listed */
			fail_next(XSEG_OP_LIST, -EIO, 0, 2);
		for (int k = 0; n && k < 80 && !answered(r); k++) {
			if (n == 1 && k == 1)
				wrong_target = wrong_too = wrong_also = NULL;
			pass_ns(100 * MS);
			steps(200);
		}
		wrong_target = wrong_too = wrong_also = NULL;
		if (n == 2)
			assert_int_equal(admin_result(r), -EIO);
		for (int k = 0; k < 40; k++) {
			pass_ns(100 * MS);
			steps(200);
		}
		if (n < 2 && (admin_result(r) <= 0 || !says("recovered=0\nleft=0\n")))
			fail_msg("%d: %s", n, text);
		assert_false(is_damaged());
		all_expect();
	}
}

/* A change that a kill leaves half written, while there is damage. */
static void a_change_that_is_killed_beside_damage_costs_no_volume(void **state)
{
	struct snapshot s;

	(void)state;
	volumes_make();
	snapshot_take(&s);
	for (int i = COPY; i <= RECORDS; i++)
		for (uint32_t n = 1; n < 12; n++) {
			objects_set(&s);
			object_cut(i, 0);
			restart();
			send_admin("volume create d size=4M", 0);
			steps(n);
			volumed_close(XSEG_CLOSE_ABANDON);
			steps(5);
			volumed_open(1, "4M", "64");
			steps(300);
			assert_true(is_damaged() && says("lost=0"));
			all_expect();
			recover_all();
			all_expect();
		}
	snapshot_free(&s);
}

static void a_sound_catalogue_has_nothing_to_recover(void **state)
{
	(void)state;
	volumes_make();
	nr_notes = 0;
	assert_true(admin("volume recover") > 0 && says("recovered=0\nleft=0\n"));
	assert_int_equal(admin("volume lost 0"), 0);
	assert_int_equal(nr_notes, 0);
	assert_int_equal(admin("volume recover b"), -EINVAL);
	assert_int_equal(admin("volume lost b"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_that_is_behind_is_mended_and_anything_else_is_damage),
		T(a_catalogue_that_is_cut_anywhere_is_noticed_and_its_copy_served),
		T(without_its_header_nothing_is_lost),
		T(without_any_record_objects_are_brought_back_by_their_identity),
		T(a_store_without_catalogue_is_new_only_without_objects),
		T(objects_of_an_older_program_are_brought_back_by_name),
		T(what_is_certain_is_served_and_the_rest_lost_until_it_is_recovered),
		T(a_damaged_record_gives_its_name_to_its_objects),
		T(a_damaged_record_without_objects_is_given_up),
		T(a_name_that_is_taken_is_not_given_twice),
		T(killed_at_any_step_it_can_be_recovered_again),
		T(it_can_be_recovered_after_an_error_at_any_io),
		T(an_object_that_its_store_refuses_is_written_anew),
		T(an_object_that_is_well_again_is_written_as_it_is),
		T(an_object_that_is_well_again_is_not_replaced_by_a_guess),
		T(killed_while_it_is_written_anew_it_can_be_recovered_again),
		T(without_catalogue_and_copy_the_objects_tell),
		T(a_store_that_answers_late_has_lost_nothing),
		T(of_two_given_up_none_is_replaced_while_one_can_be_read),
		T(killed_while_both_are_written_anew_it_can_be_recovered_again),
		T(of_a_bad_sector_in_one_object_the_other_proves_all),
		T(of_bad_sectors_in_both_objects_the_header_proves_what_they_have_together),
		T(without_a_header_what_no_bad_sector_took_is_certain),
		T(where_a_bad_sector_took_a_record_twice_its_objects_tell),
		T(a_page_that_can_be_read_again_is_not_replaced_by_a_guess),
		T(a_copy_that_was_read_in_part_is_deleted_last),
		T(killed_while_bad_sectors_are_mended_it_can_be_recovered_again),
		T(a_header_that_is_refused_alone_is_damage_and_not_an_outage),
		T(three_objects_that_are_refused_are_given_up_when_an_admin_asks),
		T(what_is_well_again_is_not_given_up),
		T(a_change_that_is_killed_beside_damage_costs_no_volume),
		T(a_sound_catalogue_has_nothing_to_recover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
