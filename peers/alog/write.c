/* write - pages of the tail go below.
 *
 * Contract: see inside.h. Pages go in runs of neighbours, each page once when it is full, and the
 * last one also when `push` is behind its begin. One write of a page is out at a time. A cache
 * below need not keep pages that have copies and no other records.
 *
 * Invariants
 *   W1  `written` is a prefix: all pages before it were answered without an error, with all that
 *       was appended to them.
 *   W2  A page of a failed write is not sent again. repair.c appends its records anew and drops it.
 *       But if it has failed to do so for long, that page is sent again (R1 of repair.c).
 */
#include <assert.h>
#include <errno.h>

#include "peers/alog/inside.h"

#define RUN_PAGES 64u

static bool is_last(const struct alog *l, uint64_t k)
{
	return k + 1 == l->s.next_page && l->z.open;
}

/* Bytes of the page that are to be sent now: 0: none. */
static uint32_t wanted(const struct alog *l, uint64_t k)
{
	const struct page_state *s = tail_state(l, k);

	if (s->out || s->failed || s->sent >= s->fill || !tail_slot(l, k)->zone)
		return 0;
	if (s->fill == ALOG_PAGE || !is_last(l, k) || l->s.push > k * ALOG_PAGE + s->sent)
		return s->fill;
	return 0;
}

static uint32_t run_length(const struct alog *l, uint64_t k)
{
	const struct alog_slot *slot = tail_slot(l, k), *next;
	bool fresh = tail_state(l, k)->fresh;
	uint32_t nr = 1;

	for (; nr < RUN_PAGES && k + nr < l->s.next_page && wanted(l, k + nr); nr++) {
		next = tail_slot(l, k + nr);
		if (next->zone != slot->zone || next->page != slot->page + nr ||
			tail_state(l, k + nr)->fresh != fresh)
			break;
	}
	return nr;
}

static void send_run(struct alog *l, struct io *io, uint64_t k, uint32_t nr)
{
	const struct alog_slot *slot = tail_slot(l, k);

	io->pub.op = XSEG_OP_WRITE;
	io->pub.fua = l->repair.fua;
	io->pub.offset = slot->page * ALOG_PAGE;
	io->pub.once = !tail_state(l, k)->fresh;
	io->from = k;
	io_target(l, io, slot->zone);
	for (uint32_t i = 0; i < nr; i++) {
		struct page_state *s = tail_state(l, k + i);

		tail_zero_rest(l, k + i);
		slot = tail_slot(l, k + i);
		io->pub.lent |= slot->lent != 0;
		if (slot->lent)
			io_page(io, slot->lent - 1);
		else
			io_pages(l, io, tail_page(l, k + i), ALOG_PAGE);
		s->sent = s->fill;
		s->out = true;
	}
	l->stats.written_bytes += (uint64_t)nr * ALOG_PAGE;
	io_send(l, io);
}

bool write_pump(struct alog *l)
{
	uint64_t k = l->s.send_from;
	bool did = false;
	struct io *io;
	uint32_t nr;

	if (l->repair.state == REPAIR_TAIL || l->now < l->s.again_ns)
		return false;
	for (; k < l->s.next_page; k += nr) {
		nr = 1;
		if (!wanted(l, k)) {
			if (k == l->s.send_from && !is_last(l, k) &&
				(tail_state(l, k)->sent >= tail_state(l, k)->fill ||
					!tail_slot(l, k)->zone))
				l->s.send_from = k + 1;
			continue;
		}
		nr = run_length(l, k);
		if (l->io_out[IO_PAGES] >= ALOG_IOS / 2 || !(io = io_get(l, IO_PAGES)))
			break;
		send_run(l, io, k, nr);
		did = true;
	}
	return did;
}

/* W1 */
void write_advance(struct alog *l)
{
	uint64_t k = l->s.written / ALOG_PAGE;

	for (; k < l->s.next_page; k++) {
		const struct page_state *s = tail_state(l, k);

		if (!tail_slot(l, k)->zone && !s->out)
			l->s.written = (k + 1) * ALOG_PAGE;
		else if (s->failed || s->acked < s->fill || is_last(l, k))
			break;
		else
			l->s.written = (k + 1) * ALOG_PAGE;
	}
	if (k < l->s.next_page && !tail_state(l, k)->failed &&
		l->s.written < k * ALOG_PAGE + tail_state(l, k)->acked)
		l->s.written = k * ALOG_PAGE + tail_state(l, k)->acked;
	tail_release(l);
	if (l->repair.fua)
		flush_stable(l, l->s.written);
}

/* L2 */
static struct failed_run run_failed(struct alog *l, const struct io *io)
{
	uint64_t k = io->from;
	struct failed_run run = { .zone = tail_slot(l, k)->zone, .from = k,
		.nr = io->pub.nr_pages };

	for (uint32_t i = 0; i < io->pub.nr_pages; i++)
		tail_state(l, k + i)->failed = tail_slot(l, k + i)->zone != 0;
	run.hold = k * ALOG_PAGE - tail_slot(l, k)->back;
	return run;
}

void write_again(struct alog *l, const struct failed_run *run)
{
	for (uint32_t i = 0; i < run->nr; i++) {
		struct page_state *s = tail_state(l, run->from + i);

		s->failed = false;
		s->sent = s->acked;
	}
	if (l->s.send_from > run->from)
		l->s.send_from = run->from;
	l->s.again_ns = l->now + ALOG_RETRY_MAX_NS;
}

struct failed_run write_done(struct alog *l, struct io *io, int64_t result)
{
	struct failed_run run = { 0 };

	for (uint32_t i = 0; i < io->pub.nr_pages; i++) {
		struct page_state *s = tail_state(l, io->from + i);

		s->out = false;
		if (result == io->pub.size)
			s->acked = s->sent;
	}
	if (result != io->pub.size)
		run = run_failed(l, io);
	io_put(l, io);
	write_advance(l);
	return run;
}
