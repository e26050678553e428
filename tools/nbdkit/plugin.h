/* plugin.h - the declarations that the two files of the plug-in share; nobody else includes it.
 *
 *   plugin.c    nbdkit's calls, and the lanes: a request of nbdkit's has one
 *   writers.c   small writes that do not go through nbdkit
 */
#ifndef XSEG_NBDKIT_PLUGIN_H
#define XSEG_NBDKIT_PLUGIN_H

#include <stdint.h>

#include "xseg/volume.h"

/* ---- plugin.c ---------------------------------------------------------------------------- */

/* Prints an error that was not the last one, too; returns it as an errno of the protocol. */
int export_error(const struct xseg_io *io, const char *what, int64_t rc, struct xseg_error *err);
void export_worked(void);

/* ---- writers.c --------------------------------------------------------------------------- */

/* Makes the writers if a guard wants some. 0, or an error: there are fewer. When nbdkit begins. */
int writers_open(struct xseg_volume *volume, struct xseg_error *err);
void writers_close(void);

#endif
