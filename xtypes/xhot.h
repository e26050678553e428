/* xhot - what of the way of a hit is one piece, and what is beside it.
 *
 * A hit is a hundred small functions, one after the other, and a tenth of its instructions were
 * calls, and registers saved around them. XHOT before a function has the compiler put all that it
 * calls, and can see, into it, down to the last; XCOLD keeps one out of that which is rarely
 * called, and big; XAPART one that is big, and not rare. None of them changes a meaning.
 */
#ifndef XTYPES_XHOT_H
#define XTYPES_XHOT_H

#define XHOT  __attribute__((flatten))
#define XCOLD __attribute__((noinline, cold))
#define XAPART __attribute__((noinline))

#endif
