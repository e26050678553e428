/* piece_test - the data of a request in pieces, each contiguous in memory. */
#include "peers/common/blocker/piece.h"
#include "tests/rig/seg_pair.h"

/* Pages 5, 6, 7, 3, 4 and 0 of the segment. */
static struct xreq request(uint64_t obj_offset, uint32_t size)
{
	return (struct xreq){ .obj_offset = obj_offset, .size = size, .nr_pages = 6,
		.page = { 5, 6, 7, 3, 4, 0 } };
}

static void expect(const struct xreq *r, uint32_t end, struct piece *p, uint32_t page, uint32_t in,
	uint32_t len)
{
	uint32_t from = p->from + p->len;

	assert_true(piece_next(seg, r, end, p));
	assert_ptr_equal(p->data, (uint8_t *)xseg_page(seg, page) + in);
	assert_int_equal(p->from, from);
	assert_int_equal(p->len, len);
}

static void pages_side_by_side_are_one_piece(void **state)
{
	struct xreq r = request(0, 6 * XSEG_PAGE_SIZE);
	struct piece p = { 0 };

	(void)state;
	expect(&r, r.size, &p, 5, 0, 3 * XSEG_PAGE_SIZE);
	expect(&r, r.size, &p, 3, 0, 2 * XSEG_PAGE_SIZE);
	expect(&r, r.size, &p, 0, 0, XSEG_PAGE_SIZE);
	assert_false(piece_next(seg, &r, r.size, &p));
}

static void the_first_and_the_last_may_be_parts_of_pages(void **state)
{
	struct xreq r = request(7 * XSEG_PAGE_SIZE + 512, 3 * XSEG_PAGE_SIZE);
	struct piece p = { 0 };

	(void)state;
	expect(&r, r.size, &p, 5, 512, 3 * XSEG_PAGE_SIZE - 512);
	expect(&r, r.size, &p, 3, 0, 512);
	assert_false(piece_next(seg, &r, r.size, &p));
}

static void it_begins_and_ends_where_it_is_told(void **state)
{
	struct xreq r = request(512, 5 * XSEG_PAGE_SIZE);
	struct piece p = { .from = XSEG_PAGE_SIZE };

	(void)state;
	expect(&r, 4 * XSEG_PAGE_SIZE, &p, 6, 512, 2 * XSEG_PAGE_SIZE - 512);
	expect(&r, 4 * XSEG_PAGE_SIZE, &p, 3, 0, XSEG_PAGE_SIZE + 512);
	assert_false(piece_next(seg, &r, 4 * XSEG_PAGE_SIZE, &p));
}

static void of_nothing_there_is_none(void **state)
{
	struct xreq r = request(512, 0);
	struct piece p = { 0 };

	(void)state;
	assert_false(piece_next(seg, &r, r.size, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pages_side_by_side_are_one_piece),
		T(the_first_and_the_last_may_be_parts_of_pages),
		T(it_begins_and_ends_where_it_is_told),
		T(of_nothing_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
