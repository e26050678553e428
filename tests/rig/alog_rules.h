/* alog_rules - what the tests of the log's rules share: one rig, and its begin and end.
 *
 * Each test begins its rig, and RULE() has it destroyed.
 */
#ifndef TESTS_RIG_ALOG_RULES_H
#define TESTS_RIG_ALOG_RULES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "tests/rig/alog_rig.h"

static struct ar *rig;

static inline void begin_as(uint32_t zones, uint32_t zone_pages, bool evicts)
{
	struct alog_config cfg = { .prefix = "log", .zones = zones,
		.zone_bytes = zone_pages * ALOG_PAGE, .tail_pages = 64, .reserve = 3,
		.uuid = { 9, 8, 7 }, .owner = 5, .evicts = evicts };

	rig = ar_create(4711, &cfg);
	assert_true(ar_open(rig));
}

static inline void begin_sized(uint32_t zones, uint32_t zone_pages)
{
	begin_as(zones, zone_pages, false);
}

static inline void begin_evicting(uint32_t zones)
{
	begin_as(zones, 8, true);
}

static inline void begin(void)
{
	begin_sized(12, 8);
}

static inline int end(void **state)
{
	(void)state;
	ar_destroy(rig);
	rig = NULL;
	return 0;
}

static inline struct alog_stats stats(void)
{
	struct alog_stats s;

	alog_stats(rig->log, &s);
	return s;
}

static inline void put_many(uint32_t nr, uint32_t bytes)
{
	for (uint32_t i = 0; i < nr; i++)
		ar_put_now(rig, i % AR_KEYS, bytes, false);
}

/* Puts until there is no space. */
static inline void fill_log(void)
{
	uint32_t nr = 0;
	int rc;

	do {
		rc = ar_put(rig, nr % AR_KEYS, 6000, false);
		if (rc == 0)
			nr++;
		else
			ar_settle(rig);
	} while (rc != -ENOSPC && nr < 1000);
	assert_int_equal(rc, -ENOSPC);
}

/* Requests of this kind that are out. */
static inline uint32_t out_of(uint8_t op)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < rig->nr_out; i++)
		nr += rig->out[i].io->op == op;
	return nr;
}

/* Answers one request of this kind, and leaves the others out. */
static inline void answer(uint8_t op)
{
	static struct ar_out others[AR_IOS];
	uint32_t nr = 0, found = AR_IOS;

	for (uint32_t i = 0; i < rig->nr_out; i++)
		if (found == AR_IOS && rig->out[i].io->op == op)
			found = i;
		else
			others[nr++] = rig->out[i];
	assert_in_range(found, 0, AR_IOS - 1);
	rig->out[0] = rig->out[found];
	rig->nr_out = 1;
	assert_true(ar_step(rig));
	memcpy(rig->out, others, nr * sizeof(others[0]));
	rig->nr_out = nr;
}

static inline uint64_t seal_one(uint32_t key)
{
	uint64_t zone;

	ar_put_now(rig, key, 200, false);
	zone = rig->index[key].zone;
	for (uint32_t k = key + 5; k < AR_KEYS; k++) {
		ar_put_now(rig, k, 900, false);
		if (rig->index[k].zone > zone)
			break;
	}
	return zone;
}

#define RULE(test) cmocka_unit_test_teardown(test, end)

#endif
