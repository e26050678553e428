/* cut - kills in the middle of a callback: after any number of its changes to the segment.
 *
 * The linker leads the calls by which peers change shared memory through here (--wrap, see the
 * Makefile). An armed cut falls on one of these calls. That call is the last one that the peer
 * does, or the first one that it does not do. The scheduler goes on outside, and closes the peer as
 * a kill would leave it. The callback's private memory and its locks are gone. A cut may be aimed.
 * At looks at pages, too, so that it falls between two pages of one request's data. Or at slots
 * alone, so that it often falls between two of one write.
 *
 * Contract: one thread. No cut falls while the control lock is held. After a real kill the next
 * process that takes the lock finishes the work under it; here no process ends
 * (tests/unit/memory/xseg_kill_test.c kills there).
 */
#include "peers/cached/life/cached.h"
#include "peers/kvd/kvd.h"
#include "tests/rig/wrap.h"
#include "tests/sim/sim.h"
#include "xseg/internal.h"

static struct {
	bool armed;
	enum aim aim;
	uint32_t left;				/* calls before it falls */
	uint32_t locked;			/* the control lock is held */
	jmp_buf *to;
} cut;

void cut_arm(uint32_t calls, enum aim aim, jmp_buf *to)
{
	cut.armed = true;
	cut.aim = aim;
	cut.left = calls;
	cut.locked = 0;
	cut.to = to;
}

uint32_t cut_disarm(void)
{
	cut.armed = false;
	return cut.left;
}

/* For AddressSanitizer: what a callback that was cut off had allocated is lost, as in a kill; that
 * is no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* For ThreadSanitizer: nor are the locks that it held, which end with it, locks in the wrong
 * order. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_destroy_locked=0:detect_deadlocks=0";
}

struct alog;

static void fall(void)
{
	if (!cut.armed || cut.locked || cut.left--)
		return;
	cut.armed = false;
	longjmp(*cut.to, 1);
}

static void point(void)
{
	if (cut.aim != AIM_SLOTS)
		fall();
}

/* It takes lists of parameters for products. */
/* clang-format off */
WRAP_VOID(xseg_req_start, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_apply, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_lend, (struct xport *port, struct xreq *r, uint32_t i, uint32_t page),
	(port, r, i, page))
WRAP_VOID(xseg_req_pass_loans,
	(struct xport *port, const struct xreq *child, struct xreq *parent, uint32_t first),
	(port, child, parent, first))
WRAP_VOID(xseg_port_flush, (struct xport *port), (port))
WRAP_VOID(xseg_page_owner_set, (struct xseg *seg, uint32_t page, uint64_t owner),
	(seg, page, owner))
WRAP_VOID(xseg_pages_give, (struct xseg_peer *peer, uint32_t first), (peer, first))
WRAP_VOID(xs_offer_answer, (struct xport *port, uint32_t to, uint64_t offer), (port, to, offer))
WRAP_VOID(xs_bell_ring, (struct xseg *seg, uint32_t bell, uint32_t *rung), (seg, bell, rung))
WRAP_VOID(xseg_turn_hold, (struct xseg_peer *peer), (peer))
WRAP_VOID(xseg_turn_mind, (struct xseg_peer *peer), (peer))
WRAP_VOID(xseg_req_note_set, (struct xseg *seg, const struct xreq *r, unsigned i, uint64_t word),
	(seg, r, i, word))
WRAP_VOID(xseg_req_write_data,
	(struct xseg *seg, const struct xreq *r, uint32_t from, const void *buf, uint32_t len),
	(seg, r, from, buf, len))
WRAP_VOID(kvd_index_put,
	(struct kvd *k, const uint64_t id[2], const struct alog_place *at,
		const struct xrecord *rec), (k, id, at, rec))
WRAP_VOID(kvd_index_expect,
	(struct kvd *k, const uint64_t id[2], const struct alog_place *at), (k, id, at))
WRAP_VOID(kvd_index_show, (struct kvd *k, const struct paged_put *p), (k, p))
/* of the log; its struct io is another one than that of clients */
WRAP_VOID(io_send, (struct alog *l, struct io *io), (l, io))
WRAP_VOID(tail_publish, (struct alog *l, uint64_t end), (l, end))
WRAP_VOID(tail_open_page, (struct alog *l, uint64_t zone, uint32_t page, uint64_t begun),
	(l, zone, page, begun))
WRAP_VOID(doubt_note, (struct alog *l, uint64_t low, uint64_t high), (l, low, high))
WRAP_VOID(flush_stable, (struct alog *l, uint64_t pos), (l, pos))
WRAP(int, xseg_plug_let_go, (struct xseg_peer *peer), (peer))
WRAP(int, xseg_plug_settle, (struct xseg_peer *peer, struct xseg_error *err), (peer, err))
WRAP(int, xseg_plug_call, (struct xseg_peer *peer), (peer))
WRAP(int, xseg_plug_claim, (struct xseg_peer *peer), (peer))
WRAP(int, xseg_plug_switch, (struct xseg_peer *peer), (peer))
WRAP(int, xseg_pages_take, (struct xseg_peer *peer, uint32_t nr, uint32_t *page), (peer, nr, page))
WRAP(int, xseg_req_forward, (struct xport *port, struct xreq *r, uint32_t peer), (port, r, peer))
WRAP(struct xreq *, xs_req_accept, (struct xport *port, uint64_t offer, uint32_t queue),
	(port, offer, queue))
WRAP(bool, xseg_page_owner_swap,
	(struct xseg *seg, uint32_t page, uint64_t from, uint64_t to), (seg, page, from, to))
WRAP(bool, xs_req_take,
	(struct xport *port, struct xreq *r, uint32_t index, uint64_t place,
		enum xseg_req_state state),
	(port, r, index, place, state))
/* clang-format on */

void __real_xseg_req_answer(struct xport *port, struct xreq *r, int64_t result);
void __wrap_xseg_req_answer(struct xport *port, struct xreq *r, int64_t result);
void __wrap_xseg_req_answer(struct xport *port, struct xreq *r, int64_t result)
{
	result = bad_answer(port, r, result);
	started_check_answer(port, r, result);
	parts_check_answer(port, r, result);
	point();
	__real_xseg_req_answer(port, r, result);
	point();
}

void __real_xseg_req_free(struct xport *port, struct xreq *r);
void __wrap_xseg_req_free(struct xport *port, struct xreq *r);
void __wrap_xseg_req_free(struct xport *port, struct xreq *r)
{
	parts_check_free(port, r);
	point();
	__real_xseg_req_free(port, r);
	point();
}

int __real_xseg_req_submit(struct xport *port, struct xreq *r, uint32_t peer);
int __wrap_xseg_req_submit(struct xport *port, struct xreq *r, uint32_t peer);
int __wrap_xseg_req_submit(struct xport *port, struct xreq *r, uint32_t peer)
{
	int rc;

	parts_check_send(port, r);
	point();
	rc = __real_xseg_req_submit(port, r, peer);
	point();
	return rc;
}

/* What a successor goes by, beside slots: aimed at as these are. */
bool __real_xseg_req_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page);
bool __wrap_xseg_req_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page);
bool __wrap_xseg_req_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page)
{
	bool done;

	fall();
	done = __real_xseg_req_exchange(seg, r, i, page);
	parts_check_exchange(seg, r, i, page);
	fall();
	return done;
}

void __real_bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word);
void __wrap_bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word);
void __wrap_bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word)
{
	fall();
	__real_bucket_set(ps, o, b, word);
	fall();
}

void __real_bucket_leave(struct cport *ps, struct object *o, uint32_t b, enum bucket_state to);
void __wrap_bucket_leave(struct cport *ps, struct object *o, uint32_t b, enum bucket_state to);
void __wrap_bucket_leave(struct cport *ps, struct object *o, uint32_t b, enum bucket_state to)
{
	spared_check(ps, o, b);
	fall();
	__real_bucket_leave(ps, o, b, to);
	fall();
}

/* What a write stores, which has its slots at hand. */
void __real_bucket_set_at(
	struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word);
void __wrap_bucket_set_at(
	struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word);
void __wrap_bucket_set_at(
	struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word)
{
	fall();
	__real_bucket_set_at(ps, o, b, slot, word);
	fall();
}

void *__real_xseg_page(struct xseg *seg, uint32_t page);
void *__wrap_xseg_page(struct xseg *seg, uint32_t page);
void *__wrap_xseg_page(struct xseg *seg, uint32_t page)
{
	if (cut.aim == AIM_PAGES)
		fall();
	return __real_xseg_page(seg, page);
}

int __real_xs_lock(struct xseg *seg, uint64_t byte);
int __wrap_xs_lock(struct xseg *seg, uint64_t byte);
int __wrap_xs_lock(struct xseg *seg, uint64_t byte)
{
	int fd = __real_xs_lock(seg, byte);

	cut.locked += fd >= 0;
	return fd;
}

int __real_xs_lock_all(struct xseg *seg);
int __wrap_xs_lock_all(struct xseg *seg);
int __wrap_xs_lock_all(struct xseg *seg)
{
	int fd = __real_xs_lock_all(seg);

	cut.locked += fd >= 0;
	return fd;
}

int __real_xs_lock_try(struct xseg *seg, bool *all);
int __wrap_xs_lock_try(struct xseg *seg, bool *all);
int __wrap_xs_lock_try(struct xseg *seg, bool *all)
{
	int fd = __real_xs_lock_try(seg, all);

	cut.locked += fd >= 0;
	return fd;
}

void __real_xs_unlock(int fd);
void __wrap_xs_unlock(int fd);
void __wrap_xs_unlock(int fd)
{
	cut.locked--;
	__real_xs_unlock(fd);
}
