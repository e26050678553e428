/* rival_memcached.c - memcached's text protocol for rival_socket.c: memcached, and xseg's server of
 * that protocol. A value is checked where it was received. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

static int ask(struct rival_conn *c, struct rival_op *op)
{
	char text[48];
	int rc = rival_out(c, op->put ? "set " : "get ", 4);

	if (!rc)
		rc = rival_out(c, op->key, op->key_bytes);
	if (!rc && op->put) {
		int n = snprintf(text, sizeof(text), " 0 0 %zu\r\n", op->bytes);

		rc = rival_out(c, text, (size_t)n);
		if (!rc)
			rc = rival_out(c, op->value, op->bytes);
	}
	return rc ? rc : rival_out(c, "\r\n", 2);
}

/* What is no value: an answer to a put, "END", or an error, which is told. */
static int64_t meaning(const char *line, const struct rival_op *op)
{
	if (op->put && !strncmp(line, "STORED\r", 7))
		return 0;
	if (!op->put && !strncmp(line, "END\r", 4))
		return -ENOENT;
	if (!strncmp(line, "SERVER_ERROR out of memory", 26))
		return -ENOMEM;
	return !strncmp(line, "SERVER_ERROR object too large", 29) ? -EFBIG : -EPROTO;
}

static bool answer(struct rival_conn *c, struct rival_op *op)
{
	const char *at = c->in + c->at, *end;
	size_t room = c->nr_in - c->at, line, bytes;

	end = room ? memchr(at, '\n', room) : NULL;
	if (!end)
		return false;
	line = (size_t)(end - at) + 1;
	if (line < 6 || strncmp(at, "VALUE ", 6)) {
		op->result = meaning(at, op);
		c->at += line;
		return true;
	}
	/* VALUE key flags bytes */
	at = memchr(at + 6, ' ', line - 6);
	at = at ? memchr(at + 1, ' ', (size_t)(end - at)) : NULL;
	if (!at)
		return false;
	bytes = strtoull(at + 1, NULL, 10);
	if (room < line + bytes + 7)		/* "\r\nEND\r\n" */
		return false;
	op->got = (const uint8_t *)end + 1;
	op->result = (int64_t)bytes;
	c->at += line + bytes + 7;
	return true;
}

const struct rival_wire rival_wire = { .name = "memcached", .ask = ask, .answer = answer };
