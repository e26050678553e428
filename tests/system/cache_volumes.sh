#!/bin/bash
# cache_volumes.sh - settings and counters of single volumes in a cache, through the tool.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 160M
[peer store]
kind = memd
memory = 96M
[peer cached]
downstream = store
memory = 32M
dirty_age = 1h
threads = 2
[peer volumed]
downstream = cached
END

bench()	# VOLUME OPTION...
{
	local volume=$1
	shift
	xbench --volume="$volume" --direct=never --bs=4k --iodepth=16 "$@" --output-format=json
}

t "the stack comes up" xseg up stack.conf
for volume in a b c; do
	t "volume $volume is made" xseg volume create $volume --size 24M
done

# ---- counters ----

expect_json "$no_errors" "a is written" bench a --rw=randwrite --number_ios=1000
expect_json "$no_errors" "b is read" bench b --rw=randread --number_ios=500
expect_json '.name == "a" and .writes == 1000 and .write_bytes == 4096000 and .dirty_bytes > 0 and .dirty_bytes <= .used_bytes' \
	"a's counters say so" xseg --json cache status cached --volume a
expect_json '.reads == 500 and .hits + .misses + .partial + .bypassed == 500 and .dirty_bytes == 0' "and b's" \
	xseg --json cache status --volume b
expect_json '.policy == "write-back" and .policy_from == "cache" and .state == "running" and .draining == null' \
	"a volume follows the cache" xseg --json cache status cached --volume c
expect_json '([.volumes[].name] | sort) == ["a", "b"] and (.volumes[] | has("id", "policy", "used_bytes", "dirty_bytes", "min_bytes", "max_bytes"))' \
	"the cache's status lists the volumes that it has seen" xseg --json cache status
expect_json '([.volumes[].dirty_bytes] | add) == .dirty_bytes and
	(.used_bytes - ([.volumes[].used_bytes] | add) | . >= 0 and . <= 8392704)' \
	"whose sums are the cache's, but for the catalogue" xseg --json cache status
expect_json '.caches[0] | .writes >= 1000 and .reads >= 500' "what its threads have counted is added up" xseg --json stat
t "the status of a volume has a page for people" xseg cache status cached --volume a
expect_exit 4 "a volume that is not there is refused" xseg cache status cached --volume nothing

# reads_of VOLUME: what a fifth of a second shows of it, a second
reads_of()
{
	xseg stat --interval 200ms --count 1 | awk -v volume="$1" '/^VOLUME/ { here = 1 }
		here && $1 == volume { print int($2) }'
}

# Some, but fewer than were counted before: a loaded machine has fewer than the load wants.
is_a_rate()
{
	local reads
	reads=$(reads_of b)
	echo "reads a second: $reads; of the load: $(tail -n 3 load.log)"
	[ "$reads" -ge 1 ] && [ "$reads" -le 5000 ]
}

expect_json "$no_errors" "b has many reads" bench b --rw=randread --number_ios=50000
start load xbench --volume=b --direct=never --rw=randread --rate_iops=500 --runtime=10m
t "an interval that is shorter shows reads a second, not what it has counted" wait_for 60 is_a_rate
kill "$started"
wait "$started"

# ---- policies ----

t "a gets a policy of its own" xseg cache set cached policy=write-through --volume a
t "what was dirty of it is flushed" wait_for 60 is_clean a
expect_json '.policy == "write-through"' "cache get shows it" \
	xseg --json cache get cached --volume a
expect_json '.policy_in_force == "write-through"' "which is in force" \
	xseg --json cache get cached --volume a
expect_json '.policy == "" and .policy_in_force == "write-back"' \
	"and of another volume, that it has none, and which holds for it" \
	xseg --json cache get cached --volume b
expect_json '.policy == "write-through" and .policy_from == "volume"' "the status, too" \
	xseg --json cache status cached --volume a
expect_json "$no_errors" "a is written through" bench a --rw=randwrite --number_ios=200
expect_json "$no_errors" "b is written back" bench b --rw=randwrite --number_ios=200
is "so nothing of a is dirty" "$(volume_status a .dirty_bytes)" 0
is "and b is" "$(volume_status b '.dirty_bytes > 0')" true
expect_exit 2 "an unknown policy is wrong usage" xseg cache set cached policy=fast --volume a
expect_err 2 "no setting 'dirty_age'" "an option of the whole cache, too" \
	xseg cache set cached dirty_age=1s --volume a
expect_exit 4 "settings need a volume that is there" xseg cache set cached policy=write-back \
	--volume nothing
writes=$(volume_status a .writes)
t "the cache is killed" xseg peer kill cached --force
t "and is back" wait_for 60 state_is cached running
expect_json '.policy == "write-through"' "with the volume's policy" \
	xseg --json cache get cached --volume a
is "and its counters" "$(volume_status a .writes)" "$writes"
t "a follows the cache again" xseg cache set cached policy= --volume a
expect_json '.policy == "write-back" and .policy_from == "cache"' "as its status says" \
	xseg --json cache status cached --volume a

# promises COMMAND...: what it says that holds of data acknowledged
promises()
{
	"$@" | sed -n 's/^.* write-through: data acknowledged is in store, too//p'
}

t "the whole cache writes through" xseg cache set cached policy=write-through
t "but for b" xseg cache set cached policy=write-back --volume b
t "the rest gets to the store" wait_for 60 json_of '.state == "running"' xseg --json cache status cached
ram="is in RAM only until flushed"
is "who looks at the stack is told of the volume whose data is not in the store" \
	"$(promises xseg status)" "; that of volume b $ram"
is "and who looks at the cache" "$(promises xseg cache status)" "; that of volume b $ram"
t "c writes back, too" xseg cache set cached policy=write-back --volume c
is "several are counted" "$(promises xseg status)" "; that of 2 volumes $ram"
expect_json '.caches[0] | .answers and .policy == "write-through"' "JSON says whose word that is" xseg --json status
t "b follows the cache again" xseg cache set cached policy= --volume b
t "and c" xseg cache set cached policy= --volume c
is "then it holds of all" "$(promises xseg status)$(promises xseg cache status)" ""
t "the cache writes back" xseg cache set cached policy=write-back

# ---- volumes that go ----

t "c gets a policy" xseg cache set cached policy=pass-through --volume c
t "c is removed" xseg volume remove c
t "another c is made" xseg volume create c --size 24M
expect_json '.policy == ""' "the settings of the old one are not its own" \
	xseg --json cache get cached --volume c
t "everything stops" xseg down

# ---- volumes of another volumed ----

cat >two.conf <<END
[segment]
memory = 160M
[peer store]
kind = memd
memory = 32M
[peer cached]
downstream = store
memory = 8M
[peer volumed]
downstream = cached
[peer store2]
kind = memd
memory = 32M
[peer spare]
kind = cached
memory = 4M
[peer other]
kind = volumed
downstream = store2
END

t "a stack with two volumeds comes up" xseg up two.conf
t "one makes a volume" xseg volume create a --size 24M --volumed volumed
t "and the other" xseg volume create b --size 24M --volumed other
is "which has the same id" "$(xseg --json volume info b --volumed other | jq .id)" \
	"$(xseg --json volume info a --volumed volumed | jq .id)"
t "the first has a policy" xseg cache set cached policy=write-through --volume a --volumed volumed
for words in "set policy=write-back" get status flush; do
	read -r word setting <<<"$words"
	expect_err 4 "volume b is of other, which does not send through cached, but volumed does" \
		"$word is not about the volume of a volumed that is not above the cache" \
		xseg cache "$word" cached ${setting:+"$setting"} --volume b --volumed other
done
t "a cache off the path is set for volumes that it may have" \
	xseg cache set spare policy=write-around --volume b --volumed other
t "one of the same name is another" xseg volume create a --size 24M --volumed other
t "the first is flushed" xseg volume flush a --volumed volumed
expect_json '[.volumes[] | select(.name == "a") | [.volumed, .flushes]] | sort == [["other", 0], ["volumed", 1]]' \
	"and only that is counted for it" xseg --json stat
is "as the table says, too" "$(xseg stat | sed -n 's/^\([a-z]*\/a\)  .*/\1/p' | sort | xargs)" "other/a volumed/a"
expect_err 4 "'xseg( -s [^ ]*)? volume list --volumed other' shows" \
	"what is said to show the volumes does that, too" xseg volume info nothing --volumed other
expect_err 2 "several volumeds, .*; 'xseg peer list' shows them, --volumed=NAME chooses one" \
	"an export says how one is named" xseg export a --nbd x.sock
t "the second is removed" xseg volume remove b --volumed other
expect_json '.policy == "write-through"' "which the first one's policy survives" \
	xseg --json cache get cached --volume a --volumed volumed
t "the other makes another" xseg volume create c --size 24M --volumed other
t "and puts the cache that is off the path into its own" xseg plug spare --above store2 --below other
expect_json '.policy == ""' "which has forgotten the removed one's" \
	xseg --json cache get spare --volume c --volumed other
t "both stop" xseg down

finish
