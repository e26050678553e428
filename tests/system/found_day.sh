#!/bin/bash
# found_day.sh - messages that a user of one day sees. Each was once unclear or wrong.
#
# Other tests have messages of the same kind:
#
#   store_errors.sh             a store that fails: the reason, and the time of the first failure
#   full_store.sh               a full disk
#   space.sh                    counts of volumes, while some are being removed
#   config.sh                   too little memory; all errors of a stack file
#   messages.sh, strangers.sh   the segment of another user
#   named_once.sh               a name stands once in a line; each error as JSON
#   xbench.sh                   the line of an interval; options of fio
#   deps.sh                     little room in /dev/shm; make deps without root
#   tidy/install.sh, readme.sh  no file is left after an uninstall
#   manual_examples.sh          the examples of the manual pages
#
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg

mkdir store
cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 96M

[peer filed]
dir = $TMP/store

[peer cached]
downstream = filed
memory = 16M

[peer volumed]
downstream = cached
END
t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M

# ---- what a person types ----

expect_err 2 "did you mean 'volume remove'" "other tools say delete" xseg volume delete disk
expect_err 2 "did you mean 'volume remove'" "or rm" xseg rm disk
expect_err 2 "did you mean 'volume list'" "ls is a list" xseg ls
expect_err 2 "did you mean 'volume rename'" "mv is a new name" xseg volume mv disk other
expect_err 2 "did you mean 'volume copy'" "cp is a copy" xseg volume cp disk other
expect_err 2 "did you mean 'kv put'" "a value is set" xseg kv set key
expect_err 2 "did you mean 'volume remove'" "delete alone removes no segment" xseg delete disk
expect_err 2 "did you mean 'peer restart'" "a peer is restarted" xseg restart cached
expect_err 2 "did you mean 'volume list'" "volumes are a list" xseg volumes
expect_err 2 "did you mean 'volume list'" "what volumes take is in it" xseg du disk
expect_err 2 "did you mean 'volume rename'" "a name alone is a volume's" xseg mv disk other
expect_err 2 "did you mean 'plug'" "a cache is attached" xseg cache attach cached
expect_err 2 "did you mean 'config check'" "a file is validated" xseg config validate stack.conf
expect_err 2 "did you mean 'cache set'" "a cache has a mode" xseg cache mode cached write-through
expect_err 2 "did you mean 'status'" "show shows the stack" xseg show
expect_err 2 "give the NAME of a peer, --all or --replaced" "restart needs a name" xseg peer restart
expect_err 2 "set it in the stack file, and 'xseg reload'" "what is not live is in the file" \
	xseg peer set filed iodepth=3
expect_err 4 "add its section to the file, and 'xseg reload' starts it" "as is a new peer" \
	xseg peer start other
printf '[segment]\n' >empty.conf
expect_err 2 "it has no .peer NAME. section" "a file without peers has one error" xseg up empty.conf
expect_err 4 "is a directory|Is a directory" "a directory is no image" xseg volume import disk "$TMP"
expect_err 4 "^xseg: volume import: there is no volume .none.; add --create to make it" \
	"an import of a new volume names --create" xseg volume import none "$root/README.md"
expect_err 4 "No such file" "a directory that is missing has the same code" \
	xseg volume export disk "$TMP/none/file"
expect_err 4 "/none/file: No such file" "by the name that was typed" \
	xseg volume export disk "$TMP/none/file"
t "objects that are not there" xseg volume copy disk copy
expect_json '[.peers[].errors] | add == 0' "are no errors" xseg --json stat
t "the copy goes" xseg volume remove copy
expect_err 4 "none/s: No such file or directory; make its directory" "nor is a missing directory" \
	xseg export disk --nbd "$TMP/none/s"
expect_err 2 "serves on a Unix socket and on no port" "a port is no socket" \
	xseg export disk --nbd 10809
expect_err 2 "serves on a Unix socket and on no port" "nor is a host" \
	xseg export disk --nbd localhost:10809

expect_err 2 "^xseg: cache set: 'policy' is not KEY=VALUE without blanks; 'xseg cache set --help'" \
	"a setting without a value is named by its command" xseg cache set cached policy
expect_err 4 "^xseg: cache set: there is no volume 'none'; 'xseg volume list' shows" \
	"so is a volume that is not there" xseg cache set cached min=4M --volume none
expect_err 2 "did you mean 'help volume'" "help may stand behind" xseg volume help
expect_err 2 "did you mean 'volume set'" "a limit is a volume's" xseg qos disk
expect_err 4 "filed serves only its cache, cached; send to that" "no load goes past the cache" \
	xbench --target=filed --rw=read
xseg --json volume create large --size 64T >out.txt 2>note.txt
is "a warning is JSON, too" "$? $(jq -c '[.note.what, (.note | has("why") and has("next"))]' note.txt)" \
	'0 ["volume create large",true]'
t "that volume goes" xseg volume remove large

refused_at_once()
{
	xseg create --memory 64M >out.txt 2>err.txt
	[ $? -eq 4 ] && [ ! -s out.txt ] && grep -q 'exists already' err.txt
}
t "a name that is taken is refused before a price is told" refused_at_once

is "a volume's policy of its own" "$(xseg cache set cached policy=write-through --volume disk)" \
	"cache cached, volume disk: set policy=write-through"
is "goes again" "$(xseg cache set cached policy= --volume disk)" \
	"cache cached, volume disk: policy follows the cache"
is "beside a setting that stays" "$(xseg cache set cached policy= min=4M --volume disk)" \
	"cache cached, volume disk: set min=4M; policy follows the cache"
expect_err 1 "memory=1.0T needs 1024G more than the cache has, and the segment has [0-9.]+M left" \
	"sizes have the unit that a person takes" xseg cache set cached memory=1T

# shellcheck disable=SC2046
is "what volume get prints, volume set takes" \
	"$(xseg volume set disk iops=500 burst=2s >/dev/null && xseg volume set disk $(xseg volume get disk))" \
	"volume disk: limits 500 requests/s, burst 2.0s"
# shellcheck disable=SC2046
is "and without limits, too" \
	"$(xseg volume set disk iops=none >/dev/null && xseg volume set disk $(xseg volume get disk))" \
	"volume disk: limits none"
cp stack.conf $'st\xe4ck.conf'
expect_json '.file == "st\ufffdck.conf" and .ok' "a file's name that is not UTF-8 is in JSON, too" \
	xseg --json config check $'st\xe4ck.conf'

expect_json '.objects == 256 and .requests == 128 and .dirty_high == 70 and .dirty_low == 60' \
	"what is counted is a number in JSON, and the one in force" \
	xseg --json cache get cached

expect_json '.fixed == ["objects", "requests"]' "the keys that cannot be set are told" \
	xseg --json cache get cached
is "and stand apart" "$(xseg cache get cached | sed '1,/^# not by .cache set./d' | paste -sd ' ')" \
	"objects=256 requests=128"
t "data is written" xbench --volume=disk --rw=write --bs=64k --size=4M
t "and read without requests" xbench --volume=disk --rw=randread --size=4M --number_ios=5000 --data=direct
is "the hits of 'cache status' are those of 'stat'" \
	"$(xseg cache status cached | sed -n 's/^directly .* with them \(.*\) hits$/\1/p')" \
	"$(xseg stat | sed -n '/^CACHE/,/^VOLUME/s/^cached *\([0-9.]*%\) .*/\1/p')"
t "a part is beside its whole" eval \
	"xseg cache status cached | grep -qE '^looked up [0-9]+ reads: [0-9]+ hits \(.*\), [0-9]+ misses, '"

t "each line of counters ends with its unit" eval \
	"[ \$(xseg cache status cached | grep -cE '^(waited|bypassed| by) ') -ge 1 ] &&
	! xseg cache status cached | grep -E '^(waited|bypassed| by) ' |
		grep -vE ' (buckets|reads|times; a request may wait several times)\$'"

# ---- a program with several queues ----

xbench --volume=disk --rw=randread --bs=4k --numjobs=3 --rate_iops=1000 --runtime=1h --status-interval=200ms \
	>out.txt 2>lines.txt &
load=$!
three_queues()
{
	[ "$(xseg --json peer list | jq '[.[] | select(.kind == "client")] | length')" -ge 3 ]
}
t "a program has three queues" wait_for 60 three_queues
is "they share a line" "$(xseg peer list | awk '$2 == "client" { print $6 }')" 3
t "each has one of its own with --all" eval \
	"[ \$(xseg peer list --all | grep -c ' client ') -ge 3 ]"
is "it is one client" "$(xseg --json clients | jq -c 'map([.program, .queues])') $(
	xseg --json list | jq '.[] | select(.name == env.XSEG_SEGMENT).clients')" '[["xbench",3]] 1'
t "a line of an interval has the longest I/O" wait_for 60 grep -qE 'p99=[0-9.]+[num]?s +max=[0-9.]+[num]?s' lines.txt
too_wide()
{
	local words
	for words in status "volume list" "volume info disk" "cache status" "cache get cached" stat \
		"peer list" "peer list --all" info clients "export list" check; do
		# shellcheck disable=SC2086
		xseg $words | grep -vF "$TMP" | awk -v w="$words" 'length($0) > 100 { print w ": " $0 }'
	done
}
is "nothing that is shown is wider than 100 columns" "$(too_wide)" ""
kill $load
wait $load
is "SIGTERM ends it" "$?" 3
t "with its report" grep -qE '^sum: IOPS=[0-9]+, .*, failed=0, interrupted$' out.txt
t "whose first line is the plan" grep -q '^xbench: volume disk, rw=randread, bs=4k, ' out.txt
t "and without a line of nothing at its end" eval "! tail -n 1 lines.txt | grep -q ' 0 IOPS'"
expect_err 2 "option of fio: use --volume=VOL" "fio's word for a volume" \
	xbench --filename=disk --rw=randread
expect_err 2 "did you mean --rate" "an option that is nearly right" xbench --volume=disk --rte=1M

# ---- errors as JSON ----

expect_err 4 '^\{"error":\{"code":4,"what":"volume info","why":"there is no volume .none.","next":".*shows the volumes"\}\}$' \
	"an error is JSON, too" xseg --json volume info none
expect_err 2 '^\{"error":\{"code":2,"what":"unknown command .*","why":null,"next":".*"\}\}$' \
	"one of the command line as well" xseg --json nonsense
expect_err 4 "^xseg: volume info: there is no volume 'none'; " "without --json it is a line" \
	xseg volume info none

# ---- killed twice ----

t "the cache is killed" xseg peer kill cached
killed_again()
{
	xseg peer kill cached 2>err.txt || grep -q 'is being started again' err.txt
}
t "at once again: it runs, or is being started" killed_again
t "it serves again" wait_for 60 state_is cached running
t "the log names the command" grep -qE \
	"xseg: process [0-9]+ of cached is killed by 'xseg peer kill'\$" "$TMP/xseg-$XSEG_SEGMENT.log"
t "and no lack of memory" eval "! grep -q 'memory ran out' '$TMP/xseg-$XSEG_SEGMENT.log'"

# ---- a store that is stopped ----

t "the store is stopped under the cache" xseg peer stop filed --force
is "status says once what to do" "$(xseg status | grep -E '^(store|files)')" \
	"store       filed: stopped; 'xseg peer start filed' starts it"
t "which is right" xseg peer start filed
t "and its room is known again" wait_for 60 eval "xseg status | grep -qE '^store +filed: .* free \('"

# ---- off the path ----

t "the cache leaves the path" xseg unplug cached
is "status has the chain without it" "$(xseg status | grep '^chain')" "chain       volumed -> filed"
is "and says where it is" "$(xseg status | grep '^off path')" "off path    cached"
expect_json '.chains == [["volumed", "filed"]] and .off_path == ["cached"]' "also as JSON" \
	xseg --json status
t "its volumes promise nothing" eval \
	"xseg cache status cached --volume disk | grep -q \"holds again after 'xseg\""
is "and their state says so" "$(xseg cache status cached --volume disk | head -1)" \
	"volume    disk, in cache cached, off the path"
is "counters of one line have commas" "$(xseg cache status | grep -cE '^ by .* [0-9]+ [a-z]+ [0-9]')" 0
t "it is on the path again" xseg plug cached
is "with the chain" "$(xseg status | grep '^chain')" "chain       volumed -> cached -> filed"

# ---- a segment whose file is gone ----

rm "/dev/shm/xseg.$XSEG_SEGMENT"
t "list shows a stack whose segment's file was removed" eval \
	"xseg list | grep -qE '^$XSEG_SEGMENT +removed .*its file was removed, the stack runs on'"
expect_json '.[] | select(.name == env.XSEG_SEGMENT) | .state == "removed" and .supervisor_pid > 0' \
	"also as JSON" xseg --json list
expect_err 4 "its file was removed from /dev/shm, and its stack runs on; 'kill [0-9]+' stops that" \
	"up says so, too" xseg up stack.conf
kill "$(xseg --json list | jq '.[] | select(.name == env.XSEG_SEGMENT) | .supervisor_pid')"
gone()
{
	! xseg list | grep -q "^$XSEG_SEGMENT "
}
t "it stops in order" wait_for 60 gone

# ---- in the foreground ----

start front xseg up stack.conf --foreground
front=$started
t "a stack comes up in the foreground" wait_for 60 grep -q "all 3 peers serve; 'xseg status' shows them" front.log
kill -INT "$front"
wait "$front"
is "Ctrl-C is a good end" "$?" 0
t "and what is left is told" grep -q \
	"has stopped; the segment stays, and 'xseg destroy' removes it" front.log
t "which it is" xseg destroy

# ---- the only segment of a machine ----

# In a /dev/shm of its own.
alone()
{
	unshare --mount bash -c '
		mount -t tmpfs none /dev/shm || exit 1
		unset XSEG_SEGMENT
		"$@"' - "$@"
}

only_one()
{
	xseg -s first create --memory 32M --quiet && xseg --json info | jq -e ".name == \"first\"" &&
		xseg -s second create --memory 32M --quiet && ! xseg info 2>err.txt &&
		grep -q "segment xseg: there is none of that name, but there are: .*first" err.txt &&
		xseg create --memory 32M --quiet && xseg --json info | jq -e ".name == \"xseg\""
}
export -f only_one
if alone true 2>/dev/null; then
	t "the only segment need not be named, and of several the names are told" alone only_one
else
	skip "the only segment need not be named" "no mount namespace of one's own"
fi
finish
