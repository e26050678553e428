/* kv_options - see kv_options.h. */
#include "bench/xbench/plan/kv_options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define KEYS	   65536u
#define KEY_BYTES  16u
#define VALUE	   1024u
/* No value is larger than so many times the mean: 1 of 9 million would be. */
#define EXP_SPREAD 16u

static bool is_kv_rw(uint32_t rw)
{
	return rw >= XB_RW_GET;
}

/* What a load on blocks has, and one on values has not. */
static int refuse_blocks(const struct xb_options *o, struct xseg_error *err)
{
	const struct {
		const char *name;
		bool is_set;
	} all[] = {
		{ "bs", o->bs }, { "bsrange", *o->bsrange }, { "size", o->size },
		{ "offset", o->offset }, { "offset_increment", o->offset_increment },
		{ "objects", o->objects }, { "object_size", o->object_size },
		{ "sync", o->sync }, { "fsync", o->fsync }, { "write_iolog", *o->write_iolog },
		{ "data=direct", o->by.data == XB_DATA_DIRECT }, { "rate", *o->rate }
	};
	static const char *const instead[] = { "--value_size", "--value_size or --value_dist",
		"--keys", "--keys", "--randseed", "--keys", "--value_size", "--force",
		"--opmix=flush:PERCENT", "--output", "--data=loan", "--rate_iops" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is_set)
			return xseg_fail(err, -EINVAL,
				"%s is for volumes and targets, a kvd has values by key; leave it "
				"out, or see %s",
				all[i].name, instead[i]);
	return 0;
}

static int refuse_kv(const struct xb_options *o, struct xseg_error *err)
{
	const struct {
		const char *name;
		bool is_set;
	} all[] = { { "keys", o->kv.keys }, { "key_size", o->kv.key_size },
		{ "value_size", o->kv.value_size }, { "value_dist", *o->kv.value_dist },
		{ "force", o->kv.force }, { "unchecked", o->kv.unchecked } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is_set)
			return xseg_fail(err, -EINVAL, "%s is for a --kvd only; leave it out",
				all[i].name);
	if (is_kv_rw(o->rw))
		return xseg_fail(err, -EINVAL,
			"rw: get, put, getput and fill are for a --kvd only; use randread, "
			"randwrite, randrw or write");
	return 0;
}

/* The default, and fio's name for it, is a load of gets. */
static int choose_rw(struct xb_options *o, struct xseg_error *err)
{
	if (o->rw == XB_RW_READ)
		o->rw = XB_RW_GET;
	return is_kv_rw(o->rw) ? 0
			       : xseg_fail(err, -EINVAL,
					 "rw: a kvd takes get, put, getput or fill; choose one");
}

/* P2 */
static int choose_keys(struct xb_options *o, struct xseg_error *err)
{
	uint64_t last;

	if (!o->kv.keys)
		o->kv.keys = KEYS;
	if (!o->kv.key_size)
		o->kv.key_size = KEY_BYTES;
	last = o->kv.keys + XB_COUNTERS_MAX - 1;
	if (o->kv.key_size < 16 && last >> (4 * o->kv.key_size))
		return xseg_fail(err, -EINVAL,
			"key_size: %" PRIu64 " bytes have no room for %" PRIu64 " names in "
			"hexadecimal digits; give a larger key_size or fewer keys",
			o->kv.key_size, last + 1);
	return 0;
}

static int parse_dist(struct xb_options *o, struct xseg_error *err)
{
	if (!*o->kv.value_dist)
		return 0;
	if (o->kv.value_size)
		return xseg_fail(err, -EINVAL,
			"value_size and value_dist exclude each other; give one of them");
	if (strncmp(o->kv.value_dist, "exp:", 4) != 0 ||
		opt_parse_size(o->kv.value_dist + 4, &o->kv.value_size) ||
		o->kv.value_size == 0 || o->kv.value_size > XB_VALUE_SIZE_MAX)
		return xseg_fail(err, -EINVAL,
			"value_dist: '%s' is not exp:MEAN with a mean of 1 to 960k, such as exp:1k",
			o->kv.value_dist);
	o->kv.is_exp = true;
	return 0;
}

/* P3 */
static int choose_values(struct xb_options *o, struct xseg_error *err)
{
	int rc = parse_dist(o, err);

	if (rc)
		return rc;
	if (!o->kv.value_size)
		o->kv.value_size = VALUE;
	if (o->verify && o->kv.value_size < XB_STAMPED_MIN)
		return xseg_fail(err, -EINVAL,
			"%s: a value of %" PRIu64 " bytes has no room for the stamp of --verify; "
			"give %u bytes or more",
			o->kv.is_exp ? "value_dist" : "value_size", o->kv.value_size,
			XB_STAMPED_MIN);
	o->kv.value_max = o->kv.value_size;
	if (o->kv.is_exp && o->kv.value_max < XB_VALUE_SIZE_MAX / EXP_SPREAD)
		o->kv.value_max *= EXP_SPREAD;
	else if (o->kv.is_exp)
		o->kv.value_max = XB_VALUE_SIZE_MAX;
	if (o->verify_only)			/* the earlier run had sizes of its own */
		o->kv.value_max = XB_VALUE_SIZE_MAX;
	return 0;
}

int xb_kv_options_together(const struct xb_options *o, struct xseg_error *err)
{
	if (!xb_options_kv(o))
		return 0;
	if (o->iodepth > XB_KV_IODEPTH_MAX)
		return xseg_fail(err, -EINVAL,
			"iodepth: a queue of a kvd has at most %u operations; use more jobs",
			XB_KV_IODEPTH_MAX);
	if (o->verify_only && !*o->verify_state)
		return xseg_fail(err, -EINVAL,
			"verify_only: with a kvd it needs the --verify_state that an earlier run "
			"saved; give it");
	if (*o->verify_state && xb_kv_counters(o))
		return xseg_fail(err, -EINVAL,
			"verify_state: it keeps no counters; leave out incr or verify_state");
	if (o->rw == XB_RW_FILL && (o->number_ios || o->runtime || *o->opmix))
		return xseg_fail(err, -EINVAL,
			"rw: fill puts each key once, and nothing else; leave out number_ios, "
			"runtime and opmix, or use rw=put");
	if (o->kv.unchecked && o->verify)
		return xseg_fail(err, -EINVAL,
			"unchecked: --verify checks every value; leave one of them out");
	return 0;
}

uint32_t xb_kv_counters(const struct xb_options *o)
{
	uint64_t nr = 1 + o->kv.keys / 64;

	if (!o->mix[XB_INCR])
		return 0;
	return nr < XB_COUNTERS_MAX ? (uint32_t)nr : XB_COUNTERS_MAX;
}

int xb_kv_options(struct xb_options *o, struct xseg_error *err)
{
	int rc;

	if (!xb_options_kv(o))
		return refuse_kv(o, err);
	rc = refuse_blocks(o, err);
	if (!rc)
		rc = choose_rw(o, err);
	if (!rc)
		rc = choose_keys(o, err);
	if (!rc)
		rc = choose_values(o, err);
	return rc;
}
