/* hold_lock - takes a lock of a segment and keeps it until it is killed, like a process that is
 * stopped while it changes the segment's tables.
 *
 *      hold_lock SEGMENT		the control lock
 *
 * Prints "held" when it has it. Exit codes: 1, there is no such segment, or it cannot be locked; 2,
 * wrong usage.
 */
#include <stdio.h>
#include <unistd.h>

#include "xseg/internal.h"

int main(int argc, char **argv)
{
	struct xseg_error err = { "" };
	struct xseg *seg;

	if (argc != 2) {
		fprintf(stderr, "hold_lock SEGMENT\n");
		return 2;
	}
	if (xseg_attach(argv[1], XSEG_ATTACH_OBSERVER, &seg, &err)) {
		fprintf(stderr, "hold_lock: %s\n", err.text);
		return 1;
	}
	if (xs_lock(seg, XSEG_LOCK_CONTROL) < 0) {
		fprintf(stderr, "hold_lock: somebody else has it\n");
		return 1;
	}
	puts("held");
	fflush(stdout);
	while (pause())
		;
	return 0;
}
