#!/usr/bin/env python3
"""Programs under stress until each has been through so many random schedules. A schedule is one run of a
kernel with a quota table, slice, stops, changes and growth of its own. What is right must not change. Seeds
are printed; what a seed does depends on the moment, too.

stress.py example SMT CHECKSUMS PROGRAM [SCHEDULES [ITERATIONS [FIRST_SEED]]]   its checksum
stress.py constructs SMT PLAIN MANAGED [SCHEDULES [ITERATIONS [FIRST_SEED]]]    each construct of a program
        (tests/rewrite/programs): MANAGED under stress leaves the memory and the lines that PLAIN leaves with
        its own kernels. The same file twice: it is managed by its PTX
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 1200   # seconds; ctest has less
ITERATIONS = 20
MOST_SEEDS = 100   # for 200 schedules
# Constructs with calls through pointers, of which PTX does not say where they lead: their kernels stay as
# they are.
LEFT_ALONE_BY_PTX = {"indirect", "early_return_indirect"}


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


def schedules(smt, tenant):
    log = subprocess.run([smt, "log",
                          "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    notes = [note["text"] for line in log.splitlines() if '"kind":"note"' in line and
             (note := json.loads(line))["tenant"] == tenant]
    return sum(int(found[1]) for note in notes
               if (found := re.search(r"under stress: (\d+) schedules", note)))


def run(smt, command, *options):
    done = subprocess.run([smt, "run", "--device", "sim", *options, "--", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0, \
        f"{' '.join(command)} {' '.join(options)}: exit code {done.returncode}: {done.stdout}"
    return done.stdout


def under_stress(smt, name, command, wanted, check, first_seed):
    """Runs a command until its kernels have been through so many schedules; `check` says what its output
    means, or raises."""
    seed, count = first_seed, 0
    while count < wanted:
        found = check(run(smt, command, "--stress", str(seed), "--tenant", name))
        count = schedules(smt, name)
        print(f"seed {seed}: {found}, {count} schedules", flush=True)
        seed += 1
        assert seed - first_seed < MOST_SEEDS * max(1, wanted / 200), \
            f"only {count} schedules: is the program managed at all?"
    print(f"{name}: right under {count} schedules")


def example(smt, checksums, program, wanted=200, iterations=ITERATIONS, first_seed=1):
    name = pathlib.Path(program).name
    lines = [line.split() for line in pathlib.Path(checksums).read_text().splitlines()
             if line and not line.startswith("#")]
    expected = {(row[0], row[1]): row[2] for row in lines}[name, "trivial"]

    def check(output):
        found = re.search(r"^checksum (\w+)$", output, re.MULTILINE)
        assert found and found[1] == expected, f"not {expected}: {output}"
        return expected

    with server(smt):
        under_stress(smt, name, [program, "--size", "trivial", "--iterations", str(iterations)],
                     wanted, check, first_seed)


def constructs(smt, plain, managed, wanted=200, iterations=ITERATIONS, first_seed=1):
    names = subprocess.run([plain], capture_output=True, text=True, timeout=PATIENCE,
                           check=True).stdout.split()
    assert names, f"{plain} names no construct"
    with server(smt, SMT_COMPILE="ptx=0"):   # blocks may say their lines in any order
        expected = {name: sorted(run(smt, [plain, name, str(iterations)]).splitlines()) for name in names}
    with server(smt, SMT_COMPILE=f"ptx={int(plain == managed)}"):
        for name in names:
            def check(output, name=name):
                found, wanted_lines = (collections.Counter(lines)
                                       for lines in (output.splitlines(), expected[name]))
                assert found == wanted_lines, \
                    f"{name}: missing {dict(wanted_lines - found)}, not wanted {dict(found - wanted_lines)}"
                return max(found)

            command = [managed, name, str(iterations)]
            if plain == managed and name in LEFT_ALONE_BY_PTX:
                check(run(smt, command, "--stress", str(first_seed), "--tenant", name))
                assert schedules(smt, name) == 0, f"{name} is managed by its PTX"
            else:
                under_stress(smt, name, command, wanted, check, first_seed)


if __name__ == "__main__":
    what, *paths = sys.argv[1:5]
    {"example": example, "constructs": constructs}[what](*paths, *map(int, sys.argv[5:]))
