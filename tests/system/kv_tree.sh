#!/bin/bash
# kv_tree.sh - `xseg kv import` of a directory, and `xseg kv export` of it: the trees are equal, with
# odd names, links, empty files and directories, deep paths and large files. Nothing leads outside.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg kvd cached memd jq python3 diff

cat >stack.conf <<END
[segment]
memory = 256M

[peer memd]
memory = 128M

[peer cached]
downstream = memd
memory = 24M

[peer values]
kind = kvd
downstream = cached
size = 100M
END
t "a stack comes up" xseg up stack.conf

# same A B: names, contents and targets of links; diff is not told of names that are no text
same()
{
	python3 - "$1" "$2" <<'END'
import os, sys
def tree(root):
    root, found = os.fsencode(root), {}
    for at, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(at, name)
            key = os.path.relpath(path, root)
            if os.path.islink(path):
                found[key] = ("link", os.readlink(path))
            elif os.path.isdir(path):
                found[key] = ("directory",)
            elif os.path.isfile(path):
                found[key] = ("file", open(path, "rb").read())
    return found
a, b = tree(sys.argv[1]), tree(sys.argv[2])
for key in sorted(set(a) | set(b)):
    if a.get(key) != b.get(key):
        print("differs:", key)
sys.exit(a != b)
END
}
# empty: no key is left
empty()
{
	xseg kv list | sed 's/ /%20/g; s/^-/%2D/' >keys
	while read -r key; do
		xseg --quiet kv delete --encoded "$key" </dev/null
	done <keys
	[ "$(xseg kv list)" = "no keys" ]
}

# ---- a tree with all that may be in one ----

mkdir -p tree/a/b/c tree/empty tree/more/empty
(
	cd tree || exit 1
	: >zero
	printf 1 >a/b/c/d
	printf 2 >.hidden
	printf 3 >' two words '
	printf 4 >$'new\nline'
	printf 5 >$'bytes\377'
	printf 6 >größe
	printf 7 >-n
	# what looks like an encoded name
	for name in % %% 100% %2 %20 a%20b %25 %2525 %2E %2E. %2E%2E %252E. %2F a%2Fb %00 a%00b; do
		printf '%s' "$name" >"$name"
		mkdir "d$name" "$name.d"
		printf x >"d$name/x"
		printf y >"$name.d/$name"
	done
	mkdir '%2E%2E.' '%x' '%2E%2E%2E'
	long=$(head -c 255 /dev/zero | tr '\0' l)
	printf 8 >"$long"
	mkdir "${long:0:255}d" 2>/dev/null || mkdir "${long:0:254}d"
	printf 9 >"${long:0:254}d/$long"
	head -c 3000000 /dev/urandom >large
	head -c 600000 /dev/urandom >a/middle
	head -c 524288 /dev/urandom >a/edge
	head -c 1048576 /dev/urandom >a/mib
	ln -s large link
	ln -s ../large a/up
	ln -s ../../a/b/c/d a/b/updown
	ln -s . itself
	ln -s a/b/ directory
	ln -s nowhere dangling
	ln -s ./large dotted
	for i in $(seq 100); do mkdir "deep$i" && cd "deep$i" || exit 1; done
	printf deep >file
)
t "a tree is imported" xseg kv import tree
t "its files are values" bash -c 'xseg kv get a/b/c/d | grep -q 1 && xseg kv get large | cmp - tree/large'
t "it is exported" xseg kv export copy
t "and is the same" same tree copy
t "diff says so" diff -r --no-dereference tree copy
is "what an import counts is what an export has" \
	"$(xseg --json kv import tree | jq -c '[.keys, .value_bytes, .skipped]')" \
	"$(xseg --json kv export copy2 | jq -c '[.keys, .value_bytes, .skipped]')"
expect_err 4 "exists; .*--force" "files are not replaced" xseg kv export copy
t "but with --force" xseg kv export copy --force
t "and it is the same" same tree copy
is "no partial file is left" "$(find copy -name '*partial*')" ""
t "it is imported behind a prefix" xseg kv import tree --prefix sub/dir/
t "and exported with it" xseg kv export prefixed --prefix sub/
t "a directory deeper" same tree prefixed/sub/dir
t "all is deleted" empty
t "an export is imported" xseg kv import copy
t "and exported again" xseg kv export copy3
t "it is still the same" same tree copy3
t "all is deleted" empty

# ---- links that lead outside ----

mkdir outside out out/sub
echo secret >outside/file
echo in >out/in
mkdir outside/dir
echo deep >outside/dir/deep
ln -s "$TMP/outside/file" out/absolute
ln -s ../outside/file out/above
ln -s ../../outside/file out/sub/above
ln -s ../outside/dir out/dir
ln -s sub/../in out/turns
ln -s sub/../../outside/file out/turned
ln -s ../in out/sub/inside
ln -s / out/root
mkfifo out/fifo
is "links are imported, and a fifo is not" "$(xseg --json kv import out | jq -c '[.keys, .skipped]')" \
	"[9,1]"
is "a link is its target" "$(xseg kv get above)" ../outside/file
is "an export has those that lead nowhere else" \
	"$(xseg --json kv export links | jq -c '[.keys, .skipped]')" "[2,7]"
is "and no other" "$(cd links && find . -type l | sort)" "./sub/inside"
rm out/root out/fifo
t "what they lead to is imported with --follow" xseg kv import out --follow
t "it is exported" xseg kv export followed
t "and looks the same, but for a link that turns" \
	bash -c 'diff -r out followed | grep -vx "Only in out: turns" | wc -l | grep -qx 0'
is "as files" "$(cd followed && find . -type l | sort)" "./sub/inside"

# ---- what stands in the way ----

t "all is deleted" empty
printf 1 | xseg --quiet kv put a
printf 2 | xseg --quiet kv put a/b
expect_err 4 "needs a file and a directory of one name; add --flat" \
	"a key that is also a directory is told" xseg kv export both
t "--flat has both" xseg kv export both2 --flat
is "under their names" "$(ls both2)" $'a\na%2Fb'
xseg --quiet kv delete a
mkdir evil
ln -s ../outside evil/a
expect_err 4 "needs a file and a directory" "a link is not followed" xseg kv export evil --force
is "and nothing is behind it" "$(ls outside)" $'dir\nfile'
t "all is deleted" empty
for key in ../up /root // . x/.. a//b a/./b '%00' 'a%00/b' 'b/' 'a/%00'; do
	printf '%s' "$key" | xseg --quiet kv put --encoded "$key"
done
all=$(xseg --json kv list | jq -cS 'map(del(.version)) | sort_by(.key, .key_base64)')
t "keys that are no paths are exported" xseg kv export odd
is "within the directory" "$(ls -A . | grep -c '^up$')" 0
is "each as a file" "$(find odd -type f | wc -l)" "$(jq length <<<"$all")"
t "they are deleted" empty
t "and imported" xseg kv import odd
is "they are the same keys" \
	"$(xseg --json kv list | jq -cS 'map(del(.version)) | sort_by(.key, .key_base64)')" "$all"
t "all is deleted" empty

# ---- a real tree ----

# as much of it as is soon done
mkdir doc
for dir in /usr/share/doc/[a-c]*; do
	[ "$(du -s doc | cut -f1)" -lt "$(bound 8000 60000)" ] || break
	cp -a "$dir" doc/ 2>/dev/null
done
find doc -xtype l -delete
t "a part of /usr/share/doc is imported, with --follow" xseg kv import doc --follow
t "it is exported" xseg kv export doc2
t "and equal" diff -r doc doc2
t "no key is unreadable" xseg kv verify
is "the segment is sound" "$(field_of ok check)" true
t "the stack goes down" xseg down
finish
