#!/usr/bin/env python3
"""Runs the test programs natively and under libsmt.so and compares what they print and return.

Each program: natively (the reference), preloaded while no other program uses its server, and preloaded eight
times at once on one server. While nothing but preloaded programs run, nvidia-smi must show smtd
alone. Python programs: natively, preloaded alone, and preloaded in pairs. One JSON line a run; the
table comes last. Exit code 0 when everything that ran was right.
"""
import argparse
import concurrent.futures
import contextlib
import difflib
import os
import pathlib
import queue
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, Watch, base_environment, run, tail  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("static", "shared", "per_thread")
TIME = re.compile(r" mean_ms \S+$", re.MULTILINE)   # of the examples
NOT_CHECKED = {"fault_client"}   # faults.py drives it


class Checker:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload, options.programs_dir)
        self.lines = Lines(os.path.join(options.out, "check.jsonl") if options.out else None)
        self.deadline = time.monotonic() + options.budget
        self.references = {}
        self.idle_runtimes = queue.Queue()
        self.environment = base_environment()
        # Python packages bring their own CUDA libraries: the toolkit's must not come first.
        self.python_environment = base_environment(with_libraries=False)
        self.python_environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

    def programs(self):
        found = []
        for kind in self.options.kinds.split(","):
            folder = os.path.join(self.places.programs, kind)
            if not os.path.isdir(folder):
                print(f"no programs in {folder}", file=sys.stderr)
                continue
            for name in sorted(os.listdir(folder)):
                if name not in NOT_CHECKED and re.search(self.options.select, name):
                    found.append((name, kind, [os.path.join(folder, name)]))
        return found

    def scripts(self):
        folder = os.path.join(HERE, "python")
        return [(name, "python", [self.options.python, os.path.join(folder, name)])
                for name in sorted(os.listdir(folder))
                if name.endswith("_basic.py") and re.search(self.options.select, name)]

    def in_parallel(self, jobs, work, items):
        def guarded(item):
            if time.monotonic() > self.deadline:
                return self.lines.add(mode=work.__name__, program=str(item[0])[:200], kind="", ok=None,
                                      why="skipped: out of time")
            try:
                return work(item)
            except Exception as error:   # one broken run must not end the others
                return self.lines.add(mode=work.__name__, program=str(item[0])[:200], kind="",
                                      ok=False, why=repr(error))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(guarded, items))

    def environment_of(self, kind):
        return self.python_environment if kind == "python" else self.environment

    def timeout_of(self, kind):
        return 240 if kind == "python" else self.options.timeout

    def native(self, item):
        name, kind, command = item
        done = run(command, self.environment_of(kind), None, self.timeout_of(kind))
        self.references[name, kind] = done
        self.lines.add(mode="native", program=name, kind=kind, ok=done["rc"] == 0, rc=done["rc"],
                       seconds=done["seconds"], out=tail(done["out"], 20000 if kind == "python" else 1500),
                       err=tail(done["err"]) if done["rc"] else "",
                       why="" if done["rc"] == 0 else "wrong natively")

    def compare(self, name, kind, done):
        """('exact' | 'close' | '', why not)"""
        reference = self.references.get((name, kind))
        if reference is None:
            return "", "no native run to compare with"
        if done["rc"] != reference["rc"]:
            return "", f"exit code {done['rc']}, natively {reference['rc']}"
        if TIME.sub("", done["out"]) == TIME.sub("", reference["out"]):
            return "exact", ""
        if kind == "python" and close(done["out"], reference["out"]):
            return "close", ""
        lines = [line for line in difflib.unified_diff(reference["out"].splitlines(),
                                                       done["out"].splitlines(), "native",
                                                       "smt", lineterm="", n=0) if not line.startswith("@@")]
        return "", "output differs: " + " | ".join(lines[2:14])

    def record(self, mode, name, kind, done, runtime, **more):
        """For one or several finished copies of one program (done: a list)."""
        verdicts = [self.compare(name, kind, one) for one in done]
        right = [verdict for verdict, _ in verdicts if verdict]
        bad = next((i for i, (verdict, _) in enumerate(verdicts) if not verdict), None)
        served = runtime.served(len(done))   # a run that smt did not see proves nothing
        fields = dict(mode=mode, program=name, kind=kind, ok=len(right) == len(done) <= served,
                      right=len(right),
                      copies=len(done), served=served,
                      exact=right.count("exact"), rc=[one["rc"] for one in done],
                      seconds=max(one["seconds"] for one in done),
                      why=verdicts[bad][1] if bad is not None else "" if served >= len(done)
                      else f"smtd served {served} sessions",
                      unsupported=runtime.unsupported(), **more)
        if bad is not None:
            fields.update(out=tail(done[bad]["out"], 600), err=tail(done[bad]["err"], 600),
                          server_log=runtime.log(1500))
        self.lines.add(**fields)

    def start(self, item, runtime, tenant):
        name, kind, command = item
        environment = {**self.environment_of(kind), **runtime.variables(SMT_TENANT=tenant)}
        return Child(command, environment, self.places.preload, self.timeout_of(kind))

    def alone(self, item):
        runtime = self.idle_runtimes.get()
        try:
            runtime.mark()
            done = self.start(item, runtime, item[0]).finish()
            self.record("alone", item[0], item[1], [done], runtime)
        finally:
            self.idle_runtimes.put(runtime)

    def all_alone(self, items):
        """Each program has a server to itself, which serves one after the other: starting one takes a
        second."""
        with contextlib.ExitStack() as stack:
            for _ in range(self.options.jobs):
                self.idle_runtimes.put(stack.enter_context(Runtime(self.places, SMT_COMPILE="wait=0")))
            self.in_parallel(self.options.jobs, self.alone, items)
            self.idle_runtimes = queue.Queue()

    def together(self, item):
        with Runtime(self.places, SMT_COMPILE="wait=0") as runtime:
            copies = [self.start(item, runtime, f"{item[0]}-{i}") for i in range(self.options.copies)]
            self.record("together", item[0], item[1], [copy.finish() for copy in copies], runtime)

    def pair(self, items):
        with Runtime(self.places, SMT_COMPILE="wait=0") as runtime:
            copies = [self.start(item, runtime, f"{item[0]}-{i}") for i, item in enumerate(items)]
            for i, (item, done) in enumerate(zip(items, [copy.finish() for copy in copies])):
                self.record("pair", item[0], item[1], [done], runtime, beside=items[1 - i][0])

    def watched(self, what, work):
        watch = Watch()
        watch.start()
        work()
        seen = watch.finish()
        self.lines.add(mode="nvidia-smi", program=what, kind="",
                       why="others: " + ", ".join(seen["others"]) if seen["others"] else
                       "" if seen["available"] else "no nvidia-smi", **seen)

    def check_programs(self):
        items = self.programs()
        self.in_parallel(self.options.jobs, self.native, items)
        self.watched("programs alone", lambda: self.all_alone(items))
        self.watched("programs together",
                     lambda: self.in_parallel(max(1, self.options.jobs // 2), self.together, items))

    def check_python(self):
        items = self.scripts()
        pairs = [(a, b) for i, a in enumerate(items) for b in items[i:]]
        self.in_parallel(self.options.jobs, self.native, items)
        self.watched("python alone", lambda: self.all_alone(items))
        self.watched("python pairs", lambda: self.in_parallel(self.options.jobs, self.pair, pairs))

    def table(self):
        print(f"{'program':<24} {'kind':<11} {'native':<8} {'alone':<8} {'together':<9} seconds n/a/t")
        marks = {}
        for line in self.lines.all:
            if line.get("mode") in ("native", "alone", "together"):
                marks.setdefault((line.get("program", "?"), line.get("kind")), {})[line["mode"]] = line
        for (name, kind), modes in sorted(marks.items(), key=str):
            def mark(mode):
                line = modes.get(mode)
                return ("-" if line is None else "ok" if line["ok"]
                        else f"{line.get('right', 0)}/{line.get('copies', 1)}")
            seconds = "/".join(f"{modes[mode].get('seconds', 0):.1f}" if mode in modes else "-"
                               for mode in ("native", "alone", "together"))
            print(f"{name:<24} {kind:<11} {mark('native'):<8} {mark('alone'):<8} {mark('together'):<9} "
                  f"{seconds}")
        for line in self.lines.all:
            if line.get("mode") == "pair":
                print(f"pair {line['program']} beside {line['beside']}: "
                      f"{'ok' if line['ok'] else line['why'][:200]}")
        for line in self.lines.all:
            if line.get("mode") == "nvidia-smi":
                print(f"nvidia-smi, {line['program']}: {line['polls']} polls, seen {line['seen']}: "
                      f"{'ok' if line['ok'] else 'NOT OK ' + line['why']}")
        unsupported = {}
        for line in self.lines.all:
            if isinstance(line.get("unsupported"), dict):
                for function in line["unsupported"]:
                    unsupported.setdefault(function, set()).add(line["program"])
        for function, names in sorted(unsupported.items()):
            print(f"unsupported: {function} ({', '.join(sorted(names))})")
        bad = [line for line in self.lines.all if not line.get("ok")]
        for line in bad:
            print(f"NOT OK {line['mode']} {line.get('kind', '')} {line.get('program', line.get('what'))}: "
                  f"{line.get('why', '')[:300]}")
        judged = [line for line in self.lines.all if line.get("ok") is not None]
        print(f"{sum(1 for line in judged if line['ok'])} of {len(self.lines.all)} right, {len(bad)} not")
        return not bad


def close(ours, reference):
    """Word by word, numbers to within 1e-4 of each other: for libraries that are not deterministic."""
    a, b = ours.split(), reference.split()
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x == y:
            continue
        try:
            if abs(float(x) - float(y)) > 1e-4 * max(1e-3, abs(float(x)), abs(float(y))):
                return False
        except ValueError:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", action="store_true",
                        help="the CUDA programs (default: these and --python)")
    parser.add_argument("--python", dest="with_python", action="store_true", help="the Python programs")
    parser.add_argument("--faults", action="store_true", help="faults.py as well")
    parser.add_argument("--select", default="", help="regular expression of program names")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--copies", type=int, default=8, help="how many at once")
    parser.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one program")
    parser.add_argument("--budget", type=float, default=540,
                        help="seconds after which no further run is started")
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload", help="libsmt.so (default: BUILD/lib/libsmt.so)")
    parser.add_argument("--programs-dir", help="default: BUILD/bin/gpu")
    parser.add_argument("--interpreter", dest="python", default=sys.executable)
    parser.add_argument("--out", help="folder for check.jsonl")
    options = parser.parse_args()
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    everything = not (options.programs or options.with_python or options.faults)
    checker = Checker(options)
    right = True
    if options.programs or everything:
        checker.check_programs()
    if options.with_python or everything:
        checker.check_python()
    if options.programs or options.with_python or everything:
        right = checker.table()
    if options.faults:
        import faults
        arguments = ["--build", options.build] + (["--out", options.out] if options.out else [])
        right = faults.main(arguments + (["--preload", options.preload] if options.preload else [])) and right
    return right


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
