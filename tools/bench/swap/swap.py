#!/usr/bin/env python3
"""Programs whose memory together exceeds the GPU's, in turns (oversubscribe in SMT_LIMITS).

    swap.py --out OUT [--build BUILD] [--gib 16] [--programs 2,4] [--room 1.5] [--seconds 20] [--part 10]
            [--cells 8] [--pause 4] [--calls 33] [--piece 1024] [--pinned 0.75] [--budget SECONDS] [--plan]
            [--jobs torch [--python PYTHON]] [--device sim --mib 32]

A case is a number of programs (crowd.cu) of so many GiB each, in allocations of --piece MiB, which compute
over all of it and look at each word, on a device that has room for --room of them; a program without smt
holds what is too much. First each runs by itself for --seconds, which says its passes; then all at once, with
as many passes. `against` is the time of all at once by the sum of the times alone, both from the programs'
start to their end; `against_passes` is the same by the times that the passes alone took. `switch` is what a
turn's moves take on average, by the server's figures, and `ideal` their bytes (`ideal_s`: of all turns) by
the bandwidth of pinned copies, one direction after the other, measured in the same run: below 1 where both
directions move at once. `parts` says where it goes, by the server's figures for each turn: until the program
is at rest (which is not in `switch`), waits for host memory to be pinned, copies (with that), device memory
mapped and unmapped; of two programs that move at the same time each counts. `pinned_mib` is the host memory
that the server pinned, and `pin_s` the time in which it did, also ahead of moves. A case more is `cells`: a
program of half the room that does something every few seconds, beside one of 87 % that always computes (40 GB
and 70 of 80); its figures are what such a cell takes. Before the first case as much host memory as it pins is
written to once, since the first write to a virtual machine's memory may take its host several times as long
as later ones. With --jobs torch the programs are jobs of PyTorch (torch_job.py), whose checksums are compared
with what they have to be, and with those of the same job alone; on the simulated device a stub stands in for
PyTorch. Wrong, and the exit code 1: words or checksums that are not right, and programs that fail. A case
that needs more than --pinned of the host's memory is left out.

Results: OUT/swap.jsonl with a row a case, OUT/swap.json with all of them, and a table. --plan measures
nothing, needs no build, and says what would be done and about how long it takes. With --budget no case is
begun after that time.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, tail  # noqa: E402

START = 8        # seconds until programs are ready: a guess, for --plan
PATIENCE = 900
PREPARED = 16 << 10   # MiB that the server pins at most ahead of a move (runtime/server/swapper.cpp)
PARTS = ("rest_us", "pin_us", "copy_us", "map_us")
POLL = 0.1
IDLE, BUSY = 0.5, 0.87   # of the room, in the case `cells`


def whole_numbers(text):
    values = [int(each) for each in text.split(",")]
    if not values or any(each <= 0 for each in values):
        raise argparse.ArgumentTypeError(f"positive numbers, not '{text}'")
    return values


def fractions(text):
    values = [float(each) for each in text.split(",")]
    if not values or any(each <= 0 for each in values):
        raise argparse.ArgumentTypeError(f"positive numbers, not '{text}'")
    return values


def cases(options):
    """(kind, MiB, programs)"""
    sizes = [options.mib] if options.mib else [int(gib * 1024) for gib in options.gib]
    all_cases = [("work", mib, count) for mib in sizes for count in options.programs]
    return all_cases + ([("cells", mib, 2) for mib in sizes] if options.cells else [])


def cells_seconds(options):
    """For how long the busy program computes: a cell is given 3 s, or with short pauses as long as those."""
    return options.cells * (options.pause + min(options.pause, 3))


def estimate(options, kind, count):
    if kind == "cells":
        return START + cells_seconds(options)
    return START + options.seconds * count * (2 + 2 * options.part / 100)


def pinned_mib(mib, count, room):
    """What the host has to pin at most: what has no room on the device, and what is moved out ahead."""
    return int(mib * max(count - room, 0)) + min(mib, PREPARED) + 1024


def host_mib():
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    try:
        group = pathlib.Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return whole
    return min(whole, int(group) // 2**20) if group.isdigit() else whole


def plan(options):
    total = 0
    for kind, mib, count in cases(options):
        takes = estimate(options, kind, count)
        total += takes
        what = f"{count} programs of {mib} MiB" if kind == "work" else f"cells of {mib} MiB, busy beside"
        pinned = pinned_mib(mib, count, options.room)
        print(f"{what}, room for {options.room:g}, {pinned} MiB pinned: about {takes:.0f} s")
    print(f"about {total:.0f} s in all")


def part_of(room, part):
    """MiB, in whole chunks (of 2 MiB) for each of a program's four pieces at least."""
    return int(room * part) // 8 * 8


def moves_log(runtime):
    """What the server says of each move: its parts, and for how long it was asked for."""
    said = ("makes room for", "has its memory again", "is not moved")
    return [line for line in runtime.log(10**7).splitlines() if any(words in line for words in said)]


class Ballast:
    """Memory that is not there for smt: another program has it. A context manager."""

    def __init__(self, program, environment, mib):
        self.child = Child([program, "hold", str(mib)], environment, timeout=PATIENCE, stdin=True) \
            if mib > 0 else None
        if self.child and not self.child.wait_ready(60):
            raise RuntimeError("the ballast does not start: " + tail(self.child.finish()["err"], 300))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child:
            self.child.close_input()
            self.child.finish()


class Swapping:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.sim = options.device == "sim"
        self.touched = False
        program = "bench_swap_shared" if self.sim else "bench_swap"
        self.program = options.program or os.path.join(self.places.build, "bin", program)
        job = [options.python, "-B", str(options.job)] + ["--stub"] * self.sim
        self.job = job if options.jobs == "torch" else [self.program]
        self.lines = Lines(os.path.join(options.out, "swap.jsonl"))
        self.environment = base_environment()
        if self.sim:
            self.environment.update(SMT_DEVICE="sim", SMT_REAL_DRIVER="none",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))

    def touch(self, mib):
        done = subprocess.run([self.program, "touch", str(mib)], env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE)
        print(f"host memory written to: {done.stdout.strip() or done.stderr.strip()}", flush=True)
        self.touched = True

    def run(self):
        until = time.monotonic() + self.options.budget
        left = cases(self.options)
        while left and time.monotonic() < until:
            kind, mib, count = left.pop(0)
            row = self.lines.add(kind=kind, jobs=self.options.jobs, mib=mib, programs=count,
                                 room=self.options.room, part=self.options.part,
                                 **self.guarded(kind, mib, count))
            print(describe(row), flush=True)
        return len(left)

    def guarded(self, kind, mib, count):
        needed = pinned_mib(mib, count, self.options.room)
        if not self.sim and needed > self.options.pinned * host_mib():
            return {"ok": True, "skipped": f"{host_mib()} MiB of host memory are too few for {needed}"}
        if not self.sim and not self.touched:
            self.touch(needed)
        room = int(mib * self.options.room)
        try:
            with Ballast(self.program, self.environment, self.too_much(room)):
                limits = (f"oversubscribe=1,swap_part={self.options.part},swap_calls={self.options.calls},"
                          "host_memory=0")
                more = {"SMT_SIM": f"grace=20,memory={room}M"} if self.sim else {}
                with Runtime(self.places, SMT_LIMITS=limits, **more) as runtime:
                    try:
                        case = self.work if kind == "work" else self.cells
                        return {**case(runtime, mib, count), "moves_log": moves_log(runtime)}
                    except (RuntimeError, json.JSONDecodeError, TypeError) as error:
                        return {"ok": False, "why": f"{error} {runtime.log(800)}"}
        except RuntimeError as error:
            return {"ok": False, "why": str(error)}

    def too_much(self, room):
        """MiB; the server's context needs some of what stays."""
        if self.sim:
            return 0
        done = subprocess.run([self.program, "free"], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE)
        if done.returncode != 0:
            raise RuntimeError("no GPU: " + done.stderr.strip())
        margin = 1024 if self.options.jobs == "cuda" else 2048   # code of PyTorch's and its libraries'
        return json.loads(done.stdout)["free_mib"] - room - margin

    def start(self, runtime, tenant, *arguments, program=None):
        return Child([*(program or self.job), *map(str, arguments)],
                     {**self.environment, **runtime.variables(SMT_TENANT=tenant)}, self.places.preload,
                     PATIENCE, stdin=True)

    @staticmethod
    def result(child):
        end = child.finish()
        lines = re.findall(r"^\{.*\}$", end["out"], re.M)
        if end["rc"] != 0 or not lines:
            raise RuntimeError(f"a program fails with {end['rc']}: {tail(end['out'] + end['err'], 300)}")
        return json.loads(lines[-1])

    def status(self, runtime):
        """Of the server; empty if it does not answer."""
        done = subprocess.run([self.places.smt, "status", "--json"],
                              env={**self.environment, **runtime.variables()}, capture_output=True, text=True,
                              timeout=PATIENCE)
        return json.loads(done.stdout.splitlines()[0]) if done.stdout.strip() else {}

    def turns(self, runtime):
        return {tenant["tenant"]: tenant["turns"] for tenant in self.status(runtime).get("tenants", [])}

    def pinned(self, runtime):
        status = self.status(runtime)
        return {"pinned_mib": status.get("moves_made_bytes", 0) >> 20,
                "pin_s": status.get("moves_making_us", 0) / 1e6}

    def speed(self, runtime, mib):
        return self.result(self.start(runtime, "bandwidth", "bandwidth", mib, program=[self.program]))

    def alone(self, runtime, tenant, mib):
        begun = time.monotonic()
        result = self.result(self.start(runtime, tenant, "time", mib, self.options.piece,
                                        self.options.seconds))
        return {**result, "whole_s": time.monotonic() - begun}

    def work(self, runtime, mib, count):
        speed = self.speed(runtime, mib)
        alone = [self.alone(runtime, f"alone{i}", mib) for i in range(count)]
        begun = time.monotonic()
        children = [self.start(runtime, f"crowd{i}", "work", mib, self.options.piece, alone[i]["passes"])
                    for i in range(count)]
        seen = {}
        while any(child.process.poll() is None for child in children):
            seen.update(self.turns(runtime))
            time.sleep(POLL)
        took = time.monotonic() - begun
        together = [self.result(child) for child in children]
        figures = [seen.get(f"crowd{i}", {}) for i in range(count)]
        total = {key: sum(each.get(key, 0) for each in figures)
                 for key in ("out_bytes", "in_bytes", "out_us", "in_us", "turns", "moves", *PARTS)}
        after_one_another = sum(each["whole_s"] for each in alone)
        turns = max(total["turns"], 1)
        ideal = (total["out_bytes"] / speed["out_bytes_per_s"] +
                 total["in_bytes"] / speed["in_bytes_per_s"]) * 1e3 / turns
        right = all(each["right"] for each in alone + together) and all(
            one.get("checksum") == other.get("checksum") for one, other in zip(alone, together))
        return {"ok": right, **speed, "alone": alone,
                "together": together, "together_s": took, "after_one_another_s": after_one_another,
                "against": took / after_one_another,
                "against_passes": took / sum(each["seconds"] for each in alone), **total,
                "switch_ms": (total["out_us"] + total["in_us"]) / 1e3 / turns, "ideal_ms": ideal,
                "ideal_s": ideal * turns / 1e3,
                "parts_ms": {key[:-3]: total[key] / 1e3 / turns for key in PARTS},
                "longest_pass_s": max(each["longest_pass_s"] for each in together), **self.pinned(runtime)}

    def cells(self, runtime, mib, _):
        speed = self.speed(runtime, mib)
        room = self.options.room
        idle = self.start(runtime, "idle", "cells", part_of(mib * room, IDLE), self.options.piece)
        if not idle.wait_ready(PATIENCE):
            raise RuntimeError("the program with cells does not start: " + tail(idle.finish()["err"], 300))
        busy = self.start(runtime, "busy", "time", part_of(mib * room, BUSY), self.options.piece,
                          cells_seconds(self.options))
        if not busy.wait_ready(PATIENCE):
            raise RuntimeError("the busy program does not start: " + tail(busy.finish()["err"], 300))
        for i in range(self.options.cells):
            time.sleep(self.options.pause)
            idle.process.stdin.write(b"\n")
            idle.process.stdin.flush()
            until = time.monotonic() + PATIENCE
            while idle.out.count(b"cell_ms") <= i and idle.process.poll() is None and \
                    time.monotonic() < until:
                time.sleep(0.005)
        figures, pinned = self.turns(runtime), self.pinned(runtime)
        idle.close_input()
        cells = [float(each) for each in re.findall(r'"cell_ms": ([\d.]+)', idle.out.decode())]
        ends = [self.result(idle), self.result(busy)]
        if len(cells) < self.options.cells:
            raise RuntimeError(f"only {len(cells)} cells ended")
        return {"ok": all(each["right"] for each in ends), **speed, "cells_ms": cells,
                "cell_ms": statistics.median(cells), "longest_cell_ms": max(cells), "turns": figures,
                "busy": ends[1], **pinned}


def describe(row):
    text = f"{row['kind']:5} {row['programs']} x {row['mib']:6} MiB "
    if row.get("skipped"):
        return text + "left out: " + row["skipped"]
    if not row["ok"]:
        return text + "FAILS: " + row.get("why", "words are wrong")
    if row["kind"] == "cells":
        asked = re.findall(r"tenant idle .* ([\d.]+) ms after it asked", "\n".join(row["moves_log"]))
        return text + (f"cells {row['cell_ms']:9.1f} ms, longest {row['longest_cell_ms']:9.1f}, "
                       f"of which the wait for its memory {', '.join(asked)}")
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in row["parts_ms"].items())
    return text + (f"against {row['against']:.3f} ({row['against_passes']:.3f} of the passes), "
                   f"turns {row['turns']}, switch {row['switch_ms']:.1f} ms ({parts}), "
                   f"ideal {row['ideal_ms']:.1f} ms, {row['pinned_mib']} MiB pinned in {row['pin_s']:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_swap")
    parser.add_argument("--out")
    parser.add_argument("--gib", type=fractions, default=[16])
    parser.add_argument("--mib", type=int, help="in place of --gib")
    parser.add_argument("--programs", type=whole_numbers, default=[2, 4])
    parser.add_argument("--room", type=float, default=1.5, help="of how many programs the device has room")
    parser.add_argument("--seconds", type=float, default=20, help="that a program takes alone")
    parser.add_argument("--part", type=int, default=10, help="swap_part of SMT_LIMITS")
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--pause", type=float, default=4, help="seconds between two cells")
    parser.add_argument("--calls", type=int, default=33, help="swap_calls of SMT_LIMITS")
    parser.add_argument("--piece", type=int, default=1024, help="MiB of an allocation")
    parser.add_argument("--pinned", type=float, default=0.75, help="of the host's memory")
    parser.add_argument("--jobs", choices=("cuda", "torch"), default="cuda")
    parser.add_argument("--job", default=pathlib.Path(__file__).resolve().with_name("torch_job.py"),
                        help="in place of torch_job.py")
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--plan", action="store_true", help="what would be done, and how long")
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    if options.room < 1.2:
        parser.error("--room takes 1.2 and more")
    if options.plan:
        plan(options)
        return 0
    if not options.out:
        parser.error("--out is needed, but for --plan")
    if options.jobs == "torch" and options.device != "sim":
        there = subprocess.run([options.python, "-c", "import torch"], capture_output=True, text=True)
        if there.returncode != 0:
            parser.error(f"{options.python} has no PyTorch: {tail(there.stderr, 100)}: name one by --python")
    os.makedirs(options.out, exist_ok=True)
    swapping = Swapping(options)
    left = swapping.run()
    with open(os.path.join(options.out, "swap.json"), "w") as file:
        json.dump({"device": options.device or "gpu", "not_begun": left, "cases": swapping.lines.all}, file,
                  indent=1)
    if left:
        print(f"{left} cases were not begun: the time was over")
    return 0 if swapping.lines.all and all(row["ok"] for row in swapping.lines.all) else 1


if __name__ == "__main__":
    sys.exit(main())
