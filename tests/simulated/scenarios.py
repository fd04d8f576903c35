#!/usr/bin/env python3
"""Programs under smt on the simulated device, and what its journal says.

    scenarios.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import os
import pathlib
import re
import signal
import subprocess

from place import MANAGED, PATIENCE, Place, finish, run_scenario, runs


def one_program(smt, programs):
    with Place(smt, programs) as place:
        place.run("one", "work", "5", "16")
        launches = place.launches()
        assert [entry["kernel"] for entry in launches] == ["add", "spin"] * 5, launches
        for entry in launches:
            assert entry["tenant"] == "one" and entry["clock"] == "virtual"
            assert 0 < entry["start_ns"] < entry["end_ns"]
        assert launches[1]["sms"] == list(range(8)) and launches[1]["ctas_per_sm"] == 2
        starts = [entry["start_ns"] for entry in launches]
        assert starts == sorted(starts)


def journal_of_two(smt, programs, pauses):
    """The journal of two programs side by side, without what is the machine's: process ids."""
    with Place(smt, programs, tenants=2) as place:
        # Which program comes first in real time changes from run to run.
        order = [("alpha", "40", pauses[0]), ("beta", "24", pauses[1])]
        if pauses[0] > pauses[1]:
            order.reverse()
        started = [place.start(tenant, "work", "6", blocks, str(pause)) for tenant, blocks, pause in order]
        for process in started:
            finish(process)
        return re.sub(r'"value":\d+', '"value":0', place.journal())


def same_times(smt, programs):
    """Two runs give the same journal to the byte, whatever the host does meanwhile."""
    first = journal_of_two(smt, programs, (0, 0))
    assert first.count('"launch"') == 24, first
    tenants = [json.loads(line)["tenant"] for line in first.splitlines() if '"launch"' in line]
    assert tenants != sorted(tenants), "the two did not run side by side"
    for pauses in [(0, 0), (0, 30), (30, 5)]:
        again = journal_of_two(smt, programs, pauses)
        assert first == again, f"with pauses {pauses} the journal differs:\n{first}\n{again}"


def head_of_line(smt, programs):
    """A single warp behind a kernel that fills the device: with the exact virtual times."""
    def times(*small):
        with Place(smt, programs, tenants=2, sms=2) as place:
            large, behind = place.start("a-large", "line", "large"), place.start("b-small", "line", *small)
            finish(large), finish(behind)
            launches = {entry["tenant"]: entry for entry in place.launches()}
            return launches["a-large"], launches["b-small"]

    # 64 blocks of which 4 are resident. The warp comes when some are done, and waits until the last is given
    # out.
    large, small = times("small")
    seen = (large["start_ns"], small["time_ns"], small["start_ns"], small["end_ns"], large["end_ns"])
    assert seen == (32289, 62578, 93841, 95047, 95788), seen
    # With priority it gets the first place that becomes free.
    large, urgent = times("small", "urgent")
    seen = (large["start_ns"], urgent["time_ns"], urgent["start_ns"], urgent["end_ns"], large["end_ns"])
    assert seen == (32289, 62578, 64239, 65584, 95720), seen


def polling(smt, programs):
    with Place(smt, programs, grace=20) as place:
        place.run("poller", "polls")
        assert len(place.launches()) == 3


WAYS = {
    "malformed": ("CUDA_ERROR_INVALID_PTX", r"PTX line 6"),
    "unknown": ("CUDA_ERROR_INVALID_PTX", r"frobnicate"),
    "missing": ("CUDA_ERROR_INVALID_PTX", r"nowhere"),
    "symbol": ("CUDA_ERROR_NOT_FOUND", None),
    "wild": ("CUDA_ERROR_ILLEGAL_ADDRESS", r"wild.*0x1234560"),
    "beyond": ("CUDA_ERROR_ILLEGAL_ADDRESS", r"wild"),
    "freed": ("CUDA_ERROR_ILLEGAL_ADDRESS", r"freed"),
    "misaligned": ("CUDA_ERROR_MISALIGNED_ADDRESS", r"wild"),
    "endless": ("CUDA_ERROR_LAUNCH_TIMEOUT", r"kernel endless did not end within 100000 warp-instructions"),
    "stuck": ("CUDA_ERROR_LAUNCH_TIMEOUT", r"kernel stuck waits for ever"),
}


def misbehaviour(smt, programs):
    """Each gets its error, with a clear line in the log, and the program beside it goes on."""
    with Place(smt, programs, step_limit=100000) as place:
        neighbour = place.start("neighbour", "work", "40", "8", "50")
        for way, (error, text) in WAYS.items():
            output = place.run(way, "misbehave", way)
            assert error in output.splitlines(), f"{way}: {output}"
            line = next((line for line in place.log().splitlines() if f"({way}, pid" in line), "")
            print(f"{way}: {line[line.find('session'):]}")
            assert text is None or re.search(text, line), f"{way}: no line about it: {line}"
        finish(neighbour)
        assert len([entry for entry in place.launches() if entry["tenant"] == "neighbour"]) == 80


def device_output(smt, programs):
    """What kernels print reaches the program they are of."""
    with Place(smt, programs) as place:
        started = [place.start(f"say{i}", "speak", str(i)) for i in range(3)]
        for number, process in enumerate(started):
            output = finish(process)
            assert output == "".join(f"block {block} says {number}" for block in range(4)), output


def memory_and_graphs(smt, programs):
    with Place(smt, programs) as place:
        place.run("memory", "memory")
        place.run("graph", "graph")
        place.run("nested", "nested")
        of_graphs = [entry for entry in place.launches() if entry["tenant"] == "graph" and
                     entry["kernel"] == "add"]
        assert len(of_graphs) == 5, "kernels of graphs are in the journal"
        assert all(entry["sms"] == list(range(8)) for entry in of_graphs)


def events_of_graphs(smt, programs):
    """Queries and waits for an event that a graph records go by the graph's last launch."""
    with Place(smt, programs) as place:
        place.run("one", "event_nodes")


def capture_modes(smt, programs):
    with Place(smt, programs) as place:
        place.run("one", "capture_modes")


def late_errors(smt, programs):
    """A call that returns an earlier one's error, or leaves it to a later one, is made itself."""
    with Place(smt, programs) as place:
        place.run("one", "late_errors")


def system_atomics(smt, programs):
    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = "ptx=1"   # by the PTX of the image, before there is a managed form
        place.run("one", "atomics")
        refused = [entry["name"] for entry in map(json.loads, place.journal().splitlines())
                   if entry["kind"] == "unsupported"]
        assert sorted(set(refused)) == ["cuGraphAddKernelNode_v2", "cuLaunchKernel"], refused


def unloading(smt, programs):
    """No kernel runs in code that was unloaded: in its program's own form, and in managed form, stopped half
    way. Two programs at once."""
    for ptx, options in (("0", ()), ("1", ("--stress", "7"))):
        with Place(smt, programs) as place:
            place.environment["SMT_COMPILE"] = f"{MANAGED},ptx={ptx}"
            both = [place.start(name, "unload", options=options) for name in ("one", "two")]
            for program in both:
                finish(program)
            assert "after its code was unloaded" not in place.log(), place.log()


def spare_code(smt, programs):
    """Of a program that runs again, what is as it was before its first run is not loaded again: two images of
    five, or one where the attributes of managed forms were set, too. Nor is it kept where memory is short, or
    the administrator has none kept."""
    taken = "an image was loaded before, and no program had it"
    for compiles, kept in (("ptx=0", 2), (MANAGED, 1)):
        with Place(smt, programs, memory="64M") as place:
            place.environment["SMT_COMPILE"] = compiles
            for run in range(3):
                place.run("one", "spare")
                assert place.log().count(taken) == kept * run, place.log()
            place.run("fills", "spare", "fills")
            assert place.log().count(taken) == kept * 2, place.log()
    with Place(smt, programs) as place:
        place.environment["SMT_LIMITS"] = "spare_code=0"
        for _ in range(2):
            place.run("one", "spare")
        assert taken not in place.log(), place.log()


def shared_room(smt, programs):
    """Launches that use all of a block's shared memory run in managed form where that has room for them."""
    with Place(smt, programs, sms=4, grace=50) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        place.run("one", "shared_room")
        done = subprocess.run([smt, "log", "--kernels", "--json"], env=place.environment, check=True,
                              capture_output=True, text=True, timeout=PATIENCE)
        found = {row["how"]: row["launches"] for row in map(json.loads, done.stdout.splitlines())}
        assert found == {"managed by PTX": 2, "unmanaged": 1}, done.stdout


def variables_count(smt, programs):
    with Place(smt, programs) as place:
        place.run("counted", "variables", options=("--memory", "256M"))


def survives_a_kill(smt, programs):
    with Place(smt, programs) as place:
        victim = place.start("victim", "work", "100000", "64")
        place.wait_for_launch("victim")
        victim.kill()
        finish(victim, -9)
        place.run("next", "work", "2", "8")
        place.wait_until_empty()


def dies(smt, programs, what, **environment):
    with Place(smt, programs, grace=50) as place:
        place.environment.update(environment)
        victim = place.start("victim", "leaves", what)
        assert victim.stdout.readline() == "ready\n"
        victim.kill()
        finish(victim, -9)
        place.wait_until_empty()
        place.run("next", "work", "2", "8")


def lost(place, way, *beside):
    """`way` faults beside a program that has nothing under way, and others: what each of the two says."""
    bystander = place.start("bystander", "bystander", stdin=subprocess.PIPE)
    assert bystander.stdout.readline() == "ready\n"
    started = [place.start(*each) for each in beside]
    for program in started:
        assert program.stdout.readline() == "ready\n"
    culprit = place.run("culprit", "misbehave", way)
    for program in started:
        program.kill()
        finish(program, -9)
    return culprit, bystander.communicate("go\n", timeout=PATIENCE)[0]


def streams_wait_crosswise(smt, programs):
    """A launch that may be stopped waits for what the same thread enqueues later: nothing waits for its
    end."""
    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        urgent = place.start("urgent", "crossed", "idle", options=("--priority", "high"),
                             stdin=subprocess.PIPE)
        assert urgent.stdout.readline() == "ready\n"
        place.run("crossed", "crossed", options=("--priority", "low"))
        finish(urgent)


def many_functions(smt, programs):
    """Graphs that come and go use up nothing by their host functions."""
    with Place(smt, programs) as place:
        place.run("functions", "functions")


def one_context(smt, programs):
    """Where a fault loses the context, every session ends with its error and a line that says of which kernel
    and tenant it was, and the next program finds a fresh server."""
    for way, (error, number, kernel) in {
            "wild": ("CUDA_ERROR_ILLEGAL_ADDRESS", 700, "wild"),
            "misaligned": ("CUDA_ERROR_MISALIGNED_ADDRESS", 716, "wild"),
            "traps": ("CUDA_ERROR_LAUNCH_FAILED", 719, "traps"),
            "stuck": ("CUDA_ERROR_LAUNCH_TIMEOUT", 702, "stuck")}.items():
        with Place(smt, programs, one_context=1, grace=50) as place:
            culprit, bystander = lost(place, way)
            named = f"{error} ({number}) in kernel {kernel} of tenant culprit (sim_misbehave, pid "
            for output in (culprit, bystander):
                assert error in output.splitlines(), f"{way}: {output}"
                assert output.count("\n") == 2 and named in output, f"{way}: {output}"
            cleared = "It was no kernel of this program"
            assert cleared in bystander and cleared not in culprit, f"{way}: {bystander}{culprit}"
            line = next(line for line in place.log().splitlines() if "the shared context is lost" in line)
            assert named in line and "It was no kernel of tenant bystander (sim_bystander" in line, line
            place.run("next", "work", "2", "8")
            assert f"{error} ({number})" in subprocess.run(
                [smt, "status"], env=place.environment, capture_output=True, text=True, check=True,
                timeout=PATIENCE).stdout
    # Beside a tenant with launches under way no kernel is accused.
    with Place(smt, programs, one_context=1, grace=50) as place:
        culprit, bystander = lost(place, "wild", ("neighbour", "leaves", "endless"))
        assert "of which kernel is not known" in culprit and "It was no kernel of this" in bystander, culprit
        for suspect in ("tenant neighbour (sim_leaves", "tenant culprit (sim_misbehave"):
            assert suspect in culprit and suspect in bystander, bystander


def keeper_of(place):
    return int(re.search(r"tenants' memory belongs to smt-keeper, process (\d+)", place.log())[1])


def kept(smt, programs):
    """Under SMT_KEEPER=1 programs run as without; the keeper ends with the server."""
    with Place(smt, programs) as place:
        place.environment["SMT_KEEPER"] = "1"
        both = [place.start(name, "work", "4", "16") for name in ("one", "two")]
        for program in both:
            finish(program)
        place.run("memory", "memory")
        place.run("counted", "variables", options=("--memory", "256M"))
        keeper = keeper_of(place)
        assert runs(keeper)
        place.wait_until_empty()
        # the keeper holds nothing any more either: its memfds are its chunks
        files = [os.readlink(f) for f in pathlib.Path(f"/proc/{keeper}/fd").iterdir()] if os.access(
            f"/proc/{keeper}/fd", os.R_OK) else []
        assert not any("smt-kept" in file for file in files), files
    assert not runs(keeper), "the keeper outlives its server"


def keeper_killed(smt, programs):
    """Programs go on, those that come can be served, and one line says what is different."""
    with Place(smt, programs, grace=50) as place:
        place.environment["SMT_KEEPER"] = "1"
        bystander = place.start("bystander", "bystander", stdin=subprocess.PIPE)
        assert bystander.stdout.readline() == "ready\n"
        os.kill(keeper_of(place), signal.SIGKILL)
        place.run("next", "work", "4", "16")
        assert bystander.communicate("go\n", timeout=PATIENCE)[0] == "CUDA_SUCCESS\n"
        assert bystander.returncode == 0
        place.wait_until_empty()
        place.wait_for_line("smt-keeper was killed by signal 9: what is mapped stays")
        assert place.log().count("smt-keeper was killed") == 1, place.log()


def dies_in_flight(smt, programs):
    """Managed launches of a program that is gone are stopped, with something enqueued behind them or not."""
    dies(smt, programs, "launches", SMT_COMPILE=MANAGED)


def dies_waiting(smt, programs):
    """Nor does a stream of it wait for a value any more."""
    dies(smt, programs, "waits")


def notes(place, kind):
    return [entry for line in place.journal().splitlines() if (entry := json.loads(line))["kind"] == kind]


def mixed_under_stress(smt, programs):
    """Managed and unmanaged kernels in one stream, the managed ones stopped and resized at random."""
    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        for seed in range(1, 7):
            output = place.run("mixed", "mixed", "60", options=("--stress", str(seed)))
            assert re.fullmatch(r"[1-9]\d+ launches as they are\n", output), output
        schedules = [int(found[1]) for note in notes(place, "note")
                     if (found := re.search(r"under stress: (\d+) schedules", note["text"]))]
        assert sum(schedules) > 100, f"hardly anything was managed: {schedules}"


def mixed_beside_urgent(smt, programs):
    """The same beside programs that it has to give way to, which come and go."""
    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        low = [place.start("low", "mixed", "150", options=("--priority", "low")) for _ in range(2)]
        for turn in range(4):
            high = [place.start("high", "mixed", "20", "3", options=("--priority", "high")),
                    place.start("middle", "mixed", "20", "2")]
            for process in high:
                finish(process)
        for process in low:
            assert re.fullmatch(r"[1-9]\d+ launches as they are\n", finish(process))
        reasons = {re.sub(r" .*", "", note["text"]) for note in notes(place, "decision")
                   if note["tenant"] == "low"}
        assert {"held", "stopped"} & reasons and "goes" in reasons, reasons


def confined(smt, programs):
    """Tenants that are confined have multiprocessors of their own, whatever way their kernels run."""
    with Place(smt, programs) as place:
        # the device is divided in twos
        finish_all = [place.start("three", "work", "3", "40", options=("--sms", "3")),
                      place.start("four", "work", "3", "40", options=("--sms", "4")),
                      place.start("all", "work", "3", "40")]
        for process in finish_all:
            finish(process)
        place.run("many", "work", "1", "40", options=("--sms", "100"))
        sets = {}
        for entry in place.launches():
            sets.setdefault(entry.get("tenant"), set()).update(entry["sms"])
        assert len(sets["three"]) == 4 and len(sets["four"]) == 4 and not sets["three"] & sets["four"], sets
        assert sets["all"] == sets["many"] == set(range(8)), sets
        told = {re.sub(r".*\((\w+), pid.*", r"\1", note["text"]): note["text"]
                for note in notes(place, "note") if "pid" in note["text"]}
        assert "4 multiprocessors (" in told["three"] and "of 8; 3 were asked for" in told["three"], told
        assert "not confined to 100 multiprocessors: that is all there are" in told["many"], told

    # What must run all at once and does not fit there runs everywhere.
    with Place(smt, programs) as place:
        place.run("together", "line", "together", options=("--sms", "4"))
        assert place.launches()[-1]["sms"] == list(range(8))
        assert any("spin is a cooperative launch too large" in note["text"] for note in notes(place, "note"))

    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        for seed in (1, 2, 3):
            output = place.run(f"seed{seed}", "mixed", "60", options=("--stress", str(seed), "--sms", "4"))
            assert re.fullmatch(r"[1-9]\d+ launches as they are\n", output), output
        places, sets = set(), {}
        for entry in place.launches():
            places.add(tuple(entry["sms"]))
            sets.setdefault(entry["tenant"], set()).update(entry["sms"])
        # A tenant may come before the last one's set was given back, and get another.
        assert len(places) > 3 and len(sets) >= 3 and all(len(each) == 4
                                                          for each in sets.values()), (places, sets)


def confined_by_policy(smt, programs):
    """Beside an urgent tenant, kernels whose blocks take an unknown time leave a part of the
    device."""
    with Place(smt, programs) as place:
        high = place.start("high", "work", "100000", "4", "20", options=("--priority", "high"))
        place.wait_for_launch("high")
        place.run("low", "work", "4", "40", options=("--priority", "low"))
        high.kill()
        finish(high, -9)
        launches = place.launches()
        first = {kernel: next(entry for entry in launches if entry["tenant"] == "low" and
                              entry["kernel"] == kernel) for kernel in ("add", "spin")}
        assert all(entry["sms"] == list(range(6)) for entry in first.values()), first
        assert any(6 in entry["sms"] for entry in launches
                   if entry["tenant"] == "high"), "the urgent one has all"
        reasons = [note["text"] for note in notes(place, "decision") if note["tenant"] == "low"]
        assert any("keep to 6 multiprocessors of 8" in reason for reason in reasons), reasons


def tenants_order(smt, programs):
    """A warp of an urgent tenant gets the first place that becomes free; of the less urgent one, the
    program's own priority does not help it."""
    def times(large_options, small_options, *small):
        with Place(smt, programs, tenants=2, sms=2) as place:
            large = place.start("a-large", "line", "large", options=large_options)
            behind = place.start("b-small", "line", *small, options=small_options)
            finish(large), finish(behind)
            launches = {entry["tenant"]: entry for entry in place.launches()}
            return launches["a-large"], launches["b-small"]

    # The large one runs for 63 us, each of its blocks for 4.
    large, small = times((), ("--priority", "high"), "small")
    assert small["start_ns"] < max(small["time_ns"],
                                   large["start_ns"]) + 4500 < large["end_ns"] - 20000, (large, small)
    large, small = times((), ("--priority", "low"), "small", "urgent")
    assert small["start_ns"] > large["end_ns"] - 4500, (large, small)


def compiled(smt, programs, images):
    """Images as nvcc makes them: PTX beside machine code, PTX alone, and machine code alone, which is
    refused."""
    with Place(smt, programs) as place:
        for image in ["both", "ptx"]:
            output = place.run(image, "compiled", f"{images}/compiled-{image}.fatbin")
            assert re.fullmatch(r"registers \d+\nhello from block 0 of 2\nhello from block 1 of 2\n",
                                output), output
        place.run("cubin", "compiled", f"{images}/compiled-cubin.fatbin", "refused")
        assert re.search(r"\(cubin, pid \d+\): an image cannot be loaded: .*no PTX", place.log()), place.log()
        registers = {entry["registers"] for entry in place.launches() if entry["kernel"] == "reduce"}
        assert len(registers) == 2 and all(registers), "machine code knows better than the estimate"


if __name__ == "__main__":
    run_scenario(globals())
