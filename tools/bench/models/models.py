#!/usr/bin/env python3
"""What Kernelet's model predicts of pairs, against pairs that ran; and what learning profiles costs. One JSON
line a measurement; figures are for people to judge. Exit code 0 when every run went through with the right
result.

  alone     eight examples by themselves: with all the CTAs that fit, and with half of them
            (SMT_PROFILE=halves)
  pairs     each two of them side by side, with half of the CTAs each
  counters  smt profile of those that the store has no counters of
  online    bursts of launches in turns under a server that keeps profiles and two that do not, and the first
            launches, from which servers learn
  queries   bench_models: what a question to a model costs

`smt profile pairs --json` on the store then says what was predicted (docs/results has a script that puts both
together).
"""
import argparse
import itertools
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import ROOT, Child, Lines, Places, Runtime, base_environment, run, tail  # noqa: E402
from printed import CHECKSUM, ENDS, TIMES, numbers, read_checksums  # noqa: E402

# Kernelet's eight (its table 3).
EIGHT = ["pointer_chase", "sad", "spmv", "stencil3d", "matrix_multiply", "mri_q", "black_scholes", "tea"]
# Rounds of a launch, launches of a burst, for some ten milliseconds each: as short as launches get, some five
# microseconds on the GPU, some twenty. Shorter bursts would show the GPU's switches between the two servers'
# contexts.
BURSTS = [(64, 2000), (1600, 2000), (12800, 400)]
FIRST = 300   # launches of a fresh program
SET_UP = 1.3  # times as long as alone, for two programs that are set up at once


class Models:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.lines = Lines(os.path.join(options.out, "models.jsonl"))
        self.checksums = read_checksums(options.checksums)
        self.store = os.path.abspath(os.path.join(options.out, "profiles.db"))
        self.environment = {**base_environment(), "SMT_CACHE_DIR": os.path.join(options.out, "cache")}
        if options.device == "sim":
            self.environment.update(SMT_SIM="grace=20", SMT_DEVICE="sim")
        self.names = [name for name in EIGHT
                      if name in options.programs_of.split(",")] if options.programs_of else EIGHT
        self.rates = {}   # name: iterations a second, alone with all CTAs
        self.leads = {}   # name: seconds from its start to its first launch, then
        self.failed = 0
        self.end = time.monotonic() + options.seconds

    def left(self):
        return self.end - time.monotonic()

    # ---- pairs

    def start(self, name, iterations, runtime, begin_s=None):
        """begin_s: the second of time.monotonic() before which it launches nothing."""
        command = [self.places.smt, "run", "--tenant", name, "--", os.path.join(self.options.programs, name),
                   "--size", self.options.size,
                   "--iterations", str(iterations), "--times"]
        command += ["--arrivals", f"0,1,{begin_s:.6f}"] if begin_s else []
        return Child(command, {**self.environment, **runtime.variables(SMT_PROFILES="none")}, None, 60)

    def finish(self, name, child):
        done = child.finish()
        checksum = CHECKSUM.search(done["out"])
        ok = done["rc"] == 0 and bool(checksum) and checksum[1] == self.checksums[name, self.options.size]
        self.failed += not ok
        if not ok:
            print(f"{name}: {done['rc']} {tail(done['out'] + done['err'], 300)}", flush=True)
        return {"program": name, "ok": ok, "times_ms": numbers(TIMES, done["out"]),
                "ends_s": numbers(ENDS, done["out"])}

    @staticmethod
    def progress(row, at):
        """Iterations done by then, with parts of one."""
        begin = Models.begin(row)
        done = 0.0
        for end in row["ends_s"]:
            if at >= end:
                done += 1
            else:
                return done + max(0.0, at - begin) / (end - begin)
            begin = end
        return done

    def rate(self, row, window=None):
        """Iterations a second in a window, or from the second iteration on."""
        begin, end = window or (row["ends_s"][0], row["ends_s"][-1])
        return (self.progress(row, end) - self.progress(row, begin)) / (end - begin) if end > begin else 0.0

    def window(self, rows):
        """While both are at work: from the second iteration on, unless one's first takes as long as all of
        the other's."""
        begin, end = max(row["ends_s"][0] for row in rows), min(row["ends_s"][-1] for row in rows)
        if not self.long_enough(begin, end):
            begin = max(self.begin(row) for row in rows)
        return begin, end

    def long_enough(self, begin, end):
        return end - begin > 0.3 * self.options.length

    @staticmethod
    def begin(row):
        return row["ends_s"][0] - row["times_ms"][0] / 1e3

    def iterations(self, name, lengths):
        return max(8, int(lengths * self.options.length * self.rates[name]))

    def alone(self):
        for kind, settings in (("all", {}), ("half", {"SMT_PROFILE": "halves"})):
            with Runtime(self.places, SMT_POLICY="fifo", **settings) as runtime:
                for name in self.names:
                    # once before: its managed form is compiled, and how long it takes is seen
                    if kind == "all":
                        self.rates[name] = self.rate(self.finish(name, self.start(name, 8, runtime)))
                    child = self.start(name, self.iterations(name, 1), runtime)
                    row = self.finish(name, child)
                    rate = self.rate(row)
                    if kind == "all":
                        self.rates[name] = rate
                        self.leads[name] = self.begin(row) - child.started
                    self.lines.add(part="alone", kind=kind, rate=rate, **row)
                    print(f"{name:<16} {kind:<4} {rate:>10.3f} iterations/s, {rate / self.rates[name]:.3f} "
                          f"of all, {len(row['ends_s'])} of them", flush=True)

    def pairs(self):
        pairs = list(itertools.combinations(self.names, 2))
        with Runtime(self.places, SMT_POLICY="fifo", SMT_PROFILE="halves") as runtime:
            for turn, pair in itertools.product(range(self.options.rounds), pairs):
                if self.left() < self.options.reserve:
                    print(f"pairs: no time left for {pair}")
                    continue
                names = pair if turn % 2 == 0 else pair[::-1]
                # Both are set up by then: tea takes half a second, in which the other would be done.
                begin = time.monotonic() + SET_UP * max(self.leads[name] for name in names)
                rows = [self.finish(name, child)
                        for name, child in [(name, self.start(name, self.iterations(name, 2), runtime, begin))
                                            for name in names]]
                if turn % 2:
                    rows.reverse()
                window = self.window(rows)
                ok = self.long_enough(*window)
                of_alone = [self.rate(row, window) / self.rates[row["program"]]
                            for row in rows] if ok else None
                self.failed += not ok
                profit = 1 - 1 / sum(of_alone) if ok and sum(of_alone) > 0 else None
                self.lines.add(part="pair", round=turn, pair=pair, of_alone=of_alone, profit=profit,
                               seconds=window[1] - window[0], rows=rows)
                if ok:
                    print(f"{pair[0]:<16} {pair[1]:<16} {of_alone[0]:.3f} + {of_alone[1]:.3f}, profit "
                          f"{profit:+.3f}, {window[1] - window[0]:.2f} s", flush=True)

    def counters(self):
        for name in self.names:
            done = run([self.places.smt, "profile", *(["--device", "sim"] if self.options.device else []),
                        "--", os.path.join(self.options.programs, name),
                        "--size", self.options.size, "--iterations", "2"],
                       {**self.environment, "SMT_PROFILES": self.store}, None, 60)
            self.failed += done["rc"] != 0
            self.lines.add(part="counters", program=name, rc=done["rc"], said=tail(done["err"]))

    # ---- online

    def burst_server(self, runtime, rounds, side):
        variables = {**self.environment,
                     **runtime.variables(SMT_PROFILES=self.store + ".online" if side == "kept" else "none")}
        command = [self.places.smt, "run", "--", self.places.program("bursts", "shared"),
                   str(rounds), "serve"]
        return subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)

    @staticmethod
    def burst(process, launches):
        process.stdin.write(f"{launches}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    def online(self):
        order = random.Random(1)
        for turn in range(self.options.servers):
            with Runtime(self.places, SMT_POLICY="fifo") as one, Runtime(
                self.places, SMT_POLICY="fifo") as other, Runtime(self.places, SMT_POLICY="fifo") as third:
                # Servers are not alike even where they do the same, so each side has the first one, then the
                # second, then the third, and two sides that do the same show by how much.
                sides = ["kept", "none", "none too"]
                sides = sides[turn % 3:] + sides[:turn % 3]
                self.bursts(turn, dict(zip(sides, (one, other, third))), order)
        for rounds in sorted({row["rounds"] for row in self.lines.all if row["part"] == "bursts"}):
            rows = [row for row in self.lines.all if row["part"] == "bursts" and row["rounds"] == rounds]
            self.tell(rounds, rows)

    def bursts(self, turn, runtimes, order):
        for rounds, launches in BURSTS:
            launches = max(1, launches // self.options.shorter)
            processes = {side: self.burst_server(runtime, rounds, side) for side, runtime in runtimes.items()}
            first = {side: self.burst(process, FIRST // self.options.shorter)
                     for side, process in processes.items()}
            for process in processes.values():
                self.burst(process, launches)
            ns = {side: [] for side in runtimes}
            for _ in range(self.options.bursts):
                for side in order.sample(list(runtimes), len(runtimes)):
                    ns[side].append(self.burst(processes[side], launches))
            for process in processes.values():
                process.stdin.close()
                said = process.stdout.read()
                self.failed += process.wait(60) != 0 or "WRONG" in said
            self.lines.add(part="bursts", turn=turn, rounds=rounds, launches=launches, first_ns=first, ns=ns)

    def tell(self, rounds, rows):
        """The difference in per cent between sides: of each set of servers the mean over bursts that followed
        each other, without the largest tenth on both ends (interrupts of other programs); then the mean of
        the sets, and what is known of it."""
        per_launch = {side: statistics.median(ns / row["launches"] / 1e3 for row in rows
                                              for ns in row["ns"][side]) for side in rows[0]["ns"]}
        for side in ("kept", "none too"):
            bursts, sets = [], []
            for row in rows:
                each = sorted(100 * (a / b - 1) for a, b in zip(row["ns"][side], row["ns"]["none"]))
                each = each[len(each) // 10:len(each) - len(each) // 10]
                bursts += each
                sets.append(statistics.mean(each))
            first = [sum(row["first_ns"][each] for row in rows) for each in (side, "none")]
            error = 1.96 * statistics.stdev(bursts) / len(bursts) ** 0.5 if len(bursts) > 1 else float("nan")
            print(f"{rounds} rounds, {side:<8} {per_launch[side]:.3f} us a launch, {per_launch['none']:.3f} "
                  f"without: {statistics.mean(sets):+.3f} % +- {error:.3f} "
                  f"(95 %, {len(bursts)} bursts of {row['launches']}); by set of servers "
                  f"{' '.join(f'{each:+.2f}' for each in sets)}; "
                  f"first launches {100 * (first[0] / first[1] - 1):+.1f} %", flush=True)
            self.lines.add(part="online", rounds=rounds, side=side, percent=statistics.mean(sets),
                           error=error, sets=sets, us=per_launch[side])

    def queries(self):
        done = run([os.path.join(self.places.build, "bin", "bench_models")], self.environment, None, 60)
        print(done["out"] + done["err"], flush=True)
        self.failed += done["rc"] != 0
        self.lines.add(part="queries", rc=done["rc"], out=done["out"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--programs", default=None, help="the examples (build/examples/shared)")
    parser.add_argument("--checksums", default=os.path.join(ROOT, "examples", "checksums.txt"))
    parser.add_argument("--out", default=".")
    parser.add_argument("--parts", default="alone,pairs,counters,online,queries")
    parser.add_argument("--programs-of", default="", help="only these of the eight, by name")
    parser.add_argument("--size", default="large")
    parser.add_argument("--length", type=float, default=0.5,
                        help="seconds of iterations alone; pairs go on for twice that")
    parser.add_argument("--rounds", type=int, default=1, help="of all pairs")
    parser.add_argument("--bursts", type=int, default=40, help="of each side and set of servers")
    parser.add_argument("--servers", type=int, default=3, help="sets of servers")
    parser.add_argument("--shorter", type=int, default=1, help="bursts have so many times fewer launches")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--reserve", type=float, default=30, help="of that, for what comes after the pairs")
    parser.add_argument("--device", default="", help="sim: a try without a GPU")
    options = parser.parse_args()
    options.programs = options.programs or os.path.join(options.build, "examples", "shared")
    os.makedirs(options.out, exist_ok=True)
    models = Models(options)
    for part in options.parts.split(","):
        print(f"== {part}", flush=True)
        try:
            getattr(models, part)()
        # the other parts still run
        except (OSError, ValueError, KeyError, IndexError, ZeroDivisionError,
                subprocess.TimeoutExpired) as error:
            models.failed += 1
            print(f"{part}: {error!r}", flush=True)
        print(f"-- {part}: {models.left():.0f} s left", flush=True)
    return 1 if models.failed else 0


if __name__ == "__main__":
    sys.exit(main())
