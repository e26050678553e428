/* seg_cmds - create, destroy, list, info, check: a segment as such.
 *
 * Contract: see commands.h. Nothing here starts a peer; destroy --force ends processes.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peers/common/cache_cost.h"
#include "peers/common/stack.h"
#include "tools/xseg/commands.h"
#include "tools/xseg/ending.h"
#include "tools/xseg/out.h"
#include "tools/xseg/view.h"

/* ---- create ------------------------------------------------------------------------------ */

static const char *const huge_names[] = { "auto", "never", "require", NULL };

#define AT(field) offsetof(struct seg_create_opts, field)
const struct opt seg_create_table[] = {
	{ .name = "memory", .kind = OPT_SIZE, .off = AT(memory_bytes), .min = 4 << 20,
	  .flags = OPT_REQUIRED,
	  .help = "memory for data, caches and their tables" },
	{ .name = "requests", .kind = OPT_UINT, .off = AT(requests),
	  .help = "requests in all (0: 2048)" },
	{ .name = "ports", .kind = OPT_UINT, .off = AT(ports), .max = 256,
	  .help = "ports in all (0: 64)" },
	{ .name = "cache", .kind = OPT_SIZE, .off = AT(cache_bytes), .min = CACHE_BYTES_MIN,
	  .help = "also print what a cache of that size costs" },
	{ .name = "objects", .kind = OPT_UINT, .off = AT(objects),
	  .help = "objects that this cache can hold (0: as cached chooses)" },
	{ .name = "huge", .kind = OPT_ENUM, .off = AT(huge), .names = huge_names, .def = "auto",
	  .help = "whether to use huge pages" },
	{ .name = "mode", .kind = OPT_STR, .off = AT(mode), .len = 8, .def = "0600", .arg = "MODE",
	  .help = "who may attach, as a file mode" },
	{ .name = "group", .kind = OPT_STR, .off = AT(group), .len = 33, .arg = "GROUP",
	  .help = "group that the segment is given to, by name or number" },
	{ .name = "dry-run", .kind = OPT_BOOL, .off = AT(dry_run),
	  .help = "print the costs and make nothing" },
	{ 0 },
};
#undef AT

/* What a cache of the given size takes out of a segment. */
struct cache_plan {
	uint64_t memory_bytes, objects, buckets;
	struct cache_cost cost;			/* with that many objects */
	/* what one more object with a single bucket costs */
	uint64_t sparse_bytes;
};

static int read_group(const char *text, int64_t *gid)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	*gid = (int64_t)strtoul(text, &end, 10);
	return *end || *gid >= UINT32_MAX ? -EINVAL : 0;
}

static int make_config(const struct seg_create_opts *o, struct xseg_config *cfg,
		       struct xseg_error *err)
{
	struct stack_segment s = { .memory = o->memory_bytes,
				   .requests = o->requests,
				   .ports = o->ports,
				   .huge = o->huge };
	int64_t gid = -1;
	int rc;

	snprintf(s.mode, sizeof(s.mode), "%s", o->mode);
	if (read_group(o->group, &gid))
		snprintf(s.group, sizeof(s.group), "%s", o->group);
	rc = stack_segment_config(&s, cfg, err);
	if (gid >= 0)
		cfg->group = gid;
	return rc;
}

static int plan_cache(const struct seg_create_opts *o, const struct xseg_plan *p,
		      struct cache_plan *c)
{
	struct cache_size size = { .memory_bytes = o->cache_bytes,
				   .segment_bytes = p->pages_bytes,
				   .requests = p->nr_requests,
				   .ports = 1 };
	char cache[OUT_TEXT], arena[OUT_TEXT], memory[OUT_TEXT];

	if (o->objects && !o->cache_bytes)
		return tool_fail(TOOL_USAGE,
				 "create: --objects is about a cache; say its size with --cache");
	if (!o->cache_bytes)
		return TOOL_DONE;
	c->memory_bytes = o->cache_bytes;
	c->objects = o->objects ? o->objects : cached_default_objects(o->cache_bytes);
	c->buckets = o->cache_bytes / XSEG_PAGE_SIZE;
	size.objects = (uint32_t)c->objects;
	size.volumes = cached_nr_volumes(o->cache_bytes);
	cache_cost(&size, &c->cost);
	c->sparse_bytes = cached_sparse_object_bytes();
	if (c->memory_bytes + c->cost.arena <= p->pages_bytes)
		return TOOL_DONE;
	return tool_fail(TOOL_USAGE,
		"create: a cache of %s needs %s more for its tables, and --memory is %s; give the segment more "
		"memory, or the cache less or fewer --objects",
		out_size(c->memory_bytes, cache), out_size(c->cost.arena, arena),
		out_size(o->memory_bytes, memory));
}

static json_t *plan_json(const struct tool *t, const struct xseg_plan *p,
			 const struct cache_plan *c, bool made)
{
	json_t *j = json_object(), *cache, *by;

	out_set_text(j, "segment", t->segment);
	out_set_bool(j, "created", made);
	out_set_int(j, "total_bytes", p->total_bytes);
	out_set_int(j, "pages_bytes", p->pages_bytes);
	out_set_int(j, "requests_bytes", p->requests_bytes);
	out_set_int(j, "lanes_bytes", p->lanes_bytes);
	out_set_int(j, "stats_bytes", p->stats_bytes);
	out_set_int(j, "tables_bytes", p->tables_bytes);
	if (!c->memory_bytes)
		return j;
	cache = json_object();
	out_set_int(cache, "memory_bytes", c->memory_bytes);
	out_set_int(cache, "objects", c->objects);
	out_set_int(cache, "buckets", c->buckets);
	out_set_int(cache, "metadata_bytes", c->cost.all);
	by = json_object();
	out_set_int(by, "buckets", c->cost.buckets);
	out_set_int(by, "objects", c->cost.objects);
	out_set_int(by, "requests", c->cost.requests);
	out_set_int(by, "fixed", c->cost.fixed);
	out_set_int(by, "unused", c->cost.unused);
	json_object_set_new(cache, "metadata_bytes_by", by);
	out_set_int(cache, "metadata_private_bytes", c->cost.own);
	out_set_int(cache, "sparse_object_bytes", c->sparse_bytes);
	json_object_set_new(j, "cache", cache);
	return j;
}

static int print_plan(const struct tool *t, const struct xseg_plan *p, const struct cache_plan *c)
{
	struct out_table *table;
	const struct {
		const char *part;
		uint64_t bytes;
	} rows[] = {
		{ "pages (data, caches, their tables)", p->pages_bytes },
		{ "requests", p->requests_bytes },
		{ "lanes", p->lanes_bytes },
		{ "statistics", p->stats_bytes },
		{ "tables", p->tables_bytes },
		{ "segment in all", p->total_bytes },
		{ "cache: data, out of the pages", c->memory_bytes },
		{ "cache: its tables", c->cost.all },
		{ "  by buckets", c->cost.buckets },
		{ "  by objects", c->cost.objects },
		{ "  by the segment's requests", c->cost.requests },
		{ "  volumes and the rest", c->cost.fixed },
		{ "  unused, as they are whole extents", c->cost.unused },
		{ "  of all these, private memory of its process", c->cost.own },
		{ "cache: one more object with a single bucket", c->sparse_bytes },
	};
	size_t i, nr = sizeof(rows) / sizeof(rows[0]) - (c->memory_bytes ? 0 : 9);
	char size[OUT_TEXT];

	if (t->quiet)
		return TOOL_DONE;
	table = out_table_create("RAM\t>bytes\t>");
	for (i = 0; i < nr; i++)
		out_table_row(table, "%s\t%" PRIu64 "\t%s", rows[i].part, rows[i].bytes,
			      out_size(rows[i].bytes, size));
	return out_table_print(table);
}

static const char *create_hint(int rc)
{
	switch (rc) {
	case -EEXIST:
		return "use it, remove it with 'xseg destroy', or name another with -s";
	case -EPERM:
		return "name a --group that you are in, or make it as root";
	case -ENOMEM:
	case -ENOSPC:
		return "ask for less --memory";
	default:
		return "is /dev/shm mounted, and may you write there?";
	}
}

int seg_create(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_create_opts *o = opts;
	struct cache_plan cache = { 0 };
	struct xseg_error err = { "" };
	struct xseg_config cfg;
	struct xseg_plan plan;
	int rc;

	(void)argc;
	(void)argv;
	rc = make_config(o, &cfg, &err);
	if (!rc)
		rc = xseg_plan(&cfg, &plan, &err);
	if (rc)
		return tool_fail_errno(rc, &err, "see 'xseg create --help'", "create");
	rc = plan_cache(o, &plan, &cache);
	if (!rc && !t->json)
		rc = print_plan(t, &plan, &cache);
	if (rc || o->dry_run)
		return rc || !t->json ? rc : out_json(plan_json(t, &plan, &cache, false));
	rc = xseg_create(t->segment, &cfg, &err);
	if (rc)
		return tool_fail_errno(rc, &err, create_hint(rc), "create");
	tool_say(t, "segment %s is made", t->segment);
	return t->json ? out_json(plan_json(t, &plan, &cache, true)) : TOOL_DONE;
}

/* ---- destroy ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct seg_force_opts, field)
const struct opt seg_force_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "end all that is attached by SIGKILL, and lose dirty data" },
	{ 0 },
};
#undef AT

/* Of why, what to do next is left out: it has been done. */
static int destroy_unreadable(struct tool *t, const struct xseg_error *why)
{
	int rc = xseg_destroy(t->segment);

	if (rc)
		return tool_fail_errno(rc, NULL, "see the owner of its file in /dev/shm",
				       "destroy %s", t->segment);
	tool_say(t, "segment %s is removed (%.*s)", t->segment, (int)strcspn(why->text, ";"),
		 why->text);
	return TOOL_DONE;
}

int seg_destroy(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_force_opts *o = opts;
	struct xseg_error err = { "" };
	struct xseg *seg;
	int rc;

	(void)argc;
	(void)argv;
	rc = xseg_attach(t->segment, XSEG_ATTACH_OBSERVER, &seg, &err);
	if (rc == -ESTALE || (rc && rc != -ENOENT && o->force))
		return destroy_unreadable(t, &err);
	if (rc && rc != -ENOENT && rc != -EACCES)
		return tool_fail(TOOL_REFUSED,
			"destroy %s: who uses it cannot be told (%s); to remove it anyway add --force",
			t->segment, err.text);
	if (rc)
		return tool_fail_attach(t, rc, &err);
	rc = o->force ? ending_kill_all(t, seg) : ending_may_destroy(t, seg);
	if (!rc)
		rc = ending_remove(t, seg, o->force);
	xseg_detach(seg);
	if (rc)
		return rc;
	tool_say(t, "segment %s is removed", t->segment);
	return TOOL_DONE;
}

/* ---- list -------------------------------------------------------------------------------- */

/* Whether peers run; if none does, whether some died and wait to be taken over. Clients do not
 * count. */
static const char *state_of(struct xseg *seg)
{
	struct xseg_peer_info info;
	const char *state = "idle";
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || view_peer_is_client(&info))
			continue;
		if (view_peer_alive(&info))
			return "running";
		if (info.state == XSEG_PEER_DEAD)
			state = "stale";
	}
	return state;
}

struct listing {
	json_t *array;				/* with --json */
	struct out_table *table;
	uint32_t nr;
};

static void list_usable(struct listing *l, struct xseg *seg)
{
	uint32_t running = 0, clients = 0, i;
	struct xseg_peer_info peer;
	struct xseg_info info;
	char memory[OUT_TEXT], free_text[OUT_TEXT];
	json_t *j;

	xseg_get_info(seg, &info);
	for (i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &peer) && view_peer_alive(&peer) &&
		    !view_peer_is_supervisor(&peer))
			*(view_peer_is_client(&peer) ? &clients : &running) += 1;
	out_table_row(l->table, "%s\t%s\t%s\t%s\t%u\t%u\t", info.name, state_of(seg),
		      out_size(info.memory_bytes, memory),
		      out_size(info.free_pages * XSEG_PAGE_SIZE, free_text), running, clients);
	j = json_object();
	out_set_text(j, "name", info.name);
	out_set_text(j, "state", state_of(seg));
	out_set_int(j, "memory_bytes", info.memory_bytes);
	out_set_int(j, "total_bytes", info.total_bytes);
	out_set_int(j, "free_bytes", info.free_pages * XSEG_PAGE_SIZE);
	out_set_int(j, "peers_running", running);
	out_set_int(j, "clients", clients);
	json_array_append_new(l->array, j);
}

static void list_one(const char *name, void *arg)
{
	struct listing *l = arg;
	struct xseg_error err = { "" };
	struct xseg *seg;
	json_t *j;
	int rc = xseg_attach(name, XSEG_ATTACH_OBSERVER, &seg, &err);

	if (rc == -ENOENT)
		return;
	l->nr++;
	if (!rc) {
		list_usable(l, seg);
		xseg_detach(seg);
		return;
	}
	out_table_row(l->table, "%s\tunusable\t-\t-\t-\t-\t%s", name, err.text);
	j = json_object();
	out_set_text(j, "name", name);
	out_set_text(j, "state", "unusable");
	out_set_text(j, "reason", err.text);
	json_array_append_new(l->array, j);
}

int seg_list(struct tool *t, const void *opts, int argc, char **argv)
{
	struct listing l = { .array = json_array(),
			     .table = out_table_create(
				     "NAME\tSTATE\t>MEMORY\t>FREE\t>PEERS\t>CLIENTS\tNOTE") };
	int rc;

	(void)opts;
	(void)argc;
	(void)argv;
	rc = xseg_list(list_one, &l);
	if (rc < 0)
		rc = tool_fail_errno(rc, NULL, "is /dev/shm mounted?", "list");
	else if (t->json)
		rc = out_json(json_incref(l.array));
	else if (l.nr == 0)
		tool_say(t, "no segments; make one with 'xseg create' or 'xseg up'");
	json_decref(l.array);
	if (!rc && !t->json && l.nr)
		return out_table_print(l.table);
	out_table_free(l.table);
	return rc;
}

/* ---- info -------------------------------------------------------------------------------- */

/* What the peers' processes have in memory of their own: tables, and little else. */
struct own_memory {
	bool known;		/* of all of them: the kernel tells their user, and root */
	uint64_t bytes, huge_bytes;
};

static bool add_own_memory(struct own_memory *own, uint32_t pid)
{
	unsigned long kb;
	char line[256];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%u/smaps_rollup", pid);
	f = fopen(line, "re");
	if (!f)
		return errno == ENOENT;		/* it has ended meanwhile */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Anonymous: %lu kB", &kb) == 1)
			own->bytes += (uint64_t)kb << 10;
		else if (sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			own->huge_bytes += (uint64_t)kb << 10;
	}
	fclose(f);
	return true;
}

static void get_own_memory(struct xseg *seg, struct own_memory *own)
{
	struct view_peers peers = { 0 };

	*own = (struct own_memory){ .known = !view_peers_load(seg, &peers) };
	for (uint32_t i = 0; i < peers.nr; i++) {
		const struct xseg_peer_info *p = &peers.info[i];
		bool seen = !view_peer_alive(p) || view_peer_is_client(p);

		for (uint32_t k = 0; k < i; k++)
			seen |= peers.info[k].pid == p->pid;
		if (!seen && !add_own_memory(own, p->pid))
			own->known = false;
	}
	view_peers_fini(&peers);
}

static json_t *info_json(const struct xseg_info *i, uint64_t huge_bytes,
	const struct own_memory *own)
{
	json_t *j = json_object();

	out_set_text(j, "name", i->name);
	out_set_int(j, "total_bytes", i->total_bytes);
	out_set_int(j, "memory_bytes", i->memory_bytes);
	out_set_int(j, "free_bytes", i->free_pages * XSEG_PAGE_SIZE);
	out_set_int(j, "arena_bytes", (uint64_t)i->arena_extents * XSEG_EXTENT_SIZE);
	out_set_int(j, "pages_bytes", (uint64_t)i->page_extents * XSEG_EXTENT_SIZE);
	out_set_int(j, "free_pages", i->free_pages);
	out_set_int(j, "requests", i->nr_requests);
	out_set_int(j, "free_requests", i->free_requests);
	out_set_int(j, "ports", i->nr_ports);
	out_set_int(j, "free_ports", i->free_ports);
	out_set_int(j, "lanes", i->nr_lanes);
	out_set_int(j, "used_lanes", i->used_lanes);
	out_set_text(j, "huge", huge_names[i->huge]);
	out_set_int(j, "huge_bytes", huge_bytes);
	json_object_set_new(j, "own_bytes",
		own->known ? json_integer((json_int_t)own->bytes) : json_null());
	json_object_set_new(j, "own_huge_bytes",
		own->known ? json_integer((json_int_t)own->huge_bytes) : json_null());
	out_set_int(j, "bad_count", i->bad_count);
	out_set_int(j, "made_at_s", i->made_at_s);
	return j;
}

static int print_info(const struct xseg_info *i, uint64_t huge_bytes, const struct own_memory *own)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT], d[OUT_TEXT], made[64] = "?";
	time_t at = (time_t)i->made_at_s;
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(made, sizeof(made), "%Y-%m-%d %H:%M:%S", &tm);
	printf("segment   %s, made %s\n", i->name, made);
	printf("memory    %s: %s free, %s in arenas, %s in pages of peers\n",
	       out_size(i->memory_bytes, a), out_size(i->free_pages * XSEG_PAGE_SIZE, b),
	       out_size((uint64_t)i->arena_extents * XSEG_EXTENT_SIZE, c),
	       out_size((uint64_t)i->page_extents * XSEG_EXTENT_SIZE, d));
	printf("in all    %s of shared memory\n", out_size(i->total_bytes, a));
	printf("requests  %u of %u free\n", i->free_requests, i->nr_requests);
	printf("ports     %u of %u free\n", i->free_ports, i->nr_ports);
	printf("lanes     %u of %u used\n", i->used_lanes, i->nr_lanes);
	printf("huge      %s: %s of %s are in huge pages%s\n", huge_names[i->huge],
		out_size(huge_bytes, a), out_size(i->memory_bytes, b),
		huge_bytes || i->huge == XSEG_HUGE_NEVER
			? ""
			: "; see /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	if (own->known)
		printf("private   %s in the peers' processes, %s of it in huge pages\n",
			out_size(own->bytes, a), out_size(own->huge_bytes, b));
	else
		printf("private   unknown: the kernel tells only the peers' user, and root\n");
	printf("bad       %" PRIu64 " wrong values were found in the segment and refused\n",
	       i->bad_count);
	return out_done();
}

int seg_info(struct tool *t, const void *opts, int argc, char **argv)
{
	struct xseg_info info;
	struct own_memory own;
	struct xseg *seg;
	uint64_t huge;
	int rc;

	(void)opts;
	(void)argc;
	(void)argv;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	xseg_get_info(seg, &info);
	huge = xseg_huge_bytes(seg);
	get_own_memory(seg, &own);
	rc = t->json ? out_json(info_json(&info, huge, &own)) : print_info(&info, huge, &own);
	xseg_detach(seg);
	return rc;
}

/* ---- check ------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct seg_check_opts, field)
const struct opt seg_check_table[] = {
	{ .name = "fix", .kind = OPT_BOOL, .off = AT(fix),
	  .help = "also rebuild what can be derived" },
	{ 0 },
};
#undef AT

static void add_problem(const char *problem, void *arg)
{
	json_array_append_new(arg, json_string(problem));
}

static json_t *check_json(bool ok, const char *state, json_t *problems,
			  const struct xseg_info *info)
{
	json_t *j = json_object();

	out_set_bool(j, "ok", ok);
	out_set_text(j, "state", state);
	json_object_set_new(j, "problems", problems);
	out_set_int(j, "free_pages", info->free_pages);
	out_set_int(j, "free_requests", info->free_requests);
	return j;
}

static int check_unusable(const struct tool *t, int rc, const struct xseg_error *err)
{
	struct xseg_info nothing = { .free_pages = 0 };
	json_t *problems = json_array();

	add_problem(err->text, problems);
	if (t->json)
		out_json(check_json(false, "unusable", problems, &nothing));
	else
		json_decref(problems);
	return tool_fail_attach(t, rc, err);
}

static void ignore_problem(const char *problem, void *arg)
{
	(void)problem;
	(void)arg;
}

/* How many problems it would have been, and how many of them are left. */
struct checked {
	bool fix;
	unsigned found, left;
};

static void say_sound(const struct tool *t, const char *state, const struct checked *c)
{
	const char *more = "";
	char mended[64] = "";

	if (!strcmp(state, "stale"))
		more = "; its peers have died: 'xseg up' takes it over";
	else if (!strcmp(state, "running"))
		more = ", as far as can be told while peers run";
	if (c->found > c->left)
		snprintf(mended, sizeof(mended), " now, as %u problem%s mended", c->found - c->left,
			c->found - c->left == 1 ? " was" : "s were");
	tool_say(t, "segment %s is sound%s%s", t->segment, mended, more);
}

static int fail_check(const struct tool *t, const struct checked *c)
{
	const char *s = c->left == 1 ? "" : "s";

	if (!c->fix)
		return tool_fail(TOOL_FAILED,
			"check: segment %s has %u problem%s; 'xseg check --fix' mends what can be derived, "
			"else make it again",
			t->segment, c->left, s);
	return tool_fail(TOOL_FAILED,
		"check: segment %s has %u problem%s left, %u mended; what is left cannot be derived: flush "
		"what its caches still can, then make it again",
		t->segment, c->left, s, c->found > c->left ? c->found - c->left : 0);
}

/* Prints what was found. */
static int report_check(const struct tool *t, json_t *result, const struct checked *c)
{
	json_t *problems = json_object_get(result, "problems");
	size_t i, nr = json_array_size(problems);
	int rc = TOOL_DONE;

	if (t->json)
		rc = out_json(json_incref(result));
	for (i = 0; !t->json && i < nr; i++)
		printf("%s\n", json_string_value(json_array_get(problems, i)));
	if (!c->left)
		say_sound(t, json_string_value(json_object_get(result, "state")), c);
	json_decref(result);
	return c->left ? fail_check(t, c) : rc;
}

int seg_check(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_check_opts *o = opts;
	struct xseg_error err = { "" };
	struct xseg_info info;
	json_t *result, *problems;
	struct xseg *seg;
	struct checked c = { .fix = o->fix };
	int rc;

	(void)argc;
	(void)argv;
	rc = xseg_attach(t->segment, o->fix ? 0 : XSEG_ATTACH_OBSERVER, &seg, &err);
	if (rc == -EPROTO || rc == -EAGAIN || rc == -ESTALE)
		return check_unusable(t, rc, &err);
	if (rc)
		return tool_fail_attach(t, rc, &err);
	problems = json_array();
	if (o->fix)
		c.found = xseg_check(seg, false, ignore_problem, NULL);
	c.left = xseg_check(seg, o->fix, add_problem, problems);
	xseg_get_info(seg, &info);
	result = check_json(c.left == 0, state_of(seg), problems, &info);
	xseg_detach(seg);
	return report_check(t, result, &c);
}
