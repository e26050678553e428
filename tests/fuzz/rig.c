/* rig - see rig.h. */
#include "tests/fuzz/rig.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "peers/common/say/kv.h"
#include "peers/common/log/log.h"

#define GUARD_BYTES	(1u << 20)
#define CLIENT_REQUESTS 32u

struct rig rig;
char rig_text[4 * XSEG_PAGE_SIZE + 1];

static const char *const client_name[RIG_CLIENTS] = { "evil", "honest" };

/* In the place of peers/common/log/log.c. */
void log_line(struct log_site *site, const char *what, const char *fmt, ...)
{
	(void)site;
	(void)what;
	(void)fmt;
}

/* ---- the segment ---- */

/* Nobody may look at what lies beside the segment. If something does, it stays. */
static void guard(uint8_t *at)
{
	void *got = mmap(at, GUARD_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != MAP_FAILED && got != at)
		munmap(got, GUARD_BYTES);
}

static void segment_make(void **tables)
{
	struct xseg_config cfg = { .memory_bytes = 24u << 20,
		.nr_requests = 160,
		.nr_ports = 8,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	if (xseg_create_private(&cfg, &rig.seg, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	guard(rig.seg->base - GUARD_BYTES);
	guard(rig.seg->base + rig.seg->geo.total_bytes);
	/* used before: so they are cleared when they are handed out */
	for (uint32_t i = 0; i < rig.seg->geo.nr_extents; i++)
		atomic_store(&rig.seg->extents[i].dirty, 1);
	*tables = malloc(rig.seg->geo.off_pages);
	assert(*tables);
	memcpy(*tables, rig.seg->base, rig.seg->geo.off_pages);
}

void rig_begin(void)
{
	static void *tables;
	struct xseg *seg;

	if (!tables)
		segment_make(&tables);
	seg = rig.seg;
	memcpy(seg->base, tables, seg->geo.off_pages);
	memset(seg->views, 0, views_bytes(seg));
	rig = (struct rig){ .seg = seg, .now_ns = 1000 * RIG_S };
}

void rig_end(void)
{
	for (unsigned c = 0; c < RIG_CLIENTS; c++)
		if (rig.client[c])
			rig_client_close(c, XSEG_CLOSE_ABANDON);
	for (unsigned n = RIG_NODES; n-- > 0;)
		if (rig.node[n].p)
			rig_kill(n);
}

/* ---- peers ---- */

void rig_plan(enum rig_node n, const struct peer_class *cls, const char *name,
	const char *downstream, const char *options)
{
	rig.node[n] = (struct rig_peer){
		.cls = cls, .name = name, .downstream = downstream, .options = options
	};
}

static void set_options(const struct rig_peer *n)
{
	struct xseg_error err = { "" };
	char text[256], *cursor = text, *key, *value;

	snprintf(text, sizeof(text), "%s", n->options);
	while ((key = kv_next_word(&cursor, &value)))
		if (opt_set(opt_find(n->cls->opts, key), n->p, value, &err)) {
			fprintf(stderr, "%s: %s\n", key, err.text);
			abort();
		}
}

bool rig_start(enum rig_node node)
{
	struct rig_peer *n = &rig.node[node];
	struct xseg_error err = { "" };

	n->p = peer_create(n->cls);
	assert(n->p);
	snprintf(n->p->name, sizeof(n->p->name), "%s", n->name);
	snprintf(n->p->downstream_name, sizeof(n->p->downstream_name), "%s", n->downstream);
	set_options(n);
	n->p->ports[0].now_ns = rig.now_ns;
	n->serving = false;
	n->next_ns = 0;
	if (peer_open(n->p, rig.seg, &err) == 0)
		return true;
	assert(err.text[0]);	/* a clear error, or none */
	peer_destroy(n->p);
	n->p = NULL;
	return false;
}

void rig_kill(enum rig_node node)
{
	struct rig_peer *n = &rig.node[node];

	peer_close(n->p, XSEG_CLOSE_ABANDON);
	peer_destroy(n->p);
	n->p = NULL;
	n->serving = false;
}

bool rig_client_open(enum rig_client c)
{
	struct xseg_peer_params params = { .name = client_name[c], .kind = "client", .nr_ports = 1,
					   .nr_requests = CLIENT_REQUESTS };
	struct xseg_error err = { "" };

	if (xseg_peer_open(rig.seg, &params, &rig.client[c], &err)) {
		rig.client[c] = NULL;
		assert(err.text[0]);
		return false;
	}
	rig.port[c] = xseg_peer_port(rig.client[c], 0);
	if (xseg_pages_take(rig.client[c], RIG_PAGES, rig.page[c]) == 0)
		return true;
	rig_client_close(c, XSEG_CLOSE_FREE_ARENA);
	return false;
}

void rig_client_close(enum rig_client c, enum xseg_close how)
{
	xseg_peer_close(rig.client[c], how);
	rig.client[c] = NULL;
	rig.port[c] = NULL;
}

/* ---- going on ---- */

bool rig_step(enum rig_node node, enum rig_what what)
{
	struct rig_peer *n = &rig.node[node];
	uint64_t next;
	bool any = false;

	if (!n->p)
		return false;
	for (uint32_t i = 0; i < n->p->nr_ports; i++)
		n->p->ports[i].now_ns = rig.now_ns;
	if (!n->serving) {
		n->serving = what == RIG_POLL && peer_try_serve(n->p);
		return n->serving;
	}
	if (what == RIG_POLL)
		n->next_ns = PEER_NEVER;
	for (uint32_t i = 0; i < n->p->nr_ports; i++) {
		struct peer_port *pp = &n->p->ports[i];

		if (what == RIG_REQUEST) {
			any |= peer_port_step_request(pp);
		} else if (what == RIG_REPLY) {
			any |= peer_port_step_reply(pp);
		} else {
			next = peer_port_step_poll(pp);
			n->next_ns = next < n->next_ns ? next : n->next_ns;
		}
	}
	if (any)
		n->next_ns = 0;
	return any;
}

bool rig_round(void)
{
	bool any = false;

	for (unsigned n = 0; n < RIG_NODES; n++) {
		if (rig.node[n].next_ns <= rig.now_ns)
			rig_step(n, RIG_POLL);
		any |= rig_step(n, RIG_REQUEST);
		any |= rig_step(n, RIG_REPLY);
	}
	return any;
}

/* When somebody wants to be called next. */
static uint64_t next_ns(void)
{
	uint64_t next = PEER_NEVER;

	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].p && rig.node[n].serving && rig.node[n].next_ns < next)
			next = rig.node[n].next_ns;
	return next;
}

/* Masks are hints: who scribbled over one may have taken a mark with it. So everybody looks at all
 * lanes before it sleeps. */
static bool look_again(void)
{
	bool any = false;

	for (unsigned c = 0; c < RIG_CLIENTS; c++)
		if (rig.port[c])
			/* what it finds it will be given when it asks */
			xseg_port_has_work(rig.port[c]);
	for (unsigned n = 0; n < RIG_NODES; n++)
		for (uint32_t i = 0;
			rig.node[n].p && rig.node[n].serving && i < rig.node[n].p->nr_ports; i++)
			any |= xseg_port_has_work(rig.node[n].p->ports[i].port);
	return any;
}

bool rig_settle(unsigned rounds)
{
	uint64_t next;
	unsigned quiet = 0;

	while (rounds--) {
		for (unsigned c = 0; c < RIG_CLIENTS; c++)
			if (rig.port[c])
				xseg_port_flush(rig.port[c]);
		if (rig_round() || look_again()) {
			quiet = 0;
			continue;
		}
		next = next_ns();
		if (next == PEER_NEVER && ++quiet > RIG_NODES)
			return true;
		rig.now_ns = next == PEER_NEVER || next <= rig.now_ns ? rig.now_ns + 1000 : next;
	}
	return false;
}

/* ---- administration ---- */

bool rig_serves(const char *name)
{
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].cls && strcmp(rig.node[n].name, name) == 0)
			return rig.node[n].serving;
	return false;
}

int64_t rig_admin(const char *peer, const char *line)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r = port && rig_serves(peer) ? xseg_req_alloc(port) : NULL, *done = NULL;
	int64_t result;

	if (!r)
		return -EAGAIN;
	r->op = XSEG_OP_ADMIN;
	r->nr_pages = 4;
	r->size = 4 * XSEG_PAGE_SIZE;
	memcpy(r->page, rig.page[RIG_HONEST] + RIG_PAGES - 4, 4 * sizeof(r->page[0]));
	xseg_req_write_data(rig.seg, r, 0, line, (uint32_t)strlen(line) + 1);
	if (xseg_req_submit(port, r, xseg_peer_find(rig.seg, peer))) {
		xseg_req_free(port, r);
		return -ENOTCONN;
	}
	for (unsigned i = 0; i < 30 && !done; i++) {
		rig_settle(20);
		xseg_port_replies(port, &done, 1);
	}
	if (!done)
		return -ETIMEDOUT;
	result = done->result;
	xseg_req_read_data(rig.seg, done, 0, rig_text, sizeof(rig_text) - 1);
	xseg_req_free(port, done);
	return result;
}
