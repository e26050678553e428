#!/usr/bin/env python3
"""memcached_judge.py - the same bytes to Debian's memcached and to ours; the answers are compared.

usage: memcached_judge.py OURS THEIRS    paths of two unix sockets, of servers without keys

Each case is a script of commands on a connection of its own. Unique numbers (cas) differ between the
servers, so they are numbered in the order in which they show. Prints a line for each case: "ok NAME",
"differs NAME" with both answers, or "listed NAME" if it differs and is in DIFFERS, with the reason.
Ends with 1 if any differs that is not listed, or one that is listed does not.
"""
import re
import socket
import sys

LONG = b"k" * 251
MAX = b"k" * 250


def set_(key, value, flags=0, exptime=0, verb=b"set", more=b""):
    return b"%s %s %d %d %d%s\r\n%s\r\n" % (verb, key, flags, exptime, len(value), more, value)


CASES = {
    "get of nothing": b"get a\r\ngets a b c\r\n",
    "set and get": set_(b"a", b"hello", 7) + b"get a\r\n",
    "an empty value": set_(b"a", b"") + b"get a\r\n",
    "many keys": set_(b"a", b"1") + set_(b"b", b"2") + b"get a b c a\r\n",
    "blanks between words": b"set  a  0 0  1\r\nx\r\nget   a  b \r\n",
    "a key of 250 bytes": set_(MAX, b"x") + b"get " + MAX + b"\r\n",
    "a key of 251 bytes": b"get " + LONG + b"\r\nget a " + LONG + b"\r\n",
    "touch of a long key": b"touch " + LONG + b" 1\r\nincr " + LONG + b" 1\r\n",
    "flags": set_(b"a", b"x", 4294967295) + b"get a\r\n",
    "bad numbers": b"set a x 0 1\r\nset a 0 y 1\r\nset a 0 0 z\r\nset a 0 0 -1\r\n",
    "too few words": b"set a 0 0\r\nget\r\ngets\r\nincr a\r\ntouch a\r\ndelete\r\ncas a 0 0 1\r\n",
    "unknown commands": b"bogus\r\n\r\nGET a\r\n",
    "lines without CR": b"set a 0 0 1\nx\r\nget a\n",
    "a bad data chunk": b"set a 0 0 3\r\nabcd\r\nget a\r\n",
    "add": set_(b"a", b"1", verb=b"add") + set_(b"a", b"2", verb=b"add") + b"get a\r\n",
    "replace": set_(b"a", b"1", verb=b"replace") + set_(b"a", b"2") + set_(b"a", b"3", verb=b"replace")
    + b"get a\r\n",
    "append and prepend": set_(b"a", b"1", verb=b"append") + set_(b"a", b"2", verb=b"prepend")
    + set_(b"a", b"m", 5) + set_(b"a", b"2", 9, verb=b"append") + set_(b"a", b"0", 9, verb=b"prepend")
    + b"get a\r\n",
    "cas": set_(b"a", b"1", more=b" 5", verb=b"cas") + set_(b"a", b"1") + b"gets a\r\n"
    + set_(b"a", b"2", more=b" 99999", verb=b"cas") + b"cas a 0 0 1 x\r\n",
    "delete": b"delete a\r\n" + set_(b"a", b"1") + b"delete a 0\r\n" + set_(b"a", b"1")
    + b"delete a 5\r\ndelete a noreply\r\nget a\r\ndelete a 0 noreply\r\ndelete a b c d\r\n",
    "incr and decr": b"incr a 1\r\n" + set_(b"a", b"9") + b"incr a 1\r\nincr a 18446744073709551615\r\n"
    + b"decr a 3\r\ndecr a 100\r\nincr a -1\r\nincr a x\r\nget b\r\n",
    "incr of no number": set_(b"a", b"x1") + b"incr a 1\r\ndecr a 1\r\n" + set_(b"a", b"") + b"incr a 1\r\n",
    "incr wraps": set_(b"a", b"18446744073709551615") + b"incr a 1\r\n",
    "touch": b"touch a 1\r\n" + set_(b"a", b"x") + b"touch a 100\r\ntouch a x\r\nget a\r\ntouch a -1\r\nget a\r\n",
    "gat": b"gat 10 a\r\n" + set_(b"a", b"x", 3) + b"gat 10 a b\r\ngats 10 a\r\ngat x a\r\ngat 10\r\ngat\r\n",
    "expired at once": set_(b"a", b"x", exptime=-1) + b"get a\r\nadd a 0 0 1\r\ny\r\nget a\r\n",
    "a date that is past": set_(b"a", b"x", exptime=100000000) + b"get a\r\n",
    "noreply": set_(b"a", b"x", more=b" noreply") + b"incr a 1 noreply\r\nget a\r\n"
    + set_(b"n", b"1", more=b" noreply") + b"incr n 1 noreply\r\ntouch n 5 noreply\r\nget n\r\n"
    + b"set a 0 0 x noreply\r\nget a\r\nverbosity 1 noreply\r\nmn\r\n",
    "verbosity": b"verbosity 1\r\nverbosity\r\n",
    "pipelined": b"".join(set_(b"k%d" % i, b"v%d" % i) for i in range(40))
    + b"".join(b"get k%d\r\n" % i for i in range(40)) + b"get " + b" ".join(b"k%d" % i for i in range(40))
    + b"\r\n",
    "the same key, pipelined": b"".join(set_(b"k", b"v%d" % i) + b"get k\r\nincr k 1\r\n" for i in range(30)),
    "a value of 100,000 bytes": set_(b"a", b"x" * 100000) + b"get a\r\n",
    "a value that is too large": set_(b"a", b"old") + set_(b"a", b"x" * 1100000) + b"get a\r\nget b\r\n",
    "mg": b"mg a\r\nmg a v\r\n" + set_(b"a", b"hello", 6) + b"mg a\r\nmg a v\r\nmg a s v t f k Oq1\r\n"
    b"mg a k q\r\nmg zz q\r\nmg zz k Oabc\r\nmg a v !\r\nmn\r\n",
    "keys in base64": b"ms Zm9v 5 b k\r\nhello\r\nmg Zm9v b v k\r\nmg Zm9v b k\r\nget foo\r\nmg *** b v\r\n"
    b"md Zm9v b k\r\nma Zm9v b N0 k\r\n",
    "bad tokens": set_(b"a", b"1") + b"mg a Tx\r\nmg a T\r\nmg a O\r\nmg a O" + b"o" * 33 + b"\r\nma a Jx N0\r\n"
    b"ma a Nx\r\nma a M\r\nma a C\r\nmd a Cx\r\nms a 1 Fx\r\nx\r\nms a 1 Tx\r\nx\r\n",
    "flags twice": set_(b"a", b"1") + b"mg a v v\r\nmg a s s\r\nmg a O1 O2\r\nmn\r\n",
    "mg with a touch": set_(b"a", b"x") + b"mg a T100 v t\r\nmg a t\r\n",
    "mg of a long key": b"mg " + LONG + b" v\r\nmg\r\n",
    "ms": b"ms a 2\r\nhi\r\nms a 2 F5 T0\r\nho\r\nget a\r\nms a 2 q\r\nhx\r\nms a 2 k Oxy\r\nhy\r\nget a\r\n",
    "ms modes": b"ms a 1 ME\r\nx\r\nms a 1 ME\r\ny\r\nms b 1 MR\r\nx\r\nms a 1 MA\r\n1\r\nms a 1 MP\r\n0\r\n"
    b"ms c 1 MA\r\nx\r\nms a 1 MZ\r\nx\r\nms a 1 Mset\r\nx\r\nget a\r\n",
    "ms compare": b"ms a 1 C5\r\nx\r\n" + set_(b"a", b"1") + b"ms a 1 C99999\r\nx\r\n",
    "ms bad": b"ms a\r\nms a x\r\nms a 2\r\nabcd\r\nms\r\n",
    "md": b"md a\r\n" + set_(b"a", b"1") + b"md a C99999\r\nmd a k Oab\r\nmd a q\r\nmn\r\n",
    "ma": b"ma a\r\n" + set_(b"a", b"7") + b"ma a\r\nma a v\r\nma a D5 v\r\nma a MD D3 v\r\nma a MD D100 v\r\n"
    b"ma a M- v\r\nma a MZ\r\nma a Dx\r\nma a k Oab t v\r\nma a q\r\nma zz q\r\nmn\r\n",
    "ma vivifies": b"ma a N0 J13 v\r\nma a v\r\nma b N100 v t\r\nma b N100 v D3\r\n",
    "ma and the expiry": set_(b"a", b"1", exptime=50) + b"ma a t v\r\nma a T90 t v\r\nmg a t v\r\n",
    "ma of no number": set_(b"a", b"x") + b"ma a\r\n",
    "flush_all": set_(b"a", b"1") + b"flush_all\r\nget a\r\n" + set_(b"a", b"2") + b"get a\r\n"
    + set_(b"a", b"3", more=b" noreply") + b"flush_all noreply\r\nget a\r\nadd a 0 0 1\r\n4\r\nget a\r\n"
    b"flush_all 0\r\nget a\r\nflush_all x\r\nflush_all 1 2 3\r\nflush_all 0 noreply\r\nmn\r\n",
    "flush_all later": set_(b"a", b"1") + b"flush_all 1000\r\nget a\r\nflush_all 1000 noreply\r\nget a\r\n"
    b"flush_all -1\r\nget a\r\n",
    "flush_all, pipelined": b"".join(set_(b"k%d" % i, b"v") for i in range(30)) + b"flush_all\r\n"
    + b"".join(b"get k%d\r\n" % i for i in range(30)),
    "me of nothing": b"me a\r\nme\r\nme a b\r\nme a v\r\nme a b b\r\nme a b c\r\n",
    "more or fewer words": b"verbosity\r\nverbosity noreply\r\nverbosity 1 2\r\nverbosity 1 2 3\r\nverbosity x\r\n"
    b"stats nonsense\r\nstats noreply\r\ntouch a\r\ntouch a 1 2\r\ntouch a 1 noreply x\r\nincr a 1 2 3\r\n"
    b"decr a 1 x\r\ngat 1\r\ngat x\r\ngats 1\r\nget a noreply\r\nset a 0 0 1 2 3\r\ncas a 0 0 1 2 3 4\r\n"
    b"ma\r\nmd\r\nmg\r\nbget a\r\nshutdown\r\nslabs\r\nlru\r\nlru_crawler\r\nmisbehave\r\n",
    "far dates": b"touch a 99999999999\r\n" + set_(b"a", b"x", exptime=99999999999) + set_(b"b", b"x", exptime=-99999)
    + b"get b\r\nflush_all 99999999999\r\nincr a 18446744073709551616\r\nma a D18446744073709551616\r\n",
    "mn": b"mn\r\nmn x\r\n",
}

# Those that may differ, and why. docs/design/memcached.md has the same list.
DIFFERS = {
    "a key of 251 bytes": "an answer that memcached has not sent yet is lost if a get has a bad key",
}


def talk(path, data):
    """All that comes back until the server closes."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(data + b"quit\r\n")
        got = b""
        while True:
            part = s.recv(1 << 20)
            if not part:
                return got
            got += part


def empty(path):
    """Deletes every key that a case may have made."""
    keys = [b"a", b"b", b"c", b"n", b"k", b"foo", MAX] + [b"k%d" % i for i in range(40)]
    talk(path, b"".join(b"delete %s\r\n" % k for k in keys))


def same_numbers(answer):
    """Unique numbers by their order; seconds that are left to 10 s, since a server may be slow."""
    seen = {}

    def number(m):
        return m[1] + b"#%d" % seen.setdefault(m[2], len(seen) + 1)

    answer = re.sub(rb"(VALUE \S+ \d+ \d+ )(\d+)", number, answer)
    answer = re.sub(rb"( c)(\d+)", number, answer)
    return re.sub(rb"( t)(\d+)", lambda m: m[1] + b"%d" % round(int(m[2]), -1), answer)


def main():
    ours, theirs = sys.argv[1:3]
    bad = 0
    for name, script in CASES.items():
        answers = []
        for path in (ours, theirs):
            empty(path)
            try:
                answers.append(same_numbers(talk(path, script)))
            except OSError as e:
                answers.append(str(e).encode())
        same, listed = answers[0] == answers[1], name in DIFFERS
        if same and not listed:
            print("ok", name)
        elif listed and not same:
            print("listed", name, "-", DIFFERS[name])
        else:
            bad = 1
            print("differs" if not same else "does not differ, but is listed:", name)
            print("    ours  ", answers[0][:1500])
            print("    theirs", answers[1][:1500])
    return bad


sys.exit(main())
