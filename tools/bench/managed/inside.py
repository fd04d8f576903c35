#!/usr/bin/env python3
"""Stops inside blocks (inside in SMT_COMPILE) on a GPU: what the checks cost while nothing stops, how long
stops take with and without, and whether results stay the same. One JSON line a run in inside.jsonl, a table
for each part at the end. Exit code 0 when every result was right.

  cost     each program alone, without checks and with, interleaved: kernel times of each iteration
  stops    each program behind a more urgent one that has a request now and then, without checks and with,
           interleaved: from the decision to stop it to its last worker gone, out of the journal; blocks that
           were begun anew
  same     each program under random stops (SMT_STRESS) with checks, until --stops of them have begun blocks
           anew: its checksum each time

Each part gets a third of --budget seconds, and ends with what there is when that is over.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import ROOT, Child, Lines, Places, Runtime, base_environment, tail  # noqa: E402
from printed import CHECKSUM, TIMES, numbers, quantile, read_checksums  # noqa: E402

STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
NAMES = ("nbody", "tpacf", "particle_filter")
COMPILE = {side: f"wait=30,inside={side}" for side in (0, 1)}
PATIENCE = 150   # seconds for one program, and no more than its part has left
LATE = 124   # exit code of a program that was ended for that


class Inside:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        os.makedirs(options.out, exist_ok=True)
        self.lines = Lines(os.path.join(options.out, "inside.jsonl"))
        self.checksums = read_checksums(os.path.join(ROOT, "examples", "checksums.txt"))
        self.environment = base_environment()
        kind = "static"
        if options.device:   # to try this script
            kind = "shared"
            self.environment.update(SMT_DEVICE=options.device, SMT_REAL_DRIVER="none",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))
        self.folder = os.path.join(self.places.build, "examples", kind)
        self.arrivals = os.path.join(self.places.build, "bin", "gpu", "shared", "arrivals")
        self.wrong, self.end = 0, time.monotonic()

    def program(self, name, size, iterations, runtime, **variables):
        command = [os.path.join(self.folder, name), "--size", size, "--iterations", str(iterations),
                   "--times"]
        return Child(command, {**self.environment, **runtime.variables(SMT_TENANT=name, **variables)},
                     self.places.preload, max(10, min(PATIENCE, self.end - time.monotonic())))

    def add(self, part, name, size, done, **fields):
        found = CHECKSUM.search(done["out"])
        ok = done["rc"] == 0 and found is not None and found[1] == self.checksums[name, size]
        if not ok:
            self.wrong += done["rc"] != LATE
            fields.update(rc=done["rc"], out=tail(done["out"]), err=tail(done["err"]))
            what = "late" if done["rc"] == LATE else f"wrong: {fields}"
            print(f"{part}: {name} was {what}", flush=True)
        return self.lines.add(part=part, program=name, size=size, ok=ok, seconds=done["seconds"], **fields)

    def stopped(self, runtime, name):
        """The entries of its stops."""
        log = Child([self.places.smt, "log", "--json"], {**self.environment, **runtime.variables()}, None,
                    PATIENCE).finish()["out"]
        entries = (json.loads(line) for line in log.splitlines() if '"kind":"stopped"' in line)
        return [entry for entry in entries if entry["tenant"] == name]

    # ---- parts

    def cost(self, end):
        times = {}
        with Runtime(self.places, SMT_COMPILE=COMPILE[0]) as without, \
                Runtime(self.places, SMT_COMPILE=COMPILE[1]) as checked:
            for turn in range(self.options.rounds):
                for name in NAMES:
                    for side, runtime in enumerate((without, checked)):
                        if time.monotonic() > end:
                            continue
                        done = self.program(name, self.options.size, self.options.iterations,
                                            runtime).finish()
                        found = numbers(TIMES, done["out"])
                        self.add("cost", name, self.options.size, done, inside=side, round=turn,
                                 times_ms=found)
                        # The first iterations are those in which smt learns how long a block takes.
                        times.setdefault((name, side), []).extend(found[self.options.warmup:])
        print(f"{'program':<18} {'without ms':>11} {'checks ms':>10} {'ratio':>7}  spread")
        for name in NAMES:
            pair = [times.get((name, side)) for side in (0, 1)]
            if all(pair):
                middle = [statistics.median(each) for each in pair]
                spread = ", ".join(f"{(quantile(each, .9) - quantile(each, .1)) / half:.3f}"
                                   for each, half in zip(pair, middle))
                print(f"{name:<18} {middle[0]:>11.4f} {middle[1]:>10.4f} {middle[1] / middle[0]:>7.4f}  "
                      f"{spread}")

    def behind(self, name, side, iterations):
        """Once alone, so that its blocks' time is known, then behind the urgent one."""
        with Runtime(self.places, SMT_COMPILE=COMPILE[side], SMT_POLICY="priority") as runtime:
            alone = self.program(name, self.options.size, self.options.iterations, runtime).finish()
            self.add("stops alone", name, self.options.size, alone, inside=side)
            urgent = Child([self.arrivals, "1000000", str(self.options.between)],
                           {**self.environment, **runtime.variables(SMT_TENANT="urgent", SMT_PRIORITY="1")},
                           self.places.preload, PATIENCE, guard=False)
            try:
                done = self.program(name, self.options.size, iterations, runtime).finish()
            finally:
                urgent.kill()
                urgent.finish(0)
            stops = self.stopped(runtime, name)
        return self.add("stops", name, self.options.size, done, inside=side,
                        stop_us=[entry["value"] / 1e3 for entry in stops],
                        anew=sum(entry.get("blocks_begun_anew", 0) for entry in stops))

    def stops(self, end):
        found = {}
        for _ in range(self.options.rounds):
            for name in NAMES:
                for side in (0, 1):
                    if time.monotonic() < end:
                        row = self.behind(name, side, self.options.stopped_iterations)
                        found.setdefault((name, side), []).append(row)
        print(f"{'program':<18} {'checks':>6} {'stops':>6} {'p50 us':>9} {'p99 us':>9} {'anew':>8} {'s':>7}")
        for (name, side), rows in sorted(found.items()):
            took = [each for row in rows for each in row["stop_us"]]
            print(f"{name:<18} {side:>6} {len(took):>6} {quantile(took, .5):>9.1f} "
                  f"{quantile(took, .99):>9.1f} {sum(row['anew'] for row in rows):>8} "
                  f"{statistics.mean(row['seconds'] for row in rows):>7.2f}")

    def same(self, end):
        print(f"{'program':<18} {'runs':>5} {'stops anew':>10} {'p50 us':>9} {'p99 us':>9}  results")
        for place, name in enumerate(NAMES):
            last = time.monotonic() + (end - time.monotonic()) / (len(NAMES) - place)
            took, runs, right = [], 0, True
            with Runtime(self.places, SMT_COMPILE=COMPILE[1]) as runtime:
                while right and len(took) < self.options.stops and (time.monotonic() < last or not runs):
                    runs += 1
                    seed = runs + STOPS_ONLY * (runs % 2)
                    size = self.options.stress_size
                    done = self.program(name, size, self.options.stopped_iterations, runtime,
                                        SMT_STRESS=str(seed)).finish()
                    took = [entry["value"] / 1e3 for entry in self.stopped(runtime, name)
                            if entry.get("blocks_begun_anew")]
                    right = self.add("same", name, size, done, stops=len(took))["ok"] or done["rc"] == LATE
            print(f"{name:<18} {runs:>5} {len(took):>10} {quantile(took, .5):>9.1f} "
                  f"{quantile(took, .99):>9.1f}  {'right' if right else 'WRONG'}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--out", default=os.environ.get("OUT", "out"))
    parser.add_argument("--parts", default="cost,stops,same")
    parser.add_argument("--budget", type=float, default=540, help="seconds for all parts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--stopped-iterations", type=int, default=100)
    parser.add_argument("--stops", type=int, default=10000)
    parser.add_argument("--between", type=int, default=20000, help="us between two urgent requests")
    parser.add_argument("--size", default="large")
    parser.add_argument("--stress-size", default="large")
    parser.add_argument("--device", help="sim: without a GPU; sizes are trivial then")
    options = parser.parse_args()
    if options.device == "sim":
        options.size = options.stress_size = "trivial"
    inside = Inside(options)
    parts = options.parts.split(",")
    end = time.monotonic() + options.budget
    for place, part in enumerate(parts):
        inside.end = time.monotonic() + (end - time.monotonic()) / (len(parts) - place)
        getattr(inside, part)(inside.end)
        sys.stdout.flush()
    print(f"{inside.wrong} results were wrong")
    return 1 if inside.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
