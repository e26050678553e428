/* client_rig - a real stack on threads over a private segment, for the tests of volumes and queues:
 * memd, cached above it, volumed on top.
 *
 * Contract: the tests' thread. Everything asserts: an error here is a failed test. cached is there
 * to lend.
 */
#ifndef TESTS_UNIT_CLIENT_RIG_H
#define TESTS_UNIT_CLIENT_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "xseg/volume.h"

#define CLIENTRIG_SECOND 1000000000ull
/* For what has to come: less than what tests/run.sh allows a test, so that a failure names its
 * line. No test depends on it. */
#define CLIENTRIG_PATIENCE_NS (600 * CLIENTRIG_SECOND)

struct clientrig {
	struct xseg *seg;
	struct xseg_volume *v;			/* "disk", of 16 MiB, in objects of 1 MiB */
	struct xseg_queue *q;			/* of depth 4, 64 KiB each */
};

/* The volume and the queue anew, for which volumed is soon gone; 0: it never is, however long the
 * machine stands still. */
void clientrig_reopen(struct clientrig *g, uint64_t gone_ns);

/* For cmocka: *state is a struct clientrig. */
int clientrig_setup(void **state);
int clientrig_teardown(void **state);
#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(name, clientrig_setup, clientrig_teardown)

void clientrig_stop_volumed(struct clientrig *g);
void clientrig_start_volumed(struct clientrig *g, uint32_t threads);
/* A command to a peer, which succeeds. */
void clientrig_admin(struct clientrig *g, const char *peer, const char *line);
/* A counter; what peers count they count after they have answered: waits until it is `value`, or
 * more. */
uint64_t clientrig_count(struct clientrig *g, const char *name, const char *key);
uint64_t clientrig_count_reaches(
	struct clientrig *g, const char *name, const char *key, uint64_t value);
/* A counter of a peer of one thread: all is in it that was answered until now, and that this thread
 * saw. */
uint64_t clientrig_count_all(struct clientrig *g, const char *peer, const char *key);

/* One I/O at a time, through g->q. */
int64_t clientrig_do(
	struct clientrig *g, enum xseg_op op, uint64_t offset, uint64_t size, void *buf);
void clientrig_fill(uint8_t *buf, uint64_t offset, uint64_t size, unsigned seed);
/* What is read there is what clientrig_fill() makes. */
void clientrig_expect(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed);
void clientrig_expect_bytes(const uint8_t *buf, uint64_t offset, uint64_t size, unsigned seed);
void clientrig_expect_zeroes(struct clientrig *g, uint64_t offset, uint64_t size);
/* Waits for it. */
int64_t clientrig_wait(struct xseg_queue *q, struct xseg_io *io);

#endif
