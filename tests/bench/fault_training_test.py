#!/usr/bin/env python3
"""tools/bench/faults/training.py with its stub, on the simulated device: fault_training_test.py BUILD. No
figure is asserted."""
import pathlib
import sys
import tempfile
import types
from unittest import mock

from measuring import Measuring, unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/faults"
JOB = FOLDER / "train_job.py"
BUILD = None
sys.path.insert(0, str(FOLDER))
import training  # noqa: E402

# train_job.py, but for one loss of the training that another program's faults are beside.
OTHER_LOSS = """import builtins, json, runpy, sys
said = print
def another(text, **options):
    if "--rest" in sys.argv and '"step": 5,' in text:
        text = json.dumps(dict(json.loads(text), loss="0x1p+0"))
    said(text, **options)
builtins.print = another
sys.argv[0] = {job!r}
runpy.run_path({job!r}, run_name="__main__")
"""


class Judged(unittest.TestCase):
    """Without a program."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trainings = training.Trainings.__new__(training.Trainings)
        self.trainings.options = types.SimpleNamespace(out=folder.name)
        self.trainings.expected, self.trainings.seconds = {}, {}
        self.trainings.culprit, self.trainings.environment = "culprit", {}
        self.trainings.places = types.SimpleNamespace(preload="")

    def problem(self, rc, *said, **found):
        child = mock.Mock(err=b"no more", process=mock.Mock(returncode=rc))
        child.said.return_value = [{"step": 1, "loss": "0x1p+0", "ms": 1}, *said]
        return self.trainings.judge("resnet", "work", 0, {"faults": 1, **found}, child)["problem"]

    def test_how_a_training_may_end(self):
        error, reason = {"error": "RuntimeError: no"}, {"reason": "a kernel of its is under way"}
        self.assertEqual(self.problem(3, error, **reason), "")
        self.assertEqual(self.problem(3, error), "it ended, and the log has no reason: RuntimeError: no")
        self.assertEqual(self.problem(1, **reason), "exit code 1:  no more")
        self.assertEqual(self.problem(0, {"digest": "a"}), "")
        self.assertEqual(self.problem(-11, {"digest": "a"}), "exit code -11 behind its last line")

    def fault(self, took, reason=""):
        found = {"faults": 0, "told": 0, "takeovers_ms": []}
        end = {"out": "cudaErrorIllegalAddress", "err": ""}
        with mock.patch.multiple(training, await_standby=lambda *_: True, wait_for=lambda *_: False,
                                 takeover=lambda *_: took, reason_of_end=lambda *_: reason,
                                 Child=mock.Mock(return_value=mock.Mock(**{"finish.return_value": end}))):
            runtime = mock.Mock(**{"status.return_value": {"pid": 1}, "variables.return_value": {}})
            return self.trainings.fault(runtime, found), found

    def test_what_is_no_fault_is_told(self):
        goes_on, found = self.fault({"takeover_ms": 0})
        self.assertEqual((goes_on, found["takeovers_ms"], found.get("problem")), (True, [0], None))
        goes_on, found = self.fault({"takeover_ms": 7}, "a kernel")
        self.assertEqual((goes_on, found["reason"], found.get("problem")), (False, "a kernel", None))
        goes_on, found = self.fault({})
        self.assertFalse(goes_on)
        self.assertEqual(found["problem"], "no takeover after load: cudaErrorIllegalAddress")


class Trained(Measuring):
    script = FOLDER / "training.py"
    always = ("--device", "sim", "--networks", "resnet", "--seconds", "0.5", "--faults", "2",
              "--every", "0.1")

    def setUp(self):
        self.build = BUILD
        super().setUp()

    def test_beside_faults(self):
        out, code = self.run_all("--tries", "1")
        self.assertEqual(code, 0, out)
        quiet, rest, work = self.rows()
        self.assertEqual([row["case"] for row in (quiet, rest, work)], ["quiet", "rest", "work"])
        self.assertEqual((rest["faults"], rest["outlived"], rest["error"]), (2, 2, ""), out)
        self.assertEqual((rest["steps"], len(rest["takeovers_ms"])), (quiet["steps"], 2), out)
        self.assertTrue(rest["identical"] and work["identical"], out)
        self.assertGreater(work["faults"], 0, out)
        if work["error"]:
            self.assertIn("under way", work["reason"], out)
        losses = (self.out / "losses-resnet-rest-0.txt").read_text()
        self.assertEqual(losses, (self.out / "losses-resnet-quiet-0.txt").read_text())
        self.assertEqual(len(losses.splitlines()), quiet["steps"])

    def test_another_loss_is_told(self):
        job = self.out / "job.py"
        job.write_text(OTHER_LOSS.format(job=str(JOB)))
        out, code = self.run_all("--cases", "rest", "--job", job)
        self.assertEqual(code, 1, out)
        self.assertIn("WRONG: resnet rest: loss 5 is 0x1p+0, not ", out)

    def test_a_training_that_fails_is_told(self):
        job = self.out / "job.py"
        job.write_text("raise SystemExit('no weights')\n")
        out, code = self.run_all("--job", job)
        self.assertEqual(code, 1, out)
        self.assertIn("WRONG: resnet quiet: exit code 1:  no weights", out)

    def test_no_case_is_begun_after_the_budget(self):
        out, code = self.run_all("--budget", "1e-9")
        self.assertEqual((code, self.rows()), (1, []), out)

    def test_misuse(self):
        for arguments in (("--cases", "asleep"), ("--networks", "none"),
                          ("--device", "gpu")):
            self.assertEqual(self.run_all(*arguments)[1], 2)

    def test_a_python_that_is_not_there_is_named(self):
        self.always = ()
        out, code = self.run_all("--python", "/nonexistent")
        self.assertEqual(code, 2, out)
        self.assertIn("--python /nonexistent: No such file or directory", out)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
