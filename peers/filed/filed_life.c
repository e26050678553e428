/* filed_life - filed's options, how it begins and how it leaves. See filed.h.
 *
 * Contract: as peer.h says for init, quiesced, fini and admin. fini ends all that init began, even
 * if init ended half-way.
 */
#include "peers/filed/filed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "peers/common/log/log.h"
#include "peers/common/runtime/fds.h"
#include "peers/common/runtime/reactor.h"

#define OPS_SPARE    (2 * PEER_MAX_THREADS)	/* ops between answer and order_leave() */
#define FILES_MIN    16u

/* ---- life -------------------------------------------------------------------------------- */

static int ops_alloc(struct filed *f)
{
	uint32_t nr = xseg_nr_requests(f->peer.seg) + OPS_SPARE, i;

	f->fua = calloc(f->files.nr, sizeof(*f->fua));
	if (!f->fua || usage_open(&f->usage) || ops_open(&f->ops, nr, sizeof(struct filed_op)))
		return -ENOMEM;
	for (i = 0; i < f->files.nr; i++) {
		ops_list_init(&f->fua[i].ops);
		f->fua[i].work.run = filed_job_fua;
	}
	return 0;
}

static int ports_open(struct filed *f, struct xseg_error *err)
{
	struct filed_port *port;
	uint32_t i;
	int rc;

	for (i = 0; i < f->peer.nr_ports; i++) {
		port = &f->port[i];
		ops_list_init(&port->ready);
		ops_list_init(&port->moving);
		ops_list_init(&port->inbox);
		rc = filed_aio_open(&port->aio, f->iodepth, err);
		if (rc)
			return rc;
		pthread_mutex_init(&port->lock, NULL);
		rc = reactor_watch(&f->peer.ports[i], port->aio.eventfd);
		if (rc)
			return xseg_fail(err, rc,
				"no descriptor can be watched for finished I/O: %s",
				strerror(-rc));
	}
	return 0;
}

/* As many files as wanted, if the process may have that many descriptors. */
static int fds_allow(struct filed *f, uint32_t *nr, struct xseg_error *err)
{
	rlim_t got;
	int rc = fds_take(f->nr_files + FDS_RESERVED, &got, err);

	if (rc)
		return rc;
	f->nr_fds = got;
	if (got < FILES_MIN + FDS_RESERVED)
		return xseg_fail(err, -EMFILE,
			"this process may open %lu more files, and filed needs %u; raise ulimit -n",
			(unsigned long)got, FILES_MIN + FDS_RESERVED);
	*nr = (uint32_t)(got - FDS_RESERVED);
	return 0;
}

/* As fds_allow() has it for the first filed of a process. */
static uint64_t filed_memory_bytes(const struct peer *p)
{
	rlim_t nr = ((const struct filed *)p)->nr_files;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max < nr + FDS_RESERVED)
		nr = limit.rlim_max > FDS_RESERVED ? limit.rlim_max - FDS_RESERVED : 0;
	return peer_whole_extents(filed_marks_bytes((uint32_t)nr));
}

/* A new store is empty: what was written before seems to be gone, and what a cache above has yet to
 * flush would go there. So none is made where the predecessor's was, as a disk that is not mounted
 * leaves it; and a relative path, which leads elsewhere where it is begun elsewhere, has to lead to
 * the same directory. */
static int check_same_dir(
	const struct filed *f, const void *arena, const char *place, struct xseg_error *err)
{
	bool relative = f->dir_path[0] != '/';
	struct stat st;

	if (filed_marks_is_blank(arena) || (!relative && !filed_marks_had_path(arena, place)))
		return 0;
	if (!stat(f->dir_path, &st)) {
		if (filed_marks_know(arena, &st))
			return 0;
		/* what is no directory filed_dir_open() refuses */
		if (!relative && (!S_ISDIR(st.st_mode) || filed_dir_is_made(f->dir_path)))
			return 0;
	} else if (errno != ENOENT) {
		return xseg_fail(err, -errno, "directory %s cannot be examined: %s", f->dir_path,
			strerror(errno));
	}
	if (!relative)
		return xseg_fail(err, -EBUSY,
			"directory %s has none of the files that this segment's filed had there; "
			"mount its disk, or begin anew after 'xseg down --force'",
			f->dir_path);
	return xseg_fail(err, -EBUSY,
		"directory %s is not the one that this segment's filed had; start it in the same "
		"directory as before, or give the whole path",
		f->dir_path);
}

static int arena_open(struct filed *f, uint32_t nr, uint64_t *bytes, void **arena,
	struct xseg_error *err)
{
	uint64_t wanted = peer_whole_extents(filed_marks_bytes(nr));
	bool fresh;
	int rc;

	*bytes = wanted;
	rc = xseg_arena_open(f->peer.xp, bytes, arena, &fresh, err);
	if (rc || *bytes >= wanted || !filed_marks_is_blank(*arena))
		return rc;
	/* a predecessor that wanted less died before it had made anything */
	rc = xseg_arena_free(f->peer.xp, err);
	*bytes = wanted;
	return rc ? rc : xseg_arena_open(f->peer.xp, bytes, arena, &fresh, err);
}

static void tell_rights(const struct filed *f)
{
	const struct filed_mended *m = &f->dir.mended;

	if (m->nr)
		log_info("%s: %lu directories and files of %s had other rights than %04o and %04o; "
			"they are corrected", f->peer.name, (unsigned long)m->nr, f->dir_path,
			f->dir.rights.dir, f->dir.rights.file);
	if (m->nr_not)
		log_warn("%s: the rights of %lu directories and files of %s could not be "
			"corrected, so others may be let in; give them to this user",
			f->peer.name, (unsigned long)m->nr_not, f->dir_path);
}

static int store_open(struct filed *f, struct xseg_error *err)
{
	char place[PATH_MAX];
	uint64_t bytes;
	uint32_t nr = 0;
	rlim_t got;
	void *arena;
	int rc = fds_allow(f, &nr, err);

	if (!rc)
		rc = arena_open(f, nr, &bytes, &arena, err);
	filed_dir_place(f->dir_path, place);
	if (!rc)
		rc = check_same_dir(f, arena, place, err);
	if (!rc)
		rc = filed_dir_open(&f->dir, f->dir_path, f->want_direct, f->group, err);
	if (rc)
		return rc;
	tell_rights(f);
	if (f->want_direct && !f->dir.direct)
		log_warn("%s: the file system of %s has no O_DIRECT, so its page cache is used; "
			"set direct=no to accept that", f->peer.name, f->dir_path);
	if (!f->dir.tags)
		log_warn("%s: the file system of %s has no user attributes, so filed does not "
			"notice a file that is cut short or swapped; put the store on one that has "
			"them",
			f->peer.name, f->dir_path);
	rc = filed_files_open(&f->files, &f->dir, place, arena, bytes, nr, err);
	if (!rc)
		filed_marks_note_path(arena, place);
	if (!rc && f->files.nr > nr) {		/* it has the slots of a predecessor */
		rc = fds_take(f->files.nr - nr, &got, err);
		f->nr_fds += rc ? 0 : got;
	}
	if (!rc)
		filed_files_tell(&f->files, f->peer.xp);
	return rc;
}

/* Also after a part of init. Does not sync: an orderly stop has done so, and after a kill the
 * arena says what is to be done. */
static void filed_fini(struct peer *p)
{
	struct filed *f = filed_of(p);
	uint32_t i;

	filed_pool_close(&f->pool);
	filed_pool_close(&f->lister);
	usage_close(&f->usage);
	for (i = 0; i < PEER_MAX_THREADS; i++)
		filed_aio_close(&f->port[i].aio);
	filed_files_close(&f->files);
	filed_dir_close(&f->dir);
	fds_give_back(f->nr_fds);
	f->nr_fds = 0;
	free(f->fua);
	ops_close(&f->ops);
	f->fua = NULL;
	order_fini(&f->order);
	failures_fini(&f->failures);
	pthread_mutex_destroy(&f->lock);
}

static int filed_init(struct peer *p, struct xseg_error *err)
{
	struct filed *f = filed_of(p);
	int rc;

	f->dir.fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	order_init(&f->order);
	ops_list_init(&f->starving);
	ops_list_init(&f->flush);
	f->flush_work.run = filed_job_flush;
	f->count_work.run = filed_job_count;
	f->count_parent = 0;
	f->space_work.run = filed_job_space;
	f->space_due_ns = 0;
	f->space_low = f->space_changed = false;
	failures_init(&f->failures);
	f->flush_owed = true;
	f->flush_running = false;
	rc = store_open(f, err);
	if (rc)
		goto out_fini;
	rc = ops_alloc(f);
	if (rc) {
		xseg_fail(err, rc, "no memory for the table of requests");
		goto out_fini;
	}
	rc = ports_open(f, err);
	if (rc)
		goto out_fini;
	rc = filed_pool_open(&f->pool, FILED_WORKERS, f);
	if (!rc)
		rc = filed_pool_open(&f->lister, 1, f);
	if (rc) {
		xseg_fail(err, rc, "no threads for calls that block: %s", strerror(-rc));
		goto out_fini;
	}
	return 0;
out_fini:
	filed_fini(p);
	return rc;
}

/* Before it leaves it syncs what was written; what cannot be synced stays marked in the arena, and
 * has `xseg down` leave the segment there. */
static bool filed_quiesced(struct peer *p, uint64_t *left_bytes)
{
	struct filed *f = filed_of(p);
	struct filed_counts counts;
	bool busy, owed;

	(void)left_bytes;
	pthread_mutex_lock(&f->lock);
	busy = ops_pending(&f->ops) || f->flush_running;
	owed = f->flush_owed;
	pthread_mutex_unlock(&f->lock);
	if (!busy && owed)
		filed_sync_all(f, NULL);
	if (busy || owed)
		return false;
	filed_files_count(&f->files, &counts);
	if (counts.unsynced || counts.lost)
		log_warn("%s: some data written to %s could not be synced; the segment records "
			"that for the next filed of this name", p->name, f->dir_path);
	return true;
}

static uint64_t filed_unsynced_bytes(struct peer *p)
{
	return filed_files_failed(&filed_of(p)->files);
}

static enum xseg_close filed_close_how(struct peer *p, bool clean)
{
	(void)p;
	(void)clean;
	return XSEG_CLOSE_KEEP_ARENA;
}

static int64_t tell_status(struct peer_port *pp, char *out, size_t size)
{
	struct filed *f = filed_of(pp->peer);
	struct filed_counts counts;
	struct space space;
	struct kv_text t;

	filed_files_count(&f->files, &counts);
	filed_dir_space(&f->dir, &space);
	kv_init(&t, out, size);
	kv_add(&t,
		"dir=%s\ndir_removed=%s\ncapacity_bytes=%" PRIu64 "\nfree_bytes=%" PRIu64
		"\nfiles=%" PRIu64 "\nfree_files=%" PRIu64 "\ndirect_in_use=%s\nalign_bytes=%u\n"
		"attributes=%s\nopen_files=%u\nunsynced_files=%u\nlost_files=%u\nsync_errors=%lu\n",
		f->dir_path, filed_dir_is_removed(&f->dir) ? "yes" : "no", space.size_bytes,
		space.free_bytes, space.files, space.free_files,
		f->dir.direct ? "yes" : "no", f->dir.align, f->dir.tags ? "yes" : "no",
		counts.open, counts.unsynced, counts.lost, (unsigned long)counts.sync_errors);
	failures_tell(&f->failures, pp->now_ns, &t);
	return (int64_t)t.used;
}

static int64_t filed_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct filed *f = filed_of(pp->peer);
	bool count = false;
	int64_t rc;

	(void)r;
	if (!strcmp(line, "status"))
		return tell_status(pp, out, size);
	rc = usage_ask(&f->usage, line, pp->now_ns, out, size, &count);
	if (count)
		filed_pool_push(&f->lister, &f->count_work);
	return rc;
}

#define FIELD(x) offsetof(struct filed, x)

static int check_group(const char *text, struct xseg_error *err)
{
	struct filed_rights rights;

	return *text ? filed_rights_init(&rights, text, err)
		     : xseg_fail(err, -EINVAL, "group: it is empty; leave it out for none");
}

static const struct opt filed_opts[] = {
	{ .name = "dir", .kind = OPT_STR, .off = FIELD(dir_path),
	  .flags = OPT_REQUIRED | OPT_MAKES,
	  .len = sizeof(((struct filed *)0)->dir_path), .arg = "DIR",
	  .help = "directory for the objects' files; made if the directory above it exists" },
	{ .name = "group", .kind = OPT_STR, .off = FIELD(group),
	  .len = sizeof(((struct filed *)0)->group), .arg = "NAME", .check = check_group,
	  .help = "group that may read the files, by name or number" },
	{ .name = "direct", .kind = OPT_BOOL, .off = FIELD(want_direct), .def = "yes",
	  .help = "bypass the kernel's page cache (O_DIRECT) if the file system can" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = FIELD(iodepth), .min = 1, .max = 4096,
	  .def = "64", .arg = "N", .help = "I/Os in flight in the kernel, for each thread" },
	{ .name = "files", .kind = OPT_UINT, .off = FIELD(nr_files), .min = FILES_MIN,
	  .max = 65536, .def = "1024", .arg = "N",
	  .help = "number of files that are open at a time" },
	{ 0 }
};

const struct peer_class filed_class = {
	.kind = "filed",
	.summary = "objects as files of a directory, through the kernel's asynchronous I/O",
	.opts = filed_opts,
	.size = sizeof(struct filed),
	.memory_bytes = filed_memory_bytes,
	.init = filed_init,
	.recover = filed_recover,
	.request = filed_request,
	.poll = filed_poll,
	.admin = filed_admin,
	.quiesced = filed_quiesced,
	.unsynced_bytes = filed_unsynced_bytes,
	.close_how = filed_close_how,
	.fini = filed_fini,
};
