#!/usr/bin/env python3
"""Which room includes headers of which: the table below, and nothing else. An entry that no include needs
fails, too.

A room is a folder of the product with all below it, unless a longer name stands for a part of it. A room
includes rooms that stand above it in the table only, so no rooms include each other. Headers that are
generated count for no room."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREES = ("interpose", "profiler", "rewriter", "runtime", "tools")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)

MAY_INCLUDE = {
    # below everything: no room of the server's or the client's
    "runtime/journal": [],
    "runtime/settings": ["runtime/journal"],
    "runtime/protocol": ["runtime/settings"],
    "runtime/thread": [],
    "runtime/keeper": [],
    "rewriter/device": [],
    "profiler/models": [],
    "rewriter": [],
    "rewriter/ptx": ["rewriter", "rewriter/device"],
    "rewriter/source": ["rewriter", "rewriter/device"],
    "profiler/store": ["profiler/models"],
    "profiler/collect": ["profiler/models", "runtime/protocol", "runtime/settings"],
    # libsmt.so
    "interpose/process": ["runtime/protocol", "runtime/settings"],
    "interpose/capture": ["interpose/process", "runtime/protocol", "runtime/settings"],
    "interpose/transport": ["interpose/capture", "interpose/process", "runtime/protocol", "runtime/settings"],
    "interpose/driver": ["interpose/capture", "interpose/process", "interpose/transport", "runtime/protocol",
                         "runtime/settings"],
    "interpose/entry": ["interpose/driver", "interpose/process", "interpose/transport", "runtime/protocol"],
    # libcudart.so.*, for programs on the simulated device
    "runtime/device/simulated/cudart": ["runtime/protocol", "runtime/settings"],
    # smtd
    "runtime/image": ["rewriter/ptx"],
    "rewriter/machine_code": ["rewriter/device", "runtime/image"],
    "runtime/device": ["rewriter/ptx", "runtime/image", "runtime/journal", "runtime/keeper",
                       "runtime/protocol", "runtime/settings", "runtime/thread"],
    "runtime/schedule": ["profiler/models"],
    "runtime/jit": ["rewriter/device", "rewriter/machine_code", "rewriter/ptx", "rewriter/source",
                    "runtime/image", "runtime/protocol", "runtime/settings", "runtime/thread"],
    "runtime/profiles": ["profiler/collect", "profiler/models", "profiler/store", "runtime/device",
                         "runtime/jit", "runtime/journal",
                         "runtime/schedule", "runtime/settings", "runtime/thread"],
    "runtime/dispatch": ["profiler/models", "profiler/store", "rewriter/device", "runtime/device",
                         "runtime/journal", "runtime/profiles",
                         "runtime/protocol", "runtime/schedule", "runtime/settings", "runtime/thread"],
    "runtime/server/objects": ["runtime/dispatch", "runtime/protocol"],
    "runtime/server/memory": ["rewriter/device", "runtime/device", "runtime/protocol",
                              "runtime/server/objects", "runtime/thread"],
    "runtime/server/code": ["rewriter/device", "runtime/dispatch", "runtime/image", "runtime/jit",
                            "runtime/journal", "runtime/profiles",
                            "runtime/protocol", "runtime/server/memory", "runtime/server/objects",
                            "runtime/settings", "runtime/thread"],
    "runtime/server": ["profiler/collect", "runtime/device", "runtime/dispatch", "runtime/jit",
                       "runtime/journal", "runtime/keeper", "runtime/profiles",
                       "runtime/protocol", "runtime/server/code", "runtime/server/memory",
                       "runtime/server/objects", "runtime/settings",
                       "runtime/thread"],
    "runtime/server/handlers": ["runtime/protocol", "runtime/server", "runtime/server/code",
                                "runtime/server/memory"],
    "runtime/server/handlers/memory": ["runtime/dispatch", "runtime/protocol", "runtime/server",
                                       "runtime/server/code", "runtime/server/handlers",
                                       "runtime/server/memory"],
    "runtime/server/handlers/code": ["rewriter/device", "runtime/dispatch", "runtime/image", "runtime/jit",
                                     "runtime/journal",
                                     "runtime/protocol", "runtime/server", "runtime/server/code",
                                     "runtime/server/handlers",
                                     "runtime/server/memory"],
    "runtime/server/handlers/graph": ["runtime/protocol", "runtime/server", "runtime/server/code",
                                      "runtime/server/handlers",
                                      "runtime/server/handlers/code", "runtime/server/handlers/memory",
                                      "runtime/server/memory"],
    # commands
    "tools": ["profiler/models", "profiler/store", "rewriter/device", "rewriter/machine_code",
              "rewriter/source",
              "runtime/image", "runtime/jit", "runtime/journal",
              "runtime/profiles", "runtime/protocol", "runtime/schedule", "runtime/settings"],
    "tests": [],
    # measurements: programs of their own, of which no room of the product knows
    "tools/bench": ["profiler/collect", "profiler/models", "rewriter/ptx", "runtime/device", "runtime/keeper",
                    "runtime/profiles", "runtime/protocol",
                    "runtime/schedule", "runtime/server/memory", "tests", "tools"],
}


def room_of(path):
    """The longest room that the path lies in; None: it is no part of the product."""
    found = [room for room in MAY_INCLUDE if path.startswith(room + "/")]
    return max(found, key=len, default=None)


def edges():
    for tree in TREES:
        for file in sorted((ROOT / tree).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            source = file.relative_to(ROOT).as_posix()
            for name in INCLUDE.findall(file.read_text()):
                beside = (file.parent / name).resolve()
                target = (name if (ROOT / name).is_file() else beside.relative_to(ROOT).as_posix()
                          if beside.is_file() else None)
                if target is not None:   # else it is generated
                    yield source, target


def main():
    problems, used, count = [], set(), 0
    for source, target in edges():
        count += 1
        rooms = room_of(source), room_of(target)
        if None in rooms:
            problems.append(f"{source}: {target}: a room that MAY_INCLUDE does not have")
        elif rooms[0] != rooms[1]:
            used.add(rooms)
            if rooms[1] not in MAY_INCLUDE[rooms[0]]:
                problems.append(f"{source} includes {target}: {rooms[0]} may not include {rooms[1]}")
    assert count > 1500, f"only {count} includes: the sources are not where they were"
    above = set()
    for room, others in MAY_INCLUDE.items():
        problems += [f"MAY_INCLUDE: {room} includes nothing of {other}" for other in others
                     if (room, other) not in used]
        problems += [f"MAY_INCLUDE: {room} does not stand below {other}, which it may include"
                     for other in others if other not in above]
        above.add(room)
    print("\n".join(problems) or f"{count} includes between {len(MAY_INCLUDE)} rooms")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
