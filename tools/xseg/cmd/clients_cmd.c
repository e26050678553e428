/* clients_cmd - clients: the processes that are clients of a segment.
 *
 * Contract: see commands.h.
 */
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/text/clients_text.h"

static int show(struct tool *t, const struct view_peers *peers)
{
	struct opened opened;
	json_t *j;
	int rc;

	opened_load(t, peers, &opened);
	j = clients_text_json(peers, &opened);
	opened_fini(&opened);
	if (t->json)
		return out_json(j);
	rc = TOOL_DONE;
	if (!json_array_size(j))
		tool_say(t, "no clients");
	else
		rc = out_table_print(clients_text_table(j));
	json_decref(j);
	return rc;
}

int clients_run(struct tool *t, const void *opts, int argc, char **argv)
{
	struct view_peers peers = { 0 };
	struct xseg *seg;
	int rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);

	(void)opts;
	(void)argc;
	(void)argv;
	if (rc)
		return rc;
	rc = view_peers_need(seg, &peers);
	if (!rc)
		rc = show(t, &peers);
	view_peers_fini(&peers);
	xseg_detach(seg);
	return rc;
}
