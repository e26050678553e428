/* image_file - the file that an export writes.
 *
 *   FILE is                          without --force         with --force
 *   not there                        FILE.partial            FILE.partial
 *   a file, a link to one, a link    refused                 FILE.partial, which replaces the file
 *   to nothing                                               that the link leads to
 *   a block device                   refused                 written in place
 *   a pipe, a character device, "-"  written in place        written in place
 *
 * Contract: one thread. Functions report their errors (tool.h) and return an exit code.
 *
 * Invariants
 *   F1  A file has its own name only when all of it is on stable storage. Until then, and after any
 *       error, it is FILE.partial.
 *   F2  No file is replaced without `force`, not even one that another program made meanwhile.
 *   F3  A new file that replaces another has that one's mode, from its first byte on.
 *   F4  Two exports never write one FILE.partial: its writer has it locked (flock).
 */
#ifndef TOOLS_XSEG_IMAGE_FILE_H
#define TOOLS_XSEG_IMAGE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define IMAGE_PARTIAL ".partial"

struct image_file {
	const char *what, *volume;		/* for messages; the caller's */
	int fd;					/* -1: not open */
	bool is_regular;			/* holes may be left out; written anywhere */
	bool force;
	mode_t mode;				/* F3; 0: as the umask says */
	char name[PATH_MAX];			/* as given, or what a link leads to */
	char partial[PATH_MAX + sizeof(IMAGE_PARTIAL)]; /* "": written in place */
};

/* Opens `file` ("-": standard output) for an image of so many bytes. Close in any case. */
int image_file_open(struct image_file *f, const char *what, const char *volume, const char *file,
		    bool force, uint64_t bytes);
/* After the last byte: makes the image stable, and gives it its name (F1). Prints the reason if
 * that fails. */
int image_file_finish(struct image_file *f, uint64_t bytes);
void image_file_close(struct image_file *f);

#endif
