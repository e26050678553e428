/* kv_wire_link - the link of a program of tests/tools to a kvd: it attaches, submits requests and
 * waits for their answers.
 *
 * Contract: one link a program, `kw`, used by one thread. A call that fails prints the reason and
 * ends the program with exit code 1.
 */
#ifndef TESTS_RIG_KV_WIRE_LINK_H
#define TESTS_RIG_KV_WIRE_LINK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/rig/kv_wire_client.h"

#define KW_SLOT_PAGES 257u			/* of the largest request */

struct kw_link {
	struct xseg *seg;
	struct xseg_peer *me;
	struct xport *port;
	uint32_t server;
	uint32_t *page;				/* of nr_slots slots */
	uint32_t piece_bytes;			/* of kvd's KV_INFO, as the log */
	struct kw_log log;
};
static struct kw_link kw;

static inline void kw_die(const char *what, int64_t rc)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror((int)(rc < 0 ? -rc : rc)));
	exit(1);
}

static inline uint32_t *kw_slot(uint32_t i)
{
	return kw.page + i * KW_SLOT_PAGES;
}

static inline void kw_submit(struct xreq *r)
{
	int rc = xseg_req_submit(kw.port, r, kw.server);

	if (rc)
		kw_die("submit", rc);
}

/* The next answered request, of whichever was submitted. */
static inline struct xreq *kw_wait(void)
{
	struct xreq *r;

	xseg_port_flush(kw.port);
	while (!xseg_port_replies(kw.port, &r, 1))
		xseg_port_wait(kw.port, 100000000);
	return r;
}

/* Submits the only request that is out, and waits; its result. */
static inline int64_t kw_call(struct xreq *r)
{
	kw_submit(r);
	return kw_wait()->result;
}

static inline void kw_learn_log(void)
{
	struct xreq *r = xseg_req_alloc(kw.port);
	struct kv_info info;

	kw_query(kw.seg, r, &kw.log, &(struct kv_query){ .kind = KV_INFO }, NULL, kw.page, 1);
	if (kw_call(r) < 0)
		kw_die("info", r->result);
	xseg_req_read_data(kw.seg, r, 0, &info, sizeof(info));
	kw.log.id = info.id;
	memcpy(kw.log.uuid, info.uuid, sizeof(kw.log.uuid));
	kw.piece_bytes = info.piece_bytes;
	xseg_req_free(kw.port, r);
}

static inline void kw_attach(
	const char *segment, const char *kvd, uint32_t nr_requests, uint32_t nr_slots)
{
	struct xseg_peer_params params = { .kind = "client", .nr_ports = 1,
		.nr_requests = nr_requests };
	uint32_t nr = nr_slots * KW_SLOT_PAGES;
	struct xseg_error err;
	char name[XSEG_NAME_MAX];

	snprintf(name, sizeof(name), "%s.%d", program_invocation_short_name, (int)getpid());
	params.name = name;
	if (xseg_attach(segment, 0, &kw.seg, &err) ||
		xseg_peer_open(kw.seg, &params, &kw.me, &err)) {
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, err.text);
		exit(1);
	}
	kw.port = xseg_peer_port(kw.me, 0);
	kw.page = malloc(xseg_pages_round(nr) * sizeof(*kw.page));
	if (!kw.page || xseg_pages_take(kw.me, nr, kw.page))
		kw_die("memory", ENOMEM);
	kw.server = xseg_peer_find(kw.seg, kvd);
	if (kw.server == XSEG_NONE)
		kw_die(kvd, ENOENT);
	kw_learn_log();
}

static inline void kw_detach(void)
{
	xseg_peer_close(kw.me, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(kw.seg);
}

#endif
