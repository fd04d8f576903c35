#!/usr/bin/env python3
"""A tenant's limit of device memory, which all its programs share, and allocations that wait for room.

    memory_limits.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands. Sizes are MiB.
"""

import json
import os
import signal

from config_files import command
from run import smt, wait_until_empty
from scenarios import OUT_OF_MEMORY, finish, main, status_names, wait_for

NO_ROOM = str(OUT_OF_MEMORY)
KIB, CHUNK = 1024, 2048   # of a MiB, and what the driver maps
SEEDS, STEPS = int(os.environ.get("SMT_TEST_SEEDS", 20)), 60
AT_LIMIT = r"room within its memory limit of 64 MiB"


class Program:
    """preload_takes, which does as it is told."""

    def __init__(self, place, tenant=None, memory=None, wait=None, **environment):
        options = [*(["--memory", f"{memory}M"] if memory else []),
                   *(["--memory-wait", str(wait)] if wait is not None else [])]
        self.process = place.start("takes", tenant=tenant, options=options, **environment)
        self.info()

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def ask(self, *words):
        self.tell(*words)
        return self.hear()

    def info(self):
        """Free memory and all of it, in KiB."""
        free, total = self.ask("info").split()
        return int(free), int(total)

    def end(self):
        finish(self.process)


def log(place):
    return smt(place.program, "log")


def shared_limit(place):
    """All programs of a tenant together, and memory of each kind."""
    first, second = Program(place, "job", memory=64), Program(place, "job", memory=64)
    other = Program(place, "other", memory=64)
    assert first.ask("take", 48) == "ok"
    assert second.ask("take", 32) == NO_ROOM
    assert second.ask("array", 32) == NO_ROOM
    assert second.ask("array", 16) == "ok"
    assert first.ask("take", 4) == NO_ROOM
    assert first.info() == second.info() == (0, 64 * KIB)
    assert other.ask("take", 48) == "ok"   # has a limit of its own
    assert first.ask("give") == "ok"
    assert second.ask("take", 32) == "ok"  # what the other program freed is not kept for it
    for each in first, second, other:
        each.end()


def unnamed_programs(place):
    """Programs that were given no tenant's name are not of one tenant."""
    programs = [Program(place, memory=64) for _ in range(2)]
    for each in programs:
        assert each.ask("take", 48) == "ok"
        assert each.ask("take", 32) == NO_ROOM
    for each in programs:
        each.end()


def changed_limit(place):
    """smt set, while programs run."""
    def change(*words, code=0):
        done = command(place, "set", *words)
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr
    assert "no server is running" in change("job", "--memory", "64M", code=1)
    first = Program(place, "job", memory=64)
    assert first.ask("take", 48) == "ok"
    assert change("job", "--memory", "96M") == "server device: job may hold 96M from now on\n"
    assert first.ask("take", 32) == "ok"
    change("job", "--memory", "32M")
    assert first.info() == (0, 32 * KIB)
    assert first.ask("take", 1) == NO_ROOM
    second = Program(place, "job", memory=512)   # what a program brings along does not change it
    assert second.ask("take", 2) == NO_ROOM
    change("job", "--memory", "all")
    assert second.ask("take", 200) == "ok"
    assert "no program of tenant jbo is there; smt status" in change("jbo", "--memory", "1G", code=1)
    assert "a size such as 800M" in change("job", "--memory", "banana", code=2)
    assert "which tenant?" in change("--memory", "1G", code=2)
    assert "set what?" in change("job", code=2)
    first.end()
    second.end()


def room_comes(place):
    """An allocation waits until another program of the tenant frees memory, or its limit is raised."""
    first, second = Program(place, "job", memory=64), Program(place, "job", wait=3600)
    for make_room in (lambda: first.ask("give"),
                      lambda: smt(place.program, "set", "job", "--memory", "200M")):
        assert first.ask("take", 48) == "ok"
        second.tell("take", 40)
        status_names(place, rf"job waits \d+\.\d s for {AT_LIMIT}\n")
        make_room()
        assert second.hear() == "ok"
        assert second.ask("give") == "ok"
    text = log(place)
    assert text.count(f"waits for {AT_LIMIT}") == 2, text
    assert text.count("waited ") == 2 and "in vain" not in text, text
    first.end()
    second.end()


def no_room_comes(place):
    """The wait ends when its time is over, and with its program."""
    first = Program(place, "job", memory=64)
    assert first.ask("take", 48) == "ok"
    second = Program(place, "job", wait=1)
    assert second.ask("take", 40) == NO_ROOM
    wait_for(lambda: f"for {AT_LIMIT}" in log(place) and "waited in vain" in log(place), "the log says so")
    third = Program(place, "job", wait=3600)
    third.tell("take", 40)
    status_names(place, rf"job waits \d+\.\d s for {AT_LIMIT}\n")
    third.process.send_signal(signal.SIGKILL)
    third.process.wait()
    wait_for(lambda: "waits" not in smt(place.program, "status"), "the wait of the killed program ends")
    assert second.ask("take", 8) == "ok"
    first.end()
    second.end()
    wait_until_empty(place.program)


def room_on_device(place):
    """The device is full; another tenant ends."""
    small = {"SMT_FAKE_MEMORY": str(160 << 20)}
    first, second = Program(place, "first", **small), Program(place, "second", wait=3600, **small)
    assert first.ask("take", 100) == "ok"
    assert first.ask("take", 100) == NO_ROOM
    second.tell("take", 100)
    status_names(place, r"second waits \d+\.\d s for device memory\n")
    first.end()
    assert second.hear() == "ok"
    second.end()


def random_programs(place):
    """Two programs of a tenant take memory of all kinds; the driver says how much that is."""
    observer = Program(place, "observer")
    first = Program(place, "first")   # some memory is the server's own, once there was a program
    for _ in range(STEPS):
        assert first.ask("random") == "ok"
    first.end()
    wait_for(lambda: "first" not in smt(place.program, "status"), "the first program's session is over")
    unused, _ = observer.info()
    limit, refused, most = 48, 0, 0
    for seed in range(SEEDS):
        programs = [Program(place, "job", memory=limit) for _ in range(2)]
        for number, each in enumerate(programs):
            assert each.ask("seed", 2 * seed + number) == "ok"
        for step in range(STEPS):
            said = programs[step % 2].ask("random")
            assert said in ("ok", NO_ROOM), f"seed {seed}, step {step}: {said}"
            refused += said == NO_ROOM
            held = unused - observer.info()[0]
            most = max(most, held)
            assert held <= limit * KIB + CHUNK, f"seed {seed}, step {step}: {held} KiB are held"
        for each in programs:
            assert each.ask("give-all") == "ok"
            each.end()
        wait_for(lambda: observer.info()[0] == unused, f"all is given back after seed {seed}")
    assert refused > SEEDS and most > limit * KIB * 3 // 4, (refused, most)
    observer.end()


def figures(place):
    """What smt status says that memory is used for."""
    program = Program(place, "job", memory=256)
    for words in ("take", 3), ("take", 8), ("array", 16), ("take", 8):
        assert program.ask(*words) == "ok"
    assert program.ask("give") == "ok"
    assert program.ask("take", 300) == NO_ROOM and program.ask("take", 8) == "ok"   # given back, and new
    assert program.ask("give") == "ok"
    status = json.loads(smt(place.program, "status", "--json"))["tenants"][0]
    memory, mib = status["memory"], KIB * KIB
    assert memory["asked_bytes"] == 11 * mib and memory["lost_bytes"] == 1 * mib, status
    assert memory["idle_bytes"] == 8 * mib and memory["other_bytes"] >= 16 * mib, status
    assert memory["zeroed_bytes"] >= 20 * mib and memory["refused"] >= 1, status
    assert status["device_bytes"] == memory["tenant_held_bytes"] == sum(
        memory[f"{kind}_bytes"] for kind in ("asked", "lost", "idle", "other")), status
    lines = smt(place.program, "status", "--memory").splitlines()
    row = next(line for line in lines if "job" in line).split()
    assert row[3:6] == ["11.0", "1.0", "8.0"] and row[8] == "256.0", row
    assert command(place, "status", "--memory", "--json").returncode == 2
    program.end()


if __name__ == "__main__":
    main([shared_limit, unnamed_programs, changed_limit, room_comes, no_room_comes, room_on_device,
          random_programs, figures])
