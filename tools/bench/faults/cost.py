#!/usr/bin/env python3
"""What it costs to be ready for a takeover, without a fault: SMT_KEEPER=takeover against SMT_KEEPER=0. With
--of turns, what turns for memory cost where all fits: SMT_LIMITS=oversubscribe=1 against none.

    cost.py --out OUT [--build BUILD] [--rounds 12] [--budget SECONDS] [--repeats 2] [--startups 5]
            [--of turns] [--example NAME] [--within 0.01] [--in-turns launch,malloc] [--device sim]

In each round a server of either kind, one after the other, in an order that changes from round to round. On
each: --repeats processes of bench_remoting that measure launches, copies (pageable and pinned, 4 KiB, 1 MiB,
on a GPU 256 MiB) and allocations, and --startups runs of an example (--example), from its start to its end. A
server measures when its standby is ready. The first round is not counted: it compiles forms. The table has
for each figure the ratio of the medians over all processes, as time (1.01: a takeover costs 1 %), and the
range of the ratios of single rounds; more than --within is marked. Beside it, what the processes take: device
memory that a program finds free natively, without a server and with an idle one of either kind; the same by
nvidia-smi; and the resident and proportional memory of each process of the server.

--in-turns: both servers are there all the time, and in each round a process of each of these groups of
bench_remoting, and the example's, have their turns on each. Noise of the machine then meets both sides alike,
so small differences are measured by this. What the processes take is not.

Results: OUT/cost.jsonl with a line a figure of a process, OUT/cost.json with the table. No round is begun
after the budget, less what a round took. The exit code is 1 where a process failed, a copy was wrong, a
checksum was another one, or nothing was measured; a ratio is no failure.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import Places, Runtime, compute_apps, gpu_memory_used, run, tail  # noqa: E402
from logs import await_standby, whole_log  # noqa: E402
from measurement import Measurement, built_twice  # noqa: E402
from printed import CHECKSUM, read_checksums  # noqa: E402

OFF = {"SMT_KEEPER": "0"}
SETTINGS = {"takeover": {"SMT_KEEPER": "takeover"}, "turns": {**OFF, "SMT_LIMITS": "oversubscribe=1"}}
DIVISOR = {None: 1, "sim": 100}   # of counts of calls
PATIENCE = 120
FIGURE = re.compile(r"^(\w+) (\S+)$", re.M)
RATES = ("_per_s", "_GBps")   # of figures of which more is better


def resident(pid):
    """MiB of the process: resident (RSS), and proportional (PSS) where the system says it. None where it has
    ended."""
    found = {}
    for name in ("status", "smaps_rollup"):
        try:
            with open(f"/proc/{pid}/{name}") as file:
                found.update(re.findall(r"^(VmRSS|Pss): +(\d+) kB", file.read(), re.M))
        except OSError:   # it has ended, or there is no such file
            pass
    names = {"VmRSS": "rss_mib", "Pss": "pss_mib"}
    return {names[name]: round(int(size) / 1024, 1) for name, size in found.items()} or None


class Cost(Measurement):
    def __init__(self, options):
        super().__init__(options, Places(options.build), "cost.jsonl", {})
        self.found = []
        self.sides = {"off": OFF, options.of: SETTINGS[options.of]}
        self.sim = options.device == "sim"
        options.program = options.bench
        self.bench, self.environment = built_twice(options, "bench_remoting", one_context=1, grace=20)
        kind, self.size = ("shared", "trivial") if self.sim else ("static", "small")
        self.example = os.path.join(self.places.build, "examples", kind, options.example)
        self.checksum = read_checksums(os.path.join(harness.ROOT, "examples", "checksums.txt")).get(
            (options.example, self.size))
        self.wrong, self.rounds = [], 0

    def fails(self, what):
        self.wrong.append(what)
        print(f"WRONG: {what}", flush=True)

    def measure(self):
        if self.options.in_turns:
            self.take_turns(self.options.in_turns.split(","))
        else:
            self.one_after_the_other()

    def one_after_the_other(self):
        longest = 0.0
        for number in range(self.options.rounds + 1):   # the first one is not counted
            begun = time.monotonic()
            if begun + longest > self.end:
                print(f"the budget of {self.options.budget:g} s is over before round {number}")
                return
            sides = list(self.sides)[::1 if number % 2 else -1]
            self.free("none", number)
            for side in sides:
                self.server(side, number)
            self.rounds = number
            longest = max(longest, time.monotonic() - begun)
            print(f"round {number}: {time.monotonic() - begun:.1f} s", flush=True)

    def take_turns(self, groups):
        with contextlib.ExitStack() as stack:
            runtimes = {side: stack.enter_context(Runtime(self.places, **settings))
                        for side, settings in self.sides.items()}
            if not all([self.begins(runtime, side) for side, runtime in runtimes.items()]):
                return
            for number in range(self.options.rounds + 1):
                if time.monotonic() > self.end:
                    print(f"the budget of {self.options.budget:g} s is over before round {number}")
                    return
                for side in list(runtimes)[::1 if number % 2 else -1]:
                    for group in groups:
                        self.add(side, number, **(self.bench_run(runtimes[side], group, side) or {}))
                    self.startups(runtimes[side], side, number)
                self.rounds = number

    def begins(self, runtime, side):
        """The server's process, when its standby is ready; 0: it does not begin."""
        first = self.bench_run(runtime, "startup", side)
        pid = (runtime.status() or {"pid": 0})["pid"]
        if first is None or not pid:
            self.fails(f"{side}: no server: {runtime.log(400)}")
            return 0
        if side == "takeover" and not await_standby(runtime, pid):
            self.fails(f"the standby is not ready: {runtime.log(600)}")
            return 0
        return pid

    def add(self, side, number, **figures):
        for name, value in figures.items():
            self.lines.add(round=number, side=side, figure=name, value=value)

    def run(self, command, runtime=None, **variables):
        more = runtime.variables(SMT_TENANT="cost", **variables) if runtime else {}
        return run(command, {**self.environment, **more}, self.places.preload if runtime else None, PATIENCE)

    def server(self, side, number):
        with Runtime(self.places, **self.sides[side]) as runtime:
            if not (pid := self.begins(runtime, side)):
                return
            for _ in range(self.options.repeats):
                found = self.bench_run(runtime, "short", side) or {}
                right = [found.pop(f"{kind}_right", 0) == 1 for kind in ("pageable", "pinned")]
                if found and not all(right):
                    self.fails(f"{side}: words of a copy are wrong")
                self.add(side, number, **found)
            self.startups(runtime, side, number)
            self.free(side, number)
            self.processes(runtime, side, number, pid)

    def bench_run(self, runtime, group, side):
        """Its figures; None: it failed."""
        done = self.run([self.bench, "--child", group, str(DIVISOR[self.options.device])], runtime)
        if done["rc"] != 0:
            self.fails(f"{side}: {group}: exit code {done['rc']}: {tail(done['out'] + done['err'], 400)}")
            return None
        return {name: float(value) for name, value in FIGURE.findall(done["out"])}

    def startups(self, runtime, side, number):
        for _ in range(self.options.startups):
            done = self.run([self.example, "--size", self.size, "--iterations", "1"], runtime)
            checksum = CHECKSUM.search(done["out"])
            if done["rc"] != 0 or not checksum or checksum[1] != self.checksum:
                return self.fails(f"{side}: {self.options.example}: exit code {done['rc']}: "
                                  f"{tail(done['out'] + done['err'], 400)}")
            self.add(side, number, program_s=done["seconds"])

    def free(self, side, number):
        """Device memory, natively; a GPU's alone."""
        if self.sim:
            return
        used = gpu_memory_used()
        if used is not None:
            self.add(side, number, smi_used_MiB=used)
        done = self.run([self.bench, "--child", "free"])
        found = FIGURE.search(done["out"])
        if done["rc"] != 0 or not found:
            return self.fails(f"natively: {tail(done['out'] + done['err'], 400)}")
        self.add(side, number, free_MiB=float(found[2]))

    def processes(self, runtime, side, number, server):
        """The server, its standby and the keeper, each with its memory."""
        log = whole_log(runtime)
        standbys = {int(pid) for pid in re.findall(r"a standby, process (\d+), is ready", log)}
        keepers = {int(pid) for pid in re.findall(r"belongs to smt-keeper, process (\d+)", log)}
        on_gpu = {pid: mib for pid, _, mib in compute_apps() or [] if mib >= 0}
        for name, pids in (("server", {server}), ("standby", standbys), ("keeper", keepers)):
            found = next((each for each in map(resident, pids) if each), None)
            if side == "takeover" and not found:
                self.fails(f"{name}: no such process among {sorted(pids)}")
            for figure, value in (found or {}).items():
                self.add(side, number, **{f"{name}_{figure}": value})
            for pid in pids & set(on_gpu):
                self.add(side, number, **{f"{name}_gpu_mib": on_gpu[pid]})

    def values(self, side, figure, number=None):
        return [row["value"] for row in self.lines.all if row["side"] == side and row["figure"] == figure
                and (row["round"] > 0 if number is None else row["round"] == number)]

    def ratio(self, figure):
        """Of the medians, as time; the least and the most of a round; each side's median and n."""
        sides = {side: self.values(side, figure) for side in self.sides}
        if not all(sides.values()):
            return None
        turned = figure.endswith(RATES)

        def of(values):
            off, on = (statistics.median(values[side]) for side in self.sides)
            return (off / on if turned else on / off) if on and off else float("nan")
        numbers = sorted({row["round"] for row in self.lines.all} - {0})
        rounds = [{side: self.values(side, figure, number) for side in self.sides} for number in numbers]
        each = [of(values) for values in rounds if all(values.values())]
        if not each:   # it was cut off
            return None
        return {"figure": figure, "ratio": of(sides), "low": min(each), "high": max(each),
                "rounds": len(each), "n": min(map(len, sides.values())),
                **{side: statistics.median(values) for side, values in sides.items()}}

    def table(self):
        figures = dict.fromkeys(row["figure"] for row in self.lines.all)
        timed = [name for name in figures if not name.endswith(("_mib", "_MiB"))]
        rows = [row for row in map(self.ratio, timed) if row]
        memory = {figure: {side: statistics.median(self.values(side, figure))
                           for side in ("none", *self.sides) if self.values(side, figure)}
                  for figure in figures if figure not in timed}
        print(f"\n{'figure':28} {'off':>12} {self.options.of:>12} {'ratio':>7}  "
              f"{'least..most of a round':22} n")
        for row in rows:
            beyond = "" if row["ratio"] <= 1 + self.options.within else "  more than wanted"
            spread = f"{row['low']:.3f}..{row['high']:.3f}"
            of = row[self.options.of]
            print(f"{row['figure']:28} {row['off']:12.5g} {of:12.5g} {row['ratio']:7.4f}  "
                  f"{spread:22} {row['n']}{beyond}")
        print(f"\n{'MiB, median':28} {'no server':>12} {'off':>12} {self.options.of:>12}")
        for figure, found in memory.items():
            cells = (format(found[side], ".1f") if side in found else "-" for side in ("none", *self.sides))
            print(f"{figure:28} " + " ".join(f"{cell:>12}" for cell in cells))
        good = sum(row["ratio"] <= 1 + self.options.within for row in rows)
        print(f"\n{good} of {len(rows)} figures cost {self.options.within:.1%} at most; "
              f"{self.rounds} rounds; {len(self.wrong)} wrong")
        self.found = rows
        with open(os.path.join(self.options.out, "cost.json"), "w") as file:
            json.dump({"device": self.options.device or "gpu", "rounds": self.rounds, "ratios": rows,
                       "memory_mib": memory, "wrong": self.wrong}, file, indent=1)

    def bad(self):
        return bool(self.wrong) or not self.found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--bench", help="in place of BUILD/bin/bench_remoting")
    parser.add_argument("--out", required=True)
    parser.add_argument("--of", choices=SETTINGS, default="takeover")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=2, help="processes that measure, of a server")
    parser.add_argument("--startups", type=int, default=5, help="runs of the example, of a server")
    parser.add_argument("--example", default="vector_add", help="its name; of size small")
    parser.add_argument("--within", type=float, default=0.01, help="of a ratio: more is marked")
    parser.add_argument("--in-turns", metavar="GROUPS", help="of bench_remoting, on both servers by turns")
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    return Cost(options).all()


if __name__ == "__main__":
    sys.exit(main())
