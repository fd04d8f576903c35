#!/usr/bin/env python3
"""The server as a process: what it asks the system for and does not get, what it inherits, what it leaves
behind.

    server_life.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import mmap
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess

from run import PATIENCE, smt
from scenarios import (CAPTURED, ILLEGAL_ADDRESS, MAPPED, NOT_READY, OK, OPENED, OUT_OF_MEMORY,
                       UNAVAILABLE, WELCOME, WELCOME_FORMAT, bystander, bystander_with, connect, finish,
                       gone, hello, main, wait_for)


def scarce_server(place):
    """A server's program under libpreload_scarce.so: make_scarce() takes away what it asks the system for."""
    program = place.folder / "scarce-smtd"
    library = place.bin.parent / "lib" / "libpreload_scarce.so"
    program.write_text(f'#!/bin/sh\nSMT_TEST_SCARCE={place.folder} LD_PRELOAD={library} exec '
                       f'{place.bin}/smtd "$@"\n')
    program.chmod(0o700)
    os.environ["SMT_SERVER"] = str(program)


def make_scarce(place, what, scarce=True):
    file = place.folder / f"no-{what}"
    file.touch() if scarce else file.unlink()


def log_of(place):
    return (place.folder / "device.log").read_text()


def no_threads(place):
    """Without a thread a lane is refused, or a program is: no session that is there ends, and the server goes
    on."""
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
    assert "session 2 (crowd" in log_of(place) and "gives no thread 'lane 1' of crowd" in log_of(place), \
        log_of(place)
    place.open(1)
    finish(held)


def welcomed(place, tenant):
    """A client that speaks the protocol itself, as far as Welcome, and the arena's file."""
    with connect(place, hello(version=999)) as client:
        answer = struct.unpack(WELCOME_FORMAT, client.recv(4096))
    version, table_hash = answer[2], answer[4]
    client = connect(place, hello(version, table_hash, tenant))
    packet, files, _, _ = socket.recv_fds(client, 4096, 1)
    assert struct.unpack(WELCOME_FORMAT, packet)[:2] == (WELCOME, OK)
    return client, files[0]


def session_by_hand(place, tenant, with_file=False):
    """What the client sends after the handshake is its affair."""
    client, file = welcomed(place, tenant)
    client.send(struct.pack("<2I", MAPPED, 1))
    assert struct.unpack("<2I", client.recv(8)) == (OPENED, 0)
    if with_file:
        return client, file
    os.close(file)
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
    assert re.search(r"session \d+ \(greedy, pid \d+\): ended: its thread failed: std::bad_alloc",
                     log_of(place)), log_of(place)
    make_scarce(place, "memory", False)
    place.run("scale", tenant="neighbour")
    assert place.server_pid() == pid
    place.open(1)
    finish(held)


def quota_of_lanes(place):
    """A session has so many threads with lanes, and others have theirs."""
    held = bystander_with(place, SMT_LIMITS="lanes=4")
    crowd = place.start("crowd", 9, tenant="crowd")
    assert crowd.stdout.readline() == "begun\n"
    crowd.stdin.write("go\n")
    crowd.stdin.flush()
    # and its first thread has a lane
    assert crowd.stdout.readline() == f"6 of 9 threads: error {OUT_OF_MEMORY}\n"
    finish(crowd)
    place.run("scale", tenant="neighbour")
    assert (log_of(place).count("(crowd, ") == 1 and "it has 4 threads that use CUDA, the most that a "
            "session may have (lanes in SMT_LIMITS)" in log_of(place)), log_of(place)
    place.open(1)
    finish(held)


def hung_up(client):
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


def silent_connections(place):
    """Connections that say nothing take a bounded number of the server's threads, and keep no program
    away."""
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


def spoil():
    """What no server may take over from the program that starts it."""
    os.nice(7)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.umask(0)
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (200 if limit == resource.RLIMIT_NOFILE else 1 << 30,
                                   resource.getrlimit(limit)[1]))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    pathlib.Path("/proc/self/oom_score_adj").write_text("321")


def inherited(place):
    """A server does not keep what the program that started it had: variables, limits, niceness, processors,
    signals."""
    os.environ.update(CUDA_LAUNCH_BLOCKING="1", CUDA_MODULE_LOADING="EAGER", SOMETHING_ELSE="1",
                      LANG="C.UTF-8", SMT_FAKE_MEMORY=str(1 << 30))
    processors, files = os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    held = place.start("held", "launch", tenant="first", options=("--priority", "high"),
                       how=dict(preexec_fn=spoil))
    place.wait_reached(1)
    pid = place.server_pid()
    proc = pathlib.Path(f"/proc/{pid}")
    names = {entry.split("=")[0] for entry in (proc / "environ").read_text().split("\0") if entry}
    assert {"SMT_RUNTIME_DIR", "SMT_DRIVER", "SMT_FAKE_MEMORY", "PATH", "LANG"} <= names, names
    for name in ("CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "SOMETHING_ELSE", "LD_PRELOAD",
                 "SMT_TENANT", "SMT_PRIORITY"):
        assert name not in names, name
    assert os.sched_getaffinity(pid) == processors, os.sched_getaffinity(pid)
    assert os.getpriority(os.PRIO_PROCESS, pid) == 0
    status = (proc / "status").read_text()
    signals = dict(re.findall(r"^(SigBlk|SigIgn):\s*(\w+)", status, re.M))
    assert (not int(signals["SigIgn"], 16) >> (signal.SIGUSR1 - 1) & 1 and
            not int(signals["SigBlk"], 16) >> (signal.SIGUSR2 - 1) & 1), signals
    assert re.search(r"^Umask:\s*0077", status, re.M) and (proc / "oom_score_adj").read_text() == "0\n"
    limits = (proc / "limits").read_text()
    soft = dict(re.findall(r"^(Max open files|Max cpu time|Max file size) +(\S+)", limits, re.M))
    assert (int(soft["Max open files"]) >= files and
            soft["Max cpu time"] == soft["Max file size"] == "unlimited"), limits
    place.open(1)
    finish(held)


def other_settings(place):
    """What a program's environment says to a server that runs already is said to have no effect, once, and
    logged."""
    held = bystander_with(place, SMT_JOURNAL="mapping=0")
    errors = place.run("scale", tenant="same", SMT_POLICY="priority", SMT_JOURNAL="mapping=0",
                       SMT_COMPILE="cache=1024M")[1]
    assert errors == "", errors
    errors = place.run("scale", tenant="other", SMT_POLICY="fair", SMT_JOURNAL="mapping")[1]
    assert "SMT_POLICY is fair here and priority in the server" in errors and "smt policy set" in errors, \
        errors
    assert "mapping in SMT_JOURNAL is 1 here and 0 in the server" in errors and errors.count("\n") == 2, \
        errors
    assert "other starts, and SMT_POLICY is fair here and priority in the server" in log_of(place), \
        log_of(place)
    smt(place.program, "policy", "set", "fair")
    assert place.run("scale", SMT_POLICY="fair")[1] == ""
    place.open(1)
    finish(held)


def by_hand(place, name, **how):
    """Not by `smt run`, which looks at the environment first."""
    environment = (os.environ | {"LD_PRELOAD": str(place.bin.parent / "lib" / "libsmt.so")} |
                   how.pop("env", {}))
    return subprocess.run([str(place.bin / f"preload_{name}")], env=environment, capture_output=True,
                          text=True, timeout=PATIENCE, **how)


def relative_folder(place):
    done = by_hand(place, "begin", cwd=place.folder, env={"SMT_RUNTIME_DIR": "here"})
    assert ("SMT_RUNTIME_DIR is 'here'; it takes an absolute path" in done.stderr and
            done.stdout == f"cuInit {NOT_READY}\n"), done
    done = subprocess.run([place.program, "run", "--", "true"], env=os.environ | {"SMT_RUNTIME_DIR": "here"},
                          capture_output=True, text=True)
    assert done.returncode == 1 and "absolute path" in done.stderr, done
    assert not (place.folder / "here").exists()


def journal(place, *options):
    return subprocess.run([place.program, "log", *options], capture_output=True, text=True, timeout=PATIENCE)


def crashed_server(place):
    """Its programs say so, and its log and journal outlast the servers that come next."""
    held = bystander(place)
    pid = place.server_pid()
    wait_for(lambda: place.calls("cuStreamSynchronize"), "it waits")
    os.kill(pid, signal.SIGKILL)
    output, errors = finish(held)
    assert f"error {UNAVAILABLE}\n" in output, output
    assert (errors.count("\n") == 1 and f"lost the server (process {pid}), which crashed or was killed. Its "
            "last line: \"session 1 (bystander" in errors), errors
    assert f"log: {place.folder}/device.log\n" in errors, errors
    os.environ["SMT_IDLE_SECONDS"] = "1"
    for turn in range(6):
        place.run("scale", tenant=f"turn{turn}")
        if turn == 0:
            assert ("ended without leaving" in log_of(place) and
                    f"{place.folder}/device.journal.1" in log_of(place)), log_of(place)
        smt(place.program, "server", "stop")
    kept = sorted(path.name for path in place.folder.glob("device.*.[0-9]*"))
    assert kept == sorted(f"device.{kind}.{i}" for kind in ("log", "journal") for i in (1, 2, 3, 4)), kept
    crash = journal(place, "--last-crash")
    assert crash.returncode == 0 and "bystander" in crash.stdout and "device.log." in crash.stderr, crash
    before = journal(place, "--before", "1")
    assert before.returncode == 0 and "turn4" in before.stdout and "turn5" not in before.stdout, before
    assert journal(place, "--before", "9").returncode == 2 and journal(place, "--before", "4").returncode == 0
    small = (place.folder / "device.journal.1").stat()
    assert small.st_blocks * 512 < small.st_size // 4, "a finished journal keeps what it has reserved"


def stopped_server(place):
    """It is also said which process stops a server on purpose."""
    held = bystander(place)
    wait_for(lambda: place.calls("cuStreamSynchronize"), "it waits")
    stopping = subprocess.Popen([place.program, "server", "stop"], stdout=subprocess.PIPE)
    errors = finish(held)[1]
    assert (errors.count("\n") == 1 and ": the server was stopped. This program's CUDA calls return an error "
            "from now on" in errors), errors
    place.open(1)
    stopping.communicate(timeout=PATIENCE)


def copied_after_stop(place):
    """A copy from a server that was stopped is an error, and no copy of nothing."""
    for stops, expected in ((False, f"{OK}, the same bytes\n"), (True, f"{UNAVAILABLE}, other bytes\n")):
        program = place.start("copies_on")
        assert program.stdout.readline() == "ready\n"
        if stops:
            smt(place.program, "server", "stop")
        program.stdin.write("go\n")
        program.stdin.flush()
        output = finish(program)[0]
        assert output == expected, output


def lost_context(place):
    """A server that left because a fault had ended its context counts as one that crashed, and its programs
    say one line."""
    sufferer = place.start("fault", "suffer")
    assert sufferer.stdout.readline() == "ready\n"
    pid = place.server_pid()
    place.run("fault", "cause", tenant="culprit")
    assert sufferer.stdout.readline() == f"error {ILLEGAL_ADDRESS}\n"
    wait_for(lambda: gone(pid), "the server has left")
    errors = finish(sufferer)[1]
    assert errors.count("\n") == 1 and "context is lost" in errors, errors
    assert "the shared context is lost" in journal(place, "--last-crash").stdout


def lost_before_opened(place):
    """A program whose session is not there yet when the context is lost is not told of it, but greets the
    next server."""
    bystander(place)
    client, file = welcomed(place, b"late")
    os.close(file)
    pid = place.server_pid()
    place.run("fault", "cause", tenant="culprit")
    with client:
        client.send(struct.pack("<2I", MAPPED, 1))
        assert client.recv(8) == b""
    place.run("scale", tenant="another")
    assert place.server_pid() != pid


def closed_descriptors(place):
    """A program that closes our descriptor is told so, and the file that has its number is not touched."""
    own = place.folder / "own"
    output, errors = place.run("closes", own)
    assert output == f"{UNAVAILABLE} {UNAVAILABLE}\n", output
    assert errors.count("\n") == 1 and "has closed the descriptor of its connection" in errors, errors
    assert own.read_bytes() == b""


def names(place):
    """What a program calls itself reaches no terminal as a command."""
    evil = "\x1b[31mEVIL\x07\nfake line \x9b2J \u202egnp"
    held = bystander_with(place)
    other = place.start("prefers", SMT_TENANT=evil)
    other.stdout.readline(), other.stdout.readline()
    shown = [smt(place.program, *what)
             for what in (("status",), ("server", "status"), ("log",), ("log", "--kernels"))]
    for text in [*shown, log_of(place)]:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|^fake", text, re.M), text
    assert any("?[31mEVIL? fake line" in text for text in shown), shown
    other.stdin.close()
    other.stdin = None
    finish(other)
    place.open(1)
    finish(held)


def flood(place):
    """A program that fails in a loop does not fill the log."""
    held = bystander(place)
    client, file = session_by_hand(place, b"flooder", with_file=True)
    client.send(struct.pack("<2I", 4, 0))
    _, status, _, _, offset = struct.unpack("<IiIIQ", client.recv(4096))
    assert status == 0
    records = 20_000
    with mmap.mmap(file, 1 << 21, offset=offset) as lane:
        for i in range(records):
            lane[4096 + 16 * i:4096 + 16 * i + 16] = struct.pack("<IHHII", 16, 200, 0, 0, 0)
        lane[0:8] = struct.pack("<Q", 16 * records)
        wait_for(lambda: struct.unpack("<Q", lane[64:72])[0] == 16 * records, "all records are executed")
    assert 0 < log_of(place).count("(flooder") < 100, log_of(place).count("(flooder")
    assert smt(place.program, "log").count("unknown operation") < 100
    client.close()
    os.close(file)
    place.open(1)
    finish(held)


def preferences(place):
    """What one program prefers for its context is its own."""
    first = place.start("prefers", tenant="first")
    assert [first.stdout.readline() for _ in range(2)] == ["0 0\n", "2 2\n"]
    second = place.start("prefers", tenant="second")
    assert [second.stdout.readline() for _ in range(2)] == ["0 0\n", "2 2\n"]
    for program in (first, second):
        program.stdin.close()
        program.stdin = None
        finish(program)


def other_context(place):
    """smtd that only makes a context ends with success, beside a server too; without a driver it says why."""
    held = bystander(place)
    program = [str(place.bin / "smtd"), "--key", "device", "--make-context"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr, done
    without = {**os.environ, "SMT_DRIVER": str(place.folder / "none")}
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, env=without)
    assert done.returncode == 1 and "no context: cannot load" in done.stderr, done
    place.open(1)
    finish(held)


SCENARIOS = [no_threads, no_memory, quota_of_lanes, silent_connections, inherited, other_settings,
             relative_folder, crashed_server, stopped_server, copied_after_stop,
             lost_context, lost_before_opened, closed_descriptors, names, flood, preferences, other_context]

if __name__ == "__main__":
    main(SCENARIOS)
