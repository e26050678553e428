/* stack_record_test - what a segment keeps of its stack: the text, the file's path, who is to be
 * restarted, which exports are stopped, and what named the segment.
 */
#include "peers/common/options/stack_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

struct records {
	struct stack_record in, out;
	char bytes[STACK_TEXT_BYTES];
};

static int make(void **state)
{
	*state = calloc(1, sizeof(struct records));
	return *state ? 0 : -1;
}

static int drop(void **state)
{
	free(*state);
	return 0;
}

static void fill(struct stack_record *record)
{
	snprintf(record->text, sizeof(record->text), "[peer memd]\nmemory = 1M\n");
	snprintf(record->path, sizeof(record->path), "/etc/xseg/a stack.conf");
	snprintf(record->pending, sizeof(record->pending), "memd,volumed");
	snprintf(record->stopped, sizeof(record->stopped), "disk");
	snprintf(record->named, sizeof(record->named), STACK_NAMED_FILE);
}

static void expect_same(const struct stack_record *a, const struct stack_record *b)
{
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->path, b->path);
	assert_string_equal(a->pending, b->pending);
	assert_string_equal(a->stopped, b->stopped);
	assert_string_equal(a->named, b->named);
}

static void a_record_is_unpacked_as_it_was_packed(void **state)
{
	struct records *r = *state;
	size_t len;

	fill(&r->in);
	len = stack_record_pack(&r->in, r->bytes);
	assert_true(stack_record_unpack(&r->out, r->bytes, len));
	expect_same(&r->in, &r->out);
	/* a reader of the text alone */
	assert_string_equal(r->bytes, r->in.text);
	/* what is empty in the middle */
	*r->in.path = *r->in.pending = '\0';
	len = stack_record_pack(&r->in, r->bytes);
	memset(&r->out, 'x', sizeof(r->out));
	assert_true(stack_record_unpack(&r->out, r->bytes, len));
	expect_same(&r->in, &r->out);
}

static void an_older_record_has_less(void **state)
{
	struct records *r = *state;

	memset(&r->out, 'x', sizeof(r->out));
	assert_true(stack_record_unpack(&r->out, "text", 4));
	assert_string_equal(r->out.text, "text");
	assert_string_equal(r->out.path, "");
	assert_string_equal(r->out.pending, "");
	assert_string_equal(r->out.stopped, "");
	assert_true(stack_record_unpack(&r->out, "text\0/path\0a,b", 14));
	assert_string_equal(r->out.path, "/path");
	assert_string_equal(r->out.pending, "a,b");
	assert_string_equal(r->out.stopped, "");
	assert_string_equal(r->out.named, "");
	assert_false(stack_record_unpack(&r->out, "", 0));
	assert_false(stack_record_unpack(&r->out, "\0/path", 6));
}

static void what_has_no_room_is_left_out_from_the_end(void **state)
{
	struct records *r = *state;
	size_t len;

	fill(&r->in);
	assert_true(stack_record_fits(&r->in));
	/* all but one byte of what named the segment */
	memset(r->in.text, '#', sizeof(r->in.text) - 1);
	r->in.text[STACK_TEXT_BYTES - sizeof("/etc/xseg/a stack.conf") - sizeof("memd,volumed") -
		   sizeof("disk") - sizeof(STACK_NAMED_FILE)] = '\0';
	assert_false(stack_record_fits(&r->in));
	len = stack_record_pack(&r->in, r->bytes);
	assert_true(len <= STACK_TEXT_BYTES);
	assert_true(stack_record_unpack(&r->out, r->bytes, len));
	assert_string_equal(r->out.text, r->in.text);
	assert_string_equal(r->out.path, r->in.path);
	assert_string_equal(r->out.pending, r->in.pending);
	assert_string_equal(r->out.stopped, r->in.stopped);
	assert_string_equal(r->out.named, "");
	/* one byte less, and all fit */
	r->in.text[strlen(r->in.text) - 1] = '\0';
	assert_true(stack_record_fits(&r->in));
	len = stack_record_pack(&r->in, r->bytes);
	assert_int_equal(len, STACK_TEXT_BYTES);
	assert_true(stack_record_unpack(&r->out, r->bytes, len));
	expect_same(&r->in, &r->out);
	/* the longest text has nothing beside it */
	memset(r->in.text, '#', sizeof(r->in.text) - 1);
	len = stack_record_pack(&r->in, r->bytes);
	assert_true(stack_record_unpack(&r->out, r->bytes, len));
	assert_string_equal(r->out.text, r->in.text);
	assert_string_equal(r->out.path, "");
}

static void a_segment_keeps_it(void **state)
{
	const struct xseg_config cfg = { .memory_bytes = 8 << 20, .group = -1 };
	struct records *r = *state;
	struct xseg_error err;
	struct xseg *seg;

	assert_int_equal(xseg_create_private(&cfg, &seg, &err), 0);
	assert_false(stack_record_get(seg, &r->out));
	fill(&r->in);
	assert_int_equal(stack_record_set(seg, &r->in), 0);
	assert_true(stack_record_get(seg, &r->out));
	expect_same(&r->in, &r->out);
	xseg_detach(seg);
}

static void names_are_added_and_taken_out(void **state)
{
	char list[16] = "";

	(void)state;
	assert_false(stack_names_have(list, "a"));
	assert_true(stack_names_add(list, sizeof(list), "a"));
	assert_true(stack_names_add(list, sizeof(list), "abc"));
	assert_true(stack_names_add(list, sizeof(list), "b"));
	assert_true(stack_names_add(list, sizeof(list), "abc"));	/* it is there */
	assert_string_equal(list, "a,abc,b");
	assert_true(stack_names_have(list, "a"));
	assert_true(stack_names_have(list, "abc"));
	assert_true(stack_names_have(list, "b"));
	assert_false(stack_names_have(list, "ab"));
	assert_false(stack_names_have(list, "bc"));
	assert_false(stack_names_add(list, sizeof(list), "much_longer"));
	assert_string_equal(list, "a,abc,b");
	stack_names_remove(list, "ab");
	assert_string_equal(list, "a,abc,b");
	stack_names_remove(list, "abc");
	assert_string_equal(list, "a,b");
	stack_names_remove(list, "b");
	assert_string_equal(list, "a");
	stack_names_remove(list, "a");
	assert_string_equal(list, "");
}

static void a_peer_and_an_export_of_one_name_are_stopped_apart(void **state)
{
	struct records *r = *state;

	*r->in.stopped = '\0';
	assert_true(stack_stopped_add(&r->in, STACK_STOPPED_PEER, "disk"));
	assert_true(stack_stopped_add(&r->in, STACK_STOPPED_PEER, "disk"));	/* it is there */
	assert_string_equal(r->in.stopped, "peer:disk");
	assert_true(stack_stopped_has(r->in.stopped, STACK_STOPPED_PEER, "disk"));
	assert_false(stack_stopped_has(r->in.stopped, STACK_STOPPED_EXPORT, "disk"));
	assert_true(stack_stopped_add(&r->in, STACK_STOPPED_EXPORT, "disk"));
	stack_stopped_remove(&r->in, STACK_STOPPED_PEER, "disk");
	assert_string_equal(r->in.stopped, "disk");
	assert_false(stack_stopped_has(r->in.stopped, STACK_STOPPED_PEER, "disk"));
	assert_true(stack_stopped_has(r->in.stopped, STACK_STOPPED_EXPORT, "disk"));
	/* a record without room */
	memset(r->in.text, '#', sizeof(r->in.text) - 1);
	assert_false(stack_stopped_add(&r->in, STACK_STOPPED_PEER, "volumed"));
}

static void all_exports_and_peers_of_a_stack_can_be_stopped(void **state)
{
	char name[XSEG_NAME_MAX];
	struct records *r = *state;
	int i;

	snprintf(r->in.text, sizeof(r->in.text), "[segment]");
	*r->in.stopped = '\0';
	for (i = 0; i < STACK_MAX_EXPORTS; i++) {
		snprintf(name, sizeof(name), "%0*d", STACK_EXPORT_NAME_MAX, i);
		assert_true(stack_stopped_add(&r->in, STACK_STOPPED_EXPORT, name));
	}
	for (i = 0; i < STACK_MAX_PEERS; i++) {
		snprintf(name, sizeof(name), "%0*d", XSEG_NAME_MAX - 1, i);
		assert_true(stack_stopped_add(&r->in, STACK_STOPPED_PEER, name));
		assert_true(stack_stopped_has(r->in.stopped, STACK_STOPPED_PEER, name));
	}
}

static void peers_that_are_to_be_replaced_are_told_from_others(void **state)
{
	char list[64] = "volumed";
	const char *at = list;
	struct stack_replaced r;

	(void)state;
	assert_false(stack_replaced_next(&at, &r));
	assert_true(stack_replaced_add(list, sizeof(list),
		&(struct stack_replaced){ .name = "cached", .generation = 4294967295u }));
	assert_true(stack_names_add(list, sizeof(list), "supervisor"));
	assert_true(stack_replaced_add(list, sizeof(list),
		&(struct stack_replaced){ .name = "memd", .generation = 7, .keeps_route = true }));
	assert_string_equal(list, "volumed,cached:4294967295,supervisor,memd=7");
	assert_false(stack_replaced_add(list, sizeof(list),
		&(struct stack_replaced){ .name = "a_peer_of_a_long_name", .generation = 7 }));
	at = list;
	assert_true(stack_replaced_next(&at, &r));
	assert_string_equal(r.name, "cached");
	assert_int_equal(r.generation, 4294967295u);
	assert_false(r.keeps_route);
	assert_true(stack_replaced_next(&at, &r));
	assert_string_equal(r.name, "memd");
	assert_int_equal(r.generation, 7);
	assert_true(r.keeps_route);
	assert_false(stack_replaced_next(&at, &r));
	/* such an entry is no name */
	assert_false(stack_names_have(list, "memd"));
	assert_true(stack_names_have(list, "supervisor"));
	/* what is written over is left out */
	at = "x:y,z:,:3,w=12";
	assert_true(stack_replaced_next(&at, &r));
	assert_string_equal(r.name, "w");
	assert_int_equal(r.generation, 12);
}

#define T(test) cmocka_unit_test_setup_teardown(test, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_record_is_unpacked_as_it_was_packed),
		T(an_older_record_has_less),
		T(what_has_no_room_is_left_out_from_the_end),
		T(a_segment_keeps_it),
		T(a_peer_and_an_export_of_one_name_are_stopped_apart),
		T(all_exports_and_peers_of_a_stack_can_be_stopped),
		cmocka_unit_test(names_are_added_and_taken_out),
		cmocka_unit_test(peers_that_are_to_be_replaced_are_told_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
