#!/bin/bash
# reload.sh - a stack that runs becomes what its file says: live keys, restarts, peers that come and
# go, exports. up says what differs, and changes nothing.
#
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench jq

cat >stack.conf <<END
[segment]
memory = 192M

[peer memd]
memory = 32M

[peer cached]
downstream = memd
memory = 32M
dirty_age = 20s

[peer volumed]
downstream = cached
END
cp stack.conf first.conf
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M
pids()
{
	xseg --json peer list | jq -c '[.[] | select(.kind != "client") | {(.name): .pid}] | add'
}

# ---- nothing differs ----

expect_err 4 "has a stack that runs; see" "up of what runs is refused" xseg up stack.conf
is "reload has nothing to do" "$(xseg reload)" "segment $XSEG_SEGMENT is as $TMP/stack.conf says"
expect_json '.applied and .differences == [] and .left == 0' "in JSON, too" xseg --json reload

# ---- what differs is told ----

sed -i 's/^dirty_age = 20s/dirty_age = 15s\nrequests = 64/; s/^memory = 192M/memory = 256M/' stack.conf
cat >>stack.conf <<END

[peer spare]
kind = memd
memory = 8M
END
before=$(pids)
xseg up stack.conf >out.txt 2>err.txt
is "up of another file is refused" "$? $(grep -c "and stack.conf differs from it in 4 places; 'xseg reload stack.conf'" err.txt)" "4 1"
is "and says what differs, and how it is applied" "$(tail -n +2 out.txt | tr -s ' ')" \
"segment memory 192M 256M xseg down, up
peer cached dirty_age 20s 15s live
peer cached requests 128 64 restart of the peer
peer spare - - memd the peer is started"
is "which is what reload would do" "$(xseg reload --dry-run)" "$(cat out.txt)"
expect_json '.differences | map(.how) == ["down", "live", "restart", "add"]' "in JSON, too" \
	xseg --json reload --dry-run
expect_json '.applied == false and .left == 1' "where nothing was applied" xseg --json reload --dry-run
is "nothing was changed" "$(pids) $(xseg cache get cached | grep ^dirty_age)" "$before dirty_age=20s"

# ---- and applied, under a load that checks itself ----

start load xbench --volume=disk --rw=randrw --bs=4k --iodepth=4 --rate_iops="$(bound 2000 0)" --runtime=8s \
	--verify=crc32c
load=$started
xseg reload >out.txt 2>err.txt
is "reload applies what can be, and says what cannot" \
	"$? $(grep -c "holds but memory of \[segment\], .*; use 'xseg down', then 'xseg up " err.txt)" "4 1"
is "the live key holds" "$(xseg cache get cached | grep -E '^(dirty_age|requests)' | xargs)" "dirty_age=15s requests=64"
t "the new peer serves" state_is spare running
is "peers that are as before were left alone" \
	"$(pids | jq -c '[.memd, .volumed]')" "$(jq -c '[.memd, .volumed]' <<<"$before")"
is "what needs down and up is left" "$(xseg --json reload --dry-run | jq -c '[.differences[] | .key]')" '["memory"]'
wait "$load"
is "the load saw no error" "$?" 0
sed -i 's/^memory = 256M/memory = 192M/' stack.conf
t "that is taken back" xseg reload
xseg peer kill spare >out.txt
t "the supervisor looks after the new peer" wait_for 60 state_is spare running

# ---- settings that were not saved ----

t "a key is set" xseg cache set cached dirty_age=3s
expect_json '.differences[] | select(.key == "dirty_age") | .now == "3s" and .file == "15s" and .how == "live"' \
	"which differs from the file" xseg --json reload --dry-run
t "reload has the file's again" xseg --quiet reload
is "at once" "$(xseg cache get cached | grep ^dirty_age)" dirty_age=15s
t "keys are set that the file does not have" xseg peer set memd bandwidth=8G/s latency=1us iops=1000000 \
	fail=write:0:EIO
expect_json '.differences | map([.key, .now, .file, .how]) == [["latency", "1us", "0s", "live"],
	["bandwidth", "8G/s", "0", "live"], ["iops", "1000000", "0", "live"], ["fail", "write:0:EIO", "", "live"]]' \
	"they differ from their defaults" xseg --json reload --dry-run
t "reload has these again" xseg --quiet reload
expect_json '.differences == []' "all of them" xseg --json reload --dry-run

# ---- peers that go ----

cp stack.conf more.conf
sed -i '/^\[peer volumed/,/^$/d' stack.conf
start load xbench --volume=disk --rw=randread --bs=4k --rate_iops=500 --runtime=1h
load=$started
in_use()
{
	[ "$(xseg --json peer list | jq '[.[] | select(.kind == "client")] | length')" -gt 0 ]
}
t "a volume is in use" wait_for 60 in_use
expect_err 4 "does not have volumed, and these have its volumes open: xbench" \
	"its volumed does not go" xseg reload
kill "$load"
wait "$load"
cp more.conf stack.conf
sed -i '/^\[peer cached/,/^$/d; s/^downstream = cached/downstream = memd/' stack.conf
t "a cache leaves the path, and goes" xseg reload
is "and is not listed any more" "$(xseg --json peer list | jq -c '[.[] | select(.kind != "client") | .name]')" \
	'["memd","volumed","spare"]'
is "the path is as the file says" "$(path_of volumed)" memd
cp first.conf stack.conf
sed -i 's/^memory = 192M/memory = 192M\nports = 64/' stack.conf
t "the cache comes back, and the spare peer goes" xseg --quiet reload
is "as the file says" "$(xseg --json peer list | jq -c '[.[] | select(.kind != "client") | .name] | sort')" \
	'["cached","memd","volumed"]'
is "at its place" "$(path_of cached volumed)" "memd cached"

# ---- what only down and up can change ----

# Told each time, as long as the segment is not so. The file names the segment, as no -s does.
named=$XSEG_SEGMENT-named other=$XSEG_SEGMENT-other
printf '[segment]\nname = %s\nmemory = 32M\n[peer memd]\nmemory = 4M\n' "$named" >named.conf
t "a stack comes up whose file names the segment" env -u XSEG_SEGMENT xseg up named.conf
is "nothing differs" "$(xseg -s "$named" reload)" "segment $named is as $TMP/named.conf says"
sed -i "s/^name = .*/name = $other\nhuge = never\nowner = $(id -un)/" named.conf
expect_json '.differences | map({(.key): [.now, .file, .how]}) | add ==
	{"name": ["'"$named"'", "'"$other"'", "down"], "huge": ["auto", "never", "down"],
	"owner": ["", "'"$(id -un)"'", "stack"]}' "another name, huge pages and owner are told" \
	xseg -s "$named" --json reload --dry-run
for time in first second; do
	expect_err 4 "holds but name, huge of \[segment\], .*; use 'xseg -s $named down', then 'xseg -s $named up " \
		"so does the $time reload" xseg -s "$named" reload
done
expect_err 4 "differs from it in 2 places" "and up" xseg -s "$named" up named.conf
t "it goes down" xseg -s "$named" down
t "and up" env -u XSEG_SEGMENT xseg up named.conf
is "then it is so" "$(xseg -s "$other" reload)" "segment $other is as $TMP/named.conf says"
chmod 660 "/dev/shm/xseg.$other"
expect_json '.differences == [{"section": "segment", "key": "mode", "now": "0660", "file": "0600", "how": "live"}]' \
	"a mode that somebody has changed is told" xseg -s "$other" --json reload --dry-run
t "and set" xseg -s "$other" reload
is "as the file says" "$(stat -c %a "/dev/shm/xseg.$other")" 600
t "it goes down" xseg -s "$other" down
t "-s wins over the file's name" xseg -s "$named" up named.conf
is "each time: nothing differs" "$(xseg -s "$named" reload)" "segment $named is as $TMP/named.conf says"
t "it goes down" xseg -s "$named" down
t "a segment is made by hand" xseg -s "$named" create --memory 32M --ports 128 --mode 0660
printf '[peer memd]\nmemory = 4M\n' >named.conf
t "and used by a file that does not say how" xseg -s "$named" up named.conf
is "then nothing differs" "$(xseg -s "$named" reload)" "segment $named is as $TMP/named.conf says"
is "and it stays as it is" "$(stat -c %a "/dev/shm/xseg.$named")" 660
t "it goes down" xseg -s "$named" down

# ---- no room ----

cp stack.conf large.conf
printf '[peer large]\nkind = memd\nmemory = 1G\n' >>large.conf
before=$(pids)
xseg reload large.conf >out.txt 2>err.txt
is "a peer without room is not added" "$? $(grep -c 'of memory left and its peers need' err.txt)" "1 1"
is "and the stack is as before" "$(pids)" "$before"
t "with a supervisor" eval "xseg --json status | jq -e .supervisor.alive"
expect_json '.differences == []' "and its file" xseg --json reload --dry-run stack.conf

# ---- a command that is killed ----

sed -i 's/^dirty_age = 20s/dirty_age = 12s\nrequests = 32/' stack.conf
printf '[peer later]\nkind = memd\nmemory = 4M\n' >>stack.conf
for pause in 0.02 0.1 0.2 0.4 0.8; do
	timeout -s KILL $pause xseg reload >out.txt 2>&1
done
t "a reload after others that were killed ends well" wait_for 60 xseg --quiet reload
is "with all that the file says" \
	"$(xseg cache get cached | grep -E '^(dirty_age|requests)' | xargs) $(wait_for 60 state_is later running && echo later)" \
	"dirty_age=12s requests=32 later"
t "all serve" wait_for 60 all_serve
t "nothing is left to do" eval "[ \$(xseg --json reload --dry-run | jq .left) -le 1 ]"
t "the segment is sound" xseg check
t "it goes down" xseg down
expect_err 4 "there is none of that name" "where nothing runs there is nothing to reload" xseg reload stack.conf
finish
