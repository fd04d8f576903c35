#!/usr/bin/env python3
"""tools/bench/fences: programs of a list; with a build, fences.py cost on the simulated device:
fences_test.py [BUILD]. No figure is asserted."""
import json
import pathlib
import sys
import tempfile
import types

from measuring import Measuring, unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/fences"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "harness")]
import programs   # noqa: E402

BUILD = None
ROOT = FOLDER.parents[2]


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def listed(self, only="", size="small", **entries):
        path = self.folder / "list.json"
        path.write_text(json.dumps(entries))
        return programs.Listed(types.SimpleNamespace(list=path, size=size, programs=self.folder, only=only))

    def executable(self, name):
        path = self.folder / name
        path.write_text("")
        path.chmod(0o700)
        return path

    def test_what_is_run(self):
        sort = self.executable("sort")
        kind = self.listed(sort={"arguments": {"small": [21, "-x"]}})
        self.assertEqual(kind.programs(), [sort])   # not list.json
        self.assertEqual(kind.command(sort), [str(sort), "21", "-x"])

    def test_times(self):
        path, text = pathlib.Path("sort"), "Average time: 1.5e-3 (s)\nTotal 7\nAverage time: .25 (s)\nPASS\n"
        kind = self.listed(sort={"arguments": {"small": []}, "time": "Average time:"})
        self.assertAlmostEqual(kind.milliseconds(path, {"out": text, "seconds": 9}), 0.2515)
        self.assertEqual(kind.result(path, {"out": text}), ["Total 7", "PASS"])
        self.assertIsNone(kind.milliseconds(path, {"out": "PASS", "seconds": 9}))
        for line in ("kernel sort mean_ms 0.3", "it took 3 us", "0.2sec", "12 GFLOPS", "Elapsed: 3",
                     "kernel_time 3", "Speedup 1.5", "rate: 7"):
            self.assertEqual(kind.result(path, {"out": f"sum 3\n{line}\nlast bus"}), ["sum 3", "last bus"])
        for line in ("accurate to 3", "separate 3", "perfect 3", "timestep 5: 3.2", "rated 3", "bus 3"):
            self.assertEqual(kind.result(path, {"out": line}), [line])
        self.assertEqual(kind.clock(path), "kernels, as printed")
        kind = self.listed(sort={"arguments": {"small": []}})
        self.assertEqual(kind.milliseconds(path, {"out": text, "seconds": 9}), 9000)
        self.assertEqual(kind.clock(path), "whole program")

    def test_the_right_result_is_the_first_right_one(self):
        path = pathlib.Path("sort")
        kind = self.listed(sort={"arguments": {"small": []}, "right": "^(?s:(?!.*FAIL).*PASS)"})
        for text, result in (("sum 3\nPASS", ["sum 3", "PASS"]), ("PASS\nFAIL", None), ("sum 3", None)):
            self.assertEqual(kind.result(path, {"out": text}), result)
        self.assertIsNone(kind.wanted(path, None))
        self.assertEqual(kind.wanted(path, ["PASS"]), ["PASS"])
        self.assertEqual(kind.wanted(path, ["sum 3", "PASS"]), ["PASS"])

    def test_nothing_to_compare_is_right_by_its_words_alone(self):
        path, entry = pathlib.Path("sort"), {"arguments": {"small": []}}
        for text in ("", "Elapsed: 3\n\n"):
            self.assertIsNone(self.listed(sort=entry).result(path, {"out": text}))
            self.assertIsNotNone(self.listed(sort={**entry, "right": ""}).result(path, {"out": text}))

    def test_misuse(self):
        with self.assertRaisesRegex(SystemExit, "sort has no arguments for the size small"):
            self.listed(sort={"arguments": {"trivial": []}})
        with self.assertRaisesRegex(SystemExit, "has no programs"):
            self.listed(sort={"arguments": {"small": []}}).programs()
        self.executable("another")
        with self.assertRaisesRegex(SystemExit, "has no sort, which .*list.json names"):
            self.listed(sort={"arguments": {"small": []}}).programs()
        (self.folder / "list.json").write_text("{")
        with self.assertRaisesRegex(SystemExit, "list.json: Expecting"):
            programs.Listed(types.SimpleNamespace(list=self.folder / "list.json"))


class Simulated(Measuring):
    script = FOLDER / "fences.py"

    def setUp(self):
        if not BUILD:
            self.skipTest("no build was named")
        self.build = BUILD
        self.always = ("cost", "--device", "sim", "--size", "trivial", "--rounds", "1", "--checksums",
                       str(ROOT / "examples" / "checksums.txt"))
        super().setUp()

    def test_the_examples(self):
        out, code = self.run_all("--programs", f"{BUILD}/examples/shared", "--only", "vector_add,pathfinder")
        self.assertEqual(code, 0, out)
        self.assertEqual(len(self.rows("cost")), 8)   # two programs, two rounds, two modes
        self.assertIn("fence/shared: geometric mean", out)

    def test_a_list(self):
        entry = {"arguments": {"trivial": ["--size", "trivial", "--iterations", "2"]}, "right": "checksum "}
        listed = self.out / "list.json"
        listed.write_text(json.dumps({"vector_add": {**entry, "time": r"kernel \S+ launches \d+ mean_ms"},
                                      "pathfinder": entry}))
        out, code = self.run_all("--programs", f"{BUILD}/examples/shared", "--list", listed)
        self.assertEqual(code, 0, out)
        self.assertEqual({(row["program"], row["mode"], row["clock"]) for row in self.rows("cost")},
                         {(name, mode, clock) for mode in ("shared", "fence") for name, clock in
                          (("vector_add", "kernels, as printed"), ("pathfinder", "whole program"))})
        self.assertTrue(all(row["ok"] and row["kernels_ms"] > 0 for row in self.rows("cost")), out)

    def test_another_result_is_told(self):
        folder = self.out / "programs"
        folder.mkdir()
        program = folder / "says"
        program.write_text("#!/bin/sh\necho sum ${SMT_ISOLATION:-shared}\n")
        program.chmod(0o700)
        listed = self.out / "list.json"
        listed.write_text(json.dumps({"says": {"arguments": {"trivial": []}}}))
        out, code = self.run_all("--programs", folder, "--list", listed)
        self.assertEqual(code, 1, out)
        self.assertIn("says fence: exit code 0, prints:\nsum fence", out)
        self.assertIn("2 wrong results", out)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
