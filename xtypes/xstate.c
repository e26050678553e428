/* xstate - see xstate.h. */
#include "xtypes/xstate.h"

#include <assert.h>
#include <stdio.h>

const char *xstate_name(const struct xstates *t, unsigned state)
{
	return state < XSTATE_MAX && t->name[state] ? t->name[state] : "?";
}

/* By way of the C library's assertions, so that whatever watches those sees this one, too. */
void xstate_fail(const struct xstates *t, unsigned from, unsigned to, const char *file,
		 unsigned line, const char *function)
{
	char text[128];

	snprintf(text, sizeof(text), "%s: %s (%u) may become %s (%u)", t->what,
		 xstate_name(t, from), from, xstate_name(t, to), to);
	__assert_fail(text, file, line, function);
}
