/* stack_record - what a segment keeps of its stack: the text of the stack file, its path, the peers
 * that are still to be restarted for it, what commands have stopped, and which word gave the
 * segment its name.
 *
 *	TEXT \0 PATH \0 PENDING,PENDING... \0 STOPPED,STOPPED... \0 WORD \0	(xseg_stack_set())
 *
 * A reader of the text alone sees it end at the first NUL. All of it is one store, so a kill leaves
 * all of the old record, or all of the new one, or none.
 *
 *   pending      meaning
 *   NAME         `xseg reload` has still to restart that peer
 *   NAME:GEN     the supervisor has still to replace that incarnation of the peer (replace.h): the
 *                next one begins where the stack says, by its kind and its downstream
 *   NAME=GEN     the same, but the next one keeps the route
 *   supervisor   another supervisor has still to take the place of the one that runs
 *
 *   stopped      meaning
 *   NAME         `xseg export stop` has stopped that export: no supervisor starts it
 *   peer:NAME    the same of a peer and `xseg peer stop`. It holds while the peer is stopped. A
 *                peer that is alive or has died is started again as any other
 *
 * Contract: functions over the caller's memory; those with a segment wait for its lock of routes.
 * Several processes may change a record, one at a time: tools/xseg/base/stack_lock.h.
 */
#ifndef PEERS_COMMON_STACK_RECORD_H
#define PEERS_COMMON_STACK_RECORD_H

#include <limits.h>

#include "peers/common/options/stack.h"

#define STACK_PENDING_BYTES 5120u		/* entries for all peers of a stack */
#define STACK_STOPPED_BYTES 6400u		/* all exports and peers of a stack */

struct stack_record {
	char text[STACK_TEXT_BYTES];
	char path[PATH_MAX];			/* "": nobody knows it */
	char pending[STACK_PENDING_BYTES];	/* entries with commas between; "": none */
	char stopped[STACK_STOPPED_BYTES];	/* entries with commas between; "": none */
	char named[8];				/* STACK_NAMED_...; "": by an older xseg */
};

/* What gave the segment its name, at the last `xseg up`: -s or $XSEG_SEGMENT, which win over the
 * file; the file; or none of these. */
#define STACK_NAMED_OPTION  "option"
#define STACK_NAMED_FILE    "file"
#define STACK_NAMED_DEFAULT "default"

/* Of `len` bytes as they are kept; an older record has less. False: there is no text. */
bool stack_record_unpack(struct stack_record *record, const char *bytes, size_t len);
/* Writes at most STACK_TEXT_BYTES bytes, and returns how many: without what is behind the first
 * part that does not fit. */
size_t stack_record_pack(const struct stack_record *record, char *bytes);
/* Whether all of it fits. */
bool stack_record_fits(const struct stack_record *record);
/* That of a segment. False: it has none. */
bool stack_record_get(struct xseg *seg, struct stack_record *record);
int stack_record_set(struct xseg *seg, const struct stack_record *record) XSEG_MUST_CHECK;

/* A peer that the supervisor has still to replace. */
struct stack_replaced {
	char name[XSEG_NAME_MAX];
	uint32_t generation;
	bool keeps_route;
};

/* The next one of *pending, which moves on; false: there is none left. Other entries are left
 * out. */
bool stack_replaced_next(const char **pending, struct stack_replaced *out);
/* Adds it; false: there is no room. */
bool stack_replaced_add(char *pending, size_t size, const struct stack_replaced *replaced);

/* ---- what a command has stopped ---- */

enum stack_stopped { STACK_STOPPED_EXPORT, STACK_STOPPED_PEER };

/* list: the part `stopped` of a record. */
bool stack_stopped_has(const char *list, enum stack_stopped what, const char *name);
/* Also if it is there. False: there is no room in the record. */
bool stack_stopped_add(struct stack_record *record, enum stack_stopped what, const char *name);
void stack_stopped_remove(struct stack_record *record, enum stack_stopped what, const char *name);

/* ---- lists of names, with commas between ---- */

bool stack_names_have(const char *list, const char *name);
/* Also if it is there. False: there is no room. */
bool stack_names_add(char *list, size_t size, const char *name);
void stack_names_remove(char *list, const char *name);

#endif
