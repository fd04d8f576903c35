#!/usr/bin/env python3
"""Ends of the protocol that speak another version of it, or nothing of it, on the fake driver.

    strangers.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import contextlib
import os
import pathlib
import random
import socket
import struct
import subprocess

from run import PATIENCE, wait_until_empty
from scenarios import (MAGIC, NOT_READY, SETTINGS, VERSION_MISMATCH, WELCOME, WELCOME_FORMAT, bystander,
                       connect, finish, gone, hello, main, wait_for)


def wrong_version(place):
    held = bystander(place)
    pid = place.server_pid()
    for packet in [hello(version=999), hello(version=1, table_hash=1), hello(version=2) + b"more",
                   hello(version=4)[:32]]:
        with connect(place, packet) as client:
            answer = struct.unpack(WELCOME_FORMAT, client.recv(4096))
            text = answer[-1].split(b"\0")[0].decode()
            assert answer[:2] == (WELCOME, VERSION_MISMATCH), answer
            assert "version" in text and "smt server stop" in text, text
            assert client.recv(4096) == b"", "and hangs up"
    version, table_hash = answer[2], answer[4]
    # the same version, and another table of functions
    with connect(place, hello(version, table_hash ^ 1)) as client:
        assert client.recv(4096)[:8] == struct.pack("<2I", WELCOME, VERSION_MISMATCH)
    assert place.server_pid() == pid
    place.open(1)
    finish(held)
    wait_for(lambda: gone(pid), "the server made room for the other version")


def other_server(place):
    """The client's view of it: a server of another version answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(place.socket())
        server.listen()
        begin = place.start("begin")
        server.settimeout(PATIENCE)
        with server.accept()[0] as client:
            # `smt run`, which takes no answer for none
            assert client.recv(8192)[:8] == struct.pack("<2I", SETTINGS, MAGIC)
        with server.accept()[0] as client:
            assert len(client.recv(4096)) == len(hello(0))
            client.send(struct.pack(WELCOME_FORMAT, WELCOME, VERSION_MISMATCH, 7, 0, 0, 0,
                                    0, 0, 0, b"speak version 7"))
            output, errors = finish(begin)
    assert output == f"cuInit {NOT_READY}\n" and "speak version 7" in errors, output + errors


def garbage_hello(place):
    held = bystander(place)
    pid = place.server_pid()
    source = random.Random(1)
    whole = hello(version=1)
    packets = [source.randbytes(size) for size in (1, 4, 7, 8, 9, 255, 256, 257, 258, 4096, 60000)]
    packets += [whole[:8] + source.randbytes(248), struct.pack("<2I", 99, MAGIC),
                struct.pack("<2I", WELCOME, MAGIC)]
    for packet in packets:
        with connect(place, packet) as client:
            while client.recv(4096):
                pass
    silent = [connect(place, b"") for _ in range(3)]
    for client in silent:
        client.close()
    assert place.server_pid() == pid
    place.run("scale", tenant="neighbour")
    place.open(1)
    finish(held)


def garbage_ring(place):
    held = bystander(place)
    pid = place.server_pid()
    assert "every session was ended" in finish(subprocess.Popen(
        [str(place.bin / "preload_intruder"), place.socket()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True))[0]
    place.run("scale", tenant="neighbour")
    assert place.server_pid() == pid
    place.open(1)
    finish(held)
    wait_until_empty(place.program)


def hostile_messages(place):
    """Hundreds of each kind of control message and of each record, wrong in all ways: nothing is left of
    them in the server, which serves another program."""
    held = bystander(place)
    pid = place.server_pid()

    def sent_by_it():
        """Descriptors that came with messages and are open: memory files of that name, and its program."""
        found = []
        for each in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):   # closed meanwhile
                found.append(os.readlink(each))
        return [link for link in found if "hostile" in link or link == "/"]

    said = finish(subprocess.Popen([str(place.bin / "preload_hostile"), place.socket(), "250", "1", "none",
                                    "nobody"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))[0]
    assert int(said.split()[0]) > 100_000, said
    place.run("scale", tenant="neighbour")
    assert place.server_pid() == pid
    wait_for(lambda: not sent_by_it(), "descriptors of hostile messages are closed")
    place.open(1)
    finish(held)   # then the server leaves: among the messages are greetings of other versions


if __name__ == "__main__":
    main([wrong_version, other_server, garbage_hello, garbage_ring, hostile_messages])
