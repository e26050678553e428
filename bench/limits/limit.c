/* limit - the bare limit: the fastest simple program that does the work of a cache hit, without a
 * cache.
 *
 * `make bench` states the stack's figures as ratios to this program's, taken in the same run on the
 * same machine. A server process, pinned to one CPU, has a set of 4 KiB pages in shared memory and
 * an index of its objects. Clients on other CPUs ask for blocks at random through the same lanes
 * (xtypes/xq.h).
 *	chase    no server: memory as one core sees it, in latency
 *	lines    in lines that the core has in flight
 *	memcpy   and in bandwidth (limit_alone.c)
 *	echo     the lanes alone: the word comes back as it was
 *	lookup   the object is looked up by its hash, the page's number is answered, and that is all
 *	loan     the same, and the client reads the page where it is; a write gives a page that the
 *		 client has filled: it replaces the page in the index, and the client gets that one
 *	copy     the same lookup, and one memcpy() a page between the set and the client's buffer
 *
 * A client reads the first line of each answered page, and writes the first line of each page that
 * it sends; with --touch=all all lines.
 *
 * It leaves out the duties of a real stack: states of requests and buckets, errors, checks of data
 * from other processes, eviction, dirty data, death of a process, doorbells. Nor does it know
 * whether a page that it reuses still has readers.
 *
 * Processes: the server is the parent, each client is a child made by fork(); they share one
 * mapping. Nothing sleeps: a process without work yields, at once where the CPU is shared.
 *
 * Files: limit.c options and processes, limit_map.c memory and index, limit_server.c,
 * limit_client.c, limit_report.c. Invariants are in limit.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "bench/limits/limit.h"

#define LOOKS_SHARED	64u			/* in vain, before a shared CPU is yielded */
#define LOOKS_ALONE	4096u			/* longer than any answer, on an idle machine */

/* ---- options ----------------------------------------------------------------------------- */

const char *const limit_mode_names[] = {
	[CHASE] = "chase", [LINES] = "lines", [MEMCPY] = "memcpy", [ECHO_WORD] = "echo",
	[LOOKUP] = "lookup", [LOAN] = "loan", [COPY] = "copy", NULL
};
static const char *const touch_names[] = { [FIRST_LINE] = "line", [ALL_LINES] = "all", NULL };
static const char *const format_names[] = { [NORMAL] = "normal", [JSON] = "json", NULL };

#define AT(f) offsetof(struct options, f)
const struct opt limit_opts[] = {
	{ .name = "mode", .kind = OPT_ENUM, .off = AT(mode), .names = limit_mode_names,
	  .def = "copy", .help = "the work of a request" },
	BENCH_RW(AT(rw)),
	{ .name = "touch", .kind = OPT_ENUM, .off = AT(touch), .names = touch_names, .def = "line",
	  .help = "the part of a page that a client touches" },
	{ .name = "bs", .kind = OPT_SIZE, .off = AT(bs), .min = PAGE, .max = 1u << 20, .def = "4k",
	  .arg = "SIZE", .help = "block size, a power of two" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = 4096,
	  .def = "16", .arg = "N", .help = "requests in flight, a client" },
	{ .name = "numjobs", .kind = OPT_UINT, .off = AT(numjobs), .min = 1, .max = MAX_JOBS,
	  .def = "1", .arg = "N", .help = "clients, each a process" },
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size), .min = 4u << 20, .max = 128ull << 30,
	  .def = "2G", .arg = "SIZE", .help = "bytes of the set, a multiple of 4M" },
	{ .name = "object_size", .kind = OPT_SIZE, .off = AT(object_size), .min = PAGE,
	  .max = 4u << 20, .def = "4M", .arg = "SIZE",
	  .help = "bytes of an object, a power of two" },
	BENCH_RUNTIME(AT(runtime_ns)),
	BENCH_RAMP_TIME(AT(ramp_ns), "200ms"),
	BENCH_RANDSEED(AT(randseed)),
	{ .name = "huge", .kind = OPT_BOOL, .off = AT(huge), .def = "yes",
	  .help = "ask for huge pages" },
	{ .name = "scatter", .kind = OPT_BOOL, .off = AT(scatter),
	  .help = "memcpy: a block's pages lie anywhere; lines: any line of each" },
	{ .name = "set", .kind = OPT_STR, .off = AT(set), .len = sizeof(((struct options *)0)->set),
	  .arg = "FILE", .help = "memory is this file, which is kept: the next start is quick" },
	BENCH_CPUS(AT(cpus.text),
		"the server's CPU, then the clients' in turn; else the first two there are"),
	{ .name = "output-format", .kind = OPT_ENUM, .off = AT(output_format),
	  .names = format_names, .def = "normal", .help = "of the results" },
	BENCH_HELP(AT(help)),
	{ .name = NULL }
};
#undef AT

/* Those of the list that this process may use; without a list, the first two. */
static int choose_cpus(struct bench_cpus *cpus, struct xseg_error *err)
{
	cpu_set_t there;
	int rc = bench_cpus_parse(cpus, err);

	if (rc)
		return rc;
	if (sched_getaffinity(0, sizeof(there), &there))
		return xseg_fail(err, -errno, "the allowed CPUs cannot be read: %s",
				 strerror(errno));
	for (int i = 0; i < cpus->nr; i++)
		if (!CPU_ISSET((size_t)cpus->cpu[i], &there))
			return xseg_fail(err, -EINVAL, "cpus: CPU %d is not there or not allowed",
					 cpus->cpu[i]);
	for (int cpu = 0; cpu < CPU_SETSIZE && !*cpus->text && cpus->nr < 2; cpu++)
		if (CPU_ISSET((size_t)cpu, &there))
			cpus->cpu[cpus->nr++] = cpu;
	return 0;
}

static int check_sizes(const struct options *o, struct xseg_error *err)
{
	if (o->bs & (o->bs - 1))
		return xseg_fail(err, -EINVAL, "bs: %" PRIu64 " is not a power of two", o->bs);
	if (o->object_size & (o->object_size - 1) || o->object_size < o->bs)
		return xseg_fail(err, -EINVAL,
			"object_size: %" PRIu64 " is not a power of two of at least bs",
			o->object_size);
	if (o->size % (4u << 20))
		return xseg_fail(
			err, -EINVAL, "size: %" PRIu64 " is not a multiple of 4M", o->size);
	if ((o->size + (uint64_t)o->numjobs * o->iodepth * o->bs) / PAGE > NR_MASK)
		return xseg_fail(
			err, -EINVAL, "size: set and buffers have more than 2^%u pages", NR_BITS);
	if (o->mode != MEMCPY && o->mode < LOAN && (o->bs != PAGE || o->rw != RANDREAD))
		return xseg_fail(err, -EINVAL,
			"mode=%s moves no data; give it bs=4k and rw=randread",
			limit_mode_names[o->mode]);
	return 0;
}

static int check(void *options, struct xseg_error *err)
{
	struct options *o = options;
	int rc = check_sizes(o, err);

	return rc ? rc : choose_cpus(&o->cpus, err);
}

/* ---- CPUs and clocks --------------------------------------------------------------------- */

/* The CPU of process 0, the server, or of client `process` - 1. */
static int cpu_of(const struct options *o, uint32_t process)
{
	if (!process || o->cpus.nr == 1)
		return o->cpus.cpu[0];
	return o->cpus.cpu[1 + (process - 1) % (uint32_t)(o->cpus.nr - 1)];
}

bool limit_pin(const struct options *o, uint32_t process)
{
	struct xseg_error err;
	bool shared = false;

	if (bench_bind(cpu_of(o, process), &err))
		fprintf(stderr, "bench-limit: %s\n", err.text);
	for (uint32_t i = 0; i <= o->numjobs; i++)
		shared |= i != process && cpu_of(o, i) == cpu_of(o, process);
	return shared;
}

void limit_idle(bool shared, uint32_t *looks)
{
	if (++*looks < (shared ? LOOKS_SHARED : LOOKS_ALONE))
		return;
	*looks = 0;
	sched_yield();
}

uint64_t limit_clock_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return bench_now_ns();
#endif
}

/* ---- all together ------------------------------------------------------------------------ */

/* A child dies with its parent; the parent is told of a child's death by SIGCHLD. */
static void child_died(int sig)
{
	static const char text[] = "bench-limit: a client died\n";
	int status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status) {
			if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
				_exit(2);
			_exit(1);
		}
}

static int run_child(struct limit *l, uint32_t nr)
{
	int rc = l->o->mode < ECHO_WORD ? limit_run_alone(l, nr) : limit_run_client(l, nr);

	/* release: partner is the acquire in limit_serve() */
	atomic_fetch_add_explicit(l->ended, 1, memory_order_release);
	return rc;
}

static int start_clients(struct limit *l, struct xseg_error *err)
{
	struct sigaction action = { .sa_handler = child_died, .sa_flags = SA_RESTART };
	pid_t parent = getpid();

	sigaction(SIGCHLD, &action, NULL);
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return xseg_fail(err, -errno, "no process for a client: %s",
					 strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(getppid() == parent ? run_child(l, i) : 1);
		}
	}
	return 0;
}

static int report(const struct limit *l, struct xseg_error *err)
{
	limit_print(l);
	if (fflush(stdout) || ferror(stdout))
		return xseg_fail(err, -EIO, "standard output cannot be written: %s",
				 strerror(errno));
	for (uint32_t i = 0; i < l->o->numjobs; i++)
		if (l->result[i].wrong)
			return xseg_fail(err, -EIO, "%" PRIu64 " answers of client %u were wrong",
					 l->result[i].wrong, i);
	return 0;
}

static int run(void *options, struct xseg_error *err)
{
	static struct limit l;
	int rc;

	l.o = options;
	rc = limit_prepare(&l, err);
	if (!rc)
		rc = start_clients(&l, err);
	if (rc)
		return rc;
	limit_serve(&l);
	return report(&l, err);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = { .name = "bench-limit",
		.usage = "bench-limit [OPTION...]\n"
			 "The fastest simple program with the steps of a cache hit: lanes, a"
			 " lookup, one memcpy.",
		.options = limit_opts, .check = check, .run = run };
	static struct options o;

	return bench_main(&program, &o, argc, argv);
}
