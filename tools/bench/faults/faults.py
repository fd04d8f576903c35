#!/usr/bin/env python3
"""What a fault of one program does to the program beside it, and to those that come: a campaign.

    faults.py --out OUT [--build BUILD] [--kinds load,trap,...] [--states idle,copying,...] [--repeats 5]
              [--at-once SERVERS] [--mib 64] [--budget SECONDS] [--keeper takeover] [--device sim]
              [--together] [--each 1] [--experiment campaign|row]

Each run is a neighbour in a state (parties.cu), a program that goes wrong in one of the KINDS of promises.py,
and what became of the neighbour: it goes on with the right bits, it ended with an error, its bits are wrong,
or it hangs. In the state held its launch may have come before the urgent program's: then it was not held,
and ends. In the state starting the program starts at the moment of the fault. In the states strict and
beside_strict the neighbour computes all the time; in the first it is a strict tenant (smt run --isolation
strict), in the second the culprit is. So it is in quarantine and beside_quarantine (smt run --isolation
quarantine), which need a takeover.

--together: each fault has a neighbour in every state beside it, at once, and each of them is a run; but for
the states of ALONE, and but for kill_server. --each: so many neighbours in each state, but for kill_server.

Runs follow one another on a server until it is gone, so each takeover but the first one is from a process
that took over itself. --at-once runs that many servers side by side, each with a runtime folder of its own,
on one GPU. Recorded are the neighbour's longest call while the fault was dealt with (asking), its first
computation after it, and what the log says of the takeover; `new` is how long a program takes to start right
after the fault, and it must run. `told`: the culprit's wait returned its error; the driver may say that a
kernel is over before it says that it faulted. --keeper 0 is the server without a takeover, for comparison.

The kind endless is a kernel that does not end, of a program with SMT_KERNEL_LIMIT=1. Without a takeover such
a limit is refused, so it is no kind with --keeper 0 or 1. kill_client, kill_server and kill_keeper are
SIGKILL; memory is a program that allocates until its limit, and once more than there is.

Results: OUT/faults.jsonl with a line a run as they end, OUT/broken-*.log, the servers' log of each run with a
broken promise, OUT/faults.json with all of them and the figures by state, and tables: times by state, and for
each kind and state what is promised and what was seen. The exit code is 1 where a promise was broken. With
--budget no run is begun after that time; SIGTERM likewise ends the campaign after the runs under way.
--experiment row is row.py.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, run, tail  # noqa: E402
from measurement import built_twice  # noqa: E402
from logs import await_standby, reason_of_end, takeover, wait_for, whole_log  # noqa: E402
from promises import CONTEXT, ERRORS, GOES_ON, KINDS, STATES, STRICT, TAKEN_OVER, TURNS  # noqa: E402
from promises import promised, table  # noqa: E402
from row import row_of_faults  # noqa: E402

LIMIT = "1"   # seconds, of the kind endless
MEMORY_LIMIT = "256M"   # of the kind memory
WAIT = 3      # seconds, of the state waiting, which ends by it
PATIENCE = 60
REST = {None: 100, "sim": 40_000}   # us between calls of the state asking: longer than grace in SMT_SIM
ROUNDS = {None: 40_000_000, "sim": 300}   # of the urgent program's kernel in the state held: a second or so


# Not beside neighbours in other states (--together). The urgent program of held holds all others back; a wait
# in a stream holds up calls of other programs, and is ended for that (docs/limits.md); beside_strict and
# beside_quarantine are other culprits, and in quarantine the neighbour leaves others half of the time.
ALONE = ("held", "waiting", "beside_strict", *TURNS)


class Faults:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.program, self.environment = built_twice(options, "bench_faults", one_context=1, grace=20)
        self.lines = Lines(os.path.join(options.out, "faults.jsonl"))
        self.numbers, self.lock, self.over = iter(range(1, 1 << 30)), threading.Lock(), False
        self.begun = time.monotonic()
        self.until = self.begun + options.budget
        cases = [(repeat, kind, states) for repeat in range(options.repeats)
                 for kind in options.kinds.split(",")
                 for states in beside_one_fault(options, kind)]
        self.cases = sorted(cases, key=lambda case: (case[0], -len(case[2])))

    def child(self, runtime, *arguments, tenant, priority=0, guard=True, patience=PATIENCE,
              **variables):
        variables = runtime.variables(SMT_TENANT=tenant, SMT_PRIORITY=str(priority), **variables)
        return Child([self.program, *map(str, arguments)], {**self.environment, **variables},
                     self.places.preload, patience, stdin=True, guard=guard)

    def runtime(self):
        return Runtime(self.places, SMT_KEEPER=self.options.keeper, SMT_POLICY="priority",
                       SMT_LIMITS=f"wait={WAIT}")

    def run(self):
        """All cases, --at-once of them at a time. How many faults were not begun."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        threads = [threading.Thread(target=self.serve) for _ in range(self.options.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(self.cases)

    def next_case(self):
        with self.lock:
            over = self.over or time.monotonic() > self.until or not self.cases
            return None if over else self.cases.pop(0)

    def serve(self):
        """Cases on one server; where it did not survive one, on another one."""
        case = self.next_case()
        while case:
            with self.runtime() as runtime:
                lives = True
                while case and lives:
                    lives = self.record(runtime, *case)
                    case = self.next_case()

    def record(self, runtime, repeat, kind, states):
        """Whether the server lives."""
        began, number = time.monotonic(), next(self.numbers)
        try:
            rows = self.case(runtime, number, kind, states)
        except OSError as error:   # such as no process for a program
            row = {"outcome": "not begun", "ok": False, "server_lives": False, "why": str(error)}
            rows = dict.fromkeys(states, row)
        seconds = round(time.monotonic() - began, 2)
        if not all(row["ok"] for row in rows.values()):
            path = pathlib.Path(self.options.out) / f"broken-{kind}-{began - self.begun:.1f}.log"
            path.write_text(whole_log(runtime))
        for name, row in rows.items():
            row = self.lines.add(repeat=repeat, number=number, kind=kind, state=state_of(name),
                                 beside=len(states) - 1, at_s=round(began - self.begun, 1),
                                 seconds=seconds, **row)
            print("{kind:12} {state:14} {outcome:10} {note}".format(note=row.get("why", ""), **row),
                  flush=True)
        return all(row["server_lives"] for row in rows.values())

    def start_neighbour(self, runtime, number, name):
        state = state_of(name)
        doing = "computing" if state in (*STRICT, *TURNS) else "idle" if state == "starting" else state
        return self.child(runtime, "neighbour", doing, self.options.mib, REST[self.options.device],
                          tenant=f"{name}{number}", priority=-1, **isolation(state))

    def start_culprit(self, runtime, number, kind, states):
        does = "none" if kind.startswith("kill_") else kind
        rounds = ROUNDS[self.options.device] if "held" in states or kind == "kill_client" else 0
        limits = {"endless": {"SMT_KERNEL_LIMIT": LIMIT}, "memory": {"SMT_MEMORY_LIMIT": MEMORY_LIMIT}}
        # A tenant that faults again and again would be refused.
        return self.child(runtime, "culprit", does, rounds, tenant=f"culprit{number}", priority=1,
                          guard=kind != "kill_client", **limits.get(kind, {}),
                          **isolation(*(state[7:] for state in states if state.startswith("beside_"))))

    def case(self, runtime, number, kind, states):
        """A row for each neighbour, by its name."""
        culprit = self.start_culprit(runtime, number, kind, states)
        late = [name for name in states if state_of(name) == "starting"]
        neighbours = {name: self.start_neighbour(runtime, number, name)
                      for name in states if name not in late}
        started = all(child.wait_ready(PATIENCE) for child in (culprit, *neighbours.values()))
        before = self.status(runtime)
        if not started or not self.standby_ready(runtime, before["pid"]):
            return self.failed(runtime, "the programs or the standby do not start", states, culprit,
                               *neighbours.values())
        at_rest = sum(state in GOES_ON for state in states)
        if kind == "kill_server" and at_rest and not self.await_described(runtime, at_rest + 1):
            return self.failed(runtime, "the standby does not get the sessions' states", states, culprit,
                               *neighbours.values())
        told = time.monotonic()
        for name in late:
            neighbours[name] = self.start_neighbour(runtime, number, name)
        if kind in ("kill_server", "kill_keeper"):
            self.kill(runtime, kind, before["pid"])
        culprit.tell()
        at_work = "held" in states or kind == "kill_client"
        if at_work and kind != "kill_server" and not wait_for(lambda: b"AT WORK" in culprit.out):
            return self.failed(runtime, "the urgent program does not begin", states, culprit,
                               *neighbours.values())
        for name in states:
            if state_of(name) == "held":
                neighbours[name].tell()
        if kind == "kill_client":
            culprit.kill()
        ended = culprit.finish()
        fault = time.monotonic()
        return self.aftermath(runtime, number, kind, before, neighbours, ended, (told, fault))

    def aftermath(self, runtime, number, kind, before, neighbours, ended, times):
        told, fault = times
        apart = "beside_strict" in neighbours
        new = self.start_new(runtime)
        taken_over = kind in TAKEN_OVER and not apart and self.options.keeper == "takeover"
        if taken_over:
            self.await_successor(runtime, before["pid"])
        for neighbour in neighbours.values():
            neighbour.tell()
        ends = {name: neighbour.finish() for name, neighbour in neighbours.items()}
        after = self.status(runtime)
        stays = kind in ("kill_client", "memory") or apart and kind in TAKEN_OVER
        rows = {}
        for name, end in ends.items():
            reason = reason_of_end(runtime, f"{name}{number}")
            row = self.judge(kind, state_of(name), end, ended, reason, new)
            row.update(new, culprit_s=round(fault - told, 3), told_s=round(time.monotonic() - fault, 3),
                       **takeover(runtime, before["pid"]))
            if stays and after["pid"] != before["pid"]:
                row.update(ok=False, why=row["why"] + "; the shared server did not stay")
            row["server_lives"] = after["pid"] != 0 and (stays or taken_over)
            rows[name] = row
        return rows

    def status(self, runtime):
        return runtime.status() or {"pid": 0}

    def kill(self, runtime, kind, server):
        keepers = re.findall(r"belongs to smt-keeper, process (\d+)", whole_log(runtime))
        victim = server if kind == "kill_server" else int(keepers[-1]) if keepers else 0
        if victim > 0:
            os.kill(victim, signal.SIGKILL)

    def start_new(self, runtime):
        """A program that comes right after the fault: it waits for the process that takes over, or starts a
        server."""
        environment = {**self.environment, **runtime.variables(SMT_TENANT="new")}
        done = run([self.program, "culprit", "none"], environment, self.places.preload, PATIENCE)
        right = "cudaSuccess" in done["out"]
        return {"new_ms": round(done["seconds"] * 1000, 1), "new_right": right,
                "new_said": "" if right else tail(done["out"] + done["err"], 300)}

    def standby_ready(self, runtime, pid):
        return self.options.keeper != "takeover" or await_standby(runtime, pid)

    def await_described(self, runtime, sessions):
        """So many of them would go on."""
        return (self.options.keeper != "takeover"
                or wait_for(lambda: self.status(runtime).get("carried", 0) >= sessions))

    def await_successor(self, runtime, pid):
        if self.options.keeper == "takeover":
            wait_for(lambda: (runtime.status() or {"pid": pid})["pid"] != pid, 10)

    def judge(self, kind, state, end, culprit, reason, new):
        row = {"culprit_said": tail(culprit["out"].replace("READY\n", "").strip(), 200), "reason": reason}
        problems = []
        row["told"] = any(error in culprit["out"] for error in ERRORS[kind])
        if not row["told"] and not (kind in CONTEXT and "cudaSuccess" in culprit["out"]):
            problems.append("the culprit says " + tail(culprit["out"] + culprit["err"], 200))
        if not new["new_right"]:
            problems.append("a program that came after it failed: " + new["new_said"])
        said = re.search(r"\{.*\}", end["out"])
        if end["rc"] == 124:
            row["outcome"] = "hangs"
        elif not said:
            row["outcome"] = "fails"
            problems.append(f"exit code {end['rc']}: " + tail(end["out"] + end["err"], 300))
        else:
            row.update(json.loads(said[0]))
            row["outcome"] = "wrong" if not row["right"] else "ends" if row["error"] else "goes on"
        under_way = row["outcome"] == "ends" and "kernels of it were under way" in reason
        if state == "held" and under_way:   # its launch came first
            row["outcome"] = "not held"
        if row["outcome"] not in promised(kind, state, self.options.keeper):
            problems.append(f"the neighbour {row['outcome']}: {row.get('error', '')} "
                            + tail(end["err"], 400))
        return {**row, "ok": not problems, "why": "; ".join(problems)}

    def failed(self, runtime, why, states, *children):
        for child in children:
            if child.process.poll() is None:
                child.kill()
        ends = [child.finish() for child in children]
        said = " ".join(end["out"] + end["err"] for end in ends)
        row = {"outcome": "not begun", "ok": False, "server_lives": False,
               "why": f"{why}: {tail(said, 300)} {runtime.log(600)}"}
        return dict.fromkeys(states, row)

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

    def untold(self):
        """Faults of which the culprit's own wait did not know: the driver's answer came before the error."""
        faults = {row["number"]: row["told"] for row in self.lines.all
                  if row["kind"] in CONTEXT and "told" in row}
        return f"{sum(not told for told in faults.values())} of {len(faults)} culprits were not told"

    def write(self, left):
        figures = self.figures()
        described = {"device": self.options.device or "gpu", "mib": self.options.mib,
                     "keeper": self.options.keeper, "together": self.options.together,
                     "not_begun": left, "states": figures,
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
        print("\n" + table(self.lines.all, self.options.keeper))
        broken = sum(not row["ok"] for row in self.lines.all)
        print(f"\n{len(self.lines.all)} runs in {time.monotonic() - self.begun:.0f} s, {broken} of them "
              "with a broken promise; " + self.untold()
              + (f"; {left} faults were not begun: the time was over" if left else ""))


def beside_one_fault(options, kind):
    """Names of neighbours in groups: of one fault. How many sessions would outlive a crash of the server
    (await_described) does not say which, so there is one neighbour then."""
    states = options.states.split(",")
    copies = 1 if kind == "kill_server" else options.each
    alone = [state for state in states if not options.together or kind == "kill_server" or state in ALONE]
    group = [state for state in states if state not in alone]
    return [several(names, copies) for names in (group, *([state] for state in alone)) if names]


def several(states, copies):
    """The names of so many neighbours in each of these states."""
    return (*states, *(f"{state}-{copy}" for copy in range(1, copies) for state in states))


def state_of(name):
    return name.partition("-")[0]


def isolation(*states):
    return {"SMT_ISOLATION": each for each in states if each in ("strict", "quarantine")}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_faults")
    parser.add_argument("--out", required=True)
    parser.add_argument("--kinds", help="default: all")
    parser.add_argument("--states", help="default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--together", action="store_true",
                        help="a neighbour in every state beside each fault")
    parser.add_argument("--each", type=int, default=1, metavar="NEIGHBOURS",
                        help="in each state")
    parser.add_argument("--at-once", type=int, default=1, metavar="SERVERS")
    parser.add_argument("--mib", type=int, default=64, help="of the neighbour's memory")
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--keeper", choices=("takeover", "1", "0"), default="takeover")
    parser.add_argument("--device", choices=("sim",))
    parser.add_argument("--experiment", choices=("campaign", "row"), default="campaign")
    parser.add_argument("--tries", type=int, default=100, help="of the experiment row")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if options.keeper == "takeover" or kind != "endless"]
    kinds = [kind for kind in kinds if options.keeper != "0" or kind != "kill_keeper"]
    options.kinds = options.kinds or ",".join(kinds)
    states = [state for state in STATES if options.keeper == "takeover" or state not in TURNS]
    options.states = options.states or ",".join(states)
    for name, known in (("kinds", kinds), ("states", states)):
        if unknown := set(getattr(options, name).split(",")) - set(known):
            parser.error(f"--{name}: {', '.join(sorted(unknown))}: none of {','.join(known)}")
    if options.at_once < 1:
        parser.error("--at-once takes a number from 1 on")
    os.makedirs(options.out, exist_ok=True)
    faults = Faults(options)
    if options.experiment == "row":
        return row_of_faults(faults)
    left = faults.run()
    faults.write(left)
    return 0 if faults.lines.all and all(row["ok"] for row in faults.lines.all) else 1


if __name__ == "__main__":
    sys.exit(main())
