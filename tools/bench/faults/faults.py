#!/usr/bin/env python3
"""What a fault of one program's kernel does to the program beside it, under SMT_KEEPER=takeover.

    faults.py --out OUT [--build BUILD] [--kinds load,store,misaligned,trap,endless]
              [--states idle,asking,held,...]
              [--repeats 5] [--mib 256] [--budget SECONDS] [--keeper takeover] [--device sim]

Each case is a neighbour in a state (parties.cu), a program whose kernel faults, and what became of the
neighbour: it goes on with the right bits, it ended with the error of the fault, its bits are wrong, or it
hangs. In the state held its launch may have come before the urgent program's: then it was not held, and ends.
Cases follow one another on one server, so each takeover but the first one is from a process that took
over itself. Recorded are the neighbour's longest call while the fault was dealt with (asking), its first
computation after it, and what the log says of the takeover; `new` is how long a program takes to start right
after the fault. Wrong, and the exit code 1: bits that are not right, a hang, an end of a neighbour that had
nothing under way. --keeper 0 is the server without a takeover, for comparison: every neighbour ends.

In the states strict and beside_strict the neighbour computes all the time; in the first it is a strict tenant
(smt run --isolation strict), in the second the culprit is. Wrong is then whatever is not going on, with every
--keeper.

The kind endless is a kernel that does not end, of a program with SMT_KERNEL_LIMIT=1. Without a takeover such
a limit is refused, so it is no kind with --keeper 0 or 1.

Results: OUT/faults.jsonl as cases end, OUT/faults.json with all of them and the figures by state, and a
table. With --budget no case is begun after that time; SIGTERM likewise ends the run after its case.
"""
import argparse
import glob
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, run, tail  # noqa: E402
from measurement import built_twice  # noqa: E402

KINDS = "load,store,misaligned,trap,endless"
STATES = "idle,asking,held,computing,copying,array,strict,beside_strict"
GOES_ON = ("idle", "asking", "held")   # has nothing under way: it must go on
ENDS = ("array",)                      # cannot be carried over: it must end
APART = ("strict", "beside_strict")    # the two have no context in common: it must go on
ERRORS = {"load": ("cudaErrorIllegalAddress",), "store": ("cudaErrorIllegalAddress",),
          "misaligned": ("cudaErrorMisalignedAddress",),
          "trap": ("cudaErrorLaunchFailure", "cudaErrorIllegalInstruction"),
          "endless": ("cudaErrorLaunchTimeout",)}
LIMIT = "1"   # seconds, of the kind endless
PATIENCE = 60
REST = {None: 100, "sim": 40_000}   # us between calls of the state asking: longer than grace in SMT_SIM
ROUNDS = {None: 40_000_000, "sim": 300}   # of the urgent program's kernel in the state held: a second or so


class Faults:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.program, self.environment = built_twice(options, "bench_faults", one_context=1, grace=20)
        self.lines = Lines(os.path.join(options.out, "faults.jsonl"))
        self.number, self.over = 0, False
        self.until = time.monotonic() + options.budget

    def child(self, runtime, *arguments, tenant, priority=0, **variables):
        variables = runtime.variables(SMT_TENANT=tenant, SMT_PRIORITY=str(priority), **variables)
        return Child([self.program, *map(str, arguments)], {**self.environment, **variables},
                     self.places.preload, PATIENCE, stdin=True)

    def run(self):
        """All cases. A server that did not survive one is followed by another one."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        cases = [(repeat, kind, state) for repeat in range(self.options.repeats)
                 for state in self.options.states.split(",") for kind in self.options.kinds.split(",")]
        while cases and not self.ended():
            with Runtime(self.places, SMT_KEEPER=self.options.keeper, SMT_POLICY="priority") as runtime:
                while cases and not self.ended():
                    repeat, kind, state = cases.pop(0)
                    row = self.lines.add(repeat=repeat, kind=kind, state=state,
                                         **self.case(runtime, kind, state))
                    print("{kind:10} {state:10} {outcome:10} {note}".format(note=row.get("why", ""), **row),
                          flush=True)
                    if not row["server_lives"]:
                        break
        return len(cases)

    def ended(self):
        return self.over or time.monotonic() > self.until

    def case(self, runtime, kind, state):
        self.number += 1
        neighbour = self.child(runtime, "neighbour", "computing" if state in APART else state,
                               self.options.mib, REST[self.options.device],
                               tenant=f"neighbour{self.number}", priority=-1, **isolation(state == "strict"))
        rounds = ROUNDS[self.options.device] if state == "held" else 0
        # A tenant that faults again and again would be refused.
        culprit = self.child(runtime, "culprit", kind, rounds, tenant=f"culprit{self.number}", priority=1,
                             **({"SMT_KERNEL_LIMIT": LIMIT} if kind == "endless" else {}),
                             **isolation(state == "beside_strict"))
        started = neighbour.wait_ready(PATIENCE) and culprit.wait_ready(PATIENCE)
        before = runtime.status() or {"pid": 0}
        if not started or not self.await_standby(runtime, before["pid"]):
            return self.failed(runtime, "the programs or the standby do not start", neighbour, culprit)
        told = time.monotonic()
        culprit.tell()
        if state == "held":
            if not wait_for(lambda: b"AT WORK" in culprit.out):
                return self.failed(runtime, "the urgent program does not begin", neighbour, culprit)
            neighbour.tell()
        ended = culprit.finish()
        fault = time.monotonic()
        new = self.start_new(runtime) if self.options.keeper == "takeover" else {}
        if state != "beside_strict":
            self.await_successor(runtime, before["pid"])
        neighbour.tell()
        row = self.judge(kind, state, neighbour.finish(), ended, self.reason(runtime))
        row.update(new, culprit_s=round(fault - told, 3), told_s=round(time.monotonic() - fault, 3),
                   **self.takeover(runtime, before["pid"]))
        after = runtime.status()
        row["server_lives"] = after is not None and (self.options.keeper == "takeover"
                                                     or state == "beside_strict")
        if state == "beside_strict" and (after or {}).get("pid") != before["pid"]:
            row.update(ok=False, why=row["why"] + "; the shared server did not stay")
        return row

    def start_new(self, runtime):
        """A program that comes right after the fault: it waits for the process that takes over."""
        environment = {**self.environment, **runtime.variables(SMT_TENANT="new")}
        done = run([self.program, "culprit", "none"], environment, self.places.preload, PATIENCE)
        return {"new_ms": round(done["seconds"] * 1000, 1), "new_right": "cudaSuccess" in done["out"]}

    def await_standby(self, runtime, pid):
        if self.options.keeper != "takeover":
            return True
        said = re.compile(rf"smtd\[{pid}\] a standby, process \d+, is ready")
        return wait_for(lambda: said.search(whole_log(runtime)))

    def await_successor(self, runtime, pid):
        if self.options.keeper == "takeover":
            wait_for(lambda: (runtime.status() or {"pid": pid})["pid"] != pid, 10)

    def takeover(self, runtime, pid):
        found = re.search(rf"smtd\[{pid}\] process \d+ serves from now on, (\d+) of (\d+) sessions .*; after "
                          r"(\d+) ms", whole_log(runtime))
        if not found:
            return {}
        return {"carried": int(found[1]), "sessions": int(found[2]), "takeover_ms": int(found[3])}

    def reason(self, runtime):
        """Why the neighbour was not carried over, by the log; empty: it was."""
        found = re.search(rf"\(neighbour{self.number}, pid \d+\): it ends, as it cannot go on in another "
                          r"process: (.*)", whole_log(runtime))
        return found[1] if found else ""

    def judge(self, kind, state, end, culprit, reason):
        row = {"culprit_said": tail(culprit["out"].replace("READY\n", "").strip(), 200), "reason": reason}
        problems = []
        if not any(error in culprit["out"] for error in ERRORS[kind]):
            problems.append("the culprit says " + tail(culprit["out"] + culprit["err"], 200))
        said = re.search(r"\{.*\}", end["out"])
        if end["rc"] == 124:
            row["outcome"] = "hangs"
        elif not said:
            row["outcome"] = "fails"
            problems.append(f"exit code {end['rc']}: " + tail(end["out"] + end["err"], 300))
        else:
            row.update(json.loads(said[0]))
            row["outcome"] = "wrong" if not row["right"] else "ends" if row["error"] else "goes on"
        wanted = {"goes on", "ends"}
        if state in APART:
            wanted = {"goes on"}
        elif self.options.keeper != "takeover" or state in ENDS:
            wanted = {"ends"}
        elif state in GOES_ON:
            wanted = {"goes on"}
            under_way = row["outcome"] == "ends" and "kernels of it were under way" in reason
            if state == "held" and under_way:   # its launch came first
                row["outcome"], wanted = "not held", {"not held"}
        if row["outcome"] not in wanted:
            problems.append(f"the neighbour {row['outcome']}: " + tail(end["err"], 400))
        return {**row, "ok": not problems, "why": "; ".join(problems)}

    def failed(self, runtime, why, *children):
        for child in children:
            if child.process.poll() is None:
                child.kill()
        ends = [child.finish() for child in children]
        said = " ".join(end["out"] + end["err"] for end in ends)
        return {"outcome": "not begun", "ok": False, "server_lives": False,
                "why": f"{why}: {tail(said, 300)} {runtime.log(600)}"}

    def figures(self):
        """By state: how the cases ended, and quantiles of the times."""
        found = {}
        for state in dict.fromkeys(row["state"] for row in self.lines.all):
            rows = [row for row in self.lines.all if row["state"] == state]
            outcomes = {name: sum(row["outcome"] == name for row in rows)
                        for name in dict.fromkeys(row["outcome"] for row in rows)}
            found[state] = {"cases": len(rows), "outcomes": outcomes, "ok": sum(row["ok"] for row in rows)}
            on = [row for row in rows if row["outcome"] == "goes on"]
            for name in ("longest_ms", "first_ms", "takeover_ms", "new_ms"):
                values = sorted(row[name] for row in on if name in row)
                if values:
                    found[state][name] = {"median": statistics.median(values), "least": values[0],
                                          "most": values[-1], "n": len(values)}
        return found

    def write(self, left):
        figures = self.figures()
        described = {"device": self.options.device or "gpu", "mib": self.options.mib,
                     "keeper": self.options.keeper, "not_begun": left, "states": figures,
                     "cases": self.lines.all}
        with open(os.path.join(self.options.out, "faults.json"), "w") as file:
            json.dump(described, file, indent=1)
        print(f"\n{'state':10} {'cases':>5} {'ok':>4}  {'outcomes':34} pause, first, takeover, new: "
              "median (most) ms")
        for state, found in figures.items():
            outcomes = ", ".join(f"{count} {name}" for name, count in found["outcomes"].items())
            times = "  ".join(f"{found[name]['median']:.1f} ({found[name]['most']:.1f})"
                              if name in found else "-"
                              for name in ("longest_ms", "first_ms", "takeover_ms", "new_ms"))
            print(f"{state:10} {found['cases']:5} {found['ok']:4}  {outcomes:34} {times}")
        if left:
            print(f"{left} cases were not begun: the time was over")


def isolation(strict):
    return {"SMT_ISOLATION": "strict"} if strict else {}


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def whole_log(runtime):
    """Of all servers there: each takeover begins another log."""
    text = ""
    for path in glob.glob(os.path.join(runtime.directory, "*.log*")):
        try:
            with open(path, errors="replace") as file:
                text += file.read()
        except OSError:   # it was moved meanwhile
            pass
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_faults")
    parser.add_argument("--out", required=True)
    parser.add_argument("--kinds", help="default: all")
    parser.add_argument("--states", default=STATES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="of the neighbour's memory")
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--keeper", choices=("takeover", "1", "0"), default="takeover")
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    kinds = KINDS if options.keeper == "takeover" else KINDS.replace(",endless", "")
    options.kinds = options.kinds or kinds
    for name, known in (("kinds", kinds), ("states", STATES)):
        if unknown := set(getattr(options, name).split(",")) - set(known.split(",")):
            parser.error(f"--{name}: {', '.join(sorted(unknown))}: none of {known}")
    os.makedirs(options.out, exist_ok=True)
    faults = Faults(options)
    left = faults.run()
    faults.write(left)
    return 0 if faults.lines.all and all(row["ok"] for row in faults.lines.all) else 1


if __name__ == "__main__":
    sys.exit(main())
