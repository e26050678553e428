/* asker - see asker.h. */
#include "tools/xseg/base/asker.h"

#include "tools/xseg/base/halted.h"

static void open_client(struct asker *a, uint64_t limit_ns)
{
	a->quick.deadline_ns = tool_now_ns() + limit_ns;
	tool_mute(true);
	if (client_open(&a->quick, &a->c))
		a->c = NULL;
	tool_mute(false);
}

void asker_init(struct asker *a, const struct tool *t)
{
	*a = (struct asker){ .quick = { .timeout_ns = ASKER_FIRST_NS, .quiet = true } };
	snprintf(a->quick.segment, sizeof(a->quick.segment), "%s", t->segment);
	open_client(a, ASKER_FIRST_NS);
}

void asker_fini(struct asker *a)
{
	if (a->c)
		client_close(a->c);
}

struct client *asker_client(struct asker *a)
{
	if (a->c && a->c->call[CLIENT_PORT_ADMIN].r) {
		client_close(a->c);
		open_client(a, ASKER_NEXT_NS);
	}
	return a->c;
}

char *asker_ask(struct asker *a, const struct xseg_peer_info *p, const char *line)
{
	struct client *c = asker_client(a);

	if (!c || p->state != XSEG_PEER_LIVE || halted_is(c->seg, p) ||
		client_ask(c, p->index, "%s", line) < 0)
		return NULL;
	return c->text;
}
