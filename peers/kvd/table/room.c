/* room - see room.h. */
#include "peers/kvd/table/room.h"

#define PART	 8u				/* of the index */
#define VAIN_MAX 2u

void room_freed(struct room *m)
{
	m->vain = 0;
}

bool room_is_short(const struct index *ix)
{
	return index_room(ix) < ix->max / PART;
}

bool room_pass(struct room *m, const struct index *ix, struct alog *log)
{
	if (alog_pass_goes_on(log))
		return true;
	if (ix->used - ix->keys < ix->max / PART)	/* M1 */
		return false;
	if (ix->tombstones > m->tombstones)
		m->vain = 0;
	if (m->vain == VAIN_MAX || !alog_pass_begin(log))	/* M2 */
		return false;
	m->vain++;
	m->tombstones = ix->tombstones;
	return true;
}
