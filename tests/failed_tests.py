#!/usr/bin/env python3
"""What failed of tests that ctest has run, and what was skipped: for the end of a long log.

    failed_tests.py FIRST.xml [AGAIN.xml]

Both are ctest's (--output-junit): the first of all tests, the second of those that failed in the first, run
again with nothing beside them. The name of each and the last lines that it printed when it failed, those that
failed twice last. Exits 1 where a test failed and did not pass afterwards.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

LINES = 30
COLUMNS = 300


def failed(path):
    """name -> what it printed, of the tests that failed"""
    found = {}
    for case in xml.parse(path).iter("testcase"):
        if case.get("status") == "fail":
            failure = case.find("failure")
            printed = (case.findtext("system-out") or "").rstrip().splitlines()[-LINES:]
            reason = failure.get("message") if failure is not None else ""
            found[case.get("name")] = [f"({reason or 'failed'}, {float(case.get('time', 0)):.1f} s)",
                                       *(line[:COLUMNS] for line in printed)]
    return found


def show_skipped(path):
    for case in xml.parse(path).iter("testcase"):
        if case.get("status") == "notrun":
            print(f"== skipped: {case.get('name')}")


def show(title, tests):
    for name, lines in tests.items():
        print(f"== {title}: {name}")
        print("\n".join("   " + line for line in lines))


def main(first, *again):
    show_skipped(first)
    before = failed(first)
    after = before
    if again:
        # Without a second report ctest ran nothing, and no test has passed.
        after = failed(again[0]) if pathlib.Path(again[0]).exists() else before
    show("failed once, and passed when it ran again alone",
         {name: lines for name, lines in before.items() if name not in after})
    show("failed", after)
    return 1 if after else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
