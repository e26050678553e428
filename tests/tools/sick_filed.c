/* sick_filed - a filed whose files cannot be synced while the file that $SICK_SYNC names exists.
 * Directories can. tests/system/unsynced.sh runs it as `filed` beside an xseg.
 *
 * fdatasync() is this program's own, as in tests/unit/stores/filed_test.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"

static const char *sick;

int fdatasync(int fd)
{
	if (sick && !access(sick, F_OK)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

int main(int argc, char **argv)
{
	sick = getenv("SICK_SYNC");
	return peer_main(&filed_class, argc, argv);
}
