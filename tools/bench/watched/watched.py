#!/usr/bin/env python3
"""What it costs programs and their server to be watched: by smt metrics that is scraped once a second, and by
a page of smt ui that is open, ten frames a second.

    watched.py --out OUT [--build BUILD] [--programs 1,8] [--rounds 6] [--seconds 1] [--budget 110]
               [--work US] [--journal mapping,times] [--device sim]

Programs that do nothing but launch (launcher.cu), empty kernels or such of US microseconds, which take the
noise of the host's processors out of the ratio, run on one server, each its own tenant, for so many seconds
at a time: watched by nothing, then in one way, by nothing, in the next way and so on. A ratio is the launches
a second of a time that is watched, by the mean of those before and after it; likewise the server's CPU time a
launch. One of the ways is `nothing`, too: what it says beyond 1 is chance. Rounds have changing orders.

Results: OUT/watched.jsonl with a row a ratio and a row a number of programs, and a table. What was not begun
within the budget is left out. The exit code is 1 where a program or a reader failed, or nothing was measured.
"""
import argparse
import os
import pathlib
import statistics
import sys
import time
from http.client import HTTPException

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import harness  # noqa: E402
from harness import Places, Runtime  # noqa: E402
from measurement import Measurement, built_twice  # noqa: E402
from readers import Opened, Scraped  # noqa: E402

WAYS = {"metrics": Scraped, "page": Opened, "nothing": None}
START, PATIENCE = 60, 30
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids):
    """That the processes have used. A thread that has ended counts."""
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


class Failed(Exception):
    pass


class Watched(Measurement):
    def __init__(self, options):
        self.program, environment = built_twice(options, "bench_watched", sms=132)
        super().__init__(options, Places(options.build, options.preload), "watched.jsonl", environment)
        self.problems, self.summaries = [], []

    def measure(self):
        for number, count in enumerate(self.options.programs):
            # The rest of the budget is shared by those that are left.
            now = time.monotonic()
            until = now + (self.end - now) / (len(self.options.programs) - number)
            with Runtime(self.places, SMT_JOURNAL=self.options.journal) as runtime:
                programs = [self.start([self.program, str(self.options.work)],
                                       self.preloaded(runtime, SMT_TENANT=f"tenant{i}"),
                                       f"program-{count}-{i}") for i in range(count)]
                try:
                    self.answers(programs, START)
                    self.rounds(runtime, programs, until)
                except (Failed, RuntimeError, OSError, HTTPException, ValueError) as error:
                    self.problems.append(f"{count} programs: {error}")
                finally:
                    for each in programs:
                        each.finish(2)
                        each.end()
            self.summarise(count)

    def answers(self, programs, patience):
        deadline = time.monotonic() + patience
        found = [each.next(deadline) for each in programs]
        for program, answer in zip(programs, found):
            if answer is None:
                raise Failed(f"a program does not answer: {program.why()}")
        return found

    def once(self, runtime, programs, way):
        """Launches a second, and the server's CPU time a launch."""
        reader = WAYS[way] and WAYS[way](self.places.smt, {**self.environment, **runtime.variables()})
        try:
            pids = runtime.server_pids()
            before, of_reader = cpu_seconds(pids), cpu_seconds([reader.process.pid]) if reader else 0
            if reader:
                reader.begin()
            for each in programs:
                each.tell(str(self.options.seconds))
            found = self.answers(programs, self.options.seconds + PATIENCE)
            launches = sum(each["launches"] for each in found)
            result = {"launches_per_s": sum(each["launches"] / each["seconds"] for each in found),
                      "server_us_a_launch": (cpu_seconds(pids) - before) / launches * 1e6}
            if reader:
                reader.stop()
                result["reader_cpu_s"] = cpu_seconds([reader.process.pid]) - of_reader
                result["answers_per_s"] = reader.answers / found[0]["seconds"]
                if reader.problem:
                    raise Failed(reader.problem)
            return result
        finally:
            if reader:
                reader.end()

    def rounds(self, runtime, programs, until):
        names = list(WAYS)
        takes, before = 0, self.once(runtime, programs, "nothing")   # to get warm
        for index in range(self.options.rounds):
            begun = time.monotonic()
            if begun + takes > until:
                return
            before = self.once(runtime, programs, "nothing")
            turned = names[index % len(names):] + names[:index % len(names)]
            for way in turned if index % 2 == 0 else reversed(turned):
                now = self.once(runtime, programs, way)
                after = self.once(runtime, programs, "nothing")
                beside = {name: (before[name] + after[name]) / 2 for name in before}
                self.lines.add(part="ratio", programs=len(programs), way=way, round=index,
                               device=self.options.device or "gpu", journal=self.options.journal, **now,
                               launches=now["launches_per_s"] / beside["launches_per_s"],
                               server_cpu=now["server_us_a_launch"] / beside["server_us_a_launch"]
                               if beside["server_us_a_launch"] else None)
                before = after
            takes = time.monotonic() - begun

    def summarise(self, count):
        for way in WAYS:
            rows = [row for row in self.lines.all if row["part"] == "ratio" and row["programs"] == count and
                    row["way"] == way]
            if rows:
                self.summaries.append(self.lines.add(
                    part="way", programs=count, way=way,
                    work_us=self.options.work, device=self.options.device or "gpu", n=len(rows),
                    seconds=self.options.seconds, journal=self.options.journal,
                    **{name: spread([row[name] for row in rows if row.get(name) is not None])
                       for name in ("launches", "server_cpu", "launches_per_s", "server_us_a_launch",
                                    "reader_cpu_s", "answers_per_s")}))

    def table(self):
        print(f"{'programs':>8} {'watched by':10} {'launches: ratio':>26} {'server CPU a launch: ratio':>28} "
              f"{'launches/s':>12} {'asked/s':>8} {'its CPU':>8}")
        for row in self.summaries:
            print(f"{row['programs']:>8} {row['way']:10} {shown(row['launches']):>26} "
                  f"{shown(row['server_cpu']):>28} {middle(row['launches_per_s'], 0):>12} "
                  f"{middle(row['answers_per_s'], 1):>8} {middle(row['reader_cpu_s'], 3):>8}")
        for problem in self.problems:
            print("FAILS:", problem)

    def bad(self):
        return bool(self.problems) or not self.summaries


def spread(values):
    """None: there is none."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)} if values else None


def shown(of):
    return f"{of['median']:.4f} ({of['low']:.4f} to {of['high']:.4f})" if of else "-"


def middle(of, digits):
    return f"{of['median']:.{digits}f}" if of else "-"


def counts(text):
    values = [int(each) for each in text.split(",")]
    if any(each < 1 for each in values):
        raise argparse.ArgumentTypeError(f"numbers of programs, not '{text}'")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--program", help="in place of BUILD/bin/bench_watched")
    parser.add_argument("--out", required=True)
    parser.add_argument("--programs", type=counts, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--work", type=int, default=0, help="microseconds of a kernel; 0: it is empty")
    parser.add_argument("--budget", type=float, default=110)
    parser.add_argument("--journal", default="mapping,times", help="SMT_JOURNAL of the server")
    parser.add_argument("--device", choices=("sim",))
    return Watched(parser.parse_args()).all()


if __name__ == "__main__":
    sys.exit(main())
