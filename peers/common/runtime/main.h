/* main - the common part of the peers' programs: options, attaching, signals, leaving.
 *
 * Signals
 *   SIGTERM, SIGINT              stop all peers of the process in order, top down, with a line of
 *                                progress a second
 *   SIGINT while they stop       leaves at once, as a kill would
 *   SIGRTMIN with a peer's       stops that peer alone. The supervisor uses it: it needs no memory
 *   index in the segment as      of the segment, and works before the peer serves
 *   its value
 *
 * Exit codes
 *   0   stopped in order
 *   1   failed
 *   2   wrong usage
 *   3   left at once; the successor has work to do
 *   4   refused: no such segment; the name, or the thing that the peer is to serve, is in use; or
 *       something would be lost
 */
#ifndef PEERS_COMMON_MAIN_H
#define PEERS_COMMON_MAIN_H

#include <signal.h>

#include "peers/common/runtime/peer.h"

#define MAIN_STOP_SIGNAL SIGRTMIN

enum main_exit { MAIN_DONE, MAIN_FAILED, MAIN_USAGE, MAIN_LEFT, MAIN_REFUSED };

/* A peer's program: parses, attaches, serves, returns the exit code. */
int peer_main(const struct peer_class *cls, int argc, char **argv);

/* Serves peers (made, with their options set, bottom up) in this process until they have stopped;
 * returns the exit code. Errors have been printed. Call it in the only thread, after the last fork.
 * */
int main_serve(struct peer **peers, unsigned nr, const char *segment, const char *cpus);

/* Writes the segment's name that holds without -s: hint_default_segment(). */
void main_default_segment(char *segment);
/* Attaches; prints the reason and the remedy, and returns an exit code, when it cannot. Waits for
 * locks of the segment end when a signal asks to stop (main_block_signals()), and are told in the
 * name of `who`, which lives on. */
int main_attach(const char *who, const char *segment, unsigned flags, struct xseg **seg);
/* Blocks what main_serve() takes by signalfd, so that nothing is lost before, and ignores what a
 * failed write(2) says as well. Call it first. */
void main_block_signals(sigset_t *blocked);

#endif
