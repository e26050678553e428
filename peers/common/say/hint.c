/* hint - see hint.h. */
#include "peers/common/say/hint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/xseg.h"

#define HINT_BYTES 2048

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

/* Where "-s SEGMENT" stands, or is to stand. */
static const char *skip_owner(const char *words)
{
	static const char option[] = "--owner ";
	const char *owner = words + sizeof(option) - 1;

	if (strncmp(words, option, sizeof(option) - 1) || owner[strcspn(owner, " '")] != ' ')
		return words;
	return owner + strcspn(owner, " '") + 1;
}

/* Of the words of a command. */
static bool needs_segment(const char *words)
{
	size_t len = strcspn(words, "'");
	const char *help = strstr(words, "--help");

	return strncmp(skip_owner(words), "-s ", 3) && !(help && help < words + len);
}

/* Where the next command's words begin, or NULL. */
static const char *next_command(const char *text)
{
	static const char begin[] = "'xseg ";
	const char *at = strstr(text, begin);

	return at ? at + sizeof(begin) - 1 : NULL;
}

/* With an option and its value before the words of each command that needs it. */
static const char *name_before(char *buf, size_t size, const char *text,
	bool (*needs)(const char *), const char *option, const char *value)
{
	const char *words;
	size_t used = 0;
	bool with;

	while ((words = next_command(text)) && used < size) {
		with = needs(words);
		used += (size_t)snprintf(buf + used, size - used, "%.*s%s%s%s%s",
			(int)(words - text), text, with ? option : "", with ? " " : "",
			with ? value : "", with ? " " : "");
		text = words;
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", text);
	return buf;
}

/* Of the words of a command. */
static bool needs_owner(const char *words)
{
	size_t len = strcspn(words, "'");
	const char *owner = strstr(words, "--owner "), *help = strstr(words, "--help");

	return !(owner && owner < words + len) && !(help && help < words + len);
}

static const char *name_owner(char *buf, size_t size, const char *text)
{
	return name_before(buf, size, text, needs_owner, "--owner", owner_to_name());
}

const char *hint_name_segment(char *buf, size_t size, const char *text, const char *segment)
{
	char named[HINT_BYTES];

	if (!*owner_to_name())
		return name_before(buf, size, text, needs_segment, "-s", segment);
	name_before(named, sizeof(named), text, needs_segment, "-s", segment);
	return name_owner(buf, size, named);
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

/* Without "-s SEGMENT", which a peer has put into its commands for all programs. */
static const char *leave_out_segment(char *buf, size_t size, const char *text, const char *segment)
{
	const char *words, *after;
	size_t used = 0, len = strlen(segment);

	while ((words = next_command(text)) && used < size) {
		used += (size_t)snprintf(
			buf + used, size - used, "%.*s", (int)(words - text), text);
		text = skip_owner(words);
		after = text + 3 + len;
		used += (size_t)snprintf(buf + used, used < size ? size - used : 0, "%.*s",
			(int)(text - words), words);
		if (!strncmp(text, "-s ", 3) && !strncmp(text + 3, segment, len) && *after == ' ')
			text = after + 1;
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", text);
	return buf;
}

const char *hint_for_shell(char *buf, size_t size, const char *text, const char *segment)
{
	char left[HINT_BYTES];

	if (strcmp(segment, hint_default_segment()))
		return hint_name_segment(buf, size, text, segment);
	if (!*owner_to_name())
		return leave_out_segment(buf, size, text, segment);
	leave_out_segment(left, sizeof(left), text, segment);
	return name_owner(buf, size, left);
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
