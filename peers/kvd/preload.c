/* preload - zones are read at the start, so that a cache below has them.
 *
 * Contract: kvd's thread. It has two jobs, whose reads go beside those of requests, and whose data
 * is not looked at. The newest zones come first. It ends when all is read, or so much as the option
 * says, or when kvd is to stop.
 */
#include <string.h>

#include "peers/kvd/kvd.h"

#define PIECE XSEG_REQ_BYTES

static uint64_t wanted(const struct kvd *k)
{
	uint64_t bytes = 0;

	if (!strcmp(k->opt.preload, "no"))
		return 0;
	return opt_parse_size(k->opt.preload, &bytes) ? UINT64_MAX : bytes;
}

/* The next piece. False: there is none. */
static bool next_piece(struct kvd *k, struct index_entry *e)
{
	struct kvd_preload *p = &k->preload;

	for (; p->zone > p->lowest; p->zone--, p->from = 0) {
		if (p->from >= k->cfg.zone_bytes || !alog_zone_epoch(k->log, p->zone))
			continue;
		*e = (struct index_entry){ .zone = p->zone, .place = p->from,
			.bytes = k->cfg.zone_bytes - p->from < PIECE ?
				k->cfg.zone_bytes - p->from : PIECE };
		p->from += e->bytes;
		return true;
	}
	return false;
}

static void run_preload(struct kvd *k, struct kvd_job *j)
{
	struct kvd_preload *p = &k->preload;
	struct index_entry e;

	while (p->left && !atomic_load_explicit(&k->peer.stopping, memory_order_relaxed) &&
		next_piece(k, &e)) {
		p->left -= e.bytes < p->left ? e.bytes : p->left;
		kvd_count(k, KS_PRELOADED_BYTES, e.bytes);
		/* LATER: this piece is left out, and the job goes on */
		if (kvd_read_record(k, j, &e, e.bytes) != KVD_HERE)
			return;
	}
	kvd_job_put(k, j);
}

void kvd_preload_begin(struct kvd *k)
{
	struct kvd_preload *p = &k->preload;
	uint64_t span = 4ull * k->cfg.zones + 2048;
	struct kvd_job *j;

	if (p->begun)
		return;
	*p = (struct kvd_preload){ .begun = true, .left = wanted(k), .zone = k->index.newest,
		.lowest = k->index.newest > span ? k->index.newest - span : 0 };
	for (int i = 0; i < 2 && p->left; i++)
		if ((j = kvd_job_get(k, NULL, run_preload)))
			run_preload(k, j);
}
