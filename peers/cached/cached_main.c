/* cached_main - the program of the cache peer. */
#include "peers/common/runtime/main.h"

extern const struct peer_class cached_class;

int main(int argc, char **argv)
{
	return peer_main(&cached_class, argc, argv);
}
