/* stay - `up` in the foreground: it shows the log until a signal has all peers stopped in order.
 *
 * As a service it also tells the service manager (notify.h) when all peers serve, that they stop,
 * and for how long it may have to wait: an orderly stop writes all dirty data to the store, so the
 * time-out is put off while there is less and less of it. At the end it removes the segment.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. A supervisor that is replaced, as
 * by `peer restart --all`, may be away for 2 s. As a service it becomes the new program then, if
 * its own was replaced: the process stays the same, which the manager watches.
 */
#ifndef TOOLS_XSEG_STAY_H
#define TOOLS_XSEG_STAY_H

#include "tools/xseg/flow/launch.h"

/* In the environment of a program that goes on with what runs, as its predecessor became it: how
 * much of the log was shown. */
#define STAY_AGAIN "XSEG_UP_AGAIN"

/* launch: of a stack that serves, but for nr_not of its peers, which was told; or of one whose
 * start a signal has interrupted, which is stopped then. */
int stay_until_stopped(const struct launch *launch, bool service, uint32_t nr_not);

#endif
