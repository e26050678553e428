/* exports - what an nbdkit serves: one volume, or several, which clients choose by export names.
 *
 * A volume that is not there when nbdkit begins is looked for again each second, and when a client
 * comes, if the export has a name: a stack may start before its volumes are made. Others are served
 * meanwhile. A volume that was removed is replaced by another one of its name when a client comes
 * and no connection has it open any more.
 *
 * An export with a name has a client in the segment that says how it is
 * (peers/common/say/export_words.h).
 *
 * Contract: before after_fork() one thread, afterwards any. An export's volume, lanes and writers
 * change under `life` only, and only while no connection has them.
 *
 * Invariants
 *   X1  An export is the only one and has no name, or all have names, which differ.
 *   X2  While an export has connections, its volume is open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "peers/common/say/export_words.h"
#include "tools/nbdkit/plugin.h"

#define LOOK_S	  1
#define LANES	  16
#define LANES_MAX 64

/* Written before there are threads. */
static struct {
	const char *segment, *owner;
	const char *server;			/* EXPORT_WORD_SERVER */
	const char *socket, *mode, *group;	/* of nbdkit's socket, or NULL */
	uint32_t direct;
	bool guarded;				/* it does not begin without a guard */
	struct xseg *seg;			/* of named ones: for all of them */
	pthread_t looker;			/* for volumes that were not there */
	bool has_looker;
	pthread_mutex_t lock;			/* guards `ending`; nothing is taken under it */
	pthread_cond_t ended;
	bool ending;
	unsigned nr;
	struct export export[EXPORTS_MAX];
} all = { .segment = "xseg",
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER };

const char *exports_segment(void)
{
	return all.segment;
}

uint32_t exports_direct(void)
{
	return all.direct;
}

struct export *exports_at(unsigned n)
{
	return n < all.nr ? &all.export[n] : NULL;
}

struct export *exports_find(const char *name)
{
	if (all.nr == 1 && (!all.export[0].name || !*name))
		return &all.export[0];
	for (unsigned i = 0; i < all.nr; i++)
		if (!strcmp(all.export[i].name, name))
			return &all.export[i];
	return NULL;
}

/* ---- options ----------------------------------------------------------------------------- */

static int parse_direct(const char *value)
{
	all.direct = strcmp(value, "auto") ? XSEG_DIRECT_NEVER : XSEG_DIRECT_AUTO;
	if (!strcmp(value, "auto") || !strcmp(value, "never"))
		return 0;
	nbdkit_error("direct=%s: give auto or never", value);
	return -1;
}

static struct export *add_export(const char *name)
{
	struct export *e;

	if (all.nr == EXPORTS_MAX) {
		nbdkit_error("there are more than %d exports", EXPORTS_MAX);
		return NULL;
	}
	for (unsigned i = 0; i < all.nr; i++)
		if (!name || !all.export[i].name || !strcmp(all.export[i].name, name)) {
			nbdkit_error("export=%s: each export has a name of its own, which stands "
				     "before its volume",
				name ? name : "");
			return NULL;
		}
	e = &all.export[all.nr++];
	e->name = name;
	e->nr_lanes = LANES;
	pthread_mutex_init(&e->life, NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->put, NULL);
	pthread_mutex_init(&e->refresh.lock, NULL);
	pthread_cond_init(&e->refresh.ended, NULL);
	return e;
}

/* The one that the options are of now. */
static struct export *current(void)
{
	return all.nr ? &all.export[all.nr - 1] : add_export(NULL);
}

static int parse_queues(struct export *e, const char *value)
{
	if (nbdkit_parse_unsigned("queues", value, &e->nr_lanes))
		return -1;
	if (e->nr_lanes >= 1 && e->nr_lanes <= LANES_MAX)
		return 0;
	nbdkit_error("queues=%s: give 1 to %d", value, LANES_MAX);
	return -1;
}

static int parse_bool(const char *value, bool *to)
{
	int rc = nbdkit_parse_bool(value);

	*to = rc > 0;
	return rc < 0 ? -1 : 0;
}

/* An option of one export. */
static int config_one(const char *key, const char *value)
{
	struct export *e = current();

	if (!e)
		return -1;
	if (!strcmp(key, "volume")) {
		e->volume_name = value;
	} else if (!strcmp(key, "volumed")) {
		e->volumed = value;
	} else if (!strcmp(key, "queues")) {
		return parse_queues(e, value);
	} else if (!strcmp(key, "readonly")) {
		return parse_bool(value, &e->read_only);
	} else {
		nbdkit_error("unknown parameter '%s': there are segment, volume, volumed, owner, "
			     "queues, direct, export, readonly, guard, server, socket, mode and "
			     "group",
			key);
		return -1;
	}
	return 0;
}

int exports_config(const char *key, const char *value)
{
	if (!strcmp(key, "segment")) {
		all.segment = value;
	} else if (!strcmp(key, "owner")) {
		all.owner = value;
	} else if (!strcmp(key, "direct")) {
		return parse_direct(value);
	} else if (!strcmp(key, "export")) {
		return add_export(value) ? 0 : -1;
	} else if (!strcmp(key, "guard")) {
		return parse_bool(value, &all.guarded);
	} else if (!strcmp(key, "server")) {
		all.server = value;
	} else if (!strcmp(key, "socket")) {
		all.socket = value;
	} else if (!strcmp(key, "mode")) {
		all.mode = value;
	} else if (!strcmp(key, "group")) {
		all.group = value;
	} else {
		return config_one(key, value);
	}
	return 0;
}

int exports_config_complete(void)
{
	if (!all.nr) {
		nbdkit_error("name a volume, as in volume=disk");
		return -1;
	}
	for (unsigned i = 0; i < all.nr; i++) {
		struct export *e = &all.export[i];

		if (!e->volume_name)
			e->volume_name = e->name;
		if (!e->volume_name) {
			nbdkit_error("name a volume, as in volume=disk");
			return -1;
		}
	}
	return 0;
}

const char exports_config_help[] =
	"[volume=]VOLUME    The volume to serve (required, unless export= is given).\n"
	"segment=SEGMENT    The segment that it is in; xseg if none is given.\n"
	"volumed=NAME       Which volumed, where there are several.\n"
	"owner=USER         Also use a segment of that user; else $XSEG_OWNER.\n"
	"queues=N           Requests in progress at a time, 1 to 64; 16 if none is given.\n"
	"direct=WHEN        When reads take cached data without a request: auto, which is while\n"
	"                   that pays, or never; auto if none is given.\n"
	"export=NAME        Begins one of several exports, by its name. volume, volumed, queues\n"
	"                   and readonly that follow are of that one.\n"
	"readonly=BOOL      Whether clients cannot write; false if none is given.\n"
	"guard=BOOL         Whether it refuses to begin without xseg's guard.\n"
	"server=NUMBER      Told in the segment, for who has started it.\n"
	"socket=PATH        nbdkit's socket, which gets the mode and the group.\n"
	"mode=MODE          Which users may connect to the socket, as 0660.\n"
	"group=NUMBER       The group that the socket is given to.";

/* ---- in the segment ---------------------------------------------------------------------- */

/* Under life. */
static void tell_volume(struct export *e)
{
	struct xseg_volume_info info;

	if (!e->peer)
		return;
	if (!e->volume) {
		xseg_peer_user_set(e->peer, XSEG_CLIENT_WORD_VOLUME, 0);
		xseg_peer_user_set(e->peer, XSEG_CLIENT_WORD_SINCE, (uint64_t)time(NULL));
		return;
	}
	xseg_volume_get_info(e->volume, &info);
	xseg_client_volume_set(e->peer, xseg_peer_find(all.seg, info.volumed), info.id);
}

static int peer_open(struct export *e, struct xseg_error *err)
{
	char name[XSEG_NAME_MAX];
	struct xseg_peer_params params = { .name = name, .kind = "client", .nr_ports = 1 };
	int rc;

	export_peer_name(e->name, name);
	rc = xseg_peer_open(all.seg, &params, &e->peer, err);
	if (rc)
		return rc;
	tell_volume(e);
	xseg_peer_user_set(e->peer, EXPORT_WORD_CONNECTIONS, 0);
	xseg_peer_user_set(e->peer, EXPORT_WORD_SERVER,
		all.server ? strtoull(all.server, NULL, 10) : 0);
	xseg_peer_user_set(e->peer, EXPORT_WORD_READ_ONLY, e->read_only);
	return 0;
}

static void tell_connections(struct export *e)
{
	if (e->peer)
		xseg_peer_user_set(e->peer, EXPORT_WORD_CONNECTIONS, e->connections);
}

/* ---- volumes ----------------------------------------------------------------------------- */

static int volume_open(struct export *e, struct xseg_error *err)
{
	struct xseg_volume_params params = {
		.segment = all.segment, .attached = all.seg, .volume = e->volume_name,
		.volumed = e->volumed,
		.owner = all.owner ? all.owner : getenv("XSEG_OWNER")
	};

	return xseg_volume_open(&params, &e->volume, err);
}

static void volume_drop(struct export *e)
{
	lanes_close(e);
	writers_close(e);
	xseg_volume_close(e->volume);
	e->volume = NULL;
	tell_volume(e);
}

/* The volume, its lanes and writers. Under life, and X2. 0; -ENOENT: there is no such volume;
 * another error, which nbdkit_error() says if it is to be said. */
static int volume_begin(struct export *e, bool say)
{
	struct xseg_error err = { "" };
	int rc = volume_open(e, &err);

	if (rc == -EBUSY || (rc == -ENOENT && e->name))
		rc = -ENOENT;
	else if (rc && say)
		nbdkit_error("%s", err.text);
	if (rc)
		return rc;
	if (lanes_open(e)) {
		volume_drop(e);
		return -EIO;
	}
	if (writers_open(e, &err))
		nbdkit_debug("fewer queues for small writes: %s", err.text);
	tell_volume(e);
	return 0;
}

/* ---- volumes that are made later --------------------------------------------------------- */

/* False: it is time to end. */
static bool look_later(void)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOOK_S;
	pthread_mutex_lock(&all.lock);
	if (!all.ending)
		pthread_cond_clockwait(&all.ended, &all.lock, CLOCK_MONOTONIC, &until);
	ending = all.ending;
	pthread_mutex_unlock(&all.lock);
	return !ending;
}

static bool look_for_volumes(void)
{
	bool missing = false;

	for (unsigned i = 0; i < all.nr; i++) {
		struct export *e = &all.export[i];

		pthread_mutex_lock(&e->life);
		if (!e->volume)
			(void)volume_begin(e, false);
		missing |= !e->volume;
		pthread_mutex_unlock(&e->life);
	}
	return missing;
}

static void *look(void *arg)
{
	(void)arg;
	while (look_later() && look_for_volumes())
		;
	return NULL;
}

/* If there is no thread, clients look. */
static void start_looker(void)
{
	for (unsigned i = 0; i < all.nr && !all.has_looker; i++)
		if (!all.export[i].volume)
			all.has_looker = !pthread_create(&all.looker, NULL, look, NULL);
}

static void stop_looker(void)
{
	pthread_mutex_lock(&all.lock);
	all.ending = true;
	pthread_cond_signal(&all.ended);
	pthread_mutex_unlock(&all.lock);
	if (all.has_looker)
		pthread_join(all.looker, NULL);
	all.has_looker = false;
}

/* ---- beginning and ending ---------------------------------------------------------------- */

/* What is wrong with the names is said before nbdkit goes to the background. */
int exports_get_ready(void)
{
	struct export *e = &all.export[0];
	struct xseg_error err = { "" };
	int rc;

	if (all.guarded && !writers_bind(NULL)) {
		nbdkit_error("it was begun without xseg's guard, and without that one client can "
			     "end all others; build or install xseg-nbdkit-guard.so again");
		return -1;
	}
	if (e->name)
		return 0;
	rc = volume_open(e, &err);
	xseg_volume_close(e->volume);
	e->volume = NULL;
	if (rc)
		nbdkit_error("%s", err.text);
	return rc ? -1 : 0;
}

void exports_cleanup(void)
{
	stop_looker();
	for (unsigned i = 0; i < all.nr; i++) {
		struct export *e = &all.export[i];

		volume_drop(e);
		if (e->peer)
			xseg_peer_close(e->peer, XSEG_CLOSE_FREE_ARENA);
		e->peer = NULL;
	}
	if (all.seg)
		xseg_detach(all.seg);
	all.seg = NULL;
}

static int attach(void)
{
	struct xseg_error err = { "" };
	const char *owner = all.owner ? all.owner : getenv("XSEG_OWNER");

	if (!all.export[0].name ||
		!xseg_attach_owned(all.segment, owner, 0, &all.seg, &err))
		return 0;
	nbdkit_error("%s", err.text);
	return -1;
}

/* One of a name may be without its volume for now. nbdkit listens already, so its client may be
 * there, and says first of all whether there is a volume. */
static int begin(struct export *e)
{
	struct xseg_error err = { "" };
	int rc = volume_begin(e, true);

	if (rc && (rc != -ENOENT || !e->name))
		return rc;
	if (!e->name || !peer_open(e, &err))
		return 0;
	nbdkit_error("export %s: %s", e->name, err.text);
	return -1;
}

/* Before the mode, so that no other group gets the rights. */
static int set_group(void)
{
	unsigned group;

	if (nbdkit_parse_unsigned("group", all.group, &group))
		return -1;
	if (!lchown(all.socket, (uid_t)-1, group))
		return 0;
	nbdkit_error("socket %s cannot have group %s: %s%s", all.socket, all.group,
		strerror(errno),
		errno == EPERM ? "; the server's user has to be in that group" : "");
	return -1;
}

/* nbdkit makes its socket with a umask of its own. */
static int set_rights(void)
{
	char *end;
	unsigned long mode = all.mode ? strtoul(all.mode, &end, 8) : 0;

	if (!all.socket)
		return 0;
	if (all.mode && (*end || !mode || mode > 0777)) {
		nbdkit_error("mode=%s: give a file mode such as 0660", all.mode);
		return -1;
	}
	if (all.group && set_group())
		return -1;
	if (!all.mode || !chmod(all.socket, (mode_t)mode))
		return 0;
	nbdkit_error("socket %s cannot have mode %s: %s", all.socket, all.mode, strerror(errno));
	return -1;
}

/* If it fails, nbdkit exits at once. A server of a stack outlives the supervisor that has started
 * it, although nbdkit in the foreground has the kernel end it then (1.32). */
int exports_after_fork(void)
{
	int rc = attach();

	if (all.export[0].name)
		prctl(PR_SET_PDEATHSIG, 0);
	if (!rc)
		rc = set_rights();
	for (unsigned i = 0; i < all.nr && !rc; i++)
		rc = begin(&all.export[i]);
	if (!rc) {
		start_looker();
		return 0;
	}
	exports_cleanup();
	return -1;
}

/* ---- connections ------------------------------------------------------------------------- */

/* Under refresh.lock, which is not held meanwhile. */
static void refresh_now(struct export *e)
{
	struct refresh *r = &e->refresh;
	int rc;

	r->runs = true;
	r->begun++;
	pthread_mutex_unlock(&r->lock);
	rc = xseg_volume_refresh(e->volume);
	pthread_mutex_lock(&r->lock);
	r->rc = rc;
	r->done = r->begun;
	r->runs = false;
	pthread_cond_broadcast(&r->ended);
}

static int refresh_shared(struct export *e)
{
	struct refresh *r = &e->refresh;
	uint64_t wanted;
	int rc;

	pthread_mutex_lock(&r->lock);
	wanted = r->begun + 1;
	while (r->done < wanted) {
		if (r->runs)
			pthread_cond_wait(&r->ended, &r->lock);
		else
			refresh_now(e);
	}
	rc = r->rc;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

bool export_is_there(struct export *e)
{
	bool there;

	pthread_mutex_lock(&e->life);
	there = e->volume;
	pthread_mutex_unlock(&e->life);
	return there;
}

/* X2: from here on the volume stays open. */
static int hold_volume(struct export *e)
{
	int rc;

	pthread_mutex_lock(&e->life);
	rc = e->volume ? 0 : volume_begin(e, true);
	if (!rc) {
		e->connections++;
		tell_connections(e);
	}
	pthread_mutex_unlock(&e->life);
	return rc;
}

void export_end(struct export *e)
{
	pthread_mutex_lock(&e->life);
	e->connections--;
	tell_connections(e);
	pthread_mutex_unlock(&e->life);
}

/* The volume was removed: another one of its name, if this connection is the only one. */
static int replace_volume(struct export *e)
{
	int rc = -ESTALE;

	pthread_mutex_lock(&e->life);
	if (e->name && e->connections == 1) {
		volume_drop(e);
		rc = volume_begin(e, true);
	}
	if (rc)
		e->connections--;
	tell_connections(e);
	pthread_mutex_unlock(&e->life);
	return rc;
}

static void tell_failed(const struct export *e, int rc)
{
	struct xseg_error err = { "" };

	if (rc == -ENOSPC)
		xseg_fail(&err, 0,
			"segment %s has no port or request left for a new connection; end a "
			"client, or make the segment with more ports and requests",
			all.segment);
	if (rc == -ENOENT)
		xseg_fail(&err, 0, "there is no such volume; make it with 'xseg -s %s volume "
				   "create'",
			all.segment);
	nbdkit_error("volume %s: %s", e->volume_name, export_why(NULL, rc, &err));
}

bool export_begin(struct export *e)
{
	int rc = hold_volume(e);

	if (rc == -ENOENT)
		tell_failed(e, rc);
	if (rc)
		return false;
	rc = refresh_shared(e);
	if (!rc)
		return true;
	if (rc == -ESTALE)
		rc = replace_volume(e);
	else
		export_end(e);
	if (rc)
		tell_failed(e, rc);
	return !rc;
}
