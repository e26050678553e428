"""A client of an NBD export that connects again when its server goes away. It writes blocks, and
reads them all at the end. Arguments: the URI, and a file, at whose end it stops."""

import os
import sys
import time

import nbd

BLOCK = 4096
BLOCKS = 256


def connect(uri):
    """The server may be on its way up."""
    for _ in range(600):
        h = nbd.NBD()
        h.set_uri_allow_local_file(True)
        try:
            h.connect_uri(uri)
            return h
        except nbd.Error:
            time.sleep(0.1)
    sys.exit("nobody serves it any more")


def data_of(i, turn):
    return bytes([turn % 251, i % 251]) * (BLOCK // 2)


def main(uri, go):
    h = connect(uri)
    connections, turn = 1, 0
    last = {}
    while os.path.exists(go) or turn < 2:
        for i in range(BLOCKS):
            while True:
                try:
                    h.pwrite(data_of(i, turn), i * BLOCK)
                    break
                except nbd.Error:
                    h = connect(uri)
                    connections += 1
            last[i] = data_of(i, turn)
        turn += 1
        with open(go + ".turns", "w") as out:
            out.write(f"{turn}\n")
    bad = sum(h.pread(BLOCK, i * BLOCK) != data for i, data in last.items())
    print(f"connections={connections} bad={bad}")
    h.shutdown()


main(sys.argv[1], sys.argv[2])
