/* seg_rig - segments, peers and short cuts for the tests of libxseg.
 *
 * Contract: everything asserts (cmocka's assert_*): an error here is a failed test. Named segments
 * are removed when the process exits or aborts; a forked child leaves by _exit() and removes
 * nothing.
 */
#ifndef TESTS_UNIT_SEG_RIG_H
#define TESTS_UNIT_SEG_RIG_H

#include "xseg/internal.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEGRIG_SANITIZED 1
#else
#define SEGRIG_SANITIZED 0
#endif

/* A name that no other segment has; the caller makes it. */
const char *segrig_name(void);

/* A small segment: 16 MiB, 64 requests, 16 ports; private, or named and attached. */
extern const struct xseg_config segrig_config;
struct xseg *segrig_private(void);
struct xseg *segrig_private_of(uint32_t nr_requests, uint32_t nr_ports);
const char *segrig_named(struct xseg **seg);
struct xseg *segrig_attach(const char *name);

/* Opened; a server also serves. */
struct xseg_peer *segrig_client(struct xseg *seg, const char *name, uint32_t nr_requests);
struct xseg_peer *segrig_server(struct xseg *seg, const char *name, uint32_t nr_ports,
	uint32_t nr_requests);
struct xport *segrig_port(struct xseg_peer *peer);
/* Opened, of kind memd, and does not serve yet. */
struct xseg_peer *segrig_open(struct xseg *seg, const char *name, uint32_t nr_ports,
	uint32_t nr_requests);
/* What the open that must fail says; it gives a reason. */
int segrig_open_fails(struct xseg *seg, const char *name, const char *kind, uint32_t nr_ports,
	uint32_t nr_requests);
enum xseg_peer_state segrig_state(struct xseg *seg, const char *name);

/* What a successor is handed over, in order: for xseg_peer_recover(). */
struct segrig_taken {
	unsigned nr;
	struct xreq *r[64];
	struct xport *port[64];
	enum xseg_req_state state[64];
};
void segrig_take(struct xport *port, struct xreq *r, void *arg);

/* A request of n whole pages from offset 0 on, with the first pages of the segment: not sent. */
struct xreq *segrig_alloc(struct xport *port, enum xseg_op op, unsigned flags, uint32_t n);
/* Submits and flushes: a request of the port's; one of 4 KiB at page 0 of the pool. */
void segrig_submit(struct xport *port, struct xreq *r, uint32_t peer);
struct xreq *segrig_send(struct xport *port, enum xseg_op op, uint64_t offset, uint32_t peer);
/* The one that must be there, or that nothing is. */
struct xreq *segrig_request(struct xport *port);
struct xreq *segrig_reply(struct xport *port);
/* The same; it is the one that was sent, in the view of who has it now. */
struct xreq *segrig_request_is(struct xport *port, const struct xreq *sent);
struct xreq *segrig_reply_is(struct xport *port, const struct xreq *sent);
void segrig_nothing(struct xport *port);
void segrig_answer(struct xport *port, struct xreq *r, int64_t result);

uint64_t segrig_place(struct xseg *seg, const struct xreq *r);
uint64_t segrig_bad(struct xseg *seg);

/* What a segment has; equal before and after whatever must not leak. */
struct segrig_accounts {
	uint32_t free_requests, free_ports, free_extents, nr_stats, nr_peers;
};
struct segrig_accounts segrig_accounts(struct xseg *seg);
void segrig_same(struct xseg *seg, const struct segrig_accounts *before);

/* xseg_check() finds nothing. */
void segrig_sound(struct xseg *seg);

/* A child that runs fn and exits with what it returns; and its end. */
int segrig_fork(int (*fn)(void *arg), void *arg);
void segrig_kill(int pid);
void segrig_wait(int pid);

/* Nothing can be opened any more, nor the control lock be taken (EMFILE); or again. */
void segrig_descriptors(bool some);

/* A cheap random number; the state is the caller's. */
uint32_t segrig_random(uint64_t *state);

#endif
