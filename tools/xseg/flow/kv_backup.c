/* kv_backup - see kv_backup.h. */
#include "tools/xseg/flow/kv_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xseg/base/out.h"
#include "tools/xseg/flow/image_file.h"
#include "tools/xseg/flow/kv_value.h"
#include "xtypes/xcrc.h"

#define MAGIC	"xseg-kv\n\2\0\0\0\0\0\0"		/* with its NUL 16 bytes */
#define MAGIC_1 "xseg-kv\n\1\0\0\0\0\0\0"		/* of files without large values */

enum kind { RECORD = 1, DELETION, END, LARGE, PIECE, VOID };

struct header {
	uint32_t crc;				/* of all behind it: header, key, value */
	uint32_t kind;
	uint32_t key_bytes, value_bytes, expiry, client;
	uint64_t identity[2], sequence;		/* END: records, and bad ones */
};

/* ---- backup ------------------------------------------------------------------------------ */

static int write_all(const struct kv_store *s, struct image_file *f, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	while (bytes) {
		ssize_t n = write(f->fd, from, bytes);

		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n < 0)
			return tool_fail_errno(-errno, NULL, "name a file on another file system",
				"%s: %s", s->what, f->name);
		from += n;
		bytes -= (size_t)n;
	}
	return TOOL_DONE;
}

static uint32_t sum_of(const struct header *h, const void *key, const void *value)
{
	uint32_t crc = xcrc32c(0, &h->kind, sizeof(*h) - sizeof(h->crc));

	return xcrc32c(xcrc32c(crc, key, h->key_bytes), value, h->value_bytes);
}

static int write_record(const struct kv_store *s, struct image_file *f, struct header *h,
	const void *key, const void *value)
{
	int rc;

	h->crc = sum_of(h, key, value);
	rc = write_all(s, f, h, sizeof(*h));
	if (!rc)
		rc = write_all(s, f, key, h->key_bytes);
	return rc ? rc : write_all(s, f, value, h->value_bytes);
}

/* What is written of a large value. */
struct pieces {
	const struct kv_store *s;
	struct image_file *f;
	struct kv_backup_done *done;
	int rc;					/* an exit code */
};

static int write_piece(struct kv_sink *to, const uint8_t *data, uint64_t bytes)
{
	struct pieces *p = to->arg;
	struct header h = { .kind = PIECE, .value_bytes = (uint32_t)bytes };

	p->rc = write_record(p->s, p->f, &h, "", data);
	p->done->bytes += sizeof(h) + bytes;
	to->error = p->rc ? EIO : 0;
	return -to->error;
}

static int fail_backup(const struct kv_store *s, int64_t rc);

/* Pieces that do not verify make the record void, and it is counted. */
static int write_large(struct kv_store *s, struct image_file *f, const struct xseg_kv_io *io,
	const struct xseg_kv_record *r, struct kv_backup_done *done)
{
	struct pieces p = { .s = s, .f = f, .done = done };
	struct kv_sink to = { .write = write_piece, .arg = &p };
	struct header h = { .kind = VOID };
	struct kv_value v;
	int64_t rc = kv_value_of_record(s, &v, io, r);

	if (!rc)
		rc = kv_value_write(&v, &to, s->what);
	kv_value_close(&v);
	if (p.rc)
		return p.rc;
	if (rc == -EIO) {
		done->void_records++;
		done->bytes += sizeof(h);
		return write_record(s, f, &h, "", "");
	}
	return rc ? fail_backup(s, rc) : TOOL_DONE;
}

static int write_answer(struct kv_store *s, struct image_file *f, const struct xseg_kv_io *io,
	struct kv_backup_done *done)
{
	struct xseg_kv_record r;
	int rc = TOOL_DONE;

	for (size_t at = 0; !rc && xseg_kv_next_record(io, &at, &r);) {
		struct header h = { .kind = r.list ? LARGE : r.set ? RECORD : DELETION,
			.key_bytes = r.key_bytes,
			.value_bytes = r.list ? (uint32_t)sizeof(r.value_bytes)
					      : (uint32_t)r.value_bytes,
			.expiry = r.expiry, .client = r.client,
			.identity = { r.identity[0], r.identity[1] }, .sequence = r.sequence };

		rc = write_record(s, f, &h, r.key, r.list ? &r.value_bytes : r.value);
		done->records++;
		done->bytes += sizeof(h) + h.key_bytes + h.value_bytes;
		if (!rc && r.list)
			rc = write_large(s, f, io, &r, done);
	}
	return rc;
}

static int fail_backup(const struct kv_store *s, int64_t rc)
{
	if (rc == -EINTR || rc == -ETIMEDOUT)
		return tool_later("%s: the backup is not whole; run it again", s->what);
	if (rc == -EBUSY)
		return tool_fail(TOOL_REFUSED,
			"%s: another backup or verify is under way; wait for it", s->what);
	return tool_exit_of_store(tool_fail_errno(
		rc, NULL, "the backup broke off, run it again", "%s", s->what));
}

static int write_answers(
	struct kv_store *s, struct image_file *f, uint8_t *room, struct kv_backup_done *done)
{
	struct xseg_kv_io io = { .op = XSEG_KV_BACKUP,
		.item = { .value = room, .value_bytes = XSEG_KV_BACKUP_BYTES } };
	struct header end = { .kind = END };
	char records[OUT_TEXT], bytes[OUT_TEXT];
	int64_t n;
	int rc;

	do {
		n = kv_store_run(s, &io);
		if (n < 0)
			return fail_backup(s, n);
		rc = write_answer(s, f, &io, done);
		tool_progress(s->t, "%s: %s records, %s", s->what,
			out_count(done->records, records), out_size(done->bytes, bytes));
	} while (!rc && io.cursor);
	done->bad = io.item.number + done->void_records;
	end.identity[0] = done->records;
	end.identity[1] = done->bad;
	return rc ? rc : write_record(s, f, &end, "", "");
}

int kv_backup_write(struct kv_store *s, const char *file, bool force, struct kv_backup_done *done)
{
	uint8_t *room = malloc(XSEG_KV_BACKUP_BYTES);
	struct image_file f;
	int rc;

	*done = (struct kv_backup_done){ 0 };
	rc = image_file_open(&f, s->what, s->info.kvd, file, force, 0);
	if (!rc && !room)
		rc = tool_fail(TOOL_FAILED, "%s: out of memory; free some", s->what);
	if (!rc)
		rc = write_all(s, &f, MAGIC, sizeof(MAGIC));
	done->bytes = sizeof(MAGIC);
	if (!rc)
		rc = write_answers(s, &f, room, done);
	done->bytes += sizeof(struct header);
	if (!rc)
		rc = image_file_finish(&f, done->bytes);
	image_file_close(&f);
	free(room);
	return rc;
}

/* ---- restore: the file ------------------------------------------------------------------- */

/* The newest record of an identity, by its place in the file; 0: the slot is free. */
struct newest {
	uint64_t identity[2], sequence, at;
};

struct source {
	struct kv_store *s;
	const char *file;
	const uint8_t *data;
	uint64_t bytes;
	struct newest *table;			/* open addressing; a power of two */
	uint64_t slots, used;
};

static int not_whole(const struct source *f, uint64_t at)
{
	return tool_fail(TOOL_FAILED,
		"%s %s: it is not a whole backup: damaged or cut at byte %" PRIu64
		"; nothing was put, use another one",
		f->s->what, f->file, at);
}

/* The header at that place, if it is right with its key and value. */
static bool header_at(const struct source *f, uint64_t at, struct header *h)
{
	uint64_t left = f->bytes - at;

	if (left < sizeof(*h))
		return false;
	memcpy(h, f->data + at, sizeof(*h));
	left -= sizeof(*h);
	if (h->key_bytes > left || h->value_bytes > left - h->key_bytes)
		return false;
	return h->crc == sum_of(h, f->data + at + sizeof(*h),
				 f->data + at + sizeof(*h) + h->key_bytes);
}

static struct newest *slot_of(const struct source *f, const uint64_t identity[2])
{
	uint64_t i = identity[0] & (f->slots - 1);

	while (f->table[i].at && (f->table[i].identity[0] != identity[0] ||
					 f->table[i].identity[1] != identity[1]))
		i = (i + 1) & (f->slots - 1);
	return &f->table[i];
}

static bool table_grow(struct source *f)
{
	struct newest *old = f->table;
	uint64_t slots = f->slots;

	f->slots = slots ? slots * 2 : 4096;
	f->table = calloc(f->slots, sizeof(*f->table));
	for (uint64_t i = 0; f->table && i < slots; i++)
		if (old[i].at)
			*slot_of(f, old[i].identity) = old[i];
	free(old);
	return f->table;
}

static bool note_newest(struct source *f, const struct header *h, uint64_t at)
{
	struct newest *n;

	if (f->used * 2 >= f->slots && !table_grow(f))
		return false;
	n = slot_of(f, h->identity);
	f->used += !n->at;
	if (!n->at || n->sequence < h->sequence)
		*n = (struct newest){ .identity = { h->identity[0], h->identity[1] },
			.sequence = h->sequence, .at = at };
	return true;
}

static uint64_t behind(uint64_t at, const struct header *h)
{
	return at + sizeof(*h) + h->key_bytes + h->value_bytes;
}

static uint64_t large_bytes(const struct source *f, uint64_t at, const struct header *h)
{
	uint64_t bytes;

	memcpy(&bytes, f->data + at + sizeof(*h) + h->key_bytes, sizeof(bytes));
	return bytes;
}

/* The pieces behind a LARGE at `at`: *next is what follows them, and *is_whole says whether they
 * are all of the value. False: the file is damaged. */
static bool pieces_at(const struct source *f, const struct header *large, uint64_t at,
	uint64_t *next, bool *is_whole)
{
	uint64_t left;
	struct header h;

	if (large->value_bytes != sizeof(left))
		return false;
	for (left = large_bytes(f, at, large); left; left -= h.value_bytes) {
		if (!header_at(f, *next, &h) || h.key_bytes ||
			(h.kind != PIECE && h.kind != VOID) || h.value_bytes > left)
			return false;
		*next = behind(*next, &h);
		*is_whole = h.kind == PIECE;
		if (h.kind == VOID)
			return true;
		if (!h.value_bytes)
			return false;
	}
	return true;
}

/* B1, B2 */
static int read_all(struct source *f, struct kv_backup_done *done)
{
	uint64_t at = sizeof(MAGIC), next;
	struct header h;
	bool is_whole;

	if (f->bytes < at || (memcmp(f->data, MAGIC, sizeof(MAGIC)) != 0 &&
				     memcmp(f->data, MAGIC_1, sizeof(MAGIC)) != 0))
		return tool_fail(TOOL_USAGE,
			"%s %s: it is no backup of a store; name a file that 'xseg kv backup' made",
			f->s->what, f->file);
	for (;; at = next) {
		if (!header_at(f, at, &h))
			return not_whole(f, at);
		if (h.kind == END)
			break;
		next = behind(at, &h);
		is_whole = true;
		if (h.kind == LARGE && !pieces_at(f, &h, at, &next, &is_whole))
			return not_whole(f, at);
		if (is_whole && !note_newest(f, &h, at))
			return tool_fail(TOOL_FAILED, "%s: out of memory; free some", f->s->what);
		done->records++;
	}
	done->bytes = f->bytes;
	return h.identity[0] == done->records ? TOOL_DONE : not_whole(f, at);
}

/* ---- restore: the values ----------------------------------------------------------------- */

static int put_group(struct source *f, struct xseg_kv_io *io, uint32_t nr,
	struct kv_backup_done *done)
{
	int error = nr ? kv_store_run_all(f->s, io, nr) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		int64_t rc = error ? error : io[i].result;

		if (rc)
			return kv_store_fail(f->s, rc, io[i].item.key, io[i].item.key_bytes);
		done->keys++;
	}
	tool_progress(f->s->t, "%s: %" PRIu64 " of at most %" PRIu64 " keys", f->s->what,
		done->keys, f->used);
	return TOOL_DONE;
}

/* The pieces of a LARGE, one behind the other. */
struct reader {
	const struct source *f;
	uint64_t at, left;			/* the piece, and what is left of it */
	uint64_t end;				/* of the value: bytes that are to come */
};

static int64_t read_pieces(struct kv_source *from, uint8_t *to, uint64_t bytes)
{
	struct reader *r = from->arg;
	uint64_t done = 0, n;
	struct header h;

	while (done < bytes && r->end) {
		memcpy(&h, r->f->data + r->at, sizeof(h));
		n = r->left < bytes - done ? r->left : bytes - done;
		memcpy(to + done, r->f->data + r->at + sizeof(h) + (h.value_bytes - r->left), n);
		done += n;
		r->end -= n;
		r->left -= n;
		if (r->left || !r->end)
			continue;
		r->at = behind(r->at, &h);
		memcpy(&h, r->f->data + r->at, sizeof(h));
		r->left = h.value_bytes;
	}
	return (int64_t)done;
}

static int put_large(struct source *f, uint64_t at, const struct header *h,
	struct kv_backup_done *done)
{
	struct reader r = { .f = f, .at = behind(at, h), .end = large_bytes(f, at, h) };
	struct kv_source from = { .read = read_pieces, .arg = &r };
	struct xseg_kv_io put = { .item = { .key = f->data + at + sizeof(*h),
		.key_bytes = h->key_bytes, .expiry = h->expiry, .client = h->client } };
	struct header piece;
	int64_t rc;

	memcpy(&piece, f->data + r.at, sizeof(piece));
	r.left = piece.value_bytes;
	rc = kv_value_put(f->s, &put, &from, f->s->what);
	if (rc)
		return kv_store_fail(f->s, rc, put.item.key, put.item.key_bytes);
	done->keys++;
	return TOOL_DONE;
}

static int put_all(struct source *f, struct kv_backup_done *done)
{
	struct xseg_kv_io io[KV_STORE_DEPTH];
	struct header h;
	uint32_t nr = 0;
	int rc = TOOL_DONE;

	for (uint64_t i = 0; i < f->slots && !rc; i++) {
		const uint8_t *from = f->data + f->table[i].at;

		if (!f->table[i].at)
			continue;
		memcpy(&h, from, sizeof(h));
		done->expired += h.expiry && h.expiry <= f->s->info.time_s;
		if (h.kind == DELETION || (h.expiry && h.expiry <= f->s->info.time_s))
			continue;
		if (h.kind == LARGE) {
			rc = put_large(f, f->table[i].at, &h, done);
			continue;
		}
		io[nr++] = (struct xseg_kv_io){ .op = XSEG_KV_PUT,
			.item = { .key = from + sizeof(h), .key_bytes = h.key_bytes,
				.value = (void *)(uintptr_t)(from + sizeof(h) + h.key_bytes),
				.value_bytes = h.value_bytes, .expiry = h.expiry,
				.client = h.client } };
		if (nr < KV_STORE_DEPTH)
			continue;
		rc = put_group(f, io, nr, done);
		nr = 0;
	}
	return rc ? rc : put_group(f, io, nr, done);
}

int kv_backup_restore(struct kv_store *s, const char *file, struct kv_backup_done *done)
{
	struct source f = { .s = s, .file = file };
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;

	*done = (struct kv_backup_done){ 0 };
	if (fd < 0 || fstat(fd, &st)) {
		rc = tool_fail_errno(-errno, NULL, "name a file that 'xseg kv backup' made",
			"%s: %s", s->what, file);
		goto out_close;
	}
	f.bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	f.data = f.bytes ? mmap(NULL, f.bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (f.data == MAP_FAILED) {
		f.bytes = 0;
		f.data = NULL;
	}
	rc = read_all(&f, done);
	if (!rc)
		rc = put_all(&f, done);
	if (f.data)
		munmap((void *)(uintptr_t)f.data, f.bytes);
	free(f.table);
out_close:
	if (fd >= 0)
		close(fd);
	return rc;
}
