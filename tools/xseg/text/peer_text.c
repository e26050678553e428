/* peer_text - see peer_text.h. */
#include "tools/xseg/text/peer_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/export_words.h"
#include "tools/xseg/base/halted.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/tool.h"
#include "tools/xseg/text/clients_text.h"

static const char *downstream_name(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	const struct xseg_peer_info *lower =
		p->downstream == XSEG_NONE ? NULL : view_peer_at(peers, p->downstream);

	return lower ? lower->name : NULL;
}

static json_t *one_json(const struct view_peers *peers, const struct xseg_peer_info *p,
	const struct stopped *s)
{
	bool alive = view_peer_alive(p);
	json_t *j = json_object();

	out_set_text(j, "name", p->name);
	out_set_text(j, "kind", p->kind);
	json_object_set_new(j, "pid", alive ? json_integer(p->pid) : json_null());
	out_set_text(j, "state", view_state_name(p->state));
	out_set_bool(j, "stays_stopped", stopped_peer(s, p));
	out_set_bool(j, "failing", view_is_failing(peers->seg, p->name));
	out_set_bool(j, "halted", halted_is(peers->seg, p));
	out_set_int(j, "generation", p->generation);
	out_set_int(j, "ports", p->nr_ports);
	out_set_text(j, "hosted_by", alive ? p->member_label : NULL);
	out_set_text(j, "downstream", downstream_name(peers, p));
	out_set_int(j, "arena_bytes", p->arena_bytes);
	json_object_set_new(
		j, "replaced", alive ? json_boolean(proc_is_replaced(p->pid)) : json_null());
	return j;
}

json_t *peer_text_json(const struct view_peers *peers)
{
	json_t *array = json_array();
	struct stopped s;
	uint32_t i;

	stopped_load(peers->seg, &s);
	for (i = 0; i < peers->nr; i++)
		json_array_append_new(array, one_json(peers, &peers->info[i], &s));
	return array;
}

/* How many peers its process has; *connections: of those that are gateways. 0: another one stands
 * for the process, the first. */
static uint32_t count_process(
	const struct view_peers *peers, const struct xseg_peer_info *p, uint64_t *connections)
{
	uint32_t nr = 0;

	*connections = 0;
	for (const struct xseg_peer_info *o = peers->info; o < peers->info + peers->nr; o++) {
		if (o != p && !view_shares_process(o, p))
			continue;
		if (o < p)
			return 0;
		*connections += view_connections(peers->seg, o->index);
		nr++;
	}
	return nr;
}

void peer_text_note_replaced(const struct tool *t, const struct view_peers *peers)
{
	const struct xseg_peer_info *p;
	uint64_t connections;
	char lose[64];
	uint32_t nr;

	for (p = peers->info; p < peers->info + peers->nr; p++) {
		if (view_peer_is_client(p) || !view_peer_alive(p) || !proc_is_replaced(p->pid) ||
			!view_in_stack(peers->seg, p->name))
			continue;
		nr = count_process(peers, p, &connections);
		if (!nr)
			continue;
		snprintf(lose, sizeof(lose), "; connections that it cuts then: %" PRIu64,
			connections);
		tool_note(t,
			"%s: its process, %" PRIu32 ", still runs a program that was replaced; "
			"'xseg peer restart %s' starts it anew%s",
			p->name, p->pid,
			!connections ? "--replaced" : nr > 1 ? "--all" : p->name,
			connections ? lose : "");
	}
}

/* *ports: of all queues that its process has. False: another one stands for the process, the first
 * of an export, else the first. */
static bool add_ports(
	const struct view_peers *peers, const struct xseg_peer_info *p, uint32_t *ports)
{
	const struct xseg_peer_info *o, *shown = NULL;

	*ports = 0;
	for (o = peers->info; o < peers->info + peers->nr; o++) {
		if (!view_peer_is_client(o) || !view_peer_alive(o) || o->pid != p->pid)
			continue;
		if (!shown || (export_of_peer(o) && !export_of_peer(shown)))
			shown = o;
		*ports += o->nr_ports;
	}
	return shown == p;
}

static bool has_clients(const struct view_peers *peers)
{
	for (uint32_t i = 0; i < peers->nr; i++)
		if (view_peer_is_client(&peers->info[i]))
			return true;
	return false;
}

/* Of that client, or of all of its process. */
static const char *open_names(const struct view_peers *peers, const struct opened *o,
	const struct xseg_peer_info *p, bool all, char names[CLIENTS_NAMES_MAX])
{
	const struct xseg_peer_info *server;

	if (!view_peer_is_client(p) || !view_peer_alive(p))
		return "-";
	if (!all)
		clients_text_names(peers, o, p, names);
	else if (opened_by(peers, p, &server))
		opened_name(o, p, server, names);
	else
		names[0] = '\0';
	return *names ? names : "-";
}

struct out_table *peer_text_table(
	const struct view_peers *peers, const struct opened *o, bool all)
{
	bool clients = has_clients(peers);
	struct out_table *table = out_table_create(clients
			? "NAME\tKIND\tSTATE\t>PID\t>GENERATION\t>PORTS\tHOSTED BY\tDOWNSTREAM\t"
			  "HAS OPEN"
			: "NAME\tKIND\tSTATE\t>PID\t>GENERATION\t>PORTS\tHOSTED BY\tDOWNSTREAM");
	const struct xseg_peer_info *p;
	uint32_t ports;
	bool first;
	const char *lower;
	char pid[16], names[CLIENTS_NAMES_MAX];

	for (p = peers->info; p < peers->info + peers->nr; p++) {
		first = true;
		ports = p->nr_ports;
		if (!all && view_peer_is_client(p) && view_peer_alive(p))
			first = add_ports(peers, p, &ports);
		if (!first)
			continue;
		lower = downstream_name(peers, p);
		snprintf(pid, sizeof(pid), "%u", p->pid);
		out_table_row(table, "%s\t%s\t%s\t%s\t%u\t%u\t%s\t%s%s%s", p->name,
			      p->kind, view_state_name(p->state), view_peer_alive(p) ? pid : "-",
			      p->generation, ports,
			      view_peer_alive(p) ? p->member_label : "-", lower ? lower : "-",
			      clients ? "\t" : "",
			      clients ? open_names(peers, o, p, all, names) : "");
	}
	return table;
}

/* ---- chains ------------------------------------------------------------------------------ */

static bool is_sent_to(const struct view_peers *peers, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (peers->info[i].downstream == index)
			return true;
	return false;
}

static json_t *chain_from(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	json_t *chain = json_array();
	uint32_t hops;

	for (hops = 0; p && hops <= peers->nr; hops++) {
		json_array_append_new(chain, json_string(p->name));
		p = p->downstream == XSEG_NONE ? NULL : view_peer_at(peers, p->downstream);
	}
	return chain;
}

/* A cache without a store gets nothing: it waits to be plugged. */
static bool is_off_path(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "cached") && p->downstream == XSEG_NONE;
}

json_t *peer_text_chains(const struct view_peers *peers)
{
	json_t *chains = json_array();
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (!view_peer_is_client(&peers->info[i]) && !is_off_path(&peers->info[i]) &&
		    !is_sent_to(peers, peers->info[i].index))
			json_array_append_new(chains, chain_from(peers, &peers->info[i]));
	return chains;
}

json_t *peer_text_off_path(const struct view_peers *peers)
{
	json_t *names = json_array();
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (is_off_path(&peers->info[i]) && !is_sent_to(peers, peers->info[i].index))
			json_array_append_new(names, json_string(peers->info[i].name));
	return names;
}
