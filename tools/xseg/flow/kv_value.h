/* kv_value - a value of any size, from a descriptor into a store and back, with bounded memory.
 *
 * A value of up to a piece is put and got as a whole. A larger one is a stream, of which
 * KV_STORE_PIECES pieces are in memory and out at a time.
 *
 * Contract: one thread. Nothing is printed but progress: functions return a negative errno. After
 * -EINTR and -ETIMEDOUT the store is to be closed (kv_store.h), which ends what was begun.
 */
#ifndef TOOLS_XSEG_KV_VALUE_H
#define TOOLS_XSEG_KV_VALUE_H

#include "tools/xseg/flow/kv_store.h"

/* Where the bytes of a value come from: as many as there are, up to `bytes`; fewer only at the end.
 * Or a negative errno, which is kept in `error`. */
struct kv_source {
	int64_t (*read)(struct kv_source *from, uint8_t *to, uint64_t bytes);
	int fd;					/* of kv_source_fd() */
	int error;				/* a positive errno; 0: it is not the source's */
	void *arg;
};
/* Where they go to. 0, or a negative errno, as above. */
struct kv_sink {
	int (*write)(struct kv_sink *to, const uint8_t *data, uint64_t bytes);
	int fd, error;
	void *arg;
};

struct kv_source kv_source_fd(int fd);
struct kv_sink kv_sink_fd(int fd);

/* Puts what the source has, until its end, as `put` says, of which item.value and its size are not
 * looked at. `shown` is the text before the size in the progress; NULL: none. 0, with the size in
 * put->item.value_bytes, or a negative errno. */
int64_t kv_value_put(struct kv_store *s, struct xseg_kv_io *put, struct kv_source *from,
	const char *shown);

/* A value that is read. */
struct kv_value {
	struct kv_store *s;
	struct xseg_kv_stream *stream;
	struct xseg_kv_item item;		/* all but the key, which is the caller's */
	struct xseg_kv_io piece[KV_STORE_PIECES];
	bool back[KV_STORE_PIECES];
	uint8_t *room;
	uint32_t flags;				/* XSEG_KV_ONCE */
};

/* 0, or a negative errno. Close in any case. */
int64_t kv_value_open(struct kv_store *s, struct kv_value *v, const void *key, uint32_t key_bytes,
	uint32_t flags);
/* Of a record that a backup has told (xseg_kv_record_open()). */
int64_t kv_value_of_record(struct kv_store *s, struct kv_value *v, const struct xseg_kv_io *io,
	const struct xseg_kv_record *record);
/* All of it. 0, or a negative errno. */
int64_t kv_value_write(struct kv_value *v, struct kv_sink *to, const char *shown);
void kv_value_close(struct kv_value *v);

#endif
