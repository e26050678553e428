/* settings - the word of a volume's settings: its fields, and the policy in it (volume.h). */
#include "peers/cached/policy/policy.h"
#include "peers/cached/volume/volume.h"

/* From bit 0 on: number of the policy plus 1, 0 for the cache's; min, max in pages. */
#define POLICY_BITS 4
#define SHARE_BITS  30
#define POLICY_MASK ((1ull << POLICY_BITS) - 1)
#define SHARE_MASK  ((1ull << SHARE_BITS) - 1)
#define MIN_SHIFT   POLICY_BITS
#define MAX_SHIFT   (POLICY_BITS + SHARE_BITS)
_Static_assert(SHARE_MASK == SETTINGS_PAGES_MAX, "volume.h says how many there may be");
_Static_assert(NR_POLICIES <= POLICY_MASK, "each has a number");

const struct policy *settings_policy(uint64_t word)
{
	uint64_t n = word & POLICY_MASK;

	return n && n <= NR_POLICIES ? &policies[n - 1] : NULL;
}

uint64_t settings_with_policy(uint64_t word, const struct policy *p)
{
	return (word & ~POLICY_MASK) | (p ? (uint64_t)(p - policies) + 1 : 0);
}

void settings_share(uint64_t word, uint32_t *min, uint32_t *max)
{
	*min = (uint32_t)(word >> MIN_SHIFT & SHARE_MASK);
	*max = (uint32_t)(word >> MAX_SHIFT & SHARE_MASK);
}

uint64_t settings_with_share(uint64_t word, uint32_t min, uint32_t max)
{
	return (word & POLICY_MASK) | (uint64_t)min << MIN_SHIFT | (uint64_t)max << MAX_SHIFT;
}

bool settings_ok(uint64_t word)
{
	uint32_t min, max;

	settings_share(word, &min, &max);
	return (word & POLICY_MASK) <= NR_POLICIES && (max == 0 || min <= max);
}

const struct policy *volume_policy(struct cached *k, uint32_t rec, uint32_t id)
{
	return settings_policy(volume_settings(k, rec, id));
}

const struct policy *volume_promise(struct cached *k, uint32_t rec, uint32_t id)
{
	return policy_promise(k, volume_policy(k, rec, id));
}
