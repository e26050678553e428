"""nbd_wide.py - clients of nbd_wide.sh and nbd_full.sh. They speak NBD themselves, so that they know
which requests are in one message.

    many SOCKET N SEED   N connections at once, each with a MiB of its own. Each writes it by one
                         write, and then by small ones, 8 in one message, some with FUA. After a flush
                         another connection reads and compares it. Says how many are done
    probe SOCKET OFFSET SIZE NR
                         NR writes of SIZE bytes from OFFSET on, in one message; says how each ended,
                         by the name of its errno, as `NR NAME` sorted by name
    read SOCKET OFFSET SIZE
                         says how many bytes of the range are what `probe` writes
"""
import collections
import errno
import random
import socket
import struct
import sys
import threading

MIB = 1 << 20
READ, WRITE, DISC, FLUSH = 0, 1, 2, 3
FUA = 1
SMALL = 4096


def exactly(s, size):
    data = bytearray()
    while len(data) < size:
        got = s.recv(min(size - len(data), MIB))
        if not got:
            raise EOFError("the export has closed")
        data += got
    return bytes(data)


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(100)
    s.connect(path)
    exactly(s, 18)
    s.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
    exactly(s, 10)
    return s


def request(kind, handle, offset, size, flags=0):
    return struct.pack(">IHHQQI", 0x25609513, flags, kind, handle, offset, size)


def answers(s, nr):
    """The error of each, by handle."""
    got = {}
    for _ in range(nr):
        magic, error, handle = struct.unpack(">IIQ", exactly(s, 16))
        assert magic == 0x67446698 and handle not in got and handle < nr, (magic, handle)
        got[handle] = error
    return got


def content(offset, size):
    return b"".join(struct.pack(">Q", offset + at) * 64 for at in range(0, size, 512))


# ---- many ----

def one_of_many(path, nr, seed, place, all_here, written):
    rng = random.Random(seed * 1000 + nr)
    data = bytearray(rng.randbytes(MIB))
    with connect(path) as s:
        all_here.wait()
        s.sendall(request(WRITE, 0, nr * MIB, MIB) + data)
        assert answers(s, 1) == {0: 0}
        for _ in range(20):
            at = rng.sample(range(MIB // SMALL), 8)
            message = b""
            for handle, block in enumerate(at):
                data[block * SMALL:(block + 1) * SMALL] = rng.randbytes(SMALL)
                message += request(WRITE, handle, nr * MIB + block * SMALL, SMALL, rng.choice((0, 0, 0, FUA)))
                message += data[block * SMALL:(block + 1) * SMALL]
            s.sendall(message)
            assert answers(s, 8) == dict.fromkeys(range(8), 0)
        s.sendall(request(FLUSH, 0, 0, 0))
        assert answers(s, 1) == {0: 0}
        place[nr] = bytes(data)
        written.wait()
        other = (nr + 1) % len(place)
        s.sendall(request(READ, 0, other * MIB, MIB))
        assert answers(s, 1) == {0: 0}
        assert exactly(s, MIB) == place[other], "other data"
        s.sendall(request(DISC, 0, 0, 0))
        assert s.recv(1) == b""


def many(path, nr, seed):
    place = [None] * nr
    done = []
    all_here, written = threading.Barrier(nr, timeout=100), threading.Barrier(nr, timeout=100)

    def run(i):
        one_of_many(path, i, seed, place, all_here, written)
        done.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(nr)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(done))


# ---- one ----

def probe(path, offset, size, nr):
    with connect(path) as s:
        s.settimeout(None)
        s.sendall(b"".join(request(WRITE, i, offset + i * size, size) + content(offset + i * size, size) for i in range(nr)))
        ended = collections.Counter(errno.errorcode[error] if error else "ok" for error in answers(s, nr).values())
        s.sendall(request(DISC, 0, 0, 0))
    print(*(f"{ended[name]} {name}" for name in sorted(ended)))


def read(path, offset, size):
    with connect(path) as s:
        s.sendall(request(READ, 0, offset, size))
        assert answers(s, 1) == {0: 0}
        got, wanted = exactly(s, size), content(offset, size)
        s.sendall(request(DISC, 0, 0, 0))
    print(sum(512 for at in range(0, size, 512) if got[at:at + 512] == wanted[at:at + 512]))


{"many": many, "probe": probe, "read": read}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
