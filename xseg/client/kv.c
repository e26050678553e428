/* kv - see kv.h: which store it is.
 *
 * A store is the id and the UUID of a log, which are learned once, by a question to kvd. Each
 * question is asked by a client of its own, which is gone afterwards. So an open store takes
 * nothing of the segment's but the place of a member.
 *
 * Contract: any thread; opening and asking wait. Nothing here is on the path of data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/client/kv_inside.h"

#define SECOND 1000000000ull

/* ---- asking ------------------------------------------------------------------------------ */

static void fill_info(struct xreq *r, struct xseg *seg, const uint32_t page[2], uint32_t id)
{
	struct kv_query query = { .magic = KV_QUERY_MAGIC, .kind = KV_INFO };

	memset(xseg_page(seg, page[0]), 0, KV_PAGE);
	memcpy(xseg_page(seg, page[1]), &query, sizeof(query));
	r->op = XSEG_OP_READ;
	r->volume = id;
	r->size = KV_PAGE;
	r->nr_pages = 2;
	r->page[0] = page[0];
	r->page[1] = page[1];
}

static int64_t ask(struct xseg_kv *kv, struct xseg_peer *client, struct kv_info *info)
{
	struct xport *port = xseg_peer_port(client, 0);
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xreq *r;
	int64_t rc = xseg_pages_take(client, 2, page);

	if (rc)
		return rc;
	r = xseg_req_alloc(port);
	if (!r)
		return -EPROTO;
	fill_info(r, kv->server.seg, page, kv->id);
	if (xseg_req_submit(port, r, kv->server.peer))
		return -ENOTCONN;
	xseg_port_flush(port);
	rc = xs_server_wait(&kv->server, port);
	if (rc < 0)
		return rc;
	if (rc < (int64_t)sizeof(*info))
		return -EPROTO;
	memcpy(info, xseg_page(kv->server.seg, page[0]), sizeof(*info));
	return info->version == KV_WIRE_VERSION ? 0 : -EPROTO;
}

/* Locks of the segment are waited for as long as answers are. */
static int ask_in_time(struct xseg_kv *kv, struct kv_info *info, struct xseg_error *err)
{
	uint64_t before = xs_wait_limit(kv->server.timeout_ns);
	struct xseg_peer *client;
	int rc = xs_client_open(kv->server.seg, 1, &client, err);

	if (!rc) {
		rc = (int)ask(kv, client, info);
		xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
		if (rc)
			xseg_fail(err, rc, "%s: %s", kv->server.name,
				rc == -EPROTO	   ? "it is of another build, so restart it"
				: rc == -ETIMEDOUT ? "it does not answer; see 'xseg status'"
						   : strerror(-rc));
	}
	xs_wait_limit(before);
	return rc;
}

/* ---- opening ----------------------------------------------------------------------------- */

static int open_store(
	struct xseg_kv *kv, const struct xseg_kv_params *params, struct xseg_error *err)
{
	struct kv_info info;
	int rc = xs_server_attach(
		&kv->server, params->attached, params->segment, params->owner, err);

	if (!rc)
		rc = xs_server_find(&kv->server, params->kvd, xs_server_until(&kv->server), err);
	if (!rc)
		rc = ask_in_time(kv, &info, err);
	if (rc)
		return rc;
	kv->id = info.id;
	memcpy(kv->uuid, info.uuid, sizeof(kv->uuid));
	kv->record_max = info.record_max;
	kv->value_max = info.value_max;
	kv->piece_bytes = info.piece_bytes;
	return 0;
}

int xseg_kv_open(
	const struct xseg_kv_params *params, struct xseg_kv **store, struct xseg_error *err)
{
	struct xseg_kv *kv;
	int rc;

	if (params->kvd && !xseg_name_ok(params->kvd))
		return xseg_fail(err, -EINVAL,
			"kvd's name '%.63s': use 1 to 63 of A-Z a-z 0-9 . _ -", params->kvd);
	kv = calloc(1, sizeof(*kv));
	if (!kv)
		return xseg_fail(err, -ENOMEM, "out of memory");
	kv->refs = 1;
	kv->server.kind = "kvd";
	kv->server.timeout_ns = params->timeout_ns ? params->timeout_ns : 10 * SECOND;
	kv->server.gone_ns = params->gone_ns ? params->gone_ns : 5 * SECOND;
	kv->server.restart_ns = params->gone_ns ? params->gone_ns : XSEG_RESTART_NS;
	rc = open_store(kv, params, err);
	if (rc)
		xs_kv_put(kv);
	else
		*store = kv;
	return rc;
}

void xs_kv_put(struct xseg_kv *kv)
{
	/* acq_rel: the thread that frees it sees what the others did with it */
	if (atomic_fetch_sub_explicit(&kv->refs, 1, memory_order_acq_rel) != 1)
		return;
	xs_server_detach(&kv->server);
	free(kv);
}

void xseg_kv_close(struct xseg_kv *kv)
{
	if (kv)
		xs_kv_put(kv);
}

int xseg_kv_look(struct xseg_kv *kv, struct xseg_error *err)
{
	return xs_server_look(&kv->server, err);
}

int xseg_kv_is_large(const struct xseg_kv *kv, uint32_t key_bytes, uint64_t value_bytes)
{
	return kv_is_large(key_bytes, value_bytes) ||
	       KV_RECORD_HEADER + key_bytes + value_bytes > kv->record_max;
}

int xseg_kv_get_info(struct xseg_kv *kv, struct xseg_kv_info *info)
{
	struct kv_info told;
	uint64_t known = 0;
	int rc;

	if (xs_is_forked(kv->server.seg))
		return -ENOTCONN;
	if (!xseg_is_whole(kv->server.seg))
		return -EPROTO;
	if (!xs_server_is_there(&kv->server, &known))
		return -ENOTCONN;
	rc = ask_in_time(kv, &told, NULL);
	if (rc)
		return rc;
	if (told.id != kv->id || memcmp(told.uuid, kv->uuid, sizeof(kv->uuid)) != 0)
		return -ESTALE;
	*info = (struct xseg_kv_info){ .id = told.id, .time_s = told.time, .keys = told.keys,
		.keys_max = told.keys_max, .live_bytes = told.live_bytes,
		.log_bytes = told.log_bytes, .size_bytes = told.size_bytes,
		.value_max_bytes = told.value_max, .piece_bytes = told.piece_bytes };
	memcpy(info->kvd, kv->server.name, sizeof(info->kvd));
	return 0;
}
