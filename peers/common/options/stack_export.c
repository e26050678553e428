/* stack_export - see stack_export.h. */
#include "peers/common/options/stack_export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/mode.h"
#include "peers/common/options/stack.h"

#define PORT_MAX 65535u

const char *const stack_tls_names[] = { "off", "on", "require", NULL };

/* ---- addresses --------------------------------------------------------------------------- */

/* HOST:PORT, or [HOST]:PORT as for IPv6. False: it is neither. */
static bool read_host(const char *text, char host[STACK_HOST_MAX], uint32_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	unsigned long number;
	char *end;

	if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	number = strtoul(colon + 1, &end, 10);
	if (end == colon + 1 || number < 1 || number > PORT_MAX)
		return false;
	if (*text == '[' && len > 2 && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return false;
	}
	if (!len || len >= STACK_HOST_MAX || *text == '-' || memchr(text, '/', len))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	*port = (uint32_t)number;
	return true;
}

static int check_nbd(const char *text, struct xseg_error *err)
{
	char host[STACK_HOST_MAX];
	uint32_t port;

	if (*text == '/' || read_host(text, host, &port))
		return 0;
	if (*text && strspn(text, "0123456789") == strlen(text))
		return xseg_fail(err, -EINVAL,
			"nbd: '%.20s' is a number alone; write HOST:PORT, such as 127.0.0.1:%.5s, "
			"or a socket's path",
			text, text);
	return xseg_fail(err, -EINVAL,
		"nbd: '%.80s' is neither a socket's absolute path, such as /run/disk.sock, nor "
		"HOST:PORT, such as 127.0.0.1:10809",
		text);
}

static int check_certificates(const char *text, struct xseg_error *err)
{
	if (*text == '/')
		return 0;
	return xseg_fail(err, -EINVAL,
		"tls_certificates: '%.80s' is not the absolute path of a directory", text);
}

/* ---- [export NAME] ----------------------------------------------------------------------- */

#define AT(field) offsetof(struct stack_export, field)
const struct opt stack_export_table[] = {
	{ .name = "volume", .kind = OPT_STR, .off = AT(volume), .len = XSEG_NAME_MAX,
	  .check = cli_check_name, .arg = "VOLUME",
	  .help = "the volume; if there is no such key, the one of the export's name" },
	{ .name = "nbd", .kind = OPT_STR, .off = AT(nbd), .len = STACK_SOCKET_MAX + 1,
	  .check = check_nbd, .arg = "SOCKET|HOST:PORT", .flags = OPT_SOCKET,
	  .help = "where it is served: the absolute path of a Unix socket, or a TCP port; exports "
		  "with the same address share a server" },
	{ .name = "mode", .kind = OPT_STR, .off = AT(mode), .len = 8, .check = mode_check,
	  .arg = "MODE",
	  .help = "users that may connect to the socket, as a file mode; if there is no such key, "
		  "the users that may attach to the segment" },
	{ .name = "group", .kind = OPT_STR, .off = AT(group), .len = 33,
	  .check = stack_check_group, .arg = "GROUP",
	  .help = "group that the socket is given to, by name or number; if there is no such key, "
		  "the group of the segment" },
	{ .name = "read_only", .kind = OPT_BOOL, .off = AT(read_only), .def = "no",
	  .arg = "yes|no", .help = "clients cannot write" },
	{ .name = "tls", .kind = OPT_ENUM, .off = AT(tls), .names = stack_tls_names,
	  .def = "off", .arg = "off|on|require",
	  .help = "whether clients may, or must, use TLS" },
	{ .name = "tls_certificates", .kind = OPT_STR, .off = AT(tls_certificates),
	  .len = PATH_MAX, .check = check_certificates, .arg = "DIR", .flags = OPT_DIR,
	  .help = "directory of ca-cert.pem, server-cert.pem and server-key.pem" },
	{ .name = "tls_verify_peer", .kind = OPT_BOOL, .off = AT(tls_verify_peer), .def = "no",
	  .arg = "yes|no",
	  .help = "clients must have a certificate of that authority" },
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX,
	  .check = cli_check_name, .arg = "NAME",
	  .help = "the volume's volumed, if there are several" },
	{ .name = "queues", .kind = OPT_UINT, .off = AT(queues), .min = 1, .max = 64, .def = "16",
	  .arg = "N",
	  .help = "requests in progress at a time; each takes a port and 2 MiB of the segment" },
	{ .name = "connections", .kind = OPT_UINT, .off = AT(connections), .min = 1, .max = 1024,
	  .def = "64", .arg = "N", .help = "connections of the server at a time" },
	{ .name = "restart", .kind = OPT_BOOL, .off = AT(restart), .def = "yes", .arg = "yes|no",
	  .help = "start a server that died again" },
	{ 0 }
};
#undef AT

static struct stack_export *last(struct stack *stack)
{
	return stack->nr_exports ? &stack->exports[stack->nr_exports - 1] : NULL;
}

bool stack_export_takes(const struct stack_export *e, const struct stack_peer *peer)
{
	return !strcmp(peer->kind, "volumed") &&
	       (!*e->volumed || !strcmp(peer->name, e->volumed));
}

uint32_t stack_find_export(const struct stack *stack, const char *name)
{
	for (uint32_t i = 0; i < stack->nr_exports; i++)
		if (!strcmp(stack->exports[i].name, name))
			return i;
	return STACK_NONE;
}

int stack_export_begin(
	struct stack *stack, const char *name, unsigned line, struct xseg_error *why)
{
	struct stack_export *e;

	if (cli_check_name(name, why))
		return -EINVAL;
	if (strlen(name) > STACK_EXPORT_NAME_MAX)
		return xseg_fail(why, -EINVAL,
			"export '%.63s': its name has more than %d characters; shorten it", name,
			STACK_EXPORT_NAME_MAX);
	if (stack_find_export(stack, name) != STACK_NONE)
		return xseg_fail(
			why, -EINVAL, "there are two exports '%.63s'; names must differ", name);
	if (stack->nr_exports == STACK_MAX_EXPORTS)
		return xseg_fail(
			why, -EINVAL, "a stack has at most %d exports", STACK_MAX_EXPORTS);
	e = &stack->exports[stack->nr_exports++];
	opt_set_defaults(stack_export_table, e);
	memcpy(e->name, name, strlen(name) + 1);
	e->lines.section = e->lines.last = line;
	return 0;
}

static int refuse_key(const char *key, struct xseg_error *why)
{
	struct cli_group groups[] = { { stack_export_table, NULL }, { NULL, NULL } };
	const struct opt *near = cli_nearest(groups, key);

	if (near)
		return xseg_fail(why, -EINVAL, "[export] has no '%.40s'; did you mean '%s'?", key,
			near->name);
	return xseg_fail(why, -EINVAL,
		"[export] has no '%.40s'; it has volume, nbd, mode, group, read_only, "
		"tls, tls_certificates, tls_verify_peer, volumed, queues, connections and restart",
		key);
}

int stack_export_set(struct stack *stack, const char *key, const char *value, unsigned line,
	struct xseg_error *why)
{
	const struct opt *o = opt_find(stack_export_table, key);
	struct stack_export *e = last(stack);

	e->lines.last = line;
	if (!o)
		return refuse_key(key, why);
	if (!stack_lines_note(&e->lines, stack_export_table, o, line))
		return xseg_fail(
			why, -EINVAL, "'%s' is given twice in this section", o->name);
	return opt_set(o, e, value, why);
}

/* ---- what holds between exports ---------------------------------------------------------- */

static bool is_same_server(const struct stack_export *a, const struct stack_export *b)
{
	return a->port == b->port && !strcmp(a->host, b->host) &&
	       (*a->host || !strcmp(a->nbd, b->nbd));
}

/* E3: the first of the server's keys in which they differ, or NULL. */
static const char *differs(const struct stack_export *a, const struct stack_export *b)
{
	if (strcmp(a->mode, b->mode) != 0)
		return "mode";
	if (strcmp(a->group, b->group) != 0)
		return "group";
	if (a->tls != b->tls)
		return "tls";
	if (strcmp(a->tls_certificates, b->tls_certificates) != 0)
		return "tls_certificates";
	if (a->tls_verify_peer != b->tls_verify_peer)
		return "tls_verify_peer";
	if (a->connections != b->connections)
		return "connections";
	return a->restart != b->restart ? "restart" : NULL;
}

static bool has_key(const struct stack_export *e, const char *key)
{
	return e->lines.key[opt_find(stack_export_table, key) - stack_export_table];
}

/* An error about a key is told at the key's line, or at the section's if the key is not there. */
static void add_error(struct stack_errors *errors, const struct stack_export *e, const char *key,
	const struct xseg_error *why)
{
	stack_errors_add(errors, stack_line_of(&e->lines, stack_export_table, key), key, "%s",
		why->text);
}

/* A key that differs is told where the second export has it, or at that one's address. */
static void resolve_server(struct stack *stack, uint32_t nr, struct stack_errors *errors)
{
	struct stack_export *e = &stack->exports[nr], *first;
	struct xseg_error why;
	const char *key;

	e->server = 0;
	while (!is_same_server(&stack->exports[e->server], e))
		e->server++;
	first = &stack->exports[e->server];
	key = differs(first, e);
	if (!key)
		return;
	xseg_fail(&why, 0,
		"export '%.63s' has the address of '%.63s', and another %s; one server serves "
		"both, so give both the same",
		e->name, first->name, key);
	add_error(errors, e, has_key(e, key) ? key : "nbd", &why);
}

static int check_volumed(
	const struct stack *stack, const struct stack_export *e, struct xseg_error *why)
{
	uint32_t nr = 0, named = 0;

	for (uint32_t i = 0; i < stack->nr_peers; i++) {
		if (strcmp(stack->peers[i].kind, "volumed") != 0)
			continue;
		nr++;
		named += !strcmp(stack->peers[i].name, e->volumed);
	}
	if (*e->volumed && !named)
		return xseg_fail(why, -EINVAL,
			"export '%.63s': volumed: this file has no volumed '%.63s'", e->name,
			e->volumed);
	if (!nr)
		return xseg_fail(why, -EINVAL,
			"export '%.63s': this file has no volumed, which has the volumes; add "
			"[peer volumed]",
			e->name);
	if (!*e->volumed && nr > 1)
		return xseg_fail(why, -EINVAL,
			"export '%.63s': there are several volumeds; add volumed = NAME", e->name);
	return 0;
}

static void resolve_tls(const struct stack_export *e, struct stack_errors *errors)
{
	const char *key = *e->tls_certificates ? "tls_certificates" : "tls_verify_peer";
	struct xseg_error why;

	if (e->tls != STACK_TLS_OFF || (!*e->tls_certificates && !e->tls_verify_peer) ||
		stack_errors_has(errors, e->lines.section, e->lines.last, "tls"))
		return;
	xseg_fail(&why, 0, "export '%.63s' has %s, and no TLS; add tls = require, or tls = on",
		e->name, key);
	add_error(errors, e, key, &why);
}

static void resolve_export(struct stack *stack, uint32_t nr, struct stack_errors *errors)
{
	struct stack_export *e = &stack->exports[nr];
	const char *key = *e->mode ? "mode" : "group";
	struct xseg_error why;

	if (!*e->volume)
		memcpy(e->volume, e->name, sizeof(e->volume));
	if (check_volumed(stack, e, &why))
		add_error(errors, e, *e->volumed ? "volumed" : "", &why);
	resolve_tls(e, errors);
	if (stack_errors_has(errors, e->lines.section, e->lines.last, "nbd"))
		return;
	if (!*e->nbd) {
		xseg_fail(&why, 0, "export '%.63s' has no nbd; add nbd = SOCKET or HOST:PORT",
			e->name);
		add_error(errors, e, "nbd", &why);
	} else if (*e->nbd != '/' && !read_host(e->nbd, e->host, &e->port)) {
		xseg_fail(&why, 0, "nbd: '%.80s' is no address", e->nbd);
		add_error(errors, e, "nbd", &why);
	} else if (*e->host && (*e->mode || *e->group)) {
		xseg_fail(&why, 0, "export '%.63s' has %s, and no socket with a path; leave %s out",
			e->name, key, key);
		add_error(errors, e, key, &why);
	} else {
		resolve_server(stack, nr, errors);
	}
}

void stack_export_resolve(struct stack *stack, struct stack_errors *errors)
{
	for (uint32_t i = 0; i < stack->nr_exports; i++)
		resolve_export(stack, i, errors);
}

const char *stack_export_differs(const struct stack_export *a, const struct stack_export *b)
{
	char x[PATH_MAX], y[PATH_MAX];

	for (const struct opt *o = stack_export_table; o->name; o++) {
		opt_get(o, a, x, sizeof(x));
		opt_get(o, b, y, sizeof(y));
		if (strcmp(x, y) != 0)
			return o->name;
	}
	return NULL;
}

bool stack_same_exports(const struct stack *a, const struct stack *b)
{
	if (a->nr_exports != b->nr_exports)
		return false;
	for (uint32_t i = 0; i < a->nr_exports; i++)
		if (strcmp(a->exports[i].name, b->exports[i].name) ||
			stack_export_differs(&a->exports[i], &b->exports[i]))
			return false;
	return true;
}
