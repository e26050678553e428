"""memcached_wire.py - a client of memcached's text protocol over a socket of the file system."""
import socket


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path)
    return s


def ask(s, data, end=b"\r\n"):
    """Sends the commands; all that is answered, up to such an end."""
    s.sendall(data)
    got = b""
    while not got.endswith(end):
        part = s.recv(1 << 16)
        if not part:
            raise EOFError(got[-100:])
        got += part
    return got


def set_of(key, value, flags=0):
    return b"set %s %d 0 %d\r\n%s\r\n" % (key, flags, len(value), value)


def value_of(key, value, flags=0):
    """What a get answers, when it has the value."""
    return b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key, flags, len(value), value)


def put_and_got(s, key, value, flags=0):
    return (ask(s, set_of(key, value, flags)) == b"STORED\r\n" and
            ask(s, b"get %s\r\n" % key, b"END\r\n") == value_of(key, value, flags))
