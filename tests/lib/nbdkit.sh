# nbdkit.sh - an nbdkit that can load a plug-in which was built with a sanitizer; tests that start
# one source it after system.sh.
#
# nbdkit itself was built without one. So under SAN there is a script of its name, first in PATH.
# The script makes nbdkit load the sanitizer's runtime before all else, and write its findings,
# leaks too, into files. nbdkit_is_clean, at the end of a test, fails on any of them.
#
# strict_string_checks is off for nbdkit alone, not for the programs of this tree: its strndup() of
# a client's data finds no 0. Nor does nbdkit free a locale. At its exit a library of its own does,
# and then now and then waits for ever for a lock of the C library, only with AddressSanitizer. A
# command of its option --run must begin with $alone, or it has the runtime too.
#
# One thread of nbdkit writes into a page, which cached then keeps, and another one copies from it.
# Their order is made by cached, which is another process, so ThreadSanitizer takes it for a race in
# copy_pieces(). Such reports are suppressed. They are not in unit tests of the library, which have
# the cache in their own process.

alone=

# What a file says, but for what nbdkit has allocated itself, whose threads are still there when it
# exits, and what hangs on that.
said_of_ours()	# FILE
{
	awk '/ leak of /{ block = $0; direct = /^Direct/; next }
		block && /^ *#1 /{ if (direct && !/\/nbdkit\+/) print block "\n" $0; block = ""; next }
		/ERROR: LeakSanitizer|^SUMMARY: .* leaked|^=*$|^ *#/{ next }
		{ print }' "$1"
}

nbdkit_is_clean()
{
	local file nr=$nr_failed
	[ -n "$SAN" ] || return 0
	for file in "$TMP"/said.nbdkit*; do
		[ ! -e "$file" ] || [ -z "$(said_of_ours "$file")" ] ||
			not_ok "no sanitizer says anything of nbdkit" "$file"
	done
	[ "$nr_failed" -gt "$nr" ] || ok "no sanitizer says anything of nbdkit"
}

sanitize_nbdkit()	# RUNTIME...
{
	local name path preload='' nbdkit
	nbdkit=$(command -v nbdkit)
	for name; do
		path=$(${CC:-gcc} -print-file-name="$name")
		[ -e "$path" ] || skip_all "${CC:-gcc} has no $name"
		preload+=${preload:+:}$(realpath "$path")
	done
	mkdir -p "$TMP/sanitized"
	echo 'void freelocale(void *l) { (void)l; }' |
		${CC:-gcc} -shared -fPIC -x c -o "$TMP/sanitized/exits.so" - ||
		skip_all "${CC:-gcc} makes no shared object"
	preload+=:$TMP/sanitized/exits.so
	echo 'race:copy_pieces' >"$TMP/sanitized/suppressions"
	cat >"$TMP/sanitized/nbdkit" <<END
#!/bin/bash
said=log_path=$TMP/said:log_exe_name=1
export ASAN_OPTIONS="\${ASAN_OPTIONS:-}:strict_string_checks=0:\$said"
export UBSAN_OPTIONS="\${UBSAN_OPTIONS:-}:\$said"
export TSAN_OPTIONS="\${TSAN_OPTIONS:-}:\$said:suppressions=$TMP/sanitized/suppressions"
exec $([ "$SAN" != tsan ] || echo setarch -R) env LD_PRELOAD=$preload\${LD_PRELOAD:+:\$LD_PRELOAD} "$nbdkit" "\$@"
END
	chmod +x "$TMP/sanitized/nbdkit"
	export PATH="$TMP/sanitized:$PATH"
	alone="exec env -u LD_PRELOAD"
}

case $SAN in
asan) sanitize_nbdkit libasan.so libubsan.so ;;
tsan) sanitize_nbdkit libtsan.so ;;
esac
