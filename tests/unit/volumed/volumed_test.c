/* volumed_test - the path of requests through the volume peer: addresses, splitting, dying,
 * stopping, several ports. */
#include "tests/rig/volumed_rig.h"

/* ---- one object -------------------------------------------------------------------------- */

static void a_request_within_one_object_is_forwarded_to_it(void **state)
{
	uint32_t id = create("vol", "1G");
	const struct note *n;

	(void)state;
	assert_int_equal(write_pattern(id, (3ull << 22) + 8192 + 512, 1024, 1), 1024);
	n = &notes[nr_notes - 1];
	assert_string_equal(n->target, object_of("vol", 0x3));
	assert_int_equal(n->obj_offset, 8192 + 512);
	assert_int_equal(n->volume, id);
	assert_int_equal(
		object_find(n->target)->data[8192 + 512], pattern((3ull << 22) + 8192 + 512, 1));
	assert_int_equal(n->origin, xseg_port_index(port));
	expect_pattern(id, (3ull << 22) + 8192 + 512, 1024, 1);
}

/* It has more objects than one that is made may have: so its record says. */
static uint32_t create_huge(void)
{
	uint32_t id = create("v", "1M");
	struct vd_meta meta;

	record_read(0, &meta);
	meta.size_bytes = VD_SIZE_MAX;
	record_forge(0, &meta);
	volumed_restart();
	return id;
}

static void object_numbers_are_sixteen_hex_digits(void **state)
{
	static const struct {
		uint64_t object;
		const char *digits;
	} cases[] = {
		{ 0, "0000000000000000" }, { 0x9, "0000000000000009" }, { 0xa, "000000000000000a" },
		{ 0xdeadbeef, "00000000deadbeef" }, { 0x1ffffffffff, "000001ffffffffff" },
		{ 0x123456789ab, "00000123456789ab" },
	};
	uint32_t id = create_huge();
	char want[XSEG_TARGET_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(io(XSEG_OP_DISCARD, id, cases[i].object << 22, 512), 512);
		snprintf(want, sizeof(want), "%s%s", of("v"), cases[i].digits);
		assert_string_equal(notes[nr_notes - 1].target, want);
	}
}

/* The store makes sure that a name and its hash belong together. */
static void reads_of_object_are_of(uint32_t id, uint64_t object, const char *name)
{
	missing_is_enoent = true;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(io(XSEG_OP_READ, id, object << 12, 512), -ENOENT);
		assert_string_equal(notes[nr_notes - 1].target, name);
	}
	missing_is_enoent = false;
}

static void names_that_share_a_place_in_memory_are_told_apart(void **state)
{
	uint32_t id = create_huge();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		reads_of_object_are_of(id, 5, object_of("v", 0x5));
		reads_of_object_are_of(id, 5 + VD_NAMED, object_of("v", 0x1005));
		reads_of_object_are_of(id, 5 + (1ull << 32), object_of("v", 0x100000005));
	}
}

static void a_volume_in_the_place_of_another_has_names_of_its_own(void **state)
{
	uint32_t first = create("first", "1M"), second;

	(void)state;
	reads_of_object_are_of(first, 0, object_of("first", 0x0));
	assert_true(admin("volume remove first") > 0);
	steps(100);
	second = create("second", "1M");
	assert_int_equal(second & 0xffff, first & 0xffff);
	reads_of_object_are_of(second, 0, object_of("second", 0x0));
}

/* Records of version 1 have no identity. */
static void a_record_without_an_identity_keeps_objects_with_the_volume_s_name(void **state)
{
	struct vd_meta meta = { .state = VD_LIVE, .generation = 7, .size_bytes = 1 << 20,
		.object_size = 4 << 20 };
	char want[XSEG_TARGET_MAX];

	(void)state;
	memset(meta.name, 'n', sizeof(meta.name) - 1);
	record_forge(3, &meta);
	volumed_restart();
	assert_int_equal(write_pattern(vd_make_id(3, 7), 0, 4096, 1), 4096);
	snprintf(want, sizeof(want), "%s:0000000000000000", meta.name);
	assert_string_equal(notes[nr_notes - 1].target, want);
}

static void an_identity_is_in_the_names_of_objects_and_never_comes_back(void **state)
{
	char want[XSEG_TARGET_MAX];
	uint64_t last = 0, identity;

	(void)state;
	for (uint32_t i = 1; i < 40; i++) {
		uint32_t id = create("vol", "1M");

		identity = number("identity=");
		assert_true(identity > last);
		last = identity;
		assert_int_equal(write_pattern(id, 0, 4096, 1), 4096);
		snprintf(want, sizeof(want), "-%016" PRIx64 "k:0000000000000000", identity);
		assert_non_null(object_find(want));
		assert_true(strlen(want) <= 39);
		assert_true(admin("volume remove vol") > 0);
		if (i % 3 == 0)
			volumed_restart();
	}
}

static void no_volume_can_have_a_name_as_an_identity_s_prefix(void **state)
{
	uint64_t identity, object_size;

	(void)state;
	assert_false(xseg_name_ok("-0000000000000001k"));
	assert_true(vd_prefix_identity("-0000000000000001k", &identity, &object_size));
	assert_int_equal(identity, 1);
	assert_int_equal(object_size, 4 << 20);
	assert_true(vd_prefix_identity("-00000000000000ffa:", &identity, &object_size));
	assert_int_equal(object_size, 4096);
	assert_false(vd_prefix_identity("-0000000000000001l:", &identity, &object_size));
	assert_false(vd_prefix_identity("-000000000000001k:", &identity, &object_size));
	assert_false(vd_prefix_identity("-0000000000000000k:", &identity, &object_size));
	assert_false(vd_prefix_identity("vol:", &identity, &object_size));
}

static void what_is_beyond_the_end_is_refused_and_does_nothing(void **state)
{
	uint32_t id = create("vol", "8192"), before = nr_notes;

	(void)state;
	assert_int_equal(io(XSEG_OP_WRITE, id, 4096, 8192), -ENXIO);
	assert_int_equal(io(XSEG_OP_READ, id, 7680, 1024), -ENXIO);
	assert_int_equal(io(XSEG_OP_READ, id, 8192, 512), -ENXIO);
	assert_int_equal(io(XSEG_OP_DISCARD, id, 1ull << 63, 512), -ENXIO);
	assert_int_equal(io(XSEG_OP_WRITE_ZEROES, id, 100, 512), -EINVAL);
	assert_int_equal(io(XSEG_OP_READ, id, 0, 100), -EINVAL);
	assert_int_equal(nr_notes, before);
	assert_int_equal(io(XSEG_OP_READ, id, 8192, 0), 0);
	assert_int_equal(io(XSEG_OP_READ, id, 7680, 512), 512);
}

static void an_unknown_volume_is_not_there(void **state)
{
	uint32_t id = create("vol", "1M");

	(void)state;
	assert_int_equal(io(XSEG_OP_READ, 0, 0, 512), -ENOENT);
	assert_int_equal(io(XSEG_OP_WRITE, id + 1, 0, 512), -ENOENT);
	assert_int_equal(io(XSEG_OP_WRITE, id + 0x10000, 0, 512), -ENOENT);
	assert_int_equal(io(XSEG_OP_WRITE, UINT32_MAX, 0, 512), -ENOENT);
	assert_int_equal(io(XSEG_OP_FLUSH, id + 1, 0, 0), -ENOENT);
	assert_int_equal(io(XSEG_OP_INFO, id + 1, 0, 0), -ENOENT);
}

static void flush_names_the_volume_or_all(void **state)
{
	uint32_t id = create("vol", "1M");

	(void)state;
	assert_int_equal(io(XSEG_OP_FLUSH, id, 0, 0), 0);
	assert_string_equal(notes[nr_notes - 1].target, of("vol"));
	assert_int_equal(notes[nr_notes - 1].volume, id);
	assert_int_equal(io(XSEG_OP_FLUSH, 0, 0, 0), 0);
	assert_string_equal(notes[nr_notes - 1].target, ":");
}

static void info_is_the_size_and_other_operations_are_refused(void **state)
{
	uint32_t id = create("vol", "12345856"), before = nr_notes;

	(void)state;
	assert_int_equal(io(XSEG_OP_INFO, id, 0, 0), 12345856);
	assert_int_equal(io(XSEG_OP_COPY, id, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(io(XSEG_OP_DELETE, id, 0, 0), -EINVAL);
	assert_int_equal(nr_notes, before);
}

static void info_with_a_size_is_about_the_object_there(void **state)
{
	uint32_t id = create("vol", "16M");

	(void)state;
	assert_int_equal(io(XSEG_OP_INFO, id, 5 << 20, 512), -ENOENT);
	assert_string_equal(notes[nr_notes - 1].target, object_of("vol", 0x1));
	assert_int_equal(io(XSEG_OP_WRITE, id, 4 << 20, 512), 512);
	assert_int_equal(io(XSEG_OP_INFO, id, 5 << 20, 512), OBJECT_MAX);
	assert_int_equal(io(XSEG_OP_INFO, id, 16 << 20, 512), -ENXIO);
	assert_int_equal(io(XSEG_OP_INFO, id, 1, 512), -EINVAL);
	assert_int_equal(io(XSEG_OP_INFO, id + 1, 0, 512), -ESTALE);
}

/* ---- splitting --------------------------------------------------------------------------- */

static void a_request_over_many_objects_is_split_even_with_one_request_free(void **state)
{
	uint32_t id = create("vol", "16M"), size = XSEG_REQ_BYTES;
	uint64_t offset = 5 * 4096 + 512;

	(void)state;
	assert_int_equal(write_pattern(id, offset, size, 7), size);
	assert_int_equal(count_notes(XSEG_OP_WRITE, of("vol")), 257);
	expect_pattern(id, offset, size, 7);
	expect_pattern(id, offset + 512, size - 1024, 7);
	assert_int_equal(object_find(object_of("vol", 0x5))->data[512], pattern(offset, 7));
	assert_int_equal(object_find(object_of("vol", 0x105))->data[0], pattern(0x105 * 4096, 7));
	assert_int_equal(io(XSEG_OP_WRITE_ZEROES, id, offset, 8192), 8192);
	expect_zeroes(id, offset, 8192);
	expect_pattern(id, offset + 8192, 4096, 7);
	assert_int_equal(io(XSEG_OP_DISCARD, id, 0, size), size);
	expect_zeroes(id, 0, size);
}

static void split_requests_that_wait_for_each_other_all_end(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r[20];

	(void)state;
	hold = true;
	for (uint32_t i = 0; i < 20; i++)
		r[i] = send_io(XSEG_OP_WRITE, id, i * 65536 + 512, 65536, i * 20);
	steps(10);
	hold = false;
	for (uint32_t i = 20; i-- > 0;)
		assert_int_equal(result_of(r[i]), 65536);
}

static void flags_go_with_every_part(void **state)
{
	uint32_t id = create("vol", "1M"), fua = 0;
	struct xreq *r = xseg_req_alloc(port);

	(void)state;
	r->op = XSEG_OP_WRITE;
	r->flags = XSEG_REQ_FUA;
	r->volume = id;
	r->size = 3 * 4096;
	r->nr_pages = 3;
	memcpy(r->page, pages, 3 * sizeof(r->page[0]));
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	assert_int_equal(result_of(r), 3 * 4096);
	for (uint32_t i = 0; i < nr_notes; i++)
		fua += !strncmp(notes[i].target, of("vol"), 4) && notes[i].flags == XSEG_REQ_FUA;
	assert_int_equal(fua, 3);
}

/* ---- loans ------------------------------------------------------------------------------- */

/* the store lends these of the client's pages, which is good enough: it writes into them once */
#define LENT_FROM 512u
static uint32_t nr_lent;

/* Every other page of the parts is lent; each with the number of its object in its first word. */
static void lend_odd_ones(struct peer_port *pp, struct xreq *r)
{
	uint64_t number = strtoull(strchr(r->target, ':') + 1, NULL, 16);
	uint32_t page = pages[LENT_FROM + nr_lent];

	if (number % 2 == 0)
		return;
	nr_lent++;
	memcpy(xseg_page(seg, page), &number, sizeof(number));
	xseg_req_lend(pp->port, r, 0, page);
}

static struct xreq *send_loan_read(uint32_t id, uint32_t nr)
{
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_READ;
	r->flags = XSEG_REQ_LOAN;
	r->volume = id;
	r->size = nr * 4096;
	r->nr_pages = (uint16_t)nr;
	memcpy(r->page, pages, nr * sizeof(r->page[0]));
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

/* All of it was answered: the odd ones by loan, and only by that. */
static void expect_odd_ones_lent(struct xreq *r, uint32_t nr)
{
	for (uint32_t i = 0; i < 2000 && !answered(r); i++)
		step();
	assert_int_equal(r->nr_lent, nr);
	for (uint64_t i = 0; i < nr; i++) {
		const void *data = xseg_req_page(seg, r, (uint32_t)i);

		assert_true((data == xseg_page(seg, r->page[i])) == (i % 2 == 0));
		assert_true(i % 2 == 0 || memcmp(data, &i, sizeof(i)) == 0);
	}
	assert_int_equal(result_of(r), nr * 4096);
}

static void loans_of_the_parts_are_the_whole_request_s(void **state)
{
	uint32_t id = create("vol", "16M");

	(void)state;
	lender = lend_odd_ones;
	nr_lent = 0;
	expect_odd_ones_lent(send_loan_read(id, 12), 12);
	assert_int_equal(nr_lent, 6);
	lender = NULL;
}

static void a_successor_splits_a_read_anew_and_has_all_of_its_loans(void **state)
{
	uint32_t id = create("vol", "16M"), kills;
	struct xreq *r;

	(void)state;
	lender = lend_odd_ones;
	nr_lent = 0;
	for (kills = 1; kills < 12; kills++) {
		r = send_loan_read(id, 12);
		for (uint32_t i = 0; i < kills; i++)
			step();
		volumed_close(XSEG_CLOSE_ABANDON);
		volumed_open(1, "4k", kills & 1 ? "2" : "64");
		expect_odd_ones_lent(r, 12);
	}
	lender = NULL;
}

/* ---- gifts ------------------------------------------------------------------------------- */

static enum xseg_gift expected;			/* of the odd parts */

/* The odd parts are lent another page, for what they give or for next time. */
static void take_odd_ones(struct peer_port *pp, struct xreq *r)
{
	uint64_t number = strtoull(strchr(r->target, ':') + 1, NULL, 16);

	if (number % 2 == 0) {
		assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_NONE);
		return;
	}
	if (xseg_req_gift(seg, r, 0) == XSEG_GIFT_TAKEN)
		return;		/* volumed died before its part was marked */
	assert_int_equal(xseg_req_gift(seg, r, 0), expected);
	assert_true(xseg_req_exchange(pp->peer->seg, r, 0, pages[LENT_FROM + nr_lent++]));
}

static struct xreq *send_give(struct xreq *r, uint32_t id, uint32_t nr, uint64_t seed)
{
	if (!r)
		r = xseg_req_alloc(port);
	r->op = XSEG_OP_WRITE;
	r->flags = XSEG_REQ_GIVE;
	r->volume = id;
	r->size = nr * 4096;
	r->nr_pages = (uint16_t)nr;
	memcpy(r->page, pages, nr * sizeof(r->page[0]));
	for (uint32_t i = 0; i < nr; i++)
		*(uint64_t *)xseg_req_gift_page(seg, r, i) = seed + i;
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

static void expect_odd_ones_exchanged(struct xreq *r, uint32_t nr)
{
	wait_for_answer(r);
	for (uint32_t i = 0; i < nr; i++)
		assert_true((xseg_req_gift_page(seg, r, i) == xseg_page(seg, r->page[i])) ==
			    (i % 2 == 0));
	assert_int_equal(r->result, nr * 4096);
}

static void expect_words(uint32_t id, uint32_t nr, uint64_t seed)
{
	struct xreq *r = send_loan_read(id, nr);

	for (uint32_t i = 0; i < 2000 && !answered(r); i++)
		step();
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(*(const uint64_t *)xseg_req_page(seg, r, i), seed + i);
	assert_int_equal(result_of(r), nr * 4096);
}

static void what_parts_give_is_exchanged_in_the_whole_request(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r = NULL;

	(void)state;
	lender = take_odd_ones;
	nr_lent = 0;
	for (uint64_t n = 1; n <= 4; n++) {
		expected = n == 1 ? XSEG_GIFT_NONE : XSEG_GIFT_GIVEN;
		r = send_give(r, id, 12, n * 100);
		expect_odd_ones_exchanged(r, 12);
		assert_int_equal(nr_lent, n * 6);
	}
	lender = NULL;
	xseg_req_free(port, r);
	expect_words(id, 12, 400);
}

static void a_successor_of_who_split_it_leaves_what_was_exchanged(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r = NULL;

	(void)state;
	lender = take_odd_ones;
	nr_lent = 0;
	for (uint32_t kills = 0; kills < 12; kills++) {
		expected = kills == 0 ? XSEG_GIFT_NONE : XSEG_GIFT_GIVEN;
		r = send_give(r, id, 12, kills * 100);
		for (uint32_t i = 0; i < kills; i++)
			step();
		volumed_close(XSEG_CLOSE_ABANDON);
		volumed_open(1, "4k", kills & 1 ? "2" : "64");
		expect_odd_ones_exchanged(r, 12);
	}
	lender = NULL;
	xseg_req_free(port, r);
	expect_words(id, 12, 1100);
}

static void the_first_error_of_a_part_is_the_whole_request_s(void **state)
{
	uint32_t id = create("vol", "16M"), before = nr_notes;

	(void)state;
	fail_next(XSEG_OP_WRITE, -ENOSPC, 3, 2);
	assert_int_equal(write_pattern(id, 0, 400 * 1024, 1), -ENOSPC);
	assert_in_range(nr_notes - before, 4, 50);
	assert_int_equal(write_pattern(id, 0, 400 * 1024, 1), 400 * 1024);
}

static void a_part_that_waits_is_refused_when_the_volume_has_gone(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r, *remove;

	(void)state;
	r = send_io(XSEG_OP_WRITE, id, 0, XSEG_REQ_BYTES, 0);
	step();
	remove = send_admin("volume remove vol", 0);
	assert_int_equal(result_of(r), -ENOENT);
	assert_true(admin_result(remove) > 0);
	steps(500);
	assert_int_equal(nr_objects(), 0);
}

/* ---- dying and stopping ------------------------------------------------------------------ */

static void a_split_request_is_done_again_by_the_successor(void **state)
{
	uint32_t id = create("vol", "16M"), size = 40 * 4096;
	struct xreq *r;

	(void)state;
	for (uint32_t i = 0; i < size; i++)
		*page_byte(i) = pattern(i, 4);
	hold = true;
	r = send_io(XSEG_OP_WRITE, id, 0, size, 0);
	steps(5);
	assert_true(count_notes(XSEG_OP_WRITE, of("vol")) > 0);
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "4k", "8");
	steps(20);
	assert_false(answered(r));
	hold = false;
	assert_int_equal(result_of(r), size);
	expect_pattern(id, 0, size, 4);
}

static void a_part_that_was_done_is_not_done_again_by_the_successor(void **state)
{
	uint32_t id = create("vol", "16M"), size = 12 * 4096, kills, nr;
	struct xreq *r;

	(void)state;
	for (kills = 1; kills < 40; kills++) {
		r = send_io(XSEG_OP_WRITE, id, 0, size, 0);
		nr = count_notes(XSEG_OP_WRITE, of("vol"));
		for (uint32_t i = 0; i < kills; i++)
			step();
		volumed_close(XSEG_CLOSE_ABANDON);
		volumed_open(1, "4k", kills & 1 ? "2" : "64");
		assert_int_equal(result_of(r), size);
		assert_int_equal(count_notes(XSEG_OP_WRITE, of("vol")) - nr, 12);
	}
}

/* Replies are accepted by batches: all but the first of a batch are taken and not handled when it
 * is killed. */
static void a_part_whose_answer_was_taken_and_not_handled_is_not_done_again(void **state)
{
	uint32_t id = create("vol", "16M"), size = 12 * 4096,
		 nr = count_notes(XSEG_OP_WRITE, of("vol"));
	struct xreq *r;
	uint64_t next;

	(void)state;
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "4k", "64");
	steps(20);
	r = send_io(XSEG_OP_WRITE, id, 0, size, 0);
	assert_true(peer_port_step_request(&vd->ports[0]));
	peer_port_step_poll(&vd->ports[0]);
	peer_port_round(&store->ports[0], now, 32, &next);
	assert_true(peer_port_step_reply(&vd->ports[0]));
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "4k", "64");
	assert_int_equal(result_of(r), size);
	assert_int_equal(count_notes(XSEG_OP_WRITE, of("vol")) - nr, 12);
}

static void kills_at_every_step_lose_no_request(void **state)
{
	uint32_t id = create("vol", "16M"), size = 12 * 4096, kills;
	struct xreq *r;

	(void)state;
	for (kills = 1; kills < 40; kills++) {
		r = send_io(XSEG_OP_READ, id, kills * 4096, size, 0);
		for (uint32_t i = 0; i < kills % 20; i++)
			step();
		volumed_close(XSEG_CLOSE_ABANDON);
		steps(kills % 3);
		volumed_open(1, "4k", kills & 1 ? "2" : "64");
		assert_int_equal(result_of(r), size);
	}
}

static void stopping_waits_for_what_is_out(void **state)
{
	uint32_t id = create("vol", "16M");
	uint64_t left;
	struct xreq *r;

	(void)state;
	hold = true;
	r = send_io(XSEG_OP_WRITE, id, 0, 3 * 4096, 0);
	steps(5);
	atomic_store(&vd->stopping, true);
	assert_false(volumed_class.quiesced(vd, &left));
	hold = false;
	assert_int_equal(result_of(r), 3 * 4096);
	assert_true(volumed_class.quiesced(vd, &left));
}

static void stopping_answers_who_waits_for_a_store_that_fails(void **state)
{
	uint32_t id = create("vol", "16M");
	uint64_t left;
	struct xreq *r;

	(void)state;
	assert_int_equal(write_pattern(id, 8 << 20, 512, 1), 512);
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	r = send_admin("volume resize vol size=4M", 0);
	steps(50);
	assert_false(answered(r));
	atomic_store(&vd->stopping, true);
	assert_true(admin_result(r) > 0);
	assert_true(says("size_bytes=4194304\n") && says("objects_left=1"));
	assert_true(volumed_class.quiesced(vd, &left));
	volumed_close(XSEG_CLOSE_FREE_ARENA);
	fail_next(XSEG_OP_READ, -EIO, 0, UINT32_MAX);
	volumed_open(1, "4M", "64");
	r = send_io(XSEG_OP_READ, id, 0, 512, 0);
	steps(50);
	assert_false(answered(r));
	atomic_store(&vd->stopping, true);
	for (uint32_t n = 0; n < 9; n++)	/* it tries for two seconds */
		pass_ns(400 * MS);
	assert_int_equal(result_of(r), -EIO);
	assert_true(volumed_class.quiesced(vd, &left));
	volumed_close(XSEG_CLOSE_FREE_ARENA);
	fail_next(XSEG_OP_READ, 0, 0, 0);
	volumed_open(1, "4M", "64");
	steps(100);
	assert_int_equal(nr_objects(), 0);
}

/* ---- more ports -------------------------------------------------------------------------- */

static void every_port_serves_and_takes_commands(void **state)
{
	uint32_t id = create("vol", "1M");
	struct xreq *r;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		r = xseg_req_alloc(port);
		r->op = XSEG_OP_WRITE;
		r->volume = id;
		r->size = 3 * 4096;
		r->nr_pages = 3;
		r->hash = i << 32;
		memcpy(r->page, pages, 3 * sizeof(r->page[0]));
		assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
		xseg_port_flush(port);
		assert_int_equal(result_of(r), 3 * 4096);
		r = send_admin("volume info vol", i << 32);
		assert_true(admin_result(r) > 0 && says("name=vol"));
	}
}

static void a_volume_is_deleted_after_every_port_has_passed_a_point(void **state)
{
	uint32_t id = create("vol", "64k");

	(void)state;
	assert_int_equal(write_pattern(id, 0, 65536, 1), 65536);
	assert_true(admin("volume remove vol") > 0);
	steps(200);
	assert_int_equal(nr_objects(), 0);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_int_equal(count_notes(XSEG_OP_DELETE, of("vol")), 16);
}

static void a_volume_of_many_slices_is_deleted(void **state)
{
	uint32_t id = create("vol", "20M"), nr = 20 << 8;

	(void)state;
	knows_no_list = true;
	assert_true(nr > VD_JOB_SLICE);
	for (uint32_t i = 0; i < nr; i += 512)
		assert_int_equal(write_pattern(id, i * 4096ull, 4096, 1), 4096);
	nr_notes = 0;
	assert_true(admin("volume remove vol") > 0);
	for (uint32_t i = 0; i < 4000 && admin("volume info vol") > 0; i++)
		step();
	assert_int_equal(admin("volume info vol"), -ENOENT);
	assert_int_equal(nr_objects(), 0);
	assert_int_equal(count_notes(XSEG_OP_DELETE, of("vol")), nr);
}

/* ---- the rest ---------------------------------------------------------------------------- */

static void object_size_is_a_power_of_two(void **state)
{
	const struct opt *o = opt_find(volumed_class.opts, "object-size");
	struct xseg_error err;

	(void)state;
	assert_int_equal(opt_set(o, vd, "12k", &err), -EINVAL);
	assert_non_null(strstr(err.text, "power of two"));
	assert_int_equal(opt_set(o, vd, "2k", &err), -EINVAL);
	assert_int_equal(opt_set(o, vd, "8M", &err), -EINVAL);
	assert_int_equal(opt_set(o, vd, "64k", &err), 0);
}

/* Random I/O of all sizes against a copy in memory, while volumed dies now and then. */
static void random_io_matches_a_copy_through_restarts(void **state)
{
	enum { SIZE = 1 << 20 };
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	uint8_t *copy = calloc(1, SIZE);
	uint32_t id = create("vol", "1M");

	(void)state;
	for (uint32_t n = 0; n < 3000; n++) {
		uint32_t offset, size, op;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		offset = (uint32_t)(seed >> 20) % (SIZE / 512) * 512;
		size = ((uint32_t)(seed >> 40) % (seed & 1 << 17 ? 300 : 16) + 1) * 512;
		size = size < SIZE - offset ? size : SIZE - offset;
		op = (seed >> 33) % 4;
		if (op == 0) {
			assert_int_equal(io(XSEG_OP_READ, id, offset, size), size);
			for (uint32_t i = 0; i < size; i++)
				if (*page_byte(offset % 4096 + i) != copy[offset + i])
					fail_msg("seed step %u: byte %u differs", n, offset + i);
		} else if (op == 3) {
			assert_int_equal(io(XSEG_OP_WRITE_ZEROES, id, offset, size), size);
			memset(copy + offset, 0, size);
		} else {
			assert_int_equal(write_pattern(id, offset, size, n), size);
			for (uint32_t i = 0; i < size; i++)
				copy[offset + i] = pattern(offset + i, n);
		}
		if (n % 300 == 299) {
			volumed_close(XSEG_CLOSE_ABANDON);
			volumed_open(1, "4k", "5");
			nr_notes = 0;
		}
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_request_within_one_object_is_forwarded_to_it),
		T(object_numbers_are_sixteen_hex_digits),
		T_SMALL(names_that_share_a_place_in_memory_are_told_apart),
		T_SMALL(a_volume_in_the_place_of_another_has_names_of_its_own),
		T(a_record_without_an_identity_keeps_objects_with_the_volume_s_name),
		T(an_identity_is_in_the_names_of_objects_and_never_comes_back),
		T(no_volume_can_have_a_name_as_an_identity_s_prefix),
		T(what_is_beyond_the_end_is_refused_and_does_nothing),
		T(an_unknown_volume_is_not_there),
		T(flush_names_the_volume_or_all),
		T(info_is_the_size_and_other_operations_are_refused),
		T(info_with_a_size_is_about_the_object_there),
		T_SMALL(a_request_over_many_objects_is_split_even_with_one_request_free),
		T_SMALL(split_requests_that_wait_for_each_other_all_end),
		T_SMALL(flags_go_with_every_part),
		T_SMALL(the_first_error_of_a_part_is_the_whole_request_s),
		T_SMALL(a_part_that_waits_is_refused_when_the_volume_has_gone),
		T_SMALL(loans_of_the_parts_are_the_whole_request_s),
		T_SMALL(a_successor_splits_a_read_anew_and_has_all_of_its_loans),
		T_SMALL(what_parts_give_is_exchanged_in_the_whole_request),
		T_SMALL(a_successor_of_who_split_it_leaves_what_was_exchanged),
		T_SMALL(a_split_request_is_done_again_by_the_successor),
		T_SMALL(a_part_that_was_done_is_not_done_again_by_the_successor),
		T_SMALL(a_part_whose_answer_was_taken_and_not_handled_is_not_done_again),
		T_SMALL(kills_at_every_step_lose_no_request),
		T_SMALL(stopping_waits_for_what_is_out),
		T(stopping_answers_who_waits_for_a_store_that_fails),
		T_THREADS(every_port_serves_and_takes_commands),
		T_THREADS(a_volume_is_deleted_after_every_port_has_passed_a_point),
		T_THREADS(a_volume_of_many_slices_is_deleted),
		T(object_size_is_a_power_of_two),
		T_SMALL(random_io_matches_a_copy_through_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
