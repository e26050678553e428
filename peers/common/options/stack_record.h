/* stack_record - what a segment keeps of its stack: the text of the stack file, its path, and the
 * peers that are still to be restarted for it.
 *
 *	TEXT \0 PATH \0 NAME,NAME... \0		(xseg_stack_set())
 *
 * A reader of the text alone sees it end at the first NUL. Text, path and names are one store, so a
 * kill leaves all of the old ones, or all of the new ones, or none.
 *
 * Contract: functions over the caller's memory; those with a segment wait for its lock of routes.
 */
#ifndef PEERS_COMMON_STACK_RECORD_H
#define PEERS_COMMON_STACK_RECORD_H

#include <limits.h>

#include "peers/common/options/stack.h"

#define STACK_PENDING_BYTES 4096u

struct stack_record {
	char text[STACK_TEXT_BYTES];
	char path[PATH_MAX];			/* "": nobody knows it */
	char pending[STACK_PENDING_BYTES];	/* names with commas between; "": none */
};

/* Of `len` bytes as they are kept; an older record has a text only. False: there is no text. */
bool stack_record_unpack(struct stack_record *record, const char *bytes, size_t len);
/* Writes at most STACK_TEXT_BYTES bytes, and returns how many: without the path and the names if
 * those do not fit. */
size_t stack_record_pack(const struct stack_record *record, char *bytes);
/* That of a segment. False: it has none. */
bool stack_record_get(struct xseg *seg, struct stack_record *record);
int stack_record_set(struct xseg *seg, const struct stack_record *record) XSEG_MUST_CHECK;

#endif
