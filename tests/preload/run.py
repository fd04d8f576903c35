#!/usr/bin/env python3
"""Runs programs at the same time under smt on the fake driver and looks at what the server saw.

    run.py SMT FAKE_DRIVER PROGRAM[:LAUNCHES] ...

Every program is a tenant of its own. All must exit with 0, the journal must hold LAUNCHES launches of
each, and the server must have nothing left of them: no session, no memory.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 60


def smt(program, *arguments):
    return subprocess.run([program,
                           *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def launches_by_tenant(program):
    counts = {}
    for line in smt(program, "log", "--json").splitlines():
        entry = json.loads(line)
        if entry["kind"] == "launch":
            counts[entry["tenant"]] = counts.get(entry["tenant"], 0) + 1
    return counts


def wait_until_empty(program):
    deadline = time.monotonic() + PATIENCE
    while True:
        status = smt(program, "server", "status")
        if re.search(r"sessions +0 open", status) and re.search(r"memory +0\.0 MiB device, 0\.0 MiB host",
                                                                status):
            return
        if time.monotonic() > deadline:
            raise AssertionError("the server still holds something:\n" + status)
        time.sleep(0.05)


def run(program, tests):
    started = []
    for index, (test, _) in enumerate(tests):
        command = [program, "run", "--tenant", f"tenant{index}", "--", test]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for (test, _), process in zip(tests, started):
        output, _ = process.communicate(timeout=PATIENCE)
        print(f"{pathlib.Path(test).name}: exit code {process.returncode}\n{output}", end="")
        assert process.returncode == 0, f"{test} failed"
    counts = launches_by_tenant(program)
    for index, (test, launches) in enumerate(tests):
        seen = counts.get(f"tenant{index}", 0)
        assert launches is None or seen == launches, f"{test}: {seen} launches in the journal, not {launches}"
    wait_until_empty(program)


def main():
    program, driver, *names = sys.argv[1:]
    tests = []
    for name in names:
        path, _, launches = name.partition(":")
        tests.append((path, int(launches) if launches else None))
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_DRIVER=driver, SMT_REAL_DRIVER="none")
        try:
            run(program, tests)
        except BaseException:
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"-- {log.name}\n{log.read_text()}")
            raise
        finally:
            subprocess.run([program, "server", "stop"], timeout=PATIENCE)


if __name__ == "__main__":
    main()
