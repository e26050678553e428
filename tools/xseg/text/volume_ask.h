/* volume_ask - what commands for volumes share: asking volumed, and showing a volume.
 *
 * Contract: one thread. A function that fails has printed why, and returns an exit code.
 */
#ifndef TOOLS_XSEG_VOLUME_ASK_H
#define TOOLS_XSEG_VOLUME_ASK_H

#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"

/* What volumed says of a volume, in "volume info" and in a line of "volume list". */
struct volume {
	char name[XSEG_NAME_MAX], state[16], prefix[XSEG_TARGET_MAX];
	uint64_t id, identity, size_bytes, object_size_bytes;
	uint64_t objects_left, objects_deleted, waits_for_requests;
	uint64_t iops, bandwidth_bytes, burst_ns, waiting;
};

int volume_check_name(const char *name) XSEG_MUST_CHECK;
/* Opens a client and finds volumed. `name` (NULL: none) is checked before. */
int volume_open_volumed(struct tool *t, const char *volumed, const char *name, struct client **c,
	uint32_t *peer) XSEG_MUST_CHECK;
void volume_read(const char *text, struct volume *v);
/* What client_ask() returned of a volume. */
int volume_fail(struct client *c, int64_t rc, const char *what, const char *name);
int volume_ask(struct client *c, uint32_t peer, const char *what, const char *name,
	struct volume *v) XSEG_MUST_CHECK;

json_t *volume_json(const struct volume *v);
#define VOLUME_LIMITS_TEXT 96
const char *volume_limits_text(const struct volume *v, char text[VOLUME_LIMITS_TEXT]);
/* Also what it takes in the store and in caches, and who has it open. */
int volume_show(struct tool *t, struct client *c, uint32_t peer, const struct volume *v);

#endif
