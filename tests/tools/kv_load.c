/* kv_load - requests to a kvd as xseg/kv_wire.h has them, and a load that checks itself: for
 * tests/system/kvd*.sh.
 *
 *      kv_load SEGMENT KVD put KEY VALUE [EXPIRY]	 get KEY	delete KEY	exists KEY
 *      kv_load SEGMENT KVD add|replace|append|prepend KEY VALUE	 incr|decr KEY N
 *      kv_load SEGMENT KVD touch KEY EXPIRY	 scan [PREFIX]	flush	 info
 *      kv_load SEGMENT KVD load KEYS SECONDS VALUE_BYTES STATE [fua]
 *      kv_load SEGMENT KVD verify STATE
 *
 * Commands print the value, or the outcome as "result=ERRNO version=N number=N". Exit code 4: no
 * such key, or a condition that does not hold.
 *
 * The load has one change or get of a key out at a time, 32 at a time in all. Each key has a value
 * that says its key and a count, and each third is a counter that INCR makes. One value in sixteen
 * has more than 32 KiB. So a change that is
 * lost, or is done twice, is seen by the next get, whatever happens to kvd meanwhile. STATE has at
 * the end what each key is to hold; `verify` compares. The last line is "ops=N wrong=N". Exit code
 * 1: something was wrong, or failed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/rig/kv_wire_link.h"
#include "tests/rig/long.h"
#include "tests/rig/xorshift.h"

#define DEPTH	   32u
#define ANSWER_MAX 240u				/* pages */
#define SECOND	   1000000000ull
#define REST_US	   4000u			/* after each DEPTH operations */
#define RECORD_MAX (1u << 20)

enum act { ACT_NONE, ACT_GET, ACT_LOOK, ACT_PUT, ACT_DELETE, ACT_INCR, ACT_ADD };

/* What a key has: 0: nothing; else the count that its value says. */
struct key {
	uint64_t count;
	bool out;
};

struct slot {
	struct xreq *r;
	uint32_t *page;
	uint32_t key, pages;
	enum act act;
	uint64_t count;				/* as it will be */
	bool again;				/* a get that was asked with LOOK */
};

static uint8_t *record, *value;
static uint64_t rng = XORSHIFT_SEED, wrong, ops;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void attach(const char *segment, const char *kvd)
{
	kw_attach(segment, kvd, DEPTH, DEPTH);
	record = malloc(RECORD_MAX);
	value = malloc(RECORD_MAX);
	if (!record || !value)
		kw_die("memory", ENOMEM);
}

/* ---- one command ---- */

static int tell_change(struct kw_change *c, bool fua)
{
	struct xreq *r = xseg_req_alloc(kw.port);
	int64_t rc;

	if (!kw_batch(kw.seg, r, &kw.log, c, 1, fua, kw.page, KW_SLOT_PAGES))
		kw_die("value", EFBIG);
	rc = kw_call(r);
	if (rc < 0)
		kw_die("change", rc);
	kw_outcomes(kw.seg, r, c, 1);
	printf("result=%d version=%" PRIu64 " number=%" PRIu64 "\n", c->result, c->new_version,
		c->number);
	return c->result ? 4 : 0;
}

static int get_one(const char *key, struct kw_value *v)
{
	uint32_t bytes = (uint32_t)strlen(key), need = 1, place = 0, flags = 0;
	uint64_t zone = 0;
	struct xreq *r = xseg_req_alloc(kw.port);
	int rc;

	v->copy = record;
	do {
		kw_query(kw.seg, r, &kw.log,
			&(struct kv_query){ .kind = KV_GET,
				.flags = (uint8_t)flags,
				.key_bytes = bytes,
				.zone = zone,
				.place = place },
			key, kw.page, need);
		kw_call(r);
		rc = kw_got(kw.seg, r, &kw.log, key, bytes, v, &zone, &place, &need);
		flags |= rc == -EBADMSG ? KV_LOOK : 0;
	} while (rc == -EMSGSIZE || (rc == -EBADMSG && !(flags & KV_LOOK)));
	xseg_req_free(kw.port, r);
	return rc;
}

static int show(const char *key)
{
	struct kw_value v;
	int rc = get_one(key, &v);

	if (rc == -ENOENT)
		return 4;
	if (rc)
		kw_die(key, rc);
	fwrite(v.value, 1, v.value_bytes, stdout);
	printf("\n");
	return 0;
}

static int exists(const char *key)
{
	struct xreq *r = xseg_req_alloc(kw.port);

	kw_query(kw.seg, r, &kw.log, &(struct kv_query){ .kind = KV_EXISTS,
		.key_bytes = (uint32_t)strlen(key) }, key, kw.page, 1);
	kw_call(r);
	if (r->result < 0 && r->result != -ENOENT)
		kw_die(key, r->result);
	return r->result < 0 ? 4 : 0;
}

static int scan(const char *prefix)
{
	struct kv_scan_head head = { 0 };
	struct kv_scan_entry e;
	struct xreq *r = xseg_req_alloc(kw.port);
	uint32_t at;

	do {
		kw_query(kw.seg, r, &kw.log,
			&(struct kv_query){ .kind = KV_SCAN,
				.cursor = head.next,
				.key_bytes = (uint32_t)strlen(prefix) },
			prefix, kw.page, 16);
		if (kw_call(r) < 0)
			kw_die("scan", r->result);
		xseg_req_read_data(kw.seg, r, 0, &head, sizeof(head));
		at = sizeof(head);
		for (uint32_t i = 0; i < head.nr; i++) {
			xseg_req_read_data(kw.seg, r, at, &e, sizeof(e));
			xseg_req_read_data(kw.seg, r, at + (uint32_t)sizeof(e), record,
				e.key_bytes);
			printf("%.*s %" PRIu64 "\n", (int)e.key_bytes, record, e.value_bytes);
			at += xrecord_round((uint32_t)sizeof(e) + e.key_bytes, 8);
		}
	} while (head.next);
	return 0;
}

static int flush(void)
{
	struct xreq *r = xseg_req_alloc(kw.port);

	r->op = XSEG_OP_FLUSH;
	r->volume = kw.log.id;
	if (kw_call(r) < 0)
		kw_die("flush", r->result);
	return 0;
}

static int command(int argc, char **argv)
{
	static const struct {
		const char *word;
		uint8_t kind, condition;
		bool value, amount, expiry;
	} words[] = {
		{ "put", KV_PUT, KV_ALWAYS, true, false, false },
		{ "add", KV_PUT, KV_IF_ABSENT, true, false, false },
		{ "replace", KV_PUT, KV_IF_PRESENT, true, false, false },
		{ "delete", KV_DELETE, KV_ALWAYS, false, false, false },
		{ "append", KV_APPEND, KV_ALWAYS, true, false, false },
		{ "prepend", KV_PREPEND, KV_ALWAYS, true, false, false },
		{ "incr", KV_INCR, KV_ALWAYS, false, true, false },
		{ "decr", KV_DECR, KV_ALWAYS, false, true, false },
		{ "touch", KV_TOUCH, KV_ALWAYS, false, false, true },
	};

	if (!strcmp(argv[0], "flush"))
		return flush();
	if (!strcmp(argv[0], "scan"))
		return scan(argc > 1 ? argv[1] : "");
	if (argc > 1 && !strcmp(argv[0], "get"))
		return show(argv[1]);
	if (argc > 1 && !strcmp(argv[0], "exists"))
		return exists(argv[1]);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && argc > 1; i++) {
		const char *arg = argc > 2 ? argv[2] : "";
		struct kw_change c = { .kind = words[i].kind, .condition = words[i].condition,
			.key = argv[1], .key_bytes = (uint32_t)strlen(argv[1]) };

		if (strcmp(argv[0], words[i].word))
			continue;
		c.value = words[i].value ? arg : NULL;
		c.value_bytes = words[i].value ? (uint32_t)strlen(arg) : 0;
		c.amount = words[i].amount ? strtoull(arg, NULL, 10) : 0;
		c.expiry = (uint32_t)strtoul(words[i].expiry ? arg : argc > 3 ? argv[3] : "0", NULL,
			10);
		return tell_change(&c, false);
	}
	fprintf(stderr, "kv_load: see the head of tests/tools/kv_load.c\n");
	return 2;
}

/* ---- the load ---- */

static bool is_counter(uint32_t key)
{
	return key % 3 == 0;
}

static uint32_t key_name(uint32_t key, char name[32])
{
	return (uint32_t)snprintf(name, 32, "key-%u%s", key, is_counter(key) ? "-n" : "");
}

/* Of that key and count: a number, or a text of about so many bytes. */
static uint32_t value_make(uint32_t key, uint64_t count, uint32_t bytes, uint8_t *to)
{
	uint64_t x = (uint64_t)key << 32 ^ count * 0x9e3779b97f4a7c15ull;
	uint32_t n;

	if (is_counter(key))
		return (uint32_t)snprintf((char *)to, RECORD_MAX, "%" PRIu64, count);
	n = (uint32_t)snprintf((char *)to, RECORD_MAX, "%u:%" PRIu64 ":", key, count);
	bytes = bytes / 2 + (uint32_t)((x >> 7) % (bytes + 1));
	if (x % 16 == 0)			/* its pages are not copied by kvd */
		bytes += ALOG_PAGED_LEAST;
	for (; n < bytes; n++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		to[n] = (uint8_t)(x >> 56);
	}
	return n;
}

static void tell_wrong(uint32_t key, uint64_t want, const char *what, int64_t have)
{
	if (wrong++ < 10)
		printf("key %u, which is to have %" PRIu64 ": %s (%" PRId64 ")\n", key, want, what,
			have);
}

static void check_value(uint32_t key, uint64_t count, uint32_t bytes, int rc,
	const struct kw_value *v)
{
	uint32_t n;

	if (rc == -ENOENT && !count)
		return;
	if (rc || !count) {
		tell_wrong(key, count, rc ? "the get failed" : "it is there", rc);
		return;
	}
	n = value_make(key, count, bytes, value);
	if (n != v->value_bytes || memcmp(value, v->value, n) != 0)
		tell_wrong(key, count, "another value",
			is_counter(key) ? strtoll((const char *)v->value, NULL, 10) : -1);
}

static void send_get(struct slot *s, uint32_t flags, uint64_t zone, uint32_t place)
{
	char name[32];
	uint32_t n = key_name(s->key, name);

	s->act = flags ? ACT_LOOK : ACT_GET;
	kw_query(kw.seg, s->r, &kw.log,
		&(struct kv_query){ .kind = KV_GET,
			.flags = (uint8_t)flags,
			.key_bytes = n,
			.zone = zone,
			.place = place },
		name, s->page, s->pages);
	kw_submit(s->r);
}

static void send_change(struct slot *s, struct key *k, uint32_t bytes, bool fua)
{
	char name[32];
	struct kw_change c = { .kind = KV_PUT, .key = name, .value = value };

	c.key_bytes = key_name(s->key, name);
	s->act = !k->count ? ACT_ADD : xorshift_below(&rng, 8) == 0 ? ACT_DELETE
			 : is_counter(s->key) ? ACT_INCR : ACT_PUT;
	s->count = s->act == ACT_DELETE ? 0 : k->count + 1 + xorshift_below(&rng, 5);
	if (s->act == ACT_ADD)
		c.condition = KV_IF_ABSENT;
	if (s->act == ACT_INCR) {
		c.kind = KV_INCR;
		c.amount = s->count - k->count;
	} else if (s->act == ACT_DELETE) {
		c.kind = KV_DELETE;
	} else {
		c.value_bytes = value_make(s->key, s->count, bytes, value);
	}
	if (!kw_batch(kw.seg, s->r, &kw.log, &c, 1, fua && xorshift_below(&rng, 4) == 0, s->page,
		    KW_SLOT_PAGES))
		kw_die("value", EFBIG);
	kw_submit(s->r);
}

static void begin_one(struct slot *s, struct key *keys, uint32_t nr, uint32_t bytes, bool fua)
{
	do
		s->key = xorshift_below(&rng, nr);
	while (keys[s->key].out);
	keys[s->key].out = true;
	s->pages = 1 + xorshift_below(&rng, 2);
	if (xorshift_below(&rng, 10) < 6)
		send_get(s, 0, 0, 0);
	else
		send_change(s, &keys[s->key], bytes, fua);
}

static void end_change(struct slot *s, struct key *k)
{
	struct kw_change c = { .result = 0 };

	if (s->r->result == -ENOSPC)
		return;				/* not done */
	if (s->r->result >= 0)
		kw_outcomes(kw.seg, s->r, &c, 1);
	if (s->r->result < 0 || c.result)
		tell_wrong(s->key, s->count, "a change failed",
			s->r->result < 0 ? s->r->result : c.result);
	else if (s->act == ACT_INCR && c.number != s->count)
		tell_wrong(s->key, s->count, "INCR says another number", (int64_t)c.number);
	k->count = s->count;
}

/* False: it is asked again. */
static bool end_get(struct slot *s, const struct key *k, uint32_t bytes)
{
	struct kw_value v = { .copy = record };
	char name[32];
	uint32_t n = key_name(s->key, name), place = 0, need = 0;
	uint64_t zone = 0;
	int rc = kw_got(kw.seg, s->r, &kw.log, name, n, &v, &zone, &place, &need);

	if (rc == -EMSGSIZE || (rc == -EBADMSG && s->act == ACT_GET)) {
		s->pages = rc == -EMSGSIZE && need <= ANSWER_MAX ? need : s->pages;
		send_get(s, rc == -EBADMSG || s->act == ACT_LOOK ? KV_LOOK : 0, zone, place);
		return false;
	}
	check_value(s->key, k->count, bytes, rc, &v);
	return true;
}

static void run(struct key *keys, uint32_t nr, uint32_t seconds, uint32_t bytes, bool fua)
{
	static struct slot slot[DEPTH];
	uint64_t end_ns = now_ns() + seconds * SECOND;
	uint32_t out = 0;

	for (uint32_t i = 0; i < DEPTH && i < nr / 2; i++, out++) {
		slot[i].r = xseg_req_alloc(kw.port);
		slot[i].page = kw_slot(i);
		slot[i].r->cookie = &slot[i];
		begin_one(&slot[i], keys, nr, bytes, fua);
	}
	while (out) {
		struct slot *s = kw_wait()->cookie;
		struct key *k = &keys[s->key];

		if (s->act == ACT_GET || s->act == ACT_LOOK) {
			if (!end_get(s, k, bytes))
				continue;
		} else {
			end_change(s, k);
		}
		k->out = false;
		if (++ops % DEPTH == 0)
			rest_in_short(REST_US);
		if (now_ns() < end_ns)
			begin_one(s, keys, nr, bytes, fua);
		else
			out--;
	}
}

static void verify(const struct key *keys, uint32_t nr, uint32_t bytes)
{
	char name[32];

	for (uint32_t i = 0; i < nr; i++) {
		struct kw_value v;
		int rc;

		key_name(i, name);
		rc = get_one(name, &v);
		check_value(i, keys[i].count, bytes, rc, &v);
		ops++;
	}
}

static int load(int argc, char **argv)
{
	bool only_verify = !strcmp(argv[0], "verify");
	uint32_t nr = 0, bytes = 0, seconds = 0;
	const char *state = argv[only_verify ? 1 : 4];
	FILE *f = fopen(state, "r");
	struct key *keys;

	if (!only_verify) {
		nr = (uint32_t)strtoul(argv[1], NULL, 10);
		seconds = (uint32_t)strtoul(argv[2], NULL, 10);
		bytes = (uint32_t)strtoul(argv[3], NULL, 10);
	} else if (!f || fscanf(f, "%u %u", &nr, &bytes) != 2) {
		kw_die(state, EINVAL);
	}
	if (f && !only_verify && fscanf(f, "%*u %*u") != 0)
		kw_die(state, EINVAL);
	keys = calloc(nr, sizeof(*keys));
	if (!keys)
		kw_die("keys", ENOMEM);
	for (uint32_t i = 0; f && i < nr; i++)
		if (fscanf(f, "%" SCNu64, &keys[i].count) != 1)
			kw_die(state, EINVAL);
	if (f)
		fclose(f);
	rng ^= now_ns() * 2654435761u;
	if (only_verify)
		verify(keys, nr, bytes);
	else
		run(keys, nr, seconds, bytes, argc > 5);
	f = only_verify ? NULL : fopen(state, "w");
	if (f) {
		fprintf(f, "%u %u\n", nr, bytes);
		for (uint32_t i = 0; i < nr; i++)
			fprintf(f, "%" PRIu64 "\n", keys[i].count);
		fclose(f);
	}
	printf("ops=%" PRIu64 " wrong=%" PRIu64 "\n", ops, wrong);
	free(keys);
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	int rc;

	if (argc < 4) {
		fprintf(stderr, "kv_load: see the head of tests/tools/kv_load.c\n");
		return 2;
	}
	attach(argv[1], argv[2]);
	if ((!strcmp(argv[3], "load") && argc >= 8) || (!strcmp(argv[3], "verify") && argc == 5))
		rc = load(argc - 3, argv + 3);
	else
		rc = command(argc - 3, argv + 3);
	kw_detach();
	return rc;
}
