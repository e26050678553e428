# series_slices.awk - cuts a run into 20 slices of the same number of bytes. Used by
# series.sh.
#
# In: NANOSECONDS BYTES, both since the beginning, ascending; the last line is the end of the run
# Out: key SLICE BYTES_A_SECOND, with tabs. Between two lines the bytes are taken to have come at a
# constant rate.
{
	ns[NR] = $1
	bytes[NR] = $2
}

END {
	ns[0] = bytes[0] = begin = 0
	all = bytes[NR]
	for (i = slice = 1; slice <= 20; slice++) {
		want = all * slice / 20
		while (i < NR && bytes[i] < want)
			i++
		step = bytes[i] - bytes[i - 1]
		end = ns[i] - (step ? (bytes[i] - want) / step * (ns[i] - ns[i - 1]) : 0)
		rate = (end > begin) ? all / 20 / (end - begin) * 1e9 : 0
		printf "%s\t%d\t%.0f\n", key, slice, rate
		begin = end
	}
}
