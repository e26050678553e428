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

#define STATE	 (7ull << 32)
#define PAGE	 ((uint64_t)UINT32_MAX)
#define LENT	 (SLOT_DIRECT | SLOT_LOAN)
#define CLEANED	 (SLOT_WRITTEN | SLOT_EPOCH)
#define AHEAD	 (SLOT_AHEAD | SLOT_ONCE)

/* What may stand in a slot beside each state: the table of flags in bucket.h. */
static const uint64_t bits[BUCKET_NR_STATES] = {
	[BUCKET_FREE] = STATE,
	[BUCKET_INVALID] = STATE,
	[BUCKET_BYPASS] = STATE,
	[BUCKET_LOADING] = STATE | PAGE | SLOT_LOADED | SLOT_REF,
	[BUCKET_VALID] = STATE | PAGE | SLOT_ZERO | SLOT_REF | LENT | CLEANED | AHEAD,
	[BUCKET_DIRTY] = STATE | PAGE | SLOT_ZERO | SLOT_REF | LENT | CLEANED | SLOT_GEN |
			 SLOT_INFLIGHT | SLOT_UNPROMISED | SLOT_REFUSED | SLOT_UNKEPT,
	[BUCKET_WRITING] = STATE | PAGE | SLOT_ZERO | SLOT_REF | LENT | CLEANED | SLOT_GEN |
			   SLOT_UNPROMISED | SLOT_UNKEPT,
};

bool slot_is_sound(uint64_t w)
{
	return slot_state(w) < BUCKET_NR_STATES && !(w & ~bits[slot_state(w)]);
}
