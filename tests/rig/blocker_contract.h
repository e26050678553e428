/* blocker_contract - the contract of every blocker, however it keeps its objects: one table of
 * tests, for the test program of each blocker.
 */
#ifndef TESTS_UNIT_BLOCKER_CONTRACT_H
#define TESTS_UNIT_BLOCKER_CONTRACT_H

#include "tests/rig/blocker_rig.h"

struct contract {
	/* A new, empty store of so many ports. */
	void (*open)(struct rig *g, uint32_t ports);
	void (*close)(struct rig *g);
	/* Lets the store take in the n requests that were sent, and complete none. */
	void (*hold)(struct rig *g, uint32_t n);
	bool thin;			/* INFO answers the end of the data, not of writes */
	uint32_t align;			/* half of the random ranges are in units of it */
	uint32_t nr_random, nr_torn;	/* steps of the long tests with LONG=1 */
};

/* Runs the table; how many failed. */
int contract_run(const struct contract *store);

/* One of the tests, for a store that is opened in other ways as well: every op against a plain
 * array, aligned and not, with kills in between. It prints its seed. */
void contract_random_ops(struct rig *g, uint32_t steps, uint32_t align);

#endif
