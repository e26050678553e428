/* policy - see policy.h. */
#include "peers/cached/policy/policy.h"

#include <string.h>

#define POLICY_ROW(number, name_, counter_, ...)                                                   \
	[POLICY_##number] = { .name = name_, .counter = counter_, __VA_ARGS__ },
#define POLICY_NAME(number, name_, ...) [POLICY_##number] = name_,

const struct policy policies[NR_POLICIES] = { POLICIES(POLICY_ROW) };
const char *const policy_names[NR_POLICIES + 1] = { POLICIES(POLICY_NAME) };

const struct policy *policy_named(const char *name)
{
	for (const struct policy *p = policies; p < policies + NR_POLICIES; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const struct policy *policy_current(const struct cached *k)
{
	return atomic_load_explicit(&policy_of(k)->current, memory_order_relaxed);
}

const struct policy *policy_promise(const struct cached *k, const struct policy *p)
{
	if (!p)
		p = policy_current(k);
	return p->answers_before_store &&
			       atomic_load_explicit(&policy_of(k)->leaving, memory_order_relaxed)
		       ? &policies[POLICY_WRITE_THROUGH]
		       : p;
}
