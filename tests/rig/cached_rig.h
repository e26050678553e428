/* cached_rig - for cached's tests: a client, cached and a tiny object store, all stepped in one
 * thread, with a clock that the test moves.
 *
 * The store notes every request in the order of arrival (a "call"). It answers at once. If it is
 * held, it answers only when the test tells it to: in any order, with errors, in part, late. It
 * takes nothing on trust. A page of a write that changes while the write is in flight fails the
 * test. The pages of a read hold rubbish until it is answered. Two writes of one sector at a time
 * are refused. The data that a FLUSH or FUA made stable is kept beside the written data.
 *
 * Contract: one thread. Everything asserts (cmocka's assert_*). After every step of cached all its
 * invariants are checked (cached_check). A cached that asks to be called at once, again and again,
 * without anything happening, fails the test.
 */
#ifndef TESTS_UNIT_CACHED_RIG_H
#define TESTS_UNIT_CACHED_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "peers/cached/life/cached.h"

#define CRIG_MS	      1000000ull
#define CRIG_S	      1000000000ull
#define CRIG_NEVER    UINT32_MAX
#define CRIG_ANY      (-1)
#define CRIG_PAGE     4096u
#define B(n)	      (CRIG_PAGE * (n))		/* bytes of n buckets */

/* A request that the store got. */
struct crig_call {
	uint8_t op, flags;
	uint32_t volume, size;
	uint64_t offset;		/* in the object */
	char target[XSEG_TARGET_MAX];
	struct xreq *r;			/* NULL: answered */
	uint64_t sum;			/* WRITE: of its data when it came */
};

/* A request of the client. */
struct crig_io {
	struct xreq *r;
	uint32_t page, room;		/* its first page among the client's, and how many it has */
	bool used, done;
	int64_t result;
	uint32_t order;			/* it was answered as the n-th */
};

struct crig {
	struct xseg *seg;
	struct peer *store;
	struct peer *peer;		/* cached; NULL while it is dead */
	struct cached *k;
	uint64_t now_ns;
	char text[16384];		/* the last answer to crig_admin() */
};
extern struct crig crig;

/* ---- life: crig_up() first, crig_down() last (if nothing is in flight it looks for leaks) ---- */

/* options: "objects=1 requests=8", or "". memory is 4M and read_ahead 0 unless it says
 * otherwise. "threads=2" is a second port, which polls only as a reactor's does; the test is linked
 * with --wrap=peer_port_kick then. */
void crig_up(const char *options);
int crig_down(void **state);
/* The next cached of that name, not yet serving; what peer_open() says. */
int crig_open(const char *options);
/* As kill -9 does. What it had asked the store is still there. */
void crig_kill(void);
/* An orderly stop with all clean. */
void crig_stop(void);
/* Keeps all but n pages out of use. */
void crig_limit(uint32_t n);
/* Dirty data of objects x0, x1 ... has all chunks, and all of n pages but `free`. Of the other
 * objects that are there the chunks stay. */
void crig_fill(uint32_t n, uint32_t free);

/* ---- time ---- */

/* Steps everybody until nothing more happens at this time. */
void crig_settle(void);
/* Lets that much time pass; cached is called when it asked to be, and at the end. */
void crig_pass(uint64_t ns);
/* Single steps of cached and of the store, for a test that needs an order of its own. Each returns
 * whether it did something. */
bool crig_step_request(void);
bool crig_step_reply(void);
void crig_step_poll(void);
bool crig_step_store(void);

/* ---- the client ---- */

/* Sends; the data of a WRITE is crig_byte(seed, offset). Nobody is stepped. */
struct crig_io *crig_send(enum xseg_op op, const char *name, uint64_t offset, uint32_t size,
	unsigned flags, unsigned seed);
struct crig_io *crig_read(const char *name, uint64_t offset, uint32_t size); /* sends and settles */
/* the same */
struct crig_io *crig_write(const char *name, uint64_t offset, uint32_t size, unsigned seed);
struct crig_io *crig_write_fua(const char *name, uint64_t offset, uint32_t size, unsigned seed);
struct crig_io *crig_op(enum xseg_op op, const char *name, uint64_t offset, uint32_t size);
struct crig_io *crig_flush(uint32_t volume);
/* A write that gives its pages: of `io`, which was answered, again, or of a new one (NULL).
 * Sends. */
struct crig_io *crig_send_give(struct crig_io *io, const char *name, uint64_t offset, uint32_t size,
	unsigned flags, unsigned seed);
/* A read by loan that is read directly, if it can be (then it is done), or sent. The reader is the
 * client's; objects are told apart by one letter. */
struct crig_io *crig_send_direct(const char *name, uint64_t offset, uint32_t size, bool *directly);
/* A LIST with room for one page of names. */
struct crig_io *crig_send_list(const char *prefix, uint64_t cursor);
struct crig_io *crig_send_copy(const char *to, const char *from, uint64_t offset, uint32_t size);
/* What no honest client sends: another hash than its name's; an offset in the object that is not
 * aligned as the volume's. */
struct crig_io *crig_send_wrong_hash(
	enum xseg_op op, const char *name, uint64_t offset, uint32_t size);
struct crig_io *crig_send_apart(
	const char *name, uint64_t offset, uint64_t obj_offset, uint32_t size);
/* Requests sent from now on are of this volume. */
void crig_volume(uint32_t volume);
/* Asserts that it was answered so, and forgets it. */
void crig_expect(struct crig_io *io, int64_t result);
void crig_expect_waits(const struct crig_io *io);
/* The data of a READ, or what a WRITE will send (which may be changed, also after it was sent). */
bool crig_data_is(const struct crig_io *io, uint32_t from, uint32_t len, unsigned seed);
void crig_data_set(struct crig_io *io, unsigned seed);
/* Asserts that a read of this range succeeds and gives the bytes of seed (0: zeroes). */
void crig_expect_data(const char *name, uint64_t offset, uint32_t size, unsigned seed);
uint8_t crig_byte(unsigned seed, uint64_t offset);
bool crig_bytes_are(const uint8_t *data, uint64_t offset, uint32_t size, unsigned seed);
/* An ADMIN line: its result, the text in crig.text. */
int64_t crig_admin(const char *line);
void crig_set(const char *line);	/* "policy=write-through", asserted */
void crig_volume_set(const char *line);		/* "id=1 policy=write-through", asserted */
void crig_volume_status(uint32_t id);		/* into crig.text, asserted */
/* Asserts that this line is answered with that error, in words that have the reason in them. */
void crig_expect_refused(const char *line, int error, const char *reason);
/* The number behind "key=" in crig.text. */
uint64_t crig_number(const char *key);
/* of what crig_volume_status() says, which it asks */
uint64_t crig_volume_number(uint32_t id, const char *key);
bool crig_says(const char *part);

/* of the rig itself */
void crig_client_open(void);
void crig_client_close(void);
bool crig_client_step(void);		/* takes its answers; false: there are none */
bool crig_client_is_quiet(void);	/* nothing of its is out */

/* ---- the store ---- */

void crig_hold(bool hold);		/* false: all that is held is answered, in order */
uint32_t crig_nr_calls(void);		/* in all */
uint32_t crig_nr_held(void);
const struct crig_call *crig_call(uint32_t i);
/* How many calls of that op (CRIG_ANY: any) there were from call `from` on. */
uint32_t crig_count_calls(int op, uint32_t from);
/* The first call from `from` on that is not answered, of that op; CRIG_NEVER: none. */
uint32_t crig_held(int op, uint32_t from);
/* Does it and answers, and everybody is stepped. */
void crig_answer(uint32_t call);
void crig_answer_only(uint32_t call);	/* nobody is stepped */
void crig_fail(uint32_t call, int error);
void crig_fail_only(uint32_t call, int error);
void crig_short(uint32_t call, uint32_t bytes);	/* does so many bytes of it and says so */
/* The next `count` calls of that op (CRIG_ANY: any) that come while it does not hold get that
 * error. */
void crig_fail_next(int op, int error, uint32_t count);
/* A sync that fails leaves nothing of what was not stable: of any object, or, of a write with FUA,
 * of its own. Not what a store has to do, but what a kernel may. */
void crig_store_forgets(void);
/* The at-th call from now on (0: none) gets that error when it comes while the store does not hold,
 * or, 0, has half of it done; with `ever` each one from there on. Of a WRITE that fails so half is
 * done. */
void crig_fault(uint32_t at, int error, bool ever);
/* While the at-th call from now on (0: none) is at the store, which does not hold, the clock goes
 * on by so much. */
void crig_jump(uint32_t at, uint64_t ns);
/* Puts data into the store behind everybody's back. */
void crig_store_fill(const char *name, uint64_t offset, uint32_t size, unsigned seed);
/* Whether the store has those bytes: written, or stable. */
bool crig_stored(const char *name, uint64_t offset, uint32_t size, unsigned seed);
bool crig_stable(const char *name, uint64_t offset, uint32_t size, unsigned seed);

extern const struct peer_class crig_store_class;
void crig_store_reset(void);	/* empty, answers at once, has forgotten all */

/* ---- inside cached ---- */

struct object *crig_object(const char *name);	/* NULL: no entry has that name */
enum bucket_state crig_state(const char *name, uint32_t bucket);
uint64_t crig_slot(const char *name, uint32_t bucket);
uint64_t crig_counter(enum cache_counter n);
struct creq *crig_creq(const struct crig_io *io);
/* How many loads, and how many flushes, may be out at the same time. */
uint32_t crig_share(void);
/* Makes a read of that range present, clean, with the bytes of seed. */
void crig_have_clean(const char *name, uint64_t offset, uint32_t size, unsigned seed);

#define CRIG_T(name) cmocka_unit_test_teardown(name, crig_down)

#endif
