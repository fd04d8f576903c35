#!/usr/bin/env python3
"""Programs under stress until each has been through so many random schedules. A schedule is one run of a
kernel, or of a graph, with a quota table, slice, stops, changes and growth of its own; at the door, with
stops. What is right must not change. Seeds are printed; what a seed does depends on the moment, too.

stress.py example SMT CHECKSUMS PROGRAM     its checksum
stress.py constructs SMT PLAIN MANAGED      each construct of a program (tests/rewrite/programs): MANAGED
        under stress leaves the memory and the lines that PLAIN leaves with its own kernels. The same file
        twice: it is managed by its PTX
stress.py program SMT PROGRAM [ARGUMENT...]      one that checks its results itself: it prints what it prints
        undisturbed

Options: --schedules N, --iterations N, --seed N (the first one), --half-way N (fewer launches stopped half
way are an error). With --inside kernels have checks inside their blocks, and --anew N says how many blocks
must have been begun anew. With --doors kernels have doors and no managed forms, on --sms N multiprocessors:
on few of them small grids take many waves, and between two waves there is something to stop.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 1200   # seconds; ctest has less
ITERATIONS = 20
MOST_SEEDS = 100   # for 200 schedules
# Constructs with calls through pointers, of which PTX does not say where they lead: their kernels stay as
# they are.
LEFT_ALONE_BY_PTX = {"indirect", "early_return_indirect"}
STOPS_ONLY = 1 << 31   # in a seed: runtime/dispatch/experiments.h
# By the device's clock what is stopped, and where, does not depend on this machine's speed.
DOORS = {"SMT_SIM": "doors=1,dispatch_clock=1,sms={sms}", "SMT_COMPILE": "ptx=0"}
INSIDE = {"SMT_COMPILE": "inside=1,wait=10"}
WANTED = re.compile(r'"kind":"(opened|closed|note|stopped)"')
NOTE = re.compile(r"under stress: (\d+) schedules, (\d+) launches stopped half way")


@contextlib.contextmanager
def server(smt, **settings):
    """A folder of our own for it; it starts by itself."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, **settings)
        try:
            yield
        except BaseException:
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"-- {log.name}\n{log.read_text()}")
            raise
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE, stdout=subprocess.DEVNULL)


def journal(smt, tenant):
    """What it says of a tenant, to the end of its last session. That comes after the program's own end, and
    its schedules are told then."""
    deadline = time.monotonic() + PATIENCE
    while True:
        log = subprocess.run([smt, "log", "--json"], capture_output=True, text=True, timeout=PATIENCE,
                             check=True).stdout
        entries = [json.loads(line) for line in log.splitlines() if WANTED.search(line)]
        entries = [entry for entry in entries if entry["tenant"] == tenant]
        kinds = collections.Counter(entry["kind"] for entry in entries)
        if kinds["closed"] >= kinds["opened"]:
            return entries
        assert time.monotonic() < deadline, f"{tenant} does not leave the server"
        time.sleep(0.01)


def schedules(smt, tenant):
    """How many launches were stopped half way, too, and how many blocks were begun anew."""
    entries = journal(smt, tenant)
    found = [found for entry in entries if entry["kind"] == "note" and (found := NOTE.search(entry["text"]))]
    return (sum(int(each[1]) for each in found), sum(int(each[2]) for each in found),
            sum(entry.get("blocks_begun_anew", 0) for entry in entries))


def run(smt, command, *options):
    done = subprocess.run([smt, "run", "--device", "sim", *options, "--", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0, \
        f"{' '.join(command)} {' '.join(options)}: exit code {done.returncode}: {done.stdout}"
    return done.stdout


def tail(output):
    return output.strip().rpartition("\n")[2][-60:]


class Stress:
    """What each program is to go through."""

    def __init__(self, smt, options):
        self.smt, self.wanted, self.first_seed = smt, options.schedules, options.seed
        self.iterations = str(options.iterations)
        self.half_way, self.anew = options.half_way, options.anew
        self.settings = {name: value.format(sms=options.sms) for name, value in DOORS.items()
                         } if options.doors else INSIDE if options.inside else {}

    def stress(self, seed):
        """At the door there is nothing but stops: every other seed has as many as there can be."""
        return str(seed + (STOPS_ONLY if self.settings and seed % 2 else 0))

    def go_through(self, name, command, check):
        """Runs a command until its kernels have been through so many schedules; `check` says what its output
        means, or raises."""
        seed, count, half_way, anew = self.first_seed, 0, 0, 0
        while count < self.wanted or anew < self.anew:
            found = check(run(self.smt, command, "--stress", self.stress(seed), "--tenant", name))
            count, half_way, anew = schedules(self.smt, name)
            print(f"seed {seed}: {found}, {count} schedules", flush=True)
            seed += 1
            assert seed - self.first_seed < MOST_SEEDS * max(1, self.wanted / 200), \
                f"only {count} schedules: is the program managed at all?"
        assert half_way >= self.half_way, f"{name}: {half_way} launches stopped half way, not {self.half_way}"
        print(f"{name}: right under {count} schedules, {half_way} half way, {anew} blocks begun anew")

    def example(self, checksums, program):
        name = pathlib.Path(program).name
        lines = [line.split() for line in pathlib.Path(checksums).read_text().splitlines()
                 if line and not line.startswith("#")]
        expected = {(row[0], row[1]): row[2] for row in lines}[name, "trivial"]

        def check(output):
            found = re.search(r"^checksum (\w+)$", output, re.MULTILINE)
            assert found and found[1] == expected, f"not {expected}: {output}"
            return expected

        with server(self.smt, **self.settings):
            self.go_through(name, [program, "--size", "trivial", "--iterations", self.iterations], check)

    def program(self, *command):
        with server(self.smt, **self.settings):
            expected = run(self.smt, command)

            def check(output):
                assert output == expected, f"not {expected}: {output}"
                return tail(expected)

            self.go_through(pathlib.Path(command[0]).name, command, check)

    def constructs(self, plain, managed):
        names = subprocess.run([plain], capture_output=True, text=True, timeout=PATIENCE,
                               check=True).stdout.split()
        assert names, f"{plain} names no construct"
        with server(self.smt, SMT_COMPILE="ptx=0"):   # blocks may say their lines in any order
            expected = {name: sorted(run(self.smt, [plain, name, self.iterations]).splitlines())
                        for name in names}
        by_ptx = plain == managed and not self.settings
        with server(self.smt, **{"SMT_COMPILE": f"ptx={int(by_ptx)}", **self.settings}):
            for name in names:
                def check(output, name=name):
                    found, wanted_lines = (collections.Counter(lines)
                                           for lines in (output.splitlines(), expected[name]))
                    assert found == wanted_lines, (f"{name}: missing {dict(wanted_lines - found)}, "
                                                   f"not wanted {dict(found - wanted_lines)}")
                    return max(found)

                command = [managed, name, self.iterations]
                if by_ptx and name in LEFT_ALONE_BY_PTX:
                    check(run(self.smt, command, "--stress", str(self.first_seed), "--tenant", name))
                    count, *_ = schedules(self.smt, name)
                    assert count == 0, f"{name} is managed by its PTX"
                else:
                    self.go_through(name, command, check)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["example", "constructs", "program"])
    parser.add_argument("smt")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--doors", action="store_true")
    parser.add_argument("--sms", type=int, default=1)
    parser.add_argument("--half-way", type=int, default=0)
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--anew", type=int, default=0)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    getattr(Stress(options.smt, options), options.what)(*options.files)


if __name__ == "__main__":
    main()
