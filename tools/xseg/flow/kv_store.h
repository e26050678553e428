/* kv_store - a store of values that commands work on: opened, with a queue, and operations that end
 * as tool.h says.
 *
 * Contract: one thread. Functions report their errors (tool.h) and return an exit code, but where
 * they say otherwise.
 *
 * After -EINTR or -ETIMEDOUT operations are out: the store is to be closed, and not used before.
 */
#ifndef TOOLS_XSEG_KV_STORE_H
#define TOOLS_XSEG_KV_STORE_H

#include "tools/xseg/base/tool.h"
#include "xseg/kv.h"

#define KV_STORE_DEPTH	16u
#define KV_STORE_PIECES 4u			/* of large values, that are out at a time */

struct kv_store {
	struct tool *t;
	const char *what;			/* the command's words, for messages */
	struct xseg *seg;
	struct xseg_kv *kv;
	struct xseg_kv_queue *q;
	struct xseg_kv_info info;		/* when it was opened */
	/* what operations use that were out when a wait was interrupted: freed at the close */
	struct xseg_kv_stream *left_stream;
	void *left_room;
};

/* `kvd`: its name, or "": the only one. Close in any case. */
int kv_store_open(struct kv_store *s, struct tool *t, const char *what, const char *kvd);
void kv_store_close(struct kv_store *s);

/* Submits one operation and waits for it. Its result; -EINTR, -ETIMEDOUT: T3, and it is out yet. */
int64_t kv_store_run(struct kv_store *s, struct xseg_kv_io *io);
/* Waits until operations that were submitted are back: how many, up to `max`. 0: none is out. */
int kv_store_wait(struct kv_store *s, struct xseg_kv_io **done, uint32_t max);
/* The same of `nr` operations, up to KV_STORE_DEPTH. 0, or -EINTR, -ETIMEDOUT. */
int kv_store_run_all(struct kv_store *s, struct xseg_kv_io *io, uint32_t nr);
/* Prints "WHAT KEY: reason; hint" for a result; returns the exit code. */
int kv_store_fail(const struct kv_store *s, int64_t rc, const void *key, uint32_t bytes);

/* All keys with that prefix, in groups of up to KV_STORE_DEPTH. fn() returns an exit code, or -1:
 * go on. Keys are in memory that is valid until it returns. */
typedef int kv_store_fn(
	struct kv_store *s, const struct xseg_kv_entry *entry, uint32_t nr, void *arg);
int kv_store_each(struct kv_store *s, const void *prefix, uint32_t bytes, bool once,
	kv_store_fn *fn, void *arg);

/* Frees both, or at the close if operations are out. */
void kv_store_let_go(struct kv_store *s, struct xseg_kv_stream *stream, void *room);

/* All of a file or pipe, or -errno. *data is malloc()ed. -EFBIG: more than `max`. */
int64_t kv_store_read_fd(int fd, uint64_t max, uint8_t **data);

#endif
