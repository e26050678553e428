/* kv_item - see kv_item.h. */
#include "tools/xseg/flow/kv_item.h"

#include "tools/xseg/base/out.h"
#include "tools/xseg/text/key_text.h"

json_t *kv_item_key_json(const void *key, uint32_t bytes)
{
	json_t *j = json_object();

	key_text_json(j, "key", key, bytes);
	return j;
}

json_t *kv_item_json(const struct xseg_kv_item *item, uint64_t value_bytes)
{
	json_t *j = kv_item_key_json(item->key, item->key_bytes);

	out_set_int(j, "value_bytes", value_bytes);
	out_set_int(j, "version", item->version);
	out_set_int(j, "expiry_s", item->expiry);
	out_set_int(j, "client_flags", item->client);
	return j;
}
