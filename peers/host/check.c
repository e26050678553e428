/* check - see check.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers/host/check.h"
#include "peers/common/log/log.h"
#include "peers/common/options/cli.h"
#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"
#include "peers/common/runtime/stack_check.h"
#include "peers/host/kinds.h"
#include "peers/host/load.h"
#include "peers/host/room.h"

/* Of one file. */
struct findings {
	struct stack *stack;
	struct stack_errors errors, room;
	struct room_need need;
	uint64_t given_bytes;
};

static uint64_t given_bytes(const struct stack *stack)
{
	struct xseg_config cfg;
	struct xseg_plan plan;

	if (!stack->segment.memory || stack_segment_config(&stack->segment, &cfg, NULL) ||
		xseg_plan(&cfg, &plan, NULL))
		return stack->segment.memory;
	return plan.pages_bytes;
}

/* What is wrong with the value of [segment] memory, or NULL. */
static struct stack_error *memory_error(struct findings *f)
{
	unsigned line = stack_line_of(&f->stack->segment_lines, stack_segment_table, "memory");

	for (uint32_t i = 0; i < f->errors.nr; i++)
		if (f->errors.error[i].line == line &&
			opt_same_name(f->errors.error[i].key, "memory"))
			return &f->errors.error[i];
	return NULL;
}

/* 0 or -ENOMEM. */
static int find_all(struct findings *f, const char *text)
{
	int rc = stack_read(text, f->stack, &f->errors);
	struct stack_error *memory;

	if (rc != -ENOMEM)
		rc = stack_check_all(f->stack, kinds_find, &f->errors);
	if (rc == -ENOMEM)
		return rc;
	stack_check_paths(f->stack, kinds_find, &f->errors);
	/* what is wrong with options has been found already */
	if (room_count(NULL, f->stack, &f->need, NULL) == -ENOMEM)
		return -ENOMEM;
	f->given_bytes = given_bytes(f->stack);
	memory = memory_error(f);
	if (memory)
		room_add_good(f->stack, &f->need, memory);
	else
		room_check_plan(f->stack, &f->need, &f->room);
	return 0;
}

static void report_errors(const char *word, const struct stack_errors *errors)
{
	for (uint32_t i = 0; i < errors->nr; i++)
		printf("%s\t%u\t%s\t%s\n", word, errors->error[i].line, errors->error[i].key,
			errors->error[i].why.text);
	if (errors->nr_more)
		printf("more\t%" PRIu32 "\n", errors->nr_more);
}

static void report_all(const struct findings *f)
{
	report_errors("error", &f->errors);
	report_errors("room", &f->room);
	printf("memory\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", f->need.memory_bytes,
		f->given_bytes, stack_good_memory(f->need.memory_bytes));
	for (uint32_t i = 0; i < f->stack->nr_peers; i++)
		printf("need\t%s\t%" PRIu64 "\n", f->stack->peers[i].name, f->need.peer_bytes[i]);
	for (uint32_t i = 0; i < f->stack->nr_exports; i++)
		printf("need\texport %s\t%" PRIu64 "\n", f->stack->exports[i].name,
			f->need.export_bytes[i]);
}

static void print_errors(const char *path, const struct stack_errors *errors)
{
	struct xseg_error text;

	for (uint32_t i = 0; i < errors->nr; i++)
		log_error("xseg-host: %s: %s", path, stack_error_text(&errors->error[i], &text));
	if (errors->nr_more)
		log_error("xseg-host: %s: %" PRIu32 " more errors", path, errors->nr_more);
}

int check_file(const char *path, bool report)
{
	struct findings *f = calloc(1, sizeof(*f));
	char *text = NULL;
	int rc;

	if (f)
		f->stack = stack_create();
	if (!f || !f->stack) {
		log_error("xseg-host: out of memory");
		free(f);
		return MAIN_FAILED;
	}
	rc = load_text(path, &text);
	if (!rc && find_all(f, text)) {
		log_error("xseg-host: out of memory");
		rc = MAIN_FAILED;
	} else if (!rc) {
		if (report) {
			report_all(f);
		} else {
			print_errors(path, &f->errors);
			print_errors(path, &f->room);
		}
		rc = f->errors.nr || f->room.nr ? MAIN_USAGE : MAIN_DONE;
	}
	free(text);
	stack_destroy(f->stack);
	free(f);
	return rc;
}

/* ---- keys -------------------------------------------------------------------------------- */

static void print_keys(const char *section, const struct opt *o)
{
	char limits[128];

	for (; o->name; o++)
		printf("%s\t%s\t%s\t%s\t%s\t%s%s%s%s\t%s\n", section, o->name, cli_argument(o),
			cli_limits(o, limits, sizeof(limits)), o->def ? o->def : "",
			o->flags & OPT_REQUIRED ? "r" : "", o->flags & OPT_LIVE ? "l" : "",
			o->kind == OPT_LIST ? "m" : "", o->flags & OPT_FIXED ? "f" : "", o->help);
}

/* It is read by hand, as a value may go on in the next line. */
static const struct opt run_keys[] = {
	{ .name = "together", .kind = OPT_LIST, .arg = "NAME NAME ...",
	  .help = "peers that share one process, and its threads" },
	{ 0 }
};

int check_keys(void)
{
	const struct peer_class *const *k;

	print_keys("segment", stack_segment_table);
	print_keys("peer", stack_peer_table);
	print_keys("export", stack_export_table);
	print_keys("run", run_keys);
	for (k = kinds; *k; k++)
		print_keys((*k)->kind, (*k)->opts);
	return MAIN_DONE;
}
