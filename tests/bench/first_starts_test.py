#!/usr/bin/env python3
"""tools/bench/managed/first_starts.py on the simulated device: first_starts_test.py BUILD MARKS. No figure is
asserted."""
import pathlib
import sys
import unittest

from measuring import Measuring

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/bench/managed/first_starts.py"
MARKS = None
sys.path.insert(0, str(SCRIPT.parent))
import first_starts  # noqa: E402
import start_trace  # noqa: E402


class FirstStarts(Measuring):
    script = SCRIPT
    always = ("--device", "sim", "--programs", "vector_add,nbody", "--modes", "wait=0", "--iterations", "1")

    def start(self, *arguments, code=0):
        sort = self.out / "sort"   # in place of CUB's, which is not built everywhere
        example = pathlib.Path(self.build).resolve() / "examples/shared/vector_add"
        sort.write_text(f"#!/bin/sh\n{example} --size trivial || exit 4\nexit {code}\n")
        sort.chmod(0o755)
        return super().start("--sort", sort, *arguments)

    def test_a_round_of_both_starts(self):
        out, code = self.run_all("--rounds", "1")
        self.assertEqual(code, 0, out)
        self.assertEqual([(row["start"], row["state"]) for row in self.rows()],
                         [("together", "cold"), ("together", "warm"), ("sort", "cold"), ("sort", "warm")])
        self.assertIn("2 programs at once", out)
        self.assertIn("a CUB sort", out)

    def test_a_program_that_fails_is_wrong_and_has_no_figure(self):
        out, code = self.run_all("--rounds", "1", code=3)
        self.assertEqual(code, 1, out)
        self.assertIn("sort: exit code 3", out)
        self.assertEqual({row["start"] for row in self.rows() if row["wrong"]}, {"sort"})

    def test_no_round_is_begun_that_the_budget_has_no_time_for(self):
        out, code = self.run_all("--rounds", "5000", "--budget", "0.5", "--starts", "together")
        self.assertEqual(code, 0, out)
        rounds = {row["round"] for row in self.rows()}   # as many as this host has time for
        self.assertIn(f"no time is left for round {len(rounds) + 1}\n", out)
        self.assertEqual(rounds, set(range(1, len(rounds) + 1)))

    def test_a_run_that_is_cut_off_has_its_table(self):
        process = self.start("--rounds", "50")
        self.await_lines(process, "round ", 2)
        self.assertIn("2 programs at once", self.cut_off(process))

    def trace(self, *arguments, **how):
        out, code = self.run_all("--trace", "--rounds", "2", "--marks", MARKS, *arguments, **how)
        return out, code, self.rows()

    def test_a_trace_of_a_start(self):
        out, code, rows = self.trace()
        self.assertEqual(code, 0, out)
        self.assertEqual([(row["round"], row["state"]) for row in rows],
                         [(number, state) for number in (1, 2) for state in start_trace.STATES[1:]])
        for row in rows:
            self.assertAlmostEqual(sum(row["parts"].values()), row["ms"], places=3)
            self.assertTrue(all(ms >= 0 for ms in row["parts"].values()), row)
            for part in ("cuInit", "loads", "first launch", "copies, waits", "process"):
                self.assertGreater(row["parts"][part], 0, row)
            self.assertGreater(row["server"]["driver"], 0, row)
            self.assertIn("cuLibraryLoadData", dict(row["server"]["functions"]), row)
            fresh = row["state"] in ("cold", "cached")   # files' times are of some milliseconds
            self.assertEqual(row["seen"]["server is begun"] > -5, fresh, row)
        self.assertRegex(out, r"a start's parts, medians of 2 rounds, ms\n +cold +cached +started +again")
        self.assertIn("from the program's start, ms", out)

    def test_a_trace_without_the_library_has_times_of_the_whole(self):
        out, code, rows = self.trace("--marks", "/nonexistent")
        self.assertEqual(code, 0, out)
        self.assertEqual(len(rows), 8)
        self.assertFalse(any("parts" in row for row in rows))
        self.assertRegex(out, r"in all +\d")

    def test_a_trace_of_a_program_that_fails(self):
        out, code, rows = self.trace(code=3)
        self.assertEqual(code, 1, out)
        self.assertTrue(all("exit code 3" in row["wrong"] for row in rows), rows)

    def test_the_parts_of_a_start(self):
        marks = {"loaded": 2_000_000, "ending": 20_000_000, "calls": [
            ("cuInit", 3_000_000, 5_000_000), ("cuDevicePrimaryCtxRetain", 5_000_000, 6_000_000),
            ("cuLibraryLoadData", 7_000_000, 8_000_000), ("cuLaunchKernel", 8_000_000, 9_000_000),
            ("cuLaunchKernelEx", 9_000_000, 9_500_000), ("cuCtxSynchronize", 9_500_000, 12_000_000),
            ("cuMemFree_v2", 13_000_000, 13_500_000)]}
        parts = start_trace.parts_of(marks, 1_000_000, 24_000_000)
        wanted = {"process": 1, "until the first call": 1, "cuInit": 2, "context": 1, "loads": 1,
                  "first launch": 1, "launches": .5, "copies, waits": 2.5, "memory": .5, "between calls": 2,
                  "behind the last call": 6.5, "exit": 4}
        self.assertEqual({part: ms for part, ms in parts.items() if ms}, wanted)
        self.assertEqual(sum(parts.values()), 23)

    def test_marks_are_of_the_process_with_most_calls(self):
        texts = {"shell": "loaded 1\nending 9\n", "none": "call cuInit 1 2 5\n",
                 "program": "loaded 2\ncall cuInit 3 4 7\ncall cuInit 4 5 7\ncall cuInit 4 5 8\nending 6\n"}
        for name, text in texts.items():
            (self.out / name).write_text(text)
        found = start_trace.read_marks([self.out / name for name in texts])
        self.assertEqual(found, {"loaded": 2, "ending": 6, "calls": [("cuInit", 3, 4), ("cuInit", 4, 5)]})
        self.assertIsNone(start_trace.read_marks([self.out / "none"]))

    def test_ratios_are_of_the_same_round(self):
        self.assertEqual(first_starts.ratios_of({1: 3.0, 2: 4.0, 3: 9.0}, {1: 2.0, 2: 1.0}), [1.5, 4.0])
        self.assertEqual(first_starts.spread([1.5, 4.0, 2.0], 1), "2.0 (1.5, 4.0)")


if __name__ == "__main__":
    FirstStarts.build, MARKS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
