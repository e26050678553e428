/* listing_test - the names in an answer to a LIST. */
#include "peers/common/blocker/listing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/blocker/shape.h"
#include "tests/rig/seg_pair.h"

#define PAGES 3u

static struct xreq request(const char *prefix, uint32_t size)
{
	struct xreq r = { .op = XSEG_OP_LIST, .size = size, .nr_pages = PAGES,
		.page = { 5, 7, 3 } };

	snprintf(r.target, sizeof(r.target), "%s", prefix);
	return r;
}

static void fill(struct xreq *r, const char *const *name, uint32_t nr, uint64_t next)
{
	struct listing l;

	listing_begin(&l, seg, r);
	for (uint32_t i = 0; i < nr; i++)
		assert_true(listing_add(&l, name[i]));
	r->result = listing_end(&l, next);
}

static void names_come_back_as_they_were_written(void **state)
{
	static const char *const name[] = { "a", "disk:0000000000000001", "z" };
	struct xreq r = request("", PAGES * XSEG_PAGE_SIZE);
	struct listing_names names;
	char got[XSEG_TARGET_MAX];

	(void)state;
	fill(&r, name, 3, 77);
	assert_int_equal(listing_open(&names, seg, &r), 0);
	assert_int_equal(names.head.next, 77);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(listing_next(&names, got), 1);
		assert_string_equal(got, name[i]);
	}
	assert_int_equal(listing_next(&names, got), 0);
}

/* 127 bytes each: they cross the pages at odd places. */
static void a_full_answer_refuses_the_next_name_and_keeps_the_others(void **state)
{
	struct xreq r = request("", PAGES * XSEG_PAGE_SIZE - 100);
	char name[XSEG_TARGET_MAX], got[XSEG_TARGET_MAX];
	struct listing_names names;
	struct listing l;
	uint32_t nr = 0;

	(void)state;
	listing_begin(&l, seg, &r);
	do
		snprintf(name, sizeof(name), "%0127u", nr++);
	while (listing_add(&l, name));
	nr--;
	assert_int_equal(nr, (r.size - sizeof(struct xseg_list)) / 128);
	r.result = listing_end(&l, 0);
	assert_int_equal(listing_open(&names, seg, &r), 0);
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%0127u", i);
		assert_int_equal(listing_next(&names, got), 1);
		assert_string_equal(got, name);
	}
	assert_int_equal(listing_next(&names, got), 0);
}

static void the_target_is_a_prefix(void **state)
{
	struct xreq r = request("disk:", XSEG_PAGE_SIZE), all = request("", XSEG_PAGE_SIZE);

	(void)state;
	assert_true(listing_wants(&r, "disk:00"));
	assert_false(listing_wants(&r, "disk"));
	assert_false(listing_wants(&r, "disk2:00"));
	assert_true(listing_wants(&all, ":catalog"));
}

static void an_answer_without_a_form_is_refused(void **state)
{
	static const char *const name[] = { "a" };
	struct xreq r = request("", XSEG_PAGE_SIZE);
	struct listing_names names;
	char got[XSEG_TARGET_MAX];

	(void)state;
	fill(&r, name, 1, 0);
	r.result++;
	assert_int_equal(listing_open(&names, seg, &r), -EPROTO);
	r.result = XSEG_PAGE_SIZE + 1;
	assert_int_equal(listing_open(&names, seg, &r), -EPROTO);
	r.result = 3;
	assert_int_equal(listing_open(&names, seg, &r), -EPROTO);
	fill(&r, name, 1, 0);
	((uint8_t *)xseg_page(seg, 5))[sizeof(struct xseg_list) + 1] = 'x';	/* no NUL */
	assert_int_equal(listing_open(&names, seg, &r), 0);
	assert_int_equal(listing_next(&names, got), -EPROTO);
	fill(&r, name, 1, 0);
	((struct xseg_list *)xseg_page(seg, 5))->nr = 2;
	assert_int_equal(listing_open(&names, seg, &r), 0);
	assert_int_equal(listing_next(&names, got), 1);
	assert_int_equal(listing_next(&names, got), -EPROTO);
}

static void a_list_needs_a_page_of_room_and_its_pages(void **state)
{
	struct xreq r = request("", XSEG_PAGE_SIZE);

	(void)state;
	r.obj_offset = UINT64_MAX;	/* a cursor is no place in an object */
	assert_int_equal(shape_check(&r, 4 << 20), 0);
	r.size = XSEG_PAGE_SIZE - 1;
	assert_int_equal(shape_check(&r, 4 << 20), -EPROTO);
	r.size = (PAGES + 1) * XSEG_PAGE_SIZE;
	assert_int_equal(shape_check(&r, 4 << 20), -EPROTO);
	r.size = XSEG_REQ_BYTES + 1;
	r.nr_pages = XSEG_REQ_PAGES;
	assert_int_equal(shape_check(&r, 4 << 20), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_come_back_as_they_were_written),
		T(a_full_answer_refuses_the_next_name_and_keeps_the_others),
		T(the_target_is_a_prefix),
		T(an_answer_without_a_form_is_refused),
		T(a_list_needs_a_page_of_room_and_its_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
