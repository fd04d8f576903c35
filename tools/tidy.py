#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy: tidy.py [--build FOLDER] [--seconds N] --all | --changed | FILE
...

--all      every C++ source of the tree
--changed  what differs from main, newest first: files that are not committed, then those of each commit since
           the merge base with origin/main. Where HEAD is that merge base, as in a clone of main, or there is
           no origin/main: those of the newest 20 commits. SMT_TIDY_BASE=COMMIT in the environment: those
           since that commit
FILE       these

A header is checked by way of one source that includes it: one that is checked anyway, else the source of its
name, else the first that includes it, perhaps through other headers. FOLDER (build) has been configured and
its target generated_headers built; unity builds will do. With --seconds no check begins later than that, and
the last ones may take as long again.

Out: findings, then how many files were checked, and by name those that were not. CUDA sources are left out.
Exit code 1 for a finding, 2 where nothing can be checked.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

PROGRAM = "clang-tidy-22"   # Debian's; other versions find other things
COMMITS = 20
ENDS = (".cpp", ".h")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
IN_UNITY = re.compile(r'^#include "(/[^"]+)"', re.M)
LAUNCHERS = ("ccache", "sccache", "distcc")


class Unusable(Exception):
    """Nothing can be checked; the text says why."""


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Unusable(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def tracked(root):
    names = git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return [name for name in names if name.endswith(ENDS) and (root / name).is_file()]


def changed(root, base):
    """What is changed, newest first, and in words since when."""
    if not base:
        try:
            base = git(root, "merge-base", "HEAD", "origin/main").strip()
        except Unusable:
            base = ""
        if base == git(root, "rev-parse", "HEAD").strip():
            base = ""
    commits = [f"{base}..HEAD"] if base else ["-n", str(COMMITS)]
    names = git(root, "diff", "--name-only", "HEAD").splitlines()
    names += git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    names += git(root, "log", "--first-parent", "-m", "--format=", "--name-only", *commits).splitlines()
    here = set(tracked(root))
    return [name for name in dict.fromkeys(names)
            if name in here], f"since {base[:12]}" if base else f"in the newest {COMMITS} commits"


def commands(build):
    """Source -> entry of a compilation database. A unity build's has files that include the sources."""
    try:
        entries = json.loads((build / "compile_commands.json").read_text())
    except OSError as problem:
        raise Unusable(f"{problem}: configure first, ./bootstrap.sh tidy does") from problem
    found = {}
    for entry in entries:
        words = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
        if os.path.basename(words[0]) in LAUNCHERS:
            words = words[1:]
        sources = [entry["file"]]
        if "/Unity/" in entry["file"]:
            sources = IN_UNITY.findall(pathlib.Path(entry["file"]).read_text())
        for source in sources:
            arguments = [source if word == entry["file"] else word for word in words]
            found.setdefault(source,
                             {"directory": entry["directory"], "file": source, "arguments": arguments})
    return found


class Includes:
    """Which file of the tree includes which, by its text."""

    def __init__(self, root, names):
        self.includers = {}
        for name in names:
            for included in INCLUDE.findall((root / name).read_text()):
                beside = os.path.normpath(os.path.join(os.path.dirname(name), included))
                for possible in dict.fromkeys((included, beside)):
                    self.includers.setdefault(possible, []).append(name)

    def source_of(self, header, usable, preferred):
        """The nearest source that includes it, or None."""
        nearest, seen = [header], {header}
        while nearest:
            around = [name for each in nearest for name in self.includers.get(each, ()) if name not in seen]
            sources = [name for name in around if name in usable]
            if sources:
                twin = os.path.splitext(header)[0] + ".cpp"
                return next((name for name in sources if name in preferred),
                            twin if twin in sources else sources[0])
            seen.update(around)
            nearest = [name for name in dict.fromkeys(around) if name.endswith(".h")]
        return None


class Tidy:
    def __init__(self, root, build):
        self.root, self.build = root, build
        if not shutil.which(PROGRAM):
            raise Unusable(f"no {PROGRAM}: ./bootstrap.sh test installs it")
        entries = commands(build)
        self.place = build / "tidy"
        self.place.mkdir(exist_ok=True)
        (self.place / "compile_commands.json").write_text(json.dumps(list(entries.values()), indent=1))
        self.usable = {os.path.relpath(source, root) for source in entries}
        self.deadline = None

    def sources(self, names):
        """What to run it on for these files, in their order, and the files for which there is nothing."""
        every = tracked(self.root)
        includes = Includes(self.root, every)
        direct = {name for name in names if name in self.usable}
        chosen, without = {}, []
        for name in names:
            source = name if name in direct else includes.source_of(name, self.usable,
                                                                    direct) if name.endswith(".h") else None
            if source:
                chosen.setdefault(source, []).append(name)
            else:
                without.append(name)
        return chosen, without

    def check(self, source):
        """What it finds, empty for nothing; None: no time. The compiler's own warnings are the build's to
        give."""
        left = self.deadline and self.deadline - time.monotonic()
        if left is not None and left <= 0:
            return None
        command = [PROGRAM, "-quiet", "-p", self.place, "--extra-arg=-w", self.root / source]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True,
                                  timeout=left and left + self.seconds)
        except subprocess.TimeoutExpired:
            return None
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def run(self, names, seconds):
        """Exit code."""
        if seconds:
            self.seconds, self.deadline = seconds, time.monotonic() + seconds
        chosen, without = self.sources(names)
        late, wrong = [], []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for source, problem in zip(chosen, pool.map(self.check, chosen)):
                if problem is None:
                    late += chosen[source]
                elif problem:
                    wrong.append(source)
                    print(problem, flush=True)
        print(f"clang-tidy: {len(names) - len(without) - len(late)} of {len(names)} files checked, "
              + (f"findings in {', '.join(wrong)}" if wrong else "no finding"))
        if without:
            print("NOT CHECKED, as no source of this build is or includes them: " + ", ".join(without))
        if late:
            print(f"NOT CHECKED, as {seconds} s were over: " + ", ".join(late))
        return 1 if wrong else 0


def chosen_files(options, root):
    if options.changed:
        names, since = changed(root, os.environ.get("SMT_TIDY_BASE"))
        print(f"clang-tidy: {len(names)} files of C++ changed {since}", flush=True)
        return names
    if options.all:
        return [name for name in tracked(root) if name.endswith(".cpp")]
    for name in options.files:
        if not name.endswith(ENDS) or not os.path.isfile(name):
            raise Unusable(f"{name}: no file of C++")
    return [os.path.relpath(os.path.abspath(name), root) for name in options.files]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=root, help="the tree, if not this one")
    parser.add_argument("--build", type=pathlib.Path, help="a configured build folder (build)")
    parser.add_argument("--seconds", type=float, help="how long checks may begin")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    if options.all + options.changed + bool(options.files) != 1:
        parser.error("one of --all, --changed and files")
    root = options.root.resolve()
    try:
        tidy = Tidy(root, (options.build or root / "build").resolve())
        return tidy.run(chosen_files(options, root), options.seconds)
    except Unusable as problem:
        print(f"NOTHING CHECKED: {problem}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
