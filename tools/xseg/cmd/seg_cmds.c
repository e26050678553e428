/* seg_cmds - destroy, list, info, check: a segment as such. create_cmd.c makes one.
 *
 * Contract: see commands.h. Nothing here starts a peer; destroy --force ends processes.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peers/common/options/owner.h"
#include "peers/common/options/stack.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/damage.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/text/clients_text.h"

/* ---- destroy ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct seg_force_opts, field)
const struct opt seg_force_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "kill all processes that are attached, and lose dirty data" },
	{ 0 },
};
#undef AT

/* Of why, what to do next is left out: it has been done. */
static int destroy_unreadable(struct tool *t, const struct xseg_error *why)
{
	uint32_t pid = proc_find_supervisor(t->segment, true);
	int rc = xseg_destroy(t->segment);

	if (rc)
		return tool_fail_errno(rc, NULL, "see the owner of its file in /dev/shm",
				       "destroy %s", t->segment);
	tool_say(t, "segment removed: %.*s", (int)strcspn(why->text, ";"), why->text);
	if (pid)
		tool_note(t,
			"destroy %s: its stack runs on, with its dirty data; 'kill %u' stops that "
			"in order",
			t->segment, pid);
	return t->json ? out_state(t->segment, "removed") : TOOL_DONE;
}

int seg_destroy(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_force_opts *o = opts;
	struct xseg_error err = { "" };
	struct xseg *seg;
	int rc;

	(void)argc;
	(void)argv;
	rc = owner_attach(t->segment, XSEG_ATTACH_OBSERVER, &seg, &err);
	/* then it may be whole, and in use */
	if (tool_is_own_limit(rc) || rc == -EPERM)
		return tool_fail_attach(t, rc, &err);
	if (rc == -ESTALE || (rc && rc != -ENOENT && o->force))
		return destroy_unreadable(t, &err);
	if (rc == -EPROTO && proc_find_supervisor(t->segment, true)) {
		tool_fail_attach(t, rc, &err);
		return TOOL_REFUSED;
	}
	if (rc && rc != -ENOENT && rc != -EACCES && rc != -EPERM)
		return tool_fail(TOOL_REFUSED,
			"destroy: it is not known which processes use it (%s); to remove it anyway "
			"add --force",
			err.text);
	if (rc)
		return tool_fail_attach(t, rc, &err);
	rc = o->force ? ending_kill_all(t, seg) : ending_may_destroy(t, seg, false);
	if (!rc)
		rc = ending_remove(t, seg, o->force ? ENDING_REMOVE_BY_FORCE : ENDING_REMOVE_IDLE,
			0);
	xseg_detach(seg);
	if (rc)
		return rc;
	tool_say(t, "segment %s is removed", t->segment);
	return t->json ? out_state(t->segment, "removed") : TOOL_DONE;
}

/* ---- list -------------------------------------------------------------------------------- */

/* Whether peers run; if none does, whether some died and wait to be taken over. Clients do not
 * count. */
static const char *state_of(struct xseg *seg)
{
	struct xseg_peer_info info;
	const char *state = "idle";
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || view_peer_is_client(&info))
			continue;
		if (view_peer_alive(&info))
			return "running";
		if (info.state == XSEG_PEER_DEAD)
			state = "stale";
	}
	return state;
}

struct listing {
	json_t *array;				/* with --json */
	struct out_table *table;
	uint32_t nr;
};

/* Its peers that run, and its clients. */
static void count_all(struct xseg *seg, uint32_t *running, uint32_t *clients)
{
	struct view_peers peers = { 0 };

	*running = *clients = 0;
	if (view_peers_load(seg, &peers))
		return;
	for (uint32_t i = 0; i < peers.nr; i++)
		*running += view_peer_alive(&peers.info[i]) && !view_peer_is_client(&peers.info[i]);
	*clients = clients_text_count(&peers);
	view_peers_fini(&peers);
}

static void list_usable(struct listing *l, struct xseg *seg)
{
	uint32_t running, clients;
	struct xseg_info info;
	char memory[OUT_TEXT], free_text[OUT_TEXT];
	json_t *j;

	xseg_get_info(seg, &info);
	count_all(seg, &running, &clients);
	out_table_row(l->table, "%s\t%s\t%s\t%s\t%u\t%u\t", info.name, state_of(seg),
		      out_size(info.memory_bytes, memory),
		      out_size(info.free_pages * XSEG_PAGE_SIZE, free_text), running, clients);
	j = json_object();
	out_set_text(j, "name", info.name);
	out_set_text(j, "state", state_of(seg));
	out_set_int(j, "memory_bytes", info.memory_bytes);
	out_set_int(j, "total_bytes", info.total_bytes);
	out_set_int(j, "free_bytes", info.free_pages * XSEG_PAGE_SIZE);
	out_set_int(j, "peers_running", running);
	out_set_int(j, "clients", clients);
	json_array_append_new(l->array, j);
}

/* One that may not be attached as it is another user's. */
static bool list_foreign(struct listing *l, const char *name, int rc)
{
	char user[OWNER_BYTES];
	uint32_t uid;
	json_t *j;

	if ((rc != -EPERM && rc != -EACCES) || xseg_owner_of(name, &uid) || uid == geteuid())
		return false;
	owner_name(uid, user);
	out_table_row(l->table, "%s\tnot yours (user %s)\t-\t-\t-\t-\t-", name, user);
	j = json_object();
	out_set_text(j, "name", name);
	out_set_text(j, "state", "not yours");
	out_set_text(j, "user", user);
	json_array_append_new(l->array, j);
	return true;
}

/* The reason without the name, which the row has. */
static const char *note_of(const char *name, const char *reason)
{
	char named[XSEG_NAME_MAX + 16];
	int len = snprintf(named, sizeof(named), "segment '%s'", name);

	if (strncmp(reason, named, (size_t)len) != 0)
		return reason;
	reason += len;
	return reason + strspn(reason, ": ");
}

static void list_one(const char *name, void *arg)
{
	struct listing *l = arg;
	struct xseg_error err = { "" };
	const char *reason;
	struct xseg *seg;
	json_t *j;
	int rc = owner_attach(name, XSEG_ATTACH_OBSERVER, &seg, &err);

	if (rc == -ENOENT)
		return;
	l->nr++;
	if (!rc) {
		list_usable(l, seg);
		xseg_detach(seg);
		return;
	}
	if (list_foreign(l, name, rc))
		return;
	reason = note_of(name, err.text);
	j = json_object();
	out_set_text(j, "name", name);
	out_set_text(j, "state", "unusable");
	out_set_text(j, "reason", reason);
	json_array_append_new(l->array, j);
	/* what to do is told by every command on it */
	out_table_row(l->table, "%s\tunusable\t-\t-\t-\t-\t%.*s", name,
		(int)strcspn(reason, ";"), reason);
}

/* One whose file was removed, while its stack runs on. */
static void list_removed(const char *name, bool has_name, uint32_t pid, void *arg)
{
	static const char reason[] = "its file was removed, the stack runs on";
	struct listing *l = arg;
	json_t *j;

	if (has_name)
		return;
	l->nr++;
	out_table_row(l->table, "%s\tremoved\t-\t-\t-\t-\t%s; 'kill %u' stops that in order", name,
		reason, pid);
	j = json_object();
	out_set_text(j, "name", name);
	out_set_text(j, "state", "removed");
	out_set_text(j, "reason", reason);
	out_set_int(j, "supervisor_pid", pid);
	json_array_append_new(l->array, j);
}

int seg_list(struct tool *t, const void *opts, int argc, char **argv)
{
	struct listing l = { .array = json_array(),
			     .table = out_table_create(
				     "NAME\tSTATE\t>MEMORY\t>FREE\t>PEERS\t>CLIENTS\tNOTE") };
	int rc;

	(void)opts;
	(void)argc;
	(void)argv;
	rc = xseg_list(list_one, &l);
	if (rc >= 0)
		proc_each_supervisor(list_removed, &l);
	if (rc < 0)
		rc = tool_fail_errno(rc, NULL, "is /dev/shm mounted?", "list");
	else if (t->json)
		rc = out_json(json_incref(l.array));
	else if (l.nr == 0)
		tool_say(t, "no segments; make one with 'xseg create' or 'xseg up STACK.conf'");
	json_decref(l.array);
	if (!rc && !t->json && l.nr)
		return out_table_print(l.table);
	out_table_free(l.table);
	return rc;
}

/* ---- info -------------------------------------------------------------------------------- */

/* What the peers' processes have in memory of their own: tables, and little else. Huge pages that
 * were set aside are counted apart by the kernel, and those of the segment with them: so they are
 * told by the name that they have without a file. */
struct own_memory {
	bool known;		/* of all of them: the kernel tells their user, and root */
	uint64_t bytes, huge_bytes;
};

static bool add_own_memory(struct own_memory *own, uint32_t pid)
{
	/* "Anonymous" has the huge pages that the kernel makes in it, and not those set aside */
	unsigned long kb, from, to;
	bool set_aside = false;
	char line[512];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%u/smaps", pid);
	f = fopen(line, "re");
	if (!f)
		return errno == ENOENT;		/* it has ended meanwhile */
	while (fgets(line, sizeof(line), f)) {
		uint64_t all = 0, huge = 0;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			set_aside = strstr(line, " /anon_hugepage") != NULL;
		else if (sscanf(line, "Anonymous: %lu kB", &kb) == 1)
			all = kb;
		else if (sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			huge = kb;
		else if (set_aside && sscanf(line, "Private_Hugetlb: %lu kB", &kb) == 1)
			all = huge = kb;
		own->bytes += all << 10;
		own->huge_bytes += huge << 10;
	}
	fclose(f);
	return true;
}

static void get_own_memory(struct xseg *seg, struct own_memory *own)
{
	struct view_peers peers = { 0 };

	*own = (struct own_memory){ .known = !view_peers_load(seg, &peers) };
	for (uint32_t i = 0; i < peers.nr; i++) {
		const struct xseg_peer_info *p = &peers.info[i];
		bool seen = !view_peer_alive(p) || view_peer_is_client(p);

		for (uint32_t k = 0; k < i; k++)
			seen |= peers.info[k].pid == p->pid;
		if (!seen && (xseg_peer_pid_check(seg, p) == -EPROTO ||
				     !add_own_memory(own, p->pid)))
			own->known = false;
	}
	view_peers_fini(&peers);
}

static const char *huge_kind(const struct xseg_info *i, uint64_t huge_bytes)
{
	if (i->huge_reserved)
		return "hugetlb";
	return huge_bytes ? "transparent" : "none";
}

static json_t *info_json(const struct xseg_info *i, uint64_t huge_bytes,
	const struct own_memory *own)
{
	json_t *j = json_object();

	out_set_text(j, "name", i->name);
	out_set_int(j, "total_bytes", i->total_bytes);
	out_set_int(j, "memory_bytes", i->memory_bytes);
	out_set_int(j, "free_bytes", i->free_pages * XSEG_PAGE_SIZE);
	out_set_int(j, "arena_bytes", (uint64_t)i->arena_extents * XSEG_EXTENT_SIZE);
	out_set_int(j, "pages_bytes", (uint64_t)i->page_extents * XSEG_EXTENT_SIZE);
	out_set_int(j, "free_pages", i->free_pages);
	out_set_int(j, "requests", i->nr_requests);
	out_set_int(j, "free_requests", i->free_requests);
	out_set_int(j, "largest_requests", i->largest_requests);
	out_set_int(j, "reserve_requests", i->reserve_requests);
	out_set_int(j, "idle_requests", i->idle_requests);
	out_set_int(j, "ports", i->nr_ports);
	out_set_int(j, "free_ports", i->free_ports);
	out_set_int(j, "reserve_ports", i->reserve_ports);
	out_set_int(j, "lanes", i->nr_lanes);
	out_set_int(j, "used_lanes", i->used_lanes);
	out_set_text(j, "huge", stack_huge_names[i->huge]);
	out_set_int(j, "huge_bytes", huge_bytes);
	out_set_text(j, "huge_kind", huge_kind(i, huge_bytes));
	json_object_set_new(j, "own_bytes",
		own->known ? json_integer((json_int_t)own->bytes) : json_null());
	json_object_set_new(j, "own_huge_bytes",
		own->known ? json_integer((json_int_t)own->huge_bytes) : json_null());
	out_set_int(j, "bad_count", i->bad_count);
	out_set_int(j, "made_at_s", i->made_at_s);
	return j;
}

static int print_info(const struct xseg_info *i, uint64_t huge_bytes, const struct own_memory *own)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT], d[OUT_TEXT];

	printf("segment   %s, made %s\n", i->name, out_moment(i->made_at_s, a));
	printf("memory    %s: %s free, %s in arenas, %s in pages of peers\n",
	       out_size(i->memory_bytes, a), out_size(i->free_pages * XSEG_PAGE_SIZE, b),
	       out_size((uint64_t)i->arena_extents * XSEG_EXTENT_SIZE, c),
	       out_size((uint64_t)i->page_extents * XSEG_EXTENT_SIZE, d));
	printf("in all    %s of shared memory\n", out_size(i->total_bytes, a));
	printf("requests  %u of %u free", i->free_requests, i->nr_requests);
	if (i->largest_requests < i->free_requests)
		printf(", %u at most for one port", i->largest_requests);
	printf("; %u in reserve for administration\n", i->reserve_requests);
	printf("ports     %u of %u free; %u in reserve for administration\n", i->free_ports,
		i->nr_ports, i->reserve_ports);
	printf("lanes     %u of %u used\n", i->used_lanes, i->nr_lanes);
	if (huge_bytes)
		printf("huge      %s: %s of %s are in huge pages, %s\n", stack_huge_names[i->huge],
			out_size(huge_bytes, a), out_size(i->memory_bytes, b),
			i->huge_reserved ? "which were set aside (hugetlb)" : "transparent ones");
	else
		printf("huge      %s: nothing is in huge pages%s\n", stack_huge_names[i->huge],
			i->huge == XSEG_HUGE_NEVER
				? ""
				: "; see /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	if (own->known)
		printf("private   %s in the peers' processes, %s of it in huge pages\n",
			out_size(own->bytes, a), out_size(own->huge_bytes, b));
	else
		printf("private   unknown: the kernel tells only the peers' user, and root\n");
	printf("bad       %" PRIu64 " wrong values were found in the segment and refused\n",
	       i->bad_count);
	return out_done();
}

int seg_info(struct tool *t, const void *opts, int argc, char **argv)
{
	struct xseg_info info;
	struct own_memory own;
	struct xseg *seg;
	uint64_t huge;
	int rc;

	(void)opts;
	(void)argc;
	(void)argv;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	xseg_get_info(seg, &info);
	huge = xseg_huge_bytes(seg);
	get_own_memory(seg, &own);
	rc = t->json ? out_json(info_json(&info, huge, &own)) : print_info(&info, huge, &own);
	xseg_detach(seg);
	return rc;
}

/* ---- check ------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct seg_check_opts, field)
const struct opt seg_check_table[] = {
	{ .name = "fix", .kind = OPT_BOOL, .off = AT(fix),
	  .help = "also rebuild derived data" },
	{ 0 },
};
#undef AT

static void add_problem(const char *problem, void *arg)
{
	json_array_append_new(arg, json_string(problem));
}

static json_t *check_json(bool ok, const char *state, json_t *problems,
			  const struct xseg_info *info)
{
	json_t *j = json_object();

	out_set_bool(j, "ok", ok);
	out_set_text(j, "state", state);
	json_object_set_new(j, "problems", problems);
	out_set_int(j, "free_pages", info->free_pages);
	out_set_int(j, "free_requests", info->unowned_requests);
	out_set_int(j, "idle_requests", info->idle_requests);
	return j;
}

static int check_unusable(const struct tool *t, int rc, const struct xseg_error *err)
{
	struct xseg_info nothing = { .free_pages = 0 };
	json_t *problems = json_array();

	add_problem(err->text, problems);
	if (t->json)
		out_json(check_json(false, "unusable", problems, &nothing));
	else
		json_decref(problems);
	return tool_fail_attach(t, rc, err);
}

/* How many problems it would have been, and how many of them are left; and what volumed says of its
 * catalogue, which is no part of the segment. */
struct checked {
	bool fix;
	unsigned found, left;
	struct damage damage;
};

static void say_sound(const struct tool *t, const char *state, const struct checked *c)
{
	const char *more = "";
	char mended[64] = "";

	if (!strcmp(state, "stale"))
		more = "; its peers have died: 'xseg up STACK.conf' takes it over";
	else if (!strcmp(state, "running"))
		more = ", as far as can be told while peers run";
	if (c->found > c->left)
		snprintf(mended, sizeof(mended), " now, as %u problem%s mended", c->found - c->left,
			c->found - c->left == 1 ? " was" : "s were");
	tool_say(t, "segment %s is sound%s%s", t->segment, mended, more);
}

static int fail_check(const struct tool *t, const struct checked *c)
{
	const char *s = out_s(c->left);

	if (!c->left && !c->damage.reason[0])
		return tool_fail(TOOL_FAILED,
			"check: segment %s is sound, and its catalogue of volumes cannot be read; "
			"see the log for the store's error", t->segment);
	if (!c->left)
		return tool_fail(TOOL_FAILED,
			"check: segment %s is sound, and its catalogue of volumes is damaged; see "
			"'xseg volume recover --list'", t->segment);
	if (!c->fix)
		return tool_fail(TOOL_FAILED,
			"check: segment %s has %u problem%s; 'xseg check --fix' rebuilds derived "
			"data, else make it again",
			t->segment, c->left, s);
	return tool_fail(TOOL_FAILED,
		"check: segment %s has %u problem%s left, %u mended; the others cannot be mended: "
		"flush its caches as far as they can, then make it again",
		t->segment, c->left, s, c->found > c->left ? c->found - c->left : 0);
}

/* Prints what was found. */
static int report_check(const struct tool *t, json_t *result, const struct checked *c)
{
	json_t *problems = json_object_get(result, "problems");
	size_t i, nr = json_array_size(problems);
	char line[DAMAGE_MAX + 128];
	int rc = TOOL_DONE;

	if (t->json)
		rc = out_json(json_incref(result));
	for (i = 0; !t->json && i < nr; i++)
		printf("%s\n", tool_hints(line, sizeof(line),
					  json_string_value(json_array_get(problems, i))));
	if (!c->left && !damage_any(&c->damage))
		say_sound(t, json_string_value(json_object_get(result, "state")), c);
	json_decref(result);
	return c->left || damage_any(&c->damage) ? fail_check(t, c) : rc;
}

/* Only volumed can say, if it serves. */
static void check_catalogue(
	const struct tool *t, struct xseg *seg, struct checked *c, json_t *problems)
{
	char text[DAMAGE_MAX];

	damage_ask(t, seg, &c->damage);
	if (damage_any(&c->damage))
		add_problem(damage_tell(&c->damage, text), problems);
}

/* Nothing was looked at: the one problem says why. */
static int fail_locked(json_t *problems)
{
	tool_fail(TOOL_LATER, "check: %s", json_string_value(json_array_get(problems, 0)));
	json_decref(problems);
	return TOOL_LATER;
}

int seg_check(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct seg_check_opts *o = opts;
	struct xseg_error err = { "" };
	struct xseg_info info;
	json_t *result, *problems;
	struct xseg *seg;
	struct checked c = { .fix = o->fix };
	int rc;

	(void)argc;
	(void)argv;
	rc = owner_attach(t->segment, o->fix ? 0 : XSEG_ATTACH_OBSERVER, &seg, &err);
	if (rc == -EPROTO || rc == -EAGAIN || rc == -ESTALE)
		return check_unusable(t, rc, &err);
	if (rc)
		return tool_fail_attach(t, rc, &err);
	tool_be_patient(t, seg);
	problems = json_array();
	if (o->fix)
		c.found = xseg_check(seg, false, add_problem, problems);
	if (c.found != XSEG_NOT_CHECKED) {
		json_array_clear(problems);
		c.left = xseg_check(seg, o->fix, add_problem, problems);
	}
	if (c.found == XSEG_NOT_CHECKED || c.left == XSEG_NOT_CHECKED) {
		xseg_detach(seg);
		return fail_locked(problems);
	}
	xseg_get_info(seg, &info);
	check_catalogue(t, seg, &c, problems);
	result = check_json(!json_array_size(problems), state_of(seg), problems, &info);
	xseg_detach(seg);
	return report_check(t, result, &c);
}
