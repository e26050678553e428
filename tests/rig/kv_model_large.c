/* kv_model_large - see kv_model_large.h. A value stays in memory while a key has it or a handle
 * holds it. */
#include "tests/rig/kv_model_large.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/kv_rig.h"
#include "xtypes/xcrc.h"

#define VALUES	64u
#define HANDLES 32u

struct value {
	uint8_t *data;				/* NULL: the place is free */
	uint64_t room, bytes;
	bool named;				/* a key has it */
};

static struct value values[VALUES];
static struct {
	uint32_t value;				/* its number; 0: the place is free */
	bool puts;
	uint64_t total;
} handles[HANDLES];
static _Atomic uint32_t nr_handles, nr_values;

static struct value *value_of(uint64_t nr)
{
	return nr && nr <= VALUES && values[nr - 1].data ? &values[nr - 1] : NULL;
}

/* Frees the value if nothing needs it. */
static void let_go(uint64_t nr)
{
	struct value *v = value_of(nr);

	for (uint32_t i = 0; i < HANDLES; i++)
		if (handles[i].value == nr)
			return;
	if (!v || v->named)
		return;
	free(v->data);
	v->data = NULL;
	atomic_fetch_sub(&nr_values, 1);
}

static int64_t handle_of(uint64_t nr, bool puts, uint64_t total)
{
	for (uint32_t i = 0; i < HANDLES; i++)
		if (!handles[i].value) {
			handles[i].value = (uint32_t)nr;
			handles[i].puts = puts;
			handles[i].total = total;
			atomic_fetch_add(&nr_handles, 1);
			return i + 1;
		}
	return -EBUSY;
}

static bool is_handle(uint64_t handle)
{
	return handle && handle <= HANDLES && handles[handle - 1].value;
}

void kvmodel_large_lose(void)
{
	for (uint64_t i = 1; i <= HANDLES; i++)
		if (is_handle(i))
			kvmodel_large_drop(i);
}

void kvmodel_large_forget(void)
{
	kvmodel_large_lose();
	for (uint32_t i = 0; i < VALUES; i++)
		if (values[i].data)
			kvmodel_large_gone(i + 1);
}

int64_t kvmodel_large_begin(uint64_t total)
{
	for (uint32_t i = 0; i < VALUES; i++) {
		struct value *v = &values[i];

		if (v->data)
			continue;
		*v = (struct value){ .room = total ? total : KVMODEL_PIECE };
		v->data = calloc(1, v->room + KV_PAGE);
		atomic_fetch_add(&nr_values, 1);
		return handle_of(i + 1, true, total);
	}
	return -ENOSPC;
}

int kvmodel_large_part(uint64_t handle, uint64_t offset, const uint8_t *data, uint32_t bytes)
{
	struct value *v;

	if (!is_handle(handle) || !handles[handle - 1].puts)
		return -EBADF;
	v = value_of(handles[handle - 1].value);
	if (offset % KVMODEL_PIECE || bytes > KVMODEL_PIECE || bytes % KV_PAGE ||
		(handles[handle - 1].total && offset + bytes > v->room + KV_PAGE - 1))
		return -EINVAL;
	if (offset + bytes > v->room) {
		v->data = realloc(v->data, offset + bytes + KV_PAGE);
		assert_non_null(v->data);
		v->room = offset + bytes;
	}
	memcpy(v->data + offset, data, bytes);
	return 0;
}

int64_t kvmodel_large_commit(
	uint64_t handle, uint64_t bytes, const uint8_t *sums, uint32_t sums_bytes)
{
	uint64_t nr = (bytes + KVMODEL_PIECE - 1) / KVMODEL_PIECE, number;
	struct value *v;
	uint32_t crc;

	if (!is_handle(handle) || !handles[handle - 1].puts)
		return -EBADF;
	number = handles[handle - 1].value;
	v = value_of(number);
	if (nr * sizeof(crc) != sums_bytes || bytes > v->room)
		return -EINVAL;
	for (uint64_t i = 0, at = 0; i < nr; i++, at += KVMODEL_PIECE) {
		memcpy(&crc, sums + i * sizeof(crc), sizeof(crc));
		if (crc != xcrc32c(0, v->data + at,
				   bytes - at < KVMODEL_PIECE ? bytes - at : KVMODEL_PIECE))
			return -EINVAL;
	}
	v->bytes = bytes;
	v->named = true;
	kvmodel_large_drop(handle);
	return (int64_t)number;
}

void kvmodel_large_gone(uint64_t nr)
{
	struct value *v = value_of(nr);

	if (v)
		v->named = false;
	let_go(nr);
}

int64_t kvmodel_large_hold(uint64_t nr)
{
	return value_of(nr) ? handle_of(nr, false, 0) : -EINVAL;
}

int kvmodel_large_drop(uint64_t handle)
{
	uint64_t nr;

	if (!is_handle(handle))
		return -EBADF;
	nr = handles[handle - 1].value;
	handles[handle - 1].value = 0;
	atomic_fetch_sub(&nr_handles, 1);
	let_go(nr);
	return 0;
}

const uint8_t *kvmodel_large_piece(
	uint64_t handle, uint64_t nr, uint64_t offset, uint32_t bytes)
{
	const struct value *v;

	if (handle && (!is_handle(handle) || handles[handle - 1].puts))
		return NULL;
	v = value_of(handle ? handles[handle - 1].value : nr);
	return v && offset < v->bytes && offset + bytes < v->bytes + KV_PAGE ? v->data + offset
									     : NULL;
}

uint32_t kvmodel_large_handles(void)
{
	return nr_handles;
}

uint32_t kvmodel_large_values(void)
{
	return nr_values;
}
