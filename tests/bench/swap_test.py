#!/usr/bin/env python3
"""tools/bench/swap/swap.py, planned, and on the simulated device: swap_test.py [BUILD]. No figure is
asserted."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/swap/swap.py"
JOB = SCRIPT.with_name("torch_job.py")
BUILD = None


def bench(*arguments):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=390)
    return done.stdout, done.returncode


class Planned(unittest.TestCase):
    def test_a_plan_needs_nothing(self):
        out, code = bench("--plan", "--build", "/nonexistent", "--gib", "8,16", "--programs", "2,4")
        self.assertEqual(code, 0, out)
        lines = out.splitlines()
        self.assertEqual(len(lines), 7, out)
        self.assertIn("4 programs of 16384 MiB, room for 1.5, 58368 MiB pinned", lines[3])
        self.assertIn("cells of 8192 MiB", lines[4])

    def test_misuse(self):
        for arguments in ((), ("--plan", "--gib", "0"), ("--plan", "--programs", "two"),
                          ("--plan", "--room", "1"),
                          ("--out", "/nonexistent/out", "--jobs", "torch", "--python", "/bin/false")):
            self.assertEqual(bench(*arguments)[1], 2)


class Simulated(unittest.TestCase):
    def setUp(self):
        if not BUILD:
            self.skipTest("no build was named")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_it(self, *arguments):
        return bench("--build", BUILD, "--out", self.out, "--device", "sim", "--mib", 24, "--programs", 2,
                     "--seconds", 0.3, "--part", 50, "--cells", 2, "--pause", 0.5, *arguments)

    def test_each_case(self):
        out, code = self.run_it()
        self.assertEqual(code, 0, out)
        work, cells = json.loads((self.out / "swap.json").read_text())["cases"]
        self.assertEqual((work["kind"], cells["kind"]), ("work", "cells"))
        self.assertTrue(work["out_bytes"] > 0 and work["switch_ms"] > 0 and work["ideal_ms"] > 0, work)
        self.assertTrue(work["parts_ms"]["copy"] > 0 and work["parts_ms"]["map"] > 0, work)
        self.assertEqual([each["passes"] for each in work["alone"]],
                         [each["passes"] for each in work["together"]])
        self.assertEqual(len(cells["cells_ms"]), 2)
        for row in (work, cells):
            self.assertIn("ms after it asked", "".join(row["moves_log"]))
            self.assertTrue(row["pinned_mib"] > 0 and row["pin_s"] > 0, row)
        self.assertGreater(cells["turns"]["idle"]["out_bytes"], 0)

    def test_jobs_of_pytorch(self):
        out, code = self.run_it("--jobs", "torch", "--piece", 8)
        self.assertEqual(code, 0, out)
        work, cells = json.loads((self.out / "swap.json").read_text())["cases"]
        self.assertEqual([each["checksum"] for each in work["alone"]],
                         [each["checksum"] for each in work["together"]])
        self.assertTrue(work["out_bytes"] > 0 and work["ideal_s"] > 0 and work["jobs"] == "torch", work)
        self.assertGreater(cells["turns"]["idle"]["out_bytes"], 0)

    def test_a_wrong_checksum_is_told(self):
        wrong = self.out / "job.py"
        wrong.write_text("import json, runpy, sys, builtins\n"
                         "said = print\n"
                         "def another(text, **options):\n"
                         "    if sys.argv[2] == 'work' and 'checksum' in text:\n"
                         "        text = json.dumps(dict(json.loads(text), checksum=1))\n"
                         "    said(text, **options)\n"
                         "builtins.print = another\n"
                         f"sys.argv[0] = {str(JOB)!r}\n"
                         f"runpy.run_path({str(JOB)!r}, run_name='__main__')\n")
        out, code = self.run_it("--jobs", "torch", "--job", wrong, "--cells", 0)
        self.assertEqual(code, 1, out)
        self.assertIn("FAILS: words are wrong", out)

    def test_four_programs(self):
        out, code = self.run_it("--programs", 4, "--room", 2.5, "--cells", 0)
        self.assertEqual(code, 0, out)
        work, = json.loads((self.out / "swap.json").read_text())["cases"]
        self.assertEqual(len(work["together"]), 4)
        self.assertTrue(all(each["right"] for each in work["together"]), work)
        self.assertGreaterEqual(work["turns"], 2)   # one may be over before the last one begins

    def test_no_case_is_begun_after_the_budget(self):
        out, code = self.run_it("--budget", 0)
        self.assertEqual(code, 1, out)
        self.assertEqual(json.loads((self.out / "swap.json").read_text())["not_begun"], 2)

    def test_a_program_that_does_not_start_is_told(self):
        out, code = self.run_it("--program", "/bin/false")
        self.assertEqual(code, 1, out)
        self.assertIn("FAILS: ", out)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
