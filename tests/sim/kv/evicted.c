/* evicted - the rule of a log that evicts, checked at each verdict of kvd.
 *
 * A value that was got since it was put or copied is kept, up to half of the zone that is emptied;
 * and no more than that is kept. The check stands between the log and kvd's judge(). What was got
 * is known from the answers of the clients, so a value counts as got only if nothing that was
 * answered later could have made kvd forget it.
 *
 * Contract: alog_create() is linked to this in the simulator (Makefile). It changes nothing.
 */
#include "tests/sim/kv/inside.h"

static struct sim *watched;
static struct alog_user real;			/* of the kvd that there is */
static struct {
	const struct alog *log;
	uint64_t zone, kept;
	uint32_t decided;
} emptied;

struct alog *__real_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch);
struct alog *__wrap_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch);

void evicted_watch(struct sim *s)
{
	watched = s;
}

static uint32_t key_of(const struct kvd *k, const uint64_t identity[2])
{
	uint64_t id[2];
	uint32_t bytes;

	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		const char *key = value_key(i, &bytes);

		kvd_identity(k, key, bytes, id);
		if (id[0] == identity[0] && id[1] == identity[1])
			return i;
	}
	return VERSION_KEYS;
}

static bool was_got(uint32_t key)
{
	const struct values *w = watched->values;
	const struct vkey *k = &w->v.key[key];

	for (uint32_t i = 0; i < k->nr_changes; i++)
		if (k->change[i].state == VCHANGE_OUT || k->change[i].state == VCHANGE_DEAD)
			return false;
	return !w->unsure[key] && w->got[key] > w->forgot[key];
}

static void kept(const struct kvd *k, const struct alog_hint *hint)
{
	if (hint->place < emptied.decided)
		return;
	emptied.kept += hint->bytes;
	emptied.decided = hint->place + hint->bytes;
	if (emptied.kept > k->cfg.zone_bytes / 2)
		sim_fail(watched, "values: %u bytes of a zone are kept for having been got",
			(uint32_t)emptied.kept);
}

static void gone(const struct kvd *k, const struct alog_hint *hint)
{
	uint32_t key = key_of(k, hint->identity);

	if (key < VERSION_KEYS && was_got(key) &&
		emptied.kept + hint->bytes <= k->cfg.zone_bytes / 2)
		sim_fail(watched, "values: key %u was got, and is evicted", key);
}

static enum alog_verdict judge(void *ctx, uint64_t zone, const struct alog_hint *hint, bool keep)
{
	struct kvd *k = ctx;
	bool value = hint->type == ALOG_VALUE && !kvd_is_expired(k, hint->expiry);
	enum alog_verdict verdict = real.judge(ctx, zone, hint, keep);

	if (keep || !value || !watched->plan.evicts)
		return verdict;
	if (emptied.log != k->log || emptied.zone != zone) {
		emptied.log = k->log;
		emptied.zone = zone;
		emptied.kept = emptied.decided = 0;
	}
	if (verdict == ALOG_LIVE)
		kept(k, hint);
	else if (verdict != ALOG_DEAD)
		gone(k, hint);
	return verdict;
}

static void copied(void *ctx, uint64_t from_zone, const struct alog_hint *from, uint64_t to_zone,
	const struct alog_hint *to)
{
	uint32_t key = key_of(ctx, from->identity);

	if (key < VERSION_KEYS)
		watched->values->forgot[key] = ++watched->values->v.now;
	real.copied(ctx, from_zone, from, to_zone, to);
}

struct alog *__wrap_alog_create(const struct alog_config *cfg, const struct alog_user *user,
	void *arena, void *scratch)
{
	struct alog_user mine = *user;

	real = *user;
	mine.judge = judge;
	mine.copied = copied;
	emptied.log = NULL;
	return __real_alog_create(cfg, &mine, arena, scratch);
}
