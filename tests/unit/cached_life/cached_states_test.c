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

#define TEXT_MAX (1u << 20)

struct machine {
	const char *name, *document;
	unsigned nr;
	const char *(*state)(unsigned s);
	bool (*legal)(unsigned from, unsigned to);
};

static const char *bucket_word(unsigned s) { return bucket_state_name((enum bucket_state)s); }
static const char *object_name(unsigned s) { return object_state_name((enum object_state)s); }
static const char *creq_name(unsigned s) { return creq_state_name((enum creq_state)s); }
static const char *plug_name(unsigned s) { return plug_state_name((enum plug_state)s); }
static const char *extent_name(unsigned s) { return extent_state_name((enum extent_state)s); }
static bool extent_edge(unsigned a, unsigned b)
{
	return extent_edge_legal((enum extent_state)a, (enum extent_state)b);
}
static bool plug_edge(unsigned a, unsigned b)
{
	return plug_edge_legal((enum plug_state)a, (enum plug_state)b);
}
static bool bucket_edge(unsigned a, unsigned b)
{
	return bucket_edge_legal((enum bucket_state)a, (enum bucket_state)b);
}
static bool object_edge(unsigned a, unsigned b)
{
	return object_edge_legal((enum object_state)a, (enum object_state)b);
}
static bool creq_edge(unsigned a, unsigned b)
{
	return creq_edge_legal((enum creq_state)a, (enum creq_state)b);
}

static const struct machine machines[] = {
	{ "bucket", "docs/design/cached.md", BUCKET_NR_STATES, bucket_word, bucket_edge },
	{ "object", "docs/design/cached.md", OBJECT_NR_STATES, object_name, object_edge },
	{ "request", "docs/design/cached-requests.md", CREQ_NR_STATES, creq_name, creq_edge },
	{ "plug", "docs/design/plug.md", PLUG_NR_STATES, plug_name, plug_edge },
	{ "extent", "docs/design/cached-flush.md", EXTENT_NR_STATES, extent_name, extent_edge },
};

static void draw(const struct machine *m, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size,
		"<!-- states of %s -->\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", m->name,
		m->state(0));

	for (unsigned from = 0; from < m->nr; from++)
		for (unsigned to = 0; to < m->nr; to++)
			if (m->legal(from, to))
				n += (size_t)snprintf(out + n, size - n, "    %s --> %s\n",
					m->state(from), m->state(to));
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
				in += t != s && m->legal(t, s);
				out += t != s && m->legal(s, t);
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
