#!/usr/bin/env python3
"""Kernels that smt cannot manage, on a real GPU: unmanaged.py [--parts where,programs,start,apart,latency]

  where      tenants confined to parts of the GPU, all at once, and one that is not: where their kernels were,
             against where the journal says that they run
  programs   the GPU test programs that there are, confined: the same output as natively
  start      a program that finds no server: what it costs to make a set of multiprocessors ready
  apart      a kernel without PTX that fills the part it is confined to, with blocks of 10 ms, and an urgent tenant's small one: where each
             ran, and how long the small one took to begin and to end; beside nobody, and interleaved
  latency    an urgent tenant's small kernel behind another's large ones, with blocks of several lengths: smt with
             and without confinement, plain time-slicing, MPS, MPS with client priority; interleaved
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

from harness import Child, Lines, Places, Runtime, base_environment, run, tail
from share import Mps, quantile

# Of the large kernel: blocks and rounds; two blocks of 1024 threads stand on each of 132 multiprocessors.
LARGE = {"0.05 ms blocks": (264 * 60, 5_000), "0.2 ms blocks": (264 * 20, 20_000), "10 ms blocks": (264, 1_000_000)}
SMALL = ["--blocks", "132", "--threads", "256", "--rounds", "10000"]
# name: policy, and what else the large one gets; no policy: without smt.
MODES = {
    "alone": ("fifo", None), "one context": ("fifo", {}), "one context, 96 SMs": ("fifo", {"SMT_SMS": "96"}),
    "priority-whole": ("priority-whole", {}), "priority": ("priority", {}),
    "time-sliced": (None, {}), "mps": (None, {}), "mps-priority": (None, {}),
}


def numbers(text):
    found = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Unmanaged:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.busy = os.path.join(self.places.programs, "machine_code", "busy")
        self.lines = Lines(os.path.join(options.out, "unmanaged.jsonl"))
        self.environment = base_environment()
        self.wrong = 0

    def check(self, right, what):
        if not right:
            self.wrong += 1
            print(f"WRONG: {what}")

    def notes(self, runtime):
        log = run([self.places.smt, "log", "--json"], {**self.environment, **runtime.variables()}, None, 60)["out"]
        return [entry for entry in map(json.loads, log.splitlines()) if entry["kind"] in ("note", "decision")]

    def answer(self, done):
        try:
            return json.loads(done["out"].replace("READY\n", ""))
        except ValueError:
            self.check(False, f"rc {done['rc']}: {tail(done['out'])} {tail(done['err'])}")
            return {"us": [], "sms": [], "seconds": 0}

    # ---- parts

    def where(self, _):
        wanted = {"thirty": "30", "forty": "40", "all": None}
        with Runtime(self.places, SMT_POLICY="fifo") as runtime:
            children = {}
            for name, sms in wanted.items():
                more = {"SMT_SMS": sms} if sms else {}
                children[name] = Child([self.busy, "--blocks", str(self.options.blocks), "--threads", "1024", "--rounds", "5000", "--seconds", "1.5"],
                                       {**self.environment, **runtime.variables(SMT_TENANT=name, **more)}, self.places.preload, 60)
            answers = {name: self.answer(child.finish()) for name, child in children.items()}
            told = {}
            for note in self.notes(runtime):
                print("  ", note["text"])
                if found := re.search(r"\((\w+), pid \d+\): its kernels run on (\d+) multiprocessors \(([\d, -]+)\)", note["text"]):
                    told[found[1]] = numbers(found[3])
        for name in answers:
            ran, row = set(answers[name]["sms"]), sorted(told.get(name, ()))
            self.lines.add(part="where", tenant=name, asked=wanted[name], told=row, ran=sorted(ran), launches=len(answers[name]["us"]),
                           median_us=statistics.median(answers[name]["us"] or [0]))
            print(f"{name:<8} asked for {wanted[name]}, told {len(row)}, ran on {len(ran)}, {len(answers[name]['us'])} launches")
            self.check(ran and (name == "all" or ran == told.get(name)), f"{name} ran on {sorted(ran)}, told {row}")
        self.check(len(told.get("thirty", ())) == 32 and len(told.get("forty", ())) == 40, "sizes are rounded up to eights")
        self.check(not told.get("thirty", set()) & told.get("forty", set()), "the two have multiprocessors of their own")
        self.check(len(answers["all"]["sms"]) > 100, "the third one has all")

    def programs(self, budget):
        end = time.monotonic() + budget
        folder = os.path.join(self.places.programs, "static")
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in names:
            if time.monotonic() > end or name == "fault_client":
                continue
            native = run([os.path.join(folder, name)], self.environment, None, 60)
            with Runtime(self.places) as runtime:
                confined = Child([os.path.join(folder, name)], {**self.environment, **runtime.variables(SMT_SMS="24", SMT_COMPILE=f"ptx={self.options.ptx}", SMT_JOURNAL="mapping")},
                                 self.places.preload, 60).finish()
                notes = [note["text"] for note in self.notes(runtime)]
                told = next((numbers(found[1]) for note in notes if (found := re.search(r"run on 24 multiprocessors \(([\d, -]+)\)", note))), set())
                log = run([self.places.smt, "log", "--json", "--mapping"], {**self.environment, **runtime.variables()}, None, 60)["out"]
                managed = [entry for entry in map(json.loads, log.splitlines()) if entry["kind"] == "mapping"]
            notes = [note for note in notes if "too large" in note]
            astray = sorted(set(sm for entry in managed for sm in entry["sms"]) - told)
            self.check(len(told) == 24 and not astray, f"{name}: managed kernels ran on {astray} too")
            same = native["rc"] == confined["rc"] == 0 and native["out"] == confined["out"]
            self.lines.add(part="programs", program=name, same=same, notes=notes, mappings=len(managed), astray=astray,
                           **({} if same else {"native": tail(native["out"]), "confined": tail(confined["out"]), "err": tail(confined["err"]),
                                               "rc": [native["rc"], confined["rc"]]}))
            print(f"{name:<24} {'same' if same else 'DIFFERENT'}, {len(managed)} managed launches {notes or ''}")
            self.check(same, name)

    def start(self, _):
        for turn in range(5):
            for policy in ("priority-whole", "priority"):
                with Runtime(self.places, SMT_POLICY=policy) as runtime:
                    done = Child([self.busy, "--launches", "1"], {**self.environment, **runtime.variables()}, self.places.preload, 60).finish()
                self.lines.add(part="start", policy=policy, round=turn, seconds=done["seconds"], rc=done["rc"])
        for policy in ("priority-whole", "priority"):
            times = [row["seconds"] for row in self.lines.all if row["part"] == "start" and row["policy"] == policy]
            print(f"{policy:<16} first program {statistics.median(times):.3f} s, {min(times):.3f} to {max(times):.3f}")

    def apart(self, budget):
        """The small one must have all multiprocessors that the large one is kept from; on the others it may find room between two launches of it."""
        end, found = time.monotonic() + budget, {}
        blocks, rounds = LARGE["10 ms blocks"]
        large = [self.busy, "--blocks", str(blocks), "--threads", "1024", "--rounds", str(rounds), "--ahead", "4", "--ready"]
        small = [self.busy, "--blocks", "36", "--threads", "256", "--rounds", "10000", "--pause", str(self.options.pause), "--starts",
                 "--launches", str(self.options.launches), "--seconds", "2"]
        for turn in range(self.options.rounds):
            for mode in ("alone", "beside"):
                if time.monotonic() > end - 5:
                    print(f"no time for {mode}, round {turn}")
                    continue
                with Runtime(self.places, SMT_POLICY="fifo") as runtime:
                    back = None
                    if mode == "beside":
                        back = Child(large, {**self.environment, **runtime.variables(SMT_TENANT="low", SMT_PRIORITY="low", SMT_SMS="96")},
                                     self.places.preload, 60, stdin=True)
                        self.check(back.wait_ready(), "apart: the large one does not begin")
                        time.sleep(0.3)   # until its launches queue up; measured, not asserted
                    front = self.answer(Child(small, {**self.environment, **runtime.variables(SMT_TENANT="high", SMT_PRIORITY="high")},
                                              self.places.preload, 60).finish())
                    behind = {"us": [], "sms": []}
                    if back:
                        back.close_input()
                        behind = self.answer(back.finish())
                if back:
                    free = set(range(132)) - set(behind["sms"])
                    self.check(len(behind["sms"]) == 96 and free <= set(front["sms"]),
                               f"apart: the large one on {len(behind['sms'])}, the small one not on {sorted(free - set(front['sms']))}")
                self.lines.add(part="apart", mode=mode, round=turn, start_us=front.get("start_us", []), small_us=front["us"], large_us=behind["us"],
                               small_sms=front["sms"], large_sms=behind["sms"])
                entry = found.setdefault(mode, ([], []))
                entry[0].extend(front.get("start_us", []))
                entry[1].extend(front["us"])
        print(f"{'mode':<8} {'what':<16} {'p50 us':>9} {'p90 us':>9} {'p99 us':>9} {'max us':>9} {'n':>5}")
        for mode, times in found.items():
            for what, values in zip(("to its start", "to its end"), times):
                if values:
                    print(f"{mode:<8} {what:<16} {quantile(values, .5):>9.1f} {quantile(values, .9):>9.1f} {quantile(values, .99):>9.1f} {max(values):>9.1f} {len(values):>5}")

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
        print(f"{'large':<16} {'mode':<20} {'p50 us':>9} {'p90 us':>9} {'p99 us':>9} {'max us':>9} {'n':>5} {'large /s':>9}")
        for (kind, mode), (small, large) in found.items():
            if small:
                print(f"{kind:<16} {mode:<20} {quantile(small, .5):>9.1f} {quantile(small, .9):>9.1f} {quantile(small, .99):>9.1f} {max(small):>9.1f} "
                      f"{len(small):>5} {len(large) / (sum(large) / 1e6) if large else 0:>9.1f}")

    def pair(self, kind, mode, turn):
        policy, more = MODES[mode]
        blocks, rounds = LARGE[kind]
        small_command = [self.busy, *SMALL, "--pause", str(self.options.pause), "--launches", str(self.options.launches), "--seconds", "3"]
        large_command = [self.busy, "--blocks", str(blocks), "--threads", "1024", "--rounds", str(rounds), "--ahead", "4", "--ready"]
        preload = self.places.preload if policy else None
        with Runtime(self.places, SMT_POLICY=policy or "fifo") as runtime, Mps(mode) as mps:
            variables = {**self.environment, **mps.variables}
            small_is, large_is = [{**variables, **(runtime.variables(SMT_TENANT=p, SMT_PRIORITY=p) if policy else mps.client(p))}
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
        return self.lines.add(part="latency", large=kind, mode=mode, round=turn, small_us=front["us"], large_us=behind["us"],
                              small_sms=len(front["sms"]), large_sms=len(behind["sms"]), notes=sorted(set(notes))[:12])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=5280, help="of the kernels of the part where")
    parser.add_argument("--launches", type=int, default=150)
    parser.add_argument("--pause", type=float, default=2000, help="us between the small ones, on average")
    parser.add_argument("--large", default="", help="which kinds of large kernels; a regular expression, as the next")
    parser.add_argument("--modes", default="")
    parser.add_argument("--ptx", default="1", choices=["0", "1"], help="of the part programs: whether kernels are managed by their PTX")
    parser.add_argument("--parts", default="where,programs,start,apart,latency")
    parser.add_argument("--seconds", default="30,60,20,30,150", help="for each part")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    unmanaged = Unmanaged(options)
    for part, seconds in zip(options.parts.split(","), options.seconds.split(",")):
        print(f"== {part}")
        try:
            getattr(unmanaged, part)(float(seconds))
        except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
            unmanaged.check(False, f"{part}: {error!r}")
        sys.stdout.flush()
    print(f"{unmanaged.wrong} wrong")
    return 1 if unmanaged.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
