/* stack_export - [export NAME] of a stack file: a volume that nbdkit serves by NBD.
 *
 * Exports with the same `nbd` are one server: one nbdkit, in which the export's name is that of the
 * section. An export that is alone there is also the server's default.
 *
 * Contract: as stack.h. stack_parse() calls the first three, and puts the line before what they
 * say.
 *
 * Invariants of what stack_parse() returned:
 *   E1  Names are unique, and no longer than STACK_EXPORT_NAME_MAX.
 *   E2  `server` is the first export of the file with the same address.
 *   E3  All exports of a server have the keys of the server in common: mode,
 *       group, tls, tls_certificates, tls_verify_peer, connections, restart.
 *   E4  If there is a path, it is absolute. Else there are host and port.
 */
#ifndef PEERS_COMMON_STACK_EXPORT_H
#define PEERS_COMMON_STACK_EXPORT_H

#include <limits.h>

#include "peers/common/options/opt.h"
#include "peers/common/options/stack_errors.h"
#include "xseg/xseg.h"

#define STACK_MAX_EXPORTS     32
#define STACK_EXPORT_NAME_MAX 55		/* "export." and that is a peer's name */
#define STACK_SOCKET_MAX      107		/* bytes of a socket's path, as the kernel's */
#define STACK_HOST_MAX	      64

enum stack_tls { STACK_TLS_OFF, STACK_TLS_ON, STACK_TLS_REQUIRE };
extern const char *const stack_tls_names[];	/* by enum stack_tls; ended by NULL */

struct stack_export {
	char name[XSEG_NAME_MAX], volume[XSEG_NAME_MAX];
	char volumed[XSEG_NAME_MAX];		/* "": the only one */
	char nbd[STACK_SOCKET_MAX + 1];		/* as in the file: a path, or HOST:PORT */
	char mode[8], group[33];		/* of the socket; "": those of the segment */
	char host[STACK_HOST_MAX];		/* "": nbd is the path of a Unix socket */
	uint32_t port;
	bool read_only, tls_verify_peer, restart;
	uint32_t tls;				/* enum stack_tls */
	char tls_certificates[PATH_MAX];	/* a directory; "" for nbdkit's own */
	uint32_t queues, connections;
	struct stack_lines lines;
	uint32_t server;			/* index of an export */
};

/* The keys, for messages, completion and the manual. */
extern const struct opt stack_export_table[];

struct stack;
struct stack_peer;

/* A section begins. -EINVAL with its reason in why. */
int stack_export_begin(struct stack *stack, const char *name, unsigned line,
	struct xseg_error *why) XSEG_MUST_CHECK;
/* A key of the last one. */
int stack_export_set(struct stack *stack, const char *key, const char *value, unsigned line,
	struct xseg_error *why) XSEG_MUST_CHECK;
/* All sections are read: adds what is wrong. */
void stack_export_resolve(struct stack *stack, struct stack_errors *errors);

/* Whether two stacks have the same exports, in the same order. */
bool stack_same_exports(const struct stack *a, const struct stack *b);
/* Of two exports, the name of the first key that differs; NULL: none does. */
const char *stack_export_differs(const struct stack_export *a, const struct stack_export *b);
/* Whether the peer is a volumed that may have the export's volume. */
bool stack_export_takes(const struct stack_export *e, const struct stack_peer *peer);
/* Index of the export of that name, or STACK_NONE. */
uint32_t stack_find_export(const struct stack *stack, const char *name);

#endif
