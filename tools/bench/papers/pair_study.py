#!/usr/bin/env python3
"""Why two programs lose under a policy: what each keeps of its rate beside the other with every number of
CTAs, where each saturates alone, both under several policies in turns, and what the policy ordered meanwhile.

    pair_study.py fdtd3d black_scholes

Tables are for people to judge: where no number of CTAs keeps more than one after the other, the kernels are
in each other's way, whatever the policy orders; where some do, the policy orders others. JSON lines go to
pair_study.jsonl. Exit code 0 when every result was right. About 60 s on an H100 (a guess)."""
import collections
import itertools
import json
import pathlib
import re
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("harness", "corun"))]
from harness import run  # noqa: E402
from measurement import note_command  # noqa: E402
from options import parse, parser_of  # noqa: E402
from metrics import antt, makespan_stp, progress  # noqa: E402
from parts import Job, Runner  # noqa: E402
from stage import Stage  # noqa: E402

RUN_S = 3   # about what a run takes, for the budget


def shape(text):
    """A decision's text, so that those that differ in times alone are one."""
    return re.sub(r"\d+\.\d+", "_", text)


def ordered(log):
    """Of `smt log --json`: {(tenant, order): how often}"""
    entries = map(json.loads, log.splitlines())
    return collections.Counter((entry.get("tenant", "-"), shape(entry.get("text", "")))
                               for entry in entries if entry.get("kind") == "decision")


class Study:
    def __init__(self, stage, options, end):
        self.stage, self.options, self.end = stage, options, end
        self.runner, self.names = Runner(stage), (options.first, options.second)
        self.found = {}   # mode: [(makespan STP, progress of each)]

    def prepare(self):
        stage = self.stage
        for name in self.names:
            stage.profile(name, "--sweep", "--runs", "1")
            stage.measure_alone(name)
            print(f"{name}: {1e3 * self.runner.launch_s(name):.3f} ms a launch alone", flush=True)
        stage.measure_pairs(self.names, self.options.pair_seconds)   # prints what each keeps, by CTAs
        for row in json.loads(stage.smt("profile", "show", "--json") or "[]"):
            if "saturation" in row:
                best = min((ns for _, ns in row.get("block_ns_by_ctas", [])), default=0)
                curve = " ".join(f"{ctas}:{ns / best:.2f}" for ctas, ns in row["block_ns_by_ctas"])
                print(f"{row['kernel'][:40]:<40} saturates with {row['saturation']['ctas_per_sm']} CTAs on "
                      f"{row['saturation']['sms']} SMs; time by CTAs on all: {curve}", flush=True)
            stage.lines.add(part="profile", **row)

    def jobs(self, turn):
        run_ = self.runner
        order = self.names if turn % 2 == 0 else self.names[::-1]
        return [Job(name, run_.iterations(name, 2 * run_.length), offset_s=.02 * place)
                for place, name in enumerate(order)]

    def measure(self):
        for turn in itertools.count():
            modes = self.options.modes.split(",")
            for mode in modes if turn % 2 == 0 else modes[::-1]:
                if time.monotonic() + RUN_S > self.end or turn >= self.options.rounds:
                    return
                self.one(mode, turn)

    def one(self, mode, turn):
        rows, late = self.runner.corun(self.jobs(turn), mode)
        if not all(row["ok"] and row["ends_s"] for row in rows):
            return
        runs = [(row, self.runner.launch_s(row["program"])) for row in rows]
        each = progress(runs, self.runner.least_s)
        by_name = dict(zip((row["program"] for row in rows), each or (None, None)))
        found = [by_name[name] for name in self.names]
        self.stage.lines.add(part="run", mode=mode, round=turn, late_s=late, stp=makespan_stp(runs),
                             progress=by_name, programs=rows)
        self.found.setdefault(mode, []).append((makespan_stp(runs), found if each else None))
        medians = [statistics.median(row["times_ms"]) / 1e3 / self.runner.launch_s(row["program"])
                   for row in rows]
        print(f"   {mode}: makespan STP {makespan_stp(runs):.3f}"
              + (f", {' + '.join(f'{part:.3f}' for part in found)} of alone, ANTT {antt(found):.2f}"
                 if each else "") + "; a launch takes " +
              ", ".join(f"{row['program']} {median:.2f}" for row, median in zip(rows, medians)) +
              " of alone", flush=True)

    def orders(self):
        """One more run under each logged policy, on a server of its own, and what was ordered in it."""
        stage = self.stage
        for policy in self.options.logged.split(","):
            if time.monotonic() + 2 * RUN_S > self.end:
                return
            mode = f"{policy} logged"
            stage.serve(mode, SMT_POLICY=policy, SMT_PROFILES=stage.stores["alone"])
            try:
                self.one(mode, 0)
                text = run([stage.places.smt, "log", "--json"],
                           {**stage.environment, **stage.others[mode].variables()}, None, 60)["out"]
            finally:
                stage.leave(mode)
            counts = ordered(text)
            print(f"orders under {policy}, how often:")
            for (tenant, words), count in sorted(counts.items(), key=lambda each: -each[1])[:16]:
                print(f"   {count:>6} {tenant:<20} {words}")
            stage.lines.add(part="orders", policy=policy,
                            orders=[[*key, count] for key, count in counts.items()])

    def show(self):
        print(f"{'mode':<18} {'makespan STP':>12} {'of runs':>15} {'of alone':>15} {'n':>2}")
        for mode, rows in self.found.items():
            stp, each = [row[0] for row in rows], [row[1] for row in rows if row[1]]
            kept = " + ".join(f"{statistics.median(row[i] for row in each):.3f}" for i in range(2)) if each \
                else "-"
            print(f"{mode:<18} {statistics.median(stp):>12.3f} {min(stp):>7.3f}..{max(stp):.3f} {kept:>15} "
                  f"{len(rows):>2}")


def parsed():
    parser = parser_of(__doc__, budget=75, rounds=4, length=0.25)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--modes", default="mps,fifo,greedy,compact")
    parser.add_argument("--logged", default="compact", help="policies of which the orders are counted")
    parser.add_argument("--pair-seconds", type=float, default=1.0)
    options = parse(parser)
    return options


def main():
    options = parsed()
    end = time.monotonic() + options.budget
    note_command(options.out, "pair_study.jsonl")
    signal.signal(signal.SIGTERM, Stage.cut_off)
    with Stage(options, "pair_study.jsonl") as stage:
        study = Study(stage, options, end)
        try:
            study.prepare()
            study.orders()
            study.measure()
        finally:
            study.show()
            print(f"{stage.wrong} wrong results", flush=True)
        return 1 if stage.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
