/* kv_rig - a model of kvd on a thread over a private segment, for the tests of the kv library: an
 * array of keys, and zones in memory. It answers by kv_wire.h, and badly where it is told to.
 *
 * Contract: the tests' thread. Everything asserts: an error here is a failed test.
 */
#ifndef TESTS_UNIT_KV_RIG_H
#define TESTS_UNIT_KV_RIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "xseg/kv.h"

#define KVRIG_SECOND 1000000000ull
#define KVRIG_PATIENCE_NS (600 * KVRIG_SECOND)	/* for what has to come */

/* What the model does wrong. */
enum kv_fault {
	KVF_NONE,
	KVF_VALUE,				/* a byte of the value, but not after a LOOK */
	KVF_VALUE_ALWAYS,			/* a byte of the value */
	KVF_HEADER,				/* a byte of the header, but not after a LOOK */
	/* the record of another key, with good sums, but not after a LOOK */
	KVF_KEY,
	KVF_BEYOND,				/* notes that lead beyond the answer */
	KVF_GROWS,				/* each answer says that the record is longer */
	KVF_SHORT,			/* the record takes fewer pages than were asked for */
	KVF_SILENT,				/* nothing is answered, until this is over */
	KVF_UNTOLD,				/* no outcome of changes is written */
	KVF_SCAN_NR, KVF_SCAN_KEY, KVF_SCAN_BYTES,	/* a scan's numbers are wrong */
	KVF_ESTALE, KVF_EIO,
	KVF_PIECE,				/* a byte of the next piece that is read */
	KVF_PIECE_ALWAYS,
	KVF_PIECE_SHORT,			/* less was read than was asked for */
	KVF_FORGET_ONCE,			/* all handles are gone at the next part or piece */
	KVF_FORGET,				/* no handle is known */
	KVF_COMMIT_EIO,				/* the next COMMIT finds that a part was lost */
	KVF_NO_HANDLE,
	KVF_HOLD_STALE,				/* the next HOLD finds another version */
	KVF_LIST				/* lists of large values make no sense */
};

struct kvmodel {
	_Atomic uint32_t fault;
	_Atomic uint32_t gets, looks, changes, flushes, scans, forced, parts, pieces, once;
	_Atomic uint32_t time;			/* of expiry */
	_Atomic uint32_t held;			/* requests that KVF_SILENT keeps, now */
	_Atomic uint32_t scan_nr;		/* keys told by one scan; 0: as many as fit */
};

struct kvrig {
	struct xseg *seg;
	struct xseg_kv *kv;
	struct xseg_kv_queue *q;		/* of depth 4, rooms of 16 KiB */
	struct kvmodel *model;
};

/* For cmocka: *state is a struct kvrig. */
int kvrig_setup(void **state);
int kvrig_teardown(void **state);
#define KV_TEST(name) cmocka_unit_test_setup_teardown(name, kvrig_setup, kvrig_teardown)

void kvrig_stop_kvd(struct kvrig *g);
void kvrig_start_kvd(struct kvrig *g);
/* For which kvd is soon gone; 0: it never is, however long the machine stands still. */
void kvrig_reopen(struct kvrig *g, uint64_t gone_ns);
void kvrig_reopen_with(struct kvrig *g, uint64_t gone_ns, uint32_t large_rooms);

static inline int kvrig_put(struct kvrig *g, const char *key, const void *value, uint64_t bytes)
{
	uint32_t n = 0;

	while (key[n])
		n++;
	return xseg_kv_put(g->q, key, n, value, bytes);
}

static inline int64_t kvrig_get(struct kvrig *g, const char *key, void *buf, uint64_t size)
{
	uint32_t n = 0;

	while (key[n])
		n++;
	return xseg_kv_get(g->q, key, n, buf, size);
}

#endif
