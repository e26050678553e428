/* stats - counters: as the command stats tells them, and in the segment.
 *
 * Each worker counts in memory of its own. Port 0's worker writes the sums into the segment, ten
 * times a second, for `xseg stat` and for the command's own answer. So a counter of another worker
 * is at most 0.1 s old. What a predecessor counted is not counted again.
 *
 * Contract: the worker's port; mc_stats_publish() port 0's. Reading a counter of another worker
 * while that counts gives the value before or after.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/say/kv.h"
#include "peers/memcached/memcached.h"

static const char *const keys[MC_NR_STATS] = {
	[MS_CONNECTIONS] = "curr_connections", [MS_CONNECTIONS_TOTAL] = "total_connections",
	[MS_CONNECTIONS_REFUSED] = "rejected_connections",
	[MS_LISTEN_DISABLED] = "listen_disabled_num", [MS_CMD_GET] = "cmd_get",
	[MS_CMD_SET] = "cmd_set", [MS_CMD_FLUSH] = "cmd_flush", [MS_CMD_TOUCH] = "cmd_touch",
	[MS_CMD_META] = "cmd_meta", [MS_GET_HITS] = "get_hits", [MS_GET_MISSES] = "get_misses",
	[MS_DELETE_HITS] = "delete_hits", [MS_DELETE_MISSES] = "delete_misses",
	[MS_INCR_HITS] = "incr_hits", [MS_INCR_MISSES] = "incr_misses",
	[MS_DECR_HITS] = "decr_hits", [MS_DECR_MISSES] = "decr_misses",
	[MS_CAS_HITS] = "cas_hits", [MS_CAS_MISSES] = "cas_misses",
	[MS_CAS_BADVAL] = "cas_badval", [MS_TOUCH_HITS] = "touch_hits",
	[MS_TOUCH_MISSES] = "touch_misses", [MS_BYTES_READ] = "bytes_read",
	[MS_BYTES_WRITTEN] = "bytes_written", [MS_ERRORS] = "errors",
};

int mc_stats_open(struct memcached *mc)
{
	return xseg_stats_open(mc->peer.xp, mc->peer.name, "gateway", keys, MC_NR_STATS,
		&mc->stats);
}

static uint64_t sum_of(const struct memcached *mc, enum mc_stat what)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < mc->peer.nr_ports; i++)
		sum += what == MS_CONNECTIONS
			       ? atomic_load_explicit(&mc->worker[i].nr_conns, memory_order_relaxed)
			       : __atomic_load_n(&mc->worker[i].count[what], __ATOMIC_RELAXED);
	return sum;
}

void mc_stats_publish(struct memcached *mc)
{
	for (uint32_t i = 0; i < MC_NR_STATS; i++)
		xseg_stats_set(mc->stats, i, sum_of(mc, (enum mc_stat)i));
}

/* ---- the command ------------------------------------------------------------------------- */

struct lines {
	char *at;
	uint32_t used, room;
};

static void add(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct lines *l, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(l->at + l->used, l->room - l->used, fmt, args);
	va_end(args);
	if (n > 0 && (uint32_t)n < l->room - l->used)
		l->used += (uint32_t)n;
}

/* Of the kvd: its counters in the segment. 0: it has none there. */
static void add_store(const struct memcached *mc, struct lines *l)
{
	struct xseg *seg = mc->peer.seg;
	uint32_t peer = xseg_peer_find(seg, mc->peer.downstream_name);
	static __thread struct xseg_stats_view block;

	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++) {
		if (!xseg_stats_view(seg, i, &block) || block.peer != peer ||
			strcmp(block.kind, "kv"))
			continue;
		add(l, "STAT curr_items %" PRIu64 "\r\n", xseg_stats_value(&block, "keys"));
		add(l, "STAT total_items %" PRIu64 "\r\n", xseg_stats_value(&block, "puts"));
		add(l, "STAT bytes %" PRIu64 "\r\n", xseg_stats_value(&block, "live_bytes"));
		add(l, "STAT evictions %" PRIu64 "\r\n", xseg_stats_value(&block, "evicted"));
		add(l, "STAT get_expired %" PRIu64 "\r\n", xseg_stats_value(&block, "expired"));
	}
}

uint32_t mc_stats_text(struct mc_worker *w, uint8_t *to, uint32_t room)
{
	struct lines l = { .at = (char *)to, .room = room };
	const struct memcached *mc = w->mc;

	add(&l, "STAT pid %d\r\n", (int)getpid());
	add(&l, "STAT uptime %" PRIu64 "\r\n", (w->pp->now_ns - mc->begun_ns) / 1000000000);
	add(&l, "STAT time %u\r\n", w->pp->date_s);
	add(&l, "STAT version %s\r\nSTAT xseg_version %s\r\n", MC_VERSION, XSEG_VERSION);
	add(&l, "STAT pointer_size %u\r\n", (unsigned)sizeof(void *) * 8);
	add(&l, "STAT max_connections %u\r\n", mc->opt.connections);
	for (uint32_t i = 0; i < MC_NR_STATS; i++)
		if (keys[i])
			add(&l, "STAT %s %" PRIu64 "\r\n", keys[i], sum_of(mc, (enum mc_stat)i));
	add_store(mc, &l);
	add(&l, "STAT threads %u\r\nEND\r\n", mc->peer.nr_ports);
	return l.used;
}

uint32_t mc_settings_text(struct mc_worker *w, uint8_t *to, uint32_t room)
{
	struct lines l = { .at = (char *)to, .room = room };
	const struct memcached *mc = w->mc;

	add(&l, "STAT maxconns %u\r\n", mc->opt.connections);
	for (uint32_t i = 0; i < mc->nr_listeners; i++)
		if (mc->listener[i].path[0])
			add(&l, "STAT domain_socket %s\r\n", mc->listener[i].path);
	add(&l, "STAT num_threads %u\r\n", mc->peer.nr_ports);
	add(&l, "STAT cas_enabled yes\r\nSTAT flush_enabled yes\r\nSTAT udpport 0\r\n");
	add(&l, "STAT binding_protocol ascii\r\nSTAT auth_enabled_sasl no\r\n");
	add(&l, "STAT item_size_max %u\r\n", MC_VALUE_MAX);
	add(&l, "STAT idle_timeout %" PRIu64 "\r\n", mc->opt.idle_timeout_ns / 1000000000);
	add(&l, "STAT kvd %s\r\nEND\r\n", mc->peer.downstream_name);
	return l.used;
}

/* Of this worker: others change theirs meanwhile. */
uint32_t mc_conns_text(struct mc_worker *w, uint8_t *to, uint32_t room)
{
	static const char *const states[] = { [MC_CONN_OPEN] = "conn_read",
		[MC_CONN_ENDING] = "conn_closing", [MC_CONN_BROKEN] = "conn_closed" };
	struct lines l = { .at = (char *)to, .room = room - 8 };

	for (uint32_t i = 0; i < w->mc->per_worker; i++) {
		const struct mc_conn *c = &w->conn[i];

		if (c->state == MC_CONN_FREE)
			continue;
		add(&l, "STAT %d:state %s\r\n", c->fd, states[c->state]);
		add(&l, "STAT %d:secs_since_last_cmd %" PRIu64 "\r\n", c->fd,
			(w->pp->now_ns - c->since_ns) / 1000000000);
	}
	l.room = room;
	add(&l, "END\r\n");
	return l.used;
}

/* ---- xseg -------------------------------------------------------------------------------- */

int64_t mc_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct memcached *mc = memcached_of(pp->peer);
	char list[sizeof(mc->opt.listen)], *next = list, *text;
	struct kv_text t;

	(void)r;
	if (strcmp(line, "status"))
		return -ENOSYS;
	memcpy(list, mc->opt.listen, sizeof(list));
	kv_init(&t, out, size);
	kv_add(&t, "kvd=%s\nconnections=%" PRIu64 "\nconnections_max=%u\nstore=%s\n",
		mc->peer.downstream_name, sum_of(mc, MS_CONNECTIONS), mc->opt.connections,
		mc_stores_in(mc, MC_STORE_OPEN) == mc->peer.nr_ports ? "open" : "opening");
	while ((text = strsep(&next, "\n")))
		kv_add(&t, "listen=%s\n", text);
	return (int64_t)t.used;
}
