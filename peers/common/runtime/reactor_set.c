/* reactor_set - all reactors of a process: makes them, starts them, and asks how far they are. See
 * reactor.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/cpus.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/common/runtime/reactor_inside.h"
#include "xtypes/xline.h"

static int make_reactor(struct reactor_set *set, uint32_t nr, const int *cpu, int nr_cpus)
{
	struct reactor *r = &set->reactor[nr];

	r->set = set;
	r->nr = nr;
	r->cpu = nr_cpus ? cpu[nr % (uint32_t)nr_cpus] : -1;
	watch_init(&r->watch, reactor_ring);
	r->seat = calloc((size_t)set->nr * PEER_MAX_THREADS, sizeof(struct seat *));
	r->vain = calloc((size_t)set->nr * PEER_MAX_THREADS, sizeof(*r->vain));
	r->whole = calloc((size_t)set->nr * PEER_MAX_THREADS, sizeof(*r->whole));
	return r->seat && r->vain && r->whole ? 0 : -ENOMEM;
}

/* How many ports there are is known when they are open: until then each may have one. */
static void assign_seats(struct reactor_set *set, struct peer *p, struct seat *seat)
{
	uint32_t k;

	for (k = 0; k < PEER_MAX_THREADS; k++) {
		seat[k].home = &set->reactor[k % set->nr_reactors];
		p->ports[k].seat = &seat[k];
	}
}

struct reactor_set *reactor_set_create(struct peer **peers, unsigned nr, const char *cpus,
				       struct xseg_error *err)
{
	struct reactor_set *set = NULL;
	int cpu[CPUS_MAX], nr_cpus, rc = 0;
	uint32_t i;

	nr_cpus = cpus_parse(cpus, cpu, err);
	if (nr_cpus < 0)
		return NULL;
	set = xline_alloc(sizeof(*set));
	if (!set)
		goto out_memory;
	pthread_mutex_init(&set->leaving, NULL);
	pthread_mutex_init(&set->board, NULL);
	set->nr = nr;
	set->events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->events < 0) {
		xseg_fail(err, -errno, "no file descriptor to watch its peers: %s; raise ulimit "
			"-n", strerror(errno));
		goto out_destroy;
	}
	set->served = xline_alloc(nr * sizeof(*set->served));
	set->seat = xline_alloc((size_t)nr * PEER_MAX_THREADS * sizeof(*set->seat));
	if (!set->served || !set->seat)
		goto out_memory;
	for (i = 0; i < nr; i++)
		if (peers[i]->threads > set->nr_reactors)
			set->nr_reactors = peers[i]->threads;
	assert(set->nr_reactors > 0);	/* a peer has a thread */
	for (i = 0; i < set->nr_reactors; i++)
		rc |= make_reactor(set, i, cpu, nr_cpus);
	if (rc)
		goto out_memory;
	for (i = 0; i < nr; i++) {
		set->served[i].set = set;
		set->served[i].peer = peers[i];
		set->served[i].home = &set->reactor[0];
		assign_seats(set, peers[i], set->seat + (size_t)i * PEER_MAX_THREADS);
	}
	return set;
out_memory:
	xseg_fail(err, -ENOMEM, "out of memory");
out_destroy:
	reactor_set_destroy(set);
	return NULL;
}

int reactor_set_open(struct reactor_set *set, struct xseg *seg, unsigned *failed,
		     struct xseg_error *err)
{
	struct clock clock = { 0 };
	unsigned i;
	int rc = 0;

	for (i = 0; i < set->nr && !rc; i++) {
		set->served[i].peer->ports[0].now_ns = clock_look(&clock);
		rc = peer_open(set->served[i].peer, seg, err);
	}
	if (!rc)
		return 0;
	*failed = --i;
	while (i-- > 0)
		peer_undo_open(set->served[i].peer);
	return rc;
}

int reactor_set_start(struct reactor_set *set, struct xseg_error *err)
{
	struct served *s;
	struct reactor *r;
	uint32_t i, k;
	int rc = 0;

	board_open(set);
	for (i = 0; i < set->nr; i++) {
		s = &set->served[i];
		for (k = 0; k < s->peer->nr_ports; k++) {
			s->watched[k] = -1;
			s->ports_away += s->peer->ports[k].seat->home != s->home;
		}
	}
	for (i = 0; i < set->nr_reactors && !rc; i++) {
		r = &set->reactor[i];
		if (!r->bell)
			continue;
		rc = pthread_create(&r->thread, NULL, reactor_main, r);
		r->running = !rc;
	}
	if (rc)
		return xseg_fail(err, -rc, "cannot start a thread: %s", strerror(rc));
	return 0;
}

void reactor_set_stop(struct reactor_set *set, unsigned i)
{
	struct served *s = &set->served[i];

	pthread_mutex_lock(&set->leaving);
	if (atomic_load(&s->phase) != REACTOR_LEFT) {
		peer_stop(s->peer);
		peer_port_kick(&s->peer->ports[0]);
	}
	pthread_mutex_unlock(&set->leaving);
}

void reactor_set_progress(struct reactor_set *set, unsigned i, struct reactor_progress *progress)
{
	struct served *s = &set->served[i];

	progress->phase = atomic_load(&s->phase);
	progress->stopping = atomic_load(&s->peer->stopping);
	progress->left_bytes = atomic_load_explicit(&s->left_bytes, memory_order_relaxed);
}

int reactor_set_events(struct reactor_set *set)
{
	return set->events;
}

void reactor_set_destroy(struct reactor_set *set)
{
	uint32_t i;

	if (!set)
		return;
	for (i = 0; i < set->nr_reactors; i++) {
		if (set->reactor[i].running)
			pthread_join(set->reactor[i].thread, NULL);
		watch_fini(&set->reactor[i].watch);
		free(set->reactor[i].seat);
		free(set->reactor[i].vain);
		free(set->reactor[i].whole);
	}
	if (set->events >= 0)
		close(set->events);
	pthread_mutex_destroy(&set->leaving);
	pthread_mutex_destroy(&set->board);
	xseg_near_destroy(set->near);
	free(set->seat);
	free(set->served);
	free(set);
}
