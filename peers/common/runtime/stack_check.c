/* stack_check - see stack_check.h. */
#include "peers/common/runtime/stack_check.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/opt_path.h"
#include "peers/common/options/owner.h"
#include "peers/common/runtime/peer.h"

/* What it needs and does not have, or NULL. One that keeps what is below waits to be plugged; any
 * other has nothing to do without. */
static const char *missing_of(
	const struct stack_peer *peer, const struct peer_class *cls, const void *options)
{
	if (cls->sends && !cls->keeps && peer->downstream == STACK_NONE)
		return opt_find(cls->opts, "kvd") ? "kvd" : "downstream";
	return opt_missing(cls->opts, options);
}

/* Of an option of its kind, of a key that every peer has, or of the section. */
static unsigned line_of(const struct stack_peer *peer, const char *key)
{
	for (uint32_t i = peer->nr_options; i > 0; i--)
		if (opt_same_name(peer->option[i - 1].key, key))
			return peer->option[i - 1].line;
	return stack_line_of(&peer->lines, stack_peer_table, key);
}

static int check_peer(const struct stack_peer *peer, const struct peer_class *cls,
		      struct stack_errors *errors)
{
	void *scratch = calloc(1, cls->size);
	const char *missing, *key;
	struct xseg_error why;
	int rc;

	if (!scratch)
		return -ENOMEM;
	opt_set_defaults(cls->opts, scratch);
	memcpy(((struct peer *)scratch)->name, peer->name, sizeof(peer->name));
	((struct peer *)scratch)->threads = peer->threads;
	rc = stack_read_options(peer, cls->opts, scratch, errors);
	missing = missing_of(peer, cls, scratch);
	if (missing &&
		!stack_errors_has(errors, peer->lines.section, peer->lines.last, missing))
		stack_errors_add(errors, line_of(peer, missing), missing,
			"peer '%s' needs %s =; add that", peer->name, missing);
	else if (!missing && !rc && cls->fit && cls->fit(scratch, &key, &why))
		stack_errors_add(errors, line_of(peer, key), key, "peer '%s': %.280s", peer->name,
			why.text);
	free(scratch);
	return 0;
}

int stack_check_all(const struct stack *stack, stack_find_class *find, struct stack_errors *errors)
{
	const struct peer_class *cls;
	const struct stack_peer *p;
	int rc = 0;

	for (p = stack->peers; p < stack->peers + stack->nr_peers && !rc; p++) {
		cls = find(p->kind);
		if (cls)
			rc = check_peer(p, cls, errors);
		else if (*p->kind)
			stack_errors_add(
				errors, line_of(p, "kind"), "kind", "this build has no %s",
				p->kind);
	}
	return rc ? rc : errors->nr ? -EINVAL : 0;
}

int stack_check_options(
	const struct stack *stack, stack_find_class *find, struct xseg_error *err)
{
	struct stack_errors *errors = calloc(1, sizeof(*errors));
	int rc = errors ? stack_check_all(stack, find, errors) : -ENOMEM;

	if (rc == -ENOMEM)
		xseg_fail(err, rc, "out of memory");
	else if (rc)
		rc = stack_errors_first(errors, err);
	free(errors);
	return rc;
}

static void check_path(const struct stack_export *e, const char *key, const char *value,
	struct stack_errors *errors)
{
	const struct opt *o = opt_find(stack_export_table, key);
	struct xseg_error why;

	if (opt_path_check(o, value, &why))
		stack_errors_add(errors, stack_line_of(&e->lines, stack_export_table, key), key,
			"%s", why.text);
}

static void check_group(const struct stack_export *e, struct stack_errors *errors)
{
	struct xseg_error why;
	int64_t gid;

	if (*e->group && owner_need_group(e->group, &gid, &why))
		stack_errors_add(errors, stack_line_of(&e->lines, stack_export_table, "group"),
			"group", "%s", why.text);
}

/* nbdkit itself says of no file that it lacks it. */
static void check_certificates(const struct stack_export *e, struct stack_errors *errors)
{
	static const char *const files[] = { "ca-cert.pem", "server-cert.pem", "server-key.pem" };
	char path[PATH_MAX + 32];

	for (size_t i = 0; *e->tls_certificates && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", e->tls_certificates, files[i]);
		if (!access(path, R_OK))
			continue;
		stack_errors_add(errors,
			stack_line_of(&e->lines, stack_export_table, "tls_certificates"),
			"tls_certificates",
			"tls_certificates: %s: %s; put it there, or name another directory", path,
			strerror(errno));
		return;
	}
}

void stack_check_paths(
	const struct stack *stack, stack_find_class *find, struct stack_errors *errors)
{
	const struct peer_class *cls;
	const struct stack_export *e;
	const struct stack_peer *p;
	struct xseg_error why;
	const struct opt *o;
	uint32_t i, nr;

	for (p = stack->peers; p < stack->peers + stack->nr_peers; p++) {
		cls = find(p->kind);
		for (i = 0; cls && i < p->nr_options; i++) {
			o = opt_find(cls->opts, p->option[i].key);
			if (o && opt_path_check(o, p->option[i].value, &why))
				stack_errors_add(
					errors, p->option[i].line, o->name, "%s", why.text);
		}
	}
	for (e = stack->exports; e < stack->exports + stack->nr_exports; e++) {
		check_group(e, errors);
		check_path(e, "nbd", e->nbd, errors);
		nr = errors->nr;
		check_path(e, "tls_certificates", e->tls_certificates, errors);
		if (errors->nr == nr)
			check_certificates(e, errors);
	}
}
