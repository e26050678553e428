/* fio_options - see fio_options.h. */
#include "bench/xbench/plan/fio_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_CHARS 48

static const struct {
	const char *name, *instead;
} others[] = {
	{ "allow_mounted_write", "xbench writes to no device; leave it out" },
	{ "allrandrepeat", "use --randseed=N" },
	{ "blocksize", "use --bs=SIZE" },
	{ "blocksize_range", "use --bsrange=MIN-MAX" },
	{ "bs_is_seq_rand", "use --bsrange=MIN-MAX" },
	{ "bs_unaligned", "sizes are multiples of 512; leave it out" },
	{ "bssplit", "use --bsrange=MIN-MAX" },
	{ "buffered", "there is no page cache; leave it out" },
	{ "clat_percentiles", "percentiles are always there; leave it out" },
	{ "cpumask", "use --cpus=LIST" },
	{ "cpus_allowed", "use --cpus=LIST" },
	{ "cpus_allowed_policy", "--cpus=LIST gives each job one CPU; leave it out" },
	{ "create_on_open", "make the volume with 'xseg volume create'" },
	{ "create_only", "make the volume with 'xseg volume create'" },
	{ "create_serialize", "a volume is there from the start; leave it out" },
	{ "directory", "use --volume=VOL" },
	{ "disable_lat", "latency is always measured; leave it out" },
	{ "disk_util", "'xseg stat' shows the I/O of peers; leave it out" },
	{ "end_fsync", "run 'xseg volume flush VOL' after the load" },
	{ "eta", "a terminal has a live line, a file has none; leave it out" },
	{ "exitall", "give each load a command of its own" },
	{ "exitall_on_error", "the first error is in the results; leave it out" },
	{ "fallocate", "make the volume with 'xseg volume create'" },
	{ "fdatasync", "use --fsync=N" },
	{ "filename", "use --volume=VOL" },
	{ "filesize", "use --size=SIZE" },
	{ "fsync_on_close", "run 'xseg volume flush VOL' after the load" },
	{ "gtod_reduce", "the times of a batch are taken together; leave it out" },
	{ "invalidate", "run 'xseg cache drop CACHE' before the load" },
	{ "io_size", "use --number_ios=N" },
	{ "iodepth_batch", "as many I/Os are sent as answers came; leave it out" },
	{ "iodepth_batch_complete", "as many I/Os are sent as answers came; leave it out" },
	{ "ioengine", "xbench sends to the segment; leave it out, or use fio with fio-xseg.so" },
	{ "lat_percentiles", "percentiles are always there; leave it out" },
	{ "loops", "use --runtime=TIME or --number_ios=N" },
	{ "minimal", "use --output-format=json" },
	{ "new_group", "give each load a command of its own" },
	{ "norandommap", "random offsets are drawn like that; leave it out" },
	{ "nrfiles", "use --target=PEER with --objects=N" },
	{ "numa_cpu_nodes", "use --cpus=LIST" },
	{ "overwrite", "a volume has its size from the start; leave it out" },
	{ "percentile_list", "--output-format=json has 17 percentiles; leave it out" },
	{ "pre_read", "read the volume once with --rw=read before the load" },
	{ "randrepeat", "use --randseed=N" },
	{ "read_iolog", "xbench replays nothing; use fio with fio-xseg.so" },
	{ "readonly", "use --rw=read or --rw=randread" },
	{ "readwrite", "use --rw=MODE" },
	{ "refill_buffers", "use --verify=crc32c, by which all data that is written differs" },
	{ "rwmixwrite", "use --rwmixread=N, with 100 less that number" },
	{ "scramble_buffers", "use --verify=crc32c, by which all data that is written differs" },
	{ "slat_percentiles", "an I/O has one latency; leave it out" },
	{ "softrandommap", "random offsets are drawn without a map; leave it out" },
	{ "startdelay", "run 'sleep' before it" },
	{ "stonewall", "give each load a command of its own" },
	{ "thinktime", "use --rate_iops=N" },
	{ "thread", "each job is a thread; leave it out" },
	{ "unified_rw_reporting",
	  "reads and writes are apart, and their sum is in the last line; leave it out" },
	{ "unlink", "remove the volume with 'xseg volume remove'" },
	{ "verify_dump", "the message describes the sector; leave it out" },
	{ "verify_fatal", "the run goes on, and its exit code is 1; leave it out" },
	{ "verify_state_load", "use --verify_only with --verify_state=FILE" },
	{ "verify_state_save", "use --verify_state=FILE" },
	{ "write_bw_log", "use --status-interval=TIME with --output-format=json" },
	{ "write_iops_log", "use --status-interval=TIME with --output-format=json" },
	{ "write_lat_log", "use --status-interval=TIME with --output-format=json" },
	{ "zero_buffers", "use --opmix=write_zeroes:PERCENT" },
};

static const char *instead_of(const char *name)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (opt_same_name(others[i].name, name))
			return others[i].instead;
	return NULL;
}

int xb_fio_options(const struct opt *table, int argc, char **argv, struct xseg_error *err)
{
	char name[NAME_MAX_CHARS];
	const char *instead;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(argv[i] + 2, "="), argv[i] + 2);
		instead = opt_find(table, name) ? NULL : instead_of(name);
		if (instead)
			return xseg_fail(err, -EINVAL, "--%s is an option of fio: %s", name,
				instead);
	}
	return 0;
}
