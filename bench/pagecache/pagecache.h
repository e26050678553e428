/* pagecache.h - shared by the files of bench-pagecache: options, one thread's job, and the data of
 * a page.
 *
 *   pagecache.c         options, threads, counting, the result
 *   pagecache_data.c    which page is next, and what is read and written of it
 *   pagecache_file.c    pread() and pwrite() of a file, or its mapping
 *   pagecache_volume.c  a queue of a volume
 *
 * Contract: a job belongs to its thread. The main thread reads `ios` meanwhile, and the rest after
 * the thread has ended.
 *
 * Invariants
 *   G1  The first eight words of page n of a set are n, n + 1, ... n + 7, whichever program wrote
 *       them last. So each read is checked, and a wrong one is counted.
 */
#ifndef BENCH_PAGECACHE_PAGECACHE_H
#define BENCH_PAGECACHE_PAGECACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/common/program.h"
#include "xseg/volume.h"

#define PAGE      4096u
#define LINE      64u
#define MAX_JOBS  16u
#define MAX_DEPTH 1024u

enum data { COPY,
	LOAN,
	DIRECT,
	DIRECT_COPY,
	MAP };
enum touch { FIRST_LINE,
	ALL_LINES };

struct options {
	uint32_t rw, data, touch, iodepth, numjobs, server;
	uint64_t size, runtime_ns, ramp_ns, randseed;
	char file[256], volume[XSEG_NAME_MAX], segment[XSEG_NAME_MAX];
	struct bench_cpus cpus;
	bool make, huge, help;
};

struct job {
	_Alignas(LINE) _Atomic uint64_t ios; /* relaxed: a count that may be a little old */
	const struct options *o;
	enum bench_rw rw;
	bool in_sequence; /* each page of the set once */
	uint64_t nr_pages, at, random;
	uint64_t sum, wrong; /* of what was read */
	uint32_t nr;
	int fd, rc;
	uint8_t *map; /* of the file, or NULL */
	struct xseg_volume *volume; /* NULL: it is a file */
	struct xseg_error err;
};

/* ---- pagecache.c ---- */
/* Waits until all jobs are here; counting begins some time later. */
void job_ready(struct job *j);
/* No further I/O is to begin. */
bool job_is_over(const struct job *j);
/* An I/O is done. */
void job_count(struct job *j);
/* What an I/O returned: its bytes, or -errno. */
int job_check(struct job *j, int64_t result) XSEG_MUST_CHECK;

/* ---- pagecache_data.c ---- */
uint64_t page_next(struct job *j);
/* Reads the first line of page nr, which it checks, or all of it. `next` is the page that is read
 * after it, if that is known, else NULL: it is fetched meanwhile. */
void page_read(struct job *j, uint64_t nr, const void *page, const void *next);
void page_write(const struct job *j, uint64_t nr, void *page);

/* ---- pagecache_file.c ---- */
/* Opens the file, or makes it. */
int file_open(const struct options *o, int *fd, struct xseg_error *err) XSEG_MUST_CHECK;
/* Maps all of it, to be read. */
int file_map(const struct options *o, int fd, uint8_t **map,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* After each page was written. *huge: all of it is in huge pages. */
int file_collapse(const struct options *o, int fd, bool *huge,
	struct xseg_error *err) XSEG_MUST_CHECK;
int file_run(struct job *j) XSEG_MUST_CHECK;

/* ---- pagecache_volume.c ---- */
int volume_run(struct job *j) XSEG_MUST_CHECK;

#endif
