/* plugin - volumes for nbdkit, through the library (xseg/volume.h):
 * build/lib/nbdkit-xseg-plugin.so. `xseg export` and the supervisor of a stack start nbdkit with
 * it.
 *
 * A connection is one of an export (exports.c), which is nbdkit's handle. Its requests take a lane
 * each (lanes.c). Small writes may go past nbdkit and the lanes (writers.c).
 *
 * Contract: nbdkit's (nbdkit-plugin(3)), with its parallel thread model. Until after_fork() there
 * is one thread. In after_fork() volumes and lanes are made. nbdkit goes to the background before
 * it, and a child has no part in its parent's attachment. Errors are printed by nbdkit, through
 * nbdkit_error().
 *
 * Invariants
 *   N3  A flush may go through any lane and any connection of an export: the library's covers all
 *       that was answered before (so: multi-conn).
 */
#include <errno.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "tools/nbdkit/plugin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#define IO_BYTES_MAX (32u << 20) /* what NBD's clients may send to a server that says nothing */

/* ---- I/O --------------------------------------------------------------------------------- */

static int run(void *handle, struct xseg_io io, const char *what, uint32_t flags)
{
	return lane_run(handle, io, what, flags) < 0 ? -1 : 0;
}

static int export_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	return run(handle, (struct xseg_io){ .op = XSEG_OP_READ,
			       .offset = offset,
			       .size = count,
			       .buf = buf },
		"read", flags);
}

static int export_pwrite(
	void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	return run(handle,
		(struct xseg_io){
			.op = XSEG_OP_WRITE, .offset = offset, .size = count, .buf = (void *)buf },
		"write", flags);
}

static int export_flush(void *handle, uint32_t flags)
{
	return run(handle, (struct xseg_io){ .op = XSEG_OP_FLUSH }, "flush", flags);
}

static int export_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	return run(handle,
		(struct xseg_io){ .op = XSEG_OP_DISCARD, .offset = offset, .size = count }, "trim",
		flags);
}

/* Whether it may trim is the store's choice, which makes holes where it can. Zeroes are written at
 * once in the cache and by most stores, but a file system without holes writes them all, and nobody
 * can tell before: so there are none that are known to be fast. That is offered and refused, as an
 * nbdkit that does not offer it (1.32) ends by an assertion when a client asks for it all the
 * same. */
static int export_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	if (flags & NBDKIT_FLAG_FAST_ZERO) {
		nbdkit_set_error(EOPNOTSUPP);
		return -1;
	}
	return run(handle,
		(struct xseg_io){ .op = XSEG_OP_WRITE_ZEROES, .offset = offset, .size = count },
		"zero", flags);
}

/* What the store has not got is a hole, object by object: the start of an object that it has counts
 * as data, as far as it reaches. */
static int export_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	struct nbdkit_extents *extents)
{
	struct export *e = handle;
	struct xseg_volume_info info;
	uint64_t at = offset - offset % XSEG_SECTOR, end = offset + count;
	bool first_is_data = false, changed = false;

	xseg_volume_get_info(e->volume, &info);
	end += -end % XSEG_SECTOR;
	while (at < end && !(changed && flags & NBDKIT_FLAG_REQ_ONE)) {
		uint64_t room = info.object_bytes - at % info.object_bytes,
			 size = end - at < room ? end - at : room;
		int64_t data = lane_run(handle,
			(struct xseg_io){ .op = XSEG_OP_INFO, .offset = at, .size = size },
			"status", 0);

		if (data < 0 || (data && nbdkit_add_extent(extents, at, (uint64_t)data, 0)) ||
			((uint64_t)data < size && nbdkit_add_extent(extents, at + (uint64_t)data,
							  size - (uint64_t)data,
							  NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO)))
			return -1;
		if (at <= offset)
			first_is_data = data > 0;
		changed = (data > 0) != first_is_data || (data > 0 && (uint64_t)data < size);
		at += size;
	}
	return 0;
}

/* ---- connections ------------------------------------------------------------------------- */

/* Each sees the volume as large as it is when it begins. */
static void *export_open(int readonly)
{
	const char *name = nbdkit_export_name();
	struct export *e = name ? exports_find(name) : NULL;

	if (!e && name) {
		nbdkit_error("there is no export '%.60s' here", name);
		nbdkit_set_error(ENOENT);
	}
	if (!e || !export_begin(e))
		return NULL;
	writers_bind(readonly ? NULL : e);
	return e;
}

static void export_close(void *handle)
{
	export_end(handle);
}

static int export_list(int readonly, int is_tls, struct nbdkit_exports *exports)
{
	struct export *e;

	(void)readonly;
	(void)is_tls;
	for (unsigned i = 0; (e = exports_at(i)); i++)
		if (export_is_there(e) && nbdkit_add_export(exports, e->name ? e->name : "", NULL))
			return -1;
	return 0;
}

static const char *export_default(int readonly, int is_tls)
{
	(void)readonly;
	(void)is_tls;
	return "";
}

static int64_t export_get_size(void *handle)
{
	struct export *e = handle;
	struct xseg_volume_info info;

	xseg_volume_get_info(e->volume, &info);
	return (int64_t)info.size_bytes;
}

static int export_block_size(
	void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	struct export *e = handle;
	struct xseg_volume_info info;

	xseg_volume_get_info(e->volume, &info);
	*minimum = info.sector_bytes;
	*preferred = info.page_bytes;
	*maximum = IO_BYTES_MAX;
	return 0;
}

static int export_can_write(void *handle)
{
	struct export *e = handle;

	return !e->read_only;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int fua_native(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

/* ---- what nbdkit looks for --------------------------------------------------------------- */

static struct nbdkit_plugin plugin = {
	.name = "xseg",
	.longname = "xseg",
	.version = XSEG_VERSION,
	.description = "serves volumes of an xseg segment",
	.config = exports_config,
	.config_complete = exports_config_complete,
	.config_help = exports_config_help,
	.magic_config_key = "volume",
	.get_ready = exports_get_ready,
	.after_fork = exports_after_fork,
	.cleanup = exports_cleanup,
	.list_exports = export_list,
	.default_export = export_default,
	.open = export_open,
	.close = export_close,
	.get_size = export_get_size,
	.block_size = export_block_size,
	.can_write = export_can_write,
	.can_flush = yes,
	.can_trim = yes,
	.can_zero = yes,
	.can_fast_zero = yes,
	.can_extents = yes,
	.can_fua = fua_native,
	.can_multi_conn = yes,
	.pread = export_pread,
	.pwrite = export_pwrite,
	.flush = export_flush,
	.trim = export_trim,
	.zero = export_zero,
	.extents = export_extents,
};

struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
