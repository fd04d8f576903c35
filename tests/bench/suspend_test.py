#!/usr/bin/env python3
"""tools/bench/suspend/suspend.py, planned, and on the simulated device: suspend_test.py [BUILD]. No figure is
asserted."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/suspend/suspend.py"
BUILD = None


def bench(*arguments):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.stdout, done.returncode


class Planned(unittest.TestCase):
    def test_a_plan_needs_nothing(self):
        out, code = bench("--plan", "--build", "/nonexistent", "--gib", "1,16", "--allocations", "1,64")
        self.assertEqual(code, 0, out)
        lines = out.splitlines()
        self.assertEqual(len(lines), 5, out)
        self.assertIn("16384 MiB in    64 allocations, 5 times out and in", lines[3])

    def test_allocations_that_would_be_tiny_are_left_out(self):
        self.assertEqual(len(bench("--plan", "--mib", 8, "--allocations", "1,128,129")[0].splitlines()), 3)

    def test_misuse(self):
        for arguments in ((), ("--plan", "--gib", "0"), ("--plan", "--gib", "much")):
            self.assertEqual(bench(*arguments)[1], 2)


class Simulated(unittest.TestCase):
    def setUp(self):
        if not BUILD:
            self.skipTest("no build was named")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_it(self, *arguments):
        return bench("--build", BUILD, "--out", self.out, "--device", "sim", "--mib", 8,
                     "--allocations", "1,16", "--repeats", 2, *arguments)

    def test_each_case(self):
        for keeper in (0, 1):
            out, code = self.run_it("--keeper", keeper)
            self.assertEqual(code, 0, out)
            cases = json.loads((self.out / "suspend.json").read_text())["cases"]
            self.assertEqual([case["allocations"] for case in cases], [1, 16])
            for case in cases:
                self.assertEqual([move["what"] for move in case["moves"]], ["suspend", "resume"] * 2)
                self.assertTrue(all(move["moved_bytes"] >= 8 << 20 and move["took_ms"] > 0 and
                                    move["ideal_ms"] > 0 for move in case["moves"]), case)

    def test_no_case_is_begun_after_the_budget(self):
        out, code = self.run_it("--budget", 0)
        self.assertEqual(code, 1, out)
        self.assertEqual(json.loads((self.out / "suspend.json").read_text())["not_begun"], 2)

    def test_a_program_that_does_not_start_is_told(self):
        out, code = self.run_it("--program", "/bin/false")
        self.assertEqual(code, 1, out)
        self.assertIn("FAILS: the program does not start", out)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
