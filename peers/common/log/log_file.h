/* log_file - opens the file that a log is appended to.
 *
 * Its name can be guessed, and every user can write to /tmp. So nothing is written to a file that
 * another user has put there beforehand, nor to a link to somewhere else.
 *
 * Contract: any thread; blocks as open(2) of a regular file does.
 */
#ifndef PEERS_COMMON_LOG_FILE_H
#define PEERS_COMMON_LOG_FILE_H

#include "xseg/xseg.h"

/* Opens it to append to, close-on-exec; one that is not there is made, with the mode 0600. Returns
 * a descriptor, or a negative errno with a line in err, which names the file and says what to do:
 * -EPERM when it is no regular file, has other names, or belongs to another user. */
int log_file_open(const char *path, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
