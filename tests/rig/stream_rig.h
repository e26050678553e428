/* stream_rig - one table of streams for the tests of peers/cached/bucket/stream.c. srig_note()
 * makes a read, checks the invariants of stream.h that can be seen from outside, and counts the
 * advised reads.
 */
#ifndef TESTS_UNIT_STREAM_RIG_H
#define TESTS_UNIT_STREAM_RIG_H

#include "peers/cached/bucket/stream.h"

#define K      1024u
#define M      (1024u * K)
#define OBJECT STREAM_OBJECT_BYTES
#define CUTOFF M
#define AHEAD  (512 * K)

extern struct streams srig;
extern unsigned srig_asked;	/* reads that were advised a range */
extern unsigned srig_cut;		/* reads that were cut off */

/* A fixture: a table with the limits CUTOFF and AHEAD. */
int srig_begin(void **state);
int srig_end(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, srig_begin, srig_end)

/* An empty table, within a test. */
void srig_again(void);

/* Prints the seed; the same seed is the same run. */
void srig_seed(uint64_t value);
uint64_t srig_random_below(uint64_t n);

/* A read in volume 1, or in another one; volume 0: in an object of none. */
struct stream_advice srig_note(uint64_t offset, uint32_t size);
struct stream_advice srig_note_in(uint32_t volume, uint64_t offset, uint32_t size);

/* Reads n times, each where the last one ended; the advice of the last. */
struct stream_advice srig_read_on(uint64_t offset, uint32_t size, uint32_t n);

/* Bytes of the longest stream. */
uint64_t srig_longest(void);

void srig_expect_range(struct stream_advice a, uint64_t from, uint32_t bytes);
void srig_check_advice(struct stream_advice a, uint64_t obj_offset, uint32_t size);
void srig_check_lists(void);

#endif
