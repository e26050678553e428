/* arena_test - extents: arenas that are one piece and outlive their peer, pages, zeroes, and
 * running out of them. */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NR_EXTENTS 8

static struct xseg_peer *peer;

static int setup_peer(void **state)
{
	setup(state);
	peer = segrig_server(seg, "cached", 1, 0);
	return 0;
}

static int teardown_peer(void **state)
{
	close_peer(peer);
	return teardown(state);
}

static void give_all(void)
{
	for (uint32_t i = 0; i < xseg_nr_pages(seg); i += XSEG_EXTENT_PAGES)
		xseg_pages_give(peer, i);
}

static uint8_t *arena(uint64_t want, uint64_t *bytes, bool want_fresh)
{
	struct xseg_error err = { "" };
	void *base = NULL;
	bool fresh;

	*bytes = want;
	if (xseg_arena_open(peer, bytes, &base, &fresh, &err))
		fail_msg("%s", err.text);
	assert_int_equal(fresh, want_fresh);
	assert_int_equal((uintptr_t)base % XSEG_EXTENT_SIZE, 0);
	return base;
}

static bool is_zero(const void *at, size_t bytes)
{
	const char *p = at;

	return p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0;
}

static uint32_t free_extents(void)
{
	return segrig_accounts(seg).free_extents;
}

static void an_arena_is_one_zeroed_piece_even_of_scattered_extents(void **state)
{
	struct xseg_peer *other[4];
	uint32_t page[XSEG_EXTENT_PAGES];
	uint64_t bytes;
	uint8_t *base;
	char name[8];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		other[i] = segrig_client(seg, name, 0);
		assert_int_equal(xseg_pages_take(other[i], 1, page), 0);
	}
	close_peer(other[0]);
	close_peer(other[2]);
	base = arena(5 * XSEG_EXTENT_SIZE - 77, &bytes, true);
	assert_int_equal(bytes, 5 * XSEG_EXTENT_SIZE - 77);
	assert_true(is_zero(base, bytes));
	assert_int_equal(free_extents(), 1);
	for (uint32_t i = 0; i < 5 * XSEG_EXTENT_SIZE / 8; i++)
		((uint64_t *)base)[i] = i;
	for (uint32_t e = 0; e < NR_EXTENTS; e++) {
		uint64_t w = atomic_load(&seg->extents[e].word);
		uint64_t *at = (uint64_t *)(seg->pages + e * XSEG_EXTENT_SIZE);

		if (extent_kind(w) == XS_EXTENT_ARENA)
			assert_int_equal(at[7], extent_nr(w) * (XSEG_EXTENT_SIZE / 8) + 7);
	}
	close_peer(other[1]);
	close_peer(other[3]);
}

static void an_arena_is_found_again_by_whoever_succeeds_whatever_he_asks_for(void **state)
{
	struct xseg_peer_info info;
	uint64_t bytes;

	(void)state;
	memset(arena(3 << 20, &bytes, true), 0x77, 3 << 20);
	assert_int_equal(arena(9 << 20, &bytes, false)[(3 << 20) - 1], 0x77);
	for (unsigned kill = 0; kill < 2; kill++) {
		xseg_peer_close(peer, kill ? XSEG_CLOSE_ABANDON : XSEG_CLOSE_KEEP_ARENA);
		peer = segrig_server(seg, "cached", 1, 0);
		assert_int_equal(arena(1 << 20, &bytes, false)[(3 << 20) - 1], 0x77);
		assert_int_equal(bytes, 3 << 20);
		assert_true(xseg_peer_get_info(seg, xseg_peer_index(peer), &info));
		assert_int_equal(info.arena_bytes, 3 << 20);
	}
	assert_int_equal(free_extents(), NR_EXTENTS - 2);
}

static void an_arena_that_was_given_back_is_made_anew_and_zero(void **state)
{
	uint64_t bytes;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		uint8_t *base = arena(16 << 20, &bytes, true);

		assert_true(is_zero(base, bytes));
		memset(base, 0xff, bytes);
		assert_int_equal(free_extents(), 0);
		if (i % 2) {
			assert_int_equal(xseg_arena_free(peer, NULL), 0);
			assert_int_equal(xseg_arena_free(peer, NULL), 0);
		} else {
			xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
			peer = segrig_server(seg, "cached", 1, 0);
		}
		assert_int_equal(free_extents(), NR_EXTENTS);
	}
}

static void an_arena_stays_where_the_segment_cannot_be_locked(void **state)
{
	struct xseg_error err = { "" };
	uint64_t bytes;
	uint8_t *base = arena(4 << 20, &bytes, true);
	uint32_t left = free_extents();

	(void)state;
	memset(base, 0xaa, bytes);
	segrig_descriptors(false);
	assert_int_equal(xseg_arena_free(peer, &err), -EMFILE);
	segrig_descriptors(true);
	assert_non_null(strstr(err.text, "cannot lock the segment"));
	assert_int_equal(free_extents(), left);
	assert_ptr_equal(arena(4 << 20, &bytes, false), base);
	assert_int_equal(base[bytes - 1], 0xaa);
}

static void an_arena_whose_size_is_not_that_of_its_extents_is_refused(void **state)
{
	static const struct {
		uint32_t extents;
		uint64_t bytes;
	} t[] = { { 2, 0 }, { 2, (4 << 20) + 1 }, { 2, UINT64_MAX }, { 1, 3 << 20 }, { 3, 3 << 20 },
		{ 0x80000000, 3 << 20 }, { UINT32_MAX, UINT64_MAX } };
	struct xs_peer *sh;
	struct xseg_error err;
	uint64_t bytes;
	void *base;
	bool fresh;

	(void)state;
	arena(3 << 20, &bytes, true);
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
		peer = segrig_server(seg, "cached", 1, 0);
		sh = &seg->peers[xseg_peer_index(peer)];
		atomic_store(&sh->arena_extents, t[i].extents);
		atomic_store(&sh->arena_bytes, t[i].bytes);
		err.text[0] = '\0';
		assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -EPROTO);
		assert_non_null(strstr(err.text, "damaged"));
	}
	atomic_store(&sh->arena_extents, 2);
	atomic_store(&sh->arena_bytes, 3 << 20);
	arena(1, &bytes, false);
}

static void an_arena_that_does_not_fit_is_refused_and_takes_nothing(void **state)
{
	static const uint64_t sizes[] = { (16 << 20) + 1, 1ull << 40, 1ull << 53, UINT64_MAX };
	struct xseg_error err = { "" };
	uint64_t bytes;
	void *base;
	bool fresh;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bytes = sizes[i];
		assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -ENOMEM);
		assert_non_null(strstr(err.text, "with more memory"));
		assert_int_equal(free_extents(), NR_EXTENTS);
	}
	bytes = 0;
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -EINVAL);
}

static void extents_of_an_arena_that_was_not_committed_are_taken_back(void **state)
{
	uint64_t bytes;

	(void)state;
	arena(6 << 20, &bytes, true);
	abandon(peer);
	/* it died before the commit */
	xs_keep(seg, xseg_peer_find(seg, "cached"), XS_KEPT_EXTENTS, 0);
	peer = segrig_server(seg, "cached", 1, 0);
	assert_true(is_zero(arena(16 << 20, &bytes, true), 16 << 20));
	assert_int_equal(free_extents(), 0);
}

static void a_damaged_arena_is_refused(void **state)
{
	struct xseg_error err = { "" };
	uint64_t bytes, word;
	void *base;
	bool fresh;

	(void)state;
	arena(6 << 20, &bytes, true);
	close_peer(peer);
	word = atomic_load(&seg->extents[1].word);
	peer = segrig_server(seg, "cached", 1, 0);
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t nr[] = { 3, UINT32_MAX, 2 };

		atomic_store(&seg->extents[1].word,
			i == 2 ? 0 : extent_word(XS_EXTENT_ARENA, xseg_peer_index(peer), nr[i]));
		assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -EPROTO);
		assert_non_null(strstr(err.text, "the arena that the peer left"));
	}
	atomic_store(&seg->extents[1].word, extent_word(XS_EXTENT_ARENA, xseg_peer_index(peer), 0));
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -EPROTO);
	atomic_store(&seg->extents[1].word, word);
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), 0);
}

static void pages_are_whole_extents_of_zeroes_and_each_is_given_once(void **state)
{
	static bool seen[NR_EXTENTS * XSEG_EXTENT_PAGES];
	uint32_t page[3 * XSEG_EXTENT_PAGES], again[3 * XSEG_EXTENT_PAGES];

	(void)state;
	memset(seen, 0, sizeof(seen));
	assert_int_equal(xseg_pages_round(0), 0);
	assert_int_equal(xseg_pages_round(1), XSEG_EXTENT_PAGES);
	assert_int_equal(xseg_pages_round(XSEG_EXTENT_PAGES), XSEG_EXTENT_PAGES);
	assert_int_equal(xseg_pages_round(XSEG_EXTENT_PAGES + 1), 2 * XSEG_EXTENT_PAGES);
	assert_int_equal(xseg_pages_take(peer, 1, page), 0);
	assert_int_equal(xseg_pages_take(peer, XSEG_EXTENT_PAGES + 1, page + XSEG_EXTENT_PAGES), 0);
	for (unsigned i = 0; i < 3 * XSEG_EXTENT_PAGES; i++) {
		assert_true(page[i] < xseg_nr_pages(seg));
		assert_false(seen[page[i]]);
		seen[page[i]] = true;
		assert_true(is_zero(xseg_page(seg, page[i]), XSEG_PAGE_SIZE));
		assert_int_equal(xseg_page_owner(seg, page[i]), 0);
	}
	assert_int_equal(
		xseg_pages_owned(peer, again, 3 * XSEG_EXTENT_PAGES), 3 * XSEG_EXTENT_PAGES);
	for (unsigned i = 0; i < 3 * XSEG_EXTENT_PAGES; i++)
		assert_true(seen[again[i]]);
	assert_int_equal(xseg_pages_owned(peer, NULL, 0), 3 * XSEG_EXTENT_PAGES);
	assert_int_equal(free_extents(), NR_EXTENTS - 3);
	give_all();
	assert_int_equal(free_extents(), NR_EXTENTS);
	assert_int_equal(xseg_pages_owned(peer, again, 1), 0);
}

static void pages_that_change_hands_are_zero_and_without_an_owner_word(void **state)
{
	uint32_t nr = NR_EXTENTS * XSEG_EXTENT_PAGES, *page = calloc(nr, sizeof(*page));
	struct xseg_peer *other;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		other = segrig_client(seg, "me", 0);
		assert_int_equal(xseg_pages_take(other, nr, page), 0);
		for (uint32_t k = 0; k < nr; k++) {
			assert_true(is_zero(xseg_page(seg, page[k]), XSEG_PAGE_SIZE));
			assert_int_equal(xseg_page_owner(seg, page[k]), 0);
			memset(xseg_page(seg, page[k]), 0xee, XSEG_PAGE_SIZE);
			xseg_page_owner_set(seg, page[k], k + 1);
			assert_int_equal(xseg_page_owner(seg, page[k]), k + 1);
		}
		xseg_peer_close(other, i == 1 ? XSEG_CLOSE_ABANDON : XSEG_CLOSE_KEEP_ARENA);
		xseg_sweep(seg);
	}
	free(page);
}

static void pages_that_are_not_there_are_refused_and_none_is_taken(void **state)
{
	static const uint32_t many[] = { NR_EXTENTS * XSEG_EXTENT_PAGES + 1, 1u << 30, UINT32_MAX };
	uint32_t page[XSEG_EXTENT_PAGES];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(xseg_pages_take(peer, many[i], page), -ENOMEM);
		assert_int_equal(free_extents(), NR_EXTENTS);
	}
	assert_int_equal(xseg_pages_take(peer, 0, page), 0);
	assert_int_equal(free_extents(), NR_EXTENTS);
}

/* Of all extents but the first. */
static void words_set(uint64_t word)
{
	for (uint32_t i = 1; i < NR_EXTENTS; i++)
		atomic_store(&seg->extents[i].word, word);
}

/* The first extent is being cleared, so it is about to be taken: those that are left are gone. */
static void take_others(int number)
{
	(void)number;
	words_set(extent_word(XS_EXTENT_PAGES, 9, 0));
	if (mprotect(seg->pages, XSEG_EXTENT_SIZE, PROT_READ | PROT_WRITE))
		_exit(2);
}

static void begin_to_take(void)
{
	assert_true(signal(SIGSEGV, take_others) != SIG_ERR);
	assert_int_equal(mprotect(seg->pages, XSEG_EXTENT_SIZE, PROT_NONE), 0);
}

static void ended_with_none(void)
{
	assert_true(signal(SIGSEGV, SIG_DFL) == take_others);
	assert_int_equal(free_extents(), 1);
	words_set(extent_word(XS_EXTENT_FREE, 0, 0));
}

static void what_is_written_over_as_it_is_taken_is_refused_and_none_is_taken(void **state)
{
	uint32_t page[NR_EXTENTS * XSEG_EXTENT_PAGES];
	uint64_t bytes = 3 * XSEG_EXTENT_SIZE;
	struct xseg_error err = { "" };
	void *base = NULL;
	bool fresh;

	(void)state;
	assert_int_equal(xseg_pages_take(peer, NR_EXTENTS * XSEG_EXTENT_PAGES, page), 0);
	give_all();
	begin_to_take();
	assert_int_equal(xseg_pages_take(peer, 3 * XSEG_EXTENT_PAGES, page), -ENOMEM);
	ended_with_none();
	begin_to_take();
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), -ENOMEM);
	ended_with_none();
	arena(bytes, &bytes, true);
}

static void pages_and_owner_words_of_a_dead_peer_are_its_successors(void **state)
{
	uint32_t page[XSEG_EXTENT_PAGES], again[XSEG_EXTENT_PAGES];

	(void)state;
	assert_int_equal(xseg_pages_take(peer, 1, page), 0);
	memset(xseg_page(seg, page[9]), 9, XSEG_PAGE_SIZE);
	xseg_page_owner_set(seg, page[9], 99);
	abandon(peer);
	peer = segrig_server(seg, "cached", 1, 0);
	assert_int_equal(xseg_pages_owned(peer, again, XSEG_EXTENT_PAGES), XSEG_EXTENT_PAGES);
	assert_memory_equal(page, again, sizeof(page));
	assert_int_equal(xseg_page_owner(seg, page[9]), 99);
	assert_int_equal(*(char *)xseg_page(seg, page[9]), 9);
	xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(free_extents(), NR_EXTENTS);
	peer = segrig_server(seg, "cached", 1, 0);
}

static void pages_are_taken_beside_those_that_are_there(void **state)
{
	uint32_t page[3 * XSEG_EXTENT_PAGES], all[3 * XSEG_EXTENT_PAGES];

	(void)state;
	assert_int_equal(xseg_pages_take(peer, 1, page), 0);
	memset(xseg_page(seg, page[5]), 5, XSEG_PAGE_SIZE);
	xseg_page_owner_set(seg, page[5], 55);
	assert_int_equal(xseg_pages_take(peer, 2 * XSEG_EXTENT_PAGES, page + XSEG_EXTENT_PAGES), 0);
	assert_int_equal(xseg_nr_free_pages(seg), (NR_EXTENTS - 3) * XSEG_EXTENT_PAGES);
	assert_int_equal(xseg_pages_owned(peer, all, 3 * XSEG_EXTENT_PAGES), 3 * XSEG_EXTENT_PAGES);
	assert_memory_equal(page, all, sizeof(page));
	assert_int_equal(*(char *)xseg_page(seg, page[5]), 5);
	assert_int_equal(xseg_page_owner(seg, page[5]), 55);
	assert_int_equal(
		xseg_pages_take(peer, (NR_EXTENTS - 2) * XSEG_EXTENT_PAGES, page), -ENOMEM);
	assert_int_equal(xseg_pages_owned(peer, NULL, 0), 3 * XSEG_EXTENT_PAGES);
	give_all();
}

static void an_extent_that_is_given_back_is_free_and_zero_for_the_next(void **state)
{
	uint32_t page[3 * XSEG_EXTENT_PAGES], rest[2 * XSEG_EXTENT_PAGES], again[XSEG_EXTENT_PAGES];
	struct xseg_peer *other = segrig_client(seg, "other", 0);

	(void)state;
	assert_int_equal(xseg_pages_take(peer, 3 * XSEG_EXTENT_PAGES, page), 0);
	for (uint32_t i = 0; i < 3 * XSEG_EXTENT_PAGES; i++) {
		memset(xseg_page(seg, page[i]), 0xee, XSEG_PAGE_SIZE);
		xseg_page_owner_set(seg, page[i], 1);
	}
	xseg_pages_give(peer, page[XSEG_EXTENT_PAGES]);
	assert_int_equal(free_extents(), NR_EXTENTS - 2);
	assert_int_equal(
		xseg_pages_owned(peer, rest, 2 * XSEG_EXTENT_PAGES), 2 * XSEG_EXTENT_PAGES);
	assert_memory_equal(rest, page, sizeof(again));
	assert_memory_equal(rest + XSEG_EXTENT_PAGES, page + 2 * XSEG_EXTENT_PAGES, sizeof(again));
	assert_int_equal(xseg_pages_take(other, 1, again), 0);
	assert_memory_equal(again, page + XSEG_EXTENT_PAGES, sizeof(again));
	assert_true(is_zero(xseg_page(seg, again[0]), XSEG_EXTENT_SIZE));
	for (uint32_t i = 0; i < XSEG_EXTENT_PAGES; i++)
		assert_int_equal(xseg_page_owner(seg, again[i]), 0);
	xseg_peer_close(other, XSEG_CLOSE_KEEP_ARENA);
	give_all();
}

static void an_extent_of_another_or_of_an_arena_is_not_given_back(void **state)
{
	struct xseg_peer *other = segrig_client(seg, "other", 0);
	uint32_t page[XSEG_EXTENT_PAGES];
	uint64_t bytes;

	(void)state;
	arena(2 << 20, &bytes, true);
	assert_int_equal(xseg_pages_take(other, 1, page), 0);
	for (uint32_t i = 0; i < NR_EXTENTS; i++)
		xseg_pages_give(peer, i * XSEG_EXTENT_PAGES);
	assert_int_equal(free_extents(), NR_EXTENTS - 2);
	xseg_peer_close(other, XSEG_CLOSE_KEEP_ARENA);
}

#define A(name) cmocka_unit_test_setup_teardown(name, setup_peer, teardown_peer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(an_arena_is_one_zeroed_piece_even_of_scattered_extents),
		A(an_arena_is_found_again_by_whoever_succeeds_whatever_he_asks_for),
		A(an_arena_that_was_given_back_is_made_anew_and_zero),
		A(an_arena_stays_where_the_segment_cannot_be_locked),
		A(an_arena_whose_size_is_not_that_of_its_extents_is_refused),
		A(an_arena_that_does_not_fit_is_refused_and_takes_nothing),
		A(extents_of_an_arena_that_was_not_committed_are_taken_back),
		A(a_damaged_arena_is_refused),
		A(pages_are_whole_extents_of_zeroes_and_each_is_given_once),
		A(pages_that_change_hands_are_zero_and_without_an_owner_word),
		A(pages_that_are_not_there_are_refused_and_none_is_taken),
		A(what_is_written_over_as_it_is_taken_is_refused_and_none_is_taken),
		A(pages_and_owner_words_of_a_dead_peer_are_its_successors),
		A(pages_are_taken_beside_those_that_are_there),
		A(an_extent_that_is_given_back_is_free_and_zero_for_the_next),
		A(an_extent_of_another_or_of_an_arena_is_not_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
