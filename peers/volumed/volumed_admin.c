/* volumed_admin - the commands of volumed: create, list, look at, resize and remove volumes;
 * status.
 *
 *      volume create NAME size=BYTES [like=NAME]
 *      volume list [SLOT]			status
 *      volume resize NAME size=BYTES		volume info NAME [id=N]
 *      volume remove NAME [force]		volume lost [N]			volume recover
 *      volume rename NAME NEW
 *      volume set NAME [iops=N] [bandwidth=BYTES] [burst=NS]	(0: no limit)
 *
 * Commands may come to any port. Those of "volume" go through the inbox to port 0's thread. It does
 * changes one at a time, in order of arrival. The time of the answer depends on the command:
 *
 *   a question  at once, from the table, whatever changes wait for (A3)
 *   a change    when its record is on stable storage (V2)
 *   a shrink    when the part beyond the new size is gone
 *   a removal   as soon as it is recorded
 *
 * The objects of a removed volume are deleted in the background; "volume info" says -ENOENT when
 * that is done. The name is free at once: another volume of that name has objects of other names. A
 * volume that a client has open is not removed without the word "force".
 *
 * Contract: nothing blocks, nothing allocates. While the catalogue is being read commands wait. If
 * it cannot be read they are answered with the reason.
 *
 * Invariants
 *   A1  A record whose write failed may or may not be on the store. The old record is written
 *       again, until that succeeds, before anything else is changed. The table never follows a
 *       record that is not certain. No admin is told that a change is undone before it is: a
 *       successor believes the record, and does a removal or a shrink that it finds there.
 *   A2  Before a change is recorded its request notes the id of the volume. No two volumes have one
 *       id. So a successor, which is given the request again, knows which changes this request
 *       made, and which were there before. It does requests with a note first, so nothing has been
 *       changed in between.
 *   A3  A question (list, info, lost) needs no store, and never waits for a change: the table has
 *       what is certain (A1). A change whose store stands still would delay it without end.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/common/log/log.h"
#include "peers/common/say/volume_users.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"
#include "xtypes/xstate.h"

#define LATER INT64_MIN

/* run() returns 0 (the text is the answer), a negative errno (the text is the reason) or LATER. */
struct command {
	const char *word;
	int64_t (*run)(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t);
	bool changes;				/* the catalogue */
	bool needs_all;				/* its three objects, to do that */
};

/* ---- answering --------------------------------------------------------------------------- */

static void answer(struct peer_port *pp, struct xreq *r, int64_t result, const struct kv_text *t)
{
	peer_answer_text(pp, r, result < 0 ? result : (int64_t)t->used, t->buf);
}

static void text_begin(struct peer_port *pp, const struct xreq *r, struct kv_text *t)
{
	uint32_t room = peer_text_room(r);

	kv_init(t, vd_of(pp)->admin.text, room < PEER_TEXT_BYTES ? room + 1 : room);
}

/* Writes the reason and returns its code. */
#define REASON(t, code, ...) (kv_add((t), __VA_ARGS__), (int64_t)(code))

/* ---- one volume in words ----------------------------------------------------------------- */

/* `end` stands between the items. */
static bool add_volume(struct volumed *vd, const struct vd_volume *v, char end, struct kv_text *t)
{
	const struct vd_meta *m = &v->meta;
	const char *state = m->state == VD_REMOVING    ? "removing"
			    : m->state == VD_SHRINKING ? "shrinking"
						       : "ok";
	bool has_job = m->state != VD_LIVE;

	return kv_add(t,
		"slot=%u%cname=%s%cid=%u%cidentity=%" PRIu64 "%cprefix=%s%csize_bytes=%" PRIu64
		"%cobject_size_bytes=%" PRIu64 "%cstate=%s%cobjects_left=%" PRIu64
		"%cobjects_deleted=%" PRIu64 "%cwaits_for_requests=%u%ciops=%" PRIu64
		"%cbandwidth_bytes=%" PRIu64 "%cburst_ns=%" PRIu64 "%cwaiting=%u\n",
		vd_slot_of(vd, v), end, m->name, end, vd_id_of(vd, v), end, m->identity, end,
		v->prefix, end, m->size_bytes, end, m->object_size, end, state, end,
		vd_job_left(vd, v), end, has_job ? v->deleted : 0, end,
		has_job ? v->waits_for : 0, end, m->limits.iops, end, m->limits.bandwidth, end,
		m->limits.burst_ns, end, vd_limit_waiting(vd, v));
}

static bool is_listed(const struct vd_volume *v)
{
	return v->meta.state != VD_FREE && v->meta.state < VD_DAMAGED;
}

/* ---- changes ----------------------------------------------------------------------------- */

#define TO(state) (1u << VD_CHANGE_##state)

static const struct xstates states = {
	.what = "change of volumes",
	XSTATE(VD_CHANGE_, IDLE, TO(WRITING)),
	XSTATE(VD_CHANGE_, WRITING, TO(IDLE) | TO(UNDOING)),
	XSTATE(VD_CHANGE_, UNDOING, TO(IDLE)),
};

static void change_set(struct vd_admin *a, enum vd_change change)
{
	xstate_check(&states, a->change, change);
	a->change = change;
}

static void change_begin(struct peer_port *pp, struct xreq *r, struct vd_volume *v,
			 const struct vd_meta *next)
{
	struct vd_admin *a = &vd_of(pp)->admin;

	xseg_req_note_set(pp->peer->seg, r, PEER_NOTE_KIND,
			  vd_make_id(vd_slot_of(vd_of(pp), v), next->generation));
	XKILL(CHANGE_NOTED);
	change_set(a, VD_CHANGE_WRITING);
	a->sent = false;
	a->retry_ns = 0;
	a->r = r;
	a->v = v;
	a->next = *next;
}

/* ---- changes that a predecessor began (A2) ----------------------------------------------- */

static uint32_t noted_id(struct volumed *vd, const struct xreq *r)
{
	return (uint32_t)xseg_req_note(vd->peer.seg, r, PEER_NOTE_KIND);
}

/* The volume that was being changed for this request, if there is one by now or still; else
 * NULL. */
static struct vd_volume *noted(struct volumed *vd, const struct xreq *r)
{
	uint32_t id = noted_id(vd, r), slot = (id & 0xffff) - 1;

	if (slot >= VD_SLOTS || !is_listed(&vd->volume[slot]) ||
		vd_id_of(vd, &vd->volume[slot]) != id)
		return NULL;
	return &vd->volume[slot];
}

static bool same_limits(const struct vd_meta *a, const struct vd_meta *b)
{
	return !memcmp(&a->limits, &b->limits, sizeof(a->limits));
}

static void log_change(
	const struct peer_port *pp, const struct vd_meta *old, const struct vd_meta *next)
{
	char size[32];

	opt_format_size(next->size_bytes, size, sizeof(size));
	if (old->state == VD_FREE)
		log_info("%s: volume '%s' of %s is created", pp->peer->name, next->name, size);
	else if (next->state == VD_REMOVING)
		log_info("%s: volume '%s' of %s is being removed", pp->peer->name, next->name,
			size);
	else if (strcmp(old->name, next->name) != 0)
		log_info("%s: volume '%s' is named '%s' now", pp->peer->name, old->name,
			next->name);
	else if (same_limits(old, next))
		log_info("%s: volume '%s' is resized to %s", pp->peer->name, next->name, size);
	else
		log_info("%s: volume '%s' is given other limits", pp->peer->name, next->name);
}

static void wait_for_shrink(struct vd_admin *a, struct vd_volume *v, struct xreq *r)
{
	v->waiter = r;
	a->nr_waiters++;
}

/* The record is on stable storage. A shrink is answered when its job is done. */
static void change_done(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_admin *a = &vd->admin;
	struct vd_meta old = a->v->meta;
	struct kv_text t;

	change_set(a, VD_CHANGE_IDLE);
	vd_volume_become(pp, a->v, &vd->catalog.meta);
	log_change(pp, &old, &a->next);
	if (a->next.state == VD_SHRINKING) {
		wait_for_shrink(a, a->v, a->r);
		return;
	}
	text_begin(pp, a->r, &t);
	add_volume(vd, a->v, '\n', &t);
	answer(pp, a->r, 0, &t);
}

/* Who asked waits until it has been tried to undo it (A1). */
static void change_failed(struct peer_port *pp, int rc)
{
	struct vd_admin *a = &vd_of(pp)->admin;

	log_error("%s: the record of volume '%s' cannot be written: %s; undoing the change, trying "
		  "again each second",
		  pp->peer->name, a->next.name, strerror(-rc));
	change_set(a, VD_CHANGE_UNDOING);
	a->error = rc;
	a->retry_ns = pp->now_ns;
}

/* It has been tried to write the old record: once it is known what became of that, who asked is
 * told. */
static void change_tell(struct peer_port *pp, bool undone)
{
	struct vd_admin *a = &vd_of(pp)->admin;
	struct kv_text t;

	if (!a->r)
		return;
	text_begin(pp, a->r, &t);
	kv_add(&t, "the catalogue of volumes cannot be written: %s; ", strerror(-a->error));
	if (undone)
		kv_add(&t, "the change is undone; see the log of the store, then try again");
	else
		kv_add(&t,
			"the change cannot be undone yet, and may take effect after all if %s ends "
			"before that; see the log of the store",
			pp->peer->name);
	answer(pp, a->r, a->error, &t);
	a->r = NULL;
}

static void change_written(struct peer_port *pp, int rc)
{
	struct vd_admin *a = &vd_of(pp)->admin;

	a->sent = false;
	if (a->change == VD_CHANGE_WRITING) {
		if (rc)
			change_failed(pp, rc);
		else
			change_done(pp);
		return;
	}
	change_tell(pp, !rc);
	if (rc) {
		a->retry_ns = pp->now_ns + VD_RETRY_NS;
		return;
	}
	log_info("%s: the catalogue can be written again", pp->peer->name);
	change_set(a, VD_CHANGE_IDLE);
}

static void change_send(struct peer_port *pp)
{
	struct vd_admin *a = &vd_of(pp)->admin;
	bool begun;

	if (a->sent || pp->now_ns < a->retry_ns)
		return;
	a->sent = true;
	if (a->change == VD_CHANGE_WRITING)
		begun = vd_catalog_write(pp, a->v, &a->next, change_written);
	else
		begun = vd_catalog_undo(pp, change_written);
	if (!begun)
		a->sent = false;
}

/* ---- commands ---------------------------------------------------------------------------- */

/* The most that a volume of that name may have: some day each of its objects is to be deleted. */
static uint64_t largest_size(struct volumed *vd, const char *name)
{
	const struct vd_volume *v = vd_volume_find(vd, name);
	uint64_t object_size = v ? v->meta.object_size : vd->object_size;

	return object_size > VD_SIZE_MAX / VD_OBJECTS_MAX ? VD_SIZE_MAX
							  : object_size * VD_OBJECTS_MAX;
}

/* The reason to refuse a size, with one that is not refused. */
static int64_t refuse_size(struct volumed *vd, const char *name, uint64_t bytes,
			   struct kv_text *t)
{
	uint64_t most = largest_size(vd, name);
	char text[32];

	opt_format_size(most, text, sizeof(text));
	return REASON(t, -EINVAL,
		"a volume's size is a multiple of 512, from 512 bytes to %s; use %" PRIu64, text,
		bytes >= most ? most : (bytes / XSEG_SECTOR + 1) * XSEG_SECTOR);
}

/* NAME, unless size is NULL size=BYTES, unless force is NULL perhaps "force", and nothing else. */
static int64_t parse_args(struct volumed *vd, char *args, const char **name, uint64_t *size,
			  bool *force, struct kv_text *t)
{
	char *value, *key = kv_next_word(&args, &value);

	if (!key || value || !xseg_name_ok(key))
		return REASON(t, -EINVAL,
			"a volume's name is 1 to 63 of A-Z a-z 0-9 . _ -, and does not "
			"begin with . or -");
	*name = key;
	if (size) {
		key = kv_next_word(&args, &value);
		if (!key || !value || strcmp(key, "size") != 0 || opt_parse_size(value, size))
			return REASON(t, -EINVAL, "give size=BYTES after the name, as in size=8G");
		if (!vd_size_ok(*size))
			return refuse_size(vd, *name, *size, t);
	}
	key = kv_next_word(&args, &value);
	if (force && key && !value && strcmp(key, "force") == 0) {
		*force = true;
		key = kv_next_word(&args, &value);
	}
	if (key)
		return REASON(t, -EINVAL, "there is one word too many after volume '%s'", *name);
	return 0;
}

/* Of a store that knows no LIST each of its objects is asked for some day. */
static int64_t check_objects(const char *name, uint64_t object_size, uint64_t size,
			     struct kv_text *t)
{
	char each[32], most[32];

	if (size <= VD_OBJECTS_MAX * object_size)
		return 0;
	opt_format_size(object_size, each, sizeof(each));
	opt_format_size(VD_OBJECTS_MAX * object_size, most, sizeof(most));
	return REASON(t, -EINVAL, "volume '%s' would have more than 2^32 objects of %s; use %s at "
		"most",
		      name, each, most);
}

static int64_t say_damaged(struct volumed *vd, const struct vd_volume *v, int64_t rc,
			   const char *what_to_do, struct kv_text *t)
{
	return REASON(t, rc,
		      "record %u of the catalogue is %s and was of a volume '%s', whose "
		      "objects are still in the store; %s",
		      vd_slot_of(vd, v), v->meta.state == VD_LOST ? "lost" : "damaged",
		      v->meta.name, what_to_do);
}

/* The volume of that name, or NULL with *rc and the reason. */
static struct vd_volume *find(struct volumed *vd, const char *name, int64_t *rc, struct kv_text *t)
{
	struct vd_volume *v = vd_volume_find(vd, name), *damaged;

	damaged = v ? NULL : vd_volume_damaged(vd, name);
	if (damaged)
		*rc = say_damaged(vd, damaged, -ENOENT, "bring it back with 'xseg volume recover'",
			t);
	else if (!v)
		*rc = REASON(t, -ENOENT,
			     "there is no volume '%s'; 'xseg -s %s volume list' shows the volumes",
			     name, vd->peer.segment);
	return v;
}

static int64_t say_busy(struct volumed *vd, const struct vd_volume *v, struct kv_text *t)
{
	return REASON(t, -EBUSY,
		"volume '%s' is still being %s, %" PRIu64 " objects are known to be left; try "
		"again when 'xseg -s %s volume info %s' no longer says so",
		v->meta.name, v->meta.state == VD_REMOVING ? "removed" : "cut", vd_job_left(vd, v),
		vd->peer.segment, v->meta.name);
}

/* 0, or why no volume may have that name from now on. */
static int64_t check_name_free(struct volumed *vd, const char *name, struct kv_text *t)
{
	const struct vd_volume *v = vd_volume_find(vd, name);

	if (v && v->meta.state != VD_REMOVING)
		return REASON(t, -EEXIST,
			"there is a volume '%s' already; choose another name, or remove "
			"it first",
			name);
	v = vd_volume_damaged(vd, name);
	if (v)
		return say_damaged(vd, v, -EEXIST,
			"bring it back with 'xseg volume recover', or choose another name", t);
	if (vd_orphan_has_name(vd, name))
		return REASON(t, -EEXIST,
			"there are objects of a volume '%s', whose record is lost; bring it back "
			"with 'xseg volume recover', or choose another name",
			name);
	return 0;
}

static int64_t run_create(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	struct vd_meta next = { .state = VD_LIVE, .object_size = vd->object_size };
	const char *name = NULL;
	char *like = args ? strstr(args, " like=") : NULL;
	struct vd_volume *v;
	int64_t rc;

	if (like) {
		*like = '\0';
		like += strlen(" like=");
	}
	rc = parse_args(vd_of(pp), args, &name, &next.size_bytes, NULL, t);
	v = rc || !like ? NULL : find(vd, like, &rc, t);
	if (v)
		next.object_size = v->meta.object_size;
	if (!rc)
		rc = check_objects(name, next.object_size, next.size_bytes, t);
	if (rc)
		return rc;
	v = noted(vd, r);
	if (v && strcmp(v->meta.name, name) == 0) {
		add_volume(vd, v, '\n', t);
		return 0;
	}
	rc = check_name_free(vd, name, t);
	if (rc)
		return rc;
	v = vd_volume_unused(vd);
	if (!v)
		return REASON(t, -ENOSPC,
			"all %u places of the catalogue are taken; remove a volume first",
			VD_SLOTS);
	memcpy(next.name, name, strlen(name) + 1);
	next.generation = (v->meta.generation + 1) & 0xffff;
	next.identity = vd_identity_take(vd);
	change_begin(pp, r, v, &next);
	return LATER;
}

static int64_t run_resize(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	const char *name = NULL;
	uint64_t size = 0;
	int64_t rc = parse_args(vd_of(pp), args, &name, &size, NULL, t);
	struct vd_volume *v = rc ? NULL : find(vd, name, &rc, t);
	struct vd_meta next;

	if (!v)
		return rc;
	if (v->meta.state == VD_SHRINKING && v->meta.size_bytes == size && noted(vd, r) == v &&
		!v->waiter) {
		wait_for_shrink(&vd->admin, v, r);
		return LATER;
	}
	if (v->meta.state != VD_LIVE)
		return say_busy(vd, v, t);
	if (size > v->meta.size_bytes)
		rc = check_objects(name, v->meta.object_size, size, t);
	if (rc)
		return rc;
	next = v->meta;
	next.size_bytes = size;
	if (size < v->meta.size_bytes) {
		next.state = VD_SHRINKING;
		next.cut_bytes = v->meta.size_bytes;
	}
	if (size == v->meta.size_bytes) {
		add_volume(vd, v, '\n', t);
		return 0;
	}
	change_begin(pp, r, v, &next);
	return LATER;
}

static int64_t check_unused(struct peer_port *pp, const struct vd_volume *v, const char *or_else,
	struct kv_text *t)
{
	char users[VD_USERS_BYTES];

	volume_users(pp->peer->seg, xseg_peer_index(pp->peer->xp), vd_id_of(vd_of(pp), v), users,
		sizeof(users));
	if (!users[0])
		return 0;
	return REASON(t, -EBUSY, "it is in use by%s; end them first%s", users, or_else);
}

static int64_t run_remove(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	const char *name = NULL;
	bool force = false;
	int64_t rc = parse_args(vd_of(pp), args, &name, NULL, &force, t);
	struct vd_volume *v;
	struct vd_meta next;

	v = rc || !noted_id(vd, r) ? NULL : noted(vd, r);
	if (!rc && noted_id(vd, r) && !v) {
		kv_add(t, "name=%s\nid=%u\nstate=removed\nobjects_left=0\n", name, noted_id(vd, r));
		return 0;
	}
	if (!v && !rc)
		v = find(vd, name, &rc, t);
	if (!v)
		return rc;
	if (v->meta.state == VD_SHRINKING)
		return say_busy(vd, v, t);
	if (v->meta.state == VD_REMOVING) {
		add_volume(vd, v, '\n', t);
		return 0;
	}
	if (!force)
		rc = check_unused(pp, v, ", or add --force", t);
	if (rc)
		return rc;
	next = v->meta;
	next.state = VD_REMOVING;
	change_begin(pp, r, v, &next);
	return LATER;
}

static bool is_limited(const struct vd_meta *m)
{
	return m->limits.iops || m->limits.bandwidth;
}

/* A word "KEY=N" of the limits; false: it is none. */
static bool limit_word(const char *key, const char *value, struct vd_limits *l)
{
	uint64_t *const to = !strcmp(key, "iops")	 ? &l->iops
			     : !strcmp(key, "bandwidth") ? &l->bandwidth
			     : !strcmp(key, "burst")	 ? &l->burst_ns
							 : NULL;

	return to && value && !opt_parse_size(value, to);
}

/* What is not given stays. */
static int64_t run_set(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	char *words = args ? strpbrk(args + strspn(args, " "), " ") : NULL, *value, *key;
	const char *name = NULL;
	struct vd_volume *v;
	struct vd_meta next;
	int64_t rc;

	if (words)
		*words++ = '\0';
	rc = parse_args(vd, args, &name, NULL, NULL, t);
	v = rc ? NULL : find(vd, name, &rc, t);
	if (!v)
		return rc;
	if (v->meta.state != VD_LIVE)
		return say_busy(vd, v, t);
	next = v->meta;
	while ((key = kv_next_word(&words, &value)))
		if (!limit_word(key, value, &next.limits))
			return REASON(t, -EINVAL,
				"'%.40s' is none of a volume's limits; give iops=N, "
				"bandwidth=BYTES or burst=NS", key);
	if (next.limits.burst_ns && !next.limits.iops && !next.limits.bandwidth &&
		!is_limited(&v->meta))
		return REASON(t, -EINVAL,
			"a burst is of a limit, and there is none; give iops or bandwidth, too");
	if (!vd_limits_ok(&next.limits))
		return REASON(t, -EINVAL,
			"a limit is out of range: iops is 1 to %u, bandwidth 4k/s to 1T/s, burst "
			"10ms to 60s; 0 is no limit, and the least burst",
			VD_IOPS_MAX);
	if (same_limits(&next, &v->meta)) {
		add_volume(vd, v, '\n', t);
		return 0;
	}
	change_begin(pp, r, v, &next);
	return LATER;
}

/* Objects are named by identity (V6), so a new name is a new record and no more. A volume without
 * an identity has its name in those of its objects, and keeps it. */
static int64_t run_rename(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	char *to = args ? strpbrk(args + strspn(args, " "), " ") : NULL;
	const char *name = NULL, *new = NULL;
	struct vd_volume *v;
	struct vd_meta next;
	int64_t rc;

	if (to)
		*to++ = '\0';
	rc = parse_args(vd, args, &name, NULL, NULL, t);
	if (!rc)
		rc = parse_args(vd, to, &new, NULL, NULL, t);
	v = rc ? NULL : noted(vd, r);
	if (v && strcmp(v->meta.name, new) == 0) {
		add_volume(vd, v, '\n', t);
		return 0;
	}
	v = rc ? NULL : find(vd, name, &rc, t);
	if (!v)
		return rc;
	if (v->meta.state != VD_LIVE)
		return say_busy(vd, v, t);
	rc = check_name_free(vd, new, t);
	if (!rc)
		rc = check_unused(pp, v, "", t);
	if (!rc && !v->meta.identity)
		rc = REASON(t, -EBUSY,
			"an older program made it, so its name is in the names of its objects; use "
			"'xseg volume copy %s %s'", name, new);
	if (rc)
		return rc;
	next = v->meta;
	memset(next.name, 0, sizeof(next.name));
	memcpy(next.name, new, strlen(new));
	change_begin(pp, r, v, &next);
	return LATER;
}

/* Cuts "id=N" off the end of the words. */
static uint32_t take_id(char *args)
{
	char *at = args ? strstr(args, " id=") : NULL;
	uint32_t id = 0;

	if (!at || kv_number(at + 4, &id))
		return 0;
	*at = '\0';
	return id;
}

/* Of several volumes of one name, all but one of which are being removed, the id tells which. */
static int64_t run_info(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	uint32_t id = take_id(args), slot = (id & 0xffff) - 1;
	const char *name = NULL;
	int64_t rc = parse_args(vd, args, &name, NULL, NULL, t);
	struct vd_volume *v;

	(void)r;
	if (rc)
		return rc;
	if (!id)
		v = find(vd, name, &rc, t);
	else if (slot < VD_SLOTS && is_listed(&vd->volume[slot]) &&
		 vd_id_of(vd, &vd->volume[slot]) == id && !strcmp(vd->volume[slot].meta.name, name))
		v = &vd->volume[slot];
	else
		return REASON(t, -ENOENT, "there is no volume '%s' of id %u", name, id);
	if (!v)
		return rc;
	add_volume(vd_of(pp), v, '\n', t);
	return 0;
}

/* From the slot given on, as many as fit, with room for the "next=" line. */
static int64_t run_list(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	static const char next_line[] = "next=4294967295\n";
	struct volumed *vd = vd_of(pp);
	char *value, *word = kv_next_word(&args, &value);
	uint64_t slot = 0;
	size_t size = t->size;

	(void)r;
	if (word && (value || opt_parse_size(word, &slot)))
		return REASON(t, -EINVAL, "volume list takes a slot's number, not '%.40s'", word);
	t->size = size > sizeof(next_line) ? size - sizeof(next_line) : 0;
	for (; slot < VD_SLOTS; slot++)
		if (is_listed(&vd->volume[slot]) && !add_volume(vd, &vd->volume[slot], ' ', t))
			break;
	t->size = size;
	if (slot < VD_SLOTS)
		kv_add(t, "next=%" PRIu64 "\n", slot);
	return 0;
}

/* What the catalogue lacks, from the N-th thing on; see vd_recover_list(). */
static int64_t run_lost(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	static const char next_line[] = "next=4294967295\n";
	struct volumed *vd = vd_of(pp);
	char *value, *word = kv_next_word(&args, &value);
	uint64_t from = 0;
	size_t size = t->size;
	uint32_t next;

	(void)r;
	if (word && (value || opt_parse_size(word, &from) || from > UINT32_MAX))
		return REASON(t, -EINVAL, "volume lost takes a number, not '%.40s'", word);
	t->size = size > sizeof(next_line) ? size - sizeof(next_line) : 0;
	next = vd_recover_list(vd, (uint32_t)from, t);
	t->size = size;
	if (next != UINT32_MAX)
		kv_add(t, "next=%u\n", next);
	return 0;
}

static int64_t run_recover(struct peer_port *pp, struct xreq *r, char *args, struct kv_text *t)
{
	char *value;

	if (kv_next_word(&args, &value))
		return REASON(t, -EINVAL, "volume recover takes no words; it brings back all");
	if (!vd_damage(vd_of(pp))) {
		kv_add(t, "recovered=0\nleft=0\n");
		return 0;
	}
	vd_recover_begin(pp, r, vd_admin_recovered);
	return LATER;
}

static const struct command commands[] = {
	{ "create", run_create, true, true },
	{ "resize", run_resize, true, true },
	{ "remove", run_remove, true, true },
	{ "set", run_set, true, true },
	{ "rename", run_rename, true, true },
	{ "info", run_info, false, false },
	{ "list", run_list, false, false },
	{ "lost", run_lost, false, false },
	{ "recover", run_recover, true, false },
};

static const struct command *find_command(const char *word)
{
	size_t i;

	for (i = 0; word && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].word, word) == 0)
			return &commands[i];
	return NULL;
}

/* ---- the queue --------------------------------------------------------------------------- */

/* error: why nothing is served */
static int64_t say_unread(struct peer_port *pp, int error, struct kv_text *t)
{
	if (atomic_load_explicit(&vd_of(pp)->catalog.load, memory_order_relaxed) == VD_FOREIGN)
		return REASON(t, error,
			"the catalogue of volumes is of another version of volumed; nothing is "
			"served and nothing is changed, start the version that made it");
	if (vd_of(pp)->catalog.loading->refused)
		return REASON(t, error,
			"no object of the catalogue of volumes can be read: %s; see the log of the "
			"store, and if all else of it can be read, run 'xseg -s %s volume recover'",
			strerror(-error), pp->peer->segment);
	return REASON(t, error,
		"the catalogue of volumes cannot be read: %s; see the logs of %s and of the store",
		error == -ENOTCONN ? "it has no downstream" : strerror(-error), pp->peer->name);
}

static int64_t run(struct peer_port *pp, struct xreq *r, struct kv_text *t)
{
	struct volumed *vd = vd_of(pp);
	char *cursor = vd->admin.line, *value, *word;
	int error = atomic_load_explicit(&vd->catalog.error, memory_order_relaxed);
	const struct command *c;

	kv_next_word(&cursor, &value);
	word = kv_next_word(&cursor, &value);
	c = value ? NULL : find_command(word);
	if (error && c && c->run == run_recover && vd_load_give_up(vd)) {
		vd_fifo_push(&vd->admin.queue, r);	/* until the catalogue is read so */
		return LATER;
	}
	if (error)
		return say_unread(pp, error, t);
	if (!c)
		return REASON(t, -EINVAL, 
			"no such command; after volume write create, list, info, resize, remove, "
			"rename, set, lost or recover");
	if (c->changes && vd->admin.change == VD_CHANGE_UNDOING)
		return REASON(t, vd->admin.error,
			"the last change of the catalogue failed (%s) and is still "
			"being undone; see the log of the store, then try again",
			strerror(-vd->admin.error));
	if (c->needs_all && vd_unreadable(vd))
		return REASON(t, -EBUSY,
			"the object %s cannot be read; before the catalogue of volumes can be "
			"changed, write it anew with 'xseg volume recover'",
			vd_unreadable(vd));
	return c->run(pp, r, cursor, t);
}

static void read_line(struct peer_port *pp, const struct xreq *r)
{
	uint32_t len = peer_text_room(r);
	char *line = vd_of(pp)->admin.line;

	len = len < VD_LINE_BYTES ? len : VD_LINE_BYTES - 1;
	xseg_req_read_data(pp->peer->seg, r, 0, line, len);
	line[len] = '\0';
}

/* Reads its line. A client can change the text at any time, so what is read last is run. */
static bool is_change(struct peer_port *pp, const struct xreq *r)
{
	static const char blanks[] = " \t\r\n";
	const char *word = vd_of(pp)->admin.line;
	size_t i, len;

	read_line(pp, r);
	word += strspn(word, blanks);
	word += strcspn(word, blanks);	/* "volume" */
	word += strspn(word, blanks);
	len = strcspn(word, blanks);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].word) == len && !strncmp(commands[i].word, word, len))
			return commands[i].changes;
	return false;
}

/* Moves what came to any port into the queues, oldest first; a change that a predecessor had begun
 * before all others (A2). */
static void inbox_take(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_admin *a = &vd->admin;
	struct xreq *next, *oldest = vd_inbox_take(&a->inbox);

	for (; oldest; oldest = next) {
		next = oldest->next;
		if (noted_id(vd, oldest))
			vd_fifo_push(&a->begun, oldest);
		else
			vd_fifo_push(is_change(pp, oldest) ? &a->queue : &a->questions, oldest);
	}
}

/* Else the catalogue is being read for the first time: commands wait. */
static bool can_answer(const struct volumed *vd)
{
	return atomic_load_explicit(&vd->catalog.load, memory_order_relaxed) != VD_LOADING ||
	       atomic_load_explicit(&vd->catalog.error, memory_order_relaxed);
}

/* Else a change is on its way, or what is lost is being brought back: changes wait, too. */
static bool can_change(const struct volumed *vd)
{
	return vd->admin.change != VD_CHANGE_WRITING && !vd_recover_runs(vd) && can_answer(vd);
}

static void stop_waiting(struct peer_port *pp)
{
	struct vd_volume *v = vd_of(pp)->volume;

	for (; v < vd_of(pp)->volume + VD_SLOTS; v++)
		if (v->waiter)
			vd_admin_shrunk(pp, v);
}

/* Its line has been read. */
static void run_and_answer(struct peer_port *pp, struct xreq *r)
{
	struct kv_text t;
	int64_t rc;

	text_begin(pp, r, &t);
	rc = run(pp, r, &t);
	if (rc != LATER)
		answer(pp, r, rc, &t);
	else if (vd_of(pp)->admin.change == VD_CHANGE_WRITING)
		change_send(pp);
}

uint64_t vd_admin_poll(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_admin *a = &vd->admin;
	struct xreq *r;

	if (atomic_load_explicit(&a->inbox, memory_order_relaxed))
		inbox_take(pp);
	if (a->nr_waiters && vd_stopping(pp))
		stop_waiting(pp);
	while (a->questions.first && can_answer(vd)) {
		r = vd_fifo_pop(&a->questions);
		if (is_change(pp, r))
			vd_fifo_push(&a->queue, r);
		else
			run_and_answer(pp, r);
	}
	while ((a->begun.first || a->queue.first) && can_change(vd)) {
		r = vd_fifo_pop(a->begun.first ? &a->begun : &a->queue);
		read_line(pp, r);
		run_and_answer(pp, r);
	}
	if (a->change == VD_CHANGE_IDLE)
		return PEER_NEVER;
	change_send(pp);
	return a->change == VD_CHANGE_UNDOING && !a->sent ? a->retry_ns : PEER_NEVER;
}

void vd_admin_shrunk(struct peer_port *pp, struct vd_volume *v)
{
	struct xreq *r = v->waiter;
	struct kv_text t;

	v->waiter = NULL;
	vd_of(pp)->admin.nr_waiters--;
	text_begin(pp, r, &t);
	add_volume(vd_of(pp), v, '\n', &t);
	answer(pp, r, 0, &t);
}

void vd_admin_recovered(struct peer_port *pp, struct xreq *r, int rc)
{
	struct volumed *vd = vd_of(pp);
	struct kv_text t;

	text_begin(pp, r, &t);
	if (vd->recover.readable)
		kv_add(&t,
			"the object %s could not be read, and can be read again, so it may know "
			"more than is served; nothing was changed, run 'xseg -s %s peer stop %s', "
			"then 'xseg -s %s peer start %s'",
			vd->recover.readable, vd->peer.segment, pp->peer->name, vd->peer.segment,
			pp->peer->name);
	else if (rc)
		kv_add(&t,
			"the catalogue of volumes cannot be written: %s; see the log of the store, "
			"then try again", strerror(-rc));
	else
		kv_add(&t, "recovered=%u\nleft=%u\n", vd->recover.nr, vd_orphans_nr(vd));
	answer(pp, r, rc, &t);
}

/* ---- any port ---------------------------------------------------------------------------- */

/* What all volumes may take if they are written wholly. */
static uint64_t volumes_bytes(struct volumed *vd)
{
	const struct vd_volume *v = vd->volume;
	uint64_t sum = 0;

	for (; v < vd->volume + VD_SLOTS; v++)
		if (atomic_load_explicit(&v->id, memory_order_relaxed))
			sum += atomic_load_explicit(&v->size_bytes, memory_order_relaxed);
	return sum;
}

static int64_t status(struct volumed *vd, char *out, size_t size)
{
	bool loading = atomic_load_explicit(&vd->catalog.load, memory_order_relaxed) == VD_LOADING;
	int error = atomic_load_explicit(&vd->catalog.error, memory_order_relaxed);
	const char *damage = vd_damage(vd);
	struct kv_text t;

	kv_init(&t, out, size);
	kv_add(&t,
	       "volumes=%u\nvolumes_bytes=%" PRIu64
	       "\nloading=%s\nremoving=%u\ndamaged=%u\nlost=%u\n",
	       atomic_load_explicit(&vd->nr_volumes, memory_order_relaxed), volumes_bytes(vd),
	       loading ? "yes" : "no",
	       atomic_load_explicit(&vd->nr_removing, memory_order_relaxed),
	       atomic_load_explicit(&vd->nr_damaged, memory_order_relaxed),
	       atomic_load_explicit(&vd->nr_lost, memory_order_relaxed) + vd_orphans_nr(vd));
	if (damage && !loading)
		kv_add(&t, "damage=%s\n", damage);
	if (error)
		kv_add(&t, "error=%s\n", strerror(-error));
	return (int64_t)t.used;
}

int64_t vd_admin_command(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct vd_admin *a = &vd_of(pp)->admin;
	size_t len = strcspn(line, " \t\r\n");

	if (len == 6 && strncmp(line, "status", len) == 0)
		return status(vd_of(pp), out, size);
	if (len != 6 || strncmp(line, "volume", len) != 0)
		return -ENOSYS;
	vd_inbox_put(&a->inbox, r);
	if (pp->nr)
		peer_port_kick(&pp->peer->ports[0]);
	return PEER_ADMIN_LATER;
}
