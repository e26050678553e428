/* memd_test - memd through peer.h, one client and one store in one thread, with a clock that the
 * test moves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "peers/memd/memd_model.h"
#include "tests/unit/blocker_rig.h"

#define KIB 1024u
#define MIB (1024u * 1024)
#define MS  UINT64_C(1000000)

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void memd_open(struct rig *g, const char *const *options)
{
	rig_open(g, &memd_class, options, false);
}

/* ---- data -------------------------------------------------------------------------------- */

static void missing_objects_and_holes_read_as_zeroes(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_true(rig_holds(&g, "none", 12345, 100000, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "a", 64 * KIB, 4 * KIB, 0x11, 0), 4 * KIB);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
	assert_true(rig_holds(&g, "a", 64 * KIB, 4 * KIB, 0x11));
	assert_true(rig_holds(&g, "a", 68 * KIB, 4 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 68 * KIB);
	rig_close(&g);
}

static void odd_offsets_and_sizes_keep_their_neighbours(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 0, 20000, 0x11, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 4095, 8194, 0x22, 0), 8194);
	assert_true(rig_holds(&g, "a", 0, 4095, 0x11));
	assert_true(rig_holds(&g, "a", 4095, 8194, 0x22));
	assert_true(rig_holds(&g, "a", 4095 + 8194, 20000 - 4095 - 8194, 0x11));
	assert_true(rig_holds(&g, "a", 20000, 5000, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 4 * MIB - 1, 1, 0x33, 0), 1);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 4 * MIB);
	rig_close(&g);
}

static void the_largest_request_at_an_odd_offset_is_served(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 5000, MIB, 0x44, 0), MIB);
	assert_true(rig_holds(&g, "a", 5000, MIB, 0x44));
	rig_close(&g);
}

static void discard_and_write_zeroes_read_as_zeroes(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 1000, 30000), 30000);
	assert_true(rig_holds(&g, "a", 0, 1000, 0x11));
	assert_true(rig_holds(&g, "a", 1000, 30000, 0));
	assert_true(rig_holds(&g, "a", 31000, 64 * KIB - 31000, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 60 * KIB, 8 * KIB), 8 * KIB);
	assert_true(rig_holds(&g, "a", 60 * KIB, 8 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 68 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "none", 0, 4096), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	rig_close(&g);
}

static void delete_frees_the_pages_and_forgets_the_name(void **state)
{
	struct rig g;
	char text[200];
	int i;

	(void)state;
	memd_open(&g, OPTIONS("memory=4M"));
	for (i = 0; i < 10; i++) {
		assert_int_equal(rig_fill(&g, "a", 0, MIB, 0x11, 0), MIB);
		assert_int_equal(rig_fill(&g, "a", MIB, MIB, 0x11, 0), MIB);
		assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
		assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
		assert_true(rig_holds(&g, "a", 0, MIB, 0));
	}
	assert_true(rig_admin(&g, "status", text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "used_bytes=0\n"));
	assert_non_null(strstr(text, "objects=0\n"));
	rig_close(&g);
}

static void copy_takes_the_same_range_of_another_object(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 4 * KIB, 8 * KIB, 0x11, 0), 8 * KIB);
	assert_int_equal(rig_fill(&g, "b", 0, 64 * KIB, 0x22, 0), 64 * KIB);
	assert_int_equal(rig_copy(&g, "a", "b", 2000, 20000), 20000);
	assert_true(rig_holds(&g, "b", 0, 2000, 0x22));
	assert_true(rig_holds(&g, "b", 2000, 2096, 0));
	assert_true(rig_holds(&g, "b", 4096, 8192, 0x11));
	assert_true(rig_holds(&g, "b", 12288, 22000 - 12288, 0));
	assert_true(rig_holds(&g, "b", 22000, 64 * KIB - 22000, 0x22));
	assert_int_equal(rig_copy(&g, "none", "b", 0, 4096), -ENOENT);
	assert_int_equal(rig_copy(&g, "", "b", 0, 4096), -EOPNOTSUPP);
	assert_int_equal(rig_copy(&g, "b", "b", 0, 4096), 4096);
	rig_close(&g);
}

static void ranges_beyond_an_object_are_refused(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 4 * MIB - 4096, 4097, 0x11, 0), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", UINT64_MAX - 100, 4096), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "", 0, 0), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	rig_close(&g);
}

static void a_full_store_answers_enospc_and_changes_nothing(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=1M"));
	assert_int_equal(rig_fill(&g, "a", 0, MIB - 8192, 0x11, 0), MIB - 8192);
	assert_int_equal(rig_fill(&g, "a", MIB - 12288, 16384, 0x22, 0), -ENOSPC);
	assert_true(rig_holds(&g, "a", 0, MIB - 8192, 0x11));
	assert_true(rig_holds(&g, "a", MIB - 8192, 12288, 0));
	assert_int_equal(rig_fill(&g, "a", MIB - 8192, 8192, 0x22, 0), 8192);
	assert_int_equal(rig_fill(&g, "a", 0, MIB, 0x33, 0), MIB);
	assert_int_equal(rig_fill(&g, "b", 0, 1, 0x33, 0), -ENOSPC);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 4096, 4096), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 1, 0x33, 0), 1);
	rig_close(&g);
}

/* Every op against a plain array; the seed is printed. */
static void random_ops_agree_with_an_array(void **state)
{
	static uint8_t model[3][256 * KIB];
	const char *names[] = { "x", "y", "z" };
	unsigned seed = (unsigned)time(NULL), i, o, p, off, len;
	uint8_t *buf = malloc(256 * KIB);
	struct rig g;

	(void)state;
	print_message("seed %u\n", seed);
	memset(model, 0, sizeof(model));
	memd_open(&g, OPTIONS("memory=2M"));
	for (i = 0; i < 4000; i++) {
		o = (unsigned)rand_r(&seed) % 3;
		p = (unsigned)rand_r(&seed) % 3;
		off = (unsigned)rand_r(&seed) % (200 * KIB);
		len = 1 + (unsigned)rand_r(&seed) % (56 * KIB);
		if (rand_r(&seed) % 2) {
			off &= ~4095u;
			len = (len + 4095) & ~4095u;
		}
		switch (rand_r(&seed) % 6) {
		case 0:
		case 1:
			memset(buf, (int)(i & 0xff), len);
			assert_int_equal(rig_write(&g, names[o], off, buf, len, 0), len);
			memcpy(model[o] + off, buf, len);
			break;
		case 2:
			assert_int_equal(rig_op(&g, i & 1 ? XSEG_OP_DISCARD : XSEG_OP_WRITE_ZEROES,
						 names[o], off, len),
				len);
			memset(model[o] + off, 0, len);
			break;
		case 3:
			if (rig_copy(&g, names[p], names[o], off, len) == (int64_t)len)
				memmove(model[o] + off, model[p] + off, len);
			break;
		case 4:
			if (rand_r(&seed) % 8 == 0) {
				rig_op(&g, XSEG_OP_DELETE, names[o], 0, 0);
				memset(model[o], 0, sizeof(model[o]));
			} else if (rand_r(&seed) % 8 == 0) {
				rig_restart(&g);
			}
			break;
		default:
			assert_int_equal(rig_read(&g, names[o], off, buf, len), len);
			assert_memory_equal(buf, model[o] + off, len);
		}
	}
	free(buf);
	rig_close(&g);
}

/* ---- surviving --------------------------------------------------------------------------- */

static void objects_survive_a_kill_and_a_stop(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_fill(&g, "a", 100, 100000, 0x11, 0), 100000);
	rig_restart(&g);
	assert_true(rig_holds(&g, "a", 100, 100000, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 100100);
	rig_stop(&g);
	assert_int_equal(rig_start(&g), 0);
	assert_true(rig_holds(&g, "a", 100, 100000, 0x11));
	rig_close(&g);
}

static void volatile_objects_are_gone_with_the_process(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "volatile=yes"));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	rig_restart(&g);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	rig_close(&g);
}

static void requests_of_a_dead_predecessor_are_done_again_in_order(void **state)
{
	struct rig_io *first, *second, *gone;
	uint8_t data[4096];
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1s"));
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x55, 0), 4096);
	memset(data, 0x11, sizeof(data));
	first = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	second = rig_send(&g, XSEG_OP_READ, "b", 0, 4096, NULL, 0);
	gone = rig_send(&g, XSEG_OP_DELETE, "none", 0, 0, NULL, 0);
	rig_settle(&g);
	assert_false(first->done);
	rig_restart(&g);
	assert_int_equal(rig_wait(&g, first), 4096);
	assert_int_equal(rig_wait(&g, second), 4096);
	assert_int_equal(rig_wait(&g, gone), 0);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	rig_close(&g);
}

static void an_arena_of_something_else_is_refused(void **state)
{
	struct xseg_peer_params params = { .name = "memd", .kind = "memd", .nr_ports = 1 };
	struct xseg_peer *peer;
	uint64_t bytes = 2 * MIB;
	struct rig g;
	void *base;
	bool fresh;

	(void)state;
	memd_open(&g, OPTIONS("memory=1M"));
	rig_stop(&g);
	assert_int_equal(xseg_peer_open(g.seg, &params, &peer, NULL), 0);
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, NULL), 0);
	memset(base, 0x5a, 4096);
	xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(rig_start(&g), -EPROTO);
	rig_close(&g);
}

/* ---- time -------------------------------------------------------------------------------- */

static void latency_and_jitter_are_kept(void **state)
{
	struct rig_io *io;
	uint64_t since, least = UINT64_MAX, most = 0;
	struct rig g;
	int i;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1ms", "jitter=500us", "seed=7"));
	for (i = 0; i < 200; i++) {
		since = g.now_ns;
		io = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
		assert_int_equal(rig_wait(&g, io), 4096);
		least = io->done_ns - since < least ? io->done_ns - since : least;
		most = io->done_ns - since > most ? io->done_ns - since : most;
	}
	assert_in_range(least, MS, MS + MS / 20);
	assert_in_range(most, MS + MS / 2 - MS / 20, MS + MS / 2);
	rig_close(&g);
}

/* Keeps 8 requests in flight until `nr` are done; how long that took. */
static uint64_t run_load(struct rig *g, uint32_t nr, uint32_t size)
{
	struct rig_io *io[8] = { 0 };
	uint64_t since = g->now_ns;
	uint32_t sent = 0, i;
	char name[8];

	for (i = 0; i < nr + 8; i++) {
		if (io[i % 8])
			assert_int_equal(rig_wait(g, io[i % 8]), size);
		io[i % 8] = NULL;
		snprintf(name, sizeof(name), "o%u", i % 8);
		if (sent++ < nr)
			io[i % 8] = rig_send(g, XSEG_OP_READ, name, 0, size, NULL, 0);
	}
	return g->now_ns - since;
}

static void sustained_iops_and_bandwidth_are_exactly_the_limits(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_set(&g, "iops", "3000"), 0);
	assert_int_equal(run_load(&g, 3000, 4096), 1000 * MS);
	assert_int_equal(rig_set(&g, "iops", "0"), 0);
	assert_int_equal(rig_set(&g, "bandwidth", "30M/s"), 0);
	assert_int_equal(run_load(&g, 120, 256 * KIB), 1000 * MS);
	assert_int_equal(rig_set(&g, "bandwidth", "0"), 0);
	assert_int_equal(run_load(&g, 100, 4096), 0);
	rig_close(&g);
}

/* ---- order (D2) -------------------------------------------------------------------------- */

static void overlapping_requests_go_in_order_of_arrival(void **state)
{
	uint8_t data[4096], got[4096];
	struct rig_io *w1, *w2, *read, *aside;
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1ms"));
	memset(data, 0x11, sizeof(data));
	w1 = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	memset(data, 0x22, sizeof(data));
	w2 = rig_send(&g, XSEG_OP_WRITE, "a", 512, 512, data, 0);
	read = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
	aside = rig_send(&g, XSEG_OP_READ, "a", 8192, 4096, NULL, 0);
	rig_settle(&g);
	rig_advance(&g, MS);
	rig_settle(&g);
	assert_true(w1->done && aside->done && !w2->done && !read->done);
	rig_advance(&g, MS);
	rig_settle(&g);
	assert_true(w2->done && !read->done);
	assert_int_equal(rig_wait(&g, read), 4096);
	rig_data(&g, read, got, 4096);
	assert_int_equal(got[511], 0x11);
	assert_int_equal(got[512], 0x22);
	assert_int_equal(got[1024], 0x11);
	rig_close(&g);
}

static void a_delete_waits_for_all_before_and_holds_all_behind_it(void **state)
{
	uint8_t data[4096] = { 1 };
	struct rig_io *write, *gone, *again;
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1ms"));
	write = rig_send(&g, XSEG_OP_WRITE, "a", MIB, 4096, data, 0);
	gone = rig_send(&g, XSEG_OP_DELETE, "a", 0, 0, NULL, 0);
	again = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	rig_settle(&g);
	rig_advance(&g, MS);
	rig_settle(&g);
	assert_true(write->done && !gone->done);
	rig_advance(&g, MS);
	rig_settle(&g);
	assert_true(gone->done && !again->done);
	assert_int_equal(gone->result, 0);
	assert_int_equal(rig_wait(&g, again), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 4096);
	rig_close(&g);
}

static void data_changes_when_a_request_is_completed(void **state)
{
	uint8_t data[4096] = { 1 };
	struct rig_io *io;
	char text[200];
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1ms"));
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	rig_settle(&g);
	assert_true(rig_admin(&g, "status", text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "used_bytes=0\n"));
	assert_non_null(strstr(text, "pending=1\n"));
	assert_int_equal(rig_wait(&g, io), 4096);
	assert_true(rig_admin(&g, "status", text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "used_bytes=4096\n"));
	rig_close(&g);
}

/* ---- faults ------------------------------------------------------------------------------ */

static void faults_of_wrong_form_are_refused(void **state)
{
	static const char *const wrong[] = {
		"write",
		"write:0.1",
		"wrote:0.1:EIO",
		"write:2:EIO",
		"write:-1:EIO",
		"write:x:EIO",
		"write:1:EXYZ",
		"write:1:5",
		"write:1@0:EIO",
		"write:1@x:EIO",
		"write:1:stall=",
		"write:1:stall=1parsec",
		"admin:1:EIO",
		":1:EIO",
	};
	struct memd_fault f;
	struct xseg_error err;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(memd_fault_parse(wrong[i], &f, &err), -EINVAL);
	assert_int_equal(memd_fault_parse("any:50%@3:ENOSPC", &f, &err), 0);
	assert_int_equal(f.op, MEMD_OP_ANY);
	assert_int_equal(f.nth, 3);
	assert_int_equal(f.chance, UINT64_C(1) << 31);
	assert_int_equal(f.error, -ENOSPC);
}

static void the_nth_write_fails_and_changes_nothing(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "fail=write:1@3:EIO"));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x33, 0), -EIO);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x44, 0), 4096);
	rig_close(&g);
}

static void faults_change_live_and_can_be_cleared(void **state)
{
	uint8_t buf[4096];
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_set(&g, "fail", "any:100%:ENOSPC"), 0);
	assert_int_equal(rig_read(&g, "a", 0, buf, 4096), -ENOSPC);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -ENOSPC);
	assert_int_equal(rig_set(&g, "fail", "any:nonsense:EIO"), -EINVAL);
	assert_int_equal(rig_set(&g, "fail", ""), 0);
	assert_int_equal(rig_read(&g, "a", 0, buf, 4096), 4096);
	rig_close(&g);
}

static void a_probability_is_kept_and_repeats_from_its_seed(void **state)
{
	uint32_t nr[2] = { 0, 0 }, run, i;
	uint64_t sum[2] = { 0, 0 };
	uint8_t buf[512];
	struct rig g;

	(void)state;
	for (run = 0; run < 2; run++) {
		memd_open(&g, OPTIONS("memory=8M", "fail=read:0.25:EIO", "seed=42"));
		for (i = 0; i < 2000; i++)
			if (rig_read(&g, "a", 0, buf, 512) == -EIO) {
				nr[run]++;
				sum[run] += i;
			}
		rig_close(&g);
	}
	assert_in_range(nr[0], 430, 570);
	assert_int_equal(nr[0], nr[1]);
	assert_int_equal(sum[0], sum[1]);
}

static void a_short_write_does_the_first_half(void **state)
{
	uint8_t buf[8192];
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	assert_int_equal(rig_set(&g, "fail", "any:1:short"), 0);
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x11, 0), 4096);
	assert_int_equal(rig_read(&g, "a", 0, buf, 1536), 512);
	assert_int_equal(rig_set(&g, "fail", ""), 0);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	assert_true(rig_holds(&g, "a", 4096, 4096, 0));
	rig_close(&g);
}

static void a_stall_delays_and_others_pass(void **state)
{
	struct rig_io *slow, *fast;
	uint64_t since;
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "fail=read:1@1:stall=2s"));
	since = g.now_ns;
	slow = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
	fast = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
	rig_settle(&g);
	assert_true(fast->done && !slow->done);
	assert_int_equal(rig_wait(&g, slow), 4096);
	assert_int_equal(slow->done_ns - since, 2000 * MS);
	rig_close(&g);
}

/* ---- loss of power ----------------------------------------------------------------------- */

static void power_loss_takes_what_no_flush_covers(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "kept", 0, 8192, 0x11, 0);
	rig_fill(&g, "deleted", 0, 8192, 0x12, 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	rig_fill(&g, "kept", 4096, 8192, 0x22, 0);
	rig_fill(&g, "new", 0, 8192, 0x33, 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "deleted", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "deleted", 0, 0), -ENOENT);
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "kept", 0, 8192, 0x11));
	assert_true(rig_holds(&g, "kept", 8192, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "kept", 0, 0), 8192);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "new", 0, 0), -ENOENT);
	assert_true(rig_holds(&g, "deleted", 0, 8192, 0x12));
	rig_close(&g);
}

static void power_loss_leaves_what_a_fua_write_wrote(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "a", 0, 4096, 0x11, 0);
	rig_fill(&g, "a", 512, 512, 0x22, XSEG_REQ_FUA);
	rig_fill(&g, "a", 8192, 4096, 0x33, XSEG_REQ_FUA);
	rig_fill(&g, "a", 16384, 4096, 0x44, 0);
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "a", 0, 512, 0));
	assert_true(rig_holds(&g, "a", 512, 512, 0x22));
	assert_true(rig_holds(&g, "a", 1024, 7168, 0));
	assert_true(rig_holds(&g, "a", 8192, 4096, 0x33));
	assert_true(rig_holds(&g, "a", 16384, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 12288);
	rig_close(&g);
}

static void an_object_deleted_and_made_again_is_one_object_after_power_loss(void **state)
{
	struct rig g;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "a", 0, 8192, 0x11, XSEG_REQ_FUA);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	rig_fill(&g, "a", 0, 4096, 0x22, XSEG_REQ_FUA);
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	memd_power_loss(g.peer);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	rig_close(&g);
}

/* ---- several ports ----------------------------------------------------------------------- */

static void several_ports_serve_one_store(void **state)
{
	char name[8];
	struct rig g;
	int i;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "threads=3"));
	for (i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		assert_int_equal(rig_fill(&g, name, 0, 4096, (uint8_t)(i + 1), 0), 4096);
	}
	rig_restart(&g);
	for (i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		assert_true(rig_holds(&g, name, 0, 4096, (uint8_t)(i + 1)));
	}
	assert_int_equal(rig_copy(&g, "o1", "o2", 0, 4096), 4096);
	assert_true(rig_holds(&g, "o2", 0, 4096, 2));
	rig_close(&g);
}

/* Writes, copies and reads of the same few pages from three threads; every 4 KiB read is of one
 * write. */
static void ports_on_threads_do_not_tear_pages(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct rig_io *io[16] = { 0 };
	uint8_t data[4096], got[4096];
	unsigned seed = 1, i, k;
	struct rig g;

	(void)state;
	rig_open(&g, &memd_class, OPTIONS("memory=8M", "threads=3"), true);
	rig_threads_start(&g);
	for (i = 0; i < 4000; i++) {
		if (io[i % 16] && rig_wait(&g, io[i % 16]) == 4096 &&
			io[i % 16]->r->op == XSEG_OP_READ) {
			rig_data(&g, io[i % 16], got, sizeof(got));
			for (k = 1; k < sizeof(got); k++)
				assert_int_equal(got[k], got[0]);
		}
		memset(data, (int)(i & 0xff), sizeof(data));
		if (i % 50 == 0)
			rig_copy(&g, names[i / 50 % 6], names[i / 300 % 6], 0, 8192);
		if (i % 70 == 0)
			rig_op(&g, XSEG_OP_DELETE, names[i / 70 % 6], 0, 0);
		k = (unsigned)rand_r(&seed);
		io[i % 16] = rig_send(&g, k & 1 ? XSEG_OP_WRITE : XSEG_OP_READ, names[k / 4 % 6],
			k & 2 ? 4096 : 0, 4096, k & 1 ? data : NULL, 0);
	}
	for (i = 0; i < 16; i++)
		rig_wait(&g, io[i]);
	rig_threads_stop(&g);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_objects_and_holes_read_as_zeroes),
		cmocka_unit_test(odd_offsets_and_sizes_keep_their_neighbours),
		cmocka_unit_test(the_largest_request_at_an_odd_offset_is_served),
		cmocka_unit_test(discard_and_write_zeroes_read_as_zeroes),
		cmocka_unit_test(delete_frees_the_pages_and_forgets_the_name),
		cmocka_unit_test(copy_takes_the_same_range_of_another_object),
		cmocka_unit_test(ranges_beyond_an_object_are_refused),
		cmocka_unit_test(a_full_store_answers_enospc_and_changes_nothing),
		cmocka_unit_test(random_ops_agree_with_an_array),
		cmocka_unit_test(objects_survive_a_kill_and_a_stop),
		cmocka_unit_test(volatile_objects_are_gone_with_the_process),
		cmocka_unit_test(requests_of_a_dead_predecessor_are_done_again_in_order),
		cmocka_unit_test(an_arena_of_something_else_is_refused),
		cmocka_unit_test(latency_and_jitter_are_kept),
		cmocka_unit_test(sustained_iops_and_bandwidth_are_exactly_the_limits),
		cmocka_unit_test(overlapping_requests_go_in_order_of_arrival),
		cmocka_unit_test(a_delete_waits_for_all_before_and_holds_all_behind_it),
		cmocka_unit_test(data_changes_when_a_request_is_completed),
		cmocka_unit_test(faults_of_wrong_form_are_refused),
		cmocka_unit_test(the_nth_write_fails_and_changes_nothing),
		cmocka_unit_test(faults_change_live_and_can_be_cleared),
		cmocka_unit_test(a_probability_is_kept_and_repeats_from_its_seed),
		cmocka_unit_test(a_short_write_does_the_first_half),
		cmocka_unit_test(a_stall_delays_and_others_pass),
		cmocka_unit_test(power_loss_takes_what_no_flush_covers),
		cmocka_unit_test(power_loss_leaves_what_a_fua_write_wrote),
		cmocka_unit_test(an_object_deleted_and_made_again_is_one_object_after_power_loss),
		cmocka_unit_test(several_ports_serve_one_store),
		cmocka_unit_test(ports_on_threads_do_not_tear_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
