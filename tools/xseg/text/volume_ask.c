/* volume_ask - see volume_ask.h. */
#include "tools/xseg/text/volume_ask.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/text/volume_use.h"

/* ---- asking volumed ---------------------------------------------------------------------- */

int volume_check_name(const char *name)
{
	if (xseg_name_ok(name))
		return TOOL_DONE;
	return tool_fail(
		TOOL_USAGE,
		"volume '%.80s': a name is 1 to 63 letters, digits, '.', '_' or '-', "
		"and begins with neither '.' nor '-'; choose another",
		name);
}

int volume_open_volumed(struct tool *t, const char *volumed, const char *name, struct client **c,
	uint32_t *peer)
{
	int rc = name ? volume_check_name(name) : TOOL_DONE;

	if (!rc)
		rc = client_open(t, c);
	if (rc)
		return rc;
	rc = client_find_peer(*c, "volumed", volumed, peer);
	if (rc)
		client_close(*c);
	return rc;
}

void volume_read(const char *text, struct volume *v)
{
	memset(v, 0, sizeof(*v));
	client_value(text, "name", v->name, sizeof(v->name));
	client_value(text, "state", v->state, sizeof(v->state));
	client_value(text, "prefix", v->prefix, sizeof(v->prefix));
	v->id = client_number(text, "id");
	v->size_bytes = client_number(text, "size_bytes");
	v->object_size_bytes = client_number(text, "object_size_bytes");
	v->identity = client_number(text, "identity");
	v->objects_left = client_number(text, "objects_left");
	v->objects_deleted = client_number(text, "objects_deleted");
	v->waits_for_requests = client_number(text, "waits_for_requests");
	v->iops = client_number(text, "iops");
	v->bandwidth_bytes = client_number(text, "bandwidth_bytes");
	v->burst_ns = client_number(text, "burst_ns");
	v->waiting = client_number(text, "waiting");
}

int volume_fail(struct client *c, int64_t rc, const char *what, const char *name)
{
	const char *hint = rc == -ENOENT ? "'xseg volume list' shows the volumes" :
			   rc == -EEXIST ? "choose another name, or remove it first" :
					   NULL;

	/* not volumed's own hint: this command can make the volume */
	if (rc == -ENOENT && !strcmp(what, "volume import")) {
		c->text[strcspn(c->text, ";")] = '\0';
		hint = "add --create to make it, or choose one of 'xseg volume list'";
	}
	return client_fail(c, rc, hint, "%s %s", what, name);
}

int volume_ask(struct client *c, uint32_t peer, const char *what, const char *name,
	struct volume *v)
{
	int64_t rc = client_ask(c, peer, "volume info %s", name);

	memset(v, 0, sizeof(*v));
	if (rc < 0)
		return volume_fail(c, rc, what, name);
	volume_read(c->text, v);
	return TOOL_DONE;
}

/* ---- showing ----------------------------------------------------------------------------- */

json_t *volume_json(const struct volume *v)
{
	json_t *j = json_object();

	out_set_text(j, "name", v->name);
	out_set_int(j, "id", v->id);
	out_set_int(j, "size_bytes", v->size_bytes);
	out_set_int(j, "object_size_bytes", v->object_size_bytes);
	out_set_text(j, "state", v->state);
	out_set_text(j, "prefix", v->prefix);
	out_set_int(j, "identity", v->identity);
	out_set_int(j, "objects_left", v->objects_left);
	out_set_int(j, "objects_deleted", v->objects_deleted);
	out_set_int(j, "waits_for_requests", v->waits_for_requests);
	out_set_int(j, "iops", v->iops);
	out_set_int(j, "bandwidth_bytes", v->bandwidth_bytes);
	out_set_int(j, "burst_ns", v->burst_ns);
	out_set_int(j, "waiting", v->waiting);
	return j;
}

const char *volume_limits_text(const struct volume *v, char text[VOLUME_LIMITS_TEXT])
{
	char bytes[OUT_TEXT], burst[OUT_TEXT];
	struct kv_text t;

	kv_init(&t, text, VOLUME_LIMITS_TEXT);
	kv_add(&t, "%s", v->iops || v->bandwidth_bytes ? "" : "none");
	if (v->iops)
		kv_add(&t, "%" PRIu64 " requests/s", v->iops);
	if (v->bandwidth_bytes)
		kv_add(&t, "%s%s/s", t.used ? ", " : "", out_size(v->bandwidth_bytes, bytes));
	if (v->burst_ns)
		kv_add(&t, ", burst %s", out_time(v->burst_ns, burst));
	return text;
}

static void print(const struct volume *v, const json_t *j)
{
	char size[OUT_TEXT], object[OUT_TEXT], limits[VOLUME_LIMITS_TEXT];

	printf("volume   %s, id %" PRIu64 "\n", v->name, v->id);
	printf("size     %s (%" PRIu64 " bytes), in objects of %s\n", out_size(v->size_bytes, size),
	       v->size_bytes, out_size(v->object_size_bytes, object));
	volume_use_print(j);
	printf("state    %s", v->state);
	if (v->objects_left)
		printf(", %" PRIu64 " object%s left to delete", v->objects_left,
			out_s(v->objects_left));
	else if (v->waits_for_requests)
		printf(", waits for %" PRIu64 " older request%s", v->waits_for_requests,
			out_s(v->waits_for_requests));
	printf("\nlimits   %s", volume_limits_text(v, limits));
	if (v->waiting)
		printf("; waiting: %" PRIu64, v->waiting);
	printf("\n");
}

int volume_show(struct tool *t, struct client *c, uint32_t peer, const struct volume *v)
{
	json_t *j = volume_json(v);
	struct volume_use use;

	volume_use_load(t, c->seg, peer, &use);
	volume_use_put(&use, c->seg, j, (uint32_t)v->id, v->prefix);
	if (use.why[0])
		tool_note(t, "volume info %s: %s", v->name, use.why);
	volume_use_free(&use);
	if (t->json)
		return out_json(j);
	print(v, j);
	json_decref(j);
	return out_done();
}
