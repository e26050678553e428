/* sosd_ops - the trips to RADOS of each kind of request, and the handling of their answers.
 *
 *   READ          one trip; an object that is not there reads as zeroes
 *   WRITE         one
 *   DISCARD,      two: one for the object's size; one writes zeroes within that, as zeroing over
 *   WRITE_ZEROES  its end would cut it. If the range covers the object, it is removed. An object
 *                 that is not there is not made: a hole stays a hole
 *   COPY          two: the range of the source into the port's buffer; from there to the object.
 *                 RADOS by itself can copy only whole objects
 *   INFO, DELETE  one
 *   LIST          the lister's (sosd_list.h)
 *   FLUSH         none (sosd.h)
 *
 * Contract: called by the op's port's thread. Nothing here knows lists, states or time.
 */
#include <errno.h>
#include <string.h>

#include "peers/sosd/sosd.h"

#define PAGE_DOWN(x) ((x) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE)

/* ENOENT is said of an object that is not there, and of a pool: then it is no answer to
 * anything. */
static int missing(struct sosd *s, int result)
{
	return result == -ENOENT && !sosd_rados_has_pool(&s->rados) ? -ENODEV : result;
}

static int64_t came(struct sosd *s, struct sosd_op *op, int result)
{
	return result < 0 ? missing(s, result) : (int64_t)op->r->size;
}

/* ---- reading ----------------------------------------------------------------------------- */

static int send_read(struct sosd *s, struct sosd_op *op, const char *name)
{
	return sosd_call_read(
		&s->rados, &sosd_port_of(op->pp)->calls, op->call, name, s->peer.seg, op->r);
}

static int64_t read_came(struct sosd *s, struct sosd_op *op, int result)
{
	result = missing(s, result);
	if (result == -ENOENT)
		sosd_fill_all(s->peer.seg, op->r);
	else if (result < 0)
		return result;
	else
		sosd_call_fill(op->call, s->peer.seg, op->r);
	return op->r->size;
}

static int send_stat(struct sosd *s, struct sosd_op *op, const char *name)
{
	return sosd_call_stat(&s->rados, op->call, name);
}

static int64_t info_came(struct sosd *s, struct sosd_op *op, int result)
{
	return result < 0 ? missing(s, result) : (int64_t)op->call->size;
}

/* ---- writing ----------------------------------------------------------------------------- */

static int send_write(struct sosd *s, struct sosd_op *op, const char *name)
{
	return sosd_call_write(
		&s->rados, &sosd_port_of(op->pp)->calls, op->call, name, s->peer.seg, op->r);
}

static int64_t size_came(struct sosd *s, struct sosd_op *op, int result)
{
	result = missing(s, result);
	if (result == -ENOENT)
		return op->r->size;
	if (result < 0)
		return result;
	op->size = op->call->size;
	return op->size > op->r->obj_offset ? SOSD_MORE : op->r->size;
}

static int send_punch(struct sosd *s, struct sosd_op *op, const char *name)
{
	if (!op->r->obj_offset && op->r->size >= op->size)
		return sosd_call_remove(&s->rados, op->call, name);
	return sosd_call_punch(&s->rados, op->call, name, op->r->obj_offset, op->r->size, op->size);
}

/* A try whose answer was lost may have removed it. */
static int64_t punch_came(struct sosd *s, struct sosd_op *op, int result)
{
	int64_t rc = came(s, op, result);

	return rc == -ENOENT ? (int64_t)op->r->size : rc;
}

static int send_remove(struct sosd *s, struct sosd_op *op, const char *name)
{
	return sosd_call_remove(&s->rados, op->call, name);
}

static int64_t remove_came(struct sosd *s, struct sosd_op *op, int result)
{
	/* it may have been done by a predecessor, or by a try whose answer was lost */
	if (missing(s, result) == -ENOENT && (op->again || op->tries))
		return 0;
	return missing(s, result);
}

/* ---- copying ----------------------------------------------------------------------------- */

static int send_load(struct sosd *s, struct sosd_op *op, const char *name)
{
	char source[SOSD_NAME_MAX];

	(void)name;
	sosd_name(s->prefix, op->source, source);
	return sosd_call_load(&s->rados, op->call, source, sosd_port_of(op->pp)->copy_buf,
		op->r->size, op->r->obj_offset);
}

static int64_t load_came(struct sosd *s, struct sosd_op *op, int result)
{
	if (result < 0)
		return missing(s, result);
	memset(sosd_port_of(op->pp)->copy_buf + result, 0, op->r->size - (uint32_t)result);
	return SOSD_MORE;
}

static int send_store(struct sosd *s, struct sosd_op *op, const char *name)
{
	return sosd_call_store(&s->rados, op->call, name, sosd_port_of(op->pp)->copy_buf,
		op->r->size, op->r->obj_offset);
}

/* ---- listing ----------------------------------------------------------------------------- */

static int send_list(struct sosd *s, struct sosd_op *op, const char *name)
{
	(void)name;
	sosd_lister_give(&s->lister, op);
	return 0;
}

static int64_t list_came(struct sosd *s, struct sosd_op *op, int result)
{
	(void)op;
	return missing(s, result);
}

/* ---- trips ------------------------------------------------------------------------------- */

const struct sosd_trip sosd_trips[XSEG_NR_OPS][SOSD_TRIPS] = {
	[XSEG_OP_READ] = { { send_read, read_came } },
	[XSEG_OP_WRITE] = { { send_write, came } },
	[XSEG_OP_DISCARD] = { { send_stat, size_came }, { send_punch, punch_came } },
	[XSEG_OP_WRITE_ZEROES] = { { send_stat, size_came }, { send_punch, punch_came } },
	[XSEG_OP_COPY] = { { send_load, load_came }, { send_store, came } },
	[XSEG_OP_INFO] = { { send_stat, info_came } },
	[XSEG_OP_DELETE] = { { send_remove, remove_came } },
	[XSEG_OP_LIST] = { { send_list, list_came } },
};

static bool is_zeroing(const struct xreq *r)
{
	return r->op == XSEG_OP_DISCARD || r->op == XSEG_OP_WRITE_ZEROES;
}

/* What is written by the sector is exact; copies may set the object's end, and so may a write. An
 * end that is set too early or twice is where the furthest write put it, whatever the order: only
 * zeroing, which keeps the size that it was told, must be alone. */
void sosd_add_ranges(struct sosd_op *op)
{
	const struct xreq *r = op->r;
	const struct shape *shape = &shapes[r->op];
	uint64_t hash = xseg_hash(r->target, strlen(r->target));
	uint64_t to = is_zeroing(r) ? ORDER_END : r->obj_offset + r->size;

	order_op_init(&op->order);
	if (shape->range == SHAPE_OBJECT)
		order_op_add(&op->order, hash, 0, ORDER_END, shape->exclusive);
	if (shape->range == SHAPE_BYTES)
		order_op_add(&op->order, hash, r->obj_offset, to, shape->exclusive);
	if (r->op == XSEG_OP_COPY)
		order_op_add(&op->order, xseg_hash(op->source, strlen(op->source)), r->obj_offset,
			r->obj_offset + r->size, false);
}
