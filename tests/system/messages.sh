#!/bin/bash
# messages.sh - the tool's messages to new users: groups of commands, help that fits a terminal,
# options that do not belong to a command, missing arguments, and stacks that have ended.
# timeout: 60
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed memd jq

# ---- help ----

# wide PROGRAM WORD...: lines of its help that are wider than a terminal
wide()
{
	"$@" --help | awk 'length($0) > 80'
}

commands=$(xseg --help | sed -n -E 's/^  ([a-z]+( [a-z]+)?)  .*/\1/p')
t "the tool has its commands" [ "$(wc -l <<<"$commands")" -ge 30 ]
while read -r command; do
	# shellcheck disable=SC2086
	wide xseg $command
done <<<"$commands" >wide.txt
for program in xseg xbench xseg-host volumed cached filed memd; do
	wide "$program"
done >>wide.txt
is "no help is wider than 80 columns" "$(cat wide.txt)" ""
for words in "volume --help" "help volume" "--help volume" "--json volume --help" \
		"volume --json --help" "volume --help --json" "volume -s x -h"; do
	# shellcheck disable=SC2086
	is "'xseg $words' lists what there is of volumes" "$(xseg $words | grep -c '^  volume ')" 13
done
expect_err 2 "one more word: list, start" "a group alone is no command" xseg peer
expect_err 2 "one more word: list, start" "with an option, neither" xseg peer --json
expect_err 2 "peer: unknown option --bogus; see 'xseg peer --help'" "nor with one that is none" \
	xseg peer --bogus --help
expect_err 2 "unknown command 'peer lsit'; did you mean 'peer list'" \
	"a command behind an option is looked for" xseg peer --quiet lsit
expect_err 4 "segment $XSEG_SEGMENT-no\",\"why\":\"there is none" "and found" \
	xseg peer -s "$XSEG_SEGMENT-no" --json list
expect_err 2 "unknown command 'nothing'" "nor is there help on what is none" xseg help nothing
for words in "" "--check=x --kinds" "--check=x memd" "--supervise memd"; do
	# shellcheck disable=SC2086
	expect_err 2 "name the peers to serve, or give one of" "'xseg-host $words' is not one thing" \
		xseg-host $words
done
for option in daemon log=x stack=x; do
	expect_err 2 "--${option%=*} is for --supervise only" "--$option is no option without that" \
		xseg-host --$option memd
done
is "live options are told of where there are some" \
	"$(for peer in cached filed memd volumed; do $peer --help | grep -c "live)"; done | sed 's/[1-9].*/some/' | xargs)" \
	"some 0 some 0"
for program in xbench volumed cached filed memd kvd xseg-memcached; do
	[ ! -x "$BUILD/bin/$program" ] || "$program" --help
done | tr -s ' \n' ' ' | grep -oE -- '--[a-z_]+=[^[]*(repeatable|must be given|default:)[^[(]*\((repeatable|required)\)' >twice.txt
is "no option says twice that it is repeatable, or has to be given" "$(cat twice.txt)" ""
is "options of commands have dashes inside" "$(while read -r command; do
		# shellcheck disable=SC2086
		xseg $command --help
	done <<<"$commands" | grep -oE '^  --[a-z-]+_[a-z_-]+')" ""
is "choices are not told twice" "$(for program in cached kvd; do
		[ ! -x "$BUILD/bin/$program" ] || "$program" --help
	done | grep -E '^ +--[a-z_]+=[a-z]+\|' -A2 | grep -E ': [a-z]+, [a-z]+')" ""
t "a help names the page of stack files" eval "xseg up --help | grep -qxF 'xseg.conf(5) describes stack files.'"
version=$(xseg --version | cut -d ' ' -f 2)
for program in xbench xseg-host volumed cached filed memd; do
	is "$program has a version" "$("$program" --version)" "$program $version"
done

printf '[segment]\nmemory = 8M\n' >one.conf
printf '[segment]\nmemory = 8M\n\0[nothing]\n' >nul.conf
t "a stack file is checked" xseg-host --check one.conf
expect_err 2 "give one of" "a second one is not passed over" xseg-host --check one.conf other.conf
expect_err 2 "there is a NUL in it" "nor is what is behind a NUL" xseg-host --check nul.conf

# to_full PROGRAM WORD...: onto a disk that is full
to_full()
{
	"$@" >/dev/full
}

for words in "xseg --help" "xseg --version" "xseg help volume list" "xseg --json list" \
		"xbench --help" "xseg-host --kinds" "memd --help"; do
	# shellcheck disable=SC2086
	expect_err 1 'standard output(: |","why":")No space' "what '$words' says and is not taken is an error" \
		to_full $words
done

# ---- hints ----

# hints COMMAND...: the commands that its message names
hints()
{
	"$@" 2>&1 </dev/null | grep -oE "'xseg [^']*'" | xargs
}

there=$XSEG_SEGMENT there_not=$XSEG_SEGMENT-b
is "a hint is for the segment that -s names" "$(hints xseg -s "$there_not" info)" \
	"xseg -s $there_not create xseg -s $there_not up STACK.conf"
is "without -s it has none" "$(hints xseg info)" "xseg create xseg up STACK.conf"
is "nor where -s names the same" "$(hints xseg -s "$there" info)" "xseg create xseg up STACK.conf"
is "nor where it is about help" "$(hints xseg -s "$there_not" volume lsit)" "xseg --help"
is "a peer's is for its segment, whatever its environment" "$(hints memd -s "$there_not")" \
	"xseg -s $there_not create"
is "a name that is none is not to be looked at" "$(XSEG_SEGMENT=a/b hints memd)" ""
t "another segment is made" xseg -s "$there_not" create --memory 8M
is "xbench's is for its own, too" \
	"$(hints xbench -s "$there_not" --target=x --rw=read) $(XSEG_SEGMENT=$there_not hints xbench --target=x --rw=read)" \
	"xseg -s $there_not peer list xseg peer list"
expect_json ". == {name: \"$there_not\", state: \"removed\"}" "it is destroyed, which JSON says, too" \
	xseg -s "$there_not" --json destroy

# ---- segments ----

t "a segment is made" xseg create --memory 64M
is "stat says that there is nobody" "$(xseg stat | cut -d ';' -f 1)" "nothing is counted: no peers"
expect_json '.peers == []' "but not in JSON" xseg --json stat
is "of nobody it is not said that all serve" "$(all_serve >/dev/null && echo all)" ""
as_nobody()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/bin/xseg" "$@"
}
sentence="who may not attach is not told to use force"
if [ "$(id -u)" = 0 ] && as_nobody --version >/dev/null 2>&1; then
	expect_err 4 "not yours \(user root\), and its mode and group" "$sentence" \
		as_nobody destroy
	expect_err 4 "not yours \(user root\)" "nor is a look at it a failure" as_nobody info
	expect_err 1 "Permission denied; see the owner" "which would not help" \
		as_nobody destroy --force
	expect_err 1 "group 0: Operation not permitted; name a --group" \
		"nor who may not have a group to ask for less memory" \
		as_nobody -s "$XSEG_SEGMENT-b" --quiet create --memory 8M --group 0
else
	skip "$sentence" "nobody else may run the program from here"
fi
free=$(field_of free_bytes info)
start waiting cached --name waiting --downstream nobody --memory 8M
t "a cache waits for whom it is to send to" wait_for 60 state_is waiting opening
expect_json '.state == "recovering" and .peer_state == "opening"' "which its state says" \
	xseg --json cache status
is "and is not said to wait for a plug" "$(xseg cache status | sed -n 's/^policy *//p')" \
	"write-back: it is starting, and does not serve yet; 'xseg peer list' shows its state"
kill "$started"
wait "$started"
is "one that is stopped meanwhile gives its memory back" \
	"$(field_of free_bytes info) $(field_of memory_bytes cache status waiting)" \
	"$free 0"
start lonely memd --name lonely --memory 8M
t "a peer begins" wait_for 60 state_is lonely running
expect_err 4 "peers are alive: lonely; stop them" "nothing is destroyed below it" xseg destroy
is "what cannot be told while it runs is not claimed" "$(xseg check | sed 's/.* is sound//')" \
	", as far as can be told while peers run"
kill -KILL "$started"
wait "$started" 2>/dev/null
expect_json ".[] | select(.name == \"$XSEG_SEGMENT\").state == \"stale\"" \
	"one that died leaves a segment that is to be taken over" xseg --json list
is "which check says, too" "$(xseg check | sed 's/.* is sound//')" \
	"; its peers have died: 'xseg up STACK.conf' takes it over"
at=$(grep -obUaP 'lonely\x00' "/dev/shm/xseg.$XSEG_SEGMENT" | head -n 1 | cut -d : -f 1)
printf 'x%.0s' {1..64} |
	dd of="/dev/shm/xseg.$XSEG_SEGMENT" bs=1 seek="$at" conv=notrunc status=none
expect_err 1 "has 2 problems; 'xseg check --fix' rebuilds" "damage is told with its remedy" xseg check
is "which puts a name back" "$(xseg check --fix | sed 's/.* is sound now, //;s/;.*//')" \
	"as 2 problems were mended"
t "it is destroyed" xseg destroy
: >"/dev/shm/xseg.$XSEG_SEGMENT"
is "what was half made is destroyed without advice to do that" \
	"$(xseg destroy | sed 's/.*: segment [^ ]* //')" "is half made, and its maker is dead"

# ---- a catalogue that is read ----

cat >slow.conf <<END
[segment]
memory = 64M
[peer memd]
memory = 8M
latency = 10ms
[peer volumed]
downstream = memd
END
volumes_at_once()
{
	xseg --quiet up slow.conf && field_of volumes status
}
is "whoever looks as soon as all serve learns how many volumes there are" "$(volumes_at_once)" 0
t "that stack is fast" xseg peer set memd latency=0
for i in $(seq 500); do
	xseg --quiet volume create "$(printf %063d "$i")" --size 512 || break
done
is "500 volumes are made, more than one answer of volumed has room for" "$i" 500
expect_json '[length, (map(.name) | unique | length)] == [500, 500]' "all are listed" xseg --json volume list
is "to people, too" "$(xseg volume list | grep -c ^0)" 500
t "that stack is stopped" xseg down

# ---- more volumes than a cache tells apart ----

cat >many.conf <<END
[segment]
memory = 64M
[peer memd]
memory = 8M
[peer cached]
downstream = memd
memory = 4M
dirty_age = 1h
[peer volumed]
downstream = cached
END
t "a stack with a small cache comes up" xseg up many.conf
for i in $(seq 17); do
	xseg --quiet volume create "many$i" --size 1M &&
		xbench --volume="many$i" --rw=write --number_ios=1 || break
done >/dev/null
is "17 volumes are written" "$i $(xseg --json cache status cached | jq -c '.volumes | length')" "17 15"
expect_json '.counted and .dirty_bytes == 4096' "of one it is known what is dirty" \
	xseg --json cache status cached --volume many1
expect_json '.counted == false' "of one that finds no room it is not said that nothing is" \
	xseg --json cache status cached --volume many17
is "nor in words" "$(xseg cache status cached --volume many17 | grep -cE 'dirty|^counted   together with other')" 1
t "it goes down" xseg down

# ---- a catalogue that is damaged ----

cat >damaged.conf <<END
[segment]
memory = 64M
[peer filed]
dir = $TMP/damaged
[peer volumed]
downstream = filed
END
t "a stack on files comes up" xseg up damaged.conf
t "a volume is made" xseg volume create whole --size 8M
t "and one more" xseg volume create lost --size 8M
t "it goes down" xseg down
catalogue=$(find "$TMP/damaged" -name :catalog)
at=$(grep -obUaP 'lost\x00' "$catalogue" | head -n 1 | cut -d : -f 1)
for f in "$catalogue" "$(find "$TMP/damaged" -name :catalog.copy)"; do
	printf x | dd of="$f" bs=1 seek=$((at + 100)) conv=notrunc status=none
done
t "with a damaged record it comes up again" xseg up damaged.conf
damage="the catalogue of volumes is damaged: records of the object :catalog are damaged, and 1 record \
cannot be read; see 'xseg volume recover --list'"
is "status says that a volume is missing" "$(xseg status | sed -n 's/^DAMAGE *//p')" "$damage"
expect_json '.volumes == 1 and .damaged_records == 1 and .catalogue_damage != null' "in JSON, too" \
	xseg --json status
xseg --json volume list >list.txt 2>note.txt
is "and so does who lists them" "$? $(jq -c 'map(.name)' list.txt) $(cat note.txt)" \
	"0 [\"whole\"] $(jq -cn --arg d "$damage" '{note: {what: "volume list",
		why: ($d | sub("; .*"; "")), next: ($d | sub(".*; "; ""))}}')"
start other volumed --name other
t "another volumed begins, without a downstream" wait_for 60 state_is other running
is "of several it is said which cannot tell" "$(xseg status | sed -n 's/^volumes *//p')" \
	"unknown: 'xseg volume list --volumed other' says why"
kill "$started"
wait "$started"
t "it goes down once more" xseg down
printf '\x03' | dd of="$catalogue" bs=1 seek=$((at - at % 512 + 8)) conv=notrunc status=none
t "with a record of another version it comes up, too" xseg up damaged.conf
expect_err 1 "the catalogue of volumes is of another version of volumed; .*start the version that made it" \
	"and says what that is" xseg volume list
t "it goes down at last" xseg down

# ---- a stack ----

cat >stack.conf <<END
[segment]
memory = 96M
[peer memd]
memory = 32M
[peer cached]
downstream = memd
memory = 16M
dirty_age = 1h
[peer volumed]
END
expect_err 2 "line 9: peer 'volumed' needs downstream =" \
	"a volumed that has nothing to do is refused" xseg up stack.conf
echo "downstream = cached" >>stack.conf
t "a segment of another size is there" xseg create --memory 128M
xseg up stack.conf >up.txt 2>note.txt
is "with a downstream the stack comes up, in what is there" \
	"$? $(notes note.txt | sed 's/.* keeps //; s/;.*//')" \
	"0 its 128M of memory and 2048 requests"
t "it goes down" xseg down
t "a segment of other requests is there" xseg create --memory 96M --requests 1024
xseg up stack.conf >up.txt 2>note.txt
is "which is noted, too" "$? $(notes note.txt | sed 's/.* keeps //; s/;.*//')" \
	"0 its 96.0M of memory and 1024 requests"
t "it goes down" xseg down
xseg up stack.conf >up.txt 2>note.txt
is "of its own size nothing is noted" "$? $(notes note.txt)" "0 "
t "it goes down" xseg down
sed "s/^dirty_age.*/&\ncpus = 1023/" stack.conf >cpus.conf
xseg up cpus.conf >up.txt 2>note.txt
is "what a peer warns of is noted" "$? $(notes note.txt)" \
	"0 xseg: cached: warning: this machine has no processor 1023, so thread 0 may run on any; see --cpus"
t "it is stopped" xseg peer stop --force cached
is "and of one that is started alone, too" "$(xseg peer start cached 2>&1 >peer.txt | cut -d , -f 1)" \
	"xseg: cached: warning: this machine has no processor 1023"
expect_json ".[] | select(.name == \"$XSEG_SEGMENT\").peers_running == 3" \
	"list counts peers, not who looks after them" xseg --json list
sed "s/^\[segment\]/&\nname = $XSEG_SEGMENT/" stack.conf >named.conf
is "a hint is for the segment that a stack file names, too" \
	"$(XSEG_SEGMENT='' hints xseg up named.conf)" \
	"xseg -s $XSEG_SEGMENT reload named.conf"
sed "s/^\[segment\]/&\nname = $XSEG_SEGMENT-b/" stack.conf >named.conf
expect_err 4 "segment $XSEG_SEGMENT has a stack that runs" "which is not asked when another is given" \
	xseg up named.conf
t "a volume is made" xseg volume create disk --size 8M
xseg volume export disk image.raw >&- 2>closed.txt
is "with standard output closed an export says so" "$? $(grep -c 'Bad file descriptor' closed.txt)" "1 1"
t "and it is not in the image" cmp -n 8388608 image.raw /dev/zero
t "and another" xseg volume create other --size 8M
t "which is written to" xbench --volume=other --rw=write --number_ios=4
expect_err 4 '[0-9][kM] are dirty; flush first' "what is dirty is not dropped" xseg cache drop cached
is "who flushes one volume is not told that all is flushed" \
	"$(xseg cache flush cached --volume disk)" "cache cached, volume disk is flushed"
is "nor has it been" "$(is_clean && echo clean)" ""
is "a whole one is" "$(xseg cache flush cached)" "cache cached is flushed"
t "the store takes its time" xseg peer set memd fail=flush:1@1:stall=7s
xseg cache flush cached 2>wait.txt >/dev/null
is "without a terminal a line says what is waited for" "$? $(sort -u wait.txt)" \
	"0 xseg: cache flush cached: flushing, 0 dirty"
expect_err 1 '"standard output","why":"No space left on device","next":"nothing more was printed"' \
	"of what is longer than a buffer, too, it is said why it cannot be written" \
	to_full xseg --json stat
t "both volumes" xseg volume remove other
t "are removed" xseg volume remove disk
is "to delete objects that were never made is no error" \
	"$(xseg --json stat | jq -c '[.peers[].errors] | add')" 0
xbench --target=memd --rw=read --number_ios=1 >told.txt 2>&1
is "who goes past the cache is told why not" \
	"$? $(grep -c 'target: memd serves only its cache, cached; send to that, or' told.txt)" \
	"4 1"
t "volumed stops" xseg peer stop volumed
start alone volumed --name alone
t "another one is started, without a downstream" wait_for 60 state_is alone running
expect_err 4 "cannot be read: it has no downstream;" "it says why it has no volumes" \
	xseg volume list --volumed alone
kill "$started"
wait "$started"
kill_hard "$(xseg --json status | jq .supervisor.pid)"
expect_json '. == {name: "volumed", state: "running"}' "volumed is started" \
	xseg --json peer start volumed
expect_json '.state == "set"' "the cache is set" xseg --json peer set cached dirty_age=2h
expect_json '.state == "killed"' "volumed dies, with nobody to start it again" \
	xseg --json peer kill volumed
expect_err 4 "volumed is dead; start it with 'xseg peer start volumed'" "a load does not wait for it" \
	timeout 60 xbench --volume=disk --rw=read --number_ios=1
start spare cached --name spare --memory 8M
t "another cache begins" wait_for 60 state_is spare running
expect_err 2 "has several caches; name one" "of two caches one has to be named" xseg cache status
kill "$started"
wait "$started"
expect_json '.name == "cached" and .state == "running"' "one that is stopped is none of several" \
	xseg --json cache status
expect_json '.state == "stopped"' "the cache is stopped" xseg --json peer stop cached
expect_err 2 "has several caches; name one" "of two that are stopped, too" xseg cache status
is "one that is stopped is not said to have failed" "$(xseg cache status cached | head -n 1 | cut -d , -f 2)" " stopped"
is "nor on the page of the stack" "$(xseg status | grep -c '^cache  *cached: stopped')" 1
expect_json '.memory_bytes + .used_bytes + .dirty_bytes + .metadata_bytes + .objects == 0 and .writes > 0' \
	"a stopped cache holds nothing, but has counted" xseg --json cache status cached
is "which the page of the stack says" \
	"$(xseg status | grep -c 'write-back: stopped, it holds nothing; .* peer start cached')" 1
expect_json '.state == "removed"' "everything stops" xseg --json down
finish
