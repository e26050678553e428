/* kv_dir - the values of a store as files of a directory: `xseg kv import` and `xseg kv export`.
 *
 *   tree   a key is a path: key `a/b` is file b of directory a. A part of a key that cannot be a
 *          name is percent-encoded (key_text_part()). One of more than 255 bytes is cut: all pieces
 *          but the last are directories, of 255 bytes, whose names end with `%`
 *   flat   a key is one name, percent-encoded (key_text_name()). One of more than 254 bytes is cut:
 *          all pieces but the last are directories, whose names end with `%`
 *
 * In a tree, a symbolic link is a value that is its target, with the client flags KV_DIR_LINK. An
 * empty directory is a value of no bytes with KV_DIR_EMPTY, whose key ends with a slash.
 *
 * Contract: one thread. Functions report their errors (tool.h) and return an exit code. Values of
 * up to KV_DIR_SMALL bytes are put and got KV_STORE_DEPTH at a time, and larger ones as streams.
 *
 * Invariants
 *   D1  Nothing outside the directory is read or written: each part of a name is opened by itself,
 *       within the directory before it, and no symbolic link is followed, but by an import that is
 *       asked to.
 *   D2  A file has its own name only when all of its value is in it. No file is replaced without
 *       `force`.
 *   D3  No symbolic link is made that leads outside the directory. Its target is relative, and has
 *       `..` at its begin only, no more often than directories are above the link. So what follows
 *       is within the directory, and can pass only links that this rule holds for.
 */
#ifndef TOOLS_XSEG_KV_DIR_H
#define TOOLS_XSEG_KV_DIR_H

#include "tools/xseg/flow/kv_store.h"

#define KV_DIR_LINK  0x78736c6eu		/* client flags */
#define KV_DIR_EMPTY 0x78736564u
#define KV_DIR_SMALL (512u << 10)
#define KV_DIR_NAME  255u			/* bytes that file systems take for a name */

struct kv_dir_opts {
	const char *prefix;			/* of keys; "": all */
	bool force, flat;
	bool follow;				/* import: links that D3 does not allow */
};

struct kv_dir_done {
	uint64_t keys, bytes;
	/* import: neither file nor directory nor link; export: links that D3 does not allow */
	uint64_t skipped;
};

/* D3, of a link below so many directories. */
bool kv_dir_leads_inside(const char *target, uint32_t depth);

int kv_dir_import(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done);
int kv_dir_export(struct kv_store *s, const char *dir, const struct kv_dir_opts *o,
	struct kv_dir_done *done);

#endif
