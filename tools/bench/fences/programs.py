"""The programs that `fences.py cost` runs: the examples, or others that a list names. Each kind has
    programs()                 their paths
    command(path)              with arguments
    milliseconds(path, done)   of its kernels, or of the whole program; None: it does not say
    result(path, done)         what has to be the same in every mode; None: it is not right
    wanted(path, found)        the right result; None: not known yet
    clock(path)                what the milliseconds are
"""
import json
import os
import pathlib
import re
import sys

from printed import CHECKSUM, read_checksums

KERNEL = re.compile(r"^kernel (\S+) launches (\d+) mean_ms (\S+)$", re.M)
NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
# Lines whose words tell of time differ from run to run: whole words, also in kernel_time, not in "accurate".
TIMES = re.compile(r"(?<![a-z])(?:(?:run)?times?|seconds?|elapsed|bandwidth|throughput|speed(?:up)?"
                   r"|perf(?:ormance)?|rate|ms|us|ns|sec)(?![a-z])|[GM]B/s|FLOP", re.I)


def executables(options):
    found = sorted(path for path in pathlib.Path(options.programs).glob("*")
                   if path.is_file() and os.access(path, os.X_OK))
    if not found:
        sys.exit(f"{options.programs} has no programs: build the target examples, or say --programs")
    wanted = options.only.split(",") if options.only else None
    return [path for path in found if not wanted or path.name in wanted]


class Examples:
    def __init__(self, options):
        self.options, self.checksums = options, read_checksums(options.checksums)

    def programs(self):
        return executables(self.options)

    def command(self, path):
        return [str(path), "--size", self.options.size, "--iterations", str(self.options.iterations)]

    def milliseconds(self, _, done):
        return sum(float(ms) * int(count) for _, count, ms in KERNEL.findall(done["out"]))

    def result(self, _, done):
        checksum = CHECKSUM.search(done["out"])
        return checksum and checksum[1]

    def wanted(self, path, _):
        return self.checksums.get((path.name, self.options.size), "a line of checksums.txt")

    def clock(self, _):
        return "kernels"


class Listed:
    """Of --list, a JSON file:
        {NAME: {"arguments": {SIZE: [...]}, "time": LINE, "right": TEXT}, ...}
    `arguments` has a list for each --size. `time` begins the lines that print a time of kernels, up to the
    number (a regular expression without groups); without it the time is the whole program's. A run is right
    if the text of `right` (a regular expression; optional) is in what it prints, if it exits with 0, and if
    all that it prints, but for lines that tell of times (TIMES and `time`), is what the first right run
    printed, which is a native one on a GPU. Where nothing else is printed, `right` is needed."""

    def __init__(self, options):
        self.options, self.first = options, {}
        try:
            self.list = json.loads(pathlib.Path(options.list).read_text())
        except (OSError, ValueError) as error:
            sys.exit(f"{options.list}: {error}")
        for name, entry in self.list.items():
            if options.size not in entry.get("arguments", {}):
                sys.exit(f"{options.list}: {name} has no arguments for the size {options.size}")

    def programs(self):
        found = [path for path in executables(self.options) if path.name in self.list]
        if missing := set(self.list) - {path.name for path in found} if not self.options.only else set():
            sys.exit(f"{self.options.programs} has no {', '.join(sorted(missing))}, which "
                     f"{self.options.list} names")
        return found

    def command(self, path):
        return [str(path), *map(str, self.list[path.name]["arguments"][self.options.size])]

    def times(self, path, text):
        line = self.list[path.name].get("time")
        return re.findall(f"{line}\\s*{NUMBER}", text) if line else []

    def milliseconds(self, path, done):
        """Of printed times the unit is the program's."""
        if "time" not in self.list[path.name]:
            return done["seconds"] * 1000
        return sum(map(float, self.times(path, done["out"]))) or None

    def result(self, path, done):
        if not re.search(self.list[path.name].get("right", ""), done["out"]):
            return None
        lines = [line for line in done["out"].splitlines() if not TIMES.search(line)
                 and not self.times(path, line)]
        return lines if "right" in self.list[path.name] or any(map(str.strip, lines)) else None

    def wanted(self, path, found):
        return self.first.setdefault(path.name, found) if found is not None else None

    def clock(self, path):
        return "kernels, as printed" if "time" in self.list[path.name] else "whole program"
