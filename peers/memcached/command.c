/* command - the table of the commands, and each of them but the meta commands.
 *
 * What a line means, and which error it gets, is that of memcached 1.6 (its doc/protocol.txt). What
 * differs is listed in docs/design/memcached.md.
 *
 * Contract: the worker's port. A command that finds no operation free changes nothing: its line is
 * understood again later.
 */
#include <string.h>

#include "peers/memcached/memcached.h"

static const char error[] = "ERROR\r\n";
static const char bad_format[] = "CLIENT_ERROR bad command line format\r\n";
static const char bad_expiry[] = "CLIENT_ERROR invalid exptime argument\r\n";

/* ---- words ------------------------------------------------------------------------------- */

static bool number_at(const struct mc_line *l, uint32_t word, uint64_t most, uint64_t *n)
{
	return word < l->nr && mc_number(l->word[word].at, l->word[word].bytes, n) && *n <= most;
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

/* ---- get gets gat gats ------------------------------------------------------------------- */

static enum mc_taken cmd_get(struct mc_line *l)
{
	struct mc_conn *c = l->conn;
	bool touches = l->command->touches;
	const char *text = l->word[0].at, *end = l->end, *word;
	uint32_t n, first = touches ? 2 : 1, i;

	if (l->nr == 1)
		return mc_say(c, error);
	if (touches && !expiry_at(l, 1, &c->gets_ttl, &c->gets_expiry))
		return mc_say(c, bad_expiry);
	if (l->nr == first)
		return mc_say(c, "END\r\n");
	for (i = 0; (n = mc_next_word(&text, end, &word)); i++)
		if (i >= first && n > MC_KEY_MAX)
			return mc_say(c, bad_format);
	c->in_gets = true;
	c->gets_cas = l->command->with_cas;
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
		n = mc_next_word(&at, end > text && end[-1] == '\r' ? end - 1 : end, &key);
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

/* ---- changes ----------------------------------------------------------------------------- */

/* The last word may be noreply. */
static bool is_quiet(const struct mc_line *l, uint32_t word)
{
	return mc_line_is(l, word, "noreply");
}

static enum mc_taken cmd_store(struct mc_line *l)
{
	uint32_t condition = l->command->condition;
	bool cas = condition == XSEG_KV_IF_VERSION, quiet = is_quiet(l, cas ? 6 : 5);
	uint64_t flags, bytes, unique = 0;
	uint32_t ttl_s, expiry;
	struct mc_op *op;

	if (l->nr < (cas ? 6u : 5u) || l->nr > (cas ? 7u : 6u))
		return mc_say(l->conn, error);
	if (!has_key(l, 1) || !number_at(l, 2, UINT32_MAX, &flags) ||
		!expiry_at(l, 3, &ttl_s, &expiry) || !number_at(l, 4, INT32_MAX - 2, &bytes) ||
		(cas && !number_at(l, 5, UINT64_MAX, &unique)))
		return mc_say_unless(l->conn, bad_format, quiet);
	op = mc_pending(l->conn, MC_STORE, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = l->command->op;
	op->io.item.condition = condition;
	op->io.item.client = (uint32_t)flags;
	op->io.item.ttl_s = ttl_s;
	op->io.item.expiry = expiry;
	op->io.item.version = unique;
	mc_count(l->conn->worker, MS_CMD_SET, 1);
	return mc_fill(l->conn, bytes);
}

static enum mc_taken cmd_delete(struct mc_line *l)
{
	bool zero = mc_line_is(l, 2, "0"), quiet = is_quiet(l, l->nr - 1);
	struct mc_op *op;

	if (l->nr < 2 || l->nr > 4)
		return mc_say(l->conn, error);
	if ((l->nr == 3 && !zero && !quiet) || (l->nr == 4 && !(zero && quiet)))
		return mc_say(l->conn, "CLIENT_ERROR bad command line format.  Usage: delete <key> "
				       "[noreply]\r\n");
	if (!has_key(l, 1))
		return mc_say_unless(l->conn, bad_format, quiet);
	op = mc_op_of_key(l->conn, MC_DELETE, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = XSEG_KV_DELETE;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_arith(struct mc_line *l)
{
	bool quiet = is_quiet(l, 3);
	struct mc_op *op;
	uint64_t delta;

	if (l->nr < 3 || l->nr > 4)
		return mc_say(l->conn, error);
	if (!has_key(l, 1))
		return mc_say_unless(l->conn, bad_format, quiet);
	if (!number_at(l, 2, UINT64_MAX, &delta))
		return mc_say_unless(
			l->conn, "CLIENT_ERROR invalid numeric delta argument\r\n", quiet);
	op = mc_op_of_key(l->conn, MC_ARITH, l->word[1].at, l->word[1].bytes);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = op->arith = l->command->op;
	op->io.item.number = delta;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_touch(struct mc_line *l)
{
	bool quiet = is_quiet(l, 3);
	uint32_t ttl_s, expiry;
	struct mc_op *op;

	if (l->nr < 3 || l->nr > 4)
		return mc_say(l->conn, error);
	if (!has_key(l, 1))
		return mc_say_unless(l->conn, bad_format, quiet);
	if (!expiry_at(l, 2, &ttl_s, &expiry))
		return mc_say_unless(l->conn, bad_expiry, quiet);
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
	return mc_say(l->conn, "VERSION " MC_VERSION "\r\n");
}

static enum mc_taken cmd_verbosity(struct mc_line *l)
{
	uint64_t level;
	bool quiet = is_quiet(l, l->nr - 1);

	if (l->nr < 2 || l->nr > 3)
		return mc_say(l->conn, error);
	if (l->nr > (quiet ? 2u : 1u) && !number_at(l, 1, UINT32_MAX, &level))
		return mc_say_unless(l->conn, bad_format, quiet);
	return mc_say_unless(l->conn, "OK\r\n", quiet);
}

/* With a time: all values that are there then. */
static enum mc_taken cmd_flush(struct mc_line *l)
{
	bool quiet = is_quiet(l, l->nr - 1);
	uint32_t ttl_s = 0, expiry = 0;
	struct mc_op *op;

	if (l->nr > 3)
		return mc_say(l->conn, error);
	if (l->nr > (quiet ? 2u : 1u) && !expiry_at(l, 1, &ttl_s, &expiry))
		return mc_say_unless(l->conn, bad_expiry, quiet);
	op = mc_op_get(l->conn, MC_FLUSH);
	if (!op)
		return MC_NO_OP;
	op->quiet = quiet;
	op->io.op = XSEG_KV_DELETE_ALL;
	op->io.item.ttl_s = ttl_s;
	op->io.item.expiry = l->nr > 1 && *l->word[1].at == '-' ? 0 : expiry;
	mc_count(l->conn->worker, MS_CMD_FLUSH, 1);
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_quit(struct mc_line *l)
{
	mc_conn_end(l->conn);
	return MC_TAKEN;
}

/* Those of memcached that say nothing of a log. */
static bool is_refused_stats(const struct mc_line *l)
{
	static const char *const names[] = { "items", "slabs", "sizes", "detail", "cachedump",
		"reset" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (mc_line_is(l, 1, names[i]))
			return true;
	return false;
}

static enum mc_taken cmd_stats(struct mc_line *l)
{
	static const char *const which[] = { "", "settings", "conns" };
	struct mc_op *op;
	uint8_t i;

	for (i = 0; i < 3; i++)
		if (l->nr == 1 ? !i : mc_line_is(l, 1, which[i]))
			break;
	if (i == 3 && !is_refused_stats(l))
		return mc_say(l->conn, error);
	if (i == 3)
		return mc_say(l->conn,
			"CLIENT_ERROR there are stats, stats settings and stats conns; "
			"values are in a log, which 'xseg kv info' shows\r\n");
	op = mc_op_get(l->conn, MC_STATS);
	if (!op)
		return MC_NO_OP;
	op->stats = i;
	mc_op_begin(op);
	return MC_TAKEN;
}

static enum mc_taken cmd_shutdown(struct mc_line *l)
{
	return mc_say(l->conn, "ERROR: shutdown not enabled\r\n");
}

static enum mc_taken cmd_noop(struct mc_line *l)
{
	return mc_say(l->conn, "MN\r\n");
}

/* What is used most stands in front. */
#define COMMAND(command, ...) \
	.name = command, .bytes = sizeof(command) - 1, .take = __VA_ARGS__
static const struct mc_command commands[] = {
	{ COMMAND("get", cmd_get) },
	{ COMMAND("set", cmd_store, .op = XSEG_KV_PUT) },
	{ COMMAND("bget", cmd_get) },
	{ COMMAND("mg", mc_meta_get) },
	{ COMMAND("ms", mc_meta_set) },
	{ COMMAND("gets", cmd_get, .with_cas = true) },
	{ COMMAND("add", cmd_store, .op = XSEG_KV_PUT, .condition = XSEG_KV_IF_ABSENT) },
	{ COMMAND("replace", cmd_store, .op = XSEG_KV_PUT, .condition = XSEG_KV_IF_PRESENT) },
	{ COMMAND("append", cmd_store, .op = XSEG_KV_APPEND) },
	{ COMMAND("prepend", cmd_store, .op = XSEG_KV_PREPEND) },
	{ COMMAND("cas", cmd_store, .op = XSEG_KV_PUT, .condition = XSEG_KV_IF_VERSION) },
	{ COMMAND("delete", cmd_delete) },
	{ COMMAND("incr", cmd_arith, .op = XSEG_KV_INCR) },
	{ COMMAND("decr", cmd_arith, .op = XSEG_KV_DECR) },
	{ COMMAND("touch", cmd_touch) },
	{ COMMAND("gat", cmd_get, .touches = true) },
	{ COMMAND("gats", cmd_get, .touches = true, .with_cas = true) },
	{ COMMAND("md", mc_meta_delete) },
	{ COMMAND("ma", mc_meta_arith) },
	{ COMMAND("mn", cmd_noop) },
	{ COMMAND("me", mc_meta_debug) },
	{ COMMAND("version", cmd_version) },
	{ COMMAND("verbosity", cmd_verbosity) },
	{ COMMAND("stats", cmd_stats) },
	{ COMMAND("flush_all", cmd_flush) },
	{ COMMAND("shutdown", cmd_shutdown) },
	{ COMMAND("quit", cmd_quit) },
};

static const struct mc_command *command_of(const char *word, uint32_t bytes)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (bytes == commands[i].bytes && !memcmp(word, commands[i].name, bytes))
			return &commands[i];
	return NULL;
}

enum mc_taken mc_command(struct mc_conn *c, const char *text, uint32_t bytes)
{
	struct mc_line l;			/* most of its words are never written */

	l.conn = c;
	l.end = text + bytes;
	mc_line_cut(&l, text, bytes);
	l.command = l.nr ? command_of(l.word[0].at, l.word[0].bytes) : NULL;
	if (!l.command)
		return mc_say(c, error);
	l.blanks = (uint32_t)(l.word[0].at - text);
	return l.command->take(&l);
}
