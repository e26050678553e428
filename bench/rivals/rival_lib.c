/* rival_lib.c - a library that keeps keys and values in files: no other process. Its calls return
 * when they are done, so an operation in flight is a thread. The threads share the CPUs of
 * --cpus. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

struct session {
	void *db;
	struct rival_op *done;
};

/* Returns a negative errno, once a process with a line. */
static int failed(char *why)
{
	static bool said;

	if (!said)
		fprintf(stderr, "bench-rival: %s: %s\n", rival_lib.name, why ? why : "no memory");
	said = true;
	free(why);
	return -EIO;
}

static int lib_open(const struct rival_options *o, void **db, struct xseg_error *err)
{
	char *why = NULL;

	*db = rival_lib.open(o, &why);
	if (*db)
		return 0;
	xseg_fail(err, -EIO, "%s in %s: %s", rival_lib.name, o->path, why ? why : "not opened");
	free(why);
	return -EIO;
}

static int lib_begin(void *db, void **session, struct xseg_error *err)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return xseg_fail(err, -ENOMEM, "no memory");
	s->db = db;
	*session = s;
	return 0;
}

static void lib_submit(void *session, struct rival_op *op)
{
	struct session *s = session;
	char *why = NULL, *value = NULL;
	size_t bytes = 0;

	s->done = op;
	if (op->put) {
		op->result = rival_lib.put(
			s->db, op->key, op->key_bytes, op->value, op->bytes, &why);
	} else {
		op->result = rival_lib.get(s->db, op->key, op->key_bytes, &value, &bytes, &why);
		op->got = (uint8_t *)value;
	}
	if (op->result)
		op->result = failed(why);
	else if (!op->put)
		op->result = value ? (int64_t)bytes : -ENOENT;
}

static struct rival_op *lib_next(void *session, struct xseg_error *err)
{
	struct session *s = session;

	if (!s->done)
		xseg_fail(err, -EIO, "nothing is out");
	return s->done;
}

static void lib_release(void *session, struct rival_op *op)
{
	(void)session;
	if (op->got)
		rival_lib.release((void *)(uintptr_t)op->got);
}

static void visit(void *arg, const char *value, size_t bytes)
{
	struct rival_count *c = arg;
	struct rival_op op = { 0 };

	if (bytes >= 8)				/* it says itself of which key it is */
		memcpy(&op.number, value, sizeof(op.number));
	c->ios++;
	c->bytes += bytes;
	c->wrong += !rival_is_stamped(&op, (const uint8_t *)value, 0, bytes);
}

static int64_t lib_scan(void *session, struct rival_count *count, struct xseg_error *err)
{
	struct session *s = session;
	char *why = NULL;

	if (!rival_lib.scan(s->db, visit, count, &why))
		return (int64_t)count->ios;
	xseg_fail(err, -EIO, "%s: %s", rival_lib.name, why ? why : "the scan failed");
	free(why);
	return -EIO;
}

static void lib_close(void *db)
{
	rival_lib.close(db);
}

static const char *lib_name(void)
{
	return rival_lib.name;
}

const struct rival_store rival_store = {
	.name = lib_name, .has_no_depth = true, .open = lib_open, .close = lib_close,
	.begin = lib_begin, .end = free, .submit = lib_submit, .next = lib_next,
	.release = lib_release, .scan = lib_scan
};
