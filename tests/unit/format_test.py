#!/usr/bin/env python3
"""Every C++ and CUDA source is as .clang-format says, and no line is longer: format_test.py CLANG_FORMAT

clang-format leaves long string literals alone; they are split by hand.
The rewriter's cases are left out: they are input, and their golden files know their lines."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "interpose", "profiler", "rewriter", "runtime", "tests", "tools")
INPUTS = {ROOT / "tests/rewrite/source/cases", ROOT / "tests/rewrite/extract/cases"}
AT_ONCE = 50
COLUMNS = 110


def main(program):
    files = sorted(path for folder in FOLDERS for end in ("h", "cpp", "cu", "cuh")
                   for path in (ROOT / folder).rglob("*." + end)
                   if not INPUTS.intersection(path.parents))
    assert len(files) > 900, f"only {len(files)} sources: they are not where they were"
    wrong = []
    for start in range(0, len(files), AT_ONCE):
        done = subprocess.run([program, "--dry-run", "-Werror", *files[start:start + AT_ONCE]],
                              capture_output=True, text=True)
        wrong += [line for line in done.stderr.splitlines() if ": error:" in line]
        assert done.returncode == 0 or wrong, done.stderr
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > COLUMNS:
                wrong.append(f"{path}:{number}: {len(line)} columns, {COLUMNS} at most")
    print("\n".join(wrong[:40]) or f"{len(files)} files")
    if wrong:
        print(f"{len(wrong)} places; clang-format-22 -i mends all but long literals")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
