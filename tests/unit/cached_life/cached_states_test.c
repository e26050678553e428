/* cached_states_test - the drawings of cached's state machines in docs/design are those of the
 * tables that the code checks.
 *
 * A drawing is a block of Mermaid after the line "<!-- states of NAME -->". The test makes it from
 * the table here, and compares.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "peers/cached/life/cached.h"
#include "xtypes/xstate.h"

#define TEXT_MAX (1u << 20)

static const struct machine {
	const char *name, *document;
	unsigned nr;
	const struct xstates *states;
} machines[] = {
	{ "bucket", "docs/design/cached.md", BUCKET_NR_STATES, &bucket_states },
	{ "object", "docs/design/cached.md", OBJECT_NR_STATES, &object_states },
	{ "request", "docs/design/cached-requests.md", CREQ_NR_STATES, &creq_states },
	{ "plug", "docs/design/plug.md", PLUG_NR_STATES, &plug_states },
	{ "extent", "docs/design/cached-flush.md", EXTENT_NR_STATES, &extent_states },
};

static void draw(const struct machine *m, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size,
		"<!-- states of %s -->\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", m->name,
		xstate_name(m->states, 0));

	for (unsigned from = 0; from < m->nr; from++)
		for (unsigned to = 0; to < m->nr; to++)
			if (xstate_may(m->states, from, to))
				n += (size_t)snprintf(out + n, size - n, "    %s --> %s\n",
					xstate_name(m->states, from), xstate_name(m->states, to));
	snprintf(out + n, size - n, "```\n");
}

static char *read_document(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, TEXT_MAX);

	assert_non_null(text);
	if (!f)
		fail_msg("%s cannot be read; run this from the repository's folder", path);
	assert_true(fread(text, 1, TEXT_MAX - 1, f) > 0);
	fclose(f);
	return text;
}

static void the_drawings_in_the_documents_are_those_of_the_tables(void **state)
{
	char want[8192], *text;

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		text = read_document(machines[i].document);
		draw(&machines[i], want, sizeof(want));
		if (!strstr(text, want))
			fail_msg("%s does not have this:\n%s", machines[i].document, want);
		free(text);
	}
}

static void every_state_can_be_reached_and_left(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];

		for (unsigned s = 0; s < m->nr; s++) {
			unsigned in = s == 0, out = 0;

			for (unsigned t = 0; t < m->nr; t++) {
				in += t != s && xstate_may(m->states, t, s);
				out += t != s && xstate_may(m->states, s, t);
			}
			assert_true(in && out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_drawings_in_the_documents_are_those_of_the_tables),
		cmocka_unit_test(every_state_can_be_reached_and_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
