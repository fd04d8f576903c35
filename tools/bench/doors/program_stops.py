#!/usr/bin/env python3
"""Stops of whole programs, until each has had so many: program_stops.py --out DIR [--stops N] [--budget S]

Each program of models.py (PyTorch, torch.compile, JAX, CuPy, Triton) runs natively in two processes at once,
two trials in each: where the four have other bits it is not deterministic. Then it goes through trials under
smt (SMT_STRESS, as many stops as there can be), each compared with the native one, until so many of its
launches were stopped half way, or its part of the budget is over. A few programs at a time, on one server.

A row in program_stops.jsonl for each trial and each process; one table at the end, also where the run is cut
off by SIGTERM. Exit code 1 when bits of a deterministic program differ, or a program fails or is
never stopped.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from harness import Lines, Places, Runtime, base_environment  # noqa: E402
from talker import Talker  # noqa: E402

STOPS_ONLY = 1 << 31    # in a seed of SMT_STRESS
NATIVE = 0.3            # of the budget, at most, for what programs do natively
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
        self.name, self.native, self.missing = name, [], None
        self.trials = self.wrong = self.stops = self.half_way = self.processes = 0
        self.seconds, self.failed = 0.0, []

    def deterministic(self):
        return len(set(self.native)) == 1 and len(self.native) >= 2

    def result(self, wanted):
        if self.missing:
            return f"missing: {self.missing}"
        if not self.native:
            return "no native run"
        kind = "same bits" if self.deterministic() else "not deterministic natively"
        if self.deterministic() and self.wrong:
            kind = "WRONG"
        if self.failed:
            kind = "FAILED, " + kind
        return kind + ("" if self.half_way >= wanted else
                       ", too few stops" if self.half_way else ", NEVER STOPPED")

    def bad(self):
        return bool(self.failed or (self.native and not self.missing and not self.half_way) or
                    (self.deterministic() and self.wrong))


class ProgramStops:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.lines = Lines(os.path.join(options.out, "program_stops.jsonl"))
        self.begun = time.monotonic()
        self.end = self.begun + options.budget
        self.environment = base_environment(with_libraries=False)
        self.environment["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
        self.environment.update(PYTHONDONTWRITEBYTECODE="1", TORCHINDUCTOR_COMPILE_THREADS="1",
                                TORCHINDUCTOR_CACHE_DIR=os.path.join(options.out, "inductor"))
        self.settings = {"SMT_POLICY": "fifo", "SMT_CACHE_DIR": os.path.join(options.out, "cache"),
                         "SMT_COMPILE": options.compile}
        if options.stub:
            doors = 0 if options.without_doors else 1
            self.environment.update(SMT_DEVICE="sim", SMT_REAL_DRIVER="none", SMT_PROFILES="none",
                                    SMT_SIM=f"grace=1,dispatch_clock=1,doors={doors}",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))
        self.programs = {name: Program(name) for name in options.programs}
        self.lock, self.children, self.cut = threading.Lock(), [], False

    def start(self, names, trials, variables, label):
        script = "models_stub.py" if self.options.stub else "models.py"
        command = [self.options.interpreter, str(HERE / script), "--trials", str(trials), *names]
        child = Talker(command, {**self.environment, **variables},
                       os.path.join(self.options.out, f"{label}.txt"))
        with self.lock:
            self.children.append(child)
        return child

    # ---- natively

    def natively(self):
        deadline = self.begun + NATIVE * self.options.budget
        threads = [threading.Thread(target=self.one_natively, args=(number, deadline)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def one_natively(self, number, deadline):
        names, variables = list(self.programs), {}
        with Runtime(self.places, **self.settings) as runtime:
            if self.options.stub:   # there is no device without smt
                variables = runtime.variables(LD_PRELOAD=self.places.preload)
            while names and time.monotonic() < deadline:
                child = self.start(names, 2, variables, f"native-{number}")
                while (said := child.next(deadline)) is not None:
                    self.take_native(number, said)
                    last = said.get("trial") == 2 or "missing" in said or "failed" in said
                    names = names[names.index(said["model"]) + last:]
                ended = child.ended()
                child.end()
                if names and ended:   # a program that ends the process must not end the others
                    self.programs[names[0]].failed.append(f"natively: {child.why()}")
                    names = names[1:]

    def take_native(self, number, said):
        with self.lock:
            program = self.programs[said["model"]]
            if "hash" in said:
                program.native.append(said["hash"])
            program.missing = said.get("missing", program.missing)
            if "failed" in said:
                program.failed.append(f"natively: {said['failed']}")
            self.lines.add(part="native", process=number, **said)

    # ---- under smt

    def disturbed(self):
        wanted = [each for each in self.programs.values() if each.native and not each.missing]
        if not wanted:
            return
        with Runtime(self.places, **self.settings) as runtime:
            variables = runtime.variables(LD_PRELOAD=self.places.preload)
            self.wake(runtime)
            journal = Journal(self.places.smt, {**self.environment, **runtime.variables()})
            share = (self.end - LATE - time.monotonic()) * self.options.at_once / len(wanted)
            todo = list(wanted)

            def work():
                while True:
                    with self.lock:
                        if not todo or self.cut:
                            return
                        program = todo.pop(0)
                    deadline = min(self.end - LATE, time.monotonic() + max(share, 1))
                    self.one_program(program, variables, journal, deadline)

            threads = [threading.Thread(target=work, daemon=True) for _ in range(self.options.at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            journal.close()
            self.write_kernels(runtime)

    def wake(self, runtime):
        """There is a server from now on, whose journal can be followed."""
        subprocess.run([self.places.smt, "server", "start"], capture_output=True, timeout=60,
                       env={**self.environment, **runtime.variables()})

    def write_kernels(self, runtime):
        done = subprocess.run([self.places.smt, "log", "--kernels"], capture_output=True, text=True,
                              timeout=60, env={**self.environment, **runtime.variables()})
        with open(os.path.join(self.options.out, "kernels.txt"), "w") as file:
            file.write(done.stdout)

    def one_program(self, program, variables, journal, deadline):
        """One process after the other: how many of its stops were half way a process says at its end."""
        while time.monotonic() < deadline and program.half_way < self.options.stops and not program.failed:
            ratio = program.half_way / program.stops if program.stops else GUESS
            goal = 1.05 * (self.options.stops - program.half_way) / max(ratio, 0.01)
            self.process_of(program, variables, journal, deadline, goal)

    def process_of(self, program, variables, journal, deadline, goal):
        program.processes += 1
        tenant, begun = f"{program.name}-{program.processes}", time.monotonic()
        seed = STOPS_ONLY + self.options.seed + program.processes
        child = self.start([program.name], 0, {**variables, "SMT_TENANT": tenant, "SMT_STRESS": str(seed)},
                           tenant)
        over, trials = False, 0
        while (said := child.next(deadline + LATE)) is not None:
            if "hash" in said:
                trials += 1
                self.take_trial(program, tenant, said)
            elif "failed" in said or "missing" in said:
                program.failed.append(said.get("failed", said.get("missing")))
            if not over and (journal.of(tenant) >= goal or time.monotonic() > deadline):
                over = True
                child.process.stdin.close()
        if child.ended() and (child.process.returncode or not trials) and not self.cut:
            program.failed.append(f"after {trials} trials: {child.why()}")
        child.end()
        stops, half_way = journal.at_end(tenant)
        with self.lock:
            program.stops += stops
            program.half_way += half_way
            program.seconds += time.monotonic() - begun
            self.lines.add(part="process", model=program.name, tenant=tenant, trials=trials, stops=stops,
                           half_way=half_way, seconds=round(time.monotonic() - begun, 1))
        print(self.line(program), flush=True)

    def take_trial(self, program, tenant, said):
        with self.lock:
            program.trials += 1
            wrong = said["hash"] not in program.native
            program.wrong += wrong
            self.lines.add(part="trial", tenant=tenant, wrong=wrong, **said)

    # ---- the table

    def line(self, program):
        return (f"{program.name:<20} {program.trials:>6} {program.stops:>8} {program.half_way:>9} "
                f"{program.wrong:>6} {program.seconds:>6.0f} {len(set(program.native)):>7}  "
                f"{program.result(self.options.stops)}")

    def table(self):
        print(f"\n{'program':<20} {'trials':>6} {'stops':>8} {'half way':>9} {'other':>6} {'s':>6} "
              "natively")
        for program in self.programs.values():
            print(self.line(program))
            self.lines.add(part="program", model=program.name, trials=program.trials, stops=program.stops,
                           half_way=program.half_way, other_bits=program.wrong, native=program.native,
                           deterministic=program.deterministic(), missing=program.missing,
                           failed=program.failed, result=program.result(self.options.stops))
        for program in self.programs.values():
            for why in program.failed:
                print(f"WRONG: {program.name}: {why}")
        sys.stdout.flush()

    def all(self):
        try:
            self.natively()
            self.disturbed()
        finally:
            self.cut = True
            for child in list(self.children):
                child.end()
            self.table()
        return int(any(each.bad() for each in self.programs.values()))


def known(stub):
    if stub:
        return ["right", "changing", "wrong", "ends", "missing"]
    text = (HERE / "models.py").read_text()
    return re.findall(r"^@model\(.*\)[^\n]*\ndef (\w+)", text, re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--stops", type=int, default=10_000, help="launches stopped half way, of each")
    parser.add_argument("--budget", type=float, default=560, help="seconds for all of it")
    parser.add_argument("--at-once", type=int, default=3, help="programs at a time")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=[])
    parser.add_argument("--seed", type=int, default=5)
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
        each = (options.budget * (1 - NATIVE) - LATE) * options.at_once / len(options.programs)
        print(f"natively {NATIVE * options.budget:.0f} s at most; then {each:.0f} s and more of each of "
              f"{len(options.programs)} programs, {options.at_once} at a time: {', '.join(options.programs)}")
        return 0
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    run = ProgramStops(options)

    def cut(*_):
        run.cut = True   # before the server ends, or its programs' errors would count
        sys.exit(143)
    signal.signal(signal.SIGTERM, cut)
    return run.all()


if __name__ == "__main__":
    sys.exit(main())
