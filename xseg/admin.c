/* admin - a line of text to a peer, and its answer: how tools talk to peers.
 *
 * Contract: blocks up to the time given; the port must have nothing else in flight.
 */
#include <errno.h>
#include <string.h>

#include "xseg/internal.h"

int64_t xseg_admin_call(struct xport *port, uint32_t peer, const char *text, uint32_t *page,
	uint32_t nr_pages, uint64_t timeout_ns)
{
	struct xreq *r = xseg_req_alloc(port), *done = NULL;
	uint64_t start = xs_now_ns(), spent;
	size_t len = strlen(text);
	int64_t result;
	int rc;

	if (!r)
		return -EAGAIN;
	if (nr_pages == 0 || nr_pages > XSEG_REQ_PAGES || len >= XSEG_PAGE_SIZE) {
		xseg_req_free(port, r);
		return -EINVAL;
	}
	r->op = XSEG_OP_ADMIN;
	r->nr_pages = (uint16_t)nr_pages;
	r->size = nr_pages * XSEG_PAGE_SIZE <= XSEG_REQ_BYTES ? nr_pages * XSEG_PAGE_SIZE
							      : XSEG_REQ_BYTES;
	memcpy(r->page, page, nr_pages * sizeof(*page));
	memcpy(xseg_page(port->seg, page[0]), text, len + 1);
	rc = xseg_req_submit(port, r, peer);
	if (rc) {
		xseg_req_free(port, r);
		return rc;
	}
	xseg_port_flush(port);
	while (xseg_port_replies(port, &done, 1) == 0) {
		spent = xs_now_ns() - start;
		if (spent >= timeout_ns)
			return -ETIMEDOUT;
		xseg_port_wait(
			port, timeout_ns - spent < 100000000 ? timeout_ns - spent : 100000000);
	}
	result = done->result;
	xseg_req_free(port, done);
	return result <= (int64_t)nr_pages * XSEG_PAGE_SIZE ? result : -EPROTO;
}
