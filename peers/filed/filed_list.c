/* filed_list - see filed_list.h for the order, the contract and the invariants. */
#include "peers/filed/filed_list.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/blocker/listing.h"

#define LEAVES	     65536u
#define LEAF_SHIFT   40			/* of a cursor, whose upper 16 bits are the directory */
#define ENTRY_BYTES  32768u		/* of the buffer, for what the kernel says of a directory */
#define BLOCK_BYTES  512u			/* of st_blocks */
#define STEP_MORE    1			/* look into the next directory */

struct found {
	uint64_t value;				/* in the order */
	char name[XSEG_TARGET_MAX];
};

struct walk {
	struct filed_dir *d;
	const struct xreq *r;
	struct listing *l;
	uint64_t from, to;			/* values that are wanted: from .. to - 1 */
	struct found *found;
	uint32_t nr, max;
	char *entries;				/* ENTRY_BYTES */
	int fd;					/* the directory that is being read */
	struct usage *usage;			/* a count, and no LIST */
};

static uint64_t value_of(uint64_t hash)
{
	return hash >> (64 - XSEG_LIST_STORE_BITS);
}

/* ---- files ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* The buffer is full: half of it goes, and comes in a later step. */
static void keep_smallest(struct walk *w)
{
	qsort(w->found, w->nr, sizeof(*w->found), by_value);
	w->nr /= 2;
	w->to = w->found[w->nr].value;
	while (w->nr && w->found[w->nr - 1].value == w->to)
		w->nr--;
}

/* LI1: the object whose file has that name, in directory `leaf`. */
static bool is_object(uint32_t leaf, const char *file, struct found *object)
{
	char path[FILED_PATH_MAX];
	uint64_t hash;

	if (filed_dir_name(file, object->name))
		return false;
	hash = xseg_hash(object->name, strlen(object->name));
	object->value = value_of(hash);
	return object->value >> LEAF_SHIFT == leaf && !filed_dir_path(object->name, hash, path) &&
	       !strcmp(strrchr(path, '/') + 1, file);
}

/* A file of that name, in directory `leaf`. */
static void take(struct walk *w, uint32_t leaf, const char *file)
{
	struct found *at = &w->found[w->nr];

	if (!is_object(leaf, file, at) || at->value < w->from || at->value >= w->to ||
		!listing_wants(w->r, at->name))
		return;
	if (++w->nr == w->max)
		keep_smallest(w);
}

static bool is_file(const struct dirent64 *e)
{
	return e->d_type == DT_REG || e->d_type == DT_UNKNOWN;
}

/* ---- directories ------------------------------------------------------------------------- */

/* Calls fn() for each entry of a directory. 1: there is no such directory. */
static int each_entry(struct walk *w, const char *path,
	void (*fn)(struct walk *w, const struct dirent64 *e, void *arg), void *arg)
{
	int fd = filed_dir_open_dir(w->d, path);
	ssize_t got, at;

	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	w->fd = fd;
	while ((got = getdents64(fd, w->entries, ENTRY_BYTES)) > 0)
		for (at = 0; at < got; at += ((const struct dirent64 *)(w->entries + at))->d_reclen)
			fn(w, (const struct dirent64 *)(w->entries + at), arg);
	got = got < 0 ? -errno : 0;
	close(fd);
	return (int)got;
}

static void note_leaf(struct walk *w, const struct dirent64 *e, void *arg)
{
	const char *name = e->d_name;
	bool *there = arg;

	(void)w;
	if (strlen(name) == 2 && isxdigit((unsigned char)name[0]) &&
		isxdigit((unsigned char)name[1]))
		there[strtoul(name, NULL, 16)] = true;
}

static void note_file(struct walk *w, const struct dirent64 *e, void *arg)
{
	if (is_file(e))
		take(w, *(const uint32_t *)arg, e->d_name);
}

/* Which directories "ab/.." there are. */
static int find_leaves(struct walk *w, uint32_t parent, bool there[256])
{
	char path[4];

	snprintf(path, sizeof(path), "%02x", parent & 0xffu);
	return each_entry(w, path, note_leaf, there);
}

static void leaf_path(uint32_t leaf, char path[8])
{
	snprintf(path, 8, "%02x/%02x", (leaf >> 8) & 0xffu, leaf & 0xffu);
}

/* Lists what is wanted of one directory. STEP_MORE, or 0: the answer is full, and w->from is where
 * to go on; or -errno. */
static int list_leaf(struct walk *w, uint32_t leaf)
{
	char path[8];
	uint32_t i;
	int rc;

	w->nr = 0;
	w->to = (uint64_t)(leaf + 1) << LEAF_SHIFT;
	leaf_path(leaf, path);
	rc = each_entry(w, path, note_file, &leaf);
	if (rc < 0)
		return rc;
	qsort(w->found, w->nr, sizeof(*w->found), by_value);
	for (i = 0; i < w->nr; i++)
		if (!listing_add(w->l, w->found[i].name)) {
			/* LI2; more names of one hash than an answer has room for are not ours */
			if (w->found[i].value == w->from)
				return -EOVERFLOW;
			w->from = w->found[i].value;
			return 0;
		}
	w->from = w->to;
	return w->to & ((UINT64_C(1) << LEAF_SHIFT) - 1) ? 0 : STEP_MORE;
}

/* The same of all directories "ab/..", from w->from on. */
static int list_parent(struct walk *w, uint32_t *dirs)
{
	uint32_t leaf = (uint32_t)(w->from >> LEAF_SHIFT), end = (leaf | 0xff) + 1;
	bool there[256] = { false };
	int rc = find_leaves(w, leaf >> 8, there);

	if (rc < 0)
		return rc;
	for (; leaf < end; leaf++) {
		if (!there[leaf & 0xff])
			continue;
		if (++*dirs > FILED_LIST_DIRS)
			return 0;
		if (w->from >> LEAF_SHIFT < leaf)
			w->from = (uint64_t)leaf << LEAF_SHIFT;
		rc = list_leaf(w, leaf);
		if (rc != STEP_MORE)
			return rc;
	}
	w->from = (uint64_t)end << LEAF_SHIFT;
	return STEP_MORE;
}

int64_t filed_list_run(struct filed_dir *d, struct xseg *seg, const struct xreq *r, void *buf,
	size_t bytes)
{
	struct listing l;
	struct walk w = { .d = d, .r = r, .l = &l, .from = r->obj_offset };
	uint32_t dirs = 0;
	int rc = STEP_MORE;

	w.entries = buf;
	w.found = (void *)((uint8_t *)buf + ENTRY_BYTES);
	w.max = (uint32_t)((bytes - ENTRY_BYTES) / sizeof(*w.found));
	assert(w.max > 1);
	if (r->obj_offset >> XSEG_LIST_STORE_BITS)
		return -ESTALE;
	listing_begin(&l, seg, r);
	while (rc == STEP_MORE && w.from >> LEAF_SHIFT < LEAVES) {
		rc = list_parent(&w, &dirs);
		if (++dirs > FILED_LIST_DIRS)
			break;
	}
	if (rc < 0)
		return rc;
	return listing_end(&l, w.from >> LEAF_SHIFT < LEAVES ? w.from : 0);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* One that has been deleted meanwhile takes none. */
static void count_file(struct walk *w, const struct dirent64 *e, void *arg)
{
	struct found object;
	struct stat st;

	if (is_file(e) && is_object(*(const uint32_t *)arg, e->d_name, &object) &&
		!fstatat(w->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
		usage_add(w->usage, object.name, (uint64_t)st.st_blocks * BLOCK_BYTES, 1);
}

int filed_list_count(struct filed_dir *d, struct usage *usage, uint32_t parent, void *buf)
{
	struct walk w = { .d = d, .usage = usage, .entries = buf };
	bool there[256] = { false };
	int rc = find_leaves(&w, parent, there);
	uint32_t i, leaf;
	char path[8];

	for (i = 0; i < 256 && rc >= 0; i++) {
		if (!there[i])
			continue;
		leaf = parent << 8 | i;
		leaf_path(leaf, path);
		rc = each_entry(&w, path, count_file, &leaf);
	}
	return rc < 0 ? rc : 0;
}
