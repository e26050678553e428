/* cached_greedy_test - one client has as many requests in flight as it can, and takes all that is
 * scarce in the cache: pages, entries, requests of its own. Another client, with one request at a
 * time, still gets its turn, and neither of them gets an error.
 *
 * The store does one thing at a time, in the order of the requests: patience is counted in that
 * time here.
 */
#include "tests/rig/cached_rig.h"
#include "tests/rig/seg_rig.h"

#define GREED	 24u				/* requests of the greedy one */
#define TURNS	 30u				/* of the modest one */
/* Those that came before it, those that have to be flushed for them, and as much again where an
 * entry has several to be flushed before another object can have it. */
#define PATIENCE (4 * GREED)
/* Objects a to h, and i and j. */
#define GREEDYS	 0, 8
#define MODESTS	 8, 2

static uint64_t seed;

static uint32_t some(uint32_t n)
{
	return (uint32_t)(segrig_random(&seed) % n);
}

/* Two writes of three, reads of what is mostly not in the cache. */
static struct crig_io *send_one(uint32_t first, uint32_t nr)
{
	char name[2] = { (char)('a' + first + some(nr)), '\0' };
	uint64_t offset = B(some(64));

	return some(3) ? crig_send(XSEG_OP_WRITE, name, offset, B(1), 0, some(9) + 1)
		       : crig_send(XSEG_OP_READ, name, offset, B(1), 0, 0);
}

static void greedy_goes_on(struct crig_io **io, bool sends)
{
	for (uint32_t i = 0; i < GREED; i++) {
		if (io[i] && io[i]->done) {
			crig_expect(io[i], B(1));
			io[i] = NULL;
		}
		if (!io[i] && sends)
			io[i] = send_one(GREEDYS);
	}
}

static void store_goes_on(void)
{
	uint32_t call;

	crig_pass(CRIG_MS);
	call = crig_held(CRIG_ANY, 0);
	if (call != CRIG_NEVER)
		crig_answer(call);
}

static void modest_has_its_turn(struct crig_io **greedy)
{
	struct crig_io *io = send_one(MODESTS);

	for (uint32_t waited = 0; !io->done; waited++) {
		assert_true(waited < PATIENCE);
		store_goes_on();
		greedy_goes_on(greedy, true);
	}
	crig_expect(io, B(1));
}

/* pages: what the cache has for data; 0: as much as there is. */
static void share(const char *options, uint32_t pages)
{
	struct crig_io *greedy[GREED] = { NULL };

	seed = pages + 1;
	crig_up(options);
	if (pages)
		crig_limit(pages);
	crig_hold(true);
	for (uint32_t i = 0; i < TURNS; i++) {
		greedy_goes_on(greedy, true);
		modest_has_its_turn(greedy);
	}
	crig_hold(false);
	crig_pass(CRIG_S);
	greedy_goes_on(greedy, false);
	for (uint32_t i = 0; i < GREED; i++)
		assert_null(greedy[i]);
	assert_int_equal(crig_down(NULL), 0);
}

static void who_asks_for_little_gets_a_page_beside_one_who_takes_all(void **state)
{
	static const uint32_t pages[] = { 1, 2, 3, 8, 16 };

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		share("", pages[i]);
}

static void and_an_entry(void **state)
{
	(void)state;
	share("objects=1", 0);
	share("objects=2", 0);
	share("objects=3", 0);
	share("objects=3", 4);
}

static void and_a_request_to_the_store(void **state)
{
	(void)state;
	share("requests=8", 0);
	share("requests=8", 3);
	share("requests=8 objects=2", 0);
}

static void and_its_turn_among_those_who_are_slowed(void **state)
{
	(void)state;
	share("dirty_high=1 dirty_low=0", 64);
	share("policy=write-through", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(who_asks_for_little_gets_a_page_beside_one_who_takes_all),
		CRIG_T(and_an_entry),
		CRIG_T(and_a_request_to_the_store),
		CRIG_T(and_its_turn_among_those_who_are_slowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
