/* damage - see the header. */
#include <stdio.h>
#include <string.h>

#include "peers/common/say/lost.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/flow/damage.h"

#define ASK_NS	(4 * TOOL_SECOND) /* volumed gives objects up after 3 s (catalog_load.c) */
#define LOOK_NS (TOOL_SECOND / 50)

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

/* One that has just begun is still reading. */
static void ask_one(struct client *c, uint32_t peer, struct damage *d)
{
	char word[24];

	while (client_ask(c, peer, "status") >= 0) {
		if (!client_value(c->text, "loading", word, sizeof(word)) || strcmp(word, "yes") ||
			client_value(c->text, "error", word, sizeof(word))) {
			damage_add(d, c->text);
			return;
		}
		if (tool_out_of_time(c->t))
			return;
		tool_sleep_ns(LOOK_NS);
	}
}

static void ask_all(struct client *c, struct damage *d)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };

	if (view_peers_load(c->seg, &peers))
		return;
	while ((p = view_peer_of_kind(&peers, "volumed", p)))
		if (p->state == XSEG_PEER_LIVE)
			ask_one(c, p->index, d);
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
	struct tool quick = { .quiet = true, .timeout_ns = ASK_NS,
		.deadline_ns = tool_now_ns() + ASK_NS };
	struct client *c;
	int rc;

	*d = (struct damage){ .lost = 0 };
	if (!any_volumed(seg))
		return;
	snprintf(quick.segment, sizeof(quick.segment), "%s", t->segment);
	tool_mute(true);
	rc = client_open(&quick, &c);
	if (!rc) {
		ask_all(c, d);
		client_close(c);
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
		"the catalogue of volumes is damaged: %s; %s; see 'xseg volume recover --list'",
		d->reason, lost_tell(lost, d->records, d->lost));
	return buf;
}
