#!/bin/bash
# xseg_tool.sh - the admin command: the effect of each command, its refusals, its exit codes and its
# JSON.
# tags: san
# timeout: 170
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed memd jq cmp python3
export XDG_STATE_HOME=$TMP

# status_of COMMAND...: prints the exit code only
status_of()
{
	"$@" >/dev/null 2>&1 </dev/null
	echo $?
}

is_back()	# PEER GENERATION: it runs again, as another incarnation
{
	state_is "$1" running && [ "$(peer_field "$1" generation)" != "$2" ]
}

dirty_bytes()
{
	field_of dirty_bytes cache status
}

is_dirty_of()	# BYTES: so much is, or more
{
	[ "$(dirty_bytes)" -ge "$1" ]
}

# write_unflushed VOL FILE: writes the image, and is interrupted before it has met its end and flushes
write_unflushed()
{
	local import
	mkfifo feed
	exec 6<>feed
	xseg volume import "$1" - <feed >/dev/null 2>&1 &
	import=$!
	cat "$2" >&6
	wait_for 60 is_dirty_of "$(stat -c %s "$2")"
	kill -INT "$import"
	wait "$import"
	exec 6>&-
	rm feed
}

# ---- words and options ----

t "--version is answered" xseg --version
t "--help is answered" xseg --help
t "help on a command is answered" xseg help volume create
is "options of all commands may stand after help, too" \
	"$(xseg help --json)$(xseg help -s x volume create --json)$(xseg help volume --json)" \
	"$(xseg help)$(xseg help volume create)$(xseg help volume)"
is "help on help is all of it" "$(xseg help help)$(xseg help --help)" "$(xseg --help)$(xseg --help)"
is "--version may stand after a command, which is not done then" "$(xseg create --version)" \
	"$(xseg --version)"
expect_err 2 "'volume create' is given as one word; leave the quotes out" "words of a command are several" \
	xseg "volume create" x --size 1M
expect_err 2 "'xseg --help' lists" "no command is wrong usage" xseg
expect_err 2 "did you mean 'volume list'" "an unknown command suggests the nearest" xseg volume lsit
expect_err 2 "did you mean 'volume list'" "of a group that is not spelt out, too" xseg vol list
expect_err 2 "create, list, info" "half a command lists what may follow" xseg volume
expect_err 2 "--nbd is missing" "an export needs a socket" xseg export x
expect_err 2 "did you mean --memory" "an unknown option suggests the nearest" \
	xseg create --memry 64M
expect_err 2 "not a size" "a wrong size is wrong usage" xseg create --memory many
expect_err 2 "--memory is missing" "a missing option is named" xseg create
expect_err 2 "one word too many" "a word too many is wrong usage" xseg create --memory 64M now
expect_err 2 "a name is 1 to 63" "a wrong segment name is wrong usage" xseg -s .hidden info
expect_err 2 "'' is not a name" "an empty segment name, too: it is not the default" xseg -s "" info
expect_err 2 "needs a value: SIZE;" "a missing value is named by its kind" xseg create --memory
expect_err 4 "there is none of that name" "a segment that is not there is refused" xseg info

# ---- segments ----

# Files of mode 0 root may open, too, unless it does without that.
as_anyone=()
[ "$(id -u)" -ne 0 ] || as_anyone=(setpriv --bounding-set=-dac_override,-dac_read_search)
made=$XSEG_SEGMENT-umask
t "a segment is made whatever the umask is" bash -c 'umask 777; exec "$@"' - "${as_anyone[@]}" \
	xseg -s "$made" create --memory 32M
is "and has its mode" "$(stat -c %a "/dev/shm/xseg.$made")" 600
t "and is removed" xseg -s "$made" destroy

t "a dry run prints costs" xseg create --memory 64M --cache 32M --objects 100 --dry-run
expect_err 4 "none of that name" "and makes nothing" xseg info
is "which is no progress, to be left out" \
	"$(xseg --quiet create --memory 64M --dry-run)" "$(xseg create --memory 64M --dry-run)"
expect_json '.cache.metadata_bytes > 0 and .created == false and .total_bytes > .pages_bytes' \
	"the costs have a JSON form" xseg --json create --memory 64M --cache 32M \
	--objects 100 --dry-run
expect_json '.cache | .metadata_bytes == ([.metadata_bytes_by[]] | add) and .metadata_private_bytes < .metadata_bytes' \
	"the parts of a cache's tables add up" xseg --json create --memory 64M --cache 32M \
	--objects 100 --dry-run
# 40 bytes a bucket with its slot, which takes 16 where objects are half filled
expect_json '.cache | (.metadata_bytes_by | .buckets + .objects) <= .buckets * (40 - 16) + .objects * 512' "a cache of 1 GiB keeps its budget" \
	xseg --json create --memory 2G --cache 1G --objects 512 --dry-run
expect_json '.clients == {"clients": 100, "memory_bytes": 419430400, "ports": 100, "requests": 3200} and .ports == 64 and .requests == 2048' "the costs of clients as well" \
	xseg --json create --memory 1G --clients 100 --dry-run
is "that they do not fit is said" \
	"$(xseg create --memory 1G --clients 100 --dry-run | tail -n 1)" \
	"clients: 100 of 64 ports, 3200 of 2048 requests; give more --ports and --requests"
is "and that they do" \
	"$(xseg create --memory 1G --clients 100 --ports 128 --requests 5120 --dry-run 2>&1 | tail -n 1)" \
	"clients: 100 of 128 ports, 3200 of 5120 requests; peers need some as well"
expect_err 2 "--memory 32.0M is too little, 40.0M are needed \(10 clients 40.0M\); give --memory 64M, or" \
	"clients need memory" xseg create --memory 32M --clients 10 --dry-run
expect_err 2 "--memory 64.0M is too little, 106M are needed \(the cache 64.0M, its tables 2.0M, 10 clients 40.0M\); give --memory 128M, or" \
	"a message has all parts" xseg create --memory 64M --cache 64M --clients 10 --dry-run
t "its value is good" xseg --quiet create --memory 128M --cache 64M --clients 10 --dry-run
expect_err 2 "a segment has 256 at most; one 'xseg export' serves many NBD clients" \
	"and ports" xseg create --memory 32G --clients 1000 --dry-run
is "a cache of 5M costs what it will take, in steps of 2M" \
	"$(xseg --json create --memory 64M --cache 5M --objects 80 --dry-run | jq -c .cache)" \
	"$(xseg --json create --memory 64M --cache 6M --objects 80 --dry-run | jq -c .cache)"
is "and has as many objects as were asked for" \
	"$(xseg --json create --memory 64M --cache 5M --dry-run | jq .cache.objects)" 80
expect_err 2 "needed \(the cache 64.0M, its tables 2.0M\); give" "a cache larger than the memory is a wrong size" \
	xseg create --memory 64M --cache 64M --dry-run
expect_err 2 "--objects needs a cache; give its size with --cache" \
	"objects without a cache are wrong usage" \
	xseg create --memory 64M --objects 100 --dry-run
expect_err 2 "file mode" "a wrong mode is wrong usage" xseg create --memory 64M --mode rw
expect_err 2 "no group" "an unknown group is wrong usage" \
	xseg create --memory 64M --group nobody-has-this
expect_err 2 "no group" "and so is a number that no group can have" \
	xseg create --memory 64M --dry-run --group 18446744073709551615
expect_err 2 "group: it is empty" "nor is an empty one none" xseg create --memory 64M --group ""
limited()	# COMMAND...: with a limit of the size of files, in KiB
{
	(ulimit -f 1024; "$@")
}
expect_err 1 "File too large; raise ulimit -f" "a limit of the size of files is an error" \
	limited xseg --quiet create --memory 64M
printf '[segment]\nmemory = 96M\n[peer memd]\n' >limited.conf
expect_err 1 "File too large; raise ulimit -f" "of which a stack file says nothing" \
	limited xseg up limited.conf
expect_exit 4 "which leaves nothing behind" xseg destroy
t "a segment is made" xseg create --memory 64M --mode 0640 --group "$(id -g)"
is "with the mode that was asked for" "$(stat -c %a "/dev/shm/xseg.$XSEG_SEGMENT")" 640
expect_err 4 "exists already" "a second one of that name is refused" xseg create --memory 64M
expect_json ".[] | select(.name == \"$XSEG_SEGMENT\").state == \"idle\"" "list has it" \
	xseg --json list
expect_json '.memory_bytes == 67108864 and .free_pages == 16384' "info has its size" \
	xseg --json info
expect_json '.huge == "auto" and .huge_bytes <= .memory_bytes' \
	"and how much of it is in huge pages" xseg --json info
expect_json ".own_bytes == 0 and .own_huge_bytes == 0" "there is nobody who has memory of its own" \
	xseg --json info
expect_json '.ok and .state == "idle" and .problems == [] and .free_pages == 16384 and .free_requests == 2048' \
	"check finds it sound" xseg --json check
t "options may follow the words" xseg check --fix --quiet
expect_err 4 "no peer of that kind" "volumes need a volumed" xseg volume list
expect_err 4 "holds no stack file" "a peer cannot be started without a stack" xseg peer start memd
expect_err 4 "has no cache; 'xseg peer list' shows" "nor is there a cache to ask for" xseg cache \
	status
expect_err 4 "nobody: .*has no peer of that name" "nor a peer to be killed" xseg peer kill nobody
is "of nobody there is a word to people" "$(xseg peer list | cut -d ';' -f 1)" "no peers"
is "info has a page for people" \
	"$(xseg info | sed -n -E '/^(memory|requests|ports|lanes|private|bad) /{s/  +/ /;p}')" \
	"memory 64.0M: 64.0M free, 0 in arenas, 0 in pages of peers
requests 1984 of 2048 free; 64 in reserve for administration
ports 60 of 64 free; 4 in reserve for administration
lanes 0 of 512 used
private 0 in the peers' processes, 0 of it in huge pages
bad 0 wrong values were found in the segment and refused"
is "with the time when it was made" "$(xseg info | sed -n 's/^segment .*, made //p')" \
	"$(date -d "@$(field_of made_at_s info)" '+%Y-%m-%d %H:%M:%S')"
t "status works without a stack" xseg status
other=$XSEG_SEGMENT-other
t "another one has other numbers" \
	xseg -s "$other" create --memory 8M --requests 64 --ports 8 --huge never
expect_json '.requests == 64 and .ports == 8 and .huge == "never"' "as it was asked to" \
	xseg -s "$other" --json info
expect_err 2 "requests: 31 is out of range, it must be 32 to 1048576, or 0;" \
	"too few requests are a wrong size" \
	xseg -s "$other" create --memory 8M --requests 31
expect_err 2 "ports: 3 is out of range, it must be 4 to 256, or 0;" "so are too few ports" \
	xseg -s "$other" create --memory 8M --ports 3
expect_err 2 "ports: 257 .* it must be 4 to 256, or 0;" "and too many" \
	xseg -s "$other" create --memory 8M --ports 257
expect_err 2 "requests: 99999999999 .* it must be 32 to 1048576, or 0;" "however many" \
	xseg -s "$other" create --memory 8M --requests 99999999999
t "none are as many as there are without a word of it" \
	xseg -s "$other" create --dry-run --memory 8M --requests 0 --ports 0
expect_err 2 "not one of auto, never, require" "huge pages are wanted in one of three ways" \
	xseg -s "$other" create --memory 8M --huge maybe
t "it is destroyed" xseg -s "$other" destroy
if [ -z "$SAN" ]; then	# whose shadow memory no such limit leaves room for
	printf '[segment]\nmemory = 1G\n[peer memd]\n' >limited.conf
	limited()	# KIB COMMAND...: with so much address space
	{
		(ulimit -v "$1"; shift; "$@")
	}
	expect_err 1 "Cannot allocate memory; raise ulimit -v" \
		"a limit of this process does not speak against the segment" limited 65536 xseg info
	expect_err 1 "raise ulimit -v" "which is not destroyed for it" limited 65536 xseg destroy
	expect_err 1 "raise ulimit -v" "by force neither" limited 65536 xseg destroy --force
	expect_err 1 "raise ulimit -v" "another one cannot be made, and the limit is named" \
		limited 65536 xseg -s "$other" create --memory 64M
	expect_err 1 "raise ulimit -v" "nor by a stack file" limited 900000 xseg -s "$other" up \
		limited.conf
	expect_exit 4 "which leaves nothing behind" xseg -s "$other" destroy
	expect_err 1 "Cannot allocate memory; raise ulimit -v" "a peer names the limit, too" \
		limited 65536 memd
	expect_err 1 "Cannot allocate memory; raise ulimit -v" "and so does xbench" \
		limited 65536 xbench --target=memd
	few()	# FILES COMMAND...: with so many of them open
	{
		(ulimit -n "$1"; shift; exec "$@")
	}
	expect_err 1 "cannot lock .*: Too many open files; raise ulimit -n" \
		"so it is with files: of xseg" few 5 xseg volume list
	expect_err 1 "Too many open files; raise ulimit -n" "of xbench" few 4 xbench --target=memd
fi
t "an idle segment is destroyed" xseg destroy
expect_exit 4 "and is gone" xseg destroy
head -c 100000 /dev/urandom >"/dev/shm/xseg.$XSEG_SEGMENT-bad"
expect_err 1 "not a segment|half made|damaged" "a foreign file is damage" \
	xseg -s "$XSEG_SEGMENT-bad" check
is "JSON says so, too" "$(xseg -s "$XSEG_SEGMENT-bad" --json check 2>/dev/null | jq -c '[.ok, .state, (.problems | length)]')" \
	'[false,"unusable",1]'
for name in c a b; do : >"/dev/shm/xseg.$XSEG_SEGMENT-$name"; done
expect_json '[.[] | select(.state != "removed").name] | length >= 4 and . == sort' \
	"segments are listed by name" xseg --json list
rm "/dev/shm/xseg.$XSEG_SEGMENT"-[abc]
expect_json ".[] | select(.name == \"$XSEG_SEGMENT-bad\") | .state == \"unusable\" and (.reason | length > 9)" \
	"and list" xseg --json list
expect_err 4 "add --force" "and is not destroyed without --force" \
	xseg -s "$XSEG_SEGMENT-bad" destroy
t "but with --force" xseg -s "$XSEG_SEGMENT-bad" destroy --force
: >"/dev/shm/xseg.$XSEG_SEGMENT-bad"
expect_err 1 "half made, and its maker is dead" "what a dead maker left is told" \
	xseg -s "$XSEG_SEGMENT-bad" check
hold_control()	# FILE: as who makes that segment does
{
	exec python3 -c 'import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))	# F_OFD_SETLK
print("held", flush=True)
time.sleep(3600)' "$1"
}
printf '[segment]\nmemory = 8M\n[peer memd]\nmemory = 1M\n' >second.conf
start maker hold_control "/dev/shm/xseg.$XSEG_SEGMENT-bad"
t "one that is being made" wait_for 60 grep -q held maker.log
expect_err 4 "is being made; wait for that" "is not brought up a second time" \
	xseg -s "$XSEG_SEGMENT-bad" up second.conf
expect_err 4 "is being made; wait for that" "which is no failure of who looks, either" \
	xseg -s "$XSEG_SEGMENT-bad" status
kill -KILL "$started"
wait "$started" 2>/dev/null
t "and removed" xseg -s "$XSEG_SEGMENT-bad" destroy
mkfifo "/dev/shm/xseg.$XSEG_SEGMENT-bad"
expect_err 1 "not a segment: .* is not a regular file; remove it with" "a FIFO is none" \
	xseg -s "$XSEG_SEGMENT-bad" check
t "and is removed, and nobody waits for who writes to it" \
	timeout 60 xseg -s "$XSEG_SEGMENT-bad" destroy --force

# ---- stacks ----

mkdir objects
cat >stack.conf <<-END
	[segment]
	memory = 128M
	[peer filed]
	kind = filed
	dir = $TMP/objects
	[peer cached]
	kind = cached
	downstream = filed
	memory = 32M
	dirty_age = 1h
	dirty_high = 99
	dirty_low = 98
	[peer volumed]
	kind = volumed
	downstream = cached
END
sed 's/dirty_age/dirty_rage/' stack.conf >bad.conf
expect_err 2 "line [0-9]+.*dirty_rage" "up names the line of an unknown key" xseg up bad.conf
sed 's/dirty_low = 98/dirty_low = 100/' stack.conf >bad.conf
expect_err 2 "line 12: peer 'cached': dirty_low=100 would be above dirty_high=99; set both" \
	"and the peer whose keys do not fit together" xseg up bad.conf
expect_err 2 "line 12: peer 'cached'" "which a check finds, too" xseg-host --check bad.conf
{ printf '[segment]\nmemory = 64M\n[peer memd]\n' && printf 'fail = write:0.01:EIO\n%.0s' {1..17}; } >bad.conf
expect_err 2 "line 20: peer 'memd': fail: more than 16 faults at a time" "or are too many" xseg up \
	bad.conf
expect_err 4 "No such file" "a stack file that is not there is refused" xseg up nothing.conf
expect_err 4 "Is a directory" "one that cannot be read is a failure" xseg up .
sed "s|dir = .*|dir = /dev/null/objects|" stack.conf >bad.conf
expect_err 2 "line 5: dir: directory /dev/null/objects cannot be opened: Not a directory; make it" \
	"a directory that cannot be is found before anything is made" xseg up bad.conf
mkdir foreign
echo "xseg-filed 99" >foreign/xseg-filed
sed "s|dir = .*|dir = $TMP/foreign|" stack.conf >bad.conf
expect_err 1 "up: filed did not start: [^:]*/foreign" "up says which peer fails and why" xseg up \
	bad.conf
expect_exit 4 "and removes the segment that it made" xseg info
cat >named.conf <<-END
	[segment]
	memory = 64M
	[peer up]
	kind = volumed
	downstream = backup
	[peer backup]
	kind = filed
	dir = $TMP/foreign
END
expect_err 1 "up: backup did not start: [^:]*/foreign" \
	"also when its name ends like another's before it" xseg up named.conf
mkdir part
cp "$(command -v xseg)" "$(command -v xseg-host)" "$(command -v memd)" part
printf '[segment]\nmemory = 64M\n[peer memd]\nmemory = 1M\n[peer volumed]\ndownstream = memd\n' \
	>part.conf
expect_err 1 "up: .*cannot start volumed \(.*/part/volumed\): No such file" \
	"or whose program is not there" part/xseg --timeout 20s up part.conf
expect_exit 4 "and removes that segment, too" xseg info
: >"/dev/shm/xseg.$XSEG_SEGMENT"
expect_err 1 "filed did not start" "up makes a segment anew whose maker died" xseg up bad.conf
expect_exit 4 "and that was one that it made" xseg info
t "up starts a stack" xseg up stack.conf
expect_json ".own_bytes > 0 and .own_huge_bytes <= .own_bytes" \
	"info says what the peers have of their own" xseg --json info
expect_err 4 "a stack that runs" "a second up is refused" xseg up stack.conf
expect_err 4 "filed did not start: directory .*/objects is in use" \
	"so is one of another segment, for what the first one's filed has" \
	xseg -s "$XSEG_SEGMENT-b" up stack.conf
expect_exit 4 "which removes its segment again" xseg -s "$XSEG_SEGMENT-b" info
is "each line of its log has a time" \
	"$(grep -vcE '^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z [a-z]+: ' "$TMP/xseg-$XSEG_SEGMENT.log")" 0
is "its log is where it should be" "$(grep -c 'volumed: serving' "$TMP/xseg-$XSEG_SEGMENT.log")" 1
expect_json 'length == 3 and all(.[]; .state == "running" and .pid > 0 and .ports == 1)' \
	"all peers run" \
	xseg --json peer list
expect_json '.[] | select(.name == "volumed") | .kind == "volumed" and .downstream == "cached" and
	.hosted_by == "volumed" and .generation > 0' "peer list has kind, downstream, host, generation" xseg --json peer list
expect_json '.supervisor.alive and .volumes == 0 and .chains == [["volumed", "cached", "filed"]] and
	.caches[0].policy == "write-back"' "status has supervisor, chain, caches" xseg --json status
is "and what is free" \
	"$(xseg --json status | jq -c '.segment | [.memory_bytes, .free_bytes, .free_requests]')" \
	"$(xseg --json info | jq -c '[.memory_bytes, .free_bytes, .free_requests]')"
t "status has a page for people" xseg status
is "which says what write-back means" "$(xseg status | grep -c 'RAM only until flushed')" 1
expect_err 4 "peers are alive|supervisor" "destroy refuses while peers are alive" xseg destroy

# ---- volumes ----

expect_err 2 "--size is missing" "a volume needs a size" xseg volume create v
expect_err 2 "at least 512" "which is not 0" xseg volume create v --size 0
expect_err 2 "multiple of 512" "of whole sectors" xseg volume create v --size 1000
expect_err 2 "a name is" "and a name without blanks" xseg volume create "a b" --size 1M
t "a volume is made" xseg volume create v --size 12M
expect_err 4 "already" "a second one of that name is refused" xseg volume create v --size 12M
expect_json '.name == "v" and .size_bytes == 12582912 and .state == "ok" and .id > 0' \
	"info shows it" \
	xseg --json volume info v
expect_json 'length == 1 and .[0].name == "v"' "list shows it" xseg --json volume list
expect_err 0 "its 1.0T are more than the .* of its store, .*; watch" \
	"one that is larger than its store is made, with a warning" xseg volume create w --size 1T
expect_err 0 "its 2.0T are more than" "and grows with one" xseg volume resize w --size 2T
is "but not as it gets smaller" "$(xseg volume resize w --size 1T --force 2>&1)" "volume w has 1.0T"
t "it is removed again" xseg volume remove w
expect_exit 4 "a volume that is not there is refused" xseg volume info w
head -c 3000100 /dev/urandom >image
truncate -s 9000100 image
printf end | dd of=image bs=1 seek=9000090 conv=notrunc status=none
t "an image is imported" xseg volume import v image
is "which is on stable storage then" "$(dirty_bytes)" 0
t "and exported" xseg volume export v out
is "as large as the volume" "$(stat -c %s out)" 12582912
t "with the same bytes" cmp -n 9000100 image out
is "and sparse" "$(($(stat -c %b out) < 12000))" 1
expect_json '.volume == "v" and .bytes == 9000100 and .data_bytes >= 3000110 and .data_bytes < 4000000 and .elapsed_ns > 0' \
	"and in JSON it is told how much that was" xseg --json volume import v image
expect_json '.volume == "v" and .bytes == 12582912 and .data_bytes < 4000000' "of an export, too" \
	xseg --json volume export v out --force
head -c 5000100 /dev/urandom >odd
t "an image of data is imported that is no multiple of 512 bytes" xseg volume import v odd
t "which is exported" xseg volume export v out --force
t "and is there" cmp -n 5000100 odd out
t "filled up with zeroes, not with what was read before" cmp -n 92 -i 5000100:0 out /dev/zero
t "an image comes from standard input" bash -c 'xseg volume import v - <image'
t "and goes to standard output" bash -c 'xseg volume export v - | cmp -n 9000100 - image'
truncate -s 12M zeroes
t "an image of holes is imported" xseg volume import v zeroes
t "an export after it" xseg volume export v out --force
t "holes overwrite data" cmp zeroes out
truncate -s 13M large
expect_err 4 "grow it" "an image larger than the volume is refused" xseg volume import v large
expect_exit 1 "from standard input its end comes too late for that" bash \
	-c 'head -c 13000000 /dev/zero | xseg volume import v -'
expect_exit 4 "an import needs its volume" xseg volume import w image
expect_err 4 "^xseg: volume import v: nothing: No such file .*; name" "an import needs its file" \
	xseg volume import v nothing
expect_err 1 "at byte 0: No space left" "an export says when its file is full, and where" \
	xseg volume export v /dev/full
t "a volume is made of a megabyte and a sector" xseg volume create w --size 1049088
t "an image as large as that comes from standard input" bash -c \
	'head -c 1049088 odd | xseg volume import w -'
t "and is there" bash -c 'xseg volume export w - | cmp - <(head -c 1049088 odd)'
expect_err 1 "longer than the volume" "one that is a byte longer is not cut" bash \
	-c 'head -c 1049089 odd | xseg volume import w -'
t "it is removed" xseg volume remove w
t "a volume grows" xseg volume resize v --size 16M
expect_err 4 "would lose" "it does not shrink" xseg volume resize v --size 4M
expect_err 2 "multiple of 512" "a size that none may have is not one that wants --force" \
	xseg volume resize v --size 1000
t "but with --force" xseg volume resize v --size 4M --force
expect_json '.size_bytes == 4194304' "it has the new size" xseg --json volume info v
t "a volume is flushed" xseg volume flush v
expect_json '.name == "v" and .state == "flushed"' "and so in JSON" xseg --json volume flush v
t "a second volume is made" xseg volume create w --size 1M
expect_json '.name == "w" and .state == "removed"' "a volume is removed" \
	xseg --json volume remove w
expect_exit 4 "and is gone" xseg volume remove w

# ---- caches ----

cache_fields='[has("name", "policy", "draining", "state", "memory_bytes", "used_bytes", "dirty_bytes", "metadata_bytes",
	"objects", "reads", "writes", "hits", "misses", "partial", "bypassed", "evicted", "bypassed_by", "evicted_by",
	"flushed_by", "waits_by", "flushed_bytes", "generation")] | all'
expect_json "$cache_fields" "cache status has all fields" xseg --json cache status
expect_json '.name == "cached" and .state == "running" and .policy == "write-back" and .memory_bytes == 33554432' \
	"and their values" xseg --json cache status cached
t "cache status has a page for people" xseg cache status
t "cache set changes a policy" xseg cache set cached policy=write-through dirty_high=60 dirty_low=40
expect_json '.policy == "write-through" and .dirty_high == 60 and .dirty_high_percent == 60 and .dirty_age_ns == 3600000000000' "cache get shows it" \
	xseg --json cache get cached
expect_json '.policy == "write-through" and .downstream == "filed"' "and cache status" \
	xseg --json cache status
is "which names what has the data then" \
	"$(xseg cache status | grep -c 'write-through: data acknowledged is in filed, too')" 1
is "for people as lines" "$(xseg cache get cached | grep -E '^(policy|dirty_high)=' | xargs)" \
	"policy=write-through dirty_high=60"
expect_err 2 "no option 'polcy' \(did you mean 'policy'\?\); 'xseg cache get cached' shows" "an unknown key is wrong usage" \
	xseg cache set cached polcy=write-back
expect_err 2 \
	"no option 'min'; only a volume has a share: 'xseg cache set cached --volume VOL min=1M'" \
	"a share is shown to be a volume's" xseg cache set cached min=1M
expect_err 2 "no option 'min'; only a volume has a share: 'xseg cache set cached --volume VOL min=1M max=2M'" \
	"and only shares are" xseg cache set cached dirty_age=1h min=1M max=2M
expect_json '.flush_rate == "200M/s" and .flush_rate_bytes == 209715200' "a rate is a number, too" \
	xseg --json cache set cached flush_rate=200M/s
t "there is none again" xseg cache set cached flush_rate=0
long=$(printf %63s | tr ' ' v)
t "a volume has a long name" xseg volume create "$long" --size 1M
expect_err 2 "'xseg cache get cached --volume $long --volumed volumed' shows the keys" \
	"what is said to show the keys of a volume is a whole command, too" \
	xseg cache set cached --volume "$long" --volumed volumed min=1000T
t "and is removed" xseg volume remove "$long"
expect_err 2 "not one of" "a wrong value, too" xseg cache set cached policy=fast
expect_err 2 "KEY=VALUE" "a word that is no setting, too" xseg cache set cached policy
expect_exit 2 "filed is no cache" xseg cache set filed policy=write-back
expect_exit 4 "a cache that is not there is refused" xseg cache status nothing
for words in "--volume '' policy=write-through" "--volume= policy=write-through" "--volumed '' dirty_high=99"; do
	eval "set -- $words"
	expect_err 2 "'' is not a name: " \
		"nor is an empty name of a volume the whole cache: $words" \
		xseg cache set cached "$@"
done
for words in status get flush "set dirty_high=99"; do
	eval "set -- $words"
	expect_err 2 "--volumed needs a volume; name it with --volume" \
		"a volumed is not asked for a whole cache: $words" \
		xseg cache "$1" cached "${@:2}" --volumed volumed
done
for words in "cache set '' policy=write-through" "cache drop ''" "cache flush ''" "peer set '' latency=1ms"; do
	eval "set -- $words"
	expect_err 2 "word 1 is empty; usage: xseg $1 $2" \
		"nor is a name that is empty the only one's: $1 $2" \
		xseg "$@"
done
is "what is set is told as it is then" "$(xseg cache set cached memory=33000k dirty-age=3600s)" \
	"cache cached: set memory=34M dirty_age=1h"
t "the memory is what it was" xseg cache set cached memory=32M
t "the policy is changed back" xseg cache set cached policy=write-back dirty_high=99 dirty_low=98
head -c 4M /dev/urandom >data
write_unflushed v data
is "a write that was not flushed is dirty" "$(($(dirty_bytes) > 0))" 1
expect_json '.caches[0] | .dirty_bytes > 0 and .used_bytes >= .dirty_bytes and .memory_bytes == 33554432 and
	.metadata_bytes > 0 and .objects > 0 and .writes == 0' \
	"which an interval shows as it is, not what it has become more by" xseg --json stat \
	--interval 100ms --count 1
expect_exit 4 "drop is refused while data is dirty" xseg cache drop cached
t "a cache is flushed" xseg cache flush cached
is "then nothing is dirty" "$(dirty_bytes)" 0
expect_json '.name == "cached" and .volume == "v" and .state == "flushed"' \
	"a cache is flushed for one volume" xseg --json cache flush cached --volume v
expect_json '.volume == null and .state == "flushed"' "or for all" xseg --json cache flush cached
expect_json '.name == "cached" and .dropped_bytes >= 4194304' "a clean cache is dropped" \
	xseg --json cache drop cached
expect_json '.used_bytes == 0' "and is empty" xseg --json cache status
t "a read after drop has the data" bash -c 'xseg volume export v - | cmp - data'

t "it lets all pass" xseg cache set cached policy=pass-through
t "a read passes it" xseg volume export v out --force
t "it keeps things again" xseg cache set cached policy=write-back

# ---- statistics ----

expect_json '(.peers | map(.name) | sort) == ["cached", "filed", "volumed"] and
	all(.peers[]; has("ops", "bytes", "errors", "awake_idle_ns") and (.lat_ns | has("mean", "p50", "p99", "p999", "max")))' \
	"stat has ops, bytes, errors, latencies of each peer" xseg --json stat
expect_json \
	'.caches[0] | has("hits", "lookups", "hit_bytes", "lookup_bytes") and .hits <= .lookups' \
	"hit ratios come with their parts" xseg --json stat
expect_json '.volumes[] | select(.name == "v") | .reads > 0 and .bytes > 0' "and each volume" \
	xseg --json stat
expect_json '.volumes[] | select(.name == "v") | .flushes > 0 and .ops == .reads + .direct_reads + .writes + .flushes and
	.bytes == .read_bytes + .direct_bytes + .write_bytes' \
	"whose operations and bytes are those of all kinds" xseg --json stat
expect_json '[.peers, .caches | .[] | select(.name == "cached") | [.ops, .bytes]] | .[0] == .[1] and .[0][0] > 0' \
	"and a cache's are its peer's" xseg --json stat
expect_json '.caches[0] | .hits > 0 and .hits < .lookups and .hit_bytes > 0 and
	.lookups == .hits + .misses + .partial and .lookup_bytes == .hit_bytes + .miss_bytes and
	.hit_ratio_requests_ppm == (1000000 * (.hits + .direct_reads) /
		(.lookups + .direct_reads) | floor) and
	.hit_ratio_bytes_ppm == (1000000 * (.hit_bytes + .direct_bytes) /
		(.lookup_bytes + .direct_bytes) | floor)' "ratios are of their parts" xseg --json stat
is "the table has the same ratios" \
	"$(xseg stat | awk '$1 == "cached" && $2 ~ /%/ { print $2, $3 }')" \
	"$(xseg --json stat | jq -r '.caches[0] |
		[.hits + .direct_reads, .lookups + .direct_reads, .hit_bytes + .direct_bytes,
		.lookup_bytes + .direct_bytes] | @tsv' |
		awk '{ printf "%.1f%% %.1f%%\n", 100 * $1 / $2, 100 * $3 / $4 }')"
expect_json '.volumes[] | select(.name == "v").lat_ns | .count > 0 and .p50 > 0 and .p50 <= .max' \
	"with what its users waited" xseg --json stat
xseg --json stat --interval 100ms --count 2 >stats 2>/dev/null
is "stat prints a line of JSON an interval" \
	"$(jq -s 'length == 2 and all(.[]; .interval_ns > 0)' stats)" true
is "an idle interval counts nothing" "$(jq -s '.[1].volumes | map(.ops) | add' stats)" 0
expect_exit 3 "stat that is cut off says so" xseg --timeout 300ms stat --interval 200ms --count 50
expect_err 2 "50ms to 24h" "an interval is at most a day" xseg top --interval 10000h
t "top without a terminal prints once" xseg top
if command -v script >/dev/null 2>&1; then
	shown_twice() { [ "$(grep -c volumed screen)" -gt 1 ]; }
	: >screen
	{ wait_for 60 shown_twice >&2; printf q; sleep 1; } |
		timeout 100 script -qec "xseg top --interval 100ms" /dev/null >screen 2>&1
	is "q ends top on a terminal" "$?" 0
	is "which showed the peers" "$(($(grep -c volumed screen) > 1))" 1
else
	skip "q ends top on a terminal" "script is not there"
fi
sentence="progress is not longer than a line of the terminal, so all of it is gone at the end"
if command -v script >/dev/null 2>&1; then
	timeout 60 script -qec "stty cols 20; xseg volume export v /dev/null" /dev/null </dev/null |
		tr '\r' '\n' | sed 's/\x1b\[K//' >screen
	is "$sentence" "$(awk '/^exporting/ { print length }' screen | sort -nu | tail -n 1)" 19
else
	skip "$sentence" "script is not there"
fi
sentence="no image goes to a terminal, or comes from one"
if command -v script >/dev/null 2>&1; then
	for words in "export v -" "import v -"; do
		timeout 60 script -qec "xseg volume $words" /dev/null 2>&1 </dev/null
	done >screen
	is "$sentence" "$(grep -c "standard .*put is a terminal; put" screen)" 2
else
	skip "$sentence" "script is not there"
fi

# ---- peers ----

expect_err 4 "send to it: volumed" "a peer that others send to is not stopped" xseg peer stop cached
t "the topmost peer is stopped" xseg peer stop volumed
is "and says so" "$(peer_field volumed state)" stopped
is "and that it has no process" "$(peer_field volumed pid) $(peer_field volumed hosted_by)" \
	"null null"
expect_exit 4 "a stopped peer is not stopped again" xseg peer stop volumed
expect_err 4 "stopped; start it" "volumes are refused meanwhile" xseg volume list
t "it is started again" xseg peer start volumed
expect_exit 4 "a running peer is not started again" xseg peer start volumed
expect_err 4 "add its section to the file, and 'xseg reload' starts it" \
	"a peer that the stack does not have is refused" xseg peer start memd
t "the store is stopped below what sends to it" xseg peer stop --force filed
mv objects kept && : >objects
expect_err 1 "^xseg: filed did not start: directory [^:]*/objects cannot" \
	"one that does not start says why, as up does" xseg peer start filed
rm objects && mv kept objects
t "and then it starts" xseg peer start filed
old=$(peer_field cached generation)
t "a peer is killed" xseg peer kill cached
wait_for 60 is_back cached "$old"
is "and started again by the supervisor" "$(peer_field cached state)" running
t "with its volumes" xseg volume info v
xseg --json cache status >before
freeze "$(peer_field volumed pid)"
expect_err 3 "timed out" "a peer that does not answer is waited for as long as asked" \
	xseg --timeout 300ms volume list
expect_err 3 "no answer yet, nothing was changed" "who has only asked says so" \
	xseg --timeout 300ms volume resize v --size 64M
expect_json '.volumes == null' "and does not hang status" xseg --json status
kill -CONT "$(peer_field volumed pid)"
t "and answers later" xseg volume list
freeze "$(peer_field cached pid)"
expect_err 3 "no answer yet, the work goes on if the peer has begun it" \
	"who has asked for a change says that" \
	xseg --timeout 300ms cache drop cached
kill -CONT "$(peer_field cached pid)"

# ---- without a supervisor ----

write_unflushed v data
kill_hard "$(xseg --json status | jq .supervisor.pid)"
t "status shows that the supervisor is gone" wait_for 60 json_of '.supervisor.alive | not' \
	xseg --json status
t "a cache is killed with dirty data" xseg peer kill cached
expect_json '.state == "failed" and .peer_state == "dead" and .dirty_bytes > 0' \
	"its status comes from the segment" xseg --json cache status
expect_json "$cache_fields" "with all fields" xseg --json cache status
expect_json '.bypassed > 0 and .bypassed == ([.bypassed_by[]] | add) and .evicted == ([.evicted_by[]] | add)' \
	"and sums, which the segment has not" xseg --json cache status
is "which says to people that it is dead" "$(xseg cache status | head -n 1 | cut -d , -f 2)" " dead"
expect_err 3 "unplug cached: it is dead; 'xseg peer start cached'" \
	"unplug says whom it waits for" \
	xseg --timeout 300ms unplug cached
expect_err 1 \
	"unplug cached: it is dead, and it goes on when that serves; 'xseg peer start cached'" \
	"and not for ever, as nobody starts it" timeout 60 xseg unplug cached
t "and is taken back" xseg unplug cached --cancel
expect_err 4 "cached is dead and has .* up" "down refuses to lose that" xseg down
expect_exit 4 "and so does destroy" xseg destroy
t "up takes over what is there" xseg up stack.conf
t "and what was written is there" bash -c 'xseg volume export v - | cmp - data'
kill_hard "$(xseg --json status | jq .supervisor.pid)"
t "down works without a supervisor" xseg down
expect_exit 4 "and removes the segment" xseg info
t "the stack comes back" xseg up stack.conf
t "with the data" bash -c 'xseg volume export v - | cmp - data'
for peer in volumed cached filed; do
	kill_hard "$(peer_field $peer pid)"
done
t "down stops what is half dead" xseg down
none_is_left()
{
	! segment_pids "$XSEG_SEGMENT" | xargs -r ps -o comm= -p |
		grep -qE '^(xseg-host|volumed|cached|filed)$'
}
t "no process is left" wait_for 60 none_is_left

# ---- several in one process, faults, the foreground ----

cat >together.conf <<-END
	[segment]
	memory = 64M
	[peer memd]
	kind = memd
	memory = 16M
	[peer volumed]
	kind = volumed
	downstream = memd
	[run]
	together = memd volumed
END
t "a stack in one process starts" xseg up together.conf
expect_json 'map(.pid) | unique | length == 1' "its peers share a process" xseg --json peer list
expect_err 4 "also hosts: memd" "it is not killed for one of them" xseg peer kill volumed
old=$(peer_field memd generation)
is "but with --force, which names the other" "$(xseg peer kill volumed --force)" \
	"volumed is killed, and with its process: memd"
wait_for 60 is_back memd "$old"
is "and all of it comes back" "$(peer_field memd state) $(peer_field volumed state)" \
	"running running"
t "a volume is made in RAM" xseg volume create v --size 4M
expect_exit 2 "a wrong live option is wrong usage" xseg peer set memd latency=slow
t "memd is made slow" xseg peer set memd latency=300ms
expect_exit 3 "a flush is timed out" xseg --timeout 100ms volume flush v
expect_exit 3 "an import, too" xseg --timeout 100ms volume import v data
t "memd is made slower" xseg peer set memd latency=3s
xseg volume import v data >/dev/null 2>interrupted &
import=$!
imports()
{
	xseg --json peer list | grep -q "\"xseg.$import\""
}
t "an import has begun" wait_for 60 imports
expect_err 4 "xseg.$import: it is a client, which ends by itself; end its process $import" \
	"which is no peer to be stopped" xseg peer stop "xseg.$import"
kill -INT "$import"
wait "$import"
is "it is interrupted" "$?" 3
is "and says so in one line" "$(grep -c '^xseg: interrupted: ' interrupted)" 1
t "and less slow" xseg peer set memd latency=4s
t "volumed is stopped" xseg peer stop volumed
t "and begins anew" xseg peer start volumed
expect_json '.volumes == null' "while it reads its list, nobody knows of how many" \
	xseg --json status
t "memd is made fast" xseg peer set memd latency=0ms
t "it has read it" xseg volume list
expect_json '.volumes == 1' "and counts" xseg --json status
t "memd is made to fail" xseg peer set memd fail=write:1:ENOSPC
expect_err 1 "at byte 0: No space left" "an import says which error came at which byte" \
	xseg volume import v data
t "memd finds fault with what it is sent" xseg peer set memd fail=write:1:EINVAL
expect_err 1 "Invalid argument.*|at byte 0" "which is no wrong usage" xseg volume import v data
t "memd's own store does not answer it" xseg peer set memd fail=any:1:ETIMEDOUT
expect_err 1 "import v: at byte 0: .* timed out" "an import that ends so does not go on" \
	xseg volume import v data
expect_err 1 "volume flush v: .* timed out" "nor does a flush" xseg volume flush v
expect_err 1 "volume create w: .* timed out" "nor what volumed was to do" \
	xseg volume create w --size 4M
t "memd is mended" xseg peer set memd fail=
t "and takes the image" xseg volume import v data
is "what is set is told as it is then, of other peers than caches, too" \
	"$(xseg peer set memd latency=1000us)" "memd: set latency=1ms"
t "a read of the image is made to fail" xseg peer set memd fail=read:1@7:EIO
expect_err 1 "^xseg: volume export v: at byte [0-9]+: Input/output error; see" \
	"an export that lacks a part has failed, and says which" xseg volume export v out --force
is "in what it has written is nothing made up" \
	"$(($(stat -c %s out.partial) < 4194304)) $(cmp -n "$(stat -c %s out.partial)" out.partial data 2>&1)" "1 "
t "a volume of three objects is made, when the one that timed out is undone" \
	wait_for 60 xseg volume create w --size 9M
head -c 9M /dev/urandom >nine
t "it has data in each of them" xseg volume import w nine
t "deletes are made to fail" xseg peer set memd fail=delete:1:EIO
expect_err 3 "^xseg: timed out: volume w: its removal goes on, with 3 more to be deleted; 'xseg volume info w'" \
	"its removal ends when they are deleted, not before" xseg --timeout 3s volume remove w
expect_json '.state == "removing" and .objects_left == 3' "which is shown" xseg --json volume info w
is "in words, too" "$(xseg volume info w | sed -n 's/^state *//p')" \
	"removing, 3 objects left to delete"
t "memd is mended again" xseg peer set memd fail=
t "and they are gone" wait_for 60 bash -c '! xseg volume info w'
mkfifo pipe
exec 7<>pipe
start import xseg volume import v pipe
import=$started
t "an import waits for its data" wait_for 60 imports
t "down --force kills all" xseg down --force
t "clients, too" wait_for 60 eval '! kill -0 "$import"'
exec 7>&-
expect_exit 4 "and removes the segment" xseg info
start foreground xseg --timeout ${SAN:+3}10s up together.conf --foreground
t "up in the foreground says when all serve" wait_for 60 grep -q "all 2 peers serve" foreground.log
t "with its log" wait_for 60 grep -q "volumed: serving" foreground.log
sleep ${SAN:+3}10
is "and stays, as its time is for the start" "$(peer_field volumed state)" running
kill -INT "$started"
wait "$started"
is "until Ctrl-C, which stops all in order" \
	"$? $(peer_field memd state) $(peer_field volumed state)" "0 stopped stopped"
start again xseg up together.conf --foreground
t "it is up in the foreground again" wait_for 60 grep -q "all 2 peers serve" again.log
t "somebody else takes it down" xseg down
wait "$started"
is "which is a good end, too" "$?" 0
start dies xseg up together.conf --foreground
t "and once more" wait_for 60 grep -q "all 2 peers serve" dies.log
kill -KILL "$(xseg --json status | jq .supervisor.pid)"
wait "$started"
is "that the supervisor dies is none" "$? $(tail -n 1 dies.log | cut -d ';' -f 1)" \
	"1 xseg: up: the supervisor went away"
t "an idle stack is taken down" xseg down
finish
