#!/usr/bin/env python3
"""tools/bench/faults/cost.py: ratios by hand; with a build, on the simulated device: takeover_cost_test.py
[BUILD]. No figure is asserted."""
import json
import pathlib
import sys

from measuring import Measuring, unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/faults"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "harness")]
import cost   # noqa: E402
from harness import Lines   # noqa: E402

BUILD = None


class Ratios(unittest.TestCase):
    def measured(self, figure, *rounds):
        """Values of each round: those of the server without a takeover, those of the other one."""
        made = cost.Cost.__new__(cost.Cost)
        made.lines, made.sides = Lines(None), ("off", "takeover")
        for number, sides in enumerate(rounds):
            for side, values in zip(made.sides, sides):
                for value in values:
                    made.add(side, number, **{figure: value})
        return made.ratio(figure)

    def test_of_medians_and_of_rounds(self):
        found = self.measured("program_s", ([9], [1]), ([1.0, 1.2], [1.1, 1.1]), ([1.0], [1.5]))
        self.assertEqual((found["off"], found["takeover"], found["ratio"]), (1.0, 1.1, 1.1))
        self.assertEqual((found["low"], found["high"], found["n"], found["rounds"]), (1.0, 1.5, 3, 2))

    def test_of_rates_as_time(self):
        self.assertEqual(self.measured("pinned_to_1MiB_GBps", ([], []), ([50], [40]))["ratio"], 1.25)

    def test_of_one_side_alone(self):
        self.assertIsNone(self.measured("program_s", ([], []), ([1], [])))
        self.assertIsNone(self.measured("program_s", ([1], [1])))   # the round that is not counted
        self.assertIsNone(self.measured("program_s", ([], []), ([1], []), ([], [1])))


class Simulated(Measuring):
    script = FOLDER / "cost.py"
    always = ("--device", "sim", "--rounds", "1", "--repeats", "1", "--startups", "1")

    def setUp(self):
        if not BUILD:
            self.skipTest("no build was named")
        self.build = BUILD
        super().setUp()

    def test_both_servers(self):
        out, code = self.run_all()
        self.assertEqual(code, 0, out)
        found = json.loads((self.out / "cost.json").read_text())
        figures = {row["figure"]: row for row in found["ratios"]}
        for name in ("launch_sync_us", "one_thread_launches_per_s", "malloc_free_64MiB_us", "program_s",
                     *(f"{kind}_{way}_{size}_GBps" for kind in ("pageable", "pinned")
                       for way in ("to", "from") for size in ("4KiB", "1MiB"))):
            self.assertTrue(figures[name]["off"] > 0 and figures[name]["takeover"] > 0, out)
        self.assertEqual({row["rounds"] for row in found["ratios"]}, {1})
        for process in ("server", "standby", "keeper"):
            self.assertGreater(found["memory_mib"][f"{process}_pss_mib"]["takeover"], 0)
        self.assertNotIn("off", found["memory_mib"]["standby_pss_mib"])

    def test_both_servers_in_turns(self):
        out, code = self.run_all("--in-turns", "malloc", "--rounds", "2")
        self.assertEqual(code, 0, out)
        figures = {row["figure"]: row for row in json.loads((self.out / "cost.json").read_text())["ratios"]}
        self.assertEqual({row["rounds"] for row in figures.values()}, {2})
        self.assertLessEqual({"malloc_free_64MiB_us", "program_s"}, set(figures))

    def test_what_turns_cost(self):
        out, code = self.run_all("--of", "turns")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"figure +off +turns +ratio")

    def test_a_program_that_fails_is_told(self):
        out, code = self.run_all("--bench", "/bin/false")
        self.assertEqual(code, 1, out)
        self.assertIn("WRONG: off: startup: exit code 1", out)

    def test_an_example_that_fails_is_told(self):
        out, code = self.run_all("--example", "none", "--rounds", "0")
        self.assertEqual(code, 1, out)
        self.assertRegex(out, "WRONG: off: none: exit code (?!0)")

    def test_no_round_is_begun_after_the_budget(self):
        out, code = self.run_all("--budget", "1e-9")
        self.assertEqual((code, self.rows()), (1, []), out)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
