#!/usr/bin/env python3
"""How long eight programs take that start at once, natively and under smt without managed forms of theirs.

    first_starts.py [--build BUILD] [--rounds 3] [--size small] [--modes native,wait=10,wait=0,ptx=0]
                    [--device sim] [--out OUT]

Each round runs each mode once natively, else twice: cold, with a fresh server and an empty cache, and warm,
with a fresh server and the cache that the cold run left. A mode of smt is what SMT_COMPILE has: wait=10 lets
loads wait for managed forms, ptx=0 does without managed forms. Rounds go through the modes forwards and
backwards in turns. The figure of a run is the time from the first program's start to the last one's end; a
run counts only if every program printed the checksum that checksums.txt has for it. The exit code is 1 if one
did not. Results: OUT/first_starts.jsonl, and a table.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, tail  # noqa: E402
from printed import CHECKSUM, read_checksums  # noqa: E402

PROGRAMS = "black_scholes,cfd,matrix_multiply,md5_hash,nbody,pathfinder,spmv,string_match"
LOG = 1 << 24   # characters: all of it


class Starts:
    def __init__(self, options):
        self.options = options
        programs = options.programs_dir or os.path.join(options.build, "examples", "shared")
        self.places = Places(options.build, options.preload, programs)
        self.names = options.programs.split(",")
        self.checksums = read_checksums(options.checksums)
        self.lines = Lines(os.path.join(options.out, "first_starts.jsonl") if options.out else None)
        self.environment = base_environment()
        if options.device == "sim":
            self.environment.update(SMT_DEVICE="sim", SMT_REAL_DRIVER="none",
                                    SMT_SIM=f"tenants={len(self.names)}",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))

    def judge(self, name, done):
        if done["rc"] != 0:
            return f"{name}: exit code {done['rc']}: {tail(done['out'] + done['err'], 300)}"
        found, wanted = CHECKSUM.search(done["out"]), self.checksums[name, self.options.size]
        if found and found[1] == wanted:
            return None
        return f"{name}: checksum {found and found[1]}, not {wanted}"

    def run(self, environment, preload):
        """Seconds, and what was wrong."""
        children = []
        for name in self.names:
            command = [os.path.join(self.places.programs, name), "--size", self.options.size,
                       "--iterations", str(self.options.iterations)]
            children.append(Child(command, {**self.environment, **environment, "SMT_TENANT": name}, preload,
                                  self.options.timeout))
        verdicts = [self.judge(name, child.finish()) for name, child in zip(self.names, children)]
        seconds = max(child.ended for child in children) - min(child.started for child in children)
        return seconds, [verdict for verdict in verdicts if verdict]

    def note(self, mode, state, number, seconds, wrong, log=""):
        ready, managed = log.count("managed form is ready"), log.count("is loaded in managed form")
        self.lines.add(mode=mode, state=state, round=number, seconds=round(seconds, 3), wrong=wrong,
                       ready=ready, managed=managed)
        print(f"round {number}: {mode} {state}: {seconds:.2f} s, "
              f"{managed} images managed from the start, {ready} later",
              *wrong, sep="\n  ", flush=True)

    def one(self, mode, number):
        if mode == "native":
            return self.note(mode, "-", number, *self.run({}, None))
        cache = tempfile.mkdtemp(prefix="smt-cache-")
        try:
            for state in ("cold", "warm"):
                with Runtime(self.places, SMT_COMPILE=mode, SMT_CACHE_DIR=cache,
                             SMT_PROFILES="none") as runtime:
                    seconds, wrong = self.run(runtime.variables(), self.places.preload)
                    self.note(mode, state, number, seconds, wrong, runtime.log(LOG))
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def show(self, modes):
        print(f"\n{len(self.names)} programs at once, size {self.options.size}, "
              f"{self.options.rounds} rounds: median seconds (least, most)")
        for mode in modes:
            for state in ("-",) if mode == "native" else ("cold", "warm"):
                found = [line["seconds"] for line in self.lines.all
                         if (line["mode"], line["state"]) == (mode, state) and not line["wrong"]]
                if found:
                    print(f"{mode:<10} {state:<5} {statistics.median(found):6.2f} "
                          f"({min(found):.2f}, {max(found):.2f}), {len(found)} runs")

    def all(self):
        modes = [mode for mode in self.options.modes.split(",")
                 if not (mode == "native" and self.options.device == "sim")]
        for number in range(1, self.options.rounds + 1):
            for mode in modes if number % 2 else reversed(modes):
                self.one(mode, number)
        self.show(modes)
        return any(line["wrong"] for line in self.lines.all)


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
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one program")
    parser.add_argument("--out", help="folder for first_starts.jsonl")
    options = parser.parse_args()
    if options.device == "sim":
        options.size = "trivial"
    return Starts(options).all()


if __name__ == "__main__":
    sys.exit(main())
