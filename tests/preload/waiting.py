#!/usr/bin/env python3
"""A tenant that only waits (by an event, in a graph, for a host function) holds no other tenant back, on the
fake driver.

    waiting.py SMT FAKE_DRIVER SCENARIO

Programs are steered line by line (steered.cpp), and kernels end when the test opens a gate; so nothing
depends on time.
"""

import re
import signal

import run
from scenarios import finish, wait_for
from unmanaged import Program, held_back, journal, main


def goes_on(place, low, value):
    """No launch of the low tenant is held back, and its work is done."""
    before = held_back(place)
    assert low.do(f"fill {value}", "read") == [0, value], "the urgent one only waits"
    assert held_back(place) == before


def is_held_back(place, low, high, own_gate, gates, *lines):
    """The low tenant's next launch is held back once the high one has said the lines, until its gates
    open."""
    before, stops = held_back(place), len(journal(place, "stopped", "low"))
    assert low.do(f"gate {own_gate}") == [0]
    place.wait_reached(own_gate)
    assert high.do(*lines) == [0] * len(lines)
    place.wait_reached(gates[0])
    wait_for(lambda: held_back(place) > before, "the policy has decided")
    low.say("fill 77", "read")
    fills = place.calls("cuLaunchKernel fill")
    place.open(own_gate)
    wait_for(lambda: len(journal(place, "stopped", "low")) > stops, "what low had in flight is over")
    assert place.calls("cuLaunchKernel fill") == fills
    for gate in gates:
        place.open(gate)
    assert low.answers(2) == [0, 77]


def waits_by_an_event(place):
    """A stream that waits by an event for a stream that waits, also over a third stream. The work in front of
    the record counts."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    lines = ["hold", "record 1", "use 1", "wait 1", "record 2", "use 2", "wait 2", "gate 1"]
    assert high.do(*lines) == [0] * len(lines)
    goes_on(place, low, 5)
    is_held_back(place, low, high, 11, [1], "release")
    is_held_back(place, low, high, 13, [3], "use 0", "gate 3", "hold", "record 1",
                 "use 1", "wait 1", "gate 4")
    goes_on(place, low, 6)
    is_held_back(place, low, high, 15, [5], "use 3", "gate 5")
    goes_on(place, low, 7)
    is_held_back(place, low, high, 14, [4], "release")
    low.end(), high.end()


def waits_by_the_legacy_stream(place):
    """The legacy stream waits for the blocking ones by events of the server's, and they for it."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("use 10", "hold", "use -1", "gate 1", "use 11", "gate 2") == [0] * 6
    goes_on(place, low, 5)
    is_held_back(place, low, high, 11, [1, 2], "release")
    low.end(), high.end()


def waits_for_a_function(place):
    """A host function in a graph, and an event behind one with work behind it."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("capture", "function 1", "gate 1", "build 1", "launch 1") == [0] * 5
    goes_on(place, low, 5)
    is_held_back(place, low, high, 11, [1], "return 1")
    assert high.do("sync", "function 2", "record 1", "use 1", "wait 1", "gate 2") == [0] * 6
    goes_on(place, low, 6)
    is_held_back(place, low, high, 12, [2], "return 2")
    low.end(), high.end()


def waits_in_a_graph(place):
    """A graph has work until it comes to its wait, and again when the value is there. So has a child graph,
    and a graph that was updated."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("capture", "gate 1", "hold", "gate 2", "build 1") == [0] * 5
    is_held_back(place, low, high, 11, [1], "launch 1")
    goes_on(place, low, 5)
    is_held_back(place, low, high, 12, [2], "release")
    lines = ["sync", "capture", "hold", "gate 3", "build 2", "capture", "launch 2", "build 3",
             "forget 2", "launch 3"]
    assert high.do(*lines) == [0] * len(lines)
    goes_on(place, low, 6)
    is_held_back(place, low, high, 13, [3], "release")
    lines = ["sync", "capture", "fill 1", "fill 1", "build 4", "launch 4", "sync"]
    lines += ["capture", "hold", "gate 4", "update 4", "launch 4", "record 1", "use 1", "wait 1", "gate 5"]
    assert high.do(*lines) == [0] * len(lines)
    goes_on(place, low, 7)
    is_held_back(place, low, high, 14, [4, 5], "release")
    low.end(), high.end()


def waits_for_an_event_in_a_graph(place):
    """Events that graphs wait for and record are known at each launch."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    lines = ["nodes 1", "capture", "await 2", "gate 1", "sign 3", "build 2"]
    lines += ["hold", "record 1", "use 1", "launch 1", "use 2", "launch 2", "use 3", "wait 3", "gate 2"]
    assert high.do(*lines) == [0] * len(lines)
    goes_on(place, low, 5)
    is_held_back(place, low, high, 11, [1, 2], "release")
    low.end(), high.end()


def waits_again_and_again(place):
    """Graphs that wait come and go, more of them than there are words for waits: the next one's wait is still
    seen."""
    high = Program(place, "high", "high")
    for _ in range(18):
        lines = ["capture", "hold", "build 1", "release", "launch 1", "record 1", "use 1", "wait 1",
                 "use 0", "forget 1"] * 500
        assert high.do(*lines) == [0] * len(lines)
    assert high.do("sync") == [0]
    low = Program(place, "low", "low")
    assert high.do("capture", "hold", "gate 1", "build 1", "launch 1", "record 1", "use 1",
                   "wait 1", "gate 2") == [0] * 9
    goes_on(place, low, 5)
    is_held_back(place, low, high, 11, [1, 2], "release")
    low.end(), high.end()


def waiter_dies(place):
    """A session that ends waits no more, whatever its streams waited by: others load code then."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    lines = ["capture", "hold", "fill 1", "build 1", "launch 1", "record 1", "use 1", "wait 1", "fill 2"]
    assert high.do(*lines) == [0] * len(lines)
    goes_on(place, low, 5)
    # loads code, which no stream may wait for
    other = place.start("steered", tenant="other", options=("--priority", "low"))
    wait_for(lambda: re.search(r"other waits \d+\.\d s for a graph of high\n",
                               run.smt(place.program, "status")), "status says why")
    high.process.kill()
    finish(high.process, -signal.SIGKILL)
    assert other.stdout.readline() == "ready\n"
    finish(other)
    low.end()
    run.wait_until_empty(place.program)


SCENARIOS = [waits_by_an_event, waits_by_the_legacy_stream, waits_for_a_function, waits_in_a_graph,
             waits_for_an_event_in_a_graph, waits_again_and_again, waiter_dies]


if __name__ == "__main__":
    main(SCENARIOS)
