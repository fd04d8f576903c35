#!/usr/bin/env python3
"""Whether kernels of two programs run at the same time on the GPU, in each mode: overlap.py --out OUT

Two bench_overlap, each with few blocks, write when they ran by the GPU's clock (overlap.cu). Of the time from
the later begin to the earlier end: the parts in which either ran, and in which both did. One JSON line a run
in overlap.jsonl; exit code 1 when a program failed, or a mode of smt has less than --at-least of it in both.
"""
import argparse
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from figures import median  # noqa: E402
from harness import Child, Lines, tail  # noqa: E402
from modes import Mode  # noqa: E402
from workers import Stage  # noqa: E402

PLACES = ("first", "second")


def both(first, second):
    """Of two lists of [begin, end], each in order and without overlaps of its own: the times in both."""
    found, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        begin, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if begin < end:
            found.append([begin, end])
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return found


def length(pieces):
    return sum(end - begin for begin, end in pieces)


def figures(first, second):
    """In ns: the window, and what of it each ran, and both."""
    if not first or not second:
        return {"window": 0, "first": 0, "second": 0, "both": 0}
    window = [[max(first[0][0], second[0][0]), min(first[-1][1], second[-1][1])]]
    if window[0][0] >= window[0][1]:
        return {"window": 0, "first": 0, "second": 0, "both": 0}
    return {"window": length(window), "first": length(both(first, window)),
            "second": length(both(second, window)), "both": length(both(first, second))}


class Overlap:
    def __init__(self, stage, options):
        self.stage, self.options, self.found, self.wrong = stage, options, {}, []
        self.lines = Lines(os.path.join(options.out, "overlap.jsonl"))
        name = "bench_overlap_shared" if options.stub else "bench_overlap"
        self.command = [os.path.join(options.build, "bin", name), str(options.blocks), str(options.us),
                        str(options.seconds)]

    def start(self, mode, place):
        variables = self.stage.variables(self.stage.key(mode, place, "training"))
        preload = variables.pop("LD_PRELOAD", None)
        return Child(self.command, variables, preload, self.options.timeout, stdin=True)

    def measure(self, mode, turn):
        children = [self.start(mode, place) for place in PLACES]
        ready = all(child.wait_ready(self.options.timeout) for child in children)
        if ready:
            self.stage.choose(mode)
        for child in children:
            child.close_input()
        done = [child.finish() for child in children]
        try:
            times = [json.loads(each["out"].replace("READY\n", ""))["ran_ns"] for each in done]
        except ValueError:
            self.wrong.append(f"{mode.name}: " + "; ".join(
                f"{each['rc']}: {tail(each['out'] + each['err'], 200)}" for each in done))
            return
        row = figures(*times)
        self.lines.add(mode=mode.name, round=turn, **row, pieces=[len(each) for each in times])
        self.found.setdefault(mode, []).append(row)

    def run(self):
        for turn in range(self.options.rounds):
            for mode in self.options.modes if turn % 2 == 0 else self.options.modes[::-1]:
                self.measure(mode, turn)
        print(f"{'mode':<40} {'window ms':>9} {'first':>6} {'second':>6} {'both':>6} {'of rounds':>14}")
        for mode, rows in self.found.items():
            part = {what: [row[what] / max(1, row["window"]) for row in rows]
                    for what in ("first", "second", "both")}
            print(f"{mode.name:<40} {median(row['window'] for row in rows) / 1e6:>9.1f} "
                  + " ".join(f"{median(part[what]):>6.3f}" for what in part)
                  + f" {min(part['both']):>6.3f}..{max(part['both']):.3f}")
            if mode.family == "smt" and median(part["both"]) < self.options.at_least:
                self.wrong.append(f"{mode.name}: {median(part['both']):.3f} of the time in both")
        for each in self.wrong:
            print("WRONG:", each)
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--modes", nargs="+", type=Mode,
                        default=[Mode(each) for each in ("time-slicing", "mps", "smt:priority", "smt:fifo")])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--us", type=int, default=200, help="of a block")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--at-least", type=float, default=0)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a program")
    parser.add_argument("--sim", dest="stub", action="store_const", const="sim",
                        help="on the simulated device; under smt only")
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--preload")
    options = parser.parse_args()
    options.device, options.threads = "cuda", 2
    if options.stub and any(mode.family != "smt" for mode in options.modes):
        parser.error("--sim has modes of smt only")
    os.makedirs(options.out, exist_ok=True)
    with Stage(options, {mode.family for mode in options.modes}, float("inf")) as stage:
        return Overlap(stage, options).run()


if __name__ == "__main__":
    sys.exit(main())
