/* kill - kill points in the process of a peer: finds the table that says where it dies. See
 * xtypes/xkill.h.
 *
 * Contract: once, before the process attaches. Only a build with -DXSEG_KILL_POINTS calls it.
 * XSEG_KILL_TABLE is the name of the file with the table; without it nothing kills.
 */
#ifndef PEERS_COMMON_KILL_H
#define PEERS_COMMON_KILL_H

/* For a process whose first peer is of that kind. */
void kill_points_open(const char *kind);

#endif
