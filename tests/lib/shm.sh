#!/bin/sh
# shm.sh - says before long work that memory does not suffice for it: what is free in /dev/shm, or on
# the whole machine.
#
# Usage: tests/lib/shm.sh MIB GOAL     exit 1, with a message that names the goal, if less is free
set -eu
need=$1 goal=$2

# require MIB PLACE ADVICE
require()
{
	[ "$1" -lt "$need" ] || return 0
	echo "$goal needs $need MiB of shared memory, and $1 MiB are free $2: $3" >&2
	exit 1
}

shm=$(df --output=avail -m /dev/shm | tail -n 1)
require "$((shm))" "in /dev/shm" "enlarge it (as root 'mount -o remount,size=2G /dev/shm'; of a\
 container 'docker run --shm-size=2g')"
require "$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)" "on this machine" \
	"end something that takes memory"
