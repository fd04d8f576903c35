#!/usr/bin/env python3
"""What `smt rewrite` makes of the cases, against their golden files: golden_test.py SMT_REWRITE [--update]"""
import concurrent.futures
import difflib
import sys

import cases


def found(program, case):
    result = cases.rewrite(program, case)
    report = "".join(f"// {line}\n" for line in result.report.splitlines())
    if result.failed:
        return report
    original = case.path.read_text()
    return (cases.LEFT if result.text == original else result.text) + report


def main(program, update=False):
    everything = cases.all_cases()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda case: found(program, case), everything))
    wrong = 0
    for case, text in zip(everything, texts):
        golden = case.path.with_suffix(".golden")
        if update:
            golden.write_text(text)
            continue
        expected = golden.read_text() if golden.exists() else ""
        if text == expected:
            continue
        wrong += 1
        sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), text.splitlines(True),
                                                   str(golden), "found"))
    for golden in cases.FOLDER.glob("*.golden"):
        if not golden.with_suffix(".cu").exists():
            print(f"{golden} has no case")
            wrong += 1
    print(f"{len(everything)} cases, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--update" in sys.argv[2:]))
