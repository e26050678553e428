# beside.sh - a command that goes on beside a verified load, in the tests of reads without a request.
#
#	. "$root/tests/lib/beside.sh"	# after system.sh
#	beside kill_cache
#	LOAD						# into load.json
#	end_beside "it was killed whenever it was there"
#
# A test says how `cached` leaves the path and enters it, as that needs the name of its store.

# beside COMMAND...: again and again, until end_beside
beside()
{
	rm -f over
	start beside go_on "$@"
	beside=$started
}

go_on()	# COMMAND...
{
	until [ -e over ]; do
		"$@" >>beside.out 2>&1 || { echo "$* failed with $?" >>beside.failed; return 1; }
		sleep 0.2
	done
}

# end_beside SENTENCE: the command never failed
end_beside()
{
	touch over
	wait "$beside"
	is "$1" "$?" 0
}

# is_read_well SENTENCE: no I/O of the load in load.json failed or was wrong
is_read_well()
{
	is "$1" "$(json load.json '[.jobs[] | .error, .verify_errors] | add')" 0
}

kill_cache()
{
	xseg peer kill cached || [ $? = 4 ]	# it may not be back yet
	sleep 0.4
}

unplug_and_plug()	# STORE
{
	xseg unplug cached && sleep 0.2 && xseg plug cached --above "$1" --below volumed
}
