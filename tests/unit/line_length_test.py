#!/usr/bin/env python3
"""No line of a Python, shell, CMake or Markdown file is longer than 110 columns: line_length_test.py [FOLDER]

In Markdown a table's rows, HTML, pictures and a link that is a line of its own may be longer. Pages that
programs write are left out. clang-format has the lines of C++ and CUDA sources (format_test.py)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 110
NAMES = re.compile(r".*\.(?:py|sh|cmake|md)|CMakeLists\.txt")
WRITTEN = {"docs/ptx-instructions.md", "docs/settings.md"}
MAY_BE_LONGER = re.compile(r"\s*(?:\||<|!\[|(?:[-*] )?\[[^]]*\]\([^)]*\)\S*$)")


def files(root):
    """By their paths below the root, without the build's and hidden ones."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if parts == (".ci", "run") or NAMES.fullmatch(path.name) and path.is_file() and not any(
                part.startswith((".", "build")) for part in parts[:-1]):
            yield "/".join(parts), path


def too_long(root):
    for name, path in files(root):
        if name in WRITTEN:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > MOST and not (path.suffix == ".md" and MAY_BE_LONGER.match(line)):
                yield f"{name}:{number}: {len(line)} columns"


def main(root=ROOT):
    count = sum(1 for _ in files(pathlib.Path(root)))
    assert root != ROOT or count > 250, f"only {count} files: they are not where they were"
    found = list(too_long(pathlib.Path(root)))
    print("\n".join(found) or f"{count} files, no line beyond {MOST} columns")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
