#!/usr/bin/env python3
"""smt suspend and smt resume where the driver fails at one of their steps: nothing is lost.

    suspended.py SMT FAKE_DRIVER SCENARIO
"""

import json
import re
import subprocess

from run import PATIENCE, smt, wait_until_empty
from scenarios import finish, main


def ask(place, command, code=0):
    done = subprocess.run([place.program, command, "holder"], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


def hold(place, failure):
    """A program that has memory, with a server whose driver fails that call."""
    holder = place.start("hold_memory", tenant="holder", SMT_FAKE_FAIL=failure)
    assert holder.stdout.readline().strip()
    return holder


def let_go(place, holder):
    holder.stdin.write("\n")
    output, _ = finish(holder)
    assert output == "unchanged\n", output
    wait_until_empty(place.program)


def suspended_copy_fails(place):
    """The first time."""
    holder = hold(place, "cuMemcpyDtoHAsync_v2:1:1")
    said = ask(place, "suspend", code=1)
    assert said == "smt suspend: cuMemcpyDtoHAsync fails with error 1: nothing has changed\n", said
    assert place.calls("cuMemUnmap") == 0
    assert "is not suspended" in ask(place, "resume", code=1)
    assert "2.0 MiB in" in ask(place, "suspend")
    ask(place, "resume")
    let_go(place, holder)


def fails_on_resume(place, failure, words):
    holder = hold(place, failure)
    ask(place, "suspend")
    assert place.calls("cuMemUnmap") > 0
    said = ask(place, "resume", code=1)
    assert re.fullmatch(rf"smt resume: {words}: tenant holder stays suspended\n", said), said
    ask(place, "resume")
    let_go(place, holder)


def suspended_no_chunk(place):
    """The chunk of the program's one allocation was the first; the one on resume is the second."""
    fails_on_resume(place, "cuMemCreate:2:2", "cuMemCreate or cuMemMap fails with error 2")


def suspended_no_mapping(place):
    fails_on_resume(place, "cuMemMap:2:1", "cuMemCreate or cuMemMap fails with error 1")


def suspended_second_fails(place):
    """Of two programs one could be resumed, and the other not: both stay where they are."""
    first = hold(place, "cuMemCreate:4:2")
    second = place.start("hold_memory", tenant="holder")
    assert second.stdout.readline().strip()
    ask(place, "suspend")
    ask(place, "resume", code=1)
    tenants = json.loads(smt(place.program, "status", "--json"))["tenants"]
    assert [(each["device_bytes"], each["away_bytes"]) for each in tenants] == [(0, 2 << 20)] * 2, tenants
    ask(place, "resume")
    for holder in (first, second):
        holder.stdin.write("\n")
        assert finish(holder)[0] == "unchanged\n"
    wait_until_empty(place.program)


def suspended_copy_back_fails(place):
    fails_on_resume(place, "cuMemcpyHtoDAsync_v2:1:1", "cuMemcpyHtoDAsync fails with error 1")


def suspended_not_unmapped(place):
    """A chunk that the driver does not give back stays, with what is in it."""
    holder = hold(place, "cuMemUnmap:1:1")
    said = ask(place, "suspend")
    assert re.match(r"tenant holder is suspended: 0\.0 MiB in pinned host memory, 2\.0 MiB stay", said), said
    ask(place, "resume")
    let_go(place, holder)


if __name__ == "__main__":
    main([suspended_copy_fails, suspended_no_chunk, suspended_no_mapping, suspended_copy_back_fails,
          suspended_second_fails, suspended_not_unmapped])
