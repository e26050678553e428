/* kv_faults_test - the library for stores of values when kvd, or its data, is not as it should be:
 * a damaged value is an error and never "not there", answers that make no sense are refused, and
 * kvd may be away (xseg/kv.h). */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rig/kv_rig.h"
#include "xseg/xseg.h"

static uint8_t out[1 << 20], in[1 << 20];

static void set_fault(struct kvrig *g, enum kv_fault fault)
{
	atomic_store(&g->model->fault, fault);
}

static struct xseg_kv_io get_of(const char *key)
{
	return (struct xseg_kv_io){ .op = XSEG_KV_GET,
		.item = { .key = key, .key_bytes = (uint32_t)strlen(key), .value = in,
			.value_bytes = sizeof(in) } };
}

static void begin(struct kvrig *g)
{
	memset(out, 0x5a, sizeof(out));
	assert_int_equal(kvrig_put(g, "a", out, 5000), 0);
	memset(out, 0x77, sizeof(out));
	assert_int_equal(kvrig_put(g, "b", out, 5000), 0);
	assert_int_equal(kvrig_get(g, "b", in, sizeof(in)), 5000);
}

/* ---- records that do not verify ---------------------------------------------------------- */

/* Each of these is right once kvd has looked itself. */
static void a_record_that_does_not_verify_is_asked_for_again(void **state)
{
	static const enum kv_fault faults[] = { KVF_VALUE, KVF_HEADER, KVF_KEY };
	struct kvrig *g = *state;

	begin(g);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t looks = g->model->looks;

		set_fault(g, faults[i]);
		memset(in, 0, 5000);
		assert_int_equal(kvrig_get(g, "b", in, sizeof(in)), 5000);
		assert_memory_equal(in, out, 5000);
		assert_int_equal(g->model->looks, looks + 1);
	}
}

static void a_damaged_value_is_an_error_and_not_absent(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("b");

	begin(g);
	set_fault(g, KVF_VALUE_ALWAYS);
	assert_int_equal(xseg_kv_run(g->q, &io), -EIO);
	io.flags = XSEG_KV_UNCHECKED;		/* the caller does not want to know */
	assert_int_equal(xseg_kv_run(g->q, &io), 5000);
	set_fault(g, KVF_BEYOND);
	assert_int_equal(xseg_kv_run(g->q, &io), -EIO);
	set_fault(g, KVF_EIO);
	assert_int_equal(xseg_kv_run(g->q, &io), -EIO);
	set_fault(g, KVF_NONE);
	assert_int_equal(xseg_kv_run(g->q, &io), 5000);
}

static void a_loan_of_a_damaged_value_is_refused(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("b");

	begin(g);
	io.flags = XSEG_KV_LOAN;
	io.item.value = NULL;
	set_fault(g, KVF_VALUE_ALWAYS);
	assert_int_equal(xseg_kv_run(g->q, &io), -EIO);
	xseg_kv_release(g->q, &io);
	set_fault(g, KVF_NONE);
	assert_int_equal(xseg_kv_run(g->q, &io), 5000);
	xseg_kv_release(g->q, &io);
}

static void a_value_that_grows_for_ever_is_given_up(void **state)
{
	struct kvrig *g = *state;
	int64_t rc;

	begin(g);
	set_fault(g, KVF_GROWS);
	rc = kvrig_get(g, "b", in, sizeof(in));
	assert_true(rc == -EAGAIN || rc == -EPROTO);
	set_fault(g, KVF_SHORT);
	assert_int_equal(kvrig_get(g, "b", in, sizeof(in)), -EPROTO);
	set_fault(g, KVF_NONE);
	assert_int_equal(kvrig_get(g, "b", in, sizeof(in)), 5000);
}

/* ---- answers that make no sense ---------------------------------------------------------- */

static void an_outcome_that_was_not_told_is_an_error(void **state)
{
	struct kvrig *g = *state;

	set_fault(g, KVF_UNTOLD);
	assert_int_equal(kvrig_put(g, "a", "1", 1), -EPROTO);
}

static void a_scan_that_makes_no_sense_is_refused(void **state)
{
	static const enum kv_fault faults[] = { KVF_SCAN_NR, KVF_SCAN_KEY, KVF_SCAN_BYTES };
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_SCAN, .item = { .value = in, .value_bytes = 8192 } };
	struct xseg_kv_entry e;

	begin(g);
	for (unsigned i = 0; i < 3; i++) {
		size_t at = 0;

		set_fault(g, faults[i]);
		assert_int_equal(xseg_kv_run(g->q, &io), -EPROTO);
		assert_int_equal(xseg_kv_next(&io, &at, &e), 0);
	}
}

static void a_backup_that_makes_no_sense_is_refused(void **state)
{
	static const enum kv_fault faults[] = { KVF_SCAN_NR, KVF_SCAN_KEY, KVF_SCAN_BYTES,
		KVF_VALUE };
	struct kvrig *g = *state;
	struct xseg_kv_io io = { .op = XSEG_KV_BACKUP,
		.item = { .value = in, .value_bytes = sizeof(in) } };
	struct xseg_kv_record rec;

	begin(g);
	for (unsigned i = 0; i < 4; i++) {
		size_t at = 0;

		set_fault(g, faults[i]);
		assert_int_equal(xseg_kv_run(g->q, &io), -EPROTO);
		assert_int_equal(xseg_kv_next_record(&io, &at, &rec), 0);
	}
}

static void operations_that_cannot_be_are_never_sent(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("a");

	io.flags = XSEG_KV_LOAN;		/* and a value */
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.flags = XSEG_KV_FORCE;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.flags = 0;
	io.op = XSEG_KV_NR_OPS;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.op = XSEG_KV_PUT;
	io.item.condition = 4;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.item.condition = 0;
	io.item.value = NULL;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	io.op = XSEG_KV_FLUSH;
	io.flags = XSEG_KV_FORCE;
	assert_int_equal(xseg_kv_submit(g->q, &io), -EINVAL);
	assert_int_equal(g->model->gets + g->model->changes + g->model->flushes, 0);
}

/* ---- kvd is away ------------------------------------------------------------------------- */

static void an_operation_waits_for_a_kvd_that_is_stopped_and_started(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("b"), *done;

	begin(g);
	kvrig_stop_kvd(g);
	assert_int_equal(xseg_kv_submit(g->q, &io), 0);
	assert_int_equal(xseg_kv_wait(g->q, &done, 1, KVRIG_SECOND / 10), 0);
	kvrig_start_kvd(g);
	assert_int_equal(xseg_kv_wait(g->q, &done, 1, 20 * KVRIG_SECOND), 1);
	assert_int_equal(io.result, 5000);
}

static void a_kvd_that_stays_away_is_an_error_that_stays(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io[8], *done[8];
	struct xseg_kv_info info;
	struct xseg_error err;
	uint32_t nr = 0;

	kvrig_reopen(g, KVRIG_SECOND / 5);
	begin(g);
	kvrig_stop_kvd(g);
	for (unsigned i = 0; i < 8; i++) {	/* twice as many as there are requests */
		io[i] = get_of("b");
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
	}
	while (nr < 8)
		nr += xseg_kv_wait(g->q, done, 8, 20 * KVRIG_SECOND);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(io[i].result, -ENOTCONN);
	assert_int_equal(xseg_kv_submit(g->q, &io[0]), -ENOTCONN);
	assert_int_equal(xseg_kv_get_info(g->kv, &info), -ENOTCONN);
	assert_int_equal(xseg_kv_look(g->kv, &err), -ENOTCONN);
	assert_non_null(strstr(err.text, "does not run; start it with"));
	assert_int_equal(xseg_kv_open(&(struct xseg_kv_params){ .attached = g->seg }, &g->kv, &err),
		-ENOTCONN);
	kvrig_start_kvd(g);
	assert_int_equal(xseg_kv_look(g->kv, &err), 0);
	assert_int_equal(xseg_kv_submit(g->q, &io[0]), -ENOTCONN);
	kvrig_reopen(g, 0);
	assert_int_equal(kvrig_get(g, "b", in, sizeof(in)), 5000);
}

static void another_log_is_stale(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_info info;

	begin(g);
	assert_int_equal(xseg_kv_get_info(g->kv, &info), 0);
	assert_int_equal(info.keys, 2);
	assert_string_equal(info.kvd, "values");
	set_fault(g, KVF_ESTALE);
	assert_int_equal(xseg_kv_get_info(g->kv, &info), -ESTALE);
}

static void what_is_out_when_a_queue_is_destroyed_is_given_back_later(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io[3];

	begin(g);
	set_fault(g, KVF_SILENT);
	for (unsigned i = 0; i < 3; i++) {
		io[i] = get_of("b");
		assert_int_equal(xseg_kv_submit(g->q, &io[i]), 0);
	}
	xseg_kv_kick(g->q);
	while (g->model->held < 3)
		usleep(100);
	xseg_kv_queue_destroy(g->q);
	g->q = NULL;				/* the teardown sees that all is free again */
}

static void an_event_loop_is_told(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("b"), *done;
	struct pollfd fd = { .events = POLLIN };

	begin(g);
	assert_int_equal(xseg_kv_arm(g->q), -EBADF);
	fd.fd = xseg_kv_fd(g->q);
	assert_true(fd.fd >= 0);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(xseg_kv_submit(g->q, &io), 0);
		while (xseg_kv_poll(g->q, &done, 1) == 0)
			if (xseg_kv_arm(g->q) == 0)
				assert_int_equal(poll(&fd, 1, 20000), 1);
		assert_int_equal(io.result, 5000);
	}
}

static void a_child_has_no_part_of_a_store(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_io io = get_of("b"), *done;
	struct xseg_kv_info info;
	int status;
	pid_t pid;

	begin(g);
	set_fault(g, KVF_SILENT);
	assert_int_equal(xseg_kv_submit(g->q, &io), 0);
	xseg_kv_kick(g->q);
	while (g->model->held < 1)
		usleep(100);
	pid = fork();
	if (pid == 0) {
		bool right = xseg_kv_poll(g->q, &done, 1) == 1 && io.result == -ENOTCONN &&
			     xseg_kv_submit(g->q, &io) == -ENOTCONN &&
			     xseg_kv_get_info(g->kv, &info) == -ENOTCONN &&
			     xseg_kv_fd(g->q) == -ENOTCONN;

		xseg_kv_queue_destroy(g->q);
		xseg_kv_close(g->kv);
		_exit(right ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	set_fault(g, KVF_NONE);
	assert_int_equal(xseg_kv_wait(g->q, &done, 1, 20 * KVRIG_SECOND), 1);
	assert_int_equal(io.result, 5000);
}

static void a_store_that_is_not_there_is_told(void **state)
{
	struct kvrig *g = *state;
	struct xseg_kv_queue_params params = { .depth = 2000 };
	struct xseg_kv_queue *q;
	struct xseg_kv *kv;
	struct xseg_error err;

	assert_int_equal(xseg_kv_open(&(struct xseg_kv_params){ .attached = g->seg,
					      .kvd = "other" }, &kv, &err), -ENOENT);
	assert_non_null(strstr(err.text, "has no kvd called other"));
	assert_int_equal(xseg_kv_open(
		&(struct xseg_kv_params){ .attached = g->seg, .kvd = "a/b" }, &kv, &err), -EINVAL);
	assert_int_equal(xseg_kv_open(&(struct xseg_kv_params){ 0 }, &kv, &err), -EINVAL);
	assert_int_equal(xseg_kv_queue_create(g->kv, &params, &q, &err), -EINVAL);
	params = (struct xseg_kv_queue_params){ .depth = 8, .room_bytes = 4096 };
	assert_int_equal(xseg_kv_queue_create(g->kv, &params, &q, &err), -EINVAL);
	params = (struct xseg_kv_queue_params){ .depth = 64, .room_bytes = 1 << 20 };
	assert_true(xseg_kv_queue_create(g->kv, &params, &q, &err) < 0);
	xseg_kv_queue_destroy(NULL);
	xseg_kv_close(NULL);
}

static void a_queue_takes_as_much_memory_as_it_says(void **state)
{
	static const struct xseg_kv_queue_params params[] = {
		{ 0 }, { .depth = 1, .room_bytes = 8192 }, { .depth = 3, .room_bytes = 1 << 20 },
		{ .depth = 8, .room_bytes = 8193, .large_rooms = 2 },
	};
	struct kvrig *g = *state;
	struct xseg_kv_queue *q;
	struct xseg_error err;

	for (unsigned i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		struct xseg_info before, after;

		xseg_get_info(g->seg, &before);
		assert_int_equal(xseg_kv_queue_create(g->kv, &params[i], &q, &err), 0);
		xseg_get_info(g->seg, &after);
		assert_int_equal((uint64_t)(before.free_extents - after.free_extents) *
				XSEG_EXTENT_SIZE, xseg_kv_queue_memory(&params[i]));
		xseg_kv_queue_destroy(q);
	}
	assert_int_equal(xseg_kv_queue_memory(NULL), xseg_kv_queue_memory(&params[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST(a_record_that_does_not_verify_is_asked_for_again),
		KV_TEST(a_damaged_value_is_an_error_and_not_absent),
		KV_TEST(a_loan_of_a_damaged_value_is_refused),
		KV_TEST(a_value_that_grows_for_ever_is_given_up),
		KV_TEST(an_outcome_that_was_not_told_is_an_error),
		KV_TEST(a_scan_that_makes_no_sense_is_refused),
		KV_TEST(a_backup_that_makes_no_sense_is_refused),
		KV_TEST(operations_that_cannot_be_are_never_sent),
		KV_TEST(an_operation_waits_for_a_kvd_that_is_stopped_and_started),
		KV_TEST(a_kvd_that_stays_away_is_an_error_that_stays),
		KV_TEST(another_log_is_stale),
		KV_TEST(what_is_out_when_a_queue_is_destroyed_is_given_back_later),
		KV_TEST(an_event_loop_is_told),
		KV_TEST(a_child_has_no_part_of_a_store),
		KV_TEST(a_store_that_is_not_there_is_told),
		KV_TEST(a_queue_takes_as_much_memory_as_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
