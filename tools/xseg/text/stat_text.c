/* stat_text - see stat_text.h. */
#include "tools/xseg/text/stat_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/xseg/text/cache_text.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/tool.h"

enum stat_group {
	GROUP_PEER, GROUP_CACHE, GROUP_VOLUME, GROUP_STORE, GROUP_GATEWAY, NR_GROUPS
};

static const char *const group_names[NR_GROUPS] = { "peers", "caches", "volumes", "values",
	"gateways" };

/* What every element of the JSON has, whatever its block counts. */
struct common {
	uint64_t ops, bytes, errors, awake_idle_ns;
	const struct xhist *lat;
};

int stat_take(struct xseg *seg, struct stat_snapshot *snapshot)
{
	snapshot->at_ns = tool_now_ns();
	return view_stats_load(seg, &snapshot->stats);
}

void stat_drop(struct stat_snapshot *snapshot)
{
	view_stats_fini(&snapshot->stats);
}

static enum stat_group group_of(const struct xseg_stats_view *block)
{
	if (!strcmp(block->kind, "cache"))
		return GROUP_CACHE;
	if (!strcmp(block->kind, "kv"))
		return GROUP_STORE;
	if (!strcmp(block->kind, "gateway"))
		return GROUP_GATEWAY;
	return view_stats_is_volume(block) ? GROUP_VOLUME : GROUP_PEER;
}

/* ---- differences ------------------------------------------------------------------------- */

static bool is_level(const char *key)
{
	static const char *const levels[] = {
		"memory_bytes",   "used_bytes", "dirty_bytes",   "unpromised_bytes",
		"metadata_bytes", "objects",    "policy_number", "limbo_bytes",
		"keys",		  "live_bytes", "curr_connections", "waiting", "limit_iops",
		"limit_bandwidth_bytes",
	};
	size_t i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(levels[i], key))
			return true;
	return false;
}

static bool counts_less(const struct xseg_stats_view *newer, const struct xseg_stats_view *older)
{
	uint32_t i;

	for (i = 0; i < newer->nr; i++)
		if (!is_level(newer->key[i]) &&
		    newer->value[i] < xseg_stats_value(older, newer->key[i]))
			return true;
	return false;
}

static void subtract(struct xseg_stats_view *block, const struct xseg_stats_view *older)
{
	uint32_t i;

	if (!older || counts_less(block, older))
		return;
	for (i = 0; i < block->nr; i++)
		if (!is_level(block->key[i]))
			block->value[i] -= xseg_stats_value(older, block->key[i]);
	xhist_sub(&block->lat, &block->lat, &older->lat);
}

/* A copy of newer's blocks, less what older had. NULL: no memory. */
static struct xseg_stats_view *differences(const struct stat_snapshot *older,
					   const struct stat_snapshot *newer)
{
	struct xseg_stats_view *blocks = calloc(newer->stats.nr + 1, sizeof(*blocks));
	uint32_t i;

	for (i = 0; blocks && i < newer->stats.nr; i++) {
		blocks[i] = newer->stats.block[i];
		if (older)
			subtract(&blocks[i], view_stats_same(&older->stats, &blocks[i]));
	}
	return blocks;
}

/* A volume's, with and without a request. */
static uint64_t reads_of(const struct xseg_stats_view *volume)
{
	return xseg_stats_value(volume, "reads") + xseg_stats_value(volume, "direct_reads");
}

static uint64_t read_bytes_of(const struct xseg_stats_view *volume)
{
	return xseg_stats_value(volume, "read_bytes") + xseg_stats_value(volume, "direct_bytes");
}

/* Requests of a cache and of a store are counted by the peer; a volume's by direction only. */
static struct common common_of(const struct view_stats *all, const struct xseg_stats_view *block)
{
	const struct xseg_stats_view *peer = NULL;
	struct common c;

	if (group_of(block) == GROUP_CACHE)
		peer = view_stats_find(all, "cached", block->name);
	if (group_of(block) == GROUP_STORE)
		peer = view_stats_find(all, "kvd", block->name);
	if (!peer)
		peer = block;
	c.ops = xseg_stats_value(peer, "ops");
	c.bytes = xseg_stats_value(peer, "bytes");
	c.errors = xseg_stats_value(peer, "errors");
	c.awake_idle_ns = xseg_stats_value(peer, "awake_idle_ns");
	c.lat = &peer->lat;
	if (group_of(block) == GROUP_VOLUME) {
		c.ops = reads_of(block) + xseg_stats_value(block, "writes") +
			xseg_stats_value(block, "flushes");
		c.bytes = read_bytes_of(block) + xseg_stats_value(block, "write_bytes");
	}
	return c;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *lat_json(const struct xhist *lat)
{
	json_t *j = json_object();
	uint64_t count = atomic_load(&lat->count);

	out_set_int(j, "count", count);
	out_set_int(j, "mean", xhist_mean(lat));
	out_set_int(j, "p50", xhist_percentile(lat, 50));
	out_set_int(j, "p99", xhist_percentile(lat, 99));
	out_set_int(j, "p999", xhist_percentile(lat, 99.9));
	out_set_int(j, "max", count ? atomic_load(&lat->max) : 0);
	return j;
}

/* A cache's hits, and all of which they are a part. A read without a request is a hit. */
struct ratio {
	uint64_t hits, all;
};

static struct ratio hits_of(const struct xseg_stats_view *cache)
{
	uint64_t hits = xseg_stats_value(cache, "hits") + xseg_stats_value(cache, "direct_reads");

	return (struct ratio){ hits, hits + xseg_stats_value(cache, "misses") +
					     xseg_stats_value(cache, "partial") };
}

static struct ratio hit_bytes_of(const struct xseg_stats_view *cache)
{
	uint64_t hits =
		xseg_stats_value(cache, "hit_bytes") + xseg_stats_value(cache, "direct_bytes");

	return (struct ratio){ hits, hits + xseg_stats_value(cache, "miss_bytes") };
}

static uint64_t millionths(struct ratio r)
{
	return r.all ? (uint64_t)(1e6 * (double)r.hits / (double)r.all) : 0;
}

/* Ratios, beside what they are made of. */
static void set_hit_ratios(json_t *j, const struct xseg_stats_view *block)
{
	struct ratio requests = hits_of(block), bytes = hit_bytes_of(block);

	out_set_int(j, "lookups", requests.all - xseg_stats_value(block, "direct_reads"));
	out_set_int(j, "lookup_bytes", bytes.all - xseg_stats_value(block, "direct_bytes"));
	out_set_int(j, "hit_ratio_requests_ppm", millionths(requests));
	out_set_int(j, "hit_ratio_bytes_ppm", millionths(bytes));
}

static json_t *block_json(const struct view_stats *all, const struct xseg_stats_view *block)
{
	struct common c = common_of(all, block);
	json_t *j = json_object();
	uint32_t i;

	out_set_text(j, "name", block->name);
	if (group_of(block) == GROUP_PEER)
		out_set_text(j, "kind", block->kind);
	if (group_of(block) == GROUP_VOLUME)
		out_set_text(j, "volumed", all->volumed[block - all->block]);
	for (i = 0; i < block->nr; i++)
		cache_text_put_counter(j, block->key[i], block->value[i]);
	out_set_int(j, "ops", c.ops);
	out_set_int(j, "bytes", c.bytes);
	out_set_int(j, "errors", c.errors);
	out_set_int(j, "awake_idle_ns", c.awake_idle_ns);
	json_object_set_new(j, "lat_ns", lat_json(c.lat));
	if (group_of(block) == GROUP_CACHE)
		set_hit_ratios(j, block);
	return j;
}

json_t *stat_json(const struct stat_snapshot *older, const struct stat_snapshot *newer)
{
	struct view_stats all = { newer->stats.nr, differences(older, newer),
				  newer->stats.volumed };
	json_t *j = json_object(), *group[NR_GROUPS];
	uint32_t i;

	out_set_int(j, "at_ns", newer->at_ns);
	out_set_int(j, "interval_ns", older ? newer->at_ns - older->at_ns : 0);
	for (i = 0; i < NR_GROUPS; i++) {
		group[i] = json_array();
		json_object_set_new(j, group_names[i], group[i]);
	}
	json_object_set(j, "stores", group[GROUP_STORE]);	/* the older name of values */
	for (i = 0; all.block && i < all.nr; i++)
		json_array_append_new(group[group_of(&all.block[i])],
				      block_json(&all, &all.block[i]));
	free(all.block);
	return j;
}

/* ---- tables ------------------------------------------------------------------------------ */

struct writing {
	struct view_stats all;
	uint64_t interval_ns;			/* 0: counts since the beginning */
	bool narrow;
	bool several;				/* volumeds have volumes */
};

static uint64_t per_second(const struct writing *w, uint64_t count)
{
	return w->interval_ns ? (uint64_t)((double)count * 1e9 / (double)w->interval_ns) : count;
}

static const char *lat_text(const struct xhist *lat, double percentile, char *buf)
{
	if (atomic_load(&lat->count))
		return out_time(xhist_percentile(lat, percentile), buf);
	return "-";
}

static void add_peer(const struct writing *w, struct out_table *table,
		     const struct xseg_stats_view *b)
{
	struct common c = common_of(&w->all, b);
	char ops[OUT_TEXT], bytes[OUT_TEXT], p50[OUT_TEXT], p99[OUT_TEXT], p999[OUT_TEXT],
		idle[OUT_TEXT];

	out_count(per_second(w, c.ops), ops);
	out_size(per_second(w, c.bytes), bytes);
	if (w->interval_ns)
		out_percent(c.awake_idle_ns, w->interval_ns, idle);
	else
		out_time(c.awake_idle_ns, idle);
	out_table_row(table, "%.*s\t%s\t%s\t%s\t%" PRIu64 "\t%s\t%s\t%s\t%s",
		      w->narrow ? 16 : XSEG_NAME_MAX, b->name, b->kind, ops, bytes, c.errors,
		      lat_text(c.lat, 50, p50), lat_text(c.lat, 99, p99),
		      lat_text(c.lat, 99.9, p999), idle);
}

static void add_cache(const struct writing *w, struct out_table *table,
		      const struct xseg_stats_view *b)
{
	struct ratio by_reads = hits_of(b), by_bytes = hit_bytes_of(b);
	char requests[OUT_TEXT], bytes[OUT_TEXT], used[OUT_TEXT], dirty[OUT_TEXT],
		flushed[OUT_TEXT], memory[OUT_TEXT], direct[OUT_TEXT];

	out_percent(by_reads.hits, by_reads.all, requests);
	out_percent(by_bytes.hits, by_bytes.all, bytes);
	out_count(per_second(w, xseg_stats_value(b, "direct_reads")), direct);
	out_size(xseg_stats_value(b, "memory_bytes"), memory);
	out_size(xseg_stats_value(b, "used_bytes"), used);
	out_size(xseg_stats_value(b, "dirty_bytes"), dirty);
	out_size(per_second(w, xseg_stats_value(b, "flushed_bytes")), flushed);
	out_table_row(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", w->narrow ? 16 : XSEG_NAME_MAX,
		      b->name, requests, bytes, direct, memory, used, dirty, flushed);
}

/* Whether volumes of several volumeds are there, which may have one name. */
static bool several_volumeds(const struct view_stats *all)
{
	const char *first = NULL;
	uint32_t i;

	for (i = 0; i < all->nr; i++) {
		if (!view_stats_is_volume(&all->block[i]))
			continue;
		if (first && strcmp(first, all->volumed[i]))
			return true;
		first = all->volumed[i];
	}
	return false;
}

/* "500/s 10M/s"; "-": it has none. */
static const char *limits_text(const struct xseg_stats_view *b, char text[2 * OUT_TEXT])
{
	uint64_t iops = xseg_stats_value(b, "limit_iops");
	uint64_t bytes = xseg_stats_value(b, "limit_bandwidth_bytes");
	char nr[OUT_TEXT], size[OUT_TEXT];

	snprintf(text, 2 * OUT_TEXT, "%s%s%s%s%s%s", iops ? out_count(iops, nr) : "",
		iops ? "/s" : "", iops && bytes ? " " : "", bytes ? out_size(bytes, size) : "",
		bytes ? "/s" : "", iops || bytes ? "" : "-");
	return text;
}

static void add_volume(const struct writing *w, struct out_table *table,
		       const struct xseg_stats_view *b)
{
	char name[2 * XSEG_NAME_MAX];
	char reads[OUT_TEXT], writes[OUT_TEXT], in[OUT_TEXT], out[OUT_TEXT], flushes[OUT_TEXT],
		p50[OUT_TEXT], p99[OUT_TEXT], p999[OUT_TEXT], limits[2 * OUT_TEXT];

	out_count(per_second(w, reads_of(b)), reads);
	out_size(per_second(w, read_bytes_of(b)), out);
	out_count(per_second(w, xseg_stats_value(b, "writes")), writes);
	out_size(per_second(w, xseg_stats_value(b, "write_bytes")), in);
	out_count(per_second(w, xseg_stats_value(b, "flushes")), flushes);
	snprintf(name, sizeof(name), "%s%s%s", w->several ? w->all.volumed[b - w->all.block] : "",
		 w->several ? "/" : "", b->name);
	out_table_row(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%s\t%s\t%s\t%s\t%" PRIu64,
		      w->narrow ? 16 : (int)sizeof(name), name, reads, out, writes, in, flushes,
		      xseg_stats_value(b, "errors"), lat_text(&b->lat, 50, p50),
		      lat_text(&b->lat, 99, p99), lat_text(&b->lat, 99.9, p999),
		      limits_text(b, limits), xseg_stats_value(b, "waiting"));
}

static void add_store(const struct writing *w, struct out_table *table,
		      const struct xseg_stats_view *b)
{
	struct common c = common_of(&w->all, b);
	uint64_t hits = xseg_stats_value(b, "hits");
	char gets[OUT_TEXT], hit[OUT_TEXT], puts[OUT_TEXT], deletes[OUT_TEXT], keys[OUT_TEXT],
		live[OUT_TEXT], p50[OUT_TEXT], p99[OUT_TEXT];

	out_count(per_second(w, xseg_stats_value(b, "gets")), gets);
	out_percent(hits, hits + xseg_stats_value(b, "misses"), hit);
	out_count(per_second(w, xseg_stats_value(b, "puts")), puts);
	out_count(per_second(w, xseg_stats_value(b, "deletes")), deletes);
	out_count(xseg_stats_value(b, "keys"), keys);
	out_size(xseg_stats_value(b, "live_bytes"), live);
	out_table_row(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%s\t%s",
		      w->narrow ? 16 : XSEG_NAME_MAX, b->name, gets, hit, puts, deletes, keys,
		      live, xseg_stats_value(b, "bad_records"), lat_text(c.lat, 50, p50),
		      lat_text(c.lat, 99, p99));
}

static void add_gateway(const struct writing *w, struct out_table *table,
		      const struct xseg_stats_view *b)
{
	uint64_t hits = xseg_stats_value(b, "get_hits");
	char gets[OUT_TEXT], hit[OUT_TEXT], sets[OUT_TEXT], in[OUT_TEXT], out[OUT_TEXT];

	out_count(per_second(w, xseg_stats_value(b, "cmd_get")), gets);
	out_percent(hits, hits + xseg_stats_value(b, "get_misses"), hit);
	out_count(per_second(w, xseg_stats_value(b, "cmd_set")), sets);
	out_size(per_second(w, xseg_stats_value(b, "bytes_read")), in);
	out_size(per_second(w, xseg_stats_value(b, "bytes_written")), out);
	out_table_row(table, "%.*s\t%" PRIu64 "\t%s\t%s\t%s\t%s\t%s\t%" PRIu64,
		      w->narrow ? 16 : XSEG_NAME_MAX, b->name,
		      xseg_stats_value(b, "curr_connections"), gets, hit, sets, in, out,
		      xseg_stats_value(b, "errors"));
}

static const struct {
	const char *headings[2];		/* totals; per second */
	void (*add)(const struct writing *w, struct out_table *table,
		    const struct xseg_stats_view *b);
} tables[NR_GROUPS] = {
	[GROUP_PEER] = { { "PEER\tKIND\t>OPS\t>BYTES\t>ERRORS\t>P50\t>P99\t>P99.9\t>IDLE AWAKE",
			   "PEER\tKIND\t>OPS/s\t>B/s\t>ERRORS\t>P50\t>P99\t>P99.9\t>IDLE AWAKE" },
			 add_peer },
	[GROUP_CACHE] = { { "CACHE\t>HITS\t>BY BYTES\t>DIRECT\t>MEMORY\t>USED\t>DIRTY\t>FLUSHED",
			    "CACHE\t>HITS\t>BY "
			    "BYTES\t>DIRECT/s\t>MEMORY\t>USED\t>DIRTY\t>FLUSHED/s" },
			  add_cache },
	[GROUP_VOLUME] = { { "VOLUME\t>READS\t>BYTES\t>WRITES\t>BYTES\t>FLUSHES\t>ERRORS"
			     "\t>P50\t>P99\t>P99.9\t>LIMITS\t>WAITING",
			     "VOLUME\t>READS/s\t>B/s\t>WRITES/s\t>B/s\t>FLUSHES/s\t>ERRORS"
			     "\t>P50\t>P99\t>P99.9\t>LIMITS\t>WAITING" },
			   add_volume },
	[GROUP_STORE] = { { "VALUES\t>GETS\t>HITS\t>PUTS\t>DELETES\t>KEYS\t>LIVE\t>BAD"
			    "\t>P50\t>P99",
			    "VALUES\t>GETS/s\t>HITS\t>PUTS/s\t>DELETES/s\t>KEYS\t>LIVE\t>BAD"
			    "\t>P50\t>P99" },
			  add_store },
	[GROUP_GATEWAY] = { { "GATEWAY\t>CONNECTIONS\t>GETS\t>HITS\t>SETS\t>IN\t>OUT\t>ERRORS",
			      "GATEWAY\t>CONNECTIONS\t>GETS/s\t>HITS\t>SETS/s\t>IN/s\t>OUT/s"
			      "\t>ERRORS" },
			    add_gateway },
};

static void write_group(const struct writing *w, enum stat_group group, FILE *out)
{
	struct out_table *table = out_table_create(tables[group].headings[w->interval_ns != 0]);
	uint32_t i, nr = 0;

	for (i = 0; i < w->all.nr; i++)
		if (group_of(&w->all.block[i]) == group) {
			tables[group].add(w, table, &w->all.block[i]);
			nr++;
		}
	if (nr)
		out_table_write(table, out);
	else
		out_table_free(table);
}

void stat_write(const struct stat_snapshot *older, const struct stat_snapshot *newer, bool narrow,
		FILE *out)
{
	struct writing w = { .narrow = narrow,
			     .interval_ns = older ? newer->at_ns - older->at_ns : 0 };
	enum stat_group group;

	w.all = (struct view_stats){ newer->stats.nr, differences(older, newer),
				     newer->stats.volumed };
	w.several = w.all.block && several_volumeds(&w.all);
	for (group = 0; w.all.block && group < NR_GROUPS; group++)
		write_group(&w, group, out);
	free(w.all.block);
}
