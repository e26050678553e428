/* alog_rig_walk - a backup of the rig's log: what a walk with hold tells is compared with what the
 * index had when the walk began. It waits now and then, as a backup does whose reader is slow.
 */
#include <assert.h>
#include <string.h>

#include "tests/rig/alog_rig_inside.h"
#include "xtypes/xcrc.h"

static void told(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct ar *a = ctx;
	struct ar_backup *b = &a->backup;
	struct ar_entry *e;
	uint32_t k = (uint32_t)hint->identity[0] - 1000;

	ar_may_die(a);
	if (!rec) {
		b->bad++;
		return;
	}
	b->told++;
	if (k >= AR_KEYS || rec->sequence != hint->sequence || rec->type != hint->type ||
		xcrc32c(0, data, rec->key_bytes + rec->value_bytes) != rec->data_crc)
		ar_fail(a, "a walk tells what is no record", k);
	e = &b->got[k];
	if (hint->sequence >= b->before || e->sequence > hint->sequence ||
		(e->sequence == hint->sequence && e->zone > zone))
		return;
	*e = (struct ar_entry){ .zone = zone, .sequence = hint->sequence, .type = hint->type };
}

static bool lives(const struct ar_entry *e)
{
	return e->type == ALOG_VALUE;
}

static void over(void *ctx)
{
	struct ar *a = ctx;
	struct ar_backup *b = &a->backup;
	struct alog_walk_state state;

	alog_walk_state(a->log, &state);
	b->over++;
	b->error = state.error;
	if (state.error || a->lossy)
		return;
	if (b->bad)
		ar_fail(a, "a walk tells of damage", b->bad);
	if (state.told != state.zones)
		ar_fail(a, "a walk does not tell all zones", state.told);
	for (uint32_t k = 0; k < AR_KEYS; k++)
		if (lives(&b->got[k]) != lives(&b->want[k]) ||
			(lives(&b->want[k]) && b->got[k].sequence != b->want[k].sequence))
			ar_fail(a, "a backup is not the state at its begin", k);
}

static bool ready(void *ctx, uint32_t bytes)
{
	struct ar *a = ctx;

	assert(bytes > 0);
	return !a->backup.waits_in || ar_random(a, a->backup.waits_in) != 0;
}

bool ar_backup(struct ar *a, uint32_t waits_in)
{
	struct alog_walk walk = { .record = told, .over = over, .ready = ready, .hold = true,
		.ctx = a };
	struct alog_walk_state state;
	struct ar_backup *b = &a->backup;

	if (alog_walk(a->log, &walk))
		return false;
	memset(b, 0, sizeof(*b));
	b->waits_in = waits_in;
	alog_walk_state(a->log, &state);
	b->before = state.before;
	memcpy(b->want, a->index, sizeof(b->want));
	return true;
}
