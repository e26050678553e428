/* kv_import - the import of kv_dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xseg/base/out.h"
#include "tools/xseg/flow/kv_dir.h"
#include "tools/xseg/flow/kv_value.h"
#include "tools/xseg/text/key_text.h"

#define FOLLOWED 8u				/* links to directories, one behind the other */

struct walk {
	struct kv_store *s;
	const struct kv_dir_opts *o;
	struct kv_dir_done *done;
	const char *dir;
	/* a group of values that is to be put */
	struct xseg_kv_io io[KV_STORE_DEPTH];
	uint32_t nr;
	/* the path of what is looked at, below DIR, and its room. Of a name that was cut, the
	 * pieces are joined */
	char *name;
	size_t used, room;
	uint32_t followed;			/* links to directories on the way to it */
};

static int fail(const struct walk *w, int error, const char *name)
{
	return tool_fail_errno(-error, NULL, "name a directory that can be used",
		"%s %s: %.80s", w->s->what, w->dir, name);
}

static void show(struct walk *w)
{
	char keys[OUT_TEXT], bytes[OUT_TEXT];

	tool_progress(w->s->t, "%s: %s keys, %s", w->s->what, out_count(w->done->keys, keys),
		out_size(w->done->bytes, bytes));
}

/* ---- groups ------------------------------------------------------------------------------ */

static void group_free(struct walk *w)
{
	for (uint32_t i = 0; i < w->nr && !xseg_kv_out(w->s->q); i++) {
		free(w->io[i].item.value);
		free((void *)(uintptr_t)w->io[i].item.key);
	}
	w->nr = 0;
}

static int group_put(struct walk *w)
{
	int error = kv_store_run_all(w->s, w->io, w->nr), rc = TOOL_DONE;

	for (uint32_t i = 0; i < w->nr && !rc; i++) {
		const struct xseg_kv_item *item = &w->io[i].item;
		int64_t result = error ? error : w->io[i].result;

		if (result) {
			rc = kv_store_fail(w->s, result, item->key, item->key_bytes);
		} else {
			w->done->keys++;
			w->done->bytes += item->value_bytes;
		}
	}
	group_free(w);
	show(w);
	return rc;
}

/* ---- keys -------------------------------------------------------------------------------- */

/* Adds text to the path; false: no memory. */
static bool name_add(struct walk *w, const char *text, size_t len)
{
	char *more;

	if (w->used + len + 1 > w->room) {
		w->room = (w->used + len + 1) * 2;
		more = realloc(w->name, w->room);
		if (!more)
			return false;
		w->name = more;
	}
	memcpy(w->name + w->used, text, len);
	w->used += len;
	w->name[w->used] = '\0';
	return true;
}

/* Each part of the path by itself. */
static size_t key_of_tree(const struct walk *w, uint8_t *key)
{
	const char *at = w->name, *end = w->name + w->used;
	bool alone = !*w->o->prefix && !memchr(at, '/', w->used);
	uint8_t *to = key;

	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t part = (size_t)((slash ? slash : end) - at);

		to += part ? key_text_of_part(at, part, alone, to) : 0;
		at += part;
		if (slash) {
			*to++ = '/';
			at++;
		}
	}
	return (size_t)(to - key);
}

/* The key that the path is, behind the prefix. */
static int import_key(struct walk *w, struct xseg_kv_item *item)
{
	size_t prefix = strlen(w->o->prefix);
	uint8_t *key = malloc(prefix + w->used + 1);
	int64_t n;

	if (!key)
		return fail(w, ENOMEM, w->name);
	memcpy(key, w->o->prefix, prefix);
	item->key = key;
	n = w->o->flat ? key_text_decode(w->name, w->used, key + prefix)
		       : (int64_t)key_of_tree(w, key + prefix);
	if (n < 0)
		return tool_fail(TOOL_USAGE,
			"%s %s: %.80s has a '%%' without two digits; write %%25 for it in the "
			"file's name",
			w->s->what, w->dir, w->name);
	if (prefix + (uint64_t)n > XSEG_KV_KEY_MAX)
		return tool_fail(TOOL_USAGE,
			"%s %s: %.80s... is longer than the 64 KiB of a key; choose a shorter name",
			w->s->what, w->dir, w->name);
	item->key_bytes = (uint32_t)(prefix + (size_t)n);
	return TOOL_DONE;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Adds a value to the group; its memory is the group's. */
static int add(struct walk *w, uint8_t *data, uint64_t bytes, uint32_t client)
{
	struct xseg_kv_io *io = &w->io[w->nr++];
	int rc;

	*io = (struct xseg_kv_io){ .op = XSEG_KV_PUT, .flags = XSEG_KV_ONCE,
		.item = { .value = data, .value_bytes = bytes, .client = client } };
	rc = import_key(w, &io->item);
	return rc || w->nr < KV_STORE_DEPTH ? rc : group_put(w);
}

/* A file that is too large to be read as a whole. */
static int import_stream(struct walk *w, int fd)
{
	struct xseg_kv_io put = { .flags = XSEG_KV_ONCE };
	struct kv_source from = kv_source_fd(fd);
	char shown[120];
	int rc = w->nr ? group_put(w) : TOOL_DONE;
	int64_t n;

	if (rc)
		return rc;
	rc = import_key(w, &put.item);
	if (rc)
		goto out_free;
	snprintf(shown, sizeof(shown), "%s %.80s", w->s->what, w->name);
	n = kv_value_put(w->s, &put, &from, shown);
	if (from.error) {
		rc = fail(w, from.error, w->name);
	} else if (n) {
		rc = kv_store_fail(w->s, n, put.item.key, put.item.key_bytes);
	} else {
		w->done->keys++;
		w->done->bytes += put.item.value_bytes;
	}
out_free:
	if (!xseg_kv_out(w->s->q))
		free((void *)(uintptr_t)put.item.key);
	return rc;
}

/* `how`: O_NOFOLLOW, or 0. */
static int import_file(struct walk *w, int dir, const char *name, int how)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | how), rc;
	uint8_t *data = NULL;
	struct stat st;
	int64_t n;

	if (fd < 0)
		return fail(w, errno, w->name);
	n = fstat(fd, &st) ? -errno : 0;
	if (!n && (uint64_t)st.st_size <= KV_DIR_SMALL)
		n = kv_store_read_fd(fd, KV_DIR_SMALL, &data);
	else if (!n)
		n = -EFBIG;
	if (n >= 0) {
		rc = add(w, data, (uint64_t)n, 0);
	} else {
		free(data);
		rc = n != -EFBIG		       ? fail(w, (int)-n, w->name)
		     : lseek(fd, 0, SEEK_SET) < 0 ? fail(w, errno, w->name)
						       : import_stream(w, fd);
	}
	close(fd);
	return rc;
}

static int import_directory(struct walk *w, int dir, const char *name, int how);

static uint32_t depth_of(const struct walk *w)
{
	uint32_t depth = 0;

	for (const char *at = w->o->prefix; (at = strchr(at, '/')); at++)
		depth++;
	for (const char *at = w->name; (at = strchr(at, '/')); at++)
		depth++;
	return depth;
}

/* What a link leads to, in its place. -1: there is no such file or directory. */
static int follow(struct walk *w, int dir, const char *name)
{
	struct stat st;
	int rc = -1;

	if (fstatat(dir, name, &st, 0))
		return -1;
	if (S_ISREG(st.st_mode))
		return import_file(w, dir, name, 0);
	if (S_ISDIR(st.st_mode) && w->followed < FOLLOWED) {
		w->followed++;
		rc = import_directory(w, dir, name, 0);
		w->followed--;
	}
	return rc;
}

static int import_link(struct walk *w, int dir, const char *name)
{
	char *target = malloc(PATH_MAX);
	ssize_t n = target ? readlinkat(dir, name, target, PATH_MAX) : -1;
	int rc = -1;

	if (n < 0 || n == PATH_MAX) {
		int error = !target ? ENOMEM : n < 0 ? errno : ENAMETOOLONG;

		free(target);
		return fail(w, error, w->name);
	}
	target[n] = '\0';
	if (w->o->follow && !kv_dir_leads_inside(target, depth_of(w)))
		rc = follow(w, dir, name);
	if (rc < 0)
		return add(w, (uint8_t *)target, (uint64_t)n, KV_DIR_LINK);
	free(target);
	return rc;
}

/* ---- directories ------------------------------------------------------------------------- */

/* The directory of a name that was cut. */
static bool goes_on(const struct walk *w, const char *name)
{
	size_t len = strlen(name);

	return name[len - 1] == '%' && (w->o->flat || len == KV_DIR_NAME);
}

/* D1. The path is that of the entry. */
static int import_entry(struct walk *w, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? TOOL_DONE : fail(w, errno, w->name);
	if (S_ISREG(st.st_mode))
		return import_file(w, dir, name, O_NOFOLLOW);
	if (S_ISLNK(st.st_mode) && !w->o->flat)
		return import_link(w, dir, name);
	if (S_ISDIR(st.st_mode))
		return import_directory(w, dir, name, O_NOFOLLOW);
	w->done->skipped++;
	return TOOL_DONE;
}

static bool is_ours(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strcmp(name, KEY_TEXT_PARTIAL) != 0;
}

/* Closes fd. */
static int import_all(struct walk *w, int fd)
{
	DIR *d = fdopendir(fd);
	size_t used = w->used;
	struct dirent *e;
	int rc = TOOL_DONE;
	bool empty = true;

	if (!d) {
		rc = fail(w, errno, w->used ? w->name : "the directory");
		close(fd);
		return rc;
	}
	while (!rc && (e = readdir(d))) {
		if (!is_ours(e->d_name))
			continue;
		empty = false;
		w->used = used;
		rc = name_add(w, e->d_name, strlen(e->d_name))
			     ? import_entry(w, fd, e->d_name)
			     : fail(w, ENOMEM, e->d_name);
		if (!rc && tool_out_of_time(w->s->t))
			rc = tool_later("%s %s: %" PRIu64 " value%s in the store; run it again",
				w->s->what, w->dir, w->done->keys, out_s(w->done->keys));
	}
	closedir(d);
	w->used = used;
	if (!rc && empty && used && !w->o->flat) {
		w->name[used] = '\0';
		rc = add(w, NULL, 0, KV_DIR_EMPTY);
	}
	return rc;
}

/* D1. The path is that of the directory. */
static int import_directory(struct walk *w, int dir, const char *name, int how)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | how);

	if (fd < 0)
		return fail(w, errno, w->name);
	if (goes_on(w, name)) {
		w->used--;
	} else if (!name_add(w, "/", 1)) {
		close(fd);
		return fail(w, ENOMEM, w->name);
	}
	return import_all(w, fd);
}

int kv_dir_import(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done)
{
	struct walk w = { .s = s, .o = o, .done = done, .dir = dir };
	int rc, fd;

	*done = (struct kv_dir_done){ 0 };
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(&w, errno, "the directory");
	rc = import_all(&w, fd);
	if (!rc && w.nr)
		rc = group_put(&w);
	group_free(&w);
	free(w.name);
	return rc;
}
