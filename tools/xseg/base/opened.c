/* opened - see opened.h. */
#include "tools/xseg/base/opened.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/xseg/base/client.h"

#define ASK_NS (2 * TOOL_SECOND)

static uint32_t id_of(const struct xseg_peer_info *client)
{
	return (uint32_t)client->user[XSEG_CLIENT_WORD_VOLUME];
}

bool opened_by(const struct view_peers *peers, const struct xseg_peer_info *client,
	const struct xseg_peer_info **server)
{
	uint64_t index = client->user[XSEG_CLIENT_WORD_VOLUME] >> 32;

	*server = NULL;
	if (view_peer_is_client(client) && view_peer_alive(client) && index &&
		index <= XSEG_MAX_PORTS)
		*server = view_peer_at(peers, (uint32_t)index - 1);
	return *server;
}

static struct opened_volume *find(const struct opened *o, uint32_t volumed, uint32_t id)
{
	for (uint32_t i = 0; i < o->nr; i++)
		if (o->volume[i].volumed == volumed && o->volume[i].id == id)
			return &o->volume[i];
	return NULL;
}

/* Those whose names are to be learned. */
static void collect(const struct view_peers *peers, struct opened *o)
{
	const struct xseg_peer_info *p, *server;

	o->volume = calloc(peers->nr ? peers->nr : 1, sizeof(*o->volume));
	for (p = peers->info; o->volume && p < peers->info + peers->nr; p++)
		if (opened_by(peers, p, &server) && !strcmp(server->kind, "volumed") &&
			!find(o, server->index, id_of(p)))
			o->volume[o->nr++] = (struct opened_volume){ .volumed = server->index,
				.id = id_of(p) };
}

/* How many of this volumed's have no name yet. */
static uint32_t count_unnamed(const struct opened *o, uint32_t volumed)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < o->nr; i++)
		nr += o->volume[i].volumed == volumed && !*o->volume[i].name;
	return nr;
}

static void read_line(struct opened *o, uint32_t volumed, const char *line)
{
	struct opened_volume *v = find(o, volumed, (uint32_t)client_number(line, "id"));
	char name[XSEG_NAME_MAX];

	if (v && client_value(line, "name", name, sizeof(name)))
		memcpy(v->name, name, sizeof(name));
}

/* False: it does not answer. */
static bool ask(struct client *c, struct opened *o, uint32_t volumed)
{
	uint64_t slot = 0, last;
	char *line, *save;

	do {
		last = slot;
		if (client_ask(c, volumed, "volume list %" PRIu64, slot) < 0)
			return false;
		slot = client_number(c->text, "next");
		for (line = strtok_r(c->text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			if (!strncmp(line, "slot=", 5))
				read_line(o, volumed, line);
	} while (slot > last && count_unnamed(o, volumed));
	return true;
}

void opened_load(const struct tool *t, const struct view_peers *peers, struct opened *o)
{
	struct tool quick = { .quiet = true, .timeout_ns = ASK_NS,
		.deadline_ns = tool_now_ns() + ASK_NS };
	const struct xseg_peer_info *p = NULL;
	struct client *c;

	*o = (struct opened){ 0 };
	collect(peers, o);
	if (!o->nr)
		return;
	snprintf(quick.segment, sizeof(quick.segment), "%s", t->segment);
	tool_mute(true);
	if (!client_open(&quick, &c)) {
		while ((p = view_peer_of_kind(peers, "volumed", p)))
			if (p->state == XSEG_PEER_LIVE && count_unnamed(o, p->index) &&
				!ask(c, o, p->index))
				break;
		client_close(c);
	}
	tool_mute(false);
}

void opened_fini(struct opened *o)
{
	free(o->volume);
	*o = (struct opened){ 0 };
}

const char *opened_name(const struct opened *o, const struct xseg_peer_info *client,
	const struct xseg_peer_info *server, char buf[XSEG_NAME_MAX])
{
	const struct opened_volume *v = find(o, server->index, id_of(client));

	if (strcmp(server->kind, "volumed") != 0)
		snprintf(buf, XSEG_NAME_MAX, "%s", server->name);
	else if (v && *v->name)
		snprintf(buf, XSEG_NAME_MAX, "%s", v->name);
	else
		snprintf(buf, XSEG_NAME_MAX, "number %" PRIu32, id_of(client));
	return buf;
}
