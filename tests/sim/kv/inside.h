/* inside - what the files of this folder share: clients of kvd, and what each of their requests is
 * for. No other file includes this.
 *
 * Contract: of the simulator's thread.
 */
#ifndef TESTS_SIM_KV_INSIDE_H
#define TESTS_SIM_KV_INSIDE_H

#include "peers/kvd/kvd.h"
#include "tests/rig/kv_wire_client.h"
#include "tests/sim/kv/versions.h"
#include "tests/sim/sim.h"

#define VPORTS	   2u
#define VDEPTH	   6u
#define VPAGES	   24u				/* of a request: a record, and a query */
#define VCHANGES   3u				/* of a key that are out */
#define KEY_ROOM   1024u
#define VALUE_ROOM 16384u
#define GET_TRIES  64u
#define DATE	   1000000u			/* when the time is 0 */
#define LARGE_ROOM (256u << 10)			/* of a large value */

struct scan {
	uint64_t cursor;
	uint32_t nr[VERSION_KEYS];		/* how often each key came */
};

/* A large value on its way: what is out. */
enum vlarge_step { LARGE_BEGIN, LARGE_PART, LARGE_COMMIT, LARGE_HOLD, LARGE_PIECE, LARGE_DROP };

struct vlarge {
	enum vlarge_step step;
	bool gets;				/* else it is put */
	bool failed;				/* PUT: a part of it */
	uint64_t handle;
	uint32_t bytes, next;			/* next: of its pieces */
	uint32_t stop;				/* PUT: it is dropped before this piece */
	uint32_t sum[LARGE_ROOM / KV_PAGE];
	struct kw_change put;			/* PUT: the condition and the expiry of COMMIT */
	struct kw_value value;			/* GET: of the record */
	int result;				/* GET */
	uint8_t *data;				/* LARGE_ROOM */
};

struct vio {
	struct xreq *r;				/* NULL: none */
	enum value_op op;
	uint32_t port, nr, key[VERSION_KEYS], change[VERSION_KEYS];
	struct kw_change c[VERSION_BATCH];	/* DELETE_ALL: c[0] is of all keys */
	uint8_t *value[VERSION_BATCH];		/* VALUE_ROOM */
	uint64_t begin, issued_ns;
	bool fua, resolves, lends;
	/* GET */
	uint32_t need, place, tries;
	uint8_t flags;
	uint64_t zone, time;
	struct scan scan;
	struct vlarge large;
	uint32_t *page;
};

struct values {
	struct versions v;
	struct xseg_peer *peer;
	struct xport *port[VPORTS];
	uint32_t *pages;
	struct vio io[VPORTS * VDEPTH];
	struct kw_log log;
	uint32_t value_max, piece_bytes, in_flight;
	int64_t skew;				/* of the date, in seconds */
	uint64_t time;				/* the latest that kvd has told */
	uint32_t incarnation;
	bool alone[VERSION_KEYS];		/* nothing else may be sent for it */
	bool unsure[VERSION_KEYS];		/* what it holds is to be found out */
	bool renewed[VERSION_KEYS];		/* that cannot be: it is to be put anew */
	/* when it was sent that last got a value; when something may have made kvd forget that */
	uint64_t got[VERSION_KEYS], forgot[VERSION_KEYS];
	/* bad.c: a sector of its value went bad, then; when it was put anew after that; when one
	 * went bad last */
	bool tainted[VERSION_KEYS];
	uint64_t tainted_at[VERSION_KEYS], mended_at[VERSION_KEYS], bad_at;
	const struct peer *kvd;			/* the process, */
	uint64_t began_ns;			/* and its opening, that was seen last */
	bool lost;				/* by a loss of power */
	uint8_t *record;
};

/* ---- requests.c ---- */
extern char key_name[VERSION_KEYS][KEY_ROOM];
extern uint32_t key_bytes[VERSION_KEYS];
void value_name_keys(void);
const char *value_key(uint32_t key, uint32_t *bytes);
void value_complain(struct sim *s, const char *error);	/* NULL: of nothing */
struct vio *value_io(const struct sim *s);	/* that is free; NULL: none */
void value_take(struct sim *s, struct vio *io, enum value_op op);	/* a request for it */
void value_submit(struct sim *s, struct vio *io);
void value_done(struct sim *s, struct vio *io);	/* and its request is free */
/* The key, or one behind it, of which so much can be out; VERSION_KEYS: there is none. */
uint32_t value_usable(const struct sim *s, const struct vio *io, uint32_t key, uint32_t most);
/* All that the answer of a batch may be, if none was done. */
bool value_is_refusal(struct sim *s, int64_t result);

/* ---- changes.c ---- */
/* False: nothing is to be sent. */
bool value_send_change(struct sim *s, struct rng *g, bool batch);
bool value_send_delete_all(struct sim *s, struct rng *g);
void value_change_answered(struct sim *s, struct vio *io);
/* Whatever the key held is gone for good when this is answered. */
void value_renew(struct sim *s, struct vio *io, uint32_t key);
void value_renew_answered(struct sim *s, struct vio *io);
/* The answer of changes; returns the result of the first. */
int value_changed(struct sim *s, struct vio *io);
/* Chooses the condition and the expiry of io->large.put. */
void value_condition(struct sim *s, struct rng *g, struct vio *io);

/* ---- queries.c ---- */
bool value_send_query(struct sim *s, struct rng *g, enum value_op op);
/* A get or an EXISTS is made, for an answer of so many pages; then it is asked. */
void value_get(struct sim *s, struct vio *io, enum value_op op, uint32_t key, uint32_t need);
void value_ask(struct sim *s, struct vio *io);
bool value_resolve_some(struct sim *s);		/* gets of keys that hold what is not known */
/* The answer of a get. */
void value_judge(struct sim *s, struct vio *io, int rc, const struct kw_value *v);
void value_get_answered(struct sim *s, struct vio *io);
void value_exists_answered(struct sim *s, struct vio *io);
bool value_send_scan(struct sim *s, struct rng *g);
void value_scan_answered(struct sim *s, struct vio *io);

/* ---- large.c ---- */
/* BEGIN of a value for key[0]. */
void large_put(struct sim *s, struct vio *io, struct rng *g);
/* The record of a large value was got. */
void large_get(struct sim *s, struct vio *io, const struct kw_value *v);
void large_answered(struct sim *s, struct vio *io);

/* ---- bad.c ---- */
/* Whether an answer may be EIO. */
bool value_may_fail(struct sim *s, const struct vio *io, uint32_t key);
/* What the I/O has done to the key needs nothing of what was there. */
void value_is_new(struct sim *s, const struct vio *io, uint32_t key);

/* ---- evicted.c ---- */
void evicted_watch(struct sim *s);

#endif
