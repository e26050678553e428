"""python_test - the sentences of tests/system/python.sh. $XSEG_SEGMENT is a segment with volumed
upon cached upon memd.

Each test is one line `ok - SENTENCE` or `not ok - SENTENCE`; it has a volume of its own. Randomness
is from $SEED, which is printed.
"""
import asyncio
import ctypes
import errno
import gc
import io
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest
import unittest.mock
import warnings

import xseg
import xseg.aio
from xseg import IO, _lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SEED", time.time_ns() % 10**6))
SIZE = 1 << 20
segment = xseg.Segment()


class Report(unittest.TestResult):
    """As tests/lib/report.sh has it."""

    def addSuccess(self, test):
        print(f"ok - python: {test.sentence()}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"not ok - python: {test.sentence()} (seed {SEED})", flush=True)
        print(
            "    " + "".join(traceback.format_exception(*err)).replace("\n", "\n    "), flush=True
        )

    addError = addFailure


PATIENCE = 60  # seconds; the machine may stand still for some, and only a failure costs them all


def until(condition):
    """Whether it becomes true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def pattern(n):
    return bytes([n % 251 + 1]) * 4096


def clients():
    return [peer["name"] for peer in segment.peers() if peer["kind"] == "client"]


class Case(unittest.TestCase):
    def sentence(self):
        return self._testMethodName[len("test_") :].replace("_", " ")

    def raises(self, code, function, *args, **kwargs):
        with self.assertRaises(xseg.XsegError) as caught:
            function(*args, **kwargs)
        self.assertEqual(
            errno.errorcode[caught.exception.errno], errno.errorcode[code], caught.exception
        )
        return caught.exception


class WithVolume(Case):
    def setUp(self):
        self.name = "v" + str(abs(hash(self._testMethodName)))
        segment.volume_create(self.name, SIZE)
        self.volume = xseg.Volume(self.name, gone=0.3)

    def tearDown(self):
        self.volume.close()
        segment.volume_remove(self.name)


class Declarations(Case):
    def compiles(self, program):
        """What a C program with the header prints."""
        path = pathlib.Path("declared")
        path.with_suffix(".c").write_text(
            "#include <stdio.h>\n#include <stddef.h>\n#include <xseg/volume.h>\n#include <xseg/kv.h>\n"
            + program
        )
        subprocess.run(
            [
                os.environ.get("CC", "gcc"),
                "-Wall",
                "-Werror",
                f"-I{ROOT}",
                "-o",
                path,
                "declared.c",
            ],
            check=True,
            capture_output=True,
        )
        return subprocess.run(
            [path.resolve()], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def test_structures_are_those_of_the_header(self):
        lines, wanted = [], []

        def compare(c_name, place, cls):
            for name, kind in cls._fields_:
                where, field = place + [name], getattr(cls, name)
                member = ".".join(where)
                lines.append(
                    f'printf("{c_name}.{member} %zu\\n", sizeof((({c_name} *)0)->{member}));'
                )
                wanted.append(f"{c_name}.{member} {field.size}")
                if issubclass(kind, ctypes.Structure):
                    compare(c_name, where, kind)
                else:
                    parent = (
                        f"{c_name}"
                        if not place
                        else f"__typeof__((({c_name} *)0)->{'.'.join(place)})"
                    )
                    lines.append(
                        f'printf("{c_name}.{member} at %zu\\n", offsetof({parent}, {name}));'
                    )
                    wanted.append(f"{c_name}.{member} at {field.offset}")

        for name, cls in _lib.STRUCTS.items():
            if hasattr(cls, "_fields_"):
                compare(f"struct {name}", [], cls)
                lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
                wanted.append(f"{name} {ctypes.sizeof(cls)}")
        self.assertGreater(len(wanted), 40)
        self.assertEqual(
            self.compiles("int main(void) {" + "\n".join(lines) + "return 0; }").splitlines(),
            wanted,
        )

    def test_functions_and_constants_are_those_of_the_header(self):
        names = [name for name in vars(_lib) if name.startswith(("OP_", "IO_", "KV_")) or name == "SECTOR"]
        self.assertGreaterEqual(len(names), 8)
        printed = "".join(f'printf("%u\\n", (unsigned)XSEG_{name});' for name in names)
        out = self.compiles(_lib.PROTOTYPES + "int main(void) {" + printed + "return 0; }")
        self.assertEqual(
            [int(line) for line in out.split()], [getattr(_lib, name) for name in names]
        )

    def test_a_declaration_that_is_not_the_headers_is_noticed(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.compiles(
                _lib.PROTOTYPES.replace("uint64_t", "uint32_t") + "int main(void) { return 0; }"
            )


class Files(WithVolume):
    def test_reads_and_writes_at_any_offset_are_those_of_a_file(self):
        rng, file = random.Random(SEED), io.BytesIO(bytes(SIZE))
        for step in range(400):
            offset, size = rng.randrange(SIZE), rng.choice([1, 511, 512, 513, 4096, 5000, 200000])
            if rng.random() < 0.3:
                offset -= offset % 512
            file.seek(offset)
            self.assertEqual(self.volume.seek(offset), offset)
            if rng.random() < 0.5:
                data = rng.randbytes(min(size, SIZE - offset))
                self.assertEqual(self.volume.write(data), file.write(data))
            else:
                self.assertEqual(self.volume.read(size), file.read(size))
            self.assertEqual(self.volume.tell(), file.tell(), step)
        self.volume.seek(0)
        self.assertEqual(self.volume.read(), file.getvalue())

    def test_a_write_of_a_part_of_a_sector_leaves_the_rest(self):
        self.volume.pwrite(b"a" * 2048, 0)
        self.volume.pwrite(b"b" * 1024, 500)
        self.assertEqual(self.volume.pread(2048, 0), b"a" * 500 + b"b" * 1024 + b"a" * 524)
        self.volume.pwrite(b"c", 511, fua=True)
        self.assertEqual(self.volume.pread(3, 510), b"bcb")

    def test_buffers_of_any_kind_are_read_and_written(self):
        data = random.Random(SEED).randbytes(8192)
        for source in (
            data,
            bytearray(data),
            memoryview(data),
            memoryview(data + b"x")[:8192],
            (ctypes.c_uint32 * 2048).from_buffer_copy(data),
        ):
            self.volume.write_zeroes(0, 8192)
            self.assertEqual(self.volume.pwrite(source, 0), 8192)
            into = bytearray(8192)
            self.assertEqual(self.volume.preadinto(into, 0), 8192)
            self.assertEqual(into, data)
            into.append(0)  # nobody holds it any more
        self.assertRaises(TypeError, self.volume.preadinto, bytes(512), 0)

    def test_the_end_is_an_end(self):
        self.assertEqual(self.volume.seek(0, os.SEEK_END), SIZE)
        self.assertEqual(self.volume.read(10), b"")
        self.raises(errno.ENOSPC, self.volume.write, b"x")
        self.assertEqual(self.volume.pwrite(b"xy", SIZE - 1), 1)
        self.assertEqual(self.volume.pread(10, SIZE - 2), b"\0x")
        self.assertEqual(self.volume.pread(10, SIZE + 512), b"")
        self.raises(errno.EINVAL, self.volume.seek, -1)
        self.raises(errno.EINVAL, self.volume.pread, 1, -1)

    def test_what_another_thread_sees_end_meanwhile_is_read_as_far_as_it_is(self):
        sizes = iter((1024, 512))
        with unittest.mock.patch.object(xseg.Volume, "_inside", lambda *_: next(sizes)):
            self.assertEqual(len(self.volume.pread(1024, 0)), 512)

    def test_what_is_discarded_zeroed_and_copied_is_so(self):
        self.volume.pwrite(b"d" * 65536, 0)
        self.volume.discard(0, 4096)
        self.volume.write_zeroes(8192, 512, fua=True)
        self.volume.copy(131072, 4096, 8192, fua=True)
        self.volume.flush()
        self.assertEqual(self.volume.pread(8704, 0), bytes(4096) + b"d" * 4096 + bytes(512))
        self.assertEqual(self.volume.pread(8192, 131072), b"d" * 4096 + bytes(512) + b"d" * 3584)
        self.raises(errno.EINVAL, self.volume.copy, 0, 512, 1024)
        self.raises(errno.EINVAL, self.volume.discard, 1, 512)
        self.raises(errno.ENXIO, self.volume.discard, SIZE, 512)

    def test_buffered_files_stand_on_it(self):
        with io.BufferedRandom(xseg.Volume(self.name)) as file:
            for n in range(1000):
                file.write(b"%07d\n" % n)
            file.seek(8 * 500)
            self.assertEqual(file.readline(), b"0000500\n")
        self.assertEqual(self.volume.pread(8, 8 * 999), b"0000999\n")

    def test_a_volume_that_is_closed_says_so(self):
        queue = self.volume.queue()
        self.volume.close()
        self.volume.close()
        self.assertTrue(self.volume.closed)
        for function in (
            lambda: self.volume.read(1),
            lambda: self.volume.pwrite(b"x", 0),
            self.volume.flush,
            self.volume.tell,
            lambda: self.volume.size,
            self.volume.queue,
            queue.poll,
            queue.fileno,
            lambda: queue.submit(IO.flush()),
        ):
            self.assertRaises(ValueError, function)

    def test_a_volume_that_nobody_knows_any_more_is_closed(self):
        before = len(clients())
        volume = xseg.Volume(self.name)
        volume.pread(1, 0)
        queue = volume.queue()
        self.assertEqual(len(clients()), before + 2)
        del volume  # the queue knows it
        queue.run(IO.read(0, 512))
        del queue
        gc.collect()
        self.assertEqual(len(clients()), before)

    def test_truncate_makes_it_larger_and_only_resize_smaller(self):
        self.assertEqual(self.volume.truncate(2 * SIZE), 2 * SIZE)
        self.assertEqual(self.volume.pwrite(b"x", 2 * SIZE - 1), 1)
        error = self.raises(errno.EBUSY, self.volume.truncate, SIZE)
        self.assertEqual(error.code, 4)
        self.assertEqual(self.volume.resize(SIZE, force=True), SIZE)
        self.assertEqual(self.volume.info()["size_bytes"], SIZE)
        self.raises(errno.EINVAL, self.volume.truncate, SIZE + 1)


class Queues(WithVolume):
    def test_many_ios_are_out_at_a_time(self):
        with self.volume.queue(depth=8) as queue:
            ios = [IO.write(n * 4096, pattern(n)) for n in range(200)]
            queue.submit(*ios)
            self.assertEqual(len(queue), 200)
            self.assertIsNone(ios[-1].result)
            back = []
            while queue:
                back += queue.wait(PATIENCE)
            self.assertEqual({io.check() for io in back}, set(ios))
            reads = [IO.read(n * 4096, 4096) for n in range(200)]
            for n, read in enumerate(reads):
                read.cookie = n
            queue.submit(*reads)
            for read in (read for _ in iter(lambda: len(queue), 0) for read in queue.wait()):
                self.assertEqual(read.check().data, pattern(read.cookie))
            self.assertEqual(queue.wait(), [])

    def test_an_io_is_refused_as_the_library_refuses_it(self):
        with self.volume.queue() as queue:
            self.raises(errno.EINVAL, queue.submit, IO.read(1, 512))
            self.raises(errno.ENXIO, queue.submit, IO.read(SIZE, 512))
            self.raises(errno.EINVAL, IO.read, -512, 512)
            read = IO.read(0, 512)
            self.raises(errno.EINPROGRESS, read.check)
            queue.submit(read)
            self.raises(errno.EBUSY, queue.submit, read)
            self.assertEqual(queue.wait(), [read])
            queue.run(read)  # may be used again
            self.assertEqual(str(read), "read of 512 bytes at 0")
        self.raises(errno.EINVAL, self.volume.queue, depth=5000)

    def test_a_queue_with_ios_out_is_closed_without_harm(self):
        segment.peer_set("memd", latency="50ms")
        try:
            for _ in range(5):
                queue = self.volume.queue()
                queue.submit(*(IO.read(n * 4096, 4096) for n in range(64)))
                del queue
        finally:
            segment.peer_set("memd", latency="0")
        self.assertTrue(until(lambda: not clients()))

    def test_a_wait_ends_in_time_and_at_a_signal(self):
        armed = False

        # It comes again and again, as the first ones may come before anybody waits.
        def stop(*_):
            nonlocal armed
            if armed:
                armed = False
                raise InterruptedError("the signal")

        old = signal.signal(signal.SIGALRM, stop)
        segment.peer_set("memd", latency="2s")
        try:
            with self.volume.queue() as queue:
                queue.submit(IO.read(0, 4096))
                self.assertEqual(queue.wait(0.1), [])
                signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
                with self.assertRaisesRegex(InterruptedError, "the signal"):
                    armed = True
                    queue.wait()
                with self.assertRaisesRegex(InterruptedError, "the signal"):
                    armed = True
                    queue.run(IO.read(8192, bytearray(4096)))
                # on a machine that is slow the first one may be back already
                self.assertIn(len(queue), (1, 2))
                self.assertEqual(len(queue.wait(PATIENCE)), 1)
                self.assertTrue(until(lambda: queue.poll() == [] and not queue))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            segment.peer_set("memd", latency="0")
            signal.signal(signal.SIGALRM, old)

    def test_a_handler_that_calls_the_queue_it_has_interrupted_is_refused(self):
        def calls(*_):
            for function in (
                queue.poll,
                queue.close,
                self.volume.close,
                lambda: queue.run(IO.flush()),
            ):
                try:
                    function()
                    said.append("not refused")
                except RuntimeError as error:
                    said.append(str(error))

        said, old = [], signal.signal(signal.SIGALRM, calls)
        segment.peer_set("memd", latency="1s")
        try:
            with self.volume.queue() as queue:
                queue.submit(IO.read(0, 4096))
                signal.setitimer(signal.ITIMER_REAL, 0.25)  # not between two slices
                self.assertEqual([io.result for io in queue.wait()], [4096])
                self.assertEqual(
                    said, ["a signal handler calls the queue that it has interrupted"] * 4
                )
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            segment.peer_set("memd", latency="0")
            signal.signal(signal.SIGALRM, old)

    def test_exceptions_of_handlers_at_any_moment_lose_no_io(self):
        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop

        def some_io():
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.5e-3))
                while True:
                    queue.submit(*(IO.write(n * 512, bytes(512)) for n in range(8)))
                    queue.run(IO.read(0, 4096), IO.read(4096, 4096))
                    queue.poll()
            except Stop:
                return 1

        rng, old = random.Random(SEED), signal.signal(signal.SIGALRM, stop)
        try:
            with self.volume.queue(depth=4) as queue:
                self.assertEqual(sum(some_io() for _ in range(300)), 300)
                # some come back at a time, and all of them when the machine has done them; those of
                # run() are not told
                while left := len(queue):
                    queue.wait(PATIENCE)
                    self.assertLess(len(queue), left)
                self.assertEqual(queue.wait(), [])
                queue.run(*(IO.read(n * 512, 512) for n in range(64)))
        finally:
            signal.signal(signal.SIGALRM, old)

    def test_threads_have_queues_of_their_own(self):
        def work(nr):
            rng = random.Random(SEED + nr)
            with self.volume.queue(depth=4) as queue:
                for _ in range(20):
                    places = rng.sample(range(nr * 32, nr * 32 + 32), 8)
                    queue.run(*(IO.write(place * 4096, pattern(place)) for place in places))
                    reads = [IO.read(place * 4096, 4096) for place in places]
                    queue.run(*reads)
                    done[nr] += sum(
                        read.data == pattern(place) for read, place in zip(reads, places)
                    )

        done = [0] * 4
        threads = [threading.Thread(target=work, args=[nr]) for nr in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(done, [160] * 4)

    def test_threads_that_write_parts_of_one_sector_of_one_volume_lose_none(self):
        def work(nr):
            for n in range(16):
                self.volume.pwrite(bytes([nr + 1]) * 8, n * 32 + nr * 8)

        threads = [threading.Thread(target=work, args=[nr]) for nr in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(
            self.volume.pread(512, 0), b"".join(bytes([nr + 1]) * 8 for nr in range(4)) * 16
        )

    def test_a_forked_child_is_told_that_it_has_no_part_of_it(self):
        self.volume.pread(512, 0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.volume.pread(512, 0)
            except xseg.XsegError as error:
                code = 0 if error.errno == errno.ENOTCONN else 2
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.volume.pread(512, 0)


    def test_a_forked_child_waits_for_no_thread_of_its_parent(self):
        """One that waits in the Volume, and one in a queue."""

        def refused(function):
            try:
                function()
            except xseg.XsegError as error:
                return error.errno == errno.ENOTCONN

        def child():
            signal.alarm(PATIENCE)
            ok = all(
                [
                    refused(lambda: self.volume.pread(512, 0)),
                    refused(queue.wait),
                    refused(lambda: queue.submit(IO.flush())),
                    refused(self.volume.refresh),
                ]
            )
            queue.close()
            self.volume.close()
            os._exit(0 if ok else 1)

        segment.peer_set("memd", latency="1s")
        try:
            with self.volume.queue() as queue:
                queue.submit(IO.read(65536, 4096))
                threads = [
                    threading.Thread(target=self.volume.pread, args=(4096, 0)),
                    threading.Thread(target=queue.wait),
                ]
                for thread in threads:
                    thread.start()
                time.sleep(0.3)
                with warnings.catch_warnings():  # from 3.12 on it is one to fork beside threads
                    warnings.simplefilter("ignore", DeprecationWarning)
                    pid = os.fork()
                if pid == 0:
                    child()
                self.assertEqual(os.waitpid(pid, 0)[1], 0)
                for thread in threads:
                    thread.join()
        finally:
            segment.peer_set("memd", latency="0")
        self.volume.pread(512, 0)


class Asyncio(WithVolume):
    def test_ios_are_awaited(self):
        async def main():
            async with xseg.aio.AsyncQueue(self.volume.queue(depth=8)) as queue:
                await asyncio.gather(
                    *(queue.run(IO.write(n * 4096, pattern(n))) for n in range(100))
                )
                await queue.run(IO.flush())
                reads = await asyncio.gather(
                    *(queue.run(IO.read(n * 4096, 4096)) for n in range(100))
                )
                self.assertEqual([read.data for read in reads], [pattern(n) for n in range(100)])
                with self.assertRaises(xseg.XsegError):
                    await queue.run(IO.read(SIZE, 512))

        asyncio.run(main())

    def test_the_loop_goes_on_while_ios_are_out(self):
        async def main():
            async with xseg.aio.AsyncQueue(self.volume.queue()) as queue:
                read, steps = asyncio.ensure_future(queue.run(IO.read(65536, 4096))), 0
                cancelled = asyncio.ensure_future(queue.run(IO.read(131072, 4096)))
                await asyncio.sleep(0)
                cancelled.cancel()
                while not read.done():
                    await asyncio.sleep(0.01)
                    steps += 1
                self.assertEqual((await read).result, 4096)
                self.assertGreater(steps, 2)  # a loop that waits for the read makes one
                left = asyncio.ensure_future(queue.run(IO.read(262144, 4096)))
                await asyncio.sleep(0)
            with self.assertRaises(asyncio.CancelledError):
                await left

        segment.peer_set("memd", latency="3s")  # a machine may stand still for a second
        try:
            asyncio.run(main())
        finally:
            segment.peer_set("memd", latency="0")


class Below(WithVolume):
    """What happens to the peers while I/O runs."""

    def setUp(self):
        super().setUp()
        self.stop, self.rounds, self.failed = threading.Event(), 0, None
        self.thread = threading.Thread(target=self.load)
        self.thread.start()
        self.goes_on()

    def load(self):
        try:
            with self.volume.queue() as queue:
                while not self.stop.is_set():
                    queue.run(*(IO.write(n * 4096, pattern(n + self.rounds)) for n in range(32)))
                    reads = [IO.read(n * 4096, 4096) for n in range(32)]
                    queue.run(*reads)
                    if any(read.data != pattern(n + self.rounds) for n, read in enumerate(reads)):
                        raise AssertionError("wrong data")
                    self.rounds += 1
        except Exception as error:
            self.failed = error

    def goes_on(self):
        rounds = self.rounds
        self.assertTrue(until(lambda: self.rounds > rounds + 1 or self.failed))
        self.assertIsNone(self.failed)

    def tearDown(self):
        self.stop.set()
        self.thread.join()
        super().tearDown()

    def test_kills_of_the_cache_and_of_volumed_are_pauses(self):
        for name in ("cached", "volumed", "cached"):
            generation = segment.peer(name)["generation"]
            segment.peer_kill(name)
            self.assertTrue(
                until(
                    lambda: segment.peer(name)["generation"] > generation
                    and segment.peer(name)["state"] == "running",
                )
            )
            self.goes_on()

    def test_a_cache_is_unplugged_and_plugged(self):
        segment.unplug("cached", timeout=20)
        self.assertEqual(segment.peer("volumed")["downstream"], "memd")
        self.assertEqual(segment.cache_status("cached")["state"], "drained")
        self.goes_on()
        self.assertEqual(self.raises(errno.EBUSY, segment.unplug, "cached").code, 4)
        segment.plug("cached", above="memd", below="volumed,values")
        self.assertEqual(segment.peer("volumed")["downstream"], "cached")
        self.goes_on()

    def test_a_volumed_that_stays_away_is_an_error(self):
        segment.peer_stop("volumed", force=True)
        self.thread.join()
        segment.peer_start("volumed")
        self.assertEqual(self.failed.errno, errno.ENOTCONN)
        with xseg.Volume(self.name) as again:
            self.assertEqual(len(again.pread(4096, 0)), 4096)

    def test_a_volume_that_is_removed_is_an_error(self):
        self.assertEqual(self.raises(errno.EBUSY, segment.volume_remove, self.name).code, 4)
        segment.volume_remove(self.name, force=True)
        self.thread.join()
        segment.volume_create(self.name, SIZE)
        self.assertEqual(self.failed.errno, errno.ESTALE)
        self.raises(errno.ESTALE, self.volume.refresh)


class Values(Case):
    def setUp(self):
        self.kv = xseg.KV("values", gone=0.3)
        for key in list(self.kv):
            del self.kv[key]

    def tearDown(self):
        self.kv.close()

    def test_a_store_is_a_mapping(self):
        kv = self.kv
        kv[b"a"] = b"1"
        kv["b"] = bytearray(b"\0" * 100000)
        self.assertEqual(kv["a"], b"1")
        self.assertEqual(kv[b"b"], bytes(100000))
        self.assertEqual(sorted(kv), [b"a", b"b"])
        self.assertEqual(len(kv), 2)
        self.assertEqual(dict(kv.items())[b"a"], b"1")
        self.assertIn("a", kv)
        self.assertNotIn("c", kv)
        self.assertEqual(kv.get("c"), None)
        self.assertEqual(kv.get("c", b"x"), b"x")
        self.assertEqual(kv.setdefault("c", b"3"), b"3")
        self.assertEqual(kv.pop("c"), b"3")
        del kv["a"]
        for change in kv.__getitem__, kv.__delitem__, kv.incr, kv.touch, kv.delete:
            with self.assertRaises(KeyError):
                change("a")
        kv.clear()
        self.assertEqual(list(kv), [])

    def test_values_have_versions_times_and_flags(self):
        kv = self.kv
        first = kv.put("a", b"1", client=7)
        self.assertEqual(kv.value("a"), xseg.Value(b"1", first, 0, 7))
        self.raises(errno.EEXIST, kv.put, "a", b"2", if_absent=True)
        second = kv.put("a", b"2", version=first, force=True)
        self.assertGreater(second, first)
        self.raises(errno.EEXIST, kv.put, "a", b"3", version=first)
        self.raises(errno.EEXIST, kv.delete, "a", version=first)
        kv.put("a", b"3", ttl=1000)
        self.assertGreater(kv.value("a").expiry, kv.info()["time_s"])
        kv.put("a", b"3", ttl=1)
        deadline = time.monotonic() + 60
        while "a" in kv and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertNotIn("a", kv)
        kv.put("a", b"4", ttl=1000)
        kv.touch("a")
        self.assertEqual(kv.value("a").expiry, 0)

    def test_values_are_changed_where_they_are(self):
        kv = self.kv
        kv["a"] = b"b"
        kv.append("a", b"c")
        kv.prepend("a", b"a")
        self.assertEqual(kv["a"], b"abc")
        self.raises(errno.EINVAL, kv.incr, "a")
        kv["n"] = b"41"
        self.assertEqual(kv.incr("n"), 42)
        self.assertEqual(kv.decr("n", 50), 0)
        self.assertEqual(kv["n"], b"0")
        kv.batch({"x": b"1", "y": b"2"}, ["a", "none"], force=True)
        self.assertEqual(sorted(kv), [b"n", b"x", b"y"])
        self.assertEqual(list(kv.scan("x")), [b"x"])
        kv.batch({})
        kv.flush()

    def test_all_of_many_keys_come_once(self):
        keys = {f"key {n}".encode() for n in range(3000)}
        for n in range(0, 3000, 1000):
            self.kv.batch({f"key {i}": b"" for i in range(n, n + 1000)})
        found = list(self.kv)
        self.assertEqual(len(found), 3000)
        self.assertEqual(set(found), keys)
        self.kv.batch({}, list(keys)[:1000])
        self.assertEqual(len(list(self.kv)), 2000)

    def test_a_store_refuses_what_the_library_refuses(self):
        self.raises(errno.EINVAL, self.kv.put, b"", b"1")
        self.raises(errno.EFBIG, self.kv.put, b"a", bytes(64 << 20))
        self.raises(errno.EFBIG, self.kv.batch, {b"a": bytes(4 << 20)})
        self.raises(errno.ENOENT, xseg.KV, "other")
        kv = xseg.KV("values")
        kv.close()
        kv.close()
        with self.assertRaises(ValueError):
            kv["a"]

    def test_large_values_are_values(self):
        data = random.Random(3).randbytes((3 << 20) + 5)
        version = self.kv.put("a", data, client=9)
        self.assertEqual(self.kv.value("a"), xseg.Value(data, version, 0, 9))
        self.kv["a"] = b"small"
        self.assertEqual(self.kv["a"], b"small")

    def test_a_value_is_a_file(self):
        data = random.Random(4).randbytes((3 << 20) + 5)
        with self.kv.open("a", "wb", client=9) as file:
            for at in range(0, len(data), 70001):
                self.assertNotIn("a", self.kv)
                file.write(data[at : at + 70001])
            self.assertEqual(file.tell(), len(data))
        self.assertEqual(self.kv.value("a"), xseg.Value(data, file.version, 0, 9))
        with self.kv.open("a") as file:
            self.assertEqual((file.size, file.version, file.client), (len(data), file.version, 9))
            self.kv["a"] = b"another"
            self.assertEqual(file.read(), data)
            self.assertEqual(file.read(1), b"")
            for at in 0, 5, (1 << 20) - 3, len(data) - 2:
                file.seek(at)
                self.assertEqual(b"".join(iter(lambda: file.read(4), b""))[:20], data[at : at + 20])
            self.assertEqual(file.seek(-2, os.SEEK_END), len(data) - 2)
        self.assertEqual(self.kv["a"], b"another")
        with self.kv.open("small", "wb") as file:
            file.write(b"12345")
        with io.BufferedReader(self.kv.open("small")) as file:
            self.assertEqual(file.readline(), b"12345")
        with self.kv.open("none", "wb") as file:
            pass
        self.assertEqual(self.kv["none"], b"")
        with self.assertRaises(KeyError):
            self.kv.open("other")
        with self.assertRaises(ValueError):
            self.kv.open("a", "r+b")

    def test_a_file_that_is_not_closed_well_puts_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with self.kv.open("a", "wb") as file:
                file.write(bytes(2 << 20))
                1 / 0
        file = self.kv.open("a", "wb")
        file.write(bytes(2 << 20))
        del file
        file = self.kv.open("a", "wb")
        file.write(b"1")
        file.abort()
        self.assertNotIn("a", self.kv)
        self.kv["a"] = b"1"
        file = self.kv.open("a", "wb", if_absent=True)
        file.write(bytes(2 << 20))
        self.raises(errno.EEXIST, file.close)
        self.assertEqual(self.kv["a"], b"1")
        with self.assertRaises(ValueError):
            file.write(b"1")

    def test_kvd_is_killed_while_files_are_open(self):
        data = random.Random(5).randbytes(4 << 20)
        with self.kv.open("a", "wb") as file:
            file.write(data[: 2 << 20])
            segment.peer_kill("values")
            file.write(data[2 << 20 :])
        with self.kv.open("a") as file:
            half = file.read(2 << 20)
            segment.peer_kill("values")
            self.assertEqual(half + file.read(), data)

    def test_kvd_is_killed_and_it_is_a_pause(self):
        for n in range(20):
            self.kv[f"{n}"] = bytes([n]) * 1000
        segment.peer_kill("values")
        for n in range(20):
            self.assertEqual(self.kv[f"{n}"], bytes([n]) * 1000)

    def test_a_forked_child_has_no_part_of_a_store(self):
        self.kv["a"] = b"1"
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.kv["a"]
            except xseg.XsegError as error:
                code = 0 if error.errno == errno.ENOTCONN else 2
            os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.kv["a"], b"1")

    def test_an_exception_of_a_handler_leaves_the_store_usable(self):
        def stop(*_):
            raise InterruptedError

        self.kv["a"] = b"1"
        old = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(InterruptedError):
                while True:
                    self.kv["a"]
        finally:
            signal.signal(signal.SIGALRM, old)
        self.kv["a"] = b"2"
        self.assertEqual(self.kv["a"], b"2")


class Admin(WithVolume):
    def test_status_and_statistics_are_dicts(self):
        self.volume.pwrite(pattern(1), 0)
        self.assertEqual(
            {"volumed", "cached", "memd"} - {peer["name"] for peer in segment.peers()}, set()
        )
        self.assertEqual(segment.status()["segment"]["name"], segment.name)
        status = segment.cache_status("cached")
        self.assertGreater(status["writes"], 0)
        self.assertEqual(segment.cache_status("cached", volume=self.name)["name"], self.name)
        self.assertIn("cached", [peer["name"] for peer in segment.stat()["peers"]])
        self.assertEqual(segment.volume_info(self.name)["size_bytes"], SIZE)
        for words in ["volume info", self.name], ["volume", "info", self.name]:
            self.assertEqual(segment.run(*words, volumed="volumed")["size_bytes"], SIZE)
        self.assertIn(self.name, [volume["name"] for volume in segment.volumes()])
        several = segment.run("stat", interval="100ms", count=3)
        self.assertEqual([set(one) for one in several], [set(segment.stat())] * 3)
        self.assertTrue(segment.check()["ok"])
        self.assertGreater(segment.info()["memory_bytes"], 0)

    def test_a_cache_is_set_flushed_and_dropped(self):
        segment.cache_set("cached", policy="write-through", dirty_high=60)
        self.assertEqual(segment.cache_get("cached")["policy"], "write-through")
        segment.cache_set("cached", volume=self.name, policy="write-back")
        self.assertEqual(segment.cache_get("cached", volume=self.name)["policy"], "write-back")
        segment.cache_set("cached", policy="write-back")
        self.volume.pwrite(pattern(1), 0)
        self.assertEqual(self.raises(errno.EBUSY, segment.cache_drop, "cached").code, 4)
        segment.volume_flush(self.name)
        segment.cache_flush("cached")
        segment.cache_drop("cached")
        self.assertEqual(segment.cache_status("cached")["dirty_bytes"], 0)

    def test_errors_have_the_commands_words_and_its_exit_code(self):
        error = self.raises(errno.EINVAL, segment.cache_set, "cached", policy="best")
        self.assertEqual(error.code, 2)
        self.assertRegex(error.strerror, "best.*write-back")
        self.assertEqual(self.raises(errno.EBUSY, segment.volume_create, self.name, "1M").code, 4)
        self.assertRegex(
            str(self.raises(errno.EINVAL, segment.volume_info, "--help")), "volume '--help'"
        )
        self.raises(errno.ENOENT, segment.peer, "none")
        # a name of a file need not be text
        error = self.raises(errno.EBUSY, segment.up, os.fsdecode(b"\xfc.conf"))
        self.assertRegex(error.strerror, "\ufffd.conf: No such file")
        # by its path: a folder of PATH that may not be searched makes it another error
        self.assertRaises(FileNotFoundError, xseg.Segment(command="./no-such-command").peers)

    def test_errors_of_the_library_have_its_words(self):
        error = self.raises(errno.ENOENT, xseg.Volume, "none")
        self.assertRegex(error.strerror, "no volume 'none'")
        self.assertIsNone(error.code)
        self.assertRegex(
            self.raises(errno.ENOENT, xseg.Volume, self.name, "no-such-segment").strerror,
            "no segment 'no-such-segment'",
        )
        self.raises(errno.EINVAL, xseg.Volume, "no/name")
        # what C would take for the part before it
        self.raises(errno.EINVAL, xseg.Volume, self.name + "\0b")
        self.raises(errno.EINVAL, xseg.Volume, self.name, segment.name + "\0b")
        self.raises(errno.EINVAL, xseg.Volume, self.name, volumed="volumed\0b")

    def test_times_are_not_negative_and_may_be_without_an_end(self):
        for wrong in {"timeout": -1}, {"gone": -0.001}, {"timeout": math.nan}:
            self.raises(errno.EINVAL, xseg.Volume, self.name, **wrong)
        with xseg.Volume(self.name, timeout=math.inf, gone=math.inf) as volume:
            self.assertEqual(volume.refresh(), SIZE)

    def test_hot_data_is_read_without_requests_unless_it_is_not_to_be(self):
        def requests(volume, reads):
            def count():
                time.sleep(0.05)  # what is counted late
                peers = segment.stat()["peers"]
                return sum(peer["ops"] for peer in peers if peer["name"] == "volumed")

            before = count()
            for _ in range(reads):
                self.assertEqual(volume.pread(4096, 0), data)
            return count() - before

        data = pattern(8)
        self.volume.pwrite(data, 0)
        self.raises(errno.EINVAL, xseg.Volume, self.name, direct="always")
        with xseg.Volume(self.name, direct="never") as volume:
            self.assertGreaterEqual(requests(volume, 200), 200)
        with xseg.Volume(self.name, direct="auto") as volume:
            self.assertLess(requests(volume, 200), 100)
        self.assertLess(requests(self.volume, 200), 100)

    def test_an_empty_name_is_not_the_default(self):
        self.raises(errno.EINVAL, xseg.Volume, self.name, "")
        self.raises(errno.EINVAL, xseg.Volume, self.name, volumed="")
        self.assertEqual(self.raises(errno.EINVAL, xseg.Segment("").info).code, 2)

    def test_an_error_of_the_store_is_that_of_the_io(self):
        segment.peer_set("memd", fail="read:1:EIO")
        try:
            error = self.raises(errno.EIO, self.volume.pread, 4096, 65536)
            self.assertRegex(error.strerror, "read of 4096 bytes at 65536")
            with self.volume.queue() as queue:
                queue.submit(IO.read(131072, 512), IO.flush())
                back = {}
                while queue:
                    back.update((io.op, io.result) for io in queue.wait())
            self.assertEqual(back, {"read": -errno.EIO, "flush": 0})
        finally:
            segment.peer_set("memd", fail="")
        self.volume.pread(4096, 65536)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = suite.run(Report())
    sys.exit(not (result.testsRun and result.wasSuccessful()))
