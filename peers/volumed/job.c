/* job - deletes behind the scenes what was removed: all objects of a REMOVING volume; of a
 * SHRINKING one the objects wholly beyond its new size, and the rest of the last one is overwritten
 * with zeroes, so that growing it again never shows old data.
 *
 * One volume at a time, VD_JOB_DEPTH requests in flight, and a slice of VD_JOB_SLICE objects, so
 * that a large volume keeps no small one waiting. A slice is a pass over its objects by each port
 * in turn, the highest first, port 0 last. After the last slice comes a FLUSH, then the record.
 *
 *   step       what is done                              then
 *   NONE       port 0 takes the volume that has waited   PASS, by the highest port
 *              longest
 *   PASS       zeroes and deletes, by who has the turn   PASS by the port below; after port 0 NONE
 *                                                        or, if no slice is left, FLUSH
 *   FLUSH      what was deleted stays so after a crash   RECORD
 *   RECORD     waits for the catalogue to be free        RECORDING
 *   RECORDING  SHRINKING -> LIVE, REMOVING -> FREE       NONE; RECORD, if the catalogue is not free
 *
 * What fails ends the slice at the first object that failed, or the FLUSH, or the record: NONE, and
 * the volume waits for its next turn, which comes after a second at the earliest. After a FLUSH
 * that failed all of it is done again: nothing that it covered counts as done. "Is not there" is no
 * failure, but what is wanted.
 *
 * Contract: fields of struct vd_job belong to the thread of the port that has the turn. Nothing
 * blocks. All of it is begun again by a successor, from the volume's record.
 *
 * Invariants
 *   J1  a port's deletes are sent after everything that it forwarded before it saw the change (same
 *       thread, same lanes, and stores keep the order of what overlaps): when all ports have made
 *       their pass, no write to the old volume is on its way, and no port is looking at it
 *   J2  the turn changes hands only when nothing of the job is out
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/common/log.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"

#define TO(step) (1u << VD_JOB_##step)

static const uint8_t legal[VD_JOB_NR_STEPS] = {
	[VD_JOB_NONE] = TO(PASS),
	[VD_JOB_PASS] = TO(PASS) | TO(FLUSH) | TO(NONE),
	[VD_JOB_FLUSH] = TO(RECORD) | TO(NONE),
	[VD_JOB_RECORD] = TO(RECORDING),
	[VD_JOB_RECORDING] = TO(RECORD) | TO(NONE),
};

static void step_set(struct vd_job *job, enum vd_job_step step)
{
	assert(legal[job->step] & 1u << step);
	job->step = step;
}

/* ---- what is to be done ------------------------------------------------------------------ */

static uint64_t first_object(const struct vd_meta *m)
{
	return m->state == VD_SHRINKING ? vd_volume_objects(m, m->size_bytes) : 0;
}

static uint64_t end_object(const struct vd_meta *m)
{
	return vd_volume_objects(m, m->state == VD_SHRINKING ? m->cut_bytes : m->size_bytes);
}

static bool has_job(const struct vd_meta *m)
{
	return m->state == VD_SHRINKING || m->state == VD_REMOVING;
}

uint64_t vd_job_left(const struct volumed *vd, const struct vd_volume *v)
{
	uint64_t left, deleted;

	if (!has_job(&v->meta))
		return 0;
	left = end_object(&v->meta) - v->next_object;
	if (vd->job.v != v)
		return left;
	deleted = atomic_load_explicit(&vd->job.deleted, memory_order_relaxed) / vd->peer.nr_ports;
	return deleted < left ? left - deleted : 0;
}

static void queue_add(struct vd_job *job, struct vd_volume *v)
{
	v->next_job = NULL;
	*job->queue_last = v;
	job->queue_last = &v->next_job;
}

/* When the first of those that wait need not any longer. */
static uint64_t queue_due_ns(const struct vd_job *job)
{
	uint64_t due = PEER_NEVER;

	for (const struct vd_volume *v = job->queue; v; v = v->next_job)
		due = peer_earlier(due, v->retry_ns);
	return due;
}

/* The first that need not wait; there is one. */
static struct vd_volume *queue_take(struct vd_job *job, uint64_t now_ns)
{
	struct vd_volume **at = &job->queue, *v = *at;

	assert(v);
	while (v->retry_ns > now_ns) {
		at = &v->next_job;
		v = *at;
		assert(v);
	}
	*at = v->next_job;
	if (!*at)
		job->queue_last = at;
	return v;
}

void vd_job_add(struct peer_port *pp, struct vd_volume *v)
{
	v->next_object = first_object(&v->meta);
	v->retry_ns = 0;
	v->told = false;
	queue_add(&vd_of(pp)->job, v);
}

static void pass_begin(struct vd_job *job)
{
	const struct vd_meta *m = &job->v->meta;
	uint64_t object_end = vd_volume_objects(m, m->size_bytes) * m->object_size;

	step_set(job, VD_JOB_PASS);
	job->next = job->v->next_object;
	job->zero_next = job->zero_end = 0;
	if (m->state == VD_SHRINKING && job->next == first_object(m)) {
		job->zero_next = m->size_bytes;
		job->zero_end = object_end < m->cut_bytes ? object_end : m->cut_bytes;
	}
}

/* Hands the job to a port's thread (release: partner is the acquire in vd_job_poll()). */
static void turn_set(struct peer_port *pp, uint32_t nr)
{
	atomic_store_explicit(&vd_of(pp)->job.turn, nr, memory_order_release);
	if (nr != pp->nr)
		peer_port_kick(&pp->peer->ports[nr]);
}

static void slice_begin(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = queue_take(job, pp->now_ns);
	uint64_t left = end_object(&v->meta) - v->next_object;

	job->v = v;
	job->end = v->next_object + (left < VD_JOB_SLICE ? left : VD_JOB_SLICE);
	job->retry_ns = 0;
	atomic_store_explicit(&job->deleted, 0, memory_order_relaxed);
	job->zeroes_by_write = false;
	pass_begin(job);
	turn_set(pp, pp->peer->nr_ports - 1);
}

/* The volume has more to be done, and waits for its next turn. */
static void slice_end(struct vd_job *job)
{
	step_set(job, VD_JOB_NONE);
	job->v->retry_ns = job->retry_ns;
	queue_add(job, job->v);
	job->v = NULL;
}

/* ---- sending ----------------------------------------------------------------------------- */

/* What comes after it is not sent in this turn; what failed is, in a later one. */
static void job_failed(struct peer_port *pp, const struct xreq *r, int rc)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;
	uint64_t object = r->offset / v->meta.object_size;

	if (!v->told)
		log_error("%s: %s of what was removed of volume '%s' failed: %s; "
			  "trying again each second",
			  pp->peer->name, xseg_op_name((enum xseg_op)r->op), v->meta.name,
			  strerror(-rc));
	v->told = true;
	job->retry_ns = pp->now_ns + (rc == -ENOTCONN ? VD_CONNECT_NS : VD_RETRY_NS);
	if (r->op == XSEG_OP_FLUSH) {
		v->next_object = first_object(&v->meta);
		return;
	}
	if (r->op != XSEG_OP_DELETE) {
		job->zero_end = 0;
		object = v->next_object;
	}
	if (object < job->end)
		job->end = object;
}

/* An own request is over, and freed. */
static void job_over(struct peer_port *pp, struct xreq *r, int rc)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (rc)
		job_failed(pp, r, rc);
	job->out--;
	xseg_req_free(pp->port, r);
}

static void job_done(struct peer_port *pp, struct xreq *r);

/* Addresses it anew each time: the store may have used those fields. */
static void job_send(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_of(pp)->job.v;
	int rc;

	if (r->op == XSEG_OP_FLUSH)
		vd_volume_address_all(v, r);
	else
		vd_volume_address(v, r, r->offset);
	rc = vd_submit(pp, r, job_done);
	if (rc)
		job_over(pp, r, rc);
}

/* A request of zeroes for a store that knows WRITE only. */
static void zeroes_by_write(struct volumed *vd, struct xreq *r)
{
	r->op = XSEG_OP_WRITE;
	r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
	memcpy(r->page, vd->page + VD_LOAD_PAGES, r->nr_pages * sizeof(r->page[0]));
}

static void job_done(struct peer_port *pp, struct xreq *r)
{
	struct volumed *vd = vd_of(pp);
	struct vd_job *job = &vd->job;
	int64_t rc = r->result;

	if (rc == -EOPNOTSUPP && r->op == XSEG_OP_WRITE_ZEROES) {
		job->zeroes_by_write = true;
		zeroes_by_write(vd, r);
		job_send(pp, r);
		return;
	}
	if (rc == -ENOENT && r->op != XSEG_OP_FLUSH)
		rc = 0;
	else if (rc >= 0)
		rc = rc < (int64_t)r->size ? -EIO : 0;	/* zeroed in part */
	if (!rc && r->op == XSEG_OP_DELETE)
		atomic_fetch_add_explicit(&job->deleted, 1, memory_order_relaxed);
	job_over(pp, r, (int)rc);
}

static bool job_submit(struct peer_port *pp, enum xseg_op op, uint64_t offset, uint32_t size)
{
	struct volumed *vd = vd_of(pp);
	struct xreq *r = xseg_req_alloc(pp->port);

	if (!r)
		return false;
	r->op = (uint8_t)op;
	r->volume = vd_id_of(vd, vd->job.v);
	r->offset = offset;
	r->size = size;
	if (op == XSEG_OP_WRITE_ZEROES && vd->job.zeroes_by_write)
		zeroes_by_write(vd, r);
	vd->job.out++;
	job_send(pp, r);
	XKILL(JOB_SENT);
	return true;
}

/* One more request of this pass; false: all are sent, or none is free. */
static bool pass_send(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	uint64_t most = VD_ZERO_PAGES * XSEG_PAGE_SIZE - job->zero_next % XSEG_PAGE_SIZE;
	uint64_t left = job->zero_next < job->zero_end ? job->zero_end - job->zero_next : 0;
	uint32_t size = (uint32_t)(left < most ? left : most);

	if (size) {
		if (!job_submit(pp, XSEG_OP_WRITE_ZEROES, job->zero_next, size))
			return false;
		job->zero_next += size;
		return true;
	}
	if (job->next >= job->end)
		return false;
	if (!job_submit(pp, XSEG_OP_DELETE, job->next * job->v->meta.object_size, 0))
		return false;
	job->next++;
	return true;
}

static bool pass_is_over(const struct vd_job *job)
{
	return !job->out && job->next >= job->end && job->zero_next >= job->zero_end;
}

/* Everything of this pass is answered. */
static void pass_end(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;

	if (pp->nr) {
		pass_begin(job);
		turn_set(pp, pp->nr - 1);
		return;
	}
	v->next_object = job->end;
	if (job->retry_ns || v->next_object < end_object(&v->meta)) {
		slice_end(job);
		return;
	}
	if (job_submit(pp, XSEG_OP_FLUSH, 0, 0))
		step_set(job, VD_JOB_FLUSH);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* What a volume's slot becomes when its job is done. */
static void job_outcome(const struct vd_volume *v, struct vd_meta *next)
{
	memset(next, 0, sizeof(*next));
	if (v->meta.state == VD_REMOVING) {
		next->generation = v->meta.generation;
		return;
	}
	*next = v->meta;
	next->state = VD_LIVE;
	next->cut_bytes = 0;
}

static void job_recorded(struct peer_port *pp, int rc)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;
	struct vd_meta next;

	if (rc) {
		if (!v->told)
			log_error("%s: the record of volume '%s' cannot be written: %s; "
				  "trying again each second",
				  pp->peer->name, v->meta.name, strerror(-rc));
		v->told = true;
		job->retry_ns = pp->now_ns + VD_RETRY_NS;
		slice_end(job);
		return;
	}
	job_outcome(v, &next);
	log_info("%s: volume '%s' %s", pp->peer->name, v->meta.name,
		 next.state == VD_FREE ? "is removed" : "has been cut to its new size");
	job->v = NULL;
	step_set(job, VD_JOB_NONE);
	vd_volume_become(pp, v, &next);
	if (v->waiter)
		vd_admin_shrunk(pp, v);
}

static void job_record(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_meta next;

	job_outcome(job->v, &next);
	step_set(job, VD_JOB_RECORDING);
	if (!vd_catalog_write(pp, job->v, &next, job_recorded))
		step_set(job, VD_JOB_RECORD);
}

/* ---- going on ---------------------------------------------------------------------------- */

static bool has_turn(const struct peer_port *pp)
{
	/* acquire: partner is the release in turn_set() */
	return atomic_load_explicit(&vd_of(pp)->job.turn, memory_order_acquire) == pp->nr;
}

static void pass_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	while (job->out < VD_JOB_DEPTH && pass_send(pp))
		;
	if (pass_is_over(job))
		pass_end(pp);
}

static void flush_poll(struct vd_job *job)
{
	if (job->out)
		return;
	if (job->retry_ns) {
		slice_end(job);
		return;
	}
	step_set(job, VD_JOB_RECORD);
	XKILL(JOB_FLUSHED);
}

uint64_t vd_job_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (!has_turn(pp) || vd_stopping(pp))
		return PEER_NEVER;
	if (job->step == VD_JOB_NONE && queue_due_ns(job) <= pp->now_ns)
		slice_begin(pp);
	if (has_turn(pp) && job->step == VD_JOB_PASS)
		pass_poll(pp);
	if (!has_turn(pp))
		return PEER_NEVER;
	if (job->step == VD_JOB_FLUSH)
		flush_poll(job);
	if (job->step == VD_JOB_RECORD)
		job_record(pp);
	if (job->step == VD_JOB_NONE)
		return queue_due_ns(job);
	/* no request was free; the catalogue, when it is, is heard of by a reply */
	return job->step == VD_JOB_PASS && !job->out ? pp->now_ns + VD_RETRY_NS : PEER_NEVER;
}
