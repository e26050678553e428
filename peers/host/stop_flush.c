/* stop_flush - see stop_flush.h. */
#include "peers/host/stop_flush.h"

#include <errno.h>
#include <string.h>

#include "peers/common/runtime/client_peer.h"
#include "peers/common/say/dirty.h"
#include "peers/common/say/words.h"

#define STOP_FLUSH_NAME "supervisor.flush"

int stop_flush_open(struct stop_flush *f, struct xseg *seg)
{
	struct xseg_peer_params params = { .name = STOP_FLUSH_NAME,
					   .kind = "client",
					   .nr_ports = 1,
					   .nr_requests = 4 };

	*f = (struct stop_flush){ .seg = seg, .peer = XSEG_NONE };
	return client_peer_open(seg, &params, &f->client, NULL);
}

void stop_flush_close(struct stop_flush *f)
{
	if (f->client)
		xseg_peer_close(f->client, XSEG_CLOSE_FREE_ARENA);
	f->client = NULL;
	f->r = NULL;
}

void stop_flush_forget(struct stop_flush *f)
{
	memset(f->flushed, 0, sizeof(f->flushed));
}

/* Whether a FLUSH would be answered, and with what the cache has. One that is opening has what its
 * predecessor left. */
static bool is_to_flush(struct stop_flush *f, const struct xseg_peer_info *p)
{
	if (!f->client || strcmp(p->kind, "cached") || p->downstream == XSEG_NONE ||
		peer_word_stopping(p) || f->flushed[p->index] == p->generation)
		return false;
	return p->state == XSEG_PEER_LIVE ||
	       (p->state == XSEG_PEER_OPENING && dirty_bytes_of(f->seg, p->index));
}

static void send(struct stop_flush *f)
{
	struct xport *port = xseg_peer_port(f->client, 0);
	struct xreq *r = xseg_req_alloc(port);

	if (!r)
		return;
	r->op = XSEG_OP_FLUSH;
	if (xseg_req_submit(port, r, f->peer)) {
		xseg_req_free(port, r);
		return;
	}
	xseg_port_flush(port);
	f->r = r;
}

/* True: the FLUSH that is out was answered. */
static bool was_answered(struct stop_flush *f, int64_t *result)
{
	struct xport *port = xseg_peer_port(f->client, 0);
	bool answered = false;
	struct xreq *r;

	while (xseg_port_replies(port, &r, 1)) {
		answered |= r == f->r;
		if (r == f->r)
			*result = r->result;
		xseg_req_free(port, r);
	}
	if (answered)
		f->r = NULL;
	return answered;
}

/* F3. What is below it may be off the path, too, which a cache that is clean does not mind. A FLUSH
 * also fails over data of writes that were answered with an error: no stop is refused for that, and
 * whatever else the FLUSH has failed for is dirty again before it is answered. */
static bool has_flushed(struct stop_flush *f, uint32_t peer, int64_t result)
{
	if (result >= 0 || result == -EBUSY)
		return true;
	return !dirty_bytes_of(f->seg, peer) &&
	       (result == -ENOTCONN || unpromised_bytes_of(f->seg, peer));
}

int stop_flush_run(struct stop_flush *f, const struct xseg_peer_info *peer, uint64_t now_ms)
{
	int64_t result;

	if (!is_to_flush(f, peer))
		return STOP_FLUSH_DONE;
	if (f->peer != peer->index) {
		/* what is out at another one is freed when it is answered */
		f->peer = peer->index;
		f->r = NULL;
		f->tries = 0;
		f->next_ms = 0;
	}
	if (!f->r && now_ms >= f->next_ms)
		send(f);
	if (!was_answered(f, &result))
		return STOP_FLUSH_WAITS;
	if (has_flushed(f, peer->index, result)) {
		f->flushed[peer->index] = peer->generation;
		f->tries = 0;
		return STOP_FLUSH_DONE;
	}
	f->next_ms = now_ms + STOP_FLUSH_PAUSE_MS;
	if (++f->tries < STOP_FLUSH_TRIES)
		return STOP_FLUSH_WAITS;
	f->tries = 0;
	return (int)result;
}
