#!/usr/bin/env python3
"""memcached_hostile.py - clients that stall, leave or send nonsense, beside one that works.

usage: memcached_hostile.py SOCKET CONNECTIONS

Of the connections a part sends half a command, a part half a value, a part asks and never reads, a
part sends random bytes, a part floods without wanting answers, and a part leaves in the middle.
Meanwhile one client puts and gets, and each answer must be right. Then more commands are in the
sockets than the gateway takes at a time, and each of them is answered. Ends with 0 if all was right.
"""
import os
import random
import sys

from memcached_wire import ask, connect, put_and_got, set_of, value_of

PATH, NR = sys.argv[1], int(sys.argv[2])
rng = random.Random(4711)
value = os.urandom(3000).hex().encode()


def works(s, i):
    return put_and_got(s, b"w%d" % (i % 7), value, 3)


def flood(s, data):
    """As much as the socket takes; nothing is read."""
    s.setblocking(False)
    try:
        for _ in range(200):
            s.send(data)
    except BlockingIOError:
        pass


def annoy(s, kind):
    """False: the connection is left at once."""
    if kind == 0:
        s.sendall(b"set half 0 0 100")
    elif kind == 1:
        s.sendall(b"set half 0 0 1000000\r\n" + b"x" * rng.randrange(100000))
    elif kind == 2:
        flood(s, b"get " + b" ".join([b"w0"] * 20) + b"\r\n")
    elif kind == 3:
        s.sendall(rng.randbytes(rng.randrange(1, 3000)))
    elif kind == 4:
        # each answer fills the connection's memory, so all others of it wait
        flood(s, b"get huge\r\n" * 64)
    elif kind == 5:
        flood(s, b"set w%d 0 0 2 noreply\r\nab\r\n" % rng.randrange(100, 200))
    elif kind == 6:
        s.sendall(b"set half 0 0 2147483645\r\n" + b"x" * 100000)
    else:
        s.sendall(b"get w0 w1\r\nset w9 0 0 5\r\nab")
        return False
    return True


def crowd():
    """Many connections with many commands each, all at a time. How many answers were wrong."""
    all_, wrong = [connect(PATH) for _ in range(32)], 0
    for i, s in enumerate(all_):
        s.sendall(b"".join(set_of(b"c%d.%d" % (i, k), b"v" * 1000) for k in range(40)))
    for i, s in enumerate(all_):
        s.sendall(b"".join(b"get c%d.%d\r\n" % (i, k) for k in range(40)) + b"mn\r\n")
    for i, s in enumerate(all_):
        got = ask(s, b"", b"MN\r\n")
        want = b"STORED\r\n" * 40 + b"".join(
            value_of(b"c%d.%d" % (i, k), b"v" * 1000) for k in range(40)) + b"MN\r\n"
        wrong += got != want
        s.close()
    return wrong


def main():
    good = connect(PATH)
    assert works(good, 0)
    ask(good, set_of(b"huge", b"h" * 1000000))
    kept, wrong = [], 0
    for i in range(NR):
        s = connect(PATH)
        try:
            if annoy(s, i % 8):
                kept.append(s)
            else:
                s.close()
        except OSError:
            s.close()
        wrong += not works(good, i)
        if i % 3 == 0 and kept:
            kept.pop(rng.randrange(len(kept))).close()
    for i in range(200):
        wrong += not works(good, i)
    wrong += crowd()
    print(len(kept), "connections stall,", wrong, "answers were wrong")
    return wrong != 0


sys.exit(main())
