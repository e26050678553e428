/* client - the simulated clients: they send requests, and judge the answers.
 *
 * Contract: client_issue() and client_replies() are steps of the scheduler. Requests go to the top
 * peer: to volumed by volume and offset, to an object peer by object name.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

const char *clients_name(const struct sim *s)
{
	static char name[32];

	snprintf(name, sizeof(name), "clients-%u", (unsigned)(s->nr_losses + s->nr_deaths));
	return name;
}

void clients_open(struct sim *s)
{
	uint32_t span = xseg_req_span(0, s->plan.max_io) + 1, nr = s->plan.nr_clients, i, k;
	uint32_t admins = s->plan.cuts ? 2 : 1;
	uint32_t pages = span * s->plan.depth * nr + ADMIN_PAGES * admins;
	struct xseg_peer_params params = {
		.name = clients_name(s), .kind = "client", .nr_ports = nr + admins,
		.nr_requests = s->plan.depth
	};
	struct xseg_error err = { "" };

	if (xseg_peer_open(s->seg, &params, &s->clients, &err))
		sim_fail(s, "clients: %s", err.text);
	s->pages = calloc(xseg_pages_round(pages), sizeof(*s->pages));
	assert(s->pages);
	if (xseg_pages_take(s->clients, pages, s->pages))
		sim_fail(s, "clients: no pages");
	for (i = 0; i < nr; i++) {
		s->client[i].port = xseg_peer_port(s->clients, i);
		for (k = 0; k < s->plan.depth; k++)
			s->client[i].io[k].page = s->pages + (i * s->plan.depth + k) * span;
	}
	s->admin.port = xseg_peer_port(s->clients, nr);
	s->admin.page = s->pages + nr * s->plan.depth * span;
	if (admins < 2)
		return;
	s->keeper.line.port = xseg_peer_port(s->clients, nr + 1);
	s->keeper.line.page = s->admin.page + ADMIN_PAGES;
}

void clients_close(struct sim *s, enum xseg_close how)
{
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		if (s->client[i].direct)
			xseg_direct_destroy(s->client[i].direct);
	xseg_peer_close(s->clients, how);
	s->clients = NULL;
	free(s->pages);
	s->pages = NULL;
	memset(s->client, 0, sizeof(s->client));
	memset(&s->admin, 0, sizeof(s->admin));
	memset(&s->keeper.line, 0, sizeof(s->keeper.line));
	s->in_flight = 0;
}

/* ---- sending ---- */

/* Of its own pages, or, of a write, of those that it gives. */
static void *sector_address(struct sim *s, const struct io *io, uint32_t i)
{
	uint64_t at = io->r->offset % XSEG_PAGE_SIZE + (uint64_t)i * ORACLE_SECTOR;
	uint32_t nr = (uint32_t)(at / XSEG_PAGE_SIZE);
	char *page = io->r->flags & XSEG_REQ_GIVE ? xseg_req_gift_page(s->seg, io->r, nr)
						  : xseg_page(s->seg, io->r->page[nr]);

	return page + at % XSEG_PAGE_SIZE;
}

/* Where it was read to, or what was lent. */
static const void *read_sector(void *arg, uint32_t i)
{
	void **both = arg;
	const struct sim *s = both[0];
	const struct io *io = both[1];
	uint64_t at = io->r->offset % XSEG_PAGE_SIZE + (uint64_t)i * ORACLE_SECTOR;

	return (const char *)xseg_req_page(s->seg, io->r, (uint32_t)(at / XSEG_PAGE_SIZE)) +
	       at % XSEG_PAGE_SIZE;
}

static uint32_t object_sectors(const struct sim *s)
{
	return (uint32_t)(s->plan.object_size / ORACLE_SECTOR);
}

/* Says where the range is, in the way the peer wants it that it is sent to. */
static void address(struct sim *s, const struct io *io, struct xreq *r)
{
	uint64_t offset = (uint64_t)io->first * ORACLE_SECTOR;
	char name[XSEG_TARGET_MAX];

	r->volume = io->id;
	if (s->plan.node[NODE_VOLUMED] && !io->beside) {
		r->offset = offset;
		r->hash = rng_mix(io->id + ((offset / s->plan.object_size) << 32));
		return;
	}
	r->offset = r->obj_offset = offset % s->plan.object_size;
	object_name(s, io->volume, offset / s->plan.object_size, name);
	xseg_req_set_target(r, name, strlen(name));
}

/* ---- pages that a write was lent: what is in them is the client's alone ---- */

#define GIFT_BYTE 0xd1

static bool is_lent(struct sim *s, const struct io *io, const struct xreq *r, uint32_t i)
{
	return xseg_req_gift_page(s->seg, r, i) != xseg_page(s->seg, io->page[i]);
}

static void check_gifts(struct sim *s, const struct io *io)
{
	for (uint32_t i = 0; i < io->gift->nr_lent; i++) {
		const uint8_t *page = xseg_req_gift_page(s->seg, io->gift, i);

		for (uint32_t at = 0; is_lent(s, io, io->gift, i) && at < XSEG_PAGE_SIZE; at++)
			if (page[at] != GIFT_BYTE)
				sim_fail(s,
					"a page that was lent to be written has changed: page %u "
					"of request %u",
					i, io->gift->index);
	}
}

/* Whatever was in them: it shows wherever such a page is something else, too. */
static void keep_gifts(struct sim *s, struct io *io, struct xreq *r)
{
	for (uint32_t i = 0; i < r->nr_lent; i++)
		if (is_lent(s, io, r, i))
			memset(xseg_req_gift_page(s->seg, r, i), GIFT_BYTE, XSEG_PAGE_SIZE);
	io->gift = r;
	io->r = NULL;
	io->until_step = s->step + io->keep - 1;
	s->nr_given++;
}

bool is_write(uint8_t op)
{
	return op == XSEG_OP_WRITE || op == XSEG_OP_DISCARD || op == XSEG_OP_WRITE_ZEROES ||
	       op == XSEG_OP_COPY || op == XSEG_OP_DELETE;
}

static bool has_data(uint8_t op)
{
	return op == XSEG_OP_READ || op == XSEG_OP_WRITE;
}

static void prepare_data(struct sim *s, struct io *io)
{
	struct xreq *r = io->r;

	r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
	memcpy(r->page, io->page, r->nr_pages * sizeof(r->page[0]));
	for (uint32_t i = 0; i < io->nr; i++) {
		if (io->op == XSEG_OP_WRITE)
			oracle_fill(&s->oracle, io->write, io->first + i, sector_address(s, io, i));
		else
			memset(sector_address(s, io, i), 0xee, ORACLE_SECTOR);
	}
}

/* The name of the object to copy from is text in the first page. */
static void prepare_copy(struct sim *s, struct io *io)
{
	io->r->nr_pages = 1;
	io->r->page[0] = io->page[0];
	object_name(s, io->source, (uint64_t)io->first * ORACLE_SECTOR / s->plan.object_size,
		xseg_page(s->seg, io->page[0]));
}

static uint32_t write_begin(struct sim *s, const struct io *io, bool fua)
{
	if (io->op == XSEG_OP_COPY)
		return oracle_copy_begin(
			&s->oracle, io->volume, io->first, io->nr, io->source, fua);
	return oracle_write_begin(&s->oracle, io->volume, io->first, io->nr,
		io->op == XSEG_OP_WRITE ? ORACLE_DATA : ORACLE_ZEROES, fua);
}

/* A new one, or the one that has been lent pages; if what is sent now does not give them, they are
 * let go of. */
static struct xreq *take_request(struct sim *s, struct client *c, struct io *io)
{
	struct xreq *r = io->gift;

	if (!r)
		r = xseg_req_alloc(c->port);
	else
		check_gifts(s, io);
	if (!r)
		sim_fail(s, "a client has no request left: leaked");
	io->gift = NULL;
	r->nr_pages = 0;
	r->offset = r->obj_offset = r->hash = 0;
	return r;
}

static uint8_t flags_of(const struct sim *s, const struct io *io, bool fua)
{
	uint8_t flags = fua ? XSEG_REQ_FUA : 0;

	if (io->op == XSEG_OP_READ && io->keep)
		flags |= XSEG_REQ_LOAN | (s->plan.direct ? XSEG_REQ_DIRECT : 0);
	if (io->op == XSEG_OP_WRITE && io->give)
		flags |= XSEG_REQ_GIVE;
	return flags | (io->once ? XSEG_REQ_ONCE : 0);
}

/* What a direct reader calls its object, and where in it the range is. */
static uint64_t direct_object(const struct sim *s, const struct io *io, uint64_t *offset)
{
	uint64_t at = (uint64_t)io->first * ORACLE_SECTOR;

	*offset = at % s->plan.object_size;
	return at / s->plan.object_size;
}

static void answer(struct sim *s, struct client *c, struct xreq *r);

#define KNOWN 8u	/* objects that a direct reader knows: less than there are, sometimes */

static bool read_directly(struct sim *s, struct client *c, struct io *io, uint32_t top)
{
	uint64_t offset, object = direct_object(s, io, &offset);

	/* what is in two objects is sent */
	if (!(io->r->flags & XSEG_REQ_DIRECT) ||
		offset + (uint64_t)io->nr * ORACLE_SECTOR > s->plan.object_size)
		return false;
	if (!c->direct && xseg_direct_create(c->port, top, KNOWN, &c->direct))
		sim_fail(s, "clients: no direct reader");
	if (!xseg_direct_read(c->direct, io->r, object, offset))
		return false;
	sim_log(s, "%td: directly", c - s->client);
	s->nr_direct++;
	answer(s, c, io->r);
	return true;
}

static void send(struct sim *s, struct client *c, struct io *io, bool fua)
{
	struct xreq *r = take_request(s, c, io);
	uint32_t top = xseg_peer_find(
		s->seg, node_name(io->beside ? NODE_BESIDE : world_top(s)));

	io->r = r;
	r->op = io->op;
	r->flags = flags_of(s, io, fua);
	if (io->beside)			/* a direct reader knows one peer's objects */
		r->flags &= (uint8_t)~XSEG_REQ_DIRECT;
	r->cookie = io;
	keeper_note_io(s, io);
	address(s, io, r);
	r->size = io->op == XSEG_OP_FLUSH || io->op == XSEG_OP_DELETE ||
				  (io->op == XSEG_OP_INFO && !io->ranged)
			  ? 0
			  : io->nr * ORACLE_SECTOR;
	if (is_write(io->op))
		io->write = write_begin(s, io, fua);
	io->begin = io->op == XSEG_OP_READ || io->ranged ? oracle_read_begin(&s->oracle)
							 : oracle_now(&s->oracle);
	io->issued_ns = s->now;
	if (has_data(io->op))
		prepare_data(s, io);
	if (io->op == XSEG_OP_COPY)
		prepare_copy(s, io);
	sim_log(s, "%td: %s%s v%u %u+%u%s w%u at %" PRIu64, c - s->client, xseg_op_name(io->op),
		io->beside ? " beside" : "", io->volume, io->first, io->nr, fua ? " FUA" : "",
		is_write(io->op) ? io->write : 0, io->begin);
	s->in_flight++;
	if (read_directly(s, c, io, top))
		return;
	if (xseg_req_submit(c->port, r, top))
		sim_fail(s, "a request was not taken");
}

/* ---- what to send ---- */

/* One that has pages to give, if it gives; else one that has none; or what there is. */
static struct io *free_io(struct sim *s, struct client *c, bool give)
{
	struct io *io = NULL;

	for (uint32_t i = 0; i < s->plan.depth; i++) {
		if (c->io[i].r)
			continue;
		if (!io || !c->io[i].gift == !give)
			io = &c->io[i];
	}
	return io;
}

/* An object goes as a whole. */
static void whole_object(struct sim *s, struct io *io)
{
	uint32_t n = object_sectors(s), total = s->plan.sectors[io->volume];

	io->first -= io->first % n;
	io->nr = n < total - io->first ? n : total - io->first;
}

/* What the script says, within the volumes that there are; some of it within what they once were.
 */
static void fit_range(struct sim *s, struct io *io, const struct item *it)
{
	uint32_t total, n = object_sectors(s), first = it->first;

	io->op = it->op;
	io->volume = it->volume == ORACLE_VOLUMES ? ORACLE_VOLUMES
						  : it->volume % s->plan.nr_volumes;
	total = io->volume == ORACLE_VOLUMES ? UINT32_MAX : s->plan.sectors[io->volume];
	if (io->volume != ORACLE_VOLUMES && s->plan.cuts && !it->beyond) {
		const struct sim_volume *v = &s->volume[io->volume];

		total = v->least ? v->least : v->most ? v->most : total;
		first %= total;
	}
	io->first = first < total ? first : total - 1;
	io->nr = it->nr < total - io->first ? it->nr : total - io->first;
	if (!s->plan.node[NODE_VOLUMED] && io->first % n + io->nr > n)
		io->nr = n - io->first % n;
	if (io->op == XSEG_OP_DELETE)
		whole_object(s, io);
	/* without a volumed there are no volumes' sizes to ask for */
	io->ranged = io->op == XSEG_OP_INFO && (it->ranged || !s->plan.node[NODE_VOLUMED]);
	if (io->ranged && io->first % n + io->nr > n)
		io->nr = n - io->first % n;
	io->source = it->source % s->plan.nr_volumes;
	io->give = s->plan.gifts && it->give;
	io->once = it->once;
	io->keep = it->give || s->plan.loans ? it->keep : 0;
}

/* Whether it would change what a COPY that is out copies. */
static bool disturbs_copy(struct sim *s, const struct io *io)
{
	for (uint32_t i = 0; is_write(io->op) && i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++) {
			const struct io *out = &s->client[i].io[k];

			if (out->r && out->op == XSEG_OP_COPY && out->source == io->volume &&
				io->first < out->first + out->nr && out->first < io->first + io->nr)
				return true;
		}
	return false;
}

/* Only what is settled is copied; else the same sectors are read, which helps to settle them. */
static void fit_copy(struct sim *s, struct io *io)
{
	if (io->source != io->volume && !s->plan.node[NODE_VOLUMED] &&
		oracle_is_settled(&s->oracle, io->source, io->first, io->nr))
		return;
	io->op = XSEG_OP_READ;
}

bool client_issue(struct sim *s, struct client *c)
{
	const struct item *it = script_next(s);
	struct io *io = it && it->act == ACT_IO ? free_io(s, c, it->give) : NULL;

	if (!io || !c->port || (!it->beyond && keeper_is_making(s, it)))
		return false;
	fit_range(s, io, it);
	if (disturbs_copy(s, io))
		return false;
	s->at++;
	if (io->op == XSEG_OP_COPY)
		fit_copy(s, io);
	io->beside = goes_beside(s, it, io);
	send(s, c, io, is_write(io->op) && io->op != XSEG_OP_DELETE && it->fua);
	s->issued++;
	if (it->publish)
		xseg_port_flush(c->port);
	return true;
}

/* ---- answers ---- */

static bool expected_error(struct sim *s, const struct io *io, int64_t result)
{
	if (io->op == XSEG_OP_COPY && result == -ENOENT)	/* the source was never written */
		return true;
	if (!s->errors_ok)
		return false;
	s->nr_errors++;
	/* short: the store's own, past the cache */
	return result == -EIO || result == -ENOSPC || result >= 0;
}

static bool is_good(const struct io *io, int64_t result)
{
	switch (io->op) {
	case XSEG_OP_DELETE:
		return result == 0 || result == -ENOENT;
	case XSEG_OP_FLUSH:
		return result == 0;
	case XSEG_OP_INFO:
		return io->ranged ? result >= 0 || result == -ENOENT
				  : result / ORACLE_SECTOR >= (io->least ? io->least : 1) &&
					    result <= (int64_t)io->most * ORACLE_SECTOR;
	default:
		return result == (int64_t)io->nr * ORACLE_SECTOR;
	}
}

static void check_read(struct sim *s, struct io *io, bool good)
{
	void *both[2] = { s, io };

	if (!good)
		oracle_read_drop(&s->oracle, io->begin);
	else if (!oracle_read_end(
			 &s->oracle, io->begin, io->volume, io->first, io->nr, read_sector, both))
		sim_fail(s, "%s", s->oracle.error);
	s->nr_reads += good;
}

static const void *zero_sector(void *arg, uint32_t i)
{
	static const char zeroes[ORACLE_SECTOR];

	(void)arg;
	(void)i;
	return zeroes;
}

/* An INFO says where an object's data ends: the rest of the range was as good as read, and is
 * zeroes. */
static void check_info(struct sim *s, struct io *io, int64_t result, bool good)
{
	uint32_t in = io->first % object_sectors(s), end = 0, past;

	if (result > 0)
		end = (uint32_t)(((uint64_t)result + ORACLE_SECTOR - 1) / ORACLE_SECTOR);
	past = end > in ? end - in : 0;
	if (!good || past >= io->nr)
		oracle_read_drop(&s->oracle, io->begin);
	else if (!oracle_read_end(&s->oracle, io->begin, io->volume, io->first + past,
			 io->nr - past, zero_sector, NULL))
		sim_fail(s, "INFO: an object of %" PRIi64 " bytes: %s", result, s->oracle.error);
}

/* ---- what was lent ---- */

static uint64_t data_sum(struct sim *s, struct io *io)
{
	void *both[2] = { s, io };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < io->nr; i++)
		sum = rng_mix(sum ^ xseg_hash(read_sector(both, i), ORACLE_SECTOR));
	return sum;
}

static void keep(struct sim *s, struct io *io)
{
	io->kept = true;
	io->until_step = s->step + io->keep - 1;
	io->sum = data_sum(s, io);
	s->nr_kept++;
}

/* A loan is a snapshot: it is what it was when it was answered. */
static void let_go(struct sim *s, struct client *c, struct io *io)
{
	if (data_sum(s, io) != io->sum)
		sim_fail(s, "what was lent to a read of volume %u sectors %u+%u has changed",
			io->volume, io->first, io->nr);
	sim_log(s, "%td: lets go of v%u %u+%u", c - s->client, io->volume, io->first, io->nr);
	xseg_req_free(c->port, io->r);
	io->kept = false;
	io->r = NULL;
}

static void drop_gifts(struct sim *s, struct client *c, struct io *io)
{
	check_gifts(s, io);
	sim_log(s, "%td: lets go of the pages of request %u", c - s->client, io->gift->index);
	xseg_req_free(c->port, io->gift);
	io->gift = NULL;
}

bool clients_keep(const struct sim *s)
{
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++)
			if (s->client[i].io[k].kept || s->client[i].io[k].gift)
				return true;
	return false;
}

static void stop_keeping(struct sim *s, struct client *c, struct io *io)
{
	if (io->kept)
		let_go(s, c, io);
	else
		drop_gifts(s, c, io);
}

/* Of those that are due. */
static bool let_go_some(struct sim *s, struct client *c)
{
	bool any = false;

	for (uint32_t k = 0; k < s->plan.depth; k++) {
		struct io *io = &c->io[k];

		if ((!io->kept && !io->gift) || s->step < io->until_step)
			continue;
		stop_keeping(s, c, io);
		any = true;
	}
	return any;
}

static void write_answer(struct sim *s, const struct io *io, bool good, bool fua)
{
	oracle_write_end(&s->oracle, io->write, good);
	s->nr_writes += good;
	if (good)
		promise_check_stored(s, io->volume, io->first, io->nr);
	if (!good || !fua)
		return;
	s->promised = true;
	promise_check(s, io->volume, io->first, io->nr);
}

static void flush_answer(struct sim *s, const struct io *io)
{
	oracle_flush_end(&s->oracle, io->begin, io->volume);
	s->promised = true;
	s->nr_flushes++;
	for (uint32_t v = 0; v < s->plan.nr_volumes; v++)
		if (io->volume == v || io->volume == ORACLE_VOLUMES)
			promise_check(s, v, 0, s->plan.sectors[v]);
}

static void answer(struct sim *s, struct client *c, struct xreq *r)
{
	struct io *io = r->cookie;
	bool good, refused;

	if (!io || io->r != r)
		sim_fail(s, "an answer came twice, or to a request that is not out");
	good = is_good(io, r->result);
	refused = !good && keeper_may_refuse(io, r->result);
	sim_log(s, "%td: %s v%u %u+%u w%u -> %" PRIi64, c - s->client, xseg_op_name(io->op),
		io->volume, io->first, io->nr, is_write(io->op) ? io->write : 0, r->result);
	if (good)
		keeper_check_done(s, io);
	if (!good && !refused && !expected_error(s, io, r->result))
		sim_fail(s,
			"%s of volume %u sectors %u+%u was answered %" PRIi64
			", and no fault was set",
			xseg_op_name(io->op), io->volume, io->first, io->nr, r->result);
	if (refused)
		keeper_refused(s, io, r->result);
	else if (is_write(io->op))
		write_answer(s, io, good, r->flags & XSEG_REQ_FUA);
	else if (io->op == XSEG_OP_READ)
		check_read(s, io, good);
	else if (io->ranged)
		check_info(s, io, r->result, good);
	else if (io->op == XSEG_OP_FLUSH && good)
		flush_answer(s, io);
	s->in_flight--;
	if (io->op == XSEG_OP_WRITE && xseg_req_has_gift(r)) {
		keep_gifts(s, io, r);
		return;
	}
	if (good && io->op == XSEG_OP_READ && r->nr_lent) {
		keep(s, io);
		return;
	}
	xseg_req_free(c->port, r);
	io->r = NULL;
}

static void learn(struct sim *s, struct client *c, const struct xreq *r)
{
	const struct io *io = r->cookie;
	uint64_t offset, object;

	if (!io || io->r != r || !(r->flags & XSEG_REQ_DIRECT) || io->op != XSEG_OP_READ)
		return;
	object = direct_object(s, io, &offset);
	xseg_direct_learn(c->direct, r, object, offset);
}

bool client_replies(struct sim *s, struct client *c)
{
	struct xreq *r;
	bool any = c->port && let_go_some(s, c);

	while (c->port && xseg_port_replies(c->port, &r, 1)) {
		learn(s, c, r);
		answer(s, c, r);
		any = true;
	}
	return any;
}

uint32_t clients_die(struct sim *s, uint32_t *write)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->plan.nr_clients * MAX_DEPTH; i++) {
		const struct io *io = &s->client[i / MAX_DEPTH].io[i % MAX_DEPTH];

		if (!io->r || io->kept)
			continue;
		if (is_write(io->op))
			write[nr++] = io->write;
		else if (io->op == XSEG_OP_READ || io->ranged)
			oracle_read_drop(&s->oracle, io->begin);
	}
	clients_close(s, XSEG_CLOSE_ABANDON);
	return nr;
}

/* ---- reading back ---- */

static bool all_answered(struct sim *s)
{
	return s->in_flight == 0;
}

/* One that is not out; where all keep something, the first lets go. */
static struct io *io_for_reading(struct sim *s, struct client *c)
{
	struct io *io = free_io(s, c, false);

	if (io)
		return io;
	stop_keeping(s, c, &c->io[0]);
	return &c->io[0];
}

/* Some of it by loan, which is kept for a while: also when the peer that lent it is asked to
 * stop. */
void client_read_back(struct sim *s)
{
	struct client *c = &s->client[0];
	uint32_t most = s->plan.max_io / ORACLE_SECTOR, room;

	if (!s->plan.node[NODE_VOLUMED] && most > object_sectors(s))
		most = object_sectors(s);
	for (uint32_t v = 0; v < s->plan.nr_volumes; v++)
		for (uint32_t at = 0; at < s->volume[v].most; at += most) {
			struct io *io = io_for_reading(s, c);

			room = s->volume[v].most - at;
			io->op = XSEG_OP_READ;
			io->volume = v;
			io->first = at;
			io->nr = room < most ? room : most;
			io->give = io->ranged = io->beside = false;
			io->once = rng_one_in(&s->rng, 4);
			io->keep = s->plan.loans && rng_one_in(&s->rng, 4)
					   ? 1 + rng_below(&s->rng, 1500)
					   : 0;
			send(s, c, io, false);
			xseg_port_flush(c->port);
			sched_run(s, all_answered);
		}
}

void client_dump(struct sim *s)
{
	if (s->keeper.step != KEEPER_IDLE)
		printf("  the keeper %s volume %u to have %u sectors\n",
			s->keeper.line.r ? "waits for" : "is to ask for", s->keeper.volume,
			s->keeper.size[0]);
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++) {
			struct io *io = &s->client[i].io[k];

			if (io->r && !io->kept)
				printf("  client %u waits for request %u: %s of volume %u sectors "
					"%u+%u, sent %" PRIu64
				       " us ago\n",
					i, io->r->index, xseg_op_name(io->op), io->volume,
					io->first, io->nr, (s->now - io->issued_ns) / 1000);
		}
}
