#!/usr/bin/env python3
"""smt profile on the simulated device, and profiles that servers learn and use by themselves.

    profiles.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import tempfile
import xml.etree.ElementTree

from place import MANAGED, PATIENCE, Place, finish, run_scenario

MULTIPROCESSORS = 4


class Profiles(Place):
    """Managed kernels, and a store of the test's own."""

    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, sms=MULTIPROCESSORS, grace=20, **settings)
        self.store = str(pathlib.Path(self.folder.name) / "profiles.db")
        self.environment.update(SMT_COMPILE=MANAGED, SMT_PROFILES=self.store,
                                SMT_CACHE_DIR=str(pathlib.Path(self.folder.name) / "cache"))

    def profile(self, *arguments, code=0):
        done = subprocess.run([self.smt, "profile", *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=4 * PATIENCE)
        assert done.returncode == code, done
        return done

    def rows(self):
        return json.loads(self.profile("show", "--json").stdout)


def offline(smt, programs):
    """Times, a full sweep and stops; the rest of the command; a second run adds to the first."""
    with Profiles(smt, programs) as place:
        assert "no profiles" in place.profile("show").stdout
        picture = pathlib.Path(place.folder.name) / "curves.svg"
        program = (str(place.programs / "sim_curves"), "6", "256")
        done = place.profile("--sweep", "--plot", str(picture), "--", *program)
        print(done.stderr, done.stdout)
        assert "kernel times: by the simulated device's clock" in done.stderr, done.stderr
        assert "counters: a simulated device has none" in done.stderr, done.stderr
        assert "sweep                       100 %" in done.stderr, done.stderr
        rows = place.rows()
        managed = [row for row in rows if row["managed"]]
        assert managed, rows
        for row in managed:
            most = row["most_ctas_per_sm"]
            assert row["launch_ns"] > 0 and row["stops"] > 0, row
            assert [ctas for ctas, _ in row["block_ns_by_ctas"]] == list(range(1, most + 1)), row
            assert [sms for sms, _ in row["block_ns_by_sms"]] == [1, 2, MULTIPROCESSORS], row
            by_sms = dict(row["block_ns_by_sms"])
            assert by_sms[1] > 1.5 * by_sms[MULTIPROCESSORS], \
                f"one multiprocessor does as much as {MULTIPROCESSORS}: {row}"
            assert 1 <= row["saturation"]["sms"] <= MULTIPROCESSORS and "pur" not in row, row
        drawn = xml.etree.ElementTree.fromstring(picture.read_text())
        assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 2 * len(managed)

        launches = {json.dumps([each["kernel"], each["block"],
                                each["grid_class"]]): sum(times["launches"] for times in each["times"])
                    for each in json.loads(place.profile("export").stdout)}
        place.profile("--", *program)
        for each in json.loads(place.profile("export").stdout):
            assert (sum(times["launches"] for times in each["times"]) >
                    launches[json.dumps([each["kernel"], each["block"], each["grid_class"]])])
        assert place.profile("export", "--csv").stdout.startswith("kernel,image,device,block,grid_class,")
        assert place.profile("forget", "--kernel", managed[0]["symbol"]).stdout.startswith("1 profiles")
        assert len(place.rows()) == len(rows) - 1
        place.profile("forget", "--all", "--kernel", rows[-1]["symbol"])
        for arguments, code, text in [((), 2, "a program, or show"), (("--sweep",), 2, "which program"),
                                      (("forget",), 2, "which?"),
                                      (("--plot", "x.svg", "--", "true"), 2, "--plot draws"),
                                      (("--runs", "0", "--", "true"), 2, "--runs wants"),
                                      (("--", "false"), 1, "ended with 1"),
                                      (("--", "true"), 1, "launched no kernel")]:
            assert text in place.profile(*arguments, code=code).stderr, arguments
        place.environment["SMT_PROFILES"] = "none"
        assert "nothing is kept" in place.profile("show", code=1).stderr


def few_launches(smt, programs):
    """A program with too few launches for the whole plan has each point once before any twice; a relative
    path of the store is the caller's."""
    with Profiles(smt, programs) as place:
        place.environment["SMT_PROFILES"] = "relative.db"
        subprocess.run([smt, "profile", "--sweep", "--runs", "1", "--stops", "0", "--",
                        str(place.programs / "sim_curves"), "2", "256"],
                       env=place.environment, cwd=place.folder.name, check=True, capture_output=True,
                       timeout=4 * PATIENCE)
        place.environment["SMT_PROFILES"] = str(pathlib.Path(place.folder.name) / "relative.db")
        swept = [row for row in json.loads(place.profile("export").stdout)
                 if row["coefficients"].get("managed")]
        assert swept, "nothing was learnt"
        for each in swept:
            most = each["resources"]["most_ctas_per_sm"]
            launches = {(times["sms"], times["ctas_per_sm"]): times["launches"] for times in each["times"]}
            launches.pop((MULTIPROCESSORS, most), None)   # whole launches, and the rest of others
            wanted = 2 * most - 1 + 1   # the curves on all and on one multiprocessor; and all CTAs on two
            print(each["kernel"], most, launches)
            assert launches and (len(launches) == wanted or max(launches.values()) == 1), launches


def halves(smt, programs):
    """SMT_PROFILE=halves: managed launches keep to half of the CTAs that fit, and compute the same."""
    with Profiles(smt, programs) as place:
        place.profile("--times", "--", str(place.programs / "sim_curves"), "1", "256")
        most = max(row["most_ctas_per_sm"] for row in place.rows() if row["managed"])
        place.environment.update(SMT_PROFILE="halves", SMT_JOURNAL="mapping")
        place.run("one", "curves", "3", "256")
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        notes = " ".join(json.loads(line).get("text", "") for line in place.journal_now().splitlines())
        assert re.search(r"kept to half of the places in [1-9]\d* runs", notes), notes
        fullest = re.search(r"(\d+) workers at most on a multiprocessor, 0 above its quota", notes)
        assert fullest and int(fullest[1]) == most // 2, (most, notes)


def fixed_slices(smt, programs):
    """SMT_STRESS with a seed of slices alone (runtime/dispatch/experiments.h): launches run in slices of as
    many blocks for each multiprocessor as it says, and compute the same."""
    launches, blocks = 3, 256
    for per_sm in (1, 3, 0):
        with Profiles(smt, programs) as place:
            place.environment.update(SMT_STRESS=str((1 << 30) + per_sm), SMT_JOURNAL="mapping")
            place.run("one", "curves", str(launches), str(blocks))
            subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                           timeout=PATIENCE)
            place.wait_until_ended()
            notes = " ".join(json.loads(line).get("text", "") for line in place.journal_now().splitlines())
            found = re.search(rf"in slices of {per_sm} blocks a multiprocessor: (\d+) slices", notes)
            assert found, notes
            size = per_sm * MULTIPROCESSORS or blocks
            # a worker that finds no place leaves its block to one more slice
            assert int(found[1]) >= launches * -(-blocks // size), (per_sm, found[0])
            assert per_sm or int(found[1]) < launches * blocks // MULTIPROCESSORS, found[0]
            fullest = re.search(r"(\d+) workers at most on a multiprocessor, 0 above its quota", notes)
            assert fullest and (not per_sm or int(fullest[1]) <= per_sm), (per_sm, notes)


def online(smt, programs):
    """What a server learns of a program that runs alone is in the store when that has left, and another
    server's policy is told of it."""
    with Profiles(smt, programs) as place:
        place.run("one", "curves", "3", "256")
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        rows = [row for row in json.loads(place.profile("export").stdout) if row["times"]]
        assert rows, place.profile("export").stdout
        times = rows[0]["times"][0]
        assert times["sms"] == MULTIPROCESSORS and times["blocks"] > 0 and times["nanoseconds"] > 0, rows

        place.profile("--sweep", "--runs", "1", "--", str(place.programs / "sim_curves"), "6", "256")
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "recording"
            place.environment.update(SMT_JOURNAL=f"record={recording}", SMT_POLICY="greedy")
            started = [place.start(tenant, "curves", "8", "256") for tenant in ("one", "two")]
            for process in started:
                finish(process)
            subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                           timeout=PATIENCE)
            place.wait_until_ended()
            seen = [json.loads(line) for line in recording.read_text().splitlines()]
            profiles = [kernel["profile"] for each in seen
                        for kernel in each.get("snapshot", {}).get("kernels", []) if "profile" in kernel]
            print(f"{len(profiles)} times a policy saw a profile")
            assert any(len(profile.get("configurations", [])) > 1 for profile in profiles), seen[:5]


def count(store, kernel, blocks, instructions, memory_instructions, dram):
    """What counters would have said: there are none on this device."""
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        changed = database.execute("UPDATE profile SET counted_blocks = ?, counted_ns = 10000, instructions "
                                   "= ?, memory_instructions = ?, dram_reads = ? "
                                   "WHERE kernel = ?", (blocks, instructions, memory_instructions,
                                                        dram, kernel)).rowcount
    assert changed > 0, f"no profile of {kernel}"


def slices(smt, programs):
    """Policy slice runs kernels of unknown mixes as they are, and pairs those that are known and differ."""
    def said(place):
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        return {entry["text"] for entry in map(json.loads, place.journal_now().splitlines())
                if entry["kind"] == "decision"}

    def side_by_side(place):
        started = [place.start("one", "curves", "20", "256"), place.start("two", "mixed", "200")]
        for process in started:
            finish(process)
        return said(place)

    with Profiles(smt, programs) as place:
        for program in (("sim_curves", "2", "256"), ("sim_mixed", "10")):
            place.profile("--times", "--", str(place.programs / program[0]), *program[1:])
        place.environment["SMT_POLICY"] = "slice"
        place.simulate(tenants=2)
        assert not any("beside another" in text for text in side_by_side(place))
        count(place.store, "turn", blocks=256, instructions=250_000, memory_instructions=2_500, dram=1_000)
        count(place.store, "step", blocks=40, instructions=20_000, memory_instructions=6_000, dram=900_000)
        texts = side_by_side(place)
        print(texts)
        assert any(re.search(r"\d+ CTAs an SM beside another, to save \d+ %", text) for text in texts), texts


def side_by_side(smt, programs):
    """Two programs are measured side by side with each combination of CTAs that fits; what was is not
    measured again, and policy slice goes by it."""
    few = ("few", "512", str(112 << 10), "240", "50")     # two on a multiprocessor, by their shared memory
    # three, by their registers; two and one, or one and two, together
    many = ("many", "512", "0", "240", "50")
    with Profiles(smt, programs) as place:
        def program(words, launches):
            return (str(place.programs / "sim_beside"), *words, str(launches))

        def pair(first, second, *options, code=0):
            return place.profile("--pair", *options, "--", *first, "--", *second, code=code)

        def windows():
            return {(row["kernel"], beside["ctas_per_sm"], beside["other_ctas_per_sm"]): beside["windows"]
                    for row in json.loads(place.profile("export").stdout) for beside in row["beside"]}

        for arguments, text in [(("--pair",), "two programs"), (("--pair", "--", "true"), "two programs"),
                                (("--pair", "--", "true", "--"), "two programs"),
                                (("--pair", "--sweep", "--", "true", "--", "true"), "no --sweep"),
                                (("--pair", "--runs", "0", "--", "true", "--", "true"), "--runs wants")]:
            assert text in place.profile(*arguments, code=2).stderr, arguments
        for arguments in ((), ("--measured",)):
            assert "no two kernels were measured" in place.profile("pairs", *arguments).stdout
        assert json.loads(place.profile("pairs", "--measured", "--json").stdout) == []
        assert "the program ended with 1" in pair(("false",), ("true",), code=1).stderr
        assert "true launched no kernel" in pair(program(few, 1), ("true",), code=1).stderr
        # Three blocks are less than a round.
        assert "too few blocks" in pair(program(few, 2), program((*many[:3], "3", "50"),
                                                                 2), "--runs", "1", code=1).stderr
        assert not windows()

        # The program that fails is named, and the other one is not waited for.
        flag = pathlib.Path(place.folder.name) / "flag"
        fails = ("sh", "-c", f'test ! -e {flag} && touch {flag} && exec "$@"', "sh", *program(many, 1))
        assert "sh ended with 1 while it was measured" in pair(program(few, 30), fails, code=1).stderr

        # One program ends early: what is missing is said, and measured in the next run.
        done = pair(program((*few[:3], "130", "50"), 1), program(many, 12), "--runs", "1")
        print(done.stderr, done.stdout, windows())
        assert re.search(r"1 runs: [1-9] windows measured of 1 pairs of kernels; missing: [12] of 2 "
                         r"combinations of few and many", done.stderr), done.stderr
        done = pair(program(few, 12), program(many, 12))
        print(done.stderr, done.stdout, windows())
        assert "nothing is missing" in done.stderr, done.stderr
        assert re.search(r"few +many +1 +2 ", done.stdout) and re.search(r"few +many +2 +1 ",
                                                                         done.stdout), done.stdout
        found = windows()
        assert sorted(found) == [("few", 1, 2), ("few", 2, 1), ("many", 1, 2),
                                 ("many", 2, 1)] and set(found.values()) == {2}, found

        # Blocks take as long beside each other as alone: rates are parts of the CTAs that fit.
        (best,) = json.loads(place.profile("pairs", "--json").stdout)
        assert best["measured"]["blocks"] == [2, 1], best
        assert all(abs(rate - wanted) < 0.05
                   for rate, wanted in zip(best["measured"]["rates"], (1, 1 / 3))), best
        assert abs(best["measured"]["profit"] - 0.25) < 0.03 and "told" not in best, best
        assert "2 1: 2" in place.profile("pairs").stdout
        assert place.profile("pairs", "--measured").stdout == done.stdout
        assert {tuple(row["blocks"]) for row in json.loads(
            place.profile("pairs", "--measured", "--json").stdout)} == {(1, 2), (2, 1)}

        place.environment["SMT_POLICY"] = "slice"
        place.simulate(tenants=2)
        for process in [place.start(words[0], "beside", *words, "12") for words in (few, many)]:
            finish(process)
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        texts = {entry["text"] for entry in map(json.loads, place.journal_now().splitlines())
                 if entry["kind"] == "decision"}
        print(texts)
        assert any(re.fullmatch(r"2 CTAs an SM beside another, measured to save 2\d %", text)
                   for text in texts), texts
        assert any(re.fullmatch(r"1 CTAs an SM beside another, measured to save 2\d %", text)
                   for text in texts), texts


def slice_cost(smt, programs):
    """What slices cost is measured while launches run in slices, is kept, and says how large slices are."""
    few, many = (("few", "512", str(112 << 10), "4000", "50"), ("many", "512", "0", "4000", "50"))

    def under_slice_paper(place, launches):
        recording = pathlib.Path(place.folder.name) / "recording"
        place.environment.update(SMT_JOURNAL=f"record={recording}", SMT_POLICY="slice-paper")
        for process in [place.start(words[0], "beside", *words, launches) for words in (few, many)]:
            finish(process)
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        lines = [json.loads(line) for line in recording.read_text().splitlines()]
        recording.unlink()
        slices = [[assignment["slice"] for assignment in line.get("decision", {}).get("assignments", [])
                   if assignment.get("slice")] for line in lines]
        return [max(each) for each in slices if len(each) == 2]   # by decision about both; both end together

    with Profiles(smt, programs, dispatch_clock=1) as place:
        done = place.profile("--pair", "--", str(place.programs / "sim_beside"), *few, "2",
                             "--", str(place.programs / "sim_beside"), *many, "2")
        print(done.stdout)
        place.simulate(tenants=2)
        before = under_slice_paper(place, "3")
        rows = {row["kernel"]: row["slicing"] for row in json.loads(place.profile("export").stdout)}
        cost = {kernel: each["nanoseconds"] / max(1, each["slices"]) for kernel, each in rows.items()}
        print(f"slices of {before} blocks by the default; {rows}: {cost}")
        assert set(rows) == {"few", "many"} and all(2 <= each["slices"] <= 32 for each in rows.values())
        # The end of a slice, a decision and a start, and no block's time.
        assert all(1_000 < each < 60_000 for each in cost.values()), cost
        after = under_slice_paper(place, "1")
        print(f"slices of {after} blocks by what they cost")
        # The first decision goes by what was kept, later ones by what is learnt meanwhile. A slice is as
        # large as one of the two needs: the one with longer blocks, or the one whose slices cost more.
        parts = [after[0] / each for each in before]
        assert any(abs(part * 50_000 / each - 1) < 0.2 for part in parts for each in cost.values()), \
            (parts, cost)


def under(place, policy, *programs):
    """What a server decides and learns while these run: (texts of decisions, notes), each by time."""
    place.environment["SMT_POLICY"] = policy
    for process in [place.start(*program) for program in programs]:
        finish(process)
    subprocess.run([place.smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                   timeout=PATIENCE)
    place.wait_until_ended()
    entries = [json.loads(line) for line in place.journal_now().splitlines()]
    said = [(entry["tenant"], entry["text"]) for entry in entries if entry["kind"] == "decision"]
    print(*said, sep="\n")
    return said, [entry["text"] for entry in entries
                  if entry["kind"] == "note" and entry.get("text", "").startswith("learnt")]


def tries(said):
    """Trials of one kernel, and of two."""
    alone = sum(bool(re.search(r"CTAs on each of \d SMs, to learn", text)) for _, text in said)
    return alone, sum("beside another, to learn" in text for _, text in said) // 2


def learns_pairs(smt, programs):
    """Without any profile slice comes to pair two programs' kernels within a few launches: each is tried by
    itself, and both with each combination that fits. The next server knows it, and tries nothing."""
    few = ("few", "beside", "few", "512", str(112 << 10), "480", "50", "64")   # see side_by_side()
    many = ("many", "beside", "many", "512", "0", "480", "50", "64")
    with Profiles(smt, programs, dispatch_clock=1) as place:
        place.simulate(tenants=2)
        said, notes = under(place, "slice", few, many)
        alone, together = tries(said)   # of a window each launch within it is said
        assert alone == 2 and 2 <= together <= 8 and len(notes) == 4, (alone, together, notes)
        best = [(tenant, re.sub(r"\d+ %", "N %", text)) for tenant, text in said if "to save" in text]
        assert ("few", "2 CTAs an SM beside another, learnt to save N %") in best, best
        assert ("many", "1 CTAs an SM beside another, learnt to save N %") in best, best
        rows = {row["kernel"]: row for row in json.loads(place.profile("export").stdout)}
        for kernel, fits in (("few", 2), ("many", 3)):
            assert [(each["sms"], each["ctas_per_sm"]) for each in rows[kernel]["learnt_times"]
                    ] == [(MULTIPROCESSORS, fits)]
            assert len(rows[kernel]["learnt_beside"]) == 2 and not rows[kernel]["beside"], rows
        pairs = json.loads(place.profile("pairs", "--measured", "--json").stdout)
        assert len(pairs) == 2 and all(each["learnt"] for each in pairs), pairs
        said, notes = under(place, "slice", (*few[:-1], "12"), (*many[:-1], "12"))
        assert tries(said) == (0, 0) and not notes, (said, notes)
        assert any("learnt to save" in text for _, text in said)


def learns_footprints(smt, programs):
    """Without any profile compact comes to give a kernel that one SM is enough for one SM, and the other
    program the rest, within a few launches. The next server does from the beginning."""
    few = ("few", "beside", "few", "512", str(112 << 10), "480", "50", "24")
    serial = ("serial", "serial", str(100 << 10), "200", "20", "24")   # two fit on an SM
    with Profiles(smt, programs, dispatch_clock=1) as place:
        place.simulate(tenants=2)
        said, notes = under(place, "compact", few, serial)
        alone, together = tries(said)   # a trial of which nothing was learnt is made again
        assert 8 <= alone <= 12 and together == 0 and len(notes) == 8, (alone, together, notes)
        # One CTA of serial on its SM is nearly as fast as two, and leaves few one there.
        wanted = [(("serial", f"{ctas} CTAs on 1 of {MULTIPROCESSORS} SMs, as was learnt"),
                   ("few", f"{others} of {MULTIPROCESSORS} SMs, as was learnt"))
                  for ctas, others in ((2, "6 CTAs on 3"), (1, "7 CTAs on 4"))]
        assert any(set(each) <= set(said) for each in wanted), said
        assert "(learnt)" in place.profile("show").stdout, place.profile("show").stdout
        said, notes = under(place, "compact", (*few[:-1], "8"), (*serial[:-1], "8"))
        assert tries(said) == (0, 0) and not notes, said
        assert any(set(each) <= set(said) for each in wanted), said


if __name__ == "__main__":
    run_scenario(globals())
