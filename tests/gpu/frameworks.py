#!/usr/bin/env python3
"""Runs the programs of python/*_programs.py natively, under libsmt.so alone, and five at once on one server.

Same output and exit code as natively is right. A program that ends with an error under smt counts as refused
where the library says on stderr which call it does not support. One JSON line a run, then a table. Exit code
0 when at least --least of the programs that run natively were right in all modes, and every other one was
refused by name.
"""
import argparse
import contextlib
import json
import os
import pathlib
import queue
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
import harness  # noqa: E402
from check import HERE, Checker  # noqa: E402
from harness import Child, Runtime, run, tail  # noqa: E402

LIBRARIES = ("torch", "sharing", "jax", "cupy", "numba", "triton", "cuda", "model")
NAMED = re.compile(r"^smt: (\w+) is not supported", re.MULTILINE)   # SMT_REPORT_UNSUPPORTED=1


class Frameworks(Checker):
    def __init__(self, options):
        super().__init__(options)
        self.python_environment.update(OMP_NUM_THREADS="2", PYTHONFAULTHANDLER="1",
                                       PYTHONDONTWRITEBYTECODE="1")

    def scripts(self):
        found = []
        for library in LIBRARIES:
            path = os.path.join(HERE, "python", library + "_programs.py")
            with open(path) as file:
                names = re.findall(r"^@program\ndef (\w+)", file.read(), re.MULTILINE)
            found += [(f"{library}/{name}", "python", [self.options.python, path, name]) for name in names]
        return [item for item in found if re.search(self.options.select, item[0])]

    def environment_in(self, mode):
        """Libraries keep what they compiled: each mode begins without any of it."""
        caches = {name: os.path.join(self.caches, mode, name)
                  for name in ("CUPY_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
                               "SMT_CACHE_DIR")}
        for folder in caches.values():
            os.makedirs(folder, exist_ok=True)
        return {**self.python_environment, **caches}

    def start(self, mode, item, runtime):
        environment = {**self.environment_in(mode),
                       **runtime.variables(SMT_TENANT=item[0].replace("/", "-"), SMT_REPORT_UNSUPPORTED="1")}
        return Child(item[2], environment, self.places.preload, self.options.timeout)

    def know_natively(self, path):
        with open(path) as file:
            for line in map(json.loads, file):
                if line["mode"] == "native" and line["ok"]:
                    self.references[line["program"], line["kind"]] = line
                    self.lines.add(**line)

    def native(self, item):
        if (item[0], item[1]) in self.references:
            return
        done = run(item[2], self.environment_in("native"), None, self.options.timeout)
        self.references[item[0], item[1]] = done
        self.lines.add(mode="native", program=item[0], kind="python", ok=done["rc"] == 0, rc=done["rc"],
                       seconds=done["seconds"],
                       out=tail(done["out"], 1500), err=tail(done["err"], 1500) if done["rc"] else "",
                       why="" if done["rc"] == 0 else "wrong natively")

    def judge(self, mode, item, done, runtime, **more):
        verdict, why = self.compare(item[0], item[1], done)
        refused = (sorted(set(NAMED.findall(done["err"]))) if not verdict and done["rc"] not in (0, 124) and
                   done["rc"] < 128 else [])
        fields = dict(mode=mode, program=item[0], kind="python", ok=bool(verdict), refused=refused,
                      rc=done["rc"], seconds=done["seconds"],
                      why=why, named=sorted(set(NAMED.findall(done["err"]))), **more)
        if not verdict:
            fields.update(out=tail(done["out"], 800), err=tail(done["err"], 3000),
                          server_log=runtime.log(1500))
        self.lines.add(**fields)

    def native_and_alone(self, item):
        self.native(item)
        if self.references[item[0], item[1]]["rc"] == 0 and "alone" in self.modes:
            self.alone(item)

    def alone(self, item):
        runtime = self.idle_runtimes.get()
        try:
            runtime.mark()
            done = self.start("alone", item, runtime).finish()
            served = runtime.served(1)   # a run that smt did not see proves nothing
            self.judge("alone", item, done if served
                       else {**done, "rc": 125, "err": done["err"] + "\nsmtd served no session"}, runtime,
                       unsupported=runtime.unsupported())
        finally:
            self.idle_runtimes.put(runtime)

    def servers(self, stack, mode, count, places_each):
        """`count` servers, started one after the other: many at once take longer to start than a program
        waits for one."""
        for _ in range(count):
            runtime = stack.enter_context(Runtime(self.places, SMT_COMPILE="wait=0"))
            run([self.places.smt, "server", "start"], {**self.environment_in(mode), **runtime.variables()})
            for _ in range(places_each):
                self.idle_runtimes.put(runtime)

    def together(self, item):
        runtime = self.idle_runtimes.get()
        try:
            self.judge("together", item, self.start("together", item, runtime).finish(), runtime)
        finally:
            self.idle_runtimes.put(runtime)

    def check(self):
        items = self.scripts()
        self.modes = self.options.modes.split(",")
        with tempfile.TemporaryDirectory(prefix="smt-frameworks-") as self.caches:
            with contextlib.ExitStack() as stack:
                self.servers(stack, "alone", self.options.jobs if "alone" in self.modes else 0, 1)
                self.in_parallel(self.options.jobs, self.native_and_alone, items)
            self.idle_runtimes = queue.Queue()
            items = [item for item in items if self.references.get((item[0], item[1]), {}).get("rc") == 0]
            if "together" in self.modes:
                with contextlib.ExitStack() as stack:
                    self.servers(stack, "together", self.options.servers, self.options.at_once)
                    self.in_parallel(self.options.servers * self.options.at_once, self.together, items)
        return self.report(items)

    def report(self, items):
        marks = {}
        for line in self.lines.all:
            marks.setdefault(line["program"], {})[line["mode"]] = line
        right, refused = 0, []
        print(f"{'program':<36} {'native':<8} {'alone':<8} {'together':<9} seconds n/a/t")
        known = {item[0] for item in self.scripts()}
        for name, modes in sorted(marks.items()):
            if name not in known:
                continue
            def mark(mode):
                line = modes.get(mode)
                return ("-" if line is None else "ok" if line["ok"] else "refused" if line.get("refused")
                        else "WRONG")
            seconds = "/".join(f"{modes[mode].get('seconds', 0):.1f}" if mode in modes else "-"
                               for mode in ("native", "alone", "together"))
            print(f"{name:<36} {mark('native'):<8} {mark('alone'):<8} {mark('together'):<9} {seconds}")
            others = [line for mode, line in modes.items() if mode != "native"]
            right += bool(others) and all(line["ok"] for line in others)
            if any(line.get("refused") for line in others) and all(line["ok"] or line.get("refused")
                                                                   for line in others):
                refused.append(name)
        for line in self.lines.all:
            if not line.get("ok"):
                print(f"NOT OK {line['mode']} {line['program']}: {line.get('why', '')[:300]}"
                      + (f"; refused: {', '.join(line['refused'])}" if line.get("refused") else ""))
        met = {}
        for line in self.lines.all:
            for function in line["unsupported"] if isinstance(line.get("unsupported"), dict) else ():
                met.setdefault(function, set()).add(line["program"])
        for function, names in sorted(met.items()):
            print(f"unsupported: {function} ({', '.join(sorted(names))})")
        skipped = sum(1 for line in self.lines.all if line["ok"] is None)
        failed = sum(1 for line in self.lines.all if line["mode"] == "native" and not line["ok"])
        print(f"{right} of {len(items)} as natively, {len(refused)} refused by name, "
              f"{len(items) - right - len(refused)} neither; "
              f"{failed} do not run natively, {skipped} runs skipped")
        return not skipped and right >= self.options.least and right + len(refused) == len(items)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", default="", help="regular expression of names, as torch/attention")
    parser.add_argument("--modes", default="alone,together")
    parser.add_argument("--least", type=int, default=48, help="how many must be right")
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--servers", type=int, default=1,
                        help="how many servers have so many programs at once, to be ready sooner")
    parser.add_argument("--natively", help="check.jsonl of an earlier run: what went well natively there is "
                        "not run natively again")
    parser.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--timeout", type=int, default=150, help="seconds for one program")
    parser.add_argument("--budget", type=float, default=1500,
                        help="seconds after which no further run is started")
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload", help="libsmt.so (default: BUILD/lib/libsmt.so)")
    parser.add_argument("--interpreter", dest="python", default=sys.executable)
    parser.add_argument("--out", help="folder for check.jsonl")
    options = parser.parse_args()
    options.programs_dir, options.kinds = None, ""
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    frameworks = Frameworks(options)
    if options.natively:
        frameworks.know_natively(options.natively)
    return frameworks.check()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
