/* stack - see stack.h. The reader below hands inih one line at a time. So the line number is known
 * when a key arrives, and sections without a key are seen.
 */
#include "peers/common/options/stack.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/cpus.h"
#include "peers/common/options/owner.h"

#define BOM "\xef\xbb\xbf"

/* A kind, as far as a stack must know it without its code. */
struct stack_kind {
	const char *name;
	bool sends;				/* has a downstream */
	const char *over;			/* of this kind only, and its key */
};

static const struct stack_kind stack_kinds[] = {
	{ .name = "volumed", .sends = true }, { .name = "cached", .sends = true },
	{ .name = "filed" }, { .name = "memd" }, { .name = "sosd" },
	{ .name = "kvd", .sends = true },
	{ .name = "memcached", .sends = true, .over = "kvd" },
	{ 0 },
};

/* ---- [segment] --------------------------------------------------------------------------- */

static int read_mode(const char *text, uint32_t *mode)
{
	char *end;

	*mode = (uint32_t)strtoul(text, &end, 8);
	return !isdigit((unsigned char)*text) || *end || !*mode || *mode > 0777 ? -EINVAL : 0;
}

int stack_check_mode(const char *text, struct xseg_error *err)
{
	uint32_t mode;

	if (read_mode(text, &mode))
		return xseg_fail(err, -EINVAL,
				 "mode: '%.60s' is not a file mode such as 0600 or 0660", text);
	return 0;
}

int stack_check_group(const char *text, struct xseg_error *err)
{
	return *text ? 0 : xseg_fail(err, -EINVAL, "group: it is empty; leave it out for your own");
}

const char *const stack_huge_names[] = { "auto", "never", "require", NULL };

#define SEG(field) offsetof(struct stack_segment, field)
static const struct opt segment_opts[] = {
	{ .name = "name", .kind = OPT_STR, .off = SEG(name), .len = XSEG_NAME_MAX, .arg = "NAME",
	  .check = cli_check_name, .help = "name of the segment" },
	{ .name = "memory", .kind = OPT_SIZE, .off = SEG(memory), .min = 4 << 20, .arg = "SIZE",
	  .help = "memory for data, caches and tables" },
	{ .name = "requests", .kind = OPT_UINT, .off = SEG(requests), .arg = "N", .min = 32,
	  .max = 1u << 20, .flags = OPT_OR_ZERO, .help = "requests in all (0: 2048)" },
	{ .name = "ports", .kind = OPT_UINT, .off = SEG(ports), .arg = "N", .min = 4,
	  .max = XSEG_MAX_PORTS, .flags = OPT_OR_ZERO, .help = "ports in all (0: 64)" },
	{ .name = "huge", .kind = OPT_ENUM, .off = SEG(huge), .names = stack_huge_names,
	  .arg = "auto|never|require", .help = "whether to use huge pages" },
	{ .name = "mode", .kind = OPT_STR, .off = SEG(mode), .len = 8, .def = "0600", .arg = "MODE",
	  .check = stack_check_mode, .help = "users that may attach, as a file mode" },
	{ .name = "group", .kind = OPT_STR, .off = SEG(group), .len = 33, .arg = "GROUP",
	  .check = stack_check_group,
	  .help = "group that the segment is given to, by name or number" },
	OWNER_OPT(SEG(owner)),
	{ 0 }
};

int stack_segment_config(const struct stack_segment *s, struct xseg_config *cfg,
			 struct xseg_error *err)
{
	*cfg = (struct xseg_config){ .memory_bytes = s->memory, .nr_requests = s->requests,
				     .nr_ports = s->ports, .huge = s->huge, .group = -1 };
	if (read_mode(s->mode, &cfg->mode))
		return stack_check_mode(s->mode, err);
	if (s->group[0] && owner_find_group(s->group, &cfg->group))
		return xseg_fail(err, -EINVAL, "group: this machine has no group '%s'", s->group);
	return 0;
}

/* ---- [peer NAME] ------------------------------------------------------------------------- */

static const struct stack_kind *find_kind(const char *name)
{
	const struct stack_kind *k;

	for (k = stack_kinds; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

const char *stack_program(const char *kind)
{
	return strcmp(kind, "memcached") ? kind : "xseg-memcached";
}

bool stack_kind_is_store(const char *kind)
{
	const struct stack_kind *k = find_kind(kind);

	return k && !k->sends;
}

static int check_kind(const char *text, struct xseg_error *err)
{
	if (!find_kind(text))
		return xseg_fail(err, -EINVAL,
				 "kind: '%.60s' is not one of volumed, cached, filed, memd, sosd, "
				 "kvd, memcached",
				 text);
	return 0;
}

#define PEER(field) offsetof(struct stack_peer, field)
static const struct opt peer_opts[] = {
	{ .name = "kind", .kind = OPT_STR, .off = PEER(kind), .len = 16, .check = check_kind },
	{ .name = "downstream", .kind = OPT_STR, .off = PEER(downstream_name), .len = XSEG_NAME_MAX,
	  .check = cli_check_name },
	/* the same, of a peer that serves a kvd to others */
	{ .name = "kvd", .kind = OPT_STR, .off = PEER(downstream_name), .len = XSEG_NAME_MAX,
	  .check = cli_check_name },
	{ .name = "threads", .kind = OPT_UINT, .off = PEER(threads), .min = 1,
	  .max = PEER_MAX_THREADS, .def = "1" },
	{ .name = "cpus", .kind = OPT_STR, .off = PEER(cpus), .len = 64, .check = cpus_check },
	{ .name = "restart", .kind = OPT_BOOL, .off = PEER(restart), .def = "yes" },
	{ 0 }
};

/* ---- reading ----------------------------------------------------------------------------- */

enum section { SECTION_NONE, SECTION_SEGMENT, SECTION_PEER, SECTION_EXPORT, SECTION_RUN };

struct reading {
	struct stack *stack;
	const char *next;			/* text not yet given to inih */
	unsigned line;
	enum section section;
	struct stack_peer *peer;		/* in SECTION_PEER */
	bool segment_seen, run_seen;
	bool goes_on; /* the line begins with a blank: to inih, more of the value before */
	unsigned nr_keys;			/* of this section, so far */
	unsigned seen; /* keys of this section: bit per entry of its table */
	int rc;
	unsigned error_line;
	struct xseg_error *err;
};

/* Puts "line N: " before the text of `why`; the first error wins. */
static int fail_at(struct reading *in, unsigned line, const char *why)
{
	if (in->rc)
		return in->rc;
	in->error_line = line;
	in->rc = xseg_fail(in->err, -EINVAL, "line %u: %s", line, why);
	return in->rc;
}

static int fail_name(struct reading *in, unsigned line, const char *before, const char *name,
		     const char *after)
{
	struct xseg_error why;

	xseg_fail(&why, 0, "%s'%.80s'%s", before, name, after);
	return fail_at(in, line, why.text);
}

static int begin_once(struct reading *in, enum section section, bool *seen, const char *name)
{
	in->section = section;
	if (*seen)
		return fail_name(in, in->line, "there are two sections ", name, "; make them one");
	*seen = true;
	return 0;
}

static int begin_peer(struct reading *in, const char *name)
{
	struct stack *stack = in->stack;
	struct xseg_error why;

	in->section = SECTION_PEER;
	in->peer = NULL;
	if (cli_check_name(name, &why))
		return fail_at(in, in->line, why.text);
	if (!strcmp(name, "supervisor"))
		return fail_at(in, in->line,
			       "the name 'supervisor' is taken by the supervisor; use another");
	if (stack_find(stack, name) != STACK_NONE)
		return fail_name(in, in->line, "there are two peers ", name, "; names must differ");
	if (stack->nr_peers == STACK_MAX_PEERS)
		return fail_at(in, in->line, "a stack has at most 64 peers");
	in->peer = &stack->peers[stack->nr_peers++];
	opt_set_defaults(peer_opts, in->peer);
	memcpy(in->peer->name, name, strlen(name) + 1);
	in->peer->line = in->line;
	in->peer->downstream = in->peer->group = STACK_NONE;
	return 0;
}

static int begin_export(struct reading *in, const char *name)
{
	struct xseg_error why;

	in->section = SECTION_EXPORT;
	if (stack_export_begin(in->stack, name, in->line, &why))
		return fail_at(in, in->line, why.text);
	return 0;
}

static int begin_section(struct reading *in, const char *name)
{
	in->seen = in->nr_keys = 0;
	in->section = SECTION_NONE;
	if (!strcmp(name, "segment"))
		return begin_once(in, SECTION_SEGMENT, &in->segment_seen, "[segment]");
	if (!strcmp(name, "run"))
		return begin_once(in, SECTION_RUN, &in->run_seen, "[run]");
	if (!strncmp(name, "peer", 4) && isspace((unsigned char)name[4]))
		return begin_peer(in, name + 4 + strspn(name + 4, " \t"));
	if (!strncmp(name, "export", 6) && isspace((unsigned char)name[6]))
		return begin_export(in, name + 6 + strspn(name + 6, " \t"));
	return fail_name(in, in->line, "unknown section ", name,
			 "; there are [segment], [peer NAME], [export NAME] and [run]");
}

/* A section's line, as inih is about to see it. */
static void look_for_section(struct reading *in, const char *line)
{
	const char *begin = line + strspn(line, " \t");
	char name[200] = "";
	size_t len;

	if (*begin != '[')
		return;
	len = strcspn(begin + 1, "]");
	if (begin != line)
		fail_at(in, in->line, "a section must begin at the start of its line");
	else if (begin[1 + len] != ']')
		fail_at(in, in->line, "the section lacks its ']'");
	else {
		while (len && isspace((unsigned char)begin[len]))
			len--;
		begin += 1 + strspn(begin + 1, " \t");
		len = len > (size_t)(begin - line - 1) ? len - (size_t)(begin - line - 1) : 0;
		memcpy(name, begin, len);
		name[len] = '\0';
		begin_section(in, name);
	}
}

/* inih's reader: like fgets(). */
static char *read_line(char *buf, int room, void *arg)
{
	struct reading *in = arg;
	size_t len = strcspn(in->next, "\n");

	if (!*in->next || in->rc)
		return NULL;
	in->line++;
	in->goes_on = in->nr_keys && isblank((unsigned char)in->next[0]);
	if (len + 2 > (size_t)room || len >= 199) {
		fail_at(in, in->line, "the line is longer than 198 characters; shorten it");
		return NULL;
	}
	memcpy(buf, in->next, len);
	buf[len] = '\0';
	in->next += len + (in->next[len] == '\n');
	look_for_section(in, buf);
	return buf;
}

/* Sets a key of a section's own table, once. */
static int set_own(struct reading *in, const struct opt *table, const struct opt *o, void *base,
		   const char *value)
{
	unsigned bit = 1u << (o - table);
	struct xseg_error why;

	if (in->seen & bit)
		return fail_name(in, in->line, "", o->name, " is given twice in this section");
	in->seen |= bit;
	if (opt_set(o, base, value, &why))
		return fail_at(in, in->line, why.text);
	return 0;
}

static int set_segment(struct reading *in, const char *key, const char *value)
{
	const struct opt *o = opt_find(segment_opts, key);

	if (!o)
		return fail_name(in, in->line, "[segment] has no ", key,
			"; it has name, memory, requests, ports, huge, mode, group and owner");
	return set_own(in, segment_opts, o, &in->stack->segment, value);
}

static int set_peer(struct reading *in, const char *key, const char *value)
{
	const struct opt *o = opt_find(peer_opts, key);
	struct stack_peer *p = in->peer;
	struct stack_option *option;

	if (o) {
		if (o->off == PEER(downstream_name))
			p->downstream_line = in->line;
		p->names_kvd |= opt_same_name(key, "kvd");
		return set_own(in, peer_opts, o, p, value);
	}
	if (p->nr_options == STACK_MAX_OPTIONS)
		return fail_name(in, in->line, "peer ", p->name, " has more than 32 options");
	option = &p->option[p->nr_options];
	option->key = strdup(key);
	option->value = strdup(value);
	option->line = in->line;
	p->nr_options++;
	return option->key && option->value ? 0 : fail_at(in, in->line, "out of memory");
}

/* Remembers the names; they are looked up when all peers are known. */
static int set_run(struct reading *in, const char *key, const char *value)
{
	struct stack *stack = in->stack;
	struct stack_group *g;
	char *names;

	if (strcmp(key, "together"))
		return fail_name(in, in->line, "[run] has no ", key,
				 "; it has together = NAME NAME ...");
	if (in->goes_on) {
		g = &stack->groups[stack->nr_groups - 1];
		if (asprintf(&names, "%s %s", g->names, value) < 0)
			return fail_at(in, in->line, "out of memory");
		free(g->names);
		g->names = names;
		return 0;
	}
	if (stack->nr_groups == STACK_MAX_GROUPS)
		return fail_at(in, in->line, "there are more than 16 groups");
	g = &stack->groups[stack->nr_groups];
	g->line = in->line;
	g->names = strdup(value);
	stack->nr_groups++;
	return g->names ? 0 : fail_at(in, in->line, "out of memory");
}

static int set_export(struct reading *in, const char *key, const char *value)
{
	struct xseg_error why;

	if (stack_export_set(in->stack, key, value, in->line, &why))
		return fail_at(in, in->line, why.text);
	return 0;
}

/* What goes on with the value before, but was meant for a key: keys are often indented. */
static bool is_indented_key(const struct reading *in, const char *value)
{
	size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz_-");

	return in->goes_on && len && value[len + strspn(value + len, " \t")] == '=';
}

/* inih's handler: 0 is an error. */
static int on_key(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *in = arg;

	(void)section;
	if (is_indented_key(in, value))
		fail_at(in, in->line,
			"the line begins with a blank, so it continues the value before; begin "
			"each key at the start of its line");
	if (in->rc)
		return 0;
	in->nr_keys++;
	switch (in->section) {
	case SECTION_SEGMENT:
		set_segment(in, key, value);
		break;
	case SECTION_PEER:
		set_peer(in, key, value);
		break;
	case SECTION_EXPORT:
		set_export(in, key, value);
		break;
	case SECTION_RUN:
		set_run(in, key, value);
		break;
	case SECTION_NONE:
		fail_name(in, in->line, "", key,
			" is in no section; put it below [segment], [peer NAME], [export NAME] or "
			"[run]");
	}
	return in->rc == 0;
}

/* ---- what holds between peers ------------------------------------------------------------ */

static int resolve_peer(struct reading *in, struct stack_peer *p)
{
	if (!p->kind[0] && find_kind(p->name))
		memcpy(p->kind, find_kind(p->name)->name, strlen(find_kind(p->name)->name) + 1);
	if (!p->kind[0])
		return fail_name(in, p->line, "peer ", p->name,
				 " has no kind; add kind = volumed, cached, filed, memd, sosd, "
				 "kvd or memcached");
	if (p->names_kvd && !find_kind(p->kind)->over)
		return fail_name(in, p->downstream_line, "a ", p->kind,
				 " has no key kvd; downstream = names the peer that it sends to");
	if (!p->downstream_name[0])
		return 0;
	if (!find_kind(p->kind)->sends)
		return fail_name(in, p->downstream_line, "a ", p->kind,
				 " is a store and has no downstream; leave that out");
	p->downstream = stack_find(in->stack, p->downstream_name);
	if (p->downstream == STACK_NONE)
		return fail_name(in, p->downstream_line, "downstream: there is no peer ",
				 p->downstream_name, " in this file");
	return 0;
}

/* When all kinds are known. */
static int check_below(struct reading *in, const struct stack_peer *p)
{
	const char *over = find_kind(p->kind)->over;
	const struct stack_peer *below;

	if (p->downstream == STACK_NONE)
		return 0;
	below = &in->stack->peers[p->downstream];
	if (over && strcmp(below->kind, over))
		return fail_name(in, p->downstream_line, "kvd: ", below->name,
				 " is no kvd; name a peer of that kind");
	if (find_kind(below->kind)->over)
		return fail_name(in, p->downstream_line, "downstream: ", below->name,
				 " serves clients only; name the peer below it");
	return 0;
}

static int find_loop(struct reading *in, const struct stack_peer *p)
{
	uint32_t steps, at = p->downstream;

	for (steps = 0; at != STACK_NONE && steps <= in->stack->nr_peers; steps++)
		at = in->stack->peers[at].downstream;
	if (at == STACK_NONE)
		return 0;
	return fail_name(in, p->downstream_line, "what ", p->name,
			 " sends to comes back to it: a loop of downstreams");
}

static bool is_named(const struct stack *stack, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < stack->nr_peers; i++)
		if (stack->peers[i].downstream == peer)
			return true;
	return false;
}

/* Another peer that names the same downstream, or NULL. */
static const struct stack_peer *find_beside(const struct stack *stack, const struct stack_peer *p)
{
	const struct stack_peer *q;

	for (q = stack->peers; q < stack->peers + stack->nr_peers; q++)
		if (q != p && p->downstream != STACK_NONE && q->downstream == p->downstream)
			return q;
	return NULL;
}

/* A cache has its downstream to itself. One that nobody sends to is no harm beside others: it
 * waits. */
static int resolve_cache(struct reading *in, struct stack_peer *p)
{
	const struct stack_peer *beside = find_beside(in->stack, p);
	struct xseg_error why;

	if (strcmp(p->kind, "cached") || !beside)
		return 0;
	p->waits = !is_named(in->stack, (uint32_t)(p - in->stack->peers));
	if (p->waits)
		return 0;
	xseg_fail(&why, 0,
		"cache '%.60s' must be the only sender to its downstream, and '%.60s' sends there, "
		"too; let that send to the cache, or leave the cache out of all downstreams and "
		"plug it",
		p->name, beside->name);
	return fail_at(in, p->downstream_line, why.text);
}

const char *stack_downstream(const struct stack_peer *p)
{
	return p->waits ? "" : p->downstream_name;
}

static int resolve_group(struct reading *in, uint32_t nr)
{
	struct stack_group *g = &in->stack->groups[nr];
	char *name, *rest = g->names;
	struct stack_peer *p;
	uint32_t i;

	while ((name = strsep(&rest, " \t,"))) {
		if (!*name)
			continue;
		i = stack_find(in->stack, name);
		if (i == STACK_NONE)
			return fail_name(in, g->line, "together: there is no peer ", name,
					 " in this file");
		p = &in->stack->peers[i];
		if (p->group != STACK_NONE)
			return fail_name(in, g->line, "together: ", name, " is named twice");
		p->group = nr;
		g->peer[g->nr++] = i;
	}
	return g->nr ? 0 : fail_at(in, g->line, "together: names at least one peer");
}

static int resolve_exports(struct reading *in)
{
	struct xseg_error why;
	unsigned line = 0;

	if (!in->rc && stack_export_resolve(in->stack, &line, &why))
		return fail_at(in, line, why.text);
	return in->rc;
}

static int resolve(struct reading *in)
{
	struct stack *stack = in->stack;
	uint32_t i;

	for (i = 0; i < stack->nr_peers && !in->rc; i++)
		resolve_peer(in, &stack->peers[i]);
	for (i = 0; i < stack->nr_peers && !in->rc; i++)
		find_loop(in, &stack->peers[i]);
	for (i = 0; i < stack->nr_peers && !in->rc; i++)
		check_below(in, &stack->peers[i]);
	for (i = 0; i < stack->nr_peers && !in->rc; i++)
		resolve_cache(in, &stack->peers[i]);
	for (i = 0; i < stack->nr_groups && !in->rc; i++)
		resolve_group(in, i);
	return resolve_exports(in);
}

/* ---- for everybody ----------------------------------------------------------------------- */

struct stack *stack_create(void)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	if (stack)
		opt_set_defaults(segment_opts, &stack->segment);
	return stack;
}

void stack_destroy(struct stack *stack)
{
	uint32_t i, j;

	if (!stack)
		return;
	for (i = 0; i < stack->nr_peers; i++)
		for (j = 0; j < stack->peers[i].nr_options; j++) {
			free(stack->peers[i].option[j].key);
			free(stack->peers[i].option[j].value);
		}
	for (i = 0; i < stack->nr_groups; i++)
		free(stack->groups[i].names);
	free(stack);
}

int stack_parse(const char *text, struct stack *stack, struct xseg_error *err)
{
	struct reading in = { .stack = stack, .next = text, .err = err };
	int rc;

	if (!strncmp(in.next, BOM, strlen(BOM)))
		in.next += strlen(BOM);
	rc = ini_parse_stream(read_line, &in, on_key, &in);
	if (rc > 0 && (!in.rc || (unsigned)rc < in.error_line))
		return xseg_fail(err, -EINVAL, "line %d: this is neither [SECTION] nor KEY = VALUE",
				 rc);
	if (rc < 0)
		return xseg_fail(err, -ENOMEM, "the stack file cannot be read: out of memory");
	return in.rc ? in.rc : resolve(&in);
}

uint32_t stack_find(const struct stack *stack, const char *name)
{
	uint32_t i;

	for (i = 0; i < stack->nr_peers; i++)
		if (!strcmp(stack->peers[i].name, name))
			return i;
	return STACK_NONE;
}

void stack_order(const struct stack *stack, uint32_t order[STACK_MAX_PEERS])
{
	bool placed[STACK_MAX_PEERS] = { false };
	uint32_t i, nr = 0, before;

	while (nr < stack->nr_peers) {
		before = nr;
		for (i = 0; i < stack->nr_peers; i++) {
			uint32_t below = stack->peers[i].downstream;

			if (placed[i] || (below != STACK_NONE && !placed[below]))
				continue;
			placed[i] = true;
			order[nr++] = i;
		}
		assert(nr > before);
	}
}
