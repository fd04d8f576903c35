#!/usr/bin/env python3
"""Kernels that touch managed memory (cudaMallocManaged) several times: natively and under smt.

    managed_memory.py --out OUT [--build BUILD] [--mib 64,1024] [--rounds 3] [--budget SECONDS] [--plan]
                      [--device sim]

A run is a program (touches.cu) that takes so many MiB, writes all of it on the host, has kernels read and
write each word, and looks at each word on the host. In a round each size runs natively and under smt, in an
order that changes from round to round. Cases: `once-2`, two passes in one launch; `launches-N`, N launches
of a pass each; `prefetched-N`, the same after cudaMemPrefetchAsync to the device; `copied-N`, the same with
cudaMemcpy both ways and no managed memory. `device` is the time from the first call to the end of the last
kernel, `whole` that with the host's writes before and reads behind. `times` is the median under smt by the
median natively: 2 is half of native. On the simulated device there is no native half.

Results: OUT/managed_memory.jsonl with a row a run, OUT/managed_memory.json with all figures, and a table.
Wrong, and the exit code 1: a word that is not right, a program that fails, or no run at all. With --budget no
run is begun after that time; --plan measures nothing, and says what would be done.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, tail  # noqa: E402
from measurement import built_twice  # noqa: E402

START = 2.0       # seconds until a program has a context: a guess, for --plan
PER_GIB = 14.0    # seconds for all cases of a GiB: likewise
PATIENCE = 300
STEPS = ("allocate_ms", "host_writes_ms", "device_ms", "host_reads_ms", "free_ms")
WHOLE = ("host_writes_ms", "device_ms", "host_reads_ms")


def whole_numbers(text):
    values = [int(each) for each in text.split(",")]
    if not values or any(each <= 0 for each in values):
        raise argparse.ArgumentTypeError(f"positive whole numbers, not '{text}'")
    return values


def modes(options):
    return ["smt"] if options.device == "sim" else ["native", "smt"]


def order(options):
    """(round, MiB, mode) of each run."""
    runs = []
    for number in range(options.rounds):
        of_round = modes(options)[::-1] if number % 2 else modes(options)
        runs += [(number, mib, mode) for mib in options.mib for mode in of_round]
    return runs


def lines_of(text):
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


class Touches:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.program, self.environment = built_twice(options, "bench_managed_memory")
        self.lines = Lines(os.path.join(options.out, "managed_memory.jsonl"))

    def run(self):
        """How many runs were not begun."""
        until = time.monotonic() + self.options.budget
        left = order(self.options)
        while left and time.monotonic() < until:
            number, mib, mode = left.pop(0)
            row = self.lines.add(round=number, mib=mib, mode=mode, **self.one(mib, mode))
            said = "right" if row["ok"] else f"FAILS: {row['why']}"
            print(f"round {number}: {mib:6} MiB {mode:6} {row['seconds']:7.1f} s  {said}", flush=True)
        return len(left)

    def one(self, mib, mode):
        if mode == "native":
            return self.finished(self.start(mib, self.environment, None), None)
        with Runtime(self.places) as runtime:
            return self.finished(self.start(mib, {**self.environment, **runtime.variables()},
                                            self.places.preload), runtime)

    def start(self, mib, environment, preload):
        return Child([self.program, str(mib)], environment, preload, PATIENCE)

    @staticmethod
    def finished(child, runtime):
        end = child.finish()
        cases = lines_of(end["out"])
        right = end["rc"] == 0 and cases and all(each["wrong_words"] == 0 for each in cases)
        row = {"ok": bool(right), "seconds": end["seconds"], "cases": cases, "why": ""}
        if not right:
            log = runtime.log(600) if runtime else ""
            wrong = [each for each in cases if each["wrong_words"]]
            row["why"] = f"exit code {end['rc']}, wrong: {wrong} {tail(end['out'] + end['err'], 300)} {log}"
        return row


def figures(rows):
    """By MiB, case and mode: each step's values in all rounds, and `whole_ms`."""
    found = {}
    for row in rows:
        for each in row["cases"]:
            values = found.setdefault(row["mib"], {}).setdefault(each["case"], {}).setdefault(row["mode"], {})
            for step in STEPS:
                values.setdefault(step, []).append(each[step])
            values.setdefault("whole_ms", []).append(sum(each[step] for step in WHOLE))
    return found


def times(by_mode, step):
    """Under smt by natively; None: one of both is missing, or nothing was measured."""
    if "native" not in by_mode or "smt" not in by_mode:
        return None
    native = statistics.median(by_mode["native"][step])
    return statistics.median(by_mode["smt"][step]) / native if native > 0 else None


def spread(values):
    return f"{statistics.median(values):10.2f} ({min(values):.2f} to {max(values):.2f})"


def table(found):
    for mib, cases in found.items():
        print(f"\n{mib} MiB, medians and range in ms")
        for name, by_mode in cases.items():
            for step in ("device_ms", "whole_ms"):
                text = "  ".join(f"{mode} {spread(values[step]):36}" for mode, values in by_mode.items())
                ratio = times(by_mode, step)
                print(f"  {name:14} {step[:-3]:7} {text}" + (f" times {ratio:.2f}" if ratio else ""))


def summary(found):
    return [{"mib": mib, "case": name, **{f"{step[:-3]}_times": times(by_mode, step)
                                          for step in ("device_ms", "whole_ms")}, "values": by_mode}
            for mib, cases in found.items() for name, by_mode in cases.items()]


def plan(options):
    seconds = sum(START + mib / 1024 * PER_GIB for _, mib, _ in order(options))
    for number, mib, mode in order(options):
        print(f"round {number}: {mib:6} MiB {mode}")
    print(f"about {seconds:.0f} s in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_managed_memory")
    parser.add_argument("--out")
    parser.add_argument("--mib", type=whole_numbers, default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--plan", action="store_true", help="what would be done, and how long")
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    if options.plan:
        plan(options)
        return 0
    if not options.out:
        parser.error("--out is needed, but for --plan")
    os.makedirs(options.out, exist_ok=True)
    touches = Touches(options)
    if not os.path.exists(touches.program):
        parser.error(f"there is no {touches.program}: build the target bench_managed_memory")
    left = touches.run()
    rows = touches.lines.all
    found = figures(rows)
    with open(os.path.join(options.out, "managed_memory.json"), "w") as file:
        json.dump({"device": options.device or "gpu", "not_begun": left, "cases": summary(found)}, file,
                  indent=1)
    table(found)
    if left:
        print(f"{left} runs were not begun: the time was over")
    return 0 if rows and all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
