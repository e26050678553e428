/* canary_test - data of one volume is never seen in another: neither in its reads, nor in pages
 * that change owners.
 *
 * A volume fills the whole cache with a pattern (the canary). Then it goes, or is pushed out, and
 * another works in its pages, in every odd way: parts of buckets, zeroes, discards, reads of data
 * that was never written. Its reads are compared with its writes, byte for byte. The bytes beside
 * them in the reader's pages are untouched.
 */
#include "tests/rig/cached_rig.h"

#define OLD	    1u				/* volumes */
#define NEW	    2u
#define BUCKETS	    24u				/* of each new object */
#define BYTES	    (BUCKETS * CRIG_PAGE)
#define OBJECTS	    3u
#define SEED_CANARY 77u

static uint8_t is[OBJECTS][BYTES];		/* what the new volume's objects have */
static bool writes_only;		/* the rig's store knows no WRITE_ZEROES and no DISCARD */

static const char *name_of(uint32_t object)
{
	static const char *const name[OBJECTS] = { "new:0", "new:1", "new:2" };

	return name[object];
}

/* Every page of the cache has been the old volume's; most of it is dirty. */
static void fill_with_canary(void)
{
	char name[16];

	crig_volume(OLD);
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "old:%u", i);
		for (uint32_t at = 0; at < 256; at += 64)
			crig_expect(crig_write(name, B(at), B(64), SEED_CANARY), B(64));
	}
	crig_volume(NEW);
	memset(is, 0, sizeof(is));
}

static void forget_old(void)
{
	char name[16];

	crig_volume(OLD);
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "old:%u", i);
		crig_expect(crig_op(XSEG_OP_DELETE, name, 0, 0), 0);
	}
	crig_volume(NEW);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33) % n;
}

static void check_read(uint32_t object, uint32_t at, uint32_t bytes)
{
	struct crig_io *io = crig_send(XSEG_OP_READ, name_of(object), at, bytes, 0, 0);
	uint8_t got[BYTES];
	uint8_t *first, *last;

	crig_settle();
	assert_true(io->done && io->result == bytes);
	xseg_req_read_data(crig.seg, io->r, 0, got, bytes);
	assert_memory_equal(got, is[object] + at, bytes);
	/* beside the range is what the client had there, or the store, which fills the pages of a
	 * read with rubbish */
	first = xseg_page(crig.seg, io->r->page[0]);
	last = xseg_page(crig.seg, io->r->page[io->r->nr_pages - 1]);
	for (uint32_t i = 0; i < at % CRIG_PAGE; i++)
		assert_true(first[i] == 0xee || first[i] == 0xdb);
	for (uint32_t i = (at + bytes - 1) % CRIG_PAGE + 1; i < CRIG_PAGE; i++)
		assert_true(last[i] == 0xee || last[i] == 0xdb);
	crig_expect(io, bytes);
}

static void change(uint32_t object, uint32_t at, uint32_t bytes, uint32_t how, unsigned seed)
{
	if (how == 0) {
		crig_expect(crig_write(name_of(object), at, bytes, seed), bytes);
		for (uint32_t i = 0; i < bytes; i++)
			is[object][at + i] = crig_byte(seed, at + i);
		return;
	}
	crig_expect(crig_op(how == 1 ? XSEG_OP_WRITE_ZEROES : XSEG_OP_DISCARD, name_of(object), at,
			    bytes),
		bytes);
	memset(is[object] + at, 0, bytes);
}

static void work(uint64_t seed, uint32_t rounds)
{
	for (uint32_t n = 0; n < rounds; n++) {
		uint32_t object = below(&seed, OBJECTS), at = below(&seed, BYTES / 512 - 1) * 512;
		uint32_t most = (BYTES - at) / 512 < 48 ? (BYTES - at) / 512 : 48,
			 bytes = (1 + below(&seed, most)) * 512;

		if (below(&seed, 2))
			check_read(object, at, bytes);
		else
			change(object, at, bytes, writes_only ? 0 : below(&seed, 4) % 3,
				1 + below(&seed, 50));
		if (below(&seed, 40) == 0)
			crig_pass(CRIG_S);
	}
	for (uint32_t object = 0; object < OBJECTS; object++)
		check_read(object, 0, BYTES);
}

static void work_where_others_were_evicted(const char *options, uint64_t seed)
{
	crig_up(options);
	fill_with_canary();
	work(seed, 1500);
}

static void pages_of_what_was_evicted_show_nothing_of_it(void **state)
{
	(void)state;
	work_where_others_were_evicted("dirty_age=100ms", 4711);
}

static void nor_by_write_through(void **state)
{
	(void)state;
	work_where_others_were_evicted("policy=write-through", 4712);
}

static void nor_by_write_around(void **state)
{
	(void)state;
	writes_only = true;
	work_where_others_were_evicted("policy=write-around", 4713);
	writes_only = false;
}

static void nor_by_reading_ahead(void **state)
{
	(void)state;
	work_where_others_were_evicted("read_ahead=64k", 4714);
}

static void pages_of_what_was_deleted_show_nothing_of_it(void **state)
{
	(void)state;
	crig_up("");
	fill_with_canary();
	forget_old();
	work(42, 2000);
}

static void a_load_that_the_store_answers_in_part_shows_nothing_else(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	fill_with_canary();
	forget_old();
	crig_hold(true);
	io = crig_send(XSEG_OP_READ, "new:0", 0, B(4), 0, 0);
	crig_settle();
	crig_short(crig_held(XSEG_OP_READ, 0), B(1));
	for (uint32_t call; (call = crig_held(XSEG_OP_READ, 0)) != CRIG_NEVER;)
		crig_short(call, B(1));
	crig_expect(io, -EIO);
	crig_hold(false);
	check_read(0, 0, B(4));
}

/* What each bucket of new:0 was when it was overwritten last is what is lent for it, or zeroes:
 * nothing of the old volume's. */
static void pages_that_a_write_is_lent_show_nothing_of_it(void **state)
{
	unsigned was[BUCKETS] = { 0 };
	struct crig_io *io = NULL;
	uint64_t seed = 4715;

	(void)state;
	crig_up("dirty_age=100ms");
	fill_with_canary();
	for (unsigned n = 1; n < 200; n++) {
		uint32_t at = below(&seed, BUCKETS),
			 nr = 1 + below(&seed, BUCKETS - at < 4 ? BUCKETS - at : 4);

		io = crig_send_give(io, name_of(0), B(at), B(nr), 0, n);
		crig_settle();
		assert_true(io->done && io->result == (int64_t)B(nr));
		for (uint32_t i = 0; i < nr; i++) {
			const uint8_t *page = xseg_req_gift_page(crig.seg, io->r, i);

			assert_true(page == xseg_page(crig.seg, io->r->page[i]) ||
				    crig_bytes_are(page, B(at + i), CRIG_PAGE, 0) ||
				    crig_bytes_are(page, B(at + i), CRIG_PAGE, was[at + i]));
			was[at + i] = n;
		}
		if (n % 30 == 0)
			crig_pass(CRIG_S);
	}
	assert_true(crig_counter(CC_GIVEN_BYTES) > B(50));
	crig_expect(io, io->r->size);
}

/* A cache that shrinks gives pages back; who takes them next finds zeroes. */
static void pages_that_a_cache_gives_back_are_zero_for_the_next(void **state)
{
	struct xseg_peer_params params = {
		.name = "next", .kind = "client", .nr_ports = 1, .nr_requests = 16
	};
	uint32_t page[XSEG_EXTENT_PAGES], taken = 0;
	struct xseg_error err = { "" };
	struct xseg_peer *next;

	(void)state;
	crig_up("memory=8M");
	fill_with_canary();
	crig_expect(crig_flush(0), 0);
	crig_set("memory=4M");
	crig_pass(20 * CRIG_S);
	assert_int_equal(crig.k->memory.nr_pages, 4 << 8);
	assert_int_equal(xseg_peer_open(crig.seg, &params, &next, &err), 0);
	for (; xseg_pages_take(next, XSEG_EXTENT_PAGES, page) == 0; taken++)
		for (uint32_t i = 0; i < XSEG_EXTENT_PAGES; i++) {
			const uint64_t *word = xseg_page(crig.seg, page[i]);

			for (uint32_t k = 0; k < XSEG_PAGE_SIZE / 8; k++)
				assert_int_equal(word[k], 0);
		}
	assert_true(taken >= 2);
	xseg_peer_close(next, XSEG_CLOSE_FREE_ARENA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(pages_of_what_was_evicted_show_nothing_of_it),
		CRIG_T(nor_by_write_through),
		CRIG_T(nor_by_write_around),
		CRIG_T(nor_by_reading_ahead),
		CRIG_T(pages_of_what_was_deleted_show_nothing_of_it),
		CRIG_T(pages_that_a_write_is_lent_show_nothing_of_it),
		CRIG_T(a_load_that_the_store_answers_in_part_shows_nothing_else),
		CRIG_T(pages_that_a_cache_gives_back_are_zero_for_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
