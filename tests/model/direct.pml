/* direct - a client reads a page that it has found in a cache's tables, while the cache lets go of
 * it.
 *
 * Proves: what the reader reads after its looks is its object's page, and stays so until it lets
 * go, whatever the cache does meanwhile: puts another page into the slot, gives the chunk that the
 * slot is in to another object, stops and gives all its pages back.
 *
 *   step here     stands for
 *   find          xseg_direct_read (xseg/direct.c): the slot, found by a chunk word that was the
 *                 entry's
 *   pin           the page is listed in the reader's request; fence
 *   is_still      the slot again, then the entry's version, then the door
 *   replace       bucket_set (object/object.c): the old page goes to limbo
 *   move          chunk_release and what follows it (object/chunk.c): the version, then another
 *                 object's page in the same slot
 *   look          limbo_look (cached/loan.c): fence, then all requests; what none lists is used
 *                 again
 *   stop          direct_end and cached_quiesced: the door, fence, then all requests; if none lists
 *                 a page all go
 *
 * Memory: each of both has a store buffer (x86-TSO), which empties at any time, and before a fence
 * ends. Abstracted: page data (what a page is for says whether it may be read), how the object was
 * learned. Who dies does nothing more, which either may choose at any time.
 *
 * Broken rules: BUG_NO_FENCE_READER, BUG_NO_SECOND_LOOK, BUG_NO_FENCE_LOOK, BUG_NO_VERSION,
 * BUG_VERSION_AFTER_SLOT, BUG_VERSION_BEFORE_LOOK, BUG_NO_FENCE_STOP, BUG_DOOR_BEFORE_LOOK,
 * BUG_LOOK_BEFORE_SHUT
 */
#define PAGES 3
#define READS 2

#define FREE	0
#define OURS	1
#define ANOTHERS 2

#define SLOT	0
#define VERSION 1
#define DOOR	2

byte word[3];                       /* SLOT: page + 1; VERSION, DOOR: 1: changed, shut */
byte is[PAGES];                     /* what a page is for */
byte pin, pin_next;	/* page + 1 that the reader's request lists; what is in its buffer */
chan buffer = [3] of { byte, byte };   /* the cache's */

active proctype memory()
{
	byte at, value;

end_memory:
	do
	:: atomic { buffer?at,value -> word[at] = value }
	:: pin != pin_next -> pin = pin_next
	od
}

bool ready;

#define cache_fence  empty(buffer)
#define reader_fence (pin == pin_next)

active proctype cache()
{
	byte limbo, new, moves, tmp;

	ready;
	do
	:: moves < 2 && limbo == 0 ->                      /* replace */
		atomic { new = 0; do :: new < PAGES && is[new] != FREE -> new++ :: else -> break od };
		if
		:: new < PAGES ->
			limbo = tmp + 1;
			is[new] = OURS;
			buffer!SLOT,new + 1;
			tmp = new
		:: else
		fi;
		moves++
	:: limbo ->                                        /* look */
#ifndef BUG_NO_FENCE_LOOK
		cache_fence;
#endif
		pin != limbo;                              /* again and again, until then */
		is[limbo - 1] = FREE;
		limbo = 0
	:: limbo == 0 ->                                   /* move: it ends with that */
		atomic { new = 0; do :: new < PAGES && is[new] != FREE -> new++ :: else -> break od };
		if
		:: new < PAGES ->
			is[new] = ANOTHERS;
#ifndef BUG_VERSION_AFTER_SLOT
			buffer!VERSION,1;
#endif
			buffer!SLOT,new + 1;
#ifdef BUG_VERSION_AFTER_SLOT
			buffer!VERSION,1;
#endif
			goto out
		:: else -> goto out
		fi
	:: limbo == 0 ->                                   /* stop */
#ifdef BUG_LOOK_BEFORE_SHUT
		atomic { cache_fence && pin == 0 };
		buffer!DOOR,1;
		cache_fence;
#else
		buffer!DOOR,1;
#ifndef BUG_NO_FENCE_STOP
		cache_fence;
#endif
		pin == 0;
#endif
		atomic { is[0] = FREE; is[1] = FREE; is[2] = FREE };
		goto out
	:: break                                           /* is killed */
	od;
out:	skip
}

active proctype reader()
{
	byte p, n, version, door;

	atomic { is[0] = OURS; word[SLOT] = 1; ready = true };
	do
	:: n < READS ->
		n++;
#ifdef BUG_VERSION_BEFORE_LOOK
		version = word[VERSION];
#endif
#ifdef BUG_DOOR_BEFORE_LOOK
		door = word[DOOR];
#endif
		p = word[SLOT];                            /* find */
		pin_next = p;                              /* pin */
#ifndef BUG_NO_FENCE_READER
		reader_fence;
#endif
#ifndef BUG_NO_SECOND_LOOK
		if                                         /* is_still */
		:: word[SLOT] != p -> goto miss
		:: else
		fi;
#endif
#ifndef BUG_VERSION_BEFORE_LOOK
		version = word[VERSION];
#endif
#ifdef BUG_NO_VERSION
		version = 0;
#endif
#ifndef BUG_DOOR_BEFORE_LOOK
		door = word[DOOR];
#endif
		if
		:: version || door -> goto miss
		:: else
		fi;
		assert(is[p - 1] == OURS);                 /* reads */
		assert(is[p - 1] == OURS);
miss:
		pin_next = 0
	:: else -> break
	od
}
