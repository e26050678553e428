/* greedy - takes all ports of a segment that are left, says how many these were, and keeps them
 * until it is killed. For tests.
 *
 *	greedy SEGMENT
 */
#include <stdio.h>
#include <unistd.h>

#include "xseg/xseg.h"

int main(int argc, char **argv)
{
	struct xseg_peer_params params = { .kind = "client", .nr_ports = 1 };
	struct xseg_error err = { "no segment is named" };
	struct xseg_peer *peer;
	struct xseg *seg;
	char name[XSEG_NAME_MAX];
	unsigned nr = 0;

	if (argc != 2 || xseg_attach(argv[1], 0, &seg, &err)) {
		fprintf(stderr, "greedy: %s\n", err.text);
		return 1;
	}
	do {
		snprintf(name, sizeof(name), "greedy.%d.%u", (int)getpid(), nr++);
		params.name = name;
	} while (!xseg_peer_open(seg, &params, &peer, &err));
	printf("%u\n", nr - 1);
	fflush(stdout);
	pause();
	return 0;
}
