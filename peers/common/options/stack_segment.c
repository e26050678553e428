/* stack_segment - [segment] of a stack file. See stack.h. */
#include <errno.h>
#include <stdlib.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/mode.h"
#include "peers/common/options/owner.h"
#include "peers/common/options/stack.h"

#define STEP_BYTES ((uint64_t)32 << 20)	/* of a good memory */

int stack_check_group(const char *text, struct xseg_error *err)
{
	return *text ? 0 : xseg_fail(err, -EINVAL, "group: it is empty; leave it out, or name one");
}

const char *const stack_huge_names[] = { "auto", "never", "require", NULL };

#define SEG(field) offsetof(struct stack_segment, field)
const struct opt stack_segment_table[] = {
	{ .name = "name", .kind = OPT_STR, .off = SEG(name), .len = XSEG_NAME_MAX, .arg = "NAME",
	  .check = cli_check_name, .help = "name of the segment" },
	{ .name = "memory", .kind = OPT_SIZE, .off = SEG(memory), .min = 4 << 20,
	  .max = 1ull << 40, .arg = "SIZE",
	  .help = "memory for data, caches and tables" },
	{ .name = "requests", .kind = OPT_UINT, .off = SEG(requests), .arg = "N", .min = 32,
	  .max = 1u << 20, .flags = OPT_OR_ZERO, .help = "requests in all (0: 2048)" },
	{ .name = "ports", .kind = OPT_UINT, .off = SEG(ports), .arg = "N", .min = 4,
	  .max = XSEG_MAX_PORTS, .flags = OPT_OR_ZERO, .help = "ports in all (0: 64)" },
	{ .name = "huge", .kind = OPT_ENUM, .off = SEG(huge), .names = stack_huge_names,
	  .arg = "auto|never|require", .help = "whether to use huge pages" },
	{ .name = "mode", .kind = OPT_STR, .off = SEG(mode), .len = 8, .def = "0600", .arg = "MODE",
	  .check = mode_check, .help = "users that may attach, as a file mode" },
	{ .name = "group", .kind = OPT_STR, .off = SEG(group), .len = 33, .arg = "GROUP",
	  .check = stack_check_group,
	  .help = "group that the segment is given to, by name or number" },
	OWNER_OPT(SEG(owner)),
	{ 0 }
};

uint64_t stack_good_memory(uint64_t need_bytes)
{
	return (need_bytes + need_bytes / 8 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

int stack_segment_config(const struct stack_segment *s, struct xseg_config *cfg,
			 struct xseg_error *err)
{
	*cfg = (struct xseg_config){ .memory_bytes = s->memory, .nr_requests = s->requests,
				     .nr_ports = s->ports, .huge = s->huge, .group = -1 };
	if (mode_read(s->mode, &cfg->mode))
		return mode_check(s->mode, err);
	if (s->group[0] && owner_find_group(s->group, &cfg->group))
		return xseg_fail(err, -EINVAL, "group: this machine has no group '%s'", s->group);
	return 0;
}
