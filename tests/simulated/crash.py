#!/usr/bin/env python3
"""The server itself is killed, or crashes, on the simulated device: which programs go on in the standby, and
what the others are told.

    crash.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import pathlib
import re
import resource
import signal
import subprocess

from place import PATIENCE, Place, run_scenario, wait_for
from takeover import Over, await_end, begin_apart, fault, finish_survivor, say

LOST = "smt: lost the server"
ERROR = "CUDA_ERROR_DEVICE_UNAVAILABLE"


class Crash(Over):
    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, **settings)
        # A crash is the kernel's to end, also where a sanitizer would report it.
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
            self.environment[name] = self.environment.get(name, "") + ":handle_segv=0"

    def await_described(self, sessions):
        """So many sessions would go on."""
        wait_for(lambda: re.search(rf"crash +{sessions} of", self.server_status()),
                 lambda: f"not {sessions} sessions would go on:\n" + self.server_status() + self.log())

    def served(self):
        """Sessions that the server has begun, also those that have ended."""
        return int(re.search(r"(\d+) served", self.server_status())[1])

    def end_server(self, how=signal.SIGKILL):
        pid = self.server_pid()
        os.kill(pid, how)
        await_end(pid)
        return pid


def is_told(program, reason, word="go\n"):
    """Its next call returns the error, and one line says why."""
    output = program.communicate(word, timeout=PATIENCE)[0]
    assert ERROR in output.splitlines(), output
    lines = [line for line in output.splitlines() if LOST in line]
    assert len(lines) == 1 and re.search(reason, lines[0]), output
    assert program.returncode == 0, output


def idle_survives(smt, programs, how):
    """A program that has nothing under way goes on, with its memory, its streams and its kernels, after two
    crashes."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor")
        for turn in range(2):
            standby = place.await_standby()
            place.await_described(1)
            before = place.end_server(how)
            say(survivor, f"turn {turn}")
            assert place.server_pid() == standby != before
            assert "this process takes over from one that crashed or was killed" in place.log(), place.log()
        finish_survivor(survivor)
        place.wait_until_empty()
        place.run("next", "work", "2", "8")


def crash_kill_idle(smt, programs):
    idle_survives(smt, programs, signal.SIGKILL)


def crash_segv_idle(smt, programs):
    idle_survives(smt, programs, signal.SIGSEGV)


def states_of(standby):
    """The files with sessions' states that the standby has."""
    states = set()
    for file in pathlib.Path(f"/proc/{standby}/fd").iterdir():
        try:
            if "smt-state" in os.readlink(file):
                states.add(file.stat().st_ino)
        except OSError:
            pass   # closed meanwhile
    return states


def crash_steady(smt, programs):
    """A program that launches, copies and waits, and makes nothing: its state from before it did so is still
    right, with its lanes where they were at the end."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor", "steady")
        for turn in range(2):
            standby = place.await_standby()
            place.await_described(1)
            for _ in range(3):   # the standby may have the first state a moment later than it is told
                before = states_of(standby)
                for word in ("one", "two", "three"):
                    say(survivor, word)
                place.await_described(1)
                if len(before) == 1 and states_of(standby) == before:
                    break
            else:
                raise AssertionError(f"states are written as it computes: {before}, {states_of(standby)}")
            place.end_server()
            say(survivor, f"turn {turn}")
        finish_survivor(survivor)
        place.wait_until_empty()


def crash_in_flight(smt, programs):
    """A program with a launch under way gets the error and one line, although its state is written. The next
    one is served by the standby."""
    for how in (signal.SIGKILL, signal.SIGSEGV):
        with Crash(smt, programs) as place:
            late = place.survivor("late", "late")
            standby = place.await_standby()
            place.await_described(1)
            begin_apart(late)
            place.end_server(how)
            is_told(late, "work of it was under way on the GPU")
            assert re.search(r"\(late, pid \d+\): it ends, as .*: work of it was", place.log()), place.log()
            place.run("next", "work", "2", "8")
            assert place.server_pid() == standby


def crash_waiting(smt, programs):
    """A program that waits for a kernel learns of it, too."""
    with Crash(smt, programs) as place:
        busy = place.survivor("busy", "busy")
        place.await_standby()
        busy.stdin.write("go\n")
        busy.stdin.flush()
        place.end_server()
        is_told(busy, "crashed or was killed", word=None)


def crash_two(smt, programs):
    """Of two programs the idle one goes on, and the one at work is told; so is one with an array."""
    with Crash(smt, programs) as place:
        survivor, busy = place.survivor("survivor"), place.survivor("busy", "busy")
        array = place.survivor("array", "array")
        place.await_standby()
        place.await_described(1)
        place.end_server()
        say(survivor, "on")
        is_told(busy, "work of it was under way on the GPU|its state was not written yet")
        is_told(array, "it has arrays|its state was not written yet")
        say(survivor, "again")
        finish_survivor(survivor)
        place.wait_until_empty()


def crash_at_start(smt, programs):
    """Before a standby is ready all programs are told, and another server is started. A program that begins
    while the server is killed goes on or is told."""
    with Crash(smt, programs, step_limit=10_000_000) as place:
        place.environment["SMT_KEEPER"] = "1"   # no standby
        early = place.survivor("early")
        place.end_server()
        is_told(early, "crashed or was killed")
        place.environment["SMT_KEEPER"] = "takeover"
        for turn in range(3):
            survivor = place.survivor(f"survivor{turn}")
            place.await_standby()
            place.await_described(1)
            begun = place.served()
            begins = place.start("begins", "work", "2", "8")
            wait_for(lambda begun=begun: place.served() != begun, place.log)
            place.end_server()
            say(survivor, "on")
            output = begins.communicate(timeout=PATIENCE)[0]
            assert begins.returncode == 0 or output.count(LOST) == 1, output
            finish_survivor(survivor)
            place.wait_until_empty()


def crash_in_calls(smt, programs):
    """Programs that call all the time go on with right results, or are told; nothing hangs."""
    with Crash(smt, programs) as place:
        idle = place.survivor("idle")
        for turn in range(3):
            place.await_standby()
            busy = [place.survivor(f"busy{i}") for i in range(2)]
            place.await_described(3)
            for program in busy:
                program.stdin.write("go\n" * 60)
                program.stdin.close()
            place.end_server()
            for program in busy:
                lines = program.stdout.read().splitlines()
                assert program.wait(timeout=PATIENCE) == 0, lines
                assert lines[-1] == "CUDA_SUCCESS" or ERROR in lines[-2:], lines
                assert sum(LOST in line for line in lines) == (lines[-1] != "CUDA_SUCCESS"), lines
            say(idle, f"turn {turn}")
        finish_survivor(idle)
        place.wait_until_empty()


def crash_then_fault(smt, programs):
    """A fault after a crash, and a crash after a fault: the idle program goes on."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor")
        for turn in range(2):
            place.await_standby()
            place.await_described(1)
            place.end_server()
            say(survivor, f"after crash {turn}")
            place.await_standby()
            fault(place)
            say(survivor, f"after fault {turn}")
        finish_survivor(survivor)
        place.wait_until_empty()


def crash_of_keeper(smt, programs):
    """With the keeper's end tenants' memory is gone: each program is told. The standby serves the next ones.
    Where it is killed as well another server is started."""
    with Crash(smt, programs) as place:
        for also_standby in (False, True):
            survivor = place.survivor("survivor")
            standby = place.await_standby()
            place.await_described(1)
            keeper = int(re.findall(r"belongs to smt-keeper, process (\d+)", place.log())[-1])
            server = place.server_pid()
            others = [*([standby] if also_standby else []), server]
            for pid in others:   # the keeper's end is not seen before theirs
                os.kill(pid, signal.SIGSTOP)
            for pid in (keeper, *others):
                os.kill(pid, signal.SIGKILL)
                await_end(pid)
            is_told(survivor, "crashed or was killed")
            place.run("next", "work", "2", "8")
            assert (place.server_pid() == standby) == (not also_standby)
            place.wait_until_empty()
            if not also_standby:   # its memory is its own: no standby
                subprocess.run([smt, "server", "stop"], env=place.environment, check=True, timeout=PATIENCE)
                place.wait_until_ended()


def crash_without_takeover(smt, programs):
    """All programs are told, as ever."""
    for keeper in ("0", "1"):
        with Place(smt, programs, one_context=1, grace=50) as place:
            place.environment["SMT_KEEPER"] = keeper
            bystander = place.start("bystander", "bystander", stdin=subprocess.PIPE)
            assert bystander.stdout.readline() == "ready\n"
            pid = int(re.search(r"process +(\d+)", place.server_status())[1])
            assert "crash" not in place.server_status(), place.server_status()
            os.kill(pid, signal.SIGKILL)
            output = bystander.communicate("go\n", timeout=PATIENCE)[0]
            assert output.count(LOST) == 1 and "which crashed or was killed" in output, output
            place.run("next", "work", "2", "8")


def crash_is_no_stop(smt, programs):
    """A server that is told to stop is not taken over from, and leaves no process."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        place.await_described(1)
        server = place.server_pid()
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, timeout=PATIENCE,
                       capture_output=True)
        is_told(survivor, "the server was stopped")
        for pid in (server, standby):
            await_end(pid)
        assert "takes over" not in place.log(), place.log()


def files_left(pid, count):
    """The process can open so many files more."""
    numbers = sorted(map(int, os.listdir(f"/proc/{pid}/fd")))
    free = [number for number in range(numbers[-1] + count + 2) if number not in numbers]
    resource.prlimit(pid, resource.RLIMIT_NOFILE,
                     (free[count], resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def crash_standby_without_files(smt, programs):
    """A standby that can open no more files says so and ends; the next one has what it needs."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        place.await_described(1)
        files_left(standby, 1)
        say(survivor, "work")
        another = place.survivor("another")
        place.wait_for_line("the standby ends: it cannot take what the server sends")
        place.await_standby()
        place.await_described(2)
        place.end_server()
        for program in (survivor, another):
            say(program, "on")
            finish_survivor(program)


def crash_server_without_files(smt, programs):
    """A program that the server has no more files for is told, as long as none is left."""
    with Crash(smt, programs) as place:
        survivor = place.survivor("survivor")
        place.await_standby()
        place.await_described(1)
        pid = place.server_pid()
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        files_left(pid, 0)
        for _ in range(2):
            refused = place.start("refused", "work", "2", "8")
            output = refused.communicate(timeout=PATIENCE)[0]
            assert refused.returncode != 0 and "the server can open no more files" in output, output
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        place.run("next", "work", "2", "8")
        finish_survivor(survivor)


if __name__ == "__main__":
    run_scenario(globals())
