/* honest - a client that keeps to the rules, beside an evil one, in a stack of memd, cached and
 * perhaps volumed. It reads back its own writes, whatever the evil client does within its own.
 *
 * Contract: rig.h's. One request at a time, of one block. "Believes": the answer must be right;
 * else it only need come.
 */
#ifndef TESTS_FUZZ_HONEST_H
#define TESTS_FUZZ_HONEST_H

#include "tests/fuzz/evil.h"

/* Begins: the segment, the peers, both clients, a volume for each. */
void honest_stack(bool volumed, const char *cached_options, struct evil *e);
/* Takes an answer, sends a write or a read. */
void honest_act(struct input *in, bool believes);
/* All that it wrote is there. Peers must serve. */
void honest_verify(void);

#endif
