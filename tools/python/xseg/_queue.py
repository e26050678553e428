"""_queue - many I/Os at a time: IO is one, Queue sends them and gets them back.

Contract: a Queue may be called by any thread, one at a time. A thread that calls while another
waits in it, waits as well. Threads that must do I/O side by side have a queue each. A wait lets
other threads of Python run. It lets signals through at least ten times a second. A handler that
calls the queue which it has interrupted gets a RuntimeError.

Invariants:
  Q1  An IO that is out is in its queue's _out, which keeps it and its memory alive, even if all
      other references are gone.
  Q2  The C queue is touched under _lock alone, and not after it is None.
  Q3  A signal handler may raise between two steps of this code. There _torn says so to the next
      call, which finds by the C structures which I/Os are back (_sweep()). So an I/O that is out in
      C is never forgotten here.
  Q4  A thread never waits for a lock that it has itself. A thread of a forked child never waits for
      a lock of a thread of its parent.
"""
import ctypes
import errno
import os
import threading
import time
import weakref
from ctypes import POINTER, byref
from typing import Any, Dict, List, Optional, Union

from . import _lib
from ._lib import lib

Buffer = Union[bytes, bytearray, memoryview]

_BATCH = 64
_SLICE_NS = _lib.SECOND_NS // 10
_NAMES = {
    _lib.OP_READ: "read",
    _lib.OP_WRITE: "write",
    _lib.OP_FLUSH: "flush",
    _lib.OP_DISCARD: "discard",
    _lib.OP_WRITE_ZEROES: "write_zeroes",
    _lib.OP_COPY: "copy",
}


class IO:
    """An I/O: made by one of the functions below, given to a queue, and of use again when it is back.

    offset and size are bytes, multiples of 512. data is the memory: of a read, where it is to be put (not looked at before the
    IO is back); of a write, what is not to be changed until then. result is None while the IO is out or was never submitted, then
    bytes, or a negative errno. cookie is the caller's.
    """

    __slots__ = ("cookie", "data", "result", "_c", "_pin", "_quiet", "__weakref__")

    def __init__(
        self,
        op: int,
        offset: int,
        size: int,
        data: Optional[Buffer] = None,
        fua: bool = False,
        source: int = 0,
    ) -> None:
        if min(offset, size, source) < 0 or max(offset, size, source) >= 1 << 64:
            raise _lib.fail(
                errno.EINVAL, f"{_NAMES[op]} of {size} bytes at {offset}: no such range"
            )
        self.cookie: Any = None
        self.data = data
        self.result: Optional[int] = None
        self._c = _lib.Io(op=op, flags=_lib.IO_FUA if fua else 0, offset=offset, size=size)
        setattr(self._c, "from", source)
        self._pin: Any = None
        self._quiet = False

    @classmethod
    def read(cls, offset: int, into: Union[int, bytearray, memoryview]) -> "IO":
        """A read of so many bytes into new memory, or of as many as there is room in `into`."""
        data = memoryview(bytearray(into) if isinstance(into, int) else into).cast("B")
        if data.readonly:
            raise TypeError("the memory to read into is read-only")
        return cls(_lib.OP_READ, offset, len(data), data)

    @classmethod
    def write(cls, offset: int, data: Buffer, fua: bool = False) -> "IO":
        """A write; fua: it is back when it is on stable storage."""
        view = memoryview(data).cast("B")
        return cls(_lib.OP_WRITE, offset, len(view), view, fua)

    @classmethod
    def flush(cls) -> "IO":
        """Back when all that came back before it was submitted is on stable storage, whoever wrote it."""
        return cls(_lib.OP_FLUSH, 0, 0)

    @classmethod
    def discard(cls, offset: int, size: int, fua: bool = False) -> "IO":
        """The data is of no use any more; it reads as zeroes."""
        return cls(_lib.OP_DISCARD, offset, size, fua=fua)

    @classmethod
    def write_zeroes(cls, offset: int, size: int, fua: bool = False) -> "IO":
        return cls(_lib.OP_WRITE_ZEROES, offset, size, fua=fua)

    @classmethod
    def copy(cls, offset: int, source: int, size: int, fua: bool = False) -> "IO":
        """Copies `size` bytes from `source` to `offset` of the same volume, which may not overlap."""
        return cls(_lib.OP_COPY, offset, size, fua=fua, source=source)

    @property
    def op(self) -> str:
        return _NAMES[self._c.op]

    @property
    def offset(self) -> int:
        return self._c.offset

    @property
    def size(self) -> int:
        return self._c.size

    def check(self) -> "IO":
        """Itself, when it is back and was done; else raises XsegError."""
        if self.result is None:
            raise _lib.fail(errno.EINPROGRESS, f"{self}: it has not completed")
        _lib.check(self.result, str(self))
        return self

    def __str__(self) -> str:
        return (
            "flush"
            if self._c.op == _lib.OP_FLUSH
            else f"{self.op} of {self.size} bytes at {self.offset}"
        )

    # What can be written is pinned where it is; of what cannot, bytes stay where they are and all
    # else is copied.
    def _hold(self) -> None:
        if self.data is None or self.size == 0:
            self._pin = self._c.buf = None
        elif memoryview(self.data).readonly:
            whole = self.data.obj if isinstance(self.data, memoryview) else self.data
            same = isinstance(whole, bytes) and len(whole) == self.size
            self._pin = whole if same else bytes(self.data)
            self._c.buf = ctypes.cast(ctypes.c_char_p(self._pin), ctypes.c_void_p)
        else:
            self._pin = ctypes.c_char.from_buffer(self.data)
            self._c.buf = ctypes.addressof(self._pin)


# Those that have a _lock: queues and volumes.
_locked: "weakref.WeakSet[Any]" = weakref.WeakSet()


def new_lock(of: Any) -> "threading.RLock":
    _locked.add(of)
    return threading.RLock()


def _in_child() -> None:
    for each in list(_locked):
        each._lock, each._forked = threading.RLock(), True


os.register_at_fork(after_in_child=_in_child)


class Queue:
    """A queue of a volume (Volume.queue() makes one): takes a port of the segment, `depth` requests, and memory for them."""

    def __init__(
        self, volume: Any, handle: "ctypes._Pointer", depth: int, copy_bytes: int, direct: int
    ) -> None:
        self._q = None
        self.volume = volume
        self._lock, self._forked = new_lock(self), False
        self._out: Dict[int, IO] = {}
        self._torn = False
        self._back: List[IO] = []
        self._done = (POINTER(_lib.Io) * _BATCH)()
        q, err = POINTER(_lib.Queue)(), _lib.Error()
        params = _lib.QueueParams(depth, copy_bytes, direct)
        _lib.check(lib.xseg_queue_create(handle, byref(params), byref(q), byref(err)), "queue", err)
        self._q = q

    def close(self) -> None:
        """Gives all back to the segment. What is out may be done yet, or not, and its memory is not written any more."""
        with self._alone():
            q, self._q = self._q, None
            if q is not None:
                lib.xseg_queue_destroy(q)
            self._out.clear()

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_q", None) is not None:
            self.close()

    def __len__(self) -> int:
        """How many are out, or back and not yet taken by poll() or wait()."""
        return len(self._out) + len(self._back)

    def _open(self) -> "ctypes._Pointer":
        if self._q is None:
            raise ValueError("I/O on a closed queue")
        if self._forked:
            raise _lib.fail(errno.ENOTCONN, "the queue was made before this process was forked")
        return self._q

    # Q4
    def _alone(self) -> "threading.RLock":
        if self._lock._is_owned():
            raise RuntimeError("a signal handler calls the queue that it has interrupted")
        return self._lock

    # ---- sending ----

    def submit(self, *ios: IO) -> None:
        """Takes I/Os, and sends as many as there are requests for; the others follow by themselves. Never waits. What is not taken, because of an
        error, is that I/O and all that stand after it."""
        with self._alone():
            lib.xseg_queue_kick(self._submit(ios, False))

    def _submit(self, ios: "tuple[IO, ...]", quiet: bool) -> "ctypes._Pointer":
        q = self._begin()
        for io in ios:
            at = ctypes.addressof(io._c)
            if io._pin is not None or at in self._out or io._c.state != 0:
                raise _lib.fail(errno.EBUSY, f"{io}: it is submitted already")
            io._hold()
            io.result, io._quiet, io._c.result = None, quiet, -errno.ECANCELED
            self._out[at] = io
            rc = lib.xseg_queue_submit(q, io._c)
            if rc < 0:
                del self._out[at]
                io._pin = None
            _lib.check(rc, str(io))
        self._torn = False
        return q

    # ---- having them back ----

    def _take(self, timeout_ns: int) -> None:
        q = self._begin()
        n = lib.xseg_queue_wait(q, self._done, _BATCH, timeout_ns)
        while n:
            for i in range(n):
                self._end(ctypes.addressof(self._done[i].contents))
            n = lib.xseg_queue_poll(q, self._done, _BATCH)
        self._torn = False

    # What run() waits for is not told by poll().
    def _end(self, at: int) -> None:
        io = self._out[at]
        io.result, io._pin = io._c.result, None
        if not io._quiet:
            self._back.append(io)
        del self._out[at]

    # Q3
    def _begin(self) -> "ctypes._Pointer":
        q = self._open()
        if self._torn:
            self._sweep()
        self._torn = True
        return q

    def _sweep(self) -> None:
        for at, io in list(self._out.items()):
            if io._c.state == 0:
                if io in self._back:
                    self._back.remove(io)
                self._end(at)

    def poll(self) -> List[IO]:
        """All that are back since the last time, in the order in which they came."""
        with self._alone():
            self._take(0)
            back, self._back = self._back, []
        return back

    def wait(self, timeout: Optional[float] = None) -> List[IO]:
        """The same; waits so many seconds, or for ever, until there is one. Empty: none in that time, or none is out."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            back = self.poll()
            left = _SLICE_NS if end is None else int((end - time.monotonic()) * _lib.SECOND_NS)
            if back or left <= 0 or not self._out:
                return back
            with self._alone():
                self._take(min(left, _SLICE_NS))

    def run(self, *ios: IO) -> None:
        """Submits I/Os, and waits until all of them are back; raises XsegError for the first that failed. Others that come back meanwhile are there for
        poll(). After an exception of a signal's handler they are out still, and their memory is kept.
        """
        with self._alone():
            self._submit(ios, True)
        for io in ios:
            while io.result is None:
                with self._alone():
                    if io.result is None:
                        self._take(_SLICE_NS)
        for io in ios:
            io.check()

    # ---- for loops that wait for descriptors ----

    def fileno(self) -> int:
        """A descriptor that is readable when the queue was armed and has something to be polled since. Never read or written by the caller."""
        with self._alone():
            return _lib.check(lib.xseg_queue_fd(self._open()), "descriptor of a queue")

    def arm(self) -> bool:
        """Before the loop waits, after fileno(): sends what was submitted. True: the descriptor will become readable; False: there may be something now,
        poll instead. Good until the next poll() or wait()."""
        with self._alone():
            q = self._open()
            return not self._back and _lib.check(lib.xseg_queue_arm(q), "arming of a queue") == 0
