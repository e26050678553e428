/* values - clients of kvd: they put, get, delete and scan values, and judge the answers.
 *
 * They are a peer of their own, with two ports. What is to be sent is in the script; its
 * particulars follow from the seed and the item's number. versions.c says which answers may be. The
 * date that kvd is told jumps, forwards and backwards.
 *
 * Contract: steps of the scheduler. Requests go to NODE_KVD.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

static char key_name[VERSION_KEYS][KEY_ROOM];
static uint32_t key_bytes[VERSION_KEYS];

/* One in eight is long. */
static void name_keys(void)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		memset(key_name[i], 'a' + (int)i, KEY_ROOM);
		key_bytes[i] = i % 8 == 7 ? KEY_ROOM - i : 2 + i % 5;
		key_name[i][0] = 'k';
	}
}

uint32_t values_date(const struct sim *s)
{
	struct values *w = s->values;
	uint32_t date = (uint32_t)(DATE + (int64_t)(s->now / SEC) + w->skew);

	if (date > w->v.latest)
		w->v.latest = date;
	return date;
}

const char *values_name(const struct sim *s)
{
	static char name[32];

	snprintf(name, sizeof(name), "values-%u", s->values->incarnation);
	return name;
}

const char *value_key(uint32_t key, uint32_t *bytes)
{
	*bytes = key_bytes[key];
	return key_name[key];
}

static void complain(struct sim *s, const char *error)
{
	if (error)
		sim_fail(s, "values: %s", error);
}

/* ---- requests ---- */

static struct vio *free_io(const struct sim *s)
{
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		if (!s->values->io[i].r)
			return &s->values->io[i];
	return NULL;
}

void value_submit(struct sim *s, struct vio *io)
{
	struct values *w = s->values;

	io->r->cookie = io;
	io->r->hash = rng_next(&s->rng);
	if (xseg_req_submit(w->port[io->port], io->r,
		    xseg_peer_find(s->seg, node_name(NODE_KVD))))
		sim_fail(s, "values: a request was not taken");
}

static void take(struct sim *s, struct vio *io, enum value_op op)
{
	struct values *w = s->values;

	io->r = xseg_req_alloc(w->port[io->port]);
	if (!io->r)
		sim_fail(s, "values: a client has no request left: leaked");
	io->op = op;
	io->nr = 0;
	io->issued_ns = s->now;
	io->begin = ++w->v.now;
	io->fua = io->resolves = io->lends = false;
	io->tries = io->flags = 0;
	w->in_flight++;
}

void value_done(struct sim *s, struct vio *io)
{
	struct values *w = s->values;

	xseg_req_free(w->port[io->port], io->r);
	io->r = NULL;
	w->in_flight--;
	for (uint32_t i = 0; i < io->nr; i++) {
		uint32_t key = io->key[i];

		w->v.key[key].out--;
		w->alone[key] = false;
		if (io->op != VALUE_GET && io->op != VALUE_EXISTS)
			w->forgot[key] = ++w->v.now;
		if (!w->unsure[key])
			complain(s, versions_check(&w->v, key));
	}
}

/* The key, or one behind it, of which so much can be out; VERSION_KEYS: there is none. */
static uint32_t usable(const struct sim *s, const struct vio *io, uint32_t key, uint32_t most)
{
	struct values *w = s->values;

	for (uint32_t i = 0; i < VERSION_KEYS; i++, key++) {
		uint32_t k = key % VERSION_KEYS;
		bool twice = false;

		for (uint32_t n = 0; n < io->nr; n++)
			twice |= io->key[n] == k;
		if (!twice && !w->alone[k] && !w->unsure[k] && w->v.key[k].out < most)
			return k;
	}
	return VERSION_KEYS;
}

/* ---- changes ---- */

static bool is_counter(uint32_t key)
{
	return key % 4 == 0;
}

/* Some of what is put expires soon. */
static uint32_t choose_expiry(struct sim *s, struct rng *g)
{
	if (!rng_one_in(g, 6))
		return 0;
	return values_date(s) + (rng_one_in(g, 2) ? rng_range(g, 1, 4) : rng_range(g, 5, 7200));
}

static void choose_value(struct sim *s, struct rng *g, struct vio *io, uint32_t i)
{
	struct kw_change *c = &io->c[i];
	uint32_t room = s->values->value_max / (io->nr + 1) - c->key_bytes - 128, bytes;
	uint64_t word = 0;

	if (room > VALUE_ROOM || room > s->values->value_max)
		room = VALUE_ROOM;
	c->value = io->value[i];
	if (is_counter(io->key[i]) && c->kind == KV_PUT) {
		c->value_bytes = (uint32_t)snprintf((char *)io->value[i], VALUE_ROOM, "%u",
			rng_below(g, 1000));
		return;
	}
	bytes = rng_one_in(g, 12) ? rng_below(g, room)
				  : rng_below(g, rng_one_in(g, 2) ? 4000 : 300);
	bytes = bytes < room ? bytes : room;
	if (c->kind != KV_PUT && bytes > 200)
		bytes = 200;
	for (uint32_t at = 0; at < bytes; at++) {
		if (at % 8 == 0)
			word = rng_next(g);
		io->value[i][at] = (uint8_t)(word >> at % 8 * 8);
	}
	c->value_bytes = bytes;
}

static uint8_t choose_kind(struct rng *g, uint32_t key)
{
	uint32_t dice = rng_below(g, 100);

	if (is_counter(key) && dice < 50)
		return dice < 35 ? KV_INCR : KV_DECR;
	if (dice < 68)
		return KV_PUT;
	if (dice < 84)
		return KV_DELETE;
	return dice < 88 ? KV_APPEND : dice < 92 ? KV_PREPEND : dice < 96 ? KV_INCR : KV_TOUCH;
}

static void choose_condition(struct sim *s, struct rng *g, struct kw_change *c, uint32_t key)
{
	uint64_t version = versions_now(&s->values->v, key)->version;

	c->condition = (uint8_t)(rng_one_in(g, 2) ? KV_ALWAYS : rng_below(g, KV_IF_VERSION + 1));
	if (c->condition == KV_IF_ABSENT && c->kind != KV_PUT)
		c->condition = KV_IF_PRESENT;
	c->version = rng_one_in(g, 5) ? version + 1 : version;
	if (c->condition == KV_IF_VERSION && !version)
		c->condition = KV_IF_PRESENT;
}

void value_condition(struct sim *s, struct rng *g, struct vio *io)
{
	struct kw_change *c = &io->large.put;

	*c = (struct kw_change){ .kind = KV_PUT, .expiry = choose_expiry(s, g) };
	choose_condition(s, g, c, io->key[0]);
}

static void choose_change(struct sim *s, struct rng *g, struct vio *io, uint32_t key, bool batch)
{
	struct kw_change *c = &io->c[io->nr];

	*c = (struct kw_change){ .key = key_name[key], .key_bytes = key_bytes[key],
		.value = io->value[io->nr] };
	io->key[io->nr] = key;
	c->kind = batch ? (rng_percent(g, 80) ? KV_PUT : KV_DELETE) : choose_kind(g, key);
	if (c->kind == KV_TOUCH && s->values->v.key[key].out)
		c->kind = KV_PUT;
	if (!batch || rng_one_in(g, 8))
		choose_condition(s, g, c, key);
	if (c->kind == KV_PUT || c->kind == KV_TOUCH)
		c->expiry = choose_expiry(s, g);
	c->client = c->kind == KV_PUT ? rng_below(g, 1000) : 0;
	c->amount = rng_below(g, 300);
	if (c->kind == KV_PUT || c->kind == KV_APPEND || c->kind == KV_PREPEND)
		choose_value(s, g, io, io->nr);
	io->nr++;
}

static void begin_changes(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	uint64_t batch = io->nr > 1 ? versions_batch(&w->v) : 0;

	for (uint32_t i = 0; i < io->nr; i++) {
		const struct kw_change *c = &io->c[i];
		struct vchange change = { .kind = c->kind, .condition = c->condition,
			.expiry = c->expiry, .client = c->client, .if_version = c->version,
			.amount = c->amount, .batch = batch,
			.value = { (uint8_t *)(uintptr_t)c->value, c->value_bytes } };

		io->change[i] = versions_begin(&w->v, io->key[i], &change);
		w->v.key[io->key[i]].out++;
		w->alone[io->key[i]] = c->kind == KV_TOUCH;
		sim_log(s,
			"values: %td: change kind %u of key %u, condition %u (%" PRIu64
			"), %u bytes%s%s",
			io - w->io, c->kind, io->key[i], c->condition, c->version, c->value_bytes,
			io->fua ? ", FUA" : "", io->nr > 1 ? ", in a batch" : "");
	}
}

static bool send_change(struct sim *s, struct rng *g, bool batch)
{
	struct values *w = s->values;
	struct vio *io = free_io(s);
	uint32_t nr = batch ? rng_range(g, 2, VERSION_BATCH) : 1, key;

	io->nr = 0;
	for (uint32_t i = 0; i < nr; i++) {
		key = usable(s, io, rng_below(g, rng_one_in(g, 2) ? 6 : VERSION_KEYS), VCHANGES);
		if (key < VERSION_KEYS)
			choose_change(s, g, io, key, batch);
	}
	nr = io->nr;
	if (!nr)
		return false;
	take(s, io, VALUE_CHANGE);
	io->nr = nr;
	io->fua = rng_one_in(g, 5);
	begin_changes(s, io);
	if (!kw_batch(s->seg, io->r, &w->log, io->c, nr, io->fua, io->page, VPAGES))
		sim_fail(s, "values: a batch is too large for the test");
	value_submit(s, io);
	return true;
}

/* A change of each key at once. */
static bool send_delete_all(struct sim *s, struct rng *g)
{
	struct values *w = s->values;
	struct vio *io = free_io(s);

	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		if (w->alone[i] || w->unsure[i] || w->v.key[i].out >= VCHANGES)
			return false;
	take(s, io, VALUE_DELETE_ALL);
	io->fua = rng_one_in(g, 3);
	io->c[0] = (struct kw_change){ .kind = KV_DELETE_ALL };
	sim_log(s, "values: %td: delete all%s", io - w->io, io->fua ? ", FUA" : "");
	for (; io->nr < VERSION_KEYS; io->nr++) {
		io->key[io->nr] = io->nr;
		io->change[io->nr] = versions_begin(
			&w->v, io->nr, &(struct vchange){ .kind = KV_DELETE_ALL });
		w->v.key[io->nr].out++;
	}
	if (!kw_batch(s->seg, io->r, &w->log, io->c, 1, io->fua, io->page, VPAGES))
		sim_fail(s, "values: a batch is too large for the test");
	value_submit(s, io);
	return true;
}

/* All that the answer of a batch may be, if none was done. */
bool value_is_refusal(struct sim *s, int64_t result)
{
	s->nr_errors += result == -EIO;
	return result == -ENOSPC || result == -EFBIG || (s->errors_ok && result == -EIO);
}

/* Whatever it held is gone for good when this is answered. */
static void renew(struct sim *s, struct vio *io, uint32_t key)
{
	struct values *w = s->values;
	struct rng g = { rng_next(&s->rng) };

	take(s, io, VALUE_RENEW);
	io->nr = 1;
	io->key[0] = key;
	io->fua = w->alone[key] = true;
	io->c[0] = (struct kw_change){ .kind = KV_PUT, .key = key_name[key],
		.key_bytes = key_bytes[key] };
	choose_value(s, &g, io, 0);
	w->v.key[key].out++;
	sim_log(s, "values: %td: key %u is put anew, %u bytes", io - w->io, key,
		io->c[0].value_bytes);
	if (!kw_batch(s->seg, io->r, &w->log, io->c, 1, true, io->page, VPAGES))
		sim_fail(s, "values: a value is too large for the test");
	value_submit(s, io);
}

static void renew_answered(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	uint32_t key = io->key[0];
	struct kw_change *c = &io->c[0];
	int64_t result = io->r->result;

	if (result != io->r->size && !value_is_refusal(s, result))
		sim_fail(s, "values: a put of key %u was answered %" PRIi64, key, result);
	if (result == io->r->size) {
		kw_outcomes(s->seg, io->r, c, 1);
		if (c->result)
			sim_fail(s, "values: a put of key %u has the result %d", key, c->result);
		value_is_new(s, io, key);
		versions_renew(&w->v, key, c->value, c->value_bytes, c->new_version);
		w->unsure[key] = w->renewed[key] = false;
	}
	value_done(s, io);
}

int value_changed(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	int64_t result = io->r->result;
	bool any = false, may_fail = false, all = io->op == VALUE_DELETE_ALL;

	for (uint32_t i = 0; i < io->nr && result == -EIO; i++)
		may_fail |= value_may_fail(s, io, io->key[i]);
	if (result != io->r->size && !may_fail && !value_is_refusal(s, result))
		sim_fail(s, "values: a change of key %u was answered %" PRIi64, io->key[0], result);
	if (result == io->r->size)
		kw_outcomes(s->seg, io->r, io->c, all ? 1 : io->nr);
	for (uint32_t i = 0; i < io->nr; i++) {
		struct kw_change *c = &io->c[all ? 0 : i];

		sim_log(s,
			"values: %td: key %u -> %" PRIi64 ", %d, version %" PRIu64
			", number %" PRIu64,
			io - w->io, io->key[i], result, c->result, c->new_version, c->number);
		if (result == -EIO) {
			w->unsure[io->key[i]] = true;
			versions_doubt(&w->v, io->key[i], io->change[i]);
			continue;
		}
		if (result < 0)
			c->result = -ECANCELED;
		versions_end(&w->v, io->key[i], io->change[i], c->result, c->new_version,
			c->number);
		any |= c->result == 0;
		if (c->result == 0 && c->kind != KV_TOUCH && (c->kind < KV_APPEND || c->kind > KV_DECR))
			value_is_new(s, io, io->key[i]);
		if (c->result == 0 && (io->fua || w->v.always))
			versions_promise_change(&w->v, io->key[i], io->change[i]);
	}
	if (any && (io->fua || w->v.always)) {
		versions_promise(&w->v, io->begin);
		s->promised |= io->fua;
	}
	s->nr_value_changes += any;
	return result < 0 ? (int)result : io->c[0].result;
}

static void change_answered(struct sim *s, struct vio *io)
{
	value_changed(s, io);
	value_done(s, io);
}

/* ---- gets ---- */

void value_ask(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	uint32_t key = io->key[0];
	struct kv_query q = { .kind = io->op == VALUE_EXISTS ? KV_EXISTS : KV_GET,
		.flags = io->flags, .key_bytes = key_bytes[key], .zone = io->zone,
		.place = io->place };

	kw_query(s->seg, io->r, &w->log, &q, key_name[key], io->page, io->need);
	if (io->lends && io->op == VALUE_GET)
		io->r->flags |= XSEG_REQ_LOAN;
	value_submit(s, io);
}

static void send_get(struct sim *s, struct vio *io, enum value_op op, uint32_t key, uint32_t need)
{
	struct values *w = s->values;

	take(s, io, op);
	io->nr = 1;
	io->key[0] = key;
	io->need = need;
	io->time = w->time;
	w->v.key[key].out++;
	sim_log(s, "values: %td: %s of key %u at %" PRIu64, io - w->io,
		op == VALUE_GET ? "get" : "exists", key, io->begin);
}

static bool send_query(struct sim *s, struct rng *g, enum value_op op)
{
	struct vio *io = free_io(s);
	uint32_t key;

	io->nr = 0;
	key = usable(s, io, rng_below(g, rng_one_in(g, 2) ? 6 : VERSION_KEYS), VDEPTH * VPORTS);
	if (key == VERSION_KEYS)
		return false;
	send_get(s, io, op, key, rng_range(g, 1, 3));
	io->lends = s->plan.loans && rng_one_in(g, 2);
	value_ask(s, io);
	return true;
}

/* What it holds is not known: nothing else is sent before that. */
static bool resolve(struct sim *s, uint32_t key)
{
	struct values *w = s->values;
	struct vio *io = free_io(s);

	if (!io || !w->unsure[key] || w->v.key[key].out)
		return false;
	if (w->renewed[key]) {
		renew(s, io, key);
		return true;
	}
	send_get(s, io, VALUE_GET, key, 1);
	io->resolves = w->alone[key] = true;
	value_ask(s, io);
	return true;
}

static bool resolve_some(struct sim *s)
{
	bool any = false;

	for (uint32_t key = 0; key < VERSION_KEYS; key++)
		any |= resolve(s, key);
	return any;
}

void value_judge(struct sim *s, struct vio *io, int rc, const struct kw_value *v)
{
	struct values *w = s->values;
	struct vseen seen = { .begin = io->begin, .what = VSEEN_ABSENT };
	uint32_t key = io->key[0];

	sim_log(s, "values: %td: key %u -> %d, version %" PRIu64 ", %u bytes", io - w->io, key, rc,
		rc ? 0 : v->version, rc ? 0 : v->value_bytes);
	if (rc && rc != -ENOENT) {
		if (!value_may_fail(s, io, key))
			sim_fail(s, "values: a get of key %u was answered %d", key, rc);
		s->nr_errors++;
		w->renewed[key] |= io->resolves && w->tainted[key];
		return;
	}
	if (!rc) {
		seen.what = VSEEN_VALUE;
		seen.version = v->version;
		seen.expiry = v->expiry;
		seen.client = v->client;
		seen.hash = versions_hash(v->value, v->value_bytes);
		w->got[key] = io->begin;
	}
	s->nr_value_gets++;
	if (io->resolves && rc && w->v.evicts) {
		w->renewed[key] = true;	/* it may have been any of its states, and be it again */
		return;
	}
	if (!io->resolves) {
		versions_see(&w->v, key, &seen);
		return;
	}
	complain(s, versions_resolve(&w->v, key, &seen, w->lost));
	w->unsure[key] = false;
}

static void exists_answered(struct sim *s, struct vio *io)
{
	struct vseen seen = { .begin = io->begin,
		.what = io->r->result < 0 ? VSEEN_ABSENT : VSEEN_PRESENT };
	int64_t result = io->r->result;

	sim_log(s, "values: %td: key %u exists -> %" PRIi64, io - s->values->io, io->key[0],
		result);
	if (result >= 0 || result == -ENOENT)
		versions_see(&s->values->v, io->key[0], &seen);
	else if (!value_may_fail(s, io, io->key[0]))
		sim_fail(s, "values: EXISTS of key %u was answered %" PRIi64, io->key[0], result);
	value_done(s, io);
}

/* kvd's time does not go back. It is told if a record expires. */
static void check_time(struct sim *s, const struct vio *io)
{
	uint64_t time = xseg_req_note(s->seg, io->r, KV_NOTE_TIME);

	if (time && time < io->time)
		sim_fail(s, "values: kvd's time went back from %" PRIu64 " to %" PRIu64, io->time,
			time);
	if (time > s->values->time)
		s->values->time = time;
}

static void get_answered(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	struct kw_value v = { .copy = w->record };
	uint32_t key = io->key[0];
	int rc = kw_got(s->seg, io->r, &w->log, key_name[key], key_bytes[key], &v, &io->zone,
		&io->place, &io->need);

	if (io->r->result >= 0)
		check_time(s, io);
	if ((rc == -EMSGSIZE || ((rc == -EBADMSG || rc == -EIO) && !(io->flags & KV_LOOK))) &&
		io->tries++ < GET_TRIES && io->need < VPAGES) {
		sim_log(s, "values: %td: key %u -> %d, asks again for %u pages", io - w->io, key,
			rc, io->need);
		io->flags |= rc != -EMSGSIZE ? KV_LOOK : 0;
		xseg_req_drop_loans(w->port[io->port], io->r);
		value_ask(s, io);
		return;
	}
	if (!rc && v.large) {
		large_get(s, io, &v);
		return;
	}
	value_judge(s, io, rc, &v);
	value_done(s, io);
}

/* ---- scans ---- */

static void ask_scan(struct sim *s, struct vio *io)
{
	struct kv_query q = { .kind = KV_SCAN, .cursor = io->scan.cursor };

	kw_query(s->seg, io->r, &s->values->log, &q, NULL, io->page, io->need);
	value_submit(s, io);
}

static bool send_scan(struct sim *s, struct rng *g)
{
	struct vio *io = free_io(s);

	take(s, io, VALUE_SCAN);
	io->need = rng_range(g, 1, 3);
	io->scan = (struct scan){ .cursor = 0 };
	sim_log(s, "values: %td: scan", io - s->values->io);
	ask_scan(s, io);
	return true;
}

static void note_entry(struct sim *s, struct vio *io, const uint8_t *key, uint32_t bytes)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		if (bytes == key_bytes[i] && memcmp(key, key_name[i], bytes) == 0) {
			if (io->scan.nr[i]++)
				sim_fail(s, "values: a scan tells key %u twice", i);
			return;
		}
	sim_fail(s, "values: a scan tells a key of %u bytes that was never put", bytes);
}

/* A key that was there all the time must have come, one that never was must not. */
static void check_scan(struct sim *s, const struct vio *io)
{
	struct values *w = s->values;

	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		const struct vstate *st = versions_now(&w->v, i);

		if (w->unsure[i] || w->v.key[i].quiet_since > io->begin)
			continue;
		if (io->scan.nr[i] != st->present &&
			!(st->present && (st->expiry || w->v.evicts || w->tainted[i])))
			sim_fail(s, "values: a scan tells key %u %u times, and it was %sthere", i,
				io->scan.nr[i], st->present ? "" : "not ");
	}
}

static bool any_may_fail(struct sim *s, const struct vio *io)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		if (value_may_fail(s, io, i))
			return true;
	return false;
}

static void scan_answered(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	struct kv_scan_head head;
	struct kv_scan_entry e;
	uint32_t at = sizeof(head);

	if (io->r->result < 0) {
		if (!any_may_fail(s, io))
			sim_fail(s, "values: a scan was answered %" PRIi64, io->r->result);
		value_done(s, io);
		return;
	}
	xseg_req_read_data(s->seg, io->r, 0, &head, sizeof(head));
	if (head.bytes > io->r->size || head.bytes < sizeof(head))
		sim_fail(s, "values: a scan tells %u bytes", head.bytes);
	xseg_req_read_data(s->seg, io->r, 0, w->record, head.bytes);
	for (uint32_t i = 0; i < head.nr; i++) {
		memcpy(&e, w->record + at, sizeof(e));
		note_entry(s, io, w->record + at + sizeof(e), e.key_bytes);
		at += (uint32_t)(sizeof(e) + e.key_bytes + 7) / 8 * 8;
	}
	io->scan.cursor = head.next;
	if (head.next) {
		ask_scan(s, io);
		return;
	}
	check_scan(s, io);
	value_done(s, io);
}

/* ---- the rest ---- */

static bool send_flush(struct sim *s)
{
	struct vio *io = free_io(s);

	take(s, io, VALUE_FLUSH);
	io->r->op = XSEG_OP_FLUSH;
	io->r->volume = s->values->log.id;
	io->r->flags = 0;
	io->r->offset = io->r->size = io->r->nr_pages = 0;
	sim_log(s, "values: %td: flush at %" PRIu64, io - s->values->io, io->begin);
	value_submit(s, io);
	return true;
}

static void flush_answered(struct sim *s, struct vio *io)
{
	int64_t result = io->r->result;

	sim_log(s, "values: %td: flush -> %" PRIi64, io - s->values->io, result);
	if (result && !(s->errors_ok && (result == -EIO || result == -ENOSPC)))
		sim_fail(s, "values: a FLUSH was answered %" PRIi64, result);
	if (!result) {
		versions_promise(&s->values->v, io->begin);
		s->promised = true;
	}
	value_done(s, io);
}

static void info_answered(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	struct kv_info info;

	if (io->r->result != KV_PAGE)
		sim_fail(s, "values: INFO was answered %" PRIi64, io->r->result);
	xseg_req_read_data(s->seg, io->r, 0, &info, sizeof(info));
	w->log.id = info.id;
	memcpy(w->log.uuid, info.uuid, sizeof(info.uuid));
	w->value_max = info.record_max;
	w->piece_bytes = info.piece_bytes;
	value_done(s, io);
}

/* kvd was killed, or has opened its log anew. */
static void look_at_kvd(struct sim *s)
{
	struct values *w = s->values;
	struct kvd *k = (struct kvd *)s->node[NODE_KVD].p;

	if (!k || (w->kvd == &k->peer && w->began_ns == k->began_ns))
		return;
	w->kvd = &k->peer;
	w->began_ns = k->began_ns;
	w->v.opened = ++w->v.now;
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		w->forgot[i] = w->v.opened;
}

bool values_replies(struct sim *s)
{
	struct values *w = s->values;
	struct xreq *r;
	bool any = false;

	if (w)
		look_at_kvd(s);
	for (uint32_t i = 0; w && i < VPORTS; i++)
		while (w->port[i] && xseg_port_replies(w->port[i], &r, 1)) {
			struct vio *io = r->cookie;

			any = true;
			if (!io || io->r != r)
				sim_fail(s, "values: an answer came twice");
			switch (io->op) {
			case VALUE_DELETE_ALL:
			case VALUE_CHANGE: change_answered(s, io); break;
			case VALUE_GET: get_answered(s, io); break;
			case VALUE_EXISTS: exists_answered(s, io); break;
			case VALUE_SCAN: scan_answered(s, io); break;
			case VALUE_FLUSH: flush_answered(s, io); break;
			case VALUE_RENEW: renew_answered(s, io); break;
			case VALUE_LARGE: large_answered(s, io); break;
			default: info_answered(s, io); break;
			}
		}
	return any;
}

bool values_flush(struct sim *s)
{
	for (uint32_t i = 0; s->values && i < VPORTS; i++)
		if (s->values->port[i])
			xseg_port_flush(s->values->port[i]);
	return false;
}

/* Mostly forwards; a little back. */
static void date(struct sim *s, struct rng *g)
{
	s->values->skew += rng_one_in(g, 3) ? -(int64_t)rng_below(g, 3000)
					    : (int64_t)rng_below(g, 2500);
	sim_log(s, "values: the date is %u", values_date(s));
}

bool values_room(const struct sim *s)
{
	return !s->values || (s->values->peer && free_io(s));
}

/* Another choice than those of other changes, so that these stay as they are. */
static bool send_large(struct sim *s, const struct item *it)
{
	struct rng g = { rng_mix(s->seed * 0x9e3779b97f4a7c15ull + (uint64_t)(it - s->item) + LARGES) };
	struct vio *io = free_io(s);
	uint32_t key;

	if (!rng_one_in(&g, 6))
		return false;
	io->nr = 0;
	key = usable(s, io, rng_below(&g, 8), VCHANGES);
	if (key == VERSION_KEYS)
		return false;
	take(s, io, VALUE_LARGE);
	io->key[0] = key;
	io->fua = rng_one_in(&g, 5);
	large_put(s, io, &g);
	return true;
}

/* There is room. */
void values_send(struct sim *s, const struct item *it)
{
	struct rng g = { rng_mix(s->seed * 0x9e3779b97f4a7c15ull + (uint64_t)(it - s->item)) };

	if (!s->values)
		return;
	if (resolve_some(s) && !free_io(s))
		return;
	switch ((enum value_op)it->op) {
	case VALUE_CHANGE:
		if (!s->plan.large || !send_large(s, it))
			send_change(s, &g, false);
		break;
	case VALUE_BATCH: send_change(s, &g, true); break;
	case VALUE_DELETE_ALL: send_delete_all(s, &g); break;
	case VALUE_SCAN: send_scan(s, &g); break;
	case VALUE_FLUSH: send_flush(s); break;
	case VALUE_DATE: date(s, &g); break;
	case VALUE_BAD: values_go_bad(s, &g); break;
	default: send_query(s, &g, (enum value_op)it->op); break;
	}
	if (it->publish)
		values_flush(s);
}

bool values_idle(struct sim *s)
{
	return !s->values || s->values->in_flight == 0;
}

bool values_too_old(const struct sim *s, uint64_t age_ns)
{
	for (uint32_t i = 0; s->values && i < VPORTS * VDEPTH; i++) {
		const struct vio *io = &s->values->io[i];
		uint64_t since = io->issued_ns > s->settled_ns ? io->issued_ns : s->settled_ns;

		if (io->r && s->now > since + age_ns)
			return true;
	}
	return false;
}

void values_dump(const struct sim *s)
{
	static const char *const names[] = { [VALUE_CHANGE] = "change", [VALUE_GET] = "get",
		[VALUE_EXISTS] = "exists", [VALUE_SCAN] = "scan", [VALUE_FLUSH] = "flush",
		[VALUE_INFO] = "info", [VALUE_DELETE_ALL] = "delete all",
		[VALUE_RENEW] = "put anew", [VALUE_LARGE] = "large value" };

	for (uint32_t i = 0; s->values && i < VPORTS * VDEPTH; i++) {
		const struct vio *io = &s->values->io[i];

		if (io->r)
			printf("  values wait for request %u: %s of key %u, sent %" PRIu64
			       " us ago\n", io->r->index, names[io->op], io->nr ? io->key[0] : 0,
				(s->now - io->issued_ns) / 1000);
	}
}

/* ---- life ---- */

/* The log's id and UUID: the same for ever. */
void values_learn(struct sim *s)
{
	struct vio *io = free_io(s);

	take(s, io, VALUE_INFO);
	kw_query(s->seg, io->r, &s->values->log, &(struct kv_query){ .kind = KV_INFO }, NULL,
		io->page, 1);
	value_submit(s, io);
	values_flush(s);
	sched_run(s, values_idle);
}

static void open_ports(struct sim *s)
{
	struct values *w = s->values;
	struct xseg_peer_params params = { .name = values_name(s), .kind = "client",
		.nr_ports = VPORTS, .nr_requests = VDEPTH };
	struct xseg_error err;
	uint32_t nr = VPORTS * VDEPTH * VPAGES;

	if (xseg_peer_open(s->seg, &params, &w->peer, &err))
		sim_fail(s, "values: %s", err.text);
	w->pages = calloc(xseg_pages_round(nr), sizeof(*w->pages));
	assert(w->pages);
	if (xseg_pages_take(w->peer, nr, w->pages))
		sim_fail(s, "values: no pages");
	for (uint32_t i = 0; i < VPORTS; i++)
		w->port[i] = xseg_peer_port(w->peer, i);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		w->io[i].page = w->pages + i * VPAGES;
		w->io[i].port = i % VPORTS;
	}
}

void values_open(struct sim *s)
{
	struct values *w = calloc(1, sizeof(*w));

	assert(w);
	s->values = w;
	name_keys();
	versions_init(&w->v);
	w->v.always = s->plan.always;
	w->log.paged_least = s->plan.paged_least;
	w->v.evicts = s->plan.evicts;
	evicted_watch(s);
	bad_watch(s);
	w->record = malloc(XSEG_REQ_BYTES);
	assert(w->record);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		for (uint32_t n = 0; n < VERSION_BATCH; n++) {
			w->io[i].value[n] = malloc(VALUE_ROOM);
			assert(w->io[i].value[n]);
		}
		w->io[i].large.data = malloc(LARGE_ROOM);
		assert(w->io[i].large.data);
	}
	open_ports(s);
}

static void close_ports(struct sim *s, enum xseg_close how)
{
	struct values *w = s->values;

	xseg_peer_close(w->peer, how);
	free(w->pages);
	w->peer = NULL;
	w->pages = NULL;
	memset(w->port, 0, sizeof(w->port));
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		w->io[i].r = NULL;
	w->in_flight = 0;
	memset(w->alone, 0, sizeof(w->alone));
}

void values_close(struct sim *s)
{
	struct values *w = s->values;

	close_ports(s, XSEG_CLOSE_FREE_ARENA);
	versions_fini(&w->v);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		for (uint32_t n = 0; n < VERSION_BATCH; n++)
			free(w->io[i].value[n]);
		free(w->io[i].large.data);
	}
	free(w->record);
	free(w);
	s->values = NULL;
}

/* They die, with what is out. Of those keys it is not known what they hold. If kvd's time is lost
 * with them, it goes on from that of the head. */
void values_die(struct sim *s)
{
	struct values *w = s->values;

	values_date(s);
	w->v.latest += KVD_AHEAD_S;
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		for (uint32_t n = 0; w->io[i].r && n < w->io[i].nr; n++)
			w->unsure[w->io[i].key[n]] = true;
	versions_clients_died(&w->v);
	close_ports(s, XSEG_CLOSE_ABANDON);
}

static bool all_known(struct sim *s)
{
	bool any = false;

	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		any |= s->values->unsure[i];
	if (any && resolve_some(s))
		values_flush(s);
	return !any && values_idle(s);
}

/* Others come in their place. After a loss of power each key is read before anything else. */
void values_again(struct sim *s, bool power_lost)
{
	struct values *w = s->values;

	w->incarnation++;
	open_ports(s);
	if (!power_lost)
		return;
	/* one that was to be put anew may have been, and is once more */
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		w->unsure[i] = true;
	w->lost = true;
	sched_run(s, all_known);
	w->lost = false;
	complain(s, versions_check_batches(&w->v));
}

void values_read_back(struct sim *s)
{
	struct vio *io;

	sched_run(s, all_known);
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		io = free_io(s);
		send_get(s, io, VALUE_GET, i, 1);
		value_ask(s, io);
		values_flush(s);
		sched_run(s, values_idle);
	}
}

static struct kvd *kvd_here(const struct sim *s)
{
	return (struct kvd *)s->node[NODE_KVD].p;
}

static bool preload_is_over(struct sim *s)
{
	const struct kvd *k = kvd_here(s);

	return k->state == KVD_OPEN && k->preload.begun && !k->jobs.nr && values_idle(s);
}

/* Zones that were there all the time were read, all or as much as was asked for. */
void values_preloaded(struct sim *s)
{
	struct kvd *k = kvd_here(s);
	uint64_t least = 0, done;

	sched_run(s, preload_is_over);
	for (uint64_t id = 1; id <= k->index.newest; id++)
		least += alog_zone_epoch(k->log, id) ? k->cfg.zone_bytes : 0;
	done = xseg_stats_get(k->stats, KS_PRELOADED_BYTES);
	if (!strcmp(k->opt.preload, "no"))
		least = 0;
	else if (strcmp(k->opt.preload, "all") && least > 100u << 10)
		least = 100u << 10;
	if (done < least)
		sim_fail(s, "values: %" PRIu64 " bytes were read ahead, of %" PRIu64, done, least);
}

/* What has expired may have lost its zones before its record goes. */
bool values_own_known(struct sim *s)
{
	const struct kvd *k = kvd_here(s);
	uint32_t least = 0, most = 0;
	struct alog_stats st;

	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		const struct vstate *is = versions_now(&s->values->v, i);
		uint32_t zones = (uint32_t)large_zones(&k->large.t, is->value.bytes);

		if (!is->large)
			continue;
		most += zones;
		least += is->present && is->gone_at == VERSION_NONE && !is->expiry &&
			!s->plan.evicts ? zones : 0;
	}
	alog_stats(k->log, &st);
	if (st.own_zones < least)
		sim_fail(s, "values: %u zones are there for large values that need %u",
			st.own_zones, least);
	return st.own_zones <= most;
}
