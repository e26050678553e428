/* nbdkit - see nbdkit.h. */
#include "peers/host/nbdkit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "peers/common/options/args.h"
#include "peers/common/options/socket_rights.h"
#include "peers/host/supervise_inside.h"

#define PLUGIN	      "nbdkit-xseg-plugin.so"
#define GUARD	      "xseg-nbdkit-guard.so"
#define THREADS	      2u			/* a connection's, at least: the guard's contract */
#define GUARD_FD      3				/* in nbdkit */
#define PRELOAD_BYTES 4096

/* ---- files ------------------------------------------------------------------------------- */

/* In the directory of this program, or a folder near it. */
static bool find_file(const struct supervisor *s, const char *const *places, char *path,
	size_t size)
{
	for (; *places; places++) {
		snprintf(path, size, "%s/%s", s->directory, *places);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

/* Where it was built, or installed; else nbdkit looks for it by its name. */
static void find_plugin(const struct supervisor *s, char *path, size_t size)
{
	static const char *const places[] = { "../lib/" PLUGIN, "../../lib/nbdkit/plugins/" PLUGIN,
		NULL };

	if (!find_file(s, places, path, size))
		snprintf(path, size, "xseg");
}

/* A descriptor, or -errno. */
static int open_guard(const struct supervisor *s, struct xseg_error *err)
{
	static const char *const places[] = { "../lib/" GUARD, GUARD, NULL };
	char path[2 * PATH_MAX];
	int fd = -1;

	if (find_file(s, places, path, sizeof(path)))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return xseg_fail(err, -ENOENT,
		GUARD " cannot be read in %s or in ../lib beside it, and without it one client can "
		      "end all others; install the package xseg-nbdkit, or put it there",
		s->directory);
}

/* ---- addresses --------------------------------------------------------------------------- */

/* Whether somebody listens on it. */
static bool is_listened_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused;

	if (fd < 0)
		return true;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	refused = connect(fd, (const struct sockaddr *)&address, sizeof(address)) &&
		  errno == ECONNREFUSED;
	close(fd);
	return !refused;
}

int nbdkit_clear_address(const struct stack_export *e, struct xseg_error *err)
{
	struct stat st;

	if (*e->host)
		return 0;			/* nbdkit itself says what is wrong with it */
	if (lstat(e->nbd, &st))
		return errno == ENOENT ? 0
				       : xseg_fail(err, -errno, "socket %s: %s", e->nbd,
						 strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return xseg_fail(err, -EEXIST,
			"%s exists and is not a socket; choose another address", e->nbd);
	if (is_listened_to(e->nbd))
		return xseg_fail(err, -EADDRINUSE,
			"another process serves on %s; end it, or choose another address", e->nbd);
	if (unlink(e->nbd))
		return xseg_fail(err, -errno, "socket %s: %s; remove it", e->nbd, strerror(errno));
	return 0;
}

void nbdkit_remove_socket(const struct stack_export *e)
{
	struct xseg_error ignored;
	int rc = nbdkit_clear_address(e, &ignored);

	(void)rc;
}

static int find_rights(const struct supervisor *s, const struct stack_export *e,
	struct socket_rights *r, struct xseg_error *err)
{
	struct xseg_error why = { "" };
	int rc = socket_rights_find(s->units.seg, e->mode, e->group, r, &why);

	return rc ? xseg_fail(err, rc, "socket %s: %s", e->nbd, why.text) : 0;
}

int nbdkit_set_rights(const struct supervisor *s, uint32_t first, struct xseg_error *err)
{
	const struct stack_export *e = &s->units.stack->exports[first];
	struct socket_rights r;
	int rc;

	if (*e->host)
		return 0;
	rc = find_rights(s, e, &r, err);
	return rc ? rc : socket_rights_set(e->nbd, &r, err);
}

/* ---- the command line -------------------------------------------------------------------- */

static unsigned nr_threads(const struct supervisor *s, uint32_t first)
{
	const struct stack *stack = s->units.stack;
	unsigned nr = THREADS;

	if (stack->exports[first].tls != STACK_TLS_OFF)
		return 1;
	for (uint32_t i = 0; i < stack->nr_exports; i++)
		if (stack->exports[i].server == first && stack->exports[i].queues > nr)
			nr = stack->exports[i].queues;
	return nr;
}

static void add_address(struct args *a, const struct stack_export *e)
{
	if (*e->host) {
		args_add(a, "--ipaddr=%s", e->host);
		args_add(a, "--port=%u", e->port);
	} else {
		args_add(a, "--unix=%s", e->nbd);
	}
}

static void add_tls(struct args *a, const struct stack_export *e)
{
	if (e->tls == STACK_TLS_OFF)
		return;
	args_add(a, "--tls=%s", stack_tls_names[e->tls]);
	if (*e->tls_certificates)
		args_add(a, "--tls-certificates=%s", e->tls_certificates);
	if (e->tls_verify_peer)
		args_add(a, "--tls-verify-peer");
}

static void add_export(struct args *a, const struct stack_export *e)
{
	args_add(a, "export=%s", e->name);
	args_add(a, "volume=%s", e->volume);
	args_add(a, "queues=%u", e->queues);
	if (*e->volumed)
		args_add(a, "volumed=%s", e->volumed);
	if (e->read_only)
		args_add(a, "readonly=yes");
}

/* What a server cannot change while it runs. */
static void build(const struct supervisor *s, uint32_t first, struct args *a)
{
	const struct stack *stack = s->units.stack;
	const struct stack_export *e = &stack->exports[first];
	char plugin[2 * PATH_MAX];

	find_plugin(s, plugin, sizeof(plugin));
	args_add(a, "nbdkit");
	args_add(a, "--foreground");
	args_add(a, "--threads=%u", nr_threads(s, first));
	add_address(a, e);
	add_tls(a, e);
	args_add(a, "%s", plugin);
	args_add(a, "segment=%s", s->segment);
	args_add(a, "guard=yes");
	for (uint32_t i = 0; i < stack->nr_exports; i++)
		if (stack->exports[i].server == first)
			add_export(a, &stack->exports[i]);
}

/* FNV-1a of the command line, and of what is in the environment. */
uint64_t nbdkit_id(const struct supervisor *s, uint32_t first)
{
	const struct stack_export *e = &s->units.stack->exports[first];
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct args a = { 0 };

	build(s, first, &a);
	args_add(&a, "%u", e->connections);
	for (int i = 0; i < a.nr; i++)
		for (const char *c = a.arg[i];; c++) {
			hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
			if (!*c)
				break;
		}
	args_free(&a);
	return hash ? hash : 1;
}

/* ---- starting ---------------------------------------------------------------------------- */

/* Of nbdkit: that of the supervisor, and what the guard reads. */
struct environment {
	char preload[PRELOAD_BYTES], connections[48], threads[48];
	char **var;				/* NULL: there is no memory */
};

static void make_environment(const struct supervisor *s, uint32_t first, struct environment *e)
{
	const char *others = getenv("LD_PRELOAD");
	size_t nr = 0, used = 0;

	while (environ[nr])
		nr++;
	/* by a descriptor, as a path may have a blank, which separates preloaded ones */
	snprintf(e->preload, sizeof(e->preload), "LD_PRELOAD=/proc/self/fd/%d%s%s", GUARD_FD,
		others ? ":" : "", others ? others : "");
	snprintf(e->connections, sizeof(e->connections), "XSEG_GUARD_CONNECTIONS=%u",
		s->units.stack->exports[first].connections);
	snprintf(e->threads, sizeof(e->threads), "XSEG_GUARD_THREADS=%u", nr_threads(s, first));
	e->var = calloc(nr + 5, sizeof(*e->var));
	if (!e->var)
		return;
	e->var[used++] = e->preload;
	e->var[used++] = e->connections;
	e->var[used++] = e->threads;
	e->var[used++] = "XSEG_GUARD_TERM=1";
	for (size_t i = 0; i < nr; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
			strncmp(environ[i], "XSEG_GUARD_", 11) != 0)
			e->var[used++] = environ[i];
}

static int spawn(char **argv, char **env, int guard, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	int rc = posix_spawnattr_init(&attr);

	if (rc)
		return rc;
	rc = posix_spawn_file_actions_init(&files);
	if (rc)
		goto out_attr;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGCHLD);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn_file_actions_adddup2(&files, guard, GUARD_FD);
	if (!rc)
		rc = posix_spawnp(pid, argv[0], &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
out_attr:
	posix_spawnattr_destroy(&attr);
	return rc;
}

/* By the plug-in, before it says that it serves. */
static int add_rights(const struct supervisor *s, const struct stack_export *e, struct args *a,
	struct xseg_error *err)
{
	struct socket_rights r;
	int rc = *e->host ? 0 : find_rights(s, e, &r, err);

	if (rc || *e->host)
		return rc;
	args_add(a, "socket=%s", e->nbd);
	args_add(a, "mode=%04o", r.mode);
	args_add(a, "group=%" PRId64, r.group);
	return 0;
}

int nbdkit_start(struct supervisor *s, uint32_t first, uint64_t id, pid_t *pid,
	struct xseg_error *err)
{
	const struct stack_export *e = &s->units.stack->exports[first];
	struct environment env;
	struct args a = { 0 };
	int guard = open_guard(s, err), rc;

	if (guard < 0)
		return guard;
	build(s, first, &a);
	args_add(&a, "server=%" PRIu64, id);
	rc = add_rights(s, e, &a, err);
	if (rc)
		goto out;
	make_environment(s, first, &env);
	rc = !a.failed && env.var ? spawn(a.arg, env.var, guard, pid) : ENOMEM;
	free(env.var);
	if (rc)
		rc = xseg_fail(err, -rc,
			"nbdkit: %s; install the package nbdkit, or put it into PATH",
			strerror(rc));
out:
	close(guard);
	args_free(&a);
	return rc;
}
