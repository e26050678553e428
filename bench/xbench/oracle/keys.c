/* keys - see keys.h for the rule and the contract.
 *
 * Locks: a stripe's spin lock guards the facts of its keys, and its counters. The oracle's locks
 * may be taken while it is held, and the lock of the findings; not the other way.
 */
#include "bench/xbench/oracle/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench/xbench/plan/kv_options.h"
#include "peers/common/options/hex.h"

#define NR_STRIPES 1024u

const char *const xb_key_wrong_names[XB_NR_KEY_WRONG] = {
	[XB_KEY_STALE] = "stale",     [XB_KEY_UNDONE] = "undone",
	[XB_KEY_LOST] = "lost",	      [XB_KEY_TORN] = "torn",
	[XB_KEY_FOREIGN] = "foreign", [XB_KEY_REPEATED] = "repeated",
};

/* Of a key of which no change is out. */
enum state { UNKNOWN, ABSENT, PRESENT };

struct fact {
	uint64_t version, value;	/* the largest version told; its value, 0: not known */
	uint64_t cas_from, cas_to;		/* the latest cas that was done */
	uint32_t begun;				/* changes, modulo 2^32 */
	uint16_t out;				/* changes */
	uint8_t state;				/* after the change of `version` */
	bool unsure;		/* a change failed, and none that began later has been done alone */
	bool known;				/* there was an operation on it */
	uint8_t undone, lost;			/* counted as that, and may yet be stale */
};

struct counter {
	uint64_t begun, done, told;		/* incrs; the largest number told */
};

struct finding {
	enum xb_key_wrong wrong;
	enum xb_op op;
	uint64_t key, expected, found;
	char why[64];
};

struct stripe {
	_Alignas(64) atomic_flag lock;
};

struct xb_keys {
	const struct xb_options *opts;
	struct xb_oracle *oracle;
	struct xb_whose whose;
	_Atomic uint64_t *floors;
	struct fact *facts;
	uint64_t nr, facts_bytes;
	struct counter *counters;
	uint64_t *told_bits;			/* window bits for each counter: K2 of numbers */
	uint32_t nr_counters, window;
	struct stripe stripes[NR_STRIPES];
	_Alignas(64) _Atomic uint64_t wrong[XB_NR_KEY_WRONG];
	atomic_flag findings_lock;
	struct finding findings[XB_FINDINGS];
	uint32_t nr_findings;
};

/* ---- life -------------------------------------------------------------------------------- */

static uint64_t new_run(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int load(struct xb_keys *k, uint32_t nr_floors, struct xseg_error *err)
{
	const char *path = k->opts->verify_state;
	struct xb_state_head head;
	int rc = xb_state_load(path, &head, k->floors, nr_floors, &k->oracle, err);

	if (rc)
		return rc;
	if (head.target != k->whose.target || head.start || head.length != k->nr * XB_SECTOR)
		return xseg_fail(err, -EINVAL,
			"verify_state: %s was saved for another store, or other --keys or "
			"--key_size; give those of the run that saved it",
			path);
	k->whose = (struct xb_whose){
		.signature = head.signature, .run = head.run, .target = head.target
	};
	return 0;
}

/* Numbers of incrs in flight are apart by less than a window. */
static int make_counters(struct xb_keys *k, uint32_t nr_floors)
{
	k->nr_counters = xb_kv_counters(k->opts);
	if (!k->nr_counters)
		return 0;
	for (k->window = 64; k->window < 4 * nr_floors; k->window *= 2)
		;
	k->counters = calloc(k->nr_counters, sizeof(*k->counters));
	k->told_bits = calloc((size_t)k->nr_counters * k->window / 64, sizeof(*k->told_bits));
	return k->counters && k->told_bits ? 0 : -ENOMEM;
}

static int make_room(struct xb_keys *k, struct xseg_error *err)
{
	uint32_t nr_floors = k->opts->numjobs * k->opts->iodepth;

	k->floors = malloc(nr_floors * sizeof(*k->floors));
	k->facts = mmap(NULL, k->facts_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (k->facts == MAP_FAILED)
		k->facts = NULL;
	if (!k->floors || !k->facts || make_counters(k, nr_floors))
		return xseg_fail(err, -ENOMEM, "no memory to verify %" PRIu64
			" keys; give fewer --keys", k->nr);
	for (uint32_t i = 0; i < nr_floors; i++)
		atomic_init(&k->floors[i], XB_NOT_READING);
	if (k->opts->verify_only)
		return load(k, nr_floors, err);
	k->oracle = xb_oracle_create(0, k->nr * XB_SECTOR, k->floors, nr_floors, err);
	return k->oracle ? 0 : -ENOMEM;
}

struct xb_keys *xb_keys_create(const struct xb_options *o, uint64_t identity, int *rc,
			       struct xseg_error *err)
{
	struct xb_keys *k;

	*rc = *o->verify_state && !o->verify_only ? xb_state_may_save(o->verify_state, err) : 0;
	if (*rc)
		return NULL;
	k = aligned_alloc(64, (sizeof(*k) + 63) / 64 * 64);
	if (!k) {
		*rc = xseg_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	memset(k, 0, sizeof(*k));
	k->opts = o;
	k->nr = o->kv.keys;
	k->facts_bytes = k->nr * sizeof(*k->facts);
	k->whose = (struct xb_whose){
		.signature = xb_options_signature(o), .run = new_run(), .target = identity
	};
	*rc = make_room(k, err);
	if (!*rc)
		return k;
	xb_keys_destroy(k);
	return NULL;
}

void xb_keys_destroy(struct xb_keys *k)
{
	if (!k)
		return;
	xb_oracle_destroy(k->oracle);
	if (k->facts)
		munmap(k->facts, k->facts_bytes);
	free(k->floors);
	free(k->counters);
	free(k->told_bits);
	free(k);
}

bool xb_keys_is_full(struct xb_keys *k)
{
	return xb_oracle_is_full(k->oracle);
}

const struct xb_whose *xb_keys_whose(const struct xb_keys *k)
{
	return &k->whose;
}

void xb_keys_stamp(const struct xb_keys *k, void *value, uint32_t bytes, uint64_t key,
		   uint64_t tag)
{
	xb_value_write(value, bytes,
		&(struct xb_value_stamp){ .signature = k->whose.signature, .run = k->whose.run,
			.target = k->whose.target, .key = key, .tag = tag });
}

/* ---- locks and findings ------------------------------------------------------------------ */

static void lock(atomic_flag *flag)
{
	uint32_t spins = 0;

	/* acquire: partner is the release in unlock() */
	while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire))
		if (++spins % 128 == 0)
			sched_yield();
}

static void unlock(atomic_flag *flag)
{
	atomic_flag_clear_explicit(flag, memory_order_release);
}

static struct fact *enter(struct xb_keys *k, uint64_t key)
{
	lock(&k->stripes[key % NR_STRIPES].lock);
	return &k->facts[key];
}

static void leave(struct xb_keys *k, uint64_t key)
{
	unlock(&k->stripes[key % NR_STRIPES].lock);
}

/* Returns 1, for sums. */
static uint32_t report(struct xb_keys *k, enum xb_key_wrong wrong, const struct xb_try *t,
	uint64_t expected, uint64_t found, const char *why)
{
	struct finding f = {
		.wrong = wrong, .op = t->op, .key = t->key, .expected = expected, .found = found
	};

	snprintf(f.why, sizeof(f.why), "%s", why);
	atomic_fetch_add(&k->wrong[wrong], 1);
	lock(&k->findings_lock);
	if (k->nr_findings < XB_FINDINGS)
		k->findings[k->nr_findings++] = f;
	unlock(&k->findings_lock);
	return 1;
}

static void turn_into_stale(struct xb_keys *k, enum xb_key_wrong from, uint8_t *nr)
{
	atomic_fetch_sub(&k->wrong[from], *nr);
	atomic_fetch_add(&k->wrong[XB_KEY_STALE], *nr);
	*nr = 0;
}

/* ---- the register ------------------------------------------------------------------------ */

/* As xb_verify_read() does: the floor is there before the oracle counts a reader. */
static void read_begin(struct xb_keys *k, struct xb_try *t)
{
	atomic_store(&k->floors[t->slot], xb_oracle_now(k->oracle));
	t->read_issued = xb_oracle_read_begin(k->oracle, xb_value_offset(t->key), XB_SECTOR);
	atomic_store(&k->floors[t->slot], t->read_issued);
}

/* seen NULL: it proves nothing. */
static bool read_end(struct xb_keys *k, struct xb_try *t, const struct xb_seen *seen,
	struct xb_finding *f)
{
	bool right = xb_oracle_read_one(
		k->oracle, xb_value_offset(t->key), t->read_issued, seen, f);

	atomic_store(&k->floors[t->slot], XB_NOT_READING);
	t->read_issued = 0;
	return right;
}

/* What is wrong with what a read found; *suspect: that it may yet be stale. */
static enum xb_key_wrong kind_of(const struct xb_finding *f, bool *suspect)
{
	*suspect = false;
	if (f->wrong == XB_TORN)
		return XB_KEY_TORN;
	if (f->wrong == XB_MISPLACED)
		return XB_KEY_FOREIGN;
	*suspect = true;
	return f->kind == XB_SEEN_ZERO ? XB_KEY_LOST : XB_KEY_UNDONE;
}

/* Of a change: the read that its outcome implies. What it found wrong stays as it is. */
static uint32_t implied_read(struct xb_keys *k, struct xb_try *t, uint64_t value, const char *why)
{
	struct xb_seen seen = { .kind = XB_SEEN_OURS, .value = value, .run = k->whose.run,
		.offset = xb_value_offset(t->key) };
	struct xb_finding f;
	bool suspect;

	if (value == XB_VALUE_ZERO)
		xb_value_absent(&seen);
	if (read_end(k, t, value == XB_VALUE_UNKNOWN ? NULL : &seen, &f))
		return 0;
	return report(k, kind_of(&f, &suspect), t, f.expected, f.found, why);
}

/* ---- changes ----------------------------------------------------------------------------- */

static uint8_t state_of(const struct fact *fact)
{
	return fact->unsure ? UNKNOWN : fact->state;
}

void xb_keys_change_begin(struct xb_keys *k, struct xb_try *t, enum xb_op op, uint64_t key,
			  uint64_t value, uint64_t base)
{
	struct fact *fact;

	t->op = op;
	t->key = key;
	t->value = op == XB_DELETE ? XB_VALUE_ZERO : value;
	t->base = base;
	t->read_issued = 0;
	fact = enter(k, key);
	fact->known = true;
	fact->undone = fact->lost = 0;
	t->alone = fact->out++ == 0;
	t->begun = ++fact->begun;
	t->was = state_of(fact);
	t->floor = fact->version;
	t->base_value = fact->version == base ? fact->value : XB_VALUE_UNKNOWN;
	leave(k, key);
	if (op != XB_WRITE)
		read_begin(k, t);
	t->issued = xb_oracle_tick(k->oracle);
	xb_oracle_write_begin(k->oracle, xb_value_offset(key), XB_SECTOR, t->value, t->issued);
}

/* The version of a change that was done. */
static uint32_t check_version(struct xb_keys *k, const struct xb_try *t, const struct fact *fact,
	uint64_t version)
{
	uint32_t wrong = 0;

	if (!version)
		return 0;
	if (version <= t->floor)
		wrong += report(k, XB_KEY_UNDONE, t, t->floor, version, "its version went back");
	if (version > fact->cas_from && version < fact->cas_to)
		wrong += report(k, XB_KEY_STALE, t, fact->cas_to, version,
			"a cas was done over a change that it had not seen");
	if (t->op == XB_CAS && fact->version > t->base && fact->version < version)
		wrong += report(k, XB_KEY_STALE, t, fact->version, t->base,
			"a cas was done on a version that was not the last");
	return wrong;
}

/* A change that was done, or refused, with nothing else out on the key: its cause is known. */
static uint32_t check_cause(struct xb_keys *k, const struct xb_try *t, bool done)
{
	bool had_base = t->was == PRESENT && t->floor == t->base;

	switch (t->op) {
	case XB_ADD:
		if (done ? t->was == PRESENT : t->was == ABSENT)
			return report(k, done ? XB_KEY_LOST : XB_KEY_REPEATED, t, t->floor, 0,
				done ? "an add was done, and the key was there"
				     : "an add was refused, and the key was absent");
		return 0;
	case XB_CAS:
		if (done && t->was != UNKNOWN && !had_base)
			return report(k, XB_KEY_STALE, t, t->floor, t->base,
				"a cas was done, and the key had another version");
		if (!done && had_base)
			return report(k, XB_KEY_REPEATED, t, t->floor, t->base,
				"a cas was refused, and the key had that version");
		return 0;
	case XB_DELETE:
		if (done && t->was == ABSENT)
			return report(k, XB_KEY_UNDONE, t, 0, t->floor,
				"a delete was done, and the key was absent");
		return 0;			/* not done: the read of "absent" shows it */
	default:
		return 0;
	}
}

static void note_version(struct fact *fact, uint64_t version, uint64_t value, enum state state)
{
	if (version <= fact->version)
		return;
	fact->version = version;
	fact->value = value;
	fact->state = state;
}

static uint32_t change_done(struct xb_keys *k, struct xb_try *t, struct fact *fact, bool quiet,
	uint64_t version)
{
	uint32_t wrong = check_version(k, t, fact, version);

	/* one finding for one cause */
	if (quiet && !wrong)
		wrong += check_cause(k, t, true);
	if (quiet)
		fact->unsure = false;
	if (!version)
		fact->unsure = true;		/* who is the last is not known */
	if (t->op == XB_CAS && version > fact->cas_to) {
		fact->cas_from = t->base;
		fact->cas_to = version;
	}
	note_version(fact, version, t->value, t->op == XB_DELETE ? ABSENT : PRESENT);
	return wrong;
}

static bool is_refusal(const struct xb_try *t, int64_t result)
{
	return (t->op == XB_ADD && result == -EEXIST) ||
	       (t->op == XB_CAS && (result == -EEXIST || result == -ENOENT)) ||
	       (t->op == XB_DELETE && result == -ENOENT);
}

/* What a change that was done, or refused, saw of the key. */
static uint64_t value_seen(const struct xb_try *t, int64_t result)
{
	if (result == -ENOENT || (t->op == XB_ADD && result == 0))
		return XB_VALUE_ZERO;
	return t->op == XB_CAS && result == 0 ? t->base_value : XB_VALUE_UNKNOWN;
}

uint32_t xb_keys_change_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told)
{
	bool refused = is_refusal(t, told->result), failed = told->result < 0 && !refused, quiet;
	uint64_t offset = xb_value_offset(t->key);
	uint32_t wrong = 0;
	struct fact *fact = enter(k, t->key);

	quiet = t->alone && fact->begun == t->begun;
	fact->out--;
	if (failed)
		fact->unsure = true;
	else if (!refused)
		wrong += change_done(k, t, fact, quiet, told->version);
	else if (quiet)
		wrong += check_cause(k, t, false);
	leave(k, t->key);
	if (refused && !xb_oracle_write_refused(k->oracle, offset, t->issued))
		wrong += report(k, XB_KEY_REPEATED, t, 0, t->value,
			"it was refused, and its value was read");
	if (t->read_issued && wrong)
		read_end(k, t, NULL, NULL);
	else if (t->read_issued)
		wrong += implied_read(k, t,
			failed ? XB_VALUE_UNKNOWN : value_seen(t, told->result),
			refused ? "it was not done, for the key was absent"
				: "it was done on a value that the key cannot have held");
	if (!refused)
		xb_oracle_write_end(k->oracle, offset, XB_SECTOR, t->issued, !failed);
	return wrong;
}

/* ---- gets -------------------------------------------------------------------------------- */

void xb_keys_get_begin(struct xb_keys *k, struct xb_try *t, enum xb_op op, uint64_t key)
{
	struct fact *fact;

	t->op = op;
	t->key = key;
	fact = enter(k, key);
	fact->known = true;
	t->alone = fact->out == 0;
	t->begun = fact->begun;
	t->was = state_of(fact);
	t->floor = fact->version;
	leave(k, key);
	read_begin(k, t);
}

/* A value that the register allows: its version has to fit, too. */
static uint32_t right_value(struct xb_keys *k, const struct xb_try *t, struct fact *fact,
	uint64_t version, uint64_t value)
{
	turn_into_stale(k, XB_KEY_UNDONE, &fact->undone);
	turn_into_stale(k, XB_KEY_LOST, &fact->lost);
	if (!version)
		return 0;
	if (version < t->floor)
		return report(k, XB_KEY_STALE, t, t->floor, version,
			"an older version than was told before");
	if (version == fact->version && fact->value && value != fact->value)
		return report(k, XB_KEY_FOREIGN, t, fact->value, value,
			"one version has two values");
	note_version(fact, version, value, PRESENT);
	return 0;
}

static uint32_t wrong_value(struct xb_keys *k, const struct xb_try *t, struct fact *fact,
	const struct xb_finding *f)
{
	bool suspect;
	enum xb_key_wrong wrong = kind_of(f, &suspect);
	uint8_t *nr = wrong == XB_KEY_LOST ? &fact->lost : &fact->undone;

	if (t->again)
		return 0;
	if (suspect && *nr < UINT8_MAX)
		++*nr;
	return report(k, wrong, t, f->expected, f->found,
		f->found_offset != f->offset && wrong == XB_KEY_FOREIGN ? "of another key" : "");
}

/* It is there; which value it has is not told. */
static uint32_t exists(struct xb_keys *k, const struct xb_try *t, const struct fact *fact)
{
	bool quiet = t->alone && fact->begun == t->begun;

	return quiet && t->was == ABSENT
		       ? report(k, XB_KEY_UNDONE, t, 0, 0, "the key was absent")
		       : 0;
}

uint32_t xb_keys_get_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told,
			 const struct xb_seen *seen)
{
	struct xb_finding f = { 0 };
	struct xb_seen absent;
	struct fact *fact;
	uint32_t wrong = 0;
	bool right;

	xb_value_absent(&absent);
	if (told->result == -ENOENT)
		seen = &absent;
	else if (told->result < 0)
		seen = NULL;
	right = read_end(k, t, seen, &f);
	fact = enter(k, t->key);
	if (!right)
		wrong = wrong_value(k, t, fact, &f);
	else if (seen)
		wrong = right_value(k, t, fact, seen == &absent ? 0 : told->version, seen->value);
	else if (told->result >= 0)
		wrong = exists(k, t, fact);
	leave(k, t->key);
	return wrong;
}

/* ---- counters ---------------------------------------------------------------------------- */

static struct counter *enter_counter(struct xb_keys *k, uint64_t key)
{
	lock(&k->stripes[key % NR_STRIPES].lock);
	return &k->counters[key - k->nr];
}

/* Whether a number is told for the first time, as far as the window reaches. */
static bool is_new(struct xb_keys *k, struct counter *c, uint64_t number)
{
	uint64_t *bits = k->told_bits + (size_t)(c - k->counters) * (k->window / 64);
	uint64_t from = c->told + 1, at;

	if (number + k->window <= c->told)
		return true;
	if (number >= from + k->window)
		from = number - k->window + 1;
	for (; from <= number; from++) {
		at = from % k->window;
		bits[at / 64] &= ~(1ull << at % 64);
	}
	at = number % k->window;
	if (bits[at / 64] >> at % 64 & 1)
		return false;
	bits[at / 64] |= 1ull << at % 64;
	return true;
}

void xb_keys_incr_begin(struct xb_keys *k, struct xb_try *t, uint64_t key)
{
	struct counter *c = enter_counter(k, key);

	t->op = XB_INCR;
	t->key = key;
	t->floor = c->told;
	c->begun++;
	leave(k, key);
}

uint32_t xb_keys_incr_end(struct xb_keys *k, struct xb_try *t, const struct xb_told *told)
{
	struct counter *c = enter_counter(k, t->key);
	uint64_t number = told->number;
	uint32_t wrong = 0;

	if (told->result == -ENOENT)
		wrong = report(k, XB_KEY_LOST, t, c->told, 0, "the counter is not there");
	if (told->result < 0)
		goto out;			/* done or not */
	c->done++;
	if (number <= t->floor)
		wrong = report(k, XB_KEY_UNDONE, t, t->floor + 1, number,
			"the number was told before the incr was issued");
	else if (number > c->begun)
		wrong = report(k, XB_KEY_REPEATED, t, c->begun, number,
			"a number larger than that of all incrs");
	else if (!is_new(k, c, number))
		wrong = report(k, XB_KEY_REPEATED, t, c->told, number, "a number was told twice");
	if (number > c->told)
		c->told = number;
out:
	leave(k, t->key);
	return wrong;
}

uint32_t xb_keys_counter(struct xb_keys *k, uint64_t key, bool absent, uint64_t number)
{
	struct xb_try t = { .op = XB_READ, .key = key };
	struct counter *c = enter_counter(k, key);
	uint64_t least = c->done > c->told ? c->done : c->told;
	uint32_t wrong = 0;

	if (absent)
		wrong = report(k, XB_KEY_LOST, &t, least, 0, "the counter is not there");
	else if (number < least)
		wrong = report(k, XB_KEY_UNDONE, &t, least, number, "a counter is too small");
	else if (number > c->begun)
		wrong = report(k, XB_KEY_REPEATED, &t, c->begun, number, "a counter is too large");
	leave(k, key);
	return wrong;
}

/* ---- afterwards -------------------------------------------------------------------------- */

bool xb_keys_is_known(struct xb_keys *k, uint64_t key)
{
	bool known;

	if (key >= k->nr)
		return key < k->nr + k->nr_counters;
	known = enter(k, key)->known;
	leave(k, key);
	return known || (k->opts->verify_only &&
			 xb_oracle_any_known(k->oracle, xb_value_offset(key), XB_SECTOR));
}

bool xb_keys_is_suspect(struct xb_keys *k, uint64_t key)
{
	struct fact *fact;
	bool suspect;

	if (key >= k->nr)
		return false;
	fact = enter(k, key);
	suspect = fact->undone || fact->lost;
	leave(k, key);
	return suspect;
}

/* What the oracle found when an end was reported late is stale. */
uint64_t xb_keys_wrong(struct xb_keys *k, enum xb_key_wrong wrong)
{
	return atomic_load(&k->wrong[wrong]) +
	       (wrong == XB_KEY_STALE ? xb_oracle_wrong(k->oracle, XB_STALE) : 0);
}

uint64_t xb_keys_wrong_in_all(struct xb_keys *k)
{
	uint64_t sum = 0;

	for (enum xb_key_wrong wrong = 0; wrong < XB_NR_KEY_WRONG; wrong++)
		sum += xb_keys_wrong(k, wrong);
	return sum;
}

static void describe(uint64_t what, char *out, size_t size)
{
	if (what == XB_VALUE_ZERO)
		snprintf(out, size, "absent");
	else if (what == XB_VALUE_UNKNOWN || what & XB_VALUE_OTHER)
		snprintf(out, size, "a value that is not of the run");
	else if (what == XB_VALUE_ANY)
		snprintf(out, size, "a value of the run");
	else
		snprintf(out, size, "the value of job %u, operation %" PRIu64, xb_value_job(what),
			xb_value_seq(what));
}

static void print_one(const struct xb_keys *k, const struct finding *f)
{
	static const char *const ops[XB_NR_OPS] = {
		[XB_READ] = "get", [XB_WRITE] = "put", [XB_DELETE] = "delete", [XB_ADD] = "add",
		[XB_CAS] = "cas", [XB_INCR] = "incr", [XB_EXISTS] = "exists"
	};
	char expected[64], found[64], name[HEX_DIGITS + 1] = "";

	hex_digits(name, f->key);
	fprintf(stderr, "xbench: verify: %s: %s of key %s", xb_key_wrong_names[f->wrong],
		ops[f->op], name + HEX_DIGITS -
		(k->opts->kv.key_size < HEX_DIGITS ? k->opts->kv.key_size : HEX_DIGITS));
	if (*f->why && f->wrong != XB_KEY_FOREIGN) {
		fprintf(stderr, ": %s (%" PRIu64 ", %" PRIu64 ")\n", f->why, f->expected,
			f->found);
		return;
	}
	describe(f->expected, expected, sizeof(expected));
	describe(f->found, found, sizeof(found));
	fprintf(stderr, ": expected %s, found %s%s%s\n", expected, found, *f->why ? ", " : "",
		f->why);
}

void xb_keys_print(struct xb_keys *k)
{
	const char *comma = "";

	for (uint32_t i = 0; i < k->nr_findings; i++)
		print_one(k, &k->findings[i]);
	if (!xb_keys_wrong_in_all(k))
		return;
	fprintf(stderr, "xbench: verify: ");
	for (enum xb_key_wrong wrong = 0; wrong < XB_NR_KEY_WRONG; wrong++, comma = ", ")
		fprintf(stderr, "%s%" PRIu64 " %s", comma, xb_keys_wrong(k, wrong),
			xb_key_wrong_names[wrong]);
	fprintf(stderr, " answers\n");
}

int xb_keys_save(struct xb_keys *k, struct xseg_error *err)
{
	struct xb_state_head head = {
		.signature = k->whose.signature, .run = k->whose.run, .target = k->whose.target
	};

	return xb_state_save(k->opts->verify_state, &head, k->oracle, err);
}
