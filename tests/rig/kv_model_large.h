/* kv_model_large - large values of the model of kvd (kv_model.c), in memory, and handles of them.
 *
 * Contract: one thread, that of the model. Handles are 1 and up; functions return a negative errno
 * as kv_wire.h has them.
 */
#ifndef TESTS_RIG_KV_MODEL_LARGE_H
#define TESTS_RIG_KV_MODEL_LARGE_H

#include <stdint.h>

#include "xseg/kv_wire.h"

#define KVMODEL_PIECE (256u << 10)

/* Of all values and handles. */
void kvmodel_large_forget(void);
/* All handles are gone, as after a loss of power. */
void kvmodel_large_lose(void);
/* A value of `total` bytes to come; 0: as many as are sent. */
int64_t kvmodel_large_begin(uint64_t total);
int kvmodel_large_part(uint64_t handle, uint64_t offset, const uint8_t *data, uint32_t bytes);
/* The value of the handle is `bytes` long, with these sums. Returns its number. */
int64_t kvmodel_large_commit(
	uint64_t handle, uint64_t bytes, const uint8_t *sums, uint32_t sums_bytes);
/* A key has no longer the value of that number. */
void kvmodel_large_gone(uint64_t nr);
int64_t kvmodel_large_hold(uint64_t nr);
int kvmodel_large_drop(uint64_t handle);
/* The data of a range, of a handle, or of a value by its number if that is 0. NULL: EBADF. */
const uint8_t *kvmodel_large_piece(
	uint64_t handle, uint64_t nr, uint64_t offset, uint32_t bytes);
/* Handles that are out, and values that are in memory. */
uint32_t kvmodel_large_handles(void);
uint32_t kvmodel_large_values(void);

#endif
