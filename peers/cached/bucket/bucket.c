/* bucket - the table of legal edges between bucket states. bucket.h explains the states. */
#include "peers/cached/bucket/bucket.h"

#define TO(s) (1u << BUCKET_##s)

const struct xstates bucket_states = {
	.what = "bucket",
	XSTATE(BUCKET_, FREE, TO(LOADING) | TO(DIRTY) | TO(BYPASS)),
	XSTATE(BUCKET_, INVALID, TO(LOADING) | TO(DIRTY) | TO(BYPASS)),
	XSTATE(BUCKET_, BYPASS, TO(INVALID)),
	XSTATE(BUCKET_, LOADING, TO(VALID) | TO(DIRTY) | TO(INVALID) | TO(BYPASS)),
	XSTATE(BUCKET_, VALID, TO(VALID) | TO(DIRTY) | TO(INVALID) | TO(BYPASS)),
	XSTATE(BUCKET_, DIRTY, TO(DIRTY) | TO(WRITING) | TO(INVALID)),
	XSTATE(BUCKET_, WRITING, TO(VALID) | TO(DIRTY) | TO(INVALID)),
};
