#!/usr/bin/env python3
"""tools/bench/doors/program_stops.py from processes to its table, with stubs, on the simulated device:
program_stops_test.py BUILD"""
import pathlib
import sys
import time
import unittest

from measuring import PATIENCE, Measuring

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/doors/program_stops.py"
sys.path.insert(0, str(SCRIPT.parent))
from gpu_shares import share_of  # noqa: E402


class ProgramStops(Measuring):
    script, always = SCRIPT, ("--stub",)

    def results(self):
        return {row["model"]: row for row in self.rows("program")}

    def test_each_kind_of_program(self):
        out, code = self.run_all("--stops", "8", "--budget", "120")
        self.assertEqual(code, 1, out)
        found = self.results()
        self.assertEqual({name: row["result"] for name, row in found.items() if name != "ends"},
                         {"right": "same bits", "changing": "not deterministic natively", "wrong": "WRONG",
                          "missing": "missing: a library"}, out)
        self.assertIn("FAILED", found["ends"]["result"])
        self.assertRegex(out, "WRONG: ends: after 1 trials: exit code 9")
        for name in ("right", "changing", "wrong"):
            self.assertGreaterEqual(found[name]["half_way"], 8, found[name])
            self.assertGreaterEqual(found[name]["stops"], found[name]["half_way"])
        self.assertEqual(found["right"]["other_bits"], 0)
        self.assertEqual(found["wrong"]["other_bits"], found["wrong"]["trials"])
        self.assertEqual(len(found["right"]["native"]), 4)
        for name in ("right", "wrong"):   # of a grid of several waves, whose kernel has a door
            share = found[name]["share"]
            self.assertEqual((share["within"], share["one_wave"], share["not_at_all"]), (1, 0, 0), share)
            self.assertEqual(share["longest"][0]["kernel"], "spend")
        self.assertIsNone(found["missing"]["share"])

    def test_right_programs_alone(self):
        out, code = self.run_all("--stops", "8", "--budget", "60", "--programs", "changing,right")
        self.assertEqual(code, 0, out)
        self.assertEqual([row["model"] for row in self.rows("share")], ["changing", "right"])

    def test_programs_are_begun_in_their_order_and_told_one_by_one(self):
        out, code = self.run_all("--stops", "4", "--budget", "60", "--at-once", "1", "--shares", "0",
                                 "--programs", "missing,changing,right")
        self.assertEqual(code, 0, out)
        begun = [row["tenant"].split("-")[0] for row in self.rows("trial")]
        self.assertEqual(list(dict.fromkeys(begun)), ["changing", "right"])
        self.assertEqual([row["model"] for row in self.rows("program")], ["missing", "changing", "right"])
        self.assertEqual(self.rows("share"), [])

    def test_a_program_that_is_never_stopped_is_an_error(self):
        out, code = self.run_all("--stops", "8", "--budget", "26", "--programs", "right", "--without-doors")
        self.assertEqual(code, 1, out)
        found = self.results()["right"]
        self.assertEqual(found["result"], "same bits, NEVER STOPPED")
        self.assertEqual((found["share"]["within"], found["share"]["not_at_all"]), (0, 1), found)
        self.assertEqual(sum(found["share"]["reasons"].values()), 1)

    def test_a_budget_that_is_too_short_is_said(self):
        out, code = self.run_all("--stops", "1000000", "--budget", "26", "--programs", "right")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.results()["right"]["result"], "same bits, too few stops")

    def test_a_run_that_is_cut_off_keeps_its_rows_and_prints_its_table(self):
        process = self.start("--stops", "1000000", "--budget", "300", "--programs", "right,ends")
        end = time.monotonic() + PATIENCE
        while len(self.rows("trial")) < 4 or not self.results():
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(list(self.results()), ["ends"])   # of a program that is over there is a row already
        out = self.cut_off(process)
        self.assertRegex(out, r"right .* same bits, (too few stops|NEVER STOPPED)")   # how far it came
        self.assertGreaterEqual(self.results()["right"]["trials"], 1)

    def test_a_program_that_is_compared_with_nothing_is_an_error(self):
        out, code = self.run_all("--stops", "1", "--budget", "19", "--shares", "0", "--programs", "right")
        self.assertEqual(code, 1, out)
        self.assertRegex(self.results()["right"]["result"], "too few native runs")

    def test_parts_of_gpu_time(self):
        row = {"kernel": "k" * 200, "how": "has a door", "reason": "", "stoppable": True, "gpu_ns": 600,
               "gpu_ns_one_wave": 200}
        held = {"kernel": "h", "how": "unmanaged", "reason": "it prints", "stoppable": False, "gpu_ns": 300,
                "gpu_ns_one_wave": 300}
        share = share_of([row, held, {**held, "reason": "", "gpu_ns": 100}, {"kernel": "untimed"}])
        self.assertEqual((share["within"], share["one_wave"], share["not_at_all"]), (.4, .2, .4))
        self.assertEqual(share["reasons"], {"it prints": .3, "unmanaged": .1})
        self.assertEqual([each["part"] for each in share["longest"]], [.6, .3, .1])
        self.assertIsNone(share_of([{"kernel": "untimed"}]))


if __name__ == "__main__":
    ProgramStops.build = sys.argv.pop(1)
    unittest.main()
