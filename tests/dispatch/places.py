#!/usr/bin/env python3
"""The two narrower kinds of stress, on the simulated device: places.py SMT PLAIN MANAGED CONSTRUCT

With one table of quotas after the other and SMT_JOURNAL=mapping, the journal says that every block ran where
the tables said, by what the workers wrote down; with nothing but stops, that launches were stopped half way.
The memory is what PLAIN leaves, both times.
"""
import json
import re
import subprocess
import sys

from stress import PATIENCE, run, server

QUOTAS_ONLY, STOPS_ONLY = 3 << 30, 1 << 31
PLACED = re.compile(r"placed by (\d+) tables of quotas: (\d+) blocks by \d+ workers, (\d+) blocks astray, "
                    r"(\d+) workers at most on a "
                    r"multiprocessor, (\d+) above its quota, (\d+) workers not known")
HALF_WAY = re.compile(r"(\d+) launches stopped half way")
MOST_SEEDS = 30
ITERATIONS = "20"


def found(smt, pattern):
    log = subprocess.run([smt, "log",
                          "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    notes = [json.loads(line)["text"] for line in log.splitlines() if '"kind":"note"' in line]
    return [[int(number) for number in match.groups()] for note in notes if (match := pattern.search(note))]


def repeat(smt, command, expected, kind, pattern, wanted):
    """Until the first numbers of what the journal says come to so many."""
    for seed in range(1, MOST_SEEDS + 1):
        output = run(smt, command, "--stress", str(kind + seed))
        assert output == expected, f"seed {seed}: not {expected}, but {output}"
        rows = found(smt, pattern)
        print(f"seed {seed}: {output.strip()}, {rows}", flush=True)
        if sum(row[0] for row in rows) >= wanted:
            return rows
    raise AssertionError(f"after {MOST_SEEDS} seeds the journal says {rows}")


def main():
    smt, plain, managed, construct = sys.argv[1:]
    with server(smt, SMT_COMPILE="ptx=0", SMT_JOURNAL="mapping"):
        expected = run(smt, [plain, construct, ITERATIONS])
        for tables, blocks, astray, most, above, unknown in repeat(smt, [managed, construct, ITERATIONS],
                                                                   expected, QUOTAS_ONLY, PLACED, 50):
            assert blocks > 0 and most > 0 and astray == above == unknown == 0, \
                f"{astray} of {blocks} blocks astray, {above} above a quota"
        repeat(smt, [managed, construct, ITERATIONS], expected, STOPS_ONLY, HALF_WAY, 50)


if __name__ == "__main__":
    main()
