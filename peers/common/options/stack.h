/* stack - a stack file: its peers, the peer below each, the groups that share a process, and what
 * is exported.
 *
 * INI, as inih reads it: one [segment] section, one [peer NAME] section per peer, one [export NAME]
 * section per export (stack_export.h), [run] together =, which may stand several times. Lines have
 * at most 198 characters.
 *
 * Contract: pure functions over a text; nothing is printed, started or looked up in a segment. Only
 * a peer's kind knows the meaning of the peer's own options. stack_parse() keeps them as text.
 * stack_check_options() has them checked by a caller that knows the kinds (xseg-host --check).
 *
 * Invariants of a stack that stack_parse() returned:
 *   K1  Names are unique and fit xseg_name_ok(); every kind is one of stack_kinds.
 *   K2  Every downstream is a peer of the stack that is not the peer itself, and there is no loop.
 *       Only kinds that send have one.
 *   K3  A peer is in one group at most. Groups are in the order of the file.
 */
#ifndef PEERS_COMMON_STACK_H
#define PEERS_COMMON_STACK_H

#include "peers/common/options/opt.h"
#include "peers/common/options/owner.h"
#include "peers/common/options/stack_errors.h"
#include "peers/common/options/stack_export.h"
#include "xseg/xseg.h"

#define STACK_MAX_PEERS	  64
#define STACK_MAX_OPTIONS 32			/* of one peer, repeated ones each */
#define STACK_MAX_GROUPS  16
#define STACK_TEXT_BYTES  (64u << 10)		/* of its text, less than that */
#define STACK_NONE	  UINT32_MAX
#define STACK_BOM	  "\xef\xbb\xbf"		/* its text may begin with one */

/* [segment]; the same table serves `xseg create`. */
struct stack_segment {
	char name[XSEG_NAME_MAX];		/* "" when the file names none */
	uint64_t memory;			/* 0: not given */
	uint32_t requests, ports;		/* 0: xseg_create()'s default */
	uint32_t huge;				/* enum xseg_huge */
	char mode[8];				/* octal text */
	char group[33];				/* "" for none */
	char owner[OWNER_BYTES];	/* whose segment of that name is let in; "": owner.h */
};

/* The keys of the two sections, for help, completion and the manual. */
extern const struct opt stack_segment_table[], stack_peer_table[];
extern const char *const stack_huge_names[];	/* by enum xseg_huge; ended by NULL */

/* For struct opt's check: an empty text is no group. */
int stack_check_group(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;
/* A good size for the memory of a segment in which so much is needed: clients find room, too, and
 * it is a number that a person takes. */
uint64_t stack_good_memory(uint64_t need_bytes);
/* Makes what xseg_create() wants: reads the mode, looks up the group, which may be a number.
 * -EINVAL with a line in err. */
int stack_segment_config(const struct stack_segment *s, struct xseg_config *cfg,
			 struct xseg_error *err) XSEG_MUST_CHECK;

struct stack_option {
	char *key, *value;
	unsigned line;
};

struct stack_peer {
	char name[XSEG_NAME_MAX], kind[16];
	char downstream_name[XSEG_NAME_MAX];	/* "" for none */
	uint32_t downstream;			/* index in peers[], or STACK_NONE */
	/* a cache that nobody names, beside others above its downstream: waits to be plugged */
	bool waits;
	bool names_kvd;				/* by the key kvd, in place of downstream */
	uint32_t threads;
	char cpus[64];
	bool restart;
	struct stack_lines lines;
	unsigned downstream_line;		/* of the key downstream or kvd */
	uint32_t group;			/* index in groups[], or STACK_NONE: a process of its own */
	uint32_t nr_options;
	struct stack_option option[STACK_MAX_OPTIONS];
};

struct stack_group {
	unsigned line;
	char *names;				/* consumed by stack_parse() */
	uint32_t nr, peer[STACK_MAX_PEERS];	/* indices in peers[], in the order of the file */
};

struct stack {
	struct stack_segment segment;
	struct stack_lines segment_lines;
	uint32_t nr_peers, nr_groups, nr_exports;
	struct stack_peer peers[STACK_MAX_PEERS];
	struct stack_group groups[STACK_MAX_GROUPS];
	struct stack_export exports[STACK_MAX_EXPORTS];
};

/* A big structure: make it with stack_create(), not on the stack of a thread. NULL: no memory. */
struct stack *stack_create(void);
void stack_destroy(struct stack *stack);

/* Reads a stack file's text into an empty stack, and adds all that is wrong to errors. 0; -ENOMEM;
 * or -EINVAL: there are errors, and K1 to K3 do not hold. stack_order() is not for such a stack. */
int stack_read(const char *text, struct stack *stack, struct stack_errors *errors) XSEG_MUST_CHECK;
/* The same where one error is enough: -EINVAL with a line "line N: ..." in err. */
int stack_parse(const char *text, struct stack *stack, struct xseg_error *err) XSEG_MUST_CHECK;

/* Writes the options of one peer into the struct that the table describes, and adds all that is
 * wrong to errors: then -EINVAL. */
int stack_read_options(const struct stack_peer *peer, const struct opt *table, void *base,
		       struct stack_errors *errors) XSEG_MUST_CHECK;
/* The same where one error is enough. */
int stack_set_options(const struct stack_peer *peer, const struct opt *table, void *base,
		      struct xseg_error *err) XSEG_MUST_CHECK;

/* Indices of the peers, bottom up: each after its downstream; else in the order of the file. */
void stack_order(const struct stack *stack, uint32_t order[STACK_MAX_PEERS]);
/* What it is started with as its downstream; "" for none. */
const char *stack_downstream(const struct stack_peer *p);
/* The program of a peer of that kind in a process of its own. Its name is that of the kind, but for
 * memcached, which is another program's. */
const char *stack_program(const char *kind);
/* Whether peers of that kind keep data themselves, and have no peer below. False of one that is not
 * known. */
bool stack_kind_is_store(const char *kind);
/* Index of the peer of that name, or STACK_NONE. */
uint32_t stack_find(const struct stack *stack, const char *name);

#endif
