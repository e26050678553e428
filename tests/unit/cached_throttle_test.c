/* cached_throttle_test - how fast the store is, and how writers are slowed to that (peers/cached/throttle.c).
 *
 * Time is simulated: the store of the rig is given the timing of a device, and a client keeps writes in flight.
 */
#include "tests/unit/cached_rig.h"

#define STEP_NS 50000ull

/* The store's device: `gap_ns` between two requests, each takes latency_ns. */
static struct {
	uint64_t gap_ns, latency_ns;
	uint64_t due_ns[8192];			/* by call */
	uint64_t free_ns;
	uint32_t seen;				/* calls that have a due_ns */
} device;

static void device_is(uint32_t iops, uint64_t latency_ns)
{
	device.gap_ns = CRIG_S / iops;
	device.latency_ns = latency_ns;
}

static void up(const char *options, uint32_t iops, uint64_t latency_ns)
{
	crig_up(options);
	crig_hold(true);
	memset(&device, 0, sizeof(device));
	device_is(iops, latency_ns);
}

static void device_step(void)
{
	uint32_t call = crig_held(CRIG_ANY, 0);

	for (; device.seen < crig_nr_calls(); device.seen++) {
		if (device.free_ns < crig.now_ns)
			device.free_ns = crig.now_ns;
		device.free_ns += device.gap_ns;
		device.due_ns[device.seen] = device.free_ns + device.latency_ns;
	}
	for (; call != CRIG_NEVER && device.due_ns[call] <= crig.now_ns; call = crig_held(CRIG_ANY, call))
		crig_answer_only(call);
	crig_settle();
}

static void pass(uint64_t ns)
{
	for (uint64_t end = crig.now_ns + ns; crig.now_ns < end;) {
		crig_pass(STEP_NS);
		device_step();
	}
}

/* ---- the store's rate ---- */

static uint64_t store_rate(void)
{
	return throttle_store_rate(&crig.k->ports[0]);
}

/* One flush, which takes that long. */
static void flush_one(uint64_t ns)
{
	struct crig_io *flush;

	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	flush = crig_flush(0);
	crig_pass(ns);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_hold(false);
	crig_expect(flush, 0);
}

static void the_store_s_rate_is_unknown_until_flushes_took_some_time(void **state)
{
	(void)state;
	crig_up("");
	flush_one(0);
	crig_pass(10 * CRIG_S);
	assert_int_equal(store_rate(), 0);
	flush_one(100 * CRIG_MS);
	assert_int_equal(store_rate(), 2 * B(1) * 10);
}

static void the_store_s_rate_is_the_last_one_known_when_nothing_is_flushed(void **state)
{
	uint64_t rate;

	(void)state;
	crig_up("");
	flush_one(100 * CRIG_MS);
	rate = store_rate();
	assert_int_equal(rate, B(1) * 10);
	crig_pass(3600 * CRIG_S);
	assert_int_equal(store_rate(), rate);
}

static void a_store_that_stalls_is_known_to_be_slow(void **state)
{
	(void)state;
	crig_up("");
	flush_one(100 * CRIG_MS);
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_flush(0);
	crig_pass(CRIG_S);
	assert_in_range(store_rate(), 1, B(1));
	crig_pass(1000 * CRIG_S);
	assert_in_range(store_rate(), 1, 10);
}

/* Writes through, so that there is always something to flush. */
static void write_through_for(uint64_t ns, struct crig_io **io, uint32_t depth)
{
	static uint32_t n;

	for (uint64_t end = crig.now_ns + ns; crig.now_ns < end; pass(STEP_NS))
		for (uint32_t i = 0; i < depth; i++) {
			if (io[i] && !io[i]->done)
				continue;
			if (io[i])
				crig_expect(io[i], B(1));
			io[i] = crig_write("a", B(n++ * 37 % 1024), B(1), 5);
		}
}

static void the_store_s_rate_follows_the_store_within_tenths_of_a_second(void **state)
{
	struct crig_io *io[16] = { NULL };

	(void)state;
	up("policy=write-through", 2000, CRIG_MS);
	write_through_for(500 * CRIG_MS, io, 16);
	assert_in_range(store_rate(), B(1800), B(2100));
	device_is(500, CRIG_MS);
	write_through_for(200 * CRIG_MS, io, 16);
	assert_in_range(store_rate(), B(500), B(1600));
	write_through_for(800 * CRIG_MS, io, 16);
	assert_in_range(store_rate(), B(450), B(700));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(the_store_s_rate_is_unknown_until_flushes_took_some_time),
		CRIG_T(the_store_s_rate_is_the_last_one_known_when_nothing_is_flushed),
		CRIG_T(a_store_that_stalls_is_known_to_be_slow),
		CRIG_T(the_store_s_rate_follows_the_store_within_tenths_of_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
