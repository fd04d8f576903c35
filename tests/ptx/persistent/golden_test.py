#!/usr/bin/env python3
"""What becomes of the cases, against their golden files; and that it assembles where the case does.

    golden_test.py PTX_PERSIST|PTX_FENCE PTXAS|- FOLDER [--update]

A golden file holds what the program's own code became, without the loop around it. Cases named inside* get
checks inside blocks; of all others it is looked at that they assemble with checks, too.
"""
import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys

ARCHITECTURES = ("sm_75", "sm_90a", "sm_100a")


def assembles(ptxas, architecture, text):
    command = [ptxas, f"-arch={architecture}", "-c", "-o", os.devnull, "/dev/stdin"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


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
