/* volume_cmds - volume create, list, info, resize, remove, import, export, flush: asked of volumed.
 *
 * Contract: see commands.h. A volume's line is "slot= name= id= size_bytes= object_size_bytes=
 * state= objects_left="; "volume info" has the same, one item a line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/volume_users.h"
#include "tools/xseg/text/cache_volume.h"
#include "tools/xseg/text/space_text.h"
#include "tools/xseg/text/volume_use.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/text/volume_ask.h"
#include "tools/xseg/flow/damage.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/flow/volume_io.h"

#define POLL_NS	   (TOOL_SECOND / 20)
#define STALL_NS   (5 * TOOL_SECOND)
#define USERS_TEXT 512

/* ---- options ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct volume_opts, field)
/* clang-format off */
#define OPT_VOLUMED \
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX, \
	  .arg = "NAME", .check = cli_check_name, \
	  .help = "the volume's volumed, if there are several" }
#define OPT_VOLUME_SIZE \
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size_bytes), .min = 512, \
	  .flags = OPT_REQUIRED, \
	  .help = "bytes of the volume, a multiple of 512" }
/* clang-format on */

const struct opt volume_table[] = {
	OPT_VOLUMED,
	{ 0 },
};
const struct opt volume_create_table[] = {
	OPT_VOLUME_SIZE,
	OPT_VOLUMED,
	{ 0 },
};
const struct opt volume_resize_table[] = {
	OPT_VOLUME_SIZE,
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "also make it smaller, and lose the data beyond" },
	OPT_VOLUMED,
	{ 0 },
};
const struct opt volume_remove_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if it is in use; its clients get errors from then on" },
	OPT_VOLUMED,
	{ 0 },
};
const struct opt volume_import_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if the volume is in use; its data is overwritten" },
	{ .name = "create", .kind = OPT_BOOL, .off = AT(create),
	  .help = "makes the volume, of the size that the image has" },
	{ .name = "raw", .kind = OPT_BOOL, .off = AT(raw),
	  .help = "take the image as raw, also if it looks like another format" },
	OPT_VOLUMED,
	{ 0 },
};
const struct opt volume_export_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "replace a file, or overwrite a device" },
	OPT_VOLUMED,
	{ 0 },
};
#undef AT

int volume_info(struct tool *t, const void *opts, int argc, char **argv)
{
	struct volume v;
	struct client *c;
	uint32_t peer;
	int rc;

	(void)argc;
	rc = volume_open_volumed(
		t, ((const struct volume_opts *)opts)->volumed, argv[0], &c, &peer);
	if (rc)
		return rc;
	rc = volume_ask(c, peer, "volume info", argv[0], &v);
	if (!rc)
		rc = volume_show(t, c, peer, &v);
	client_close(c);
	return rc;
}

/* ---- list -------------------------------------------------------------------------------- */

static void list_lines(struct client *c, json_t *array)
{
	char *line, *save = NULL;
	struct volume v;

	for (line = strtok_r(c->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "slot=", 5))
			continue;
		volume_read(line, &v);
		json_array_append_new(array, volume_json(&v));
	}
}

/* All volumes, as many in one answer as fit. */
static int list_all(struct client *c, uint32_t peer, json_t *array)
{
	uint64_t slot = 0, next;
	bool more = true;
	int64_t rc;

	while (more) {
		rc = client_ask(c, peer, "volume list %" PRIu64, slot);
		if (rc < 0)
			return client_fail(c, rc, NULL, "volume list");
		next = client_number(c->text, "next");
		more = next > slot;
		slot = next;
		list_lines(c, array);
	}
	return TOOL_DONE;
}

/* Of several of one name all but one are being removed; the newest comes first. */
static int by_name(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int order = strcmp(out_text(x, "name"), out_text(y, "name"));
	uint64_t i = out_int(x, "identity"), k = out_int(y, "identity");

	return order ? order : (i < k) - (i > k);
}

/* The same volumes in a new array. */
static json_t *sorted(json_t *array)
{
	size_t nr = json_array_size(array), i;
	json_t *other = json_array(), **all = calloc(nr + 1, sizeof(*all));

	for (i = 0; all && i < nr; i++)
		all[i] = json_array_get(array, i);
	if (all)
		qsort(all, nr, sizeof(*all), by_name);
	for (i = 0; i < nr; i++)
		json_array_append(other, all ? all[i] : json_array_get(array, i));
	free(all);
	return other;
}

static void list_uses(struct client *c, uint32_t peer, const json_t *array)
{
	struct volume_use use;
	json_t *v;
	size_t i;

	volume_use_load(c->t, c->seg, peer, &use);
	json_array_foreach(array, i, v)
		volume_use_put(&use, c->seg, v, (uint32_t)out_int(v, "id"), out_text(v, "prefix"));
	if (use.why[0] && json_array_size(array))
		tool_note(c->t, "volume list: %s", use.why);
	volume_use_free(&use);
}

static struct out_table *list_table(const json_t *array)
{
	struct out_table *table = out_table_create(
		"NAME\t>ID\t>SIZE\t>USED\t>CACHED\t>DIRTY\tSTATE\tOPEN BY");
	struct volume_use_text use;
	char size[OUT_TEXT];
	json_t *v;
	size_t i;

	json_array_foreach(array, i, v) {
		volume_use_cells(v, &use);
		out_table_row(table, "%s\t%" PRIu64 "\t%s\t%s\t%s\t%s\t%s\t%s",
			out_text(v, "name"), out_int(v, "id"),
			out_size(out_int(v, "size_bytes"), size), use.used, use.cached, use.dirty,
			out_text(v, "state"), use.open_by);
	}
	return table;
}

/* Of a volume that is not listed nobody would learn. */
static void note_damage(struct client *c, uint32_t peer)
{
	struct damage d = { .lost = 0 };
	char text[DAMAGE_MAX];

	if (client_ask(c, peer, "status") < 0)
		return;
	damage_add(&d, c->text);
	if (d.reason[0])
		tool_note(c->t, "volume list: %s", damage_tell(&d, text));
}

static int show_list(struct tool *t, json_t *array)
{
	if (t->json)
		return out_json(json_incref(array));
	if (json_array_size(array))
		return out_table_print(list_table(array));
	tool_say(t, "no volumes; make one with 'xseg volume create VOL --size SIZE'");
	return TOOL_DONE;
}

int volume_list(struct tool *t, const void *opts, int argc, char **argv)
{
	json_t *array, *by_names;
	struct client *c;
	uint32_t peer;
	int rc;

	(void)argc;
	(void)argv;
	rc = volume_open_volumed(t, ((const struct volume_opts *)opts)->volumed, NULL, &c, &peer);
	if (rc)
		return rc;
	array = json_array();
	rc = list_all(c, peer, array);
	by_names = sorted(array);
	if (!rc) {
		note_damage(c, peer);
		list_uses(c, peer, by_names);
	}
	client_close(c);
	if (!rc)
		rc = show_list(t, by_names);
	json_decref(array);
	json_decref(by_names);
	return rc;
}

/* A volume takes room only as it is written, so volumes that are larger than their store are
 * allowed. */
static void note_capacity(struct client *c, uint32_t peer, const char *what, const char *name,
			  uint64_t size_bytes)
{
	const struct xseg_peer_info *store;
	struct view_peers peers = { 0 };
	uint64_t capacity_bytes = 0, all_bytes = 0;
	char size[OUT_TEXT], capacity[OUT_TEXT];

	if (view_peers_load(c->seg, &peers))
		return;
	store = space_store_below(&peers, view_peer_at(&peers, peer));
	if (store && client_ask(c, peer, "status") >= 0)
		all_bytes = client_number(c->text, "volumes_bytes");
	if (all_bytes && client_ask(c, store->index, "status") >= 0)
		capacity_bytes = client_number(c->text, "capacity_bytes");
	out_size(capacity_bytes, capacity);
	if (capacity_bytes && size_bytes > capacity_bytes)
		tool_note(c->t,
			"volume %s %s: its %s are more than the %s of its store, %s; watch the "
			"store, or make the volume smaller with 'xseg volume resize'",
			what, name, out_size(size_bytes, size), capacity, store->name);
	else if (capacity_bytes && all_bytes > capacity_bytes)
		tool_note(c->t,
			"volume %s %s: all volumes together may take %s, more than the %s of their "
			"store, %s; watch its room with 'xseg status'",
			what, name, out_size(all_bytes, size), capacity, store->name);
	view_peers_fini(&peers);
}

/* ---- create, resize, remove -------------------------------------------------------------- */

int volume_create(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct volume_opts *o = opts;
	struct volume v;
	struct client *c;
	uint32_t peer;
	int64_t rc;
	int code;

	(void)argc;
	code = volume_open_volumed(t, o->volumed, argv[0], &c, &peer);
	if (code)
		return code;
	rc = client_tell(c, peer, "volume create %s size=%" PRIu64, argv[0], o->size_bytes);
	code = rc < 0 ? volume_fail(c, rc, "volume create", argv[0]) : TOOL_DONE;
	if (!code && t->json)
		code = volume_ask(c, peer, "volume create", argv[0], &v);
	if (!code)
		note_capacity(c, peer, "create", argv[0], o->size_bytes);
	client_close(c);
	if (code)
		return code;
	tool_say(t, "volume %s is made", argv[0]);
	return t->json ? out_json(volume_json(&v)) : TOOL_DONE;
}

static int resize(struct tool *t, struct client *c, uint32_t peer, const struct volume_opts *o,
		  const char *name)
{
	char from[OUT_TEXT], to[OUT_TEXT], users[USERS_TEXT];
	struct volume v;
	int64_t rc;
	int code;

	code = volume_ask(c, peer, "volume resize", name, &v);
	if (code)
		return code;
	/* a size that none may have is refused by volumed, with force or without */
	if (o->size_bytes < v.size_bytes && o->size_bytes % XSEG_SECTOR == 0 && !o->force) {
		volume_users(c->seg, peer, (uint32_t)v.id, users, sizeof(users));
		return tool_fail(
			TOOL_REFUSED,
			"volume resize %s: from %s to %s it would lose the data beyond%s%s; add "
			"--force to allow that",
			name, out_size(v.size_bytes, from), out_size(o->size_bytes, to),
			users[0] ? ", and is in use by" : "", users);
	}
	rc = client_tell(c, peer, "volume resize %s size=%" PRIu64, name, o->size_bytes);
	if (rc < 0)
		return volume_fail(c, rc, "volume resize", name);
	if (o->size_bytes > v.size_bytes)
		note_capacity(c, peer, "resize", name, o->size_bytes);
	tool_say(t, "volume %s has %s", name, out_size(o->size_bytes, to));
	code = t->json ? volume_ask(c, peer, "volume resize", name, &v) : TOOL_DONE;
	return code || !t->json ? code : out_json(volume_json(&v));
}

int volume_resize(struct tool *t, const void *opts, int argc, char **argv)
{
	struct client *c;
	uint32_t peer;
	int rc;

	(void)argc;
	rc = volume_open_volumed(
		t, ((const struct volume_opts *)opts)->volumed, argv[0], &c, &peer);
	if (rc)
		return rc;
	rc = resize(t, c, peer, opts, argv[0]);
	client_close(c);
	return rc;
}

/* `before` were left when it began. */
static void show_removing(
	struct tool *t, const struct volume *v, uint64_t before, uint64_t begun_ns)
{
	uint64_t gone = before > v->objects_left ? before - v->objects_left : 0;
	double ns = (double)(tool_now_ns() - begun_ns + 1);
	char left[OUT_TEXT], rate[OUT_TEXT], eta[OUT_TEXT];

	tool_progress(t, "removing %s: %s objects left, %s/s, ETA %s", v->name,
		out_count(v->objects_left, left),
		out_count((uint64_t)((double)gone * TOOL_SECOND / ns), rate),
		out_eta((uint64_t)ns, gone, v->objects_left, eta));
}

#define LEFT_TEXT 96

/* What a removal has to do yet, as far as is known. */
static const char *left_text(const struct volume *v, char text[LEFT_TEXT])
{
	if (!v->objects_left && v->waits_for_requests)
		snprintf(text, LEFT_TEXT, "and waits for %" PRIu64 " older request%s",
			v->waits_for_requests, out_s(v->waits_for_requests));
	else
		snprintf(text, LEFT_TEXT, "with %" PRIu64 " more to be deleted", v->objects_left);
	return text;
}

/* Until the objects of the volume of that id are deleted. Others may have its name by now. */
static int wait_removed(
	struct tool *t, struct client *c, uint32_t peer, const char *name, uint32_t id)
{
	uint64_t since = tool_now_ns(), before = 0;
	char left[LEFT_TEXT];
	bool noted = false;
	struct volume v;
	int64_t rc;

	for (;;) {
		rc = client_ask(c, peer, "volume info %s id=%" PRIu32, name, id);
		if (rc == -ENOENT)
			return TOOL_DONE;
		if (rc < 0)
			return volume_fail(c, rc, "volume remove", name);
		volume_read(c->text, &v);
		if (strcmp(v.state, "removing"))
			return TOOL_DONE;
		if (tool_out_of_time(t))
			return tool_later(
				"volume %s: its removal goes on, %s; "
				"'xseg volume info %s' shows how far it is",
				name, left_text(&v, left), name);
		if (!noted && tool_now_ns() - since > STALL_NS) {
			noted = true;
			tool_note(t,
				"volume remove %s: it still waits, %s; 'xseg volume info %s' "
				"shows how far it is",
				name, left_text(&v, left), name);
		}
		before = before ? before : v.objects_left;
		show_removing(t, &v, before, since);
		tool_sleep_ns(POLL_NS);
	}
}

static int remove_volume(struct tool *t, struct client *c, uint32_t peer, const char *name,
			 bool force)
{
	int64_t rc = client_tell(c, peer, "volume remove %s%s", name, force ? " force" : "");
	uint32_t id;

	if (rc < 0)
		return volume_fail(c, rc, "volume remove", name);
	id = (uint32_t)client_number(c->text, "id");
	cache_volume_forget(c, peer, id);
	return wait_removed(t, c, peer, name, id);
}

/* Whether volumed would remove it: so of several none is removed if one is not to be. */
static int check_remove(struct client *c, uint32_t peer, const char *name, bool force)
{
	char users[USERS_TEXT];
	struct volume v;
	int code = volume_check_name(name);

	if (!code)
		code = volume_ask(c, peer, "volume remove", name, &v);
	if (code || force || !strcmp(v.state, "removing"))
		return code;
	volume_users(c->seg, peer, (uint32_t)v.id, users, sizeof(users));
	if (!users[0])
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"volume remove %s: it is in use by%s; end them first, or add --force", name, users);
}

static int check_all(struct client *c, uint32_t peer, int argc, char **argv, bool force)
{
	int code = TOOL_DONE;

	for (int i = 0; i < argc && !code; i++) {
		code = check_remove(c, peer, argv[i], force);
		for (int k = 0; k < i && !code; k++)
			if (!strcmp(argv[i], argv[k]))
				code = tool_fail(TOOL_USAGE,
					"volume remove %s: it is named twice; name it once",
					argv[i]);
	}
	return code;
}

static json_t *removed_json(const char *name)
{
	json_t *j = json_object();

	out_set_text(j, "name", name);
	out_set_text(j, "state", "removed");
	return j;
}

/* All that can be, one after the other; returns the first code that is not TOOL_DONE. */
static int remove_all(struct tool *t, struct client *c, uint32_t peer, int argc, char **argv,
	bool force, json_t *removed)
{
	int code, first = TOOL_DONE;

	for (int i = 0; i < argc && first != TOOL_LATER; i++) {
		code = remove_volume(t, c, peer, argv[i], force);
		first = first ? first : code;
		if (code)
			continue;
		tool_say(t, "volume %s is removed", argv[i]);
		json_array_append_new(removed, removed_json(argv[i]));
	}
	return first;
}

int volume_remove(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct volume_opts *o = opts;
	json_t *removed = json_array();
	struct client *c;
	uint32_t peer;
	int code;

	code = volume_open_volumed(t, o->volumed, argv[0], &c, &peer);
	if (code)
		goto out_free;
	code = argc > 1 ? check_all(c, peer, argc, argv, o->force) : TOOL_DONE;
	if (!code)
		code = remove_all(t, c, peer, argc, argv, o->force, removed);
	client_close(c);
	if (t->json && argc > 1 && json_array_size(removed))
		out_json(json_incref(removed));
	else if (t->json && !code)
		code = out_state(argv[0], "removed");
out_free:
	json_decref(removed);
	return code;
}

/* ---- flush, import, export --------------------------------------------------------------- */

/* What I/O to a volume needs; closes the client when there is no such volume. */
static int open_volume(struct tool *t, const struct volume_opts *o, const char *what,
		       const char *name, struct volume_ref *ref)
{
	struct volume v;
	int rc = volume_open_volumed(t, o->volumed, name, &ref->c, &ref->peer);

	if (rc)
		return rc;
	rc = volume_ask(ref->c, ref->peer, what, name, &v);
	if (!rc && strcmp(v.state, "removing") == 0)
		rc = tool_fail(TOOL_REFUSED, "%s %s: the volume is being removed; use another",
			       what, name);
	if (rc) {
		client_close(ref->c);
		return rc;
	}
	ref->id = (uint32_t)v.id;
	ref->size_bytes = v.size_bytes;
	ref->name = name;
	return TOOL_DONE;
}

int volume_flush(struct tool *t, const void *opts, int argc, char **argv)
{
	struct volume_ref ref;
	int rc;

	(void)argc;
	rc = open_volume(t, opts, "volume flush", argv[0], &ref);
	if (rc)
		return rc;
	rc = client_flush(ref.c, ref.peer, ref.id, "volume flush", argv[0]);
	client_close(ref.c);
	if (rc)
		return rc;
	tool_say(t, "volume %s is on stable storage", argv[0]);
	return t->json ? out_state(argv[0], "flushed") : TOOL_DONE;
}

static int show_moved(struct tool *t, const char *volume, const char *how,
		      const struct volume_io_result *r)
{
	char all[OUT_TEXT], data[OUT_TEXT], time[OUT_TEXT];
	json_t *j;

	if (t->json) {
		j = json_object();
		out_set_text(j, "volume", volume);
		out_set_int(j, "bytes", r->bytes);
		out_set_int(j, "data_bytes", r->data_bytes);
		out_set_int(j, "elapsed_ns", r->elapsed_ns);
		return out_json(j);
	}
	tool_say(t, "%s %s: %s, of which %s are data, in %s", how, volume,
		out_bytes(r->bytes, all), out_size(r->data_bytes, data),
		out_time(r->elapsed_ns, time));
	return TOOL_DONE;
}

/* Of the image's size; what is wrong with the image comes first. */
static int create_for_image(
	struct tool *t, const struct volume_opts *o, const char *name, const char *file)
{
	struct client *c;
	uint64_t bytes;
	uint32_t peer;
	int64_t rc;
	int code = volume_check_name(name);

	if (!code)
		code = volume_io_image_size(name, file, o->raw, &bytes);
	if (!code)
		code = volume_open_volumed(t, o->volumed, name, &c, &peer);
	if (code)
		return code;
	rc = client_tell(c, peer, "volume create %s size=%" PRIu64, name, bytes);
	if (rc < 0)
		code = client_fail(c, rc,
			rc == -EEXIST ? "leave out --create to overwrite it" : NULL,
			"volume import %s", name);
	else
		note_capacity(c, peer, "import", name, bytes);
	client_close(c);
	return code;
}

/* What it was made for has failed: the command can be given again. */
static void drop_created(const struct volume_ref *ref)
{
	tool_clear_interrupt();
	if (client_tell(ref->c, ref->peer, "volume remove %s force", ref->name) < 0)
		tool_note(ref->c->t,
			"volume import %s: the volume holds a part of the image; remove it with "
			"'xseg volume remove %s'", ref->name, ref->name);
	else
		cache_volume_forget(ref->c, ref->peer, ref->id);
}

int volume_import(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct volume_opts *o = opts;
	struct volume_io_result result;
	struct volume_ref ref;
	int rc = o->create ? create_for_image(t, o, argv[0], argv[1]) : TOOL_DONE;

	(void)argc;
	if (!rc)
		rc = open_volume(t, o, "volume import", argv[0], &ref);
	if (rc)
		return rc;
	rc = volume_io_import(&ref, argv[1], o->force, o->raw, &result);
	if (rc && o->create)
		drop_created(&ref);
	client_close(ref.c);
	return rc ? rc : show_moved(t, argv[0], "imported into", &result);
}

int volume_export(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct volume_opts *o = opts;
	struct volume_io_result result;
	struct volume_ref ref;
	int rc = open_volume(t, o, "volume export", argv[0], &ref);

	(void)argc;
	if (rc)
		return rc;
	rc = volume_io_export(&ref, argv[1], o->force, &result);
	client_close(ref.c);
	if (rc || !strcmp(argv[1], "-"))
		return rc;
	return show_moved(t, argv[0], "exported", &result);
}
