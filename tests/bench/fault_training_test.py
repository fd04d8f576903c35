#!/usr/bin/env python3
"""tools/bench/faults/training.py with its stub, on the simulated device: fault_training_test.py BUILD. No
figure is asserted."""
import pathlib
import sys

from measuring import Measuring, unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/faults"
JOB = FOLDER / "train_job.py"
BUILD = None

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


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
