/* asker - questions to peers that may not answer: what they tell is nice to know, and its lack is
 * no reason to fail.
 *
 * A peer is asked for ASKER_FIRST_NS at most. After one was silent, each further peer is asked for
 * ASKER_NEXT_NS at most.
 *
 * Contract: one thread. Prints nothing.
 */
#ifndef TOOLS_XSEG_ASKER_H
#define TOOLS_XSEG_ASKER_H

#include "tools/xseg/base/client.h"

#define ASKER_FIRST_NS (2 * TOOL_SECOND)
#define ASKER_NEXT_NS  (TOOL_SECOND / 2)

struct asker {
	struct tool quick;
	struct client *c;			/* NULL: nobody can be asked */
};

void asker_init(struct asker *a, const struct tool *t);
void asker_fini(struct asker *a);
/* Who asks the next peer, or NULL. A peer that was silent has the port of who asked it (C1), and
 * says nothing about the others. */
struct client *asker_client(struct asker *a);
/* A peer's answer, until the next question; NULL: it gave none. One that stands still is not
 * asked. */
char *asker_ask(struct asker *a, const struct xseg_peer_info *p, const char *line);

#endif
