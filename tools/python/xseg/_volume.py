"""_volume - a volume as a file: bytes at any offset, upon I/Os of whole sectors.

Contract: any thread. The I/Os of one Volume are done one after the other. For many at a time there
is Volume.queue().

Invariants:
  V1  All I/O of a Volume's own is done under _lock. So of two writes to parts of one sector through
      the same Volume neither is lost. Against all other writers it is not atomic: the rest of such
      a sector is read, and written back.
  V2  The queue for it is made by the first I/O. The queue does not know the Volume, so a Volume
      without references is closed at once.
"""
import ctypes
import errno
import io
import math
import os
import weakref
from ctypes import POINTER, byref
from typing import Any, Dict, Optional

from . import _lib
from ._admin import Segment, segment_name
from ._lib import SECTOR, lib
from ._queue import IO, Buffer, Queue, new_lock


def _down(offset: int) -> int:
    return offset - offset % SECTOR


def _up(offset: int) -> int:
    return _down(offset + SECTOR - 1)


def _name(text: str) -> bytes:
    if "\0" in text:
        raise _lib.fail(errno.EINVAL, f"name {text!r}: it has a NUL")
    return text.encode()


# As in struct xseg_queue_params.
def _direct(text: str) -> int:
    if text not in ("auto", "never"):
        raise _lib.fail(errno.EINVAL, f"direct={text!r}: give auto or never")
    return ("auto", "never").index(text)


# 0 is the library's default.
def _ns(what: str, seconds: float) -> int:
    if not seconds >= 0:
        raise _lib.fail(errno.EINVAL, f"{what}={seconds}: no such time")
    return math.ceil(min(seconds * _lib.SECOND_NS, 2**64 - 1))


class Volume(io.RawIOBase):
    """An open volume of a segment, which can be read, written and sought like a file that is opened "rb+" without buffering.

    segment: its name; without it $XSEG_SEGMENT, else xseg. volumed: which, where there are several. timeout: seconds for volumed to start and
    to answer, 10 without it. gone: seconds without anybody to serve the volume until I/O fails, 5 without it. math.inf: for ever.
    owner: the user whose segment is let in besides the caller's and root's; without it $XSEG_OWNER.
    direct: "auto": its queues read what the cache has without a request, while that pays; "never": each read is a request.

    Errors are XsegError, with the errno of libxseg(3). What is smaller than a sector of 512 bytes, or does not begin with one, is read, changed and
    written: not atomic, but for other calls of the same Volume. A process below that is killed and started again is a pause.
    """

    _handle: Optional["ctypes._Pointer"] = None
    _queue: Optional[Queue] = None

    def __init__(
        self,
        name: str,
        segment: Optional[str] = None,
        *,
        volumed: Optional[str] = None,
        timeout: float = 0,
        gone: float = 0,
        owner: Optional[str] = None,
        direct: str = "auto",
    ) -> None:
        super().__init__()
        self._queues: "weakref.WeakSet[Queue]" = weakref.WeakSet()
        self._lock = new_lock(self)
        self._position = 0
        self.name, self.segment, self.mode = name, segment_name(segment), "rb+"
        self._direct = _direct(direct)
        self._owner = owner or os.environ.get("XSEG_OWNER") or None
        handle, err = POINTER(_lib.Volume)(), _lib.Error()
        params = _lib.VolumeParams(
            segment=_name(self.segment),
            volume=_name(name),
            volumed=None if volumed is None else _name(volumed),
            timeout_ns=_ns("timeout", timeout),
            gone_ns=_ns("gone", gone),
            owner=None if self._owner is None else self._owner.encode(),
        )
        _lib.check(
            lib.xseg_volume_open(byref(params), byref(handle), byref(err)), f"volume {name}", err
        )
        self._handle = handle

    def _open(self) -> "ctypes._Pointer":
        if self._handle is None:
            raise ValueError("I/O on a closed volume")
        return self._handle

    def close(self) -> None:
        """Closes it and its queues. Does not flush: what was written is with the cache or the store, as it is."""
        if self._handle is not None:
            with self._lock:
                for queue in [self._queue, *self._queues]:
                    if queue is not None:
                        queue.close()
                handle, self._handle = self._handle, None
                lib.xseg_volume_close(handle)
        super().close()

    # ---- what it is ----

    def info(self) -> Dict[str, Any]:
        """name volumed id generation size_bytes object_bytes sector_bytes page_bytes, as when it was opened or refreshed."""
        info = _lib.VolumeInfo()
        with self._lock:
            lib.xseg_volume_get_info(self._open(), byref(info))
        values = {key: getattr(info, key) for key, _ in info._fields_}
        return {
            key: value.decode() if isinstance(value, bytes) else value
            for key, value in values.items()
        }

    @property
    def size(self) -> int:
        """Bytes, as when it was opened or refreshed."""
        return self.info()["size_bytes"]

    def refresh(self) -> int:
        """Asks for the size, which somebody may have changed."""
        with self._lock:
            _lib.check(lib.xseg_volume_refresh(self._open()), f"volume {self.name}")
            return self.size

    def queue(self, depth: int = 0, copy_bytes: int = 0) -> Queue:
        """A queue for many I/Os at a time: depth 1 to 1024 requests, 32 without it, of which each copies at most copy_bytes, 128 KiB without it."""
        with self._lock:
            queue = Queue(self, self._open(), depth, copy_bytes, self._direct)
            self._queues.add(queue)
        return queue

    # ---- I/O at offsets ----

    def run(self, *ios: IO) -> None:
        """Does I/Os, side by side, and waits for them; raises XsegError for the first that failed."""
        with self._lock:
            handle = self._open()
            if self._queue is None:
                self._queue = Queue(None, handle, 0, 0, self._direct)
            self._queue.run(*ios)

    def preadinto(self, buffer: Any, offset: int) -> int:
        """Reads into the buffer; how many bytes: fewer than there is room only at the end of the volume."""
        whole = memoryview(buffer).cast("B")
        with self._lock:
            size = self._inside(offset, len(whole))
            if size and (offset | size) % SECTOR == 0:
                self.run(IO.read(offset, whole[:size]))
            elif size:
                begin = _down(offset)
                sectors = bytearray(_up(offset + size) - begin)
                self.run(IO.read(begin, sectors))
                whole[:size] = memoryview(sectors)[offset - begin :][:size]
        return size

    def pread(self, size: int, offset: int) -> bytes:
        """So many bytes, or fewer at the end of the volume."""
        data = bytearray(self._inside(offset, size))
        size = self.preadinto(data, offset)
        return bytes(memoryview(data)[:size])

    def pwrite(self, data: Buffer, offset: int, fua: bool = False) -> int:
        """Writes; how many bytes: fewer than there are only at the end of the volume, where nothing can be written any more (ENOSPC).
        fua: returns when they are on stable storage."""
        whole = memoryview(data).cast("B")
        with self._lock:
            size = self._inside(offset, len(whole))
            if size == 0 and len(whole):
                raise _lib.fail(errno.ENOSPC, f"volume {self.name} ends at {self.size}")
            begin, sectors = offset, whole[:size]
            if (offset | size) % SECTOR:
                begin, sectors = self._patched(sectors, offset)
            if size:
                self.run(IO.write(begin, sectors, fua=fua))
        return size

    # The whole sectors in which the data is, with the data in them, and where they begin.
    def _patched(self, view: memoryview, offset: int) -> "tuple[int, memoryview]":
        begin, end = _down(offset), offset + len(view)
        sectors = memoryview(bytearray(_up(end) - begin))
        edges = {place for place, inside in ((begin, offset), (_down(end), end)) if place != inside}
        self.run(*(IO.read(place, sectors[place - begin :][:SECTOR]) for place in edges))
        sectors[offset - begin :][: len(view)] = view
        return begin, sectors

    def _inside(self, offset: int, size: int) -> int:
        if offset < 0 or size < 0:
            raise _lib.fail(errno.EINVAL, "a negative offset or size")
        return max(0, min(size, self.size - offset))

    def discard(self, offset: int, size: int, fua: bool = False) -> None:
        """Whole sectors are of no use any more, and read as zeroes."""
        self.run(IO.discard(offset, size, fua))

    def write_zeroes(self, offset: int, size: int, fua: bool = False) -> None:
        """Whole sectors."""
        self.run(IO.write_zeroes(offset, size, fua))

    def copy(self, offset: int, source: int, size: int, fua: bool = False) -> None:
        """Whole sectors, from `source` to `offset`, which may not overlap."""
        self.run(IO.copy(offset, source, size, fua))

    def flush(self) -> None:
        """Returns when all that was written before, by whomever, is on stable storage."""
        if self._handle is not None:
            self.run(IO.flush())
        elif self.closed:
            raise ValueError("flush of a closed volume")

    # ---- the file ----

    def readable(self) -> bool:
        self._open()
        return True

    writable = seekable = readable

    def tell(self) -> int:
        self._open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with self._lock:
            base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}.get(whence)
            if base is None or base + offset < 0:
                raise _lib.fail(errno.EINVAL, f"seek to {offset} ({whence})")
            self._position = base + offset
            return self._position

    def readinto(self, buffer: Any) -> int:
        with self._lock:
            n = self.preadinto(buffer, self._position)
            self._position += n
        return n

    def readall(self) -> bytes:
        with self._lock:
            return self.read(self._inside(self._position, self.size))

    def write(self, data: Any) -> int:
        with self._lock:
            n = self.pwrite(data, self._position)
            self._position += n
        return n

    def truncate(self, size: Optional[int] = None) -> int:
        """Makes the volume larger, by the command `xseg volume resize`, which refuses to make it smaller: see resize()."""
        return self.resize(self.tell() if size is None else size)

    def resize(self, size: int, force: bool = False) -> int:
        """Changes the volume's size, a multiple of 512. force: also to a smaller one, which loses what is beyond it."""
        with self._lock:
            volumed = self.info()["volumed"]
            Segment(self.segment, owner=self._owner).volume_resize(self.name, size, force=force, volumed=volumed)
            return self.refresh()
