/* hint - the instructions in a message: commands to type, with the segment that they are for and
 * its owner, and limits to raise.
 *
 * A message says 'xseg WORDS', as if there were one segment, of the reader. The program that prints
 * it knows the segment, and whether xseg would take that one by default. The owner is that of
 * $XSEG_OWNER, which --owner sets, too (owner.h). The unit of a service sets it, since root reads
 * what the service's user writes.
 *
 * Contract: any thread; reads the environment.
 */
#ifndef PEERS_COMMON_HINT_H
#define PEERS_COMMON_HINT_H

#include <stddef.h>

/* The segment that programs take without -s: $XSEG_SEGMENT, else the only one of this machine, else
 * xseg. The text stays until this thread's next call. */
const char *hint_default_segment(void);
/* The name that a new segment gets without -s: $XSEG_SEGMENT, else xseg. */
const char *hint_segment_to_make(void);

/* As hint_name_segment(), for who is to type the commands where he has called this program: as they
 * are, where xseg would take that segment by itself; without a -s that names it, too. */
const char *hint_for_shell(char *buf, size_t size, const char *text, const char *segment);

/* Copies text, with "-s SEGMENT" in each command that has none and is not about --help, and with
 * "--owner USER" before it if $XSEG_OWNER is set. The copy is cut off where buf ends. Returns buf.
 */
const char *hint_name_segment(char *buf, size_t size, const char *text, const char *segment);

/* The same with "--volumed NAME", in each command that is about volumes and has none. */
const char *hint_name_volumed(char *buf, size_t size, const char *text, const char *volumed);

/* Of an errno that says something of the process's limits or the machine's: which is to be raised.
 * NULL of all others. */
const char *hint_of_limit(int rc);
/* What to do if a segment that is there cannot be attached to; NULL: something else is wrong. */
const char *hint_of_attach(int rc);

#endif
