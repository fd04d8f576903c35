#!/usr/bin/env python3
"""Programs under random schedules for as long as it takes: nightly.py BUILD FORM [--schedules N] [--seed N]

  source   the examples and the programs of constructs in the persistent form that `smt rewrite` gives them
  ptx      the same as nvcc built them, in the persistent form by their PTX
  door     the same as nvcc built them, with doors in place of managed forms
  graph    programs of graphs, whose kernels have doors

100 000 schedules in all by default, as many of each program (of constructs, as many of each; those whose
kernels print have no door). Goes round and round, other seeds each time, so that what is there when time is
over is of all of them. Prints a line a program and round, with its seeds; a program that is wrong once is not
asked again. Exit code 1 if one is wrong, or if none was stopped half way.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
CHECKSUMS = HERE.parent.parent / "examples/checksums.txt"
RIGHT = re.compile(r"^(\w+): right under (\d+) schedules, (\d+) half way$", re.MULTILINE)
SEEDS = 1_000   # from one round to the next
SEED = re.compile(r"^seed (\d+):", re.MULTILINE)
# Of each form: where constructs and examples are in a build.
FOLDERS = {"source": ("managed", "managed/shared"), "ptx": ("plain", "shared"), "door": ("plain", "shared")}
# Programs that check themselves: how many schedules, to those of others, and arguments. Examples at size
# trivial have hardly a CTA that a stop could find outside the door.
PROGRAMS = {"door": {"sim_mixed": (10, "100", "0", "100"), "sim_work": (10, "40", "60"),
                     "gpu/shared/stream_pipeline": (1,), "gpu/shared/histogram_atomics": (1,),
                     "gpu/shared/managed": (1,), "gpu/shared/reduction": (1,)},
            "graph": {"gpu/shared/graph_stops": (1, "40", "2", "64"),
                      "gpu/shared/graph_changes": (1, "40", "5", "128")}}
SMS = 1, 2   # in turns, where kernels have doors


def jobs(build, form):
    """What stress.py is told of each program, and how many schedules, to those of others."""
    smt, doors = build / "bin/smt", ["--doors"] if form in ("door", "graph") else []
    for name, (times, *arguments) in PROGRAMS.get(form, {}).items():
        yield pathlib.Path(name).name, ([*doors, "program", smt, build / "bin" / name, *arguments], times)
    if form == "graph":
        return
    constructs, examples = FOLDERS[form]
    for program in sorted((build / "constructs" / constructs).iterdir()):
        plain = build / "constructs/plain" / program.name
        yield f"constructs in {program.name}", ([*doors, "constructs", smt, plain, program], 1)
    for program in sorted((build / "examples" / examples).iterdir()):
        yield program.name, ([*doors, "example", smt, CHECKSUMS, program], 1)


class Nightly:
    def __init__(self, options):
        self.options = options
        self.todo = dict(jobs(pathlib.Path(options.build).resolve(), options.form))
        self.begun = time.monotonic()
        self.end = self.begun + options.minutes * 60
        self.total, self.half_way, self.wrong = {}, 0, []

    def over(self):
        return sum(self.total.values()) >= self.options.schedules or time.monotonic() > self.end

    def one(self, name, arguments, times, seed):
        sms = SMS[seed // SEEDS % len(SMS)]
        command = [sys.executable, "-B", HERE / "stress.py", *arguments, "--sms", str(sms),
                   "--schedules", str(self.options.round * times),
                   "--iterations", str(self.options.iterations), "--seed", str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found, seeds = RIGHT.findall(done.stdout), [int(each) for each in SEED.findall(done.stdout)]
        for what, count, half_way in found:
            self.total[what] = self.total.get(what, 0) + int(count)
            self.half_way += int(half_way)
        print(f"{name}: seeds {min(seeds, default=seed)} to {max(seeds, default=seed)}, "
              f"{sum(int(count) for _, count, _ in found)} schedules, "
              f"{sum(int(half_way) for *_, half_way in found)} half way, "
              f"{'right' if done.returncode == 0 else 'WRONG'}; "
              f"{sum(self.total.values())} in {time.monotonic() - self.begun:.0f} s", flush=True)
        if done.returncode:
            print(done.stdout[-4000:], flush=True)
            self.wrong.append(name)
            del self.todo[name]

    def all(self):
        seed = self.options.seed
        while self.todo and not self.over():
            for name, (arguments, times) in list(self.todo.items()):
                if not self.over():
                    self.one(name, arguments, times, seed)
            seed += SEEDS
        print(f"\n{'program or construct':<24} {'schedules':>10}")
        for name, count in sorted(self.total.items()):
            print(f"{name:<24} {count:>10}")
        print(f"{self.options.form}: {sum(self.total.values())} schedules of {len(self.total)} programs and "
              f"constructs, {self.half_way} launches stopped half way, in "
              f"{time.monotonic() - self.begun:.0f} s, wrong: {', '.join(self.wrong) or 'none'}")
        return 1 if self.wrong or not self.half_way else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("form", choices=["source", "ptx", "door", "graph"])
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="no program is begun after that")
    parser.add_argument("--round", type=int, default=400, help="schedules of a program at a time")
    parser.add_argument("--iterations", type=int, default=100, help="launches of a kernel in a run")
    return Nightly(parser.parse_args()).all()


if __name__ == "__main__":
    sys.exit(main())
