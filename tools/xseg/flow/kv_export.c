/* kv_export - the export of kv_dir.h. */
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

#define PARTIAL KEY_TEXT_PARTIAL

struct walk {
	struct kv_store *s;
	const struct kv_dir_opts *o;
	struct kv_dir_done *done;
	const char *dir;
	int fd;
	struct xseg_kv_io io[KV_STORE_DEPTH];
};

/* Where the file of a key is. */
struct place {
	int dir;
	uint32_t depth;				/* directories between DIR and it */
	char name[KV_DIR_NAME + 1];
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

/* What is to be said of a key that could not become a file. */
static int fail_key(const struct walk *w, const struct xseg_kv_item *item, int rc)
{
	char name[KEY_TEXT_BYTES(80)];

	key_text(item->key, item->key_bytes < 80 ? item->key_bytes : 80, name);
	if (rc == -EEXIST)
		return tool_fail(TOOL_REFUSED,
			"%s %s: file %.80s exists; name another directory, or add --force to "
			"replace files",
			w->s->what, w->dir, name);
	if (!w->o->flat && (rc == -ENOTDIR || rc == -EISDIR || rc == -ELOOP))
		return tool_fail(TOOL_REFUSED,
			"%s %s: key %.80s needs a file and a directory of one name; add --flat, "
			"which makes no directories of keys",
			w->s->what, w->dir, name);
	return fail(w, -rc, name);
}

/* ---- names ------------------------------------------------------------------------------- */

/* The directory of the next part of a name; takes the place of p->dir. */
static int enter(struct place *p, const char *part)
{
	int fd;

	if (mkdirat(p->dir, part, 0777) && errno != EEXIST)
		return -errno;
	fd = openat(p->dir, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	close(p->dir);
	p->dir = fd;
	p->depth++;
	return 0;
}

/* A name that may be too long, within `most` bytes for each directory. */
static int enter_long(struct place *p, const char *name, size_t most, const char **rest)
{
	char part[KV_DIR_NAME + 1];
	int rc = 0;

	while (!rc && strlen(name) > most) {
		snprintf(part, sizeof(part), "%.*s%%", (int)KV_DIR_NAME - 1, name);
		name += KV_DIR_NAME - 1;
		rc = enter(p, part);
	}
	*rest = name;
	return rc;
}

static int find_flat(struct place *p, const struct xseg_kv_item *item, char *text)
{
	const char *rest;
	int rc;

	key_text_name(item->key, item->key_bytes, text);
	rc = enter_long(p, text, KV_DIR_NAME - 1, &rest);
	if (!rc)
		snprintf(p->name, sizeof(p->name), "%s", rest);
	return rc;
}

/* `bytes` of the key: without the slash at its end if it is an empty directory's. */
static int find_in_tree(struct place *p, const uint8_t *key, size_t bytes, char *text)
{
	bool alone = !memchr(key, '/', bytes);
	const char *rest;
	int rc = 0;

	for (;;) {
		const uint8_t *slash = memchr(key, '/', bytes);
		size_t part = slash ? (size_t)(slash - key) : bytes;

		key_text_part(key, part, alone, text);
		rc = enter_long(p, text, KV_DIR_NAME, &rest);
		if (rc)
			return rc;
		snprintf(p->name, sizeof(p->name), "%s", rest);
		if (!slash)
			return 0;
		rc = enter(p, p->name);
		if (rc)
			return rc;
		key += part + 1;
		bytes -= part + 1;
	}
}

static bool is_empty_dir(const struct walk *w, const struct xseg_kv_item *item, uint64_t bytes)
{
	const uint8_t *key = item->key;

	return !w->o->flat && item->client == KV_DIR_EMPTY && bytes == 0 && item->key_bytes > 1 &&
	       key[item->key_bytes - 1] == '/';
}

/* Close p->dir in any case. */
static int find_place(struct walk *w, const struct xseg_kv_item *item, bool empty_dir,
	struct place *p)
{
	char *text = malloc(KEY_TEXT_BYTES(item->key_bytes) + 1);
	int rc;

	*p = (struct place){ .dir = fcntl(w->fd, F_DUPFD_CLOEXEC, 0) };
	rc = p->dir < 0 ? -errno : text ? 0 : -ENOMEM;
	if (!rc && w->o->flat)
		rc = find_flat(p, item, text);
	else if (!rc)
		rc = find_in_tree(p, item->key, item->key_bytes - empty_dir, text);
	free(text);
	return rc;
}

static void leave_place(struct place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	p->dir = -1;
}

/* ---- files ------------------------------------------------------------------------------- */

/* D2: what stands under the partial name gets its own. */
static int name_it(const struct walk *w, const struct place *p)
{
	struct stat st;
	int rc = 0;

	if (w->o->force)
		rc = renameat(p->dir, PARTIAL, p->dir, p->name) ? -errno : 0;
	else if (linkat(p->dir, PARTIAL, p->dir, p->name, 0))
		rc = -errno;
	if (rc == -EEXIST && !fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) &&
		S_ISDIR(st.st_mode))
		rc = -EISDIR;
	return rc;
}

static void drop_partial(const struct walk *w, const struct place *p, int rc)
{
	if (rc || !w->o->force)
		unlinkat(p->dir, PARTIAL, 0);
}

static int open_partial(const struct place *p)
{
	int fd = openat(p->dir, PARTIAL, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0666);

	return fd < 0 ? -errno : fd;
}

/* All of a small value. */
static int write_file(const struct walk *w, const struct place *p, const uint8_t *data,
	uint64_t bytes)
{
	int fd = open_partial(p), rc;
	struct kv_sink to = kv_sink_fd(fd);

	if (fd < 0)
		return fd;
	rc = to.write(&to, data, bytes);
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc)
		rc = name_it(w, p);
	drop_partial(w, p, rc);
	return rc;
}

/* D3 */
bool kv_dir_leads_inside(const char *target, uint32_t depth)
{
	bool down = false;

	if (*target == '/' || *target == '\0')
		return false;
	while (*target) {
		size_t part = strcspn(target, "/");
		bool up = part == 2 && !memcmp(target, "..", 2);

		if (up && (down || depth-- == 0))
			return false;
		down |= !up && part && !(part == 1 && *target == '.');
		target += part;
		target += strspn(target, "/");
	}
	return true;
}

/* 0, or -EXDEV: the link would lead outside. */
static int make_link(const struct walk *w, const struct place *p, const uint8_t *data,
	uint64_t bytes)
{
	char target[PATH_MAX];
	int rc;

	if (bytes >= sizeof(target) || memchr(data, 0, bytes))
		return -EXDEV;
	memcpy(target, data, bytes);
	target[bytes] = '\0';
	if (!kv_dir_leads_inside(target, p->depth))
		return -EXDEV;
	unlinkat(p->dir, PARTIAL, 0);
	rc = symlinkat(target, p->dir, PARTIAL) ? -errno : name_it(w, p);
	drop_partial(w, p, rc);
	return rc;
}

static int make_dir(const struct place *p)
{
	struct stat st;

	if (!mkdirat(p->dir, p->name, 0777))
		return 0;
	if (errno != EEXIST || fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Counts a value that is exported; -1: go on. */
static int count(struct walk *w, uint64_t bytes)
{
	w->done->keys++;
	w->done->bytes += bytes;
	return -1;
}

/* A value that was read. */
static int export_small(struct walk *w, const struct xseg_kv_io *io)
{
	const struct xseg_kv_item *item = &io->item;
	uint64_t bytes = (uint64_t)io->result;
	bool empty_dir = is_empty_dir(w, item, bytes);
	struct place p;
	int rc = find_place(w, item, empty_dir, &p);

	if (!rc && empty_dir)
		rc = make_dir(&p);
	else if (!rc && !w->o->flat && item->client == KV_DIR_LINK)
		rc = make_link(w, &p, item->value, bytes);
	else if (!rc)
		rc = write_file(w, &p, item->value, bytes);
	leave_place(&p);
	if (rc == -EXDEV) {
		w->done->skipped++;
		return -1;
	}
	return rc ? fail_key(w, item, rc) : count(w, bytes);
}

static int write_stream(struct kv_value *v, int fd, const char *shown, int *error)
{
	struct kv_sink to = kv_sink_fd(fd);
	int64_t rc = kv_value_write(v, &to, shown);

	*error = to.error;
	if (close(fd) && !rc) {
		*error = errno;
		rc = -errno;
	}
	return (int)rc;
}

/* A value that is too large to be read as a whole. */
static int export_stream(struct walk *w, const struct xseg_kv_item *item)
{
	char shown[120], name[KEY_TEXT_BYTES(80)];
	struct place p = { .dir = -1 };
	struct kv_value v;
	int64_t rc = kv_value_open(w->s, &v, item->key, item->key_bytes, XSEG_KV_ONCE);
	int error = 0, fd;

	if (rc == -ENOENT) {
		kv_value_close(&v);
		return -1;
	}
	key_text(item->key, item->key_bytes < 80 ? item->key_bytes : 80, name);
	snprintf(shown, sizeof(shown), "%s %.80s", w->s->what, name);
	if (!rc)
		error = find_place(w, item, false, &p);
	if (!rc && !error) {
		fd = open_partial(&p);
		error = fd < 0 ? fd : 0;
		if (fd >= 0) {
			rc = write_stream(&v, fd, shown, &error);
			error = -error;
		}
		if (!rc && !error)
			error = name_it(w, &p);
		drop_partial(w, &p, rc || error);
	}
	leave_place(&p);
	kv_value_close(&v);
	if (error)
		return fail_key(w, item, error);
	return rc ? kv_store_fail(w->s, rc, item->key, item->key_bytes)
		  : count(w, v.item.value_bytes);
}

/* ---- all of them ------------------------------------------------------------------------- */

static bool is_small(uint64_t bytes)
{
	return bytes <= KV_DIR_SMALL;
}

/* The small ones of a group are read at the same time. A value that has grown since it was listed
 * becomes a stream. */
static int export_one(struct walk *w, const struct xseg_kv_io *io)
{
	if (io->result == -ENOENT)		/* it was deleted meanwhile */
		return -1;
	if (io->result < 0)
		return kv_store_fail(w->s, io->result, io->item.key, io->item.key_bytes);
	if ((uint64_t)io->result > io->item.value_bytes)
		return export_stream(w, &io->item);
	return export_small(w, io);
}

static int export_group(
	struct kv_store *s, const struct xseg_kv_entry *entry, uint32_t nr, void *arg)
{
	struct walk *w = arg;
	uint32_t small = 0;
	int rc = -1, error = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!is_small(entry[i].value_bytes))
			continue;
		w->io[small] = (struct xseg_kv_io){ .op = XSEG_KV_GET, .flags = XSEG_KV_ONCE,
			.item = { .key = entry[i].key, .key_bytes = entry[i].key_bytes,
				.value = malloc(entry[i].value_bytes + 1),
				.value_bytes = entry[i].value_bytes + 1 } };
		error = w->io[small++].item.value ? error : -ENOMEM;
	}
	if (!error)
		error = kv_store_run_all(s, w->io, small);
	for (uint32_t i = 0; i < small && !error && rc < 0; i++)
		rc = export_one(w, &w->io[i]);
	for (uint32_t i = 0; i < small; i++)
		if (error != -EINTR && error != -ETIMEDOUT)
			free(w->io[i].item.value);
	for (uint32_t i = 0; i < nr && !error && rc < 0; i++)
		if (!is_small(entry[i].value_bytes))
			rc = export_stream(w,
				&(struct xseg_kv_item){ .key = entry[i].key,
					.key_bytes = entry[i].key_bytes });
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
