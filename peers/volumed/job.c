/* job - deletes behind the scenes what was removed: all objects of a REMOVING volume; of a
 * SHRINKING one the objects wholly beyond its new size, and the rest of the last one is overwritten
 * with zeroes, so that growing it again never shows old data.
 *
 * One volume at a time, VD_JOB_DEPTH requests in flight. A job is a pass over the objects by each
 * port in turn, the highest first, port 0 last; then a FLUSH; then the record.
 *
 *   step       what is done                              then
 *   NONE       port 0 takes the next volume              PASS, by the highest port
 *   PASS       zeroes and deletes, by who has the turn   PASS by the port below; after port 0 FLUSH
 *   FLUSH      what was deleted stays so after a crash   RECORD
 *   RECORD     waits for the catalogue to be free        RECORDING
 *   RECORDING  SHRINKING -> LIVE, REMOVING -> FREE       NONE; RECORD, to try again, if that failed
 *
 * Contract: fields of struct vd_job belong to the thread of the port that has the turn. Nothing
 * blocks. What failed is sent again each second, but for "is not there", which is what is wanted.
 * All of it is begun again by a successor, from the volume's record.
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
	[VD_JOB_PASS] = TO(PASS) | TO(FLUSH),
	[VD_JOB_FLUSH] = TO(RECORD),
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
	uint64_t total, deleted;

	if (!has_job(&v->meta))
		return 0;
	total = end_object(&v->meta) - first_object(&v->meta);
	if (vd->job.v != v)
		return total;
	deleted = atomic_load_explicit(&vd->job.deleted, memory_order_relaxed) / vd->peer.nr_ports;
	return deleted < total ? total - deleted : 0;
}

void vd_job_add(struct peer_port *pp, struct vd_volume *v)
{
	struct vd_job *job = &vd_of(pp)->job;

	v->next_job = NULL;
	*job->queue_last = v;
	job->queue_last = &v->next_job;
}

static void pass_begin(struct vd_job *job)
{
	const struct vd_meta *m = &job->v->meta;
	uint64_t object_end = vd_volume_objects(m, m->size_bytes) * m->object_size;

	step_set(job, VD_JOB_PASS);
	job->next = first_object(m);
	job->end = end_object(m);
	job->zero_next = job->zero_end = 0;
	if (m->state == VD_SHRINKING) {
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

static void job_begin(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	job->v = job->queue;
	job->queue = job->v->next_job;
	if (!job->queue)
		job->queue_last = &job->queue;
	atomic_store_explicit(&job->deleted, 0, memory_order_relaxed);
	job->told = false;
	job->zeroes_by_write = false;
	pass_begin(job);
	turn_set(pp, pp->peer->nr_ports - 1);
}

/* ---- sending ----------------------------------------------------------------------------- */

static void job_done(struct peer_port *pp, struct xreq *r);

static void job_failed(struct peer_port *pp, struct xreq *r, int rc)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (!job->told)
		log_error("%s: %s of what was removed of volume '%s' failed: %s; "
			  "trying again each second",
			  pp->peer->name, xseg_op_name((enum xseg_op)r->op), job->v->meta.name,
			  strerror(-rc));
	job->told = true;
	r->next = job->failed;
	job->failed = r;
	job->retry_ns = pp->now_ns + (rc == -ENOTCONN ? VD_CONNECT_NS : VD_RETRY_NS);
}

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
		job_failed(pp, r, rc);
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
	else if (rc >= 0 && rc < (int64_t)r->size)
		rc = -EIO;			/* zeroed in part */
	if (rc < 0) {
		job_failed(pp, r, (int)rc);
		return;
	}
	if (r->op == XSEG_OP_DELETE)
		atomic_fetch_add_explicit(&job->deleted, 1, memory_order_relaxed);
	if (job->step == VD_JOB_FLUSH) {
		step_set(job, VD_JOB_RECORD);
		XKILL(JOB_FLUSHED);
	}
	job->out--;
	xseg_req_free(pp->port, r);
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
	uint64_t left = job->zero_end - job->zero_next;
	uint32_t size = (uint32_t)(left < most ? left : most);

	if (size) {
		if (!job_submit(pp, XSEG_OP_WRITE_ZEROES, job->zero_next, size))
			return false;
		job->zero_next += size;
		return true;
	}
	if (job->next == job->end)
		return false;
	if (!job_submit(pp, XSEG_OP_DELETE, job->next * job->v->meta.object_size, 0))
		return false;
	job->next++;
	return true;
}

/* Everything of this pass is answered. False: the job is another port's now. */
static bool pass_end(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (pp->nr) {
		pass_begin(job);
		turn_set(pp, pp->nr - 1);
		return false;
	}
	if (job_submit(pp, XSEG_OP_FLUSH, 0, 0))
		step_set(job, VD_JOB_FLUSH);
	return true;
}

static bool pass_is_over(const struct vd_job *job)
{
	return !job->out && job->next == job->end && job->zero_next == job->zero_end;
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
		if (!job->told)
			log_error("%s: the record of volume '%s' cannot be written: %s; "
				  "trying again each second",
				  pp->peer->name, v->meta.name, strerror(-rc));
		job->told = true;
		step_set(job, VD_JOB_RECORD);
		job->retry_ns = pp->now_ns + VD_RETRY_NS;
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

static struct xreq *failed_take(struct vd_job *job)
{
	struct xreq *r = job->failed;

	job->failed = NULL;
	return r;
}

static void failed_send(struct peer_port *pp)
{
	struct xreq *r, *next;

	for (r = failed_take(&vd_of(pp)->job); r; r = next) {
		next = r->next;
		job_send(pp, r);
	}
}

static void failed_drop(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct xreq *r, *next;

	for (r = failed_take(job); r; r = next) {
		next = r->next;
		job->out--;
		xseg_req_free(pp->port, r);
	}
}

static uint64_t pass_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (job->failed && pp->now_ns >= job->retry_ns)
		failed_send(pp);
	if (job->step == VD_JOB_PASS) {
		while (job->out < VD_JOB_DEPTH && pass_send(pp))
			;
		if (pass_is_over(job) && !pass_end(pp))
			return PEER_NEVER;
		if (!job->out)
			return pp->now_ns + VD_RETRY_NS;
	}
	return job->failed ? job->retry_ns : PEER_NEVER;
}

uint64_t vd_job_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	/* acquire: partner is the release in turn_set() */
	if (atomic_load_explicit(&job->turn, memory_order_acquire) != pp->nr)
		return PEER_NEVER;
	if (vd_stopping(pp)) {
		failed_drop(pp);
		return PEER_NEVER;
	}
	if (job->step == VD_JOB_NONE && job->queue)
		job_begin(pp);
	if (atomic_load_explicit(&job->turn, memory_order_relaxed) != pp->nr)
		return PEER_NEVER;
	if (job->step == VD_JOB_PASS || job->step == VD_JOB_FLUSH)
		return pass_poll(pp);
	if (job->step != VD_JOB_RECORD)
		return PEER_NEVER;
	if (pp->now_ns < job->retry_ns)
		return job->retry_ns;
	job_record(pp);
	/* it may have failed at once; who only waits for the catalogue hears of that by a reply */
	return job->step == VD_JOB_RECORD && job->retry_ns > pp->now_ns ? job->retry_ns
									: PEER_NEVER;
}
