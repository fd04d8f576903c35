"""docs/papers.md: each figure and table of the four papers' evaluations, and what stands beside it in
results.json. report.py writes it from papers.json.

An entry of papers.json has `where`, `section`, what it `measures`, a `quote` (`paraphrase`: it is none), and
some of these:

  compare   claims; with `theirs` the paper's value, and the rule by which ours meets it: `least`, `most`, or
            `about` with `within`. `to`: what counts is by how many per cent the claim is better than this
            baseline of it; `of`: in per cent of so many. `why` it is below, which is needed where it is;
            `other`: of other programs than the paper's. A claim whose id begins with "papers-" may be missing
            until papers.py has been run on a GPU
  beside    claims that are about the same and not comparable
  command   what would measure it, and a `note` on that
  test      a test that has the paper's own numbers
  setup     where ours is, for what describes a set-up
"""
import re

from pages import number, paragraph, slug, table

MET, ELSEWHERE, BELOW = "met", "met by other programs", "below"
MISSING, BESIDE = "not measured", "not comparable"
TESTED, DESCRIBED = "test", "set-up"
FUTURE = "papers-"
RULES = ("least", "most", "about")
# As tests/results_test.py finds measured numbers.
MEASURED = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?=(?:\*\*)? ?(?:[munk]?s|%|GB/s|[KMG]i?B|times)(?!\w))"
                      r"|(?<![\w.,-])\d[\d,]*\.\d+(?![\w.]*\d)")
TEXT = """Every figure and table of the evaluations of the four papers whose policies smt has, theirs and
ours side by side, whatever it shows. Ours are claims of [results.md](results.md), with command, commit,
machine and spread there. The papers' GPUs are others, and so are their absolute times; what is compared are
ratios. *Met*: ours is at least as good as the paper's number that stands in the same row. *Met by other
programs*: so it is, and the programs are not the paper's. *Below*: it is not, and the reason follows, as far
as it is known. *Not measured*: the command that would. *Not comparable*: a claim about the
same for which the paper has no number. *Test*: a test holds the paper's own numbers.
`tools/bench/papers/papers.py` runs the papers' programs side by side by one harness; makespan STP is the
papers' STP, and Eyerman's STP and ANTT stand beside it. Pairs and queues that nothing was tuned on are
drawn by a seed, and measured likewise; they are in no paper, and their claims stand in results.md alone.
The table counts rows: a figure may have several. Of a range of the paper's the end that is easier to meet
is taken."""


def given(text):
    """Its measured numbers marked as such that are not ours."""
    return MEASURED.sub(lambda match: f"{match[0]}<!--=given-->", text)


def marked(value, mark):
    return f"{number(value)}<!--={mark}-->"


def by_id(data):
    return {claim["id"]: claim for section in data["sections"] for claim in section["claims"]}


def baseline_of(claim, name):
    return next((each for each in claim.get("baselines", []) if each["name"] == name), None)


def value_of(claim, rule):
    """What is compared with the paper's number; None where a baseline is missing."""
    value = claim["value"]
    if "of" in rule:
        return 100 * value / rule["of"]
    if "to" not in rule:
        return value
    other = baseline_of(claim, rule["to"])
    if other is None:
        return None
    less = value / other["value"] if claim["better"] == "lower" else other["value"] / value
    return 100 * (1 - less)


def verdict(claim, rule):
    if "theirs" not in rule:
        return BESIDE
    value = value_of(claim, rule)
    if value is None:
        return MISSING
    theirs = rule["theirs"]
    is_met = {"least": value >= theirs, "most": value <= theirs,
              "about": abs(value - theirs) <= rule.get("within", 0)}[rule["rule"]]
    return MET if is_met else BELOW


def mistakes(data, papers):
    """What is wrong with papers.json, a sentence each."""
    claims, found = by_id(data), []
    for paper in papers:
        for entry in paper["entries"]:
            place = f"papers.json: {paper['paper'].split(':')[0]}, {entry['where']}"
            if not any(key in entry for key in ("compare", "command", "test", "setup")):
                found.append(f"{place}: no comparison, command, test or set-up")
            for rule in entry.get("compare", []):
                found += mistakes_of(rule, claims, entry, place)
            found += [f"{place}: no claim {name} in results.json"
                      for name in entry.get("beside", []) if name not in claims]
    return found


def mistakes_of(rule, claims, entry, place):
    name = rule["claim"]
    if "theirs" in rule and rule.get("rule") not in RULES:
        return [f"{place}: {name} has no rule of {', '.join(RULES)}"]
    if name not in claims:
        if not name.startswith(FUTURE):
            return [f"{place}: no claim {name} in results.json"]
        return [] if "command" in entry else [f"{place}: {name} is not measured, and no command says how"]
    if verdict(claims[name], rule) == MISSING and not name.startswith(FUTURE):
        return [f"{place}: {name} has no baseline {rule['to']}"]
    if verdict(claims[name], rule) == BELOW and "why" not in rule:
        return [f"{place}: {name} is below the paper's; say why, as `why` beside it"]
    return []


def ours(claim, rule, data):
    """A cell: the value with its link, what was measured beside it, and the machine."""
    name = claim["id"]
    text = f"[{claim['claim']}](results.md#{name}): **{marked(claim['value'], name)}** {claim['unit']}"
    others = [f"{each['name']} {marked(each['value'], name + '.' + slug(each['name']))}"
              + (f", {each['of']}" if "of" in each else "") for each in claim.get("baselines", [])]
    text += f" ({', '.join(others)})" if others else ""
    if "n" in claim and "of" in claim:
        text += f"; {claim['statistic']} of {number(claim['n'])} {claim['of']}"
    if rule.get("other"):
        text += "; other programs than the paper’s"
    return given_but_marked(text), f"`{data['runs'][claim['run']]['machine']}`"


def given_but_marked(text):
    """Numbers in a claim's words are settings."""
    parts = re.split(r"((?:\*\*)?-?[\d.,]+<!--=[\w.-]+-->)", text)
    return "".join(part if index % 2 else given(part) for index, part in enumerate(parts))


def target(rule):
    if "theirs" not in rule:
        return "-"
    unit = " % less" if "to" in rule else " %" if "of" in rule else ""
    words = {"least": "at least", "most": "at most", "about": "about"}[rule["rule"]]
    if "within" in rule:
        unit += f", within {number(rule['within'])}<!--=given-->"
    beside = f" than {rule['to']}" if "to" in rule else " of all" if "of" in rule else ""
    if "to" in rule and rule["theirs"] < 0:
        return f"at most {number(-rule['theirs'])}<!--=given--> % more{beside}"
    return f"{words} {number(rule['theirs'])}<!--=given-->{unit}{beside}"


def rows_of(entry, claims, data):
    """(wanted, ours, machine, verdict) of each comparison of an entry, or of what stands for one."""
    rows, missing = [], []
    for rule in entry.get("compare", []):
        claim = claims.get(rule["claim"])
        said = verdict(claim, rule) if claim else MISSING
        if said == MISSING:
            missing.append(rule)
            continue
        cell, machine = ours(claim, rule, data)
        why = f": {given(rule['why'])}" if said == BELOW else ""
        if said == MET and rule.get("other"):
            said = ELSEWHERE
        rows.append((target(rule), cell, machine, said if said == BESIDE else f"**{said}**{why}"))
    for name in entry.get("beside", []):
        cell, machine = ours(claims[name], {}, data)
        rows.append(("-", cell, machine, BESIDE))
    if "test" in entry:
        rows.append(("-", f"the paper’s numbers, in `{entry['test']}`", "-", TESTED))
    if "setup" in entry:
        rows.append(("-", entry["setup"], "-", DESCRIBED))
    if missing or ("command" in entry and "compare" not in entry):
        wanted = "; ".join(dict.fromkeys(target(rule) for rule in missing if "theirs" in rule)) or "-"
        note = f": {given(entry['note'])}" if "note" in entry else ""
        if rows and missing:
            note += f" ({', '.join(rule['claim'].removeprefix(FUTURE) for rule in missing)})"
        rows.append((wanted, f"`{entry['command']}`{note}", "-", f"**{MISSING}**"))
    return rows


def quoted(entry):
    text = given(entry["quote"])
    return (text if entry.get("paraphrase") else f"“{text}”") + f" ({entry['section']}<!--=given-->)"


def section_of(paper, claims, data):
    heading = ("figure", "what it measures", "the paper (section)", "wanted", "ours", "machine", "verdict")
    rows = []
    for entry in paper["entries"]:
        first = (entry["where"], given(entry["measures"]), quoted(entry))
        for place, row in enumerate(rows_of(entry, claims, data)):
            rows.append((*(first if place == 0 else ("", "", "")), *row))
    return [f"## {paper['paper']}", "", f"On {paper['machine']}; here policy {paper['policy']}.", "",
            *table(heading, *rows)]


def counted(paper, claims, data):
    """How many rows have each verdict."""
    said = [row[-1].split("**")[1] if row[-1].startswith("**") else row[-1]
            for entry in paper["entries"] for row in rows_of(entry, claims, data)]
    return [str(said.count(each)) for each in (MET, ELSEWHERE, BELOW, MISSING, BESIDE, TESTED, DESCRIBED)]


def page(data, papers):
    claims = by_id(data)
    lines = ["# The papers’ evaluations, theirs and ours", "",
             "<!-- Written by tools/bench/report.py from tools/bench/papers/papers.json and results.json; a "
             "test compares. -->", "", paragraph(" ".join(TEXT.split())), ""]
    lines += table(("paper", "figures and tables", MET, ELSEWHERE, BELOW, MISSING, BESIDE, TESTED, DESCRIBED),
                   *((f"[{paper['paper'].split(':')[0]}](#{slug(paper['paper'])})",
                      str(len(paper["entries"])), *counted(paper, claims, data)) for paper in papers))
    for paper in papers:
        lines += section_of(paper, claims, data)
    return "\n".join(lines)
