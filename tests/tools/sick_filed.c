/* sick_filed - a filed with a sick disk. While these files exist:
 *
 *	$SICK_SYNC	files cannot be synced; directories can
 *	$SICK_READ	its text is "OBJECT BYTE": a read of that byte of that object is EIO, as of
 *			a bad sector. A write to it, or a removal of the object, makes the sector
 *			well, and the file goes
 *
 * The tests system/unsynced and system/bad_sector run it as `filed` beside an xseg.
 *
 * fdatasync() is this program's own, as in tests/unit/stores/filed_test.c. One thread serves.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"

static const char *sick_sync, *sick_read;
static struct peer_class sick_class;

int fdatasync(int fd)
{
	if (sick_sync && !access(sick_sync, F_OK)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static bool has_bad_sector(const struct xreq *r)
{
	FILE *f = sick_read ? fopen(sick_read, "re") : NULL;
	char object[XSEG_TARGET_MAX] = "";
	uint64_t byte = 0;

	if (!f)
		return false;
	if (fscanf(f, "%127s %" SCNu64, object, &byte) != 2)
		object[0] = '\0';
	fclose(f);
	return !strcmp(object, r->target) &&
	       (r->op == XSEG_OP_DELETE ||
		       (r->obj_offset <= byte && byte < r->obj_offset + r->size));
}

static void sick_request(struct peer_port *pp, struct xreq *r)
{
	if ((r->op == XSEG_OP_READ || r->op == XSEG_OP_WRITE || r->op == XSEG_OP_DELETE) &&
		has_bad_sector(r)) {
		if (r->op == XSEG_OP_READ) {
			peer_answer(pp, r, -EIO);
			return;
		}
		unlink(sick_read);
	}
	filed_class.request(pp, r);
}

int main(int argc, char **argv)
{
	sick_sync = getenv("SICK_SYNC");
	sick_read = getenv("SICK_READ");
	sick_class = filed_class;
	sick_class.request = sick_request;
	return peer_main(&sick_class, argc, argv);
}
