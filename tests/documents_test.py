#!/usr/bin/env python3
"""Every file that a Markdown page of the tree names in backticks or links to exists."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:cpp|h|py|md|sh|txt|api|cmake))`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
BUILT = ("build/",)   # made by the build, so not in the tree


def missing(page):
    text = page.read_text()
    for match in NAMED.finditer(text):
        name = match[1]
        if not name.startswith(BUILT) and not any((place / name).exists() for place in (ROOT, page.parent)):
            yield name
    for match in LINK.finditer(text):
        if not (page.parent / match[1]).exists():
            yield match[1]


def pages():
    for page in ROOT.rglob("*.md"):
        parts = page.relative_to(ROOT).parts
        if not any(part.startswith(".") or part == "build" for part in parts):
            yield page


def main():
    lost = [f"{page.relative_to(ROOT)}: no such file: {name}" for page in pages() for name in missing(page)]
    print("\n".join(lost) or "every file that is named exists")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
