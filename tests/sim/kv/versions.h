/* versions - the oracle of values: which states of each key the answers of kvd allow.
 *
 * A change that was done has a version, and versions give the changes of a key their order. When
 * nothing of a key is out, its changes are gone through in that order, and all that was seen of it
 * meanwhile must fit.
 *
 * Contract: one thread. A function that returns a text found a contradiction, and the text says
 * which; NULL: there is none.
 *
 * Invariants, of each key
 *   V1  The order of its versions is one of time: no change has a lower version than one that was
 *       answered before it was sent. So a change that was done twice shows.
 *   V2  Each change met the state that its outcome says, and made the one that it says.
 *   V3  Whatever was seen was there at some moment between the question and the answer. What was
 *       seen later is not older.
 *   V4  What has expired stays away. If the log evicts, what was seen to be gone stays away until a
 *       kvd opens the log anew: it may find the record, which is the newest one.
 *   V5  After a loss of power one of its states is there that is not older than the last promised
 *       one. After the death of clients each change of theirs was done as a whole, or is not done
 *       at all. Of a batch all are there, or none is.
 */
#ifndef TESTS_SIM_KV_VERSIONS_H
#define TESTS_SIM_KV_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#define VERSION_KEYS 24u
#define VERSION_BATCH 4u
#define VERSION_BATCHES 64u
#define VERSION_NONE UINT64_MAX

struct vbytes {					/* a value */
	uint8_t *at;				/* malloc; NULL if `bytes` is 0 */
	uint32_t bytes;
};

/* What a key is at some moment. */
struct vstate {
	uint64_t version;			/* 0: not known, or it was never there */
	bool present, promised;
	bool large;				/* its value has zones of its own */
	bool damaged;	/* its record is: if it has expired, it may be an error all the same */
	struct vbytes value;
	uint32_t expiry, client;
	/* it was seen to have expired, or to be evicted, at this time, by what was asked then */
	uint64_t gone_at, gone_from;
	uint64_t batch;				/* that made it; 0: none */
};

enum vchange_state { VCHANGE_OUT, VCHANGE_DONE, VCHANGE_NOT_DONE, VCHANGE_DEAD };

/* A change, as it was sent, and what came of it. */
struct vchange {
	uint8_t kind, condition;		/* enum kv_change_kind, kv_condition */
	uint32_t expiry, client;
	uint64_t if_version, amount;
	bool large;
	struct vbytes value;
	uint64_t batch;				/* 0: it stands alone */
	uint64_t begin, end;
	/* of the answer */
	enum vchange_state state;
	uint64_t version, number, opened;	/* opened: as versions.opened was then */
	bool promised;
};

enum vseen_what { VSEEN_VALUE, VSEEN_PRESENT, VSEEN_ABSENT, VSEEN_OTHER_VERSION, VSEEN_NO_NUMBER };

/* What an answer says of a key. */
struct vseen {
	enum vseen_what what;
	uint64_t begin, end;
	uint64_t version;			/* VALUE; OTHER_VERSION: not this one */
	uint64_t hash;				/* VALUE: of its bytes */
	uint32_t expiry, client, latest;	/* latest: the latest date so far */
	uint64_t opened;			/* as versions.opened was then */
};

struct vkey {
	struct vstate *state;			/* settled ones; the last is the newest */
	uint32_t nr_states, room_states;
	struct vchange *change;			/* since then */
	uint32_t nr_changes, room_changes;
	struct vseen *seen;
	uint32_t nr_seen, room_seen;
	uint32_t out;				/* requests that name it */
	uint64_t quiet_since;			/* nothing has changed it since */
};

/* A batch: its keys, and the versions that they got; 0: not known, or it changes nothing. */
struct vbatch {
	uint64_t id, version[VERSION_BATCH];
	uint32_t nr, key[VERSION_BATCH];
	bool puts;				/* all are PUTs */
};

struct versions {
	struct vkey key[VERSION_KEYS];
	struct vbatch batch[VERSION_BATCHES];	/* the last ones */
	uint64_t now;				/* counts begins and ends */
	uint32_t latest;			/* date that was told to anybody */
	uint64_t next_batch;
	bool always;				/* what is answered is promised */
	bool evicts;				/* any value may go, if no older one shows */
	uint64_t opened;			/* when the log was opened last, if known */
	char error[256];
};

void versions_init(struct versions *v);
void versions_fini(struct versions *v);
uint64_t versions_hash(const void *value, uint32_t bytes);

/* The number of a batch that is about to begin. */
uint64_t versions_batch(struct versions *v);
/* The change is sent; its value is copied. The number is for versions_end(). */
uint32_t versions_begin(struct versions *v, uint32_t key, const struct vchange *change);
/* Its outcome. `result` as kv_change.result, -ECANCELED if it tells nothing. */
void versions_end(struct versions *v, uint32_t key, uint32_t change, int result, uint64_t version,
	uint64_t number);
void versions_see(struct versions *v, uint32_t key, const struct vseen *seen);
/* All that was answered before `begin` survives a loss of power. */
void versions_promise(struct versions *v, uint64_t begin);
void versions_promise_change(struct versions *v, uint32_t key, uint32_t change);
/* V1 to V4, if nothing of the key is out. */
const char *versions_check(struct versions *v, uint32_t key);

/* Whether it was done is not known: the key is to be resolved. */
void versions_doubt(struct versions *v, uint32_t key, uint32_t change);
/* Changes that are out are of clients that are dead. */
void versions_clients_died(struct versions *v);
/* V5: what the key shows after that, or after a loss of power. It is the only state from now on. */
const char *versions_resolve(struct versions *v, uint32_t key, const struct vseen *seen,
	bool power_lost);
/* Nothing of the key is out, and its record is damaged. */
void versions_damage(struct versions *v, uint32_t key);
/* What a key holds cannot be found out, so it was put anew, with FUA: that is its only state. */
void versions_renew(struct versions *v, uint32_t key, const void *value, uint32_t bytes,
	uint64_t version);
/* After all have been resolved. */
const char *versions_check_batches(struct versions *v);
/* What the key holds, if nothing of it is out. */
const struct vstate *versions_now(const struct versions *v, uint32_t key);

#endif
