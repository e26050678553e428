/* options - the options of a run of xbench: the command line, read, checked and worked out.
 *
 * Contract: xb_options_parse() fills the struct and checks everything that can be known without a
 * segment. xb_options_fit() checks it against the size of the volume or the objects. Both only look
 * and compute: no printing, no exit, any thread. The text of an error is one line.
 *
 * Invariants, after both:
 *   O1  bs_min, bs_max, offset, offset_increment, size and object_size are multiples of 512, and
 *       512 <= bs_min <= bs_max <= 1 MiB, bs_max <= size
 *   O2  [offset + j * offset_increment, + size) of every job j lies within the volume or objects
 *   O3  a run ends: by runtime, by number_ios or by the bytes of one pass
 *   O4  numjobs * iodepth <= 32768 (the oracle counts readers of a sector in 16 bits)
 *   O5  with a kvd (kv_options.h) O1 and O2 do not apply: it has no range
 */
#ifndef BENCH_XBENCH_OPTIONS_H
#define BENCH_XBENCH_OPTIONS_H

#include <limits.h>

#include "peers/common/options/cpus.h"
#include "peers/common/options/opt.h"
#include "peers/common/options/owner.h"

#define XB_MAX_INFLIGHT 32768u
#define XB_MAX_JOBS	256u

/* From XB_DELETE on: of a kvd only. There a get is XB_READ, a put XB_WRITE. */
enum xb_op {
	XB_READ, XB_WRITE, XB_TRIM, XB_FLUSH, XB_ZEROES, XB_COPY, XB_INFO, XB_DELETE, XB_ADD,
	XB_CAS, XB_INCR, XB_EXISTS, XB_NR_OPS
};

enum xb_rw {
	XB_RW_READ,
	XB_RW_WRITE,
	XB_RW_RANDREAD,
	XB_RW_RANDWRITE,
	XB_RW_RW,
	XB_RW_RANDRW,
	XB_RW_TRIM,
	XB_RW_RANDTRIM,
	/* of a kvd */
	XB_RW_GET,
	XB_RW_PUT,
	XB_RW_GETPUT,
	XB_RW_FILL
};
enum xb_data { XB_DATA_COPY, XB_DATA_LOAN, XB_DATA_DIRECT };
/* The last two are fio's, and mean auto. */
enum xb_direct { XB_DIRECT_NEVER, XB_DIRECT_AUTO, XB_DIRECT_0, XB_DIRECT_1 };
/* The first two are what is worked out; the others are fio's names for them. */
enum xb_sync { XB_SYNC_0, XB_SYNC_1, XB_SYNC_NONE, XB_SYNC_SYNC, XB_SYNC_DSYNC };
/* Of the limits of --rate: of reads, and of everything else. */
enum xb_rate_of { XB_RATE_READ, XB_RATE_WRITE, XB_NR_RATES };
enum xb_format { XB_FORMAT_NORMAL, XB_FORMAT_JSON };

struct xb_options {
	struct {
		uint32_t data, direct;		/* enum xb_data, xb_direct */
	} by;
	/* as given; sizes are bytes, times ns */
	char name[XSEG_NAME_MAX];		/* of the jobs, in the results */
	char segment[XSEG_NAME_MAX], volume[XSEG_NAME_MAX], target[XSEG_NAME_MAX];
	struct {
		char kvd[XSEG_NAME_MAX];
		uint64_t keys, key_size, value_size;
		char value_dist[32];
		bool force, unchecked;
		/* worked out */
		bool is_exp;			/* values of value_size on average, not all of it */
		uint64_t value_max;
	} kv;
	char owner[OWNER_BYTES];		/* peers/common/options/owner.h */
	uint32_t rw, rwmixread, iodepth, numjobs, sync, fsync, verify, output_format;
	uint64_t bs, size, offset, offset_increment, runtime, number_ios, ramp_time, rate_iops,
		randseed;
	uint64_t objects, object_size, status_interval, io_timeout;
	bool time_based, verify_only, do_verify, once, group_reporting, help, version;
	char opmix[128], bsrange[48], random_distribution[32], cpus[128], rate[64];
	char verify_state[PATH_MAX], write_iolog[PATH_MAX], output[PATH_MAX];
	/* worked out */
	uint64_t bs_min, bs_max;
	uint32_t mix[XB_NR_OPS];		/* percent of all I/Os; the rest is as rw says */
	uint64_t rate_bytes[XB_NR_RATES];	/* a second, 0: no limit */
	double zipf;				/* exponent; 0: uniform */
	int nr_cpus, cpu[CPUS_MAX];
};

extern const struct opt xb_opts[];

/* Whether what is loaded is a kvd. */
static inline bool xb_options_kv(const struct xb_options *o)
{
	return *o->kv.kvd;
}

/* 0; -EINVAL with a line in err. After --help or --version only that counts. */
int xb_options_parse(struct xb_options *o, int argc, char **argv,
		     struct xseg_error *err) XSEG_MUST_CHECK;
/* total_bytes: of the volume or of all objects. Sets size where none was given. 0 or -EINVAL. */
int xb_options_fit(struct xb_options *o, uint64_t total_bytes,
		   struct xseg_error *err) XSEG_MUST_CHECK;
/* One byte after the last of all jobs' ranges. */
uint64_t xb_options_end(const struct xb_options *o);
/* Whether a run with them changes what is stored. */
bool xb_options_write(const struct xb_options *o);
/* A number that changes with every option which changes what is written where. */
uint64_t xb_options_signature(const struct xb_options *o);

#endif
