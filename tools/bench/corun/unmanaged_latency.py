#!/usr/bin/env python3
"""How long an urgent tenant's small kernel takes beside kernels that smt cannot manage, on a real GPU.
Figures are for people to judge; exit code 0 when every program answered.

  start      a program that finds no server: what it costs to make a set of multiprocessors ready
  apart      a kernel without PTX that fills the part it is confined to, with blocks of 10 ms, and an urgent
             tenant's small one: where each ran, and how long the small one took to begin and to end; alone,
             and beside it; interleaved
  latency    an urgent tenant's small kernel behind another's large ones, with blocks of several lengths: smt
             with and without confinement, plain time-slicing, MPS, MPS with client priority; interleaved
"""
import argparse
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from busy import Busy  # noqa: E402
from harness import Child, Runtime  # noqa: E402
from mps import Mps  # noqa: E402
from printed import quantile  # noqa: E402

# Of the large kernel: blocks and rounds; two blocks of 1024 threads stand on each of 132 multiprocessors.
LARGE = {"0.05 ms blocks": (264 * 60, 5_000), "0.2 ms blocks": (264 * 20, 20_000),
         "10 ms blocks": (264, 1_000_000)}
SMALL = ["--blocks", "132", "--threads", "256", "--rounds", "10000"]
# name: policy, and what else the large one gets; no policy: without smt.
MODES = {
    "alone": ("fifo", None), "one context": ("fifo", {}), "one context, 96 SMs": ("fifo", {"SMT_SMS": "96"}),
    "priority-whole": ("priority-whole", {}), "priority": ("priority", {}),
    "time-sliced": (None, {}), "mps": (None, {}), "mps-priority": (None, {}),
}


class Latency(Busy):
    def start(self, _):
        for turn in range(5):
            for policy in ("priority-whole", "priority"):
                with Runtime(self.places, SMT_POLICY=policy) as runtime:
                    done = Child([self.busy, "--launches", "1"], {**self.environment, **runtime.variables()},
                                 self.places.preload, 60).finish()
                self.lines.add(part="start", policy=policy, round=turn, seconds=done["seconds"],
                               rc=done["rc"])
        for policy in ("priority-whole", "priority"):
            times = [row["seconds"] for row in self.lines.all
                     if row["part"] == "start" and row["policy"] == policy]
            print(f"{policy:<16} first program {statistics.median(times):.3f} s, {min(times):.3f} to "
                  f"{max(times):.3f}")

    def apart(self, budget):
        """The small one must have all multiprocessors that the large one is kept from; on the others it may
        find room between two launches of it."""
        end, found = time.monotonic() + budget, {}
        blocks, rounds = LARGE["10 ms blocks"]
        large = [self.busy, "--blocks", str(blocks), "--threads", "1024", "--rounds", str(rounds),
                 "--ahead", "4", "--ready"]
        small = [self.busy, "--blocks", "36", "--threads", "256", "--rounds", "10000", "--pause",
                 str(self.options.pause), "--starts",
                 "--launches", str(self.options.launches), "--seconds", "2"]
        for turn in range(self.options.rounds):
            for mode in ("alone", "beside"):
                if time.monotonic() > end - 5:
                    print(f"no time for {mode}, round {turn}")
                    continue
                with Runtime(self.places, SMT_POLICY="fifo") as runtime:
                    back = None
                    if mode == "beside":
                        back = Child(large, {**self.environment, **runtime.variables(
                            SMT_TENANT="low", SMT_PRIORITY="low", SMT_SMS="96")},
                                     self.places.preload, 60, stdin=True)
                        self.check(back.wait_ready(), "apart: the large one does not begin")
                        time.sleep(0.3)   # until its launches queue up; measured, not asserted
                    front = self.answer(Child(small,
                                              {**self.environment,
                                               **runtime.variables(SMT_TENANT="high", SMT_PRIORITY="high")},
                                              self.places.preload, 60).finish())
                    behind = {"us": [], "sms": []}
                    if back:
                        back.close_input()
                        behind = self.answer(back.finish())
                if back:
                    free = set(range(132)) - set(behind["sms"])
                    self.check(len(behind["sms"]) == 96 and free <= set(front["sms"]),
                               f"apart: the large one on {len(behind['sms'])}, the small one not on "
                               f"{sorted(free - set(front['sms']))}")
                self.lines.add(part="apart", mode=mode, round=turn, start_us=front.get("start_us", []),
                               small_us=front["us"], large_us=behind["us"],
                               small_sms=front["sms"], large_sms=behind["sms"])
                entry = found.setdefault(mode, ([], []))
                entry[0].extend(front.get("start_us", []))
                entry[1].extend(front["us"])
        print(f"{'mode':<8} {'what':<16} {'p50 us':>9} {'p90 us':>9} {'p99 us':>9} {'max us':>9} {'n':>5}")
        for mode, times in found.items():
            for what, values in zip(("to its start", "to its end"), times):
                if values:
                    print(f"{mode:<8} {what:<16} {quantile(values, .5):>9.1f} {quantile(values, .9):>9.1f} "
                          f"{quantile(values, .99):>9.1f} {max(values):>9.1f} {len(values):>5}")

    def latency(self, budget):
        end = time.monotonic() + budget
        found = {}
        for turn in range(self.options.rounds):
            for kind in filter(re.compile(self.options.large).search, LARGE):
                for mode in filter(re.compile(self.options.modes).search, MODES):
                    if time.monotonic() > end - 5:
                        print(f"no time for {kind}, {mode}, round {turn}")
                        continue
                    row = self.pair(kind, mode, turn)
                    entry = found.setdefault((kind, mode), ([], []))
                    entry[0].extend(row["small_us"])
                    entry[1].extend(row["large_us"])
        print(f"{'large':<16} {'mode':<20} {'p50 us':>9} {'p90 us':>9} {'p99 us':>9} {'max us':>9} {'n':>5} "
              f"{'large /s':>9}")
        for (kind, mode), (small, large) in found.items():
            if small:
                print(f"{kind:<16} {mode:<20} {quantile(small, .5):>9.1f} {quantile(small, .9):>9.1f} "
                      f"{quantile(small, .99):>9.1f} {max(small):>9.1f} "
                      f"{len(small):>5} {len(large) / (sum(large) / 1e6) if large else 0:>9.1f}")

    def pair(self, kind, mode, turn):
        policy, more = MODES[mode]
        blocks, rounds = LARGE[kind]
        small_command = [self.busy, *SMALL, "--pause", str(self.options.pause), "--launches",
                         str(self.options.launches), "--seconds", "3"]
        large_command = [self.busy, "--blocks", str(blocks), "--threads", "1024", "--rounds", str(rounds),
                         "--ahead", "4", "--ready"]
        preload = self.places.preload if policy else None
        with Runtime(self.places, SMT_POLICY=policy or "fifo") as runtime, Mps(mode) as mps:
            variables = {**self.environment, **mps.variables}
            small_is, large_is = [{**variables, **(runtime.variables(SMT_TENANT=p, SMT_PRIORITY=p) if policy
                                                   else mps.client(p))}
                                  for p in ("high", "low")]
            back = None
            if more is not None:
                back = Child(large_command, {**large_is, **more}, preload, 60, stdin=True)
                self.check(back.wait_ready(), f"{kind}, {mode}: the large one does not begin")
                time.sleep(0.3)   # until its launches queue up; measured, not asserted
            front = self.answer(Child(small_command, small_is, preload, 60).finish())
            behind = {"us": [], "sms": []}
            if back:
                back.close_input()
                behind = self.answer(back.finish())
            notes = [note["text"] for note in self.notes(runtime)] if policy and turn == 0 else []
        return self.lines.add(part="latency", large=kind, mode=mode, round=turn, small_us=front["us"],
                              large_us=behind["us"],
                              small_sms=len(front["sms"]), large_sms=len(behind["sms"]),
                              notes=sorted(set(notes))[:12])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--launches", type=int, default=150)
    parser.add_argument("--pause", type=float, default=2000, help="us between the small ones, on average")
    parser.add_argument("--large", default="",
                        help="which kinds of large kernels; a regular expression, as the next")
    parser.add_argument("--modes", default="")
    parser.add_argument("--parts", default="start,apart,latency")
    parser.add_argument("--seconds", default="20,30,150", help="for each part")
    options = parser.parse_args()
    return Latency(options, "unmanaged_latency.jsonl").run_parts()


if __name__ == "__main__":
    sys.exit(main())
