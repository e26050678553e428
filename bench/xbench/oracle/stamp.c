/* stamp - see stamp.h. */
#include "bench/xbench/oracle/stamp.h"

#include <string.h>

#include "bench/xbench/plan/gen.h"
#include "xseg/xseg.h"
#include "xtypes/xcrc.h"

#define MAGIC 0x3176686e65627821ull
#define WORDS (XB_SECTOR / 8)
#define CRC_AT (XB_SECTOR - 4)

struct sector {
	uint64_t magic;
	struct xb_stamp stamp;
	uint64_t fill[WORDS - 7];
	uint32_t mark, crc;
};

_Static_assert(sizeof(struct sector) == XB_SECTOR, "a stamped sector is a sector");

/* ---- sectors ----------------------------------------------------------------------------- */

static uint32_t run_mark(uint64_t run)
{
	return (uint32_t)xb_mix(run);
}

void xb_stamp_write(void *sector, const struct xb_stamp *stamp)
{
	struct sector *s = sector;
	uint64_t seed = xb_mix(stamp->run ^ xb_mix(stamp->tag ^ xb_mix(stamp->offset)));

	s->magic = MAGIC;
	s->stamp = *stamp;
	for (uint32_t i = 0; i < WORDS - 7; i++)
		s->fill[i] = (seed + i) * 0x9e3779b97f4a7c15ull ^ (seed >> 7);
	s->mark = run_mark(stamp->run);
	s->crc = xcrc32c(0, s, CRC_AT);
}

static bool is_zero(const struct sector *s)
{
	const uint64_t *word = (const uint64_t *)s;
	uint64_t any = 0;

	if (s->magic)
		return false;
	for (uint32_t i = 0; i < WORDS; i++)
		any |= word[i];
	return any == 0;
}

static uint64_t other_value(uint64_t hash)
{
	return (hash & ~XB_VALUE_SPARE) | XB_VALUE_OTHER;
}

static bool is_ours(const struct sector *s, const struct xb_whose *w)
{
	return w->any_run ? s->stamp.signature == w->signature : s->stamp.run == w->run;
}

static void read_stamped(const struct sector *s, const struct xb_whose *w, uint64_t offset,
			 struct xb_seen *seen)
{
	const struct xb_stamp *stamp = &s->stamp;

	seen->run = stamp->run;
	seen->offset = stamp->offset;
	if (!is_ours(s, w)) {
		seen->kind = XB_SEEN_OTHER;
		seen->value = other_value(xb_mix(
			stamp->run ^ xb_mix(stamp->tag ^ xb_mix(stamp->offset ^ stamp->target))));
	} else {
		seen->kind = stamp->target == w->target && stamp->offset == offset
				     ? XB_SEEN_OURS
				     : XB_SEEN_MISPLACED;
		seen->value = stamp->tag;
	}
}

void xb_stamp_read(const void *sector, const struct xb_whose *whose, uint64_t offset,
		   struct xb_seen *seen)
{
	const struct sector *s = sector;
	bool ours;

	*seen = (struct xb_seen){ .kind = XB_SEEN_ZERO, .value = XB_VALUE_ZERO };
	if (is_zero(s))
		return;
	if (s->magic == MAGIC && s->crc == xcrc32c(0, s, CRC_AT)) {
		read_stamped(s, whose, offset, seen);
		return;
	}
	ours = (s->magic == MAGIC && is_ours(s, whose)) ||
	       (!whose->any_run && s->mark == run_mark(whose->run));
	seen->kind = ours ? XB_SEEN_TORN : s->magic == MAGIC ? XB_SEEN_BROKEN : XB_SEEN_UNSTAMPED;
	seen->value = other_value(xseg_hash(sector, XB_SECTOR));
}
