#!/usr/bin/env python3
"""tools/bench/faults/faults.py on the simulated device: faults_test.py BUILD. No figure is asserted."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/faults/faults.py"
BUILD = None


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_all(self, *arguments):
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--build", BUILD, "--out", self.out,
                               "--device", "sim", "--mib", "1", "--repeats", "1", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done.stdout, done.returncode

    def results(self):
        return json.loads((self.out / "faults.json").read_text())

    def test_each_state(self):
        out, code = self.run_all("--kinds", "load")
        self.assertEqual(code, 0, out)
        states = self.results()["states"]
        self.assertEqual(list(states), ["idle", "asking", "held", "computing", "copying", "array", "strict",
                                        "beside_strict"])
        self.assertIn(states["held"]["outcomes"], ({"goes on": 1}, {"not held": 1}), out)
        for state in ("idle", "asking"):
            self.assertEqual(states[state]["outcomes"], {"goes on": 1}, out)
            self.assertEqual(states[state]["takeover_ms"]["n"], 1)
        for state in ("strict", "beside_strict"):
            self.assertEqual(states[state]["outcomes"], {"goes on": 1}, out)
        self.assertEqual(states["array"]["outcomes"], {"ends": 1}, out)
        self.assertTrue(all(case["new_right"] for case in self.results()["cases"]), out)

    def test_each_kind(self):
        out, code = self.run_all("--states", "idle")
        self.assertEqual(code, 0, out)
        self.assertEqual([case["kind"] for case in self.results()["cases"]],
                         ["load", "store", "misaligned", "trap", "endless"])

    def test_an_endless_kernel(self):
        out, code = self.run_all("--kinds", "endless", "--states", "asking,held,computing")
        self.assertEqual(code, 0, out)
        for state in ("asking", "computing"):
            self.assertEqual(self.results()["states"][state]["outcomes"], {"goes on": 1}, out)
        self.assertEqual(self.run_all("--kinds", "endless", "--keeper", "0")[1], 2)

    def test_strict_tenants(self):
        """Endless kernels, too, and without a takeover."""
        out, code = self.run_all("--kinds", "trap,endless", "--states", "beside_strict")
        self.assertEqual(code, 0, out)
        out, code = self.run_all("--kinds", "store", "--states", "strict,beside_strict", "--keeper", "0")
        self.assertEqual(code, 0, out)
        for state in ("strict", "beside_strict"):
            self.assertEqual(self.results()["states"][state]["outcomes"], {"goes on": 1}, out)

    def test_without_a_takeover_all_end(self):
        out, code = self.run_all("--kinds", "load", "--states", "idle", "--keeper", "0")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.results()["states"]["idle"]["outcomes"], {"ends": 1}, out)

    def test_no_case_is_begun_after_the_budget(self):
        out, code = self.run_all("--kinds", "load", "--budget", "0")
        self.assertEqual(code, 1, out)
        self.assertEqual(self.results()["not_begun"], 8)

    def test_misuse(self):
        for arguments in (("--states", "asleep"), ("--kinds", "rage")):
            self.assertEqual(self.run_all(*arguments)[1], 2)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
