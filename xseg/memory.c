/* memory - whether there is as much memory as a segment takes, or a process at its start.
 *
 * A file in /dev/shm may be larger than the machine's memory. Then the kernel gives page after
 * page, and in the end kills some process by SIGKILL, which can tell nobody why. So the amount is
 * checked before: of the machine, and of the control groups of memory that this process is in, of
 * version 1 or 2. Only an amount that certainly cannot be had is rejected. Memory that the kernel
 * would give back counts as free: its page cache, and as much as there is swap space for. If the
 * kernel does not tell, all memory is taken to be there.
 *
 * Contract: any thread; blocks on the kernel. Nothing here runs on the data path.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "xseg/memory.h"

#define MEMINFO	  "/proc/meminfo"
#define GROUPS	  "/proc/self/cgroup"
#define PATH_SIZE 4096

/* The number after a word at the beginning of a line. */
struct number {
	const char *word;
	unsigned long long n;		/* 0: there is none */
	bool found;
};

/* All of one look: they belong together. */
static void find_numbers(const char *path, struct number *number, uint32_t nr)
{
	FILE *f = fopen(path, "re");
	struct number *m;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		for (m = number; m < number + nr; m++)
			if (!m->found && !strncmp(line, m->word, strlen(m->word)))
				m->found = sscanf(line + strlen(m->word), " %llu", &m->n) == 1;
	if (f)
		fclose(f);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool machine_left(uint64_t *left, uint64_t *swap)
{
	enum { FREE, CACHED, SHMEM, BUFFERS, SLAB, SWAP, NR };
	struct number kib[NR] = {
		[FREE].word = "MemFree:", [CACHED].word = "Cached:", [SHMEM].word = "Shmem:",
		[BUFFERS].word = "Buffers:", [SLAB].word = "SReclaimable:",
		[SWAP].word = "SwapFree:",
	};

	find_numbers(MEMINFO, kib, NR);
	*swap = kib[SWAP].n << 10;
	*left = ((kib[FREE].n + minus(kib[CACHED].n, kib[SHMEM].n) + kib[BUFFERS].n +
			 kib[SLAB].n) << 10) + *swap;
	return kib[FREE].found && kib[CACHED].found && kib[SHMEM].found;
}

/* What a version of control groups calls things. */
static const struct names {
	const char *mount, *limit, *anon, *shmem;
} names[] = {
	{ "/sys/fs/cgroup", "memory.max", "anon", "shmem" },
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss", "total_shmem" },
};

/* What one group may have besides what it has and cannot be rid of. */
static bool group_left(const struct names *n, const char *group, uint64_t *left)
{
	struct number limit = { .word = "" };
	struct number used[] = { { .word = n->anon }, { .word = n->shmem } };
	char path[PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s%s/%s", n->mount, group, n->limit);
	find_numbers(path, &limit, 1);
	if (!limit.found)			/* "max", or no such group here */
		return false;
	snprintf(path, sizeof(path), "%s%s/memory.stat", n->mount, group);
	find_numbers(path, used, 2);
	*left = minus(limit.n, used[0].n + used[1].n);
	return true;
}

/* See xs_memory_check(). */
struct wish {
	uint64_t bytes;
	const char *what, *do_what;
};

static int check_group(const struct names *n, const char *group, uint64_t swap,
	const struct wish *w, struct xseg_error *err)
{
	uint64_t left;

	if (!group_left(n, group, &left) || left + swap >= w->bytes)
		return 0;
	return xseg_fail(err, -ENOSPC,
		"the control group %.80s may have %llu MiB of memory more and %s needs %llu MiB; "
		"%s, or raise its %s",
		group[0] ? group : "/", (unsigned long long)(left + swap) >> 20, w->what,
		(unsigned long long)w->bytes >> 20, w->do_what, n->limit);
}

/* A line of GROUPS, "NUMBER:CONTROLLERS:PATH"; those of version 2 have none. Or NULL. */
static const struct names *names_of(char *line, char **path)
{
	char *controllers = strchr(line, ':'), *at;

	at = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!at)
		return NULL;
	*at++ = '\0';
	at[strcspn(at, "\n")] = '\0';
	*path = at;
	if (!controllers[1])
		return &names[0];
	for (at = strtok_r(controllers + 1, ",", &line); at; at = strtok_r(NULL, ",", &line))
		if (!strcmp(at, "memory"))
			return &names[1];
	return NULL;
}

/* Of all groups above it, too. In a container the kernel may tell the path of the machine, of which
 * nothing is to be seen there but the last part, as the root. */
static int check_groups(uint64_t swap, const struct wish *w, struct xseg_error *err)
{
	FILE *f = fopen(GROUPS, "re");
	char line[PATH_SIZE], *path;
	const struct names *n;
	int rc = 0;

	while (f && !rc && fgets(line, sizeof(line), f)) {
		n = names_of(line, &path);
		if (!n)
			continue;
		if (!strcmp(path, "/"))
			path[0] = '\0';
		rc = check_group(n, path, swap, w, err);
		while (!rc && strchr(path, '/')) {
			*strrchr(path, '/') = '\0';
			rc = check_group(n, path, swap, w, err);
		}
	}
	if (f)
		fclose(f);
	return rc;
}

int xs_memory_check(uint64_t bytes, const char *what, const char *do_what, struct xseg_error *err)
{
	struct wish w = { .bytes = bytes, .what = what, .do_what = do_what };
	uint64_t left, swap;

	if (machine_left(&left, &swap) && left < bytes)
		return xseg_fail(err, -ENOSPC,
			"the machine has %llu MiB of memory left and %s needs %llu MiB; %s, or "
			"free some",
			(unsigned long long)left >> 20, what, (unsigned long long)bytes >> 20,
			do_what);
	return check_groups(swap, &w, err);
}
