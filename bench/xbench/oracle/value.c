/* value - see value.h. */
#include "bench/xbench/oracle/value.h"

#include <string.h>

#include "bench/xbench/plan/gen.h"
#include "bench/xbench/plan/kv_options.h"
#include "xseg/xseg.h"
#include "xtypes/xcrc.h"

#define MAGIC	   0x3165756c61766278ull
#define MARK_BYTES 8u

struct head {
	uint64_t magic;
	struct xb_value_stamp stamp;
	uint32_t bytes, crc;
};

_Static_assert(sizeof(struct head) + MARK_BYTES <= XB_STAMPED_MIN, "head and mark fit");

static uint64_t mark_of(uint64_t run)
{
	return xb_mix(~run);
}

/* Over all of the value, as if its sum were 0. */
static uint32_t sum(const void *value, uint32_t bytes)
{
	struct head head;

	memcpy(&head, value, sizeof(head));
	head.crc = 0;
	return xcrc32c(xcrc32c(0, &head, sizeof(head)), (const char *)value + sizeof(head),
		bytes - sizeof(head));
}

static void fill(char *to, uint32_t bytes, uint64_t seed)
{
	uint64_t word;

	for (uint64_t i = 0; bytes; i++) {
		uint32_t n = bytes < sizeof(word) ? bytes : (uint32_t)sizeof(word);

		word = (seed + i) * 0x9e3779b97f4a7c15ull ^ (seed >> 7);
		memcpy(to, &word, n);
		to += n;
		bytes -= n;
	}
}

void xb_value_write(void *value, uint32_t bytes, const struct xb_value_stamp *stamp)
{
	struct head head = { .magic = MAGIC, .stamp = *stamp, .bytes = bytes };
	uint64_t mark = mark_of(stamp->run);
	char *body = (char *)value + sizeof(head);

	memcpy(value, &head, sizeof(head));
	fill(body, bytes - (uint32_t)sizeof(head) - MARK_BYTES,
		xb_mix(stamp->run ^ xb_mix(stamp->tag ^ xb_mix(stamp->key))));
	memcpy((char *)value + bytes - MARK_BYTES, &mark, MARK_BYTES);
	head.crc = sum(value, bytes);
	memcpy(value, &head, sizeof(head));
}

static uint64_t other_value(uint64_t hash)
{
	return (hash & ~XB_VALUE_SPARE) | XB_VALUE_OTHER;
}

static void read_stamped(const struct xb_value_stamp *stamp, const struct xb_whose *w, uint64_t key,
			 struct xb_seen *seen)
{
	seen->run = stamp->run;
	seen->offset = xb_value_offset(stamp->key);
	if (stamp->run != w->run) {
		seen->kind = XB_SEEN_OTHER;
		seen->value = other_value(xb_mix(
			stamp->run ^ xb_mix(stamp->tag ^ xb_mix(stamp->key ^ stamp->target))));
		return;
	}
	seen->kind = stamp->target == w->target && stamp->key == key ? XB_SEEN_OURS
								     : XB_SEEN_MISPLACED;
	seen->value = stamp->tag;
}

static bool has_mark(const char *value, uint64_t bytes, uint64_t run)
{
	uint64_t mark;

	if (bytes < MARK_BYTES)
		return false;
	memcpy(&mark, value + bytes - MARK_BYTES, MARK_BYTES);
	return mark == mark_of(run);
}

void xb_value_read(const void *value, uint64_t bytes, const struct xb_whose *whose, uint64_t key,
		   struct xb_seen *seen)
{
	struct head head = { 0 };
	bool stamped, ours;

	if (bytes >= sizeof(head))
		memcpy(&head, value, sizeof(head));
	stamped = head.magic == MAGIC;
	*seen = (struct xb_seen){ .offset = xb_value_offset(key) };
	if (stamped && bytes == head.bytes && head.crc == sum(value, head.bytes)) {
		read_stamped(&head.stamp, whose, key, seen);
		return;
	}
	ours = (stamped && head.stamp.run == whose->run) || has_mark(value, bytes, whose->run);
	seen->kind = ours ? XB_SEEN_TORN : stamped ? XB_SEEN_BROKEN : XB_SEEN_UNSTAMPED;
	/* another reader of a foreign value may have room for less of it */
	seen->value = other_value(
		xseg_hash(value, ours || bytes < XB_STAMPED_MIN ? bytes : XB_STAMPED_MIN));
}

void xb_value_absent(struct xb_seen *seen)
{
	*seen = (struct xb_seen){ .kind = XB_SEEN_ZERO, .value = XB_VALUE_ZERO };
}
