#!/usr/bin/env python3
"""Eigen and SQLite stay behind the profiler's headers: only .cpp files of their folder include them. CUPTI's
headers are included in one folder, by it and its tests."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOMES = {
    re.compile(r'#\s*include\s*[<"](?:eigen3/)?(?:unsupported/)?Eigen/'): ROOT / "profiler/models",
    re.compile(r'#\s*include\s*[<"]sqlite3(?:ext)?\.h'): ROOT / "profiler/store",
}
CUPTI = re.compile(r'#\s*include\s*[<"]cupti')
CUPTI_HOMES = (ROOT / "profiler/collect/cupti",)
FOLDERS = ("examples", "interpose", "profiler", "rewriter", "runtime", "tests", "tools")
ENDINGS = (".cpp", ".h", ".cu", ".cuh", ".def")


def strays():
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*")):
        if path.suffix not in ENDINGS or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        for include, home in HOMES.items():
            found = include.search(text)
            if found and (path.parent != home or path.suffix != ".cpp"):
                yield f"{path.relative_to(ROOT)}: {found[0]}"
        if (found := CUPTI.search(text)) and path.parent not in CUPTI_HOMES:
            yield f"{path.relative_to(ROOT)}: {found[0]}"


def main():
    found = list(strays())
    print("\n".join(found) or "Eigen, SQLite and CUPTI are where they belong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
