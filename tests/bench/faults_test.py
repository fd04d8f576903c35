#!/usr/bin/env python3
"""tools/bench/faults/faults.py on the simulated device: faults_test.py BUILD. No figure is asserted."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/faults"
SCRIPT = FOLDER / "faults.py"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "harness")]
import promises  # noqa: E402
import row  # noqa: E402
from harness import Lines  # noqa: E402

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
        self.assertEqual(list(states), list(promises.STATES))
        self.assertIn(states["held"]["outcomes"], ({"goes on": 1}, {"not held": 1}), out)
        for state in ("idle", "asking"):
            self.assertEqual(states[state]["outcomes"], {"goes on": 1}, out)
            self.assertEqual(states[state]["takeover_ms"]["n"], 1)
        for state in ("repeatable", "strict", "beside_strict", "quarantine", "beside_quarantine"):
            self.assertEqual(states[state]["outcomes"], {"goes on": 1}, out)
        for state in ("array", "graph"):
            self.assertEqual(states[state]["outcomes"], {"ends": 1}, out)
        self.assertTrue(all(case["new_right"] for case in self.results()["cases"]), out)

    def test_each_kind(self):
        out, code = self.run_all("--states", "idle")
        self.assertEqual(code, 0, out)
        self.assertEqual([case["kind"] for case in self.results()["cases"]], list(promises.KINDS))

    def test_nothing_of_the_server_is_lost(self):
        out, code = self.run_all("--kinds", ",".join(promises.HARMLESS), "--states",
                                 "managed,unmanaged,graph,waiting,printing,starting", "--at-once", "2")
        self.assertEqual(code, 0, out)
        self.assertTrue(all(case["outcome"] == "goes on" for case in self.results()["cases"]), out)
        self.assertEqual(len(self.results()["cases"]), 18)
        self.assertIn("18 runs in", out)

    def test_many_beside_one_fault(self):
        out, code = self.run_all("--kinds", "load", "--together", "--states",
                                 "idle,asking,computing,repeatable,array,starting,held,strict")
        self.assertEqual(code, 0, out)
        cases = {case["state"]: case for case in self.results()["cases"]}
        self.assertEqual(len(cases), 8)
        self.assertEqual({state: case["beside"] for state, case in cases.items() if case["beside"] != 6},
                         {"held": 0})
        self.assertEqual(cases["idle"]["at_s"], cases["strict"]["at_s"])
        self.assertEqual(cases["array"]["outcome"], "ends")

    def test_several_in_each_state(self):
        out, code = self.run_all("--kinds", "memory", "--together", "--each", "2", "--states",
                                 "idle,starting")
        self.assertEqual(code, 0, out)
        states = sorted(case["state"] for case in self.results()["cases"])
        self.assertEqual(states, ["idle", "idle", "starting", "starting"])

    def test_an_endless_kernel(self):
        out, code = self.run_all("--kinds", "endless", "--states", "asking,held,computing")
        self.assertEqual(code, 0, out)
        for state in ("asking", "computing"):
            self.assertEqual(self.results()["states"][state]["outcomes"], {"goes on": 1}, out)
        self.assertEqual(self.run_all("--kinds", "endless", "--keeper", "0")[1], 2)

    def test_the_server_is_killed(self):
        out, code = self.run_all("--kinds", "kill_server", "--states", "idle,asking,computing,array,graph")
        self.assertEqual(code, 0, out)
        states = self.results()["states"]
        self.assertEqual(states["idle"]["outcomes"], {"goes on": 1}, out)
        self.assertEqual(states["array"]["outcomes"], {"ends": 1}, out)
        out, code = self.run_all("--kinds", "kill_server", "--states", "idle", "--keeper", "1")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.results()["states"]["idle"]["outcomes"], {"ends": 1}, out)

    def test_strict_tenants(self):
        """Endless kernels, too, and without a takeover."""
        out, code = self.run_all("--kinds", "trap,endless", "--states", "beside_strict")
        self.assertEqual(code, 0, out)
        out, code = self.run_all("--kinds", "store", "--states", "strict,beside_strict", "--keeper", "0")
        self.assertEqual(code, 0, out)
        for state in ("strict", "beside_strict"):
            self.assertEqual(self.results()["states"][state]["outcomes"], {"goes on": 1}, out)

    def test_quarantine(self):
        """Endless kernels, too."""
        out, code = self.run_all("--kinds", "trap,endless", "--states", "quarantine,beside_quarantine")
        self.assertEqual(code, 0, out)
        self.assertEqual([case["outcome"] for case in self.results()["cases"]], 4 * ["goes on"], out)
        self.assertEqual(self.run_all("--states", "quarantine", "--keeper", "1")[1], 2)

    def test_without_a_takeover_all_end(self):
        out, code = self.run_all("--kinds", "load", "--states", "idle", "--keeper", "0")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.results()["states"]["idle"]["outcomes"], {"ends": 1}, out)

    def test_no_case_is_begun_after_the_budget(self):
        out, code = self.run_all("--kinds", "load", "--budget", "0")
        self.assertEqual(code, 1, out)
        self.assertEqual(self.results()["not_begun"], len(promises.STATES))

    def test_misuse(self):
        for arguments in (("--states", "asleep"), ("--kinds", "rage"), ("--at-once", "0")):
            self.assertEqual(self.run_all(*arguments)[1], 2)


class Judged(unittest.TestCase):
    """Made runs."""

    def test_a_broken_promise_is_marked(self):
        rows = [{"kind": "trap", "state": "idle", "outcome": outcome, "ok": outcome == "goes on"}
                for outcome in ("goes on", "ends")]
        lines = promises.table(rows, "takeover").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("1 goes on, 1 ends   BROKEN", lines[1])
        self.assertNotIn("BROKEN", promises.table(rows[:1], "takeover"))

    def test_promises(self):
        for kind in promises.KINDS:
            for state in promises.STATES:
                for keeper in ("takeover", "1", "0"):
                    self.assertTrue(promises.promised(kind, state, keeper) <= {"goes on", "ends", "not held"})
        self.assertEqual(promises.promised("load", "idle", "takeover"), {"goes on"})
        self.assertEqual(promises.promised("load", "idle", "1"), {"ends"})
        self.assertEqual(promises.promised("kill_server", "strict", "takeover"), {"goes on"})
        self.assertEqual(promises.promised("kill_server", "idle", "takeover"), {"goes on"})
        self.assertEqual(promises.promised("kill_server", "array", "takeover"), {"ends"})
        self.assertEqual(promises.promised("kill_server", "idle", "1"), {"ends"})
        self.assertEqual(promises.promised("memory", "graph", "0"), {"goes on"})

    def row_of(self, outcomes, alone, beside):
        tries = [{"outcome": outcome, "at_s": float(at), "said": ""} for at, outcome in outcomes]
        measured = type("", (), {"lines": Lines(None)})
        return row.judge(measured, tries, {"alone": alone, "beside": beside, "worker_ends": 0})

    def test_faults_in_a_row(self):
        growing = [(at, "faults") for at in (0, 1, 2, 3, 18, 48, 49, 109)]
        refused = [(109, "refused")] * 40
        self.assertEqual(self.row_of(growing + refused, 100, 81), 0)
        self.assertEqual(self.row_of(growing + refused, 100, 79), 1)
        self.assertEqual(self.row_of(growing + refused[:20], 100, 100), 1)   # too seldom refused
        self.assertEqual(self.row_of(growing + refused + [(110, "fails")], 100, 100), 1)
        evenly = [(at, "faults") for at in range(8)]
        self.assertEqual(self.row_of(evenly + refused, 100, 100), 1)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
