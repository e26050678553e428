/* cpus - lists of processors, such as "0,2-3".
 *
 * Contract: pure functions; nothing is asked of the machine.
 */
#ifndef PEERS_COMMON_CPUS_H
#define PEERS_COMMON_CPUS_H

#include "xseg/xseg.h"

#define CPUS_MAX 64				/* entries of a list */

/* Writes the processors in the order of the list; returns how many, 0 for "", -EINVAL with a line
 * in err. */
int cpus_parse(const char *text, int cpu[CPUS_MAX], struct xseg_error *err) XSEG_MUST_CHECK;
/* For struct opt's check. */
int cpus_check(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
