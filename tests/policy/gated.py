"""Programs whose blocks wait at gates that a script opens (programs/gates.cpp), and the server that they
share."""
import contextlib
import json
import pathlib
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "simulated"))
from place import MANAGED, Place   # noqa: E402

PATIENCE = 60

WARP = 32
MANY = 10 ** 11   # blocks measured: what servers add by themselves changes nothing
# shared memory: of an SM; kept of each CTA; for the managed form
SM_BYTES, OF_THE_SYSTEM, OF_THE_LOOP = 228 << 10, 1 << 10, 256


def part_of_sm(part):
    """Dynamic shared memory of a block of which so many parts are an SM."""
    return int(SM_BYTES * part) - OF_THE_SYSTEM - OF_THE_LOOP


class Gated:
    """A program of gates.cpp."""

    def __init__(self, place, tenant, blocks, threads, shared, priority="normal"):
        self.place, self.tenant, self.blocks = place, tenant, blocks
        command = [place.smt, "run", "--tenant", tenant, "--priority", priority, "--",
                   place.programs / "sim_gates", str(blocks), str(threads), str(shared)]
        self.process = subprocess.Popen(command, env=place.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def say(self, line, answer=None):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if answer:
            found = self.process.stdout.readline()
            assert found == answer + "\n", \
                f"{self.tenant}, {line}: {found}{self.process.stdout.read() if found else ''}"

    def launch(self):
        self.opened = 0
        self.say("launch", "launched")
        return self

    def open(self, blocks=None):
        self.say(f"open {self.blocks if blocks is None else blocks}", "opened")
        return self

    def end(self):
        """Opens all gates, and waits for the launch, and the program."""
        self.open().say("wait", "ended")
        self.leave()

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0, self.process.stdout.read()


class Stage(Place):
    def __init__(self, smt, programs, policy, multiprocessors, **sim):
        super().__init__(smt, programs, sms=multiprocessors, grace=1, step_limit=0, **sim)
        self.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY=policy, SMT_JOURNAL="mapping",
                                SMT_CACHE_DIR=str(pathlib.Path(self.folder.name) / "cache"),
                                SMT_PROFILES=str(pathlib.Path(self.folder.name) / "profiles.db"))

    def know(self, blocks, threads, part, times):
        """From the next server on: what a sweep would have measured of launches of so many blocks, {(SMs,
        CTAs on each): ns}."""
        # so that there is a profile, which says nothing yet
        Gated(self, "profiled", blocks, threads, part_of_sm(part)).launch().end()
        subprocess.run([self.smt, "server", "stop"], env=self.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        self.wait_until_ended()
        with contextlib.closing(sqlite3.connect(self.environment["SMT_PROFILES"])) as database, database:
            (profile,), = database.execute("SELECT id FROM profile WHERE block_x = ?", (threads,))
            database.execute("DELETE FROM times WHERE profile = ?", (profile,))
            for (sms, ctas), ns in times.items():
                database.execute("INSERT INTO times VALUES (?, ?, ?, 1, ?, 0, ?)",
                                 (profile, sms, ctas, MANY, int(ns) * (MANY // blocks)))

    def until_known(self, blocks, threads, part, text):
        """A server looks profiles up while a program's first launches run: of another program, here."""
        idle, other = Gated(self, "idle", 1, WARP, 0), Gated(self, "other", blocks, threads, part_of_sm(part))
        idle.launch().open().say("wait", "ended")   # with one tenant alone no policy is asked at each launch
        before = len(self.decisions("other"))
        self.until(f"{text} is decided", lambda: other.launch().open().say("wait", "ended") or
                   text in self.decisions("other")[before:])
        other.leave()
        idle.leave()

    def entries(self, tenant, kind):
        log = subprocess.run([self.smt, "log", "--json", "--mapping"], env=self.environment,
                             capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        return [entry for entry in map(json.loads, log.splitlines())
                if entry["tenant"] == tenant and entry["kind"] == kind]

    def decisions(self, tenant):
        return [entry["text"] for entry in self.entries(tenant, "decision")]

    def mappings(self, tenant):
        """Blocks, workers and multiprocessors of each row, in the order in which workers left; of a program
        that has ended, which the server hears of later."""
        self.until(f"{tenant} has left", lambda: self.entries(tenant, "closed"))
        return [(entry["value"], entry["workers"], entry["sms"]) for entry in self.entries(tenant, "mapping")]

    def until(self, what, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s\n{self.journal_now()}"

    def launches(self, tenant):
        status = subprocess.run([self.smt, "status"], env=self.environment, capture_output=True, text=True,
                                timeout=PATIENCE).stdout
        return sum(int(line.split()[10]) for line in status.splitlines() if line.split()[:1] == [tenant])

    def until_decided(self, tenant, text, times=1):
        self.until(f"{tenant}: {text}", lambda: sum(text in each for each in self.decisions(tenant)) >= times)

    def until_stopped(self, tenant, times=1):
        self.until(f"{tenant} has stopped", lambda: len(self.entries(tenant, "stopped")) >= times)


    def open_until_stopped(self, program, times):
        """Blocks may be taken between the decision and the stop, and more than one with a ticket. Returns how
        many were let through."""
        def stopped():
            program.opened = min(program.opened + 4, program.blocks - 100)
            program.open(program.opened)
            return len(self.entries(program.tenant, "stopped")) >= times

        self.until(f"{program.tenant} has stopped", stopped)
        return program.opened


def in_all(mappings):
    """What is read of a run's workers at once, as they leave, is a row."""
    return sum(row[0] for row in mappings), sum(row[1] for row in mappings), sorted({sm for row in mappings
                                                                                     for sm in row[2]})


def said(found, expected):
    assert found == expected, f"found:\n{found}\nnot:\n{expected}"


class Brief:
    """A program of brief.cpp."""

    def __init__(self, place, tenant, launches, blocks=64, priority="normal"):
        self.process = subprocess.Popen([place.smt, "run", "--tenant", tenant, "--priority", priority, "--",
                                         place.programs / "sim_brief", launches, str(blocks)],
                                        env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        said(self.process.stdout.readline(), "launched\n")

    def end(self):
        said(self.process.communicate("wait\n", timeout=PATIENCE)[0], "ended\n")
