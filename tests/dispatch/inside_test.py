#!/usr/bin/env python3
"""Stops inside blocks under a policy, on the simulated device: inside_test.py SMT SLOW_BLOCKS

A program with blocks of a millisecond runs behind a more urgent one with short requests. Its blocks are begun
anew where they may be and the server is asked to, and only there; results are right.
"""
import json
import os
import subprocess
import sys
import tempfile

PATIENCE = 120
MOST_TRIES = 20


def stops(smt):
    """Of the less urgent program: how many stops, and how many blocks were begun anew."""
    log = subprocess.run([smt, "log", "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    found = [json.loads(line) for line in log.stdout.splitlines() if '"kind":"stopped"' in line]
    found = [entry for entry in found if entry["tenant"] == "slow"]
    return len(found), sum(entry["blocks_begun_anew"] for entry in found)


def side_by_side(smt, program, kernel):
    def start(tenant, what, count, *options):
        return subprocess.Popen([smt, "run", "--device", "sim", "--tenant", tenant, *options, "--",
                                 program, what, str(count)], stdout=subprocess.PIPE, text=True)

    slow = start("slow", kernel, 20)
    urgent = [start("urgent", "requests", 200, "--priority", "high")]
    while slow.poll() is None:   # requests as long as it runs
        if urgent[-1].poll() is not None:
            urgent.append(start("urgent", "requests", 200, "--priority", "high"))
        try:
            slow.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    for each in [slow, *urgent]:
        out, _ = each.communicate(timeout=PATIENCE)
        assert each.returncode == 0 and out == "right\n", f"exit code {each.returncode}: {out}"


def main():
    smt, program = sys.argv[1:]
    for inside, kernel, expected in ((1, "copies", True), (0, "copies", False), (1, "in_place", False)):
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(SMT_RUNTIME_DIR=folder, SMT_CACHE_DIR=f"{folder}/cache",
                              SMT_COMPILE=f"wait=60,inside={inside}", SMT_POLICY="priority")
            try:
                for _ in range(MOST_TRIES):
                    side_by_side(smt, program, kernel)
                    count, anew = stops(smt)
                    if anew if expected else count:
                        break
            finally:
                subprocess.run([smt, "server", "stop"], timeout=PATIENCE, stdout=subprocess.DEVNULL)
        print(f"inside={inside}, {kernel}: {count} stops, {anew} blocks begun anew")
        assert count and (anew > 0) == expected


if __name__ == "__main__":
    main()
