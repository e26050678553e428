/* commands - the handlers of all commands, for the one table in main.c.
 *
 * Contract: `opts` points to the values of the command's own options (struct given beside its
 * table), set to defaults and parsed. The words after the command's are in argc and argv, as many
 * as the table allows. A handler returns an exit code (enum tool_exit). If it is not 0, the handler
 * has said why on stderr.
 */
#ifndef TOOLS_XSEG_COMMANDS_H
#define TOOLS_XSEG_COMMANDS_H

#include "tools/xseg/base/tool.h"

typedef int command_fn(struct tool *t, const void *opts, int argc, char **argv);

/* ---- seg_cmds.c ---- */
struct seg_create_opts {
	uint64_t memory_bytes, cache_bytes;
	uint32_t requests, ports, objects, clients, huge;
	char mode[8], group[33];
	bool dry_run;
};
struct seg_force_opts {
	bool force;
};
struct seg_check_opts {
	bool fix;
};
extern const struct opt seg_create_table[], seg_force_table[], seg_check_table[];
command_fn seg_create, seg_destroy, seg_list, seg_info, seg_check;

/* ---- stack_cmds.c ---- */
struct stack_up_opts {
	bool foreground, service;
};
struct stack_down_opts {
	bool force, cancel;
};
extern const struct opt stack_up_table[], stack_down_table[];
command_fn stack_up, stack_down;

/* ---- config_cmds.c ---- */
command_fn config_check;

/* ---- reload_cmd.c ---- */
struct reload_opts {
	bool dry_run;
};
extern const struct opt reload_table[];
command_fn stack_reload;

/* ---- status_cmds.c ---- */
command_fn stack_status;

/* ---- peer_cmds.c ---- */
struct peer_list_opts {
	bool all;
};
struct peer_stop_opts {
	bool force;
};
struct peer_restart_opts {
	bool all, replaced;
};
struct peer_kill_opts {
	bool force;
};
struct peer_set_opts {
	bool save;
};
extern const struct opt peer_list_table[], peer_stop_table[], peer_restart_table[],
	peer_kill_table[], peer_set_table[];
command_fn peer_list, peer_start, peer_stop, peer_restart, peer_kill, peer_set, clients_run;

/* ---- volume_cmds.c ---- */
struct volume_opts {
	char volumed[XSEG_NAME_MAX];
	uint64_t size_bytes;
	bool force, create, raw;
};
extern const struct opt volume_table[], volume_create_table[], volume_resize_table[],
	volume_remove_table[], volume_import_table[], volume_export_table[];
command_fn volume_create, volume_list, volume_info, volume_resize, volume_remove, volume_flush,
	volume_import, volume_export;

/* ---- volume_change_cmds.c ---- */
extern const struct opt volume_limit_table[];	/* the keys of volume set */
extern const struct opt volume_copy_table[];
command_fn volume_set, volume_get, volume_rename, volume_copy_run;

/* ---- recover_cmd.c ---- */
struct recover_opts {
	char volumed[XSEG_NAME_MAX];
	bool list;
};
extern const struct opt volume_recover_table[];
command_fn volume_recover;

/* ---- cache_cmds.c ---- */
struct cache_opts;
extern const struct opt cache_volume_table[], cache_set_table[];
command_fn cache_status, cache_get, cache_set, cache_flush, cache_drop;

/* ---- kv_cmds.c ---- */
#define KV_PREFIX_BYTES 1024
struct kv_opts {
	char kvd[XSEG_NAME_MAX], prefix[KV_PREFIX_BYTES];
	uint64_t ttl_ns, in_ns;
	uint32_t client;
	bool all, force, salvage, stable, if_absent, details, encoded, flat, follow;
};
extern const struct opt kv_key_table[], kv_put_table[], kv_get_table[], kv_delete_table[];
command_fn kv_put, kv_get, kv_delete, kv_exists, kv_info;

/* ---- kv_all_cmds.c ---- */
extern const struct opt kv_table[], kv_list_table[], kv_import_table[], kv_export_table[],
	kv_backup_table[], kv_restore_table[];
command_fn kv_list, kv_import, kv_export, kv_flush, kv_backup, kv_restore, kv_verify;

/* ---- plug_cmds.c ---- */
#define PLUG_BELOW_BYTES 1024			/* names with a comma between them */
struct plug_opts {
	char above[XSEG_NAME_MAX], below[PLUG_BELOW_BYTES];
};
struct unplug_opts {
	bool cancel;
};
extern const struct opt plug_table[], unplug_table[];
command_fn plug_run, unplug_run;

/* ---- export_cmds.c ---- */
#define EXPORT_SOCKET_MAX 108			/* as the kernel's */
struct export_opts {
	char nbd[EXPORT_SOCKET_MAX], volumed[XSEG_NAME_MAX], mode[8], group[33];
	uint32_t queues, connections;
	bool read_only;
};
extern const struct opt export_table[];
command_fn export_run;

/* ---- stack_export_cmds.c ---- */
struct export_stop_opts {
	bool force;
};
extern const struct opt export_stop_table[];
command_fn export_list, export_start, export_stop, export_restart;

/* ---- stat_cmds.c ---- */
struct stat_opts {
	uint64_t interval_ns;
	uint32_t count;
};
extern const struct opt stat_table[], top_table[];
command_fn stat_run, stat_top;

#endif
