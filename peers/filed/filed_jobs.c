/* filed_jobs - the work of the workers: the ops that block, and the bytes that O_DIRECT does not
 * take as they are.
 *
 * A range that is not aligned is moved through the worker's bounce buffer in whole blocks. Bytes
 * off .. end - 1 of the file stand at bounce + off - lo, where lo .. hi are off .. end rounded out.
 * Before such a write the first and last block's other bytes are read from the file.
 *
 * Contract: a worker calls each function but filed_op_change(), and has the op to itself. The order
 * keeps all other ops out of the range.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/blocker/piece.h"
#include "peers/common/blocker/zeroes.h"
#include "peers/common/log/log.h"
#include "peers/common/clock/clock.h"
#include "peers/common/say/space.h"
#include "peers/filed/filed.h"
#include "peers/filed/filed_list.h"
#include "xtypes/xkill.h"

#define SPACE_LOOK_NS UINT64_C(1000000000)
#define STUCK_MAX 4u				/* transfers that bring no block further */

/* ---- whole reads and writes -------------------------------------------------------------- */

/* A transfer ended within a block: it goes on at the block's start, as O_DIRECT takes nothing else.
 * False: for too long it has come no further. */
static bool whole_blocks(const struct filed *f, size_t *done, size_t was, uint32_t *stuck)
{
	*done -= *done % f->dir.align;
	*stuck = *done > was ? 0 : *stuck + 1;
	return *stuck < STUCK_MAX;
}

/* Reads what there is; zeroes behind the file's end. */
static int read_blocks(const struct filed *f, int fd, uint8_t *buf, size_t len, uint64_t offset)
{
	size_t done = 0, was;
	uint32_t stuck = 0;
	struct stat st;
	ssize_t rc;

	while (done < len) {
		rc = TEMP_FAILURE_RETRY(pread(fd, buf + done, len - done, (off_t)(offset + done)));
		if (rc < 0)
			return -errno;
		was = done;
		done += (size_t)rc;
		if (rc && done % f->dir.align && fstat(fd, &st))
			return -errno;
		if (rc == 0 || (done % f->dir.align && offset + done >= (uint64_t)st.st_size))
			break;
		if (!whole_blocks(f, &done, was, &stuck))
			return -EIO;
	}
	memset(buf + done, 0, len - done);
	return 0;
}

static int write_blocks(
	const struct filed *f, int fd, const uint8_t *buf, size_t len, uint64_t offset)
{
	size_t done = 0, was;
	uint32_t stuck = 0;
	ssize_t rc;

	while (done < len) {
		rc = TEMP_FAILURE_RETRY(pwrite(fd, buf + done, len - done, (off_t)(offset + done)));
		if (rc <= 0)
			return rc < 0 ? -errno : -EIO;
		was = done;
		done += (size_t)rc;
		if (!whole_blocks(f, &done, was, &stuck))
			return -EIO;
	}
	return 0;
}

/* ---- ranges ------------------------------------------------------------------------------ */

struct range {
	int fd;
	uint64_t off, end, lo, hi;
	uint8_t *bounce;
};

static struct range range_of(const struct filed *f, const struct filed_op *op, uint8_t *bounce)
{
	uint64_t off = op->r->obj_offset, end = off + op->r->size;

	return (struct range){ op->fd, off, end, filed_block_down(f, off), filed_block_up(f, end),
		bounce };
}

static uint8_t *range_data(const struct range *g)
{
	return g->bounce + (g->off - g->lo);
}

static int range_read(const struct filed *f, const struct range *g)
{
	return read_blocks(f, g->fd, g->bounce, g->hi - g->lo, g->lo);
}

/* Puts the file's bytes from .. to - 1, which are of one block, into the bounce buffer. */
static int edge_read(const struct filed *f, const struct range *g, uint64_t from, uint64_t to)
{
	uint8_t *block = g->bounce + FILED_BOUNCE_BYTES - FILED_BLOCK_MAX;
	uint64_t start = filed_block_down(f, from);
	int rc;

	if (from == to)
		return 0;
	rc = read_blocks(f, g->fd, block, f->dir.align, start);
	if (!rc)
		memcpy(g->bounce + (from - g->lo), block + (from - start), to - from);
	return rc;
}

/* Writes off .. end - 1. The file ends where it did, or at `end`, not at the last block's end. */
static int range_write(const struct filed *f, const struct range *g)
{
	struct stat st;
	uint64_t size;
	int rc;

	rc = edge_read(f, g, g->lo, g->off);
	if (!rc)
		rc = edge_read(f, g, g->end, g->hi);
	if (!rc && fstat(g->fd, &st))
		rc = -errno;
	if (!rc)
		rc = write_blocks(f, g->fd, g->bounce, g->hi - g->lo, g->lo);
	if (rc)
		return rc;
	XKILL(BLOCKS_WRITTEN);
	size = (uint64_t)st.st_size > g->end ? (uint64_t)st.st_size : g->end;
	return size < g->hi && TEMP_FAILURE_RETRY(ftruncate(g->fd, (off_t)size)) ? -errno : 0;
}

/* ---- ops --------------------------------------------------------------------------------- */

void filed_op_change(struct filed *f, struct filed_op *op)
{
	op->changing = true;
	filed_change_begin(&f->files, &op->change, op->file, op->r->obj_offset,
		op->r->obj_offset + op->r->size);
}

/* The request's pages hold `size` bytes from its first on. */
static void copy_pages(struct filed *f, const struct xreq *r, uint8_t *data, bool to_request)
{
	struct piece p = { 0 };

	while (piece_next(f->peer.seg, r, r->size, &p))
		if (to_request)
			memcpy(p.data, data + p.from, p.len);
		else
			memcpy(data + p.from, p.data, p.len);
}

static int64_t job_read(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	struct range g = range_of(f, op, bounce);
	int rc = 0;

	if (op->fd < 0)
		memset(g.bounce, 0, g.hi - g.lo);
	else
		rc = range_read(f, &g);
	if (rc)
		return rc;
	copy_pages(f, op->r, range_data(&g), true);
	return op->r->size;
}

static int64_t job_write(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	struct range g = range_of(f, op, bounce);
	int rc;

	copy_pages(f, op->r, range_data(&g), false);
	rc = range_write(f, &g);
	return rc ? rc : (int64_t)op->r->size;
}

/* Makes the bytes of the range that are in the file a hole, or zeroes where the file system has
 * no holes. */
static int punch(struct filed *f, const struct range *range, uint64_t size)
{
	struct range g = *range;

	if (g.off >= size)
		return 0;
	if (!TEMP_FAILURE_RETRY(fallocate(g.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)g.off, (off_t)(g.end - g.off))))
		return 0;
	if (errno != EOPNOTSUPP)
		return -errno;
	if (g.end > size) {
		g.end = size;
		g.hi = filed_block_up(f, size);
	}
	memset(g.bounce, 0, g.hi - g.lo);
	return range_write(f, &g);
}

static int64_t job_zeroes(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	struct range g = range_of(f, op, bounce);
	struct stat st;
	int rc;

	if (op->fd < 0) {				/* a hole stays a hole */
		filed_file_forget(&f->files, op->file, false, g.off, g.end);
		return op->r->size;
	}
	if (fstat(g.fd, &st))
		return -errno;
	rc = punch(f, &g, (uint64_t)st.st_size);
	filed_file_emptied(&f->files, op->file);
	return rc ? rc : (int64_t)op->r->size;
}

static int64_t job_copy(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	struct range g = range_of(f, op, bounce), from = g;
	char path[FILED_PATH_MAX];
	uint64_t length;
	int rc = filed_dir_path(op->source, op->source_hash, path);

	if (rc)
		return rc;
	from.fd = filed_dir_open_file(&f->dir, path, false);
	if (from.fd < 0)
		return from.fd;
	rc = filed_tag_check(from.fd, op->source, &length);
	op->of_source = rc;
	if (!rc)
		rc = range_read(f, &from);
	close(from.fd);
	if (rc)
		return rc;
	if (data_is_zeroes(range_data(&g), op->r->size))	/* a hole stays a hole */
		return job_zeroes(f, op, bounce);
	rc = range_write(f, &g);
	return rc ? rc : (int64_t)op->r->size;
}

/* Where the file's last hole begins, or the file ends; 0: it is all hole. */
static int64_t last_hole(int fd)
{
	off_t from, to = 0;

	while ((from = lseek(fd, to, SEEK_DATA)) >= 0) {
		to = lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			return -errno;
	}
	return errno == ENXIO ? to : -errno;
}

/* The end of the last data: files end behind it. The file system knows it by blocks, of which the
 * last has zeroes up to its end. */
static int64_t job_info(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	int64_t end, from;
	int rc;

	if (op->fd < 0)
		return -ENOENT;
	end = last_hole(op->fd);
	if (end <= 0)
		return end;
	from = (end - 1) / FILED_BLOCK_MAX * FILED_BLOCK_MAX;
	rc = read_blocks(f, op->fd, bounce, FILED_BLOCK_MAX, (uint64_t)from);
	if (rc)
		return rc;
	while (end > from && !bounce[end - from - 1])
		end--;
	return end > from ? end : from + FILED_BLOCK_MAX;
}

static int64_t job_delete(struct filed *f, struct filed_op *op, uint8_t *bounce)
{
	(void)bounce;
	if (op->fd < 0) {
		filed_file_forget(&f->files, op->file, true, 0, 0);
		return op->again ? 0 : -ENOENT;
	}
	return filed_file_delete(&f->files, op->file);
}

static const struct filed_job {
	int64_t (*run)(struct filed *f, struct filed_op *op, uint8_t *bounce);
	enum filed_use use;
	bool change;
} jobs[XSEG_NR_OPS] = {
	[XSEG_OP_READ] = { job_read, FILED_USE, false },
	[XSEG_OP_WRITE] = { job_write, FILED_MAKE, true },
	[XSEG_OP_DISCARD] = { job_zeroes, FILED_USE, true },
	[XSEG_OP_WRITE_ZEROES] = { job_zeroes, FILED_USE, true },
	[XSEG_OP_COPY] = { job_copy, FILED_MAKE, true },
	[XSEG_OP_INFO] = { job_info, FILED_USE, false },
	[XSEG_OP_DELETE] = { job_delete, FILED_REMOVE, false },
};

/* A file comes into being by a COPY only when there is something to copy. */
static int check_source(struct filed *f, const struct filed_op *op)
{
	char path[FILED_PATH_MAX];
	int rc = filed_dir_path(op->source, op->source_hash, path);

	if (rc)
		return rc;
	return faccessat(f->dir.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

/* Gets the op its file. False: it waits until a slot of the table is idle. */
static bool job_get_file(struct filed *f, struct filed_op *op, int *rc)
{
	const struct filed_job *job = &jobs[op->r->op];
	uint64_t seq;
	bool waits;

	do {
		pthread_mutex_lock(&f->lock);
		seq = f->idle_seq;
		pthread_mutex_unlock(&f->lock);
		*rc = filed_file_get(&f->files, op->hash, op->r->target, job->use, &op->file,
			&op->fd);
		if (*rc != -EAGAIN)
			return true;
		pthread_mutex_lock(&f->lock);
		waits = seq == f->idle_seq;
		if (waits)
			ops_list_add(&f->starving, &op->order);
		pthread_mutex_unlock(&f->lock);
	} while (!waits);
	return false;
}

/* How long its file has to be for a change: behind its end are zeroes. */
static uint64_t reach(const struct xreq *r)
{
	return r->op == XSEG_OP_WRITE || r->op == XSEG_OP_COPY ? r->obj_offset + r->size : 0;
}

void filed_job_run(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed_op *op = (struct filed_op *)((uint8_t *)w - offsetof(struct filed_op, work));
	const struct filed_job *job = &jobs[op->r->op];
	struct filed *f = arg;
	int64_t result;
	bool had_file = op->file;
	int rc = 0;

	if (op->r->op == XSEG_OP_COPY)
		rc = check_source(f, op);
	if (!rc && !had_file && !job_get_file(f, op, &rc))
		return;
	if (!rc && job->change && op->fd >= 0)
		rc = filed_file_grow(&f->files, op->file, reach(op->r));
	if (rc) {
		filed_give_back(op, FILED_ENDED, rc);
		return;
	}
	if (!had_file && op->fd >= 0 && filed_aligned(f, op->r) &&
		(op->r->op == XSEG_OP_READ || op->r->op == XSEG_OP_WRITE)) {
		filed_give_back(op, FILED_MOVING, 0);
		return;
	}
	if (job->change && op->fd >= 0 && !op->changing)
		filed_op_change(f, op);
	result = job->run(f, op, bounce);
	filed_give_back(op, FILED_ENDED, result);
}

void filed_job_list(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed_op *op = (struct filed_op *)((uint8_t *)w - offsetof(struct filed_op, work));
	struct filed *f = arg;

	filed_give_back(op, FILED_ENDED,
		filed_list_run(&f->dir, f->peer.seg, op->r, bounce, FILED_BOUNCE_BYTES));
}

/* ---- syncs ------------------------------------------------------------------------------- */

static void give_back_all(struct ops_list *l)
{
	struct filed_op *op;

	while ((op = ops_list_take(l)))
		filed_give_back(op, FILED_SYNCED, op->result);
}

/* Who waited for a sync of one file; rc: what became of that. It says nothing of what an earlier
 * one, for somebody else, has lost. */
static void tell_fua(struct filed *f, struct ops_list *l, int rc)
{
	struct order_op *o;
	struct filed_op *op;

	for (o = l->first; o; o = o->next) {
		op = (struct filed_op *)o;
		if (rc)
			op->result = rc;
		else if (op->change.file && filed_change_is_lost(&f->files, &op->change))
			op->result = -EIO;
	}
}

/* A file that no FLUSH is about is left alone: if it could not be synced now, nobody would know
 * before what is lost has left the caches. No FLUSH at all: filed stops, and everything is
 * wanted. */
static bool flushes_want(void *arg, const char *name)
{
	const struct ops_list *flushes = arg;
	const struct order_op *o = flushes->first;

	while (o && !shape_flush_covers(((const struct filed_op *)o)->r, name))
		o = o->next;
	return o || !flushes->first;
}

/* A FLUSH has the first error of the files that it is about. */
static void tell_flushes(void *arg, const char *name, int error)
{
	struct ops_list *flushes = arg;
	struct order_op *o;
	struct filed_op *op;

	for (o = flushes->first; o; o = o->next) {
		op = (struct filed_op *)o;
		if (!op->result && shape_flush_covers(op->r, name))
			op->result = error;
	}
}

void filed_job_space(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed *f = arg;
	struct space space;

	(void)w;
	(void)bounce;
	atomic_store_explicit(&f->space_changed, false, memory_order_relaxed);
	filed_dir_space(&f->dir, &space);
	switch (space_news(&space, &f->space_low)) {
	case SPACE_LOW:
		if (space_files_are_low(space.files, space.free_files))
			log_warn("%s: the file system of %s has room for %lu more files only; "
				"remove files there", f->peer.name, f->dir_path,
				(unsigned long)space.free_files);
		else
			log_warn("%s: the file system of %s is nearly full: %lu MiB are left; "
				"make room there", f->peer.name, f->dir_path,
				(unsigned long)(space.free_bytes >> 20));
		break;
	case SPACE_ENOUGH:
		log_info("%s: the file system of %s has room again: %lu MiB", f->peer.name,
			f->dir_path, (unsigned long)(space.free_bytes >> 20));
		break;
	case SPACE_SAME:
		break;
	}
	atomic_store_explicit(&f->space_due_ns, clock_ms() * 1000000 + SPACE_LOOK_NS,
		memory_order_relaxed);
	peer_port_kick(&f->peer.ports[0]);	/* there may have been changes meanwhile */
}

/* The LISTs that came meanwhile are before the next step. */
void filed_job_count(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed *f = arg;
	int rc;

	if (!f->count_parent)
		usage_begin(&f->usage);
	rc = filed_list_count(&f->dir, &f->usage, f->count_parent++, bounce);
	if (!rc && f->count_parent < FILED_LIST_PARENTS) {
		usage_step(&f->usage, f->count_parent * 100 / FILED_LIST_PARENTS);
		filed_pool_push(&f->lister, w);
		return;
	}
	f->count_parent = 0;
	usage_end(&f->usage, rc, clock_ms() * 1000000);
}

void filed_job_flush(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed *f = arg;
	struct ops_list mine;
	struct filed_asker asker = { flushes_want, tell_flushes, &mine };
	bool more;

	(void)bounce;
	ops_list_init(&mine);
	pthread_mutex_lock(&f->lock);
	ops_list_move(&mine, &f->flush);
	if (!mine.first)
		f->flush_owed = false;
	pthread_mutex_unlock(&f->lock);
	filed_files_sync(&f->files, &asker);
	give_back_all(&mine);
	pthread_mutex_lock(&f->lock);
	more = f->flush.first;
	f->flush_running = more;
	pthread_mutex_unlock(&f->lock);
	if (more)
		filed_pool_push(&f->pool, w);
	filed_files_idle(f);
}

void filed_job_fua(struct filed_work *w, void *arg, uint8_t *bounce)
{
	struct filed_fua *fua =
		(struct filed_fua *)((uint8_t *)w - offsetof(struct filed_fua, work));
	struct filed *f = arg;
	struct ops_list mine;
	bool more;
	int rc;

	(void)bounce;
	ops_list_init(&mine);
	pthread_mutex_lock(&f->lock);
	ops_list_move(&mine, &fua->ops);
	pthread_mutex_unlock(&f->lock);
	rc = filed_file_sync(&f->files, &f->files.file[fua - f->fua]);
	tell_fua(f, &mine, rc);
	give_back_all(&mine);
	pthread_mutex_lock(&f->lock);
	more = fua->ops.first;
	fua->running = more;
	pthread_mutex_unlock(&f->lock);
	if (more)
		filed_pool_push(&f->pool, w);
	filed_files_idle(f);
}
