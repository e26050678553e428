/* alog_rig_store - the store of alog_rig: it answers in any order, forgets data that was not
 * flushed, and fails by plan.
 *
 * Each change is an operation in a list. A FLUSH makes stable those operations that were answered
 * when it arrived, and no others. A loss of power keeps any subset of the rest, sector by sector.
 * A FLUSH that fails loses some of the operations that it should have covered, as a kernel does;
 * and each later one fails until their objects are deleted.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/alog_rig_inside.h"

#define SECTOR 512u

static uint32_t object_bytes(const struct ar *a)
{
	return a->cfg.zone_bytes > a->cost.scratch_bytes - a->cfg.zone_bytes
		       ? a->cfg.zone_bytes
		       : (uint32_t)a->cost.scratch_bytes - a->cfg.zone_bytes;
}

struct ar_object *ar_find(struct ar *a, const char *target, bool make)
{
	struct ar_object *o;

	for (uint32_t i = a->nr_objects; i > 0; i--)
		if (strcmp(a->object[i - 1].name, target) == 0)
			return &a->object[i - 1];
	if (!make)
		return NULL;
	if (a->nr_objects == AR_OBJECTS)
		ar_fail(a, "too many objects for the rig", AR_OBJECTS);
	o = &a->object[a->nr_objects++];
	snprintf(o->name, sizeof(o->name), "%s", target);
	return o;
}

struct ar_object *ar_zone(struct ar *a, uint64_t zone)
{
	char name[XSEG_TARGET_MAX];

	snprintf(name, sizeof(name), "+%s:%016llx", a->cfg.prefix, (unsigned long long)zone);
	return ar_find(a, name, true);
}

static uint8_t *page_at(struct ar *a, uint32_t page)
{
	uint8_t *from[] = { a->arena, a->scratch, a->client };

	return from[page >> 20] + (size_t)(page & 0xfffff) * ALOG_PAGE;
}

const void *ar_page_at(struct ar *a, uint32_t page)
{
	return page_at(a, page);
}

static void apply(struct ar *a, uint8_t **image, const struct ar_op *op, const uint8_t *keep)
{
	if (!op->data) {
		free(*image);
		*image = NULL;
		return;
	}
	if (!*image) {
		*image = calloc(1, object_bytes(a));
		assert(*image);
	}
	for (uint32_t s = 0; s < op->size / SECTOR; s++)
		if (!keep || keep[s])
			memcpy(*image + op->offset + s * SECTOR, op->data + s * SECTOR, SECTOR);
}

/* Operations at the front of the list that are stable go into the stable images. */
static void fold(struct ar *a)
{
	uint32_t move;

	while (a->first_op < a->nr_ops && a->op[a->first_op].durable &&
		a->op[a->first_op].answered) {
		struct ar_op *op = &a->op[a->first_op++];

		if (!op->lost)
			apply(a, &op->object->durable, op, NULL);
		free(op->data);
		op->data = NULL;
	}
	if (a->first_op < AR_OPS / 2 && a->nr_ops < AR_OPS)
		return;
	move = a->first_op & ~7u;
	for (uint32_t i = 0; i < a->nr_out; i++) {	/* numbers move with the list */
		struct ar_out *out = &a->out[i];

		if (out->op)
			out->op -= move;
		if (!out->covers)
			continue;
		memmove(out->covered, out->covered + move / 8, sizeof(out->covered) - move / 8);
		out->covers -= move;
	}
	memmove(a->op, a->op + move, (a->nr_ops - move) * sizeof(a->op[0]));
	a->nr_ops -= move;
	a->first_op -= move;
}

static struct ar_op *new_op(struct ar *a, struct ar_out *out)
{
	struct alog_io *io = out->io;
	struct ar_op *op;

	if (a->nr_ops == AR_OPS)
		ar_fail(a, "too many operations for the rig", a->first_op);
	op = &a->op[a->nr_ops++];
	out->op = a->nr_ops;
	*op = (struct ar_op){ .object = ar_find(a, io->target, true), .offset = io->offset,
		.size = io->size };
	if (io->op != XSEG_OP_WRITE)
		return op;
	op->data = malloc(io->size);
	assert(op->data && io->offset % ALOG_PAGE == 0 && io->size == io->nr_pages * ALOG_PAGE &&
		io->offset + io->size <= object_bytes(a));
	for (uint32_t i = 0; i < io->nr_pages; i++)
		memcpy(op->data + i * ALOG_PAGE, page_at(a, io->page[i]), ALOG_PAGE);
	return op;
}

static void do_change(struct ar *a, struct ar_out *out)
{
	struct ar_op *op = new_op(a, out);

	apply(a, &op->object->now, op, NULL);
	if (!op->data)
		op->object->bad = false;
	op->durable = out->io->fua;
	a->nr_writes += out->io->op == XSEG_OP_WRITE;
	a->nr_fua += out->io->fua;
	a->nr_deletes += out->io->op == XSEG_OP_DELETE;
}

static void fill_page(uint8_t *page, uint64_t content)
{
	for (uint32_t i = 0; i < ALOG_PAGE; i += sizeof(content))
		memcpy(page + i, &content, sizeof(content));
}

void ar_write_page(struct ar *a, const char *target, uint64_t content)
{
	struct ar_op *op;

	if (a->nr_ops == AR_OPS)
		ar_fail(a, "too many operations for the rig", a->first_op);
	op = &a->op[a->nr_ops++];
	*op = (struct ar_op){ .object = ar_find(a, target, true), .size = ALOG_PAGE,
		.data = malloc(ALOG_PAGE), .answered = true };
	assert(op->data);
	fill_page(op->data, content);
	apply(a, &op->object->now, op, NULL);
}

bool ar_has_page(struct ar *a, const char *target, uint64_t content)
{
	const struct ar_object *o = ar_find(a, target, false);
	uint8_t page[ALOG_PAGE];

	fill_page(page, content);
	return o && o->now && memcmp(o->now, page, ALOG_PAGE) == 0;
}

/* FLUSH: what it covers is settled when it arrives. */
static void cover(struct ar *a, struct ar_out *out)
{
	out->covers = a->nr_ops;
	memset(out->covered, 0, sizeof(out->covered));
	for (uint32_t i = a->first_op; i < a->nr_ops; i++)
		if (a->op[i].answered)
			out->covered[i / 8] |= (uint8_t)(1 << i % 8);
}

void ar_arrive(struct ar *a, struct alog_io *io)
{
	struct ar_out *out = &a->out[a->nr_out++];

	assert(a->nr_out <= AR_IOS);
	*out = (struct ar_out){ .io = io };
	if (io->op == XSEG_OP_FLUSH)
		cover(a, out);
}

/* ---- effects ---- */

static int64_t do_read(struct ar *a, const struct alog_io *io)
{
	const struct ar_object *o = ar_find(a, io->target, false);

	if (a->fail_read && ar_random(a, 1000) < a->fail_read)
		return -EIO;
	if (io->op == XSEG_OP_INFO)
		return o && o->now ? (int64_t)object_bytes(a) : -ENOENT;
	if ((!o || !o->now) && ar_random(a, 2))
		return -ENOENT;
	for (uint32_t i = 0; i < io->nr_pages; i++)
		if (o && o->now)
			memcpy(page_at(a, io->page[i]), o->now + io->offset + i * ALOG_PAGE,
				ALOG_PAGE);
		else
			memset(page_at(a, io->page[i]), 0, ALOG_PAGE);
	return io->size;
}

static bool any_is_bad(const struct ar *a)
{
	for (uint32_t i = 0; i < a->nr_objects; i++)
		if (a->object[i].bad)
			return true;
	return false;
}

static bool is_deleted_later(const struct ar *a, uint32_t nr)
{
	for (uint32_t i = nr + 1; i < a->nr_ops; i++)
		if (a->op[i].object == a->op[nr].object && !a->op[i].data)
			return true;
	return false;
}

/* The range of an operation is again what a loss of power would leave. */
static void revert(struct ar *a, const struct ar_op *lost)
{
	struct ar_object *o = lost->object;
	uint32_t from = lost->offset, to = from + lost->size;

	if (!o->now)
		return;
	if (o->durable)
		memcpy(o->now + from, o->durable + from, lost->size);
	else
		memset(o->now + from, 0, lost->size);
	for (uint32_t i = a->first_op; i < a->nr_ops; i++) {
		const struct ar_op *op = &a->op[i];
		uint32_t low = op->offset > from ? op->offset : from,
			 high = op->offset + op->size < to ? op->offset + op->size : to;

		if (op->object == o && op->data && op->durable && !op->lost && low < high)
			memcpy(o->now + low, op->data + (low - op->offset), high - low);
	}
}

/* Some objects lose all that is not stable yet; reads find what is stable. */
static void lose_some(struct ar *a, const struct ar_out *out)
{
	for (uint32_t i = a->first_op; i < out->covers; i++) {
		struct ar_op *op = &a->op[i];

		if (!(out->covered[i / 8] >> i % 8 & 1) || op->durable || !op->data || op->lost ||
			strstr(op->object->name, "head") || ar_random(a, 4) ||
			is_deleted_later(a, i))
			continue;
		op->object->bad = a->lossy = true;
		for (uint32_t j = a->first_op; j < a->nr_ops; j++)
			if (a->op[j].object == op->object && !a->op[j].durable)
				a->op[j].lost = true;
		for (uint32_t j = a->first_op; j < a->nr_ops; j++)
			if (a->op[j].object == op->object && a->op[j].lost)
				revert(a, &a->op[j]);
	}
}

static int64_t do_flush(struct ar *a, struct ar_out *out)
{
	a->nr_flushes++;
	if (a->fail_flush && ar_random(a, 1000) < a->fail_flush) {
		lose_some(a, out);
		return -EIO;
	}
	if (any_is_bad(a))
		return -EIO;
	for (uint32_t i = a->first_op; i < out->covers; i++)
		if (out->covered[i / 8] >> i % 8 & 1)
			a->op[i].durable = true;
	fold(a);
	return 0;
}

static bool is_good(const struct ar *a, const struct alog_io *io)
{
	return a->heads_are_good && (io->op != XSEG_OP_WRITE || strstr(io->target, "head"));
}

static int64_t do_write(struct ar *a, struct ar_out *out)
{
	if (a->fail_write && !is_good(a, out->io) && ar_random(a, 1000) < a->fail_write) {
		if (ar_random(a, 2) && out->io->op == XSEG_OP_WRITE)
			do_change(a, out);	/* it may have come through all the same */
		if (out->op)
			a->op[out->op - 1].durable = false;
		return -EIO;
	}
	do_change(a, out);
	return out->io->size;
}

static int64_t effect(struct ar *a, struct ar_out *out)
{
	switch (out->io->op) {
	case XSEG_OP_READ:
	case XSEG_OP_INFO:
		return do_read(a, out->io);
	case XSEG_OP_FLUSH:
		return do_flush(a, out);
	default:
		return do_write(a, out);
	}
}

bool ar_step(struct ar *a)
{
	struct ar_out out;
	struct alog_io *io;
	uint32_t i;
	int64_t result;

	if (!a->nr_out || a->stuck)
		return false;
	i = ar_random(a, a->nr_out);
	result = effect(a, &a->out[i]);
	out = a->out[i];
	io = out.io;
	if (out.op)
		a->op[out.op - 1].answered = true;
	a->out[i] = a->out[--a->nr_out];
	fold(a);
	alog_done(a->log, io, result);
	ar_answer_lent(a);
	return true;
}

void ar_poll(struct ar *a)
{
	alog_poll(a->log, a->now);
	ar_answer_lent(a);
	if (alog_failed(a->log) == -EIO)
		longjmp(a->killed, 1);		/* to be opened again */
}

void ar_settle(struct ar *a)
{
	uint64_t next = 0;

	for (int i = 0; i < 200000; i++) {
		next = alog_poll(a->log, a->now);
		ar_answer_lent(a);
		if (alog_failed(a->log) == -EIO)
			longjmp(a->killed, 1);
		if (ar_step(a))
			continue;
		if (a->stuck)
			return;
		if (next == ALOG_NEVER) {
			alog_poll(a->log, a->now);
			if (a->nr_out)
				ar_fail(a, "it goes on, and did not want to be called", a->nr_out);
			return;
		}
		if (next > a->now)
			a->now = next;
	}
	ar_fail(a, "it never comes to rest", next);
}

/* What is out when the process dies takes place or does not; what had arrived comes to its end. */
void ar_withdraw(struct ar *a)
{
	for (uint32_t i = 0; i < a->nr_out; i++) {
		struct ar_out *out = &a->out[i];

		if (out->io->op == XSEG_OP_READ || out->io->op == XSEG_OP_INFO ||
			out->io->op == XSEG_OP_FLUSH || ar_random(a, 2))
			continue;
		do_change(a, out);
		a->op[out->op - 1].answered = true;
	}
	a->nr_out = 0;
	fold(a);
}

void ar_store_cut(struct ar *a)
{
	uint8_t keep[ALOG_IO_PAGES * ALOG_PAGE / SECTOR];

	for (uint32_t i = a->first_op; i < a->nr_ops; i++) {
		struct ar_op *op = &a->op[i];
		uint32_t how = op->durable ? 1 : ar_random(a, 3);

		for (uint32_t s = 0; s < sizeof(keep); s++)
			keep[s] = (uint8_t)(how == 1 || ar_random(a, 2));
		if (how && !op->lost)
			apply(a, &op->object->durable, op, keep);
		free(op->data);
		op->data = NULL;
	}
	a->nr_ops = a->first_op = 0;
	for (uint32_t i = 0; i < a->nr_objects; i++) {
		struct ar_object *o = &a->object[i];

		o->bad = false;
		free(o->now);
		o->now = NULL;
		if (!o->durable)
			continue;
		o->now = malloc(object_bytes(a));
		assert(o->now);
		memcpy(o->now, o->durable, object_bytes(a));
	}
}

void ar_store_free(struct ar *a)
{
	for (uint32_t i = a->first_op; i < a->nr_ops; i++)
		free(a->op[i].data);
	for (uint32_t i = 0; i < a->nr_objects; i++) {
		free(a->object[i].now);
		free(a->object[i].durable);
	}
}
