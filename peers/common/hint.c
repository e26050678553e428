/* hint - see hint.h. */
#include "peers/common/hint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hint_default_segment(void)
{
	const char *given = getenv("XSEG_SEGMENT");

	return given && *given ? given : "xseg";
}

/* Of the words of a command. */
static bool needs_segment(const char *words)
{
	size_t len = strcspn(words, "'");
	const char *help = strstr(words, "--help");

	return strncmp(words, "-s ", 3) && !(help && help < words + len);
}

const char *hint_name_segment(char *buf, size_t size, const char *text, const char *segment)
{
	static const char begin[] = "'xseg ";
	const char *words;
	size_t used = 0;

	while ((words = strstr(text, begin)) && used < size) {
		words += sizeof(begin) - 1;
		used += (size_t)snprintf(buf + used, size - used, "%.*s%s%s%s",
					 (int)(words - text), text,
					 needs_segment(words) ? "-s " : "",
					 needs_segment(words) ? segment : "",
					 needs_segment(words) ? " " : "");
		text = words;
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", text);
	return buf;
}

const char *hint_for_shell(char *buf, size_t size, const char *text, const char *segment)
{
	if (strcmp(segment, hint_default_segment()))
		return hint_name_segment(buf, size, text, segment);
	snprintf(buf, size, "%s", text);
	return buf;
}
