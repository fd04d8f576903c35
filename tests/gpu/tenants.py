#!/usr/bin/env python3
"""Eight tenants with random arrivals under each policy, and while the policy changes. Every result is
checked; exit code 0 when all were right, every tenant finished some of its jobs under every policy, and the
server kept nothing of them.

    tenants.py --seconds 600                   each policy so long, then --switching seconds of another policy
                                               every --every seconds
    tenants.py --at-once --seconds 600 --sizes small    all of that at the same time: a server for each
                                               policy, and one whose policy changes. They share the GPU as any
                                               two contexts do, in turns
    tenants.py --device sim --jobs 1           by jobs instead of time: so many a tenant and policy; the
                                               policy changes with each job

A tenant runs one program after the other, each with a random number of iterations and of a random size, and a
random pause before it (exponential, --pause in the mean). JSON lines in tenants.jsonl. With --longest, a job
that takes more seconds is starvation.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from harness import compute_apps, gpu_memory_used  # noqa: E402
from printed import quantile  # noqa: E402
from stage import Stage  # noqa: E402

PROGRAMS = ["nbody", "vector_add", "md5_hash", "stencil3d", "black_scholes", "matrix_multiply",
            "pathfinder", "spmv"]
POLICIES = ["fifo", "priority", "greedy", "hpf", "fair", "share", "slice", "compact"]
# of the server's memory: allocators keep what they had, for each of its threads
MOST_GROWTH, SOME_KB = 1.25, 48 << 10
DECIDED = re.compile(r"policy (\S+) decided (\d+) times: (.*)")


class Tenants:
    def __init__(self, stage):
        self.stage, self.options = stage, stage.options
        self.rows, self.lock = [], threading.Lock()
        self.finished = threading.Event()   # some job has
        self.running = 0

    def job(self, index, which, chance, part):
        name = PROGRAMS[index]
        size = "trivial" if self.stage.simulated else chance.choice(self.options.sizes.split(","))
        iterations = chance.randint(2, 6) if self.stage.simulated else chance.randint(5, 30)
        begin = time.monotonic()
        equal = self.options.equal
        child = self.stage.start(name, iterations, which, tenant=f"t{index}", size=size,
                                 urgent=index == 0 and not equal, weight=1 if equal else 1 + index % 3)
        row = self.stage.finish(name, child, size)
        del row["ends_s"], row["times_ms"]
        row = self.stage.lines.add(part=part, tenant=index, size=size, iterations=iterations,
                                   begin=begin, **row)
        with self.lock:
            self.rows.append(row)
        self.finished.set()

    def tenant(self, index, which, end, part):
        chance = random.Random(f"{self.options.seed} {part} {index}")
        done = 0
        while time.monotonic() < end if end else done < self.options.jobs:
            if end:
                time.sleep(min(chance.expovariate(1 / self.options.pause), max(0.0, end - time.monotonic())))
            self.job(index, which, chance, part)
            done += 1
        with self.lock:
            self.running -= 1
        self.finished.set()

    def all(self, which, seconds, part, change=None):
        """Tenants until the end; `change` is called whenever one of them has finished a job, or every --every
        seconds."""
        end = time.monotonic() + seconds if seconds else None
        self.rows, self.running = [], len(PROGRAMS)
        threads = [threading.Thread(target=self.tenant, args=(index, which, end, part))
                   for index in range(len(PROGRAMS))]
        for thread in threads:
            thread.start()
        while change and self.running:
            if end:
                time.sleep(min(self.options.every, max(0.0, end - time.monotonic())))
            else:
                self.finished.wait()
                self.finished.clear()
            if self.running and (not end or time.monotonic() < end):
                change()
        for thread in threads:
            thread.join()
        self.show(part)

    def show(self, part):
        right = sum(row["ok"] for row in self.rows)
        seconds = [row["seconds"] for row in self.rows]
        of_each = [sum(row["tenant"] == index for row in self.rows) for index in range(len(PROGRAMS))]
        worst = max(self.rows, key=lambda row: row["seconds"])
        starved = sum(count == 0 for count in of_each) + (self.options.longest and
                                                          worst["seconds"] > self.options.longest)
        self.stage.wrong += bool(starved)
        print(f"{part:<12} {len(self.rows):>5} jobs, {right} right; of each tenant {min(of_each)} to "
              f"{max(of_each)}; seconds p50 {statistics.median(seconds):.2f} "
              f"p99 {quantile(seconds, .99):.2f}, the longest {worst['seconds']:.2f} "
              f"({worst['program']}){', STARVED' if starved else ''}", flush=True)

    def kept(self):
        """What the server has of the system, with no program there."""
        end = time.monotonic() + 20
        while (self.stage.runtime.status() or {}).get("sessions", 1) and time.monotonic() < end:
            time.sleep(0.02)
        status, pid = self.stage.runtime.status(), self.stage.runtime.server_pids()[0]
        with open(f"/proc/{pid}/status") as file:
            text = file.read()
        number = lambda name: int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])
        return {"sessions": status["sessions"], "device_bytes": status["device_bytes"],
                "host_bytes": status["host_bytes"], "fds": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": number("Threads"), "own_kb": number("RssAnon"),
                "gpu_mib": None if self.stage.simulated else self.gpu_mib(pid)}

    @staticmethod
    def gpu_mib(pid):
        """Of the server, or of all processes where the driver does not tell processes apart."""
        mine = [mib for each, _, mib in compute_apps() or [] if each == pid and mib >= 0]
        return sum(mine) if mine else gpu_memory_used()

    @staticmethod
    def grown(before, after):
        bad = [name for name in ("sessions", "device_bytes", "host_bytes", "fds", "threads")
               if after[name] > before[name]]
        bad += ["own_kb"] * (after["own_kb"] > MOST_GROWTH * before["own_kb"] + SOME_KB)
        bad += ["gpu_mib"] * bool(before["gpu_mib"] and after["gpu_mib"] > before["gpu_mib"] + 64)
        return bad

    def leaks(self, before):
        end = time.monotonic() + 20   # the last thread of a session ends after the session
        while (bad := self.grown(before, after := self.kept())) and time.monotonic() < end:
            time.sleep(0.1)
        print(f"the server before: {before}\n       and after:  {after}")
        self.stage.lines.add(part="kept", before=before, after=after)
        if bad:
            print(f"LEFT BEHIND: {bad}")
            self.stage.wrong += 1

    def decisions(self):
        """What decisions took: the server says it of a policy when another takes its place."""
        text = self.stage.smt("log", "--json", timeout=120)
        if self.options.log:
            with gzip.open(os.path.join(self.options.out, "log-tenants.jsonl.gz"), "wt") as file:
                file.write(text)
        for line in text.splitlines():
            if '"kind":"note"' in line and (found := DECIDED.search(json.loads(line)["text"])):
                print(f"   {found[1]:<10} {found[2]:>8} decisions: {found[3]}")
                self.stage.lines.add(part="decisions", policy=found[1], count=int(found[2]), text=found[3])


def at_once(options, policies):
    """A process and a server for each policy, and for all in turns. What each says comes when it is over."""
    arguments = [each for each in sys.argv[1:] if each != "--at-once"]   # options are not to be shortened
    parts = ([(policy, ["--policies", policy, "--switching", "0"]) for policy in policies] +
             [("switching", ["--seconds", "0", "--switching", str(options.seconds)])])
    running = []
    for name, more in parts:
        folder = os.path.join(options.out, name)
        os.makedirs(folder, exist_ok=True)
        command = [sys.executable, "-B", os.path.abspath(__file__), *arguments, *more, "--out", folder]
        running.append((name, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                               text=True)))
    wrong = 0
    for name, process in running:
        said, _ = process.communicate()
        print(f"== {name}\n{said}", flush=True)
        wrong += process.returncode != 0
    print(f"{wrong} of {len(running)} went wrong")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--programs", default="build/examples/shared")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--device")
    parser.add_argument("--size", default="large", help=argparse.SUPPRESS)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--switching", type=float, default=60)
    parser.add_argument("--every", type=float, default=5)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.15)
    parser.add_argument("--longest", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", default="small,small,large", help="one of which each job has")
    parser.add_argument("--equal", action="store_true",
                        help="tenants have one priority and weight; else the first is urgent, and weights "
                             "are 1 to 3")
    parser.add_argument("--limits", help="SMT_LIMITS of the server")
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--log", action="store_true", help="keep the server's journal")
    parser.add_argument("--profiles", help="the folder of a store that is there (default: --out)")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    policies = options.policies.split(",")
    if options.at_once and options.jobs:
        parser.error("--at-once goes by --seconds, not by --jobs")
    if options.at_once:
        return at_once(options, policies)
    settings = {"SMT_LIMITS": options.limits} if options.limits else {}
    with Stage(options, "tenants.jsonl", **settings) as stage:
        tenants = Tenants(stage)
        seconds = 0 if options.jobs else options.seconds
        # All of it once before, by all of them: what is kept of kernels and learnt of them is no leak.
        stage.choose("fifo")
        tenants.all("fifo", 0 if options.jobs else min(seconds or options.switching, 10), "before")
        before = tenants.kept()
        for policy in policies if options.jobs or seconds else []:
            stage.choose(policy)
            tenants.all(policy, seconds, policy)
        chance = random.Random(options.seed)
        if options.jobs or options.switching:
            tenants.all("switching", 0 if options.jobs else options.switching, "switching",
                        lambda: stage.choose(chance.choice([p for p in policies if p != stage.policy])))
        # so that the last one is summed up, too
        stage.choose("fifo" if stage.policy != "fifo" else "priority")
        tenants.leaks(before)
        tenants.decisions()
        print(f"{stage.wrong} wrong")
        return 1 if stage.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
