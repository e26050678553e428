/* client_wait - sleeping until something is back: in xseg_queue_wait() and xseg_kv_wait(), or in a
 * loop that waits for descriptors.
 *
 * For the second case there is an eventfd, and a thread of the library (the sleeper). The sleeper
 * sleeps on the doorbell of the client's port in the client thread's place. It writes the eventfd
 * when the doorbell is rung. The doorbell's own rules stay as they are (bell.c): the client's
 * thread alone announces a sleep and takes that back.
 *
 *   client's thread: xs_client_arm()         sleeper
 *     1 announces, on the doorbell             1 waits until it is armed
 *     2 looks once more                        2 sleeps on the word that was announced
 *     3 arms the sleeper with the word         3 rung, or the server is gone, or it is time to look
 *                                              for room in a lane that was full: still the same
 *                                              arming: writes the descriptor, disarmed
 *   xs_watch_disarm()
 *     4 disarms the sleeper; reads the descriptor if it was written
 *     5 takes the announcement back, which ends the sleeper's sleep
 *
 * A ring after 1 changes the word, so the sleep of the sleeper ends, or does not begin. `turn`
 * tells armings apart: a sleeper that wakes up late writes nothing for an arming that is over.
 *
 * Contract: the client's thread, except watch_main(). That touches nothing of the client's but
 * struct xs_watch, the server, and the word of the port's doorbell.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "xseg/client/client.h"

#define TICK_NS 1000000000ull
#define LOOKS	256u		/* before what was lent goes back, and the thread to sleep */
#define PARTNER_LOOKS 16u	/* between two looks at the partners */

/* ---- sleeping ---------------------------------------------------------------------------- */

static bool looks_promising(struct xs_client *c)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		if (i % PARTNER_LOOKS == 0 && xseg_port_blocks_partner(c->port))
			break;
		if (xs_port_peek(c->port))
			return true;
	}
	return xs_port_peek(c->port);
}

void xs_client_sleep(struct xs_client *c, uint64_t timeout_ns)
{
	xs_watch_disarm(c);
	if (c->cls->advance(c) || c->nr_sent == 0)
		return;
	if (!looks_promising(c)) {
		c->cls->rest(c);
		if (!xseg_port_wait(c->port, timeout_ns < LOOK_NS ? timeout_ns : LOOK_NS))
			xs_client_look(c);
	}
	c->cls->advance(c);
}

/* xseg_queue_wait() and the like poll before this and after it. */
void xs_client_wait(struct xs_client *c, uint64_t timeout_ns)
{
	uint64_t begun = xs_now_ns(), spent = 0;

	while (spent < timeout_ns && c->nr_sent && !c->cls->has_back(c)) {
		xs_client_sleep(c, timeout_ns - spent);
		spent = xs_now_ns() - begun;
	}
}

int xs_client_server_cpu(const struct xs_client *c)
{
	uint32_t cpu = xs_is_forked(c->seg) ? 0 : xs_port_server_cpu(c->port);

	return cpu <= INT32_MAX ? (int)cpu - 1 : -1;	/* another process wrote it */
}

/* ---- the sleeper ------------------------------------------------------------------------- */

/* Under the lock, which it lets go of while it sleeps. */
static void sleep_once(struct xs_client *c)
{
	struct xs_watch *w = &c->watch;
	uint32_t word = w->word, turn = w->turn;
	uint64_t one = 1;
	bool late = w->late, call;

	pthread_mutex_unlock(&w->lock);
	call = xs_bell_sleep(c->port, word, late ? XSEG_LATE_NS : TICK_NS) || late ||
	       xs_server_is_gone(c->server);
	pthread_mutex_lock(&w->lock);
	if (!call || !w->armed || w->turn != turn)
		return;
	w->armed = false;
	w->fired = write(w->fd, &one, sizeof(one)) == sizeof(one);
}

static void *watch_main(void *arg)
{
	struct xs_client *c = arg;
	struct xs_watch *w = &c->watch;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		if (w->armed)
			sleep_once(c);
		else
			pthread_cond_wait(&w->changed, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int watch_start(struct xs_client *c)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&c->watch.thread, NULL, watch_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

void xs_watch_init(struct xs_client *c)
{
	c->watch.fd = -1;
	pthread_mutex_init(&c->watch.lock, NULL);
	pthread_cond_init(&c->watch.changed, NULL);
}

int xs_client_fd(struct xs_client *c)
{
	struct xs_watch *w = &c->watch;
	int rc;

	if (xs_is_forked(c->seg))
		return -ENOTCONN;
	if (w->fd >= 0)
		return w->fd;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	rc = watch_start(c);
	if (rc) {
		close(w->fd);
		w->fd = -1;
		return rc;
	}
	return w->fd;
}

/* ---- arming ------------------------------------------------------------------------------ */

void xs_watch_disarm(struct xs_client *c)
{
	struct xs_watch *w = &c->watch;
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
	xs_bell_retract(c->port);
	xs_client_look(c);
}

int xs_client_arm(struct xs_client *c)
{
	struct xs_watch *w = &c->watch;
	uint32_t word;

	if (xs_is_forked(c->seg))
		return -ENOTCONN;
	if (w->fd < 0)
		return -EBADF;
	xs_watch_disarm(c);
	c->cls->advance(c);
	if (c->cls->has_back(c))
		return 1;
	c->cls->rest(c);
	if (c->nr_sent == 0)
		return 0;
	word = xs_bell_announce(c->port);
	w->announced = true;
	if (xseg_port_has_work(c->port))
		return 1;
	pthread_mutex_lock(&w->lock);
	w->word = word;
	w->late = c->port->nr_backlog > 0;
	w->armed = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void xs_watch_fini(struct xs_client *c)
{
	struct xs_watch *w = &c->watch;

	if (xs_is_forked(c->seg)) {
		/* the thread is not here, and may have had the lock */
		if (w->fd >= 0)
			close(w->fd);
		return;
	}
	if (w->fd >= 0) {
		if (xs_is_usable(c->seg))
			xs_watch_disarm(c);
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
