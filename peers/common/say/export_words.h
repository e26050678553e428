/* export_words - what an NBD server says in the segment of each export that a stack file names, for
 * `xseg export list`, `xseg clients` and the supervisor to read.
 *
 * The server has a client of the segment for each export, of the name export_peer_name(). The
 * client is there while the server listens, and sends nothing. Its words:
 *
 *   XSEG_CLIENT_WORD_VOLUME   the volume, if it is open (xseg_client_volume_set())
 *   XSEG_CLIENT_WORD_SINCE    since when it is, or since when there is none; seconds since 1970
 *   EXPORT_WORD_CONNECTIONS   connections of the export
 *   EXPORT_WORD_SERVER	       what the supervisor knows the server by; another value: the server
 *			       was started with other settings than the stack file has
 *   EXPORT_WORD_READ_ONLY     1: clients cannot write
 *
 * Contract: any thread; one load.
 */
#ifndef PEERS_COMMON_EXPORT_WORDS_H
#define PEERS_COMMON_EXPORT_WORDS_H

#include <stdio.h>
#include <string.h>

#include "xseg/xseg.h"

#define EXPORT_PEER_PREFIX "export."

enum export_word {
	EXPORT_WORD_CONNECTIONS = XSEG_CLIENT_WORD_SINCE + 1,
	EXPORT_WORD_SERVER,
	EXPORT_WORD_READ_ONLY
};

static inline void export_peer_name(const char *name, char out[XSEG_NAME_MAX])
{
	snprintf(out, XSEG_NAME_MAX, EXPORT_PEER_PREFIX "%.55s", name);
}

/* The export that this client of a server is for; NULL: it is another client. */
static inline const char *export_of_peer(const struct xseg_peer_info *info)
{
	size_t len = sizeof(EXPORT_PEER_PREFIX) - 1;

	if (strcmp(info->kind, "client") != 0 || strncmp(info->name, EXPORT_PEER_PREFIX, len) != 0)
		return NULL;
	return info->name + len;
}

#endif
