/* sosd_sizes - see sosd_sizes.h. */
#include "peers/sosd/sosd_sizes.h"

#include <errno.h>
#include <string.h>

#include "peers/sosd/sosd_name.h"

#define SLICES 256u				/* of the pool, to tell how far a count is */
#define NAMES  128u				/* a step asks for */

/* ---- where it is ------------------------------------------------------------------------- */

static void slice_leave(struct sosd_sizes *c)
{
	if (c->at)
		rados_object_list_cursor_free(c->rados->io, c->at);
	if (c->end)
		rados_object_list_cursor_free(c->rados->io, c->end);
	c->at = c->end = NULL;
}

static int slice_enter(struct sosd_sizes *c)
{
	rados_ioctx_t io = c->rados->io;
	rados_object_list_cursor first = rados_object_list_begin(io);
	rados_object_list_cursor last = rados_object_list_end(io);

	c->at = rados_object_list_begin(io);
	c->end = rados_object_list_begin(io);
	if (first && last && c->at && c->end)
		rados_object_list_slice(io, first, last, c->slice, SLICES, &c->at, &c->end);
	if (first)
		rados_object_list_cursor_free(io, first);
	if (last)
		rados_object_list_cursor_free(io, last);
	return first && last && c->at && c->end ? 0 : -ENOMEM;
}

int sosd_sizes_open(struct sosd_sizes *c, struct sosd_rados *rados, const char *prefix)
{
	*c = (struct sosd_sizes){ .rados = rados, .prefix = prefix };
	return usage_open(&c->usage);
}

void sosd_sizes_close(struct sosd_sizes *c)
{
	if (c->rados)
		slice_leave(c);
	usage_close(&c->usage);
	*c = (struct sosd_sizes){ .rados = NULL };
}

/* ---- sizes ------------------------------------------------------------------------------- */

struct ask {
	rados_completion_t completion;
	uint64_t size;
	char target[XSEG_TARGET_MAX];
};

/* 0: it is out. Another prefix's object is none of ours, and is passed over with -ENOENT. */
static int ask_send(struct sosd_sizes *c, const rados_object_list_item *item, struct ask *a)
{
	int rc;

	if (!sosd_name_target(c->prefix, item->oid, item->oid_length, a->target))
		return -ENOENT;
	rc = rados_aio_create_completion2(NULL, NULL, &a->completion);
	if (rc)
		return rc;
	rc = rados_aio_stat(c->rados->io, item->oid, a->completion, &a->size, NULL);
	if (rc)
		rados_aio_release(a->completion);
	return rc;
}

static int ask_wait(struct sosd_sizes *c, struct ask *a)
{
	int rc;

	rados_aio_wait_for_complete(a->completion);
	rc = rados_aio_get_return_value(a->completion);
	rados_aio_release(a->completion);
	if (!rc)
		usage_add(&c->usage, a->target, a->size, 1);
	return rc;
}

/* One that is deleted meanwhile takes no bytes. Waits for all that is out, also after an error. */
static int count_items(struct sosd_sizes *c, const rados_object_list_item *item, uint32_t nr)
{
	struct ask out[SOSD_SIZES_OUT];
	uint32_t from, i, nr_out;
	int rc = 0, one;

	for (from = 0; from < nr && !rc; from += SOSD_SIZES_OUT) {
		nr_out = 0;
		for (i = from; i < nr && i < from + SOSD_SIZES_OUT && !rc; i++) {
			one = ask_send(c, &item[i], &out[nr_out]);
			nr_out += !one;
			rc = one == -ENOENT ? 0 : one;
		}
		for (i = 0; i < nr_out; i++) {
			one = ask_wait(c, &out[i]);
			if (one && one != -ENOENT)
				rc = one;
		}
	}
	return rc;
}

/* ---- a step ------------------------------------------------------------------------------ */

static int count_some(struct sosd_sizes *c)
{
	rados_object_list_item item[NAMES];
	int nr, rc;

	memset(item, 0, sizeof(item));
	nr = rados_object_list(c->rados->io, c->at, c->end, NAMES, NULL, 0, item, &c->at);
	if (nr < 0)
		return nr;
	rc = count_items(c, item, (uint32_t)nr);
	rados_object_list_free(NAMES, item);
	return rc;
}

bool sosd_sizes_step(struct sosd_sizes *c, uint64_t now_ns)
{
	int rc = 0;

	if (!c->at && !c->slice)
		usage_begin(&c->usage);
	if (!c->at)
		rc = slice_enter(c);
	if (!rc && rados_object_list_cursor_cmp(c->rados->io, c->at, c->end) < 0) {
		rc = count_some(c);
	} else if (!rc) {
		slice_leave(c);
		c->slice++;
		usage_step(&c->usage, c->slice * 100 / SLICES);
	}
	if (!rc && c->slice < SLICES)
		return true;
	slice_leave(c);
	c->slice = 0;
	usage_end(&c->usage, rc, now_ns);
	return false;
}
