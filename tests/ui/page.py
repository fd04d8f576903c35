#!/usr/bin/env python3
"""smt ui as a process, beside programs on the simulated device: page.py SMT FOLDER_OF_PROGRAMS SCENARIO"""

import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "simulated"), str(TESTS / "metrics")]

from asking import ask   # noqa: E402
from place import MANAGED, PATIENCE, Place, finish, wait_for   # noqa: E402


class Page:
    """A running smt ui: its address without the token, and requests with it."""

    def __init__(self, place, *arguments):
        self.process = subprocess.Popen([place.smt, "ui", *arguments], env=place.environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"(.+?)(?:/#| token )([0-9a-f]{32})\n", line)
        if not found:
            self.process.kill()
            raise AssertionError(line + "".join(self.process.communicate()))
        self.address, self.token = found.groups()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0 or error[0]
        self.process.communicate()

    def ask(self, path, method="GET", body=None, **headers):
        given = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        given.update((name.replace("_", "-"), text) for name, text in headers.items())
        return ask(self.address, method, path, body,
                   {name: text for name, text in given.items() if text is not None})

    def json(self, path):
        status, headers, text = self.ask(path)
        assert status == 200 and headers["Content-Type"].startswith("application/json"), (status, text)
        return json.loads(text)

    def change(self, what, **wish):
        status, _, text = self.ask("/" + what, "POST", json.dumps(wish))
        return status, text

    def tenant(self, name):
        found = [each for each in self.json("/state")["tenants"] if each["name"] == name]
        return found[0] if found else None


def smt_ui(place, *arguments):
    """Of one that does not start: exit code and what it says."""
    done = subprocess.run([place.smt, "ui", *arguments], env=place.environment, capture_output=True,
                          text=True, timeout=PATIENCE)
    return done.returncode, done.stderr


@contextlib.contextmanager
def busy(place, *tenants):
    """Programs that launch until the end."""
    started = [place.start(name, "work", "100000", "16", "1") for name in tenants]
    try:
        for name in tenants:
            place.wait_for_launch(name)
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


def live(place):
    """A page that is there before the server is, programs that run, and the server's end."""
    with Page(place) as page:
        state = page.json("/state")
        assert state["live"] and state["server"] is None and state["tenants"] == [], state
        assert "fifo" in page.json("/about")["policies"]
        with busy(place, "alice", "bob"):
            wait_for(lambda: page.tenant("alice") and page.tenant("bob"), lambda: page.ask("/state")[2])
            first = page.json("/state")
            assert first["server"]["multiprocessors"] == len(first["sms"]) > 0 and first["placed"], first
            names = {each["id"]: each["name"] for each in first["tenants"]}
            assert names[page.tenant("alice")["id"]] == "alice"
            ids = [sm[i] for sm in first["sms"] for i in range(0, len(sm), 2)]
            assert ids and set(ids) <= set(names), first
            alice = page.tenant("alice")
            assert alice["launches"] > 0 and alice["run"][0] <= alice["run"][1], alice
            assert alice["now"]["programs"] == 1 and alice["now"]["memory"] > 0, alice
            # The next frame begins where this one ended.
            wait_for(lambda: page.json("/state")["to"] > first["to"], lambda: page.ask("/state")[2])
            following = page.json(f"/state?from={first['to']}&over={first['from']}")
            assert following["from"] == first["to"] < following["to"], following
        subprocess.run([place.smt, "server", "stop"], env=place.environment, check=True, capture_output=True)
        wait_for(lambda: page.json("/state")["server"] is None, lambda: page.ask("/state")[2])


def changes(place):
    """What the page changes is what the server has afterwards."""
    with Page(place) as page, busy(place, "alice"):
        wait_for(lambda: page.tenant("alice"), lambda: page.ask("/state")[2])
        assert page.change("policy", policy="fair")[0] == 200
        assert page.json("/state")["server"]["policy"] == "fair"
        assert page.change("memory", tenant="alice", limit="1G")[0] == 200
        assert page.tenant("alice")["now"]["limit"] == 1 << 30
        assert page.change("memory", tenant="alice", limit="all")[0] == 200
        assert page.tenant("alice")["now"]["limit"] == 0
        assert page.change("terms", tenant="alice", priority="high", weight="2.5")[0] == 200
        now = page.tenant("alice")["now"]
        assert (now["priority"], now["weight"]) == (1, 2.5), now
        assert page.change("terms", tenant="alice", priority="-3")[0] == 200
        now = page.tenant("alice")["now"]
        assert (now["priority"], now["weight"]) == (-3, 2.5), now
        status, text = page.change("suspend", tenant="alice")
        assert status == 200 and page.tenant("alice")["now"]["suspended"], text
        assert page.change("resume", tenant="alice")[0] == 200
        assert not page.tenant("alice")["now"]["suspended"]
        for status, problem, what, wish in [
                (400, "no-such", "policy", {"policy": "no-such"}), (400, "missing", "policy", {}),
                (400, "missing", "terms", {"tenant": "alice"}),
                (400, "--weight", "terms", {"tenant": "alice", "weight": "0"}),
                (409, "no program of tenant carol", "terms", {"tenant": "carol", "priority": "1"}),
                (400, "much", "memory", {"tenant": "alice", "limit": "much"}),
                (409, "no program of tenant carol", "memory", {"tenant": "carol", "limit": "1G"})]:
            got = page.change(what, **wish)
            assert got[0] == status and problem in got[1], got


def refused(place):
    """Requests of other users, of other sites and of sites that name 127.0.0.1 theirs."""
    with Page(place) as page:
        wish = json.dumps({"policy": "fair"})
        for path in "/state", "/about":
            assert page.ask(path, Authorization=None)[0] == 401
            assert page.ask(path, Authorization="Bearer " + "0" * 32)[0] == 401
        for path in "/", "/state", "/page.js":
            assert page.ask(path, Host="evil.example")[0] == 403
        assert page.ask("/policy", "POST", wish, Authorization=None)[0] == 401
        for headers, status in [({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                                ({"Sec_Fetch_Site": "cross-site"}, 403), ({"Host": "evil.example"}, 403),
                                ({"Content_Type": "text/plain"}, 415), ({}, 409),
                                ({"Origin": page.address, "Sec_Fetch_Site": "same-origin"}, 409)]:
            got = page.ask("/policy", "POST", wish, **headers)
            assert got[0] == status, (headers, got)
        assert page.ask("/policy", "OPTIONS", Authorization=None, Origin="http://evil.example")[0] == 401
        assert page.ask("/policy", "POST", "x" * 100_000)[0] == 413
        assert page.ask("/policy")[0] == 405 and page.ask("/state", "POST", "{}")[0] == 405
        assert page.ask("/etc/passwd")[0] == 404 and page.ask("/../page.js")[0] == 404
        status, headers, text = page.ask("/", Authorization=None)
        assert status == 200 and page.token not in text, status
        assert "default-src 'none'" in headers["Content-Security-Policy"], headers
        assert "Access-Control-Allow-Origin" not in headers, headers


def replay(place):
    """Of a journal that was copied: what the page says of all of it is what smt log says."""
    place.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY="hpf")
    low = place.start("low", "mixed", "10", options=("--priority", "low"))
    place.run("high", "mixed", "5", "2", options=("--priority", "high"))
    finish(low)
    entries = [json.loads(line) for line in place.journal().splitlines()]
    subprocess.run([place.smt, "server", "stop"], env=place.environment, check=True, capture_output=True)
    [journal] = pathlib.Path(place.folder.name).glob("*.journal")
    copy = pathlib.Path(place.folder.name) / "talk"
    shutil.copy(journal, copy)
    with Page(place, "--replay", str(copy)) as page:
        told = page.json("/about")["replay"]
        assert told["file"] == "talk" and told["clock"] == "virtual", told
        whole = page.json(f"/state?from={told['begin']}&over={told['begin'] - 1}&to={told['end']}")
        launches = [each for each in entries if each["kind"] == "launch"]
        for name in "low", "high":
            [tenant] = [each for each in whole["tenants"] if each["name"] == name]
            assert tenant["launches"] == sum(each["tenant"] == name for each in launches) > 0, tenant
        assert told["end"] == max(each["end_ns"] for each in launches), told
        decisions = [each for each in entries if each["kind"] == "decision"]
        assert whole["decided"] == len(decisions) > 0
        latest = max(decisions, key=lambda each: (each["time_ns"], each["sequence"]))
        assert whole["decisions"][-1]["text"] == latest["text"], (whole["decisions"], latest)
        one = launches[len(launches) // 2]
        frame = page.json(f"/state?from={one['start_ns']}&to={one['end_ns']}&over={one['start_ns']}")
        ids = {each["id"]: each["name"] for each in frame["tenants"]}
        for sm in one["sms"]:
            had = {ids[frame["sms"][sm][i]]: frame["sms"][sm][i + 1]
                   for i in range(0, len(frame["sms"][sm]), 2)}
            assert had[one["tenant"]] == 100, (one, had)
        status, text = page.change("policy", policy="fair")
        assert status == 409 and "recording" in text, text


def misuse(place):
    """One clear line each."""
    folder = pathlib.Path(place.folder.name)
    code, said = smt_ui(place, "--replay", str(folder / "nothing"))
    assert code == 1 and "there is no journal" in said and str(folder / "nothing") in said, said
    wrong = folder / "wrong"
    wrong.write_bytes(b"\0" * 1000)
    code, said = smt_ui(place, "--replay", str(wrong))
    assert code == 1 and "is not a journal" in said and said.count("\n") == 1, said
    wrong.write_text('{"recording":1,"policy":"hpf"}\n')
    code, said = smt_ui(place, "--replay", str(wrong))
    assert code == 1 and "smt replay reads it" in said and said.count("\n") == 1, said
    for arguments in [("--listen", "0.0.0.0:1"), ("--replay", str(wrong), "--server", "x"), ("extra",)]:
        code, said = smt_ui(place, *arguments)
        assert code == 2 and "usage: smt ui" in said, said
    with Page(place, "--listen", "127.0.0.1:0") as page:
        port = urllib.parse.urlsplit(page.address).port
        code, said = smt_ui(place, "--listen", str(port))
        assert code == 1 and "Address already in use" in said and said.count("\n") == 1, said
    socket = folder / "ui.sock"
    with Page(place, "--listen", f"unix:{socket}") as page:
        assert socket.stat().st_mode & 0o777 == 0o600
        assert page.json("/state")["server"] is None
    assert not socket.exists()


def main():
    smt, programs, name = sys.argv[1:]
    with Place(smt, programs) as place:
        {each.__name__: each for each in (live, changes, refused, replay, misuse)}[name](place)


if __name__ == "__main__":
    main()
