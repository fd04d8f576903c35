#!/usr/bin/env python3
"""Each script of tools/bench and tests/gpu finds its modules and prints its usage; no GPU, no build."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("tests/gpu", "tools/bench")
PROGRAMS = ROOT / "tests/gpu/python"   # they need the libraries that they use


def scripts():
    """Those that can be started with --help."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            parses = any(words in text for words in ("argparse.ArgumentParser", "parser_of(__doc__"))
            if PROGRAMS not in path.parents and parses and '__name__ == "__main__"' in text:
                yield path


class ScriptsStart(unittest.TestCase):
    def test_each_script_prints_its_usage(self):
        found = list(scripts())
        self.assertGreater(len(found), 12, "the scripts are not where they were")
        for path in found:
            with self.subTest(path.relative_to(ROOT)):
                done = subprocess.run([sys.executable, "-B", path, "--help"], capture_output=True,
                                      text=True, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.startswith(f"usage: {path.name}"), done.stdout[:200])


if __name__ == "__main__":
    unittest.main()
