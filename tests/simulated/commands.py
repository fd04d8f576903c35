#!/usr/bin/env python3
"""What smt's commands show of programs on the simulated device, and change while they run: trace, replay,
status, policy.

    commands.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from place import MANAGED, PATIENCE, Place, finish, run_scenario, wait_for
from scenarios import notes


def trace(smt, programs):
    """Every span of the trace is a launch of the journal, on the multiprocessors that ran it."""
    def smt_trace(place, *arguments):
        return subprocess.run([smt, "trace", *arguments], env=place.environment, capture_output=True,
                              text=True, timeout=PATIENCE)

    with Place(smt, programs, tenants=2) as place:
        done = smt_trace(place)
        assert done.returncode == 1 and "no journal" in done.stderr, done
        started = [place.start(tenant, "work", "4", "64") for tenant in ("alpha", "beta")]
        for process in started:
            finish(process)
        launches = place.launches()
        whole = json.loads(smt_trace(place).stdout)
        events = [event for event in whole["traceEvents"] if event["ph"] != "M"]
        names = {event["tid"]: event["args"]["name"] for event in whole["traceEvents"]
                 if event["name"] == "thread_name"}
        origin = whole["otherData"]["origin_ns"]

        def seen(wanted):
            return sorted((round(event["ts"] * 1000) + origin, round(event["dur"] * 1000), *found)
                          for event in events
                          if event["ph"] == "X" and (found := wanted(event)))

        of_tenant = seen(lambda event: event["pid"] == 2 and
                         (names[event["tid"]].partition(" (")[0], event["name"]))
        assert of_tenant == sorted((each["start_ns"], each["end_ns"] - each["start_ns"],
                                    each["tenant"], each["kernel"])
                                   for each in launches), of_tenant
        on_sms = seen(lambda event: event["pid"] == 1 and
                      (names[event["tid"]].partition(" (")[0], event["name"]))
        assert on_sms == sorted((each["start_ns"], each["end_ns"] - each["start_ns"], f"SM {sm}",
                                 f"{each['tenant']}: {each['kernel']}")
                                for each in launches for sm in each["sms"]), on_sms
        assert "SM 0 (2)" in names.values(), "the two ran side by side"
        for thread in {event["tid"] for event in events}:
            spans = sorted((event["ts"], event["dur"]) for event in events
                           if event["tid"] == thread and event["ph"] == "X")
            assert all(a[0] + a[1] <= b[0] + 1e-6
                       for a, b in zip(spans, spans[1:])), f"what is on track {names[thread]} overlaps"

        to = pathlib.Path(place.folder.name) / "trace.json"
        assert smt_trace(place, "-o", str(to)).returncode == 0 and json.loads(to.read_text()) == whole
        assert json.loads(smt_trace(place, "--last", "1000").stdout) == whole
        assert len(smt_trace(place, "--last", "1e-6").stdout.splitlines()) < 20
        for arguments, code, text in [(("-o", "/nowhere/trace.json"), 1, "No such file"),
                                      (("-o", "/dev/full"), 1, "No space"),
                                      (("--jsn",), 2, "unknown option"), (("-o",), 2, "needs a value"),
                                      (("--last", "0"), 2, "--last wants"),
                                      (("--last", "1s"), 2, "--last wants"), (("x",), 2, "unexpected")]:
            done = smt_trace(place, *arguments)
            assert done.returncode == code and text in done.stderr, done
        (pathlib.Path(place.folder.name) / "newer.journal").write_text("not a journal")
        done = smt_trace(place)
        assert done.returncode == 1 and "is not a journal" in done.stderr, done


def recording(smt, programs):
    """What a server's policy decided is recorded, and asked again it decides the same."""
    with Place(smt, programs) as place, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "recording"
        place.environment.update(SMT_COMPILE=MANAGED, SMT_JOURNAL=f"record={path}")
        low = place.start("low", "mixed", "30", options=("--priority", "low"))
        place.run("high", "mixed", "10", "2", options=("--priority", "high"))
        finish(low)
        assert any("decisions are recorded in" in note["text"] for note in notes(place, "note"))
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        place.wait_until_ended()
        replayed = subprocess.run([smt, "replay", path, "--policy", "priority"], check=True,
                                  capture_output=True, text=True, timeout=PATIENCE).stdout
        decisions, different = (int(re.search(text, replayed)[1])
                                for text in (r"(\d+) decisions", r"priority +(\d+) would"))
        assert decisions > 5 and different == 0, replayed
        assert "low#" in replayed and "high#" in replayed and "priority 1" in replayed, replayed

    with Place(smt, programs) as place:
        place.environment.update(SMT_JOURNAL="record=not/absolute")
        place.run("one", "work", "2", "8")   # serves all the same
        assert any("not/absolute is no absolute path" in note["text"] for note in notes(place, "note"))


def shares(smt, programs):
    """What smt status says of tenants' shares follows from the journal."""
    with Place(smt, programs, tenants=2) as place:
        started = [place.start("few", "work", "100000", "4", "1"),
                   place.start("many", "work", "100000", "64", "1")]
        place.wait_for_launch("few"), place.wait_for_launch("many")
        deadline = time.monotonic() + PATIENCE
        while True:
            text = subprocess.run([smt, "status"], env=place.environment, check=True, capture_output=True,
                                  text=True, timeout=PATIENCE).stdout
            rows = {fields[0]: fields for line in text.splitlines()[2:] if (fields := line.split())}
            if int(rows["few"][10]) > 20 and int(rows["many"][10]) > 20:   # launches
                break
            assert time.monotonic() < deadline, text
        for process in started:
            process.kill()
            finish(process, -9)
        print(text)
        few, many = (list(map(float, rows[tenant][-3:])) for tenant in ("few", "many"))
        for rate, busy, sms in (few, many):
            assert rate > 0 and 0 < sms <= busy + 0.1 and busy <= 100, text
        assert many[2] > few[2], text


def terms_change(smt, programs):
    """smt set changes who is stopped for whom, and what smt status says."""
    def change(*words, code=0):
        done = subprocess.run([smt, "set", *words], env=place.environment, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def stopped(what):
        wait_for(lambda: any(what in note["text"] for note in map(json.loads,
                                                                  place.journal_now().splitlines())
                             if note["kind"] == "decision"), lambda: f"no decision has {what}")

    with Place(smt, programs) as place:
        place.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY="hpf")
        started = [place.start(name, "mixed", "100000", options=("--priority", priority))
                   for name, priority in (("one", "low"), ("two", "high"))]
        place.wait_for_launch("one"), place.wait_for_launch("two")
        stopped("stopped for two (priority 1 over -1)")
        assert "one has priority 5 and weight 2 from now on" in change("one", "--priority", "5",
                                                                       "--weight", "2")
        stopped("stopped for one (priority 5 over 1)")
        status = subprocess.run([smt, "status", "--json"], env=place.environment, check=True,
                                capture_output=True, text=True, timeout=PATIENCE).stdout
        terms = {each["tenant"]: (each["priority"], each["weight"])
                 for each in json.loads(status)["tenants"]}
        assert terms == {"one": (5, 2), "two": (1, 1)}, terms
        assert "no program of tenant three" in change("three", "--weight", "2", code=1)
        assert "--weight wants" in change("one", "--weight", "0", code=2)
        assert "--priority wants" in change("one", "--priority", "urgent", code=2)
        assert "set what?" in change("one", code=2)
        for process in started:
            process.kill()
            process.communicate()


def policies_change(smt, programs):
    """Every policy that a server can have comes and goes while programs of several priorities run; their
    results are right."""
    def policy(*arguments):
        done = subprocess.run([smt, "policy", *arguments], env=place.environment, capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0, done
        return done.stdout

    # The clock's patience is short: it also waits for a program whose thread waits for the dispatcher, which
    # may wait for the clock meanwhile, and smt does not wait for an answer for ever.
    with Place(smt, programs, grace=20) as place, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "recording"
        place.environment.update(SMT_COMPILE=MANAGED, SMT_JOURNAL=f"record={path}")
        names = [line.split()[0] for line in policy("list").splitlines()]
        assert {"priority", "fifo"} <= set(names), names
        started = [place.start(priority, "mixed", "300", *pause, options=("--priority", priority))
                   for priority, pause in (("low", ()), ("normal", ()), ("high", ("2",)))]
        place.wait_for_launch("low")
        turns = 0
        while any(process.poll() is None for process in started) or turns < 2 * len(names):
            policy("set", names[turns % len(names)])
            assert policy("show").endswith(f": {names[turns % len(names)]}\n")
            turns += 1
        for process in started:
            assert re.fullmatch(r"[1-9]\d+ launches as they are\n", finish(process))
        print(f"{turns} changes among {names}")
        subprocess.run([smt, "server", "stop"], env=place.environment, check=True, capture_output=True,
                       timeout=PATIENCE)
        # what belongs to a moment of the virtual clock is written when that is over
        place.wait_until_ended()
        changes = re.findall(r'"text":"policy ([\w-]+) from now on"', place.journal_now())
        assert changes == [names[i % len(names)] for i in range(turns)], (len(changes), turns)
        recorded = {json.loads(line)["policy"] for line in path.read_text().splitlines()
                    if line.startswith('{"recording"')}
        assert recorded == set(names), recorded
        subprocess.run([smt, "replay", "--summary", path], check=True, capture_output=True, timeout=PATIENCE)


def kernels(smt, programs):
    """smt log --kernels lists each kernel that ran: how often, how, and why not otherwise."""
    def listed(place, *arguments):
        place.wait_until_empty()
        done = subprocess.run([smt, "log", "--kernels", *arguments], env=place.environment,
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done
        return done.stdout

    def rows(place):
        return {(row["tenant"], row["kernel"], row["how"]): row
                for row in map(json.loads, listed(place, "--json").splitlines())}

    with Place(smt, programs) as place:
        place.environment["SMT_COMPILE"] = MANAGED
        as_it_is = int(place.run("mixed", "mixed", "40").split()[0])
        found = rows(place)
        assert set(found) == {("mixed", "step", "managed by PTX"), ("mixed", "step", "unmanaged")}, found
        unmanaged = found["mixed", "step", "unmanaged"]
        assert unmanaged["launches"] == as_it_is and unmanaged["reason"].startswith("launched with "
                                                                                    "attributes"), unmanaged
        assert sum(row["launches"] for row in found.values()) == len(place.launches())
        assert re.search(rf"^mixed +{as_it_is} +0  unmanaged +step$", listed(place), re.M), listed(place)
        assert (listed(place, "--tenant", "mixed", "--json").count("\n") == 2 and
                not listed(place, "--tenant", "nobody"))
        done = subprocess.run([smt, "log", "--kernels", "--follow"], env=place.environment,
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and "does not follow" in done.stderr, done

        # It ends with what reads it, although nothing more is written; or by what is, just then.
        follower = subprocess.Popen([smt, "log", "--json", "--follow"], env=place.environment,
                                    stdout=subprocess.PIPE)
        for _ in place.journal_now().splitlines():
            assert follower.stdout.readline()
        follower.stdout.close()
        assert follower.wait(PATIENCE) in (0, -signal.SIGPIPE)

    with Place(smt, programs) as place:
        place.run("one", "mixed", "10")
        place.run("graphs", "graph")
        found = rows(place)
        assert found["one", "step", "unmanaged"]["reason"] == "PTX is not looked at (ptx=0 in SMT_COMPILE)", \
            found
        assert any(row["into_graphs"] for (tenant, _, how), row in found.items()
                   if (tenant, how) == ("graphs", "unmanaged")), found


def misuse(smt, programs):
    """What a new or mistaken user meets: a reason, and the exit code that says whose mistake it is."""
    with Place(smt, programs) as place:
        def said(code, *arguments, to=subprocess.PIPE, **environment):
            done = subprocess.run([smt, *map(str, arguments)], env=place.environment | environment, stdout=to,
                                  stderr=subprocess.PIPE,
                                  text=True, timeout=PATIENCE)
            assert done.returncode == code, done
            return (done.stdout or "") + done.stderr

        def expect(text, what):
            assert what in text, text
        expect(said(2, "rnu"), "unknown command 'rnu'")
        expect(said(2, "run", "--tenat", "a", "--", "true"), "unknown option '--tenat'")
        expect(said(1, "run", "--", "/nowhere/program"), "there is no program '/nowhere/program'")
        expect(said(1, "run", "--", place.folder.name), "cannot run")
        for name, value in [("SMT_MEMORY_LIMIT", "banana"), ("SMT_IDLE_SECONDS", "soon"),
                            ("SMT_POLICY", "best"), ("SMT_DEVICE", "tpu")]:
            for command in [("run", "--", "true"), ("server", "start")]:
                expect(said(1, *command, **{name: value}), name)
            expect(said(1, "doctor", **{name: value}), name)
        expect(said(0, "doctor", SMT_POLCY="fair"), "SMT_POLCY is no setting of smt; do you mean SMT_POLICY?")
        expect(said(0, "run", "--", "true", SMT_POLCY="fair", SMT_SIM_SMS="4"),
               "smt run: SMT_POLCY is no setting of smt; do you mean SMT_POLICY?")
        expect(said(0, "run", "--", "true", SMT_SIM_SMS="4"),
               "smt run: SMT_SIM_SMS is not read any more: it is sms in SMT_SIM")

        expect(said(1, "log"), "there is no journal")
        assert said(0, "status").startswith("no server is running")
        open_folder = pathlib.Path(place.folder.name) / "open"
        open_folder.mkdir()
        open_folder.chmod(0o755)
        for command in [("status",), ("log",), ("server", "stop")]:
            expect(said(1, *command, SMT_RUNTIME_DIR=str(open_folder)), "chmod 700")
        expect(said(1, "doctor", SMT_RUNTIME_DIR=f"/tmp/{'x' * 100}"), "too long")

        expect(said(0, "server", "start"), "server simulated started")
        expect(said(0, "server", "start", "--device", "sim"), "is running already")
        expect(said(2, "server", "start", "--device", "tpu"), "--device wants gpu or sim")
        place.run("one", "work", "1", "1")
        said(1, "run", "--device", "gpu", "--", place.programs / "sim_work", "1", "1",
             SMT_DRIVER="/nowhere/libcuda.so.1")
        # the server that started last
        expect(said(0, "log"), "device.journal has nothing; there are other servers' journals")
        expect(said(0, "log", "--server", "simulated"), "sim_work")
        expect(said(0, "trace", "--server", "simulated"), "traceEvents")
        expect(said(1, "log", "--server", "other"), "but of: ")
        with open("/dev/full", "w") as full:
            expect(said(1, "log", "--server", "simulated", to=full), "No space left")


def bench_calls(place, *arguments, code=0):
    done = subprocess.run([place.smt, "bench", "calls", *map(str, arguments)], env=place.environment,
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def calls(smt, programs):
    """Every call of a program is counted, by its name, and its phases are parts of its time."""
    rounds = 25
    expected = {"cuMemsetD32Async": rounds, "cuLaunchKernel": 2 * rounds, "cuEventRecord": rounds,
                "cuStreamSynchronize": rounds, "cuMemAlloc_v2": 1, "cuMemcpyDtoH_v2": 1,
                "cuModuleLoadData": 1, "cuModuleGetFunction": 1, "cuStreamCreate": 1, "cuEventCreate": 1}
    with Place(smt, programs) as place:
        report = pathlib.Path(place.folder.name) / "calls.json"
        text = bench_calls(place, "--json", report, "--", place.programs / "sim_calls", rounds)
        assert "calls made" in text, text
        assert "limited by" in text and "driver function" in text, text
        whole = json.loads(report.read_text())
        found = {each["name"]: each for each in whole["calls"]}
        for name, count in expected.items():
            assert found[name]["calls"] == count, (name, found[name])
            row = [line.split() for line in text.splitlines() if line.startswith(name + " ")]
            assert [name, str(count)] in [words[:2] for words in row] or len(found) > 20, text
        for each in found.values():
            waits = each["reply_ns"] + each["word_ns"] + each["room_ns"]
            assert each["total_ns"] == each["client_ns"] + waits or each["calls"] == 0, each
            served = each["ring_ns"] + each["thread_ns"] + each["held_ns"] + each["driver_ns"]
            if each["awaited"] == each["records"]:   # of which the answer is the whole; each part is rounded
                assert abs(served - each["answered_ns"]) <= 4, each
        for name in ("cuMemsetD32Async", "cuLaunchKernel", "cuEventRecord"):
            assert found[name]["records"] == expected[name] and found[name]["awaited"] == 0, found[name]
        assert found["cuStreamSynchronize"]["awaited"] == rounds, found
        driver = {each["name"]: each["calls"] for each in whole["driver"]}
        assert driver["cuLaunchKernel"] == 2 * rounds and driver["cuStreamSynchronize"] >= rounds, driver
        thread, = whole["threads"]
        assert thread["records"] == sum(each["records"] for each in found.values()), thread
        assert thread["in_calls_ns"] <= thread["client_ns"], thread
        assert thread["busy_ns"] + thread["polling_ns"] + thread["asleep_ns"] <= thread["server_ns"], thread


def calls_misuse(smt, programs):
    with Place(smt, programs) as place:
        assert "which program?" in bench_calls(place, code=2)
        assert "which program?" in bench_calls(place, "--json", "/dev/null", "--", code=2)
        assert "--after wants a number" in bench_calls(place, "--after", "soon", "--", "true", code=2)
        text = bench_calls(place, "--after", "80000", "--", place.programs / "sim_calls", 1, code=1)
        assert "no CUDA call by way of smt after the first 80000 s" in text, text
        assert "unknown option '--jsn'" in bench_calls(place, "--jsn", "--", "true", code=2)
        assert "which measurement?" in subprocess.run([smt, "bench"], capture_output=True, text=True).stderr
        text = bench_calls(place, "--", "/nowhere/program", code=1)
        assert "there is no program '/nowhere/program'" in text, text
        text = bench_calls(place, "--json", "/nowhere/file", "--", "true", code=1)
        assert "cannot write /nowhere/file" in text, text
        assert "made no CUDA call" in bench_calls(place, "--", "true", code=1)
        assert "failed without smt" in bench_calls(place, "--native", "--", "false", code=1)
        assert "ended with 1" in bench_calls(place, "--", "false", code=1)


if __name__ == "__main__":
    run_scenario(globals())
