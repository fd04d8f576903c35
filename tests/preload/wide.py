#!/usr/bin/env python3
"""Kernels with a limit that do not end, beside calls that wait in the driver for all work and keep others out
of it meanwhile, on the fake driver.

    wide.py SMT FAKE_DRIVER SCENARIO

Programs are steered line by line (steered.cpp), and kernels end when the test opens a gate.
"""

import os
import re

import run
from scenarios import finish, gone, main, wait_for
from unmanaged import Program

TIMEOUT = 702
LIMIT = ("--kernel-limit", "1")
LOADS = "cuLibraryGetModule,cuModuleLoadDataEx"


def begin(place, wide):
    """Programs that are there before anything does not end: one without a launch, one whose kernel stands at
    gate 1, and one with a limit. There is a standby."""
    os.environ.update(SMT_KEEPER="takeover", SMT_FAKE_WIDE=wide)
    idle, other = Program(place, "idle", "normal"), Program(place, "other", "normal")
    limited = Program(place, "limited", "normal", *LIMIT)
    wait_for(lambda: "is ready to take over" in run.smt(place.program, "log"), "there is a standby")
    assert other.do("gate 1") == [0]
    place.wait_reached(1)
    return idle, other, limited


def leave(place, *programs):
    """At rest: a standby that is just being started would still write to the folder."""
    for program in programs:
        program.end()
    wait_for(lambda: "is ready to take over" in run.smt(place.program, "log"), "there is a standby again")
    run.wait_until_empty(place.program)


def waits_for(place, tenant, what):
    wait_for(lambda: re.search(rf"{tenant} waits \d+\.\d s for {what}\n", run.smt(place.program, "status")),
             f"status says that {tenant} waits")


def loads_before_it(place):
    """A load waits for another one's kernel while one that does not end begins: it does not get into the
    driver behind that. Its limit ends that one's program, and others go on; not the one that loads at that
    moment, which is told."""
    idle, other, limited = begin(place, LOADS)
    server = place.server_pid()
    loader = place.start("steered", tenant="loader")
    waits_for(place, "loader", "a kernel that may not end")
    assert limited.do("gate 2") == [0]
    place.wait_reached(2)
    place.open(1)
    assert limited.do("sync") == [TIMEOUT]
    wait_for(lambda: place.server_now() not in (None, server), "another process serves")
    assert idle.do("fill 5", "read") == [0, 5]
    assert other.do("fill 6", "read") == [0, 6]
    assert "kernel gate of tenant limited" in loader.communicate(timeout=run.PATIENCE)[1]
    assert "kernel gate of tenant limited" in finish(limited.process, 1)[1]
    leave(place, idle, other)


def stands_in_the_driver(place):
    """A call that no gate knows gets into the driver behind a kernel that does not end, and nothing comes out
    any more. The server ends itself, and its standby goes on with who has nothing under way."""
    os.environ.update(SMT_KEEPER="takeover", SMT_FAKE_WIDE="cuStreamCreateWithPriority")
    idle, caller = Program(place, "idle", "normal"), Program(place, "caller", "normal")
    limited = Program(place, "limited", "normal", *LIMIT)
    wait_for(lambda: re.search("crash +3 of 3", run.smt(place.program, "server", "status")),
             "three sessions would go on")
    server = place.server_pid()
    assert limited.do("gate 2") == [0]
    place.wait_reached(2)
    caller.say("use 7")
    wait_for(lambda: gone(server), "the server has ended itself")
    assert idle.do("fill 5", "read") == [0, 5]
    assert limited.do("sync") == [TIMEOUT]
    kernel = r"kernel gate of tenant limited \(preload_steered, pid \d+\) has not ended, its limit is 1 s"
    log = (place.folder / "device.log").read_text()
    assert re.search(f"takes over from one that ended itself: {kernel}", log), log
    errors = [finish(program.process, 1)[1] for program in (limited, caller)]
    assert re.search(rf"CUDA_ERROR_LAUNCH_TIMEOUT \(702\): {kernel}", errors[0]), errors[0]
    assert re.search(f"it ended itself: {kernel}", errors[1]), errors[1]
    leave(place, idle)


SCENARIOS = [loads_before_it, stands_in_the_driver]


if __name__ == "__main__":
    main(SCENARIOS)
