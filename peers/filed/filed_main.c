/* filed_main - the program filed: one peer of its kind. */
#include "peers/common/main.h"
#include "peers/common/peer.h"

int main(int argc, char **argv)
{
	return peer_main(&filed_class, argc, argv);
}
