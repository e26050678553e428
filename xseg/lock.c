/* lock - the kernel's file locks: which members are alive, and which process may change the tables.
 *
 * Contract: any thread. xs_lock() and xs_lock_all() wait while another process holds the lock, or
 * another thread: each call opens a file description of its own. The wait is bounded (K6).
 * The locks are open-file-description locks (fcntl(2), F_OFD_SETLK): they belong to the
 * description, not to the pid. They do not vanish when another descriptor of the file is closed.
 * They exclude threads from each other, and the kernel frees them at death.
 *
 * Invariants:
 *   K1  A member's byte is locked through seg->fd from join to detach or death, and never unlocked
 *       otherwise. A forked child closes its copy; otherwise that copy would keep its dead parent
 *       alive. It also closes its copies of other descriptions: those with which its parent's
 *       threads have the control lock, or wait for it. Otherwise it would keep that lock. Nothing
 *       is mapped through seg->fd: a child that is forked before MADV_DONTFORK has the mapping, and
 *       cannot close it.
 *   K2  A member is dead if the lock on its byte is seen free after a peer's word named it. The
 *       member had the lock before the word was stored, and does not give it back in its life.
 *   K3  Work under a lock happens after all work that was done under it before. The kernel sees to
 *       that. `order` says so to the language, for threads of one process.
 *   K4  A member has two bytes. A joining process takes the claim of a free slot first, so nobody
 *       else can take that slot. All peers that name the slot are then marked dead, and only then
 *       is the other byte locked, which means "alive". So a locked byte never makes a dead peer
 *       look alive, and joining waits for nobody. Both bytes go with the one description.
 *   K5  Only the member itself ever locks its byte, and no one locks it to prove the member's
 *       death. A look (F_OFD_GETLK) proves it as well (K2), and does not mislead others that look
 *       at the same time.
 *   K6  No wait is without end, and none is in the kernel. The lock is tried again and again. That
 *       ends when the time of the attachment, or of the thread, is over. It also ends when the
 *       attachment's `stop` says so (struct xseg_patience). So a halted holder keeps nobody from
 *       leaving, and can be named (holder.c).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

static _Atomic uint32_t order;

int xs_open_again(struct xseg *seg)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", seg->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- what a forked child has ---- */

/* The description with which a thread has a control lock, or waits for it; a thread has one at a
 * time. */
struct control {
	int fd;					/* -1: none */
	struct control *next;
};

/* What this process has of segments. */
static struct {
	pthread_mutex_t lock;			/* a leaf; held over a fork; guards what follows */
	pthread_once_t once;
	int rc;
	struct xseg *first;			/* attached ones */
	struct control *controls;
} attached = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static _Thread_local struct control mine = { .fd = -1 };

static void before_fork(void)
{
	pthread_mutex_lock(&attached.lock);
}

static void parent_forked(void)
{
	pthread_mutex_unlock(&attached.lock);
}

void xs_files_close(struct xseg *seg)
{
	if (seg->fd >= 0)
		close(seg->fd);
	if (seg->map_fd >= 0)
		close(seg->map_fd);
	if (seg->pool_fd >= 0)
		close(seg->pool_fd);
	seg->fd = seg->map_fd = seg->pool_fd = -1;
}

static void child_forked(void)
{
	for (struct xseg *seg = attached.first; seg; seg = seg->next)
		xs_files_close(seg);
	attached.first = NULL;
	for (struct control *c = attached.controls; c; c = c->next) {
		close(c->fd);
		c->fd = -1;
	}
	attached.controls = NULL;
	pthread_mutex_unlock(&attached.lock);
}

static void watch_forks(void)
{
	attached.rc = -pthread_atfork(before_fork, parent_forked, child_forked);
}

/* With a new description: of the one that it has, a child that was forked before now may have a
 * copy. */
int xs_attached_add(struct xseg *seg)
{
	int fd;

	pthread_once(&attached.once, watch_forks);
	if (attached.rc)
		return attached.rc;
	pthread_mutex_lock(&attached.lock);
	fd = xs_open_again(seg);
	if (fd >= 0) {
		seg->map_fd = seg->fd;
		seg->fd = fd;
		seg->next = attached.first;
		attached.first = seg;
	}
	pthread_mutex_unlock(&attached.lock);
	return fd < 0 ? fd : 0;
}

void xs_attached_remove(struct xseg *seg)
{
	struct xseg **at = &attached.first;

	pthread_mutex_lock(&attached.lock);
	while (*at && *at != seg)
		at = &(*at)->next;
	if (*at) {
		*at = seg->next;
		xs_files_close(seg);
	}
	pthread_mutex_unlock(&attached.lock);
}

/* ---- locks ---- */

static int lock_bytes(int fd, uint64_t byte, uint64_t bytes)
{
	struct flock fl = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)byte,
		.l_len = (off_t)bytes };
	int rc;

	do {
		rc = fcntl(fd, F_OFD_SETLK, &fl);
	} while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

int xs_lock_byte(int fd, uint64_t byte)
{
	return lock_bytes(fd, byte, 1);
}

/* ---- waiting ---- */

#define SECOND	     1000000000ull
#define PAUSE_MIN_NS 100000u
#define PAUSE_MAX_NS 20000000u
#define ASK_NS	     (SECOND / 10)	/* a wait as short as that ends by itself */
#define TELL_NS	     (5 * SECOND)
#define LIMIT_NS     (30 * SECOND)	/* where nobody says how long */

static _Thread_local uint64_t thread_limit_ns;
static _Thread_local struct {
	uint64_t byte, waited_ns;
} vain;						/* the thread's last wait that was in vain */

void xseg_set_patience(struct xseg *seg, const struct xseg_patience *patience)
{
	seg->patience = *patience;
}

uint64_t xs_wait_limit(uint64_t limit_ns)
{
	uint64_t before = thread_limit_ns;

	thread_limit_ns = limit_ns;
	return before;
}

static uint64_t limit_ns(const struct xseg_patience *p)
{
	uint64_t limit = p->limit_ns ? p->limit_ns : LIMIT_NS;

	return thread_limit_ns && thread_limit_ns < limit ? thread_limit_ns : limit;
}

static void tell(struct xseg *seg, uint64_t byte, uint64_t waited_ns)
{
	char text[XSEG_LOCK_TEXT];
	struct xseg_lock_info info;

	xs_lock_describe(seg, byte, waited_ns, &info);
	seg->patience.tell(xseg_lock_text(&info, text), seg->patience.arg);
}

static bool is_taken(int rc)
{
	return rc == -EAGAIN || rc == -EACCES;
}

static uint64_t first_locked(int fd, uint64_t byte, uint64_t nr)
{
	struct flock fl = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)byte,
		.l_len = (off_t)nr };

	if (fcntl(fd, F_OFD_GETLK, &fl) || fl.l_type == F_UNLCK || (uint64_t)fl.l_start < byte)
		return byte;
	return (uint64_t)fl.l_start;
}

int xs_lock_wait(struct xseg *seg, int fd, uint64_t byte, uint64_t nr)
{
	static const struct xseg_patience nobodys;
	const struct xseg_patience *p = seg ? &seg->patience : &nobodys;
	struct timespec pause = { .tv_nsec = PAUSE_MIN_NS };
	uint64_t begun = xs_now_ns(), waited = 0;
	bool told = false;
	int rc;

	while (is_taken(rc = lock_bytes(fd, byte, nr))) {
		waited = xs_now_ns() - begun;
		rc = waited >= limit_ns(p) ? -ETIMEDOUT : 0;
		if (p->stop && waited >= ASK_NS && p->stop(p->arg))
			rc = -EINTR;
		if (rc)
			break;
		if (!told && p->tell && waited >= TELL_NS) {
			tell(seg, first_locked(fd, byte, nr), waited);
			told = true;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec * 2 <= PAUSE_MAX_NS)
			pause.tv_nsec *= 2;
	}
	if (rc) {
		vain.byte = first_locked(fd, byte, nr);
		vain.waited_ns = waited;
	}
	return rc;
}

int xs_fail_lock(struct xseg *seg, int rc, struct xseg_error *err)
{
	char text[XSEG_LOCK_TEXT];
	struct xseg_lock_info info;

	if (rc != -ETIMEDOUT && rc != -EINTR)
		return xseg_fail(err, rc, "cannot lock the segment: %s", strerror(-rc));
	xs_lock_describe(seg, vain.byte, vain.waited_ns, &info);
	return xseg_fail(err, rc, "%s", xseg_lock_text(&info, text));
}

/* ---- bytes ---- */

bool xs_byte_locked(int fd, uint64_t byte)
{
	struct flock fl = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1
	};

	return fcntl(fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}

/* Opened and put down at once, seen from a fork. */
static int control_open(struct xseg *seg)
{
	assert(mine.fd < 0);
	pthread_mutex_lock(&attached.lock);
	mine.fd = xs_open_again(seg);
	if (mine.fd >= 0) {
		mine.next = attached.controls;
		attached.controls = &mine;
	}
	pthread_mutex_unlock(&attached.lock);
	return mine.fd;
}

static void control_close(void)
{
	struct control **at = &attached.controls;

	pthread_mutex_lock(&attached.lock);
	while (*at != &mine)
		at = &(*at)->next;
	*at = mine.next;
	close(mine.fd);
	mine.fd = -1;
	pthread_mutex_unlock(&attached.lock);
}

/* What a lock is of: a byte, or a range of them. */
static int lock_more(struct xseg *seg, int fd, uint64_t byte, uint64_t nr, bool wait)
{
	int rc = wait ? xs_lock_wait(seg, fd, byte, nr) : lock_bytes(fd, byte, nr);

	if (rc == 0)
		atomic_fetch_add_explicit(&order, 1, memory_order_acquire);
	return rc;
}

static int lock_first(struct xseg *seg, uint64_t byte, bool wait)
{
	int fd = control_open(seg), rc;

	if (fd < 0)
		return fd;
	rc = lock_more(seg, fd, byte, 1, wait);
	if (rc == 0)
		return fd;
	control_close();
	return is_taken(rc) ? -EAGAIN : rc;
}

int xs_lock(struct xseg *seg, uint64_t byte)
{
	return lock_first(seg, byte, true);
}

/* The bytes beside the control byte, in their order. */
static int lock_rest(struct xseg *seg, int fd, bool wait)
{
	int rc = lock_more(seg, fd, XSEG_LOCK_ROUTES, 1, wait);

	return rc ? rc : lock_more(seg, fd, XSEG_LOCK_PEER0, seg->geo.nr_ports, wait);
}

int xs_lock_all(struct xseg *seg)
{
	int fd = xs_lock(seg, XSEG_LOCK_CONTROL);
	int rc = fd < 0 ? fd : lock_rest(seg, fd, true);

	if (fd >= 0 && rc)
		xs_unlock(fd);
	return rc ? rc : fd;
}

int xs_lock_try(struct xseg *seg, bool *all)
{
	int fd = lock_first(seg, XSEG_LOCK_CONTROL, false);

	*all = fd >= 0 && lock_rest(seg, fd, false) == 0;
	return fd;
}

/* Not by closing alone: another thread may have forked just now, and the child has a copy until it
 * has closed it. */
static void unlock(int fd, uint64_t byte, uint64_t bytes)
{
	struct flock fl = { .l_type = F_UNLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)byte,
		.l_len = (off_t)bytes };

	fcntl(fd, F_OFD_SETLK, &fl);
}

void xs_unlock_byte(int fd, uint64_t byte)
{
	unlock(fd, byte, 1);
}

void xs_unlock(int fd)
{
	assert(fd == mine.fd);
	atomic_fetch_add_explicit(&order, 1, memory_order_release);
	unlock(fd, 0, 0);
	control_close();
}

bool xs_member_alive(struct xseg *seg, uint32_t member)
{
	if (member >= XSEG_MAX_MEMBERS)
		return false;
	return member == seg->member || xs_byte_locked(seg->fd, XSEG_LOCK_MEMBER0 + member);
}

uint32_t xseg_nr_others(struct xseg *seg)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++)
		nr += i != seg->member && xs_member_alive(seg, i);
	return nr;
}

/* Made in private, as others may be writing there (R5). */
static void write_label(struct xs_member *m)
{
	char label[sizeof(m->label)] = "";
	FILE *f = fopen("/proc/self/comm", "re");

	if (f && fgets(label, sizeof(label), f))
		label[strcspn(label, "\n")] = '\0';
	if (f)
		fclose(f);
	memcpy(m->label, label, sizeof(label));
}

/* K4. Where the slot's byte is locked without a claim somebody breaks the rules; the slot is left
 * alone. */
static bool take_slot(struct xseg *seg, uint32_t i)
{
	if (xs_lock_byte(seg->fd, XSEG_LOCK_CLAIM0 + i))
		return false;
	if (!xs_byte_locked(seg->fd, XSEG_LOCK_MEMBER0 + i)) {
		xs_mark_dead_before(seg, i);
		XKILL(MEMBER_CLAIMED);
		if (xs_lock_byte(seg->fd, XSEG_LOCK_MEMBER0 + i) == 0)
			return true;
	}
	xs_unlock_byte(seg->fd, XSEG_LOCK_CLAIM0 + i);
	return false;
}

int xs_member_join(struct xseg *seg)
{
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++) {
		struct xs_member *m = &seg->members[i];

		if (!take_slot(seg, i))
			continue;
		seg->member = i;
		atomic_store_explicit(&m->pid, (uint32_t)getpid(), memory_order_relaxed);
		write_label(m);
		return 0;
	}
	return -EUSERS;
}

int xs_members_shut(struct xseg *seg)
{
	return lock_bytes(seg->fd, XSEG_LOCK_CLAIM0, XSEG_MAX_MEMBERS);
}

void xs_members_open(struct xseg *seg)
{
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++)
		if (i != seg->member)
			xs_unlock_byte(seg->fd, XSEG_LOCK_CLAIM0 + i);
}

int xseg_supervisor_lock(struct xseg *seg)
{
	int rc = xs_lock_byte(seg->fd, XSEG_LOCK_SUPER);

	return rc == -EAGAIN || rc == -EACCES ? -EBUSY : rc;
}

bool xseg_supervisor_alive(struct xseg *seg)
{
	return xs_byte_locked(seg->fd, XSEG_LOCK_SUPER);
}
