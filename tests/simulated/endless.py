#!/usr/bin/env python3
"""Kernels that do not end, of tenants with a limit (smt run --kernel-limit), on the simulated device.

    endless.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import re
import signal
import subprocess
import time

from place import MANAGED, PATIENCE, Place, run_scenario
from takeover import Over, finish_survivor, say

LIMIT = ("--kernel-limit", "1")
# As programs' kernels are launched: blocks, SMT_COMPILE, items of SMT_SIM.
FORMS = {"unmanaged": (1, "ptx=0", {}),
         "managed": (64, MANAGED, {}),
         "door": (64, "ptx=0", {"doors": 1})}
ROOM_LEFT = {"unmanaged": 1, "managed": 5, "door": 5}   # blocks with which the device is not full


def endless(place, tenant, blocks, *how, options=LIMIT):
    program = place.start(tenant, "endless", str(blocks), *how, options=options, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    assert line == "ready\n", line + program.stdout.read()
    return program


def is_ended(program):
    """It has got the error for good. libsmt's line about it may be among the output."""
    lines = []
    while not lines or lines[-1] not in ("over\n", ""):
        lines.append(program.stdout.readline())
    assert "CUDA_ERROR_LAUNCH_TIMEOUT\n" in lines and lines[-1] == "over\n", lines
    assert any("has run for" in line and "kernel waits of tenant" in line for line in lines), lines
    finish_endless(program)


def goes_on(program):
    assert program.stdout.readline() == "CUDA_SUCCESS\n"
    assert program.stdout.readline() == "over\n"
    finish_endless(program)


def finish_endless(program):
    output = program.communicate("\n", timeout=PATIENCE)[0]
    assert program.returncode == 0, output


def place_for(smt, programs, form, kind=Over, **settings):
    blocks, compile_, items = FORMS[form]
    place = kind(smt, programs, grace=50, sms=4, **items, **settings)
    place.environment["SMT_COMPILE"] = compile_
    return place, blocks


def beside(smt, programs, form):
    """Programs that are idle, that call, and that compute beside it go on with the right bits in the process
    that takes over."""
    place, _ = place_for(smt, programs, form)
    with place:
        idle, busy = (place.survivor(name) for name in ("idle", "busy"))
        standby = place.await_standby()
        culprit = endless(place, "culprit", ROOM_LEFT[form])
        turns = 0
        while "serves from now on" not in place.log():
            say(busy, f"turn {turns}")
            turns += 1
        is_ended(culprit)
        for program in (busy, idle):
            say(program, "on")
            finish_survivor(program)
        place.wait_for_line(f"process {standby} serves from now on, 2 of 2 sessions")
        assert place.server_pid() == standby
        log = place.log()
        assert re.search(r"the shared context is given up: CUDA_ERROR_LAUNCH_TIMEOUT \(702\): kernel waits "
                         r"of tenant culprit \(sim_endless, pid \d+\) has run for [0-9.]+ s without progress",
                         log)
        place.run("next", "work", "2", "8")


def behind(smt, programs, form):
    """A program that is held back behind it, as it is more urgent, makes its launch afterwards."""
    place, blocks = place_for(smt, programs, form)
    with place:
        place.environment["SMT_POLICY"] = "priority"
        held, idle = (place.survivor(name, options=("--priority", "low")) for name in ("held", "idle"))
        place.await_standby()
        culprit = endless(place, "culprit", blocks, options=(*LIMIT, "--priority", "high"))
        say(held, "held")  # it is answered when its launches are over
        place.wait_for_line("serves from now on, 2 of 2 sessions")
        is_ended(culprit)
        for program in (held, idle):
            say(program, "on")
            finish_survivor(program)


def stopped(smt, programs, form):
    """Its blocks end when it is told to stop: no other program notices anything."""
    place, blocks = place_for(smt, programs, form)
    with place:
        idle, busy = (place.survivor(name) for name in ("idle", "busy"))
        place.await_standby()
        server = place.server_pid()
        culprit = endless(place, "culprit", blocks, "released", options=("--kernel-limit", "4"))
        while "has run for" not in place.log():
            say(busy, "turn")
        is_ended(culprit)
        place.wait_for_line("it has ended after its last blocks, and other programs were left alone")
        for program in (busy, idle):
            say(program, "on")
            finish_survivor(program)
        assert place.server_pid() == server and "given up" not in place.log()


def apart(smt, programs, form):
    """A device that can end one program's work needs no standby."""
    place, blocks = place_for(smt, programs, form, kind=Place)
    with place:
        culprit = endless(place, "culprit", blocks)
        other = endless(place, "other", blocks, "stepwise", options=())
        is_ended(culprit)
        place.wait_for_line("the device ends its tenant's work, and other programs are left alone")
        goes_on(other)
        place.run("next", "work", "2", "8")
        place.wait_until_empty()


def stepwise(smt, programs, form):
    """A launch that takes longer than the limit, and whose blocks do not, is left alone; likewise an
    unmanaged launch below the limit."""
    place, _ = place_for(smt, programs, form)
    blocks, limit = (20, "60") if form == "unmanaged" else (100, "6")
    with place:
        goes_on(endless(place, "steps", blocks, "stepwise", options=("--kernel-limit", limit)))
        assert "has run for" not in place.log(), place.log()


def held_back(smt, programs, form):
    """A launch that the policy holds back for longer than the limit is left alone; so is the one in front."""
    place, blocks = place_for(smt, programs, form)
    with place:
        place.environment["SMT_POLICY"] = "priority"
        urgent = endless(place, "urgent", blocks, "gated", options=("--priority", "high"))
        held = endless(place, "held", blocks, "held", options=(*LIMIT, "--priority", "low"))
        time.sleep(4)  # four times the limit
        urgent.stdin.write("\n")
        urgent.stdin.flush()
        goes_on(urgent)
        goes_on(held)
        assert "has run for" not in place.log(), place.log()


def all_forms(scenario):
    return {f"{scenario.__name__}_{form}": lambda smt, programs, form=form: scenario(smt, programs, form)
            for form in FORMS}


def refused(smt, programs):
    """Without a takeover a limit is refused, with what to set; for tenants with a target the server's limit
    does not count."""
    with Place(smt, programs, one_context=1) as place:
        program = place.start("limited", "work", "2", "8", options=LIMIT)
        output = program.communicate(timeout=PATIENCE)[0]
        assert program.returncode != 0 and "its kernels cannot have a limit of 1 s" in output, output
        assert "SMT_KEEPER=takeover" in output, output
        place.run("other", "work", "2", "8")
    with Place(smt, programs, one_context=1) as place:
        place.environment["SMT_LIMITS"] = "kernel=7"
        output = place.start("limited", "work", "2", "8").communicate(timeout=PATIENCE)[0]
        assert "its kernels cannot have a limit of 7 s" in output, output
        place.run("service", "work", "2", "8", options=("--p99", "8ms"))


def for_all(smt, programs):
    """The server's limit for all tenants, of which the shorter one counts."""
    with Place(smt, programs, grace=50) as place:
        place.environment["SMT_LIMITS"] = "kernel=1"
        is_ended(endless(place, "culprit", 1, options=("--kernel-limit", "3600")))
        is_ended(endless(place, "another", 1, options=()))


def again_and_again(smt, programs):
    """A tenant whose kernels do not end is refused for a time in the end; others are not."""
    with Place(smt, programs, grace=50) as place:
        for _ in range(4):
            is_ended(endless(place, "culprit", 1))
        refused_one = place.start("culprit", "work", "2", "8")
        output = refused_one.communicate(timeout=PATIENCE)[0]
        assert refused_one.returncode != 0 and "or did not end, 4 times within an hour" in output, output
        place.run("next", "work", "2", "8")


def counted_once(smt, programs):
    """A kernel for which another process takes over is one offence of its tenant."""
    with Over(smt, programs) as place:
        bystander = place.survivor("bystander")   # there is a session to take over
        for _ in range(2):
            standby = place.await_standby()
            is_ended(endless(place, "culprit", 1))
            place.wait_for_line(f"process {standby} serves from now on")
        place.run("culprit", "work", "2", "8")    # of three it may have as many
        say(bystander, "on")
        finish_survivor(bystander)


def no_standby(smt, programs):
    """Where the standby has ended for good all sessions end, and the log says so."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        for _ in range(4):
            os.kill(place.await_standby(), signal.SIGKILL)
        place.wait_for_line("without one a fault of the GPU, or of this process, ends all programs")
        is_ended(endless(place, "culprit", 1))
        output = survivor.communicate("go\n" * 9999, timeout=PATIENCE)[0]
        assert "CUDA_ERROR_LAUNCH_TIMEOUT" in output, output
        assert "Every session gets this error" in place.log(), place.log()
        place.run("next", "work", "2", "8")


if __name__ == "__main__":
    for scenario in (beside, behind, stopped, apart, stepwise, held_back):
        globals().update(all_forms(scenario))
    run_scenario(globals())
