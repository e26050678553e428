/* export_text - the exports of a stack as JSON, as a table and as lines of `xseg status`.
 *
 * Contract: functions over a snapshot; they look into /proc for what was replaced.
 */
#ifndef TOOLS_XSEG_EXPORT_TEXT_H
#define TOOLS_XSEG_EXPORT_TEXT_H

#include <jansson.h>

#include "tools/xseg/base/exported.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/tool.h"

json_t *export_text_json(const struct exported_all *all);
struct out_table *export_text_table(const struct exported_all *all);
/* Notes each server whose program or library was replaced since, with the command that starts it
 * anew. */
void export_text_note_replaced(const struct tool *t, const struct exported_all *all);
/* Of export_text_json()'s array; nothing if that is empty. */
void export_text_print(const json_t *exports);

#endif
