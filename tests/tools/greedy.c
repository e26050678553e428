/* greedy - takes all of a segment's free ports, or its free memory but for some pieces of 2 MiB. It
 * says how much that was, and keeps it until it is killed. For tests.
 *
 *	greedy SEGMENT [LEFT]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "xseg/xseg.h"

static struct xseg *seg;
static struct xseg_error err = { "name a segment" };

static int take_port(struct xseg_peer **peer)
{
	static unsigned nr;
	struct xseg_peer_params params = { .kind = "client", .nr_ports = 1 };
	char name[XSEG_NAME_MAX];

	snprintf(name, sizeof(name), "greedy.%d.%u", (int)getpid(), nr++);
	params.name = name;
	return xseg_peer_open(seg, &params, peer, &err);
}

static unsigned take_ports(void)
{
	struct xseg_peer *peer;
	unsigned nr = 0;

	while (!take_port(&peer))
		nr++;
	return nr;
}

static unsigned take_memory(unsigned left)
{
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_peer *peer;
	unsigned nr = 0;

	if (take_port(&peer))
		return 0;
	while (xseg_nr_free_pages(seg) > left * XSEG_EXTENT_PAGES &&
		!xseg_pages_take(peer, XSEG_EXTENT_PAGES, page))
		nr++;
	return nr;
}

int main(int argc, char **argv)
{
	if (argc < 2 || xseg_attach(argv[1], 0, &seg, &err)) {
		fprintf(stderr, "greedy: %s\n", err.text);
		return 1;
	}
	printf("%u\n", argc > 2 ? take_memory((unsigned)strtoul(argv[2], NULL, 10)) : take_ports());
	fflush(stdout);
	pause();
	return 0;
}
