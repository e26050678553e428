/* failures - see failures.h. */
#include "peers/common/blocker/failures.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/clock/clock.h"

#define MS UINT64_C(1000000)

void failures_init(struct failures *f)
{
	pthread_mutex_init(&f->lock, NULL);
}

void failures_fini(struct failures *f)
{
	pthread_mutex_destroy(&f->lock);
}

static bool is_over(const struct failures *f, uint64_t now_ns)
{
	return !f->nr || clock_since(f->last_ns, now_ns) > FAILURES_OVER_NS;
}

/* A client can choose any name. */
static void copy_name(char *to, const char *from)
{
	snprintf(to, XSEG_TARGET_MAX, "%.*s", XSEG_TARGET_MAX - 1, from);
	for (; *to; to++)
		if (!isgraph((unsigned char)*to))
			*to = '?';
}

uint32_t failures_note(struct failures *f, const struct xreq *r, int error, uint64_t now_ns)
{
	uint32_t nr = 0;

	pthread_mutex_lock(&f->lock);
	if (is_over(f, now_ns)) {
		f->first_ns = now_ns;
		f->nr = 0;
	}
	f->last_ns = now_ns;
	f->nr++;
	f->error = error;
	f->op = (enum xseg_op)r->op;
	copy_name(f->object, r->target);
	f->untold++;
	if (now_ns >= f->tell_ns) {
		nr = f->untold;
		f->untold = 0;
		f->tell_ns = now_ns + FAILURES_TELL_NS;
	}
	pthread_mutex_unlock(&f->lock);
	return nr;
}

void failures_tell(struct failures *f, uint64_t now_ns, struct kv_text *t)
{
	pthread_mutex_lock(&f->lock);
	if (!is_over(f, now_ns))
		kv_add(t,
			"failing_ms=%" PRIu64 "\nfailed=%" PRIu64
			"\nfailed_op=%s\nfailed_object=%s\nerror=%s\n",
			clock_since(f->first_ns, now_ns) / MS, f->nr, xseg_op_name(f->op),
			f->object[0] ? f->object : "all objects", strerror(f->error));
	pthread_mutex_unlock(&f->lock);
}
