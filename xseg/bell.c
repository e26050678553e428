/* bell - doorbells: how a thread that found no work sleeps, and is woken, without a lost wake-up.
 *
 * An eventcount (the idea: D. P. Reed, R. K. Kanodia, "Synchronization with Eventcounts and
 * Sequencers", CACM 1979; on futexes: D. Vyukov). The word's bit 0 is the announcement; the rest
 * counts rings.
 *
 *   sleeper (xseg_bell_wait)              producer (xseg_port_flush)
 *     1 set bit 0                           1 publish work in a lane
 *     2 fence                               2 fence
 *     3 look at all lanes once more         3 read the word; bit 0 clear: done
 *     4 futex_wait(word as of step 1)       4 add 2 to the word, futex_wake
 *     5 clear bit 0, counting one more, fence
 *
 * The two fences are partners: either the sleeper sees the work, or the producer sees the
 * announcement. A ring between 1 and 4 changes the word, so that the wait returns at once. If a
 * sleeper died, step 1 finds bit 0 set, and then counts one. Otherwise a producer that rang for the
 * dead sleeper would take the unchanged word for the same sleep, and not ring again. Modelled with
 * store buffers in tests/model/doorbell.pml.
 *
 * Invariants:
 *   B1  Only the sleeper sets or clears bit 0. So a producer that dies after step 3 takes nothing
 *       with it.
 *   B2  A process that repairs or sweeps a dead member rings every bell, for the wake that the dead
 *       may owe.
 *
 * Handing a processor over. A thread that polls keeps its processor from a partner that shares it,
 * so the work that it polls for cannot come. The sleeper of a bell therefore publishes on which
 * processor it runs (`cpu`), and the word with which it went to sleep (`slept`). The word differs
 * from `slept` once anybody has rung. So each thread can tell whether a partner can run, and where.
 * A thread whose partner can run on the thread's own processor yields after each look, so the
 * kernel runs the partner at once. If the yields bring no work in the time of a poll, the thread
 * sleeps by the protocol above. Both words are hints, so the protocol and its model stay as they
 * are: a thread may yield, and go to sleep, at any time. A yield costs less than a sleep and a wake
 * (1.6 us in place of 3.2 us on one processor): docs/decisions/023.
 *
 * Contract: one thread sleeps on a bell; any thread rings it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "xseg/internal.h"

#define POLL_LOOKS  64
#define POLL_MIN_NS 10000ull	/* no poll is shorter while nobody waits for the processor */
/* Work that came so soon would have come in a longer poll: a wake on another processor takes up to
 * 100 us itself. */
#define SOON_NS	    200000ull
/* A yield that took so long: another thread ran. */
#define AWAY_NS	    10000ull

static long futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *ts)
{
	return syscall(SYS_futex, word, op, val, ts, NULL, 0);
}

void xs_bell_ring(struct xseg *seg, uint32_t bell, uint32_t *rung)
{
	_Atomic uint32_t *word = &seg->bells[bell].word;
	uint32_t w = atomic_load_explicit(word, memory_order_relaxed);

	if (!(w & 1) || (rung && rung[bell] == w))
		return;
	/* seq_cst: comes between the sleeper's announcement and its wait, or fails the wait */
	w = atomic_fetch_add(word, 2) + 2;
	if (rung)
		rung[bell] = w;
	futex(word, FUTEX_WAKE, 1, NULL);
}

void xs_ring_all(struct xseg *seg)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		xs_bell_ring(seg, i, NULL);
}

void xs_ring_peer(struct xseg *seg, uint32_t peer)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		uint32_t bell = atomic_load_explicit(&seg->ports[i].bell, memory_order_relaxed);

		if (atomic_load_explicit(&seg->ports[i].peer, memory_order_relaxed) == peer + 1 &&
			bell < seg->geo.nr_ports)
			xs_bell_ring(seg, bell, NULL);
	}
}

void xseg_port_share_bell(struct xport *port, struct xport *with)
{
	atomic_store_explicit(&port->bell, with->index, memory_order_relaxed);
	/* release: partner is the acquire in bell_assert() */
	atomic_store_explicit(&port->sh->bell, with->index, memory_order_release);
}

static uint32_t own_bell(const struct xport *port)
{
	return atomic_load_explicit(&port->bell, memory_order_relaxed);
}

void xseg_bell_wake(struct xport *port)
{
	/* seq_cst: partner is the fence in xseg_bell_wait() */
	atomic_thread_fence(memory_order_seq_cst);
	xs_bell_ring(port->seg, port->index, NULL);
}

void xseg_bell_ring(struct xport *port)
{
	/* seq_cst: partner is the fence in xseg_bell_wait() */
	atomic_thread_fence(memory_order_seq_cst);
	xs_bell_ring(port->seg, own_bell(port), NULL);
}

static uint32_t announce(struct xseg *seg, uint32_t bell)
{
	_Atomic uint32_t *word = &seg->bells[bell].word;
	uint32_t w = atomic_fetch_or(word, 1);

	w = w & 1 ? atomic_fetch_add(word, 2) + 2 : w | 1;
	atomic_store_explicit(&seg->bells[bell].slept, w, memory_order_relaxed);
	/* seq_cst: partner is the fence in xseg_port_flush() */
	atomic_thread_fence(memory_order_seq_cst);
	return w;
}

/* False when the time is over: the word is as announced. */
static bool sleep_on(struct xseg *seg, uint32_t bell, uint32_t w, uint64_t timeout_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000) };

	return futex(&seg->bells[bell].word, FUTEX_WAIT, w, &ts) == 0 || errno != ETIMEDOUT;
}

static void retract(struct xseg *seg, uint32_t bell)
{
	/* bit 0 is set: adding 1 clears it and counts, so that no two sleeps leave the same word
	 * for `rung` */
	atomic_fetch_add(&seg->bells[bell].word, 1);
	/* seq_cst: who saw bit 0 still set, and did not ring again, has published what the caller
	 * looks at next */
	atomic_thread_fence(memory_order_seq_cst);
}

static bool bell_wait(
	struct xseg *seg, uint32_t bell, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg)
{
	uint32_t w = announce(seg, bell);
	bool woken = looks(arg) || sleep_on(seg, bell, w, timeout_ns);

	retract(seg, bell);
	return woken;
}

uint32_t xs_bell_announce(struct xport *port)
{
	return announce(port->seg, port->index);
}

bool xs_bell_sleep(struct xport *port, uint32_t word, uint64_t timeout_ns)
{
	return sleep_on(port->seg, port->index, word, timeout_ns);
}

void xs_bell_retract(struct xport *port)
{
	retract(port->seg, port->index);
	futex(&port->seg->bells[port->index].word, FUTEX_WAKE, 1, NULL);
}

bool xseg_bell_wait(struct xport *port, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg)
{
	return bell_wait(port->seg, port->index, timeout_ns, looks, arg);
}

uint64_t xs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static bool looks_port(void *arg)
{
	return xseg_port_has_work(arg);
}

/* ---- handing a processor over ------------------------------------------------------------ */

static uint32_t this_cpu(void)
{
	return (uint32_t)sched_getcpu() + 1;
}

static void here(struct xseg *seg, uint32_t bell)
{
	uint32_t cpu = this_cpu();

	if (atomic_load_explicit(&seg->bells[bell].cpu, memory_order_relaxed) != cpu)
		atomic_store_explicit(&seg->bells[bell].cpu, cpu, memory_order_relaxed);
}

void xseg_bell_here(struct xport *port)
{
	here(port->seg, port->index);
}

/* It has work, or looks for some: it is awake, or was rung. */
static bool can_run(const struct xs_bell *b)
{
	uint32_t w = atomic_load_explicit(&b->word, memory_order_relaxed);

	return !(w & 1) || w != atomic_load_explicit(&b->slept, memory_order_relaxed);
}

/* partner: 1 + a port, or 0. */
static bool waits_for(const struct xport *port, uint32_t partner, uint32_t cpu)
{
	const struct xseg *seg = port->seg;
	uint32_t bell;

	if (!partner || !atomic_load_explicit(&seg->ports[partner - 1].peer, memory_order_relaxed))
		return false;
	bell = atomic_load_explicit(&seg->ports[partner - 1].bell, memory_order_relaxed);
	return bell < seg->geo.nr_ports &&
	       bell != atomic_load_explicit(&port->sh->bell, memory_order_relaxed) &&
	       atomic_load_explicit(&seg->bells[bell].cpu, memory_order_relaxed) == cpu &&
	       can_run(&seg->bells[bell]);
}

bool xseg_port_blocks_partner(const struct xport *port)
{
	uint32_t cpu = this_cpu();

	for (uint32_t queue = 0; queue < 2; queue++)
		if (waits_for(port,
			    atomic_load_explicit(&port->sent_to[queue], memory_order_relaxed),
			    cpu) ||
			waits_for(port,
				atomic_load_explicit(&port->got_from[queue], memory_order_relaxed),
				cpu))
			return true;
	return false;
}

uint32_t xs_port_server_cpu(const struct xport *port)
{
	const struct xseg *seg = port->seg;
	uint32_t to = atomic_load_explicit(&port->sent_to[QUEUE_REQUEST], memory_order_relaxed),
		 bell;

	if (!to)
		return 0;
	bell = atomic_load_explicit(&seg->ports[to - 1].bell, memory_order_relaxed);
	return bell < seg->geo.nr_ports
		       ? atomic_load_explicit(&seg->bells[bell].cpu, memory_order_relaxed)
		       : 0;
}

uint64_t xseg_poll_adapt(uint64_t poll_ns, uint64_t waited_ns)
{
	if (waited_ns <= poll_ns)
		return poll_ns;
	poll_ns = waited_ns < SOON_NS ? poll_ns * 2 : poll_ns / 2;
	if (poll_ns < POLL_MIN_NS)
		return POLL_MIN_NS;
	return poll_ns < XSEG_POLL_NS ? poll_ns : XSEG_POLL_NS;
}

/* ---- a client's wait --------------------------------------------------------------------- */

/* True: there is work. False: it should sleep. */
static bool poll_port(struct xport *port, uint64_t start_ns)
{
	uint64_t before_ns = start_ns, now_ns;

	while (before_ns - start_ns < port->poll_ns) {
		unsigned looks = xseg_port_blocks_partner(port) ? 1 : POLL_LOOKS;

		for (unsigned i = 0; i < looks; i++)
			if (xs_port_peek(port))
				return true;
		sched_yield();
		now_ns = xs_now_ns();
		if (now_ns - before_ns >= AWAY_NS)
			break;
		before_ns = now_ns;
	}
	return xs_port_peek(port);
}

bool xseg_port_wait(struct xport *port, uint64_t timeout_ns)
{
	uint64_t start = xs_now_ns(), spent;

	here(port->seg, own_bell(port));
	if (poll_port(port, start))
		return true;
	for (spent = xs_now_ns() - start; spent < timeout_ns; spent = xs_now_ns() - start) {
		uint64_t left = timeout_ns - spent;

		xseg_port_flush(port);
		if (port->nr_backlog && left > XSEG_LATE_NS)
			left = XSEG_LATE_NS;
		bell_wait(port->seg, own_bell(port), left, looks_port, port);
		if (xseg_port_has_work(port))
			break;
	}
	port->poll_ns = xseg_poll_adapt(port->poll_ns, xs_now_ns() - start);
	return xseg_port_has_work(port);
}
