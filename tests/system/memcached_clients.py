#!/usr/bin/env python3
"""memcached_clients.py - clients of others against the gateway: pymemcache and pylibmc.

usage: memcached_clients.py pymemcache|pylibmc SOCKET PORT

Each does what a program does: sets, gets, counts, compares, many keys at a time, large values, keys
that are absent. Ends with 0 if every answer was right.

Each client is a process, for pylibmc 1.6.3 has a race between threads. Its gets() frees the key's
copy, lets other threads run, and then sends the key. One in a thousand asks for another key, also of
Debian's memcached.
"""
import multiprocessing
import os
import sys

KIND, PATH, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
BIG = os.urandom(500000)


def pymemcache_works(address, name):
    from pymemcache.client.base import Client
    from pymemcache.exceptions import MemcacheClientError, MemcacheServerError
    c = Client(address, timeout=60, default_noreply=False)
    assert c.version().startswith(b"1.6.")
    assert c.set(name + "a", b"hello") and c.get(name + "a") == b"hello"
    assert c.get(name + "absent") is None and c.get(name + "absent", 5) == 5
    assert not c.add(name + "a", b"x") and c.add(name + "b", b"x") and not c.replace(name + "none", b"x")
    assert c.append(name + "a", b" world") and c.prepend(name + "a", b"> ")
    value, cas = c.gets(name + "a")
    assert value == b"> hello world" and c.cas(name + "a", b"new", cas) and c.cas(name + "a", b"old", cas) is False
    assert c.cas(name + "none", b"x", b"1") is None
    many = {name + str(i): str(i).encode() * 100 for i in range(300)}
    assert c.set_many(many) == [] and c.get_many(list(many) + [name + "absent"]) == many
    assert c.set(name + "n", b"5") and c.incr(name + "n", 3) == 8 and c.decr(name + "n", 100) == 0
    assert c.incr(name + "absent", 1) is None
    assert c.touch(name + "n", 100) and not c.touch(name + "absent", 1)
    assert c.set(name + "gone", b"x", expire=-1) and c.get(name + "gone") is None
    assert c.set(name + "big", BIG) and c.get(name + "big") == BIG
    try:
        c.set(name + "huge", b"x" * 2000000)
        raise AssertionError("a value of 2 MB was stored")
    except (MemcacheServerError, MemcacheClientError):
        pass
    assert c.get(name + "a") == b"new"
    assert c.set(name + "quiet", b"x", noreply=True) and c.get(name + "quiet") == b"x"
    assert c.delete(name + "a") and not c.delete(name + "a")
    assert b"curr_items" in c.stats()
    c.quit()


def pylibmc_works(address, name):
    import pylibmc
    c = pylibmc.Client([address], behaviors={"cas": True, "tcp_nodelay": True, "_poll_timeout": 60000})
    assert c.set(name + "a", "hello") and c.get(name + "a") == "hello" and c.get(name + "absent") is None
    assert c.set(name + "dict", {"b": [1, 2.5, None]}) and c.get(name + "dict") == {"b": [1, 2.5, None]}
    assert not c.add(name + "a", "x") and c.add(name + "b", "x") and not c.replace(name + "none", "x")
    value, cas = c.gets(name + "a")
    assert value == "hello" and c.cas(name + "a", "new", cas) and not c.cas(name + "a", "old", cas)
    many = {name + str(i): str(i) * 100 for i in range(300)}
    assert c.set_multi(many) == []
    for _ in range(60):
        assert c.get_multi(list(many) + [name + "absent"]) == many
    assert c.set(name + "n", 5) and c.incr(name + "n", 3) == 8 and c.decr(name + "n", 2) == 6
    assert c.set(name + "s", "m") and c.append(name + "s", "2") and c.prepend(name + "s", "1")
    assert c.get(name + "s") == "1m2"
    assert c.touch(name + "s", 100) and c.delete(name + "s") and not c.delete(name + "s")
    assert c.set(name + "big", BIG) and c.get(name + "big") == BIG
    assert c.set(name + "zip", "x" * 900000, min_compress_len=1000) and c.get(name + "zip") == "x" * 900000
    try:
        c.set(name + "huge", os.urandom(2000000))
        raise AssertionError("a value of 2 MB was stored")
    except pylibmc.Error:
        pass
    assert c.delete_multi(list(many)) and c.get_multi(list(many)) == {}
    assert c.get_stats()
    c.disconnect_all()


def run(work, address, name):
    for i in range(3):
        work(address, f"{name}.{i}.")


def main():
    work = {"pymemcache": pymemcache_works, "pylibmc": pylibmc_works}[KIND]
    tcp = ("127.0.0.1", PORT) if KIND == "pymemcache" else f"127.0.0.1:{PORT}"
    clients = [multiprocessing.Process(target=run, args=(work, a, f"{KIND}{i}"))
               for i, a in enumerate((PATH, tcp, PATH, tcp))]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    return any(c.exitcode for c in clients)


sys.exit(main())
