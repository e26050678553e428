/* fds - see fds.h. */
#include "peers/common/runtime/fds.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* a leaf; guards taken */
static rlim_t taken;						/* by all peers of the process */

int fds_take(rlim_t want, rlim_t *got, struct xseg_error *err)
{
	struct rlimit limit;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (getrlimit(RLIMIT_NOFILE, &limit))
		rc = xseg_fail(err, -errno, "the limit of open files is not known: %s",
			strerror(errno));
	want += taken;
	if (!rc && limit.rlim_cur < want) {
		limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			rc = xseg_fail(err, -errno,
				"the limit of open files cannot be raised: %s", strerror(errno));
	}
	if (!rc) {
		want = want < limit.rlim_cur ? want : limit.rlim_cur;
		*got = want > taken ? want - taken : 0;
		taken += *got;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void fds_give_back(rlim_t nr)
{
	pthread_mutex_lock(&lock);
	taken -= nr;
	pthread_mutex_unlock(&lock);
}
