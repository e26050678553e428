/* volume_users - see volume_users.h. */
#include "peers/common/volume_users.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/kv.h"
#include "xseg/xseg.h"

static bool uses(const struct xseg_peer_info *p, uint32_t volumed, uint32_t volume)
{
	return !strcmp(p->kind, "client") && xseg_peer_is_up(p->state) &&
	       xseg_client_has_volume(p, volumed, volume);
}

void volume_users(struct xseg *seg, uint32_t volumed, uint32_t volume, char *out, size_t size)
{
	char user[XSEG_NAME_MAX + sizeof(" (pid 4294967295)")];
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &p) || !uses(&p, volumed, volume))
			continue;
		snprintf(user, sizeof(user), " %s (pid %" PRIu32 ")",
			p.member_label[0] ? p.member_label : p.name, p.pid);
		if (!strstr(out, user))
			kv_add(&t, "%s", user);
	}
}
