#!/usr/bin/env python3
"""The papers' scenarios, end to end: programs under smt on the simulated device, decisions and mappings as
`smt log` has them.

    live.py SMT FOLDER_OF_PROGRAMS SCENARIO

Blocks wait at gates (programs/gates.cpp) that are opened when the journal says that the step before has been
taken. So nothing depends on how fast anything is.
"""
import subprocess
import sys
import time

from gated import PATIENCE, WARP, Brief, Gated, Stage, in_all, part_of_sm, said


def figure_6(smt, programs):
    """Adaptive Simultaneous Multi-tenancy: five CTAs, then three and three, then growth once the other has
    taken its last block."""
    blocks, sms = 4000, list(range(15))
    with Stage(smt, programs, "greedy", 15) as place:
        # Six fit on an SM; with the sixth nothing is faster. Blocks take so long that a ticket is one block.
        place.know(blocks, WARP, 1 / 6, {(15, ctas): 6_000_000_000 // min(ctas, 5) for ctas in range(1, 7)})
        first, second = (Gated(place, tenant, blocks, WARP, part_of_sm(1 / 6))
                         for tenant in ("first", "second"))
        place.until_known(blocks, WARP, 1 / 6, "5 CTAs an SM, beside 0 others")
        first.launch()
        place.until_decided("first", "5 CTAs an SM, beside 0 others")
        second.launch()
        place.until_decided("first", "3 CTAs an SM, beside 1 others")
        # its last blocks are taken when three are on each SM, and none of these ends
        second.open(blocks - 45)
        opened = 0

        def five_again():
            nonlocal opened
            # a worker that is one too many on its SM leaves behind its block; the other one may take longer
            if opened < blocks // 2:
                opened += 75
                first.open(opened)
            return place.decisions("first").count("5 CTAs an SM, beside 0 others") == 2

        place.until("the first kernel has five CTAs again", five_again)
        second.end()
        said(in_all(place.mappings("second")), (blocks, 45, sms))
        first.end()
        # 30 left, and as many came when there was room again
        said(in_all(place.mappings("first")), (blocks, 75 + 30, sms))
        said(place.decisions("first"), ["5 CTAs an SM, beside 0 others", "3 CTAs an SM, beside 1 others",
                                        "5 CTAs an SM, beside 0 others"])
        said(place.decisions("second"), ["3 CTAs an SM, beside 1 others"])


def figure_2_temporal(smt, programs):
    """FLEP, figure 2 (a): the urgent kernel needs the whole GPU, which the other gives up and gets back."""
    with Stage(smt, programs, "hpf", 2) as place:
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2)).launch()
        place.until("the long kernel is known to the policy", lambda: place.launches("long"))
        urgent = Gated(place, "urgent", 4, WARP, part_of_sm(1 / 2), priority="high").launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        long.open(4)
        place.until_stopped("long")
        urgent.end()
        place.until_decided("long", "has the GPU (priority 0)")
        long.end()
        said(in_all(place.mappings("urgent")), (4, 4, [0, 1]))
        said(in_all(place.mappings("long")), (1000, 8, [0, 1]))   # four that stopped, and four


def figure_2_spatial(smt, programs):
    """FLEP, figure 2 (b): it needs one of two SMs, and the other kernel goes on on the second. But the first
    time a kernel that may be over in a moment is waited for."""
    # or a thread that has to wait for a core would make it long
    with Stage(smt, programs, "hpf", 2, dispatch_clock=1) as place:
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2)).launch()
        place.until("the long kernel is known to the policy", lambda: place.launches("long"))
        urgent = Gated(place, "urgent", 2, WARP, part_of_sm(1 / 2), priority="high").launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        urgent.open()   # so it takes no time
        long.open(4)
        place.until_stopped("long")
        urgent.say("wait", "ended")
        place.until_decided("long", "has the GPU (priority 0)")
        long.say("begun 8", "begun")
        urgent.launch()
        place.until_decided("long", "has SMs 1 to 1 (priority 0)")
        long.open(8)
        place.until_stopped("long", 2)
        long.open(500)   # it works beside the urgent one
        urgent.end()
        place.until_decided("long", "has the GPU (priority 0)", 2)
        long.end()
        said(place.decisions("urgent"), ["has SMs 0 to 0 (priority 1)"])
        said(in_all(place.mappings("urgent")), (4, 4, [0, 1]))
        # four that stopped, twice, two on SM 1, two more when SM 0 was free
        said(in_all(place.mappings("long")), (1000, 12, [0, 1]))


def first_stop(smt, programs):
    """What stood behind launches that are over is no reason not to stop the next one for a program that
    comes now."""
    with Stage(smt, programs, "priority", 2) as place:
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2)).launch()
        # at once, and what is in flight can no longer be stopped: no program is there that might want it
        long.say("record", "recorded")
        long.open().say("wait", "ended")
        urgent = Gated(place, "urgent", 4, WARP, part_of_sm(1 / 2), priority="high")
        place.until("the more urgent program is there", lambda: place.entries("urgent", "opened"))
        long.launch()
        place.until("it has launched again", lambda: place.launches("long") == 2)
        urgent.launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        place.open_until_stopped(long, 1)
        urgent.end()
        long.end()


def tenant_leaves(smt, programs):
    """What a program had pinned is given back while the others stand still, where the policy may stop
    any of them: the driver would keep the dispatcher out until their launches are over."""
    with Stage(smt, programs, "greedy", 2, loads_wait=1) as place:
        # two that are left: one that is alone is not stopped
        stays, idle = Gated(place, "stays", 1000, WARP, part_of_sm(1 / 2)), Gated(place, "idle", 2, WARP, 0)
        for each in (stays, idle):   # what is loaded later would wait for gates
            each.launch().open().say("wait", "ended")
        # has no code that could be the reason
        command = [place.smt, "run", "--tenant", "leaves", "--", place.programs / "sim_gates"]
        leaves = subprocess.Popen(command, env=place.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        said(leaves.stdout.readline(), "started\n")
        stays.launch().say("begun 1", "begun")   # how many at once is for the server to try
        leaves.stdin.close()
        assert leaves.wait(PATIENCE) == 0
        place.until_decided("stays", "stands still: the driver loads or frees something for leaves")
        stays.end()
        idle.leave()


def tenant_unloads(smt, programs):
    """So it is with code. A moment after a standstill there is none, and no program is kept out for that:
    the one that unloads waits for the next one."""
    with Stage(smt, programs, "greedy", 2, loads_wait=1) as place:
        place.environment["SMT_LIMITS"] = "spare_code=0"
        stays, other = Gated(place, "stays", 1000, WARP, part_of_sm(1 / 2)), Gated(place, "other", 2, WARP, 0)
        for each in (stays, other):
            each.launch().open().say("wait", "ended")
        # some 20 to 40 ms after a load there would be none; the others are as good, and prove less
        for times, pause in enumerate((0, 0.007, 0.014, 0.021), 1):
            other.say("load", "loaded")
            stays.launch().say("begun 1", "begun")
            time.sleep(pause)
            other.say("unload")
            place.until_decided("stays", "stands still: the driver loads or frees something for other", times)
            stays.open().say("wait", "ended")
            assert other.process.stdout.readline() == "unloaded\n"
        stays.leave()
        other.leave()


def idle_urgent(smt, programs):
    """Launches that are over hold up no program, although their end was not seen: when the urgent program
    launched, it was alone."""
    with Stage(smt, programs, "priority", 2) as place:
        urgent = Brief(place, "urgent", "21", priority="high")   # markers are behind every fourth, or eighth
        place.until("its launches are over", lambda: len(place.entries("urgent", "launch")) == 21)
        Gated(place, "long", 1000, WARP, part_of_sm(1 / 2)).launch().end()
        urgent.end()


def for_a_value(urgent):
    urgent.say("hold", "held")
    urgent.launch()


def by_an_event(urgent):
    """Over two streams."""
    urgent.say("hold", "held")
    urgent.say("follow", "followed")
    urgent.say("follow", "followed")
    urgent.launch()


def in_a_graph(urgent):
    """With a launch behind the graph: hpf lets unmanaged work alone."""
    urgent.say("graph", "launched")
    urgent.launch()


def waiting_urgent(smt, programs, policy="priority", waits=for_a_value):
    """A tenant that waits for a value, with a launch behind the wait, stops no other one: until the value is
    there, or another stream of it has work."""
    with Stage(smt, programs, policy, 2) as place:
        urgent = Gated(place, "urgent", 4, WARP, part_of_sm(1 / 2), priority="high")
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2))
        for each in (urgent, long):   # their code is loaded
            each.launch().open().say("wait", "ended")
        waits(urgent)
        urgent.open().say("release", "released")
        urgent.say("wait", "ended")   # no other tenant has work: nothing else makes the server look
        waits(urgent)
        long.launch().open()
        place.until("the long one has run",
                    lambda: sum(entry["value"] for entry in place.entries("long", "mapping")) >= 2000)
        long.say("wait", "ended")
        said([text for text in place.decisions("long") if "urgent" in text], [])
        long.launch().say("begun 1", "begun")   # how many at once is for the server to try
        urgent.say("other", "switched")
        urgent.launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        opened = place.open_until_stopped(long, 1)
        urgent.open()
        long.say(f"begun {opened + 1}", "begun")
        urgent.open(0).say("release", "released")
        place.until_decided("long", "stopped for urgent (priority 1 over 0)", 2)
        place.open_until_stopped(long, 2)
        urgent.end()
        long.end()


def waiting_urgent_hpf(smt, programs):
    """The same where the policy holds launches back before each."""
    waiting_urgent(smt, programs, "hpf-whole")


def waiting_by_event(smt, programs):
    waiting_urgent(smt, programs, "priority", by_an_event)


def waiting_by_event_hpf(smt, programs):
    waiting_urgent(smt, programs, "hpf-whole", by_an_event)


def waiting_in_graph(smt, programs):
    waiting_urgent(smt, programs, "priority", in_a_graph)


def two_threads(smt, programs):
    """A thread that waits for a stream waits for what was launched before, also where a more urgent program
    is there, and launches are looked after one by one."""
    with Stage(smt, programs, "priority", 2) as place:
        urgent = Brief(place, "urgent", "1", priority="high")
        Brief(place, "endless", "endless", blocks=4).end()   # there are up to 512 launches to wait for
        urgent.end()


def saturates(sms, ctas, blocks):
    """With so many CTAs each on so many of 30 SMs, of one SM's throughput: 5 % less than all that there is is
    taken for enough."""
    return {(1, ctas): 1e6 * blocks, (30, ctas): 1e6 * blocks * 0.95 / (sms - 0.5)}


def table(smt, programs, kernels, then):
    """smCompactor: kernels come one after the other, (tenant, blocks, threads, part of an SM, (SMs, CTAs) at
    which it is saturated), and each gets its places, (CTAs, SMs). `then` checks all of them, and where they
    were: {tenant: mappings}."""
    with Stage(smt, programs, "compact", 30) as place:
        for _, blocks, threads, part, (sms, ctas), _ in kernels:
            place.know(blocks, threads, part, saturates(sms, ctas, blocks))
        for _, blocks, threads, part, (sms, ctas), _ in kernels:
            place.until_known(blocks, threads, part, f"{sms * ctas} CTAs on {sms} of 30 SMs")
        started = {}
        for tenant, blocks, threads, part, _, (ctas, sms) in kernels:
            started[tenant] = Gated(place, tenant, blocks, threads, part_of_sm(part)).launch()
            place.until_decided(tenant, f"{ctas} CTAs on {sms} of 30 SMs")
            if len(started) == 1:   # it has begun everywhere
                started[tenant].open(30 * int(1 / part))
                place.until_stopped(tenant)
        decided = {tenant: place.decisions(tenant) for tenant in started}
        for each in reversed(started.values()):
            each.end()
        then(decided, {tenant: in_all(place.mappings(tenant)) for tenant in started})


def table_2(smt, programs):
    """FT, LM, then BS: 25 of 30 SMs in use, and all. Where LM and BS are together LM has two CTAs, and BS
    twelve instead of sixteen."""
    def then(decided, mapped):
        said(decided, {"FT": ["15 CTAs on 15 of 30 SMs"], "LM": ["35 CTAs on 25 of 30 SMs"],
                       "BS": ["200 CTAs on 15 of 30 SMs"]})
        said({tenant: mapped[tenant] for tenant in ("LM", "BS")},
             {"LM": (8000, 35, list(range(25))), "BS": (1000, 200, list(range(15, 30)))})

    table(smt, programs,
          [("FT", 1000, 32, 7 / 8, (15, 1), (15, 15)), ("LM", 8000, 64, 1 / 8, (18, 2), (35, 25)),
           ("BS", 1000, 96, 1 / 16, (15, 16), (200, 15))], then)


def table_3(smt, programs):
    """LM, BS, then FT: both on 20 SMs, FT on the ten others, where one of the two takes the room that is
    left: the one that is thought to have the longest way to go, which is estimated from what it has done."""
    def then(decided, mapped):
        tuned = {"LM": "90 CTAs on 30 of 30 SMs", "BS": "250 CTAs on 30 of 30 SMs"}
        said([tenant for tenant, text in tuned.items() if text in decided[tenant]] in (["LM"], ["BS"]), True)
        said({tenant: texts[0] for tenant, texts in decided.items()},
             {"LM": "80 CTAs on 20 of 30 SMs", "BS": "240 CTAs on 20 of 30 SMs",
              "FT": "10 CTAs on 10 of 30 SMs"})
        said(mapped["FT"], (1000, 10, list(range(20, 30))))

    table(smt, programs,
          [("LM", 8000, 64, 1 / 16, (20, 4), (80, 20)), ("BS", 1000, 96, 1 / 16, (15, 16), (240, 20)),
           ("FT", 1000, 32, 15 / 16, (15, 1), (10, 10))], then)


def main():
    smt, programs, scenario = sys.argv[1:]
    {each.__name__: each
     for each in (figure_6, figure_2_temporal, figure_2_spatial, first_stop, tenant_leaves, tenant_unloads,
                  idle_urgent, waiting_urgent, waiting_urgent_hpf, waiting_by_event,
                  waiting_by_event_hpf, waiting_in_graph, two_threads, table_2,
                  table_3)}[scenario](smt, programs)


if __name__ == "__main__":
    main()
