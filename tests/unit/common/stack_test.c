/* stack_test - stack files: which are read, which are refused and with which line, in which order
 * peers start.
 */
#include "peers/common/options/stack.h"
#include "peers/common/runtime/stack_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/common/runtime/peer.h"

static const char whole[] =
	"; a stack\n"
	"[segment]\n"
	"name = store\n"
	"memory = 4G\n"
	"requests = 1024\n"
	"huge = never\n"
	"mode = 0660\n"
	"\n"
	"[peer volumed]\n"
	"downstream = cached\n"
	"object_size = 4M\n"
	"\n"
	"[peer cached]\n"
	"downstream=store1\n"
	"memory = 1G   ; most of it\n"
	"restart = no\n"
	"\n"
	"[peer store1]\n"
	"kind = memd\n"
	"threads = 2\n"
	"cpus = 0,1\n"
	"fail = read:0.1:EIO\n"
	"fail = write:0.1@3:ENOSPC\n"
	"[peer spare]\n"
	"kind = cached\n"
	"[peer filed]\n"
	"[run]\n"
	"together = volumed cached store1\n";

static struct xseg_error error;

static struct stack *parse(const char *text)
{
	struct stack *stack = stack_create();
	int rc;

	assert_non_null(stack);
	error.text[0] = '\0';
	rc = stack_parse(text, stack, &error);
	if (rc) {
		assert_int_equal(rc, -EINVAL);
		stack_destroy(stack);
		return NULL;
	}
	return stack;
}

static void a_whole_file_is_read(void **state)
{
	struct stack *stack = parse(whole);
	const struct stack_peer *p;
	struct xseg_config cfg;

	(void)state;
	assert_non_null(stack);
	assert_string_equal(stack->segment.name, "store");
	assert_int_equal(stack_segment_config(&stack->segment, &cfg, &error), 0);
	assert_int_equal(cfg.memory_bytes, 4ull << 30);
	assert_int_equal(cfg.nr_requests, 1024);
	assert_int_equal(cfg.nr_ports, 0);
	assert_int_equal(cfg.huge, XSEG_HUGE_NEVER);
	assert_int_equal(cfg.mode, 0660);
	assert_int_equal(cfg.group, -1);
	assert_int_equal(stack->nr_peers, 5);
	p = &stack->peers[stack_find(stack, "store1")];
	assert_string_equal(p->kind, "memd");
	assert_int_equal(p->threads, 2);
	assert_string_equal(p->cpus, "0,1");
	assert_true(p->restart);
	assert_int_equal(p->nr_options, 2);
	assert_string_equal(p->option[1].value, "write:0.1@3:ENOSPC");
	p = &stack->peers[stack_find(stack, "cached")];
	assert_string_equal(p->kind, "cached");
	assert_false(p->restart);
	assert_int_equal(p->downstream, stack_find(stack, "store1"));
	assert_string_equal(p->option[0].value, "1G");
	assert_int_equal(p->option[0].line, 15);
	assert_int_equal(p->group, 0);
	assert_int_equal(stack->peers[stack_find(stack, "spare")].downstream, STACK_NONE);
	assert_int_equal(stack->peers[stack_find(stack, "filed")].group, STACK_NONE);
	assert_int_equal(stack->nr_groups, 1);
	assert_int_equal(stack->groups[0].nr, 3);
	assert_int_equal(stack_find(stack, "nobody"), STACK_NONE);
	stack_destroy(stack);
}

static void a_group_has_a_name_or_a_number(void **state)
{
	static const struct {
		const char *text;
		int64_t gid;			/* -1: there is no such group */
	} groups[] = { { "[segment]\ngroup = root\n", 0 },
		       { "[segment]\ngroup = 4711\n", 4711 },
		       { "[segment]\ngroup = 4294967295\n", -1 },
		       { "[segment]\ngroup = 4711x\n", -1 } };
	struct xseg_config cfg;
	struct stack *stack;

	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		stack = parse(groups[i].text);
		assert_non_null(stack);
		assert_int_equal(stack_segment_config(&stack->segment, &cfg, &error),
				 groups[i].gid < 0 ? -EINVAL : 0);
		assert_int_equal(cfg.group, groups[i].gid);
		stack_destroy(stack);
	}
}

static void peers_start_from_the_bottom(void **state)
{
	struct stack *stack = parse(whole);
	uint32_t order[STACK_MAX_PEERS], place[STACK_MAX_PEERS], i;

	(void)state;
	stack_order(stack, order);
	for (i = 0; i < stack->nr_peers; i++)
		place[order[i]] = i;
	for (i = 0; i < stack->nr_peers; i++)
		if (stack->peers[i].downstream != STACK_NONE)
			assert_true(place[stack->peers[i].downstream] < place[i]);
	stack_destroy(stack);
}

static void errors_name_their_line(void **state)
{
	static const struct {
		const char *text, *line, *says;
	} wrong[] = {
		{ "[segment]\nmemroy = 1G\n", "line 2: ", "memroy" },
		{ "[segment]\nmemory = much\n", "line 2: ", "512M" },
		{ "[segment]\nmemory = 1G\nmemory = 2G\n", "line 3: ", "twice" },
		{ "[segment]\n[segment]\n", "line 2: ", "two sections" },
		{ "[segment]\nname = /x\n", "line 2: ", "not a name" },
		{ "[segment]\nmode = rw\n", "line 2: ", "0600" },
		{ "[segment]\nmode = 0660x\n", "line 2: ", "0600" },
		{ "[segment]\nmode = -0660\n", "line 2: ", "0600" },
		{ "[segment]\nmode = 0668\n", "line 2: ", "0600" },
		{ "[segment]\nmode = 0\n", "line 2: ", "0600" },
		{ "[segment]\nmode = 01000\n", "line 2: ", "0600" },
		{ "[segment]\ngroup =\n", "line 2: ", "it is empty" },
		{ "[segment]\nhuge = 1\n", "line 2: ", "auto, never, require" },
		{ "memory = 1G\n", "line 1: ", "no section" },
		{ "[peers]\n", "line 1: ", "unknown section" },
		{ "[peer]\n", "line 1: ", "unknown section" },
		{ "[peer a b]\nkind = memd\n", "line 1: ", "not a name" },
		{ "[peer supervisor]\nkind = memd\n", "line 1: ", "taken" },
		{ "[peer memd]\n[peer memd]\n", "line 2: ", "two peers" },
		{ "[peer x]\nkind = disk\n", "line 2: ", "volumed, cached" },
		{ "\n[peer x]\nthreads = 1\n", "line 2: ", "no kind" },
		{ "[peer memd]\nthreads = 17\n", "line 2: ", "1 to 16" },
		{ "[peer memd]\nrestart = maybe\n", "line 2: ", "yes or no" },
		{ "[peer memd]\ncpus = all\n", "line 2: ", "0,2-3" },
		{ "[peer cached]\ndownstream = memd\n", "line 2: ", "no peer 'memd'" },
		{ "[peer memd]\ndownstream = filed\n[peer filed]\n", "line 2: ", "is a store" },
		{ "[peer filed]\ndownstream = memd\n[peer memd]\n", "line 2: ", "is a store" },
		{ "[peer sosd]\ndownstream = memd\n[peer memd]\n", "line 2: ", "is a store" },
		{ "[peer memd]\n[peer cached]\ndownstream = memd\n[peer volumed]\ndownstream = "
		  "cached\n[peer v2]\nkind = volumed\ndownstream = memd\n",
			"line 3: ", "'v2' sends there, too" },
		{ "[peer a]\nkind = cached\ndownstream = b\n[peer b]\nkind = cached\ndownstream = "
			"a\n",
			"line 3: ", "loop" },
		{ "[peer cached]\ndownstream = cached\n", "line 2: ", "loop" },
		{ "[peer memd]\n[peer memcached]\nkvd = memd\n", "line 3: ", "is no kvd" },
		{ "[peer memd]\n[peer volumed]\nkvd = memd\n", "line 3: ", "no key kvd" },
		{ "[peer memd]\n[peer kvd]\ndownstream = memd\n[peer memcached]\nkvd = kvd\n"
		  "[peer cached]\ndownstream = memcached\n",
			"line 7: ", "serves clients only" },
		{ "[peer memd]\n[run]\ntogether = memd filed\n", "line 3: ", "no peer 'filed'" },
		{ "[peer memd]\n[run]\ntogether = memd memd\n", "line 3: ", "twice" },
		{ "[run]\ntogether =\n", "line 2: ", "at least one" },
		{ "[run]\napart = a\n", "line 2: ", "together" },
		{ "[peer memd]\nwhat is this\n", "line 2: ", "KEY = VALUE" },
		{ "[peer memd\n", "line 1: ", "]" },
		{ "[peer memd]\n  [peer filed]\n", "line 2: ", "start of its line" },
		{ "[peer x]\n  kind = memd\n  threads = 2\n", "line 3: ", "begins with a blank" },
		{ "[peer memd]\nmemory = 1G\n\tlatency= 1s\n", "line 3: ", "begins with a blank" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_null(parse(wrong[i].text));
		assert_int_equal(strncmp(error.text, wrong[i].line, strlen(wrong[i].line)), 0);
		assert_non_null(strstr(error.text, wrong[i].says));
		assert_null(strchr(error.text, '\n'));
	}
}

static void a_line_that_inih_would_cut_is_refused(void **state)
{
	char text[512] = "[peer filed]\ndir = /";
	size_t used = strlen(text);

	(void)state;
	memset(text + used, 'x', 300);
	assert_null(parse(text));
	assert_non_null(strstr(error.text, "line 2: "));
	assert_non_null(strstr(error.text, "198"));
}

static void long_names_and_odd_blanks_are_read(void **state)
{
	static const char text[] =
		"\xef\xbb\xbf[peer  a23456789.123456789.123456789.123456789.123456789.123456789.12 "
		"]\r\nkind = memd\r\n[run]\r\ntogether = "
		"a23456789.123456789.123456789.123456789.123456789.123456789.12\r\n";
	struct stack *stack = parse(text);

	(void)state;
	assert_non_null(stack);
	assert_string_equal(stack->peers[0].name,
		"a23456789.123456789.123456789.123456789.123456789.123456789.12");
	assert_int_equal(stack->groups[0].nr, 1);
	stack_destroy(stack);
}

static void an_empty_file_is_an_empty_stack(void **state)
{
	struct stack *stack = parse("");

	(void)state;
	assert_non_null(stack);
	assert_int_equal(stack->nr_peers, 0);
	stack_destroy(stack);
}

/* ---- options of the kinds ---------------------------------------------------------------- */

struct toy {
	struct peer peer;
	uint64_t memory;
	char fail[64];
};

static const struct opt toy_opts[] = { { .name = "memory",
					 .kind = OPT_SIZE,
					 .off = offsetof(struct toy, memory),
					 .flags = OPT_REQUIRED,
					 .help = "" },
				       { .name = "fail",
					 .kind = OPT_LIST,
					 .off = offsetof(struct toy, fail),
					 .len = 64,
					 .help = "" },
				       { 0 } };

static const struct peer_class toy_class = { .kind = "memd",
					     .opts = toy_opts,
					     .size = sizeof(struct toy) };

static const struct peer_class sending_class = { .kind = "volumed",
						 .opts = toy_opts,
						 .size = sizeof(struct toy),
						 .sends = true };
static const struct peer_class keeping_class = { .kind = "cached",
						 .opts = toy_opts,
						 .size = sizeof(struct toy),
						 .sends = true,
						 .keeps = true };

static const struct peer_class *find_toy(const char *kind)
{
	return !strcmp(kind, "memd")	? &toy_class :
	       !strcmp(kind, "volumed") ? &sending_class :
	       !strcmp(kind, "cached")	? &keeping_class :
					  NULL;
}

static int check(const char *text)
{
	struct stack *stack = parse(text);
	int rc;

	assert_non_null(stack);
	rc = stack_check_options(stack, find_toy, &error);
	stack_destroy(stack);
	return rc;
}

static void options_are_checked_against_the_kind(void **state)
{
	(void)state;
	assert_int_equal(check("[peer memd]\nmemory = 1G\nfail = a\nfail = b\n"), 0);
	assert_int_equal(check("[peer memd]\nmemory = 1G\nmemroy = 1G\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 3: memd has no option 'memroy'"));
	assert_int_equal(check("[peer memd]\nmemory = lots\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 2: memory: 'lots'"));
	assert_int_equal(check("[peer memd]\nmemory = 1G\nmemory = 2G\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 3: 'memory' is given twice"));
	assert_int_equal(check("[peer memd]\nfail = a\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 1: peer 'memd' needs memory ="));
	assert_int_equal(check("[peer filed]\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 1: this build has no filed"));
}

static void who_sends_needs_a_downstream_but_a_cache_may_wait_for_one(void **state)
{
	(void)state;
	assert_int_equal(check("[peer volumed]\nmemory = 1G\n"), -EINVAL);
	assert_non_null(strstr(error.text, "line 1: peer 'volumed' needs downstream ="));
	assert_int_equal(check("[peer cached]\nmemory = 1G\n"), 0);
	assert_int_equal(check("[peer memd]\nmemory = 1G\n"
			       "[peer volumed]\ndownstream = memd\nmemory = 1G\n"), 0);
}

/* Of a stack with errors: their lines, and the key of each. */
static void all_errors_are_told_from_the_top(void **state)
{
	static const char text[] =
		"[segment]\nmemroy = 1G\n"		/* 2 */
		"what is this\n"			/* 3 */
		"[peers]\nignored = 1\n"		/* 4 */
		"[peer memd]\nlatency = 1ms\nmemory = much\n"	/* 7, 8 */
		"[peer cached]\nkind = cashed\ndownstream = memd\n"	/* 10 */
		"this neither\n"			/* 12 */
		"[peer volumed\nthreads = 99\n"	/* 13 */
		"[peer v2]\nkind = volumed\ndownstream = cache\n"	/* 17 */
		"memory = 1M\nthreads = 0\n"			/* 19 */
		"[run]\ntogether = memd memd nobody\n";	/* 21, twice */
	static const struct {
		unsigned line;
		const char *key;
	} wanted[] = { { 2, "memroy" }, { 3, "" }, { 4, "" }, { 7, "latency" }, { 8, "memory" },
		{ 10, "kind" }, { 12, "" }, { 13, "" }, { 17, "downstream" }, { 19, "threads" },
		{ 21, "together" }, { 21, "together" } };
	struct stack_errors *errors = calloc(1, sizeof(*errors));
	struct stack *stack = stack_create();

	(void)state;
	assert_non_null(errors);
	assert_non_null(stack);
	assert_int_equal(stack_read(text, stack, errors), -EINVAL);
	assert_int_equal(stack_check_all(stack, find_toy, errors), -EINVAL);
	assert_int_equal(errors->nr, sizeof(wanted) / sizeof(wanted[0]));
	for (uint32_t i = 0; i < errors->nr; i++) {
		assert_int_equal(errors->error[i].line, wanted[i].line);
		assert_string_equal(errors->error[i].key, wanted[i].key);
	}
	stack_destroy(stack);
	free(errors);
}

static void more_errors_than_are_kept_are_counted(void **state)
{
	struct stack_errors *errors = calloc(1, sizeof(*errors));
	struct stack *stack = stack_create();
	char text[2048] = "a=1\n[y]\n";
	size_t used = strlen(text);

	(void)state;
	for (int i = 0; i < STACK_MAX_ERRORS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[x]\na=1\n");
	assert_int_equal(stack_read(text, stack, errors), -EINVAL);
	assert_int_equal(errors->nr, STACK_MAX_ERRORS);
	assert_int_equal(errors->nr_more, 2);
	stack_destroy(stack);
	free(errors);
}

static const struct stack_peer *peer_of(const struct stack *stack, const char *name)
{
	return &stack->peers[stack_find(stack, name)];
}

/* One that is the only one there serves who asks it directly. */
static void stores_are_the_kinds_that_have_nobody_below(void **state)
{
	(void)state;
	assert_true(stack_kind_is_store("filed"));
	assert_true(stack_kind_is_store("memd"));
	assert_true(stack_kind_is_store("sosd"));
	assert_false(stack_kind_is_store("cached"));
	assert_false(stack_kind_is_store("volumed"));
	assert_false(stack_kind_is_store("client"));
	assert_false(stack_kind_is_store("yyyyyyyyyyyyyyy"));
}

static void a_cache_that_nobody_names_beside_others_waits(void **state)
{
	struct stack *stack = parse(
		"[peer memd]\n[peer cached]\ndownstream = memd\n[peer volumed]\ndownstream = "
		"memd\n");

	(void)state;
	assert_true(peer_of(stack, "cached")->waits);
	assert_string_equal(stack_downstream(peer_of(stack, "cached")), "");
	/* it starts after that */
	assert_int_equal(peer_of(stack, "cached")->downstream, stack_find(stack, "memd"));
	assert_false(peer_of(stack, "volumed")->waits);
	assert_string_equal(stack_downstream(peer_of(stack, "volumed")), "memd");
	stack_destroy(stack);
	stack = parse("[peer memd]\n[peer cached]\ndownstream = memd\n");
	assert_false(peer_of(stack, "cached")->waits);
	assert_string_equal(stack_downstream(peer_of(stack, "cached")), "memd");
	stack_destroy(stack);
	stack = parse(
		"[peer memd]\n[peer cached]\ndownstream = memd\n[peer volumed]\ndownstream = "
		"cached\n");
	assert_false(peer_of(stack, "cached")->waits);
	stack_destroy(stack);
}

/* As inih reads a line that begins with a blank. */
static void names_and_faults_go_on_in_the_next_line(void **state)
{
	struct stack *stack = parse("[peer memd]\nfail = read:1:stall=5ms\n\twrite:1:EIO\n[peer "
				    "filed]\n[peer volumed]\n[run]\n together = memd\n  "
				    "filed\ntogether = volumed\n");

	(void)state;
	assert_non_null(stack);
	assert_int_equal(peer_of(stack, "memd")->nr_options, 2);
	assert_string_equal(peer_of(stack, "memd")->option[1].value, "write:1:EIO");
	assert_int_equal(stack->nr_groups, 2);
	assert_int_equal(stack->groups[0].nr, 2);
	assert_int_equal(peer_of(stack, "filed")->group, 0);
	assert_int_equal(stack->groups[1].nr, 1);
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_group_has_a_name_or_a_number),
		cmocka_unit_test(peers_start_from_the_bottom),
		cmocka_unit_test(a_cache_that_nobody_names_beside_others_waits),
		cmocka_unit_test(stores_are_the_kinds_that_have_nobody_below),
		cmocka_unit_test(names_and_faults_go_on_in_the_next_line),
		cmocka_unit_test(errors_name_their_line),
		cmocka_unit_test(a_line_that_inih_would_cut_is_refused),
		cmocka_unit_test(long_names_and_odd_blanks_are_read),
		cmocka_unit_test(an_empty_file_is_an_empty_stack),
		cmocka_unit_test(options_are_checked_against_the_kind),
		cmocka_unit_test(all_errors_are_told_from_the_top),
		cmocka_unit_test(more_errors_than_are_kept_are_counted),
		cmocka_unit_test(who_sends_needs_a_downstream_but_a_cache_may_wait_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
