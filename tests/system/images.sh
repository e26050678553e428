#!/bin/bash
# images.sh - an import spares volumes that others use, and an export spares existing files. An
# image has its name only when it is whole.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg volumed memd xbench jq cmp

cat >stack.conf <<END
[segment]
memory = 96M

[peer memd]
memory = 16M

[peer volumed]
downstream = memd
END
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 4M
head -c 4M /dev/urandom >image
t "an image is imported" xseg volume import v image

# ---- a volume in use ----

start bench xbench --volume=v --rw=randread --bs=4k --runtime=300s --time_based --rate_iops=10
bench=$started
in_use()
{
	xseg volume import v image 2>&1 | grep -q "in use by xbench"
}
t "a program has the volume open" wait_for 60 in_use
expect_err 4 "^xseg: volume import v: it is in use by xbench \(pid $bench\); .*--force" \
	"an import into it is refused, with the program's name" xseg volume import v image
expect_err 4 "in use by" "from standard input, too" bash -c 'xseg volume import v - <image'
t "an export is not" xseg volume export v copy
t "with --force it is done" xseg volume import v image --force
kill "$bench"
wait "$bench" 2>/dev/null
t "when the program has ended nothing is refused" xseg volume import v image
mkfifo slow
exec 7<>slow
# With --force, as one of the looks below may be at it just then.
start import xseg volume import v slow --force
import=$started
import_in_use()
{
	xseg volume import v image 2>&1 | grep -q "in use by xseg (pid $import)"
}
t "another import uses it, too" wait_for 60 import_in_use
kill -INT "$import"
wait "$import"
is "which is interrupted" "$?" 3
exec 7>&-
t "the image is imported again" xseg volume import v image

# ---- a file that is there ----

echo precious >file
expect_err 4 "^xseg: volume export v: file exists; .*--force" "a file that is there is not overwritten" \
	xseg volume export v file
is "it is as it was, and nothing is beside it" "$(cat file) $(ls file*)" "precious file"
ln -s nowhere link
expect_err 4 "link exists" "nor is a link that leads nowhere" xseg volume export v link
chmod 600 file
t "with --force it is replaced" xseg volume export v file --force
t "by the whole image" cmp file image
is "which has the old one's mode, and nothing is beside it" "$(stat -c %a file) $(ls file*)" "600 file"
mkdir there
echo old >there/target
ln -s there/target to
t "a link's file is replaced where it is" xseg volume export v to --force
is "the link stays" "$(readlink to) $(cmp image there/target) $(ls there to*)" "there/target  to

there:
target"
t "a pipe is written in place" bash -c 'xseg volume export v >(cat >piped); wait; cmp piped image'
t "a character device, too" xseg volume export v /dev/null
is "which stays one" "$(stat -c %F /dev/null)" "character special file"
expect_exit 4 "a directory is no file" xseg volume export v there

# ---- an export that does not end ----

t "memd is made slow" xseg peer set memd latency=10s
rm -f part
start export xseg volume export v part
export=$started
t "an export has begun" wait_for 60 test -e part.partial
expect_err 4 "another export is writing part.partial" "a second one does not write the same file" \
	xseg volume export v part
kill -INT "$export"
wait "$export"
is "it is interrupted" "$?" 3
is "and leaves only what is called partial" "$(ls part*)" part.partial
t "and says so" grep -q "^xseg: interrupted: .*the data before that is in part.partial; run" export.log
start export xseg volume export v part
export=$started
sleep 0.1
kill -KILL "$export"
wait "$export" 2>/dev/null
is "killed, it leaves no more" "$(ls part*)" part.partial
t "memd is made fast" xseg peer set memd latency=0ms
t "a read is made to fail" xseg peer set memd fail=read:1:EIO
expect_err 1 "Input/output error; .*the data before that is in part.partial" \
	"a store's error is told with the file's name" xseg volume export v part
is "and no other file is there" "$(ls part*)" part.partial
t "memd is mended" xseg peer set memd fail=
t "the next export begins it anew" xseg volume export v part
is "and leaves the whole one" "$(cmp part image) $(ls part*)" " part"
t "memd is slow again" xseg peer set memd latency=10s
start export xseg volume export v late
export=$started
t "an export begins" wait_for 60 test -e late.partial
echo mine >late
t "memd is fast again" xseg peer set memd latency=0ms
wait "$export"
is "a file that somebody makes meanwhile is refused at the end" "$? $(cat late)" "4 mine"
t "the image is beside it, whole" cmp late.partial image
t "the stack goes down" xseg down
finish
