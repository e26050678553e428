/* client - see client.h. */
#include "tools/xseg/base/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/runtime/client_peer.h"
#include "peers/common/say/dirty.h"
#include "peers/common/say/hint.h"
#include "peers/common/say/kv.h"
#include "peers/common/say/volume_users.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/stopped.h"

#define CLIENT_REQUESTS	16			/* a port: a client fits into the reserve */
#define ANSWER_LIMIT_NS	(30 * TOOL_SECOND)	/* without --timeout, for a question */
#define START_LIMIT_NS	(10 * TOOL_SECOND)	/* for a peer that is being started again */
#define LOOK_EVERY_NS	(TOOL_SECOND / 10)
#define STALL_NS	(5 * TOOL_SECOND)	/* without an answer, which is said */
#define LACKS_NS	(5 * TOOL_SECOND)	/* C2: somebody may just be starting it by hand */

/* ---- opening ----------------------------------------------------------------------------- */

_Static_assert(CLIENT_NR_PORTS <= XSEG_COMMAND_PORTS &&
		       CLIENT_NR_PORTS * CLIENT_REQUESTS <= XSEG_COMMAND_REQUESTS,
	"a command fits into the reserve");

static int take_pages(struct client *c)
{
	c->page = calloc(xseg_pages_round(CLIENT_TEXT_PAGES), sizeof(*c->page));
	return c->page ? xseg_pages_take(c->peer, CLIENT_TEXT_PAGES, c->page) : -ENOMEM;
}

static int open_named(struct client *c, struct xseg_error *err)
{
	char name[XSEG_NAME_MAX];

	snprintf(name, sizeof(name), "xseg.%d", (int)getpid());
	return client_peer_open(c->seg,
				&(struct xseg_peer_params){ .name = name,
							    .kind = "client",
							    .nr_ports = CLIENT_NR_PORTS,
							    .nr_requests = CLIENT_REQUESTS },
				&c->peer, err);
}

static int open_peer(struct client *c)
{
	struct xseg_error err = { "" };
	int rc = open_named(c, &err);
	unsigned i;

	if (rc == -ETIMEDOUT || rc == -EINTR)
		return tool_fail(TOOL_LATER, "%s", err.text);
	if (rc)
		return tool_fail_errno(rc, &err,
				       tool_is_own_limit(rc)
					       ? hint_of_limit(rc)
					       : "end other clients, or make a larger segment",
				       "segment %s: no place for a client", c->t->segment);
	for (i = 0; i < CLIENT_NR_PORTS; i++)
		c->call[i].port = xseg_peer_port(c->peer, i);
	rc = take_pages(c);
	if (!rc)
		return TOOL_DONE;
	xseg_peer_close(c->peer, XSEG_CLOSE_FREE_ARENA);
	free(c->page);
	return tool_fail(TOOL_FAILED,
		"segment %s: less than the 2 MiB of memory are free that a client's buffers need; "
		"stop a client or a peer, or make the segment with more memory",
		c->t->segment);
}

int client_open(struct tool *t, struct client **client)
{
	struct client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return tool_fail(TOOL_FAILED, "no memory for a client; free some");
	c->t = t;
	rc = tool_attach(t, 0, &c->seg);
	if (rc)
		goto out_free;
	rc = open_peer(c);
	if (rc)
		goto out_detach;
	*client = c;
	return TOOL_DONE;
out_detach:
	xseg_detach(c->seg);
out_free:
	free(c);
	return rc;
}

void client_close(struct client *c)
{
	xseg_peer_close(c->peer, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(c->seg);
	free(c->page);
	free(c);
}

/* ---- finding peers ----------------------------------------------------------------------- */

/* C2. One that is not listed any more is gone, too. */
static bool peer_gone(struct client *c, uint32_t peer)
{
	struct xseg_peer_info info;

	return !xseg_peer_get_info(c->seg, peer, &info) || xseg_peer_is_gone(c->seg, &info);
}

/* One that is restarted is stopped for a moment. */
static bool may_return(struct client *c, const struct xseg_peer_info *p)
{
	struct xseg_peer_info supervisor;

	return p->state == XSEG_PEER_STOPPED && view_supervisor(c->seg, &supervisor) &&
	       !peer_word_stopping(&supervisor) && view_in_stack(c->seg, p->name) &&
	       !stopped_look(c->seg, p);
}

static int fail_gone(struct client *c, const struct xseg_peer_info *p)
{
	if (view_is_failing(c->seg, p->name))
		return tool_fail(TOOL_REFUSED,
			"%s: it is %s; see in the log of the stack why it cannot run", p->name,
			view_state_name(p->state));
	return tool_fail(TOOL_REFUSED,
		"%s: it is %s; start it with 'xseg peer start %s' or the stack with 'xseg up "
		"STACK.conf'",
		p->name, view_state_name(p->state), p->name);
}

static int wait_until_live(struct client *c, const struct xseg_peer_info *p)
{
	uint64_t end = tool_limit(c->t, START_LIMIT_NS);
	struct xseg_peer_info now = *p;
	struct tool_span gone = { 0 };
	bool is_gone;

	while (now.state != XSEG_PEER_LIVE) {
		is_gone = peer_gone(c, p->index);
		if ((is_gone && !may_return(c, &now)) ||
			tool_span_ns(&gone, is_gone) > TOOL_GONE_NS)
			return fail_gone(c, &now);
		if (tool_interrupted() || tool_now_ns() >= end)
			return tool_later("%s is %s and not yet serving; see 'xseg status'",
					  p->name, view_state_name(now.state));
		tool_progress(c->t, "waiting for %s, which is %s", p->name,
			      view_state_name(now.state));
		tool_sleep_ns(LOOK_EVERY_NS);
		if (!xseg_peer_get_info(c->seg, p->index, &now))
			now.state = XSEG_PEER_FREE;
	}
	tool_progress_end();
	return TOOL_DONE;
}

static bool is_of_same_kind(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	return !strcmp(p->kind, of->kind);
}

static int pick_peer(struct client *c, const struct view_peers *peers, const char *kind,
		     const char *name, const struct xseg_peer_info **found)
{
	bool several = false;
	char names[512];

	*found = name[0] ? view_peer_named(peers, name)
			 : view_peer_meant(c->seg, peers, kind, &several);
	if (!*found && name[0])
		return tool_fail(TOOL_REFUSED,
			"%s: segment %s has no peer of that name; 'xseg peer list' shows its peers",
			name, c->t->segment);
	if (!*found)
		return tool_fail(
			TOOL_REFUSED,
			"%s: segment %s has no peer of that kind; start a stack with 'xseg up "
			"STACK.conf'",
			kind, c->t->segment);
	if (kind && strcmp((*found)->kind, kind))
		return tool_fail(TOOL_USAGE,
				 "%s: it is of kind %s, not %s; 'xseg peer list' shows the kinds",
				 name, (*found)->kind, kind);
	if (several) {
		view_peer_names(peers, is_of_same_kind, *found, names, sizeof(names));
		return tool_fail(TOOL_USAGE, "%s: there are several; choose one with --%s:%s", kind,
				 kind, names);
	}
	return TOOL_DONE;
}

bool client_other_users(
	struct client *c, uint32_t volumed, uint32_t volume, char *users, size_t size)
{
	struct xseg_peer_info self;

	if (!xseg_peer_get_info(c->seg, xseg_peer_index(c->peer), &self))
		self.member = XSEG_NONE;
	volume_users_but(c->seg, volumed, volume, self.member, users, size);
	return users[0];
}

int client_find_peer(struct client *c, const char *kind, const char *name, uint32_t *index)
{
	const struct xseg_peer_info *found;
	struct view_peers peers;
	int rc = view_peers_need(c->seg, &peers);

	if (rc)
		return rc;
	rc = pick_peer(c, &peers, kind, name, &found);
	if (!rc) {
		*index = found->index;
		rc = wait_until_live(c, found);
	}
	view_peers_fini(&peers);
	return rc;
}

/* ---- calls ------------------------------------------------------------------------------- */

static int call_begin(struct client_call *call, struct xreq *r, uint32_t peer)
{
	int rc = xseg_req_submit(call->port, r, peer);

	if (rc) {
		xseg_req_free(call->port, r);
		return rc;
	}
	xseg_port_flush(call->port);
	call->r = r;
	call->peer = peer;
	call->gone = (struct tool_span){ 0 };
	return 0;
}

/* C2. A peer that needs what is gone may answer all the same: that takes longer to be sure of. */
static bool call_is_lost(struct client *c, struct client_call *call)
{
	struct xseg_peer_info info;
	bool gone = peer_gone(c, call->peer), lacks;

	lacks = !gone && xseg_peer_get_info(c->seg, call->peer, &info) &&
		view_stranded(c->seg, &info, &c->lacks);
	if (!lacks)
		c->lacks.name[0] = '\0';
	return tool_span_ns(&call->gone, gone || lacks) > (lacks ? LACKS_NS : TOOL_GONE_NS);
}

int client_fail_lacks(const struct client *c, const char *what)
{
	char how[VIEW_START_MAX];

	return tool_fail(TOOL_FAILED,
		"%s: it needs %s, which is %s; %s, then do this again", what, c->lacks.name,
		view_state_name(c->lacks.state), view_how_to_start(c->seg, c->lacks.name, how));
}

/* True when it was answered: *result. Waits up to wait_ns. *result is -EHOSTDOWN when nobody will
 * answer. */
static bool call_poll(struct client *c, unsigned port, uint64_t wait_ns, int64_t *result)
{
	struct client_call *call = &c->call[port];
	struct xreq *r;

	if (!xseg_port_replies(call->port, &r, 1)) {
		bus_port_wait(call->port, wait_ns);
		if (!xseg_port_replies(call->port, &r, 1)) {
			*result = -EHOSTDOWN;
			return call_is_lost(c, call);
		}
	}
	*result = r->result;
	xseg_req_free(call->port, r);
	call->r = NULL;
	return true;
}

/* A request without data, on port 0. */
static int call_send(struct client *c, uint32_t peer, enum xseg_op op, uint32_t volume)
{
	struct xreq *r =
		c->call[CLIENT_PORT_IO].r ? NULL : xseg_req_alloc(c->call[CLIENT_PORT_IO].port);

	c->text[0] = '\0';
	if (!r)
		return -EBUSY;
	r->op = (uint8_t)op;
	r->volume = volume;
	return call_begin(&c->call[CLIENT_PORT_IO], r, peer);
}

/* The answer's text, out of pages that others can write to: one copy, ended by us. */
static void copy_text(struct client *c)
{
	uint32_t i;

	for (i = 0; i < CLIENT_TEXT_PAGES; i++)
		memcpy(c->text + i * XSEG_PAGE_SIZE, xseg_page(c->seg, c->page[i]), XSEG_PAGE_SIZE);
	c->text[sizeof(c->text) - 1] = '\0';
}

static int ask_begin(struct client *c, uint32_t peer, const char *line)
{
	struct client_call *call = &c->call[CLIENT_PORT_ADMIN];
	struct xreq *r = call->r ? NULL : xseg_req_alloc(call->port);
	uint32_t i;

	if (!r)
		return -EBUSY;
	for (i = 0; i < CLIENT_TEXT_PAGES; i++) {
		memset(xseg_page(c->seg, c->page[i]), 0, XSEG_PAGE_SIZE);
		r->page[i] = c->page[i];
	}
	memcpy(xseg_page(c->seg, c->page[0]), line, strlen(line) + 1);
	r->op = XSEG_OP_ADMIN;
	r->nr_pages = CLIENT_TEXT_PAGES;
	r->size = CLIENT_TEXT_PAGES * XSEG_PAGE_SIZE;
	return call_begin(call, r, peer);
}

/* Once: why a command takes so long. */
static void note_wait(struct client *c, uint32_t peer, uint64_t since, bool *noted)
{
	struct xseg_peer_info info;

	if (*noted || tool_now_ns() - since < STALL_NS ||
	    !xseg_peer_get_info(c->seg, peer, &info))
		return;
	*noted = true;
	tool_note(c->t,
		"%s: no answer for 5 s, still waiting; see 'xseg status' and the log",
		info.name);
}

static int64_t vask(struct client *c, uint32_t peer, uint64_t end, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

static int64_t vask(struct client *c, uint32_t peer, uint64_t end, const char *fmt, va_list ap)
{
	uint64_t since = tool_now_ns();
	bool noted = false;
	char line[XSEG_PAGE_SIZE];
	int64_t result;
	int len;

	c->text[0] = '\0';
	len = vsnprintf(line, sizeof(line), fmt, ap);
	if (len < 0 || (size_t)len >= sizeof(line))
		return -ENAMETOOLONG;
	result = ask_begin(c, peer, line);
	if (result)
		return result;
	while (!call_poll(c, CLIENT_PORT_ADMIN, LOOK_EVERY_NS, &result)) {
		if (tool_interrupted())
			return -EINTR;
		if (tool_now_ns() >= end)
			return -ETIMEDOUT;
		note_wait(c, peer, since, &noted);
	}
	if (result == -EHOSTDOWN)
		return result;
	copy_text(c);
	return result == -EINTR ? -EAGAIN : result;	/* the peer's word, not Ctrl-C */
}

int64_t client_ask(struct client *c, uint32_t peer, const char *fmt, ...)
{
	int64_t rc;
	va_list ap;

	va_start(ap, fmt);
	rc = vask(c, peer, tool_limit(c->t, ANSWER_LIMIT_NS), fmt, ap);
	va_end(ap);
	return rc;
}

int64_t client_tell(struct client *c, uint32_t peer, const char *fmt, ...)
{
	int64_t rc;
	va_list ap;

	c->told = true;
	va_start(ap, fmt);
	rc = vask(c, peer, c->t->deadline_ns, fmt, ap);
	va_end(ap);
	return rc;
}

bool client_settle(struct client *c, uint64_t limit_ns, int64_t *result)
{
	uint64_t end = tool_now_ns() + limit_ns;

	if (!c->call[CLIENT_PORT_ADMIN].r)
		return false;
	tool_clear_interrupt();
	while (!call_poll(c, CLIENT_PORT_ADMIN, LOOK_EVERY_NS, result))
		if (tool_interrupted() || tool_now_ns() >= end)
			return false;
	if (*result != -EHOSTDOWN)
		copy_text(c);
	return true;
}

int client_fail(struct client *c, int64_t rc, const char *hint, const char *fmt, ...)
{
	struct xseg_error reason = { "" };
	char what[512];
	va_list ap;
	int code;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* else it is the peer's word, and it has ended */
	if ((rc == -EINTR || rc == -ETIMEDOUT) && c->call[CLIENT_PORT_ADMIN].r)
		return tool_later("%s: no answer yet, %s; see 'xseg status'", what,
				  c->told ? "the work goes on if the peer has begun it" :
					    "nothing was changed");
	if (rc == -EHOSTDOWN && c->lacks.name[0])
		return client_fail_lacks(c, what);
	if (rc == -EHOSTDOWN)
		return tool_fail(
			TOOL_FAILED,
			"%s: the peer went away before it answered; start it again with 'xseg up "
			"STACK.conf'",
			what);
	c->text[strcspn(c->text, "\n")] = '\0';
	xseg_fail(&reason, 0, "%s", c->text);
	code = tool_fail_errno(rc, &reason, hint, "%s", what);
	return code == TOOL_LATER ? TOOL_FAILED : code;
}

int client_flush_begin(struct client *c, uint32_t peer, uint32_t volume)
{
	return call_send(c, peer, XSEG_OP_FLUSH, volume);
}

bool client_flush_poll(struct client *c, uint64_t wait_ns, int64_t *result)
{
	return call_poll(c, CLIENT_PORT_IO, wait_ns, result);
}

int client_flush(
	struct client *c, uint32_t peer, uint32_t volume, const char *what, const char *name)
{
	char dirty[OUT_TEXT], command[VIEW_COMMAND_MAX], hint[VIEW_COMMAND_MAX + 80];
	int64_t result;
	int rc;

	rc = client_flush_begin(c, peer, volume);
	if (rc)
		return client_fail(c, rc, NULL, "%s %s", what, name);
	while (!client_flush_poll(c, LOOK_EVERY_NS, &result)) {
		if (tool_out_of_time(c->t))
			return tool_later(
				"%s %s: not all is on stable storage yet, the flush goes on; '%s' "
				"shows how much is dirty",
				what, name, view_dirty_command(c->seg, peer, command));
		tool_flushes(c->t);
		tool_progress(c->t, "%s %s: flushing, %s dirty", what, name,
			      out_size(dirty_bytes_of(c->seg, XSEG_NONE), dirty));
	}
	tool_progress_end();
	if (result >= 0)
		return TOOL_DONE;
	snprintf(hint, sizeof(hint),
		"data that could not be written stays dirty and is tried again; see '%s'",
		view_dirty_command(c->seg, peer, command));
	return tool_exit_of_store(client_fail(c, result, hint, "%s %s", what, name));
}

int client_settings(int argc, char **argv, char *text, size_t size)
{
	struct kv_text t;
	bool fits = true;
	int i;

	kv_init(&t, text, size);
	for (i = 0; i < argc; i++) {
		if (strpbrk(argv[i], " \t\n") || !strchr(argv[i], '=') || argv[i][0] == '=')
			return tool_fail(TOOL_USAGE,
				"%s: '%.80s' is not KEY=VALUE without blanks; 'xseg %s --help' "
				"lists the keys",
				tool_command(), argv[i], tool_command());
		fits = fits && kv_add(&t, " %s", argv[i]);
	}
	return fits ? TOOL_DONE
		    : tool_fail(TOOL_USAGE,
				"%s: these settings are longer than %zu characters; give fewer at "
				"once",
				tool_command(), size);
}

static bool names_key(const char *key, int argc, char **argv)
{
	char name[64];
	int i;

	for (i = 0; i < argc; i++) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(argv[i], "="), argv[i]);
		if (opt_same_name(name, key))
			return true;
	}
	return false;
}

void client_settings_done(struct client *c, int argc, char **argv, char *text, size_t size)
{
	char *cursor = c->text, *key, *value;
	struct kv_text t;

	kv_init(&t, text, size);
	while ((key = kv_next_line(&cursor, &value)))
		if (names_key(key, argc, argv))
			kv_add(&t, " %s=%s", key, value ? value : "");
}

/* ---- answers ----------------------------------------------------------------------------- */

/* `ends`: what values end with, and stand between keys. */
static bool find_value(
	const char *text, const char *key, const char *ends, char *value, size_t size)
{
	size_t len = strlen(key);
	const char *at = text;

	while (*at) {
		if (!strncmp(at, key, len) && at[len] == '=') {
			at += len + 1;
			snprintf(value, size, "%.*s", (int)strcspn(at, ends), at);
			return true;
		}
		at += strcspn(at, ends);
		at += strspn(at, ends);
	}
	return false;
}

bool client_value(const char *text, const char *key, char *value, size_t size)
{
	return find_value(text, key, " \n", value, size);
}

bool client_line(const char *text, const char *key, char *value, size_t size)
{
	return find_value(text, key, "\n", value, size);
}

uint64_t client_number(const char *text, const char *key)
{
	char value[32];

	return client_value(text, key, value, sizeof(value)) ? strtoull(value, NULL, 10) : 0;
}
