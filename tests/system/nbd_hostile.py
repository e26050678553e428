"""nbd_hostile.py - the clients of nbd_hostile.sh. It speaks NBD itself, as no library would.

    work SOCKET BEGUN UNTIL  writes the first MiB and reads it back, by two requests at a time,
                         until there is a file UNTIL; makes a file BEGUN, and says how often
    leave SOCKET N SEED  N times each: clients that close, or send nonsense, under their answers
    idle SOCKET SECONDS  a client that says nothing for so long after its handshake, and then reads;
                         says "idle" before
    fill SOCKET          idle clients, until one more is closed at once; says how many there are,
                         and stays until its input ends
    hold SOCKET          clients that stand still; says "held", then "handshake ended" when the
                         export ended the handshake of a silent client, and stays until its input
                         ends
    lost SOCKET NBDKIT   small writes under way when volumed stops: each is answered once. The
                         nbdkit, a process, can open no more descriptors meanwhile
"""
import errno
import os
import random
import resource
import socket
import struct
import subprocess
import sys
import time

MIB = 1 << 20
READ, WRITE, DISC = 0, 1, 2


def dial(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(100)
    s.connect(path)
    return s


def exactly(s, size):
    data = b""
    while len(data) < size:
        got = s.recv(min(size - len(data), MIB))
        if not got:
            raise EOFError("the export has closed")
        data += got
    return data


def connect(path):
    s = dial(path)
    exactly(s, 18)
    s.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
    exactly(s, 10)
    return s


def request(kind, handle, offset, size):
    return struct.pack(">IHHQQI", 0x25609513, 0, kind, handle, offset, size)


def reads(nr, size):
    return b"".join(request(READ, handle, MIB, size) for handle in range(nr))


def answer(s, sizes):
    """Its handle and its data; sizes: of the data, by handle."""
    magic, error, handle = struct.unpack(">IIQ", exactly(s, 16))
    assert (magic, error) == (0x67446698, 0), (magic, error)
    return handle, exactly(s, sizes.get(handle, 0))


def work(path, begun, until):
    s = connect(path)
    rounds = 0
    while rounds == 0 or not os.path.exists(until):
        halves = [random.randbytes(MIB // 2) for _ in range(2)]
        for i, half in enumerate(halves):
            s.sendall(request(WRITE, i, i * MIB // 2, MIB // 2) + half)
        assert sorted(answer(s, {})[0] for _ in halves) == [0, 1]
        for i in range(2):
            s.sendall(request(READ, i, i * MIB // 2, MIB // 2))
        got = dict(answer(s, {0: MIB // 2, 1: MIB // 2}) for _ in halves)
        assert [got[0], got[1]] == halves, "other data"
        rounds += 1
        if rounds == 1:
            open(begun, "w").close()
        time.sleep(0.02)  # the others want a processor, too
    s.sendall(request(DISC, 0, 0, 0))
    print(rounds)


def closes(s):
    s.sendall(reads(16, MIB))


def closes_after_small_ones(s):
    s.sendall(reads(100, 4096))


def closes_later(s):
    s.sendall(reads(16, MIB))
    time.sleep(0.01)


def closes_when_it_has_read_some(s):
    s.sendall(reads(16, MIB))
    exactly(s, 100000)


def closes_what_it_sends(s):
    s.sendall(reads(8, MIB))
    s.shutdown(socket.SHUT_WR)
    # each answer comes all the same
    exactly(s, 8 * (16 + MIB))


def takes_leave_first(s):
    s.sendall(reads(8, MIB) + request(DISC, 0, 0, 0))


def small_writes(nr):
    return b"".join(request(WRITE, handle, 4 * MIB + handle * 4096, 4096) + bytes(4096) for handle in range(nr))


def closes_under_small_writes(s):
    s.sendall(small_writes(40))


def closes_what_it_sends_after_small_writes(s):
    s.sendall(small_writes(40) + reads(4, 4096))
    s.shutdown(socket.SHUT_WR)
    exactly(s, 44 * 16 + 4 * 4096)


def takes_leave_after_small_writes(s):
    s.sendall(small_writes(40) + request(DISC, 0, 0, 0))
    exactly(s, 40 * 16)


def says_nonsense_after_small_writes(s):
    s.sendall(small_writes(40) + b"x" * 28)
    time.sleep(0.005)


def begins_a_small_write(s):
    s.sendall(small_writes(40)[:-1000])


def says_nonsense(s):
    s.sendall(reads(15, 65536) + b"x" * 28)
    time.sleep(0.005)


def begins_a_request(s):
    s.sendall(reads(8, MIB) + request(READ, 8, MIB, 4096)[:10])


def begins_a_write(s):
    s.sendall(reads(8, MIB) + request(WRITE, 8, 4 * MIB, MIB) + bytes(1000))


def begins_a_write_and_reads(s):
    s.sendall(reads(8, MIB) + request(WRITE, 8, 4 * MIB, MIB) + bytes(1000))
    s.shutdown(socket.SHUT_WR)
    exactly(s, MIB)


def begins_a_write_that_is_too_large(s):
    s.sendall(reads(15, 65536) + request(WRITE, 15, 4 * MIB, 0xFFFFFFFF))
    time.sleep(0.005)


def talks_at_random(s):
    said = b""
    for handle in range(dice.randrange(1, 30)):
        kind = dice.choice([READ, READ, READ, READ, WRITE, WRITE, DISC, 3, 4, 6, 7, 99])
        size = dice.choice([0, 1, 512, 4096, MIB, 0xFFFFFFFF])
        said += request(kind, handle, dice.randrange(4 * MIB, 32 * MIB), size)
        if kind == WRITE and size < MIB:
            said += bytes(size)
        if dice.random() < 0.05:
            said += dice.randbytes(dice.randrange(1, 100))
    s.sendall(said)
    if dice.random() < 0.3:
        s.shutdown(socket.SHUT_WR)
    if dice.random() < 0.5:
        s.settimeout(1)  # there may be nothing to answer
        s.recv(dice.choice([10, 100000]))


LEAVERS = (
    closes,
    closes_after_small_ones,
    closes_later,
    closes_when_it_has_read_some,
    closes_what_it_sends,
    takes_leave_first,
    closes_under_small_writes,
    closes_what_it_sends_after_small_writes,
    takes_leave_after_small_writes,
    says_nonsense_after_small_writes,
    begins_a_small_write,
    says_nonsense,
    begins_a_request,
    begins_a_write,
    begins_a_write_and_reads,
    begins_a_write_that_is_too_large,
    talks_at_random,
)
dice = random.Random()


def connect_when_it_may(path):
    """Those that have left count until the export has done what they asked for."""
    limit = time.monotonic() + 60
    while True:
        try:
            return connect(path)
        except (EOFError, ConnectionResetError):
            if time.monotonic() > limit:
                raise
            time.sleep(0.01)


def leave(path, nr, seed):
    dice.seed(seed)
    for leaver in LEAVERS:
        for _ in range(int(nr)):
            s = connect_when_it_may(path)
            try:
                leaver(s)
            except OSError:  # the export was quicker
                assert leaver in (says_nonsense, says_nonsense_after_small_writes, talks_at_random)
            s.close()


def idle(path, seconds):
    s = connect(path)
    print("idle", flush=True)
    time.sleep(float(seconds))
    s.sendall(reads(1, 4096))
    assert len(answer(s, {0: 4096})[1]) == 4096


def fill(path):
    held = []
    try:
        while True:
            held.append(connect(path))
    except (EOFError, ConnectionResetError, BrokenPipeError):
        print(len(held), flush=True)
    sys.stdin.read()


def hold(path):
    held = [dial(path) for _ in range(2)]
    exactly(held[0], 18)  # and says nothing; the other one does not even listen
    for said in (
        reads(64, MIB),
        reads(8, MIB) + request(READ, 8, MIB, 4096)[:10],
        reads(8, MIB) + request(WRITE, 8, 4 * MIB, MIB) + bytes(1000),
    ):
        held.append(connect(path))
        held[-1].settimeout(1)
        held[-1].sendall(said)
    print("held", flush=True)
    while held[0].recv(MIB):
        pass
    print("handshake ended", flush=True)
    sys.stdin.read()


def lost(path, nbdkit):
    s = connect(path)
    before = resource.prlimit(int(nbdkit), resource.RLIMIT_NOFILE)
    resource.prlimit(int(nbdkit), resource.RLIMIT_NOFILE, (3, before[1]))
    s.sendall(small_writes(12))
    s.settimeout(1)
    try:
        raise AssertionError(f"the store is not slow: {s.recv(16)}")
    except TimeoutError:
        s.settimeout(100)
    subprocess.run(["xseg", "peer", "stop", "volumed", "--force"], check=True)
    answers = [struct.unpack(">IIQ", exactly(s, 16)) for _ in range(12)]
    assert sorted(answers) == [(0x67446698, errno.EIO, handle) for handle in range(12)], answers
    resource.prlimit(int(nbdkit), resource.RLIMIT_NOFILE, before)
    subprocess.run(["xseg", "peer", "set", "memd", "latency=0"], check=True)
    subprocess.run(["xseg", "peer", "start", "volumed"], check=True)
    # nothing more was answered, and the next write has a new queue
    s.sendall(request(WRITE, 99, 4 * MIB, 4096) + bytes(4096))
    assert answer(s, {}) == (99, b"")
    s.sendall(request(DISC, 0, 0, 0))
    assert s.recv(1) == b""


{"work": work, "leave": leave, "idle": idle, "fill": fill, "hold": hold, "lost": lost}[sys.argv[1]](*sys.argv[2:])
