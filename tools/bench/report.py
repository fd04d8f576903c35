#!/usr/bin/env python3
"""Writes docs/results.md and its pictures, docs/results/*.svg, from tools/bench/results.json, and
docs/papers.md from it and tools/bench/papers/papers.json.

With --check it writes nothing, and exits with 1 where a file differs from what it would write.

results.json has `machines`, `runs` (command, commit, machine, where the raw rows are, what could be wrong),
`sections` of claims, `summary` (the claims that come first) and `figures` (pictures). A claim is one measured
value:

  id, claim          the id is the anchor in results.md; the claim is a sentence without its value
  run                the run that it comes from
  value, statistic   the value, and what it is of its n values: median, 99th percentile, largest ...
  n, of              how many values, and of what: rounds, launches a side, pairs
  low, high, spread  the spread, and what it is: min and max, quartiles ...; absent where the rows have none
  unit, better       better: lower, higher, or neither for a value that only describes
  baselines          the same of something else in the same run: name, value, low, high, and `of` where n or
                     the run differ
"""
import argparse
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

import papers_page
from pages import number, paragraph, slug, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(__file__).resolve().parent / "results.json"
PAPERS = DATA.parent / "papers/papers.json"
NEEDED = {"id", "claim", "run", "value", "statistic", "n", "of", "unit", "better"}
OPTIONAL = {"low", "high", "spread", "baselines"}
ENDS = ("low", "high")
BETTER = {"lower": "lower", "higher": "higher", "neither": "-"}
SCRIPT = re.compile(r"\b(?:tests|tools)/[\w./]+\.(?:py|sh|cpp|cu)\b")
COMMITTED = re.compile(r"(\S+) at ([0-9a-f]{7,40})")
COLOURS = ["#1f5fbf", "#e08a2c", "#3f9b57", "#a45bb8", "#5f6b76"]
LEFT, RIGHT, TOP, ROW, WIDTH = 300, 30, 62, 22, 960   # of a picture


def claims_of(data):
    return [claim for section in data["sections"] for claim in section["claims"]]


def mistakes(data):
    """What is wrong with the data, a sentence each."""
    found, seen = [], set()
    for claim in claims_of(data):
        name = claim.get("id", "?")
        if name in seen:
            found.append(f"{name}: twice")
        seen.add(name)
        if missing := NEEDED - claim.keys():
            found.append(f"{name}: no {', '.join(sorted(missing))}")
            continue
        if unknown := claim.keys() - NEEDED - OPTIONAL:
            found.append(f"{name}: unknown {', '.join(sorted(unknown))}")
        if claim["run"] not in data["runs"]:
            found.append(f"{name}: no run {claim['run']}")
        if claim["better"] not in BETTER:
            found.append(f"{name}: better is {claim['better']}")
        if claim["n"] < 1 or ("low" in claim) != ("spread" in claim):
            found.append(f"{name}: n below 1, or a spread without its name")
        found += [f"{name}: {each['value']} is outside of its spread"
                  for each in [claim, *claim.get("baselines", [])]
                  if "low" in each and not each["low"] <= each["value"] <= each["high"]]
    for name, run in data["runs"].items():
        if run["machine"] not in data["machines"] or not run.get("raw"):
            found.append(f"run {name}: unknown machine, or no place of raw rows")
        found += [f"run {name}: there is no {script}"
                  for script in SCRIPT.findall(run["command"]) if not (ROOT / script).exists()]
    named = {"summary": data["summary"], **{figure["file"]: figure["claims"] for figure in data["figures"]}}
    return found + [f"{where}: no claim {each}"
                    for where, claims in named.items() for each in claims if each not in seen]


def values_by_mark(data):
    """Each value by the name that documents use: id, id.low, id.high, id.n, id.BASELINE, id.BASELINE.low."""
    marks = {}
    for claim in claims_of(data):
        marks[claim["id"]], marks[f"{claim['id']}.n"] = claim["value"], claim["n"]
        for name, each in [("", claim)] + [("." + slug(b["name"]), b) for b in claim.get("baselines", [])]:
            marks[claim["id"] + name] = each["value"]
            marks.update({f"{claim['id']}{name}.{end}": each[end] for end in ENDS if end in each})
    return marks


def spread(each):
    return f"{number(each['low'])} to {number(each['high'])}" if "low" in each else ""


def beside(claim):
    def one(each):
        more = ", ".join(part for part in (spread(each), each.get("of", "")) if part)
        return f"{each['name']} {number(each['value'])}" + (f" ({more})" if more else "")
    return "; ".join(map(one, claim.get("baselines", []))) or "-"


def what_it_is(claim):
    return f"{claim['statistic']} of {number(claim['n'])} {claim['of']}"


def claim_row(claim):
    return (f"<a id=\"{claim['id']}\"></a>{claim['claim']}", f"**{number(claim['value'])}** {claim['unit']}",
            what_it_is(claim),
            f"{spread(claim)} ({claim['spread']})" if "low" in claim else "-",
            beside(claim), BETTER[claim["better"]], f"[{claim['run']}](#{claim['run']})")


def run_row(name, run):
    place = COMMITTED.sub(r"`git show \2:\1`", run["raw"])
    return (f"<a id=\"{name}\"></a>{name}", run["commit"], run["machine"], f"`{run['command']}`",
            place, run.get("note", "-"))


def summary_row(section, claim):
    return (f"{section['title']}: [{claim['claim']}](#{claim['id']})",
            f"**{number(claim['value'])}** {claim['unit']}", what_it_is(claim), beside(claim),
            BETTER[claim["better"]])


def section_lines(section, figures):
    lines = [f"## {section['title']}", ""]
    for text in section.get("text", []):
        lines += [paragraph(text), ""]
    for figure in figures:
        lines += [f"![{figure['title']}](results/{figure['file']})", ""]
    heading = ("claim", "value", "what it is", "spread", "beside it", "better", "run")
    return lines + table(heading, *map(claim_row, section["claims"]))


def page(data):
    by_id = {claim["id"]: (section, claim) for section in data["sections"] for claim in section["claims"]}
    lines = ["# Results", "",
             "<!-- Written by tools/bench/report.py from tools/bench/results.json; a test compares. -->", "",
             *map(paragraph, data["text"]), "", "## In short", ""]
    heading = ("claim", "value", "what it is", "beside it", "better")
    lines += table(heading, *(summary_row(*by_id[name]) for name in data["summary"]))
    for section in data["sections"]:
        figures = [each for each in data["figures"] if each["section"] == section["title"]]
        lines += section_lines(section, figures)
    heading = ("run", "commit", "machine", "command", "raw rows", "what could be wrong")
    lines += ["## Runs", "", *table(heading, *(run_row(*each) for each in data["runs"].items()))]
    lines += ["## Machines", "", *table(("machine", "what it is"), *data["machines"].items())]
    return "\n".join(lines)


def ticks(low, high, logarithmic):
    if logarithmic:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [m * 10.0 ** d for d in decades for m in (1, 2, 5) if low <= m * 10.0 ** d <= high]
    step = next(m * 10.0 ** d for d in range(-6, 9) for m in (1, 2, 5) if (high - low) / (m * 10.0 ** d) <= 8)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


class Axis:
    """From values to places across a picture."""

    def __init__(self, low, high, logarithmic):
        self.low, self.high, self.logarithmic = low, high, logarithmic
        self.place = math.log if logarithmic else float

    def __call__(self, value):
        low, high = self.place(self.low), self.place(self.high)
        return LEFT + (self.place(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def lines(self, bottom):
        for tick in ticks(self.low, self.high, self.logarithmic):
            x = f"{self(tick):.1f}"
            yield (f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}" stroke="#dddddd"/>'
                   f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{tick:.6g}</text>')


def axis_of(figure, values):
    ends = [each.get(end, each["value"]) for each in values for end in ENDS]
    if figure.get("log"):
        return Axis(min(ends) / 1.2, max(ends) * 1.2, True)
    return Axis(min(figure.get("from", 0), *ends), max(ends) * 1.03, False)


def dot(axis, each, y, colour):
    """Its value as a dot, its spread as a line."""
    x1, x, x2 = (f"{axis(each.get(end, each['value'])):.1f}" for end in ("low", "value", "high"))
    return (f'<line x1="{x1}" y1="{y}" x2="{x2}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
            f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')


def text_at(x, y, words, style=""):
    return f'<text x="{x}" y="{y}"{style}>{escape(words)}</text>'


def picture(figure, by_id):
    """A row for each claim: its value, and those of the baselines that the figure names."""
    colours = dict(zip([figure["series"], *figure["baselines"]], COLOURS))
    rows = [{figure["series"]: claim, **{each["name"]: each for each in claim.get("baselines", [])}}
            for claim in (by_id[name] for name in figure["claims"])]
    axis = axis_of(figure, [each for row in rows for name, each in row.items() if name in colours])
    bottom = TOP + ROW * len(rows) + 8
    size = f'width="{WIDTH}" height="{bottom + 36}"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
           f'<rect {size} fill="#ffffff"/>',
           text_at(10, 20, figure["title"], ' font-size="14" font-weight="bold"')]
    for x, (name, colour) in zip(range(LEFT, WIDTH, 170), colours.items()):
        out += [f'<circle cx="{x}" cy="38" r="4" fill="{colour}"/>', text_at(x + 9, 42, name)]
    out += [*axis.lines(bottom), text_at(10, bottom + 30, figure["axis"], ' fill="#555555"')]
    for y, row in zip(range(TOP + 6, bottom, ROW), rows):
        out.append(text_at(LEFT - 12, y + 4, row[figure["series"]]["claim"], ' text-anchor="end"'))
        out += [dot(axis, row[name], y, colours[name]) for name in reversed(colours) if name in row]
    return "\n".join([*out, "</svg>"]) + "\n"


def written(data, papers):
    """Each file that this script writes, by its path, and its text."""
    by_id = {claim["id"]: claim for claim in claims_of(data)}
    files = {ROOT / "docs/results.md": page(data),
             ROOT / "docs/papers.md": papers_page.page(data, papers)}
    for figure in data["figures"]:
        files[ROOT / "docs/results" / figure["file"]] = picture(figure, by_id)
    return files


def differences(files):
    """Files that are not what they should be, and pictures that are no longer written."""
    found = [f"{path.relative_to(ROOT)} is not what tools/bench/report.py writes"
             for path, text in files.items() if not path.exists() or path.read_text() != text]
    return found + [f"{path.relative_to(ROOT)}: no figure of results.json"
                    for path in (ROOT / "docs/results").glob("*.svg") if path not in files]


def write(files):
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and say which files differ")
    check = parser.parse_args().check
    data = json.loads(DATA.read_text())
    papers = json.loads(PAPERS.read_text())
    wrong = mistakes(data) or papers_page.mistakes(data, papers)
    if not wrong:
        wrong = (differences if check else write)(written(data, papers))
    print("\n".join(wrong) or f"{len(claims_of(data))} claims")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
