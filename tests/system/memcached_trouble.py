#!/usr/bin/env python3
"""memcached_trouble.py - what clients see when the gateway, its kvd or its descriptors are gone.

usage: memcached_trouble.py CASE SOCKET [ARGUMENT]

  descriptors PID    the gateway has few descriptors left, and more clients come
  stalled PID        clients have sent half of a value, and the kvd is killed
  without_kvd        the same, and the kvd is stopped for longer than commands wait
  kvd_killed N       the kvd is killed N times while clients have commands in flight
  killed N           the gateway is killed N times, and the supervisor starts it
  lost               the kvd is gone for good while as many commands are in flight as may be
  order              a get is answered late, and a later command changes its value
  full               a kvd stands still while a client sends more values than there is room for
  stopped            the gateway stops while a value is half sent, and answers are not read

The stack is that of XSEG_SEGMENT, its gateway is called gate. Ends with 0 if all was right.
"""
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

from halting import halt
from memcached_wire import ask, connect, put_and_got, set_of, value_of

CASE, PATH, ARGS = sys.argv[1], sys.argv[2], sys.argv[3:]
PATIENCE = 60
LARGE = os.urandom(500000).hex().encode()
HALF = len(LARGE) // 2


def xseg(*words):
    subprocess.run(("xseg",) + words, check=True, timeout=100, stdin=subprocess.DEVNULL)


def is_running(peer):
    text = subprocess.run(("xseg", "--json", "peer", "list"), check=True, timeout=100, capture_output=True)
    return any(p["name"] == peer and p["state"] == "running" for p in json.loads(text.stdout))


def kill(peer):
    until(is_running, peer)
    xseg("peer", "kill", peer)


def until(what, *args):
    end = time.monotonic() + PATIENCE
    while not what(*args):
        assert time.monotonic() < end, what.__name__
        time.sleep(0.05)


def stat_of(s, key):
    lines = ask(s, b"stats\r\n", b"END\r\n").decode().split("\r\n")
    return int(next(line for line in lines if line.startswith("STAT %s " % key)).split()[2])


def ticks_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(")")[1].split()
    return int(words[11]) + int(words[12])


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(next(line for line in f if line.startswith("RssAnon:")).split()[1])


def answered(s):
    """Whether its `mn` was answered by now."""
    s.setblocking(False)
    try:
        return s.recv(4, socket.MSG_PEEK) == b"MN\r\n"
    except BlockingIOError:
        return False
    finally:
        s.settimeout(PATIENCE)


def has_ended(s):
    s.settimeout(PATIENCE)
    try:
        while s.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def send_half(key):
    s = connect(PATH)
    s.sendall(set_of(key, LARGE)[:HALF])
    return s


def finish_upload(s, key):
    return ask(s, set_of(key, LARGE)[HALF:])


# ---- the cases ----


def descriptors():
    pid, free = int(ARGS[0]), 8
    good = connect(PATH)
    assert put_and_got(good, b"a", b"x")
    had = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir("/proc/%d/fd" % pid)) + free, had[1]))
    clients = [connect(PATH) for _ in range(3 * free)]
    for s in clients:
        s.sendall(b"mn\r\n")
    until(lambda: stat_of(good, "listen_disabled_num") >= 20)
    until(lambda: any(map(answered, clients)))
    served = [s for s in clients if answered(s)]
    assert len(served) <= free, len(served)
    assert put_and_got(good, b"a", b"y")
    before = ticks_of(pid)
    time.sleep(2)
    took = ticks_of(pid) - before
    assert took <= 10, "%d ticks of 200 while clients wait" % took
    # a connection that ends makes room for another one
    for s in served:
        s.close()
    waiting = [s for s in clients if s not in served]
    until(lambda: sum(map(answered, waiting)) >= len(served))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, had)
    until(lambda: all(map(answered, waiting)))
    assert put_and_got(good, b"a", b"z")


def stalled():
    pid = int(ARGS[0])
    good = connect(PATH)
    assert put_and_got(good, b"a", LARGE)
    connections = stat_of(good, "curr_connections")
    goes_on, ends, closes = (send_half(b"half%d" % i) for i in range(3))
    assert put_and_got(good, b"a", b"1")
    kill("kvd")
    assert put_and_got(good, b"a", b"2"), "others are held"
    assert finish_upload(goes_on, b"half0") == b"STORED\r\n"
    assert ask(goes_on, b"get half0\r\n", b"END\r\n") == value_of(b"half0", LARGE)
    goes_on.close()
    ends.shutdown(socket.SHUT_WR)
    assert has_ended(ends)
    closes.close()
    assert ask(good, b"get half1 half2\r\n", b"END\r\n") == b"END\r\n"
    until(lambda: stat_of(good, "curr_connections") == connections)
    before = resident_kib(pid)
    for _ in range(20):
        for s in [send_half(b"half") for _ in range(5)]:
            s.close()
        assert put_and_got(good, b"a", b"3")
        until(lambda: stat_of(good, "curr_connections") == connections)
    until(lambda: resident_kib(pid) < before + 4096)


def without_kvd():
    good, half = connect(PATH), send_half(b"late")
    assert put_and_got(good, b"a", b"1")
    xseg("peer", "stop", "kvd", "--force")
    got = finish_upload(half, b"late")
    assert got.startswith(b"SERVER_ERROR "), got
    assert ask(good, b"mn\r\n") == b"MN\r\n"
    xseg("peer", "start", "kvd")
    until(put_and_got, good, b"a", b"2")
    # that of another worker may take longer
    until(put_and_got, half, b"late", LARGE)


def lost():
    clients = [connect(PATH) for _ in range(4)]
    xseg("peer", "stop", "kvd", "--force")
    for s in clients:
        s.sendall(b"".join(b"mg lost%d v\r\n" % i for i in range(64)))
    for s in clients:
        got = ask(s, b"mn\r\n", b"MN\r\n").split(b"\r\n")[:-2]
        assert len(got) == 64 and all(line.startswith(b"SERVER_ERROR ") for line in got), got
    xseg("peer", "start", "kvd")
    for s in clients:
        until(put_and_got, s, b"a", b"1")


def drop_cache():
    """False: the kvd has written something since the flush."""
    xseg("cache", "flush", "cached")
    return subprocess.run(("xseg", "cache", "drop", "cached"), timeout=100).returncode == 0


def slow_store():
    xseg("peer", "set", "memd", "latency=0s")
    until(drop_cache)
    xseg("peer", "set", "memd", "latency=2s")


def order():
    s = connect(PATH)
    assert ask(s, set_of(b"slow", LARGE)) == b"STORED\r\n"
    for i in range(16):                 # the log's own memory has newer values then
        assert ask(s, set_of(b"filler%d" % i, LARGE)) == b"STORED\r\n"
    assert ask(s, set_of(b"quick", b"old")) == b"STORED\r\n"
    slow_store()
    began = time.monotonic()
    got = ask(s, b"get slow\r\nget quick\r\n" + set_of(b"quick", b"new"), b"STORED\r\n")
    took = time.monotonic() - began
    # another connection may change it meanwhile
    slow_store()
    s.sendall(b"get slow\r\nget quick\r\n")
    time.sleep(0.5)
    assert ask(connect(PATH), set_of(b"quick", b"newer")) == b"STORED\r\n"
    other = ask(s, b"mn\r\n", b"MN\r\n")
    xseg("peer", "set", "memd", "latency=0s")
    assert other in (value_of(b"slow", LARGE) + value_of(b"quick", value) + b"MN\r\n"
                     for value in (b"new", b"newer")), other[-100:]
    assert took > 1, "the first value did not come from the store: %.3f s" % took
    assert got == value_of(b"slow", LARGE) + value_of(b"quick", b"old") + b"STORED\r\n", got[-100:]
    assert ask(s, b"get quick\r\n", b"END\r\n") == value_of(b"quick", b"newer")


def full():
    pid, kvd = int(ARGS[0]), int(ARGS[1])
    good, s = connect(PATH), connect(PATH)
    value = LARGE[:900000]
    sets = set_of(b"first", value) + set_of(b"second", value)
    before = stat_of(good, "bytes_read")
    halt(kvd)
    try:
        sender = threading.Thread(target=s.sendall, args=(sets,))
        sender.start()
        until(lambda: stat_of(good, "bytes_read") - before > (1 << 20) + 60000)
        time.sleep(1)
        had = ticks_of(pid)
        time.sleep(2)
        took = ticks_of(pid) - had
    finally:
        os.kill(kvd, signal.SIGCONT)
    assert took <= 10, "%d ticks of 200 while the kvd stands still" % took
    assert ask(s, b"", b"STORED\r\nSTORED\r\n") == b"STORED\r\n" * 2
    sender.join()


class Load(threading.Thread):
    """One connection with its own keys and 16 commands in flight: sets, gets and a counter.

    A command that was answered has been done, once. One that was not, or got an error, may have been.
    """
    DEPTH = 16

    def __init__(self, nr, over, reconnects):
        super().__init__()
        self.nr, self.over, self.reconnects = nr, over, reconnects
        self.wrong, self.errors, self.rounds = [], 0, 0
        self.may_have = [{b""} for _ in range(4)]
        self.counted = {0}

    def key(self, i):
        return b"load%d.%d" % (self.nr, i % 4)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(line)
        if line.startswith(b"SERVER_ERROR "):
            self.errors += 1
        return line[:-2]

    def count(self, before):
        """The answer of an incr, of numbers that the counter may have had."""
        line = self.line()
        if line.startswith(b"SERVER_ERROR "):
            self.counted = before | {n + 1 for n in before}
            return
        self.counted = {int(line)}
        if int(line) - 1 not in before:
            self.wrong.append((b"counter", line, before))

    def got(self, i):
        line = self.line()
        value = b""
        if line.startswith(b"SERVER_ERROR "):
            return
        if line != b"END":
            bytes_ = int(line.split()[3])
            value = self.file.read(bytes_ + 2)[:-2]
            if self.line() != b"END":
                self.wrong.append((b"no END", self.key(i)))
        if value not in self.may_have[i % 4]:
            self.wrong.append((self.key(i), value[:20]))
        self.may_have[i % 4] = {value}

    def round(self):
        values, text = [], b""
        for i in range(4):
            values.append(b"%d.%d." % (self.rounds, i) + b"v" * 1000)
            text += set_of(self.key(i), values[i]) + b"get %s\r\n" % self.key(i) + b"incr n%d 1\r\n" % self.nr
        # a connection that is lost may have done any of them
        may_have = [self.may_have[i] | {values[i]} for i in range(4)]
        counted = {n + k for n in self.counted for k in range(5)}
        try:
            self.socket.sendall(text)
            for i in range(4):
                line = self.line()
                self.may_have[i] = {values[i]} if line == b"STORED" else may_have[i]
                if line != b"STORED" and not line.startswith(b"SERVER_ERROR "):
                    self.wrong.append((self.key(i), line))
                self.got(i)
                self.count(self.counted)
        except (OSError, EOFError):
            self.may_have, self.counted = may_have, counted
            raise

    def begin(self):
        self.socket = connect(PATH)
        self.file = self.socket.makefile("rb")

    def run(self):
        try:
            while not self.over.is_set():
                try:
                    self.round()
                    self.rounds += 1
                except (OSError, EOFError):
                    if not self.reconnects:
                        raise
                    until(self.is_back)
        except Exception as e:
            self.wrong.append(repr(e))

    def is_back(self):
        try:
            self.begin()
            return ask(self.socket, b"mn\r\n") == b"MN\r\n"
        except (OSError, EOFError):
            return False


def under_load(times, reconnects, peer):
    over = threading.Event()
    load = [Load(i, over, reconnects) for i in range(6)]
    for one in load:
        one.begin()
        assert ask(one.socket, set_of(b"n%d" % one.nr, b"0")) == b"STORED\r\n"
        one.start()
    try:
        for _ in range(times):
            rounds = [one.rounds for one in load]
            kill(peer)
            # each goes on behind it
            until(lambda: all(one.rounds > had + 2 or one.wrong for one, had in zip(load, rounds)))
    finally:
        over.set()
        for one in load:
            one.join()
    wrong = [w for one in load for w in one.wrong]
    print(sum(one.rounds for one in load), "rounds,", sum(one.errors for one in load), "errors of the kvd")
    assert not wrong, wrong[:5]


def kvd_killed():
    under_load(int(ARGS[0]), False, "kvd")


def killed():
    under_load(int(ARGS[0]), True, "gate")


def stopped():
    good = connect(PATH)
    assert put_and_got(good, b"huge", LARGE)
    half, deaf = send_half(b"never"), connect(PATH)
    deaf.sendall(b"get huge\r\n" * 20)
    assert put_and_got(good, b"a", b"1"), "others are held by a client that does not read"
    xseg("peer", "stop", "gate")
    for s in half, deaf, good:
        assert has_ended(s)
    assert not os.path.exists(PATH)
    xseg("peer", "start", "gate")
    until(os.path.exists, PATH)
    good = connect(PATH)
    assert ask(good, b"get never\r\n", b"END\r\n") == b"END\r\n"
    assert ask(good, b"get huge\r\n", b"END\r\n") == value_of(b"huge", LARGE)


{f.__name__: f for f in (descriptors, stalled, without_kvd, lost, order, full, kvd_killed, killed, stopped)}[CASE]()
