#!/usr/bin/env python3
"""tools/bench/watched: claims as report.py takes them; with a build, watched.py on the simulated device:
watched_test.py [BUILD]. No figure is asserted."""
import json
import pathlib
import sys
import threading

from measuring import Measuring, unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "tools/bench"
sys.path[:0] = [str(BENCH), str(BENCH / "watched")]
import claims   # noqa: E402
import readers   # noqa: E402
import report   # noqa: E402
import results_file   # noqa: E402

BUILD = None
BEFORE = {"median": 0.998, "low": 0.99, "high": 1.004}


def row(programs, way, **figures):
    return {"part": "way", "programs": programs, "way": way, "n": 6, "seconds": 1.0, "launches": BEFORE,
            "server_cpu": BEFORE, **figures}


class Claims(unittest.TestCase):
    def test_as_the_report_takes_them(self):
        rows = {(each["programs"], each["way"]): each
                for each in (row(1, "page"), row(1, "nothing"), row(8, "metrics", server_cpu=None))}
        found = list(claims.claims_of(rows, "watched"))
        self.assertEqual([each["id"] for each in found],
                         ["watched-page-1-launches", "watched-page-1-server-cpu",
                          "watched-metrics-8-launches"])
        self.assertEqual(found[0]["baselines"][0]["value"], 0.998)
        self.assertNotIn("baselines", found[2])
        run = {"command": "watched.py", "commit": "0", "machine": "h100-alone", "raw": "nowhere"}
        data = results_file.merged(json.loads(report.DATA.read_text()), claims.HOME, "watched", run, found)
        self.assertEqual(report.mistakes(data), [])


class UnderWay(readers.Reader):
    """Its second request ends after stop() was called."""
    words, a_second = ("-c", "print('http://localhost')"), 1

    def __init__(self, error):
        self.error, self.asked, self.second = error, 0, threading.Event()
        super().__init__(sys.executable, {})

    def ask(self):
        self.asked += 1
        if self.asked > 1:
            self.second.set()
            self.over.wait()
            if self.error:
                raise self.error


class RequestsUnderWay(unittest.TestCase):
    def stopped(self, error):
        reader = UnderWay(error)
        self.addCleanup(reader.end)
        reader.begin()
        reader.second.wait()
        reader.stop()
        return reader

    def test_one_is_counted(self):
        reader = self.stopped(None)
        self.assertEqual((reader.asked, reader.answers, reader.problem), (2, 1, None))

    def test_its_error_is_kept(self):
        self.assertIn("too late", self.stopped(RuntimeError("too late")).problem)


class Simulated(Measuring):
    script = BENCH / "watched/watched.py"
    always = ("--device", "sim", "--seconds", "0.3", "--rounds", "1")

    def setUp(self):
        if not BUILD:
            self.skipTest("no build was named")
        self.build = BUILD
        super().setUp()

    def test_each_way(self):
        out, code = self.run_all("--programs", "1,2")
        self.assertEqual(code, 0, out)
        ways = [(each["programs"], each["way"]) for each in self.rows("way")]
        self.assertEqual(ways, [(count, way) for count in (1, 2) for way in ("metrics", "page", "nothing")])
        for each in self.rows("ratio"):
            self.assertGreater(each["launches"], 0)
            self.assertGreater(each["launches_per_s"], 0)
            if each["way"] != "nothing":
                self.assertGreater(each["answers_per_s"], 0, each)

    def test_a_program_that_does_not_start_is_told(self):
        out, code = self.run_all("--program", "/bin/false", "--programs", "1")
        self.assertEqual(code, 1, out)
        self.assertIn("FAILS: 1 programs: a program does not answer: exit code 1", out)

    def test_no_round_is_begun_after_the_budget(self):
        out, code = self.run_all("--budget", "0.001", "--programs", "1")
        self.assertEqual((code, self.rows()), (1, []), out)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
