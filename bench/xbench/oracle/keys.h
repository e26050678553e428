/* keys - what each key of a kvd may hold, and what operations on it may answer.
 *
 * The rule. A key is an atomic register, as a sector is (oracle.h): its values are unique, and that
 * it is absent is one more value, as zeroes are of a sector. A get is a read, a put or a delete is
 * a write. What a put, an add, a cas, a delete or an incr proves beside that:
 *
 *   add, done       the key was absent at some time while the add was out: a read of "absent"
 *   cas, done       the key had that version: a read of that version's value
 *   delete, -ENOENT the key was absent: a read of "absent", and no write
 *   add, cas, refused   no write. With nothing else out on the key meanwhile, and no failed change
 *                   before, its state is known, so a refusal without a cause is wrong, and so is an
 *                   add, a cas or a delete that is done without one
 *
 * Versions. A change has a larger version than all changes of the key that were answered before it
 * was issued. A get has no smaller version than any that an operation had been told when the get
 * was issued. No change of the key has a version between the two of a cas.
 *
 * Counters. Only incr by 1 changes them. So a number is larger than each that was told when the
 * incr was issued. It is no larger than the number of incrs that were issued, and no two incrs have
 * the same. At the end a counter is no smaller than the number of incrs that were done.
 *
 * Wrong answers:
 *   stale     an older value or version, and the newer one came back later; a cas was done on a
 *             version that was not the last
 *   undone    an older value, for good: a change that was answered has been taken back; a number
 *             that is too small
 *   lost      absent, for good, and no delete explains it
 *   torn      the checksum is wrong, or the value consists of two
 *   foreign   the value of another key, store or run; one version with two values
 *   repeated  a change was done though it was refused, or was refused without a cause, as one that
 *             is done twice is; a number that is too large, or was told twice
 * Until the end, undone and lost ones turn into stale ones if the newer value is read.
 *
 * Contract: as oracle.h. A struct xb_try belongs to one operation; its begin comes before the
 * operation is submitted, its end after it is back. A begin that returned false need not have an
 * end. `slot` is the number of an operation's place over all jobs. Spins on a lock of a part of the
 * keys; allocates nothing.
 *
 * Invariants:
 *   K1  knowing less (an end not yet reported, a failed change) makes fewer things wrong,
 *       never more
 *   K2  each wrong answer is counted once
 */
#ifndef BENCH_XBENCH_KEYS_H
#define BENCH_XBENCH_KEYS_H

#include "bench/xbench/oracle/oracle.h"
#include "bench/xbench/oracle/state.h"
#include "bench/xbench/oracle/value.h"
#include "bench/xbench/plan/kv_gen.h"

enum xb_key_wrong {
	XB_KEY_STALE, XB_KEY_UNDONE, XB_KEY_LOST, XB_KEY_TORN, XB_KEY_FOREIGN, XB_KEY_REPEATED,
	XB_NR_KEY_WRONG
};
extern const char *const xb_key_wrong_names[XB_NR_KEY_WRONG];

struct xb_keys;

/* An operation, while it is out. */
struct xb_try {
	uint32_t slot;				/* the caller's */
	bool again;		/* the caller's: a second look, which counts nothing wrong */
	/* by the begin functions */
	enum xb_op op;
	uint64_t key, value;			/* value: that it writes */
	uint64_t issued;			/* the oracle's time of its write */
	uint64_t read_issued;			/* of its read; 0: it has none */
	uint64_t base, base_value;		/* cas */
	uint64_t floor;				/* the largest version, or number, told before */
	uint32_t begun;				/* changes of the key, this one included */
	uint8_t was;				/* the key's state, if this is alone */
	bool alone;				/* no other change was out */
};

/* What came back. */
struct xb_told {
	int64_t result;				/* 0 or more, or a negative errno */
	uint64_t version;			/* 0: not told */
	uint64_t number;			/* incr */
};

/* What an earlier run left is in the file of verify_state, with verify_only. identity: of the
 * store. NULL with a line in err, *rc the errno. */
struct xb_keys *xb_keys_create(const struct xb_options *o, uint64_t identity, int *rc,
			       struct xseg_error *err);
void xb_keys_destroy(struct xb_keys *k);

/* No more changes may begin: no room to note what they may leave. */
bool xb_keys_is_full(struct xb_keys *k);

/* PUT, ADD, CAS (of version `base`), DELETE. value: for a DELETE not looked at. */
void xb_keys_change_begin(struct xb_keys *k, struct xb_try *t, enum xb_op op, uint64_t key,
			  uint64_t value, uint64_t base);
/* Returns how many wrong answers that shows; so do the others. */
uint32_t xb_keys_change_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told);

/* READ, EXISTS */
void xb_keys_get_begin(struct xb_keys *k, struct xb_try *t, enum xb_op op, uint64_t key);
/* seen: of a get that is back with a value. */
uint32_t xb_keys_get_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told,
			 const struct xb_seen *seen);

/* INCR of key `keys` + number of the counter */
void xb_keys_incr_begin(struct xb_keys *k, struct xb_try *t, uint64_t key);
uint32_t xb_keys_incr_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told);
/* A counter as it is at the end, when nothing is out; absent: it is not there. */
uint32_t xb_keys_counter(struct xb_keys *k, uint64_t key, bool absent, uint64_t number);

/* What stamps are to say, and are compared with. */
void xb_keys_stamp(const struct xb_keys *k, void *value, uint32_t bytes, uint64_t key,
		   uint64_t tag);
const struct xb_whose *xb_keys_whose(const struct xb_keys *k);

/* What a read back must look at: what is known of, or only what is undone or lost so far. */
bool xb_keys_is_known(struct xb_keys *k, uint64_t key);
bool xb_keys_is_suspect(struct xb_keys *k, uint64_t key);

uint64_t xb_keys_wrong(struct xb_keys *k, enum xb_key_wrong wrong);
uint64_t xb_keys_wrong_in_all(struct xb_keys *k);
/* Counts and the first findings, for people. Nothing if all is right. */
void xb_keys_print(struct xb_keys *k);
/* Writes the state file. */
int xb_keys_save(struct xb_keys *k, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
