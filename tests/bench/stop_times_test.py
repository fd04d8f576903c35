#!/usr/bin/env python3
"""tools/bench/doors/stop_times.py from processes to tables, with stubs, on the simulated device:
stop_times_test.py BUILD. No figure is asserted."""
import pathlib
import re
import sys
import unittest

from measuring import Measuring


class StopTimes(Measuring):
    script = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/doors/stop_times.py"
    always = ("--place", "stub", "--every", "100")

    def test_stops_of_two_kernels(self):
        out, code = self.run_all("--budget", "20")
        self.assertEqual(code, 0, out)
        self.assertEqual([row["name"] for row in self.rows("facts")], ["stub_long", "stub_wide"])
        rows = self.rows("stops")
        self.assertEqual([(row["by"], row["name"]) for row in rows],
                         [(by, name) for by in ("urgent", "stress") for name in ("stub_long", "stub_wide")])
        for row in rows:
            self.assertTrue(row["same_bits"], row)
            self.assertEqual(row["stops"], len(row["all_us"]))
            self.assertEqual((row["block_by"], row["group"]), ("clock", "own"))
            self.assertGreaterEqual(row["block_us"], 20, row)   # what each block takes, by its own clock
            self.assertAlmostEqual(row["beyond_us"]["p50"], row["stop_us"]["p50"] - row["block_us"], places=1)
            self.assertIn("has a door", row["treatment"])
        for group in self.rows("group"):
            self.assertEqual((group["group"], group["kernels"]), ("own", ["stub_long", "stub_wide"]))
            self.assertEqual(group["stops"],
                             sum(row["stops"] for row in rows if row["by"] == group["by"]))
        self.assertEqual({group["by"] for group in self.rows("group")}, {"urgent", "stress"})
        self.assertGreater(sum(row["stops"] for row in rows if row["by"] == "stress"), 10, rows)
        self.assertGreater(sum(row["stops"] for row in rows if row["by"] == "urgent"), 0, rows)

    def test_a_process_that_ends_does_not_end_the_run(self):
        out, code = self.run_all("--budget", "10", "--by", "stress", "--kernels", "stub_ends,none,stub_long")
        self.assertEqual(code, 1, out)
        self.assertIn("at stub_ends it ended: exit code 9", out)
        self.assertRegex(out, "WRONG: none, loop-stress")
        self.assertEqual([row["name"] for row in self.rows("stops")], ["stub_long"])

    def test_a_run_that_is_cut_off_keeps_its_rows_and_ends_its_processes(self):
        process = self.start("--budget", "20", "--by", "stress")
        self.await_lines(process, "stub_long ")
        self.assertEqual(len(self.rows("stops")), 1)
        self.assertRegex(self.cut_off(process), re.compile(r"^kernel .*\nstub_long", re.MULTILINE))


if __name__ == "__main__":
    StopTimes.build = sys.argv.pop(1)
    unittest.main()
