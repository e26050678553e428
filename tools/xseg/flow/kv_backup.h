/* kv_backup - all records of a store in one file, and back: `xseg kv backup` and `xseg kv restore`.
 *
 * The file is a struct of 16 bytes, then a header with key and value for each record, then a header
 * that says how many there were. Each header has a CRC-32C over itself, key and value. Records
 * stand in any order. Of those with one identity the highest sequence counts, and it may be a
 * deletion.
 *
 * A large value is a LARGE record with its length in place of the value, and behind it a PIECE for
 * each part of it, in their order. A VOID in place of a PIECE says that the rest is damaged: then
 * the record does not count.
 *
 * Contract: one thread. Functions report their errors (tool.h) and return an exit code.
 *
 * Invariants
 *   B1  A file without its last header is not whole, and nothing of it is restored.
 *   B2  What is restored was checked before the first value is put: large values, too.
 */
#ifndef TOOLS_XSEG_KV_BACKUP_H
#define TOOLS_XSEG_KV_BACKUP_H

#include "tools/xseg/flow/kv_store.h"

struct kv_backup_done {
	uint64_t records, bytes;
	uint64_t bad;				/* backup: records that did not verify */
	uint64_t void_records;			/* of these, large ones with a damaged piece */
	uint64_t keys, expired;			/* restore: that were put, that were left out */
};

int kv_backup_write(
	struct kv_store *s, const char *file, bool force, struct kv_backup_done *done);
int kv_backup_restore(struct kv_store *s, const char *file, struct kv_backup_done *done);

#endif
