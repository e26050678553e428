/* queue_wait - sleeping until something is back: in xseg_queue_wait(), or in a loop that waits for
 * descriptors.
 *
 * For the second case there is an eventfd, and a thread of the library (the sleeper). The sleeper
 * sleeps on the doorbell of the queue's port in the queue thread's place. It writes the eventfd
 * when the doorbell is rung. The doorbell's own rules stay as they are (bell.c): the queue's thread
 * alone announces a sleep and takes that back.
 *
 *   queue's thread: xseg_queue_arm()         sleeper
 *     1 announces, on the doorbell             1 waits until it is armed
 *     2 looks once more                        2 sleeps on the word that was announced
 *     3 arms the sleeper with the word         3 rung, or volumed is gone, or it is time to look
 *                                              for room in a lane that was full: still the same
 *                                              arming: writes the descriptor, disarmed
 *   xseg_queue_poll(), xseg_queue_wait()
 *     4 disarms the sleeper; reads the descriptor if it was written
 *     5 takes the announcement back, which ends the sleeper's sleep
 *
 * A ring after 1 changes the word, so the sleep of the sleeper ends, or does not begin. `turn`
 * tells armings apart: a sleeper that wakes up late writes nothing for an arming that is over.
 *
 * Contract: the queue's thread, except watch_main(). That touches nothing of the queue's but struct
 * queue_watch, the volume, and the word of the port's doorbell.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "xseg/queue.h"

#define TICK_NS 1000000000ull
#define LOOKS	256u		/* before what was lent goes back, and the thread to sleep */
#define PARTNER_LOOKS 16u	/* between two looks at the partners */

/* ---- sleeping ---------------------------------------------------------------------------- */

static bool looks_promising(struct xseg_queue *q)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		if (i % PARTNER_LOOKS == 0 && xseg_port_blocks_partner(q->port))
			break;
		if (xs_port_peek(q->port))
			return true;
	}
	return xs_port_peek(q->port);
}

void xs_queue_sleep(struct xseg_queue *q, uint64_t timeout_ns)
{
	xs_watch_disarm(q);
	if (xs_queue_advance(q) || q->nr_sent == 0)
		return;
	if (!looks_promising(q)) {
		xs_queue_drop_gifts(q);
		if (!xseg_port_wait(q->port, timeout_ns < LOOK_NS ? timeout_ns : LOOK_NS))
			xs_queue_look(q);
	}
	xs_queue_advance(q);
}

uint32_t xseg_queue_wait(
	struct xseg_queue *q, struct xseg_io **done, uint32_t max, uint64_t timeout_ns)
{
	uint32_t n = xseg_queue_poll(q, done, max);
	uint64_t begun, spent = 0;

	if (n || xs_is_forked(q->seg))
		return n;
	begun = xs_now_ns();
	while (spent < timeout_ns && q->nr_sent) {
		xs_queue_sleep(q, timeout_ns - spent);
		n = xseg_queue_poll(q, done, max);
		if (n)
			return n;
		spent = xs_now_ns() - begun;
	}
	return xseg_queue_poll(q, done, max);
}

int xseg_queue_server_cpu(const struct xseg_queue *q)
{
	uint32_t cpu = xs_is_forked(q->seg) ? 0 : xs_port_server_cpu(q->port);

	return cpu <= INT32_MAX ? (int)cpu - 1 : -1;	/* another process wrote it */
}

/* ---- the sleeper ------------------------------------------------------------------------- */

/* Under the lock, which it lets go of while it sleeps. */
static void sleep_once(struct xseg_queue *q)
{
	struct queue_watch *w = &q->watch;
	uint32_t word = w->word, turn = w->turn;
	uint64_t one = 1;
	bool late = w->late, call;

	pthread_mutex_unlock(&w->lock);
	call = xs_bell_sleep(q->port, word, late ? XSEG_LATE_NS : TICK_NS) || late ||
	       xs_volume_is_gone(q->v);
	pthread_mutex_lock(&w->lock);
	if (!call || !w->armed || w->turn != turn)
		return;
	w->armed = false;
	w->fired = write(w->fd, &one, sizeof(one)) == sizeof(one);
}

static void *watch_main(void *arg)
{
	struct xseg_queue *q = arg;
	struct queue_watch *w = &q->watch;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		if (w->armed)
			sleep_once(q);
		else
			pthread_cond_wait(&w->changed, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int watch_start(struct xseg_queue *q)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&q->watch.thread, NULL, watch_main, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

void xs_watch_init(struct xseg_queue *q)
{
	q->watch.fd = -1;
	pthread_mutex_init(&q->watch.lock, NULL);
	pthread_cond_init(&q->watch.changed, NULL);
}

int xseg_queue_fd(struct xseg_queue *q)
{
	struct queue_watch *w = &q->watch;
	int rc;

	if (xs_is_forked(q->seg))
		return -ENOTCONN;
	if (w->fd >= 0)
		return w->fd;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	rc = watch_start(q);
	if (rc) {
		close(w->fd);
		w->fd = -1;
		return rc;
	}
	return w->fd;
}

/* ---- arming ------------------------------------------------------------------------------ */

void xs_watch_disarm(struct xseg_queue *q)
{
	struct queue_watch *w = &q->watch;
	uint64_t count;

	if (!w->announced)
		return;
	pthread_mutex_lock(&w->lock);
	w->armed = false;
	w->turn++;
	if (w->fired && read(w->fd, &count, sizeof(count)) == sizeof(count))
		w->fired = false;
	pthread_mutex_unlock(&w->lock);
	w->announced = false;
	xs_bell_retract(q->port);
	xs_queue_look(q);
}

int xseg_queue_arm(struct xseg_queue *q)
{
	struct queue_watch *w = &q->watch;
	uint32_t word;

	if (xs_is_forked(q->seg))
		return -ENOTCONN;
	if (w->fd < 0)
		return -EBADF;
	xs_watch_disarm(q);
	xs_queue_advance(q);
	if (q->back.first)
		return 1;
	xs_queue_drop_gifts(q);
	if (q->nr_sent == 0)
		return 0;
	word = xs_bell_announce(q->port);
	w->announced = true;
	if (xseg_port_has_work(q->port))
		return 1;
	pthread_mutex_lock(&w->lock);
	w->word = word;
	w->late = q->port->nr_backlog > 0;
	w->armed = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void xs_watch_fini(struct xseg_queue *q)
{
	struct queue_watch *w = &q->watch;

	if (xs_is_forked(q->seg)) {
		/* the thread is not here, and may have had the lock */
		if (w->fd >= 0)
			close(w->fd);
		return;
	}
	if (w->fd >= 0) {
		if (xs_is_usable(q->seg))
			xs_watch_disarm(q);
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->changed);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
		close(w->fd);
	}
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}
