/* volumed_main - the program: one peer of the kind, in a process of its own. */
#include "peers/common/runtime/main.h"

int main(int argc, char **argv)
{
	return peer_main(&volumed_class, argc, argv);
}
