/* meta - the meta commands: mg ms md ma me. A command is a key and flags of one letter, some with a
 * token behind it.
 *
 * The flags that need what a log does not keep are refused: h and l (whether and when a value was
 * read before), I, N and R of mg (values that are stale, or won by one client). See
 * docs/design/memcached.md.
 *
 * Contract: as command.c.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "peers/memcached/memcached.h"

static const char bad_format[] = "CLIENT_ERROR bad command line format\r\n";
static const char bad_flag[] = "CLIENT_ERROR invalid flag\r\n";
static const char twice[] = "CLIENT_ERROR duplicate flag\r\n";
static const char bad_or_twice[] = "CLIENT_ERROR invalid or duplicate flag\r\n";
static const char bad_token[] = "CLIENT_ERROR bad token in command line format\r\n";

/* What the flags of a command say. */
struct flags {
	struct mc_meta meta;
	uint32_t ttl_s, expiry, client, condition;
	uint64_t version, delta;
	uint64_t seen;				/* letters, modulo 64 */
	bool has_ttl;
	char mode;				/* M, a letter in upper case; 0: none */
	char key[MC_KEY_MAX];
	uint32_t key_bytes;
	const char *refused;			/* the answer, if they make no sense */
};

/* ---- flags ------------------------------------------------------------------------------- */

static void add_flag(struct flags *f, char letter)
{
	size_t n = strlen(f->meta.flag);

	if (n < MC_FLAGS_MAX - 1)
		f->meta.flag[n] = letter;
	else
		f->refused = bad_flag;
}

static void take_opaque(struct flags *f, const char *token, uint32_t bytes)
{
	if (bytes > MC_OPAQUE_MAX) {
		f->refused = "CLIENT_ERROR opaque token too long\r\n";
		return;
	}
	memcpy(f->meta.opaque, token, bytes);
	f->meta.opaque[bytes] = '\0';
	add_flag(f, 'O');
}

static void take_number(struct flags *f, const char *token, uint32_t bytes, uint64_t most,
	uint64_t *to)
{
	if (!mc_number(token, bytes, to) || *to > most)
		f->refused = bad_token;
}

static void take_expiry(struct flags *f, const char *token, uint32_t bytes)
{
	f->has_ttl = true;
	if (!mc_expiry_of(token, bytes, &f->ttl_s, &f->expiry))
		f->refused = bad_token;
}

static void take_mode(struct flags *f, const char *token, uint32_t bytes)
{
	f->mode = bytes ? (char)(token[0] & ~0x20) : 0;
	if (bytes && (token[0] == '+' || token[0] == '-'))
		f->mode = token[0] == '+' ? 'I' : 'D';
	if (bytes != 1)
		f->refused = "CLIENT_ERROR incorrect length for M token\r\n";
}

/* Of ma N: seconds, as a first expiry. */
static void take_vivify(struct flags *f, const char *token, uint32_t bytes)
{
	uint32_t expiry;

	f->meta.vivifies = true;
	if (!mc_expiry_of(token, bytes, &f->meta.vivify_ttl, &expiry) || expiry)
		f->refused = bad_token;
}

/* One flag; `allowed` has those that the command knows. */
static void take_flag(struct flags *f, const char *word, uint32_t bytes, const char *allowed)
{
	const char *token = word + 1;
	uint32_t n = bytes - 1;
	uint64_t number;

	if (!*word || !strchr(allowed, *word)) {
		f->refused = bad_flag;
		return;
	}
	if (f->seen >> (*word & 63) & 1)
		f->refused = twice;
	f->seen |= 1ull << (*word & 63);
	switch (*word) {
	case 'b': f->meta.base64 = true; break;
	case 'v': f->meta.value = true; break;
	case 'q': f->meta.quiet = true; break;
	case 'O': take_opaque(f, token, n); break;
	case 'T': take_expiry(f, token, n); break;
	case 'M': take_mode(f, token, n); break;
	case 'N': take_vivify(f, token, n); break;
	case 'J': take_number(f, token, n, UINT64_MAX, &f->meta.initial); break;
	case 'D': take_number(f, token, n, UINT64_MAX, &f->delta); break;
	case 'C':
		f->condition = XSEG_KV_IF_VERSION;
		take_number(f, token, n, UINT64_MAX, &f->version);
		break;
	case 'F':
		if (!mc_number(token, n, &number) || number > UINT32_MAX)
			f->refused = bad_format;
		else
			f->client = (uint32_t)number;
		break;
	case 'u': break;			/* a get changes no order here anyway */
	default: add_flag(f, *word);
	}
}

static bool take_key(struct flags *f, const char *key, uint32_t bytes)
{
	size_t n;

	if (bytes == 0 || bytes > (f->meta.base64 ? (MC_KEY_MAX + 2) / 3 * 4 : MC_KEY_MAX))
		return false;
	if (!f->meta.base64) {
		memcpy(f->key, key, bytes);
		f->key_bytes = bytes;
		return true;
	}
	if (sodium_base642bin((unsigned char *)f->key, sizeof(f->key), key, bytes, NULL, &n, NULL,
		    sodium_base64_VARIANT_ORIGINAL) || n == 0)
		return false;
	f->key_bytes = (uint32_t)n;
	return true;
}

/* All flags from that word on, and the key. The answer if they make no sense, or NULL. */
static const char *take_flags(struct flags *f, const struct mc_line *l, uint32_t from,
	const char *allowed)
{
	*f = (struct flags){ .condition = XSEG_KV_ALWAYS, .delta = 1 };
	if (l->nr < 2)
		return "ERROR\r\n";
	if (l->cut)
		return "CLIENT_ERROR options flags are too long\r\n";
	for (uint32_t i = from; i < l->nr && !f->refused; i++) {
		take_flag(f, l->word[i].at, l->word[i].bytes, allowed);
	}
	if (f->refused)
		return f->refused;
	if (take_key(f, l->word[1].at, l->word[1].bytes))
		return NULL;
	return f->meta.base64 ? "CLIENT_ERROR error decoding key\r\n" : bad_format;
}

/* The same for md and ma, which have one word for flags that are twice or have a bad token. */
static const char *take_few_flags(struct flags *f, const struct mc_line *l, const char *allowed)
{
	const char *refused = take_flags(f, l, 2, allowed);

	return f->refused && f->refused != bad_flag ? bad_or_twice : refused;
}

/* An operation as the flags say. */
static struct mc_op *begin(struct mc_line *l, const struct flags *f, enum mc_kind kind)
{
	struct mc_op *op = mc_op_of_key(l->conn, kind, f->key, f->key_bytes);

	if (!op)
		return NULL;
	op->meta = f->meta;
	op->io.item.version = f->version;
	op->io.item.condition = f->condition;
	mc_count(l->conn->worker, MS_CMD_META, 1);
	return op;
}

/* ---- commands ---------------------------------------------------------------------------- */

enum mc_taken mc_meta_get(struct mc_line *l)
{
	struct flags f;
	const char *refused = take_flags(&f, l, 2, "bcfkOqstvTu");
	struct mc_op *op;

	if (refused)
		return mc_say(l->conn, refused);
	op = begin(l, &f, MC_META_GET);
	if (!op)
		return MC_NO_OP;
	op->reads = !f.has_ttl;
	op->io.op = f.has_ttl ? XSEG_KV_TOUCH : XSEG_KV_GET;
	op->io.flags = f.has_ttl ? 0 : XSEG_KV_LOAN;
	op->io.item.ttl_s = f.ttl_s;
	op->io.item.expiry = f.expiry;
	mc_count(l->conn->worker, MS_CMD_GET, 1);
	mc_op_begin(op);
	return MC_TAKEN;
}

enum mc_taken mc_meta_debug(struct mc_line *l)
{
	struct flags f = { .condition = XSEG_KV_ALWAYS };
	struct mc_op *op;

	f.meta.base64 = mc_line_is(l, 2, "b");
	if (l->nr < 2 || l->nr > 3 || !take_key(&f, l->word[1].at, l->word[1].bytes))
		return mc_say(l->conn, bad_format);
	op = begin(l, &f, MC_META_DEBUG);
	if (!op)
		return MC_NO_OP;
	op->reads = true;
	op->io.op = XSEG_KV_GET;
	op->io.flags = XSEG_KV_LOAN;
	mc_op_begin(op);
	return MC_TAKEN;
}

/* What a mode of ms does; false: there is none such. */
static bool mode_of_store(char mode, enum xseg_kv_op *what, uint32_t *condition)
{
	*what = mode == 'A' ? XSEG_KV_APPEND : mode == 'P' ? XSEG_KV_PREPEND : XSEG_KV_PUT;
	if (mode == 'E')
		*condition = XSEG_KV_IF_ABSENT;
	else if (mode == 'R' && *condition == XSEG_KV_ALWAYS)
		*condition = XSEG_KV_IF_PRESENT;
	return !mode || strchr("EAPRS", mode);
}

enum mc_taken mc_meta_set(struct mc_line *l)
{
	struct flags f;
	uint64_t bytes = 0;
	bool sized = l->nr > 2 && mc_number(l->word[2].at, l->word[2].bytes, &bytes) &&
		     bytes <= INT32_MAX - 2;
	const char *refused = take_flags(&f, l, 3, "bcCFkOqsTM");
	enum xseg_kv_op what = XSEG_KV_PUT;
	struct mc_op *op;
	enum mc_taken taken;

	if (l->nr > 1 && !sized)
		refused = bad_format;
	else if (!refused && !mode_of_store(f.mode, &what, &f.condition))
		refused = "CLIENT_ERROR invalid mode for ms M token\r\n";
	if (refused) {
		taken = mc_say(l->conn, refused);
		if (taken == MC_TAKEN && sized)
			l->conn->swallow = bytes + 2;
		return taken;
	}
	op = mc_pending(l->conn, MC_META_STORE, f.key, f.key_bytes);
	if (!op)
		return MC_NO_OP;
	op->meta = f.meta;
	op->io.op = what;
	op->io.item.version = f.version;
	op->io.item.condition = f.condition;
	op->io.item.client = f.client;
	op->io.item.ttl_s = f.ttl_s;
	op->io.item.expiry = f.expiry;
	mc_count(l->conn->worker, MS_CMD_META, 1);
	mc_count(l->conn->worker, MS_CMD_SET, 1);
	return mc_fill(l->conn, bytes);
}

enum mc_taken mc_meta_delete(struct mc_line *l)
{
	struct flags f;
	const char *refused = take_few_flags(&f, l, "bCkOq");
	struct mc_op *op;

	if (refused)
		return mc_say(l->conn, refused);
	op = begin(l, &f, MC_META_DELETE);
	if (!op)
		return MC_NO_OP;
	op->io.op = XSEG_KV_DELETE;
	mc_op_begin(op);
	return MC_TAKEN;
}

enum mc_taken mc_meta_arith(struct mc_line *l)
{
	struct flags f;
	const char *refused = take_few_flags(&f, l, "bcCDJkMNOqtTv");
	struct mc_op *op;

	if (!refused && f.mode && !strchr("ID", f.mode))
		refused = "CLIENT_ERROR invalid mode for ma M token\r\n";
	if (refused)
		return mc_say(l->conn, refused);
	op = begin(l, &f, MC_META_ARITH);
	if (!op)
		return MC_NO_OP;
	op->touches = f.has_ttl;
	op->ttl_s = f.ttl_s;
	op->expiry = f.expiry;
	op->looks = strchr(f.meta.flag, 't');
	op->arith = f.mode == 'D' ? XSEG_KV_DECR : XSEG_KV_INCR;
	op->amount = f.delta;
	op->io.op = op->arith;
	op->io.item.number = f.delta;
	mc_op_begin(op);
	return MC_TAKEN;
}
