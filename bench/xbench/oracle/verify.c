/* verify - see verify.h. */
#include "bench/xbench/oracle/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/xbench/oracle/state.h"

/* ---- what there is to verify ------------------------------------------------------------- */

/* The wall clock, so that of two runs the later has the larger number. */
static uint64_t new_run(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int load(struct xb_verify *v, uint32_t nr_slots, const struct xb_where *w,
		struct xseg_error *err)
{
	const char *path = v->opts->verify_state;
	struct xb_state_head head;
	int rc = xb_state_load(path, &head, v->floors, nr_slots, &v->oracle, err);

	if (rc)
		return rc;
	if (head.target != w->identity || head.start + head.length > w->total_bytes)
		return xseg_fail(
			err, -EINVAL,
			"verify_state: %s was saved for another volume, or other --objects or"
			" --object_size",
			path);
	v->whose = (struct xb_whose){ .signature = head.signature,
				      .run = head.run,
				      .target = head.target };
	return 0;
}

/* Makes the I/Os of the run again, without doing them. */
static int redo(struct xb_verify *v, uint64_t boundary, struct xseg_error *err)
{
	const struct xb_options *o = v->opts;
	struct xb_gen gen;
	struct xb_io io;

	for (uint32_t job = 0; job < o->numjobs; job++) {
		xb_gen_init(&gen, o, boundary, job);
		while (!xb_oracle_is_full(v->oracle) && xb_gen_next(&gen, &io)) {
			uint64_t tag = xb_value(job, io.seq);

			if (io.op == XB_WRITE || io.op == XB_TRIM || io.op == XB_ZEROES)
				xb_oracle_redo(v->oracle, io.offset, io.size,
					       io.op == XB_WRITE ? tag : XB_VALUE_ZERO, tag,
					       xb_verify_window(o));
		}
	}
	v->whose.any_run = true;
	return xb_oracle_is_full(v->oracle)
		       ? xseg_fail(err, -ENOMEM,
				   "verify_only: these options do not tell the data that the run "
				   "wrote; give its --verify_state")
		       : 0;
}

int xb_verify_create(struct xb_verify *v, const struct xb_options *o, const struct xb_where *w,
		     struct xseg_error *err)
{
	uint32_t nr_slots = o->numjobs * o->iodepth;
	int rc = 0;

	memset(v, 0, sizeof(*v));
	if (*o->verify_state && !o->verify_only)
		rc = xb_state_may_save(o->verify_state, err);
	if (rc)
		return rc;
	v->opts = o;
	v->floors = malloc(nr_slots * sizeof(*v->floors));
	if (!v->floors)
		return xseg_fail(err, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < nr_slots; i++)
		atomic_init(&v->floors[i], XB_NOT_READING);
	v->whose = (struct xb_whose){ .signature = xb_options_signature(o),
				      .run = new_run(),
				      .target = w->identity };
	if (o->verify_only && *o->verify_state) {
		rc = load(v, nr_slots, w, err);
	} else {
		v->oracle = xb_oracle_create(o->offset, xb_options_end(o) - o->offset, v->floors,
					     nr_slots, err);
		if (!v->oracle)
			rc = -ENOMEM;
		else if (o->verify_only)
			rc = redo(v, w->boundary, err);
	}
	if (rc)
		xb_verify_destroy(v);
	return rc;
}

void xb_verify_destroy(struct xb_verify *v)
{
	xb_oracle_destroy(v->oracle);
	free(v->floors);
	memset(v, 0, sizeof(*v));
}

/* ---- the run ----------------------------------------------------------------------------- */

/* Where byte `at` of what is to be written is, in the request's own pages or in one that is given;
 * see xseg.h. */
static void *sector_of(struct xseg *seg, const struct xreq *r, uint32_t at)
{
	uint64_t from = r->offset % XSEG_PAGE_SIZE + at;

	return (char *)xseg_req_gift_page(seg, r, (uint32_t)(from / XSEG_PAGE_SIZE)) +
	       from % XSEG_PAGE_SIZE;
}

/* The same of an answer: in the page that it was lent, if it was. */
static const void *answered_sector(struct xseg *seg, const struct xreq *r, uint32_t at)
{
	uint64_t from = r->offset % XSEG_PAGE_SIZE + at;

	return (const char *)xseg_req_page(seg, r, (uint32_t)(from / XSEG_PAGE_SIZE)) +
	       from % XSEG_PAGE_SIZE;
}

uint64_t xb_verify_write(struct xb_verify *v, struct xseg *seg, const struct xreq *r, uint32_t job,
			 const struct xb_io *io)
{
	struct xb_stamp stamp = {
		.signature = v->whose.signature,
		.run = v->whose.run,
		.target = v->whose.target,
		.offset = io->offset,
		.tag = xb_value(job, io->seq),
	};
	uint64_t issued = xb_oracle_tick(v->oracle);

	xb_oracle_write_begin(v->oracle, io->offset, io->size,
			      io->op == XB_WRITE ? stamp.tag : XB_VALUE_ZERO, issued);
	for (uint32_t at = 0; io->op == XB_WRITE && at < io->size; at += XB_SECTOR) {
		xb_stamp_write(sector_of(seg, r, at), &stamp);
		stamp.offset += XB_SECTOR;
	}
	return issued;
}

void xb_verify_written(struct xb_verify *v, const struct xb_io *io, uint64_t issued, bool ok)
{
	xb_oracle_write_end(v->oracle, io->offset, io->size, issued, ok);
}

uint64_t xb_verify_read(struct xb_verify *v, uint32_t slot, const struct xb_io *io)
{
	uint64_t issued;

	/* seq_cst: partner is the load of the floors under the sector's lock: who sees us as a
	 * reader there sees a floor */
	atomic_store(&v->floors[slot], xb_oracle_now(v->oracle));
	issued = xb_oracle_read_begin(v->oracle, io->offset, io->size);
	atomic_store(&v->floors[slot], issued);
	return issued;
}

static void lock(struct xb_verify *v)
{
	while (atomic_flag_test_and_set_explicit(&v->runs_lock, memory_order_acquire))
		;
}

/* Counts a sector of our options by its run. Runs beyond XB_MAX_RUNS count as the last. */
static void note_run(struct xb_verify *v, uint64_t run, uint64_t offset)
{
	uint32_t i = 0;

	lock(v);
	while (i < XB_MAX_RUNS - 1 && v->runs[i].sectors && v->runs[i].run != run)
		i++;
	if (!v->runs[i].sectors) {
		v->runs[i].run = run;
		v->runs[i].first_offset = offset;
	}
	v->runs[i].sectors++;
	atomic_flag_clear_explicit(&v->runs_lock, memory_order_release);
}

uint32_t xb_verify_check(struct xb_verify *v, struct xseg *seg, const struct xreq *r, uint32_t slot,
			 const struct xb_io *io, uint64_t issued, bool ok, bool again,
			 struct xb_seen *seen)
{
	uint32_t i, nr = io->size / XB_SECTOR, wrong = 0;

	for (i = 0; ok && i < nr; i++) {
		uint64_t offset = io->offset + (uint64_t)i * XB_SECTOR;

		xb_stamp_read(answered_sector(seg, r, i * XB_SECTOR), &v->whose, offset, &seen[i]);
		if (v->whose.any_run && seen[i].kind == XB_SEEN_OURS && !again)
			note_run(v, seen[i].run, offset);
	}
	if (again)
		xb_oracle_look_again(v->oracle, io->offset, io->size, issued, ok ? seen : NULL);
	else
		wrong = xb_oracle_read_end(v->oracle, io->offset, io->size, issued,
					   ok ? seen : NULL);
	atomic_store(&v->floors[slot], XB_NOT_READING);
	return wrong;
}

/* ---- afterwards -------------------------------------------------------------------------- */

/* What an older run with the same options left is stale: the newest one should have overwritten it.
 */
void xb_verify_finish(struct xb_verify *v)
{
	struct xb_finding f = { .wrong = XB_STALE,
				.expected = XB_VALUE_ANY,
				.kind = XB_SEEN_OTHER };
	uint32_t i, newest = 0;

	for (i = 0; i < XB_MAX_RUNS && v->runs[i].sectors; i++)
		if (v->runs[i].run > v->runs[newest].run)
			newest = i;
	while (i-- > 0) {
		if (i == newest)
			continue;
		f.offset = f.found_offset = v->runs[i].first_offset;
		xb_oracle_report(v->oracle, &f, v->runs[i].sectors);
	}
	memset(v->runs, 0, sizeof(v->runs));
}

int xb_verify_save(struct xb_verify *v, struct xseg_error *err)
{
	struct xb_state_head head = {
		.signature = v->whose.signature, .run = v->whose.run, .target = v->whose.target,
	};

	return xb_state_save(v->opts->verify_state, &head, v->oracle, err);
}

uint64_t xb_verify_wrong(const struct xb_verify *v)
{
	uint64_t sum = 0;

	for (enum xb_wrong wrong = 0; wrong < XB_NR_WRONG; wrong++)
		sum += xb_oracle_wrong(v->oracle, wrong);
	return sum;
}

/* ---- for people -------------------------------------------------------------------------- */

static void describe(uint64_t value, enum xb_kind kind, char *out, size_t size)
{
	if (kind == XB_SEEN_TORN || kind == XB_SEEN_BROKEN)
		snprintf(out, size, "a stamp with a wrong checksum");
	else if (kind == XB_SEEN_OTHER)
		snprintf(out, size, "a stamp of another run");
	else if (kind == XB_SEEN_UNSTAMPED)
		snprintf(out, size, "no stamp");
	else if (value == XB_VALUE_ZERO)
		snprintf(out, size, "zeroes");
	else if (value == XB_VALUE_UNKNOWN || value & XB_VALUE_OTHER)
		snprintf(out, size, "data from before the run");
	else if (value == XB_VALUE_ANY)
		snprintf(out, size, "a write of the newest run");
	else
		snprintf(out, size, "the write of job %u, I/O %" PRIu64, xb_value_job(value),
			 xb_value_seq(value));
}

void xb_verify_print(const struct xb_verify *v)
{
	struct xb_finding f[XB_FINDINGS];
	uint32_t nr = xb_oracle_findings(v->oracle, f), i;
	char expected[64], found[64];

	for (i = 0; i < nr; i++) {
		describe(f[i].expected, XB_SEEN_OURS, expected, sizeof(expected));
		describe(f[i].found, f[i].kind, found, sizeof(found));
		fprintf(stderr,
			"xbench: verify: %s sector at offset %" PRIu64 ": expected %s, found %s",
			f[i].wrong == XB_LOST ? "lost or stale" : xb_wrong_names[f[i].wrong],
			f[i].offset, expected, found);
		if (f[i].wrong == XB_MISPLACED && f[i].found_offset == f[i].offset)
			fprintf(stderr, ", stamped for another volume or set of objects");
		else if (f[i].wrong == XB_MISPLACED)
			fprintf(stderr, ", stamped for offset %" PRIu64, f[i].found_offset);
		fputc('\n', stderr);
	}
	if (nr)
		fprintf(stderr,
			"xbench: verify: %" PRIu64 " stale, %" PRIu64 " lost, %" PRIu64
			" torn, %" PRIu64 " misplaced sectors were read\n",
			xb_oracle_wrong(v->oracle, XB_STALE), xb_oracle_wrong(v->oracle, XB_LOST),
			xb_oracle_wrong(v->oracle, XB_TORN),
			xb_oracle_wrong(v->oracle, XB_MISPLACED));
}
