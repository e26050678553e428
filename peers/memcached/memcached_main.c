/* memcached_main - the program xseg-memcached: one peer of its kind. */
#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"

int main(int argc, char **argv)
{
	return peer_main(&memcached_class, argc, argv);
}
