/* volume_users - the users of a volume, for a command that removes the volume or makes it smaller.
 * Also: all clients, for a command that ends them.
 *
 * Contract: any thread; asks the kernel which processes are alive. It is a look, and no lock: a
 * client that opens the volume afterwards is not seen.
 */
#ifndef PEERS_COMMON_VOLUME_USERS_H
#define PEERS_COMMON_VOLUME_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xseg/xseg.h"

/* A process that has a volume open. */
struct volume_user {
	char program[XSEG_NAME_MAX];
	char export[XSEG_NAME_MAX];		/* of the stack that it serves it as; "": none */
	uint32_t pid;
	uint32_t clients;			/* its queues of the volume */
	uint64_t since_s;			/* since 1970: its first client; 0: not known */
};

/* Each process with a client of that volume, in the order of their first clients. At most `max` of
 * them are put into `user`; returns how many there are. */
uint32_t volume_users_get(struct xseg *seg, uint32_t volumed, uint32_t volume,
			  struct volume_user *user, uint32_t max);

/* " PROGRAM (pid N), export NAME (PROGRAM, pid N)": each process with a client that says so
 * (xseg_client_volume_set()), as many as there is room for; "" when there is none. */
void volume_users(struct xseg *seg, uint32_t volumed, uint32_t volume, char *out, size_t size);

/* The same without the clients of one member, as the caller's own. */
void volume_users_but(struct xseg *seg, uint32_t volumed, uint32_t volume, uint32_t member,
		      char *out, size_t size);

/* The same of each process that has any volume of this volumed open, or values of this kvd, but for
 * clients that are spared; spare: NULL for none. */
typedef bool volume_users_spare(const struct xseg_peer_info *client, void *arg);
void volume_users_of(struct xseg *seg, uint32_t volumed, volume_users_spare *spare, void *arg,
	char *out, size_t size);

/* The same of each process that has a client, and serves no peer with it. */
void volume_users_any(struct xseg *seg, char *out, size_t size);
/* The same without the servers of exports (export_words.h), which end with the stack. */
void volume_users_left(struct xseg *seg, char *out, size_t size);
/* " NAME (N), NAME (N)": each of those exports that has connections, and how many. */
void volume_users_of_exports(struct xseg *seg, char *out, size_t size);

#endif
