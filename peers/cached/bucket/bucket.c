/* bucket - the table of legal edges between bucket states. bucket.h explains the states. */
#include "peers/cached/bucket/bucket.h"

#define TO(s) (1u << BUCKET_##s)

static const uint8_t legal[BUCKET_NR_STATES] = {
	[BUCKET_FREE]	 = TO(LOADING) | TO(DIRTY) | TO(BYPASS),
	[BUCKET_INVALID] = TO(LOADING) | TO(DIRTY) | TO(BYPASS),
	[BUCKET_BYPASS]	 = TO(INVALID),
	[BUCKET_LOADING] = TO(VALID) | TO(DIRTY) | TO(INVALID) | TO(BYPASS),
	[BUCKET_VALID]	 = TO(VALID) | TO(DIRTY) | TO(INVALID) | TO(BYPASS),
	[BUCKET_DIRTY]	 = TO(DIRTY) | TO(WRITING) | TO(INVALID),
	[BUCKET_WRITING] = TO(VALID) | TO(DIRTY) | TO(INVALID),
};

static const char *const names[BUCKET_NR_STATES] = {
	"FREE", "INVALID", "BYPASS", "LOADING", "VALID", "DIRTY", "WRITING",
};

const char *bucket_state_name(enum bucket_state s)
{
	return (unsigned)s < BUCKET_NR_STATES ? names[s] : "?";
}

bool bucket_edge_legal(enum bucket_state from, enum bucket_state to)
{
	return (unsigned)from < BUCKET_NR_STATES && (unsigned)to < BUCKET_NR_STATES &&
	       (legal[from] & 1u << to);
}
