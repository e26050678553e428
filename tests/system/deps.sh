#!/bin/bash
# deps.sh - what `make deps` and the goals do where packages are missing and nobody may install
# them, or some cannot be installed; and what they do without room in /dev/shm.
#
# The programs that know and install packages are stand-ins: $MISSING are not installed, $NONE cannot
# be.
. "$(dirname "$0")/../lib/system.sh"

mkdir bin with-sudo
for program in awk bash cat df dirname env grep head mkdir rm sed sh sort tail touch tr; do
	ln -s "$(command -v $program)" bin
done
cat >bin/dpkg-query <<'END'
#!/bin/bash
case " $MISSING " in *" ${!#} "*) exit 1 ;; esac
echo installed
END
echo 'echo 1000' >bin/id
cat >bin/apt-get <<'END'
#!/bin/bash
echo "apt-get $*" >>"$TMP/installed"
for word; do
	case " ${NONE:-} " in *" $word "*) exit 100 ;; esac
done
END
echo exit >bin/apt-cache
cat >with-sudo/sudo <<'END'
#!/bin/bash
[ -n "${GIVES:-}" ] || exit 1
[ "$1" = -n ] || exec "$@"
END
chmod +x bin/id bin/dpkg-query bin/apt-get bin/apt-cache with-sudo/sudo

# deps MISSING WORD...: deps.sh with these words, where these packages are missing
deps()
{
	local missing=$1
	shift
	rm -f installed
	PATH=${sudo:+$TMP/with-sudo:}$TMP/bin MISSING=$missing "$BASH" "$root/tests/lib/deps.sh" "$@"
}

goal=(build unit --optional check demo bench)
sudo=
t "a user has all that a build needs, no valgrind, and no sudo: that is no error" \
	deps valgrind "${goal[@]}"
deps valgrind "${goal[@]}" >said 2>&1
t "it is said what is missing" grep -q "^  valgrind  *bench/scale.sh" said
t "and what installs it" grep -q "as root run: apt-get install valgrind" said
expect_err 1 "as root run: apt-get install gcc" "without a compiler it is an error" \
	deps "gcc valgrind" "${goal[@]}"
t "a goal asks for no package of another" deps "valgrind libcmocka-dev nbdkit-plugin-dev" --quiet build demo
expect_err 1 "apt-get install jq" "but for those that it needs" deps "jq valgrind" --quiet build demo
sudo=1
expect_err 1 "which sudo does not give; as root run: apt-get install gcc" \
	"sudo for others is no sudo" deps gcc "${goal[@]}"
export GIVES=1
t "with sudo, packages are installed" deps "gcc valgrind" "${goal[@]}"
is "all of them at once" "$(cat installed)" \
	"apt-get -q install -y --no-install-recommends gcc valgrind"
export NONE=valgrind
t "one that there is not keeps no other out" deps "gcc valgrind" "${goal[@]}"
is "which is installed alone then" "$(tail -n 1 installed)" \
	"apt-get -q install -y --no-install-recommends gcc"
NONE=gcc
expect_err 1 "could not install: gcc" "one that is needed is an error" deps gcc "${goal[@]}"

# ---- what a build says ----

left_out()	# FILE WORD=VALUE...
{
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" BUILD="$TMP/none" WITHOUT_CEPH="$1" \
		left-out "${@:2}" | grep sosd
}
is "a build without librados says so" "$(left_out none RADOS_HEADER=/none)" \
	"  sosd is left out: librados-dev is not there (\`make deps\` installs it)"
NONE=librados-dev
t "deps cannot install it" deps librados-dev --quiet --without="$TMP/without" rados ceph
is "then a build says why" "$(left_out "$TMP/without" RADOS_HEADER=/none)" \
	"  sosd is left out: $(sed 's/ (see above)//' without) (\`make deps\` tries again)"
is "with librados nothing is left out" "$(left_out none RADOS_HEADER="$root/Makefile")" ""

# ---- memory ----

expect_err 1 "make demo needs 999999999 MiB .* are free in /dev/shm: enlarge it" \
	"too little room in /dev/shm is an error" "$root/tests/lib/shm.sh" 999999999 "make demo"
t "enough is none" "$root/tests/lib/shm.sh" 1 "make demo"
finish
