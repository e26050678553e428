/* volume_text - texts about single volumes for administrators.
 *
 *      volume-status id=N	"key=value" lines about one volume
 *      volumes [FROM]		a line for each record from FROM on, of "key=value" words; at its
 *				end "next=FROM" when not all fit
 *
 * Contract: any port's thread; other ports' counters are read while they count.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/cached/admin/admin.h"
#include "peers/cached/life/cached.h"
#include "peers/common/say/kv.h"

#define LINE_BYTES 1024

static void add_state(struct cached *k, uint32_t rec, char end, struct kv_text *t)
{
	const struct volume *v = &volume_of(k)->states[rec];
	uint64_t dirty = volume_total(k, rec, VC_DIRTY_BYTES),
		 from = v->drain_bytes > dirty ? v->drain_bytes : dirty;

	if (!atomic_load_explicit(&v->drains, memory_order_relaxed)) {
		kv_add(t, "state=running%c", end);
		return;
	}
	kv_add(t, "state=draining%c", end);
	kv_add(t, "draining.from=%s%c", policies[POLICY_WRITE_BACK].name, end);
	kv_add(t, "draining.percent=%" PRIu64 "%c", from ? 100 - dirty * 100 / from : 100, end);
	kv_add(t, "draining.bytes_left=%" PRIu64 "%c", dirty, end);
}

static void add_share(const struct share *sh, char end, struct kv_text *t)
{
	kv_add(t, "min_bytes=%" PRIu64 "%c",
		(uint64_t)atomic_load_explicit(&sh->min, memory_order_relaxed) * BUCKET_SIZE, end);
	kv_add(t, "max_bytes=%" PRIu64 "%c",
		(uint64_t)atomic_load_explicit(&sh->max, memory_order_relaxed) * BUCKET_SIZE, end);
}

/* `end` stands after each item. A volume without a record has counted nothing. */
static void add_volume(struct cached *k, uint32_t id, uint32_t rec, char end, struct kv_text *t)
{
	kv_add(t, "name=%.63s%c", rec == OTHERS ? "" : volume_of(k)->records[rec].name, end);
	kv_add(t, "id=%u%c", id, end);
	kv_add(t, "policy=%s%c", volume_promise(k, rec, id)->name, end);
	kv_add(t, "policy_from=%s%c", volume_policy(k, rec, id) ? "volume" : "cache", end);
	add_share(&volume_of(k)->states[rec].share, end, t);
	add_state(k, rec, end, t);
	for (unsigned n = 0; n < NR_VC; n++)
		kv_add(t, "%s=%" PRIu64 "%c", volume_keys[n],
			rec == OTHERS && id ? 0 : volume_total(k, rec, n), end);
}

/* Whether the numbers are the volume's: what it has may be among those of the OTHERS. */
static bool is_counted(struct cached *k, uint32_t id, uint32_t rec)
{
	return rec != OTHERS || !id ||
	       (volume_has_room(k, id) && !volume_total(k, OTHERS, VC_DIRTY_BYTES));
}

/* A number behind "key=": 0, or -EINVAL. */
static int number_arg(char *args, const char *key, uint32_t *n)
{
	char *value, *word = kv_next_word(&args, &value);

	return word && value && !strcmp(word, key) ? kv_number(value, n) : -EINVAL;
}

int64_t volume_status_text(struct cached *k, char *args, char *out, size_t size)
{
	struct kv_text t;
	uint32_t id, rec;

	kv_init(&t, out, size);
	if (number_arg(args, "id", &id)) {
		kv_add(&t, "no volume is named; write volume-status id=N");
		return -EINVAL;
	}
	rec = volume_find(k, id);
	add_volume(k, id, rec, '\n', &t);
	kv_add(&t, "counted=%s\n", is_counted(k, id, rec) ? "yes" : "no");
	return t.full ? -ENOSPC : (int64_t)t.used;
}

/* Objects need not tell how their volume is called: then the name is empty, and volumed knows. */
static bool is_listed(struct cached *k, uint32_t rec)
{
	return atomic_load_explicit(&volume_of(k)->volume_ids[rec], memory_order_acquire) != 0;
}

int64_t volume_list_text(struct cached *k, char *args, char *out, size_t size)
{
	char line[LINE_BYTES], *value, *from = kv_next_word(&args, &value);
	struct kv_text t, l;
	uint32_t rec = 0;

	kv_init(&t, out, size);
	if (from && (value || kv_number(from, &rec))) {
		kv_add(&t, "no record is named; write volumes FROM, with a number");
		return -EINVAL;
	}
	for (; rec < volume_of(k)->nr_volumes; rec++) {
		if (!is_listed(k, rec))
			continue;
		kv_init(&l, line, sizeof(line));
		add_volume(k, volume_of(k)->volume_ids[rec], rec, ' ', &l);
		if (t.used + l.used + 32 > size)
			break;
		kv_add(&t, "%s\n", line);
	}
	if (rec < volume_of(k)->nr_volumes)
		kv_add(&t, "next=%u\n", rec);
	return (int64_t)t.used;
}
