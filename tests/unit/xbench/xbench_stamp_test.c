/* xbench_stamp_test - stamps and state files: every damage to a sector is told apart, a state file
 * comes back as it was saved, and a damaged one is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "bench/xbench/oracle/oracle.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/oracle/sector.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/oracle/stamp.c" /* NOLINT(bugprone-suspicious-include) */
/* Its MAGIC is another one. */
#undef MAGIC
#include "bench/xbench/oracle/state.c" /* NOLINT(bugprone-suspicious-include) */

static const struct xb_whose whose = { .signature = 11, .run = 22, .target = 33 };
static _Alignas(8) uint8_t sector[512], other[512];

static void write_stamp(uint8_t *to, uint64_t run, uint64_t target, uint64_t offset, uint64_t tag)
{
	xb_stamp_write(to, &(struct xb_stamp){ .signature = 11,
					       .run = run,
					       .target = target,
					       .offset = offset,
					       .tag = tag });
}

static struct xb_seen look(uint64_t offset)
{
	struct xb_seen seen;

	xb_stamp_read(sector, &whose, offset, &seen);
	return seen;
}

static void a_stamp_is_read_as_it_was_written(void **state)
{
	struct xb_seen seen;

	(void)state;
	write_stamp(sector, 22, 33, 1024, xb_value(4, 567));
	seen = look(1024);
	assert_int_equal(seen.kind, XB_SEEN_OURS);
	assert_int_equal(xb_value_job(seen.value), 4);
	assert_int_equal(xb_value_seq(seen.value), 567);
}

static void any_changed_byte_makes_it_torn(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 512; i++) {
		write_stamp(sector, 22, 33, 1024, xb_value(0, 1));
		sector[i] ^= 0x10;
		assert_int_equal(look(1024).kind, XB_SEEN_TORN);
	}
}

static void a_seam_anywhere_makes_it_torn(void **state)
{
	(void)state;
	for (unsigned seam = 8; seam < 512; seam += 8) {
		write_stamp(sector, 22, 33, 1024, xb_value(0, 1));
		write_stamp(other, 22, 33, 1024, xb_value(0, 2));
		memcpy(sector + seam, other + seam, 512 - seam);
		/* Before the tag begins, the two are the same. */
		assert_int_equal(look(1024).kind, seam <= 40 ? XB_SEEN_OURS : XB_SEEN_TORN);
		write_stamp(sector, 22, 33, 1024, xb_value(0, 1));
		memset(sector, 0, seam);
		assert_int_equal(look(1024).kind, XB_SEEN_TORN);
		write_stamp(sector, 22, 33, 1024, xb_value(0, 1));
		memset(sector + seam, 0, 512 - seam);
		/* Before the run begins, one cannot tell whose it is. */
		assert_int_equal(look(1024).kind, seam < 24 ? XB_SEEN_BROKEN : XB_SEEN_TORN);
	}
}

static void the_wrong_place_is_misplaced(void **state)
{
	(void)state;
	write_stamp(sector, 22, 33, 1024, xb_value(0, 1));
	assert_int_equal(look(1536).kind, XB_SEEN_MISPLACED);
	write_stamp(sector, 22, 34, 1024, xb_value(0, 1));
	assert_int_equal(look(1024).kind, XB_SEEN_MISPLACED);
}

static void other_content_is_known_by_its_value(void **state)
{
	struct xb_seen a, b;

	(void)state;
	memset(sector, 0, 512);
	assert_int_equal(look(0).kind, XB_SEEN_ZERO);
	sector[511] = 1;
	a = look(0);
	assert_int_equal(a.kind, XB_SEEN_UNSTAMPED);
	sector[511] = 2;
	b = look(0);
	assert_true(a.value != b.value && a.value & XB_VALUE_OTHER && !(a.value & XB_VALUE_SPARE));
	write_stamp(sector, 21, 33, 1024, xb_value(0, 1));
	a = look(1024);
	assert_int_equal(a.kind, XB_SEEN_OTHER);
	write_stamp(sector, 21, 33, 1024, xb_value(0, 2));
	assert_true(look(1024).value != a.value);
}

static void any_run_of_the_same_options_will_do_when_asked_for(void **state)
{
	struct xb_whose any = whose;
	struct xb_seen seen;

	(void)state;
	any.any_run = true;
	write_stamp(sector, 99, 33, 0, xb_value(0, 8));
	xb_stamp_read(sector, &any, 0, &seen);
	assert_int_equal(seen.kind, XB_SEEN_OURS);
	assert_int_equal(seen.run, 99);
	any.signature = 12;
	xb_stamp_read(sector, &any, 0, &seen);
	assert_int_equal(seen.kind, XB_SEEN_OTHER);
}

/* ---- state files ------------------------------------------------------------------------- */

static _Atomic uint64_t floors[1] = { XB_NOT_READING };
static char path[64];

static void write_value(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value,
			bool answered)
{
	uint64_t issued = xb_oracle_tick(o);

	xb_oracle_write_begin(o, offset, size, value, issued);
	if (answered)
		xb_oracle_write_end(o, offset, size, issued, true);
}

static struct xb_oracle *make_oracle(void)
{
	struct xb_oracle *o = xb_oracle_create(4096, 8u << 20, floors, 1, NULL);
	static const struct xb_seen seen[4] = { { .kind = XB_SEEN_UNSTAMPED,
						  .value = XB_VALUE_OTHER | 5 } };

	assert_non_null(o);
	write_value(o, 4096, 65536, xb_value(0, 1), true);
	write_value(o, 8192, 4096, xb_value(1, 2), true);
	write_value(o, 8192, 8192, xb_value(0, 3), false);
	write_value(o, 6u << 20, 512, XB_VALUE_ZERO, true);
	write_value(o, 7u << 20, 512, xb_value(0, 4), false);
	assert_int_equal(
		xb_oracle_read_end(o, 5u << 20, 512, xb_oracle_read_begin(o, 5u << 20, 512), seen),
		0);
	return o;
}

static void save(void)
{
	struct xb_state_head head = { .signature = 11, .run = 22, .target = 33 };
	struct xb_oracle *o = make_oracle();
	struct xseg_error err;

	snprintf(path, sizeof(path), "/tmp/xbench_stamp_test.%d", (int)getpid());
	assert_int_equal(xb_state_save(path, &head, o, &err), 0);
	xb_oracle_destroy(o);
}

static void a_state_comes_back_as_it_was_saved(void **state)
{
	struct xb_possible a[XB_MAX_POSSIBLE], b[XB_MAX_POSSIBLE];
	struct xb_oracle *before = make_oracle(), *after = NULL;
	struct xb_state_head head = { 0 };
	struct xseg_error err;

	(void)state;
	save();
	if (xb_state_load(path, &head, floors, 1, &after, &err)) {
		fail_msg("%s", err.text);
		return;
	}
	assert_true(head.signature == 11 && head.run == 22 && head.target == 33);
	assert_int_equal(xb_oracle_start(after), 4096);
	for (uint64_t at = 4096; at < 4096 + (8u << 20); at += 512) {
		uint32_t nr = xb_oracle_possible(before, at, a);

		assert_int_equal(xb_oracle_possible(after, at, b), nr);
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t j = 0;

			while (j < nr && (b[j].value != a[i].value || b[j].unsure != a[i].unsure))
				j++;
			assert_true(j < nr);
		}
	}
	xb_oracle_destroy(before);
	xb_oracle_destroy(after);
	unlink(path);
}

static void a_damaged_or_short_state_is_refused(void **state)
{
	struct xb_state_head head;
	struct xseg_error err;
	struct xb_oracle *o;
	uint8_t bytes[4096], one;
	FILE *file;
	size_t len;

	(void)state;
	save();
	file = fopen(path, "r");
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_true(len > sizeof(head) && len < sizeof(bytes));
	for (size_t i = 0; i < len; i++) {
		one = bytes[i] ^ 1;
		file = fopen(path, "r+");
		assert_int_equal(fseek(file, (long)i, SEEK_SET), 0);
		assert_int_equal(fwrite(&one, 1, 1, file), 1);
		fclose(file);
		assert_int_equal(xb_state_load(path, &head, floors, 1, &o, &err), -EINVAL);
		file = fopen(path, "r+");
		assert_int_equal(fwrite(bytes, 1, len, file), len);
		fclose(file);
	}
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(truncate(path, (off_t)i), 0);
		assert_int_equal(xb_state_load(path, &head, floors, 1, &o, &err), -EINVAL);
		file = fopen(path, "w");
		assert_int_equal(fwrite(bytes, 1, len, file), len);
		fclose(file);
	}
	unlink(path);
	assert_int_equal(xb_state_load(path, &head, floors, 1, &o, &err), -EIO);
}

static void a_state_that_cannot_be_written_says_so(void **state)
{
	static struct xb_state_head head;
	struct xb_oracle *o = make_oracle();
	struct xseg_error err;

	(void)state;
	assert_int_equal(xb_state_save("/nowhere/state", &head, o, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/state"));
	xb_oracle_destroy(o);
}

static void put_word(const char *name)
{
	FILE *file = fopen(name, "wx");

	assert_non_null(file);
	assert_true(fputs("mine", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void expect_word(const char *name)
{
	char text[8] = "";
	FILE *file = fopen(name, "r");

	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text), file), 4);
	assert_string_equal(text, "mine");
	fclose(file);
	unlink(name);
}

static void a_file_of_somebody_else_beside_the_state_stays(void **state)
{
	char plain[80], ours[80];
	struct xseg_error err;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/xbench_stamp_test.%d", (int)getpid());
	snprintf(plain, sizeof(plain), "%s.tmp", path);
	snprintf(ours, sizeof(ours), "%s.%d.tmp", path, (int)getpid());
	put_word(plain);
	assert_int_equal(xb_state_may_save(path, &err), 0);
	save();
	put_word(ours);
	assert_int_equal(xb_state_may_save(path, &err), -EIO);
	assert_non_null(strstr(err.text, ours));
	expect_word(plain);
	expect_word(ours);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_is_read_as_it_was_written),
		cmocka_unit_test(any_changed_byte_makes_it_torn),
		cmocka_unit_test(a_seam_anywhere_makes_it_torn),
		cmocka_unit_test(the_wrong_place_is_misplaced),
		cmocka_unit_test(other_content_is_known_by_its_value),
		cmocka_unit_test(any_run_of_the_same_options_will_do_when_asked_for),
		cmocka_unit_test(a_state_comes_back_as_it_was_saved),
		cmocka_unit_test(a_damaged_or_short_state_is_refused),
		cmocka_unit_test(a_state_that_cannot_be_written_says_so),
		cmocka_unit_test(a_file_of_somebody_else_beside_the_state_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
