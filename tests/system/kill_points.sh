#!/bin/bash
# kill_points.sh - the real processes die at each kill point under verified load, each once, and at
# points of their recovery. The supervisor starts them again, nothing is lost, no client and no
# command sees an error, nothing is leaked.
#
# Each kind of peer goes through its points by itself, so peers die together as well as apart. A
# point that kills no peer fails, and so does one that is in none of the lists.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/kill_points.sh"

every_point_is_in_a_list

come_up filed "dir = $TMP/objects
files = 16"
remove_one
run each volumed cached filed
sweep volumed cached filed
go_down
stores_have_it

come_up memd "memory = 100M"
run each memd
go_down
finish
