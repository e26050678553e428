/* damage - see the header. */
#include <stdio.h>
#include <string.h>

#include "peers/common/say/lost.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/flow/damage.h"

#define ASK_NS	(4 * TOOL_SECOND)
#define LOAD_NS (60 * TOOL_SECOND) /* volumed gives objects up after 3 s (catalog_load.c) */
#define LOOK_NS (TOOL_SECOND / 50)

struct asking {
	struct tool quick;			/* for one answer */
	struct client *client;
	uint64_t end_ns;			/* of all of them */
};

void damage_add(struct damage *d, const char *answer)
{
	d->records += client_number(answer, "damaged");
	d->lost += client_number(answer, "lost");
	if (!d->reason[0])
		client_line(answer, "damage", d->reason, sizeof(d->reason));
	if (!d->unread[0])
		client_line(answer, "error", d->unread, sizeof(d->unread));
}

bool damage_any(const struct damage *d)
{
	return d->reason[0] || d->unread[0];
}

/* One that has just begun is still reading. It is waited for as long as it says so; the machine may
 * be slow. */
static void ask_one(struct asking *a, uint32_t peer, struct damage *d)
{
	struct client *c = a->client;
	char word[24];

	while (client_ask(c, peer, "status") >= 0) {
		if (!client_value(c->text, "loading", word, sizeof(word)) || strcmp(word, "yes") ||
			client_value(c->text, "error", word, sizeof(word))) {
			damage_add(d, c->text);
			return;
		}
		if (tool_out_of_time(&a->quick) || tool_now_ns() > a->end_ns)
			return;
		a->quick.deadline_ns = tool_now_ns() + ASK_NS;
		tool_sleep_ns(LOOK_NS);
	}
}

static void ask_all(struct asking *a, struct damage *d)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };

	if (view_peers_load(a->client->seg, &peers))
		return;
	while ((p = view_peer_of_kind(&peers, "volumed", p)))
		if (p->state == XSEG_PEER_LIVE)
			ask_one(a, p->index, d);
	view_peers_fini(&peers);
}

static bool any_volumed(struct xseg *seg)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };
	bool any = false;

	if (view_peers_load(seg, &peers))
		return false;
	while (!any && (p = view_peer_of_kind(&peers, "volumed", p)))
		any = p->state == XSEG_PEER_LIVE;
	view_peers_fini(&peers);
	return any;
}

void damage_ask(const struct tool *t, struct xseg *seg, struct damage *d)
{
	uint64_t now = tool_now_ns(), end_ns = now + LOAD_NS;
	struct asking a = {
		.quick = { .quiet = true, .timeout_ns = ASK_NS, .deadline_ns = now + ASK_NS },
		.end_ns = end_ns < t->deadline_ns ? end_ns : t->deadline_ns,
	};
	int rc;

	*d = (struct damage){ .lost = 0 };
	if (!any_volumed(seg))
		return;
	snprintf(a.quick.segment, sizeof(a.quick.segment), "%s", t->segment);
	tool_mute(true);
	rc = client_open(&a.quick, &a.client);
	if (!rc) {
		ask_all(&a, d);
		client_close(a.client);
	}
	tool_mute(false);
}

const char *damage_tell(const struct damage *d, char buf[DAMAGE_MAX])
{
	char lost[LOST_MAX];

	*buf = '\0';
	if (!d->reason[0] && d->unread[0])
		snprintf(buf, DAMAGE_MAX,
			"the catalogue of volumes cannot be read: %s; no volume is served until it "
			"can; see the log for the store's error", d->unread);
	if (!d->reason[0])
		return buf;
	snprintf(buf, DAMAGE_MAX,
		"the catalogue of volumes is damaged: %s, and %s; see 'xseg volume recover --list'",
		d->reason, lost_tell(lost, d->records, d->lost));
	return buf;
}
