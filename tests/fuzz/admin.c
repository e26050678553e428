/* admin - lines of an administrator to the peers of a live stack. The first byte chooses the stack.
 * Each line of the input begins with a character that chooses the peer, and the room for the
 * answer. Every line is answered, or waits for the store; a text fits its room.
 */
#include <assert.h>
#include <stdlib.h>

#include "peers/cached/life/cached.h"
#include "tests/fuzz/rig.h"

#define REST_ROUNDS 5000u

static const char *const peer_name[] = { "volumed", "cached", "memd" };

static void stack_up(uint8_t how)
{
	rig_begin();
	rig_plan(RIG_STORE, &memd_class, "memd", "", "memory=1M");
	rig_plan(RIG_CACHED, &cached_class, "cached", "memd", "memory=4M requests=8 objects=8");
	if (how & 1)
		rig_plan(RIG_VOLUMED, &volumed_class, "volumed", "cached",
			"requests=4 object_size=64k");
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].cls && !rig_start(n))
			abort();
	if (!rig_client_open(RIG_HONEST))
		abort();
	rig_settle(200);
}

/* Sends a line; `room` bytes are there for the answer. */
static void say(const char *peer, const char *line, size_t len, uint32_t room, uint32_t offset)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r = xseg_req_alloc(port);

	if (!r)
		return;
	r->op = XSEG_OP_ADMIN;
	r->offset = offset;
	r->size = room;
	r->nr_pages = (uint16_t)xseg_req_span(offset, room);
	memcpy(r->page, rig.page[RIG_HONEST], r->nr_pages * sizeof(r->page[0]));
	xseg_req_write_data(rig.seg, r, 0, line, len < room ? (uint32_t)len : room);
	if (len < room)
		xseg_req_write_data(rig.seg, r, (uint32_t)len, "", 1);
	if (xseg_req_submit(port, r, xseg_peer_find(rig.seg, peer)))
		xseg_req_free(port, r);
	xseg_port_flush(port);
}

static void take(void)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r;

	while (xseg_port_replies(port, &r, 1)) {
		assert(r->result <= (int64_t)r->size);
		xseg_req_free(port, r);
	}
}

void fuzz_one(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data + 1, *end = (const char *)data + size, *eol;

	if (size == 0)
		return;
	stack_up(data[0]);
	for (; at < end; at = eol + 1) {
		uint8_t who = (uint8_t)*at;

		eol = memchr(at, '\n', (size_t)(end - at));
		eol = eol ? eol : end;
		if (eol > at)
			say(peer_name[who % 3], at + 1, (size_t)(eol - at - 1),
				who & 0x40 ? 8192 : 1u << (who / 4 % 14), who & 0x80 ? 4000 : 0);
		rig_settle(40);
		take();
	}
	rig_settle(REST_ROUNDS);
	take();
	if (rig.node[RIG_CACHED].serving)
		cached_check(rig.node[RIG_CACHED].p);
	rig_end();
}
