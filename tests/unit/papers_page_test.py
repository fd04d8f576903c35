#!/usr/bin/env python3
"""docs/papers.md: what is met and what is below, what papers.json must say, and that nothing is left out."""
import copy
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools/bench")]
import report  # noqa: E402
import results_test  # noqa: E402

page = report.papers_page
CLAIM = {"id": "speed", "claim": "A speed", "run": "first", "value": 1.25, "unit": "times",
         "better": "higher", "baselines": [{"name": "MPS", "value": 1.0}]}
DATA = {"runs": {"first": {"machine": "gpu"}}, "sections": [{"claims": [
    CLAIM, {**CLAIM, "id": "time", "value": .75, "better": "lower"}, {**CLAIM, "id": "sms", "value": 66}]}]}
RULE = {"claim": "speed", "theirs": 1.2, "rule": "least"}
ENTRY = {"where": "Figure 1", "section": "4.4", "measures": "speed", "quote": "by 20% in 3.5 ms",
         "compare": [RULE]}


def papers(**changes):
    return [{"paper": "A paper: of ours", "machine": "K40", "policy": "greedy",
             "entries": [{**copy.deepcopy(ENTRY), **changes}]}]


def compared(**changes):
    return papers(compare=[{**RULE, **changes}])


class Page(unittest.TestCase):
    def verdict(self, **changes):
        rule = {**RULE, **changes}
        return page.verdict(page.by_id(DATA)[rule["claim"]], rule)

    def test_verdicts(self):
        self.assertEqual(self.verdict(), "met")
        self.assertEqual(self.verdict(theirs=1.25), "met")
        self.assertEqual(self.verdict(theirs=1.26), "below")
        self.assertEqual(self.verdict(rule="most"), "below")
        self.assertEqual(self.verdict(rule="about", within=.1), "met")
        self.assertEqual(self.verdict(rule="about", within=.01), "below")
        self.assertEqual(page.verdict(CLAIM, {"claim": "speed"}), "not comparable")

    def test_a_gain_over_a_baseline(self):
        self.assertAlmostEqual(page.value_of(CLAIM, {**RULE, "to": "MPS"}), 20)   # time is 1 / 1.25
        self.assertEqual(self.verdict(claim="time", to="MPS", theirs=25), "met")
        self.assertEqual(self.verdict(claim="time", to="MPS", theirs=26), "below")
        self.assertEqual(self.verdict(to="none"), "not measured")
        self.assertEqual(self.verdict(claim="sms", of=132, theirs=50, rule="most"), "met")

    def refused(self, spec, why):
        self.assertIn(why, " ".join(page.mistakes(DATA, spec)))

    def test_what_is_wrong_is_refused(self):
        self.assertEqual(page.mistakes(DATA, papers()), [])
        self.refused(compared(theirs=2), "say why")
        self.assertEqual(page.mistakes(DATA, compared(theirs=2, why="a reason")), [])
        self.refused(compared(claim="other"), "no claim other")
        self.refused(compared(claim="papers-x"), "no command says how")
        self.refused(compared(rule="more"), "has no rule of")
        self.refused(compared(to="none"), "no baseline none")
        self.refused(papers(beside=["other"]), "no claim other")
        self.refused([{**papers()[0], "entries": [{"where": "Table 9"}]}], "no comparison, command")

    def test_rows(self):
        text = page.page(DATA, papers())
        self.assertIn("| at least 1.2<!--=given--> | [A speed](results.md#speed): **1.25<!--=speed-->** "
                      "times (MPS 1<!--=speed.mps-->) | `gpu` | **met** |", text)
        self.assertIn("“by 20<!--=given-->% in 3.5<!--=given--> ms” (4.4<!--=given-->)", text)
        self.assertIn("| [A paper](#a-paper-of-ours) | 1 | 1 | 0 | 0 | 0 | 0 | 0 |", text)
        self.assertIn("**below**: a reason", page.page(DATA, compared(theirs=2, why="a reason")))
        later = page.page(DATA, papers(compare=[{**RULE, "claim": "papers-x"}], command="tools/run --it"))
        self.assertIn("| at least 1.2<!--=given--> | `tools/run --it` | - | **not measured** |", later)

    def test_every_number_of_ours_is_marked_with_its_claim(self):
        data = json.loads(report.DATA.read_text())
        text = page.page(data, json.loads(report.PAPERS.read_text()))
        self.assertEqual(results_test.mistakes(text, report.values_by_mark(data), False), [])
        marks = set(re.findall(r"<!--=([\w.-]+)-->", text)) - {"given"}
        self.assertGreater(len(marks), 30)


class Complete(unittest.TestCase):
    """The figures and tables of the papers' evaluations, as their text numbers them."""
    WANTED = {"Adaptive": ("Figure 2, 3, 7, 8 (a), 8 (b), 9, 10, 11", "Table 2, 3"),
              "FLEP": ("Figure 1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17", "Table 1"),
              "Kernelet": ("Figure 4, 6, 7, 8, 9, 10, 11, 12, 13, 14", "Table 2, 3, 4, 5, 6"),
              "smCompactor": ("Figure 1, 3, 4, 5, 6, 9, 10, 11, 12 (a), 12 (b)", "Table 1, 2, 3")}

    def test_nothing_is_left_out(self):
        for paper in json.loads(report.PAPERS.read_text()):
            figures, tables = next(each for name, each in self.WANTED.items()
                                   if paper["paper"].startswith(name))
            there = set()
            for entry in paper["entries"]:
                for kind, *numbers in re.findall(r"(Figure|Table)s? (\d+(?: \([ab]\))?)(?: and (\d+))?",
                                                 entry["where"]):
                    there.update(f"{kind} {each}" for each in numbers)
            for wanted in (figures, tables):
                kind, _, numbers = wanted.partition(" ")
                for each in numbers.split(", "):
                    self.assertIn(f"{kind} {each}", there, paper["paper"])

    def test_what_papers_py_will_measure_has_the_ids_of_its_claims(self):
        sys.path[:0] = [str(ROOT / f"tools/bench/{each}") for each in ("papers", "harness", "corun")]
        import claims
        import workloads
        groups = [*claims.GROUPS, *(f"mixes {name}" for name in workloads.MIXES),
                  *(f"compact {'+'.join(names)}" for names in workloads.COMPACTED)]
        ends = ["turnaround", "antt-ratio", "stp-lost", "sms", "to-mps",
                *(each[0] for each in claims.METRICS.values())]
        known = {report.slug(f"papers-{group}-{end}") for group in groups for end in ends}
        known |= {f"papers-{ratio}" for ratio in ("pur", "mur", "occupancy")}
        # Those of single figures, as the source has them: "papers-more-sms-{more}".
        source = "".join(path.read_text() for path in (ROOT / "tools/bench/papers").glob("*claims.py"))
        single = [re.sub(r"\\{.*?\\}", ".+", re.escape(each))
                  for each in re.findall(r'f?"(papers-\w[^"]*)"', source)]
        for paper in json.loads(report.PAPERS.read_text()):
            for entry in paper["entries"]:
                for rule in entry.get("compare", []):
                    claim = rule["claim"]
                    if claim.startswith(page.FUTURE) and not any(re.fullmatch(each, claim)
                                                                 for each in single):
                        self.assertIn(claim, known, entry["where"])


if __name__ == "__main__":
    unittest.main()
