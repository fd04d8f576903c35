#!/usr/bin/env python3
"""Every measured number of README.md and docs/*.md is that of tools/bench/results.json.

A comment behind a number says which value it is: `1.37<!--=fifteen-pairs-weighted-->`, or `1.23<!--=` with
`fifteen-pairs-weighted.mps`, `.low`, `.high` or `.n`. The number must be that value, rounded as it is there.

In README.md, and in each paragraph, list item or table row of docs/*.md that is about measurements (it has
such a comment, a link to results.md, or names a card, MPS, or "Measured:"), every number with a fraction or a
unit of measurement needs one. `<!--=given-->` marks those that are no measurement: settings, papers' figures.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/bench"))
import report  # noqa: E402

WRITTEN = ("results.md", "ptx-instructions.md", "settings.md")   # by scripts
GIVEN = "given"
UNIT = r"(?:[munk]?s|%|GB/s|[KMG]i?B|times)(?!\w)"
NUMBER = r"\d[\d,]*(?:\.\d+)?"
MARK = re.compile(rf"(?:(-?{NUMBER})(?:\*\*)?(?: ?{UNIT})?)?<!--=([\w.-]+)-->")
ANCHOR = re.compile(r"results\.md#([\w-]+)")
ABOUT = re.compile(r"<!--=|results\.md|\bH[12]00\b|\bMPS\b|Measured:")
MEASURED = re.compile(rf"(?<![\w.,-])(?:{NUMBER}(?=(?:\*\*)? ?{UNIT})|\d[\d,]*\.\d+(?![\w.]*\d))")
CODE = re.compile(r"```[\s\S]*?```|`[^`\n]*`|^    [^\n]*$", re.M)
NAMES = re.compile(r"\]\([^)]*\)|\b(?:CUDA|Linux|Apache|Debian|PyTorch|driver|version|capability) \d[\d.]*")
BLOCKS = re.compile(r"\n\s*\n|\n(?=\s*(?:- |\||#))")


def mark_is_wrong(match, values):
    number, name = match.groups()
    if name == GIVEN:
        return None if number else "no number in front of the comment `given`"
    if name not in values:
        return f"no value {name} in results.json"
    if not number:
        return f"no number in front of the comment {name}"
    decimals = len(number.partition(".")[2])
    if abs(float(number.replace(",", "")) - values[name]) > 0.5 * 10 ** -decimals * (1 + 1e-9):
        return f"{number} is {values[name]} in results.json ({name})"
    return None


def mistakes(text, values, all_of_it):
    """A sentence for each mark or link that is wrong and each measured number that has none."""
    found = [why for match in MARK.finditer(text) if (why := mark_is_wrong(match, values))]
    found += [f"no claim {name} in results.json" for name in ANCHOR.findall(text) if name not in values]
    for block in BLOCKS.split(CODE.sub("", text)):
        if all_of_it or ABOUT.search(block):
            bare = NAMES.sub("", MARK.sub("", block))
            for match in MEASURED.finditer(bare):
                around = " ".join(bare[max(0, match.start() - 30):match.end() + 30].split())
                found.append(f"no comment behind {match[0]} in: {around}")
    return found


def main():
    values = report.values_by_mark(json.loads(report.DATA.read_text()))
    readme = ROOT / "README.md"
    pages = [readme, *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in WRITTEN)]
    found = [f"{page.relative_to(ROOT)}: {why}" for page in pages
             for why in mistakes(page.read_text(), values, page == readme)]
    print("\n".join(found) or "every measured number is that of results.json")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
