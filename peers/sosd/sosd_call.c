/* sosd_call - one trip to RADOS: the call that is sent and its answer. See sosd_rados.h for the
 * contract.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/blocker/piece.h"
#include "peers/sosd/sosd_rados.h"

/* ---- calls ------------------------------------------------------------------------------- */

int sosd_calls_open(struct sosd_calls *cs, uint32_t nr)
{
	*cs = (struct sosd_calls){ .nr = nr };
	cs->call = calloc(nr, sizeof(*cs->call));
	cs->buffers = malloc((size_t)(1 + SOSD_BOUNCES) * XSEG_REQ_BYTES);
	if (!cs->call || !cs->buffers)
		return -ENOMEM;
	while (cs->nr_spare < SOSD_BOUNCES) {
		cs->spare[cs->nr_spare] = cs->buffers + (size_t)(1 + cs->nr_spare) * XSEG_REQ_BYTES;
		cs->nr_spare++;
	}
	while (nr-- > 0) {
		cs->call[nr].next = cs->free;
		cs->free = &cs->call[nr];
	}
	return 0;
}

/* Those that are out are in nobody's hands any more. */
void sosd_calls_close(struct sosd_calls *cs)
{
	for (uint32_t i = 0; cs->call && i < cs->nr; i++)
		if (cs->call[i].completion)
			rados_aio_release(cs->call[i].completion);
	free(cs->call);
	free(cs->buffers);
	*cs = (struct sosd_calls){ 0 };
}

struct sosd_call *sosd_call_get(struct sosd_calls *cs, sosd_ended *ended, void *arg)
{
	struct sosd_call *c = cs->free;

	if (rados_aio_create_completion2(arg, ended, &c->completion))
		return NULL;
	cs->free = c->next;
	cs->nr_out++;
	c->nr = 0;
	c->bounce = NULL;
	return c;
}

void sosd_call_put(struct sosd_calls *cs, struct sosd_call *c)
{
	rados_aio_release(c->completion);
	c->completion = NULL;
	if (c->bounce)
		cs->spare[cs->nr_spare++] = c->bounce;
	c->bounce = NULL;
	c->next = cs->free;
	cs->free = c;
	cs->nr_out--;
}

/* ---- pieces ------------------------------------------------------------------------------ */

static bool is_in_pieces(struct xseg *seg, const struct xreq *r)
{
	struct piece p = { 0 };

	return piece_next(seg, r, r->size, &p) && p.len < r->size;
}

void sosd_call_fill(const struct sosd_call *c, struct xseg *seg, const struct xreq *r)
{
	struct piece p = { 0 };

	if (c->bounce) {
		memset(c->bounce + c->got[0], 0, r->size - c->got[0]);
		while (piece_next(seg, r, r->size, &p))
			memcpy(p.data, c->bounce + p.from, p.len);
		return;
	}
	for (uint32_t i = 0; i < c->nr && piece_next(seg, r, r->size, &p); i++)
		if (c->got[i] < p.len)
			memset(p.data + c->got[i], 0, p.len - c->got[i]);
}

void sosd_fill_all(struct xseg *seg, const struct xreq *r)
{
	struct piece p = { 0 };

	while (piece_next(seg, r, r->size, &p))
		memset(p.data, 0, p.len);
}

/* ---- sending ----------------------------------------------------------------------------- */

static int send_write_op(
	struct sosd_rados *s, struct sosd_call *c, const char *name, rados_write_op_t op)
{
	int rc = rados_aio_write_op_operate(op, s->io, c->completion, name, NULL, 0);

	rados_release_write_op(op);
	return rc;
}

static void add_read(
	rados_read_op_t op, struct sosd_call *c, uint64_t offset, uint8_t *data, uint32_t len)
{
	c->got[c->nr] = 0;
	rados_read_op_read(op, offset, len, (char *)data, &c->got[c->nr], NULL);
	c->nr++;
}

int sosd_call_read(struct sosd_rados *s, struct sosd_calls *cs, struct sosd_call *c,
	const char *name, struct xseg *seg, const struct xreq *r)
{
	rados_read_op_t op = rados_create_read_op();
	struct piece p = { 0 };
	int rc;

	if (!op)
		return -ENOMEM;
	if (cs->nr_spare && is_in_pieces(seg, r)) {
		c->bounce = cs->spare[--cs->nr_spare];
		add_read(op, c, r->obj_offset, c->bounce, r->size);
	}
	while (!c->bounce && piece_next(seg, r, r->size, &p))
		add_read(op, c, r->obj_offset + p.from, p.data, p.len);
	rc = rados_aio_read_op_operate(op, s->io, c->completion, name, 0);
	rados_release_read_op(op);
	return rc;
}

int sosd_call_write(struct sosd_rados *s, struct sosd_calls *cs, struct sosd_call *c,
	const char *name, struct xseg *seg, const struct xreq *r)
{
	rados_write_op_t op = rados_create_write_op();
	struct piece p = { 0 };

	if (!op)
		return -ENOMEM;
	if (piece_next(seg, r, r->size, &p) && p.len < r->size) {
		do
			memcpy(cs->buffers + p.from, p.data, p.len);
		while (piece_next(seg, r, r->size, &p));
		p.data = cs->buffers;
	}
	rados_write_op_write(op, (const char *)p.data, r->size, r->obj_offset);
	return send_write_op(s, c, name, op);
}

int sosd_call_stat(struct sosd_rados *s, struct sosd_call *c, const char *name)
{
	return rados_aio_stat(s->io, name, c->completion, &c->size, NULL);
}

int sosd_call_remove(struct sosd_rados *s, struct sosd_call *c, const char *name)
{
	return rados_aio_remove(s->io, name, c->completion);
}

/* The OSD makes a zeroing that reaches the object's end a truncation. */
int sosd_call_punch(struct sosd_rados *s, struct sosd_call *c, const char *name, uint64_t offset,
	uint64_t len, uint64_t size)
{
	rados_write_op_t op = rados_create_write_op();

	if (!op)
		return -ENOMEM;
	if (offset + len < size) {
		rados_write_op_zero(op, offset, len);
	} else {
		rados_write_op_truncate(op, offset);
		rados_write_op_truncate(op, size);
	}
	return send_write_op(s, c, name, op);
}

int sosd_call_load(struct sosd_rados *s, struct sosd_call *c, const char *name, void *buf,
	uint32_t len, uint64_t offset)
{
	return rados_aio_read(s->io, name, c->completion, buf, len, offset);
}

int sosd_call_store(struct sosd_rados *s, struct sosd_call *c, const char *name, const void *buf,
	uint32_t len, uint64_t offset)
{
	return rados_aio_write(s->io, name, c->completion, buf, len, offset);
}
