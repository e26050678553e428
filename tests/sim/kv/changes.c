/* changes - puts, deletes and the like of the simulator's clients, and their answers.
 *
 * Contract: steps of the scheduler.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

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

bool value_send_change(struct sim *s, struct rng *g, bool batch)
{
	struct values *w = s->values;
	struct vio *io = value_io(s);
	uint32_t nr = batch ? rng_range(g, 2, VERSION_BATCH) : 1, key;

	io->nr = 0;
	for (uint32_t i = 0; i < nr; i++) {
		key = value_usable(
			s, io, rng_below(g, rng_one_in(g, 2) ? 6 : VERSION_KEYS), VCHANGES);
		if (key < VERSION_KEYS)
			choose_change(s, g, io, key, batch);
	}
	nr = io->nr;
	if (!nr)
		return false;
	value_take(s, io, VALUE_CHANGE);
	io->nr = nr;
	io->fua = rng_one_in(g, 5);
	begin_changes(s, io);
	if (!kw_batch(s->seg, io->r, &w->log, io->c, nr, io->fua, io->page, VPAGES))
		sim_fail(s, "values: a batch is too large for the test");
	value_submit(s, io);
	return true;
}

/* A change of each key at once. */
bool value_send_delete_all(struct sim *s, struct rng *g)
{
	struct values *w = s->values;
	struct vio *io = value_io(s);

	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		if (w->alone[i] || w->unsure[i] || w->v.key[i].out >= VCHANGES)
			return false;
	value_take(s, io, VALUE_DELETE_ALL);
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

/* Whatever it held is gone for good when this is answered. */
void value_renew(struct sim *s, struct vio *io, uint32_t key)
{
	struct values *w = s->values;
	struct rng g = { rng_next(&s->rng) };

	value_take(s, io, VALUE_RENEW);
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

void value_renew_answered(struct sim *s, struct vio *io)
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
		if (c->result == 0 && c->kind != KV_TOUCH &&
			(c->kind < KV_APPEND || c->kind > KV_DECR))
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

void value_change_answered(struct sim *s, struct vio *io)
{
	value_changed(s, io);
	value_done(s, io);
}
