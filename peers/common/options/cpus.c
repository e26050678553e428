/* cpus - see cpus.h. */
#include "peers/common/options/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define CPU_LIMIT 1024

static const char *parse_cpu(const char *text, long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	*cpu = strtol(text, &end, 10);
	return *cpu < CPU_LIMIT ? end : NULL;
}

int cpus_parse(const char *text, int cpu[CPUS_MAX], struct xseg_error *err)
{
	const char *c = text;
	long first = 0, last;
	int nr = 0;

	while (c && *c) {
		c = parse_cpu(c, &first);
		last = first;
		if (c && *c == '-')
			c = parse_cpu(c + 1, &last);
		if (!c || last < first || last - first >= CPUS_MAX - nr)
			goto bad;
		while (first <= last)
			cpu[nr++] = (int)first++;
		if (*c == ',' && c[1])
			c++;
		else if (*c)
			goto bad;
	}
	return nr;
bad:
	return xseg_fail(err, -EINVAL, "cpus: '%.60s' is not a list of processors such as 0,2-3",
			 text);
}

int cpus_check(const char *text, struct xseg_error *err)
{
	int cpu[CPUS_MAX];
	int nr = cpus_parse(text, cpu, err);

	return nr < 0 ? nr : 0;
}
