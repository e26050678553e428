/* lend - pages that clients read and write in: pages lent to reads (loan.h), pages given by writes
 * (gift.h), and reads without a request (direct.h).
 */
#ifndef PEERS_CACHED_LEND_H
#define PEERS_CACHED_LEND_H

#include "peers/cached/lend/direct.h"
#include "peers/cached/lend/gift.h"
#include "peers/cached/lend/loan.h"

struct lend_room {
	struct loans loans;
	struct direct direct;
};

struct lend_port {
	struct lender lender;
};

struct lend_room *lend_of(const struct cached *k);
struct lend_port *lend_port(const struct cport *ps);

#endif
