/* recover_cmd - volume recover: shows and restores the lost parts of a damaged catalogue.
 *
 * Contract: see commands.h. For each lost part volumed has a line, "lost= found_in= name= identity=
 * prefix= size_bytes= object_size_bytes= objects= state= usable="; found_in is
 *
 *   record    a record of the copy or the catalogue: name and size are the volume's
 *   objects   its objects: its size is known as far as the last of them
 *   names     its objects, by an older program: the objects' size is not known either
 *   nothing   no record that can be read, nor any object
 */
#include <inttypes.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/lost.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/damage.h"
#include "tools/xseg/base/out.h"

#define AT(field) offsetof(struct recover_opts, field)
const struct opt volume_recover_table[] = {
	{ .name = "list", .kind = OPT_BOOL, .off = AT(list),
	  .help = "only show the volumes that can be brought back" },
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name, .help = "the volumed, if there are several" },
	{ 0 },
};
#undef AT

struct lost {
	char found_in[16], name[XSEG_NAME_MAX], prefix[XSEG_NAME_MAX + 1], state[16];
	uint64_t identity, size_bytes, object_size_bytes, objects;
	bool usable;
};

struct lost_list {
	json_t *array;
	struct out_table *table;
	uint32_t by_objects, by_names, by_nothing, unusable;
};

/* ---- what is lost ------------------------------------------------------------------------ */

static void read_lost(const char *line, struct lost *l)
{
	char word[8];

	memset(l, 0, sizeof(*l));
	client_value(line, "found_in", l->found_in, sizeof(l->found_in));
	client_value(line, "name", l->name, sizeof(l->name));
	client_value(line, "prefix", l->prefix, sizeof(l->prefix));
	client_value(line, "state", l->state, sizeof(l->state));
	l->identity = client_number(line, "identity");
	l->size_bytes = client_number(line, "size_bytes");
	l->object_size_bytes = client_number(line, "object_size_bytes");
	l->objects = client_number(line, "objects");
	l->usable = client_value(line, "usable", word, sizeof(word)) && !strcmp(word, "yes");
}

static json_t *lost_json(const struct lost *l)
{
	json_t *j = json_object();

	out_set_text(j, "name", l->name);
	out_set_text(j, "found_in", l->found_in);
	out_set_int(j, "identity", l->identity);
	out_set_text(j, "prefix", l->prefix);
	out_set_int(j, "size_bytes", l->size_bytes);
	out_set_int(j, "object_size_bytes", l->object_size_bytes);
	out_set_int(j, "objects", l->objects);
	out_set_text(j, "state", l->state);
	out_set_bool(j, "usable", l->usable);
	return j;
}

static void add_lost(struct lost_list *list, const struct lost *l)
{
	bool objects = !strcmp(l->found_in, "objects"), names = !strcmp(l->found_in, "names");
	bool nothing = !strcmp(l->found_in, "nothing");
	char size[OUT_TEXT];

	list->by_objects += objects;
	list->by_names += names;
	list->by_nothing += nothing;
	list->unusable += !l->usable && !nothing;
	json_array_append_new(list->array, lost_json(l));
	out_table_row(list->table, "%s\t%s%s\t%" PRIu64 "\t%s\t%s", l->name[0] ? l->name : "?",
		nothing ? "?" : out_size(l->size_bytes, size), objects || names ? "?" : "",
		l->objects, l->found_in, nothing ? "-" : l->usable ? l->state : "name taken");
}

static int load_lost(struct client *c, uint32_t peer, struct lost_list *list)
{
	uint64_t from = 0, next;
	char *line, *save;
	struct lost l;
	int64_t rc;

	do {
		rc = client_ask(c, peer, "volume lost %" PRIu64, from);
		if (rc < 0)
			return client_fail(c, rc, NULL, "volume recover");
		next = client_number(c->text, "next");
		for (line = strtok_r(c->text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save)) {
			if (strncmp(line, "lost=", 5))
				continue;
			read_lost(line, &l);
			add_lost(list, &l);
		}
		from = next > from ? next : 0;
	} while (from);
	return TOOL_DONE;
}

/* How sure it is. */
static void print_notes(const struct lost_list *list)
{
	if (list->by_objects || list->by_names)
		printf("size?      the volume reached at least into its last object, and may have "
			"been larger: 'volume resize' makes it so\n");
	if (list->by_names)
		printf("names      the size of its objects is not known: volumed's object_size is "
			"taken; if the volume had another, set that first\n");
	if (list->by_nothing)
		printf("nothing    a record that cannot be read, and no object is known to be of "
			"it; 'volume recover' gives it up\n");
	if (list->unusable)
		printf("name taken another volume has that name: remove it, then recover\n");
}

/* ---- the command ------------------------------------------------------------------------- */

static int show_list(struct tool *t, const struct damage *d, struct lost_list *list)
{
	char line[DAMAGE_MAX], hinted[DAMAGE_MAX], none[LOST_MAX];
	int rc;

	if (t->json)
		return out_json(json_incref(list->array));
	if (!d->reason[0]) {
		tool_say(t, "nothing is lost: catalogue, copy and header agree");
		return TOOL_DONE;
	}
	snprintf(line, sizeof(line),
		"the catalogue is damaged: %s; %s; 'xseg volume recover' mends it%s", d->reason,
		json_array_size(list->array) ? "volumes are lost"
					     : lost_tell(none, 0, 0),
		json_array_size(list->array) ? " and brings back these:" : "");
	printf("%s\n", tool_hints(hinted, sizeof(hinted), line));
	if (!json_array_size(list->array))
		return out_done();
	rc = out_table_print(list->table);
	list->table = NULL;
	print_notes(list);
	return rc;
}

static int show_recovered(struct tool *t, struct client *c, struct lost_list *list)
{
	uint64_t nr = client_number(c->text, "recovered"), left = client_number(c->text, "left");
	json_t *j;

	if (t->json) {
		j = json_object();
		out_set_int(j, "recovered", nr);
		out_set_int(j, "left", left);
		json_object_set(j, "lost", list->array);
		out_json(j);
	}
	tool_say(t, "%" PRIu64 " volume%s brought back, and the catalogue is whole", nr,
		nr == 1 ? " is" : "s are");
	if (!left)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"volume recover: %" PRIu64 " volume%s left, whose name is taken, or for which the "
		"catalogue has no place; see 'xseg volume recover --list', remove volumes, then "
		"recover again", left, left == 1 ? " is" : "s are");
}

static int recover(struct tool *t, struct client *c, uint32_t peer, bool only_list,
	struct lost_list *list)
{
	struct damage d = { .lost = 0 };
	int64_t rc = client_ask(c, peer, "status");
	int code;

	if (rc < 0)
		return client_fail(c, rc, NULL, "volume recover");
	damage_add(&d, c->text);
	/* while the catalogue cannot be read, this says so, or the recovery does */
	code = d.unread[0] && !only_list ? TOOL_DONE : load_lost(c, peer, list);
	if (code || only_list || !damage_any(&d))
		return code ? code : show_list(t, &d, list);
	rc = client_tell(c, peer, "volume recover");
	if (rc < 0)
		return client_fail(c, rc, NULL, "volume recover");
	return show_recovered(t, c, list);
}

int volume_recover(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct recover_opts *o = opts;
	struct lost_list list = { .by_objects = 0 };
	struct client *c;
	uint32_t peer;
	int rc;

	(void)argc;
	(void)argv;
	rc = client_open(t, &c);
	if (rc)
		return rc;
	rc = client_find_peer(c, "volumed", o->volumed, &peer);
	if (!rc) {
		list.array = json_array();
		list.table = out_table_create("NAME\t>SIZE\t>OBJECTS\tFOUND IN\tSTATE");
		rc = recover(t, c, peer, o->list, &list);
		out_table_free(list.table);
		json_decref(list.array);
	}
	client_close(c);
	return rc;
}
