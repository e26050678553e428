/* volume - see volume.h: which volume it is, and how large.
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

#include "xseg/client/queue.h"

#define SECOND 1000000000ull

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
			v->server.name, v->info.name);
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
			"needs; stop a client, or make it with more memory",
			xseg_name(v->server.seg));
	snprintf(line, sizeof(line), "volume info %s", v->info.name);
	len = xseg_admin_call(xseg_peer_port(client, 0), v->server.peer, line, page, 1,
		until > now ? until - now : 0);
	if (len == -ETIMEDOUT)
		return xseg_fail(
			err, -ETIMEDOUT, "%s does not answer; see 'xseg -s %s status'",
			v->server.name, xseg_name(v->server.seg));
	memcpy(text, xseg_page(v->server.seg, page[0]), sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	if (len >= 0) {
		text[len < (int64_t)sizeof(text) ? (size_t)len : sizeof(text) - 1] = '\0';
		return read_answer(v, text, err);
	}
	text[strcspn(text, "\n")] = '\0';
	return xseg_fail(err, (int)len, "%s: %.200s", v->server.name,
		*text && strcmp(text, line) != 0 ? text : strerror((int)-len));
}

/* ---- opening ----------------------------------------------------------------------------- */

static int ask(
	struct xseg_volume *v, const struct xseg_volume_params *params, struct xseg_error *err)
{
	uint64_t until = xs_server_until(&v->server);
	struct xseg_peer *client;
	int rc = xs_server_find(&v->server, params->volumed, until, err);

	if (!rc)
		rc = xs_client_open(v->server.seg, 1, &client, err);
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
	uint64_t before = xs_wait_limit(v->server.timeout_ns);
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
	v->server.kind = "volumed";
	v->server.timeout_ns = params->timeout_ns ? params->timeout_ns : 10 * SECOND;
	v->server.gone_ns = params->gone_ns ? params->gone_ns : 5 * SECOND;
	v->server.restart_ns = params->gone_ns ? params->gone_ns : XSEG_RESTART_NS;
	snprintf(v->info.name, sizeof(v->info.name), "%s", params->volume);
	rc = xs_server_attach(
		&v->server, params->attached, params->segment, params->owner, err);
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
	xs_server_detach(&v->server);
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
	memcpy(info->volumed, v->server.name, sizeof(info->volumed));
	info->size_bytes = atomic_load_explicit(&v->size_bytes, memory_order_relaxed);
}

/* ---- asking again ------------------------------------------------------------------------ */

/* The size, as volumed says. */
static int64_t ask_size(struct xseg_volume *v)
{
	struct xseg_peer *client;
	struct xreq *r;
	int64_t size;
	int rc = xs_client_open(v->server.seg, 1, &client, NULL);

	if (rc)
		return rc;
	r = xseg_req_alloc(xseg_peer_port(client, 0));
	if (r) {
		r->op = XSEG_OP_INFO;
		r->volume = v->info.id;
		rc = xseg_req_submit(xseg_peer_port(client, 0), r, v->server.peer) ? -ENOTCONN : 0;
	}
	xseg_port_flush(xseg_peer_port(client, 0));
	size = !r ? -EPROTO : rc ? rc : xs_server_wait(&v->server, xseg_peer_port(client, 0));
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	return size;
}

int xseg_volume_look(struct xseg_volume *v, struct xseg_error *err)
{
	return xs_server_look(&v->server, err);
}

int xseg_volume_refresh(struct xseg_volume *v)
{
	uint64_t known = 0, before;
	int64_t size;

	if (xs_is_forked(v->server.seg))
		return -ENOTCONN;
	if (!xseg_is_whole(v->server.seg))
		return -EPROTO;
	if (!xs_server_is_there(&v->server, &known))
		return -ENOTCONN;
	before = xs_wait_limit(v->server.timeout_ns);
	size = ask_size(v);
	xs_wait_limit(before);
	if (size < 0)
		return size == -ENOENT ? -ESTALE : (int)size;
	atomic_store_explicit(&v->size_bytes, (uint64_t)size, memory_order_relaxed);
	return 0;
}
