#!/usr/bin/env python3
"""Threads of the server are started in one place, runtime/thread/, where nothing that they throw can end the
process."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARTS = re.compile(r"std::j?thread\b(?!::)|std::async\b|\bpthread_create\b|\bthrd_create\b")


def main():
    files = [path for end in ("*.h", "*.cpp") for path in (ROOT / "runtime").rglob(end)]
    assert len(files) > 100, "the server's sources are not where they were"
    place = ROOT / "runtime" / "thread"
    assert any(STARTS.search(path.read_text()) for path in files
               if place in path.parents), "the pattern finds no thread at all"
    strays = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for path in files
              if place not in path.parents
              for number, line in enumerate(path.read_text().splitlines(), 1) if STARTS.search(line)]
    assert not strays, "use runtime/thread/thread.h:\n" + "\n".join(strays)


if __name__ == "__main__":
    main()
