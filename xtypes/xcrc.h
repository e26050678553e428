/* xcrc - CRC-32C (Castagnoli), the checksum of iSCSI and of the processors' own instruction.
 *
 * xcrc32c(0, data, len) is the usual value: of "123456789" it is 0xe3069283. The checksum of two
 * pieces is that of the second, begun with that of the first: a seed is the checksum of data that
 * is thought of as standing in front.
 *
 * Contract: pure functions; any thread.
 */
#ifndef XTYPES_XCRC_H
#define XTYPES_XCRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t xcrc32c(uint32_t crc, const void *data, size_t len);
/* The same of data that is copied: of what stands in `to` then, whatever becomes of `from`. */
uint32_t xcrc32c_copy(uint32_t crc, void *to, const void *from, size_t len);
/* The same without the processor's instruction. */
uint32_t xcrc32c_table(uint32_t crc, const void *data, size_t len);

#endif
