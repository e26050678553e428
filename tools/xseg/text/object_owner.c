/* object_owner - see object_owner.h. An object's name is a prefix, which ends with ':', and a
 * number. Each volume has its own prefix; that of a store of values is "+NAME:".
 */
#include "tools/xseg/text/object_owner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/xseg/text/space_text.h"
#include "tools/xseg/text/volume_ask.h"

/* One answer to "volume list": whether a volume in it has that prefix. */
static bool find_in(char *text, const char *prefix, char name[OBJECT_OWNER_BYTES])
{
	char *line, *save = NULL;
	struct volume v;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		volume_read(line, &v);
		if (*v.name && !strcmp(v.prefix, prefix)) {
			snprintf(name, OBJECT_OWNER_BYTES, "%s", v.name);
			return true;
		}
	}
	return false;
}

static bool find_at(struct asker *a, const struct xseg_peer_info *volumed, const char *prefix,
	char name[OBJECT_OWNER_BYTES])
{
	uint64_t from, next = 0;
	char line[40], *answer;

	do {
		from = next;
		snprintf(line, sizeof(line), "volume list %" PRIu64, from);
		answer = asker_ask(a, volumed, line);
		next = answer ? client_number(answer, "next") : 0;
		if (answer && find_in(answer, prefix, name))
			return true;
	} while (next > from);
	return false;
}

bool object_owner_find(struct asker *a, const struct view_peers *peers,
	const struct xseg_peer_info *store, const char *object, char name[OBJECT_OWNER_BYTES])
{
	const struct xseg_peer_info *p = NULL;
	const char *colon = strrchr(object, ':');
	char prefix[XSEG_TARGET_MAX];

	name[0] = '\0';
	if (!colon)
		return false;
	if (*object == '+') {
		snprintf(name, OBJECT_OWNER_BYTES, "%.*s", (int)(colon - object), object);
		return true;
	}
	snprintf(prefix, sizeof(prefix), "%.*s", (int)(colon - object + 1), object);
	while ((p = view_peer_of_kind(peers, "volumed", p)))
		if (space_store_below(peers, p) == store && find_at(a, p, prefix, name))
			return true;
	return false;
}
