/* xkill - kill points: named places at which a test can have the real process killed.
 *
 * A build with -DXSEG_KILL_POINTS (tests/system/kill_points.sh has one of its own) checks at each
 * kill point whether this process must die there. In every other build XKILL() is nothing. The
 * process shares a file with the test (tests/tools/killpoint.c). The file has a table: for each
 * kind of peer and each point, the number of passes that are left. The pass that makes this 0 is
 * the last thing that the process does: SIGKILL, with all its threads.
 *
 * Contract: XKILL() anywhere, from any thread; it takes no lock. xkill_use() once, before the
 * threads.
 */
#ifndef XTYPES_XKILL_H
#define XTYPES_XKILL_H

#include <stdatomic.h>
#include <stdint.h>

/* One line a point: its name, and what has been done when a process dies there. */
#define XKILL_POINTS(X) \
	/* libxseg: requests */ \
	X(REQ_TAKEN, "a free request is PRIVATE, and has no contents") \
	X(REQ_FILLED, "the origin's fields of a request are written; it is not offered") \
	X(REQ_ADDRESSED, "the forwarder's fields of a request are written; it is not offered") \
	X(REQ_ACCEPTED, "a request is AT this process, which has not looked at it") \
	X(REQ_STARTED, "a request is STARTED, and nothing of it is stored") \
	X(REQ_APPLIED, "a request is APPLIED, and not answered") \
	X(RESULT_WRITTEN, "a result is written; the request is not ANSWERED") \
	X(REQ_ANSWERED, "a request is ANSWERED; the answer is not offered") \
	X(ANSWER_ACCEPTED, "an answer is taken, and nothing is done with it") \
	X(GIFT_EXCHANGED, \
		"the page that a write gave is taken, and another is listed in its place; " \
		"the write is not answered") \
	X(PAGE_LENT, "a request lists a page that is lent; it is not answered") \
	X(PART_MARKED, "the done bit of a part is set; its child is not free") \
	X(REQ_DISOWNED, "a child has no parent any more, and is not FREE") \
	X(REQ_TAKEN_OVER, "a predecessor's request has our generation; it is not handed over") \
	/* libxseg: lanes */ \
	X(LANE_JOINED, "a lane has its two ports; the receiver does not know of it") \
	X(OFFER_WRITTEN, "an offer is in its lane, whose tail is not published") \
	X(OFFERS_PUBLISHED, "tails are published; no mask is marked") \
	X(OFFERS_MARKED, "a mask is marked; the sleeper is not woken") \
	X(OFFERS_ACCEPTED, "a batch is accepted; its entries in the lane are not released") \
	/* libxseg: members, peers, extents, routes */ \
	X(MEMBER_CLAIMED, "a slot of a member is claimed; its byte does not say that it is alive") \
	X(PEER_OPENING, "a peer's word says OPENING; it may have no port yet") \
	X(PORT_TAKEN, "a port is the peer's; the peer's list does not have it") \
	X(PEER_RECOVERED, "all is recovered; the peer is not LIVE") \
	X(ROUTE_STORED, "a route is stored, and nothing was sent by it") \
	X(EXTENT_TAKING, "an extent is being made ready for the peer, and has no content") \
	X(EXTENT_TAKEN, "one of some extents is the peer's") \
	X(ARENA_MARKED, "an arena's extents are the peer's; it is not committed") \
	X(EXTENT_GIVEN, "an extent of pages is given back") \
	X(DEAD_MARKED, \
		"a dead peer's word says DEAD; that of others which are dead, too, does not") \
	X(REQ_HOMED, "a request of a dead process is FREE; its others are not") \
	X(CLIENT_RELEASED, "a dead client's memory and ports are given back; its name is not") \
	X(PEER_EMPTIED, "a peer that leaves has given its memory back; it is not STOPPED") \
	/* libxseg: plugging, in the order of its steps (tests/system/plug_points.sh) */ \
	X(PLUG_TURN_ASKED, "an upper peer is asked to hold; others may not be") \
	X(PLUG_TURN_HELD, "an upper peer says that it holds") \
	X(PLUG_ABOVE_NOTED, \
		"a cache that enters knows the peer above it; the lower peer is not kept for it") \
	X(PLUG_CLAIMED, "a cache that enters has its route; the lower peer is not kept for it") \
	X(PLUG_KEPT, \
		"the lower peer is kept for the cache that enters; the upper peer's route " \
		"leads past it") \
	X(PLUG_EPOCH_NOTED, "the arena of a cache that enters has the epoch of its route") \
	X(PLUG_PROVEN, \
		"nothing is dirty in a cache that leaves; the upper peer's route leads to it") \
	X(PLUG_DECIDED, "all upper peers hold, and that is noted; no route is switched") \
	X(PLUG_SWITCHED, \
		"an upper peer's route is switched; those of others may not be") \
	X(PLUG_GIVEN_BACK, \
		"the lower peer is kept for the upper one again; the cache that left has its " \
		"route") \
	X(PLUG_ROUTE_GONE, "a cache that left has no route any more; it names who was above it") \
	X(PLUG_LET_GO, "an upper peer holds no more; others may hold") \
	X(PLUG_ENDED, "nothing is wanted any more") \
	X(PLUG_EPOCH_GONE, "a cache that left is empty; its arena names no epoch") \
	X(PLUG_UNDONE_ABOVE, \
		"a claim is being undone: the lower peer is kept for the upper one again") \
	X(PLUG_UNDONE_ROUTE, \
		"a claim is undone: the cache has no route; the upper peer still holds") \
	X(DIRECT_OPENED, \
		"clients may read a peer's tables without asking; it has not answered " \
		"anything since") \
	X(DIRECT_SHUT, "and may not; nothing else of its purpose is done") \
	/* cached: buckets */ \
	X(OWNER_STORED, "a page bears its bucket's name; the slot does not have it") \
	X(BUCKET_STORED, "a slot has changed; nothing that follows from it has") \
	X(WRITE_FILLED, "a write's new pages hold its data; it is not STARTED") \
	X(WRITE_SLOT, "some of a write's slots are stored") \
	X(LOAD_SLOT, "some slots of a load are LOADING; it is not sent") \
	X(LOADED_SLOT, "some slots of a load that was answered are VALID") \
	X(FLUSH_SLOT, "some slots of a flush are WRITING; it is not sent") \
	X(FLUSHED_SLOT, "some slots of a flush that was answered are VALID") \
	X(EVICTED_SLOT, "a page is out of its slot; it is not free") \
	X(EMPTIED_SLOT, "some slots of an object that leaves are empty") \
	X(DELETED_SLOT, \
		"some slots are empty of an object that the store deleted, or that a cache " \
		"has which left the path") \
	X(BYPASS_SLOT, "some slots of a write past the cache are BYPASS; it is not STARTED") \
	X(BYPASSED_SLOT, \
		"some slots of a write past the cache that was answered are INVALID again") \
	X(SYNC_ANSWERED, "the store answered a FLUSH; the client has no answer") \
	X(LIMBO_TAKEN, "pages that may be on loan are being looked for, and are in no list") \
	/* cached: objects, chunks, size */ \
	X(ENTRY_NAMED, "an entry has its name; its mark says unused") \
	X(ENTRY_EMPTIED, "an entry has no chunks any more; its mark says used") \
	X(CHUNK_CLEARED, "a chunk's slots are FREE; it is no object's") \
	X(CHUNK_DROPPED, "a chunk is out of its object, and not free") \
	X(CHUNK_COPIED, "a chunk's slots are in another; the object has the old one") \
	X(PAGE_COPIED, "a bucket's data is in another page; the slot has the old one") \
	X(POLICY_STORED, \
		"the policy that is asked for is stored for a successor; it does not hold yet") \
	X(SIZE_STORED, "the size that is asked for is stored; nothing of it is done") \
	X(VOLUME_NAMED, "a volume's record has its name; it has no id") \
	X(VOLUME_SET, "a volume's settings are stored; nobody was told") \
	X(HEAD_WRITTEN, "an arena's head is written; it is not ready") \
	X(RELOADED_SLOT, "a successor has rewritten some of the slots") \
	X(RELOADED, "a successor has rewritten all slots, and not opened yet") \
	/* volumed */ \
	X(PART_SENT, "some parts of a split request are sent") \
	X(CHANGE_NOTED, \
		"a command's request says which volume is to be changed for it; no record is " \
		"sent") \
	X(RECORD_SENT, "the record of a change is on its way to the store") \
	X(RECORD_WRITTEN, "the store has the record of a change; nobody was told") \
	X(CATALOG_PART, "a part of the catalogue is read") \
	X(CATALOG_READ, "the catalogue is read; nothing that waited for it goes on") \
	X(JOB_PASSED, "no port sends more for what was removed or cut") \
	X(JOB_DRAINED, "no older request for what was removed or cut is left") \
	X(JOB_ZEROED, "the rest of the last object of a volume that is cut is zeroes") \
	X(JOB_SENT, "some deletes of a removed volume are sent") \
	X(JOB_FLUSHED, \
		"all of a removed volume is deleted; its record says that it is being removed") \
	/* kvd */ \
	X(KVD_LOG_SENT, "a request of the log is offered; the log goes on") \
	X(KVD_LOG_ANSWERED, "a request of the log is answered; the log does not know") \
	X(KVD_NAMED, "a new log's secret is in the head; its first record is not appended") \
	X(KVD_NOTED, \
		"a change's request says where its record will be; it is not STARTED") \
	X(KVD_APPENDED, "a change's records are in the tail; the index does not have them") \
	X(KVD_WRITTEN, "a value is written from its client's pages; the index does not have it") \
	X(KVD_INDEXED, "the index has a change's records; it is not answered") \
	X(KVD_PROMISED, "a change's records are where `sync` wants them; it is not answered") \
	X(KVD_HANDED, "a client's handle is in the arena; the client does not know it") \
	X(KVD_PART_SENT, "the write of a large value's part is offered; kvd goes on") \
	X(KVD_COMMITTED, "a large value's record is appended; its writer's handle is there") \
	X(KVD_CLEARED, "all values are cleared; no head says so yet") \
	X(KVD_COPIED, "a live record has a copy; its zone is not deleted") \
	/* filed */ \
	X(MARK_NAMED, "a mark has a file's name; it says unused") \
	X(MARK_WRITTEN, "a mark names the data that is about to be written") \
	X(IO_SUBMITTED, "the kernel has an I/O") \
	X(IO_ENDED, "the kernel has done an I/O; nobody was told") \
	X(BLOCKS_WRITTEN, \
		"the blocks of an unaligned write are written; the file's length is not right") \
	X(FILE_MADE, "a new file is there; nothing is in it") \
	X(FILE_TAGGED, "a file's attribute says a length that it does not have") \
	X(FILE_GROWN, "a file has its length; its attribute does not say that it is sure") \
	X(FILE_UNLINKED, "a file is deleted; its mark speaks of data") \
	X(FILE_RELEASED, "a file that was synced is closed; its mark says used") \
	X(SYNC_MARKED, "the data of a sync is marked twice: as written, and as being synced") \
	X(FILE_SYNCED, "a file is synced; its mark says that it is not") \
	/* memd */ \
	X(MEMD_COPIED, "a write's data is in the pages; new ones are not the object's") \
	X(MEMD_OWNED, "some new pages of a write are the object's")

/* clang-format off */
enum xkill_point {
#define XKILL_ENUM(name, text) XKILL_##name,
	XKILL_POINTS(XKILL_ENUM)
#undef XKILL_ENUM
	XKILL_NR
};
/* clang-format on */

/* A kind of peer: how many more times each of its points is to be passed; 0: for ever. The test
 * sets it, whoever passes counts down. */
struct xkill_row {
	char kind[16];
	_Atomic uint32_t left[XKILL_NR];
};

#define XKILL_KINDS 5

struct xkill_table {
	struct xkill_row row[XKILL_KINDS];
};

/* The row that holds for this process; NULL: none. */
void xkill_use(struct xkill_row *row);

/* Passes a point, or dies there. */
void xkill_pass(enum xkill_point point);

#ifdef XSEG_KILL_POINTS
#define XKILL(name) xkill_pass(XKILL_##name)
#else
#define XKILL(name) ((void)0)
#endif

#endif
