/* space_text - see space_text.h. */
#include "tools/xseg/text/space_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/dirty.h"
#include "peers/common/say/space.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/text/since.h"

#define WARNING_MAX (PATH_MAX + 512)
#define OLD_MS	    10000			/* of a count: then its age is told */

/* ---- which ------------------------------------------------------------------------------- */

bool space_is_store(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "filed") || !strcmp(p->kind, "sosd") || !strcmp(p->kind, "memd");
}

const struct xseg_peer_info *space_store_below(
	const struct view_peers *peers, const struct xseg_peer_info *p)
{
	for (uint32_t hops = 0; p && hops < peers->nr; hops++) {
		if (space_is_store(p))
			return p;
		p = p->downstream == XSEG_NONE ? NULL : view_peer_at(peers, p->downstream);
	}
	return NULL;
}

/* ---- to JSON ----------------------------------------------------------------------------- */

/* A number of a peer's answer; null where it has none, or 0 says that it is not known. */
static void put_known(json_t *j, const char *key, const char *answer, const char *name)
{
	uint64_t n = answer ? client_number(answer, name) : 0;

	json_object_set_new(j, key, n ? json_integer((json_int_t)n) : json_null());
}

/* The same of a number that may be 0 where `whole` is known. */
static void put_part(json_t *j, const char *key, const char *answer, const char *name,
	const char *whole)
{
	bool known = answer && client_number(answer, whole);

	json_object_set_new(j, key,
		known ? json_integer((json_int_t)client_number(answer, name)) : json_null());
}

static json_t *failing_json(const char *answer)
{
	char op[32], object[XSEG_TARGET_MAX], error[128];
	json_t *j;

	if (!answer || !client_number(answer, "failed") ||
		!client_value(answer, "failed_op", op, sizeof(op)) ||
		!client_line(answer, "failed_object", object, sizeof(object)) ||
		!client_line(answer, "error", error, sizeof(error)))
		return json_null();
	j = json_object();
	out_set_int(j, "ms", client_number(answer, "failing_ms"));
	out_set_int(j, "requests", client_number(answer, "failed"));
	out_set_text(j, "op", op);
	out_set_text(j, "object", object);
	out_set_text(j, "error", error);
	return j;
}

/* Of all peers that send to it, by whatever way: what they still have to write there. */
static uint64_t dirty_above(const struct view_peers *peers, const struct xseg_peer_info *store)
{
	const struct xseg_peer_info *p;
	uint64_t sum = 0, bytes;

	for (p = peers->info; p < peers->info + peers->nr; p++) {
		if (p == store || view_peer_is_client(p) || space_store_below(peers, p) != store)
			continue;
		bytes = dirty_bytes_of(peers->seg, p->index);
		sum += bytes == UINT64_MAX ? 0 : bytes;
	}
	return sum;
}

json_t *space_json(const struct view_peers *peers, const struct xseg_peer_info *p,
	const char *status, const char *usage)
{
	char word[PATH_MAX];
	json_t *j = json_object();

	out_set_text(j, "name", p->name);
	out_set_text(j, "kind", p->kind);
	out_set_text(j, "dir",
		status && client_line(status, "dir", word, sizeof(word)) ? word : NULL);
	out_set_bool(j, "dir_removed", status &&
		client_value(status, "dir_removed", word, sizeof(word)) && !strcmp(word, "yes"));
	put_known(j, "size_bytes", status, "capacity_bytes");
	put_part(j, "free_bytes", status, "free_bytes", "capacity_bytes");
	put_known(j, "files", status, "files");
	put_part(j, "free_files", status, "free_files", "files");
	json_object_set_new(j, "failing", failing_json(status));
	put_part(j, "used_bytes", usage, "bytes", "count");
	put_part(j, "used_age_ms", usage, "age_ms", "count");
	json_object_set_new(j, "volumes_bytes", json_null());
	out_set_int(j, "dirty_bytes", dirty_above(peers, p));
	return j;
}

void space_add_volumes(json_t *store, uint64_t bytes)
{
	out_set_int(store, "volumes_bytes", out_int(store, "volumes_bytes") + bytes);
}

/* ---- warnings ---------------------------------------------------------------------------- */

static void warn(json_t *warnings, const char *kind, const char *of, const char *text)
{
	json_t *j = json_object();
	char line[WARNING_MAX + XSEG_NAME_MAX];

	out_set_text(j, "kind", kind);
	out_set_text(j, "of", of);
	out_set_text(j, "text", tool_hints(line, sizeof(line), text));
	json_array_append_new(warnings, j);
}

/* What makes room: in its directory, in its cluster, or of volumes. */
static void remedy(const json_t *store, char text[PATH_MAX + 64])
{
	if (json_is_string(json_object_get(store, "dir")))
		snprintf(text, PATH_MAX + 64, "make room in %s, or remove volumes",
			out_text(store, "dir"));
	else if (!strcmp(out_text(store, "kind"), "sosd"))
		snprintf(text, PATH_MAX + 64,
			"'ceph df' shows the pools that take it; remove volumes");
	else
		snprintf(text, PATH_MAX + 64, "remove volumes");
}

static void warn_space(const json_t *store, json_t *warnings)
{
	uint64_t size = out_int(store, "size_bytes"), left = out_int(store, "free_bytes");
	uint64_t dirty = out_int(store, "dirty_bytes");
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT], what[PATH_MAX + 64], text[WARNING_MAX];

	remedy(store, what);
	if (space_is_low(size, left)) {
		snprintf(text, sizeof(text), "%s of %s are free (%s); %s", out_bytes(left, a),
			out_size(size, b), out_percent(left, size, c), what);
		warn(warnings, "low_space", out_text(store, "name"), text);
	}
	if (dirty > left) {
		snprintf(text, sizeof(text),
			"%s of %s are free, and %s of dirty data are still to be written there; %s",
			out_bytes(left, a), out_size(size, b), out_size(dirty, c), what);
		warn(warnings, "dirty_exceeds_free", out_text(store, "name"), text);
	}
}

/* Names the volume, for people know that; beside it the object, as the log does. */
static void warn_fails(const json_t *store, const json_t *failing, json_t *warnings)
{
	bool owned = json_is_string(json_object_get(failing, "volume"));
	uint64_t nr = out_int(failing, "requests");
	char text[WARNING_MAX], since[SINCE_TEXT];

	snprintf(text, sizeof(text),
		"%s %s: %" PRIu64 " request%s failed, the last a %s of %s%s%s%s; its log says "
		"more, and this line goes 10s after the last failure",
		out_text(failing, "error"), since_ago_text(out_int(failing, "ms"), since), nr,
		out_s(nr), out_text(failing, "op"), owned ? "volume " : "object ",
		out_text(failing, owned ? "volume" : "object"), owned ? ", object " : "",
		owned ? out_text(failing, "object") : "");
	warn(warnings, "store_fails", out_text(store, "name"), text);
}

void space_warn(const json_t *store, json_t *warnings)
{
	const json_t *failing = json_object_get(store, "failing");
	uint64_t files = out_int(store, "files"), free_files = out_int(store, "free_files");
	char text[WARNING_MAX], what[PATH_MAX + 64];

	if (json_is_true(json_object_get(store, "dir_removed"))) {
		snprintf(text, sizeof(text),
			"%s was removed while it is in use: nothing can be written to it any "
			"more, and only the caches still have data; copy volumes with 'xseg volume "
			"export'", out_text(store, "dir"));
		warn(warnings, "dir_removed", out_text(store, "name"), text);
	} else if (json_is_integer(json_object_get(store, "free_bytes"))) {
		warn_space(store, warnings);
	}
	if (space_files_are_low(files, free_files)) {
		remedy(store, what);
		snprintf(text, sizeof(text),
			"%" PRIu64 " of the %" PRIu64
			" files that its file system can have are free; %s",
			free_files, files, what);
		warn(warnings, "low_files", out_text(store, "name"), text);
	}
	if (json_is_object(failing))
		warn_fails(store, failing, warnings);
}

/* ---- to people --------------------------------------------------------------------------- */

void space_print(const json_t *store)
{
	const char *separator = "\n            ";
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];

	if (json_is_integer(json_object_get(store, "size_bytes"))) {
		printf("%s of %s free (%s)", out_size(out_int(store, "free_bytes"), a),
			out_size(out_int(store, "size_bytes"), b),
			out_percent(out_int(store, "free_bytes"), out_int(store, "size_bytes"), c));
		if (!strcmp(out_text(store, "kind"), "sosd"))
			printf(", before copies");
	} else {
		printf("its size is not known");
	}
	if (json_is_string(json_object_get(store, "dir")))
		printf(", in %s", out_text(store, "dir"));
	if (json_is_integer(json_object_get(store, "used_bytes"))) {
		printf("%sobjects take %s", separator, out_size(out_int(store, "used_bytes"), a));
		if (out_int(store, "used_age_ms") > OLD_MS)
			printf(" (counted %s ago)",
				out_time(out_int(store, "used_age_ms") * 1000000, a));
		separator = ", ";
	}
	if (out_int(store, "volumes_bytes"))
		printf("%svolumes may take %s", separator,
			out_size(out_int(store, "volumes_bytes"), a));
	putchar('\n');
}

static bool is_of_kind(const json_t *warning, const char *kind)
{
	return !strcmp(out_text(warning, "kind"), kind);
}

/* Little is free, and another warning says that as well. */
static bool is_told(const json_t *warnings, const json_t *warning)
{
	json_t *w;
	size_t i;

	json_array_foreach(warnings, i, w)
		if (is_of_kind(w, "dirty_exceeds_free") &&
			!strcmp(out_text(w, "of"), out_text(warning, "of")))
			return is_of_kind(warning, "low_space");
	return false;
}

void space_warnings_print(const json_t *warnings)
{
	json_t *w;
	size_t i;

	json_array_foreach(warnings, i, w)
		if (!is_told(warnings, w))
			printf("WARNING     %s: %s\n", out_text(w, "of"), out_text(w, "text"));
}
