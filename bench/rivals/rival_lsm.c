/* rival_lsm.c - a library that keeps keys and values in files: no other process, and --iodepth
 * threads.
 *
 * A library's call returns when it is done, so each I/O in flight is a thread. The threads share
 * the CPUs of --cpus.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

struct worker {
	pthread_t thread;
	const struct rival_options *o;
	struct rival_result *result;
	void *db;
	uint32_t nr;
	int rc;
	struct xseg_error err;
};

static void say(char *why)
{
	fprintf(stderr, "bench-rival: %s: %s\n", rival_store.name, why ? why : "not found");
	free(why);
}

static bool put_one(void *db, uint64_t block, uint8_t value[VALUE_BYTES])
{
	char key[KEY_BYTES], *why = NULL;
	size_t len = rival_key(key, block);

	rival_value(value, block);
	if (!rival_store.put(db, key, len, value, VALUE_BYTES, &why))
		return true;
	say(why);
	return false;
}

static bool get_one(void *db, uint64_t block)
{
	char key[KEY_BYTES], *value = NULL, *why = NULL;
	size_t len = rival_key(key, block), bytes = 0;
	bool right;

	if (rival_store.get(db, key, len, &value, &bytes, &why)) {
		say(why);
		return false;
	}
	right = value && rival_value_is(value, bytes, block);
	rival_store.release(value);
	return right;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct rival_options *o = w->o;
	uint64_t random = o->randseed + w->nr * UINT64_C(0x632be59bd9b4e019), before, now;
	struct rival_clock clock;
	uint8_t value[VALUE_BYTES];

	w->rc = bench_cpus_bind(&o->cpus, w->nr, &w->err);
	if (w->rc)
		return NULL;
	memset(value, 0x5a, sizeof(value));
	rival_clock_start(&clock, o);
	now = bench_now_ns();
	do {
		uint64_t block = bench_random(&random, o->size / VALUE_BYTES);

		before = now;
		w->result->wrong += !(
			o->rw == RANDREAD ? get_one(w->db, block) : put_one(w->db, block, value));
		now = bench_now_ns();
		if (clock.counting)
			xhist_record(&w->result->lat, now - before);
	} while (rival_count(&clock, w->result, now, 1));
	return NULL;
}

static int fill(const struct rival_options *o, void *db, struct xseg_error *err)
{
	uint8_t value[VALUE_BYTES];

	memset(value, 0x5a, sizeof(value));
	for (uint64_t block = 0; block < o->size / VALUE_BYTES; block++)
		if (!put_one(db, block, value))
			return xseg_fail(err, -EIO, "the set cannot be written");
	return 0;
}

static int run_workers(const struct rival_options *o, void *db, struct rival_result *result,
	struct xseg_error *err)
{
	static struct worker worker[MAX_DEPTH];
	uint32_t started;
	int rc = 0;

	for (started = 0; started < o->iodepth; started++) {
		struct worker *w = &worker[started];

		*w = (struct worker){ .o = o, .result = &result[started], .db = db, .nr = started };
		if (pthread_create(&w->thread, NULL, work, w))
			break;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(worker[i].thread, NULL);
	if (started < o->iodepth)
		return xseg_fail(err, -EAGAIN, "no thread could be started");
	for (uint32_t i = 0; i < started && !rc; i++)
		if ((rc = worker[i].rc))
			*err = worker[i].err;
	return rc;
}

int rival_run(const struct rival_options *o, struct rival_result *result, uint32_t *nr,
	struct xseg_error *err)
{
	char *why = NULL;
	void *db = rival_store.open(o, &why);
	int rc = 0;

	if (!db) {
		rc = xseg_fail(err, -EIO, "%s in %s: %s", rival_store.name, o->path,
			why ? why : "not opened");
		free(why);
		return rc;
	}
	*nr = o->iodepth;
	for (uint64_t block = 0; o->warm && block < o->size / VALUE_BYTES; block++)
		get_one(db, block);
	rc = o->fill ? fill(o, db, err) : run_workers(o, db, result, err);
	rival_store.close(db);
	return rc;
}
