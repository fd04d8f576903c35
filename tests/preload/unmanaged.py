#!/usr/bin/env python3
"""Kernels without a managed form, held back between kernels for a more urgent tenant, on the fake driver; and
what the commands `smt policy`, `smt status` and `smt top` say and do meanwhile.

    unmanaged.py SMT FAKE_DRIVER SCENARIO

Programs are steered line by line (steered.cpp), and kernels end when the test opens a gate; so nothing
depends on time.
"""

import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios

import run
from scenarios import MAGIC, Place, connect, finish, wait_for

NOT_READY = 600
SET_POLICY, POLICY_REPLY = 12, 13


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
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind and
            entry.get("tenant") == tenant]


def stopped(place, tenant):
    wait_for(lambda: journal(place, "stopped", tenant), f"what {tenant} had in flight is over")


def hold(place):
    """A low tenant whose launches are held back for a high one, whose kernel stands at gate 1."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert low.do("gate 2") == [0]
    place.wait_reached(2)
    assert high.do("gate 1") == [0]
    place.wait_reached(1)
    wait_for(lambda: any("held back for high" in each["text"] for each in journal(place, "decision", "low")),
             "the policy has held low back")
    return low, high


def waits_between_kernels(place):
    """Its kernel that runs ends, the next ones wait; then they run in their order."""
    low, high = hold(place)
    low.say("fill 5", "set 6", "fill 7", "sync", "read")
    wait_for(lambda: re.search(r"low waits \d+\.\d s for its turn: held back for high \(priority 1 "
                               r"over -1\)\n", run.smt(place.program, "status")), "status says why")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuLaunchKernel fill") == 0 and place.calls("cuMemsetD32Async") == 2, \
        "what follows waits"
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
    low.say("fill 1", "record 1", "use 1", "wait 1", "fill 2", "record 2", "use 0", "wait 2", "fill 3",
            "record 3", "use 2", "wait 3", "read")
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


def held_back(place):
    return sum("held back for high" in entry["text"] for entry in journal(place, "decision", "low"))


def waits_for_a_value(place):
    """A stream that waits for a value holds no other tenant back, nor does what is behind the wait; until the
    value is there."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("hold", "gate 1") == [0, 0]
    assert low.do("fill 5", "read", "fill 6", "read") == [0, 5, 0, 6], "the urgent one waits"
    assert low.do("gate 2") == [0]
    place.wait_reached(2)
    assert high.do("use 1", "gate 3") == [0, 0]
    wait_for(lambda: held_back(place) == 1, "another stream of it is at work")
    low.say("fill 7", "read")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuLaunchKernel fill") == 2
    place.open(3)
    assert low.answers(2) == [0, 7]
    assert low.do("gate 4") == [0]
    place.wait_reached(4)
    assert high.do("release") == [0]
    wait_for(lambda: held_back(place) == 2, "the wait is over")
    low.say("fill 8", "read")
    place.open(4)
    wait_for(lambda: len(journal(place, "stopped", "low")) == 2, "what low had in flight is over")
    assert place.calls("cuLaunchKernel fill") == 3
    place.open(1)
    assert low.answers(2) == [0, 8]
    assert high.do("use 0", "sync") == [0, 0]
    low.end(), high.end()


def work_before_a_wait(place):
    """What is in front of the wait counts as long as it runs."""
    low, high = Program(place, "low", "low"), Program(place, "high", "high")
    assert high.do("gate 1", "hold", "fill 1") == [0, 0, 0]
    place.wait_reached(1)
    low.say("fill 3", "read")
    wait_for(lambda: journal(place, "decision", "low"), "the policy has decided")
    assert place.calls("cuLaunchKernel fill") == 1
    place.open(1)
    assert low.answers(2) == [0, 3]
    assert high.do("release", "sync", "read") == [0, 0, 1]
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
    """A program that waits for one that is gone goes on."""
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
    """Where another tenant may go first the driver gets two long kernels at a time, else all."""
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


def policy(place, *arguments):
    done = subprocess.run([place.program, "policy", *arguments], capture_output=True,
                          text=True, timeout=run.PATIENCE)
    return done.returncode, done.stdout + done.stderr


def another_policy(place):
    """A program that is held back goes on when the policy that held it back is gone, and is held back again
    when it is back."""
    assert policy(place, "show")[0] == 1 and policy(place, "set", "fifo")[0] == 1, "there is no server yet"
    low, high = hold(place)
    low.say("fill 5", "read")
    place.open(2)
    stopped(place, "low")
    assert place.calls("cuLaunchKernel fill") == 0
    assert policy(place, "show") == (0, "server device: priority\n")
    assert policy(place, "set", "fifo") == (0, "server device: fifo from now on\n")
    assert low.answers(2) == [0, 5], "although the urgent one is at work"
    assert "policy    fifo" in place.status() and policy(place, "show") == (0, "server device: fifo\n")
    assert low.do("fill 6", "read") == [0, 6]
    assert any("policy fifo from now on" in entry["text"] for entry in journal(place, "note", ""))

    for name, text in [("nonsense", "there is no policy 'nonsense'"), ("", "there is no policy ''"),
                       ("x" * 40, "no policy")]:
        code, told = policy(place, "set", name)
        assert code == 2 and text in told and "priority" in told, told
    for arguments in [(), ("set",), ("set", "a", "b"), ("change",), ("list", "x")]:
        assert policy(place, *arguments)[0] == 2
    # The server judges for itself, also what is no name.
    for name in (b"nonsense", b"\xff" * 32, b""):
        with connect(place, struct.pack("<2I32s", SET_POLICY, MAGIC, name)) as client:
            kind, ok, told = struct.unpack("<2I256s", client.recv(4096))
            assert (kind, ok) == (POLICY_REPLY, 0) and b"there is no policy '" + name in told, told
            assert client.recv(4096) == b"", "and hangs up"
    with connect(place, struct.pack("<2I", SET_POLICY, MAGIC)) as client:
        assert b"wrong size" in client.recv(4096)
    assert policy(place, "show") == (0, "server device: fifo\n")

    assert policy(place, "set", "priority")[0] == 0
    fills = place.calls("cuLaunchKernel fill")
    low.say("fill 7", "read")
    assert high.do("use 1", "fill 1", "sync") == [0, 0, 0]
    assert place.calls("cuLaunchKernel fill") == fills + 1, "only the urgent one's"
    place.open(1)
    assert low.answers(2) == [0, 7]
    assert policy(place, "list")[0] == 0 and "priority         the default" in policy(place, "list")[1]
    low.end(), high.end()
    run.wait_until_empty(place.program)


def who_is_there(place):
    """smt status, and smt top, which is the same again and again."""
    def shown(*arguments):
        text = run.smt(place.program, *arguments)
        return {fields[0]: fields[1:] for line in text.splitlines()[2:] if (fields := line.split())}, text

    assert ("no server is running" in shown("status")[1] and
            "no server is running" in shown("top", "--once")[1])
    low, high = Program(place, "low", "low", "--memory", "48M", "--weight",
                        "0.5"), Program(place, "high", "3")
    assert low.do("fill 1", "fill 2", "sync") == [0, 0, 0]
    for tenants, text in (shown("status"), shown("top", "--once")):
        assert re.match(r"server device: .*, policy priority, up [\d.]+ s, 2 sessions\b", text), text
        # session, process, priority, weight, memory, limit, host memory, launches, a second, busy, SMs
        assert (tenants["low"][2:4] == ["-1", "0.5"] and tenants["high"][3] == "1" and
                tenants["low"][6:11] == ["48.0", "MiB", "0.0", "MiB", "2"]), tenants
        assert tenants["high"][2] == "3" and tenants["high"][6:10] == ["-", "0.0", "MiB", "0"], tenants
        assert tenants["low"][-2:] == ["-", "-"], "nothing tells how long launches took"
        assert len(text.splitlines()) == 4, text
    for arguments, text in [(("status", "now"), "unexpected"),
                            (("top", "--interval", "0"), "--interval wants"),
                            (("top", "--interval", "1s"), "wants"),
                            (("top", "--interval", "nan"), "wants"), (("top", "--twice"), "unknown option")]:
        done = subprocess.run([place.program, *arguments], capture_output=True,
                              text=True, timeout=run.PATIENCE)
        assert done.returncode == 2 and text in done.stderr, done

    ours, theirs = pty.openpty()

    def one_by_one():
        return not termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO)

    for leave in (lambda top: os.write(ours,
                                       b"xq"),
                  lambda top: top.send_signal(signal.SIGINT), lambda top: top.send_signal(signal.SIGTERM)):
        top = subprocess.Popen([place.program, "top", "--interval", "0.1"], stdin=theirs,
                               stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            while not top.stdout.readline().startswith("server device"):
                pass
        assert one_by_one()
        leave(top)
        top.communicate(timeout=run.PATIENCE)
        assert top.returncode == 0 and not one_by_one(), "the terminal is as it was"
    done = subprocess.run([place.program, "top"], input="q", capture_output=True,
                          text=True, timeout=run.PATIENCE)
    assert done.returncode == 0 and done.stdout.startswith("server device"), done
    high.end()
    wait_for(lambda: [*shown("status")[0]] == ["low"], "only one is left")
    low.end()


SCENARIOS = [waits_between_kernels, new_work_waits, order_of_streams, order_when_confined, waits_for_a_value,
             work_before_a_wait, graphs_wait, errors_stay, dies_held_back, urgent_dies,
             a_few_in_flight, another_policy,
             who_is_there]


def main(scenarios):
    program, driver, name = sys.argv[1:]
    scenario = {each.__name__: each for each in scenarios}[name]
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
    main(SCENARIOS)
