"""_lib - libxseg as ctypes sees it: structures, functions, errors.

Contract: nothing here waits or allocates in the segment but the library's own functions. The rest
of the package calls those through `lib`. It turns a negative errno into an XsegError by check().

Invariants (tests/system/python_test.py compiles a C program that compares both with xseg/volume.h
and xseg/kv.h):
  L1  Each class of STRUCTS has the size and the offsets of the C structure of that name.
  L2  PROTOTYPES are declarations that C accepts beside the header's. The types that ctypes gets
      follow from their text.
"""
import ctypes
import os
import pathlib
import re
from ctypes import POINTER, c_char, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from errno import ENOTCONN
from typing import Optional

SONAME = "libxseg.so.1"
SECTOR = 512
SECOND_NS = 10**9

OP_READ, OP_WRITE, OP_FLUSH, OP_DISCARD, OP_WRITE_ZEROES, OP_COPY = range(6)
IO_FUA = 1

(
    KV_GET,
    KV_EXISTS,
    KV_SCAN,
    KV_BACKUP,
    KV_PUT,
    KV_DELETE,
    KV_APPEND,
    KV_PREPEND,
    KV_INCR,
    KV_DECR,
    KV_TOUCH,
    KV_BATCH,
    KV_FLUSH,
    KV_BEGIN,
    KV_PART,
    KV_COMMIT,
    KV_ABORT,
    KV_OPEN,
    KV_PIECE,
    KV_CLOSE,
    KV_DELETE_ALL,
) = range(21)
KV_ALWAYS, KV_IF_ABSENT, KV_IF_PRESENT, KV_IF_VERSION = range(4)
KV_FORCE, KV_ONCE = 1, 8
UNKNOWN = 2**64 - 1  # XSEG_KV_UNKNOWN


class XsegError(OSError):
    """What the library or the command `xseg` refused or failed to do.

    errno: the library's; of a command, one that stands for its exit code.
    strerror: one line for a person. code: the exit code of the command, None for the library.
    """

    code: Optional[int] = None


# ---- structures ----------------------------------------------------------------------------


class Error(ctypes.Structure):
    _fields_ = [("text", c_char * 320)]


class Volume(ctypes.Structure):
    """Opaque."""


class Queue(ctypes.Structure):
    """Opaque."""


class VolumeParams(ctypes.Structure):
    _fields_ = [
        ("segment", ctypes.c_char_p),
        ("attached", c_void_p),
        ("volume", ctypes.c_char_p),
        ("volumed", ctypes.c_char_p),
        ("timeout_ns", c_uint64),
        ("gone_ns", c_uint64),
        ("owner", ctypes.c_char_p),
    ]


class VolumeInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("volumed", c_char * 64),
        ("id", c_uint32),
        ("generation", c_uint32),
        ("size_bytes", c_uint64),
        ("object_bytes", c_uint32),
        ("sector_bytes", c_uint32),
        ("page_bytes", c_uint32),
    ]


class QueueParams(ctypes.Structure):
    _fields_ = [("depth", c_uint32), ("copy_bytes", c_uint32), ("direct", c_uint32)]


class _Own(ctypes.Structure):
    _fields_ = [
        ("next", c_void_p),
        ("slot", c_void_p),
        ("begun", c_uint64),
        ("in_piece", c_uint64),
        ("piece", c_uint32),
        ("out", c_uint32),
    ]


class Io(ctypes.Structure):
    _fields_ = [
        ("op", c_uint32),
        ("flags", c_uint32),
        ("offset", c_uint64),
        ("size", c_uint64),
        ("from", c_uint64),
        ("buf", c_void_p),
        ("iov", c_void_p),
        ("nr_iov", c_uint32),
        ("state", c_int32),
        ("cookie", c_void_p),
        ("result", c_int64),
        ("own", _Own),
    ]


class Store(ctypes.Structure):
    """Opaque."""


class StoreQueue(ctypes.Structure):
    """Opaque."""


class StoreParams(ctypes.Structure):
    _fields_ = [
        ("segment", ctypes.c_char_p),
        ("attached", c_void_p),
        ("kvd", ctypes.c_char_p),
        ("timeout_ns", c_uint64),
        ("gone_ns", c_uint64),
        ("owner", ctypes.c_char_p),
    ]


class StoreInfo(ctypes.Structure):
    _fields_ = [
        ("kvd", c_char * 64),
        ("id", c_uint32),
        ("time_s", c_uint32),
        ("keys", c_uint64),
        ("keys_max", c_uint64),
        ("live_bytes", c_uint64),
        ("log_bytes", c_uint64),
        ("size_bytes", c_uint64),
        ("value_max_bytes", c_uint64),
        ("piece_bytes", c_uint64),
    ]


class StoreQueueParams(ctypes.Structure):
    _fields_ = [("depth", c_uint32), ("room_bytes", c_uint32), ("large_rooms", c_uint32)]


class StoreStream(ctypes.Structure):
    """Opaque."""


class Item(ctypes.Structure):
    _fields_ = [
        ("key", c_void_p),
        ("value", c_void_p),
        ("key_bytes", c_uint32),
        ("op", c_uint32),
        ("value_bytes", c_uint64),
        ("condition", c_uint32),
        ("ttl_s", c_uint32),
        ("expiry", c_uint32),
        ("client", c_uint32),
        ("version", c_uint64),
        ("number", c_uint64),
        ("result", c_int32),
    ]


class _StoreOwn(ctypes.Structure):
    _fields_ = [
        ("next", c_void_p),
        ("slot", c_void_p),
        ("whole", c_void_p),
        ("zone", c_uint64),
        ("place", c_uint64),
        ("total", c_uint64),
        ("pages", c_uint32),
        ("asked", c_uint32),
        ("looks", c_uint32),
        ("tries", c_uint32),
        ("step", c_uint32),
    ]


class StoreIo(ctypes.Structure):
    _fields_ = [
        ("op", c_uint32),
        ("flags", c_uint32),
        ("item", Item),
        ("batch", POINTER(Item)),
        ("nr_batch", c_uint32),
        ("state", c_int32),
        ("cursor", c_uint64),
        ("stream", POINTER(StoreStream)),
        ("offset", c_uint64),
        ("cookie", c_void_p),
        ("result", c_int64),
        ("own", _StoreOwn),
    ]


class Entry(ctypes.Structure):
    _fields_ = [
        ("key", c_void_p),
        ("value_bytes", c_uint64),
        ("version", c_uint64),
        ("key_bytes", c_uint32),
        ("expiry", c_uint32),
        ("client", c_uint32),
    ]


STRUCTS = {
    "xseg_error": Error,
    "xseg_volume": Volume,
    "xseg_queue": Queue,
    "xseg_volume_params": VolumeParams,
    "xseg_volume_info": VolumeInfo,
    "xseg_queue_params": QueueParams,
    "xseg_io": Io,
    "xseg_kv": Store,
    "xseg_kv_queue": StoreQueue,
    "xseg_kv_stream": StoreStream,
    "xseg_kv_params": StoreParams,
    "xseg_kv_info": StoreInfo,
    "xseg_kv_queue_params": StoreQueueParams,
    "xseg_kv_item": Item,
    "xseg_kv_io": StoreIo,
    "xseg_kv_entry": Entry,
}

# ---- functions -----------------------------------------------------------------------------

PROTOTYPES = """
int xseg_volume_open(const struct xseg_volume_params *, struct xseg_volume **, struct xseg_error *);
void xseg_volume_close(struct xseg_volume *);
void xseg_volume_get_info(struct xseg_volume *, struct xseg_volume_info *);
int xseg_volume_refresh(struct xseg_volume *);
int xseg_queue_create(struct xseg_volume *, const struct xseg_queue_params *, struct xseg_queue **, struct xseg_error *);
uint64_t xseg_queue_memory(const struct xseg_queue_params *);
void xseg_queue_destroy(struct xseg_queue *);
int xseg_queue_submit(struct xseg_queue *, struct xseg_io *);
void xseg_queue_kick(struct xseg_queue *);
uint32_t xseg_queue_poll(struct xseg_queue *, struct xseg_io **, uint32_t);
uint32_t xseg_queue_wait(struct xseg_queue *, struct xseg_io **, uint32_t, uint64_t);
int xseg_queue_fd(struct xseg_queue *);
int xseg_queue_arm(struct xseg_queue *);
int xseg_kv_open(const struct xseg_kv_params *, struct xseg_kv **, struct xseg_error *);
void xseg_kv_close(struct xseg_kv *);
int xseg_kv_get_info(struct xseg_kv *, struct xseg_kv_info *);
int xseg_kv_queue_create(struct xseg_kv *, const struct xseg_kv_queue_params *, struct xseg_kv_queue **, struct xseg_error *);
void xseg_kv_queue_destroy(struct xseg_kv_queue *);
int xseg_kv_submit(struct xseg_kv_queue *, struct xseg_kv_io *);
uint32_t xseg_kv_wait(struct xseg_kv_queue *, struct xseg_kv_io **, uint32_t, uint64_t);
int xseg_kv_is_large(const struct xseg_kv *, uint32_t, uint64_t);
struct xseg_kv_stream *xseg_kv_stream_create(struct xseg_kv_queue *);
void xseg_kv_stream_destroy(struct xseg_kv_stream *);
void xseg_kv_stream_item(const struct xseg_kv_stream *, struct xseg_kv_item *);
uint64_t xseg_kv_stream_piece(const struct xseg_kv_stream *);
int xseg_kv_next(const struct xseg_kv_io *, size_t *, struct xseg_kv_entry *);
"""

_SCALARS = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "uint32_t": c_uint32, "uint64_t": c_uint64, "void": None}


def _type(text: str):
    """The ctypes type of a C type, such as `const struct xseg_io **`."""
    name = re.sub(r"\bconst\b|\*", "", text).split()
    found = STRUCTS[name[1]] if name[0] == "struct" else _SCALARS[name[0]]
    for _ in range(text.count("*")):
        found = POINTER(found)
    return found


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for result, name, args in re.findall(r"(struct \w+ \*|\w+ )(\w+)\((.*)\);", PROTOTYPES):
        function = getattr(library, name)
        function.restype = _type(result)
        function.argtypes = [_type(arg) for arg in args.split(",")]
    return library


def _load() -> ctypes.CDLL:
    """$XSEG_LIBRARY; that of the same installation, or of the tree's build; or as the system finds it."""
    above = pathlib.Path(__file__).resolve().parents[3]
    places = [above / SONAME, above / "build" / "lib" / SONAME]
    given = os.environ.get("XSEG_LIBRARY")
    found = given or next((str(p) for p in places if p.exists()), SONAME)
    return _declare(ctypes.CDLL(found))


lib = _load()

# ---- errors --------------------------------------------------------------------------------


def fail(errno: int, text: str) -> XsegError:
    return XsegError(errno, text)


_NEXT = {
    ENOTCONN: "; nobody serves it any more: start the stack with 'xseg up STACK.conf', and open it anew",
}


def check(rc: int, what: str, err: Optional[Error] = None) -> int:
    """rc, or an error of it if it is negative: with the library's words, or the system's after `what`."""
    if rc >= 0:
        return rc
    said = err.text.decode(errors="replace") if err else ""
    raise fail(-rc, said or f"{what}: {os.strerror(-rc)}{_NEXT.get(-rc, '')}")
