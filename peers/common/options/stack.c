/* stack - see stack.h. The reader below hands inih one line at a time. So the line number is known
 * when a key arrives, and sections without a key are seen.
 */
#include "peers/common/options/stack.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/cpus.h"
#include "peers/common/options/stack_kind.h"
#include "peers/common/options/stack_resolve.h"

/* ---- [peer NAME] ------------------------------------------------------------------------- */

#define PEER(field) offsetof(struct stack_peer, field)
const struct opt stack_peer_table[] = {
	{ .name = "kind", .kind = OPT_STR, .off = PEER(kind), .len = 16, .check = stack_kind_check,
	  .arg = "KIND",
	  .help = "one of " STACK_KINDS "; if there is no such key, the peer's name" },
	{ .name = "downstream", .kind = OPT_STR, .off = PEER(downstream_name), .len = XSEG_NAME_MAX,
	  .check = cli_check_name, .arg = "NAME",
	  .help = "the peer that it sends to; a store has none" },
	/* the same, of a peer that serves a kvd to others */
	{ .name = "kvd", .kind = OPT_STR, .off = PEER(downstream_name), .len = XSEG_NAME_MAX,
	  .check = cli_check_name, .arg = "NAME",
	  .help = "of a memcached: the kvd that it serves, in place of downstream" },
	{ .name = "threads", .kind = OPT_UINT, .off = PEER(threads), .min = 1,
	  .max = PEER_MAX_THREADS, .def = "1", .arg = "N",
	  .help = "threads, each with a port of its own" },
	{ .name = "cpus", .kind = OPT_STR, .off = PEER(cpus), .len = 64, .check = cpus_check,
	  .arg = "LIST", .help = "processors for the threads, such as 0,2-3" },
	{ .name = "restart", .kind = OPT_BOOL, .off = PEER(restart), .def = "yes",
	  .help = "whether the supervisor starts it again when it has died" },
	{ 0 }
};

/* ---- reading ----------------------------------------------------------------------------- */

/* SECTION_WRONG: its own line was refused, so nothing is said of its keys. */
enum section { SECTION_NONE, SECTION_SEGMENT, SECTION_PEER, SECTION_EXPORT, SECTION_RUN,
	SECTION_WRONG };

struct reading {
	struct stack *stack;
	const char *next;			/* text not yet given to inih */
	unsigned line;
	enum section section;
	struct stack_peer *peer;		/* in SECTION_PEER */
	bool segment_seen, run_seen;
	bool goes_on; /* the line begins with a blank: to inih, more of the value before */
	unsigned nr_keys;			/* of this section, so far */
	const char *key;			/* that is read; NULL: none is */
	struct stack_errors *errors;
	/* lines that inih cannot read: it sees empty ones in their places */
	unsigned nr_broken, broken[STACK_MAX_ERRORS];
};

/* Notes an error, and reading goes on. */
static int fail_at(struct reading *in, unsigned line, const char *why)
{
	stack_errors_add(in->errors, line, in->key, "%s", why);
	return -EINVAL;
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
	if (*seen)
		return fail_name(in, in->line, "there are two sections ", name, "; make them one");
	in->section = section;
	*seen = true;
	return 0;
}

static int begin_peer(struct reading *in, const char *name)
{
	struct stack *stack = in->stack;
	struct xseg_error why;

	if (cli_check_name(name, &why))
		return fail_at(in, in->line, why.text);
	if (!strcmp(name, "supervisor"))
		return fail_at(in, in->line,
			       "the name 'supervisor' is taken by the supervisor; use another");
	if (stack_find(stack, name) != STACK_NONE)
		return fail_name(in, in->line, "there are two peers ", name, "; names must differ");
	if (stack->nr_peers == STACK_MAX_PEERS)
		return fail_at(in, in->line, "a stack has at most 64 peers");
	in->section = SECTION_PEER;
	in->peer = &stack->peers[stack->nr_peers++];
	opt_set_defaults(stack_peer_table, in->peer);
	memcpy(in->peer->name, name, strlen(name) + 1);
	in->peer->lines.section = in->peer->lines.last = in->line;
	in->peer->downstream = in->peer->group = STACK_NONE;
	return 0;
}

static int begin_export(struct reading *in, const char *name)
{
	struct xseg_error why;

	if (stack_export_begin(in->stack, name, in->line, &why))
		return fail_at(in, in->line, why.text);
	in->section = SECTION_EXPORT;
	return 0;
}

static int begin_section(struct reading *in, const char *name)
{
	in->nr_keys = 0;
	in->section = SECTION_WRONG;
	if (!strcmp(name, "segment")) {
		if (!in->segment_seen)
			in->stack->segment_lines.section = in->line;
		return begin_once(in, SECTION_SEGMENT, &in->segment_seen, "[segment]");
	}
	if (!strcmp(name, "run"))
		return begin_once(in, SECTION_RUN, &in->run_seen, "[run]");
	if (!strncmp(name, "peer", 4) && isspace((unsigned char)name[4]))
		return begin_peer(in, name + 4 + strspn(name + 4, " \t"));
	if (!strncmp(name, "export", 6) && isspace((unsigned char)name[6]))
		return begin_export(in, name + 6 + strspn(name + 6, " \t"));
	return fail_name(in, in->line, "unknown section ", name,
			 "; there are [segment], [peer NAME], [export NAME] and [run]");
}

/* A section's line, as inih is about to see it; one that is refused it does not see. */
static bool look_for_section(struct reading *in, const char *line)
{
	const char *begin = line + strspn(line, " \t");
	char name[200] = "";
	size_t len;

	if (*begin != '[')
		return true;
	in->key = NULL;
	in->section = SECTION_WRONG;
	len = strcspn(begin + 1, "]");
	if (begin != line)
		return !fail_at(in, in->line, "a section must begin at the start of its line");
	if (begin[1 + len] != ']')
		return !fail_at(in, in->line, "the section lacks its ']'; add it");
	while (len && isspace((unsigned char)begin[len]))
		len--;
	begin += 1 + strspn(begin + 1, " \t");
	len = len > (size_t)(begin - line - 1) ? len - (size_t)(begin - line - 1) : 0;
	memcpy(name, begin, len);
	name[len] = '\0';
	return !begin_section(in, name);
}

static bool is_broken(const struct reading *in, unsigned line)
{
	for (unsigned i = 0; i < in->nr_broken; i++)
		if (in->broken[i] == line)
			return true;
	return false;
}

/* Copies the next line, or nothing of one that is too long: *len. False: there is none. */
static bool next_line(struct reading *in, char *buf, int room, size_t *len)
{
	bool fits;

	if (!*in->next)
		return false;
	*len = strcspn(in->next, "\n");
	fits = *len + 2 <= (size_t)room && *len < 199;
	in->line++;
	in->goes_on = in->nr_keys && isblank((unsigned char)in->next[0]);
	memcpy(buf, in->next, fits ? *len : 0);
	buf[fits ? *len : 0] = '\0';
	in->next += *len + (in->next[*len] == '\n');
	return true;
}

/* inih's reader: like fgets(). */
static char *read_line(char *buf, int room, void *arg)
{
	struct reading *in = arg;
	size_t len;

	if (!next_line(in, buf, room, &len))
		return NULL;
	in->key = NULL;
	if (len && !*buf)
		fail_at(in, in->line, "the line is longer than 198 characters; shorten it");
	if (!look_for_section(in, buf) || is_broken(in, in->line))
		*buf = '\0';
	return buf;
}

/* The same, where it is only to be known which lines inih cannot read. */
static char *read_line_to_try(char *buf, int room, void *arg)
{
	struct reading *in = arg;
	size_t len;

	if (!next_line(in, buf, room, &len))
		return NULL;
	if (is_broken(in, in->line))
		*buf = '\0';
	return buf;
}

static int take_key(void *arg, const char *section, const char *key, const char *value)
{
	(void)arg;
	(void)section;
	(void)key;
	(void)value;
	return 1;
}

/* inih names the first line that it cannot read, so such a line is left out and the rest read
 * again. What is wrong with a section look_for_section() says. */
static int find_broken(struct reading *in)
{
	const char *text = in->next, *line;
	int rc;

	for (;;) {
		rc = ini_parse_stream(read_line_to_try, in, take_key, NULL);
		in->next = text;
		in->line = 0;
		if (rc <= 0 || in->nr_broken == STACK_MAX_ERRORS)
			return rc < 0 ? -ENOMEM : 0;
		in->broken[in->nr_broken++] = (unsigned)rc;
		for (line = text; rc > 1; rc--)
			line += strcspn(line, "\n") + 1;
		if (line[strspn(line, " \t")] != '[')
			fail_at(in, in->broken[in->nr_broken - 1],
				"this is neither [SECTION] nor KEY = VALUE");
	}
}

/* Sets a key of a section's own table, once. */
static int set_own(struct reading *in, const struct opt *table, const struct opt *o,
	struct stack_lines *lines, void *base, const char *value)
{
	struct xseg_error why;

	if (!stack_lines_note(lines, table, o, in->line))
		return fail_name(in, in->line, "", o->name, " is given twice in this section");
	if (opt_set(o, base, value, &why))
		return fail_at(in, in->line, why.text);
	return 0;
}

static int set_segment(struct reading *in, const char *key, const char *value)
{
	const struct opt *o = opt_find(stack_segment_table, key);

	if (!o)
		return fail_name(in, in->line, "[segment] has no ", key,
			"; it has name, memory, requests, ports, huge, mode, group and owner");
	return set_own(in, stack_segment_table, o, &in->stack->segment_lines, &in->stack->segment,
		value);
}

static int set_peer(struct reading *in, const char *key, const char *value)
{
	const struct opt *o = opt_find(stack_peer_table, key);
	struct stack_peer *p = in->peer;
	struct stack_option *option;

	p->lines.last = in->line;
	if (o) {
		if (o->off == PEER(downstream_name))
			p->downstream_line = in->line;
		p->names_kvd |= opt_same_name(key, "kvd");
		return set_own(in, stack_peer_table, o, &p->lines, p, value);
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

/* inih's handler: 0 would be an error. */
static int on_key(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *in = arg;

	(void)section;
	in->key = key;
	if (is_indented_key(in, value)) {
		fail_at(in, in->line,
			"the line begins with a blank, so it continues the value before; begin "
			"each key at the start of its line");
		return 1;
	}
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
		break;
	case SECTION_WRONG:
		break;
	}
	return 1;
}

/* ---- for everybody ----------------------------------------------------------------------- */

struct stack *stack_create(void)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	if (stack)
		opt_set_defaults(stack_segment_table, &stack->segment);
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

int stack_read(const char *text, struct stack *stack, struct stack_errors *errors)
{
	struct reading in = { .stack = stack, .next = text, .errors = errors };

	if (!strncmp(in.next, STACK_BOM, strlen(STACK_BOM)))
		in.next += strlen(STACK_BOM);
	if (find_broken(&in) || ini_parse_stream(read_line, &in, on_key, &in) < 0)
		return -ENOMEM;
	stack_resolve(stack, errors);
	return errors->nr ? -EINVAL : 0;
}

int stack_parse(const char *text, struct stack *stack, struct xseg_error *err)
{
	struct stack_errors *errors = calloc(1, sizeof(*errors));
	int rc = errors ? stack_read(text, stack, errors) : -ENOMEM;

	if (rc == -ENOMEM)
		xseg_fail(err, rc, "the stack file cannot be read: out of memory");
	else if (rc)
		rc = stack_errors_first(errors, err);
	free(errors);
	return rc;
}
