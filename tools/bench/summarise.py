#!/usr/bin/env python3
"""Tables in Markdown from the rows of a results folder: summarise.py FOLDER

bench.jsonl: medians with minimum and maximum, and the ratio. check.jsonl, python.jsonl: how many of
each kind were right in each mode. faults.jsonl: one line a test. Only what the rows say.
"""
import json
import pathlib
import statistics
import sys
from collections import Counter, defaultdict


def rows(path):
    return [json.loads(line)
            for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(values):
    return f"{number(statistics.median(values))} [{number(min(values))}, {number(max(values))}]"


def bench(lines):
    values = defaultdict(lambda: defaultdict(list))
    for line in lines:
        values[line["metric"]][line["side"]].append(line["value"])
    print("| | native | smt | ratio | runs |\n|---|---|---|---|---|")
    for metric, sides in values.items():
        native, ours = sides.get("native"), sides.get("smt")
        if not native or not ours:
            continue
        middle = statistics.median(native)
        ratio = f"{statistics.median(ours) / middle:.3f}" if middle else ""
        print(f"| {metric} | {spread(native)} | {spread(ours)} | {ratio} | {len(ours)} |")


def check(lines):
    counts = Counter((line.get("mode"), line.get("kind"), line.get("ok")) for line in lines
                     if line.get("program"))
    print("| mode | kind | right | not |\n|---|---|---|---|")
    for mode, kind in dict.fromkeys((mode, kind) for mode, kind, _ in counts):
        print(f"| {mode} | {kind} | {counts[mode, kind, True]} | {counts[mode, kind, False]} |")
    for line in lines:
        if line.get("ok") is not True:
            print(f"\nnot right: {line.get('mode')} {line.get('kind')} {line.get('program')}: "
                  f"{line.get('why', '')[:300]}")
        if line.get("unsupported"):
            print(f"\nunsupported functions met by {line.get('program')} ({line.get('mode')}): "
                  f"{line['unsupported']}")


def faults(lines):
    print("| test | |\n|---|---|")
    for line in lines:
        facts = {key: value for key, value in line.items() if key.endswith(("_s", "_ms")) or
                 key in ("starts", "at_once", "grown")}
        print(f"| {line['test']} | {'right' if line['ok'] else 'WRONG: ' + line.get('why', '')}; {facts} |")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, show in (("check", check), ("python", check), ("faults", faults), ("bench", bench)):
        lines = rows(folder / f"{name}.jsonl")
        if lines:
            print(f"\n## {name}\n")
            show(lines)


if __name__ == "__main__":
    main()
