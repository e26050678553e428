/* hostile_test - what an evil process writes into the segment's tables: no crash, no look outside of what is there, and those
 * whom it does not concern go on. Values of requests: request_content_test. */
#include "tests/unit/seg_pair.h"

#include <errno.h>
#include <string.h>

/* ---- hints ------------------------------------------------------------------------------- */

static void mask_bits_of_ports_that_the_segment_has_not_are_left_alone(void **state)
{
	(void)state;
	assert_true(seg->geo.nr_ports < 64);
	for (unsigned queue = 0; queue < 2; queue++)
		for (unsigned from = seg->geo.nr_ports; from < XSEG_MAX_PORTS; from++)
			atomic_store(&s->sh->lane[queue][from], 1);
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned queue = 0; queue < 2; queue++)
			for (unsigned w = 0; w < XSEG_MASK_WORDS; w++)
				atomic_store(&s->sh->mask[queue][w], UINT64_MAX << (i % 64));
		xs_port_peek(s);
		segrig_nothing(s);
	}
	segrig_send(c, XSEG_OP_READ, 0, to);
	segrig_answer(s, segrig_request(s), 0);
	xseg_req_free(c, segrig_reply(c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(mask_bits_of_ports_that_the_segment_has_not_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
