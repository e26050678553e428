/* keeper - the volumes of a run: they shrink, grow, go and come again by the same name, while
 * clients use them.
 *
 * The keeper is a second administrator, with one line out at a time, because a shrink is answered
 * late. A change is a list of sizes, which a volume is given one after the other. Size 0 removes
 * it. The keeper repeats a line until it succeeds: after an error of the store, when volumed says
 * that an older job is not done, and when the keeper died with the clients. So at the end the size
 * of each volume is known.
 *
 *   step    meaning                              then
 *   IDLE    there is no change                   SEND, by the script
 *   SEND    a line is due at retry_ns            OUT
 *   OUT     the line has been sent               IDLE or SEND, by its answer; SEND, by his death
 *
 * Clients meanwhile see a range of sizes: `least` and `most` are the smallest and the largest size
 * that a volume may have, 0 if it may be gone. An I/O notes both, over the time that it is in
 * flight:
 *
 *   V1  it is refused (-ENXIO; -ENOENT if the volume is gone) only if it reaches beyond the
 *       smallest size, and is done only if it does not reach beyond the largest
 *   V2  a write that is refused was not done, not even half of it (oracle.h); also if it was
 *       split, and volumed was killed meanwhile. A removal of the volume ends a split write in any
 *       case, so one that gets -ENOENT may be half done
 *   V3  a request with the id of a volume that is gone is refused, also when there is another
 *       volume of that name
 *   V4  a new volume, and the part by which a volume has grown, is zeroes until it is written
 *       (oracle.h)
 *   V5  when all jobs are over each object of the store belongs to a volume, and is within its size
 *
 * Contract: between two steps of the scheduler. Only with a volumed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/memd/memd.h"
#include "peers/volumed/volumed.h"
#include "tests/sim/sim.h"
#include "xseg/internal.h"

#define RETRY_NS (2 * MS)

/* ---- names ---- */

static const struct vd_volume *volume_of(const struct sim *s, uint32_t id)
{
	const struct node *n = &s->node[NODE_VOLUMED];

	return n->serving && id ? vd_volume_get((struct volumed *)n->p, id) : NULL;
}

/* How its objects' names begin is volumed's choice: as soon as it is served it is looked at. */
static void learn_prefix(struct sim *s, struct sim_volume *v)
{
	const struct vd_volume *vv = v->prefix[0] ? NULL : volume_of(s, v->id);

	if (vv)
		snprintf(v->prefix, sizeof(v->prefix), "%.*s", (int)vv->prefix_len, vv->prefix);
}

static void volume_is_new(struct sim *s, uint32_t v, uint32_t sectors, const char *text)
{
	const char *at = strstr(text, "id=");

	s->volume[v] = (struct sim_volume){ .id = at ? (uint32_t)strtoul(at + 3, NULL, 10) : 0,
		.least = sectors,
		.most = sectors };
	if (!s->volume[v].id)
		sim_fail(s, "volume create says no id: %s", text);
	learn_prefix(s, &s->volume[v]);
}

/* Every second one; a lax limit of requests has one of 4 MiB a second beside it. One that is made
 * again has none. */
static void limit_some(struct sim *s, uint32_t v)
{
	if (!s->plan.limits || v % 2)
		return;
	if (admin_call(s, NODE_VOLUMED, "volume set vol%u iops=%u bandwidth=%u", v,
		    s->plan.limits, s->plan.limits < 4000 ? 0 : 4u << 20) < 0)
		sim_fail(s, "volume set: %s", s->admin.text);
}

void keeper_open(struct sim *s)
{
	for (uint32_t v = 0; v < s->plan.nr_volumes; v++) {
		uint32_t sectors = s->plan.sectors[v];

		s->volume[v] = (struct sim_volume){
			.id = v + 1, .least = sectors, .most = sectors };
		if (!s->plan.node[NODE_VOLUMED])
			continue;
		if (admin_call(s, NODE_VOLUMED, "volume create vol%u size=%u", v,
			    sectors * ORACLE_SECTOR) < 0)
			sim_fail(s, "volume create: %s", s->admin.text);
		volume_is_new(s, v, sectors, s->admin.text);
		limit_some(s, v);
	}
}

/* ---- what an I/O may be answered ---- */

static bool bears_id(const struct sim *s, const struct io *io)
{
	return io->volume < s->plan.nr_volumes && io->id == s->volume[io->volume].id;
}

void keeper_note_io(const struct sim *s, struct io *io)
{
	const struct sim_volume *v = &s->volume[io->volume];

	io->id = io->volume == ORACLE_VOLUMES ? 0 : v->id;
	io->least = io->volume == ORACLE_VOLUMES ? UINT32_MAX : v->least;
	io->most = io->volume == ORACLE_VOLUMES ? UINT32_MAX : v->most;
}

static struct io *next_out(struct sim *s, uint32_t *at)
{
	while (*at < s->plan.nr_clients * s->plan.depth) {
		struct io *io = &s->client[*at / s->plan.depth].io[*at % s->plan.depth];

		++*at;
		if (io->r && !io->kept)
			return io;
	}
	return NULL;
}

/* Its size is, or may be, another: those that are out have seen both. */
static void size_set(struct sim *s, uint32_t volume, uint32_t least, uint32_t most)
{
	struct io *io;

	s->volume[volume].least = least;
	s->volume[volume].most = most;
	for (uint32_t at = 0; (io = next_out(s, &at));) {
		if (io->volume != volume || !bears_id(s, io))
			continue;
		io->least = least < io->least ? least : io->least;
		io->most = most > io->most ? most : io->most;
	}
}

/* Of what it asks for, at least something: of a volume that is gone nothing is there. */
static uint32_t end_of(const struct io *io)
{
	if (io->op == XSEG_OP_FLUSH)
		return 1;
	if (io->op == XSEG_OP_INFO && !io->ranged)
		return io->first ? io->first : 1;
	return io->first + io->nr;
}

bool keeper_may_refuse(const struct io *io, int64_t result)
{
	int gone = io->op == XSEG_OP_INFO && io->ranged ? -ESTALE : -ENOENT;

	return (result == -ENXIO && io->least < end_of(io)) || (result == gone && !io->least);
}

static bool may_be_half_done(const struct sim *s, const struct io *io, int64_t result)
{
	uint32_t sectors = s->plan.object_size / ORACLE_SECTOR;

	return result == -ENOENT && io->first / sectors != (io->first + io->nr - 1) / sectors;
}

void keeper_refused(struct sim *s, const struct io *io, int64_t result)
{
	s->nr_refused++;
	if (io->op == XSEG_OP_READ || io->ranged)
		oracle_read_drop(&s->oracle, io->begin);
	if (is_write(io->op) && may_be_half_done(s, io, result))
		oracle_write_end(&s->oracle, io->write, false);
	else if (is_write(io->op) && !oracle_write_refused(&s->oracle, io->write))
		sim_fail(s, "%s", s->oracle.error);
}

void keeper_check_done(struct sim *s, const struct io *io)
{
	if (s->plan.node[NODE_VOLUMED] && end_of(io) > io->most)
		sim_fail(s, "%s of volume %u sectors %u+%u was done, beyond its end",
			xseg_op_name(io->op), io->volume, io->first, io->nr);
}

/* ---- the keeper ---- */

bool keeper_idle(struct sim *s)
{
	return s->keeper.step == KEEPER_IDLE;
}

bool keeper_is_making(const struct sim *s, const struct item *it)
{
	const struct keeper *k = &s->keeper;

	return k->step != KEEPER_IDLE && it->volume != ORACLE_VOLUMES &&
	       it->volume % s->plan.nr_volumes == k->volume && !s->volume[k->volume].most &&
	       k->size[0];
}

uint64_t keeper_due_ns(const struct sim *s)
{
	bool can = s->keeper.line.port && s->node[NODE_VOLUMED].serving;

	return can && s->keeper.step == KEEPER_SEND ? s->keeper.retry_ns : PEER_NEVER;
}

void keeper_change(struct sim *s, const struct item *it)
{
	struct keeper *k = &s->keeper;

	if (!s->plan.node[NODE_VOLUMED] || !s->plan.cuts || k->step != KEEPER_IDLE)
		return;
	k->step = KEEPER_SEND;
	k->volume = it->volume % s->plan.nr_volumes;
	k->size[0] = it->nr;
	k->size[1] = it->then;
	k->nr = 2;
	k->wait_ns = it->down * MS;
	k->retry_ns = s->now;
	k->tries = 0;
	k->cutting = false;
}

/* The size that is next; those that it has already are over. */
static bool next_size(struct sim *s)
{
	struct keeper *k = &s->keeper;

	while (k->nr && !k->tries && k->size[0] == s->volume[k->volume].most) {
		k->size[0] = k->size[1];
		k->nr--;
	}
	if (!k->nr)
		k->step = KEEPER_IDLE;
	return k->nr > 0;
}

/* Volumed, or the client, has it: where it is to be done is found out later. */
static bool is_above(struct sim *s, const struct io *io)
{
	uint64_t w = atomic_load(&s->seg->reqs[io->r->index].place);
	uint32_t top = xseg_peer_find(s->seg, node_name(NODE_VOLUMED));

	return place_state(w) < XSEG_REQ_AT ||
	       (place_state(w) < XSEG_REQ_ANSWERED &&
		       atomic_load(&s->seg->ports[place_port(w)].peer) == top + 1);
}

/* Its size may be the new one from now on. */
static void change_begin(struct sim *s, uint32_t size)
{
	struct keeper *k = &s->keeper;
	struct sim_volume *v = &s->volume[k->volume];
	uint32_t old = v->most;
	struct io *io;

	if (size < old && !k->cutting) {
		k->cutting = true;
		k->cut = oracle_cut_begin(&s->oracle, k->volume, size, old - size);
	}
	if (k->tries)
		return;
	for (uint32_t at = 0; size > old && old && (io = next_out(s, &at));)
		if (is_write(io->op) && io->volume == k->volume && bears_id(s, io) &&
			is_above(s, io))
			oracle_write_may_come(&s->oracle, io->write);
	/* a volume that is not there yet has no id that could be used */
	if (old)
		size_set(s, k->volume, size < old ? size : old, size < old ? old : size);
}

static void line_send(struct sim *s)
{
	struct keeper *k = &s->keeper;
	uint32_t size;
	char line[96];

	if (!next_size(s))
		return;
	size = k->size[0] * ORACLE_SECTOR;
	if (k->asks)
		snprintf(line, sizeof(line), "volume info vol%u", k->volume);
	else if (!size)
		snprintf(line, sizeof(line), "volume remove vol%u force", k->volume);
	else
		snprintf(line, sizeof(line), "volume %s vol%u size=%u",
			s->volume[k->volume].most ? "resize" : "create", k->volume, size);
	change_begin(s, k->size[0]);
	k->step = KEEPER_OUT;
	k->tries++;
	line_submit(s, &k->line, NODE_VOLUMED, line);
}

static void change_end(struct sim *s)
{
	struct keeper *k = &s->keeper;
	uint32_t size = k->size[0];

	if (k->cutting)
		oracle_cut_end(&s->oracle, k->cut);
	if (s->volume[k->volume].most)
		size_set(s, k->volume, size, size);
	else
		volume_is_new(s, k->volume, size, k->line.text);
	s->nr_cuts++;
	k->cutting = k->asks = false;
	k->tries = 0;
	k->size[0] = k->size[1];
	k->step = --k->nr ? KEEPER_SEND : KEEPER_IDLE;
	k->retry_ns = s->now + k->wait_ns;
}

/* An answer that says that it was done when the same was said before. */
static bool was_done(const struct keeper *k, int64_t result)
{
	return k->tries > 1 && !k->size[0] && result == -ENOENT;
}

static void line_answered(struct sim *s)
{
	struct keeper *k = &s->keeper;
	int64_t result = k->line.result;

	if (result >= 0 || was_done(k, result)) {
		change_end(s);
		return;
	}
	/* it was made, and who asked for it has not heard its id */
	k->asks = result == -EEXIST && k->tries > 1;
	if (result != -EBUSY && !k->asks && !s->errors_ok)
		sim_fail(s, "the keeper's line for volume %u was answered %" PRIi64 ": %s",
			k->volume, result, k->line.text);
	k->step = KEEPER_SEND;
	k->retry_ns = s->now + RETRY_NS;
}

bool keeper_tend(struct sim *s)
{
	struct keeper *k = &s->keeper;

	for (uint32_t v = 0; v < s->plan.nr_volumes && s->plan.node[NODE_VOLUMED]; v++)
		learn_prefix(s, &s->volume[v]);
	if (k->step == KEEPER_OUT && line_reply(s, &k->line)) {
		line_answered(s);
		return true;
	}
	if (k->step != KEEPER_SEND || s->now < k->retry_ns || !k->line.port ||
		!s->node[NODE_VOLUMED].serving)
		return false;
	line_send(s);
	return true;
}

void keeper_lost(struct sim *s, bool power)
{
	struct keeper *k = &s->keeper;

	if (k->step == KEEPER_OUT) {
		k->step = KEEPER_SEND;
		k->retry_ns = s->now;
	}
	if (k->cutting && power)	/* oracle_power_loss() has ended it */
		k->cut = oracle_cut_begin(&s->oracle, k->volume, k->size[0],
			s->volume[k->volume].most - k->size[0]);
}

/* ---- the end ---- */

bool keeper_settled(struct sim *s)
{
	const struct node *n = &s->node[NODE_VOLUMED];

	return !s->plan.node[NODE_VOLUMED] ||
	       (keeper_idle(s) && n->serving && ((struct volumed *)n->p)->nr_jobs == 0);
}

static bool is_owned(const struct sim *s, const char *name)
{
	for (uint32_t v = 0; v < s->plan.nr_volumes; v++) {
		const struct sim_volume *vv = &s->volume[v];
		size_t len = strlen(vv->prefix);
		uint64_t end = (uint64_t)vv->most * ORACLE_SECTOR;

		if (vv->most && len && strncmp(name, vv->prefix, len) == 0 &&
			strtoull(name + len, NULL, 16) * s->plan.object_size < end)
			return true;
	}
	return name[0] == ':' || name[0] == '+';	/* the catalogue; a log */
}

void keeper_check_leaks(struct sim *s)
{
	char name[XSEG_TARGET_MAX];

	for (uint32_t at = 0; s->has_volumed && memd_next_name(s->node[NODE_MEMD].p, &at, name);)
		if (!is_owned(s, name))
			sim_fail(s, "the store has an object '%s', which is of no volume", name);
}
