#!/usr/bin/env python3
"""Graphs that are stopped and resumed on a GPU: graphs.py [--parts stress,beside] [--seconds 60,60]

  stress   programs of graphs (programs/graph_*.cu) under `smt run --stress`, with one seed after the other
  beside   two of them at a time, under priority and under fair

Each program compares its results with the host's. What it prints must be what it prints natively. The script
fails, too, if no graph was stopped half way, or if one that has kernels and fills alone could not be stopped.
"""
import argparse
import json
import os
import re
import sys
import time

sys.path.insert(0, str(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench/harness")))
from busy import Busy  # noqa: E402
from harness import Child, Runtime, run, tail  # noqa: E402

PROGRAMS = "graph_stops", "graph_changes"
STOPS_ONLY = 1 << 31   # runtime/dispatch/stress.h
PATIENCE = 120
COPY = "unmanaged: a graph with a copy that is not within device memory, or is a box or of an array"


class Graphs(Busy):
    def __init__(self, options):
        super().__init__(options, "graphs.jsonl")
        self.native = {}
        for name in PROGRAMS:
            done = run(self.command(name), self.environment, None, PATIENCE)
            self.native[name] = done["out"]
            self.check(done["rc"] == 0, f"{name} natively: {tail(done['out'])} {tail(done['err'])}")

    def command(self, name):
        return [self.places.program(name), str(self.options.launches), str(self.options.rounds)]

    def start(self, runtime, name, **variables):
        environment = {**self.environment, **runtime.variables(**variables)}
        return Child(self.command(name), environment, self.places.preload, PATIENCE)

    def right(self, name, done, what):
        same = done["rc"] == 0 and done["out"] == self.native[name]
        self.check(same, f"{what}: rc {done['rc']}: {tail(done['out'])} {tail(done['err'])}")
        return same

    def journal(self, runtime):
        log = run([self.places.smt, "log", "--json"], {**self.environment, **runtime.variables()}, None, 60)
        return [json.loads(line) for line in log["out"].splitlines()]

    def closed(self, runtime, tenants):
        """The journal, once the server knows that the programs have left."""
        end = time.monotonic() + 20
        while True:
            journal = self.journal(runtime)
            left = {entry["tenant"] for entry in journal if entry["kind"] == "closed"}
            if tenants <= left or time.monotonic() > end:
                return journal
            time.sleep(0.1)

    def look_at(self, journal, part, tenants):
        """How the graphs of these tenants ran. Returns the stops."""
        stops = [entry["value"] / 1e3 for entry in journal
                 if entry["kind"] == "stopped" and entry["text"] == "a graph" and entry["tenant"] in tenants]
        counts = {}
        for entry in journal:
            if entry["kind"] == "launch" and entry["kernel"] == "a graph" and entry["tenant"] in tenants:
                counts[entry["treatment"]] = counts.get(entry["treatment"], 0) + 1
        half = sum(int(found[1]) for entry in journal if entry["kind"] == "note"
                   if entry["tenant"] in tenants and (
                       found := re.search(r"(\d+) launches stopped half way", entry["text"])))
        for treatment in counts:
            self.check(treatment.startswith("has a door") or treatment == COPY, f"{part}: {treatment}")
        stops.sort()
        told = f"{stops[len(stops) // 2]:.0f} us in the median, {stops[-1]:.0f} at most" if stops else "-"
        print(f"  {part}: graphs {sum(counts.values())}, stops {len(stops)} ({told}), half way {half}")
        for treatment, launches in counts.items():
            print(f"    {launches} {treatment}")
        self.lines.add(part=part, graphs=counts, stops=len(stops), half_way=half,
                       stop_us_median=stops[len(stops) // 2] if stops else None,
                       stop_us_most=stops[-1] if stops else None)
        return len(stops), half

    def stress(self, seconds):
        end, seed, half = time.monotonic() + seconds, 1, 0
        while time.monotonic() < end or seed < 3:
            for compile_ in ("ptx=1,wait=10", "ptx=0"):
                with Runtime(self.places, SMT_COMPILE=compile_) as runtime:
                    tenants = set()
                    for name in PROGRAMS:
                        for value in (seed, STOPS_ONLY + seed):
                            tenant = f"{name}_{value}"
                            tenants.add(tenant)
                            done = self.start(runtime, name, SMT_TENANT=tenant,
                                              SMT_STRESS=str(value)).finish()
                            self.right(name, done, f"{name}, seed {value}, {compile_}")
                    journal = self.closed(runtime, tenants)
                    half += self.look_at(journal, f"stress {seed}, {compile_}", tenants)[1]
                    self.check(any(entry["kind"] == "launch" and entry["treatment"].startswith("has a door")
                                   and entry["tenant"] == f"graph_stops_{seed}" for entry in journal
                                   if entry.get("kernel") == "a graph"),
                               f"stress {seed}, {compile_}: no captured graph has doors")
            seed += 1
        print(f"  {half} graphs were stopped half way")
        self.check(half > 0, "no graph was stopped half way")

    def beside(self, seconds):
        end, rounds, stops = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end or rounds == 0:
            rounds += 1
            for policy, priorities in (("priority", ("low", "high")), ("fair", ("normal", "normal"))):
                with Runtime(self.places, SMT_POLICY=policy) as runtime:
                    children = {f"{name}_{i}": (name, self.start(
                        runtime, name, SMT_TENANT=f"{name}_{i}", SMT_PRIORITY=priority))
                        for i, (name, priority) in enumerate(zip(("graph_stops", "graph_stops"), priorities))}
                    for tenant, (name, child) in children.items():
                        self.right(name, child.finish(), f"{tenant} under {policy}")
                    journal = self.closed(runtime, set(children))
                    stops += self.look_at(journal, policy, set(children))[0]
        print(f"  {stops} stops of graphs")
        self.check(stops > 0, "no graph was stopped for another program")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--parts", default="stress,beside")
    parser.add_argument("--seconds", default="60,60", help="for each part")
    parser.add_argument("--launches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=20000, help="of a kernel's loop")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    return Graphs(options).run_parts()


if __name__ == "__main__":
    sys.exit(main())
