/* stack_export_test - [export NAME] of stack files: what is read, what is refused with which line,
 * and which exports share a server.
 */
#include "peers/common/options/stack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define VOLUMED "[peer memd]\n[peer volumed]\ndownstream = memd\n"	/* 3 lines */

static struct xseg_error error;

static struct stack *parse(const char *text)
{
	struct stack *stack = stack_create();

	assert_non_null(stack);
	error.text[0] = '\0';
	if (stack_parse(text, stack, &error) == 0)
		return stack;
	stack_destroy(stack);
	return NULL;
}

static void an_export_is_read_with_its_defaults(void **state)
{
	struct stack *stack = parse(VOLUMED "[export disk]\nnbd = /run/x/disk.sock\n");
	const struct stack_export *e;

	(void)state;
	assert_non_null(stack);
	assert_int_equal(stack->nr_exports, 1);
	e = &stack->exports[0];
	assert_string_equal(e->name, "disk");
	assert_string_equal(e->volume, "disk");
	assert_string_equal(e->nbd, "/run/x/disk.sock");
	assert_string_equal(e->host, "");
	assert_string_equal(e->mode, "");
	assert_string_equal(e->group, "");
	assert_false(e->read_only);
	assert_int_equal(e->tls, STACK_TLS_OFF);
	assert_true(e->restart);
	assert_int_equal(e->queues, 16);
	assert_int_equal(e->connections, 64);
	assert_int_equal(e->server, 0);
	assert_int_equal(stack_find_export(stack, "disk"), 0);
	assert_int_equal(stack_find_export(stack, "none"), STACK_NONE);
	stack_destroy(stack);
}

static void all_keys_are_read(void **state)
{
	struct stack *stack =
		parse(VOLUMED "[export a]\nvolume = disk\nnbd = [::1]:10809\nread-only = yes\n"
			      "tls = require\ntls_certificates = /etc/pki/x\n"
			      "tls_verify_peer = yes\nvolumed = volumed\nqueues = 2\n"
			      "connections = 3\nrestart = no\n");
	const struct stack_export *e;

	(void)state;
	assert_non_null(stack);
	e = &stack->exports[0];
	assert_string_equal(e->volume, "disk");
	assert_string_equal(e->host, "::1");
	assert_int_equal(e->port, 10809);
	assert_true(e->read_only);
	assert_int_equal(e->tls, STACK_TLS_REQUIRE);
	assert_string_equal(e->tls_certificates, "/etc/pki/x");
	assert_true(e->tls_verify_peer);
	assert_string_equal(e->volumed, "volumed");
	assert_int_equal(e->queues, 2);
	assert_int_equal(e->connections, 3);
	assert_false(e->restart);
	stack_destroy(stack);
}

static void exports_with_one_address_share_a_server(void **state)
{
	struct stack *stack = parse(VOLUMED "[export a]\nnbd = /run/a\n"
					    "[export b]\nnbd = localhost:1\n"
					    "[export c]\nnbd = /run/a\nread_only = yes\n"
					    "[export d]\nnbd = [localhost]:1\n"
					    "[export e]\nnbd = localhost:2\n");
	static const uint32_t server[] = { 0, 1, 0, 1, 4 };

	(void)state;
	assert_non_null(stack);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(stack->exports[i].server, server[i]);
	stack_destroy(stack);
}

static void errors_name_their_line(void **state)
{
	static const struct {
		const char *text, *line, *says;
	} wrong[] = {
		{ "[export]\n", "line 4: ", "unknown section" },
		{ "[export a b]\nnbd = /x\n", "line 4: ", "not a name" },
		{ "[export a]\nvolume = x\n", "line 4: ", "no nbd" },
		{ "[export a]\nnbd = /x\nnbdd = /x\n", "line 6: ", "did you mean 'nbd'" },
		{ "[export a]\nnbd = /x\nfrobnicate_it = /x\n", "line 6: ", "it has volume, nbd" },
		{ "[export a]\nnbd = 10809\n", "line 5: ", "127.0.0.1:10809" },
		{ "[export a]\nnbd = disk.sock\n", "line 5: ", "absolute path" },
		{ "[export a]\nnbd = host:0\n", "line 5: ", "absolute path" },
		{ "[export a]\nnbd = host:65536\n", "line 5: ", "absolute path" },
		{ "[export a]\nnbd = :10809\n", "line 5: ", "absolute path" },
		{ "[export a]\nnbd = ::1:10809\n", "line 5: ", "absolute path" },
		{ "[export a]\nnbd = /x\nnbd = /y\n", "line 6: ", "twice" },
		{ "[export a]\nnbd = /x\nread_only = maybe\n", "line 6: ", "yes or no" },
		{ "[export a]\nnbd = /x\ntls = yes\n", "line 6: ", "off, on, require" },
		{ "[export a]\nnbd = /x\nmode = rw\n", "line 6: ", "0660" },
		{ "[export a]\nnbd = h:1\nmode = 0660\n", "line 6: ", "has mode, and no socket" },
		{ "[export a]\nnbd = h:1\ngroup = g\n", "line 6: ", "has group, and no socket" },
		{ "[export a]\nnbd = /x\ngroup =\n", "line 6: ", "empty" },
		{ "[export a]\nnbd = /x\nqueues = 65\n", "line 6: ", "1 to 64" },
		{ "[export a]\nnbd = /x\ntls = on\ntls_certificates = pki\n", "line 7: ",
			"absolute path" },
		{ "[export a]\nnbd = /x\ntls_verify_peer = yes\n", "line 6: ", "no TLS" },
		{ "[export a]\ntls_certificates = /pki\nnbd = /x\ntls_verify_peer = yes\n",
			"line 5: ", "has tls_certificates, and no TLS" },
		{ "[export a]\nnbd = /x\n[export a]\nnbd = /y\n", "line 6: ", "two exports" },
		{ "[export a]\nnbd = /x\n[export b]\nnbd = /x\ntls = on\n", "line 8: ",
			"another tls" },
		{ "[export a]\nnbd = /x\ntls = on\n[export b]\nqueues = 2\nnbd = /x\n",
			"line 9: ", "another tls" },
		{ "[export a]\nnbd = /x\n[export b]\nconnections = 2\nnbd = /x\n", "line 7: ",
			"another connections" },
		{ "[export a]\nnbd = /x\n[export b]\ngroup = g\nnbd = /x\n", "line 7: ",
			"another group" },
		{ "[export a]\nnbd = /x\nvolumed = v2\n", "line 6: ", "no volumed 'v2'" },
		{ "[peer v2]\nkind = volumed\ndownstream = memd\n[export a]\nnbd = /x\n",
			"line 7: ", "several volumeds" },
		{ "[export a123456789a123456789a123456789a123456789a123456789a12345]\n",
			"line 4: ", "55 characters" },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), VOLUMED "%s", wrong[i].text);
		assert_null(parse(text));
		if (strncmp(error.text, wrong[i].line, strlen(wrong[i].line)) != 0 ||
			!strstr(error.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, error.text);
	}
}

static void an_export_needs_a_volumed(void **state)
{
	(void)state;
	assert_null(parse("[peer memd]\n[export a]\nnbd = /x\n"));
	assert_non_null(strstr(error.text, "line 2: "));
	assert_non_null(strstr(error.text, "no volumed"));
}

static void there_are_no_more_exports_than_a_stack_has(void **state)
{
	char text[4096] = VOLUMED;
	struct stack *stack;

	(void)state;
	for (unsigned i = 0; i < STACK_MAX_EXPORTS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"[export e%u]\nnbd = /x\n", i);
	stack = parse(text);
	assert_non_null(stack);
	assert_int_equal(stack->nr_exports, STACK_MAX_EXPORTS);
	stack_destroy(stack);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "[export more]\nnbd = /x\n");
	assert_null(parse(text));
	assert_non_null(strstr(error.text, "at most 32"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_export_is_read_with_its_defaults),
		cmocka_unit_test(all_keys_are_read),
		cmocka_unit_test(exports_with_one_address_share_a_server),
		cmocka_unit_test(errors_name_their_line),
		cmocka_unit_test(an_export_needs_a_volumed),
		cmocka_unit_test(there_are_no_more_exports_than_a_stack_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
