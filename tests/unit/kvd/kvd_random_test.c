/* kvd_random_test - kvd under random changes, deletes of all, gets, kills, stops and losses of
 * power, against a model that knows what each key may hold.
 *
 * Several changes of different keys are out at a time when kvd is killed. The model has of each key
 * all values since the last that is known to be stable. After a loss of power one of them shows,
 * and that one stays. With every third seed the store fails some writes and flushes. All that is
 * random follows from one seed: SEED=N runs one.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rig/kvd_rig.h"
#include "tests/rig/xorshift.h"

#define KEYS	40u
#define HISTORY 4000u
#define OUT	6u
#define VALUE_MAX 42000u
#define PAGED	8u				/* one of so many values is not copied */

struct key {
	uint32_t value[HISTORY];		/* 0: it is not there */
	uint32_t nr;				/* the last one is the newest */
	uint32_t stable;			/* this one, or a later one, shows */
	bool out;
};
static struct key key[KEYS];

struct out {
	struct xreq *r;
	struct kw_change c[3];
	uint32_t key[3], value[3], nr;
	bool fua, flush, all;			/* all: DELETE_ALL */
	uint32_t sent[KEYS];	/* FLUSH, FUA: how many values each key had when it was sent */
	char name[3][16], text[3][VALUE_MAX];
};
static struct out out[OUT];

static uint64_t random_state, seed;

static uint32_t rnd(uint32_t below)
{
	return xorshift_below(&random_state, below);
}

static void fail_key(uint32_t k, const char *what, uint32_t value)
{
	fail_msg("seed %" PRIu64 ": key %u: %s (%u)", seed, k, what, value);
}

/* A text that begins with its number. */
static void make_value(uint32_t k, uint32_t value, char *to)
{
	uint32_t n = (uint32_t)snprintf(to, VALUE_MAX, "%u:%u:", k, value),
		 bytes = value * 2654435761u % 5000;

	if (value / HISTORY % PAGED == 1)
		bytes += 33000;
	for (; n < bytes; n++)
		to[n] = (char)('a' + (value + n) % 26);
	to[n] = '\0';
}

/* What the key shows. */
static uint32_t shown(uint32_t k)
{
	static char text[VALUE_MAX];
	char name[16], number[64];
	struct kw_value v = { 0 };
	uint32_t value, of;
	int rc;

	snprintf(name, sizeof(name), "key%u", k);
	rc = kr_get(name, &v);
	if (rc == -ENOENT)
		return 0;
	if (rc)
		fail_key(k, "a get fails", (uint32_t)-rc);
	memcpy(number, v.value, v.value_bytes < 63 ? v.value_bytes : 63);
	number[v.value_bytes < 63 ? v.value_bytes : 63] = '\0';
	if (sscanf(number, "%u:%u:", &of, &value) != 2 || of != k)
		fail_key(k, "a value of another key", v.value_bytes);
	make_value(k, value, text);
	if (strlen(text) != v.value_bytes || memcmp(text, v.value, v.value_bytes) != 0)
		fail_key(k, "the value is torn", value);
	return value;
}

static void check_all(void)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t value = shown(k);

		if (value != key[k].value[key[k].nr - 1])
			fail_key(k, "another value than the last one", value);
	}
}

static void check_after_a_cut(void)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		struct key *e = &key[k];
		uint32_t value = shown(k), i = e->nr;

		while (i > e->stable && e->value[i - 1] != value)
			i--;
		if (i == e->stable)
			fail_key(k, "older than what was promised, or never put", value);
		*e = (struct key){ .value = { value }, .nr = 1 };
	}
}

static void note_sent(struct out *o)
{
	for (uint32_t k = 0; k < KEYS; k++)
		o->sent[k] = key[k].nr;
}

static void begin_change(struct out *o)
{
	uint32_t slot = (uint32_t)(o - out) + 1;

	o->nr = rnd(4) ? 1 : 1 + rnd(3);
	o->fua = rnd(5) == 0;
	note_sent(o);
	for (uint32_t i = 0; i < o->nr; i++) {
		struct kw_change *c = &o->c[i];
		uint32_t k;

		do
			k = rnd(KEYS);
		while (key[k].out);
		key[k].out = true;
		o->key[i] = k;
		o->value[i] = rnd(4) ? key[k].nr + 1 + rnd(1000) * HISTORY : 0;
		if (o->nr > 1 && o->value[i] / HISTORY % PAGED == 1)
			o->value[i] += HISTORY;
		snprintf(o->name[i], sizeof(o->name[i]), "key%u", k);
		*c = (struct kw_change){ .kind = o->value[i] ? KV_PUT : KV_DELETE,
			.key = o->name[i], .key_bytes = (uint32_t)strlen(o->name[i]) };
		if (!o->value[i])
			continue;
		make_value(k, o->value[i], o->text[i]);
		c->value = o->text[i];
		c->value_bytes = (uint32_t)strlen(o->text[i]);
		if (key[k].value[key[k].nr - 1] == 0 && rnd(2))
			c->condition = KV_IF_ABSENT;
		else if (key[k].value[key[k].nr - 1] && rnd(2))
			c->condition = KV_IF_PRESENT;
	}
	assert_true(kw_batch(kr.seg, o->r, &kr.log, o->c, o->nr, o->fua, kr_slot(slot),
		KR_PAGES) > 0);
	kr_submit(o->r);
}

/* It changes each key, so no other change is out. */
static bool begin_delete_all(struct out *o)
{
	for (uint32_t k = 0; k < KEYS; k++)
		if (key[k].out)
			return false;
	for (uint32_t k = 0; k < KEYS; k++)
		key[k].out = true;
	o->all = true;
	o->fua = rnd(3) == 0;
	note_sent(o);
	o->c[0] = (struct kw_change){ .kind = KV_DELETE_ALL };
	assert_true(kw_batch(kr.seg, o->r, &kr.log, o->c, 1, o->fua,
		kr_slot((uint32_t)(o - out) + 1), KR_PAGES) > 0);
	kr_submit(o->r);
	return true;
}

static void begin_flush(struct out *o)
{
	o->flush = true;
	note_sent(o);
	o->r->op = XSEG_OP_FLUSH;
	o->r->volume = kr.log.id;
	o->r->offset = o->r->size = o->r->flags = 0;
	kr_submit(o->r);
}

static void promise(const uint32_t *nr)
{
	for (uint32_t k = 0; k < KEYS; k++)
		if (key[k].stable < nr[k] - 1)
			key[k].stable = nr[k] - 1;
}

static void end_change(struct out *o)
{
	bool full = o->r->result == -ENOSPC, any = false;

	if (o->r->result != o->r->size && !full)
		fail_key(o->key[0], "a change fails", (uint32_t)-o->r->result);
	if (!full)
		kw_outcomes(kr.seg, o->r, o->c, o->nr);
	for (uint32_t i = 0; i < o->nr; i++) {
		struct key *e = &key[o->key[i]];
		bool absent = !o->value[i] && !e->value[e->nr - 1];

		e->out = false;
		if (full)
			continue;
		if (o->c[i].result != (absent ? -ENOENT : 0))
			fail_key(o->key[i], "a wrong outcome", (uint32_t)-o->c[i].result);
		assert_true(e->nr < HISTORY);
		e->value[e->nr++] = o->value[i];
		any |= !absent;
		if (o->fua && !absent)
			e->stable = e->nr - 1;
	}
	if (o->fua && any)
		promise(o->sent);
}

static void end_delete_all(struct out *o)
{
	bool full = o->r->result == -ENOSPC;

	if (o->r->result != o->r->size && !full)
		fail_key(0, "a delete of all fails", (uint32_t)-o->r->result);
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k].out = false;
		if (full)
			continue;
		assert_true(key[k].nr < HISTORY);
		key[k].value[key[k].nr++] = 0;
		if (o->fua)
			key[k].stable = key[k].nr - 1;
	}
	o->all = false;
}

static bool take_replies(void)
{
	struct xreq *r;
	bool any = false;

	while ((r = kr_reply())) {
		struct out *o = r->cookie;

		any = true;
		if (o->all)
			end_delete_all(o);
		else if (!o->flush)
			end_change(o);
		else if (r->result)
			fail_key(0, "a flush fails", (uint32_t)-r->result);
		else
			promise(o->sent);
		xseg_req_free(kr.port, r);
		o->r = NULL;
		o->flush = false;
	}
	return any;
}

static void drain(void)
{
	for (uint32_t i = 0; i < OUT; i++)
		for (uint32_t n = 0; out[i].r; n++) {
			if (n > 100000)
				fail_key(i, "no answer", 0);
			kr_step();
			take_replies();
			if (n % 100 == 99)
				kr.now_ns += KVD_SECOND / 10;
		}
}

static bool all_are_out(void)
{
	for (uint32_t k = 0; k < KEYS; k++)
		if (!key[k].out)
			return false;
	return true;
}

static void begin_some(void)
{
	struct out *o = &out[rnd(OUT)];

	if (o->r)
		return;
	o->r = xseg_req_alloc(kr.port);
	o->r->cookie = o;
	if (rnd(20) == 0 && begin_delete_all(o))
		return;
	if (rnd(30) && !all_are_out())
		begin_change(o);
	else
		begin_flush(o);
}

/* With every second seed the index has room for one key more than there are, so passes of the log
 * make room for them (table/room.h).
 */
static const char *options(void)
{
	static char text[32];
	static const char *const all[] = { "sync=never", "sync=written", "sync=1s", "sync=always",
		"sync=20ms" };

	snprintf(text, sizeof(text), "%s%s", all[rnd(5)], seed % 2 ? " keys=41" : "");
	return text;
}

/* A successor finds what is out. */
static void kill_and_start(void)
{
	kr_kill();
	for (uint32_t i = rnd(30); i; i--)
		kr_step();
	if (kr_open(options()))
		fail_msg("seed %" PRIu64 ": %s", seed, kr.text);
	for (uint32_t i = rnd(60); i; i--)	/* it may die while it opens */
		kr_step();
}

static void do_something(uint32_t what)
{
	if (what < 3) {
		kill_and_start();
	} else if (what < 4) {
		drain();
		kr_stop();
		kr_start(options());
		check_all();
	} else if (what < 6) {
		drain();
		kr_power_cut();
		kr_start(options());
		check_after_a_cut();
		for (uint32_t k = 0; k < KEYS; k++)
			key[k].stable = 0;
	} else if (what < 10) {
		drain();
		check_all();
	} else if (what < 20) {
		kr.now_ns += KVD_SECOND / 50 * rnd(100);
	}
}

static void one_seed(uint64_t s)
{
	seed = s;
	random_state = s * 0x9e3779b97f4a7c15ull + 1;
	memset(out, 0, sizeof(out));
	for (uint32_t k = 0; k < KEYS; k++)
		key[k] = (struct key){ .nr = 1 };
	kr_begin(s % 3 == 1 ? "track_flush=yes fail=write:0.02:EIO fail=flush:0.1:EIO"
			    : "track_flush=yes");
	kr_start(options());
	for (uint32_t i = 0; i < 3000; i++) {
		begin_some();
		for (uint32_t n = rnd(4); n; n--)
			kr_step();
		take_replies();
		do_something(rnd(1500));
	}
	drain();
	check_all();
	kr_end();
}

static void what_was_promised_is_there_and_nothing_is_done_twice(void **state)
{
	const char *one = getenv("SEED");
	uint64_t from = one ? strtoull(one, NULL, 10) : 1;
	uint64_t nr = one ? 1 : getenv("LONG") && *getenv("LONG") ? 300 : 12;

	(void)state;
	for (uint64_t s = from; s < from + nr; s++)
		one_seed(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_promised_is_there_and_nothing_is_done_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
