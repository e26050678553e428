/* kv_rig - see kv_rig.h. */
#include "tests/rig/kv_rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/runtime/reactor.h"
#include "tests/rig/kv_model.h"
#include "tests/rig/seg_free.h"

static struct {
	struct peer *peer;
	struct reactor_set *set;
	struct segfree before;
} stack;

void kvrig_start_kvd(struct kvrig *g)
{
	struct peer *p = stack.peer = peer_create(&kvmodel_class);
	struct xseg_error err = { "" };
	unsigned failed;

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "values");
	p->threads = 1;
	stack.set = reactor_set_create(&stack.peer, 1, "", &err);
	assert_non_null(stack.set);
	if (reactor_set_open(stack.set, g->seg, &failed, &err))
		fail_msg("%s", err.text);
	assert_int_equal(reactor_set_start(stack.set, &err), 0);
}

void kvrig_stop_kvd(struct kvrig *g)
{
	(void)g;
	if (!stack.set)
		return;
	reactor_set_stop(stack.set, 0);
	reactor_set_destroy(stack.set);
	peer_destroy(stack.peer);
	stack.set = NULL;
}

void kvrig_reopen(struct kvrig *g, uint64_t gone_ns)
{
	kvrig_reopen_with(g, gone_ns, 0);
}

void kvrig_reopen_with(struct kvrig *g, uint64_t gone_ns, uint32_t large_rooms)
{
	struct xseg_kv_params params = { .attached = g->seg,
		.gone_ns = gone_ns ? gone_ns : KVRIG_PATIENCE_NS,
		.timeout_ns = KVRIG_PATIENCE_NS };
	struct xseg_kv_queue_params queue = { .depth = 4, .room_bytes = 16384,
		.large_rooms = large_rooms };
	struct xseg_error err = { "" };

	xseg_kv_queue_destroy(g->q);
	xseg_kv_close(g->kv);
	g->q = NULL;				/* if it fails, it is torn down as it is */
	g->kv = NULL;
	if (xseg_kv_open(&params, &g->kv, &err) ||
		xseg_kv_queue_create(g->kv, &queue, &g->q, &err))
		fail_msg("%s", err.text);
}

int kvrig_setup(void **state)
{
	struct xseg_config cfg = { .memory_bytes = 32 << 20, .nr_requests = 256, .nr_ports = 16,
		.huge = XSEG_HUGE_NEVER };
	static struct kvrig g;
	struct xseg_error err = { "" };

	memset(&g, 0, sizeof(g));
	kvmodel_forget();
	g.model = kvmodel_get();
	assert_int_equal(xseg_create_private(&cfg, &g.seg, &err), 0);
	kvrig_start_kvd(&g);
	stack.before = segfree_of(g.seg);
	kvrig_reopen(&g, 0);
	*state = &g;
	return 0;
}

int kvrig_teardown(void **state)
{
	struct kvrig *g = *state;

	atomic_store(&g->model->fault, KVF_NONE);
	xseg_kv_queue_destroy(g->q);
	xseg_kv_close(g->kv);
	if (stack.set)
		segfree_wait(g->seg, stack.before);
	kvrig_stop_kvd(g);
	assert_int_equal(xseg_check(g->seg, false, NULL, NULL), 0);
	xseg_detach(g->seg);
	kvmodel_forget();
	return 0;
}
