/* filed_files - see filed_files.h for its purpose, its states, contract and invariants. */
#include "peers/filed/filed_files.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/say/words.h"
#include "xtypes/xkill.h"
#include "xtypes/xline.h"
#include "xtypes/xstate.h"

#define NO_FD	    (-1)
#define CLEAN_LOOKS 64u /* slots looked at to find one that needs no sync */

static uint32_t slot_of(struct filed_files *ff, const struct filed_file *file)
{
	return (uint32_t)(file - ff->file);
}

static struct filed_mark *mark_of(struct filed_files *ff, const struct filed_file *file)
{
	return &ff->marks[slot_of(ff, file)];
}

#define TO(state) (1u << FILED_##state)

static const struct xstates states = {
	.what = "file",
	XSTATE(FILED_, FREE, TO(CLOSED)),
	XSTATE(FILED_, CLOSED, TO(BUSY)),
	XSTATE(FILED_, BUSY, TO(FREE) | TO(CLOSED) | TO(OPEN) | TO(ABSENT)),
	XSTATE(FILED_, OPEN, TO(BUSY)),
	XSTATE(FILED_, ABSENT, TO(BUSY)),
};

static void state_set_locked(struct filed_files *ff, struct filed_file *file,
	enum filed_file_state state)
{
	bool was_busy = file->state == FILED_BUSY;

	xstate_check(&states, file->state, state);
	file->state = state;
	if (was_busy)
		pthread_cond_broadcast(&ff->changed);
}

/* ---- what a sync has failed for ---------------------------------------------------------- */

/* After each sync, and when all is forgotten that was lost. Under the lock, or while the table is
 * opened. */
static void failed_count(struct filed_files *ff, struct filed_file *file, bool failed)
{
	const struct filed_mark *m = mark_of(ff, file);
	uint64_t was = file->failed_bytes;

	file->failed_bytes = failed || filed_mark_lost(m) ? filed_mark_bytes(m) : 0;
	ff->failed_bytes += file->failed_bytes - was;
	if (ff->told && file->failed_bytes != was)
		xseg_peer_user_set(ff->told, PEER_WORD_UNSYNCED, ff->failed_bytes);
}

void filed_files_tell(struct filed_files *ff, struct xseg_peer *peer)
{
	ff->told = peer;
}

uint64_t filed_files_failed(struct filed_files *ff)
{
	uint64_t bytes;

	pthread_mutex_lock(&ff->lock);
	bytes = ff->failed_bytes;
	pthread_mutex_unlock(&ff->lock);
	return bytes;
}

/* ---- opening and closing the table ------------------------------------------------------- */

static int memory_alloc(struct filed_files *ff)
{
	size_t files = xline_round(ff->nr * sizeof(struct filed_file));
	size_t nodes = xline_round(ff->nr * sizeof(struct xlist_node));
	size_t hash = xline_round(xhash_mem_bytes(ff->nr));
	uint8_t *at = xline_alloc(files + nodes + hash + xpool_mem_bytes(ff->nr));
	uint32_t i;

	if (!at)
		return -ENOMEM;
	ff->memory = at;
	ff->file = (void *)at;
	xlist_init(&ff->lru, (void *)(at + files));
	for (i = 0; i < ff->nr; i++) {
		ff->file[i].fd = NO_FD;
		xlist_node_init((void *)(at + files), i);
	}
	xhash_init(&ff->index, at + files + nodes, ff->nr);
	xpool_init(&ff->free, at + files + nodes + hash, ff->nr);
	return 0;
}

/* Under the lock, or while the table is opened. */
static void slot_claim(struct filed_files *ff, uint32_t slot, const char *name, uint64_t hash)
{
	struct filed_file *file = &ff->file[slot];
	int rc;

	if (!filed_mark_state(&ff->marks[slot]))
		filed_mark_name(&ff->marks[slot], name);
	file->hash = hash;
	rc = xhash_insert(&ff->index, hash, slot);
	assert(rc == 0);
	xlist_push_head(&ff->lru, slot);
	state_set_locked(ff, file, FILED_CLOSED);
}

/* A name that a mark can have: one that has a path, so what is asked for it later cannot fail. */
static bool mark_name_ok(const struct filed_mark *m)
{
	char path[FILED_PATH_MAX];

	return m->name[0] && !m->name[sizeof(m->name) - 1] && !filed_dir_path(m->name, 0, path);
}

static bool slots_recover(struct filed_files *ff)
{
	struct filed_mark *m;
	uint32_t i;

	for (i = ff->nr; i-- > 0;) {
		m = &ff->marks[i];
		if (!filed_mark_state(m)) {
			xpool_put(&ff->free, i);
			continue;
		}
		if (!mark_name_ok(m))
			return false;
		slot_claim(ff, i, m->name, xseg_hash(m->name, strlen(m->name)));
		failed_count(ff, &ff->file[i], false);
	}
	return true;
}

int filed_files_open(struct filed_files *ff, struct filed_dir *dir, const char *place, void *arena,
	uint64_t bytes, uint32_t nr, struct xseg_error *err)
{
	struct stat st;
	int rc;

	memset(ff, 0, sizeof(*ff));
	ff->dir = dir;
	ff->nr = nr;
	if (fstat(dir->fd, &st))
		return xseg_fail(err, -errno, "the directory cannot be examined: %s",
			strerror(errno));
	/* before the marks know it: until then nothing says what is not durable there */
	rc = dir->found && !filed_marks_know(arena, &st) ? filed_dir_sync_all(dir) : 0;
	if (rc)
		return xseg_fail(err, rc, "the files in the directory cannot be synced: %s",
			strerror(-rc));
	rc = filed_marks_open(arena, bytes, &st, place, &ff->nr, &ff->marks, err);
	if (rc)
		return rc;
	rc = memory_alloc(ff);
	if (rc)
		return xseg_fail(err, rc, "no memory for a table of %u files", ff->nr);
	pthread_mutex_init(&ff->lock, NULL);
	pthread_cond_init(&ff->changed, NULL);
	if (slots_recover(ff))
		return 0;
	filed_files_close(ff);
	return xseg_fail(err, -EPROTO,
		"filed's arena is damaged; start it under another name, or make the segment again");
}

void filed_files_close(struct filed_files *ff)
{
	uint32_t i;

	if (!ff->memory)
		return;
	for (i = 0; i < ff->nr; i++)
		if (ff->file[i].fd != NO_FD)
			close(ff->file[i].fd);
	pthread_cond_destroy(&ff->changed);
	pthread_mutex_destroy(&ff->lock);
	free(ff->memory);
	ff->memory = NULL;
}

/* ---- finding ----------------------------------------------------------------------------- */

struct name_key {
	struct filed_files *ff;
	uint64_t hash;
	const char *name;
};

static bool name_eq(void *arg, uint32_t slot)
{
	const struct name_key *key = arg;

	return key->ff->file[slot].hash == key->hash &&
		!strncmp(key->ff->marks[slot].name, key->name, sizeof(key->ff->marks[slot].name));
}

static struct filed_file *find_locked(struct filed_files *ff, uint64_t hash, const char *name)
{
	struct name_key key = { ff, hash, name };
	uint32_t slot = xhash_find(&ff->index, hash, name_eq, &key);

	assert(ff->file);
	return slot == XHASH_NONE ? NULL : &ff->file[slot];
}

static bool ready(const struct filed_file *file, enum filed_use use)
{
	return file->state == FILED_OPEN ? file->checked || use == FILED_REMOVE
					 : file->state == FILED_ABSENT && use != FILED_MAKE;
}

static void ref_locked(struct filed_files *ff, struct filed_file *file, int *fd)
{
	file->refs++;
	*fd = file->fd;
	xlist_move_head(&ff->lru, slot_of(ff, file));
}

struct filed_file *filed_file_try(struct filed_files *ff, uint64_t hash, const char *name,
	enum filed_use use, uint64_t end, int *fd)
{
	struct filed_file *file;

	pthread_mutex_lock(&ff->lock);
	file = find_locked(ff, hash, name);
	if (file && ready(file, use) && (file->state == FILED_ABSENT || end <= file->length))
		ref_locked(ff, file, fd);
	else
		file = NULL;
	pthread_mutex_unlock(&ff->lock);
	return file;
}

bool filed_file_put(struct filed_files *ff, struct filed_file *file)
{
	bool idle;

	pthread_mutex_lock(&ff->lock);
	assert(file->refs > 0);
	idle = --file->refs == 0;
	pthread_mutex_unlock(&ff->lock);
	return idle;
}

static void file_path(struct filed_files *ff, const struct filed_file *file,
	char path[FILED_PATH_MAX])
{
	/* names that have no path get no slot */
	if (filed_dir_path(mark_of(ff, file)->name, file->hash, path))
		abort();
}

/* ---- syncing ----------------------------------------------------------------------------- */

static bool leaf_durable(struct filed_files *ff, uint64_t hash)
{
	return ff->durable[hash >> 51] & 1u << (hash >> 48 & 7);
}

/* Syncs a file by its descriptor or, if a predecessor wrote it, by one for this purpose. What the
 * sync itself says is final; an error before that loses nothing. */
static int sync_data(struct filed_files *ff, const char *path, int fd, bool deleting,
	enum filed_data *data)
{
	int own = NO_FD, rc;

	*data = FILED_DATA_UNTRIED;
	if (fd == NO_FD) {
		own = filed_dir_open_file(ff->dir, path, false);
		if (own == -ENOENT) {
			*data = deleting ? FILED_DATA_DELETED : FILED_DATA_LOST;
			return deleting ? 0 : -EIO;
		}
		if (own < 0)
			return own;
		fd = own;
	}
	do
		rc = fdatasync(fd) ? -errno : 0;
	while (rc == -EINTR);
	*data = rc ? FILED_DATA_LOST : FILED_DATA_SYNCED;
	if (own != NO_FD)
		close(own);
	return rc;
}

/* Neither BUSY by another nor syncing. The lock is given up meanwhile. */
static int sync_locked(struct filed_files *ff, struct filed_file *file)
{
	struct filed_mark *m = mark_of(ff, file);
	int data_rc = 0, dirs_rc = 0, fd = file->fd;
	enum filed_data data = FILED_DATA_SYNCED;
	char path[FILED_PATH_MAX];
	struct filed_change *c;
	bool made = true, deleting = filed_mark_state(m) & FILED_MARK_DELETING;
	struct filed_sync s;

	file->syncing = true;
	filed_mark_sync_begin(m, &s);
	for (c = file->changes; c; c = c->next)
		filed_mark_write(m, c->from, c->to);
	file_path(ff, file, path);
	pthread_mutex_unlock(&ff->lock);
	if (s.data || deleting)
		data_rc = sync_data(ff, path, fd, deleting, &data);
	XKILL(FILE_SYNCED);
	if (s.dirs)
		dirs_rc = filed_dir_sync(ff->dir, path, s.dirs & FILED_MARK_PARENTS);
	pthread_mutex_lock(&ff->lock);
	if (dirs_rc == -ENOENT) {	/* it was to be made, and was not: there is no entry */
		made = false;
		dirs_rc = 0;
	}
	filed_mark_sync_end(m, &s, data, !dirs_rc);
	file->lost_syncs += data == FILED_DATA_LOST;
	if (s.dirs & FILED_MARK_PARENTS && made && !dirs_rc)
		ff->durable[file->hash >> 51] |= (uint8_t)(1u << (file->hash >> 48 & 7));
	ff->sync_errors += !!data_rc + !!dirs_rc;
	failed_count(ff, file, data_rc || dirs_rc);
	file->syncing = false;
	pthread_cond_broadcast(&ff->changed);
	return data_rc ? data_rc : dirs_rc;
}

static int sync_if_needed_locked(struct filed_files *ff, struct filed_file *file)
{
	while (file->state == FILED_BUSY || file->syncing)
		pthread_cond_wait(&ff->changed, &ff->lock);
	if (file->state == FILED_FREE || !filed_mark_unsynced(mark_of(ff, file)))
		return 0;
	return sync_locked(ff, file);
}

int filed_file_sync(struct filed_files *ff, struct filed_file *file)
{
	int rc;

	pthread_mutex_lock(&ff->lock);
	rc = sync_if_needed_locked(ff, file);
	pthread_mutex_unlock(&ff->lock);
	return rc;
}

/* A BUSY file is unlinked: ABSENT, or OPEN as it was. The lock is given up meanwhile. */
static int delete_locked(struct filed_files *ff, struct filed_file *file)
{
	char path[FILED_PATH_MAX];
	int rc, fd = file->fd;

	filed_mark_deleting(mark_of(ff, file));
	pthread_mutex_unlock(&ff->lock);
	file_path(ff, file, path);
	rc = filed_dir_unlink(ff->dir, path);
	XKILL(FILE_UNLINKED);
	if (!rc)
		close(fd);
	pthread_mutex_lock(&ff->lock);
	if (!rc) {
		file->fd = NO_FD;
		filed_mark_deleted(mark_of(ff, file));
		failed_count(ff, file, false);
	} else {
		filed_mark_kept(mark_of(ff, file));
	}
	state_set_locked(ff, file, rc ? FILED_OPEN : FILED_ABSENT);
	return rc;
}

int filed_file_delete(struct filed_files *ff, struct filed_file *file)
{
	int rc;

	pthread_mutex_lock(&ff->lock);
	while (file->syncing || file->state == FILED_BUSY)
		pthread_cond_wait(&ff->changed, &ff->lock);
	assert(file->state == FILED_OPEN && !file->changes);
	state_set_locked(ff, file, FILED_BUSY);
	rc = delete_locked(ff, file);
	pthread_mutex_unlock(&ff->lock);
	return rc;
}

void filed_file_emptied(struct filed_files *ff, struct filed_file *file)
{
	pthread_mutex_lock(&ff->lock);
	file->emptied = true;
	pthread_mutex_unlock(&ff->lock);
}

/* F7; that it could not be deleted is no error: it reads as zeroes. */
static void drop_if_empty_locked(struct filed_files *ff, struct filed_file *file)
{
	bool empty;

	if (!file->emptied || file->refs || file->syncing || file->state != FILED_OPEN ||
		filed_mark_lost(mark_of(ff, file)))
		return;
	file->emptied = false;
	state_set_locked(ff, file, FILED_BUSY);
	pthread_mutex_unlock(&ff->lock);
	empty = lseek(file->fd, 0, SEEK_DATA) < 0 && errno == ENXIO;
	pthread_mutex_lock(&ff->lock);
	if (empty)
		(void)delete_locked(ff, file);
	else
		state_set_locked(ff, file, FILED_OPEN);
}

void filed_files_sync(struct filed_files *ff, const struct filed_asker *asker)
{
	uint32_t i;
	int rc;

	pthread_mutex_lock(&ff->lock);
	for (i = 0; i < ff->nr; i++) {
		if (ff->file[i].state == FILED_FREE || !asker->wants(asker->arg, ff->marks[i].name))
			continue;
		drop_if_empty_locked(ff, &ff->file[i]);
		rc = sync_if_needed_locked(ff, &ff->file[i]);
		if (!rc && ff->file[i].state != FILED_FREE && filed_mark_lost(&ff->marks[i]))
			rc = -EIO;
		if (rc)
			asker->tell(asker->arg, ff->marks[i].name, rc);
	}
	pthread_mutex_unlock(&ff->lock);
}

/* ---- changes ----------------------------------------------------------------------------- */

void filed_change_begin(struct filed_files *ff, struct filed_change *c, struct filed_file *file,
	uint64_t from, uint64_t to)
{
	*c = (struct filed_change){ .file = file, .from = from, .to = to };
	pthread_mutex_lock(&ff->lock);
	c->lost_syncs = file->lost_syncs;
	filed_mark_write(mark_of(ff, file), from, to);
	XKILL(MARK_WRITTEN);
	c->next = file->changes;
	if (c->next)
		c->next->prev = c;
	file->changes = c;
	pthread_mutex_unlock(&ff->lock);
}

static bool is_lost_locked(const struct filed_change *c)
{
	return c->lost_syncs != c->file->lost_syncs;
}

bool filed_change_is_lost(struct filed_files *ff, const struct filed_change *c)
{
	bool lost;

	pthread_mutex_lock(&ff->lock);
	lost = is_lost_locked(c);
	pthread_mutex_unlock(&ff->lock);
	return lost;
}

void filed_change_end(struct filed_files *ff, struct filed_change *c, bool ok)
{
	pthread_mutex_lock(&ff->lock);
	if (c->prev)
		c->prev->next = c->next;
	else
		c->file->changes = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (ok && !is_lost_locked(c))
		filed_mark_wrote(mark_of(ff, c->file), c->from, c->to);
	pthread_mutex_unlock(&ff->lock);
}

/* ---- opening, giving away, deleting ------------------------------------------------------ */

/* Opens what may be there, or makes what is not. The descriptor or -errno. */
static int open_or_make(struct filed_files *ff, struct filed_file *file, const char *path,
	enum filed_use use)
{
	int fd = filed_dir_open_file(ff->dir, path, false);
	uint32_t dirs = FILED_MARK_ENTRY;
	bool create = use == FILED_MAKE;

	if (fd != -ENOENT)
		return fd;
	pthread_mutex_lock(&ff->lock);
	filed_mark_absent(mark_of(ff, file));
	failed_count(ff, file, false);
	if (!leaf_durable(ff, file->hash))
		dirs |= FILED_MARK_PARENTS;
	if (create)
		filed_mark_entry(mark_of(ff, file), dirs);
	pthread_mutex_unlock(&ff->lock);
	fd = create ? filed_dir_open_file(ff->dir, path, true) : -ENOENT;
	XKILL(FILE_MADE);
	return fd;
}

/* CLOSED or ABSENT -> BUSY -> OPEN, ABSENT or back; OPEN and not checked -> BUSY -> OPEN. */
static int open_locked(struct filed_files *ff, struct filed_file *file, enum filed_use use)
{
	enum filed_file_state was = file->state;
	char path[FILED_PATH_MAX];
	int fd = file->fd, rc = 0;
	uint64_t length = 0;

	state_set_locked(ff, file, FILED_BUSY);
	pthread_mutex_unlock(&ff->lock);
	file_path(ff, file, path);
	if (fd == NO_FD)
		fd = open_or_make(ff, file, path, use);
	if (fd >= 0 && use != FILED_REMOVE)
		rc = filed_tag_check(fd, mark_of(ff, file)->name, &length);
	if (rc && was != FILED_OPEN)
		close(fd);
	pthread_mutex_lock(&ff->lock);
	if (fd == -ENOENT && use != FILED_MAKE) {
		state_set_locked(ff, file, FILED_ABSENT);
		return 0;
	}
	if (fd < 0 || rc) {
		state_set_locked(ff, file, was);
		return rc ? rc : fd;
	}
	file->fd = fd;
	file->emptied = false;
	file->checked = use != FILED_REMOVE;
	file->length = length;
	filed_mark_kept(mark_of(ff, file));
	state_set_locked(ff, file, FILED_OPEN);
	return 0;
}

static bool may_give_away(struct filed_files *ff, const struct filed_file *file)
{
	return !file->refs && !file->syncing && file->state != FILED_BUSY &&
	       !filed_mark_lost(mark_of(ff, file));
}

/* The least recently used that nobody has; rather one that needs no sync, if one is near; one whose
 * sync has failed if there is no other. */
static struct filed_file *victim_locked(struct filed_files *ff)
{
	struct filed_file *file, *unsynced = NULL, *failed = NULL;
	uint32_t slot, looks = 0;

	for (slot = xlist_tail(&ff->lru); slot != XLIST_NONE && looks < CLEAN_LOOKS;
		slot = xlist_prev(&ff->lru, slot)) {
		file = &ff->file[slot];
		if (!may_give_away(ff, file))
			continue;
		if (!filed_mark_unsynced(&ff->marks[slot]))
			return file;
		if (!file->failed_bytes) {
			looks++;
			unsynced = unsynced ? unsynced : file;
		} else if (!failed) {
			failed = file;
		}
	}
	return unsynced ? unsynced : failed;
}

/* Whether some slot will be there to be given away when others are ready with it. */
static bool others_pending_locked(struct filed_files *ff)
{
	uint32_t i;

	for (i = 0; i < ff->nr; i++)
		if (ff->file[i].refs || ff->file[i].syncing || ff->file[i].state == FILED_BUSY)
			return true;
	return false;
}

static void slot_release_locked(struct filed_files *ff, struct filed_file *file)
{
	uint32_t slot = slot_of(ff, file);

	assert(!file->failed_bytes);
	xhash_remove(&ff->index, file->hash, slot);
	xlist_remove(&ff->lru, slot);
	filed_mark_free(&ff->marks[slot]);
	xpool_put(&ff->free, slot);
	state_set_locked(ff, file, FILED_FREE);
}

/* Makes a slot free, or learns that one cannot be: both 0. -EAGAIN: none now. -EIO: none. */
static int evict_locked(struct filed_files *ff)
{
	struct filed_file *file = victim_locked(ff);
	bool last = !file || file->failed_bytes;
	enum filed_file_state was;
	int fd;

	if (!file)
		goto out_none;
	drop_if_empty_locked(ff, file);
	was = file->state;
	state_set_locked(ff, file, FILED_BUSY);
	if (filed_mark_unsynced(mark_of(ff, file)) && sync_locked(ff, file)) {
		state_set_locked(ff, file, was);
		xlist_move_head(&ff->lru, slot_of(ff, file));	/* the next time another is tried */
		if (last)
			goto out_none;
		return 0;
	}
	fd = file->fd;
	file->fd = NO_FD;
	if (fd != NO_FD) {
		pthread_mutex_unlock(&ff->lock);
		close(fd);
		pthread_mutex_lock(&ff->lock);
	}
	XKILL(FILE_RELEASED);
	slot_release_locked(ff, file);
	return 0;
out_none:
	return others_pending_locked(ff) ? -EAGAIN : -EIO;
}

/* One step towards a slot that is ready: 0 and *file, or 1: look again, or -errno. */
static int get_step_locked(struct filed_files *ff, uint64_t hash, const char *name,
	enum filed_use use, struct filed_file **found, int *fd)
{
	struct filed_file *file = find_locked(ff, hash, name);
	int rc;

	if (!file && xpool_nr(&ff->free)) {
		slot_claim(ff, xpool_get(&ff->free), name, hash);
		return 1;
	}
	if (!file) {
		rc = evict_locked(ff);
		return rc ? rc : 1;
	}
	if (ready(file, use)) {
		ref_locked(ff, file, fd);
		*found = file;
		return 0;
	}
	if (file->state == FILED_BUSY || file->syncing) {
		pthread_cond_wait(&ff->changed, &ff->lock);
		return 1;
	}
	rc = open_locked(ff, file, use);
	return rc ? rc : 1;
}

int filed_file_get(struct filed_files *ff, uint64_t hash, const char *name, enum filed_use use,
	struct filed_file **file, int *fd)
{
	char path[FILED_PATH_MAX];
	int rc = filed_dir_path(name, hash, path);

	if (rc)
		return rc;
	pthread_mutex_lock(&ff->lock);
	do
		rc = get_step_locked(ff, hash, name, use, file, fd);
	while (rc > 0);
	pthread_mutex_unlock(&ff->lock);
	return rc;
}

int filed_file_grow(struct filed_files *ff, struct filed_file *file, uint64_t end)
{
	uint64_t length = 0;
	int rc = 0;

	pthread_mutex_lock(&ff->lock);
	while (file->growing)
		pthread_cond_wait(&ff->changed, &ff->lock);
	if (!file->length || end > file->length) {
		file->growing = true;
		pthread_mutex_unlock(&ff->lock);
		rc = filed_tag_grow(file->fd, mark_of(ff, file)->name, end, &length);
		pthread_mutex_lock(&ff->lock);
		file->growing = false;
		if (!rc)
			file->length = length;
		pthread_cond_broadcast(&ff->changed);
	}
	pthread_mutex_unlock(&ff->lock);
	return rc;
}

void filed_file_forget(struct filed_files *ff, struct filed_file *file, bool all, uint64_t from,
	uint64_t to)
{
	pthread_mutex_lock(&ff->lock);
	while (file->syncing || file->state == FILED_BUSY)
		pthread_cond_wait(&ff->changed, &ff->lock);
	if (file->state == FILED_ABSENT && filed_mark_lost(mark_of(ff, file))) {
		if (all)
			filed_mark_deleted(mark_of(ff, file));
		else
			filed_mark_discarded(mark_of(ff, file), from, to);
		failed_count(ff, file, false);
	}
	pthread_mutex_unlock(&ff->lock);
}

/* ---- counting ---------------------------------------------------------------------------- */

void filed_files_count(struct filed_files *ff, struct filed_counts *counts)
{
	uint32_t i;

	*counts = (struct filed_counts){ 0 };
	pthread_mutex_lock(&ff->lock);
	for (i = 0; i < ff->nr; i++) {
		if (ff->file[i].state == FILED_FREE)
			continue;
		counts->open += ff->file[i].fd != NO_FD;
		counts->unsynced += filed_mark_unsynced(&ff->marks[i]);
		counts->lost += filed_mark_lost(&ff->marks[i]);
	}
	counts->sync_errors = ff->sync_errors;
	pthread_mutex_unlock(&ff->lock);
}
