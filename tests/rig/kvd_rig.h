/* kvd_rig - kvd on memd and a client, stepped in one thread with a clock and a date of the test's.
 *
 * Contract: everything asserts (cmocka's assert_*). One rig at a time: `kr`. A kill is between two
 * callbacks; tests/system/kvd_points.sh kills within them.
 */
#ifndef TESTS_RIG_KVD_RIG_H
#define TESTS_RIG_KVD_RIG_H

#include "peers/common/runtime/peer.h"
#include "peers/kvd/kvd.h"
#include "tests/rig/kv_wire_client.h"

#define KR_SLOTS 8u				/* of pages, for requests that are out */
#define KR_PAGES 257u

struct kr {
	struct xseg *seg;
	struct peer *store, *kvd;
	struct xseg_peer *client;
	struct xport *port;
	uint32_t *page;				/* KR_SLOTS * KR_PAGES */
	struct kw_log log;
	uint64_t now_ns;
	uint32_t date_s;
	bool store_stands;			/* it answers nothing */
	uint8_t record[XSEG_REQ_BYTES];
	char text[320];				/* why an open failed */
};
extern struct kr kr;

/* A segment and memd; options as "key=value ...", beside its memory. */
void kr_begin(const char *memd_options);
void kr_end(void);
/* For cmocka: memd that tracks flushes, and kvd with a small log; and the end of both. */
int kr_setup(void **state);
int kr_teardown(void **state);
/* Starts kvd, with a small log if the options do not say otherwise. 0, or why it cannot be. */
int kr_open(const char *options);
/* The same; waits until it is open, and learns its id. */
void kr_start(const char *options);
void kr_kill(void);
void kr_stop(void);				/* in order */
/* kvd is killed, and all that the store has not flushed, and the segment's memory, are lost. */
void kr_power_cut(void);

/* One callback of each, if there is work; false: there was none. */
bool kr_step(void);
void kr_settle(void);				/* until nothing goes on at this time */
void kr_pass(uint64_t ns);

/* Submits, and steps until the answer is back. */
int64_t kr_call(struct xreq *r);
void kr_submit(struct xreq *r);
struct xreq *kr_reply(void);			/* NULL: none is back */
uint32_t *kr_slot(uint32_t i);

/* One change or get, until it is answered. Outcomes: the change's result, or the batch's error. */
int kr_change(struct kw_change *c, uint32_t nr, bool fua);
int kr_put(const char *key, const char *value);
int kr_delete(const char *key);
/* As a client's library does: with a small guess, then the size, then LOOK. */
int kr_get(const char *key, struct kw_value *v);
bool kr_has(const char *key, const char *value);
int kr_flush(void);
uint64_t kr_counter(enum kvd_stat what);
struct kvd *kr_kvd(void);

#endif
