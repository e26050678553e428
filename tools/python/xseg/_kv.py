"""_kv - a store of values by key, as a mapping.

Contract: a KV may be called by any thread, one at a time; a thread that calls while another waits in
it, waits as well. Threads that shall work side by side have a KV each. A wait lets other threads of
Python run, and lets signals through at least ten times a second.

Invariants:
  K1  The memory of an operation that is out is in _out, until the library has given it back. So an
      exception of a signal's handler in the middle of a wait leaves no memory that C still uses.
  K2  The C queue is touched under _lock alone, and not after it is None.
"""
import ctypes
import errno
import io as _io
import os
from collections.abc import MutableMapping
from ctypes import POINTER, byref
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _lib
from ._admin import segment_name
from ._lib import lib
from ._queue import new_lock
from ._volume import _name, _ns

Key = Union[bytes, str]

_SLICE_NS = _lib.SECOND_NS // 10
_FIRST_BYTES = 4096
_SMALL_BYTES = 256 << 10
_SCAN_BYTES = 256 << 10


class Value(NamedTuple):
    """A value, and what is known of it. expiry: seconds of kvd's clock, 0: never. client: a number that was put with it."""

    value: bytes
    version: int
    expiry: int
    client: int


def _bytes(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


def _pointer(data: bytes) -> ctypes.c_void_p:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)


class _Stream:
    """A stream of the library. What is out keeps it (K1)."""

    def __init__(self, kv: "KV") -> None:
        with kv._alone():
            self.handle = lib.xseg_kv_stream_create(kv._open())
        if not self.handle:
            raise MemoryError("a stream")

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            lib.xseg_kv_stream_destroy(self.handle)


class _File(_io.RawIOBase):
    """What readers and writers share: operations of a stream of one key."""

    def __init__(self, kv: "KV", key: Key) -> None:
        super().__init__()
        self._kv, self._key, self._stream = kv, _bytes(key), _Stream(kv)
        self.name = key

    def _do(self, op: int, *, flags: int = 0, offset: int = 0, room: Any = None, size: int = 0, **item: int) -> _lib.StoreIo:
        io = self._kv._io(op, self._key, None, **item)
        io.stream, io.flags, io.offset = self._stream.handle, flags, offset
        if room is not None:
            io.item.value, io.item.value_bytes = ctypes.addressof(room), size
        rc = self._kv._run(io, self._key, room, self._stream)
        if rc == -errno.ENOENT:
            raise KeyError(self.name)
        _lib.check(rc, f"key {self._key[:60]!r}")
        return io


class _Reader(_File):
    """Reads one version of a value, whatever is put meanwhile."""

    def __init__(self, kv: "KV", key: Key) -> None:
        super().__init__(kv, key)
        self._at, self._from = 0, -1
        io = self._do(_lib.KV_OPEN)
        self.size, self.version = io.result, io.item.version
        self.expiry, self.client = io.item.expiry, io.item.client
        self._piece = lib.xseg_kv_stream_piece(self._stream.handle)
        self._room = ctypes.create_string_buffer(min(self._piece, max(1, self.size)))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if at < 0:
            raise ValueError("a place before the value")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("a read of a closed value")
        if self._at >= self.size:
            return 0
        start = self._at - self._at % self._piece
        if start != self._from:
            self._from = -1
            self._do(_lib.KV_PIECE, offset=start, room=self._room, size=len(self._room))
            self._from = start
        here = min(self._piece, self.size - start) - (self._at - start)
        view = memoryview(buffer).cast("B")
        n = min(here, len(view))
        view[:n] = memoryview(self._room).cast("B")[self._at - start : self._at - start + n]
        self._at += n
        return n

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._kv._q is not None and hasattr(self, "size"):
                self._do(_lib.KV_CLOSE)
        finally:
            super().close()


class _Writer(_File):
    """Puts a value that is written. It is there when the writer is closed, and not before. After an exception in its `with`, nothing is put."""

    def __init__(self, kv: "KV", key: Key, options: Dict[str, Any]) -> None:
        super().__init__(kv, key)
        self._options, self._at, self._begun = options, 0, False
        self._done: Optional[int] = None
        self._piece = lib.xseg_kv_stream_piece(self._stream.handle)
        self._room, self._used = ctypes.create_string_buffer(self._piece), 0

    @property
    def version(self) -> Optional[int]:
        """The version that the value got, after the close."""
        return self._done

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at + self._used

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("a write to a closed value")
        view, done = memoryview(data).cast("B"), 0
        while done < len(view):
            n = min(len(view) - done, self._piece - self._used)
            memoryview(self._room).cast("B")[self._used : self._used + n] = view[done : done + n]
            self._used, done = self._used + n, done + n
            if self._used == self._piece:
                self._part()
        return done

    def _part(self) -> None:
        if not self._begun:
            self._do(_lib.KV_BEGIN, value_bytes=_lib.UNKNOWN)
            self._begun = True
        self._do(_lib.KV_PART, offset=self._at, room=self._room, size=self._used)
        self._at, self._used = self._at + self._used, 0

    def _commit(self) -> None:
        options = dict(self._options)
        force = options.pop("force")
        if not self._begun:
            self._done = self._kv.put(self._key, self._room.raw[: self._used], **self._options)
            return
        if self._used:
            self._part()
        condition = _lib.KV_ALWAYS
        if options.pop("if_absent"):
            condition = _lib.KV_IF_ABSENT
        version = options.pop("version")
        if version is not None:
            condition = _lib.KV_IF_VERSION
        io = self._do(
            _lib.KV_COMMIT,
            flags=_lib.KV_FORCE if force else 0,
            value_bytes=self._at,
            condition=condition,
            version=version or 0,
            ttl_s=options["ttl"],
            expiry=options["expiry"],
            client=options["client"],
        )
        self._begun, self._done = False, io.item.version

    def abort(self) -> None:
        """Nothing is put."""
        if self.closed:
            return
        try:
            if self._begun and self._kv._q is not None:
                self._begun = False
                self._do(_lib.KV_ABORT)
        finally:
            super().close()

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._commit()
        finally:
            self.abort()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # one that was never closed is not known to be whole
        if hasattr(self, "_begun"):
            self.abort()


class KV(MutableMapping):
    """The values of a kvd of a segment. Keys are bytes, or str, which is UTF-8; values are bytes.

    kvd: its name; without it the segment's only one. segment, timeout, gone, owner: as of Volume.

    Errors are XsegError, with the errno of libxseg(3), but for a key that is not there, which is a KeyError of the mapping's functions and None of get().
    A process below that is killed and started again is a pause.
    """

    # It is itself, whatever values it has.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    _q: Optional["ctypes._Pointer"] = None
    _handle: Optional["ctypes._Pointer"] = None

    def __init__(
        self,
        kvd: Optional[str] = None,
        segment: Optional[str] = None,
        *,
        timeout: float = 0,
        gone: float = 0,
        owner: Optional[str] = None,
    ) -> None:
        self._lock, self._forked = new_lock(self), False
        self._out: Dict[int, Tuple[Any, ...]] = {}
        self._size = _FIRST_BYTES
        self.segment = segment_name(segment)
        owner = owner or os.environ.get("XSEG_OWNER") or None
        params = _lib.StoreParams(
            segment=_name(self.segment),
            kvd=None if kvd is None else _name(kvd),
            timeout_ns=_ns("timeout", timeout),
            gone_ns=_ns("gone", gone),
            owner=None if owner is None else owner.encode(),
        )
        handle, q, err = POINTER(_lib.Store)(), POINTER(_lib.StoreQueue)(), _lib.Error()
        what = f"kvd {kvd}" if kvd else "kvd"
        _lib.check(lib.xseg_kv_open(byref(params), byref(handle), byref(err)), what, err)
        self._handle = handle
        queue = _lib.StoreQueueParams(4, 0, 2)
        _lib.check(lib.xseg_kv_queue_create(handle, byref(queue), byref(q), byref(err)), what, err)
        self._q = q

    def close(self) -> None:
        """Gives all back to the segment. Does not flush."""
        with self._alone():
            q, self._q = self._q, None
            handle, self._handle = self._handle, None
            if q is not None:
                lib.xseg_kv_queue_destroy(q)
            if handle is not None:
                lib.xseg_kv_close(handle)
            self._out.clear()

    def __enter__(self) -> "KV":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def _alone(self) -> Any:
        if self._lock._is_owned():
            raise RuntimeError("a signal handler calls the store that it has interrupted")
        return self._lock

    def _open(self) -> "ctypes._Pointer":
        if self._q is None:
            raise ValueError("an operation on a closed store")
        if self._forked:
            raise _lib.fail(errno.ENOTCONN, "the store was opened before this process was forked")
        return self._q

    # ---- operations ----

    # K1. `pins` are objects whose memory the operation uses.
    def _run(self, io: _lib.StoreIo, *pins: Any) -> int:
        at = ctypes.addressof(io)
        done = POINTER(_lib.StoreIo)()
        with self._alone():
            q = self._open()
            self._out[at] = (io, pins)
            rc = lib.xseg_kv_submit(q, byref(io))
            if rc < 0:
                del self._out[at]
                return rc
            while at in self._out:
                if lib.xseg_kv_wait(q, byref(done), 1, _SLICE_NS):
                    self._out.pop(ctypes.addressof(done.contents), None)
        return io.result

    def _io(self, op: int, key: bytes, value: Optional[bytes] = None, **item: int) -> _lib.StoreIo:
        io = _lib.StoreIo(op=op)
        io.item = _lib.Item(key=_pointer(key), key_bytes=len(key), **item)
        if value is not None:
            io.item.value, io.item.value_bytes = _pointer(value), len(value)
        return io

    def _change(
        self,
        op: int,
        key: Key,
        value: Optional[bytes] = None,
        version: Optional[int] = None,
        force: bool = False,
        condition: int = _lib.KV_ALWAYS,
        **item: int,
    ) -> _lib.StoreIo:
        name = _bytes(key)
        if version is not None:
            condition = _lib.KV_IF_VERSION
        io = self._io(op, name, value, condition=condition, version=version or 0, **item)
        io.flags = _lib.KV_FORCE if force else 0
        rc = self._run(io, name, value)
        if rc == -errno.ENOENT:
            raise KeyError(key)
        _lib.check(rc, f"key {name[:60]!r}")
        return io

    # ---- values ----

    def value(self, key: Key) -> Value:
        """The value with its version, expiry and client flags."""
        name, size = _bytes(key), self._size
        while True:
            room = ctypes.create_string_buffer(size)
            io = self._io(_lib.KV_GET, name)
            io.item.value, io.item.value_bytes = ctypes.addressof(room), size
            rc = self._run(io, name, room)
            if rc == -errno.ENOENT:
                raise KeyError(key)
            _lib.check(rc, f"key {name[:60]!r}")
            if rc <= io.item.value_bytes:
                return Value(room.raw[:rc], io.item.version, io.item.expiry, io.item.client)
            size = rc
            if rc <= _SMALL_BYTES:
                self._size = rc

    def open(
        self,
        key: Key,
        mode: str = "rb",
        *,
        ttl: int = 0,
        expiry: int = 0,
        client: int = 0,
        if_absent: bool = False,
        version: Optional[int] = None,
        force: bool = False,
    ) -> Any:
        """The value as a file, of which a piece of a MiB or less is in memory at a time.

        "rb": reads, at any place, the version that is there now. The file has size, version, expiry and client.
        "wb": what is written is put when the file is closed, with the options of put(). abort(), and an exception in its `with`, put nothing.
        """
        if mode == "rb":
            return _Reader(self, key)
        if mode != "wb":
            raise ValueError('a mode is "rb" or "wb"')
        options = dict(ttl=ttl, expiry=expiry, client=client, if_absent=if_absent, version=version, force=force)
        return _Writer(self, key, options)

    def put(
        self,
        key: Key,
        value: Any,
        *,
        ttl: int = 0,
        expiry: int = 0,
        client: int = 0,
        if_absent: bool = False,
        version: Optional[int] = None,
        force: bool = False,
    ) -> int:
        """Puts a value; returns its version. ttl: it expires after so many seconds. expiry: at that second of kvd's clock. client: a number of 32 bits that
        is kept with it. if_absent: EEXIST if the key is there; version: EEXIST unless the key has that one. force: returns when it is on stable storage."""
        condition = _lib.KV_IF_ABSENT if if_absent else _lib.KV_ALWAYS
        return self._change(
            _lib.KV_PUT,
            key,
            bytes(value),
            version,
            force,
            condition,
            ttl_s=ttl,
            expiry=expiry,
            client=client,
        ).item.version

    def delete(self, key: Key, *, version: Optional[int] = None, force: bool = False) -> None:
        self._change(_lib.KV_DELETE, key, None, version, force)

    def clear(self, *, ttl: int = 0, force: bool = False) -> None:
        """Deletes all values in one step. ttl: those that are there in so many seconds."""
        io = _lib.StoreIo(op=_lib.KV_DELETE_ALL, flags=_lib.KV_FORCE if force else 0)
        io.item.ttl_s = ttl
        _lib.check(self._run(io), "delete of all values")

    def append(self, key: Key, value: bytes) -> int:
        """Adds to the end of the value that is there; returns its version."""
        return self._change(_lib.KV_APPEND, key, bytes(value)).item.version

    def prepend(self, key: Key, value: bytes) -> int:
        return self._change(_lib.KV_PREPEND, key, bytes(value)).item.version

    def incr(self, key: Key, number: int = 1) -> int:
        """Adds to the value, which is a decimal number; returns what it is then, modulo 2^64."""
        return self._change(_lib.KV_INCR, key, number=number).item.number

    def decr(self, key: Key, number: int = 1) -> int:
        """Takes away from it, down to 0."""
        return self._change(_lib.KV_DECR, key, number=number).item.number

    def touch(self, key: Key, ttl: int = 0, expiry: int = 0) -> None:
        """Another expiry, and nothing else; without any: never."""
        self._change(_lib.KV_TOUCH, key, ttl_s=ttl, expiry=expiry)

    def batch(
        self, puts: Mapping[Key, bytes], deletes: Iterable[Key] = (), *, force: bool = False
    ) -> None:
        """All of these changes are done, or none: up to 1000, of 1 MiB in all."""
        pins: List[bytes] = []
        changes = [(_lib.KV_PUT, key, bytes(value)) for key, value in puts.items()]
        changes += [(_lib.KV_DELETE, key, b"") for key in deletes]
        items = (_lib.Item * max(1, len(changes)))()
        for item, (op, key, value) in zip(items, changes):
            name = _bytes(key)
            pins += [name, value]
            item.op, item.key, item.key_bytes = op, _pointer(name), len(name)
            item.value, item.value_bytes = _pointer(value), len(value)
        if changes:
            io = _lib.StoreIo(op=_lib.KV_BATCH, batch=items, nr_batch=len(changes))
            io.flags = _lib.KV_FORCE if force else 0
            _lib.check(self._run(io, items, *pins), f"batch of {len(changes)} changes")

    def flush(self) -> None:
        """Returns when all that was changed before, by whomever, is on stable storage."""
        _lib.check(self._run(_lib.StoreIo(op=_lib.KV_FLUSH)), "flush")

    # ---- the mapping ----

    def get(self, key: Key, default: Any = None) -> Any:
        try:
            return self.value(key).value
        except KeyError:
            return default

    def __getitem__(self, key: Key) -> bytes:
        return self.value(key).value

    def __setitem__(self, key: Key, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Key) -> None:
        self.delete(key)

    def __contains__(self, key: Any) -> bool:
        name = _bytes(key)
        rc = self._run(self._io(_lib.KV_EXISTS, name), name)
        if rc != -errno.ENOENT:
            _lib.check(rc, f"key {name[:60]!r}")
        return rc >= 0

    def __len__(self) -> int:
        """How many keys there are, with those that have expired and are not yet removed."""
        return self.info()["keys"]

    def __iter__(self) -> Iterator[bytes]:
        return self.scan()

    def scan(self, prefix: Key = b"") -> Iterator[bytes]:
        """The keys with that prefix, as bytes, in an order of kvd's own. Each that was there all the time comes exactly once."""
        name, cursor = _bytes(prefix), 0
        while True:
            room = ctypes.create_string_buffer(_SCAN_BYTES)
            io = self._io(_lib.KV_SCAN, name)
            io.cursor, io.flags = cursor, _lib.KV_ONCE
            io.item.value, io.item.value_bytes = ctypes.addressof(room), _SCAN_BYTES
            _lib.check(self._run(io, name, room), "scan")
            at, entry = ctypes.c_size_t(0), _lib.Entry()
            while lib.xseg_kv_next(byref(io), byref(at), byref(entry)):
                yield ctypes.string_at(entry.key, entry.key_bytes)
            cursor = io.cursor
            if not cursor:
                return

    def info(self) -> Dict[str, Any]:
        """kvd id time_s keys keys_max live_bytes log_bytes size_bytes value_max_bytes"""
        info = _lib.StoreInfo()
        with self._alone():
            self._open()
            _lib.check(lib.xseg_kv_get_info(self._handle, byref(info)), "kvd")
        values = {key: getattr(info, key) for key, _ in info._fields_}
        return {
            key: value.decode() if isinstance(value, bytes) else value
            for key, value in values.items()
        }
