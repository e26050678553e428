/* xbench_keys_rig - for the tests of what keys may hold: one xb_keys, and operations on one of its
 * keys, step by step. Included once by each test. */
#ifndef TESTS_RIG_XBENCH_KEYS_RIG_H
#define TESTS_RIG_XBENCH_KEYS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "bench/xbench/oracle/keys.h"

#define NR_KEYS	 256u
#define NR_SLOTS 64u
#define KEY	 7u
#define V(n)	 xb_value(0, n)

static struct xb_options opts;
static struct xb_keys *keys;

static inline int begin_keys(void **state)
{
	struct xseg_error err;
	int rc;

	(void)state;
	memset(&opts, 0, sizeof(opts));
	memcpy(opts.kv.kvd, "kvd", 4);
	opts.kv.keys = NR_KEYS;
	opts.kv.key_size = 16;
	opts.kv.value_size = opts.kv.value_max = 1024;
	opts.verify = 1;
	opts.numjobs = 1;
	opts.iodepth = NR_SLOTS;
	opts.mix[XB_INCR] = 10;
	keys = xb_keys_create(&opts, 4711, &rc, &err);
	return keys ? 0 : -1;
}

static inline int end_keys(void **state)
{
	(void)state;
	xb_keys_destroy(keys);
	return 0;
}

/* What a get finds: a value of this run, or of another, or nothing. */
static inline struct xb_seen seen_of(uint64_t key, uint64_t value, enum xb_kind kind)
{
	return (struct xb_seen){ .value = value, .kind = kind, .offset = xb_value_offset(key),
		.run = xb_keys_whose(keys)->run };
}

static inline uint32_t get_end_kind(
	struct xb_try *t, uint64_t value, uint64_t version, enum xb_kind kind)
{
	struct xb_seen seen = seen_of(t->key, value, kind);

	return xb_keys_get_end(keys, t, &(struct xb_told){ .result = 100, .version = version },
		&seen);
}

static inline uint32_t get_end(struct xb_try *t, uint64_t value, uint64_t version)
{
	return get_end_kind(t, value, version, XB_SEEN_OURS);
}

static inline uint32_t get_end_absent(struct xb_try *t)
{
	return xb_keys_get_end(keys, t, &(struct xb_told){ .result = -ENOENT }, NULL);
}

static inline uint32_t change_end(struct xb_try *t, int64_t result, uint64_t version)
{
	return xb_keys_change_end(
		keys, t, &(struct xb_told){ .result = result, .version = version });
}

static inline uint64_t wrong(enum xb_key_wrong kind)
{
	return xb_keys_wrong(keys, kind);
}

#endif
