#!/usr/bin/env python3
"""What becomes of the cases, against their golden files; and that it assembles where the case does.

    golden_test.py PTX_PERSIST|PTX_FENCE PTXAS|- FOLDER [--update]

A golden file holds what the program's own code became, without the loop around it. Cases named inside* get
checks inside blocks; of all others it is looked at that they assemble with checks, too. Where there is
dynamic shared memory, a program's own kernels have the static one that they had, and managed forms have more
by what leaves the dynamic one its alignment.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys

ARCHITECTURES = ("sm_75", "sm_90a", "sm_100a")
SHARED = re.compile(r"entry function '(\S+)'.*?Used \d+ registers([^\n]*)", re.DOTALL)
MANAGED = re.compile("smt_(?:warps_|single_)?")
MATRICES = re.compile("wgmma|tcgen05|bulk.tensor")


def assemble(ptxas, architecture, text, *options):
    """Whether ptxas takes it, and what it says."""
    command = [ptxas, f"-arch={architecture}", *options, "-o", os.devnull, "/dev/stdin"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def assembles(ptxas, architecture, text):
    taken, said = assemble(ptxas, architecture, text, "-c")
    return "" if taken else said


def shared_memory(ptxas, architecture, text):
    """The bytes of static shared memory of each kernel, linked."""
    _, said = assemble(ptxas, architecture, text, "-v")
    return {name: sum(map(int, re.findall(r"(\d+) bytes smem", used))) for name, used in SHARED.findall(said)}


def behind(size):
    """Where dynamic shared memory begins."""
    return (size + 15) // 16 * 16


def moved(ptxas, architecture, case, text):
    """What is wrong with the shared memory of kernels."""
    if ".extern .shared" not in case:
        return
    step = 1024 if MATRICES.search(case) else 128
    before = shared_memory(ptxas, architecture, case)
    for name, size in shared_memory(ptxas, architecture, text).items():
        own = name if name in before else MANAGED.sub("", name, count=1)
        if own == name and size != before[own]:
            yield f"{name} has {size} bytes of shared memory, not {before[own]}\n"
        elif own != name and (behind(size) - behind(before[own])) % step:
            yield f"{name} has {size} bytes of shared memory, {own} {before[own]}\n"


def examine(program, ptxas, case):
    """The golden text, what is wrong with it, and for how many architectures it assembled."""
    def made(*options):
        return subprocess.run([program, *options, case], capture_output=True, text=True)

    checks = ["--inside"] if case.stem.startswith("inside") else []
    shown = made("--show", *checks)
    problems, count = shown.stderr, 0
    texts = {"".join(line for line in whole.stdout.splitlines(True) if not line.startswith("// "))
             for whole in (made(*checks), made("--inside"))} - {""}
    for architecture in ARCHITECTURES if ptxas != "-" and texts else ():
        if assembles(ptxas, architecture, case.read_text()):
            continue
        for text in texts:
            problem = assembles(ptxas, architecture, text)
            count += not problem
            problem += "".join(moved(ptxas, architecture, case.read_text(), text))
            problems += problem and f"for {architecture}: {problem}"
    return shown.stdout, problems, count


def main(program, ptxas, folder, update=False):
    folder = pathlib.Path(folder)
    cases = sorted(folder.glob("*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: examine(program, ptxas, case), cases))
    wrong = assembled = 0
    for case, (text, problems, count) in zip(cases, results):
        golden = case.with_suffix(".golden")
        assembled += count
        if update:
            golden.write_text(text)
        expected = golden.read_text() if golden.exists() else ""
        if problems or text != expected:
            wrong += 1
            print(f"{case.name}: {problems}")
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), text.splitlines(True),
                                                       str(golden), "found"))
    for golden in folder.glob("*.golden"):
        if not golden.with_suffix(".ptx").exists():
            print(f"{golden} has no case")
            wrong += 1
    print(f"{len(cases)} cases, {wrong} wrong; assembled {assembled} times")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], "--update" in sys.argv[4:]))
