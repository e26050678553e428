/* status_cmds - status: the segment, its supervisor, peers, chains, caches and pools on one page.
 *
 * Contract: see commands.h. Some figures only a peer can tell, such as the number of volumes. A
 * peer is asked for two seconds at most. After one was silent, each further peer is asked for half
 * a second at most. A figure is shown as unknown if its peer does not answer. So status never
 * hangs, and never fails because a peer does.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/words.h"
#include "tools/xseg/text/cache_text.h"
#include "tools/xseg/text/cache_volume.h"
#include "tools/xseg/base/asker.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/damage.h"
#include "tools/xseg/base/halted.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/text/export_text.h"
#include "tools/xseg/text/object_owner.h"
#include "tools/xseg/text/peer_text.h"
#include "tools/xseg/text/space_text.h"
#include "tools/xseg/text/volume_use.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/ready.h"
#include "tools/xseg/base/stopped.h"

#define LOAD_NS (TOOL_SECOND / 2)
#define LOOK_NS (TOOL_SECOND / 100)
#define HELD_NS (TOOL_SECOND / 5) /* no work has a lock for so long */
#define COUNT_NS (TOOL_SECOND / 2) /* for a store that counts the bytes of its objects */

/* ---- gathering --------------------------------------------------------------------------- */

static json_t *segment_json(struct xseg *seg)
{
	struct xseg_info info;
	json_t *j = json_object();

	xseg_get_info(seg, &info);
	out_set_text(j, "name", info.name);
	out_set_int(j, "memory_bytes", info.memory_bytes);
	out_set_int(j, "free_bytes", info.free_pages * XSEG_PAGE_SIZE);
	out_set_int(j, "total_bytes", info.total_bytes);
	out_set_int(j, "requests", info.nr_requests);
	out_set_int(j, "free_requests", info.free_requests);
	return j;
}

/* Its log is where it writes, whatever the environment of who looks would make of it. */
static json_t *supervisor_json(struct xseg *seg)
{
	struct xseg_peer_info info;
	json_t *j = json_object();
	bool alive = view_supervisor(seg, &info);
	char log[PATH_MAX];

	out_set_bool(j, "alive", alive);
	json_object_set_new(j, "pid", alive ? json_integer(info.pid) : json_null());
	out_set_bool(j, "stopping", alive && peer_word_stopping(&info));
	out_set_bool(j, "halted", alive && halted_is(seg, &info));
	out_set_text(j, "log",
		alive && !xseg_peer_pid_check(seg, &info) &&
				proc_errors_path(info.pid, log, sizeof(log))
			? log
			: NULL);
	return j;
}

/* Whether volumed answers, and has nothing to read any more, or cannot. */
static bool ask_volumed(struct client *c, const struct xseg_peer_info *p)
{
	uint64_t begun = tool_now_ns();
	char word[24];

	while (client_ask(c, p->index, "status") >= 0) {
		if (client_value(c->text, "error", word, sizeof(word)) ||
		    !client_value(c->text, "loading", word, sizeof(word)))
			return false;
		if (!strcmp(word, "no"))
			return true;
		/* one that has just begun has it in a moment */
		if (tool_now_ns() - begun > LOAD_NS || tool_out_of_time(c->t))
			return false;
		tool_sleep_ns(LOOK_NS);
	}
	return false;
}

/* How many volumes there are, and what is damaged, as volumed says. */
struct volumes {
	uint64_t nr, removing, bytes;
	struct damage damage;
};

/* False when it does not say, or has not read which there are. */
static bool count_volumes(struct asker *a, const struct xseg_peer_info *p, struct volumes *v)
{
	struct client *c = asker_client(a);

	if (!c || p->state != XSEG_PEER_LIVE || !ask_volumed(c, p))
		return false;
	v->nr += client_number(c->text, "volumes");
	v->removing += client_number(c->text, "removing");
	v->bytes = client_number(c->text, "volumes_bytes");
	damage_add(&v->damage, c->text);
	return true;
}

/* What the volumes of one volumed may take of its store, which may be none. */
static void add_size(json_t *j, const struct xseg_peer_info *store, uint64_t bytes)
{
	json_t *rooms = json_object_get(j, "space"), *room;
	size_t i;

	json_array_foreach(rooms, i, room)
		if (store && !strcmp(out_text(room, "name"), store->name))
			space_add_volumes(room, bytes);
}

/* Those of all volumeds; null when there is none, or one is not known: who that is. */
static void add_volumes(json_t *j, struct asker *a, const struct view_peers *peers)
{
	const struct xseg_peer_info *p = NULL, *unknown = NULL;
	bool any = view_peer_of_kind(peers, "volumed", NULL) != NULL, known;
	struct volumes v = { .nr = 0 };

	while (!unknown && (p = view_peer_of_kind(peers, "volumed", p)))
		if (count_volumes(a, p, &v))
			add_size(j, space_store_below(peers, p), v.bytes);
		else
			unknown = p;
	known = any && !unknown;
	json_object_set_new(j, "volumes", known ? json_integer((json_int_t)v.nr) : json_null());
	json_object_set_new(j, "volumes_being_removed",
		known ? json_integer((json_int_t)v.removing) : json_null());
	json_object_set_new(j, "damaged_records",
		known ? json_integer((json_int_t)v.damage.records) : json_null());
	json_object_set_new(j, "lost_volumes",
		known ? json_integer((json_int_t)v.damage.lost) : json_null());
	out_set_text(j, "catalogue_damage",
		known && v.damage.reason[0] ? v.damage.reason : NULL);
	out_set_text(j, "volumes_unknown_of", unknown ? unknown->name : NULL);
}

/* Locks that somebody has held since the first look, or that who stands still has. Those of work
 * that goes on are not seen twice. */
static json_t *locks_json(struct xseg *seg, struct xseg_lock_watch *watch, uint64_t begun_ns)
{
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED];
	uint64_t spent = tool_now_ns() - begun_ns;
	json_t *all = json_array(), *j;
	uint32_t nr, i;

	if (watch->nr && spent < HELD_NS)
		tool_sleep_ns(HELD_NS - spent);
	nr = xseg_lock_look(seg, watch, info);
	for (i = 0; i < nr; i++) {
		if (!info[i].halted && info[i].held_ns < HELD_NS)
			continue;
		j = json_object();
		out_set_text(j, "lock", info[i].lock);
		json_object_set_new(
			j, "pid", info[i].pid ? json_integer(info[i].pid) : json_null());
		out_set_text(j, "name", info[i].pid ? info[i].name : NULL);
		out_set_bool(j, "halted", info[i].halted);
		out_set_int(j, "held_ns", info[i].held_ns);
		json_array_append_new(all, j);
	}
	return all;
}

/* What is worth a line of a cache's whole status, which has its volumes, too: what it promises may
 * not be so for one of them. */
static json_t *cache_json(struct asker *a, struct xseg *seg, const struct xseg_peer_info *p)
{
	static const char *const keys[] = { "name",       "policy",      "state",   "memory_bytes",
					    "used_bytes", "dirty_bytes", "draining",
					    "peer_state", "answers",
					    "flush_errors", "load_errors", "store_full", "full",
					    "flushes_fail", "loads_fail", "volumes" };
	struct client *c = asker_client(a);
	json_t *all = NULL, *j = json_object();
	char promise[CACHE_PROMISE_MAX];
	size_t i;

	if (!c || p->state != XSEG_PEER_LIVE || cache_ask_status(c, p->index, p, &all) < 0)
		all = cache_text_from_stats(seg, p);
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(all, keys[i]))
			json_object_set(j, keys[i], json_object_get(all, keys[i]));
	if (json_is_string(json_object_get(j, "policy")))
		out_set_text(j, "promise", cache_text_promise_now(all, promise));
	json_decref(all);
	return j;
}

/* A pool of RADOS, as its sosd says; all but the name is null when that does not answer. */
static json_t *pool_json(const struct xseg_peer_info *p, const char *answer)
{
	static const char *const words[] = { "pool", "prefix", "owner" };
	static const char *const numbers[] = { "pending", "tried_again", "timeouts" };
	json_t *j = json_object();
	char word[128];
	size_t i;

	out_set_text(j, "name", p->name);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (answer && client_line(answer, words[i], word, sizeof(word)))
			out_set_text(j, words[i], word);
		else
			json_object_set_new(j, words[i], json_null());
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(
			j, numbers[i],
			answer ? json_integer((json_int_t)client_number(answer, numbers[i]))
			       : json_null());
	return j;
}

/* Files, as their filed says; all but the name is null when that does not answer. */
static json_t *files_json(const struct xseg_peer_info *p, const char *answer)
{
	json_t *j = json_object();
	char word[PATH_MAX];

	out_set_text(j, "name", p->name);
	out_set_text(j, "dir", answer && client_line(answer, "dir", word, sizeof(word)) ? word
											: NULL);
	if (answer && client_value(answer, "attributes", word, sizeof(word)))
		out_set_bool(j, "attributes", !strcmp(word, "yes"));
	else
		json_object_set_new(j, "attributes", json_null());
	return j;
}

/* The volume of the last request that failed, beside its object. */
static void add_owner(json_t *room, struct asker *a, const struct view_peers *peers,
	const struct xseg_peer_info *store)
{
	json_t *failing = json_object_get(room, "failing");
	char name[OBJECT_OWNER_BYTES];

	if (!json_is_object(failing))
		return;
	out_set_text(failing, "volume",
		object_owner_find(a, peers, store, out_text(failing, "object"), name) ? name
										    : NULL);
}

/* Asks all stores: for their room, and for what is said of a pool or of files only. */
static void add_stores(
	json_t *j, const struct tool *t, struct asker *a, const struct view_peers *peers)
{
	json_t *rooms = json_array(), *pools = json_array(), *files = json_array(), *room;
	const struct xseg_peer_info *p;
	char *answer, *status;

	for (p = peers->info; p < peers->info + peers->nr; p++) {
		if (!space_is_store(p))
			continue;
		answer = asker_ask(a, p, "status");
		status = answer ? strdup(answer) : NULL;
		if (!strcmp(p->kind, "sosd"))
			json_array_append_new(pools, pool_json(p, status));
		if (!strcmp(p->kind, "filed"))
			json_array_append_new(files, files_json(p, status));
		room = space_json(peers, p, status,
			status ? volume_use_count(a, t, p, COUNT_NS) : NULL);
		add_owner(room, a, peers, p);
		json_array_append_new(rooms, room);
		free(status);
	}
	json_object_set_new(j, "pools", pools);
	json_object_set_new(j, "files", files);
	json_object_set_new(j, "space", rooms);
	json_object_set(j, "rooms", rooms);		/* its older name */
}

/* The store of the first volumed, else the first store. */
static void choose_store(json_t *j, const struct view_peers *peers)
{
	const struct xseg_peer_info *volumed = view_peer_of_kind(peers, "volumed", NULL),
				    *store = volumed ? space_store_below(peers, volumed) : NULL;
	json_t *rooms = json_object_get(j, "space"), *room,
	       *chosen = json_array_get(rooms, 0), *warnings = json_array();
	size_t i;

	json_array_foreach(rooms, i, room) {
		if (store && !strcmp(out_text(room, "name"), store->name))
			chosen = room;
		space_warn(room, warnings);
	}
	json_object_set_new(j, "store", chosen ? json_incref(chosen) : json_null());
	json_object_set_new(j, "warnings", warnings);
}

/* A store of values, as its kvd says; all but the name is null when that does not answer. */
static json_t *store_json(struct asker *a, const struct xseg_peer_info *p)
{
	static const char *const numbers[] = { "keys", "keys_max", "live_bytes", "size_bytes",
					       "dirty_bytes", "bad_records" };
	struct client *c = asker_client(a);
	bool answers = c && p->state == XSEG_PEER_LIVE && client_ask(c, p->index, "info") >= 0;
	struct ready ready = { .answers = false };
	json_t *j = json_object();
	char word[128];
	size_t i;

	out_set_text(j, "name", p->name);
	out_set_text(j, "state",
		answers && client_value(c->text, "state", word, sizeof(word)) ? word : NULL);
	if (answers)
		ready_read(c->text, &ready);
	out_set_text(j, "reason", ready.state == READY_NO ? ready.why : NULL);
	out_set_int(j, "opening_done", ready.done);
	out_set_int(j, "opening_of", ready.of);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(
			j, numbers[i],
			answers ? json_integer((json_int_t)client_number(c->text, numbers[i]))
				: json_null());
	return j;
}

static json_t *exports_json(struct xseg *seg)
{
	struct exported_all all;
	json_t *j;

	if (exported_load(seg, &all))
		return json_array();
	j = export_text_json(&all);
	exported_fini(&all);
	return j;
}

static json_t *gather(struct tool *t, struct xseg *seg, const struct view_peers *peers)
{
	const struct xseg_peer_info *p = NULL;
	json_t *j = json_object(), *caches = json_array(), *stores = json_array();
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED];
	struct xseg_lock_watch locks = { .nr = 0 };
	uint64_t begun_ns = tool_now_ns();
	struct asker a;

	xseg_lock_look(seg, &locks, info);
	json_object_set_new(j, "segment", segment_json(seg));
	asker_init(&a, t);
	json_object_set_new(j, "supervisor", supervisor_json(seg));
	json_object_set_new(j, "peers", peer_text_json(peers));
	json_object_set_new(j, "chains", peer_text_chains(peers));
	json_object_set_new(j, "off_path", peer_text_off_path(peers));
	while ((p = view_peer_of_kind(peers, "cached", p)))
		json_array_append_new(caches, cache_json(&a, seg, p));
	json_object_set_new(j, "caches", caches);
	add_stores(j, t, &a, peers);
	while ((p = view_peer_of_kind(peers, "kvd", p)))
		json_array_append_new(stores, store_json(&a, p));
	json_object_set_new(j, "values", stores);
	json_object_set(j, "stores", stores);		/* its older name */
	json_object_set_new(j, "exports", exports_json(seg));
	/* last: that may have to be waited for */
	add_volumes(j, &a, peers);
	asker_fini(&a);
	choose_store(j, peers);
	json_object_set_new(j, "locks", locks_json(seg, &locks, begun_ns));
	return j;
}

/* ---- showing ----------------------------------------------------------------------------- */

static void print_hint(const char *text)
{
	char line[DAMAGE_MAX + 128];

	printf("%s\n", tool_hints(line, sizeof(line), text));
}

static unsigned nr_volumeds(const json_t *j)
{
	json_t *peers = json_object_get(j, "peers"), *p;
	unsigned nr = 0;
	size_t i;

	json_array_foreach(peers, i, p)
		nr += !strcmp(out_text(p, "kind"), "volumed");
	return nr;
}

static void print_damage(const json_t *j)
{
	struct damage d = { .records = out_int(j, "damaged_records"),
		.lost = out_int(j, "lost_volumes") };
	char text[DAMAGE_MAX], line[DAMAGE_MAX + 16];
	const char *reason = json_string_value(json_object_get(j, "catalogue_damage"));

	if (!reason)
		return;
	snprintf(d.reason, sizeof(d.reason), "%s", reason);
	snprintf(line, sizeof(line), "DAMAGE      %s", damage_tell(&d, text));
	print_hint(line);
}

/* Who does not say how many is named where there are others, whose volumes would be listed. */
static void print_volumes(const json_t *j)
{
	const json_t *volumes = json_object_get(j, "volumes");
	const char *of = json_string_value(json_object_get(j, "volumes_unknown_of"));
	char line[128 + XSEG_NAME_MAX];

	if (json_is_integer(volumes)) {
		printf("volumes     %" JSON_INTEGER_FORMAT, json_integer_value(volumes));
		if (out_int(j, "volumes_being_removed"))
			printf(", and %" PRIu64 " being removed",
				out_int(j, "volumes_being_removed"));
		putchar('\n');
		print_damage(j);
	} else if (nr_volumeds(j) || !json_array_size(json_object_get(j, "values"))) {
		snprintf(line, sizeof(line), "volumes     unknown: 'xseg volume list%s%s' says why",
			 of && nr_volumeds(j) > 1 ? " --volumed " : "",
			 of && nr_volumeds(j) > 1 ? of : "");
		print_hint(line);
	}
}

static void print_segment(const json_t *j)
{
	const json_t *segment = json_object_get(j, "segment"),
		     *supervisor = json_object_get(j, "supervisor");
	const char *log = out_text(supervisor, "log");
	char memory[OUT_TEXT], free_text[OUT_TEXT];

	printf("segment     %s: %s free of %s, %" PRIu64 " of %" PRIu64 " requests free\n",
	       out_text(segment, "name"), out_size(out_int(segment, "free_bytes"), free_text),
	       out_size(out_int(segment, "memory_bytes"), memory),
	       out_int(segment, "free_requests"),
	       out_int(segment, "requests"));
	if (json_is_true(json_object_get(supervisor, "alive")))
		printf("supervisor  pid %" PRIu64 "%s, log %s\n", out_int(supervisor, "pid"),
		       json_is_true(json_object_get(supervisor, "stopping"))
			       ? ", is stopping the stack" : "",
		       json_is_string(json_object_get(supervisor, "log"))
			       ? log
			       : "unknown: the kernel tells only its user, and root");
	else
		print_hint("supervisor  none: dead peers are not started again; 'xseg up "
			"STACK.conf' starts one");
	print_volumes(j);
}

static void print_chains(const json_t *j)
{
	json_t *chains = json_object_get(j, "chains"), *chain;
	json_t *off = json_object_get(j, "off_path"), *name;
	size_t i, k;

	json_array_foreach(chains, i, chain) {
		printf("%-12s", i ? "" : "chain");
		for (k = 0; k < json_array_size(chain); k++)
			printf("%s%s", k ? " -> " : "",
				json_string_value(json_array_get(chain, k)));
		putchar('\n');
	}
	json_array_foreach(off, i, name)
		printf("%s%s", i ? ", " : "off path    ", json_string_value(name));
	if (json_array_size(off))
		putchar('\n');
}

static void print_caches(const json_t *j)
{
	json_t *caches = json_object_get(j, "caches"), *c;
	char memory[OUT_TEXT], used[OUT_TEXT], dirty[OUT_TEXT];
	size_t i;

	json_array_foreach(caches, i, c) {
		printf("cache       %s: %s, %s of %s used, %s dirty\n", out_text(c, "name"),
		       cache_text_state(c), out_size(out_int(c, "used_bytes"), used),
		       out_size(out_int(c, "memory_bytes"), memory),
		       out_size(out_int(c, "dirty_bytes"), dirty));
		printf("            %s: %s\n", out_text(c, "policy"), out_text(c, "promise"));
		cache_text_print_troubles(c, "            ");
	}
}

static json_t *peer_of(const json_t *j, const char *name)
{
	json_t *peers = json_object_get(j, "peers"), *p;
	size_t i;

	json_array_foreach(peers, i, p)
		if (!strcmp(out_text(p, "name"), name))
			return p;
	return NULL;
}

static const char *state_of(const json_t *j, const char *name)
{
	const json_t *p = peer_of(j, name);

	return p ? out_text(p, "state") : "?";
}

static bool serves(const json_t *j, const char *name)
{
	return !strcmp(state_of(j, name), "running");
}

/* Why the figures of a peer are unknown. */
static void print_unknown(const json_t *j, const char *name)
{
	const char *state = state_of(j, name);
	char line[XSEG_NAME_MAX + 64];

	if (json_is_true(json_object_get(peer_of(j, name), "failing")))
		snprintf(line, sizeof(line), "%s; the log says why it cannot run", state);
	else if (!strcmp(state, "stopped"))
		snprintf(line, sizeof(line), "stopped; 'xseg peer start %s' starts it", name);
	else if (!serves(j, name))
		snprintf(line, sizeof(line), "%s; 'xseg peer list' shows when it serves", state);
	else
		snprintf(line, sizeof(line), "unknown: it does not answer");
	print_hint(line);
}

static const char *pool_text(const char *owner)
{
	static const struct {
		const char *owner, *text;
	} says[] = {
		{ "yes", "this segment has the lock" },
		{ "asking", "it does not answer; requests wait" },
		{ "lost",
		  "LOST: another host serves these objects, or the cluster has blocklisted this "
		  "one; nothing is read or written, and the log says what to do" },
	};

	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!strcmp(owner, says[i].owner))
			return says[i].text;
	return owner;
}

static void print_rooms(const json_t *j)
{
	json_t *rooms = json_object_get(j, "space"), *room;
	size_t i;

	json_array_foreach(rooms, i, room) {
		printf("%-12s%s: ", i ? "" : "store", out_text(room, "name"));
		if (serves(j, out_text(room, "name")))
			space_print(room);
		else
			print_unknown(j, out_text(room, "name"));
	}
	space_warnings_print(json_object_get(j, "warnings"));
}

/* Of a store that does not serve, print_rooms() has said so. */
static void print_pools(const json_t *j)
{
	json_t *pools = json_object_get(j, "pools"), *p;
	const char *heading = "pool";
	size_t i;

	json_array_foreach(pools, i, p) {
		if (!serves(j, out_text(p, "name")))
			continue;
		printf("%-12s%s: ", heading, out_text(p, "name"));
		heading = "";
		if (json_is_string(json_object_get(p, "owner")))
			printf("%s, prefix %s: %s\n", out_text(p, "pool"), out_text(p, "prefix"),
			       pool_text(out_text(p, "owner")));
		else
			print_unknown(j, out_text(p, "name"));
	}
}

static void print_broken(const char *reason)
{
	char line[READY_WHY + 32];

	snprintf(line, sizeof(line), "broken: %s", reason);
	print_hint(line);
}

static void print_opening(const json_t *j)
{
	struct ready r = { .state = READY_OPENS, .done = out_int(j, "opening_done"),
		.of = out_int(j, "opening_of") };
	char percent[READY_TEXT];

	printf("opening its log%s\n", ready_percent(&r, percent));
}

static void print_stores(const json_t *j)
{
	json_t *stores = json_object_get(j, "values"), *p;
	char live[OUT_TEXT], size[OUT_TEXT], dirty[OUT_TEXT];
	size_t i;

	json_array_foreach(stores, i, p) {
		printf("%-12s%s: ", i ? "" : "values", out_text(p, "name"));
		if (!json_is_string(json_object_get(p, "state")))
			print_unknown(j, out_text(p, "name"));
		else if (!strcmp(out_text(p, "state"), "broken"))
			print_broken(out_text(p, "reason"));
		else if (!strcmp(out_text(p, "state"), "opening"))
			print_opening(p);
		else
			printf("%s, %" PRIu64 " of %" PRIu64 " keys, %s of %s live, %s dirty\n",
				out_text(p, "state"), out_int(p, "keys"), out_int(p, "keys_max"),
				out_size(out_int(p, "live_bytes"), live),
				out_size(out_int(p, "size_bytes"), size),
				out_size(out_int(p, "dirty_bytes"), dirty));
		if (out_int(p, "bad_records"))
			print_hint("DAMAGE      values were found damaged: 'xseg kv verify' names "
				"them");
	}
}

/* What is noticed of damage, for nobody else says it. */
static void print_files(const json_t *j)
{
	json_t *files = json_object_get(j, "files"), *p, *attributes;
	const char *heading = "files";
	size_t i;

	json_array_foreach(files, i, p) {
		attributes = json_object_get(p, "attributes");
		if (!serves(j, out_text(p, "name")))
			continue;
		printf("%-12s%s: ", heading, out_text(p, "name"));
		heading = "";
		if (!json_is_boolean(attributes))
			print_unknown(j, out_text(p, "name"));
		else if (json_is_true(attributes))
			printf("swapped and short files are noticed, flipped bits are not "
			       "(filed(8))\n");
		else
			printf("swapped and short files are NOT NOTICED: no user attributes in "
			       "%s\n", out_text(p, "dir"));
	}
}

/* p: the supervisor, or a peer. */
static void print_if_halted(const char *name, const json_t *p)
{
	char text[HALTED_TEXT];

	if (json_is_true(json_object_get(p, "halted")))
		printf("halted      %s\n", halted_tell(name, out_int(p, "pid"), text));
}

static void print_halted(const json_t *j)
{
	json_t *peers = json_object_get(j, "peers"), *p;
	size_t i;

	print_if_halted("supervisor", json_object_get(j, "supervisor"));
	json_array_foreach(peers, i, p)
		print_if_halted(out_text(p, "name"), p);
}

static void print_failing(const json_t *j)
{
	json_t *peers = json_object_get(j, "peers"), *p;
	char text[VIEW_FAILING_TEXT];
	size_t i;

	json_array_foreach(peers, i, p)
		if (json_is_true(json_object_get(p, "failing")))
			printf("failing     %s\n", view_failing_tell(out_text(p, "name"), text));
}

static void print_stopped(const json_t *j)
{
	json_t *peers = json_object_get(j, "peers"), *p;
	char text[STOPPED_TEXT], line[STOPPED_TEXT + 16];
	const char *heading = "stopped";
	size_t i;

	json_array_foreach(peers, i, p) {
		if (!json_is_true(json_object_get(p, "stays_stopped")))
			continue;
		snprintf(line, sizeof(line), "%-12s%s", heading,
			stopped_tell(out_text(p, "name"), text));
		print_hint(line);
		heading = "";
	}
}

static void print_locks(const json_t *j)
{
	json_t *locks = json_object_get(j, "locks"), *l;
	char text[XSEG_LOCK_TEXT];
	size_t i;

	json_array_foreach(locks, i, l) {
		struct xseg_lock_info info = {
			.pid = (uint32_t)json_integer_value(json_object_get(l, "pid")),
			.halted = json_is_true(json_object_get(l, "halted")),
			.held_ns = out_int(l, "held_ns"),
		};

		snprintf(info.lock, sizeof(info.lock), "%s", out_text(l, "lock"));
		if (info.pid)
			snprintf(info.name, sizeof(info.name), "%s", out_text(l, "name"));
		printf("lock        %s\n", xseg_lock_text(&info, text));
	}
}

int stack_status(struct tool *t, const void *opts, int argc, char **argv)
{
	struct view_peers peers = { 0 };
	struct opened opened;
	struct xseg *seg;
	json_t *j;
	int rc;

	(void)opts;
	(void)argc;
	(void)argv;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = view_peers_need(seg, &peers);
	if (rc) {
		xseg_detach(seg);
		return rc;
	}
	j = gather(t, seg, &peers);
	if (t->json) {
		rc = out_json(json_incref(j));
	} else {
		print_segment(j);
		print_chains(j);
		print_stores(j);
		print_caches(j);
		print_rooms(j);
		print_pools(j);
		print_files(j);
		export_text_print(json_object_get(j, "exports"));
		print_halted(j);
		print_failing(j);
		print_stopped(j);
		print_locks(j);
		printf(peers.nr ? "\n" : "peers       none\n");
		opened_load(t, &peers, &opened);
		rc = peers.nr ? out_table_print(peer_text_table(&peers, &opened, false))
			      : out_done();
		opened_fini(&opened);
	}
	json_decref(j);
	view_peers_fini(&peers);
	xseg_detach(seg);
	return rc;
}
