/* opt - one const table of options: it feeds the command line, the stack file, --help, `peer set`,
 * the manual's test and the error messages. (Source of the idea: fio's parse.h.)
 *
 * Contract: pure functions over a table and a struct; no printing, no exit. `off` is an offset into
 * the struct that `base` points to. Field types by kind:
 *   OPT_SIZE     uint64_t   bytes ("4k" "512M" "8G", powers of 1024)
 *   OPT_TIME     uint64_t   ns ("500us" "500ms" "10s")
 *   OPT_RATE     uint64_t   bytes a second ("200M/s", or "0" = no limit)
 *   OPT_UINT     uint32_t
 *   OPT_U64      uint64_t
 *   OPT_PERCENT  uint32_t   ("70" or "70%")
 *   OPT_BOOL     bool       (yes|no)
 *   OPT_STR      char[len]
 *   OPT_ENUM     uint32_t   index into names
 *   OPT_LIST     char[len]  repeatable; values are kept joined by '\n'
 * Invariants:
 *   V1  a value that does not parse or is out of range changes nothing and yields one line that
 *       says what would be right
 *   V2  numbers are never accepted for names, but where OPT_0_OR_1 says so
 */
#ifndef PEERS_COMMON_OPT_H
#define PEERS_COMMON_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define PEER_MAX_THREADS 16			/* of a peer: the option `threads` */

enum opt_kind {
	OPT_SIZE, OPT_TIME, OPT_RATE, OPT_UINT, OPT_U64, OPT_PERCENT, OPT_BOOL, OPT_STR, OPT_ENUM,
	OPT_LIST
};

#define OPT_LIVE     1u		/* may be changed while the peer runs (peer set, cache set) */
#define OPT_REQUIRED 2u
#define OPT_OR_ZERO  4u		/* a number that is less than its min may be 0, as help says */
/* Texts that name something outside of the segment (opt_path.h). */
#define OPT_DIR	     8u			/* a directory */
#define OPT_MAKES    16u	/* the same, and it is made if the directory above it is there */
#define OPT_FILE     32u		/* a file that is read */
#define OPT_SOCKET   64u		/* PATH or unix:PATH of a socket that is made; or no path */
#define OPT_0_OR_1   128u		/* OPT_BOOL: also 1 and 0, which fio has for its flags */
#define OPT_FIXED    256u	/* of the data that a peer has in its store: it can never change */

struct opt {
	/* "dirty-high" on the command line is "dirty_high" in tables: - and _ are the same */
	const char *name;
	enum opt_kind kind;
	size_t off;
	size_t len;				/* OPT_STR, OPT_LIST: room with the NUL */
	uint64_t min, max;			/* numbers; max 0: no limit */
	const char *const *names;		/* OPT_ENUM: ended by NULL */
	const char *def;			/* default as text; NULL: zero or empty */
	unsigned flags;
	const char *arg;			/* SIZE, TIME, FILE ... for --help */
	const char *help;			/* one line */
	/* optional extra check of the text; fills err */
	int (*check)(const char *text, struct xseg_error *err);
};

/* Writes all defaults. The table's own defaults must be right: asserts. */
void opt_set_defaults(const struct opt *table, void *base);
/* - and _ are the same. */
bool opt_same_name(const char *a, const char *b);
/* NULL: there is none of that name. */
const struct opt *opt_find(const struct opt *table, const char *name);
/* -EINVAL with a line in err. */
int opt_set(
	const struct opt *o, void *base, const char *text, struct xseg_error *err) XSEG_MUST_CHECK;
/* The value as text that opt_set() takes. */
void opt_get(const struct opt *o, const void *base, char *out, size_t size);
/* Name of a required option that is empty, or NULL. */
const char *opt_missing(const struct opt *table, const void *base);

int opt_parse_size(const char *text, uint64_t *out);	/* 0 or -EINVAL; no message */
int opt_parse_time(const char *text, uint64_t *out_ns);
int opt_parse_rate(const char *text, uint64_t *out);
void opt_format_size(uint64_t bytes, char *out, size_t size);	/* exact: "4k", "1536k", "513" */
void opt_human_size(uint64_t bytes, char *out, size_t size);	/* for people: "1.5G" */

#endif
