/* opt_path - whether directories, files and sockets that options name are there, and may be used.
 *
 * Contract: looks at the machine, changes nothing, and may block as the file system does. Who asks
 * is the user that will start the peer. The answer may be another one by then.
 */
#ifndef PEERS_COMMON_OPT_PATH_H
#define PEERS_COMMON_OPT_PATH_H

#include "peers/common/options/opt.h"

/* Of one value of an option with OPT_DIR, OPT_MAKES, OPT_FILE or OPT_SOCKET; any other is right.
 * -EINVAL with a line in err. */
int opt_path_check(const struct opt *o, const char *value, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
