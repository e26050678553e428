/* stack_diff - see stack_diff.h. */
#include "tools/xseg/flow/stack_diff.h"

#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/base/stack_keys.h"

static const struct {
	const char *word, *text;		/* in JSON; for people */
} hows[STACK_DIFF_NR] = {
	[STACK_DIFF_LIVE] = { "live", "live" },
	[STACK_DIFF_RESTART] = { "restart", "restart of the peer" },
	[STACK_DIFF_ADD] = { "add", "the peer is started" },
	[STACK_DIFF_REMOVE] = { "remove", "the peer is stopped" },
	[STACK_DIFF_STACK] = { "stack", "the supervisor takes it" },
	[STACK_DIFF_ROUTE] = { "route", "plug, unplug" },
	[STACK_DIFF_REPLACE] = { "replace", "stop and start of the peer" },
	[STACK_DIFF_DOWN] = { "down", "xseg down, up" },
	[STACK_DIFF_FIXED] = { "fixed", "nothing, its data stays as it is" },
};

struct comparing {
	struct xseg *seg;
	struct client *c;
	struct stack_keys keys;
	const struct stack *old, *new;
	const struct stack_record *record;
	struct stack_diff *d;
};

static void add(struct comparing *c, enum stack_diff_how how, const struct stack_peer *p,
	const char *section, const char *key, const char *now, const char *file)
{
	struct stack_diff_row *row = &c->d->row[c->d->nr];

	if (c->d->nr == STACK_DIFF_MAX)
		return;
	row->how = how;
	snprintf(row->section, sizeof(row->section), p ? "peer %s" : "%s", p ? p->name : section);
	snprintf(row->key, sizeof(row->key), "%s", key);
	snprintf(row->now, sizeof(row->now), "%s", now);
	snprintf(row->file, sizeof(row->file), "%s", file);
	snprintf(row->peer, sizeof(row->peer), "%s", p ? p->name : "");
	c->d->nr++;
}

/* ---- values ------------------------------------------------------------------------------ */

static bool is_nothing(const char *text)
{
	return !*text || !strcmp(text, "0") || !strcmp(text, "0s");
}

static bool same_number(const char *a, const char *b, int (*parse)(const char *, uint64_t *))
{
	uint64_t x, y;

	return !parse(a, &x) && !parse(b, &y) && x == y;
}

/* "64M" is 65536k, and 70% is 70. */
static bool same_value(const char *a, const char *b)
{
	size_t len = strlen(b);

	return !strcmp(a, b) || (is_nothing(a) && is_nothing(b)) ||
	       same_number(a, b, opt_parse_size) || same_number(a, b, opt_parse_time) ||
	       same_number(a, b, opt_parse_rate) ||
	       (len && b[len - 1] == '%' && strlen(a) == len - 1 && !strncmp(a, b, len - 1));
}

/* Without a default a number is 0, and peers take no empty text for one. A list may be empty. */
static const char *default_of(const struct stack_key *key)
{
	static const char *const numbers[] = { "N", "SIZE", "RATE" };

	if (*key->def || strchr(key->flags, 'm'))
		return key->def;
	if (!strcmp(key->arg, "TIME"))
		return "0s";
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key->arg, numbers[i]))
			return "0";
	return "";
}

/* Of a key of a peer, as the file has it: values of a list in a line each; else the default. */
static const char *value_of(const struct stack_peer *p, const struct stack_key *key,
	char text[STACK_DIFF_VALUE])
{
	struct kv_text t;

	kv_init(&t, text, STACK_DIFF_VALUE);
	text[0] = '\0';
	for (uint32_t i = 0; p && i < p->nr_options; i++)
		if (opt_same_name(p->option[i].key, key->name))
			kv_add(&t, "%s%s", t.used ? "\n" : "", p->option[i].value);
	if (!t.used)
		snprintf(text, STACK_DIFF_VALUE, "%s", default_of(key));
	return text;
}

/* The same, as the peer's answer to "get" has it. */
static const char *running_value(const char *answer, const char *key, char text[STACK_DIFF_VALUE])
{
	size_t len = strlen(key);
	struct kv_text t;

	kv_init(&t, text, STACK_DIFF_VALUE);
	text[0] = '\0';
	for (const char *line = answer; *line; line += strcspn(line, "\n") + 1) {
		if (!strncmp(line, key, len) && line[len] == '=' && line[len + 1] != '\n')
			kv_add(&t, "%s%.*s", t.used ? "\n" : "",
				(int)strcspn(line + len + 1, "\n"), line + len + 1);
		if (!strchr(line, '\n'))
			break;
	}
	return text;
}

/* ---- peers ------------------------------------------------------------------------------- */

static enum stack_diff_how how_of_key(const struct stack_key *key, bool live, bool has_data)
{
	if (live)
		return STACK_DIFF_LIVE;
	return has_data && stack_key_is_fixed(key) ? STACK_DIFF_FIXED : STACK_DIFF_RESTART;
}

/* Each key of the kind, where p is as it was and q as it is in the file. */
static void compare_keys(struct comparing *c, const struct stack_peer *p,
	const struct stack_peer *q, const char *answer, bool has_data)
{
	char was[STACK_DIFF_VALUE], now[STACK_DIFF_VALUE], file[STACK_DIFF_VALUE];
	const struct stack_key *key = c->keys.key;
	bool live;

	for (; key < c->keys.key + c->keys.nr; key++) {
		if (strcmp(key->section, q->kind) || !strcmp(key->name, "kvd"))
			continue;
		value_of(q, key, file);
		value_of(p, key, was);
		live = stack_key_is_live(key) && answer;
		if (live)
			running_value(answer, key->name, now);
		if (same_value(live ? now : was, file))
			continue;
		add(c, how_of_key(key, live, has_data), q, "", key->name, live ? now : was, file);
		/* with another prefix it has other data */
		has_data = has_data && strcmp(key->name, "prefix");
	}
}

static void compare_own(struct comparing *c, const struct stack_peer *p, const struct stack_peer *q)
{
	char now[16], file[16];

	snprintf(now, sizeof(now), "%" PRIu32, p->threads);
	snprintf(file, sizeof(file), "%" PRIu32, q->threads);
	if (p->threads != q->threads)
		add(c, STACK_DIFF_RESTART, q, "", "threads", now, file);
	if (strcmp(p->cpus, q->cpus) != 0)
		add(c, STACK_DIFF_RESTART, q, "", "cpus", p->cpus, q->cpus);
	if (p->restart != q->restart)
		add(c, STACK_DIFF_STACK, q, "", "restart", p->restart ? "yes" : "no",
			q->restart ? "yes" : "no");
}

/* How that which differs of a peer's place, kind or process is applied. */
static enum stack_diff_how how_of(const struct route_node *n)
{
	return n->replaced ? STACK_DIFF_REPLACE : STACK_DIFF_ROUTE;
}

/* at: the peer's node. One that is no cache gets its first route by itself. */
static void compare_route(struct comparing *c, const struct stack_peer *q, uint32_t at)
{
	const struct route_plan *plan = &c->d->plan;
	uint32_t now = route_plan_below(plan, at), want = plan->node[at].want;

	if (now != want && (now != ROUTE_NONE || plan->node[at].cache))
		add(c, how_of(&plan->node[at]), q, "",
			plan->node[at].by_name ? "kvd" : "downstream",
			now == ROUTE_NONE ? "" : plan->node[now].name,
			want == ROUTE_NONE ? "" : plan->node[want].name);
}

/* A peer that is replaced for what differs of others, or restarted with them. */
static void note_replaced(
	struct comparing *c, const struct stack_peer *q, const struct route_node *n)
{
	const struct stack_diff *d = c->d;

	for (uint32_t i = 0; i < d->nr; i++)
		if (!strcmp(d->row[i].peer, q->name) &&
			(d->row[i].how == STACK_DIFF_REPLACE ||
				(d->row[i].how == STACK_DIFF_RESTART && n->keeps_route)))
			return;
	if (n->replaced)
		add(c, STACK_DIFF_REPLACE, q, "", "", n->keeps_route ? "its process" : "its place",
			"");
}

/* Who shares its process, of the peers that the file has, as one text. p: in that stack */
static const char *group_of(const struct comparing *c, const struct stack *stack,
	const struct stack_peer *p, char text[STACK_DIFF_VALUE])
{
	uint32_t nr = 0, at;
	struct kv_text t;

	kv_init(&t, text, STACK_DIFF_VALUE);
	text[0] = '\0';
	for (uint32_t i = 0; p->group != STACK_NONE && i < c->new->nr_peers; i++) {
		at = stack_find(stack, c->new->peers[i].name);
		if (at != STACK_NONE && stack->peers[at].group == p->group)
			kv_add(&t, "%s%s", nr++ ? " " : "", stack->peers[at].name);
	}
	if (nr == 1)
		text[0] = '\0';
	return text;
}

static void compare_together(
	struct comparing *c, const struct stack_peer *p, const struct stack_peer *q)
{
	char now[STACK_DIFF_VALUE], file[STACK_DIFF_VALUE];

	group_of(c, c->old, p, now);
	group_of(c, c->new, q, file);
	if (strcmp(now, file) != 0)
		add(c, STACK_DIFF_REPLACE, q, "", "together", now, file);
}

static bool answers(struct comparing *c, uint32_t peer)
{
	struct xseg_peer_info info;

	return xseg_peer_get_info(c->seg, peer, &info) && info.state == XSEG_PEER_LIVE &&
	       client_ask(c->c, peer, "get") >= 0;
}

/* A kvd with an open log. One that has found a log of another size has none open. */
static bool has_data(struct comparing *c, const struct stack_peer *q, uint32_t peer)
{
	struct xseg_peer_info info;
	char state[24];

	return !strcmp(q->kind, "kvd") && xseg_peer_get_info(c->seg, peer, &info) &&
	       info.state == XSEG_PEER_LIVE && client_ask(c->c, peer, "info") >= 0 &&
	       client_value(c->c->text, "state", state, sizeof(state)) && !strcmp(state, "open");
}

static void compare_options(struct comparing *c, const struct stack_peer *p,
	const struct stack_peer *q, const struct route_node *n)
{
	bool keeps = has_data(c, q, n->peer);

	compare_keys(c, p, q, answers(c, n->peer) ? c->c->text : NULL, keeps);
	compare_own(c, p, q);
}

/* Peers that share a process are restarted together, so that they share the next one, too. The plan
 * has to know that before it is made. */
static void plan_restarts(struct comparing *c)
{
	for (uint32_t i = 0; i < c->new->nr_peers; i++) {
		const struct stack_peer *q = &c->new->peers[i];
		uint32_t was = stack_find(c->old, q->name);
		struct route_node *n = &c->d->plan.node[route_plan_find(&c->d->plan, q->name)];

		if (q->group == STACK_NONE || was == STACK_NONE || !n->there || n->other_kind)
			continue;
		compare_options(c, &c->old->peers[was], q, n);
		n->regrouped |= stack_diff_count(c->d, STACK_DIFF_RESTART) ||
				stack_names_have(c->record->pending, q->name);
		c->d->nr = 0;
	}
}

/* p: as it was; at: its node */
static void compare_peer(
	struct comparing *c, const struct stack_peer *p, const struct stack_peer *q, uint32_t at)
{
	const struct route_node *n = &c->d->plan.node[at];
	struct xseg_peer_info info = { .state = XSEG_PEER_FREE };

	if (n->other_kind && xseg_peer_get_info(c->seg, n->peer, &info)) {
		add(c, STACK_DIFF_REPLACE, q, "", "kind", info.kind, q->kind);
		return;
	}
	compare_options(c, p, q, n);
	compare_route(c, q, at);
	compare_together(c, p, q);
	note_replaced(c, q, n);
	if (stack_names_have(c->record->pending, q->name))
		add(c, STACK_DIFF_RESTART, q, "", "", "not restarted yet", "");
}

/* What a reload that was killed had begun to replace, and the file does not have. */
static void compare_left(struct comparing *c)
{
	struct stack_peer gone = { .name = "" };
	const struct route_node *n;

	for (n = c->d->plan.node; n < c->d->plan.node + c->d->plan.nr; n++) {
		if (!n->goes || stack_find(c->old, n->name) != STACK_NONE)
			continue;
		memcpy(gone.name, n->name, sizeof(gone.name));
		add(c, STACK_DIFF_REMOVE, &gone, "", "", "not stopped yet", "");
	}
}

static void compare_peers(struct comparing *c)
{
	uint32_t i, was, at;

	for (i = 0; i < c->new->nr_peers; i++) {
		const struct stack_peer *q = &c->new->peers[i];

		was = stack_find(c->old, q->name);
		at = route_plan_find(&c->d->plan, q->name);
		if (was == STACK_NONE || !c->d->plan.node[at].there)
			add(c, STACK_DIFF_ADD, q, "", "", "", q->kind);
		else
			compare_peer(c, &c->old->peers[was], q, at);
	}
	for (i = 0; i < c->old->nr_peers; i++)
		if (stack_find(c->new, c->old->peers[i].name) == STACK_NONE)
			add(c, STACK_DIFF_REMOVE, &c->old->peers[i], "", "", c->old->peers[i].kind,
				"");
	compare_left(c);
}

/* ---- exports and the segment ------------------------------------------------------------- */

static void compare_exports(struct comparing *c)
{
	char section[XSEG_NAME_MAX + 16], now[STACK_DIFF_VALUE], file[STACK_DIFF_VALUE];
	const struct stack_export *e, *old;
	uint32_t at;

	for (e = c->new->exports; e < c->new->exports + c->new->nr_exports; e++) {
		at = stack_find_export(c->old, e->name);
		old = at == STACK_NONE ? NULL : &c->old->exports[at];
		snprintf(section, sizeof(section), "export %.63s", e->name);
		if (!old) {
			add(c, STACK_DIFF_STACK, NULL, section, "", "", e->nbd);
			continue;
		}
		for (const struct opt *o = stack_export_table; o->name; o++) {
			opt_get(o, old, now, sizeof(now));
			opt_get(o, e, file, sizeof(file));
			if (strcmp(now, file) != 0)
				add(c, STACK_DIFF_STACK, NULL, section, o->name, now, file);
		}
	}
	for (e = c->old->exports; e < c->old->exports + c->old->nr_exports; e++) {
		snprintf(section, sizeof(section), "export %.63s", e->name);
		if (stack_find_export(c->new, e->name) == STACK_NONE)
			add(c, STACK_DIFF_STACK, NULL, section, "", e->nbd, "");
	}
}

static void add_segment(struct comparing *c, enum stack_diff_how how, const char *key,
	const char *now, const char *file)
{
	add(c, how, NULL, "segment", key, now, file);
}

static void add_number(struct comparing *c, const char *key, uint32_t is, uint32_t wanted)
{
	char now[16], file[16];

	snprintf(now, sizeof(now), "%" PRIu32, is);
	snprintf(file, sizeof(file), "%" PRIu32, wanted);
	if (is != wanted)
		add_segment(c, STACK_DIFF_DOWN, key, now, file);
}

/* As both texts have it. */
static void compare_text(struct comparing *c, enum stack_diff_how how, const char *key)
{
	const struct opt *o = opt_find(stack_segment_table, key);
	char now[STACK_DIFF_VALUE], file[STACK_DIFF_VALUE];

	opt_get(o, &c->old->segment, now, sizeof(now));
	opt_get(o, &c->new->segment, file, sizeof(file));
	if (strcmp(now, file) != 0)
		add_segment(c, how, key, now, file);
}

/* The name is that of the segment, unless -s or $XSEG_SEGMENT has given it: these win each time. */
static void compare_name(struct comparing *c, const struct xseg_info *info)
{
	const char *name = c->new->segment.name, *named = c->record->named;

	if (!*named)
		compare_text(c, STACK_DIFF_DOWN, "name");
	else if (strcmp(named, STACK_NAMED_OPTION) && strcmp(name, info->name) &&
		 (*name || !strcmp(named, STACK_NAMED_FILE)))
		add_segment(c, STACK_DIFF_DOWN, "name", info->name, name);
}

static void compare_sizes(
	struct comparing *c, const struct xseg_info *info, const struct xseg_plan *plan)
{
	const struct stack_segment *s = &c->new->segment;
	char now[32], file[32];

	opt_format_size(info->memory_bytes, now, sizeof(now));
	opt_format_size(plan->pages_bytes, file, sizeof(file));
	if (info->memory_bytes != plan->pages_bytes)
		add_segment(c, STACK_DIFF_DOWN, "memory", now, file);
	if (s->memory || s->requests)
		add_number(c, "requests", info->nr_requests, plan->nr_requests);
	if (s->memory || s->ports)
		add_number(c, "ports", info->nr_ports, plan->nr_ports);
}

/* Without a group of its own it has that of its maker. */
static void compare_group(struct comparing *c, int64_t wanted, uint32_t is)
{
	const char *file = c->new->segment.group;
	const struct group *g = getgrgid(is);
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, is);
	if (is != (wanted < 0 ? (int64_t)getegid() : wanted))
		add_segment(c, STACK_DIFF_LIVE, "group", g ? g->gr_name : number, file);
}

static void compare_rights(
	struct comparing *c, const struct xseg_info *info, const struct xseg_config *cfg)
{
	char path[XSEG_NAME_MAX + 32], now[16], file[16];
	struct stat st;

	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", info->name);
	if (stat(path, &st))
		return;
	snprintf(now, sizeof(now), "%04o", st.st_mode & 07777u);
	snprintf(file, sizeof(file), "%04" PRIo32, cfg->mode);
	if (strcmp(now, file) != 0)
		add_segment(c, STACK_DIFF_LIVE, "mode", now, file);
	compare_group(c, cfg->group, st.st_gid);
}

/* With what the segment is, whatever the text in it says: a reload that has taken the text cannot
 * change all of the segment. A file without memory does not make one, so its defaults say nothing
 * of it. */
static void compare_segment(struct comparing *c)
{
	const struct stack_segment *s = &c->new->segment;
	struct xseg_config cfg;
	struct xseg_info info;
	struct xseg_plan plan;

	xseg_get_info(c->seg, &info);
	compare_name(c, &info);
	if (!stack_segment_config(s, &cfg, NULL)) {
		cfg.memory_bytes = s->memory ? s->memory : info.memory_bytes;
		if (!xseg_plan(&cfg, &plan, NULL))
			compare_sizes(c, &info, &plan);
	}
	if (s->memory) {
		if (s->huge != info.huge)
			add_segment(c, STACK_DIFF_DOWN, "huge", stack_huge_names[info.huge],
				stack_huge_names[s->huge]);
		compare_rights(c, &info, &cfg);
	} else {
		compare_text(c, STACK_DIFF_DOWN, "huge");
		compare_text(c, STACK_DIFF_LIVE, "mode");
		compare_text(c, STACK_DIFF_LIVE, "group");
	}
	compare_text(c, STACK_DIFF_STACK, "owner");
}

int stack_diff_make(struct tool *t, struct xseg *seg, const struct stack_record *record,
	const struct stack_file *file, struct stack_diff *d)
{
	struct comparing c = { .seg = seg, .new = file->stack, .record = record, .d = d };
	struct stack *old = stack_create();
	int rc;

	d->nr = 0;
	if (!old || stack_parse(record->text, old, NULL)) {
		stack_destroy(old);
		return tool_fail(TOOL_FAILED,
			"segment %s has no stack that can be read; stop it with 'xseg down'",
			t->segment);
	}
	c.old = old;
	rc = stack_keys_load(&c.keys) ? client_open(t, &c.c)
				      : tool_fail(TOOL_FAILED,
						"program xseg-host: it does not tell the keys; "
						"build or install it");
	if (!rc && !route_plan_load(seg, old, file->stack, record->pending, &d->plan))
		rc = tool_fail(TOOL_FAILED,
			"segment %s has more than %u peers; stop some of those that were started "
			"by hand",
			t->segment, ROUTE_PLAN_NODES);
	if (!rc) {
		plan_restarts(&c);
		route_plan_make(&d->plan);
		compare_segment(&c);
		compare_peers(&c);
		compare_exports(&c);
	}
	if (c.c)
		client_close(c.c);
	stack_keys_drop(&c.keys);
	stack_destroy(old);
	return rc;
}

/* ---- what came out ----------------------------------------------------------------------- */

uint32_t stack_diff_count(const struct stack_diff *d, enum stack_diff_how how)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < d->nr; i++)
		nr += d->row[i].how == how;
	return nr;
}

/* A list on one line. */
static const char *shown(char text[STACK_DIFF_VALUE])
{
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return *text ? text : "-";
}

int stack_diff_print(const struct stack_diff *d)
{
	struct out_table *table = out_table_create("SECTION\tKEY\tNOW\tFILE\tAPPLIED BY");
	struct stack_diff_row row;

	for (uint32_t i = 0; i < d->nr; i++) {
		row = d->row[i];
		out_table_row(table, "%s\t%s\t%s\t%s\t%s", row.section, *row.key ? row.key : "-",
			shown(row.now), shown(row.file), hows[row.how].text);
	}
	return out_table_print(table);
}

json_t *stack_diff_json(const struct stack_diff *d)
{
	json_t *array = json_array(), *j;

	for (uint32_t i = 0; i < d->nr; i++) {
		j = json_object();
		out_set_text(j, "section", d->row[i].section);
		out_set_text(j, "key", *d->row[i].key ? d->row[i].key : NULL);
		out_set_text(j, "now", d->row[i].now);
		out_set_text(j, "file", d->row[i].file);
		out_set_text(j, "how", hows[d->row[i].how].word);
		json_array_append_new(array, j);
	}
	return array;
}
