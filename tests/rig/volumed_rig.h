/* volumed_rig - for volumed's tests: a client, volumed and a tiny object store, all stepped in one
 * thread with a clock of its own. The store keeps objects in memory, notes its requests, and fails
 * or holds on demand. Included once by each test.
 */
#ifndef TESTS_UNIT_VOLUMED_RIG_H
#define TESTS_UNIT_VOLUMED_RIG_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "peers/volumed/volumed.h"

#define MS	    1000000ull
#define MAX_OBJECTS 512
#define MAX_NOTES   20000
#define MAX_PAGES   1024
#define OBJECT_MAX  (4u << 20)

/* ---- the store --------------------------------------------------------------------------- */

struct object {
	char name[XSEG_TARGET_MAX];
	uint8_t *data;
};

struct note {
	uint8_t op, flags;
	uint32_t volume, size;
	uint64_t obj_offset, hash;
	uint16_t origin;
	char target[XSEG_TARGET_MAX];
};

static struct object objects[MAX_OBJECTS];
static struct note notes[MAX_NOTES];
static uint32_t nr_notes;
static int fail_op = -1, fail_errno;		/* that op (XSEG_NR_OPS: any) gets that error ... */
static uint32_t fail_after, fail_count;		/* ... after so many, so many times */
static uint32_t fail_done;			/* so many of these are done all the same */
static const char *fail_target;			/* DELETE of it gets EIO */
static const char *wrong_target;		/* all else of it does, until it is deleted */
static const char *wrong_too, *wrong_also;	/* the same of these */
static struct {					/* a READ of that byte gets EIO ... */
	const char *target;			/* (NULL: none) */
	uint64_t at;
	bool stays;				/* ... and a WRITE; else it makes it well */
} bad_sector[3];
static bool hold;				/* requests are kept until it is false */
static bool hold_writes;			/* so are writes of volumes */
static bool knows_no_zeroes, missing_is_enoent;
static bool knows_no_list;
static uint32_t list_room = 8;			/* names in an answer to LIST */
static struct xreq *held;
static struct made {				/* volumes, as create() made them */
	char name[XSEG_NAME_MAX], prefix[XSEG_TARGET_MAX];
} made[64];
static uint32_t nr_made;
/* lends what a READ has read, or for what a WRITE gives */
static void (*lender)(struct peer_port *pp, struct xreq *r);

static inline struct object *object_find(const char *name)
{
	for (uint32_t i = 0; i < MAX_OBJECTS; i++)
		if (objects[i].data && !strcmp(objects[i].name, name))
			return &objects[i];
	return NULL;
}

static inline struct object *object_make(const char *name)
{
	struct object *o = object_find(name);

	for (uint32_t i = 0; i < MAX_OBJECTS && !o; i++)
		if (!objects[i].data)
			o = &objects[i];
	assert_non_null(o);
	if (!o->data) {
		snprintf(o->name, sizeof(o->name), "%s", name);
		o->data = calloc(1, OBJECT_MAX);
	}
	return o;
}

static inline void object_drop(struct object *o)
{
	free(o->data);
	o->data = NULL;
}

static inline uint32_t nr_objects(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MAX_OBJECTS; i++)
		n += objects[i].data && strncmp(objects[i].name, ":catalog", 8);
	return n;
}

static inline void store_note(const struct xreq *r)
{
	struct note *n = &notes[nr_notes++];

	assert_true(nr_notes < MAX_NOTES);
	*n = (struct note){ .op = r->op, .flags = r->flags, .volume = r->volume, .size = r->size,
			    .obj_offset = r->obj_offset, .hash = r->hash, .origin = r->origin };
	memcpy(n->target, r->target, sizeof(n->target));
	assert_int_equal(r->hash, xseg_hash(r->target, strlen(r->target)));
}

/* Places are cursors. An object that was deleted leaves its place. */
static inline int64_t store_list(struct xseg *seg, struct xreq *r)
{
	struct listing l;
	uint64_t i = r->obj_offset;

	if (knows_no_list)
		return -EOPNOTSUPP;
	listing_begin(&l, seg, r);
	for (uint32_t n = 0; i < MAX_OBJECTS && n < list_room; i++)
		if (objects[i].data && listing_wants(r, objects[i].name)) {
			assert_true(listing_add(&l, objects[i].name));
			n++;
		}
	return listing_end(&l, i < MAX_OBJECTS ? i : 0);
}

/* Pages are aligned as volume offsets are; objects begin at multiples of a page. */
static inline int64_t store_do(struct xseg *seg, struct xreq *r)
{
	struct object *o = object_find(r->target);

	if (r->op == XSEG_OP_LIST)
		return store_list(seg, r);
	assert_true(r->obj_offset + r->size <= OBJECT_MAX);
	assert_int_equal(r->obj_offset % 4096, r->offset % 4096);
	switch (r->op) {
	case XSEG_OP_READ:
		if (!o && missing_is_enoent)
			return -ENOENT;
		o = o ? o : object_make(r->target);
		xseg_req_write_data(seg, r, 0, o->data + r->obj_offset, r->size);
		return r->size;
	case XSEG_OP_WRITE:
		o = object_make(r->target);
		xseg_req_read_data(seg, r, 0, o->data + r->obj_offset, r->size);
		return r->size;
	case XSEG_OP_WRITE_ZEROES:
		if (knows_no_zeroes)
			return -EOPNOTSUPP;
		/* fall through */
	case XSEG_OP_DISCARD:
		if (o)
			memset(o->data + r->obj_offset, 0, r->size);
		return r->size;
	case XSEG_OP_DELETE:
		if (!o)
			return -ENOENT;
		object_drop(o);
		return 0;
	case XSEG_OP_FLUSH:
		return 0;
	case XSEG_OP_INFO:
		return o ? (int64_t)OBJECT_MAX : -ENOENT;
	default:
		return -EINVAL;
	}
}

static inline bool is_wrong(const char *target, const struct xreq *r)
{
	return target && !strcmp(r->target, target);
}

/* A bad sector keeps the request from being done. */
static inline bool is_bad(const struct xreq *r)
{
	bool any = false;

	for (uint32_t i = 0; i < 3; i++) {
		bool in = is_wrong(bad_sector[i].target, r) && r->obj_offset <= bad_sector[i].at &&
			  bad_sector[i].at < r->obj_offset + r->size;

		if (r->op == XSEG_OP_DELETE && is_wrong(bad_sector[i].target, r))
			bad_sector[i].target = NULL;
		any |= in && (r->op == XSEG_OP_READ || bad_sector[i].stays);
		if (in && r->op == XSEG_OP_WRITE && !bad_sector[i].stays)
			bad_sector[i].target = NULL;
	}
	return any;
}

static inline void store_serve(struct peer_port *pp, struct xreq *r)
{
	bool may_fail = r->op == fail_op || fail_op == XSEG_NR_OPS;
	int64_t result;

	if (fail_target && r->op == XSEG_OP_DELETE && !strcmp(r->target, fail_target)) {
		peer_answer(pp, r, -EIO);
		return;
	}
	for (uint32_t i = 0; i < 3; i++) {
		const char **wrong = (const char **[]){ &wrong_target, &wrong_too, &wrong_also }[i];

		if (is_wrong(*wrong, r) && r->op != XSEG_OP_DELETE) {
			peer_answer(pp, r, -EIO);
			return;
		}
		if (is_wrong(*wrong, r))
			*wrong = NULL;
	}
	if (is_bad(r)) {
		peer_answer(pp, r, -EIO);
		return;
	}
	if (may_fail && fail_after) {
		fail_after--;
	} else if (may_fail && fail_count) {
		fail_count--;
		if (fail_done) {
			fail_done--;
			store_do(pp->peer->seg, r);
		}
		peer_answer(pp, r, fail_errno);
		return;
	}
	result = store_do(pp->peer->seg, r);
	if (lender && r->flags & (r->op == XSEG_OP_READ ? XSEG_REQ_LOAN : XSEG_REQ_GIVE))
		lender(pp, r);
	peer_answer(pp, r, result);
}

static inline void store_request(struct peer_port *pp, struct xreq *r)
{
	struct xreq **last = &held;

	store_note(r);
	if (!hold && !(hold_writes && r->op == XSEG_OP_WRITE && r->target[0] != ':')) {
		store_serve(pp, r);
		return;
	}
	while (*last)
		last = &(*last)->next;
	r->next = NULL;
	*last = r;
}

static inline uint64_t store_poll(struct peer_port *pp)
{
	struct xreq *r;

	while (!hold && !hold_writes && (r = held)) {
		held = r->next;
		store_serve(pp, r);
	}
	return PEER_NEVER;
}

static const struct opt store_opts[] = { { .name = NULL } };
static const struct peer_class store_class = {
	.kind = "store", .summary = "test", .opts = store_opts, .size = sizeof(struct peer),
	.request = store_request, .poll = store_poll,
};

/* ---- the stack --------------------------------------------------------------------------- */

static struct xseg *seg;
static struct xseg_peer *client;
static struct xport *port;
static struct peer *store, *vd;
static uint64_t now = 1000 * MS;
static uint32_t pages[MAX_PAGES];
static struct xreq *answers;			/* replies not yet asked for */
static char text[XSEG_PAGE_SIZE * 4 + 1];	/* the last admin answer */

static inline void step(void)
{
	struct xreq *r;
	uint64_t next;

	for (uint32_t i = 0; vd && i < vd->nr_ports; i++) {
		peer_try_serve(vd);
		peer_port_round(&vd->ports[i], now, 32, &next);
	}
	peer_port_round(&store->ports[0], now, 32, &next);
	while (xseg_port_replies(port, &r, 1)) {
		r->next = answers;
		answers = r;
	}
	now += 1000;
}

static inline void steps(uint32_t n)
{
	while (n--)
		step();
}

static inline void pass_ns(uint64_t ns)
{
	now += ns;
	steps(20);
}

static inline void volumed_open(uint32_t threads, const char *object_size, const char *requests)
{
	struct xseg_error err = { "" };

	vd = peer_create(&volumed_class);
	assert_non_null(vd);
	vd->threads = threads;
	snprintf(vd->downstream_name, sizeof(vd->downstream_name), "store");
	assert_int_equal(
		opt_set(opt_find(volumed_class.opts, "object_size"), vd, object_size, &err), 0);
	assert_int_equal(opt_set(opt_find(volumed_class.opts, "requests"), vd, requests, &err), 0);
	vd->ports[0].now_ns = now;
	if (peer_open(vd, seg, &err))
		fail_msg("%s", err.text);
}

static inline void volumed_close(enum xseg_close how)
{
	peer_close(vd, how);
	peer_destroy(vd);
	vd = NULL;
}

static inline void volumed_restart(void)
{
	volumed_close(XSEG_CLOSE_ABANDON);
	volumed_open(1, "4M", "64");
	steps(20);
}

static inline void stack_up(void)
{
	struct xseg_config cfg = {
		.memory_bytes = 24 << 20, .nr_requests = 2048, .huge = XSEG_HUGE_NEVER
	};
	struct xseg_error err = { "" };

	if (xseg_create_private(&cfg, &seg, &err))
		fail_msg("%s", err.text);
	store = peer_create(&store_class);
	assert_int_equal(peer_open(store, seg, &err), 0);
	assert_true(peer_try_serve(store));
	assert_int_equal(
		xseg_peer_open(seg,
			&(struct xseg_peer_params){
				.name = "me", .kind = "client", .nr_ports = 1, .nr_requests = 400 },
			&client, &err),
		0);
	port = xseg_peer_port(client, 0);
	assert_int_equal(xseg_pages_take(client, MAX_PAGES, pages), 0);
}

static inline int setup_with(uint32_t threads, const char *object_size, const char *requests)
{
	fail_op = -1;
	fail_after = fail_count = fail_done = 0;
	fail_target = wrong_target = wrong_too = wrong_also = NULL;
	memset(bad_sector, 0, sizeof(bad_sector));
	hold = hold_writes = knows_no_zeroes = missing_is_enoent = knows_no_list = false;
	list_room = 8;
	nr_made = 0;
	nr_notes = 0;
	held = answers = NULL;
	stack_up();
	volumed_open(threads, object_size, requests);
	steps(20);
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	return setup_with(1, "4M", "64");
}

static inline int setup_small(void **state)
{
	(void)state;
	return setup_with(1, "4k", "1");
}

static inline int setup_threads(void **state)
{
	(void)state;
	return setup_with(3, "4k", "8");
}

static unsigned nr_problems;

static inline void problem(const char *what, void *arg)
{
	(void)arg;
	nr_problems++;
	print_message("%s\n", what);
}

static inline int teardown(void **state)
{
	(void)state;
	if (vd)
		volumed_close(XSEG_CLOSE_FREE_ARENA);
	peer_close(store, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(store);
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	nr_problems = 0;
	xseg_check(seg, false, problem, NULL);
	xseg_detach(seg);
	for (uint32_t i = 0; i < MAX_OBJECTS; i++)
		object_drop(&objects[i]);
	return nr_problems ? -1 : 0;
}

/* ---- a client ---------------------------------------------------------------------------- */

/* Sends; the answer is taken by result_of(). Data goes into the client's pages from `page` on. */
static inline struct xreq *send_io(
	enum xseg_op op, uint32_t volume, uint64_t offset, uint32_t size, uint32_t page)
{
	struct xreq *r = xseg_req_alloc(port);

	assert_non_null(r);
	r->op = (uint8_t)op;
	r->volume = volume;
	r->offset = offset;
	r->size = size;
	if (op == XSEG_OP_READ || op == XSEG_OP_WRITE)
		r->nr_pages = (uint16_t)xseg_req_span(offset, size);
	memcpy(r->page, pages + page, r->nr_pages * sizeof(r->page[0]));
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

static inline bool answered(const struct xreq *r)
{
	for (const struct xreq *a = answers; a; a = a->next)
		if (a == r)
			return true;
	return false;
}

/* It is the client's again. */
static inline void wait_for_answer(struct xreq *r)
{
	struct xreq **at = &answers;

	for (uint32_t i = 0; i < 20000 && !answered(r); i++)
		step();
	assert_true(answered(r));
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
}

static inline int64_t result_of(struct xreq *r)
{
	int64_t result;

	wait_for_answer(r);
	result = r->result;
	xseg_req_free(port, r);
	return result;
}

static inline int64_t io(enum xseg_op op, uint32_t volume, uint64_t offset, uint32_t size)
{
	return result_of(send_io(op, volume, offset, size, 0));
}

static inline uint8_t *page_byte(uint64_t at)
{
	return (uint8_t *)xseg_page(seg, pages[at / 4096]) + at % 4096;
}

static inline uint8_t pattern(uint64_t volume_byte, unsigned seed)
{
	return (uint8_t)((volume_byte / 512 * 2654435761u >> 7) + volume_byte + seed);
}

static inline int64_t write_pattern(uint32_t volume, uint64_t offset, uint32_t size, unsigned seed)
{
	for (uint32_t i = 0; i < size; i++)
		*page_byte(offset % 4096 + i) = pattern(offset + i, seed);
	return io(XSEG_OP_WRITE, volume, offset, size);
}

static inline void expect_pattern(uint32_t volume, uint64_t offset, uint32_t size, unsigned seed)
{
	memset(page_byte(0), 0xee, 4096);
	assert_int_equal(io(XSEG_OP_READ, volume, offset, size), size);
	for (uint32_t i = 0; i < size; i++)
		if (*page_byte(offset % 4096 + i) != pattern(offset + i, seed))
			fail_msg("byte %" PRIu64 " is not what was written", offset + i);
}

static inline void expect_zeroes(uint32_t volume, uint64_t offset, uint32_t size)
{
	memset(page_byte(0), 0xee, 4096);
	assert_int_equal(io(XSEG_OP_READ, volume, offset, size), size);
	for (uint32_t i = 0; i < size; i++)
		if (*page_byte(offset % 4096 + i))
			fail_msg("byte %" PRIu64 " is not zero", offset + i);
}

static inline struct xreq *send_admin(const char *line, uint64_t hash)
{
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_ADMIN;
	r->nr_pages = 4;
	r->size = 4 * 4096;
	r->hash = hash;
	memcpy(r->page, pages + MAX_PAGES - 4, 4 * sizeof(r->page[0]));
	memset(page_byte((MAX_PAGES - 4) * 4096ull), 0, 4096);
	memcpy(page_byte((MAX_PAGES - 4) * 4096ull), line, strlen(line) + 1);
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

static inline int64_t admin_result(struct xreq *r)
{
	int64_t result = result_of(r);

	for (uint32_t i = 0; i < 4; i++)
		memcpy(text + i * 4096, page_byte((MAX_PAGES - 4 + i) * 4096ull), 4096);
	text[sizeof(text) - 1] = '\0';
	return result;
}

static inline int64_t admin(const char *line)
{
	return admin_result(send_admin(line, 0));
}

static inline bool says(const char *part)
{
	return strstr(text, part);
}

static inline uint64_t number(const char *key)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

static inline uint32_t create(const char *name, const char *size)
{
	struct made *m;
	char line[200];

	snprintf(line, sizeof(line), "volume create %s size=%s", name, size);
	if (admin(line) <= 0)
		fail_msg("%s: %s", line, text);
	nr_made++;
	m = &made[nr_made % (sizeof(made) / sizeof(made[0]))];
	snprintf(m->name, sizeof(m->name), "%s", name);
	assert_int_equal(sscanf(strstr(text, "prefix="), "prefix=%127s", m->prefix), 1);
	return (uint32_t)number("\nid=");
}

/* ---- the catalogue as it is in the store -------------------------------------------------- */

/* The header is made as it has to be for the records that there are. */
static inline void head_forge(void)
{
	const uint8_t *records = object_make(VD_CATALOG)->data;
	uint8_t *sector = object_make(VD_CATALOG_HEAD)->data;
	struct vd_head head;

	if (vd_head_decode(sector, &head))
		head = (struct vd_head){ .next_identity = 1 };
	head.sum = head.count = 0;
	for (uint32_t i = 0; i < VD_SLOTS; i++) {
		uint64_t sum = vd_record_sum(records + i * VD_RECORD_BYTES);

		head.sum += sum;
		head.count += sum != 0;
	}
	vd_head_encode(&head, sector);
}

/* A record, its copy and the header say this; volumed sees it when it is started again. */
static inline void record_forge(uint32_t slot, const struct vd_meta *meta)
{
	vd_record_encode(meta, slot, object_make(VD_CATALOG)->data + slot * VD_RECORD_BYTES);
	vd_record_encode(meta, slot, object_make(VD_CATALOG_COPY)->data + slot * VD_RECORD_BYTES);
	head_forge();
}

static inline void record_read(uint32_t slot, struct vd_meta *meta)
{
	const uint8_t *records = object_make(VD_CATALOG)->data;

	assert_int_equal(vd_record_decode(records + slot * VD_RECORD_BYTES, slot, meta), 0);
}

/* How the objects of the last volume of that name begin. */
static inline const char *of(const char *name)
{
	for (uint32_t i = nr_made; i > 0 && i + 64 > nr_made; i--)
		if (!strcmp(made[i % 64].name, name))
			return made[i % 64].prefix;
	fail_msg("no volume '%s' was made", name);
	return "";
}

/* The name of one of them; good until the next call but three. */
static inline const char *object_of(const char *name, uint64_t number)
{
	static char names[4][XSEG_TARGET_MAX + 32];
	static uint32_t n;
	char *to = names[n++ % 4];

	snprintf(to, sizeof(names[0]), "%s%016" PRIx64, of(name), number);
	return to;
}

static inline uint32_t count_notes(enum xseg_op op, const char *prefix)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr_notes; i++)
		n += notes[i].op == op && !strncmp(notes[i].target, prefix, strlen(prefix));
	return n;
}

static inline uint32_t count_exact(enum xseg_op op, const char *target)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr_notes; i++)
		n += notes[i].op == op && !strcmp(notes[i].target, target);
	return n;
}

static inline void fail_next(enum xseg_op op, int rc, uint32_t after, uint32_t count)
{
	fail_op = (int)op;
	fail_errno = rc;
	fail_after = after;
	fail_count = count;
}

#define T(name)		cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_SMALL(name)	cmocka_unit_test_setup_teardown(name, setup_small, teardown)
#define T_THREADS(name) cmocka_unit_test_setup_teardown(name, setup_threads, teardown)

#endif
