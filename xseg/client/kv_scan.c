/* kv_scan - what the answers to EXISTS, SCAN and BACKUP hold.
 *
 * Entries are copied to the caller's memory and checked there, once. So xseg_kv_next() and
 * xseg_kv_next_record() need no checks.
 *
 * Invariants
 *   N1  Entries lie within the answer, and fill it to its end; keys and values lie within theirs.
 *       What does not is -EPROTO, and the caller sees none of it.
 *   N2  The sum of each record of a backup is checked: it may be kept for years.
 *
 * Contract: the queue's thread. Nothing here blocks, allocates or sends.
 */
#include <errno.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xcrc.h"

/* ---- EXISTS and SCAN --------------------------------------------------------------------- */

int64_t xs_kv_take_exists(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct kv_info_of_key info;

	if (s->r->result < (int64_t)sizeof(info))
		return -EPROTO;
	xs_kv_answer_copy(q, s, 0, &info, sizeof(info));
	s->io->item.version = info.version;
	s->io->item.expiry = info.expiry;
	return 0;
}

static uint64_t entry_bytes(const struct kv_scan_entry *e)
{
	return (sizeof(*e) + (uint64_t)e->key_bytes + 7) / 8 * 8;
}

/* So many entries, which end within `bytes`. */
static bool entries_fit(const uint8_t *at, uint32_t nr, uint64_t bytes)
{
	struct kv_scan_entry e;

	for (; nr; nr--) {
		if (bytes < sizeof(e))
			return false;
		memcpy(&e, at, sizeof(e));
		if (e.key_bytes == 0 || e.key_bytes > KV_KEY_MAX ||
			sizeof(e) + (uint64_t)e.key_bytes > bytes)
			return false;
		at += entry_bytes(&e);
		bytes -= entry_bytes(&e) < bytes ? entry_bytes(&e) : bytes;
	}
	return bytes == 0;
}

int64_t xs_kv_take_scan(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_item *item = &s->io->item;
	struct kv_scan_head head;
	uint32_t bytes;

	if (s->r->result < (int64_t)sizeof(head))
		return -EPROTO;
	xs_kv_answer_copy(q, s, 0, &head, sizeof(head));
	if (head.bytes < sizeof(head) || head.bytes > s->r->result ||
		head.bytes > s->io->own.asked * KV_PAGE)
		return -EPROTO;
	bytes = head.bytes - (uint32_t)sizeof(head);
	xs_kv_answer_copy(q, s, sizeof(head), item->value, bytes);
	if (!entries_fit(item->value, head.nr, bytes))
		return -EPROTO;
	s->io->cursor = head.next;
	return bytes;
}

int xseg_kv_next(const struct xseg_kv_io *io, size_t *at, struct xseg_kv_entry *entry)
{
	const uint8_t *from = (const uint8_t *)io->item.value + *at;
	struct kv_scan_entry e;

	if (io->result <= 0 || *at >= (uint64_t)io->result)
		return 0;
	memcpy(&e, from, sizeof(e));
	*entry = (struct xseg_kv_entry){ .key = from + sizeof(e), .value_bytes = e.value_bytes,
		.version = e.version, .key_bytes = e.key_bytes, .expiry = e.expiry,
		.client = e.client };
	*at += entry_bytes(&e);
	return 1;
}

/* ---- BACKUP ------------------------------------------------------------------------------ */

static uint64_t record_bytes(const struct kv_backup_entry *e)
{
	return (sizeof(*e) + (uint64_t)e->key_bytes + e->value_bytes + 7) / 8 * 8;
}

/* N1, N2 */
static bool record_ok(const uint8_t *at, uint64_t bytes, struct kv_backup_entry *e)
{
	if (bytes < sizeof(*e))
		return false;
	memcpy(e, at, sizeof(*e));
	if (e->key_bytes > KV_KEY_MAX || record_bytes(e) > bytes)
		return false;
	if (e->flags & KV_BACKUP_LARGE && e->value_bytes < sizeof(struct kv_large))
		return false;
	return !(e->flags & KV_BACKUP_SET) ||
	       (e->key_bytes && xcrc32c(0, at + sizeof(*e), e->key_bytes + e->value_bytes) ==
					 e->data_crc);
}

int64_t xs_kv_take_backup(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_item *item = &s->io->item;
	struct kv_backup_head head;
	struct kv_backup_entry e;
	uint32_t bytes, at = 0, nr;

	if (s->r->result < (int64_t)sizeof(head))
		return -EPROTO;
	xs_kv_answer_copy(q, s, 0, &head, sizeof(head));
	if (head.bytes < sizeof(head) || head.bytes > s->r->result ||
		head.bytes > s->io->own.asked * KV_PAGE)
		return -EPROTO;
	bytes = head.bytes - (uint32_t)sizeof(head);
	xs_kv_answer_copy(q, s, sizeof(head), item->value, bytes);
	for (nr = 0; nr < head.nr; nr++, at += (uint32_t)record_bytes(&e))
		if (!record_ok((uint8_t *)item->value + at, bytes - at, &e))
			return -EPROTO;
	if (at != bytes)
		return -EPROTO;
	s->io->cursor = head.next;
	item->number = head.bad;
	return bytes;
}

int xseg_kv_next_record(const struct xseg_kv_io *io, size_t *at, struct xseg_kv_record *record)
{
	const uint8_t *from = (const uint8_t *)io->item.value + *at, *value;
	struct kv_backup_entry e;
	struct kv_large large;

	if (io->result <= 0 || *at >= (uint64_t)io->result)
		return 0;
	memcpy(&e, from, sizeof(e));
	value = from + sizeof(e) + e.key_bytes;
	*record = (struct xseg_kv_record){ .key = from + sizeof(e), .value = value,
		.identity = { e.identity[0], e.identity[1] }, .sequence = e.sequence,
		.version = e.version, .key_bytes = e.key_bytes, .value_bytes = e.value_bytes,
		.expiry = e.expiry, .client = e.client, .set = (e.flags & KV_BACKUP_SET) != 0 };
	if (e.flags & KV_BACKUP_LARGE) {
		memcpy(&large, value, sizeof(large));
		record->value = NULL;
		record->value_bytes = large.bytes;
		record->list = value;
		record->list_bytes = e.value_bytes;
	}
	*at += record_bytes(&e);
	return 1;
}
