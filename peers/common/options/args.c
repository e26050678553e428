/* args - see args.h. */
#include "peers/common/options/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void args_add(struct args *a, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = a->nr < ARGS_MAX ? vasprintf(&a->arg[a->nr], fmt, ap) : -1;
	va_end(ap);
	if (len >= 0)
		a->nr++;
	else
		a->failed = true;
	a->arg[a->nr] = NULL;
}

void args_free(struct args *a)
{
	while (a->nr > 0)
		free(a->arg[--a->nr]);
}

void args_add_peer(struct args *a, const struct stack_peer *p)
{
	args_add(a, "--name=%s", p->name);
	args_add(a, "--threads=%u", p->threads);
	if (stack_downstream(p)[0])
		args_add(a, "--downstream=%s", stack_downstream(p));
	if (p->cpus[0])
		args_add(a, "--cpus=%s", p->cpus);
	for (uint32_t i = 0; i < p->nr_options; i++)
		args_add(a, "--%s=%s", p->option[i].key, p->option[i].value);
}
