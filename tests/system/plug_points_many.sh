#!/bin/bash
# plug_points_many.sh - plug_points.sh below three upper peers, each under a verified load: volumed,
# and two relays beside it.
# tags: long
# timeout: 900
UPPERS=volumed,kv,web
. "$(dirname "$0")/plug_points.sh"
