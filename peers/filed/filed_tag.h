/* filed_tag - which object a file belongs to, and how long the file must be. Both are in an
 * attribute of the file, `user.xseg`. It reveals a file that was swapped, cut short or put in
 * another's place.
 *
 * 	1 LENGTH SURE NAME	as text; NAME is the object's, as it is, up to the end
 *
 * LENGTH is the length that the file has, or is about to have: a power of two from 64 KiB to 4 MiB,
 * or a multiple of 4 MiB. SURE is a length that it has reached. A file grows in these steps:
 *
 * 	1  the attribute says the new LENGTH, and as SURE the file's length
 * 	2  the file gets that length
 * 	3  the attribute says that it is SURE
 *
 * So a kill leaves a file that is as long as SURE at least, and LENGTH at most. So does a power
 * cut: file systems with a journal keep the order of their operations on one file.
 *
 * A file without the attribute comes from an older filed, or from a filed that died when it had
 * just made the file. It is served as it is, and gets the attribute at its first change. So does a
 * file that is longer than LENGTH: an older filed has written to it since.
 *
 * Contract: any thread; all block. One thread at a time grows a file.
 *
 * Invariants:
 *   FT1  A file that is shorter than SURE, or bears another name, is not served: nobody has written
 *        the contents that it would read as.
 *   FT2  Flipped bits are not seen here. A file system with checksums, or RADOS, sees them.
 */
#ifndef PEERS_FILED_FILED_TAG_H
#define PEERS_FILED_FILED_TAG_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

/* Errors of a wrong file, none of which a file system has. */
#define FILED_EOTHER ENOTUNIQ		/* it is another object's */
#define FILED_ESHORT EBADE		/* it is shorter than it was made */
#define FILED_ETAG   EBADR		/* its attribute is none of this version of filed */

#define FILED_ANY_LENGTH UINT64_MAX	/* of a file without attribute that never gets one */

/* Whether files below that directory can have the attribute. */
bool filed_tag_can(int dir);
/* Whether an open file is the object's. *length: what it has for sure, and its attribute says so;
 * 0: it is to be grown before it is changed; FILED_ANY_LENGTH: the file system has no attributes.
 * -FILED_EOTHER, -FILED_ESHORT, -FILED_ETAG: it is wrong (FT1). */
int filed_tag_check(int fd, const char *name, uint64_t *length) XSEG_MUST_CHECK;
/* Makes it so long that `end` is in it: *length. On a full disk a file in which `end` is already
 * stays as it is, and *length is 0: it is tried again before the next change. */
int filed_tag_grow(int fd, const char *name, uint64_t end, uint64_t *length) XSEG_MUST_CHECK;

#endif
