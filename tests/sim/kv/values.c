/* values - clients of kvd: they put, get, delete and scan values, and judge the answers.
 *
 * They are a peer of their own, with two ports. What is to be sent is in the script; its
 * particulars follow from the seed and the item's number. Changes are made in changes.c, gets and
 * scans in queries.c, and versions.c says which answers may be. The date that kvd is told jumps,
 * forwards and backwards.
 *
 * Contract: steps of the scheduler. Requests go to NODE_KVD.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kv/inside.h"

uint32_t values_date(const struct sim *s)
{
	struct values *w = s->values;
	uint32_t date = (uint32_t)(DATE + (int64_t)(s->now / SEC) + w->skew);

	if (date > w->v.latest)
		w->v.latest = date;
	return date;
}

const char *values_name(const struct sim *s)
{
	static char name[32];

	snprintf(name, sizeof(name), "values-%u", s->values->incarnation);
	return name;
}

/* ---- what is sent, and the answers ---- */

static bool send_flush(struct sim *s)
{
	struct vio *io = value_io(s);

	value_take(s, io, VALUE_FLUSH);
	io->r->op = XSEG_OP_FLUSH;
	io->r->volume = s->values->log.id;
	io->r->flags = 0;
	io->r->offset = io->r->size = io->r->nr_pages = 0;
	sim_log(s, "values: %td: flush at %" PRIu64, io - s->values->io, io->begin);
	value_submit(s, io);
	return true;
}

static void flush_answered(struct sim *s, struct vio *io)
{
	int64_t result = io->r->result;

	sim_log(s, "values: %td: flush -> %" PRIi64, io - s->values->io, result);
	if (result && !(s->errors_ok && (result == -EIO || result == -ENOSPC)))
		sim_fail(s, "values: a FLUSH was answered %" PRIi64, result);
	if (!result) {
		versions_promise(&s->values->v, io->begin);
		s->promised = true;
	}
	value_done(s, io);
}

static void info_answered(struct sim *s, struct vio *io)
{
	struct values *w = s->values;
	struct kv_info info;

	if (io->r->result != KV_PAGE)
		sim_fail(s, "values: INFO was answered %" PRIi64, io->r->result);
	xseg_req_read_data(s->seg, io->r, 0, &info, sizeof(info));
	w->log.id = info.id;
	memcpy(w->log.uuid, info.uuid, sizeof(info.uuid));
	w->value_max = info.record_max;
	w->piece_bytes = info.piece_bytes;
	value_done(s, io);
}

/* kvd was killed, or has opened its log anew. */
static void look_at_kvd(struct sim *s)
{
	struct values *w = s->values;
	struct kvd *k = (struct kvd *)s->node[NODE_KVD].p;

	if (!k || (w->kvd == &k->peer && w->began_ns == k->began_ns))
		return;
	w->kvd = &k->peer;
	w->began_ns = k->began_ns;
	w->v.opened = ++w->v.now;
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		w->forgot[i] = w->v.opened;
}

bool values_replies(struct sim *s)
{
	struct values *w = s->values;
	struct xreq *r;
	bool any = false;

	if (w)
		look_at_kvd(s);
	for (uint32_t i = 0; w && i < VPORTS; i++)
		while (w->port[i] && xseg_port_replies(w->port[i], &r, 1)) {
			struct vio *io = r->cookie;

			any = true;
			if (!io || io->r != r)
				sim_fail(s, "values: an answer came twice");
			switch (io->op) {
			case VALUE_DELETE_ALL:
			case VALUE_CHANGE: value_change_answered(s, io); break;
			case VALUE_GET: value_get_answered(s, io); break;
			case VALUE_EXISTS: value_exists_answered(s, io); break;
			case VALUE_SCAN: value_scan_answered(s, io); break;
			case VALUE_FLUSH: flush_answered(s, io); break;
			case VALUE_RENEW: value_renew_answered(s, io); break;
			case VALUE_LARGE: large_answered(s, io); break;
			default: info_answered(s, io); break;
			}
		}
	return any;
}

bool values_flush(struct sim *s)
{
	for (uint32_t i = 0; s->values && i < VPORTS; i++)
		if (s->values->port[i])
			xseg_port_flush(s->values->port[i]);
	return false;
}

/* Mostly forwards; a little back. */
static void date(struct sim *s, struct rng *g)
{
	s->values->skew += rng_one_in(g, 3) ? -(int64_t)rng_below(g, 3000)
					    : (int64_t)rng_below(g, 2500);
	sim_log(s, "values: the date is %u", values_date(s));
}

bool values_room(const struct sim *s)
{
	return !s->values || (s->values->peer && value_io(s));
}

/* Another choice than those of other changes, so that these stay as they are. */
static bool send_large(struct sim *s, const struct item *it)
{
	struct rng g = { rng_mix(
		s->seed * 0x9e3779b97f4a7c15ull + (uint64_t)(it - s->item) + LARGES) };
	struct vio *io = value_io(s);
	uint32_t key;

	if (!rng_one_in(&g, 6))
		return false;
	io->nr = 0;
	key = value_usable(s, io, rng_below(&g, 8), VCHANGES);
	if (key == VERSION_KEYS)
		return false;
	value_take(s, io, VALUE_LARGE);
	io->key[0] = key;
	io->fua = rng_one_in(&g, 5);
	large_put(s, io, &g);
	return true;
}

/* There is room. */
void values_send(struct sim *s, const struct item *it)
{
	struct rng g = { rng_mix(s->seed * 0x9e3779b97f4a7c15ull + (uint64_t)(it - s->item)) };

	if (!s->values)
		return;
	if (value_resolve_some(s) && !value_io(s))
		return;
	switch ((enum value_op)it->op) {
	case VALUE_CHANGE:
		if (!s->plan.large || !send_large(s, it))
			value_send_change(s, &g, false);
		break;
	case VALUE_BATCH: value_send_change(s, &g, true); break;
	case VALUE_DELETE_ALL: value_send_delete_all(s, &g); break;
	case VALUE_SCAN: value_send_scan(s, &g); break;
	case VALUE_FLUSH: send_flush(s); break;
	case VALUE_DATE: date(s, &g); break;
	case VALUE_BAD: values_go_bad(s, &g); break;
	default: value_send_query(s, &g, (enum value_op)it->op); break;
	}
	if (it->publish)
		values_flush(s);
}

bool values_idle(struct sim *s)
{
	return !s->values || s->values->in_flight == 0;
}

bool values_too_old(const struct sim *s, uint64_t age_ns)
{
	for (uint32_t i = 0; s->values && i < VPORTS * VDEPTH; i++) {
		const struct vio *io = &s->values->io[i];
		uint64_t since = io->issued_ns > s->settled_ns ? io->issued_ns : s->settled_ns;

		if (io->r && s->now > since + age_ns)
			return true;
	}
	return false;
}

void values_dump(const struct sim *s)
{
	static const char *const names[] = { [VALUE_CHANGE] = "change", [VALUE_GET] = "get",
		[VALUE_EXISTS] = "exists", [VALUE_SCAN] = "scan", [VALUE_FLUSH] = "flush",
		[VALUE_INFO] = "info", [VALUE_DELETE_ALL] = "delete all",
		[VALUE_RENEW] = "put anew", [VALUE_LARGE] = "large value" };

	for (uint32_t i = 0; s->values && i < VPORTS * VDEPTH; i++) {
		const struct vio *io = &s->values->io[i];

		if (io->r)
			printf("  values wait for request %u: %s of key %u, sent %" PRIu64
			       " us ago\n", io->r->index, names[io->op], io->nr ? io->key[0] : 0,
				(s->now - io->issued_ns) / 1000);
	}
}

/* ---- life ---- */

/* The log's id and UUID: the same for ever. */
void values_learn(struct sim *s)
{
	struct vio *io = value_io(s);

	value_take(s, io, VALUE_INFO);
	kw_query(s->seg, io->r, &s->values->log, &(struct kv_query){ .kind = KV_INFO }, NULL,
		io->page, 1);
	value_submit(s, io);
	values_flush(s);
	sched_run(s, values_idle);
}

static void open_ports(struct sim *s)
{
	struct values *w = s->values;
	struct xseg_peer_params params = { .name = values_name(s), .kind = "client",
		.nr_ports = VPORTS, .nr_requests = VDEPTH };
	struct xseg_error err;
	uint32_t nr = VPORTS * VDEPTH * VPAGES;

	if (xseg_peer_open(s->seg, &params, &w->peer, &err))
		sim_fail(s, "values: %s", err.text);
	w->pages = calloc(xseg_pages_round(nr), sizeof(*w->pages));
	assert(w->pages);
	if (xseg_pages_take(w->peer, nr, w->pages))
		sim_fail(s, "values: no pages");
	for (uint32_t i = 0; i < VPORTS; i++)
		w->port[i] = xseg_peer_port(w->peer, i);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		w->io[i].page = w->pages + i * VPAGES;
		w->io[i].port = i % VPORTS;
	}
}

void values_open(struct sim *s)
{
	struct values *w = calloc(1, sizeof(*w));

	assert(w);
	s->values = w;
	value_name_keys();
	versions_init(&w->v);
	w->v.always = s->plan.always;
	w->log.paged_least = s->plan.paged_least;
	w->v.evicts = s->plan.evicts;
	evicted_watch(s);
	bad_watch(s);
	w->record = malloc(XSEG_REQ_BYTES);
	assert(w->record);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		for (uint32_t n = 0; n < VERSION_BATCH; n++) {
			w->io[i].value[n] = malloc(VALUE_ROOM);
			assert(w->io[i].value[n]);
		}
		w->io[i].large.data = malloc(LARGE_ROOM);
		assert(w->io[i].large.data);
	}
	open_ports(s);
}

static void close_ports(struct sim *s, enum xseg_close how)
{
	struct values *w = s->values;

	xseg_peer_close(w->peer, how);
	free(w->pages);
	w->peer = NULL;
	w->pages = NULL;
	memset(w->port, 0, sizeof(w->port));
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		w->io[i].r = NULL;
	w->in_flight = 0;
	memset(w->alone, 0, sizeof(w->alone));
}

void values_close(struct sim *s)
{
	struct values *w = s->values;

	close_ports(s, XSEG_CLOSE_FREE_ARENA);
	versions_fini(&w->v);
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++) {
		for (uint32_t n = 0; n < VERSION_BATCH; n++)
			free(w->io[i].value[n]);
		free(w->io[i].large.data);
	}
	free(w->record);
	free(w);
	s->values = NULL;
}

/* They die, with what is out. Of those keys it is not known what they hold. If kvd's time is lost
 * with them, it goes on from that of the head. */
void values_die(struct sim *s)
{
	struct values *w = s->values;

	values_date(s);
	w->v.latest += KVD_AHEAD_S;
	for (uint32_t i = 0; i < VPORTS * VDEPTH; i++)
		for (uint32_t n = 0; w->io[i].r && n < w->io[i].nr; n++)
			w->unsure[w->io[i].key[n]] = true;
	versions_clients_died(&w->v);
	close_ports(s, XSEG_CLOSE_ABANDON);
}

static bool all_known(struct sim *s)
{
	bool any = false;

	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		any |= s->values->unsure[i];
	if (any && value_resolve_some(s))
		values_flush(s);
	return !any && values_idle(s);
}

/* Others come in their place. After a loss of power each key is read before anything else. */
void values_again(struct sim *s, bool power_lost)
{
	struct values *w = s->values;

	w->incarnation++;
	open_ports(s);
	if (!power_lost)
		return;
	/* one that was to be put anew may have been, and is once more */
	for (uint32_t i = 0; i < VERSION_KEYS; i++)
		w->unsure[i] = true;
	w->lost = true;
	sched_run(s, all_known);
	w->lost = false;
	value_complain(s, versions_check_batches(&w->v));
}

void values_read_back(struct sim *s)
{
	struct vio *io;

	sched_run(s, all_known);
	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		io = value_io(s);
		value_get(s, io, VALUE_GET, i, 1);
		value_ask(s, io);
		values_flush(s);
		sched_run(s, values_idle);
	}
}

static struct kvd *kvd_here(const struct sim *s)
{
	return (struct kvd *)s->node[NODE_KVD].p;
}

static bool preload_is_over(struct sim *s)
{
	const struct kvd *k = kvd_here(s);

	return k->state == KVD_OPEN && k->preload.begun && !k->jobs.nr && values_idle(s);
}

/* Zones that were there all the time were read, all or as much as was asked for. */
void values_preloaded(struct sim *s)
{
	struct kvd *k = kvd_here(s);
	uint64_t least = 0, done;

	sched_run(s, preload_is_over);
	for (uint64_t id = 1; id <= k->index.newest; id++)
		least += alog_zone_epoch(k->log, id) ? k->cfg.zone_bytes : 0;
	done = xseg_stats_get(k->stats, KS_PRELOADED_BYTES);
	if (!strcmp(k->opt.preload, "no"))
		least = 0;
	else if (strcmp(k->opt.preload, "all") && least > 100u << 10)
		least = 100u << 10;
	if (done < least)
		sim_fail(s, "values: %" PRIu64 " bytes were read ahead, of %" PRIu64, done, least);
}

/* What has expired may have lost its zones before its record goes. */
bool values_own_known(struct sim *s)
{
	const struct kvd *k = kvd_here(s);
	uint32_t least = 0, most = 0;
	struct alog_stats st;

	for (uint32_t i = 0; i < VERSION_KEYS; i++) {
		const struct vstate *is = versions_now(&s->values->v, i);
		uint32_t zones = (uint32_t)large_zones(&k->large.t, is->value.bytes);

		if (!is->large)
			continue;
		most += zones;
		least += is->present && is->gone_at == VERSION_NONE && !is->expiry &&
			!s->plan.evicts ? zones : 0;
	}
	alog_stats(k->log, &st);
	if (st.own_zones < least)
		sim_fail(s, "values: %u zones are there for large values that need %u",
			st.own_zones, least);
	return st.own_zones <= most;
}
