#!/usr/bin/env python3
"""What smt suspend and smt resume take for a tenant of so many GiB, against its bytes by pinned bandwidth.

    suspend.py --out OUT [--build BUILD] [--gib 1,4,16] [--allocations 1,64,4096] [--repeats 5]
               [--keeper 0|1] [--budget SECONDS] [--plan] [--device sim --mib 8]

Each case is a program (holder.cu) that holds so much in so many allocations; it measures the bandwidth of a
copy between pinned host memory and the device, each way, before it is suspended and resumed. In the end it
looks at every word. `ideal` is the bytes that moved by that bandwidth; `copied` is the server's time for
memory and copies, `took` all of it, with the time until the tenant stands; `over` is took by ideal. They
are medians without the first one, which pins host memory that the others find pinned. Wrong, and the exit
code 1: words that are not right, and a command that fails.

Results: OUT/suspend.jsonl with a row a case, OUT/suspend.json with all of them, and a table. --plan measures
nothing, needs no build, and says what would be done and about how long it takes. With --budget no case is
begun after that time.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from harness import Child, Lines, Places, Runtime, tail  # noqa: E402
from measurement import built_twice  # noqa: E402

START = 5        # seconds until a program is ready: a guess, for --plan
GIB_PER_S = 5    # that a GiB takes each way, pinned pages included: likewise
PATIENCE = 600


def numbers(text):
    values = [float(each) for each in text.split(",")]
    if not values or any(each <= 0 for each in values):
        raise argparse.ArgumentTypeError(f"positive numbers, not '{text}'")
    return values


def cases(options):
    """(MiB, allocations), where an allocation has at least 64 KiB."""
    sizes = [options.mib] if options.mib else [int(gib * 1024) for gib in options.gib]
    return [(mib, int(count)) for mib in sizes for count in options.allocations if mib * 16 >= count]


def plan(options):
    seconds = 0
    for mib, count in cases(options):
        takes = START + options.repeats * 2 * mib / 1024 / GIB_PER_S
        seconds += takes
        print(f"{mib:8} MiB in {count:5} allocations, {options.repeats} times out and in: "
              f"about {takes:.0f} s")
    print(f"about {seconds:.0f} s in all")


class Suspending:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.program, self.environment = built_twice(options, "bench_suspend", grace=20)
        self.lines = Lines(os.path.join(options.out, "suspend.jsonl"))

    def run(self):
        until = time.monotonic() + self.options.budget
        left = cases(self.options)
        while left and time.monotonic() < until:
            mib, count = left.pop(0)
            with Runtime(self.places, SMT_KEEPER=str(self.options.keeper)) as runtime:
                row = self.lines.add(mib=mib, allocations=count, keeper=self.options.keeper,
                                     **self.case(runtime, mib, count))
            print(describe(row), flush=True)
        return len(left)

    def case(self, runtime, mib, count):
        environment = {**self.environment, **runtime.variables(SMT_TENANT="holder")}
        holder = Child([self.program, str(mib), str(count)], environment, self.places.preload, PATIENCE,
                       stdin=True)
        if not holder.wait_ready(PATIENCE):
            return self.failed(holder, runtime, "the program does not start")
        speed = json.loads(re.search(rb"\{.*\}", holder.out)[0])
        moves = []
        for _ in range(self.options.repeats):
            for command, bandwidth in (("suspend", speed["out_bytes_per_s"]),
                                       ("resume", speed["in_bytes_per_s"])):
                said = self.ask(command, environment)
                if isinstance(said, str):
                    return self.failed(holder, runtime, said)
                moves.append({"what": command, "moved_bytes": said["moved_bytes"], "pinned": said["pinned"],
                              "stay_bytes": said["stay_bytes"], "took_ms": said["took_ns"] / 1e6,
                              "copied_ms": said["copied_ns"] / 1e6,
                              "ideal_ms": said["moved_bytes"] / bandwidth * 1e3})
        holder.tell()
        end = holder.finish()
        right = '"right": true' in end["out"]
        return {"ok": right and end["rc"] == 0, "why": "" if right else tail(end["out"] + end["err"], 300),
                **speed, "moves": moves}

    def ask(self, command, environment):
        """Its line, or what went wrong."""
        more = ["--timeout", "60"] if command == "suspend" else []
        done = subprocess.run([self.places.smt, command, "holder", "--json", *more], env=environment,
                              capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()

    @staticmethod
    def failed(holder, runtime, why):
        holder.kill()
        end = holder.finish()
        said = tail(end["out"] + end["err"], 300)
        return {"ok": False, "why": f"{why}: {said} {runtime.log(600)}", "moves": []}


def middle(row, what, name):
    """Of all but the first one, which pins the host memory that the others find."""
    of_all = [move[name] for move in row["moves"] if move["what"] == what]
    return statistics.median(of_all[1:] or of_all)


def describe(row):
    text = f"{row['mib']:8} MiB {row['allocations']:6} "
    if not row["ok"]:
        return text + "FAILS: " + row["why"]
    for what in ("suspend", "resume"):
        took, copied, ideal = (middle(row, what, name) for name in ("took_ms", "copied_ms", "ideal_ms"))
        over = took / ideal if ideal else 0
        text += f" {what} {took:10.1f} ms, copied {copied:10.1f}, ideal {ideal:10.1f}, over {over:6.2f}"
        first = next(move for move in row["moves"] if move["what"] == what)
        text += f" (the first {first['took_ms'] / first['ideal_ms'] if first['ideal_ms'] else 0:.2f})"
    pinned = all(move["pinned"] for move in row["moves"] if move["what"] == "suspend")
    return text + ("" if pinned else "  (pageable)")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_suspend")
    parser.add_argument("--out")
    parser.add_argument("--gib", type=numbers, default=[1, 4, 16])
    parser.add_argument("--mib", type=int, help="in place of --gib")
    parser.add_argument("--allocations", type=numbers, default=[1, 64, 4096])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keeper", type=int, choices=(0, 1), default=0)
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--plan", action="store_true", help="what would be done, and how long")
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    if options.plan:
        plan(options)
        return 0
    if not options.out:
        parser.error("--out is needed, but for --plan")
    os.makedirs(options.out, exist_ok=True)
    suspending = Suspending(options)
    left = suspending.run()
    with open(os.path.join(options.out, "suspend.json"), "w") as file:
        json.dump({"device": options.device or "gpu", "not_begun": left, "cases": suspending.lines.all}, file,
                  indent=1)
    if left:
        print(f"{left} cases were not begun: the time was over")
    return 0 if suspending.lines.all and all(row["ok"] for row in suspending.lines.all) else 1


if __name__ == "__main__":
    sys.exit(main())
