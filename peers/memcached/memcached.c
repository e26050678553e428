/* memcached - the class: options, and what a port does each round. See memcached.h.
 *
 * A round takes what is back from the store, looks at the sockets, and lets each connection that
 * has something to do go on. Sockets that are idle are looked at every 20 us while the thread is
 * awake for other work. If it sleeps, the epoll descriptor wakes it.
 */
#include "peers/memcached/memcached.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/options/mode.h"
#include "peers/common/runtime/fds.h"
#include "peers/common/runtime/reactor.h"

#define LOOK_NS	   20000u			/* between two looks at idle sockets */
#define AWAKE_NS   50000u			/* so long an answer of the store is polled for */
#define OPENING_NS 10000000u			/* between two looks whether the store is open */
#define EVENTS	   64
#define STEPS	   64u				/* connections of a round */
#define PUBLISH_NS 100000000u
#define STOP_NS	   3000000000u		/* for clients that do not read */
#define IDLE_NS	   500000000u		/* between two looks for silent connections */

#define FIELD(f) offsetof(struct memcached, f)

static int check_mode(const char *text, struct xseg_error *err)
{
	uint32_t mode;

	if (mode_read(text, &mode) || !(mode & 0600))
		return xseg_fail(err, -EINVAL, "mode: '%.20s' is not one such as 0600 or 0660",
			text);
	return 0;
}

static const struct opt memcached_opts[] = {
	{ .name = "kvd", .kind = OPT_STR, .off = offsetof(struct peer, downstream_name),
	  .len = XSEG_NAME_MAX, .arg = "NAME", .help = "the store of values that it serves" },
	{ .name = "listen", .kind = OPT_LIST, .off = FIELD(opt.listen), .len = 512,
	  .arg = "unix:PATH|HOST:PORT", .check = mc_listen_check, .flags = OPT_SOCKET,
	  .help = "where clients connect; 4 places at most" },
	{ .name = "mode", .kind = OPT_STR, .off = FIELD(opt.mode), .len = 8,
	  .arg = "MODE", .check = check_mode,
	  .help = "mode of the socket's file, such as 0660; else that of the segment" },
	{ .name = "connections", .kind = OPT_UINT, .off = FIELD(opt.connections), .min = 1,
	  .max = 65536, .def = "1024", .arg = "N", .help = "most connections at a time" },
	{ .name = "idle_timeout", .kind = OPT_TIME, .off = FIELD(opt.idle_timeout_ns), .def = "0s",
	  .arg = "TIME", .flags = OPT_LIVE,
	  .help = "a connection that is silent for so long is closed; 0: never" },
	{ .name = NULL },
};

static int memcached_fit(const struct peer *p, const char **key, struct xseg_error *err)
{
	const struct memcached *mc = (const struct memcached *)p;

	*key = "connections";
	if (mc->opt.connections < p->threads)
		return xseg_fail(err, -EINVAL, "connections=%u is less than the %u threads",
			mc->opt.connections, p->threads);
	return 0;
}

static uint64_t memcached_memory_bytes(const struct peer *p)
{
	return mc_store_memory(p->threads);
}

/* ---- rounds ------------------------------------------------------------------------------ */

static bool take_answers(struct mc_worker *w)
{
	struct xseg_kv_io *done[EVENTS];
	bool any = false;
	uint32_t n;

	if (!w->queue)
		return false;
	w->armed = false;			/* polling ends that */
	do {
		n = xseg_kv_poll(w->queue, done, EVENTS);
		for (uint32_t i = 0; i < n; i++)
			mc_op_back(done[i]->cookie);
		any |= n > 0;
	} while (n == EVENTS && w->queue);	/* the last one may have lost it */
	if (any)
		w->answered_ns = w->pp->now_ns;
	return any;
}

/* A listener's event has its address, the store's has the worker's, a connection's its own. */
static void handle(struct mc_worker *w, const struct epoll_event *e)
{
	const uint8_t *at = e->data.ptr;
	struct mc_conn *c = e->data.ptr;

	if (at >= (uint8_t *)w->mc->listener && at < (uint8_t *)(w->mc->listener + MC_LISTEN_MAX)) {
		w->accepts = true;
		return;
	}
	if (e->data.ptr == w) {
		w->armed = false;
		return;
	}
	if (e->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->readable = true;
	if (e->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->leaves = true;
	if (e->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		c->writable = true;
	mc_conn_ready(c);
}

static bool look_at_sockets(struct mc_worker *w)
{
	struct epoll_event event[EVENTS];
	int n = epoll_wait(w->epoll, event, EVENTS, 0);

	w->looked_ns = n == EVENTS ? 0 : w->pp->now_ns;
	for (int i = 0; i < n; i++)
		handle(w, &event[i]);
	return n > 0;
}

/* Each connection once: one that is not done is listed again for the next round. */
static bool step_connections(struct mc_worker *w)
{
	struct mc_conn *c, *last = NULL;
	uint32_t n = 0;

	if (!w->ready)
		return false;
	for (c = w->ready; c && n < STEPS; n++, c = c->next)
		last = c;
	c = w->ready;
	w->ready = last->next;
	if (!w->ready)
		w->ready_last = &w->ready;
	last->next = NULL;
	while (c) {
		struct mc_conn *next = c->next;

		c->next = NULL;
		c->listed = false;
		mc_conn_step(c);
		c = next;
	}
	return true;
}

/* The answer takes long: the descriptor of the queue is watched with the sockets. */
static void arm(struct mc_worker *w)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = w };

	if (w->armed)
		return;
	if (w->store_fd < 0) {
		w->store_fd = xseg_kv_fd(w->queue);
		if (w->store_fd >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->store_fd, &e))
			w->store_fd = -1;
	}
	w->armed = w->store_fd >= 0 && xseg_kv_arm(w->queue) == 0;
}

static uint64_t when_next(struct mc_worker *w, bool worked)
{
	uint64_t now_ns = w->pp->now_ns, next_ns = w->accepts ? w->accept_ns : PEER_NEVER;

	if (worked || w->ready)
		return now_ns;
	if (!w->queue)
		return now_ns + OPENING_NS;
	if (w->nr_out && now_ns - w->answered_ns < AWAKE_NS)
		return now_ns;
	if (w->nr_out) {
		mc_ops_give_back(w);
		arm(w);
	}
	if (w->nr_out && !w->armed)
		return now_ns;
	if (((w->mc->opt.idle_timeout_ns && w->nr_conns) || w->nr_large) && w->idle_ns < next_ns)
		next_ns = w->idle_ns;
	return next_ns;
}

/* The peer stops. Connections that do nothing, and have nothing to be read, are closed. The others
 * are answered first; one whose client does not read is waited for no longer than STOP_NS. */
static void end_connections(struct mc_worker *w)
{
	uint64_t now_ns = w->pp->now_ns;

	if (!w->stop_ns)
		w->stop_ns = now_ns;
	for (uint32_t k = 0; k < w->mc->per_worker; k++)
		if (w->conn[k].state == MC_CONN_OPEN && !w->conn[k].nr_ops && !w->conn[k].readable)
			mc_conn_end(&w->conn[k]);
		else if (now_ns - w->stop_ns > STOP_NS)
			mc_conn_break(&w->conn[k]);
}

static uint64_t memcached_poll(struct peer_port *pp)
{
	struct mc_worker *w = pp->state;
	bool worked, stops = atomic_load_explicit(&w->mc->peer.stopping, memory_order_relaxed);
	uint64_t now_ns = pp->now_ns;

	if (pp->nr == 0)
		mc_store_mind(w->mc, now_ns);
	if (!w->queue && !mc_store_take(w) && !atomic_load(&w->mc->tried))
		return now_ns + OPENING_NS;
	worked = take_answers(w);
	if (worked || w->ready || now_ns - w->looked_ns >= LOOK_NS || w->nr_out || stops)
		worked |= look_at_sockets(w);
	if (w->accepts && now_ns >= w->accept_ns)
		worked |= mc_accept(w);
	if (now_ns >= w->idle_ns) {
		w->idle_ns = now_ns + IDLE_NS;
		mc_conns_mind(w);
	}
	if (stops)
		end_connections(w);
	worked |= step_connections(w);
	mc_ops_feed(w);
	if (w->queue)
		xseg_kv_kick(w->queue);
	if (pp->nr == 0 && now_ns - w->mc->published_ns >= PUBLISH_NS) {
		w->mc->published_ns = now_ns;
		mc_stats_publish(w->mc);
	}
	return when_next(w, worked);
}

/* No request but commands comes to it. */
static void memcached_request(struct peer_port *pp, struct xreq *r)
{
	peer_answer(pp, r, -EOPNOTSUPP);
}

static void memcached_reply(struct peer_port *pp, struct xreq *r)
{
	(void)pp;
	(void)r;
}

/* ---- life -------------------------------------------------------------------------------- */

static int worker_init(struct memcached *mc, uint32_t i, struct xseg_error *err)
{
	struct mc_worker *w = &mc->worker[i];
	uint64_t each = MC_IN_BYTES + MC_OUT_BYTES;
	int rc;

	*w = (struct mc_worker){ .mc = mc, .pp = &mc->peer.ports[i], .store_fd = -1 };
	w->pp->state = w;
	w->ready_last = &w->ready;
	w->starved_last = &w->starved;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return xseg_fail(err, -errno, "no epoll descriptor: %s", strerror(errno));
	rc = mc_conns_init(w, mc->memory + i * mc->per_worker * each, err);
	return rc ? rc : reactor_watch(w->pp, w->epoll);
}

static void memcached_fini(struct peer *p)
{
	struct memcached *mc = memcached_of(p);

	mc_listen_close(mc);
	mc_store_end(mc);
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		struct mc_worker *w = &mc->worker[i];

		for (uint32_t k = 0; w->conn && k < mc->per_worker; k++)
			if (w->conn[k].state != MC_CONN_FREE)
				close(w->conn[k].fd);
		free(w->conn);
		free(w->op);
		if (w->mc)
			close(w->epoll);
	}
	if (mc->memory)
		munmap(mc->memory, mc->memory_bytes);
	fds_give_back(mc->nr_fds);
	mc->nr_fds = 0;
}

/* A descriptor for each connection, as far as the process may have them. */
static int take_fds(struct memcached *mc, struct xseg_error *err)
{
	rlim_t want = mc->opt.connections + FDS_RESERVED, got = 0;
	int rc = fds_take(want, &got, err);

	mc->nr_fds = got;
	if (!rc && got < want)
		log_warn("%s: this process may open %lu more files, and %u connections need %lu; "
			"raise ulimit -n, or give fewer connections",
			mc->peer.name, (unsigned long)got, mc->opt.connections,
			(unsigned long)want);
	return rc;
}

static int memcached_init(struct peer *p, struct xseg_error *err)
{
	struct memcached *mc = memcached_of(p);
	int rc;

	mc->per_worker = (mc->opt.connections + p->nr_ports - 1) / p->nr_ports;
	mc->memory_bytes = (size_t)mc->per_worker * p->nr_ports * (MC_IN_BYTES + MC_OUT_BYTES);
	mc->memory = mmap(NULL, mc->memory_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mc->memory == MAP_FAILED) {
		mc->memory = NULL;
		return xseg_fail(err, -ENOMEM, "no memory for %u connections; give fewer",
			mc->opt.connections);
	}
	rc = mc_stats_open(mc);
	if (rc)
		return xseg_fail(err, rc, "no place for its statistics; give peers fewer threads");
	rc = take_fds(mc, err);
	for (uint32_t i = 0; i < p->nr_ports && !rc; i++)
		rc = worker_init(mc, i, err);
	if (!rc)
		rc = mc_listen_open(mc, err);
	if (rc) {
		memcached_fini(p);
		return rc;
	}
	mc->begun_ns = p->ports[0].now_ns;
	mc_store_begin(mc);
	return 0;
}

/* Port 0's thread ends the sockets, and each worker its connections, see end_connections(). */
static bool memcached_quiesced(struct peer *p, uint64_t *left_bytes)
{
	struct memcached *mc = memcached_of(p);
	uint32_t left = 0;

	*left_bytes = 0;
	mc_listen_end(mc);
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		left += atomic_load_explicit(&mc->worker[i].nr_conns, memory_order_relaxed);
		peer_port_kick(&p->ports[i]);
	}
	return left == 0 && !mc_stores_in(mc, MC_STORE_OPENING);
}

const struct peer_class memcached_class = {
	.kind = "memcached",
	.summary = "a store of values (kvd), served by memcached's protocol",
	.opts = memcached_opts,
	.size = sizeof(struct memcached),
	.sends = true,
	.dates = true,
	.fit = memcached_fit,
	.memory_bytes = memcached_memory_bytes,
	.init = memcached_init,
	.request = memcached_request,
	.reply = memcached_reply,
	.poll = memcached_poll,
	.admin = mc_admin,
	.quiesced = memcached_quiesced,
	.fini = memcached_fini,
};
