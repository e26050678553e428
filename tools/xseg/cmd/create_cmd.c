/* create_cmd - create: says the cost of a segment, and makes it.
 *
 * Contract: see commands.h.
 */
#include <errno.h>
#include <inttypes.h>

#include "peers/common/say/cache_cost.h"
#include "peers/common/say/kv.h"
#include "peers/common/options/stack.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/base/out.h"
#include "xseg/volume.h"

#define AT(field) offsetof(struct seg_create_opts, field)
const struct opt seg_create_table[] = {
	{ .name = "memory", .kind = OPT_SIZE, .off = AT(memory_bytes), .min = 4 << 20,
	  .max = 1ull << 40,
	  .flags = OPT_REQUIRED,
	  .help = "memory for data, caches and their tables" },
	{ .name = "requests", .kind = OPT_UINT, .off = AT(requests), .min = 32,
	  .max = 1u << 20, .flags = OPT_OR_ZERO, .help = "requests in all (0: 2048)" },
	{ .name = "ports", .kind = OPT_UINT, .off = AT(ports), .min = 4,
	  .max = XSEG_MAX_PORTS, .flags = OPT_OR_ZERO, .help = "ports in all (0: 64)" },
	{ .name = "cache", .kind = OPT_SIZE, .off = AT(cache_bytes), .min = CACHE_BYTES_MIN,
	  .help = "also print the costs of a cache of that size" },
	{ .name = "objects", .kind = OPT_UINT, .off = AT(objects), .max = 1u << 24,
	  .help = "objects that this cache can hold (0: cached chooses)" },
	{ .name = "clients", .kind = OPT_UINT, .off = AT(clients), .max = 1u << 20,
	  .help = "also print the cost of so many programs, each with one queue on a volume" },
	{ .name = "huge", .kind = OPT_ENUM, .off = AT(huge), .names = stack_huge_names,
	  .def = "auto",
	  .help = "whether to use huge pages" },
	{ .name = "mode", .kind = OPT_STR, .off = AT(mode), .len = 8, .def = "0600", .arg = "MODE",
	  .help = "users that may attach, as a file mode" },
	{ .name = "group", .kind = OPT_STR, .off = AT(group), .len = 33, .arg = "GROUP",
	  .check = stack_check_group, .help = "group that the segment is given to, by name or "
		  "number" },
	{ .name = "dry-run", .kind = OPT_BOOL, .off = AT(dry_run),
	  .help = "print the costs and make nothing" },
	{ 0 },
};
#undef AT

/* What a cache of the given size takes out of a segment. */
struct cache_plan {
	uint64_t memory_bytes, objects, buckets;
	struct cache_cost cost;			/* with that many objects; 0: no cache */
	/* what one more object with a single bucket costs */
	uint64_t sparse_bytes;
};

static int make_config(const struct seg_create_opts *o, struct xseg_config *cfg,
		       struct xseg_error *err)
{
	struct stack_segment s = { .memory = o->memory_bytes,
				   .requests = o->requests,
				   .ports = o->ports,
				   .huge = o->huge };

	snprintf(s.mode, sizeof(s.mode), "%s", o->mode);
	snprintf(s.group, sizeof(s.group), "%s", o->group);
	return stack_segment_config(&s, cfg, err);
}

static int plan_cache(const struct seg_create_opts *o, const struct xseg_plan *p,
		      struct cache_plan *c)
{
	/* as cached takes it: whole extents */
	uint64_t bytes =
		(o->cache_bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_SIZE;
	struct cache_size size = { .memory_bytes = bytes,
				   .segment_bytes = p->pages_bytes,
				   .requests = p->nr_requests,
				   .ports = 1 };

	if (o->objects && !o->cache_bytes)
		return tool_fail(TOOL_USAGE,
				 "create: --objects needs a cache; give its size with --cache");
	if (!o->cache_bytes)
		return TOOL_DONE;
	c->memory_bytes = bytes;
	c->objects = o->objects ? o->objects : cached_default_objects(o->cache_bytes);
	c->buckets = bytes / XSEG_PAGE_SIZE;
	size.objects = (uint32_t)c->objects;
	size.volumes = cached_nr_volumes(o->cache_bytes);
	cache_cost(&size, &c->cost);
	c->sparse_bytes = cached_sparse_object_bytes();
	return TOOL_DONE;
}

/* What programs take of a segment: each a queue with the library's defaults. */
struct clients_plan {
	uint32_t clients, ports, requests;
	uint64_t memory_bytes;
};

static int plan_clients(const struct seg_create_opts *o, struct clients_plan *c)
{
	*c = (struct clients_plan){ .clients = o->clients,
				    .ports = o->clients,
				    .requests = o->clients * XSEG_QUEUE_DEPTH,
				    .memory_bytes = o->clients * xseg_queue_memory(NULL) };
	if (c->ports > XSEG_MAX_PORTS)
		return tool_fail(TOOL_USAGE,
			"create: %" PRIu32 " clients take a port each, and a segment has %u at "
			"most; one 'xseg export' serves many NBD clients with 20 ports",
			c->clients, XSEG_MAX_PORTS);
	return TOOL_DONE;
}

/* One message for all that is asked for. */
static int check_memory(const struct seg_create_opts *o, const struct xseg_plan *p,
	const struct cache_plan *cache, const struct clients_plan *clients)
{
	uint64_t need = cache->memory_bytes + cache->cost.arena + clients->memory_bytes;
	char given[OUT_TEXT], needs[OUT_TEXT], a[OUT_TEXT], b[OUT_TEXT], good[OUT_TEXT];
	char parts[160] = "";
	struct kv_text t;

	if (need <= p->pages_bytes)
		return TOOL_DONE;
	kv_init(&t, parts, sizeof(parts));
	if (cache->memory_bytes)
		kv_add(&t, "the cache %s, its tables %s", out_size(cache->memory_bytes, a),
			out_size(cache->cost.arena, b));
	if (clients->clients)
		kv_add(&t, "%s%" PRIu32 " clients %s", t.used ? ", " : "", clients->clients,
			out_size(clients->memory_bytes, a));
	opt_format_size(stack_good_memory(need), good, sizeof(good));
	return tool_fail(TOOL_USAGE,
		"create: --memory %s is too little, %s are needed (%s); give --memory %s, or ask "
		"for less",
		out_size(o->memory_bytes, given), out_size(need, needs), parts, good);
}

static json_t *clients_json(const struct clients_plan *c)
{
	json_t *j = json_object();

	out_set_int(j, "clients", c->clients);
	out_set_int(j, "memory_bytes", c->memory_bytes);
	out_set_int(j, "ports", c->ports);
	out_set_int(j, "requests", c->requests);
	return j;
}

static json_t *plan_json(const struct tool *t, const struct xseg_plan *p,
			 const struct cache_plan *c, const struct clients_plan *clients, bool made)
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
	out_set_int(j, "ports", p->nr_ports);
	out_set_int(j, "requests", p->nr_requests);
	if (clients->clients)
		json_object_set_new(j, "clients", clients_json(clients));
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

/* A segment's peers take ports and requests, too: how many is not known here. */
static void print_clients(const struct xseg_plan *p, const struct clients_plan *c)
{
	bool fits = c->ports < p->nr_ports && c->requests < p->nr_requests;

	if (c->clients)
		printf("clients: %" PRIu32 " of %" PRIu32 " ports, %" PRIu32 " of %" PRIu32
		       " requests%s\n",
			c->ports, p->nr_ports, c->requests, p->nr_requests,
			fits ? "; peers need some as well" : "; give more --ports and --requests");
}

static int print_plan(const struct xseg_plan *p, const struct cache_plan *c,
		      const struct clients_plan *clients)
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
	int rc;

	table = out_table_create("RAM\t>bytes\t>");
	for (i = 0; i < nr; i++)
		out_table_row(table, "%s\t%" PRIu64 "\t%s", rows[i].part, rows[i].bytes,
			      out_size(rows[i].bytes, size));
	if (clients->clients)
		out_table_row(table, "clients: their memory, out of the pages\t%" PRIu64 "\t%s",
			      clients->memory_bytes, out_size(clients->memory_bytes, size));
	rc = out_table_print(table);
	print_clients(p, clients);
	return rc;
}

static const char *create_hint(int rc)
{
	const char *hint;

	switch (rc) {
	case -EEXIST:
		return "use it, remove it with 'xseg destroy', or name another with -s";
	case -EPERM:
		return "name a --group that you are in, or make it as root";
	case -ENOMEM:
		return "raise ulimit -v, or ask for less --memory";
	case -ENOSPC:
		return "ask for less --memory";
	default:
		hint = tool_make_hint(rc);
		return hint ? hint : "see 'xseg create --help'";
	}
}

int seg_create(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_create_opts *o = opts;
	struct cache_plan cache = { 0 };
	struct clients_plan clients;
	struct xseg_error err = { "" };
	struct xseg_config cfg;
	struct xseg_plan plan;
	int rc, made = 0;

	(void)argc;
	(void)argv;
	rc = make_config(o, &cfg, &err);
	if (!rc)
		rc = xseg_plan(&cfg, &plan, &err);
	if (rc)
		return tool_fail_errno(rc, &err, "see 'xseg create --help'", "create");
	rc = plan_cache(o, &plan, &cache);
	if (!rc)
		rc = plan_clients(o, &clients);
	if (!rc)
		rc = check_memory(o, &plan, &cache, &clients);
	if (rc)
		return rc;
	if (!o->dry_run)
		made = xseg_create(t->segment, &cfg, &err);
	/* that is all that a dry run is for; of a name that is taken no price is asked */
	if (made != -EEXIST && !t->json && (o->dry_run || !t->quiet))
		rc = print_plan(&plan, &cache, &clients);
	if (made)
		return tool_fail_errno(made, &err, create_hint(made), "create");
	if (rc || o->dry_run)
		return rc || !t->json ? rc : out_json(plan_json(t, &plan, &cache, &clients, false));
	tool_say(t, "segment %s is made", t->segment);
	return t->json ? out_json(plan_json(t, &plan, &cache, &clients, true)) : TOOL_DONE;
}
