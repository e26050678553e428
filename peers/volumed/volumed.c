/* volumed - the volume peer's class: options, life, and the path of a request.
 *
 * The hot path begins with volumed_prefetch(). It makes the objects' names of all requests that
 * came together, and hashes those names. Then each request takes data_named() -> peer_forward(): a
 * look at the table, no allocation, no lock, no answer to handle.
 *
 * Contract: see peer.h. volumed_init() allocates all memory. Requests that come before the
 * catalogue has been read are held in their port's list, which has room for every request there is.
 * They go on when the catalogue is read, even after minutes of a failing store.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/hex.h"
#include "peers/common/say/kv.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xhot.h"
#include "xtypes/xline.h"

/* ---- options ----------------------------------------------------------------------------- */

static int object_size_check(const char *text, struct xseg_error *err)
{
	uint64_t bytes;

	if (opt_parse_size(text, &bytes) || !vd_object_size_ok(bytes))
		return xseg_fail(err, -EINVAL, "object_size '%s': use a power of two from 4k to 4M",
				 text);
	return 0;
}

static const struct opt volumed_opts[] = {
	{ .name = "object_size", .kind = OPT_SIZE, .off = offsetof(struct volumed, object_size),
	  .min = VD_OBJECT_MIN, .max = VD_OBJECT_MAX, .def = "4M", .arg = "SIZE",
	  .help = "size of the objects of volumes created from now on; a power of two",
	  .check = object_size_check },
	{ .name = "requests", .kind = OPT_UINT, .off = offsetof(struct volumed, requests),
	  .min = 1, .max = 4096, .def = "64", .arg = "N",
	  .help = "parts of split requests in flight, for each thread" },
	{ .name = NULL },
};

/* ---- the path of a request --------------------------------------------------------------- */

static bool moves_data(const struct xreq *r)
{
	return (r->op == XSEG_OP_READ || r->op == XSEG_OP_WRITE) && r->size;
}

/* Their objects are named, and then their names are hashed: a processor cannot read together what
 * it has just written in pieces before all of that is in its cache. r->user: the volume whose
 * object it is; NULL: it was not named. */
XHOT static void volumed_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	uint32_t i, to_hash = 0;

	for (i = 0; i < nr; i++) {
		struct vd_volume *v = vd_volume_get(vd_of(pp), r[i]->volume);

		/* L4 of limit.c: acquired by who sent the request after that was stored */
		if (!v || !moves_data(r[i]) || !vd_is_in_one_object(v, r[i]) ||
			atomic_load_explicit(&v->limited, memory_order_relaxed))
			continue;
		r[i]->user = v;
		if (!vd_volume_name(pp, v, r[i]))
			to_hash |= 1u << i;
	}
	for (; to_hash; to_hash &= to_hash - 1) {
		i = (uint32_t)__builtin_ctz(to_hash);
		vd_volume_hash(pp, r[i]->user, r[i]);
	}
}

XHOT static void data(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), r->volume);
	int rc = v ? vd_volume_check(v, r->offset, r->size) : -ENOENT;

	/* of what a predecessor may have begun the splitter knows more */
	if (rc == -ENXIO && !r->via && !vd_is_in_one_object(v, r) && r->size)
		rc = 0;
	if (rc) {
		peer_answer(pp, r, rc);
		return;
	}
	if (!r->size) {
		vd_volume_count(pp, v, r);
		peer_answer(pp, r, 0);
	} else if (atomic_load_explicit(&v->limited, memory_order_relaxed)) {
		vd_limit_take(pp, v, r);
	} else {
		vd_data_send(pp, v, r);
	}
}

/* The same for what volumed_prefetch() has named. False: the volume has changed since, or is too
 * small; data() says how. */
static inline bool data_named(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = r->user;

	if (atomic_load_explicit(&v->id, memory_order_relaxed) != r->volume ||
		vd_volume_check(v, r->offset, r->size))
		return false;
	vd_volume_count(pp, v, r);
	peer_forward(pp, r);
	return true;
}

static void flush(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), r->volume);

	if (r->volume && !v) {
		peer_answer(pp, r, -ENOENT);
		return;
	}
	if (v)
		vd_volume_count(pp, v, r);
	vd_volume_address_all(v, r);
	peer_forward(pp, r);
}

/* Of the volume: its size. With a size it is about the object that the range begins in, and the
 * store answers: -ENOENT is its word then, so a volume that is not there is another one. */
static void info(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), r->volume);
	int rc = !v ? r->size ? -ESTALE : -ENOENT : vd_volume_check(v, r->offset, r->size);

	if (rc) {
		peer_answer(pp, r, rc);
		return;
	}
	if (r->size) {
		vd_volume_address(v, r, r->offset);
		peer_forward(pp, r);
		return;
	}
	peer_answer(pp, r, (int64_t)atomic_load_explicit(&v->size_bytes, memory_order_relaxed));
}

/* The volume that a COPY copies from, whose id is text in its first page; or NULL. */
static struct vd_volume *copy_source(struct peer_port *pp, const struct xreq *r)
{
	const char *page = (const char *)xseg_page(vd_of(pp)->peer.seg, r->page[0]);
	char text[16];
	uint32_t id;

	memcpy(text, page + XSEG_COPY_VOLUME, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	return kv_number(text, &id) ? NULL : vd_volume_get(vd_of(pp), id);
}

/* Says in the page, as the stores want it, from which object. The id stays where it is, for a
 * successor. */
static int copy_prepare(struct peer_port *pp, struct vd_volume *v, struct xreq *r)
{
	char *page = (char *)xseg_page(vd_of(pp)->peer.seg, r->page[0]);
	struct vd_volume *from = copy_source(pp, r);
	char name[XSEG_TARGET_MAX] = "";
	int rc;

	if (!from)
		return -ESTALE;
	rc = vd_volume_check(from, r->offset, r->size);
	if (rc || from == v || from->shift != v->shift || !vd_is_in_one_object(v, r))
		return rc ? rc : -EINVAL;
	memcpy(name, from->prefix, from->prefix_len);
	hex_digits(name + from->prefix_len, r->offset >> from->shift);
	memcpy(page, name, sizeof(name));
	return 0;
}

/* A range of one object becomes a copy of the same range of another volume. */
static void copy(struct peer_port *pp, struct xreq *r)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), r->volume);
	int rc = v ? vd_volume_check(v, r->offset, r->size) : -ENOENT;

	if (!rc && (!r->nr_pages || !r->size))
		rc = -EOPNOTSUPP;
	if (!rc)
		rc = copy_prepare(pp, v, r);
	if (rc)
		peer_answer(pp, r, rc);
	else if (atomic_load_explicit(&v->limited, memory_order_relaxed))
		vd_limit_take(pp, v, r);
	else
		vd_data_send(pp, v, r);
}

/* Objects are volumed's to delete, not its clients'. */
static void delete_object(struct peer_port *pp, struct xreq *r)
{
	peer_answer(pp, r, -EINVAL);
}

/* A volume has no objects of its clients' naming. */
static void list(struct peer_port *pp, struct xreq *r)
{
	peer_answer(pp, r, -EOPNOTSUPP);
}

static void handle(struct peer_port *pp, struct xreq *r)
{
	static void (*const handlers[XSEG_NR_OPS])(struct peer_port *, struct xreq *) = {
		[XSEG_OP_READ] = data, [XSEG_OP_WRITE] = data, [XSEG_OP_DISCARD] = data,
		[XSEG_OP_WRITE_ZEROES] = data, [XSEG_OP_FLUSH] = flush, [XSEG_OP_INFO] = info,
		[XSEG_OP_COPY] = copy, [XSEG_OP_DELETE] = delete_object,
		[XSEG_OP_ADMIN] = delete_object, [XSEG_OP_LIST] = list,
	};

	handlers[r->op](pp, r);
}

static int load_of(const struct peer_port *pp)
{
	/* acquire: partner is the release in catalog.c's load_end() */
	return atomic_load_explicit(&vd_of(pp)->catalog.load, memory_order_acquire);
}

static void volumed_request(struct peer_port *pp, struct xreq *r)
{
	int load = load_of(pp);

	if (load == VD_LOADED)
		handle(pp, r);
	else if (load == VD_LOADING)
		vd_fifo_push(&vd_port_of(pp)->held, r);
	else
		peer_answer(pp, r, -EPROTO);
}

XHOT static uint32_t volumed_requests(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	bool loaded = load_of(pp) == VD_LOADED;
	uint32_t i = 0;

	do {
		if (!loaded || !r[i]->user || !data_named(pp, r[i]))
			volumed_request(pp, r[i]);
	} while (++i < nr && !pp->round_over);
	return i;
}

/* Lets go what waited for the catalogue; with the reason, when it fails and the peer is to stop. */
static void held_release(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct vd_fifo *held = &vd_port_of(pp)->held;
	int error;

	while (held->first && load_of(pp) != VD_LOADING)
		volumed_request(pp, vd_fifo_pop(held));
	if (!held->first || !vd_stopping(pp))
		return;
	error = atomic_load_explicit(&c->error, memory_order_relaxed);
	while (error && held->first)
		peer_answer(pp, vd_fifo_pop(held), error);
}

static bool is_loading(struct peer_port *pp)
{
	return atomic_load_explicit(&vd_of(pp)->catalog.load, memory_order_relaxed) == VD_LOADING;
}

static uint64_t volumed_poll(struct peer_port *pp)
{
	uint64_t next = PEER_NEVER;

	if (pp->nr == 0) {
		next = is_loading(pp) ? vd_load_poll(pp) : vd_catalog_poll(pp);
		vd_recover_poll(pp);
		next = peer_earlier(next, vd_admin_poll(pp));
	}
	/* before the port passes a point (J1): what was held is checked, and counted, by then */
	held_release(pp);
	next = peer_earlier(next, vd_limit_poll(pp));
	return peer_earlier(next, vd_job_poll(pp));
}

/* ---- life -------------------------------------------------------------------------------- */

static uint32_t volumed_nr_requests(struct peer *p)
{
	return ((struct volumed *)p)->requests + VD_RESERVED;
}

static void volumed_fini(struct peer *p)
{
	struct volumed *vd = (struct volumed *)p;

	free(vd->volume);
	free(vd->counters);
	free(vd->context);
	for (uint32_t i = 0; vd->port && i < vd->peer.nr_ports; i++)
		free(vd->port[i].named);
	free(vd->port);
	free(vd->page);
	vd_limit_fini(vd);
	vd_load_fini(vd);
}

static uint64_t volumed_memory_bytes(const struct peer *p)
{
	(void)p;
	return peer_whole_extents((uint64_t)(VD_LOAD_PAGES + VD_ZERO_PAGES) * XSEG_PAGE_SIZE);
}

/* One extent: a predecessor's, or a new one. */
static int take_pages(struct volumed *vd, struct xseg_error *err)
{
	uint32_t nr = VD_LOAD_PAGES + VD_ZERO_PAGES, i;
	int rc = 0;

	vd->page = calloc(xseg_pages_round(nr), sizeof(*vd->page));
	if (!vd->page)
		return xseg_fail(err, -ENOMEM, "out of memory");
	if (xseg_pages_owned(vd->peer.xp, vd->page, nr) < nr)
		rc = xseg_pages_take(vd->peer.xp, nr, vd->page);
	if (rc)
		return xseg_fail(err, rc,
			"the segment has less than the 2 MiB left that volumed's buffers need: %s; "
			"make it with more memory",
			strerror(-rc));
	for (i = VD_LOAD_PAGES; i < nr; i++)
		memset(xseg_page(vd->peer.seg, vd->page[i]), 0, XSEG_PAGE_SIZE);
	vd->catalog.page = vd->page;
	return 0;
}

static int volumed_init(struct peer *p, struct xseg_error *err)
{
	struct volumed *vd = (struct volumed *)p;
	uint32_t i;
	int rc;

	xseg_direct_shut(p->xp);	/* a predecessor's */
	vd->volume = xline_alloc(VD_SLOTS * sizeof(*vd->volume));
	vd->counters = calloc((size_t)VD_SLOTS * p->nr_ports, sizeof(*vd->counters));
	vd->context = calloc(xseg_nr_requests(p->seg), sizeof(*vd->context));
	vd->port = calloc(p->nr_ports, sizeof(*vd->port));
	if (!vd->volume || !vd->counters || !vd->context || !vd->port || vd_limit_init(vd) ||
		vd_load_init(vd)) {
		rc = xseg_fail(err, -ENOMEM, "out of memory");
		goto out_fini;
	}
	rc = take_pages(vd, err);
	if (rc)
		goto out_fini;
	for (i = 0; i < p->nr_ports; i++) {
		vd_fifo_init(&vd->port[i].held);
		vd_fifo_init(&vd->port[i].splitting);
		vd->port[i].named = calloc(VD_NAMED, sizeof(*vd->port[i].named));
		if (!vd->port[i].named) {
			rc = xseg_fail(err, -ENOMEM, "out of memory");
			goto out_fini;
		}
	}
	vd_fifo_init(&vd->admin.queue);
	vd_fifo_init(&vd->admin.begun);
	vd_fifo_init(&vd->admin.questions);
	vd->job.queue_last = &vd->job.queue;
	vd->job.shrunk = vd_admin_shrunk;
	return 0;
out_fini:
	volumed_fini(p);
	return rc;
}

/* The predecessor's writes have ended: now the catalogue is what it is. */
static void volumed_recovered(struct peer *p)
{
	((struct volumed *)p)->catalog.wanted = true;
}

static bool waits_for_limits(const struct vd_port *port)
{
	return atomic_load_explicit(&port->limit_inbox, memory_order_relaxed) ||
	       atomic_load_explicit(&port->nr_limits, memory_order_relaxed);
}

/* What waits for the catalogue, and what an unfinished job still has to do, is the successor's. */
static bool volumed_quiesced(struct peer *p, uint64_t *left_bytes)
{
	struct volumed *vd = (struct volumed *)p;
	uint32_t i, busy = 0;

	*left_bytes = 0;
	for (i = 0; i < p->nr_ports; i++)
		busy += atomic_load_explicit(&vd->port[i].busy, memory_order_relaxed) +
			waits_for_limits(&vd->port[i]);
	return busy == 0;
}

const struct peer_class volumed_class = {
	.kind = "volumed",
	.summary = "the volume peer: maps volumes to objects of the peer below",
	.opts = volumed_opts,
	.size = sizeof(struct volumed),
	.sends = true,
	.one = true,			/* its catalogue is there */
	.nr_requests = volumed_nr_requests,
	.memory_bytes = volumed_memory_bytes,
	.init = volumed_init,
	.recovered = volumed_recovered,
	.prefetch = volumed_prefetch,
	.request = volumed_request,
	.requests = volumed_requests,
	.reply = vd_reply,
	.poll = volumed_poll,
	.admin = vd_admin_command,
	.quiesced = volumed_quiesced,
	.fini = volumed_fini,
};
