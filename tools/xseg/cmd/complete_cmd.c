/* complete_cmd - see complete_cmd.h.
 *
 * Which names a word stands for is told by the usage line of the command (struct command's args)
 * and by the table of its options. Keys are those that the peer itself lists.
 */
#include "tools/xseg/cmd/complete_cmd.h"
#include "tools/xseg/cmd/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/options/complete.h"
#include "peers/common/options/owner.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/exported.h"
#include "tools/xseg/base/view.h"

#define PLAIN_MAX 64
#define TOKEN_MAX 64

struct completion {
	struct tool *t;
	const struct complete_tables *tables;
	const struct command *cmd;		/* NULL: not known yet */
	struct cli_group groups[3];
	bool helps;				/* "help" stands before the command */
	bool of_volume;				/* --volume stands on the line */
	const char *plain[PLAIN_MAX];		/* the words that are no options, and no values */
	int nr_plain, nr_command;		/* of these, the command's own */
};

/* ---- names ------------------------------------------------------------------------------- */

struct wanted {
	const char *before, *begin;
};

static void print_segment(const char *name, void *arg)
{
	const struct wanted *w = arg;

	complete_print(w->before, name, w->begin);
}

/* kind: of peers; NULL: any. */
static void print_peers(struct tool *t, const char *kind, const struct wanted *w)
{
	struct view_peers peers;
	struct xseg *seg;
	uint32_t i;

	if (tool_attach(t, XSEG_ATTACH_OBSERVER, &seg))
		return;
	if (!view_peers_load(seg, &peers))
		for (i = 0; i < peers.nr; i++)
			if (!view_peer_is_client(&peers.info[i]) &&
				(!kind || !strcmp(peers.info[i].kind, kind)))
				complete_print(w->before, peers.info[i].name, w->begin);
	view_peers_fini(&peers);
	xseg_detach(seg);
}

/* Of the volumed that is meant where none is named. */
static void print_volumes(struct tool *t, const struct wanted *w)
{
	char name[XSEG_NAME_MAX], *line, *save;
	uint64_t slot = 0, last;
	struct client *c;
	uint32_t peer;

	if (client_open(t, &c))
		return;
	if (client_find_peer(c, "volumed", "", &peer))
		goto out;
	do {
		last = slot;
		if (client_ask(c, peer, "volume list %" PRIu64, slot) < 0)
			break;
		slot = client_number(c->text, "next");
		for (line = strtok_r(c->text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			if (!strncmp(line, "slot=", 5) &&
				client_value(line, "name", name, sizeof(name)))
				complete_print(w->before, name, w->begin);
	} while (slot > last);
out:
	client_close(c);
}

/* Of the stack file. */
static void print_exports(struct tool *t, const struct wanted *w)
{
	struct exported_all all;
	struct xseg *seg;

	if (tool_attach(t, XSEG_ATTACH_OBSERVER, &seg))
		return;
	if (!exported_load(seg, &all)) {
		for (uint32_t i = 0; i < all.nr; i++)
			complete_print(w->before, all.export[i].e->name, w->begin);
		exported_fini(&all);
	}
	xseg_detach(seg);
}

static void print_names(const char *kind, const char *before, const char *begin, void *arg)
{
	struct wanted w = { .before = before, .begin = begin };
	const struct completion *c = arg;

	if (!strcmp(kind, "files"))
		printf("%s@files\n", before);
	else if (!strcmp(kind, "segments"))
		(void)xseg_list(print_segment, &w);
	else if (!strcmp(kind, "volumes"))
		print_volumes(c->t, &w);
	else if (!strcmp(kind, "exports"))
		print_exports(c->t, &w);
	else
		print_peers(c->t, strcmp(kind, "peers") ? kind : NULL, &w);
}

/* ---- keys -------------------------------------------------------------------------------- */

/* values: "a|b|c", or "" */
static void print_values(const char *key, char *values, const char *begin)
{
	char before[TOKEN_MAX], *value, *save;

	snprintf(before, sizeof(before), "%s=", key);
	for (value = strtok_r(values, "|", &save); value; value = strtok_r(NULL, "|", &save))
		complete_print(before, value, begin);
}

/* A line of the peer's answer: KEY=VALUES. */
static void print_key(char *line, const char *word)
{
	const char *given = strchr(word, '=');
	char *values = strchr(line, '='), key[TOKEN_MAX];

	if (!values)
		return;
	*values++ = '\0';
	snprintf(key, sizeof(key), "%s=", line);
	if (!given)
		complete_print("", key, word);
	else if (strlen(line) == (size_t)(given - word) && !strncmp(line, word, strlen(line)))
		print_values(line, values, given + 1);
}

static void print_keys(struct tool *t, const char *name, const char *word)
{
	struct client *c;
	uint32_t peer;
	char *line, *save;

	if (client_open(t, &c))
		return;
	if (!client_find_peer(c, NULL, name, &peer) && client_ask(c, peer, "keys") >= 0)
		for (line = strtok_r(c->text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			print_key(line, word);
	client_close(c);
}

/* What a volume has, whatever volumed says. */
static void print_limits(const char *word)
{
	char key[TOKEN_MAX];

	for (const struct opt *o = volume_limit_table; o->name; o++) {
		snprintf(key, sizeof(key), "%s=", o->name);
		complete_print("", key, word);
	}
}

/* What a cache has of a volume, whatever the cache says. */
static void print_volume_keys(const char *word)
{
	char policy[] = "policy=write-back|write-through|write-around|pass-through",
	     min[] = "min=", max[] = "max=";

	print_key(policy, word);
	print_key(min, word);
	print_key(max, word);
}

/* ---- a command --------------------------------------------------------------------------- */

/* The words of a command that are there, of nr plain ones: 0 if one is another. */
static int words_match(const char *words, const char *const *plain, int nr)
{
	size_t len;
	int i;

	for (i = 0; *words && i < nr; i++) {
		len = strcspn(words, " ");
		if (strlen(plain[i]) != len || strncmp(words, plain[i], len))
			return 0;
		words += len;
		words += *words == ' ';
	}
	return *words ? 0 : i;
}

/* The longest: "export list" is a command, and "export" is one. */
static void find_command(struct completion *c)
{
	int nr;
	size_t i;

	for (i = 0; i < c->tables->nr; i++) {
		nr = words_match(c->tables->commands[i].words, c->plain, c->nr_plain);
		if (nr > c->nr_command) {
			c->nr_command = nr;
			c->cmd = &c->tables->commands[i];
		}
	}
	if (c->cmd)
		c->groups[1].table = c->cmd->opts;
}

static bool same_first(const char *a, const char *b)
{
	size_t len = strcspn(a, " ");

	return len == strcspn(b, " ") && !strncmp(a, b, len);
}

/* The next word of each command that begins with the plain words. Commands of one first word stand
 * together in the table. */
static void print_commands(const struct completion *c, const char *word)
{
	const struct command *all = c->tables->commands;
	const char *second;
	char text[TOKEN_MAX];
	size_t i;

	if (!c->nr_plain && !c->helps)
		complete_print("", "help", word);
	for (i = 0; i < c->tables->nr; i++) {
		second = strchr(all[i].words, ' ');
		if (c->nr_plain == 1 && second &&
			strlen(c->plain[0]) == (size_t)(second - all[i].words) &&
			same_first(all[i].words, c->plain[0]))
			complete_print("", second + 1, word);
		if (c->nr_plain || (i && same_first(all[i].words, all[i - 1].words)))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(all[i].words, " "),
			 all[i].words);
		complete_print("", text, word);
	}
}

/* The word of a usage line at `place`, options and their arguments not counted; the last one again
 * and again where it ends by "...". */
static bool token_at(const char *args, int place, char token[TOKEN_MAX])
{
	bool skip = false, again;
	size_t len;
	int at = 0;

	for (; *args; args += len + strspn(args + len, " ")) {
		len = strcspn(args, " ");
		if (skip || !strncmp(args, "--", 2) || !strncmp(args, "[--", 3)) {
			skip = !skip && !memchr(args, ']', len);
			continue;
		}
		again = len > 3 && !strncmp(args + len - 3, "...", 3);
		if (at++ < place && !again)
			continue;
		snprintf(token, TOKEN_MAX, "%.*s", (int)len, args);
		return true;
	}
	return false;
}

static void print_argument(struct completion *c, const char *word)
{
	static const struct {
		const char *token, *kind;
	} kinds[] = { { "VOL", "volumes" }, { "CACHE", "cached" }, { "NAME", "peers" },
		      { "EXPORT", "exports" }, { "FILE", "files" }, { "DIR", "files" },
		      { "STACK", "files" } };
	const char *at;
	char token[TOKEN_MAX];
	size_t i;

	if (!token_at(c->cmd->args, c->nr_plain - c->nr_command, token))
		return;
	at = token + (token[0] == '[');
	if (!strncmp(at, "KEY=", 4) && !strcmp(c->cmd->words, "volume set")) {
		print_limits(word);
		return;
	}
	if (!strncmp(at, "KEY=", 4) && c->of_volume) {
		print_volume_keys(word);
		return;
	}
	if (!strncmp(at, "KEY=", 4)) {
		print_keys(c->t, c->plain[c->nr_command], word);
		return;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(at, kinds[i].token, strlen(kinds[i].token)))
			print_names(kinds[i].kind, "", word, c);
}

/* ---- the line ---------------------------------------------------------------------------- */

static void note_option(struct completion *c, const char *option, const char *value)
{
	if (!strcmp(option, "volume"))
		c->of_volume = true;
	else if (!strcmp(option, "owner"))
		owner_use(value);
	else if (!strcmp(option, "segment") && xseg_name_ok(value))
		snprintf(c->t->segment, sizeof(c->t->segment), "%s", value);
}

/* Everything before the word that is to be completed. */
static void read_line(struct completion *c, int argc, char **argv)
{
	const struct opt *awaited;
	char option[TOKEN_MAX];
	const char *value;
	int i;

	for (i = 0; i < argc; i++) {
		awaited = complete_awaits(c->groups, argv[i]);
		if (awaited && i + 1 < argc) {
			note_option(c, awaited->name, argv[++i]);
		} else if (argv[i][0] == '-') {
			value = strchr(argv[i], '=');
			snprintf(option, sizeof(option), "%.*s", (int)strcspn(argv[i], "="),
				 argv[i]);
			if (value && !strncmp(option, "--", 2))
				note_option(c, option + 2, value + 1);
		} else if (!c->nr_plain && !strcmp(argv[i], "help")) {
			c->helps = true;
		} else if (c->nr_plain < PLAIN_MAX) {
			c->plain[c->nr_plain++] = argv[i];
			find_command(c);
		}
	}
}

int complete_words(struct tool *t, const struct complete_tables *tables, int argc, char **argv)
{
	struct completion c = { .t = t, .tables = tables, .groups = { { tables->global, NULL } } };
	const char *word = argv[argc - 1];

	tool_mute(true);
	t->timeout_ns = TOOL_SECOND;
	tool_start_clock(t);
	read_line(&c, argc - 1, argv);
	if (complete_option(c.groups, argc > 1 ? argv[argc - 2] : NULL, word, print_names, &c))
		return TOOL_DONE;
	if (c.cmd && !c.helps)
		print_argument(&c, word);
	if (!c.cmd || c.nr_plain == 1)
		print_commands(&c, word);
	return TOOL_DONE;
}
