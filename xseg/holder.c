/* holder - which process has a lock of the segment, and for how long: shown to people when
 * something waits.
 *
 * Contract: any thread; observers too. It looks at locks without taking them, and at /proc. It
 * waits for nobody. The kernel names the owner of a lock by /proc/PID/fdinfo alone (proof.c). It
 * names another user's process only to root; without that the holder has no name here.
 *
 * Invariants:
 *   H1  It looks at the lock, then for its holder, then at the lock again. So a lock that was let
 *       go meanwhile is not reported.
 *   H2  The reported time counts from the first look that found the same process there. So it is
 *       never too long.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "xseg/internal.h"

#define SECOND UINT64_C(1000000000)

/* Range i of the bytes that are locked for the time of a change; those of members and supervisors
 * are for life. False: there is none. */
static bool changing(struct xseg *seg, uint32_t i, uint64_t *first, uint64_t *nr)
{
	static const uint64_t firsts[] = { XSEG_LOCK_CONTROL, XSEG_LOCK_ROUTES, XSEG_LOCK_PEER0 };

	if (i >= sizeof(firsts) / sizeof(firsts[0]))
		return false;
	*first = firsts[i];
	*nr = firsts[i] == XSEG_LOCK_PEER0 ? seg->geo.nr_ports : 1;
	return true;
}

static void name_lock(struct xseg *seg, uint64_t byte, char *text, size_t size)
{
	if (byte == XSEG_LOCK_CONTROL)
		snprintf(text, size, "the control lock");
	else if (byte == XSEG_LOCK_ROUTES)
		snprintf(text, size, "the lock of routes");
	else
		snprintf(text, size, "the lock of peer '%.*s'", XSEG_NAME_MAX - 1,
			seg->peers[(byte - XSEG_LOCK_PEER0) % seg->geo.nr_ports].name);
}

/* The letter of its state is the one behind its name, which may have any in it. */
static bool is_halted(uint32_t pid)
{
	char path[32], line[256] = "", *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		state = strrchr(line, ')');
	fclose(f);
	return state && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

static void name_process(uint32_t pid, char *name, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, (int)size, f))
		snprintf(name, size, "?");
	name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void describe(struct xseg *seg, uint64_t byte, uint32_t pid, uint64_t held_ns,
	struct xseg_lock_info *info)
{
	memset(info, 0, sizeof(*info));
	name_lock(seg, byte, info->lock, sizeof(info->lock));
	info->pid = pid;
	info->held_ns = held_ns;
	if (!pid)
		return;
	name_process(pid, info->name, sizeof(info->name));
	info->halted = is_halted(pid);
}

void xs_lock_describe(
	struct xseg *seg, uint64_t byte, uint64_t held_ns, struct xseg_lock_info *info)
{
	describe(seg, byte, xs_byte_holder(seg, byte), held_ns, info);
}

const char *xseg_lock_text(const struct xseg_lock_info *info, char text[XSEG_LOCK_TEXT])
{
	char since[48];

	if (info->held_ns < SECOND)
		snprintf(since, sizeof(since), "%" PRIu64 " ms", info->held_ns / 1000000);
	else
		snprintf(since, sizeof(since), "%" PRIu64 " s", info->held_ns / SECOND);
	if (!info->pid)
		snprintf(text, XSEG_LOCK_TEXT,
			"%s has been held for %s by a process that only its user and root may see; "
			"'xseg status' as root names it",
			info->lock, since);
	else if (info->halted)
		snprintf(text, XSEG_LOCK_TEXT,
			"%s has been held for %s by %" PRIu32 " (%s), which is stopped; continue "
			"it with kill -CONT %" PRIu32 ", or end it",
			info->lock, since, info->pid, info->name, info->pid);
	else
		snprintf(text, XSEG_LOCK_TEXT,
			"%s has been held for %s by %" PRIu32 " (%s); thaw it if it is frozen, or "
			"end it with kill %" PRIu32,
			info->lock, since, info->pid, info->name, info->pid);
	return text;
}

/* ---- watching ---- */

/* The first byte of [first, first + nr) that a process has locked, or UINT64_MAX. */
static uint64_t first_locked(int fd, uint64_t first, uint64_t nr)
{
	struct flock fl = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)first,
		.l_len = (off_t)nr };

	if (fcntl(fd, F_OFD_GETLK, &fl) || fl.l_type == F_UNLCK)
		return UINT64_MAX;
	return (uint64_t)fl.l_start > first ? (uint64_t)fl.l_start : first;
}

static uint64_t since_of(const struct xseg_lock_watch *w, uint64_t byte, uint32_t pid, uint64_t now)
{
	for (uint32_t i = 0; i < w->nr; i++)
		if (w->seen[i].byte == byte && w->seen[i].pid == pid)
			return w->seen[i].since_ns;
	return now;
}

/* H1. */
static void look_at(struct xseg *seg, const struct xseg_lock_watch *before,
	struct xseg_lock_watch *w, uint64_t byte, struct xseg_lock_info *info)
{
	uint64_t now = xs_now_ns(), since;
	uint32_t pid = xs_byte_holder(seg, byte);

	if (!xs_byte_locked(seg->fd, byte))
		return;
	since = since_of(before, byte, pid, now);
	w->seen[w->nr].byte = byte;
	w->seen[w->nr].since_ns = since;
	w->seen[w->nr].pid = pid;
	describe(seg, byte, pid, xs_now_ns() - since, &info[w->nr++]);
}

uint32_t xseg_lock_look(struct xseg *seg, struct xseg_lock_watch *watch,
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED])
{
	struct xseg_lock_watch before = *watch;
	uint64_t at, nr;

	watch->nr = 0;
	for (uint32_t i = 0; changing(seg, i, &at, &nr); i++) {
		uint64_t end = at + nr;

		while (watch->nr < XSEG_LOCKS_WATCHED && at < end &&
			(at = first_locked(seg->fd, at, end - at)) != UINT64_MAX)
			look_at(seg, &before, watch, at++, info);
	}
	return watch->nr;
}
