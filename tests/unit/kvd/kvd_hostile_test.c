/* kvd_hostile_test - whatever a client writes into its requests, kvd answers them, and the values
 * of others stay as they are.
 *
 * Requests are made as they should be, and then bytes of their pages and fields are changed at
 * random. SEED=N runs one seed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rig/kvd_rig.h"
#include "tests/rig/xorshift.h"

#define REQUESTS 3000u

static uint64_t random_state, seed;

static uint32_t rnd(uint32_t below)
{
	return xorshift_below(&random_state, below);
}

static uint64_t handle;				/* the last that was given */

static void make_query(struct xreq *r)
{
	static const uint8_t kinds[] = { KV_GET, KV_EXISTS, KV_SCAN, KV_PIECE, KV_INFO, KV_BACKUP };
	struct kv_query q = { .kind = kinds[rnd(sizeof(kinds))], .flags = (uint8_t)rnd(3),
		.key_bytes = 4, .zone = rnd(9), .place = rnd(99) * 8, .cursor = rnd(3),
		.held = rnd(3) ? handle : rnd(3), .offset = rnd(4) * KV_PAGE };

	kw_query(kr.seg, r, &kr.log, &q, "evil", kr_slot(0), 1 + rnd(3));
}

static void make_batch(struct xreq *r)
{
	static const char *const keys[] = { "evil", "evil2", "evil3" };
	char value[300];
	struct kw_change c[3];
	uint32_t nr = 1 + rnd(3);

	memset(value, 'e', sizeof(value));
	for (uint32_t i = 0; i < nr; i++)
		c[i] = (struct kw_change){ .kind = (uint8_t)(1 + rnd(KV_NR_CHANGES - 1)),
			.condition = (uint8_t)rnd(4), .key = keys[i],
			.key_bytes = (uint32_t)strlen(keys[i]), .value = value,
			.value_bytes = rnd(sizeof(value)), .expiry = rnd(2) * rnd(UINT32_MAX),
			.handle = rnd(9) ? handle : rnd(99999), .total = rnd(3) * rnd(3 << 20) };
	if (rnd(3) == 0)			/* one that may be done */
		c[0] = (struct kw_change){ .kind = KV_COMMIT, .key = keys[0], .key_bytes = 4,
			.value = value, .value_bytes = 4, .handle = handle, .total = 1 + rnd(99) };
	assert_true(kw_batch(kr.seg, r, &kr.log, c, nr, rnd(9) == 0, kr_slot(0), KR_PAGES) > 0);
}

static void make_part(struct xreq *r)
{
	kw_part(kr.seg, r, &kr.log, rnd(9) ? handle : rnd(9999), (rnd(3) << 18) * rnd(9),
		KV_PAGE * (1 + rnd(70)), kr_slot(0));
}

/* What the answer of a change says: a handle of BEGIN or HOLD. */
static void learn(struct xreq *r)
{
	struct kv_change c;

	if (r->op != XSEG_OP_WRITE || r->result < (int64_t)(sizeof(struct kv_batch) + sizeof(c)))
		return;
	xseg_req_read_data(kr.seg, r, sizeof(struct kv_batch), &c, sizeof(c));
	if (!c.result && c.number && (c.kind == KV_BEGIN || c.kind == KV_HOLD))
		handle = c.number;
}

/* The value that was there before is the same; a log that evicts may have dropped it. */
static bool is_good(bool evicts)
{
	return kr_has("good", "value") || (evicts && kr_has("good", NULL));
}

static void spoil(struct xreq *r)
{
	uint32_t pages = r->nr_pages, bytes = pages * KV_PAGE;

	for (uint32_t n = rnd(4); n; n--) {
		uint32_t at = rnd(3) ? r->op == XSEG_OP_READ ? r->size + rnd(80) : rnd(400)
				     : rnd(bytes);
		uint8_t b = (uint8_t)rnd(256);

		if (at < bytes)
			xseg_req_write_data(kr.seg, r, at, &b, 1);
	}
	switch (rnd(12)) {
	case 0: r->size = rnd(XSEG_REQ_BYTES + 1); break;
	case 1: r->nr_pages = (uint16_t)rnd(pages + 1); break;
	case 2: r->offset = rnd(9000); break;
	case 3: r->flags = (uint8_t)rnd(16); break;
	case 4: r->op = (uint8_t)(rnd(2) ? XSEG_OP_READ : XSEG_OP_WRITE); break;
	case 5: r->volume ^= 1u << rnd(32); break;
	case 6: r->size = r->size / KV_PAGE * KV_PAGE; break;
	default: break;
	}
	if (r->op == XSEG_OP_WRITE)
		r->flags &= (uint8_t) ~(XSEG_REQ_LOAN | XSEG_REQ_DIRECT);
}

static void one_seed(uint64_t s)
{
	struct xreq *r;

	seed = s;
	random_state = s * 0x9e3779b97f4a7c15ull + 7;
	kr_begin("");
	kr_start(s % 2 ? "" : "full=evict");
	assert_int_equal(kr_put("good", "value"), 0);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		r = xseg_req_alloc(kr.port);
		assert_non_null(r);
		switch (rnd(5)) {
		case 0:
		case 1:
			make_query(r);
			break;
		case 2:
			make_part(r);
			break;
		default:
			make_batch(r);
		}
		spoil(r);
		kr_call(r);
		learn(r);
		xseg_req_drop_loans(kr.port, r);
		xseg_req_free(kr.port, r);
		if (i % 500 == 499) {
			kr_kill();
			kr_start(s % 2 ? "" : "full=evict");
			assert_true(is_good(s % 2 == 0));
		}
	}
	kr_end();
}

static void hostile_requests_are_answered_and_harm_nothing(void **state)
{
	const char *one = getenv("SEED");
	uint64_t from = one ? strtoull(one, NULL, 10) : 1;
	uint64_t nr = one ? 1 : getenv("LONG") && *getenv("LONG") ? 200 : 6;

	(void)state;
	for (uint64_t s = from; s < from + nr; s++) {
		print_message("seed %" PRIu64 "\n", s);
		one_seed(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_requests_are_answered_and_harm_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
