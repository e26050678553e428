/* kv_item - a key of a store, and what is known of its value, as JSON.
 *
 * Contract: pure functions; the caller owns the result.
 */
#ifndef TOOLS_XSEG_KV_ITEM_H
#define TOOLS_XSEG_KV_ITEM_H

#include <jansson.h>

#include "xseg/kv.h"

/* An object with the key alone. */
json_t *kv_item_key_json(const void *key, uint32_t bytes);
json_t *kv_item_json(const struct xseg_kv_item *item, uint64_t value_bytes);

#endif
