"""xseg.aio - a queue whose I/Os are awaited: for programs of asyncio.

    async with AsyncQueue(volume.queue()) as queue:
        await asyncio.gather(*(queue.run(IO.write(n << 20, data)) for n in range(64)))

Contract: the loop's thread, to which the queue belongs from then on. I/Os that are run in one turn
of the loop are sent at once.
"""
import asyncio
from typing import Any, Dict

from ._queue import IO, Queue


class AsyncQueue:
    def __init__(self, queue: Queue) -> None:
        """To be called while the loop runs. The queue is closed with this one."""
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._waiting: Dict[IO, "asyncio.Future[IO]"] = {}
        self._fd = queue.fileno()
        self._pump_is_due = False
        self._loop.add_reader(self._fd, self._pump)

    async def run(self, io: IO) -> IO:
        """Submits it; returns it when it is back, or raises XsegError. If this is cancelled the I/O is done all the same, or not."""
        self._queue.submit(io)
        self._waiting[io] = done = self._loop.create_future()
        self._pump_soon()
        return await done

    def _pump_soon(self) -> None:
        if not self._pump_is_due:
            self._pump_is_due = True
            self._loop.call_soon(self._pump)

    # Told by the descriptor, or due: looks what is back, and arms the queue for the rest.
    def _pump(self) -> None:
        self._pump_is_due = False
        if self._fd < 0:
            return
        for io in self._queue.poll():
            done = self._waiting.pop(io)
            if not done.done():
                _settle(done, io)
        if self._waiting and not self._queue.arm():
            self._pump_soon()

    def close(self) -> None:
        """Cancels what is awaited, and closes the queue."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1
            self._queue.close()
        for done in self._waiting.values():
            done.cancel()
        self._waiting.clear()

    async def __aenter__(self) -> "AsyncQueue":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()


def _settle(done: "asyncio.Future[IO]", io: IO) -> None:
    try:
        done.set_result(io.check())
    except OSError as error:
        done.set_exception(error)
