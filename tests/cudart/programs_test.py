#!/usr/bin/env python3
"""Programs that nvcc built with -cudart shared, on the simulated device under `smt run --device sim`.

    programs_test.py SMT FOLDER CHECKSUMS PROGRAM[:ARGUMENT] ...

Each checks itself. Where it prints a checksum, that must be the one it prints on an H200 with NVIDIA's
runtime (CHECKSUMS: a program and its checksum a line), unless it depends on the size of the device, or on
the argument (PROGRAM~).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 600
CHECKSUM = re.compile(r"^checksum ([0-9a-f]{16})$", re.M)


def native_checksums(path):
    lines = pathlib.Path(path).read_text().splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def run(smt, folder, name, wanted):
    begin = time.monotonic()
    program, *arguments = name.split(":")
    ran = subprocess.run([smt, "run", "--device", "sim", "--", str(pathlib.Path(folder) / program),
                          *arguments], capture_output=True, text=True, timeout=PATIENCE)
    found = CHECKSUM.search(ran.stdout)
    right = ran.returncode == 0 and (wanted is None or (found and found[1] == wanted))
    print(f"{'right' if right else 'WRONG'}  {name:<24} exit {ran.returncode}, "
          f"{time.monotonic() - begin:.1f} s", flush=True)
    if not right:
        print(f"{ran.stdout[-2000:]}{ran.stderr[-2000:]}wanted checksum {wanted}")
    return right


def main():
    smt, folder, checksums, *programs = sys.argv[1:]
    known = native_checksums(checksums)
    with tempfile.TemporaryDirectory() as runtime:
        os.environ["SMT_RUNTIME_DIR"] = runtime
        try:
            right = [run(smt, folder, p.rstrip("~"), None if p.endswith("~") else known[p]) for p in programs]
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE)
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
