/* requests - what all of the clients' requests have in common: keys, ports, begin and end.
 *
 * Contract: steps of the scheduler. The files that send requests use this one, and it uses none of
 * them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

char key_name[VERSION_KEYS][KEY_ROOM];
uint32_t key_bytes[VERSION_KEYS];

/* One in eight is long. */
void value_name_keys(void)
{
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		memset(key_name[i], 'a' + (int)i, KEY_ROOM);
		key_bytes[i] = i % 8 == 7 ? KEY_ROOM - i : 2 + i % 5;
		key_name[i][0] = 'k';
	}
}

const char *value_key(uint32_t key, uint32_t *bytes)
{
	*bytes = key_bytes[key];
	return key_name[key];
}

void value_complain(struct sim *s, const char *error)
{
	if (error)
		sim_fail(s, "values: %s", error);
}

/* ---- requests ---- */

struct vio *value_io(const struct sim *s)
{
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		if (!s->values->io[i].r)
			return &s->values->io[i];
	return NULL;
}

void value_submit(struct sim *s, struct vio *io)
{
	struct values *w = s->values;

	io->r->cookie = io;
	io->r->hash = rng_next(&s->rng);
	if (xseg_req_submit(w->port[io->port], io->r,
		    xseg_peer_find(s->seg, node_name(NODE_KVD))))
		sim_fail(s, "values: a request was not taken");
}

void value_take(struct sim *s, struct vio *io, enum value_op op)
{
	struct values *w = s->values;

	io->r = xseg_req_alloc(w->port[io->port]);
	if (!io->r)
		sim_fail(s, "values: a client has no request left: leaked");
	io->op = op;
	io->nr = 0;
	io->issued_ns = s->now;
	io->begin = ++w->v.now;
	io->fua = io->resolves = io->lends = false;
	io->tries = io->flags = 0;
	w->in_flight++;
}

void value_done(struct sim *s, struct vio *io)
{
	struct values *w = s->values;

	xseg_req_free(w->port[io->port], io->r);
	io->r = NULL;
	w->in_flight--;
	for (uint32_t i = 0; i < io->nr; i++) {
		uint32_t key = io->key[i];

		w->v.key[key].out--;
		w->alone[key] = false;
		if (io->op != VALUE_GET && io->op != VALUE_EXISTS)
			w->forgot[key] = ++w->v.now;
		if (!w->unsure[key])
			value_complain(s, versions_check(&w->v, key));
	}
}

/* The key, or one behind it, of which so much can be out; VERSION_KEYS: there is none. */
uint32_t value_usable(const struct sim *s, const struct vio *io, uint32_t key, uint32_t most)
{
	struct values *w = s->values;

	for (uint32_t i = 0; i < VERSION_KEYS; i++, key++) {
		uint32_t k = key % VERSION_KEYS;
		bool twice = false;

		for (uint32_t n = 0; n < io->nr; n++)
			twice |= io->key[n] == k;
		if (!twice && !w->alone[k] && !w->unsure[k] && w->v.key[k].out < most)
			return k;
	}
	return VERSION_KEYS;
}

/* All that the answer of a batch may be, if none was done. */
bool value_is_refusal(struct sim *s, int64_t result)
{
	s->nr_errors += result == -EIO;
	return result == -ENOSPC || result == -EFBIG || (s->errors_ok && result == -EIO);
}
