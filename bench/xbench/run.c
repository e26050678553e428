/* run - see run.h. */
#include "bench/xbench/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bench/xbench/job/live.h"
#include "peers/common/say/progress_line.h"

#define LOOK_MS	       200			/* how often the main thread looks at the jobs */
#define GRACE_NS       5000000000ull		/* for what is out when a signal comes */
#define SILENCE_NS     1000000000ull		/* then: without an answer, after which it ends */
#define STALL_NS       5000000000ull		/* without an answer, after which people are told */
#define STALL_MAX_NS   60000000000ull

/* ---- opening and closing ----------------------------------------------------------------- */

static int open_verify(struct xb_run *run, struct xseg_error *err)
{
	int rc;

	if (!run->opts->verify)
		return 0;
	rc = xb_verify_create(&run->verify, run->opts, &run->shared.where, err);
	if (!rc)
		run->shared.verify = &run->verify;
	return rc;
}

static int open_target(struct xb_run *run, struct xb_options *o, struct xseg_error *err)
{
	int rc;

	if (!xb_options_kv(o)) {
		rc = xb_where_find(&run->shared.where, run->shared.seg, o, err);
		return rc ? rc : open_verify(run, err);
	}
	rc = xb_kv_open(&run->kv, &run->shared, err);
	if (!rc)
		run->shared.kv = &run->kv;
	return rc;
}

int xb_run_open(struct xb_run *run, struct xb_options *o, struct xseg *seg, struct xseg_error *err)
{
	struct xb_job *(*create)(struct xb_shared *, uint32_t, int *, struct xseg_error *);
	int rc;

	memset(run, 0, sizeof(*run));
	run->opts = run->shared.opts = o;
	run->shared.seg = seg;
	create = xb_options_kv(o) ? xb_kv_job_create : xb_job_create;
	rc = open_target(run, o, err);
	if (rc)
		return rc;
	run->jobs = calloc(o->numjobs, sizeof(struct xb_job *));
	if (!run->jobs) {
		xb_run_close(run);
		return xseg_fail(err, -ENOMEM, "no memory");
	}
	for (; run->nr_jobs < o->numjobs; run->nr_jobs++) {
		run->jobs[run->nr_jobs] = create(&run->shared, run->nr_jobs, &rc, err);
		if (!run->jobs[run->nr_jobs]) {
			xb_run_close(run);
			return rc;
		}
	}
	return 0;
}

void xb_run_close(struct xb_run *run)
{
	while (run->jobs && run->nr_jobs) {
		struct xb_job *job = run->jobs[--run->nr_jobs];

		if (job->destroy(job))
			run->log_failed = true;
	}
	free(run->jobs);
	xb_sampler_fini(&run->sampler);
	if (run->shared.verify)
		xb_verify_destroy(&run->verify);
	if (run->shared.kv)
		xb_kv_close(&run->kv);
	run->jobs = NULL;
	run->shared.verify = NULL;
	run->shared.kv = NULL;
}

/* ---- one phase --------------------------------------------------------------------------- */

/* What the main thread has while the jobs run. */
struct watch {
	struct xb_run *run;
	struct xb_sampler *sampler;		/* NULL: no samples */
	struct xb_live live;
	int signal_fd, done_fd;
	uint32_t left;				/* jobs that run */
	struct clock clock;
	uint64_t now;
	uint64_t abandon_ns;			/* when to give up after a signal; 0: none yet */
	uint64_t told_ns, tell_again_ns;	/* about a stall */
};

enum go { GO_WAIT, GO_RUN, GO_HOME };

struct thread {
	pthread_t id;
	struct xb_job *job;
	_Atomic int *go;		/* enum go: all begin at the same time, or not at all */
	int done_fd;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	uint64_t one = 1;

	while (atomic_load(t->go) == GO_WAIT)
		sched_yield();
	if (atomic_load(t->go) == GO_HOME)
		return NULL;
	t->job->run(t->job);
	if (write(t->done_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return NULL;
}

static int start_thread(struct thread *t, const struct xb_options *o)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	pthread_attr_init(&attr);
	if (o->nr_cpus) {
		CPU_ZERO(&cpus);
		CPU_SET(o->cpu[t->job->nr % (uint32_t)o->nr_cpus], &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	rc = pthread_create(&t->id, &attr, thread_main, t);
	pthread_attr_destroy(&attr);
	return -rc;
}

static void handle_signal(struct watch *w)
{
	struct xb_shared *s = &w->run->shared;
	struct signalfd_siginfo info;

	if (read(w->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (!w->run->interrupted) {
		w->run->interrupted = true;
		w->abandon_ns = w->now + GRACE_NS;
		atomic_store(&s->stop, XB_STOP);
		progress_line_hide();
		fprintf(stderr, "xbench: stopped by SIG%s; a second one ends it without waiting\n",
			sigabbrev_np((int)info.ssi_signo));
	} else {
		atomic_store(&s->stop, XB_ABANDON);
	}
}

/* The longest that any job with something out has had no answer; *inflight: how much is out in all.
 */
static uint64_t longest_wait(const struct watch *w, uint64_t *inflight)
{
	uint64_t longest = 0, since;

	*inflight = 0;
	for (uint32_t i = 0; i < w->run->nr_jobs; i++) {
		const struct xb_job *job = w->run->jobs[i];
		uint32_t out = xb_job_inflight(job);

		since = atomic_load_explicit(&job->results.waiting_since_ns, memory_order_relaxed);
		*inflight += out;
		if (out && w->now > since && w->now - since > longest)
			longest = w->now - since;
	}
	return longest;
}

/* After a signal: what does not answer is not waited for. */
static void look_for_end(struct watch *w, uint64_t wait, uint64_t inflight)
{
	_Atomic int *stop = &w->run->shared.stop;

	if (!w->abandon_ns || (w->now < w->abandon_ns && wait < SILENCE_NS))
		return;
	if (inflight && atomic_load(stop) != XB_ABANDON) {
		progress_line_hide();
		fprintf(stderr, "xbench: gave up %" PRIu64 " requests that were not answered\n",
			inflight);
	}
	atomic_store(stop, XB_ABANDON);
}

/* A stack that is stopped is waited for, as that may be taken back. A segment that `down`
 * has removed does not come back. */
static void look_for_removal(struct watch *w)
{
	struct xseg_error why;
	uint64_t inflight;

	if (w->run->lost || !xb_where_is_lost(&w->run->shared.where, &why))
		return;
	longest_wait(w, &inflight);
	progress_line_hide();
	if (inflight)
		fprintf(stderr, "xbench: gave up %" PRIu64 " requests: %s\n", inflight, why.text);
	else
		fprintf(stderr, "xbench: ended: %s\n", why.text);
	w->run->lost = true;
	atomic_store(&w->run->shared.stop, XB_ABANDON);
}

/* Every further I/O would fail. */
static void look_for_cache(struct watch *w)
{
	struct xseg_error why;

	if (w->run->taken || !xb_where_is_taken(&w->run->shared.where, &why))
		return;
	progress_line_hide();
	fprintf(stderr, "xbench: ended: %s\n", why.text);
	w->run->taken = true;
	atomic_store(&w->run->shared.stop, XB_STOP);
}

static bool any_disconnected(const struct xb_run *run)
{
	for (uint32_t i = 0; i < run->nr_jobs; i++)
		if (atomic_load(&run->jobs[i]->results.error) == ENOTCONN)
			return true;
	return false;
}

static void look_for_stalls(struct watch *w)
{
	const struct xb_run *run = w->run;
	uint64_t inflight, wait = longest_wait(w, &inflight);
	char health[160];

	if (wait < STALL_NS) {
		w->tell_again_ns = STALL_NS;
	} else if (w->now - w->told_ns >= w->tell_again_ns && !w->run->interrupted) {
		xb_where_health(&run->shared.where, health, sizeof(health));
		progress_line_hide();
		fprintf(stderr, "xbench: still waiting for %" PRIu64 " requests (%s)\n", inflight,
			health);
		w->told_ns = w->now;
		w->tell_again_ns =
			w->tell_again_ns * 2 < STALL_MAX_NS ? w->tell_again_ns * 2 : STALL_MAX_NS;
	}
	if (run->opts->io_timeout && wait >= run->opts->io_timeout && !run->timed_out) {
		xb_where_health(&run->shared.where, health, sizeof(health));
		progress_line_hide();
		fprintf(stderr, "xbench: gave up %" PRIu64 " requests after io_timeout (%s)\n",
			inflight, health);
		w->run->timed_out = true;
		atomic_store(&w->run->shared.stop, XB_ABANDON);
	}
	look_for_end(w, wait, inflight);
}

static void watch_jobs(struct watch *w)
{
	struct pollfd fds[2] = { { .fd = w->signal_fd, .events = POLLIN },
				 { .fd = w->done_fd, .events = POLLIN } };
	uint64_t ended;
	int timeout;

	while (w->left) {
		w->now = clock_ns(&w->clock);
		timeout = w->sampler ? xb_sampler_timeout_ms(w->sampler, w->now) : LOOK_MS;
		if (timeout > LOOK_MS)
			timeout = LOOK_MS;
		if (poll(fds, 2, timeout) < 0)
			continue;
		w->now = clock_ns(&w->clock);
		if (fds[0].revents & POLLIN)
			handle_signal(w);
		if ((fds[1].revents & POLLIN) &&
		    read(w->done_fd, &ended, sizeof(ended)) == sizeof(ended))
			w->left -= (uint32_t)ended;
		if (!w->run->interrupted) {
			if (w->sampler)
				xb_sampler_look(w->sampler, w->now);
			xb_live_look(&w->live, w->now);
		}
		look_for_removal(w);
		look_for_cache(w);
		look_for_stalls(w);
	}
	/* jobs may have found that out themselves, and ended */
	if (any_disconnected(w->run))
		look_for_removal(w);
	progress_line_hide();
}

/* Starts the jobs' threads, watches them and joins them. */
static int run_threads(struct watch *w, struct xseg_error *err)
{
	struct xb_run *run = w->run;
	struct thread *threads = calloc(run->nr_jobs, sizeof(*threads));
	_Atomic int go = GO_WAIT;
	uint32_t i;
	int rc = 0;

	if (!threads)
		return xseg_fail(err, -ENOMEM, "no memory");
	for (i = 0; i < run->nr_jobs && !rc; i++) {
		threads[i] =
			(struct thread){ .job = run->jobs[i], .go = &go, .done_fd = w->done_fd };
		rc = start_thread(&threads[i], run->opts);
	}
	if (rc) {
		i--;
		xseg_fail(err, rc,
			"cannot start a thread for job %u: %s; use fewer jobs, or raise ulimit -v "
			"or -u", i,
			strerror(-rc));
		atomic_store(&go, GO_HOME);
	} else {
		w->left = run->nr_jobs;
		atomic_store(&go, GO_RUN);
		w->now = clock_ns(&w->clock);
		if (w->sampler)
			xb_sampler_start(w->sampler, w->now);
		xb_live_start(&w->live, &run->shared, run->jobs, run->nr_jobs, w->now);
		watch_jobs(w);
	}
	while (i > 0)
		pthread_join(threads[--i].id, NULL);
	if (w->sampler && !rc)
		xb_sampler_end(w->sampler, clock_ns(&w->clock));
	free(threads);
	return rc;
}

static bool is_cut_short(const struct xb_run *run)
{
	return run->interrupted || run->timed_out || run->lost || run->taken;
}

/* Requests that were in flight then have failed. The jobs have ended. */
static void count_lost(struct xb_run *run)
{
	for (uint32_t i = 0; i < run->nr_jobs; i++) {
		struct xb_results *results = &run->jobs[i]->results;

		xhist_add_relaxed(&results->errors, xb_job_inflight(run->jobs[i]));
		if (!atomic_load(&results->error))
			atomic_store(&results->error, ENOTCONN);
	}
}

static int run_phase(struct watch *w, enum xb_phase phase, struct xseg_error *err)
{
	struct xb_shared *s = &w->run->shared;

	s->phase = phase;
	atomic_store(&s->cursor, 0);
	if (s->verify)
		atomic_store(&s->cursor, xb_oracle_start(s->verify->oracle));
	w->tell_again_ns = STALL_NS;
	return run_threads(w, err);
}

/* ---- the run ----------------------------------------------------------------------------- */

static bool wrote_anything(const struct xb_run *run)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < run->nr_jobs; i++)
		nr += run->jobs[i]->gen.seq;
	return (nr || run->shared.kv) && xb_options_write(run->opts);
}

static bool has_lost_any(const struct xb_run *run)
{
	if (run->shared.kv)
		return xb_keys_wrong(run->kv.keys, XB_KEY_LOST) ||
		       xb_keys_wrong(run->kv.keys, XB_KEY_UNDONE);
	return xb_oracle_wrong(run->verify.oracle, XB_LOST);
}

static void look_for_room(struct xb_run *run)
{
	for (uint32_t i = 0; i < run->nr_jobs; i++)
		run->is_full |= run->jobs[i]->next.is_full;
	if (run->is_full)
		fprintf(stderr,
			"xbench: verify: ended early, as there is no room left to record writes; "
			"give %s\n", run->shared.kv ? "fewer --keys" : "a smaller --size");
}

static int run_phases(struct watch *w, struct xseg_error *err)
{
	struct xb_run *run = w->run;
	const struct xb_options *o = run->opts;
	struct xb_sampler *sampler = w->sampler;
	int rc = run_phase(w, o->verify_only ? XB_READ_BACK : XB_LOAD, err);

	w->sampler = NULL;
	look_for_room(run);
	if (!rc && o->verify && !o->verify_only && o->do_verify && wrote_anything(run) &&
	    !is_cut_short(run))
		rc = run_phase(w, XB_READ_BACK, err);
	if (!rc && o->verify && !is_cut_short(run) && has_lost_any(run))
		rc = run_phase(w, XB_LOOK_AGAIN, err);
	w->sampler = sampler;
	if (run->lost)
		count_lost(run);
	return rc;
}

/* What was found wrong by no job in particular counts as the first one's. */
static void finish_verify(struct xb_run *run)
{
	uint64_t counted = 0, all;

	if (!run->shared.kv)
		xb_verify_finish(&run->verify);
	all = run->shared.kv ? xb_keys_wrong_in_all(run->kv.keys) : xb_verify_wrong(&run->verify);
	for (uint32_t i = 0; i < run->nr_jobs; i++)
		counted += atomic_load(&run->jobs[i]->results.verify_errors);
	if (all > counted)
		atomic_fetch_add(&run->jobs[0]->results.verify_errors, all - counted);
}

static int save_state(struct xb_run *run, struct xseg_error *err)
{
	return run->shared.kv ? xb_keys_save(run->kv.keys, err) : xb_verify_save(&run->verify, err);
}

static int open_watch(struct watch *w, struct xseg_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	w->done_fd = eventfd(0, EFD_CLOEXEC);
	if (w->signal_fd >= 0 && w->done_fd >= 0)
		return 0;
	return xseg_fail(err, -errno, "cannot make a descriptor to wait on: %s; raise ulimit -n",
			 strerror(errno));
}

int xb_run_all(struct xb_run *run, struct xseg_error *err)
{
	struct watch w = { .run = run };
	int rc = open_watch(&w, err);

	if (rc)
		return rc;
	if (run->opts->status_interval) {
		xb_sampler_init(&run->sampler, run->opts, run->jobs, run->nr_jobs);
		w.sampler = &run->sampler;
	}
	rc = run_phases(&w, err);
	if (!rc && run->opts->verify)
		finish_verify(run);
	if (!rc && *run->opts->verify_state && !run->opts->verify_only &&
	    save_state(run, err)) {
		fprintf(stderr, "xbench: %s\n", err->text);
		run->save_failed = true;
	}
	close(w.signal_fd);
	close(w.done_fd);
	return rc;
}

int xb_run_exit_code(const struct xb_run *run)
{
	for (uint32_t i = 0; i < run->nr_jobs; i++) {
		const struct xb_results *results = &run->jobs[i]->results;

		if (atomic_load(&results->error) || atomic_load(&results->verify_errors))
			return 1;
	}
	if (run->save_failed || run->is_full || run->lost || run->taken)
		return 1;
	return is_cut_short(run) ? 3 : 0;
}
