/* cli - see cli.h. */
#include "peers/common/options/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CLI_NAME_MAX 48
#define COLUMNS	     80			/* of the terminal that help is for */

static const struct {
	char letter;
	const char *name;
} shorts[] = { { 's', "segment" }, { 'h', "help" } };

static const char *long_name(char letter)
{
	size_t i;

	for (i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
		if (shorts[i].letter == letter)
			return shorts[i].name;
	return NULL;
}

static const struct opt *find(const struct cli_group *groups, const char *name, void **base)
{
	const struct opt *o = NULL;

	for (; groups->table && !o; groups++) {
		o = opt_find(groups->table, name);
		*base = groups->base;
	}
	return o;
}

/* ---- beginning and ending ---------------------------------------------------------------- */

void cli_begin(void)
{
	int fd;

	signal(SIGXFSZ, SIG_IGN);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return;
}

int cli_end(const char *program, int code)
{
	if (code || (fflush(stdout) == 0 && !ferror(stdout)))
		return code;
	fprintf(stderr, "%s: standard output: %s; not all of it was written\n", program,
		strerror(errno));
	return 1;
}

/* ---- the nearest name -------------------------------------------------------------------- */

/* Levenshtein's distance, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[CLI_NAME_MAX + 1], diagonal, up;
	size_t i, j, len = strnlen(b, CLI_NAME_MAX);

	for (j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (i = 0; i < CLI_NAME_MAX && a[i]; i++) {
		diagonal = row[0];
		row[0] = (unsigned)i + 1;
		for (j = 0; j < len; j++) {
			up = row[j + 1];
			row[j + 1] = diagonal + (a[i] != b[j]);
			if (row[j + 1] > up + 1)
				row[j + 1] = up + 1;
			if (row[j + 1] > row[j] + 1)
				row[j + 1] = row[j] + 1;
			diagonal = up;
		}
	}
	return row[len];
}

const struct opt *cli_nearest(const struct cli_group *groups, const char *name)
{
	unsigned len = (unsigned)strlen(name), best = len < 3 ? len : len < 6 ? 3 : 4, d;
	const struct opt *found = NULL, *o;

	for (; groups->table; groups++)
		for (o = groups->table; o->name; o++) {
			d = distance(name, o->name);
			if (d < best) {
				best = d;
				found = o;
			}
		}
	return found;
}

static int unknown(const struct cli_group *groups, const char *dashes, const char *name,
		   struct xseg_error *err)
{
	const struct opt *o = cli_nearest(groups, name);

	if (!o)
		return xseg_fail(err, -EINVAL, "unknown option %s%s", dashes, name);
	return xseg_fail(err, -EINVAL, "unknown option %s%s (did you mean --%s?)", dashes, name,
			 o->name);
}

/* ---- arguments ------------------------------------------------------------------------- */

/* NULL: a flag, which needs no value. */
static const char *arg_of(const struct opt *o)
{
	static const char *const args[] = {
		[OPT_SIZE] = "SIZE",   [OPT_TIME] = "TIME", [OPT_RATE] = "RATE",
		[OPT_UINT] = "N",      [OPT_U64] = "N",     [OPT_PERCENT] = "PERCENT",
		[OPT_BOOL] = "yes|no", [OPT_STR] = "TEXT",  [OPT_ENUM] = "NAME",
		[OPT_LIST] = "TEXT",
	};

	if (o->kind == OPT_BOOL && !o->def)
		return NULL;
	return o->arg ? o->arg : args[o->kind];
}

/* ---- parsing ----------------------------------------------------------------------------- */

/* Splits argv[i] into name and value (NULL: none in this word). */
static int split(const char *arg, char *name, const char **value)
{
	const char *long_of = NULL;
	size_t len;

	if (arg[1] != '-') {
		long_of = long_name(arg[1]);
		snprintf(name, CLI_NAME_MAX, "%s", long_of ? long_of : arg + 1);
		*value = long_of && arg[2] ? arg + 2 : NULL;
		return 0;
	}
	arg += 2;
	len = strcspn(arg, "=");
	if (len >= CLI_NAME_MAX)
		return -EINVAL;
	memcpy(name, arg, len);
	name[len] = '\0';
	*value = arg[len] ? arg + len + 1 : NULL;
	return 0;
}

static bool is_yes_or_no(const char *word)
{
	return !strcmp(word, "yes") || !strcmp(word, "no");
}

int cli_parse(const struct cli_group *groups, int argc, char **argv, struct xseg_error *err)
{
	char name[CLI_NAME_MAX];
	const struct opt *o;
	const char *value;
	void *base = NULL;
	int i, rc;

	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		if (!strcmp(argv[i], "--"))
			return i + 1;
		if (split(argv[i], name, &value))
			return xseg_fail(err, -EINVAL, "unknown option %.60s...", argv[i]);
		o = find(groups, name, &base);
		if (!o)
			return unknown(groups, argv[i][1] == '-' ? "--" : "-", name, err);
		if (!value && o->kind == OPT_BOOL &&
		    !(arg_of(o) && i + 1 < argc && is_yes_or_no(argv[i + 1])))
			value = "yes";
		if (!value && ++i == argc)
			return xseg_fail(err, -EINVAL, "--%s needs a value: %s", o->name,
					 arg_of(o));
		rc = opt_set(o, base, value ? value : argv[i], err);
		if (rc)
			return rc;
	}
	return i;
}

int cli_only_options(int at, int argc, char **argv, struct xseg_error *err)
{
	if (at == argc)
		return 0;
	return xseg_fail(err, -EINVAL, "'%.60s' is not an option; see --help", argv[at]);
}

int cli_check_name(const char *text, struct xseg_error *err)
{
	if (!xseg_name_ok(text))
		return xseg_fail(err, -EINVAL,
			"'%.80s' is not a name: use 1 to 63 of A-Z a-z 0-9 . _ -, and begin with "
			"neither . nor -",
			text);
	return 0;
}

/* ---- help -------------------------------------------------------------------------------- */

static void format_bound(const struct opt *o, uint64_t value, char *out, size_t size)
{
	uint32_t narrow = (uint32_t)value;
	struct opt bound = *o;

	bound.off = 0;
	opt_get(&bound,
		o->kind == OPT_UINT || o->kind == OPT_PERCENT ? (void *)&narrow : (void *)&value,
		out, size);
}

static void format_choices(const struct opt *o, char *out, size_t size)
{
	const char *const *name;
	size_t used = 0;

	for (name = o->names; *name && used < size; name++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
			name == o->names ? "" : ", ", *name);
}

const char *cli_limits(const struct opt *o, char *out, size_t size)
{
	char low[32], high[32];

	out[0] = '\0';
	/* as the argument may say already: wait|fail */
	if (o->kind == OPT_ENUM && strchr(cli_argument(o), '|'))
		return out;
	if (o->kind == OPT_ENUM) {
		format_choices(o, out, size);
		return out;
	}
	if (o->kind > OPT_PERCENT || (!o->min && !o->max))
		return out;
	format_bound(o, o->min, low, sizeof(low));
	format_bound(o, o->max, high, sizeof(high));
	if (o->max)
		snprintf(out, size, "%s to %s", low, high);
	else
		snprintf(out, size, "at least %s", low);
	return out;
}

const char *cli_argument(const struct opt *o)
{
	const char *arg = arg_of(o);

	return arg ? arg : "";
}

/* "name=ARG" */
static int format_name(const struct opt *o, char *out, size_t size)
{
	const char *arg = arg_of(o);

	return snprintf(out, size, "%s%s%s", o->name, arg ? "=" : "", arg ? arg : "");
}

void cli_print_words(FILE *out, int at, const char *text)
{
	int column = at, len;

	for (; *text; text += len + (int)strspn(text + len, " ")) {
		len = (int)strcspn(text, " ");
		if (column > at && column + 1 + len > COLUMNS) {
			fprintf(out, "\n%*s", at, "");
			column = at;
		}
		column += fprintf(out, "%s%.*s", column > at ? " " : "", len, text);
	}
	fputc('\n', out);
}

static void describe(FILE *out, const struct opt *o)
{
	char limits[200];

	cli_limits(o, limits, sizeof(limits));
	fprintf(out, "%s%s%s", o->help,
		!*limits ? "" : o->kind == OPT_ENUM ? ": " : ", ", limits);
	if (o->def && *o->def)
		fprintf(out, " [%s]", o->def);
	if (o->kind == OPT_LIST)
		fprintf(out, " (repeatable)");
	if (o->flags & OPT_REQUIRED)
		fprintf(out, " (required)");
	if (o->flags & OPT_LIVE)
		fprintf(out, " (live)");
}

void cli_print_options(FILE *out, const struct opt *table)
{
	int width = 0, len;
	const struct opt *o;
	char name[128], text[512];
	FILE *words;

	for (o = table; o->name; o++) {
		len = format_name(o, name, sizeof(name));
		if (len > width)
			width = len;
	}
	for (o = table; o->name; o++) {
		format_name(o, name, sizeof(name));
		fprintf(out, "  --%-*s  ", width, name);
		text[0] = '\0';
		words = fmemopen(text, sizeof(text), "w");
		if (words) {
			describe(words, o);
			fclose(words);
		}
		cli_print_words(out, width + 6, text);
	}
}
