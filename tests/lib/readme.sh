# readme.sh - the commands of a section of README.md, as one script.
#
# Contract: a script of tests/system sources it after system.sh.

readme=$root/README.md

# readme_blocks HEADING: the blocks marked sh from this heading (a regular expression) to the next
# one; each is followed by a line that tells which one has ended. The path of the programs is that
# of this build
readme_blocks()
{
	HEADING=$1 awk '
	/^## / { on = $0 ~ ("^## " ENVIRON["HEADING"]) }
	on && /^```sh$/ { inside = 1; next }
	inside && /^```$/ { inside = 0; printf "echo \"@ block %d\"\n", ++n; next }
	inside { print }' "$readme" |
	sed "s|\$PWD/build/bin|'$BUILD/bin'|"
}
