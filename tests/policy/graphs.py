#!/usr/bin/env python3
"""Graphs of kernels with doors (runtime/dispatch/graph_doors.h) under the engine, on the simulated device:
doors in SMT_SIM, and no managed forms.

    graphs.py SMT FOLDER_OF_PROGRAMS FOLDER_OF_CUDA_PROGRAMS SCENARIO [--thorough]

graph_stops and graph_changes (tests/gpu/programs), as nvcc builds them, check the results of graphs that are
not idempotent: a block that runs twice, never, or before its time shows.
"""
import pathlib
import re
import subprocess
import sys

from doors import SEEDS, Doors, stopped_half_way
from gated import PATIENCE, said

GRAPHS = "6", "60", "256"    # launches, rounds, blocks
LONG = "6", "200", "256"
STOPPED = "has a door: a graph, each kernel of which has one"
LEFT = "unmanaged: a graph with a copy that is not within device memory, or is a box or of an array"


class Graphs(Doors):
    def __init__(self, smt, programs, cuda, policy="priority", **sim):
        # the dispatcher goes by the device's clock: what it stops does not depend on this machine's speed
        super().__init__(smt, programs, policy, dispatch_clock=1, **sim)
        self.cuda = pathlib.Path(cuda)

    def start_graphs(self, tenant, *arguments, program="graph_stops", options=()):
        return subprocess.Popen([self.smt, "run", "--tenant", tenant, *options, "--", self.cuda / program,
                                 *arguments], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run_graphs(self, tenant, *arguments, **how):
        return right(self.start_graphs(tenant, *arguments, **how))

    def treatments(self, tenant):
        """Of launches of graphs: {treatment: how many}."""
        counts = {}
        for entry in self.entries(tenant, "launch"):
            if entry["kernel"] == "a graph":
                counts[entry["treatment"]] = counts.get(entry["treatment"], 0) + 1
        return counts

    def stops_of_graphs(self, tenant):
        """Microseconds of each."""
        self.until(f"{tenant} has left", lambda: self.entries(tenant, "closed"))
        assert STOPPED in self.treatments(tenant), self.treatments(tenant)
        return sorted(entry["value"] / 1e3 for entry in self.entries(tenant, "stopped")
                      if entry["text"] == "a graph")


def right(process):
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and re.fullmatch(r"checksum \w+\n", output), output
    return output


def under_stress(smt, programs, cuda):
    """Graphs are stopped and resumed at random, again and again within a launch."""
    # captured, on two streams, destroyed, with a child; and those with a copy. Changed, updated.
    graphs = {"graph_stops": {STOPPED: 6 + 6 + 1 + 6, LEFT: 6}, "graph_changes": {STOPPED: 1 + 6 + 6}}
    with Graphs(smt, programs, cuda) as place:
        half = 0
        for program, launches in graphs.items():
            plain = place.run_graphs(f"plain_{program}", *GRAPHS, program=program)
            said(place.treatments(f"plain_{program}"), {})
            for seed in SEEDS:
                tenant = f"{program}{seed}"
                stress = "--stress", str(seed)
                said(place.run_graphs(tenant, *GRAPHS, program=program, options=stress), plain)
                place.until(f"{tenant} has left", lambda tenant=tenant: place.entries(tenant, "closed"))
                stops = stopped_half_way(place, tenant)
                print(f"{program}, seed {seed}: stopped half way {stops}")
                half += stops
                said(place.treatments(tenant), launches)
        assert half > 20, half
        table = subprocess.run([smt, "log", "--kernels"], env=place.environment, capture_output=True,
                               text=True, timeout=PATIENCE, check=True).stdout
        for row in (r"19 +0  has a door", r"6 +0  unmanaged"):
            assert re.search(rf"^graph_stops1 +{row} +a graph$", table, re.M), table


def urgent(smt, programs, cuda):
    """Graphs of a tenant are stopped for the launches of a more urgent one."""
    with Graphs(smt, programs, cuda, "priority", tenants=2) as place:
        graphs = place.start_graphs("graphs", *GRAPHS, options=("--priority", "low"))
        # short launches with pauses, until the other one is over
        load = place.start("load", "load", "8", "0", "20", "1000000", "60000", "250",
                           options=("--priority", "high"))
        right(graphs)
        load.communicate(timeout=PATIENCE)
        stops = place.stops_of_graphs("graphs")
        decisions = place.decisions("graphs")
        print(f"stops {stops}, decisions {decisions[:2]}")
        assert len(stops) > 2 and any("for load" in text for text in decisions), (stops, decisions)
        assert stops[0] < 60, stops   # a launch takes some hundreds of microseconds


def turns(smt, programs, cuda):
    """Under fair two programs with graphs take turns, within their graphs."""
    with Graphs(smt, programs, cuda, "fair", tenants=2) as place:
        started = {tenant: place.start_graphs(tenant, *LONG) for tenant in ("one", "two")}
        outputs = {right(process) for process in started.values()}
        assert len(outputs) == 1, outputs
        for tenant, other in (("one", "two"), ("two", "one")):
            stops, decisions = place.stops_of_graphs(tenant), place.decisions(tenant)
            print(f"{tenant}: stops {stops}, decisions {decisions[:2]}")
            assert stops and any(f"the turn of {other}" in text for text in decisions), (stops, decisions)


def main():
    smt, programs, cuda, scenario = sys.argv[1:5]
    globals()[scenario](smt, programs, cuda)


if __name__ == "__main__":
    main()
