#!/usr/bin/env python3
"""tools/bench/papers/schedules.py: what a schedule takes, what is drawn and claimed, and, with a build
folder, a run on the simulated device: schedules_test.py [BUILD]. Pairs are not measured there, because the
smallest grids have too few blocks: the test writes rates into the store."""
import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import unittest

from measuring import Measuring

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/bench/papers/schedules.py"
BUILD = None
sys.path[:0] = [str(SCRIPT.parent), *(str(ROOT / "tools/bench" / name) for name in ("harness", "corun", "."))]
import claims  # noqa: E402
import report  # noqa: E402
import results_file  # noqa: E402
import schedules  # noqa: E402
import workloads  # noqa: E402
from schedules import Choice, Measured  # noqa: E402

ABC = ("a", "b", "c")


def pair(first, second, rates, profit=.1, expected=.1, blocks=(2, 3)):
    return Choice((first, second), Measured(blocks, rates, profit, expected))


class Times(unittest.TestCase):
    def test_a_pair_runs_until_one_is_done_and_the_last_one_alone(self):
        # a and b are done at 2; c takes 1 alone.
        self.assertAlmostEqual(schedules.assembled(ABC, [pair("a", "b", (.5, .5))]), (2 + 1) / 3)
        # a is done at 1.25, and b's other half is left for c: both at .5, b is done at 2.25, c has .5 left.
        order = [pair("a", "b", (.8, .4)), pair("b", "c", (.5, .5))]
        self.assertAlmostEqual(schedules.assembled(ABC, order), (1.25 + 1 + .5) / 3)
        self.assertAlmostEqual(schedules.assembled(ABC, []), 1)

    def test_the_first_pair_that_has_work_left_runs(self):
        good, bad = pair("a", "b", (1, 1)), pair("b", "c", (.25, .25))
        self.assertAlmostEqual(schedules.assembled(ABC, [good, bad]), 2 / 3)
        self.assertAlmostEqual(schedules.assembled(ABC, [bad, good]), (4 + 1) / 3)

    def test_schedules_by_profits(self):
        rows = {("a", "b"): [Measured((1, 7), (.5, .6), .09, .2), Measured((4, 4), (.6, .6), .17, .1)],
                ("b", "c"): [Measured((4, 4), (.5, .5), .01, .3)]}
        best = schedules.by_profit(rows, lambda each: each.profit, .02)
        self.assertEqual([(each.pair, each.combination.blocks) for each in best], [(("a", "b"), (4, 4))])
        model = schedules.by_profit(rows, lambda each: each.expected, .05)
        self.assertEqual([(each.pair, each.combination.blocks) for each in model],
                         [(("b", "c"), (4, 4)), (("a", "b"), (1, 7))])
        rows["b", "c"] = [Measured((4, 4), (.5, .5), .01, None)]
        self.assertIsNone(schedules.by_profit(rows, lambda each: each.expected, .05))

    def test_of_one_seed_the_same_is_drawn(self):
        rows = {each: [Measured((n, 9 - n), (.5, .5), 0, 0) for n in range(1, 9)]
                for each in itertools.combinations("abcd", 2)}
        some = [schedules.drawn(rows, random.Random(7)) for _ in range(2)]
        self.assertEqual(*some)
        self.assertEqual({each.pair for each in some[0]}, set(rows))
        dice = random.Random(7)
        many = [schedules.drawn(rows, dice) for _ in range(100)]
        self.assertGreater(len({each[0].pair for each in many}), 4)
        self.assertGreater(len({each[0].combination.blocks for each in many}), 4)

    def test_pairs_are_named_by_their_programs_in_one_order(self):
        side = lambda kernel, block: {"kernel": kernel, "symbol": f"_{kernel}", "image": "i",
                                      "block": list(block), "grid_class": 9}
        tea, sad = side("encrypt", (128, 1, 1)), side("compare", (32, 1, 1))
        row = {"first": tea, "second": sad, "blocks": [3, 20], "rates": [.7, .4], "profit": .09, "told": .1}
        text = json.dumps([row, {**row, "refused": {}}, {**row, "second": side("fill", (256, 1, 1))}])
        pairs, kernels = schedules.read_pairs(text, ("sad", "tea"))
        self.assertEqual(pairs, {("sad", "tea"): [Measured((20, 3), (.4, .7), .09, .1)]})
        self.assertEqual(sorted(kernels.values()), ["sad", "tea"])
        self.assertEqual(schedules.read_pairs(text, ("sad", "spmv")), ({}, {}))
        self.assertEqual(schedules.read_pairs("", ("sad", "tea")), ({}, {}))


class Claims(unittest.TestCase):
    @staticmethod
    def found(*lines):
        found = claims.claims_of(list(lines), "a-run")
        run = {"command": "tools/bench/papers/schedules.py", "commit": "0000000", "machine": "h100-alone",
               "raw": "not kept"}
        data = results_file.merged(json.loads(report.DATA.read_text()), claims.HOME, "a-run", run, found)
        assert report.mistakes(data) == [], report.mistakes(data)
        return {claim["id"]: claim for claim in found}

    def test_of_what_is_assembled(self):
        found = self.found({"part": "schedules", "mix": "MIX", "kind": "assembled",
                            "times": [.8, .9, 1.0, .7], "slice": .75, "OPT": .6},
                           {"part": "schedules", "mix": "ALL", "kind": "assembled", "times": [.1]})
        self.assertEqual(found["papers-random-schedules"]["value"], .85)
        self.assertEqual([(each["name"], each["value"]) for each in
                          found["papers-random-schedules"]["baselines"]], [("slice", .75), ("OPT", .6)])
        self.assertEqual(found["papers-random-schedules-better"]["value"], 25)

    def test_of_what_was_measured(self):
        run = lambda mode, time, **more: {"part": "schedules", "mix": "MIX", "kind": "run", "mode": mode,
                                          "round": 0, "late_s": 0, "time": time, "programs": [], **more}
        found = self.found(run("slice", .7), run("slice", .9), run("slice-measured", .75), run("mps", 1.0),
                           run("random-0", .78, draw=0, assembled=.8), run("mps", None),
                           run("random-1", 1.0, draw=1, assembled=.9),
                           {**run("random-2", .1, draw=2, assembled=.9), "late_s": .5},
                           {**run("random-3", .1, draw=3, assembled=.9), "mix": "CI"},
                           {**run("slice", .1), "mix": "CI"})
        random_ = found["papers-random-schedules-measured"]
        self.assertEqual((random_["value"], random_["low"], random_["high"], random_["n"]), (.89, .78, 1, 2))
        self.assertEqual([(each["name"], each["value"]) for each in random_["baselines"]],
                         [("slice", .8), ("slice by measured pairs", .75), ("MPS", 1)])
        mine = found["papers-schedules-slice"]
        self.assertEqual((mine["value"], mine["low"], mine["high"], mine["n"]), (.8, .7, .9, 2))
        self.assertEqual([(each["name"], each["value"]) for each in mine["baselines"]],
                         [("slice by measured pairs", .75), ("MPS", 1)])
        self.assertEqual(found["papers-random-schedules-measured-better"]["value"], 50)
        self.assertEqual(found["papers-random-schedules-off"]["value"], .06)


class Simulated(Measuring):
    script = SCRIPT
    always = ("--device", "sim", "--mix", "MIX", "--known")

    @property
    def build(self):
        return BUILD

    def rows(self, part=None):
        lines = map(json.loads, (self.out / "papers.jsonl").read_text().splitlines())
        return [row for row in lines if part in (None, row.get("part"))]

    def smt(self, store, *words):
        variables = {**os.environ, "SMT_PROFILES": str(store), "SMT_RUNTIME_DIR": str(self.out),
                     "SMT_IDLE_SECONDS": "1", "SMT_COMPILE": "wait=10"}
        done = subprocess.run([BUILD / "bin/smt", *words], env=variables, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def pretend(self):
        """Stores as smt profile leaves them: for every two of a mix two combinations of CTAs."""
        store = self.out / "profiles.db"
        for name in workloads.MIXES["MIX"]:
            self.smt(store, "profile", "--times", "--device", "sim", "--", BUILD / "examples/shared" / name,
                     "--size", "trivial", "--iterations", "4")
        shutil.copy(store, self.out / "profiles-of-pairs.db")
        with contextlib.closing(sqlite3.connect(self.out / "profiles-of-pairs.db")) as database, database:
            ours = {program: row for row in database.execute(
                "SELECT id, kernel, image, block_x, block_y, block_z, grid_class, most_ctas_per_sm "
                "FROM profile")
                for (kernel, block), program in schedules.NAMES.items()
                if kernel in row[1] and tuple(row[3:6]) == block}
            self.assertLessEqual(set(workloads.MIXES["MIX"]), set(ours), ours)
            for first, second in itertools.permutations(workloads.MIXES["MIX"], 2):
                (number, *_, most), other = ours[first], ours[second]
                blocks, ns = database.execute("SELECT blocks, nanoseconds FROM times WHERE profile = ? AND "
                                              "ctas_per_sm = ?", (number, most)).fetchone()
                for ctas in (1, 2):
                    rate = .5 + .05 * ctas + .01 * len(first)
                    database.execute("INSERT INTO beside VALUES (" + ", ".join("?" * 12) + ")",
                                     (number, *other[1:7], ctas, 3 - ctas, 4, blocks, round(ns / rate)))

    def test_from_a_store_to_claims(self):
        self.pretend()
        out, code = self.run_all("--rounds", "1", "--budget", "1000", "--draws", "100")
        self.assertEqual(code, 0, out)
        rows = self.rows("schedules")
        self.assertEqual([row["mode"] for row in rows if row["kind"] == "run"],
                         ["slice", "random-0", "slice-measured", "random-1", "mps", "random-2"])
        self.assertTrue(all(row["time"] for row in rows if row["kind"] == "run"), out)
        self.assertIn("papers-random-schedules", {claim["id"] for claim in
                                                  claims.claims_of(self.rows(), "a-run")})
        self.assertIn("schedules.py", (self.out / "papers.command").read_text())
        self.assertIn("0 wrong results", out)

    def test_a_server_knows_the_drawn_schedule_and_no_other(self):
        self.pretend()
        source = self.out / "profiles-of-pairs.db"
        read = lambda store: schedules.read_pairs(self.smt(store, "profile", "pairs", "--measured", "--json"),
                                                  workloads.MIXES["MIX"])
        pairs, kernels = read(source)
        self.assertEqual((len(pairs), {len(rows) for rows in pairs.values()}), (6, {2}))
        for seed in range(3):
            schedule = schedules.drawn(pairs, random.Random(seed))
            path = str(self.out / f"drawn-{seed}.db")
            schedules.write_store(source, path, schedule, kernels)
            found = read(path)[0]
            self.assertEqual({each: [row.blocks for row in rows] for each, rows in found.items()},
                             {each.pair: [each.combination.blocks] for each in schedule})
            profits = [found[each.pair][0].profit for each in schedule]
            self.assertEqual(profits, sorted(profits, reverse=True))
            self.assertGreater(min(profits), schedules.LEAST_MEASURED)
            self.assertEqual(len({round(each, 4) for each in profits}), 6)

    def test_without_a_measured_pair_nothing_is_drawn(self):
        out, code = self.run_all("--rounds", "1")
        self.assertEqual(code, 1, out)
        self.assertIn("no pair was measured", out)


if __name__ == "__main__":
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir():
        BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    else:
        del Simulated
    unittest.main()
