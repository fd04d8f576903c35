#!/usr/bin/env python3
"""tools/bench/managed_memory/managed_memory.py, planned, with stubs for the program, and on the simulated
device: managed_memory_test.py [BUILD]. No figure is asserted but those of stubs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/managed_memory/managed_memory.py"
BUILD = None
CASES = ["once-2", "launches-1", "launches-2", "launches-10", "prefetched-2", "prefetched-10", "copied-2",
         "copied-10"]
STEPS = {"allocate_ms": 1, "host_writes_ms": 2, "host_reads_ms": 3, "free_ms": 4}


def bench(*arguments):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.stdout, done.returncode


class Planned(unittest.TestCase):
    def test_a_plan_needs_nothing_and_alternates(self):
        out, code = bench("--plan", "--build", "/nonexistent", "--mib", "64", "--rounds", 2)
        self.assertEqual(code, 0, out)
        self.assertEqual([line.split()[-1] for line in out.splitlines()[:4]],
                         ["native", "smt", "smt", "native"])

    def test_misuse(self):
        for arguments in ((), ("--plan", "--mib", "0"), ("--plan", "--mib", "much")):
            self.assertEqual(bench(*arguments)[1], 2)


class OfFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def cases(self):
        return json.loads((self.out / "managed_memory.json").read_text())["cases"]


class Stubs(OfFolder):
    def run_stub(self, wrong=0, code=0):
        """A program that takes 10 ms on the device natively, and 30 preloaded."""
        line = json.dumps({"case": "once-2", "passes": 2, "device_ms": 10, "wrong_words": wrong, **STEPS})
        stub, preload = self.out / "stub", self.out / "preload.so"
        stub.write_text(f"#!/bin/sh\nline='{line}'\n[ -z \"$LD_PRELOAD\" ] || line=$(echo \"$line\" | "
                        f"sed 's/10, .wrong/30, \"wrong/')\necho \"$line\"\nexit {code}\n")
        os.chmod(stub, 0o755)
        return bench("--out", self.out, "--build", self.out, "--preload", preload, "--program", stub,
                     "--mib", 8, "--rounds", 2)

    def test_smt_by_native(self):
        out, code = self.run_stub()
        self.assertEqual(code, 0, out)
        case, = self.cases()
        self.assertEqual(case["device_times"], 3)
        self.assertEqual(case["whole_times"], (2 + 30 + 3) / (2 + 10 + 3))
        self.assertEqual(case["values"]["smt"]["device_ms"], [30, 30])

    def test_wrong_words_and_failing_programs(self):
        for arguments, said in (({"wrong": 7}, "'wrong_words': 7"), ({"code": 3}, "exit code 3")):
            out, code = self.run_stub(**arguments)
            self.assertEqual(code, 1, out)
            self.assertIn(said, out)

    def test_a_program_that_is_not_built_is_told(self):
        out, code = bench("--out", self.out, "--build", self.out, "--mib", 8)
        self.assertEqual(code, 2, out)
        self.assertIn("build the target bench_managed_memory", out)

    def test_no_run_is_begun_after_the_budget(self):
        out, code = bench("--out", self.out, "--build", self.out, "--budget", 0,
                          "--program", "/bin/false")
        self.assertEqual(code, 1, out)
        self.assertIn("12 runs were not begun", out)


class Simulated(OfFolder):
    def test_each_case_is_right(self):
        if not BUILD:
            self.skipTest("no build was named")
        out, code = bench("--build", BUILD, "--out", self.out, "--device", "sim", "--mib", 1, "--rounds", 1)
        self.assertEqual(code, 0, out)
        self.assertEqual([case["case"] for case in self.cases()], CASES)
        self.assertTrue(all(case["values"]["smt"]["device_ms"][0] > 0 for case in self.cases()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
