/* sosd_main - the program sosd: one peer of its kind. */
#include "peers/common/runtime/main.h"
#include "peers/sosd/sosd.h"

int main(int argc, char **argv)
{
	return peer_main(&sosd_class, argc, argv);
}
