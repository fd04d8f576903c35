#!/usr/bin/env python3
"""tools/bench/managed/first_starts.py on the simulated device: first_starts_test.py BUILD. No figure is
asserted."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/bench/managed/first_starts.py"
BUILD = None
PATIENCE = 60
sys.path.insert(0, str(SCRIPT.parent))
import first_starts  # noqa: E402


class FirstStarts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def start(self, *arguments, code=0):
        sort = self.out / "sort"   # in place of CUB's, which is not built everywhere
        example = pathlib.Path(BUILD).resolve() / "examples/shared/vector_add"
        sort.write_text(f"#!/bin/sh\n{example} --size trivial || exit 4\nexit {code}\n")
        sort.chmod(0o755)
        command = [sys.executable, "-B", SCRIPT, "--build", BUILD, "--device", "sim", "--out", self.out,
                   "--sort", sort, "--programs", "vector_add,nbody", "--modes", "wait=0", "--iterations", "1",
                   *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_all(self, *arguments, **how):
        process = self.start(*arguments, **how)
        return process.communicate(timeout=150)[0], process.returncode

    def rows(self):
        path = self.out / "first_starts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

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
        out, code = self.run_all("--rounds", "50", "--budget", "0.01", "--starts", "together")
        self.assertEqual(code, 0, out)
        self.assertIn("no time is left for round 2", out)
        self.assertEqual({row["round"] for row in self.rows()}, {1})

    def test_a_run_that_is_cut_off_has_its_table(self):
        process, end = self.start("--rounds", "50"), time.monotonic() + PATIENCE
        while len(self.rows()) < 2:
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), end)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 143, out)
        self.assertIn("2 programs at once", out)

    def test_ratios_are_of_the_same_round(self):
        self.assertEqual(first_starts.ratios_of({1: 3.0, 2: 4.0, 3: 9.0}, {1: 2.0, 2: 1.0}), [1.5, 4.0])
        self.assertEqual(first_starts.spread([1.5, 4.0, 2.0], 1), "2.0 (1.5, 4.0)")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
