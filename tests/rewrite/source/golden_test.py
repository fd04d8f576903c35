#!/usr/bin/env python3
"""What `smt rewrite` makes of the cases, against their golden files: golden_test.py SMT_REWRITE [--update]

compile_test.py looks at them, too, as it rewrites the cases in any case.
"""
import concurrent.futures
import difflib
import sys

import cases

LEFT = "// The text is left as it was.\n"


def golden_of(case, result):
    """What the golden file has to hold."""
    report = "".join(f"// {line}\n" for line in result.report.splitlines())
    if result.failed:
        return report
    original = case.path.read_text()
    return (LEFT if result.text == original else result.text) + report


def difference(case, result):
    golden = case.path.with_suffix(".golden")
    expected = golden.read_text() if golden.exists() else ""
    return "".join(difflib.unified_diff(expected.splitlines(True), golden_of(case, result).splitlines(True),
                                        str(golden), "found"))


def without_case():
    return [f"{golden} has no case" for golden in cases.FOLDER.glob("*.golden")
            if not golden.with_suffix(".cu").exists()]


def main(program, update=False):
    everything = cases.all_cases()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: cases.rewrite(program, case), everything))
    problems = without_case()
    for case, result in zip(everything, results):
        if update:
            case.path.with_suffix(".golden").write_text(golden_of(case, result))
        elif differs := difference(case, result):
            problems.append(differs)
    print("\n".join(problems))
    print(f"{len(everything)} cases, {len(problems)} differ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--update" in sys.argv[2:]))
