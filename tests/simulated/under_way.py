#!/usr/bin/env python3
"""Takeover on the simulated device: programs that have launches under way, or held back, at another one's
fault.

    under_way.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import re

from place import MANAGED, PATIENCE, finish, run_scenario, wait_for
from takeover import Over, begin_apart, ends_because, finish_survivor, say


def held_back_goes_on(smt, programs):
    """A program whose launch the policy holds back, as a more urgent one has the device: the launch is made
    after the takeover."""
    with Over(smt, programs, step_limit=15_000_000) as place:
        place.environment["SMT_POLICY"] = "priority"
        survivor = place.survivor("survivor", options=("--priority", "low"))
        place.await_standby()
        culprit = place.start("culprit", "leaves", "endless", options=("--priority", "high"))
        assert culprit.stdout.readline() == "ready\n"
        survivor.stdin.write("held\n")
        survivor.stdin.flush()
        assert "is lost" not in place.log(), "the fault was too early to see that anything was held back"
        line = survivor.stdout.readline()
        assert line == "held\n", line + survivor.stdout.read()
        # Its launch had come, and is not among those that may have been it.
        assert "in kernel endless of tenant culprit (sim_leaves" in place.log(), place.log()
        assert "It was no kernel of tenant survivor (sim_survivor" in place.log(), place.log()
        culprit.kill()
        finish(culprit, -9)
        finish_survivor(survivor)


def stopped_goes_on(smt, programs):
    """A launch that was stopped half way goes on at the block where it was: each block runs once. And one
    that is kept back behind a more urgent program."""
    with Over(smt, programs, step_limit=15_000_000) as place:
        place.environment.update(SMT_POLICY="priority", SMT_COMPILE=MANAGED)
        survivor = place.survivor("survivor", "long", options=("--priority", "low"))
        place.await_standby()
        culprit = place.start("culprit", "leaves", "endless", options=("--priority", "high"))
        assert culprit.stdout.readline() == "ready\n"
        say(survivor, "on")
        found = re.search(r"(\d+) launches are kept back anew, (\d+) of them half done", place.log())
        assert found and int(found[2]) == 1, place.log()
        assert "in kernel endless of tenant culprit (sim_leaves" in place.log(), place.log()
        culprit.kill()
        finish(culprit, -9)
        finish_survivor(survivor)


def moves_go_on(smt, programs):
    """A copy and a fill that are kept back behind a kernel, all for a more urgent program: they are made
    after the takeover, in their order."""
    with Over(smt, programs, step_limit=15_000_000, doors=1) as place:
        place.environment["SMT_POLICY"] = "priority"
        survivor = place.survivor("survivor", "moves", options=("--priority", "low"))
        place.await_standby()
        culprit = place.start("culprit", "leaves", "endless", options=("--priority", "high"))
        assert culprit.stdout.readline() == "ready\n"
        say(survivor, "on")
        found = re.search(r"(\d+) launches are kept back anew, \d+ of them half done, (\d+) of them fills",
                          place.log())
        assert found and found.groups() == ("3", "2"), place.log()
        culprit.kill()
        finish(culprit, -9)
        finish_survivor(survivor)


def over_is_over(smt, programs, **environment):
    """Launches that are over before one that is held back are not executed again, and that one is executed
    once: with one more, or one less, the numbers are others."""
    with Over(smt, programs, step_limit=15_000_000) as place:
        place.environment.update(SMT_POLICY="priority", **environment)
        survivor = place.survivor("survivor", "several", options=("--priority", "low"))
        place.await_standby()
        begin_apart(survivor)
        culprit = place.start("culprit", "leaves", "endless", options=("--priority", "high"))
        assert culprit.stdout.readline() == "ready\n"
        say(survivor, "one more")
        assert "It was no kernel of tenant survivor (sim_survivor" in place.log(), place.log()
        assert "were executed again" not in place.log(), place.log()
        kept = re.findall(r"survivor, pid \d+\): (\d+) launches are kept back anew, (\d+) of them half done",
                          place.log())
        assert kept == ([("1", "0")] if environment else []), place.log()
        culprit.kill()
        finish(culprit, -9)
        finish_survivor(survivor)


def managed_over_is_over(smt, programs):
    """The same where the dispatcher has the launch that is held back, not its lane."""
    over_is_over(smt, programs, SMT_COMPILE=MANAGED)


def go_astray(culprit):
    """A kernel that is not executed again."""
    output = culprit.communicate("go\n", timeout=PATIENCE)[0]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output


def apart_goes_on(smt, programs, **environment):
    """Launches that were under way are executed again where that comes to the same, with the events behind
    them, by a process that another one could take over from."""
    with Over(smt, programs) as place:
        place.environment.update(environment)
        survivor, culprit = place.survivor("survivor", "apart"), place.survivor("culprit", "astray")
        place.await_standby()
        begin_apart(survivor)
        go_astray(culprit)
        say(survivor, "on")
        assert re.search(r"survivor, pid \d+\): 4 launches and events were executed again", place.log()), \
            place.log()
        say(survivor, "again")
        finish_survivor(survivor)
        place.wait_until_empty()


def managed_apart_goes_on(smt, programs):
    """The same where the kernels are managed."""
    apart_goes_on(smt, programs, SMT_COMPILE=MANAGED)


def not_again(smt, programs, how, reason):
    with Over(smt, programs) as place:
        program, culprit = place.survivor(how, how), place.survivor("culprit", "astray")
        place.await_standby()
        begin_apart(program)
        go_astray(culprit)
        ends_because(place, program, how, f"kernels of it were under way.*again: kernel slow_copy {reason}")


def in_place_ends(smt, programs):
    """A launch that reads what it writes is not executed again."""
    not_again(smt, programs, "in_place", "reads memory that it writes")


def back_ends(smt, programs):
    """Nor is one that reads what a later one writes."""
    not_again(smt, programs, "back", "reads memory that kernel slow_copy behind")


def culprit_again(smt, programs):
    """Where it is not known which launch has faulted, it is executed again as well, once: then it ends its
    program. Others, with nothing under way or with launches that are executed again, go on."""
    with Over(smt, programs) as place:
        idle, survivor = place.survivor("idle"), place.survivor("survivor", "apart")
        culprit = place.survivor("culprit", "beyond")
        place.await_standby()
        begin_apart(survivor)
        output = culprit.communicate("go\n", timeout=PATIENCE)[0]
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        for program in (idle, survivor):
            say(program, "on")
            finish_survivor(program)
        served = re.findall(r"serves from now on, (\d) of 3 sessions", place.log())
        assert served == ["3", "2"], place.log()
        assert "in kernel beyond of tenant culprit" in place.log(), place.log()   # by the second fault


def known_by_the_others(smt, programs):
    """Of two programs with kernels under way one ends, and what the other one had does not fault again: the
    fault counts against the first. Then it is in quarantine, its faults are known at once, and its tenant is
    refused in the end."""
    with Over(smt, programs) as place:
        for turn in range(4):
            survivor = place.survivor(f"survivor{turn}", "apart")
            culprit = place.survivor("culprit", "astray")
            place.await_standby()
            begin_apart(survivor)
            go_astray(culprit)
            say(survivor, "on")
            wait_for(lambda: "the fault was tenant culprit's" in place.log(), place.log)
            finish_survivor(survivor)
        assert place.log().count("kernel astray of tenant culprit (sim_survivor") == 3, place.log()
        refused = place.start("culprit", "work", "2", "8")
        output = refused.communicate(timeout=PATIENCE)[0]
        assert refused.returncode != 0 and "4 times within an hour" in output, output


if __name__ == "__main__":
    run_scenario(globals())
