/* sosd_owner - see sosd_owner.h for the states, the contract and the invariants. */
#include "peers/sosd/sosd_owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/log/log.h"
#include "peers/sosd/sosd_error.h"
#include "xtypes/xstate.h"

#define LOCK	  "xseg"
#define SECOND_NS UINT64_C(1000000000)
#define TRIES	  5			/* that a lock was broken, and somebody else took it */
#define NOBODY	  "nobody"
#define LEFT	  "-"				/* in the place of an address */
/* The record is filled up with spaces: "ADDRESS NAME" fits. */
#define RECORD	  384
#define EXCLUSIVE 1				/* of the OSD's class "lock" */

#define TO(state) (1u << SOSD_##state)

static const struct xstates states = {
	.what = "ownership of objects",
	XSTATE(SOSD_, ASKING, TO(OWNER) | TO(LOST)),
	XSTATE(SOSD_, OWNER, TO(LOST)),
	XSTATE(SOSD_, LOST, 0),
};

static void set_state(struct sosd_owner *w, enum sosd_owner_state state)
{
	xstate_check(&states, atomic_load(&w->state), state);
	/* release: partner is the acquire in sosd_owner_state(): what is sent after it is sent
	 * after the fence */
	atomic_store_explicit(&w->state, state, memory_order_release);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

bool sosd_owner_may_send(struct sosd_owner *w)
{
	return sosd_owner_state(w) == SOSD_OWNER &&
	       clock_ns(CLOCK_BOOTTIME) <
		       atomic_load_explicit(&w->lease_end_ns, memory_order_relaxed);
}

/* ---- the lock ---------------------------------------------------------------------------- */

/* MUST_RENEW: -ENOENT when it is not ours any more. It lasts until *end_ns. */
static int lock(struct sosd_owner *w, uint8_t flags, uint64_t *end_ns)
{
	struct timeval expiry = { .tv_sec = (time_t)(w->expiry_ns / SECOND_NS),
		.tv_usec = (suseconds_t)(w->expiry_ns % SECOND_NS / 1000) };

	*end_ns = clock_ns(CLOCK_BOOTTIME) + w->expiry_ns;
	return rados_lock_exclusive(
		w->rados->io, w->object, LOCK, w->me, "", &expiry, flags);
}

static void set_lease(struct sosd_owner *w, uint64_t end_ns)
{
	atomic_store_explicit(&w->lease_end_ns, end_ns, memory_order_relaxed);
}

struct holder {
	char client[64], cookie[SOSD_HOLDER_MAX], address[128];
};

/* Who has the lock; 0 when nobody has. */
static int get_holder(struct sosd_owner *w, struct holder *h)
{
	size_t client = sizeof(h->client), cookie = sizeof(h->cookie), address = sizeof(h->address),
	       tag_len = 16;
	char tag[16];
	int exclusive;

	*h = (struct holder){ .cookie = NOBODY };
	return (int)rados_list_lockers(w->rados->io, w->object, LOCK, &exclusive, tag, &tag_len,
		h->client, &client, h->cookie, &cookie, h->address, &address);
}

static bool is_forbidden(int rc)
{
	return rc == -EPERM || rc == -EACCES;
}

/* A user who may not do so is no reason not to succeed oneself: what a dead process had sent is
 * hardly on its way for as long as a start takes. */
static int fence(struct sosd_owner *w, const struct holder *h)
{
	int rc = sosd_rados_fence(w->rados, h->address);

	if (rc)
		log_warn(
			"%s: the OSDs cannot be told to refuse requests that %s may have sent "
			"before it died: %s; the user needs mon 'profile rbd'",
			w->who, h->address, strerror(-rc));
	else
		log_info(
			"%s: the OSDs refuse requests from %s, which served these objects before "
			"and did not leave",
			w->who, h->address);
	return is_forbidden(rc) && !strcmp(h->cookie, w->me) ? 0 : rc;
}

/* -EEXIST: another one has it, and `holder` says who. */
static int take_lock(struct sosd_owner *w, struct holder *holder, uint64_t *end_ns)
{
	int rc, nr, tries;

	for (tries = 0; tries < TRIES; tries++) {
		rc = lock(w, LIBRADOS_LOCK_FLAG_MAY_RENEW, end_ns);
		if (rc != -EBUSY)
			return rc;
		nr = get_holder(w, holder);
		if (nr < 0)
			return nr;
		if (nr == 0)
			continue;		/* it has expired meanwhile */
		if (strcmp(holder->cookie, w->me))
			return -EEXIST;
		rc = fence(w, holder);
		if (!rc)
			rc = rados_break_lock(
				w->rados->io, w->object, LOCK, holder->client, holder->cookie);
		if (rc && rc != -ENOENT)
			return rc;
	}
	return -EAGAIN;
}

/* As far as it has the lock. */
static int give_back(struct sosd_owner *w)
{
	int rc = rados_unlock(w->rados->io, w->object, LOCK, w->me);

	return rc == -ENOENT ? 0 : rc;
}

/* ---- the record -------------------------------------------------------------------------- */

/* "ADDRESS NAME"; what is read is input. Both are empty when there is none. */
static int read_record(struct sosd_owner *w, struct holder *before)
{
	char text[RECORD + 1];
	int rc = rados_read(w->rados->io, w->object, text, RECORD, 0);

	*before = (struct holder){ 0 };
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	text[rc] = '\0';
	if (sscanf(text, "%127s %255s", before->address, before->cookie) != 2)
		*before = (struct holder){ 0 };
	return 0;
}

static uint8_t *put_u32(uint8_t *at, size_t value)
{
	for (int i = 0; i < 4; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	at = put_u32(at, strlen(text));
	memcpy(at, text, strlen(text));
	return at + strlen(text);
}

/* What the class's "assert_locked" takes (Ceph's cls_lock_assert_op): version, oldest version that
 * understands it, length; the lock's name, kind, cookie, and no tag. */
static size_t encode_lock(struct sosd_owner *w, uint8_t *buf)
{
	uint8_t *at = put_text(buf + 6, LOCK);

	*at++ = EXCLUSIVE;
	at = put_u32(put_text(at, w->me), 0);
	buf[0] = buf[1] = 1;
	put_u32(buf + 2, (size_t)(at - buf) - 6);
	return (size_t)(at - buf);
}

/* -EAGAIN: the lock is not ours any more (W3). */
static int write_record(struct sosd_owner *w, const char *address)
{
	uint8_t held[32 + sizeof(w->me)];
	char text[RECORD + 1];
	rados_write_op_t op = rados_create_write_op();
	int rc;

	if (!op)
		return -ENOMEM;
	rc = snprintf(text, sizeof(text), "%s %s", address, w->me);
	snprintf(text + rc, sizeof(text) - (size_t)rc, "%*s", RECORD - rc, "");
	rados_write_op_exec(op, "lock", "assert_locked", (const char *)held, encode_lock(w, held),
		NULL);
	rados_write_op_write_full(op, text, RECORD);
	rc = rados_write_op_operate(op, w->rados->io, w->object, NULL, 0);
	rados_release_write_op(op);
	return rc == -EBUSY ? -EAGAIN : rc;
}

/* It has the lock. -ESTALE: not any more, as another one, whom the record names, has served since
 * this segment did (W2). */
static int check_record(struct sosd_owner *w, struct holder *before)
{
	int rc = read_record(w, before);

	if (rc || !before->cookie[0] || !strcmp(before->cookie, w->me) ||
		!xseg_peer_user(w->xp, SOSD_WORD_SERVED))
		return rc;
	rc = give_back(w);
	return rc ? rc : -ESTALE;
}

/* W1 to W3. -EEXIST, -ESTALE: `holder` says who serves, or has served meanwhile. */
static int take(struct sosd_owner *w, struct holder *holder)
{
	struct holder before = { 0 };
	uint64_t end_ns;
	int rc = take_lock(w, holder, &end_ns);

	if (!rc)
		rc = check_record(w, &before);
	if (rc == -ESTALE)
		*holder = before;
	if (!rc && before.address[0] && strcmp(before.address, LEFT) &&
		strcmp(before.address, w->rados->address))
		rc = fence(w, &before);
	if (!rc)
		rc = write_record(w, w->rados->address);
	if (!rc) {
		xseg_peer_user_set(w->xp, SOSD_WORD_SERVED, 1);
		set_lease(w, end_ns);
		set_state(w, SOSD_OWNER);
	}
	return rc;
}

/* ---- the keeper -------------------------------------------------------------------------- */

/* False: it is to end. */
static bool wait_for(struct sosd_owner *w, uint64_t ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	struct timespec until = { .tv_sec = (time_t)(end_ns / SECOND_NS),
		.tv_nsec = (long)(end_ns % SECOND_NS) };
	bool goes_on;

	pthread_mutex_lock(&w->lock);
	while (!w->ending && pthread_cond_timedwait(&w->end, &w->lock, &until) == 0)
		;
	goes_on = !w->ending;
	pthread_mutex_unlock(&w->lock);
	return goes_on;
}

/* A segment whose place another one has taken does not serve again as it is (W2). */
static void tell_loss(struct sosd_owner *w, int rc, const struct holder *holder)
{
	if (rc == -ESHUTDOWN)
		log_error(
			"%s: the cluster has blocklisted this client, as a host does that takes "
			"its place; nothing is read or written here any more, and dirty data stays "
			"in the cache; to serve here, make sure that no other host does, then "
			"'xseg peer stop %s --force' and 'xseg peer start %s'",
			w->who, w->who, w->who);
	else
		log_error(
			"%s: %s %s; nothing is read or written here any more; to serve here, stop "
			"that one, then 'xseg down --force', which loses dirty data here, and "
			"'xseg up'",
			w->who, holder->cookie,
			rc == -ESTALE ? "has meanwhile served these objects"
				      : "serves these objects now");
}

/* True: somebody serves in its stead, or has. */
static bool is_lost(struct sosd_owner *w, int rc, const struct holder *holder)
{
	if (rc != -ESHUTDOWN && rc != -EEXIST && rc != -ESTALE)
		return false;
	set_state(w, SOSD_LOST);
	tell_loss(w, rc, holder);
	w->changed(w->arg);
	return true;
}

static bool is_silence(int rc)
{
	return rc == -ETIMEDOUT || rc == -EAGAIN;
}

/* The lock makes its object, so -ENOENT is of the pool. A request that waits for the lock in vain
 * must not fail as if its own object were not there. */
static void set_error(struct sosd_owner *w, int rc)
{
	int error = is_silence(rc) ? 0 : rc == -ENOENT ? -ENODEV : rc;

	atomic_store_explicit(&w->error, error, memory_order_relaxed);
}

/* Once for each error that is another one: it is asked several times a second. Of silence the log
 * of requests speaks. */
static void tell(struct sosd_owner *w, int rc)
{
	int before = sosd_owner_error(w), error;

	set_error(w, rc);
	error = sosd_owner_error(w);
	if (error && error != before)
		log_warn(
			"%s: the lock of its objects in the pool %s cannot be taken: %s; trying "
			"again, and requests wait; %s",
			w->who, w->rados->pool, strerror(-error), sosd_error_remedy(error));
	if (!rc && before)
		log_info("%s: the lock of its objects can be taken again", w->who);
}

static void ask(struct sosd_owner *w)
{
	struct holder holder;
	int rc = take(w, &holder);

	if (is_lost(w, rc, &holder))
		return;
	tell(w, rc);
	if (!rc) {
		log_info("%s: the pool %s answers", w->who, w->rados->pool);
		w->changed(w->arg);
	}
}

/* A lock that has expired is taken again, but another one may have had it meanwhile, and have left
 * so long ago that the OSDs do not refuse us any more: then the record says so. */
static void renew(struct sosd_owner *w)
{
	struct holder holder;
	uint64_t end_ns;
	int rc = lock(w, LIBRADOS_LOCK_FLAG_MUST_RENEW, &end_ns);

	if (rc == -ENOENT) {
		w->lapsed = true;
		set_lease(w, 0);
		rc = take_lock(w, &holder, &end_ns);
	}
	if (!rc && w->lapsed)
		rc = check_record(w, &holder);
	if (!rc && w->lapsed)			/* the object may have been removed */
		rc = write_record(w, w->rados->address);
	if (is_lost(w, rc, &holder))
		return;
	tell(w, rc);
	if (!rc) {
		w->lapsed = false;
		set_lease(w, end_ns);
		w->changed(w->arg);		/* it may have been at its end */
	}
}

static void *keep(void *arg)
{
	struct sosd_owner *w = arg;

	bus_block_others();
	while (sosd_owner_state(w) != SOSD_LOST &&
	       wait_for(w, sosd_owner_state(w) == SOSD_ASKING ? SECOND_NS / 5 : w->expiry_ns / 3)) {
		if (sosd_owner_state(w) == SOSD_ASKING)
			ask(w);
		else
			renew(w);
	}
	return NULL;
}

static int start_keeper(struct sosd_owner *w)
{
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->end, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&w->lock, NULL);
	rc = -pthread_create(&w->keeper, NULL, keep, w);
	w->runs = !rc;
	return rc;
}

static void end_keeper(struct sosd_owner *w)
{
	if (!w->runs)
		return;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_signal(&w->end);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->keeper, NULL);
	pthread_cond_destroy(&w->end);
	pthread_mutex_destroy(&w->lock);
	w->runs = false;
}

/* ---- beginning and end ------------------------------------------------------------------- */

static void name_me(struct sosd_owner *w, const struct sosd_owner_params *p)
{
	char host[65] = "";

	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "localhost");
	snprintf(w->me, sizeof(w->me), "%s/%s/%s/%lu", host, p->segment, p->peer,
		(unsigned long)p->made_at_s);
}

int sosd_owner_open(struct sosd_owner *w, struct sosd_rados *rados,
	const struct sosd_owner_params *p, struct xseg_error *err)
{
	struct holder holder;
	int rc;

	*w = (struct sosd_owner){ .rados = rados, .who = p->peer, .xp = p->xp,
		.expiry_ns = p->expiry_ns, .changed = p->changed, .arg = p->arg };
	snprintf(w->object, sizeof(w->object), "%s:owner", p->prefix);
	name_me(w, p);
	rc = take(w, &holder);
	if (rc == -EEXIST)
		return xseg_fail(err, rc,
			"the objects of prefix '%s' are served by %s; stop that one, or take "
			"another prefix=; if it died its lock expires in %lu s",
			p->prefix, holder.cookie, (unsigned long)(p->expiry_ns / SECOND_NS));
	if (rc == -ESTALE)
		return xseg_fail(err, -EEXIST,
			"%s has served the objects of prefix '%s' since this segment did, so the "
			"data in its caches is out of date; 'xseg down --force', then start it "
			"anew",
			holder.cookie, p->prefix);
	if (is_forbidden(rc)) {
		give_back(w);			/* nobody is to wait until it expires */
		return xseg_fail(err, rc,
			"the user may not lock %s in the pool, or may not blocklist other clients; "
			"it needs mon 'profile rbd' and osd 'allow rwx pool=%s'",
			w->object, rados->pool);
	}
	if (rc)
		log_warn("%s: the lock of its objects in the pool %s cannot be read: %s; trying "
			"again, and requests wait; %s",
			w->who, rados->pool, strerror(-rc), sosd_error_remedy(rc));
	set_error(w, rc);
	rc = start_keeper(w);
	return rc ? xseg_fail(err, rc, "no thread to keep the lock: %s", strerror(-rc)) : 0;
}

void sosd_owner_leave(struct sosd_owner *w)
{
	int rc;

	end_keeper(w);
	if (sosd_owner_state(w) != SOSD_OWNER)
		return;
	rc = write_record(w, LEFT);
	if (!rc)
		rc = give_back(w);
	if (rc == -EAGAIN)
		log_warn(
			"%s: the lock of its objects had expired when it left, and another one may "
			"have it",
			w->who);
	else if (rc)
		log_warn(
			"%s: the lock of its objects could not be given back: %s; it expires in "
			"%lu s",
			w->who, strerror(-rc), (unsigned long)(w->expiry_ns / SECOND_NS));
}

void sosd_owner_close(struct sosd_owner *w)
{
	end_keeper(w);
}
