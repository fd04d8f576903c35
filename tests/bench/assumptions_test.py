#!/usr/bin/env python3
"""tools/bench/models/assumptions.py: what is measured of pairs, which models.py starts, and claims; with a
build folder, the model of profiles whose counters the test writes into a store:
assumptions_test.py [BUILD]."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/bench/models/assumptions.py"
BUILD = None
sys.path[:0] = [*(str(ROOT / "tools/bench" / name) for name in ("models", "papers", "harness", "corun", "."))]
import assumptions  # noqa: E402
import claims  # noqa: E402
import harness  # noqa: E402
import models  # noqa: E402
import report  # noqa: E402
import results_file  # noqa: E402


def kernel(name, block, **more):
    return {"kernel": name, "block": list(block), **more}


CHASE, TEA = ("chase", (256, 1, 1)), ("encrypt", (128, 1, 1))
SHOWN = [kernel(*CHASE, ipc=.4, predicted_ipc=.5, told_ipc=.4, uncoalesced_ratio=1, pur=.1, mur=.2),
         kernel(*TEA, ipc=2., predicted_ipc=3., told_ipc=2.2, pur=.5, mur=.05, occupancy=.9),
         kernel("fill", (256, 1, 1), ipc=1., pur=.9, mur=.9)]
LINES = [{"part": "pair", "pair": ["tea", "pointer_chase"], "of_alone": each}
         for each in ([.8, .9], [.6, .7])]


def pairs(paper):
    return [{"first": kernel(*CHASE), "second": kernel(*TEA), "paper": {"together": paper, "profit": .2},
             "told": {"together": [.3, 1.4], "profit": .5}},
            {"first": kernel(*CHASE), "second": kernel("fill", (256, 1, 1))}]


class Rows(unittest.TestCase):
    def setUp(self):
        coalesced = [dict(SHOWN[0], predicted_ipc=2.), dict(SHOWN[1], predicted_ipc=3.)]
        said = {"": (SHOWN, pairs([.4, 1.8])), "coalesced": (coalesced, []),
                "one scheduler": (SHOWN, pairs([.1, .6]))}
        self.rows = [{"part": "models", **row}
                     for row in assumptions.rows_of(said, assumptions.of_alone(LINES))]
        self.found = {claim["id"]: claim for claim in claims.claims_of(self.rows, "a-run")}

    def test_a_pair_is_measured_by_what_each_keeps_of_its_own(self):
        pair = [row for row in self.rows if row["what"] == "two kernels"]
        self.assertEqual([row["form"] for row in pair], ["paper", "told", "one scheduler"])
        for row in pair:   # 0.8 of 0.4, and 0.7 of 2
            self.assertAlmostEqual(row["measured"], .32 + 1.4)
            self.assertEqual(row["programs"], "pointer_chase + tea")

    def test_claims_by_hand(self):
        alone = self.found["papers-ipc-alone"]
        self.assertAlmostEqual(alone["value"], (.1 + 1) / 2 / 4)
        self.assertEqual([each["value"] for each in alone["baselines"]], [.025, .2])   # the mean is 1.2
        self.assertAlmostEqual(self.found["papers-ipc-pairs"]["value"], .12)
        coalesced = self.found["papers-ipc-coalesced"]   # pointer_chase alone: tea is none of the two
        self.assertEqual((coalesced["value"], coalesced["n"]), (5, 1))
        self.assertEqual(coalesced["baselines"][0]["value"], 1.25)
        narrow = self.found["papers-ipc-one-scheduler"]
        self.assertAlmostEqual(narrow["value"], .7 / 1.72, 3)
        self.assertAlmostEqual(narrow["baselines"][0]["value"], 2.2 / 1.72, 3)

    def test_what_was_counted(self):
        pur = self.found["papers-pur"]
        self.assertEqual((pur["value"], pur["low"], pur["high"], pur["n"]), (.3, .1, .5, 2))
        self.assertEqual(self.found["papers-occupancy"]["n"], 1)
        self.assertNotIn("papers-profit-by-pur", self.found)   # of one pair

    def test_profits_by_how_far_kernels_are_apart(self):
        row = lambda name, profit, pur, mur: {"part": "models", "what": "profit", "form": "counted",
                                              "programs": name, "profit": profit, "pur": pur, "mur": mur}
        found = {claim["id"]: claim["value"] for claim in claims.claims_of(
            [row("a + b", 0, .1, .3), row("a + c", .1, .2, .2), row("b + c", .2, .3, .1)], "a-run")}
        self.assertEqual(found, {"papers-profit-by-pur": 1, "papers-profit-by-mur": -1})
        (pair,) = (each for each in self.rows if each["what"] == "profit")
        self.assertAlmostEqual(pair["profit"], 1 - 1 / 1.5)
        self.assertAlmostEqual(pair["pur"], .4)
        self.assertAlmostEqual(pair["mur"], .15)

    def test_profits_that_are_expected(self):
        found = [row for row in self.rows if row["what"] == "expected profit"]
        self.assertEqual([(row["form"], row["predicted"]) for row in found], [("paper", .2), ("told", .5)])
        for row in found:
            self.assertAlmostEqual(row["measured"], 1 - 1 / 1.5)
        row = lambda name, form, *values: {"part": "models", "what": "expected profit", "form": form,
                                           "programs": name, **dict(zip(("measured", "predicted"), values))}
        (claim,) = claims.claims_of([row("a + b", "told", .3, .1), row("a + b", "paper", .3, .4),
                                     row("b + c", "told", -.1, .3), row("b + c", "paper", -.1, -.1)], "a-run")
        self.assertEqual((claim["id"], claim["value"], claim["low"], claim["high"], claim["n"]),
                         ("papers-profit-halves", .3, .2, .4, 2))
        # R_m alone; no profit; 0.1 of both.
        self.assertEqual([each["value"] for each in claim["baselines"]], [.05, .2, .2])

    def test_report_takes_them(self):
        run = {"command": "tools/bench/models/assumptions.py", "commit": "0000000", "machine": "h100-alone",
               "raw": "not kept"}
        data = results_file.merged(json.loads(report.DATA.read_text()), claims.HOME, "a-run", run,
                                   list(self.found.values()))
        self.assertEqual(report.mistakes(data), [])


class Pairs(unittest.TestCase):
    def test_both_of_a_pair_begin_once_the_later_one_is_set_up(self):
        pair, begins = models.Models.__new__(models.Models), {}
        pair.names, pair.rates, pair.leads, pair.failed = ["spmv", "tea"], {"spmv": 10, "tea": 10}, {
            "spmv": .2, "tea": .6}, 0
        pair.options = argparse.Namespace(rounds=1, reserve=0, length=.5)
        pair.end, pair.lines = time.monotonic() + 60, harness.Lines(None)
        pair.start = lambda name, iterations, runtime, begin: begins.setdefault(name, begin)
        pair.finish = lambda name, begin: {"program": name, "times_ms": [100] * 10,
                                           "ends_s": [begin + .1 * (1 + each) for each in range(10)]}
        pair.places = None
        before = time.monotonic()
        with unittest.mock.patch.object(models, "Runtime"), contextlib.redirect_stdout(io.StringIO()):
            pair.pairs()
        self.assertEqual(begins["spmv"], begins["tea"])
        self.assertGreater(begins["tea"], before + .6)
        (row,) = pair.lines.all
        self.assertAlmostEqual(row["of_alone"][0], 1)
        self.assertEqual(pair.failed, 0)


class Store(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_script(self):
        return subprocess.run([sys.executable, "-B", SCRIPT, "--build", BUILD or "build", self.out],
                              capture_output=True, text=True)

    def test_what_is_missing_is_named(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 2)
        self.assertIn("models.jsonl is not there; models.py", done.stderr)

    def test_rows_of_another_script_are_kept(self):
        rows = '{"part": "models"}\n{"part": "pairs"}\n'
        for name, text in (("models.jsonl", ""), ("profiles.db", ""), ("papers.jsonl", rows)):
            (self.out / name).write_text(text)
        done = self.run_script()
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("papers.jsonl has rows of another script", done.stderr)
        self.assertEqual((self.out / "papers.jsonl").read_text(), rows)


class Simulated(Store):
    def profile(self):
        """As models.py leaves it: there are no counters on the simulated device."""
        store = self.out / "profiles.db"
        variables = {**os.environ, "SMT_PROFILES": str(store), "SMT_RUNTIME_DIR": str(self.out),
                     "SMT_COMPILE": "wait=10"}
        for name in ("pointer_chase", "tea"):
            done = subprocess.run([BUILD / "bin/smt", "profile", "--times", "--device", "sim", "--",
                                   BUILD / "examples/shared" / name, "--size", "trivial",
                                   "--iterations", "2"], env=variables, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("UPDATE profile SET counted_blocks = 100, counted_ns = 100000, "
                             "instructions = 1000000, memory_instructions = 10000, "
                             "uncoalesced_instructions = 10000")
            for (number,) in database.execute("SELECT id FROM profile").fetchall():
                database.executemany("INSERT OR REPLACE INTO coefficient VALUES (?, ?, ?)", [
                    (number, name, value) for name, value in (
                        ("counted.hertz", 1e9), ("counted.ipc", 8.), ("counted.ctas_per_sm", 8.),
                        ("counted.occupancy", 1.), ("counted.issue_slot_utilization", .25),
                        ("device.multiprocessors", 8.), ("peak.instructions_per_cycle", 32.),
                        ("peak.requests_per_cycle", 100.))])

    def test_each_assumption_is_the_models_alone(self):
        self.profile()
        (self.out / "models.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
        before = (self.out / "profiles.db").read_bytes()
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [json.loads(line) for line in (self.out / "papers.jsonl").read_text().splitlines()]
        predicted = {(row["form"], row["programs"]): row["predicted"] for row in rows
                     if "predicted" in row and row["what"] != "expected profit"}
        self.assertGreater(predicted["coalesced", "pointer_chase"], predicted["paper", "pointer_chase"])
        self.assertLess(predicted["one scheduler", "pointer_chase + tea"],
                        .6 * predicted["paper", "pointer_chase + tea"])
        self.assertEqual({claim["id"] for claim in claims.claims_of(rows, "a-run")},
                         {f"papers-{name}" for name in ("ipc-alone", "ipc-pairs", "ipc-coalesced", "pur",
                                                        "ipc-one-scheduler", "mur", "occupancy",
                                                        "profit-halves")})
        self.assertEqual((self.out / "profiles.db").read_bytes(), before)

    def test_a_store_without_counters_is_refused(self):
        self.profile()
        with contextlib.closing(sqlite3.connect(self.out / "profiles.db")) as database, database:
            database.execute("UPDATE profile SET instructions = 0")
            database.execute("DELETE FROM coefficient WHERE name = 'counted.ipc'")
        (self.out / "models.jsonl").write_text("")
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("was counted", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir():
        BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    else:
        del Simulated
    unittest.main()
