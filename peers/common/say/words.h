/* words - data that the runtime keeps in a peer's own words of the segment (xseg_peer_user_set()),
 * for others to read.
 *
 *   PEER_WORD_STOPPING	the peer's generation: it was asked to stop, and is going to. Its process
 * 			writes it (peer_word_set_stopping()). If that dies the word stays, and
 * 			says nothing of the successor, which has another generation. 0 of a
 * 			stopped peer: it could not begin, and nobody has asked it to stop. The
 * 			word says nothing of a dead peer. Of a supervisor: it is stopping the
 * 			whole stack, or takes that back, until the peers that had stopped serve
 * 			again
 *   PEER_WORD_UNSYNCED	of a store: bytes that are not stable, as a sync of them has failed; 0:
 * 			none. After the process has ended, its last value holds until a
 * 			successor has counted anew. The runtime writes it when a peer begins and
 * 			leaves, for it is the reason to refuse a stop, and any process can write
 * 			here
 *   SUPERVISOR_WORD_FAILING  of a supervisor, in the place of PEER_WORD_UNSYNCED: a bit for
 *			each peer of the stack, by its place in the stack file. The bit says that
 *			its process ends soon after each start, and is started again
 *   SUPERVISOR_WORD_UNDONE  of a supervisor: how the last stop of the stack ended that was taken
 * 			back (peer_undone_pack()); 0: there was none
 *   SUPERVISOR_WORD_EXPORTS  of a supervisor: which exports of the stack it does not start: a bit
 *			for each, by its place in the stack file; those that are stopped in the
 *			lower half, those that have failed in the upper half. One that has both bits
 *			is served with other settings than the file has, until its server has ended
 *
 * Contract: any thread; one load.
 */
#ifndef PEERS_COMMON_WORDS_H
#define PEERS_COMMON_WORDS_H

#include <signal.h>

#include "xseg/xseg.h"

#define SUPERVISE_CANCEL_SIGNAL SIGUSR1 /* to a supervisor: it takes a stop back */
/* To a supervisor, with a peer's place in the stack as its value: the process of that peer, which
 * is about to be stopped by the sender, is started again when it has ended. The kernel queues such
 * a signal: of two that come together none is lost. */
#define SUPERVISE_RESTART_SIGNAL (SIGRTMIN + 1)
/* The upper half of the value, which is a pointer's, is the generation that the sender means, or 0.
 * The order is void if the peer has another one by then: it has been started since. */
static inline uint64_t supervise_restart_pack(uint32_t place, uint32_t generation)
{
	return (uint64_t)generation << 32 | place;
}

/* Or with supervise_order_pack() as its value: what is to be done with an export. */
enum export_order { EXPORT_START = 1, EXPORT_STOP, EXPORT_RESTART };

static inline int supervise_order_pack(enum export_order order, uint32_t index)
{
	return (int)order << 16 | (int)index;
}

/* behind these are the kind's own */
enum peer_word { PEER_WORD_STOPPING, PEER_WORD_UNSYNCED, PEER_NR_WORDS };
enum {
	SUPERVISOR_WORD_FAILING = PEER_WORD_UNSYNCED,
	SUPERVISOR_WORD_UNDONE = PEER_NR_WORDS,
	SUPERVISOR_WORD_EXPORTS
};

static inline void peer_word_set_stopping(struct xseg_peer *peer, bool stopping)
{
	xseg_peer_user_set(peer, PEER_WORD_STOPPING, stopping ? xseg_peer_generation(peer) : 0);
}

static inline bool peer_word_stopping(const struct xseg_peer_info *info)
{
	uint64_t w = info->user[PEER_WORD_STOPPING];

	return w != 0 && w == info->generation;
}

static inline uint64_t peer_word_unsynced(const struct xseg_peer_info *info)
{
	return info->user[PEER_WORD_UNSYNCED];
}

/* Why a stop was taken back: ECANCELED, somebody asked for it; EHOSTDOWN, that peer has gone and
 * others stand on it; any other, the error of that cache's FLUSH. */
struct peer_undone {
	int error;				/* an errno; 0: no stop was taken back */
	uint32_t peer;				/* its place in the segment */
	uint32_t nr;				/* how many were, until then */
};

static inline uint64_t peer_undone_pack(struct peer_undone u)
{
	return (uint64_t)u.nr << 32 | (uint64_t)(u.peer & 0xffff) << 16 | (uint16_t)u.error;
}

static inline struct peer_undone peer_word_undone(const struct xseg_peer_info *info)
{
	uint64_t w = info->user[SUPERVISOR_WORD_UNDONE];

	return (struct peer_undone){ .error = (int)(w & 0xffff),
				     .peer = w >> 16 & 0xffff,
				     .nr = (uint32_t)(w >> 32) };
}

/* Whether a supervisor has taken back a stop since `before` had been taken back. A supervisor that
 * leaves gives its words up, and they are 0 for a moment before its place is free: that is no
 * stop which was taken back. */
static inline bool peer_word_taken_back(const struct xseg_peer_info *supervisor, uint32_t before)
{
	struct peer_undone undone = peer_word_undone(supervisor);

	return undone.error && undone.nr != before && !peer_word_stopping(supervisor);
}

#endif
