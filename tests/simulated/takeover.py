#!/usr/bin/env python3
"""Takeover on the simulated device: a fault of one program's kernel, and who goes on.

    takeover.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from place import PATIENCE, Place, finish, runs

READY = r"a standby, process (\d+), is ready to take over"


class Over(Place):
    """A server whose device has one context, with a standby."""

    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, one_context=1, **settings)
        self.environment["SMT_KEEPER"] = "takeover"
        self.standbys = []

    def log(self):
        """Of all servers, in the order in which they were: each takeover begins another log."""
        folder = pathlib.Path(self.folder.name)
        logs = sorted(folder.glob("*.log.*"), reverse=True) + sorted(folder.glob("*.log"))
        return "".join(path.read_text() for path in logs)

    def await_standby(self):
        """The process that is ready, after the ones that were there before."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = [int(pid) for pid in re.findall(READY, self.log())]
            if len(found) > len(self.standbys):
                self.standbys = found
                return found[-1]
            assert time.monotonic() < deadline, "no standby becomes ready:\n" + self.log()
            time.sleep(0.02)

    def survivor(self, tenant, *arguments, options=()):
        program = self.start(tenant, "survivor", *arguments, options=options, stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        return program

    def server_pid(self):
        status = subprocess.run([self.smt, "server", "status"], env=self.environment, check=True,
                                capture_output=True, text=True, timeout=PATIENCE).stdout
        return int(re.search(r"process +(\d+)|pid +(\d+)", status)[0].split()[-1])


def say(program, word):
    """The program works, and answers with the word."""
    program.stdin.write(word + "\n")
    program.stdin.flush()
    line = program.stdout.readline()
    assert line == word + "\n", line + program.stdout.read()


def fault(place, way="wild"):
    output = place.run("culprit", "misbehave", way)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output


def idle_goes_on(smt, programs):
    """An idle program has its memory after another one's fault, and goes on computing."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        fault(place)
        for word in ("once", "twice"):
            say(survivor, word)
        assert survivor.communicate(timeout=PATIENCE)[0] == "CUDA_SUCCESS\n"
        place.wait_for_line(f"process {standby} serves from now on, 1 of 2 sessions")


def main():
    smt, programs, scenario = sys.argv[1:4]
    globals()[scenario](smt, programs)


if __name__ == "__main__":
    main()
