/* kept_race_test - words that their owner changes without a lock, while others mend
 * (xseg/kept.c). */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/rig/long.h"
#include "tests/rig/seg_pair.h"

static atomic_bool over;

/* As each open of a new name, and many a sweep. */
static void *mend(void *arg)
{
	(void)arg;
	while (!over) {
		int fd = xs_lock_all(seg);

		assert_true(fd >= 0);
		for (int i = 0; i < 1000; i++)
			xs_kept_close(seg, to);
		xs_kept_look(seg, true, NULL, NULL);
		xs_unlock(fd);
	}
	return NULL;
}

static uint64_t bad_count(void)
{
	struct xseg_info info;

	xseg_get_info(seg, &info);
	return info.bad_count;
}

static void while_others_mend(uint32_t rounds, void (*change)(uint32_t round))
{
	pthread_t thread;

	over = false;
	assert_int_equal(pthread_create(&thread, NULL, mend, NULL), 0);
	for (uint32_t i = 1; i <= rounds; i++)
		change(i);
	over = true;
	pthread_join(thread, NULL);
	assert_int_equal(bad_count(), 0);
	assert_int_equal(xs_kept_look(seg, false, NULL, NULL), 0);
}

static void set_epoch(uint32_t round)
{
	xseg_arena_epoch_set(server, round);
	if (xseg_arena_epoch(server) != round)
		fail_msg("epoch %u is %llu", round, (unsigned long long)xseg_arena_epoch(server));
}

static void an_epoch_that_is_set_meanwhile_stays(void **state)
{
	(void)state;
	while_others_mend(in_short(40000000, 20), set_epoch);
}

/* A successor each time: no word comes twice. */
static void serve_again(uint32_t round)
{
	server->generation = round;
	xs_keep(seg, to, XS_KEPT_WORD, peer_word(XSEG_PEER_OPENING, seg->member, round));
	xseg_peer_serve(server);
	if (peer_state(xs_peer_word(seg, to)) != XSEG_PEER_LIVE)
		fail_msg("it does not serve");
}

static void a_peer_that_serves_meanwhile_goes_on(void **state)
{
	uint32_t generation = server->generation;

	(void)state;
	while_others_mend(in_short(20000000, 20), serve_again);
	server->generation = generation;
	xseg_peer_serve(server);
}

/* Its owner stands still between the steps of a change. */
static void a_copy_that_is_being_changed_is_not_made_anew(void **state)
{
	uint64_t word = xs_peer_word(seg, to), next;

	(void)state;
	next = peer_word(XSEG_PEER_LIVE, seg->member, server->generation + 1);
	xs_keep_dead_open(seg, to);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 0);
	atomic_store(&server->sh->word, next);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 0);
	assert_true(xs_peer_word(seg, to) == next);
	xs_keep_dead(seg, to, word, next);
	atomic_store(&server->sh->word, word);	/* written over */
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 1);
	assert_true(xs_peer_word(seg, to) == next);
	xs_keep(seg, to, XS_KEPT_WORD, word);
}

/* Of two that find it dead one is slower. */
static void a_copy_that_nobody_changes_any_more_is_made_anew(void **state)
{
	uint64_t word = xs_peer_word(seg, to);

	(void)state;
	xs_keep_dead_open(seg, to);
	xs_keep_dead_not(seg, to);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 0);
	atomic_store(&server->sh->word, 0);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 1);
	assert_true(xs_peer_word(seg, to) == word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_copy_that_is_being_changed_is_not_made_anew),
		P(a_copy_that_nobody_changes_any_more_is_made_anew),
		P(an_epoch_that_is_set_meanwhile_stays),
		P(a_peer_that_serves_meanwhile_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
