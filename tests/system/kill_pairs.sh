#!/bin/bash
# kill_pairs.sh - the real processes die at each kill point, and each time their successors die at
# each point of their recovery; then at points at random. Nothing is lost, no client and no command
# sees an error, nothing is leaked.
# tags: long
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/kill_points.sh"

come_up filed "dir = $TMP/objects
files = 16"
remove_one
run pairs volumed cached filed
go_down
stores_have_it

come_up memd "memory = 100M"
run pairs memd
go_down
finish
