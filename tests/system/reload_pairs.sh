#!/bin/bash
# reload_pairs.sh - one reload is enough. Changes of a stack file come together: a cache is plugged and
# unplugged, another one comes and goes, users come and go, change their store, or begin to share a
# process, options and exports change. After each reload a second one finds nothing to do, and what
# was done is what --dry-run has said. A load that checks itself runs all the time.
#
# In `make check` each change meets each other one in a reload of several, and some pairs come alone.
# In `make check-long` all pairs do, both ways.
# timeout: 300
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed kvd memd xseg-memcached jq

# Each is on or off. `plugged`: volumed sends to the cache, or past it; `lower`: a second cache below;
# `keys`: a new kvd beside volumed; `moved`: a kvd goes from a store of its own to the place of
# volumed; `gate`: a gateway above that kvd; `spare`: a peer that nobody uses; `kind`: of a store that
# nobody uses; `live`, `threads`, `mode`: keys, also of one that shares a process; `together`: two or
# three share one; `shared`: the cache does, with the new kvd or with volumed; `export`: a volume is
# exported.
changes=(plugged lower keys moved gate spare kind live threads mode together shared export)
nr=${#changes[@]}
# What changes together: the places of these in the list.
several=("2 4 5 7 8 9 10 11" "0 1 3 6 7 9 10 12" "0 2 3 4 5 8 11 12" "1 2 4 5 6 8 11 12")

. "$root/tests/lib/nbdkit.sh"
has_nbdkit=
if command -v nbdkit >/dev/null && [ -e "$BUILD/lib/nbdkit-xseg-plugin.so" ]; then
	has_nbdkit=1
fi

declare -A on
for change in "${changes[@]}"; do on[$change]=; done

# stack: the file of what is on
stack()
{
	local below=filed top
	[ -z "${on[lower]}" ] || below=lower
	top=$below
	[ -z "${on[plugged]}" ] || top=cached
	cat <<-END
		[segment]
		memory = 320M
		requests = 4096
		ports = 128
		mode = ${on[mode]:-0600}
		[peer filed]
		dir = $TMP/objects
		direct = no
		[peer cached]
		downstream = $below
		memory = 16M
		dirty_age = 2s
		[peer volumed]
		downstream = $top
		threads = ${on[threads]:-1}
		[peer other]
		kind = memd
		memory = 16M
		latency = ${on[live]:-0s}
		[peer mover]
		kind = kvd
		size = 8M
		zone_size = 256k
		tail = ${on[threads]:-4}M
		downstream = $([ -z "${on[moved]}" ] && echo other || echo "$top")
		[peer odd]
		kind = ${on[kind]:-memd}
	END
	[ -z "${on[kind]}" ] || echo "dir = $TMP/odd"
	[ -z "${on[lower]}" ] || printf '%s\n' "[peer lower]" "kind = cached" "downstream = filed" \
		"memory = 16M"
	[ -z "${on[keys]}" ] || printf '%s\n' "[peer keys]" "kind = kvd" "size = 8M" \
		"zone_size = 256k" "downstream = $top"
	[ -z "${on[gate]}" ] || printf '%s\n' "[peer gate]" "kind = memcached" "kvd = mover" \
		"listen = unix:$short/gate.sock"
	[ -z "${on[spare]}" ] || printf '%s\n' "[peer spare]" "kind = memd" "memory = 4M"
	[ -z "${on[together]}${on[shared]}" ] || echo "[run]"
	[ -z "${on[together]}" ] || echo "together = mover other${on[spare]:+ spare}"
	[ -z "${on[shared]}" ] || echo "together = cached $([ -n "${on[keys]}" ] && echo keys || echo volumed)"
	[ -z "${on[export]}" ] || [ -z "$has_nbdkit" ] || printf '%s\n' "[export disk]" \
		"volumed = volumed" "nbd = $short/nbd.sock" "queues = 1"
}

# turn CHANGE...: on what is off, and off what is on
turn()
{
	local change
	for change; do
		if [ -n "${on[$change]}" ]; then
			on[$change]=
			continue
		fi
		case $change in
		threads) on[$change]=2 ;;
		live) on[$change]=1ms ;;
		kind) on[$change]=filed ;;
		mode) on[$change]=0640 ;;
		*) on[$change]=1 ;;
		esac
	done
}

# What runs: each peer with its incarnation and its route, each export with its server, the supervisor.
sight()
{
	jq -n --argjson peers "$(xseg --json peer list)" --argjson exports "$(xseg --json export list)" \
		--argjson status "$(xseg --json status)" '{
		peers: [$peers[] | select(.kind != "client") | {(.name): {generation, downstream}}] | add,
		exports: ([$exports[] | {(.name): .pid}] | add // {}),
		supervisor: $status.supervisor.pid}'
}

# What is another one in the second sight.
seen()		# BEFORE AFTER
{
	jq -nSc --slurpfile a "$1" --slurpfile b "$2" '
		$a[0] as $a | $b[0] as $b | ($a.peers | keys) as $was | ($b.peers | keys) as $is |
		[$is[] | select($a.peers[.]) | select($a.peers[.].generation == $b.peers[.].generation)] as $same |
		{
			added: ($is - $was),
			removed: ($was - $is),
			restarted: ($is - ($is - $was) - $same),
			routes: [$same[] | select($a.peers[.].downstream != $b.peers[.].downstream)],
			exports: [($a.exports + $b.exports | keys)[] | select($a.exports[.] != $b.exports[.])],
			supervisor: ($a.supervisor != $b.supervisor)
		}'
}

# The same, of what --dry-run tells. Sockets of exports have the mode of the segment: so another mode
# is for the supervisor, too.
told()		# DIFFERENCES
{
	jq -Sc --argjson exports "$([ -n "${on[export]}" ] && [ -n "$has_nbdkit" ] && echo true || echo false)" '
		def sections($hows): [.[] | select(.how as $h | $hows | index($h)) | .section] | unique;
		def names($kind): map(select(startswith($kind + " ")) | ltrimstr($kind + " "));
		.differences |
		{
			added: (sections(["add"]) | names("peer")),
			removed: (sections(["remove"]) | names("peer")),
			restarted: (sections(["restart", "replace"]) | names("peer")),
			routes: ((sections(["route"]) - sections(["restart", "replace"])) | names("peer")),
			exports: (sections(["stack"]) | names("export")),
			supervisor: (sections(["add", "remove", "replace", "stack"]) != [] or
				($exports and (sections(["live"]) | index("segment")) != null))
		}' "$1"
}

all_peers_serve()
{
	xseg --json peer list | jq -e 'all(.[]; .state == "running")'
}

number=0
# reload_once CHANGE...: these change, in one reload
reload_once()
{
	local what="${*}"
	turn "$@"
	stack >next.conf
	xseg --json reload --dry-run next.conf >dry.json
	xseg up next.conf >up.out 2>up.err
	is "up tells what differs" "$?:$(cat up.out)" "4:$(xseg reload --dry-run next.conf)"
	sight >before.json
	xseg --json reload next.conf >done.json 2>reload.err
	if [ $? -ne 0 ] || [ -s reload.err ]; then
		not_ok "$((++number)). one reload changes $what" reload.err next.conf
		return 1
	fi
	ok "$((++number)). one reload changes $what"
	sight >after.json
	is "it has told what it would do" "$(jq -Sc .differences done.json)" "$(jq -Sc .differences dry.json)"
	is "and has done that" "$(seen before.json after.json)" "$(told dry.json)"
	xseg reload next.conf >second.out 2>&1
	is "a second one has nothing to do" "$?:$(cat second.out)" \
		"0:segment $XSEG_SEGMENT is as next.conf says"
	t "all serve" all_peers_serve
	t "the segment is sound" xseg check
	t "the load goes on" kill -0 "$load"
}

short=$(mktemp -d "/tmp/xseg-pairs.XXXXXX")	# a socket's path has at most 107 bytes
trap 'rm -rf "$short"; cleanup' EXIT
stack >stack.conf
t "a stack comes up" xseg up stack.conf || finish
t "a volume is made" xseg volume create disk --size 64M
start load xbench --volume=disk --rw=randrw --bsrange=4k-64k --iodepth=8 --rate_iops=300 --runtime=1h \
	--verify=crc32c --output-format=json --output=load.json
load=$started
in_use()
{
	xseg --json clients | jq -e 'any(.[]; .program == "xbench" and .volumes != [])'
}
t "a load runs" wait_for 60 in_use

# ---- several at once ----

covered()		# of all pairs of changes, those that are in one line of `several`
{
	local line a b
	for line in "${several[@]}"; do
		for a in $line; do for b in $line; do [ "$a" -ge "$b" ] || echo "$a $b"; done; done
	done | sort -u | wc -l
}
is "each change meets each other one" "$(covered)" $((nr * (nr - 1) / 2))
for line in "${several[@]}"; do
	names=()
	for at in $line; do names+=("${changes[at]}"); done
	reload_once "${names[@]}" || break
done

# ---- each pair, on and off ----

declare -A met=()
state_of()
{
	echo "$1=${on[$1]:+on}"
}
next_pair()		# two changes that have not met in their states of now, or the two that are given
{
	local a b
	for ((a = 0; a < nr; a++)); do
		for ((b = a + 1; b < nr; b++)); do
			[ -z "${met[$(state_of "${changes[a]}") $(state_of "${changes[b]}")]:-}" ] ||
				continue
			pair=("${changes[a]}" "${changes[b]}")
			return
		done
	done
	pair=("$@")
}
all=$((nr * (nr - 1) / 2 * 4)) turns=0
while [ ${#met[@]} -lt "$all" ] && [ $((turns++)) -lt "$(bound 8 700)" ]; do
	next_pair "${changes[RANDOM % 6]}" "${changes[6 + RANDOM % 7]}"
	met[$(state_of "${pair[0]}") $(state_of "${pair[1]}")]=1
	reload_once "${pair[@]}" || break
done
[ -z "$LONG" ] || is "each pair has come, both ways" ${#met[@]} "$all"

# ---- what ends with the peer below it ----

# with LINE...: the file of what is on, and these lines; and the same after a reload of it
with()
{
	stack >with.conf
	printf '%s\n' "$@" >>with.conf
}
second="[peer second]
kind = volumed
downstream = other"
image="[export image]
volumed = second
nbd = $short/image.sock
queues = 1"
image_is_served()
{
	xseg --json export list | jq -e 'any(.[]; .name == "image" and .state == "serving")'
}
servers()		# of exports, that are there
{
	xseg --json clients | jq '[.[] | select(.program == "nbdkit")] | length'
}
if [ -n "$has_nbdkit" ]; then
	before=$(servers)
	with "$second" "$image"
	t "a volumed comes, and an export of it" xseg reload with.conf
	t "its volume is made" xseg volume create image --volumed second --size 1M
	t "and is served" wait_for 30 image_is_served
	stack >next.conf
	t "both go by one reload" xseg reload next.conf
	is "and no server is left of it" "$(servers)" "$before"
	is "nor is the volumed" "$(xseg --json peer list | jq 'any(.[]; .name == "second")')" false

	# the volumed is still alive when the supervisor of the new file begins, and is to stop
	for change in together shared; do [ -z "${on[$change]}" ] || turn "$change"; done
	third="[peer third]
kind = memd
memory = 4M"
	with "$second" "$third"
	t "the volumed comes again, and another store" xseg reload with.conf
	freeze "$(peer_field second pid)"
	with "$second" "$third" "$image" "[run]" "together = second third"
	start reload xseg reload with.conf
	reload=$started
	log=$XDG_STATE_HOME/xseg-$XSEG_SEGMENT.log
	t "both shall share a process, and the export come" wait_for 60 grep -q \
		"second is replaced, as asked" "$log"
	sleep 1
	kill -CONT "$(peer_field second pid)"
	wait "$reload"
	is "one reload does it" "$?" 0
	is "the server begins when the volumed has stopped" "$(sed -n \
		's/.*supervisor: \(all that is replaced has stopped\|started export image\).*/\1/p' "$log" |
		tail -n 2 | tr '\n' ,)" "all that is replaced has stopped,started export image,"
	t "and serves" image_is_served
else
	skip "an export goes with its volumed" "nbdkit is not there"
fi

port=$(free_port)
values="[peer values]
kind = kvd
size = 8M
zone_size = 256k
downstream = other"
door="[peer door]
kind = memcached
kvd = values
listen = 127.0.0.1:$port"
with "$values" "$door"
t "a kvd and its gateway come" xseg reload with.conf
connected()		# N
{
	[ "$(xseg --json stat | jq '.gateways[] | select(.name == "door").curr_connections')" = "$1" ]
}
exec 9<>"/dev/tcp/127.0.0.1/$port"
t "a client connects" wait_for 30 connected 1
with "${values/downstream = other/downstream = $(path_of volumed)}" "$door"
expect_err 4 "door serves the values of another store, and 1 client is connected to it; end them first" \
	"the gateway does not get another store under its clients" xseg reload with.conf
exec 9>&-
t "the client leaves" wait_for 30 connected 0
t "then it does" xseg reload with.conf
is "a second reload has nothing to do" "$(xseg reload with.conf)" \
	"segment $XSEG_SEGMENT is as with.conf says"
with "${values/\[peer values\]/[peer others]}" "$values" "${door/kvd = values/kvd = others}"
expect_json '.differences | map(select(.key == "kvd")) == [{"section": "peer door", "key": "kvd",
	"now": "values", "file": "others", "how": "replace"}]' "another kvd of a gateway is told" \
	xseg --json reload --dry-run with.conf
before=$(peer_field door pid)
t "it gets that" xseg reload with.conf
is "by a new process" "$([ "$(peer_field door pid)" != "$before" ] && echo yes)" yes
stack >next.conf
t "kvds and their gateway go by one reload" xseg reload next.conf

kill -INT "$load"
wait "$load"
is "the load was told to end" "$?" 3
expect_json "$no_errors" "and saw no error" cat load.json
t "it goes down" xseg down
nbdkit_is_clean
finish
