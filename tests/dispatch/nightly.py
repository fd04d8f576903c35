#!/usr/bin/env python3
"""Examples and constructs under stress for as long as it takes: nightly.py BUILD FORM [SCHEDULES [FIRST_SEED
[MINUTES]]]

100 000 schedules in all by default, as many of each program: the examples and the programs of constructs in
the forms that `smt rewrite` gives them (FORM source), or as nvcc built them, managed by their PTX (FORM ptx).
Goes round and round, other seeds each time, so that what is there when time is over is of all of them. Prints
a line a program and round, with its seeds; a program that is wrong once is not asked again. Exit code 1 if
one is.
"""
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROUND = 400        # schedules of a program, or of each construct of one
ITERATIONS = 100
RIGHT = re.compile(r"^(\w+): right under (\d+) schedules$", re.MULTILINE)
SEED = re.compile(r"^seed (\d+):", re.MULTILINE)


def jobs(build, form):
    checksums = HERE.parent.parent / "examples" / "checksums.txt"
    constructs, examples = {"source": ("managed", "managed/shared"), "ptx": ("plain", "shared")}[form]
    for program in sorted((build / "constructs" / constructs).iterdir()):
        yield f"constructs in {program.name}", ["constructs", build / "bin/smt",
                                                build / "constructs/plain" / program.name, program]
    for program in sorted((build / "examples" / examples).iterdir()):
        yield program.name, ["example", build / "bin/smt", checksums, program]


def main(build, form, wanted=100_000, seed=1_000, minutes=24 * 60):
    todo, end, total, wrong, begun = (dict(jobs(pathlib.Path(build).resolve(), form)),
                                      time.monotonic() + minutes * 60, {}, [], time.monotonic())
    while todo and sum(total.values()) < wanted and time.monotonic() < end:
        for name, arguments in list(todo.items()):
            if sum(total.values()) >= wanted or time.monotonic() > end:
                break
            command = [sys.executable, "-B", HERE / "stress.py", *arguments, str(ROUND),
                       str(ITERATIONS), str(seed)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            found, seeds = RIGHT.findall(done.stdout), [int(each) for each in SEED.findall(done.stdout)]
            for what, count in found:
                total[what] = total.get(what, 0) + int(count)
            print(f"{name}: seeds {min(seeds, default=seed)} to {max(seeds, default=seed)}, "
                  f"{sum(int(count) for _, count in found)} schedules, "
                  f"{'right' if done.returncode == 0 else 'WRONG'}", flush=True)
            if done.returncode:
                print(done.stdout[-4000:], flush=True)
                wrong.append(name)
                del todo[name]
        seed += 1_000
    print(f"\n{'program or construct':<24} {'schedules':>10}")
    for name, count in sorted(total.items()):
        print(f"{name:<24} {count:>10}")
    print(f"{sum(total.values())} schedules of {len(total)} programs and constructs in "
          f"{time.monotonic() - begun:.0f} s, wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3], *map(int, sys.argv[3:])))
