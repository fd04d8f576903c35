#!/usr/bin/env python3
"""Kernelet's figure 14: times of a thousand random schedules of a mix, beside slice's and OPT's. JSON lines
in papers.jsonl, as of papers.py; claims.py takes both. Exit code 0 when every result was right.

A schedule says which pair of the kernels that have work left runs, and with how many blocks of each on a
multiprocessor. The pair runs until one of the two is done (Kernelet, Algorithm 1), and the last kernel runs
alone. A random schedule is an order of all pairs, and a combination of blocks for each, drawn by a seed from
those that `smt profile --pair` measures; the first pair in this order that has work left runs.

  assembled  the time of each schedule from the measured rates of the pairs, of all kernels one after the
             other. slice is the schedule by the profits that its model expects, with the combination that it
             expects most of; OPT is that by measured profits. Neither leaves out pairs as too alike
  measured   the first random schedules, slice, OPT (slice by measured pairs) and MPS in turns on the GPU,
             for as long as the budget lasts. A server runs a random schedule as it runs OPT: its store has
             the drawn combinations alone, and profits that are in the drawn order

Programs launch again and again, so what a server decides depends on when launches come, and a kernel that
waits too long has a turn (aging): `off` says how far off the assembled time is from the measured one."""
import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("harness", "corun", "models"))]
import workloads  # noqa: E402
from measurement import note_command  # noqa: E402
from options import parse, parser_of  # noqa: E402
from models_figures import KERNELS  # noqa: E402
from parts import Job, Runner  # noqa: E402
from metrics import makespan_stp  # noqa: E402
from stage import MEASURED, Stage  # noqa: E402

LEAST_EXPECTED, LEAST_MEASURED = 0.05, 0.02   # SliceKnobs: least_profit, least_measured
# Profits of a random schedule's pairs: above the least, and so low that none is refused as impossible.
FIRST_PROFIT, LAST_PROFIT = 0.06, 0.03
RUN_S = 3   # about what a run takes, for the budget
NAMES = {(kernel, tuple(block)): name for name, (kernel, block) in KERNELS.items()}


class Measured(NamedTuple):
    """A combination of two programs, by name in their order."""
    blocks: tuple
    rates: tuple     # of each one's alone
    profit: float    # measured
    expected: float  # by slice's model; None: not both were counted


class Choice(NamedTuple):
    pair: tuple
    combination: Measured


def identity(kernel):
    return kernel["symbol"], kernel["image"], tuple(kernel["block"]), kernel["grid_class"]


def read_pairs(text, programs):
    """Of `smt profile pairs --measured --json`: {pair: [Measured]}, and {kernel: program}."""
    pairs, kernels = {}, {}
    for row in json.loads(text or "[]"):
        sides = [NAMES.get((row[side]["kernel"], tuple(row[side]["block"]))) for side in ("first", "second")]
        if "refused" in row or sides[0] == sides[1] or not set(sides) <= set(programs):
            continue
        kernels.update(zip((identity(row["first"]), identity(row["second"])), sides))
        turn = 1 if sides[0] < sides[1] else -1
        pairs.setdefault(tuple(sides[::turn]), []).append(
            Measured(tuple(row["blocks"][::turn]), tuple(row["rates"][::turn]), row["profit"],
                     row.get("told")))
    return pairs, kernels


def drawn(pairs, dice):
    """A random schedule: choices, the first of which that can runs."""
    order = dice.sample(sorted(pairs), len(pairs))
    return [Choice(pair, dice.choice(pairs[pair])) for pair in order]


def by_profit(pairs, profit, least):
    """The schedule that goes by these profits. None where one is not known."""
    if not pairs or any(profit(each) is None for rows in pairs.values() for each in rows):
        return None
    best = [Choice(pair, max(rows, key=profit)) for pair, rows in pairs.items()]
    return sorted((each for each in best if profit(each.combination) > least),
                  key=lambda each: -profit(each.combination))


def assembled(programs, schedule):
    """Its time, of one after the other; each program has as much to do."""
    left, took = dict.fromkeys(programs, 1.0), 0.0
    while left:
        found = next((each for each in schedule if set(each.pair) <= set(left)), None)
        if found is None:   # the one that came first
            took += left.pop(next(iter(left)))
            continue
        rates = dict(zip(found.pair, (max(1e-3, rate) for rate in found.combination.rates)))
        step = min(left[name] / rate for name, rate in rates.items())
        took += step
        for name, rate in rates.items():
            left[name] -= step * rate
            if left[name] < 1e-9:
                del left[name]
    return took / len(programs)


COUNTED = ("counted_blocks", "counted_ns", "instructions", "memory_instructions", "uncoalesced_instructions",
           "dram_reads", "dram_writes")
SIDE = "kernel, image, block_x, block_y, block_z, grid_class"


def key_of(row):
    return row[0], row[1], tuple(row[2:5]), row[5]


def write_store(source, path, schedule, kernels):
    """A copy of a store, of which a server that goes by measured pairs runs this schedule: it has these
    combinations only, with profits in their order. Nothing is counted there, or pairs that are too alike
    would be left out."""
    with contextlib.closing(sqlite3.connect(source)) as store:
        store.execute("VACUUM INTO ?", (path,))
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute("UPDATE profile SET " + ", ".join(f"{column} = 0" for column in COUNTED))
        store.execute("DELETE FROM learnt_beside")
        profiles = {number: kernels.get(key_of(row)) for number, *row in
                    store.execute(f"SELECT id, {SIDE} FROM profile").fetchall()}
        wanted = {}   # (program, other, blocks, other's): the factor of its times
        for place, (pair, found) in enumerate(schedule):
            part = place / max(1, len(schedule) - 1)
            profit = FIRST_PROFIT + part * (LAST_PROFIT - FIRST_PROFIT)
            factor = sum(found.rates) * (1 - profit)
            wanted[(*pair, *found.blocks)] = wanted[(*pair[::-1], *found.blocks[::-1])] = factor
        rows = store.execute(f"SELECT profile, {SIDE}, ctas_per_sm, other_ctas_per_sm, nanoseconds "
                             "FROM beside").fetchall()
        for number, *other, ctas, other_ctas, ns in rows:
            factor = wanted.get((profiles[number], kernels.get(key_of(other)), ctas, other_ctas))
            place = ("WHERE profile = ? AND (kernel, image, block_x, block_y, block_z, grid_class, "
                     "ctas_per_sm, other_ctas_per_sm) = (?, ?, ?, ?, ?, ?, ?, ?)")
            if factor is None:
                store.execute(f"DELETE FROM beside {place}", (number, *other, ctas, other_ctas))
            else:
                store.execute(f"UPDATE beside SET nanoseconds = ? {place}",
                              (max(1, round(ns * factor)), number, *other, ctas, other_ctas))


class Schedules:
    def __init__(self, stage, options, end):
        self.stage, self.options, self.end = stage, options, end
        self.programs = workloads.MIXES[options.mix]
        self.runner = Runner(stage)
        self.pairs, self.kernels, self.draws = {}, {}, []

    def prepare(self):
        stage = self.stage
        for name in self.programs:
            if not self.options.known and not self.options.swept:
                stage.profile(name, "--sweep", "--runs", "1")
            stage.measure_alone(name)
        if not self.options.known:
            stage.measure_pairs(self.programs, self.options.pair_seconds)
        text = stage.smt("profile", "pairs", "--measured", "--json", SMT_PROFILES=stage.stores["pairs"])
        self.pairs, self.kernels = read_pairs(text, self.programs)
        missing = {tuple(sorted(pair)) for pair in itertools.combinations(self.programs, 2)} - set(self.pairs)
        if missing:
            print("not measured: " + ", ".join(" + ".join(pair) for pair in sorted(missing)), flush=True)
        return bool(self.pairs)

    def assemble(self):
        dice = random.Random(self.options.seed)
        self.draws = [drawn(self.pairs, dice) for _ in range(self.options.draws)]
        schedules = {"slice": by_profit(self.pairs, lambda each: each.expected, LEAST_EXPECTED),
                     "OPT": by_profit(self.pairs, lambda each: each.profit, LEAST_MEASURED)}
        found = {name: assembled(self.programs, each) for name, each in schedules.items()
                 if each is not None}
        times = [assembled(self.programs, each) for each in self.draws]
        self.stage.lines.add(part="schedules", mix=self.options.mix, kind="assembled", times=times, **found)
        spread = statistics.quantiles(times, n=10)
        said = "".join(f", {name} {value:.3f}" for name, value in found.items())
        print(f"{self.options.mix}, {len(self.pairs)} pairs, assembled: {len(times)} random schedules "
              f"{min(times):.3f} to {max(times):.3f}, median {statistics.median(times):.3f}, first tenth up "
              f"to {spread[0]:.3f}{said}", flush=True)

    def measure(self):
        """A turn: slice, OPT and MPS once, and as many random schedules."""
        self.stage.wake(MEASURED)
        draws = iter(range(len(self.draws)))
        for turn in itertools.count():
            modes = ["slice", MEASURED, "mps"]
            for mode in modes if turn % 2 == 0 else modes[::-1]:
                for each in (mode, None):
                    if time.monotonic() + RUN_S > self.end or turn >= self.options.rounds:
                        return
                    if each:
                        self.one(each, turn)
                    elif (draw := next(draws, None)) is not None:
                        self.random(draw, turn)

    def random(self, draw, turn):
        stage, mode = self.stage, f"random-{draw}"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profiles.db")
            write_store(stage.stores["pairs"], path, self.draws[draw], self.kernels)
            stage.serve(mode, SMT_POLICY="slice", SMT_PROFILES=path)
            try:
                self.one(mode, turn, draw=draw, assembled=assembled(self.programs, self.draws[draw]))
            finally:
                stage.leave(mode)

    def one(self, mode, turn, **more):
        run = self.runner
        jobs = [Job(name, run.iterations(name, 2 * run.length)) for name in self.programs]
        rows, late = run.corun(jobs, mode)
        took = None
        if all(row["ok"] and row["ends_s"] for row in rows):
            took = 1 / makespan_stp([(row, run.launch_s(row["program"])) for row in rows])
        self.stage.lines.add(part="schedules", mix=self.options.mix, kind="run", mode=mode, round=turn,
                             late_s=late, time=took, programs=rows, **more)
        beside = f", assembled {more['assembled']:.3f}" if more else ""
        print(f"   {mode}: " + (f"{took:.3f} of one after the other{beside}" if took else "no time"),
              flush=True)


def parsed():
    parser = parser_of(__doc__, budget=150, rounds=100, length=0.2)
    parser.add_argument("--mix", choices=sorted(workloads.MIXES), default="MIX")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=workloads.DRAWN_SEED)
    parser.add_argument("--pair-seconds", type=float, default=1.0,
                        help="what each program of a pair that is measured takes alone")
    parser.add_argument("--known", action="store_true", help="smt profile was there before, into --profiles")
    parser.add_argument("--swept", action="store_true", help="smt profile --sweep was, and --pair was not")
    options = parse(parser)
    return options


def main():
    options = parsed()
    end = time.monotonic() + options.budget
    note_command(options.out, "papers.jsonl")
    signal.signal(signal.SIGTERM, Stage.cut_off)
    with Stage(options, "papers.jsonl") as stage:
        schedules = Schedules(stage, options, end)
        if not schedules.prepare():
            print("no pair was measured", flush=True)
            return 1
        schedules.assemble()
        schedules.measure()
        print(f"{stage.wrong} wrong results", flush=True)
        return 1 if stage.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
