/* entry - libFuzzer's entry point; libFuzzer has a main of its own. */
#include "tests/fuzz/fuzz.h"

/* What an input frees is small, and the next one begins anew. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16:detect_stack_use_after_return=1";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size);
	return 0;
}
