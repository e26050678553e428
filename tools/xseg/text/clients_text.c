/* clients_text - see clients_text.h. */
#include "tools/xseg/text/clients_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/options/owner.h"
#include "peers/common/say/export_words.h"

static bool is_same_process(const struct xseg_peer_info *a, const struct xseg_peer_info *b)
{
	return view_peer_alive(a) && view_peer_alive(b) && a->member == b->member;
}

static bool is_client_of(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	return view_peer_is_client(p) && is_same_process(p, of);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Whether an earlier client of the process has the same open. */
static bool is_repeated(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	const struct xseg_peer_info *q;

	for (q = peers->info; q < p; q++)
		if (is_client_of(q, p) && q->user[XSEG_CLIENT_WORD_VOLUME] ==
					  p->user[XSEG_CLIENT_WORD_VOLUME])
			return true;
	return false;
}

const char *clients_text_names(const struct view_peers *peers, const struct opened *o,
	const struct xseg_peer_info *client, char buf[CLIENTS_NAMES_MAX])
{
	const struct xseg_peer_info *p, *server;
	char name[XSEG_NAME_MAX];
	size_t used = 0;

	buf[0] = '\0';
	for (p = peers->info; p < peers->info + peers->nr && used < CLIENTS_NAMES_MAX; p++)
		if (is_client_of(p, client) && opened_by(peers, p, &server) &&
			!is_repeated(peers, p))
			used += (size_t)snprintf(buf + used, CLIENTS_NAMES_MAX - used, "%s%s",
				used ? ", " : "", opened_name(o, p, server, name));
	return buf;
}

/* ---- one process ------------------------------------------------------------------------- */

/* Of the process, as /proc has it. */
static const char *user_of(uint32_t pid, char user[OWNER_BYTES])
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	if (stat(path, &st))
		return NULL;
	owner_name(st.st_uid, user);
	return user;
}

static json_t *volume_json(const struct opened *o, const struct xseg_peer_info *p,
	const struct xseg_peer_info *server)
{
	char name[XSEG_NAME_MAX];
	json_t *j = json_object();

	out_set_text(j, "name", opened_name(o, p, server, name));
	out_set_text(j, "volumed", server->name);
	return j;
}

static json_t *export_json(const struct xseg_peer_info *p)
{
	json_t *j = json_object();

	out_set_text(j, "name", export_of_peer(p));
	out_set_int(j, "connections", p->user[EXPORT_WORD_CONNECTIONS]);
	out_set_int(j, "clients", p->user[EXPORT_WORD_CONNECTIONS]);	/* its older name */
	return j;
}

struct sums {
	uint64_t queues, ports, requests, since_s;
};

static void add_client(const struct view_peers *peers, const struct opened *o,
	const struct xseg_peer_info *p, json_t *j, struct sums *sums)
{
	const struct xseg_peer_info *server;
	uint64_t since_s = p->user[XSEG_CLIENT_WORD_SINCE];

	sums->queues++;
	sums->ports += p->nr_ports;
	sums->requests += xseg_peer_requests_out(peers->seg, p->index);
	if (since_s && (!sums->since_s || since_s < sums->since_s))
		sums->since_s = since_s;
	if (export_of_peer(p))
		json_array_append_new(json_object_get(j, "exports"), export_json(p));
	if (!opened_by(peers, p, &server) || is_repeated(peers, p))
		return;
	if (strcmp(server->kind, "volumed") != 0)
		json_array_append_new(json_object_get(j, "values"), json_string(server->name));
	else
		json_array_append_new(json_object_get(j, "volumes"), volume_json(o, p, server));
}

static json_t *process_json(const struct view_peers *peers, const struct opened *o,
	const struct xseg_peer_info *first)
{
	json_t *j = json_object();
	struct sums sums = { 0 };
	char user[OWNER_BYTES];

	out_set_int(j, "pid", first->pid);
	out_set_text(j, "program", first->member_label);
	out_set_text(j, "user", user_of(first->pid, user));
	json_object_set_new(j, "volumes", json_array());
	json_object_set_new(j, "values", json_array());
	json_object_set_new(j, "exports", json_array());
	for (const struct xseg_peer_info *p = first; p < peers->info + peers->nr; p++)
		if (is_client_of(p, first))
			add_client(peers, o, p, j, &sums);
	json_object_set(j, "stores", json_object_get(j, "values"));	/* its older name */
	out_set_int(j, "queues", sums.queues);
	out_set_int(j, "clients", sums.queues);	/* its older name */
	out_set_int(j, "ports", sums.ports);
	out_set_int(j, "requests_in_flight", sums.requests);
	json_object_set_new(j, "since_s",
		sums.since_s ? json_integer((json_int_t)sums.since_s) : json_null());
	return j;
}

/* ---- all --------------------------------------------------------------------------------- */

static bool is_shown(const struct view_peers *peers, const struct xseg_peer_info *p)
{
	const struct xseg_peer_info *q, *server;

	if (!view_peer_is_client(p) || !view_peer_alive(p) || p->pid == (uint32_t)getpid())
		return false;
	for (q = peers->info; q < p; q++)
		if (is_client_of(q, p))
			return false;
	for (q = peers->info; q < peers->info + peers->nr; q++)
		if (is_client_of(q, p) && opened_by(peers, q, &server))
			return true;
	for (q = peers->info; q < peers->info + peers->nr; q++)
		if (is_same_process(q, p) && !view_peer_is_client(q))
			return false;
	return true;
}

json_t *clients_text_json(const struct view_peers *peers, const struct opened *o)
{
	json_t *array = json_array();
	const struct xseg_peer_info *p;

	for (p = peers->info; p < peers->info + peers->nr; p++)
		if (is_shown(peers, p))
			json_array_append_new(array, process_json(peers, o, p));
	return array;
}

uint32_t clients_text_count(const struct view_peers *peers)
{
	const struct xseg_peer_info *p;
	uint32_t nr = 0;

	for (p = peers->info; p < peers->info + peers->nr; p++)
		nr += is_shown(peers, p);
	return nr;
}

/* "disk, scratch", of an array of names, or of objects with names. */
static const char *join(const json_t *names, char *buf, size_t size)
{
	const char *name;
	size_t i, used = 0;
	json_t *one;

	snprintf(buf, size, "-");
	json_array_foreach((json_t *)names, i, one) {
		name = json_is_string(one) ? json_string_value(one) : out_text(one, "name");
		if (used < size)
			used += (size_t)snprintf(
				buf + used, size - used, "%s%s", used ? ", " : "", name);
	}
	return buf;
}

struct out_table *clients_text_table(const json_t *clients)
{
	struct out_table *table = out_table_create(
		">PID\tPROGRAM\tUSER\tVOLUMES\tVALUES\tEXPORTS\t>PORTS\t>IN FLIGHT\tSINCE");
	char volumes[256], stores[256], exports[256], since[OUT_TEXT];
	json_t *c;
	size_t i;

	json_array_foreach((json_t *)clients, i, c) {
		uint64_t since_s = out_int(c, "since_s");

		out_table_row(table,
			"%" PRIu64 "\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s",
			out_int(c, "pid"), out_text(c, "program"), out_text(c, "user"),
			join(json_object_get(c, "volumes"), volumes, sizeof(volumes)),
			join(json_object_get(c, "values"), stores, sizeof(stores)),
			join(json_object_get(c, "exports"), exports, sizeof(exports)),
			out_int(c, "ports"), out_int(c, "requests_in_flight"),
			since_s ? out_moment(since_s, since) : "-");
	}
	return table;
}
