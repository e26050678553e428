/* load - see load.h. */
#include "peers/host/load.h"
#include "peers/common/runtime/stack_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/common/options/stack_record.h"
#include "peers/common/runtime/main.h"
#include "peers/host/kinds.h"

int load_parse(const char *who, const char *from, const char *text, struct stack **out)
{
	struct stack *stack = stack_create();
	struct xseg_error err = { "" };
	int rc;

	if (!stack) {
		log_error("%s: out of memory", who);
		return MAIN_FAILED;
	}
	rc = stack_parse(text, stack, &err);
	if (!rc)
		rc = stack_check_options(stack, kinds_find, &err);
	if (rc) {
		log_error("%s: %s: %s", who, from, err.text);
		stack_destroy(stack);
		return rc == -EINVAL ? MAIN_USAGE : MAIN_FAILED;
	}
	*out = stack;
	return MAIN_DONE;
}

int load_text(const char *path, char **out)
{
	bool standard = !strcmp(path, "-");
	FILE *in = standard ? stdin : fopen(path, "re");
	char *text = malloc(STACK_TEXT_BYTES);
	size_t len = 0;
	int rc = MAIN_USAGE;

	if (in && text)
		len = fread(text, 1, STACK_TEXT_BYTES, in);
	if (!in || !text || ferror(in))
		log_error("xseg-host: cannot read %s: %s", path, strerror(errno));
	else if (memchr(text, '\0', len))
		log_error("xseg-host: %s: it is not a text, there is a NUL in it", path);
	else if (len == STACK_TEXT_BYTES)
		log_error("xseg-host: %s: longer than 64k, a segment has no room for it", path);
	else {
		text[len] = '\0';
		*out = text;
		rc = MAIN_DONE;
	}
	if (in && !standard)
		fclose(in);
	if (rc)
		free(text);
	return rc;
}

int load_segment(const char *who, struct xseg *seg, struct stack **stack)
{
	char *text = malloc(STACK_TEXT_BYTES);
	size_t len = text ? xseg_stack_get(seg, text, STACK_TEXT_BYTES) : 0;
	int rc = MAIN_REFUSED;

	if (!xseg_is_own(seg))
		log_error(
			"%s: segment '%s' was made by another user, so nothing is started from its "
			"stack file; make one of your own",
			who, xseg_name(seg));
	else if (len)
		rc = load_parse(who, "the segment's stack file", text, stack);
	else
		log_error(
			"%s: segment '%s' holds no stack file; start it with 'xseg up STACK.conf'",
			who, xseg_name(seg));
	free(text);
	return rc;
}

struct stack *load_again(struct xseg *seg)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	struct stack *stack = stack_create();

	if (!record || !stack || !xseg_is_own(seg) || !stack_record_get(seg, record) ||
		stack_parse(record->text, stack, NULL) ||
		stack_check_options(stack, kinds_find, NULL)) {
		stack_destroy(stack);
		stack = NULL;
	}
	free(record);
	return stack;
}
