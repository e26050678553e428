/* opt - parses and prints the values of one const table of options. See opt.h for the contract.
 *
 * A number with a unit is read exactly or not at all. "1.5G" is 1610612736. "0.3k" is no number of
 * bytes and is refused.
 */
#include "peers/common/options/opt.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "E", 1ull << 60 }, { "P", 1ull << 50 }, { "T", 1ull << 40 }, { "G", 1ull << 30 },
	{ "M", 1ull << 20 }, { "k", 1ull << 10 }, { "", 1 }, { 0 }
};

/* Read, and never written. "B" makes it a power of 1000, as in dd. */
static const struct unit size_aliases[] = {
	{ "KiB", 1ull << 10 },	  { "MiB", 1ull << 20 },     { "GiB", 1ull << 30 },
	{ "TiB", 1ull << 40 },	  { "PiB", 1ull << 50 },     { "EiB", 1ull << 60 },
	{ "kB", 1000 },		  { "MB", 1000000 },	     { "GB", 1000000000 },
	{ "TB", 1000000000000 },  { "PB", 1000000000000000 },
	{ "EB", 1000000000000000000 }, { 0 }
};

/* A bare number is seconds, as with fio. */
static const struct unit time_units[] = {
	{ "h", 3600000000000ull }, { "m", 60000000000ull }, { "s", 1000000000ull },
	{ "ms", 1000000ull },	   { "us", 1000ull },	    { "ns", 1 },
	{ "", 1000000000ull },	   { 0 }
};

static const struct unit rate_units[] = {
	{ "T/s", 1ull << 40 }, { "G/s", 1ull << 30 }, { "M/s", 1ull << 20 }, { "k/s", 1ull << 10 },
	{ "/s", 1 },	       { "T", 1ull << 40 },   { "G", 1ull << 30 },   { "M", 1ull << 20 },
	{ "k", 1ull << 10 },   { "", 1 },	      { 0 }
};

/* Reads digits; the first character must be one. NULL: none, or more than 64 bits. */
static const char *parse_digits(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return NULL;
	*out = value;
	return text;
}

static int parse_scaled(const char *text, const struct unit *units, uint64_t *out)
{
	uint64_t whole, fraction = 0, scale = 1, value;
	const struct unit *u;

	text = parse_digits(text, &whole);
	if (!text)
		return -EINVAL;
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		for (; isdigit((unsigned char)*text) && scale < 1000000; text++, scale *= 10)
			fraction = fraction * 10 + (uint64_t)(*text - '0');
	}
	for (u = units; u->name; u++)
		if (!strcasecmp(u->name, text))
			break;
	if (!u->name || fraction * u->factor % scale)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, u->factor, &value) ||
	    __builtin_add_overflow(value, fraction * u->factor / scale, &value))
		return -EINVAL;
	*out = value;
	return 0;
}

int opt_parse_size(const char *text, uint64_t *out)
{
	return parse_scaled(text, size_units, out) ? parse_scaled(text, size_aliases, out) : 0;
}

int opt_parse_time(const char *text, uint64_t *out_ns)
{
	return parse_scaled(text, time_units, out_ns);
}

int opt_parse_rate(const char *text, uint64_t *out)
{
	return parse_scaled(text, rate_units, out);
}

static int parse_plain(const char *text, uint64_t *out)
{
	text = parse_digits(text, out);
	return text && !*text ? 0 : -EINVAL;
}

static int parse_percent(const char *text, uint64_t *out)
{
	text = parse_digits(text, out);
	if (text && *text == '%')
		text++;
	return text && !*text ? 0 : -EINVAL;
}

/* The largest unit that divides the value. */
static void format_scaled(uint64_t value, const struct unit *units, const char *zero, char *out,
			  size_t size)
{
	const struct unit *u = units;

	if (!value) {
		snprintf(out, size, "%s", zero);
		return;
	}
	while (value % u->factor)
		u++;
	snprintf(out, size, "%" PRIu64 "%s", value / u->factor, u->name);
}

void opt_format_size(uint64_t bytes, char *out, size_t size)
{
	format_scaled(bytes, size_units, "0", out, size);
}

void opt_human_size(uint64_t bytes, char *out, size_t size)
{
	const struct unit *u = size_units;
	double value;

	while (bytes < u->factor && u->factor > 1)
		u++;
	value = (double)bytes / (double)u->factor;
	if (u->factor == 1 || value >= 99.95)
		snprintf(out, size, "%.0f%s", value, u->name);
	else
		snprintf(out, size, "%.1f%s", value, u->name);
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* The kinds that are numbers: how they are read and shown, and what a right value looks like. */
static const struct number {
	int (*parse)(const char *text, uint64_t *out);
	const struct unit *units;		/* NULL: shown as it is */
	const char *zero;
	const char *like;
} numbers[] = {
	[OPT_SIZE] = { opt_parse_size, size_units, "0", "a size such as 4k, 512M or 8G" },
	[OPT_TIME] = { opt_parse_time, time_units, "0s", "a time such as 500us, 20ms or 10s" },
	[OPT_RATE] = { opt_parse_rate, rate_units, "0",
		       "a rate such as 200M/s, or 0 for no limit" },
	[OPT_UINT] = { parse_plain, NULL, "0", "a whole number" },
	[OPT_U64] = { parse_plain, NULL, "0", "a whole number" },
	[OPT_PERCENT] = { parse_percent, NULL, "0", "a percentage such as 70" },
};

static const struct number *number_of(enum opt_kind kind)
{
	return kind < sizeof(numbers) / sizeof(numbers[0]) && numbers[kind].parse ? &numbers[kind]
										  : NULL;
}

static uint64_t largest(const struct opt *o)
{
	if (o->kind == OPT_PERCENT)
		return o->max ? o->max : 100;
	if (o->kind == OPT_UINT)
		return o->max ? o->max : UINT32_MAX;
	return o->max ? o->max : UINT64_MAX;
}

static void format_number(enum opt_kind kind, uint64_t value, char *out, size_t size)
{
	const struct number *n = number_of(kind);

	if (n->units)
		format_scaled(value, n->units, n->zero, out, size);
	else
		snprintf(out, size, "%" PRIu64, value);
}

static bool is_in_range(const struct opt *o, uint64_t value)
{
	return (value >= o->min && value <= largest(o)) || (!value && o->flags & OPT_OR_ZERO);
}

static int set_number(const struct opt *o, void *field, const char *text, struct xseg_error *err)
{
	const char *or_zero = o->flags & OPT_OR_ZERO ? ", or 0" : "";
	const struct number *n = number_of(o->kind);
	char low[32], high[32];
	uint64_t value;

	if (n->parse(text, &value))
		return xseg_fail(err, -EINVAL, "%s: '%.60s' is not %s", o->name, text, n->like);
	if (!is_in_range(o, value)) {
		format_number(o->kind, o->min, low, sizeof(low));
		format_number(o->kind, largest(o), high, sizeof(high));
		if (largest(o) == UINT64_MAX)
			return xseg_fail(err, -EINVAL,
					 "%s: %.60s is too small, it must be at least %s%s",
					 o->name, text, low, or_zero);
		return xseg_fail(err, -EINVAL, "%s: %.60s is out of range, it must be %s to %s%s",
				 o->name, text, low, high, or_zero);
	}
	if (o->kind == OPT_UINT || o->kind == OPT_PERCENT)
		*(uint32_t *)field = (uint32_t)value;
	else
		*(uint64_t *)field = value;
	return 0;
}

static uint64_t get_number(const struct opt *o, const void *field)
{
	if (o->kind == OPT_UINT || o->kind == OPT_PERCENT)
		return *(const uint32_t *)field;
	return *(const uint64_t *)field;
}

/* ---- names and texts --------------------------------------------------------------------- */

static int set_bool(const struct opt *o, void *field, const char *text, struct xseg_error *err)
{
	bool digits = o->flags & OPT_0_OR_1;
	bool yes = !strcmp(text, "yes") || (digits && !strcmp(text, "1"));
	bool no = !strcmp(text, "no") || (digits && !strcmp(text, "0"));

	if (!yes && !no)
		return xseg_fail(err, -EINVAL, "%s: '%.60s' is not yes or no%s", o->name, text,
			digits ? ", nor 1 or 0" : "");
	*(bool *)field = yes;
	return 0;
}

static int set_enum(const struct opt *o, void *field, const char *text, struct xseg_error *err)
{
	char all[200] = "";
	size_t used = 0;
	uint32_t i;

	for (i = 0; o->names[i]; i++)
		if (!strcmp(o->names[i], text)) {
			*(uint32_t *)field = i;
			return 0;
		}
	for (i = 0; o->names[i] && used < sizeof(all); i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 o->names[i]);
	return xseg_fail(err, -EINVAL, "%s: '%.60s' is not one of %s", o->name, text, all);
}

static int check_text(const struct opt *o, const char *text, size_t room, struct xseg_error *err)
{
	const char *c;

	for (c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			return xseg_fail(err, -EINVAL,
					 "%s: the value has a control character in it", o->name);
	if ((size_t)(c - text) >= room)
		return xseg_fail(
			err, -EINVAL, "%s: '%.60s%s' is too long, there is room for %zu characters",
			o->name, text, strlen(text) > 60 ? "..." : "", room ? room - 1 : 0);
	return 0;
}

/* An empty text empties a list; any other is added to it. */
static int set_text(const struct opt *o, char *field, const char *text, struct xseg_error *err)
{
	size_t used = 0;
	int rc;

	if (o->kind == OPT_LIST && *text && *field)
		used = strlen(field) + 1;
	rc = check_text(o, text, o->len > used ? o->len - used : 0, err);
	if (rc)
		return rc;
	memcpy(field + used, text, strlen(text) + 1);
	if (used)
		field[used - 1] = '\n';
	return 0;
}

/* ---- the table --------------------------------------------------------------------------- */

bool opt_same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
			return false;
	return *a == *b;
}

const struct opt *opt_find(const struct opt *table, const char *name)
{
	for (; table->name; table++)
		if (opt_same_name(table->name, name))
			return table;
	return NULL;
}

int opt_set(const struct opt *o, void *base, const char *text, struct xseg_error *err)
{
	void *field = (char *)base + o->off;
	int rc = 0;

	if (o->check)
		rc = o->check(text, err);
	if (rc)
		return rc;
	switch (o->kind) {
	case OPT_BOOL:
		return set_bool(o, field, text, err);
	case OPT_ENUM:
		return set_enum(o, field, text, err);
	case OPT_STR:
	case OPT_LIST:
		return set_text(o, field, text, err);
	default:
		return set_number(o, field, text, err);
	}
}

static void set_empty(const struct opt *o, void *field)
{
	switch (o->kind) {
	case OPT_BOOL:
		*(bool *)field = false;
		break;
	case OPT_STR:
	case OPT_LIST:
		assert(o->len > 0);
		*(char *)field = '\0';
		break;
	case OPT_UINT:
	case OPT_PERCENT:
	case OPT_ENUM:
		*(uint32_t *)field = 0;
		break;
	default:
		*(uint64_t *)field = 0;
	}
}

void opt_set_defaults(const struct opt *table, void *base)
{
	for (; table->name; table++) {
		int rc = 0;

		set_empty(table, (char *)base + table->off);
		if (table->def)
			rc = opt_set(table, base, table->def, NULL);
		assert(rc == 0);
	}
}

void opt_get(const struct opt *o, const void *base, char *out, size_t size)
{
	const void *field = (const char *)base + o->off;

	switch (o->kind) {
	case OPT_BOOL:
		snprintf(out, size, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case OPT_ENUM:
		snprintf(out, size, "%s", o->names[*(const uint32_t *)field]);
		break;
	case OPT_STR:
	case OPT_LIST:
		snprintf(out, size, "%s", (const char *)field);
		break;
	default:
		format_number(o->kind, get_number(o, field), out, size);
	}
}

static bool is_empty(const struct opt *o, const void *field)
{
	switch (o->kind) {
	case OPT_BOOL:
	case OPT_ENUM:
		return false;
	case OPT_STR:
	case OPT_LIST:
		return !*(const char *)field;
	default:
		return get_number(o, field) == 0;
	}
}

const char *opt_missing(const struct opt *table, const void *base)
{
	for (; table->name; table++)
		if ((table->flags & OPT_REQUIRED) &&
		    is_empty(table, (const char *)base + table->off))
			return table->name;
	return NULL;
}
