/* failures - a store's requests that fail: which of them is worth a line of the log, and what fails
 * now, for its status.
 *
 * What fails is tried again and again, so one line in FAILURES_TELL_NS is enough. Requests *fail
 * now* from the first failure on, until none has failed for FAILURES_OVER_NS. A cache tries a flush
 * again after 5 s at most, so the state stays as long as the cause.
 *
 * Contract: any thread; a lock, which is a leaf, is held for a few words' work. Zeroed before
 * failures_init().
 */
#ifndef PEERS_COMMON_FAILURES_H
#define PEERS_COMMON_FAILURES_H

#include <pthread.h>
#include <stdint.h>

#include "peers/common/say/kv.h"
#include "xseg/xseg.h"

#define FAILURES_TELL_NS UINT64_C(10000000000)
#define FAILURES_OVER_NS UINT64_C(10000000000)

struct failures {
	pthread_mutex_t lock;			/* guards what follows */
	uint64_t tell_ns;			/* no line before then */
	uint32_t untold;			/* since the last line */
	uint64_t first_ns, last_ns;		/* of those that fail now; 0: none ever did */
	uint64_t nr;
	int error;				/* of the last one, as are these */
	enum xseg_op op;
	char object[XSEG_TARGET_MAX];
};

void failures_init(struct failures *f);
void failures_fini(struct failures *f);
/* Counts one. How many the line about it stands for; 0: it has none. */
uint32_t failures_note(struct failures *f, const struct xreq *r, int error, uint64_t now_ns);
/* Adds "failing_ms= failed= failed_op= failed_object= error=", a line each; nothing if none fails
 * now. */
void failures_tell(struct failures *f, uint64_t now_ns, struct kv_text *t);

#endif
