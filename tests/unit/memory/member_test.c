/* member_test - the kernel tells which member is alive, by a lock that belongs to the file
 * description. No pid, no other descriptor of the file, no child and no number that wraps changes
 * the answer (xseg/lock.c).
 */
#include "tests/rig/files.h"
#include "tests/rig/seg_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct xseg *seg;
static const char *name;

struct child {
	int ready[2], go[2], heir;		/* heir: it forks one that lives on */
	/* who has the control lock then */
	enum { NO_CONTROL, CONTROL_OF_FORKER, CONTROL_OF_OTHER, CONTROL_SOON } control;
};

static void tell(int fd, pid_t pid)
{
	assert_int_equal(write(fd, &pid, sizeof(pid)), sizeof(pid));
}

static pid_t await(int fd)
{
	pid_t pid = 0;

	assert_int_equal(read(fd, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static sem_t locking;

static void *have_control(void *own)
{
	sem_post(&locking);
	if (xs_lock(own, XSEG_LOCK_CONTROL) < 0)
		_exit(2);
	sem_post(&locking);
	while (pause())
		;
	return NULL;
}

/* CONTROL_SOON: the test has the lock, and the thread waits for it. It does so when it has opened
 * the file again. */
static void take_control(struct child *ch, struct xseg *own)
{
	uint32_t nr = nr_open_files();
	pthread_t other;

	if (ch->control == CONTROL_OF_FORKER && xs_lock(own, XSEG_LOCK_CONTROL) < 0)
		_exit(2);
	if (ch->control < CONTROL_OF_OTHER)
		return;
	sem_init(&locking, 0, 0);
	pthread_create(&other, NULL, have_control, own);
	sem_wait(&locking);
	if (ch->control == CONTROL_OF_OTHER)
		sem_wait(&locking);
	while (nr_open_files() == nr)
		usleep(1000);
}

static int child_server(void *arg)
{
	struct child *ch = arg;
	struct xseg *own = segrig_attach(name);

	segrig_server(own, "memd", 1, 16);
	/* it has what it needs the lock for: now the test takes it */
	if (ch->control == CONTROL_SOON) {
		tell(ch->ready[1], getpid());
		await(ch->go[0]);
	}
	take_control(ch, own);
	/* the one that lives on tells it by itself: when fork() returns there, what it inherited
	 * has been closed */
	if (!ch->heir || fork() == 0)
		tell(ch->ready[1], getpid());
	while (pause())
		;
	return 0;
}

/* Returns the child's pid; *last is that of its own child, if it has one. */
static int begin(struct child *ch, pid_t *last)
{
	int pid;

	name = segrig_named(&seg);
	assert_int_equal(pipe2(ch->ready, O_CLOEXEC), 0);
	pid = segrig_fork(child_server, ch);
	*last = await(ch->ready[0]);
	return pid;
}

static void end(struct child *ch)
{
	close(ch->ready[0]);
	close(ch->ready[1]);
	segrig_sound(seg);
	xseg_detach(seg);
}

static struct xs_member *member_of(int pid)
{
	for (uint32_t i = 0; i < XSEG_MAX_MEMBERS; i++)
		if (atomic_load(&seg->members[i].pid) == (uint32_t)pid)
			return &seg->members[i];
	fail_msg("process %d is no member", pid);
	return NULL;
}

/* As if its pid had been given to a process that lives, and as if a living one's had been given to
 * nobody. */
static void a_pid_is_not_believed(void **state)
{
	struct child ch = { .heir = 0 };
	struct xs_member *m;
	pid_t heir;
	int pid = begin(&ch, &heir);

	(void)state;
	m = member_of(pid);
	atomic_store(&m->pid, 0x7ffffff0);
	assert_int_equal(xseg_sweep(seg), 0);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_LIVE);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 1, 16), -EEXIST);
	atomic_store(&m->pid, (uint32_t)getpid());
	segrig_kill(pid);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_DEAD);
	xseg_peer_close(segrig_open(seg, "memd", 1, 16), XSEG_CLOSE_KEEP_ARENA);
	end(&ch);
}

/* Another process has the pid that the segment says, and lives; or nobody has it. */
static void a_pid_is_signalled_only_if_the_kernel_says_that_it_is_the_member(void **state)
{
	struct child ch = { .heir = 0 };
	struct xseg_peer_info info;
	struct xs_member *m;
	pid_t same;
	int pid = begin(&ch, &same), fd;

	(void)state;
	m = member_of(pid);
	assert_true(xseg_peer_get_info(seg, xseg_peer_find(seg, "memd"), &info));
	assert_int_equal(info.pid, pid);
	assert_int_equal(xseg_peer_pid_check(seg, &info), 0);
	fd = xseg_peer_pidfd(seg, &info);
	assert_true(fd >= 0);
	close(fd);
	for (unsigned i = 0; i < 4; i++) {
		/* one that has the file open, too; another program; nobody; no pid at all */
		const pid_t wrong[] = { getpid(), 1, 0, -5 };

		atomic_store(&m->pid, (uint32_t)wrong[i]);
		assert_true(xseg_peer_get_info(seg, xseg_peer_find(seg, "memd"), &info));
		assert_true(xseg_peer_pidfd(seg, &info) < 0);
		/* whether or not that process can be looked at */
		assert_int_equal(xseg_peer_pid_check(seg, &info), wrong[i] ? -EPROTO : -ESRCH);
		assert_int_equal(xseg_peer_pid_find(seg, &info), pid);
	}
	info.pid = (uint32_t)pid;
	assert_int_equal(xseg_peer_pid_check(seg, &info), 0);
	atomic_store(&m->pid, (uint32_t)pid);
	segrig_kill(pid);
	assert_int_equal(xseg_peer_pidfd(seg, &info), -ESRCH);
	assert_int_equal(xseg_peer_pid_find(seg, &info), 0);
	xseg_peer_close(segrig_open(seg, "memd", 1, 16), XSEG_CLOSE_KEEP_ARENA);
	end(&ch);
}

/* Its descriptors go before its locks: in between it looks as if it were not the member. */
static void a_member_that_is_being_killed_is_not_taken_for_another(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct child ch = { .heir = 0 };
		struct xseg_peer_info info;
		pid_t same;
		int pid = begin(&ch, &same), rc;

		assert_true(xseg_peer_get_info(seg, xseg_peer_find(seg, "memd"), &info));
		assert_int_equal(kill(pid, SIGKILL), 0);
		do {
			rc = xseg_peer_pid_check(seg, &info);
			assert_true(rc == 0 || rc == -ESRCH);
		} while (!rc);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		end(&ch);
	}
}

/* A lock of the older kind would be gone with the first of them that is closed. */
static void closing_another_descriptor_of_the_file_ends_nobody(void **state)
{
	struct xseg_peer *server;
	struct xseg *other;
	char path[64];
	int fd;

	(void)state;
	name = segrig_named(&seg);
	server = segrig_server(seg, "memd", 1, 16);
	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	xseg_detach(segrig_attach(name));
	other = segrig_attach(name);
	assert_int_equal(xseg_sweep(other), 0);
	assert_int_equal(segrig_state(other, "memd"), XSEG_PEER_LIVE);
	xseg_detach(other);
	xseg_peer_close(server, XSEG_CLOSE_KEEP_ARENA);
	segrig_sound(seg);
	xseg_detach(seg);
}

/* A child, and its parent has no second thread: what forks beside one may not allocate under
 * AddressSanitizer. In memory that both have. */
struct joiner {
	_Atomic bool over;
	_Atomic unsigned nr, wrong;		/* times it joined; and was taken for another */
};

/* It serves no peer, so no peer that is served may name its slot. */
static int join_again_and_again(void *arg)
{
	struct joiner *joiner = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* when the test fails */
	while (!atomic_load(&joiner->over)) {
		struct xseg_error err;
		struct xseg *own;

		if (xseg_attach(name, 0, &own, &err))
			continue;
		for (uint32_t i = 0; i < own->geo.nr_ports; i++)
			if (xseg_peer_is_up(peer_state(xs_peer_word(own, i))) &&
				peer_member(xs_peer_word(own, i)) == own->member)
				joiner->wrong++;
		xseg_detach(own);
		joiner->nr++;
	}
	return 0;
}

/* Its slot is free in the middle of another one's joining. */
static void who_dies_while_another_joins_is_not_taken_for_that_one(void **state)
{
	struct child ch = { .heir = 0 };
	struct joiner *joiner = mmap(
		NULL, sizeof(*joiner), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int joins;

	(void)state;
	assert_ptr_not_equal(joiner, MAP_FAILED);
	name = segrig_named(&seg);
	joins = segrig_fork(join_again_and_again, joiner);
	for (unsigned i = 0; i < 200 || joiner->nr < 50; i++) {
		int pid;

		assert_int_equal(pipe2(ch.ready, O_CLOEXEC), 0);
		pid = segrig_fork(child_server, &ch);
		close(ch.ready[1]);		/* so it ends with the child */
		await(ch.ready[0]);
		close(ch.ready[0]);
		usleep(i * 7 % 500);
		segrig_kill(pid);
	}
	atomic_store(&joiner->over, true);
	segrig_wait(joins);
	assert_int_equal(joiner->wrong, 0);
	munmap(joiner, sizeof(*joiner));
	xseg_sweep(seg);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_DEAD);
	segrig_sound(seg);
	xseg_detach(seg);
}

/* In memory that both have. */
struct sweeper {
	_Atomic bool over;
};

/* It attaches and sweeps, as every command does: its byte may be that of the dead. */
static int join_and_sweep(void *arg)
{
	struct sweeper *sweeper = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&sweeper->over)) {
		struct xseg_error err;
		struct xseg *own;

		if (xseg_attach(name, 0, &own, &err))
			continue;
		xseg_sweep(own);
		xseg_detach(own);
	}
	return 0;
}

/* Whoever has reaped a process and looks at once, as the supervisor does. */
static void the_dead_look_dead_while_others_join_and_sweep(void **state)
{
	struct child ch = { .heir = 0 };
	struct sweeper *sweeper = mmap(
		NULL, sizeof(*sweeper), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned alive = 0;
	int others[2];

	(void)state;
	assert_ptr_not_equal(sweeper, MAP_FAILED);
	name = segrig_named(&seg);
	for (unsigned i = 0; i < 2; i++)
		others[i] = segrig_fork(join_and_sweep, sweeper);
	for (unsigned i = 0; i < 200; i++) {
		int pid;

		assert_int_equal(pipe2(ch.ready, O_CLOEXEC), 0);
		pid = segrig_fork(child_server, &ch);
		close(ch.ready[1]);
		await(ch.ready[0]);
		close(ch.ready[0]);
		segrig_kill(pid);
		for (unsigned looks = 0; looks < 20; looks++)
			alive += segrig_state(seg, "memd") != XSEG_PEER_DEAD;
	}
	atomic_store(&sweeper->over, true);
	for (unsigned i = 0; i < 2; i++)
		segrig_wait(others[i]);
	assert_int_equal(alive, 0);
	munmap(sweeper, sizeof(*sweeper));
	segrig_sound(seg);
	xseg_detach(seg);
}

/* Whoever is stopped while joining has a slot, and is not alive in it; others join beside it. */
static void a_slot_that_is_only_claimed_makes_nobody_look_alive(void **state)
{
	struct child ch = { .heir = 0 };
	struct xseg *other;
	uint32_t slot;
	pid_t same;
	int pid = begin(&ch, &same), fd;

	(void)state;
	slot = (uint32_t)(member_of(pid) - seg->members);
	segrig_kill(pid);
	fd = xs_open_again(seg);
	assert_int_equal(xs_lock_byte(fd, XSEG_LOCK_CLAIM0 + slot), 0);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_DEAD);
	other = segrig_attach(name);
	assert_int_not_equal(other->member, slot);
	xseg_detach(other);
	assert_int_equal(xseg_remove(seg, false), -EBUSY);
	close(fd);
	xseg_peer_close(segrig_open(seg, "memd", 1, 16), XSEG_CLOSE_KEEP_ARENA);
	end(&ch);
}

/* Nor when another thread of who has found him dead has just forked: the child has a copy of the
 * description for a moment. */
static void who_was_found_dead_is_no_member_when_the_next_one_has_the_lock(void **state)
{
	struct child ch = { .heir = 0 };
	int copy, fd, pid, rc;
	pid_t same;

	(void)state;
	pid = begin(&ch, &same);
	segrig_kill(pid);
	fd = xs_lock(seg, XSEG_LOCK_CONTROL);
	assert_true(fd >= 0);
	xs_mark_dead(seg);
	copy = dup(fd);
	xs_unlock(fd);
	rc = xseg_remove(seg, false);
	close(copy);
	assert_int_equal(rc, 0);
	end(&ch);
}

/* The process serves memd, and is dead when it is killed, though its child lives on. */
static void ends_alone(struct child *ch, int pid, pid_t heir)
{
	bool dead;

	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_LIVE);
	segrig_kill(pid);
	dead = segrig_state(seg, "memd") == XSEG_PEER_DEAD;
	assert_int_equal(kill(heir, SIGKILL), 0);
	assert_true(dead);
	end(ch);
}

static void a_child_that_lives_on_keeps_nobody_alive(void **state)
{
	struct child ch = { .heir = 1 };
	pid_t heir;
	int pid = begin(&ch, &heir);

	(void)state;
	ends_alone(&ch, pid, heir);
}

/* As if it had forked after its pages were mapped and before the kernel was told that no child gets
 * them. */
static int child_that_maps(void *arg)
{
	uint32_t page[XSEG_EXTENT_PAGES];
	struct child *ch = arg;
	struct xseg *own = segrig_attach(name);
	struct xseg_peer *peer = segrig_server(own, "memd", 1, 16);
	void *base;

	if (xseg_pages_take(peer, 1, page) || xs_pages_map(own, page, XSEG_EXTENT_PAGES, &base) ||
		madvise(base, XSEG_EXTENT_SIZE, MADV_DOFORK))
		_exit(2);
	if (fork() == 0)
		tell(ch->ready[1], getpid());
	while (pause())
		;
	return 0;
}

static void a_child_that_has_pages_mapped_keeps_nobody_alive(void **state)
{
	struct child ch = { .heir = 1 };
	pid_t heir;
	int pid;

	(void)state;
	name = segrig_named(&seg);
	assert_int_equal(pipe2(ch.ready, O_CLOEXEC), 0);
	pid = segrig_fork(child_that_maps, &ch);
	heir = await(ch.ready[0]);
	ends_alone(&ch, pid, heir);
}

/* Whether the control lock can be had, though its owner was killed and a child of his lives. */
static bool control_is_free(struct child *ch)
{
	int pid, held = -1, fd, rc;
	pid_t heir;

	assert_int_equal(pipe2(ch->go, O_CLOEXEC), 0);
	pid = begin(ch, &heir);
	if (ch->control == CONTROL_SOON) {
		held = xs_lock(seg, XSEG_LOCK_CONTROL);
		assert_true(held >= 0);
		tell(ch->go[1], 0);
		heir = await(ch->ready[0]);
		xs_unlock(held);
		/* until the thread has it */
		while (!xs_byte_locked(seg->fd, XSEG_LOCK_CONTROL))
			usleep(1000);
	}
	assert_true(xs_byte_locked(seg->fd, XSEG_LOCK_CONTROL));
	assert_int_equal(kill(heir, 0), 0);
	segrig_kill(pid);
	fd = xs_open_again(seg);
	assert_true(fd >= 0);
	rc = xs_lock_byte(fd, XSEG_LOCK_CONTROL);
	close(fd);
	if (rc == 0)
		assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_DEAD);
	assert_int_equal(kill(heir, SIGKILL), 0);
	end(ch);
	close(ch->go[0]);
	close(ch->go[1]);
	return rc == 0;
}

static void a_child_that_lives_on_keeps_no_control_lock(void **state)
{
	(void)state;
	assert_true(control_is_free(&(struct child){ .heir = 1, .control = CONTROL_OF_FORKER }));
	assert_true(control_is_free(&(struct child){ .heir = 1, .control = CONTROL_OF_OTHER }));
	assert_true(control_is_free(&(struct child){ .heir = 1, .control = CONTROL_SOON }));
}

/* Places bear 20 bits of it. */
static void a_successor_whose_generation_wraps_takes_over_what_there_is(void **state)
{
	struct xseg_peer *client, *server;
	struct segrig_taken t;
	struct xreq *r;

	(void)state;
	name = segrig_named(&seg);
	atomic_store(&seg->super->generation, 0xfffffu - 3);
	client = segrig_client(seg, "me", 4);
	for (unsigned i = 0; i < 8; i++) {
		server = i ? segrig_open(seg, "memd", 1, 16) : segrig_server(seg, "memd", 1, 16);
		if (i) {
			t = (struct segrig_taken){ .nr = 0 };
			xseg_peer_recover(server, segrig_take, &t);
			assert_int_equal(t.nr, 1);
			assert_int_equal(t.state[0], XSEG_REQ_STARTED);
			xseg_peer_serve(server);
			segrig_answer(t.port[0], t.r[0], 4096);
			xseg_req_free(segrig_port(client), segrig_reply(segrig_port(client)));
		}
		segrig_send(segrig_port(client), XSEG_OP_WRITE, 0, xseg_peer_find(seg, "memd"));
		r = segrig_request(segrig_port(server));
		xseg_req_start(segrig_port(server), r);
		xseg_peer_close(server, XSEG_CLOSE_ABANDON);
	}
	assert_true(atomic_load(&seg->super->generation) > 0xfffffu);
	server = segrig_open(seg, "memd", 1, 16);
	t = (struct segrig_taken){ .nr = 0 };
	xseg_peer_recover(server, segrig_take, &t);
	xseg_peer_serve(server);
	segrig_answer(t.port[0], t.r[0], 4096);
	xseg_req_free(segrig_port(client), segrig_reply(segrig_port(client)));
	xseg_peer_close(server, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(client, XSEG_CLOSE_KEEP_ARENA);
	segrig_sound(seg);
	xseg_detach(seg);
}

static void a_sequence_that_wraps_is_as_good_as_any(void **state)
{
	struct xseg_peer *client, *server;
	struct xreq *r;

	(void)state;
	name = segrig_named(&seg);
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++)
		atomic_store(&seg->reqs[i].place, place_word(XSEG_REQ_FREE, 0, 0, (uint32_t)-100));
	client = segrig_client(seg, "me", 1);
	server = segrig_server(seg, "memd", 1, 16);
	for (unsigned i = 0; i < 100; i++) {
		segrig_send(segrig_port(client), XSEG_OP_WRITE, 0, xseg_peer_find(seg, "memd"));
		r = segrig_request(segrig_port(server));
		xseg_req_start(segrig_port(server), r);
		segrig_answer(segrig_port(server), r, 4096);
		r = segrig_reply(segrig_port(client));
		assert_int_equal(r->result, 4096);
		xseg_req_free(segrig_port(client), r);
	}
	assert_true(place_seq(segrig_place(seg, r)) < 1000);
	assert_int_equal(segrig_bad(seg), 0);
	xseg_peer_close(server, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(client, XSEG_CLOSE_KEEP_ARENA);
	segrig_sound(seg);
	xseg_detach(seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pid_is_not_believed),
		cmocka_unit_test(a_pid_is_signalled_only_if_the_kernel_says_that_it_is_the_member),
		cmocka_unit_test(a_member_that_is_being_killed_is_not_taken_for_another),
		cmocka_unit_test(closing_another_descriptor_of_the_file_ends_nobody),
		cmocka_unit_test(who_dies_while_another_joins_is_not_taken_for_that_one),
		cmocka_unit_test(the_dead_look_dead_while_others_join_and_sweep),
		cmocka_unit_test(a_slot_that_is_only_claimed_makes_nobody_look_alive),
		cmocka_unit_test(a_child_that_lives_on_keeps_nobody_alive),
		cmocka_unit_test(a_child_that_has_pages_mapped_keeps_nobody_alive),
		cmocka_unit_test(who_was_found_dead_is_no_member_when_the_next_one_has_the_lock),
		cmocka_unit_test(a_child_that_lives_on_keeps_no_control_lock),
		cmocka_unit_test(a_successor_whose_generation_wraps_takes_over_what_there_is),
		cmocka_unit_test(a_sequence_that_wraps_is_as_good_as_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
