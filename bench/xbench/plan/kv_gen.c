/* kv_gen - see kv_gen.h. */
#include "bench/xbench/plan/kv_gen.h"

#include <math.h>
#include <string.h>

#include "bench/xbench/plan/kv_options.h"
#include "peers/common/options/hex.h"

static uint64_t threshold(uint32_t percent)
{
	return ((uint64_t)percent << 32) / 100;
}

static void set_mix(struct xb_kv_gen *g, const struct xb_options *o)
{
	uint32_t op, sum = 0;

	for (op = 0; op < XB_NR_OPS; op++) {
		sum += o->mix[op];
		g->mix_below[op] = o->mix[op] ? threshold(sum) : 0;
	}
	g->mixed = sum > 0;
	g->read_below = threshold(o->rw == XB_RW_GET	  ? 100
				  : o->rw == XB_RW_GETPUT ? o->rwmixread
							  : 0);
}

/* All jobs together do as many operations as there are keys, if nothing else ends them. */
static uint64_t share(const struct xb_options *o, uint32_t job)
{
	return o->kv.keys / o->numjobs + (job < o->kv.keys % o->numjobs);
}

void xb_kv_gen_init(struct xb_kv_gen *g, const struct xb_options *o, uint32_t job)
{
	memset(g, 0, sizeof(*g));
	g->opts = o;
	g->job = job;
	g->seed = xb_mix(xb_mix(o->randseed) + job + 1);
	g->counters = xb_kv_counters(o);
	g->ios_max = o->number_ios ? o->number_ios : o->runtime ? 0 : share(o, job);
	set_mix(g, o);
	if (o->zipf > 0)
		xb_zipf_init(&g->zipf, o->zipf, o->kv.keys);
	xb_kv_gen_restart(g);
}

void xb_kv_gen_restart(struct xb_kv_gen *g)
{
	g->rng = g->seed;
	g->ios = 0;
}

static enum xb_op choose_op(struct xb_kv_gen *g)
{
	uint32_t draw, op;

	if (g->mixed) {
		draw = (uint32_t)xb_random(&g->rng);
		for (op = 0; op < XB_NR_OPS; op++)
			if (draw < g->mix_below[op])
				return op;
	}
	return (uint32_t)xb_random(&g->rng) < g->read_below ? XB_READ : XB_WRITE;
}

static uint64_t choose_key(struct xb_kv_gen *g, enum xb_op op)
{
	const struct xb_options *o = g->opts;
	uint64_t rank;

	if (o->rw == XB_RW_FILL)
		return g->job + (g->ios - 1) * o->numjobs;
	if (op == XB_INCR)
		return o->kv.keys + xb_random_below(&g->rng, g->counters);
	if (o->zipf <= 0)
		return xb_random_below(&g->rng, o->kv.keys);
	rank = xb_zipf_rank(&g->zipf, &g->rng) - 1;
	return (uint64_t)((unsigned __int128)rank * g->zipf.step % o->kv.keys);
}

static uint32_t choose_bytes(struct xb_kv_gen *g)
{
	const struct xb_options *o = g->opts;
	uint64_t least = o->verify ? XB_STAMPED_MIN : 1;
	double bytes;

	if (!o->kv.is_exp)
		return (uint32_t)o->kv.value_size;
	bytes = -log1p(-(double)(xb_random(&g->rng) >> 11) * 0x1p-53) * (double)o->kv.value_size;
	if (bytes >= (double)o->kv.value_max)
		return (uint32_t)o->kv.value_max;
	return (uint64_t)bytes < least ? (uint32_t)least : (uint32_t)bytes;
}

static bool has_value(enum xb_op op)
{
	return op == XB_WRITE || op == XB_ADD || op == XB_CAS;
}

bool xb_kv_gen_next(struct xb_kv_gen *g, struct xb_kv_io *io)
{
	if (g->ios_max && g->ios >= g->ios_max)
		return false;
	g->ios++;
	*io = (struct xb_kv_io){ .op = choose_op(g), .seq = ++g->seq };
	if (io->op == XB_FLUSH)
		return true;
	io->key = choose_key(g, io->op);
	if (has_value(io->op))
		io->bytes = choose_bytes(g);
	return true;
}

/* ---- names ------------------------------------------------------------------------------- */

void xb_kv_name_begin(char *name, uint64_t key_size)
{
	memset(name, 'k', key_size);
}

void xb_kv_name(char *name, uint64_t key_size, uint64_t key)
{
	char digits[HEX_DIGITS];

	hex_digits(digits, key);
	if (key_size >= HEX_DIGITS)
		memcpy(name + key_size - HEX_DIGITS, digits, HEX_DIGITS);
	else
		memcpy(name, digits + HEX_DIGITS - key_size, key_size);
}
