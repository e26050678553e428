/* stack_errors - see stack_errors.h. */
#include "peers/common/options/stack_errors.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void stack_errors_add(struct stack_errors *e, unsigned line, const char *key, const char *fmt, ...)
{
	struct stack_error *at;
	uint32_t i = e->nr;
	va_list ap;

	if (e->nr == STACK_MAX_ERRORS) {
		e->nr_more++;
		return;
	}
	while (i > 0 && e->error[i - 1].line > line)
		i--;
	at = &e->error[i];
	memmove(at + 1, at, (e->nr - i) * sizeof(*at));
	e->nr++;
	at->line = line;
	snprintf(at->key, sizeof(at->key), "%s", key ? key : "");
	va_start(ap, fmt);
	vsnprintf(at->why.text, sizeof(at->why.text), fmt, ap);
	va_end(ap);
}

bool stack_errors_has(
	const struct stack_errors *e, unsigned first, unsigned last, const char *key)
{
	for (uint32_t i = 0; i < e->nr; i++)
		if (e->error[i].line >= first && e->error[i].line <= last &&
			opt_same_name(e->error[i].key, key))
			return true;
	return false;
}

const char *stack_error_text(const struct stack_error *error, struct xseg_error *out)
{
	if (error->line)
		xseg_fail(out, 0, "line %u: %.300s", error->line, error->why.text);
	else
		*out = error->why;
	return out->text;
}

int stack_errors_first(const struct stack_errors *e, struct xseg_error *err)
{
	struct xseg_error text;

	if (!e->nr)
		return 0;
	return xseg_fail(err, -EINVAL, "%s", stack_error_text(&e->error[0], &text));
}

/* ---- lines ------------------------------------------------------------------------------- */

bool stack_lines_note(
	struct stack_lines *l, const struct opt *table, const struct opt *o, unsigned line)
{
	size_t i = (size_t)(o - table);

	assert(i < STACK_TABLE_KEYS);
	if (l->key[i])
		return false;
	l->key[i] = line;
	return true;
}

unsigned stack_line_of(const struct stack_lines *l, const struct opt *table, const char *key)
{
	const struct opt *o = opt_find(table, key);

	return o && l->key[o - table] ? l->key[o - table] : l->section;
}
