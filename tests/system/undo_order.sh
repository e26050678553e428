#!/bin/bash
# undo_order.sh - an up that fails stops what it has begun top first: also a peer whose process is
# not in the segment yet, and one that has no route yet.
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host kvd cached memd

log=$TMP/xseg-$XSEG_SEGMENT.log

# Programs beside xseg, of which one peer's waits, and filed's fails.
mkdir slow objects
for program in xseg xseg-host; do
	cp "$BUILD/bin/$program" slow
done
for program in memd cached kvd; do
	cat >slow/$program <<-END
		#!/bin/sh
		[ "\$SLOW" != $program ] || sleep 1
		exec "$BUILD/bin/$program" "\$@"
	END
done
cat >slow/filed <<-END
	#!/bin/sh
	until grep -q "supervisor: started \$SLOW " "$log"; do sleep 0.05; done
	exit 1
END
chmod +x slow/*

stack()			# OTHER_PEER_OF_THE_PROCESS_OF_KVD
{
	printf '[segment]\nmemory = 128M\n'
	[ -z "${1:-}" ] || printf '[peer %s]\nkind = memd\nmemory = 8M\n[run]\ntogether = %s kvd\n' "$1" "$1"
	cat <<-END
		[peer memd]
		memory = 32M
		[peer cached]
		downstream = memd
		memory = 8M
		objects = 16
		[peer kvd]
		downstream = cached
		keys = 1000
		size = 28M
		[peer filed]
		dir = $TMP/objects
	END
}
stopped_in_order()	# PEER...
{
	is "all had stopped, top first" \
		"$(sed -n 's/.* \([a-z]*\): stopped$/\1/p' "$log" | grep -xE "$(IFS='|'; echo "$*")" | xargs)" "$*"
	expect_exit 4 "and no segment is left" xseg info
	cp "$log" last.log; rm "$log"
}

stack >stack.conf
for slow in cached kvd; do
	export SLOW=$slow
	expect_exit 1 "an up fails while the process of $slow begins" slow/xseg up stack.conf
	case $slow in
	cached) stopped_in_order cached memd ;;
	kvd) stopped_in_order kvd cached memd ;;
	esac
done

# kvd begins with the other peer of its process, before cached is there
stack spare >group.conf
export SLOW=cached
expect_exit 1 "an up fails while kvd waits for a cached that begins" slow/xseg up group.conf
stopped_in_order kvd cached memd
finish
