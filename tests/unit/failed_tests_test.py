#!/usr/bin/env python3
"""tests/failed_tests.py on what ctest writes of a small project: failed_tests_test.py CMAKE CTEST"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "failed_tests.py"
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(few NONE)
enable_testing()
add_test(NAME "right" COMMAND true)
add_test(NAME "wrong: always" COMMAND sh -c "echo a defect; exit 1")
add_test(NAME "wrong once" COMMAND sh -c "echo of old; test -f again || { touch again; exit 1; }")
add_test(NAME "wrong, then left out" COMMAND sh -c "test -f left && exit 77; touch left; exit 1")
set_tests_properties("wrong, then left out" PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME "wrong: not there" COMMAND ${CMAKE_BINARY_DIR}/none)
add_test(NAME "left out" COMMAND sh -c "exit 77")
set_tests_properties("left out" PROPERTIES SKIP_RETURN_CODE 77)
"""
CMAKE, CTEST = sys.argv[1:3]


def summary(*reports):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *reports], capture_output=True, text=True)
    return done.returncode, done.stdout


class FailedTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.folder = pathlib.Path(place.name)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)
        subprocess.run([CMAKE, "-S", cls.folder, "-B", cls.folder / "build"], check=True, capture_output=True)
        for report, options in (("first", []), ("again", ["--rerun-failed"])):
            subprocess.run([CTEST, *options, "--output-junit", cls.folder / report], capture_output=True,
                           cwd=cls.folder / "build")

    def test_what_passes_again_is_told_and_is_no_failure(self):
        status, text = summary(self.folder / "first", self.folder / "again")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"passed when it ran again alone: wrong once\n.*\n   of old\n")
        self.assertRegex(text, r"== failed: wrong: always\n.*\n   a defect\n")
        self.assertIn("== failed: wrong, then left out\n", text)
        self.assertIn("== failed: wrong: not there\n", text)
        self.assertIn("== skipped: left out\n", text)
        self.assertNotIn("right", text)

    def test_without_a_second_run_all_have_failed(self):
        for reports in ([], [self.folder / "none"]):
            status, text = summary(self.folder / "first", *reports)
            self.assertEqual(status, 1)
            self.assertEqual(text.count("== failed: "), 4)

    def test_what_a_sanitizer_has_seen_is_not_run_again(self):
        self.assertEqual(summary("--run-again", self.folder / "first")[0], 0)
        seen = self.folder / "seen"
        seen.write_text((self.folder / "first").read_text().replace("a defect", "ERROR: AddressSanitizer: x"))
        self.assertEqual(summary("--run-again", seen)[0], 1)

    def test_many_failures_are_not_run_again(self):
        many = self.folder / "many"
        case = '<testcase name="wrong %d" status="fail"><failure message=""/></testcase>'
        many.write_text("<testsuite>" + "".join(case % number for number in range(9)) + "</testsuite>")
        self.assertEqual(summary("--run-again", many)[0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
