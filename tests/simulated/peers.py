#!/usr/bin/env python3
"""Memory of one simulated GPU that another one's programs and kernels use: peer access within a program, and
memory that processes on two GPUs share.

    peers.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess

from gpus import KEYS, Machine, end
from place import PATIENCE, finish, run_scenario, wait_for
from sharing import BYTES, CHUNK, REFUSED, Party

MAGIC, FETCH, FETCHED = 0x31544d53, 26, 27
MEMORY, PEER = 1, 4   # SharedKind


def wait_until_all_empty(machine):
    def empty():
        status = machine.server_status()
        return all(len(re.findall(line, status)) == len(KEYS)
                   for line in (r"sessions +0 open", r"memory +0\.0 MiB device, 0\.0 MiB host"))
    wait_for(empty, lambda: "a server still holds something:\n" + machine.server_status())


def peer(smt, programs, what):
    with Machine(smt, programs) as machine:
        machine.run("both", "peer", what)
        assert machine.served() == {key: 1 for key in KEYS}
        assert "not supported" not in machine.log(), machine.log()
        wait_until_all_empty(machine)


def peers_access(smt, programs):
    """Kernels, fills and copies on the other GPU's memory, in both directions, however old it is."""
    peer(smt, programs, "access")


def peers_map(smt, programs):
    """What a program maps for both GPUs itself."""
    peer(smt, programs, "mapped")


def peers_in_threads(smt, programs):
    peer(smt, programs, "threads")


def peers_reset(smt, programs):
    peer(smt, programs, "reset")


def peers_refused(smt, programs):
    peer(smt, programs, "refused")


def peers_faults(smt, programs):
    """A kernel that accesses another GPU's memory without access, or no longer with it, faults, and programs
    on the other GPU go on."""
    with Machine(smt, programs) as machine:
        beside = machine.survivor("beside", "--gpu", "1")
        for what in ("before", "after", "freed"):
            machine.run("wild", "peer", what)
        beside.stdin.write("on\n")
        beside.stdin.flush()
        assert beside.stdout.readline() == "on\n"
        end(beside)


def peers_fenced(smt, programs):
    """A fenced tenant's kernels reach its own memory only: there is no peer access, and the calls say so."""
    with Machine(smt, programs) as machine:
        failed = finish(machine.start("both", "peer", "access", options=("--isolation", "fence")), 1)
        assert "not true: can == 1" in failed, failed


def peers_lose_one(smt, programs):
    """The end of one GPU's server leaves the program its other GPU, and the memory that is open there."""
    with Machine(smt, programs) as machine:
        program = machine.start("both", "peer", "lost", stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        pid = machine.command("server", "start", "--gpu", "1").split("process ")[1].strip()
        subprocess.run(["kill", "-KILL", pid], check=True)
        output, _ = program.communicate("on\n", timeout=PATIENCE)
        assert program.returncode == 0 and "one is left" in output and "lost the server" in output, output


def peers_hung(smt, programs):
    """A server that stands still holds up the calls that open memory there, and no others."""
    with Machine(smt, programs, gpus=3) as machine:
        program = machine.start("all", "peer", "hung", stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        pid = int(machine.command("server", "start", "--gpu", "2").split("process ")[1])
        os.kill(pid, signal.SIGSTOP)
        try:
            program.stdin.write("on\n")
            program.stdin.flush()
            if not select.select([program.stdout], [], [], PATIENCE)[0]:
                program.kill()
            assert program.stdout.readline() == "others go on\n"
        finally:
            os.kill(pid, signal.SIGCONT)
        end(program)


def peers_far_apart(smt, programs):
    """Sessions of two servers have different addresses: what one maps for its peer is free in the other,
    whose first sessions have the addresses that both would give first."""
    for gpu in "0", "1":
        with Machine(smt, programs) as machine:
            started = [machine.survivor(f"p{i}", "--gpu", gpu) for i in range(3)]
            machine.run("both", "peer", "access")
            for program in started:
                end(program)


def two_parties(machine, second="family", **how):
    return (Party(machine, "family", options=("--gpu", "0"), **how),
            Party(machine, second, options=("--gpu", "1"), **how))


def across_gpus(smt, programs):
    """Processes of a tenant on two GPUs share memory by handles: each sees what the other one writes."""
    with Machine(smt, programs, grace=20) as machine:
        one, two = two_parties(machine)
        for exporter, importer in ((one, two), (two, one)):
            for size in (BYTES, 1000):
                mine = exporter.ask("allocate", size)
                exporter.ask("fill", mine, 41)
                handle = exporter.ask("share", mine)
                its = importer.ask("open", handle)
                assert re.fullmatch("[0-9a-f]+", its), its
                assert importer.ask("read", its) == "41"
                assert importer.ask("slow", its, 43) == "ok" and exporter.ask("read", mine) == "43"
                assert importer.ask("open", handle) == its
                assert importer.ask("close", its) == "ok" and importer.ask("read", its) == "43"
                assert importer.ask("close", its) == "ok" and importer.ask("read", its) == REFUSED
                assert importer.ask("close", its) == REFUSED
                assert exporter.ask("free", mine) == "ok" and importer.ask("open", handle) == REFUSED
        one.end(), two.end()
        wait_until_all_empty(machine)


def across_descriptors(smt, programs):
    """The same by descriptors. The descriptor keeps the memory."""
    ours, theirs = socket.socketpair()
    with Machine(smt, programs, grace=20) as machine, ours, theirs:
        one = Party(machine, "family", options=("--gpu", "0"), pass_fds=[ours.fileno()])
        two = Party(machine, "family", options=("--gpu", "1"), pass_fds=[theirs.fileno()])
        physical = one.ask("create", CHUNK, "descriptor")
        mine = one.ask("map", physical)
        assert one.ask("fill", mine, 11) == "ok"
        assert one.ask("descriptor", physical) == "ok" and one.ask("send", ours.fileno()) == "ok"
        assert two.ask("receive", theirs.fileno()) == "ok"
        imported = two.ask("import")
        its = two.ask("map", imported)
        assert two.ask("read", its) == "11" and two.ask("types", its) == "1"
        assert two.ask("slow", its, 12) == "ok" and one.ask("read", mine) == "12"
        assert one.ask("close_descriptor") == "ok"
        one.end()
        assert two.ask("unmap", its) == "ok" and two.ask("release", imported) == "ok"
        assert two.ask("read", two.ask("map", two.ask("import"))) == "12"
        two.end()
        wait_until_all_empty(machine)


def across_exporter_gone(smt, programs):
    """What is open in another GPU's server stays what it is when its exporter is killed, or that one's
    server."""
    with Machine(smt, programs, grace=20) as machine:
        one, two = two_parties(machine)
        mine = one.ask("allocate", BYTES)
        one.ask("fill", mine, 5)
        its = two.ask("open", one.ask("share", mine))
        one.kill()
        wait_for(lambda: not machine.tenants()["simulated"], machine.log)
        other = Party(machine, "stranger", options=("--gpu", "0"))
        assert other.ask("fill", other.ask("allocate", BYTES), 6) == "ok"
        assert two.ask("read", its) == "5" and two.ask("slow", its, 7) == "ok"
        pid = machine.command("server", "start", "--gpu", "0").split("process ")[1].strip()
        subprocess.run(["kill", "-KILL", pid], check=True)
        assert two.ask("read", its) == "7" and two.ask("close", its) == "ok"
        two.end()
        other.kill()


def across_refused(smt, programs):
    """Another tenant gets no memory by a handle, on whichever GPU, and events stay on theirs."""
    ours, theirs = socket.socketpair()
    with Machine(smt, programs, grace=20) as machine, ours, theirs:
        one = Party(machine, "family", options=("--gpu", "0"), pass_fds=[ours.fileno()])
        other = Party(machine, "stranger", options=("--gpu", "1"), pass_fds=[theirs.fileno()])
        mine = one.ask("allocate", BYTES)
        handle = one.ask("share", mine)
        physical = one.ask("create", CHUNK, "descriptor")
        assert one.ask("descriptor", physical) == "ok" and one.ask("send", ours.fileno()) == "ok"
        assert other.ask("open", handle) == REFUSED
        assert other.ask("receive", theirs.fileno()) == "ok" and other.ask("import") == REFUSED
        one.ask("event")
        assert other.ask("open_event", one.ask("share_event")) == "CUDA_ERROR_NOT_SUPPORTED"
        changed = handle[:-32] + "00" * 16   # of no server's
        assert other.ask("open", changed[:80] + "1234" + changed[84:]) == REFUSED
        one.end(), other.end()
        wait_until_all_empty(machine)


def ask(path, packet):
    """(the reply, how many descriptors came with it); None: the server hung up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
        asked.settimeout(PATIENCE)
        asked.connect(str(path))
        asked.send(packet)
        try:
            reply, files, _, _ = socket.recv_fds(asked, 4096, 8)
        except ConnectionError:
            return None, 0
        for each in files:
            os.close(each)
        return reply, len(files)


def request(kind, token, family, version):
    return struct.pack("<IIII32s160s", FETCH, MAGIC, version, kind, token, family)


def version_of_protocol():
    text = (pathlib.Path(__file__).resolve().parents[2] / "runtime/protocol/version.h").read_text()
    return int(re.search(r"kProtocolVersion = (\d+)", text)[1])


def across_hostile(smt, programs):
    """A process that asks a server as another server would gets memory of the token's tenant only, and
    nothing for what is no question."""
    version = version_of_protocol()
    with Machine(smt, programs, grace=20) as machine:
        one = Party(machine, "family", options=("--gpu", "0"))
        mine = one.ask("allocate", BYTES)
        token = bytes.fromhex(one.ask("share", mine))[8:40]
        path = pathlib.Path(machine.folder.name) / "simulated.sock"
        ours = b"tenant family"
        reply, files = ask(path, request(MEMORY, token, ours, version))
        kind, status, _, size, offset, length, memory, exportable = struct.unpack("<IiQQQQQQ", reply)
        assert (kind, status, size, offset, length, exportable, files) == (FETCHED, 0, BYTES, 0, BYTES, 0, 1)
        assert memory != 0
        wrong = bytes([token[0] ^ 1]) + token[1:]
        for question in (request(MEMORY, token, b"tenant stranger", version),
                         request(MEMORY, token, b"", version), request(MEMORY, token, b"x" * 160, version),
                         request(MEMORY, wrong, ours, version), request(PEER, token, ours, version),
                         request(2, token, ours, version), request(77, token, ours, version),
                         request(MEMORY, token, ours, version - 1)):
            reply, files = ask(path, question)
            assert files == 0 and struct.unpack("<i", reply[4:8])[0] != 0, (question, reply)
        good = request(MEMORY, token, ours, version)
        for part in (good[:-1], good[:12], good + b"\0", good[:8]):
            reply, files = ask(path, part)
            assert files == 0, part
        for seed in range(200):
            noise = bytes((seed * 31 + i * 7) % 256 for i in range(len(good) - 8))
            reply, files = ask(path, good[:8] + noise)
            assert files == 0, seed
        assert one.ask("fill", mine, 3) == "ok" and one.ask("read", mine) == "3"
        one.end()
        machine.wait_until_empty()


if __name__ == "__main__":
    run_scenario(globals())
