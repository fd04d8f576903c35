#!/usr/bin/env python3
"""Each figure of smt-metrics beside what the journal and smt status say: kinds.py SMT PROGRAMS SCENARIO"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "simulated"))

from endpoint import samples, scrape, value   # noqa: E402
from place import MANAGED, PATIENCE, Place, finish, wait_for   # noqa: E402


class Scraped:
    """A running smt metrics."""

    def __init__(self, place):
        self.process = subprocess.Popen([place.smt, "metrics", "--listen", "0"], env=place.environment,
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("smt metrics prints no address")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()   # nothing, once it has ended
            self.process.communicate()

    def now(self):
        return samples(scrape(self.address)[2])


def entries(place, kind):
    return [each for each in map(json.loads, place.journal_now().splitlines()) if each["kind"] == kind]


def status(place):
    done = subprocess.run([place.smt, "status", "--json"], env=place.environment, capture_output=True,
                          text=True, timeout=PATIENCE)   # nothing: no server runs yet
    return {each["tenant"]: each for line in done.stdout.splitlines() for each in json.loads(line)["tenants"]}


def covered(spans):
    """How long at least one of them was."""
    all_of_them, until = 0, 0
    for start, end in sorted(spans):
        all_of_them += max(0, end - max(start, until))
        until = max(until, end)
    return all_of_them


def sm_time(place):
    """Two programs of a tenant at a time: a moment of a multiprocessor counts once for it."""
    with Scraped(place) as scraped:
        started = [place.start(tenant, "work", "6", blocks)
                   for tenant, blocks in (("alice", "40"), ("alice", "40"), ("bob", "8"))]
        for process in started:
            finish(process)
        place.wait_until_empty()
        launches = entries(place, "launch")
        found = scraped.now()
        for tenant in "alice", "bob":
            on = {}
            for each in launches:
                if each["tenant"] == tenant:
                    for sm in each["sms"]:
                        on.setdefault(sm, []).append((each["start_ns"], each["end_ns"]))
            had = sum(map(covered, on.values()))
            said = value(found, "smt_tenant_sm_seconds_total", tenant=tenant)
            assert had > 0 and abs(said * 1e9 - had) < 1, (said, had)


def memory(place):
    """By what it is used for, and how much of it is away."""
    with Scraped(place) as scraped:
        process = place.start("alice", "work", "1000000", "8", "1")
        kinds = {"asked": "asked_bytes", "lost": "lost_bytes", "idle": "idle_bytes", "other": "other_bytes"}

        def said():
            found = scraped.now()
            return {**{use: value(found, "smt_program_device_memory_bytes", tenant="alice", use=use)
                       for use in kinds},
                    "host": value(found, "smt_program_host_memory_bytes", tenant="alice"),
                    "away": value(found, "smt_program_away_memory_bytes", tenant="alice", where="host"),
                    "file": value(found, "smt_program_away_memory_bytes", tenant="alice", where="file")}

        def had():
            now = status(place).get("alice")
            return now and {**{use: now["memory"][key] for use, key in kinds.items()},
                            "host": now["host_bytes"], "away": now["away_bytes"] - now["file_bytes"],
                            "file": now["file_bytes"]}

        try:
            wait_for(lambda: (had() or {}).get("asked", 0) > 0 and said() == had(), lambda: (said(), had()))
            subprocess.run([place.smt, "suspend", "alice"], env=place.environment, check=True,
                           capture_output=True, timeout=PATIENCE)
            wait_for(lambda: said()["away"] > 0 and said() == had(), lambda: (said(), had()))
        finally:
            process.kill()
            process.communicate()


def faults(place):
    """Those of the programs that the journal says ended with one."""
    with Scraped(place) as scraped:
        for way in "wild", "freed":
            place.run("alice", "misbehave", way)
        place.run("bob", "work", "2", "8")
        place.wait_until_empty()
        ended = entries(place, "closed")
        errors = [each["fault"] for each in ended if each["tenant"] == "alice"]
        assert len(errors) == 2 and all(errors), ended
        assert [each["fault"] for each in ended if each["tenant"] == "bob"] == [0], ended
        found = scraped.now()
        for error in set(errors):
            assert value(found, "smt_tenant_faults_total", tenant="alice",
                         error=str(error)) == errors.count(error), found
        assert value(found, "smt_tenant_faults_total") == 2, found


def unsupported(place):
    with Scraped(place) as scraped:
        place.run("alice", "memory")
        place.wait_until_empty()
        calls = {}
        for each in entries(place, "unsupported"):   # the last of a session has all of its calls
            calls[each["session"], each["name"]] = each["value"]
        assert calls
        found = scraped.now()
        for _, function in calls:
            wanted = sum(count for (_, name), count in calls.items() if name == function)
            assert value(found, "smt_tenant_unsupported_calls_total", tenant="alice",
                         function=function) == wanted, (calls, found)


def waits(place):
    """Of a program that a more urgent one stops."""
    place.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY="hpf")
    with Scraped(place) as scraped:
        started = [place.start(tenant, "beside", "few", "32", "1000", blocks, "50", launches,
                               options=("--priority", priority))
                   for tenant, priority, blocks, launches in (("low", "low", "64", "1000000"),
                                                              ("high", "high", "16", "1000000"))]
        try:
            wait_for(lambda: status(place).get("low", {}).get("waits", 0) > 0, lambda: status(place))
            high = started.pop()   # which would go on ending waits of low
            high.kill()
            high.communicate()

            def agree():
                before = status(place).get("low")
                found = scraped.now()
                after = status(place).get("low")
                if not before or not after or before["waits"] != after["waits"]:
                    return False
                name = "smt_tenant_wait_seconds"
                assert value(found, name + "_count", tenant="low") == after["waits"], (found, after)
                assert value(found, name + "_bucket", tenant="low", le="+Inf") == after["waits"], found
                assert abs(value(found, name + "_sum", tenant="low") * 1e9 - after["waits_ns"]) < 1e3, found
                return True
            wait_for(agree, lambda: status(place))
        finally:
            for process in started:
                process.kill()
                process.communicate()


def main():
    smt, programs, name = sys.argv[1:]
    with Place(smt, programs) as place:
        {each.__name__: each for each in (sm_time, memory, faults, unsupported, waits)}[name](place)


main()
