/* memd_model - see memd_model.h for its purpose and its contract. */
#include "peers/memd/memd_model.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/opt.h"

#define NS_PER_S    UINT64_C(1000000000)
#define CHANCE_ONE  (UINT64_C(1) << 32)
#define FAULT_CHARS 80

/* ---- faults ------------------------------------------------------------------------------ */

static int parse_op(const char *text, struct memd_fault *f)
{
	uint32_t op;

	f->op = MEMD_OP_ANY;
	if (!strcmp(text, "any"))
		return 0;
	for (op = 0; op < XSEG_NR_OPS; op++)
		if (op != XSEG_OP_ADMIN && !strcmp(text, xseg_op_name((enum xseg_op)op))) {
			f->op = op;
			return 0;
		}
	return -EINVAL;
}

static int parse_chance(char *text, struct memd_fault *f)
{
	char *at = strchr(text, '@');
	char *end;
	double value;

	if (at) {
		*at++ = '\0';
		if (!isdigit((unsigned char)*at))
			goto out_nth;
		f->nth = strtoull(at, &end, 10);
		if (*end || !f->nth)
			goto out_nth;
	}
	if (!isdigit((unsigned char)*text) && *text != '.')
		return -EINVAL;
	value = strtod(text, &end);
	if (*end == '%') {
		value /= 100;
		end++;
	}
	if (*end || !(value >= 0 && value <= 1))
		return -EINVAL;
	f->chance = (uint64_t)(value * (double)CHANCE_ONE);
	return 0;
out_nth:
	at[-1] = '@';			/* the message shows all of it */
	return -EINVAL;
}

static int parse_what(const char *text, struct memd_fault *f)
{
	const char *name;
	int e;

	if (!strncmp(text, "stall=", 6)) {
		f->kind = MEMD_FAULT_STALL;
		return opt_parse_time(text + 6, &f->stall_ns) || f->stall_ns > MEMD_DELAY_MAX_NS ?
			       -EINVAL : 0;
	}
	if (!strcmp(text, "short")) {
		f->kind = MEMD_FAULT_SHORT;
		return 0;
	}
	f->kind = MEMD_FAULT_ERROR;
	for (e = 1; e < 134; e++) {
		name = strerrorname_np(e);
		if (name && !strcmp(name, text)) {
			f->error = -e;
			return 0;
		}
	}
	return -EINVAL;
}

int memd_fault_parse(const char *text, struct memd_fault *f, struct xseg_error *err)
{
	char copy[FAULT_CHARS], *chance, *what;

	memset(f, 0, sizeof(*f));
	if (strlen(text) >= sizeof(copy))
		return xseg_fail(err, -EINVAL, "fail: '%.40s...' is too long", text);
	memcpy(copy, text, strlen(text) + 1);
	chance = strchr(copy, ':');
	what = chance ? strchr(chance + 1, ':') : NULL;
	if (!what)
		return xseg_fail(err, -EINVAL,
			"fail: '%s' is not OP:PROBABILITY[@NTH]:ERRNO, as in write:0.01:EIO", text);
	*chance++ = '\0';
	*what++ = '\0';
	if (parse_op(copy, f))
		return xseg_fail(err, -EINVAL,
			"fail: '%s' is not an operation; use read, write, flush, discard, "
			"write_zeroes, copy, info, delete, list or any", copy);
	if (parse_chance(chance, f))
		return xseg_fail(err, -EINVAL,
			"fail: '%s' is not a probability; use a number such as 0.01 or 5%%, with "
			"@N for the Nth only, from 1", chance);
	if (parse_what(what, f))
		return xseg_fail(err, -EINVAL,
			"fail: '%s' is not an error; use a name such as EIO, short, or stall=TIME "
			"of 1h at most", what);
	return 0;
}

static bool same_fault(const struct memd_fault *a, const struct memd_fault *b)
{
	return a->op == b->op && a->chance == b->chance && a->nth == b->nth && a->kind == b->kind &&
	       a->error == b->error && a->stall_ns == b->stall_ns;
}

static int parse_lines(const char *lines, struct memd_fault *fault, uint32_t *nr,
	struct xseg_error *err)
{
	char line[FAULT_CHARS];
	size_t len;
	int rc;

	for (*nr = 0; *lines; lines += len + (lines[len] == '\n')) {
		len = strcspn(lines, "\n");
		if (*nr == MEMD_FAULTS_MAX)
			return xseg_fail(err, -EINVAL,
				"fail: more than %u faults at a time; give fewer",
				MEMD_FAULTS_MAX);
		if (len >= sizeof(line))
			return xseg_fail(err, -EINVAL, "fail: '%.40s...' is too long", lines);
		memcpy(line, lines, len);
		line[len] = '\0';
		rc = memd_fault_parse(line, &fault[*nr], err);
		if (rc)
			return rc;
		(*nr)++;
	}
	return 0;
}

/* ---- setting ----------------------------------------------------------------------------- */

static void update_active_locked(struct memd_model *m)
{
	const struct memd_timing *t = &m->timing;

	atomic_store_explicit(&m->active,
		t->latency_ns || t->jitter_ns || t->bandwidth || t->iops || m->nr_faults,
		memory_order_relaxed);
}

int memd_model_check_faults(const char *lines, struct xseg_error *err)
{
	struct memd_fault fault[MEMD_FAULTS_MAX];
	uint32_t nr;

	return parse_lines(lines, fault, &nr, err);
}

int memd_model_set_faults(struct memd_model *m, const char *lines, struct xseg_error *err)
{
	struct memd_fault fault[MEMD_FAULTS_MAX];
	uint32_t nr, i;
	int rc = parse_lines(lines, fault, &nr, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < nr; i++) {
		if (i < m->nr_faults && same_fault(&fault[i], &m->fault[i]))
			fault[i].seen = m->fault[i].seen;
		m->fault[i] = fault[i];
	}
	m->nr_faults = nr;
	update_active_locked(m);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

void memd_model_set_timing(struct memd_model *m, const struct memd_timing *timing)
{
	pthread_mutex_lock(&m->lock);
	if (m->timing.iops != timing->iops)
		m->by_iops = (struct memd_server){ 0 };
	if (m->timing.bandwidth != timing->bandwidth)
		m->by_bytes = (struct memd_server){ 0 };
	m->timing = *timing;
	update_active_locked(m);
	pthread_mutex_unlock(&m->lock);
}

void memd_model_set_seed(struct memd_model *m, uint64_t seed)
{
	pthread_mutex_lock(&m->lock);
	m->random = seed;
	pthread_mutex_unlock(&m->lock);
}

void memd_model_init(struct memd_model *m, const struct memd_timing *timing, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	pthread_mutex_init(&m->lock, NULL);
	memd_model_set_timing(m, timing);
	memd_model_set_seed(m, seed);
}

void memd_model_fini(struct memd_model *m)
{
	pthread_mutex_destroy(&m->lock);
}

/* ---- a request --------------------------------------------------------------------------- */

/* splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): any seed is a good one. */
static uint64_t random_next(struct memd_model *m)
{
	uint64_t x = m->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The server takes `amount` at `rate` a second; returns when it has done it. */
static uint64_t server_take(struct memd_server *s, uint64_t amount, uint64_t rate, uint64_t now_ns)
{
	unsigned __int128 work;

	if (!rate)
		return now_ns;
	if (s->free_ns < now_ns)
		*s = (struct memd_server){ .free_ns = now_ns };
	work = (unsigned __int128)amount * NS_PER_S + s->rest;
	s->free_ns += (uint64_t)(work / rate);
	s->rest = (uint64_t)(work % rate);
	return s->free_ns;
}

static bool fault_fires(struct memd_model *m, struct memd_fault *f, enum xseg_op op)
{
	if (f->op != MEMD_OP_ANY && f->op != op)
		return false;
	f->seen++;
	if (f->nth && f->seen != f->nth)
		return false;
	return random_next(m) >> 32 < f->chance;
}

static void faults_ask(struct memd_model *m, enum xseg_op op, struct memd_verdict *v)
{
	struct memd_fault *f;
	bool decided = false;

	for (f = m->fault; f < m->fault + m->nr_faults; f++) {
		if (!fault_fires(m, f, op))
			continue;
		if (f->kind == MEMD_FAULT_STALL) {
			v->due_ns += f->stall_ns;
			continue;
		}
		if (decided)
			continue;
		decided = true;
		v->error = f->error;
		v->cut = f->kind == MEMD_FAULT_SHORT;
	}
}

struct memd_verdict memd_model_begin(struct memd_model *m, enum xseg_op op, uint32_t size,
	uint64_t now_ns)
{
	struct memd_verdict v = { .due_ns = now_ns };
	uint64_t by_bytes;

	if (!memd_model_active(m))
		return v;
	pthread_mutex_lock(&m->lock);
	v.due_ns = server_take(&m->by_iops, 1, m->timing.iops, now_ns);
	by_bytes = server_take(&m->by_bytes, size, m->timing.bandwidth, now_ns);
	if (by_bytes > v.due_ns)
		v.due_ns = by_bytes;
	v.due_ns += m->timing.latency_ns;
	if (m->timing.jitter_ns)
		v.due_ns += (uint64_t)((unsigned __int128)random_next(m) *
					       (m->timing.jitter_ns + (unsigned __int128)1) >>
				       64);
	faults_ask(m, op, &v);
	pthread_mutex_unlock(&m->lock);
	return v;
}
