/* sosd_test - the parts of sosd that need no cluster: names, errors, the mail between threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "peers/sosd/sosd_error.h"
#include "peers/sosd/sosd_mail.h"
#include "peers/sosd/sosd_name.h"

/* ---- names ------------------------------------------------------------------------------- */

static const char *name_of(const char *prefix, const char *target)
{
	static char name[4][SOSD_NAME_MAX];
	static unsigned nr;

	nr = (nr + 1) % 4;
	sosd_name(prefix, target, name[nr]);
	return name[nr];
}

static void names_can_be_read_and_begin_with_the_prefix(void **state)
{
	(void)state;
	assert_string_equal(name_of("xseg", "vol:000000000000002a"), "xseg.vol:000000000000002a");
	assert_string_equal(name_of("xseg", ":catalog"), "xseg.:catalog");
	assert_string_equal(name_of("a-b_C9", "../x.y"), "a-b_C9.../x.y");
}

static void bytes_that_no_terminal_shows_are_written_in_hex(void **state)
{
	(void)state;
	assert_string_equal(name_of("p", "a b"), "p.a%20b");
	assert_string_equal(name_of("p", "\n\x7f\xc3\xa4"), "p.%0A%7F%C3%A4");
}

static void no_two_names_are_the_same(void **state)
{
	static const char *const prefixes[] = { "x", "xseg", "xseg-" };
	static const char *const targets[] = { "a b", "a%20b", "a%2520b", ".a", "seg.a", "a", "",
		"x.a" };
	const size_t np = sizeof(prefixes) / sizeof(prefixes[0]),
		     nt = sizeof(targets) / sizeof(targets[0]);

	(void)state;
	for (size_t i = 0; i < np * nt; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(name_of(prefixes[i / nt], targets[i % nt]),
				name_of(prefixes[k / nt], targets[k % nt]));
}

static bool is_target(const char *prefix, const char *name, char target[XSEG_TARGET_MAX])
{
	return sosd_name_target(prefix, name, strlen(name), target);
}

static void a_target_is_had_from_its_name(void **state)
{
	static const char *const targets[] = { "a b", "a%20b", ".a", "a", "\n\x7f\xc3\xa4",
		":catalog", "vol:000000000000002a" };
	static const char *const others[] = { "", "x", "x.", "y.a", "xx.a", "x:owner", "xa.b",
		"x.a b", "x.a%2", "x.a%", "x.%41", "x.%00", "x.%2a", "x.%GG" };
	char target[XSEG_TARGET_MAX], name[3 * XSEG_TARGET_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_true(is_target("x", name_of("x", targets[i]), target));
		assert_string_equal(target, targets[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(is_target("x", others[i], target));
	memset(name, 'n', sizeof(name));
	memcpy(name, "x.", 2);
	name[2 + XSEG_TARGET_MAX - 1] = '\0';
	assert_true(is_target("x", name, target));
	name[2 + XSEG_TARGET_MAX - 1] = 'n';
	name[2 + XSEG_TARGET_MAX] = '\0';
	assert_false(is_target("x", name, target));
}

static void the_longest_name_fits(void **state)
{
	char prefix[SOSD_PREFIX_MAX], target[XSEG_TARGET_MAX];

	(void)state;
	memset(prefix, 'p', sizeof(prefix) - 1);
	memset(target, '\n', sizeof(target) - 1);
	prefix[sizeof(prefix) - 1] = target[sizeof(target) - 1] = '\0';
	assert_true(sosd_prefix_ok(prefix));
	assert_int_equal(strlen(name_of(prefix, target)),
		SOSD_PREFIX_MAX - 1 + 1 + 3 * (XSEG_TARGET_MAX - 1));
}

static void a_prefix_has_no_dot(void **state)
{
	static const char *const bad[] = { "", "a.b", ".", "a b", "a/b", "\xc3\xa4",
		"ppppppppppppppppppppppppppppppppp" };

	(void)state;
	assert_true(sosd_prefix_ok("xseg"));
	assert_true(sosd_prefix_ok("Host-1_a"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(sosd_prefix_ok(bad[i]));
}

/* ---- errors ------------------------------------------------------------------------------ */

static void what_passes_is_tried_again_and_nothing_else(void **state)
{
	static const int passes[] = { EAGAIN, EBUSY, ECANCELED, ENOTCONN, ECONNRESET, ECONNREFUSED,
		EPIPE, EINTR };
	static const int stays[] = { ETIMEDOUT, ENOSPC, EDQUOT, ESHUTDOWN, EPERM, EACCES, ENODEV,
		EIO, ENOMEM, ENOENT, EFBIG, EOPNOTSUPP, EPROTO, EINVAL, ERANGE, 12345 };

	(void)state;
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		assert_true(sosd_error_passes(-passes[i]));
	for (size_t i = 0; i < sizeof(stays) / sizeof(stays[0]); i++)
		assert_false(sosd_error_passes(-stays[i]));
}

static void clients_are_told_what_they_can_make_something_of(void **state)
{
	(void)state;
	assert_int_equal(sosd_error_for_client(-ETIMEDOUT), -EIO);
	assert_int_equal(sosd_error_for_client(-ENOSPC), -ENOSPC);
	assert_int_equal(sosd_error_for_client(-EDQUOT), -ENOSPC);
	assert_int_equal(sosd_error_for_client(-ENOENT), -ENOENT);
	assert_int_equal(sosd_error_for_client(-EPERM), -EACCES);
	assert_int_equal(sosd_error_for_client(-EFBIG), -EFBIG);
	assert_int_equal(sosd_error_for_client(-ESHUTDOWN), -EIO);
	assert_int_equal(sosd_error_for_client(-ENODEV), -EIO);
	assert_int_equal(sosd_error_for_client(-EAGAIN), -EIO);
	assert_int_equal(sosd_error_for_client(-12345), -EIO);
}

/* A log line for each object that is not there would be many. */
static void what_was_asked_for_in_vain_is_no_error_of_the_store(void **state)
{
	(void)state;
	assert_false(sosd_error_is_the_stores(-ENOENT));
	assert_true(sosd_error_is_the_stores(-EFBIG));	/* its limit, which can be raised */
	assert_true(sosd_error_is_the_stores(-ETIMEDOUT));
	assert_true(sosd_error_is_the_stores(-ENOSPC));
	assert_true(sosd_error_is_the_stores(-12345));
	for (int error = 1; error < 200; error++)
		assert_true(!sosd_error_is_the_stores(-error) || sosd_error_remedy(-error)[0]);
}

static void the_lock_that_cannot_be_made_says_that_the_pool_is_gone(void **state)
{
	(void)state;
	assert_string_equal(sosd_error_remedy(-ENOENT), sosd_error_remedy(-ENODEV));
}

static void pauses_double_up_to_a_maximum(void **state)
{
	uint64_t last = 0, ns;

	(void)state;
	assert_int_equal(sosd_error_pause_ns(1), SOSD_PAUSE_MIN_NS);
	assert_int_equal(sosd_error_pause_ns(2), 2 * SOSD_PAUSE_MIN_NS);
	for (uint32_t n = 1; n < 100; n++, last = ns) {
		ns = sosd_error_pause_ns(n);
		assert_true(ns >= last && ns <= SOSD_PAUSE_MAX_NS);
	}
	assert_int_equal(last, SOSD_PAUSE_MAX_NS);
	assert_int_equal(sosd_error_pause_ns(UINT32_MAX), SOSD_PAUSE_MAX_NS);
}

/* ---- mail -------------------------------------------------------------------------------- */

#define WRITERS 3
#define LETTERS 20000

struct note {
	struct sosd_letter letter;		/* first */
	unsigned writer, nr;
};

static struct sosd_mail mail;
static struct note notes[WRITERS][LETTERS];
static _Atomic unsigned nr_rings;

static void the_oldest_letter_is_read_first(void **state)
{
	struct sosd_letter a, b, c, *l;

	(void)state;
	assert_null(sosd_mail_take(&mail));
	assert_true(sosd_mail_post(&mail, &a));
	assert_false(sosd_mail_post(&mail, &b));
	assert_false(sosd_mail_post(&mail, &c));
	l = sosd_mail_take(&mail);
	assert_ptr_equal(l, &a);
	assert_ptr_equal(l->next, &b);
	assert_ptr_equal(l->next->next, &c);
	assert_null(c.next);
	assert_null(sosd_mail_take(&mail));
	assert_true(sosd_mail_post(&mail, &a));
	assert_ptr_equal(sosd_mail_take(&mail), &a);
}

static void *write_letters(void *arg)
{
	unsigned writer = *(unsigned *)arg;

	for (unsigned i = 0; i < LETTERS; i++) {
		notes[writer][i].writer = writer;
		notes[writer][i].nr = i;
		if (sosd_mail_post(&mail, &notes[writer][i].letter))
			atomic_fetch_add(&nr_rings, 1);
	}
	return NULL;
}

/* Each letter once, those of one writer in their order; and whoever finds an empty box rings, so
 * that none lies there unread. */
static void letters_of_many_writers_arrive_once_and_in_order(void **state)
{
	unsigned next[WRITERS] = { 0 }, id[WRITERS], got = 0, times = 0;
	pthread_t thread[WRITERS];
	struct sosd_letter *l;
	struct note *n;

	(void)state;
	atomic_store(&nr_rings, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, write_letters, &id[i]), 0);
	}
	while (got < WRITERS * LETTERS) {
		l = sosd_mail_take(&mail);
		times += l != NULL;
		if (!l)
			sched_yield();
		for (; l; got++) {
			n = (struct note *)l;
			l = l->next;
			assert_int_equal(n->nr, next[n->writer]++);
		}
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	assert_null(sosd_mail_take(&mail));
	assert_int_equal(atomic_load(&nr_rings), times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_can_be_read_and_begin_with_the_prefix),
		cmocka_unit_test(bytes_that_no_terminal_shows_are_written_in_hex),
		cmocka_unit_test(no_two_names_are_the_same),
		cmocka_unit_test(a_target_is_had_from_its_name),
		cmocka_unit_test(the_longest_name_fits),
		cmocka_unit_test(a_prefix_has_no_dot),
		cmocka_unit_test(what_passes_is_tried_again_and_nothing_else),
		cmocka_unit_test(clients_are_told_what_they_can_make_something_of),
		cmocka_unit_test(what_was_asked_for_in_vain_is_no_error_of_the_store),
		cmocka_unit_test(the_lock_that_cannot_be_made_says_that_the_pool_is_gone),
		cmocka_unit_test(pauses_double_up_to_a_maximum),
		cmocka_unit_test(the_oldest_letter_is_read_first),
		cmocka_unit_test(letters_of_many_writers_arrive_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
