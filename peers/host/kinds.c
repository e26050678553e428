/* kinds - see kinds.h. */
#include "peers/host/kinds.h"

#include <string.h>

#ifdef XSEG_HAVE_SOSD
extern const struct peer_class sosd_class;
#endif

const struct peer_class *const kinds[] = {
	&volumed_class, &cached_class, &filed_class, &memd_class, &kvd_class, &memcached_class,
#ifdef XSEG_HAVE_SOSD
	&sosd_class,
#endif
	NULL
};

const struct peer_class *kinds_find(const char *kind)
{
	const struct peer_class *const *k;

	for (k = kinds; *k; k++)
		if (!strcmp((*k)->kind, kind))
			return *k;
	return NULL;
}
