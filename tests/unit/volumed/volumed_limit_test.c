/* volumed_limit_test - volumes with limits: how many requests go on in which time, whose, and what
 * becomes of those that wait. The clock is the rig's.
 */
#include "xseg/internal.h"

#include "tests/rig/volumed_rig.h"

#define MOST 300				/* requests of a test */

static struct xreq *sent[MOST];

/* Of 4 KiB each, one object after the other. */
static void send_reads(uint32_t id, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		sent[i] = send_io(XSEG_OP_READ, id, (uint64_t)i * 8192, 4096, 0);
}

static uint32_t nr_done(uint32_t nr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++)
		n += answered(sent[i]);
	return n;
}

/* The clock is advanced in small steps, as a timer would. */
static void let_pass(uint64_t ns)
{
	uint64_t end = now + ns;

	while (now < end) {
		now += 50000;
		steps(2);
	}
}

static uint32_t ended_with(uint32_t nr, int64_t result)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++)
		n += result_of(sent[i]) == result;
	return n;
}

static uint64_t info_number(const char *key)
{
	assert_true(admin("volume info vol") > 0);
	return number(key);
}

/* ---- rates ------------------------------------------------------------------------------- */

static void requests_go_on_at_the_rate_of_iops_after_a_burst(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1000") > 0);
	assert_true(says("iops=1000\n") && says("bandwidth_bytes=0\n"));
	assert_true(says("burst_ns=10000000\n"));
	send_reads(id, 200);
	steps(20);
	assert_int_equal(nr_done(200), 11);	/* what 10 ms give, and one */
	for (uint32_t ms = 10; ms <= 180; ms += 10) {
		let_pass(10 * MS);
		assert_in_range(nr_done(200), 11 + ms - 1, 11 + ms + 1);
	}
	let_pass(20 * MS);
	assert_int_equal(ended_with(200, 4096), 200);
}

/* At no time more than one goes on at once, where a look comes often enough. */
static void requests_go_on_one_by_one(void **state)
{
	uint32_t id = create("vol", "64M"), before, after;

	(void)state;
	assert_true(admin("volume set vol iops=1000") > 0);
	send_reads(id, 100);
	steps(20);
	before = nr_done(100);
	while (before < 100) {
		now += 100000;
		steps(3);
		after = nr_done(100);
		assert_true(after - before <= 1);
		before = after;
	}
	assert_int_equal(ended_with(100, 4096), 100);
}

/* A thread that looks late, by less than the burst, takes nothing from the volume. */
static void a_late_look_costs_nothing(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1000") > 0);
	send_reads(id, 200);
	steps(20);
	for (uint32_t i = 0; i < 20; i++) {
		now += 8 * MS;
		steps(4);
	}
	assert_in_range(nr_done(200), 11 + 159, 11 + 161);
	let_pass(40 * MS);
	assert_int_equal(ended_with(200, 4096), 200);
}

static void bytes_go_on_at_the_rate_of_bandwidth(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol bandwidth=4096000 burst=20000000") > 0);
	assert_true(says("iops=0\n") && says("bandwidth_bytes=4096000\n"));
	assert_true(says("burst_ns=20000000\n"));
	send_reads(id, 100);
	steps(20);
	assert_int_equal(nr_done(100), 21);
	let_pass(30 * MS);
	assert_in_range(nr_done(100), 50, 52);
	let_pass(60 * MS);
	assert_int_equal(ended_with(100, 4096), 100);
}

/* Else it would wait for ever: it is more than the burst. */
static void a_request_larger_than_the_burst_goes_on_and_the_next_ones_pay(void **state)
{
	uint32_t id = create("vol", "64M");
	struct xreq *r;

	(void)state;
	assert_true(admin("volume set vol bandwidth=4096000") > 0);
	assert_int_equal(io(XSEG_OP_READ, id, 0, 524288), 524288);	/* 128 ms */
	r = send_io(XSEG_OP_READ, id, 0, 4096, 0);
	let_pass(110 * MS);
	assert_false(answered(r));
	let_pass(10 * MS);
	assert_int_equal(result_of(r), 4096);
}

static void of_two_limits_the_stricter_one_holds(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1000 bandwidth=2048000") > 0);
	send_reads(id, 60);
	steps(20);
	assert_int_equal(nr_done(60), 6);
	let_pass(100 * MS);
	assert_in_range(nr_done(60), 55, 57);
	assert_true(admin("volume set vol bandwidth=1g") > 0);
	let_pass(20 * MS);
	assert_int_equal(ended_with(60, 4096), 60);
}

static void a_split_request_is_one_request(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=100") > 0);
	for (uint32_t i = 0; i < 2; i++)		/* the burst, and one */
		assert_int_equal(io(XSEG_OP_READ, id, (4 << 20) - 4096, 8192), 8192);
	sent[0] = send_io(XSEG_OP_READ, id, (4 << 20) - 4096, 8192, 0);
	let_pass(8 * MS);
	assert_false(answered(sent[0]));
	let_pass(3 * MS);
	assert_int_equal(result_of(sent[0]), 8192);
}

static void discards_have_no_bytes(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol bandwidth=4k") > 0);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(io(XSEG_OP_DISCARD, id, i * 65536, 65536), 65536);
}

static void flushes_and_questions_do_not_wait(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	send_reads(id, 5);
	steps(20);
	assert_int_equal(nr_done(5), 1);
	assert_int_equal(io(XSEG_OP_FLUSH, id, 0, 0), 0);
	assert_int_equal(io(XSEG_OP_INFO, id, 0, 0), 64 << 20);
	assert_int_equal(info_number("waiting="), 4);
	assert_true(admin("volume set vol iops=0") > 0);
	assert_int_equal(ended_with(5, 4096), 5);
}

static void a_volume_without_limits_beside_one_is_not_held(void **state)
{
	uint32_t id = create("vol", "64M"), other = create("other", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	send_reads(id, 3);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(io(XSEG_OP_READ, other, 0, 4096), 4096);
	assert_int_equal(nr_done(3), 1);
	let_pass(2000 * MS);
	assert_int_equal(ended_with(3, 4096), 3);
}

/* ---- clients ----------------------------------------------------------------------------- */

struct other {
	struct xseg_peer *peer;
	struct xport *port;
	uint32_t pages[XSEG_EXTENT_PAGES];
	uint32_t out, done;
};

static void other_open(struct other *o, const char *name)
{
	struct xseg_error err = { "" };
	struct xseg_peer_params params = {
		.name = name, .kind = "client", .nr_ports = 1, .nr_requests = 64 };

	*o = (struct other){ 0 };
	assert_int_equal(xseg_peer_open(seg, &params, &o->peer, &err), 0);
	o->port = xseg_peer_port(o->peer, 0);
	assert_int_equal(xseg_pages_take(o->peer, XSEG_EXTENT_PAGES, o->pages), 0);
}

/* Takes its answers, and has `depth` reads of so many bytes out, unless that is 0. */
static void other_go_on(struct other *o, uint32_t id, uint32_t depth, uint32_t size)
{
	struct xreq *r;

	while (xseg_port_replies(o->port, &r, 1)) {
		assert_int_equal(r->result, r->size);
		xseg_req_free(o->port, r);
		o->out--;
		o->done++;
	}
	for (; o->out < depth; o->out++) {
		r = xseg_req_alloc(o->port);
		r->op = XSEG_OP_READ;
		r->volume = id;
		r->offset = 0;
		r->size = size;
		r->nr_pages = (uint16_t)xseg_req_span(0, size);
		memcpy(r->page, o->pages, r->nr_pages * sizeof(r->page[0]));
		assert_int_equal(
			xseg_req_submit(o->port, r, xseg_peer_find(seg, "volumed")), 0);
	}
	xseg_port_flush(o->port);
}

static void two_clients(uint32_t depth[2], uint32_t size[2], uint32_t ms, uint32_t done[2])
{
	uint32_t id = number("id=");
	struct other o[2];

	other_open(&o[0], "first");
	other_open(&o[1], "second");
	for (uint64_t end = now + ms * MS; now < end; now += 20000) {
		for (uint32_t i = 0; i < 2; i++)
			other_go_on(&o[i], id, depth[i], size[i]);
		steps(3);
	}
	for (uint32_t i = 0; i < 2; i++)
		done[i] = o[i].done;
	assert_true(admin("volume set vol iops=0 bandwidth=0") > 0);
	for (uint32_t n = 0; n < 200; n++, steps(5))
		for (uint32_t i = 0; i < 2; i++)
			other_go_on(&o[i], id, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(o[i].out, 0);
		xseg_peer_close(o[i].peer, XSEG_CLOSE_FREE_ARENA);
	}
}

static void clients_get_equal_parts_whatever_their_depth(void **state)
{
	uint32_t done[2];

	(void)state;
	create("vol", "64M");
	assert_true(admin("volume set vol iops=1000") > 0);
	two_clients((uint32_t[]){ 1, 48 }, (uint32_t[]){ 4096, 4096 }, 500, done);
	assert_in_range(done[0], 220, 280);
	assert_in_range(done[1], 220, 290);
	assert_in_range(done[0] + done[1], 490, 515);
}

static void clients_get_equal_bytes_whatever_their_size(void **state)
{
	uint32_t done[2];

	(void)state;
	create("vol", "64M");
	assert_true(admin("volume set vol bandwidth=64m") > 0);
	two_clients((uint32_t[]){ 2, 32 }, (uint32_t[]){ 65536, 4096 }, 500, done);
	assert_in_range(done[0] * 16, done[1] * 85 / 100, done[1] * 115 / 100);
}

/* ---- changes under way ------------------------------------------------------------------- */

static void limits_are_changed_while_requests_wait(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1 burst=60000000000") > 0);
	send_reads(id, 200);
	steps(20);
	assert_int_equal(nr_done(200), 61);
	/* what was let go on is not paid for at the old rate */
	assert_true(admin("volume set vol iops=1000 burst=0") > 0);
	assert_true(says("burst_ns=10000000\n"));
	let_pass(50 * MS);
	assert_in_range(nr_done(200), 61 + 49, 61 + 63);
	assert_true(admin("volume set vol iops=0") > 0);
	assert_true(says("iops=0\n") && says("burst_ns=0\n"));
	assert_int_equal(ended_with(200, 4096), 200);
	assert_int_equal(info_number("waiting="), 0);
}

static void a_removal_ends_what_waits(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	send_reads(id, 10);
	steps(20);
	assert_true(admin("volume remove vol") > 0);
	steps(100);
	assert_int_equal(nr_done(10), 10);
	assert_int_equal(ended_with(10, -ENOENT), 9);
	assert_int_equal(admin("volume info vol"), -ENOENT);
	id = create("vol", "64M");
	assert_true(says("iops=0\n") && says("waiting=0\n"));
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(io(XSEG_OP_READ, id, 0, 4096), 4096);
}

static void a_shrink_ends_what_waits_beyond_the_new_size(void **state)
{
	uint32_t id = create("vol", "1M");

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	send_reads(id, 64);
	steps(20);
	assert_int_equal(nr_done(64), 1);
	assert_true(admin("volume resize vol size=256k") > 0);
	steps(100);
	assert_int_equal(nr_done(64), 33);
	assert_true(says("iops=1\n"));
	assert_true(admin("volume set vol iops=0") > 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(result_of(sent[i]), i < 32 ? 4096 : -ENXIO);
}

static void a_kill_loses_no_request_that_waits_and_no_limit(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_true(admin("volume set vol iops=100 bandwidth=1g burst=20000000") > 0);
	send_reads(id, 20);
	steps(20);
	assert_int_equal(nr_done(20), 3);
	volumed_restart();
	assert_int_equal(info_number("iops="), 100);
	let_pass(50 * MS);
	assert_in_range(nr_done(20), 10, 12);
	volumed_restart();
	let_pass(200 * MS);
	assert_int_equal(ended_with(20, 4096), 20);
}

/* A write over two objects. The first part is done, the other at the store. */
static struct xreq *begin_split_write(uint32_t id)
{
	struct xreq *w, *rest;
	uint64_t next;

	hold_writes = true;
	w = send_io(XSEG_OP_WRITE, id, 0, 8192, 0);
	while (!held || !held->next)
		step();
	rest = held->next;
	held->next = NULL;
	hold_writes = false;
	peer_port_round(&store->ports[0], now, 32, &next);
	hold_writes = true;
	held = rest;
	steps(5);
	return w;
}

/* A cut of the volume may wait for it (S6 of split.c). The successor gets others first. */
static void what_a_predecessor_has_begun_does_not_wait(void **state)
{
	uint32_t id = create("vol", "64M");
	struct xreq *before[20], *w;

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	for (uint32_t i = 0; i < 20; i++)
		before[i] = xseg_req_alloc(port);
	w = begin_split_write(id);
	for (uint32_t i = 0; i < 20; i++) {
		before[i]->op = XSEG_OP_READ;
		before[i]->volume = id;
		before[i]->size = 4096;
		before[i]->nr_pages = 1;
		before[i]->page[0] = pages[0];
		assert_int_equal(
			xseg_req_submit(port, before[i], xseg_peer_find(seg, "volumed")), 0);
	}
	send_reads(id, 20);
	steps(20);
	assert_int_equal(nr_done(20), 0);
	volumed_close(XSEG_CLOSE_ABANDON);
	hold_writes = false;
	steps(20);
	volumed_open(1, "4M", "64");
	assert_int_equal(result_of(w), 8192);
	assert_true(nr_done(20) <= 1);
	assert_true(admin("volume set vol iops=0") > 0);
	assert_int_equal(ended_with(20, 4096), 20);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(result_of(before[i]), 4096);
}

/* No successor may come. */
static void nothing_waits_in_a_volumed_that_stops(void **state)
{
	uint32_t id = create("vol", "64M");
	uint64_t left;

	(void)state;
	assert_true(admin("volume set vol iops=1") > 0);
	send_reads(id, 20);
	steps(20);
	assert_int_equal(nr_done(20), 1);
	peer_stop(vd);
	assert_false(vd->cls->quiesced(vd, &left));
	steps(5);
	assert_true(vd->cls->quiesced(vd, &left));
	assert_int_equal(ended_with(20, 4096), 20);
	sent[0] = send_io(XSEG_OP_READ, id, 0, 4096, 0);
	assert_int_equal(ended_with(1, 4096), 1);
}

static void a_successor_does_a_set_once_and_answers_it(void **state)
{
	struct xreq *r;
	uint64_t next;

	(void)state;
	create("vol", "64M");
	r = send_admin("volume set vol iops=77", 0);
	hold = true;
	for (uint32_t i = 0; i < 5; i++)
		peer_port_round(&vd->ports[0], now, 32, &next);
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = false;
	steps(5);
	volumed_open(1, "4M", "64");
	assert_true(admin_result(r) > 0);
	assert_true(says("iops=77\n"));
}

static void what_waits_goes_on_by_the_thread_of_another_port(void **state)
{
	uint32_t id[3];

	(void)state;
	id[0] = create("a", "1M");
	id[1] = create("b", "1M");
	id[2] = create("c", "1M");
	assert_true(admin("volume set a iops=1000") > 0);
	assert_true(admin("volume set b iops=1000") > 0);
	assert_true(admin("volume set c iops=1000") > 0);
	for (uint32_t i = 0; i < 90; i++) {
		sent[i] = xseg_req_alloc(port);
		sent[i]->op = XSEG_OP_READ;
		sent[i]->volume = id[i % 3];
		sent[i]->size = 4096;
		sent[i]->nr_pages = 1;
		sent[i]->page[0] = pages[0];
		sent[i]->hash = i * 0x9E3779B97F4A7C15ull;
		assert_int_equal(
			xseg_req_submit(port, sent[i], xseg_peer_find(seg, "volumed")), 0);
	}
	xseg_port_flush(port);
	steps(50);
	assert_int_equal(nr_done(90), 33);
	let_pass(10 * MS);
	assert_in_range(nr_done(90), 60, 66);
	let_pass(20 * MS);
	assert_int_equal(ended_with(90, 4096), 90);
}

/* ---- the command ------------------------------------------------------------------------- */

static void limits_out_of_range_are_refused(void **state)
{
	static const char *const lines[] = {
		"volume set vol iops=10000001", "volume set vol bandwidth=4095",
		"volume set vol bandwidth=2T", "volume set vol iops=1 burst=9999999",
		"volume set vol iops=1 burst=60000000001", "volume set vol burst=20000000",
		"volume set vol iops", "volume set vol iops=x", "volume set vol speed=1",
	};

	(void)state;
	create("vol", "1M");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(admin(lines[i]), -EINVAL);
	assert_int_equal(admin("volume set none iops=1"), -ENOENT);
	assert_int_equal(info_number("iops="), 0);
	nr_notes = 0;
	assert_true(admin("volume set vol") > 0);
	assert_true(admin("volume set vol iops=0") > 0);
	assert_int_equal(nr_notes, 0);		/* nothing to be changed */
}

static void limits_stay_over_a_resize(void **state)
{
	(void)state;
	create("vol", "1M");
	assert_true(admin("volume set vol iops=5") > 0);
	assert_true(admin("volume resize vol size=8M") > 0);
	volumed_restart();
	assert_int_equal(info_number("iops="), 5);
	assert_int_equal(info_number("size_bytes="), 8 << 20);
}

/* ---- reading directly -------------------------------------------------------------------- */

static uint8_t flags_of_read(uint32_t id)
{
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_READ;
	r->flags = XSEG_REQ_LOAN | XSEG_REQ_DIRECT;
	r->volume = id;
	r->size = 4096;
	r->nr_pages = 1;
	r->page[0] = pages[0];
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	assert_int_equal(result_of(r), 4096);
	return notes[nr_notes - 1].flags;
}

static uint64_t door(void)
{
	return atomic_load(&vd->xp->sh->direct);
}

static void a_limited_volume_is_read_by_requests_only(void **state)
{
	uint32_t id = create("vol", "64M"), other = create("other", "64M");
	uint64_t before = door();

	(void)state;
	assert_true(before & 1);
	assert_int_equal(flags_of_read(id), XSEG_REQ_LOAN | XSEG_REQ_DIRECT);
	assert_true(admin("volume set vol iops=1000000") > 0);
	/* what was learned is void, and the others may learn anew */
	assert_int_equal(door(), before + 2);
	assert_int_equal(flags_of_read(id), 0);
	assert_int_equal(flags_of_read(other), XSEG_REQ_LOAN | XSEG_REQ_DIRECT);
	volumed_restart();
	before = door();
	assert_true(before & 1);
	assert_int_equal(flags_of_read(id), 0);
	assert_true(admin("volume set vol iops=0") > 0);
	assert_int_equal(door(), before + 2);
	assert_int_equal(flags_of_read(id), XSEG_REQ_LOAN | XSEG_REQ_DIRECT);
}

/* ---- counters ---------------------------------------------------------------------------- */

static uint64_t counter(const char *key)
{
	struct xseg_stats_view view;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++)
		if (xseg_stats_view(seg, i, &view) && !strcmp(view.kind, "volume"))
			sum += xseg_stats_value(&view, key);
	return sum;
}

static void what_waits_and_the_limits_are_counted(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_int_equal(io(XSEG_OP_READ, id, 0, 4096), 4096);
	assert_true(admin("volume set vol iops=100 bandwidth=1g") > 0);
	assert_int_equal(counter("limit_iops"), 100);
	assert_int_equal(counter("limit_bandwidth_bytes"), 1 << 30);
	send_reads(id, 12);
	steps(20);
	assert_int_equal(counter("waiting"), 10);
	assert_int_equal(counter("waited"), 10);
	assert_int_equal(counter("reads"), 3);	/* what waits has not been done */
	assert_true(admin("volume set vol iops=50") > 0);
	assert_true(admin("volume set vol iops=100") > 0);
	assert_true(counter("waiting") >= 8);
	assert_int_equal(counter("waited"), 10);	/* once each, though limits have changed */
	volumed_restart();
	assert_int_equal(counter("limit_iops"), 100);
	assert_true(admin("volume set vol iops=0 bandwidth=0") > 0);
	assert_int_equal(ended_with(12, 4096), 12);
	assert_int_equal(counter("limit_iops") + counter("limit_bandwidth_bytes"), 0);
	assert_int_equal(counter("waiting"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requests_go_on_at_the_rate_of_iops_after_a_burst),
		T(requests_go_on_one_by_one),
		T(a_late_look_costs_nothing),
		T(bytes_go_on_at_the_rate_of_bandwidth),
		T(a_request_larger_than_the_burst_goes_on_and_the_next_ones_pay),
		T(of_two_limits_the_stricter_one_holds),
		T(a_split_request_is_one_request),
		T(discards_have_no_bytes),
		T(flushes_and_questions_do_not_wait),
		T(a_volume_without_limits_beside_one_is_not_held),
		T(clients_get_equal_parts_whatever_their_depth),
		T(clients_get_equal_bytes_whatever_their_size),
		T(limits_are_changed_while_requests_wait),
		T(a_removal_ends_what_waits),
		T(a_shrink_ends_what_waits_beyond_the_new_size),
		T(a_kill_loses_no_request_that_waits_and_no_limit),
		T_SMALL(what_a_predecessor_has_begun_does_not_wait),
		T(nothing_waits_in_a_volumed_that_stops),
		T(a_successor_does_a_set_once_and_answers_it),
		T_THREADS(what_waits_goes_on_by_the_thread_of_another_port),
		T(limits_out_of_range_are_refused),
		T(limits_stay_over_a_resize),
		T(a_limited_volume_is_read_by_requests_only),
		T(what_waits_and_the_limits_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
