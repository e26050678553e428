/* cache_text - a cache's status, as JSON for scripts and as text for people.
 *
 * Contract: pure but for cache_text_print() and cache_text_print_troubles(), which write to stdout.
 */
#ifndef TOOLS_XSEG_CACHE_TEXT_H
#define TOOLS_XSEG_CACHE_TEXT_H

#include <jansson.h>

#include "xseg/xseg.h"

/* "key=value" lines to an object: numbers become integers, "a.b" a member of the object "a". Every
 * field that scripts may ask for is there. The text is cut up. */
json_t *cache_text_to_json(char *text, struct xseg *seg, const struct xseg_peer_info *cache);
/* The same from the counters in the segment, for a cache that is not served. NULL: no memory. */
json_t *cache_text_from_stats(struct xseg *seg, const struct xseg_peer_info *cache);
/* Sets one field: a number becomes an integer, "a.b" a member of the object "a". */
void cache_text_put(json_t *j, const char *key, const char *value);
/* Sets one counter of a cache's statistics as the status has it: "a.b" in the object "a", a policy
 * by its name. */
void cache_text_put_counter(json_t *j, const char *key, uint64_t value);
/* For people. */
void cache_text_print(const json_t *status);
/* Lines, each after `before`, of what the store fails now, or has no room for. */
void cache_text_print_troubles(const json_t *status, const char *before);
/* In a word: of one that no process serves, whether it was stopped or died. */
const char *cache_text_state(const json_t *status);

#define CACHE_PROMISE_MAX (2 * XSEG_NAME_MAX + 160)

/* What a policy of a cache above `below` promises to new writes, in words; "" for an unknown
 * one. */
const char *cache_text_promise(const char *policy, const char *below, char text[CACHE_PROMISE_MAX]);
/* Adds to a promise what does not hold it: what was acknowledged under another policy, or what is
 * dirty, of a cache or of one volume. */
void cache_text_except(const json_t *status, char text[CACHE_PROMISE_MAX]);
/* The promise of a whole cache as it is now, with what does not hold it: off the path it promises
 * nothing. */
const char *cache_text_promise_now(const json_t *status, char text[CACHE_PROMISE_MAX]);

#endif
