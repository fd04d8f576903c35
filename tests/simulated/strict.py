#!/usr/bin/env python3
"""Strict tenants (smt run --isolation strict), each with a server of its own, on the simulated device.

    strict.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from endless import endless, is_ended
from place import PATIENCE, Place, finish, run_scenario
from takeover import await_end, finish_survivor, say

STRICT = ("--isolation", "strict")
SHARED_KEY = "simulated"
MOST_KEPT = 16   # servers whose files stay


class Apart(Place):
    """Servers whose device has one context each, so that a fault ends all programs of its server."""

    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, **{"one_context": 1, "grace": 50, **settings})

    def log(self):
        return "".join(path.read_text() for path in pathlib.Path(self.folder.name).glob("*.log*"))

    def command(self, *words, code=0):
        done = subprocess.run([self.smt, *words], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == code, done
        return done.stderr if code else done.stdout

    def servers(self):
        """By key: what `smt status --json` says."""
        lines = self.command("status", "--json").splitlines()
        return {server["server"]: server for server in map(json.loads, lines)}

    def tenants_of(self, key):
        return [tenant["tenant"] for tenant in self.servers()[key]["tenants"]]

    def survivor(self, tenant, options=STRICT):
        program = self.start(tenant, "survivor", options=options, stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        return program

    def files(self, suffix):
        return sorted(path.name for path in pathlib.Path(self.folder.name).glob(f"*{suffix}"))

    def await_no(self, name):
        deadline = time.monotonic() + PATIENCE
        while name in self.files(".sock"):
            assert time.monotonic() < deadline, f"{name} is still there:\n" + self.log()
            time.sleep(0.02)


def goes_on(program):
    say(program, "on")
    finish_survivor(program)


def strict_faults(smt, programs):
    """The tenant's own server ends; a program that computes all the time on the shared one notices
    nothing."""
    with Apart(smt, programs) as place:
        neighbour, other = place.survivor("neighbour", options=()), place.survivor("other")
        before = place.servers()
        culprit = place.start("culprit", "misbehave", "wild", options=STRICT)
        turns = 0
        while culprit.poll() is None:
            say(neighbour, f"turn {turns}")
            turns += 1
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in culprit.communicate()[0].splitlines()
        place.await_no("simulated@culprit.sock")
        for key in SHARED_KEY, "simulated@other":
            assert place.servers()[key]["pid"] == before[key]["pid"], place.log()
        goes_on(neighbour)
        goes_on(other)
        assert "the tenant's own context is lost" in place.log(), place.log()
        assert "last fault of simulated@culprit" in place.command("status")
        crash = place.command("log", "--last-crash")
        assert "simulated@culprit" in crash and "is lost" in crash, crash


def shared_faults(smt, programs):
    """All programs of the shared server end; a strict tenant that computes all the time notices nothing."""
    with Apart(smt, programs) as place:
        strict, sufferer = place.survivor("strict"), place.survivor("sufferer", options=())
        server = place.servers()["simulated@strict"]["pid"]
        culprit = place.start("culprit", "misbehave", "wild")
        turns = 0
        while culprit.poll() is None:
            say(strict, f"turn {turns}")
            turns += 1
        output = sufferer.communicate("go\n", timeout=PATIENCE)[0]
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in output, output
        assert place.servers()["simulated@strict"]["pid"] == server
        goes_on(strict)
        place.run("next", "work", "2", "8")


def kernel_limit(smt, programs):
    """A strict tenant has a limit for its kernels without SMT_KEEPER=takeover, and none but it ends."""
    with Apart(smt, programs) as place:
        neighbour, sibling = place.survivor("neighbour", options=()), place.survivor("culprit")
        server = place.servers()["simulated@culprit"]["pid"]
        is_ended(endless(place, "culprit", 1, options=(*STRICT, "--kernel-limit", "1")))
        output = sibling.communicate("go\n" * 9999, timeout=PATIENCE)[0]
        assert "CUDA_ERROR_LAUNCH_TIMEOUT" in output, output
        await_end(server)
        goes_on(neighbour)
        place.run("culprit", "work", "2", "8", options=STRICT)


def listed(smt, programs):
    """Tenants that the administrator's file names are strict, whatever the program and its environment say.
    One that comes to the shared server by another way than `smt run` is refused."""
    with Apart(smt, programs) as place:
        file = pathlib.Path(place.folder.name) / "etc.toml"
        file.write_text('strict_tenants = "other, risky"\n')
        place.environment.update(SMT_SYSTEM_FILE=str(file), SMT_STRICT_TENANTS="free")
        free = place.survivor("free", options=())
        risky = place.survivor("risky", options=("--isolation", "shared"))
        assert place.tenants_of(SHARED_KEY) == ["free"]
        assert place.tenants_of("simulated@risky") == ["risky"]
        place.environment["SMT_TENANT"] = "risky"
        told = plain(place)
        assert f"strict_tenants in {file}, names tenant risky" in told and "ready" not in told, told
        goes_on(free)
        goes_on(risky)


def one_server(smt, programs):
    """Of all programs of one tenant, which share its limit; it ends with the last of them, and others of
    another name or without one have others."""
    with Apart(smt, programs) as place:
        first = place.survivor("twice", options=(*STRICT, "--memory", "64M"))
        second = place.survivor("twice")
        named = place.survivor("job.1-a_b")
        place.environment["SMT_FAMILY"] = "f" * 32
        unnamed = subprocess.Popen([place.smt, "run", *STRICT, "--", place.programs / "sim_survivor"],
                                   env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        assert unnamed.stdout.readline() == "ready\n"
        keys = {"simulated@twice": ["twice"] * 2, "simulated@job.1-a_b": ["job.1-a_b"],
                "simulated@_" + "f" * 32: ["sim_survivor"]}
        assert {key: place.tenants_of(key) for key in place.servers()} == keys
        assert place.command("set", "twice", "--memory", "32M").count("may hold") == 1
        limits = {each["memory_limit"] for each in place.servers()["simulated@twice"]["tenants"]}
        assert limits == {32 << 20}, limits
        pids = {key: server["pid"] for key, server in place.servers().items()}
        goes_on(first)
        say(second, "still")
        for program in second, named, unnamed:
            goes_on(program)
        for key, pid in pids.items():
            await_end(pid)
        assert place.files(".sock") == [], place.files(".sock")
        place.run("shared", "work", "2", "8")
        assert list(place.servers()) == [SHARED_KEY]


def comes_and_goes(smt, programs):
    """A program that comes while the server leaves finds the next one."""
    with Apart(smt, programs) as place:
        for _ in range(6):
            for program in [place.start("alice", "survivor", options=STRICT, stdin=subprocess.PIPE)
                            for _ in range(3)]:
                assert finish(program) == "ready\nCUDA_SUCCESS\n"
        place.await_no("simulated@alice.sock")
        assert place.files(".sock") == []


def tools_see_it(smt, programs):
    """status, top, log, suspend and resume reach it and say that it is strict."""
    with Apart(smt, programs) as place:
        shared, strict = place.survivor("shared", options=()), place.survivor("alice")
        servers = place.servers()
        assert [servers[key]["isolation"] for key in (SHARED_KEY, "simulated@alice")] == ["shared", "strict"]
        for words in ("status",), ("status", "--memory"), ("top", "--once"):
            line, = (line for line in place.command(*words).splitlines() if "server simulated@alice" in line)
            assert line.endswith(", strict: a context of one tenant") or "one tenant;" in line, line
        assert "isolation strict" in place.command("server", "status")
        log = place.command("log")
        assert re.search(r"alice +-- opened by sim_survivor", log), log
        assert re.search(r"shared +-- opened by sim_survivor", log), log
        assert "server simulated@alice, of one strict tenant" in log, log
        lines = place.command("log", "--json", "--tenant", "alice").splitlines()
        of_alice = [json.loads(line) for line in lines]
        assert of_alice and {entry["server"] for entry in of_alice} == {"simulated@alice"}
        assert "tenant alice is suspended" in place.command("suspend", "alice")
        say(shared, "on")
        assert "alice is suspended" in place.command("status")
        assert "tenant alice goes on" in place.command("resume", "alice")
        goes_on(strict)
        goes_on(shared)
        place.await_no("simulated@alice.sock")
        assert re.search(r"alice +-- opened by sim_survivor", place.command("log", "--tenant", "alice"))


def killed(smt, programs):
    """SIGKILL of its server: its program gets the error of a lost server and one line, the next program a
    new server."""
    with Apart(smt, programs) as place:
        neighbour, strict = place.survivor("neighbour", options=()), place.survivor("alice")
        pid = place.servers()["simulated@alice"]["pid"]
        os.kill(pid, signal.SIGKILL)
        await_end(pid)
        output = strict.communicate("go\n", timeout=PATIENCE)[0]
        said = [line for line in output.splitlines() if line.startswith("smt: ")]
        lost = f"lost the server (process {pid}), which crashed or was killed"
        assert len(said) == 1 and lost in said[0], output
        assert "simulated@alice.log" in said[0] and "CUDA_ERROR_SYSTEM_NOT_READY" not in output, output
        assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in output, output
        place.run("alice", "work", "2", "8", options=STRICT)
        goes_on(neighbour)
        assert "the server before this one ended without leaving" in place.log(), place.log()


def odd_names(smt, programs):
    """What could lead out of the runtime folder is refused in one line, by smt run and by libsmt.so, and so
    is a word that is none of the two."""
    with Apart(smt, programs) as place:
        outside = pathlib.Path(place.folder.name).parent
        before = set(outside.iterdir())
        for name in "../escape", "a/b", "a b", ".hidden", "_family", "a@b", "ä", "a\nb":
            said = place.command("run", "--tenant", name, *STRICT, "--", "true", code=2)
            assert "--isolation" not in said.splitlines()[0] and "begins with a letter or digit" in said, said
            place.environment["SMT_ISOLATION"] = "strict"
            place.environment["SMT_TENANT"] = name
            output = plain(place)
            del place.environment["SMT_ISOLATION"], place.environment["SMT_TENANT"]
            said = [line for line in output.splitlines() if line.startswith("smt: ")]
            assert len(said) == 1 and "begins with a letter or digit" in said[0], output
            assert "CUDA_ERROR_SYSTEM_NOT_READY" in output, output
        said = place.command("run", "--isolation", "apart", "--", "true", code=2)
        expected = "smt run: --isolation is shared, strict, fence or quarantine, not 'apart'"
        assert said.splitlines()[0] == expected, said
        place.environment["SMT_ISOLATION"] = "apart"
        output = plain(place)
        assert "SMT_ISOLATION is 'apart'; it takes shared, strict, fence" in output, output
        del place.environment["SMT_ISOLATION"]
        made = set(outside.iterdir()) - before
        assert place.files("") == [] and not any("escape" in path.name for path in made), made


def plain(place):
    """A program that was not started by smt run."""
    library = pathlib.Path(place.smt).parent.parent / "lib" / "libsmt.so"
    done = subprocess.run([place.programs / "sim_survivor"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE,
                          env=place.environment | {"LD_PRELOAD": str(library), "SMT_REAL_DRIVER": "none"})
    return done.stdout + done.stderr


def without_smt_run(smt, programs):
    """SMT_ISOLATION is enough; a child is of the same tenant as its parent, by their process group."""
    with Apart(smt, programs) as place:
        place.environment["SMT_ISOLATION"] = "strict"
        assert plain(place) == "ready\nCUDA_SUCCESS\n"
        key, = place.files(".journal")
        assert re.fullmatch(r"simulated@_group-\d+-in-\d+\.journal", key), key


def old_files(smt, programs):
    """Of servers that have ended only some leave files; one that runs keeps its own."""
    with Apart(smt, programs) as place:
        held = place.survivor("held")
        for number in range(MOST_KEPT + 3):
            place.run(f"job{number}", "work", "2", "8", options=STRICT)
        assert "simulated@held.log" in place.files(".log"), place.files(".log")
        keys = {name.removesuffix(".lock") for name in place.files(".lock")}
        assert len(keys) <= MOST_KEPT + 1 and f"simulated@job{MOST_KEPT + 2}" in keys, keys
        of_servers = {name.split(".")[0] for name in place.files("")} - {"addresses"}
        assert of_servers == keys, place.files("")
        goes_on(held)


def no_keeper(smt, programs):
    """It does without SMT_KEEPER and without a recording, and a program that comes later is told nothing of
    them."""
    with Apart(smt, programs) as place:
        record = pathlib.Path(place.folder.name) / "record"
        place.environment.update(SMT_KEEPER="takeover", SMT_JOURNAL=f"record={record}")
        first = place.survivor("alice")
        place.run("alice", "work", "2", "8", options=STRICT)
        goes_on(first)
        place.await_no("simulated@alice.sock")
        place.environment["SMT_ISOLATION"] = "strict"
        assert plain(place) == "ready\nCUDA_SUCCESS\n"   # whose server starts with these settings
        assert "keeper" not in place.log() and "standby" not in place.log(), place.log()
        assert not record.exists()


if __name__ == "__main__":
    run_scenario(globals())
