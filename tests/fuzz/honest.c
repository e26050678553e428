/* honest - see honest.h. */
#include "tests/fuzz/honest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 16u			/* of its volume, 4 KiB each */

static struct {
	uint8_t seed[BLOCKS];			/* what each block has */
	uint32_t volume;
	struct xreq *out;			/* one at a time */
	uint32_t block;
	uint8_t sent;
} honest;

static void honest_send(enum xseg_op op, uint32_t block, uint8_t seed)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r = xseg_req_alloc(port);
	char name[32];

	if (!r)
		return;
	r->op = (uint8_t)op;
	r->volume = honest.volume;
	r->offset = r->obj_offset = (uint64_t)block * XSEG_PAGE_SIZE;
	r->size = XSEG_PAGE_SIZE;
	r->nr_pages = 1;
	r->page[0] = rig.page[RIG_HONEST][0];
	memset(xseg_page(rig.seg, r->page[0]), seed, XSEG_PAGE_SIZE);
	snprintf(name, sizeof(name), "good:%016x", 0);
	xseg_req_set_target(r, name, strlen(name));
	if (xseg_req_submit(port, r,
		    xseg_peer_find(rig.seg, rig.node[RIG_VOLUMED].cls ? "volumed" : "cached"))) {
		xseg_req_free(port, r);
		return;
	}
	xseg_port_flush(port);
	honest.out = r;
	honest.block = block;
	honest.sent = seed;
}

/* Takes the answer, and compares what was read. */
static void honest_take(bool believes)
{
	struct xport *port = rig.port[RIG_HONEST];
	const uint8_t *data = xseg_page(rig.seg, rig.page[RIG_HONEST][0]);
	uint8_t expected[XSEG_PAGE_SIZE];
	struct xreq *r;

	if (!port || !honest.out || !xseg_port_replies(port, &r, 1))
		return;
	if (believes) {
		assert(r == honest.out && r->result == XSEG_PAGE_SIZE);
		memset(expected, honest.seed[honest.block], sizeof(expected));
		assert(r->op != XSEG_OP_READ || memcmp(data, expected, sizeof(expected)) == 0);
		if (r->op == XSEG_OP_WRITE)
			honest.seed[honest.block] = honest.sent;
	}
	if (r == honest.out)
		honest.out = NULL;
	xseg_req_free(port, r);
}

void honest_act(struct input *in, bool believes)
{
	uint8_t how = in_u8(in);

	honest_take(believes);
	if (!rig.port[RIG_HONEST] || honest.out)
		return;
	honest_send(how & 1 ? XSEG_OP_READ : XSEG_OP_WRITE, how / 2 % BLOCKS, in_u8(in));
}

static void honest_wait(void)
{
	for (unsigned i = 0; i < 1000 && honest.out; i++) {
		rig_settle(10);
		honest_take(true);
	}
	assert(!honest.out);
}

void honest_verify(void)
{
	honest_wait();
	for (uint32_t b = 0; b < BLOCKS; b++) {
		honest_send(XSEG_OP_READ, b, 0xee);
		assert(honest.out);
		honest_wait();
	}
}

/* ---- the stack ---- */

static uint32_t volume_id(void)
{
	const char *at = strstr(rig_text, "id=");

	return at ? (uint32_t)strtoul(at + 3, NULL, 10) : 0;
}

void honest_stack(bool volumed, const char *cached_options, struct evil *e)
{
	static char options[128];

	snprintf(options, sizeof(options), "memory=4M requests=8 objects=8 %s", cached_options);
	rig_begin();
	rig_plan(RIG_STORE, &memd_class, "memd", "", e->anywhere ? "memory=1M" : "memory=6M");
	rig_plan(RIG_CACHED, &cached_class, "cached", "memd", options);
	if (volumed)
		rig_plan(RIG_VOLUMED, &volumed_class, "volumed", "cached",
			"requests=4 object_size=64k");
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].cls && !rig_start(n))
			abort();
	if (!rig_client_open(RIG_EVIL) || !rig_client_open(RIG_HONEST))
		abort();
	rig_settle(200);
	memset(&honest, 0, sizeof(honest));
	snprintf(e->prefix, sizeof(e->prefix), "evil:");
	e->volume = 3;
	honest.volume = 2;
	if (!volumed)
		return;
	if (rig_admin("volumed", "volume create evil size=1M") < 0)
		abort();
	e->volume = volume_id();
	if (rig_admin("volumed", "volume create good size=1M") < 0)
		abort();
	honest.volume = volume_id();
}
