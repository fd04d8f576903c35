#!/usr/bin/env python3
"""Kernels with doors (rewriter/device/door.h) under the engine, on the simulated device: doors in SMT_SIM,
and no managed forms.

    doors.py SMT FOLDER_OF_PROGRAMS SCENARIO [--thorough]

Each program checks its results, of kernels that are not idempotent: a block that runs twice or never shows.
"""
import json
import re
import subprocess
import sys

from gated import PATIENCE, WARP, Gated, Stage, part_of_sm, said


WORK = "8", "400"
MIXED = "20", "0", "400"
MEETING = "100", "3"   # of 8 * 32 blocks that have a place at once
STOPS_ONLY = 1 << 31   # runtime/dispatch/experiments.h
SEEDS = (1, 2, STOPS_ONLY + 1, STOPS_ONLY + 2) if "--thorough" in sys.argv else (1, STOPS_ONLY + 2)
FEWER = {(0, 1), (0, 1, 2, 3, 4, 5)}   # multiprocessors, of eight, that slo confines to here


class Doors(Stage):
    def __init__(self, smt, programs, policy="priority", multiprocessors=8, **sim):
        super().__init__(smt, programs, policy, multiprocessors)
        self.simulate(doors=1, **sim)
        self.environment["SMT_COMPILE"] = "ptx=0"

    def kernels_text(self):
        return subprocess.run([self.smt, "log", "--kernels"], env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE, check=True).stdout

    def kernels(self):
        """What `smt log --kernels` says: {(tenant, kernel): treatment}."""
        rows = re.findall(r"^(\S+) +\d+ +\d+  (\w.*?)  +(\w+(?: \w+)*)$", self.kernels_text(), re.M)
        return {(tenant, kernel): treatment for tenant, treatment, kernel in rows}


def stopped_half_way(place, tenant):
    """By the notes of the experiment, one for each of the tenant's streams."""
    return sum(int(found[1]) for entry in place.entries(tenant, "note")
               if (found := re.search(r"under stress: \d+ schedules, (\d+) launches stopped half way",
                                      entry["text"])))


def under_stress(smt, programs):
    """Launches are stopped and resumed at random, also such as follow one another in the driver's queue."""
    with Doors(smt, programs) as place:
        plain = place.run("plain", "mixed", *MIXED)
        said(place.run("work", "work", *WORK), "")
        for seed in SEEDS:
            stress = "--stress", str(seed)
            said(place.run(f"work{seed}", "work", *WORK, options=stress), "")
            said(place.run(f"mixed{seed}", "mixed", *MIXED, options=stress), plain)
            place.wait_until_empty()   # a stream's note is written when its session ends
            counts = {program: stopped_half_way(place, f"{program}{seed}") for program in ("work", "mixed")}
            print(f"seed {seed}: stopped half way {counts}")
            assert counts["work"] and counts["mixed"], counts
        for tenant, kernel in (("work1", "add"), ("work1", "spin"), ("mixed1", "step"), ("plain", "step"),
                               ("mixed1", "a fill or copy in device memory")):
            said(place.kernels()[tenant, kernel], "has a door")


def urgent(smt, programs):
    """A long launch is stopped between two blocks for a more urgent tenant, and goes on behind them."""
    with Doors(smt, programs, "priority", 2) as place:
        # blocks that are refused need a place, too
        urgent = Gated(place, "urgent", 2, WARP, part_of_sm(1 / 2), priority="high")
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2))
        for each in (urgent, long):   # their code is loaded, and each knows the other
            each.launch().open().say("wait", "ended")
        long.launch().say("begun 4", "begun")
        urgent.launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        place.open_until_stopped(long, 1)
        urgent.say("begun 2", "begun")
        urgent.open().say("wait", "ended")
        # it is resumed, and stopped again further on
        long.say(f"begun {long.opened + 4}", "begun")
        urgent.launch()
        place.until_decided("long", "stopped for urgent (priority 1 over 0)", 2)
        place.open_until_stopped(long, 2)
        urgent.end()
        long.end()
        assert not [text for text in place.decisions("long") if "held" in text], place.decisions("long")
        said(place.kernels()["long", "gate"], "has a door")


def behind_unmanaged(smt, programs):
    """The first launch of a stream can be stopped although it is in the driver's queue behind other work, and
    with it what sets its words to zero."""
    with Doors(smt, programs, "priority", 2) as place:
        urgent = Gated(place, "urgent", 2, WARP, part_of_sm(1 / 2), priority="high")
        long = Gated(place, "long", 1000, WARP, part_of_sm(1 / 2))
        for each in (urgent, long):
            each.launch().open().say("wait", "ended")
        long.say("other", "switched")
        long.say("block", "blocked")
        long.launch()
        place.until("the driver has the launch", lambda: place.launches("long") == 3)
        urgent.launch().say("other", "switched")   # by then the policy has decided
        long.say("release", "released")
        place.until_decided("long", "stopped for urgent (priority 1 over 0)")
        place.open_until_stopped(long, 1)
        urgent.end()
        long.end()


def turns(smt, programs):
    """Under fair two tenants with long launches take turns, within the launches."""
    with Doors(smt, programs, "fair", 2, dispatch_clock=1, tenants=2) as place:
        started = [place.start(tenant, "load", "2000", "100000", "20", "3", "10000000")
                   for tenant in ("one", "two")]
        for process in started:
            output, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0 and len(output.splitlines()) == 3, output
        for tenant, other in (("one", "two"), ("two", "one")):
            stops, said_of = len(place.entries(tenant, "stopped")), place.decisions(tenant)
            print(f"{tenant}: {stops} stops, decisions {said_of[:4]}")
            # more stops than launches: so some of them are within one
            assert stops > 3 and any(f"the turn of {other}" in text for text in said_of), (stops, said_of)


def rows_with_times(place):
    """What `smt log --kernels --json` says, by tenant, of programs with one kernel."""
    log = subprocess.run([place.smt, "log", "--kernels", "--json"], env=place.environment,
                         capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    return {row["tenant"]: row for row in map(json.loads, log.splitlines())}


def gpu_time(smt, programs):
    """The GPU time of kernels, and whether they can be stopped within: by the device's clock, so that it can
    be compared with what the programs saw."""
    with Doors(smt, programs, "priority", 2, dispatch_clock=1) as place:
        place.environment["SMT_JOURNAL"] = "gpu_time"
        took = {}
        for tenant, blocks in (("large", "200"), ("small", "2")):
            output = place.run(tenant, "load", blocks, "100000", "20", "3", "10000000")
            spans = [tuple(map(float, line.split())) for line in output.splitlines()]
            assert len(spans) == 3, output
            took[tenant] = sum(end - begin for begin, end in spans)
            place.until(f"{tenant} has left", lambda: place.entries(tenant, "closed"))
        rows = rows_with_times(place)
        for tenant, row in rows.items():
            print(f"{tenant}: {row['gpu_ns'] / 1e3} us of {took[tenant]}, {row['how']}")
            assert row["gpu_launches"] == row["launches"] == 3 and row["stoppable"], row
            assert .8 * took[tenant] < row["gpu_ns"] / 1e3 <= 1.1 * took[tenant], (row, took)
        assert rows["large"]["gpu_ns_one_wave"] == 0, rows
        assert rows["small"]["gpu_ns_one_wave"] == rows["small"]["gpu_ns"], rows
        assert abs(sum(row["gpu_share"] for row in rows.values()) - 1) < .001, rows
        said(place.kernels_text().splitlines()[-2].split()[1], "%")
    with Doors(smt, programs) as place:
        place.run("work", "work", *WORK)
        assert "GPU time by kernel: not known" in place.kernels_text()
        assert not any("gpu_ns" in row for row in rows_with_times(place).values())


def beside_requests(smt, programs):
    """Under slo, launches go over to fewer multiprocessors beside a service, and back, in the program's
    order. The levels of a company are learnt within some requests, so that of each turn is a new one."""
    with Doors(smt, programs, "slo") as place:
        plain = place.run("plain", "mixed", *MIXED)
        service = place.start("service", "work", "100000", "2", "2", options=("--p99", "10s"))
        place.wait_for_launch("service")
        seen, sets = set(), set()
        for turn in range(40):
            work, mixed = f"work{turn}", f"mixed{turn}"
            said(place.run(work, "work", *WORK), "")
            said(place.run(mixed, "mixed", *MIXED), plain)
            for text in place.decisions(work) + place.decisions(mixed):
                if found := re.search(r"keeps to (\d) multiprocessors of 8 beside a service", text):
                    seen.add(int(found[1]))
            status = subprocess.run([smt, "status"], env=place.environment, capture_output=True, text=True,
                                    timeout=PATIENCE, check=True).stdout
            # Its kernels fill what they may have. The server has another one, which looks where a set is.
            sets |= {tuple(entry.get("sms", ())) for entry in place.entries(work, "launch")
                     if entry["kernel"] in ("add", "spin")}
            if (seen >= {2, 6} and FEWER & sets and tuple(range(8)) in sets and
                    "others have 8 multiprocessors" in status):
                break
        print(f"{turn + 1} turns, {seen}, on {sets}")
        assert seen >= {2, 6}, seen
        assert re.search(r"target 1e\+04 ms at the 99th percentile: [\d.]+ ms seen, \d+ % headroom; "
                         r"others have 8 multiprocessors beside its requests", status), status
        service.kill()
        service.communicate(timeout=PATIENCE)
        assert FEWER & sets and tuple(range(8)) in sets, sets


def blocks_meet(smt, programs):
    """Blocks that run at once and wait for each other all begin, or none: they run in no managed form."""
    with Doors(smt, programs) as place:
        place.environment["SMT_COMPILE"] = "wait=60"
        for seed in SEEDS:
            said(place.run(f"meets{seed}", "meets", *MEETING, options=("--stress", str(seed))), "")
        said(place.kernels()["meets1", "meet"], "has a door")
        assert "its blocks may wait for each other, and all of them run at once" in place.kernels_text()


def main():
    smt, programs, scenario = sys.argv[1:4]
    globals()[scenario](smt, programs)


if __name__ == "__main__":
    main()
