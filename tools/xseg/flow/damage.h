/* damage - volumeds' reports of a catalogue that is damaged or cannot be read, for up, status,
 * check and volume list.
 *
 * Contract: one thread. damage_ask() waits four seconds for an answer, and a minute for volumeds
 * that say that they still read. It takes silence for no damage: status shows peers that do not
 * answer.
 */
#ifndef TOOLS_XSEG_DAMAGE_H
#define TOOLS_XSEG_DAMAGE_H

#include "tools/xseg/base/tool.h"

#define DAMAGE_REASON 128
#define DAMAGE_MAX    512

struct damage {
	uint64_t records, lost;			/* unreadable ones; volumes not served */
	char reason[DAMAGE_REASON];		/* "": there is none */
	char unread[DAMAGE_REASON];		/* why nothing can be read at all; else "" */
};

/* Adds what a volumed's answer to "status" says. */
void damage_add(struct damage *d, const char *answer);
/* Adds what all volumeds of the segment that are alive say. */
void damage_ask(const struct tool *t, struct xseg *seg, struct damage *d);
bool damage_any(const struct damage *d);
/* In words, with what to do; "" of none. Returns buf. */
const char *damage_tell(const struct damage *d, char buf[DAMAGE_MAX]);

#endif
