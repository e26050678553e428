/* set_help - the keys that `cache set` and `peer set` take, for their --help.
 *
 * Contract: prints to stdout. Asks xseg-host, which has the tables of all kinds; without that
 * program it names the manual pages.
 */
#ifndef TOOLS_XSEG_SET_HELP_H
#define TOOLS_XSEG_SET_HELP_H

void set_help_cache(void);
void set_help_peer(void);

#endif
