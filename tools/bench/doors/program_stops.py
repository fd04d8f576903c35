#!/usr/bin/env python3
"""Stops of whole programs, until each has had so many: program_stops.py --out DIR [--stops N] [--budget S]
[--programs A,B,...]

First each program of models.py (PyTorch, torch.compile, JAX, CuPy, Triton) runs under smt alone and
undisturbed, for the part of its GPU time that is in launches that can be stopped (SMT_JOURNAL=gpu_time), and
so that later processes find compiled kernels. Then two things happen at the same time, both in the order of
--programs. Natively two processes run all programs, two trials of each in both: where the four have other
bits a program is not deterministic. Under smt each program goes through trials (SMT_STRESS, as many stops as
there can be), until so many of its launches were stopped half way, or its part of the time is over; what a
program leaves is the others'. A few programs at a time, on one server. Each trial is compared with the native
ones.

A row in program_stops.jsonl for each trial, each process, each share of GPU time and each program, as soon as
it is known; one table at the end, also where the run is cut off by SIGTERM. Exit code 1 when bits of a
deterministic program differ, or a program fails, is never stopped, or had too few native runs.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from gpu_shares import share_of  # noqa: E402
from harness import Places, Runtime  # noqa: E402
from measurement import Measurement, simulated  # noqa: E402

STOPS_ONLY = 1 << 31    # in a seed of SMT_STRESS
SHARES = 0.2            # of the budget, at most, for shares of GPU time
AHEAD = 2               # processes that load their libraries while another one runs
SILENT = 90             # seconds natively without a word from a program
AGAIN = 10              # seconds that are left for another process of a program
LATE = 20               # seconds beyond its time that a program may take for its last trial
NOTE = re.compile(r"under stress: (\d+) schedules, (\d+) launches stopped half way")
# Of stops those that leave a launch half done, until it is known of a program
GUESS = 0.5


class Journal:
    """Follows the server's journal, for what it says of each tenant: stops, and at its end half-way ones."""

    def __init__(self, smt, environment):
        self.process = subprocess.Popen([smt, "log", "--json", "--follow"], stdout=subprocess.PIPE, text=True,
                                        env=environment, stderr=subprocess.DEVNULL)
        self.changed, self.stops, self.half_way, self.gone = threading.Condition(), {}, {}, set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if not re.search(r'"kind":"(stopped|closed)"|half way', line):
                continue
            entry = json.loads(line)
            tenant = entry["tenant"]
            with self.changed:
                if entry["kind"] == "stopped":
                    self.stops[tenant] = self.stops.get(tenant, 0) + 1
                elif entry["kind"] == "closed":
                    self.gone.add(tenant)
                elif found := NOTE.search(entry.get("text", "")):
                    self.half_way[tenant] = self.half_way.get(tenant, 0) + int(found[2])
                self.changed.notify_all()

    def of(self, tenant):
        with self.changed:
            return self.stops.get(tenant, 0)

    def at_end(self, tenant, patience=8):
        """Stops and half-way ones, once the server knows that it has left."""
        with self.changed:
            self.changed.wait_for(lambda: tenant in self.gone, patience)
            return self.stops.get(tenant, 0), self.half_way.get(tenant, 0)

    def close(self):
        self.process.kill()
        self.process.wait()


class Program:
    def __init__(self, name):
        self.name, self.native, self.natively_over = name, [], 0
        self.found, self.missing, self.failed, self.share = [], None, [], None
        self.stops = self.half_way = self.processes = 0
        self.seconds, self.disturbed, self.told = 0.0, False, False

    def trials(self):
        return len(self.found)

    def wrong(self):
        """Trials with bits that no native one had."""
        return sum(each not in self.native for each in self.found) if self.native else 0

    def deterministic(self):
        return len(set(self.native)) == 1 and len(self.native) >= 2

    def is_missing(self):
        return self.missing is not None and not self.native and not self.found

    def result(self, wanted):
        if self.is_missing():
            return f"missing: {self.missing}"
        if len(self.native) < 2:
            return ("FAILED, " if self.failed else "") + "too few native runs"
        kind = "same bits" if self.deterministic() else "not deterministic natively"
        if self.deterministic() and self.wrong():
            kind = "WRONG"
        if self.failed:
            kind = "FAILED, " + kind
        return kind + ("" if self.half_way >= wanted else
                       ", too few stops" if self.half_way else ", NEVER STOPPED")

    def bad(self):
        return not self.is_missing() and bool(
            self.failed or len(self.native) < 2 or not self.half_way or
            (self.deterministic() and self.wrong()))


class ProgramStops(Measurement):
    def __init__(self, options):
        places, environment = Places(options.build), {
            "PYTHONDONTWRITEBYTECODE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(options.out, "inductor")}
        if options.stub:
            environment.update(simulated(places.build, grace=1, dispatch_clock=1,
                                         doors=0 if options.without_doors else 1))
        super().__init__(options, places, "program_stops.jsonl", environment)
        self.settings = {"SMT_POLICY": "fifo", "SMT_CACHE_DIR": os.path.join(options.out, "cache"),
                         "SMT_COMPILE": options.compile}
        self.programs = {name: Program(name) for name in options.programs}
        self.lock = threading.Lock()

    def program(self, names, trials, variables, label, *more):
        script = "models_stub.py" if self.options.stub else "models.py"
        return self.start([self.options.interpreter, str(HERE / script), "--trials", str(trials), *more,
                           *names], variables, label)

    def measure(self):
        if self.options.shares:
            self.shares(self.begun + SHARES * self.options.budget)
        natively = [threading.Thread(target=self.one_natively, args=(number,), daemon=True)
                    for number in range(2)]
        for thread in natively:
            thread.start()
        self.disturb()
        for thread in natively:
            thread.join(max(0, self.end - time.monotonic()))

    # ---- shares of GPU time, undisturbed

    def shares(self, deadline):
        with Runtime(self.places, **self.settings, SMT_JOURNAL="gpu_time") as runtime:
            journal = self.journal(runtime)
            names, ahead = list(self.programs), []
            for at, name in enumerate(names):
                for next_one in names[at + len(ahead):at + 1 + AHEAD]:
                    ahead.append(self.program([next_one], 1, self.preloaded(
                        runtime, SMT_TENANT=f"{next_one}-share"), f"{next_one}-share", "--paced"))
                if time.monotonic() > deadline:
                    print(f"no time is left for the GPU time of {', '.join(names[at:])}", flush=True)
                    break
                self.share(self.programs[name], ahead.pop(0), runtime, journal, deadline)
            for child in ahead:
                child.end()
            journal.close()

    def share(self, program, child, runtime, journal, deadline):
        child.tell("")
        why = None
        while (said := child.next(deadline)) is not None:
            program.missing = said.get("missing", program.missing)
            why = said.get("failed", why)
        child.finish()
        child.end()
        tenant = f"{program.name}-share"
        journal.at_end(tenant)
        rows = self.smt(runtime, "log", "--kernels", "--json", "--tenant", tenant)
        program.share = share_of(list(map(json.loads, rows.splitlines())))
        self.lines.add(part="share", model=program.name, why=why or program.missing, **(program.share or {}))

    # ---- natively

    def one_natively(self, number):
        names, variables = list(self.programs), {}
        with Runtime(self.places, **self.settings) as runtime:
            if self.options.stub:   # there is no device without smt
                variables = self.preloaded(runtime)
            while names and time.monotonic() < self.end - LATE and not self.cut:
                child = self.program(names, 2, variables, f"native-{number}")
                while (said := child.next(min(self.end, time.monotonic() + SILENT))) is not None:
                    over = said.get("trial") == 2 or "missing" in said or "failed" in said
                    self.take_native(number, said, over)
                    names = names[names.index(said["model"]) + over:]
                ended = child.ended()
                child.end()
                if names and not self.cut:   # a program that ends the process must not end the others
                    why = child.why() if ended else f"nothing for {SILENT} s"
                    self.take_native(number, {"model": names[0], "failed": why}, True)
                    names = names[1:]

    def take_native(self, number, said, over):
        with self.lock:
            program = self.programs[said["model"]]
            if "hash" in said:
                program.native.append(said["hash"])
            program.missing = said.get("missing", program.missing)
            if "failed" in said:
                program.failed.append(f"natively: {said['failed']}")
            program.natively_over += over
            self.lines.add(part="native", process=number, **said)
            self.tell_if_over(program)

    # ---- under smt

    def disturb(self):
        with Runtime(self.places, **self.settings) as runtime:
            variables, journal = self.preloaded(runtime), self.journal(runtime)
            todo = list(self.programs.values())

            def work():
                while True:
                    with self.lock:
                        if not todo or self.cut:
                            return
                        program, left = todo.pop(0), self.end - LATE - time.monotonic()
                        share = left * self.options.at_once / (len(todo) + self.options.at_once)
                    self.one_program(program, variables, journal, time.monotonic() + max(share, 1))

            threads = [threading.Thread(target=work, daemon=True) for _ in range(self.options.at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            journal.close()
            self.write_kernels(runtime, "kernels.txt")

    def journal(self, runtime):
        """Of a server that is there from now on."""
        self.smt(runtime, "server", "start")
        return Journal(self.places.smt, {**self.environment, **runtime.variables()})

    def one_program(self, program, variables, journal, deadline):
        """One process after the other: how many of its stops were half way a process says at its end."""
        while (time.monotonic() < deadline - (AGAIN if program.processes else 0) and not program.missing
               and program.half_way < self.options.stops and not program.failed):
            ratio = program.half_way / program.stops if program.stops else GUESS
            goal = 1.05 * (self.options.stops - program.half_way) / max(ratio, 0.01)
            self.process_of(program, variables, journal, deadline, goal)
        with self.lock:
            program.disturbed = True
            self.tell_if_over(program)

    def process_of(self, program, variables, journal, deadline, goal):
        program.processes += 1
        tenant, begun = f"{program.name}-{program.processes}", time.monotonic()
        seed = STOPS_ONLY + self.options.seed + program.processes
        child = self.program([program.name], 0, {**variables, "SMT_TENANT": tenant, "SMT_STRESS": str(seed)},
                             tenant)
        over, trials = False, 0
        while (said := child.next(deadline + LATE)) is not None:
            if "hash" in said:
                trials += 1
                self.take_trial(program, tenant, said)
            elif "failed" in said:
                program.failed.append(said["failed"])
            elif "missing" in said:
                program.missing = said["missing"]
            if not over and (journal.of(tenant) >= goal or time.monotonic() > deadline):
                over = True
                child.process.stdin.close()
        if child.ended() and not self.cut and (child.process.returncode or not (trials or program.missing)):
            program.failed.append(f"after {trials} trials: {child.why()}")
        child.end()
        stops, half_way = journal.at_end(tenant)
        with self.lock:
            program.stops += stops
            program.half_way += half_way
            program.seconds += time.monotonic() - begun
            self.lines.add(part="process", model=program.name, tenant=tenant, trials=trials, stops=stops,
                           half_way=half_way, seconds=round(time.monotonic() - begun, 1))

    def take_trial(self, program, tenant, said):
        with self.lock:
            program.found.append(said["hash"])
            self.lines.add(part="trial", tenant=tenant, **said)

    # ---- the table

    def tell_if_over(self, program):
        """As soon as all of it is known. Under the lock."""
        if program.disturbed and program.natively_over == 2:
            self.tell(program)
            print(self.line(program), flush=True)

    def tell(self, program):
        program.told = True
        self.lines.add(part="program", model=program.name, trials=program.trials(), stops=program.stops,
                       half_way=program.half_way, other_bits=program.wrong(), native=program.native,
                       deterministic=program.deterministic(), missing=program.missing, failed=program.failed,
                       seconds=round(program.seconds, 1), share=program.share, bad=program.bad(),
                       result=program.result(self.options.stops))

    def line(self, program):
        share = program.share or {}
        parts = [f"{100 * share[part]:>5.1f}" if part in share else f"{'-':>5}"
                 for part in ("within", "one_wave", "not_at_all")]
        return (f"{program.name:<20} {program.trials():>6} {program.stops:>8} {program.half_way:>9} "
                f"{program.wrong():>6} {program.seconds:>6.0f} {len(set(program.native)):>8}  "
                f"{' '.join(parts)}  {program.result(self.options.stops)}")

    def table(self):
        print(f"\n{'':<20} {'':>6} {'':>8} {'':>9} {'':>6} {'':>6} {'':>8}  % of GPU time in launches that\n"
              f"{'program':<20} {'trials':>6} {'stops':>8} {'half way':>9} {'other':>6} {'s':>6} "
              f"{'natively':>8}  {'stop':>5} {'wave':>5} {'not':>5}")
        for program in self.programs.values():
            print(self.line(program))
            if not program.told:
                self.tell(program)
        for program in self.programs.values():
            for why in program.failed:
                print(f"WRONG: {program.name}: {why}")

    def bad(self):
        return any(each.bad() for each in self.programs.values())


def known(stub):
    if stub:
        return ["right", "changing", "wrong", "ends", "missing"]
    text = (HERE / "models.py").read_text()
    return re.findall(r"^@model\(.*\)[^\n]*\ndef (\w+)", text, re.MULTILINE)


def plan(options):
    shares = SHARES * options.budget if options.shares else 0
    each = (options.budget - shares - LATE) * options.at_once / (len(options.programs) + options.at_once - 1)
    print(f"shares of GPU time: {shares:.0f} s at most; then, beside native runs, {each:.0f} s and more of "
          f"each of {len(options.programs)} programs, {options.at_once} at a time: "
          f"{', '.join(options.programs)}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--stops", type=int, default=10_000, help="launches stopped half way, of each")
    parser.add_argument("--budget", type=float, default=560, help="seconds for all of it")
    parser.add_argument("--at-once", type=int, default=3, help="programs at a time")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=[],
                        help="in this order; default: all")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--shares", type=int, choices=[0, 1], default=1,
                        help="0: without shares of GPU time")
    parser.add_argument("--compile", default="doors=1,ptx=0",
                        help="SMT_COMPILE; without ptx=0 kernels that have PTX are in the persistent form")
    parser.add_argument("--stub", action="store_true", help="without PyTorch, on the simulated device")
    parser.add_argument("--without-doors", action="store_true", help="of the stub: then nothing is stopped")
    parser.add_argument("--plan", action="store_true", help="what would be done, and how long")
    parser.add_argument("--interpreter", default=sys.executable)
    options = parser.parse_args()
    options.programs = options.programs or known(options.stub)
    if unknown := [each for each in options.programs if each not in known(options.stub)]:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(known(options.stub))}")
    if options.plan:
        return plan(options)
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    return ProgramStops(options).all()


if __name__ == "__main__":
    sys.exit(main())
