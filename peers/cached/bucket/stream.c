/* stream - the table of sequential readers. See stream.h for its rules and its advice. */
#include "peers/cached/bucket/stream.h"

#include <assert.h>
#include <string.h>

#define PAGE	    4096u
#define PIECES	    64u			/* bits of stream.early */
#define BEHIND	    128u		/* pieces before the edge where a read may begin */
#define AHEAD	    PIECES		/* and beyond it */
#define LATE_NEAR   16u	/* pieces before the edge where the first reads may be out of order */
#define UNIT_MAX    (256u << 10)
#define WINDOW_MIN  (32u << 10)
#define PROVEN_MAX  48u
#define IDLE_NOTES  1024u
#define SCORE_KNOWN 4u
#define SCORE_MAX   8u
#define NOT_FITTING UINT64_MAX

/* A read as the pages that it touches. */
struct reading {
	uint32_t volume;
	uint32_t unit;
	uint64_t hash;
	uint64_t from;
	uint64_t to;
	uint64_t obj_offset;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool recognised(const struct stream *st)
{
	return st->score >= SCORE_KNOWN;
}

/* As far as that is known. */
static uint32_t object_bytes(const struct stream *st)
{
	return st->object_bytes ? st->object_bytes : STREAM_OBJECT_BYTES;
}

/* ---- which stream a read belongs to ---- */

/* A page, or half of the read if that is more: so PIECES of them are 256 KiB or 32 reads. */
static uint32_t unit_of(uint32_t size)
{
	uint32_t unit = PAGE;

	while (unit < UNIT_MAX && unit < size / 2)
		unit *= 2;
	return unit;
}

/* Where whose edges begin; any number that differs enough. */
static uint64_t place_base(uint32_t volume, uint64_t hash)
{
	return (hash + volume) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Offsets are rounded to the nearest piece, so reads side by side are pieces side by side, wherever
 * they begin. */
static uint64_t round_to_piece(const struct stream *st, uint64_t offset)
{
	return (offset + st->unit / 2) / st->unit;
}

/* The piece of an offset that is not before the edge. */
static uint64_t piece_of(const struct stream *st, uint64_t offset)
{
	return round_to_piece(st, offset) - round_to_piece(st, st->edge);
}

static bool is_in_order(const struct stream *st, const struct reading *r)
{
	return r->from <= st->edge && r->to > st->edge;
}

/* Goes on where an early read ended. */
static bool is_jump(const struct stream *st, const struct reading *r)
{
	/* at most PIECES, or it would not fit */
	uint64_t i = r->from > st->edge ? piece_of(st, r->from) : 0;

	return i > 0 && (st->early >> (i - 1) & 1);
}

/* How far from the stream's edge. */
static uint64_t distance(const struct stream *st, const struct reading *r)
{
	uint64_t unit = min_u64(st->unit, r->unit),
		 d = r->from > st->edge ? r->from - st->edge : st->edge - r->from;

	if (unit == 0 || st->volume != r->volume || st->hash != r->hash)
		return NOT_FITTING;
	return d <= (r->from > st->edge ? AHEAD : BEHIND) * unit ? d : NOT_FITTING;
}

/* The stream that fits best, of two the one that is surer. */
static uint32_t streams_find(const struct streams *s, const struct reading *r)
{
	uint64_t behind = BEHIND * (uint64_t)r->unit, span = behind + AHEAD * (uint64_t)r->unit;
	uint64_t at = r->from + place_base(r->volume, r->hash) + behind, best = NOT_FITTING, d;
	uint32_t found = XLIST_NONE;

	for (uint32_t i = 0; i < STREAMS_NR; i++) {
		if (at - s->place[i] > span)
			continue;
		d = distance(&s->stream[i], r);
		if (d < best || (d == best && d != NOT_FITTING &&
					s->stream[i].score > s->stream[found].score)) {
			best = d;
			found = i;
		}
	}
	return found;
}

/* ---- what a read does to its stream ---- */

static void edge_move(struct stream *st, uint64_t to)
{
	uint64_t n = piece_of(st, to);

	st->early = n < PIECES ? st->early >> n : 0;
	st->edge = to;
}

static void gap_skip(struct stream *st, uint64_t to)
{
	st->skipped = (uint32_t)min_u64(st->skipped + (to - st->edge), (uint64_t)st->unit * PIECES);
	edge_move(st, to);
}

/* Moves the edge over what was read early and lies at it now; how many bytes. */
static uint64_t early_join(struct stream *st)
{
	uint64_t n = ~st->early ? (uint64_t)__builtin_ctzll(~st->early) : PIECES, to, bytes;

	if (n == 0)
		return 0;
	to = (round_to_piece(st, st->edge) + n) * st->unit;
	bytes = to - st->edge;
	st->length += bytes;
	edge_move(st, to);
	return bytes;
}

static void advance(struct stream *st, const struct reading *r, uint32_t won)
{
	st->score = (uint32_t)min_u64(st->score + won, SCORE_MAX);
	if (r->from > st->edge)
		gap_skip(st, r->from);
	st->length += r->to - st->edge;
	edge_move(st, r->to);
	early_join(st);
}

static void stream_start(struct stream *st, const struct reading *r, uint32_t gain)
{
	*st = (struct stream){ .volume = r->volume, .hash = r->hash, .unit = r->unit, .gain = gain,
		.edge = r->to, .length = r->to - r->from,
		.object = (uint32_t)(r->from - r->obj_offset) };
}

static void doubt(struct stream *st)
{
	if (st->score == 0 || --st->score > 0)
		return;
	st->length = 0;
	st->skipped = 0;
	st->window = 0;
}

/* The gap at the edge will not be read any more. */
static void gap_give_up(struct stream *st, uint64_t read_bytes)
{
	uint64_t piece = round_to_piece(st, st->edge) + (uint64_t)__builtin_ctzll(st->early);

	gap_skip(st, max_u64(st->edge, piece * st->unit));
	if (early_join(st) >= 2 * read_bytes)
		st->score = (uint32_t)min_u64(st->score + 1, SCORE_MAX);
	else
		doubt(st);
}

static void early_mark(struct stream *st, const struct reading *r)
{
	uint64_t first = piece_of(st, r->from), end = min_u64(piece_of(st, r->to), PIECES);

	for (uint64_t i = first; i < end; i++)
		st->early |= UINT64_C(1) << i;
	if ((unsigned)__builtin_popcountll(st->early) > PIECES / 2)
		gap_give_up(st, r->to - r->from);
}

static void gap_fill(struct stream *st, uint64_t bytes)
{
	uint32_t n = (uint32_t)min_u64(bytes, st->skipped);

	st->skipped -= n;
	st->length += n;
}

static void late(struct stream *st, const struct reading *r)
{
	if (r->to == st->edge && r->to - r->from == PAGE)
		return;		/* it may be another part of the last page */
	if (st->score > 0) {
		gap_fill(st, r->to - r->from);
		doubt(st);
	} else if (st->edge - r->to > LATE_NEAR * (uint64_t)st->unit) {
		stream_start(st, r, 1);
	}
}

/* True: the read goes on where another one of its stream ended. */
static bool follow(struct stream *st, const struct reading *r, bool at_once)
{
	bool jump = is_jump(st, r);

	if (is_in_order(st, r)) {
		advance(st, r, at_once ? SCORE_KNOWN : st->gain);
		return true;
	}
	if (r->from < st->edge) {
		late(st, r);
		return false;
	}
	if (jump && st->score == 0)
		advance(st, r, 1);
	else
		early_mark(st, r);
	return jump;
}

/* ---- the table ---- */

static struct xlist *list_of(struct streams *s, const struct stream *st)
{
	return st->score ? &s->proven : &s->tried;
}

static uint32_t streams_victim(const struct streams *s)
{
	uint32_t i = xlist_tail(&s->proven);

	if (s->proven.nr > PROVEN_MAX ||
		(i != XLIST_NONE && s->nr_notes - s->stream[i].touched > IDLE_NOTES))
		return i;
	return xlist_tail(&s->tried);
}

static uint32_t streams_add(struct streams *s, const struct reading *r)
{
	uint32_t i = streams_victim(s);

	xlist_remove(list_of(s, &s->stream[i]), i);
	stream_start(&s->stream[i], r, 2);
	xlist_push_head(&s->tried, i);
	return i;
}

/* The read's stream; *goes_on as follow() says. */
static struct stream *streams_follow(struct streams *s, const struct reading *r, bool *goes_on)
{
	uint32_t i = streams_find(s, r), newest = XLIST_NONE;
	struct stream *st;

	*goes_on = false;
	if (i == XLIST_NONE) {
		i = newest = streams_add(s, r);
		st = &s->stream[i];
	} else {
		st = &s->stream[i];
		xlist_remove(list_of(s, st), i);
		*goes_on = follow(st, r, i == s->newest);
		xlist_push_head(list_of(s, st), i);
	}
	s->newest = newest;
	st->touched = s->nr_notes++;
	s->place[i] = st->edge + place_base(st->volume, st->hash);
	return st;
}

/* ---- advice ---- */

/* From the beginning of the object that was read last to that of this one is how long they are, or
 * some times that. What was asked for beyond the end was read in vain. */
static void object_note(struct stream *st, const struct reading *r)
{
	uint64_t at = r->from - r->obj_offset;
	uint32_t bytes = (uint32_t)at - st->object;

	if (bytes && bytes < object_bytes(st)) {
		st->object_bytes = bytes;
		st->ahead_to = min_u64(st->ahead_to, at);
	}
	st->object = (uint32_t)at;
}

static void window_grow(struct stream *st, const struct reading *r, uint32_t max)
{
	uint64_t first = 2 * (r->to - r->from);

	if (st->ahead_to && st->ahead_to <= r->from - r->obj_offset)
		st->window = max;	/* the last range was in an earlier object */
	else if (st->window)
		st->window = (uint32_t)min_u64(2 * (uint64_t)st->window, max);
	else
		st->window = (uint32_t)min_u64(max_u64(first, WINDOW_MIN), max);
}

static void advise_ahead(
	struct stream *st, const struct reading *r, uint32_t max, struct stream_advice *advice)
{
	uint64_t at = max_u64(st->edge, r->to), left = st->ahead_to > at ? st->ahead_to - at : 0;
	uint64_t from = max_u64(st->ahead_to, at), obj_from = r->obj_offset + (from - r->from),
		 end = object_bytes(st), to;

	if (left > st->window / 2 || r->obj_offset >= end || obj_from >= end)
		return;
	window_grow(st, r, max);
	to = min_u64(at + st->window / PAGE * PAGE, from + (end - obj_from));
	if (to <= from)
		return;
	assert(to - from <= max && obj_from + (to - from) <= end);	/* S1 */
	st->ahead_to = to;
	advice->ahead_from = obj_from;
	advice->ahead_bytes = (uint32_t)(to - from);
}

struct stream_advice stream_note(struct streams *s, uint32_t volume, uint64_t hash, uint64_t offset,
	uint64_t obj_offset, uint32_t size)
{
	uint64_t cutoff = atomic_load_explicit(&s->cutoff_bytes, memory_order_relaxed);
	uint32_t ahead_max = atomic_load_explicit(&s->ahead_max_bytes, memory_order_relaxed);
	struct reading r = { .volume = volume,
		.hash = volume ? 0 : hash,
		.unit = unit_of(size),
		.from = offset / PAGE * PAGE,
		.to = (offset + size + PAGE - 1) / PAGE * PAGE,
		.obj_offset = obj_offset / PAGE * PAGE };
	struct stream_advice advice = { 0 };
	struct stream *st;
	bool goes_on;

	if (size == 0 || offset > INT64_MAX || (cutoff == 0 && ahead_max == 0))
		return advice;
	pthread_mutex_lock(&s->lock);
	st = streams_follow(s, &r, &goes_on);
	object_note(st, &r);
	if (recognised(st)) {
		advice.cut_off = cutoff && st->length > cutoff;
		if (goes_on)
			advise_ahead(st, &r, ahead_max, &advice);
	}
	pthread_mutex_unlock(&s->lock);
	return advice;
}

void streams_set(struct streams *s, uint64_t cutoff_bytes, uint32_t ahead_max_bytes)
{
	atomic_store_explicit(&s->cutoff_bytes, cutoff_bytes, memory_order_relaxed);
	atomic_store_explicit(&s->ahead_max_bytes, ahead_max_bytes, memory_order_relaxed);
}

void streams_init(struct streams *s, uint64_t cutoff_bytes, uint32_t ahead_max_bytes)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	streams_set(s, cutoff_bytes, ahead_max_bytes);
	s->newest = XLIST_NONE;
	xlist_init(&s->tried, s->node);
	xlist_init(&s->proven, s->node);
	for (uint32_t i = 0; i < STREAMS_NR; i++) {
		xlist_node_init(s->node, i);
		xlist_push_head(&s->tried, i);
	}
}

void streams_fini(struct streams *s)
{
	pthread_mutex_destroy(&s->lock);
}
