/* text_file - a file of text: it is read whole, and replaced at once.
 *
 * Contract: functions over paths. A reader of the path sees all of the old text or all of the new
 * text, also if this process is killed, or the machine loses its power. A kill may leave a file
 * PATH.XXXXXX beside it.
 */
#ifndef PEERS_COMMON_TEXT_FILE_H
#define PEERS_COMMON_TEXT_FILE_H

#include <stddef.h>

#include "xseg/xseg.h"

/* Reads all of a file, and ends it by NUL. 0 or a negative errno; -EFBIG: it has `size` bytes or
 * more; -EINVAL: there is a NUL in it. */
int text_file_read(const char *path, char *text, size_t size) XSEG_MUST_CHECK;
/* Puts a new file in the place of an old one, with the owner, the group and the mode of that. Where
 * the path is a link, the file that it leads to is replaced. 0 or a negative errno: the old one is
 * there as it was. */
int text_file_replace(const char *path, const char *text) XSEG_MUST_CHECK;

#endif
