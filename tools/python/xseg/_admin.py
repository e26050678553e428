"""_admin - the command `xseg` as functions and dicts.

A Segment runs the command with --json. So one place knows how peers are asked, started and plugged,
and which commands may be refused. The fields are those of xseg(1). An error is an XsegError with
the line that the command wrote, its exit code as `code`, and an errno that stands for that.

Contract: any thread. Each function waits for a process.
"""
import errno
import json
import os
import subprocess
from typing import Any, Dict, List, Optional, Union

from . import _lib

# Failed; wrong usage, key or size; timed out or interrupted, the work goes on; refused.
_ERRNO = {1: errno.EIO, 2: errno.EINVAL, 3: errno.ETIMEDOUT, 4: errno.EBUSY}

Value = Union[str, int, float]


def segment_name(name: Optional[str] = None) -> str:
    """Which segment is meant, as for the command: the one named, that of $XSEG_SEGMENT, or xseg."""
    return os.environ.get("XSEG_SEGMENT") or "xseg" if name is None else name


class Segment:
    """A segment by its name. Takes nothing of it. command: the program, `xseg` of $PATH without it. owner: the user whose segment is let in
    besides the caller's and root's; without it $XSEG_OWNER."""

    def __init__(
        self, name: Optional[str] = None, command: str = "xseg", *, owner: Optional[str] = None
    ) -> None:
        self.name = segment_name(name)
        self.command = command
        self.owner = owner

    def run(
        self,
        command: str,
        *words: Value,
        timeout: Optional[float] = None,
        **options: Union[Value, bool, None],
    ) -> Any:
        """Runs a command, such as "volume info" or "volume", "info", with words that are no options; returns what it printed, or None; a list of several
        values, as `stat` with a count prints them. Options are the command's, with _ for -: size=4096 is --size=4096, force=True is --force, and what is
        None or False is left out. timeout: seconds until it fails with ETIMEDOUT; what was asked for goes on."""
        all_words = [*command.split(), *map(str, words)]
        like_option = next((n for n, w in enumerate(all_words) if w[:1] == "-"), len(all_words))
        line = [self.command, "-s", self.name, "--json", "--quiet", *all_words[:like_option]]
        if self.owner:
            line.insert(1, f"--owner={self.owner}")
        if timeout is not None:
            line.append(f"--timeout={max(1, round(timeout * 1000))}ms")
        for key, value in options.items():
            if value is not None and value is not False:
                line.append(f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}"))
        done = subprocess.run(
            [*line, "--", *all_words[like_option:]],
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            raise self._error(done)
        values = _values(done.stdout.strip())
        return values if len(values) > 1 else values[0] if values else None

    @staticmethod
    def _said(line: str) -> str:
        """The line that xseg would print without --json."""
        try:
            said = json.loads(line)["error"]
        except (ValueError, KeyError, TypeError):
            return line
        why = f": {said['why']}" if said["why"] else ""
        return f"xseg: {said['what']}{why}" + (f"; {said['next']}" if said["next"] else "")

    @staticmethod
    def _error(done: "subprocess.CompletedProcess[str]") -> _lib.XsegError:
        lines = done.stderr.strip().splitlines() or [f"xseg ended with {done.returncode}"]
        error = _lib.fail(_ERRNO.get(done.returncode, errno.EIO), Segment._said(lines[-1]))
        error.code = done.returncode
        return error

    # ---- what it is ----

    def info(self) -> Dict[str, Any]:
        return self.run("info")

    def status(self) -> Dict[str, Any]:
        return self.run("status")

    def check(self, fix: bool = False) -> Dict[str, Any]:
        """Whether every invariant of the segment holds: ok, problems, free_pages, free_requests, idle_requests. Raises when a problem is left."""
        return self.run("check", fix=fix)

    def stat(self) -> Dict[str, Any]:
        """What peers, caches and volumes have done since the beginning."""
        return self.run("stat")

    # ---- stacks and peers ----

    def up(self, stack: str) -> Any:
        """Starts the stack of that file; returns when all peers serve."""
        return self.run("up", stack)

    def down(self, force: bool = False, timeout: Optional[float] = None) -> Any:
        return self.run("down", force=force, timeout=timeout)

    def peers(self) -> List[Dict[str, Any]]:
        return self.run("peer list")

    def peer(self, name: str) -> Dict[str, Any]:
        """The one of that name; raises XsegError (ENOENT) where there is none."""
        for peer in self.peers():
            if peer["name"] == name:
                return peer
        raise _lib.fail(errno.ENOENT, f"segment '{self.name}' has no peer '{name}'")

    def peer_start(self, name: str) -> Any:
        return self.run("peer start", name)

    def peer_stop(self, name: str, force: bool = False, timeout: Optional[float] = None) -> Any:
        return self.run("peer stop", name, force=force, timeout=timeout)

    def peer_kill(self, name: str, force: bool = False) -> Any:
        return self.run("peer kill", name, force=force)

    def peer_set(self, name: str, **settings: Value) -> Any:
        return self.run("peer set", name, *_settings(settings))

    # ---- volumes ----

    def volumes(self, volumed: Optional[str] = None) -> List[Dict[str, Any]]:
        return self.run("volume list", volumed=volumed)

    def volume_info(self, volume: str, volumed: Optional[str] = None) -> Dict[str, Any]:
        return self.run("volume info", volume, volumed=volumed)

    def volume_create(self, volume: str, size: Value, volumed: Optional[str] = None) -> Any:
        return self.run("volume create", volume, size=size, volumed=volumed)

    def volume_resize(
        self, volume: str, size: Value, force: bool = False, volumed: Optional[str] = None
    ) -> Any:
        return self.run("volume resize", volume, size=size, force=force, volumed=volumed)

    def volume_remove(
        self,
        volume: str,
        volumed: Optional[str] = None,
        timeout: Optional[float] = None,
        force: bool = False,
    ) -> Any:
        return self.run("volume remove", volume, force=force, volumed=volumed, timeout=timeout)

    def volume_flush(self, volume: str, volumed: Optional[str] = None) -> Any:
        return self.run("volume flush", volume, volumed=volumed)

    # ---- caches ----

    def cache_status(self, cache: Optional[str] = None, volume: Optional[str] = None) -> Any:
        """Policy, state and counters; without a name those of the only cache."""
        return self.run("cache status", *([cache] if cache else []), volume=volume)

    def cache_get(self, cache: str, volume: Optional[str] = None) -> Dict[str, Any]:
        return self.run("cache get", cache, volume=volume)

    def cache_set(self, cache: str, volume: Optional[str] = None, **settings: Value) -> Any:
        """cache_set("cached", policy="write-through", dirty_high=60)"""
        return self.run("cache set", cache, *_settings(settings), volume=volume)

    def cache_flush(
        self, cache: str, volume: Optional[str] = None, timeout: Optional[float] = None
    ) -> Any:
        return self.run("cache flush", cache, volume=volume, timeout=timeout)

    def cache_drop(self, cache: str) -> Any:
        return self.run("cache drop", cache)

    def plug(self, cache: str, above: str, below: str, timeout: Optional[float] = None) -> Any:
        """Puts a cache between peers, while I/O runs: it sends to `above`, and `below` sends to it.

        Several peers below have a comma between their names.
        """
        return self.run("plug", cache, above=above, below=below, timeout=timeout)

    def unplug(self, cache: str, cancel: bool = False, timeout: Optional[float] = None) -> Any:
        """Flushes the cache, and takes it out. After ETIMEDOUT it goes on; cancel=True undoes that."""
        return self.run("unplug", cache, cancel=cancel, timeout=timeout)


# One JSON value behind the other.
def _values(text: str) -> List[Any]:
    values: List[Any] = []
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


def _settings(settings: Dict[str, Value]) -> List[str]:
    return [f"{key}={value}" for key, value in settings.items()]
