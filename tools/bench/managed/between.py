#!/usr/bin/env python3
"""From a launch to the next one of a program that waits for each: natively, flowing, and under quotas
(SMT_PROFILE=halves). Several builds in turns, to compare them. One JSON line a run in between.jsonl; a table
at the end. Exit code 0 when every result was right.

    between.py --builds before/build,build
"""
import argparse
import contextlib
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import Child, Lines, Places, Runtime, base_environment  # noqa: E402
from printed import CHECKSUM, ENDS, numbers, quantile, read_checksums  # noqa: E402

PROGRAMS = [("vector_add", "trivial"), ("vector_add", "small"), ("nbody", "small"),
            ("matrix_multiply", "small"), ("md5_hash", "large")]
MODES = {"native": None, "flowing": {}, "quotas": {"SMT_PROFILE": "halves"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", default="build")
    parser.add_argument("--programs", default="build/examples/shared")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    lines, checksums, found = Lines(os.path.join(options.out,
                                                 "between.jsonl")), read_checksums(options.checksums), {}
    with contextlib.ExitStack() as runtimes:
        sides = [("", "native", None)]
        for build in options.builds.split(","):
            sides += [(build, mode,
                       runtimes.enter_context(Runtime(Places(build), SMT_POLICY="fifo", **MODES[mode])))
                      for mode in ("flowing", "quotas")]
        wrong = measure(options, sides, lines, checksums, found)
    show(found)
    print(f"{wrong} wrong results")
    return 1 if wrong else 0


def measure(options, sides, lines, checksums, found):
    wrong = 0
    for turn in range(options.rounds + 1):   # the first one starts servers and compiles forms
        for name, size in PROGRAMS:
            for build, mode, runtime in sides:
                command = [os.path.join(options.programs, name), "--size", size, "--iterations",
                           str(options.iterations), "--times"]
                environment = {**base_environment(),
                               **(runtime.variables(SMT_PROFILES="none") if runtime else {})}
                done = Child(command, environment, runtime.places.preload if runtime else None, 60).finish()
                ends, checksum = numbers(ENDS, done["out"]), CHECKSUM.search(done["out"])
                ok = done["rc"] == 0 and bool(checksum) and checksum[1] == checksums[name, size]
                wrong += not ok
                between = [1e6 * (b - a) for a, b in zip(ends[5:], ends[6:])]
                lines.add(program=name, size=size, build=build, mode=mode, round=turn,
                          ok=ok, between_us=between)
                if turn:
                    found.setdefault((name, size, build, mode), []).append(between)
    return wrong


def show(found):
    print(f"{'program':<26} {'build':<20} {'mode':<8} {'p50 us':>9} {'of runs':>20} {'p90 us':>9}")
    for (name, size, build, mode), runs in found.items():
        each = [us for run in runs for us in run]
        if not each:
            continue
        medians = [statistics.median(run) for run in runs if run]
        print(f"{name + ' ' + size:<26} {build:<20} {mode:<8} {statistics.median(each):>9.1f} "
              f"{min(medians):>9.1f}..{max(medians):<9.1f} {quantile(each, .9):>9.1f}")


if __name__ == "__main__":
    sys.exit(main())
