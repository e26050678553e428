/* complete - see complete.h. */
#include "peers/common/options/complete.h"

#include <stdio.h>
#include <string.h>

#define OPTION_MAX 64

void complete_print(const char *before, const char *candidate, const char *begin)
{
	if (!strncmp(candidate, begin, strlen(begin)))
		printf("%s%s\n", before, candidate);
}

static const struct opt *find(const struct cli_group *groups, const char *name, size_t len)
{
	char text[OPTION_MAX];
	const struct opt *o = NULL;

	if (len >= sizeof(text))
		return NULL;
	memcpy(text, name, len);
	text[len] = '\0';
	for (; !o && groups->table; groups++)
		o = opt_find(groups->table, text);
	return o;
}

const struct opt *complete_awaits(const struct cli_group *groups, const char *word)
{
	const struct opt *o = NULL;

	if (!strcmp(word, "-s"))
		o = find(groups, "segment", strlen("segment"));
	else if (!strncmp(word, "--", 2) && !strchr(word, '='))
		o = find(groups, word + 2, strlen(word + 2));
	return o && o->kind != OPT_BOOL ? o : NULL;
}

/* What the value of an option names; NULL: nothing that is known. */
static const char *kind_of(const struct opt *o)
{
	static const struct {
		const char *name, *kind;
	} by_name[] = { { "segment", "segments" }, { "volume", "volumes" }, { "target", "peers" },
			{ "volumed", "volumed" },  { "kvd", "kvd" },	    { "above", "peers" },
			{ "below", "peers" } };
	static const char *const files[] = { "FILE", "DIR", "SOCKET" };
	size_t i;

	for (i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++)
		if (opt_same_name(o->name, by_name[i].name))
			return by_name[i].kind;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (o->arg && !strcmp(o->arg, files[i]))
			return "files";
	return NULL;
}

static void print_values(const struct opt *o, const char *before, const char *begin,
			 complete_names *names, void *arg)
{
	const char *kind = kind_of(o);
	size_t i;

	if (o->kind == OPT_BOOL) {
		complete_print(before, "yes", begin);
		complete_print(before, "no", begin);
	}
	for (i = 0; o->kind == OPT_ENUM && o->names[i]; i++)
		complete_print(before, o->names[i], begin);
	if (kind)
		names(kind, before, begin, arg);
}

/* Those that have a value end by '=', after which the shell adds no blank. */
static void print_names(const struct cli_group *groups, const char *word)
{
	char text[OPTION_MAX];
	const struct opt *o;

	for (; groups->table; groups++)
		for (o = groups->table; o->name; o++) {
			snprintf(text, sizeof(text), "--%s%s", o->name,
				 o->kind == OPT_BOOL ? "" : "=");
			complete_print("", text, word);
		}
}

bool complete_option(const struct cli_group *groups, const char *before, const char *word,
		     complete_names *names, void *arg)
{
	const struct opt *o = before ? complete_awaits(groups, before) : NULL;
	const char *value = strchr(word, '=');
	char front[OPTION_MAX + 2];

	if (o) {
		print_values(o, "", word, names, arg);
		return true;
	}
	if (word[0] != '-')
		return false;
	if (!value || strncmp(word, "--", 2)) {
		print_names(groups, word);
		return true;
	}
	o = find(groups, word + 2, (size_t)(value - word) - 2);
	if (o && (size_t)(value - word) + 1 < sizeof(front)) {
		memcpy(front, word, (size_t)(value - word) + 1);
		front[value - word + 1] = '\0';
		print_values(o, front, value + 1, names, arg);
	}
	return true;
}
