/* queries - gets and scans of the simulator's clients, and their answers.
 *
 * What a key holds may be unknown, after an error or the death of clients. Then a get finds it out
 * before anything else is sent.
 *
 * Contract: steps of the scheduler.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

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

void value_get(struct sim *s, struct vio *io, enum value_op op, uint32_t key, uint32_t need)
{
	struct values *w = s->values;

	value_take(s, io, op);
	io->nr = 1;
	io->key[0] = key;
	io->need = need;
	io->time = w->time;
	w->v.key[key].out++;
	sim_log(s, "values: %td: %s of key %u at %" PRIu64, io - w->io,
		op == VALUE_GET ? "get" : "exists", key, io->begin);
}

bool value_send_query(struct sim *s, struct rng *g, enum value_op op)
{
	struct vio *io = value_io(s);
	uint32_t key;

	io->nr = 0;
	key = value_usable(
		s, io, rng_below(g, rng_one_in(g, 2) ? 6 : VERSION_KEYS), VDEPTH * VPORTS);
	if (key == VERSION_KEYS)
		return false;
	value_get(s, io, op, key, rng_range(g, 1, 3));
	io->lends = s->plan.loans && rng_one_in(g, 2);
	value_ask(s, io);
	return true;
}

/* What it holds is not known: nothing else is sent before that. */
static bool resolve(struct sim *s, uint32_t key)
{
	struct values *w = s->values;
	struct vio *io = value_io(s);

	if (!io || !w->unsure[key] || w->v.key[key].out)
		return false;
	if (w->renewed[key]) {
		value_renew(s, io, key);
		return true;
	}
	value_get(s, io, VALUE_GET, key, 1);
	io->resolves = w->alone[key] = true;
	value_ask(s, io);
	return true;
}

bool value_resolve_some(struct sim *s)
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
	value_complain(s, versions_resolve(&w->v, key, &seen, w->lost));
	w->unsure[key] = false;
}

void value_exists_answered(struct sim *s, struct vio *io)
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

void value_get_answered(struct sim *s, struct vio *io)
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

bool value_send_scan(struct sim *s, struct rng *g)
{
	struct vio *io = value_io(s);

	value_take(s, io, VALUE_SCAN);
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

void value_scan_answered(struct sim *s, struct vio *io)
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
