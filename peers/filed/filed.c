/* filed - the way of a request through the peer. See filed.h for its states and invariants. */
#include "peers/filed/filed.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/blocker/piece.h"
#include "xtypes/xkill.h"

#define END_MAX		(UINT64_C(1) << 62)
#define SUBMIT_AGAIN_NS 50000			/* the kernel took no more: when to try again */
#define REAP_MAX	64
#define PAGE_DOWN(x)	((x) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE)

/* ---- between threads --------------------------------------------------------------------- */

static void op_work(struct filed *f, struct filed_op *op)
{
	filed_op_set(op, FILED_WORKING);
	filed_pool_push(op->r->op == XSEG_OP_LIST ? &f->lister : &f->pool, &op->work);
}

/* ---- what an op is alone with ------------------------------------------------------------ */

static int read_source(struct filed *f, struct filed_op *op)
{
	int rc = shape_source(f->peer.seg, op->r, op->source);

	if (!rc)
		op->source_hash = xseg_hash(op->source, strlen(op->source));
	return rc;
}

/* O2. What may set the file's end reaches to the end of all: DISCARD, too, where there are no
 * holes. */
static void add_ranges(const struct filed *f, struct filed_op *op)
{
	const struct xreq *r = op->r;
	const struct shape *shape = &shapes[r->op];
	bool exact = shape->data && filed_aligned(f, r);
	bool sets_end = shape->exclusive && !exact;
	uint64_t from = r->obj_offset, to = from + r->size;

	order_op_init(&op->order);
	if (!exact) {
		from = PAGE_DOWN(from);
		to = PAGE_DOWN(to + XSEG_PAGE_SIZE - 1);
	}
	if (shape->range == SHAPE_OBJECT)
		order_op_add(&op->order, op->hash, 0, ORDER_END, shape->exclusive);
	if (shape->range == SHAPE_BYTES)
		order_op_add(&op->order, op->hash, from, sets_end ? ORDER_END : to,
			shape->exclusive);
	if (r->op == XSEG_OP_COPY)
		order_op_add(&op->order, op->source_hash, from, to, false);
}

/* ---- the way of a request ---------------------------------------------------------------- */

/* Not what a request asks for in vain: an object that is not there, a name that is too long, a
 * cursor that is none. */
static bool is_store_error(int64_t result)
{
	return result < 0 && result != -ENOENT && result != -ENAMETOOLONG && result != -ESTALE;
}

/* A FLUSH of what is lost fails whatever the kernel does by now. */
static bool is_of_lost(struct filed *f, const struct filed_op *op)
{
	struct filed_counts counts;

	if (op->r->op != XSEG_OP_FLUSH || op->result != -EIO)
		return false;
	filed_files_count(&f->files, &counts);
	return counts.lost > 0;
}

static const char *remedy(struct filed *f, const struct filed_op *op)
{
	if (is_of_lost(f, op))
		return "lost data has to be written again (filed(8)); the kernel's log may say why";
	switch (-op->result) {
	case FILED_EOTHER:
		return "its file belongs to another object: put back the right one, or remove the "
		       "object (filed(8))";
	case FILED_ESHORT:
		return "its file was cut short: put back the right one, or remove the object "
		       "(filed(8))";
	case FILED_ETAG:
		return "its file's attribute user.xseg is of another version of filed: use the "
		       "filed that made it, or put back the right file (filed(8))";
	case EFBIG:
		return "raise ulimit -f";
	case ENOSPC:
	case EDQUOT:
		return "make room there";
	case EISDIR:
	case ENOTDIR:
	case ELOOP:
	case EACCES:
	case EPERM:
		return "check whether its file is a link or a directory, and which user may write "
		       "to it";
	default:
		return "the kernel's log may say why";
	}
}

static bool is_wrong_file(int64_t result)
{
	return result == -FILED_EOTHER || result == -FILED_ESHORT || result == -FILED_ETAG;
}

/* Of the object, or of a COPY's source: below the directory, with a '/' before it, where it is
 * what is to be looked at. */
static void wrong_path(const struct filed_op *op, char path[FILED_PATH_MAX + 1])
{
	path[0] = '\0';
	if (is_wrong_file(op->result) &&
		!filed_dir_path(op->of_source ? op->source : op->r->target,
			op->of_source ? op->source_hash : op->hash, path + 1))
		path[0] = '/';
}

static void tell_failure(struct peer_port *pp, const struct filed_op *op)
{
	struct filed *f = filed_of(pp->peer);
	int error = is_wrong_file(op->result) ? EIO : (int)-op->result;
	char path[FILED_PATH_MAX + 1];
	uint32_t nr = failures_note(&f->failures, op->r, error, pp->now_ns);

	if (!nr)
		return;
	wrong_path(op, path);
	log_warn("%s: %s of %s in %s%s failed: %s; %s (failures since the last such line: %u)",
		f->peer.name, xseg_op_name((enum xseg_op)op->r->op),
		op->r->target[0] ? op->r->target : "all objects", f->dir_path, path,
		strerror(error), remedy(f, op), nr);
}

static void op_ready(struct filed_port *port, struct filed_op *op)
{
	filed_op_set(op, FILED_BEGUN);
	ops_list_add(&port->ready, &op->order);
}

/* The answer comes before the leaving (O2). */
static void op_answer(struct peer_port *pp, struct filed_op *op)
{
	struct filed *f = filed_of(pp->peer);
	struct order_op *ready = NULL, *next;
	struct filed_op *other;

	if (!op->file || filed_file_put(&f->files, op->file))
		filed_files_idle(f);
	if (is_store_error(op->result))
		tell_failure(pp, op);
	peer_answer(pp, op->r, is_wrong_file(op->result) ? -EIO : op->result);
	if (op->order.nr)
		ready = order_leave(&f->order, &op->order);
	ops_put(&f->ops, &op->order);
	for (; ready; ready = next) {
		next = ready->next;
		other = (struct filed_op *)ready;
		if (other->pp == pp)
			op_ready(filed_port_of(pp), other);
		else
			filed_give_back(other, FILED_BEGUN, 0);
	}
}

static void owe_flush(struct filed *f)
{
	pthread_mutex_lock(&f->lock);
	f->flush_owed = true;
	pthread_mutex_unlock(&f->lock);
}

static void op_sync_file(struct filed *f, struct filed_op *op)
{
	struct filed_fua *fua = &f->fua[op->file - f->files.file];
	bool run;

	pthread_mutex_lock(&f->lock);
	ops_list_add(&fua->ops, &op->order);
	run = !fua->running;
	fua->running = true;
	pthread_mutex_unlock(&f->lock);
	if (run)
		filed_pool_push(&f->pool, &fua->work);
}

void filed_sync_all(struct filed *f, struct filed_op *op)
{
	bool run;

	pthread_mutex_lock(&f->lock);
	if (op)
		ops_list_add(&f->flush, &op->order);
	run = !f->flush_running;
	f->flush_running = true;
	pthread_mutex_unlock(&f->lock);
	if (run)
		filed_pool_push(&f->pool, &f->flush_work);
}

/* Port 0 looks for all ports, so the threads of the others sleep without a tick. */
static void note_space(struct peer_port *pp)
{
	struct filed *f = filed_of(pp->peer);

	if (atomic_load_explicit(&f->space_changed, memory_order_relaxed))
		return;
	atomic_store_explicit(&f->space_changed, true, memory_order_relaxed);
	if (pp->nr)
		peer_port_kick(&f->peer.ports[0]);
}

/* It is ENDED: done, or failed. */
static void op_ended(struct peer_port *pp, struct filed_op *op)
{
	struct filed *f = filed_of(pp->peer);
	const struct xreq *r = op->r;

	if (op->changing)
		filed_change_end(&f->files, &op->change, op->result == (int64_t)r->size);
	op->changing = false;
	if (shapes[r->op].exclusive && op->file) {
		owe_flush(f);
		note_space(pp);
	}
	if (op->result < 0 || !(r->flags & XSEG_REQ_FUA) || !shapes[r->op].exclusive ||
		!op->file) {
		op_answer(pp, op);
		return;
	}
	filed_op_set(op, FILED_SYNCING);
	op_sync_file(f, op);
}

static void op_end(struct peer_port *pp, struct filed_op *op, int64_t result)
{
	filed_op_set(op, FILED_ENDED);
	op->result = result;
	op_ended(pp, op);
}

/* It is MOVING: aligned READ or WRITE of a file that is open. */
static void op_move(struct peer_port *pp, struct filed_op *op)
{
	if (shapes[op->r->op].exclusive && !op->changing)
		filed_op_change(filed_of(pp->peer), op);
	ops_list_add(&filed_port_of(pp)->moving, &op->order);
}

static void fill_zeroes(struct filed *f, const struct xreq *r, uint32_t from)
{
	struct piece p = { .from = from };

	while (piece_next(f->peer.seg, r, r->size, &p))
		memset(p.data, 0, p.len);
}

static void op_begin(struct peer_port *pp, struct filed_op *op)
{
	struct filed *f = filed_of(pp->peer);
	const struct xreq *r = op->r;

	if (r->op == XSEG_OP_FLUSH) {
		filed_op_set(op, FILED_SYNCING);
		filed_sync_all(f, op);
		return;
	}
	if (shapes[r->op].range == SHAPE_BYTES && !r->size) {
		op_end(pp, op, 0);
		return;
	}
	if (shapes[r->op].data && filed_aligned(f, r))
		op->file = filed_file_try(&f->files, op->hash, r->target,
			r->op == XSEG_OP_WRITE ? FILED_MAKE : FILED_USE,
			r->op == XSEG_OP_WRITE ? r->obj_offset + r->size : 0, &op->fd);
	if (!op->file) {
		op_work(f, op);
	} else if (op->fd < 0) {
		fill_zeroes(f, r, 0);
		op_end(pp, op, r->size);
	} else {
		filed_op_set(op, FILED_MOVING);
		op_move(pp, op);
	}
}

/* The kernel has done some of it, or says why not. */
static void op_moved(struct peer_port *pp, struct filed_op *op, int64_t result)
{
	struct filed *f = filed_of(pp->peer);
	struct xreq *r = op->r;

	if (result == -EAGAIN || result == -EINTR) {
		ops_list_add(&filed_port_of(pp)->moving, &op->order);
		return;
	}
	if (result < 0 && result != -EINVAL) {
		op_end(pp, op, result);
		return;
	}
	op->done += result > 0 ? (uint32_t)result : 0;
	if (op->done >= r->size) {
		op_end(pp, op, r->size);
	} else if (result > 0 && op->done % f->dir.align == 0) {
		ops_list_add(&filed_port_of(pp)->moving, &op->order);
	} else if (r->op == XSEG_OP_READ && result == 0) {
		fill_zeroes(f, r, op->done);		/* behind the file's end */
		op_end(pp, op, r->size);
	} else {				/* it ended within a block, perhaps with the file */
		op_work(f, op);
	}
}

static void ops_begin(struct peer_port *pp)
{
	struct filed_op *op;

	while ((op = ops_list_take(&filed_port_of(pp)->ready)))
		op_begin(pp, op);
}

static void filed_accept(struct peer_port *pp, struct xreq *r, bool again)
{
	struct filed *f = filed_of(pp->peer);
	int rc = shape_check(r, END_MAX);
	struct filed_op *op;

	if (rc) {
		peer_answer(pp, r, rc);
		return;
	}
	op = ops_get(&f->ops);
	*op = (struct filed_op){
		.pp = pp, .r = r, .again = again, .fd = -1, .step = FILED_WAITING
	};
	op->work.run = r->op == XSEG_OP_LIST ? filed_job_list : filed_job_run;
	op->hash = xseg_hash(r->target, strlen(r->target));
	if (r->op == XSEG_OP_COPY)
		rc = read_source(f, op);
	if (rc) {
		ops_put(&f->ops, &op->order);
		peer_answer(pp, r, rc);
		return;
	}
	add_ranges(f, op);
	if (!op->order.nr || order_enter(&f->order, &op->order))
		op_ready(filed_port_of(pp), op);
	ops_begin(pp);
}

/* To the kernel at once: a device that is busy when the next one comes needs no doorbell for it.
 * Measured at depth 16: one request a round 75 K IOPS, two 72 K, eight 70 K, all that arrive
 * together 62 K. */
void filed_request(struct peer_port *pp, struct xreq *r)
{
	filed_accept(pp, r, false);
	peer_end_round(pp);
}

/* Whether it was STARTED or not: doing it (again) is harmless, as nothing that overlaps it was
 * begun since. */
void filed_recover(struct peer_port *pp, struct xreq *r)
{
	filed_accept(pp, r, true);
}

/* ---- poll -------------------------------------------------------------------------------- */

static void read_mail(struct peer_port *pp)
{
	struct filed_port *port = filed_port_of(pp);
	struct ops_list mail;
	struct filed_op *op;

	/* acquire: partner is the release in filed_give_back() */
	if (!atomic_load_explicit(&port->has_mail, memory_order_acquire))
		return;
	ops_list_init(&mail);
	pthread_mutex_lock(&port->lock);
	ops_list_move(&mail, &port->inbox);
	atomic_store_explicit(&port->has_mail, false, memory_order_relaxed);
	pthread_mutex_unlock(&port->lock);
	while ((op = ops_list_take(&mail))) {
		if (op->step == FILED_BEGUN)
			ops_list_add(&port->ready, &op->order);
		else if (op->step == FILED_MOVING)
			op_move(pp, op);
		else if (op->step == FILED_ENDED)
			op_ended(pp, op);
		else
			op_answer(pp, op);
	}
}

/* The eventfd is emptied before the last look, so that what comes later makes it readable again. */
static void reap(struct peer_port *pp)
{
	struct filed_port *port = filed_port_of(pp);
	struct filed_done done[REAP_MAX];
	uint32_t nr, i;
	uint64_t count;

	while ((nr = filed_aio_reap(&port->aio, done, REAP_MAX))) {
		for (i = 0; i < nr; i++) {
			XKILL(IO_ENDED);
			op_moved(pp, done[i].owner, done[i].result);
		}
		if (read(port->aio.eventfd, &count, sizeof(count)) < 0)
			continue;
	}
}

static bool submit(struct peer_port *pp)
{
	struct filed_port *port = filed_port_of(pp);
	struct filed_op *op;

	while (port->moving.first && filed_aio_has_room(&port->aio)) {
		op = ops_list_take(&port->moving);
		filed_aio_add(&port->aio, pp->peer->seg, op->r, op->done, op->r->size - op->done,
			op->fd, op->r->obj_offset + op->done, op);
	}
	return filed_aio_submit(&port->aio);
}

/* Port 0, after changes, once in a second. Returns when to ask again. */
static uint64_t look_for_space(struct peer_port *pp)
{
	struct filed *f = filed_of(pp->peer);
	uint64_t due_ns = atomic_load_explicit(&f->space_due_ns, memory_order_relaxed);

	if (pp->nr || !atomic_load_explicit(&f->space_changed, memory_order_relaxed) ||
		due_ns == UINT64_MAX)
		return PEER_NEVER;
	if (pp->now_ns < due_ns)
		return due_ns;
	atomic_store_explicit(&f->space_due_ns, UINT64_MAX, memory_order_relaxed);
	filed_pool_push(&f->pool, &f->space_work);
	return PEER_NEVER;
}

uint64_t filed_poll(struct peer_port *pp)
{
	struct filed_port *port = filed_port_of(pp);
	uint64_t look_ns;

	read_mail(pp);
	reap(pp);
	ops_begin(pp);
	look_ns = look_for_space(pp);
	if (submit(pp))
		return pp->now_ns + SUBMIT_AGAIN_NS;
	return port->aio.failed ? pp->now_ns : look_ns;
}
