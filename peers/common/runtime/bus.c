/* bus - see bus.h. The lines are made beforehand, but for the time: a signal handler may call
 * write() and _exit(), and little else.
 */
#include "peers/common/runtime/bus.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/log/log_time.h"
#include "xseg/xseg.h"

static struct {
	char gone[400], faulty[400];
	int code;
} bus = { .gone = "error: memory of the segment is gone\n", .code = 1 };

static _Noreturn void leave(const char *line)
{
	char text[LOG_TIME_CHARS + sizeof(bus.gone)];
	size_t used, len = strlen(line);
	ssize_t done;

	log_format_now(text);
	used = strlen(text);
	memcpy(text + used, line, len);
	done = write(STDERR_FILENO, text, used + len);
	(void)done;
	_exit(bus.code);
}

static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	leave(info->si_code == BUS_ADRERR ? bus.gone : bus.faulty);
}

void bus_block_others(void)
{
	sigset_t others;

	sigfillset(&others);
	sigdelset(&others, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &others, NULL);
}

void bus_leave(void)
{
	leave(bus.gone);
}

bool bus_port_wait(struct xport *port, uint64_t timeout_ns)
{
	bool woken = xseg_port_wait(port, timeout_ns);

	if (!woken && !xseg_is_whole(xseg_peer_segment(xseg_port_peer(port))))
		bus_leave();
	return woken;
}

void bus_watch(const char *who, const char *segment, int code)
{
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

	bus.code = code;
	snprintf(bus.gone, sizeof(bus.gone),
		"%.63s: error: memory of segment '%.63s' is gone: somebody truncated its file; "
		"leaving at once; remove it by 'xseg -s %.63s destroy --force', and make it "
		"again\n",
		who, segment, segment);
	snprintf(bus.faulty, sizeof(bus.faulty),
		"%.63s: error: memory of segment '%.63s' cannot be used (SIGBUS); leaving at once; "
		"the kernel's log may say why\n",
		who, segment);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
