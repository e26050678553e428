/* store - the arenas of the stores, overwritten with arbitrary bytes: memd's objects and filed's
 * marks. Each is in a block of exactly its size, so that AddressSanitizer sees every byte too far.
 *
 * The first byte chooses the store. Then come pieces to write into an arena that was in use, then
 * the work of the successor on it. It refuses with a clear error, or works.
 */
#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/filed/filed_files.h"
#include "peers/memd/memd_store.h"
#include "tests/fuzz/fuzz.h"

#define MEMD_PAGES 8u
#define MARKS	   5u

static const char *const name[] = { "a", "object:0000000000000001", ".hidden/../name", "%", "zz" };
#define NAMES (sizeof(name) / sizeof(name[0]))

static uint64_t hash_of(const char *target)
{
	return xseg_hash(target, strlen(target));
}

/* Writes pieces into the block until a byte says stop. */
static void scribble(struct input *in, uint8_t *at, uint64_t bytes, uint64_t dense)
{
	while (in->left && in_u8(in) % 8) {
		uint8_t how = in_u8(in);
		uint64_t from = in_number(in, 3) % (how & 1 ? bytes : dense), room, v = in_wild(in);

		from = how & 2 ? from : from / 8 * 8;
		room = bytes - from;
		if (how & 4)
			memset(at + from, (int)v, how < room ? how : room);
		else if (how & 8)
			in_copy(in, at + from, how / 4u < room ? how / 4u : room);
		else
			memcpy(at + from, &v, room < 8 ? room : 8);
	}
}

/* Of filed, which has never seen the arena: nothing is to last. */
int syncfs(int fd)
{
	(void)fd;
	return 0;
}

/* ---- memd ---- */

static int put(struct memd_store *s, const char *target, struct input *in)
{
	static uint8_t data[3 * XSEG_PAGE_SIZE];
	const void *src[3] = { data, in_u8(in) & 1 ? data + XSEG_PAGE_SIZE : NULL,
		data + 2 * XSEG_PAGE_SIZE };
	uint32_t size = 1 + in_u16(in) % (2 * XSEG_PAGE_SIZE), object;
	uint64_t offset = in_u8(in) * 1024ull;

	if (in_u8(in) & 1)
		return memd_store_write(
			s, hash_of(target), target, offset, size, src, in_u8(in) & 1);
	object = memd_object_make(s, hash_of(target), target);
	if (object == MEMD_NONE)
		return -ENOSPC;
	return memd_store_put(s, object, offset, size, src, in_u8(in) & 1);
}

static void memd_use(struct memd_store *s, struct input *in)
{
	const void *page[4];
	uint32_t object;
	int sum = 0;

	while (in->left) {
		const char *target = name[in_u8(in) % NAMES];
		uint8_t what = in_u8(in);

		object = memd_object_find(s, hash_of(target), target);
		if (what % 4 == 0) {
			sum += put(s, target, in);
		} else if (what % 4 == 1 && object != MEMD_NONE) {
			memd_store_get(s, object, what / 4u, 4, page);
			for (unsigned i = 0; i < 4; i++)
				sum += page[i] ? ((const uint8_t *)page[i])[XSEG_PAGE_SIZE - 1] : 0;
			sum += memd_object_size(s, object) > 0;
		} else if (what % 4 == 2 && object != MEMD_NONE) {
			memd_object_delete(s, object);
		} else if (what % 4 == 3 && what & 64) {
			memd_store_flush(s);
		} else if (what % 4 == 3 && s->track) {
			memd_store_power_loss(s);
		}
	}
	(void)sum;
}

static void memd_one(struct input *in)
{
	uint64_t bytes = memd_store_bytes(MEMD_PAGES);
	uint8_t *arena = calloc(1, bytes), seed[] = { 1, 255, 7, 0, 1, 0, 0, 16, 4, 1, 1 };
	struct input before = { seed, sizeof(seed) };
	struct xseg_error err = { "" };
	struct memd_store s;
	bool track = in_u8(in) & 1;

	assert(arena);
	if (memd_store_open(&s, arena, bytes, MEMD_PAGES, false, false, &err))
		abort();
	for (unsigned i = 0; i < 3; i++)
		if (put(&s, name[i], &before) == -ENOSPC)
			abort();
	memd_store_close(&s);
	scribble(in, arena, bytes, bytes - MEMD_PAGES * XSEG_PAGE_SIZE);
	if (memd_store_open(
		    &s, arena, bytes, 1 + in_u8(in) % (2 * MEMD_PAGES), false, track, &err) == 0) {
		memd_use(&s, in);
		memd_store_close(&s);
	} else {
		assert(err.text[0]);
	}
	free(arena);
}

/* ---- filed ---- */

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void folder_remove(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void folder_make(void)
{
	snprintf(folder, sizeof(folder), "/dev/shm/fuzz-store-%d", (int)getpid());
	atexit(folder_remove);
}

static bool filed_wants(void *arg, const char *name_of)
{
	(void)arg;
	return strnlen(name_of, XSEG_TARGET_MAX) % 4;
}

/* A name may have no end. */
static void filed_hear(void *arg, const char *name_of, int error)
{
	uint64_t *sum = arg;

	*sum += strnlen(name_of, XSEG_TARGET_MAX) - (unsigned)error;
}

static void filed_use(struct filed_files *ff, struct input *in)
{
	struct filed_counts counts;
	struct filed_change change;
	struct filed_file *file;
	uint64_t heard = 0;
	struct filed_asker asker = { filed_wants, filed_hear, &heard };
	int fd;

	for (unsigned n = 0; in->left && n < 24; n++) {
		const char *target = name[in_u8(in) % NAMES];
		uint8_t what = in_u8(in);

		if (what % 8 == 0) {
			filed_files_sync(ff, &asker);
			filed_files_count(ff, &counts);
			continue;
		}
		if (filed_file_get(ff, hash_of(target), target, what & 1 ? FILED_MAKE : FILED_USE,
			    &file, &fd))
			continue;
		if (fd >= 0 && what % 8 < 5) {
			filed_change_begin(
				ff, &change, file, in_u16(in) * 64ull, in_u16(in) * 4096ull);
			filed_change_end(ff, &change, what & 8);
		}
		if (fd >= 0 && what >= 192)
			(void)!filed_file_delete(ff, file);
		filed_file_put(ff, file);
	}
}

static void filed_one(struct input *in)
{
	uint64_t bytes = filed_marks_bytes(MARKS);
	uint8_t *arena = calloc(1, bytes), seed[] = { 0, 1, 9, 1, 8, 2, 3, 1, 0, 1, 9, 2, 0, 1, 1 };
	struct filed_files *ff = calloc(1, sizeof(*ff));
	struct input before = { seed, sizeof(seed) };
	struct xseg_error err = { "" };
	struct filed_dir dir;

	if (!folder[0])
		folder_make();
	assert(arena && ff);
	if (filed_dir_open(&dir, folder, false, "", &err) ||
		filed_files_open(ff, &dir, "", arena, bytes, MARKS, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	filed_use(ff, &before);
	filed_files_close(ff);
	scribble(in, arena, bytes, 4096);
	err.text[0] = '\0';
	if (filed_files_open(ff, &dir, "", arena, bytes, 1 + in_u8(in) % (MARKS + 3), &err) == 0) {
		filed_use(ff, in);
		filed_files_close(ff);
	} else {
		assert(err.text[0]);
	}
	filed_dir_close(&dir);
	free(ff);
	free(arena);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	if (in_u8(&in) & 1)
		filed_one(&in);
	else
		memd_one(&in);
}
