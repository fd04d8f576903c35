#!/usr/bin/env python3
"""Fenced tenants (smt run --isolation fence) on the simulated device, where a fault of the device itself ends
all programs.

    fences.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import re

from place import MANAGED, PATIENCE, run_scenario, wait_for
from strict import Apart, goes_on
from takeover import say

FENCE = ("--isolation", "fence")
ADDRESS, MISALIGNED = "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS"
FAILED, ASSERT = "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ASSERT"
REFUSED = "CUDA_ERROR_NOT_SUPPORTED"
KERNELS = ("load", "store", "atomic", "vector", "generic", "copy", "in_function")
WELL = ("load", "before", "atomic", "vector", "generic", "copy", "no_copy", "guarded", "in_function",
        "variable")
WAITS = "spins"   # a block of it might wait for another one, so it has no managed form where all run at once
# Kernel, where, error, and what the log says of the access.
FAULTS = (
    *((kernel, where, ADDRESS, "") for kernel in KERNELS for where in ("null", "wild")),
    *((kernel, "neighbour", ADDRESS, "") for kernel in KERNELS),
    *((kernel, "beyond", ADDRESS, "") for kernel in KERNELS),
    *((kernel, "odd", MISALIGNED, "") for kernel in KERNELS),
    *((kernel, where, ADDRESS, "") for kernel in ("load", "generic") for where in ("freed", "unpinned")),
    ("load", "null", ADDRESS, r"load of 4 bytes at 0x0 \(global memory\), in load, block \(\d, 0, 0\)"),
    ("store", "wild", ADDRESS, r"store of 4 bytes at 0x1234560 \(global memory\), in store"),
    ("in_function", "wild", ADDRESS, r"atomic of 4 bytes at 0x1234560 \(global memory\), in inner, thread"),
    ("before", "own", ADDRESS, "of 4 bytes at .*fff000 "),   # the lowest of two that are checked at once
    ("guarded", "null", ADDRESS, "load of 4 bytes at 0x40 "),
    ("shared_beyond", "own", ADDRESS, "store of 4 bytes at .*shared memory"),
    ("generic_beyond", "own", ADDRESS, "a generic address"),
    ("barrier", "wild", ADDRESS, r"in barrier, block \(\d, 0, 0\), thread \(33, 0, 0\)"),
    ("spins", "wild", ADDRESS, r"in spins, block \(\d, 0, 0\), thread \(33, 0, 0\)"),
    ("traps", "own", FAILED, "a trap in traps"),
    ("breaks", "own", FAILED, "a trap in breaks"),
    ("asserts", "own", ASSERT, "a failed assert in asserts"),
)


def fence_contained(smt, programs, how="unmanaged", **environment):
    """Whatever a fenced program's kernel does: it gets the error, in one server, and its neighbour, which
    computes all the time, has the right sums in the end."""
    with Apart(smt, programs) as place:
        place.environment.update(environment)
        neighbour = place.survivor("neighbour", options=())
        before = place.servers()["simulated"]["pid"]
        for turn, (kernel, where, error, said) in enumerate(FAULTS):
            name = f"culprit{turn}"
            output = place.run(name, "fenced", kernel, where, options=FENCE)
            assert error in output.splitlines(), (kernel, where, output)
            ended = re.compile(rf"{name},.*ended by its fence, other programs go on: (.*)")
            wait_for(lambda: ended.search(place.log()), lambda: f"no line of {name}: {kernel} {where}")
            line = ended.search(place.log())
            assert re.search(said, line[1]), (kernel, where, said, line[1])
            say(neighbour, f"turn {turn}")
        assert place.servers()["simulated"]["pid"] == before
        goes_on(neighbour)
        assert "is lost" not in place.log(), place.log()
        mine = [entry for entry in place.launches() if entry["tenant"] != "neighbour"]
        other = [entry for entry in mine if not entry["treatment"].startswith(how)]
        assert mine and all(entry["kernel"] == WAITS and "may wait for each other" in entry["treatment"]
                            for entry in other), other


def fence_copies(smt, programs):
    """A copy behind the kernel has its error: the program may look at nothing else."""
    with Apart(smt, programs) as place:
        for kernel in "load", "store":
            output = place.run("culprit", "fenced", kernel, "wild", "copies", options=FENCE)
            assert ADDRESS in output.splitlines(), output
        output = place.run("good", "fenced", "store", "own", "copies", options=FENCE)
        assert output.startswith("CUDA_SUCCESS\n"), output


def fence_managed(smt, programs):
    """The same with managed forms, for launches that may be stopped."""
    fence_contained(smt, programs, "managed by PTX", SMT_COMPILE=MANAGED, SMT_POLICY="fair")


def fence_at_the_door(smt, programs):
    fence_contained(smt, programs, "has a door", SMT_SIM="grace=50,one_context=1,doors=1", SMT_POLICY="fair")


def fence_not_there(smt, programs):
    """Twins: without a fence a kernel writes into the neighbour's memory, and a wild address ends both."""
    with Apart(smt, programs) as place:
        neighbour = place.survivor("neighbour", options=())
        output = place.run("culprit", "fenced", "store", "neighbour")
        assert output.startswith("CUDA_SUCCESS\n"), output
        output = place.run("culprit", "fenced", "store", "wild")
        assert ADDRESS in output.splitlines(), output
        assert "CUDA_SUCCESS" not in neighbour.communicate("on\n", timeout=PATIENCE)[0]


def fence_well_behaved(smt, programs):
    """What is right goes through: own, pinned, shared, local memory and variables, with managed forms too."""
    for compile_ in "ptx=0", MANAGED:
        with Apart(smt, programs) as place:
            place.environment["SMT_COMPILE"] = compile_
            for kernel in WELL:
                if kernel == "before":
                    continue   # one of its accesses is behind the memory
                for where in "own", "pinned":
                    output = place.run("good", "fenced", kernel, where, options=FENCE)
                    assert output == "CUDA_SUCCESS\n256\n", (kernel, where, output)
            assert "ended by its fence" not in place.log()


def fence_tables(smt, programs):
    """Tables that the compiler put into an image are read: NVIDIA's of mathematical functions, alone and
    beside constant ones of the program's own."""
    for compile_ in "ptx=0", MANAGED:
        with Apart(smt, programs) as place:
            place.environment["SMT_COMPILE"] = compile_
            for program in "tables", "tables_own":
                output = place.run("good", program, options=FENCE)
                assert output == "right\n", (program, output)
            assert "ended by its fence" not in place.log()


def fence_refused(smt, programs):
    """A kernel that cannot be fenced is refused at its launch, by name; it is counted, and the program may
    go on with others."""
    with Apart(smt, programs) as place:
        output = place.run("odd", "fenced", "mallocs", "own", options=FENCE)
        assert output == REFUSED + "\n", output
        place.wait_for_line("mallocs cannot be fenced: it calls malloc, whose code is not here")
        wait_for(lambda: re.search("mallocs, which cannot be fenced .*1", place.command("log")),
                 lambda: place.command("log"))   # the session writes it, with its device's clock


def fence_by_administrator(smt, programs):
    """SMT_FENCE_TENANTS of the server names tenants that are fenced whatever they say."""
    with Apart(smt, programs) as place:
        place.environment["SMT_FENCE_TENANTS"] = "other, culprit"
        output = place.run("culprit", "fenced", "store", "wild")
        assert ADDRESS in output.splitlines(), output
        assert "ended by its fence" in place.log() and "is lost" not in place.log(), place.log()
        there = [place.survivor(name, options=()) for name in ("other", "free")]
        fenced = {each["tenant"]: each["fenced"] for each in place.servers()["simulated"]["tenants"]}
        assert fenced == {"other": True, "free": False}, fenced
        for each in there:
            goes_on(each)


if __name__ == "__main__":
    run_scenario(globals())
