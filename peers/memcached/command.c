/* command - a line of text: its words, and the table of the commands.
 *
 * What a line means, and which error it gets, is that of memcached 1.6 (its doc/protocol.txt). What
 * differs is listed in docs/design/memcached.md.
 *
 * Contract: the worker's port. A command that finds no operation free changes nothing: its line is
 * understood again later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/memcached/memcached.h"

static const char error[] = "ERROR\r\n";
static const char bad_format[] = "CLIENT_ERROR bad command line format\r\n";

/* ---- words ------------------------------------------------------------------------------- */

/* The next word of the text; its length, 0 at the end. */
static uint32_t next_word(const char **text, const char *end, const char **word)
{
	const char *at = *text;

	while (at < end && *at == ' ')
		at++;
	*word = at;
	while (at < end && *at != ' ')
		at++;
	*text = at;
	return (uint32_t)(at - *word);
}

static void cut(struct mc_line *l, const char *text, uint32_t bytes)
{
	const char *end = text + bytes, *word;
	uint32_t n;

	while ((n = next_word(&text, end, &word))) {
		if (l->nr == MC_WORDS) {
			l->cut = true;
			return;
		}
		l->word[l->nr].at = word;
		l->word[l->nr++].bytes = n;
	}
}

static bool is(const struct mc_line *l, uint32_t word, const char *text)
{
	return word < l->nr && l->word[word].bytes == strlen(text) &&
	       !memcmp(l->word[word].at, text, l->word[word].bytes);
}

bool mc_number(const char *at, uint32_t bytes, uint64_t *number)
{
	uint64_t n = 0;

	if (!bytes || bytes > 20)
		return false;
	for (uint32_t i = 0; i < bytes; i++) {
		if (at[i] < '0' || at[i] > '9' ||
			__builtin_mul_overflow(n, 10u, &n) ||
			__builtin_add_overflow(n, (uint64_t)(at[i] - '0'), &n))
			return false;
	}
	*number = n;
	return true;
}

static bool number_at(const struct mc_line *l, uint32_t word, uint64_t most, uint64_t *n)
{
	return word < l->nr && mc_number(l->word[word].at, l->word[word].bytes, n) && *n <= most;
}

bool mc_expiry_of(const char *at, uint32_t bytes, uint32_t *ttl_s, uint32_t *expiry)
{
	bool negative = bytes && *at == '-';
	uint64_t n;

	if (!mc_number(at + negative, bytes - negative, &n) || n > UINT32_MAX)
		return false;
	*ttl_s = *expiry = 0;
	if (negative && n)
		*expiry = 1;			/* long ago */
	else if (n > MC_LATER_S)
		*expiry = (uint32_t)n;
	else
		*ttl_s = (uint32_t)n;
	return true;
}

static bool expiry_at(const struct mc_line *l, uint32_t word, uint32_t *ttl_s, uint32_t *expiry)
{
	return word < l->nr &&
	       mc_expiry_of(l->word[word].at, l->word[word].bytes, ttl_s, expiry);
}

static bool has_key(const struct mc_line *l, uint32_t word)
{
	return word < l->nr && l->word[word].bytes <= MC_KEY_MAX;
}

/* ---- operations -------------------------------------------------------------------------- */

static enum mc_taken say(struct mc_conn *c, const char *text, bool quiet)
{
	struct mc_op *op = mc_op_get(c, MC_TEXT);

	if (!op)
		return MC_NO_OP;
	if (!memcmp(text, "ERROR", 5) || !memcmp(text, "CLIENT_", 7))
		mc_count(c->worker, MS_ERRORS, 1);
	op->text = text;
	op->quiet = quiet;
	mc_op_begin(op);
	return MC_TAKEN;
}

enum mc_taken mc_say(struct mc_conn *c, const char *text)
{
	return say(c, text, false);
}

static void set_key(struct mc_op *op, const char *key, uint32_t bytes)
{
	memcpy(op->key, key, bytes);
	op->key_bytes = (uint8_t)bytes;
	op->hash = xseg_hash(op->key, bytes);
	op->io.item.key_bytes = bytes;
}

struct mc_op *mc_op_of_key(struct mc_conn *c, enum mc_kind kind, const char *key, uint32_t bytes)
{
	struct mc_op *op = mc_op_get(c, kind);

	if (op) {
		set_key(op, key, bytes);
		op->io.item.key = op->key;
	}
	return op;
}

struct mc_op *mc_pending(struct mc_conn *c, enum mc_kind kind, const char *key, uint32_t bytes)
{
	c->pending = (struct mc_op){ .kind = kind };
	set_key(&c->pending, key, bytes);
	return &c->pending;
}

/* An operation that is what `pending` has described; NULL: there is none free. */
static struct mc_op *from_pending(struct mc_conn *c)
{
	struct mc_op *op = mc_op_get(c, c->pending.kind);

	if (!op)
		return NULL;
	*op = c->pending;
	op->conn = c;
	op->io.cookie = op;
	op->io.item.key = op->key;
	return op;
}

/* The value will not be kept. What a set would have replaced goes, as memcached has it. */
static enum mc_taken refuse_value(struct mc_conn *c, uint64_t bytes)
{
	struct mc_op *op = from_pending(c);

	if (!op)
		return MC_NO_OP;
	op->refused = -EFBIG;
	if (op->io.op == XSEG_KV_PUT && op->io.item.condition == XSEG_KV_ALWAYS) {
		op->io.op = XSEG_KV_DELETE;
	} else {
		op->kind = MC_TEXT;
		op->text = "SERVER_ERROR object too large for cache\r\n";
	}
	mc_op_begin(op);
	c->swallow = bytes + 2;
	return MC_TAKEN;
}

enum mc_taken mc_fill(struct mc_conn *c, uint64_t bytes)
{
	if (bytes > MC_VALUE_MAX)
		return refuse_value(c, bytes);
	c->filling = true;
	c->filling_bytes = (uint32_t)bytes;
	return MC_TAKEN;
}

enum mc_taken mc_command_filled(struct mc_conn *c, uint8_t *value, bool is_well_ended)
{
	struct mc_op *op;

	if (!is_well_ended) {
		if (say(c, "CLIENT_ERROR bad data chunk\r\n", c->pending.quiet) == MC_NO_OP)
			return MC_NO_OP;
		c->filling = false;
		return MC_TAKEN;
	}
	op = from_pending(c);
	if (!op)
		return MC_NO_OP;
	c->filling = false;
	op->io.item.value = value;
	op->io.item.value_bytes = c->filling_bytes;
	op->in_place = true;
	mc_op_begin(op);
	return MC_TAKEN;
}

/* ---- get gets gat gats ------------------------------------------------------------------- */

static enum mc_taken gets(struct mc_line *l, bool with_cas, bool touches)
{
	struct mc_conn *c = l->conn;
	const char *text = l->word[0].at, *end = l->end, *word;
	uint32_t n, first = touches ? 2 : 1, i;

	if (l->nr <= first)
		return mc_say(c, l->nr == 2 ? "END\r\n" : error);
	if (touches && !expiry_at(l, 1, &c->gets_ttl, &c->gets_expiry))
		return mc_say(c, "CLIENT_ERROR invalid exptime argument\r\n");
	for (i = 0; (n = next_word(&text, end, &word)); i++)
		if (i >= first && n > MC_KEY_MAX)
			return mc_say(c, bad_format);
	c->in_gets = true;
	c->gets_cas = with_cas;
	c->gets_touch = touches;
	/* the keys are looked at one after the other */
	c->in_from += (uint32_t)(l->word[first].at - l->word[0].at) + l->blanks;
	return MC_TAKEN;
}

static bool get_one(struct mc_conn *c, const char *key, uint32_t bytes)
{
	struct mc_op *op = mc_op_of_key(c, MC_GET, key, bytes);

	if (!op)
		return false;
	op->with_cas = c->gets_cas;
	op->reads = !c->gets_touch;
	op->io.op = c->gets_touch ? XSEG_KV_TOUCH : XSEG_KV_GET;
	op->io.flags = c->gets_touch ? 0 : XSEG_KV_LOAN;
	op->io.item.ttl_s = c->gets_touch ? c->gets_ttl : 0;
	op->io.item.expiry = c->gets_touch ? c->gets_expiry : 0;
	mc_count(c->worker, c->gets_touch ? MS_CMD_TOUCH : MS_CMD_GET, 1);
	mc_op_begin(op);
	return true;
}

enum mc_taken mc_command_gets(struct mc_conn *c, const char *text, uint32_t bytes, uint32_t *used)
{
	const char *at = text, *end = memchr(text, '\n', bytes), *key;
	struct mc_op *op;
	uint32_t n;

	for (;;) {
		*used = (uint32_t)(at - text);
		n = next_word(&at, end > text && end[-1] == '\r' ? end - 1 : end, &key);
		if (!n)
			break;
		if (!get_one(c, key, n))
			return MC_NO_OP;
	}
	op = mc_op_get(c, MC_END);
	if (!op)
		return MC_NO_OP;
	mc_op_begin(op);
	c->in_gets = false;
	*used = (uint32_t)(end + 1 - text);
	return MC_TAKEN;
}

static enum mc_taken cmd_get(struct mc_line *l)
{
	return gets(l, false, false);
}

static enum mc_taken cmd_gets(struct mc_line *l)
{
	return gets(l, true, false);
}

static enum mc_taken cmd_gat(struct mc_line *l)
{
	return gets(l, false, true);
}

static enum mc_taken cmd_gats(struct mc_line *l)
{
	return gets(l, true, true);
}

/* ---- changes ----------------------------------------------------------------------------- */

/* The last word may be noreply. */
static bool is_quiet(const struct mc_line *l, uint32_t word)
{
	return is(l, word, "noreply");
}

static enum mc_taken store(struct mc_line *l, enum xseg_kv_op what, uint32_t condition)
{
	bool cas = condition == XSEG_KV_IF_VERSION, quiet = is_quiet(l, cas ? 6 : 5);
	uint64_t flags, bytes, unique = 0;
	uint32_t ttl_s, expiry;
	struct mc_op *op;

	if (l->nr < (cas ? 6u : 5u) || l->nr > (cas ? 7u : 6u))
		return mc_say(l->conn, error);
	if (!has_key(l, 1) || !number_at(l, 2, UINT32_MAX, &flags) ||
		!expiry_at(l, 3, &ttl_s, &expiry) || !number_at(l, 4, INT32_MAX - 2, &bytes) ||
		(cas && !number_at(l, 5, UINT64_MAX, &unique)))
		return say(l->conn, bad_format, quiet);
	op = mc_pending(l->conn, MC_STORE, l->word[1].at, l->word[1].bytes);
	op->quiet = quiet;
	op->io.op = what;
	op->io.item.condition = condition;
	op->io.item.client = (uint32_t)flags;
	op->io.item.ttl_s = ttl_s;
	op->io.item.expiry = expiry;
	op->io.item.version = unique;
	mc_count(l->conn->worker, MS_CMD_SET, 1);
	return mc_fill(l->conn, bytes);
}

static enum mc_taken cmd_set(struct mc_line *l)
{
	return store(l, XSEG_KV_PUT, XSEG_KV_ALWAYS);
}

static enum mc_taken cmd_add(struct mc_line *l)
{
	return store(l, XSEG_KV_PUT, XSEG_KV_IF_ABSENT);
}

static enum mc_taken cmd_replace(struct mc_line *l)
{
	return store(l, XSEG_KV_PUT, XSEG_KV_IF_PRESENT);
}

static enum mc_taken cmd_append(struct mc_line *l)
{
	return store(l, XSEG_KV_APPEND, XSEG_KV_ALWAYS);
}

static enum mc_taken cmd_prepend(struct mc_line *l)
{
	return store(l, XSEG_KV_PREPEND, XSEG_KV_ALWAYS);
}

static enum mc_taken cmd_cas(struct mc_line *l)
{
	return store(l, XSEG_KV_PUT, XSEG_KV_IF_VERSION);
}

static enum mc_taken cmd_delete(struct mc_line *l)
{
	bool zero = is(l, 2, "0"), quiet = is_quiet(l, l->nr - 1);
	struct mc_op *op;

	if (l->nr < 2 || l->nr > 4)
		return mc_say(l->conn, error);
	if ((l->nr == 3 && !zero && !quiet) || (l->nr == 4 && !(zero && quiet)))
		return mc_say(l->conn, "CLIENT_ERROR bad command line format.  Usage: delete <key> "
				       "[noreply]\r\n");
	if (!has_key(l, 1))
		return say(l->conn, bad_format, quiet);
	op = mc_op_of_key(l->conn, MC_DELETE, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = XSEG_KV_DELETE;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken arith(struct mc_line *l, enum xseg_kv_op what)
{
	bool quiet = is_quiet(l, 3);
	struct mc_op *op;
	uint64_t delta;

	if (l->nr < 3 || l->nr > 4)
		return mc_say(l->conn, error);
	if (!has_key(l, 1))
		return say(l->conn, bad_format, quiet);
	if (!number_at(l, 2, UINT64_MAX, &delta))
		return say(l->conn, "CLIENT_ERROR invalid numeric delta argument\r\n", quiet);
	op = mc_op_of_key(l->conn, MC_ARITH, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = op->arith = what;
	op->io.item.number = delta;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_incr(struct mc_line *l)
{
	return arith(l, XSEG_KV_INCR);
}

static enum mc_taken cmd_decr(struct mc_line *l)
{
	return arith(l, XSEG_KV_DECR);
}

static enum mc_taken cmd_touch(struct mc_line *l)
{
	bool quiet = is_quiet(l, 3);
	uint32_t ttl_s, expiry;
	struct mc_op *op;

	if (l->nr < 3 || l->nr > 4)
		return mc_say(l->conn, error);
	if (!has_key(l, 1))
		return say(l->conn, bad_format, quiet);
	if (!expiry_at(l, 2, &ttl_s, &expiry))
		return say(l->conn, "CLIENT_ERROR invalid exptime argument\r\n", quiet);
	op = mc_op_of_key(l->conn, MC_TOUCH, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = XSEG_KV_TOUCH;
	op->io.item.ttl_s = ttl_s;
	op->io.item.expiry = expiry;
	mc_count(l->conn->worker, MS_CMD_TOUCH, 1);
	mc_op_begin(op);
	return MC_TAKEN;
}

/* ---- the others -------------------------------------------------------------------------- */

static enum mc_taken cmd_version(struct mc_line *l)
{
	return mc_say(l->conn, "VERSION " XSEG_VERSION "\r\n");
}

static enum mc_taken cmd_verbosity(struct mc_line *l)
{
	if (l->nr < 2)
		return mc_say(l->conn, error);
	return say(l->conn, "OK\r\n", is_quiet(l, l->nr - 1));
}

static enum mc_taken cmd_quit(struct mc_line *l)
{
	mc_conn_end(l->conn);
	return MC_TAKEN;
}

static enum mc_taken cmd_stats(struct mc_line *l)
{
	static const char *const which[] = { "", "settings", "conns" };
	struct mc_op *op;
	uint8_t i;

	for (i = 0; i < 3; i++)
		if (l->nr == 1 ? !i : l->nr == 2 && is(l, 1, which[i]))
			break;
	if (i == 3)
		return mc_say(l->conn, "CLIENT_ERROR there are stats, stats settings and stats conns; "
				       "values are in a log, which 'xseg kv info' shows\r\n");
	op = mc_op_get(l->conn, MC_STATS);
	if (!op)
		return MC_NO_OP;
	op->stats = i;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_noop(struct mc_line *l)
{
	return mc_say(l->conn, "MN\r\n");
}

enum mc_taken mc_command(struct mc_conn *c, const char *text, uint32_t bytes)
{
	static const struct {
		const char *name;
		enum mc_taken (*take)(struct mc_line *l);
	} commands[] = {
		{ "get", cmd_get }, { "set", cmd_set }, { "mg", mc_meta_get },
		{ "ms", mc_meta_set }, { "gets", cmd_gets }, { "add", cmd_add },
		{ "replace", cmd_replace }, { "append", cmd_append }, { "prepend", cmd_prepend },
		{ "cas", cmd_cas }, { "delete", cmd_delete }, { "incr", cmd_incr },
		{ "decr", cmd_decr }, { "touch", cmd_touch }, { "gat", cmd_gat },
		{ "gats", cmd_gats }, { "md", mc_meta_delete }, { "ma", mc_meta_arith },
		{ "mn", cmd_noop }, { "me", mc_meta_debug }, { "version", cmd_version },
		{ "verbosity", cmd_verbosity }, { "stats", cmd_stats }, { "quit", cmd_quit },
	};
	struct mc_line l = { .conn = c, .end = text + bytes };

	cut(&l, text, bytes);
	if (!l.nr)
		return mc_say(c, error);
	l.blanks = (uint32_t)(l.word[0].at - text);
	for (uint32_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (is(&l, 0, commands[i].name))
			return commands[i].take(&l);
	return mc_say(c, error);
}
