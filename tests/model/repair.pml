/* repair - a splitter dies, and its successors die in their recovery; several processes sweep what
 * a dead client left.
 *
 * Proves, whoever is killed between any two steps: a part of a split request that was answered is
 * never done again, also if the splitter died with the answer, and its successors with the repair;
 * a request is answered when all its parts were, to the client that sent it; everything comes home,
 * is freed once, and nobody is stuck.
 *
 *   step here         stands for (xseg/peer.c, xseg/sweep.c, xseg/request.c)
 *   open              xseg_peer_open: control lock, mark_dead, a new generation, requests_out for
 *                     what is at rest
 *   orphans           xseg_peer_orphans: requests_out once more, until the child is home
 *   bring_home        bring_home and xs_req_home: what the child's answer says is marked in its
 *                     parent, then the swap to FREE
 *   recover           recover_one: what is at a generation before is taken with ours
 *   mark_dead         xs_mark_dead: a client whose member's lock is free becomes DEAD
 *   sweep             xseg_sweep, sweep_client, xs_peer_release
 *   split             peers/volumed/split.c: a child for each part that is not done;
 *                     xseg_req_part_set_done, xseg_req_free
 *   submit            xseg_req_submit: done bits or result, then the parent, then the offer
 *
 * The client O has one request (P) of two parts; the splitter S has one of its own (C), which it
 * uses for one part after the other; the blocker does what C says, and is not killed (offer.pml
 * kills it). O is killed once; who comes after it is another client, with the same port and
 * request. S is killed KILLS times. Other processes sweep: one, or, with LONG, two, of which one is
 * killed, and gives the lock back so.
 *
 * Abstracted: lanes (lane.pml): a reader looks at what is offered now, old offers too; answers are
 * found by their places; the memory order: every edge is a swap that acquires and releases, the
 * fields of a request are written before one and read after one, but for parent and result, which a
 * repair reads at any time, and which are released in the order of the code.
 *
 * Broken rules: BUG_FORGOTTEN_BEFORE_SWAP, BUG_NO_WAIT_FOR_ORPHANS, BUG_HOME_UNMARKED,
 * BUG_MARKED_AFTER_FREE, BUG_PARENT_IS_KEPT, BUG_SUBMIT_PARENT_FIRST, BUG_DONE_AFTER_FREE,
 * BUG_HOME_BY_STORE, BUG_SAME_GENERATION, BUG_RELEASED_WHILE_OUT
 */
#ifdef LONG
#define KILLS    3                  /* of the splitter: three deep */
#define SWEEPERS 2
#define CLIENTS  1
#else
#define KILLS    2
#define SWEEPERS 1
#define CLIENTS  2                  /* one after the other */
#endif
#define PARTS    2

#define FREE     0
#define PRIVATE  1
#define AT       2
#define ANSWERED 3

#define LIVE     1                  /* the client's word; FREE as above */
#define DEAD     2

/* The places: state, sequence; of P, the generation of the splitter that has it. */
byte req_state, req_seq, req_gen;
byte child_state, child_seq;

byte req_client;                      /* who sent it */
bool req_done[PARTS];
byte child_part;
bool child_parent;                      /* it is a child of P */
bool child_answered;                    /* its result is one */
byte req_offer, child_offer;              /* the last offer in each lane */
byte gen = 1;                       /* the last one given */

byte client = FREE;                 /* O's word */
byte lock;                          /* the process that has it, 0: none */
bool alive;                         /* O's member lock is held */
bool killed_o, killed_s, killed_w;

/* Ghosts. */
bool was_done[PARTS];               /* the blocker answered this part of what P is now */
byte clients, gone;                 /* O's that began; O's that were killed or are through */

#define TAKE_LOCK(who)	atomic { lock == 0 -> lock = who }

#define O 1
#define S 2
#define W 3                         /* and 4 */

/* home says whether P is. With the lock. */
inline bring_home_p()
{
	d_step { st = req_state; sq = req_seq };
	home = st == FREE;
	if
	:: st == PRIVATE || st == ANSWERED ->
		d_step {
#ifdef BUG_HOME_BY_STORE
			home = true;
#else
			home = req_state == st && req_seq == sq;
#endif
			if
			:: home -> req_state = FREE; req_seq++
			:: else
			fi
		}
	:: else
	fi;
	d_step { st = 0; sq = 0 }
}

inline mark_dead()
{
	d_step {
		if
		:: client == LIVE && !alive -> client = DEAD
		:: else
		fi
	}
}

inline sweep(who)
{
	TAKE_LOCK(who);
	mark_dead();
	if
	:: client == DEAD ->
		bring_home_p();
		if
#ifdef BUG_RELEASED_WHILE_OUT
		:: true -> client = FREE
#endif
		:: home -> client = FREE
		:: else
		fi
	:: else
	fi;
	d_step { lock = 0; home = false }
}

/* ---- a client ---- */

active proctype origin()
{
again:
	{
		do
		:: clients < CLIENTS ->
			atomic { client == FREE && lock == 0 -> client = LIVE; alive = true; clients++ };
			d_step {
				assert(req_state == FREE);
				req_state = PRIVATE; req_seq++; req_client = clients;
				req_done[0] = false; req_done[1] = false; was_done[0] = false; was_done[1] = false
			};
			req_offer = req_seq;
			d_step {
				req_state == ANSWERED ->
				assert(req_client == clients && was_done[0] && was_done[1]);
				req_state = PRIVATE; req_seq++
			};
			d_step { req_state = FREE; req_seq++ };
			atomic { lock == 0 -> client = FREE; alive = false; gone++ }
		:: clients == CLIENTS && client == FREE -> goto over
		od
	} unless { killed_o };
	atomic { killed_o = false; gone = gone + alive; alive = false; lock = (lock == O -> 0 : lock) };
	goto again;
over:	skip
}

/* ---- the blocker ---- */

active proctype blocker()
{
	byte st, sq;

end_blocker:
	do
	:: atomic { child_offer != 0 && child_offer == child_seq && child_state == PRIVATE -> st = child_state; sq = child_seq };
	   d_step {
		st = (child_state == st && child_seq == sq);
		if
		:: st -> child_state = AT; child_seq++
		:: else
		fi
	   };
	   if
	   :: st ->
		assert(!was_done[child_part]);
		d_step { was_done[child_part] = true; child_answered = true };
		d_step { child_state = ANSWERED; child_seq++ }
	   :: else
	   fi;
	   d_step { st = 0; sq = 0 }
	od
}

/* ---- the splitter ---- */

inline mark_part()
{
	if
	:: child_parent -> req_done[child_part] = true
	:: else
	fi
}

/* home says whether C is. */
inline bring_home_c()
{
	d_step { st = child_state; sq = child_seq };
	home = st == FREE;
	if
	:: st == PRIVATE || st == ANSWERED ->
#ifdef BUG_FORGOTTEN_BEFORE_SWAP
		if
		:: child_answered -> mark_part()
		:: else
		fi;
		child_parent = false;
#else
#ifndef BUG_MARKED_AFTER_FREE
		if
		:: child_answered ->
#ifndef BUG_HOME_UNMARKED
			mark_part();
#endif
#ifndef BUG_PARENT_IS_KEPT
			child_parent = false
#endif
		:: else
		fi;
#endif
#endif
		d_step {
			home = child_state == st && child_seq == sq;
			if
			:: home -> child_state = FREE; child_seq++
			:: else
			fi
		};
#ifdef BUG_MARKED_AFTER_FREE
		if
		:: home && child_answered -> mark_part(); child_parent = false
		:: else
		fi
#endif
	:: else
	fi;
	d_step { st = 0; sq = 0 }
}

inline open()
{
	TAKE_LOCK(S);
	mark_dead();
#ifdef BUG_SAME_GENERATION
	mine = gen;
#else
	d_step { gen++; mine = gen };
#endif
	bring_home_c();
	d_step { lock = 0; home = false }
}

inline orphans()
{
	do
	:: home -> break
	:: else ->
#ifdef BUG_NO_WAIT_FOR_ORPHANS
		bring_home_c();
		break
#else
		child_state != AT;
		bring_home_c()
#endif
	od;
	home = false
}

/* has says whether P is ours. */
inline take(g)
{
	d_step {
		has = req_state == st && req_seq == sq;
		if
		:: has ->
			req_state = AT; req_gen = g; req_seq++
		:: else
		fi;
		st = 0; sq = 0
	}
}

inline recover()
{
	d_step { st = req_state; sq = req_seq; has = req_state == AT && req_gen != mine };
	if
	:: has -> take(mine)
	:: else
	fi;
	d_step { st = 0; sq = 0 }
}

inline submit_c()
{
	d_step { child_state = PRIVATE; child_seq++ };
	child_part = part;
#ifdef BUG_SUBMIT_PARENT_FIRST
	child_parent = true;
	child_answered = false;
#else
	child_answered = false;
	child_parent = true;
#endif
	child_offer = child_seq
}

inline free_c()
{
	child_parent = false;
	d_step { child_state = FREE; child_seq++ }
}

inline split()
{
	part = 0;
	do
	:: part < PARTS ->
		if
		:: !req_done[part] ->
			assert(child_state == FREE);
			submit_c();
			d_step { child_state == ANSWERED -> child_state = PRIVATE; child_seq++ };
#ifdef BUG_DONE_AFTER_FREE
			free_c();
			req_done[part] = true
#else
			mark_part();
			free_c()
#endif
		:: else
		fi;
		part++
	:: else -> break
	od;
	atomic { part = 0; has = false; assert(req_state == AT && req_gen == mine); req_state = ANSWERED; req_seq++ }
}

active proctype splitter()
{
	byte mine = 1, st, sq, part;
	bool home, has, reborn;

again:
	{
		if
		:: reborn -> open(); orphans(); recover()
		:: else
		fi;
end_splitter:
		do
		:: has -> split()
		:: !has && req_offer != 0 && req_offer == req_seq ->
			d_step { st = req_state; sq = req_offer };
			if
			:: st == PRIVATE || st == AT -> take(mine)
			:: else -> d_step { st = 0; sq = 0 }
			fi
		od
	} unless { killed_s };
	atomic {
		killed_s = false; reborn = true; lock = (lock == S -> 0 : lock);
		mine = 0; st = 0; sq = 0; part = 0; home = false; has = false
	};
	goto again
}

/* ---- others who live ---- */

/* Once a second; here, when there may be something to do. */
#define SWEEPS (!alive && client != FREE && (client == LIVE || req_state != AT))

active [SWEEPERS] proctype sweeper()
{
	byte st, sq;
	bool home;

	{
end_sweeper:
		do
		:: SWEEPS -> sweep(W + _pid % 2)
		od
	} unless { killed_w && _pid % 2 == 0 };
	lock = (lock == W -> 0 : lock)
}

active proctype killer()
{
	byte left;
	bool o, w;

	select(left : 0 .. KILLS);
	select(o : 0 .. 1);
	select(w : 0 .. SWEEPERS - 1);
end_killer:
	do
	:: atomic { left > 0 && !killed_s -> left--; killed_s = true }
	:: atomic { o && alive -> o = false; killed_o = true }
	:: atomic { w -> w = false; killed_w = true }
	od
}

active proctype watch()
{
	timeout -> assert(req_state == FREE && child_state == FREE && client == FREE && lock == 0 && clients == CLIENTS)
}
