/* set_help - see set_help.h. The lines of `xseg-host --keys` are in peers/host/check.h. */
#include "tools/xseg/cmd/set_help.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/cli.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/tool.h"

#define KEYS_MAX 256

struct key {
	const char *section, *name, *arg, *limits, *def, *flags, *help;
};

struct keys {
	char *text;
	unsigned nr;
	struct key key[KEYS_MAX];
};

static void add_line(struct keys *k, char *line)
{
	struct key *key = &k->key[k->nr];

	if (!*line || k->nr == KEYS_MAX)
		return;
	key->section = proc_word(&line);
	key->name = proc_word(&line);
	key->arg = proc_word(&line);
	key->limits = proc_word(&line);
	key->def = proc_word(&line);
	key->flags = proc_word(&line);
	key->help = proc_word(&line);
	k->nr++;
}

/* False: nobody tells them. */
static bool load(struct keys *k)
{
	char path[PATH_MAX], *rest, *line;

	*k = (struct keys){ 0 };
	if (tool_program("xseg-host", path, sizeof(path)) ||
		proc_run_read((char *[]){ path, "--keys", NULL }, STDIN_FILENO, NULL, &k->text))
		return false;
	rest = k->text;
	while (rest && (line = strsep(&rest, "\n")))
		add_line(k, line);
	return k->nr > 0;
}

static bool is_live(const struct key *k)
{
	return strchr(k->flags, 'l');
}

static int width_of(const struct key *k)
{
	return (int)(strlen(k->name) + strlen(k->arg)) + 1;
}

static void print_key(const struct key *k, int width)
{
	char text[512];
	bool choice = strchr(k->limits, ',');

	printf("  %s=%-*s  ", k->name, width - (int)strlen(k->name) - 1, k->arg);
	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", k->help,
		!*k->limits ? "" : choice ? ": " : ", ", k->limits, *k->def ? " [" : "", k->def,
		*k->def ? "]" : "", strchr(k->flags, 'm') ? " (repeatable)" : "");
	cli_print_words(stdout, width + 4, text);
}

/* Those of a kind. False: there are none. */
static bool print_section(const struct keys *k, const char *kind, bool live, const char *title)
{
	int width = 0;
	bool any = false;

	for (unsigned i = 0; i < k->nr; i++)
		if (!strcmp(k->key[i].section, kind) && is_live(&k->key[i]) == live &&
			width_of(&k->key[i]) > width)
			width = width_of(&k->key[i]);
	for (unsigned i = 0; i < k->nr; i++) {
		if (strcmp(k->key[i].section, kind) || is_live(&k->key[i]) != live)
			continue;
		if (!any)
			printf("\n%s\n", title);
		any = true;
		print_key(&k->key[i], width);
	}
	return any;
}

void set_help_cache(void)
{
	struct keys k;

	if (load(&k)) {
		print_section(&k, "cached", true, "keys of a cache, which hold at once:");
		print_section(&k, "cached", false,
			"keys that hold at its next start, from the stack file:");
	} else {
		printf("\ncached(8) has the keys.\n");
	}
	free(k.text);
	printf("\nkeys with --volume; an empty value is the cache's own:\n"
	       "  policy=POLICY  where writes of the volume go\n"
	       "  min=SIZE       memory of the cache that other volumes do not take from it\n"
	       "  max=SIZE       memory of the cache that it has at most\n");
}

void set_help_peer(void)
{
	const char *last = "";
	char title[64];
	struct keys k;

	if (!load(&k))
		printf("\nThe manual page of each kind of peers has its keys.\n");
	for (unsigned i = 0; i < k.nr; i++) {
		if (!strcmp(last, k.key[i].section))
			continue;
		last = k.key[i].section;
		snprintf(title, sizeof(title), "live keys of a %s:", last);
		print_section(&k, last, true, title);
	}
	free(k.text);
}
