/* xstate - a table of states: their names, and which state may follow which.
 *
 * A state machine has an enum, one such table, and one setter, which calls xstate_check() before
 * the step. The head of the machine's file says in words when each edge is taken, and by which
 * function.
 *
 *	#define TO(s) (1u << DOOR_##s)
 *	static const struct xstates states = {
 *		.what = "door",
 *		XSTATE(DOOR_, OPEN, TO(SHUT)),
 *		XSTATE(DOOR_, SHUT, TO(OPEN) | TO(LOCKED)),
 *		XSTATE(DOOR_, LOCKED, TO(SHUT)),
 *	};
 *
 * Contract: a table is constant, so any thread may ask at any time. A check that holds costs a load
 * and two branches; where a value is constant, less. One that does not hold stops the program like
 * an assertion, and its message names both states.
 */
#ifndef XTYPES_XSTATE_H
#define XTYPES_XSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "xtypes/xhot.h"

#define XSTATE_MAX 16u

/* A number without a row has no name and no edges. */
struct xstates {
	uint16_t next[XSTATE_MAX];	/* by state: a bit for each state that may follow it */
	const char *name[XSTATE_MAX];
	const char *what;		/* whose states they are */
};

/* The row of one state: edges are bits. */
#define XSTATE(prefix, state, edges)                                                               \
	.next[prefix##state] = (edges), .name[prefix##state] = #state

/* Whether `to` may follow `from`. Any numbers. */
static inline bool xstate_may(const struct xstates *t, unsigned from, unsigned to)
{
	return from < XSTATE_MAX && to < XSTATE_MAX && t->next[from] >> to & 1;
}

/* "?" for a number without a row. */
const char *xstate_name(const struct xstates *t, unsigned state);

XCOLD _Noreturn void xstate_fail(const struct xstates *t, unsigned from, unsigned to,
				 const char *file, unsigned line, const char *function);

/* A step of a setter: it must be legal. */
#define xstate_check(t, from, to)                                                                  \
	do {                                                                                       \
		unsigned from_ = (from), to_ = (to);                                               \
                                                                                                   \
		if (__builtin_expect(!xstate_may((t), from_, to_), 0))                             \
			xstate_fail((t), from_, to_, __FILE__, __LINE__, __func__);                \
	} while (0)

#endif
