"""What tests of measuring scripts have in common: a run of a script, its rows, and a run that is cut off."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 60


class Measuring(unittest.TestCase):
    """`script` is the script's path, which writes its rows to a file of its own name; `build` the build's
    folder; `always` what it is started with each time."""
    script, build, always = None, None, ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def start(self, *arguments):
        command = [sys.executable, "-B", self.script, "--build", self.build, "--out", self.out, *self.always]
        return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def run_all(self, *arguments, **how):
        process = self.start(*arguments, **how)
        return process.communicate(timeout=200)[0], process.returncode

    def rows(self, part=None):
        path = self.out / f"{self.script.stem}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [row for row in map(json.loads, lines) if part in (None, row.get("part"))]

    def await_lines(self, process, pattern, count=1):
        """Until it has printed so many lines that begin so."""
        while count:
            line = process.stdout.readline()
            self.assertTrue(line, "it ended early")
            count -= bool(re.match(pattern, line))

    def cut_off(self, process):
        """What it still prints."""
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)   # its children have this pipe, too
        self.assertEqual(process.returncode, 143, out)
        return out
