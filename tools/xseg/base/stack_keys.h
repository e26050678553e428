/* stack_keys - the keys of stack files, as xseg-host tells them: it has the tables of all kinds.
 *
 * Contract: one thread; runs a program, and waits for it. Free with stack_keys_drop(), in any case.
 */
#ifndef TOOLS_XSEG_STACK_KEYS_H
#define TOOLS_XSEG_STACK_KEYS_H

#include <stdbool.h>

#define STACK_KEYS_MAX 256

/* As a line of `xseg-host --keys` has it: peers/host/check.h. */
struct stack_key {
	const char *section, *name, *arg, *limits, *def, *flags, *help;
};

struct stack_keys {
	char *text;
	unsigned nr;
	struct stack_key key[STACK_KEYS_MAX];
};

/* False: nobody tells them. */
bool stack_keys_load(struct stack_keys *k);
void stack_keys_drop(struct stack_keys *k);
/* NULL: there is none of that name. */
const struct stack_key *stack_keys_find(
	const struct stack_keys *k, const char *section, const char *name);
bool stack_key_is_live(const struct stack_key *key);
/* Of the data that the peer has: it can never change. */
bool stack_key_is_fixed(const struct stack_key *key);

#endif
