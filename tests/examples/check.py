#!/usr/bin/env python3
"""Runs examples at the same time on the simulated device, each a tenant of its own.

    check.py [--pairs | --beside] SMT CHECKSUMS PROGRAM...

Every program runs at size trivial. It must leave with 0, compare all of its results with the CPU's, print the checksum that
CHECKSUMS has for it, and leave nothing behind in the server.

    --pairs   every program beside every other one, pair after pair, each pair with a server of its own
    --beside  the same of the first program only
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


def read_checksums(path):
    lines = [line.split() for line in pathlib.Path(path).read_text().splitlines() if line and not line.startswith("#")]
    return {(name, size): checksum for name, size, checksum in lines}


def run(smt, checksums, programs):
    started = []
    for index, program in enumerate(programs):
        command = [smt, "run", "--device", "sim", "--tenant", f"tenant{index}", "--", program, "--size", SIZE]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for program, process in zip(programs, started):
        name = pathlib.Path(program).name
        output, _ = process.communicate(timeout=PATIENCE)
        print(output, end="")
        assert process.returncode == 0, f"{name}: exit code {process.returncode}"
        checked = re.search(r"^checked [^:]+: (\d+) of (\d+)$", output, re.MULTILINE)
        assert checked and checked[1] == checked[2], f"{name} did not compare all of its results with the CPU's"
        found = re.search(r"^checksum (\w+)$", output, re.MULTILINE)
        assert found, f"{name} printed no checksum"
        expected = checksums[name, SIZE]
        assert found[1] == expected, f"{name}: checksum {found[1]}, not {expected}"
    wait_until_empty(smt)


def run_with_server(smt, checksums, programs):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_SIM_TENANTS=str(len(programs)))
        try:
            run(smt, checksums, programs)
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
              "--beside": lambda: [(programs[0], other) for other in programs[1:]]}
    known = read_checksums(checksums)
    for group in groups[option]():
        begin = time.monotonic()
        run_with_server(smt, known, group)
        names = " beside ".join(pathlib.Path(program).name for program in group)
        print(f"right  {names}, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
