#!/usr/bin/env python3
"""Runs every example on a GPU natively and under libsmt.so, with both runtimes, at every size.

All runs of one program at one size must print the same but for the kernel's time, so also the checksum that
examples/checksums.txt has for them. Preloaded programs share a server for each size, so that several
are tenants at a time. One JSON line a run; the table comes last. Exit code 0 when everything that ran
was right and nothing was left out.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, run, tail  # noqa: E402
from printed import read_checksums  # noqa: E402

SIZES = ("trivial", "small", "large")
KINDS = ("static", "shared")
SIDES = ("native", "smt")
KERNEL = re.compile(r"^kernel (\S+) launches (\d+) mean_ms (\S+)$", re.MULTILINE)


def value_of(line, output):
    found = re.search(rf"^{line} (\w+)$", output, re.MULTILINE)
    return found[1] if found else None


class Examples:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload,
                             options.programs_dir or os.path.join(options.build, "examples"))
        self.lines = Lines(os.path.join(options.out, "examples.jsonl") if options.out else None)
        self.deadline = time.monotonic() + options.budget
        self.checksums = read_checksums(options.checksums)
        self.environment = base_environment()
        self.outputs = {}   # (program, size): what the first native run printed

    def names(self):
        found = set()
        for kind in self.options.kinds:
            folder = os.path.join(self.places.programs, kind)
            found.update(os.listdir(folder) if os.path.isdir(folder) else [])
        return sorted(name for name in found if re.search(self.options.select, name))

    def one(self, name, size, kind, side, runtime=None):
        fields = dict(program=name, size=size, kind=kind, side=side, jobs=self.jobs_of(size))
        left = self.deadline - time.monotonic()
        if left < 1:
            return self.lines.add(**fields, ok=None, why="left out: no time")
        command = [self.places.program(name, kind), "--size", size, "--iterations",
                   str(self.options.iterations[size])]
        limit = max(2, int(min(left + 5, self.options.timeout)))
        if side == "native":
            done = run(command, self.environment, None, limit)
        else:
            tenant = {"SMT_TENANT": f"{name}-{kind}"}
            done = Child(command, {**self.environment,
                                   **runtime.variables(**tenant)}, self.places.preload, limit).finish()
        output = done["out"]
        kernel = KERNEL.search(output)
        why = self.judge(name, size, done)
        fields.update(kernel=kernel[1] if kernel else None, launches=int(kernel[2]) if kernel else None,
                      kernel_ms=float(kernel[3]) if kernel else None, total_s=done["seconds"], rc=done["rc"],
                      checksum=value_of("checksum", output), fingerprint=value_of("fingerprint", output),
                      ok=not why, why=why)
        if why:
            fields.update(out=tail(output), err=tail(done["err"]))
        return self.lines.add(**fields)

    def judge(self, name, size, done):
        """Why it is not right, or nothing."""
        checksum = value_of("checksum", done["out"])
        if done["rc"] != 0:
            return f"exit code {done['rc']}"
        if not checksum:
            return "printed no checksum"
        expected = self.checksums.get((name, size), checksum)
        if checksum != expected:
            return f"checksum {checksum}, not {expected}"
        said = KERNEL.sub("", done["out"])
        if said != self.outputs.setdefault((name, size), said):
            return "did not print what the first run did"
        return ""

    def jobs_of(self, size):
        return self.options.large_jobs if size == "large" else self.options.jobs

    def in_parallel(self, size, items):
        def guarded(item):
            try:
                self.one(*item)
            except Exception as error:   # one broken run must not end the others
                self.lines.add(program=item[0], size=item[1], kind=item[2], side=item[3],
                               ok=False, why=repr(error))
        with concurrent.futures.ThreadPoolExecutor(self.jobs_of(size)) as pool:
            list(pool.map(guarded, items))

    def run_size(self, size):
        pairs = [(name, kind) for name in self.names() for kind in self.options.kinds]
        if "native" in self.options.sides:
            self.in_parallel(size, [(name, size, kind, "native") for name, kind in pairs])
        if "smt" not in self.options.sides:
            return
        with Runtime(self.places, SMT_COMPILE="wait=0") as runtime:
            before = len(self.lines.all)
            self.in_parallel(size, [(name, size, kind, "smt", runtime) for name, kind in pairs])
            finished = sum(1 for line in self.lines.all[before:] if line.get("rc") == 0)
            served = runtime.served(finished)   # a run that smt did not see proves nothing
            fields = dict(program="(server)", size=size, kind="", side="smt", served=served,
                          unsupported=runtime.unsupported())
            if served < finished:
                fields.update(ok=False, why=f"smtd served {served} sessions of {finished}",
                              err=runtime.log(1500))
            self.lines.add(**{"ok": True, **fields})

    def table(self):
        runs = {(line["program"], line["size"], line["kind"], line["side"]): line for line in self.lines.all}
        columns = [(kind, side) for kind in self.options.kinds for side in self.options.sides]
        print(f"{'program':<20} {'size':<8} "
              f"{'kernel ms: ' + '  '.join('/'.join(column) for column in columns):<60} total s  checksum")
        for name in self.names():
            for size in self.options.sizes:
                found = [runs.get((name, size, *column), {}) for column in columns]
                times = " ".join(f"{line['kernel_ms']:>14.4f}" if line.get("kernel_ms") is not None
                                 else f"{'-':>14}" for line in found)
                seconds = "/".join(f"{line['total_s']:.1f}" if "total_s" in line else "-" for line in found)
                sums = {line.get("checksum") for line in found if line.get("checksum")}
                print(f"{name:<20} {size:<8} {times:<60} {seconds}  {' '.join(sorted(sums)) or '-'}")
        for line in self.lines.all:
            if isinstance(line.get("unsupported"), dict) and line["unsupported"]:
                print(f"unsupported at size {line['size']}: {line['unsupported']}")
        bad = [line for line in self.lines.all if not line["ok"]]
        for line in bad:
            print(f"NOT OK {line['program']} {line['size']} {line['kind']} {line['side']}: "
                  f"{line['why'][:300]}")
        print(f"{len(self.lines.all) - len(bad)} of {len(self.lines.all)} right, {len(bad)} not")
        return not bad


def main():
    def of(allowed):
        def split(text):
            chosen = text.split(",")
            wrong = [word for word in chosen if word not in allowed]
            if wrong:
                raise argparse.ArgumentTypeError(f"'{wrong[0]}' is none of {', '.join(allowed)}")
            return chosen
        return split
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", default="", help="regular expression of program names")
    parser.add_argument("--sizes", type=of(SIZES), default=list(SIZES))
    parser.add_argument("--kinds", type=of(KINDS), default=list(KINDS))
    parser.add_argument("--sides", type=of(SIDES), default=list(SIDES))
    parser.add_argument("--iterations", type=json.loads, default={"trivial": 1, "small": 3, "large": 3},
                        help="kernel launches, or sets of them, by size, as JSON")
    parser.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--large-jobs", type=int, default=2,
                        help="at size large, where programs take up to 22 GB")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one program")
    parser.add_argument("--budget", type=float, default=150,
                        help="seconds after which no further run is started")
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload", help="libsmt.so (default: BUILD/lib/libsmt.so)")
    parser.add_argument("--programs-dir", help="default: BUILD/examples")
    parser.add_argument("--checksums", default=os.path.join(harness.ROOT, "examples", "checksums.txt"))
    parser.add_argument("--out", help="folder for examples.jsonl")
    options = parser.parse_args()
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    examples = Examples(options)
    if not examples.names():
        print(f"no examples in {examples.places.programs}: build the target examples", file=sys.stderr)
        return False
    for size in options.sizes:
        examples.run_size(size)
    return examples.table()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
