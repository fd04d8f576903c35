#!/usr/bin/env python3
"""Services and trainings of PyTorch on one GPU: colocate.py --out OUT EXPERIMENT...

  services    a service beside a training: how long its requests take, from their arrival and from their
              begin, and what the training gets done, both to alone; by loads, under each mode
  trainings   two trainings, or a training and an example of the project: what each gets done, and the sum
  closed      each program alone in a closed loop, natively and under smt

All modes alternate. One JSON line a phase in OUT/colocate.jsonl, tables at the end. A phase that fails is
named and the others go on; exit code 1 when one failed or computed something wrong. README.md has modes,
names of programs, and how long it takes.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import names  # noqa: E402
import phases  # noqa: E402
import summary  # noqa: E402
from harness import Lines, nvidia_smi  # noqa: E402
from modes import NATIVE, Mode  # noqa: E402
from run_phase import PhaseRun  # noqa: E402
from workers import MAKING, Failed, Stage  # noqa: E402

# about the seconds until a process is there, and until a program of it is made; others start meanwhile
STARTS, STARTS_UNDER_SMT, MAKES = 12, 25, 3
CLOSING = 5


class Colocate:
    def __init__(self, options):
        self.options = options
        self.plan = phases.plan(options)
        self.lines = Lines(os.path.join(options.out, "colocate.jsonl"))
        self.rates, self.alone, self.cut = {}, {}, []
        self.failures, self.wrong = collections.Counter(), 0
        self.deadline = time.monotonic() + options.budget

    def all_phases(self):
        return [phase for of_one in self.plan.values() for phase in of_one]

    def wanted(self, stage, of_one):
        """{key: programs} of the processes of an experiment whose variables are known; and how many others
        there will be."""
        found, others = {}, set()
        for phase in of_one:
            for part in phase.parts:
                if names.is_example(part.program):
                    continue
                try:
                    key = stage.key(phase.mode, part.place, part.role,
                                    self.alone.get(phase.parts[0].program))
                    found.setdefault(key, {})[part.program] = True
                except LookupError:
                    others.add((phase.mode.name, part))
        return found, len(others)

    def run(self):
        self.lines.add(facts={"modes": [mode.name for mode in self.options.modes],
                              "arguments": sys.argv[1:],
                              "seed": self.options.seed,
                              "gpu": (nvidia_smi("--query-gpu=name,driver_version", "--format=csv,noheader")
                                      or "").strip(), "commit": commit()})
        families = {phase.mode.family for phase in self.all_phases()}
        with Stage(self.options, families, self.deadline) as stage:
            try:
                for experiment, of_one in self.plan.items():
                    self.experiment(stage, experiment, of_one)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            if self.options.log:
                stage.write_logs(self.options.out)
            print(f"over, {self.deadline - time.monotonic():.0f} s of the budget are left", flush=True)
        return self.close()

    def experiment(self, stage, experiment, of_one):
        if time.monotonic() + self.start_cost(self.wanted(stage, of_one)[0]) + CLOSING > self.deadline:
            self.cut += of_one
            return
        self.prepare(stage, experiment, of_one)
        unknown = self.wanted(stage, of_one)[1]
        for index, phase in enumerate(of_one):
            if unknown and phase.experiment != "calibrate":   # by now it is known
                self.prepare(stage, experiment, of_one)
                unknown = 0
            if self.failures[phase.label] >= self.options.failures:
                self.cut.append(phase)
            elif time.monotonic() + self.cost(stage, phase) + CLOSING > self.deadline:
                self.cut += of_one[index:]
                return
            else:
                self.one(stage, phase)

    def prepare(self, stage, experiment, of_one):
        took = stage.prepare(self.wanted(stage, of_one)[0])
        print(f"{experiment}: processes and programs: {took:.1f} s", flush=True)
        self.lines.add(prepared=experiment, seconds=round(took, 1),
                       made={f"{key[2]} {dict(key[3])}": worker.made
                             for key, worker in stage.workers.items()})

    def cost(self, stage, phase):
        """With the start of processes that are not there."""
        cost = phase.cost(self.options, self.rates.get(phase.parts[0].program))
        programs, others = self.wanted(stage, [phase])
        missing = {key: each for key, each in programs.items() if key not in stage.workers}
        return cost + self.start_cost(missing, others)

    def start_cost(self, programs, others=0):
        """Of processes that start at the same time, and of others that do so later."""
        if self.options.stub:
            return 0.5 * (bool(programs) + bool(others))
        smt = any(key[0] is not None for key in programs)
        waves = -(-len(programs) // MAKING)
        at_once = (STARTS_UNDER_SMT if smt else STARTS) + waves * MAKES * max(map(len, programs.values()),
                                                                             default=0)
        return (at_once if programs else 0) + (STARTS_UNDER_SMT + MAKES if others else 0)

    def one(self, stage, phase):
        begin = time.monotonic()
        row = {"experiment": phase.experiment, "mode": phase.label, "round": phase.round,
               "programs": phase.programs(), "load": phase.load}
        keys = []
        try:
            alone = self.alone.get(phase.parts[0].program)
            running = PhaseRun(stage, phase, self.rates, alone)
            keys = running.keys
            row.update(seconds=round(running.seconds, 2), **running.row())
            if phase.load is not None:
                row["served_part"] = 1 - row["unserved"] / max(1, row["n"])
            self.learn(phase, row)
        except (Failed, LookupError, OSError, subprocess.SubprocessError) as error:
            row["failed"] = f"{type(error).__name__}: {error}"
            self.failures[phase.label] += 1
            servers = {key[0] for key in keys if key[0] in stage.runtimes}
            if servers:
                row["servers"] = [stage.runtimes[server].log(1500) for server in servers]
            for key in keys if getattr(error, "gone", True) else []:
                if key in stage.workers:
                    stage.discard(key, phase.text())
        self.wrong += bool(row.get("wrong"))
        self.lines.add(**row, took=round(time.monotonic() - begin, 2))
        print(json.dumps({key: round(value, 4) if isinstance(value, float) else value
                          for key, value in row.items() if key not in ("requests", "servers")}), flush=True)

    def learn(self, phase, row):
        program = phase.parts[0].program
        if phase.label == phases.ALONE and phase.load is None:
            self.rates[program] = row["rates"][0]
            if "loop_p99" in row and program not in self.alone:
                self.alone[program] = {"p50": row["loop_p50"], "p99": row["loop_p99"]}

    def close(self):
        rows = summary.read([self.options.out])
        with open(os.path.join(self.options.out, "tables.txt"), "w") as file:
            summary.show(rows, file)
        summary.show(rows)
        counts = collections.Counter((phase.experiment, phase.label) for phase in self.cut)
        for (experiment, label), count in counts.items():
            print(f"cut: {experiment} {label}: {count} phases")
        failed = [row for row in self.lines.all if "failed" in row]
        for row in failed:
            print(f"FAILED: {row['experiment']} {row['mode']} {row['programs']}: {row['failed'][:300]}")
        print(f"{len(rows)} phases, {len(failed)} failed, {len(self.cut)} cut, {self.wrong} wrong")
        return 1 if failed or self.wrong else 0

    def show_plan(self):
        stage, total = Stage(self.options, set(), 0), CLOSING
        for experiment, of_one in self.plan.items():
            programs, others = self.wanted(stage, of_one)
            start = self.start_cost(programs, others)
            print(f"{experiment}: {len(programs)} processes at once with their programs, {others} later: "
                  f"about {start:.0f} s")
            costs = collections.defaultdict(list)
            for phase in of_one:
                costs[phase.label].append(phase.cost(self.options))
            for label, each in costs.items():
                print(f"  {label:<40} {len(each):>4} phases {sum(each):>6.0f} s")
            total += start + sum(map(sum, costs.values()))
        stage.__exit__()
        print(f"{len(self.all_phases())} phases, about {total:.0f} s; budget {self.options.budget:.0f} s"
              f"{'' if total <= self.options.budget else ', so the last will be cut'}")
        return 0


def commit():
    done = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True,
                          text=True)
    return done.stdout.strip()


def checked(check):
    def parse(text):
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return parse


def pair(text):
    first, plus, second = text.partition("+")
    if not plus or names.is_example(first) and names.is_example(second):
        raise ValueError(f"{text}: TRAINING+TRAINING, or TRAINING+EXAMPLE")
    for each in (first, second):
        if not names.is_example(each):
            names.training(each)
    return first, second


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", choices=[*phases.EXPERIMENTS, []], default=["services"])
    parser.add_argument("--out", required=True)
    parser.add_argument("--modes", nargs="+", type=checked(Mode),
                        default=[Mode(each) for each in ("time-slicing", "mps", "mps-priority", "mps-half",
                                                         "smt:priority")])
    parser.add_argument("--services", nargs="+", type=checked(names.service),
                        default=["resnet50", "bert", "gpt2-graph", "llama"])
    parser.add_argument("--trainings", nargs="+", type=checked(names.training),
                        default=["resnet50-train", "bert-train"])
    parser.add_argument("--pairs", nargs="+", type=checked(pair), help="of trainings",
                        default=[("resnet50-train", "resnet50-train"), ("bert-train", "bert-train"),
                                 ("resnet50-train", "bert-train")])
    parser.add_argument("--closed", nargs="+", type=checked(lambda name: names.parse(name).name),
                        default=["resnet50", "resnet50-graph", "bert", "bert-graph", "gpt2", "gpt2-graph",
                                 "llama", "llama-graph", "resnet50-train", "bert-train"])
    parser.add_argument("--loads", nargs="+", type=float, default=[0.1, 0.5],
                        help="of a service's closed-loop rate, alone and natively")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of a phase")
    parser.add_argument("--requests", type=int, default=25,
                        help="at least, on average: a phase lasts longer for so many")
    parser.add_argument("--longest", type=float, default=12, help="seconds, for that")
    parser.add_argument("--lead", type=float, default=0.5,
                        help="seconds that programs run before a phase begins to count")
    parser.add_argument("--drain", type=float, default=0.5,
                        help="of a phase's time, in which queued requests are served at its end")
    parser.add_argument("--seed", type=int, default=1, help="of arrivals")
    parser.add_argument("--budget", type=float, default=500, help="seconds, the starts of processes included")
    parser.add_argument("--plan", action="store_true", help="measure nothing, and say how long it will take")
    parser.add_argument("--summarise", nargs="*", metavar="FOLDER",
                        help="measure nothing, and show the tables of --out and these folders together")
    parser.add_argument("--failures", type=int, default=3, help="phases, after which a mode is given up")
    parser.add_argument("--log", action="store_true",
                        help="write what each server says of kernels, at the end, into OUT/kernels-N.txt")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--stub", nargs="?", const="plain", choices=["plain", "sim"],
                        help="without PyTorch and GPU, to try this script; sim: under smt, on the simulated "
                        "device")
    parser.add_argument("--build", default=str(HERE.parents[2] / "build"))
    parser.add_argument("--preload")
    parser.add_argument("--examples", default=None, help="folder (default: examples/static of the build)")
    parser.add_argument("--size", default="large", help="of examples")
    parser.add_argument("--threads", type=int, default=2, help="of a process, on the CPU")
    parser.add_argument("--interpreter", default=sys.executable, help="a Python with PyTorch")
    options = parser.parse_args(arguments)
    options.examples = options.examples or os.path.join(options.build, "examples", "static")
    if "closed" in options.experiments and not phases.smt_of(options.modes):
        parser.error("closed needs a mode of smt")
    if options.device == "cpu" and any(mode.family != NATIVE.family for mode in options.modes):
        parser.error("--device cpu has time-slicing only")
    return options


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    options = options_of(None)
    os.makedirs(options.out, exist_ok=True)
    if options.summarise is not None:
        summary.show(summary.read([options.out, *options.summarise]))
        return 0
    run = Colocate(options)
    if options.plan:
        return run.show_plan()
    signal.signal(signal.SIGTERM, interrupt)
    return run.run()


if __name__ == "__main__":
    sys.exit(main())
