/* line - the words of a line, and the operations that are made of them: what all commands share.
 *
 * Contract: as command.c.
 */
#include <errno.h>
#include <string.h>

#include "peers/memcached/memcached.h"

/* ---- words ------------------------------------------------------------------------------- */

/* The next word of the text; its length, 0 at the end. */
uint32_t mc_next_word(const char **text, const char *end, const char **word)
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

void mc_line_cut(struct mc_line *l, const char *text, uint32_t bytes)
{
	const char *end = text + bytes, *word;
	uint32_t n;

	l->nr = 0;
	l->cut = false;
	while ((n = mc_next_word(&text, end, &word))) {
		if (l->nr == MC_WORDS) {
			l->cut = true;
			return;
		}
		l->word[l->nr].at = word;
		l->word[l->nr++].bytes = n;
	}
}

bool mc_line_is(const struct mc_line *l, uint32_t word, const char *text)
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

/* What does not fit 32 bits is the last date that does. */
bool mc_expiry_of(const char *at, uint32_t bytes, uint32_t *ttl_s, uint32_t *expiry)
{
	bool negative = bytes && *at == '-';
	uint64_t n;

	if (!mc_number(at + negative, bytes - negative, &n))
		return false;
	*ttl_s = *expiry = 0;
	if (negative && n)
		*expiry = 1;			/* long ago */
	else if (n > MC_LATER_S)
		*expiry = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	else
		*ttl_s = (uint32_t)n;
	return true;
}

/* ---- operations -------------------------------------------------------------------------- */

enum mc_taken mc_say_unless(struct mc_conn *c, const char *text, bool quiet)
{
	struct mc_op *op = mc_op_get(c, MC_TEXT);

	if (!op)
		return MC_NO_OP;
	if (!strncmp(text, "ERROR", 5) || !strncmp(text, "CLIENT_", 7))
		mc_count(c->worker, MS_ERRORS, 1);
	op->text = text;
	op->quiet = quiet;
	mc_op_begin(op);
	return MC_TAKEN;
}

enum mc_taken mc_say(struct mc_conn *c, const char *text)
{
	return mc_say_unless(c, text, false);
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
	c->pending = mc_op_of_key(c, kind, key, bytes);
	return c->pending;
}

/* The value will not be kept. What a set would have replaced goes, as memcached has it. */
static enum mc_taken refuse_value(struct mc_conn *c, uint64_t bytes)
{
	struct mc_op *op = c->pending;

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

enum mc_taken mc_filled(struct mc_conn *c, uint8_t *value, bool is_well_ended)
{
	struct mc_op *op = c->pending;

	c->filling = false;
	if (!is_well_ended)
		return mc_say_unless(c, "CLIENT_ERROR bad data chunk\r\n", op->quiet);
	op->io.item.value = value;
	op->io.item.value_bytes = c->filling_bytes;
	op->in_place = true;
	mc_op_begin(op);
	return MC_TAKEN;
}
