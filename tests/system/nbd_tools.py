"""nbd_tools - the sentences of tests/system/nbd_tools.sh that need libnbd's Python module, and
those of a client that speaks no NBD.

Two exports serve one volume of SIZE bytes, in objects of OBJECT bytes, both all zeroes: $URI, and
$READER, which is read only. $SCRATCH is the export of a volume with unimportant data, and its
socket is $SCRATCH_SOCKET. Each test is one line `ok - SENTENCE` or `not ok - SENTENCE`. Randomness
is from $SEED, which is printed.
"""
import errno
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

import nbd

from halting import halt

SIZE = 16 << 20
OBJECT = 1 << 20
SEED = int(os.environ.get("SEED", time.time_ns() % 10**6))
URI, READER, SCRATCH, SCRATCH_SOCKET = (os.environ[name] for name in ("URI", "READER", "SCRATCH", "SCRATCH_SOCKET"))
LONG = bool(os.environ.get("LONG"))
CONTEXT = nbd.CONTEXT_BASE_ALLOCATION
rng = random.Random(SEED)


def connect(uri=URI, contexts=(CONTEXT,), strict=False):
    """A handle that sends what it is told to: that it is wrong is for the server to say."""
    h = nbd.NBD()
    for context in contexts:
        h.add_meta_context(context)
    h.connect_uri(uri)
    if not strict:
        h.set_strict_mode(0)
    return h


def fails(code, function, *args):
    try:
        function(*args)
    except nbd.Error as e:
        assert errno.errorcode[e.errnum] == errno.errorcode[code], e
        return
    raise AssertionError(f"{function.__name__}{args} did not fail")


def pattern(n, size):
    return bytes((n + i // 512) % 251 + 1 for i in range(0, size, 512) for _ in range(512))[:size]


def status(h, offset, size, flags=0):
    """[(length, is a hole)]"""
    seen = []

    def extents(context, at, entries, error):
        assert context == CONTEXT and at == offset, (context, at)
        seen.extend((length, kind) for length, kind in zip(entries[::2], entries[1::2]))

    h.block_status(size, offset, extents, flags)
    assert all(kind in (0, nbd.STATE_HOLE | nbd.STATE_ZERO) for _, kind in seen), seen
    return [(length, kind != 0) for length, kind in seen]


def xseg(*words):
    subprocess.run(["xseg", *words], check=True, stdout=subprocess.DEVNULL)


def pid_of(peer):
    peers = json.loads(subprocess.run(["xseg", "--json", "peer", "list"], check=True, stdout=subprocess.PIPE).stdout)
    return next(p["pid"] for p in peers if p["name"] == peer)


def dirty_bytes():
    return json.loads(subprocess.run(["xseg", "--json", "cache", "status", "cached"], check=True, stdout=subprocess.PIPE).stdout)["dirty_bytes"]


# ---- what there is ----

def test_a_volume_without_data_is_one_hole():
    h = connect()
    assert h.get_size() == SIZE
    assert status(h, 0, SIZE) == [(SIZE, True)]
    assert status(h, 512, 1024, nbd.CMD_FLAG_REQ_ONE) == [(1024, True)]


def test_what_the_cache_alone_has_is_data():
    h = connect()
    h.pwrite(pattern(1, 4096), 3 * OBJECT + 8192)
    assert dirty_bytes() >= 4096
    assert status(h, 0, SIZE) == [(3 * OBJECT, True), (8192 + 4096, False), (SIZE - 3 * OBJECT - 8192 - 4096, True)]
    h.flush()
    assert dirty_bytes() == 0
    assert status(h, 3 * OBJECT, OBJECT) == [(8192 + 4096, False), (OBJECT - 8192 - 4096, True)]


def test_a_status_of_one_extent_is_one():
    h = connect()
    for at in 0, 3 * OBJECT, 3 * OBJECT + 8192, 3 * OBJECT + 16384, SIZE - 512:
        assert len(status(h, at, SIZE - at, nbd.CMD_FLAG_REQ_ONE)) == 1


def test_holes_read_as_zeroes_wherever_they_begin():
    h = connect()
    for _ in range(32):
        h.pwrite(pattern(rng.randrange(200), 512), rng.randrange(SIZE // 512) * 512)
    at = 0
    for length, hole in status(h, 0, SIZE):
        if hole:
            assert h.pread(length, at) == bytes(length)
        at += length
    assert at == SIZE
    for _ in range(64):
        begin = rng.randrange(SIZE // 512) * 512
        size = rng.randrange(1, (SIZE - begin) // 512 + 1) * 512
        assert status(h, begin, size)[0][0] <= size


def test_only_the_context_that_there_is_is_agreed_on():
    h = connect(contexts=(CONTEXT, "qemu:dirty-bitmap:none", "x-none:none"))
    assert h.can_meta_context(CONTEXT) and not h.can_meta_context("x-none:none") and not h.can_meta_context("qemu:dirty-bitmap:none")
    fails(errno.EINVAL, connect(contexts=()).block_status, 4096, 0, lambda *_: 0)


def test_replies_are_structured():
    h = connect()
    assert h.get_structured_replies_negotiated()
    h.pwrite(pattern(9, 65536), 5 * OBJECT)
    got = bytearray(65536)

    def chunk(data, at, kind, error):
        assert kind in (nbd.READ_DATA, nbd.READ_HOLE)
        got[at - 5 * OBJECT:at - 5 * OBJECT + len(data)] = data

    h.pread_structured(65536, 5 * OBJECT, chunk, nbd.CMD_FLAG_DF)
    assert bytes(got) == pattern(9, 65536)


def test_a_client_that_knows_only_simple_replies_is_served():
    h = nbd.NBD()
    h.set_request_structured_replies(False)
    h.connect_uri(URI)
    assert not h.get_structured_replies_negotiated()
    assert h.pread(65536, 5 * OBJECT) == pattern(9, 65536)
    h.shutdown()


# ---- every command ----

def test_every_command_with_every_flag_that_is_offered():
    h = connect(strict=True)
    fua = nbd.CMD_FLAG_FUA
    for flags in 0, fua:
        h.pwrite(pattern(2, OBJECT + 8192), OBJECT - 4096, flags)
        assert h.pread(OBJECT + 8192, OBJECT - 4096) == pattern(2, OBJECT + 8192)
        for zero in flags, flags | nbd.CMD_FLAG_NO_HOLE:
            h.zero(1024, OBJECT - 512, zero)
            assert h.pread(2048, OBJECT - 1024) == pattern(2, OBJECT + 8192)[3072:3584] + bytes(1024) + pattern(2, OBJECT + 8192)[4608:5120]
        h.trim(OBJECT, OBJECT, flags)
        assert h.pread(OBJECT, OBJECT) == bytes(OBJECT)
        h.flush()
    assert dirty_bytes() == 0


def test_a_write_with_fua_leaves_nothing_dirty():
    h = connect()
    h.flush()
    for command in (lambda: h.pwrite(pattern(3, 65536), 0, nbd.CMD_FLAG_FUA), lambda: h.zero(8192, 4096, nbd.CMD_FLAG_FUA),
                    lambda: h.trim(65536, 0, nbd.CMD_FLAG_FUA)):
        command()
        assert dirty_bytes() == 0


# ---- errors, after each of which the same connection goes on ----

def test_beyond_the_end():
    h = connect()
    data = bytes(4096)
    fails(errno.EINVAL, h.pread, 4096, SIZE)
    fails(errno.EINVAL, h.pread, 4096, SIZE - 512)
    fails(errno.EINVAL, h.pread, 512, 1 << 62)
    fails(errno.ENOSPC, h.pwrite, data, SIZE - 512)
    fails(errno.ENOSPC, h.pwrite, data, 1 << 62)
    fails(errno.ENOSPC, h.zero, 1024, SIZE - 512)
    fails(errno.EINVAL, h.trim, 1024, SIZE - 512)
    fails(errno.EINVAL, h.block_status, 1024, SIZE - 512, lambda *_: 0)
    assert h.pread(512, SIZE - 512) == h.pread(4096, SIZE - 4096)[3584:]


def test_parts_of_sectors():
    h = connect()
    for offset, size in (1, 512), (0, 511), (4095, 2), (SIZE - 511, 511):
        fails(errno.EINVAL, h.pread, size, offset)
        fails(errno.EINVAL, h.pwrite, bytes(size), offset)
        fails(errno.EINVAL, h.zero, size, offset)
        fails(errno.EINVAL, h.trim, size, offset)
        assert h.pread(512, 0) is not None


def test_nothing_at_all_and_what_is_not_offered():
    h = connect()
    fails(errno.EINVAL, h.pread, 0, 0)
    fails(errno.ENOSPC, h.pwrite, b"", 0)       # nbdkit's choice; the protocol leaves it open
    fails(errno.EINVAL, h.cache, 4096, 0)
    for flags in nbd.CMD_FLAG_FAST_ZERO, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE:
        fails(errno.ENOTSUP, h.zero, 4096, 0, flags)
    for function, *args in (h.zero, 4096, 0, 1 << 10), (h.trim, 4096, 0, nbd.CMD_FLAG_NO_HOLE), \
            (h.pwrite, bytes(512), 0, nbd.CMD_FLAG_NO_HOLE), (h.pread, 512, 0, nbd.CMD_FLAG_REQ_ONE):
        fails(errno.EINVAL, function, *args)
    assert len(h.pread(4096, 0)) == 4096


def test_an_export_that_may_only_be_read():
    h = connect(READER)
    assert h.is_read_only()
    fails(errno.EPERM, h.pwrite, bytes(512), 0)
    fails(errno.EPERM, h.zero, 512, 0)
    fails(errno.EPERM, h.zero, 512, 0, nbd.CMD_FLAG_FAST_ZERO)
    fails(errno.EPERM, h.trim, 512, 0)
    assert h.pread(4096, 0) == connect().pread(4096, 0)


def test_beyond_the_end_of_a_volume_that_was_made_smaller():
    h = connect(SCRATCH)
    xseg("volume", "resize", "scratch", "--volumed", "volumed", "--size", "8M", "--force")
    try:
        data, at = bytes(4096), 8 << 20
        fails(errno.EINVAL, h.pread, 4096, at)
        fails(errno.ENOSPC, h.pwrite, data, at)
        fails(errno.ENOSPC, h.zero, 4096, at)
        fails(errno.EINVAL, h.trim, 4096, at)
        fails(errno.EINVAL, h.block_status, 4096, at, lambda *_: 0)
        h.pwrite(data, at - 4096)
    finally:
        xseg("volume", "resize", "scratch", "--volumed", "volumed", "--size", "16M")
    assert h.pread(4096, at) == bytes(4096)
    h.flush()


def test_a_segment_without_a_port_is_not_a_store_that_is_full():
    """nbd_tools.sh sees that the log of the export says why."""
    h = connect(SCRATCH)
    h.pread(4096, 0)
    xseg("peer", "stop", "volumed", "--force")
    fails(errno.EIO, h.flush)  # whose queue is lost, and that of small writes
    fails(errno.EIO, h.pwrite, bytes(4096), 0)
    xseg("peer", "start", "volumed")
    greedy = subprocess.Popen(["greedy", os.environ["XSEG_SEGMENT"]], stdout=subprocess.PIPE)
    try:
        assert int(greedy.stdout.readline()) > 0
        fails(errno.EIO, h.pwrite, bytes(4096), 0)
        try:
            connect(SCRATCH)
            raise AssertionError("there is a port")
        except nbd.Error:
            pass
    finally:
        greedy.kill()
        greedy.communicate()
    limit = time.monotonic() + 60
    while True:
        try:
            return h.pwrite(bytes(4096), 0, nbd.CMD_FLAG_FUA)
        except nbd.Error:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)


def test_each_of_many_commands_under_way_gets_its_own_answer():
    h = connect()
    wrong = {rng.randrange(128) for _ in range(16)}
    cookies = {}
    for i in range(128):
        at = SIZE if i in wrong else 8 * OBJECT + i * 4096
        cookies[h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(pattern(i, 4096))), at)] = i
    errors = set()
    while cookies:
        h.poll(-1)
        for cookie in list(cookies):
            try:
                if not h.aio_command_completed(cookie):
                    continue
            except nbd.Error as e:
                assert e.errnum == errno.ENOSPC, e
                errors.add(cookies[cookie])
            del cookies[cookie]
    assert errors == wrong
    for i in range(128):
        assert i in wrong or h.pread(4096, 8 * OBJECT + i * 4096) == pattern(i, 4096)


def test_small_writes_among_others_get_their_own_answers():
    """Small ones go past nbdkit, in batches; the rest goes through it. The client sends them in pieces."""
    s = dial()
    s.settimeout(60)
    hear_exactly(s, 18)
    s.sendall(struct.pack(">I", 3) + option(1))
    hear_exactly(s, 10)
    wanted, said, at, errors, sizes = bytearray(SIZE), b"", 0, {}, {}
    for handle in range(400):
        command, size, error = rng.choice([1, 1, 1, 1, 0, 3]), rng.choice([512, 4096, 32768, 33280]), 0
        data = pattern(handle, size) if command == 1 else b""
        place = at
        if command == 1 and rng.random() < 0.1:
            place, error = rng.choice([(SIZE, errno.ENOSPC), (at + 1, errno.EINVAL)])
        elif command == 1:
            wanted[at:at + size] = data
            at += size
        elif command == 3:
            place = size = 0
        said += struct.pack(">IHHQQI", 0x25609513, rng.choice([0, 1]) if command == 1 else 0, command, handle, place, size) + data
        errors[handle], sizes[handle] = error, size if command == 0 else 0
    reader = threading.Thread(target=sends_in_pieces, args=(s, said))
    reader.start()
    while errors:
        magic, error, handle = struct.unpack(">IIQ", hear_exactly(s, 16))
        assert (magic, error) == (0x67446698, errors.pop(handle)), (magic, error, handle)
        hear_exactly(s, sizes[handle])
    reader.join()
    s.close()
    assert connect(SCRATCH).pread(at, 0) == wanted[:at]


def test_reads_do_not_wait_for_small_writes_that_wait_for_the_store():
    """This export has 8 threads a connection."""
    h = connect(SCRATCH)
    h.pwrite(pattern(1, 65536), 0)
    h.flush()
    h.pread(65536, 0)
    xseg("cache", "set", "cached", "policy=write-through")
    h = connect(SCRATCH)
    store = pid_of("memd")
    halt(store)
    try:
        cookies = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(pattern(2, 4096))), i * 4096) for i in range(5)]
        for _ in range(20):
            assert h.pread(4096, 61440) == pattern(1, 65536)[61440:]
        assert not any(h.aio_command_completed(cookie) for cookie in cookies)
        os.kill(store, signal.SIGCONT)
        while cookies:
            h.poll(-1)
            cookies = [cookie for cookie in cookies if not h.aio_command_completed(cookie)]
    finally:
        os.kill(store, signal.SIGCONT)
        xseg("cache", "set", "cached", "policy=write-back")
    assert h.pread(5 * 4096, 0) == pattern(2, 4096) * 5


# ---- several connections ----

def test_what_one_connection_was_answered_others_read_and_flush():
    conns = [connect() for _ in range(6)]
    assert all(h.can_multi_conn() for h in conns)
    for n in range(60):
        at = rng.randrange(SIZE // 4096) * 4096
        a, b, c = rng.sample(conns, 3)
        a.pwrite(pattern(n, 4096), at)
        assert b.pread(4096, at) == pattern(n, 4096)
        c.flush()
        assert dirty_bytes() == 0


# ---- who speaks no NBD ----

def dial():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    s.connect(SCRATCH_SOCKET)
    return s


def hear_exactly(s, size):
    data = b""
    while len(data) < size:
        got = s.recv(size - len(data))
        assert got, "the export has closed"
        data += got
    return data


def sends_in_pieces(s, said):
    while said:
        n = rng.choice([1, 27, 28, 100, 4124, 30000, 200000])
        s.sendall(said[:n])
        said = said[n:]


def option(number, data=b"", length=None):
    return b"IHAVEOPT" + struct.pack(">II", number, len(data) if length is None else length) + data


def request(command, offset, size, flags=0, data=b"", magic=0x25609513):
    return struct.pack(">IHHQQI", magic, flags, command, rng.getrandbits(64), offset, size) + data


def go(name=b""):
    return option(7, struct.pack(">I", len(name)) + name + struct.pack(">H", 0))


def any_number(bits):
    return rng.choice([0, 1, 511, 512, 4096, SIZE - 512, SIZE, (1 << bits) - 1, 1 << (bits - 1), rng.getrandbits(bits)]) & ((1 << bits) - 1)


def any_option():
    data = bytes(rng.getrandbits(8) for _ in range(rng.randrange(64)))
    return option(rng.choice([1, 2, 3, 5, 6, 7, 8, 9, 10, any_number(32)]), data, rng.choice([None, None, any_number(32)]))


def any_request():
    data = bytes(rng.randrange(600))
    return request(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, any_number(16)]), any_number(64), any_number(32), rng.choice([0, 1, any_number(16)]), data,
                   rng.choice([0x25609513] * 9 + [any_number(32)]))


def scrambled(data):
    data = bytearray(data)
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] = rng.getrandbits(8)
    return bytes(data[:rng.randrange(1, len(data) + 1)] if rng.random() < 0.3 else data)


def talk():
    """Greets, or not; and says something."""
    kind = rng.randrange(4)
    flags = struct.pack(">I", 3 if rng.random() < 0.9 else any_number(32))
    if kind == 0:
        return bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 300)))
    if kind == 1:
        return scrambled(flags + b"".join(any_option() for _ in range(rng.randrange(1, 6))))
    if kind == 2:
        return flags + option(8) + go() + b"".join(any_request() for _ in range(rng.randrange(1, 8)))
    return scrambled(flags + option(8) + go() + b"".join(any_request() for _ in range(rng.randrange(1, 8))))


def hear(s):
    """Some of what it says; who does not hear has full buffers."""
    s.settimeout(0.02)
    try:
        for _ in range(4):
            if not s.recv(65536):
                return
    except OSError:
        pass


def is_served(n):
    fresh = connect(SCRATCH)
    fresh.pwrite(pattern(n, 4096), 4096)
    assert fresh.pread(4096, 4096) == pattern(n, 4096), n
    fresh.shutdown()


def is_served_again(n):
    """nbdkit 1.32 has an assertion that fails on some nonsense, and on some who leave in the middle of a write: then the export begins another one.
    nbd_tools.sh sees in its log that it was by that."""
    limit = time.monotonic() + 60
    while True:
        try:
            return is_served(n)
        except nbd.Error:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)


def leaves_in_the_middle():
    h = connect(SCRATCH)
    for i in range(32):
        h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(pattern(7, 65536))), 12 * OBJECT + i * 65536)
    h.aio_notify_write() if h.aio_get_direction() & nbd.AIO_DIRECTION_WRITE else None


def test_a_client_that_leaves_in_the_middle_disturbs_nobody():
    guard, other = connect(), connect(SCRATCH)
    for n in range(10):
        try:
            leaves_in_the_middle()
            assert len(other.pread(4096, 0)) == 4096
        except nbd.Error:
            is_served_again(n)
            other = connect(SCRATCH)
        guard.pread(4096, 0)
    is_served_again(8)


def test_nonsense_is_survived_by_its_export_and_not_noticed_by_others():
    guard = connect()
    guard.pwrite(pattern(77, OBJECT), 6 * OBJECT)
    for n in range(20000 if LONG else 200):
        words = talk()
        try:
            with dial() as s:
                s.sendall(words)
                if rng.random() < 0.5:
                    hear(s)
        except OSError:
            pass        # it has hung up
        if n % 50 == 49:
            is_served_again(n)
    assert guard.pread(OBJECT, 6 * OBJECT) == pattern(77, OBJECT)


def test_who_says_nothing_keeps_nobody_waiting():
    silent = [dial() for _ in range(8)]
    for i, s in enumerate(silent):
        s.sendall((struct.pack(">I", 3) + go())[:i * 4])
    h = connect(SCRATCH)
    h.pwrite(pattern(5, 4096), 0)
    assert h.pread(4096, 0) == pattern(5, 4096)
    for s in silent:
        s.close()


if __name__ == "__main__":
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        sentence = "nbd: " + name[len("test_"):].replace("_", " ")
        try:
            test()
            print("ok -", sentence, flush=True)
        except Exception:
            failed += 1
            print(f"not ok - {sentence} (seed {SEED})", flush=True)
            print("    " + traceback.format_exc().replace("\n", "\n    "), flush=True)
    sys.exit(failed > 0)
