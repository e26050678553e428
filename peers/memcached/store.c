/* store - the store of values that is served: opened in a thread, as it asks kvd, which may have
 * this thread's own processor, or be served by this very thread. Each worker has a store and a
 * queue of its own, as one may lose its queue while another one has nothing to ask for.
 *
 * A worker's queue:
 *   CLOSED  -> OPENING   mc_store_mind(): a thread opens all that are closed
 *   OPENING -> OPEN      the thread: the queue is there
 *   OPENING -> FAILED    the thread: it is not
 *   OPEN    -> CLOSED    the worker gives it back, as kvd is gone for good
 *   FAILED  -> CLOSED    mc_store_mind(), a second later
 *
 * Contract: the state is set by the thread while OPENING, by the worker while OPEN, and by port 0's
 * thread else. The setter releases, and readers acquire: what was made is seen with the state.
 */
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/memcached/memcached.h"
#include "xtypes/xstate.h"

#define AGAIN_NS 1000000000u
#define GONE_NS	 5000000000u		/* without kvd for so long, what waits fails */

#define TO(s) (1u << MC_STORE_##s)

static const struct xstates states = {
	.what = "store of a gateway",
	XSTATE(MC_STORE_, CLOSED, TO(OPENING)),
	XSTATE(MC_STORE_, OPENING, TO(OPEN) | TO(FAILED)),
	XSTATE(MC_STORE_, OPEN, TO(CLOSED)),
	XSTATE(MC_STORE_, FAILED, TO(CLOSED)),
};

static enum mc_store_state store_of(const struct mc_store *s)
{
	return atomic_load_explicit(&s->state, memory_order_acquire);
}

static void set_store(struct mc_store *s, enum mc_store_state state)
{
	xstate_check(&states, store_of(s), state);
	atomic_store_explicit(&s->state, state, memory_order_release);
}

uint32_t mc_stores_in(const struct memcached *mc, enum mc_store_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < mc->peer.nr_ports; i++)
		n += store_of(&mc->store[i]) == state;
	return n;
}

/* From one state to another, all that are in the first. */
static void move(struct memcached *mc, enum mc_store_state from, enum mc_store_state to)
{
	for (uint32_t i = 0; i < mc->peer.nr_ports; i++)
		if (store_of(&mc->store[i]) == from)
			set_store(&mc->store[i], to);
}

static const struct xseg_kv_queue_params queue_params = {
	.depth = MC_DEPTH, .room_bytes = MC_ROOM_BYTES
};

uint64_t mc_store_memory(uint32_t nr_workers)
{
	return nr_workers * xseg_kv_queue_memory(&queue_params);
}

/* The queue keeps its store open. */
static int open_queue(struct memcached *mc, struct mc_store *s)
{
	struct xseg_kv_params params = { .attached = mc->peer.seg,
		.kvd = mc->peer.downstream_name, .gone_ns = GONE_NS };
	struct xseg_kv *kv = NULL;
	int rc = xseg_kv_open(&params, &kv, &mc->why);

	if (!rc)
		rc = xseg_kv_queue_create(kv, &queue_params, &s->queue, &mc->why);
	xseg_kv_close(kv);
	return rc;
}

static void *open_stores(void *arg)
{
	struct memcached *mc = arg;

	pthread_setname_np(pthread_self(), "store");
	for (uint32_t i = 0; i < mc->peer.nr_ports; i++) {
		struct mc_store *s = &mc->store[i];

		if (store_of(s) == MC_STORE_OPENING)
			set_store(s, open_queue(mc, s) ? MC_STORE_FAILED : MC_STORE_OPEN);
	}
	for (uint32_t i = 0; i < mc->peer.nr_ports; i++)
		peer_port_kick(&mc->peer.ports[i]);
	return NULL;
}

void mc_store_begin(struct memcached *mc)
{
	if (mc->has_thread || !mc_stores_in(mc, MC_STORE_CLOSED))
		return;
	move(mc, MC_STORE_CLOSED, MC_STORE_OPENING);
	mc->has_thread = !pthread_create(&mc->thread, NULL, open_stores, mc);
	if (!mc->has_thread)
		move(mc, MC_STORE_OPENING, MC_STORE_FAILED);
}

static void join(struct memcached *mc)
{
	if (mc->has_thread)
		pthread_join(mc->thread, NULL);
	mc->has_thread = false;
}

static void tell(const struct memcached *mc)
{
	if (mc_stores_in(mc, MC_STORE_FAILED))
		log_warn("%s: the store of values is not open: %s; tried again each second",
			mc->peer.name, mc->why.text);
	else
		log_info("%s: the store of values %s is open", mc->peer.name,
			mc->peer.downstream_name);
}

void mc_store_mind(struct memcached *mc, uint64_t now_ns)
{
	if (mc_stores_in(mc, MC_STORE_OPENING))
		return;
	atomic_store(&mc->tried, true);
	if (mc->has_thread) {
		join(mc);
		tell(mc);
	}
	if (mc_stores_in(mc, MC_STORE_FAILED) && !mc->again_ns) {
		mc->again_ns = now_ns + AGAIN_NS;
	} else if (mc->again_ns && now_ns >= mc->again_ns) {
		mc->again_ns = 0;
		move(mc, MC_STORE_FAILED, MC_STORE_CLOSED);
	}
	if (!atomic_load(&mc->peer.stopping))
		mc_store_begin(mc);
}

bool mc_store_take(struct mc_worker *w)
{
	const struct mc_store *s = &w->mc->store[w->pp->nr];

	if (store_of(s) != MC_STORE_OPEN)
		return false;
	w->queue = s->queue;
	w->store_fd = -1;
	w->armed = false;
	w->answered_ns = w->pp->now_ns;
	return true;
}

static void close_queue(struct mc_store *s)
{
	xseg_kv_queue_destroy(s->queue);
	s->queue = NULL;
}

void mc_store_lose(struct mc_worker *w)
{
	struct memcached *mc = w->mc;

	/* its descriptor goes with the queue, and leaves the epoll with that */
	close_queue(&mc->store[w->pp->nr]);
	w->queue = NULL;
	w->store_fd = -1;
	w->armed = false;
	set_store(&mc->store[w->pp->nr], MC_STORE_CLOSED);
	peer_port_kick(&mc->peer.ports[0]);
	log_warn("%s: kvd %s is gone; its clients get errors until it is back", mc->peer.name,
		mc->peer.downstream_name);
}

void mc_store_end(struct memcached *mc)
{
	join(mc);
	for (uint32_t i = 0; i < PEER_MAX_THREADS; i++)
		close_queue(&mc->store[i]);
}
