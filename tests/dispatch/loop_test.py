#!/usr/bin/env python3
"""The loop at moments that stress seldom finds, on the simulated device: loop_test.py SMT PROGRAM"""
import os
import subprocess
import sys
import tempfile

PATIENCE = 120
ALL, NONE, FIRST = "1 " * 11 + "1", "0 " * 11 + "0", "1 " * 8 + "0 0 0 0"
EXPECTED = {
    "placed": f"""\
no stop: runs {ALL}, taken 112, refused 0, verdict yes
ahead of the first: runs {NONE}, taken 112, refused 12, verdict no
ahead of the first, another launch had begun: runs {NONE}, taken 112, refused 12, verdict no
behind a launch that was stopped: runs {NONE}, taken 62, refused 12, verdict none
behind one that has left three: runs {NONE}, taken 109, refused 12, verdict no
behind the first four: runs {FIRST}, taken 112, refused 0, verdict yes
behind none, the first have left: runs {NONE}, taken 112, refused 8, verdict no
""",
    "looks": """\
nothing changes: runs 1 1 1 1, taken 5, refused 0, resident 0
another table with its place: runs 1 1 1 1, taken 5, refused 0, resident 0
its place is gone: runs 1 1 0 0, taken 2, refused 0, resident 0
its place is gone, the number is late: runs 1 1 0 0, taken 2, refused 0, resident 0
its place is gone, and it does not look: runs 1 1 1 0, taken 3, refused 0, resident 0
a stop: runs 1 1 0 0, taken 3, refused 1, resident 0
""",
    "inside": """\
blocks apart, no thread leaves: taken 125, refused 0, taken back from none
blocks free, no thread leaves: taken 125, refused 0, taken back from none
blocks apart, the first block: taken 102, refused 1, taken back from 100
blocks free, the first block: taken 102, refused 1, taken back from 100
blocks apart, the sixth: taken 107, refused 1, taken back from 105
blocks free, the sixth: taken 107, refused 1, taken back from 105
blocks apart, the sixth, of tickets of three: taken 103, refused 1, taken back from 101
blocks free, the sixth, of tickets of three: taken 103, refused 1, taken back from 101
blocks apart, a later row and plane: taken 116, refused 1, taken back from 114
blocks free, a later row and plane: taken 116, refused 1, taken back from 114
blocks apart, likewise, of tickets of four: taken 105, refused 1, taken back from 103
blocks free, likewise, of tickets of four: taken 105, refused 1, taken back from 103
blocks apart, the last: taken 113, refused 1, taken back from 111
blocks free, the last: taken 113, refused 1, taken back from 111
blocks apart, placed: taken 124, refused 0, taken back from 100
one block, placed: taken 124, refused 0, taken back from 100
one block, the tenth: taken 110, refused 0, taken back from 109
"""}


def main():
    smt, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_COMPILE="wait=10")
        try:
            done = subprocess.run([smt, "run", "--device", "sim", "--", program], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE, stdout=subprocess.DEVNULL)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}"
    expected = EXPECTED[os.path.basename(program)]
    assert done.stdout == expected, f"found:\n{done.stdout}not:\n{expected}"


if __name__ == "__main__":
    main()
