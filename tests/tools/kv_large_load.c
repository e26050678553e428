/* kv_large_load - large values put and read again and again, as xseg/kv_wire.h has them, by a load
 * that checks itself: for tests/system/kvd_points.sh.
 *
 *      kv_large_load SEGMENT KVD load KEYS STATE OVER
 *      kv_large_load SEGMENT KVD verify STATE
 *
 * Each round takes a key, begins a value, sends its parts, some of them twice, and commits it. Some
 * values are given up instead. Meanwhile a reader holds the version before, and reads it after the
 * commit. Then the new value is read. Each value says its key and a count, so one that is lost,
 * torn or put twice is seen, whatever happens to kvd meanwhile. The load ends when the file OVER is
 * there; STATE has the counts then, and `verify` compares. Exit code 1: something was wrong.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/rig/kv_wire_link.h"
#include "tests/rig/long.h"
#include "tests/rig/xorshift.h"

#define PARTS	   6u				/* of a value, at most */
#define KEYS_MAX   16u
#define REST_US	   20000u			/* after each round */

static uint8_t *record, *data;
static uint32_t piece;
static uint64_t count[KEYS_MAX], nr_puts, nr_again, rng = XORSHIFT_SEED;

static void fail(const char *what, uint32_t key, int64_t rc)
{
	fprintf(stderr, "kv_large_load: key %u: %s: %" PRId64 " (after %" PRIu64 " puts)\n", key,
		what, rc, nr_puts);
	exit(1);
}

static void attach(const char *segment, const char *kvd)
{
	kw_attach(segment, kvd, 16, PARTS + 1);
	piece = kw.piece_bytes;
	record = malloc(XSEG_REQ_BYTES);
	data = malloc(XSEG_REQ_BYTES);
	if (!record || !data)
		fail("no memory", 0, 0);
}

/* ---- values ---- */

static uint64_t length(uint32_t key, uint64_t n)
{
	return (n * 7919 + key * 104729) % (PARTS * (uint64_t)piece - 5000) + 1;
}

static uint32_t part_bytes(uint64_t total, uint32_t i)
{
	uint64_t left = total - (uint64_t)i * piece;

	return left < piece ? (uint32_t)left : piece;
}

static uint32_t nr_parts(uint64_t total)
{
	return (uint32_t)((total + piece - 1) / piece);
}

static void make(uint32_t key, uint64_t n, uint32_t i)
{
	uint64_t x = (uint64_t)key << 40 ^ n << 8 ^ i;

	memset(data, 0, piece);
	for (uint32_t at = 0; at + 8 <= part_bytes(length(key, n), i); at += 8) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(data + at, &x, 8);
	}
}

/* ---- changes ---- */

static struct kw_change named(uint8_t kind, uint32_t key, char name[16])
{
	struct kw_change c = { .kind = kind, .key = name };

	c.key_bytes = (uint32_t)snprintf(name, 16, "large-%u", key);
	return c;
}

static int change(struct kw_change *c, bool fua)
{
	struct xreq *r = xseg_req_alloc(kw.port);
	int64_t rc;

	kw_batch(kw.seg, r, &kw.log, c, 1, fua, kw_slot(PARTS), KW_SLOT_PAGES);
	rc = kw_call(r);
	if (rc >= 0)
		kw_outcomes(kw.seg, r, c, 1);
	xseg_req_free(kw.port, r);
	return rc < 0 ? (int)rc : c->result;
}

/* A kvd that dies before it has answered leaves a drop that its successor does again: it finds no
 * handle then. */
static void drop(uint32_t key, uint64_t handle)
{
	char name[16];
	struct kw_change c = named(KV_DROP, key, name);
	int rc;

	c.handle = handle;
	rc = change(&c, false);
	nr_again += rc == -EBADF;
	if (rc && rc != -EBADF)
		fail("drop", key, rc);
}

static void send_parts(uint32_t key, uint64_t n, uint64_t handle)
{
	uint32_t nr = nr_parts(length(key, n));

	for (uint32_t i = 0; i < nr; i++) {
		struct xreq *r = xseg_req_alloc(kw.port);
		uint32_t bytes = (uint32_t)kv_pages(part_bytes(length(key, n), i)) * KV_PAGE;

		make(key, n, i);
		kw_part(kw.seg, r, &kw.log, handle, (uint64_t)i * piece, bytes, kw_slot(i));
		xseg_req_write_data(kw.seg, r, 0, data, bytes);
		kw_submit(r);
	}
	for (; nr; nr--) {
		struct xreq *r = kw_wait();

		if (r->result != r->size)
			fail("a part", key, r->result);
		xseg_req_free(kw.port, r);
	}
}

/* False: the log was full. */
static bool put(uint32_t key, uint64_t n)
{
	static uint32_t sums[PARTS];
	uint64_t total = length(key, n), handle;
	char name[16];
	struct kw_change c = named(KV_BEGIN, key, name);
	int rc;

	c.total = xorshift_below(&rng, 3) ? total : 0;
	rc = change(&c, false);
	if (rc == -ENOSPC)
		return false;
	if (rc)
		fail("begin", key, rc);
	handle = c.number;
	for (uint32_t times = 1 + xorshift_below(&rng, 4) / 3; times; times--)
		send_parts(key, n, handle);
	if (xorshift_below(&rng, 6) == 0) {
		drop(key, handle);
		return false;
	}
	for (uint32_t i = 0; i < nr_parts(total); i++) {
		make(key, n, i);
		sums[i] = xcrc32c(0, data, part_bytes(total, i));
	}
	c = named(KV_COMMIT, key, name);
	c.condition = count[key] ? KV_IF_PRESENT : KV_IF_ABSENT;
	c.handle = handle;
	c.total = total;
	c.value = sums;
	c.value_bytes = nr_parts(total) * (uint32_t)sizeof(*sums);
	rc = change(&c, xorshift_below(&rng, 4) == 0);
	if (rc)
		fail("commit", key, rc);
	nr_puts++;
	return true;
}

/* ---- reading ---- */

static uint64_t hold(uint32_t key)
{
	char name[16];
	struct kw_change c = named(KV_HOLD, key, name);

	if (change(&c, false))
		fail("hold", key, c.result);
	return c.number;
}

static void check(uint32_t key, uint64_t n, uint64_t handle)
{
	uint64_t total = length(key, n);

	for (uint32_t i = 0; i < nr_parts(total); i++) {
		struct xreq *r = xseg_req_alloc(kw.port);
		uint32_t bytes = part_bytes(total, i);

		kw_query(kw.seg, r, &kw.log,
			&(struct kv_query){ .kind = KV_PIECE,
				.held = handle,
				.offset = (uint64_t)i * piece },
			NULL, kw_slot(PARTS), (uint32_t)kv_pages(bytes));
		if (kw_call(r) < 0)
			fail("a piece", key, r->result);
		xseg_req_read_data(kw.seg, r, 0, record, bytes);
		xseg_req_free(kw.port, r);
		make(key, n, i);
		if (memcmp(record, data, bytes) != 0)
			fail("another value in piece", key, i);
	}
	drop(key, handle);
}

static void load(uint32_t nr, const char *over)
{
	while (access(over, F_OK)) {
		uint32_t key = xorshift_below(&rng, nr);
		uint64_t before = count[key], handle = before ? hold(key) : 0;

		if (put(key, before + 1))
			count[key] = before + 1;
		if (handle)
			check(key, before, handle);
		if (count[key] != before)
			check(key, count[key], hold(key));
		rest_in_short(REST_US);
	}
}

static void state(uint32_t nr, const char *file, bool writes)
{
	FILE *f = fopen(file, writes ? "w" : "r");

	if (!f)
		fail(file, 0, -errno);
	for (uint32_t i = 0; i < nr; i++)
		if (writes)
			fprintf(f, "%" PRIu64 "\n", count[i]);
		else if (fscanf(f, "%" SCNu64, &count[i]) != 1)
			count[i] = 0;
	if (fclose(f))
		fail(file, 0, -errno);
}

int main(int argc, char **argv)
{
	uint32_t nr = argc == 7 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;

	if ((argc != 7 && argc != 5) || nr > KEYS_MAX) {
		fprintf(stderr, "kv_large_load: see the head of tests/tools/kv_large_load.c\n");
		return 2;
	}
	attach(argv[1], argv[2]);
	if (nr) {
		load(nr, argv[6]);
		state(nr, argv[5], true);
	} else {
		state(KEYS_MAX, argv[4], false);
		for (uint32_t i = 0; i < KEYS_MAX; i++)
			if (count[i])
				check(i, count[i], hold(i));
	}
	printf("puts=%" PRIu64 " drops_done_again=%" PRIu64 "\n", nr_puts, nr_again);
	kw_detach();
	return 0;
}
