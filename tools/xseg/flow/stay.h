/* stay - `up` in the foreground: it shows the log until a signal has all peers stopped in order.
 *
 * As a service it also tells the service manager (notify.h) when all peers serve, that they stop,
 * and for how long it may have to wait: an orderly stop writes all dirty data to the store, so the
 * time-out is put off while there is less and less of it. At the end it removes the segment.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. A supervisor that is replaced, as
 * by `peer restart --all`, may be away for 2 s.
 */
#ifndef TOOLS_XSEG_STAY_H
#define TOOLS_XSEG_STAY_H

#include "tools/xseg/flow/launch.h"

/* launch: of a stack that serves. */
int stay_until_stopped(const struct launch *launch, bool service);

#endif
