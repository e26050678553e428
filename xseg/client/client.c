/* client - clients of the segment, for volumes and stores of values, and memory of theirs.
 *
 * A queue of a program's is a peer of its own, of kind "client", with one port. So threads share
 * nothing but the server. If a client ends or is killed, the segment knows its remains by that
 * peer.
 *
 * Contract: begin, end and memory take the control lock, and wait for it for as long as the caller
 * has said (xs_wait_limit()). Any thread may begin and end a client, but not while another thread
 * uses it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xseg/client/client.h"

/* ---- clients ----------------------------------------------------------------------------- */

/* Of as many names as there are peers, and one more, one is free: others may be those of a process
 * of the same pid, which is dead, or of another container. */
int xs_client_open(
	struct xseg *seg, uint32_t nr_requests, struct xseg_peer **peer, struct xseg_error *err)
{
	static _Atomic uint32_t last;
	struct xseg_peer_params params = {
		.kind = "client", .nr_ports = 1, .nr_requests = nr_requests, .leaves_reserve = true
	};
	char name[XSEG_NAME_MAX];
	int rc = -EEXIST;

	for (uint32_t i = 0; i <= xseg_nr_peers(seg) && rc == -EEXIST; i++) {
		snprintf(name, sizeof(name), "io.%d.%u", (int)getpid(),
			atomic_fetch_add_explicit(&last, 1, memory_order_relaxed));
		params.name = name;
		rc = xseg_peer_open(seg, &params, peer, err);
	}
	return rc;
}

int xs_client_begin(struct xs_client *c, uint32_t nr_requests, struct xseg_error *err)
{
	int rc;

	c->seg = c->server->seg;
	rc = xs_client_open(c->seg, nr_requests, &c->peer, err);
	if (!rc)
		c->port = xseg_peer_port(c->peer, 0);
	return rc;
}

struct xreq *xs_client_request(struct xs_client *c, void *cookie, struct xseg_error *err)
{
	struct xreq *r = xseg_req_alloc(c->port);

	if (!r)
		xseg_fail(err, -EPROTO,
			"segment '%s' gives fewer requests than it promised; see 'xseg -s %s "
			"check'", xseg_name(c->seg), xseg_name(c->seg));
	else
		r->cookie = cookie;
	return r;
}

static void regions_free(struct xs_client *c)
{
	struct region *m;

	while ((m = c->regions)) {
		c->regions = m->next;
		/* in a forked child something else may be there */
		if (!xs_is_forked(c->seg))
			munmap(m->base, m->bytes);
		free(m);
	}
}

void xs_client_end(struct xs_client *c)
{
	uint64_t before = xs_wait_limit(c->server->timeout_ns);

	if (c->peer)
		xseg_peer_close(c->peer, XSEG_CLOSE_FREE_ARENA);
	xs_wait_limit(before);
	regions_free(c);
}

/* It must look so for a while: one that is being restarted does for a moment. */
void xs_client_look(struct xs_client *c)
{
	uint64_t now = xs_now_ns();

	if (c->lost || c->nr_sent == 0 || now - c->looked_ns < LOOK_NS)
		return;
	c->looked_ns = now;
	if (xs_server_is_lost(c->server, now, &c->gone))
		c->cls->lose(c);
}

/* ---- memory ------------------------------------------------------------------------------ */

static void pages_give(struct xs_client *c, const struct region *m, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i += XSEG_EXTENT_PAGES)
		xseg_pages_give(c->peer, m->page[i]);
}

struct region *xs_region_add(struct xs_client *c, size_t bytes, int *rc)
{
	uint64_t nr = (bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_PAGES;
	struct region *m;
	void *base;

	*rc = -ENOMEM;
	if (nr == 0 || nr > xseg_nr_pages(c->seg))
		return NULL;
	m = malloc(sizeof(*m) + nr * sizeof(m->page[0]));
	if (!m)
		return NULL;
	*rc = xseg_pages_take(c->peer, (uint32_t)nr, m->page);
	if (*rc)
		goto out_free;
	*rc = xs_pages_map(c->seg, m->page, (uint32_t)nr, &base);
	if (*rc)
		goto out_give;
	m->base = base;
	m->bytes = nr * XSEG_PAGE_SIZE;
	m->next = c->regions;
	c->regions = m;
	return m;
out_give:
	pages_give(c, m, nr);
out_free:
	free(m);
	return NULL;
}

struct region *xs_client_memory(struct xs_client *c, size_t bytes, uint32_t depth,
	const char *option, int *rc, struct xseg_error *err)
{
	struct region *m = xs_region_add(c, bytes, rc);

	if (!m)
		xseg_fail(err, *rc,
			"segment '%s' has less than the %zu MiB left that a queue of depth %u "
			"needs; use a smaller depth or %s, or make it with more memory",
			xseg_name(c->seg), (bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * 2,
			depth, option);
	return m;
}

/* What is lost may be written yet: it goes back with the peer. */
void xs_region_drop(struct xs_client *c, const void *base)
{
	struct region **at = &c->regions, *m;

	while (*at && (*at)->base != base)
		at = &(*at)->next;
	m = *at;
	if (!m || c->lost || xs_is_forked(c->seg))
		return;
	*at = m->next;
	pages_give(c, m, m->bytes / XSEG_PAGE_SIZE);
	munmap(m->base, m->bytes);
	free(m);
}

const struct region *xs_region_of(const struct xs_client *c, const uint8_t *at)
{
	const struct region *m = c->regions;

	while (m && (at < m->base || at >= m->base + m->bytes))
		m = m->next;
	return m;
}
