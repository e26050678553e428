/* killpoint - the test's side of kill points: arms them, and says which have killed. See
 * xtypes/xkill.h.
 *
 *      killpoint list			every point, a name a line
 *      killpoint say POINT		the work that is done when a process dies there
 *      killpoint make FILE		a table in which nothing is armed
 *      killpoint arm FILE KIND POINT [N]	a peer of that kind dies at the N-th pass (1)
 *					of the point from now on
 *      killpoint disarm FILE		nothing is armed any more
 *      killpoint armed FILE		the armed points that have not killed yet, KIND POINT a line
 *
 * Exit codes: 0; 1, it failed; 2, wrong usage.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xtypes/xkill.h"

static const char *const kinds[XKILL_KINDS] = { "volumed", "cached", "filed", "memd",
	"kvd" };

static const struct {
	const char *name, *text;
} points[XKILL_NR] = {
#define ROW(name, text) { #name, text },
	XKILL_POINTS(ROW)
#undef ROW
};

static struct xkill_table *table_open(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
	void *t = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct xkill_table)) == 0)
		t = mmap(NULL, sizeof(struct xkill_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (t == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return t;
}

static int find_point(const char *name)
{
	for (int i = 0; i < XKILL_NR; i++)
		if (strcmp(points[i].name, name) == 0)
			return i;
	fprintf(stderr, "killpoint: there is no point '%s'\n", name);
	exit(2);
}

static int find_kind(const char *name)
{
	for (int i = 0; i < XKILL_KINDS; i++)
		if (strcmp(kinds[i], name) == 0)
			return i;
	fprintf(stderr, "killpoint: there is no kind '%s'\n", name);
	exit(2);
}

static void make(const char *path)
{
	struct xkill_table *t = table_open(path, O_CREAT | O_TRUNC);

	for (int i = 0; i < XKILL_KINDS; i++)
		snprintf(t->row[i].kind, sizeof(t->row[i].kind), "%s", kinds[i]);
}

/* Prints what is armed, or disarms it. */
static void for_armed(const char *path, int disarm)
{
	struct xkill_table *t = table_open(path, 0);

	for (int k = 0; k < XKILL_KINDS; k++)
		for (int i = 0; i < XKILL_NR; i++) {
			if (atomic_load(&t->row[k].left[i]) && !disarm)
				printf("%s %s\n", kinds[k], points[i].name);
			if (disarm)
				atomic_store(&t->row[k].left[i], 0);
		}
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (argc == 2 && strcmp(word, "list") == 0)
		for (int i = 0; i < XKILL_NR; i++)
			printf("%s\n", points[i].name);
	else if (argc == 3 && strcmp(word, "say") == 0)
		printf("%s\n", points[find_point(argv[2])].text);
	else if (argc == 3 && strcmp(word, "make") == 0)
		make(argv[2]);
	else if (argc >= 5 && argc <= 6 && strcmp(word, "arm") == 0)
		atomic_store(
			&table_open(argv[2], 0)->row[find_kind(argv[3])].left[find_point(argv[4])],
			argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 1);
	else if (argc == 3 && strcmp(word, "disarm") == 0)
		for_armed(argv[2], 1);
	else if (argc == 3 && strcmp(word, "armed") == 0)
		for_armed(argv[2], 0);
	else
		return 2;
	return 0;
}
