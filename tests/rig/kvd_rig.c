/* kvd_rig - see kvd_rig.h. */
#include "tests/rig/kvd_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"

#define SETTLE_MAX 400000

struct kr kr;

static void set_options(struct peer *p, const char *options)
{
	char line[256], *save = NULL, *word;
	struct xseg_error err = { "" };

	snprintf(line, sizeof(line), "%s", options);
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		assert_non_null(value);
		*value++ = '\0';
		if (opt_set(opt_find(p->cls->opts, word), p, value, &err))
			fail_msg("%s", err.text);
	}
}

/* ---- steps ---- */

/* What can be answered is, or the port wants to be polled: nothing else may come. */
static void check_poll(struct peer *p, uint64_t next)
{
	struct kvd *k = (struct kvd *)p;

	if (p->cls == &kvd_class && k->state == KVD_OPEN && next > kr.now_ns)
		assert_false(kvd_changes_due(k));
}

static bool step_peer(struct peer *p, uint64_t *next)
{
	struct peer_port *pp = &p->ports[0];
	uint64_t wants;
	bool any;

	pp->now_ns = kr.now_ns;
	pp->date_s = kr.date_s;
	any = peer_port_step_request(pp);
	any |= p->cls->reply && peer_port_step_reply(pp);
	wants = peer_port_step_poll(pp);
	check_poll(p, wants);
	*next = peer_earlier(*next, wants);
	xseg_port_flush(pp->port);
	return any;
}

static bool step_all(uint64_t *next)
{
	bool any = false;

	if (kr.kvd) {
		kr.kvd->ports[0].now_ns = kr.now_ns;
		if (peer_try_serve(kr.kvd))
			any |= step_peer(kr.kvd, next);
	}
	if (!kr.store_stands)
		any |= step_peer(kr.store, next);
	xseg_port_flush(kr.port);
	return any;
}

bool kr_step(void)
{
	uint64_t next = PEER_NEVER;

	return step_all(&next);
}

static uint64_t settle(void)
{
	uint64_t next;

	for (uint32_t i = 0, idle = 0; i < SETTLE_MAX; i++) {
		next = PEER_NEVER;
		idle = step_all(&next) ? 0 : idle + 1;
		if (idle > 2 && next > kr.now_ns)
			return next;
		if (idle > 2000)
			fail_msg("it asks to be polled again and again, and does nothing");
	}
	fail_msg("no end of steps");
	return 0;
}

void kr_settle(void)
{
	settle();
}

void kr_pass(uint64_t ns)
{
	uint64_t end = kr.now_ns + ns, next = settle();

	while (next <= end) {
		kr.now_ns = next;
		next = settle();
	}
	kr.now_ns = end;
	settle();
}

/* ---- life ---- */

static struct peer *make_peer(const struct peer_class *cls, const char *name, const char *options)
{
	struct peer *p = peer_create(cls);

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "%s", name);
	set_options(p, options);
	return p;
}

static void open_client(void)
{
	struct xseg_peer_params params = { .name = "client", .kind = "client", .nr_ports = 1,
		.nr_requests = 16 };
	struct xseg_error err;
	uint32_t nr = KR_SLOTS * KR_PAGES;

	assert_int_equal(xseg_peer_open(kr.seg, &params, &kr.client, &err), 0);
	kr.port = xseg_peer_port(kr.client, 0);
	kr.page = malloc(xseg_pages_round(nr) * sizeof(*kr.page));
	assert_int_equal(xseg_pages_take(kr.client, nr, kr.page), 0);
}

void kr_begin(const char *memd_options)
{
	struct xseg_config cfg = { .memory_bytes = 64 << 20, .nr_requests = 512, .nr_ports = 16 };
	struct xseg_error err = { "" };

	kr = (struct kr){ .now_ns = 1000000000, .date_s = 1000000 };
	assert_int_equal(xseg_create_private(&cfg, &kr.seg, &err), 0);
	kr.store = make_peer(&memd_class, "store", "memory=24M");
	set_options(kr.store, memd_options);
	assert_int_equal(peer_open(kr.store, kr.seg, &err), 0);
	assert_true(peer_try_serve(kr.store));
	open_client();
}

void kr_end(void)
{
	if (kr.kvd)
		kr_kill();
	peer_close(kr.store, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(kr.store);
	xseg_peer_close(kr.client, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(kr.seg);
	free(kr.page);
}

int kr_open(const char *options)
{
	struct xseg_error err = { "" };
	int rc;

	assert_null(kr.kvd);
	kr.kvd = make_peer(&kvd_class, "kv",
		"size=8M zone_size=256k tail=256k keys=2000 reserve=10");
	snprintf(kr.kvd->downstream_name, sizeof(kr.kvd->downstream_name), "store");
	set_options(kr.kvd, options);
	kr.kvd->ports[0].now_ns = kr.now_ns;
	rc = peer_open(kr.kvd, kr.seg, &err);
	if (rc) {
		snprintf(kr.text, sizeof(kr.text), "%s", err.text);
		peer_destroy(kr.kvd);
		kr.kvd = NULL;
	}
	return rc;
}

static void learn(void)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	struct kv_info info;

	kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_INFO }, NULL, kr.page, 1);
	assert_int_equal(kr_call(r), KV_PAGE);
	xseg_req_read_data(kr.seg, r, 0, &info, sizeof(info));
	assert_int_equal(info.version, KV_WIRE_VERSION);
	kr.log.id = info.id;
	memcpy(kr.log.uuid, info.uuid, sizeof(info.uuid));
	xseg_req_free(kr.port, r);
}

void kr_start(const char *options)
{
	if (kr_open(options))
		fail_msg("%s", kr.text);
	kr_settle();
	learn();
}

int kr_setup(void **state)
{
	(void)state;
	kr_begin("track_flush=yes");
	kr_start("");
	return 0;
}

int kr_teardown(void **state)
{
	(void)state;
	kr_end();
	return 0;
}

void kr_kill(void)
{
	peer_close(kr.kvd, XSEG_CLOSE_ABANDON);
	peer_destroy(kr.kvd);
	kr.kvd = NULL;
}

void kr_stop(void)
{
	uint64_t left;

	peer_stop(kr.kvd);
	for (int i = 0; !kr.kvd->cls->quiesced(kr.kvd, &left); i++) {
		assert_true(i < 1000);
		kr_pass(KVD_SECOND / 10);	/* a store that fails is asked again */
	}
	peer_close(kr.kvd, kr.kvd->cls->close_how(kr.kvd, true));
	peer_destroy(kr.kvd);
	kr.kvd = NULL;
}

void kr_power_cut(void)
{
	uint32_t index = xseg_peer_find(kr.seg, "kv");

	if (kr.kvd)
		kr_kill();
	for (int i = 0; i < 100; i++)
		kr_step();			/* what was on its way arrives, or not */
	memd_power_loss(kr.store);
	xseg_sweep(kr.seg);
	if (xseg_peer_forget(kr.seg, index)) {
		/* replies to it are still there: a successor takes them, and is killed */
		assert_int_equal(kr_open(""), 0);
		kr_stop();
		fail_msg("kvd cannot be forgotten");
	}
}

/* ---- requests ---- */

uint32_t *kr_slot(uint32_t i)
{
	assert_true(i < KR_SLOTS);
	return kr.page + i * KR_PAGES;
}

void kr_submit(struct xreq *r)
{
	assert_int_equal(xseg_req_submit(kr.port, r, xseg_peer_find(kr.seg, "kv")), 0);
	xseg_port_flush(kr.port);
}

struct xreq *kr_reply(void)
{
	struct xreq *r;

	return xseg_port_replies(kr.port, &r, 1) ? r : NULL;
}

int64_t kr_call(struct xreq *r)
{
	struct xreq *back = NULL;

	kr_submit(r);
	for (int i = 0; !(back = kr_reply()); i++) {
		if (i > SETTLE_MAX)
			fail_msg("no answer");
		kr_step();
		if (i % 1000 == 999)
			kr.now_ns += 1000000000;
	}
	assert_ptr_equal(back, r);
	return r->result;
}

int kr_change(struct kw_change *c, uint32_t nr, bool fua)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	int64_t rc;

	assert_non_null(r);
	assert_true(kw_batch(kr.seg, r, &kr.log, c, nr, fua, kr_slot(0), KR_PAGES) > 0);
	rc = kr_call(r);
	if (rc >= 0) {
		assert_int_equal(rc, r->size);
		kw_outcomes(kr.seg, r, c, nr);
	}
	xseg_req_free(kr.port, r);
	return rc < 0 ? (int)rc : c[0].result;
}

int kr_put(const char *key, const char *value)
{
	struct kw_change c = { .kind = KV_PUT, .key = key, .value = value,
		.key_bytes = (uint32_t)strlen(key), .value_bytes = (uint32_t)strlen(value) };

	return kr_change(&c, 1, false);
}

int kr_delete(const char *key)
{
	struct kw_change c = { .kind = KV_DELETE, .key = key,
		.key_bytes = (uint32_t)strlen(key) };

	return kr_change(&c, 1, false);
}

int kr_get(const char *key, struct kw_value *v)
{
	uint32_t bytes = (uint32_t)strlen(key), need = 1, place = 0, flags = 0;
	uint64_t zone = 0;
	struct xreq *r = xseg_req_alloc(kr.port);
	int rc;

	assert_non_null(r);
	v->copy = kr.record;
	for (int i = 0; i < 5; i++) {
		kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_GET,
			.flags = (uint8_t)flags, .key_bytes = bytes, .zone = zone,
			.place = place }, key, kr_slot(0), need);
		kr_call(r);
		rc = kw_got(kr.seg, r, &kr.log, key, bytes, v, &zone, &place, &need);
		if (rc != -EMSGSIZE && (rc != -EBADMSG || flags & KV_LOOK))
			break;
		flags |= rc == -EBADMSG ? KV_LOOK : 0;
	}
	xseg_req_free(kr.port, r);
	return rc;
}

bool kr_has(const char *key, const char *value)
{
	struct kw_value v;
	int rc = kr_get(key, &v);

	if (!value || rc)
		return !value && rc == -ENOENT;
	return v.value_bytes == strlen(value) && memcmp(v.value, value, v.value_bytes) == 0;
}

int kr_flush(void)
{
	struct xreq *r = xseg_req_alloc(kr.port);
	int rc;

	r->op = XSEG_OP_FLUSH;
	r->volume = kr.log.id;
	rc = (int)kr_call(r);
	xseg_req_free(kr.port, r);
	return rc;
}

struct kvd *kr_kvd(void)
{
	return (struct kvd *)kr.kvd;
}

uint64_t kr_counter(enum kvd_stat what)
{
	return xseg_stats_get(kr_kvd()->stats, what);
}
