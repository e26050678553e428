/* cached_rig_store - the object store of cached_rig.h. */
#include "peers/common/blocker/listing.h"
#include "tests/rig/cached_rig.h"

#define NR_OBJECTS 256
#define NR_CALLS   8192

struct store_object {
	char name[XSEG_TARGET_MAX];
	uint8_t *data, *stable;
	uint64_t from, to;		/* what of data may not be stable */
	uint64_t end;			/* behind it nothing was ever written */
};

static struct store_object objects[NR_OBJECTS];
static struct crig_call calls[NR_CALLS];
static uint32_t nr_calls, first_held;
static bool holding, forgets;
static int fail_op, fail_error;
static uint32_t fail_count;
static struct {
	uint32_t at;			/* its number as a call, from 1 on; 0: none */
	int error;			/* 0: half of it */
	bool ever;
} fault;
static struct {
	uint32_t at;			/* as above */
	uint64_t ns;
} jump;

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
		o->from = o->to = o->end = 0;
	}
	return o;
}

static void store_changed(struct store_object *o, uint64_t from, uint64_t bytes)
{
	o->from = o->to && o->from < from ? o->from : from;
	o->to = o->to > from + bytes ? o->to : from + bytes;
	o->end = o->end > o->to ? o->end : o->to;
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
	return !strcmp(a->target, b->target) && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

static bool changes(const struct crig_call *n)
{
	return n->op == XSEG_OP_WRITE || n->op == XSEG_OP_WRITE_ZEROES ||
	       n->op == XSEG_OP_DISCARD || n->op == XSEG_OP_COPY;
}

static void check_alone(const struct crig_call *n)
{
	for (uint32_t i = first_held; i < nr_calls && changes(n); i++)
		if (calls[i].r && changes(&calls[i]) && overlap(&calls[i], n))
			fail_msg("two writes of %s at %llu are at the store", n->target,
				(unsigned long long)n->offset);
}

static int64_t do_write(struct store_object *o, struct xreq *r, uint32_t bytes)
{
	xseg_req_read_data(crig.seg, r, 0, o->data + r->obj_offset, bytes);
	store_changed(o, r->obj_offset, bytes);
	if (r->flags & XSEG_REQ_FUA)
		memcpy(o->stable + r->obj_offset, o->data + r->obj_offset, bytes);
	return bytes;
}

static int64_t do_read(const struct store_object *o, struct xreq *r, uint32_t bytes)
{
	static const uint8_t none[OBJECT_BYTES];

	xseg_req_write_data(crig.seg, r, 0, o ? o->data + r->obj_offset : none, bytes);
	return bytes;
}

static int64_t do_flush(void)
{
	struct store_object *o;

	for (uint32_t i = 0; i < NR_OBJECTS; i++)
		if (objects[i].data) {
			o = &objects[i];
			memcpy(o->stable + o->from, o->data + o->from, o->to - o->from);
			o->from = o->to = 0;
		}
	return 0;
}

static int64_t do_info(const struct store_object *o)
{
	int64_t n = (int64_t)o->end;

	while (n && !o->data[n - 1])
		n--;
	return n;
}

static int64_t do_copy(struct xreq *r, uint32_t bytes)
{
	struct store_object *from = store_find(xseg_page(crig.seg, r->page[0])), *to;

	if (!from)
		return -ENOENT;
	to = store_make(r->target);
	memcpy(to->data + r->obj_offset, from->data + r->obj_offset, bytes);
	store_changed(to, r->obj_offset, bytes);
	return bytes;
}

static int64_t do_zeroes(struct store_object *o, const struct xreq *r, uint32_t bytes)
{
	assert_int_equal(r->nr_pages, 0);
	memset(o->data + r->obj_offset, 0, bytes);
	store_changed(o, r->obj_offset, bytes);
	if (r->flags & XSEG_REQ_FUA)
		memset(o->stable + r->obj_offset, 0, bytes);
	return bytes;
}

/* The cursor is the index of an object, and of one that is not there, too. */
static int64_t do_list(struct xreq *r)
{
	struct listing l;
	uint64_t at = r->obj_offset;

	if (at >= NR_OBJECTS)
		return -ESTALE;
	listing_begin(&l, crig.seg, r);
	for (; at < NR_OBJECTS; at++)
		if (objects[at].data && listing_wants(r, objects[at].name) &&
			!listing_add(&l, objects[at].name))
			break;
	return listing_end(&l, at < NR_OBJECTS ? at : 0);
}

static int64_t store_do(struct xreq *r, uint32_t bytes)
{
	struct store_object *o = store_find(r->target);

	switch (r->op) {
	case XSEG_OP_READ:
		return do_read(o, r, bytes);
	case XSEG_OP_WRITE:
		return do_write(store_make(r->target), r, bytes);
	case XSEG_OP_WRITE_ZEROES:
	case XSEG_OP_DISCARD:
		return o ? do_zeroes(o, r, bytes) : bytes;
	case XSEG_OP_COPY:
		return do_copy(r, bytes);
	case XSEG_OP_FLUSH:
		return do_flush();
	case XSEG_OP_DELETE:
		if (o)
			store_drop(o);
		return o ? 0 : -ENOENT;
	case XSEG_OP_INFO:
		return o ? do_info(o) : -ENOENT;
	case XSEG_OP_LIST:
		return do_list(r);
	default:
		return -EOPNOTSUPP;
	}
}

/* What is not stable is gone, as a kernel forgets what it could not write. */
static void object_forget(struct store_object *o)
{
	if (!o || !o->data)
		return;
	memcpy(o->data + o->from, o->stable + o->from, o->to - o->from);
	o->from = o->to = 0;
}

/* A FLUSH that fails is about all objects, a write with FUA about its own. */
static void sync_fails(const struct crig_call *n)
{
	if (n->op != XSEG_OP_FLUSH && n->flags & XSEG_REQ_FUA)
		object_forget(store_find(n->target));
	for (uint32_t i = 0; n->op == XSEG_OP_FLUSH && i < NR_OBJECTS; i++)
		object_forget(&objects[i]);
}

static void answer(struct crig_call *n, int error, uint32_t bytes)
{
	struct xreq *r = n->r;

	assert_non_null(r);
	if (n->op == XSEG_OP_WRITE && sum_of(r) != n->sum)
		fail_msg("data of %s at %llu changed while the store was writing it", n->target,
			(unsigned long long)n->offset);
	n->r = NULL;
	while (first_held < nr_calls && !calls[first_held].r)
		first_held++;
	if (error && forgets)
		sync_fails(n);
	peer_answer(&crig.store->ports[0], r, error ? error : store_do(r, bytes));
	xseg_port_flush(crig.store->ports[0].port);
}

static bool is_faulty(const struct crig_call *n)
{
	uint32_t nr = (uint32_t)(n - calls) + 1;

	return fault.at && (fault.ever ? nr >= fault.at : nr == fault.at);
}

/* What a write that failed has left is anybody's guess. */
static void answer_faulty(struct crig_call *n)
{
	uint32_t half = n->size / 2 / XSEG_SECTOR * XSEG_SECTOR;

	if (fault.error && n->op == XSEG_OP_WRITE)
		do_write(store_make(n->target), n->r, half);
	answer(n, fault.error, half);
}

static void answer_next(struct crig_call *n)
{
	bool fails = fail_count && (fail_op == CRIG_ANY || fail_op == n->op);

	if (jump.at == (uint32_t)(n - calls) + 1)
		crig.now_ns += jump.ns;
	if (is_faulty(n)) {
		answer_faulty(n);
		return;
	}
	fail_count -= fails;
	answer(n, fails ? fail_error : 0, n->size);
}

static void store_request(struct peer_port *pp, struct xreq *r)
{
	struct crig_call *n = &calls[nr_calls];

	(void)pp;
	assert_true(nr_calls < NR_CALLS);
	*n = (struct crig_call){ .op = r->op, .flags = r->flags, .volume = r->volume,
				 .size = r->size, .offset = r->obj_offset, .r = r };
	memcpy(n->target, r->target, sizeof(n->target));
	assert_int_equal(r->hash, xseg_hash(r->target, strlen(r->target)));
	if (r->op != XSEG_OP_LIST)
		assert_int_equal(r->offset % CRIG_PAGE, r->obj_offset % CRIG_PAGE);
	assert_true(r->size <= XSEG_REQ_BYTES);
	check_alone(n);
	nr_calls++;
	if (r->op == XSEG_OP_WRITE)
		n->sum = sum_of(r);
	else if (r->op != XSEG_OP_COPY)
		rubbish(r);
	if (!holding)
		answer_next(n);
}

static const struct opt store_opts[] = { { .name = NULL } };
const struct peer_class crig_store_class = {
	.kind = "store", .summary = "test", .opts = store_opts, .size = sizeof(struct peer),
	.request = store_request,
};

void crig_store_reset(void)
{
	nr_calls = first_held = fail_count = fault.at = jump.at = 0;
	holding = forgets = false;
	for (uint32_t n = 0; n < NR_OBJECTS; n++)
		store_drop(&objects[n]);
}

void crig_store_forgets(void)
{
	forgets = true;
}

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

void crig_fail_only(uint32_t call, int error)
{
	answer(held_call(call), error, 0);
}

void crig_fail(uint32_t call, int error)
{
	crig_fail_only(call, error);
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

void crig_fault(uint32_t at, int error, bool ever)
{
	fault.at = at ? nr_calls + at : 0;
	fault.error = error;
	fault.ever = ever;
}

void crig_jump(uint32_t at, uint64_t ns)
{
	jump.at = at ? nr_calls + at : 0;
	jump.ns = ns;
}

uint8_t crig_byte(unsigned seed, uint64_t offset)
{
	return seed ? (uint8_t)(offset + offset / 512 * 37 + seed * 101 + 1) : 0;
}

bool crig_bytes_are(const uint8_t *data, uint64_t offset, uint32_t size, unsigned seed)
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
	store_changed(o, offset, size);
}

bool crig_stored(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct store_object *o = store_find(name);

	return o && crig_bytes_are(o->data + offset, offset, size, seed);
}

bool crig_stable(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct store_object *o = store_find(name);

	return o && crig_bytes_are(o->stable + offset, offset, size, seed);
}
