/* no_tick - a reactor sleeps until it is rung, or a port of its wants to be called: not until the
 * tick of one second comes, which would hide that a wake-up was lost.
 *
 * The linker leads xseg_bell_wait(), by which reactors sleep, through here, in the programs for
 * which the Makefile says so (--wrap). There a wake-up that is lost is a reactor that sleeps on.
 */
#ifndef TESTS_UNIT_NO_TICK_H
#define TESTS_UNIT_NO_TICK_H

#include <stdatomic.h>
#include <stdint.h>

#define NO_TICK_FOR_EVER (UINT64_MAX / 2)

extern _Atomic uint64_t no_tick_sleeps;		/* that a ring alone ends */

#endif
