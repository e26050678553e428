/* volume_users - see volume_users.h. */
#include "peers/common/say/volume_users.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/export_words.h"
#include "peers/common/say/kv.h"

static bool is_client(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "client") && xseg_peer_is_up(p->state);
}

static const char *program_of(const struct xseg_peer_info *p)
{
	return p->member_label[0] ? p->member_label : p->name;
}

static bool is_part_of_a_server(struct xseg *seg, const struct xseg_peer_info *client)
{
	struct xseg_peer_info p;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && p.member == client->member &&
			is_client(&p) && export_of_peer(&p))
			return true;
	return false;
}

/* Once for each process, or for each export of a server: its other clients work for these. */
static void add_user(struct kv_text *t, struct xseg *seg, const struct xseg_peer_info *p)
{
	char user[2 * XSEG_NAME_MAX + sizeof("export  (, pid 4294967295)")];
	const char *export = export_of_peer(p);

	if (!export && is_part_of_a_server(seg, p))
		return;
	if (export)
		snprintf(user, sizeof(user), "export %s (%s, pid %" PRIu32 ")", export,
			program_of(p), p->pid);
	else
		snprintf(user, sizeof(user), "%s (pid %" PRIu32 ")", program_of(p), p->pid);
	if (!strstr(t->buf, user))
		kv_add(t, "%s %s", t->used ? "," : "", user);
}

static void user_add(struct volume_user *u, const struct xseg_peer_info *p)
{
	uint64_t since_s = p->user[XSEG_CLIENT_WORD_SINCE];
	const char *export = export_of_peer(p);

	if (!u->clients++) {
		snprintf(u->program, sizeof(u->program), "%s", program_of(p));
		u->pid = p->pid;
		u->since_s = since_s;
	}
	/* of several in one server the first by name: the order of clients means nothing */
	if (export && (!*u->export || strcmp(export, u->export) < 0))
		snprintf(u->export, sizeof(u->export), "%s", export);
	if (since_s < u->since_s)
		u->since_s = since_s;
}

/* An earlier client is of the same process. */
static bool has_been(struct xseg *seg, const struct xseg_peer_info *of, uint32_t volumed,
	uint32_t volume)
{
	struct xseg_peer_info p;

	for (uint32_t i = 0; i < of->index; i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) && p.pid == of->pid &&
			xseg_client_has_volume(&p, volumed, volume))
			return true;
	return false;
}

uint32_t volume_users_get(struct xseg *seg, uint32_t volumed, uint32_t volume,
			  struct volume_user *user, uint32_t max)
{
	uint32_t nr = 0, kept = 0, i, k;
	struct xseg_peer_info p;

	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &p) || !is_client(&p) ||
			!xseg_client_has_volume(&p, volumed, volume))
			continue;
		for (k = 0; k < kept && user[k].pid != p.pid; k++)
			;
		if (k == max) {
			nr += !has_been(seg, &p, volumed, volume);
			continue;
		}
		if (k == kept) {
			user[kept++] = (struct volume_user){ .clients = 0 };
			nr++;
		}
		user_add(&user[k], &p);
	}
	return nr;
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
			add_user(&t, seg, &p);
}

void volume_users(struct xseg *seg, uint32_t volumed, uint32_t volume, char *out, size_t size)
{
	volume_users_but(seg, volumed, volume, XSEG_NONE, out, size);
}

void volume_users_of(struct xseg *seg, uint32_t volumed, volume_users_spare *spare, void *arg,
	char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) &&
			xseg_client_has_any_volume(&p, volumed) && !(spare && spare(&p, arg)))
			add_user(&t, seg, &p);
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

static void add_all(struct xseg *seg, bool servers, char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &p) && is_client(&p) &&
			!is_part_of_a_peer(seg, &p) && (servers || !is_part_of_a_server(seg, &p)))
			add_user(&t, seg, &p);
}

void volume_users_any(struct xseg *seg, char *out, size_t size)
{
	add_all(seg, true, out, size);
}

void volume_users_left(struct xseg *seg, char *out, size_t size)
{
	add_all(seg, false, out, size);
}

void volume_users_of_exports(struct xseg *seg, char *out, size_t size)
{
	struct xseg_peer_info p;
	struct kv_text t;
	uint64_t nr;

	kv_init(&t, out, size);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &p) || !is_client(&p) || !export_of_peer(&p))
			continue;
		nr = p.user[EXPORT_WORD_CONNECTIONS];
		if (nr)
			kv_add(&t, "%s %s (%" PRIu64 ")", t.used ? "," : "",
				export_of_peer(&p), nr);
	}
}
