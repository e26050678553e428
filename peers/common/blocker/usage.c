/* usage - see usage.h for the answer, the contract and the invariants. */
#include "peers/common/blocker/usage.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/clock/clock.h"
#include "peers/common/say/kv.h"

#define WORD	 "usage"
#define FULL	 (USAGE_SLOTS / 4 * 3)		/* more prefixes are in the sum only */
#define PAUSE	 9				/* times the duration of a count */
#define MS	 UINT64_C(1000000)
#define NEXT_MAX sizeof("next=4294967295\n")

struct usage_group {
	char prefix[USAGE_PREFIX];
	uint64_t count, bytes, objects;
};

int usage_open(struct usage *u)
{
	*u = (struct usage){ .shown = 0 };
	u->table[0].slot = calloc(USAGE_SLOTS, sizeof(struct usage_group));
	u->table[1].slot = calloc(USAGE_SLOTS, sizeof(struct usage_group));
	if (!u->table[0].slot || !u->table[1].slot) {
		usage_close(u);
		return -ENOMEM;
	}
	pthread_mutex_init(&u->lock, NULL);
	return 0;
}

void usage_close(struct usage *u)
{
	free(u->table[0].slot);
	free(u->table[1].slot);
	*u = (struct usage){ .shown = 0 };
}

/* ---- counting ---------------------------------------------------------------------------- */

static struct usage_table *hidden(struct usage *u)
{
	return &u->table[!u->shown];
}

void usage_begin(struct usage *u)
{
	struct usage_table *t = hidden(u);

	t->count = u->count;
	t->bytes = t->objects = 0;
	t->nr = 0;
}

/* False: the name has none that could be told. */
static bool prefix_of(const char *name, char prefix[USAGE_PREFIX])
{
	const char *colon = strrchr(name, ':');
	size_t len = colon ? (size_t)(colon - name) + 1 : 0, i;

	if (!len || len >= USAGE_PREFIX)
		return false;
	for (i = 0; i < len; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	memcpy(prefix, name, len);
	prefix[len] = '\0';
	return true;
}

/* Its slot, or a free one; NULL: there are too many prefixes. */
static struct usage_group *slot_of(struct usage_table *t, const char *prefix)
{
	uint64_t at = xseg_hash(prefix, strlen(prefix));
	struct usage_group *g;

	for (;; at++) {
		g = &t->slot[at % USAGE_SLOTS];
		if (g->count != t->count)
			break;
		if (!strcmp(g->prefix, prefix))
			return g;
	}
	if (t->nr == FULL)
		return NULL;
	t->nr++;
	*g = (struct usage_group){ .count = t->count };
	memcpy(g->prefix, prefix, strlen(prefix) + 1);
	return g;
}

void usage_add(struct usage *u, const char *name, uint64_t bytes, uint32_t objects)
{
	struct usage_table *t = hidden(u);
	char prefix[USAGE_PREFIX];
	struct usage_group *g = prefix_of(name, prefix) ? slot_of(t, prefix) : NULL;

	t->bytes += bytes;
	t->objects += objects;
	if (!g)
		return;
	g->bytes += bytes;
	g->objects += objects;
}

void usage_step(struct usage *u, uint32_t percent)
{
	pthread_mutex_lock(&u->lock);
	u->percent = percent;
	pthread_mutex_unlock(&u->lock);
}

void usage_end(struct usage *u, int rc, uint64_t now_ns)
{
	pthread_mutex_lock(&u->lock);
	u->running = false;
	u->error = rc;
	u->ended_ns = now_ns;
	if (!rc) {
		u->shown = !u->shown;
		u->done_ns = now_ns;
	}
	pthread_mutex_unlock(&u->lock);
}

/* ---- telling ----------------------------------------------------------------------------- */

static bool begin_locked(struct usage *u, uint64_t now_ns)
{
	uint64_t age_ns = clock_since(u->ended_ns, now_ns);
	uint64_t took_ns = clock_since(u->begun_ns, u->ended_ns);

	if (u->running || (u->count && (age_ns <= USAGE_FRESH_NS || age_ns / PAUSE < took_ns)))
		return false;
	u->running = true;
	u->percent = 0;
	u->begun_ns = now_ns;
	u->count++;
	return true;
}

static void tell_head(const struct usage *u, uint64_t now_ns, struct kv_text *t)
{
	const struct usage_table *shown = &u->table[u->shown];

	kv_add(t, "count=%" PRIu64 "\ncounting=%s\n", shown->count, u->running ? "yes" : "no");
	if (u->running)
		kv_add(t, "percent=%u\n", u->percent);
	if (shown->count)
		kv_add(t, "age_ms=%" PRIu64 "\nbytes=%" PRIu64 "\nobjects=%" PRIu64 "\n",
			clock_since(u->done_ns, now_ns) / MS, shown->bytes, shown->objects);
	if (u->error)
		kv_add(t, "error=%s\n", strerror(-u->error));
}

/* From the slot given on, as many as fit, with room for the "next=" line. */
static void tell_groups(const struct usage_table *shown, uint32_t from, struct kv_text *t)
{
	size_t size = t->size;
	uint32_t i;

	if (size < t->used + NEXT_MAX || !shown->count)
		return;
	t->size = size - NEXT_MAX;
	for (i = from; i < USAGE_SLOTS; i++) {
		const struct usage_group *g = &shown->slot[i];

		if (g->count == shown->count &&
			!kv_add(t, "prefix=%s bytes=%" PRIu64 " objects=%" PRIu64 "\n", g->prefix,
				g->bytes, g->objects))
			break;
	}
	t->size = size;
	if (i < USAGE_SLOTS)
		kv_add(t, "next=%u\n", i);
}

int64_t usage_ask(struct usage *u, const char *line, uint64_t now_ns, char *out, size_t size,
	bool *begin)
{
	size_t len = strlen(WORD);
	uint32_t from = 0;
	struct kv_text t;

	*begin = false;
	if (strncmp(line, WORD, len) || (line[len] && line[len] != ' '))
		return -ENOSYS;
	kv_init(&t, out, size);
	if (line[len] && kv_number(line + len + 1, &from)) {
		kv_add(&t, "usage takes the number after next=, not '%.40s'", line + len + 1);
		return -EINVAL;
	}
	pthread_mutex_lock(&u->lock);
	*begin = begin_locked(u, now_ns);
	tell_head(u, now_ns, &t);
	tell_groups(&u->table[u->shown], from, &t);
	pthread_mutex_unlock(&u->lock);
	return (int64_t)t.used;
}
