/* store - the store of values that is served: opened in a thread, as it asks kvd, which may have
 * this thread's own processor, or be served by this very thread.
 *
 *   CLOSED  -> OPENING   mc_store_begin()
 *   OPENING -> OPEN      the thread: the store and a queue for each worker are there
 *   OPENING -> FAILED    the thread; nothing is there
 *   OPEN    -> CLOSED    every worker has given its queue back, as kvd is gone for good
 *   FAILED  -> CLOSED    a second later
 *
 * Contract: `store` is set by the thread while OPENING, and by port 0's thread else. The setter
 * releases, and readers acquire: what the thread made is seen with the state.
 */
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/memcached/memcached.h"

#define AGAIN_NS 1000000000u
#define GONE_NS	 5000000000u		/* without kvd for so long, what waits fails */

static void set_store(struct memcached *mc, enum mc_store_state state)
{
	atomic_store_explicit(&mc->store, state, memory_order_release);
}

static enum mc_store_state store_of(struct memcached *mc)
{
	return atomic_load_explicit(&mc->store, memory_order_acquire);
}

static void drop(struct memcached *mc)
{
	for (uint32_t i = 0; i < mc->peer.nr_ports; i++) {
		xseg_kv_queue_destroy(mc->made[i]);
		mc->made[i] = NULL;
	}
	xseg_kv_close(mc->kv);
	mc->kv = NULL;
}

static void *open_store(void *arg)
{
	struct memcached *mc = arg;
	struct xseg_kv_params params = { .attached = mc->peer.seg,
		.kvd = mc->peer.downstream_name, .gone_ns = GONE_NS };
	struct xseg_kv_queue_params queue = { .depth = MC_DEPTH, .room_bytes = MC_ROOM_BYTES };
	int rc;

	pthread_setname_np(pthread_self(), "store");
	rc = xseg_kv_open(&params, &mc->kv, &mc->why);
	for (uint32_t i = 0; i < mc->peer.nr_ports && !rc; i++)
		rc = xseg_kv_queue_create(mc->kv, &queue, &mc->made[i], &mc->why);
	if (rc)
		drop(mc);
	set_store(mc, rc ? MC_STORE_FAILED : MC_STORE_OPEN);
	peer_port_kick(&mc->peer.ports[0]);
	return NULL;
}

void mc_store_begin(struct memcached *mc)
{
	if (store_of(mc) != MC_STORE_CLOSED)
		return;
	set_store(mc, MC_STORE_OPENING);
	atomic_store(&mc->nr_lost, 0);
	mc->has_thread = !pthread_create(&mc->thread, NULL, open_store, mc);
	if (!mc->has_thread)
		set_store(mc, MC_STORE_FAILED);
}

static void join(struct memcached *mc)
{
	if (mc->has_thread)
		pthread_join(mc->thread, NULL);
	mc->has_thread = false;
}

void mc_store_mind(struct memcached *mc, uint64_t now_ns)
{
	enum mc_store_state state = store_of(mc);

	if (state == MC_STORE_OPENING)
		return;
	atomic_store(&mc->tried, true);
	if (mc->has_thread) {
		join(mc);
		if (state == MC_STORE_FAILED)
			log_warn("%s: the store of values is not open: %s; tried again each second",
				mc->peer.name, mc->why.text);
		else
			log_info("%s: the store of values %s is open", mc->peer.name,
				mc->peer.downstream_name);
	}
	if (state == MC_STORE_OPEN && atomic_load(&mc->nr_lost) == mc->peer.nr_ports) {
		drop(mc);
		set_store(mc, MC_STORE_CLOSED);
	} else if (state == MC_STORE_FAILED && !mc->again_ns) {
		mc->again_ns = now_ns + AGAIN_NS;
	} else if (state == MC_STORE_FAILED && now_ns >= mc->again_ns) {
		mc->again_ns = 0;
		set_store(mc, MC_STORE_CLOSED);
	}
	if (!mc->peer.stopping)
		mc_store_begin(mc);
}

bool mc_store_take(struct mc_worker *w)
{
	struct memcached *mc = w->mc;

	if (store_of(mc) != MC_STORE_OPEN || !mc->made[w->pp->nr])
		return false;
	w->queue = mc->made[w->pp->nr];
	w->store_fd = -1;
	w->armed = false;
	w->answered_ns = w->pp->now_ns;
	return true;
}

void mc_store_lose(struct mc_worker *w)
{
	struct memcached *mc = w->mc;

	for (uint32_t i = 0; i < mc->per_worker * MC_CONN_OPS && w->nr_held; i++)
		if (w->op[i].holds) {
			w->op[i].holds = false;
			w->op[i].io.result = -ENOTCONN;
			w->nr_held--;
		}
	/* its descriptor goes with the queue, and leaves the epoll with that */
	xseg_kv_queue_destroy(w->queue);
	mc->made[w->pp->nr] = NULL;
	w->queue = NULL;
	w->store_fd = -1;
	w->armed = false;
	atomic_fetch_add(&mc->nr_lost, 1);
	log_warn("%s: kvd %s is gone; its clients get errors until it is back", mc->peer.name,
		mc->peer.downstream_name);
}

void mc_store_end(struct memcached *mc)
{
	join(mc);
	drop(mc);
}
