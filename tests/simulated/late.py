#!/usr/bin/env python3
"""Managed forms that are made while a program runs, on the simulated device.

    late.py SMT FOLDER_OF_PROGRAMS COMPILED SCENARIO

COMPILED has late-plain and late-variables (programs/late.cu), for some of the scenarios. The compile worker
of these servers starts when a file, the gate, is there, so that a program's first launches come before its
managed form.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import PATIENCE, Place, finish, wait_for  # noqa: E402

WORKER = """#!/bin/sh
while [ ! -e {gate} ]; do sleep 0.01; done
exec {worker} "$@"
"""
FAILING_WORKER = """#!/bin/sh
while [ ! -e {gate} ]; do sleep 0.01; done
exit 1
"""
READY = "an image's managed form is ready: "
TWO_READY = READY + "2 kernels, managed by PTX"
NOT_YET = "its managed form is not made yet"
FOR_GOOD = NOT_YET + "; it is taken at the next load, as the image's code uses variables of the image"
MADE = "kernels managed by PTX, 0 refused"   # what a compile says when it is over
BY_PTX = "managed by PTX"
ADDS = 3   # launches of add, and of each step, in a round of a thread
ROUNDS = 1000   # that a program has at most until its form is there


class Late(Place):
    def __init__(self, smt, programs, compiled):
        super().__init__(smt, programs, sms=4)
        folder = pathlib.Path(self.folder.name)
        self.compiled, self.gate, self.worker = pathlib.Path(compiled), folder / "gate", folder / "worker"
        self.use_worker(WORKER)
        self.environment.update(SMT_COMPILE=f"worker={self.worker}", SMT_CACHE_DIR=str(folder / "cache"))

    def use_worker(self, text):
        real = pathlib.Path(self.smt).parent / "smt-compile"
        self.worker.write_text(text.format(gate=self.gate, worker=real))
        self.worker.chmod(0o700)

    def open_gate(self):
        self.gate.touch()

    def begin(self, tenant, program, *arguments):
        command = [self.smt, "run", "--device", "sim", "--tenant", tenant, "--", program, *arguments]
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, bufsize=1)
        process.tenant, process.rounds = tenant, 0
        return process

    def begin_late(self, tenant, kind, *arguments):
        return self.begin(tenant, self.compiled / f"late-{kind}", *arguments)

    def begin_lanes(self, tenant, threads):
        return self.begin(tenant, self.programs / "sim_swap", "lanes", str(threads))

    def notes(self, tenant=None):
        found = [json.loads(line) for line in self.journal_now().splitlines()]
        return [entry["text"] for entry in found if entry["kind"] == "note" and
                (tenant is None or f"({tenant}, pid " in entry["text"])]

    def said(self, pattern, tenant=None):
        return len([note for note in self.notes(tenant) if re.search(pattern, note)])

    def wait_for_notes(self, pattern, count):
        wait_for(lambda: self.said(pattern) >= count, lambda: f"no {count} notes {pattern}: {self.notes()}")

    def treatments(self, process, kernel, each):
        """Of the launches of a kernel outside of graphs, `each` in a round: {how or reason: count}, as smt
        log --kernels shows them. The device writes a launch's entry a moment after the program knows its
        end."""
        found = {}

        def all_there():
            found.clear()
            done = subprocess.run([self.smt, "log", "--kernels", "--json"], env=self.environment, check=True,
                                  capture_output=True, text=True, timeout=PATIENCE)
            for row in map(json.loads, done.stdout.splitlines()):
                is_it = row["kernel"].partition("(")[0] == kernel and row["tenant"] == process.tenant
                if is_it and row["launches"] and row["how"] != "not known":
                    how = row["reason"] or row["how"]
                    found[how] = found.get(how, 0) + row["launches"]
            return sum(found.values()) == each * process.rounds

        wait_for(all_there, lambda: (found, each * process.rounds))
        return found

    def stop(self):
        subprocess.run([self.smt, "server", "stop"], env=self.environment, timeout=PATIENCE,
                       capture_output=True, check=True)
        self.wait_until_ended()


def say(process, word, answer):
    process.stdin.write(word + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line.startswith(answer), line


def go(process, rounds=1):
    for _ in range(rounds):
        say(process, "go", "round ")
        process.rounds += 1


def go_until(place, process, pattern, tenant=None):
    for _ in range(ROUNDS):
        go(process)
        if place.said(pattern, tenant):
            return
    raise AssertionError(f"no note {pattern} after {ROUNDS} rounds: {place.notes()}")


def end(process):
    process.stdin.write("end\n")
    process.stdin.flush()
    output = finish(process)
    assert output == "right\n", output


def managed_run(place, tenant, kind, *arguments):
    """All its launches are managed."""
    process = place.begin_late(tenant, kind, *arguments)
    go(process, 2)
    end(process)
    found = place.treatments(process, "add", ADDS)
    assert found == {BY_PTX: 2 * ADDS}, found


def upgraded(place):
    """It starts unmanaged, gets its form without a load of its own, and both is in the journal. The next run,
    and the next server, have it at once."""
    program = place.begin_late("first", "plain", "GRAPH")
    go(program, 2)
    found = place.treatments(program, "add", ADDS)
    assert found == {NOT_YET: 2 * ADDS}, found
    place.open_gate()
    go_until(place, program, TWO_READY)
    go(program, 3)
    for kernel, each in (("add", ADDS), ("add_by_shared", 1)):
        found = place.treatments(program, kernel, each)
        assert found[NOT_YET] >= 2 * each and found[BY_PTX] >= 3 * each and len(found) == 2, found
    assert place.said(TWO_READY) == 1, place.notes()
    end(program)
    managed_run(place, "second", "plain", "GRAPH")
    assert place.said(r"an image is loaded in managed form, managed by PTX \(2 kernels\)", "second"), \
        place.notes()
    place.wait_until_empty()
    place.stop()
    managed_run(place, "third", "plain")


def variables(place):
    """Code with variables of its own stays as it is in the first run, and is managed in the second."""
    program = place.begin_late("first", "variables")
    go(program, 2)
    place.open_gate()
    go_until(place, program, "2 " + MADE)
    go(program, 3)
    found = place.treatments(program, "add", ADDS)
    assert list(found) == [FOR_GOOD], found
    end(program)
    assert not place.said(READY), place.notes()
    managed_run(place, "second", "variables")


def together(place):
    """Two programs that load the same image at once: one compile, and each gets its form."""
    programs = [place.begin_late(tenant, "plain") for tenant in ("one", "two")]
    for program in programs:
        go(program, 2)
    place.open_gate()
    for program in programs:
        go_until(place, program, TWO_READY, program.tenant)
        go(program)
    for program in programs:
        found = place.treatments(program, "add", ADDS)
        assert found[BY_PTX] >= ADDS, found
        end(program)
    assert place.said("PTX of an image") == 1, place.notes()
    place.wait_until_empty()


def gone(place):
    """A program that is killed while its form is made: nothing is left, and the form serves the next."""
    program = place.begin_late("killed", "plain")
    go(program, 2)
    program.kill()
    finish(program, -9)
    place.wait_until_empty()
    place.open_gate()
    program = place.begin_late("next", "plain")
    go_until(place, program, "managed form is ready|loaded in managed form", "next")
    end(program)
    assert "after its code was unloaded" not in place.log(), place.log()


def refused(place):
    """A worker that fails is said once; the program goes on as it is."""
    place.use_worker(FAILING_WORKER)
    program = place.begin_late("first", "plain")
    go(program, 2)
    place.open_gate()
    go_until(place, program, "an image stays as the program made it: ")
    go(program, 3)
    assert place.said("stays as") == 1, place.notes()
    found = place.treatments(program, "add", ADDS)
    assert all("managed by" not in how for how in found), found
    end(program)


def lanes(place):
    """Several threads launch the kernel at once while it gets its form, each in turns with a kernel that
    never has one: one of them loads it, all of them launch it, and on each stream order is kept."""
    threads = 4
    program = place.begin_lanes("first", threads)
    each = threads * ADDS   # of each of the two kernels, which have one name
    go(program, 2)
    found = place.treatments(program, "step", 2 * each)
    assert found == {NOT_YET: 2 * each, FOR_GOOD: 2 * each}, found
    place.open_gate()
    go_until(place, program, READY + "1 kernels")
    before = place.treatments(program, "step", 2 * each)
    go(program, 5)
    after = place.treatments(program, "step", 2 * each)
    assert after[BY_PTX] == before.get(BY_PTX, 0) + 5 * each, (before, after)
    assert after[NOT_YET] == before[NOT_YET], (before, after)
    assert place.said(READY) == 1, place.notes()
    end(program)
    place.wait_until_empty()


def reloaded(place):
    """A module that is unloaded while its form is made does not get it; loaded again, it has it at once."""
    program = place.begin_lanes("first", 1)
    go(program, 2)
    say(program, "reload", "reloaded")   # it waits for the same compile
    go(program, 2)
    say(program, "reload", "reloaded")
    place.open_gate()
    place.wait_for_notes("1 " + MADE, 2)   # of both modules
    say(program, "reload", "reloaded")   # before any launch could take it
    go(program, 2)
    found = place.treatments(program, "step", 2 * ADDS)
    assert found == {NOT_YET: 4 * ADDS, BY_PTX: 2 * ADDS, FOR_GOOD: 6 * ADDS}, found
    assert not place.said(READY), place.notes()
    assert place.said("is loaded in managed form") == 1, place.notes()
    end(program)
    place.wait_until_empty()
    assert "after its code was unloaded" not in place.log(), place.log()


def chased(place):
    """Modules that are unloaded behind their launches, sooner or later than their forms come."""
    place.open_gate()
    program = place.begin("first", place.programs / "sim_swap", "chase", "64")
    assert finish(program).endswith("right\n")
    assert place.said(READY), "no form came in time: nothing was tested"
    place.wait_until_empty()
    assert "after its code was unloaded" not in place.log(), place.log()


def captured(place):
    """A launch that is captured takes no form, as nothing may be loaded then; the next other launch does.
    The graph goes on with what it holds."""
    program = place.begin_lanes("first", 1)
    say(program, "capture", "captured")
    place.open_gate()
    place.wait_for_notes("1 " + MADE, 2)   # of both modules
    say(program, "capture", "captured")
    assert not place.said(READY), place.notes()
    go(program, 2)
    assert place.said(READY) == 1, place.notes()
    say(program, "capture", "captured")
    go(program)
    found = place.treatments(program, "step", 2 * ADDS)
    assert found == {BY_PTX: 3 * ADDS, FOR_GOOD: 3 * ADDS}, found
    end(program)
    place.wait_until_empty()


def main():
    smt, programs, compiled, scenario = sys.argv[1:]
    with Late(smt, programs, compiled) as place:
        globals()[scenario](place)


if __name__ == "__main__":
    main()
