/* own_memory - see own_memory.h. */
#include "peers/common/runtime/own_memory.h"

#include "xseg/memory.h"

#define LEAST_BYTES (16u << 20)

int own_memory_check(uint64_t bytes, const char *what, const char *do_what, struct xseg_error *err)
{
	return bytes < LEAST_BYTES ? 0 : xs_memory_check(bytes, what, do_what, err);
}
