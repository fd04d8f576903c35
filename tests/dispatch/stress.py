#!/usr/bin/env python3
"""Runs a program under stress until it has been through so many random schedules: stress.py SMT CHECKSUMS PROGRAM [SCHEDULES [ITERATIONS]]

A schedule is one run of a kernel with a quota table, slice, stops, changes and growth of its own. The result
must be the one that the program has without. Seeds are printed; what a seed does depends on the moment, too.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 120
ITERATIONS = 20


def schedules(smt):
    log = subprocess.run([smt, "log", "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    notes = [json.loads(line)["text"] for line in log.splitlines() if '"kind":"note"' in line]
    return sum(int(found[1]) for note in notes if (found := re.search(r"under stress: (\d+) schedules", note)))


def main():
    smt, checksums, program, *more = sys.argv[1:]
    wanted = int(more[0]) if more else 200
    iterations = int(more[1]) if len(more) > 1 else ITERATIONS
    name = pathlib.Path(program).name
    lines = [line.split() for line in pathlib.Path(checksums).read_text().splitlines() if line and not line.startswith("#")]
    expected = {(row[0], row[1]): row[2] for row in lines}[name, "trivial"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SMT_RUNTIME_DIR"] = folder
        seed = 0
        try:
            while (count := schedules(smt) if seed else 0) < wanted:
                seed += 1
                command = [smt, "run", "--device", "sim", "--stress", str(seed), "--", program, "--size", "trivial",
                           "--iterations", str(iterations)]
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
                found = re.search(r"^checksum (\w+)$", done.stdout, re.MULTILINE)
                print(f"seed {seed}: {found[1] if found else done.stdout}, {count} schedules before", flush=True)
                assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}"
                assert found and found[1] == expected, f"seed {seed}: not {expected}"
                assert seed < 100, f"only {count} schedules: is the program managed at all?"
        except BaseException:
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"-- {log.name}\n{log.read_text()}")
            raise
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE, stdout=subprocess.DEVNULL)
        print(f"{name}: right under {count} schedules")


if __name__ == "__main__":
    main()
