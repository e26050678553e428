#!/bin/bash
# cache_shares.sh - the shares of single volumes in a cache, through the tool: a noisy neighbour and
# a quiet volume.
# tags: san
# timeout: 240
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 224M
[peer store]
kind = memd
memory = 128M
[peer cached]
threads = 2
downstream = store
memory = 32M
dirty_age = 1h
[peer volumed]
downstream = cached
END

bench()	# VOLUME OPTION...
{
	local volume=$1
	shift
	xbench --volume="$volume" --direct=never --iodepth=16 "$@" --output-format=json
}

has_at_most()	# VOLUME BYTES
{
	[ "$(volume_status "$1" .used_bytes)" -le "$2" ]
}

noise()	# SENTENCE: far more than the cache holds, read and written
{
	expect_json "$no_errors" "$1: noisy is read all over" \
		bench noisy --rw=randread --bs=16k --number_ios=3000
	expect_json "$no_errors" "and written" \
		bench noisy --rw=randwrite --bs=16k --number_ios=3000 --verify=crc32c
}

mib=1048576
t "the stack comes up" xseg up stack.conf
t "a quiet volume" xseg volume create quiet --size 8M
t "and a noisy one are made" xseg volume create noisy --size 64M
expect_json "$no_errors" "quiet is written" bench quiet --rw=write --bs=64k --size=8M
t "and flushed" xseg cache flush cached

# ---- minima ----

t "quiet has 8M for sure" xseg cache set cached min=8M --volume quiet
expect_json '.min == "8M" and .max == "0" and .min_bytes == 8388608 and .max_bytes == 0' "cache get shows it" \
	xseg --json cache get cached --volume quiet
expect_json '.volumes[] | select(.name == "quiet") | .min_bytes == 8388608 and .max_bytes == 0 and .used_bytes == 8388608' \
	"cache status, too" xseg --json cache status cached
noise "beside a minimum"
is "quiet has lost nothing" "$(volume_status quiet .used_bytes)" $((8 * mib))
misses=$(volume_status quiet '.misses + .partial + .bypassed')
expect_json "$no_errors" "quiet is read" bench quiet --rw=randread --bs=4k --number_ios=4000
is "and each read is a hit" "$(volume_status quiet '.misses + .partial + .bypassed')" "$misses"
t "the status has a page for people" xseg cache status cached --volume quiet

t "the cache is killed" xseg peer kill cached --force
t "and is back" wait_for 60 state_is cached running
noise "beside a minimum that outlived the cache's process"
is "quiet has lost nothing" "$(volume_status quiet .used_bytes)" $((8 * mib))

expect_err 4 'min=24M cannot be promised: .* ask for [0-9]+M at most' \
	"more than is left is refused" \
	xseg cache set cached min=24M --volume noisy
expect_err 4 'memory=8M is too little for the minima' \
	"so is a cache that is too small for what is promised" \
	xseg cache set cached memory=8M
expect_err 2 'is not a size' "what is no size is wrong usage" \
	xseg cache set cached min=some --volume quiet
expect_err 2 'would be above max' "so is a minimum above the maximum" \
	xseg cache set cached min=8M max=4M --volume quiet

t "quiet has nothing for sure any more" xseg cache set cached min=0 --volume quiet
noise "beside no minimum"
t "and quiet has lost something" has_at_most quiet $((8 * mib - 1))

# ---- maxima ----

t "noisy has 6M at most" xseg cache set cached max=6M --volume noisy
t "and comes down to that" wait_for 60 has_at_most noisy $((6 * mib))
noise "below a maximum"
t "noisy has no more" wait_for 60 has_at_most noisy $((6 * mib))
expect_json "$no_errors" "quiet is read" bench quiet --rw=read --bs=64k --size=8M
noise "again"
is "and has all that the other may not have" "$(volume_status quiet .used_bytes)" $((8 * mib))
t "everything stops" xseg down

finish
