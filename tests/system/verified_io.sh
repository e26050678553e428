#!/bin/bash
# verified_io.sh - verified random I/O through volumed, cached and a store, while the cache is much
# smaller than the volume.
#
# All policies, both stores, 1, 2 and 4 threads, each peer in its own process and all in one. Then
# everything is stopped and started again, and acknowledged data is read back.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed memd jq

# of each load: so many requests of each job, or so long
much=(--number_ios=100)
[ -z "$LONG" ] || much=(--runtime=20s)

# stack STORE POLICY THREADS TOGETHER: writes stack.conf
stack()
{
	local store=$1 policy=$2 threads=$3 together=$4

	cat >stack.conf <<-END
	[segment]
	name = $XSEG_SEGMENT
	memory = 320M

	[peer store]
	kind = $store
	threads = $threads
	$([ "$store" = filed ] && echo "dir = $TMP/objects" || echo "memory = 160M")

	[peer cached]
	downstream = store
	memory = 16M
	objects = 40
	policy = $policy
	threads = $threads

	[peer volumed]
	downstream = cached
	threads = $threads
	END
	[ "$together" = no ] || printf '\n[run]\ntogether = volumed cached store\n' >>stack.conf
}

verify()
{
	xbench --volume=vol --data=$data --direct=$direct --rw=randrw \
		--bsrange=512-256k --iodepth=16 --numjobs=$jobs --fsync=40 \
		--verify=crc32c --verify_state="$TMP/state" --randseed=$RANDOM \
		--output-format=json "$@"
}


# ThreadSanitizer does not see what another process has put in order: under it all peers are threads
# of one; and by loan there is one job, as a page that one has given may be lent to another.
run()	# STORE POLICY THREADS TOGETHER
{
	[ "${SAN:-}" != tsan ] || set -- "$1" "$2" "$3" yes
	local what="$1, $2, $3 threads${4:+, together=$4}"

	data=loan jobs=4 direct=never
	[ "${SAN:-}" != tsan ] || jobs=1
	rm -rf objects && mkdir objects
	stack "$1" "$2" "$3" "$4"
	t "$what: the stack comes up" xseg up stack.conf
	t "$what: a volume is made" xseg volume create vol --size 100M
	expect_json "$no_errors" "$what: verified I/O of 512 bytes to 256 KiB has no error" \
		verify "${much[@]}"
	data=direct
	expect_json "$no_errors" "$what: and reading directly" verify "${much[@]}"
	data=copy jobs=4 direct=auto
	expect_json "$no_errors" "$what: and by copy, reading without requests where it pays" \
		verify "${much[@]}"
	direct=never
	expect_json "$no_errors" "$what: and by copy, with requests alone" \
		verify "${much[@]}"
	t "$what: everything stops" xseg down
	[ "$1" = filed ] || return
	t "$what: and starts again" xseg up stack.conf
	expect_json "$no_errors" "$what: what was acknowledged reads back after all was stopped" \
		verify --verify_only
	t "$what: everything stops again" xseg down
}

run memd write-back 1 no
run filed write-back 1 yes
run filed write-through 2 no
run memd write-through 4 yes
run memd write-around 2 yes
run filed pass-through 1 yes
if [ -n "$LONG" ]; then
	for store in memd filed; do
		for policy in write-back write-through write-around pass-through; do
			for threads in 1 2 4; do
				run $store $policy $threads yes
				run $store $policy $threads no
			done
		done
	done
fi

finish
