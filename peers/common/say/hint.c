/* hint - see hint.h. */
#include "peers/common/say/hint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/xseg.h"

/* Or "". */
static const char *owner_to_name(void)
{
	const char *set = getenv("XSEG_OWNER");

	return set ? set : "";
}

const char *hint_segment_to_make(void)
{
	const char *given = getenv("XSEG_SEGMENT");

	return given && *given ? given : "xseg";
}

struct only {
	char *name;				/* of the last one seen */
	unsigned nr;
};

static void see_segment(const char *name, void *arg)
{
	struct only *only = arg;

	only->nr++;
	snprintf(only->name, XSEG_NAME_MAX, "%s", name);
}

const char *hint_default_segment(void)
{
	static _Thread_local char name[XSEG_NAME_MAX];
	const char *given = getenv("XSEG_SEGMENT");
	struct only only = { .name = name };

	if (given && *given)
		return given;
	return xseg_list(see_segment, &only) >= 0 && only.nr == 1 ? name : "xseg";
}

/* Where the next command's words begin, or NULL. */
static const char *next_command(const char *text)
{
	static const char begin[] = "'xseg ";
	const char *at = strstr(text, begin);

	return at ? at + sizeof(begin) - 1 : NULL;
}

/* Whether the words of a command have the option. */
static bool have(const char *words, const char *option)
{
	const char *at = strstr(words, option);

	return at && at < words + strcspn(words, "'");
}

/* The words behind "--owner USER", where "-s SEGMENT" has its place. */
static const char *skip_owner(const char *words)
{
	static const char option[] = "--owner ";
	const char *owner = words + sizeof(option) - 1;

	if (strncmp(words, option, sizeof(option) - 1) || owner[strcspn(owner, " '")] != ' ')
		return words;
	return owner + strcspn(owner, " '") + 1;
}

/* With the owner in each command, and with the segment or without it. */
static const char *write_commands(
	char *buf, size_t size, const char *text, const char *segment, bool with_segment)
{
	const char *owner = owner_to_name(), *words, *rest;
	bool with_owner, is_help, has_segment, add_segment;
	size_t used = 0, len = strlen(segment);

	while ((words = next_command(text)) && used < size) {
		rest = skip_owner(words);
		is_help = have(words, "--help");
		has_segment = !strncmp(rest, "-s ", 3);
		with_owner = *owner && !is_help && !have(words, "--owner ");
		add_segment = with_segment && !is_help && !has_segment;
		used += (size_t)snprintf(buf + used, size - used, "%.*s%s%s%s%.*s%s%s%s",
			(int)(words - text), text, with_owner ? "--owner " : "",
			with_owner ? owner : "", with_owner ? " " : "", (int)(rest - words), words,
			add_segment ? "-s " : "", add_segment ? segment : "",
			add_segment ? " " : "");
		text = rest;
		if (!with_segment && has_segment && !strncmp(rest + 3, segment, len) &&
			rest[3 + len] == ' ')
			text = rest + 3 + len + 1;
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", text);
	return buf;
}

const char *hint_name_segment(char *buf, size_t size, const char *text, const char *segment)
{
	return write_commands(buf, size, text, segment, true);
}

/* Of the words of a command, of that length. */
static bool needs_volumed(const char *words, size_t len)
{
	char command[256];

	snprintf(command, sizeof(command), " %.*s ", (int)len, words);
	return (strstr(command, " volume ") || strstr(command, " --volume ")) &&
	       !strstr(command, " --volumed ") && !strstr(command, " --help ");
}

const char *hint_name_volumed(char *buf, size_t size, const char *text, const char *volumed)
{
	const char *words, *end;
	size_t used = 0;
	bool needs;

	while ((words = next_command(text)) && used < size) {
		end = words + strcspn(words, "'");
		needs = needs_volumed(words, (size_t)(end - words));
		used += (size_t)snprintf(buf + used, size - used, "%.*s%s%s", (int)(end - text),
					 text, needs ? " --volumed " : "", needs ? volumed : "");
		text = end;
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", text);
	return buf;
}

/* A peer has put "-s SEGMENT" into its commands for all programs. */
const char *hint_for_shell(char *buf, size_t size, const char *text, const char *segment)
{
	return write_commands(
		buf, size, text, segment, strcmp(segment, hint_default_segment()) != 0);
}

const char *hint_of_limit(int rc)
{
	switch (rc) {
	case -ENOMEM:
		return "raise ulimit -v, or free some memory";
	case -EMFILE:
		return "raise ulimit -n";
	case -ENFILE:
		return "raise fs.file-max";
	case -EFBIG:
		return "raise ulimit -f";
	default:
		return NULL;
	}
}

const char *hint_of_attach(int rc)
{
	switch (rc) {
	case -EACCES:
		return "its mode and group do not let you in; 'ls -l /dev/shm' shows them";
	case -EROFS:
		return "mount /dev/shm for reading and writing";
	case -EUSERS:
		return "end some of them; 'xseg list' counts them";
	default:
		return hint_of_limit(rc);
	}
}
