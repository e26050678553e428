#!/bin/bash
# direct_auto.sh - clients that were not asked to read without requests where that pays, and clients
# that never do. Writes of others are seen at once, and a volume that may not be read so is read by
# requests, also if that is set meanwhile. No read is wrong while the cache is killed, leaves the
# path and enters it.
# tags: san
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/beside.sh"
need xseg xseg-host xbench volumed cached memd jq volume_load python3

seconds=${LONG:+30}
seconds=${seconds:-3}
jobs=4
# ThreadSanitizer does not see what another process has put in order
[ "${SAN:-}" != tsan ] || jobs=1

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 192M
requests = 4096
[peer memd]
memory = 64M
[peer cached]
downstream = memd
memory = 24M
[peer volumed]
downstream = cached
object_size = 256k
END

hot()	# AUTO|NEVER IOS: reads of data that the cache has
{
	xbench --volume=vol --direct="$1" --rw=randread --bs=4k --size=4M --number_ios="$2" \
		--iodepth=4 --output-format=json --output=hot.json
}

verified()	# more options
{
	xbench --volume=vol --rw=randrw --rwmixread=90 --bs=4k --iodepth=4 \
		--numjobs=$jobs --random_distribution=zipf:1.1 --fsync=500 --rate_iops="$(bound 3000 0)" --runtime=${seconds}s \
		--verify=crc32c --randseed=$RANDOM --output-format=json --output=load.json "$@"
}

requests() { counted peers volumed ops; }
direct_of_volume() { counted volumes vol direct_reads; }

ended_well()	# SENTENCE
{
	end_beside "$1"
	is_read_well "and no read was wrong meanwhile"
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 12M

# ---- with and without requests ----

t "it is written" xbench --volume=vol --rw=write --bs=64k --size=4M
t "it is read for a while" hot auto 20000
before=$(requests) direct=$(direct_of_volume)
t "hot data is read" hot auto 20000
t "by hardly any request" [ $(($(requests) - before)) -le 1000 ]
t "which xbench says" [ "$(json hot.json '.jobs[0].direct_ios')" -ge 18000 ]
xbench --volume=vol --rw=randread --bs=4k --size=4M --number_ios=20000 >hot.txt
t "for people, too, and without being asked to read so" \
	[ "$(sed -n 's/.*, read without a request=//p' hot.txt)" -ge 10000 ]
t "and counted as reads of the volume" [ $(($(direct_of_volume) - direct)) -ge 18000 ]
t "of all of which the cache says that they are hits" \
	[ "$(xseg --json stat | jq '.caches[0].hit_ratio_requests_ppm')" -gt 900000 ]
before=$(requests)
t "who is never to reads the same" hot never 5000
t "by requests" [ $(($(requests) - before)) -ge 5000 ]

for way in copy memory loop; do
	direct=$(direct_of_volume)
	volume_load "$XSEG_SEGMENT" vol 2 1 $way >load.out
	is "$way: a program of the library, which writes beside, reads nothing wrong" \
		"$(tail -n 1 load.out | sed 's/^ios=[1-9][0-9]* //')" "wrong=0 error=0 refreshed=0"
done

# ---- data that is wrong ----

# The last sector of the volume's first MiB in all copies of its newest run: saved, or replaced by
# what was saved. Its read needs no request: those before it have met its chunk.
cat >sector.py <<END
import mmap, struct, sys
what, path = sys.argv[1:]
magic, offset = (0x3176686e65627821).to_bytes(8, "little"), (1 << 20) - 512
with open("/dev/shm/xseg.$XSEG_SEGMENT", "r+b") as f:
    memory = mmap.mmap(f.fileno(), 0)
found, at = {}, memory.find(magic)
while at >= 0:
    run, target, where = struct.unpack_from("<QQQ", memory, at + 16)
    if at % 512 == 0 and where == offset:
        found.setdefault(run, []).append(at)
    at = memory.find(magic, at + 8)
places = found[max(found)]
if what == "save":
    open(path, "wb").write(memory[places[0]:places[0] + 512])
else:
    for at in places:
        memory[at:at + 512] = open(path, "rb").read()
END

written()	# STATE: the first MiB
{
	xbench --volume=vol --rw=write --bs=4k --size=1M --verify=crc32c --do_verify=no \
		--verify_state="$TMP/$1"
}

# looked_at auto|never: how many sectors of the newest run are wrong, and what they are
looked_at()
{
	xbench --volume=vol --direct="$1" --rw=read --bs=4k --size=1M --verify=crc32c --verify_only \
		--verify_state="$TMP/new" --output-format=json --output=look.json
	json look.json '"\(.jobs[0].verify_errors) \(.verify.stale + .verify.lost)"'
}

# Flushed, so that no cache copies a sector while it is changed here.
t "it is written once" written old
t "it is flushed" xseg volume flush vol
t "its last sector is saved" python3 sector.py save old.sector
t "it is written again" written new
t "it is flushed again" xseg volume flush vol
t "its last sector is saved, too" python3 sector.py save new.sector
is "what was acknowledged is there" "$(looked_at auto)" "0 0"
t "the old sector comes back" python3 sector.py put old.sector
is "a read by request finds it stale" "$(looked_at never)" "1 1"
is "and so does one without a request" "$(looked_at auto)" "1 1"
t "as most were" [ "$(json look.json '.jobs[0].direct_ios')" -ge 150 ]
printf '\0\1' | dd of=old.sector bs=1 seek=300 conv=notrunc 2>dd.err
t "it is damaged" python3 sector.py put old.sector
is "without a request it is found, too" \
	"$(looked_at auto) $(json look.json '.verify.torn')" "1 0 1"

# ---- a volume that may not ----

t "it is read for a while" hot auto 20000
t "the volume is not to be cached any more" xseg cache set cached --volume=vol policy=pass-through
before=$(requests) direct=$(direct_of_volume)
t "it is read" hot auto 5000
t "by requests" [ $(($(requests) - before)) -ge 5000 ]
is "and by nothing else" "$(($(direct_of_volume) - direct))" 0
t "it is to be cached again" xseg cache set cached --volume=vol policy=
t "it is read for a while" hot auto 60000
direct=$(direct_of_volume)
t "it is read" hot auto 20000
t "without requests" [ $(($(direct_of_volume) - direct)) -ge 10000 ]

# ---- while what is below comes and goes ----

beside true
verified
ended_well "what others write is seen at once"
beside kill_cache
verified
ended_well "nothing is wrong while the cache is killed"
beside unplug_and_plug memd
verified
ended_well "nor while it leaves the path and enters it"
verified --data=loan --runtime=1s
is_read_well "nor by loan"
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
