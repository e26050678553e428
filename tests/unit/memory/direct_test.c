/* direct_test - reads without a request (xseg/direct.c): a reader finds data in a cache's tables,
 * and falls back to a request in certain cases. The server here is the least that publishes: a
 * table of entries, a page of chunks, pages.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OFF	192u				/* of the first entry */
#define STRIDE	256u
#define ENTRIES 4u
#define MAX	8u
#define PAGES	XSEG_EXTENT_PAGES
#define VOLUME	7u
#define OBJECT	3u				/* what the reader calls the object of entry 1 */
#define DIRECT	(XSEG_REQ_LOAN | XSEG_REQ_DIRECT)

static uint8_t *arena;
static uint32_t page[PAGES];			/* the server's: the first has chunks */
static struct xseg_direct *d;

static struct xseg_slots *slots(uint32_t entry)
{
	return (struct xseg_slots *)(arena + OFF + (size_t)entry * STRIDE);
}

/* Each entry has one chunk, for its slots 64 to 127. */
static _Atomic uint64_t *slot(uint32_t entry, uint32_t nr)
{
	return (_Atomic uint64_t *)xseg_page(seg, page[0]) + entry * XSEG_CHUNK_SLOTS +
	       nr % XSEG_CHUNK_SLOTS;
}

static void chunk_set(uint32_t entry)
{
	atomic_store(&slots(entry)->chunk[1], page[0] * 8 + entry + 1);
}

static void put(uint32_t entry, uint32_t nr, uint32_t p)
{
	chunk_set(entry);
	memset(xseg_page(seg, p), (int)p, XSEG_PAGE_SIZE);
	xseg_page_owner_set(seg, p, xseg_slot_name(entry, nr));
	atomic_store(slot(entry, nr), p | XSEG_SLOT_DIRECT | 4ull << 32);
}

static void arena_open(uint64_t want)
{
	struct xseg_error err = { "" };
	void *base;
	bool fresh;

	if (xseg_arena_open(server, &want, &base, &fresh, &err))
		fail_msg("%s", err.text);
	arena = base;
}

static void door_open(void)
{
	xseg_direct_open(server, &(struct xseg_direct_table){
					 .off = OFF, .nr = ENTRIES, .stride = STRIDE, .max = MAX });
}

static int setup_direct(void **state)
{
	setup_pair(state);
	arena_open(4096);
	assert_int_equal(xseg_pages_take(server, PAGES, page), 0);
	door_open();
	assert_int_equal(xseg_direct_create(c, to, 16, &d), 0);
	put(1, 64, page[1]);
	return 0;
}

static int teardown_direct(void **state)
{
	if (d)
		xseg_direct_destroy(d);
	return teardown(state);
}

static struct xreq *prepare(uint32_t nr, uint32_t n)
{
	struct xreq *r = segrig_alloc(c, XSEG_OP_READ, DIRECT, n);

	r->volume = VOLUME;
	r->offset = (uint64_t)nr * XSEG_PAGE_SIZE;
	return r;
}

/* NULL: it has to be sent. */
static struct xreq *read_of(uint64_t object, uint32_t nr, uint32_t n)
{
	struct xreq *r = prepare(nr, n);

	if (xseg_direct_read(d, r, object, (uint64_t)nr * XSEG_PAGE_SIZE))
		return r;
	assert_int_equal(r->nr_lent, 0);
	xseg_req_free(c, r);
	return NULL;
}

static bool is_read(void)
{
	struct xreq *r = read_of(OBJECT, 64, 1);

	if (r)
		xseg_req_free(c, r);
	return r;
}

/* A read of slot nr is sent to port `at`, and answered with a loan of p. `between` comes after it
 * was answered. */
static void ask(struct xport *at, uint64_t object, uint32_t nr, uint32_t p, void (*between)(void))
{
	struct xreq *r = prepare(nr, 1), *there;

	assert_false(xseg_direct_read(d, r, object, r->offset));
	segrig_submit(c, r, to);
	there = segrig_request(at);
	xseg_req_lend(at, there, 0, p);
	segrig_answer(at, there, there->size);
	assert_ptr_equal(segrig_reply(c), r);
	if (between)
		between();
	xseg_direct_learn(d, r, object, r->offset);
	xseg_req_free(c, r);
}

static void learn(void)
{
	ask(s, OBJECT, 64, page[1], NULL);
	assert_true(is_read());
}

static uint32_t pinned;

static void note(uint32_t p, uint32_t port, unsigned look, void *arg)
{
	(void)port;
	pinned += look == 0 && p == *(uint32_t *)arg;
}

static uint32_t nr_pins(uint32_t p)
{
	pinned = 0;
	xseg_loans(seg, note, &p);
	return pinned;
}

/* ---- reading ----------------------------------------------------------------------------- */

static void what_was_lent_is_read_again_without_a_request(void **state)
{
	struct xreq *r;

	(void)state;
	assert_null(read_of(OBJECT, 64, 1));
	learn();
	r = read_of(OBJECT, 64, 1);
	assert_non_null(r);
	assert_int_equal(r->result, XSEG_PAGE_SIZE);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, page[1]));
	segrig_nothing(s);
	assert_int_equal(nr_pins(page[1]), 1);
	xseg_req_drop_loans(c, r);
	assert_int_equal(nr_pins(page[1]), 0);
	xseg_req_free(c, r);
}

static void all_of_an_object_is_known_from_one_answer(void **state)
{
	struct xreq *r;

	(void)state;
	learn();
	put(1, 65, page[2]);
	put(1, 127, page[3]);
	r = read_of(OBJECT, 64, 2);
	assert_non_null(r);
	assert_ptr_equal(xseg_req_page(seg, r, 1), xseg_page(seg, page[2]));
	assert_int_equal(nr_pins(page[1]) + nr_pins(page[2]), 2);
	xseg_req_free(c, r);
	r = read_of(OBJECT, 127, 1);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, page[3]));
	xseg_req_free(c, r);
	assert_null(read_of(OBJECT, 65, 2));	/* one of them is not there */
}

static void part_of_a_page_is_read_where_it_is(void **state)
{
	struct xreq *r;
	char got[512];

	(void)state;
	learn();
	r = prepare(64, 1);
	r->offset += 512;
	r->size = 512;
	assert_true(xseg_direct_read(d, r, OBJECT, r->offset));
	xseg_req_read_data(seg, r, 0, got, sizeof(got));
	assert_int_equal(got[0], (char)page[1]);
	xseg_req_free(c, r);
}

static void what_cannot_be_read_so_is_sent(void **state)
{
	struct xreq *r;

	(void)state;
	learn();
	assert_null(read_of(OBJECT + 1, 64, 1));	/* not known */
	assert_null(read_of(OBJECT, 70, 1));		/* nothing there */
	assert_null(read_of(OBJECT, 0, 1));		/* no chunk */
	assert_null(read_of(OBJECT, 1023, 2));		/* beyond the end */
	assert_null(read_of(OBJECT, 64, XSEG_DIRECT_PAGES + 1));
	r = prepare(64, 1);
	r->size = 512;
	assert_false(xseg_direct_read(d, r, OBJECT, r->offset + 512));	/* aligned otherwise */
	r->size = XSEG_PAGE_SIZE;
	r->volume++;
	assert_false(xseg_direct_read(d, r, OBJECT, r->offset));
	r->volume--;
	r->flags = XSEG_REQ_LOAN;
	assert_false(xseg_direct_read(d, r, OBJECT, r->offset));
	r->flags = DIRECT;
	r->op = XSEG_OP_WRITE;
	assert_false(xseg_direct_read(d, r, OBJECT, r->offset));
	r->op = XSEG_OP_READ;
	r->size = 0;
	assert_false(xseg_direct_read(d, r, OBJECT, r->offset));
	xseg_req_free(c, r);
	assert_true(is_read());
}

/* Though what lies behind its last chunk, the version, looks like one more. */
static void nothing_behind_an_object_is_read(void **state)
{
	uint32_t end = XSEG_SLOTS_CHUNKS * XSEG_CHUNK_SLOTS, chunk;
	struct xreq *r;

	(void)state;
	put(1, 127, page[3]);
	chunk = atomic_load(&slots(1)->chunk[1]);
	atomic_store(&slots(1)->chunk[XSEG_SLOTS_CHUNKS - 1], chunk);
	atomic_store(&slots(1)->version, chunk);
	learn();
	r = read_of(OBJECT, end - 1, 1);
	assert_non_null(r);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, page[3]));
	xseg_req_free(c, r);
	assert_null(read_of(OBJECT, end - 1, 2));
	assert_null(read_of(OBJECT, end, 1));
}

static void a_slot_without_the_mark_is_not_read(void **state)
{
	(void)state;
	learn();
	atomic_store(slot(1, 64), page[1] | 4ull << 32);
	assert_false(is_read());
}

static void the_newest_page_is_read(void **state)
{
	struct xreq *r;

	(void)state;
	learn();
	put(1, 64, page[2]);
	r = read_of(OBJECT, 64, 1);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, page[2]));
	xseg_req_free(c, r);
}

static void that_a_page_was_read_is_said_once(void **state)
{
	(void)state;
	learn();
	assert_true(xseg_page_touched(seg, page[1]));
	assert_false(xseg_page_touched(seg, page[1]));
	assert_true(is_read());
	assert_true(xseg_page_touched(seg, page[1]));
	assert_false(xseg_page_touched(seg, page[2]));
	assert_false(xseg_page_touched(seg, seg->nr_pages));
}

/* How many reads, and bytes, the cache's peer says there were. */
static void expect_counted(uint64_t reads, uint64_t bytes)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(seg, to, &info));
	assert_int_equal(info.direct_reads, reads);
	assert_int_equal(info.direct_bytes, bytes);
}

/* Some at a time, when one is not found, and at the end. */
static void what_is_read_is_counted_at_the_cache(void **state)
{
	(void)state;
	learn();
	expect_counted(0, 0);
	for (unsigned i = 0; i < 15; i++)
		assert_true(is_read());
	expect_counted(16, 16 * XSEG_PAGE_SIZE);
	assert_true(is_read());
	expect_counted(16, 16 * XSEG_PAGE_SIZE);
	assert_null(read_of(OBJECT, 65, 1));
	expect_counted(17, 17 * XSEG_PAGE_SIZE);
	assert_true(is_read());
	xseg_direct_destroy(d);
	expect_counted(18, 18 * XSEG_PAGE_SIZE);
	assert_int_equal(xseg_direct_create(c, to, 64, &d), 0);
}

static void no_port_pins_more_than_it_may(void **state)
{
	struct xreq *r[MAX];

	(void)state;
	learn();
	for (uint32_t i = 0; i < MAX; i++)
		assert_non_null(r[i] = read_of(OBJECT, 64, 1));
	assert_false(is_read());
	xseg_req_drop_loans(c, r[3]);
	assert_true(is_read());
	xseg_direct_max_set(server, MAX - 1);
	assert_false(is_read());
	for (uint32_t i = 0; i < MAX; i++)
		xseg_req_free(c, r[i]);
}

/* ---- in between: the first store of the pin traps, and something happens before it is done
 * ---- */

static void (*meanwhile)(void);

static size_t requests_bytes(void)
{
	return (seg->geo.nr_requests * sizeof(struct xs_req) + 4095) / 4096 * 4096;
}

static void trapped(int sig)
{
	if (mprotect(seg->reqs, requests_bytes(), PROT_READ | PROT_WRITE))
		_exit(1);
	(void)sig;
	meanwhile();
}

static bool is_read_while(void (*fn)(void))
{
	struct sigaction act = { .sa_handler = trapped }, old;
	struct xreq *r = prepare(64, 1);
	bool read;

	meanwhile = fn;
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_int_equal(mprotect(seg->reqs, requests_bytes(), PROT_READ), 0);
	read = xseg_direct_read(d, r, OBJECT, r->offset);
	mprotect(seg->reqs, requests_bytes(), PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &old, NULL);
	assert_true(read || nr_pins(page[1]) == 0);
	xseg_req_free(c, r);
	return read;
}

static void nothing(void) {}
static void page_replaced(void) { put(1, 64, page[2]); }
static void mark_gone(void) { atomic_store(slot(1, 64), page[1] | 4ull << 32); }
static void version_changed(void) { atomic_fetch_add(&slots(1)->version, 1); }
static void door_shut(void) { xseg_direct_shut(server); }
static void door_renewed(void)
{
	xseg_direct_shut(server);
	door_open();
}

/* As in direct.c. */
#define TRIES	  64u
#define ENOUGH	  48u
#define AGAIN	  4u
#define PAUSE_MIN 128u
#define PAUSE_MAX 2048u
#define VAIN_MIN  256u
#define SUCCESS	  16u

static bool pays(void)
{
	return xseg_direct_pays(d, VOLUME, OBJECT);
}

/* So many tries, of which the first `found` succeed. */
static void try_some(uint32_t found, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct xreq *r = read_of(OBJECT, i < found ? 64 : 65, 1);

		assert_int_equal(r != NULL, i < found);
		if (r)
			xseg_req_free(c, r);
	}
}

/* A row of tries, of which the first `found` succeed. It ends when too many have failed. */
static void try_row(uint32_t found)
{
	uint32_t nr = found + TRIES - ENOUGH + 1;

	try_some(found, nr < TRIES ? nr : TRIES);
}

/* How many reads are no tries. */
static uint32_t pause_of(void)
{
	uint32_t n = 0;

	while (!pays() && n <= PAUSE_MAX)
		n++;
	return n;
}

/* What it knows took two tries: the rest of that row. */
static void learn_in_a_row(void)
{
	learn();
	for (uint32_t i = 2; i < TRIES; i++)
		assert_true(is_read());
}

static void a_try_pays_while_most_succeed(void **state)
{
	(void)state;
	learn_in_a_row();
	for (unsigned i = 0; i < 10; i++) {
		assert_true(pays());
		try_row(ENOUGH);
	}
	assert_true(pays());
	try_row(ENOUGH - 1);
	assert_false(pays());
}

static void tries_in_vain_are_made_less_and_less_often(void **state)
{
	uint32_t pause = PAUSE_MIN;

	(void)state;
	learn_in_a_row();
	for (unsigned i = 0; i < 6; i++) {
		try_row(1);
		assert_int_equal(pause_of(), pause);
		pause = pause < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
	}
	try_row(TRIES);
	assert_int_equal(pause_of(), 0);
	try_row(0);
	assert_int_equal(pause_of(), PAUSE_MIN);
}

static void after_a_row_in_vain_a_few_tries_that_all_fail_are_the_next_row(void **state)
{
	(void)state;
	learn_in_a_row();
	try_some(0, TRIES - ENOUGH);
	assert_true(pays());			/* the first row is not so short */
	try_some(0, 1);
	assert_int_equal(pause_of(), PAUSE_MIN);
	try_some(0, AGAIN - 1);
	assert_true(pays());
	try_some(0, 1);
	assert_int_equal(pause_of(), 2 * PAUSE_MIN);
	try_some(0, AGAIN - 1);
	try_some(1, 1);				/* one success: the row goes on */
	try_some(0, TRIES - ENOUGH - (AGAIN - 1));
	assert_true(pays());
	try_some(0, 1);
	assert_int_equal(pause_of(), 4 * PAUSE_MIN);
}

/* Tries of objects of which nothing is known. */
static void try_others(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		assert_null(read_of(OBJECT + 1 + i % 8, 65, 1));
}

static void if_nearly_all_tries_of_all_objects_fail_first_rows_are_short_and_pauses_long(void **state)
{
	(void)state;
	learn_in_a_row();
	try_others(VAIN_MIN);
	try_some(0, AGAIN);
	assert_int_equal(pause_of(), PAUSE_MAX / 2);
	try_some(0, AGAIN);
	assert_int_equal(pause_of(), PAUSE_MAX);
}

static void some_successes_make_up_for_many_failures(void **state)
{
	(void)state;
	learn_in_a_row();
	try_others(VAIN_MIN + TRIES * SUCCESS);
	try_some(TRIES, TRIES);			/* not yet */
	try_some(0, AGAIN);
	assert_int_equal(pause_of(), PAUSE_MAX / 2);
	try_some(TRIES, TRIES);
	try_row(0);
	assert_int_equal(pause_of(), PAUSE_MIN);
}

static void a_path_that_opens_is_tried_again(void **state)
{
	(void)state;
	learn_in_a_row();
	try_row(0);
	try_row(0);
	assert_false(pays());
	door_renewed();
	assert_false(pays());			/* nobody has looked yet */
	assert_false(is_read());		/* another object's try, or the next one of this */
	assert_true(pays());
	learn();
	assert_true(is_read());
}
static void route_changed(void) { atomic_fetch_add(&seg->peers[to].route, 1ull << 16); }
static void kept(void)
{
	atomic_store(&seg->peers[15].route, route_word(to, 1));
	atomic_store(&seg->peers[to].above, 16);
}

static void what_changes_between_the_two_looks_is_not_read(void **state)
{
	static void (*const changes[])(void) = { page_replaced, mark_gone, version_changed,
		door_shut, door_renewed, route_changed, kept };

	(void)state;
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		xseg_direct_shut(server);
		door_open();
		atomic_store(&seg->peers[to].above, 0);
		atomic_store(&seg->peers[15].route, 0);
		put(1, 64, page[1]);
		learn();
		assert_true(is_read_while(nothing));
		if (is_read_while(changes[i]))
			fail_msg("change %u is not seen", i);
	}
	atomic_store(&seg->peers[to].above, 0);
	atomic_store(&seg->peers[to].route, route_word(XSEG_NONE, 0));
	atomic_store(&seg->peers[15].route, route_word(XSEG_NONE, 0));
}

/* ---- what was learned, and how long it is worth something --------------------------------- */

static void a_chunk_that_is_anothers_by_now_is_not_read(void **state)
{
	(void)state;
	learn();
	version_changed();
	put(2, 64, page[2]);
	atomic_store(&slots(1)->chunk[1], atomic_load(&slots(2)->chunk[1]));
	assert_false(is_read());
	put(1, 64, page[1]);
	assert_false(is_read());
	learn();
}

static void a_page_that_has_left_its_slot_teaches_nothing(void **state)
{
	(void)state;
	xseg_page_owner_set(seg, page[1], 1ull << 59);
	ask(s, OBJECT, 64, page[1], NULL);
	assert_false(is_read());
}

static void an_answer_from_elsewhere_teaches_nothing(void **state)
{
	(void)state;
	ask(s, OBJECT, 65, page[1], NULL);	/* another slot than the reader thinks */
	assert_null(read_of(OBJECT, 65, 1));
	assert_false(is_read());
	xseg_page_owner_set(seg, page[1], xseg_slot_name(ENTRIES, 64));
	ask(s, OBJECT, 64, page[1], NULL);
	assert_false(is_read());
	ask(s, OBJECT, 64, XSEG_NONE, NULL);
	assert_false(is_read());
}

static void a_page_of_somebody_else_teaches_nothing_whatever_its_owner_word_says(void **state)
{
	struct xreq *r = prepare(64, 1);
	const uint32_t others[] = { 0, r->page[0] };	/* of the arena, and of the client */

	(void)state;
	xseg_req_free(c, r);
	for (unsigned i = 0; i < 2; i++) {
		xseg_page_owner_set(seg, others[i], xseg_slot_name(1, 64));
		ask(s, OBJECT, 64, others[i], NULL);
		xseg_page_owner_set(seg, others[i], 0);
		assert_false(is_read());
	}
	learn();
}

static void who_asked_before_the_door_was_shut_learns_nothing(void **state)
{
	(void)state;
	ask(s, OBJECT, 64, page[1], door_renewed);
	assert_false(is_read());
	learn();
}

static void a_door_that_was_shut_voids_what_was_learned(void **state)
{
	(void)state;
	learn();
	xseg_direct_shut(server);
	assert_false(xseg_direct_is_open(server));
	assert_false(is_read());
	door_open();
	assert_true(xseg_direct_is_open(server));
	assert_false(is_read());
	learn();
}

static void objects_that_share_a_place_take_turns(void **state)
{
	struct xseg_direct *many = d;

	(void)state;
	assert_int_equal(xseg_direct_create(c, to, 1, &d), 0);
	put(2, 64, page[2]);
	learn();
	ask(s, OBJECT + 1, 64, page[2], NULL);
	assert_false(is_read());
	learn();
	xseg_direct_destroy(d);
	d = many;
}

static void an_entry_in_two_extents_is_left_to_requests(void **state)
{
	uint32_t chunk = atomic_load(&slots(1)->chunk[1]);

	(void)state;
	/* the part of it that is in the first one has all that a read looks at */
	memcpy(arena + XSEG_EXTENT_SIZE - 64 + offsetof(struct xseg_slots, chunk[1]), &chunk,
		sizeof(chunk));
	xseg_direct_shut(server);
	xseg_direct_open(server, &(struct xseg_direct_table){ .off = XSEG_EXTENT_SIZE - STRIDE - 64,
					 .nr = 4,
					 .stride = STRIDE,
					 .max = MAX });
	ask(s, OBJECT, 64, page[1], NULL);
	assert_false(is_read());
}

static void a_reader_needs_a_peer_and_room(void **state)
{
	struct xseg_direct *other;

	(void)state;
	assert_int_equal(xseg_direct_create(c, XSEG_NONE, 16, &other), -EINVAL);
	assert_int_equal(xseg_direct_create(c, to, 0, &other), -EINVAL);
	assert_int_equal(xseg_direct_create(c, to, (1u << 20) + 1, &other), -EINVAL);
}

/* ---- the path ----------------------------------------------------------------------------- */

/* Requests go to another peer, which hands them on. */
static struct xseg_peer *upper;

static void upper_open(void)
{
	upper = segrig_server(seg, "upper", 1, 0);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(upper), to), 0);
	xseg_direct_destroy(d);
	assert_int_equal(xseg_direct_create(c, xseg_peer_index(upper), 16, &d), 0);
}

static void upper_allows(void)
{
	xseg_direct_open(upper, &(struct xseg_direct_table){ .nr = 0 });
}

static void a_peer_between_has_to_allow_it(void **state)
{
	(void)state;
	upper_open();
	ask(s, OBJECT, 64, page[1], NULL);
	assert_false(is_read());
	upper_allows();
	learn();
	xseg_direct_shut(upper);
	assert_false(is_read());
	upper_allows();
	assert_false(is_read());
	close_peer(upper);
}

static void another_cache_between_is_not_passed_by(void **state)
{
	struct xseg_peer *cache;
	uint32_t above;

	(void)state;
	upper_open();
	upper_allows();
	learn();
	cache = segrig_server(seg, "above", 1, 0);
	above = xseg_peer_index(cache);
	assert_int_equal(xseg_route_set(seg, above, to), 0);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(upper), above), 0);
	assert_false(is_read());
	ask(s, OBJECT, 64, page[1], NULL);	/* it has handed the read on */
	assert_false(is_read());
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(upper), to), 0);
	assert_int_equal(xseg_route_set(seg, above, XSEG_NONE), 0);
	learn();
	close_peer(cache);
	close_peer(upper);
}

static void a_cache_that_another_keeps_is_not_read_past_its_keeper(void **state)
{
	struct xseg_peer *cache = segrig_server(seg, "above", 1, 0);

	(void)state;
	learn();
	assert_int_equal(xseg_route_claim(seg, xseg_peer_index(cache), to), 0);
	assert_false(is_read());
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(cache), XSEG_NONE), 0);
	learn();			/* `above` is what it was, and the keeper's route is not */
	assert_int_equal(xseg_route_claim(seg, xseg_peer_index(cache), to), 0);
	assert_false(is_read());
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(cache), XSEG_NONE), 0);
	close_peer(cache);
}

/* ---- who dies ----------------------------------------------------------------------------- */

static void the_tables_of_the_dead_are_read_until_a_successor_shuts_the_door(void **state)
{
	(void)state;
	learn();
	abandon(server);
	assert_true(is_read());
	server = segrig_open(seg, "memd", 1, 0);
	s = segrig_port(server);
	arena_open(4096);
	xseg_direct_shut(server);
	assert_false(is_read());
	door_open();
	xseg_peer_serve(server);
	assert_false(is_read());
	learn();
}

static void a_peer_that_leaves_shuts_its_door(void **state)
{
	(void)state;
	learn();
	close_peer(server);
	assert_false(is_read());
}

static void the_dead_are_not_forgotten_while_somebody_reads_a_page_of_theirs(void **state)
{
	struct xreq *r;

	(void)state;
	learn();
	abandon(server);
	r = read_of(OBJECT, 64, 1);
	assert_non_null(r);
	assert_int_equal(xseg_peer_forget(seg, to), -ENOTEMPTY);
	assert_false(is_read());		/* but nobody begins to */
	xseg_req_free(c, r);
	expect_counted(2, 2 * XSEG_PAGE_SIZE);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
	assert_false(is_read());
	server = segrig_open(seg, "other", 1, 0);	/* in its place */
	assert_int_equal(xseg_peer_index(server), to);
	expect_counted(0, 0);
}

static void what_a_dead_reader_had_pinned_is_let_go_of_with_its_requests(void **state)
{
	(void)state;
	learn();
	assert_non_null(read_of(OBJECT, 64, 1));
	xseg_direct_destroy(d);
	d = NULL;
	abandon(client);
	assert_int_equal(nr_pins(page[1]), 1);
	assert_int_equal(xseg_sweep(seg), 1);
	assert_int_equal(nr_pins(page[1]), 0);
}

/* ---- hostile hands (R5) ------------------------------------------------------------------- */

/* Whatever stands in the tables, what is read is in the segment. */
static void nothing_outside_of_the_segment_is_read(void **state)
{
	uint64_t rng = 1;
	uint32_t reads = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct xreq *r;

		xseg_direct_shut(server);
		xseg_direct_open(server,
			&(struct xseg_direct_table){
				.off = segrig_random(&rng) % 3 ? OFF : segrig_random(&rng) * 8ull,
				.nr = segrig_random(&rng) % 3 ? ENTRIES : UINT32_MAX,
				.stride = segrig_random(&rng) % 3 ? STRIDE
								  : segrig_random(&rng) & ~7u,
				.max = MAX });
		put(1, 64, page[1]);
		if (segrig_random(&rng) % 2)
			xseg_page_owner_set(seg, page[1], (uint64_t)segrig_random(&rng) << 16 | 64);
		ask(s, OBJECT, 64, page[1], NULL);
		if (segrig_random(&rng) % 2)
			atomic_store(&slots(1)->chunk[1], segrig_random(&rng));
		if (segrig_random(&rng) % 2)
			atomic_store(slot(1, 64),
				(uint64_t)segrig_random(&rng) << 32 | segrig_random(&rng));
		r = read_of(OBJECT, 64, 1);
		if (!r)
			continue;
		reads++;
		assert_in_range((uintptr_t)xseg_req_page(seg, r, 0), (uintptr_t)seg->pages,
			(uintptr_t)seg->pages + (uint64_t)seg->nr_pages * XSEG_PAGE_SIZE -
				XSEG_PAGE_SIZE);
		xseg_req_free(c, r);
	}
	assert_in_range(reads, 100, 19000);
	atomic_store(slot(1, 64), 0);
}

static void wild_words_of_peers_and_extents_are_no_path(void **state)
{
	uint64_t w;

	(void)state;
	learn();
	atomic_store(&seg->peers[to].arena_extents, UINT32_MAX);
	door_renewed();
	ask(s, OBJECT, 64, page[1], NULL);
	assert_false(is_read());
	atomic_store(&seg->peers[to].arena_extents, 1);
	for (uint32_t i = 0; i < seg->geo.nr_extents; i++)
		if (extent_kind(atomic_load(&seg->extents[i].word)) == XS_EXTENT_ARENA) {
			w = atomic_exchange(&seg->extents[i].word,
				extent_word(XS_EXTENT_ARENA, to, UINT32_MAX));
			door_renewed();
			ask(s, OBJECT, 64, page[1], NULL);
			assert_false(is_read());
			atomic_store(&seg->extents[i].word, w);
		}
	atomic_store(&seg->peers[to].above, UINT32_MAX);
	door_renewed();
	ask(s, OBJECT, 64, page[1], NULL);
	atomic_store(&seg->peers[to].above, 0);
	assert_false(is_read());
	learn();
}

/* ---- all at the same time ------------------------------------------------------------------ */

/* A thread replaces pages, keeps aside what has left, and uses again what a look at all requests
 * has not found, as a cache does. Meanwhile the reader checks that what it reads is one page as a
 * whole, that it is its slot's, and that it is never older than what it has read. */
#define ROUNDS	 (SEGRIG_SANITIZED ? 20000u : 400000u)
#define LIMBO	 16u
#define SPARE	 32u
#define SLOTS	 4u

static _Atomic bool over;
static _Atomic uint64_t nr_reads;
static uint32_t limbo[LIMBO], nr_limbo, spare[SPARE], nr_spare;
static bool is_seen[LIMBO];

static void see(uint32_t p, uint32_t port, unsigned look, void *arg)
{
	(void)port;
	(void)look;
	(void)arg;
	for (uint32_t i = 0; i < nr_limbo; i++)
		is_seen[i] |= limbo[i] == p;
}

static void limbo_empty(void)
{
	uint32_t n = 0;

	memset(is_seen, 0, sizeof(is_seen));
	atomic_thread_fence(memory_order_seq_cst);	/* as limbo_look() */
	xseg_loans(seg, see, NULL);
	for (uint32_t i = 0; i < nr_limbo; i++)
		if (is_seen[i])
			limbo[n++] = limbo[i];
		else
			spare[nr_spare++] = limbo[i];
	nr_limbo = n;
}

static void fill(uint32_t p, uint64_t slot_nr, uint64_t count)
{
	uint64_t *w = xseg_page(seg, p);

	for (uint32_t i = 0; i < XSEG_PAGE_SIZE / 8; i += 8) {
		w[i] = slot_nr;
		w[i + 1] = count;
	}
}

static void *replace(void *arg)
{
	(void)arg;
	for (uint32_t n = 1; n <= ROUNDS || !atomic_load(&nr_reads); n++) {
		uint32_t nr = 64 + n % SLOTS, p = spare[--nr_spare];
		_Atomic uint64_t *at = slot(1, nr);
		uint32_t old = (uint32_t)atomic_load(at);

		fill(p, nr, n);
		xseg_page_owner_set(seg, p, xseg_slot_name(1, nr));
		atomic_store_explicit(at, p | XSEG_SLOT_DIRECT, memory_order_release);
		limbo[nr_limbo++] = old;
		while (nr_limbo == LIMBO)
			limbo_empty();
	}
	atomic_store(&over, true);
	return NULL;
}

static bool is_whole(const uint64_t *w, uint64_t nr, uint64_t least)
{
	for (uint32_t i = 0; i < XSEG_PAGE_SIZE / 8; i += 8)
		if (w[i] != nr || w[i + 1] != w[1])
			return false;
	return w[1] >= least;
}

static void a_page_that_is_read_stays_what_it_was_while_others_replace_it(void **state)
{
	uint64_t newest[SLOTS] = { 0 };
	pthread_t thread;

	(void)state;
	atomic_store(&nr_reads, 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		put(1, 64 + i, page[1 + i]);
		fill(page[1 + i], 64 + i, 0);
	}
	for (nr_spare = 0; nr_spare < SPARE; nr_spare++)
		spare[nr_spare] = page[8 + nr_spare];
	learn();
	assert_int_equal(pthread_create(&thread, NULL, replace, NULL), 0);
	while (!atomic_load(&over)) {
		uint32_t i = (uint32_t)(atomic_load(&nr_reads) % SLOTS);
		struct xreq *r = prepare(64 + i, 1);
		const uint64_t *w;

		if (xseg_direct_read(d, r, OBJECT, r->offset)) {
			w = xseg_req_page(seg, r, 0);
			assert_true(is_whole(w, 64 + i, newest[i]));
			newest[i] = w[1];
			assert_true(is_whole(w, 64 + i, newest[i]));
			atomic_fetch_add(&nr_reads, 1);
		}
		xseg_req_free(c, r);
	}
	pthread_join(thread, NULL);
}

#define D(name) cmocka_unit_test_setup_teardown(name, setup_direct, teardown_direct)

int main(void)
{
	const struct CMUnitTest tests[] = {
		D(what_was_lent_is_read_again_without_a_request),
		D(all_of_an_object_is_known_from_one_answer),
		D(part_of_a_page_is_read_where_it_is),
		D(what_cannot_be_read_so_is_sent),
		D(nothing_behind_an_object_is_read),
		D(a_slot_without_the_mark_is_not_read),
		D(the_newest_page_is_read),
		D(that_a_page_was_read_is_said_once),
		D(what_is_read_is_counted_at_the_cache),
		D(a_try_pays_while_most_succeed),
		D(tries_in_vain_are_made_less_and_less_often),
		D(after_a_row_in_vain_a_few_tries_that_all_fail_are_the_next_row),
		D(if_nearly_all_tries_of_all_objects_fail_first_rows_are_short_and_pauses_long),
		D(some_successes_make_up_for_many_failures),
		D(a_path_that_opens_is_tried_again),
		D(no_port_pins_more_than_it_may),
		D(what_changes_between_the_two_looks_is_not_read),
		D(a_chunk_that_is_anothers_by_now_is_not_read),
		D(a_page_that_has_left_its_slot_teaches_nothing),
		D(an_answer_from_elsewhere_teaches_nothing),
		D(a_page_of_somebody_else_teaches_nothing_whatever_its_owner_word_says),
		D(who_asked_before_the_door_was_shut_learns_nothing),
		D(a_door_that_was_shut_voids_what_was_learned),
		D(objects_that_share_a_place_take_turns),
		D(an_entry_in_two_extents_is_left_to_requests),
		D(a_reader_needs_a_peer_and_room),
		D(a_peer_between_has_to_allow_it),
		D(another_cache_between_is_not_passed_by),
		D(a_cache_that_another_keeps_is_not_read_past_its_keeper),
		D(the_tables_of_the_dead_are_read_until_a_successor_shuts_the_door),
		D(a_peer_that_leaves_shuts_its_door),
		D(the_dead_are_not_forgotten_while_somebody_reads_a_page_of_theirs),
		D(what_a_dead_reader_had_pinned_is_let_go_of_with_its_requests),
		D(nothing_outside_of_the_segment_is_read),
		D(wild_words_of_peers_and_extents_are_no_path),
		D(a_page_that_is_read_stays_what_it_was_while_others_replace_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
