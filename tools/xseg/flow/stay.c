/* stay - see stay.h. */
#include "tools/xseg/flow/stay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/say/dirty.h"
#include "tools/xseg/base/extend.h"
#include "tools/xseg/base/notify.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stack_lock.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/flow/ending.h"

#define LOOK_NS (TOOL_SECOND / 10)

struct stay {
	struct tool *t;
	struct xseg *seg;
	const struct launch *launch;
	bool service;
	uint64_t generation;			/* the supervisor's; 0: not seen yet */
	off_t shown;				/* of the log */
	bool asked;				/* the supervisor, to stop all */
	uint32_t undone;			/* how many stops had been taken back before */
	struct ending_stall stall;		/* of the stop */
	uint64_t extended_ns;			/* the progress that the manager was told of */
	struct tool_span away;			/* there is no supervisor */
};

/* Copies what was added to the log to stderr; all of it, where another file has its place. */
static void show_log(struct stay *s)
{
	int fd = open(s->launch->log, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char buf[4096];
	ssize_t len;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size < s->shown)
		s->shown = 0;
	while (fd >= 0 && (len = pread(fd, buf, sizeof(buf), s->shown)) > 0) {
		fwrite(buf, 1, (size_t)len, stderr);
		s->shown += len;
	}
	if (fd >= 0)
		close(fd);
}

static int begin_stop(struct stay *s, const struct xseg_peer_info *supervisor)
{
	int rc = proc_signal_peer(s->seg, supervisor, SIGTERM);

	if (rc && rc != -ESRCH)
		return tool_fail_errno(rc, NULL, "use 'xseg down'", "the supervisor");
	s->asked = true;
	s->undone = peer_word_undone(supervisor).nr;
	s->stall = ENDING_STALL_OF(NULL);
	s->extended_ns = 0;
	tool_clear_interrupt();
	if (s->service)
		notify_send("STOPPING=1\nSTATUS=stopping all peers");
	return TOOL_DONE;
}

/* Puts the manager's time-out off when something has gone on. */
static void look_at_stop(struct stay *s)
{
	char dirty[OUT_TEXT];

	if (!s->service)
		return;
	ending_look_for_stall(s->t, s->seg, &s->stall);
	if (s->stall.since_ns == s->extended_ns)
		return;
	s->extended_ns = s->stall.since_ns;
	notify_send("EXTEND_TIMEOUT_USEC=%u\nSTATUS=stopping: %s dirty", EXTEND_US,
		out_size(dirty_bytes_of(s->seg, XSEG_NONE), dirty));
}

/* A signal has asked it to stop all, and it has taken that back. It is told, and the next signal
 * begins another stop. */
static void look_for_return(struct stay *s, const struct xseg_peer_info *supervisor)
{
	if (!s->asked || !peer_word_taken_back(supervisor, s->undone))
		return;
	(void)ending_fail_undone(s->t, s->seg, peer_word_undone(supervisor));
	s->asked = false;
	if (s->service)
		notify_send("STATUS=the stop was taken back; all peers serve");
}

/* A supervisor that is replaced is away for a moment; one that has ended in order is not. Either
 * has its lock before it is in the segment, and after it has left. The command that replaces it has
 * the lock of the stack until the next one is at work, however long that takes. */
static bool has_gone(struct stay *s, bool alive)
{
	bool is_replaced = !alive && (xseg_supervisor_alive(s->seg) ||
					     (!s->asked && !launch_ended_in_order(s->seg)));
	bool is_away = is_replaced && !stack_is_locked(s->t);

	return tool_span_ns(&s->away, is_away) > TOOL_GONE_NS || (!alive && !is_replaced);
}

/* Becomes the new program when the supervisor is another one, if this program was replaced. A
 * program that is replaced later waits for the next supervisor: until then nothing says that the
 * new program can use this segment. */
static void follow(struct stay *s, const struct xseg_peer_info *supervisor)
{
	uint64_t before = s->generation ? s->generation : supervisor->generation;
	char shown[32];

	s->generation = supervisor->generation;
	if (!s->service || s->asked || s->generation == before ||
		!proc_is_replaced((uint32_t)getpid()))
		return;
	snprintf(shown, sizeof(shown), "%lld", (long long)s->shown);
	setenv(STAY_AGAIN, shown, 1);
	fflush(stdout);
	proc_become_new();
	unsetenv(STAY_AGAIN);
	tool_note(s->t, "up: the new program cannot be run, this one stays: %s", strerror(errno));
}

static int end(struct stay *s, bool alive)
{
	int rc;

	if (alive)
		return tool_later("the stack of segment %s is still stopping; see 'xseg status'",
				  s->t->segment);
	/* it leaves what it cannot stop, also when Ctrl-C has asked it to */
	if (!launch_ended_in_order(s->seg))
		return tool_fail(TOOL_FAILED,
				 "up: the supervisor went away; see %s and 'xseg status'",
				 s->launch->log);
	if (!s->service) {
		if (s->asked)
			tool_say(s->t,
				"the stack of segment %s has stopped; the segment stays, and "
				"'xseg destroy' removes it", s->t->segment);
		return TOOL_DONE;
	}
	rc = ending_may_destroy(s->t, s->seg, true);
	if (!rc)
		rc = ending_remove(s->t, s->seg, ENDING_REMOVE_UNDER_CLIENTS, 0);
	if (!rc)
		tool_say(s->t, "the stack of segment %s has stopped, and the segment is removed",
			s->t->segment);
	return rc;
}

/* Of the stack as it has come up. */
static void tell_ready(const struct stay *s, uint32_t nr_not)
{
	if (nr_not)
		notify_send("READY=1\nSTATUS=%u peer%s not serve, see 'xseg -s %s status'; the "
			    "others do",
			nr_not, nr_not == 1 ? " does" : "s do", s->t->segment);
	else
		notify_send("READY=1\nSTATUS=all peers serve");
}

int stay_until_stopped(const struct launch *launch, bool service, uint32_t nr_not)
{
	struct stay s = { .t = launch->t, .seg = launch->seg, .launch = launch,
			  .service = service, .shown = launch->log_from };
	struct xseg_peer_info supervisor;
	bool alive;
	int rc = TOOL_DONE;

	fflush(stdout);
	if (service && !tool_interrupted())
		tell_ready(&s, nr_not);
	for (;;) {
		alive = view_supervisor(s.seg, &supervisor);
		if (has_gone(&s, alive) || (s.asked && tool_interrupted()))
			break;
		show_log(&s);
		if (alive) {
			look_for_return(&s, &supervisor);
			follow(&s, &supervisor);
		}
		if (alive && !s.asked && tool_interrupted())
			rc = begin_stop(&s, &supervisor);
		if (rc)
			return rc;
		if (s.asked)
			look_at_stop(&s);
		tool_sleep_ns(LOOK_NS);
	}
	show_log(&s);
	return end(&s, alive);
}
