/* data_test - copying pages past the CPU's caches: which bytes are copied, which are not, and which
 * reader sees them when.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/cached/bucket/data.h"
#include "tests/rig/long.h"

#define ROUNDS in_short(20000, 10)
#define PAGES  4u

static alignas(XSEG_PAGE_SIZE) char from[PAGES][XSEG_PAGE_SIZE], to[PAGES + 2][XSEG_PAGE_SIZE];

static void fill(char *page, uint32_t seed)
{
	for (uint32_t i = 0; i < XSEG_PAGE_SIZE; i++)
		page[i] = (char)((i * 131 + i / 64 * 17 + seed) >> 1);
}

static bool is_all(const char *page, char c)
{
	for (uint32_t i = 0; i < XSEG_PAGE_SIZE; i++)
		if (page[i] != c)
			return false;
	return true;
}

static void copies_a_page(void (*copy)(void *to, const void *from))
{
	fill(from[0], 1);
	memset(to, 0x55, sizeof(to));
	copy(to[1], from[0]);
	data_settle();
	assert_memory_equal(to[1], from[0], XSEG_PAGE_SIZE);
	assert_true(is_all(to[0], 0x55) && is_all(to[2], 0x55));
}

static void copy_alone(void *to_page, const void *from_page)
{
	data_copy(to_page, from_page, NULL, NULL);
}

static void copy_of_several(void *to_page, const void *from_page)
{
	fill(from[1], 2);
	data_copy(to_page, from_page, from[1], NULL);
}

/* The next but one lies beside these, or elsewhere. */
static void copy_of_side_by_side(void *to_page, const void *from_page)
{
	data_copy(to_page, from_page, from[1], from[2]);
}

static void copy_of_scattered(void *to_page, const void *from_page)
{
	data_copy(to_page, from_page, from[2], from[1]);
}

static void a_page_is_copied_and_nothing_beside_it(void **state)
{
	(void)state;
	copies_a_page(data_copy_past);
	copies_a_page(data_copy_past_old);
	copies_a_page(copy_alone);
	copies_a_page(copy_of_several);
	copies_a_page(copy_of_side_by_side);
	copies_a_page(copy_of_scattered);
}

/* ---- who sees it ---- */

#define SETS 16u		/* of pages: the writer is ahead of the reader by no more */

static alignas(XSEG_PAGE_SIZE) char set[SETS][PAGES][XSEG_PAGE_SIZE];
static _Atomic uint32_t copied, compared;	/* rounds that are over */
static uint32_t wrong;

/* A thread that yields beside programs that never sleep waits for a time slice of each. One that
 * sleeps does not. */
static void wait_for_round(_Atomic uint32_t *over, uint32_t round)
{
	/* acquire: partner is the release of that round's thread */
	for (uint32_t i = 1; atomic_load_explicit(over, memory_order_acquire) < round; i++)
		if (i % 1000 == 0)
			usleep(20);
}

static void *compare(void *arg)
{
	(void)arg;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		char (*page)[XSEG_PAGE_SIZE] = set[round % SETS];

		wait_for_round(&copied, round);
		for (uint32_t i = PAGES; i-- > 0;)
			wrong += page[i][XSEG_PAGE_SIZE - 1] != (char)round ||
				 page[i][0] != (char)round;
		atomic_store_explicit(&compared, round, memory_order_release);
	}
	return NULL;
}

static void a_word_that_is_stored_after_it_settled_is_seen_after_it(void **state)
{
	pthread_t reader;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, compare, NULL), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		if (round > SETS)
			wait_for_round(&compared, round - SETS);
		memset(from, (int)round, sizeof(from));
		for (uint32_t i = 0; i < PAGES; i++)
			(round % 2 ? data_copy_past : data_copy_past_old)(
				set[round % SETS][i], from[i]);
		data_settle();
		atomic_store_explicit(&copied, round, memory_order_release);
	}
	pthread_join(reader, NULL);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_copied_and_nothing_beside_it),
		cmocka_unit_test(a_word_that_is_stored_after_it_settled_is_seen_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
