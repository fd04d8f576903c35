#!/usr/bin/env python3
"""tools/bench/harness/harness.py: what a child's end is, with a descriptor of its process and without."""
import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from harness import Child, run  # noqa: E402


def descriptors():
    """Whether this Python and this system have them."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        return True
    except (AttributeError, OSError):
        return False


class Ends(unittest.TestCase):
    def check(self):
        done = run(["sh", "-c", "echo said; exit 3"], dict(os.environ))
        self.assertEqual((done["rc"], done["out"]), (3, "said\n"))
        self.assertGreater(done["seconds"], 0)
        self.assertEqual(run(["sleep", "600"], dict(os.environ), timeout=0.1)["rc"], 124)   # timeout's
        # At the bound, which is a second at least, where nothing else ends it.
        child = Child(["sleep", "600"], dict(os.environ), timeout=0, guard=False)
        self.assertEqual(child.finish(0)["rc"], 124)
        self.assertIsNotNone(child.process.returncode)
        again = Child(["true"], dict(os.environ))
        self.assertEqual(again.finish()["rc"], 0)
        self.assertEqual(again.finish()["rc"], 0)   # its end was seen before

    @unittest.skipUnless(descriptors(), "no descriptors of processes")
    def test_with_a_descriptor(self):
        with mock.patch("os.pidfd_open", wraps=os.pidfd_open) as opened:
            self.check()
        self.assertEqual(opened.call_count, 5)

    def test_without_one(self):
        with mock.patch("os.pidfd_open", create=True, side_effect=OSError):
            self.check()

    @unittest.skipUnless(descriptors(), "no descriptors of processes")
    def test_it_is_not_looked_for_every_now_and_then(self):
        child = Child(["sleep", "0.1"], dict(os.environ))
        with mock.patch("time.sleep") as slept:   # as Popen.wait does with a bound
            self.assertEqual(child.finish()["rc"], 0)
        slept.assert_not_called()


if __name__ == "__main__":
    unittest.main(warnings="ignore")   # of pipes that are closed with their Child
