/* stack_options - reads the options of a stack's peer by the table of its kind. See stack.h. */
#include <errno.h>

#include "peers/common/options/stack.h"

int stack_set_options(const struct stack_peer *peer, const struct opt *table, void *base,
		      struct xseg_error *err)
{
	const struct stack_option *option;
	const struct opt *o;
	struct xseg_error why;
	uint64_t seen = 0;
	uint32_t i;

	for (i = 0; i < peer->nr_options; i++) {
		option = &peer->option[i];
		o = opt_find(table, option->key);
		if (!o)
			return xseg_fail(err, -EINVAL,
					 "line %u: %s has no option '%.60s'; see %s --help",
					 option->line, peer->kind, option->key, peer->kind);
		if (o->kind != OPT_LIST && (seen & 1ull << (o - table)))
			return xseg_fail(err, -EINVAL,
					 "line %u: '%s' is given twice in this section",
					 option->line, o->name);
		seen |= 1ull << (o - table);
		if (opt_set(o, base, option->value, &why))
			return xseg_fail(err, -EINVAL, "line %u: %.280s", option->line, why.text);
	}
	return 0;
}
