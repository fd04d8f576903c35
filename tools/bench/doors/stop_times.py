#!/usr/bin/env python3
"""How long a stop of a library's kernel takes, beyond a block of it: stop_times.py --out DIR [--budget 500]

Kernels of cuBLAS, cuBLASLt, cuDNN, Triton and of ours (stop_kernels.py) run under smt, one at a time, in a
tenant that may be stopped. Stops come at random times:

  urgent   under priority, from a more urgent tenant with a short kernel now and then
  stress   from the server itself (SMT_STRESS)

The time of a stop is the server's: from the decision, just before the stop word is written, until it has seen
that the stream is idle. What a block takes while the GPU is full is measured natively before (`block_by` in
stop_kernels.py says how); where workers of a managed kernel told how long the longest ticket took that a stop
waited for, it is that ticket's block. Of a persistent kernel the block is the whole launch, of which a stop
finds a part done: such kernels are a group of their own. In a group each kernel counts the same.

A row in stop_times.jsonl for each kernel, as it is measured, and for each group; two tables at the end, also
where the run is cut off by SIGTERM. Exit code 1 when a kernel failed or computed other bits than natively.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from blocks import fits, product_of  # noqa: E402
from harness import Places, Runtime  # noqa: E402
from measurement import Measurement, simulated  # noqa: E402
from stop_figures import beyond_of, group_of, groups_of, spread  # noqa: E402

STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
START = 40   # seconds until a process with all libraries is ready under smt: a guess, for --plan
FACTS = 0.35           # of the budget, at most, for what is measured natively
SMS = 132              # of an H100 and an H200
LAST = 3               # seconds of a phase for what is read at its end
BYS = ("urgent", "stress")


class StopTimes(Measurement):
    def __init__(self, options):
        places, environment = Places(options.build), {"PYTHONDONTWRITEBYTECODE": "1"}
        if options.place == "stub":
            environment.update(simulated(places.build, doors=1, grace=1, dispatch_clock=1))
        super().__init__(options, places, "stop_times.jsonl", environment)
        self.facts, self.problems, self.rows = {}, [], []

    def worker(self, what, names, variables, label, until):
        command = [self.options.interpreter, str(HERE / "stop_kernels.py"), "--place", self.options.place,
                   "--scratch", self.options.out, "--until", str(until - LAST), what, *names]
        return self.start(command, variables, label)

    def each(self, what, variables, label, deadline, take):
        """Runs all kernels, and gives each that is over to `take`. A process that ends early is followed by
        another one, with the kernels behind the one at which it ended."""
        names = list(self.options.kernels)
        while names and time.monotonic() < deadline:
            child, at = self.worker(what, names, variables, label, deadline), None
            while (said := child.next(deadline)) is not None:
                at = said.get("begin", said.get("end"))
                if "end" not in said:
                    continue
                names = names[names.index(at) + 1:]
                if "failed" in said:
                    self.problem(f"{at}, {label}: {said['failed']}")
                take(said)
                at = None
            ended = child.ended()
            child.end()
            if not names:
                break
            if not ended:
                self.problem(f"{label}: no time was left for {', '.join(names)}")
                break
            self.problem(f"{label}: at {at or names[0]} it ended: {child.why()}")
            names = names[names.index(at) + 1:] if at else names[1:]

    def problem(self, text):
        print("WRONG:", text, flush=True)
        self.problems.append(text)

    def natively(self):
        def take(said):
            self.facts[said["end"]] = said
            self.lines.add(part="facts", name=said["end"], **{k: v for k, v in said.items() if k != "end"})

        deadline = self.begun + FACTS * self.options.budget
        if self.options.place == "stub":   # there is no device without smt
            with Runtime(self.places, **self.server("fifo")) as runtime:
                self.each("facts", self.preloaded(runtime), "facts", deadline, take)
        else:
            self.each("facts", {}, "facts", deadline, take)

    def server(self, policy):
        return {"SMT_POLICY": policy, "SMT_CACHE_DIR": os.path.join(self.options.out, "cache"),
                "SMT_COMPILE": "doors=1,ptx=0"}

    def disturbed(self, by, deadline):
        with Runtime(self.places, **self.server("priority" if by == "urgent" else "fifo")) as runtime:
            more, urgent = {"SMT_TENANT": "worker"}, None
            if by == "urgent":
                urgent = self.start([self.options.interpreter, str(HERE / "urgent.py"),
                                     str(self.options.every), str(self.options.seed)],
                                    self.preloaded(runtime, SMT_TENANT="urgent", SMT_PRIORITY="high"), by)
            else:
                more["SMT_STRESS"] = str(self.options.seed)
            self.each("loop", self.preloaded(runtime, **more), f"loop-{by}", deadline,
                      lambda said: self.take(by, runtime, said))
            if urgent:
                if urgent.process.poll() is not None or urgent.finish() != 0:
                    self.problem(f"the urgent tenant: {urgent.why()}")
            self.write_kernels(runtime, f"{by}-kernels.txt")

    def take(self, by, runtime, said):
        if "failed" in said:
            return
        entries = [json.loads(line) for line in self.smt(runtime, "log", "--json").splitlines()
                   if re.search(r'"kind":"(stopped|launch)"', line)]
        virtual = any(entry.get("clock") == "virtual" for entry in entries)
        entries = [entry for entry in entries if entry["tenant"] == "worker" and (
            virtual or said["ready_ns"] <= entry["time_ns"] <= said["ns"])]
        stops, launches = {}, {}
        for entry in entries:
            if entry["kind"] == "stopped":
                stops.setdefault(entry["text"], []).append(entry)
            else:
                launches[entry["symbol"]] = entry
        name, facts = said["end"], self.facts.get(said["end"], {})
        same = said["hash"] == facts.get("hash")
        if facts.get("hash") and not same:
            self.problem(f"{name}, {by}: other bits than natively")
        # of a stub that runs before it, too: there all times are the device's, and names tell them apart
        if virtual:
            stops = {symbol: each for symbol, each in stops.items() if symbol == facts.get("kernel", symbol)}
        if not stops:
            self.rows.append(self.lines.add(part="stops", by=by, name=name, stops=0, steps=said["steps"],
                                            same_bits=same))
        for symbol, each in sorted(stops.items(), key=lambda item: -len(item[1]))[:3]:
            self.one(by, name, symbol, each, launches.get(symbol, {}), facts, said, same)

    def one(self, by, name, symbol, stops, launch, facts, said, same):
        # Of the kernel whose block was measured, by its grid: others of the step have no difference.
        block, block_by = block_of(launch, facts)
        if any(stop.get("ticket_blocks") for stop in stops):
            block_by = "ticket"
        times, beyond = [stop["value"] / 1e3 for stop in stops], beyond_of(stops, block)
        kernel = launch.get("kernel", symbol)[:200]
        row = self.lines.add(part="stops", by=by, name=name, kernel=kernel, stops=len(times),
                             group=group_of(name, kernel, facts.get("waves")), grid=launch.get("grid"),
                             treatment=launch.get("treatment"), stop_us=spread(times),
                             longest_us=max(times), block_us=block, block_by=block_by,
                             fill=facts.get("fill"), ctas_per_sm=facts.get("ctas_per_sm"),
                             kernel_us=facts.get("kernel_us"), waves=facts.get("waves"),
                             beyond_us=spread(beyond), steps=said["steps"], same_bits=same,
                             all_us=[round(each, 2) for each in times])
        self.rows.append({**row, "beyond": beyond})
        print(self.line(row), flush=True)

    def line(self, row):
        cells = [f"{row['name']:<18} {row['by']:<7} {row['stops']:>6}"]
        if row["stops"]:
            stop, beyond = row["stop_us"], row["beyond_us"] or {}
            cells += [f"{stop['p50']:>8.1f} {stop['p99']:>8.1f}",
                      f"{row['block_us'] or float('nan'):>9.1f} {row['block_by']:<9}",
                      f"{beyond.get('p50', float('nan')):>8.1f} {beyond.get('p99', float('nan')):>8.1f}",
                      f"{row['waves'] or 0:>6.1f} {row['group']:<10} {row['kernel'][:60]}"]
        return " ".join(cells)

    def table(self):
        print(f"\n{'kernel':<18} {'by':<7} {'stops':>6} {'stop p50':>8} {'p99 us':>8} {'block us':>9} "
              f"{'by':<9} {'beyond50':>8} {'p99':>8} {'waves':>6} group")
        for row in self.rows:
            print(self.line(row))
        print(f"\n{'group':<11} {'by':<7} {'kernels':>7} {'stops':>7} {'beyond50':>8} {'p99 us':>8} "
              "largest p99")
        for group in groups_of(self.rows):
            self.lines.add(part="group", **group)
            print(f"{group['group']:<11} {group['by']:<7} {len(group['kernels']):>7} {group['stops']:>7} "
                  f"{group['beyond_us']['p50']:>8.1f} {group['beyond_us']['p99']:>8.1f} "
                  f"{group['p99_of'][group['worst']]:.1f} {group['worst']}")
        for text in self.problems:
            print("WRONG:", text)

    def measure(self):
        self.natively()
        for number, by in enumerate(self.options.by):
            left = (self.end - time.monotonic()) / (len(self.options.by) - number)
            self.disturbed(by, time.monotonic() + left)

    def bad(self):
        return bool(self.problems) or not any(row["stops"] for row in self.rows)


def block_of(launch, facts):
    """(us, how that is known) of a block of the kernel that has this launch in the journal."""
    if "block_us" in facts and launch.get("grid") == facts["grid"]:
        return facts["block_us"], facts["block_by"]
    if "unknown" in facts and launch.get("registers"):
        places = SMS * fits(product_of(launch["block"]), launch["registers"], launch["shared_bytes"])
        return facts["step_us"] / max(1, product_of(launch["grid"]) / places), "step"
    return None, "not known"


def plan(options):
    native = FACTS * options.budget
    each = ((options.budget - native) / len(options.by) - START) / len(options.kernels)
    print(f"natively {native:.0f} s at most; then {', '.join(options.by)}, {max(0.3, each):.1f} s and "
          f"more of each of {len(options.kernels)} kernels: {', '.join(options.kernels)}")
    return 0


def kernels(place):
    if place == "stub":
        return ["stub_long", "stub_wide"]
    text = (HERE / "stop_library_kernels.py").read_text()
    return re.findall(r"^@kernel\(.*\)\ndef (\w+)", text, re.MULTILINE) + re.findall(r'"(own_\w+)": ', text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--budget", type=float, default=500, help="seconds for all of it")
    parser.add_argument("--by", type=lambda text: text.split(","), default=list(BYS))
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=[])
    parser.add_argument("--every", type=float, default=4, help="ms from one urgent kernel to the next, mean")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--place", choices=["cuda", "stub"], default="cuda",
                        help="stub: without PyTorch and GPU, on the simulated device")
    parser.add_argument("--plan", action="store_true", help="what would be done, and how long")
    parser.add_argument("--interpreter", default=sys.executable)
    options = parser.parse_args()
    if unknown := [by for by in options.by if by not in BYS]:
        parser.error(f"stops do not come by {', '.join(unknown)}; they do by {', '.join(BYS)}")
    options.kernels = options.kernels or kernels(options.place)
    if options.plan:
        return plan(options)
    os.makedirs(options.out, exist_ok=True)
    options.out = os.path.abspath(options.out)
    return StopTimes(options).all()


if __name__ == "__main__":
    sys.exit(main())
