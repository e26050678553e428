/* memd_test - memd through peer.h, one client and one store in one thread, with a clock that the
 * test moves: the contract of blockers, its model of a device, its losses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "peers/memd/memd_model.h"
#include "tests/rig/blocker_contract.h"
#include "xseg/internal.h"

#define MS UINT64_C(1000000)

static void memd_open(struct rig *r, const char *const *options)
{
	rig_open(r, &memd_class, options, false);
}

/* ---- the contract of blockers ------------------------------------------------------------ */

/* Little memory, so that the random run finds out what a delete or a copy does not give back. */
static void open_empty(struct rig *r, uint32_t ports)
{
	static const char *const one[] = { "memory=2M", NULL };
	static const char *const more[] = { "memory=2M", "threads=3", NULL };

	memd_open(r, ports == 1 ? one : more);
	assert_int_equal(r->peer->nr_ports, ports);
}

/* It is slow from now on, and so is its successor. */
static void hold(struct rig *r, uint32_t n)
{
	static const char *const slow[] = { "memory=2M", "latency=1s", NULL };

	(void)n;
	assert_int_equal(rig_set(r, "latency", "1s"), 0);
	r->options = slow;
	rig_settle(r);
}

static const struct contract contract = {
	.open = open_empty,
	.close = rig_close,
	.hold = hold,
	.thin = true,
	.align = 4096,
	.nr_random = 4000,
	.nr_torn = 4000,
};

/* The test's store. T has it opened with 8 MiB, O opens it itself. */
static struct rig g;

static int setup(void **state)
{
	static const char *const options[] = { "memory=8M", NULL };

	(void)state;
	memd_open(&g, options);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&g);
	return 0;
}

/* ---- data -------------------------------------------------------------------------------- */

static void delete_frees_the_pages_and_forgets_the_name(void **state)
{
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
	rig_status_has(&g, "used_bytes=0\n");
	rig_status_has(&g, "objects=0\n");
}

static void ranges_beyond_an_object_are_refused(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 4 * MIB - 4096, 4097, 0x11, 0), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", UINT64_MAX - 100, 4096), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "", 0, 0), -EPROTO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
}

static void a_full_store_answers_enospc_and_changes_nothing(void **state)
{
	(void)state;
	memd_open(&g, OPTIONS("memory=1M"));
	assert_int_equal(rig_fill(&g, "a", 0, MIB - 8192, 0x11, 0), MIB - 8192);
	assert_int_equal(rig_fill(&g, "a", MIB - 12288, 16384, 0x22, 0), -ENOSPC);
	assert_true(rig_holds(&g, "a", 0, MIB - 8192, 0x11));
	assert_true(rig_holds(&g, "a", MIB - 8192, 12288, 0));
	assert_int_equal(rig_fill(&g, "a", MIB - 8192, 8192, 0x22, 0), 8192);
	assert_int_equal(rig_fill(&g, "a", 0, MIB, 0x33, 0), MIB);
	assert_int_equal(rig_fill(&g, "b", 0, 1, 0x33, 0), -ENOSPC);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "b", 0, 0), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 4096, 4096), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 1, 0x33, 0), 1);
}

/* ---- surviving --------------------------------------------------------------------------- */

static void what_was_begun_has_the_room_that_it_had(void **state)
{
	struct rig_io *waits, *begun;
	uint8_t data[8192];

	(void)state;
	memd_open(&g, OPTIONS("memory=1M", "latency=1h"));
	memset(data, 0x22, sizeof(data));
	assert_int_equal(rig_fill(&g, "a", 0, MIB - 8192, 0x11, 0), MIB - 8192);
	waits = rig_send(&g, XSEG_OP_WRITE, "b", 0, 4096, data, 0);
	begun = rig_send(&g, XSEG_OP_WRITE, "c", 0, 8192, data, 0);
	rig_step(&g);
	assert_true(waits->r->index < begun->r->index);
	xseg_req_start(g.peer->ports[0].port, view_held(g.seg, begun->r->index));
	rig_restart(&g);
	assert_int_equal(rig_wait(&g, begun), 8192);
	assert_false(waits->done);
	assert_int_equal(rig_wait(&g, waits), -ENOSPC);
	assert_true(rig_holds(&g, "c", 0, 8192, 0x22));
}

static void volatile_objects_are_gone_with_the_process(void **state)
{
	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "volatile=yes"));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	rig_restart(&g);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
}

/* memd has stopped: its arena, for somebody who writes into it. */
static void *arena_take(uint64_t *bytes, struct xseg_peer **peer)
{
	struct xseg_peer_params params = { .name = "memd", .kind = "memd", .nr_ports = 1 };
	void *base = NULL;
	bool fresh;

	*bytes = 2 * MIB;
	rig_stop(&g);
	assert_int_equal(xseg_peer_open(g.seg, &params, peer, NULL), 0);
	assert_int_equal(xseg_arena_open(*peer, bytes, &base, &fresh, NULL), 0);
	return base;
}

static void arena_is_refused(struct xseg_peer *peer)
{
	xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(rig_start(&g), -EPROTO);
}

static void an_arena_of_something_else_is_refused(void **state)
{
	struct xseg_peer *peer;
	uint64_t bytes;

	(void)state;
	memd_open(&g, OPTIONS("memory=1M"));
	memset(arena_take(&bytes, &peer), 0x5a, 4096);
	arena_is_refused(peer);
}

static void an_arena_in_which_two_objects_have_one_name_is_refused(void **state)
{
	char one[XSEG_TARGET_MAX + sizeof(uint64_t)] = "", *at;	/* with the name's hash */
	struct xseg_peer *peer;
	uint64_t bytes;
	void *base;

	(void)state;
	memd_open(&g, OPTIONS("memory=1M"));
	rig_fill(&g, "object-one", 0, 4096, 0x11, 0);
	rig_fill(&g, "object-two", 0, 4096, 0x22, 0);
	rig_restart(&g);
	assert_true(rig_holds(&g, "object-two", 0, 4096, 0x22));
	base = arena_take(&bytes, &peer);
	at = memmem(base, bytes, "object-one", sizeof("object-one"));
	assert_non_null(at);
	memcpy(one, at, sizeof(one));
	at = memmem(base, bytes, "object-two", sizeof("object-two"));
	assert_non_null(at);
	memcpy(at, one, sizeof(one));
	arena_is_refused(peer);
}

/* As if the predecessor had been killed when it had its arena and nothing in it. */
static void an_arena_in_which_nothing_was_made_yet_is_made_anew(void **state)
{
	struct xseg_peer_params params = { .name = "memd", .kind = "memd", .nr_ports = 1 };
	struct xseg_peer *peer;
	uint64_t bytes;
	void *base;
	bool fresh;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M"));
	rig_stop(&g);
	assert_int_equal(xseg_peer_open(g.seg, &params, &peer, NULL), 0);
	assert_int_equal(xseg_arena_free(peer, NULL), 0);
	bytes = 2 * MIB;
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, NULL), 0);
	assert_true(fresh);
	xseg_peer_close(peer, XSEG_CLOSE_ABANDON);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(rig_fill(&g, "a", 7 * MIB / 2, MIB / 2, 0x11, 0), MIB / 2);
	assert_true(rig_holds(&g, "a", 7 * MIB / 2, MIB / 2, 0x11));
}

/* ---- time -------------------------------------------------------------------------------- */

static void latency_and_jitter_are_kept(void **state)
{
	struct rig_io *io;
	uint64_t since, least = UINT64_MAX, most = 0;
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
}

/* Keeps 8 requests in flight until `nr` are done; how long that took. */
static uint64_t run_load(uint32_t nr, uint32_t size)
{
	struct rig_io *io[8] = { 0 };
	uint64_t since = g.now_ns;
	uint32_t sent = 0, i;
	char name[8];

	for (i = 0; i < nr + 8; i++) {
		if (io[i % 8])
			assert_int_equal(rig_wait(&g, io[i % 8]), size);
		io[i % 8] = NULL;
		snprintf(name, sizeof(name), "o%u", i % 8);
		if (sent++ < nr)
			io[i % 8] = rig_send(&g, XSEG_OP_READ, name, 0, size, NULL, 0);
	}
	return g.now_ns - since;
}

static void sustained_iops_and_bandwidth_are_exactly_the_limits(void **state)
{
	(void)state;
	assert_int_equal(rig_set(&g, "iops", "3000"), 0);
	assert_int_equal(run_load(3000, 4096), 1000 * MS);
	assert_int_equal(rig_set(&g, "iops", "0"), 0);
	assert_int_equal(rig_set(&g, "bandwidth", "30M/s"), 0);
	assert_int_equal(run_load(120, 256 * KIB), 1000 * MS);
	assert_int_equal(rig_set(&g, "bandwidth", "0"), 0);
	assert_int_equal(run_load(100, 4096), 0);
}

/* ---- order (D2) -------------------------------------------------------------------------- */

static void an_overlapping_request_waits_for_those_before_it(void **state)
{
	uint8_t data[4096], got[4096];
	struct rig_io *w1, *w2, *read, *aside;

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
}

static void a_delete_waits_for_all_before_and_holds_all_behind_it(void **state)
{
	uint8_t data[4096] = { 1 };
	struct rig_io *write, *gone, *again;

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
}

static void data_changes_when_a_request_is_completed(void **state)
{
	uint8_t data[4096] = { 1 };
	struct rig_io *io;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "latency=1ms"));
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	rig_settle(&g);
	rig_status_has(&g, "used_bytes=0\n");
	rig_status_has(&g, "pending=1\n");
	assert_int_equal(rig_wait(&g, io), 4096);
	rig_status_has(&g, "used_bytes=4096\n");
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
		"write:1:stall=61m",
		"write:1:stall=5124095h",
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
	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "fail=write:1@3:EIO"));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x33, 0), -EIO);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x44, 0), 4096);
}

static void faults_change_live_and_can_be_cleared(void **state)
{
	uint8_t buf[4096];

	(void)state;
	assert_int_equal(rig_set(&g, "fail", "any:100%:ENOSPC"), 0);
	assert_int_equal(rig_read(&g, "a", 0, buf, 4096), -ENOSPC);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -ENOSPC);
	assert_int_equal(rig_set(&g, "fail", "any:nonsense:EIO"), -EINVAL);
	assert_int_equal(rig_set(&g, "fail", ""), 0);
	assert_int_equal(rig_read(&g, "a", 0, buf, 4096), 4096);
}

static void a_probability_is_kept_and_repeats_from_its_seed(void **state)
{
	uint32_t nr[2] = { 0, 0 }, run, i;
	uint64_t sum[2] = { 0, 0 };
	uint8_t buf[512];

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

	(void)state;
	assert_int_equal(rig_set(&g, "fail", "any:1:short"), 0);
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x11, 0), 4096);
	assert_int_equal(rig_read(&g, "a", 0, buf, 1536), 512);
	assert_int_equal(rig_set(&g, "fail", ""), 0);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	assert_true(rig_holds(&g, "a", 4096, 4096, 0));
}

static void a_stall_delays_and_others_pass(void **state)
{
	struct rig_io *slow, *fast;
	uint64_t since;

	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "fail=read:1@1:stall=2s"));
	since = g.now_ns;
	slow = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
	fast = rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0);
	rig_settle(&g);
	assert_true(fast->done && !slow->done);
	assert_int_equal(rig_wait(&g, slow), 4096);
	assert_int_equal(slow->done_ns - since, 2000 * MS);
}

/* ---- loss of power ----------------------------------------------------------------------- */

/* What a loss of power would leave of a page: one byte all over. */
static bool durable_is(const char *name, uint32_t nr, uint8_t fill)
{
	static const uint8_t zeroes[XSEG_PAGE_SIZE];
	const uint8_t *data = memd_durable_page(g.peer, name, nr);

	if (!data)
		data = zeroes;
	return data[0] == fill && !memcmp(data, data + 1, XSEG_PAGE_SIZE - 1);
}

static void power_loss_takes_what_no_flush_covers(void **state)
{
	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "kept", 0, 8192, 0x11, 0);
	rig_fill(&g, "deleted", 0, 8192, 0x12, 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	rig_fill(&g, "kept", 4096, 8192, 0x22, 0);
	rig_fill(&g, "new", 0, 8192, 0x33, 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "deleted", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "deleted", 0, 0), -ENOENT);
	assert_true(durable_is("kept", 1, 0x11) && durable_is("kept", 2, 0));
	assert_true(durable_is("new", 0, 0) && durable_is("never", 0, 0) &&
		    durable_is("deleted", 0, 0x12));
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "kept", 0, 8192, 0x11));
	assert_true(rig_holds(&g, "kept", 8192, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "kept", 0, 0), 8192);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "new", 0, 0), -ENOENT);
	assert_true(rig_holds(&g, "deleted", 0, 8192, 0x12));
}

static void power_loss_leaves_what_a_fua_write_wrote(void **state)
{
	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "a", 0, 4096, 0x11, 0);
	rig_fill(&g, "a", 512, 512, 0x22, XSEG_REQ_FUA);
	rig_fill(&g, "a", 8192, 4096, 0x33, XSEG_REQ_FUA);
	rig_fill(&g, "a", 16384, 4096, 0x44, 0);
	assert_true(durable_is("a", 2, 0x33) && durable_is("a", 4, 0));
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "a", 0, 512, 0));
	assert_true(rig_holds(&g, "a", 512, 512, 0x22));
	assert_true(rig_holds(&g, "a", 1024, 7168, 0));
	assert_true(rig_holds(&g, "a", 8192, 4096, 0x33));
	assert_true(rig_holds(&g, "a", 16384, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 12288);
}

static void a_fua_discard_of_an_object_that_is_deleted_outlives_power_loss(void **state)
{
	(void)state;
	memd_open(&g, OPTIONS("memory=8M", "track_flush=yes"));
	rig_fill(&g, "a", 0, 8192, 0x11, XSEG_REQ_FUA);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(
		rig_wait(&g, rig_send(&g, XSEG_OP_DISCARD, "a", 0, 4096, NULL, XSEG_REQ_FUA)),
		4096);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	memd_power_loss(g.peer);
	assert_true(rig_holds(&g, "a", 0, 4096, 0));
	assert_true(rig_holds(&g, "a", 4096, 4096, 0x11));
}

static void an_object_deleted_and_made_again_is_one_object_after_power_loss(void **state)
{
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
}

/* An object that a loss of power could bring back keeps its entry, and no longer. */
static void what_was_deleted_takes_no_room_once_a_flush_covers_that(void **state)
{
	char name[16];

	(void)state;
	memd_open(&g, OPTIONS("memory=2M", "track_flush=yes"));
	for (unsigned i = 0; i < 2 * 2 * MIB / XSEG_PAGE_SIZE; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		assert_int_equal(rig_fill(&g, name, 0, 4096, 0x11, 0), 4096);
		assert_int_equal(rig_op(&g, XSEG_OP_DELETE, name, 0, 0), 0);
		assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define O(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		O(delete_frees_the_pages_and_forgets_the_name),
		T(ranges_beyond_an_object_are_refused),
		O(a_full_store_answers_enospc_and_changes_nothing),
		O(what_was_begun_has_the_room_that_it_had),
		O(volatile_objects_are_gone_with_the_process),
		O(an_arena_of_something_else_is_refused),
		O(an_arena_in_which_two_objects_have_one_name_is_refused),
		O(an_arena_in_which_nothing_was_made_yet_is_made_anew),
		O(latency_and_jitter_are_kept),
		T(sustained_iops_and_bandwidth_are_exactly_the_limits),
		O(an_overlapping_request_waits_for_those_before_it),
		O(a_delete_waits_for_all_before_and_holds_all_behind_it),
		O(data_changes_when_a_request_is_completed),
		cmocka_unit_test(faults_of_wrong_form_are_refused),
		O(the_nth_write_fails_and_changes_nothing),
		T(faults_change_live_and_can_be_cleared),
		cmocka_unit_test(a_probability_is_kept_and_repeats_from_its_seed),
		T(a_short_write_does_the_first_half),
		O(a_stall_delays_and_others_pass),
		O(power_loss_takes_what_no_flush_covers),
		O(power_loss_leaves_what_a_fua_write_wrote),
		O(a_fua_discard_of_an_object_that_is_deleted_outlives_power_loss),
		O(an_object_deleted_and_made_again_is_one_object_after_power_loss),
		O(what_was_deleted_takes_no_room_once_a_flush_covers_that),
	};

	return contract_run(&contract) + cmocka_run_group_tests(tests, NULL, NULL);
}
