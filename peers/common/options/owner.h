/* owner - the users that may own a segment that a program lets in: its own user, root, and the user
 * of option --owner, else of $XSEG_OWNER.
 *
 * Contract: one thread, at the start. owner_use() writes the variable, so programs started by this
 * one let in the same user's segment. xseg_attach_owned() has the rule itself.
 */
#ifndef PEERS_COMMON_OWNER_H
#define PEERS_COMMON_OWNER_H

#include "peers/common/options/opt.h"

#define OWNER_BYTES 33			/* the name of a user, or a number, with the NUL */

/* The option, for tables of programs; its field is char[OWNER_BYTES]. */
#define OWNER_OPT(offset) \
	{ \
		.name = "owner", .kind = OPT_STR, .off = (offset), .len = OWNER_BYTES, \
		.arg = "USER", .check = owner_check, \
		.help = "also use a segment of that user (else $XSEG_OWNER), who can then read " \
			"and change all data in it" \
	}

/* For struct opt's check: this machine has such a user. */
int owner_check(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;
/* "": as the environment has it. */
void owner_use(const char *text);
/* Whether another user than the caller is named; for a default that somebody else has. */
bool owner_is_named(void);
/* xseg_attach_owned() with that owner. -EPERM, and -EACCES if another user made the segment: err
 * says which user, and what to do. */
int owner_attach(const char *name, unsigned flags, struct xseg **seg,
		 struct xseg_error *err) XSEG_MUST_CHECK;
/* Whether owner_attach() failed with rc as another user made the segment, and err says it all. */
bool owner_refused(int rc, const struct xseg_error *err);
/* Of a user, for people: its name, or its number where it has none. */
void owner_name(uint32_t uid, char name[OWNER_BYTES]);
/* The same of a group. */
void owner_group_name(uint32_t gid, char name[OWNER_BYTES]);
/* A group, by its number or its name. -ENOENT: this machine has none of that name. */
int owner_find_group(const char *text, int64_t *gid) XSEG_MUST_CHECK;
/* The same with the reason: -EINVAL. */
int owner_need_group(const char *text, int64_t *gid, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
