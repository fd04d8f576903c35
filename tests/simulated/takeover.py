#!/usr/bin/env python3
"""Takeover on the simulated device: a fault of one program's kernel, and who goes on.

    takeover.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import pathlib
import re
import signal
import subprocess

from place import MANAGED, PATIENCE, Place, run_scenario, runs, wait_for

READY = r"a standby, process (\d+), is ready to take over"


class Over(Place):
    """A server whose device has one context, with a standby. Its programs wait for a word of the test's: the
    device's clock goes on soon without them."""

    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, **{"one_context": 1, "grace": 50, **settings})
        self.environment["SMT_KEEPER"] = "takeover"
        self.standbys = []

    def log(self):
        """Of all servers, in the order in which they were: each takeover begins another log."""
        folder = pathlib.Path(self.folder.name)
        logs = sorted(folder.glob("*.log.*"), reverse=True) + sorted(folder.glob("*.log"))
        return "".join(path.read_text() for path in logs)

    def await_standby(self):
        """The process that is ready, after the ones that were there before."""
        before = len(self.standbys)

        def another():
            self.standbys = [int(pid) for pid in re.findall(READY, self.log())]
            return len(self.standbys) > before

        wait_for(another, lambda: "no standby becomes ready:\n" + self.log())
        return self.standbys[-1]

    def survivor(self, tenant, *arguments, options=()):
        program = self.start(tenant, "survivor", *arguments, options=options, stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        return program

    def server_pid(self):
        return int(re.search(r"process +(\d+)", self.server_status())[1])


def say(program, word):
    """The program works, and answers with the word."""
    program.stdin.write(word + "\n")
    program.stdin.flush()
    line = program.stdout.readline()
    assert line == word + "\n", line + program.stdout.read()


def finish_survivor(program):
    output = program.communicate(timeout=PATIENCE)[0]
    assert output == "CUDA_SUCCESS\n" and program.returncode == 0, output


def await_end(pid):
    wait_for(lambda: not runs(pid), lambda: f"process {pid} goes on")


def await_word(program, word):
    """The counts that the program prints before the word."""
    counts = []
    while (line := program.stdout.readline()).startswith("count "):
        counts.append(int(line.split()[1]))
    assert line == word + "\n", line + program.stdout.read()
    return counts


def keeper_of_variables(place, tenant, *how):
    program = place.start(tenant, "keeper_of_variables", *how, stdin=subprocess.PIPE)
    return program, await_word(program, "ready")


def tell(program, word):
    program.stdin.write(word + "\n")
    program.stdin.flush()
    return await_word(program, word)


def fault(place):
    fault_of(place, "culprit")


def fault_of(place, tenant):
    output = place.run(tenant, "misbehave", "wild")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output


def idle_goes_on(smt, programs):
    """An idle program has its memory after another one's fault, and goes on computing."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        fault(place)
        for word in ("once", "twice"):
            say(survivor, word)
        finish_survivor(survivor)
        place.wait_for_line(f"process {standby} serves from now on, 1 of 2 sessions")


def busy_gets_the_error(smt, programs):
    """A program with a kernel under way ends with the error, one with an array too, each with the reason in
    the log; a third goes on."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        array = place.survivor("array", "array")
        busy = place.survivor("busy", "busy")
        place.await_standby()
        fault(place)
        for program in (busy, array):
            output = program.communicate("go\n", timeout=PATIENCE)[0]
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        say(survivor, "on")
        finish_survivor(survivor)
        for text in (r"\(busy, pid \d+\): it ends, as .*kernels of it were under way",
                     r"\(array, pid \d+\): it ends, as .*it has arrays"):
            assert re.search(text, place.log()), place.log()


def variables_go_on(smt, programs, **environment):
    """A program's variables, also those that it wrote by a call, its constants and the text that it prints
    are what they were, where they were, after two faults. One of which a variable points to another one
    ends."""
    with Over(smt, programs) as place:
        place.environment.update(environment)
        keeper, counts = keeper_of_variables(place, "keeper")
        assert counts == [7], counts
        pointer, counts = keeper_of_variables(place, "pointer", "pointer")
        assert counts == [7], counts
        assert ("is loaded in managed form" in place.log()) == ("SMT_COMPILE" in environment), place.log()
        for turn, expected in enumerate(([11, 13], [15, 17])):
            place.await_standby()
            fault_of(place, f"culprit{turn}")
            counts = tell(keeper, f"turn {turn}")
            assert counts == expected, counts
        finish_survivor(keeper)
        ends_because(place, pointer, "pointer", "variables that are not in its own memory")
        place.wait_until_empty()


def ends_because(place, program, tenant, reason):
    output = program.communicate("go\n", timeout=PATIENCE)[0]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
    assert re.search(rf"\({tenant}, pid \d+\): it ends, as .*{reason}", place.log()), place.log()


def managed_variables_go_on(smt, programs):
    """The same where the kernels are managed."""
    variables_go_on(smt, programs, SMT_COMPILE=MANAGED)


def constants_go_on(smt, programs):
    """Constants that a program wrote by calls are what they were after two faults, and are written again. One
    that handed a constant's address to a kernel ends."""
    with Over(smt, programs) as place:
        # another module first: the constants lie elsewhere in the process that takes over
        other, _ = keeper_of_variables(place, "other", "written")
        keeper, _ = keeper_of_variables(place, "keeper", "written")
        handed, _ = keeper_of_variables(place, "handed", "handed")
        other.communicate(timeout=PATIENCE)
        for turn in range(2):
            place.await_standby()
            fault_of(place, f"culprit{turn}")
            tell(keeper, f"turn {turn}")
        finish_survivor(keeper)
        ends_because(place, handed, "handed", "the address of a __constant__ variable otherwise")
        place.wait_until_empty()


def begin_apart(program):
    """Its kernels are under way from now on."""
    program.stdin.write("begin\n")
    program.stdin.flush()
    assert program.stdout.readline() == "begun\n"


def two_faults(smt, programs):
    """The process that took over is taken over from in turn."""
    with Over(smt, programs) as place:
        survivors = [place.survivor(name) for name in ("one", "two")]
        servers = []
        for turn in range(3):
            place.await_standby()
            servers.append(place.server_pid())
            fault_of(place, f"culprit{turn}")
            for program in survivors:
                say(program, f"turn {turn}")
        for program in survivors:
            finish_survivor(program)
        assert len({*servers, place.server_pid()}) == 4, servers
        assert servers[1:] == place.standbys[:2], (servers, place.standbys)


def kept_by(keeper):
    """The keeper's files of memory; none where it has ended."""
    folder = pathlib.Path(f"/proc/{keeper}/fd")
    files = [os.readlink(file) for file in folder.iterdir()] if os.access(folder, os.R_OK) else []
    return [file for file in files if "smt-kept" in file]


def new_program_after(smt, programs):
    """Programs that come later find the process that took over, and it gives all memory back at the end."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        fault(place)
        place.run("next", "work", "2", "8")
        assert place.server_pid() == standby
        say(survivor, "on")
        place.run("memory", "memory")
        finish_survivor(survivor)
        place.wait_until_empty()
        keeper = int(re.findall(r"belongs to smt-keeper, process (\d+)", place.log())[0])
        wait_for(lambda: not kept_by(keeper), lambda: kept_by(keeper))   # spare chunks stay for seconds
    for pid in (keeper, standby, *place.standbys):
        await_end(pid)


def standby_killed(smt, programs):
    """Another one is started. Without one, everything ends as it did."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        os.kill(place.await_standby(), signal.SIGKILL)
        place.wait_for_line("was killed by signal 9: another one is started")
        place.await_standby()
        fault(place)
        say(survivor, "on")
        for _ in range(4):
            os.kill(place.await_standby(), signal.SIGKILL)
        place.wait_for_line("without one a fault of the GPU, or of this process, ends all programs")
        fault(place)
        output = survivor.communicate("go\n", timeout=PATIENCE)[0]
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        place.run("next", "work", "2", "8")


def standby_stopped(smt, programs):
    """A standby that has ended without the server having seen it: the fault ends all, and nothing hangs."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        standby = place.await_standby()
        culprit = place.start("culprit", "bystander", stdin=subprocess.PIPE)
        assert culprit.stdout.readline() == "ready\n"
        os.kill(standby, signal.SIGSTOP)
        fault(place)
        place.wait_for_line("it ends, as it cannot go on in another process")   # the others are to be sent
        os.kill(standby, signal.SIGKILL)
        for program in (survivor, culprit):
            output = program.communicate("go\n", timeout=PATIENCE)[0]
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output.splitlines(), output
        place.run("next", "work", "2", "8")


def offender_is_refused(smt, programs):
    """A tenant that faults again and again is refused for a time; others are not."""
    with Over(smt, programs) as place:
        survivor = place.survivor("survivor")
        for turn in range(4):
            place.await_standby()
            fault(place)
            say(survivor, f"turn {turn}")
        refused = place.start("culprit", "work", "2", "8")
        output = refused.communicate(timeout=PATIENCE)[0]
        assert refused.returncode != 0, output
        assert "have lost the GPU's context, or did not end, 4 times within an hour" in output, output
        place.run("next", "work", "2", "8")
        finish_survivor(survivor)


def in_calls(smt, programs):
    """Programs that compute all the time either go on with right results or end with the error; nothing
    hangs, and what comes later is served."""
    with Over(smt, programs) as place:
        idle = place.survivor("idle")
        for turn in range(3):
            place.await_standby()
            busy = [place.survivor(f"busy{i}") for i in range(3)]
            for program in busy:
                program.stdin.write("go\n" * 60)
                program.stdin.close()
            fault_of(place, f"culprit{turn}")
            for program in busy:
                lines = program.stdout.read().splitlines()
                assert program.wait(timeout=PATIENCE) == 0, lines
                assert lines[-1] in ("CUDA_SUCCESS", "CUDA_ERROR_ILLEGAL_ADDRESS"), lines
            say(idle, f"turn {turn}")
        finish_survivor(idle)
        place.run("next", "work", "2", "8")


if __name__ == "__main__":
    run_scenario(globals())
