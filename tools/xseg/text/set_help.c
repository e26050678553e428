/* set_help - see set_help.h. */
#include "tools/xseg/text/set_help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "tools/xseg/base/stack_keys.h"

static int width_of(const struct stack_key *k)
{
	return (int)(strlen(k->name) + strlen(k->arg)) + 1;
}

static void print_key(const struct stack_key *k, int width)
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
static bool print_section(const struct stack_keys *k, const char *kind, bool live,
	const char *title)
{
	int width = 0;
	bool any = false;

	for (unsigned i = 0; i < k->nr; i++)
		if (!strcmp(k->key[i].section, kind) && stack_key_is_live(&k->key[i]) == live &&
			width_of(&k->key[i]) > width)
			width = width_of(&k->key[i]);
	for (unsigned i = 0; i < k->nr; i++) {
		if (strcmp(k->key[i].section, kind) || stack_key_is_live(&k->key[i]) != live)
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
	struct stack_keys k;

	if (stack_keys_load(&k)) {
		print_section(&k, "cached", true, "keys of a cache, which hold at once:");
		print_section(&k, "cached", false,
			"keys that hold at its next start, from the stack file:");
	} else {
		printf("\ncached(8) has the keys.\n");
	}
	stack_keys_drop(&k);
	printf("\nkeys with --volume; an empty value is the cache's own:\n"
	       "  policy=POLICY  where writes of the volume go\n"
	       "  min=SIZE       memory of the cache that other volumes do not take from it\n"
	       "  max=SIZE       memory of the cache that it has at most\n");
}

void set_help_peer(void)
{
	const char *last = "";
	char title[64];
	struct stack_keys k;

	if (!stack_keys_load(&k))
		printf("\nThe manual page of each kind of peers has its keys.\n");
	for (unsigned i = 0; i < k.nr; i++) {
		if (!strcmp(last, k.key[i].section))
			continue;
		last = k.key[i].section;
		snprintf(title, sizeof(title), "live keys of a %s:", last);
		print_section(&k, last, true, title);
	}
	stack_keys_drop(&k);
}
