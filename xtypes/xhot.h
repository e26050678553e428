/* xhot - which functions of the hit path are inlined into one piece, and which are kept out.
 *
 * A hit is a hundred small functions, one after the other. A tenth of its instructions were calls,
 * and registers saved around them. XHOT before a function makes the compiler inline every function
 * that it calls, and can see, down to the last. XCOLD keeps a big function out that is rarely
 * called; XAPART keeps a big one out that is not rare. None of them changes a meaning.
 */
#ifndef XTYPES_XHOT_H
#define XTYPES_XHOT_H

#define XHOT  __attribute__((flatten))
#define XCOLD __attribute__((noinline, cold))
#define XAPART __attribute__((noinline))

#endif
