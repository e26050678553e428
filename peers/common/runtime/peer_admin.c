/* peer_admin - the commands that every peer understands (XSEG_OP_ADMIN): ping, get, set, stop.
 * Others go to the kind.
 *
 * Contract: called by the port's thread. Nothing blocks, but for a lock that is held for a few
 * words' work. The text of a request is copied before it is read (R5).
 *
 * Invariants
 *   M1  An answer is written with a NUL after it when there is room. A negative result has its
 *       reason there.
 *   M2  "set" changes all of its keys or none. It answers with their values then, as "get" does.
 *   M3  A request is STARTED before its command runs. Before that, its line is stored at the end of
 *       its pages, as the answer may overwrite the line. So the line is there again when a
 *       successor runs the command once more.
 *   M4  A command that is run again for the same request does no harm. It sets the same values, or
 *       its kind has noted the begun work in the request (PEER_NOTE_KIND).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/kv.h"
#include "peers/common/runtime/peer_box.h"

#define MAX_SET	  32				/* options in one "set" */
#define KEPT_PART 4		/* a line is kept if it is not more than this part of the room */

/* ---- get --------------------------------------------------------------------------------- */

/* A list's values stand in a line each. */
static void add_option(struct kv_text *t, const struct opt *o, const void *base)
{
	const char *value = (const char *)base + o->off;
	char number[32];
	int len;

	if (o->kind != OPT_STR && o->kind != OPT_LIST) {
		opt_get(o, base, number, sizeof(number));
		value = number;
	}
	do {
		len = (int)strcspn(value, "\n");
		kv_add(t, "%s=%.*s\n", o->name, len, value);
		value += len;
	} while (*value++);
}

/* Another port's thread may be in "set". */
static void add_shown(struct kv_text *t, const struct opt *o, struct peer *p)
{
	pthread_mutex_lock(&peer_box(p)->options);
	add_option(t, o, p);
	pthread_mutex_unlock(&peer_box(p)->options);
}

static int64_t admin_get(struct peer_port *pp, char *rest, struct kv_text *t)
{
	const struct opt *o = pp->peer->cls->opts;
	char *value, *key = kv_next_word(&rest, &value);

	if (key) {
		o = opt_find(o, key);
		if (!o) {
			kv_add(t, "there is no option '%s'", key);
			return -EINVAL;
		}
		add_shown(t, o, pp->peer);
		return 0;
	}
	for (; o->name; o++)
		add_shown(t, o, pp->peer);
	return 0;
}

/* ---- set --------------------------------------------------------------------------------- */

struct setting {
	uint32_t nr;
	const struct opt *opt[MAX_SET];
};

static size_t field_size(const struct opt *o)
{
	switch (o->kind) {
	case OPT_BOOL:
		return sizeof(bool);
	case OPT_UINT:
	case OPT_PERCENT:
	case OPT_ENUM:
		return sizeof(uint32_t);
	case OPT_STR:
	case OPT_LIST:
		return o->len;
	default:
		return sizeof(uint64_t);
	}
}

static void swap_field(const struct opt *o, void *a, void *b)
{
	unsigned char *x = (unsigned char *)a + o->off, *y = (unsigned char *)b + o->off, keep;
	size_t i, size = field_size(o);

	if (size == sizeof(uint64_t) && o->kind != OPT_STR && o->kind != OPT_LIST) {
		uint64_t word = *(uint64_t *)x;

		*(uint64_t *)x = *(uint64_t *)y;
		*(uint64_t *)y = word;
		return;
	}
	for (i = 0; i < size; i++) {
		keep = x[i];
		x[i] = y[i];
		y[i] = keep;
	}
}

/* Notes an option; a list begins empty when it is first named. */
static bool note(struct setting *s, const struct opt *o, struct peer *p, void *scratch)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (s->opt[i] == o)
			return true;
	if (s->nr == MAX_SET)
		return false;
	s->opt[s->nr++] = o;
	memcpy((char *)scratch + o->off, (char *)p + o->off, field_size(o));
	if (o->kind == OPT_LIST)
		*((char *)scratch + o->off) = '\0';
	return true;
}

static int no_option(const struct peer *p, const char *key, struct xseg_error *err)
{
	const struct cli_group groups[] = { { p->cls->opts, NULL }, { NULL, NULL } };
	const struct opt *near = cli_nearest(groups, key);

	if (!near)
		return xseg_fail(err, -EINVAL, "there is no option '%.60s'", key);
	return xseg_fail(
		err, -EINVAL, "there is no option '%.60s' (did you mean '%s'?)", key, near->name);
}

/* Reads all values into the scratch struct. */
static int try_values(struct peer *p, char *rest, struct setting *s, struct xseg_error *err)
{
	const struct opt *o;
	char *key, *value;
	int rc;

	while ((key = kv_next_word(&rest, &value))) {
		o = opt_find(p->cls->opts, key);
		if (!o)
			return no_option(p, key, err);
		if (!value)
			return xseg_fail(err, -EINVAL,
				"'%.60s' needs a value; write it as KEY=VALUE", key);
		if (!(o->flags & OPT_LIVE))
			return xseg_fail(
				err, -EINVAL,
				"%s cannot be changed while the peer runs; set it in the stack "
				"file, and 'xseg reload' restarts the peer",
				o->name);
		if (!note(s, o, p, peer_box(p)->scratch))
			return xseg_fail(
				err, -EINVAL,
				"more than %d options at once; set them one after the other",
				MAX_SET);
		rc = opt_set(o, peer_box(p)->scratch, value, err);
		if (rc)
			return rc;
	}
	return s->nr ? 0 : xseg_fail(err, -EINVAL,
		"KEY=VALUE is missing; name an option and its value");
}

static void swap_all(struct peer *p, const struct setting *s)
{
	uint32_t i;

	pthread_mutex_lock(&peer_box(p)->options);
	for (i = 0; i < s->nr; i++)
		swap_field(s->opt[i], p, peer_box(p)->scratch);
	pthread_mutex_unlock(&peer_box(p)->options);
}

/* Makes the tried values true, or puts all back. All are stored before the kind looks at the first:
 * one may bound another. */
static int apply_values(struct peer *p, const struct setting *s, struct xseg_error *err)
{
	uint32_t i;
	int rc = 0;

	swap_all(p, s);
	for (i = 0; i < s->nr && !rc && p->cls->changed; i++)
		rc = p->cls->changed(p, s->opt[i], err);
	if (!rc)
		return 0;
	swap_all(p, s);
	while (i-- > 0)
		/* not refused: the values that held until now were accepted before */
		p->cls->changed(p, s->opt[i], NULL);
	return rc;
}

static int64_t admin_set(struct peer_port *pp, char *rest, struct kv_text *t)
{
	struct peer *p = pp->peer;
	struct setting s = { .nr = 0 };
	struct xseg_error err = { "refused" };
	int rc;

	if (atomic_flag_test_and_set(&peer_box(p)->setting)) {
		kv_add(t, "another command is changing options at this moment; try again");
		return -EBUSY;
	}
	rc = try_values(p, rest, &s, &err);
	if (!rc)
		rc = apply_values(p, &s, &err);
	/* what it has set: by the time of a "get" somebody else may have set another */
	for (uint32_t i = 0; i < s.nr && !rc; i++)
		add_shown(t, s.opt[i], p);
	atomic_flag_clear(&peer_box(p)->setting);
	if (rc)
		kv_add(t, "%s", err.text);
	return rc;
}

/* ---- keys -------------------------------------------------------------------------------- */

/* What may be set, with the values where these are few: KEY=A|B. For the completion of commands. */
static int64_t admin_keys(struct peer_port *pp, char *rest, struct kv_text *t)
{
	const struct opt *o;
	uint32_t i;

	(void)rest;
	for (o = pp->peer->cls->opts; o->name; o++) {
		if (!(o->flags & OPT_LIVE))
			continue;
		kv_add(t, "%s=%s", o->name, o->kind == OPT_BOOL ? "yes|no" : "");
		for (i = 0; o->kind == OPT_ENUM && o->names[i]; i++)
			kv_add(t, "%s%s", i ? "|" : "", o->names[i]);
		kv_add(t, "\n");
	}
	return 0;
}

/* ---- the table --------------------------------------------------------------------------- */

static int64_t admin_ping(struct peer_port *pp, char *rest, struct kv_text *t)
{
	(void)pp;
	(void)rest;
	kv_add(t, "ok\n");
	return 0;
}

static int64_t admin_stop(struct peer_port *pp, char *rest, struct kv_text *t)
{
	(void)rest;
	peer_stop(pp->peer);
	kv_add(t, "ok\n");
	return 0;
}

static const struct admin_command {
	const char *word;
	int64_t (*run)(struct peer_port *pp, char *rest, struct kv_text *t);
} commands[] = {
	{ "ping", admin_ping }, { "get", admin_get },	{ "set", admin_set },
	{ "keys", admin_keys }, { "stop", admin_stop },
};

static const struct admin_command *find_command(const char *line, size_t *len)
{
	size_t i;

	*len = strcspn(line, " \t\n");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].word) == *len && !strncmp(commands[i].word, line, *len))
			return &commands[i];
	return NULL;
}

static int64_t unknown(struct peer_port *pp, const char *line, char *out, size_t size)
{
	snprintf(out, size, "a %s has no command '%.40s'", pp->peer->cls->kind, line);
	return -ENOSYS;
}

static int64_t run(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	const struct peer_class *cls = pp->peer->cls;
	const struct admin_command *command;
	struct kv_text t;
	int64_t result;
	size_t len;

	line += strspn(line, " \t");
	command = find_command(line, &len);
	if (command) {
		kv_init(&t, out, size);
		result = command->run(pp, line + len, &t);
		return result < 0 ? result : (int64_t)t.used;
	}
	result = cls->admin ? cls->admin(pp, r, line, out, size) : -ENOSYS;
	return result == -ENOSYS ? unknown(pp, line, out, size) : result;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* What the pages really have, whatever the request says. */
uint32_t peer_text_room(const struct xreq *r)
{
	uint32_t have = r->nr_pages * XSEG_PAGE_SIZE, skip = (uint32_t)(r->offset % XSEG_PAGE_SIZE);

	have = have > skip ? have - skip : 0;
	if (have > r->size)
		have = r->size;
	return have < PEER_TEXT_BYTES ? have : PEER_TEXT_BYTES;
}

/* M1 */
void peer_answer_text(struct peer_port *pp, struct xreq *r, int64_t result, const char *text)
{
	uint32_t room = peer_text_room(r);
	size_t len;

	if (result > room)
		result = room;
	len = result >= 0 ? (size_t)result : strnlen(text, room);
	xseg_req_write_data(pp->peer->seg, r, 0, text, (uint32_t)len);
	if (len < room)
		xseg_req_write_data(pp->peer->seg, r, (uint32_t)len, "", 1);
	peer_answer(pp, r, result);
}

/* M3. Returns the room that is left for the answer, which is the request's size from now on. */
static uint32_t line_keep(struct peer_port *pp, struct xreq *r, uint32_t room)
{
	const char *line = port_box(pp)->line;
	uint32_t len = (uint32_t)strlen(line) + 1;

	if (len > room / KEPT_PART)
		return room;
	r->size = room - len;
	xseg_req_write_data(pp->peer->seg, r, r->size, line, len);
	xseg_req_note_set(pp->peer->seg, r, PEER_NOTE_LINE, len);
	return r->size;
}

/* False: a predecessor had no room to keep it. */
static bool line_restore(struct peer_port *pp, const struct xreq *r)
{
	uint64_t kept = xseg_req_note(pp->peer->seg, r, PEER_NOTE_LINE);
	uint32_t room = peer_text_room(r);
	char *line = port_box(pp)->line;

	if (!kept || kept > PEER_LINE_BYTES || kept > room / KEPT_PART)
		return false;
	xseg_req_read_data(pp->peer->seg, r, room - (uint32_t)kept, line, (uint32_t)kept);
	xseg_req_write_data(pp->peer->seg, r, 0, line, (uint32_t)kept);
	return true;
}

void peer_admin(struct peer_port *pp, struct xreq *r)
{
	struct port_box *box = port_box(pp);
	uint32_t room = peer_text_room(r), len;
	int64_t result;

	if (room == 0) {
		peer_answer(pp, r, -EINVAL);
		return;
	}
	len = room < PEER_LINE_BYTES ? room : PEER_LINE_BYTES - 1;
	xseg_req_read_data(pp->peer->seg, r, 0, box->line, len);
	box->line[len] = '\0';
	box->text[0] = '\0';
	room = line_keep(pp, r, room);
	if (r->state == XSEG_REQ_AT)
		xseg_req_start(pp->port, r);
	result = run(pp, r, box->line, box->text, room);
	if (result != PEER_ADMIN_LATER)
		peer_answer_text(pp, r, result, box->text);
}

void peer_admin_recover(struct peer_port *pp, struct xreq *r)
{
	static const char reason[] =
		"the peer was started again during this command; check whether it was done, and "
		"ask again";

	if (r->state == XSEG_REQ_AT || line_restore(pp, r))
		peer_admin(pp, r);
	else
		peer_answer_text(pp, r, -EINTR, reason);
}
