# uppers.sh - several peers that send to one store, each under a verified load of its own, in the
# tests of plugging. Beside volumed these are relays (tests/tools/relay.c), started by hand.
#
#	. "$root/tests/lib/uppers.sh"	# after system.sh
#	relay_begin kv store
#	begin_loads volumed,kv
#	xseg plug cached --above store --below volumed,kv
#	end_loads "no load saw that"
#
# The cache is called `cached`, the store `store`, and the volume of volumed's load `vol`.

# relay_begin NAME DOWNSTREAM: runs until it is stopped in order; begins again when it was killed
relay_begin()
{
	start "relay.$1" relay_lives "$1" "$2"
}

relay_lives()
{
	until relay --name "$1" --downstream "$2"; do
		echo "$1 begins again"
	done
}

# all_send UPPER[,UPPER...] PEER: whether they all send there
all_send()
{
	local upper
	for upper in ${1//,/ }; do
		[ "$(path_of "$upper")" = "$2" ] || return 1
	done
}

# load_of UPPER MORE...: verified I/O through that peer
load_of()
{
	local where=(--volume=vol)
	[ "$1" = volumed ] || where=(--target="$1" --objects=6 --object_size=1M)
	shift
	xbench "${where[@]}" --rw=randrw --rwmixread=50 --bsrange=512-64k --iodepth=8 --fsync=50 \
		--opmix=trim:3,write_zeroes:3 --verify=crc32c --randseed=$RANDOM \
		--output-format=json "$@"
}

# One run after the other until the file `over` is there.
load_until_over()	# UPPER
{
	local n=0
	until [ -e over ]; do
		n=$((n + 1))
		load_of "$1" --rate_iops="$(bound 1000 0)" --runtime=1s --verify_state="$TMP/state.$1" \
			--output="load.$1.$n.json" || return
	done
}

# begin_loads UPPER[,UPPER...]
begin_loads()
{
	local upper
	rm -f over load.*.json state.*
	loads=() loaded=$1
	for upper in ${1//,/ }; do
		start "load.$upper" load_until_over "$upper"
		loads+=("$started")
	done
}

# end_loads SENTENCE: no load failed, and all that they wrote is there
end_loads()
{
	local pid status=0 upper where
	touch over
	for pid in "${loads[@]}"; do
		wait "$pid" || status=1
	done
	is "$1" $status 0
	t "and the loads say so" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' \
		load.*.json
	for upper in ${loaded//,/ }; do
		where=(--volume=vol)
		[ "$upper" = volumed ] || where=(--target="$upper" --objects=6 --object_size=1M)
		t "all that $upper acknowledged is there" xbench "${where[@]}" --rw=read --bs=64k \
			--iodepth=8 --verify=crc32c --verify_only --verify_state="$TMP/state.$upper"
	done
}
