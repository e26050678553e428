/* rival_redis.c - redis for rival_socket.c: hiredis formats the requests and reads the answers.
 * Compiled to nothing where its header is not there. */
#if __has_include(<hiredis/hiredis.h>)
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

struct state {
	redisReader *reader;
	redisReply *reply;			/* whose value the driver looks at */
};

static void *begin(void)
{
	struct state *s = calloc(1, sizeof(*s));

	if (s)
		s->reader = redisReaderCreate();
	return s;
}

static void end(void *state)
{
	struct state *s = state;

	if (s->reply)
		freeReplyObject(s->reply);
	redisReaderFree(s->reader);
	free(s);
}

static int ask(struct rival_conn *c, struct rival_op *op)
{
	const char *argv[3] = { op->put ? "SET" : "GET", op->key, (const char *)op->value };
	const size_t bytes[3] = { 3, op->key_bytes, op->bytes };
	sds text = NULL;
	int n = redisFormatSdsCommandArgv(&text, op->put ? 3 : 2, argv, bytes);
	int rc = n < 0 ? -ENOMEM : rival_out(c, text, sdslen(text));

	if (n >= 0)
		redisFreeSdsCommand(text);
	return rc;
}

static int64_t meaning(struct rival_op *op, const redisReply *reply)
{
	static bool said;

	switch (reply->type) {
	case REDIS_REPLY_STATUS: return 0;
	case REDIS_REPLY_NIL:	 return -ENOENT;
	case REDIS_REPLY_STRING:
		op->got = (const uint8_t *)reply->str;
		return (int64_t)reply->len;
	case REDIS_REPLY_ERROR:
		if (!said)
			fprintf(stderr, "bench-rival: redis: %s\n", reply->str);
		said = true;
		return strncmp(reply->str, "OOM", 3) ? -EIO : -ENOMEM;
	default: return -EPROTO;
	}
}

static bool answer(struct rival_conn *c, struct rival_op *op)
{
	struct state *s = c->state;
	void *reply = NULL;

	if (c->nr_in > c->at)
		redisReaderFeed(s->reader, c->in + c->at, c->nr_in - c->at);
	c->at = c->nr_in;
	if (redisReaderGetReply(s->reader, &reply) != REDIS_OK) {
		op->result = -EPROTO;
		return true;
	}
	if (!reply)
		return false;
	op->result = meaning(op, reply);
	if (op->put || op->result < 0)
		freeReplyObject(reply);
	else
		s->reply = reply;
	return true;
}

static void release(struct rival_conn *c, struct rival_op *op)
{
	struct state *s = c->state;

	(void)op;
	if (s->reply)
		freeReplyObject(s->reply);
	s->reply = NULL;
}

const struct rival_wire rival_wire = {
	.name = "redis", .begin = begin, .end = end, .ask = ask, .answer = answer,
	.release = release
};
#else
typedef int rival_no_redis;
#endif
