/* versions - see versions.h. */
#include "tests/sim/kv/versions.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rng.h"
#include "xseg/kv_wire.h"

#define PATH_MAX_STATES 256u
#define OTHERS		64u
#define TRIES		10000u			/* for another path to a state */

/* What a change asks of the state that it meets. */
enum need { NEED_NOTHING, NEED_PRESENT, NEED_ABSENT };

static const char *complain(struct versions *v, uint32_t key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static const char *complain(struct versions *v, uint32_t key, const char *fmt, ...)
{
	int n = snprintf(v->error, sizeof(v->error), "key %u: ", key);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->error + n, sizeof(v->error) - (size_t)n, fmt, ap);
	va_end(ap);
	return v->error;
}

/* ---- values ---- */

static struct vbytes bytes_of(const void *from, uint32_t bytes)
{
	struct vbytes b = { .at = malloc(bytes + 1), .bytes = bytes };

	assert(b.at);
	if (bytes)
		memcpy(b.at, from, bytes);
	return b;
}

uint64_t versions_hash(const void *value, uint32_t bytes)
{
	const uint8_t *at = value;
	uint64_t h = bytes;

	for (uint32_t i = 0; i < bytes; i++)
		h = (h ^ at[i]) * 0x100000001b3ull;
	return rng_mix(h);
}

static bool number_of(const struct vbytes *b, uint64_t *n)
{
	*n = 0;
	if (!b->bytes || b->bytes > 20)
		return false;
	for (uint32_t i = 0; i < b->bytes; i++) {
		if (b->at[i] < '0' || b->at[i] > '9')
			return false;
		*n = *n * 10 + (b->at[i] - '0');
	}
	return true;
}

static struct vbytes join(const struct vbytes *a, const struct vbytes *b)
{
	struct vbytes to = { .at = malloc(a->bytes + b->bytes + 1), .bytes = a->bytes + b->bytes };

	assert(to.at);
	memcpy(to.at, a->at, a->bytes);
	memcpy(to.at + a->bytes, b->at, b->bytes);
	return to;
}

static struct vbytes count(const struct vbytes *old, const struct vchange *c, uint64_t *n)
{
	char text[24];

	if (!number_of(old, n))
		return (struct vbytes){ .at = NULL };
	*n = c->kind == KV_INCR ? *n + c->amount : *n > c->amount ? *n - c->amount : 0;
	return bytes_of(text, (uint32_t)snprintf(text, sizeof(text), "%" PRIu64, *n));
}

/* ---- changes ---- */

static enum need need_of(const struct vchange *c)
{
	if (c->kind == KV_DELETE_ALL)
		return NEED_NOTHING;
	if (c->condition == KV_IF_ABSENT)
		return NEED_ABSENT;
	return c->condition != KV_ALWAYS || c->kind != KV_PUT ? NEED_PRESENT : NEED_NOTHING;
}

static bool may_be_absent(const struct versions *v, const struct vstate *st, uint32_t latest)
{
	return !st->present || v->evicts || (st->expiry && st->expiry <= latest);
}

/* V4. `opened`: when the log was opened last, before the end of what is looked at. */
static bool may_be_present(const struct versions *v, const struct vstate *st, uint64_t begin,
	uint64_t opened)
{
	return st->present && (st->damaged || begin <= st->gone_at ||
				      (v->evicts && st->gone_from < opened));
}

/* Whether it could be done to that state. */
static bool can_do(const struct versions *v, const struct vchange *c, const struct vstate *st)
{
	uint64_t n;

	switch (need_of(c)) {
	case NEED_ABSENT:
		return may_be_absent(v, st, v->latest);
	case NEED_PRESENT:
		if (!may_be_present(v, st, c->begin, c->opened) || (c->condition == KV_IF_VERSION &&
				st->version && st->version != c->if_version))
			return false;
		if (st->large && c->kind >= KV_APPEND && c->kind <= KV_DECR)
			return false;
		return (c->kind != KV_INCR && c->kind != KV_DECR) || number_of(&st->value, &n);
	default:
		return true;
	}
}

/* What it makes of the state. Its value is the caller's. */
static struct vstate make(const struct vchange *c, const struct vstate *st, uint64_t *number)
{
	struct vstate to = { .version = c->version,
		.present = c->kind != KV_DELETE && c->kind != KV_DELETE_ALL,
		.promised = c->promised, .expiry = st->expiry, .client = st->client,
		.large = c->kind == KV_PUT ? c->large : c->kind == KV_TOUCH && st->large,
		.gone_at = VERSION_NONE, .batch = c->batch };

	switch (c->kind) {
	case KV_PUT:
		to.value = bytes_of(c->value.at, c->value.bytes);
		to.expiry = c->expiry;
		to.client = c->client;
		break;
	case KV_APPEND:
		to.value = join(&st->value, &c->value);
		break;
	case KV_PREPEND:
		to.value = join(&c->value, &st->value);
		break;
	case KV_INCR:
	case KV_DECR:
		to.value = count(&st->value, c, number);
		break;
	case KV_TOUCH:
		to.value = bytes_of(st->value.at, st->value.bytes);
		to.expiry = c->expiry;
		break;
	default:
		break;
	}
	return to;
}

/* ---- lists ---- */

static void *grow(void *list, uint32_t nr, uint32_t *room, size_t size)
{
	if (nr < *room)
		return list;
	*room = *room ? *room * 2 : 8;
	list = realloc(list, *room * size);
	assert(list);
	return list;
}

static void add_state(struct vkey *k, const struct vstate *st)
{
	k->state = grow(k->state, k->nr_states, &k->room_states, sizeof(*k->state));
	k->state[k->nr_states++] = *st;
}

/* What is older than the last promised state cannot show any more. */
static void trim(struct vkey *k)
{
	uint32_t keep = k->nr_states - 1;

	while (keep && !k->state[keep].promised)
		keep--;
	for (uint32_t i = 0; i < keep; i++)
		free(k->state[i].value.at);
	memmove(k->state, k->state + keep, (k->nr_states - keep) * sizeof(*k->state));
	k->nr_states -= keep;
}

/* All from that one on. */
static void forget_states(struct vkey *k, uint32_t from)
{
	for (uint32_t i = from; i < k->nr_states; i++)
		free(k->state[i].value.at);
	k->nr_states = from;
}

static void forget_changes(struct vkey *k)
{
	for (uint32_t i = 0; i < k->nr_changes; i++)
		free(k->change[i].value.at);
	k->nr_changes = k->nr_seen = 0;
}

void versions_init(struct versions *v)
{
	struct vstate nothing = { .promised = true, .gone_at = VERSION_NONE };

	memset(v, 0, sizeof(*v));
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		add_state(&v->key[i], &nothing);
}

void versions_fini(struct versions *v)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		struct vkey *k = &v->key[i];

		forget_changes(k);
		for (uint32_t n = 0; n < k->nr_states; n++)
			free(k->state[n].value.at);
		free(k->state);
		free(k->change);
		free(k->seen);
	}
}

const struct vstate *versions_now(const struct versions *v, uint32_t key)
{
	return &v->key[key].state[v->key[key].nr_states - 1];
}

/* ---- what is told ---- */

uint64_t versions_batch(struct versions *v)
{
	struct vbatch *b = &v->batch[++v->next_batch % VERSION_BATCHES];

	*b = (struct vbatch){ .id = v->next_batch, .puts = true };
	return b->id;
}

static struct vbatch *batch_of(struct versions *v, uint64_t id)
{
	struct vbatch *b = &v->batch[id % VERSION_BATCHES];

	return id && b->id == id ? b : NULL;
}

uint32_t versions_begin(struct versions *v, uint32_t key, const struct vchange *change)
{
	struct vkey *k = &v->key[key];
	struct vbatch *b = batch_of(v, change->batch);
	struct vchange *c;

	if (b) {
		b->key[b->nr++] = key;
		b->puts &= change->kind == KV_PUT;
	}
	k->change = grow(k->change, k->nr_changes, &k->room_changes, sizeof(*k->change));
	c = &k->change[k->nr_changes++];
	*c = *change;
	c->value = bytes_of(change->value.at, change->value.bytes);
	c->begin = ++v->now;
	c->end = VERSION_NONE;
	c->state = VCHANGE_OUT;
	k->quiet_since = VERSION_NONE;
	return k->nr_changes - 1;
}

void versions_see(struct versions *v, uint32_t key, const struct vseen *seen)
{
	struct vkey *k = &v->key[key];

	k->seen = grow(k->seen, k->nr_seen, &k->room_seen, sizeof(*k->seen));
	k->seen[k->nr_seen] = *seen;
	k->seen[k->nr_seen].latest = v->latest;
	k->seen[k->nr_seen].opened = v->opened;
	k->seen[k->nr_seen++].end = ++v->now;
}

void versions_end(struct versions *v, uint32_t key, uint32_t change, int result, uint64_t version,
	uint64_t number)
{
	struct vchange *c = &v->key[key].change[change];
	struct vseen seen = { .begin = c->begin };
	struct vbatch *b = batch_of(v, c->batch);

	for (uint32_t i = 0; b && i < b->nr; i++)
		if (b->key[i] == key)
			b->version[i] = result ? 0 : version;
	c->state = result ? VCHANGE_NOT_DONE : VCHANGE_DONE;
	c->version = version;
	c->number = number;
	c->opened = v->opened;
	c->end = ++v->now;
	if (result == -EEXIST && c->condition == KV_IF_VERSION) {
		seen.what = VSEEN_OTHER_VERSION;
		seen.version = c->if_version;
	} else if (result == -EEXIST) {
		seen.what = VSEEN_PRESENT;
	} else if (result == -ENOENT) {
		seen.what = VSEEN_ABSENT;
	} else if (result == -EINVAL) {
		seen.what = VSEEN_NO_NUMBER;
	} else {
		return;
	}
	versions_see(v, key, &seen);
}

void versions_promise(struct versions *v, uint64_t begin)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		struct vkey *k = &v->key[i];

		for (uint32_t n = 0; n < k->nr_changes; n++)
			k->change[n].promised |= k->change[n].end < begin;
		if (k->quiet_since < begin)
			k->state[k->nr_states - 1].promised = true;
	}
}

void versions_promise_change(struct versions *v, uint32_t key, uint32_t change)
{
	v->key[key].change[change].promised = true;
}

/* ---- the check ---- */

static int by_version(const void *a, const void *b)
{
	const struct vchange *x = a, *y = b;

	return x->version < y->version ? -1 : x->version > y->version;
}

/* V1 */
static const char *check_order(struct versions *v, uint32_t key, uint32_t nr)
{
	const struct vkey *k = &v->key[key];
	uint64_t last = versions_now(v, key)->version;

	for (uint32_t i = 0; i < nr; i++) {
		const struct vchange *c = &k->change[i];

		if (c->version <= last && c->kind != KV_TOUCH)
			return complain(v, key, "a change has the version %" PRIu64
				", and the one before it %" PRIu64, c->version, last);
		for (uint32_t n = i + 1; n < nr; n++)
			if (k->change[n].end < c->begin)
				return complain(v, key, "version %" PRIu64 " was answered before "
					"version %" PRIu64 " was sent", k->change[n].version,
					c->version);
		last = c->version;
	}
	return NULL;
}

static bool fits(const struct versions *v, const struct vseen *s, const struct vstate *st)
{
	bool present = may_be_present(v, st, s->begin, s->opened);
	uint64_t n;

	switch (s->what) {
	case VSEEN_VALUE:
		return present && st->version == s->version &&
		       st->expiry == s->expiry && st->client == s->client &&
		       versions_hash(st->value.at, st->value.bytes) == s->hash;
	case VSEEN_PRESENT:
		return present;
	case VSEEN_OTHER_VERSION:
		return present && st->version != s->version;
	case VSEEN_NO_NUMBER:
		return present && (st->large || !number_of(&st->value, &n));
	default:
		return may_be_absent(v, st, s->latest);
	}
}

static const char *what_was_seen(const struct vseen *s)
{
	static const char *const names[] = { [VSEEN_VALUE] = "a value",
		[VSEEN_PRESENT] = "that it is there", [VSEEN_ABSENT] = "that it is not there",
		[VSEEN_OTHER_VERSION] = "another version", [VSEEN_NO_NUMBER] = "no number" };

	return names[s->what];
}

/* V4. An older answer counts no more if the log was opened since it was asked for. */
static void note_gone(const struct versions *v, struct vstate *st, const struct vseen *s)
{
	bool counts = !v->evicts || st->gone_from >= s->opened;

	if (!st->present || (s->end >= st->gone_at && counts))
		return;
	st->gone_at = s->end;
	st->gone_from = s->begin;
}

/* V3, V4. `at` is where each one was seen: the state, by its number; state 0 was there before. */
static const char *check_seen(struct versions *v, uint32_t key, uint32_t first, uint32_t nr)
{
	struct vkey *k = &v->key[key];
	uint32_t *at = calloc(k->nr_seen + 1, sizeof(*at)), i, n, from;
	const char *error = NULL;

	assert(at);
	for (i = 0; i < k->nr_seen && !error; i++) {
		struct vseen *s = &k->seen[i];

		for (n = from = 0; n < i; n++)
			if (k->seen[n].end < s->begin && at[n] > from)
				from = at[n];
		/* the next state had not to be there yet, and this one could be */
		for (n = from; n <= nr; n++)
			if ((n == nr || k->change[n].end > s->begin) &&
				(n == 0 || k->change[n - 1].begin < s->end) &&
				fits(v, s, &k->state[first + n]))
				break;
		at[i] = n;
		if (n > nr)
			error = complain(v, key,
				"an answer says %s (version %" PRIu64 "), from %" PRIu64
				" to %" PRIu64 ", which it was not; %u changes, the last "
				"version is %" PRIu64,
				what_was_seen(s), s->version, s->begin, s->end, nr,
				k->state[first + nr].version);
		else if (s->what == VSEEN_ABSENT)
			note_gone(v, &k->state[first + n], s);
	}
	free(at);
	return error;
}

/* V2 */
static const char *apply_all(struct versions *v, uint32_t key, uint32_t nr)
{
	struct vkey *k = &v->key[key];

	for (uint32_t i = 0; i < nr; i++) {
		const struct vchange *c = &k->change[i];
		uint64_t number = 0;
		struct vstate st = k->state[k->nr_states - 1];

		if (!can_do(v, c, &st))
			return complain(v, key, "a change (kind %u, condition %u) was done as "
				"version %" PRIu64 " to version %" PRIu64 ", and could not be",
				c->kind, c->condition, c->version, st.version);
		st = make(c, &st, &number);
		add_state(k, &st);
		if (number != c->number)
			return complain(v, key, "version %" PRIu64 " is said to be %" PRIu64
				", and is %" PRIu64, c->version, c->number, number);
	}
	return NULL;
}

static int by_begin(const void *a, const void *b)
{
	const struct vseen *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Those that were done come first, in their order. */
static uint32_t sort(struct vkey *k)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < k->nr_changes; i++)
		if (k->change[i].state == VCHANGE_DONE) {
			struct vchange c = k->change[i];

			k->change[i] = k->change[nr];
			k->change[nr++] = c;
		}
	if (nr)
		qsort(k->change, nr, sizeof(*k->change), by_version);
	if (k->nr_seen)
		qsort(k->seen, k->nr_seen, sizeof(*k->seen), by_begin);
	return nr;
}

const char *versions_check(struct versions *v, uint32_t key)
{
	struct vkey *k = &v->key[key];
	uint32_t first = k->nr_states - 1, nr;
	const char *error;

	if (k->out)
		return NULL;
	nr = sort(k);
	error = check_order(v, key, nr);
	if (!error)
		error = apply_all(v, key, nr);
	if (!error)
		error = check_seen(v, key, first, nr);
	if (error)
		return error;
	forget_changes(k);
	trim(k);
	if (k->quiet_since == VERSION_NONE)
		k->quiet_since = v->now;
	return NULL;
}

/* ---- after a loss of power, or the death of clients ---- */

void versions_doubt(struct versions *v, uint32_t key, uint32_t change)
{
	struct vchange *c = &v->key[key].change[change];

	c->state = VCHANGE_DEAD;
	c->opened = v->opened;
}

void versions_clients_died(struct versions *v)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		struct vkey *k = &v->key[i];

		for (uint32_t n = 0; n < k->nr_changes; n++)
			if (k->change[n].state == VCHANGE_OUT)
				versions_doubt(v, i, n);
		k->out = 0;
	}
}

/* A search for changes, in some order, that make what is seen. */
struct search {
	struct versions *v;
	struct vkey *k;
	const struct vseen *seen;
	uint32_t done, dead, must;		/* how many; so many of the done ones, at least */
	bool power_lost;
	struct vstate path[PATH_MAX_STATES];	/* behind the newest settled state */
	uint32_t depth;
	/* of dead clients: whatever may have been, as more than one path may lead there */
	struct vstate other[OTHERS];
	uint32_t nr_others;
	bool found;
	/* is_of_another(): a path whose last change is not of this batch */
	uint64_t not_of;
	uint32_t tries;
};

static bool is_it(const struct search *q, const struct vstate *st)
{
	if (q->not_of && q->not_of == st->batch)
		return false;
	if (q->seen->what == VSEEN_ABSENT)
		return may_be_absent(q->v, st, q->v->latest);
	return st->present && (!st->version || st->version == q->seen->version) &&
	       st->expiry == q->seen->expiry && st->client == q->seen->client &&
	       versions_hash(st->value.at, st->value.bytes) == q->seen->hash;
}

static bool search(struct search *q, const struct vstate *st, uint32_t next, uint32_t used);

static void note_other(struct search *q, const struct vstate *st)
{
	if (q->power_lost || !q->dead || q->nr_others == OTHERS || q->not_of)
		return;
	q->other[q->nr_others] = *st;
	q->other[q->nr_others].promised = false;	/* the others are in no order */
	q->other[q->nr_others++].value = bytes_of(st->value.at, st->value.bytes);
}

static bool try_change(struct search *q, const struct vstate *st, const struct vchange *c,
	uint32_t next, uint32_t used)
{
	uint64_t number;
	struct vstate *to = &q->path[q->depth];

	if (!can_do(q->v, c, st) || (q->not_of && ++q->tries > TRIES))
		return false;
	assert(q->depth < PATH_MAX_STATES);
	*to = make(c, st, &number);
	note_other(q, to);
	q->depth++;
	if (search(q, to, next, used))
		return true;
	q->depth--;
	free(to->value.at);
	return false;
}

/* `next` of those that were done, and the dead ones in `used`, have been. */
static bool search(struct search *q, const struct vstate *st, uint32_t next, uint32_t used)
{
	const struct vchange *c = q->k->change;

	if (next >= q->must && (q->power_lost || next == q->done) && is_it(q, st)) {
		q->found = true;
		return q->power_lost || !q->dead;
	}
	if (q->nr_others == OTHERS && q->found)
		return false;
	if (next < q->done && try_change(q, st, &c[next], next + 1, used))
		return true;
	for (uint32_t i = 0; i < q->dead; i++)
		if (!(used & 1u << i) &&
			try_change(q, st, &c[q->done + i], next, used | 1u << i))
			return true;
	return false;
}

/* Of the states that may have been, the one that is. */
static void add_seen(struct vkey *k, const struct search *q)
{
	struct vstate is = { .gone_at = VERSION_NONE };

	for (uint32_t i = k->nr_states; i-- && !is.value.at;)
		if (is_it(q, &k->state[i])) {
			is = k->state[i];
			is.value = bytes_of(is.value.at, is.value.bytes);
		}
	is.promised = false;
	add_state(k, &is);
}

/* The dead ones behind those that were done. */
static uint32_t sort_dead(struct vkey *k, uint32_t nr)
{
	uint32_t dead = 0;

	for (uint32_t i = nr; i < k->nr_changes; i++)
		if (k->change[i].state == VCHANGE_DEAD && dead < 16) {
			struct vchange c = k->change[i];

			k->change[i] = k->change[nr + dead];
			k->change[nr + dead++] = c;
			k->change[nr + dead - 1].version = 0;
		}
	return dead;
}

/* One of the key's states looks as what is seen, and is not of this batch. */
static bool looks_as_another(const struct search *q)
{
	for (uint32_t i = 0; i < q->k->nr_states; i++)
		if (is_it(q, &q->k->state[i]))
			return true;
	return false;
}

/* The batch of the state that was found. `settled`: if no change made it. */
static uint64_t batch_found(const struct search *q, const struct vstate *settled)
{
	if (q->depth)
		return q->path[q->depth - 1].batch;
	for (uint32_t i = q->nr_others; i--;)
		if (is_it(q, &q->other[i]))
			return q->other[i].batch;
	return settled->batch;
}

/* Whether another change than that of the batch may have made what is seen: a counter that is
 * counted on by 0 looks as it did before. If that is not found out, it may have been another. */
static bool is_of_another(const struct search *found, uint64_t batch)
{
	struct search q = { .v = found->v, .k = found->k, .seen = found->seen, .not_of = batch,
		.power_lost = found->power_lost, .done = found->done, .dead = found->dead,
		.must = found->must };

	if (!batch || looks_as_another(&q))
		return batch != 0;
	search(&q, &q.k->state[q.k->nr_states - 1], 0, 0);
	for (uint32_t i = 0; i < q.depth; i++)
		free(q.path[i].value.at);
	return q.found || q.tries > TRIES;
}

const char *versions_resolve(struct versions *v, uint32_t key, const struct vseen *seen,
	bool power_lost)
{
	struct vkey *k = &v->key[key];
	struct search q = { .v = v, .k = k, .seen = seen, .power_lost = power_lost };
	uint32_t from = k->nr_states - 1;
	struct vstate *now;
	bool another;

	q.done = sort(k);
	q.dead = sort_dead(k, q.done);
	for (uint32_t i = 0; i < q.done; i++)
		if (!power_lost || k->change[i].promised)
			q.must = i + 1;
	while (power_lost && from && !k->state[from].promised)
		from--;
	/* older ones only as they were */
	for (; from + 1 < k->nr_states && !q.must; from++)
		if (is_it(&q, &k->state[from]))
			break;
	if (q.must || from + 1 == k->nr_states)
		search(&q, versions_now(v, key), 0, 0);
	else
		q.found = true;
	if (!q.found)
		return complain(v, key,
			"after %s it shows %s (version %" PRIu64 "), which it cannot be; the last "
			"settled version is %" PRIu64 "%s, of %u states, and %u changes were "
			"answered since, %u of them for sure; %u were out",
			power_lost ? "a loss of power" : "the death of its clients",
			what_was_seen(seen), seen->version, versions_now(v, key)->version,
			versions_now(v, key)->promised ? " (promised)" : "", k->nr_states, q.done,
			q.must, q.dead);
	another = is_of_another(&q, batch_found(&q, &k->state[from]));
	if (!q.must && from + 1 < k->nr_states)
		forget_states(k, from + 1);
	for (uint32_t i = 0; i < q.nr_others; i++)
		add_state(k, &q.other[i]);
	for (uint32_t i = 0; i < q.depth; i++)
		add_state(k, &q.path[i]);
	if (q.nr_others)
		add_seen(k, &q);
	now = &k->state[k->nr_states - 1];
	if (seen->what == VSEEN_VALUE)
		now->version = seen->version;
	else
		now->present = false;	/* it may have expired, which it stays */
	now->promised |= power_lost;
	if (another)
		now->batch = 0;
	forget_changes(k);
	trim(k);
	k->quiet_since = v->now;
	return NULL;
}

void versions_damage(struct versions *v, uint32_t key)
{
	struct vkey *k = &v->key[key];

	k->state[k->nr_states - 1].damaged = true;
}

void versions_renew(struct versions *v, uint32_t key, const void *value, uint32_t bytes,
	uint64_t version)
{
	struct vstate is = { .version = version, .present = true, .promised = true,
		.gone_at = VERSION_NONE, .value = bytes_of(value, bytes) };
	struct vkey *k = &v->key[key];

	forget_changes(k);
	forget_states(k, 0);
	add_state(k, &is);
	k->quiet_since = v->now;
}

/* Of which one the key shows the change of the batch: its versions, if they are known. */
static bool learn_batch(struct versions *v, struct vbatch *b)
{
	for (uint32_t i = 0; i < b->nr; i++) {
		const struct vstate *st = versions_now(v, b->key[i]);

		if (b->version[i])
			return true;
		if (!b->puts || st->batch != b->id || !st->present)
			continue;
		/* sequences within a batch are next to each other */
		for (uint32_t n = 0; n < b->nr; n++)
			b->version[n] = st->version + n - i;
		return true;
	}
	return false;
}

const char *versions_check_batches(struct versions *v)
{
	for (uint32_t i = 0; i < VERSION_BATCHES; i++) {
		struct vbatch *b = &v->batch[i];
		uint32_t there = VERSION_KEYS, gone = VERSION_KEYS;

		if (!b->id || !learn_batch(v, b))
			continue;
		for (uint32_t n = 0; n < b->nr; n++) {
			const struct vstate *st = versions_now(v, b->key[n]);

			/* a later change that is there says nothing of the batch */
			if (!b->version[n] || !st->present || !st->version)
				continue;
			if (st->version == b->version[n] && st->batch == b->id)
				there = b->key[n];	/* a TOUCH keeps the version */
			else if (st->version < b->version[n])
				gone = b->key[n];
		}
		if (there < VERSION_KEYS && gone < VERSION_KEYS)
			return complain(v, gone, "half of a batch is there: key %u is at version %"
				PRIu64 ", and this one at %" PRIu64, there,
				versions_now(v, there)->version, versions_now(v, gone)->version);
	}
	memset(v->batch, 0, sizeof(v->batch));
	return NULL;
}
