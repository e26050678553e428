/* stack_kind - see stack_kind.h, and stack.h. */
#include "peers/common/options/stack_kind.h"

#include <errno.h>
#include <string.h>

#include "peers/common/options/stack.h"

static const struct stack_kind stack_kinds[] = {
	{ .name = "volumed", .sends = true }, { .name = "cached", .sends = true },
	{ .name = "filed" }, { .name = "memd" }, { .name = "sosd" },
	{ .name = "kvd", .sends = true },
	{ .name = "memcached", .sends = true, .over = "kvd" },
	{ 0 },
};

const struct stack_kind *stack_kind_find(const char *name)
{
	const struct stack_kind *k;

	for (k = stack_kinds; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

int stack_kind_check(const char *text, struct xseg_error *err)
{
	if (!stack_kind_find(text))
		return xseg_fail(err, -EINVAL, "kind: '%.60s' is not one of " STACK_KINDS, text);
	return 0;
}

const char *stack_program(const char *kind)
{
	return strcmp(kind, "memcached") ? kind : "xseg-memcached";
}

bool stack_kind_is_store(const char *kind)
{
	const struct stack_kind *k = stack_kind_find(kind);

	return k && !k->sends;
}
