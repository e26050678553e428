/* values - an evil client of kvd, which stands on memd, beside an honest one.
 *
 * Each piece of the input chooses an event. The evil client sends queries and batches that are well
 * formed but for what the input says, lists pages twice, and writes into its pages while they are
 * at kvd. Bytes of them also change whenever kvd has copied some: between a check and the use. The
 * peers take steps, time and the date go on, kvd is killed and started again. The honest client
 * puts, gets and deletes values of its own.
 *
 * At the end each request of the honest one is answered, its values are there, and kvd, once it has
 * been killed, opens its log again. kvd never crashes or spins.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "peers/kvd/kvd.h"
#include "peers/memd/memd.h"
#include "tests/fuzz/rig.h"
#include "tests/rig/kv_wire_client.h"

#define KVD	    RIG_VOLUMED			/* where it stands in the rig */
#define KEYS	    8u
#define EVIL_KEYS   16u
#define CHANGES	    6u
#define REST_ROUNDS 20000u

static struct input in;
static struct kw_log kv;			/* of the log */
static uint32_t change_at;			/* which byte changes next */

static struct {
	uint32_t value[KEYS];			/* 0: it is not there */
	struct xreq *out;			/* one at a time */
	uint32_t key, sent;
	struct kw_change change;
	bool get;
	uint8_t text[2048], *record;
} honest;

/* ---- bytes that change ---- */

void __real_xseg_req_read_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, void *buf, uint32_t len);
void __wrap_xseg_req_read_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, void *buf, uint32_t len);
void __wrap_xseg_req_read_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, void *buf, uint32_t len)
{
	uint8_t *page = xseg_page(seg, rig.page[RIG_EVIL][change_at / XSEG_PAGE_SIZE % 4]);

	__real_xseg_req_read_data(seg, r, from, buf, len);
	if (!change_at)
		return;
	page[change_at % XSEG_PAGE_SIZE] ^= (uint8_t)(change_at >> 16 | 1);
	change_at = change_at * 1664525u + 1013904223u;
	change_at = change_at % 4 ? change_at & ~0xf00u : change_at;	/* mostly at the begin */
}

/* ---- the evil client ---- */

static void evil_pages(struct xreq *r, uint32_t nr)
{
	uint8_t how = in_u8(&in);

	r->nr_pages = (uint16_t)(nr < XSEG_REQ_PAGES ? nr : XSEG_REQ_PAGES);
	for (uint32_t i = 0; i < r->nr_pages; i++)
		r->page[i] = rig.page[RIG_EVIL][i % RIG_PAGES];
	if (how % 8 == 1 && r->nr_pages > 1)
		r->page[r->nr_pages - 1] = r->page[0];
	if (how % 8 == 2)
		r->nr_pages = (uint16_t)in_below(&in, XSEG_REQ_PAGES + 1);
	if (how % 8 == 3 && r->nr_pages)
		r->page[in_below(&in, r->nr_pages)] = rig.seg->nr_pages + (uint32_t)in_wild(&in);
}

static uint32_t evil_key(uint8_t *key)
{
	uint32_t bytes = 1 + in_u8(&in) % EVIL_KEYS;

	memset(key, 'e', bytes);
	return bytes;
}

/* Into the pages of the request, wherever its list leads that is its own. */
static void scribble(uint32_t size)
{
	for (uint8_t n = in_u8(&in) % 8; n; n--) {
		uint32_t at = in_below(&in, size ? size : 1);
		uint8_t *page = xseg_page(rig.seg, rig.page[RIG_EVIL][at / XSEG_PAGE_SIZE %
							     RIG_PAGES]);
		uint64_t word = in_wild(&in);

		memcpy(page + at % (XSEG_PAGE_SIZE - 8), &word, 1u << n % 4);
	}
}

static void evil_submit(struct xreq *r)
{
	uint8_t how = in_u8(&in);

	if (how % 16 == 1)
		r->volume = (uint32_t)in_wild(&in);
	if (how % 16 == 2)
		r->offset = in_wild(&in);
	if (how % 16 == 3)
		r->size = (uint32_t)in_wild(&in) % (XSEG_REQ_BYTES + 1);
	if (how % 16 == 4)
		r->flags = (uint8_t)in_wild(&in);
	if (how % 16 == 5)
		r->op = in_u8(&in) % XSEG_OP_ADMIN;
	if (how % 16 == 6)
		xseg_req_note_set(rig.seg, r, in_u8(&in) % 4, in_wild(&in));
	if (xseg_req_submit(rig.port[RIG_EVIL], r, xseg_peer_find(rig.seg, "kv")))
		xseg_req_free(rig.port[RIG_EVIL], r);
	else if (how / 16 % 4)
		xseg_port_flush(rig.port[RIG_EVIL]);
}

static void evil_query(struct xreq *r)
{
	uint8_t key[EVIL_KEYS];
	uint32_t answer = 1 + in_u8(&in) % 4;
	struct kv_query q = { .kind = in_u8(&in) % (KV_NR_QUERIES + 1), .flags = in_u8(&in),
		.key_bytes = evil_key(key), .place = (uint32_t)in_wild(&in),
		.zone = in_u8(&in), .version = in_u8(&in) % 4, .cursor = in_wild(&in),
		.held = in_u8(&in), .offset = in_wild(&in) };

	kw_query(rig.seg, r, &kv, &q, key, rig.page[RIG_EVIL], answer);
	scribble((answer + 1) * XSEG_PAGE_SIZE);
	evil_pages(r, answer + 1);
	evil_submit(r);
}

static void evil_batch(struct xreq *r)
{
	static uint8_t key[CHANGES][EVIL_KEYS], value[8192];
	struct kw_change c[CHANGES];
	uint32_t nr = 1 + in_u8(&in) % CHANGES, pages;

	for (uint32_t i = 0; i < nr; i++) {
		c[i] = (struct kw_change){ .kind = in_u8(&in) % (KV_NR_CHANGES + 1),
			.condition = in_u8(&in) % 5, .key = key[i], .value = value,
			.key_bytes = evil_key(key[i]), .expiry = in_u8(&in),
			.version = in_u8(&in), .amount = in_wild(&in) };
		c[i].value_bytes = in_u8(&in) * 32u;
		memset(value, '0' + in_u8(&in) % 10, c[i].value_bytes);
		if (c[i].value_bytes > 19 && nr == 1)
			c[i].value_bytes = in_u8(&in) % 2 ? 5 : c[i].value_bytes;
	}
	pages = kw_batch(
		rig.seg, r, &kv, c, nr, in_u8(&in) % 4 == 0, rig.page[RIG_EVIL], RIG_PAGES);
	assert(pages);
	scribble(r->size);
	evil_pages(r, pages);
	evil_submit(r);
}

static void evil_act(uint8_t what)
{
	struct xport *port = rig.port[RIG_EVIL];
	struct xreq *r;

	if (what % 8 == 0) {
		scribble(4 * XSEG_PAGE_SIZE);
		return;
	}
	if (what % 8 == 1) {
		xseg_port_flush(port);
		while (xseg_port_replies(port, &r, 1))
			xseg_req_free(port, r);
		return;
	}
	r = xseg_req_alloc(port);
	if (!r)
		return;
	if (what % 8 < 5)
		evil_batch(r);
	else
		evil_query(r);
}

/* ---- the honest client ---- */

static uint32_t key_of(uint32_t key, char name[16])
{
	return (uint32_t)snprintf(name, 16, "\1honest:key%02u", key);
}

static void text_of(uint32_t value, uint8_t *text, uint32_t *bytes)
{
	*bytes = value % sizeof(honest.text);
	for (uint32_t i = 0; i < *bytes; i++)
		text[i] = (uint8_t)(value + i);
}

static void honest_send(struct xreq *r)
{
	if (xseg_req_submit(rig.port[RIG_HONEST], r, xseg_peer_find(rig.seg, "kv"))) {
		xseg_req_free(rig.port[RIG_HONEST], r);
		return;
	}
	honest.out = r;
	xseg_port_flush(rig.port[RIG_HONEST]);
}

static void ask(struct xreq *r, uint32_t need, uint8_t flags, uint64_t zone, uint32_t place)
{
	char name[16];
	uint32_t bytes = key_of(honest.key, name);

	honest.get = true;
	kw_query(rig.seg, r, &kv,
		&(struct kv_query){ .kind = KV_GET,
			.flags = flags,
			.key_bytes = bytes,
			.zone = zone,
			.place = place },
		name, rig.page[RIG_HONEST], need);
	honest_send(r);
}

static void put(struct xreq *r, uint32_t value)
{
	static char name[16];
	struct kw_change *c = &honest.change;

	*c = (struct kw_change){ .kind = value ? KV_PUT : KV_DELETE, .key = name,
		.key_bytes = key_of(honest.key, name), .value = honest.text };
	if (value)
		text_of(value, honest.text, &c->value_bytes);
	honest.get = false;
	honest.sent = value;
	kw_batch(rig.seg, r, &kv, c, 1, false, rig.page[RIG_HONEST], RIG_PAGES);
	honest_send(r);
}

static void check_value(struct xreq *r)
{
	static uint8_t text[sizeof(honest.text)];
	char name[16];
	struct kw_value v = { .copy = honest.record };
	uint64_t zone = 0;
	uint32_t place = 0, need = 1, bytes = key_of(honest.key, name), expected;
	int rc = kw_got(rig.seg, r, &kv, name, bytes, &v, &zone, &place, &need);

	if (rc == -EMSGSIZE || rc == -EBADMSG) {
		ask(r, rc == -EMSGSIZE ? need : 4, rc == -EBADMSG ? KV_LOOK : 0, zone, place);
		return;
	}
	assert(rc == (honest.value[honest.key] ? 0 : -ENOENT));
	if (!rc) {
		text_of(honest.value[honest.key], text, &expected);
		assert(v.value_bytes == expected && memcmp(v.value, text, expected) == 0);
	}
	xseg_req_free(rig.port[RIG_HONEST], r);
}

/* Full: nothing is done. */
static void honest_take(void)
{
	struct xreq *r;

	if (!honest.out || !xseg_port_replies(rig.port[RIG_HONEST], &r, 1))
		return;
	assert(r == honest.out);
	honest.out = NULL;
	if (honest.get) {
		check_value(r);
		return;
	}
	assert(r->result == r->size || r->result == -ENOSPC);
	if (r->result > 0) {
		kw_outcomes(rig.seg, r, &honest.change, 1);
		assert(honest.change.result == (honest.sent || honest.value[honest.key] ? 0 :
						       -ENOENT));
		honest.value[honest.key] = honest.sent;
	}
	xseg_req_free(rig.port[RIG_HONEST], r);
}

static void honest_act(void)
{
	struct xreq *r;

	honest_take();
	if (honest.out || !(r = xseg_req_alloc(rig.port[RIG_HONEST])))
		return;
	honest.key = in_u8(&in) % KEYS;
	if (in_u8(&in) % 2)
		ask(r, 1, 0, 0, 0);
	else
		put(r, in_u16(&in));
}

/* ---- the stack ---- */

static void learn(void)
{
	struct xreq *r = xseg_req_alloc(rig.port[RIG_HONEST]), *back = NULL;
	struct kv_info info;

	kw_query(rig.seg, r, &kv, &(struct kv_query){ .kind = KV_INFO }, NULL, rig.page[RIG_HONEST],
		1);
	assert(!xseg_req_submit(rig.port[RIG_HONEST], r, xseg_peer_find(rig.seg, "kv")));
	rig_settle(REST_ROUNDS);
	assert(xseg_port_replies(rig.port[RIG_HONEST], &back, 1) && back == r);
	assert(r->result == KV_PAGE);
	xseg_req_read_data(rig.seg, r, 0, &info, sizeof(info));
	kv.id = info.id;
	memcpy(kv.uuid, info.uuid, sizeof(info.uuid));
	xseg_req_free(rig.port[RIG_HONEST], r);
}

static void begin(void)
{
	static uint8_t record[XSEG_REQ_BYTES];

	memset(&honest, 0, sizeof(honest));
	honest.record = record;
	change_at = 0;
	rig_begin();
	rig_plan(RIG_STORE, &memd_class, "memd", "", "memory=4M");
	rig_plan(KVD, &kvd_class, "kv", "memd",
		"size=3M zone_size=256k tail=128k keys=400 sync=20ms");
	assert(rig_start(RIG_STORE) && rig_start(KVD));
	assert(rig_client_open(RIG_EVIL) && rig_client_open(RIG_HONEST));
	rig_settle(REST_ROUNDS);
	learn();
}

static void kill_and_start(void)
{
	if (rig.node[KVD].p)
		rig_kill(KVD);
	rig_settle(in_u8(&in) % 8 + 1u);
	assert(rig_start(KVD));
}

static void go_on(uint8_t what)
{
	switch (what % 8) {
	case 0:
		rig_step(what / 8 % 2 ? KVD : RIG_STORE, (enum rig_what)(what / 16 % RIG_NR_WHAT));
		break;
	case 1:
		rig_settle(what / 8 + 1u);
		break;
	case 2:
		rig.now_ns += (uint64_t)what * what * RIG_MS / 16;
		rig.node[KVD].p->ports[0].date_s += what / 8;
		break;
	case 3:
		honest_act();
		break;
	case 4:
		if (what >= 200)
			kill_and_start();
		else
			rig_round();
		break;
	default:
		evil_act(what / 8);
	}
}

static void honest_wait(void)
{
	for (uint32_t n = 0; honest.out; n++) {
		assert(n < 100);
		rig_settle(REST_ROUNDS);
		honest_take();
	}
}

/* What kvd still has is answered, and after a kill all values are there. */
static void come_to_rest(void)
{
	struct xreq *r;

	rig_client_close(RIG_EVIL, XSEG_CLOSE_ABANDON);
	xseg_sweep(rig.seg);
	change_at = 0;
	for (uint32_t i = 0; i < 2 * KEYS; i++) {
		honest_wait();
		if (i == KEYS)
			kill_and_start();
		rig_settle(REST_ROUNDS);
		r = xseg_req_alloc(rig.port[RIG_HONEST]);
		assert(r);
		honest.key = i % KEYS;
		ask(r, 1, 0, 0, 0);
	}
	honest_wait();
}

void fuzz_one(const uint8_t *data, size_t size)
{
	in = (struct input){ data, size };
	begin();
	change_at = in_u16(&in);
	while (in.left)
		go_on(in_u8(&in));
	come_to_rest();
	rig_end();
}
