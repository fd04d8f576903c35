#!/usr/bin/env python3
"""The server as a process: what it asks the system for and does not get, what it inherits, what it leaves behind.

    server_life.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import os
import pathlib
import re
import socket
import struct

from scenarios import (CAPTURED, MAPPED, NOT_READY, OK, OUT_OF_MEMORY, WELCOME, WELCOME_FORMAT, bystander, bystander_with, connect, finish, hello, main,
                       wait_for)


def scarce_server(place):
    """A server's program under libpreload_scarce.so: make_scarce() takes away what it asks the system for."""
    program = place.folder / "scarce-smtd"
    library = place.bin.parent / "lib" / "libpreload_scarce.so"
    program.write_text(f'#!/bin/sh\nSMT_TEST_SCARCE={place.folder} LD_PRELOAD={library} exec {place.bin}/smtd "$@"\n')
    program.chmod(0o700)
    os.environ["SMT_SERVER"] = str(program)


def make_scarce(place, what, scarce=True):
    file = place.folder / f"no-{what}"
    file.touch() if scarce else file.unlink()


def log_of(place):
    return (place.folder / "device.log").read_text()


def no_threads(place):
    """Without a thread a lane is refused, or a program is: no session that is there ends, and the server goes on."""
    scarce_server(place)
    held = bystander(place)
    crowd = place.start("crowd", 3, tenant="crowd")
    assert crowd.stdout.readline() == "begun\n"
    pid = place.server_pid()
    make_scarce(place, "threads")
    crowd.stdin.write("go\n")
    crowd.stdin.flush()
    assert crowd.stdout.readline() == f"3 of 3 threads: error {OUT_OF_MEMORY}\n"
    output, errors = place.run("begin", tenant="late")
    assert output == f"cuInit {NOT_READY}\n" and "no thread" in errors, output + errors
    make_scarce(place, "threads", False)
    finish(crowd)
    place.run("scale", tenant="neighbour")
    assert place.server_pid() == pid
    assert "session 2 (crowd" in log_of(place) and "gives no thread 'lane 1' of crowd" in log_of(place), log_of(place)
    place.open(1)
    finish(held)


def session_by_hand(place, tenant):
    """A client that speaks the protocol itself: what it sends after the handshake is its affair."""
    with connect(place, hello(version=999)) as client:
        answer = struct.unpack(WELCOME_FORMAT, client.recv(4096))
    version, table_hash = answer[2], answer[4]
    client = connect(place, hello(version, table_hash, tenant))
    assert struct.unpack(WELCOME_FORMAT, client.recv(4096))[:2] == (WELCOME, OK)
    client.send(struct.pack("<2I", MAPPED, 1))
    return client


def no_memory(place):
    """What throws on a session's thread ends that session."""
    scarce_server(place)
    held = bystander(place)
    pid = place.server_pid()
    with session_by_hand(place, b"greedy") as client:
        make_scarce(place, "memory")
        size = 40 << 20
        source = os.memfd_create("captured")
        os.truncate(source, size)
        socket.send_fds(client, [struct.pack("<2IQ", CAPTURED, 0, size)], [source])
        os.close(source)
        while client.recv(4096):
            pass
    wait_for(lambda: "(greedy" in log_of(place), "the log says so")
    assert re.search(r"session \d+ \(greedy, pid \d+\): ended: its thread failed: std::bad_alloc", log_of(place)), log_of(place)
    make_scarce(place, "memory", False)
    place.run("scale", tenant="neighbour")
    assert place.server_pid() == pid
    place.open(1)
    finish(held)


def quota_of_lanes(place):
    """A session has so many threads with lanes, and others have theirs."""
    held = bystander_with(place, SMT_SESSION_LANES="4")
    crowd = place.start("crowd", 9, tenant="crowd")
    assert crowd.stdout.readline() == "begun\n"
    crowd.stdin.write("go\n")
    crowd.stdin.flush()
    assert crowd.stdout.readline() == f"6 of 9 threads: error {OUT_OF_MEMORY}\n"   # and its first thread has a lane
    finish(crowd)
    place.run("scale", tenant="neighbour")
    assert log_of(place).count("(crowd, ") == 1 and "it has 4 threads that use CUDA, the most that a session may have; SMT_SESSION_LANES" in log_of(place), log_of(place)
    place.open(1)
    finish(held)


def hung_up(client):
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


def silent_connections(place):
    """Connections that say nothing take a bounded number of the server's threads, and keep no program away."""
    held = bystander(place)
    pid = place.server_pid()
    silent = []
    for _ in range(300):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(place.socket())
        silent.append(client)
        client.setblocking(False)
    place.run("scale", tenant="neighbour")
    wait_for(lambda: sum(map(hung_up, silent)) >= 150, "the oldest are hung up on")
    assert not hung_up(silent[-1]) and len(list(pathlib.Path(f"/proc/{pid}/task").iterdir())) < 200
    for client in silent:
        client.close()
    assert place.server_pid() == pid
    place.open(1)
    finish(held)


SCENARIOS = [no_threads, no_memory, quota_of_lanes, silent_connections]

if __name__ == "__main__":
    main(SCENARIOS)
