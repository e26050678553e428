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
	{ "blocksize", "use --bs=SIZE" },
	{ "blocksize_range", "use --bsrange=MIN-MAX" },
	{ "bssplit", "use --bsrange=MIN-MAX" },
	{ "buffered", "there is no page cache; leave it out" },
	{ "cpumask", "use --cpus=LIST" },
	{ "cpus_allowed", "use --cpus=LIST" },
	{ "cpus_allowed_policy", "--cpus=LIST gives each job one CPU; leave it out" },
	{ "create_on_open", "make the volume with 'xseg volume create'" },
	{ "directory", "use --volume=VOL" },
	{ "end_fsync", "run 'xseg volume flush VOL' after the load" },
	{ "eta", "a terminal has a live line, a file has none; leave it out" },
	{ "fallocate", "make the volume with 'xseg volume create'" },
	{ "fdatasync", "use --fsync=N" },
	{ "filename", "use --volume=VOL" },
	{ "filesize", "use --size=SIZE" },
	{ "gtod_reduce", "the times of a batch are taken together; leave it out" },
	{ "invalidate", "run 'xseg cache drop CACHE' before the load" },
	{ "io_size", "use --number_ios=N" },
	{ "iodepth_batch", "as many I/Os are sent as answers came; leave it out" },
	{ "iodepth_batch_complete", "as many I/Os are sent as answers came; leave it out" },
	{ "ioengine", "xbench sends to the segment; leave it out, or use fio with fio-xseg.so" },
	{ "loops", "use --runtime=TIME or --number_ios=N" },
	{ "minimal", "use --output-format=json" },
	{ "norandommap", "random offsets are drawn like that; leave it out" },
	{ "nrfiles", "use --target=PEER with --objects=N" },
	{ "numa_cpu_nodes", "use --cpus=LIST" },
	{ "overwrite", "a volume has its size from the start; leave it out" },
	{ "percentile_list", "--output-format=json has 17 percentiles; leave it out" },
	{ "randrepeat", "use --randseed=N" },
	{ "read_iolog", "xbench replays nothing; use fio with fio-xseg.so" },
	{ "readonly", "use --rw=read or --rw=randread" },
	{ "readwrite", "use --rw=MODE" },
	{ "refill_buffers", "use --verify=crc32c, by which all data that is written differs" },
	{ "startdelay", "run 'sleep' before it" },
	{ "stonewall", "give each load a command of its own" },
	{ "thinktime", "use --rate_iops=N" },
	{ "thread", "each job is a thread; leave it out" },
	{ "verify_state_load", "use --verify_only with --verify_state=FILE" },
	{ "verify_state_save", "use --verify_state=FILE" },
	{ "write_bw_log", "use --status-interval=TIME with --output-format=json" },
	{ "write_iops_log", "use --status-interval=TIME with --output-format=json" },
	{ "write_lat_log", "use --status-interval=TIME with --output-format=json" },
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
