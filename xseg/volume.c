/* volume - see volume.h: which volume it is, and whether anybody serves it.
 *
 * A volume is its id at volumed, which has a generation: a later volume of the same name has
 * another one. The id is learned once, by a question in text. Sizes are asked for by id. Each
 * question is asked by a client of its own, which is gone afterwards. So an open volume takes
 * nothing of the segment's but the place of a member, and no thread waits for another's question.
 *
 * Contract: any thread; opening and asking wait. Nothing here is on the path of data.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xseg/queue.h"

#define SECOND	    1000000000ull
#define START_NS    (SECOND / 100)	/* between looks at a volumed that is being started */

/* Of as many names as there are peers, and one more, one is free: others may be those of a process
 * of the same pid, which is dead, or of another container. */
int xs_client_open(
	struct xseg *seg, uint32_t nr_requests, struct xseg_peer **peer, struct xseg_error *err)
{
	static _Atomic uint32_t last;
	struct xseg_peer_params params = {
		.kind = "client", .nr_ports = 1, .nr_requests = nr_requests, .leaves_reserve = true
	};
	char name[XSEG_NAME_MAX];
	int rc = -EEXIST;

	for (uint32_t i = 0; i <= xseg_nr_peers(seg) && rc == -EEXIST; i++) {
		snprintf(name, sizeof(name), "io.%d.%u", (int)getpid(),
			atomic_fetch_add_explicit(&last, 1, memory_order_relaxed));
		params.name = name;
		rc = xseg_peer_open(seg, &params, peer, err);
	}
	return rc;
}

/* ---- who serves it ----------------------------------------------------------------------- */

/* *generation: of the volumed that it has, or had; 0: there is none of that name. */
static bool is_gone(struct xseg_volume *v, uint32_t *generation)
{
	struct xseg_peer_info info;

	*generation = 0;
	if (!xseg_is_whole(v->seg) || !xseg_peer_get_info(v->seg, v->peer, &info) ||
		strcmp(info.kind, "volumed") != 0 || strcmp(info.name, v->info.volumed) != 0)
		return true;
	*generation = info.generation;
	return xseg_peer_is_gone(v->seg, &info);
}

bool xs_volume_is_gone(struct xseg_volume *v)
{
	uint32_t generation;

	return is_gone(v, &generation);
}

/* A name is another's only with another generation. */
bool xs_volume_is_there(const struct xseg_volume *v, uint64_t *known)
{
	/* acquire: the name comes before the word */
	uint64_t generation = peer_gen(xs_peer_word(v->seg, v->peer)) + 1ull;
	const struct xs_peer *p = &v->seg->peers[v->peer];

	if (*known == generation)
		return true;
	if (strncmp(p->kind, "volumed", sizeof(p->kind)) != 0 ||
		strncmp(p->name, v->info.volumed, sizeof(p->name)) != 0)
		return false;
	*known = generation;
	return true;
}

bool xs_volume_is_lost(struct xseg_volume *v, uint64_t now, struct gone *g)
{
	uint32_t generation;

	if (!is_gone(v, &generation))
		g->since_ns = 0;
	else if (!g->since_ns || g->generation != generation)
		*g = (struct gone){ .since_ns = now, .generation = generation };
	return g->since_ns && (now - g->since_ns >= v->gone_ns || !xseg_is_whole(v->seg));
}

/* The volumed of that name or, for NULL, the only one: of those that are not gone, if there are
 * any. */
static int find_volumed(
	struct xseg *seg, const char *name, struct xseg_peer_info *found, struct xseg_error *err)
{
	struct xseg_meant meant = { .nr = 0 };
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &info) && strcmp(info.kind, "volumed") == 0 &&
			(!name || strcmp(info.name, name) == 0))
			xseg_meant_add(seg, &meant, &info);
	if (meant.nr == 0)
		return xseg_fail(err, -ENOENT,
			"segment '%s' has no volumed%s%.63s; start one with 'xseg -s %s up "
			"STACK.conf'",
			xseg_name(seg), name ? " called " : "", name ? name : "", xseg_name(seg));
	if (meant.nr > 1)
		return xseg_fail(err, -EINVAL, "segment '%s' has several volumeds, and none was "
			"named",
			xseg_name(seg));
	*found = meant.info;
	return 0;
}

/* One that is being started is waited for. */
static int wait_for_volumed(
	struct xseg_volume *v, const char *name, uint64_t until, struct xseg_error *err)
{
	const struct timespec pause = { .tv_nsec = START_NS };
	struct xseg_peer_info info = { .index = XSEG_NONE };
	int rc;

	for (;;) {
		rc = find_volumed(v->seg, name, &info, err);
		if (rc)
			return rc;
		if (info.state == XSEG_PEER_LIVE)
			break;
		if (xseg_peer_is_gone(v->seg, &info))
			return xseg_fail(err, -ENOTCONN,
				"%s does not run; start it with 'xseg -s %s peer start %s', or the "
				"stack with 'xseg -s %s up STACK.conf'",
				info.name, xseg_name(v->seg), info.name, xseg_name(v->seg));
		if (xs_now_ns() >= until)
			return xseg_fail(err, -ETIMEDOUT,
				"%s is not serving yet; see 'xseg -s %s status'", info.name,
				xseg_name(v->seg));
		nanosleep(&pause, NULL);
	}
	v->peer = info.index;
	memcpy(v->info.volumed, info.name, sizeof(v->info.volumed));
	return 0;
}

/* ---- asking by name ---------------------------------------------------------------------- */

/* The number in the line "key=..." of a text; 0 if there is none. */
static uint64_t number_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
		if (!strncmp(text, key, len) && text[len] == '=')
			return strtoull(text + len + 1, NULL, 10);
	return 0;
}

static int read_answer(struct xseg_volume *v, const char *text, struct xseg_error *err)
{
	uint64_t id = number_of(text, "id"), size = number_of(text, "size_bytes"),
		 object = number_of(text, "object_size_bytes");

	if (id == 0 || id > UINT32_MAX || size == 0 || object > UINT32_MAX ||
	    __builtin_popcountll(object) != 1)
		return xseg_fail(err, -EPROTO,
			"%s gave no usable answer about volume '%s'; is it of another build?",
			v->info.volumed, v->info.name);
	if (strstr(text, "state=removing"))
		return xseg_fail(err, -EBUSY, "volume '%s' is being removed", v->info.name);
	v->info.id = (uint32_t)id;
	v->info.generation = (uint32_t)id >> 16;
	v->info.object_bytes = (uint32_t)object;
	v->object_shift = (uint8_t)__builtin_ctzll(object);
	v->info.sector_bytes = XSEG_SECTOR;
	v->info.page_bytes = XSEG_PAGE_SIZE;
	atomic_store_explicit(&v->size_bytes, size, memory_order_relaxed);
	return 0;
}

static int ask_by_name(
	struct xseg_volume *v, struct xseg_peer *client, uint64_t until, struct xseg_error *err)
{
	char line[XSEG_NAME_MAX + 16], text[XSEG_PAGE_SIZE];
	uint32_t page[XSEG_EXTENT_PAGES];
	uint64_t now = xs_now_ns();
	int64_t len;
	int rc = xseg_pages_take(client, 1, page);

	if (rc)
		return xseg_fail(err, rc,
			"segment '%s' has less than the 2 MiB of memory left that opening a volume "
			"needs; stop a client, or make it with more --memory",
			xseg_name(v->seg));
	snprintf(line, sizeof(line), "volume info %s", v->info.name);
	len = xseg_admin_call(
		xseg_peer_port(client, 0), v->peer, line, page, 1, until > now ? until - now : 0);
	if (len == -ETIMEDOUT)
		return xseg_fail(
			err, -ETIMEDOUT, "%s does not answer; see 'xseg -s %s status'",
			v->info.volumed, xseg_name(v->seg));
	memcpy(text, xseg_page(v->seg, page[0]), sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	if (len >= 0) {
		text[len < (int64_t)sizeof(text) ? (size_t)len : sizeof(text) - 1] = '\0';
		return read_answer(v, text, err);
	}
	text[strcspn(text, "\n")] = '\0';
	return xseg_fail(err, (int)len, "%s: %.200s", v->info.volumed,
		*text && strcmp(text, line) != 0 ? text : strerror((int)-len));
}

/* ---- opening ----------------------------------------------------------------------------- */

int xs_check_whole(struct xseg *seg, struct xseg_error *err)
{
	if (xseg_is_whole(seg))
		return 0;
	return xseg_fail(err, -EPROTO,
		"memory of segment '%s' is gone: somebody truncated its file", xseg_name(seg));
}

/* The caller's attachment. */
static int check_attached(struct xseg *seg, struct xseg_error *err)
{
	if (xs_is_forked(seg))
		return xseg_fail(err, -ENOTCONN,
			"segment '%s' was attached before this process was forked; attach it here",
			xseg_name(seg));
	return xs_check_whole(seg, err);
}

static int attach(
	struct xseg_volume *v, const struct xseg_volume_params *params, struct xseg_error *err)
{
	int rc;

	v->seg = params->attached;
	if (v->seg)
		return check_attached(v->seg, err);
	if (!params->segment)
		return xseg_fail(err, -EINVAL, "no segment is named");
	rc = xseg_attach_owned(params->segment, params->owner, 0, &v->seg, err);
	v->attached_here = rc == 0;
	return rc;
}

static int ask(
	struct xseg_volume *v, const struct xseg_volume_params *params, struct xseg_error *err)
{
	uint64_t now = xs_now_ns(),
		 until = v->timeout_ns < UINT64_MAX - now ? now + v->timeout_ns : UINT64_MAX;
	struct xseg_peer *client;
	int rc = wait_for_volumed(v, params->volumed, until, err);

	if (!rc)
		rc = xs_client_open(v->seg, 1, &client, err);
	if (rc)
		return rc;
	rc = ask_by_name(v, client, until, err);
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	return rc;
}

/* Locks of the segment are waited for as long as answers are. */
static int ask_in_time(
	struct xseg_volume *v, const struct xseg_volume_params *params, struct xseg_error *err)
{
	uint64_t before = xs_wait_limit(v->timeout_ns);
	int rc = ask(v, params, err);

	xs_wait_limit(before);
	return rc;
}

int xseg_volume_open(const struct xseg_volume_params *params, struct xseg_volume **volume,
	struct xseg_error *err)
{
	struct xseg_volume *v;
	int rc;

	if (!params->volume || !xseg_name_ok(params->volume))
		return xseg_fail(err, -EINVAL,
			"volume name '%.63s': use 1 to 63 of A-Z a-z 0-9 . _ -",
			params->volume ? params->volume : "");
	if (params->volumed && !xseg_name_ok(params->volumed))
		return xseg_fail(err, -EINVAL,
			"volumed's name '%.63s': use 1 to 63 of A-Z a-z 0-9 . _ -",
			params->volumed);
	v = calloc(1, sizeof(*v));
	if (!v)
		return xseg_fail(err, -ENOMEM, "out of memory");
	v->refs = 1;
	v->timeout_ns = params->timeout_ns ? params->timeout_ns : 10 * SECOND;
	v->gone_ns = params->gone_ns ? params->gone_ns : 5 * SECOND;
	snprintf(v->info.name, sizeof(v->info.name), "%s", params->volume);
	rc = attach(v, params, err);
	if (!rc)
		rc = ask_in_time(v, params, err);
	if (rc) {
		xs_volume_put(v);
		return rc;
	}
	*volume = v;
	return 0;
}

void xs_volume_put(struct xseg_volume *v)
{
	/* acq_rel: who frees it sees what the others did with it */
	if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (v->attached_here)
		xseg_detach(v->seg);
	free(v);
}

void xseg_volume_close(struct xseg_volume *v)
{
	if (v)
		xs_volume_put(v);
}

void xseg_volume_get_info(struct xseg_volume *v, struct xseg_volume_info *info)
{
	*info = v->info;
	info->size_bytes = atomic_load_explicit(&v->size_bytes, memory_order_relaxed);
}

/* ---- asking again ------------------------------------------------------------------------ */

/* Waits for the one request of that port; -ENOTCONN and -ETIMEDOUT leave it out. */
static int64_t wait_for_answer(struct xseg_volume *v, struct xport *port)
{
	uint64_t begun = xs_now_ns(), now;
	struct gone gone = { 0 };
	struct xreq *r;

	for (;;) {
		if (xseg_port_replies(port, &r, 1))
			return r->result;
		now = xs_now_ns();
		if (xs_volume_is_lost(v, now, &gone))
			return -ENOTCONN;
		if (now - begun >= v->timeout_ns)
			return -ETIMEDOUT;
		xseg_port_wait(port, LOOK_NS);
	}
}

/* The size, as volumed says. */
static int64_t ask_size(struct xseg_volume *v)
{
	struct xseg_peer *client;
	struct xreq *r;
	int64_t size;
	int rc = xs_client_open(v->seg, 1, &client, NULL);

	if (rc)
		return rc;
	r = xseg_req_alloc(xseg_peer_port(client, 0));
	if (r) {
		r->op = XSEG_OP_INFO;
		r->volume = v->info.id;
		rc = xseg_req_submit(xseg_peer_port(client, 0), r, v->peer) ? -ENOTCONN : 0;
	}
	xseg_port_flush(xseg_peer_port(client, 0));
	size = !r ? -EPROTO : rc ? rc : wait_for_answer(v, xseg_peer_port(client, 0));
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	return size;
}

int xseg_volume_refresh(struct xseg_volume *v)
{
	uint64_t known = 0, before;
	int64_t size;

	if (xs_is_forked(v->seg))
		return -ENOTCONN;
	if (!xseg_is_whole(v->seg))
		return -EPROTO;
	if (!xs_volume_is_there(v, &known))
		return -ENOTCONN;
	before = xs_wait_limit(v->timeout_ns);
	size = ask_size(v);
	xs_wait_limit(before);
	if (size < 0)
		return size == -ENOENT ? -ESTALE : (int)size;
	atomic_store_explicit(&v->size_bytes, (uint64_t)size, memory_order_relaxed);
	return 0;
}
