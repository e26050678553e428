/* values_text - the figures of a kvd, as text for people.
 *
 * Contract: writes to stdout, and changes nothing. Scripts read the JSON instead (kv_cmds.c).
 */
#ifndef TOOLS_XSEG_VALUES_TEXT_H
#define TOOLS_XSEG_VALUES_TEXT_H

#include <jansson.h>

/* `info` has kvd's answer to "info", each line a member of that name. */
void values_text_print(const json_t *info);

#endif
