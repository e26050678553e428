/* cache_text - see cache_text.h. */
#include "tools/xseg/text/cache_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/text/cache_volume.h"
#include "tools/xseg/text/since.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/tool.h"
#include "tools/xseg/base/view.h"

/* In the order of their numbers in the statistics. The name of what is below stands between the
 * two. */
static const struct promise {
	const char *policy, *before, *after;
} promises[] = {
	{ "write-back", "data acknowledged is in RAM only until flushed", NULL },
	{ "write-through", "data acknowledged is in ", ", too" },
	{ "write-around", "writes go to ", ", past the cache" },
	{ "pass-through", "all goes to ", ", nothing is kept" },
};

/* Of the policy with that name, or NULL. */
static const struct promise *promise_of(const char *policy)
{
	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++)
		if (!strcmp(promises[i].policy, policy))
			return &promises[i];
	return NULL;
}

const char *cache_text_promise(const char *policy, const char *below, char text[CACHE_PROMISE_MAX])
{
	const struct promise *p = promise_of(policy);

	text[0] = '\0';
	if (p)
		snprintf(text, CACHE_PROMISE_MAX, "%s%s%s", p->before, p->after ? below : "",
			p->after ? p->after : "");
	return text;
}

/* Under its policy acknowledged data may be in RAM only: the promise names no store. */
static bool is_in_ram(const json_t *status)
{
	const struct promise *p = promise_of(out_text(status, "policy"));

	return p && !p->after;
}

void cache_text_except(const json_t *status, char text[CACHE_PROMISE_MAX])
{
	const json_t *draining = json_object_get(status, "draining");
	bool drains = json_is_object(draining);
	uint64_t left = drains ? out_int(draining, "bytes_left") : out_int(status, "dirty_bytes");
	size_t len = strlen(text);
	char size[OUT_TEXT];

	if (len && left && !is_in_ram(status))
		snprintf(text + len, CACHE_PROMISE_MAX - len,
			 "; %s %s in RAM only until flushed", out_size(left, size),
			 drains ? "from before are" : "are");
}

/* Volumes have policies of their own. */
static void except_volumes(const json_t *status, char text[CACHE_PROMISE_MAX])
{
	json_t *volumes = json_object_get(status, "volumes"), *v;
	const char *name = NULL;
	size_t i, nr = 0, len = strlen(text);

	json_array_foreach(volumes, i, v)
		if (is_in_ram(v) && !nr++)
			name = out_text(v, "name");
	if (len && nr == 1)
		snprintf(text + len, CACHE_PROMISE_MAX - len,
			 "; that of volume %s is in RAM only until flushed", name);
	else if (len && nr)
		snprintf(text + len, CACHE_PROMISE_MAX - len,
			 "; that of %zu volumes is in RAM only until flushed", nr);
}

const char *cache_text_promise_now(const json_t *status, char text[CACHE_PROMISE_MAX])
{
	const char *policy = json_string_value(json_object_get(status, "policy"));
	const char *below = json_string_value(json_object_get(status, "downstream"));
	char line[CACHE_PROMISE_MAX];

	if (!strcmp(out_text(status, "peer_state"), "stopped")) {
		snprintf(line, sizeof(line),
			 "stopped, it holds nothing; 'xseg peer start %s' starts it",
			 out_text(status, "name"));
		return tool_hints(text, CACHE_PROMISE_MAX, line);
	}
	if (!below && !strcmp(out_text(status, "peer_state"), "opening"))
		return tool_hints(text, CACHE_PROMISE_MAX,
				  "it is starting, and does not serve yet; 'xseg peer list' shows "
				  "its state");
	if (!below)
		return tool_hints(text, CACHE_PROMISE_MAX,
				  "off the path, it gets nothing until 'xseg plug'");
	cache_text_promise(policy ? policy : "", below, text);
	/* one that serves has writes on their way to the store, which are not acknowledged yet */
	if (!json_is_true(json_object_get(status, "answers")) ||
		json_is_object(json_object_get(status, "draining")))
		cache_text_except(status, text);
	if (!is_in_ram(status))
		except_volumes(status, text);
	return text;
}

/* ---- to JSON ----------------------------------------------------------------------------- */

static json_t *value_json(const char *value)
{
	if (*value && strspn(value, "0123456789") == strlen(value))
		return json_integer((json_int_t)strtoull(value, NULL, 10));
	return json_string(value);
}

/* Puts value under "key" or, for "group.key", into the object `group`. Takes the reference. */
static void put(json_t *j, const char *key, json_t *value)
{
	const char *dot = strchr(key, '.');
	char group[XSEG_NAME_MAX];
	json_t *inner;

	if (!dot) {
		json_object_set_new(j, key, value);
		return;
	}
	snprintf(group, sizeof(group), "%.*s", (int)(dot - key), key);
	inner = json_object_get(j, group);
	if (!json_is_object(inner)) {
		json_object_set_new(j, group, json_object());
		inner = json_object_get(j, group);
	}
	json_object_set_new(inner, dot + 1, value);
}

/* An object may be called like a number. */
void cache_text_put(json_t *j, const char *key, const char *value)
{
	put(j, key, strcmp(key, "full.object") ? value_json(value) : json_string(value));
}

/* A cache says the sums itself; the segment has only what they are made of. */
static void fill_in_sum(json_t *j, const char *key, const char *group)
{
	json_int_t sum = 0;
	const char *reason;
	json_t *value;

	json_object_foreach(json_object_get(j, group), reason, value)
		sum += json_integer_value(value);
	if (!json_object_get(j, key))
		json_object_set_new(j, key, json_integer(sum));
}

/* What is null where all is well. */
static const char *const troubles[] = { "full", "flushes_fail", "loads_fail" };

static void fill_in(json_t *j, struct xseg *seg, const struct xseg_peer_info *cache)
{
	static const char *const objects[] = { "bypassed_by", "evicted_by", "flushed_by",
					       "waits_by" };
	json_t *draining = json_object_get(j, "draining");
	struct xseg_peer_info below;
	size_t i;

	out_set_text(j, "name", cache->name);
	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (!json_is_object(json_object_get(j, objects[i])))
			json_object_set_new(j, objects[i], json_object());
	fill_in_sum(j, "bypassed", "bypassed_by");
	fill_in_sum(j, "evicted", "evicted_by");
	if (!json_object_get(j, "volumes"))
		json_object_set_new(j, "volumes", json_array());
	if (!draining)
		json_object_set_new(j, "draining", json_null());
	else if (!json_object_get(draining, "eta_ms"))
		json_object_set_new(draining, "eta_ms", json_null());
	if (!json_object_get(j, "resizing"))
		json_object_set_new(j, "resizing", json_null());
	for (i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		if (!json_object_get(j, troubles[i]))
			json_object_set_new(j, troubles[i], json_null());
	if (xseg_peer_get_info(seg, cache->downstream, &below))
		out_set_text(j, "downstream", below.name);
	else
		json_object_set_new(j, "downstream", json_null());
	out_set_text(j, "peer_state", view_state_name(cache->state));
	out_set_int(j, "generation", cache->generation);
	out_set_int(j, "direct_reads", cache->direct_reads);
	out_set_int(j, "direct_bytes", cache->direct_bytes);
}

json_t *cache_text_to_json(char *text, struct xseg *seg, const struct xseg_peer_info *cache)
{
	json_t *j = json_object();
	char *key, *value;

	while ((key = kv_next_line(&text, &value)))
		if (value)
			cache_text_put(j, key, value);
	fill_in(j, seg, cache);
	out_set_bool(j, "answers", true);
	return j;
}

void cache_text_put_counter(json_t *j, const char *key, uint64_t value)
{
	if (strcmp(key, "policy_number"))
		put(j, key, json_integer((json_int_t)value));
	else if (value < sizeof(promises) / sizeof(promises[0]))
		out_set_text(j, "policy", promises[value].policy);
}

json_t *cache_text_from_stats(struct xseg *seg, const struct xseg_peer_info *cache)
{
	static const char *const states[] = {
		[XSEG_PEER_FREE] = "failed",  [XSEG_PEER_OPENING] = "recovering",
		[XSEG_PEER_LIVE] = "running", [XSEG_PEER_STOPPED] = "failed",
		[XSEG_PEER_DEAD] = "failed",
	};
	const struct xseg_stats_view *block;
	json_t *j = json_object();
	struct view_stats stats;
	uint32_t i;

	out_set_text(j, "policy", "unknown");
	out_set_text(j, "state", states[cache->state]);
	if (view_stats_load(seg, &stats) == 0) {
		block = view_stats_find(&stats, "cache", cache->name);
		for (i = 0; block && i < block->nr; i++)
			cache_text_put_counter(j, block->key[i], block->value[i]);
	}
	view_stats_fini(&stats);
	fill_in(j, seg, cache);
	out_set_bool(j, "answers", false);
	return j;
}

/* ---- to people --------------------------------------------------------------------------- */

const char *cache_text_state(const json_t *status)
{
	return strcmp(out_text(status, "state"), "failed") ? out_text(status, "state") :
							 out_text(status, "peer_state");
}

static void print_member(const char *before, const char *label, json_t *value)
{
	char size[OUT_TEXT];
	const char *unit = strrchr(label, '_');

	if (json_is_string(value))
		printf("%s %s %s", before, label, json_string_value(value));
	else if (unit && !strcmp(unit, "_bytes"))
		printf("%s %s %s", before, label,
			out_size((uint64_t)json_integer_value(value), size));
	else
		printf("%s %s %" JSON_INTEGER_FORMAT, before, label, json_integer_value(value));
}

/* One line for a group of counters: those that are not 0, and what all of them count. */
static void print_group(
	const json_t *status, const char *heading, const char *group, const char *unit)
{
	json_t *members = json_object_get(status, group), *value;
	const char *key;
	bool any = false;

	json_object_foreach(members, key, value) {
		if (json_is_integer(value) && json_integer_value(value) == 0)
			continue;
		if (!any)
			printf("%-9s", heading);
		print_member(any ? "," : "", key, value);
		any = true;
	}
	if (any)
		printf(" %s\n", unit);
}

/* "write-back -> write-through (draining 58%, 212M dirty, 180M/s, ETA 1s)", or just the policy. */
static void print_policy(const json_t *status)
{
	const json_t *d = json_object_get(status, "draining");
	char words[CACHE_PROMISE_MAX], left[OUT_TEXT], rate[OUT_TEXT], eta[OUT_TEXT] = "?";
	const char *policy = out_text(status, "policy"),
		   *promise = cache_text_promise_now(status, words);

	if (json_is_integer(json_object_get(d, "eta_ms")))
		out_time(out_int(d, "eta_ms") * 1000000, eta);
	if (json_is_object(d))
		printf("policy    %s -> %s (draining %" PRIu64 "%%, %s dirty, %s/s, ETA %s)\n",
			out_text(d, "from"), policy, out_int(d, "percent"),
			out_size(out_int(d, "bytes_left"), left),
			out_size(out_int(d, "rate"), rate), eta);
	else
		printf("policy    %s%s%s\n", policy, *promise ? ": " : "", promise);
}

/* "3.0G (resizing to 2.0G, 512M left), 2.1G used, 4k dirty, and 12M for tables" */
static void print_memory(const json_t *s)
{
	const json_t *r = json_object_get(s, "resizing");
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];

	printf("memory    %s", out_size(out_int(s, "memory_bytes"), a));
	if (json_is_object(r))
		printf(" (resizing to %s, %s left)", out_size(out_int(r, "to_bytes"), a),
			out_size(out_int(r, "left_bytes"), b));
	printf(", %s used, %s dirty, and %s for tables\n", out_size(out_int(s, "used_bytes"), a),
	       out_size(out_int(s, "dirty_bytes"), b), out_size(out_int(s, "metadata_bytes"), c));
	if (out_int(s, "unpromised_bytes"))
		printf("unpromised %s: of writes that are not acknowledged\n",
			out_size(out_int(s, "unpromised_bytes"), a));
}

/* The volume for which the store is full, else the cache: they have a policy. */
static const json_t *full_volume(const json_t *s, const json_t *full)
{
	const json_t *volumes = json_object_get(s, "volumes"), *v;
	size_t i;

	json_array_foreach(volumes, i, v)
		if (out_int(v, "id") == out_int(full, "id"))
			return v;
	return s;
}

/* Since when the store is full, and for what. */
static void print_full(const json_t *s, const char *before)
{
	const json_t *f = json_object_get(s, "full");
	const char *volume = out_text(f, "volume");
	uint64_t others = out_int(f, "volumes") > 1 ? out_int(f, "volumes") - 1 : 0;
	bool waits = strcmp(out_text(s, "store_full"), "fail") && is_in_ram(full_volume(s, f));
	char since[SINCE_TEXT];

	if (!json_is_object(f))
		return;
	printf("%sthe store is full %s for %s %s", before,
		since_ago_text(out_int(f, "ms"), since), *volume ? "volume" : "object",
		*volume ? volume : out_text(f, "object"));
	if (others)
		printf(", and for %" PRIu64 " more volume%s", others, out_s(others));
	printf(":\n%*snew writes of it %s; make room there, or remove a volume\n",
		(int)strlen(before), "", waits ? "wait when memory runs out" : "fail");
}

/* "flushes fail since 18:03:07 (12s): No space left on device; ..." */
static void print_trouble(const json_t *s, const char *key, const char *words, const char *next,
	const char *before)
{
	const json_t *trouble = json_object_get(s, key);
	char since[SINCE_TEXT];

	if (json_is_object(trouble))
		printf("%s%s %s: %s; %s\n", before, words,
			since_ago_text(out_int(trouble, "ms"), since), out_text(trouble, "error"),
			next);
}

/* A FLUSH is tried again only by the next one. Until then the cache writes again what it still
 * has. */
static void print_flush_trouble(const json_t *s, const char *before)
{
	const json_t *trouble = json_object_get(s, "flushes_fail");
	char next[128 + XSEG_NAME_MAX], line[sizeof(next) + XSEG_NAME_MAX];

	if (strcmp(out_text(trouble, "of"), "flush")) {
		print_trouble(s, "flushes_fail", "the store fails flushes",
			"each is tried again after 5s at most", before);
		return;
	}
	snprintf(next, sizeof(next),
		"the cache writes it again, and the next flush makes it stable, such as 'xseg "
		"cache flush %s'",
		out_text(s, "name"));
	print_trouble(s, "flushes_fail", "the store fails to make its data stable",
		tool_hints(line, sizeof(line), next), before);
}

void cache_text_print_troubles(const json_t *s, const char *before)
{
	bool full = json_is_object(json_object_get(s, "full"));

	print_full(s, before);
	if (!full || out_int(json_object_get(s, "flushes_fail"), "errno") != ENOSPC)
		print_flush_trouble(s, before);
	print_trouble(s, "loads_fail", "the store fails loads", "its log says of which object",
		before);
}

/* What failed since the cache was made, also if all is well now. */
static void print_errors(const json_t *s)
{
	bool now = json_is_object(json_object_get(s, "flushes_fail")) ||
		   json_is_object(json_object_get(s, "loads_fail"));

	if (out_int(s, "flush_errors") || out_int(s, "load_errors"))
		printf("errors    of the store: %" PRIu64 " of flushes, %" PRIu64 " of loads%s\n",
			out_int(s, "flush_errors"), out_int(s, "load_errors"),
			now ? "" : "; none fails now");
	cache_text_print_troubles(s, "trouble   ");
}

void cache_text_print(const json_t *s)
{
	uint64_t hits = out_int(s, "hits"),
		 looks = hits + out_int(s, "misses") + out_int(s, "partial");
	uint64_t direct = out_int(s, "direct_reads");
	char a[OUT_TEXT], b[OUT_TEXT];

	printf("cache     %s, %s, generation %" PRIu64 "\n", out_text(s, "name"),
	       cache_text_state(s), out_int(s, "generation"));
	print_policy(s);
	print_memory(s);
	printf("objects   %" PRIu64 "\n", out_int(s, "objects"));
	printf("requests  %" PRIu64 " reads, %" PRIu64 " writes\n", out_int(s, "reads"),
	       out_int(s, "writes"));
	printf("looked up %" PRIu64 " reads: %" PRIu64 " hits (%s), %" PRIu64 " misses, %" PRIu64
	       " partial; %" PRIu64 " reads bypassed\n",
	       looks, hits, out_percent(hits, looks, a), out_int(s, "misses"),
	       out_int(s, "partial"), out_int(s, "bypassed"));
	if (direct)
		printf("directly  %" PRIu64 " reads of %s, without a request; with them %s hits\n",
			direct, out_bytes(out_int(s, "direct_bytes"), a),
			out_percent(hits + direct, looks + direct, b));
	print_group(s, "bypassed", "bypassed_by", "reads");
	printf("evicted   %" PRIu64 " buckets\n", out_int(s, "evicted"));
	print_group(s, " by", "evicted_by", "buckets");
	printf("flushed   %s\n", out_size(out_int(s, "flushed_bytes"), a));
	print_group(s, " by", "flushed_by", "buckets");
	print_group(s, "waited", "waits_by", "times; a request may wait several times");
	print_errors(s);
	cache_volumes_print(json_object_get(s, "volumes"));
}
