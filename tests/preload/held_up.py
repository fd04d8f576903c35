#!/usr/bin/env python3
"""Calls of one program that wait for what another one does: a stream that waits for a word, a kernel that
may print. On the fake driver.

    held_up.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import os
import re
import signal

from run import smt, wait_until_empty
from scenarios import finish, main, status_names, wait_for


def waiter(place, *arguments):
    process = place.start("waits", *arguments, tenant="waiter")
    assert process.stdout.readline() == "waiting\n"
    return process


def waiter_killed(place):
    """Nothing waits for the streams of a program that is gone, and its own wait is ended."""
    process = waiter(place)
    loading = place.start("scale", tenant="loads")
    status_names(place, r"loads waits \d+\.\d s for cuStreamWaitValue32 of waiter\n")
    process.kill()
    finish(loading)
    wait_until_empty(place.program)
    finish(process, -signal.SIGKILL)


def waiter_stopped(place):
    """A program that stands still with a waiting stream holds others up for the setting wait, and then its
    session ends."""
    os.environ["SMT_LIMITS"] = "wait=1"
    process = waiter(place)
    process.send_signal(signal.SIGSTOP)
    loading = place.start("scale", tenant="loads")
    status_names(place, r"loads waits \d+\.\d s for cuStreamWaitValue32 of waiter\n")
    finish(loading)
    wait_until_empty(place.program)
    process.send_signal(signal.SIGCONT)
    assert finish(process)[0] == "ended\n"
    assert "held up other programs' calls for longer than wait in SMT_LIMITS" in "".join(
        each.read_text() for each in place.folder.glob("*.log"))


def wait_that_is_over(place):
    """A wait that is over holds nothing up, however long its stream goes on."""
    process = waiter(place, "busy")
    place.wait_reached(1)
    place.run("scale", tenant="loads")
    place.open(1)
    finish(process)


def printed_before(place):
    """A thread that prints does not wait for other work of a program that has printed."""
    other = place.start("printed", "after", tenant="other")
    place.wait_reached(1)
    assert place.run("say", 7, 3, tenant="prints")[0] == "device says 7\n" * 3
    place.open(1)
    assert finish(other)[0] == "device says 1\n"


def prints_on(place):
    """A kernel that may print and does not end holds up others that print, but not for ever, and status names
    it."""
    other = place.start("printed", "itself", tenant="other")
    place.wait_reached(1)
    prints = place.start("say", 7, 3, tenant="prints")
    wait_for(lambda: re.search(r"prints waits \d+\.\d s for device printf of other\n",
                               smt(place.program, "status")), "status names the wait")
    assert finish(prints)[0] == "device says 7\n" * 3
    place.open(1)
    assert finish(other)[0] == "device says 1\n"
    assert "prints although kernels of other that print have not ended" in "".join(
        each.read_text() for each in place.folder.glob("*.log"))


if __name__ == "__main__":
    main([waiter_killed, waiter_stopped, wait_that_is_over, printed_before, prints_on])
