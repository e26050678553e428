/* text - texts that people write: stack files, values of options, command lines, memd's faults,
 * lists of processors, words and lines of administrators. The first byte chooses the kind; the rest
 * is the text. It is read, or refused with one line that says why.
 *
 * A text that was read holds the parser's promises: K1 to K3 of stack.h. A number that is shown and
 * read again is the same.
 */
#include <assert.h>
#include <stdlib.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/cpus.h"
#include "peers/common/say/kv.h"
#include "peers/common/runtime/peer.h"
#include "peers/common/options/stack.h"
#include "peers/common/runtime/stack_check.h"
#include "peers/memd/memd_model.h"
#include "tests/fuzz/fuzz.h"

static const struct peer_class *const classes[] = { &volumed_class, &cached_class, &memd_class,
	&filed_class };
#define NR_CLASSES (sizeof(classes) / sizeof(classes[0]))

static const struct peer_class *class_of(const char *kind)
{
	for (unsigned i = 0; i < NR_CLASSES; i++)
		if (strcmp(classes[i]->kind, kind) == 0)
			return classes[i];
	return NULL;
}

/* One line, that ends within its room. */
static void one_line(const struct xseg_error *err)
{
	assert(memchr(err->text, '\0', sizeof(err->text)) && err->text[0] &&
		!strchr(err->text, '\n'));
}

/* ---- stack files ---- */

static void stack_holds(const struct stack *s)
{
	uint32_t order[STACK_MAX_PEERS], place[STACK_MAX_PEERS];

	assert(s->nr_peers <= STACK_MAX_PEERS && s->nr_groups <= STACK_MAX_GROUPS);
	stack_order(s, order);
	for (uint32_t i = 0; i < s->nr_peers; i++) {
		assert(order[i] < s->nr_peers);
		place[order[i]] = i;
	}
	for (uint32_t i = 0; i < s->nr_peers; i++) {
		const struct stack_peer *p = &s->peers[i];

		assert(xseg_name_ok(p->name) && stack_find(s, p->name) == i);
		assert(p->downstream == STACK_NONE ||
			(p->downstream < s->nr_peers && place[p->downstream] < place[i]));
		assert(p->group == STACK_NONE || p->group < s->nr_groups);
		assert(p->threads >= 1 && p->threads <= PEER_MAX_THREADS);
	}
}

static void stack_text(const char *text)
{
	struct stack *s = stack_create();
	struct xseg_error err = { "" };
	struct xseg_config cfg;
	struct xseg_plan plan;

	assert(s);
	if (stack_parse(text, s, &err)) {
		one_line(&err);
		stack_destroy(s);
		return;
	}
	stack_holds(s);
	if (stack_check_options(s, class_of, &err))
		one_line(&err);
	if (stack_segment_config(&s->segment, &cfg, &err) || xseg_plan(&cfg, &plan, &err))
		one_line(&err);
	stack_destroy(s);
}

/* ---- options ---- */

/* KEY=VALUE lines for the options of a kind. */
static void option_text(const struct peer_class *cls, char *text)
{
	struct peer *p = peer_create(cls);
	struct xseg_error err = { "" };
	char *key, *value, shown[8192], again[8192];
	const struct opt *o;

	assert(p);
	while ((key = kv_next_line(&text, &value))) {
		o = opt_find(cls->opts, key);
		if (!o || !value)
			continue;
		if (opt_set(o, p, value, &err)) {
			one_line(&err);
			continue;
		}
		opt_get(o, p, shown, sizeof(shown));
		if (o->kind == OPT_LIST || o->kind == OPT_STR)
			continue;
		if (opt_set(o, p, shown, &err))
			abort();
		opt_get(o, p, again, sizeof(again));
		assert(strcmp(shown, again) == 0);
	}
	peer_destroy(p);
}

static void number_text(const char *text)
{
	char shown[64];
	uint64_t n = 0, again = 0;

	if (opt_parse_size(text, &n) == 0) {
		opt_format_size(n, shown, sizeof(shown));
		assert(opt_parse_size(shown, &again) == 0 && again == n);
		opt_human_size(n, shown, sizeof(shown));
	}
	if (opt_parse_time(text, &n) == 0 || opt_parse_rate(text, &n) == 0)
		opt_human_size(n, shown, sizeof(shown));
}

/* Words of a command line, cut at blanks. */
static void line_text(const struct peer_class *cls, char *text)
{
	struct peer *p = peer_create(cls);
	struct cli_group groups[] = { { cls->opts, p }, { NULL, NULL } };
	struct xseg_error err = { "" };
	char program[] = "fuzz", *argv[66] = { program };
	int argc = 1, at;

	assert(p);
	while (argc < 64 && (argv[argc] = strsep(&text, " \n")))
		argc++;
	argv[argc] = NULL;
	at = cli_parse(groups, argc, argv, &err);
	if (at < 0)
		one_line(&err);
	else
		assert(at <= argc);
	if (argc > 1)
		cli_nearest(groups, argv[1]);
	peer_destroy(p);
}

/* ---- others ---- */

static void fault_text(const char *text)
{
	static const struct memd_timing timing;
	struct xseg_error err = { "" };
	struct memd_fault fault;
	struct memd_model model;

	if (!strchr(text, '\n') && memd_fault_parse(text, &fault, &err))
		one_line(&err);
	memd_model_init(&model, &timing, 1);
	if (memd_model_set_faults(&model, text, &err) == 0)
		for (unsigned i = 0; i < 20; i++)
			memd_model_begin(&model, (enum xseg_op)(i % XSEG_OP_ADMIN), i * 512, i);
	memd_model_fini(&model);
}

static void cpus_text(const char *text)
{
	int cpu[CPUS_MAX], nr;
	struct xseg_error err = { "" };

	nr = cpus_parse(text, cpu, &err);
	if (nr < 0)
		one_line(&err);
	assert(nr <= CPUS_MAX);
}

static void words_text(char *text)
{
	char *value, *word, out[64];
	struct kv_text t;

	kv_init(&t, out, sizeof(out));
	while ((word = kv_next_word(&text, &value)))
		kv_add(&t, "%s=%s\n", word, value ? value : "");
	assert(t.used < sizeof(out) && out[t.used] == '\0');
}

void fuzz_one(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1);
	uint8_t what = size ? data[0] : 0;

	assert(text);
	memcpy(text, data + (size > 0), size ? size - 1 : 0);
	text[size ? size - 1 : 0] = '\0';
	if (what % 8 == 3 || what % 8 == 6)
		text[strcspn(text, "\n")] = '\0';
	switch (what % 8) {
	case 0:
	case 1:
		stack_text(text);
		break;
	case 2:
		option_text(classes[what / 8 % NR_CLASSES], text);
		break;
	case 3:
		number_text(text);
		break;
	case 4:
		line_text(classes[what / 8 % NR_CLASSES], text);
		break;
	case 5:
		fault_text(text);
		break;
	case 6:
		cpus_text(text);
		break;
	default:
		words_text(text);
	}
	free(text);
}
