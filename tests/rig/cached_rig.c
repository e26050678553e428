/* cached_rig - see cached_rig.h. */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"

#define SPINS_MAX    64			/* polls at one time that do nothing and ask for another */
#define SETTLE_MAX   200000
#define PORTS_MAX    2

struct crig crig;
static uint64_t next_ns[PORTS_MAX];	/* when each port beside the first is to be polled */

/* ---- steps ---- */

static void check(void)
{
	if (!crig.peer || !peer_serving(crig.peer))
		return;
	cached_check(crig.peer);
	cached_check_loans(crig.peer);
}

/* Each step of a peer is seen by the others at once. A step that did nothing left nothing to check:
 * settle() makes many of these. */
static void publish(struct peer *p, bool any)
{
	for (uint32_t i = 0; p && i < p->nr_ports; i++)
		xseg_port_flush(p->ports[i].port);
	if (any)
		check();
}

bool crig_step_store(void)
{
	bool any = peer_port_step_request(&crig.store->ports[0]);

	publish(crig.store, any);
	return any;
}

static bool serving(void)
{
	if (!crig.peer)
		return false;
	for (uint32_t i = 0; i < crig.peer->nr_ports; i++)
		crig.peer->ports[i].now_ns = crig.now_ns;
	return peer_try_serve(crig.peer);
}

/* Each port does one; a poll of a port that did is due. */
static bool step_ports(bool (*step)(struct peer_port *pp))
{
	bool any = false;

	for (uint32_t i = 0; serving() && i < crig.peer->nr_ports; i++)
		if (step(&crig.peer->ports[i])) {
			next_ns[i] = 0;
			any = true;
		}
	publish(crig.peer, any);
	return any;
}

bool crig_step_request(void)
{
	return step_ports(peer_port_step_request);
}

bool crig_step_reply(void)
{
	return step_ports(peer_port_step_reply);
}

void __wrap_peer_port_kick(struct peer_port *pp);
void __wrap_peer_port_kick(struct peer_port *pp)
{
	if (pp->peer == crig.peer)
		next_ns[pp->nr] = 0;
}

/* Port 0 polls whenever this is called, and last. Others poll as in a reactor: when they asked for
 * it, have done something, or are kicked. */
static uint64_t poll_cached(void)
{
	uint64_t first = PEER_NEVER;

	for (uint32_t i = serving() ? crig.peer->nr_ports : 0; i-- > 0;) {
		if (i == 0 || next_ns[i] <= crig.now_ns)
			next_ns[i] = peer_port_step_poll(&crig.peer->ports[i]);
		first = peer_earlier(first, next_ns[i]);
	}
	publish(crig.peer, true);
	return first;
}

void crig_step_poll(void)
{
	poll_cached();
}

/* Returns when cached wants to be called again. */
static uint64_t settle(void)
{
	uint32_t spins = 0;
	uint64_t next;

	for (uint32_t i = 0; i < SETTLE_MAX; i++) {
		bool any = crig_step_request();

		any |= crig_step_reply();
		next = poll_cached();
		any |= crig_step_store();
		any |= crig_client_step();
		spins = any ? 0 : spins + 1;
		if (!any && next > crig.now_ns)
			return next;
		if (spins > SPINS_MAX)
			fail_msg("cached asks to be polled again and again, and does nothing");
	}
	fail_msg("no end of steps");
	return 0;
}

void crig_settle(void)
{
	settle();
}

void crig_pass(uint64_t ns)
{
	uint64_t end = crig.now_ns + ns, next = settle();

	while (next <= end) {
		crig.now_ns = next;
		next = settle();
	}
	if (crig.now_ns < end)
		crig.now_ns = end;
	settle();
}

/* ---- life ---- */

static void set_options(struct peer *p, const char *options)
{
	char line[256], *save = NULL, *word;
	struct xseg_error err = { "" };

	snprintf(line, sizeof(line), "memory=4M dirty_age=5s %s", options);
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		assert_non_null(value);
		*value++ = '\0';
		if (!strcmp(word, "threads")) {
			p->threads = (uint32_t)strtoul(value, NULL, 10);
			assert_in_range(p->threads, 1, PORTS_MAX);
			continue;
		}
		if (opt_set(opt_find(cached_class.opts, word), p, value, &err))
			fail_msg("%s", err.text);
	}
}

int crig_open(const char *options)
{
	struct xseg_error err = { "" };
	int rc;

	assert_null(crig.peer);
	crig.peer = peer_create(&cached_class);
	assert_non_null(crig.peer);
	snprintf(crig.peer->downstream_name, sizeof(crig.peer->downstream_name), "store");
	set_options(crig.peer, "read_ahead=0");	/* tests count what the store is asked for */
	set_options(crig.peer, options);
	for (uint32_t i = 0; i < PORTS_MAX; i++) {
		crig.peer->ports[i].now_ns = crig.now_ns;
		next_ns[i] = 0;
	}
	rc = peer_open(crig.peer, crig.seg, &err);
	if (rc) {
		snprintf(crig.text, sizeof(crig.text), "%s", err.text);
		peer_destroy(crig.peer);
		crig.peer = NULL;
		return rc;
	}
	crig.k = cached_of(crig.peer);
	return 0;
}

static void leave(enum xseg_close how)
{
	peer_close(crig.peer, how);
	peer_destroy(crig.peer);
	crig.peer = NULL;
	crig.k = NULL;
}

void crig_kill(void)
{
	leave(XSEG_CLOSE_ABANDON);
}

void crig_stop(void)
{
	uint64_t left;

	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
	leave(crig.peer->cls->close_how(crig.peer, true));
}

void crig_limit(uint32_t n)
{
	if (crig.k->memory.withheld == 0)
		cached_cut_pages(crig.peer);
	cached_limit_pages(crig.peer, n);
}

void crig_fill(uint32_t n, uint32_t free)
{
	char name[8];

	cached_limit_pages(crig.peer, n);
	for (uint32_t i = 0; i == 0 || crig.k->memory.nr_free_chunks; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		crig_expect(crig_write(name, 0, B(1), 7), B(1));
	}
	for (uint32_t b = 1; crig.k->memory.nr_free > free; b++)
		crig_expect(crig_write("x0", B(b), B(1), 7), B(1));
	assert_int_equal(crig.k->memory.nr_free, free);
	assert_int_equal(crig.k->memory.nr_free_chunks, 0);
}

void crig_up(const char *options)
{
	struct xseg_config cfg = { .memory_bytes = 24 << 20,
		.nr_requests = 1024,
		.nr_ports = 8,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	crig.now_ns = 1000 * CRIG_S;
	crig_store_reset();
	if (xseg_create_private(&cfg, &crig.seg, &err))
		fail_msg("%s", err.text);
	crig.store = peer_create(&crig_store_class);
	assert_int_equal(peer_open(crig.store, crig.seg, &err), 0);
	assert_true(peer_try_serve(crig.store));
	crig_client_open();
	if (crig_open(options))
		fail_msg("%s", crig.text);
	crig_settle();
}

static bool is_quiet(void)
{
	return crig.peer && peer_serving(crig.peer) && crig_nr_held() == 0 &&
	       crig_client_is_quiet();
}

/* Nothing is in flight: every page, chunk, request and reference is where it belongs. */
static void check_leaks(void)
{
	struct cached *k = crig.k;
	struct cport *ps = cport_at(k, 0);
	uint32_t chunks_used = 0;

	if (loans_out(k) == 0)
		limbo_look(ps);
	assert_true(loans_out(k) || k->memory.limbo.nr == 0);
	for (uint32_t i = 0; i < nr_entries(k); i++) {
		struct object *o = &k->object.objects[i];

		if (xcache_state_of(&k->object.xc, i) == XCACHE_FREE)
			continue;
		for (uint32_t n = 0; n < OBJECT_CHUNKS; n++)
			chunks_used += k->object.entries[i].chunk[n] != 0;
		assert_int_equal(xcache_state_of(&k->object.xc, i), XCACHE_ACTIVE);
		assert_int_equal(xcache_refs(&k->object.xc, i), 1 + (o->used > 0) + o->listed);
		assert_false(o->reclaiming || o->waiters || o->through);
	}
	cached_check_idle(crig.peer);
	if (k->memory.withheld + k->memory.nr_leaving == 0)
		assert_int_equal(chunks_used + k->memory.nr_free_chunks,
			k->memory.nr_chunk_pages * CHUNKS_PER_PAGE);
	for (uint32_t i = 0; i < crig.peer->nr_ports; i++) {
		struct cport *one = cport_at(k, i);

		assert_int_equal(xseg_port_nr_free(one->pp->port),
			xseg_port_nr_requests(one->pp->port));
		assert_int_equal(store_port(one)->flushes_out + store_port(one)->loads_out, 0);
	}
	assert_int_equal(k->flush.nr_flushes + k->evict.reclaims, 0);
	assert_true(xwaitq_empty(&k->memory.want_lists) && !pages_wanted(k) &&
		    k->volume.shares.waiting == 0 && xwaitq_empty(&k->object.want_entries));
	assert_false(throttle_busy(k));
	assert_int_equal(k->flush.throttle.out, 0);
}

static unsigned nr_problems;

static void problem(const char *what, void *arg)
{
	(void)arg;
	nr_problems++;
	print_message("%s\n", what);
}

int crig_down(void **state)
{
	(void)state;
	if (!crig.seg)
		return 0;
	if (is_quiet())
		check_leaks();
	if (crig.peer)
		leave(XSEG_CLOSE_FREE_ARENA);
	peer_close(crig.store, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(crig.store);
	crig_client_close();
	nr_problems = 0;
	xseg_check(crig.seg, false, problem, NULL);
	xseg_detach(crig.seg);
	crig.seg = NULL;
	crig_store_reset();
	return nr_problems ? -1 : 0;
}

/* ---- inside cached ---- */

struct object *crig_object(const char *name)
{
	for (uint32_t i = 0; i < nr_entries(crig.k); i++)
		if (atomic_load(&crig.k->object.entries[i].used) &&
			!strcmp(crig.k->object.entries[i].name, name))
			return &crig.k->object.objects[i];
	return NULL;
}

uint64_t crig_slot(const char *name, uint32_t bucket)
{
	struct object *o = crig_object(name);

	return o ? slot_get(crig.k, o, bucket) : slot_word(BUCKET_FREE, 0, 0);
}

enum bucket_state crig_state(const char *name, uint32_t bucket)
{
	return slot_state(crig_slot(name, bucket));
}

uint64_t crig_counter(enum cache_counter n)
{
	return cached_total(crig.k, n);
}

uint32_t crig_share(void)
{
	return xseg_port_nr_requests(crig.peer->ports[0].port) * 3 / 4;
}

struct creq *crig_creq(const struct crig_io *io)
{
	return &crig.k->creq.creqs[io->r->index];
}

void crig_have_clean(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	crig_store_fill(name, offset, size, seed);
	crig_expect_data(name, offset, size, seed);
}
