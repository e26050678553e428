/* export_text - see export_text.h. */
#include "tools/xseg/text/export_text.h"

#include <inttypes.h>
#include <string.h>

#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/tool.h"

static json_t *one_json(const struct exported *x)
{
	bool served = exported_is_served(x);
	char uri[EXPORTED_URI_MAX];
	json_t *j = json_object();

	out_set_text(j, "name", x->e->name);
	out_set_text(j, "volume", x->e->volume);
	out_set_text(j, "address", x->e->nbd);
	out_set_text(j, "uri", exported_uri(x->e, uri));
	out_set_bool(j, "read_only", x->e->read_only);
	out_set_text(j, "tls", stack_tls_names[x->e->tls]);
	out_set_text(j, "state", exported_state_name(x->state));
	json_object_set_new(j, "pid", served ? json_integer(x->peer.pid) : json_null());
	out_set_int(j, "connections", x->connections);
	out_set_int(j, "clients", x->connections);	/* its older name */
	json_object_set_new(j, "since_s",
		served ? json_integer((json_int_t)x->since_s) : json_null());
	json_object_set_new(j, "replaced",
		served ? json_boolean(proc_maps_replaced(x->peer.pid)) : json_null());
	return j;
}

json_t *export_text_json(const struct exported_all *all)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < all->nr; i++)
		json_array_append_new(array, one_json(&all->export[i]));
	return array;
}

/* How many exports its server has; *connections: of all of them. */
static uint32_t count_beside(
	const struct exported_all *all, const struct exported *x, uint32_t *connections)
{
	const struct exported *y;
	uint32_t nr = 0;

	*connections = 0;
	for (y = all->export; y < all->export + all->nr; y++)
		if (y->e->server == x->e->server) {
			nr++;
			*connections += y->connections;
		}
	return nr;
}

void export_text_note_replaced(const struct tool *t, const struct exported_all *all)
{
	const struct exported *x;
	uint32_t nr, connections;
	char lose[64];

	for (x = all->export; x < all->export + all->nr; x++) {
		if (x->e->server != (uint32_t)(x - all->export) || !exported_is_served(x) ||
			!proc_maps_replaced(x->peer.pid))
			continue;
		nr = count_beside(all, x, &connections);
		snprintf(lose, sizeof(lose), "; connections that it cuts then: %" PRIu32,
			connections);
		tool_note(t,
			"export %s: its server, process %" PRIu32 ", still runs a program or a "
			"library that was replaced; 'xseg export restart %s%s' starts it anew%s",
			x->e->name, x->peer.pid, x->e->name,
			nr > 1 || connections ? " --force" : "", connections ? lose : "");
	}
}

struct out_table *export_text_table(const struct exported_all *all)
{
	struct out_table *table = out_table_create(
		"NAME\tVOLUME\tSTATE\t>PID\t>CONNECTIONS\tWRITES\tTLS\tSINCE\tADDRESS");
	char pid[16], since[OUT_TEXT];

	for (const struct exported *x = all->export; x < all->export + all->nr; x++) {
		snprintf(pid, sizeof(pid), "%" PRIu32, x->peer.pid);
		out_table_row(table, "%s\t%s\t%s\t%s\t%" PRIu32 "\t%s\t%s\t%s\t%s", x->e->name,
			x->e->volume, exported_state_name(x->state),
			exported_is_served(x) ? pid : "-", x->connections,
			x->e->read_only ? "no" : "yes", stack_tls_names[x->e->tls],
			exported_is_served(x) ? out_moment(x->since_s, since) : "-", x->e->nbd);
	}
	return table;
}

#define ADVICE_MAX (2 * XSEG_NAME_MAX + 128)

/* Why it is not served, or is of no use, and what to do. */
static const char *advice(const json_t *x, char text[ADVICE_MAX])
{
	static const struct {
		const char *state, *before, *of, *after;
	} says[] = {
		{ "no volume", "; 'xseg volume create ", "volume",
		  " --size SIZE' makes it, and it is served then" },
		{ "stopped", "; 'xseg export start ", "name", "' starts it" },
		{ "failed", "; the log says why, and 'xseg export start ", "name", "' starts it" },
		{ "dead", "; 'xseg up STACK.conf' starts it, with the stack", NULL, "" },
	};

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!strcmp(says[i].state, out_text(x, "state")))
			snprintf(text, ADVICE_MAX, "%s%s%s", says[i].before,
				says[i].of ? out_text(x, says[i].of) : "", says[i].after);
	return text;
}

void export_text_print(const json_t *exports)
{
	json_t *x;
	size_t i;

	json_array_foreach((json_t *)exports, i, x) {
		const char *state = out_text(x, "state");
		uint64_t nr = out_int(x, "connections");
		char text[ADVICE_MAX], line[ADVICE_MAX + XSEG_NAME_MAX];

		printf("%-12s%s: ", i ? "" : "export", out_text(x, "name"));
		if (!strcmp(state, "serving"))
			printf("volume %s on %s%s, %" PRIu64 " connection%s\n",
				out_text(x, "volume"), out_text(x, "address"),
				json_is_true(json_object_get(x, "read_only")) ? ", read-only" : "",
				nr, out_s(nr));
		else
			printf("%s%s\n", state, tool_hints(line, sizeof(line), advice(x, text)));
	}
}
