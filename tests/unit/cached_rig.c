/* cached_rig - see cached_rig.h. */
#include "tests/unit/cached_rig.h"

#include "peers/common/peer_box.h"

#define NR_OBJECTS   64
#define NR_CALLS     8192
#define NR_IOS	     256
#define NR_PAGES     2048
#define SPINS_MAX    64			/* polls at one time that do nothing and ask for another */
#define SETTLE_MAX   200000

/* ---- the store ---- */

struct store_object {
	char name[XSEG_TARGET_MAX];
	uint8_t *data, *stable;
};

struct crig crig;
static struct store_object objects[NR_OBJECTS];
static struct crig_call calls[NR_CALLS];
static uint32_t nr_calls, first_held;
static bool holding;
static int fail_op, fail_error;
static uint32_t fail_count;

/* ---- the rest of the rig ---- */

static struct peer *store;
static struct xseg_peer *client;
static struct xport *port;
static uint32_t pages[NR_PAGES], next_page;
static struct crig_io ios[NR_IOS];
static uint32_t volume, nr_answers;
static char open_options[256];

static struct store_object *store_find(const char *name)
{
	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		if (objects[i].data && !strcmp(objects[i].name, name))
			return &objects[i];
	return NULL;
}

static struct store_object *store_make(const char *name)
{
	struct store_object *o = store_find(name);

	for (uint32_t i = 0; i < NR_OBJECTS && !o; i++)
		if (!objects[i].data)
			o = &objects[i];
	assert_non_null(o);
	if (!o->data) {
		snprintf(o->name, sizeof(o->name), "%s", name);
		o->data = calloc(1, OBJECT_BYTES);
		o->stable = calloc(1, OBJECT_BYTES);
	}
	return o;
}

static void store_drop(struct store_object *o)
{
	free(o->data);
	free(o->stable);
	o->data = o->stable = NULL;
}

static uint64_t sum_of(const struct xreq *r)
{
	uint64_t sum = 14695981039346656037ull;

	for (uint32_t p = 0; p < r->nr_pages; p++) {
		const uint64_t *word = xseg_page(crig.seg, r->page[p]);

		for (uint32_t i = 0; i < CRIG_PAGE / 8; i++)
			sum = (sum ^ word[i]) * 1099511628211ull;
	}
	return sum;
}

static void rubbish(const struct xreq *r)
{
	for (uint32_t p = 0; p < r->nr_pages; p++)
		memset(xseg_page(crig.seg, r->page[p]), 0xdb, CRIG_PAGE);
}

static bool overlap(const struct crig_call *a, const struct crig_call *b)
{
	return !strcmp(a->target, b->target) && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static void check_alone(const struct crig_call *n)
{
	for (uint32_t i = first_held; i < nr_calls && n->op == XSEG_OP_WRITE; i++)
		if (calls[i].r && calls[i].op == XSEG_OP_WRITE && overlap(&calls[i], n))
			fail_msg("two writes of %s at %llu are at the store", n->target, (unsigned long long)n->offset);
}

static int64_t do_write(struct store_object *o, struct xreq *r, uint32_t bytes)
{
	xseg_req_read_data(crig.seg, r, 0, o->data + r->obj_offset, bytes);
	if (r->flags & XSEG_REQ_FUA)
		memcpy(o->stable + r->obj_offset, o->data + r->obj_offset, bytes);
	return bytes;
}

static int64_t do_flush(void)
{
	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		if (objects[i].data)
			memcpy(objects[i].stable, objects[i].data, OBJECT_BYTES);
	return 0;
}

static int64_t do_info(const struct store_object *o)
{
	int64_t n = OBJECT_BYTES;

	while (n && !o->data[n - 1])
		n--;
	return n;
}

static int64_t store_do(struct xreq *r, uint32_t bytes)
{
	struct store_object *o = store_find(r->target);

	switch (r->op) {
	case XSEG_OP_READ:
		o = store_make(r->target);
		xseg_req_write_data(crig.seg, r, 0, o->data + r->obj_offset, bytes);
		return bytes;
	case XSEG_OP_WRITE:
		return do_write(store_make(r->target), r, bytes);
	case XSEG_OP_FLUSH:
		return do_flush();
	case XSEG_OP_DELETE:
		if (o)
			store_drop(o);
		return o ? 0 : -ENOENT;
	case XSEG_OP_INFO:
		return o ? do_info(o) : -ENOENT;
	default:
		return -EOPNOTSUPP;
	}
}

static void answer(struct crig_call *n, int error, uint32_t bytes)
{
	struct xreq *r = n->r;

	assert_non_null(r);
	if (n->op == XSEG_OP_WRITE && sum_of(r) != n->sum)
		fail_msg("data of %s at %llu changed while the store was writing it", n->target, (unsigned long long)n->offset);
	n->r = NULL;
	while (first_held < nr_calls && !calls[first_held].r)
		first_held++;
	peer_answer(&store->ports[0], r, error ? error : store_do(r, bytes));
	xseg_port_flush(store->ports[0].port);
}

static void answer_next(struct crig_call *n)
{
	bool fails = fail_count && (fail_op == CRIG_ANY || fail_op == n->op);

	fail_count -= fails;
	answer(n, fails ? fail_error : 0, n->size);
}

static void store_request(struct peer_port *pp, struct xreq *r)
{
	struct crig_call *n = &calls[nr_calls];

	(void)pp;
	assert_true(nr_calls < NR_CALLS);
	*n = (struct crig_call){ .op = r->op, .flags = r->flags, .volume = r->volume, .size = r->size, .offset = r->obj_offset,
				 .r = r, .at_ns = crig.now_ns };
	memcpy(n->target, r->target, sizeof(n->target));
	assert_int_equal(r->hash, xseg_hash(r->target, strlen(r->target)));
	assert_int_equal(r->offset % CRIG_PAGE, r->obj_offset % CRIG_PAGE);
	assert_true(r->size <= XSEG_REQ_BYTES);
	check_alone(n);
	nr_calls++;
	if (r->op == XSEG_OP_WRITE)
		n->sum = sum_of(r);
	else
		rubbish(r);
	if (!holding)
		answer_next(n);
}

static const struct opt store_opts[] = { { .name = NULL } };
static const struct peer_class store_class = {
	.kind = "store", .summary = "test", .opts = store_opts, .size = sizeof(struct peer), .request = store_request,
};

void crig_hold(bool hold)
{
	holding = hold;
	for (uint32_t i = first_held; i < nr_calls && !hold; i++)
		if (calls[i].r)
			answer_next(&calls[i]);
	crig_settle();
}

uint32_t crig_nr_calls(void)
{
	return nr_calls;
}

uint32_t crig_nr_held(void)
{
	uint32_t n = 0;

	for (uint32_t i = first_held; i < nr_calls; i++)
		n += calls[i].r != NULL;
	return n;
}

const struct crig_call *crig_call(uint32_t i)
{
	assert_true(i < nr_calls);
	return &calls[i];
}

uint32_t crig_count_calls(int op, uint32_t from)
{
	uint32_t n = 0;

	for (uint32_t i = from; i < nr_calls; i++)
		n += op == CRIG_ANY || calls[i].op == op;
	return n;
}

uint32_t crig_held(int op, uint32_t from)
{
	for (uint32_t i = from; i < nr_calls; i++)
		if (calls[i].r && (op == CRIG_ANY || calls[i].op == op))
			return i;
	return CRIG_NEVER;
}

static struct crig_call *held_call(uint32_t call)
{
	assert_true(call < nr_calls);
	return &calls[call];
}

void crig_answer_only(uint32_t call)
{
	answer(held_call(call), 0, held_call(call)->size);
}

void crig_answer(uint32_t call)
{
	crig_answer_only(call);
	crig_settle();
}

void crig_fail(uint32_t call, int error)
{
	answer(held_call(call), error, 0);
	crig_settle();
}

void crig_short(uint32_t call, uint32_t bytes)
{
	answer(held_call(call), 0, bytes);
	crig_settle();
}

void crig_fail_next(int op, int error, uint32_t count_)
{
	fail_op = op;
	fail_error = error;
	fail_count = count_;
}

uint8_t crig_byte(unsigned seed, uint64_t offset)
{
	return seed ? (uint8_t)(offset + offset / 512 * 37 + seed * 101 + 1) : 0;
}

static bool bytes_are(const uint8_t *data, uint64_t offset, uint32_t size, unsigned seed)
{
	for (uint32_t i = 0; i < size; i++)
		if (data[i] != crig_byte(seed, offset + i))
			return false;
	return true;
}

void crig_store_fill(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct store_object *o = store_make(name);

	for (uint32_t i = 0; i < size; i++)
		o->data[offset + i] = crig_byte(seed, offset + i);
}

bool crig_stored(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct store_object *o = store_find(name);

	return o && bytes_are(o->data + offset, offset, size, seed);
}

bool crig_stable(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct store_object *o = store_find(name);

	return o && bytes_are(o->stable + offset, offset, size, seed);
}

/* ---- steps ---- */

static void check(void)
{
	if (crig.peer && peer_serving(crig.peer))
		cached_check(crig.peer);
}

/* Each step of a peer is seen by the others at once. */
static void publish(struct peer *p)
{
	if (p)
		xseg_port_flush(p->ports[0].port);
	check();
}

static bool client_step(void)
{
	struct xreq *r;
	bool any = false;

	while (xseg_port_replies(port, &r, 1)) {
		struct crig_io *io = r->cookie;

		assert_false(io->done);
		io->done = true;
		io->result = r->result;
		io->order = ++nr_answers;
		io->calls = nr_calls;
		any = true;
	}
	return any;
}

bool crig_step_store(void)
{
	bool any = peer_port_step_request(&store->ports[0]);

	publish(store);
	return any;
}

static bool serving(void)
{
	if (!crig.peer)
		return false;
	crig.peer->ports[0].now_ns = crig.now_ns;
	return peer_try_serve(crig.peer);
}

bool crig_step_request(void)
{
	bool any = serving() && peer_port_step_request(&crig.peer->ports[0]);

	publish(crig.peer);
	return any;
}

bool crig_step_reply(void)
{
	bool any = serving() && peer_port_step_reply(&crig.peer->ports[0]);

	publish(crig.peer);
	return any;
}

static uint64_t poll_cached(void)
{
	uint64_t next = serving() ? peer_port_step_poll(&crig.peer->ports[0]) : PEER_NEVER;

	publish(crig.peer);
	return next;
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
		any |= client_step();
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
	crig.now_ns = end;
	settle();
}

/* ---- life ---- */

static void set_options(struct peer *p, const char *options)
{
	char line[256], *save = NULL, *word;
	struct xseg_error err = { "" };

	snprintf(line, sizeof(line), "memory=4M %s", options);
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		assert_non_null(value);
		*value++ = '\0';
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
	snprintf(open_options, sizeof(open_options), "%s", options);
	set_options(crig.peer, options);
	crig.peer->ports[0].now_ns = crig.now_ns;
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
	uint64_t left, total;

	atomic_store(&crig.peer->stopping, true);
	crig_settle();
	assert_true(crig.peer->cls->quiesced(crig.peer, &left, &total));
	leave(crig.peer->cls->close_how(crig.peer, true));
}

void crig_limit(uint32_t n)
{
	cached_limit_pages(crig.peer, n);
}

void crig_up(const char *options)
{
	struct xseg_config cfg = { .memory_bytes = 24 << 20, .nr_requests = 1024, .nr_ports = 8, .huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	crig.now_ns = 1000 * CRIG_S;
	nr_calls = first_held = nr_answers = next_page = volume = fail_count = 0;
	holding = false;
	if (xseg_create_private(&cfg, &crig.seg, &err))
		fail_msg("%s", err.text);
	store = peer_create(&store_class);
	assert_int_equal(peer_open(store, crig.seg, &err), 0);
	assert_true(peer_try_serve(store));
	assert_int_equal(xseg_peer_open(crig.seg, &(struct xseg_peer_params){ .name = "me", .kind = "client", .nr_ports = 1,
			 .nr_requests = NR_IOS }, &client, &err), 0);
	port = xseg_peer_port(client, 0);
	assert_int_equal(xseg_pages_take(client, NR_PAGES, pages), 0);
	if (crig_open(options))
		fail_msg("%s", crig.text);
	crig_settle();
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
	if (crig.peer)
		leave(XSEG_CLOSE_FREE_ARENA);
	peer_close(store, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(store);
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	nr_problems = 0;
	xseg_check(crig.seg, false, problem, NULL);
	xseg_detach(crig.seg);
	crig.seg = NULL;
	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		store_drop(&objects[i]);
	memset(ios, 0, sizeof(ios));
	return nr_problems ? -1 : 0;
}

/* ---- the client ---- */

static struct crig_io *io_get(uint32_t nr_pages)
{
	uint32_t i = 0, used = 0;

	for (uint32_t n = 0; n < NR_IOS; n++)
		used += ios[n].used;
	if (used == 0)
		next_page = 0;
	while (i < NR_IOS && ios[i].used)
		i++;
	assert_true(i < NR_IOS && next_page + nr_pages <= NR_PAGES);
	ios[i] = (struct crig_io){ .used = true, .page = next_page };
	next_page += nr_pages;
	return &ios[i];
}

static uint8_t *io_data(const struct crig_io *io)
{
	return (uint8_t *)xseg_page(crig.seg, pages[io->page]) + io->r->offset % CRIG_PAGE;
}

/* The client's pages are of whole extents: the first ones lie side by side, which is asserted. */
static void io_pages(struct crig_io *io, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(pages[io->page + i], pages[io->page] + i);
		io->r->page[i] = pages[io->page + i];
	}
	io->r->nr_pages = (uint16_t)nr;
}

void crig_volume(uint32_t v)
{
	volume = v;
}

void crig_data_set(struct crig_io *io, unsigned seed)
{
	for (uint32_t i = 0; i < io->r->size; i++)
		io_data(io)[i] = crig_byte(seed, io->r->offset + i);
}

static struct crig_io *submit(struct crig_io *io)
{
	io->r->cookie = io;
	assert_int_equal(xseg_req_submit(port, io->r, xseg_peer_find(crig.seg, "cached")), 0);
	xseg_port_flush(port);
	return io;
}

static struct crig_io *prepare(enum xseg_op op, const char *name, uint64_t offset, uint32_t size)
{
	bool moves = op == XSEG_OP_READ || op == XSEG_OP_WRITE;
	uint32_t nr = moves ? xseg_req_span(offset, size) : 0;
	struct crig_io *io = io_get(nr);

	io->r = xseg_req_alloc(port);
	assert_non_null(io->r);
	io->r->op = (uint8_t)op;
	io->r->volume = volume;
	io->r->offset = io->r->obj_offset = offset;
	io->r->size = size;
	xseg_req_set_target(io->r, name, strlen(name));
	io_pages(io, nr);
	for (uint32_t i = 0; i < nr; i++)
		memset(xseg_page(crig.seg, pages[io->page + i]), 0xee, CRIG_PAGE);
	return io;
}

struct crig_io *crig_send(enum xseg_op op, const char *name, uint64_t offset, uint32_t size, unsigned flags, unsigned seed)
{
	struct crig_io *io = prepare(op, name, offset, size);

	io->r->flags = (uint8_t)flags;
	if (op == XSEG_OP_WRITE)
		crig_data_set(io, seed);
	return submit(io);
}

struct crig_io *crig_send_wrong_hash(enum xseg_op op, const char *name, uint64_t offset, uint32_t size)
{
	struct crig_io *io = prepare(op, name, offset, size);

	io->r->hash ^= 1;
	return submit(io);
}

struct crig_io *crig_send_apart(const char *name, uint64_t offset, uint64_t obj_offset, uint32_t size)
{
	struct crig_io *io = prepare(XSEG_OP_READ, name, offset, size);

	io->r->obj_offset = obj_offset;
	return submit(io);
}

static struct crig_io *settled(struct crig_io *io)
{
	crig_settle();
	return io;
}

struct crig_io *crig_read(const char *name, uint64_t offset, uint32_t size)
{
	return settled(crig_send(XSEG_OP_READ, name, offset, size, 0, 0));
}

struct crig_io *crig_write(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	return settled(crig_send(XSEG_OP_WRITE, name, offset, size, 0, seed));
}

struct crig_io *crig_write_fua(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	return settled(crig_send(XSEG_OP_WRITE, name, offset, size, XSEG_REQ_FUA, seed));
}

struct crig_io *crig_op(enum xseg_op op, const char *name, uint64_t offset, uint32_t size)
{
	return settled(crig_send(op, name, offset, size, 0, 0));
}

struct crig_io *crig_flush(uint32_t v)
{
	struct crig_io *io;
	uint32_t was = volume;

	volume = v;
	io = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	volume = was;
	return settled(io);
}

void crig_expect_waits(const struct crig_io *io)
{
	assert_true(io->used);
	if (io->done)
		fail_msg("was answered (%lld)", (long long)io->result);
}

void crig_expect(struct crig_io *io, int64_t result)
{
	assert_true(io->used);
	if (!io->done)
		fail_msg("is not answered");
	assert_int_equal(io->result, result);
	xseg_req_free(port, io->r);
	io->used = false;
}

bool crig_data_is(const struct crig_io *io, uint32_t from, uint32_t len, unsigned seed)
{
	return bytes_are(io_data(io) + from, io->r->offset + from, len, seed);
}

void crig_expect_data(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct crig_io *io = crig_read(name, offset, size);

	assert_true(io->done);
	assert_int_equal(io->result, size);
	assert_true(crig_data_is(io, 0, size, seed));
	crig_expect(io, size);
}

int64_t crig_admin(const char *line)
{
	struct crig_io *io = io_get(4);
	int64_t result;

	io->r = xseg_req_alloc(port);
	io->r->op = XSEG_OP_ADMIN;
	io->r->size = 4 * CRIG_PAGE;
	io_pages(io, 4);
	memset(io_data(io), 0, 4 * CRIG_PAGE);
	memcpy(io_data(io), line, strlen(line) + 1);
	submit(io);
	crig_settle();
	assert_true(io->done);
	memcpy(crig.text, io_data(io), sizeof(crig.text) - 1);
	result = io->result;
	crig_expect(io, result);
	return result;
}

void crig_set(const char *line)
{
	char text[128];

	snprintf(text, sizeof(text), "set %s", line);
	if (crig_admin(text) < 0)
		fail_msg("%s: %s", text, crig.text);
}

uint64_t crig_number(const char *key)
{
	char with[64];
	const char *at = crig.text;

	snprintf(with, sizeof(with), "%s=", key);
	while (at && strncmp(at, with, strlen(with)))
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	assert_non_null(at);
	return strtoull(at + strlen(with), NULL, 10);
}

bool crig_says(const char *part)
{
	return strstr(crig.text, part);
}

/* ---- inside cached ---- */

struct object *crig_object(const char *name)
{
	for (uint32_t i = 0; i < crig.k->head->nr_objects; i++)
		if (atomic_load(&crig.k->entries[i].used) && !strcmp(crig.k->entries[i].name, name))
			return &crig.k->objects[i];
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
	return &crig.k->creqs[io->r->index];
}

void crig_have_clean(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	crig_store_fill(name, offset, size, seed);
	crig_expect_data(name, offset, size, seed);
}
