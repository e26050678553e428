/* stack_options - reads the options of a stack's peer by the table of its kind. See stack.h. */
#include <errno.h>
#include <stdlib.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/stack.h"

static void add_unknown(const struct stack_peer *peer, const struct stack_option *option,
	const struct opt *table, struct stack_errors *errors)
{
	struct cli_group groups[] = { { table, NULL }, { stack_peer_table, NULL }, { NULL, NULL } };
	const struct opt *near = cli_nearest(groups, option->key);

	if (near)
		stack_errors_add(errors, option->line, option->key,
			"%s has no option '%.60s'; did you mean '%s'?", peer->kind, option->key,
			near->name);
	else
		stack_errors_add(errors, option->line, option->key,
			"%s has no option '%.60s'; see %s --help", peer->kind, option->key,
			peer->kind);
}

int stack_read_options(const struct stack_peer *peer, const struct opt *table, void *base,
		       struct stack_errors *errors)
{
	uint32_t before = errors->nr + errors->nr_more, i;
	const struct stack_option *option;
	const struct opt *o;
	struct xseg_error why;
	uint64_t seen = 0;

	for (i = 0; i < peer->nr_options; i++) {
		option = &peer->option[i];
		o = opt_find(table, option->key);
		if (!o) {
			add_unknown(peer, option, table, errors);
			continue;
		}
		if (o->kind != OPT_LIST && (seen & 1ull << (o - table)))
			stack_errors_add(errors, option->line, o->name,
				"'%s' is given twice in this section; leave one out", o->name);
		else if (opt_set(o, base, option->value, &why))
			stack_errors_add(errors, option->line, o->name, "%s", why.text);
		seen |= 1ull << (o - table);
	}
	return errors->nr + errors->nr_more > before ? -EINVAL : 0;
}

int stack_set_options(const struct stack_peer *peer, const struct opt *table, void *base,
		      struct xseg_error *err)
{
	struct stack_errors *errors = calloc(1, sizeof(*errors));
	int rc;

	if (!errors)
		return xseg_fail(err, -ENOMEM, "out of memory");
	rc = stack_read_options(peer, table, base, errors);
	if (rc)
		rc = stack_errors_first(errors, err);
	free(errors);
	return rc;
}
