/* state - see state.h. */
#include "bench/xbench/oracle/state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xtypes/xcrc.h"

#define MAGIC	      0x3165746174736278ull
#define TMP_MAX_BYTES (PATH_MAX + 24)

struct record {
	uint64_t offset;
	uint32_t sectors, nr;
};

/* A stream that keeps the checksum of what went through it. */
struct stream {
	FILE *file;
	uint32_t crc;
	bool failed, no_room;			/* no_room: in the oracle */
};

static void put(struct stream *s, const void *data, size_t len)
{
	s->crc = xcrc32c(s->crc, data, len);
	if (fwrite(data, 1, len, s->file) != len)
		s->failed = true;
}

static bool get(struct stream *s, void *data, size_t len)
{
	if (fread(data, 1, len, s->file) != len)
		s->failed = true;
	else
		s->crc = xcrc32c(s->crc, data, len);
	return !s->failed;
}

/* ---- saving ------------------------------------------------------------------------------ */

/* Two sets of values, so that a sector can be compared with the one before. */
struct sets {
	struct xb_possible set[2][XB_MAX_POSSIBLE];
	uint64_t word[XB_MAX_POSSIBLE];
};

static bool same(const struct xb_possible *a, const struct xb_possible *b, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (a[i].value != b[i].value || a[i].unsure != b[i].unsure)
			return false;
	return true;
}

static void put_record(struct stream *s, struct sets *sets, const struct record *rec,
		       const struct xb_possible *all)
{
	if (!rec->nr || !rec->sectors)
		return;
	for (uint32_t i = 0; i < rec->nr; i++)
		sets->word[i] = all[i].value | (all[i].unsure ? XB_VALUE_SPARE : 0);
	put(s, rec, sizeof(*rec));
	put(s, sets->word, rec->nr * sizeof(*sets->word));
}

static void put_all(struct stream *s, struct sets *sets, struct xb_oracle *o)
{
	uint64_t at = xb_oracle_start(o), end = at + xb_oracle_length(o);
	struct record rec = { .offset = at };
	unsigned now = 0;
	uint32_t nr;

	for (; at < end && !s->failed; at += XB_SECTOR) {
		at = xb_oracle_skip(o, at);
		nr = at < end ? xb_oracle_possible(o, at, sets->set[!now]) : 0;
		if (nr == rec.nr && rec.offset + (uint64_t)rec.sectors * XB_SECTOR == at &&
		    same(sets->set[now], sets->set[!now], nr)) {
			rec.sectors++;
			continue;
		}
		put_record(s, sets, &rec, sets->set[now]);
		rec = (struct record){ .offset = at, .sectors = 1, .nr = nr };
		now = !now;
	}
	put_record(s, sets, &rec, sets->set[now]);
}

/* 0 or -errno. */
static int write_file(FILE *file, struct xb_state_head *head, struct xb_oracle *o)
{
	struct sets *sets = malloc(sizeof(*sets));
	struct stream s = { .file = file };
	uint32_t crc;

	if (!sets)
		return -ENOMEM;
	put(&s, head, sizeof(*head));
	put_all(&s, sets, o);
	free(sets);
	crc = s.crc;
	put(&s, &crc, sizeof(crc));
	if (s.failed || fflush(file) || fsync(fileno(file)))
		return errno ? -errno : -EIO;
	return 0;
}

/* "x": what has that name already is somebody's, also this run's --output. */
static int open_tmp(
	const char *path, char tmp[TMP_MAX_BYTES], FILE **file, struct xseg_error *err)
{
	snprintf(tmp, TMP_MAX_BYTES, "%s.%d.tmp", path, (int)getpid());
	*file = fopen(tmp, "wxe");
	return *file ? 0
		     : xseg_fail(err, -errno, "verify_state: cannot write %s: %s", tmp,
			       strerror(errno));
}

int xb_state_may_save(const char *path, struct xseg_error *err)
{
	char tmp[TMP_MAX_BYTES];
	struct stat st;
	FILE *file;
	int rc;

	if (!lstat(path, &st) && !S_ISREG(st.st_mode))
		return xseg_fail(err, -EINVAL,
				 "verify_state: %s exists and is not a file; name another",
				 path);
	rc = open_tmp(path, tmp, &file, err);
	if (rc)
		return -EIO;
	fclose(file);
	unlink(tmp);
	return 0;
}

int xb_state_save(const char *path, struct xb_state_head *head, struct xb_oracle *o,
		  struct xseg_error *err)
{
	char tmp[TMP_MAX_BYTES];
	FILE *file;
	int rc;

	head->magic = MAGIC;
	head->start = xb_oracle_start(o);
	head->length = xb_oracle_length(o);
	rc = open_tmp(path, tmp, &file, err);
	if (rc)
		return rc;
	rc = write_file(file, head, o);
	if (fclose(file) && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (!rc)
		return 0;
	unlink(tmp);
	return xseg_fail(err, rc, "verify_state: cannot write %s: %s", path, strerror(-rc));
}

/* ---- loading ----------------------------------------------------------------------------- */

static bool head_ok(const struct xb_state_head *head)
{
	uint64_t end;

	return head->magic == MAGIC && head->start % XB_SECTOR == 0 && head->length &&
	       head->length % XB_SECTOR == 0 &&
	       !__builtin_add_overflow(head->start, head->length, &end) && end <= INT64_MAX;
}

static bool record_ok(const struct record *rec, const struct xb_state_head *head)
{
	return rec->offset % XB_SECTOR == 0 && rec->nr && rec->nr <= XB_MAX_POSSIBLE &&
	       rec->sectors && rec->offset >= head->start &&
	       rec->offset - head->start < head->length &&
	       rec->sectors <= (head->length - (rec->offset - head->start)) / XB_SECTOR;
}

static void load_record(struct stream *s, struct sets *sets, const struct xb_state_head *head,
			struct xb_oracle *o)
{
	struct record rec;

	if (!get(s, &rec, sizeof(rec)) || !record_ok(&rec, head) ||
	    !get(s, sets->word, rec.nr * sizeof(*sets->word))) {
		s->failed = true;
		return;
	}
	for (uint32_t i = 0; i < rec.nr; i++)
		sets->set[0][i] = (struct xb_possible){ .value = sets->word[i] & ~XB_VALUE_SPARE,
							.unsure = sets->word[i] & XB_VALUE_SPARE };
	for (uint32_t i = 0; i < rec.sectors && !s->no_room; i++)
		s->no_room = !xb_oracle_set_possible(o, rec.offset + (uint64_t)i * XB_SECTOR,
						     sets->set[0], rec.nr);
}

/* Reads all of the file: nothing in it is believed before its checksum is right. Leaves it at the
 * beginning. */
static bool is_whole(FILE *file, uint64_t *bytes)
{
	struct stream s = { .file = file };
	char buf[4096];
	uint32_t stored;
	uint64_t left;
	off_t end;

	if (fseeko(file, 0, SEEK_END) || (end = ftello(file)) < (off_t)sizeof(stored) ||
	    fseeko(file, 0, SEEK_SET))
		return false;
	*bytes = (uint64_t)end - sizeof(stored);
	for (left = *bytes; left; left -= left < sizeof(buf) ? left : sizeof(buf))
		if (!get(&s, buf, left < sizeof(buf) ? left : sizeof(buf)))
			return false;
	return fread(&stored, sizeof(stored), 1, file) == 1 && stored == s.crc &&
	       !fseeko(file, 0, SEEK_SET);
}

static bool load_records(struct stream *s, uint64_t bytes, const struct xb_state_head *head,
			 struct xb_oracle *o)
{
	struct sets *sets = malloc(sizeof(*sets));

	if (!sets)
		return false;
	while (!s->failed && !s->no_room && (uint64_t)ftello(s->file) < bytes)
		load_record(s, sets, head, o);
	free(sets);
	return !s->failed;
}

int xb_state_load(const char *path, struct xb_state_head *head, const _Atomic uint64_t *floors,
		  uint32_t nr_floors, struct xb_oracle **oracle, struct xseg_error *err)
{
	struct stream s = { .file = fopen(path, "re") };
	uint64_t bytes;
	int rc = -EINVAL;

	if (!s.file)
		return xseg_fail(err, -EIO, "verify_state: cannot read %s: %s", path,
				 strerror(errno));
	if (!is_whole(s.file, &bytes) || !get(&s, head, sizeof(*head)) || !head_ok(head)) {
		xseg_fail(err, -EINVAL,
			  "verify_state: %s is not a file that xbench saved, or it is damaged",
			  path);
		goto out;
	}
	*oracle = xb_oracle_create(head->start, head->length, floors, nr_floors, err);
	if (!*oracle) {
		rc = -ENOMEM;
		goto out;
	}
	if (!load_records(&s, bytes, head, *oracle))
		rc = xseg_fail(err, -EINVAL,
			"verify_state: the records in %s are damaged; run the load again", path);
	else if (s.no_room)
		rc = xseg_fail(err, -ENOMEM,
			       "verify_state: %s has more records than this run has room for; give "
			       "the --iodepth and --numjobs that it was saved with",
			       path);
	else
		rc = 0;
	if (!rc)
		goto out;
	xb_oracle_destroy(*oracle);
	*oracle = NULL;
out:
	fclose(s.file);
	return rc;
}
