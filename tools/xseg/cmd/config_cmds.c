/* config_cmds - config check: all that is wrong with a stack file, and the memory that it needs.
 *
 * Contract: see commands.h. Nothing is started or made.
 */
#include <stdlib.h>

#include "tools/xseg/base/out.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/stack_file.h"

#define WHAT "config check"

static int show_json(const struct stack_file *f)
{
	json_t *j = json_object(), *memory = json_object(), *errors = stack_file_errors(f);

	out_set_text(j, "file", f->path);
	out_set_bool(j, "ok", !json_array_size(errors));
	out_set_text(j, "segment", f->stack->segment.name[0] ? f->stack->segment.name : NULL);
	out_set_int(j, "peers", f->stack->nr_peers);
	json_object_set_new(j, "errors", errors);
	out_set_int(memory, "needed_bytes", f->needed_bytes);
	out_set_int(memory, "given_bytes", f->given_bytes);
	out_set_int(memory, "suggested_bytes", f->good_bytes);
	json_object_set(memory, "needed_bytes_by", f->needs);
	json_object_set_new(j, "memory", memory);
	return out_json(j);
}

/* Of a file with errors the peers that are wrong are not counted. */
static int show_text(struct tool *t, const struct stack_file *f, bool sound)
{
	char needed[OUT_TEXT], given[OUT_TEXT], good[OUT_TEXT], own[OUT_TEXT];
	const char *name;
	json_t *bytes;

	tool_say(t, "%s: %s, %u peer%s", f->path, sound ? "it is sound" : "it has errors",
		f->stack->nr_peers, out_s(f->stack->nr_peers));
	if (!sound && !f->needed_bytes) {
		tool_say(t, "memory: its size can be suggested when the errors of the peers are "
			"mended");
		return out_done();
	}
	opt_format_size(f->good_bytes, good, sizeof(good));
	tool_say(t, "memory: the peers%s need %s, [segment] gives %s; a good value is %s",
		sound ? "" : " without errors", out_size(f->needed_bytes, needed),
		out_size(f->given_bytes, given), good);
	json_object_foreach(f->needs, name, bytes)
		if (json_integer_value(bytes))
			tool_say(t, "  %-14s %8s", name,
				out_size((uint64_t)json_integer_value(bytes), own));
	return out_done();
}

int config_check(struct tool *t, const void *opts, int argc, char **argv)
{
	struct stack_file *f;
	int rc, code;

	(void)opts;
	(void)argc;
	f = stack_file_read(t, WHAT, argv[0], &rc);
	if (rc) {
		stack_file_drop(f);
		return rc;
	}
	code = t->json ? (f->errors.nr || f->room.nr ? TOOL_USAGE : TOOL_DONE)
		       : stack_file_tell(f, WHAT, true);
	rc = t->json ? show_json(f) : show_text(t, f, code == TOOL_DONE);
	stack_file_drop(f);
	return code ? code : rc;
}
