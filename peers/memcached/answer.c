/* answer - the text of an answer, as memcached 1.6 has it.
 *
 * A small value is copied, from where the cache has it into the connection's memory. A larger one
 * goes to the socket from there. If there is no room the operation waits, and holds nothing
 * meanwhile (M3).
 *
 * Contract: the worker's port; the operation is DONE, and those before it have their answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "peers/memcached/memcached.h"

/* A line that grows. Its room has been asked for. */
struct text {
	uint8_t *at;
	uint32_t used;
};

static void add(struct text *t, const void *from, size_t bytes)
{
	memcpy(t->at + t->used, from, bytes);
	t->used += (uint32_t)bytes;
}

static void add_text(struct text *t, const char *s)
{
	add(t, s, strlen(s));
}

static void add_number(struct text *t, uint64_t n)
{
	char digits[24], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + n % 10);
	} while (n /= 10);
	add(t, at, (size_t)(digits + sizeof(digits) - at));
}

static bool say(struct mc_op *op, const char *line)
{
	struct text t = { .at = mc_conn_room(op->conn, MC_ANSWER_MAX) };

	if (!t.at)
		return false;
	if (!op->quiet) {
		add_text(&t, line);
		mc_conn_wrote(op->conn, t.used);
	}
	return true;
}

/* What the store failed with, that is no answer of the protocol. */
static const char *failure(int64_t result)
{
	switch (result) {
	case -ENOSPC: return "SERVER_ERROR out of memory storing object\r\n";
	case -EFBIG: return "SERVER_ERROR object too large for cache\r\n";
	case -EIO: return "SERVER_ERROR the value is damaged, or the store failed\r\n";
	case -ENOTCONN: return "SERVER_ERROR the store of values does not run\r\n";
	default: return "SERVER_ERROR the store of values failed\r\n";
	}
}

static bool fail(struct mc_op *op)
{
	mc_count(op->conn->worker, MS_ERRORS, 1);
	return say(op, failure(op->io.result));
}

/* ---- values ------------------------------------------------------------------------------ */

static void add_value(struct text *t, struct mc_op *op)
{
	uint32_t bytes = (uint32_t)op->io.result;

	if (bytes < MC_HOLE_LEAST || !mc_conn_lend(op, t->at + t->used))
		mc_value_copy(op, 0, t->at + t->used, bytes);
	t->used += bytes;
	add_text(t, "\r\n");
}

/* The room for a line and a value. If it is not there, the value is got again later. */
static bool make_room(struct mc_op *op, struct text *t)
{
	t->at = mc_conn_room(op->conn, MC_ANSWER_MAX + (uint32_t)op->io.result);
	t->used = 0;
	if (!t->at)
		mc_op_again(op);
	return t->at;
}

static void count_get(struct mc_op *op, bool touched)
{
	struct mc_worker *w = op->conn->worker;
	bool hit = op->io.result >= 0;

	mc_count(w, hit ? MS_GET_HITS : MS_GET_MISSES, 1);
	if (touched)
		mc_count(w, hit ? MS_TOUCH_HITS : MS_TOUCH_MISSES, 1);
}

/* Of several keys the first error is the end of the answer. */
static bool get(struct mc_op *op)
{
	struct mc_conn *c = op->conn;
	struct text t;

	if (c->gets_failed)
		return true;
	if (op->io.result == -ENOENT) {
		count_get(op, !op->reads);
		return true;
	}
	if (op->io.result < 0) {
		c->gets_failed = fail(op);
		return c->gets_failed;
	}
	if (!make_room(op, &t))
		return false;
	add_text(&t, "VALUE ");
	add(&t, op->key, op->key_bytes);
	add_text(&t, " ");
	add_number(&t, op->io.item.client);
	add_text(&t, " ");
	add_number(&t, (uint64_t)op->io.result);
	if (op->with_cas) {
		add_text(&t, " ");
		add_number(&t, op->io.item.version);
	}
	add_text(&t, "\r\n");
	add_value(&t, op);
	mc_conn_wrote(c, t.used);
	count_get(op, !op->reads);
	return true;
}

static bool end(struct mc_op *op)
{
	if (!op->conn->gets_failed)
		return say(op, "END\r\n");
	op->conn->gets_failed = false;
	return true;
}

/* ---- changes ----------------------------------------------------------------------------- */

static bool store(struct mc_op *op)
{
	struct mc_worker *w = op->conn->worker;
	bool cas = op->io.item.condition == XSEG_KV_IF_VERSION;

	switch (op->io.result) {
	case 0:
		if (cas)
			mc_count(w, MS_CAS_HITS, 1);
		return say(op, "STORED\r\n");
	case -EEXIST:
		if (cas)
			mc_count(w, MS_CAS_BADVAL, 1);
		return say(op, cas ? "EXISTS\r\n" : "NOT_STORED\r\n");
	case -ENOENT:
		if (cas)
			mc_count(w, MS_CAS_MISSES, 1);
		return say(op, cas ? "NOT_FOUND\r\n" : "NOT_STORED\r\n");
	default:
		return fail(op);
	}
}

static bool flushed(struct mc_op *op)
{
	return op->io.result < 0 ? fail(op) : say(op, "OK\r\n");
}

static bool found(struct mc_op *op, enum mc_stat hits, enum mc_stat misses, const char *yes)
{
	if (op->io.result && op->io.result != -ENOENT)
		return fail(op);
	mc_count(op->conn->worker, op->io.result ? misses : hits, 1);
	return say(op, op->io.result ? "NOT_FOUND\r\n" : yes);
}

static bool arith(struct mc_op *op)
{
	bool incr = op->arith == XSEG_KV_INCR;
	char line[32];

	if (op->io.result == -EINVAL)
		return say(op, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
	snprintf(line, sizeof(line), "%" PRIu64 "\r\n", op->io.item.number);
	return found(op, incr ? MS_INCR_HITS : MS_DECR_HITS,
		incr ? MS_INCR_MISSES : MS_DECR_MISSES, line);
}

/* ---- meta -------------------------------------------------------------------------------- */

static void add_key(struct text *t, const struct mc_op *op)
{
	char coded[(MC_KEY_MAX + 2) / 3 * 4 + 1];

	if (!op->meta.base64) {
		add(t, op->key, op->key_bytes);
		return;
	}
	sodium_bin2base64(coded, sizeof(coded), (const unsigned char *)op->key, op->key_bytes,
		sodium_base64_VARIANT_ORIGINAL);
	add_text(t, coded);
	add_text(t, " b");
}

/* Seconds that are left; -1: for ever. */
static void add_ttl(struct text *t, const struct mc_op *op)
{
	uint32_t now = op->conn->worker->pp->date_s, expiry = op->io.item.expiry;

	if (!expiry)
		add_text(t, "-1");
	else
		add_number(t, expiry > now ? expiry - now : 0);
}

/* What the command asked to be told, in its order; of a key that is absent what is known of it. */
static void add_flags(struct text *t, const struct mc_op *op, uint64_t bytes)
{
	for (const char *f = op->meta.flag; *f; f++) {
		char letter[2] = { ' ', *f };

		if (op->io.result == -ENOENT && *f != 'k' && *f != 'O')
			continue;
		add(t, letter, 2);
		switch (*f) {
		case 'c': add_number(t, op->io.item.version); break;
		case 'f': add_number(t, op->io.item.client); break;
		case 's': add_number(t, bytes); break;
		case 't': add_ttl(t, op); break;
		case 'k': add_key(t, op); break;
		case 'O': add_text(t, op->meta.opaque); break;
		}
	}
	add_text(t, "\r\n");
}

/* A line of two letters and the flags. */
static bool say_code(struct mc_op *op, const char *code, bool quiet)
{
	struct text t = { .at = mc_conn_room(op->conn, MC_ANSWER_MAX) };

	if (!t.at)
		return false;
	if (quiet && op->meta.quiet)
		return true;
	add_text(&t, code);
	add_flags(&t, op, op->io.item.value_bytes);
	mc_conn_wrote(op->conn, t.used);
	return true;
}

static bool meta_get(struct mc_op *op)
{
	struct text t;

	if (op->io.result == -ENOENT) {
		count_get(op, !op->reads);
		return say_code(op, "EN", true);
	}
	if (op->io.result < 0)
		return fail(op);
	if (!make_room(op, &t))
		return false;
	if (op->meta.value) {
		add_text(&t, "VA ");
		add_number(&t, (uint64_t)op->io.result);
	} else {
		add_text(&t, "HD");
	}
	add_flags(&t, op, (uint64_t)op->io.result);
	if (op->meta.value)
		add_value(&t, op);
	mc_conn_wrote(op->conn, t.used);
	count_get(op, !op->reads);
	return true;
}

static bool meta_store(struct mc_op *op)
{
	switch (op->io.result) {
	case 0: return say_code(op, "HD", true);
	case -EEXIST:
		return say_code(op, op->io.item.condition == XSEG_KV_IF_VERSION ? "EX" : "NS",
			false);
	case -ENOENT:
		return say_code(op, op->io.item.condition == XSEG_KV_IF_VERSION ? "NF" : "NS",
			false);
	default: return fail(op);
	}
}

static bool meta_delete(struct mc_op *op)
{
	switch (op->io.result) {
	case 0:
		mc_count(op->conn->worker, MS_DELETE_HITS, 1);
		return say_code(op, "HD", true);
	case -ENOENT:
		mc_count(op->conn->worker, MS_DELETE_MISSES, 1);
		return say_code(op, "NF", false);
	case -EEXIST: return say_code(op, "EX", false);
	default: return fail(op);
	}
}

static bool meta_number(struct mc_op *op)
{
	struct text t = { .at = mc_conn_room(op->conn, MC_ANSWER_MAX) };
	char digits[24];
	uint64_t bytes;

	if (!t.at)
		return false;
	bytes = (uint64_t)snprintf(digits, sizeof(digits), "%" PRIu64, op->io.item.number);
	add_text(&t, "VA ");
	add_number(&t, bytes);
	add_flags(&t, op, bytes);
	add(&t, digits, bytes);
	add_text(&t, "\r\n");
	mc_conn_wrote(op->conn, t.used);
	return true;
}

static bool meta_arith(struct mc_op *op)
{
	bool incr = op->arith == XSEG_KV_INCR;
	int64_t result = op->io.result;

	if (result == 0 || result == -ENOENT)
		mc_count(op->conn->worker,
			result ? (incr ? MS_INCR_MISSES : MS_DECR_MISSES)
			       : (incr ? MS_INCR_HITS : MS_DECR_HITS), 1);
	if (result == 0)
		return op->meta.value ? meta_number(op) : say_code(op, "HD", true);
	if (result == -ENOENT)
		return say_code(op, "NF", false);
	if (result == -EEXIST)
		return say_code(op, "EX", false);
	if (result == -EINVAL)
		return say(op, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
	return fail(op);
}

/* What is known of a value, for people. */
static bool meta_debug(struct mc_op *op)
{
	struct text t = { .at = mc_conn_room(op->conn, MC_ANSWER_MAX) };

	if (!t.at)
		return false;
	if (op->io.result == -ENOENT)
		return say(op, "EN\r\n");
	if (op->io.result < 0)
		return fail(op);
	add_text(&t, "ME ");
	add_key(&t, op);
	add_text(&t, " exp=");
	add_ttl(&t, op);
	add_text(&t, " cas=");
	add_number(&t, op->io.item.version);
	add_text(&t, " size=");
	add_number(&t, (uint64_t)op->io.result);
	add_text(&t, "\r\n");
	mc_conn_wrote(op->conn, t.used);
	return true;
}

typedef uint32_t stats_fn(struct mc_worker *w, uint8_t *to, uint32_t room);

static bool stats(struct mc_op *op)
{
	static stats_fn *const made[] = { mc_stats_text, mc_settings_text, mc_conns_text };
	uint8_t *to = mc_conn_room(op->conn, MC_GETS_MAX);

	if (!to)
		return false;
	mc_conn_wrote(op->conn, made[op->stats](op->conn->worker, to, MC_GETS_MAX));
	return true;
}

bool mc_answer(struct mc_op *op)
{
	switch (op->kind) {
	case MC_TEXT: return say(op, op->text);
	case MC_STATS: return stats(op);
	case MC_GET: return get(op);
	case MC_END: return end(op);
	case MC_STORE: return store(op);
	case MC_DELETE: return found(op, MS_DELETE_HITS, MS_DELETE_MISSES, "DELETED\r\n");
	case MC_ARITH: return arith(op);
	case MC_TOUCH: return found(op, MS_TOUCH_HITS, MS_TOUCH_MISSES, "TOUCHED\r\n");
	case MC_FLUSH: return flushed(op);
	case MC_META_GET: return meta_get(op);
	case MC_META_STORE: return meta_store(op);
	case MC_META_DELETE: return meta_delete(op);
	case MC_META_ARITH: return meta_arith(op);
	case MC_META_DEBUG: return meta_debug(op);
	}
	return true;
}
