/* kvd_main - the program kvd: one peer of its kind. */
#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"

int main(int argc, char **argv)
{
	return peer_main(&kvd_class, argc, argv);
}
