/* no_tick - a reactor sleeps until it is rung, or until one of its ports wants to be called. It
 * does not wake at the tick of one second, which would hide a lost wake-up.
 *
 * The linker leads xseg_bell_wait(), by which reactors sleep, through here, in the programs for
 * which the Makefile says so (--wrap). After a lost wake-up the reactor there sleeps on.
 */
#ifndef TESTS_UNIT_NO_TICK_H
#define TESTS_UNIT_NO_TICK_H

#include <stdatomic.h>
#include <stdint.h>

#define NO_TICK_FOR_EVER (UINT64_MAX / 2)

extern _Atomic uint64_t no_tick_sleeps;		/* that a ring alone ends */
extern _Atomic uint32_t no_tick_asleep;		/* reactors that are in such a sleep */
/* Sleeps that were to be longer than a port of the reactor wished. None, where there is one
 * reactor. */
extern _Atomic uint64_t no_tick_overslept;

#endif
