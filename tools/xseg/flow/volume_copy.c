/* volume_copy - see volume_copy.h.
 *
 * Up to 16 objects are copied at once, each by one COPY after the other: a request has 1 MiB at
 * most. An object that the source has not got is answered with ENOENT, and stays a hole of the
 * target. The store, or the cache, moves the data; it does not come here.
 *
 *   object     to         when                                             by
 *   IDLE       OUT        there is one more to be copied                   fill
 *   OUT        OUT        a piece of it is done, and more follow           answered
 *   OUT        IDLE       all of it is done, or it is none, or it failed   answered
 *
 * Invariants
 *   C1  After an error, or when time is over, nothing more is sent. What is out is waited for, so
 *       that the target can be removed.
 *   C2  At the end the source must still be there: objects of one that was removed by force look
 *       like holes.
 */
#include "tools/xseg/flow/volume_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/xseg/base/out.h"

#define MAX_OUT	   16u
#define WAIT_NS	   (TOOL_SECOND / 10)
#define STALL_NS   (5 * TOOL_SECOND)
#define USERS_TEXT 512

/* An object that is being copied. */
struct copied {
	struct xreq *r;
	uint64_t end;				/* in bytes of the volume */
	uint64_t data_bytes;
};

struct copier {
	const struct volume_ref *from, *to;
	struct xseg_peer *peer;
	struct xport *port;
	uint32_t page[XSEG_EXTENT_PAGES];
	uint64_t object_bytes, next;		/* bytes of the source that were begun */
	uint64_t data_bytes, start_ns;
	uint32_t nr_out;
	struct copied object[MAX_OUT];
	int64_t error;
	uint64_t error_offset;
	struct tool_span gone, lacks;		/* volumed is gone; what it needs is */
};

/* ---- life -------------------------------------------------------------------------------- */

static int copier_open(struct copier *m)
{
	struct xseg_error err = { "" };
	char name[XSEG_NAME_MAX];
	int rc;

	snprintf(name, sizeof(name), "xseg.%d.copy", (int)getpid());
	rc = xseg_peer_open(m->from->c->seg,
		&(struct xseg_peer_params){
			.name = name, .kind = "client", .nr_ports = 1, .nr_requests = MAX_OUT },
		&m->peer, &err);
	if (rc)
		return tool_fail_errno(rc, &err, "end other clients, or make a larger segment",
			"volume copy %s", m->from->name);
	m->port = xseg_peer_port(m->peer, 0);
	rc = xseg_pages_take(m->peer, MAX_OUT, m->page);
	if (rc)
		return tool_fail_errno(rc, NULL, "end other clients, or make a larger segment",
			"volume copy %s: 2 MiB of memory for its requests", m->from->name);
	xseg_client_volume_set(m->peer, m->from->peer, m->from->id);
	return TOOL_DONE;
}

static int refuse_users(const struct copier *m)
{
	char users[USERS_TEXT];

	if (!client_other_users(m->from->c, m->from->peer, m->from->id, users, sizeof(users)))
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"volume copy %s: it is in use by%s; end them first, or add --force and have a copy "
		"of no one moment",
		m->from->name, users);
}

/* ---- requests ---------------------------------------------------------------------------- */

static void note_error(struct copier *m, uint64_t offset, int64_t error)
{
	if (m->error && m->error_offset < offset)
		return;
	m->error = error;
	m->error_offset = offset;
}

/* Sends the piece that begins there. */
static void piece_send(struct copier *m, struct copied *o, uint64_t offset)
{
	uint64_t left = o->end - offset;
	uint32_t page = m->page[o - m->object];
	struct xreq *r = xseg_req_alloc(m->port);
	int rc = r ? 0 : -ENOBUFS;

	if (r) {
		r->op = XSEG_OP_COPY;
		r->flags = XSEG_REQ_ONCE;
		r->volume = m->to->id;
		r->offset = offset;
		r->size = left < XSEG_REQ_BYTES ? (uint32_t)left : XSEG_REQ_BYTES;
		r->nr_pages = 1;
		r->page[0] = page;
		snprintf((char *)xseg_page(m->from->c->seg, page) + XSEG_COPY_VOLUME, 16,
			"%" PRIu32, m->from->id);
		rc = xseg_req_submit(m->port, r, m->from->peer);
	}
	if (rc) {
		note_error(m, offset, rc);
		if (r)
			xseg_req_free(m->port, r);
		return;
	}
	o->r = r;
	m->nr_out++;
}

static void fill(struct copier *m)
{
	uint64_t end;

	for (struct copied *o = m->object; o < m->object + MAX_OUT; o++) {
		if (o->r || m->error || m->next == m->from->size_bytes)
			continue;
		end = m->next + m->object_bytes;
		*o = (struct copied){ .end = end < m->from->size_bytes ? end
								       : m->from->size_bytes };
		piece_send(m, o, m->next);
		m->next = o->end;
	}
	xseg_port_flush(m->port);
}

static void answered(struct copier *m, struct xreq *r)
{
	uint64_t offset = r->offset, size = r->size;
	struct copied *o = m->object;
	int64_t result = r->result;

	while (o->r != r)
		o++;
	o->r = NULL;
	m->nr_out--;
	xseg_req_free(m->port, r);
	if (result == -ENOENT)
		return;				/* a hole */
	if (result != (int64_t)size) {
		note_error(m, offset, result < 0 ? result : -EIO);
		return;
	}
	m->data_bytes += size;
	if (offset + size < o->end && !m->error)
		piece_send(m, o, offset + size);
}

/* C2 of client.h: volumed, or what it needs, has been gone for a while, or with its segment. */
static bool is_lost(struct copier *m)
{
	struct client *c = m->from->c;
	struct xseg_peer_info info;
	bool gone = !xseg_peer_get_info(c->seg, m->from->peer, &info) ||
		    xseg_peer_is_gone(c->seg, &info);
	bool lacks = !gone && view_stranded(c->seg, &info, &c->lacks);

	if (!lacks)
		c->lacks.name[0] = '\0';
	return tool_span_ns(&m->gone, gone) > TOOL_GONE_NS ||
	       (gone && xseg_is_removed(c->seg)) || tool_span_ns(&m->lacks, lacks) > STALL_NS;
}

static int fail_lost(const struct copier *m, const char *what)
{
	if (m->from->c->lacks.name[0])
		return client_fail_lacks(m->from->c, what);
	return tool_fail(TOOL_FAILED,
		"%s: its volumed went away at byte %" PRIu64 "; start it again with 'xseg up "
		"STACK.conf', and copy it again",
		what, m->next);
}

/* Takes answers; false: nobody should wait any longer. */
static bool reap(struct copier *m)
{
	struct xreq *r;

	while (!xseg_port_replies(m->port, &r, 1)) {
		if (is_lost(m))
			return false;
		xseg_port_wait(m->port, WAIT_NS);
	}
	do
		answered(m, r);
	while (xseg_port_replies(m->port, &r, 1));
	return true;
}

static void show_progress(struct copier *m)
{
	char done[OUT_TEXT], whole[OUT_TEXT], part[OUT_TEXT], data[OUT_TEXT];

	tool_progress(m->from->c->t, "copying %s: %s of %s (%s), %s of it data", m->from->name,
		out_bytes(m->next, done), out_size(m->from->size_bytes, whole),
		out_percent(m->next, m->from->size_bytes, part), out_size(m->data_bytes, data));
}

static int run(struct copier *m)
{
	const struct volume_ref *from = m->from;
	char what[2 * XSEG_NAME_MAX];
	bool lost = false, late = false;

	while (!lost && (m->nr_out || (!m->error && !late && m->next < from->size_bytes))) {
		late = late || tool_out_of_time(from->c->t);
		if (!late)
			fill(m);
		if (m->nr_out)
			lost = !reap(m);
		show_progress(m);
	}
	tool_progress_end();
	snprintf(what, sizeof(what), "volume copy %s", from->name);
	if (lost)
		return fail_lost(m, what);
	if (m->error)
		return tool_exit_of_store(tool_fail_errno(m->error, NULL,
			"see 'xseg status' and the store's log", "%s: at byte %" PRIu64, what,
			m->error_offset));
	if (late && m->next < from->size_bytes)
		return tool_later("%s: stopped at byte %" PRIu64 "; run it again", what, m->next);
	return TOOL_DONE;
}

/* C2 */
static int check_source(const struct copier *m)
{
	char state[16] = "";
	struct client *c = m->from->c;
	int64_t rc = client_ask(
		c, m->from->peer, "volume info %s id=%" PRIu32, m->from->name, m->from->id);

	if (rc == -EINTR || rc == -ETIMEDOUT)
		return tool_later("volume copy %s: the copy was not ended; run it again",
			m->from->name);
	if (rc >= 0)
		client_value(c->text, "state", state, sizeof(state));
	if (!strcmp(state, "ok"))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"volume copy %s: it was removed or cut meanwhile; see 'xseg volume list'",
		m->from->name);
}

int volume_copy(const struct volume_ref *from, const struct volume_ref *to, uint64_t object_bytes,
	bool force, struct volume_io_result *result)
{
	struct copier m = { .from = from, .to = to, .object_bytes = object_bytes,
		.start_ns = tool_now_ns() };
	int rc = copier_open(&m);

	if (!rc && !force)
		rc = refuse_users(&m);
	if (!rc)
		rc = run(&m);
	if (!rc)
		rc = check_source(&m);
	if (!rc)
		rc = client_flush(to->c, to->peer, to->id, "volume copy", from->name);
	*result = (struct volume_io_result){ .bytes = m.next, .data_bytes = m.data_bytes,
		.elapsed_ns = tool_now_ns() - m.start_ns };
	if (m.peer)
		xseg_peer_close(m.peer, XSEG_CLOSE_FREE_ARENA);
	return rc;
}
