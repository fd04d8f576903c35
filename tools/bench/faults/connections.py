#!/usr/bin/env python3
"""What the number of hardware queues (`connections` in SMT_LIMITS) changes: how soon a fault is told, whether
programs overlap, and which streams stand behind one that waits.

    connections.py --out OUT [--build BUILD] [--counts 8,16,32] [--repeats 3] [--budget SECONDS]
                   [--device sim]

For each count and repeat, each on a server of its own: the time from a program's word to start its faulting
kernel until it has the error, for each kind; and of the time in which two programs with few blocks run
(bench_overlap), the part in which both do. With a GPU besides, natively: how many streams of the driver stand
behind one that waits (probes/channels). One JSON line each in OUT/connections.jsonl, and a table. The exit
code is 1 where a program failed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "colocate")]
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, run, tail  # noqa: E402
from measurement import built_twice  # noqa: E402
from overlap import figures  # noqa: E402
from promises import ERRORS  # noqa: E402

KINDS = ("load", "trap", "assert")
PATIENCE = 60
OVERLAP = {None: ("64", "200", "2"), "sim": ("4", "100", "1")}   # blocks, us of each, seconds


class Connections:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        options.program = None
        self.faults, self.environment = built_twice(options, "bench_faults", one_context=1, grace=20)
        self.overlap, _ = built_twice(options, "bench_overlap", one_context=1, grace=20)
        self.lines = Lines(os.path.join(options.out, "connections.jsonl"))

    def child(self, runtime, tenant, *command):
        return Child(list(command), {**self.environment, **runtime.variables(SMT_TENANT=tenant)},
                     self.places.preload, PATIENCE, stdin=True)

    def add(self, count, what, **fields):
        row = self.lines.add(connections=count, what=what, **fields)
        print(json.dumps(row), flush=True)

    def server(self, count):
        return Runtime(self.places, SMT_LIMITS=f"connections={count}")

    def told_after(self, count, kind):
        with self.server(count) as runtime:
            child = self.child(runtime, "culprit", self.faults, "culprit", kind)
            ready = child.wait_ready(PATIENCE)
            begun = time.monotonic()
            child.tell()
            end = child.finish()
            ok = ready and any(error in end["out"] for error in ERRORS[kind])
            self.add(count, kind, ok=ok, seconds=round(time.monotonic() - begun, 3),
                     said="" if ok else tail(end["out"] + end["err"], 300))

    def together(self, count):
        with self.server(count) as runtime:
            children = [self.child(runtime, name, self.overlap, *OVERLAP[self.options.device])
                        for name in ("first", "second")]
            ready = all(child.wait_ready(PATIENCE) for child in children)
            for child in children:
                child.close_input()
            ends = [child.finish() for child in children]
            try:
                found = figures(*(json.loads(end["out"].replace("READY\n", ""))["ran_ns"] for end in ends))
            except ValueError:
                found = None
            if not ready or not found or not found["window"]:
                said = tail(" ".join(end["out"] + end["err"] for end in ends), 300)
                return self.add(count, "overlap", ok=False, said=said)
            self.add(count, "overlap", ok=True, both=round(found["both"] / found["window"], 3))

    def behind(self, count):
        """Natively: of the streams that wait one after the other, how many others stand behind each."""
        probe = os.path.join(self.places.build, "bin", "probes", "channels")
        done = run([probe], {**base_environment(), "CUDA_DEVICE_MAX_CONNECTIONS": str(count)}, None, PATIENCE)
        first = done["out"].split("each third one")[0]
        numbers = [len(found.split()) for found in re.findall(r"waits:((?: \d+)*) ?(?:stand|no)", first)]
        self.add(count, "behind", ok=bool(numbers) and done["rc"] == 0, streams=len(numbers),
                 mean=round(statistics.mean(numbers), 2) if numbers else None,
                 said="" if numbers else tail(done["out"] + done["err"], 300))

    def measure(self):
        until = time.monotonic() + self.options.budget
        counts = [int(count) for count in self.options.counts.split(",")]
        steps = [lambda count, kind=kind: self.told_after(count, kind) for kind in KINDS] + [self.together]
        for repeat in range(self.options.repeats):
            for count in counts:
                for step in steps + ([self.behind] if repeat == 0 and not self.options.device else []):
                    if time.monotonic() > until:
                        return
                    step(count)

    def table(self):
        print(f"\n{'queues':>6} " + " ".join(f"{kind + ', s':>10}" for kind in KINDS)
              + f" {'both, %':>10} {'behind':>10}")
        for count in dict.fromkeys(row["connections"] for row in self.lines.all):
            def middle(what, key, count=count):
                values = [row[key] for row in self.lines.all
                          if row["connections"] == count and row["what"] == what and row["ok"]]
                return statistics.median(values) if values else None
            cells = [middle(kind, "seconds") for kind in KINDS]
            both = middle("overlap", "both")
            cells += [both * 100 if both is not None else None, middle("behind", "mean")]
            print(f"{count:6} " + " ".join(f"{'-' if cell is None else format(cell, '.2f'):>10}"
                                           for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--counts", default="8,16,32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    measured = Connections(options)
    measured.measure()
    measured.table()
    return 0 if measured.lines.all and all(row["ok"] for row in measured.lines.all) else 1


if __name__ == "__main__":
    sys.exit(main())
