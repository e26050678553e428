/* layout - the segment's ABI: every structure that lives in shared memory, and nothing else.
 *
 * Contract: only xseg/ includes this file. Nothing here holds a pointer: everything is an index or
 * an offset, so every process may map the segment where it likes. All words that two processes may
 * touch at the same time are C11 atomics.
 *
 * Each word says which process writes it and what to do when its writer dies. "Under the control
 * lock" means: by the holder of the kernel's lock on XSEG_LOCK_CONTROL, which dies with its holder.
 * Each change under it is one store, or the next holder can find it half done, and finishes or
 * undoes it. The same is true of the lock of routes, and of the lock of a peer. internal.h says
 * which lock is for which words.
 *
 * Invariants:
 *   L1  A change of any structure changes the ABI stamp (layout_stamp() hashes sizes, offsets and
 *       the formats of arenas.h).
 *   L2  The superblock's `state` is READY only when everything else has been written.
 *   L3  A request's place word alone says which port has the request (table: request.c).
 *   L4  An extent's word alone names the extent's owner. A page's owner word is meaningful only
 *       inside an extent of kind PAGES.
 *   L5  A lane belongs to one pair (from port, to port, queue) for the life of the segment.
 */
#ifndef XSEG_LAYOUT_H
#define XSEG_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define XSEG_MAGIC	   0x31474553582d4243ull
/* A process for each port, and more that only look. */
#define XSEG_MAX_MEMBERS   (XSEG_MAX_PORTS + 64)
#define XSEG_PEER_PORTS	   16
#define XSEG_REQ_UNIT	   XSEG_REQUEST_UNIT
#define XSEG_STACK_BYTES   (64u << 10)	/* room for the text of the stack file */
#define XSEG_DONE_WORDS	   ((XSEG_REQ_PAGES + 63) / 64)
#define XSEG_MASK_WORDS	   (XSEG_MAX_PORTS / 64)

/* Byte offsets of the kernel's (OFD) locks in the segment's file. They lock no data. */
#define XSEG_LOCK_CONTROL  0
#define XSEG_LOCK_SUPER	   1		/* held by the supervisor */
#define XSEG_LOCK_ROUTES   2		/* routes, plugging, the stack's text */
#define XSEG_LOCK_MEMBER0  64		/* + member index: it is alive */
/* + member index: somebody has this slot, or is about to (K4 of lock.c) */
#define XSEG_LOCK_CLAIM0   (XSEG_LOCK_MEMBER0 + XSEG_MAX_MEMBERS)
#define XSEG_LOCK_PEER0	   (XSEG_LOCK_CLAIM0 + XSEG_MAX_MEMBERS) /* + peer: its entry */

enum xs_state { XS_MAKING = 1, XS_READY = 2 };

/* Written once by xseg_create(), before `state` becomes READY. */
struct xs_geometry {
	uint64_t total_bytes;
	uint32_t nr_requests, nr_ports, nr_lanes, lane_slots;
	uint32_t nr_extents, nr_stats;
	uint64_t off_members, off_peers, off_ports, off_bells, off_lanes, off_rings;
	uint64_t off_requests, off_extents, off_owners, off_touched, off_stats, off_stack,
		off_kept_peers, off_kept_ports, off_pages;
	uint64_t ring_bytes;
};

struct xs_super {
	uint64_t magic;
	uint64_t stamp;				/* layout_stamp() of the build that made it */
	_Atomic uint32_t state;			/* enum xs_state; the maker's */
	uint32_t huge;				/* enum xseg_huge as asked for */
	uint32_t pool;			/* 1: its pages are in a file of a hugetlbfs */
	uint32_t pad;
	struct xs_geometry geo;
	char name[XSEG_NAME_MAX];
	uint64_t made_at_s;			/* wall clock, for people */
	_Atomic uint64_t generation;	/* source of port generations */
	/* R5: things found wrong in the segment; any process, relaxed */
	_Atomic uint64_t bad_count;
	/* stack_word(): length of the stack text, and which one it is; under the lock of routes.
	 * Its reader takes no lock */
	_Atomic uint32_t stack_word;
};

/* A process that has attached, while the lock on its byte is held: all in here is for people. The
 * member writes it. */
struct xs_member {
	uint32_t pad;
	_Atomic uint32_t pid;			/* 0: it has detached */
	char label[XSEG_NAME_MAX];		/* the program's name */
};

/* A peer: a name, some ports, an arena, a route. Outlives the process that serves it. */
struct xs_peer {
	char name[XSEG_NAME_MAX];	/* under the control lock, and its own, while FREE */
	char kind[16];
	/* peer_word(): state, member, generation; under the peer's lock, and a client's under the
	 * control lock, except that an open peer goes OPENING -> LIVE by itself, and DEAD where it
	 * cannot have the lock */
	_Atomic uint64_t word;
	_Atomic uint64_t route;		/* route_word(): downstream peer + 1, epoch; one store */
	/* Direct reading (direct.c). direct: odd while readers may go past this peer's queues;
	 * counts on for the life of the segment, and each change voids what they have learned: the
	 * peer, and whoever forgets it. The rest: where its entries are in its arena, valid while
	 * it is odd, and how many pages a port may pin: the peer */
	_Atomic uint64_t direct, direct_off;
	_Atomic uint32_t direct_nr, direct_stride, direct_max;
	/* plugging, as below: peer + 1 that has this one to itself while its route leads here; 0:
	 * nobody */
	_Atomic uint32_t above;
	_Atomic uint32_t nr_ports; /* only grows while the name lives; under the control lock */
	_Atomic uint32_t arena_extents;	/* commits the arena: 0 = none; the owner, one store */
	_Atomic uint64_t arena_bytes;	/* valid while that is not 0: stored before; the owner */
	/* of the route to what the arena has copies of; XSEG_NO_EPOCH: it has none; its peer */
	_Atomic uint64_t arena_epoch;
	uint16_t port[XSEG_PEER_PORTS];		/* under the control lock */
	_Atomic uint64_t user[8];		/* the peer's own words: it says what they mean */
	/* Plugging (plug.c): these two and `above` under the lock of routes, one store each;
	 * whoever takes it next ends or undoes what is half done. */
	_Atomic uint64_t plug;		/* plug_word(): what is wanted of this cache; 0: nothing */
	/* turn_word(): which cache wants this peer to hold what it sends; 0: none */
	_Atomic uint64_t turn;
	/* What was read directly in this one's tables (direct.c): each reader adds what it has
	 * counted by itself; the last of one that dies are missing. Far from what readers look
	 * at. */
	_Atomic uint64_t direct_reads, direct_bytes;
	/* peer + 1 that this cache sent to until it left the path; 0: it never did, or that peer
	 * is gone. For who plugs it again; under the lock of routes, one store. Who dies before it
	 * leaves the older one */
	_Atomic uint32_t was_above;
};

/* Of a port's `asked`: what is offered to it by `ask`; all that was offered to it, as `to` says,
 * also by a lane, as somebody may have written over that. */
#define XS_ASKED     1u
#define XS_ASKED_ALL 2u

struct xs_port {
	_Atomic uint32_t peer;		/* peer index + 1; 0 = free; under the control lock */
	_Atomic uint32_t generation;	/* of whoever serves it now; under its peer's lock */
	_Atomic uint32_t bell;		/* index of the doorbell of its reactor; its server */
	uint32_t req_first, req_nr;		/* its own requests; under the control lock */
	/* Hint: where those send whom the hash leads here, 1 + which of the peer's ports; 0: here.
	 * Its server writes it. One that dies leaves it to its successor, which begins with 0, and
	 * serves all of its ports, so it does not matter which a request was sent to. */
	_Atomic uint32_t steer;
	/* Hint: an answer to a request of its own was not offered, and is to be found by its place.
	 * Set by who answered or repaired; cleared by the port's server before it looks. */
	_Atomic uint32_t answered;
	/* Hint: a request is offered to it that found no lane, and is to be found by its `ask`. Set
	 * by the sender, and by a successor; cleared as above. */
	_Atomic uint32_t asked;		/* XS_ASKED..., which are or-ed */
	/* Hints: lanes (by sender) that may hold work. Senders set bits after they have published;
	 * the reader clears them before it looks. A sender that dies between the two is made good
	 * by the reader, who looks at all lanes before it sleeps and once a tick. */
	_Alignas(64) _Atomic uint64_t mask[2][XSEG_MASK_WORDS];
	/* lane index + 1 by sending port, 0 = none yet; the sender */
	_Atomic uint16_t lane[2][XSEG_MAX_PORTS];
};

/* A doorbell: bit 0 is the announcement (the sleeper sets and clears it, nobody else), the rest
 * counts rings, so that a ring between announcing and waiting is not lost. The hints are the
 * sleeper's. Whoever reads an old one only sleeps too early, or polls in vain. */
struct xs_bell {
	_Alignas(64) _Atomic uint32_t word;
	_Atomic uint32_t cpu;		/* hint: 1 + the processor it ran on; 0: it did not say */
	_Atomic uint32_t slept;		/* hint: `word` as of its last announcement */
};

struct xs_lane {
	/* used:1 queue:1 from:9 to:9; the sender, by a swap from 0 */
	_Atomic uint32_t word;
};

#define XS_NOT_ANSWERED INT64_MIN
/* Nobody has submitted it since it was freed: no place can say that somebody holds it (place.c). */
#define XS_IDLE (INT64_MIN + 1)

/* A page of a request. `lent`: what is lent in its place, XSEG_LENT_*, or 0; the holder's until it
 * is answered, and then its origin's to drop. Until the request is FREE or submitted again it pins
 * that page, whoever has died (loan.c). */
struct xs_page {
	/* the origin's, or one that it was lent and gives: with XSEG_PAGE_GIVEN (gift.c) */
	uint32_t page;
	_Atomic uint32_t lent;
};

#define XS_TARGET_HEAD 40

/* A request. The first two cache lines are all that a 4 KiB I/O of an object with a short name
 * hands from one CPU to another. */
struct xs_req {
	_Alignas(64) _Atomic uint64_t place;	/* place_word(): see request.c */
	/* the origin's: not changed after submission, but that a holder takes flags away
	 * (xseg_req_unlend()) */
	uint8_t op, flags;
	uint16_t nr_pages;
	uint32_t size;
	uint64_t offset;
	uint32_t volume;
	uint16_t origin;	/* the port it belongs to; set when a port gets its requests */
	_Atomic uint16_t nr_lent; /* so many of its pages may bear something lent; as page[].lent */
	/* the answerer's: valid when the place says ANSWERED, and until the request is freed, which
	 * makes it XS_IDLE. XS_NOT_ANSWERED from when it is submitted until it is answered. A
	 * repair looks at it while somebody may be answering */
	_Atomic int64_t result;
	/* the forwarder's: valid for whoever accepts its offer */
	uint64_t obj_offset;
	uint64_t hash;
	/* a split request's child: parent's index + 1, 0 while it is not submitted; stored after
	 * the result and the part */
	_Atomic uint32_t parent;
	uint32_t part;
	/* port + 1 that sent it on last; 0: nobody since it was allocated or taken over */
	_Atomic uint16_t via;
	/* port + 1 that it was offered to last: valid while via is not 0, stored before that */
	_Atomic uint16_t to;
	/* which submission this is: the sequence that the place had then; the origin's. A holder
	 * whose place was written over knows by it that the request is still the one that it has */
	uint32_t pass;
	/* An offer that found no lane: ask_word(), the port that it is made to, and the sequence of
	 * the place while it is good. Its sender, after all else; never cleared, as the sequence
	 * tells */
	_Atomic uint64_t ask;
	/* the object's name; the rest of a long one is in target_rest */
	char target[XS_TARGET_HEAD];
	struct xs_page page[XSEG_REQ_PAGES];
	char target_rest[XSEG_TARGET_MAX - XS_TARGET_HEAD];
	/* A split request's done bits, one a part. Its splitter sets them before it frees the
	 * part's child; a successor finds them, and those of children that were answered, whether
	 * the splitter had taken the answer or not. Of a request that is not split they are notes,
	 * which its holder stores for a successor of its own. Zeroed by the origin at each
	 * submission. */
	_Atomic uint64_t done[XSEG_DONE_WORDS];
};

_Static_assert(offsetof(struct xs_req, page) == 120, "the first page ends the second cache line");

/* TAKING: it is being made ready for the peer, which has nothing in it. */
enum xs_extent_kind { XS_EXTENT_FREE, XS_EXTENT_ARENA, XS_EXTENT_PAGES, XS_EXTENT_TAKING };

struct xs_extent {
	/* extent_word(): kind, peer, number. Who takes it makes it TAKING by a swap from FREE; all
	 * else are stores of its owner, or of who frees what a dead one had */
	_Atomic uint64_t word;
	/* 0 = never used, so still zero; set before first use, by who takes it */
	_Atomic uint32_t dirty;
	uint32_t pad;
};

/* Beside them, for each page (off_owners, off_touched): a 64-bit word that says what the owner has
 * the page for, by the owner, whose successor checks it; and a byte, set by who reads the page
 * directly and cleared by the owner, a hint. */

/* Of a block's `peer`: what it counts is being written there. */
#define XS_STATS_MAKING 0x80000000u

struct xs_stats {
	/* peer index + 1; 0 = free. Taken by a swap from 0, with XS_STATS_MAKING until it has a
	 * name; given back by one store of its owner, or of who releases a peer */
	_Atomic uint32_t peer;
	uint32_t nr;
	/* The volume, of that peer, whose I/O it counts, and its first counter that origins of I/O
	 * add to: failed I/Os, reads without a request, their bytes (measure.c). The block's writer
	 * sets both, once; 0: origins add to none of its counters */
	_Atomic uint32_t volume, told;
	/* "cached.0"; blocks of one name and kind are summed by readers */
	char name[XSEG_NAME_MAX];
	char kind[16];
	char key[XSEG_STATS_MAX][XSEG_STATS_KEY];
	/* One writer: the reactor that owns it. But the origins of a volume's I/O add to its three
	 * counters from `told` on, and to `lat` */
	_Alignas(64) _Atomic uint64_t value[XSEG_STATS_MAX];
	struct xhist lat;			/* the same writers */
};

/* What kept.c has of peers and ports: stored beside each word of theirs that it names, by who
 * stores that; its head says what a death in between leaves. */
struct xs_kept {
	_Atomic uint64_t value, check;
};
enum xs_kept_row {
	XS_KEPT_WORD, XS_KEPT_ROUTE, XS_KEPT_EPOCH, XS_KEPT_BYTES, XS_KEPT_PLUG, XS_KEPT_TURN,
	XS_KEPT_ABOVE, XS_KEPT_PORTS, XS_KEPT_EXTENTS, XS_KEPT_NR
};
struct xs_kept_lists {
	char name[XSEG_NAME_MAX];
	char kind[16];
	uint16_t port[XSEG_PEER_PORTS];
	_Atomic uint64_t check;
};
struct xs_kept_peer {
	struct xs_kept row[XS_KEPT_NR];
	struct xs_kept_lists lists;
};
struct xs_kept_port {
	struct xs_kept peer, range;
};

#endif
