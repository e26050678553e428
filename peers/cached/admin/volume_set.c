/* volume_set - settings of single volumes: reading, changing and showing them.
 *
 *      volume-set id=N [name=VOL] KEY=VALUE...
 *      volume-get id=N
 *      volume-forget id=N	the volume was removed
 *
 * All settings of a volume are one word of its record, stored at once (rule R1). So a kill leaves
 * the old ones or the new ones. With an empty policy the volume has the cache's policy. A min or a
 * max (share.h) that is empty or 0 means none. A switch away from write-back holds for requests
 * that come after it, and is answered at once. The volume's dirty data is flushed in the
 * background.
 *
 * Contract: any port's thread. volume_lock is held while settings change, and dirty_lock is taken
 * under it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/cached/admin/admin.h"
#include "peers/cached/life/cached.h"
#include "peers/common/say/kv.h"
#include "peers/common/options/opt.h"
#include "xtypes/xkill.h"

#define MIB_PAGES   256u
#define ROUND_PAGES (4 * MIB_PAGES)

/* Writes the reason and returns its code. */
#define REASON(t, code, ...) (kv_add((t), __VA_ARGS__), (code))

/* ---- reading ---- */

static int set_policy(uint64_t *word, const char *value, struct kv_text *t)
{
	const struct policy *p = policy_named(value);

	if (!p && *value) {
		kv_add(t, "'%.40s' is not a policy; choose ", value);
		for (unsigned i = 0; i < NR_POLICIES; i++)
			kv_add(t, "%s, ", policy_names[i]);
		return REASON(t, -EINVAL, "or nothing for the cache's own");
	}
	*word = settings_with_policy(*word, p);
	return 0;
}

/* Writes how many pages that is. */
static int read_pages(const char *value, uint64_t *pages, struct kv_text *t)
{
	uint64_t bytes = 0;

	if (*value && opt_parse_size(value, &bytes))
		return REASON(
			t, -EINVAL,
			"'%.40s' is not a size; write it as in 512M, or 0 for none", value);
	*pages = bytes / BUCKET_SIZE + (bytes % BUCKET_SIZE > 0);
	if (*pages > SETTINGS_PAGES_MAX)
		return REASON(t, -EINVAL, "'%.40s' is more than a cache can have", value);
	return 0;
}

enum share_end { SHARE_MIN, SHARE_MAX };

static int set_share(uint64_t *word, enum share_end end, const char *value, struct kv_text *t)
{
	uint32_t share[2];
	uint64_t pages;
	int rc = read_pages(value, &pages, t);

	if (rc)
		return rc;
	settings_share(*word, &share[SHARE_MIN], &share[SHARE_MAX]);
	share[end] = (uint32_t)pages;
	*word = settings_with_share(*word, share[SHARE_MIN], share[SHARE_MAX]);
	return 0;
}

static int set_min(uint64_t *word, const char *value, struct kv_text *t)
{
	return set_share(word, SHARE_MIN, value, t);
}

static int set_max(uint64_t *word, const char *value, struct kv_text *t)
{
	return set_share(word, SHARE_MAX, value, t);
}

static const struct key {
	const char *name;
	int (*set)(uint64_t *word, const char *value, struct kv_text *t);
} keys[] = {
	{ "policy", set_policy }, { "min", set_min }, { "max", set_max },
};

static int set_key(uint64_t *word, const char *name, const char *value, struct kv_text *t)
{
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(keys[i].name, name))
			return keys[i].set(word, value ? value : "", t);
	return REASON(
		t, -EINVAL, "a volume has no setting '%.40s'; it has policy, min and max", name);
}

struct change {
	uint32_t id;
	const char *name;
	char *keys;				/* the words after id and name */
};

static int parse_change(struct change *c, char *args, struct kv_text *t)
{
	char *value, *rest, *word = kv_next_word(&args, &value);

	c->name = "";
	c->keys = args ? args : "";
	if (!word || !value || strcmp(word, "id") || kv_number(value, &c->id) || !c->id)
		return REASON(t, -EINVAL, "no volume is named; begin with id=N");
	if (strncmp(c->keys, "name=", 5))
		return 0;
	rest = c->keys;
	kv_next_word(&rest, &value);
	c->name = value;
	c->keys = rest ? rest : "";
	if (!volume_name_ok(c->name))
		return REASON(t, -EINVAL, "'%.40s' is not a volume's name", c->name);
	return 0;
}

/* ---- changing ---- */

/* What is dirty of the volume is to be flushed, if its policy was write-back and is not any
 * more. */
static void switch_policy(struct cached *k, uint32_t rec, uint64_t from, uint64_t to)
{
	const struct policy *cache = policy_current(k);
	const struct policy *old = settings_policy(from), *new = settings_policy(to);
	bool was_promised = (old ? old : cache)->answers_before_store;

	if ((new ? new : cache)->answers_before_store) {
		drain_cancel(k, rec);
		return;
	}
	/* under the cache's it may still have some of before that was switched */
	if (!old && atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed))
		was_promised = true;
	if (!was_promised)
		return;
	volume_of(k)->states[rec].drain_bytes = volume_total(k, rec, VC_DIRTY_BYTES);
	drain_begin(k, rec);
}

struct size_text {
	char text[32];
};

static struct size_text pages_text(uint32_t pages)
{
	struct size_text t = { "" };

	opt_format_size((uint64_t)pages * BUCKET_SIZE, t.text, sizeof(t.text));
	return t;
}

static struct size_text human_text(uint32_t pages)
{
	struct size_text t = { "" };

	opt_human_size((uint64_t)pages * BUCKET_SIZE, t.text, sizeof(t.text));
	return t;
}

/* A size to be given: exact, or whole MiB where these are many. */
static struct size_text most_text(uint32_t pages)
{
	return pages_text(pages < ROUND_PAGES ? pages : pages & ~(MIB_PAGES - 1));
}

/* Under volume_lock. What a volume has may be said again, also where it could not be promised
 * now. */
static int check_share(struct cached *k, uint32_t rec, uint64_t word, struct kv_text *t)
{
	uint32_t own =
		atomic_load_explicit(&volume_of(k)->states[rec].share.min, memory_order_relaxed);
	uint32_t others =
		atomic_load_explicit(&volume_of(k)->shares.min_sum, memory_order_relaxed) - own;
	uint32_t target = atomic_load_explicit(&memory_of(k)->target_pages, memory_order_relaxed),
		 limit = share_limit(k, target);
	uint32_t left = limit > others ? limit - others : 0, min, max;

	settings_share(word, &min, &max);
	if (max && min > max)
		return REASON(t, -EINVAL, "min=%s would be above max=%s; set both",
			pages_text(min).text, pages_text(max).text);
	if (min <= left || min <= own)
		return 0;
	return REASON(t, -EBUSY,
		"min=%s cannot be promised: of the cache's %s only %s can be, and other volumes "
		"have %s of that; ask for %s at most, or lower their min",
		pages_text(min).text, human_text(target).text, human_text(limit).text,
		human_text(others).text, most_text(left).text);
}

static void add_settings(uint64_t word, struct kv_text *t)
{
	const struct policy *p = settings_policy(word);
	uint32_t min, max;

	settings_share(word, &min, &max);
	kv_add(t, "policy=%s\nmin=%s\nmax=%s\n", p ? p->name : "", pages_text(min).text,
		pages_text(max).text);
}

/* Under volume_lock. */
static int apply_change(struct cached *k, const struct change *c, struct kv_text *t)
{
	uint32_t rec = volume_make_locked(k, c->id, c->name);
	char *rest = c->keys, *name, *value;
	uint32_t min, max;
	uint64_t old, word;
	int rc;

	if (rec == OTHERS)
		return REASON(t, -ENOSPC,
			"the cache has no room for another volume's settings; reset those of a "
			"volume that you no longer tune, as in 'xseg cache set %s policy= --volume "
			"VOL'",
			peer_of(k)->name);
	old = word =
		atomic_load_explicit(&volume_of(k)->records[rec].settings, memory_order_relaxed);
	while ((name = kv_next_word(&rest, &value))) {
		rc = set_key(&word, name, value, t);
		if (rc)
			return rc;
	}
	rc = check_share(k, rec, word, t);
	if (rc)
		return rc;
	/* release: partner is the acquire in volume_settings() */
	atomic_store_explicit(&volume_of(k)->records[rec].settings, word, memory_order_release);
	XKILL(VOLUME_SET);
	settings_share(word, &min, &max);
	share_set(k, rec, min, max);
	switch_policy(k, rec, old, word);
	direct_renew_locked(k);
	add_settings(word, t);
	return 0;
}

void volumes_drain(struct cached *k)
{
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		const struct policy *own = settings_policy(atomic_load_explicit(
			&volume_of(k)->records[r].settings, memory_order_relaxed));

		if (!own || own->answers_before_store || volume_total(k, r, VC_DIRTY_BYTES) == 0)
			continue;
		volume_of(k)->states[r].drain_bytes = volume_total(k, r, VC_DIRTY_BYTES);
		drain_begin(k, r);
	}
}

int64_t volume_set_text(struct cached *k, char *args, char *out, size_t size)
{
	struct kv_text t;
	struct change c;
	int rc;

	kv_init(&t, out, size);
	rc = parse_change(&c, args, &t);
	if (rc)
		return rc;
	pthread_mutex_lock(&volume_of(k)->volume_lock);
	rc = apply_change(k, &c, &t);
	pthread_mutex_unlock(&volume_of(k)->volume_lock);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		peer_port_kick(&peer_of(k)->ports[i]);
	return (int64_t)t.used;
}

int64_t volume_get_text(struct cached *k, char *args, char *out, size_t size)
{
	struct kv_text t;
	struct change c;
	uint64_t word;
	int rc;

	kv_init(&t, out, size);
	rc = parse_change(&c, args, &t);
	if (rc)
		return rc;
	word = volume_settings(k, OTHERS, c.id);
	add_settings(word, &t);
	if (!settings_policy(word))
		kv_add(&t, "policy_in_force=%s\n",
			volume_promise(k, volume_find(k, c.id), c.id)->name);
	return (int64_t)t.used;
}

int64_t volume_forget_text(struct cached *k, char *args, char *out, size_t size)
{
	struct kv_text t;
	struct change c;
	int rc;

	kv_init(&t, out, size);
	rc = parse_change(&c, args, &t);
	if (rc)
		return rc;
	volume_forget(k, c.id);
	kv_add(&t, "ok\n");
	return (int64_t)t.used;
}
