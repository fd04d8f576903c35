#!/usr/bin/env python3
"""The evaluations of the four papers on a GPU, and programs that nothing was tuned on, under the policy of
each paper, MPS and time-slicing in turns. One JSON line a run in papers.jsonl, when it is over; tables at the
end, also of a run that is cut off. Exit code 0 when every result was right; figures are for people to judge.

  pairs     Adaptive Simultaneous Multi-tenancy: its fifteen pairs of figure 10 and six of figure 11, greedy,
            in both orders of arrival
  behind    FLEP: small launches that arrive behind a large program's: 28 pairs with a priority (figure 8) and
            28 as equals (figures 10 and 11), hpf
  triples   FLEP: two small ones that arrive behind a large one at the same moment (figure 12), hpf
  mixes     Kernelet: CI, MI, MIX and ALL, whose launches arrive as a Poisson process (figure 13), slice
  compact   smCompactor: pairs and three programs (figures 11 and 12), compact
  drawn     pairs of examples that are drawn by a seed, less those that policies were tuned on, greedy
  queues    queues of four examples, drawn likewise, slice and greedy

and, where --parts names them,

  slices    Kernelet: its eight programs alone, in slices of fixed sizes (figure 6)
  more-sms  FLEP: small launches with more multiprocessors than just enough (figure 16)
  weights   FLEP: all pairs of its programs at 2:1 and triples at 3:2:1, fair

Metrics of each run: makespan STP (the papers' STP), Eyerman's STP and ANTT (harness/metrics.py).
--budget, less what has to be known of programs beforehand, is divided by what a round of each part takes, of
mixes and compact of each workload; --plan prints that, and measures nothing. With too small a budget a part
has fewer workloads: the first ones in an order that was drawn by a seed before."""
import itertools
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "harness"), str(HERE.parent / "corun")]
from measurement import note_command  # noqa: E402
from options import parse, parser_of  # noqa: E402
import experiments  # noqa: E402
import parts as coruns  # noqa: E402
from parts import Runner  # noqa: E402
from stage import Stage  # noqa: E402
from summary import print_tables  # noqa: E402

PARTS = {**coruns.PARTS, **experiments.PARTS}
# Seconds, about, on an H200 and an H100: a co-run's set-up and check, a program alone (three runs), the same
# at size small, and smt profile --sweep of one.
AROUND_S, ALONE_S, ALONE_SMALL_S, SWEEP_S = 0.9, 1.8, 1.1, 5


class Planned(Stage):
    """In place of a stage, for a plan: nothing runs."""

    def __init__(self, options):
        self.options, self.simulated = options, options.device == "sim"
        self.alone, self.laps, self.leads = {}, {}, {}


def unit_s(part, programs):
    return part.busy_s(programs) + AROUND_S


def round_s(part, modes):
    return sum(unit_s(part, part.workloads[name]) for name, _ in part.units(0, modes))


def preparing_s(part, options, known, swept):
    """Programs that are not known from a part before; notes them."""
    new = [name for name in part.programs() if name not in known]
    known.update(new)
    sweeps = [name for name in part.programs() if name in part.swept and name not in swept and
              not options.known and part.name in options.sweep.split(",")]
    swept.update(sweeps)
    small = len(part.programs()) * part.size_of_small
    return len(new) * ALONE_S + small * ALONE_SMALL_S + len(sweeps) * SWEEP_S


def wanted(part, options, which):
    modes = part.modes if which == "modes" else part.later
    return [mode for mode in modes if not options.modes or mode in options.modes.split(",")]


def chosen(runner, options):
    return list(itertools.chain(*(PARTS[name].chosen(runner, options.select)
                                  for name in options.parts.split(","))))


def costs(parts, options):
    """{part, or workload of one: (seconds of preparing, of a round, of the later modes)}"""
    known, swept = set(), set()
    return {part.label: (preparing_s(part, options, known, swept),
                        round_s(part, wanted(part, options, "modes")),
                        round_s(part, wanted(part, options, "later"))) for part in parts}


def share_s(found, place, left_s):
    """Of the seconds that are left: what the part at this place has. found: costs() of all."""
    prepare, one, _ = list(found.values())[place]
    left = list(found.values())[place:]
    preparing, rounds = sum(each[0] for each in left), sum(each[1] for each in left)
    if left_s < preparing:
        return max(0, left_s) * prepare / max(preparing, 1e-9)
    return prepare + (left_s - preparing) * one / max(rounds, 1e-9)


def print_plan(parts, options):
    found, left = costs(parts, options), options.budget
    print(f"{'part':<35} {'workloads':>9} {'modes':<22} {'prepare s':>9} {'a round s':>9} {'later':<12} "
          f"{'s':>5} {'its share of the budget':>24}")
    total = sum(prepare + one for prepare, one, _ in found.values())
    for place, part in enumerate(parts):
        prepare, one, later = found[part.label]
        share = share_s(found, place, left)
        left -= share
        print(f"{part.label:<35} {len(part.workloads):>9} {','.join(wanted(part, options, 'modes')):<22} "
              f"{prepare:>9.0f} {one:>9.0f} {','.join(wanted(part, options, 'later')):<12} {later:>5.0f} "
              f"{share:>15.0f} s, {max(0, share - prepare) / one if one else 0:.2f} rounds")
    print(f"one round of all: {total:.0f} s, with the later modes "
          f"{total + sum(later for _, _, later in found.values()):.0f} s; budget {options.budget:.0f} s")


class Papers:
    def __init__(self, stage, options):
        self.stage, self.options = stage, options
        self.runner = Runner(stage)
        self.parts = chosen(self.runner, options)
        self.swept, self.seconds = set(), {}   # of each part: what units took

    def all(self, end):
        found = costs(self.parts, self.options)
        for place, part in enumerate(self.parts):
            until = time.monotonic() + share_s(found, place, end - time.monotonic())
            print(f"== {part.label}: {until - time.monotonic():.0f} s", flush=True)
            try:
                self.measure(part, until)
            except Exception:   # the other parts are measurements, too
                traceback.print_exc(file=sys.stdout)
                self.stage.wrong += 1

    def measure(self, part, until):
        for turn in range(self.options.rounds):
            for which in ("modes", "later"):
                for name, mode in part.units(turn, wanted(part, self.options, which)):
                    if not self.fits(part, name, until):
                        print(f"   no time for {name} under {mode} in round {turn + 1}", flush=True)
                        return
                    self.prepare(part, name)
                    self.one(part, name, mode, turn)

    def unswept(self, part, name):
        if self.options.known or part.name not in self.options.sweep.split(","):
            return []
        return [each for each in part.workloads[name] if each in part.swept and each not in self.swept]

    def fits(self, part, name, until):
        alone, small = self.runner.unknown(part.workloads[name], part.size_of_small)
        known = self.seconds.get(part.label) or [unit_s(part, part.workloads[name])]
        needs = len(alone) * ALONE_S + len(small) * ALONE_SMALL_S + len(self.unswept(part, name)) * SWEEP_S
        return time.monotonic() + needs + sum(known) / len(known) < until

    def prepare(self, part, name):
        """What is known of programs beforehand: profiles, before they come to the server, and how long they
        take alone."""
        for each in self.unswept(part, name):
            self.stage.profile(each, "--sweep", "--runs", "1")
            self.swept.add(each)
        self.runner.measure(part.workloads[name], part.size_of_small)

    def one(self, part, name, mode, turn):
        began, programs = time.monotonic(), part.workloads[name]
        rows, late = part.rows(programs, mode, turn)
        found = part.judge(rows, programs) if all(row["ok"] and row["ends_s"] for row in rows) else {}
        self.stage.lines.add(part=part.name, workload=name, mode=mode, round=turn, late_s=late, figures=found,
                             programs=rows, **part.more(name, mode, turn))
        took = time.monotonic() - began
        self.seconds.setdefault(part.label, []).append(took)
        said = ", ".join(f"{what} {value:.3f}" for what, value in found.items() if isinstance(value, float))
        print(f"   {name} under {mode}: {said or 'no figures'}; {took:.1f} s", flush=True)


def parsed():
    parser = parser_of(__doc__, budget=480, rounds=5, length=0.25)
    parser.add_argument("--parts", default=",".join(coruns.PARTS), help="the first seven, if none is named")
    parser.add_argument("--select", default="", help="workloads, by a regular expression")
    parser.add_argument("--modes", help="only these")
    parser.add_argument("--sweep", default="pairs,mixes,compact",
                        help="parts whose programs smt profile --sweep measures first")
    parser.add_argument("--known", action="store_true", help="smt profile was there before, into --profiles")
    parser.add_argument("--plan", action="store_true", help="print what runs and how long it takes")
    options = parse(parser, needs_programs=lambda options: not options.plan)
    if unknown := set(options.parts.split(",")) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    return options


def main():
    options = parsed()
    if options.plan:
        runner = Runner(Planned(options))
        print_plan(chosen(runner, options), options)
        return 0
    end = time.monotonic() + options.budget
    note_command(options.out, "papers.jsonl")
    signal.signal(signal.SIGTERM, Stage.cut_off)
    with Stage(options, "papers.jsonl") as stage:
        try:
            Papers(stage, options).all(end)
        finally:
            print_tables(stage.lines.all)
            experiments.print_table(stage.lines.all)
            print(f"{stage.wrong} wrong results", flush=True)
        return 1 if stage.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
