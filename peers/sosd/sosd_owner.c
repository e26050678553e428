/* sosd_owner - see sosd_owner.h for the states, the contract and the invariants. */
#include "peers/sosd/sosd_owner.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peers/common/bus.h"
#include "peers/common/log.h"

#define LOCK	  "xseg"
#define SECOND_NS UINT64_C(1000000000)
#define TRIES	  5			/* that a lock was broken, and somebody else took it */
#define NOBODY	  "nobody"
#define LEFT	  "-"				/* in the place of an address */

#define TO(state) (1u << SOSD_##state)

static const uint8_t legal[] = {
	[SOSD_ASKING] = TO(OWNER) | TO(LOST),
	[SOSD_OWNER] = TO(LOST),
	[SOSD_LOST] = 0,
};

static void set_state(struct sosd_owner *w, enum sosd_owner_state state)
{
	assert(legal[atomic_load(&w->state)] & 1u << state);
	/* release: partner is the acquire in sosd_owner_state(): what is sent after it is sent
	 * after the fence */
	atomic_store_explicit(&w->state, state, memory_order_release);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- the lock ---------------------------------------------------------------------------- */

/* MUST_RENEW: -ENOENT when it is not ours any more. It lasts until *end_ns. */
static int lock(struct sosd_owner *w, uint8_t flags, uint64_t *end_ns)
{
	struct timeval expiry = { .tv_sec = (time_t)(w->expiry_ns / SECOND_NS),
		.tv_usec = (suseconds_t)(w->expiry_ns % SECOND_NS / 1000) };

	*end_ns = clock_ns() + w->expiry_ns;
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

/* A user who may not do so is no reason not to succeed oneself: what a dead process had sent is
 * hardly on its way for as long as a start takes. */
static int fence(struct sosd_owner *w, const struct holder *h)
{
	int rc = sosd_rados_fence(w->rados, h->address);

	if (rc)
		log_warn(
			"%s: the OSDs cannot be told to refuse what %s may have sent before it died: %s; the user needs mon 'profile rbd'",
			w->who, h->address, strerror(-rc));
	else
		log_info(
			"%s: the OSDs refuse what %s sent, who served these objects before and did not leave",
			w->who, h->address);
	return (rc == -EPERM || rc == -EACCES) && !strcmp(h->cookie, w->me) ? 0 : rc;
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

/* ---- the record -------------------------------------------------------------------------- */

/* "ADDRESS NAME"; what is read is input. Both are empty when there is none. */
static int read_record(struct sosd_owner *w, struct holder *before)
{
	char text[sizeof(before->address) + sizeof(before->cookie)];
	int rc = rados_read(w->rados->io, w->object, text, sizeof(text) - 1, 0);

	*before = (struct holder){ 0 };
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	text[rc] = '\0';
	if (sscanf(text, "%127s %255s", before->address, before->cookie) != 2)
		*before = (struct holder){ 0 };
	return 0;
}

static int write_record(struct sosd_owner *w, const char *address)
{
	char text[sizeof(w->rados->address) + sizeof(w->me) + 1];

	snprintf(text, sizeof(text), "%s %s", address, w->me);
	return rados_write_full(w->rados->io, w->object, text, strlen(text));
}

/* It has the lock. -ESTALE: not any more, as another one, whom the record names, has served since
 * this segment did (W2). */
static int check_record(struct sosd_owner *w, struct holder *before)
{
	int rc = read_record(w, before);

	if (rc || !before->cookie[0] || !strcmp(before->cookie, w->me) ||
		!xseg_peer_user(w->xp, SOSD_WORD_SERVED))
		return rc;
	rc = rados_unlock(w->rados->io, w->object, LOCK, w->me);
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
	uint64_t end_ns = clock_ns() + ns;
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

static void lose(struct sosd_owner *w, const char *why)
{
	set_state(w, SOSD_LOST);
	log_error(
		"%s: %s; nothing is read or written here any more, and dirty data stays in the cache; to serve them here, stop the other one, then 'xseg peer stop --force' this one and start it again",
		w->who, why);
	w->changed(w->arg);
}

/* True: somebody serves in its stead, or has. */
static bool is_lost(struct sosd_owner *w, int rc, const struct holder *holder)
{
	char why[sizeof(holder->cookie) + 64];

	if (rc == -ESHUTDOWN)
		snprintf(why, sizeof(why),
			"the cluster has blocklisted this client, as who takes its place would");
	else if (rc == -EEXIST || rc == -ESTALE)
		snprintf(why, sizeof(why), "%s %s", holder->cookie,
			rc == -ESTALE ? "has meanwhile served these objects"
				      : "serves these objects now");
	else
		return false;
	lose(w, why);
	return true;
}

static void ask(struct sosd_owner *w)
{
	struct holder holder;
	int rc = take(w, &holder);

	if (!is_lost(w, rc, &holder) && !rc) {
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
	if (!is_lost(w, rc, &holder) && !rc) {
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

	*w = (struct sosd_owner){ .rados = rados, .who = p->peer, .xp = p->xp, .expiry_ns = p->expiry_ns, .changed = p->changed, .arg = p->arg };
	snprintf(w->object, sizeof(w->object), "%s:owner", p->prefix);
	name_me(w, p);
	rc = take(w, &holder);
	if (rc == -EEXIST)
		return xseg_fail(err, rc,
			"the objects of prefix '%s' are served by %s; stop that one, or take another prefix=; if it died its lock expires in %lu s",
			p->prefix, holder.cookie, (unsigned long)(p->expiry_ns / SECOND_NS));
	if (rc == -ESTALE)
		return xseg_fail(err, -EEXIST,
			"%s has served the objects of prefix '%s' since this segment did, so what its caches hold is out of date; 'xseg down "
			"--force', then start it anew",
			holder.cookie, p->prefix);
	if (rc == -EPERM || rc == -EACCES)
		return xseg_fail(err, rc,
			"the user may not lock %s in the pool, or not have others refused; it needs mon 'profile rbd' and osd 'allow rwx pool=%s'",
			w->object, rados->pool);
	if (rc)
		log_warn("%s: the pool %s does not say who may serve it: %s; asking on, and requests wait; 'ceph -s' may say why",
			w->who, rados->pool, strerror(-rc));
	rc = start_keeper(w);
	return rc ? xseg_fail(err, rc, "no thread to keep the lock: %s", strerror(-rc)) : 0;
}

void sosd_owner_leave(struct sosd_owner *w)
{
	int rc = 0;

	end_keeper(w);
	if (sosd_owner_state(w) != SOSD_OWNER)
		return;
	rc = write_record(w, LEFT);
	if (!rc)
		rc = rados_unlock(w->rados->io, w->object, LOCK, w->me);
	if (rc)
		log_warn(
			"%s: the lock of its objects could not be given back: %s; it expires in %lu s",
			w->who, strerror(-rc), (unsigned long)(w->expiry_ns / SECOND_NS));
}

void sosd_owner_close(struct sosd_owner *w)
{
	end_keeper(w);
}
