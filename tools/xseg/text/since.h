/* since - a moment in words for people: "since 18:03:07 (12s)".
 *
 * Contract: any thread; reads the system's date.
 */
#ifndef TOOLS_XSEG_SINCE_H
#define TOOLS_XSEG_SINCE_H

#include <stdint.h>

#define SINCE_TEXT 64

/* since_s: seconds since 1970. A moment of another day has its date, too. Returns text. */
const char *since_text(uint64_t since_s, char text[SINCE_TEXT]);
/* The same of a moment that is ms milliseconds ago. */
const char *since_ago_text(uint64_t ms, char text[SINCE_TEXT]);

#endif
