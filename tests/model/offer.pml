/* offer - one request's way from its origin over a forwarder to a blocker and back, with deaths.
 *
 * Proves: whoever is killed between any two steps, repairs included (KILLS times in all): a request
 * is answered to its origin or freed, never lost; two never work on it at once; it is not redone
 * after it was recorded as applied; it is answered once and freed once; a holder's own swap never
 * fails; nobody is stuck.
 *
 *   step here         stands for
 *   get               xseg_req_alloc: FREE to PRIVATE
 *   offer             xseg_req_submit, xseg_req_forward: (request, sequence) into a lane; the place
 *                     is not changed
 *   accept            xs_req_accept: load the place, compare, swap; in two steps
 *   withdraw          a holder takes its offer back, which nothing does today but a repair; here a
 *                     living one may, too
 *   execute           xseg_req_start, the effect, xseg_req_apply
 *   answer            xseg_req_answer: result, swap to ANSWERED, is the origin alive?, offer the
 *                     reply
 *   put               xseg_req_free: back to FREE
 *   server's repair   xseg_peer_open, xseg_peer_recover by the successor: what is at the dead goes
 *                     to the new generation and the next sequence, and on from its state; what is
 *                     ANSWERED is offered again
 *   client's sweep    xseg_sweep: mark the port's generation dead, then free what is PRIVATE or
 *                     ANSWERED to it
 *
 * A process that is killed begins again as its own successor, of the next generation, with shared
 * memory only; the kernel's lock makes it the only one. The client's successor sweeps, and then is
 * a new client of the same port. Lanes are channels (see lane.pml): a reader looks, accepts, and
 * then releases; who offers is awake (see doorbell.pml). One request stands for all, used ROUNDS
 * times.
 *
 * Abstracted: the memory order. Here a holder looks whether the origin is alive after ANSWERED, and
 * marking the generation dead before the scan of requests, and that answer before the look, each
 * would need a full fence between them. The code has no look: sweeps scan until all is home, so
 * what a scan came too early for the next one finds. As a holder's swap never fails, it is a store
 * there.
 *
 * What it says about the code:
 *  - whether the origin is alive must be looked at *after* the swap to ANSWERED. Before it alone,
 *    the origin may die and be swept in between, and nobody ever frees the request
 *    (BUG_ORIGIN_LOOK_BEFORE_ANSWER);
 *  - a repair that finds ANSWERED does the same look (BUG_REPAIR_TRUSTS_ORIGIN);
 *  - a repair takes STARTED and APPLIED over as well as AT (BUG_REPAIR_ONLY_AT), since they are the
 *    dead one's too;
 *  - a holder that has offered may not touch the request before it withdrew (BUG_NO_WITHDRAW).
 *
 * Broken rules: BUG_ACCEPT_NO_SEQ, BUG_ACCEPT_BY_STORE, BUG_RELEASE_BEFORE_ACCEPT, BUG_NO_WITHDRAW,
 * BUG_OFFER_BEFORE_ANSWER, BUG_ORIGIN_LOOK_BEFORE_ANSWER, BUG_REPAIR_NO_WITHDRAW,
 * BUG_REPAIR_ONLY_AT, BUG_REPAIR_NO_REOFFER, BUG_REPAIR_REDOES_APPLIED, BUG_REPAIR_TRUSTS_ORIGIN,
 * BUG_SWEEP_BY_STORE, BUG_SWEEP_ONLY_PRIVATE
 */
#ifdef SHORT
#define ROUNDS    1
#else
#define ROUNDS    2
#endif
#ifndef KILLS
#define KILLS     2
#endif
#define WITHDRAWS 1
#define LANE      6

#define FREE      0
#define PRIVATE   1
#define AT        2
#define STARTED   3
#define APPLIED   4
#define ANSWERED  5

#define O 0                         /* the origin, a client */
#define F 1                         /* the forwarder; it may also execute by itself */
#define G 2                         /* the blocker */

/* The place: one word, so its parts are only ever read or written together. */
byte p_state, p_owner, p_gen, p_seq = 1;

byte op, result, origin_gen;        /* the request's fields */
byte gen[3];                        /* of each port */
bool killed[3];
byte withdrawn;

chan o_to_f = [LANE] of { byte };
chan f_to_g = [LANE] of { byte };
chan f_to_o = [LANE] of { byte };
chan g_to_o = [LANE] of { byte };

/* Ghosts: what the assertions speak of. */
byte round;
bool live, applied, answered;
bool running[3];

#define IS(s, o, g, q) (p_state == s && p_owner == o && p_gen == g && p_seq == q)
#define SET(s, o, g)   p_state = s; p_owner = o; p_gen = g; p_seq++

inline load_place()
{
	d_step { s = p_state; w = p_owner; g = p_gen; q = p_seq }
}

/* Locals that no longer matter are cleared, so that fewer states differ. */
inline forget_place()
{
	s = 0; w = 0; g = 0; q = 0
}

inline push(lane, entry)
{
	atomic { assert(nfull(lane)); lane!entry }
}

/* Called within atomic. */
inline put()
{
	assert(live);
	live = false;
	SET(FREE, O, 0)
}

/* accept - ok says whether the offer e of sender was taken by (state, me, mygen); the place was
 * loaded before. */
inline accept(sender, state, me, mygen)
{
	atomic {
#ifdef BUG_ACCEPT_NO_SEQ
		ok = w == sender && (s == PRIVATE || s == AT);
#else
		ok = q == e && w == sender && (s == PRIVATE || s == AT);
#endif
		if
#ifdef BUG_ACCEPT_BY_STORE
		:: ok -> p_seq = q; SET(state, me, mygen); my = p_seq
#else
		:: ok && IS(s, w, g, q) -> SET(state, me, mygen); my = p_seq
#endif
		:: else -> ok = false
		fi;
		forget_place();
		e = 0
	}
}

/* ok says that the origin of the request, ANSWERED with sequence n, is dead, and the request
 * freed. */
inline free_if_origin_is_dead(n)
{
	ok = gen[O] != origin_gen;
	if
	:: ok ->
		atomic {
			if
			:: p_state == ANSWERED && p_seq == n -> put()
			:: else
			fi
		}
	:: else
	fi
}

proctype server(byte me; chan in, reply)
{
	byte s, w, g, q;            /* a copy of the place */
	byte e;                     /* an entry of a lane */
	byte my;                    /* the sequence under which I hold the request */
	bool ok, reborn;

again:
	{
		if
		:: !reborn -> goto serve
		:: else
		fi;
repair:
		load_place();
		if
		:: w == me && (s == AT || s == STARTED || s == APPLIED) ->
			atomic {
				if
				:: IS(s, w, g, q) ->
#ifdef BUG_REPAIR_NO_WITHDRAW
					p_gen = gen[me];
#else
					SET(s, me, gen[me]);
#endif
					ok = true;
					my = p_seq
				:: else -> ok = false
				fi
			};
			if
			:: !ok -> goto repair       /* an old offer was just accepted */
			:: ok && s == AT -> atomic { forget_place(); goto work }
#ifdef BUG_REPAIR_ONLY_AT
			:: ok && s != AT -> atomic { forget_place(); goto serve }
#else
			:: ok && s == STARTED -> atomic { forget_place(); goto started }
#ifdef BUG_REPAIR_REDOES_APPLIED
			:: ok && s == APPLIED ->
				atomic { s = 0; w = 0; g = 0; q = 0; SET(STARTED, me, gen[me]); my = p_seq };
				goto started
#else
			:: ok && s == APPLIED -> atomic { forget_place(); goto answer }
#endif
#endif
			fi
		:: s == ANSWERED ->
			atomic { my = q; forget_place() };
#ifdef BUG_REPAIR_NO_REOFFER
			goto serve
#else
			goto reply_to_origin
#endif
		:: else -> atomic { forget_place(); goto serve }
		fi;

serve:
		atomic { my = 0; ok = false };
end_serve:
		atomic { in?<e>; load_place() };
#ifdef BUG_RELEASE_BEFORE_ACCEPT
		in?_;
		accept(me - 1, AT, me, gen[me]);
#else
		accept(me - 1, AT, me, gen[me]);
		in?_;
#endif
		if
		:: ok
		:: else -> goto serve
		fi;

work:
		/* (AT, me, my), and no offer of that sequence stands. */
		if
		:: me == G
		:: me == F
		:: me == F ->
			push(f_to_g, my);
			if
			/* it is the other's, or stays mine until he takes it */
			:: true -> goto serve
			:: atomic { withdrawn < WITHDRAWS -> withdrawn++ };
#ifndef BUG_NO_WITHDRAW
				atomic {
					if
					:: IS(AT, me, gen[me], my) -> SET(AT, me, gen[me]); my = p_seq; ok = true
					:: else -> ok = false
					fi
				};
				if
				:: ok -> goto work
				:: else -> goto serve
				fi
#endif
			fi
		fi;
		atomic { assert(IS(AT, me, gen[me], my)); SET(STARTED, me, gen[me]); my = p_seq };

started:
		atomic { assert(!running[F] && !running[G] && !applied); running[me] = true };
		atomic {
			running[me] = false;
			assert(IS(STARTED, me, gen[me], my));
			SET(APPLIED, me, gen[me]);
			my = p_seq;
			applied = true
		};

answer:
		result = op;
#ifdef BUG_ORIGIN_LOOK_BEFORE_ANSWER
		ok = gen[O] != origin_gen;
#endif
#ifdef BUG_OFFER_BEFORE_ANSWER
		push(reply, my + 1);
#endif
		atomic {
			assert(IS(APPLIED, me, gen[me], my));
			SET(ANSWERED, O, origin_gen);
			my = p_seq
		};
#ifdef BUG_OFFER_BEFORE_ANSWER
		goto serve;
#endif
#ifdef BUG_ORIGIN_LOOK_BEFORE_ANSWER
		if
		:: ok -> atomic { assert(p_seq == my); put() }
		:: else -> push(reply, my)
		fi;
		goto serve;
#endif

reply_to_origin:
#ifdef BUG_REPAIR_TRUSTS_ORIGIN
		if
		:: reborn -> ok = false; reborn = false
		:: else -> free_if_origin_is_dead(my)
		fi;
#else
		free_if_origin_is_dead(my);
#endif
		if
		:: ok
		:: else -> push(reply, my)
		fi;
		goto serve
	} unless { killed[me] };
	atomic {
		killed[me] = false; running[me] = false; gen[me]++;
		s = 0; w = 0; g = 0; q = 0; e = 0; my = 0; ok = false; reborn = true
	};
	goto again
}

/* take_reply - what the origin does with an entry of its reply lanes. */
inline take_reply(lane)
{
	atomic {
		lane?<e>;
		if
		:: IS(ANSWERED, O, gen[O], e) ->
			SET(PRIVATE, O, gen[O]);
			assert(!answered);
			answered = true;
			ok = true
		:: else
		fi;
		e = 0
	};
	lane?_
}

active proctype origin()
{
	byte s, w, g, q, e, my;
	bool ok, reborn;

	atomic { run server(F, o_to_f, f_to_o); run server(G, f_to_g, g_to_o) };
again:
	{
		if
		:: reborn ->
sweep:
			load_place();
			if
#ifdef BUG_SWEEP_ONLY_PRIVATE
			:: w == O && g != gen[O] && s == PRIVATE ->
#else
			:: w == O && g != gen[O] && (s == PRIVATE || s == ANSWERED) ->
#endif
				atomic {
					if
#ifdef BUG_SWEEP_BY_STORE
					:: true -> put(); ok = true
#else
					:: IS(s, w, g, q) -> put(); ok = true
					:: else
#endif
					fi
				};
				if
				:: ok -> ok = false
				:: else -> goto sweep
				fi
			:: else
			fi;
			forget_place()
		:: else
		fi;

get:
end_get:
		if
		:: atomic {
			round < ROUNDS && p_state == FREE ->
			assert(!live);
			live = true; applied = false; answered = false;
			round++;
			SET(PRIVATE, O, gen[O])
		   }
		:: take_reply(f_to_o); assert(!ok); goto get
		:: take_reply(g_to_o); assert(!ok); goto get
		fi;
		atomic { op = round; result = 0; origin_gen = gen[O]; my = p_seq };
offer:
		push(o_to_f, my);
wait:
		if
		:: take_reply(f_to_o)
		:: take_reply(g_to_o)
		:: atomic { withdrawn < WITHDRAWS && IS(PRIVATE, O, gen[O], my) ->
			withdrawn++; SET(PRIVATE, O, gen[O]); my = p_seq };
		   goto offer
		fi;
		if
		:: ok
		:: else -> goto wait
		fi;
		atomic { assert(result == op && applied); put(); ok = false; my = 0 };
		goto get
	} unless { killed[O] };
	/* Death is established, and the port's generation marked dead. */
	atomic {
		killed[O] = false; gen[O]++;
		s = 0; w = 0; g = 0; q = 0; e = 0; my = 0; ok = false; reborn = true
	};
	goto again
}

/* How many die is chosen first, when is open: so that a state with nobody left to die is a state to
 * be stuck in. */
active proctype killer()
{
	byte left;

	select(left : 0 .. KILLS);
end_killer:
	do
	:: atomic { left > 0 && !killed[O] && !killed[F] && !killed[G] -> left--; killed[O] = true }
	:: atomic { left > 0 && !killed[O] && !killed[F] && !killed[G] -> left--; killed[F] = true }
	:: atomic { left > 0 && !killed[O] && !killed[F] && !killed[G] -> left--; killed[G] = true }
	od
}

active proctype watch()
{
	timeout -> assert(p_state == FREE && !live && round == ROUNDS)
}
