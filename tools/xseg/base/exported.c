/* exported - see exported.h. */
#include "tools/xseg/base/exported.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/export_words.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/view.h"

bool exported_is_served(const struct exported *x)
{
	return x->state == EXPORTED_SERVING || x->state == EXPORTED_NO_VOLUME;
}

const char *exported_state_name(enum exported_state state)
{
	static const char *const names[EXPORTED_NR_STATES] = {
		[EXPORTED_SERVING] = "serving",	    [EXPORTED_NO_VOLUME] = "no volume",
		[EXPORTED_STARTING] = "starting",   [EXPORTED_STOPPED] = "stopped",
		[EXPORTED_FAILED] = "failed",	    [EXPORTED_DEAD] = "dead",
	};

	return names[state];
}

/* What the supervisor says of it: the bit of one that is stopped and of one that has failed; both
 * of one whose server has other settings than the stack. False: there is no supervisor. */
static bool ask_supervisor(struct xseg *seg, uint32_t place, bool *stopped, bool *failed)
{
	struct xseg_peer_info supervisor;
	bool alive = view_supervisor(seg, &supervisor);
	uint64_t word = alive ? supervisor.user[SUPERVISOR_WORD_EXPORTS] : 0;

	*stopped = word >> place & 1;
	*failed = word >> (32 + place) & 1;
	return alive;
}

/* Of one that nobody serves. */
static enum exported_state state_of(struct xseg *seg, uint32_t place)
{
	bool stopped, failed;

	if (!ask_supervisor(seg, place, &stopped, &failed))
		return EXPORTED_DEAD;
	if (stopped != failed)
		return stopped ? EXPORTED_STOPPED : EXPORTED_FAILED;
	return EXPORTED_STARTING;
}

static bool is_replaced(struct xseg *seg, uint32_t place)
{
	bool stopped, failed;

	return ask_supervisor(seg, place, &stopped, &failed) && stopped && failed;
}

void exported_look(
	struct xseg *seg, const struct stack_export *e, uint32_t place, struct exported *out)
{
	char name[XSEG_NAME_MAX];
	uint32_t index;

	*out = (struct exported){ .e = e };
	export_peer_name(e->name, name);
	index = xseg_peer_find(seg, name);
	if (index == XSEG_NONE || !xseg_peer_get_info(seg, index, &out->peer) ||
		!view_peer_alive(&out->peer) || !export_of_peer(&out->peer)) {
		out->state = state_of(seg, place);
		return;
	}
	out->connections = (uint32_t)out->peer.user[EXPORT_WORD_CONNECTIONS];
	out->since_s = out->peer.user[XSEG_CLIENT_WORD_SINCE];
	if (is_replaced(seg, place))
		out->state = EXPORTED_STARTING;
	else
		out->state = out->peer.user[XSEG_CLIENT_WORD_VOLUME] ? EXPORTED_SERVING
								     : EXPORTED_NO_VOLUME;
}

int exported_load(struct xseg *seg, struct exported_all *all)
{
	char *text = malloc(STACK_TEXT_BYTES);
	struct xseg_error ignored;
	int rc = -ENOMEM;

	*all = (struct exported_all){ .stack = stack_create() };
	if (text && all->stack) {
		rc = 0;
		if (xseg_stack_get(seg, text, STACK_TEXT_BYTES) &&
			!stack_parse(text, all->stack, &ignored))
			all->nr = all->stack->nr_exports;
	}
	free(text);
	for (uint32_t i = 0; i < all->nr; i++)
		exported_look(seg, &all->stack->exports[i], i, &all->export[i]);
	if (rc)
		exported_fini(all);
	return rc;
}

void exported_fini(struct exported_all *all)
{
	stack_destroy(all->stack);
	*all = (struct exported_all){ 0 };
}

/* ---- URIs -------------------------------------------------------------------------------- */

static void add_path(char *buf, size_t size, const char *path)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	size_t used = strlen(buf);

	for (; *path && used < size; path++)
		used += (size_t)snprintf(buf + used, size - used,
			strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
}

const char *exported_uri_of_socket(const char *path, char buf[EXPORTED_URI_MAX])
{
	snprintf(buf, EXPORTED_URI_MAX, "nbd+unix:///?socket=");
	add_path(buf, EXPORTED_URI_MAX, path);
	return buf;
}

const char *exported_uri(const struct stack_export *e, char buf[EXPORTED_URI_MAX])
{
	const char *scheme = e->tls == STACK_TLS_OFF ? "nbd" : "nbds";
	bool six = strchr(e->host, ':');

	if (*e->host) {
		snprintf(buf, EXPORTED_URI_MAX, "%s://%s%s%s:%u/%s", scheme, six ? "[" : "",
			e->host, six ? "]" : "", e->port, e->name);
		return buf;
	}
	snprintf(buf, EXPORTED_URI_MAX, "%s+unix:///%s?socket=", scheme, e->name);
	add_path(buf, EXPORTED_URI_MAX, e->nbd);
	return buf;
}
