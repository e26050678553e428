/* out - results on stdout: JSON for scripts, tables for people.
 *
 * Contract: JSON has integers, texts, booleans and null only, with the unit in the name. A table is
 * collected row by row, cells parted by tabs, and printed aligned.
 */
#ifndef TOOLS_XSEG_OUT_H
#define TOOLS_XSEG_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct out_table;

/* Prints and frees it. Returns an exit code: stdout may be full or closed. */
int out_json(json_t *j);
/* What has become of the one of that name: its name and state, as JSON. */
int out_state(const char *name, const char *state);
/* As out_json() on one line, for streams of objects. */
int out_json_line(json_t *j);
/* Sets a member; NULL text: null. */
void out_set_int(json_t *object, const char *key, uint64_t value);
void out_set_text(json_t *object, const char *key, const char *text);
void out_set_bool(json_t *object, const char *key, bool value);
/* A member's value; 0 and "?" where it is not there, or of another kind. */
uint64_t out_int(const json_t *object, const char *key);
const char *out_text(const json_t *object, const char *key);

/* Headings parted by tabs; one that begins with '>' is right-aligned. NULL: no memory. */
struct out_table *out_table_create(const char *headings);
void out_table_row(struct out_table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void out_table_free(struct out_table *table);
/* Writes it to a stream and frees it. */
void out_table_write(struct out_table *table, FILE *out);
/* Prints and frees it (a NULL: no memory was the reason). Returns an exit code. */
int out_table_print(struct out_table *table);

/* Checks that stdout took all that was written; an exit code. */
int out_done(void);

/* For people: "1.5G", "12.3ms", "3.2k". The buffers are the caller's. */
#define OUT_TEXT 24
const char *out_size(uint64_t bytes, char *buf);
const char *out_bytes(uint64_t bytes, char *buf);	/* "512 bytes", "1.5G" */
const char *out_time(uint64_t ns, char *buf);
/* "2026-11-29 18:03:07", of seconds since 1970, in local time. */
const char *out_moment(uint64_t s, char *buf);
/* When what is left will be done, if `done` of it took ns; "?" when nothing is done yet. */
const char *out_eta(uint64_t ns, uint64_t done, uint64_t left, char *buf);
const char *out_count(uint64_t n, char *buf);
/* "" behind "1 volume", "s" behind "2 volume". */
const char *out_s(uint64_t n);
/* "97.3%", or "-" when there is no whole. */
const char *out_percent(uint64_t part, uint64_t whole, char *buf);

#endif
