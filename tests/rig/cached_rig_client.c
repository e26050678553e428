/* cached_rig_client - the client of cached_rig.h. */
#include "tests/rig/cached_rig.h"

#define NR_IOS	 256
#define NR_PAGES 2048

static struct xseg_peer *client;
static struct xport *port;
static struct xseg_direct *direct;		/* made when it is needed first */
static uint32_t pages[NR_PAGES], next_page;
static struct crig_io ios[NR_IOS];
static uint32_t volume, nr_answers;

/* ---- life ---- */

void crig_client_open(void)
{
	struct xseg_error err = { "" };

	nr_answers = next_page = volume = 0;
	assert_int_equal(xseg_peer_open(crig.seg,
				 &(struct xseg_peer_params){ .name = "me",
					 .kind = "client",
					 .nr_ports = 1,
					 .nr_requests = NR_IOS },
				 &client, &err),
		0);
	port = xseg_peer_port(client, 0);
	assert_int_equal(xseg_pages_take(client, NR_PAGES, pages), 0);
}

void crig_client_close(void)
{
	if (direct)
		xseg_direct_destroy(direct);
	direct = NULL;
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	memset(ios, 0, sizeof(ios));
}

bool crig_client_is_quiet(void)
{
	bool quiet = true;

	for (uint32_t i = 0; i < NR_IOS; i++)
		quiet &= !ios[i].used || ios[i].done;
	return quiet;
}

/* The next one of its object need not be sent. */
static void learn(const struct crig_io *io)
{
	if (direct && io->r->flags & XSEG_REQ_DIRECT)
		xseg_direct_learn(direct, io->r, (uint8_t)io->r->target[0], io->r->offset);
}

bool crig_client_step(void)
{
	struct xreq *r;
	bool any = false;

	while (xseg_port_replies(port, &r, 1)) {
		struct crig_io *io = r->cookie;

		assert_false(io->done);
		io->done = true;
		io->result = r->result;
		io->order = ++nr_answers;
		learn(io);
		any = true;
	}
	return any;
}

/* ---- what it sends ---- */

static struct crig_io *io_unused(uint32_t room_min, uint32_t room_max)
{
	for (uint32_t i = 0; i < NR_IOS; i++)
		if (!ios[i].used && ios[i].room >= room_min && ios[i].room <= room_max)
			return &ios[i];
	return NULL;
}

/* With the pages of one that has ended, if they are enough. */
static struct crig_io *io_get(uint32_t nr_pages)
{
	struct crig_io *io;
	uint32_t used = 0;

	for (uint32_t i = 0; i < NR_IOS; i++)
		used += ios[i].used;
	if (used == 0) {
		next_page = 0;
		memset(ios, 0, sizeof(ios));
	}
	io = io_unused(nr_pages, NR_PAGES);
	if (!io) {
		io = io_unused(0, 0);
		assert_non_null(io);
		assert_true(next_page + nr_pages <= NR_PAGES);
		io->page = next_page;
		io->room = nr_pages;
		next_page += nr_pages;
	}
	*io = (struct crig_io){ .used = true, .page = io->page, .room = io->room };
	return io;
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
	uint32_t nr = moves ? xseg_req_span(offset, size) : op == XSEG_OP_COPY;
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

struct crig_io *crig_send(enum xseg_op op, const char *name, uint64_t offset, uint32_t size,
	unsigned flags, unsigned seed)
{
	struct crig_io *io = prepare(op, name, offset, size);

	io->r->flags = (uint8_t)flags;
	if (op == XSEG_OP_WRITE)
		crig_data_set(io, seed);
	return submit(io);
}

#define GIVE_PAGES 8u		/* that such a request has at least: it may have more next time */

static void give_data(struct crig_io *io, unsigned seed)
{
	uint64_t in = io->r->offset % CRIG_PAGE;

	for (uint32_t i = 0; i < io->r->size; i++) {
		uint8_t *page = xseg_req_gift_page(
			crig.seg, io->r, (uint32_t)((in + i) / CRIG_PAGE));

		page[(in + i) % CRIG_PAGE] = crig_byte(seed, io->r->offset + i);
	}
}

struct crig_io *crig_send_give(struct crig_io *io, const char *name, uint64_t offset, uint32_t size,
	unsigned flags, unsigned seed)
{
	uint32_t nr = xseg_req_span(offset, size);

	if (!io) {
		io = io_get(nr > GIVE_PAGES ? nr : GIVE_PAGES);
		io->r = xseg_req_alloc(port);
		assert_non_null(io->r);
	}
	assert_true(nr <= io->room);
	io->done = false;
	io->r->op = XSEG_OP_WRITE;
	io->r->flags = (uint16_t)(XSEG_REQ_GIVE | flags);
	io->r->volume = volume;
	io->r->offset = io->r->obj_offset = offset;
	io->r->size = size;
	xseg_req_set_target(io->r, name, strlen(name));
	io_pages(io, nr);
	give_data(io, seed);
	return submit(io);
}

struct crig_io *crig_send_direct(const char *name, uint64_t offset, uint32_t size, bool *directly)
{
	struct crig_io *io = prepare(XSEG_OP_READ, name, offset, size);

	assert_int_equal(strlen(name), 1);
	if (!direct)
		assert_int_equal(
			xseg_direct_create(port, xseg_peer_find(crig.seg, "cached"), 16, &direct),
			0);
	io->r->flags = XSEG_REQ_LOAN | XSEG_REQ_DIRECT;
	*directly = xseg_direct_read(direct, io->r, (uint8_t)name[0], offset);
	if (!*directly)
		return submit(io);
	io->done = true;
	io->result = io->r->result;
	return io;
}

struct crig_io *crig_send_copy(const char *to, const char *from, uint64_t offset, uint32_t size)
{
	struct crig_io *io = prepare(XSEG_OP_COPY, to, offset, size);

	io->r->nr_pages = 1;
	memcpy(xseg_page(crig.seg, io->r->page[0]), from, strlen(from) + 1);
	return submit(io);
}

struct crig_io *crig_send_list(const char *prefix, uint64_t cursor)
{
	struct crig_io *io = io_get(1);

	io->r = xseg_req_alloc(port);
	assert_non_null(io->r);
	io->r->op = XSEG_OP_LIST;
	io->r->offset = io->r->obj_offset = cursor;
	io->r->size = CRIG_PAGE;
	xseg_req_set_target(io->r, prefix, strlen(prefix));
	io_pages(io, 1);
	return submit(io);
}

struct crig_io *crig_send_wrong_hash(
	enum xseg_op op, const char *name, uint64_t offset, uint32_t size)
{
	struct crig_io *io = prepare(op, name, offset, size);

	io->r->hash ^= 1;
	return submit(io);
}

struct crig_io *crig_send_apart(
	const char *name, uint64_t offset, uint64_t obj_offset, uint32_t size)
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

/* ---- what it gets ---- */

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
	return crig_bytes_are(io_data(io) + from, io->r->offset + from, len, seed);
}

void crig_expect_data(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct crig_io *io = crig_read(name, offset, size);

	assert_true(io->done);
	assert_int_equal(io->result, size);
	assert_true(crig_data_is(io, 0, size, seed));
	crig_expect(io, size);
}

/* ---- commands ---- */

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

void crig_volume_set(const char *line)
{
	char text[128];

	snprintf(text, sizeof(text), "volume-set %s", line);
	if (crig_admin(text) <= 0)
		fail_msg("%s: %s", text, crig.text);
}

void crig_volume_status(uint32_t id)
{
	char line[64];

	snprintf(line, sizeof(line), "volume-status id=%u", id);
	assert_true(crig_admin(line) > 0);
}

void crig_expect_refused(const char *line, int error, const char *reason)
{
	assert_int_equal(crig_admin(line), error);
	if (!crig_says(reason))
		fail_msg("%s: %s", line, crig.text);
}

uint64_t crig_volume_number(uint32_t id, const char *key)
{
	crig_volume_status(id);
	return crig_number(key);
}

uint64_t crig_number(const char *key)
{
	char with[64];
	const char *at;

	snprintf(with, sizeof(with), "%s=", key);
	for (at = crig.text; strncmp(at, with, strlen(with)); at = strchr(at, '\n') + 1)
		assert_non_null(strchr(at, '\n'));
	return strtoull(at + strlen(with), NULL, 10);
}

bool crig_says(const char *part)
{
	return strstr(crig.text, part);
}
