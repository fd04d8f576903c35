#!/usr/bin/env python3
"""What libraries bring, while others force stops: libraries.py [--select REGEX] [--seconds N] [--device sim]

Programs on cuBLAS, cuDNN, CUB, Thrust and cuFFT (build/bin/gpu/libraries) and Python programs on PyTorch,
CuPy and Triton. Each runs

  native     without smt: what it prints is the reference. On the simulated device, undisturbed under smt
  stress     its managed kernels stopped, moved, resized and sliced at random, a second tenant beside it
  stops      the same with stops only, as many as there can be
  urgent     beside a second tenant of higher priority that comes and goes: managed kernels stop between two
             blocks, unmanaged ones are held back between kernels

and must print the same each time; C++ programs print a hash of their results' bits, Python programs digits.
Of each run every kernel is listed with how often it was launched and how it ran: managed, by what, or
unmanaged, and why. A kernel of which this is not said is an error. JSON lines in libraries.jsonl; tables at
the end. Exit code 0 when all was right.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from check import HERE, close  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, run, tail  # noqa: E402

STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
MODES = ("stress", "stops", "urgent")
SCHEDULES = re.compile(r"under stress: (\d+) schedules(?:, (\d+) launches stopped half way)?")
# What each program is given: elements and rounds.
AMOUNTS = {"gpu": {"cub_scan": (8_000_000, 12), "cub_select": (8_000_000, 8), "cub_sort": (8_000_000, 10),
                   "thrust_algorithms": (4_000_000, 6),
                   "cufft_transforms": (8_000_000, 10), "cudnn_layers": (0, 300)},
           "sim": {"cub_scan": (50_000, 2), "cub_select": (30_000, 1), "cub_sort": (15_000, 1),
                   "thrust_algorithms": (15_000, 1)}}
# Programs of other folders that belong here: cuBLAS, which tests/gpu/programs has.
OTHERS = {"gpu": {"cublas_sgemm": "static"}, "sim": {}}
PYTHON = ("torch_basic.py", "cupy_basic.py", "triton_basic.py")
GRACE = 12   # seconds beyond the end of all, for the run that is under way then
VISIT = 20   # seconds that one of the second tenant may take


class Visitor(threading.Thread):
    """The second tenant: runs a program again and again, with pauses, until it is told to go."""

    def __init__(self, command, environment, seed, timeout):
        super().__init__(daemon=True)
        self.command, self.environment, self.timeout = command, environment, timeout
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.visits, self.wrong = 0, ""

    def run(self):
        while not self.over.is_set():
            done = run(self.command, self.environment, None, self.timeout)
            self.visits += 1
            if done["rc"] != 0 and not self.wrong:
                self.wrong = f"rc {done['rc']}: {tail(done['out'], 300)} {tail(done['err'], 300)}"
            self.over.wait(self.random.uniform(0.02, 0.3))

    def finish(self):
        self.over.set()
        self.join()
        return self


class Libraries:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.lines = Lines(os.path.join(options.out, "libraries.jsonl"))
        self.end = time.monotonic() + options.seconds
        self.environment = base_environment()
        # Python packages bring their own CUDA libraries: the toolkit's must not come first.
        self.python_environment = base_environment(with_libraries=False)
        # from its files it takes machine code, and smt does not see the source
        self.python_environment["CUPY_CACHE_IN_MEMORY"] = "1"
        self.wrong = []

    def items(self):
        """(name, command, environment)"""
        device, found = self.options.device, []
        folder = os.path.join(self.places.programs, "libraries_shared" if device == "sim" else "libraries")
        for name, amount in AMOUNTS[device].items():
            path = os.path.join(folder, name)
            if os.path.exists(path):
                found.append((name, [path, str(amount[0] // self.options.part), str(amount[1])],
                              self.environment))
            else:
                print(f"{name} was not built: its library was not found")
        for name, kind in OTHERS[device].items():
            found.append((name, [self.places.program(name, kind)], self.environment))
        if device == "gpu":   # first, as they take longest
            found = [(name, [self.options.python, os.path.join(HERE, "python", name)],
                      self.python_environment) for name in PYTHON] + found
        return [item for item in found if re.search(self.options.select, item[0])]

    def left(self):
        """Seconds for one run: what is begun just before the end may take a little longer."""
        return max(5, min(self.options.timeout, self.end + GRACE - time.monotonic()))

    def under_smt(self, command, *options):
        device = ["--device", "sim"] if self.options.device == "sim" else []
        return [self.places.smt, "run", *device, *options, "--", *command]

    def visitor(self, mode, runtime, seed):
        if self.options.device == "sim":
            # A few short launches: most of a larger program's visits would be its own time.
            command = [os.path.join(self.places.programs, "shared", "graph_capture")]
        else:
            command = [os.path.join(self.places.programs, "machine_code", "busy"), "--blocks", "264",
                       "--threads", "256", "--rounds", "20000",
                       "--launches", "400", "--seconds", "0.4", "--pause", "300"]
        priority = ["--priority", "high"] if mode == "urgent" else []
        return Visitor(self.under_smt(command, "--tenant", "visitor", *priority),
                       {**self.environment, **runtime.variables()}, seed, VISIT)

    def journal(self, runtime, *options):
        done = run([self.places.smt, "log", "--json", *options], {**self.environment, **runtime.variables()},
                   None, 60)
        return [json.loads(line) for line in done["out"].splitlines()]

    def native(self, item):
        name, command, environment = item
        if self.options.device == "sim":
            with Runtime(self.places) as runtime:
                done = run(self.under_smt(command), {**environment, **runtime.variables()}, None, self.left())
        else:
            done = run(command, environment, None, self.left())
        if done["rc"] != 0:
            self.wrong.append(f"{name} fails natively: {tail(done['out'], 600)} {tail(done['err'], 600)}")
        self.lines.add(mode="native", program=name, rc=done["rc"], out=tail(done["out"]),
                       seconds=done["seconds"])
        return done

    def disturbed(self, item, mode, seed, reference):
        name, command, environment = item
        options = ["--tenant", "tested", "--priority", "normal"]
        if mode != "urgent":
            options += ["--stress", str(seed + (STOPS_ONLY if mode == "stops" else 0))]
        # A managed form that the program would not wait for would not be tested.
        with Runtime(self.places, SMT_COMPILE="wait=120") as runtime:
            visitor = self.visitor(mode, runtime, seed)
            visitor.start()
            done = Child(self.under_smt(command, *options), {**environment, **runtime.variables()},
                         None, self.left()).finish()
            visitor.finish()
            entries = self.journal(runtime)
            kernels = [row for row in self.journal(runtime, "--kernels") if row["tenant"] == "tested"]
            log = runtime.log(1500)
        self.judge(name, mode, seed, reference, done, visitor, entries, kernels, log)

    def judge(self, name, mode, seed, reference, done, visitor, entries, kernels, log):
        notes = [SCHEDULES.search(entry["text"]) for entry in entries if entry["kind"] == "note"]
        schedules = sum(int(note[1]) for note in notes if note)
        stressed = sum(int(note[2] or 0) for note in notes if note)
        stopped = sum(1 for entry in entries if entry["kind"] == "stopped" and
                      entry.get("tenant") == "tested")
        held = sum(1 for entry in entries if entry["kind"] == "decision" and
                   entry.get("tenant") == "tested" and "held back" in entry["text"])
        exact = done["out"] == reference["out"]
        same = done["rc"] == 0 and (exact or (name.endswith(".py") and close(done["out"], reference["out"])))
        untold = [row["kernel"] for row in kernels if row["how"] == "not known" and
                  self.options.device != "sim"]
        untold += [row["kernel"] for row in kernels if row["how"] == "unmanaged" and not row["reason"]]
        problems = [] if same else [f"rc {done['rc']}, native printed {tail(reference['out'], 400)!r}, this "
                                    f"{tail(done['out'], 400)!r} {tail(done['err'], 600)}"]
        problems += [f"the journal does not say how {kernel} ran" for kernel in untold]
        problems += [] if kernels else ["no kernel is listed"]
        problems += [f"the visitor failed: {visitor.wrong}"] if visitor.wrong else []
        self.wrong += [f"{name}, {mode}: {problem}" for problem in problems]
        self.lines.add(mode=mode, program=name, seed=seed, ok=not problems, exact=exact,
                       seconds=done["seconds"], visits=visitor.visits, schedules=schedules,
                       stopped_half_way=stressed, stops_by_policy=stopped, held_back=held, kernels=kernels,
                       problems=problems,
                       **({"server": log} if problems else {}))

    def program(self, item):
        reference = self.native(item)
        for number, mode in enumerate(MODES):
            if time.monotonic() > self.end:
                self.lines.add(mode=mode, program=item[0], ok=None, problems=["no time left"])
                self.wrong.append(f"{item[0]}, {mode}: not run, no time was left")
                continue
            try:
                self.disturbed(item, mode, self.options.seed + number, reference)
            except Exception as error:   # one broken run must not end the others
                self.wrong.append(f"{item[0]}, {mode}: {error!r}")

    def tables(self):
        print(f"\n{'program':<20} {'mode':<8} {'result':<10} {'s':>6} {'visits':>6} {'schedules':>9} "
              f"{'half way':>9} {'stops':>6} {'held back':>9}  launches")
        for line in self.lines.all:
            if line["mode"] == "native" or line.get("ok") is None:
                print(f"{line['program']:<20} {line['mode']:<8} "
                      f"{'' if line['mode'] == 'native' else 'no time':<10} {line.get('seconds', 0):>6.1f}")
                continue
            hows = {}
            for row in line["kernels"]:
                hows[row["how"]] = hows.get(row["how"], 0) + row["launches"]
            result = "WRONG" if not line["ok"] else "same bits" if line["exact"] else "same digits"
            print(f"{line['program']:<20} {line['mode']:<8} {result:<11} {line['seconds']:>5.1f} "
                  f"{line['visits']:>6} {line['schedules']:>9} "
                  f"{line['stopped_half_way']:>9} {line['stops_by_policy']:>6} {line['held_back']:>9}  "
                  + ", ".join(f"{count} {how}" for how, count in sorted(hows.items())))
        print("\nEach kernel that ran, with how and why; launches of all modes together")
        for name in dict.fromkeys(line["program"] for line in self.lines.all):
            rows = {}
            for line in self.lines.all:
                for row in line.get("kernels", []) if line["program"] == name else []:
                    key = (row["how"], row["reason"], row["kernel"])
                    rows[key] = [a + b for a, b in zip(rows.get(key, (0, 0)),
                                                       (row["launches"], row["into_graphs"]))]
            print(f"\n{name}")
            for (how, reason, kernel), (launches, graphs) in sorted(rows.items()):
                print(
                    f"  {launches:>7} "
                    f"{f'(+{graphs} into graphs) ' if graphs else ''}{how}{': ' + reason if reason else ''}: "
                    f"{kernel[:self.options.width]}")
        for problem in self.wrong:
            print(f"WRONG: {problem}")

    def stopped(self):
        """Whether what was to be shown happened at all: managed kernels were stopped, unmanaged ones held
        back."""
        judged = [line for line in self.lines.all if line.get("ok") is not None]
        managed = [line for line in judged
                   if any(row["how"].startswith("managed") for row in line["kernels"])]
        if managed and not any(line["stopped_half_way"] for line in managed):
            self.wrong.append("no launch was stopped half way")
        if self.options.device == "gpu" and judged and not any(line["held_back"] for line in judged):
            self.wrong.append("nothing was held back for the urgent tenant")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--select", default="", help="regular expression of program names")
    parser.add_argument("--device", default="gpu", choices=["gpu", "sim"])
    parser.add_argument("--jobs", type=int, default=4,
                        help="programs at a time; each has a server of its own")
    parser.add_argument("--seconds", type=float, default=190, help="after which no further run is begun")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one run")
    parser.add_argument("--part", type=int, default=1, help="of the elements only the Nth part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=110, help="of kernels' names in the table")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    libraries = Libraries(options)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(libraries.program, libraries.items()))
    libraries.stopped()
    libraries.tables()
    print(f"{len(libraries.wrong)} wrong")
    return 1 if libraries.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
