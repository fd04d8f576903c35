#!/usr/bin/env python3
"""Runs of tools/bench/colocate with stubs in place of networks: colocate_run_test.py [--sim BUILD]

Processes, modes, failures, the budget, rows and tables; with --sim under smt, on the simulated device, and
overlap.py too. No figure is asserted, for the machine may be busy."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tools/bench/colocate"
SHORT = ("--seconds", "0.2", "--longest", "0.2", "--requests", "1", "--lead", "0.05")
ONE = ("services", "--services", "resnet50", "--trainings", "bert-train", "--loads", "0.3")
# Prints what an example does, of iterations that take 10 ms; and takes as long.
EXAMPLE = """#!/usr/bin/env python3
import sys, time
count, begin = int(sys.argv[sys.argv.index("--iterations") + 1]), time.monotonic()
time.sleep(count / 100)
print("times_ms " + " ".join(["10.0"] * count))
print("ends_s " + " ".join(f"{begin + (i + 1) / 100:.6f}" for i in range(count)))
"""
SIM = None   # the build, for what runs under smt


class Run:
    def __init__(self, script, *arguments, environment=None, **settings):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, "-B", FOLDER / script, "--out", out, *arguments],
                                  env={**os.environ, **settings}, capture_output=True, text=True, timeout=250)
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
            self.files = sorted(os.listdir(out))
            self.rows = [json.loads(line) for file in pathlib.Path(out).glob("*.jsonl")
                         for line in file.read_text().splitlines()]

    def phases(self, **wanted):
        return [row for row in self.rows if "experiment" in row and
                all(row.get(key) == value for key, value in wanted.items())]


def colocate(*arguments, **settings):
    return Run("colocate.py", "--stub", "plain", *SHORT, *arguments, **settings)


class Plain(unittest.TestCase):
    def right(self, run):
        self.assertEqual(run.code, 0, run.out[-3000:] + run.err[-3000:])

    def test_services(self):
        run = colocate(*ONE, "--modes", "time-slicing", "mps", "smt:fair", "--rounds", "2")
        self.right(run)
        self.assertEqual(run.files, ["colocate.jsonl", "tables.txt"])
        for mode in ("time-slicing", "mps", "smt:fair"):
            rows = run.phases(mode=mode)
            self.assertEqual([row["round"] for row in rows], [0, 1])
            for row in rows:
                self.assertEqual(len(row["requests"]) + row["unserved"], row["n"])
                self.assertGreater(row["training_rate"], 0)
                self.assertFalse(row["wrong"])
                for arrived, begun, ended in row["requests"]:
                    self.assertTrue(arrived <= begun < ended, row["requests"])
        self.assertEqual({row["mode"] for row in run.phases()},
                         {"alone", "smt-alone", "time-slicing", "mps", "smt:fair"})
        self.assertIn("p99 from arrival, load 0.3", run.out)
        self.assertIn("15 phases, 0 failed, 0 cut, 0 wrong", run.out)

    def test_requests_are_the_same_in_all_modes(self):
        run = colocate(*ONE, "--modes", "time-slicing", "mps")
        self.right(run)
        counts = [(row["rate"], row["n"]) for row in run.phases() if row["load"]]
        self.assertEqual(len(counts), 3)
        self.assertEqual(len(set(counts)), 1, counts)

    def test_trainings(self):
        run = colocate("trainings", "--pairs", "bert-train+bert-train", "--modes", "mps", "smt:fair",
                       "smt:fair,first.SMT_WEIGHT=2")
        self.right(run)
        for mode in ("mps", "smt:fair", "smt:fair,first.SMT_WEIGHT=2"):
            (row,) = run.phases(mode=mode)
            self.assertEqual(row["programs"], {"first": "bert-train", "second": "bert-train"})
            self.assertTrue(all(rate > 0 for rate in row["rates"]), row)
        self.assertIn("sum, smt:fair", run.out)

    def test_a_training_beside_an_example(self):
        with tempfile.TemporaryDirectory() as folder:
            example = pathlib.Path(folder, "nbody")
            example.write_text(EXAMPLE)
            example.chmod(0o755)
            run = colocate("trainings", "--pairs", "bert-train+nbody", "--modes", "mps",
                           "smt:fair,first.SMT_WEIGHT=2", "--examples", folder)
        self.right(run)
        self.assertEqual([row["rates"] for row in run.phases(mode="mps") if min(row["rates"]) <= 0], [])
        (alone,) = run.phases(experiment="trainings", mode="alone", programs={"first": "nbody"})
        self.assertAlmostEqual(alone["rates"][0], 100, delta=1e-3)   # by what it prints
        self.assertIn("bert-train + nbody", run.out)

    def test_closed(self):
        run = colocate("closed", "--closed", "gpt2-graph", "bert-train", "--rounds", "2")
        self.right(run)
        self.assertEqual([row["mode"] for row in run.phases()],
                         ["alone", "smt-alone"] * 2 + ["smt-alone", "alone"] * 2)
        self.assertIn("rate under smt to native", run.out)

    def test_a_phase_that_fails_does_not_end_the_run(self):
        run = colocate("services", "--services", "resnet50", "--loads", "0.3", "--modes", "mps",
                       "time-slicing", COLOCATE_STUB_FAILS="bert-train")
        self.assertEqual(run.code, 1, run.out)
        failed = [row for row in run.phases() if "failed" in row]
        self.assertEqual({"bert-train"}, {row["programs"]["first"] for row in failed})
        (right,) = run.phases(mode="mps", programs={"service": "resnet50", "first": "resnet50-train"})
        self.assertNotIn("failed", right)
        self.assertIn("FAILED: services mps", run.out)

    def test_a_process_that_ends_is_started_again(self):
        with tempfile.TemporaryDirectory() as folder:
            run = colocate(*ONE, "--modes", "time-slicing", "smt:fair", COLOCATE_STUB_ENDS="bert-train",
                           COLOCATE_STUB_MARK=os.path.join(folder, "mark"))
        self.assertEqual(run.code, 1, run.out)
        self.assertEqual(["failed" in row for row in run.phases()],
                         [False, True] + [False] * 5)   # the first that has the training
        self.assertIn("ended with 9", run.phases()[1]["failed"])

    def test_settings_of_what_is_measured_first(self):
        run = colocate(*ONE, "--modes", "smt:slo,service.SMT_P99=p99*2")
        self.right(run)
        calibrated = run.phases(experiment="calibrate")[0]["loop_p99"]
        made = [row["made"] for row in run.rows if "prepared" in row]
        self.assertEqual(len(made), 2)
        wanted = str({"SMT_P99": f"{2 * calibrated:.3f}", "SMT_PRIORITY": "high"})
        self.assertIn(f"service {wanted}", made[1])

    def test_the_budget(self):
        run = colocate(*ONE, "--modes", "mps", "--budget", "0")
        self.right(run)
        self.assertEqual(run.phases(), [])
        self.assertIn("0 phases, 0 failed, 4 cut, 0 wrong", run.out)

    def test_the_plan(self):
        run = colocate(*ONE, "--plan")
        self.right(run)
        self.assertEqual(run.rows, [])
        self.assertRegex(run.out, r"10 phases, about \d+ s; budget 500 s")


class Sim(unittest.TestCase):
    def test_modes_and_policies(self):
        run = Run("colocate.py", "--stub", "sim", "--build", SIM, *SHORT, "services", "trainings",
                  *ONE[1:], "--pairs", "bert-train+bert-train", "--modes", "time-slicing", "smt:priority",
                  "smt:fair,first.SMT_WEIGHT=2", "smt:fifo,server.SMT_JOURNAL=times", "--log")
        self.assertEqual(run.code, 0, run.out[-3000:] + run.err[-3000:])
        self.assertEqual(run.files, ["colocate.jsonl", "kernels-0.txt", "kernels-1.txt", "tables.txt"])
        for row in run.phases():
            self.assertFalse(row["wrong"])   # of smt's memory, that is
        self.assertEqual(len([row for row in run.phases() if row["mode"].startswith("smt:")]), 6)

    def test_a_policy_that_is_not_there(self):
        run = Run("colocate.py", "--stub", "sim", "--build", SIM, *SHORT, *ONE, "--modes", "smt:priority",
                  "smt:none-such")
        self.assertEqual(run.code, 1, run.out)
        (row,) = run.phases(mode="smt:none-such")
        self.assertIn("none-such", row["failed"])
        self.assertNotIn("failed", run.phases(mode="smt:priority")[0])

    def test_overlap(self):
        run = Run("overlap.py", "--sim", "--build", SIM, "--rounds", "2", "--blocks", "4", "--seconds", "1",
                  "--modes", "smt:fifo", "smt:fair", "--at-least", "0")
        self.assertEqual(run.code, 0, run.out + run.err)
        for row in run.rows:
            self.assertTrue(0 <= row["both"] <= min(row["first"], row["second"]) <= row["window"], row)
        self.assertTrue(any(row["both"] > 0 for row in run.rows if row["mode"] == "smt:fifo"), run.rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sim"]:
        SIM = sys.argv[2]
        del Plain
        del sys.argv[1:3]
    else:
        del Sim
    unittest.main()
