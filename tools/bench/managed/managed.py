#!/usr/bin/env python3
"""Managed kernels on a GPU: what they cost undisturbed, how fast they stop, what that buys, and whether
results stay the same meanwhile. One JSON line a run; a table at the end. Exit code 0 when every result was
right; figures are for people to judge.

  overhead   each example natively and in managed form under smt, interleaved: kernel times of each iteration
  stress     each example in managed form, stopped, moved, resized and sliced at random: its result, and how
             long each stop took from the decision to the last worker gone, beside the blocks that it found at
             work
  first      a small urgent program has a request now and then while each example runs: from the decision to
             stop it to the last worker gone, and to the first block of the urgent one
  stops      examples stopped and let go on again and again, until each was stopped half way --stops times or
             time is over: results, and how many launches were stopped half way
  placement  each example with one random table of quotas after the other: whether its workers kept to them
  share      a small urgent program behind a large one: smt by priority, MPS, MPS with client priority,
             time-slicing; interleaved
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from clock import Clock, SameClock, Shift  # noqa: E402
from first import first_blocks  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, run, tail  # noqa: E402
from printed import CHECKSUM, TIMES, quantile, read_checksums  # noqa: E402
from share import MODES, PAIRS, Share  # noqa: E402
from stops import Journal, Stops  # noqa: E402

STOPS_ONLY, QUOTAS_ONLY = 1 << 31, 3 << 30   # in a seed of SMT_STRESS
PLACED = re.compile(r"placed by (\d+) tables of quotas: (\d+) blocks by (\d+) workers, (\d+) blocks astray, "
                    r"(\d+) workers at most "
                    r"on a multiprocessor, (\d+) above its quota, (\d+) workers not known")


class Managed:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.lines = Lines(os.path.join(options.out, "managed.jsonl"))
        self.checksums = read_checksums(options.checksums)
        self.environment = base_environment()
        if options.device:   # to try this script
            self.environment.update(SMT_DEVICE=options.device, SMT_REAL_DRIVER="none",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))
        self.wrong = 0
        self.names = sorted(n for n in os.listdir(options.managed) if re.search(options.select, n))

    def program(self, name, managed):
        return os.path.join(self.options.managed if managed else self.options.native, name)

    def right(self, done, name, size):
        found = CHECKSUM.search(done["out"])
        return done["rc"] == 0 and found is not None and found[1] == self.checksums[name, size]

    def once(self, part, name, size, iterations, managed, runtime, **fields):
        command = [self.program(name, managed), "--size", size, "--iterations", str(iterations), "--times"]
        if runtime:
            variables = {**self.environment, **runtime.variables(**fields.pop("variables", {}))}
            done = Child(command, variables, self.places.preload, 120).finish()
        else:
            done = run(command, self.environment, None, 120)
        found, checksum = TIMES.search(done["out"]), CHECKSUM.search(done["out"])
        times = [float(t) for t in found[1].split()] if found else []
        ok = self.right(done, name, size)
        if not ok:
            self.wrong += 1
            fields.update(rc=done["rc"], out=tail(done["out"]), err=tail(done["err"]))
        if part == "overhead":
            fields["times_ms"] = times
        return self.lines.add(part=part, program=name, size=size, iterations=iterations, ok=ok,
                              checksum=checksum and checksum[1],
                              seconds=done["seconds"], **fields)

    def log(self, runtime, *more):
        text = run([self.places.smt, "log", "--json",
                    *more], {**self.environment, **runtime.variables()}, None, 120)["out"]
        return [json.loads(line) for line in text.splitlines()]

    # ---- parts

    def overhead(self, budget):
        end = time.monotonic() + budget
        rows = {}
        # A tenant with next to nothing to do. Where that is a more urgent one others may be stopped, which
        # costs something by itself.
        other = None
        with Runtime(self.places) as runtime:
            if self.options.company:
                other = Child([self.options.arrivals, "100000", "300000"],
                              {**self.environment, **runtime.variables(SMT_PRIORITY=self.options.company)},
                              self.places.preload, guard=False)
            for turn in range(self.options.rounds):
                for name in self.names:
                    if time.monotonic() > end:
                        break
                    for side in ("native", "managed"):
                        row = self.once("overhead", name, "large", self.options.iterations, side == "managed",
                                        runtime if side == "managed" else None, side=side, round=turn,
                                        company=self.options.company)
                        # The first iterations are those in which smt learns how long a block takes.
                        rows.setdefault((name, side), []).extend(row["times_ms"][self.options.warmup:])
            if other:
                other.kill()
                other.finish()
        ratios = []
        print(f"{'program':<20} {'native ms':>10} {'managed ms':>10} {'ratio':>7} {'runs':>5}  spread "
              "native, managed")
        for name in self.names:
            native, managed = rows.get((name, "native")), rows.get((name, "managed"))
            if not native or not managed:
                continue
            ratio = statistics.median(managed) / statistics.median(native)
            ratios.append(ratio)
            spread = [f"{(quantile(v, .9) - quantile(v, .1)) / statistics.median(v):.3f}"
                      for v in (native, managed)]
            print(f"{name:<20} {statistics.median(native):>10.4f} {statistics.median(managed):>10.4f} "
                  f"{ratio:>7.3f} {len(managed):>5}  {', '.join(spread)}")
        if ratios:
            print(f"geometric mean {statistics.geometric_mean(ratios):.4f}, largest {max(ratios):.3f}")

    def again_and_again(self, part, name, seconds, size, iterations, runtime, seed_of):
        """Runs under stress for so long, at least one."""
        begun, rows = time.monotonic(), []
        while not rows or (rows[-1]["ok"] and time.monotonic() - begun < seconds):
            seed = seed_of(len(rows) + 1)
            rows.append(self.once(part, name, size, iterations, True, runtime,
                                  variables={"SMT_STRESS": str(seed)}, seed=seed))
        return rows

    def stress(self, budget):
        """Every other run is stopped as often as possible, and no more. Workers write down when they took
        their last ticket, so the journal has, for each stop, the longest ticket that it found at work (to its
        end: what was left of it is not more)."""
        end = time.monotonic() + budget
        print(f"{'':<20} {'':>7} {'':>6} {'':>4} {'ticket us':>17} {'stop us':>26} "
              f"{'stop less its longest ticket':>29} {'less one block':>15}")
        print(f"{'program':<20} {'right':>7} {'stops':>6} {'each':>4} {'p50':>8} {'max':>8} {'p50':>8} "
              f"{'p99':>8} {'max':>8} "
              f"{'p50':>9} {'p99':>9} {'max':>9} {'p50':>7} {'p99':>7}")
        everything, good = [], 0
        for left, name in zip(range(len(self.names), 0, -1), self.names):
            with Runtime(self.places, SMT_JOURNAL="mapping") as runtime:
                rows = self.again_and_again("stress", name, (end - time.monotonic()) / left * 0.85,
                                            self.options.stress_size,
                                            self.options.stress_iterations, runtime,
                                            lambda n: n if n % 2 else STOPS_ONLY + n)
                stops = [entry for entry in self.log(runtime) if entry["kind"] == "stopped"]
            known = [(e["value"] / 1e3, (e["end_ns"] - e["start_ns"]) / 1e3, e["ticket_blocks"])
                     for e in stops if "ticket_blocks" in e]
            right = sum(row["ok"] for row in rows)
            self.lines.add(part="stress-stops", program=name, runs=len(rows), right=right,
                           nothing_at_work=len(stops) - len(known),
                           columns=["stop_us", "ticket_us", "blocks"],
                           stops=[[round(a, 2), round(b, 2), c] for a, b, c in known],
                           idle_us=[e["value"] / 1e3 for e in stops if "ticket_blocks" not in e])
            if not known:
                print(f"{name:<20} {right:>3}/{len(rows):<3} no stops that found a block at work")
                continue
            us, tickets = [k[0] for k in known], [k[1] for k in known]
            beyond, block = [a - b for a, b, _ in known], [a - b / c for a, b, c in known]
            everything += beyond
            good += quantile(beyond, .5) <= 15 and quantile(beyond, .99) <= 50
            print(f"{name:<20} {right:>3}/{len(rows):<3} {len(known):>6} {max(k[2] for k in known):>4} "
                  f"{quantile(tickets, .5):>8.1f} {max(tickets):>8.1f} "
                  f"{quantile(us, .5):>8.1f} {quantile(us, .99):>8.1f} {max(us):>8.1f} "
                  f"{quantile(beyond, .5):>9.1f} "
                  f"{quantile(beyond, .99):>9.1f} {max(beyond):>9.1f} {quantile(block, .5):>7.1f} "
                  f"{quantile(block, .99):>7.1f}")
        if everything:
            print(f"all {len(everything)} stops, less the longest ticket: p50 "
                  f"{quantile(everything, .5):.1f}, p99 {quantile(everything, .99):.1f}, "
                  f"max {max(everything):.1f} us; {good} of {len(self.names)} programs within p50 15 "
                  "and p99 50")

    def first(self, budget):
        """The urgent one's requests are 2 ms apart, so each finds the other at work. It starts before the
        other has filled its queue: to load a program waits for what is queued."""
        end = time.monotonic() + budget
        clock = SameClock() if self.options.device else Clock()
        print(f"{'':<20} {'':>5} {'':>5} "
              f"{'':>8}  {'gone':^33}  {'first block of the urgent one':^33} {'':>6}")
        print(f"{'stopped':<20} {'right':>5} {'stops':>5} {'block us':>8} {'seen p50':>9}" +
              f"{'p50':>9} {'p99':>8} {'less a block':>8} {'p99':>8}" * 2 +
              f" {'clocks':>7}")
        for left, name in zip(range(len(self.names), 0, -1), self.names):
            seconds = max(1.0, (end - time.monotonic()) / left - 1.5)
            with Runtime(self.places, SMT_JOURNAL="mapping", SMT_POLICY="priority") as runtime:
                def child(command, **variables):
                    return Child(command, {**self.environment, **runtime.variables(**variables)},
                                 self.places.preload, 120, guard=False)

                before = clock.ask()
                front = child([self.options.arrivals,
                               "20" if self.options.device else str(int(seconds * 500)), "2000"],
                              SMT_PRIORITY="high", SMT_TENANT="urgent")
                back = child([self.program(name, True), "--size", self.options.stress_size, "--iterations",
                              str(self.options.first_iterations),
                              "--times"], SMT_PRIORITY="low", SMT_TENANT="stopped")
                served = front.finish()
                early = back.process.poll() is None
                if early:
                    back.kill()
                done = back.finish()
                shift = Shift(before, clock.ask())
                found = first_blocks(self.log(runtime, "--mapping"), "stopped", "urgent", shift)
            ok = served["rc"] == 0 and (early or self.right(done, name, self.options.stress_size))
            self.wrong += not ok
            self.lines.add(part="first-blocks", program=name, ok=ok, cut_off=early, seconds=served["seconds"],
                           clocks=[shift.before, shift.after], **found)

            def of(what, *which):
                return " ".join(f"{quantile(found[what], q):>8.1f}" if found[what] else f"{'-':>8}"
                                for q in which)

            print(f"{name:<20} {'yes' if ok else 'NO':>5} {len(found['seen_us']):>5} {of('block_us', .5)} "
                  f"{of('seen_us', .5)}  " +
                  "  ".join(f"{of(what + '_us', .5, .99)} {of(what + '_less_block_us', .5, .99)}"
                            for what in ("gone", "first")) +
                  f" {shift.give_or_take / 1e3:>7.1f}", flush=True)

    def stops(self, budget):
        with Runtime(self.places) as runtime:
            def one(name, size, iterations, tenant, seed):
                return self.once("stops", name, size, iterations, True, runtime,
                                 variables={"SMT_STRESS": str(seed), "SMT_TENANT": tenant}, seed=seed)

            one(self.names[0], "trivial", 1, "first", STOPS_ONLY)   # there is a server from here on
            journal = Journal(self.places, {**self.environment, **runtime.variables()})
            begun = time.monotonic()
            counts = Stops(self.names, one, journal, self.options, begun + budget).all()
            seconds = time.monotonic() - begun
            journal.close()
        print(f"{'program':<20} {'size':<8} {'stopped half way':>17} {'right':>9} {'us each':>8}")
        for name, count in counts.items():
            size = Stops.size_of(name, self.options)
            self.lines.add(part="stopped", program=name, size=size, half_way=count.half_way, runs=count.runs,
                           right=count.right)
            print(f"{name:<20} {size:<8} {count.half_way:>17} {count.right:>4}/{count.runs:<4} "
                  f"{count.seconds_each * 1e6:>8.0f}")
        total = sum(count.half_way for count in counts.values())
        there = sum(count.half_way >= self.options.stops for count in counts.values())
        print(f"{total} in {seconds:.0f} s; {there} of {len(counts)} programs have {self.options.stops}")

    def placement(self, budget):
        end = time.monotonic() + budget
        print(f"{'program':<20} {'right':>7} {'tables':>7} {'workers':>8} {'blocks':>10} "
              f"{'where they should be':>21} {'most on an SM':>14} {'above quota':>12} {'not known':>10}")
        sums = [0] * 7
        for left, name in zip(range(len(self.names), 0, -1), self.names):
            each, begun, rows, found = (end - time.monotonic()) / left * 0.85, time.monotonic(), [], [0] * 7
            with Runtime(self.places, SMT_JOURNAL="mapping") as runtime:
                while not rows or (rows[-1]["ok"] and found[0] < self.options.tables and
                                   time.monotonic() - begun < each):
                    rows += self.again_and_again("placement", name, 0, self.options.placement_size,
                                                 self.options.placement_iterations,
                                                 runtime, lambda _: QUOTAS_ONLY + len(rows) + 1)
                    found = [0] * 7
                    for entry in self.log(runtime):
                        if entry["kind"] == "note" and (match := PLACED.search(entry["text"])):
                            found = add_up(found, [int(n) for n in match.groups()])
            right = sum(row["ok"] for row in rows)
            self.lines.add(part="placed", program=name, runs=len(rows), right=right,
                           **dict(zip(("tables", "blocks", "workers", "astray", "fullest", "beyond", "lost"),
                                      found)))
            print_placed(name, f"{right}/{len(rows)}", found)
            sums = add_up(sums, found)
        print_placed("all", "", sums)

    def share(self, budget):
        Share(self, time.monotonic() + budget).all()


def add_up(a, b):
    """Tables, blocks, workers, astray, the most of the next two, lost."""
    return [max(x, y) if i in (4, 5) else x + y for i, (x, y) in enumerate(zip(a, b))]


def print_placed(name, right, sums):
    tables, blocks, workers, astray, fullest, beyond, lost = sums
    share = f"{100 * (1 - astray / blocks):.4f} %" if blocks else "-"
    print(f"{name:<20} {right:>7} {tables:>7} {workers:>8} {blocks:>10} {share:>21} {fullest:>14} "
          f"{beyond:>12} {lost:>10}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--device", help="sim: for examples with the shared runtime at size trivial")
    parser.add_argument("--managed", default="build/examples/managed/static",
                        help="folder of the programs in managed form")
    parser.add_argument("--native", default="build/examples/static")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--select", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--company", choices=["normal", "high"],
                        help="overhead: beside a tenant of that priority that does next to nothing")
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--stress-iterations", type=int, default=30)
    parser.add_argument("--stress-size", default="large")
    parser.add_argument("--first-iterations", type=int, default=2000)
    parser.add_argument("--arrivals", default="build/bin/gpu/shared/arrivals")
    parser.add_argument("--stops", type=int, default=100_000)
    parser.add_argument("--stops-size", default="small", help="of most programs")
    parser.add_argument("--stops-iterations", type=int, default=20, help="of a program's first run")
    parser.add_argument("--stops-seconds", type=float, default=4, help="that later ones should take")
    parser.add_argument("--stops-at-once", type=int, default=7, help="programs")
    parser.add_argument("--tables", type=int, default=100, help="of quotas, for each program")
    parser.add_argument("--placement-size", default="small")
    parser.add_argument("--placement-iterations", type=int, default=40)
    parser.add_argument("--share-rounds", type=int, default=5)
    parser.add_argument("--share-pairs", type=int, default=4, help=f"the first of {len(PAIRS)}")
    parser.add_argument("--share-modes", default=",".join(MODES))
    parser.add_argument("--share-iterations", type=int, default=60, help="of the small program")
    parser.add_argument("--share-size", default="large", help="of the large one")
    parser.add_argument("--share-small-size", default="small")
    parser.add_argument("--share-head-start", type=float, default=0.8, help="seconds")
    parser.add_argument("--parts", default="overhead,stress,share")
    parser.add_argument("--seconds", default="120,100,200", help="for each part")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    managed = Managed(options)
    for part, seconds in zip(options.parts.split(","), options.seconds.split(",")):
        print(f"== {part}")
        getattr(managed, part)(float(seconds))
        sys.stdout.flush()
    print(f"{managed.wrong} wrong results")
    return 1 if managed.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
