/* segment_test - making, finding, checking and removing segments; a damaged one is refused with a
 * reason.
 */
#include "tests/rig/seg_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cmocka.h>

static int shm(const char *name, int flags)
{
	char path[XSEG_NAME_MAX + 16];

	snprintf(path, sizeof(path), "/xseg.%s", name);
	return shm_open(path, flags, 0600);
}

static bool is_there(const char *name)
{
	int fd = shm(name, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static const char *made(void)
{
	const char *name = segrig_name();
	struct xseg_error err = { "" };

	if (xseg_create(name, &segrig_config, &err))
		fail_msg("%s", err.text);
	return name;
}

/* For a test that is given a segment's name, and leaves the segment there. */
static int setup_made(void **state)
{
	*state = (void *)(uintptr_t)made();
	return 0;
}

static int teardown_made(void **state)
{
	assert_int_equal(xseg_destroy(*state), 0);
	return 0;
}

#define M(name) cmocka_unit_test_setup_teardown(name, setup_made, teardown_made)

/* Attaching fails with that code and says why. */
static void refused(const char *name, int code)
{
	struct xseg_error err = { "" };
	struct xseg *seg = NULL;

	assert_int_equal(xseg_attach(name, 0, &seg, &err), code);
	assert_null(seg);
	assert_non_null(strstr(err.text, name));
	assert_null(strchr(err.text, '\n'));
}

/* Writes into the superblock of a segment that nobody has. */
static void scribble(const char *name, size_t at, const void *what, size_t len)
{
	int fd = shm(name, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, what, len, (off_t)at), (ssize_t)len);
	close(fd);
}

static void cut(const char *name, off_t size)
{
	int fd = shm(name, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static void names_are_of_1_to_63_plain_characters(void **state)
{
	char long_name[70];

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[64] = '\0';
	assert_false(xseg_name_ok(long_name));
	long_name[63] = '\0';
	assert_true(xseg_name_ok(long_name));
	assert_true(xseg_name_ok("a"));
	assert_true(xseg_name_ok("A-b.c_9"));
	assert_false(xseg_name_ok(""));
	assert_false(xseg_name_ok(".a"));
	assert_false(xseg_name_ok("-a"));
	assert_false(xseg_name_ok("a/b"));
	assert_false(xseg_name_ok("a b"));
	assert_false(xseg_name_ok("\xc3\xa4"));
}

static void a_name_that_is_none_is_refused_everywhere(void **state)
{
	struct xseg_error err = { "" };
	struct xseg *seg;

	(void)state;
	assert_int_equal(xseg_create("../x", &segrig_config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "../x"));
	assert_int_equal(xseg_attach("", 0, &seg, NULL), -EINVAL);
	assert_int_equal(xseg_destroy("a/b"), -EINVAL);
}

static void a_plan_adds_up_and_is_what_a_segment_costs(void **state)
{
	struct xseg_plan plan;
	const char *name = *state;
	struct stat st;
	int fd;

	assert_int_equal(xseg_plan(&segrig_config, &plan, NULL), 0);
	assert_int_equal(plan.pages_bytes, segrig_config.memory_bytes);
	assert_int_equal(plan.total_bytes, plan.pages_bytes + plan.requests_bytes +
		plan.lanes_bytes + plan.stats_bytes + plan.tables_bytes);
	fd = shm(name, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal((uint64_t)st.st_size, plan.total_bytes);
	assert_true((uint64_t)st.st_blocks * 512 >= plan.total_bytes);
}

static void sizes_out_of_range_are_refused_with_a_reason(void **state)
{
	static const struct xseg_config bad[] = {
		{ .memory_bytes = (4u << 20) - 1 },
		{ .memory_bytes = (1ull << 40) + 1 },
		{ .memory_bytes = UINT64_MAX },
		{ .memory_bytes = 4u << 20, .nr_requests = 31 },
		{ .memory_bytes = 4u << 20, .nr_requests = (1u << 20) + 1 },
		{ .memory_bytes = 4u << 20, .nr_requests = UINT32_MAX },
		{ .memory_bytes = 4u << 20, .nr_ports = 3 },
		{ .memory_bytes = 4u << 20, .nr_ports = 257 },
	};
	const char *name = segrig_name();
	struct xseg_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct xseg_error err = { "" };

		assert_int_equal(xseg_plan(&bad[i], &plan, &err), -EINVAL);
		assert_true(err.text[0]);
		assert_int_equal(xseg_create(name, &bad[i], &err), -EINVAL);
		assert_false(is_there(name));
	}
}

static void the_smallest_and_odd_sizes_are_rounded_up(void **state)
{
	struct xseg_config cfg = {
		.memory_bytes = (4u << 20) + 1, .nr_requests = 33, .nr_ports = 4, .group = -1,
	};
	struct xseg_info info;
	struct xseg *seg;

	(void)state;
	assert_int_equal(xseg_create_private(&cfg, &seg, NULL), 0);
	xseg_get_info(seg, &info);
	assert_int_equal(info.nr_requests, 48);
	assert_int_equal(info.nr_extents, 3);
	assert_int_equal(info.nr_ports, 4);
	assert_int_equal(xseg_nr_pages(seg), 3 * XSEG_EXTENT_PAGES);
	segrig_sound(seg);
	xseg_detach(seg);
}

/* A port gets a whole number of units, in one piece. */
static void free_requests_are_those_that_ports_can_have(void **state)
{
	struct xseg *seg = segrig_attach(*state);
	struct xseg_peer *p[3];
	struct xseg_info info;

	p[0] = segrig_client(seg, "a", 7);
	p[1] = segrig_client(seg, "b", 17);
	p[2] = segrig_client(seg, "c", 1);
	xseg_get_info(seg, &info);
	assert_int_equal(info.free_requests, 64 - 16 - 32 - 16);
	assert_int_equal(info.largest_requests, 0);
	assert_int_equal(info.idle_requests, 64);
	segrig_open_fails(seg, "d", "client", 1, 1);
	xseg_peer_close(p[0], XSEG_CLOSE_FREE_ARENA);
	xseg_peer_close(p[2], XSEG_CLOSE_FREE_ARENA);
	xseg_get_info(seg, &info);
	assert_int_equal(info.free_requests, 32);
	assert_int_equal(info.largest_requests, 16);
	segrig_open_fails(seg, "d", "client", 1, 17);
	p[0] = segrig_client(seg, "d", 16);
	p[2] = segrig_client(seg, "e", 2);
	for (int i = 0; i < 3; i++)
		xseg_peer_close(p[i], XSEG_CLOSE_FREE_ARENA);
	xseg_detach(seg);
}

static void a_fresh_segment_is_sound_and_all_free(void **state)
{
	const char *name = *state;
	struct xseg *seg = segrig_attach(name);
	struct xseg_info info;

	xseg_get_info(seg, &info);
	assert_string_equal(info.name, name);
	assert_string_equal(xseg_name(seg), name);
	assert_int_equal(info.memory_bytes, segrig_config.memory_bytes);
	assert_int_equal(info.free_requests, 64);
	assert_int_equal(info.free_ports, 16);
	assert_int_equal(info.reserve_ports, 0);
	assert_int_equal(info.free_extents, 8);
	assert_int_equal(info.free_pages, 8 * XSEG_EXTENT_PAGES);
	assert_int_equal(
		info.used_lanes + info.arena_extents + info.page_extents + info.bad_count, 0);
	assert_true(info.made_at_s > 1600000000);
	segrig_sound(seg);
	xseg_detach(seg);
}

static void a_second_segment_of_a_name_is_refused_and_the_first_stays(void **state)
{
	const char *name = *state;
	struct xseg *seg = segrig_attach(name);
	struct xseg_error err = { "" };

	assert_int_equal(xseg_stack_set(seg, "kept", 4), 0);
	assert_int_equal(xseg_create(name, &segrig_config, &err), -EEXIST);
	assert_non_null(strstr(err.text, name));
	xseg_detach(seg);
	seg = segrig_attach(name);
	assert_int_equal(xseg_stack_get(seg, NULL, 0), 4);
	xseg_detach(seg);
}

static void what_is_not_there_is_not_found(void **state)
{
	const char *name = segrig_name();

	(void)state;
	refused(name, -ENOENT);
	assert_int_equal(xseg_destroy(name), -ENOENT);
}

static void a_segment_is_not_removed_while_another_process_is_attached(void **state)
{
	const char *name = *state;
	struct xseg *seg = segrig_attach(name), *other = segrig_attach(name), *observer;

	assert_int_equal(xseg_attach(name, XSEG_ATTACH_OBSERVER, &observer, NULL), 0);
	assert_int_equal(xseg_nr_others(seg), 1);
	assert_int_equal(xseg_nr_others(observer), 2);
	assert_int_equal(xseg_remove(seg, false), -EBUSY);
	assert_int_equal(xseg_remove(observer, false), -EBUSY);
	xseg_detach(other);
	assert_int_equal(xseg_nr_others(seg), 0);
	assert_int_equal(xseg_remove(observer, false), -EBUSY);
	assert_true(is_there(name));
	assert_int_equal(xseg_remove(seg, false), 0);
	refused(name, -ENOENT);
	xseg_detach(observer);
	xseg_detach(seg);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);
	seg = segrig_attach(name);
	assert_int_equal(xseg_attach(name, XSEG_ATTACH_OBSERVER, &observer, NULL), 0);
	assert_int_equal(xseg_remove(observer, true), 0);
	xseg_detach(observer);
	xseg_detach(seg);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);	/* for the fixture */
}

static void who_removes_a_segment_twice_leaves_alone_what_got_its_name(void **state)
{
	const char *name = *state;
	struct xseg *seg = segrig_attach(name);

	assert_int_equal(xseg_remove(seg, false), 0);
	assert_int_equal(xseg_remove(seg, true), -ENOENT);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);
	assert_int_equal(xseg_remove(seg, true), -ENOENT);
	assert_true(is_there(name));
	xseg_detach(seg);
}

/* One thread attaches and the other removes: the first has a segment that bears its name as long as
 * it wants, or none. */
static void *attach_when_told(void *arg)
{
	struct xseg *seg = NULL;
	const char *name = arg;
	int rc;

	rc = xseg_attach(name, 0, &seg, NULL);
	if (rc)
		return rc == -ENOENT ? NULL : arg;
	rc = !is_there(name);
	xseg_detach(seg);
	return rc ? arg : NULL;
}

static void who_attaches_while_it_is_removed_has_it_or_has_none(void **state)
{
	const char *name = *state;
	struct xseg *observer;
	pthread_t thread;
	void *wrong;
	int rc;

	for (int i = 0; i < 200; i++) {
		assert_int_equal(xseg_attach(name, XSEG_ATTACH_OBSERVER, &observer, NULL), 0);
		assert_int_equal(pthread_create(&thread, NULL, attach_when_told, *state), 0);
		do
			rc = xseg_remove(observer, false);
		while (rc == -EBUSY && i % 2);
		assert_true(rc == 0 || rc == -EBUSY);
		pthread_join(thread, &wrong);
		assert_null(wrong);
		xseg_detach(observer);
		if (!rc)
			assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);
	}
}

static void a_destroyed_segment_goes_on_for_who_is_attached(void **state)
{
	struct xseg *seg;
	const char *name = segrig_named(&seg);
	struct xseg_peer *peer;

	(void)state;
	assert_false(xseg_is_removed(seg));
	assert_int_equal(xseg_destroy(name), 0);
	assert_true(xseg_is_removed(seg));
	refused(name, -ENOENT);
	peer = segrig_client(seg, "me", 16);
	xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
	segrig_sound(seg);
	xseg_detach(seg);
}

static void a_foreign_file_is_neither_attached_nor_replaced(void **state)
{
	const char *name = segrig_name();
	char junk[8192];
	int fd;

	(void)state;
	memset(junk, 'j', sizeof(junk));
	for (size_t len = 5; len <= sizeof(junk); len += sizeof(junk) - 5) {
		fd = shm(name, O_RDWR | O_CREAT | O_EXCL);
		assert_int_equal(write(fd, junk, len), (ssize_t)len);
		close(fd);
		refused(name, -EPROTO);
		assert_int_equal(xseg_create(name, &segrig_config, NULL), -EEXIST);
		assert_true(is_there(name));
		assert_int_equal(xseg_destroy(name), 0);
	}
}

static void what_is_no_file_is_neither_attached_nor_replaced(void **state)
{
	const char *name = segrig_name();
	char path[XSEG_NAME_MAX + 32];

	(void)state;
	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", name);
	for (unsigned what = 0; what < 4; what++) {
		assert_int_equal(what == 0   ? mknod(path, S_IFIFO | 0600, 0)
				 : what == 1 ? mknod(path, S_IFSOCK | 0600, 0)
				 : what == 2 ? mkdir(path, 0700)
					     : symlink("elsewhere", path),
			0);
		refused(name, -EPROTO);
		assert_int_equal(xseg_create(name, &segrig_config, NULL), -EEXIST);
		assert_int_equal(remove(path), 0);
	}
}

static void a_truncated_segment_is_refused(void **state)
{
	const char *name = *state;

	cut(name, 10 << 20);
	refused(name, -EPROTO);
	cut(name, 64);
	refused(name, -EPROTO);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), -EEXIST);
}

static void a_segment_that_grew_is_refused(void **state)
{
	const char *name = *state;

	cut(name, 64 << 20);
	refused(name, -EPROTO);
}

static void a_segment_that_is_being_made_is_said_to_be_so_and_replaced_when_its_maker_is_dead(void **state)
{
	static const uint32_t making = XS_MAKING;
	const char *name = *state;
	int fd;

	scribble(name, offsetof(struct xs_super, state), &making, sizeof(making));
	refused(name, -ESTALE);
	fd = shm(name, O_RDWR);
	assert_int_equal(xs_lock_byte(fd, XSEG_LOCK_CONTROL), 0);
	refused(name, -EAGAIN);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), -EEXIST);
	close(fd);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);
	xseg_detach(segrig_attach(name));
}

static void an_empty_file_is_half_made(void **state)
{
	const char *name = segrig_name();

	(void)state;
	close(shm(name, O_RDWR | O_CREAT | O_EXCL));
	refused(name, -ESTALE);
	cut(name, 1 << 20);
	refused(name, -ESTALE);
	assert_int_equal(xseg_create(name, &segrig_config, NULL), 0);
	assert_int_equal(xseg_destroy(name), 0);
}

#define MAKERS 4

static pthread_barrier_t all_there;

static void *make_anew(void *name)
{
	pthread_barrier_wait(&all_there);
	return (void *)(intptr_t)xseg_create(name, &segrig_config, NULL);
}

static void of_many_who_make_anew_what_is_half_made_one_has_made_it(void **state)
{
	const char *name = segrig_name();
	pthread_t maker[MAKERS];

	(void)state;
	assert_int_equal(pthread_barrier_init(&all_there, NULL, MAKERS), 0);
	for (unsigned round = 0; round < 100; round++) {
		unsigned nr_made = 0;
		void *rc;

		close(shm(name, O_RDWR | O_CREAT | O_EXCL));
		for (unsigned i = 0; i < MAKERS; i++)
			assert_int_equal(pthread_create(&maker[i], NULL, make_anew,
						 (void *)(uintptr_t)name),
				0);
		for (unsigned i = 0; i < MAKERS; i++) {
			assert_int_equal(pthread_join(maker[i], &rc), 0);
			assert_true(rc == NULL || (intptr_t)rc == -EEXIST);
			nr_made += rc == NULL;
		}
		assert_int_equal(nr_made, 1);
		xseg_detach(segrig_attach(name));
		assert_int_equal(xseg_destroy(name), 0);
	}
	pthread_barrier_destroy(&all_there);
}

static void a_segment_of_another_build_is_refused(void **state)
{
	uint64_t stamp = layout_stamp() + 1;
	const char *name = *state;

	scribble(name, offsetof(struct xs_super, stamp), &stamp, sizeof(stamp));
	refused(name, -EPROTO);
}

static void every_damaged_word_of_the_geometry_is_found(void **state)
{
	const size_t from = offsetof(struct xs_super, geo);
	const char *name = *state;
	uint32_t word, wrong;
	int fd = shm(name, O_RDWR);

	for (size_t at = from; at < from + sizeof(struct xs_geometry); at += sizeof(word)) {
		assert_int_equal(pread(fd, &word, sizeof(word), (off_t)at), (ssize_t)sizeof(word));
		for (unsigned bit = 0; bit < 32; bit++) {
			wrong = word ^ 1u << bit;
			scribble(name, at, &wrong, sizeof(wrong));
			refused(name, -EPROTO);
		}
		scribble(name, at, &word, sizeof(word));
	}
	close(fd);
	xseg_detach(segrig_attach(name));
}

static void a_segment_larger_than_the_machine_is_refused_and_leaves_nothing(void **state)
{
	struct xseg_config cfg = segrig_config;
	struct xseg_error err = { "" };
	const char *name = segrig_name();
	struct statvfs before, after;

	(void)state;
	assert_int_equal(statvfs("/dev/shm", &before), 0);
	cfg.memory_bytes = (uint64_t)before.f_blocks * before.f_frsize;
	if (cfg.memory_bytes > 1ull << 40 || before.f_blocks == 0)
		skip();
	assert_int_equal(xseg_create(name, &cfg, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "less memory"));
	assert_false(is_there(name));
	assert_int_equal(statvfs("/dev/shm", &after), 0);
	assert_true(after.f_bavail + (64 << 20) / after.f_frsize > before.f_bavail);
}

static void the_mode_and_the_group_are_as_asked(void **state)
{
	struct xseg_config cfg = segrig_config;
	const char *name = segrig_name();
	struct stat st;
	int fd;

	(void)state;
	cfg.mode = 0640;
	cfg.group = getgid();
	assert_int_equal(xseg_create(name, &cfg, NULL), 0);
	fd = shm(name, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(st.st_gid, getgid());
	assert_int_equal(xseg_destroy(name), 0);
}

static void private_segments_have_no_name_and_nothing_in_common(void **state)
{
	struct xseg *a = segrig_private(), *b = segrig_private();

	(void)state;
	refused("private", -ENOENT);
	assert_false(xseg_is_removed(a));
	memset(xseg_page(a, 0), 'a', XSEG_PAGE_SIZE);
	assert_int_equal(*(char *)xseg_page(b, 0), 0);
	xseg_detach(a);
	xseg_detach(b);
}

static void pages_are_seen_by_every_attachment(void **state)
{
	struct xseg *a = segrig_attach(*state), *b = segrig_attach(*state);

	assert_ptr_not_equal(a->base, b->base);
	memset(xseg_page(a, xseg_nr_pages(a) - 1), 'a', XSEG_PAGE_SIZE);
	assert_int_equal(((char *)xseg_page(b, xseg_nr_pages(b) - 1))[4095], 'a');
	xseg_detach(a);
	xseg_detach(b);
}

static void huge_pages_are_used_as_asked_and_required_only_when_asked(void **state)
{
	static const enum xseg_huge kind[] = { XSEG_HUGE_AUTO, XSEG_HUGE_NEVER, XSEG_HUGE_REQUIRE };
	struct xseg_config cfg = segrig_config;
	struct xseg_info info;
	struct xseg *seg;
	int rc;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct xseg_error err = { "" };

		cfg.huge = kind[i];
		rc = xseg_create_private(&cfg, &seg, &err);
		if (rc && cfg.huge == XSEG_HUGE_REQUIRE) {
			assert_int_equal(rc, -ENOMEM);
			assert_non_null(strstr(err.text, "huge"));
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal((uintptr_t)seg->pages % XSEG_EXTENT_SIZE, 0);
		xseg_get_info(seg, &info);
		assert_int_equal(info.huge, kind[i]);
		assert_true(xseg_huge_bytes(seg) <= info.memory_bytes);
		if (cfg.huge == XSEG_HUGE_NEVER)
			assert_int_equal(xseg_huge_bytes(seg), 0);
		if (cfg.huge == XSEG_HUGE_REQUIRE)
			assert_int_equal(xseg_huge_bytes(seg), info.memory_bytes);
		xseg_detach(seg);
	}
}

static void the_stack_text_is_kept_and_cut_where_there_is_no_room(void **state)
{
	static const char text[] = "[segment]\nname = x\n";
	char buf[64], *large = calloc(1, XSEG_STACK_BYTES + 1);
	struct xseg *seg = segrig_private();

	(void)state;
	assert_int_equal(xseg_stack_get(seg, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(xseg_stack_set(seg, text, strlen(text)), 0);
	assert_int_equal(xseg_stack_get(seg, buf, sizeof(buf)), strlen(text));
	assert_string_equal(buf, text);
	assert_int_equal(xseg_stack_get(seg, buf, 10), 9);
	assert_string_equal(buf, "[segment]");
	assert_int_equal(xseg_stack_get(seg, NULL, 0), strlen(text));
	assert_int_equal(xseg_stack_set(seg, large, XSEG_STACK_BYTES + 1), -E2BIG);
	assert_int_equal(xseg_stack_get(seg, NULL, 0), strlen(text));
	assert_int_equal(xseg_stack_set(seg, large, XSEG_STACK_BYTES), 0);
	assert_int_equal(xseg_stack_get(seg, NULL, 0), XSEG_STACK_BYTES);
	assert_int_equal(xseg_stack_set(seg, "", 0), 0);
	assert_int_equal(xseg_stack_get(seg, buf, sizeof(buf)), 0);
	atomic_store(&seg->super->stack_word, UINT32_MAX);
	assert_int_equal(xseg_stack_get(seg, buf, sizeof(buf)), 0);
	free(large);
	xseg_detach(seg);
}

static void count_name(const char *name, void *arg)
{
	const char **want = arg;

	if (strcmp(name, want[0]) == 0)
		want[1] = name;
	assert_true(xseg_name_ok(name));
}

static void a_list_has_what_was_made_and_not_what_was_destroyed(void **state)
{
	const char *name = made(), *want[2] = { name, NULL };

	(void)state;
	assert_int_equal(xseg_list(count_name, want), 0);
	assert_non_null(want[1]);
	assert_int_equal(xseg_destroy(name), 0);
	want[1] = NULL;
	assert_int_equal(xseg_list(count_name, want), 0);
	assert_null(want[1]);
}

static void an_observer_sees_and_is_no_member_and_opens_no_peer(void **state)
{
	const struct xseg_peer_params params = {
		.name = "me", .kind = "client", .nr_ports = 1, .nr_requests = 1
	};
	struct xseg_peer *peer = NULL, *other;
	struct xseg_error err = { "" };
	struct xseg_peer_info info;
	struct xseg *seg = segrig_attach(*state), *eye;

	assert_int_equal(xseg_attach(*state, XSEG_ATTACH_OBSERVER, &eye, NULL), 0);
	assert_int_equal(xseg_peer_open(eye, &params, &peer, &err), -EPERM);
	assert_true(err.text[0]);
	assert_null(peer);
	other = segrig_server(seg, "memd", 1, 0);
	assert_true(xseg_peer_get_info(eye, xseg_peer_index(other), &info));
	assert_int_equal(info.state, XSEG_PEER_LIVE);
	assert_int_equal(info.pid, getpid());
	assert_int_equal(xseg_sweep(eye), 0);
	segrig_sound(eye);
	xseg_peer_close(other, XSEG_CLOSE_KEEP_ARENA);
	xseg_detach(eye);
	xseg_detach(seg);
}

static void one_process_more_than_there_are_places_is_refused_until_one_leaves(void **state)
{
	struct xseg *seg[XSEG_MAX_MEMBERS], *late = NULL;
	struct xseg_error err = { "" };
	const char *name = *state;

	for (unsigned i = 0; i < XSEG_MAX_MEMBERS; i++)
		seg[i] = segrig_attach(name);
	assert_int_equal(xseg_attach(name, 0, &late, &err), -EUSERS);
	assert_non_null(strstr(err.text, "320"));
	xseg_detach(seg[77]);
	seg[77] = segrig_attach(name);
	assert_int_equal(seg[77]->member, 77);
	for (unsigned i = 0; i < XSEG_MAX_MEMBERS; i++)
		xseg_detach(seg[i]);
}

static void there_is_one_supervisor_until_it_detaches(void **state)
{
	struct xseg *a = segrig_attach(*state), *b = segrig_attach(*state);

	assert_false(xseg_supervisor_alive(b));
	assert_int_equal(xseg_supervisor_lock(a), 0);
	assert_true(xseg_supervisor_alive(b));
	assert_false(xseg_supervisor_alive(a));
	assert_int_equal(xseg_supervisor_lock(b), -EBUSY);
	xseg_detach(a);
	assert_false(xseg_supervisor_alive(b));
	assert_int_equal(xseg_supervisor_lock(b), 0);
	xseg_detach(b);
}

static int sees_no_segment(void *arg)
{
	struct xseg *seg = arg;

	return msync(seg->base, XSEG_PAGE_SIZE, MS_ASYNC) == 0 || errno != ENOMEM;
}

static void a_forked_child_has_nothing_of_the_segment(void **state)
{
	struct xseg *seg = segrig_private();

	(void)state;
	assert_int_equal(msync(seg->base, XSEG_PAGE_SIZE, MS_ASYNC), 0);
	segrig_wait(segrig_fork(sees_no_segment, seg));
	xseg_detach(seg);
}

struct inherited {
	struct xseg *seg;
	struct xseg_peer *peer;
};

static int closes_what_it_inherited(void *arg)
{
	struct inherited *of = arg;

	xseg_peer_close(of->peer, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(of->seg);
	return 0;
}

static void a_forked_child_closes_what_it_inherited_and_its_parent_goes_on(void **state)
{
	struct inherited of = { .seg = segrig_private() };

	(void)state;
	of.peer = segrig_client(of.seg, "parent", 4);
	segrig_wait(segrig_fork(closes_what_it_inherited, &of));
	assert_int_equal(segrig_state(of.seg, "parent"), XSEG_PEER_LIVE);
	segrig_sound(of.seg);
	xseg_peer_close(of.peer, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(of.seg);
}

/* What a thread does that is not the test's: it tells what failed, as no assertion may there. */
struct maker {
	const char *name, *other;
	int rc;
	struct xseg_error err;
};

static int attach_and_make(struct maker *m)
{
	const struct xseg_config cfg = {
		.memory_bytes = 8u << 20, .nr_requests = 64, .nr_ports = 8, .group = -1,
		.huge = XSEG_HUGE_NEVER
	};
	struct xseg *seg;
	int rc = xseg_attach(m->name, 0, &seg, &m->err);

	if (rc)
		return rc;
	xseg_detach(seg);
	rc = xseg_create(m->other, &cfg, &m->err);
	if (rc)
		return rc;
	rc = xseg_attach(m->other, 0, &seg, &m->err);
	if (!rc)
		xseg_detach(seg);
	return xseg_destroy(m->other) ?: rc;
}

static void *attaches_and_makes(void *arg)
{
	struct maker *m = arg;

	for (int i = 0; i < 300 && !m->rc; i++)
		m->rc = attach_and_make(m);
	return NULL;
}

static int lives_on(void *arg)
{
	(void)arg;
	return pause();
}

/* What a child has that lives on would be locked for ever: xseg_attach() would wait, or a member
 * not die. */
static void children_forked_while_segments_are_made_and_attached_hold_no_lock(void **state)
{
	struct maker maker = { .name = *state, .other = segrig_name() };
	struct xseg *seg = segrig_attach(*state);
	bool alive[XSEG_MAX_MEMBERS];
	int child[64], nr = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, attaches_and_makes, &maker), 0);
	for (; nr < 64; nr++) {
		child[nr] = segrig_fork(lives_on, NULL);
		usleep(500);
	}
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++)
		alive[i] = xs_member_alive(seg, i);
	while (nr--)
		segrig_kill(child[nr]);
	assert_string_equal(maker.err.text, "");
	assert_int_equal(maker.rc, 0);
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++)
		assert_int_equal(alive[i], i == seg->member);
	xseg_detach(seg);
}

static void populating_changes_nothing_but_the_time_of_the_first_touch(void **state)
{
	struct xseg *seg;

	assert_int_equal(xseg_attach(*state, XSEG_ATTACH_POPULATE, &seg, NULL), 0);
	segrig_sound(seg);
	xseg_detach(seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_of_1_to_63_plain_characters),
		cmocka_unit_test(a_name_that_is_none_is_refused_everywhere),
		M(a_plan_adds_up_and_is_what_a_segment_costs),
		cmocka_unit_test(sizes_out_of_range_are_refused_with_a_reason),
		cmocka_unit_test(the_smallest_and_odd_sizes_are_rounded_up),
		M(a_fresh_segment_is_sound_and_all_free),
		M(free_requests_are_those_that_ports_can_have),
		M(a_second_segment_of_a_name_is_refused_and_the_first_stays),
		cmocka_unit_test(what_is_not_there_is_not_found),
		cmocka_unit_test(a_destroyed_segment_goes_on_for_who_is_attached),
		cmocka_unit_test(a_foreign_file_is_neither_attached_nor_replaced),
		cmocka_unit_test(what_is_no_file_is_neither_attached_nor_replaced),
		M(a_truncated_segment_is_refused),
		M(a_segment_that_grew_is_refused),
		M(a_segment_that_is_being_made_is_said_to_be_so_and_replaced_when_its_maker_is_dead),
		cmocka_unit_test(an_empty_file_is_half_made),
		cmocka_unit_test(of_many_who_make_anew_what_is_half_made_one_has_made_it),
		M(a_segment_is_not_removed_while_another_process_is_attached),
		M(who_removes_a_segment_twice_leaves_alone_what_got_its_name),
		M(who_attaches_while_it_is_removed_has_it_or_has_none),
		M(a_segment_of_another_build_is_refused),
		M(every_damaged_word_of_the_geometry_is_found),
		cmocka_unit_test(a_segment_larger_than_the_machine_is_refused_and_leaves_nothing),
		cmocka_unit_test(the_mode_and_the_group_are_as_asked),
		cmocka_unit_test(private_segments_have_no_name_and_nothing_in_common),
		M(pages_are_seen_by_every_attachment),
		cmocka_unit_test(huge_pages_are_used_as_asked_and_required_only_when_asked),
		cmocka_unit_test(the_stack_text_is_kept_and_cut_where_there_is_no_room),
		cmocka_unit_test(a_list_has_what_was_made_and_not_what_was_destroyed),
		M(an_observer_sees_and_is_no_member_and_opens_no_peer),
		M(one_process_more_than_there_are_places_is_refused_until_one_leaves),
		M(there_is_one_supervisor_until_it_detaches),
		cmocka_unit_test(a_forked_child_has_nothing_of_the_segment),
		cmocka_unit_test(a_forked_child_closes_what_it_inherited_and_its_parent_goes_on),
		M(children_forked_while_segments_are_made_and_attached_hold_no_lock),
		M(populating_changes_nothing_but_the_time_of_the_first_touch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
