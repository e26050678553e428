/* mode - file modes as options: 0600, 0660.
 *
 * Contract: pure.
 */
#ifndef PEERS_COMMON_MODE_H
#define PEERS_COMMON_MODE_H

#include "xseg/xseg.h"

/* 0 or -EINVAL. */
int mode_read(const char *text, uint32_t *mode) XSEG_MUST_CHECK;
/* For struct opt's check. */
int mode_check(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
