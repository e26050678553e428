/* main - see main.h. One thread of control runs beside the reactors. It waits for signals and for
 * peers that come and go.
 */
#include "peers/common/runtime/main.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/options/cli.h"
#include "peers/common/clock/clock.h"
#include "peers/common/options/cpus.h"
#include "peers/common/say/hint.h"
#include "peers/common/runtime/kill.h"
#include "peers/common/log/log.h"
#include "peers/common/options/owner.h"
#include "peers/common/options/stack.h"
#include "peers/common/runtime/reactor.h"

#ifndef XSEG_VERSION
#define XSEG_VERSION "unknown"
#endif

#define WAITING_LINE_S 10 /* seconds between two lines of a peer that cannot serve yet */

/* ---- options ----------------------------------------------------------------------------- */

#define P(field) offsetof(struct peer, field)
/* Base: struct peer. */
static const struct opt main_opts[] = {
	{ .name = "segment", .kind = OPT_STR, .off = P(segment), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name,
	  .help = "segment to serve, also -s; else $XSEG_SEGMENT, else the only one, else xseg" },
	{ .name = "name", .kind = OPT_STR, .off = P(name), .len = XSEG_NAME_MAX, .arg = "NAME",
	  .check = cli_check_name, .help = "name of this peer (else its kind)" },
	{ .name = "downstream", .kind = OPT_STR, .off = P(downstream_name), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name, .help = "peer that it sends to" },
	{ .name = "threads", .kind = OPT_UINT, .off = P(threads), .min = 1,
	  .max = PEER_MAX_THREADS, .def = "1", .arg = "N",
	  .help = "threads, each with a port of its own" },
	{ .name = "cpus", .kind = OPT_STR, .off = P(cpus), .len = 64, .arg = "LIST",
	  .check = cpus_check, .help = "processors for the threads, such as 0,2-3" },
	{ 0 }
};

struct general {
	bool help, version;
	char owner[OWNER_BYTES];
};

static const struct opt general_opts[] = {
	OWNER_OPT(offsetof(struct general, owner)),
	{ .name = "help", .kind = OPT_BOOL, .off = offsetof(struct general, help),
	  .help = "print this, also -h" },
	{ .name = "version", .kind = OPT_BOOL, .off = offsetof(struct general, version),
	  .help = "print the version" },
	{ 0 }
};

void main_default_segment(char *segment)
{
	snprintf(segment, XSEG_NAME_MAX, "%s", hint_default_segment());
}

static bool any_is_live(const struct opt *table)
{
	for (; table->name; table++)
		if (table->flags & OPT_LIVE)
			return true;
	return false;
}

static void print_help(const struct peer_class *cls)
{
	printf("usage: %s [OPTIONS]\n%s\n\nOptions:\n", stack_program(cls->kind),
		cls->summary);
	cli_print_options(stdout, general_opts);
	printf("\nOptions of every peer:\n");
	cli_print_options(stdout, main_opts);
	if (cls->opts->name)
		printf("\nOptions of %s:\n", cls->kind);
	cli_print_options(stdout, cls->opts);
	if (any_is_live(cls->opts))
		printf("\n[VALUE] is the default; (live) options can be changed with\n"
		       "'xseg peer set NAME KEY=VALUE'.\n");
	else
		printf("\n[VALUE] is the default.\n");
}

/* ---- serving ----------------------------------------------------------------------------- */

struct serving {
	struct xseg *seg;
	struct peer **peers;
	unsigned nr;
	struct reactor_set *set;
	bool stop_all;
	unsigned seconds;			/* that have passed; for lines once in a while */
	struct {
		bool announced, stopped;	/* its line "serving", "stopped" was printed */
		uint64_t left_bytes;		/* a second ago; 0: not asked yet */
	} seen[64];
};

void main_block_signals(sigset_t *blocked)
{
	sigemptyset(blocked);
	sigaddset(blocked, SIGTERM);
	sigaddset(blocked, SIGINT);
	sigaddset(blocked, MAIN_STOP_SIGNAL);
	sigprocmask(SIG_BLOCK, blocked, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Who waits for a lock at its beginning has not begun to take signals: they are pending. */
static bool is_asked_to_leave(void *who)
{
	sigset_t pending;

	(void)who;
	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) ||
		       sigismember(&pending, MAIN_STOP_SIGNAL));
}

static void log_held(const char *text, void *who)
{
	log_warn("%s: %s", (const char *)who, text);
}

int main_attach(const char *who, const char *segment, unsigned flags, struct xseg **seg)
{
	struct xseg_error err = { "" };
	const char *hint;
	int rc;

	/* from the environment it was not checked */
	if (cli_check_name(segment, &err)) {
		log_error("%s: segment: %s; see $XSEG_SEGMENT, or name another with -s", who,
			  err.text);
		return MAIN_USAGE;
	}
	log_name_segment(segment);
	bus_watch(who, segment, MAIN_FAILED);
	rc = owner_attach(segment, flags, seg, &err);
	if (!rc) {
		xseg_set_patience(*seg,
			&(struct xseg_patience){ .stop = is_asked_to_leave, .tell = log_held,
				.arg = (void *)(uintptr_t)who });
		return MAIN_DONE;
	}
	if (rc == -ENOENT) {
		log_error(
			"%s: there is no segment '%s'; make it with 'xseg create', or name another "
			"with -s",
			who, segment);
		return MAIN_REFUSED;
	}
	if (owner_refused(rc, &err)) {
		log_error("%s: %s", who, err.text);
		return MAIN_REFUSED;
	}
	hint = hint_of_attach(rc);
	log_error("%s: %s; %s", who, err.text[0] ? err.text : strerror(-rc),
		hint ? hint : "'xseg info' says more");
	return rc == -EINVAL ? MAIN_USAGE : MAIN_FAILED;
}

/* Leaves as a kill would, which the segment is made for: the successor takes over. */
static void leave_at_once(const struct serving *s)
{
	struct reactor_progress progress;
	const struct peer *p;
	uint64_t dirty;
	char size[32];
	unsigned i;

	for (i = 0; i < s->nr; i++) {
		p = s->peers[i];
		reactor_set_progress(s->set, i, &progress);
		dirty = progress.phase != REACTOR_LEFT && p->cls->dirty_bytes
				? p->cls->dirty_bytes(s->peers[i])
				: 0;
		opt_human_size(dirty, size, sizeof(size));
		if (dirty)
			log_warn(
				"%s: left before it had flushed: %s of data that the store does "
				"not have stay in the segment for the next %s of this name; start "
				"it soon, a reboot would lose them",
				p->name, size, p->cls->kind);
		else if (progress.phase != REACTOR_LEFT)
			log_warn("%s: left at once", p->name);
	}
	_exit(MAIN_LEFT);
}

/* Whether another peer of this process that has not left sends to it: as routes are now. */
static bool has_upper(struct serving *s, unsigned lower)
{
	uint32_t index = xseg_peer_find(s->seg, s->peers[lower]->name);
	struct reactor_progress progress;
	struct xseg_peer_info info;
	unsigned i;

	for (i = 0; i < s->nr; i++) {
		reactor_set_progress(s->set, i, &progress);
		if (i != lower && progress.phase != REACTOR_LEFT &&
			xseg_peer_get_info(
				s->seg, xseg_peer_find(s->seg, s->peers[i]->name), &info) &&
			info.downstream == index)
			return true;
	}
	return false;
}

/* Asks the topmost peer that has not left; a lower one must serve until those above it are gone. */
static void stop_next(struct serving *s)
{
	struct reactor_progress progress;
	unsigned i = s->nr;

	while (i-- > 0) {
		reactor_set_progress(s->set, i, &progress);
		if (progress.phase == REACTOR_LEFT || has_upper(s, i))
			continue;
		if (!progress.stopping)
			reactor_set_stop(s->set, i);
		return;
	}
}

static void stop_one(struct serving *s, int index)
{
	struct reactor_progress progress;
	unsigned i;

	for (i = 0; i < s->nr; i++) {
		reactor_set_progress(s->set, i, &progress);
		if (progress.phase != REACTOR_LEFT &&
		    xseg_peer_find(s->seg, s->peers[i]->name) == (uint32_t)index)
			reactor_set_stop(s->set, i);
	}
}

static void on_signal(struct serving *s, const struct signalfd_siginfo *info)
{
	if ((int)info->ssi_signo == MAIN_STOP_SIGNAL) {
		stop_one(s, info->ssi_int);
	} else if (!s->stop_all) {
		s->stop_all = true;
		stop_next(s);
	} else if (info->ssi_signo == SIGINT) {
		leave_at_once(s);
	}
}

/* The route may lead elsewhere than --downstream: a cache was plugged in. */
static void announce(struct xseg *seg, const struct peer *p)
{
	struct xseg_peer_info info, lower = { .name = "" };
	const char *sends = p->cls->keeps ? ", off the path until it is plugged" : "";
	char threads[32] = "1 thread", kind[32] = "";

	if (xseg_peer_get_info(seg, xseg_peer_find(seg, p->name), &info) &&
	    info.downstream != XSEG_NONE && !xseg_peer_get_info(seg, info.downstream, &lower))
		lower.name[0] = '\0';
	if (p->threads > 1)
		snprintf(threads, sizeof(threads), "%u threads", p->threads);
	if (strcmp(p->name, p->cls->kind) != 0)
		snprintf(kind, sizeof(kind), "%s on ", p->cls->kind);
	log_info("%s: serving (%ssegment %s, %s%s%s)", p->name, kind, xseg_name(seg), threads,
		 lower.name[0] ? ", sends to " : sends, lower.name);
}

/* Lines about what has changed; true when all peers have left. */
static bool look_around(struct serving *s)
{
	struct reactor_progress progress;
	unsigned i, left = 0;

	for (i = 0; i < s->nr; i++) {
		reactor_set_progress(s->set, i, &progress);
		if (progress.phase == REACTOR_SERVING && !s->seen[i].announced) {
			announce(s->seg, s->peers[i]);
			s->seen[i].announced = true;
		}
		if (progress.phase == REACTOR_LEFT && !s->seen[i].stopped) {
			log_info("%s: stopped", s->peers[i]->name);
			s->seen[i].stopped = true;
		}
		left += progress.phase == REACTOR_LEFT;
	}
	if (s->stop_all)
		stop_next(s);
	return left == s->nr;
}

/* The rate is known from the second line on. */
static void print_progress(struct serving *s, unsigned i, const struct reactor_progress *progress)
{
	uint64_t *before = &s->seen[i].left_bytes, rate;
	char left[32], a_second[32], more[64] = "";

	if (!progress->left_bytes) {
		log_info("%s: stopping: waiting for requests in flight", s->peers[i]->name);
		return;
	}
	rate = *before > progress->left_bytes ? *before - progress->left_bytes : 0;
	opt_human_size(progress->left_bytes, left, sizeof(left));
	opt_human_size(rate, a_second, sizeof(a_second));
	if (rate)
		snprintf(more, sizeof(more), ", %s/s, ETA %" PRIu64 "s", a_second,
			 (progress->left_bytes + rate - 1) / rate);
	else if (*before)
		snprintf(more, sizeof(more), ", %s/s", a_second);
	log_info("%s: stopping: %s left to flush%s", s->peers[i]->name, left, more);
	*before = progress->left_bytes;
}

/* The cache that is being plugged or unplugged where that peer is to send to, or has been; or
 * NULL. */
static const char *cache_at(struct xseg *seg, uint32_t lower, struct xseg_peer_info *info)
{
	struct xseg_peer_info at;
	uint32_t i;

	if (!xseg_peer_get_info(seg, lower, &at))
		return NULL;
	if (at.keeper != XSEG_NONE && xseg_peer_get_info(seg, at.keeper, info))
		return info->name;
	for (i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, info) && info->plug != XSEG_PLUG_NONE &&
		    (i == lower || info->plug_lower == lower))
			return info->name;
	return NULL;
}

static void print_waiting(const struct peer *p)
{
	bool has_no_route = p->cls->sends && p->downstream_name[0] &&
			    xseg_route(p->xp, NULL) == XSEG_NONE;
	uint32_t lower = has_no_route ? xseg_peer_find(p->seg, p->downstream_name) : XSEG_NONE;
	struct xseg_peer_info info;
	const char *cache = has_no_route ? cache_at(p->seg, lower, &info) : NULL;

	if (has_no_route && lower == XSEG_NONE)
		log_info("%s: waiting for its downstream '%s', which does not exist yet", p->name,
			 p->downstream_name);
	else if (cache)
		log_info(
			"%s: waiting to send to '%s', which cache '%s' is being plugged or "
			"unplugged above, or has to itself; 'xseg peer list' shows the routes",
			p->name, p->downstream_name, cache);
	else
		log_info(
			"%s: waiting until other peers have answered the requests of its "
			"predecessor%s%s",
			p->name, p->cls->one ? ", and it is the only one there of kind " : "",
			p->cls->one ? p->cls->kind : "");
}

static void on_second(struct serving *s)
{
	struct reactor_progress progress;
	unsigned i;

	s->seconds++;
	for (i = 0; i < s->nr; i++) {
		reactor_set_progress(s->set, i, &progress);
		if (progress.phase == REACTOR_OPENING && !progress.stopping &&
		    s->seconds % WAITING_LINE_S == 1)
			print_waiting(s->peers[i]);
		else if (progress.stopping && progress.phase != REACTOR_LEFT)
			print_progress(s, i, &progress);
	}
}

/* A quiet peer needs no seconds: nothing to tell. */
static bool needs_seconds(struct serving *s)
{
	struct reactor_progress progress;
	unsigned i;

	for (i = 0; i < s->nr; i++) {
		reactor_set_progress(s->set, i, &progress);
		if (progress.phase == REACTOR_OPENING ||
		    (progress.stopping && progress.phase != REACTOR_LEFT))
			return true;
	}
	return false;
}

static void wait_until_left(struct serving *s, int signals)
{
	struct pollfd fds[2] = { { .fd = signals, .events = POLLIN },
				 { .fd = reactor_set_events(s->set), .events = POLLIN } };
	uint64_t second_ms = clock_ms() + 1000, now_ms;
	struct signalfd_siginfo info;
	eventfd_t happened;
	bool ticking = false;

	while (!look_around(s)) {
		now_ms = clock_ms();
		if (now_ms >= second_ms && ticking)
			on_second(s);
		if (now_ms >= second_ms || !ticking)
			second_ms = now_ms + 1000;
		ticking = needs_seconds(s);
		if (poll(fds, 2, ticking ? (int)(second_ms - now_ms) : -1) <= 0)
			continue;
		if (fds[1].revents)
			eventfd_read(fds[1].fd, &happened);
		if (fds[0].revents && read(signals, &info, sizeof(info)) == sizeof(info))
			on_signal(s, &info);
	}
}

/* Of the errno with which a peer could not begin. */
static enum main_exit exit_of(int rc)
{
	switch (-rc) {
	case EEXIST:	/* somebody else serves that */
	case EBUSY:	/* it is in use, or something would be lost */
		return MAIN_REFUSED;
	case EINVAL:
		return MAIN_USAGE;
	case EINTR:	/* it was asked to stop while it waited for a lock */
		return MAIN_LEFT;
	default:
		return MAIN_FAILED;
	}
}

static int open_and_serve(struct serving *s, int signals)
{
	struct xseg_error err = { "" };
	unsigned failed = 0;
	int rc;

	rc = reactor_set_open(s->set, s->seg, &failed, &err);
	if (rc) {
		log_error("%s: %s", s->peers[failed]->name, err.text[0] ? err.text : strerror(-rc));
		return exit_of(rc);
	}
	if (reactor_set_start(s->set, &err)) {
		log_error("%s: %s", s->peers[0]->name, err.text);
		_exit(MAIN_FAILED);
	}
	wait_until_left(s, signals);
	return MAIN_DONE;
}

int main_serve(struct peer **peers, unsigned nr, const char *segment, const char *cpus)
{
	struct serving s = { .peers = peers, .nr = nr };
	struct xseg_error err = { "" };
	sigset_t blocked;
	int signals, rc;

#ifdef XSEG_KILL_POINTS
	kill_points_open(peers[0]->cls->kind);
#endif
	main_block_signals(&blocked);
	signals = signalfd(-1, &blocked, SFD_CLOEXEC);
	if (signals < 0) {
		log_error("%s: cannot take signals: %s", peers[0]->name, strerror(errno));
		return MAIN_FAILED;
	}
	rc = main_attach(peers[0]->name, segment, XSEG_ATTACH_POPULATE, &s.seg);
	if (rc)
		goto out_close;
	s.set = reactor_set_create(peers, nr, cpus, &err);
	if (!s.set) {
		log_error("%s: %s", peers[0]->name, err.text);
		rc = MAIN_FAILED;
		goto out_detach;
	}
	rc = open_and_serve(&s, signals);
	reactor_set_destroy(s.set);
out_detach:
	xseg_detach(s.seg);
out_close:
	close(signals);
	return rc;
}

/* ---- a peer's program -------------------------------------------------------------------- */

/* 0: go on; else the exit code + 1. */
static int read_options(struct peer *p, int argc, char **argv)
{
	const struct peer_class *cls = p->cls;
	struct general general = { .help = false };
	struct cli_group groups[] = {
		{ main_opts, p }, { cls->opts, p }, { general_opts, &general }, { NULL, NULL }
	};
	struct xseg_error err = { "" };
	const char *missing;
	int at = cli_parse(groups, argc, argv, &err);

	if (at >= 0 && general.help) {
		print_help(cls);
		return 1 + MAIN_DONE;
	}
	if (at >= 0 && general.version) {
		printf("%s %s\n", cls->kind, XSEG_VERSION);
		return 1 + MAIN_DONE;
	}
	owner_use(general.owner);
	missing = opt_missing(cls->opts, p);
	if (at < 0)
		log_error("%s: %s; see %s --help", cls->kind, err.text, cls->kind);
	else if (at < argc)
		log_error("%s: '%.60s' is not an option; see %s --help", cls->kind, argv[at],
			  cls->kind);
	else if (missing)
		log_error("%s: --%s is needed; see %s --help", cls->kind, missing, cls->kind);
	else if (p->downstream_name[0] && !cls->sends)
		log_error("%s: it is a store and sends to no peer; leave out --downstream",
			  cls->kind);
	else
		return 0;
	return 1 + MAIN_USAGE;
}

int peer_main(const struct peer_class *cls, int argc, char **argv)
{
	struct peer *p = peer_create(cls);
	int rc;

	cli_begin();
	if (!p) {
		log_error("%s: out of memory", cls->kind);
		return MAIN_FAILED;
	}
	main_default_segment(p->segment);
	rc = read_options(p, argc, argv);
	rc = rc ? rc - 1 : main_serve(&p, 1, p->segment, p->cpus);
	peer_destroy(p);
	return cli_end(cls->kind, rc);
}
