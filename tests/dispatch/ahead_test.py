#!/usr/bin/env python3
"""Launches far ahead of the simulated device, all handed over at once and a few milliseconds of them at a
time: ahead_test.py SMT PROGRAM

The program (tests/gpu/programs/deep_queue.cu) checks itself."""
import os
import subprocess
import sys
import tempfile

PATIENCE = 200
MILLISECONDS = ("0", "1", "20")
LAUNCHES, ROUNDS = "12", "1"


def main():
    smt, program = sys.argv[1:]
    found = {}
    for milliseconds in MILLISECONDS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(SMT_RUNTIME_DIR=folder, SMT_COMPILE="wait=10",
                              SMT_LIMITS=f"ahead={milliseconds}")
            try:
                done = subprocess.run([smt, "run", "--device", "sim", "--", program, LAUNCHES, ROUNDS],
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            finally:
                subprocess.run([smt, "server", "stop"], timeout=PATIENCE, stdout=subprocess.DEVNULL)
        assert done.returncode == 0, f"{milliseconds} ms: exit code {done.returncode}: {done.stdout}"
        found[milliseconds] = done.stdout
    assert len(set(found.values())) == 1, found


if __name__ == "__main__":
    main()
