/* forge_pid - writes another pid into the member table, as any process that is attached can.
 *
 *      forge_pid SEGMENT OLD NEW
 *
 * Exit codes: 0; 1, there is no such segment or member; 2, wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "xseg/internal.h"

static uint32_t number_of(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct xseg_error err = { "" };
	unsigned nr = 0;
	struct xseg *seg;

	if (argc != 4) {
		fprintf(stderr, "forge_pid SEGMENT OLD NEW\n");
		return 2;
	}
	if (xseg_attach(argv[1], XSEG_ATTACH_OBSERVER, &seg, &err)) {
		fprintf(stderr, "forge_pid: %s\n", err.text);
		return 1;
	}
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++) {
		uint32_t old = number_of(argv[2]);

		nr += atomic_compare_exchange_strong(
			&seg->members[i].pid, &old, number_of(argv[3]));
	}
	xseg_detach(seg);
	return nr ? 0 : 1;
}
