#!/usr/bin/env python3
"""A program runs in its own form and by its PTX, under random schedules: run_test.py SMT PROGRAM [SEEDS
[ROUNDS]]

On the simulated device. What it prints must not differ, and all of its kernels must have been managed.
"""
import os
import re
import subprocess
import sys
import tempfile

PATIENCE = 120
KERNELS = 7


def call(*command, **environment):
    done = subprocess.run(command, env=os.environ | environment, capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"exit code {done.returncode} of {command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def main():
    smt, program, *more = sys.argv[1:]
    seeds, rounds = int(more[0]) if more else 5, more[1] if len(more) > 1 else "1"
    with tempfile.TemporaryDirectory() as folder:
        def run(*options, ptx="1"):
            return call(smt, "run", "--device", "sim", *options, "--", program, rounds,
                        SMT_COMPILE=f"ptx={ptx},wait=10",
                        SMT_RUNTIME_DIR=f"{folder}/{ptx}", SMT_CACHE_DIR=f"{folder}/cache")

        def notes(ptx):
            return call(smt, "log", SMT_RUNTIME_DIR=f"{folder}/{ptx}")

        try:
            native = run(ptx="0")
            assert "managed" not in notes("0"), notes("0")
            assert run() == native, "not as native, undisturbed"
            for seed in range(1, seeds + 1):
                found = run("--stress", str(seed))
                assert found == native, f"seed {seed}:\n{found}not as native:\n{native}"
            assert f"{KERNELS} kernels managed by PTX, 0 refused" in notes("1"), notes("1")
            schedules = sum(map(int, re.findall(r"under stress: (\d+) schedules", notes("1"))))
            assert schedules >= KERNELS * seeds, f"only {schedules} schedules"
            print(f"{native.count(chr(10))} lines, the same under {schedules} schedules")
        finally:
            for ptx in "01":
                subprocess.run([smt, "server", "stop"],
                               env=os.environ | {"SMT_RUNTIME_DIR": f"{folder}/{ptx}"},
                               timeout=PATIENCE, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
