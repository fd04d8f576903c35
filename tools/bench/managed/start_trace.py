"""Where the time of one start of a program goes, natively and under smt, for first_starts.py --trace.

  native    without smt
  cold      with a fresh server, which the program starts, and an empty cache
  cached    with a fresh server and the cache that the cold run left
  started   with a server that is there, but has run nothing, and an empty cache
  again     with that server, a second time

Times are of three places, all by CLOCK_MONOTONIC: the program's calls of the driver, by a library that is
preloaded (start_marks.cpp); the server's files and journal; and what the server's thread did in each call
(SMT_CALLS). Without the library there is the time until the process has ended, and the server's side.
"""
import collections
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from harness import Runtime, tail

STATES = ("native", "cold", "cached", "started", "again")
# A start's parts in their order. Of calls a part is the sum, of the thread that makes most.
CALLS = (("cuInit", r"cuInit$"), ("lookups", r"cuGetProcAddress"),
         ("context", r"cuDevicePrimaryCtx|cuCtx(?!Synchronize)"),
         ("loads", r"cu(Module|Library|Kernel|Func|Link)"), ("launches", r"cu(Graph)?Launch"),
         ("copies, waits", r"cu(Memcpy|Memset|Stream|Event|CtxSynchronize)"), ("memory", r"cuMem"),
         ("other calls", r"cu"))
PARTS = ("process", "until the first call", "cuInit", "lookups", "context", "loads", "first launch",
         "launches", "copies, waits", "memory", "other calls", "between calls", "behind the last call",
         "exit")
SEEN = ("server is begun", "server listens", "session", "first launch seen", "session over")
SERVER = ("driver", "thread", "waits")   # of SMT_CALLS
LONGEST = 6        # calls and functions of the driver that are shown
PATIENCE = 10      # seconds for the server to have closed a session


def part_of(call):
    return next(part for part, names in CALLS if re.match(names, call))


def read_marks(paths):
    """{"loaded": ns, "ending": ns, "calls": [(name, begin, end)]} of the process with most calls, or None."""
    best = None
    for path in paths:
        found, threads = {"calls": []}, collections.defaultdict(list)
        with open(path) as file:
            for kind, *words in map(str.split, file):
                if kind == "call":
                    threads[words[3]].append((words[0], int(words[1]), int(words[2])))
                else:
                    found[kind] = int(words[0])
        found["calls"] = max(threads.values(), key=len, default=[])
        if "ending" in found and (best is None or len(found["calls"]) > len(best["calls"])):
            best = found
    return best


def parts_of(marks, begun, ended):
    """Milliseconds of each part; their sum is the whole."""
    parts = {part: 0 for part in PARTS}
    parts["process"] = marks["loaded"] - begun
    parts["exit"] = ended - marks["ending"]
    calls, launched = marks["calls"], False
    if not calls:
        parts["behind the last call"] = marks["ending"] - marks["loaded"]
        return {part: ns / 1e6 for part, ns in parts.items()}
    parts["until the first call"] = calls[0][1] - marks["loaded"]
    parts["behind the last call"] = marks["ending"] - calls[-1][2]
    for name, begin, end in calls:
        part = part_of(name)
        if part == "launches" and not launched:
            part, launched = "first launch", True
        parts[part] += end - begin
    parts["between calls"] = calls[-1][2] - calls[0][1] - sum(end - begin for _, begin, end in calls)
    return {part: ns / 1e6 for part, ns in parts.items()}


def longest(calls):
    """[(name, times, ms)] of what took longest."""
    sums = collections.defaultdict(lambda: [0, 0])
    for name, begin, end in calls:
        sums[name][0] += 1
        sums[name][1] += end - begin
    return [(name, times, round(ns / 1e6, 3)) for name, (times, ns) in
            sorted(sums.items(), key=lambda item: -item[1][1])[:LONGEST]]


def served(path, pid):
    """Of SMT_CALLS: what the server's threads did for one process, in ms, in which of its calls most, and by
    which of the driver's functions."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        lanes = [lane for lane in map(json.loads, file) if lane["pid"] == pid]
    sums, driver, calls = collections.Counter(), collections.Counter(), {}
    for lane in lanes:
        for call in lane["calls"]:
            of = {each: call[each] for each in SERVER}
            sums.update(of)
            calls.setdefault(call["name"], collections.Counter()).update(of)
        for function in lane["driver"]:
            driver[function["name"]] += function["total"]
    most = sorted(calls, key=lambda name: -sum(calls[name].values()))[:LONGEST]
    return {**{each: round(sums[each] / 1e6, 3) for each in SERVER},
            "calls": [(name, *(round(calls[name][each] / 1e6, 3) for each in SERVER)) for name in most],
            "functions": [(name, round(ns / 1e6, 3)) for name, ns in driver.most_common(LONGEST)]}


class StartTrace:
    """`judge(done)`: what was wrong with a run, or None. `lines` gets a row a run."""

    def __init__(self, places, environment, command, judge, lines, marks, simulated=False):
        self.places, self.environment, self.command, self.judge = places, environment, command, judge
        self.lines, self.simulated = lines, simulated
        self.marks = marks if marks and os.path.exists(marks) else None
        self.rows = []

    def states(self):
        return STATES[1:] if self.simulated else STATES

    def round(self, number, mode):
        """Once through all states."""
        scratch = tempfile.mkdtemp(prefix="smt-trace-")
        try:
            if not self.simulated:
                self.note(number, mode, "native", None, scratch)
            for first, second in (("cold", "cached"), ("started", "again")):
                cache = os.path.join(scratch, f"cache-{first}")
                if first == "cold":
                    for state in (first, second):
                        with self.runtime(mode, cache, scratch, state) as runtime:
                            self.note(number, mode, state, runtime, scratch)
                else:
                    with self.runtime(mode, cache, scratch, first) as runtime:
                        self.start(runtime)
                        for state in (first, second):
                            self.note(number, mode, state, runtime, scratch, first)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def runtime(self, mode, cache, scratch, calls):
        return Runtime(self.places, SMT_COMPILE=mode, SMT_CACHE_DIR=cache, SMT_PROFILES="none",
                       SMT_CALLS=f"file={scratch}/calls-{calls}")

    def start(self, runtime):
        subprocess.run([self.places.smt, "server", "start"], capture_output=True, timeout=60,
                       env={**self.environment, **runtime.variables()})

    def run(self, state, runtime, scratch):
        """(pid, when it began and ended, what it was, its marks)"""
        prefix = os.path.join(scratch, f"marks-{state}")
        preload = [each for each in (self.marks, runtime and self.places.preload) if each]
        variables = {**self.environment, **(runtime.variables(SMT_TENANT=state) if runtime else {}),
                     "START_MARKS": prefix, **({"LD_PRELOAD": ":".join(preload)} if preload else {})}
        begun = time.monotonic_ns()
        process = subprocess.Popen(self.command, env=variables, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        ended = time.monotonic_ns()
        done = {"rc": process.returncode, "out": out, "err": err}
        return process.pid, begun, ended, done, read_marks(glob.glob(prefix + ".*"))

    def note(self, number, mode, state, runtime, scratch, calls=None):
        pid, begun, ended, done, marks = self.run(state, runtime, scratch)
        row = {"mode": mode, "state": state, "round": number, "ms": (ended - begun) / 1e6,
               "wrong": self.judge(done)}
        if marks:
            row.update(parts=parts_of(marks, begun, ended), longest=longest(marks["calls"]))
        if runtime:
            row["seen"], row["notes"] = self.seen(runtime, state, begun)
            path = os.path.join(scratch, f"calls-{calls or state}")
            row["server"] = served(path, row["seen"].pop("pid", pid))
        self.rows.append(row)
        self.lines.add(part="trace", **row)
        print(f"round {number}: {mode} {state}: {row['ms']:.1f} ms", row["wrong"] or "", flush=True)

    def seen(self, runtime, state, begun):
        """When the server was begun and listened, as its files say, and what its journal has of the session,
        in ms from the program's start; and its notes."""
        found, notes = {}, []
        offset = time.time_ns() - time.monotonic_ns()
        for name, end in (("server is begun", "lock"), ("server listens", "sock")):
            for path in glob.glob(os.path.join(runtime.directory, f"*.{end}")):
                found[name] = (os.stat(path).st_mtime_ns - offset - begun) / 1e6
        for entry in self.session(runtime, state):
            at = None if entry.get("clock") == "virtual" or self.simulated else \
                (entry["time_ns"] - begun) / 1e6
            if entry["kind"] == "opened":
                found["session"], found["pid"] = at, entry["value"]
            elif entry["kind"] == "launch":
                found.setdefault("first launch seen", at)
            elif entry["kind"] == "closed":
                found["session over"] = at
            elif entry["kind"] == "note" and (at is None or at >= 0):
                notes.append((at, tail(entry["text"], 200)))
        return found, notes

    def session(self, runtime, state):
        """The journal's entries of this tenant, and those without one, once the session is closed."""
        end = time.monotonic() + PATIENCE
        while True:
            log = subprocess.run([self.places.smt, "log", "--json"], capture_output=True, text=True,
                                 env={**self.environment, **runtime.variables()}, timeout=60).stdout
            entries = [entry for entry in map(json.loads, log.splitlines())
                       if entry["tenant"] in (state, "") and entry["kind"] in
                       ("opened", "closed", "launch", "note")]
            if any(entry["kind"] == "closed" for entry in entries) or time.monotonic() > end:
                return entries
            time.sleep(0.02)

    # ---- the tables

    def median(self, state, mode, value):
        values = [each for each in (value(row) for row in self.rows if row["state"] == state
                                    and row["mode"] == mode and not row["wrong"]) if each is not None]
        return statistics.median(values) if values else None

    def show(self):
        for mode in dict.fromkeys(row["mode"] for row in self.rows):
            rounds = len({row["round"] for row in self.rows if row["mode"] == mode})
            print(f"\n{mode}: a start's parts, medians of {rounds} rounds, ms")
            self.table(mode, PARTS, lambda row, part: row.get("parts", {}).get(part))
            self.line(mode, "in all", lambda row: row["ms"])
            print("\nfrom the program's start, ms")
            self.table(mode, SEEN, lambda row, name: row.get("seen", {}).get(name))
            print("\nthe server's thread in this program's calls, ms")
            self.table(mode, SERVER, lambda row, name: (row.get("server") or {}).get(name))
            self.show_longest(mode)

    def table(self, mode, names, value):
        print(f"{'':<22}" + "".join(f"{state:>10}" for state in self.states()))
        for name in names:
            self.line(mode, name, lambda row: value(row, name))

    def line(self, mode, name, value):
        cells = [self.median(state, mode, value) for state in self.states()]
        print(f"{name:<22}" + "".join(f"{'-':>10}" if each is None else f"{each:>10.2f}" for each in cells))

    def show_longest(self, mode):
        print("\nwhat took longest in the last round, ms: the program's calls; in the server these calls "
              f"({', '.join(SERVER)}), and functions of the driver")
        for state in self.states():
            row = next((row for row in reversed(self.rows)
                        if row["state"] == state and row["mode"] == mode), {})
            print(f"{state}:", ", ".join(f"{name} {ms:.2f} ({times})"
                                         for name, times, ms in row.get("longest", [])))
            server = row.get("server") or {"calls": [], "functions": []}
            for name, *of in server["calls"]:
                print(f"  server: {name}", " ".join(f"{ms:.2f}" for ms in of))
            if server["functions"]:
                print("  driver:", ", ".join(f"{name} {ms:.2f}" for name, ms in server["functions"]))
            for at, text in row.get("notes", []):
                print(f"  {'' if at is None else f'{at:.1f}: '}{text}")
