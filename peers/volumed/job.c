/* job - deletes the objects of removed and cut volumes in the background. Of a REMOVING volume it
 * deletes all objects. Of a SHRINKING one it deletes the objects wholly beyond the new size. It
 * overwrites the rest of the last object with zeroes, so growing the volume never shows old data.
 *
 * Older requests may still be on their way then: held, parked or retried below, at a dead peer, of
 * a dead client. They may take effect at any time, and they have no order with our requests. So a
 * delete is final only when no older request is left. But older writes may be parked for pages that
 * only this removal frees. So objects are deleted in rounds:
 *
 *   1  The change is recorded. Every port passes a point between two callbacks. From then on it
 *      sends nothing for the volume, or nothing beyond its new size.
 *   2  While a look at all requests (xseg_volume_requests()) still finds older ones, a round is
 *      made. Further looks follow until the next round.
 *   3  When none is left, the tail is zeroed. Rounds follow until one finds nothing.
 *   4  A FLUSH, and the record.
 *
 * A round is a LIST of the volume's objects, with a DELETE for each that must go. So its cost
 * depends on the objects that the volume has, not on its size. A store that knows no LIST is asked
 * for each object that the volume may have. After step 2 one such round is enough.
 *
 * The job handles one volume at a time, with VD_JOB_DEPTH requests in flight, in slices of
 * VD_JOB_SLICE deletes. So neither a large volume nor one that waits for older requests delays a
 * small volume.
 *
 *   step       work                                      then
 *   NONE       takes the volume that has waited longest  POINT, ZERO, LIST, ASK, FLUSH; or NONE, as
 *                                                        older requests are left
 *   POINT      each port in turn, the highest first      NONE
 *   ZERO       zeroes the tail                           LIST, ASK
 *   LIST       asks for names                            DELETE; ASK, the store knows no LIST
 *   DELETE     deletes those that are named              LIST, NONE
 *   ASK        deletes by number                         NONE
 *   FLUSH      makes the deletes stable                  RECORD
 *   RECORD     waits for the catalogue to be free        RECORDING
 *   RECORDING  SHRINKING -> LIVE, REMOVING -> FREE       NONE; RECORD, if the catalogue is not free
 *
 * A failure ends the slice: the step becomes NONE, and the volume waits for its next turn, a second
 * at least. After a FLUSH that failed all of it is done again: nothing that it covered counts as
 * done. "Is not there" is the wanted result, and no failure.
 *
 * Contract: port 0's thread does all of it, except for the points of other ports. Nothing blocks. A
 * successor begins it anew, from the volume's record. The rounds only find less then.
 *
 * Invariants
 *   J1  When a volume has `passed`, no port sends anything more for it (REMOVING: its id is 0), or
 *       beyond its size (SHRINKING). The exception is the rest of split requests that had begun.
 *       These are counted (vd_port.cutting) until all is sent (S6).
 *   J2  A round after which the job may end began when J1 held and no older request was anywhere.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"
#include "xtypes/xstate.h"

#define TO(step) (1u << VD_JOB_##step)
#define ROUND	 (TO(ZERO) | TO(LIST) | TO(ASK))

static const struct xstates states = {
	.what = "job of volumed",
	XSTATE(VD_JOB_, NONE, TO(POINT) | ROUND | TO(FLUSH)),
	XSTATE(VD_JOB_, POINT, TO(NONE)),
	XSTATE(VD_JOB_, ZERO, TO(LIST) | TO(ASK) | TO(NONE)),
	XSTATE(VD_JOB_, LIST, TO(DELETE) | TO(ASK) | TO(NONE)),
	XSTATE(VD_JOB_, DELETE, TO(LIST) | TO(NONE)),
	XSTATE(VD_JOB_, ASK, TO(NONE)),
	XSTATE(VD_JOB_, FLUSH, TO(RECORD) | TO(NONE)),
	XSTATE(VD_JOB_, RECORD, TO(RECORDING)),
	XSTATE(VD_JOB_, RECORDING, TO(RECORD) | TO(NONE)),
};

static void step_set(struct vd_job *job, enum vd_job_step step)
{
	xstate_check(&states, job->step, step);
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
	const struct vd_job *job = &vd->job;

	if (!has_job(&v->meta))
		return 0;
	if (job->lists_nothing && v->in_round && end_object(&v->meta) > v->cursor)
		return end_object(&v->meta) - v->cursor;
	return v->listed;
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

/* ---- points ------------------------------------------------------------------------------ */

/* Hands it to a port's thread (release: partner is the acquire in has_turn()). */
static void turn_set(struct peer_port *pp, uint32_t nr)
{
	atomic_store_explicit(&vd_of(pp)->job.turn, nr, memory_order_release);
	if (nr != pp->nr)
		peer_port_kick(&pp->peer->ports[nr]);
}

static bool has_turn(const struct peer_port *pp)
{
	/* acquire: partner is the release in turn_set() */
	return atomic_load_explicit(&vd_of(pp)->job.turn, memory_order_acquire) == pp->nr;
}

/* This port is between two callbacks. What it sent before, and the runtime keeps, nobody sees; so
 * that goes first. */
static bool point_pass(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (peer_port_keeps(pp))
		return false;
	vd_split_mark(pp, job->v);
	return true;
}

/* ---- older requests ---------------------------------------------------------------------- */

static uint32_t older_requests(struct peer_port *pp, const struct vd_volume *v)
{
	struct volumed *vd = vd_of(pp);
	uint32_t n = 0;

	/* acquire: partner is the release in split.c: what it counted is sent, and found below */
	for (uint32_t i = 0; i < vd->peer.nr_ports; i++)
		n += atomic_load_explicit(&vd->port[i].cutting, memory_order_acquire);
	return n + xseg_volume_requests(vd->peer.xp, vd_id_of(vd, v),
			   v->meta.state == VD_SHRINKING ? v->meta.size_bytes : 0);
}

/* ---- turns of volumes -------------------------------------------------------------------- */

/* The volume has more to be done, and waits for its next turn. */
static void slice_end(struct vd_job *job, uint64_t retry_ns)
{
	step_set(job, VD_JOB_NONE);
	job->v->retry_ns = retry_ns;
	vd_job_queue(job, job->v);
	job->v = NULL;
}

static void list_next(struct vd_job *job)
{
	step_set(job, job->lists_nothing ? VD_JOB_ASK : VD_JOB_LIST);
}

static void zero_begin(struct vd_job *job)
{
	const struct vd_meta *m = &job->v->meta;
	uint64_t object_end = vd_volume_objects(m, m->size_bytes) * m->object_size;

	job->zero_next = m->size_bytes;
	job->zero_end = object_end < m->cut_bytes ? object_end : m->cut_bytes;
	step_set(job, VD_JOB_ZERO);
}

static void round_begin(struct vd_job *job)
{
	struct vd_volume *v = job->v;

	v->in_round = true;
	v->found = false;
	v->cursor = job->lists_nothing ? first_object(&v->meta) : 0;
	if (v->drained)
		XKILL(JOB_DRAINED);
	if (v->drained && v->meta.state == VD_SHRINKING && !v->zeroed)
		zero_begin(job);
	else
		list_next(job);
}

/* A round, or a look for older requests alone. */
static void round_try(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;

	if (!v->drained) {
		v->waits_for = older_requests(pp, v);
		v->drained = v->waits_for == 0;
	}
	if (v->drained || pp->now_ns >= v->again_ns) {
		round_begin(job);
		return;
	}
	v->retry_ns = pp->now_ns + VD_DRAIN_NS;
	vd_job_queue(job, v);
	job->v = NULL;
}

static void slice_begin(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = queue_take(job, pp->now_ns);

	job->v = v;
	job->slice = VD_JOB_SLICE;
	job->retry_ns = 0;
	job->zeroes_by_write = false;
	if (!v->passed) {
		step_set(job, VD_JOB_POINT);
		turn_set(pp, pp->peer->nr_ports - 1);
	} else if (v->in_round) {
		list_next(job);
	} else {
		round_try(pp);
	}
}

/* ---- sending ----------------------------------------------------------------------------- */

static void job_failed(struct peer_port *pp, const struct xreq *r, int rc)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;

	if (!v->told)
		log_error("%s: %s of removed data of volume '%s' failed: %s; trying again each "
			  "second",
			  pp->peer->name, xseg_op_name((enum xseg_op)r->op), v->meta.name,
			  strerror(-rc));
	v->told = true;
	job->retry_ns = pp->now_ns + (rc == -ENOTCONN ? VD_CONNECT_NS : VD_RETRY_NS);
	if (r->op == XSEG_OP_FLUSH)
		v->zeroed = false;
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

	if (r->op == XSEG_OP_FLUSH || r->op == XSEG_OP_LIST)
		xseg_req_set_target(r, v->prefix, v->prefix_len);
	else
		vd_volume_address(v, r, r->offset);
	if (r->op == XSEG_OP_LIST)
		r->obj_offset = r->offset;
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

/* The next object that is named and is to go; false: there is none. */
static bool name_next(const struct vd_volume *v, struct listing_names *names, uint64_t *number)
{
	char name[XSEG_TARGET_MAX];

	while (listing_next(names, name) == 1)
		if (vd_object_number(v, name, number) && *number >= first_object(&v->meta))
			return true;
	return false;
}

static uint64_t names_count(const struct vd_volume *v, struct listing_names names)
{
	uint64_t nr = 0, number;

	while (name_next(v, &names, &number))
		nr++;
	return nr;
}

/* The answer stays until what it names is deleted. */
static void list_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;
	int64_t rc = r->result;

	if (rc == -EOPNOTSUPP) {
		job->lists_nothing = true;
		v->cursor = first_object(&v->meta);
		step_set(job, VD_JOB_ASK);
		job_over(pp, r, 0);
		return;
	}
	if (rc == -ESTALE) {
		v->cursor = 0;
		v->found = true;		/* of names of before; another round follows */
		job_over(pp, r, 0);
		return;
	}
	if (rc >= 0)
		rc = listing_open(&job->names, pp->peer->seg, r);
	if (rc) {
		job_over(pp, r, (int)rc);
		return;
	}
	job->out--;
	job->list = r;
	v->listed = names_count(v, job->names);
	step_set(job, VD_JOB_DELETE);
}

static void job_done(struct peer_port *pp, struct xreq *r)
{
	struct volumed *vd = vd_of(pp);
	struct vd_job *job = &vd->job;
	int64_t rc = r->result;

	if (r->op == XSEG_OP_LIST) {
		list_done(pp, r);
		return;
	}
	if (rc == -EOPNOTSUPP && r->op == XSEG_OP_WRITE_ZEROES) {
		job->zeroes_by_write = true;
		zeroes_by_write(vd, r);
		job_send(pp, r);
		return;
	}
	if (rc >= 0 && r->op == XSEG_OP_DELETE)
		job->v->deleted++;
	if (rc == -ENOENT && r->op != XSEG_OP_FLUSH)
		rc = 0;
	else if (rc >= 0)
		rc = rc < (int64_t)r->size ? -EIO : 0;	/* zeroed in part */
	if (!rc && r->op == XSEG_OP_DELETE)
		job->v->listed -= job->v->listed > 0;
	job_over(pp, r, (int)rc);
}

static bool job_submit(struct peer_port *pp, enum xseg_op op, uint64_t offset, uint32_t size)
{
	struct volumed *vd = vd_of(pp);
	struct xreq *r = op == XSEG_OP_LIST
		? vd_catalog_request(pp, "", op, offset, size, VD_LIST_PAGES)
		: xseg_req_alloc(pp->port);

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

/* ---- steps ------------------------------------------------------------------------------- */

/* Nothing of the job is out: what failed ends the slice here. */
static bool has_failed(struct vd_job *job)
{
	if (job->out || !job->retry_ns)
		return false;
	/* numbers are gone on with; names, and zeroes, are begun anew */
	if (job->step != VD_JOB_ASK)
		job->v->in_round = false;
	slice_end(job, job->retry_ns);
	return true;
}

static void point_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (!point_pass(pp))
		return;
	if (pp->nr) {
		turn_set(pp, pp->nr - 1);
		return;
	}
	job->v->passed = true;
	XKILL(JOB_PASSED);
	if (job->v->meta.state == VD_REMOVING)
		vd_volume_quiet(vd_of(pp), job->v);
	slice_end(job, 0);
}

static void zero_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	uint64_t most, left;

	while (!job->retry_ns && job->out < VD_JOB_DEPTH && job->zero_next < job->zero_end) {
		most = VD_ZERO_PAGES * XSEG_PAGE_SIZE - job->zero_next % XSEG_PAGE_SIZE;
		left = job->zero_end - job->zero_next;
		left = left < most ? left : most;
		if (!job_submit(pp, XSEG_OP_WRITE_ZEROES, job->zero_next, (uint32_t)left))
			return;
		job->zero_next += left;
	}
	if (job->out || has_failed(job))
		return;
	job->v->zeroed = true;
	XKILL(JOB_ZEROED);
	list_next(job);
}

static void list_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (job->out || has_failed(job))
		return;
	job_submit(pp, XSEG_OP_LIST, job->v->cursor, VD_LIST_PAGES * XSEG_PAGE_SIZE);
}

/* The round has asked for all that there may be. */
static void round_end(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;

	v->in_round = false;
	v->listed = 0;
	if (!v->drained) {
		v->again_ns = pp->now_ns + v->again;
		v->again = peer_earlier(v->again * 2, VD_AGAIN_MAX_NS);
		slice_end(job, pp->now_ns + VD_DRAIN_NS);
		return;
	}
	if (v->found && !job->lists_nothing) {
		slice_end(job, 0);
		return;
	}
	step_set(job, VD_JOB_NONE);
	step_set(job, VD_JOB_FLUSH);
}

/* The answer is read, or is not worth it. */
static void names_over(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	job->v->cursor = job->names.head.next;
	xseg_req_free(pp->port, job->list);
	job->list = NULL;
}

/* One more object that is named and is to go; false: there is none, or no request is free. */
static bool delete_next(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct listing_names before = job->names;
	uint64_t number;

	if (!name_next(job->v, &job->names, &number))
		return false;
	if (!job_submit(pp, XSEG_OP_DELETE, number * job->v->meta.object_size, 0)) {
		job->names = before;
		return false;
	}
	job->v->found = true;
	job->slice -= job->slice > 0;
	return true;
}

static void delete_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	while (!job->retry_ns && job->out < VD_JOB_DEPTH && delete_next(pp))
		;
	if (job->out)
		return;
	names_over(pp);
	if (has_failed(job))
		return;
	if (!job->v->cursor)
		round_end(pp);
	else if (!job->slice)
		slice_end(job, 0);
	else
		step_set(job, VD_JOB_LIST);
}

/* After a failure the round goes on at the first object that is not known to be deleted. */
static void ask_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	struct vd_volume *v = job->v;
	uint64_t end = end_object(&v->meta);

	if (!job->out && !job->retry_ns && job->slice == VD_JOB_SLICE)
		job->ask_from = v->cursor;
	while (!job->retry_ns && job->out < VD_JOB_DEPTH && job->slice && v->cursor < end) {
		if (!job_submit(pp, XSEG_OP_DELETE, v->cursor * v->meta.object_size, 0))
			return;
		v->cursor++;
		job->slice--;
	}
	if (job->out)
		return;
	if (job->retry_ns)
		v->cursor = job->ask_from;
	if (has_failed(job))
		return;
	if (v->cursor >= end)
		round_end(pp);
	else
		slice_end(job, 0);
}

static void flush_poll(struct peer_port *pp, bool *sent)
{
	struct vd_job *job = &vd_of(pp)->job;

	if (!*sent) {
		*sent = job_submit(pp, XSEG_OP_FLUSH, 0, 0);
		return;
	}
	if (job->out)
		return;
	*sent = false;
	if (has_failed(job))
		return;
	step_set(job, VD_JOB_RECORD);
	XKILL(JOB_FLUSHED);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* What a volume's slot becomes when its job is done. */
static void job_outcome(const struct vd_volume *v, struct vd_meta *next)
{
	memset(next, 0, sizeof(*next));
	if (v->meta.state == VD_REMOVING) {
		next->generation = v->meta.generation;
		next->identity = v->meta.identity;
		return;
	}
	*next = v->meta;
	next->state = VD_LIVE;
	next->cut_bytes = 0;
}

static void job_recorded(struct peer_port *pp, int rc)
{
	struct volumed *vd = vd_of(pp);
	struct vd_job *job = &vd->job;
	struct vd_volume *v = job->v;
	struct vd_meta next = vd->catalog.meta;

	if (rc) {
		if (!v->told)
			log_error("%s: the record of volume '%s' cannot be written: %s; "
				  "trying again each second",
				  pp->peer->name, v->meta.name, strerror(-rc));
		v->told = true;
		slice_end(job, pp->now_ns + VD_RETRY_NS);
		return;
	}
	log_info("%s: volume '%s' %s", pp->peer->name, v->meta.name,
		 next.state == VD_FREE ? "is removed" : "has been cut to its new size");
	job->v = NULL;
	step_set(job, VD_JOB_NONE);
	vd_volume_become(pp, v, &next);
	if (v->waiter)
		vd_of(pp)->job.shrunk(pp, v);
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

static void step_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;

	switch (job->step) {
	case VD_JOB_ZERO:
		zero_poll(pp);
		break;
	case VD_JOB_LIST:
		list_poll(pp);
		break;
	case VD_JOB_DELETE:
		delete_poll(pp);
		break;
	case VD_JOB_ASK:
		ask_poll(pp);
		break;
	case VD_JOB_FLUSH:
		flush_poll(pp, &job->flush_sent);
		break;
	case VD_JOB_RECORD:
		job_record(pp);
		break;
	default:
		break;
	}
}

uint64_t vd_job_poll(struct peer_port *pp)
{
	struct vd_job *job = &vd_of(pp)->job;
	enum vd_job_step step;
	uint32_t out;

	if (!has_turn(pp) || vd_stopping(pp))
		return PEER_NEVER;
	if (pp->nr) {
		point_poll(pp);
		return has_turn(pp) ? pp->now_ns + VD_DRAIN_NS : PEER_NEVER;
	}
	do {
		step = job->step;
		out = job->out;
		if (step == VD_JOB_NONE && queue_due_ns(job) <= pp->now_ns)
			slice_begin(pp);
		if (has_turn(pp) && job->step == VD_JOB_POINT)
			point_poll(pp);
		if (!has_turn(pp))
			return PEER_NEVER;
		step_poll(pp);
	} while (job->step != step || job->out != out);
	if (job->step == VD_JOB_NONE)
		return queue_due_ns(job);
	if (job->step == VD_JOB_POINT)
		return pp->now_ns + VD_DRAIN_NS;
	/* no request was free; the catalogue, when it is, is heard of by a reply */
	return job->step < VD_JOB_RECORD && !job->out ? pp->now_ns + VD_RETRY_NS : PEER_NEVER;
}
