/* kv_dir - see kv_dir.h. */
#include "tools/xseg/flow/kv_dir.h"

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
#include "tools/xseg/text/key_text.h"

#define PART	254u		/* of a name; with its `%` it is one that file systems take */
#define PARTIAL ".xseg-kv.partial"	/* no key has it: an encoded name begins with no dot */

struct walk {
	struct kv_store *s;
	const struct kv_dir_opts *o;
	struct kv_dir_done *done;
	const char *dir;
	int fd;
	/* import: a group of values that is to be put */
	struct xseg_kv_io io[KV_STORE_DEPTH];
	uint32_t nr;
	/* the key of the file that is looked at, as text, and its room */
	char *name;
	size_t used, room;
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

/* ---- export: the file of a key ----------------------------------------------------------- */

static int write_all(int fd, const uint8_t *data, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, data, bytes);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			bytes -= (uint64_t)n;
		}
	}
	return 0;
}

/* D2: under its own name when it is whole. */
static int write_file(int dir, const char *name, const uint8_t *data, uint64_t bytes, bool force)
{
	int fd = openat(dir, PARTIAL, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666),
	    rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, data, bytes);
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && force)
		rc = renameat(dir, PARTIAL, dir, name) ? -errno : 0;
	else if (!rc)
		rc = linkat(dir, PARTIAL, dir, name, 0) ? -errno : 0;
	if (rc || !force)
		unlinkat(dir, PARTIAL, 0);
	return rc;
}

/* The directory of the next part of a name; takes the place of *dir. */
static int enter(int *dir, const char *part, bool make)
{
	int fd;

	if (make && mkdirat(*dir, part, 0777) && errno != EEXIST)
		return -errno;
	fd = openat(*dir, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	close(*dir);
	*dir = fd;
	return 0;
}

static int export_value(struct walk *w, const char *name, const uint8_t *data, uint64_t bytes)
{
	int dir = fcntl(w->fd, F_DUPFD_CLOEXEC, 0), rc = dir < 0 ? -errno : 0;
	char part[PART + 2];

	while (!rc && strlen(name) > PART) {
		snprintf(part, sizeof(part), "%.*s%%", (int)PART, name);
		name += PART;
		rc = enter(&dir, part, true);
	}
	if (!rc)
		rc = write_file(dir, name, data, bytes, w->o->force);
	if (dir >= 0)
		close(dir);
	return rc;
}

/* ---- export ------------------------------------------------------------------------------ */

/* A value that was read; -1: go on. */
static int export_one(struct walk *w, const struct xseg_kv_io *io)
{
	char *name;
	int rc;

	if (io->result == -ENOENT)		/* it was deleted meanwhile */
		return -1;
	if (io->result < 0)
		return kv_store_fail(w->s, io->result, io->item.key, io->item.key_bytes);
	name = malloc(KEY_TEXT_BYTES(io->item.key_bytes));
	if (!name)
		return fail(w, ENOMEM, "a key");
	key_text_name(io->item.key, io->item.key_bytes, name);
	rc = export_value(w, name, io->item.value, (uint64_t)io->result);
	if (rc == -EEXIST)
		rc = tool_fail(TOOL_REFUSED,
			"%s %s: file %.80s exists; name another directory, or add --force to "
			"replace files",
			w->s->what, w->dir, name);
	else
		rc = rc ? fail(w, -rc, name) : -1;
	free(name);
	if (rc < 0) {
		w->done->keys++;
		w->done->bytes += (uint64_t)io->result;
	}
	return rc;
}

/* Values that have grown since they were told, or were told too late. */
static int read_grown(struct walk *w, struct xseg_kv_io *io)
{
	while (io->result > (int64_t)io->item.value_bytes) {
		uint64_t bytes = (uint64_t)io->result;
		void *more = realloc(io->item.value, bytes);
		int64_t rc;

		if (!more)
			return -ENOMEM;
		io->item.value = more;
		io->item.value_bytes = bytes;
		io->item.version = 0;
		rc = kv_store_run(w->s, io);
		if (rc == -EINTR || rc == -ETIMEDOUT)
			return (int)rc;
	}
	return 0;
}

static int export_group(
	struct kv_store *s, const struct xseg_kv_entry *entry, uint32_t nr, void *arg)
{
	struct walk *w = arg;
	int rc = -1, error = 0;

	for (uint32_t i = 0; i < nr; i++)
		w->io[i] = (struct xseg_kv_io){ .op = XSEG_KV_GET, .flags = XSEG_KV_ONCE,
			.item = { .key = entry[i].key, .key_bytes = entry[i].key_bytes,
				.value = malloc(entry[i].value_bytes + 1),
				.value_bytes = entry[i].value_bytes + 1 } };
	for (uint32_t i = 0; i < nr && !error; i++)
		error = w->io[i].item.value ? 0 : -ENOMEM;
	if (!error)
		error = kv_store_run_all(s, w->io, nr);
	for (uint32_t i = 0; i < nr && !error && rc < 0; i++) {
		error = read_grown(w, &w->io[i]);
		rc = error ? rc : export_one(w, &w->io[i]);
	}
	for (uint32_t i = 0; i < nr; i++)
		free(w->io[i].item.value);
	show(w);
	return error ? kv_store_fail(s, error, entry[0].key, entry[0].key_bytes) : rc;
}

int kv_dir_export(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done)
{
	struct walk w = { .s = s, .o = o, .done = done, .dir = dir };
	int rc;

	*done = (struct kv_dir_done){ 0 };
	if (mkdir(dir, 0777) && errno != EEXIST)
		return fail(&w, errno, "the directory");
	w.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w.fd < 0)
		return fail(&w, errno, "the directory");
	rc = kv_store_each(s, o->prefix, (uint32_t)strlen(o->prefix), true, export_group, &w);
	if (!rc && syncfs(w.fd))
		rc = fail(&w, errno, "it may not be on stable storage");
	close(w.fd);
	return rc;
}

/* ---- import ------------------------------------------------------------------------------ */

static void group_free(struct walk *w)
{
	for (uint32_t i = 0; i < w->nr; i++) {
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

/* Adds text to the name of the file that is looked at; false: no memory. */
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

/* The key that w->name is, behind the prefix. */
static int import_key(struct walk *w, struct xseg_kv_item *item)
{
	size_t prefix = strlen(w->o->prefix);
	uint8_t *key = malloc(prefix + w->used + 1);
	int64_t n;

	if (!key)
		return fail(w, ENOMEM, w->name);
	memcpy(key, w->o->prefix, prefix);
	item->key = key;
	n = key_text_decode(w->name, w->used, key + prefix);
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

static int import_file(struct walk *w, int dir, const char *name)
{
	struct xseg_kv_io *io = &w->io[w->nr];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
	uint8_t *data = NULL;
	int64_t n;

	if (fd < 0)
		return fail(w, errno, w->name);
	n = kv_store_read_fd(fd, w->s->info.value_max_bytes, &data);
	close(fd);
	*io = (struct xseg_kv_io){ .op = XSEG_KV_PUT,
		.item = { .value = data, .value_bytes = n < 0 ? 0 : (uint64_t)n } };
	w->nr++;
	if (n == -EFBIG)
		return kv_store_fail(w->s, n, w->name, (uint32_t)w->used);
	rc = n < 0 ? fail(w, (int)-n, w->name) : import_key(w, &io->item);
	return rc || w->nr < KV_STORE_DEPTH ? rc : group_put(w);
}

static int import_directory(struct walk *w, int fd);

/* D1. w->name is that of the entry. */
static int import_entry(struct walk *w, int dir, const char *name)
{
	size_t len = strlen(name);
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? TOOL_DONE : fail(w, errno, w->name);
	if (S_ISREG(st.st_mode))
		return import_file(w, dir, name);
	if (!S_ISDIR(st.st_mode)) {
		w->done->skipped++;
		return TOOL_DONE;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fail(w, errno, w->name);
	if (name[len - 1] == '%')
		w->used--;			/* the name goes on within */
	else if (!name_add(w, "/", 1))
		return fail(w, ENOMEM, w->name);
	return import_directory(w, fd);
}

/* Closes fd. */
static int import_directory(struct walk *w, int fd)
{
	DIR *d = fdopendir(fd);
	size_t used = w->used;
	struct dirent *e;
	int rc = TOOL_DONE;

	if (!d) {
		rc = fail(w, errno, w->used ? w->name : "the directory");
		close(fd);
		return rc;
	}
	while (!rc && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			!strcmp(e->d_name, PARTIAL))
			continue;
		w->used = used;
		rc = name_add(w, e->d_name, strlen(e->d_name))
			     ? import_entry(w, fd, e->d_name)
			     : fail(w, ENOMEM, e->d_name);
		if (!rc && tool_out_of_time(w->s->t))
			rc = tool_later("%s %s: %" PRIu64 " values are in the store; run it again",
				w->s->what, w->dir, w->done->keys);
	}
	closedir(d);
	w->used = used;
	return rc;
}

int kv_dir_import(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done)
{
	struct walk w = { .s = s, .o = o, .done = done, .dir = dir };
	int rc;

	*done = (struct kv_dir_done){ 0 };
	w.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w.fd < 0)
		return fail(&w, errno, "the directory");
	rc = import_directory(&w, w.fd);
	if (!rc && w.nr)
		rc = group_put(&w);
	group_free(&w);
	free(w.name);
	return rc;
}
