#!/usr/bin/env python3
"""smt suspend and smt resume on the simulated device.

    suspend.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from place import MANAGED, PATIENCE, Place, finish, run_scenario, runs, wait_for
from scenarios import keeper_of

DEVICE = 128   # MiB
LARGE = 32     # of the program that is suspended, besides small ones


class Pauses(Place):
    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, **{"grace": 50, "memory": f"{DEVICE}M", **settings})

    def smt_says(self, *arguments, code=0):
        """The one line that the command prints."""
        done = subprocess.run([self.smt, *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == code, done
        said = done.stderr if code else done.stdout
        assert not (done.stdout if code else done.stderr), done
        assert said.count("\n") == 1, done
        return said

    def program(self, tenant, *arguments, name="pauses", first="ready\n", options=()):
        program = self.start(tenant, name, *arguments, stdin=subprocess.PIPE, options=options)
        line = program.stdout.readline()
        assert line == first or first is None, line + program.stdout.read()
        program.first = line
        return program

    def hold(self, tenant, mebibytes):
        """A program that holds so much, the answer to its allocation, and the MiB that are free then."""
        program = self.program(tenant, "hold", str(mebibytes), first=None)
        answer, free = program.first.split()
        return program, answer, int(free)

    def end(self, program, tenant, last=""):
        """Returns when the server has what it had."""
        end(program, last)
        deadline = time.monotonic() + PATIENCE
        while tenant in self.tenants():
            assert time.monotonic() < deadline, f"{tenant} stays: {self.status()}"
            time.sleep(0.02)

    def server_pid(self):
        return int(re.search(r"process +(\d+)", self.server_status())[1])

    def kill_server(self):
        """Of a kernel that does not end: told to stop, the server would wait for it."""
        server = self.server_pid()
        os.kill(server, signal.SIGKILL)
        wait_for(lambda: not runs(server), lambda: "the server does not end")

    def free_now(self):
        program, _, free = self.hold("looks", 0)
        self.end(program, "looks")
        return free

    def tenants(self):
        done = subprocess.run([self.smt, "status", "--json"], env=self.environment, check=True,
                              capture_output=True, text=True, timeout=PATIENCE)
        return {each["tenant"]: each for each in json.loads(done.stdout)["tenants"]}

    def kept_chunks(self):
        """The keeper's memory files; none without a keeper."""
        if "SMT_KEEPER" not in self.environment:
            return []
        files = [os.readlink(file) for file in pathlib.Path(f"/proc/{keeper_of(self)}/fd").iterdir()]
        return [file for file in files if "smt-kept" in file]

    def status(self):
        return subprocess.run([self.smt, "status"], env=self.environment, check=True, capture_output=True,
                              text=True, timeout=PATIENCE).stdout

    def wait_for_status(self, words, count):
        deadline = time.monotonic() + PATIENCE
        while self.status().count(words) != count:
            assert time.monotonic() < deadline, f"not {count} times {words}:\n{self.status()}"
            time.sleep(0.02)


def end(program, last=""):
    output = program.communicate("end\n", timeout=PATIENCE)[0]
    assert program.returncode == 0 and output == last, output


def moved(line):
    return float(re.search(r"([\d.]+) MiB (in|are)", line)[1])


def suspended_same_bits(smt, programs, **settings):
    """All of its memory leaves the device in the middle of its work, another tenant can have it, and each
    word is right in the end."""
    with Pauses(smt, programs) as place:
        place.environment.update(settings)
        empty = place.free_now()
        program = place.program("alice", "work")
        before = place.free_now()
        assert bool(place.kept_chunks()) == bool(settings)
        said = place.smt_says("suspend", "alice")
        assert re.fullmatch(r"tenant alice is suspended: [\d.]+ MiB in (pinned|pageable) host memory, "
                            r"[\d.]+ MiB stay on the GPU, after [\d.]+ s\n", said), said
        assert moved(said) >= LARGE + 2, said
        assert not place.kept_chunks()
        assert place.free_now() - before >= LARGE + 2, (before, place.free_now())
        alice = place.tenants()["alice"]
        assert alice["suspended"] and alice["away_bytes"] / 2**20 == moved(said), alice
        assert f"alice is suspended, {moved(said):.1f} MiB in host memory\n" in place.status()
        other, answer, _ = place.hold("bob", DEVICE - 16)
        assert answer == "CUDA_SUCCESS", "what alice had is not free for another tenant"
        assert place.tenants()["alice"]["launches"] == alice["launches"], "it goes on while it is suspended"
        place.end(other, "bob")
        said = place.smt_says("resume", "alice")
        assert re.fullmatch(r"tenant alice goes on: [\d.]+ MiB are on the GPU again, after [\d.]+ s\n",
                            said), said
        place.smt_says("suspend", "alice")   # again, at another place
        place.smt_says("resume", "alice")
        alice = place.tenants()["alice"]
        assert not alice["suspended"] and alice["away_bytes"] == 0 and alice["device_bytes"] > LARGE << 20
        end(program, "right\n")
        place.wait_until_empty()
        assert place.free_now() == empty


def suspended_same_bits_kept(smt, programs):
    """The same where the memory is the keeper's: its chunks go, and others come."""
    suspended_same_bits(smt, programs, SMT_KEEPER="1")


def suspended_unpinned(smt, programs):
    """Its host memory is kept for another suspension, and given back to the machine when none comes."""
    with Pauses(smt, programs) as place:
        program = place.program("alice", "cells")
        server = place.server_pid()

        def resident():
            status = pathlib.Path(f"/proc/{server}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) >> 10

        place.smt_says("suspend", "alice")
        place.smt_says("resume", "alice")
        kept = resident()
        wait_for(lambda: resident() < kept - LARGE * 3 // 4, lambda: f"of {kept} MiB {resident()} are left")
        place.smt_says("suspend", "alice")
        place.smt_says("resume", "alice")
        program.stdin.write("go\n")
        end(program, "right\n")


def half_way(smt, programs, managed=True, beside=False, waits=False):
    with Pauses(smt, programs, step_limit=0, doors=int(not managed)) as place:
        if managed:
            place.environment.update(SMT_COMPILE=MANAGED)
        other = place.program("bob", "hold", "0", options=("--priority", "high"),
                              first=None) if beside else None
        program = place.program("alice", "long", name="survivor", options=("--priority", "low"))
        if waits:
            program.stdin.write("on\n")
            program.stdin.flush()
        place.smt_says("suspend", "alice", "--timeout", "60")
        alice = place.tenants()["alice"]
        assert alice["suspended"] and alice["device_bytes"] == 0, alice
        if not waits:
            program.stdin.write("on\n")
            program.stdin.flush()
        place.smt_says("resume", "alice")
        line = program.stdout.readline()
        assert line == "on\n", line + program.stdout.read()
        program.stdin.close()
        assert program.stdout.read() == "CUDA_SUCCESS\n" and program.wait(PATIENCE) == 0
        if other:
            end(other)
        stops = [entry for line in place.journal().splitlines()
                 if (entry := json.loads(line))["kind"] == "stopped" and entry["text"] == "slowly"]
        # on a busy machine it may be over before the command comes
        assert stops or waits, "the kernel was not stopped, so nothing was seen of that"


def suspended_half_way(smt, programs):
    """A managed kernel is stopped between two blocks and goes on there: each block runs once."""
    half_way(smt, programs)


def suspended_at_the_door(smt, programs):
    """The same for a kernel with a door, which it has where its tenant may be stopped for another one."""
    half_way(smt, programs, managed=False, beside=True)


def suspended_waiting(smt, programs):
    """The program waits for the kernel when that is stopped, and goes on waiting."""
    half_way(smt, programs, beside=True, waits=True)


def suspended_beside(smt, programs):
    """Others do as if it were not there, with its kernel stopped half way, under policies that give turns."""
    for policy in ("fair", "hpf", "greedy"):
        with Pauses(smt, programs, step_limit=0) as place:
            place.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY=policy)
            program = place.program("alice", "long", name="survivor")
            place.smt_says("suspend", "alice", "--timeout", "60")
            place.run("bob", "work", "2", "16")
            place.smt_says("resume", "alice")
            end(program, "end\nCUDA_SUCCESS\n")


def suspended_at_a_fault(smt, programs):
    """A fault of another program while it is suspended ends it with the error, with a standby too."""
    for settings in ({}, {"SMT_KEEPER": "takeover"}):
        with Pauses(smt, programs, one_context=1) as place:
            place.environment.update(settings)
            program = place.program("alice", "now", name="survivor")
            if settings:
                place.wait_for_line("is ready to take over")
            place.smt_says("suspend", "alice")
            program.stdin.write("on\n")
            program.stdin.flush()
            place.run("culprit", "misbehave", "wild")
            output = program.communicate(timeout=PATIENCE)[0]
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output


def suspended_does_not_end(smt, programs):
    """A kernel that cannot be stopped and does not end: it is named, and the program goes on as before."""
    with Pauses(smt, programs, step_limit=0) as place:
        program = place.program("alice", "busy", name="survivor")
        said = place.smt_says("suspend", "alice", "--timeout", "0.2", code=1)
        assert said == ("smt suspend: kernel endless does not end within 0.2 s: nothing has changed\n"), said
        assert not place.tenants()["alice"]["suspended"]
        assert "not suspended" in place.smt_says("resume", "alice", code=1)
        program.kill()
        place.kill_server()


def suspended_killed(smt, programs):
    """A client that is killed while it is suspended leaves nothing behind."""
    with Pauses(smt, programs) as place:
        program = place.program("alice", "work")
        place.smt_says("suspend", "alice")
        program.kill()
        finish(program, -9)
        place.wait_until_empty()
        again = place.program("alice", "work")   # nor is the name suspended any more
        end(again, "right\n")


def suspended_server_stops(smt, programs):
    """The server can be stopped; the program is told."""
    with Pauses(smt, programs) as place:
        program = place.program("alice", "work")
        place.smt_says("suspend", "alice")
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        output = program.communicate(timeout=PATIENCE)[0]
        assert program.returncode != 0 and "the server was stopped" in output, output
        place.wait_until_ended()


def suspended_misuse(smt, programs):
    """A clear line for each, and an exit code."""
    with Pauses(smt, programs) as place:
        assert place.smt_says("suspend", "alice", code=1).startswith("smt suspend: no server is running")
        program = place.program("alice", "work")
        say = place.smt_says
        assert say("suspend", "bob", code=1) == "smt suspend: no program of tenant bob runs\n"
        assert say("resume", "bob", code=1) == "smt resume: no program of tenant bob runs\n"
        assert say("resume", "alice", code=1) == "smt resume: tenant alice is not suspended\n"
        say("suspend", "alice")
        assert say("suspend", "alice", code=1) == "smt suspend: tenant alice is suspended already\n"
        say("resume", "alice")
        assert say("resume", "alice", code=1) == "smt resume: tenant alice is not suspended\n"
        end(program, "right\n")
        for arguments in (["suspend"], ["resume", "a", "b"], ["suspend", "alice", "--timeout", "soon"]):
            done = subprocess.run([smt, *arguments], env=place.environment, capture_output=True, text=True)
            assert done.returncode == 2 and "usage:" in done.stderr, done


def suspended_no_room(smt, programs):
    """Resume says how much is missing, and the tenant stays suspended until there is room."""
    with Pauses(smt, programs) as place:
        program = place.program("alice", "work")
        place.smt_says("suspend", "alice")
        other, answer, free = place.hold("bob", DEVICE - 24)
        assert answer == "CUDA_SUCCESS"
        said = place.smt_says("resume", "alice", code=1)
        found = re.fullmatch(r"smt resume: ([\d.]+) MiB of GPU memory are missing: it needs ([\d.]+) MiB, "
                             r"and ([\d.]+) MiB are free: tenant alice stays suspended\n", said)
        assert found and abs(float(found[1]) - (float(found[2]) - float(found[3]))) < 0.11, said
        assert float(found[3]) <= free and place.tenants()["alice"]["suspended"], said
        place.end(other, "bob")
        place.smt_says("resume", "alice")
        end(program, "right\n")


def suspended_together(smt, programs):
    """All programs of a tenant are suspended; one that begins later under its name waits, too."""
    with Pauses(smt, programs) as place:
        both = [place.program("alice", "work") for _ in range(2)]
        said = place.smt_says("suspend", "alice", "--json")
        assert json.loads(said)["sessions"] == 2 and json.loads(said)["moved_bytes"] >= 2 * LARGE << 20, said
        third = place.start("alice", "pauses", "work", stdin=subprocess.PIPE)
        place.wait_for_line("it begins suspended, as tenant alice is: smt resume alice")
        assert place.status().count("alice is suspended, ") == 3, place.status()
        assert place.smt_says("suspend", "alice", code=1).endswith("suspended already\n")
        said = place.smt_says("resume", "alice", "--json")
        assert json.loads(said)["sessions"] == 3, said
        assert third.stdout.readline() == "ready\n"
        for program in (*both, third):
            end(program, "right\n")


def suspended_while_asked(smt, programs):
    """Clients that are killed while the server waits for a kernel that does not end: one is freed although
    the other's kernel is waited for, and after the other the command ends, too."""
    with Pauses(smt, programs, step_limit=0) as place:
        endless = place.program("alice", "busy", name="survivor")
        beside = place.program("alice", "work")
        asks = subprocess.Popen([smt, "suspend", "alice", "--timeout", "3600"], env=place.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        place.wait_for_status("alice is suspended", 2)
        beside.kill()
        finish(beside, -9)
        place.wait_for_status("alice is suspended", 1)
        other = place.program("bob", "work")     # others are served meanwhile
        end(other, "right\n")
        assert asks.poll() is None, asks.stdout.read()
        endless.kill()
        finish(endless, -9)
        said = asks.communicate(timeout=PATIENCE)[0]
        assert asks.returncode == 1 and said == "smt suspend: its program has ended\n", said


if __name__ == "__main__":
    run_scenario(globals())
