#!/usr/bin/env python3
"""tools/tidy.py in small trees with a planted defect: tidy_test.py (needs clang-tidy-22 and git)"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFECT = "struct Planted {\n    Planted(int value);\n};\n"   # google-explicit-constructor
SOUND = "int sound() { return 1; }\n"
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@localhost",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Tree(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name).resolve()
        self.environment = {**os.environ, **IDENTITY}
        self.environment.pop("SMT_TIDY_BASE", None)
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", "build/\n")
        self.write(".clang-tidy", (ROOT / ".clang-tidy").read_text())
        self.write("runtime/sound.cpp", SOUND)
        self.commit()

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.root, *arguments], check=True, capture_output=True,
                              text=True, env=self.environment).stdout

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a step")

    def configure(self, *unity):
        """A compilation database of all sources; those named are compiled as one."""
        command = "/usr/bin/ccache /usr/bin/g++ -std=c++20 -Wall -Werror -I{} -o {}.o -c {}"
        files = [self.root / name
                 for name in self.git("ls-files", "--cached", "--others", "*.cpp").splitlines()
                 if name not in unity]
        if unity:
            self.write("build/Unity/unity_0_cxx.cxx",
                       "".join(f'#include "{self.root / name}"\n\n' for name in unity))
            files.append(self.root / "build/Unity/unity_0_cxx.cxx")
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root / "build"), "file": str(file),
              "command": command.format(self.root, file, file)} for file in files]))

    def tidy(self, *arguments):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools" / "tidy.py", "--root", self.root,
                               *arguments], cwd=self.root,
                              capture_output=True, text=True, env=self.environment)
        return done.returncode, done.stdout + done.stderr

    def test_a_defect_in_a_change_fails(self):
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.commit()
        self.write("runtime/planted.cpp", DEFECT)
        self.configure()
        for committed in (False, True):
            if committed:
                self.commit()
            status, said = self.tidy("--changed")
            self.assertEqual(status, 1, said)
            self.assertIn("runtime/planted.cpp:2", said)
            self.assertIn("google-explicit-constructor", said)
            self.assertIn("1 of 1 files checked, findings in runtime/planted.cpp", said)

    def test_a_defect_in_a_header_fails_by_a_source_that_includes_it(self):
        self.write("runtime/inner.h", "#pragma once\n")
        self.write("runtime/outer.h", '#pragma once\n#include "runtime/inner.h"\n')
        self.write("runtime/user.cpp", '#include "outer.h"\n')
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.commit()
        self.write("runtime/inner.h", "#pragma once\n" + DEFECT)
        self.configure()
        status, said = self.tidy("--changed")
        self.assertEqual(status, 1, said)
        self.assertIn("runtime/inner.h:3", said)
        self.assertIn("findings in runtime/user.cpp", said)

    def test_a_source_of_a_unity_build_is_checked_by_itself(self):
        self.write("runtime/planted.cpp", DEFECT)
        self.configure("runtime/sound.cpp", "runtime/planted.cpp")
        self.assertEqual(self.tidy("runtime/sound.cpp")[0], 0)
        self.assertEqual(self.tidy("runtime/planted.cpp")[0], 1)
        status, said = self.tidy("--all")
        self.assertEqual(status, 1, said)
        self.assertIn("2 of 2 files checked, findings in runtime/planted.cpp", said)

    def test_what_is_on_main_is_left_alone_on_a_branch(self):
        self.write("runtime/planted.cpp", DEFECT)
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.write("runtime/sound.cpp", SOUND + "\n")
        self.commit()
        self.configure()
        status, said = self.tidy("--changed")
        self.assertEqual(status, 0, said)
        self.assertIn("1 of 1 files checked, no finding", said)

    def test_on_main_the_newest_20_commits_count(self):
        self.write("runtime/planted.cpp", DEFECT)
        self.commit()
        for _ in range(19):
            self.commit()
        self.configure()
        for with_origin in (False, True):   # a clone of main, or of nothing that has one
            if with_origin:
                self.git("update-ref", "refs/remotes/origin/main", "HEAD")
            status, said = self.tidy("--changed")
            self.assertEqual(status, 1, said)
            self.assertIn("1 files of C++ changed in the newest 20 commits", said)
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        status, said = self.tidy("--changed")
        self.assertEqual(status, 0, said)
        self.assertIn("0 files of C++ changed", said)

    def test_what_is_merged_counts_with_its_merge(self):
        self.git("checkout", "-q", "-b", "side")
        self.write("runtime/planted.cpp", DEFECT)
        self.commit()
        self.git("checkout", "-q", "main")
        self.commit()
        self.git("merge", "-q", "--no-ff", "-m", "a merge", "side")
        self.configure()
        self.environment["SMT_TIDY_BASE"] = "HEAD^1"
        status, said = self.tidy("--changed")
        self.assertEqual(status, 1, said)

    def test_what_there_is_no_time_for_is_named(self):
        self.configure()
        status, said = self.tidy("--seconds", "1e-9", "runtime/sound.cpp")
        self.assertEqual(status, 0, said)
        self.assertIn("0 of 1 files checked", said)
        self.assertIn("NOT CHECKED", said.splitlines()[-1])
        self.assertIn("runtime/sound.cpp", said.splitlines()[-1])

    def test_what_the_build_does_not_have_is_named(self):
        self.configure()
        self.write("runtime/absent.cpp", DEFECT)
        self.write("runtime/unused.h", DEFECT)
        status, said = self.tidy("runtime/absent.cpp", "runtime/unused.h", "runtime/sound.cpp")
        self.assertEqual(status, 0, said)
        self.assertIn("1 of 3 files checked", said)
        self.assertRegex(said, "NOT CHECKED.*: runtime/absent.cpp, runtime/unused.h")

    def test_without_a_build_nothing_is_checked(self):
        status, said = self.tidy("--all")
        self.assertEqual(status, 2, said)
        self.assertIn("NOTHING CHECKED", said)


if __name__ == "__main__":
    unittest.main()
