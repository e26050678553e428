#!/bin/bash
# wrong_files.sh - the files of a store were swapped, cut short or partly put back while it was
# stopped. Wrong content is an error, through the whole stack, and never data.
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"
need xseg volumed cached filed python3 jq

cat >stack.conf <<-END
	[segment]
	memory = 64M
	[peer filed]
	dir = $TMP/objects
	[peer cached]
	downstream = filed
	memory = 8M
	[peer volumed]
	downstream = cached
	object_size = 256k
END
log=$TMP/xseg-$XSEG_SEGMENT.log
head -c 2M /dev/urandom >image
export="xseg --quiet volume export vol"

# The files of volumes' objects, the largest first; the catalogue's are smaller, or one.
files()
{
	find "$TMP/objects" -type f -name '*:*' ! -name ':*' -size +128k | sort
}

# attributes FILE...: how many of them have one
attributes()
{
	python3 -c 'import os, sys; print(sum("user.xseg" in os.listxattr(f) for f in sys.argv[1:]))' "$@"
}

python3 -c 'import os; open("x", "w"); os.setxattr("x", "user.xseg", b"1")' 2>/dev/null ||
	skip_all "the file system of $TMP has no user attributes"

t "a stack is started" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 2M
t "and written" xseg --quiet volume import vol image
expect_json '.files[0].attributes' "status says that wrong files are noticed" xseg --json status
t "and for people, too" grep -q "swapped and short files are noticed" <(xseg status)
t "it is stopped" xseg down
mapfile -t file < <(files)
is "each object has its file" "${#file[@]}" 8

cp -a objects good
mv "${file[0]}" x && mv "${file[1]}" "${file[0]}" && mv x "${file[1]}"
t "two files are swapped, and it is started again" xseg up stack.conf
expect_exit 1 "reading the volume is an error" $export copy
t "and no wrong data" [ ! -e copy ]
t "the log says what it is, and of which file" \
	grep -qE "read of .*objects/.* failed: .*its file belongs to another object: put back the right one" "$log"
t "it is stopped" xseg down
rm -rf objects && cp -a good objects

truncate -s 4k "${file[0]}"
t "one is cut short, and it is started again" xseg up stack.conf
expect_exit 1 "reading the volume is an error" $export copy
t "and no wrong data" [ ! -e copy ]
t "the log says what it is" grep -q "its file was cut short: put back the right one" "$log"
t "the volume can be removed" xseg volume remove vol
t "it is stopped" xseg down
is "nothing is left of it" "$(files)" ""
rm -rf objects && cp -a good objects

python3 -c 'import os, sys; [os.removexattr(f, "user.xseg") for f in sys.argv[1:]]' "${file[@]}"
t "a store whose files have no attributes, as of an older filed, is started" xseg up stack.conf
t "it is read" $export copy
t "and is what was written" cmp image copy
rm copy
is "reading gives none an attribute" "$(attributes "${file[@]}")" 0
t "it is written" xseg --quiet volume import vol image --force
t "and stopped" xseg down
is "what was changed has its attribute" "$(attributes "${file[@]}")" 8
finish
