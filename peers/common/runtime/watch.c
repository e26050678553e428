/* watch - see watch.h. */
#include "peers/common/runtime/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void watch_init(struct watch *w, void (*ring)(void *arg))
{
	*w = (struct watch){ .ring = ring, .poke = -1 };
	pthread_mutex_init(&w->lock, NULL);
}

/* Sleeps until one of the descriptors, or poke, is readable. */
static void wait_readable(struct watch *w)
{
	struct pollfd fds[WATCH_MAX + 1];
	uint32_t i, nr;

	pthread_mutex_lock(&w->lock);
	nr = w->nr;
	for (i = 0; i < nr; i++)
		fds[i] = (struct pollfd){ .fd = w->entry[i].fd, .events = POLLIN };
	pthread_mutex_unlock(&w->lock);
	fds[nr] = (struct pollfd){ .fd = w->poke, .events = POLLIN };
	poll(fds, nr + 1, -1);
}

/* Takes one event of a descriptor, without blocking. One that has none to be read, such as an epoll
 * descriptor, is readable until the reactor has seen to it. */
static bool take_event(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	eventfd_t events;

	return !eventfd_read(fd, &events) || (errno == EINVAL && poll(&p, 1, 0) > 0);
}

/* True when there was something in one of the list. */
static bool ring_all(struct watch *w)
{
	bool rang = false;
	eventfd_t events;
	uint32_t i;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < w->nr; i++)
		if (take_event(w->entry[i].fd)) {
			w->ring(w->entry[i].arg);
			rang = true;
		}
	pthread_mutex_unlock(&w->lock);
	eventfd_read(w->poke, &events);
	return rang;
}

static void move_state(struct watch *w, uint32_t from, uint32_t to)
{
	atomic_compare_exchange_strong(&w->state, &from, to);
}

static void poke(struct watch *w)
{
	eventfd_write(w->poke, 1);
}

static void *helper(void *arg)
{
	struct watch *w = arg;

	pthread_setname_np(pthread_self(), "watch");
	for (;;) {
		while (atomic_load(&w->state) == WATCH_IDLE)
			futex(&w->state, FUTEX_WAIT, WATCH_IDLE);
		if (atomic_load(&w->state) == WATCH_QUIT)
			return NULL;
		wait_readable(w);
		/* idle before ringing: the reactor that is woken may arm again at once */
		move_state(w, WATCH_ARMED, WATCH_IDLE);
		if (!ring_all(w))
			move_state(w, WATCH_IDLE, WATCH_ARMED);
	}
}

void watch_arm_slowly(struct watch *w)
{
	uint32_t idle = WATCH_IDLE;

	if (atomic_compare_exchange_strong(&w->state, &idle, WATCH_ARMED))
		futex(&w->state, FUTEX_WAKE, 1);
}

static int start(struct watch *w)
{
	int rc;

	if (atomic_load(&w->started))
		return 0;
	w->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->poke < 0)
		return -errno;
	rc = pthread_create(&w->thread, NULL, helper, w);
	if (rc) {
		close(w->poke);
		w->poke = -1;
		return -rc;
	}
	atomic_store(&w->started, true);
	return 0;
}

int watch_add(struct watch *w, int fd, void *arg)
{
	int flags = fcntl(fd, F_GETFL), rc;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	pthread_mutex_lock(&w->lock);
	rc = w->nr == WATCH_MAX ? -ENOSPC : start(w);
	if (!rc) {
		w->entry[w->nr].fd = fd;
		w->entry[w->nr].arg = arg;
		w->nr++;
		poke(w);
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int watch_remove(struct watch *w, void *arg)
{
	int fd = -1;
	uint32_t i;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < w->nr; i++)
		if (w->entry[i].arg == arg) {
			fd = w->entry[i].fd;
			w->entry[i] = w->entry[--w->nr];
			break;
		}
	pthread_mutex_unlock(&w->lock);
	return fd;
}

void watch_fini(struct watch *w)
{
	if (atomic_load(&w->started)) {
		atomic_store(&w->state, WATCH_QUIT);
		futex(&w->state, FUTEX_WAKE, INT_MAX);
		poke(w);
		pthread_join(w->thread, NULL);
		close(w->poke);
	}
	pthread_mutex_destroy(&w->lock);
}
