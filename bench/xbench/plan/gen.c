/* gen - see gen.h. */
#include "bench/xbench/plan/gen.h"

#include <math.h>
#include <string.h>

/* ---- zipf -------------------------------------------------------------------------------- */

/* (e^x - 1) / x and log(1 + x) / x, whole near 0 */
static double expm1_by(double x)
{
	return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2;
}

static double log1p_by(double x)
{
	return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x / 2;
}

/* The integral of x^-exponent, and its inverse. */
static double integral(const struct xb_zipf *z, double x)
{
	double lx = log(x);

	return expm1_by((1 - z->exponent) * lx) * lx;
}

static double integral_inverse(const struct xb_zipf *z, double y)
{
	double t = y * (1 - z->exponent);

	if (t < -1)
		t = -1;
	return exp(log1p_by(t) * y);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void xb_zipf_init(struct xb_zipf *z, double exponent, uint64_t n)
{
	z->exponent = exponent;
	z->n = n;
	z->h_x1 = integral(z, 1.5) - 1;
	z->h_n = integral(z, (double)n + 0.5);
	z->s = 2 - integral_inverse(z, integral(z, 2.5) - pow(2, -exponent));
	z->step = (uint64_t)((double)n * 0.6180339887498949);
	while (z->step == 0 || gcd(z->step, n) != 1)
		z->step++;
}

uint64_t xb_zipf_rank(const struct xb_zipf *z, uint64_t *rng)
{
	double u, x, k;

	for (;;) {
		u = z->h_n + (double)(xb_random(rng) >> 11) * 0x1p-53 * (z->h_x1 - z->h_n);
		x = integral_inverse(z, u);
		k = floor(x + 0.5);
		if (k < 1)
			k = 1;
		else if (k > (double)z->n)
			k = (double)z->n;
		if (k - x <= z->s || u >= integral(z, k + 0.5) - exp(-log(k) * z->exponent))
			return (uint64_t)k;
	}
}

/* ---- the plan ---------------------------------------------------------------------------- */

static uint64_t threshold(uint32_t percent)
{
	return ((uint64_t)percent << 32) / 100;
}

static void set_mix(struct xb_gen *g, const struct xb_options *o)
{
	static const enum xb_op others[] = {
		[XB_RW_READ] = XB_READ,     [XB_RW_WRITE] = XB_WRITE,
		[XB_RW_RANDREAD] = XB_READ, [XB_RW_RANDWRITE] = XB_WRITE,
		[XB_RW_RW] = XB_WRITE,      [XB_RW_RANDRW] = XB_WRITE,
		[XB_RW_TRIM] = XB_TRIM,     [XB_RW_RANDTRIM] = XB_TRIM,
	};
	uint32_t op, sum = 0;

	for (op = 0; op < XB_NR_OPS; op++) {
		sum += o->mix[op];
		g->mix_below[op] = o->mix[op] ? threshold(sum) : 0;
	}
	g->mixed = sum > 0;
	g->other = others[o->rw];
	g->read_below = o->rw == XB_RW_RW || o->rw == XB_RW_RANDRW ? threshold(o->rwmixread) : 0;
	g->random = o->rw == XB_RW_RANDREAD || o->rw == XB_RW_RANDWRITE || o->rw == XB_RW_RANDRW ||
		    o->rw == XB_RW_RANDTRIM;
}

static bool is_whole(const struct xb_gen *g)
{
	uint64_t bs = g->opts->bs_max;

	return g->nr_sizes == 1 && g->opts->bs_min == bs && g->length % bs == 0 &&
	       (g->boundary == 0 || (g->boundary % bs == 0 && g->start % bs == 0));
}

void xb_gen_init(struct xb_gen *g, const struct xb_options *o, uint64_t boundary, uint32_t job)
{
	memset(g, 0, sizeof(*g));
	g->opts = o;
	g->seed = xb_mix(xb_mix(o->randseed) + job + 1);
	g->start = o->offset + job * o->offset_increment;
	g->length = o->size;
	g->boundary = boundary;
	g->nr_blocks = (o->size + o->bs_min - 1) / o->bs_min;
	g->nr_sizes = (o->bs_max + o->bs_min - 1) / o->bs_min;
	g->whole = is_whole(g);
	set_mix(g, o);
	if (o->zipf > 0)
		xb_zipf_init(&g->zipf, o->zipf, g->nr_blocks);
	xb_gen_restart(g);
}

void xb_gen_restart(struct xb_gen *g)
{
	g->rng = g->seed;
	g->ios = g->bytes = 0;
	g->unsynced = 0;
	memset(g->next, 0, sizeof(g->next));
}

/* ---- one I/O ----------------------------------------------------------------------------- */

static enum xb_op choose_op(struct xb_gen *g)
{
	uint32_t draw, op;

	if (g->mixed) {
		draw = (uint32_t)xb_random(&g->rng);
		for (op = 0; op < XB_NR_OPS; op++)
			if (draw < g->mix_below[op])
				return op;
	}
	if (g->read_below && (uint32_t)xb_random(&g->rng) < g->read_below)
		return XB_READ;
	return g->other;
}

static uint64_t choose_block(struct xb_gen *g)
{
	uint64_t rank;

	if (g->opts->zipf <= 0)
		return xb_random_below(&g->rng, g->nr_blocks);
	rank = xb_zipf_rank(&g->zipf, &g->rng) - 1;
	return (uint64_t)((unsigned __int128)rank * g->zipf.step % g->nr_blocks);
}

/* Cuts what would leave the range or cross the boundary. at: from the start of the range. */
static uint32_t clip(const struct xb_gen *g, uint64_t at, uint64_t size)
{
	uint64_t room = g->length - at, in;

	if (g->boundary) {
		in = g->boundary - (g->start + at) % g->boundary;
		if (in < room)
			room = in;
	}
	return (uint32_t)(size < room ? size : room);
}

static uint64_t choose_size(struct xb_gen *g)
{
	uint64_t size;

	if (g->nr_sizes == 1)
		return g->opts->bs_max;
	size = (1 + xb_random_below(&g->rng, g->nr_sizes)) * g->opts->bs_min;
	return size < g->opts->bs_max ? size : g->opts->bs_max;
}

static void choose_place(struct xb_gen *g, struct xb_io *io)
{
	uint64_t at = g->random ? choose_block(g) * g->opts->bs_min : g->next[io->op];

	io->size = g->whole ? (uint32_t)g->opts->bs_max : clip(g, at, choose_size(g));
	io->offset = g->start + at;
	g->next[io->op] = at + io->size == g->length ? 0 : at + io->size;
	g->bytes += io->size;
}

/* Where a copy comes from (the object counts), or what is asked about. */
static uint64_t choose_any(struct xb_gen *g)
{
	return g->start + xb_random_below(&g->rng, g->nr_blocks) * g->opts->bs_min;
}

static bool is_over(const struct xb_gen *g)
{
	const struct xb_options *o = g->opts;

	if (o->number_ios)
		return g->ios >= o->number_ios;
	return !o->runtime && g->bytes >= o->size;
}

bool xb_gen_next(struct xb_gen *g, struct xb_io *io)
{
	*io = (struct xb_io){ .op = XB_FLUSH };
	if (g->opts->fsync && g->unsynced >= g->opts->fsync) {
		g->unsynced = 0;
		io->barrier = true;
	} else if (is_over(g)) {
		return false;
	} else {
		g->ios++;
		io->op = choose_op(g);
		if (io->op == XB_INFO)
			io->offset = choose_any(g);
		else if (io->op != XB_FLUSH)
			choose_place(g, io);
		if (io->op == XB_COPY)
			io->from = choose_any(g);
		if (io->op == XB_WRITE)
			g->unsynced++;
	}
	io->seq = ++g->seq;
	return true;
}
