/* volume_users - see volume_users.h. */
#include "peers/common/say/volume_users.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "xseg/xseg.h"

static bool is_client(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "client") && xseg_peer_is_up(p->state);
}

/* Once for each process. */
static void add_program(struct kv_text *t, const struct xseg_peer_info *p)
{
	char user[XSEG_NAME_MAX + sizeof(" (pid 4294967295)")];

	snprintf(user, sizeof(user), " %s (pid %" PRIu32 ")",
		p->member_label[0] ? p->member_label : p->name, p->pid);
	if (!strstr(t->buf, user))
		kv_add(t, "%s", user);
}

void volume_users_but(struct xseg *seg, uint32_t volumed, uint32_t volume, uint32_t member,
		      char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) && p.member != member &&
			xseg_client_has_volume(&p, volumed, volume))
			add_program(&t, &p);
}

void volume_users(struct xseg *seg, uint32_t volumed, uint32_t volume, char *out, size_t size)
{
	volume_users_but(seg, volumed, volume, XSEG_NONE, out, size);
}

void volume_users_of(struct xseg *seg, uint32_t volumed, char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) &&
			xseg_client_has_any_volume(&p, volumed))
			add_program(&t, &p);
}

/* Its process serves a peer, or supervises: what it has of its own ends with that. */
static bool is_part_of_a_peer(struct xseg *seg, const struct xseg_peer_info *client)
{
	struct xseg_peer_info p;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && p.member == client->member &&
			strcmp(p.kind, "client"))
			return true;
	return false;
}

void volume_users_any(struct xseg *seg, char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) && !is_part_of_a_peer(seg, &p))
			add_program(&t, &p);
}
