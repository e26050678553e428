/* xseg - the admin command: segments, stacks, peers, volumes, values, caches and their statistics.
 *
 * Subject
 *   main.c has the table of commands. It finds the command that was asked for, reads the options
 *   and calls its handler. Options of all commands may stand anywhere, a command's own after its
 *   first word.
 *
 * Invariants
 *   M1  Each command stands once, in the table below, which feeds dispatch, help and suggestions.
 *   M2  Words after "--" are never options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/options/cli.h"
#include "peers/common/say/hint.h"
#include "peers/common/options/owner.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/cmd/complete_cmd.h"
#include "tools/xseg/text/set_help.h"
#include "tools/xseg/text/cache_volume.h"

#ifndef XSEG_VERSION
#define XSEG_VERSION "unknown"
#endif

#define MAX_WORDS 64
#define ANY	  MAX_WORDS

static int complete(struct tool *t, const void *opts, int argc, char **argv);

static const struct command commands[] = {
	{ "create", seg_create, seg_create_table, sizeof(struct seg_create_opts), 0, 0,
	  "--memory SIZE",
	  "prints how much RAM a segment's parts need, and makes it" },
	{ "destroy", seg_destroy, seg_force_table, sizeof(struct seg_force_opts), 0, 0, "",
	  "removes a segment; refuses while peers are alive or dirty data is in it" },
	{ "list", seg_list, NULL, 0, 0, 0, "", "lists the segments of this machine" },
	{ "info", seg_info, NULL, 0, 0, 0, "",
	  "shows the sizes of a segment's parts and how much of each is free" },
	{ "check", seg_check, seg_check_table, sizeof(struct seg_check_opts), 0, 0, "",
	  "verifies every invariant of the segment and names those that are broken" },
	{ "up", stack_up, stack_up_table, sizeof(struct stack_up_opts), 1, 1, "STACK.conf",
	  "starts a stack: the segment, its supervisor and all peers" },
	{ "down", stack_down, stack_down_table, sizeof(struct stack_down_opts), 0, 0, "",
	  "stops a stack from the top down and removes its segment" },
	{ "status", stack_status, NULL, 0, 0, 0, "",
	  "shows the segment, the supervisor, the peers and the caches" },
	{ "reload", stack_reload, reload_table, sizeof(struct reload_opts), 0, 1, "[STACK.conf]",
	  "changes a stack that runs to what a stack file says" },
	{ "config check", config_check, NULL, 0, 1, 1, "STACK.conf",
	  "names all errors of a stack file, and the memory that it needs" },
	{ "peer list", peer_list, peer_list_table, sizeof(struct peer_list_opts), 0, 0, "",
	  "lists the peers and the state that each is in" },
	{ "peer start", peer_start, NULL, 0, 1, 1, "NAME",
	  "starts a peer as the stack file has it" },
	{ "peer stop", peer_stop, peer_stop_table, sizeof(struct peer_stop_opts), 1, 1, "NAME",
	  "stops a peer in order; refuses while others send to it" },
	{ "peer restart", peer_restart, peer_restart_table, sizeof(struct peer_restart_opts), 0, 1,
	  "NAME|--all|--replaced",
	  "stops a peer in order and starts it again, while others wait for it" },
	{ "peer kill", peer_kill, peer_kill_table, sizeof(struct peer_kill_opts), 1, 1, "NAME",
	  "sends SIGKILL to a peer's process" },
	{ "peer set", peer_set, peer_set_table, sizeof(struct peer_set_opts), 2, ANY,
	  "NAME KEY=VALUE...",
	  "changes live options of a peer" },
	{ "clients", clients_run, NULL, 0, 0, 0, "",
	  "lists the processes that are clients, and the volumes that they have open" },
	{ "volume create", volume_create, volume_create_table, sizeof(struct volume_opts), 1, 1,
	  "VOL --size SIZE",
	  "makes a volume, which reads as zeroes" },
	{ "volume list", volume_list, volume_table, sizeof(struct volume_opts), 0, 0, "",
	  "lists the volumes" },
	{ "volume info", volume_info, volume_table, sizeof(struct volume_opts), 1, 1, "VOL",
	  "shows one volume" },
	{ "volume resize", volume_resize, volume_resize_table, sizeof(struct volume_opts), 1, 1,
	  "VOL --size SIZE",
	  "makes a volume larger or, with --force, smaller" },
	{ "volume remove", volume_remove, volume_remove_table, sizeof(struct volume_opts), 1, ANY,
	  "VOL...",
	  "removes volumes and their objects" },
	{ "volume import", volume_import, volume_import_table, sizeof(struct volume_opts), 2, 2,
	  "VOL FILE",
	  "writes a raw image into a volume; - is standard input" },
	{ "volume export", volume_export, volume_export_table, sizeof(struct volume_opts), 2, 2,
	  "VOL FILE",
	  "writes a volume into a raw image; - is standard output" },
	{ "volume flush", volume_flush, volume_table, sizeof(struct volume_opts), 1, 1, "VOL",
	  "returns when all writes acknowledged before are on stable storage" },
	{ "volume rename", volume_rename, volume_table, sizeof(struct volume_opts), 2, 2,
	  "VOL NEWNAME",
	  "gives a volume another name" },
	{ "volume copy", volume_copy_run, volume_copy_table, sizeof(struct volume_opts), 2, 2,
	  "VOL NEWNAME",
	  "makes a volume that is a copy of another" },
	{ "volume set", volume_set, volume_table, sizeof(struct volume_opts), 2, ANY,
	  "VOL KEY=VALUE...",
	  "limits a volume: iops=N, bandwidth=SIZE/s, burst=TIME" },
	{ "volume get", volume_get, volume_table, sizeof(struct volume_opts), 1, 1, "VOL",
	  "shows the limits of a volume" },
	{ "volume recover", volume_recover, volume_recover_table, sizeof(struct recover_opts), 0, 0,
	  "",
	  "mends a damaged catalogue of volumes, and brings back lost volumes" },
	{ "cache status", cache_status, cache_volume_table, sizeof(struct cache_opts), 0, 1,
	  "[CACHE]",
	  "shows policy, state and counters of a cache, or of one volume in it" },
	{ "cache get", cache_get, cache_volume_table, sizeof(struct cache_opts), 1, 1, "CACHE",
	  "shows the options of a cache, or of one volume in it" },
	{ "cache set", cache_set, cache_set_table, sizeof(struct cache_opts), 2, ANY,
	  "CACHE KEY=VALUE...",
	  "changes options of a cache, or of one volume in it" },
	{ "cache flush", cache_flush, cache_volume_table, sizeof(struct cache_opts), 1, 1, "CACHE",
	  "writes a cache's dirty data to the store" },
	{ "cache drop", cache_drop, NULL, 0, 1, 1, "CACHE",
	  "forgets a cache's clean data; refuses while any is dirty" },
	{ "kv put", kv_put, kv_put_table, sizeof(struct kv_opts), 1, 2, "KEY [FILE|-]",
	  "puts a value, from a file or standard input, under a key" },
	{ "kv get", kv_get, kv_get_table, sizeof(struct kv_opts), 1, 2, "KEY [FILE|-]",
	  "writes a key's value to a file or standard output" },
	{ "kv delete", kv_delete, kv_delete_table, sizeof(struct kv_opts), 0, 1, "[KEY]",
	  "deletes a key and its value, or all of them" },
	{ "kv exists", kv_exists, kv_key_table, sizeof(struct kv_opts), 1, 1, "KEY",
	  "ends with 0 if the key is there, with 4 if it is not" },
	{ "kv list", kv_list, kv_list_table, sizeof(struct kv_opts), 0, 0, "",
	  "lists the keys" },
	{ "kv info", kv_info, kv_key_table, sizeof(struct kv_opts), 0, 1, "[KEY]",
	  "shows a store of values, or one value in it" },
	{ "kv import", kv_import, kv_import_table, sizeof(struct kv_opts), 1, 1, "DIR",
	  "puts each file of a directory as a value" },
	{ "kv export", kv_export, kv_export_table, sizeof(struct kv_opts), 1, 1, "DIR",
	  "writes each value as a file of a directory" },
	{ "kv flush", kv_flush, kv_table, sizeof(struct kv_opts), 0, 0, "",
	  "returns when all values acknowledged before are on stable storage" },
	{ "kv backup", kv_backup, kv_backup_table, sizeof(struct kv_opts), 1, 1, "FILE",
	  "writes all values, as they are at one moment, into a file" },
	{ "kv restore", kv_restore, kv_restore_table, sizeof(struct kv_opts), 1, 1, "FILE",
	  "puts the values of a backup" },
	{ "kv verify", kv_verify, kv_table, sizeof(struct kv_opts), 0, 0, "",
	  "reads the whole log, and names what is damaged" },
	{ "plug", plug_run, plug_table, sizeof(struct plug_opts), 1, 1,
	  "CACHE [--above LOWER] [--below UPPER[,UPPER...]]",
	  "puts a cache between peers, under running I/O" },
	{ "unplug", unplug_run, unplug_table, sizeof(struct unplug_opts), 1, 1, "CACHE [--cancel]",
	  "flushes a cache and takes it out of the path, under running I/O" },
	{ "export list", export_list, NULL, 0, 0, 0, "",
	  "lists the exports of the stack file, and the state that each is in" },
	{ "export start", export_start, NULL, 0, 1, 1, "EXPORT",
	  "starts the server of an export of the stack file" },
	{ "export stop", export_stop, export_stop_table, sizeof(struct export_stop_opts), 1, 1,
	  "EXPORT",
	  "stops the server of an export; refuses while it has connections" },
	{ "export restart", export_restart, export_stop_table, sizeof(struct export_stop_opts), 1,
	  1, "EXPORT",
	  "stops the server of an export and starts it again" },
	{ "export", export_run, export_table, sizeof(struct export_opts), 1, 1, "VOL --nbd SOCKET",
	  "serves a volume by NBD on a Unix socket, until it is interrupted" },
	{ "stat", stat_run, stat_table, sizeof(struct stat_opts), 0, 0, "",
	  "prints counters and latencies of each peer, cache and volume" },
	{ "top", stat_top, top_table, sizeof(struct stat_opts), 0, 0, "",
	  "shows counters and latencies live, on a terminal" },
	{ "complete", complete, NULL, 0, 1, ANY, "-- WORD...",
	  "prints how the last word of a command line may go on; for a shell" },
};
#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

struct global_opts {
	char segment[XSEG_NAME_MAX], owner[OWNER_BYTES];
	bool json, quiet, help, version;
	uint64_t timeout_ns;
};

/* An empty one is what a script says whose variable is not set: not the default. */
static int check_segment(const char *name, struct xseg_error *err)
{
	return *name ? 0
		     : xseg_fail(err, -EINVAL,
			       "segment: '' is not a name; leave -s out for $XSEG_SEGMENT");
}

#define AT(field) offsetof(struct global_opts, field)
static const struct opt global_table[] = {
	{ .name = "segment", .kind = OPT_STR, .off = AT(segment), .len = XSEG_NAME_MAX,
	  .check = check_segment, .arg = "SEGMENT",
	  .help = "the segment to work on, also -s; else $XSEG_SEGMENT, else the only one there "
		  "is, else xseg" },
	OWNER_OPT(AT(owner)),
	{ .name = "json", .kind = OPT_BOOL, .off = AT(json), .help = "print JSON" },
	{ .name = "timeout", .kind = OPT_TIME, .off = AT(timeout_ns),
	  .help = "stop waiting after that time, with exit code 3; work that was begun goes on. "
		  "Without it only a question to a peer ends, after 30s" },
	{ .name = "quiet", .kind = OPT_BOOL, .off = AT(quiet),
	  .help = "print neither progress nor success" },
	{ .name = "help", .kind = OPT_BOOL, .off = AT(help),
	  .help = "this text, also -h; after a command, that command's" },
	{ .name = "version", .kind = OPT_BOOL, .off = AT(version), .help = "print the version" },
	{ 0 },
};
#undef AT

static int complete(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct complete_tables tables = { commands, NR_COMMANDS, global_table };

	(void)opts;
	return complete_words(t, &tables, argc, argv);
}

/* ---- help -------------------------------------------------------------------------------- */

/* Of all commands, or of those that begin with this word. */
static void print_commands(const char *group)
{
	size_t i, len = strlen(group);

	for (i = 0; i < NR_COMMANDS; i++) {
		if (strncmp(commands[i].words, group, len) ||
		    (len && commands[i].words[len] != ' '))
			continue;
		printf("  %-14s  ", commands[i].words);
		cli_print_words(stdout, 18, commands[i].help);
	}
}

static int print_help(void)
{
	printf("usage: xseg [-s SEGMENT] [--json] [--timeout TIME] [--quiet] [--owner USER]\n"
	       "       COMMAND ...\n\n"
	       "commands:\n");
	print_commands("");
	printf("\noptions of all commands:\n");
	cli_print_options(stdout, global_table);
	printf("\n'xseg COMMAND --help' shows a command's own options.\n"
	       "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out or interrupted (the\n"
	       "work goes on), 4 refused (exists, is not there, in use, would lose data).\n");
	return TOOL_DONE;
}

static int print_group_help(const char *group)
{
	printf("usage: xseg [OPTIONS] %s COMMAND ...\n\ncommands:\n", group);
	print_commands(group);
	printf("\n'xseg --help' shows all commands, and the options that they have in common.\n");
	return TOOL_DONE;
}

static int print_command_help(const struct command *cmd)
{
	printf("usage: xseg [OPTIONS] %s%s%s\n\n", cmd->words, *cmd->args ? " " : "", cmd->args);
	cli_print_words(stdout, 0, cmd->help);
	if (cmd->opts && cmd->opts->name) {
		printf("\noptions:\n");
		cli_print_options(stdout, cmd->opts);
	}
	if (strstr(cmd->args, "STACK.conf"))
		printf("\nxseg.conf(5) describes stack files.\n");
	if (cmd->run == cache_set)
		set_help_cache();
	if (cmd->run == peer_set)
		set_help_peer();
	printf("\n'xseg --help' shows the options of all commands.\n");
	return TOOL_DONE;
}

static int print_version(void)
{
	printf("xseg %s\n", XSEG_VERSION);
	return TOOL_DONE;
}

/* ---- finding the command ----------------------------------------------------------------- */

/* How many of argv's words are the command's, or 0 when it is another. */
static int words_match(const char *words, int argc, char **argv)
{
	size_t len;
	int nr = 0;

	while (*words) {
		len = strcspn(words, " ");
		if (nr == argc || strlen(argv[nr]) != len || strncmp(words, argv[nr], len))
			return 0;
		words += len;
		words += *words == ' ';
		nr++;
	}
	return nr;
}

static const struct command *command_find(int argc, char **argv, int *used)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		*used = words_match(commands[i].words, argc, argv);
		if (*used)
			return &commands[i];
	}
	return NULL;
}

/* True when commands begin with this word: "volume". Writes what may follow. */
static bool group_words(const char *word, char *out, size_t size)
{
	size_t i, used = 0, len = strlen(word);

	for (i = 0; i < NR_COMMANDS; i++)
		if (!strncmp(commands[i].words, word, len) && commands[i].words[len] == ' ' &&
		    used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
						 commands[i].words + len + 1);
	return used > 0;
}

static const char *nearest_command(const char *typed)
{
	struct opt table[NR_COMMANDS + 1] = { { 0 } };
	struct cli_group groups[] = { { table, NULL }, { NULL, NULL } };
	const struct opt *found;
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		table[i].name = commands[i].words;
	found = cli_nearest(groups, typed);
	return found ? found->name : NULL;
}

/* What other tools call it, and what the command is called here. */
static const char *known_elsewhere(const char *typed)
{
	static const struct {
		const char *typed, *meant;
	} names[] = {
		{ "volume delete", "volume remove" }, { "volume destroy", "volume remove" },
		{ "volume rm", "volume remove" }, { "volume ls", "volume list" },
		{ "volume show", "volume info" }, { "volume grow", "volume resize" },
		{ "volume mv", "volume rename" }, { "volume move", "volume rename" },
		{ "volume cp", "volume copy" }, { "volume clone", "volume copy" },
		{ "volume limit", "volume set" }, { "volume qos", "volume set" },
		{ "volume sync", "volume flush" }, { "peer ls", "peer list" },
		{ "peer status", "peer list" }, { "peer show", "peer list" },
		{ "cache show", "cache status" }, { "cache list", "cache status" },
		{ "cache info", "cache status" }, { "cache clear", "cache drop" },
		{ "cache sync", "cache flush" }, { "kv set", "kv put" }, { "kv rm", "kv delete" },
		{ "kv remove", "kv delete" }, { "kv del", "kv delete" }, { "kv ls", "kv list" },
		{ "kv sync", "kv flush" }, { "rm", "volume remove" }, { "ls", "volume list" },
		{ "start", "up" }, { "stop", "down" }, { "ps", "peer list" },
		{ "import", "volume import" }, { "resize", "volume resize" },
		{ "iostat", "stat" }, { "stats", "stat" }, { "delete", "volume remove" },
		{ "remove", "volume remove" }, { "volumes", "volume list" },
		{ "peers", "peer list" }, { "caches", "cache status" },
		{ "restart", "peer restart" },
		{ "kill", "peer kill" }, { "flush", "volume flush" }, { "segments", "list" },
		{ "version", "--version" }, { "volume status", "volume info" },
		{ "peer info", "peer list" }, { "peer stat", "stat" },
		{ "cache stat", "cache status" },
		{ "volume du", "volume list" }, { "volume df", "volume list" },
		{ "volume limits", "volume get" }, { "volume map", "export" },
		{ "volume snapshot", "volume copy" }, { "volume clients", "clients" },
		{ "peer log", "status" }, { "peer add", "reload" }, { "peer remove", "reload" },
		{ "cache policy", "cache set" }, { "cache mode", "cache set" },
		{ "cache attach", "plug" }, { "cache detach", "unplug" }, { "cache add", "plug" },
		{ "cache remove", "unplug" }, { "cache start", "peer start" },
		{ "cache stop", "peer stop" }, { "cache invalidate", "cache drop" },
		{ "config test", "config check" }, { "config validate", "config check" },
		{ "config verify", "config check" }, { "kv cat", "kv get" },
		{ "kv dump", "kv backup" }, { "kv load", "kv restore" },
		{ "kv status", "kv info" }, { "kv check", "kv verify" }, { "du", "volume list" },
		{ "df", "status" }, { "mv", "volume rename" }, { "cp", "volume copy" },
		{ "rename", "volume rename" }, { "copy", "volume copy" },
		{ "snapshot", "volume copy" }, { "attach", "plug" }, { "detach", "unplug" },
		{ "map", "export" }, { "nbd", "export" }, { "serve", "export" },
		{ "scrub", "check" }, { "fsck", "check" }, { "verify", "check" },
		{ "validate", "config check" }, { "sync", "volume flush" }, { "show", "status" },
		{ "log", "status" }, { "logs", "status" }, { "set", "cache set" },
		{ "get", "cache get" }, { "drop", "cache drop" }, { "put", "kv put" },
		{ "shutdown", "down" }, { "poweroff", "down" }, { "halt", "down" },
		{ "mount", "export" }, { "unexport", "export stop" }, { "exports", "export list" },
		{ "journal", "status" }, { "journalctl", "status" },
		{ "policy", "cache set" }, { "mode", "cache set" }, { "qos", "volume set" },
		{ "limit", "volume set" }, { "limits", "volume get" }, { "init", "create" },
		{ "repair", "check" }, { "recover", "volume recover" }, { "reboot", "down" },
		{ "cache create", "reload" }, { "config show", "status" },
		{ "config reload", "reload" }, { "reconfigure", "reload" }, { "monitor", "top" },
		{ "perf", "stat" }, { "upgrade", "peer restart" }, { "use", "clients" },
		{ "users", "clients" }, { "who", "clients" }, { "pool list", "status" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(typed, names[i].typed))
			return names[i].meant;
	return NULL;
}

static int unknown_command(int argc, char **argv)
{
	char typed[48], follow[256], help[48];
	const char *near;

	if (group_words(argv[0], follow, sizeof(follow)) && argc == 1)
		return tool_fail(TOOL_USAGE, "%s: it needs one more word: %s", argv[0], follow);
	snprintf(typed, sizeof(typed), "%.20s %.20s", argv[0], argc > 1 ? argv[1] : "");
	snprintf(help, sizeof(help), "help %.40s", argv[0]);
	if (argc > 1 && !strcmp(argv[1], "help") && group_words(argv[0], follow, sizeof(follow)))
		near = help;
	else
		near = known_elsewhere(typed);
	if (!near && known_elsewhere(argv[0])) {
		near = known_elsewhere(argv[0]);
		snprintf(typed, sizeof(typed), "%.40s", argv[0]);
	}
	if (!near && argc > 1)
		near = nearest_command(typed);
	if (!near && !group_words(argv[0], follow, sizeof(follow))) {
		snprintf(typed, sizeof(typed), "%.40s", argv[0]);
		near = nearest_command(typed);
	}
	if (near && !strcmp(near, argv[0]))
		return tool_fail(TOOL_USAGE,
			"'%s' is given as one word; leave the quotes out", near);
	if (near)
		return tool_fail(TOOL_USAGE,
				 "unknown command '%s'; did you mean '%s'? 'xseg --help' lists all",
				 typed, near);
	return tool_fail(TOOL_USAGE, "unknown command '%s'; 'xseg --help' lists all", typed);
}

/* ---- reading the command line ------------------------------------------------------------ */

/* Parses all options of argv; collects the other words. Returns their number or -EINVAL, with a
 * line in err. */
static int read_words(const struct cli_group *groups, int argc, char **argv, char **words,
		      struct xseg_error *err)
{
	int at = 0, next, nr = 0;
	bool only_words = false;

	while (at + 1 < argc) {
		if (!only_words) {
			next = cli_parse(groups, argc - at, argv + at, err);
			if (next < 0)
				return next;
			only_words = next > 1 && !strcmp(argv[at + next - 1], "--");
			at += next - 1;
		}
		if (at + 1 >= argc)
			break;
		if (nr == MAX_WORDS)
			return xseg_fail(err, -EINVAL, "more than %d words; see 'xseg --help'",
					 MAX_WORDS);
		words[nr++] = argv[++at];
	}
	return nr;
}

static bool makes_segment(const struct command *cmd)
{
	return cmd->run == seg_create || cmd->run == stack_up;
}

static int set_segment(struct tool *t, const struct global_opts *g, const struct command *cmd)
{
	const char *without = makes_segment(cmd) ? hint_segment_to_make() : hint_default_segment();
	const char *name = g->segment[0] ? g->segment : without;
	const char *variable = getenv("XSEG_SEGMENT");

	t->segment_given = g->segment[0] || (variable && *variable);
	if (!xseg_name_ok(name))
		return tool_fail(TOOL_USAGE,
			"segment '%.80s': a name is 1 to 63 letters, digits, '.', '_' or '-', and "
			"begins with neither '.' nor '-'; name another with -s",
			name);
	snprintf(t->segment, sizeof(t->segment), "%s", name);
	tool_name_segment(t->segment);
	bus_watch("xseg", t->segment, TOOL_FAILED);
	return TOOL_DONE;
}

/* Which word is none, as that of a script whose variable is not set: 1, 2 ...; 0: none is. */
static int empty_word(int argc, char **words)
{
	for (int i = 0; i < argc; i++)
		if (!*words[i])
			return i + 1;
	return 0;
}

static int check_words(const struct command *cmd, const void *opts, int argc, char **words)
{
	const char *missing = cmd->opts ? opt_missing(cmd->opts, opts) : NULL;
	/* of a line that is being typed the last word may be empty */
	int empty = cmd->run == complete ? 0 : empty_word(argc, words);

	if (argc < cmd->min_args)
		return tool_fail(TOOL_USAGE, "%s: a word is missing; usage: xseg %s %s",
				 cmd->words, cmd->words, cmd->args);
	if (argc > cmd->max_args)
		return tool_fail(TOOL_USAGE, "%s: '%.60s' is one word too many; usage: xseg %s%s%s",
				 cmd->words, words[cmd->max_args], cmd->words,
				 *cmd->args ? " " : "", cmd->args);
	if (empty)
		return tool_fail(TOOL_USAGE, "%s: word %d is empty; usage: xseg %s %s", cmd->words,
				 empty, cmd->words, cmd->args);
	if (missing)
		return tool_fail(TOOL_USAGE, "%s: --%s is missing; usage: xseg %s %s", cmd->words,
				 missing, cmd->words, cmd->args);
	return TOOL_DONE;
}

static int run_command(const struct command *cmd, const struct global_opts *g, const void *opts,
		       int argc, char **words)
{
	struct tool t = { .json = g->json, .quiet = g->quiet, .timeout_ns = g->timeout_ns };
	int rc;

	if (g->help)
		return print_command_help(cmd);
	if (g->version)
		return print_version();
	rc = check_words(cmd, opts, argc, words);
	if (!rc)
		rc = set_segment(&t, g, cmd);
	if (rc)
		return rc;
	owner_use(g->owner);
	tool_start_clock(&t);
	tool_catch_signals();
	rc = cmd->run(&t, opts, argc, words);
	tool_progress_end();
	return rc;
}

/* As many commands have it. */
static void note_volumed(const struct command *cmd, const char *opts)
{
	const struct opt *o = cmd->opts ? opt_find(cmd->opts, "volumed") : NULL;

	if (o)
		tool_name_volumed(opts + o->off);
}

/* Once the command is known all of the line is read, by its own options and the global ones. */
static int read_command(const struct command *cmd, int used, int argc, char **argv)
{
	void *opts = calloc(1, cmd->opts_size + 1);
	struct global_opts g;
	struct cli_group groups[] = { { global_table, &g }, { cmd->opts, opts }, { NULL, NULL } };
	struct xseg_error err = { "" };
	char *words[MAX_WORDS];
	int nr, rc;

	if (!opts)
		return tool_fail(TOOL_FAILED, "no memory for options; free some");
	opt_set_defaults(global_table, &g);
	if (cmd->opts)
		opt_set_defaults(cmd->opts, opts);
	nr = read_words(groups, argc, argv, words, &err);
	if (nr < 0) {
		rc = tool_fail(TOOL_USAGE, "%s: %s; see 'xseg %s --help'", cmd->words, err.text,
			       cmd->words);
	} else {
		note_volumed(cmd, opts);
		tool_name_command(cmd->words);
		rc = run_command(cmd, &g, opts, nr - used, words + used);
		tool_name_volumed("");
	}
	free(opts);
	return rc;
}

/* What stands before the first word; then `words` is that word and all that follows, options too.
 * Returns how many, or -EINVAL with a line in err. */
static int read_front(struct global_opts *g, int argc, char **argv, char ***words,
		      struct xseg_error *err)
{
	struct cli_group groups[] = { { global_table, g }, { NULL, NULL } };
	int at;

	opt_set_defaults(global_table, g);
	at = cli_parse(groups, argc, argv, err);
	if (at < 0)
		return at;
	*words = argv + at;
	return argc - at;
}

/* Options behind the words are nothing to it. */
static int help_on(int argc, char **argv)
{
	const struct command *cmd;
	char follow[256];
	int used, nr = 0;

	while (nr < argc && argv[nr][0] != '-')
		nr++;
	if (nr == 0 || !strcmp(argv[0], "help"))
		return print_help();
	cmd = command_find(nr, argv, &used);
	if (!cmd && nr == 1 && group_words(argv[0], follow, sizeof(follow)))
		return print_group_help(argv[0]);
	return cmd ? print_command_help(cmd) : unknown_command(nr, argv);
}

/* "GROUP OPTIONS [WORD]", where no command was found: with the options left out there may be one;
 * else NULL, and *code. */
static const struct command *find_in_group(int argc, char **argv, int *used, int *code)
{
	struct xseg_error err = { "" };
	struct global_opts between;
	char **rest, *words[2] = { argv[0] };
	int left = read_front(&between, argc, argv, &rest, &err);
	const struct command *cmd = NULL;

	if (left > 0) {
		words[1] = rest[0];
		cmd = command_find(2, words, used);
	}
	if (left < 0)
		*code = tool_fail(TOOL_USAGE, "%s: %s; see 'xseg %s --help'", argv[0], err.text,
				  argv[0]);
	else if (!left && between.help)
		*code = print_group_help(argv[0]);
	else if (!left && between.version)
		*code = print_version();
	else if (!cmd)
		*code = unknown_command(left ? 2 : 1, words);
	return cmd;
}

static int run(int argc, char **argv)
{
	struct xseg_error err = { "" };
	const struct command *cmd;
	struct global_opts front;
	char **words, follow[256];
	int nr, used, code = TOOL_DONE;
	bool about;

	nr = read_front(&front, argc, argv, &words, &err);
	about = nr > 0 && !strcmp(words[0], "help");
	if (about)
		nr = read_front(&front, nr, words, &words, &err);
	if (nr < 0)
		return tool_fail(TOOL_USAGE, "%s; see 'xseg --help'", err.text);
	if (front.version)
		return print_version();
	if (about)
		return help_on(nr, words);
	if (nr == 0 && front.help)
		return print_help();
	if (nr == 0)
		return tool_fail(TOOL_USAGE, "no command; 'xseg --help' lists them");
	cmd = command_find(nr, words, &used);
	if (!cmd && front.help)
		return help_on(nr, words);
	if (!cmd && !group_words(words[0], follow, sizeof(follow)))
		return unknown_command(nr > 1 && words[1][0] == '-' ? 1 : nr, words);
	if (!cmd)
		cmd = find_in_group(nr, words, &used, &code);
	if (!cmd)
		return code;
	return read_command(cmd, used, argc, argv);
}

/* For errors in the command line itself, too. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "--json"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	cli_begin();
	if (wants_json(argc, argv))
		tool_tell_as_json();
	return cli_end("xseg", run(argc, argv));
}
