#!/usr/bin/env python3
"""What the door costs and whether it is right, on models that keep the GPU busy: doors.py --out DIR

  native   without smt
  off      under smt, without doors (SMT_COMPILE=doors=0)
  idle     with doors, and nothing that could stop the tenant
  used     with doors, under priority beside an urgent tenant that does nothing: each launch may be stopped
  stress   stopped and resumed at random, by SMT_STRESS
  stops    the same with as many stops as there can be

All modes alternate within a round. What a model computes must have the same bits in all of them. One JSON
line a model and run in doors.jsonl, a table at the end; exit code 1 when bits differ or a program fails.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from harness import Lines, Places, Runtime, base_environment, tail  # noqa: E402
from measurement import note_command  # noqa: E402

STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
MODES = ("native", "off", "idle", "used", "stress", "stops")
SCHEDULES = re.compile(r"under stress: (\d+) schedules(?:, (\d+) launches stopped half way)?")
# The urgent tenant: it has a context and memory, and waits for its input to end.
URGENT = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096) == 0
print("here", flush=True)
sys.stdin.read()
"""


class Doors:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.lines = Lines(os.path.join(options.out, "doors.jsonl"))
        self.environment = base_environment()
        self.environment["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
        self.times = collections.defaultdict(list)    # (model, mode): ms
        self.hashes = collections.defaultdict(dict)   # model: {mode: hash}
        self.stops = collections.Counter()
        self.problems = []

    def models(self, variables, mode, round_number):
        command = [self.options.interpreter, str(HERE / "models.py"), *self.options.models]
        begin = time.monotonic()
        done = subprocess.run(command, env={**self.environment, **variables}, capture_output=True, text=True,
                              timeout=self.options.timeout)
        if done.returncode != 0:
            self.problems.append(f"{mode}: rc {done.returncode}: {tail(done.stderr, 400)}")
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            self.lines.add(mode=mode, round=round_number, **row)
            if "hash" not in row:
                continue
            self.times[row["model"], mode].append(row["ms"])
            self.hashes[row["model"]].setdefault(mode, set()).add(row["hash"])
        return time.monotonic() - begin

    def under_smt(self, mode, round_number):
        settings = {"SMT_COMPILE": f"doors={int(mode != 'off')}",
                    "SMT_POLICY": "priority" if mode == "used" else "fifo",
                    "SMT_CACHE_DIR": os.path.join(self.options.out, "cache")}
        with Runtime(self.places, **settings) as runtime:
            variables = runtime.variables(LD_PRELOAD=self.places.preload)
            urgent = self.urgent(variables) if mode == "used" else None
            seed = {"stress": 5, "stops": STOPS_ONLY + 5}.get(mode)
            stress = {"SMT_STRESS": str(seed + round_number)} if seed else {}
            took = self.models({**variables, **stress}, mode, round_number)
            if urgent:
                urgent.communicate("", timeout=30)
            log = self.smt(variables, "log")
            with open(os.path.join(self.options.out, f"{mode}-kernels.txt"), "w") as file:
                file.write(self.smt(variables, "log", "--kernels"))
        half_way = sum(int(stops or 0) for _, stops in SCHEDULES.findall(log))
        self.stops[mode] += half_way
        self.lines.add(mode=mode, round=round_number, seconds=round(took, 1), stopped_half_way=half_way)

    def smt(self, variables, *words):
        done = subprocess.run([self.places.smt, *words], env={**os.environ, **variables, "LD_PRELOAD": ""},
                              capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def urgent(self, variables):
        child = subprocess.Popen([self.options.interpreter, "-c", URGENT], stdin=subprocess.PIPE, text=True,
                                 stdout=subprocess.PIPE,
                                 env={**self.environment, **variables, "SMT_PRIORITY": "high"})
        if child.stdout.readline().strip() != "here":
            self.problems.append("the urgent tenant did not begin")
        return child

    def run(self):
        for round_number in range(self.options.rounds):
            order = self.options.modes if round_number % 2 == 0 else self.options.modes[::-1]
            for mode in order:
                try:
                    if mode == "native":
                        self.models({}, mode, round_number)
                    else:
                        self.under_smt(mode, round_number)
                except subprocess.TimeoutExpired:
                    self.problems.append(f"{mode}: not over in {self.options.timeout} s")
        return self.judge()

    def judge(self):
        print(f"{'model':<22} " + " ".join(f"{mode:>9}" for mode in self.options.modes) + "   bits")
        logs = collections.defaultdict(list)
        for name, modes in self.hashes.items():
            base = self.times.get((name, "native"))
            cells = []
            for mode in self.options.modes:
                ms = self.times.get((name, mode))
                if not ms:
                    cells.append(f"{'-':>9}")
                elif mode == "native" or not base:
                    cells.append(f"{statistics.median(ms):>6.2f} ms")
                else:
                    ratio = statistics.median(ms) / statistics.median(base)
                    logs[mode].append(ratio)
                    cells.append(f"{ratio:>9.4f}")
            same = len(set().union(*modes.values())) == 1
            if not same:
                self.problems.append(f"{name}: other bits: {modes}")
            print(f"{name:<22} " + " ".join(cells) + ("   same" if same else "   DIFFER"))
        print(f"{'geometric mean':<22} " + " ".join(
            f"{statistics.geometric_mean(logs[mode]) if logs[mode] else 0:>9.4f}" if mode != "native"
            else f"{'':>9}" for mode in self.options.modes))
        for mode, count in self.stops.items():
            if mode in ("stress", "stops"):
                print(f"{mode}: {count} launches stopped half way")
        for problem in self.problems:
            print("WRONG:", problem)
        return 1 if self.problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    parser.add_argument("--models", type=lambda text: text.split(","), default=[])
    parser.add_argument("--timeout", type=float, default=180, help="seconds for all models in one mode")
    parser.add_argument("--interpreter", default=sys.executable)
    options = parser.parse_args()
    unknown = [mode for mode in options.modes if mode not in MODES]
    if unknown:
        parser.error(f"no mode {', '.join(unknown)}; there are {', '.join(MODES)}")
    note_command(options.out, "doors.jsonl")
    return Doors(options).run()


if __name__ == "__main__":
    sys.exit(main())
