"""xseg - volumes and values of xseg for Python, and its command as functions: see python3-xseg(3).

    with xseg.Volume("disk", segment="hour") as disk:      # a file
        disk.pwrite(b"hello", 1000)
        with disk.queue() as queue:                        # many I/Os at a time
            queue.submit(*(xseg.IO.read(n * 4096, 4096) for n in range(100)))
            while queue:
                for io in queue.wait():
                    use(io.check().data)
    with xseg.KV(segment="hour") as kv:                    # a mapping from bytes to bytes
        kv[b"a"] = b"1"
        kv.put(b"b", b"2", ttl=60)
    xseg.Segment("hour").cache_status("cached")["dirty_bytes"]

xseg.aio has queues for asyncio. Needs nothing but Python 3.9 and libxseg.so.
"""
from ._admin import Segment
from ._kv import KV, Value
from ._lib import SECTOR, XsegError
from ._queue import IO, Queue
from ._volume import Volume

__all__ = ["IO", "KV", "Queue", "SECTOR", "Segment", "Value", "Volume", "XsegError"]
