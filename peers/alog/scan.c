/* scan - the records of a zone's image, found by their headers.
 *
 * Contract: pure functions over memory. The image is input: nothing is read behind `end`.
 *
 * Behind a bad header the scan goes on at the next place at which a header verifies. Behind a bad
 * value it goes on at the record's end. Zeroes up to the end are no damage.
 *
 * Invariants
 *   S1  A record is told only if it is whole (F3).
 *   S2  With `chains` the records of a batch are told only if all of them are whole and stand side
 *       by side.
 *   S3  A filler is passed, and its data is not looked at.
 */
#include <string.h>

#include "peers/alog/inside.h"
#include "xtypes/xcrc.h"

#define EPOCHS_TRIED 64u

void scan_init(struct scan *s, const uint8_t *image, uint32_t end, uint32_t seed, bool chains)
{
	*s = (struct scan){ .image = image, .at = ALOG_ZONE_HEAD_END, .end = end, .seed = seed,
		.chains = chains };
}

void scan_hint(const struct xrecord *rec, uint32_t at, uint32_t bytes, struct alog_hint *h)
{
	*h = (struct alog_hint){ .identity = { rec->identity[0], rec->identity[1] },
		.sequence = rec->sequence, .place = at, .bytes = bytes, .expiry = rec->expiry,
		.type = rec->type, .flags = rec->flags };
}

static bool has_header(const struct scan *s, uint32_t at, struct xrecord *rec, uint32_t *bytes)
{
	if (at >= s->end ||
		!xrecord_decode(s->image + at, s->seed, at, s->end - at, rec) ||
		rec->type == ALOG_ZONE)
		return false;
	*bytes = xrecord_bytes_at(at, rec->key_bytes, rec->value_bytes, rec->flags);
	return true;
}

static bool has_data(const struct scan *s, uint32_t at, const struct xrecord *rec)
{
	return rec->type != ALOG_FILLER &&
	       xcrc32c(0, scan_data(s->image, at, rec), rec->key_bytes + rec->value_bytes) ==
		       rec->data_crc;
}

/* S1 */
bool scan_is_whole(const struct scan *s, uint32_t at, struct xrecord *rec, uint32_t *bytes)
{
	return has_header(s, at, rec, bytes) && has_data(s, at, rec);
}

/* S2: how many records the chain has that begins at this whole record; 0: it is not complete. */
static uint32_t chain_length(const struct scan *s, uint32_t at, const struct xrecord *first,
	uint32_t bytes)
{
	struct xrecord rec = *first;
	uint32_t nr = 1;

	if (rec.flags & ALOG_CONTINUED)
		return 0;
	for (; rec.flags & ALOG_MORE; nr++) {
		at += bytes;
		if (!scan_is_whole(s, at, &rec, &bytes) || !(rec.flags & ALOG_CONTINUED))
			return 0;
	}
	return nr;
}

/* A header stands at `at`. */
static enum scan_found judge_record(
	struct scan *s, const struct xrecord *rec, uint32_t at, uint32_t bytes)
{
	s->at = at + bytes;
	if (!has_data(s, at, rec)) {
		s->chain = 0;
		return SCAN_BAD;
	}
	if (!s->chains)
		return SCAN_RECORD;
	if (!s->chain)
		s->chain = chain_length(s, at, rec, bytes);
	if (!s->chain)
		return SCAN_BAD;
	s->chain--;
	return SCAN_RECORD;
}

static bool rest_is_zero(const struct scan *s, uint32_t at)
{
	uint64_t word;

	for (; at + sizeof(word) <= s->end; at += sizeof(word)) {
		memcpy(&word, s->image + at, sizeof(word));
		if (word)
			return false;
	}
	return true;
}

enum scan_found scan_next(struct scan *s, struct xrecord *rec, uint32_t *at, uint32_t *bytes)
{
	uint32_t begin = s->at, next;
	bool header = has_header(s, begin, rec, bytes);

	while (header && rec->type == ALOG_FILLER) {
		begin += *bytes;
		s->chain = 0;
		header = has_header(s, begin, rec, bytes);
	}
	if (begin >= s->end || rest_is_zero(s, begin))
		return SCAN_END;
	*at = begin;
	if (header)
		return judge_record(s, rec, begin, *bytes);
	s->chain = 0;
	memset(rec, 0, sizeof(*rec));
	for (next = begin + ALOG_ALIGN; next < s->end; next += ALOG_ALIGN)
		if (s->image[next + 4] && has_header(s, next, rec, bytes))
			break;
	memset(rec, 0, sizeof(*rec));
	if (next > s->end)
		next = s->end;
	*bytes = next - begin;
	s->at = next;
	return SCAN_BAD;
}

uint64_t scan_epoch(const struct alog_config *cfg, uint64_t zone, const uint8_t *image,
	uint64_t newest, uint64_t oldest)
{
	struct scan s;
	struct xrecord rec;
	uint32_t at, bytes;
	enum scan_found found;
	uint64_t e = newest;

	for (uint32_t i = 0; i <= EPOCHS_TRIED && e && e >= oldest; i++, e--) {
		scan_init(&s, image, cfg->zone_bytes, xrecord_seed(cfg->uuid, zone, e), false);
		while ((found = scan_next(&s, &rec, &at, &bytes)) == SCAN_BAD)
			;
		if (found == SCAN_RECORD)
			return e;
	}
	return 0;
}

bool scan_hints_ok(const struct alog_config *cfg, uint64_t zone, const uint8_t *image,
	struct alog_footer *f)
{
	return alog_footer_decode(cfg->uuid, zone, cfg->zone_bytes,
		       image + cfg->zone_bytes - ALOG_FOOTER_BYTES, f) &&
	       xcrc32c(0, image + alog_hints_at(cfg->zone_bytes, f->nr),
		       f->nr * ALOG_HINT_BYTES) == f->hints_crc;
}
