/* volume_use - see volume_use.h. */
#include "tools/xseg/text/volume_use.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/volume_users.h"
#include "tools/xseg/base/asker.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/text/since.h"
#include "tools/xseg/text/space_text.h"

#define POLL_NS (TOOL_SECOND / 100)

/* ---- the store --------------------------------------------------------------------------- */

static json_t *pair(uint64_t a, uint64_t b)
{
	json_t *j = json_array();

	json_array_append_new(j, json_integer((json_int_t)a));
	json_array_append_new(j, json_integer((json_int_t)b));
	return j;
}

static uint64_t pair_at(const json_t *j, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(j, i));
}

char *volume_use_count(struct asker *a, const struct tool *t, const struct xseg_peer_info *store,
	uint64_t wait_ns)
{
	uint64_t end_ns = tool_now_ns() + wait_ns;
	char counting[8], *answer;

	while ((answer = asker_ask(a, store, "usage"))) {
		if (!client_value(answer, "counting", counting, sizeof(counting)) ||
			!strcmp(counting, "no") || tool_now_ns() >= end_ns ||
			tool_out_of_time(t))
			break;
		tool_progress(t, "%s counts the bytes of its objects: %" PRIu64 "%%", store->name,
			client_number(answer, "percent"));
		tool_sleep_ns(POLL_NS);
		a->quick.deadline_ns = tool_now_ns() + ASKER_FIRST_NS;
	}
	tool_progress_end();
	return answer;
}

static void read_groups(char *text, json_t *used)
{
	char *line, *save = NULL, prefix[XSEG_TARGET_MAX];

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "prefix=", 7) &&
			client_value(line, "prefix", prefix, sizeof(prefix)))
			json_object_set_new(used, prefix,
				pair(client_number(line, "bytes"), client_number(line, "objects")));
}

/* All answers are of one count: another one that ends in between has it begun anew. */
static json_t *read_count(struct asker *a, const struct xseg_peer_info *store, uint64_t *age_ms)
{
	json_t *used = json_object();
	uint64_t count = 0, from = 0, next;
	char line[32], *answer;

	for (;;) {
		snprintf(line, sizeof(line), "usage %" PRIu64, from);
		answer = asker_ask(a, store, line);
		if (!answer || !client_number(answer, "count"))
			break;
		if (client_number(answer, "count") != count) {
			count = client_number(answer, "count");
			json_object_clear(used);
			if (from) {
				from = 0;
				continue;
			}
		}
		*age_ms = client_number(answer, "age_ms");
		next = client_number(answer, "next");
		read_groups(answer, used);
		if (next <= from)
			return used;
		from = next;
	}
	json_decref(used);
	return NULL;
}

static void load_used(struct asker *a, const struct tool *t, const struct xseg_peer_info *store,
	struct volume_use *u)
{
	char *answer = volume_use_count(a, t, store, VOLUME_USE_NS), error[128];

	if (answer && !client_number(answer, "count")) {
		if (client_line(answer, "error", error, sizeof(error)))
			snprintf(u->why, sizeof(u->why),
				"%s cannot count the bytes of its objects: %s; its log may say why",
				store->name, error);
		else
			snprintf(u->why, sizeof(u->why),
				"%s counts the bytes of its objects, %" PRIu64
				"%% until now; try again in a moment",
				store->name, client_number(answer, "percent"));
		return;
	}
	u->used = answer ? read_count(a, store, &u->age_ms) : NULL;
	if (!u->used)
		snprintf(u->why, sizeof(u->why),
			"%s does not answer, so the bytes of volumes are not known; 'xseg status' "
			"says more", store->name);
}

/* ---- caches ------------------------------------------------------------------------------ */

static void read_cached(char *text, json_t *cached, uint64_t *next)
{
	char *line, *save = NULL, id[24];
	json_t *have;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "next=", 5))
			*next = client_number(line, "next");
		if (!client_value(line, "id", id, sizeof(id)))
			continue;
		have = json_object_get(cached, id);
		json_object_set_new(cached, id,
			pair(pair_at(have, 0) + client_number(line, "used_bytes"),
				pair_at(have, 1) + client_number(line, "dirty_bytes")));
	}
}

/* Adds what one cache has. A cache that does not answer has nothing to show. */
static void load_cached(struct asker *a, const struct xseg_peer_info *cache, json_t *cached)
{
	uint64_t from, next = 0;
	char line[32], *answer;

	do {
		from = next;
		snprintf(line, sizeof(line), "volumes %" PRIu64, from);
		answer = asker_ask(a, cache, line);
		if (answer)
			read_cached(answer, cached, &next);
	} while (next > from);
}

/* ---- all --------------------------------------------------------------------------------- */

static void load(struct asker *a, const struct tool *t, const struct view_peers *peers,
	struct volume_use *u)
{
	const struct xseg_peer_info *p = view_peer_at(peers, u->volumed),
				    *store = space_store_below(peers, p);
	uint32_t hops;

	for (hops = 0; p && p != store && hops < peers->nr; hops++) {
		if (!strcmp(p->kind, "cached"))
			load_cached(a, p, u->cached);
		p = p->downstream == XSEG_NONE ? NULL : view_peer_at(peers, p->downstream);
	}
	if (store)
		load_used(a, t, store, u);
	else
		snprintf(u->why, sizeof(u->why),
			"no store is below, so the bytes of volumes are not known; 'xseg status' "
			"shows the routes");
}

void volume_use_load(const struct tool *t, struct xseg *seg, uint32_t volumed,
	struct volume_use *u)
{
	struct view_peers peers = { 0 };
	struct asker a;

	*u = (struct volume_use){ .volumed = volumed, .cached = json_object() };
	if (view_peers_load(seg, &peers))
		return;
	asker_init(&a, t);
	load(&a, t, &peers, u);
	asker_fini(&a);
	view_peers_fini(&peers);
}

void volume_use_free(struct volume_use *u)
{
	json_decref(u->used);
	json_decref(u->cached);
	u->used = u->cached = NULL;
}

static json_t *users_json(struct xseg *seg, uint32_t volumed, uint32_t id)
{
	struct volume_user user[VOLUME_USE_USERS];
	uint32_t nr = volume_users_get(seg, volumed, id, user, VOLUME_USE_USERS), i;
	json_t *array = json_array(), *j;

	for (i = 0; i < nr && i < VOLUME_USE_USERS; i++) {
		j = json_object();
		out_set_text(j, "program", user[i].program);
		out_set_int(j, "pid", user[i].pid);
		out_set_text(j, "export", *user[i].export ? user[i].export : NULL);
		out_set_int(j, "queues", user[i].clients);
		out_set_int(j, "clients", user[i].clients);	/* its older name */
		out_set_int(j, "since_s", user[i].since_s);
		json_array_append_new(array, j);
	}
	return array;
}

void volume_use_put(const struct volume_use *u, struct xseg *seg, json_t *volume, uint32_t id,
	const char *prefix)
{
	const json_t *used = u->used ? json_object_get(u->used, prefix) : NULL, *cached;
	char key[16];

	if (u->used) {
		out_set_int(volume, "used_bytes", pair_at(used, 0));
		out_set_int(volume, "used_objects", pair_at(used, 1));
		out_set_int(volume, "used_age_ms", u->age_ms);
	} else {
		json_object_set_new(volume, "used_bytes", json_null());
		json_object_set_new(volume, "used_objects", json_null());
		json_object_set_new(volume, "used_age_ms", json_null());
	}
	snprintf(key, sizeof(key), "%" PRIu32, id);
	cached = json_object_get(u->cached, key);
	out_set_int(volume, "cached_bytes", pair_at(cached, 0));
	out_set_int(volume, "dirty_bytes", pair_at(cached, 1));
	json_object_set_new(volume, "open_by", users_json(seg, u->volumed, id));
}

/* ---- to people --------------------------------------------------------------------------- */

static void user_text(const json_t *user, char *text, size_t size)
{
	const char *export = json_string_value(json_object_get(user, "export"));
	char since[SINCE_TEXT];

	snprintf(text, size, "%s%s (pid %" PRIu64 ") %s", export ? "export " : "",
		export ? export : out_text(user, "program"),
		out_int(user, "pid"),
		out_int(user, "since_s") ? since_text(out_int(user, "since_s"), since) : "");
}

static const char *size_or_dash(uint64_t bytes, char *buf)
{
	return bytes ? out_size(bytes, buf) : "-";
}

void volume_use_cells(const json_t *volume, struct volume_use_text *text)
{
	const json_t *users = json_object_get(volume, "open_by");
	size_t nr = json_array_size(users), len;
	char a[OUT_TEXT];

	snprintf(text->used, sizeof(text->used), "%s",
		json_is_integer(json_object_get(volume, "used_bytes"))
			? out_size(out_int(volume, "used_bytes"), a)
			: "?");
	snprintf(text->cached, sizeof(text->cached), "%s",
		size_or_dash(out_int(volume, "cached_bytes"), a));
	snprintf(text->dirty, sizeof(text->dirty), "%s",
		size_or_dash(out_int(volume, "dirty_bytes"), a));
	snprintf(text->open_by, sizeof(text->open_by), "-");
	if (nr)
		user_text(json_array_get(users, 0), text->open_by, sizeof(text->open_by));
	len = strlen(text->open_by);
	if (nr > 1)
		snprintf(text->open_by + len, sizeof(text->open_by) - len, ", %zu more", nr - 1);
}

void volume_use_print(const json_t *volume)
{
	json_t *users = json_object_get(volume, "open_by"), *user;
	char a[OUT_TEXT], b[OUT_TEXT], text[256];
	size_t i;

	if (json_is_integer(json_object_get(volume, "used_bytes")))
		printf("used     %s in the store, in %" PRIu64 " object%s; counted %s ago\n",
			out_bytes(out_int(volume, "used_bytes"), a),
			out_int(volume, "used_objects"),
			out_s(out_int(volume, "used_objects")),
			out_time(out_int(volume, "used_age_ms") * 1000000, b));
	else
		printf("used     not known\n");
	printf("cached   %s, of which %s are dirty\n",
		out_bytes(out_int(volume, "cached_bytes"), a),
		out_bytes(out_int(volume, "dirty_bytes"), b));
	json_array_foreach(users, i, user) {
		user_text(user, text, sizeof(text));
		printf("%-9s%s\n", i ? "" : "open by", text);
	}
	if (!json_array_size(users))
		printf("open by  nobody\n");
}
