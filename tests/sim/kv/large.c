/* large - large values of the clients of kvd, by the requests that the library sends.
 *
 * A put is BEGIN, a PART for each piece, and COMMIT, which is a change like others; some are
 * dropped in the middle. A get has the record, then HOLD, a PIECE for each piece, and DROP. Between
 * two of these kvd may be killed, and the key may be changed. In a simulated log a zone has some
 * pages, and a piece is as long as a zone.
 *
 * Contract: of values.c; one request of an I/O is out at a time.
 *
 * Invariants, beside those of versions.h
 *   G1  A piece that is read has the sum that its record says, whatever became of the key since.
 *   G2  A value of which a part has failed is not committed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

#define TRIES 64u

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t piece_bytes(const struct sim *s, const struct vlarge *l, uint32_t i)
{
	return least(s->values->piece_bytes, l->bytes - i * s->values->piece_bytes);
}

static uint32_t pieces(const struct sim *s, const struct vlarge *l)
{
	return (l->bytes + s->values->piece_bytes - 1) / s->values->piece_bytes;
}

/* ---- requests ---- */

/* A change that stands alone. */
static void send_step(struct sim *s, struct vio *io, enum vlarge_step step, struct kw_change c)
{
	io->large.step = step;
	c.key = value_key(io->key[0], &c.key_bytes);
	io->c[0] = c;
	if (!kw_batch(s->seg, io->r, &s->values->log, io->c, 1, step == LARGE_COMMIT && io->fua,
			io->page, VPAGES))
		sim_fail(s, "values: the sums of a large value are too many for the test");
	value_submit(s, io);
}

static void drop(struct sim *s, struct vio *io)
{
	send_step(s, io, LARGE_DROP,
		(struct kw_change){ .kind = KV_DROP, .handle = io->large.handle });
}

static void send_part(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	uint32_t bytes = piece_bytes(s, l, l->next), from = l->next * s->values->piece_bytes;
	uint32_t span = xseg_req_span(0, bytes);

	l->step = LARGE_PART;
	kw_part(s->seg, io->r, &s->values->log, l->handle, from, span * KV_PAGE, io->page);
	xseg_req_write_data(s->seg, io->r, 0, l->data + from, bytes);
	value_submit(s, io);
}

static void send_piece(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	struct kv_query q = { .kind = KV_PIECE, .held = l->handle,
		.offset = (uint64_t)l->next * s->values->piece_bytes };

	l->step = LARGE_PIECE;
	kw_query(s->seg, io->r, &s->values->log, &q, NULL, io->page,
		xseg_req_span(0, piece_bytes(s, l, l->next)));
	if (io->lends)
		io->r->flags |= XSEG_REQ_LOAN;
	value_submit(s, io);
}

/* An error of the store, or what it leaves: a handle that is lost when the log is opened anew. */
static bool is_fault(struct sim *s, int64_t result)
{
	s->nr_errors += result == -EIO;
	return s->errors_ok && (result == -EIO || result == -EBADF || result == -ENOSPC);
}

/* ---- puts ---- */

void large_put(struct sim *s, struct vio *io, struct rng *g)
{
	struct vlarge *l = &io->large;
	uint32_t most = least(LARGE_ROOM, 4 * s->values->piece_bytes);
	uint64_t word = 0;

	*l = (struct vlarge){ .data = l->data, .bytes = rng_range(g, 1, rng_one_in(g, 2) ? most :
						   s->values->piece_bytes) };
	for (uint32_t at = 0; at < l->bytes; at++) {
		if (at % 8 == 0)
			word = rng_next(g);
		l->data[at] = (uint8_t)(word >> at % 8 * 8);
	}
	l->stop = rng_one_in(g, 8) ? rng_below(g, pieces(s, l) + 1) : UINT32_MAX;
	value_condition(s, g, io);
	sim_log(s, "values: %td: a large value of key %u begins, %u bytes", io - s->values->io,
		io->key[0], l->bytes);
	send_step(s, io, LARGE_BEGIN,
		(struct kw_change){ .kind = KV_BEGIN, .total = rng_one_in(g, 3) ? 0 : l->bytes });
}

static void commit(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	struct values *w = s->values;
	uint32_t key = io->key[0];
	struct vchange change = { .kind = KV_PUT, .condition = l->put.condition,
		.expiry = l->put.expiry, .if_version = l->put.version, .large = true,
		.value = { l->data, l->bytes } };

	for (uint32_t i = 0; i < pieces(s, l); i++)
		l->sum[i] = xcrc32c(0, l->data + i * w->piece_bytes, piece_bytes(s, l, i));
	io->nr = 1;
	io->change[0] = versions_begin(&w->v, key, &change);
	w->v.key[key].out++;
	sim_log(s, "values: %td: commit of key %u, condition %u (%" PRIu64 ")%s", io - w->io, key,
		l->put.condition, l->put.version, io->fua ? ", FUA" : "");
	send_step(s, io, LARGE_COMMIT, (struct kw_change){ .kind = KV_COMMIT, .handle = l->handle,
		.total = l->bytes, .value = l->sum,
		.value_bytes = pieces(s, l) * (uint32_t)sizeof(l->sum[0]),
		.condition = l->put.condition, .expiry = l->put.expiry,
		.version = l->put.version });
}

/* What comes next of a put. */
static void go_on(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	struct values *w = s->values;
	uint32_t key = io->key[0];

	if (l->next == l->stop || w->alone[key] || w->unsure[key] ||
		w->v.key[key].out >= VCHANGES)
		drop(s, io);
	else if (l->next < pieces(s, l))
		send_part(s, io);
	else
		commit(s, io);
}

static void begun(struct sim *s, struct vio *io)
{
	int64_t result = io->r->result;
	struct kw_change *c = &io->c[0];

	if (result != io->r->size && !value_is_refusal(s, result))
		sim_fail(s, "values: BEGIN was answered %" PRIi64, result);
	if (result == io->r->size)
		kw_outcomes(s->seg, io->r, c, 1);
	if (result != io->r->size || c->result) {
		if (result == io->r->size && c->result != -ENOSPC && c->result != -EFBIG &&
			c->result != -EBUSY)
			sim_fail(s, "values: BEGIN has the result %d", c->result);
		value_done(s, io);
		return;
	}
	io->large.handle = c->number;
	go_on(s, io);
}

static void part_answered(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	int64_t result = io->r->result;

	if (result != io->r->size && !is_fault(s, result) && result != -ENOSPC)
		sim_fail(s, "values: PART %u of key %u was answered %" PRIi64, l->next, io->key[0],
			result);
	if (result == -ENOSPC || result == -EBADF) {
		drop(s, io);
		return;
	}
	l->failed |= result < 0;		/* G2 */
	l->next++;
	go_on(s, io);
}

static void committed(struct sim *s, struct vio *io)
{
	int result = value_changed(s, io);

	if (!result && io->large.failed)
		sim_fail(s, "values: key %u has a large value of which a part has failed",
			io->key[0]);
	if ((result == -EBADF && !s->errors_ok) ||
		(result == -EIO && !value_may_fail(s, io, io->key[0])))
		sim_fail(s, "values: COMMIT of key %u has the result %d", io->key[0], result);
	if (result == -EINVAL)
		sim_fail(s, "values: COMMIT of key %u is refused", io->key[0]);
	if (result)
		drop(s, io);
	else
		value_done(s, io);
}

/* ---- gets ---- */

void large_get(struct sim *s, struct vio *io, const struct kw_value *v)
{
	struct vlarge *l = &io->large;
	struct kv_large is;

	memcpy(&is, v->value, sizeof(is));
	*l = (struct vlarge){ .data = l->data, .gets = true, .bytes = (uint32_t)is.bytes,
		.value = *v };
	if (is.bytes > LARGE_ROOM || is.piece_bytes != s->values->piece_bytes ||
		is.nr_pieces != pieces(s, l) ||
		v->value_bytes != sizeof(is) + is.nr_pieces * sizeof(l->sum[0]))
		sim_fail(s, "values: the record of a large value of key %u is none", io->key[0]);
	memcpy(l->sum, v->value + sizeof(is), is.nr_pieces * sizeof(l->sum[0]));
	xseg_req_drop_loans(s->values->port[io->port], io->r);
	io->op = VALUE_LARGE;
	send_step(s, io, LARGE_HOLD,
		(struct kw_change){ .kind = KV_HOLD, .version = l->value.version });
}

static void got(struct sim *s, struct vio *io, int rc)
{
	struct vlarge *l = &io->large;

	io->op = VALUE_GET;
	l->value.value = l->data;
	l->value.value_bytes = l->bytes;
	value_judge(s, io, rc, &l->value);
	value_done(s, io);
}

static void held(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	int64_t result = io->r->result;
	struct kw_change *c = &io->c[0];

	if (result == io->r->size)
		kw_outcomes(s->seg, io->r, c, 1);
	if (result != io->r->size || c->result == -EIO) {
		got(s, io, result != io->r->size ? (int)result : -EIO);
		return;
	}
	if (c->result) {			/* something else is there now */
		if ((c->result != -ESTALE && c->result != -ENOENT && c->result != -EINVAL &&
			    c->result != -EBUSY) || io->tries++ == TRIES)
			sim_fail(s, "values: HOLD of key %u has the result %d", io->key[0],
				c->result);
		io->op = VALUE_GET;
		value_ask(s, io);
		return;
	}
	l->handle = c->number;
	send_piece(s, io);
}

static void piece_answered(struct sim *s, struct vio *io)
{
	struct vlarge *l = &io->large;
	struct values *w = s->values;
	uint32_t bytes = piece_bytes(s, l, l->next), from = l->next * w->piece_bytes;
	int64_t result = io->r->result;

	if (result < bytes) {
		l->result = result < 0 ? (int)result : -EIO;
		if (!is_fault(s, l->result) &&
			!(l->result == -EIO && value_may_fail(s, io, io->key[0])))
			sim_fail(s, "values: piece %u of key %u was answered %" PRIi64, l->next,
				io->key[0], result);
		drop(s, io);
		return;
	}
	xseg_req_read_data(s->seg, io->r, 0, l->data + from, bytes);
	xseg_req_drop_loans(w->port[io->port], io->r);
	if (xcrc32c(0, l->data + from, bytes) != l->sum[l->next])	/* G1 */
		sim_fail(s, "values: piece %u of key %u, version %" PRIu64 ", has another sum",
			l->next, io->key[0], l->value.version);
	if (++l->next < pieces(s, l))
		send_piece(s, io);
	else
		drop(s, io);
}

/* ---- answers ---- */

static void dropped(struct sim *s, struct vio *io)
{
	int64_t result = io->r->result;

	if (result == io->r->size)
		kw_outcomes(s->seg, io->r, io->c, 1);
	/* a successor that does it again finds none */
	if ((result != io->r->size || (io->c[0].result && io->c[0].result != -EBADF)) &&
		!s->errors_ok)
		sim_fail(s, "values: DROP of key %u was answered %" PRIi64 ", %d", io->key[0],
			result, io->c[0].result);
	if (io->large.gets)
		got(s, io, io->large.result);
	else
		value_done(s, io);
}

void large_answered(struct sim *s, struct vio *io)
{
	sim_log(s, "values: %td: large value of key %u, step %u -> %" PRIi64, io - s->values->io,
		io->key[0], io->large.step, io->r->result);
	switch (io->large.step) {
	case LARGE_BEGIN: begun(s, io); break;
	case LARGE_PART: part_answered(s, io); break;
	case LARGE_COMMIT: committed(s, io); break;
	case LARGE_HOLD: held(s, io); break;
	case LARGE_PIECE: piece_answered(s, io); break;
	default: dropped(s, io); break;
	}
}
