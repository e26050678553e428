/* cached_kill_test - cached is killed at each of its steps. Its successor completes the request,
 * and keeps all other data.
 *
 * The linker leads the calls by which cached changes the segment through here (--wrap, see the
 * Makefile). A scene is run once for each of them, and cached dies there. That call is the last one
 * that it makes, or the first one that it does not make. A long test does so with the successor,
 * too. tests/sim/cut.c kills at random.
 *
 * The scene acts on buckets 1 and 2 of "a", which has four buckets with the data OLD.
 */
#include "tests/rig/cached_rig.h"
#include "tests/rig/long.h"
#include "tests/rig/wrap.h"

#include "xseg/internal.h"

#define OLD	   5u
#define NEW	   6u
#define STEPS_MAX  500u
#define NEVER	   UINT32_MAX
#define IDLE_MAX   8u

/* ---- death ---- */

static struct {
	bool armed;				/* cached runs, and is to die */
	uint32_t left;				/* points that it passes before */
	jmp_buf to;
} death;

static void point(void)
{
	if (!death.armed || death.left--)
		return;
	death.armed = false;
	longjmp(death.to, 1);
}

/* It takes lists of parameters for products. */
/* clang-format off */
WRAP_VOID(xseg_req_start, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_apply, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_answer, (struct xport *port, struct xreq *r, int64_t result), (port, r, result))
WRAP_VOID(xseg_req_lend, (struct xport *port, struct xreq *r, uint32_t i, uint32_t page),
	(port, r, i, page))
WRAP_VOID(xseg_req_free, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_page_owner_set, (struct xseg *seg, uint32_t page, uint64_t owner),
	(seg, page, owner))
WRAP_VOID(bucket_set, (struct cport *ps, struct object *o, uint32_t b, uint64_t word),
	(ps, o, b, word))
WRAP_VOID(bucket_set_at,
	(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word),
	(ps, o, b, slot, word))
WRAP_VOID(bucket_leave, (struct cport *ps, struct object *o, uint32_t b, enum bucket_state to),
	(ps, o, b, to))
WRAP(int, xseg_req_submit, (struct xport *port, struct xreq *r, uint32_t peer), (port, r, peer))
WRAP(bool, xseg_req_exchange,
	(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page), (seg, r, i, page))
WRAP(bool, xseg_page_owner_swap,
	(struct xseg *seg, uint32_t page, uint64_t from, uint64_t to), (seg, page, from, to))
/* clang-format on */

/* One step of cached. False: it died. */
static bool step(bool (*what)(void), uint32_t *left, bool *any)
{
	if (setjmp(death.to))
		return false;
	death.left = *left;
	death.armed = true;
	*any |= what();
	death.armed = false;
	*left = death.left;
	return true;
}

static bool poll(void)
{
	crig_step_poll();
	return false;
}

/* As crig_settle(). Returns whether cached died, after it passed so many points. */
static bool dies_after(uint32_t left)
{
	for (uint32_t idle = 0; idle < IDLE_MAX; idle++) {
		bool any = false;

		if (!step(crig_step_request, &left, &any) || !step(crig_step_reply, &left, &any) ||
			!step(poll, &left, &any))
			return true;
		any |= crig_step_store();
		any |= crig_client_step();
		if (any)
			idle = 0;
	}
	return false;
}

/* ---- scenes ---- */

struct scene {
	const char *options;
	struct crig_io *(*send)(void);
	int64_t result;
	unsigned seed;				/* that its buckets have at the end */
	void (*after)(struct crig_io *io);	/* NULL: nothing more is looked at */
};

/* R3: a successor takes a request that is AT cached for one that has changed nothing. */
static void check_started(const struct crig_io *io)
{
	uint64_t place = atomic_load(&crig.seg->reqs[io->r->index].place);

	if (place_state(place) != XSEG_REQ_AT || io->r->op != XSEG_OP_WRITE)
		return;
	for (uint32_t b = 1; b < 3; b++) {
		uint64_t w = crig_slot("a", b);

		if (bucket_is_dirty(slot_state(w)) && slot_has_page(w) &&
			crig_bytes_are(
				xseg_page(crig.seg, slot_page(w)), B(b), CRIG_PAGE, NEW))
			fail_msg("bucket %u has data of a request that is not STARTED", b);
	}
}

static void check_data(unsigned seed)
{
	crig_expect_data("a", B(1), B(2), seed);
	if (seed == 0)
		return;
	crig_expect_data("a", 0, B(1), OLD);
	crig_expect_data("a", B(3), B(1), OLD);
}

/* Cached dies after so many points. False: all was done before. */
static bool dies(const struct scene *s, const struct crig_io *io, uint32_t left)
{
	if (!dies_after(left))
		return false;
	check_started(io);
	crig_kill();
	assert_int_equal(crig_open(s->options), 0);
	return true;
}

static void check_end(const struct scene *s, struct crig_io *io)
{
	if (s->after)
		s->after(io);
	check_data(s->seed);
	crig_expect(crig_write("b", 0, B(100), 8), B(100));	/* takes pages that are free */
	check_data(s->seed);
	crig_expect(io, s->result);
	crig_expect(crig_flush(0), 0);
	assert_true(s->seed == 0 || crig_stable("a", B(1), B(2), s->seed));
	check_data(s->seed);
}

/* Cached dies after `first` points, and its successor after `second` ones. Returns how many of them
 * died. */
static uint32_t deaths(const struct scene *s, uint32_t first, uint32_t second)
{
	struct crig_io *io;
	uint32_t nr;

	crig_up(s->options);
	crig_expect(crig_write("a", 0, B(4), OLD), B(4));
	io = s->send();
	nr = dies(s, io, first);
	if (nr)
		nr += dies(s, io, second);
	crig_settle();
	if (!io->done || io->result != s->result)
		fail_msg("killed after %u and %u points: answered %d (%lld)", first, second,
			io->done, (long long)io->result);
	check_end(s, io);
	assert_int_equal(crig_down(NULL), 0);
	return nr;
}

static void dies_at_each_step(const struct scene *s)
{
	uint32_t first = 0, second;

	for (; deaths(s, first, NEVER); first++) {
		for (second = 0; is_long() && deaths(s, first, second) == 2; second++)
			assert_true(second < STEPS_MAX);
		assert_true(first < STEPS_MAX);
	}
	assert_true(first > 4);			/* it could die somewhere */
}

/* ---- writes ---- */

static struct crig_io *send_write(void)
{
	/* its thread has pages at hand: it goes the short way */
	crig_expect(crig_write("b", 0, B(8), 1), B(8));
	crig_expect(crig_write("b", 0, B(8), 2), B(8));
	return crig_send(XSEG_OP_WRITE, "a", B(1), B(2), 0, NEW);
}

static void a_write_is_done_as_a_whole(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_write, B(2), NEW, NULL });
}

static struct crig_io *send_edges(void)
{
	crig_store_fill("c", 0, B(4), OLD);
	return crig_send(XSEG_OP_WRITE, "c", 512, B(2), 0, NEW);
}

static void edges_are_what_the_store_has(struct crig_io *io)
{
	(void)io;
	crig_expect_data("c", 0, 512, OLD);
	crig_expect_data("c", 512, B(2), NEW);
	crig_expect_data("c", B(2) + 512, B(1), OLD);
}

static void a_write_that_loads_its_edges_is_done_as_a_whole(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){
		"dirty_age=1h", send_edges, B(2), OLD, edges_are_what_the_store_has });
}

static struct crig_io *send_fua(void)
{
	return crig_send(XSEG_OP_WRITE, "a", B(1), B(2), XSEG_REQ_FUA, NEW);
}

static void is_stable(struct crig_io *io)
{
	(void)io;
	assert_true(crig_stable("a", B(1), B(2), NEW));
}

static void a_write_with_fua_is_answered_when_it_is_stable(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_fua, B(2), NEW, is_stable });
}

static void is_stored(struct crig_io *io)
{
	(void)io;
	assert_true(crig_stored("a", B(1), B(2), NEW));
}

static void under_write_through_it_is_answered_when_the_store_has_it(void **state)
{
	(void)state;
	dies_at_each_step(
		&(struct scene){ "policy=write-through", send_write, B(2), NEW, is_stored });
}

static void so_it_is_under_write_around(void **state)
{
	(void)state;
	dies_at_each_step(
		&(struct scene){ "policy=write-around", send_write, B(2), NEW, is_stored });
}

/* ---- writes that give their pages ---- */

/* One that was lent two pages to write in. */
static struct crig_io *lent_two(void)
{
	struct crig_io *io = crig_send_give(NULL, "a", B(1), B(2), 0, OLD);

	crig_settle();
	crig_send_give(io, "a", B(1), B(2), 0, OLD);
	crig_settle();
	assert_true(io->done);
	assert_int_equal(nr_gifts(cport_at(crig.k, 0)), 2);
	return io;
}

static struct crig_io *send_give(void)
{
	return crig_send_give(lent_two(), "a", B(1), B(2), 0, NEW);
}

static void a_write_that_gives_its_pages_is_done_as_a_whole(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_give, B(2), NEW, NULL });
}

/* A page that its bucket keeps is replaced, so the short way is not for it. */
static struct crig_io *send_give_beside_a_reader(void)
{
	struct crig_io *io = lent_two(), *reader;

	reader = crig_send(XSEG_OP_READ, "a", B(2), B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	crig_send_give(io, "a", B(1), B(2), 0, NEW);
	crig_expect(reader, B(1));
	return io;
}

static void so_is_one_that_is_lent_another_page_than_its_bucket_s(void **state)
{
	(void)state;
	dies_at_each_step(
		&(struct scene){ "dirty_age=1h", send_give_beside_a_reader, B(2), NEW, NULL });
}

static struct crig_io *send_give_through(void)
{
	return crig_send_give(lent_two(), "a", B(1), B(2), 0, NEW);
}

static void so_is_one_that_waits_for_the_store(void **state)
{
	(void)state;
	dies_at_each_step(
		&(struct scene){ "policy=write-through", send_give_through, B(2), NEW, is_stored });
}

/* ---- the rest ---- */

static struct crig_io *send_zeroes(void)
{
	return crig_send(XSEG_OP_WRITE_ZEROES, "c", B(1) + 512, B(2), 0, 0);
}

static struct crig_io *send_zeroes_over_data(void)
{
	crig_expect(crig_write("c", 0, B(4), OLD), B(4));
	return send_zeroes();
}

static void are_zeroes(struct crig_io *io)
{
	(void)io;
	crig_expect_data("c", 0, B(1) + 512, OLD);
	crig_expect_data("c", B(1) + 512, B(2), 0);
	crig_expect_data("c", B(3) + 512, 512, OLD);
}

static void zeroes_are_written_as_a_whole(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){
		"dirty_age=1h", send_zeroes_over_data, B(2), OLD, are_zeroes });
}

static struct crig_io *send_delete(void)
{
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_write("a", B(1), B(1), 9), B(1));
	return crig_send(XSEG_OP_DELETE, "a", 0, 0, 0, 0);
}

static void a_deleted_object_stays_deleted(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_delete, 0, 0, NULL });
}

static struct crig_io *send_copy(void)
{
	crig_expect(crig_write("c", 0, B(4), NEW), B(4));
	return crig_send_copy("a", "c", B(1), B(2));
}

static void a_copy_is_done_as_a_whole(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_copy, B(2), NEW, NULL });
}

static struct crig_io *send_flush(void)
{
	crig_expect(crig_write("a", B(1), B(2), NEW), B(2));
	return crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
}

static void a_flush_is_answered_when_all_is_stable(void **state)
{
	(void)state;
	dies_at_each_step(&(struct scene){ "dirty_age=1h", send_flush, 0, NEW, is_stable });
}

static struct crig_io *send_lent_read(void)
{
	return crig_send(XSEG_OP_READ, "a", B(1), B(2), XSEG_REQ_LOAN, 0);
}

/* Nor when others write over it. */
static void is_not_changed(struct crig_io *io)
{
	crig_expect(crig_write("a", B(1), B(2), NEW), B(2));
	crig_expect(crig_write("b", 0, B(100), 7), B(100));
	for (uint32_t i = 0; i < 2; i++)
		assert_true(crig_bytes_are(
			xseg_req_page(crig.seg, io->r, i), B(1 + i), CRIG_PAGE, OLD));
}

static void what_is_lent_stays_as_it_is(void **state)
{
	(void)state;
	dies_at_each_step(
		&(struct scene){ "dirty_age=1h", send_lent_read, B(2), NEW, is_not_changed });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_write_is_done_as_a_whole),
		CRIG_T(a_write_that_loads_its_edges_is_done_as_a_whole),
		CRIG_T(a_write_with_fua_is_answered_when_it_is_stable),
		CRIG_T(under_write_through_it_is_answered_when_the_store_has_it),
		CRIG_T(so_it_is_under_write_around),
		CRIG_T(a_write_that_gives_its_pages_is_done_as_a_whole),
		CRIG_T(so_is_one_that_is_lent_another_page_than_its_bucket_s),
		CRIG_T(so_is_one_that_waits_for_the_store),
		CRIG_T(zeroes_are_written_as_a_whole),
		CRIG_T(a_deleted_object_stays_deleted),
		CRIG_T(a_copy_is_done_as_a_whole),
		CRIG_T(a_flush_is_answered_when_all_is_stable),
		CRIG_T(what_is_lent_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
