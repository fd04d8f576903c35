#!/usr/bin/env python3
"""Runs examples at the same time on the simulated device, each a tenant of its own.

    check.py [--pairs | --beside | --part | --fenced] SMT CHECKSUMS PROGRAM...

Every program runs at size trivial. It must leave with 0, compare all of its results with the CPU's, print the
checksum that CHECKSUMS has for it, and leave nothing behind in the server.

    --pairs   every program beside every other one, pair after pair, each pair with a server of its own
    --beside  the same of the first program only
    --fenced  every program alone, of a tenant that is fenced
    --part    every program with parts of the size, whose checksums are not known, and with parts that are
              none
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload"))
from run import PATIENCE, wait_until_empty  # noqa: E402

SIZE = "trivial"
PARTS = ["0.5", "0.3"]
NO_PARTS = ["0", "1.5", "nan", "0.5x", ""]
CANNOT_BE_LESS = ["nbody"]   # at this size


def read_checksums(path):
    lines = [line.split() for line in pathlib.Path(path).read_text().splitlines()
             if line and not line.startswith("#")]
    return {(name, size): checksum for name, size, checksum in lines}


def run(smt, checksums, programs, part=None, options=()):
    started = []
    for index, program in enumerate(programs):
        command = [smt, "run", "--device", "sim", "--tenant", f"tenant{index}", *options, "--",
                   program, "--size", SIZE,
                   *(["--part", part] if part else [])]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for program, process in zip(programs, started):
        name = pathlib.Path(program).name
        output, _ = process.communicate(timeout=PATIENCE)
        print(output, end="")
        assert process.returncode == 0, f"{name}: exit code {process.returncode}"
        checked = re.search(r"^checked [^:]+: (\d+) of (\d+)$", output, re.MULTILINE)
        assert checked and checked[1] == checked[2], \
            f"{name} did not compare all of its results with the CPU's"
        found = re.search(r"^checksum (\w+)$", output, re.MULTILINE)
        assert found, f"{name} printed no checksum"
        if part:
            assert f"program {name} size {SIZE} iterations 1 part {part}\n" in output, \
                f"{name} does not say which part it computes"
            assert found[1] != checksums[name, SIZE] or name in CANNOT_BE_LESS, \
                f"{name} computes all of it for part {part}"
            continue
        expected = checksums[name, SIZE]
        assert found[1] == expected, f"{name}: checksum {found[1]}, not {expected}"
    wait_until_empty(smt)


def run_fenced(smt, checksums, programs):
    run(smt, checksums, programs, options=("--isolation", "fence"))


def run_parts(smt, checksums, programs):
    for part in PARTS:
        run(smt, checksums, programs, part)
    for part in NO_PARTS:
        done = subprocess.run([smt, "run", "--device", "sim", "--", *programs, "--part", part],
                              capture_output=True, text=True, timeout=PATIENCE)
        wanted = f"--part is a number above 0 and at most 1, not '{part}'"
        assert done.returncode == 2 and wanted in done.stderr, \
            f"--part '{part}': exit code {done.returncode}, {done.stderr}"


def run_with_server(check, smt, checksums, programs):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_SIM=f"tenants={len(programs)}")
        try:
            check(smt, checksums, programs)
        except BaseException:
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"-- {log.name}\n{log.read_text()}")
            raise
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE)


def main():
    option, *rest = sys.argv[1:]
    if not option.startswith("--"):
        option, rest = "", sys.argv[1:]
    smt, checksums, *programs = rest
    groups = {"": lambda: [programs],
              "--pairs": lambda: itertools.combinations(programs, 2),
              "--beside": lambda: [(programs[0], other) for other in programs[1:]],
              "--part": lambda: [(program,) for program in programs],
              "--fenced": lambda: [(program,) for program in programs]}
    checks = {"--part": run_parts, "--fenced": run_fenced}
    known = read_checksums(checksums)
    for group in groups[option]():
        begin = time.monotonic()
        run_with_server(checks.get(option, run), smt, known, group)
        names = " beside ".join(pathlib.Path(program).name for program in group)
        print(f"right  {names}, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
