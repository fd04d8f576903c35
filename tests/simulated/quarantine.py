#!/usr/bin/env python3
"""Tenants that are kept apart from others, on the simulated device (runtime/server/quarantine.h).

    quarantine.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import itertools
import re
import subprocess

from place import MANAGED, PATIENCE, Place, finish, run_scenario, wait_for
from takeover import READY, Over, begin_apart, fault, finish_survivor, say

IN_QUARANTINE = "{} is in quarantine"
QUARANTINE = ("--isolation", "quarantine")


def status(place):
    return subprocess.run([place.smt, "status"], env=place.environment, check=True, capture_output=True,
                          text=True, timeout=PATIENCE).stdout


def quarantine_beside_faults(smt, programs):
    """A program in quarantine has kernels that could not be executed again. It goes on with right sums after
    faults of others, and others after its own."""
    with Over(smt, programs) as place:
        standing = place.survivor("standing")
        for turn in range(2):
            place.await_standby()
            program = place.survivor("apart", "back", options=QUARANTINE)
            assert IN_QUARANTINE.format("apart") in status(place), status(place)
            begin_apart(program)
            fault(place)
            say(program, "on")
            finish_survivor(program)
            say(standing, f"turn {turn}")
        place.await_standby()
        begun = place.survivor("shared", "back")
        begin_apart(begun)
        output = place.run("culprit", "misbehave", "wild", options=QUARANTINE)
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        for program in (begun, standing):
            say(program, "on")
            finish_survivor(program)


def suspects_are_kept_apart(smt, programs):
    """Of a fault under which kernels of several tenants were under way it is not known whose it was. These
    are kept apart, so that the next one finds the other at rest, and is known: then that one is cleared."""
    with Over(smt, programs) as place:
        busy = place.survivor("busy", "busy")
        place.await_standby()
        fault(place)
        output = busy.communicate("go\n", timeout=PATIENCE)[0]
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        place.await_standby()
        busy = place.survivor("busy", "back")
        assert IN_QUARANTINE.format("busy") in status(place), status(place)
        begin_apart(busy)
        fault(place)
        say(busy, "on")
        assert "quarantine" not in status(place), status(place)
        culprit = place.survivor("culprit")
        assert IN_QUARANTINE.format("culprit") in status(place), status(place)
        for program in (culprit, busy):
            say(program, "and on")
            finish_survivor(program)


def suspects_of_before(smt, programs):
    """Where no standby was ready the next server knows whose kernels were under way, and a program of such a
    tenant begins when another process could take over."""
    with Over(smt, programs) as place:
        fault(place)
        place.wait_for_line("the next program starts a fresh server")
        culprit = place.survivor("culprit")
        assert re.search(READY, place.log().rsplit("serving", 1)[1]), place.log()
        assert IN_QUARANTINE.format("culprit") in status(place), status(place)
        finish_survivor(culprit)


def quarantine_of_one_alone(smt, programs):
    """Beside programs that have nothing to do it computes as without; they come and go meanwhile."""
    with Over(smt, programs) as place:
        idle = place.survivor("idle")
        place.await_standby()
        program = place.survivor("apart", options=QUARANTINE)
        for turn in range(20):
            say(program, f"turn {turn}")
            if turn % 5 == 0:
                place.run(f"short{turn}", "work", "2", "8")
        for each in (program, idle):
            finish_survivor(each)
        place.run("next", "work", "2", "8")
        wait_for(lambda: "quarantine" not in status(place), lambda: status(place))


def at_work_for_ever(place, tenant, what, options=()):
    """`what`: endless, a small kernel; stoppable, launches that fill the device."""
    program = place.start(tenant, "leaves", what, options=options)
    line = program.stdout.readline()
    assert line == "ready\n", line + program.stdout.read()
    return program


def works(program):
    """It has come, and its calls are answered: each of them needs a turn."""
    say(program, "on")
    finish_survivor(program)


def quarantine_beside_a_poisoned_one(smt, programs):
    """A program has faulted, and lives: its fence has ended it, and the server with it has not. It cannot be
    held back any more. Turns go on beside it, whether it is in quarantine itself or not."""
    for options in ((), QUARANTINE):
        with Over(smt, programs, step_limit=0) as place:
            place.environment.update(SMT_COMPILE=MANAGED, SMT_FENCE_TENANTS="culprit")
            culprit = place.start("culprit", "misbehave", "wild", "lives", options=options,
                                  stdin=subprocess.PIPE)
            output = list(itertools.takewhile(lambda line: line != "lives\n", culprit.stdout))
            assert "CUDA_ERROR_ILLEGAL_ADDRESS\n" in output and culprit.poll() is None, output
            place.await_standby()
            program = at_work_for_ever(place, "apart", "stoppable", QUARANTINE)
            works(place.survivor("beside"))
            program.kill()
            finish(program, -9)
            program = at_work_for_ever(place, "shared", "stoppable")
            works(place.survivor("apart", options=QUARANTINE))
            program.kill()
            finish(program, -9)
            assert "ended by its fence" in place.log() and "is lost" not in place.log(), place.log()
            assert "cannot be kept apart" not in place.log(), place.log()
            finish(culprit)


def quarantine_beside_measured_ones(smt, programs):
    """Programs whose kernels are measured cannot be held back. They lengthen no turn: a program that comes
    gets its own beside two that are always at work."""
    with Over(smt, programs, step_limit=0) as place:
        place.environment["SMT_PROFILE"] = "times"
        there = [at_work_for_ever(place, "shared", "endless"),
                 at_work_for_ever(place, "apart", "endless", QUARANTINE)]
        works(place.survivor("comes", options=QUARANTINE))
        for program in there:
            program.kill()
            finish(program, -9)


def quarantine_needs_a_takeover(smt, programs):
    with Place(smt, programs, one_context=1) as place:
        refused = place.start("apart", "work", "2", "8", options=QUARANTINE)
        output = refused.communicate(timeout=PATIENCE)[0]
        assert refused.returncode != 0, output
        assert "it cannot be in quarantine: the server runs without SMT_KEEPER=takeover" in output, output
        place.run("shared", "work", "2", "8")


if __name__ == "__main__":
    run_scenario(globals())
