/* kvd_versions_test - the simulator's oracle of values (tests/sim/kv/versions.h), where two changes
 * may have made what a key shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/sim/kv/versions.h"
#include "xseg/kv_wire.h"

static struct versions v;

static int begin(void **state)
{
	(void)state;
	versions_init(&v);
	return 0;
}

static int end(void **state)
{
	(void)state;
	versions_fini(&v);
	return 0;
}

static uint32_t put(uint32_t key, const char *text, uint64_t batch)
{
	struct vchange c = { .kind = KV_PUT, .batch = batch,
		.value = { (uint8_t *)(uintptr_t)text, (uint32_t)strlen(text) } };

	return versions_begin(&v, key, &c);
}

static void incr(uint32_t key, uint64_t amount)
{
	struct vchange c = { .kind = KV_INCR, .amount = amount };

	versions_begin(&v, key, &c);
}

static void touch(uint32_t key)
{
	struct vchange c = { .kind = KV_TOUCH };

	versions_begin(&v, key, &c);
}

/* What the key shows after the death of all clients, or a loss of power. */
static const char *shows(uint32_t key, const char *text, uint64_t version, bool power_lost)
{
	struct vseen seen = { .what = VSEEN_VALUE, .version = version,
		.hash = versions_hash(text, (uint32_t)strlen(text)) };

	return versions_resolve(&v, key, &seen, power_lost);
}

static void answer(uint32_t key, uint32_t change, uint64_t version)
{
	versions_end(&v, key, change, 0, version, 0);
	assert_null(versions_check(&v, key));
}

/* Key 1 has version 5, and then a batch of keys 0 and 1 is sent. */
static void send_batch(void)
{
	uint64_t batch;

	answer(1, put(1, "old", 0), 5);
	batch = versions_batch(&v);
	put(0, "100", batch);
	put(1, "new", batch);
}

static void a_batch_of_which_a_loss_of_power_keeps_half_is_told(void **state)
{
	(void)state;
	send_batch();
	versions_clients_died(&v);
	assert_null(shows(0, "100", 7, true));
	assert_null(shows(1, "old", 5, true));
	assert_non_null(versions_check_batches(&v));
}

static void counting_on_by_nothing_does_not_look_like_the_batch_before_it(void **state)
{
	(void)state;
	send_batch();
	incr(0, 0);				/* version 9; the batch has 7 and 8 */
	put(1, "newest", 0);
	versions_clients_died(&v);
	assert_null(shows(0, "100", 9, true));
	assert_null(shows(1, "new", 8, true));
	assert_null(versions_check_batches(&v));
}

static void nor_does_it_if_only_the_clients_died_first(void **state)
{
	(void)state;
	send_batch();
	incr(0, 0);
	versions_clients_died(&v);
	assert_null(shows(0, "100", 9, false));
	assert_null(shows(1, "new", 8, false));
	assert_null(shows(0, "100", 9, true));
	assert_null(shows(1, "new", 8, true));
	assert_null(versions_check_batches(&v));
}

static void a_touch_that_is_there_says_nothing_of_the_batch_before_it(void **state)
{
	uint64_t batch;
	uint32_t first, second;

	(void)state;
	answer(1, put(1, "old", 0), 5);
	batch = versions_batch(&v);
	first = put(0, "100", batch);
	second = put(1, "new", batch);
	answer(0, first, 7);
	answer(1, second, 8);
	touch(0);
	versions_clients_died(&v);
	assert_null(shows(0, "100", 7, true));
	assert_null(shows(1, "old", 5, true));
	assert_null(versions_check_batches(&v));
}

static void a_change_may_name_the_version_of_one_that_was_not_answered(void **state)
{
	struct vchange c = { .kind = KV_INCR, .amount = 5, .condition = KV_IF_VERSION,
		.if_version = 7 };
	uint32_t incr;

	(void)state;
	answer(0, put(0, "1", 0), 5);
	put(0, "100", 0);
	v.key[0].out++;
	incr = versions_begin(&v, 0, &c);
	versions_end(&v, 0, incr, 0, 9, 105);
	versions_clients_died(&v);
	assert_null(shows(0, "105", 9, true));
}

static void half_of_a_batch_is_told_after_the_death_of_its_client(void **state)
{
	(void)state;
	send_batch();
	versions_clients_died(&v);
	assert_null(shows(0, "100", 7, false));
	assert_null(shows(1, "old", 5, false));
	assert_non_null(versions_check_batches(&v));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_batch_of_which_a_loss_of_power_keeps_half_is_told),
		TEST(counting_on_by_nothing_does_not_look_like_the_batch_before_it),
		TEST(nor_does_it_if_only_the_clients_died_first),
		TEST(a_touch_that_is_there_says_nothing_of_the_batch_before_it),
		TEST(a_change_may_name_the_version_of_one_that_was_not_answered),
		TEST(half_of_a_batch_is_told_after_the_death_of_its_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
