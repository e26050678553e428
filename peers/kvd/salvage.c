/* salvage - the command `salvage`: what the zones of a log still have, though both heads are bad.
 *
 *   state      what is done                                                   next
 *   BROKEN     the command comes; the log is created anew                     SALVAGING
 *   SALVAGING  the store lists the log's objects; alog_salvage() opens them;  SALVAGED
 *              a walk fills the index
 *   SALVAGED   INFO, BACKUP and PIECE are served; all else has the error      (a restart)
 *
 * Contract: kvd's thread. One command at a time. The list of zones is allocated for the time of the
 * command; kvd serves nobody then. Nothing is written to the store, and the arena stays as it is.
 * So a head that is brought back is as good after a salvage as before.
 *
 * Invariants
 *   S1  Of each identity the backup has one record: the one with the highest sequence, of equal
 *       ones that in the higher zone. It may be a tombstone.
 *   S2  A record below the last clear is left out, and INFO counts no key of it. A clear that waits
 *       for its time does not count.
 *   S3  What the store lists is input: a name counts only if it is that of a zone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"

#define LIST_PAGES 16u
#define RETRY_NS   (KVD_SECOND / 100)
#define ZONES_MAX  (1u << 24)

static void answer(struct kvd *k, int64_t rc, const char *text)
{
	struct xreq *r = k->salvage.r;

	k->salvage.r = NULL;
	peer_answer_text(k->pp, r, rc, text);
}

static void end(struct kvd *k, int64_t rc, const char *text)
{
	k->state = rc < 0 ? KVD_BROKEN : KVD_SALVAGED;
	answer(k, rc, text);
	kvd_salvage_close(k);
}

void kvd_salvage_close(struct kvd *k)
{
	free(k->salvage.zone);
	k->salvage = (struct kvd_salvage){ .zone = NULL };
}

/* ---- the list ---- */

static bool add_zone(struct kvd *k, uint64_t zone)
{
	struct kvd_salvage *s = &k->salvage;
	uint32_t room = s->room ? s->room * 2 : 1024;
	uint64_t *more;

	if (s->nr == s->room) {
		more = room > ZONES_MAX ? NULL : realloc(s->zone, room * sizeof(*more));
		if (!more)
			return false;
		s->zone = more;
		s->room = room;
	}
	s->zone[s->nr++] = zone;
	return true;
}

/* S3. A negative errno, or 0. */
static int take_names(struct kvd *k, const uint8_t *answer, uint64_t bytes)
{
	struct xseg_list list;
	uint64_t at = sizeof(list), zone;

	if (bytes < sizeof(list))
		return -EIO;
	memcpy(&list, answer, sizeof(list));
	for (uint32_t i = 0; i < list.nr; i++) {
		const char *name = (const char *)answer + at;
		size_t len = strnlen(name, bytes - at);

		if (len == bytes - at)
			return -EIO;
		zone = alog_zone_of(&k->cfg, name);
		if (zone && !add_zone(k, zone))
			return -ENOMEM;
		at += len + 1;
	}
	k->salvage.cursor = list.next;
	k->salvage.listed = !list.next;
	return 0;
}

static void list_is_back(struct kvd *k, struct kvd_job *j)
{
	struct kvd_salvage *s = &k->salvage;
	const struct kvd_read *rd = j->read;
	int64_t rc = rd->result;

	s->asks = false;
	if (rc == -ESTALE) {
		s->cursor = 0;			/* zones may be named twice */
		return;
	}
	if (rc >= 0)
		rc = take_names(k, rd->pages, rc < rd->bytes ? (uint64_t)rc : rd->bytes);
	if (rc)
		end(k, rc, rc == -EOPNOTSUPP ? "the store below cannot list its objects"
					     : "the store below does not list the log's objects");
}

/* No other read is out or begins in this state. */
static bool ask_list(struct kvd *k)
{
	struct kvd_salvage *s = &k->salvage;
	struct kvd_read *rd = &k->reads.read[0];
	struct xreq *r = xseg_req_alloc(k->pp->port);

	if (!r)
		return false;
	s->job = (struct kvd_job){ .run = list_is_back, .read = rd };
	rd->job = &s->job;
	rd->bytes = LIST_PAGES * XSEG_PAGE_SIZE;
	r->op = XSEG_OP_LIST;
	r->obj_offset = s->cursor;
	r->size = rd->bytes;
	r->nr_pages = LIST_PAGES;
	for (uint32_t i = 0; i < LIST_PAGES; i++)
		r->page[i] = kvd_page_of(k, rd->pages + i * XSEG_PAGE_SIZE);
	xseg_req_set_target(r, k->target, k->target_len);
	if (!kvd_submit(k, r, (struct kvd_context){ .read = rd }))
		return false;
	k->reads.out++;
	s->asks = true;
	return true;
}

/* ---- the walk ---- */

static bool is_newer(const struct kvd *k, uint64_t slot, const struct index_entry *e, uint64_t zone,
	const struct alog_hint *hint)
{
	uint64_t sequence = k->index.sequence[slot];

	return hint->sequence > sequence || (hint->sequence == sequence && zone > e->zone);
}

/* S1, S2 */
static void record(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct kvd *k = ctx;
	struct index_entry e = { .zone = zone, .place = hint->place, .bytes = hint->bytes,
		.type = hint->type == ALOG_TOMBSTONE ? INDEX_TOMBSTONE : INDEX_VALUE, .count = 1 };
	struct index_entry old;
	uint64_t slot;

	if (!rec || !data)
		return;
	if (hint->type == ALOG_CLEAR) {
		if (!hint->expiry && k->clear.sequence < hint->sequence)
			k->clear.sequence = hint->sequence;
		return;
	}
	slot = index_find(&k->index, hint->identity);
	if (slot == INDEX_NONE) {
		slot = index_insert(&k->index, hint->identity, &e);
	} else {
		index_get(&k->index, slot, &old);
		if (!is_newer(k, slot, &old, zone, hint))
			return;
		index_set(&k->index, slot, &e);
	}
	if (slot == INDEX_NONE)
		k->salvage.is_full = true;
	else
		k->index.sequence[slot] = hint->sequence;
}

static void over(void *ctx)
{
	struct kvd *k = ctx;

	if (k->salvage.is_full) {
		end(k, -ENOSPC, "the log has more keys than keys= allows; start it with more");
		return;
	}
	kvd_clear_sweep_found(k);		/* S2 */
	log_info("%s: the zones of +%s are read; a backup has their records", k->peer.name,
		k->cfg.prefix);
	end(k, 0, "");
}

/* ---- the steps ---- */

/* False: the command is over. */
static bool may_begin(struct kvd *k)
{
	const char *why = k->state != KVD_BROKEN ? "its log is open; leave out --salvage"
			  : k->error != -EBADMSG
				  ? "a salvage is for a log whose two heads are damaged; the log "
				    "of the stack says why this one cannot be opened"
				  : NULL;

	if (why)
		answer(k, -EBUSY, why);
	return !why;
}

static void begin(struct kvd *k)
{
	if (!may_begin(k) || k->log_out || k->reads.out || k->large.parts_out)
		return;
	k->salvage = (struct kvd_salvage){ .r = k->salvage.r };
	k->state = KVD_SALVAGING;
}

static void open_log(struct kvd *k)
{
	struct kvd_salvage *s = &k->salvage;

	s->opens = true;
	large_begin(&k->large.t);
	if (kvd_make_log(k))
		alog_salvage(k->log, s->zone, s->nr);
	else
		end(k, -ENOMEM, "out of memory");
}

static uint64_t walk_log(struct kvd *k)
{
	struct alog_walk walk = { .record = record, .over = over, .ctx = k };
	uint64_t next = alog_poll(k->log, k->pp->now_ns);

	if (alog_failed(k->log)) {
		end(k, alog_failed(k->log), "the store has no zone of its log that verifies");
		return PEER_NEVER;
	}
	if (k->state == KVD_SALVAGING && alog_salvages(k->log) && !k->salvage.walks) {
		k->salvage.walks = alog_walk(k->log, &walk) == 0;
		return k->pp->now_ns;
	}
	return next;
}

uint64_t kvd_salvage_poll(struct kvd *k)
{
	struct kvd_salvage *s = &k->salvage;

	if (k->state == KVD_SALVAGED) {
		if (s->r)
			answer(k, 0, "");
		kvd_backup_poll(k);
		return alog_poll(k->log, k->pp->now_ns);
	}
	if (s->r && (k->state == KVD_BROKEN || k->state == KVD_OPEN))
		begin(k);
	if (k->state != KVD_SALVAGING)
		return PEER_NEVER;
	if (!s->listed && !s->asks)
		return ask_list(k) ? PEER_NEVER : k->pp->now_ns + RETRY_NS;
	if (s->listed && !s->opens)
		open_log(k);
	return s->opens ? walk_log(k) : PEER_NEVER;
}

int64_t kvd_salvage(struct kvd *k, struct xreq *r, struct kv_text *t)
{
	if (k->salvage.r) {
		kv_add(t, "%s: another salvage is under way; try again later", k->peer.name);
		return -EBUSY;
	}
	k->salvage.r = r;
	return PEER_ADMIN_LATER;
}

/* ---- requests ---- */

void kvd_salvage_request(struct kvd *k, struct xreq *r)
{
	struct kv_query q;

	if (k->state == KVD_SALVAGED && r->op == XSEG_OP_READ && !kvd_query_parse(k, r, &q) &&
		(q.kind == KV_INFO || q.kind == KV_BACKUP || q.kind == KV_PIECE))
		kvd_query(k, r);
	else
		peer_answer(k->pp, r, k->error);
}
