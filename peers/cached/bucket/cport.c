/* cport - see cport.h. */
#include "peers/cached/bucket/cport.h"

uint64_t cached_total(struct cached *k, enum cache_counter n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		sum += xseg_stats_get(cport_at(k, i)->stats, n);
	return sum;
}
