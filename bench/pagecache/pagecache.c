/* pagecache - the same random I/O of 4 KiB with pread() and pwrite(), and with libxseg.
 *
 * bench/pagecache.sh compares the page cache with xseg by this program. In both cases a thread
 * draws the same pages, does the same work on their data, and is bound to the same CPU:
 *   --file=FILE    a loop of pread() or pwrite() with one buffer; --data=map: reads of a mapping
 *   --volume=NAME  a queue of a volume, with --iodepth I/Os in flight (pagecache_volume.c)
 *
 * After a read the thread sums the first line of the page or, with --touch=all, all of it. Before a
 * write it writes the same lines.
 *
 * The CPU time is that of all threads here, and of the process --server. Counting begins after
 * --ramp_time. The main thread reads all counters and clocks then, and at the end; meanwhile it
 * sleeps. The mean latency follows from the rate and the number of I/Os in flight.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/pagecache/pagecache.h"

static const char *const data_names[] = { [COPY] = "copy",
	[LOAN] = "loan",
	[DIRECT] = "direct",
	[DIRECT_COPY] = "direct-copy",
	[MAP] = "map",
	NULL };
static const char *const touch_names[] = { [FIRST_LINE] = "line", [ALL_LINES] = "all", NULL };

#define AT(f) offsetof(struct options, f)
#define TEXT(f, n, a, h) \
	{ \
		.name = n, .kind = OPT_STR, .off = AT(f), .arg = a, .help = h, \
		.len = sizeof(((struct options *)0)->f) \
	}
#define CHOICE(f, n, d, h) \
	{ \
		.name = #f, .kind = OPT_ENUM, .off = AT(f), .names = n, .def = d, .help = h \
	}
static const struct opt opts[] = {
	TEXT(file, "file", "FILE", "read or write this file, which has all of its data"),
	TEXT(volume, "volume", "NAME", "read or write this volume"),
	TEXT(segment, "segment", "NAME", "the volume's segment, else $XSEG_SEGMENT, else xseg"),
	{ .name = "make", .kind = OPT_BOOL, .off = AT(make),
	  .help = "only write and read all data of the volume, or the file, which is made" },
	{ .name = "huge", .kind = OPT_BOOL, .off = AT(huge),
	  .help = "put the file that is made into huge pages" },
	BENCH_RW(AT(rw)),
	CHOICE(data, data_names, "copy",
		"how data moves; loan and direct: of a volume, map: of a file"),
	CHOICE(touch, touch_names, "line", "what is touched of a page: its first line, or all"),
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size), .min = PAGE, .def = "256M",
	  .arg = "SIZE", .help = "bytes that are used, from the beginning" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = MAX_DEPTH,
	  .def = "1", .arg = "N", .help = "I/Os in flight, a thread; 1 for system calls" },
	{ .name = "numjobs", .kind = OPT_UINT, .off = AT(numjobs), .min = 1, .max = MAX_JOBS,
	  .def = "1", .arg = "N", .help = "threads" },
	BENCH_CPUS(AT(cpus.text), "CPUs for the threads, in turn; else they are bound to none"),
	BENCH_RUNTIME(AT(runtime_ns)),
	BENCH_RAMP_TIME(AT(ramp_ns), "50ms"),
	BENCH_RANDSEED(AT(randseed)),
	{ .name = "server", .kind = OPT_UINT, .off = AT(server), .arg = "PID",
	  .help = "a process whose CPU time counts, too" },
	BENCH_HELP(AT(help)),
	{ .name = NULL }
};

#define MOMENT_NS   100000u
#define PATIENCE_NS 10000000000ull

static struct job jobs[MAX_JOBS];
/* relaxed, all: nothing else is passed by them */
static _Atomic uint32_t nr_ready; /* jobs that are, or have ended */
static _Atomic bool go, stop;

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		continue;
}

/* ---- a job ------------------------------------------------------------------------------- */

/* A thread that waits leaves its CPU to the server, which may have to answer another thread. */
void job_ready(struct job *j)
{
	(void)j;
	atomic_fetch_add_explicit(&nr_ready, 1, memory_order_relaxed);
	while (!atomic_load_explicit(&go, memory_order_relaxed))
		sleep_ns(MOMENT_NS);
}

bool job_is_over(const struct job *j)
{
	return atomic_load_explicit(&stop, memory_order_relaxed) ||
	       (j->in_sequence && j->at == j->nr_pages);
}

void job_count(struct job *j)
{
	atomic_store_explicit(&j->ios, atomic_load_explicit(&j->ios, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

int job_check(struct job *j, int64_t result)
{
	if (result == PAGE)
		return 0;
	if (result >= 0)
		return xseg_fail(&j->err, -EIO,
			"an I/O ended after %" PRId64 " bytes; --make writes all data", result);
	return xseg_fail(&j->err, (int)result, "an I/O failed: %s", strerror((int)-result));
}

static void job_init(struct job *j, const struct options *o, uint32_t nr)
{
	j->o = o;
	j->rw = (enum bench_rw)o->rw;
	j->nr_pages = o->size / PAGE;
	j->nr = nr;
	j->random = o->randseed << 8 | nr;
	j->fd = -1;
}

static int job_run(struct job *j)
{
	return j->volume ? volume_run(j) : file_run(j);
}

static void *job_main(void *arg)
{
	struct job *j = arg;

	j->rc = bench_cpus_bind(&j->o->cpus, j->nr, &j->err);
	if (!j->rc)
		j->rc = job_run(j);
	if (j->rc)
		atomic_fetch_add_explicit(&nr_ready, 1, memory_order_relaxed);
	return NULL;
}

/* ---- measuring --------------------------------------------------------------------------- */

struct sample {
	uint64_t ios, ns, client_ns, server_ns;
};

static uint64_t cpu_time(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct sample look(const struct options *o, clockid_t server)
{
	struct sample s = { .ns = bench_now_ns(),
		.client_ns = cpu_time(CLOCK_PROCESS_CPUTIME_ID),
		.server_ns = o->server ? cpu_time(server) : 0 };

	for (uint32_t i = 0; i < o->numjobs; i++)
		s.ios += atomic_load_explicit(&jobs[i].ios, memory_order_relaxed);
	return s;
}

/* One I/O at the least is counted, however long the CPU was another's. */
static struct sample next_look(const struct options *o, clockid_t server, const struct sample *from)
{
	struct sample s;

	sleep_ns(o->runtime_ns);
	s = look(o, server);
	while (s.ios == from->ios && s.ns - from->ns < PATIENCE_NS) {
		sleep_ns(MOMENT_NS);
		s = look(o, server);
	}
	return s;
}

/* xbench's fields, of all threads together. */
static void print(const struct options *o, const struct sample *a, const struct sample *b)
{
	uint64_t ios = b->ios - a->ios, ns = b->ns - a->ns, sum = 0, wrong = 0;
	uint64_t iops = (uint64_t)((unsigned __int128)ios * 1000000000u / ns);
	/* a loop of system calls has one I/O in flight */
	uint64_t in_flight = (uint64_t)o->numjobs * (*o->file && o->data == COPY ? 1 : o->iodepth);

	for (uint32_t i = 0; i < o->numjobs; i++) {
		sum += jobs[i].sum;
		wrong += jobs[i].wrong;
	}
	printf("{\"client_cpu_ns\": %" PRIu64 ", \"server_cpu_ns\": %" PRIu64 ", \"ios\": %" PRIu64
	       ", \"sum\": %" PRIu64 ",\n  \"jobs\": [{\"jobname\": \"pagecache\", \"error\": %d,"
	       " \"total_err\": %" PRIu64,
		b->client_ns - a->client_ns, b->server_ns - a->server_ns, ios, sum,
		wrong ? EIO : 0, wrong);
	for (uint32_t rw = RANDREAD; rw <= RANDWRITE; rw++) {
		bool is = rw == o->rw;

		printf(",\n    \"%s\": {\"total_ios\": %" PRIu64 ", \"iops\": %" PRIu64
		       ", \"bw_bytes\": %" PRIu64 ", \"runtime_ns\": %" PRIu64
		       ", \"lat_ns\": {\"mean\": %" PRIu64 "}}",
			rw == RANDREAD ? "read" : "write", is ? ios : 0, is ? iops : 0,
			is ? iops * PAGE : 0, is ? ns : 0, is && ios ? ns * in_flight / ios : 0);
	}
	printf("}]}\n");
}

static int join(const pthread_t *threads, uint32_t nr, struct xseg_error *err)
{
	int rc = 0;

	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (uint32_t i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		if (!rc && jobs[i].rc) {
			rc = jobs[i].rc;
			*err = jobs[i].err;
		}
	}
	return rc;
}

static int measure(const struct options *o, clockid_t server, struct xseg_error *err)
{
	struct sample from = { 0 }, to = { 0 };
	pthread_t threads[MAX_JOBS];
	uint32_t nr = 0;
	int rc = 0, rc2;

	while (!rc && nr < o->numjobs) {
		rc = pthread_create(&threads[nr], NULL, job_main, &jobs[nr]);
		if (rc)
			rc = xseg_fail(err, -rc, "no thread can be had: %s", strerror(rc));
		nr += !rc;
	}
	while (!rc && atomic_load_explicit(&nr_ready, memory_order_relaxed) < nr)
		sleep_ns(MOMENT_NS);
	atomic_store_explicit(&go, true, memory_order_relaxed);
	if (!rc) {
		sleep_ns(o->ramp_ns);
		from = look(o, server);
		to = next_look(o, server, &from);
	}
	rc2 = join(threads, nr, err);
	if (!rc && !rc2)
		print(o, &from, &to);
	return rc ? rc : rc2;
}

/* ---- making ------------------------------------------------------------------------------ */

static int pass(struct job *j, enum bench_rw rw, struct xseg_error *err)
{
	int rc;

	j->rw = rw;
	j->at = 0;
	rc = job_run(j);
	if (rc)
		*err = j->err;
	else if (j->wrong)
		rc = xseg_fail(err, -EIO, "%" PRIu64 " pages have the data of others", j->wrong);
	return rc;
}

/* By one thread: each page is written, and read. */
static int make(const struct options *o, struct xseg_error *err)
{
	struct job *j = &jobs[0];
	bool huge = false;
	int rc;

	j->in_sequence = true;
	atomic_store_explicit(&go, true, memory_order_relaxed);
	rc = pass(j, RANDWRITE, err);
	if (!rc)
		rc = pass(j, RANDREAD, err);
	if (!rc && o->huge)
		rc = file_collapse(o, j->fd, &huge, err);
	if (!rc)
		printf("{\"huge_pages\": %s}\n", huge ? "true" : "false");
	return rc;
}

/* ---- all together ------------------------------------------------------------------------ */

static int run(void *options, struct xseg_error *err)
{
	const struct options *o = options;
	const char *segment = *o->segment ? o->segment : getenv("XSEG_SEGMENT");
	struct xseg_volume_params params = { .segment = segment && *segment ? segment : "xseg",
		.volume = o->volume };
	struct xseg_volume *volume = NULL;
	clockid_t server = 0;
	uint8_t *map = NULL;
	int fd = -1, rc = 0;

	if (o->server && (rc = clock_getcpuclockid((pid_t)o->server, &server)))
		return xseg_fail(err, -rc, "server: process %u: %s", o->server, strerror(rc));
	rc = *o->volume ? xseg_volume_open(&params, &volume, err) : file_open(o, &fd, err);
	if (!rc && o->data == MAP)
		rc = file_map(o, fd, &map, err);
	for (uint32_t i = 0; i < o->numjobs; i++) {
		job_init(&jobs[i], o, i);
		jobs[i].volume = volume;
		jobs[i].fd = fd;
		jobs[i].map = map;
	}
	if (!rc)
		rc = o->make ? make(o, err) : measure(o, server, err);
	xseg_volume_close(volume);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int check(void *options, struct xseg_error *err)
{
	struct options *o = options;
	bool direct = o->data == DIRECT || o->data == DIRECT_COPY;

	if (!*o->file == !*o->volume)
		return xseg_fail(err, -EINVAL, "give either --file or --volume");
	if (*o->file ? o->data == LOAN || direct : o->data == MAP)
		return xseg_fail(err, -EINVAL, "--data=%s is not for a %s", data_names[o->data],
			*o->file ? "file" : "volume");
	if (o->make ? o->data == MAP : o->rw == RANDWRITE && (direct || o->data == MAP))
		return xseg_fail(err, -EINVAL, "--data=%s only reads", data_names[o->data]);
	if (o->huge && (!*o->file || !o->make))
		return xseg_fail(err, -EINVAL, "--huge is for --make of a --file");
	if (o->size % PAGE)
		return xseg_fail(err, -EINVAL, "size: %" PRIu64 " is not a multiple of 4k",
			o->size);
	return bench_cpus_parse(&o->cpus, err);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = { .name = "bench-pagecache",
		.usage = "bench-pagecache --file=FILE | --volume=NAME [OPTION...]\n"
			 "Reads or writes 4 KiB at random by system calls or by libxseg. Prints"
			 " rate and CPU time as JSON.",
		.options = opts, .check = check, .run = run };
	static struct options o;

	return bench_main(&program, &o, argc, argv);
}
