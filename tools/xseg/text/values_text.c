/* values_text - see values_text.h. */
#include "tools/xseg/text/values_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/xseg/base/out.h"

/* A counter that is shown unless it is 0. */
struct shown {
	const char *key, *text;
};

static void print_keys(const json_t *j)
{
	printf("keys      %" PRIu64 " of %" PRIu64, out_int(j, "keys"), out_int(j, "keys_max"));
	if (out_int(j, "tombstones"))
		printf(", and %" PRIu64 " deleted ones whose old values are still in the log",
			out_int(j, "tombstones"));
	putchar('\n');
}

static void print_log(const json_t *j)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];
	uint64_t zones = out_int(j, "zones");

	printf("log       %s of %s live, in %" PRIu64 " zone%s of %s together, %" PRIu64
	       " free\n",
		out_bytes(out_int(j, "live_bytes"), a),
		out_size(out_int(j, "size_bytes"), b), zones,
		out_s(zones), out_size(out_int(j, "log_bytes"), c),
		out_int(j, "zones_free"));
}

static void print_large(const json_t *j)
{
	uint64_t keys = out_int(j, "large_keys");
	char bytes[OUT_TEXT];

	if (keys)
		printf("large     %" PRIu64 " value%s of %s, in %" PRIu64
		       " zones of their own\n",
			keys, out_s(keys), out_bytes(out_int(j, "large_bytes"), bytes),
			out_int(j, "large_zones"));
}

/* When a change is answered, and is safe from a loss of power. */
static void print_sync(const json_t *j)
{
	const char *sync = out_text(j, "sync");
	char dirty[OUT_TEXT];

	printf("sync      ");
	if (!strcmp(sync, "always"))
		printf("always: a change is answered when it survives a power cut\n");
	else if (!strcmp(sync, "written"))
		printf("written: a change is answered when the peer below has it, and survives a "
		       "power cut after a flush\n");
	else if (!strcmp(sync, "never"))
		printf("never: a change survives any kill, and a power cut after a flush\n");
	else
		printf("%s: a change survives any kill, and a power cut after that time\n", sync);
	printf("dirty     %s not flushed yet\n", out_bytes(out_int(j, "dirty_bytes"), dirty));
}

static void print_shown(const json_t *j, const char *heading, const struct shown *s, size_t nr)
{
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		if (!out_int(j, s[i].key))
			continue;
		if (any)
			printf(", ");
		else
			printf("%-10s", heading);
		printf("%" PRIu64 " %s", out_int(j, s[i].key), s[i].text);
		any = true;
	}
	if (any)
		putchar('\n');
}

static void print_requests(const json_t *j)
{
	static const struct shown rest[] = {
		{ "expired", "expired" },
		{ "evicted", "evicted as the log was full" },
		{ "refused", "refused as the log or its index was full" },
		{ "looks", "read once more by kvd" },
	};
	uint64_t gets = out_int(j, "gets"), hits = out_int(j, "hits");
	uint64_t puts = out_int(j, "puts"), deletes = out_int(j, "deletes"),
		 scans = out_int(j, "scans");
	char share[OUT_TEXT];

	printf("requests  %" PRIu64 " get%s (%s found), ", gets, out_s(gets),
		out_percent(hits, gets, share));
	printf("%" PRIu64 " put%s, %" PRIu64 " delete%s, %" PRIu64 " scan%s\n", puts, out_s(puts),
		deletes, out_s(deletes), scans, out_s(scans));
	print_shown(j, "values", rest, sizeof(rest) / sizeof(rest[0]));
}

static void print_writes(const json_t *j)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];

	printf("appended  %s since it was started, and %s copied by compaction; %s written below "
	       "in all, %" PRIu64 " flush%s\n",
		out_bytes(out_int(j, "appended_bytes"), a),
		out_bytes(out_int(j, "compacted_bytes"), b),
		out_bytes(out_int(j, "written_bytes"), c),
		out_int(j, "flushes"), out_int(j, "flushes") == 1 ? "" : "es");
}

static void print_opening(const json_t *j)
{
	char took[OUT_TEXT], index[OUT_TEXT];

	printf("index     %s of RAM, built in %s", out_size(out_int(j, "index_bytes"), index),
		out_time(out_int(j, "opened_ns"), took));
	if (out_int(j, "opened_by_scan"))
		printf("; %" PRIu64 " zone%s had no hints, and had to be read whole",
			out_int(j, "opened_by_scan"), out_s(out_int(j, "opened_by_scan")));
	putchar('\n');
}

void values_text_print(const json_t *j)
{
	static const struct shown damage[] = {
		{ "bad_records", "records do not verify; 'xseg kv verify' names them" },
		{ "holes", "gaps were found at an opening" },
		{ "repairs", "times the log appended anew, as a write or flush had failed" },
	};

	printf("values    %s, prefix %s\n", out_text(j, "state"), out_text(j, "prefix"));
	print_keys(j);
	print_log(j);
	print_large(j);
	print_sync(j);
	print_requests(j);
	print_writes(j);
	print_opening(j);
	print_shown(j, "damage", damage, sizeof(damage) / sizeof(damage[0]));
}
