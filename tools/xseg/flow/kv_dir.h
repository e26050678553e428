/* kv_dir - the values of a store as files of a directory: `xseg kv import` and `xseg kv export`.
 *
 * A value is a file whose name is its key, percent-encoded (text/key_text.h). A name that is longer
 * than a file system takes is cut: all parts but the last are directories, whose names end with
 * `%`. An import also takes directories of other names: key `a/b` is file b of directory a.
 *
 * Contract: one thread. Functions report their errors (tool.h) and return an exit code.
 *
 * Invariants
 *   D1  Nothing outside the directory is read or written: each part of a name is opened by itself,
 *       within the directory before it, and no symbolic link is followed.
 *   D2  A file has its own name only when all of its value is in it. No file is replaced without
 *       `force`.
 */
#ifndef TOOLS_XSEG_KV_DIR_H
#define TOOLS_XSEG_KV_DIR_H

#include "tools/xseg/flow/kv_store.h"

struct kv_dir_opts {
	const char *prefix;			/* of keys; "": all */
	bool force;
};

struct kv_dir_done {
	uint64_t keys, bytes, skipped;		/* skipped: neither file nor directory */
};

int kv_dir_import(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done);
int kv_dir_export(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done);

#endif
