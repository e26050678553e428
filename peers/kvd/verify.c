/* verify - the command `verify`: each record of the log is read, and what is bad is told.
 *
 * Contract: kvd's thread. One at a time; it goes on beside requests, as a walk of the log. A
 * successor of a killed kvd begins it anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/kvd/kvd.h"

#define BAD_TOLD 100u				/* bad records in the answer */

static bool is_live(const struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	uint64_t slot = index_find(&k->index, hint->identity);
	struct index_entry e;

	if (slot == INDEX_NONE)
		return false;
	index_get(&k->index, slot, &e);
	return e.type == INDEX_VALUE && e.zone == zone && e.place == hint->place;
}

static void record(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct kvd *k = ctx;
	struct kvd_verify *v = &k->verify;
	bool live = is_live(k, zone, hint);

	v->records++;
	v->bytes += hint->bytes;
	v->live += live;
	if (rec && data)
		return;
	v->bad++;
	v->bad_live += live;
	if (v->bad <= BAD_TOLD)
		kv_add(&v->text, "bad=+%s:%016" PRIx64 " place=%u bytes=%u live=%s\n",
			k->cfg.prefix, zone, hint->place, hint->bytes, live ? "yes" : "no");
}

static void over(void *ctx)
{
	struct kvd *k = ctx;
	struct kvd_verify *v = &k->verify;
	struct xreq *r = v->r;

	v->r = NULL;
	kv_add(&v->text, "records=%" PRIu64 "\nbytes=%" PRIu64 "\nlive=%" PRIu64 "\nbad=%" PRIu64
			 "\nbad_live=%" PRIu64 "\n", v->records, v->bytes, v->live, v->bad,
		v->bad_live);
	if (r)
		peer_answer_text(k->pp, r, (int64_t)v->text.used, v->text.buf);
}

int64_t kvd_verify(struct kvd *k, struct xreq *r, struct kv_text *t)
{
	struct alog_walk walk = { .record = record, .over = over, .ctx = k };
	struct kvd_verify *v = &k->verify;

	if (k->state != KVD_OPEN || v->r || alog_walk(k->log, &walk)) {
		kv_add(t, "%s: %s; try again later", k->peer.name, v->r ?
			"another verify is under way" : "its log is not open");
		return -EBUSY;
	}
	*v = (struct kvd_verify){ .r = r, .buf = v->buf };
	kv_init(&v->text, v->buf, KVD_VERIFY_BYTES);
	return PEER_ADMIN_LATER;
}

void kvd_verify_fail(struct kvd *k, int error)
{
	struct xreq *r = k->verify.r;

	k->verify.r = NULL;
	if (r)
		peer_answer_text(k->pp, r, error, "the log is being read anew; try again later");
}
