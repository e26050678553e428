/* cut - kills in the middle of a callback: after any number of its changes to the segment.
 *
 * The linker leads the calls by which peers change shared memory through here (--wrap, see the Makefile). When a cut is
 * armed, the call that it fell on is the last thing, or the first thing not, that the peer does: the scheduler goes on
 * outside, and closes the peer as a kill would leave it. What the callback had in private memory is gone with it.
 *
 * Contract: one thread; no wrapped function is called with a lock held.
 */
#include "tests/sim/sim.h"

static struct {
	bool armed;
	uint32_t left;				/* calls before it falls */
	jmp_buf *to;
} cut;

void cut_arm(uint32_t calls, jmp_buf *to)
{
	cut.armed = true;
	cut.left = calls;
	cut.to = to;
}

uint32_t cut_disarm(void)
{
	cut.armed = false;
	return cut.left;
}

/* For AddressSanitizer: what a callback that was cut off had allocated is lost, as in a kill; that is no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void point(void)
{
	if (!cut.armed || cut.left--)
		return;
	cut.armed = false;
	longjmp(*cut.to, 1);
}

#define WRAP_VOID(name, params, args) \
	void __real_##name params; \
	void __wrap_##name params; \
	void __wrap_##name params \
	{ \
		point(); \
		__real_##name args; \
		point(); \
	}

#define WRAP_INT(name, params, args) \
	int __real_##name params; \
	int __wrap_##name params; \
	int __wrap_##name params \
	{ \
		int rc; \
\
		point(); \
		rc = __real_##name args; \
		point(); \
		return rc; \
	}

/* It takes lists of parameters for products. */
/* clang-format off */
WRAP_VOID(xseg_req_start, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_apply, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_req_answer, (struct xport *port, struct xreq *r, int64_t result), (port, r, result))
WRAP_VOID(xseg_req_free, (struct xport *port, struct xreq *r), (port, r))
WRAP_VOID(xseg_port_flush, (struct xport *port), (port))
WRAP_VOID(xseg_page_owner_set, (struct xseg *seg, uint32_t page, uint64_t owner), (seg, page, owner))
WRAP_VOID(xseg_pages_give, (struct xseg_peer *peer, uint32_t first), (peer, first))
WRAP_INT(xseg_pages_take, (struct xseg_peer *peer, uint32_t nr, uint32_t *page), (peer, nr, page))
WRAP_INT(xseg_req_submit, (struct xport *port, struct xreq *r, uint32_t peer), (port, r, peer))
WRAP_INT(xseg_req_forward, (struct xport *port, struct xreq *r, uint32_t peer), (port, r, peer))
/* clang-format on */
