/* filed_marks - see filed_marks.h for its purpose, its contract and its invariants. */
#include "peers/filed/filed_marks.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "xseg/arenas.h"
#include "xtypes/xkill.h"

#define MAGIC	     XSEG_ARENA_MAGIC(0x64656c69666d78, XSEG_FORMAT_FILED)	/* "xmfiled1" */
#define HEADER_BYTES 4096u
#define PATH_BYTES   1024u
#define WIDE_FROM    ((uint64_t)FILED_MARK_BITS * FILED_MARK_PIECE)

struct header {
	_Atomic uint64_t magic;				/* stored last */
	_Atomic uint64_t nr;
	_Atomic uint64_t dev, ino; /* of the directory that the marks speak of */
	char path[PATH_BYTES];			/* and its place (filed_dir.h) */
};
_Static_assert(sizeof(struct header) <= HEADER_BYTES, "it has a page");

/* Stores are releases: a kill leaves them in this order, and the compiler may not change it. */
static uint64_t bits_get(const struct filed_bits *b, uint32_t i)
{
	return atomic_load_explicit(&b->word[i], memory_order_acquire);
}

static void bits_set(struct filed_bits *b, uint32_t i, uint64_t word)
{
	if (bits_get(b, i) != word)
		atomic_store_explicit(&b->word[i], word, memory_order_release);
}

static void bits_clear(struct filed_bits *b)
{
	uint32_t i;

	for (i = 0; i < FILED_MARK_WORDS; i++)
		bits_set(b, i, 0);
}

static void bits_add(struct filed_bits *to, const struct filed_bits *from)
{
	uint32_t i;

	for (i = 0; i < FILED_MARK_WORDS; i++)
		bits_set(to, i, bits_get(to, i) | bits_get(from, i));
}

static bool bits_any(const struct filed_bits *b)
{
	uint64_t any = 0;
	uint32_t i;

	for (i = 0; i < FILED_MARK_WORDS; i++)
		any |= bits_get(b, i);
	return any;
}

/* Adds the pieces first .. last - 1. */
static void bits_add_range(struct filed_bits *b, uint64_t first, uint64_t last)
{
	uint64_t piece, at;

	if (last > first + FILED_MARK_BITS)
		last = first + FILED_MARK_BITS;
	for (piece = first; piece < last; piece++) {
		at = piece % FILED_MARK_BITS;
		bits_set(b, at / 64, bits_get(b, at / 64) | UINT64_C(1) << at % 64);
	}
}

static void state_set(struct filed_mark *m, uint64_t state)
{
	if (filed_mark_state(m) != state)
		atomic_store_explicit(&m->state, state, memory_order_release);
}

void filed_mark_name(struct filed_mark *m, const char *name)
{
	assert(!filed_mark_state(m));
	memset(m->name, 0, sizeof(m->name));
	memcpy(m->name, name, strnlen(name, sizeof(m->name) - 1));
	XKILL(MARK_NAMED);
	state_set(m, FILED_MARK_USED);
}

void filed_mark_free(struct filed_mark *m)
{
	assert(!filed_mark_unsynced(m) && !filed_mark_lost(m));
	bits_clear(&m->rewritten);
	state_set(m, 0);
}

void filed_mark_write(struct filed_mark *m, uint64_t from, uint64_t to)
{
	if (to > WIDE_FROM)
		state_set(m, filed_mark_state(m) | FILED_MARK_WIDE);
	bits_add_range(&m->written, from / FILED_MARK_PIECE,
		(to + FILED_MARK_PIECE - 1) / FILED_MARK_PIECE);
}

void filed_mark_wrote(struct filed_mark *m, uint64_t from, uint64_t to)
{
	if (!bits_any(&m->lost) || filed_mark_state(m) & FILED_MARK_WIDE)
		return;
	bits_add_range(&m->rewritten, (from + FILED_MARK_PIECE - 1) / FILED_MARK_PIECE,
		to / FILED_MARK_PIECE);
}

void filed_mark_entry(struct filed_mark *m, uint32_t dirs)
{
	state_set(m, filed_mark_state(m) | dirs);
}

void filed_mark_deleted(struct filed_mark *m)
{
	bits_clear(&m->written);
	bits_clear(&m->syncing);
	bits_clear(&m->lost);
	bits_clear(&m->rewritten);
	state_set(m, filed_mark_state(m) & ~(uint64_t)(FILED_MARK_WIDE | FILED_MARK_DELETING));
}

void filed_mark_deleting(struct filed_mark *m)
{
	state_set(m, filed_mark_state(m) | FILED_MARK_DELETING | FILED_MARK_ENTRY);
}

void filed_mark_kept(struct filed_mark *m)
{
	state_set(m, filed_mark_state(m) & ~(uint64_t)FILED_MARK_DELETING);
}

void filed_mark_absent(struct filed_mark *m)
{
	if (filed_mark_state(m) & FILED_MARK_DELETING) {
		filed_mark_deleted(m);
		return;
	}
	bits_add(&m->lost, &m->written);
	bits_add(&m->lost, &m->syncing);
	bits_clear(&m->written);
	bits_clear(&m->syncing);
	bits_clear(&m->rewritten);
}

void filed_mark_discarded(struct filed_mark *m, uint64_t from, uint64_t to)
{
	uint64_t piece, last = to / FILED_MARK_PIECE;

	if (filed_mark_state(m) & FILED_MARK_WIDE)
		return;
	if (last > FILED_MARK_BITS)
		last = FILED_MARK_BITS;
	for (piece = (from + FILED_MARK_PIECE - 1) / FILED_MARK_PIECE; piece < last; piece++)
		bits_set(&m->lost, (uint32_t)(piece / 64),
			bits_get(&m->lost, (uint32_t)(piece / 64)) & ~(UINT64_C(1) << piece % 64));
}

/* `syncing` takes over before `written` is emptied, so no bit is nowhere in between. */
void filed_mark_sync_begin(struct filed_mark *m, struct filed_sync *s)
{
	uint32_t i;

	bits_add(&m->syncing, &m->written);
	XKILL(SYNC_MARKED);
	bits_clear(&m->written);
	for (i = 0; i < FILED_MARK_WORDS; i++)
		s->rewritten[i] = bits_get(&m->rewritten, i);
	s->data = bits_any(&m->syncing);
	s->dirs = filed_mark_state(m) & (FILED_MARK_ENTRY | FILED_MARK_PARENTS);
}

static void data_synced(struct filed_mark *m, const struct filed_sync *s)
{
	uint32_t i;

	for (i = 0; i < FILED_MARK_WORDS; i++) {
		bits_set(&m->lost, i, bits_get(&m->lost, i) & ~s->rewritten[i]);
		bits_set(&m->rewritten, i, bits_get(&m->rewritten, i) & ~s->rewritten[i]);
	}
}

static void data_lost(struct filed_mark *m)
{
	uint32_t i;

	bits_add(&m->syncing, &m->written);	/* the kernel may have dropped it, too */
	bits_add(&m->lost, &m->syncing);
	for (i = 0; i < FILED_MARK_WORDS; i++)
		bits_set(&m->rewritten, i, bits_get(&m->rewritten, i) & ~bits_get(&m->syncing, i));
}

void filed_mark_sync_end(struct filed_mark *m, const struct filed_sync *s, enum filed_data data,
	bool dirs_ok)
{
	if (data == FILED_DATA_SYNCED)
		data_synced(m, s);
	else if (data == FILED_DATA_LOST)
		data_lost(m);
	else if (data == FILED_DATA_DELETED)
		filed_mark_deleted(m);
	else
		bits_add(&m->written, &m->syncing);
	bits_clear(&m->syncing);
	if (dirs_ok)
		state_set(m, filed_mark_state(m) & ~(uint64_t)s->dirs);
}

bool filed_mark_unsynced(const struct filed_mark *m)
{
	return filed_mark_state(m) & (FILED_MARK_ENTRY | FILED_MARK_PARENTS) ||
	       bits_any(&m->written) || bits_any(&m->syncing);
}

bool filed_mark_lost(const struct filed_mark *m)
{
	return bits_any(&m->lost);
}

uint64_t filed_mark_bytes(const struct filed_mark *m)
{
	uint64_t nr = filed_mark_state(m) & (FILED_MARK_ENTRY | FILED_MARK_PARENTS) ? 1 : 0;
	uint32_t i;

	for (i = 0; i < FILED_MARK_WORDS; i++)
		nr += (unsigned)__builtin_popcountll(bits_get(&m->written, i) |
			bits_get(&m->syncing, i) | bits_get(&m->lost, i));
	return nr * FILED_MARK_PIECE;
}

/* ---- the arena --------------------------------------------------------------------------- */

uint64_t filed_marks_bytes(uint32_t nr)
{
	return HEADER_BYTES + (uint64_t)nr * sizeof(struct filed_mark);
}

bool filed_marks_is_blank(const void *arena)
{
	return !atomic_load_explicit(&((const struct header *)arena)->magic, memory_order_acquire);
}

bool filed_marks_know(const void *arena, const struct stat *dir)
{
	const struct header *h = arena;

	return !filed_marks_is_blank(arena) && h->dev == dir->st_dev && h->ino == dir->st_ino;
}

bool filed_marks_had_path(const void *arena, const char *path)
{
	const struct header *h = arena;

	return !filed_marks_is_blank(arena) && !strncmp(h->path, path, sizeof(h->path));
}

void filed_marks_note_path(void *arena, const char *path)
{
	struct header *h = arena;

	if (filed_marks_had_path(arena, path))
		return;
	memset(h->path, 0, sizeof(h->path));
	memcpy(h->path, path, strnlen(path, sizeof(h->path) - 1));
}

static void header_write(struct header *h, uint32_t nr, const struct stat *dir)
{
	atomic_store_explicit(&h->nr, nr, memory_order_relaxed);
	atomic_store_explicit(&h->dev, dir->st_dev, memory_order_relaxed);
	atomic_store_explicit(&h->ino, dir->st_ino, memory_order_relaxed);
	/* release: a header with a magic is complete */
	atomic_store_explicit(&h->magic, MAGIC, memory_order_release);
}

/* The file is of no interest any more: the mark is clean, whatever it said. */
static void mark_forget(struct filed_mark *m)
{
	filed_mark_deleted(m);
	state_set(m, FILED_MARK_USED);
}

/* What a predecessor left becomes what is to be synced. */
static void mark_recover(struct filed_mark *m)
{
	bits_add(&m->written, &m->syncing);
	bits_clear(&m->syncing);
}

/* What a mark says of a directory that is not this one is of no use. Returns how many said
 * something. */
static uint32_t marks_clean(struct filed_mark *marks, uint32_t nr_marks, bool other_dir)
{
	struct filed_mark *m;
	uint32_t nr = 0;

	for (m = marks; m < marks + nr_marks; m++) {
		if (!filed_mark_state(m))
			filed_mark_deleted(m);		/* K4 */
		else if (other_dir)
			mark_forget(m);
		mark_recover(m);
		if (filed_mark_unsynced(m) || filed_mark_lost(m))
			nr++;
		else if (filed_mark_state(m))
			filed_mark_free(m);
	}
	return nr;
}

int filed_marks_open(void *arena, uint64_t bytes, const struct stat *dir, const char *place,
	uint32_t *nr, struct filed_mark **marks, struct xseg_error *err)
{
	struct header *h = arena;
	uint64_t magic = atomic_load_explicit(&h->magic, memory_order_acquire);
	uint64_t had = magic ? atomic_load_explicit(&h->nr, memory_order_relaxed) : *nr;
	bool other_dir = !filed_marks_know(arena, dir) &&
		!(place[0] && filed_marks_had_path(arena, place));

	if ((magic && magic != MAGIC) || !had || had > UINT32_MAX ||
		filed_marks_bytes((uint32_t)had) > bytes)
		return xseg_fail(err, -EPROTO, "the arena is of another version of filed; start it "
			"under another name, or make the segment again");
	*marks = (void *)((uint8_t *)arena + HEADER_BYTES);
	if (magic && (marks_clean(*marks, (uint32_t)had, other_dir) ||
			     filed_marks_bytes(*nr) > bytes))
		*nr = (uint32_t)had;
	header_write(h, *nr, dir);
	return 0;
}
