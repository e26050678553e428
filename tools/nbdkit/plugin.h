/* plugin.h - the declarations that the files of the plug-in share; nobody else includes it.
 *
 *   plugin.c    nbdkit's calls
 *   exports.c   what is served: options, opening, what the segment says of it
 *   lanes.c     the I/O of an export: a request of nbdkit's has a lane
 *   writers.c   small writes that do not go through nbdkit
 */
#ifndef XSEG_NBDKIT_PLUGIN_H
#define XSEG_NBDKIT_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/volume.h"

#define EXPORTS_MAX 32

struct lane;
struct writers;

/* xseg_volume_refresh() takes a port: connections that begin together take one. Each needs one that
 * was begun after it came, as the volume may have grown before. So those that come during one share
 * the next one, and none waits for more than two, however many there are. */
struct refresh {
	pthread_mutex_t lock;			/* guards all; nothing is taken under it */
	pthread_cond_t ended;			/* one has ended */
	bool runs;
	uint64_t begun, done;			/* how many */
	int rc;					/* of the last one that has ended */
};

/* Its settings do not change once nbdkit has read its command line. (export is a word of C++.) */
/* clang-format off */
struct export {
	const char *name;			/* NULL: it has none, and is alone */
	const char *volume_name, *volumed;
	unsigned nr_lanes;
	bool read_only;

	/* guards what follows; refresh.lock and the segment's locks are taken under it */
	pthread_mutex_t life;
	unsigned connections;
	struct xseg_peer *peer;			/* says in the segment how it is; or NULL */

	/* set under `life`, and not while there are connections; NULL: there is no such volume */
	struct xseg_volume *volume;
	struct lane *lanes;
	struct writers *writers;
	struct refresh refresh;

	/* guards `idle` and the lanes' next; held for a few instructions, nothing is taken under
	 * it */
	pthread_mutex_t lock;
	pthread_cond_t put;			/* one was put back */
	struct lane *idle;

	_Atomic int failing; /* the last I/O's error, so that what goes on failing is said once */
};
/* clang-format on */

/* ---- exports.c --------------------------------------------------------------------------- */

/* As nbdkit's callbacks. */
int exports_config(const char *key, const char *value);
int exports_config_complete(void);
int exports_get_ready(void);
int exports_after_fork(void);
void exports_cleanup(void);
extern const char exports_config_help[];

/* The export of that name, "" for the only one; or NULL. */
struct export *exports_find(const char *name);
/* n = 0, 1 ...; NULL: there are no more. */
struct export *exports_at(unsigned n);
/* Its volume is open. */
bool export_is_there(struct export *e);
/* A connection begins: opens the volume if it is not open, and asks for its size. False: it cannot;
 * nbdkit_error() has said why. */
bool export_begin(struct export *e);
void export_end(struct export *e);
const char *exports_segment(void);
uint32_t exports_direct(void);

/* ---- lanes.c ----------------------------------------------------------------------------- */

/* Of an open volume. 0, or -1: nbdkit_error() has said why. */
int lanes_open(struct export *e);
void lanes_close(struct export *e);
/* Does it. The result, or -1 after nbdkit_set_error(). flags: nbdkit's. */
int64_t lane_run(struct export *e, struct xseg_io io, const char *what, uint32_t flags);
/* Into *err, where nothing is there that says it better. NULL: the volume is not open. */
const char *export_why(struct xseg_volume *volume, int64_t rc, struct xseg_error *err);
/* Prints an error that was not the last one, too; returns it as an errno of the protocol. */
int export_error(struct export *e, const struct xseg_io *io, const char *what, int64_t rc,
	struct xseg_error *err);
void export_worked(struct export *e);

/* ---- writers.c --------------------------------------------------------------------------- */

/* Makes the export's writers if a guard wants some. 0, or an error: there are fewer. */
int writers_open(struct export *e, struct xseg_error *err);
void writers_close(struct export *e);
/* The connection of this thread is one of that export's: its small writes go to it, if it may
 * write. True: a guard was told. */
bool writers_bind(struct export *e);

#endif
