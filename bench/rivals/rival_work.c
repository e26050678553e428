/* rival_work.c - the threads of a load: each has a session of the store, chooses what it does next,
 * and counts what comes back.
 *
 * A load of random keys lasts for a time, after a ramp that does not count. Of such loads each key
 * is put by one thread only, and by one operation at a time, so the answered version of a key is
 * known: a get that begins later must not find an older one. A load of each key once ends with the
 * last key.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

struct load {
	const struct rival_options *o;
	void *db;
	enum rival_rw rw;			/* of this phase */
	uint32_t nr;				/* threads */
	_Atomic uint64_t next;			/* key, of loads of each once */
	_Atomic uint64_t *answered;		/* the version of each key; NULL: is not known */
	pthread_barrier_t begin;
	_Atomic bool failed;
};

struct worker {
	pthread_t thread;
	struct load *load;
	struct rival_result *result;
	uint32_t nr;
	uint64_t random, at, from_ns, end_ns;
	bool counting;
	struct rival_op op[MAX_DEPTH];
	uint32_t depth, nr_out;
	int rc;
	struct xseg_error err;
};

static bool is_random(enum rival_rw rw)
{
	return rw == RIVAL_GET || rw == RIVAL_PUT || rw == RIVAL_MIXED;
}

static bool streams(const struct rival_options *o)
{
	return rival_store.stream_from && rival_bytes_max(o) >= rival_store.stream_from;
}

/* ---- what is done next ------------------------------------------------------------------- */

static bool is_put_now(const struct worker *w, uint64_t number)
{
	for (uint32_t i = 0; i < w->depth; i++)
		if (w->op[i].put && w->op[i].number == number)
			return true;
	return false;
}

/* A key that this thread puts, and that it does not put now. */
static uint64_t own_key(struct worker *w)
{
	uint64_t nr = w->load->nr, keys = w->load->o->keys / nr, number;

	if (!keys)
		return w->nr;
	do
		number = bench_random(&w->random, keys) * nr + w->nr;
	while (keys > w->depth && is_put_now(w, number));
	return number;
}

static void choose_random(struct worker *w, struct rival_op *op)
{
	const struct rival_options *o = w->load->o;

	op->put = w->load->rw == RIVAL_PUT ||
		  (w->load->rw == RIVAL_MIXED && bench_random(&w->random, 100) >= o->rwmixread);
	op->number = op->put ? own_key(w) : bench_random(&w->random, o->keys);
}

/* Whether there is something to do yet. */
static bool choose(struct worker *w, struct rival_op *op)
{
	struct load *load = w->load;

	if (is_random(load->rw)) {
		choose_random(w, op);
		return true;
	}
	if (load->rw == RIVAL_COUNTER) {
		op->put = w->nr < load->o->threads;
		op->number = w->at++;
	} else {
		op->put = load->rw == RIVAL_FILL;
		op->number = atomic_fetch_add_explicit(&load->next, 1, memory_order_relaxed);
	}
	return op->number < load->o->keys;
}

static void ask(struct worker *w, struct rival_op *op, void *session, uint64_t now)
{
	const struct rival_options *o = w->load->o;

	op->key_bytes = rival_key(o, (char *)(uintptr_t)op->key, op->number);
	op->bytes = rival_bytes(o, op->number);
	op->version = op->put ? rival_version() : 0;
	op->oldest = w->load->answered && !op->put ? w->load->answered[op->number] : 0;
	op->checked = false;
	op->got = NULL;
	op->next = NULL;
	op->ns = now;
	if (op->put && !streams(o))
		rival_stamp(op, op->value, 0, op->bytes);
	w->nr_out++;
	rival_store.submit(session, op);
}

/* ---- what came back ---------------------------------------------------------------------- */

static void say(struct worker *w, const struct rival_op *op, const char *what)
{
	if (!atomic_exchange(&w->load->failed, true))
		fprintf(stderr, "bench-rival: %s: %s of key %" PRIu64 ", %zu bytes: %s\n",
			rival_store.name(), op->put ? "put" : "get", op->number, op->bytes, what);
}

static bool is_right(struct rival_op *op)
{
	if (op->checked)
		return op->right;
	return (uint64_t)op->result == op->bytes && rival_is_stamped(op, op->got, 0, op->bytes);
}

static void count(struct worker *w, struct rival_op *op, uint64_t now)
{
	struct rival_count *c = &w->result->kind[op->put ? RIVAL_WRITES : RIVAL_READS];

	if (op->result < 0 && !(op->result == -ENOENT && !op->put)) {
		c->failed++;
		say(w, op, strerror((int)-op->result));
	} else if (!op->put && op->result >= 0 && !is_right(op)) {
		c->wrong++;
		say(w, op, "this is another value");
	}
	if (op->put && op->result >= 0 && w->load->answered)
		w->load->answered[op->number] = op->version;
	if (!w->counting)
		return;
	c->ios++;
	c->misses += !op->put && op->result == -ENOENT;
	c->bytes += op->put || op->result > 0 ? op->bytes : 0;
	c->ns = now - w->from_ns;
	xhist_record(&c->lat, now - op->ns);
}

/* Of loads that last for a time. */
static bool is_over(struct worker *w, uint64_t now)
{
	const struct rival_result *r = w->result;

	if (!is_random(w->load->rw))
		return false;
	if (!w->counting && now >= w->from_ns) {
		w->counting = true;
		w->from_ns = now;
	}
	/* however long the CPU was another's */
	return now >= w->end_ns && (r->kind[RIVAL_READS].ios || r->kind[RIVAL_WRITES].ios);
}

/* ---- a thread ---------------------------------------------------------------------------- */

static int work_on(struct worker *w, void *session)
{
	bool over = false;
	int rc = 0;

	for (uint32_t i = 0; i < w->depth && !over; i++) {
		over = !choose(w, &w->op[i]);
		if (!over)
			ask(w, &w->op[i], session, bench_now_ns());
	}
	while (w->nr_out) {
		struct rival_op *op = rival_store.next(session, &w->err);
		uint64_t now = bench_now_ns();

		if (!op) {
			rc = -EIO;
			break;
		}
		w->nr_out--;
		count(w, op, now);
		if (!op->put && rival_store.release)
			rival_store.release(session, op);
		over = over || is_over(w, now) || !choose(w, op);
		if (!over)
			ask(w, op, session, bench_now_ns());
	}
	return rc;
}

static void *give(size_t bytes, int fill)
{
	void *memory = malloc(bytes);

	if (memory && fill)
		memset(memory, fill, bytes);
	return memory;
}

static size_t key_room(const struct rival_options *o)
{
	return o->key_size + 32;
}

static int make_ops(struct worker *w)
{
	const struct rival_options *o = w->load->o;
	/* a store that streams has memory of its own */
	size_t bytes = streams(o) ? STAMP_STEP : rival_bytes_max(o) + STAMP_STEP;

	w->depth = streams(o) || rival_store.has_no_depth ? 1 : o->iodepth;
	for (uint32_t i = 0; i < w->depth; i++) {
		w->op[i].slot = i;
		w->op[i].key = give(key_room(o), 'k');
		w->op[i].value = give(bytes, 0x5a);
		if (!w->op[i].key || !w->op[i].value)
			return xseg_fail(&w->err, -ENOMEM, "no memory for values of %zu bytes",
				bytes);
	}
	return 0;
}

static void free_ops(struct worker *w)
{
	for (uint32_t i = 0; i < MAX_DEPTH; i++) {
		free((char *)(uintptr_t)w->op[i].key);
		free(w->op[i].value);
	}
}

static int get_all(struct worker *w, void *session)
{
	enum rival_rw rw = w->load->rw;
	int rc;

	if (!w->load->o->warm)
		return 0;
	w->load->rw = RIVAL_READ;
	rc = work_on(w, session);
	w->load->rw = rw;
	return rc;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct rival_options *o = w->load->o;
	void *session = NULL;

	w->rc = bench_cpus_bind(&o->cpus, w->nr, &w->err);
	if (!w->rc)
		w->rc = make_ops(w);
	if (!w->rc)
		w->rc = rival_store.begin(w->load->db, &session, &w->err);
	if (!w->rc && w->nr == 0)
		w->rc = get_all(w, session);
	pthread_barrier_wait(&w->load->begin);
	w->from_ns = bench_now_ns() + (is_random(w->load->rw) ? o->ramp_ns : 0);
	w->end_ns = w->from_ns + o->runtime_ns;
	w->counting = !is_random(w->load->rw);
	if (!w->rc && w->load->rw == RIVAL_SCAN) {
		struct rival_count *c = &w->result->kind[RIVAL_READS];
		int64_t n = rival_store.scan(session, c, &w->err);

		w->rc = n < 0 ? (int)n : 0;
		c->ns = bench_now_ns() - w->from_ns;
	} else if (!w->rc) {
		w->rc = work_on(w, session);
	}
	if (session)
		rival_store.end(session);
	free_ops(w);
	return NULL;
}

/* ---- all threads ------------------------------------------------------------------------- */

static void add(struct rival_result *to, const struct rival_result *from)
{
	for (int i = 0; i < RIVAL_KINDS; i++) {
		struct rival_count *t = &to->kind[i];
		const struct rival_count *f = &from->kind[i];

		xhist_merge(&t->lat, &f->lat);
		t->ios += f->ios;
		t->bytes += f->bytes;
		t->misses += f->misses;
		t->failed += f->failed;
		t->wrong += f->wrong;
		t->ns = f->ns > t->ns ? f->ns : t->ns;
	}
}

static void result_init(struct rival_result *result)
{
	for (int i = 0; i < RIVAL_KINDS; i++)
		xhist_init(&result->kind[i].lat);
}

static int start(struct load *load, struct worker *worker, struct rival_result *result,
	struct xseg_error *err)
{
	for (uint32_t i = 0; i < load->nr; i++) {
		struct worker *w = &worker[i];

		w->load = load;
		w->nr = i;
		w->result = &result[i];
		w->random = load->o->randseed + i * UINT64_C(0x632be59bd9b4e019);
		result_init(w->result);
		/* those that were started wait for the others, so this ends the process */
		if (pthread_create(&w->thread, NULL, work, w))
			return xseg_fail(err, -EAGAIN, "no thread could be started");
	}
	return 0;
}

static int run_phase(struct load *load, struct rival_result *sum, struct xseg_error *err)
{
	struct worker *worker = calloc(load->nr, sizeof(*worker));
	struct rival_result *result = calloc(load->nr, sizeof(*result));
	int rc = 0;

	if (!worker || !result || pthread_barrier_init(&load->begin, NULL, load->nr)) {
		free(worker);
		free(result);
		return xseg_fail(err, -ENOMEM, "no memory");
	}
	load->next = 0;
	rc = start(load, worker, result, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < load->nr; i++) {
		pthread_join(worker[i].thread, NULL);
		add(sum, &result[i]);
		if (worker[i].rc && !rc) {
			rc = worker[i].rc;
			*err = worker[i].err;
		}
	}
	pthread_barrier_destroy(&load->begin);
	free(worker);
	free(result);
	return rc;
}

int rival_run(const struct rival_options *o, struct rival_result *result, struct xseg_error *err)
{
	struct load load = { .o = o, .rw = o->rw, .nr = o->threads + o->readers };
	int rc = rival_store.open(o, &load.db, err);

	if (rc)
		return rc;
	result_init(result);
	rival_versions_begin();
	if (is_random(load.rw)) {
		load.answered = calloc(o->keys, sizeof(*load.answered));
		if (!load.answered) {
			rival_store.close(load.db);
			return xseg_fail(err, -ENOMEM, "no memory for %" PRIu64 " keys", o->keys);
		}
	}
	if (load.rw == RIVAL_BOTH) {
		load.rw = RIVAL_FILL;
		rc = run_phase(&load, result, err);
		load.rw = RIVAL_READ;
	}
	if (!rc)
		rc = run_phase(&load, result, err);
	rival_store.close(load.db);
	free((void *)load.answered);
	return rc;
}
