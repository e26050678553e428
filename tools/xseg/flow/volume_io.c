/* volume_io - see volume_io.h.
 *
 * An image is moved in chunks of 256 KiB through a queue of the library; up to 16 of them are out
 * at once. Each has a slot: an I/O, and memory of the segment that stays with it. So data goes from
 * the file to where the peers take it, and back.
 *
 *   slot       to         when                                                by
 *   IDLE       OUT        its I/O was submitted                               slot_submit
 *   OUT        ANSWERED   it came back                                        mover_reap
 *   ANSWERED   IDLE       an export has written it out, in order; an import:  export_run,
 *                         at once                                             import_release
 *
 * Invariants
 *   I1  Zeroes of an image overwrite the volume's old data: they are sent as WRITE_ZEROES.
 *   I2  An export writes chunks in the order of the volume, so that it can go into a pipe.
 *   I3  After an error nothing more is sent. Requests that are out are waited for, so the first
 *       offset is the right one.
 *   I4  An import looks for other users when it has the volume open itself. So of two imports at
 *       once one sees the other at least.
 */
#include "tools/xseg/flow/volume_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/blocker/zeroes.h"
#include "tools/xseg/flow/image_file.h"
#include "tools/xseg/flow/image_format.h"
#include "tools/xseg/base/out.h"
#include "xseg/volume.h"
#include "xtypes/xstate.h"

#define CHUNK_BYTES (256u << 10)
#define MAX_SLOTS   16u
#define LEAST_SLOTS (XSEG_EXTENT_SIZE / CHUNK_BYTES)	/* in a segment that is nearly full */
#define WAIT_NS	    (TOOL_SECOND / 10)
#define STALL_NS    (5 * TOOL_SECOND)
#define USERS_TEXT  512

enum slot_state { SLOT_IDLE, SLOT_OUT, SLOT_ANSWERED, SLOT_NR_STATES };

struct slot {
	enum slot_state state;
	char *data;				/* CHUNK_BYTES */
	struct xseg_io io;
};

struct mover {
	const struct volume_ref *v;
	const char *what, *file;		/* what: the command's words */
	int fd;
	const char *partial;	/* export: where an image that is not whole stays, or NULL */
	/* may have holes, can be read and written anywhere */
	bool is_regular;
	uint64_t image_bytes;			/* UINT64_MAX: not known before its end */
	/* import: of the next chunk to be read; export: of the next one to be written */
	uint64_t next;
	uint64_t data_from, data_to;		/* import: the data extent that was found last */
	uint64_t data_bytes, start_ns;
	struct xseg_volume *volume;
	struct xseg_queue *q;
	uint32_t nr_slots;
	bool ended;				/* import: the input has ended */
	bool raw;				/* import: whatever it looks like */
	bool noted;				/* that it has to wait for long */
	struct tool_span lacks;			/* what volumed needs is gone */
	int64_t error;				/* first of the volume's errors, by offset */
	uint64_t error_offset;
	struct slot slot[MAX_SLOTS];
};

/* ---- slots ------------------------------------------------------------------------------- */

#define TO(s) (1u << SLOT_##s)

static const struct xstates states = {
	.what = "slot",
	XSTATE(SLOT_, IDLE, TO(OUT)),
	XSTATE(SLOT_, OUT, TO(ANSWERED)),
	XSTATE(SLOT_, ANSWERED, TO(IDLE)),
};

static void slot_set(struct slot *s, enum slot_state state)
{
	xstate_check(&states, s->state, state);
	s->state = state;
}

/* Memory of the segment for all slots, or for some of them. */
static int take_slots(struct mover *m, struct xseg_error *err)
{
	struct xseg_queue_params params = { .depth = MAX_SLOTS, .copy_bytes = XSEG_PAGE_SIZE };
	int rc = xseg_queue_create(m->volume, &params, &m->q, err);
	char *memory;

	if (rc)
		return rc;
	m->nr_slots = MAX_SLOTS;
	memory = xseg_queue_buffer(m->q, MAX_SLOTS * CHUNK_BYTES);
	if (!memory) {
		m->nr_slots = LEAST_SLOTS;
		memory = xseg_queue_buffer(m->q, LEAST_SLOTS * CHUNK_BYTES);
	}
	if (!memory)
		return xseg_fail(err, -ENOMEM,
			"the segment has less than the 2 MiB left that an image's data needs");
	for (uint32_t i = 0; i < m->nr_slots; i++)
		m->slot[i].data = memory + (size_t)i * CHUNK_BYTES;
	return 0;
}

/* volumed may be busy with a command that waits for a peer below it. */
static int open_failed(struct mover *m, int rc, const struct xseg_error *err)
{
	struct client *c = m->v->c;
	struct xseg_peer_info info;
	char what[2 * XSEG_NAME_MAX];

	snprintf(what, sizeof(what), "%s %s", m->what, m->v->name);
	if (rc == -ETIMEDOUT && xseg_peer_get_info(c->seg, m->v->peer, &info) &&
		view_stranded(c->seg, &info, &c->lacks))
		return client_fail_lacks(c, what);
	return tool_fail_errno(rc, err, "see 'xseg status'", "%s", what);
}

static int mover_open(
	struct mover *m, const struct volume_ref *v, const char *what, const char *file)
{
	struct xseg_volume_params params = {
		.attached = v->c->seg, .volume = v->name, .gone_ns = TOOL_GONE_NS
	};
	struct xseg_error err = { "" };
	struct xseg_peer_info info;
	int rc = -ENOTCONN;

	*m = (struct mover){
		.v = v, .what = what, .file = file, .fd = -1, .image_bytes = UINT64_MAX
	};
	m->start_ns = tool_now_ns();
	if (xseg_peer_get_info(v->c->seg, v->peer, &info)) {
		params.volumed = info.name;
		rc = xseg_volume_open(&params, &m->volume, &err);
	}
	if (!rc)
		rc = take_slots(m, &err);
	return rc ? open_failed(m, rc, &err) : TOOL_DONE;
}

static void mover_close(struct mover *m)
{
	xseg_queue_destroy(m->q);
	xseg_volume_close(m->volume);
}

static struct slot *slot_in_state(struct mover *m, enum slot_state state)
{
	uint32_t i;

	for (i = 0; i < m->nr_slots; i++)
		if (m->slot[i].state == state)
			return &m->slot[i];
	return NULL;
}

static void note_error(struct mover *m, const struct slot *s, int64_t error)
{
	if (m->error && m->error_offset < s->io.offset)
		return;
	m->error = error;
	m->error_offset = s->io.offset;
}

/* Sends the slot's chunk, whose range is in its I/O. An error is noted as the chunk's own. */
static void slot_submit(struct mover *m, struct slot *s, enum xseg_op op)
{
	int rc;

	s->io.op = op;
	s->io.flags = op == XSEG_OP_WRITE_ZEROES ? 0 : XSEG_IO_ONCE;
	s->io.buf = op == XSEG_OP_WRITE_ZEROES ? NULL : s->data;
	s->io.cookie = s;
	rc = xseg_queue_submit(m->q, &s->io);
	if (rc) {
		note_error(m, s, rc);
		return;
	}
	slot_set(s, SLOT_OUT);
}

#define LEFT_TEXT (PATH_MAX + 64)

/* Where an export's beginning stays, as a part of a message. */
static const char *left_behind(const struct mover *m, char buf[LEFT_TEXT])
{
	*buf = '\0';
	if (m->partial)
		snprintf(buf, LEFT_TEXT, ", the data before that is in %s", m->partial);
	return buf;
}

static int stopped(const struct mover *m)
{
	char left[LEFT_TEXT];

	return tool_later("%s %s: stopped at byte %" PRIu64
			  "%s; run the command again to have all of it",
		m->what, m->v->name, m->next, left_behind(m, left));
}

/* Nobody will answer any more. */
static int went_away(const struct mover *m)
{
	char left[LEFT_TEXT];

	if (!xseg_is_whole(m->v->c->seg))
		bus_leave();
	return tool_fail(TOOL_FAILED,
		"%s %s: its volumed went away at byte %" PRIu64 "%s; start it again with 'xseg up "
			"STACK.conf'",
		m->what, m->v->name, m->next, left_behind(m, left));
}

/* C2 of client.h: what volumed needs has been gone for a while. */
static int look_for_lost(struct mover *m)
{
	struct client *c = m->v->c;
	struct xseg_peer_info info;
	char what[2 * XSEG_NAME_MAX];
	bool lacks = xseg_peer_get_info(c->seg, m->v->peer, &info) &&
		     view_stranded(c->seg, &info, &c->lacks);

	if (tool_span_ns(&m->lacks, lacks) <= STALL_NS)
		return TOOL_DONE;
	snprintf(what, sizeof(what), "%s %s", m->what, m->v->name);
	return client_fail_lacks(c, what);
}

/* Waits for at least one answer; TOOL_DONE, or why nobody should wait any longer. */
static int mover_reap(struct mover *m)
{
	struct client *c = m->v->c;
	struct xseg_io *done[MAX_SLOTS];
	char command[VIEW_COMMAND_MAX];
	uint64_t since = tool_now_ns();
	uint32_t nr;

	while (!(nr = xseg_queue_wait(m->q, done, MAX_SLOTS, WAIT_NS))) {
		if (tool_out_of_time(c->t))
			return stopped(m);
		if (look_for_lost(m))
			return TOOL_FAILED;
		if (!m->noted && tool_now_ns() - since > STALL_NS) {
			m->noted = true;
			tool_note(c->t,
				"%s %s: no answer for 5 s, still waiting; see 'xseg peer list', "
				"'%s' and the log",
				m->what, m->v->name,
				view_dirty_command(c->seg, m->v->peer, command));
		}
	}
	while (nr-- > 0) {
		struct slot *s = done[nr]->cookie;

		slot_set(s, SLOT_ANSWERED);
		if (s->io.result == -ENOTCONN)
			return went_away(m);
		if (s->io.result < 0)
			note_error(m, s, s->io.result);
	}
	return TOOL_DONE;
}

static void show_progress(struct mover *m, const char *what)
{
	uint64_t elapsed_ms = (tool_now_ns() - m->start_ns) / 1000000 + 1;
	char done[OUT_TEXT], whole[OUT_TEXT], rate[OUT_TEXT], part[OUT_TEXT];

	out_bytes(m->next, done);
	out_bytes(m->next * 1000 / elapsed_ms, rate);
	if (m->image_bytes == UINT64_MAX)
		tool_progress(m->v->c->t, "%s %s: %s, %s/s", what, m->v->name, done, rate);
	else
		tool_progress(m->v->c->t, "%s %s: %s of %s (%s), %s/s", what, m->v->name, done,
			      out_size(m->image_bytes, whole),
			      out_percent(m->next, m->image_bytes, part), rate);
}

static int volume_error(const struct mover *m)
{
	char left[LEFT_TEXT], hint[LEFT_TEXT + 64];

	snprintf(hint, sizeof(hint), "see 'xseg status' and the store's log%s",
		 left_behind(m, left));
	return tool_exit_of_store(tool_fail_errno(m->error, NULL, hint, "%s %s: at byte %" PRIu64,
			m->what, m->v->name, m->error_offset));
}

static int file_error(const struct mover *m, int error)
{
	char left[LEFT_TEXT];

	if (error == EINTR)
		return stopped(m);
	return tool_fail(TOOL_FAILED,
			 "%s %s: %s at byte %" PRIu64 ": %s; mend that and run it again%s", m->what,
			 m->v->name, m->file, m->next, strerror(error), left_behind(m, left));
}

static int open_error(const struct mover *m, int error, const char *hint)
{
	return tool_fail_errno(-error, NULL, hint, "%s %s: %s", m->what, m->v->name, m->file);
}

static void mover_result(const struct mover *m, struct volume_io_result *result)
{
	result->bytes = m->next;
	result->data_bytes = m->data_bytes;
	result->elapsed_ns = tool_now_ns() - m->start_ns;
}

/* ---- data between memory and a file ------------------------------------------------------ */

/* Moves bytes from .. to of the chunk, from the file or to it; fewer only at the end of the input.
 * Returns how many, or -errno. */
static int64_t move_bytes(
	struct mover *m, const struct slot *s, bool out, uint32_t from, uint32_t to)
{
	uint32_t at = from;
	ssize_t got;

	while (at < to) {
		off_t offset = (off_t)(s->io.offset + at);

		if (out)
			got = m->is_regular ? pwrite(m->fd, s->data + at, to - at, offset)
					    : write(m->fd, s->data + at, to - at);
		else
			got = m->is_regular ? pread(m->fd, s->data + at, to - at, offset)
					    : read(m->fd, s->data + at, to - at);
		if (got < 0 && (errno != EINTR || tool_out_of_time(m->v->c->t)))
			return -errno;
		if (got == 0)
			break;
		if (got > 0)
			at += (uint32_t)got;
	}
	return at - from;
}

static bool page_is_zero(const struct slot *s, uint32_t page)
{
	return data_is_zeroes(s->data + (size_t)page * XSEG_PAGE_SIZE, XSEG_PAGE_SIZE);
}

/* ---- import ------------------------------------------------------------------------------ */

/* `begin`: the image's first bytes. */
static int check_format(const struct mover *m, const void *begin, size_t bytes)
{
	const struct image_format *f = m->raw ? NULL : image_format_of(begin, bytes);
	const char *from = strcmp(m->file, "-") ? m->file : "IMAGE";

	if (!f)
		return TOOL_DONE;
	if (!f->unpacks)
		return tool_fail(TOOL_REFUSED,
			"%s %s: %s is %s, and a raw one is wanted; make one with 'qemu-img convert "
			"-O raw %s %s.raw', or add --raw to take its bytes as they are",
			m->what, m->v->name, m->file, f->name, from, from);
	return tool_fail(TOOL_REFUSED,
		"%s %s: %s is %s, and a raw image is wanted; write '%s %s | xseg volume import %s "
		"-', or add --raw to take its bytes as they are",
		m->what, m->v->name, m->file, f->name, f->unpacks, from, m->v->name);
}

/* Of an input that can be read anywhere; of others the first chunk tells. */
static int check_begin(const struct mover *m)
{
	char begin[IMAGE_FORMAT_BYTES];
	ssize_t got = m->image_bytes == UINT64_MAX ? 0 : pread(m->fd, begin, sizeof(begin), 0);

	return got > 0 ? check_format(m, begin, (size_t)got) : TOOL_DONE;
}

static int open_input(struct mover *m)
{
	struct stat st;
	off_t end;

	m->fd = strcmp(m->file, "-") ? open(m->file, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	if (m->fd < 0 || fstat(m->fd, &st))
		return open_error(m, errno, "name an image that can be read");
	if (S_ISDIR(st.st_mode))
		return open_error(m, EISDIR, "name an image");
	if (!strcmp(m->file, "-") && isatty(m->fd))	/* an image is nothing to be typed */
		return tool_fail(TOOL_USAGE,
			"%s %s: standard input is a terminal; put '< FILE' behind it", m->what,
			m->v->name);
	m->is_regular = S_ISREG(st.st_mode) && strcmp(m->file, "-");
	if (m->is_regular) {
		m->image_bytes = (uint64_t)st.st_size;
	} else if (S_ISBLK(st.st_mode)) {
		end = lseek(m->fd, 0, SEEK_END);
		m->image_bytes =
			end > 0 && lseek(m->fd, 0, SEEK_SET) == 0 ? (uint64_t)end : UINT64_MAX;
	}
	return check_begin(m);
}

static int image_too_large(const struct mover *m)
{
	char volume[OUT_TEXT], image[OUT_TEXT];

	out_size(m->v->size_bytes, volume);
	if (m->image_bytes == UINT64_MAX)
		return tool_fail(TOOL_FAILED,
			"%s %s: the image is longer than the volume's %s, all of which are "
			"overwritten by now; grow it with 'xseg volume resize' and run it again",
			m->what, m->v->name, volume);
	return tool_fail(TOOL_REFUSED,
		"%s %s: the image has %s (%" PRIu64 " bytes) and the volume %s; grow it with "
		"'xseg volume resize %s --size %" PRIu64 "'",
		m->what, m->v->name, out_size(m->image_bytes, image), m->image_bytes, volume,
		m->v->name, (m->image_bytes + XSEG_SECTOR - 1) / XSEG_SECTOR * XSEG_SECTOR);
}

/* True when no byte of the image's range is in a data extent of its file. */
static bool in_hole(struct mover *m, uint64_t from, uint64_t to)
{
	off_t data, hole;

	if (!m->is_regular)
		return false;
	if (from >= m->data_to) {
		data = lseek(m->fd, (off_t)from, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			data = (off_t)m->image_bytes;
		hole = data >= 0 ? lseek(m->fd, data, SEEK_HOLE) : -1;
		m->data_from = data >= 0 ? (uint64_t)data : from;
		m->data_to = hole > data ? (uint64_t)hole : m->image_bytes;
	}
	return to <= m->data_from;
}

static bool chunk_is_zero(const struct slot *s)
{
	uint32_t i;

	for (i = 0; i < xseg_req_span(0, (uint32_t)s->io.size); i++)
		if (!page_is_zero(s, i))
			return false;
	return true;
}

/* Reads the chunk at m->next. *got: its bytes, 0 at the end. The rest of its last page is
 * zeroed. */
static int read_chunk(struct mover *m, struct slot *s, uint32_t *got)
{
	int64_t moved = move_bytes(m, s, false, 0, (uint32_t)s->io.size);

	if (moved < 0)
		return file_error(m, (int)-moved);
	*got = (uint32_t)moved;
	if (*got % XSEG_PAGE_SIZE)
		memset(s->data + *got, 0, XSEG_PAGE_SIZE - *got % XSEG_PAGE_SIZE);
	return TOOL_DONE;
}

/* A whole number of sectors, as far as the volume goes. */
static uint32_t whole_sectors(const struct mover *m, uint64_t offset, uint32_t size)
{
	uint64_t room = m->v->size_bytes - offset;

	size = (size + XSEG_SECTOR - 1) / XSEG_SECTOR * XSEG_SECTOR;
	return size < room ? size : (uint32_t)room;
}

/* Reads the next chunk of the image and sends it. */
static int import_next(struct mover *m, struct slot *s)
{
	uint64_t left = m->image_bytes - m->next;
	bool is_zero, probe = m->image_bytes == UINT64_MAX && m->next == m->v->size_bytes;
	uint32_t got;
	int rc;

	s->io.offset = m->next;
	s->io.size = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	if (!probe && m->v->size_bytes - m->next < s->io.size)
		s->io.size = m->v->size_bytes - m->next;
	got = (uint32_t)s->io.size;
	is_zero = s->io.size && !probe && in_hole(m, m->next, m->next + s->io.size);
	if (!is_zero) {
		rc = read_chunk(m, s, &got);
		if (rc)
			return rc;
	}
	if (probe && got)
		return image_too_large(m);
	if (!m->next && !is_zero && m->image_bytes == UINT64_MAX) {
		rc = check_format(m, s->data, got);
		if (rc)
			return rc;
	}
	m->ended = got < s->io.size || m->next + got == m->image_bytes;
	if (!got)
		return TOOL_DONE;
	m->next += got;
	s->io.size = whole_sectors(m, s->io.offset, got);
	is_zero = is_zero || chunk_is_zero(s);
	if (!is_zero)
		m->data_bytes += got;
	slot_submit(m, s, is_zero ? XSEG_OP_WRITE_ZEROES : XSEG_OP_WRITE);
	return TOOL_DONE;
}

/* All that was answered is done with: an import needs no order. */
static void import_release(struct mover *m)
{
	struct slot *s;

	while ((s = slot_in_state(m, SLOT_ANSWERED)))
		slot_set(s, SLOT_IDLE);
}

static int import_run(struct mover *m)
{
	struct slot *s;
	int rc = TOOL_DONE;

	while (!rc && (xseg_queue_out(m->q) || (!m->ended && !m->error))) {
		s = m->ended || m->error ? NULL : slot_in_state(m, SLOT_IDLE);
		if (tool_out_of_time(m->v->c->t))
			rc = file_error(m, EINTR);
		else if (s)
			rc = import_next(m, s);
		else
			rc = mover_reap(m);
		import_release(m);
		show_progress(m, "importing");
	}
	return !rc && m->error ? volume_error(m) : rc;
}

/* I4. */
static int refuse_users(const struct mover *m)
{
	char users[USERS_TEXT];

	if (!client_other_users(m->v->c, m->v->peer, m->v->id, users, sizeof(users)))
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"%s %s: it is in use by%s; end them first, or add --force and overwrite their data",
		m->what, m->v->name, users);
}

int volume_io_image_size(const char *volume, const char *file, bool raw, uint64_t *bytes)
{
	const struct volume_ref v = { .name = volume };
	struct mover m = { .v = &v, .what = "volume import", .file = file, .fd = -1,
		.image_bytes = UINT64_MAX, .raw = raw };
	int rc = open_input(&m);

	if (!rc && m.image_bytes == UINT64_MAX)
		rc = tool_fail(TOOL_USAGE,
			"volume import %s: the size of %s is not known; make the volume with 'xseg "
			"volume create %s --size SIZE', and leave out --create",
			volume, file, volume);
	if (!rc && !m.image_bytes)
		rc = tool_fail(TOOL_USAGE, "volume import %s: %s is empty; name an image", volume,
			file);
	*bytes = (m.image_bytes + XSEG_SECTOR - 1) / XSEG_SECTOR * XSEG_SECTOR;
	if (m.fd >= 0)
		close(m.fd);
	return rc;
}

int volume_io_import(const struct volume_ref *v, const char *file, bool force, bool raw,
		     struct volume_io_result *result)
{
	struct mover m;
	int rc;

	rc = mover_open(&m, v, "volume import", file);
	m.raw = raw;
	if (!rc && !force)
		rc = refuse_users(&m);
	if (!rc)
		rc = open_input(&m);
	m.ended = m.image_bytes == 0;
	if (!rc && m.image_bytes != UINT64_MAX && m.image_bytes > v->size_bytes)
		rc = image_too_large(&m);
	if (!rc)
		rc = import_run(&m);
	tool_progress_end();
	if (!rc)
		rc = client_flush(v->c, v->peer, v->id, m.what, v->name);
	mover_result(&m, result);
	if (m.fd >= 0)
		close(m.fd);
	mover_close(&m);
	return rc;
}

/* ---- export ------------------------------------------------------------------------------ */

/* Writes a chunk; into a file without its zero pages, which become holes. */
static int write_chunk(struct mover *m, const struct slot *s)
{
	uint32_t from = 0, size = (uint32_t)s->io.size, to, end;
	int64_t moved;

	while (from < size) {
		to = from;
		end = from + XSEG_PAGE_SIZE;
		if (m->is_regular && page_is_zero(s, from / XSEG_PAGE_SIZE)) {
			from = end;
			continue;
		}
		while (to < size && !(m->is_regular && page_is_zero(s, to / XSEG_PAGE_SIZE)))
			to += XSEG_PAGE_SIZE;
		to = to < size ? to : size;
		moved = move_bytes(m, s, true, from, to);
		if (moved != to - from)
			return file_error(m, moved < 0 ? (int)-moved : EIO);
		m->data_bytes += to - from;
		from = to;
	}
	return TOOL_DONE;
}

/* Asks for what comes after *asked, and moves that on. */
static void export_fill(struct mover *m, uint64_t *asked)
{
	uint64_t left;
	struct slot *s;

	while (!m->error && *asked < m->image_bytes && (s = slot_in_state(m, SLOT_IDLE))) {
		left = m->image_bytes - *asked;
		s->io.offset = *asked;
		s->io.size = left < CHUNK_BYTES ? left : CHUNK_BYTES;
		*asked += s->io.size;
		slot_submit(m, s, XSEG_OP_READ);
	}
}

static struct slot *slot_at(struct mover *m, uint64_t offset)
{
	uint32_t i;

	for (i = 0; i < m->nr_slots; i++)
		if (m->slot[i].state == SLOT_ANSWERED && m->slot[i].io.offset == offset)
			return &m->slot[i];
	return NULL;
}

static int export_run(struct mover *m)
{
	uint64_t asked = 0;
	struct slot *s;
	int rc = TOOL_DONE;

	while (!rc && m->next < m->image_bytes && (!m->error || m->next < m->error_offset)) {
		export_fill(m, &asked);
		s = slot_at(m, m->next);
		if (tool_out_of_time(m->v->c->t)) {
			rc = file_error(m, EINTR);
		} else if (!s) {
			rc = mover_reap(m);
		} else if (!m->error || s->io.offset < m->error_offset) {
			rc = write_chunk(m, s);
			m->next += rc ? 0 : s->io.size;
			slot_set(s, SLOT_IDLE);
		}
		show_progress(m, "exporting");
	}
	return !rc && m->error ? volume_error(m) : rc;
}

int volume_io_export(const struct volume_ref *v, const char *file, bool force,
		     struct volume_io_result *result)
{
	struct image_file out = { .fd = -1 };
	struct mover m;
	int rc;

	rc = mover_open(&m, v, "volume export", file);
	m.image_bytes = v->size_bytes;
	if (!rc)
		rc = image_file_open(&out, m.what, v->name, file, force, v->size_bytes);
	m.fd = out.fd;
	m.is_regular = out.is_regular;
	m.partial = *out.partial ? out.partial : NULL;
	if (!rc)
		rc = export_run(&m);
	tool_progress_end();
	if (!rc)
		rc = image_file_finish(&out, m.image_bytes);
	mover_result(&m, result);
	image_file_close(&out);
	mover_close(&m);
	return rc;
}
