/* oracle - see oracle.h for the rule. */
#include "tests/sim/oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rng.h"

#define MAGIC	      0x5345435430525931ull
#define WORDS	      (ORACLE_SECTOR / 8)
#define BUCKET	      8u		/* sectors of 4 KiB */
#define PRUNE_AT      12u	/* candidates of a sector after which stale ones are thrown out */
#define UNKNOWN	      UINT32_MAX

/* ---- tables ---- */

static void *grow(void *mem, uint32_t *room, size_t size)
{
	*room = *room ? *room * 2 : 1024;
	mem = realloc(mem, *room * size);
	assert(mem);
	return mem;
}

static struct oracle_value *value(struct oracle *o, uint32_t link)
{
	return &o->values[link - 1];
}

static const struct oracle_content zeroes = { .write = UNKNOWN };

static bool is_same(const struct oracle_content *a, const struct oracle_content *b)
{
	return a->write == b->write && a->volume == b->volume && a->sector == b->sector;
}

static struct oracle_value *value_add(struct oracle *o, uint32_t volume, uint32_t sector,
	uint32_t write, uint64_t by, bool certain)
{
	uint32_t i = o->free_value;

	if (i) {
		o->free_value = value(o, i)->next;
	} else {
		if (o->nr_values == o->room_values)
			o->values = grow(o->values, &o->room_values, sizeof(*o->values));
		i = ++o->nr_values;
	}
	*value(o, i) = (struct oracle_value){ .write = write,
		.next = o->head[volume][sector],
		.by = by,
		.stale = ORACLE_NEVER,
		.certain = certain,
		.content = { write, volume, sector } };
	if (o->writes[write].kind == ORACLE_ZEROES || o->writes[write].kind == ORACLE_CUT)
		value(o, i)->content = zeroes;
	o->head[volume][sector] = i;
	return value(o, i);
}

static uint32_t write_add(struct oracle *o)
{
	if (o->nr_writes == o->room_writes)
		o->writes = grow(o->writes, &o->room_writes, sizeof(*o->writes));
	return o->nr_writes++;
}

uint64_t oracle_now(struct oracle *o)
{
	return ++o->clock;
}

/* Write 0 of each volume is its birth: zeroes everywhere, durable. */
void oracle_init(
	struct oracle *o, uint32_t nr_volumes, const uint32_t *sectors, bool atomic_buckets)
{
	memset(o, 0, sizeof(*o));
	o->clock = 1;
	o->nr_volumes = nr_volumes;
	o->atomic_buckets = atomic_buckets;
	for (uint32_t v = 0; v < nr_volumes; v++) {
		uint32_t w = write_add(o);

		o->writes[w] = (struct oracle_write){ .issue = 1,
			.done = 1,
			.volume = v,
			.nr = sectors[v],
			.kind = ORACLE_ZEROES,
			.fua = true,
			.ok = true };
		o->sectors[v] = sectors[v];
		o->head[v] = calloc(sectors[v], sizeof(*o->head[v]));
		assert(o->head[v]);
		for (uint32_t s = 0; s < sectors[v]; s++)
			value_add(o, v, s, w, 1, true);
	}
}

void oracle_fini(struct oracle *o)
{
	for (uint32_t v = 0; v < o->nr_volumes; v++)
		free(o->head[v]);
	free(o->writes);
	free(o->values);
}

/* ---- durability ---- */

static bool is_durable(const struct oracle *o, const struct oracle_value *v)
{
	const struct oracle_write *w = &o->writes[v->write];

	if (w->era < o->era)
		return v->durable;
	return w->ok && (w->fua || w->done < o->flushed[w->volume]);
}

static bool is_acknowledged(const struct oracle *o, const struct oracle_value *v)
{
	const struct oracle_write *w = &o->writes[v->write];

	return w->ok && w->era == o->era;
}

typedef bool (*holds_fn)(const struct oracle *o, const struct oracle_value *v);

/* A value that holds (is_durable: no loss of power takes it back) is surely newer. */
static bool is_buried(struct oracle *o, uint32_t head, const struct oracle_value *u, holds_fn holds)
{
	for (uint32_t i = head; i; i = value(o, i)->next)
		if (u->by < o->writes[value(o, i)->write].issue && holds(o, value(o, i)))
			return true;
	return false;
}

/* Throws out candidates that no read in flight or to come may return. */
static void prune(struct oracle *o, uint32_t volume, uint32_t sector)
{
	uint32_t *at = &o->head[volume][sector], n = 0, i;
	uint64_t oldest = o->clock;

	for (i = *at; i; i = value(o, i)->next)
		n++;
	if (n < PRUNE_AT)
		return;
	for (i = 0; i < o->nr_reading; i++)
		if (o->reading[i] < oldest)
			oldest = o->reading[i];
	while ((i = *at) != 0) {
		struct oracle_value *u = value(o, i);

		if (u->stale > oldest || !is_buried(o, o->head[volume][sector], u, is_durable)) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		u->next = o->free_value;
		o->free_value = i;
	}
}

/* ---- writes ---- */

uint32_t oracle_write_begin(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	enum oracle_kind kind, bool fua)
{
	uint32_t w = write_add(o);

	assert(nr && first + nr <= o->sectors[volume]);
	o->writes[w] = (struct oracle_write){ .issue = oracle_now(o),
		.done = ORACLE_NEVER,
		.volume = volume,
		.first = first,
		.nr = nr,
		.kind = (uint8_t)kind,
		.fua = fua,
		.era = o->era };
	for (uint32_t s = first; s < first + nr; s++) {
		prune(o, volume, s);
		value_add(o, volume, s, w, ORACLE_NEVER, false);
	}
	return w;
}

/* The one candidate that a read that begins now may return; NULL: there are several. */
static struct oracle_value *only_value(struct oracle *o, uint32_t volume, uint32_t sector)
{
	struct oracle_value *only = NULL;

	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next) {
		if (value(o, i)->stale <= o->clock)
			continue;
		if (only)
			return NULL;
		only = value(o, i);
	}
	return only;
}

bool oracle_is_settled(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr)
{
	if (first + nr > o->sectors[volume])
		return false;
	for (uint32_t s = first; s < first + nr; s++)
		if (!only_value(o, volume, s))
			return false;
	return true;
}

uint32_t oracle_copy_begin(
	struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr, uint32_t source, bool fua)
{
	uint32_t w = oracle_write_begin(o, volume, first, nr, ORACLE_COPY, fua);

	for (uint32_t s = first; s < first + nr; s++)
		value(o, o->head[volume][s])->content = only_value(o, source, s)->content;
	return w;
}

static uint64_t word_of(uint32_t volume, uint32_t sector, uint32_t write, uint32_t i)
{
	return rng_mix(((uint64_t)write << 32 | sector) + ((uint64_t)volume << 56) +
		       (uint64_t)i * 0x9e3779b97f4a7c15ull);
}

void oracle_fill(const struct oracle *o, uint32_t write, uint32_t sector, void *buf)
{
	const struct oracle_write *w = &o->writes[write];
	uint64_t words[WORDS] = { MAGIC, (uint64_t)w->volume << 32 | sector, write };

	for (uint32_t i = 3; i < WORDS; i++)
		words[i] = word_of(w->volume, sector, write, i);
	memcpy(buf, words, sizeof(words));
}

bool oracle_is_from(const void *data, uint32_t write, uint32_t volume, uint32_t sector)
{
	uint64_t words[3];

	memcpy(words, data, sizeof(words));
	return words[0] == MAGIC && words[1] == ((uint64_t)volume << 32 | sector) &&
	       words[2] == write;
}

/* W took effect by now: what is surely before it is stale for reads from now on. */
static void bury_older(struct oracle *o, uint32_t head, uint32_t write, uint64_t now)
{
	for (uint32_t i = head; i; i = value(o, i)->next) {
		struct oracle_value *u = value(o, i);

		if (u->write != write && u->by < o->writes[write].issue && now < u->stale)
			u->stale = now;
	}
}

void oracle_write_end(struct oracle *o, uint32_t write, bool ok)
{
	struct oracle_write *w = &o->writes[write];

	w->done = oracle_now(o);
	w->ok = ok;
	for (uint32_t s = w->first; s < w->first + w->nr; s++) {
		uint32_t head = o->head[w->volume][s];

		for (uint32_t i = head; i; i = value(o, i)->next)
			if (value(o, i)->write == write) {
				if (w->done < value(o, i)->by)
					value(o, i)->by = w->done;
				value(o, i)->certain |= ok;
			}
		if (ok)
			bury_older(o, head, write, w->done);
	}
}

/* ---- cuts ---- */

static struct oracle_value *value_of(struct oracle *o, uint32_t write, uint32_t sector)
{
	uint32_t i = o->head[o->writes[write].volume][sector];

	while (i && value(o, i)->write != write)
		i = value(o, i)->next;
	return i ? value(o, i) : NULL;
}

uint32_t oracle_cut_begin(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr)
{
	return oracle_write_begin(o, volume, first, nr, ORACLE_CUT, true);
}

void oracle_cut_end(struct oracle *o, uint32_t cut)
{
	struct oracle_write *w = &o->writes[cut];

	oracle_write_end(o, cut, true);
	for (uint32_t s = w->first; s < w->first + w->nr; s++)
		for (uint32_t i = o->head[w->volume][s]; i; i = value(o, i)->next) {
			struct oracle_value *u = value(o, i);

			if (u->write == cut)
				continue;
			u->by = u->by < w->issue ? u->by : w->issue - 1;
			u->stale = u->stale < w->done ? u->stale : w->done;
		}
}

void oracle_write_may_come(struct oracle *o, uint32_t write)
{
	const struct oracle_write *w = &o->writes[write];

	for (uint32_t s = w->first; s < w->first + w->nr; s++) {
		struct oracle_value *u = value_of(o, write, s);

		if (u && !u->certain)
			u->by = u->stale = ORACLE_NEVER;
	}
}

/* ---- what went wrong ---- */

static void say(struct oracle *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct oracle *o, const char *fmt, ...)
{
	size_t len = strlen(o->error);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->error + len, sizeof(o->error) - len, fmt, ap);
	va_end(ap);
}

static void say_moment(struct oracle *o, const char *what, uint64_t t)
{
	if (t == ORACLE_NEVER)
		say(o, " %s -", what);
	else
		say(o, " %s %" PRIu64, what, t);
}

static void say_write(struct oracle *o, uint32_t write)
{
	static const char *const kinds[] = {
		[ORACLE_DATA] = "data", [ORACLE_ZEROES] = "zeroes", [ORACLE_COPY] = "a copy",
		[ORACLE_CUT] = "a cut"
	};
	const struct oracle_write *w = &o->writes[write];

	say(o, "write %u (%s%s, sectors %u+%u, issued %" PRIu64, write, kinds[w->kind],
	    w->fua ? ", FUA" : "", w->first, w->nr, w->issue);
	say_moment(o, w->ok ? "acknowledged" : "failed", w->done);
	say(o, ")");
}

static void say_history(struct oracle *o, uint32_t volume, uint32_t sector, uint64_t begin)
{
	say(o,
		"  read issued %" PRIu64 ", now %" PRIu64 ", last answered FLUSH issued %" PRIu64
		"\n  may be returned:\n",
		begin, o->clock, o->flushed[volume]);
	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next) {
		if (value(o, i)->stale <= begin)
			continue;
		say(o, "    ");
		say_write(o, value(o, i)->write);
		say(o, "\n");
	}
	say(o, "  the sector's writes:\n");
	for (uint32_t w = 0; w < o->nr_writes; w++) {
		const struct oracle_write *x = &o->writes[w];

		if (x->volume != volume || sector < x->first || sector >= x->first + x->nr)
			continue;
		say(o, "    ");
		say_write(o, w);
		for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next)
			if (value(o, i)->write == w) {
				say_moment(o, " effect by", value(o, i)->by);
				say_moment(o, "stale from", value(o, i)->stale);
			}
		say(o, "\n");
	}
}

static bool wrong(struct oracle *o, uint64_t begin, uint32_t volume, uint32_t sector,
	uint32_t found, const char *why)
{
	o->bad_volume = volume;
	o->bad_sector = sector;
	say(o, "volume %u sector %u (byte %" PRIu64 ", bucket %u): %s", volume, sector,
		(uint64_t)sector * ORACLE_SECTOR, sector / BUCKET, why);
	if (found != UNKNOWN) {
		say(o, ": ");
		say_write(o, found);
	}
	say(o, "\n");
	say_history(o, volume, sector, begin);
	return false;
}

bool oracle_write_refused(struct oracle *o, uint32_t write)
{
	const struct oracle_write *w = &o->writes[write];

	oracle_write_end(o, write, false);
	for (uint32_t s = w->first; s < w->first + w->nr; s++) {
		struct oracle_value *u = value_of(o, write, s);

		if (u && u->certain) {
			o->error[0] = '\0';
			return wrong(o, o->clock, w->volume, s, write,
				"a write was refused, and has been read");
		}
		if (u)
			u->by = u->stale = 0;
	}
	return true;
}

/* ---- reads ---- */

static bool all_zero(const uint64_t *w)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (w[i])
			return false;
	return true;
}

/* What a sector's words are; false: nothing that was ever written, with the reason. */
static bool parse(
	const struct oracle *o, const void *data, struct oracle_content *c, const char **why)
{
	uint64_t w[WORDS];

	memcpy(w, data, sizeof(w));
	*c = zeroes;
	if (all_zero(w))
		return true;
	*why = "the contents are no sector that was ever written";
	if (w[0] != MAGIC || w[2] >= o->nr_writes)
		return false;
	*c = (struct oracle_content){ (uint32_t)w[2], (uint32_t)(w[1] >> 32), (uint32_t)w[1] };
	*why = "the sector is torn: it begins like";
	for (uint32_t i = 3; i < WORDS; i++)
		if (w[i] != word_of(c->volume, c->sector, c->write, i))
			return false;
	return true;
}

/* After a loss of power V was read, which is from before it: of its time it alone is left, and it
 * is on the store. */
static void settle_loss(struct oracle *o, uint32_t volume, uint32_t sector, struct oracle_value *v)
{
	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next)
		if (value(o, i) != v && o->writes[value(o, i)->write].era < o->era)
			value(o, i)->by = 0;
	v->durable = true;
}

/* It may be of a write that is not acknowledged. */
static bool may_be_undone(
	struct oracle *o, uint32_t volume, uint32_t sector, const struct oracle_content *c)
{
	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next)
		if (is_same(&value(o, i)->content, c) && !o->writes[value(o, i)->write].ok)
			return true;
	return false;
}

/* A read issued at `begin` returned V, or (V is NULL) some value of that content: everything that
 * had taken effect by then, and is not V, is before V. */
static void observe(struct oracle *o, uint32_t volume, uint32_t sector, struct oracle_value *v,
	const struct oracle_content *c, uint64_t begin)
{
	uint64_t now = o->clock;

	if (o->fails && may_be_undone(o, volume, sector, c))
		return;
	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next) {
		struct oracle_value *u = value(o, i);

		if (u == v || (!v && is_same(&u->content, c)))
			continue;
		if (u->by <= begin && now < u->stale)
			u->stale = now;
	}
	if (!v)
		return;
	if (now < v->by)
		v->by = now;
	v->certain = true;
	if (o->writes[v->write].era < o->era)
		settle_loss(o, volume, sector, v);
	bury_older(o, o->head[volume][sector], v->write, now);
}

/* Why none of the sector's candidates fits to what was found there. */
static const char *why_none(uint32_t volume, uint32_t sector, const struct oracle_content *c,
	const char *stale, const char *stale_zeroes)
{
	if (c->write == UNKNOWN)
		return stale_zeroes;
	return c->volume == volume && c->sector == sector ? stale
							  : "the contents belong to another sector";
}

static bool read_sector(struct oracle *o, uint64_t begin, uint32_t volume, uint32_t sector,
	const void *data, uint32_t *found)
{
	struct oracle_value *one = NULL;
	struct oracle_content c;
	const char *why;
	uint32_t n = 0;

	if (!parse(o, data, &c, &why))
		return wrong(o, begin, volume, sector, c.write, why);
	for (uint32_t i = o->head[volume][sector]; i; i = value(o, i)->next)
		if (is_same(&value(o, i)->content, &c) && value(o, i)->stale > begin) {
			one = value(o, i);
			n++;
		}
	if (n == 0)
		return wrong(o, begin, volume, sector, c.write,
			why_none(volume, sector, &c, "a stale value was read",
				"zeroes were read, which are stale"));
	observe(o, volume, sector, n == 1 ? one : NULL, &c, begin);
	*found = n == 1 ? one->write : UNKNOWN;
	return true;
}

/* It failed, or it is going to: a store that does half of a write is asked directly where the cache
 * is passed. */
static bool may_be_half_done(const struct oracle *o, const struct oracle_write *w)
{
	return w->done == ORACLE_NEVER ? o->halves : !w->ok;
}

/* Whether write b, seen beside a in one bucket, shows a part of a bucket: a covers b's sector too,
 * and b is surely older or covers a's sector as well. */
static bool is_torn(
	const struct oracle *o, uint32_t a, uint32_t sector_a, uint32_t b, uint32_t sector_b)
{
	const struct oracle_write *x = &o->writes[a], *y = &o->writes[b];
	bool x_covers = sector_b >= x->first && sector_b < x->first + x->nr;
	bool y_covers = sector_a >= y->first && sector_a < y->first + y->nr;

	if (x->era != o->era || y->era != o->era || !x_covers)
		return false;
	if (may_be_half_done(o, x) || may_be_half_done(o, y))
		return false;
	return y_covers || (y->ok && y->done < x->issue);
}

static bool check_bucket(struct oracle *o, uint64_t begin, uint32_t volume, uint32_t first,
	const uint32_t *found, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < nr; j++)
			if (found[i] != found[j] && found[i] != UNKNOWN && found[j] != UNKNOWN &&
			    is_torn(o, found[i], first + i, found[j], first + j)) {
				say(o, "half of a bucket was written: sector %u has write %u, but ",
					first + i, found[i]);
				return wrong(
					o, begin, volume, first + j, found[j], "there was read");
			}
	return true;
}

uint64_t oracle_read_begin(struct oracle *o)
{
	assert(o->nr_reading < ORACLE_READS);
	o->reading[o->nr_reading++] = oracle_now(o);
	return o->clock;
}

void oracle_read_drop(struct oracle *o, uint64_t begin)
{
	uint32_t i = 0;

	oracle_now(o);
	while (o->reading[i] != begin)
		i++;
	o->reading[i] = o->reading[--o->nr_reading];
}

bool oracle_read_end(struct oracle *o, uint64_t begin, uint32_t volume, uint32_t first, uint32_t nr,
		     const void *(*get)(void *arg, uint32_t i), void *arg)
{
	uint32_t found[BUCKET], in = 0;

	oracle_read_drop(o, begin);
	o->error[0] = '\0';
	for (uint32_t i = 0; i < nr; i++) {
		if (!read_sector(o, begin, volume, first + i, get(arg, i), &found[in++]))
			return false;
		if ((first + i + 1) % BUCKET && i + 1 < nr)
			continue;
		if (o->atomic_buckets &&
			!check_bucket(o, begin, volume, first + i + 1 - in, found, in))
			return false;
		in = 0;
	}
	return true;
}

/* ---- flushes and losses ---- */

void oracle_flush_end(struct oracle *o, uint64_t begin, uint32_t volume)
{
	oracle_now(o);
	for (uint32_t v = 0; v < o->nr_volumes; v++)
		if ((volume == v || volume == ORACLE_VOLUMES) && begin > o->flushed[v])
			o->flushed[v] = begin;
}

/* What a store has of a sector, or would have: none that holds may be surely newer. */
static bool sector_holds(struct oracle *o, uint32_t volume, uint32_t sector, const void *data,
	holds_fn holds, const char *stale, const char *stale_zeroes)
{
	uint32_t head = o->head[volume][sector];
	struct oracle_content c;
	const char *why;

	if (!parse(o, data, &c, &why))
		return wrong(o, o->clock, volume, sector, c.write, why);
	for (uint32_t i = head; i; i = value(o, i)->next)
		if (is_same(&value(o, i)->content, &c) && !is_buried(o, head, value(o, i), holds))
			return true;
	return wrong(o, o->clock, volume, sector, c.write,
		why_none(volume, sector, &c, stale, stale_zeroes));
}

bool oracle_durable(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	const void *(*get)(void *arg, uint32_t i), void *arg)
{
	o->error[0] = '\0';
	for (uint32_t i = 0; i < nr; i++)
		if (!sector_holds(o, volume, first + i, get(arg, i), is_durable,
			    "a loss of power would leave what is older than what was promised",
			    "a loss of power would leave zeroes, older than what was promised"))
			return false;
	return true;
}

bool oracle_stored(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	const void *(*get)(void *arg, uint32_t i), void *arg)
{
	o->error[0] = '\0';
	for (uint32_t i = 0; i < nr; i++)
		if (!sector_holds(o, volume, first + i, get(arg, i), is_acknowledged,
				  "the store has what is older than a write that waited for it",
				  "the store has zeroes, older than a write that waited for it"))
			return false;
	return true;
}

static void sector_power_loss(struct oracle *o, uint32_t volume, uint32_t sector, uint64_t now)
{
	uint32_t head = o->head[volume][sector], i, next;

	/* two passes: whether one is buried depends on the others */
	for (i = head; i; i = value(o, i)->next) {
		value(o, i)->durable = is_durable(o, value(o, i));
		value(o, i)->certain = !is_buried(o, head, value(o, i), is_durable);
	}
	o->head[volume][sector] = 0;
	for (i = head; i; i = next) {
		struct oracle_value *u = value(o, i);

		next = u->next;
		u->next = u->certain ? o->head[volume][sector] : o->free_value;
		if (u->certain)
			o->head[volume][sector] = i;
		else
			o->free_value = i;
		u->certain = false;
		u->stale = ORACLE_NEVER;
		u->by = u->by < now ? u->by : now;
	}
}

void oracle_power_loss(struct oracle *o)
{
	uint64_t now = oracle_now(o);

	for (uint32_t w = 0; w < o->nr_writes; w++)
		if (o->writes[w].done == ORACLE_NEVER)
			o->writes[w].done = now;
	for (uint32_t v = 0; v < o->nr_volumes; v++)
		for (uint32_t s = 0; s < o->sectors[v]; s++)
			sector_power_loss(o, v, s, now);
	o->nr_reading = 0;
	o->era++;
}
