#!/usr/bin/env python3
"""tests/gpu/run_all.sh fails when a part fails, and names these parts. Its programs are replaced by small
ones; no GPU."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "gpu" / "run_all.sh"


class RunAll(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(SCRIPT, self.folder / "run_all.sh")
        for name in ("check", "faults", "examples", "unmanaged"):
            self.part(name, 0)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "bench_remoting").symlink_to("/bin/true")

    def part(self, name, status):
        (self.folder / f"{name}.py").write_text(f"import sys\nsys.exit({status})\n")

    def run_all(self, *parts, seconds=60):
        done = subprocess.run(["bash", self.folder / "run_all.sh", self.folder / "out", "commit", *parts],
                              text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env={**os.environ, "SMT_TEST_BUILD": str(self.folder),
                                   "SECONDS_IN_ALL": str(seconds)})
        return done.returncode, done.stdout.splitlines()[-1]

    def test_all_parts_pass(self):
        self.assertEqual(self.run_all()[0], 0)
        self.assertEqual(self.run_all("examples", "unmanaged")[0], 0)

    def test_failed_parts_are_named_and_the_others_run(self):
        self.part("check", 3)    # of the parts check and python
        self.assertEqual(self.run_all(), (1, "run_all: failed: check (exit code 3) python (exit code 3)"))
        self.assertTrue((self.folder / "out" / "faults.txt").exists())

    def test_a_part_without_time_left_is_no_success(self):
        self.assertEqual(self.run_all("faults", seconds=10), (1, "run_all: failed: faults (no time left)"))

    def test_an_unknown_part_is_no_success(self):
        self.assertEqual(self.run_all("fault"), (1, "run_all: failed: fault (no such part)"))


if __name__ == "__main__":
    unittest.main()
