#!/usr/bin/env python3
"""Managed kernels on a GPU: what they cost undisturbed, how fast they stop, what that buys, and whether
results stay the same meanwhile. One JSON line a run; a table at the end. Exit code 0 when every result was
right; figures are for people to judge.

  overhead   each example natively and in managed form under smt, interleaved: kernel times of each iteration
  stress     each example in managed form, stopped, moved, resized and sliced at random: its result, and how
             long each stop took from the decision to the last worker gone
  stops      all examples at once, each stopped and let go on again and again until it has been stopped half way
             --stops times or time is over: results, and how many launches were stopped half way
  share      a small urgent program behind a large one: smt by priority, smt fifo, MPS, MPS with client
             priority, time-slicing; interleaved
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

from harness import Child, Lines, Places, Runtime, base_environment, run, tail

TIMES = re.compile(r"^times_ms (.*)$", re.MULTILINE)
HALF_WAY = re.compile(r"(\d+) launches stopped half way")
STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
CHECKSUM = re.compile(r"^checksum (\w+)$", re.MULTILINE)
# Small, large, and iterations that keep the large one busy for five seconds.
PAIRS = [("nearest_neighbour", "nbody", 700), ("vector_add", "black_scholes", 800), ("matrix_multiply", "tpacf", 230)]
MODES = ["priority", "fifo", "time-sliced", "mps", "mps-priority"]


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else None


def read_checksums(path):
    with open(path) as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {(name, size): checksum for name, size, checksum in rows}


class Managed:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.lines = Lines(os.path.join(options.out, "managed.jsonl"))
        self.checksums = read_checksums(options.checksums)
        self.environment = base_environment()
        self.wrong = 0
        self.names = sorted(n for n in os.listdir(options.managed) if re.search(options.select, n))

    def program(self, name, managed):
        return os.path.join(self.options.managed if managed else self.options.native, name)

    def once(self, part, name, size, iterations, managed, runtime, environment=None, **fields):
        command = [self.program(name, managed), "--size", size, "--iterations", str(iterations), "--times"]
        variables = {**self.environment, **(environment or {})}
        if runtime:
            done = Child(command, {**variables, **runtime.variables(**fields.pop("variables", {}))}, self.places.preload, 120).finish()
        else:
            done = run(command, variables, None, 120)
        found, checksum = TIMES.search(done["out"]), CHECKSUM.search(done["out"])
        ok = done["rc"] == 0 and checksum is not None and checksum[1] == self.checksums[name, size]
        times = [float(t) for t in found[1].split()] if found else []
        if not ok:
            self.wrong += 1
            fields.update(rc=done["rc"], out=tail(done["out"]), err=tail(done["err"]))
        return self.lines.add(part=part, program=name, size=size, ok=ok, checksum=checksum and checksum[1],
                              seconds=done["seconds"], times_ms=times, **fields)

    # ---- parts

    def overhead(self, budget):
        end = time.monotonic() + budget
        rows = {}
        with Runtime(self.places) as runtime:
            for turn in range(self.options.rounds):
                for name in self.names:
                    if time.monotonic() > end:
                        break
                    for side in ("native", "managed"):
                        row = self.once("overhead", name, "large", self.options.iterations, side == "managed",
                                        runtime if side == "managed" else None, side=side, round=turn)
                        # The first iterations are those in which smt learns how long a block takes.
                        rows.setdefault((name, side), []).extend(row["times_ms"][self.options.warmup:])
        ratios = []
        print(f"{'program':<20} {'native ms':>10} {'managed ms':>10} {'ratio':>7} {'runs':>5}  spread native, managed")
        for name in self.names:
            native, managed = rows.get((name, "native")), rows.get((name, "managed"))
            if not native or not managed:
                continue
            ratio = statistics.median(managed) / statistics.median(native)
            ratios.append(ratio)
            spread = [f"{(quantile(v, .9) - quantile(v, .1)) / statistics.median(v):.3f}" for v in (native, managed)]
            print(f"{name:<20} {statistics.median(native):>10.4f} {statistics.median(managed):>10.4f} {ratio:>7.3f} {len(managed):>5}  {', '.join(spread)}")
        if ratios:
            print(f"geometric mean {statistics.geometric_mean(ratios):.4f}, largest {max(ratios):.3f}")

    def stress(self, budget):
        end = time.monotonic() + budget
        print(f"{'program':<20} {'right':>6} {'stops':>7} {'p50 us':>8} {'p99 us':>8} {'max us':>8} {'alone ms':>9}")
        each = budget / max(1, len(self.names))
        for name in self.names:
            begun, runs, right = time.monotonic(), 0, 0
            with Runtime(self.places) as runtime:
                while runs < 1 or (time.monotonic() - begun < each * 0.7 and time.monotonic() < end):
                    runs += 1
                    row = self.once("stress", name, "large", self.options.stress_iterations, True, runtime,
                                    variables={"SMT_STRESS": str(runs)}, seed=runs)
                    right += row["ok"]
                log = run([self.places.smt, "log", "--json"], {**self.environment, **runtime.variables()}, None, 60)["out"]
            stops = [json.loads(line)["value"] / 1e3 for line in log.splitlines() if '"kind":"stopped"' in line]
            self.lines.add(part="stops", program=name, runs=runs, right=right, us=[round(s, 2) for s in stops])
            if stops:
                print(f"{name:<20} {right:>3}/{runs:<2} {len(stops):>7} {quantile(stops, .5):>8.1f} {quantile(stops, .99):>8.1f} {max(stops):>8.1f}")
            else:
                print(f"{name:<20} {right:>3}/{runs:<2} no stops")

    def stops(self, budget):
        end = time.monotonic() + budget
        counts = {name: [0, 0, 0] for name in self.names}   # stopped half way, runs, right
        with Runtime(self.places) as runtime:
            def one(name, seed):
                row = self.once("stops", name, self.options.stops_size, self.options.stops_iterations, True, runtime,
                                variables={"SMT_STRESS": str(STOPS_ONLY + seed), "SMT_TENANT": name}, seed=seed)
                counts[name][1] += 1
                counts[name][2] += row["ok"]

            def again_and_again(name):
                seed = 1
                while time.monotonic() < end and counts[name][0] < self.options.stops:
                    seed += 1
                    one(name, seed)

            def count(lines):
                for line in lines:
                    if "half way" in line:
                        note = json.loads(line)
                        counts[note["tenant"]][0] += int(HALF_WAY.search(note["text"])[1])

            one(self.names[0], 1)   # there is a server from here on
            journal = subprocess.Popen([self.places.smt, "log", "--json", "--follow"], stdout=subprocess.PIPE, text=True,
                                       env={**self.environment, **runtime.variables()})
            reader = threading.Thread(target=count, args=(journal.stdout,), daemon=True)
            reader.start()
            threads = [threading.Thread(target=again_and_again, args=(name,)) for name in self.names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            time.sleep(1)   # what the journal still says; measured, not asserted
            journal.kill()
            reader.join(5)
        print(f"{'program':<20} {'stopped half way':>17} {'right':>9}")
        for name, (stopped, runs, right) in counts.items():
            self.lines.add(part="stopped", program=name, half_way=stopped, runs=runs, right=right)
            print(f"{name:<20} {stopped:>17} {right:>4}/{runs:<4}")

    def share(self, budget):
        end = time.monotonic() + budget
        found = {}
        for turn in range(self.options.share_rounds):
            for small, large, background in PAIRS:
                for mode in MODES:
                    if time.monotonic() > end:
                        break
                    row = self.pair(small, large, background, mode, turn)
                    entry = found.setdefault((small, large, mode), ([], []))
                    entry[0].extend(row["small_ms"])
                    entry[1].extend(row["large_ms"])
        print(f"{'small':<20} {'behind':<16} {'mode':<13} {'p50 ms':>9} {'p99 ms':>9} {'large ms':>9} {'n':>5}")
        for (small, large, mode), (times, others) in found.items():
            if times and others:
                print(f"{small:<20} {large:<16} {mode:<13} {quantile(times, .5):>9.4f} {quantile(times, .99):>9.4f} "
                      f"{statistics.median(others):>9.3f} {len(times):>5}")

    def pair(self, small, large, background, mode, turn):
        smt = mode in ("priority", "fifo")
        with Runtime(self.places, SMT_POLICY=mode if smt else "fifo") as runtime, Mps(mode) as mps:
            variables = {**self.environment, **mps.variables}
            preload = self.places.preload if smt else None
            tenants = [runtime.variables(SMT_PRIORITY=p) if smt else mps.client(p) for p in ("low", "high")]
            back = Child([self.program(large, smt), "--size", "large", "--iterations", str(background), "--times"],
                         {**variables, **tenants[0]}, preload, 60)
            time.sleep(1.5)   # until it computes; measured, not asserted
            front = Child([self.program(small, smt), "--size", "small", "--iterations", "100", "--times"],
                          {**variables, **tenants[1]}, preload, 60).finish()
            behind = back.finish()
        times = [[float(t) for t in m[1].split()] if (m := TIMES.search(d["out"])) else [] for d in (front, behind)]
        ok = all(d["rc"] == 0 and (c := CHECKSUM.search(d["out"])) and c[1] == self.checksums[n, s]
                 for d, n, s in ((front, small, "small"), (behind, large, "large")))
        self.wrong += not ok
        more = {} if ok else {"err": [tail(front["err"]), tail(behind["err"])], "rc": [front["rc"], behind["rc"]]}
        return self.lines.add(part="share", small=small, large=large, mode=mode, round=turn, ok=ok, small_ms=times[0],
                              large_ms=times[1], **more)


class Mps:
    """A daemon of our own, where the mode wants one."""

    def __init__(self, mode):
        self.mode, self.variables = mode, {}

    def client(self, priority):
        return {"CUDA_MPS_CLIENT_PRIORITY": "0" if priority == "high" else "1"} if self.mode == "mps-priority" else {}

    def __enter__(self):
        if self.mode.startswith("mps"):
            self.variables = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/smt-mps-pipe", "CUDA_MPS_LOG_DIRECTORY": "/tmp/smt-mps-log"}
            for folder in self.variables.values():
                os.makedirs(folder, exist_ok=True)
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.variables}, timeout=20, check=False)
        return self

    def __exit__(self, *_):
        if self.variables:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env={**os.environ, **self.variables}, timeout=30, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--managed", default="build/examples/managed/static", help="folder of the programs in managed form")
    parser.add_argument("--native", default="build/examples/static")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--select", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--stress-iterations", type=int, default=20)
    parser.add_argument("--stops", type=int, default=100_000)
    parser.add_argument("--stops-size", default="small")
    parser.add_argument("--stops-iterations", type=int, default=40)
    parser.add_argument("--share-rounds", type=int, default=2)
    parser.add_argument("--parts", default="overhead,stress,share")
    parser.add_argument("--seconds", default="120,100,120", help="for each part")
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
