/* where - see where.h. */
#include "bench/xbench/plan/where.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/runtime/client_peer.h"
#include "peers/common/options/hex.h"
#include "peers/common/say/kv.h"

#define ASK_TIMEOUT_NS 10000000000ull
#define PREFIX	       "xbench:"
#define PREFIX_LEN     (sizeof(PREFIX) - 1)

int xb_client_open(struct xseg *seg, uint32_t nr, uint32_t nr_requests, struct xseg_peer **peer,
		   struct xseg_error *err)
{
	char name[XSEG_NAME_MAX];

	snprintf(name, sizeof(name), "xbench.%d.%u", (int)getpid(), nr);
	return client_peer_open(seg,
				&(struct xseg_peer_params){ .name = name,
							    .kind = "client",
							    .nr_ports = 1,
							    .nr_requests = nr_requests,
							    .leaves_reserve = true },
				peer, err);
}

/* ---- a volume ---------------------------------------------------------------------------- */

struct asking {
	struct xseg *seg;
	struct xseg_peer *peer;
	uint32_t *page;
};

static int asking_begin(struct asking *a, struct xseg *seg, struct xseg_error *err)
{
	int rc;

	a->seg = seg;
	a->page = calloc(xseg_pages_round(1), sizeof(*a->page));
	if (!a->page)
		return xseg_fail(err, -ENOMEM, "no memory");
	rc = xb_client_open(seg, 0, 1, &a->peer, err);
	if (rc)
		goto out_free;
	rc = xseg_pages_take(a->peer, 1, a->page);
	if (!rc)
		return 0;
	xseg_fail(err, rc,
		  "segment %s has less than the 2M of memory left that a question to a peer needs; "
		  "see 'xseg info'",
		  xseg_name(seg));
	xseg_peer_close(a->peer, XSEG_CLOSE_FREE_ARENA);
out_free:
	free(a->page);
	return rc;
}

static void asking_end(struct asking *a)
{
	xseg_peer_close(a->peer, XSEG_CLOSE_FREE_ARENA);
	free(a->page);
}

static bool read_number(const char *text, uint64_t *out)
{
	char *end;

	if (!text)
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && end != text && !*end;
}

/* A volume that is being cut has its new size, and serves. */
static int check_state(const char *state, const char *volume, struct xseg_error *err)
{
	if (!strcmp(state, "ok") || !strcmp(state, "shrinking"))
		return 0;
	if (!strcmp(state, "removing"))
		return xseg_fail(err, -ENOENT, "volume '%s' is being removed; use another", volume);
	return xseg_fail(err, -ENOENT,
			 "volume '%s' is in the state '%.32s', which this xbench does not know; is "
			 "its volumed of another build?",
			 volume, state);
}

/* The items of "volume info". */
static int read_volume(struct xb_where *w, char *text, const char *volume, struct xseg_error *err)
{
	char *cursor = text, *key, *value;
	uint64_t id = 0, number;
	int rc;

	while ((key = kv_next_word(&cursor, &value))) {
		rc = !strcmp(key, "state") && value ? check_state(value, volume, err) : 0;
		if (rc)
			return rc;
		if (!read_number(value, &number))
			continue;
		if (!strcmp(key, "id"))
			id = number;
		else if (!strcmp(key, "size_bytes"))
			w->total_bytes = number;
		else if (!strcmp(key, "object_size_bytes"))
			w->object_size = number;
	}
	w->volume = (uint32_t)id;
	w->identity = xb_mix(id);
	if (!id || id > UINT32_MAX || !w->total_bytes || !w->object_size)
		return xseg_fail(err, -EPROTO,
				 "%s gave no usable answer about volume '%s'; is it of another "
				 "build?",
				 w->peer_name, volume);
	return 0;
}

static int ask_volume(struct asking *a, struct xb_where *w, const struct xb_options *o,
		      struct xseg_error *err)
{
	bool sooner = o->io_timeout && o->io_timeout < ASK_TIMEOUT_NS;
	const char *volume = o->volume;
	char text[XSEG_PAGE_SIZE];
	int64_t len;

	snprintf(text, sizeof(text), "volume info %s", volume);
	len = xseg_admin_call(xseg_peer_port(a->peer, 0), w->peer, text, a->page, 1,
			      sooner ? o->io_timeout : ASK_TIMEOUT_NS);
	if (len == -ETIMEDOUT)
		return xseg_fail(err, -ETIMEDOUT,
				 "%s did not answer within %s about volume '%s'; see 'xseg peer "
				 "list'",
				 w->peer_name, sooner ? "io_timeout" : "10s", volume);
	memcpy(text, xseg_page(a->seg, a->page[0]), sizeof(text) - 1);
	text[len >= 0 && len < (int64_t)sizeof(text) ? (size_t)len : sizeof(text) - 1] = '\0';
	text[strcspn(text, len < 0 ? "\n" : "")] = '\0';
	if (len < 0)
		return xseg_fail(err, (int)len, "%s: %.200s", w->peer_name,
				 *text ? text : strerror((int)-len));
	return read_volume(w, text, volume, err);
}

static int look_at_volumed(struct xb_where *w, struct xseg_peer_info *info, uint32_t peer,
			   const struct xb_options *o, uint64_t settle_ns, struct xseg_error *err)
{
	struct asking a = { 0 };
	int rc;

	if (!xseg_peer_get_settled(w->seg, peer, settle_ns, info) ||
		xseg_peer_is_gone(w->seg, info))
		return xseg_fail(err, -ENOENT, "%s is %s; start it with 'xseg peer start %s'",
				 info->name,
				 info->state == XSEG_PEER_DEAD ? "dead" : "stopped", info->name);
	w->peer = peer;
	memcpy(w->peer_name, info->name, sizeof(w->peer_name));
	rc = asking_begin(&a, w->seg, err);
	if (rc)
		return rc;
	rc = ask_volume(&a, w, o, err);
	asking_end(&a);
	return rc;
}

/* Finds the first volumed that has the volume. If none has it, and not several serve, err is the
 * answer of the one that serves, or else of the first. */
static int find_volume_within(struct xb_where *w, const struct xb_options *o, uint64_t settle_ns,
			      struct xseg_error *err)
{
	struct xseg_error why = { "" };
	struct xseg_peer_info info;
	uint32_t i, nr = xseg_nr_peers(w->seg), asked = 0, without = 0;
	bool serves;
	int rc = xseg_fail(err, -ENOENT,
			   "segment %s has no volumed; start one, or use --target=PEER",
			   xseg_name(w->seg));

	for (i = 0; i < nr && rc == -ENOENT; i++) {
		if (!xseg_peer_get_info(w->seg, i, &info) || strcmp(info.kind, "volumed"))
			continue;
		rc = look_at_volumed(w, &info, i, o, settle_ns, &why);
		serves = !xseg_peer_is_gone(w->seg, &info);
		if (!asked++ || rc != -ENOENT || (serves && !without))
			*err = why;
		without += serves;
	}
	if (rc == -ENOENT && without > 1)
		return xseg_fail(err, rc,
				 "none of the %u volumeds of segment %s has a volume '%s'; 'xseg "
				 "volume list --volumed NAME' shows the volumes",
				 without, xseg_name(w->seg), o->volume);
	return rc;
}

/* One that serves is not to wait for another one that is stopped. */
static int find_volume(struct xb_where *w, const struct xb_options *o, struct xseg_error *err)
{
	int rc = find_volume_within(w, o, 0, err);

	return rc == -ENOENT ? find_volume_within(w, o, XSEG_RESTART_NS, err) : rc;
}

/* ---- objects ----------------------------------------------------------------------------- */

bool xb_where_is_taken(const struct xb_where *w, struct xseg_error *err)
{
	struct xseg_peer_info info;

	if (w->volume)
		return false;
	for (uint32_t i = 0; i < xseg_nr_peers(w->seg); i++) {
		if (!xseg_peer_get_info(w->seg, i, &info) || strcmp(info.kind, "cached") != 0 ||
			info.downstream != w->peer)
			continue;
		xseg_fail(err, -EBUSY,
			"target: %s serves only its cache, %s; send to that, or take it off the "
			"path with 'xseg unplug %s'",
			w->peer_name, info.name, info.name);
		return true;
	}
	return false;
}

/* The option to give in place of --target, if peers of that kind have no objects; else NULL. */
static const char *no_objects(const char *kind)
{
	if (!strcmp(kind, "kvd") || !strcmp(kind, "memcached"))
		return "give --kvd=NAME";
	if (!strcmp(kind, "volumed") || !strcmp(kind, "client") || !strcmp(kind, "supervisor"))
		return "give --volume=VOL";
	return NULL;
}

static int find_peer(struct xb_where *w, const struct xb_options *o, struct xseg_error *err)
{
	struct xseg_peer_info info;
	const char *other = NULL;

	w->peer = xseg_peer_find(w->seg, o->target);
	if (w->peer == XSEG_NONE)
		return xseg_fail(err, -ENOENT,
				 "segment %s has no peer '%s'; 'xseg peer list' shows the peers",
				 xseg_name(w->seg), o->target);
	memcpy(w->peer_name, o->target, sizeof(w->peer_name));
	if (xseg_peer_get_info(w->seg, w->peer, &info))
		other = no_objects(info.kind);
	if (other)
		return xseg_fail(err, -EINVAL,
			"target: '%s' is of kind %s, which serves no objects; name a cache or a "
			"store, or %s",
			o->target, info.kind, other);
	if (xb_where_is_taken(w, err))
		return -EBUSY;
	w->object_size = w->boundary = o->object_size;
	w->identity = xb_mix(~o->object_size);
	if (__builtin_mul_overflow(o->objects, o->object_size, &w->total_bytes) ||
	    w->total_bytes > INT64_MAX)
		return xseg_fail(err, -EINVAL,
				 "objects: %" PRIu64 " of %" PRIu64
				 " bytes are more than there are numbers for",
				 o->objects, o->object_size);
	return 0;
}

/* -1: there is none. */
static int shift_of(uint64_t size)
{
	return size && !(size & (size - 1)) ? __builtin_ctzll(size) : -1;
}

int xb_where_find(struct xb_where *w, struct xseg *seg, struct xb_options *o,
		  struct xseg_error *err)
{
	int rc;

	memset(w, 0, sizeof(*w));
	w->seg = seg;
	rc = *o->volume ? find_volume(w, o, err) : find_peer(w, o, err);
	w->object_shift = shift_of(w->object_size);
	return rc ? rc : xb_options_fit(o, w->total_bytes, err);
}

size_t xb_where_object_name(uint64_t object, char name[XSEG_TARGET_MAX])
{
	memcpy(name, PREFIX, PREFIX_LEN);
	hex_digits(name + PREFIX_LEN, object);
	name[PREFIX_LEN + HEX_DIGITS] = '\0';
	return PREFIX_LEN + HEX_DIGITS;
}

/* ---- addressing -------------------------------------------------------------------------- */

#define NAME_BYTES (PREFIX_LEN + HEX_DIGITS + 1)
_Static_assert(NAME_BYTES <= sizeof(((struct xb_place *)0)->name), "all names are of one size");

static void place_enter(const struct xb_where *w, struct xb_place *place, uint64_t object)
{
	const uint64_t key[2] = { w->volume, object };

	place->object = object + 1;
	if (w->volume) {
		place->hash = xseg_hash((const char *)key, sizeof(key));
	} else {
		char name[XSEG_TARGET_MAX];
		size_t len = xb_where_object_name(object, name);

		place->hash = xseg_hash(name, len);
		memcpy(place->name, name, NAME_BYTES);
	}
}

void xb_where_address(const struct xb_where *w, struct xb_place *places, struct xreq *r,
		      uint64_t offset)
{
	uint64_t object = w->object_shift < 0 ? offset / w->object_size
					      : offset >> w->object_shift;
	struct xb_place *place = &places[object % XB_PLACES];

	if (object + 1 != place->object)
		place_enter(w, place, object);
	r->volume = w->volume;
	r->hash = place->hash;
	if (w->volume) {
		r->offset = offset;
	} else {
		r->offset = r->obj_offset = offset - object * w->object_size;
		memcpy(r->target, place->name, NAME_BYTES);
	}
}

/* ---- who is to blame --------------------------------------------------------------------- */

void xb_where_health(const struct xb_where *w, char *out, size_t size)
{
	static const char *const words[] = {
		[XSEG_PEER_FREE] = "gone",  [XSEG_PEER_OPENING] = "getting ready",
		[XSEG_PEER_LIVE] = "alive", [XSEG_PEER_STOPPED] = "stopped",
		[XSEG_PEER_DEAD] = "dead",
	};
	uint32_t at = w->peer, hops = xseg_nr_peers(w->seg);
	struct xseg_peer_info info;

	for (; at != XSEG_NONE && hops; hops--, at = info.downstream) {
		if (!xseg_peer_get_info(w->seg, at, &info)) {
			snprintf(out, size, "a peer below %s is gone", w->peer_name);
			return;
		}
		if (info.state != XSEG_PEER_LIVE) {
			snprintf(out, size, "peer %s is %s", info.name, words[info.state]);
			return;
		}
	}
	snprintf(out, size, "peer %s and all below it are alive", w->peer_name);
}

bool xb_where_is_lost(const struct xb_where *w, struct xseg_error *err)
{
	struct xseg_peer_info info;

	if (!xseg_is_removed(w->seg) || (xseg_peer_get_info(w->seg, w->peer, &info) &&
						!xseg_peer_is_gone(w->seg, &info)))
		return false;
	xseg_fail(err, 0,
		"segment '%s' was removed, as 'xseg down' does; start its stack with 'xseg -s %s "
		"up STACK.conf', and run xbench again",
		xseg_name(w->seg), xseg_name(w->seg));
	return true;
}
