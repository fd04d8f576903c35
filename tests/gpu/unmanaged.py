#!/usr/bin/env python3
"""Kernels that smt cannot manage, confined to parts of a GPU: unmanaged.py [--parts where,programs]

  where      tenants confined to parts of the GPU, all at once, and one that is not: where their kernels were,
             against where the journal says that they run
  programs   the GPU test programs that there are, confined: the same output as natively

What urgent work beside such kernels has to wait for measures tools/bench/corun/unmanaged_latency.py.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from busy import Busy  # noqa: E402
from harness import WAITS, Child, Runtime, run, tail  # noqa: E402


def numbers(text):
    found = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Unmanaged(Busy):
    def where(self, _):
        wanted = {"thirty": "30", "forty": "40", "all": None}
        with Runtime(self.places, SMT_POLICY="fifo") as runtime:
            children = {}
            for name, sms in wanted.items():
                more = {"SMT_SMS": sms} if sms else {}
                children[name] = Child([self.busy, "--blocks", str(self.options.blocks), "--threads", "1024",
                                        "--rounds", "5000", "--seconds", "1.5"],
                                       {**self.environment, **runtime.variables(SMT_TENANT=name, **more)},
                                       self.places.preload, 60)
            answers = {name: self.answer(child.finish()) for name, child in children.items()}
            told = {}
            for note in self.notes(runtime):
                print("  ", note["text"])
                if found := re.search(r"\((\w+), pid \d+\): its kernels run on (\d+) multiprocessors "
                                      r"\(([\d, -]+)\)", note["text"]):
                    told[found[1]] = numbers(found[3])
        for name in answers:
            ran, row = set(answers[name]["sms"]), sorted(told.get(name, ()))
            self.lines.add(part="where", tenant=name, asked=wanted[name], told=row, ran=sorted(ran),
                           launches=len(answers[name]["us"]),
                           median_us=statistics.median(answers[name]["us"] or [0]))
            print(f"{name:<8} asked for {wanted[name]}, told {len(row)}, ran on {len(ran)}, "
                  f"{len(answers[name]['us'])} launches")
            self.check(ran and (name == "all" or ran == told.get(name)),
                       f"{name} ran on {sorted(ran)}, told {row}")
        self.check(len(told.get("thirty", ())) == 32 and len(told.get("forty", ())) == 40,
                   "sizes are rounded up to eights")
        self.check(not told.get("thirty", set()) & told.get("forty", set()),
                   "the two have multiprocessors of their own")
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
                confined = Child([os.path.join(folder, name)], {**self.environment, **runtime.variables(
                    SMT_SMS="24", SMT_COMPILE=f"{WAITS},ptx={self.options.ptx}", SMT_JOURNAL="mapping")},
                                 self.places.preload, 60).finish()
                notes = [note["text"] for note in self.notes(runtime)]
                told = next((numbers(found[1]) for note in notes
                             if (found := re.search(r"run on 24 multiprocessors \(([\d, -]+)\)", note))),
                            set())
                log = run([self.places.smt, "log", "--json",
                           "--mapping"], {**self.environment, **runtime.variables()}, None, 60)["out"]
                managed = [entry for entry in map(json.loads, log.splitlines()) if entry["kind"] == "mapping"]
            notes = [note for note in notes if "too large" in note]
            astray = sorted(set(sm for entry in managed for sm in entry["sms"]) - told)
            self.check(len(told) == 24 and not astray, f"{name}: managed kernels ran on {astray} too")
            same = native["rc"] == confined["rc"] == 0 and native["out"] == confined["out"]
            self.lines.add(part="programs", program=name, same=same, notes=notes, mappings=len(managed),
                           astray=astray,
                           **({} if same
                              else {"native": tail(native["out"]), "confined": tail(confined["out"]),
                                    "err": tail(confined["err"]),
                                    "rc": [native["rc"], confined["rc"]]}))
            print(f"{name:<24} {'same' if same else 'DIFFERENT'}, {len(managed)} managed launches "
                  f"{notes or ''}")
            self.check(same, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--blocks", type=int, default=5280, help="of the kernels of the part where")
    parser.add_argument("--ptx", default="1", choices=["0", "1"],
                        help="of the part programs: whether kernels are managed by their PTX")
    parser.add_argument("--parts", default="where,programs")
    parser.add_argument("--seconds", default="30,60", help="for each part")
    options = parser.parse_args()
    return Unmanaged(options, "unmanaged.jsonl").run_parts()


if __name__ == "__main__":
    sys.exit(main())
