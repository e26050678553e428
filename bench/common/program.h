/* program.h - shared by the programs of bench that take options only: main(), rows of options, the
 * CPUs of their threads, random numbers and the clock.
 *
 * Contract: bench_main() is called once, by main(). The other functions may be called by any
 * thread.
 */
#ifndef BENCH_COMMON_PROGRAM_H
#define BENCH_COMMON_PROGRAM_H

#include <stdint.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/cpus.h"

enum bench_rw { RANDREAD, RANDWRITE };
extern const char *const bench_rw_names[];

/* The value of --cpus. */
struct bench_cpus {
	char text[256];
	int nr, cpu[CPUS_MAX];			/* in the order of the list; 0: there is none */
};

/* Rows for a table of options, with the offset of the field. The help of --cpus and the default of
 * --ramp_time differ. */
#define BENCH_RW(offset) \
	{ \
		.name = "rw", .kind = OPT_ENUM, .off = (offset), .names = bench_rw_names, \
		.def = "randread", .help = "which way data goes" \
	}
#define BENCH_RUNTIME(offset) \
	{ \
		.name = "runtime", .kind = OPT_TIME, .off = (offset), .min = 1000000, \
		.max = 3600000000000ull, .def = "1s", .arg = "TIME", \
		.help = "the time that is measured" \
	}
#define BENCH_RAMP_TIME(offset, default_) \
	{ \
		.name = "ramp_time", .kind = OPT_TIME, .off = (offset), .max = 60000000000ull, \
		.def = default_, .arg = "TIME", .help = "run this long before counting begins" \
	}
#define BENCH_RANDSEED(offset) \
	{ \
		.name = "randseed", .kind = OPT_U64, .off = (offset), .def = "1", .arg = "N", \
		.help = "seed of the random numbers" \
	}
#define BENCH_CPUS(offset, help_) \
	{ \
		.name = "cpus", .kind = OPT_STR, .off = (offset), \
		.len = sizeof(((struct bench_cpus *)0)->text), .arg = "LIST", \
		.check = cpus_check, .help = help_ \
	}
#define BENCH_HELP(offset) \
	{ \
		.name = "help", .kind = OPT_BOOL, .off = (offset), .help = "print this" \
	}

struct bench_program {
	const char *name;			/* as its messages begin */
	const char *usage;			/* what --help says above the options */
	const struct opt *options;		/* with BENCH_HELP() */
	/* Whether the options fit together, before run(). May be NULL. */
	int (*check)(void *options, struct xseg_error *err);
	int (*run)(void *options, struct xseg_error *err);
};

/* Reads the command line into `options`, which is zero, then checks and runs. Returns the exit
 * code: 2 if the command line is wrong, 1 if the run failed. Each has a line on stderr. */
int bench_main(const struct bench_program *program, void *options, int argc,
	char **argv) XSEG_MUST_CHECK;

/* Fills in nr and cpu[]. */
int bench_cpus_parse(struct bench_cpus *cpus, struct xseg_error *err) XSEG_MUST_CHECK;
/* Binds the calling thread to that CPU. */
int bench_bind(int cpu, struct xseg_error *err) XSEG_MUST_CHECK;
/* The same, with the nth of the CPUs, in turn. Does nothing if there are none. */
int bench_cpus_bind(const struct bench_cpus *cpus, uint32_t n,
	struct xseg_error *err) XSEG_MUST_CHECK;

uint64_t bench_now_ns(void);

/* (splitmix64: G. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) */
static inline uint64_t bench_scramble(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* A random number below n; *state is the caller's own. */
static inline uint64_t bench_random(uint64_t *state, uint64_t n)
{
	uint64_t x = bench_scramble(*state += UINT64_C(0x9e3779b97f4a7c15));

	return (uint64_t)((unsigned __int128)x * n >> 64);
}

#endif
