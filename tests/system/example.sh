#!/bin/bash
# example.sh - docs/example.c and docs/kv_example.c, built outside the repository with the files of `make install`, shared
# and static, runs on a real stack. The library exports the functions that its headers declare, and
# no more.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
command -v pkg-config >/dev/null 2>&1 || skip_all "pkg-config is not there"
need xseg volumed memd xseg-host
CC=${CC:-gcc}

# As tests/tidy/install.sh: the flags that the caller's make was given hold here too, its job server
# does not.
MAKEFLAGS=$(echo "${MAKEFLAGS:-}" | sed -E 's/ ?--jobserver-[a-z]+=[^ ]*//g; s/ ?-j[0-9]*//g')
export MAKEFLAGS
unset MFLAGS MAKELEVEL
t "the library is installed" make --no-print-directory -C "$root" BUILD="${BUILD#"$root"/}" CC="$CC" \
	PREFIX=/usr DESTDIR="$TMP/root" install
lib=$TMP/root/usr/lib
# from here, as its flags are words
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=root

build()		# PROGRAM SOURCE FLAGS...
{
	local program=$1 source=$2
	shift 2
	cp "$root/docs/$source" . &&
		$CC -Wall -Wextra -Werror -o "$program" "$source" -I"$TMP/root/usr/include" "$@"
}

# shellcheck disable=SC2046
t "the example is built with the shared library" build shared example.c $(pkg-config --cflags --libs xseg)
# shellcheck disable=SC2046
t "and with the static one" build static example.c -static $(pkg-config --static --cflags --libs xseg)
# shellcheck disable=SC2046
t "the example of a store of values is built" \
	build values kv_example.c $(pkg-config --cflags --libs xseg)
soname=$(objdump -p "$lib/libxseg.so" | awk '$1 == "SONAME" { print $2 }')
is "it needs the library by its soname" \
	"$(objdump -p shared | awk '$1 == "NEEDED" && $2 ~ /xseg/ { print $2 }')" "$soname"
is "which leads to the library" "$(readlink -f "$lib/$soname")" "$(readlink -f "$lib/libxseg.so")"
is "the library needs nothing but the C library" \
	"$(objdump -p "$lib/libxseg.so" | awk '$1 == "NEEDED" { print $2 }' |
	grep -v '^lib[cm]\.so\|^libpthread\|^ld-')" ""

cat >outside.cc <<'END'
#include <cstdio>
#include <xseg/volume.h>

int main(int argc, char **argv)
{
	xseg_volume_params params = {};
	xseg_io io = {};
	xseg_volume *volume;
	xseg_queue *queue;
	xseg_error err = { "name a segment and a volume" };
	static char buf[4096];

	params.segment = argc == 3 ? argv[1] : NULL;
	params.volume = argv[argc - 1];
	if (xseg_volume_open(&params, &volume, &err) ||
	    xseg_queue_create(volume, NULL, &queue, &err))
		return std::puts(err.text), 1;
	io.op = XSEG_OP_READ;
	io.size = sizeof(buf);
	io.buf = buf;
	long n = xseg_queue_run(queue, &io);
	std::printf("%ld bytes, '%c'\n", n, buf[4095]);
	xseg_queue_destroy(queue);
	xseg_volume_close(volume);
	return 0;
}
END
with_cplusplus=$(command -v g++ >/dev/null 2>&1 && echo yes)
if [ -n "$with_cplusplus" ]; then
	for standard in c++11 c++17 c++20; do
		# shellcheck disable=SC2046
		t "a program in $standard is built" g++ -std=$standard -Wall -Wextra -pedantic \
			-Werror -o cplusplus outside.cc -I"$TMP/root/usr/include" \
			$(pkg-config --cflags --libs xseg)
	done
	cat >values.cc <<'END'
#include <xseg/kv.h>

int main()
{
	xseg_kv_params params = {};
	xseg_kv_queue *queue;
	xseg_kv_io io = {};
	xseg_kv *store;

	io.op = XSEG_KV_GET;
	return xseg_kv_open(&params, &store, NULL) == 0 &&
		xseg_kv_queue_create(store, NULL, &queue, NULL) == 0 &&
		xseg_kv_run(queue, &io) == 0;
}
END
	# shellcheck disable=SC2046
	t "a program in C++ that uses a store is built" g++ -std=c++11 -Wall -Wextra -pedantic \
		-Werror -o cplusplus_values values.cc -I"$TMP/root/usr/include" \
		$(pkg-config --cflags --libs xseg)
else
	skip "programs in C++ are built" "g++ is not there"
fi
for header in xseg/xseg.h xseg/volume.h xseg/kv.h xtypes/xhist.h; do
	echo "#include <$header>" >lone.c
	t "$header is strict C11" $CC -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only \
		-I"$TMP/root/usr/include" lone.c
done

# ---- what it shows ----

printf '#include <xseg/volume.h>\n#include <xseg/kv.h>\n' >headers.c
$CC -Iroot/usr/include -aux-info declared.txt -c -o headers.o headers.c
grep -E '^/\* [^ ]*(xseg|xtypes)/' declared.txt | grep -v ' static ' |
	grep -oE '\b(xseg|xhist)_[a-z0-9_]+ \(' | tr -d ' (' | sort -u >declared
nm -D --defined-only "$lib/libxseg.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
	sort -u >shown
t "all that the headers declare is shown, and no more" diff declared shown
is "each under a version" \
	"$(nm -D --defined-only "$lib/libxseg.so" | awk '$2 == "T" && $3 !~ /@@XSEG_1$/' | wc -l)" 0

# ---- on a stack ----

cat >stack.conf <<END
[segment]
memory = 64M
[peer memd]
memory = 16M
[peer volumed]
downstream = memd
END
export LD_LIBRARY_PATH=$lib
expect_err 1 "there is no segment" "without a segment it says so" ./shared "$XSEG_SEGMENT" vol
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 8M
expect_err 1 "no volume 'none'" "without the volume as well" ./static "$XSEG_SEGMENT" none
is "the example runs with the shared library" "$(./shared "$XSEG_SEGMENT" vol 2>&1)" \
	"all of it is there"
is "and with the static one" "$(./static "$XSEG_SEGMENT" vol 2>&1)" "all of it is there"
if [ -n "$with_cplusplus" ]; then
	is "a program in C++ reads what that wrote" "$(./cplusplus "$XSEG_SEGMENT" vol 2>&1)" \
		"4096 bytes, 'a'"
fi
if command -v valgrind >/dev/null 2>&1; then
	t "it leaks nothing" \
		valgrind -q --leak-check=full --error-exitcode=9 ./shared "$XSEG_SEGMENT" vol
else
	skip "it leaks nothing" "valgrind is not there"
fi
is "and leaves nothing in the segment" \
	"$(xseg --json peer list | jq '[.[] | select(.kind == "client")] | length')" 0
t "everything stops" xseg down
finish
