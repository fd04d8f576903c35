#!/usr/bin/env python3
"""Two examples side by side on a GPU, under each policy and without smt. One JSON line a run; tables at the end. Exit
code 0 when every result was right; figures are for people to judge.

  pairs    throughput of the pair while both work, in units of what each does alone and natively (STP; 1 is what taking turns
           gives), and how much longer each takes (ANTT), under time-slicing, MPS, and the policies of smt; interleaved
  shares   the same program twice with weights, under fair: what each gets of the time
  starts   a small program, from its start to its end, beside one that has launched seconds of work and waits for it
"""
import argparse
import os
import re
import statistics
import sys
import time

from harness import Child, Lines, Places, Runtime, base_environment, tail
from managed import CHECKSUM, TIMES, read_checksums
from share import Mps

ENDS = re.compile(r"^ends_s (.*)$", re.MULTILINE)
PAIRS = [("pointer_chase", "black_scholes"), ("nbody", "vector_add"), ("matrix_multiply", "spmv"), ("md5_hash", "stencil3d")]
MODES = ["time-sliced", "mps", "fifo", "greedy", "hpf", "fair", "compact"]
NATIVE = ("alone", "time-sliced", "mps")
WEIGHTS = [1, 2, 3]
DEEP = [("mri_q", 150), ("binomial_options", 350)]   # and launches for some three seconds
START_MODES = "alone,time-sliced,mps,fifo,priority"   # a policy may have an SMT_AHEAD_MS: priority:0


def numbers(pattern, text):
    found = pattern.search(text)
    return [float(each) for each in found[1].split()] if found else []


class Corun:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.lines = Lines(os.path.join(options.out, "corun.jsonl"))
        self.checksums = read_checksums(options.checksums)
        self.environment = base_environment()
        self.wrong = 0
        self.alone = {}   # name: iterations a second

    def start(self, name, iterations, variables, preload):
        command = [os.path.join(self.options.programs, name), "--size", "large", "--iterations", str(iterations), "--times"]
        return Child(command, {**self.environment, **variables}, preload, 60)

    def finish(self, name, child):
        done = child.finish()
        checksum = CHECKSUM.search(done["out"])
        ok = done["rc"] == 0 and bool(checksum) and checksum[1] == self.checksums[name, "large"]
        self.wrong += not ok
        more = {} if ok else {"rc": done["rc"], "out": tail(done["out"]), "err": tail(done["err"])}
        return {"program": name, "ok": ok, "ends_s": numbers(ENDS, done["out"]), "times_ms": numbers(TIMES, done["out"]), **more}

    def measure_alone(self, name):
        if name in self.alone:
            return
        for iterations in (20, None):
            wanted = iterations or max(20, int(self.options.length * self.alone[name]))
            row = self.finish(name, self.start(name, wanted, {}, None))
            ends = row["ends_s"]
            self.alone[name] = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else 1
        self.lines.add(part="alone", **row)

    def together(self, part, names, mode, weights=(1, 1), **fields):
        native = mode in NATIVE
        with Runtime(self.places, SMT_POLICY="fifo" if native else mode) as runtime, Mps(mode) as mps:
            children = []
            for index, name in enumerate(names):
                variables = mps.variables if native else runtime.variables(SMT_TENANT=f"{'ab'[index]}-{name}", SMT_WEIGHT=str(weights[index]))
                # Each goes on for twice as long as it would alone, so that both work for most of the time.
                children.append(self.start(name, max(20, int(2 * self.options.length * self.alone[name])), variables, None if native else self.places.preload))
            rows = [self.finish(name, child) for name, child in zip(names, children)]
        row = self.lines.add(part=part, mode=mode, weights=weights, programs=rows, **fields)
        return self.rates(rows, names), row

    def rates(self, rows, names):
        """Of each, in units of its rate alone, while both worked; None where they did not long enough."""
        if not all(row["ends_s"] for row in rows):
            return None
        begin, end = max(row["ends_s"][0] for row in rows), min(row["ends_s"][-1] for row in rows)
        if end - begin < self.options.length / 4:
            return None
        return [sum(begin < at <= end for at in row["ends_s"]) / (end - begin) / self.alone[name] for row, name in zip(rows, names)]

    def pairs(self, budget):
        end = time.monotonic() + budget
        found = {}
        for turn in range(self.options.rounds):
            for pair in PAIRS:
                for name in pair:
                    self.measure_alone(name)
                for mode in MODES:
                    if time.monotonic() > end:
                        break
                    names = pair if turn % 2 == 0 else pair[::-1]
                    rates, _ = self.together("pairs", names, mode, round=turn)
                    if rates:
                        found.setdefault((pair, mode), []).append(rates if turn % 2 == 0 else rates[::-1])
        print(f"{'pair':<32} {'mode':<12} {'STP':>7} {'spread':>7} {'ANTT':>7}  {'each':>14} {'n':>3}")
        for (pair, mode), rates in found.items():
            stp = [sum(each) for each in rates]
            antt = statistics.median(statistics.mean(1 / max(r, 1e-3) for r in each) for each in rates)
            each = " ".join(f"{statistics.median(r[i] for r in rates):6.3f}" for i in range(2))
            print(f"{' + '.join(pair):<32} {mode:<12} {statistics.median(stp):>7.3f} {max(stp) - min(stp):>7.3f} {antt:>7.3f}  {each:>14} {len(rates):>3}")
        for mode in MODES:
            stps = [statistics.median(sum(each) for each in rates) for (_, m), rates in found.items() if m == mode]
            if stps:
                print(f"{mode:<12} geometric mean of STP {statistics.geometric_mean(stps):.3f} over {len(stps)} pairs")

    def shares(self, budget):
        end = time.monotonic() + budget
        print(f"{'program':<20} {'weights':>8} {'shares':>16} {'ratio':>7}")
        for turn in range(self.options.rounds):
            for name in ("nbody", "black_scholes", "spmv"):
                self.measure_alone(name)
                for weight in WEIGHTS:
                    if time.monotonic() > end:
                        return
                    rates, _ = self.together("shares", (name, name), "fair", (weight, 1), round=turn)
                    if rates:
                        print(f"{name:<20} {weight:>6}:1 {rates[0]:>8.3f} {rates[1]:>7.3f} {rates[0] / max(rates[1], 1e-3):>7.3f}")

    def starts(self, budget):
        end = time.monotonic() + budget
        found = {}
        for turn in range(self.options.rounds):
            for large, launches in DEEP:
                for mode in self.options.start_modes.split(","):
                    if time.monotonic() < end:
                        found.setdefault((large, mode), []).append(self.start_beside(large, launches, mode, turn))
        print(f"{'vector_add beside':<20} {'mode':<12} {'seconds, median':>15} {'most':>8} {'large s':>8} {'n':>3}")
        for (large, mode), rows in found.items():
            small = [row["small_s"] for row in rows]
            print(f"{large:<20} {mode:<12} {statistics.median(small):>15.3f} {max(small):>8.3f} {statistics.median(row['large_s'] for row in rows):>8.3f} {len(rows):>3}")

    def start_beside(self, large, launches, mode, turn):
        native = mode in NATIVE
        policy, _, ahead = mode.partition(":")
        with Runtime(self.places, SMT_POLICY="fifo" if native else policy, **({"SMT_AHEAD_MS": ahead} if ahead else {})) as runtime, Mps(mode) as mps:
            variables = [mps.variables if native else runtime.variables(SMT_PRIORITY=priority) for priority in ("low", "high")]
            preload = None if native else self.places.preload
            # Once before: forms are compiled and servers started only once, and not what is asked for here.
            self.launch_small(variables[1], preload).finish()
            # Without --times it launches all of them and then waits.
            back = None if mode == "alone" else Child([os.path.join(self.options.programs, large), "--size", "large", "--iterations", str(launches)],
                                                      {**self.environment, **variables[0]}, preload, 60)
            time.sleep(2)   # until it computes; measured, not asserted
            done = [(("vector_add", "small"), self.launch_small(variables[1], preload).finish())]
            if back:
                done.append(((large, "large"), back.finish()))
        ok = all(d["rc"] == 0 and (c := CHECKSUM.search(d["out"])) and c[1] == self.checksums[name] for name, d in done)
        self.wrong += not ok
        return self.lines.add(part="starts", large=large, mode=mode, round=turn, ok=ok, small_s=done[0][1]["seconds"], large_s=done[-1][1]["seconds"])

    def launch_small(self, variables, preload):
        return Child([os.path.join(self.options.programs, "vector_add"), "--size", "small", "--iterations", "20"],
                     {**self.environment, **variables}, preload, 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--programs", default="build/examples/shared")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--length", type=float, default=1.0, help="seconds that a program takes alone")
    parser.add_argument("--start-modes", default=START_MODES)
    parser.add_argument("--parts", default="pairs,shares")
    parser.add_argument("--seconds", default="200,60", help="for each part")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    corun = Corun(options)
    for part, seconds in zip(options.parts.split(","), options.seconds.split(",")):
        print(f"== {part}", flush=True)
        getattr(corun, part)(float(seconds))
    print(f"{corun.wrong} wrong results")
    return 1 if corun.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
