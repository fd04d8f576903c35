#!/usr/bin/env python3
"""How long eight programs take that start at once, and a CUB sort alone, natively and under smt without
managed forms of theirs.

    first_starts.py [--build BUILD] [--rounds 3] [--size small] [--modes native,wait=10,wait=0,ptx=0]
                    [--starts together,sort] [--budget SECONDS] [--device sim] [--out OUT]
    first_starts.py --trace [--rounds 10] [--modes wait=0] ...

Each round runs each mode once natively, else twice: cold, with a fresh server and an empty cache, and warm,
with a fresh server and the cache that the cold run left. A mode of smt is what SMT_COMPILE has: wait=10 lets
loads wait for managed forms, ptx=0 does without managed forms. Rounds go through the modes forwards and
backwards in turns. The figure of a run is the time from the first program's start to the last one's end; a
run counts only if every program was right: printed the checksum that checksums.txt has for it, or, the sort,
ended well. The exit code is 1 if one was not, or if no round was whole. With --budget no round is begun that
would not be over in time. Results: OUT/first_starts.jsonl as runs end, and a table with the ratios to the
native run of the same round, also where the run is cut off by SIGTERM.

--trace: where the time of the sort's start goes, natively, with a fresh server and with one that is there
(start_trace.py says how); a row a run, and tables of medians.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Places, Runtime, base_environment, tail  # noqa: E402
from measurement import Measurement, simulated  # noqa: E402
from printed import CHECKSUM, read_checksums  # noqa: E402
from start_trace import StartTrace  # noqa: E402

PROGRAMS = "black_scholes,cfd,matrix_multiply,md5_hash,nbody,pathfinder,spmv,string_match"
MARKS = "bench_start_marks.so"
LOG = 1 << 24   # characters: all of it
STARTS = ("together", "sort")
SORTED = {None: ("libraries", "100000", "1"), "sim": ("libraries_shared", "2000", "1")}   # elements, rounds


class Starts(Measurement):
    def __init__(self, options):
        programs = options.programs_dir or os.path.join(options.build, "examples", "shared")
        places = Places(options.build, options.preload, programs)
        environment = base_environment()
        if options.device == "sim":
            environment.update(simulated(places.build))
        super().__init__(options, places, "first_starts.jsonl", environment)
        self.names = options.programs.split(",")
        self.starts = ["sort"] if options.trace else options.starts.split(",")
        folder, *self.amount = SORTED[options.device]
        self.sort = options.sort or os.path.join(self.places.build, "bin", "gpu", folder, "cub_sort")
        if "sort" in self.starts and not os.path.exists(self.sort):
            print(f"there is no {self.sort}: no sort is started", flush=True)
            self.starts.remove("sort")
        self.checksums = read_checksums(options.checksums)
        self.modes = [mode for mode in options.modes.split(",")
                      if mode != "native" or not (options.trace or options.device == "sim")]
        self.longest, self.trace = 0, None
        if options.trace:
            self.trace = StartTrace(self.places, self.environment, [self.sort, *self.amount],
                                    lambda done: self.judge("sort", done), self.lines,
                                    options.marks or os.path.join(self.places.build, "lib", MARKS),
                                    options.device == "sim")

    def judge(self, name, done):
        if done["rc"] != 0:
            return f"{name}: exit code {done['rc']}: {tail(done['out'] + done['err'], 300)}"
        if name == "sort":   # it compares its results with the host's
            return None
        found, wanted = CHECKSUM.search(done["out"]), self.checksums[name, self.options.size]
        if found and found[1] == wanted:
            return None
        return f"{name}: checksum {found and found[1]}, not {wanted}"

    def commands(self, start):
        if start == "sort":
            return {"sort": [self.sort, *self.amount]}
        return {name: [os.path.join(self.places.programs, name), "--size", self.options.size,
                       "--iterations", str(self.options.iterations)] for name in self.names}

    def run(self, start, environment, preload):
        """Seconds, and what was wrong."""
        children, commands = [], self.commands(start)
        if self.options.device == "sim":   # its clock starts when all are there
            environment = {**environment, "SMT_SIM": f"tenants={len(commands)}"}
        for name, command in commands.items():
            children.append(Child(command, {**self.environment, **environment, "SMT_TENANT": name}, preload,
                                  self.options.timeout))
        verdicts = [self.judge(name, child.finish()) for name, child in zip(commands, children)]
        seconds = max(child.ended for child in children) - min(child.started for child in children)
        return seconds, [verdict for verdict in verdicts if verdict]

    def note(self, start, mode, state, number, seconds, wrong, log=""):
        ready, managed = log.count("managed form is ready"), log.count("is loaded in managed form")
        self.lines.add(start=start, mode=mode, state=state, round=number, seconds=round(seconds, 3),
                       wrong=wrong, ready=ready, managed=managed)
        print(f"round {number}: {start} {mode} {state}: {seconds:.2f} s, "
              f"{managed} images managed from the start, {ready} later",
              *wrong, sep="\n  ", flush=True)

    def one(self, start, mode, number):
        if mode == "native":
            return self.note(start, mode, "-", number, *self.run(start, {}, None))
        cache = tempfile.mkdtemp(prefix="smt-cache-")
        try:
            for state in ("cold", "warm"):
                with Runtime(self.places, SMT_COMPILE=mode, SMT_CACHE_DIR=cache,
                             SMT_PROFILES="none") as runtime:
                    seconds, wrong = self.run(start, runtime.variables(), self.places.preload)
                    self.note(start, mode, state, number, seconds, wrong, runtime.log(LOG))
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def table(self):
        if self.trace:
            return self.trace.show()
        for start in self.starts:
            what = "a CUB sort" if start == "sort" else \
                f"{len(self.names)} programs at once, size {self.options.size}"
            print(f"\n{what}: median seconds (least, most); median of rounds to native (least, most)")
            rows = [line for line in self.lines.all if line["start"] == start and not line["wrong"]]
            for mode in self.modes:
                for state in ("-",) if mode == "native" else ("cold", "warm"):
                    found = {row["round"]: row["seconds"] for row in rows
                             if (row["mode"], row["state"]) == (mode, state)}
                    if not found:
                        continue
                    native = {row["round"]: row["seconds"] for row in rows if row["mode"] == "native"}
                    ratios = ratios_of(found, native) if mode != "native" else []
                    print(f"{mode:<10} {state:<5} {spread(found.values(), 2)}, {len(found)} runs"
                          + (f"; {spread(ratios, 3)} of native" if ratios else ""))

    def measure(self):
        for number in range(1, self.options.rounds + 1):
            before = time.monotonic()
            if before + self.longest > self.end:
                print(f"no time is left for round {number}")
                break
            for mode in self.modes if number % 2 else reversed(self.modes):
                for start in self.starts:
                    self.trace.round(number, mode) if self.trace else self.one(start, mode, number)
            self.longest = max(self.longest, time.monotonic() - before)

    def bad(self):
        return any(line["wrong"] for line in self.lines.all) or not self.longest or not self.starts


def ratios_of(found, native):
    """Of rounds {number: seconds} that both have."""
    return [found[number] / native[number] for number in sorted(found) if native.get(number)]


def spread(values, digits):
    values = list(values)
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}, {max(values):.{digits}f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload", help="libsmt.so (default: BUILD/lib/libsmt.so)")
    parser.add_argument("--programs-dir", help="default: BUILD/examples/shared")
    parser.add_argument("--checksums", default=os.path.join(harness.ROOT, "examples", "checksums.txt"))
    parser.add_argument("--programs", default=PROGRAMS)
    parser.add_argument("--modes", default="native,wait=10,wait=0,ptx=0")
    parser.add_argument("--device", help="sim: to try this script, at size trivial")
    parser.add_argument("--size", default="small")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", default=",".join(STARTS), help="of programs together, of the sort alone")
    parser.add_argument("--sort", help="default: BUILD/bin/gpu/libraries/cub_sort")
    parser.add_argument("--budget", type=float, default=0, help="seconds for all; 0: for all rounds")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one program")
    parser.add_argument("--out", help="folder for first_starts.jsonl")
    parser.add_argument("--trace", action="store_true", help="where the time of the sort's start goes")
    parser.add_argument("--marks", help=f"of the trace; default: BUILD/lib/{MARKS}")
    options = parser.parse_args()
    if options.device == "sim":
        options.size = "trivial"
    if unknown := [start for start in options.starts.split(",") if start not in STARTS]:
        parser.error(f"no start {', '.join(unknown)}; there are {', '.join(STARTS)}")
    return Starts(options).all()


if __name__ == "__main__":
    sys.exit(main())
