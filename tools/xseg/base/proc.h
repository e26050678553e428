/* proc - the processes behind peers: signals to them, and new ones.
 *
 * Contract: a signal goes to a process only if the kernel says that it has the lock of the member
 * that serves that peer in that generation. It goes through a pidfd that was opened before
 * (xseg_peer_pidfd()). A pid that was given to another process, or was written over in the segment,
 * is never hit (T4).
 */
#ifndef TOOLS_XSEG_PROC_H
#define TOOLS_XSEG_PROC_H

#include <sys/types.h>

#include "peers/common/say/words.h"
#include "xseg/xseg.h"

struct tool;

/* Sends `sig` to the process that serves this peer as described, also where the segment has a wrong
 * pid for it. -ESRCH: that process is gone; -EPROTO: it cannot be found. */
int proc_signal_peer(struct xseg *seg, const struct xseg_peer_info *peer, int sig) XSEG_MUST_CHECK;
/* The same, but nothing is signalled where the segment has a wrong pid: -EPROTO. */
int proc_signal_named(struct xseg *seg, const struct xseg_peer_info *peer, int sig) XSEG_MUST_CHECK;
/* Says so; `what` is the command. Returns an exit code. */
int proc_fail_named(struct xseg *seg, const struct xseg_peer_info *peer, const char *what);
/* Has this peer, and no other of its process, stop in an orderly way. */
int proc_stop_peer(struct xseg *seg, const struct xseg_peer_info *peer) XSEG_MUST_CHECK;
/* Tells the supervisor to start the process of a peer again when it has ended: once. place: the
 * peer's in the stack. Nothing happens if it is of another generation by then. */
int proc_restart_peer(struct xseg *seg, const struct xseg_peer_info *supervisor, uint32_t place,
	uint32_t generation) XSEG_MUST_CHECK;
/* Tells the supervisor what to do with an export, by its place in the stack. */
int proc_order_export(struct xseg *seg, const struct xseg_peer_info *supervisor,
		      enum export_order order, uint32_t place) XSEG_MUST_CHECK;

/* Whether the file of a process's program has been removed, or has another one in its place. */
bool proc_is_replaced(uint32_t pid);
/* The same of its program or of any library that it has loaded. False of a process that cannot be
 * looked at, as another user's. */
bool proc_maps_replaced(uint32_t pid);
/* The children of a process; returns how many. To be waited for, not to be signalled. */
uint32_t proc_children(uint32_t pid, uint32_t *child, uint32_t max);
/* The state of a process, as ps(1) has it: 'T' if it is stopped, 'Z' if it has ended, 'X' if there
 * is none of that number. */
char proc_state(uint32_t pid);
/* Becomes the program that is in that place now, with the arguments of this one. Returns if that
 * cannot be. */
void proc_become_new(void);
/* The supervisor of a segment that cannot be asked, by what /proc tells: has_name, whether its file
 * is still in /dev/shm. 0: there is none, or it is another user's. To be told of, not to be
 * signalled. */
uint32_t proc_find_supervisor(const char *segment, bool has_name);
/* The same, of all segments. */
void proc_each_supervisor(
	void (*seen)(const char *segment, bool has_name, uint32_t pid, void *arg), void *arg);

/* Starts a program in a session of its own, input from /dev/null, output and errors to the
 * descriptor log; it gets no other descriptor. Returns its pid or -errno (the program could not be
 * started). */
pid_t proc_spawn(char *const argv[], int log) XSEG_MUST_CHECK;
/* True when the child has ended; *status as of waitpid(). */
bool proc_ended(pid_t pid, int *status);
/* Runs a program to its end, with the descriptor `in` as its input; its stderr's last line goes to
 * `said`. Ctrl-C at the terminal does not reach the program. Returns its exit code or -errno;
 * -EPIPE: a signal ended it; -EINTR: it goes on, and what may be waited for (t, or NULL: as long as
 * it takes) has ended. */
int proc_run(char *const argv[], int in, const struct tool *t, char *said, size_t size)
	XSEG_MUST_CHECK;

/* The same of all that it writes to its stdout; its stderr is this program's, and Ctrl-C ends it,
 * too. *text: to be freed, NULL without memory. */
int proc_run_read(char *const argv[], int in, const struct tool *t, char **text) XSEG_MUST_CHECK;
/* The next word of a line of such a text, where tabs part them; "" at the end. */
char *proc_word(char **rest);
/* A descriptor that gives the text, or -errno. */
int proc_open_text(const char *text, size_t len) XSEG_MUST_CHECK;

/* Where what is started for a segment writes its log: $XDG_STATE_HOME/xseg-NAME.log or
 * /tmp/xseg-NAME.log. */
void proc_log_path(const char *segment, char *path, size_t size);
/* Where that process writes its errors; false when it has ended or is somebody else's. */
bool proc_errors_path(uint32_t pid, char *path, size_t size);
/* Appends a line, with its time, to the file in which that process writes its errors; to nothing
 * else, and not where it may not be written. */
void proc_log_note(uint32_t pid, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Each line of a file from offset `from` on, or of its last 64 KiB, that contains `word` (NULL:
 * any), without its time. */
void proc_each_line(const char *path, off_t from, const char *word,
		    void (*seen)(const char *line, void *arg), void *arg);
/* The last of them that begins with `begin`; false when there is none. */
bool proc_last_line(const char *path, off_t from, const char *begin, const char *word, char *line,
		    size_t size);

#endif
