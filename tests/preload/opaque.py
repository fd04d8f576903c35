#!/usr/bin/env python3
"""Kernels without a managed form, held back between kernels for a more urgent tenant, on the fake driver.

    opaque.py SMT FAKE_DRIVER SCENARIO

Programs are steered line by line (steered.cpp), and kernels end when the test opens a gate; so nothing depends on time.
"""

import json
import re
import signal
import sys
import tempfile

import run
from scenarios import Place, finish, wait_for

NOT_READY = 600


class Program:
    """A steered program that is ready."""

    def __init__(self, place, tenant, priority, *options):
        self.place, self.tenant = place, tenant
        self.process = place.start("steered", tenant=tenant, options=("--priority", priority, *options))
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()

    def say(self, *lines):
        """Without the answers, which may have to wait."""
        for line in lines:
            self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answers(self, count):
        return [int(self.process.stdout.readline()) for _ in range(count)]

    def do(self, *lines):
        self.say(*lines)
        return self.answers(len(lines))

    def end(self):
        finish(self.process)


def journal(place, kind, tenant):
    lines = run.smt(place.program, "log", "--json").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind and entry.get("tenant") == tenant]


def stopped(place, tenant):
    wait_for(lambda: journal(place, "stopped", tenant), f"what {tenant} had in flight is over")


def hold(place):
    """A low tenant whose launches are held back for a high one, whose kernel stands at gate 1."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert low.do("gate 2") == [0]
    place.wait_reached(2)
    assert high.do("gate 1") == [0]
    place.wait_reached(1)
    wait_for(lambda: journal(place, "decision", "low"), "the policy has decided")
    assert "held back for high" in journal(place, "decision", "low")[-1]["text"]
    return low, high


def waits_between_kernels(place):
    """Its kernel that runs ends, the next ones wait; then they run in their order."""
    low, high = hold(place)
    low.say("fill 5", "set 6", "fill 7", "sync", "read")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuLaunchKernel fill") == 0 and place.calls("cuMemsetD32Async") == 2, "what follows waits"
    assert [entry["text"] for entry in journal(place, "stopped", "low")] == ["gate"]
    place.open(1)
    assert low.answers(5) == [0, 0, 0, 0, 7]
    assert high.do("sync") == [0]
    low.end(), high.end()
    run.wait_until_empty(place.program)


def new_work_waits(place):
    """What begins while the urgent one is at work does not start."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("gate 1") == [0]
    place.wait_reached(1)
    low.say("fill 3", "use 1", "gate 2", "use 0", "read")
    assert high.do("use 1", "fill 1", "sync") == [0, 0, 0]   # there is room on the device
    assert place.calls("cuLaunchKernel fill") == 1 and place.calls("cuLaunchKernel gate") == 1
    place.open(1)
    place.wait_reached(2)
    place.open(2)
    assert low.answers(5) == [0, 0, 0, 0, 3]
    low.end(), high.end()


def order_of_streams(place):
    """Events between streams, with launches held back before and behind them."""
    low, high = hold(place)
    low.say("fill 1", "record 1", "use 1", "wait 1", "fill 2", "record 2", "use 0", "wait 2", "fill 3", "record 3", "use 2", "wait 3", "read")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuLaunchKernel fill") == 0
    place.open(1)
    assert low.answers(13) == [0] * 12 + [3]
    low.end(), high.end()


def order_when_confined(place):
    """A launch that runs on a stream of its own stands in the program's stream all the same."""
    low, high = hold(place)
    place.open(2)
    stopped(place, "low")
    low.say("gate 6", "query")
    place.open(1)
    assert low.answers(2) == [0, NOT_READY], "its stream waits for it"
    place.open(6)
    assert low.do("sync", "query") == [0, 0]
    low.say("use 1", "gate 4", "record 9", "use 0", "wait 9", "set 5", "fill 8", "read")
    wait_for(lambda: place.calls("cuLaunchKernel fill") == 1, "the last one is launched")
    place.wait_reached(4)
    place.open(4)
    assert low.answers(8) == [0] * 7 + [8], "it waits for what is before it"
    assert place.calls("cuGreenCtxStreamCreate") == 2, "both streams have a second home"
    low.end(), high.end()


def graphs_wait(place):
    low, high = hold(place)
    low.say("graph 4", "read")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuGraphLaunch") == 0
    place.open(1)
    assert low.answers(2) == [0, 4]
    low.end(), high.end()


def errors_stay(place):
    """A launch that the driver refuses: the same answers, held back or not."""
    lines = ["fill 1", "bad", "sync", "sync", "fill 2", "read"]
    alone = Program(place, "alone", "normal")
    expected = alone.do(*lines)
    alone.end()
    assert sorted(expected)[:1] == [0] and 1 in expected, expected
    low, high = hold(place)
    low.say(*lines)
    place.open(2)
    stopped(place, "low")
    place.open(1)
    assert low.answers(len(lines)) == expected
    low.end(), high.end()


def dies_held_back(place):
    low, high = hold(place)
    low.say("fill 5", "fill 6", "sync")
    place.open(2)
    stopped(place, "low")
    low.process.kill()
    finish(low.process, -signal.SIGKILL)
    wait_for(lambda: re.search(r"sessions +1 open", place.status()), "only the other is left")
    assert place.calls("cuLaunchKernel fill") == 0, "what waited never runs"
    place.open(1)
    assert high.do("sync", "fill 8", "read") == [0, 0, 8]
    high.end()
    run.wait_until_empty(place.program)


def urgent_dies(place):
    """Who waits for one that is gone goes on."""
    low, high = hold(place)
    low.say("fill 5", "read")
    place.open(2)
    stopped(place, "low")
    high.process.kill()
    finish(high.process, -signal.SIGKILL)
    assert low.answers(2) == [0, 5]
    place.open(1)
    low.end()
    run.wait_until_empty(place.program)


def a_few_in_flight(place):
    """Where somebody may go first the driver gets two long kernels at a time, else all."""
    alone = Program(place, "alone", "low")
    alone.do(*[f"gate {n}" for n in range(1, 9)])
    place.wait_reached(1)
    wait_for(lambda: place.calls("cuLaunchKernel gate") == 8, "all have been launched")
    for gate in range(1, 9):
        place.open(gate)
    assert alone.do("sync") == [0]
    high = Program(place, "high", "high")
    alone.say(*[f"gate {n}" for n in range(11, 19)], "sync")
    for gate in range(11, 19):
        place.wait_reached(gate)
        launched = place.calls("cuLaunchKernel gate") - 8
        assert launched <= gate - 10 + 1, f"{launched} are launched and {gate - 11} over"
        place.open(gate)
    assert alone.answers(9) == [0] * 9
    alone.end(), high.end()


SCENARIOS = [waits_between_kernels, new_work_waits, order_of_streams, order_when_confined, graphs_wait, errors_stay, dies_held_back, urgent_dies, a_few_in_flight]


def main():
    program, driver, name = sys.argv[1:]
    scenario = {each.__name__: each for each in SCENARIOS}[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(program, driver, folder)
        try:
            scenario(place)
        except BaseException:
            print("".join(path.read_text() for path in place.folder.glob("*.log")))
            print((place.folder / "calls").read_text()[-3000:] if (place.folder / "calls").exists() else "")
            raise
        finally:
            for gate in range(20):
                place.open(gate)
            place.clean_up()


if __name__ == "__main__":
    main()
