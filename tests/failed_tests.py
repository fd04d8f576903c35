#!/usr/bin/env python3
"""What failed of tests that ctest has run, and what was skipped: for the end of a long log.

    failed_tests.py FIRST.xml [AGAIN.xml]       the name of each and the last lines that it printed
    failed_tests.py --run-again FIRST.xml       whether it makes sense to run again what failed

The files are ctest's (--output-junit): the first of all tests, the second of those that failed in the first,
run again with nothing beside them. Exits 1 where a test failed and did not pass afterwards, and where a
second run makes no sense: of many failures, and of what a sanitizer has seen, which is a defect at once.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

LINES = 30
COLUMNS = 300
MOST_RUN_AGAIN = 8
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: ")


def read(path):
    return list(xml.parse(path).iter("testcase"))


def is_left_out(case):
    """By its own exit code, or by its properties. What could not be started has failed."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith(("SKIP_", "Disabled"))


def is_failure(case):
    return case.get("status") == "fail" or case.get("status") == "notrun" and not is_left_out(case)


def printed(case):
    return case.findtext("system-out") or ""


def show(title, cases):
    for case in cases:
        reason = next((found.get("message") for kind in ("failure", "skipped")
                       if (found := case.find(kind)) is not None), "")
        print(f"== {title}: {case.get('name')}")
        print(f"   ({reason or 'failed'}, {float(case.get('time', 0)):.1f} s)")
        for line in printed(case).rstrip().splitlines()[-LINES:]:
            print("   " + line[:COLUMNS])


def runs_again(first):
    failed = [case for case in read(first) if is_failure(case)]
    return len(failed) <= MOST_RUN_AGAIN and not any(SANITIZER.search(printed(case)) for case in failed)


def report(first, again=None):
    """Whether each test passed or was left out, at once or in the second run."""
    cases = read(first)
    for case in filter(is_left_out, cases):
        print(f"== skipped: {case.get('name')}")
    there = again and pathlib.Path(again).exists()
    second = {case.get("name"): case for case in read(again)} if there else {}
    passed = {name for name, case in second.items() if case.get("status") == "run"}
    failed = list(filter(is_failure, cases))
    show("failed once, and passed when it ran again alone",
         [case for case in failed if case.get("name") in passed])
    left = [case for case in failed if case.get("name") not in passed]
    show("failed", [second.get(case.get("name"), case) for case in left])
    return not left


def main(*arguments):
    if arguments[0] == "--run-again":
        return 0 if runs_again(arguments[1]) else 1
    return 0 if report(*arguments) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
